"""Read ``bounding_boxes.labels`` and ``info.labels`` of Edge Impulse.

Conventions
-----------
- ``x, y`` is the top left corner, in pixels. Image sizes are unknown.
- ``bounding_boxes.labels`` may lack images without a box.
- ``info.labels`` lists all files with their category, ``training`` or ``testing``: an image set, of which
  ``testing`` is read by default.

References
----------
https://docs.edgeimpulse.com/tools/specifications/data-annotation
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, chosen_split, decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    label: str
    x: float
    y: float
    width: float
    height: float


class _Label(msgspec.Struct, gc=False):
    label: str = ""


class _Entry(msgspec.Struct, gc=False):
    path: str
    category: str = ""
    label: _Label | None = None
    boxes: list[_Box] | None = msgspec.field(default=None, name="boundingBoxes")


class _File(msgspec.Struct, gc=False):
    boxes: dict[str, list[_Box]] | None = msgspec.field(default=None, name="boundingBoxes")
    files: list[_Entry] | None = None


class EdgeImpulseFormat(RowFormat):
    """Edge Impulse's label files."""

    name = "edgeimpulse"
    boxes = "xywh"
    takes = frozenset({"image_set", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the type of the file, or its list of files."""
        if not sniffer.text.lstrip().startswith("{"):
            return None
        if '"bounding-box-labels"' in sniffer.text:
            return "Edge Impulse's boxes"
        known = sniffer.has_keys("files", "path", "category", "label")
        return "Edge Impulse's list of files" if known else None

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether the file lists all images: ``info.labels`` does."""
        path = Path(ground_truth.source)
        return path.is_file() and Sniffer(path).has_keys("files")

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the boxes of every image."""
        gathered = Gathered(path, options)
        whole = ("a label file of Edge Impulse", "an object with boundingBoxes or files")
        content = decoded(path, _File, record="image", whole=whole)
        if content.boxes is None and content.files is None:
            raise FileFormatError(whole[0], f"be {whole[1]}", got="neither", place=str(path))
        files = [_Entry(name, boxes=boxes) for name, boxes in (content.boxes or {}).items()]
        files += content.files or []
        # Only info.labels tells image sets.
        chosen = chosen_split(
            options.image_set, [file.category for file in files if file.category], path, usual=("testing",)
        )
        for file in files:
            if chosen not in (None, file.category):
                continue
            image = gathered.image(file.path)
            if not file.boxes and file.label is not None:
                gathered.label_image(file.label.label)
            for number, box in enumerate(file.boxes or ()):
                origin = Origin(f"image {file.path!r}, box", number, path)
                numbers = (box.x, box.y, box.width, box.height)
                gathered.add_box(image, box.label, numbers, "xywh", origin)
        return gathered.rows(of_results=of_results)


FORMAT = EdgeImpulseFormat()
