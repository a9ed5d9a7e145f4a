"""Rotated boxes and quadrilaterals: DOTA, HRSC, ProbIoU."""
