"""Detections of a share of the images in JSON lines, a block of lines at a time.

Conventions
-----------
- What all boxes of a file decide, the form of the four numbers and whether they are fractions, all boxes
  decide here too: those of other shares are looked at before they are dropped.
- Classes must be ids of the ground truth, or names that one class has; else all is read at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.memory import paused_collector
from boxscore.data.box_reading import LARGEST_FRACTION, Readings
from boxscore.data.column_names import ColumnParts, column_parts
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.extensions.formats._record_tables import RecordTable, read_records
from boxscore.extensions.large.shares import ROW, ImageShare, ReadAtOnceError
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import detections_of
from boxscore.formats._tables import boxes_of, images_of, rows_of, usual_form

BLOCK = 1 << 15
"""Rows that are held before those of other shares are dropped."""


@paused_collector()
def detections_of_share(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShare
) -> Detections:
    """Read the detections of a share of the images."""
    # Options that make one row depend on all others rule out reading a share.
    if options.classes is not None or options.image_sizes is not None:
        raise ReadAtOnceError
    # Read block by block: look at every box, keep the rows of the share.
    kept = RecordTable(path, options.columns)
    names: set[str] | None = None
    readings, largest, before = None, 0.0, 0
    for block in read_records(path, options.columns, BLOCK):
        parts = _plain_parts(block, options)
        if names is not None and {*block.names} != names:
            raise ReadAtOnceError  # a key that comes later may say what others are
        names = {*block.names}
        _refuse_other_classes(block, parts, ground_truth.categories)
        # The largest coordinate and the form of the boxes are decided by the boxes of all shares.
        images, image = images_of(block, parts)
        boxes = boxes_of(block, parts)
        with_box = ~np.isnan(boxes).all(axis=1)
        largest = max(largest, float(np.abs(boxes[with_box]).max(initial=0)))
        if parts.box_format is None and options.box_format is None:
            readings = readings or Readings(parts.box)
            readings.add(boxes[with_box], _sizes_of(share, ground_truth, images)[image[with_box]])
        # Rows keep their place in the file.
        rows = np.flatnonzero(share.keeps(images)[image])
        kept.take(block, rows.tolist(), {ROW: (rows + before).tolist()})
        before += block.count
    # Coordinates that all are small may be fractions, which need another way.
    if not largest > LARGEST_FRACTION:
        raise ReadAtOnceError
    # The form that the boxes show goes to the reader as if the user had given it.
    if readings is not None:
        form = readings.chosen(usual=usual_form(kept), option="--dt-box-format", place=kept.source)
        options = dataclasses.replace(options, box_format=form)
    rows_kept = rows_of(kept, options, ground_truth, of_results=True, fractions=False)
    return detections_of(rows_kept, options, ground_truth)


def _plain_parts(block: RecordTable, options: ReadOptions) -> ColumnParts:
    """Return what the keys are, where boxes have scores and nothing but their image and class beside."""
    parts = column_parts(block.names, place=block.source, column_map=options.columns)
    wanted = parts.box and parts.score is not None and (parts.class_id is None) != (parts.class_name is None)
    if not wanted or parts.mask is not None or parts.image_size is not None or parts.sides is not None:
        raise ReadAtOnceError
    return parts


def _refuse_other_classes(block: RecordTable, parts: ColumnParts, known: Categories) -> None:
    """Have everything read at once where one class is not found by itself."""
    values = block.distinct(str(parts.class_name if parts.class_id is None else parts.class_id)).values
    if parts.class_id is not None and known.ids.dtype != object and all(type(one) is int for one in values):
        return
    if not {*values} <= {*known.names.tolist()} - {*map(str, known.ids.tolist())}:
        raise ReadAtOnceError
    if len({*known.names.tolist()}) < len(known):
        raise ReadAtOnceError


def _sizes_of(share: ImageShare, ground_truth: GroundTruth, images: Sequence[Id]) -> FloatArray:
    """Return width and height of images [I, 2], NaN where unknown; those of all must be known as well."""
    sizes = share.sizes_of(images)
    if np.isnan(sizes).all() and not np.isnan(ground_truth.images.sizes).all():
        raise ReadAtOnceError
    return sizes
