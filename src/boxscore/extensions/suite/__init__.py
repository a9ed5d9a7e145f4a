"""Evaluate many models on many data sets in one table."""
