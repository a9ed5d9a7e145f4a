"""Compute metrics under many sets of image weights, for intervals and slices; look up class weights."""
