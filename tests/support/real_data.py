"""Where the real data lies: ``../shared/data`` from the project's root, or ``$BOXSCORE_REAL_DATA``."""

from __future__ import annotations

import contextlib
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def real(*parts: str) -> Path:
    """Return the path of a real file or folder; skips the test where it is not there."""
    given = os.environ.get("BOXSCORE_REAL_DATA")
    root = Path(given) if given else PROJECT.parent / "shared" / "data"
    path = root.joinpath(*parts)
    if not path.exists():
        how = "from $BOXSCORE_REAL_DATA" if given else "set BOXSCORE_REAL_DATA to the folder that has it"
        pytest.skip(f"real data is absent: {path} ({how})")
    return path


@contextlib.contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack the files of a real ``.tar.gz`` into a folder that is there as long as the context."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as content:
        for member in content.getmembers():
            file = content.extractfile(member)
            if file is not None:
                path = Path(folder, *[part for part in Path(member.name).parts if part not in ("..", "/")])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(file.read())
        yield Path(folder)
