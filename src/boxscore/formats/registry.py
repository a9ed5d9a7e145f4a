"""List the file formats, and detect the format of a path.

Conventions
-----------
- Formats are detected by content, never by file name alone. The first format in the list that accepts the
  path is used. If all reject it, the error describes the content of the path.
- Only the modules of formats that may accept the path are imported.
- Extensions add formats to ``_FORMATS``, and optional capabilities of formats to ``_CAPABILITIES``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.given_paths import Several, VirtualPath, is_far, path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted
from boxscore.data.hints import ask
from boxscore.errors import FileFormatError
from boxscore.formats._format import Format, Opened, Side
from boxscore.formats._sniffer import Sniffer, errors_named

MOST_WITHIN = 8
"""Maximum number of folder entries to try when suggesting another path."""

LABELS = "a folder of YOLO's text files"
"""Reason given by the YOLO format for a folder of text files, or of subfolders with them."""


class _Entry(NamedTuple):
    """The module of a format, which defines ``FORMAT``, and a quick test that all its files pass."""

    module: str
    may_be: Callable[[Sniffer], bool] = lambda sniffer: True


def _json(*keys: str) -> Callable[[Sniffer], bool]:
    """Return a test for JSON with one of these keys near its beginning."""
    return lambda sniffer: sniffer.is_json and not sniffer.quoted.isdisjoint(keys)


def _folder_or(test: Callable[[Sniffer], bool]) -> Callable[[Sniffer], bool]:
    return lambda sniffer: sniffer.is_folder or test(sniffer)


def _folder_or_ending(*endings: str) -> Callable[[Sniffer], bool]:
    return lambda sniffer: sniffer.is_folder or sniffer.suffix in endings


_YOLO = _folder_or_ending(".yaml", ".yml", ".data", ".txt")

_FORMATS = {
    "pickled": _Entry(
        "boxscore.extensions.formats.pickled", lambda sniffer: sniffer.head.startswith((b"PK", b"\x80"))
    ),
    "columns": _Entry("boxscore.extensions.formats.columns", lambda sniffer: sniffer.head.startswith(b"PK")),
    "mot": _Entry(
        "boxscore.extensions.formats.mot",
        lambda sniffer: (
            not {"gt", "det"}.isdisjoint(sniffer.names)
            or (sniffer.first_line[:1].isdigit() and sniffer.first_line.count(",") >= 6)
        ),
    ),
    "cvat": _Entry("boxscore.extensions.formats.cvat", _folder_or(lambda sniffer: sniffer.is_xml)),
    "hrsc": _Entry("boxscore.extensions.oriented.hrsc", _folder_or_ending(".xml")),
    "keras": _Entry(
        "boxscore.extensions.formats.keras",
        lambda sniffer: sniffer.suffix in (".txt", "") and b"," in sniffer.head,
    ),
    "voc": _Entry("boxscore.formats.voc", _folder_or_ending(".xml", ".txt")),
    "dota": _Entry("boxscore.extensions.oriented.dota", _folder_or_ending(".txt")),
    "xview": _Entry("boxscore.extensions.formats.xview", _folder_or(_json("bounds_imcoords"))),
    "yolo": _Entry("boxscore.formats.yolo", _YOLO),
    "darknet": _Entry("boxscore.extensions.formats.darknet", _YOLO),
    "widerface": _Entry("boxscore.extensions.crowds.widerface", lambda sniffer: sniffer.is_folder),
    "visdrone": _Entry("boxscore.extensions.crowds.visdrone", lambda sniffer: sniffer.is_folder),
    "cityscapes": _Entry("boxscore.extensions.crowds.cityscapes", lambda sniffer: sniffer.is_folder),
    "kitti": _Entry("boxscore.extensions.crowds.kitti", lambda sniffer: sniffer.is_folder),
    "text": _Entry("boxscore.extensions.formats.text", lambda sniffer: sniffer.is_folder),
    "tfrecord": _Entry(
        "boxscore.extensions.formats.tfrecord", _folder_or(lambda sniffer: b"image/" in sniffer.head)
    ),
    "answers": _Entry("boxscore.extensions.scoreless.answers", _folder_or(_json("answer"))),
    "bdd": _Entry("boxscore.extensions.formats.bdd", _json("box2d")),
    "createml": _Entry("boxscore.extensions.formats.createml", _json("coordinates")),
    "vott": _Entry("boxscore.extensions.formats.vott", _json("assets")),
    "via": _Entry(
        "boxscore.extensions.formats.via",
        lambda sniffer: any(key in sniffer.head for key in (b"_via_img", b'"regions"', b"region_shape")),
    ),
    "edgeimpulse": _Entry("boxscore.extensions.formats.edgeimpulse", _json("boundingBoxes", "files")),
    "ibm": _Entry("boxscore.extensions.formats.ibm", _json("localization", "x2")),
    "unity": _Entry(
        "boxscore.extensions.formats.unity",
        lambda sniffer: (
            b'"captures"' in sniffer.head
            or any(name.startswith(("captures_", "sequence.", "step")) for name in sniffer.names)
        ),
    ),
    "openlabel": _Entry("boxscore.extensions.formats.openlabel", _json("openlabel")),
    "odvg": _Entry("boxscore.extensions.formats.odvg", _json("detection", "grounding")),
    "vertex": _Entry(
        "boxscore.extensions.formats.vertex",
        lambda sniffer: (
            _json("imageGcsUri", "displayNames")(sniffer)
            or (not sniffer.is_json and sniffer.first_line.count(",") >= 9)
        ),
    ),
    "sagemaker": _Entry("boxscore.extensions.formats.sagemaker", _json("source-ref")),
    "supervisely": _Entry("boxscore.extensions.formats.supervisely", lambda sniffer: sniffer.is_folder),
    "datumaro": _Entry("boxscore.extensions.formats.datumaro", _json("label", "items", "dm_format_version")),
    "labelstudio": _Entry("boxscore.extensions.formats.labelstudio", _json("result", "original_width")),
    "fiftyone": _Entry("boxscore.extensions.formats.fiftyone", _json("bounding_box", "filepath")),
    "labelme": _Entry("boxscore.extensions.formats.labelme", _folder_or(_json("imageData", "shapes"))),
    "darknetjson": _Entry("boxscore.extensions.formats.darknet_json", _json("frame_id")),
    "megadetector": _Entry("boxscore.extensions.formats.megadetector", _json("file")),
    "ultralytics": _Entry("boxscore.extensions.formats.ultralytics", _folder_or(_json("confidence"))),
    "mmdetjson": _Entry("boxscore.extensions.formats.mmdet_json", _folder_or(_json("bboxes"))),
    "pipeline": _Entry("boxscore.extensions.formats.pipelines", _folder_or(_json("xmin"))),
    "roboflow": _Entry("boxscore.extensions.formats.roboflow", _folder_or(_json("predictions"))),
    "crowdhuman": _Entry("boxscore.extensions.crowds.crowdhuman", _json("gtboxes", "dtboxes")),
    "citypersons": _Entry("boxscore.extensions.crowds.citypersons", _json("vis_ratio")),
    "omnilabel": _Entry("boxscore.extensions.scoreless.omnilabel", _json("descriptions", "description_ids")),
    "saco": _Entry("boxscore.extensions.scoreless.saco", _folder_or(_json("text_input"))),
    "refcoco": _Entry(
        "boxscore.extensions.scoreless.refcoco", _json("caption", "text", "sent", "sentence", "expression")
    ),
    "darwin": _Entry(
        "boxscore.extensions.formats.darwin", _folder_or(_json("item", "original_filename", "workview_url"))
    ),
    "superannotate": _Entry(
        "boxscore.extensions.formats.superannotate", _folder_or(_json("instances", "className"))
    ),
    "scale": _Entry("boxscore.extensions.formats.scale", _json("task_id", "reference_id")),
    "labelbox": _Entry("boxscore.extensions.formats.labelbox", _json("data_row", "Labeled Data", "dataRow")),
    "ndjson": _Entry("boxscore.extensions.formats.ndjson", _json("dataset")),
    "huggingface": _Entry(
        "boxscore.extensions.formats.huggingface",
        _folder_or(
            lambda sniffer: (
                sniffer.path.name == "metadata.parquet"
                or (sniffer.suffix in (".jsonl", ".csv") and "file_name" in sniffer.first_line)
            )
        ),
    ),
    "records": _Entry(
        "boxscore.extensions.formats.records",
        lambda sniffer: (
            sniffer.text.lstrip().startswith("[")
            and not _json("category_id", "segmentation", "keypoints")(sniffer)
        ),
    ),
    "parquet": _Entry(
        "boxscore.formats.parquet", _folder_or(lambda sniffer: sniffer.head.startswith(b"PAR1"))
    ),
    "jsonl": _Entry(
        "boxscore.extensions.formats.json_lines",
        lambda sniffer: sniffer.suffix in (".jsonl", ".ndjson") or sniffer.first_line.endswith("}"),
    ),
    "openimages": _Entry(
        "boxscore.extensions.federated.open_images",
        lambda sniffer: not (sniffer.is_folder or sniffer.is_json or sniffer.is_xml),
    ),
    "csv": _Entry(
        "boxscore.formats.csv_tables",
        lambda sniffer: not (sniffer.is_folder or sniffer.is_json or sniffer.is_xml),
    ),
    "coco": _Entry("boxscore.formats.coco"),
}
"""Formats by name, in the order in which they are tried."""

_CAPABILITIES = {
    ("coco", "begin"): "boxscore.formats.coco:begin",
    ("coco", "correct"): "boxscore.extensions.formats.correcting:corrected_coco",
    ("cvat", "correct"): "boxscore.extensions.formats._xml_correcting:corrected_cvat",
    ("voc", "correct"): "boxscore.extensions.formats._xml_correcting:corrected_voc",
    ("yolo", "correct"): "boxscore.extensions.formats._yolo_correcting:corrected",
    ("darknet", "correct"): "boxscore.extensions.formats._yolo_correcting:corrected",
    ("coco", "rewrite"): "boxscore.formats._coco_writing:rewrite_results",
    ("voc", "rewrite"): "boxscore.formats.voc:rewrite",
    ("dota", "rewrite"): "boxscore.extensions.oriented.dota:rewrite",
    ("cvat", "rewrite"): "boxscore.extensions.formats._xml_correcting:rewrite_cvat",
    ("yolo", "rewrite"): "boxscore.extensions.formats._yolo_rewriting:rewrite",
    ("darknet", "rewrite"): "boxscore.extensions.formats._yolo_rewriting:rewrite",
    ("voc", "files_of_results"): "boxscore.formats.voc:files_of_results",
    ("dota", "files_of_results"): "boxscore.extensions.oriented.dota:files_of_results",
    ("yolo", "files_of_results"): "boxscore.extensions.formats._yolo_rewriting:files_of_results",
    ("darknet", "files_of_results"): "boxscore.extensions.formats._yolo_rewriting:files_of_results",
    ("yolo", "read_elsewhere"): "boxscore.formats._yolo_folders:read_elsewhere",
    ("darknet", "read_elsewhere"): "boxscore.formats._yolo_folders:read_elsewhere",
    ("parquet", "joins"): "boxscore.formats.parquet:joins",
    ("voc", "joins"): "boxscore.formats.voc:joins",
    ("yolo", "joins"): "boxscore.formats._yolo_folders:joins",
    ("darknet", "joins"): "boxscore.formats._yolo_folders:joins",
    ("coco", "ground_truth_of_share"): "boxscore.extensions.large._coco_shares:ground_truth_of_share",
    ("voc", "ground_truth_of_share"): "boxscore.extensions.large._voc_shares:ground_truth_of_share",
    ("yolo", "ground_truth_of_share"): "boxscore.extensions.large._yolo_shares:ground_truth_of_share",
    ("darknet", "ground_truth_of_share"): "boxscore.extensions.large._yolo_shares:ground_truth_of_share",
    ("coco", "detections_of_share"): "boxscore.extensions.large._coco_shares:detections_of_share",
    ("voc", "detections_of_share"): "boxscore.extensions.large._voc_shares:detections_of_share",
    ("yolo", "detections_of_share"): "boxscore.extensions.large._yolo_shares:detections_of_share",
    ("darknet", "detections_of_share"): "boxscore.extensions.large._yolo_shares:detections_of_darknet",
    ("jsonl", "detections_of_share"): "boxscore.extensions.large._json_lines_shares:detections_of_share",
    ("coco", "options_of_detections"): "boxscore.formats.coco:OPTIONS_OF_DETECTIONS",
    ("answers", "options_of_detections"): "boxscore.extensions.scoreless.answers:OPTIONS_OF_DETECTIONS",
}
"""Optional capabilities of formats: functions by format and name.

