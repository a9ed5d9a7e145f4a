"""Every error and warning boxscore raises on purpose.

The tree::

    BoxscoreError                  anything boxscore refuses to do
    ├── InputError (ValueError)    a value, array or table breaks a rule
    │   ├── FileFormatError        ... and it stands in a file: the message names file and place
    │   └── ProtocolError          ... in a protocol or a run configuration
    ├── VerificationError          two computations that must agree do not
    └── MissingDependencyError (ImportError)   an optional package is not installed

    BoxscoreWarning (UserWarning)  the input is legal, and probably not what was meant

Messages have one form: ``<what> must <rule>. Got <value> in <place>; <likely cause>``.
The command line prints them without a traceback and exits with status 2.
"""

from __future__ import annotations

__all__ = [
    "BoxscoreError",
    "BoxscoreWarning",
    "FileFormatError",
    "InputError",
    "MissingDependencyError",
    "ProtocolError",
    "VerificationError",
]


class BoxscoreError(Exception):
    """Base class of every error that boxscore raises on purpose."""


class InputError(BoxscoreError, ValueError):
    """A value, array or table breaks a rule."""


class FileFormatError(InputError):
    """A file breaks a rule; the message starts with the file's name."""


class ProtocolError(InputError):
    """A protocol or run configuration breaks a rule."""


class VerificationError(BoxscoreError):
    """Two computations that must agree do not."""


class MissingDependencyError(BoxscoreError, ImportError):
    """An optional package is needed and not installed."""


class BoxscoreWarning(UserWarning):
    """The input is legal, and probably not what was meant."""
