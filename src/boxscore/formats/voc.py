"""PASCAL VOC ground truth: folders of XML annotations with image sets.

Conventions
-----------
- ``VOC2007/Annotations/<image>.xml``, ``VOC2007/ImageSets/Main/<set>.txt``; an image's id is the file's stem.
  A folder of XML files alone works as well.
- Boxes are ``xmin, ymin, xmax, ymax``, 1-based and inclusive, and are kept as they stand; the protocol's
  ``pixel_offset`` says what they mean. Decimals occur.
- Missing ``difficult``, ``truncated`` and ``occluded`` mean 0.
- Classes are the names that occur in the chosen images: sorted, with ids 1, 2, ... in that order.

References
----------
The PASCAL VOC development kit: ``VOCreadrecxml.m``, and its documentation.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from boxscore._utils import checks
from boxscore._utils.collector import paused_collector
from boxscore._utils.files import is_file
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._voc_files import is_results, read_text
from boxscore.formats._xml import XmlFile, read_xml

__all__ = ["load_ground_truth"]

SIDES = ("xmin", "ymin", "xmax", "ymax")


@paused_collector()
def load_ground_truth(path: Path, *, image_set: str | Path | None = None) -> GroundTruth:
    """Read a VOC folder.

    Parameters
    ----------
    path : Path
        ``VOC2007``, or a folder of XML files.
    image_set : str or Path, optional
        The name of a file in ``ImageSets/Main`` (``"test"``) or the path of one. When not given: the only
        set there is, or every XML file where there are no sets.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        When a file is missing or breaks a rule; names file, line and value.
    """
    from tqdm import tqdm

    annotations = path / "Annotations" if (path / "Annotations").is_dir() else path
    if not annotations.is_dir():
        raise FileFormatError(
            "VOC ground truth", "be a folder with Annotations", got=f"{path}, which is not a folder"
        )
    names = _image_names(path, annotations, image_set)
    image_ids: list[str] = []
    classes: list[str] = []
    boxes: list[list[float]] = []
    flags: list[tuple[bool, bool, bool]] = []
    places: list[tuple[Path, int]] = []
    file_names: list[str | None] = []
    sizes: list[tuple[float, float]] = []
    for name in tqdm(names, desc=f"reading {path.name}", unit="file", delay=1, disable=None, leave=False):
        file = annotations / f"{name}.xml"
        if not is_file(file):
            raise FileFormatError(
                "every image of the set",
                "have its XML",
                got=f"no {file.name}",
                place=str(annotations),
                cause="is this the right image set?",
            )
        read = read_xml(file)
        root = read.root
        if root.tag != "annotation":
            raise FileFormatError(
                "a VOC file",
                "be an <annotation>",
                got=f"<{root.tag}>",
                place=str(file),
                cause="was it written by another program?",
            )
        file_names.append(_text_of(root, "filename"))
        sizes.append(_image_size(read))
        for number, element in enumerate(root.findall("object")):
            image_ids.append(name)
            classes.append(_class_name(element, read))
            boxes.append(_box(element, read))
            flags.append(
                (
                    _flag(element, "difficult", read),
                    _flag(element, "truncated", read),
                    _flag(element, "occluded", read),
                )
            )
            places.append((file, number))
    marks = np.array(flags, dtype=bool).reshape(-1, 3)
    numbers = {label: index for index, label in enumerate(sorted(set(classes)), start=1)}
    return GroundTruth.from_arrays(
        image_ids,
        np.array([numbers[label] for label in classes], dtype=np.int64),
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        box_format="xyxy",
        difficult=marks[:, 0],
        images=Images.build(names, file_names=file_names, sizes=np.array(sizes).reshape(-1, 2)),
        categories={index: label for label, index in numbers.items()},
        columns={"truncated": marks[:, 1], "occluded": marks[:, 2]},
        source=str(path),
        place=lambda row: _place_of_object(*places[row]),
    )


def _place_of_object(path: Path, number: int) -> str:
    file = read_xml(path)
    return file.place(file.root.findall("object")[number])


def _image_names(path: Path, annotations: Path, image_set: str | Path | None) -> list[str]:
    """Images of the set, in file order, each once."""
    folder = path / "ImageSets" / "Main"
    if image_set is None:
        sets = sorted(folder.glob("*.txt"))
        if not sets:
            names = sorted(file.stem for file in annotations.glob("*.xml"))
            if not names:
                raise FileFormatError(
                    "VOC ground truth",
                    "hold XML files",
                    got=f"none in {annotations}",
                    cause="is this a folder of results?" if is_results(path) else "",
                )
            return names
        if len(sets) > 1:
            choices = ", ".join(file.stem for file in sets[:12]) + (", ..." if len(sets) > 12 else "")
            raise InputError(
                "image_set",
                "be given where there are several",
                got=f"none, in {folder}",
                cause=f"choose from {choices}",
            )
        file = sets[0]
    else:
        file = Path(image_set)
        if file.suffix != ".txt":
            file = folder / f"{checks.plain_name(str(image_set), name='image_set')}.txt"
    if not is_file(file):
        known = sorted(entry.stem for entry in folder.glob("*.txt"))
        cause = checks.did_you_mean(file.stem, known) if file.parent == folder else ""
        raise FileFormatError(
            "image_set", "be the name of a set or a file", got=f"{file}, which is not there", cause=cause
        )
    names = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) > 2:
            raise FileFormatError(
                "a line of an image set",
                "be an image, or an image and 1, 0 or -1",
                got=repr(line),
                place=f"{file}, line {number}",
            )
        if len(fields) == 2 and fields[1] == "-1":
            continue  # a class's set lists the images without it, too
        names.append(checks.plain_name(fields[0], name="an image id", place=f"{file}, line {number}"))
    if not names:
        raise FileFormatError("an image set", "name at least one image", got="an empty file", place=str(file))
    return list(dict.fromkeys(names))


def _text_of(element: Element, tag: str) -> str | None:
    """Return the text of the first child with a tag, None without one or when it is blank."""
    return (element.findtext(tag) or "").strip() or None


def _image_size(file: XmlFile) -> tuple[float, float]:
    size = file.root.find("size")
    if size is None:
        return (np.nan, np.nan)
    return (_number(size, "width", file, default=np.nan), _number(size, "height", file, default=np.nan))


def _class_name(element: Element, file: XmlFile) -> str:
    name = _text_of(element, "name")
    if name is None:
        raise FileFormatError("an object", "have a name", got="none", place=file.place(element))
    return name


def _box(element: Element, file: XmlFile) -> list[float]:
    box = element.find("bndbox")
    if box is None:
        raise FileFormatError("an object", "have a bndbox", got="none", place=file.place(element))
    return [_number(box, side, file) for side in SIDES]


def _number(parent: Element, tag: str, file: XmlFile, *, default: float | None = None) -> float:
    text = _text_of(parent, tag)
    if text is None:
        if default is not None:
            return default
        raise FileFormatError(f"a {parent.tag}", f"have {tag}", got="none", place=file.place(parent))
    try:
        return float(text)
    except ValueError:
        raise FileFormatError(tag, "be a number", got=repr(text), place=file.place(parent)) from None


def _flag(element: Element, tag: str, file: XmlFile) -> bool:
    text = _text_of(element, tag)
    if text is None or text == "0":
        return False
    if text == "1":
        return True
    raise FileFormatError(tag, "be 0 or 1", got=repr(text), place=file.place(element))
