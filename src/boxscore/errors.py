"""Define every error and warning that boxscore raises on purpose.

The tree::

        BoxscoreError                  base class of all errors
        ├── InputError (ValueError)    a value, array or table breaks a rule
        │   ├── FileFormatError        ... in a file: the message names file and place
        │   └── ProtocolError          ... in a protocol or a run configuration
        ├── VerificationError          two computations that must agree do not
        └── MissingDependencyError (ImportError)   an optional package is not installed

        BoxscoreWarning (UserWarning)  the input is valid, but probably not intended
        └── FindingWarning             ... found by the quick checks of evaluate

Messages have one form: ``<what> must <rule>. Got <value> in <place>; <likely cause>``.
The command line prints them without a traceback and exits with status 2.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "SEVERITIES",
    "BoxscoreError",
    "BoxscoreWarning",
    "FileFormatError",
    "FindingWarning",
    "InputError",
    "MissingDependencyError",
    "ProtocolError",
    "Severity",
    "VerificationError",
    "is_refused",
    "shortened",
    "with_severity",
]

LONGEST_MESSAGE, LONGEST_PART = 900, 480
"""Characters: names and values from files have any length, but a message is a line for people."""


def shortened(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """Replace the middle of a text that is too long by the number of characters left out."""
    if len(text) <= longest:
        return text
    kept = longest - 40
    return f"{text[: kept * 2 // 3]} ... ({len(text) - kept:,} characters) ... {text[-(kept // 3) :]}"


class BoxscoreError(Exception):
    """Base class of every error that boxscore raises on purpose."""

    def __init__(self, text: str = "") -> None:
        super().__init__(shortened(text))


class InputError(BoxscoreError, ValueError):
    """A value, array or table breaks a rule.

    Parameters
    ----------
    name : str
        The user's name for the value; or, without a rule, the whole text.
    rule : str, optional
        The requirement, after "must".
    got : object, optional
        The value, as the message shows it.
    place : str, optional
        Where the value is: the row, the key, the file.
    cause : str, optional
        The likely cause, or the next step.

    Attributes
    ----------
    name, rule, got, place, cause
        The parts of the message.

    Examples
    --------
    >>> str(InputError("score", "be finite", got="nan", place="row 3", cause="a diverged model?"))
    'score must be finite. Got nan in row 3; a diverged model?'
    """

    def __init__(
        self, name: str, rule: str = "", *, got: object = "", place: str = "", cause: str = ""
    ) -> None:
        self.name, self.rule, self.got, self.place, self.cause = name, rule, got, place, cause
        super().__init__(_text(name, rule, got, place, cause) if rule else name)

    def and_also(self, other: InputError | None) -> InputError:
        """Return an error that also states another, so that all that is missing is asked for at once."""
        return self if other is None else type(self)(f"{self} And {other}")


def _text(name: str, rule: str, got: object, place: str, cause: str) -> str:
    """Join name, rule, value, place and likely cause into a message; limit the length of each."""
    parts = (str(part) for part in (name, rule, got, place, cause))
    name, rule, got, place, cause = (shortened(part, LONGEST_PART) for part in parts)
    text = f"{name} must {rule}. Got {got}"
    if place:
        text += f" in {place}"
    if cause:
        text += f"; {cause}"
    return text if text.endswith("?") else text + "."


class FileFormatError(InputError):
    """A file breaks a rule; the message starts with the file's name."""


class ProtocolError(InputError):
    """A protocol or run configuration breaks a rule."""


class VerificationError(BoxscoreError):
    """Two computations that must agree do not."""


class MissingDependencyError(BoxscoreError, ImportError):
    """An optional package is required but not installed."""


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Severity of a problem in the input, worst first: an error makes the score wrong, a warning probably
does."""


def is_refused(severity: Severity) -> bool:
    """Whether ``--strict`` fails on a problem of this severity."""
    return severity != "note"


def with_severity(severity: Severity, text: str) -> str:
    """Prefix a message about the input with its severity."""
    return f"{'error in the input' if severity == 'error' else severity}: {text}"


class BoxscoreWarning(UserWarning):
    """The input is valid, but probably not intended.

    Attributes
    ----------
    code : str
        The name of the check of :func:`boxscore.validate` that reports the same; may be empty.
    severity : {"error", "warning", "note"}
        See :data:`SEVERITIES`.
    """

    def __init__(self, text: str = "", *, code: str = "", severity: Severity = "warning") -> None:
        self.code, self.severity = code, severity
        super().__init__(shortened(text))


class FindingWarning(BoxscoreWarning):
    """A finding of the quick checks that :func:`boxscore.evaluate` runs."""
