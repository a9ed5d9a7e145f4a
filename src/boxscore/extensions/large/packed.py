"""Pack matches into the few columns that scores need.

Parts are matched one after the other, or on many machines, so each must be small and must merge to the bits
of one process.

Conventions
-----------
- Detections: score, image, rank and area ranges. Matched pairs: ground truth and outcomes. Ground truths:
  image and the area ranges that count them. Overlaps, unmatched candidates and table rows are dropped, except
  that the row of a detection stays if it orders equal scores.
- Extra columns are stored only if the protocol needs them for scores. Bits of pairs are stored per outcome,
  like ``outcomes``, not per pair.
- Detections, pairs and ground truths are in class order, so a class is a slice of each column;
  :func:`unpacked` reads some classes of many parts at a time.
- Each column has the smallest type that holds its values; scores are float32 if that is exact. Outcomes are
  indices into a table of distinct outcomes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import stable_order
from boxscore._utils.records import PicklesFields
from boxscore.data.vocabulary import Categories, Images
from boxscore.matching.matches import (
    Bits,
    Extra,
    Matches,
    Take,
    check_declared,
    declared,
    merged_extra,
    renumbered_extra,
    taken_extra,
)
from boxscore.protocols.tables.matching import EqualScores

PACKED_COLUMNS: Mapping[str, tuple[str, str]] = {
    "score": ("detection", "f"),
    "image": ("detection", "u"),
    "rank": ("detection", "u"),
    "in_range": ("detection", "u"),
    "pair_count": ("detection", "u"),
    "row": ("detection", "u"),
    "truth": ("pair", "u"),
    "outcome": ("pair", "u"),
    "truth_image": ("truth", "u"),
    "truth_counted": ("truth", "u"),
}
"""Axis and NumPy kind of the columns of all packed matches; only ``row`` is optional."""

EXTRA_PREFIX = "extra:"
"""Prefix of the names of extra columns in :meth:`PackedMatches.arrays`."""


@dataclasses.dataclass(frozen=True, eq=False)
class PackedMatches(PicklesFields):
    """The matches of some images; D detections, P pairs and G ground truths, all in class order.

    Attributes
    ----------
    bounds : ndarray of int64, [3, K + 1]
        Offset of each class in the detections, the pairs and the ground truths, and the ends.
    score : ndarray of float32 or float64, [D]
    image, rank : ndarray of unsigned, [D]
    in_range : ndarray of unsigned, [D]
        Bits over area ranges.
    pair_count : ndarray of unsigned, [D]
        Matches per detection, over all thresholds.
    row : ndarray of unsigned, [D], or None
        Row that orders equal scores; None if image and rank order them.
    truth : ndarray of unsigned, [P]
        Position of the ground truth.
    outcome : ndarray of unsigned, [P]
        Position in ``outcomes``.
    outcomes : ndarray of unsigned, [U, A]
        Bits over thresholds: matched or not.
    truth_image : ndarray of unsigned, [G]
    truth_counted : ndarray of unsigned, [G]
        Bits over area ranges.
    extra : mapping of str to ndarray
        Extra columns that scores read; bits of pairs are [U, A].
    threshold_count : int
    area_count : int
    equal_scores : {"image_order", "file_order", "last_first"}
    """

    bounds: NDArray[np.int64]
    score: NDArray[np.floating[Any]]
    image: NDArray[np.unsignedinteger[Any]]
    rank: NDArray[np.unsignedinteger[Any]]
    in_range: Bits
    pair_count: NDArray[np.unsignedinteger[Any]]
    row: NDArray[np.unsignedinteger[Any]] | None
    truth: NDArray[np.unsignedinteger[Any]]
    outcome: NDArray[np.unsignedinteger[Any]]
    outcomes: Bits
    truth_image: NDArray[np.unsignedinteger[Any]]
    truth_counted: Bits
    extra: Extra
    threshold_count: int
    area_count: int
    equal_scores: EqualScores

    def __post_init__(self) -> None:
        check_declared(self.extra)

    def __len__(self) -> int:
        return len(self.score)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(value.nbytes for value in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the stored columns by name."""
        values = {name: getattr(self, name) for name in ("bounds", *PACKED_COLUMNS, "outcomes")}
        there = {name: value for name, value in values.items() if value is not None}
        return there | {EXTRA_PREFIX + name: value for name, value in self.extra.items()}

    def columns(self, rows: Mapping[str, Take]) -> dict[str, Any]:
        """Take rows along each axis, of extra columns too."""
        columns: dict[str, Any] = {}
        for name, (axis, _) in PACKED_COLUMNS.items():
            values = getattr(self, name)
            columns[name] = None if values is None else rows[axis](values)
        return {**columns, "extra": taken_extra(self.extra, rows, packed=True)}


