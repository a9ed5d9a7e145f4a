"""Hold an evaluator's data: waiting batches, matched parts, and the shares that processes exchange."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import inverse_order
from boxscore.data.alignment import concatenate, with_labels
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.extensions.data_tools.samples import Rows
from boxscore.extensions.training.room import Rooms
from boxscore.matching.matches import Matches, merge

POSITIONS = ("row", "pair_detection", "pair_truth")
"""Columns of matches that parts hold as int32."""


class Part(NamedTuple):
    """The stored data of some images; row numbers in ``matches`` are rows of the tables."""

    matches: Matches
    ground_truth: GroundTruth
    detections: Detections
    left_out: Mapping[Id, Mapping[str, int]]
    """Number of detections of unknown classes, by image and class."""
    invalid: Mapping[Id, tuple[int, int]] = {}
    """Number of invalid predictions and targets, for images that have some."""
    by_row: bool = False
    """Whether matches are in table order, not in class order."""

    @property
    def images(self) -> Images:
        """The stored images."""
        return self.matches.images

    def in_row_order(self) -> Part:
        """Sort the matches in table order, if all rows are matched, so that columns are shared."""
        if self.by_row or len(self.matches) < len(self.detections):
            return self
        matches = self.matches.reordered(inverse_order(self.matches.row))
        narrow = {name: getattr(matches, name).astype(np.int32) for name in POSITIONS}
        return self._replace(matches=dataclasses.replace(matches, **narrow), by_row=True)

    def put_in(self, rooms: Rooms) -> Part:
        """Append the columns to the buffers of earlier parts, so that merging does not copy them."""
        part = self.sharing()
        shared = {id(values) for values in vars(part.detections).values()}
        shared.add(id(part.detections.given_scores))
        for table in (part.ground_truth, part.detections):
            rooms.take_in(table)
        # Rows in table order are 0, 1, ... in every part.
        matches = part.matches
        if part.by_row:
            matches = dataclasses.replace(matches, row=rooms.numbers(len(matches)))
            shared.add(id(matches.row))
        matches = matches.with_columns(
            lambda name, values: values if id(values) in shared else rooms.put(name, values)
        )
        return part._replace(matches=matches).sharing()

    def sharing(self) -> Part:
        """Return the part with the table's columns in its matches, if they are equal in order."""
        if not self.by_row:
            return self
        table = {name: getattr(self.detections, name) for name in ("image", "category")}
        table["score"] = self.detections.given_scores
        shared = {
            name: column
            for name, column in table.items()
            if column is not None and np.array_equal(column, getattr(self.matches, name))
        }
        return self._replace(matches=dataclasses.replace(self.matches, **shared))

    def in_class_order(self) -> Part:
        """Return the part with its matches in class order."""
        if not self.by_row:
            return self
        wide = {name: getattr(self.matches, name).astype(np.int64) for name in POSITIONS}
        matches = dataclasses.replace(self.matches, **wide).in_class_order()
        return self._replace(matches=matches, by_row=False)

    def without(self, seen: set[Id]) -> Part:
        """Drop images that are in another share."""
        kept = np.array([identifier not in seen for identifier in self.images.ids.tolist()], dtype=bool)
        matches = self.matches.take_images(kept)
        images, tables, rows = matches.images, [], []
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        for table in (self.ground_truth, self.detections):
            chosen = kept[table.image]
            left = table.take(np.flatnonzero(chosen))
            renumbered = left.replaced(images=images, image=number[left.image])
            tables.append(with_labels(renumbered, images=np.where(kept, number, np.int32(-1))))
            rows.append(np.cumsum(chosen) - 1)
        matches = dataclasses.replace(matches, truth_row=rows[0][matches.truth_row], row=rows[1][matches.row])
        left_out = {image: counts for image, counts in self.left_out.items() if image not in seen}
        invalid = {image: counts for image, counts in self.invalid.items() if image not in seen}
        truth, detections = tables
        return Part(matches, truth, detections, left_out, invalid, self.by_row)  # type: ignore[arg-type]

    def numbered_from(self, first: int) -> Part:
        """Renumber images that lack their own ids."""
        images = Images.build(self.images.ids + first)
        return Part(
            dataclasses.replace(self.matches, images=images),
            dataclasses.replace(self.ground_truth, images=images),
            dataclasses.replace(self.detections, images=images),
            {int(image) + first: counts for image, counts in self.left_out.items()},
            {int(image) + first: counts for image, counts in self.invalid.items()},
            self.by_row,
        )


