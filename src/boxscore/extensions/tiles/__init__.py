"""Evaluate detections in tiles of large images: read tile names, shift, merge, and cut ground truth."""
