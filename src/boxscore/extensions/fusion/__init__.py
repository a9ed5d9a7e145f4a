"""Fuse the boxes of several models into one file: weighted boxes fusion, non-maximum weighted."""
