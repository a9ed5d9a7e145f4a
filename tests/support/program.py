"""Running the program as a user does: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import boxscore

SOURCES = str(Path(boxscore.__file__).parents[1])


def run_python(
    arguments: Sequence[str], *, folder: Path | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run Python; return exit status, stdout and stderr."""
    path = os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": path, **environment},
        capture_output=True,
        check=False,
        timeout=120,
    )
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    return done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding)


def run_boxscore(
    arguments: Sequence[str], *, folder: Path | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run ``python -m boxscore``; return exit status, stdout and stderr."""
    return run_python(["-m", "boxscore", *arguments], folder=folder, **environment)
