"""Differential fuzzing: made-up data sets scored twice."""
