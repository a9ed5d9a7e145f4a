"""Decode the output tensors of exported networks into detections in pixels of the original images."""
