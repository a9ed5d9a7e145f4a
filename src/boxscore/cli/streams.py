"""Print results to stdout, or to the file of ``--output``, and everything else to stderr.

Conventions
-----------
- A command prints its result after all checks, so stdout is empty after an error.
- Text has the width of the terminal; in pipes and files, 80 columns, but tables keep all their columns. Set
  another width with ``COLUMNS=120``, or use ``--wide`` for unlimited width. Outside a terminal, the signature
  and lines on stderr are never wrapped, because programs search for them.
- Color is used in terminals, unless ``NO_COLOR`` or ``TERM=dumb`` is set, or anywhere with ``FORCE_COLOR``.
- A closed pipe (``head``) neither stops a command nor changes its exit status. Any other failure of stdout,
  such as a full disk or a closed stdout, is an error. Failures of stderr are ignored.
- Control characters are removed here; tables and titles are already free of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from boxscore._utils.given_paths import without_secrets
from boxscore._utils.progress import progress_is_shown, without_progress
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import folded, printable, wrapped
from boxscore.errors import InputError

USUAL_WIDTH, LEAST_WIDTH = 80, 40
"""Default and minimum width in columns; narrower terminals wrap lines themselves."""

_COLORS = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}


class Settings(NamedTuple):
    """Settings for the output of a command.

    Attributes
    ----------
    wide : bool
        Do not limit the width of text.
    quiet : bool
        Print only errors to stderr.
    file : Path, optional
        Output file for results, instead of stdout.
    columns : sequence of str
        Columns of tables to print; empty for all.
    own_options : callable
        Replaces advice in a message that names an option which the command lacks.
    """

    wide: bool = False
    quiet: bool = False
    file: Path | None = None
    columns: Sequence[str] = ()
    own_options: Callable[[str], str] = str


_now = Settings()


def settings() -> Settings:
    """Return the current settings."""
    return _now


@contextlib.contextmanager
def using(chosen: Settings) -> Iterator[None]:
    """Use these settings in a context; at its end, write the results file unless an error occurred."""
    global _now, _results
    before, _now = (_now, _results), chosen
    _results = []
    try:
        with without_progress() if chosen.quiet else contextlib.nullcontext():
            yield
        if chosen.file is not None and _results:
            from boxscore._utils.files import write_atomically

            write_atomically(chosen.file, "".join(f"{text}\n" for text in _results))
            say(f"written to {chosen.file}")
    finally:
        _now, _results = before


_results: list[str] = []


# ---------------------------------------------------------------- printing


def show(text: str) -> None:
    """Print a result to stdout, or keep it for the file of ``--output``."""
    if _now.file is not None:
        _results.append(text)
    elif sys.stdout is not None:
        try:
            print(text, flush=True)
        except BrokenPipeError:  # readers may exit early
            pass
        except OSError as error:
            reason = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise InputError(f"the result cannot be written to stdout: {reason}.") from None


def as_typed(text: str) -> str:
    """Remove hints for Python from a message, as in ``--images (in Python images=)``."""
    return re.sub(r" \(in Python,? [^()]*\)", "", text)


def say(text: str, *, name: str = "", color: str = "", quiet: bool = True) -> None:
    """Print a line to stderr, optionally with a program name, and a color for the text before its colon.

    ``--quiet`` suppresses it, unless ``quiet`` is False.
    """
    if sys.stderr is not None and not (quiet and _now.quiet):
        text = printable(as_typed(without_secrets(text)))
        if not _now.wide and _is_terminal(sys.stderr):
            columns = _columns_of(sys.stderr) - len(f"{name}: " if name else "")
            text = wrapped(text, columns, indent="  ", whole=True)
        if color:
            first, colon, rest = text.partition(":")
            text = f"{colored(first + colon, color, stream=sys.stderr)}{rest}"
        with contextlib.suppress(OSError):
            print(f"{name}: {text}" if name else text, file=sys.stderr, flush=True)


def stderr_is_terminal() -> bool:
    """Whether stderr is a terminal and progress is enabled."""
    return progress_is_shown()


# ---------------------------------------------------------------- the terminal


def width() -> int | None:
    """Return the maximum width of text in columns; None if unlimited."""
    return None if _now.wide else terminal_width()


def table_width() -> int | None:
    """Return the maximum width of a table; None if unlimited, as in pipes and files."""
    return None if _now.wide else _known_width()


def terminal_width() -> int:
    """Return the width of the terminal for results, or the default width."""
    return _known_width() or USUAL_WIDTH


def _known_width() -> int | None:
    """Return the width set by ``COLUMNS`` or that of the terminal for results; None without either."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and given.isascii() and len(given) < 6 and int(given):
        return max(int(given), LEAST_WIDTH)
    if _now.file is None and _is_terminal(sys.stdout):
        return _columns_of(sys.stdout)
    return None


def _columns_of(stream: TextIO) -> int:
    """Return the width of a terminal."""
    with contextlib.suppress(OSError, ValueError):
        columns = os.get_terminal_size(stream.fileno()).columns
        return max(columns, LEAST_WIDTH) if columns else USUAL_WIDTH
    return USUAL_WIDTH


def signature_lines(signature: str) -> str:
    """Wrap a signature after ``|`` in a terminal; elsewhere keep it in one line, for programs."""
    if _now.wide or _now.file is not None or not _is_terminal(sys.stdout):
        return signature
    return folded(signature, terminal_width(), after="|")


def colored(text: str, color: str, *, stream: TextIO | None = None) -> str:
    """Color a text for stdout or another stream, if the stream supports it."""
    stream = sys.stdout if stream is None else stream
    if not text or not _wants_color(stream):
        return text
    return f"\033[{_COLORS[color]}m{text}\033[0m"


def _wants_color(stream: TextIO | None) -> bool:
    if os.environ.get("NO_COLOR") or (stream is sys.stdout and _now.file is not None):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and _is_terminal(stream)


def _is_terminal(stream: TextIO | None) -> bool:
    return bool(getattr(stream, "isatty", bool)())  # a replaced stream may not have isatty
