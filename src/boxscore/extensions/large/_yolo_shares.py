"""Read one shard of the images of YOLO text files, selected by file name.

Conventions
-----------
- Only lines with plain boxes are supported: if a sample of the files has other lines, the whole set is read.
- Detections carry a column with the number of their file and of their line in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from boxscore._utils import checks
from boxscore._utils.memory import paused_collector
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.large.shares import ROW, ImageShard, NeedsAllRowsError
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import check_folders
from boxscore.formats._rows import Rows, detections_of, ground_truth_of, images_of_unknown_size
from boxscore.formats._yolo_folders import DataSet, data_set, label_folder
from boxscore.formats._yolo_lines import Lines, read_lines
from boxscore.formats._yolo_numbers import shapes_of_predictions
from boxscore.formats.registry import format_named
from boxscore.formats.yolo import (
    ImageFiles,
    YoloFormat,
    files_with_labels,
    prediction_files,
    rows_of_labels,
    rows_of_lines,
    warn_of_labels,
)

SOME = 1_000
"""Files in the sample that shows the form of the lines."""


def ground_truth_of_share(path: Path, options: ReadOptions, share: ImageShard) -> GroundTruth:
    """Read the labels of a shard."""
    return ground_truth_of(_label_rows(path, options, share), options)


@paused_collector()
def _label_rows(path: Path, options: ReadOptions, share: ImageShard) -> Rows:
    # Drop the files of other shards before reading any.
    split = _files_of_shard(data_set(path, options.image_set), share)
    lines = _boxes_alone(files_with_labels(split), 5)
    rows = rows_of_labels(split, lines, path, options)
    # Reject unknown image sizes: if other shards know theirs, boxes would mix pixels and fractions.
    unsized, known = images_of_unknown_size(rows, options)
    if unsized and (known or split.paths is not None or rows.sizes is not None):
        rule, got = "have a known size, to be read in shares", repr(min(unsized))
        raise InputError("an image", rule, got=got, place=rows.source, cause=checks.GIVE_SIZES)
    if options.written is None:
        warn_of_labels(rows, lines)
    return rows


def _files_of_shard(split: DataSet, share: ImageShard) -> DataSet:
    """Return the files of a shard, selected by file name."""
    if split.classes is None or split.keypoint_shape is not None:
        raise NeedsAllRowsError  # the classes come from all labels
    _lines_of_some(files_with_labels(split), 5)
    ids = as_ids(split.images, name="image ids")
    order = Images.order(ids)
    names = split.file_names
    images = Images.build(ids, file_names=names)
    rows = sorted(order[share.choose(images)].tolist())

    def taken(values: list[str] | None) -> list[str] | None:
        return None if values is None else [values[row] for row in rows]

    return dataclasses.replace(
        split,
        images=[split.images[row] for row in rows],
        labels=[split.labels[row] for row in rows],
        paths=taken(split.paths),
        file_names=taken(names),
    )


def detections_of_share(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the predictions of a shard, in the ultralytics format or as detected."""
    return _detections("yolo", path, options, ground_truth, share)


def detections_of_darknet(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the darknet predictions of a shard."""
    return _detections("darknet", path, options, ground_truth, share)


@paused_collector()
def _detections(
    name: str, path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the predictions of a shard; a sample of all files shows where the confidence is."""
    names, files, classes = prediction_files(path, options)
    check_folders(label_folder(path), names, ground_truth)
    form = cast("YoloFormat", format_named(name))
    last = form.confidence_last(_lines_of_some(files, 6), options, path)
    kept = np.flatnonzero(share.keeps(names))
    lines = _boxes_alone([files[number] for number in kept.tolist()], 6)
    shapes = shapes_of_predictions(lines, lambda: None, options.written, last=last)
    images = ImageFiles(str(path), [names[number] for number in kept.tolist()], classes)
    rows = rows_of_lines(images, lines, shapes)
    per_file = np.diff(lines.ends, prepend=0)
    first = np.repeat(lines.ends - per_file, per_file)
    places = (np.repeat(kept, per_file) << 32) + np.arange(len(first)) - first
    return detections_of(dataclasses.replace(rows, columns={ROW: places}), options, ground_truth)


def _lines_of_some(files: Sequence[str], count: int) -> Lines:
    """Read an evenly spaced sample; raise if a line does not have ``count`` numbers."""
    lines = read_lines([files[at] for at in range(0, len(files), -(-len(files) // SOME) or 1)])
    if lines.words is not None or (lines.counts != count).any():
        raise NeedsAllRowsError
    return lines


def _boxes_alone(files: Sequence[str], count: int) -> Lines:
    """Read the files of a shard; every line must have ``count`` numbers, as in the sample."""
    lines = read_lines(files)
    other = np.flatnonzero(lines.counts != count)
    if len(other) or lines.words is not None:
        row = int(other[0]) if len(other) else 0
        rule = f"have {count} numbers, as in {SOME:,} files spread over all, to be read in shares"
        cause = "lines of several kinds decide on each other: evaluate all at once"
        raise FileFormatError("a line", rule, got=repr(lines.text(row)), place=lines.place(row), cause=cause)
    return lines
