"""Keypoints: OKS, joined parts, errors and distances."""
