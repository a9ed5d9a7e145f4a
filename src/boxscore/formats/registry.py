"""The registry of formats: one line each.

Conventions
-----------
A format is detected from what lies at the path, never from the file's name alone. The first in the list that
recognises it wins; what none recognises is named if it looks like anything. Only the modules of formats that
may recognise the path are imported.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from boxscore._utils import checks
from boxscore.errors import FileFormatError
from boxscore.formats._format import Format
from boxscore.formats._leading import LedOn, Side, led_on
from boxscore.formats._look import Look, errors_named
from boxscore.formats._unpacking import Unpacked, only_data, unpacked
from boxscore.formats.recognising import resemblance

MOST_WITHIN = 8
"""Entries of a folder that are tried, to say what may be meant."""

LABELS = "a folder of YOLO's text files"
"""How YOLO's format calls a folder in whose folders there are labels."""


class _Entry(NamedTuple):
    """The module of a format, which defines ``FORMAT``, and a quick test that all its files pass."""

    module: str
    may_be: Callable[[Look], bool] = lambda look: True


def _json(*keys: str) -> Callable[[Look], bool]:
    """JSON with one of these keys near its beginning."""
    return lambda look: look.is_json and any(f'"{key}"' in look.text for key in keys)


def _folder_or(test: Callable[[Look], bool]) -> Callable[[Look], bool]:
    return lambda look: look.is_folder or test(look)


def _folder_or_ending(*endings: str) -> Callable[[Look], bool]:
    return lambda look: look.is_folder or look.suffix in endings


_YOLO = _folder_or_ending(".yaml", ".yml", ".data", ".txt")

_FORMATS = {
    "columns": _Entry("columns", lambda look: look.head.startswith(b"PK")),
    "cvat": _Entry("cvat", _folder_or(lambda look: look.is_xml)),
    "hrsc": _Entry("hrsc", _folder_or_ending(".xml")),
    "voc": _Entry("voc", _folder_or_ending(".xml", ".txt")),
    "dota": _Entry("dota", _folder_or_ending(".txt")),
    "yolo": _Entry("yolo", _YOLO),
    "darknet": _Entry("darknet", _YOLO),
    "widerface": _Entry("widerface", lambda look: look.is_folder),
    "visdrone": _Entry("visdrone", lambda look: look.is_folder),
    "kitti": _Entry("kitti", lambda look: look.is_folder),
    "text": _Entry("text", lambda look: look.is_folder),
    "tfrecord": _Entry("tfrecord", _folder_or(lambda look: b"image/" in look.head)),
    "bdd": _Entry("bdd", _json("box2d")),
    "createml": _Entry("createml", _json("coordinates")),
    "vott": _Entry("vott", _json("assets")),
    "via": _Entry("via", _json("_via_img_metadata", "regions")),
    "sagemaker": _Entry("sagemaker", _json("source-ref")),
    "supervisely": _Entry("supervisely", lambda look: look.is_folder),
    "datumaro": _Entry("datumaro", _json("label", "items", "dm_format_version")),
    "labelstudio": _Entry("labelstudio", _json("result", "original_width")),
    "labelme": _Entry("labelme", _folder_or(_json("imageData", "shapes"))),
    "crowdhuman": _Entry("crowdhuman", _json("gtboxes", "dtboxes")),
    "citypersons": _Entry("citypersons", _json("vis_ratio")),
    "parquet": _Entry("parquet", _folder_or(lambda look: look.head.startswith(b"PAR1"))),
    "jsonl": _Entry(
        "json_lines", lambda look: look.suffix in (".jsonl", ".ndjson") or look.first_line.endswith("}")
    ),
    "openimages": _Entry("open_images", lambda look: not (look.is_folder or look.is_json or look.is_xml)),
    "csv": _Entry("csv_tables", lambda look: not (look.is_folder or look.is_json or look.is_xml)),
    "coco": _Entry("coco"),
}
"""In the order in which they are tried."""


@functools.cache
def format_named(name: str) -> Format:
    """Return the format with a name."""
    named: Format = importlib.import_module(f"boxscore.formats.{_FORMATS[name].module}").FORMAT
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
    return (*(("auto",) if auto else ()), *reversed(_FORMATS))


