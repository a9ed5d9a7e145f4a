"""boxscore: the box score for object detectors."""

from boxscore._version import __version__

__all__ = ["__version__"]
