"""Panoptic quality and semantic IoU of label maps."""
