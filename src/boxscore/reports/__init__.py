"""Writing results for people and for the next tool. Adds nothing to the numbers."""
