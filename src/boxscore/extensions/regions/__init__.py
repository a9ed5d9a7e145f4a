"""Evaluate only inside regions of the images, or only outside of them."""
