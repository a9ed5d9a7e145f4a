"""Measure how much two objects agree: boxes, masks, boundaries, keypoints."""

__all__: list[str] = []
