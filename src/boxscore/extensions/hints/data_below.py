"""Find data in folders below the given one: ``runs``, ``runs/detect``, ``runs/detect/val``.

Conventions
-----------
- The search looks for file names that tools write for ground truth or for detections. A single match is read;
  several are listed with the newest first, and the user chooses. No other file is considered.
- ``labels`` directly in the given folder can be read as YOLO: it only counts if there are other sources.
- Only a few folders are searched, and links to folders are not followed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from boxscore.errors import FileFormatError
from boxscore.formats._format import Side
from boxscore.formats._sniffer import Sniffer

DEEPEST, MOST_FOLDERS, MOST_SAID = 3, 200, 5

_TRUTH = re.compile(r"data\.ya?ml|instances.*\.json|_annotations\.coco\.json", re.IGNORECASE)
_DETECTIONS = re.compile(
    r"(?:.+_)?predictions\.json|.+\.bbox\.json|coco_instances_results\.json", re.IGNORECASE
)
"""File names of data sets, and of ultralytics and YOLOv5, MMDetection, and Detectron2."""

SEARCHED_FOR = {
    "ground truth": "data.yaml, instances*.json, _annotations.coco.json",
    "detections": "predictions.json, labels with confidences, *.bbox.json, coco_instances_results.json",
}
"""File names for messages, by side."""


def data_below(folder: Path, *, side: Side | None = None, has_labels: bool = False) -> Path | None:
    """Return the only likely data below a folder; None without any, or if its labels are annotations.

    With a ``side``, search only for ground truth or only for detections.

    Raises
    ------
    FileFormatError
        When there are several.
    """
    sources = sorted(_sources(folder, side), key=lambda path: (-path.stat().st_mtime, str(path)))
    if has_labels and side != "detections" and not any(path.name == "labels" for path in sources):
        return None
    beside = {path.parent for path in sources if path.name == "labels"}
    # One run of ultralytics writes both: read the labels, as without a search.
    sources = [path for path in sources if path.name == "labels" or path.parent not in beside]
    if len(sources) > 1:
        more = f" and {len(sources) - MOST_SAID} more" if len(sources) > MOST_SAID else ""
        raise FileFormatError(
            str(folder),
            f"contain exactly one file or folder with {side or 'data'}",
            got=f"several, the newest first: {', '.join(map(str, sources[:MOST_SAID]))}{more}",
            cause="pass one of them",
        )
    return sources[0] if sources and sources[0] != folder / "labels" else None


def _sources(folder: Path, side: Side | None) -> Iterator[Path]:
    """Yield likely data in a folder and in a few below it."""
    patterns = {"ground truth": [_TRUTH], "detections": [_DETECTIONS], None: [_TRUTH, _DETECTIONS]}[side]
    level, left = [folder], MOST_FOLDERS
    for _ in range(DEEPEST + 1):
        level, within = level[:left], []
        left -= len(level)
        for folder_there in level:
            for entry in (folder_there / name for name in Sniffer(folder_there).names):
                if entry.is_dir():
                    if side != "ground truth" and entry.name == "labels" and _have_confidences(entry):
                        yield entry
                    elif not entry.is_symlink():
                        within.append(entry)
                elif any(pattern.fullmatch(entry.name) for pattern in patterns) and entry.is_file():
                    yield entry
        level = within


def _have_confidences(folder: Path) -> bool:
    """Return whether the first labels of a folder end with a fraction; those of boxes have six numbers."""
    lines = (text.first_line.split() for text in itertools.islice(Sniffer(folder).texts, 3))
    return any(
        len(line) >= 6
        and len(line) % 2 == 0
        and re.fullmatch(r"(?:0?\.\d+|1\.0*|\d(?:\.\d+)?e-\d+)" if len(line) > 6 else r"[\d.e+-]+", line[-1])
        is not None
        for line in lines
    )
