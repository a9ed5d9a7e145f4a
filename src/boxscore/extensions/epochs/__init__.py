"""Evaluate the epochs of a training run: the curve, the best epoch, and which others may be as good."""
