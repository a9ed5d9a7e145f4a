"""Read Cityscapes folders: pictures of instances, and text files that list the masks of predictions.

Conventions
-----------
- ``CITY_SEQ_FRAME_gtFine_instanceIds.png`` has 16 bits. The value of an object is 1000 times its label plus a
  number; smaller values are labels. A label with instances then marks a crowd. Labels that are not evaluated
  become one object per image of class ``void``, label 0. Other values are ignored.
- ``CITY_SEQ_FRAME*.txt`` has lines ``path class score``, with paths relative to the file; all nonzero pixels
  of the picture belong to the prediction. The last line with a path wins. Empty masks, and classes without
  instances, are dropped.
- Files are in the folder, or in one folder per city.
- Masks are kept as run lengths, column by column; only one picture is in memory at a time.

References
----------
cityscapesScripts, ``evalInstanceLevelSemanticLabeling.py`` and ``labels.py``
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.memory import paused_collector
from boxscore._utils.text import short_list
from boxscore.errors import FileFormatError
from boxscore.extensions.masks._png import inside, read_labels, require_pillow
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer, listed

CLASSES = {
    24: "person",
    25: "rider",
    26: "car",
    27: "truck",
    28: "bus",
    31: "train",
    32: "motorcycle",
    33: "bicycle",
    29: "caravan",
    30: "trailer",
    0: "void",
}
"""Labels with instances, evaluated ones first; and void."""

VOID = (0, 1, 2, 3, 4, 5, 6, 9, 10, 14, 15, 16, 18, 29, 30)
"""Labels that are not evaluated if they have no object number."""

ENDING = "_instanceids.png"
OBJECTS_FROM = 1000
"""Values from here on are objects."""


class CityscapesFormat(RowFormat):
    """Cityscapes folders of instances or predictions."""

    name = "cityscapes"
    folder_endings = (".png", ".txt")
    has_boxes = False

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize pictures of instances, or lines of a path, a class and a score, also one level down."""
        if not sniffer.is_folder:
            return None
        folders = [sniffer, *(Sniffer(path) for path in _cities(sniffer))]
        is_one = any(_has_instances(folder) or _has_predictions(folder) for folder in folders)
        return "Cityscapes' pictures of instances" if is_one else None

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every picture."""
        require_pillow()
        if not path.is_dir():
            raise FileFormatError("Cityscapes' files", "be a folder", got=f"one file, {path}")
        return _predictions(path) if of_results else _instances(path)


def _cities(sniffer: Sniffer) -> list[Path]:
    return [sniffer.path / name for name in sniffer.names if (sniffer.path / name).is_dir()]


def _has_instances(sniffer: Sniffer) -> bool:
    return sniffer.first_with(ENDING) is not None


def _has_predictions(sniffer: Sniffer) -> bool:
    line = next((text.first_line for text in sniffer.texts if text.first_line), "")
    path, *numbers = line.split() or [""]
    return path.lower().endswith(".png") and len(numbers_of(numbers) or ()) == 2


def _files(folder: Path, ending: str) -> list[Path]:
    """Return the files with an ending in a folder and its subfolders, by name."""
    found: list[Path] = []
    with listed(folder) as entries:
        inner = sorted(Path(entry.path) for entry in entries if entry.is_dir())
    for each in (folder, *inner):
        with listed(each) as entries:
            found += sorted(Path(entry.path) for entry in entries if entry.name.lower().endswith(ending))
    return found


def _image_of(path: Path) -> str:
    """Return the city, sequence and frame at the start of a file name."""
    parts = path.stem.split("_")
    if len(parts) < 3:
        rule = "be called CITY_SEQUENCE_FRAME and something else"
        raise FileFormatError("a file of Cityscapes", rule, got=path.name, place=str(path.parent))
    return "_".join(parts[:3])


def _images(files: list[Path], folder: Path, what: str) -> list[str]:
    """Return the image of each file; raise if an image has several."""
    if not files:
        raise FileFormatError(str(folder), f"hold {what}", got="none")
    images = [_image_of(file) for file in files]
    repeated = [name for name in dict.fromkeys(images) if images.count(name) > 1]
    if repeated:
        got = f"several for {short_list(repeated)}"
        raise FileFormatError("an image", f"have one file of {what}", got=got, place=str(folder))
    return images


def _instances(folder: Path) -> Rows:
    # Each picture has the instances of one image as pixel values.
    files = _files(folder, ENDING)
    images = _images(files, folder, "pictures that end in _instanceIds.png")
    image: list[int] = []
    values: list[int] = []
    masks: list[Any] = []
    sizes = np.empty((len(files), 2))
    for number, file in enumerate(files):
        # Decode each picture once, and keep only the runs of its instances.
        picture = read_labels(file)
        sizes[number] = picture.shape[::-1]
        codes = _segments(picture)
        image += [number] * len(codes)
        values += codes
        masks += codes.values()
    # Values from 1000 on are class times 1000 plus a number; smaller ones are groups of a class.
    value = np.array(values, dtype=np.int64)
    label = np.where(value >= OBJECTS_FROM, value // OBJECTS_FROM, value)
    # The area of a mask is the sum of every second count.
    numbers = list(CLASSES)
    return Rows(
        source=str(folder),
        images=images,
        image=np.array(image, dtype=np.int64),
        labels=numbers,
        label=np.array([numbers.index(one) for one in label.tolist()], dtype=np.int64),
        label_names=list(CLASSES.values()),
        boxes=None,
        box_format="xyxy",
        place=lambda row: f"value {values[row]} of {files[image[row]]}",
        sizes=sizes,
        given={
            "crowd": (value < OBJECTS_FROM) & (value > 0),
            "area": np.array([mask["counts"][1::2].sum() for mask in masks], dtype=np.float64),
            "masks": masks,
        },
    )


def _segments(picture: NDArray[np.integer[Any]]) -> dict[int, dict[str, Any]]:
    """Return the masks of objects and groups by value, with void as 0."""
    flat = picture.T.ravel().astype(np.int64)
    flat[np.isin(flat, VOID)] = 0
    starts = np.append(0, np.flatnonzero(np.diff(flat)) + 1)
    lengths, value = np.diff(np.append(starts, len(flat))), flat[starts]
    codes = {}
    for one in np.unique(value).tolist():
        if (one // OBJECTS_FROM if one >= OBJECTS_FROM else one) in CLASSES:
            runs = np.flatnonzero(value == one)
            ends = np.stack([starts[runs], starts[runs] + lengths[runs]], axis=1).ravel()
            codes[one] = _code(ends, picture.shape)
    return codes


def _code(ends: NDArray[np.int64], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the RLE of a mask from the bounds of its runs."""
    return {"size": list(shape), "counts": np.diff(ends, prepend=0, append=shape[0] * shape[1])}


