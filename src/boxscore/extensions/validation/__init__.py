"""Find errors in the data that a score does not reveal."""
