"""Find faults of the data that a score hides."""