- ``begin(path, options, other_work)`` starts to read detections in other processes, before the ground truth
  is read. ``other_work`` is the work of this process in the meantime, as a fraction of all work. The function
  returns a context; call its ``detections(ground_truth)`` to finish.
- ``correct(path, corrections, image_set)`` returns the ground-truth files that corrections change, otherwise
  unchanged; None if this is not supported.
- ``rewrite(path, survivors, output)`` copies the surviving rows of results, unchanged unless they have a new
  score or box; without it, ``save`` writes them. ``files_of_results(path)`` lists the files of results in
  reading order.
- ``read_elsewhere(path)`` lists files and folders that a data set refers to. ``joins(folder, file)`` says
  whether a new file in a folder would be read; without it, every file with one of ``folder_endings`` is.
- ``ground_truth_of_share(path, options, share)`` and ``detections_of_share(path, options, ground_truth,
  share)`` read a subset of the images.
- ``options_of_detections`` are names of options, as in ``takes``, that only apply to detections.
"""

_GENERAL = ("jsonl", "csv", "coco")
"""Formats that accept any file of their kind."""
_KEYS_OF_TOOLS = (b'"data_units"', b'"jsonResponse"', b'"_input_hash"', b'"bottomX"')
"""Text in files of annotation tools that boxscore does not read; an extension looks more closely."""


_WITHIN = "boxscore.extensions.stores.unpacking:opened_within"
"""Opens data in stores, compressed files and archives; returns None for other files."""
ELSEWHERE = "boxscore.extensions.formats.elsewhere:elsewhere"
"""Returns what writes an output in another format than the input; called with the format and the output."""
_PACKED = (".gz", ".zip")
"""File name endings of compressed files and archives."""


@functools.cache
def format_named(name: str) -> Format:
    """Return the format with a name."""
    named: Format = importlib.import_module(_FORMATS[name].module).FORMAT
    return named


def capability(format_: Format, what: str) -> Any:
    """Return a capability of a format, usually a function; None if it is not supported."""
    text = _CAPABILITIES.get((format_.name, what))
    return None if text is None else loaded(text)


def options_of(format_: Format, *, of_detections: bool) -> frozenset[str]:
    """Return the names of the options that a format supports."""
    more = capability(format_, "options_of_detections") if of_detections else None
    return format_.takes | (more or frozenset())


def format_names(*, auto: bool = True) -> tuple[str, ...]:
    """Return all valid values of ``format``.

    Parameters
    ----------
    auto : bool, default True
        Whether to include ``"auto"``, as the first value.

    Returns
    -------
    tuple of str
    """
    return (*(("auto",) if auto else ()), *reversed(_FORMATS))


def detect_format(path: str | Path, *, side: Side | None = None) -> tuple[str, str]:
    """Detect the format of ground truth or detections, and return it with the reason.

    Parameters
    ----------
    path : str or Path
    side : {"ground truth", "detections"}, optional
        What to look for in subfolders; both by default.

    Returns
    -------
    format, reason : str

    Raises
    ------
    FileFormatError
        If the path does not exist, or its format is unknown.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write("[]"), file.flush()
    ...     detect_format(file.name)
    ('coco', 'a JSON file')
    """
    opened = open_at(path_of(path), side=side)
    return opened.format.name, opened.reason


def open_at(path: Path, name: str = "auto", *, side: Side | None = None) -> Opened:
    """Detect the format of a path, or of data of a ``side`` in its subfolders, and open it.

    If ``name`` is the name of a format, the data must have this format.
    """
    # Lists of paths are opened separately; archives and URLs by an extension.
    checks.one_of(name, format_names(), name="format")
    if not path.exists():
        reason = path.why_nothing if isinstance(path, VirtualPath) else "No such file or directory"
        raise FileFormatError(f"{path}: cannot be read: {reason}.")
    if isinstance(path, Several):
        return _open_several(path, name, side)
    _check_file_or_folder(path)
    if is_far(path) or path.suffix.lower() in _PACKED:
        within: Opened | None = loaded(_WITHIN)(path, name, side)
        if within is not None:
            return within
    # Try the named format first, because a file may be valid in two formats.
    sniffer = Sniffer(path)
    named = None if name == "auto" else name
    found = detected(sniffer, first=None if sniffer.is_folder else named)
    # In a folder, use its own data, or the only data in its subfolders.
    if sniffer.is_folder:
        below = _data_of_folder(sniffer, found, side)
        if below is not None:
            return _open_below(path, below, name, side)
        found = found if named is None else detected(sniffer, first=named)
    if found is None and named is not None:
        return Opened(path, format_named(named), "", path)  # the format raises an error on reading
    found = found or (_labels_below(sniffer) if side == "detections" else None)
    if found is None:
        raise ask("unknown file", sniffer, side)
    return opened_as(path, name, *found)


def opened_as(path: Path, name: str, recognized: str, reason: str) -> Opened:
    """Open a path in the detected format; raise if ``name`` is another format."""
    if name not in ("auto", recognized):
        raise FileFormatError(f"{path}", f"be in the {name} format", got=f"{reason} ({recognized})")
    return Opened(path, format_named(recognized), reason, path)


def _open_several(several: Several, name: str, side: Side | None) -> Opened:
    """Open several paths: Parquet files as one table, others to be read one by one."""
    opened = [open_at(file, side=side) for file in several.files]
    first: dict[str, Path] = {}
    for each in opened:
        first.setdefault(each.format.name, each.path)
    if len(first) > 1:
        got = ", ".join(f"{file} in {one}" for one, file in first.items())
        raise FileFormatError(str(several), "be of one format", got=got)
    if name not in ("auto", *first):
        opened = [open_at(file, name, side=side) for file in several.files]
    reason = f"{counted(len(opened), 'file')}, the first {opened[0].reason}"
    is_table = opened[0].format.name == "parquet" and all(each.is_direct for each in opened)
    return Opened(several, opened[0].format, reason, several, files=() if is_table else tuple(opened))


def _open_below(folder: Path, below: Path, name: str, side: Side | None) -> Opened:
    """Open the only data in the subfolders of a folder."""
    note = f"{folder}: reading {below}, the only {side or 'data'} in this folder."
    return open_at(below, name, side=side)._replace(path=folder, note=note)


def _check_file_or_folder(path: Path) -> None:
    """Reject pipes and devices, because the beginning is read twice: for detection and by the format."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        got = "a pipe" if path.is_fifo() else "a device"
        cause = "save its output to a file and pass the file; .gz files are read directly"
        raise FileFormatError(str(path), "be a file or a folder", got=got, cause=cause)