class NumberedPart(NamedTuple):
    """Packed matches of one part, and the offsets that number them among all parts."""

    packed: PackedMatches
    image: NDArray[np.int32]
    """Row of each image of the part among all images."""
    first_row: int = 0
    """Offset of its detection rows."""


def packed(matches: Matches, *, with_rows: bool = False) -> PackedMatches:
    """Pack matches; ``with_rows`` keeps rows even if image and rank order equal scores."""
    K = len(matches.categories)
    classes = np.arange(K + 1)
    # Keep the pairs that match at some threshold and range; scores need no others.
    matched = np.flatnonzero(matches.matched_bits.any(axis=1))
    detection = matches.pair_detection[matched]
    # Put the ground truths into class order; ``place`` [G] holds their new positions.
    by_class = stable_order(matches.truth_category, K)
    place = np.empty(len(by_class), dtype=np.int64)
    place[by_class] = np.arange(len(by_class))
    rows_taken = {"pair": itemgetter(matched), "truth": itemgetter(by_class)}
    extra = taken_extra(extra_in_parts(matches.extra), rows_taken)
    # Replace the rows of bits [P, A] by indices of the distinct rows [U, A]: there are few of them.
    of_pairs, A = bits_of(extra), matches.area_count
    bits = [matches.matched_bits[matched], *(extra[name] for name in of_pairs)]
    outcome, outcomes = numbered_rows(np.concatenate(bits, axis=1) if of_pairs else bits[0])
    for number, name in enumerate(of_pairs, start=1):
        extra[name] = np.ascontiguousarray(outcomes[:, number * A : (number + 1) * A])
    # Find the offset of each class [K + 1] by bisection, since columns are in class order.
    detections = np.searchsorted(matches.category, classes)
    truth_category = matches.truth_category[by_class]
    rows = with_rows or matches.equal_scores != "image_order"
    # Store scores as float32 only if all convert back to the same bits; an overflow does not.
    with np.errstate(over="ignore"):
        narrow = matches.score.astype(np.float32)
    return PackedMatches(
        bounds=np.stack(
            [
                detections,
                np.searchsorted(detection, detections),
                np.searchsorted(truth_category, classes),
            ]
        ).astype(np.int64),
        score=narrow if np.array_equal(narrow, matches.score) else matches.score,
        # Use the smallest type that holds the largest whole number.
        image=narrowed(matches.image),
        rank=narrowed(matches.rank),
        in_range=matches.in_range_bits,
        pair_count=narrowed(np.bincount(detection, minlength=len(matches))),
        row=narrowed(matches.row) if rows else None,
        truth=narrowed(place[matches.pair_truth[matched]]),
        outcome=outcome,
        outcomes=np.ascontiguousarray(outcomes[:, :A]),
        truth_image=narrowed(matches.truth_image[by_class]),
        truth_counted=matches.counted_bits[by_class],
        extra=extra,
        threshold_count=matches.threshold_count,
        area_count=matches.area_count,
        equal_scores=matches.equal_scores,
    )


def unpacked(
    parts: Sequence[NumberedPart],
    images: Images,
    categories: Categories,
    *,
    low: int = 0,
    high: int | None = None,
    rows_by_image: bool = False,
) -> Matches:
    """Merge the classes [low, high) of parts of disjoint images.

    Overlaps are NaN. With ``rows_by_image``, rows count within an image and are renumbered image by image.
    """
    high = len(categories) if high is None else high
    # Slice the requested classes out of each part.
    pieces = [_piece(part, low, high) for part in parts]
    detections, truths = ([len(piece[name]) for piece in pieces] for name in ("score", "truth_image"))
    pairs = [len(piece["pair_truth"]) for piece in pieces]
    extra = merged_extra([piece.pop("extra") for piece in pieces])
    # Join column by column and drop each slice as it is joined, so that memory holds only one column twice.
    columns: dict[str, Any] = {}
    for name in list(pieces[0]):
        columns[name] = np.concatenate([piece.pop(name) for piece in pieces])
    # Pair positions count within a part: add the sizes of the parts before it.
    columns["pair_detection"] += np.repeat(np.cumsum([0, *detections[:-1]]), pairs)
    columns["pair_truth"] += np.repeat(np.cumsum([0, *truths[:-1]]), pairs)
    # Renumber rows that count within an image, so that ties break as in one file.
    if rows_by_image:
        order = np.lexsort((columns["row"], columns["image"]))
        columns["row"][order] = np.arange(len(order))
    # The sort into class order is stable and uses the keys of a matching of all images, so it gives the same
    # order.
    every = high - low == len(categories)
    return Matches(
        images=images,
        categories=categories if every else categories.take(np.arange(low, high)),
        truth_row=np.arange(sum(truths)),
        iou=np.broadcast_to(np.float64(np.nan), sum(pairs)),
        threshold_count=parts[0].packed.threshold_count,
        equal_scores=parts[0].packed.equal_scores,
        every_pair=False,
        extra=extra,
        **columns,
    ).in_class_order()


