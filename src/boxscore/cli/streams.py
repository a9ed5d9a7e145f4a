"""What the commands print: results to stdout, everything else to stderr.

Conventions
-----------
- A command shows its result when everything is checked, so that an error leaves nothing on stdout.
- A reader that has left (``head``) ends no command and changes no exit status. Any other failure of stdout,
  such as a full disk, is an error. A failure of stderr is none: nobody could be told.
- Control characters never get to the terminal from here; tables and titles have none already.
"""

from __future__ import annotations

import contextlib
import sys

from boxscore._utils.text import printable

__all__ = ["say", "show", "stderr_is_terminal"]


def show(text: str) -> None:
    """Print a result on stdout, at once."""
    if sys.stdout is not None:
        with contextlib.suppress(BrokenPipeError):
            print(text, flush=True)


def say(text: str, *, name: str = "") -> None:
    """Print one line on stderr, after a name where it is a message."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"{name}: {printable(text)}" if name else printable(text), file=sys.stderr, flush=True)


def stderr_is_terminal() -> bool:
    """Whether somebody may be watching."""
    return sys.stderr is not None and sys.stderr.isatty()