def merged(parts: list[Part]) -> Part:
    """Merge parts of disjoint images; rows are sorted by image id, matches are in class order.

    The parts remain valid. If rows stay in order, their columns become views of the merged tables, so that
    boxes are held once.
    """
    # Join the tables; rows are sorted by image, and old columns become views of the new ones.
    if len(parts) == 1:
        return parts[0].in_class_order()
    truth, truth_rows = concatenate([part.ground_truth for part in parts], into_views=True)
    detections, rows = concatenate([part.detections for part in parts], into_views=True)
    # Update the row numbers of matches.
    renumbered, truths_before, rows_before = [], 0, 0
    numbers: NDArray[Any] = np.arange(len(detections), dtype=np.int32) if rows is None else rows
    for number, part in enumerate(parts):
        parts[number] = part = part.sharing()
        matches, after = part.matches, rows_before + len(part.detections)
        row = numbers[rows_before:after]
        renumbered.append(
            dataclasses.replace(
                matches,
                truth_row=_shift_rows(matches.truth_row, truths_before, truth_rows),
                row=row if part.by_row else row[matches.row],
            )
        )
        truths_before += len(part.ground_truth)
        rows_before = after
    # Images are disjoint, so counts by image never conflict.
    left_out = {image: counts for part in parts for image, counts in part.left_out.items()}
    invalid = {image: counts for part in parts for image, counts in part.invalid.items()}
    matches = merge(renumbered)
    matches = dataclasses.replace(matches, row=matches.row.astype(np.int64, copy=False))
    return Part(matches, truth, detections, left_out, invalid)


def _shift_rows(rows: NDArray[np.integer[Any]], before: int, went: NDArray[np.intp] | None) -> NDArray[Any]:
    """Map rows of a table that is appended to others in a merged one, and perhaps sorted."""
    moved = rows + rows.dtype.type(before)
    return moved if went is None else went[moved]


class Waiting:
    """Checked images that are not matched yet, in the order of arrival."""

    def __init__(self) -> None:
        self.ids: dict[Id, None] = {}
        self.rows = 0
        # Predictions and targets.
        self._sides: tuple[list[Rows], list[Rows]] = ([], [])

    def add(self, identifiers: Sequence[Id], sides: Sequence[Sequence[Rows]]) -> None:
        """Add a batch."""
        self.ids |= dict.fromkeys(identifiers)
        # With a ground truth, targets are not given.
        for known, new in zip(self._sides, sides, strict=False):
            known += new
            self.rows += sum(sum(rows.counts) for rows in new)

    def in_order(self, images: Images) -> list[list[Rows]]:
        """Return predictions and targets in the order of the images."""
        wanted = images.ids.tolist()
        if list(self.ids) == wanted:
            return [*self._sides]
        both: list[list[Rows]] = []
        for side in self._sides:
            each = [rows for piece in side for rows in piece.each()]
            of_image = dict(zip(self.ids, each, strict=bool(each)))
            both.append([of_image[identifier] for identifier in wanted if each])
        return both

    def invalid(self) -> dict[Id, tuple[int, int]]:
        """Count the invalid predictions and targets of the images that have some."""
        if not any(rows.invalid for side in self._sides for rows in side):
            return {}
        counts = [
            [rows.invalid for piece in side for rows in piece.each()] or [0] * len(self.ids)
            for side in self._sides
        ]
        pairs = zip(self.ids, zip(*counts, strict=True), strict=True)
        return {identifier: (pair[0], pair[1]) for identifier, pair in pairs if any(pair)}


class Share(NamedTuple):
    """Everything one process has seen: exchanged by ``merge`` and ``gather``."""

    parts: tuple[Part, ...]
    numbered: bool | None
    given: Mapping[str, tuple[bool, Id]]