def _mask(path: Path) -> dict[str, Any]:
    """Read the mask in a picture."""
    picture = read_labels(path)
    flat = np.concatenate([[False], picture.T.ravel() != 0, [False]])
    return _code(np.flatnonzero(flat[1:] != flat[:-1]), picture.shape)


def _predictions(folder: Path) -> Rows:
    # Each line has a mask, a class and a score.
    files = _files(folder, ".txt")
    images = _images(files, folder, "text files of predictions")
    lines = TextLines(files, "a text file of predictions")
    fields = [_fields(line, lines) for line in lines]
    image = lines.image
    # A repeated mask replaces the previous one, as in the benchmark's script.
    last: dict[Path, int] = {}
    for row, (name, _, _) in enumerate(fields):
        file = files[int(image[row])]
        name = str(file.parent.relative_to(folder) / name)
        last[inside(folder, name, place=lines.place(row))] = row
    # Drop empty masks and classes that are not evaluated, as in the script.
    rows, masks = [], []
    for path, row in sorted(last.items(), key=lambda item: item[1]):
        if fields[row][1] in CLASSES and fields[row][1] != 0:
            mask = _mask(path)
            if len(mask["counts"]) > 1:
                rows.append(row)
                masks.append(mask)
    numbers = list(CLASSES)
    return Rows(
        source=str(folder),
        images=images,
        image=image[rows],
        labels=numbers,
        label=np.array([numbers.index(fields[row][1]) for row in rows], dtype=np.int64),
        label_names=list(CLASSES.values()),
        boxes=None,
        box_format="xyxy",
        place=lambda row: lines.place(rows[row]),
        scores=np.array([fields[row][2] for row in rows], dtype=np.float64),
        given={"masks": masks},
    )


def _fields(line: str, lines: TextLines) -> tuple[str, int, float]:
    """Return the path, the class and the score of a line."""
    name, *words = line.split()
    numbers = numbers_of(words)
    if numbers is None or len(numbers) != 2 or not math.isfinite(numbers[1]) or numbers[0] % 1 != 0:
        rule = "be the path of a picture, a label and a score"
        raise FileFormatError("a line", rule, got=repr(line)[:80], place=lines.place())
    return name, int(numbers[0]), numbers[1]


FORMAT = CityscapesFormat()