def _data_of_folder(sniffer: Sniffer, found: tuple[str, str] | None, side: Side | None) -> Path | None:
    """Return the data in a subfolder, for a folder without data or with labels in subfolders only."""
    has_labels = found is not None and (found[0] != "yolo" or found[1] != LABELS or sniffer.texts)
    if has_labels:
        return None
    below: Path | None = ask("folder without data", sniffer.path, side=side, has_labels=found is not None)
    return below


def readable_in(sniffer: Sniffer) -> list[Path]:
    """Return readable paths in a folder: its only file or folder, or else folders up to three levels deep."""
    within = [sniffer.path / name for name in sniffer.names[:MOST_WITHIN]] if sniffer.is_folder else []
    readable = [entry for entry in within if format_alone(Sniffer(entry))]
    if len(readable) > 1 and not all(entry.is_dir() for entry in readable):
        return []
    level = [] if readable else within
    for _ in range(2):
        level = [inner for entry in level for inner in _folders_in(entry)][:MOST_WITHIN]
        readable = readable or [entry for entry in level if format_alone(Sniffer(entry))]
    return readable


def _labels_below(sniffer: Sniffer) -> tuple[str, str] | None:
    """Return format and reason for a folder that has label files of one kind in its subfolders only."""
    kinds = {_kind_of_labels(Sniffer(folder)) for folder in readable_in(sniffer)} - {""}
    kind = kinds.pop() if len(kinds) == 1 else None
    return None if kind is None else (kind, f"folders with label files ({kind})")


