"""Read and write Open Images CSV files: boxes as fractions of the image size, masks as packed RLEs.

Conventions
-----------
- Files are read like any CSV, and written with the columns ``ImageID, LabelName, XMin, XMax, YMin, YMax``,
  then ``IsGroupOf`` (ground truth) or ``Score`` (detections), and for masks
  ``ImageWidth, ImageHeight, Mask``.
- Boxes in pixels are converted to fractions if all image sizes are known.
- Sizes of images without masks, and classes and images without objects, cannot be stored. Image labels can
  name such classes and images.

References
----------
Open Images: "Data Formats" of its download page; the challenge's evaluation pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from boxscore._utils import checks
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS
from boxscore.extensions.masks.open_images_masks import encoded_masks
from boxscore.formats._label_files import refuse_shared_names
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.csv_tables import CsvFormat, form_of, write_csv

DECIMALS = 12
"""Decimals of converted fractions; the published files have six to nine and round-trip."""
_HELD = frozenset({"fractions", "masks", "columns", "sizes", "classes", "ids"})


class OpenImagesFormat(CsvFormat):
    """CSV files of Open Images and its challenges."""

    name = "openimages"
    endings: ClassVar[tuple[str, ...]] = ()
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": _HELD | {"crowd", "group"},
        "detections": _HELD,
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the columns of the format, in order."""
        if sniffer.is_folder or sniffer.is_json or sniffer.is_xml or b"\0" in sniffer.head:
            return None
        form = form_of(sniffer.text, str(sniffer.path))
        if form is None or form.head == 0 or "LabelName" not in form.names:
            return None
        return "a table of Open Images" if form.parts.open_images or form.parts.mask is not None else None

    def check_written(self, table: BoxTable) -> None:
        """Reject pixels without image sizes, crowds other than groups, and repeated class names."""
        # Fractions need the image sizes.
        _refuse_shared_names(table)
        unsized = np.isnan(table.images.sizes[table.image]).any(axis=1)
        if table.units == "pixels" and unsized.any():
            row = int(np.argmax(unsized))
            raise InputError(
                "an image",
                "have a known size to become fractions of it",
                got=repr(table.images.ids.tolist()[table.image[row]]),
                place=table.source,
                cause=checks.GIVE_SIZES,
            )
        # The format only supports groups.
        if isinstance(table, GroundTruth) and (table.crowd & ~table.group).any():
            row = int(np.argmax(table.crowd & ~table.group))
            got, cause = "another one", "--crowd none drops crowds"
            raise InputError(
                "a crowd", "be a group", got=got, place=f"row {row} of {table.source}", cause=cause
            )

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write one row per box or mask."""
        # Convert pixels to fractions, with the format's number of decimals.
        self.check_written(table)
        boxes = table.boxes
        if table.units == "pixels":
            boxes = (boxes / np.tile(table.images.sizes[table.image], 2)).round(DECIMALS)
        # Write a confidence of 1 as an integer, like the benchmark's files.
        user_columns = {str(name): values.tolist() for name, values in table.columns.items()}
        columns: dict[str, list[Any]] = {
            "ImageID": table.images.ids[table.image].tolist(),
            "LabelName": _labels(table)[table.category].tolist(),
        }
        if "Confidence" in user_columns:
            columns["Confidence"] = [
                int(value) if value == 1 else value for value in user_columns.pop("Confidence")
            ]
        if isinstance(table, Detections) and table.scored:
            columns["Score"] = table.scores.tolist()
        # The format has both x before both y.
        columns |= dict(zip(("XMin", "XMax", "YMin", "YMax"), boxes[:, [0, 2, 1, 3]].T.tolist(), strict=True))
        if isinstance(table, GroundTruth):
            columns["IsGroupOf"] = table.group.tolist()
        write_csv(path, columns | _mask_columns(table) | user_columns)


FORMAT = OpenImagesFormat()


def _labels(table: BoxTable) -> Any:
    """Return the class labels in files: ids if they are texts like /m/01g317, otherwise names."""
    ids = table.categories.ids
    return ids if ids.dtype == object else table.categories.names


def _refuse_shared_names(table: BoxTable) -> None:
    if table.categories.ids.dtype != object:
        refuse_shared_names(table)


def _mask_columns(table: BoxTable) -> dict[str, list[Any]]:
    if table.masks is None or table.masks.missing.all():
        return {}
    return dict(zip(("ImageWidth", "ImageHeight", "Mask"), encoded_masks(table.masks), strict=True))


def save_image_labels(ground_truth: GroundTruth, path: Path) -> int:
    """Write image labels as ``ImageID,LabelName,Confidence``; return their number.

    Raises
    ------
    InputError
        When the list is empty, or contains ``not_exhaustive`` labels.
    """
    # Reject labels that the file cannot store.
    labels = ground_truth.image_labels
    if labels is None or not len(labels):
        cause = "give them: --image-labels FILE.csv (in Python image_labels=)"
        raise InputError("labels of images", "be there to be written", got="none", cause=cause)
    if len(labels.of("not_exhaustive")):
        rule = "say that a class is there or not, to be written for Open Images"
        raise InputError("labels of images", rule, got="not exhaustive", place=ground_truth.source)
    _refuse_shared_names(ground_truth)
    positive = IMAGE_LABEL_KINDS.index("positive")
    # 1 means present, 0 absent.
    columns = {
        "ImageID": ground_truth.images.ids[labels.image].tolist(),
        "LabelName": _labels(ground_truth)[labels.category].tolist(),
        "Confidence": (labels.kind == positive).astype(int).tolist(),
    }
    write_csv(path, columns)
    return len(labels)
