"""Explain a score: error types, confusions, calibration, intervals, slices. Each question has one file."""
