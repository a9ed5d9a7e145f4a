"""Read WIDER FACE: lists of faces in MATLAB files, and results as a text file per image in event folders.

Conventions
-----------
- Ground truth is a folder with ``wider_face_val.mat`` (all faces) and ``wider_easy_val.mat``,
  ``wider_medium_val.mat`` and ``wider_hard_val.mat`` (the faces that count). The columns ``easy``, ``medium``
  and ``hard`` are 1 for faces that count, otherwise 0.
- Image ids are ``EVENT/NAME``, without an ending.
- A results file has the image name in its first line, an unchecked count in the second, and then lines ``x y
  w h score``. Its folder is the event, and its name that of the image.
- The far corner is ``x + w, y + h``; the protocol adds the extra pixel to sizes.

References
----------
http://shuoyang1213.me/WIDERFACE/, ``eval_tools``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.memory import paused_collector
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._mat import read_mat
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of
from boxscore.formats._rows import RowFormat, Rows, check_sides
from boxscore.formats._sniffer import Sniffer, is_text_file, listed

ALL_FACES = "wider_face_val.mat"
SETTINGS = ("easy", "medium", "hard")


class WiderFaceFormat(RowFormat):
    """WIDER FACE lists in MATLAB files, and folders of results."""

    name = "widerface"
    folder_endings = (".txt", ".mat")
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize the lists, or event folders with results files."""
        if not sniffer.is_folder:
            return None
        if any(name.startswith("wider_") and name.endswith(".mat") for name in sniffer.names):
            return "WIDER FACE's lists"
        events = [name for name in sniffer.names if "--" in name and name.partition("--")[0].isdigit()]
        return "WIDER FACE's folders of results" if events and (sniffer.path / events[0]).is_dir() else None

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the lists, or every results file."""
        if not path.is_dir():
            what = "the folder of events" if of_results else f"the folder with {ALL_FACES}"
            raise FileFormatError("WIDER FACE", f"be given as {what}", got=f"one file, {path}")
        return _results(path, options) if of_results else _lists(path, options)


def _lists(folder: Path, options: ReadOptions) -> Rows:
    # The lists of the three settings select the faces that count.
    names = [ALL_FACES, *(f"wider_{setting}_val.mat" for setting in SETTINGS)]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        rule = f"hold {', '.join(names)}"
        cause = "they are in the benchmark's eval_tools/ground_truth"
        raise FileFormatError(str(folder), rule, got=f"no {', '.join(missing)}", cause=cause)
    every = _variables(folder / ALL_FACES, ("event_list", "file_list", "face_bbx_list"))
    counting = [_variables(folder / name, ("gt_list",))["gt_list"] for name in names[1:]]
    images: list[Id] = []
    boxes: list[FloatArray] = []
    flags: list[NDArray[np.int64]] = []
    # MATLAB counts from 1; an index beyond the list means a broken file.
    try:
        for event, (name, files) in enumerate(zip(every["event_list"], every["file_list"], strict=True)):
            for number, file in enumerate(files):
                # A face counts in each setting that lists it.
                faces = np.asarray(every["face_bbx_list"][event][number], dtype=np.float64).reshape(-1, 4)
                counts_in = np.zeros((len(faces), len(SETTINGS)), dtype=np.int64)
                for setting, lists in enumerate(counting):
                    chosen = np.asarray(lists[event][number], dtype=np.float64).ravel().astype(np.int64) - 1
                    if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < len(faces):
                        raise IndexError(f"face {int(chosen.max()) + 1} of {len(faces)} in {name}/{file}")
                    counts_in[chosen, setting] = 1
                images.append(f"{name}/{file}")
                boxes.append(faces)
                flags.append(counts_in)
    except (IndexError, TypeError, ValueError) as error:
        rule = "list the same images in all its files"
        raise FileFormatError(str(folder), rule, got=str(error)[:120]) from None
    # Concatenate all images, and convert x y w h to corners.
    counts = [len(faces) for faces in boxes]
    corners = np.concatenate([*boxes, np.empty((0, 4))])
    if options.box_format is None:
        corners[:, 2:] += corners[:, :2]
    every_flag = np.concatenate([*flags, np.empty((0, len(SETTINGS)), dtype=np.int64)])
    image = np.repeat(np.arange(len(images)), counts)
    first = np.cumsum([0, *counts])
    return Rows(
        source=str(folder),
        images=images,
        image=image,
        labels=["face"],
        label=np.zeros(len(image), dtype=np.int64),
        boxes=corners,
        box_format="xyxy",
        place=lambda row: (
            f"face {row - first[image[row]] + 1} of {images[image[row]]} in {folder / ALL_FACES}"
        ),
        file_names=[f"{identifier}.jpg" for identifier in images],
        any_sides=True,  # the benchmark has a face of width -2
        columns={setting: every_flag[:, number] for number, setting in enumerate(SETTINGS)},
    )


def _variables(path: Path, names: tuple[str, ...]) -> dict[str, Any]:
    variables = read_mat(path, names)
    for name in names:
        if not isinstance(variables.get(name), list):
            raise FileFormatError("WIDER FACE's lists", f"have {name}", got="none", place=str(path))
    return variables


def _results(folder: Path, options: ReadOptions) -> Rows:
    # Read a folder per event with a file per image, sorted by name.
    files: list[str] = []
    with listed(folder) as entries:
        events = sorted(entry.name for entry in entries if entry.is_dir())
    for event in events:
        with listed(folder / event) as entries:
            files += sorted(f"{event}/{entry.name}" for entry in entries if is_text_file(entry))
    paths = [folder / file for file in files]
    lines = TextLines(paths, "a file of results", head=_head)
    # Convert all lines to one array; corners use a copy.
    table = np.array([_face(line.split(), lines) for line in lines], dtype=np.float64).reshape(-1, 5)
    boxes = table[:, :4].copy()
    if options.box_format is None:
        check_sides(boxes[:, 2:], lines.place, cause="are these two corners? write x y w h")
        boxes[:, 2:] += boxes[:, :2]
    return Rows(
        source=str(folder),
        images=[file[: -len(".txt")] for file in files],
        image=lines.image,
        labels=["face"],
        label=np.zeros(len(boxes), dtype=np.int64),
        boxes=boxes,
        box_format="xyxy",
        place=lines.place,
        scores=table[:, 4],
    )


def _head(lines: list[str], file: str | Path) -> int:
    """Return the number of header lines: the image name and the count."""
    if len(lines) < 2 or len(lines[1].split()) != 1:
        raise FileFormatError(
            "a file of results",
            "begin with the image's name, the count of faces, and have a face a line",
            got=repr(lines[1] if len(lines) > 1 else "\n".join(lines))[:60],
            place=f"{file}, line 2",
        )
    return 2


def _face(fields: list[str], lines: TextLines) -> list[float]:
    values = numbers_of(fields) or []
    if len(values) != 5 or not all(map(math.isfinite, values)):
        raise FileFormatError(
            "a face",
            "be x y w h score",
            got=repr(" ".join(fields))[:80],
            place=lines.place(),
            cause="the score is missing" if len(values) == 4 else "",
        )
    return values


FORMAT = WiderFaceFormat()