def _kind_of_labels(sniffer: Sniffer) -> str | None:
    """Return ``"yolo"`` or ``"text"`` for a folder of label files, "" if all are empty, None otherwise."""
    found = detected(sniffer)
    if found is None or not sniffer.is_folder or sniffer.first_with(".txt") is None:
        return None
    if found == ("yolo", LABELS):
        return "yolo" if sniffer.texts else ""
    return found[0] if found[0] == "text" else None


def _folders_in(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    return [folder / name for name in Sniffer(folder).names[:MOST_WITHIN] if (folder / name).is_dir()]


def format_alone(sniffer: Sniffer) -> str:
    """Return the format of a path; empty if no format reads it alone, such as one file of a folder."""
    try:
        found = detected(sniffer)
    except FileFormatError:
        return ""
    return "" if found is None else found[0]


def detected(sniffer: Sniffer, *, first: str | None = None) -> tuple[str, str] | None:
    """Return format and reason for a path; try one format ``first``, then the others in order."""
    with errors_named(sniffer.path):
        for name in dict.fromkeys([*([] if first is None else [first]), *_FORMATS]):
            reason = format_named(name).detect(sniffer) if _FORMATS[name].may_be(sniffer) else None
            if reason is not None:
                if name in _GENERAL and name != first and any(key in sniffer.head for key in _KEYS_OF_TOOLS):
                    ask("file of a tool", sniffer)
                return name, reason
    return None


def is_parquet(path: Path, side: Side = "detections") -> bool:
    """Whether a path is a Parquet file or a folder of Parquet files."""
    return open_at(path, side=side).format.name == "parquet"
