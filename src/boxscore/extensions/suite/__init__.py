"""Many data sets and models in one table."""
