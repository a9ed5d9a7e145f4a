"""The registry of formats: one line each.

Conventions
-----------
A format is detected from what lies at the path, never from the file's name alone. The first in the list that
recognises it wins; what none recognises is named if it looks like anything.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from boxscore._utils import checks
from boxscore.errors import FileFormatError
from boxscore.formats._format import Format
from boxscore.formats._look import Look
from boxscore.formats._unpacking import Unpacked, only_data, unpacked
from boxscore.formats.recognising import resemblance

__all__ = ["detect_format", "format_at", "format_named", "format_names"]

_MODULES = {
    "columns": "boxscore.formats.columns",
    "cvat": "boxscore.formats.cvat",
    "hrsc": "boxscore.formats.hrsc",
    "voc": "boxscore.formats.voc",
    "dota": "boxscore.formats.dota",
    "yolo": "boxscore.formats.yolo",
    "darknet": "boxscore.formats.darknet",
    "text": "boxscore.formats.text",
    "tfrecord": "boxscore.formats.tfrecord",
    "bdd": "boxscore.formats.bdd",
    "createml": "boxscore.formats.createml",
    "vott": "boxscore.formats.vott",
    "via": "boxscore.formats.via",
    "sagemaker": "boxscore.formats.sagemaker",
    "supervisely": "boxscore.formats.supervisely",
    "datumaro": "boxscore.formats.datumaro",
    "labelstudio": "boxscore.formats.labelstudio",
    "labelme": "boxscore.formats.labelme",
    "parquet": "boxscore.formats.parquet",
    "jsonl": "boxscore.formats.json_lines",
    "csv": "boxscore.formats.csv_tables",
    "coco": "boxscore.formats.coco",
}
"""The module of each format, which defines ``FORMAT``, in the order in which they are tried."""


@functools.cache
def format_named(name: str) -> Format:
    """Return the format with a name."""
    named: Format = importlib.import_module(_MODULES[name]).FORMAT
    return named


def format_names(*, auto: bool = True) -> tuple[str, ...]:
    """Return every name that ``format`` may have.

    Parameters
    ----------
    auto : bool, default True
        Whether with ``"auto"``, first.

    Returns
    -------
    tuple of str
    """
    return (*(("auto",) if auto else ()), *reversed(_MODULES))


def detect_format(path: str | Path) -> tuple[str, str]:
    """Detect the format of ground truth or detections, and by what it was recognised.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    format, reason : str

    Raises
    ------
    FileFormatError
        When nothing is there, or nothing that is known.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write("[]"), file.flush()
    ...     detect_format(file.name)
    ('coco', 'a JSON file')
    """
    path = Path(path)
    if not path.exists():
        raise FileFormatError(f"{path}: cannot be read: No such file or directory.")
    inner = unpacked(path)
    look = Look(inner)
    found = _detected(look)
    if found is None and inner != path and look.is_folder:
        only = only_data(inner)
        found = None if only is None else _detected(Look(only))
    if found is not None:
        return found[0], found[1] if inner == path else f"{found[1]}, in an archive"
    like = resemblance(look)
    raise FileFormatError(
        str(path),
        "be in a format that boxscore reads",
        got="something unknown" if like is None else f"what looks like {like.what}",
        cause=f"these are read: {', '.join(format_names(auto=False))}" if like is None else like.advice,
    )


def _detected(look: Look, *, first: str | None = None) -> tuple[str, str] | None:
    """Return the format and the reason of the first that recognises a path, asking one before the others."""
    for name in dict.fromkeys([*([] if first is None else [first]), *_MODULES]):
        reason = format_named(name).detect(look)
        if reason is not None:
            return name, reason
    return None


def format_at(path: Path, name: str = "auto") -> Format:
    """Return the format of the data at a path, which must be the named one if one is named."""
    checks.one_of(name, format_names(), name="format")
    inner = unpacked(path)
    if inner != path:
        return _format_inside(path, inner, name)
    if name != "auto" and path.exists():
        found = _detected(Look(path), first=name)
        if found is None or found[0] == name:
            return format_named(name)  # it says what is wrong where nothing was recognised
    detected, reason = detect_format(path)
    if name not in ("auto", detected):
        raise FileFormatError(f"{path}", f"be in the {name} format", got=f"{reason} ({detected})")
    return format_named(detected)


def _format_inside(path: Path, inner: Path, name: str) -> Format:
    """Return the format of what an archive holds."""
    if inner.is_dir() and _detected(Look(inner)) is None:
        inner = only_data(inner) or inner
    try:
        return Unpacked(format_at(inner, name), path, inner)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace(str(inner), str(path))) from None
