"""Evaluate only inside regions of the images, or only outside of them."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.regions.counting import restrict as restrict
