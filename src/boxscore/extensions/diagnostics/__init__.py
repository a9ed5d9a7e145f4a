"""Explain a score: error types, confusions, calibration, intervals, slices, one file per question."""
