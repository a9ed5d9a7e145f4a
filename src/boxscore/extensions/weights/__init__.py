"""Metrics under many sets of image weights, for intervals and slices; weights of classes."""
