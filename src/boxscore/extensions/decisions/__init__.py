"""Decide between detectors: comparisons, power, sequential tests, guarantees, the gate for CI."""
