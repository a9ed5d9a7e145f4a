"""Read HRSC2016: folders of XML files with rotated ships.

Conventions
-----------
- ``Annotations/<image>.xml``, or a folder of the XML files; ``ImageSets/<set>.txt`` lists the images of a
  set.
- Boxes are ``mbox_cx, mbox_cy, mbox_w, mbox_h`` and ``mbox_ang``, radians from x towards y.
- Every object has the class ``ship``, the default of mmrotate; its class number is in the column
  ``class_id``.

References
----------
Liu et al., "A high resolution optical satellite image dataset for ship recognition", ICPRAM 2017.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, NoReturn
from xml.etree.ElementTree import Element

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import is_file, read_text
from boxscore._utils.memory import paused_collector
from boxscore.data.hints import ask
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._rows import Rows, ground_truth_of
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._voc_xml import XmlFile, read_xml

SIDES = ("mbox_cx", "mbox_cy", "mbox_w", "mbox_h", "mbox_ang")
CLASS = "ship"


class HrscFormat(Format):
    """HRSC2016 annotations."""

    name = "hrsc"
    has_boxes = False
    folder_endings = (".xml", ".txt")
    boxes = "xyxy"
    takes: ClassVar[frozenset[str]] = frozenset({"image_set"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize the root element of the first XML file."""
        if not sniffer.is_folder:
            if sniffer.suffix == ".xml" and "<HRSC_Image" in sniffer.text:
                raise FileFormatError(
                    "HRSC ground truth", "be the folder of the XML files", got=f"one file, {sniffer.path}"
                )
            return None
        inner = sniffer.inside("Annotations") or sniffer
        file = inner.first_with(".xml")
        if file is None or not file.is_file() or "<HRSC_Image" not in Sniffer(file).text:
            return None
        return "a folder of HRSC's XML files"

    @paused_collector()
    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read a folder of annotations."""
        return ground_truth_of(_rows(path, options.image_set), options)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Raise: HRSC files lack scores."""
        raise InputError(
            "detections",
            "be in a format that has scores",
            got=f"HRSC annotations, {path}",
            cause="DOTA results (Task1_ship.txt) and COCO results with five numbers are read",
        )


FORMAT = HrscFormat()


def _rows(path: Path, image_set: str | Path | None) -> Rows:
    # Read an XML file per image.
    folder = path / "Annotations" if (path / "Annotations").is_dir() else path
    names = _names(path, folder, image_set)
    image: list[int] = []
    boxes: list[list[float]] = []
    flags: list[list[bool]] = []
    ids: list[int] = []
    sizes: list[tuple[float, float]] = []
    places: list[str] = []
    for position, name in enumerate(names):
        read = read_xml(folder / f"{name}.xml")
        if read.root.tag != "HRSC_Image":
            raise FileFormatError(
                "an HRSC file", "be an <HRSC_Image>", got=f"<{read.root.tag}>", place=str(read.path)
            )
        # Read the image size if it is there.
        sizes.append(
            (
                _number(read, read.root, "Img_SizeWidth", np.nan),
                _number(read, read.root, "Img_SizeHeight", np.nan),
            )
        )
        # Read rotated boxes with angles in radians.
        for number, element in enumerate(read.root.iter("HRSC_Object"), start=1):
            image.append(position)
            boxes.append([_number(read, element, side) for side in SIDES])
            flags.append([_number(read, element, flag, 0) != 0 for flag in ("difficult", "truncated")])
            ids.append(int(_number(read, element, "Class_ID", 0)))
            places.append(f"object {number} of {read.path}")
    marks = np.array(flags, dtype=bool).reshape(-1, 2)
    return Rows(
        source=str(path),
        images=names,
        image=np.array(image, dtype=np.int64),
        labels=[CLASS],
        label=np.zeros(len(image), dtype=np.int64),
        boxes=None,
        box_format="xyxy",
        place=lambda row: places[row],
        sizes=np.array(sizes, dtype=np.float64).reshape(-1, 2),
        given={"rotated": np.array(boxes, dtype=np.float64).reshape(-1, 5), "difficult": marks[:, 0]},
        columns={"truncated": marks[:, 1], "class_id": np.array(ids, dtype=np.int64)},
    )


def _names(path: Path, folder: Path, image_set: str | Path | None) -> list[str]:
    # Without a set, read every XML file.
    if image_set is None:
        ask("folders in a folder", folder, FORMAT.detect, ending=".xml")
        return sorted(file.stem for file in folder.glob("*.xml"))
    # Find the sets next to the annotations, or next to the given folder.
    listed = Path(image_set)
    sets = next((place for place in (path, path.parent) if (place / "ImageSets").is_dir()), path)
    if listed.suffix != ".txt":
        listed = sets / "ImageSets" / f"{checks.plain_name(str(image_set), name='image_set')}.txt"
    if not is_file(listed):
        raise FileFormatError(
            "image_set", "be the name of a set or a file", got=f"{listed}, which is not there"
        )
    # Drop repeated names and keep the order; each image must have its XML file.
    names = list(dict.fromkeys(line.strip() for line in read_text(listed).splitlines() if line.strip()))
    for name in names:
        if not is_file(folder / f"{checks.plain_name(name, name='an image', place=str(listed))}.xml"):
            raise FileFormatError(
                "every image of the set",
                "have its XML",
                got=f"no {name}.xml",
                place=str(folder),
                cause="is this the right image set?",
            )
    return names


def _number(read: XmlFile, element: Element, tag: str, default: float | None = None) -> float:
    text = (element.findtext(tag) or "").strip()
    if not text:
        if default is None:
            _refuse(read, element, f"have {tag}", "none")
        return default
    try:
        return checks.plain_number(text)
    except ValueError:
        _refuse(read, element, f"have a number as {tag}", repr(text))


def _refuse(read: XmlFile, element: Element, rule: str, got: str) -> NoReturn:
    raise FileFormatError(f"an {element.tag}", rule, got=got, place=read.place(element)) from None
