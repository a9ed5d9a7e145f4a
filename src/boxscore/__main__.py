"""Run the command line as a program of its own: ``boxscore``, or ``python -m boxscore``.

What a program may do to its process, and a library must not, is done here.
"""

from __future__ import annotations

import io
import os
import sys

from boxscore._utils.allocator import keep_freed_memory
from boxscore.cli import main

__all__ = ["program"]


def program() -> int:
    """Run the command line on ``sys.argv``; return the exit status."""
    keep_freed_memory()
    os.environ.setdefault("MPLBACKEND", "Agg")  # nothing is shown, only written
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    status = main()
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


if __name__ == "__main__":
    sys.exit(program())
