"""Decide between detectors: comparisons, power analysis, sequential tests, guarantees, the gate for CI."""
