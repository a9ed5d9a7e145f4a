"""Print results to stdout, or to the file of ``--output``, and everything else to stderr.

Conventions
-----------
- A command shows its result when everything is checked, so that an error leaves nothing on stdout.
- Text is as wide as the terminal, and 80 columns where there is none: in a pipe, in a file. There tables have
  all their columns. ``COLUMNS=120`` says another width, ``--wide`` that there is no limit. Only the line of
  the signature, and those of stderr, are never broken outside a terminal: programs look for them.
- Colour is for terminals: ``NO_COLOR`` and ``TERM=dumb`` refuse it, ``FORCE_COLOR`` asks for it anywhere.
- A reader that has left (``head``) ends no command and changes no exit status. Any other failure of stdout,
  such as a full disk, is an error. A failure of stderr is ignored: there is nowhere to report it.
- Control characters never get to the terminal from here; tables and titles have none already.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from boxscore._utils.given_paths import without_secrets
from boxscore._utils.progress import progress_is_shown, without_progress
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import folded, printable, wrapped

USUAL_WIDTH, LEAST_WIDTH = 80, 40
"""Columns; a narrower terminal breaks lines itself."""

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1"}


class Settings(NamedTuple):
    """What holds for all that a command prints.

    Attributes
    ----------
    wide : bool
        Text may be of any width.
    quiet : bool
        Nothing goes to stderr but errors.
    file : Path, optional
        Where results go in place of stdout.
    columns : sequence of str
        The columns of tables to print; all if there are none.
    """

    wide: bool = False
    quiet: bool = False
    file: Path | None = None
    columns: Sequence[str] = ()


_now = Settings()


def settings() -> Settings:
    """Return what holds now."""
    return _now


@contextlib.contextmanager
def using(chosen: Settings) -> Iterator[None]:
    """Let settings hold for a while; a file of results appears at the end, whole, if there was no error."""
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
    """Print a result on stdout immediately, or keep it for the file of ``--output``."""
    if _now.file is not None:
        _results.append(text)
    elif sys.stdout is not None:
        with contextlib.suppress(BrokenPipeError):
            print(text, flush=True)


def as_typed(text: str) -> str:
    """Leave out of a message what it says for Python alone: ``--images (in Python images=)``."""
    return re.sub(r" \(in Python,? [^()]*\)", "", text)


def say(text: str, *, name: str = "", colour: str = "", quiet: bool = True) -> None:
    """Print one line on stderr, after a name where it is a message; what is before its colon may be coloured.

    ``--quiet`` leaves it out, unless ``quiet`` is False.
    """
    if sys.stderr is not None and not (quiet and _now.quiet):
        text = printable(as_typed(without_secrets(text)))
        if not _now.wide and _is_terminal(sys.stderr):
            columns = _columns_of(sys.stderr) - len(f"{name}: " if name else "")
            text = wrapped(text, columns, indent="  ", whole=True)
        if colour:
            first, colon, rest = text.partition(":")
            text = f"{coloured(first + colon, colour, stream=sys.stderr)}{rest}"
        with contextlib.suppress(OSError):
            print(f"{name}: {text}" if name else text, file=sys.stderr, flush=True)


def stderr_is_terminal() -> bool:
    """Whether somebody may be watching, and wants to see what goes on."""
    return progress_is_shown()


# ---------------------------------------------------------------- the terminal


def width() -> int | None:
    """Return how many columns text may have; None for any number."""
    return None if _now.wide else terminal_width()


def table_width() -> int | None:
    """Return how many columns a table may have; None for any number: a pipe or a file loses none of them."""
    return None if _now.wide else _known_width()


def terminal_width() -> int:
    """Return the width of the terminal that shows results, or the usual one."""
    return _known_width() or USUAL_WIDTH


def _known_width() -> int | None:
    """Return the width that ``COLUMNS`` sets, or that of a terminal that shows results; None without both."""
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
    """Break a signature after ``|`` where a terminal shows it; elsewhere it is one line, for programs."""
    if _now.wide or _now.file is not None or not _is_terminal(sys.stdout):
        return signature
    return folded(signature, terminal_width(), after="|")


def coloured(text: str, colour: str, *, stream: TextIO | None = None) -> str:
    """Colour a text for stdout, or another stream, if that wants it."""
    stream = sys.stdout if stream is None else stream
    if not text or not _wants_colour(stream):
        return text
    return f"\033[{_COLOURS[colour]}m{text}\033[0m"


def _wants_colour(stream: TextIO | None) -> bool:
    if os.environ.get("NO_COLOR") or (stream is sys.stdout and _now.file is not None):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and _is_terminal(stream)


def _is_terminal(stream: TextIO | None) -> bool:
    return bool(getattr(stream, "isatty", bool)())  # whatever a program has put in place of a stream