def _piece(part: NumberedPart, low: int, high: int) -> dict[str, Any]:
    """Return the columns of some classes of one part, in the form of :class:`Matches`."""
    columns = part.packed
    # Find the slices of the classes [low, high) on the three axes from the bounds alone.
    (d, d_end), (p, p_end), (g, g_end) = columns.bounds[:, [low, high]].tolist()
    detections, pairs, truths = slice(d, d_end), slice(p, p_end), slice(g, g_end)
    numbers = np.arange(high - low, dtype=np.int32)
    sizes = np.diff(columns.bounds[:, low : high + 1], axis=1)
    # Slice extra columns along their axis; look up bits of pairs by outcome.
    outcome = columns.outcome[pairs]
    rows = {"detection": detections, "pair": pairs, "truth": truths, "outcome": outcome}
    extra = taken_extra(columns.extra, {axis: itemgetter(some) for axis, some in rows.items()}, packed=True)
    # Pair counts give the detection of each pair; rows are needed only if they order equal scores.
    count = columns.pair_count[detections].astype(np.intp)
    row = np.zeros(d_end - d, dtype=np.int8)  # not used for ordering
    if columns.row is not None:
        row = columns.row[detections].astype(np.int64) + part.first_row
    # Widen the columns used in computations; a float32 score widens to its original bits.
    return {
        "image": part.image[columns.image[detections]],
        "category": np.repeat(numbers, sizes[0]),
        "score": columns.score[detections].astype(np.float64),
        "rank": columns.rank[detections],
        "row": row,
        "in_range_bits": columns.in_range[detections],
        "truth_image": part.image[columns.truth_image[truths]],
        "truth_category": np.repeat(numbers, sizes[2]),
        "counted_bits": columns.truth_counted[truths],
        "pair_detection": np.repeat(np.arange(len(count)), count),
        "pair_truth": columns.truth[pairs].astype(np.intp) - g,
        "matched_bits": columns.outcomes[outcome],
        "extra": renumbered_extra(of_classes(extra, low, high), part.image),
    }


def numbered_rows(bits: Bits) -> tuple[NDArray[np.unsignedinteger[Any]], Bits]:
    """Return the index of each row [P, B] among the distinct rows, and these rows, ascending, [U, B]."""
    # Combine the columns as digits of a number, renumbered without gaps after each column. Numbers stay below
    # P, so products do not overflow, and they sort like the rows.
    number = np.zeros(len(bits), dtype=np.int64)
    for column in bits.T:
        key = _compact(column)
        number = _compact(number * (int(key.max(initial=0)) + 1) + key)
    row = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.intp)  # any of the equal rows
    row[number] = np.arange(len(number))
    return narrowed(number), bits[row]


def _compact(keys: NDArray[Any]) -> NDArray[np.int64]:
    """Renumber non-negative integers from 0 without gaps."""
    size = int(keys.max(initial=0)) + 1
    if size > 8 * len(keys) + 65_536:  # a lookup table would cost more than sorting
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    there = np.zeros(size, dtype=bool)
    there[keys] = True
    number: NDArray[np.int64] = np.cumsum(there)[keys] - 1
    return number


# ---------------------------------------------------------------- extra columns


def of_classes(extra: Extra, low: int, high: int) -> dict[str, NDArray[Any]]:
    """Slice class-image columns to the classes [low, high), renumbered from 0."""
    columns = dict(extra)
    for column in declared(extra, "class_image"):
        category, image, values = (extra[name] for name in column.names)
        of_range = slice(*np.searchsorted(category, [low, high]).tolist())
        some = category[of_range].astype(np.int64) - low, image[of_range], values[of_range]
        columns |= dict(zip(column.names, some, strict=True))
    return columns


def image_numbers(extra: Extra) -> list[NDArray[np.integer[Any]]]:
    """Return the image rows of each class-image column."""
    return [extra[column.names[1]] for column in declared(extra, "class_image")]


def extra_in_parts(extra: Extra) -> dict[str, NDArray[Any]]:
    """Keep the columns that scores need; store integers in the smallest type that holds them."""
    columns: dict[str, NDArray[Any]] = {}
    for column in declared(extra):
        if column.in_parts:
            *keys, name = column.names
            columns |= {key: narrowed(extra[key]) for key in keys}
            columns[name] = narrowed(extra[name]) if column.kind == "whole" else extra[name]
    return columns


def bits_of(extra: Extra) -> list[str]:
    """Return the names of the bit columns."""
    return [column.name for column in declared(extra) if column.kind == "bits"]


def narrowed(values: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Convert non-negative integers to the smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))), copy=False)
