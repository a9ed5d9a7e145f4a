"""Read the detections of one shard from JSON lines, a batch of lines at a time.

Conventions
-----------
- The box format and whether coordinates are fractions depend on every box of the file, so boxes of other
  shards are checked before they are dropped.
- Classes must be ids of the ground truth or unambiguous names; otherwise the whole file is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.memory import paused_collector
from boxscore.data.box_reading import Readings, Units
from boxscore.data.column_names import ColumnParts, column_parts
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.extensions.formats._record_tables import RecordTable, read_records
from boxscore.extensions.large.shares import ROW, ImageShard, NeedsAllRowsError
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import detections_of
from boxscore.formats._tables import boxes_of, images_of, rows_of, usual_form

BLOCK = 1 << 15
"""Rows in a batch."""


@paused_collector()
def detections_of_share(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the detections of a shard."""
    # With these options, one row depends on all others.
    if options.classes is not None or options.image_sizes is not None:
        raise NeedsAllRowsError
    # Check every box of a batch, then keep the rows of the shard.
    kept = RecordTable(path, options.columns)
    names: set[str] | None = None
    readings, units, before = None, Units(), 0
    for block in read_records(path, options.columns, BLOCK):
        parts = _plain_parts(block, options)
        if names is not None and {*block.names} != names:
            raise NeedsAllRowsError  # a new key may change the role of others
        names = {*block.names}
        _refuse_other_classes(block, parts, ground_truth.categories)
        # The box format and the unit depend on the boxes of all shards.
        images, image = images_of(block, parts)
        boxes = boxes_of(block, parts)
        with_box = np.flatnonzero(~np.isnan(boxes).all(axis=1))

        def place(row: int, block: RecordTable = block, rows: IntArray = with_box) -> str:
            return block.place(int(rows[row]))

        units.add(boxes[with_box], place)
        if parts.box_format is None and options.box_format is None:
            readings = readings or Readings(parts.box)
            sizes = _sizes_of(share, ground_truth, images)[image[with_box]]
            readings.add(boxes[with_box], sizes, place)
        # Number the rows as in the file.
        rows = np.flatnonzero(share.keeps(images)[image])
        kept.take(block, rows.tolist(), {ROW: (rows + before).tolist()})
        before += block.count
    # If all coordinates are small they may be fractions, which need the whole file.
    if units.are_small():
        raise NeedsAllRowsError
    # Pass the detected format on as if the user had given it.
    if readings is not None:
        form = readings.chosen(usual=usual_form(kept), option="--dt-box-format", source=kept.source)
        options = dataclasses.replace(options, box_format=form)
    rows_kept = rows_of(kept, options, ground_truth, of_results=True, fractions=False)
    return detections_of(rows_kept, options, ground_truth)


def _plain_parts(block: RecordTable, options: ReadOptions) -> ColumnParts:
    """Return the columns by role; raise if they are more than image, class, score and box."""
    parts = column_parts(block.names, place=block.source, column_map=options.columns)
    wanted = parts.box and parts.score is not None and (parts.class_id is None) != (parts.class_name is None)
    wanted = wanted and parts.late_name is None
    if not wanted or parts.mask is not None or parts.image_size is not None or parts.sides is not None:
        raise NeedsAllRowsError
    return parts


def _refuse_other_classes(block: RecordTable, parts: ColumnParts, known: Categories) -> None:
    """Raise if a class cannot be resolved without the other rows."""
    values = block.distinct(str(parts.class_name if parts.class_id is None else parts.class_id)).values
    if parts.class_id is not None and known.ids.dtype != object and all(type(one) is int for one in values):
        return
    if not {*values} <= {*known.names.tolist()} - {*map(str, known.ids.tolist())}:
        raise NeedsAllRowsError
    if len({*known.names.tolist()}) < len(known):
        raise NeedsAllRowsError


def _sizes_of(share: ImageShard, ground_truth: GroundTruth, images: Sequence[Id]) -> FloatArray:
    """Return width and height of images [I, 2], NaN where unknown."""
    sizes = share.sizes_of(images)
    if np.isnan(sizes).all() and not np.isnan(ground_truth.images.sizes).all():
        raise NeedsAllRowsError
    return sizes