def detect_format(path: str | Path, *, side: Side | None = None) -> tuple[str, str]:
    """Detect the format of ground truth or detections, and by what it was recognised.

    Parameters
    ----------
    path : str or Path
    side : {"ground truth", "detections"}, optional
        Which of the two is looked for in a folder that leads on to data below it; both by default.

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
    _check_file_or_folder(path)
    inner = unpacked(path)
    look = Look(inner)
    found = _detected(look)
    further = _further(look, found, side)
    if further is not None:
        return detect_format(further, side=side)
    if found is None and inner != path and look.is_folder:
        only = only_data(inner)
        found = None if only is None else _detected(Look(only))
    found = _labels_below(look) if found is None and side == "detections" else found
    if found is not None:
        return found[0], found[1] if inner == path else f"{found[1]}, in an archive"
    like = resemblance(look, side)
    within = [one.relative_to(inner) for one in _candidates(look)]
    advice = like.advice if like is not None else f"these are read: {', '.join(format_names(auto=False))}"
    if within:
        advice = f"give {'one of ' * (len(within) > 1)}{', '.join(str(path / one) for one in within)}"
        if len(within) > 1 and all(Look(inner / one).texts for one in within):
            name = f"{within[0].name}/{Look(inner / within[0]).texts[0].path.stem}"
            advice += (
                f". To evaluate all of them together, make one CSV file whose images are called {name!r}"
            )
    raise FileFormatError(
        str(path),
        "be in a format that boxscore reads",
        got="something unknown" if like is None else f"what looks like {like.what}",
        cause=advice,
    )


def _check_file_or_folder(path: Path) -> None:
    """Refuse what has no end, or can be read only once: it is looked at before it is read."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        got = "a pipe" if path.is_fifo() else "a device"
        cause = "save what comes out of it in a file, and give that; .gz is unpacked here"
        raise FileFormatError(str(path), "be a file or a folder", got=got, cause=cause)


def _further(look: Look, found: tuple[str, str] | None, side: Side | None) -> Path | None:
    """Return what a folder leads on to, of no format or without labels of its own."""
    own = found is not None and (found[0] != "yolo" or found[1] != LABELS or look.texts)
    return None if own or not look.is_folder else led_on(look.path, side=side, has_labels=found is not None)


def _candidates(look: Look) -> list[Path]:
    """Return what can be read in a folder: the only file or folder, or else folders at most three deep."""
    within = [look.path / name for name in look.names[:MOST_WITHIN]] if look.is_folder else []
    found = [one for one in within if _can_be_read(one)]
    if len(found) > 1 and not all(one.is_dir() for one in found):
        return []
    level = [] if found else within
    for _ in range(2):
        level = [inner for one in level for inner in _folders_in(one)][:MOST_WITHIN]
        found = found or [one for one in level if _can_be_read(one)]
    return found


def _labels_below(look: Look) -> tuple[str, str] | None:
    """Return the format and the reason of a folder that has label files of one kind in its folders alone."""
    kinds = {_kind_of_labels(Look(one)) for one in _candidates(look)} - {""}
    kind = kinds.pop() if len(kinds) == 1 else None
    return None if kind is None else (kind, f"folders with label files ({kind})")


def _kind_of_labels(look: Look) -> str | None:
    """Return ``"yolo"`` or ``"text"`` for a folder of label files, "" if all are empty; None for others."""
    found = _detected(look)
    if found is None or not look.is_folder or look.first_with(".txt") is None:
        return None
    if found == ("yolo", LABELS):
        return "yolo" if look.texts else ""
    return found[0] if found[0] == "text" else None


def _folders_in(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    return [folder / name for name in Look(folder).names[:MOST_WITHIN] if (folder / name).is_dir()]


def _can_be_read(path: Path) -> bool:
    try:
        return _detected(Look(path)) is not None
    except FileFormatError:  # one file of a folder
        return False


def _detected(look: Look, *, first: str | None = None) -> tuple[str, str] | None:
    """Return the format and the reason of the first that recognises a path, asking one before the others."""
    with errors_named(look.path):
        for name in dict.fromkeys([*([] if first is None else [first]), *_FORMATS]):
            reason = format_named(name).detect(look) if _FORMATS[name].may_be(look) else None
            if reason is not None:
                return name, reason
    return None


def is_parquet(path: Path, side: Side = "detections") -> bool:
    """Whether a path is a Parquet file, or a folder of them."""
    return format_at(path, side=side).name == "parquet"


def format_at(path: Path, name: str = "auto", *, side: Side | None = None) -> Format:
    """Return the format of the data at a path, which must be the named one if one is named.

    Where a folder leads on to data below it, they are those of a ``side``.
    """
    checks.one_of(name, format_names(), name="format")
    _check_file_or_folder(path)
    inner = unpacked(path)
    if inner != path:
        return _format_inside(path, inner, name, side)
    look = Look(path)
    further = _further(look, _detected(look), side) if look.is_folder else None
    if further is not None:
        return LedOn(format_at(further, name, side=side), path, further, side)
    if name != "auto" and path.exists():
        found = _detected(look, first=name)
        if found is None or found[0] == name:
            return format_named(name)  # it says what is wrong where nothing was recognised
    detected, reason = detect_format(path, side=side)
    if name not in ("auto", detected):
        raise FileFormatError(f"{path}", f"be in the {name} format", got=f"{reason} ({detected})")
    return format_named(detected)


def _format_inside(path: Path, inner: Path, name: str, side: Side | None) -> Format:
    """Return the format of what an archive holds."""
    if inner.is_dir() and _detected(Look(inner)) is None:
        inner = only_data(inner) or inner
    try:
        return Unpacked(format_at(inner, name, side=side), path, inner)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace(str(inner), str(path))) from None
