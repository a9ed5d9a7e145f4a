"""Read CityPersons ground truth, COCO JSON with ``vis_ratio``, a format also used for Caltech.

Conventions
-----------
- Annotations have ``bbox`` (x, y, w, h), ``height``, ``vis_ratio`` and ``ignore``, which become the columns
  ``height`` and ``visibility`` and the ``ignore`` flag. Results are in COCO's format.

References
----------
https://github.com/cvgroup-njust/CityPersons, ``evaluation``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Image(msgspec.Struct, gc=False):
    identifier: int | str = msgspec.field(name="id")
    width: float | None = None
    height: float | None = None
    im_name: str | None = None
    file_name: str | None = None


class _Category(msgspec.Struct, gc=False):
    identifier: int = msgspec.field(name="id")
    name: str


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int
    bbox: list[float]
    identifier: int | str = msgspec.field(name="id")
    height: float | None = None
    vis_ratio: float | None = None
    ignore: int = 0


class _File(msgspec.Struct, gc=False):
    images: list[_Image]
    annotations: list[_Annotation]
    categories: list[_Category]


class CityPersonsFormat(RowFormat):
    """COCO JSON of pedestrians with ``vis_ratio``."""

    name = "citypersons"
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize annotations with a visible fraction."""
        return "CityPersons' JSON" if sniffer.has_keys("vis_ratio", "bbox") else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the annotations."""
        if of_results:
            cause = "results are a list of {image_id, category_id, bbox, score}"
            raise FileFormatError("detections", "be results", got=f"ground truth, {path}", cause=cause)
        # Map the ids of images and classes to positions.
        content = decoded(path, _File, record="annotation", whole=("CityPersons' JSON", "an object"))
        images: dict[Id, int] = {}
        for image in content.images:
            if image.identifier in images:
                got = f"{image.identifier!r} twice"
                raise FileFormatError("images", "have different ids", got=got, place=str(path))
            images[image.identifier] = len(images)
        labels: dict[Id, int] = {
            category.identifier: position for position, category in enumerate(content.categories)
        }
        # Check every annotation; subsets need its visibility.
        for number, item in enumerate(content.annotations):
            place = f"annotation {number} of {path}"
            for known, identifier, what in (
                (images, item.image_id, "image_id"),
                (labels, item.category_id, "category_id"),
            ):
                if identifier not in known:
                    raise FileFormatError(
                        what, "be among those of the file", got=repr(identifier), place=place
                    )
            if len(item.bbox) != 4:
                raise FileFormatError("bbox", "be x, y, w, h", got=f"{len(item.bbox)} numbers", place=place)
            if item.vis_ratio is None:
                cause = "which subset an object belongs to depends on it"
                raise FileFormatError("an annotation", "have vis_ratio", got="none", place=place, cause=cause)
        # Create one array per column; the height of the whole person decides the subset.
        items = content.annotations
        boxes = np.array([item.bbox for item in items], dtype=np.float64).reshape(-1, 4)
        height = [item.bbox[3] if item.height is None else item.height for item in items]
        return Rows(
            source=str(path),
            images=list(images),
            image=np.array([images[item.image_id] for item in items], dtype=np.int64),
            labels=list(labels),
            label=np.array([labels[item.category_id] for item in items], dtype=np.int64),
            label_names=[category.name for category in content.categories],
            boxes=boxes,
            box_format="xywh",
            place=lambda row: f"annotation {row} of {path}",
            file_names=[image.im_name or image.file_name for image in content.images],
            sizes=np.array(
                [(image.width or np.nan, image.height or np.nan) for image in content.images],
                dtype=np.float64,
            ).reshape(-1, 2),
            given={
                "ids": [item.identifier for item in items],
                "ignore": np.array([item.ignore != 0 for item in items], dtype=bool),
            },
            columns={
                "height": np.array(height, dtype=np.float64),
                "visibility": np.array([item.vis_ratio for item in items], dtype=np.float64),
            },
        )


FORMAT = CityPersonsFormat()
