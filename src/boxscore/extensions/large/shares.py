"""Read one shard of the images of a file, and drop all other rows.

Conventions
-----------
- Shards are runs of images in the order of their ids, with equal numbers of images: they depend only on the
  list of images.
- A format that can read a shard has a function for it among its capabilities; other ground truth is read
  whole, and the shard is taken from it.
- Some cases cannot be decided image by image, such as repeated annotation ids, or names that are both an
  image id and the file of another image. They raise :class:`NeedsAllRowsError`; the caller then reads
  everything and takes the shard from it.
"""

from __future__ import annotations

import bisect
import copy
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore.data.alignment import of_images
from boxscore.data.image_names import without_ending
from boxscore.data.lookup import rows_of_numbered_files
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images, Vocabulary, as_ids, sort_key
from boxscore.formats._format import Opened
from boxscore.formats.reading import (
    FURTHER,
    FileOptions,
    may_number_otherwise,
    read_detections,
    read_ground_truth,
    with_reader,
)
from boxscore.formats.registry import capability, open_at

ROW = "__boxscore_row"
"""Column with the row of each detection of a shard in the whole table."""


class NeedsAllRowsError(Exception):
    """A shard cannot be read separately, because rows depend on each other."""


class ImageShard:
    """One shard of the images, known once :meth:`choose` has seen the list of all.

    Parameters
    ----------
    number, shares : int
        Number of the shard, from 1, and number of shards.
    """

    def __init__(self, number: int, shares: int) -> None:
        self._number, self._shares = number, shares
        self._ids: NDArray[Any] | None = None
        self._sizes: FloatArray = np.empty((0, 2))
        self._file_names: NDArray[np.object_] = np.empty(0, dtype=object)
        self._rows = slice(0, 0)

    def choose(self, images: Images) -> slice:
        """Return the rows of the shard; raise unless every image has a unique name."""
        if not _have_one_name(images):
            raise NeedsAllRowsError
        self._ids, self._sizes, self._file_names = images.ids, images.sizes, images.file_names
        self._rows = rows_of_shard(len(images), self._number, self._shares)
        return self._rows

    def keeps(self, ids: NDArray[Any] | Sequence[Any]) -> BoolArray:
        """Return which image ids are in the shard; an unlisted id is in exactly one shard too."""
        assert self._ids is not None
        values = ids if isinstance(ids, np.ndarray) else as_ids(ids, name="image ids")
        if self._ids.dtype != object and values.dtype != object:
            with np.errstate(invalid="ignore"):  # the reader rejects fractional ids
                at = np.searchsorted(self._ids, values.astype(np.int64), side="right") - 1
        else:
            at = self._rows_of(values.tolist())
        if not len(self._ids):
            return np.full(len(at), self._number == 1)
        at = np.clip(at, 0, None)
        kept: BoolArray = (at >= self._rows.start) & (at < self._rows.stop)
        return kept

    def sizes_of(self, ids: Sequence[Id]) -> FloatArray:
        """Return width and height of images [I, 2] of any shard, NaN where unknown."""
        assert self._ids is not None
        numbers = self._ids.dtype != object and all(type(one) is int for one in ids)
        rows = Vocabulary(self._ids).rows(ids) if numbers else self._rows_of(ids)
        sizes: FloatArray = np.append(self._sizes, [[np.nan, np.nan]], axis=0)[rows]
        return sizes

    def _rows_of(self, names: Sequence[Id]) -> IntArray:
        row_of = {name: self._row_of(name) for name in dict.fromkeys(names)}
        return np.fromiter((row_of[name] for name in names), np.int64, len(names))

    @functools.cached_property
    def _row_of_file(self) -> dict[str, int]:
        """Rows of images by file name, without repeated names and names that are numbers."""
        names = self._file_names.tolist()
        rows = {name: row for row, name in enumerate(names) if name is not None and not name.isdecimal()}
        for name, count in Counter(names).items():
            if count > 1:
                rows.pop(name, None)
        return rows

    def _row_of(self, value: Id) -> int:
        """Return the row of an image id or full file name; part of a name would be ambiguous."""
        assert self._ids is not None
        at = bisect.bisect_left(self._ids, sort_key(value), key=sort_key)
        if at < len(self._ids) and self._ids[at] == value:
            return at
        row = self._row_of_file.get(value, -1) if isinstance(value, str) else -1
        if row < 0:
            raise NeedsAllRowsError
        return row


def rows_of_shard(count: int, number: int, shares: int) -> slice:
    """Return the rows of shard ``number`` of ``shares``, of ``count`` images."""
    return slice(count * (number - 1) // shares, count * number // shares)


def _have_one_name(images: Images) -> bool:
    """Return whether no file name of an image equals the id of another image."""
    if images.ids.dtype != object:
        rows = rows_of_numbered_files(images.ids, images)
        return rows is None or bool((rows == np.arange(len(rows))).all())
    return all(
        name is None
        or name == one
        or (isinstance(one, str) and _last(without_ending(name)) in (one, _last(one)))
        for name, one in zip(images.file_names.tolist(), images.ids.tolist(), strict=True)
    )


def refuse_name_of_another(file_name: str, name: Id, names: AbstractSet[Id]) -> None:
    """Raise if an image's file has the name of another image."""
    stem = _last(without_ending(file_name))
    if stem != name and stem in names:
        raise NeedsAllRowsError


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def read_truth_of_shard(path: Path, options: FileOptions, share: ImageShard) -> GroundTruth:
    """Read the ground truth of a shard, in any format; ``share`` then knows its images.

    Raises
    ------
    NeedsAllRowsError
        If a row can only be read with all others.
    """
    opened = open_at(path, options.format, side="ground truth")
    is_changed = any(FURTHER[name].applied for name in options.further) or options.image_sizes is not None
    if is_changed or options.unlisted_images not in (None, "error"):
        raise NeedsAllRowsError
    read = None if opened.files else capability(opened.format, "ground_truth_of_share")
    if read is not None:
        return read_ground_truth(
            _reading(opened, "load_ground_truth", functools.partial(read, share=share)), options
        )
    whole = read_ground_truth(opened, options)
    rows = share.choose(whole.images)
    return of_images(whole, np.arange(rows.start, rows.stop))


def read_detections_of_shard(
    path: Path, ground_truth: GroundTruth, options: FileOptions, share: ImageShard
) -> Detections:
    """Read the detections of a shard, given its ground truth, if the format supports it.

    Raises
    ------
    NeedsAllRowsError
        If a row can only be read with all others.
    """
    # A shard cannot be read separately if one row may depend on all others.
    opened = open_at(path, options.format, side="detections")
    read = None if opened.files else capability(opened.format, "detections_of_share")
    if (
        read is None
        or "class_map" in options.further
        or options.around
        or options.unlisted_images not in (None, "error")
        or may_number_otherwise(ground_truth, opened.format, options)
    ):
        raise NeedsAllRowsError
    of_shard = _reading(opened, "load_detections", functools.partial(read, share=share))
    detections = read_detections(of_shard, ground_truth, options)
    # The scores of one shard do not show whether other shards have scores.
    if not detections.scored:
        raise NeedsAllRowsError
    return with_reader(detections, opened, options)  # a second pass reads the whole file


def _reading(opened: Opened, method: str, read: Callable[..., Any]) -> Opened:
    """Return an opened path whose format has one method replaced."""
    format_of_shard = copy.copy(opened.format)
    vars(format_of_shard)[method] = read
    return opened._replace(format=format_of_shard)
