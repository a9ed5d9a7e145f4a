"""Hold the outcome of matching in one value that merges and that every score is computed from.

Goal
----
Matching a block of images returns a :class:`Matches`. Matches of disjoint sets of images merge into one, and
every score is a function of it, so further questions do not need another matching.

Conventions
-----------
- Axes: D detections in class order, G ground truths, P candidate pairs, T IoU thresholds, A area ranges.
- *Class order* is (class, descending score, tie); equal scores are ordered image by image, then by rank, or
  in file order.
- Outcomes at all thresholds and area ranges are bits of unsigned integers: a few bytes per pair instead of
  T x A flags, and one operation serves all of them. Matching sets the bits and saved parts store them, but
  only this module interprets them: other code calls its methods.
- A value carries its vocabularies. Merging matches with different images and classes renumbers them.
- Columns that only one rule needs are in ``extra`` (:mod:`boxscore.protocols.acting`). The functions at the
  end take, renumber and merge them by their declared axis, never by name. A column of the axis
  ``class_image`` is three arrays: its values, and the row numbers of its classes and images.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, read_only
from boxscore._utils.ordering import (
    among,
    descending_order,
    group_order,
    group_starts,
    inverse_order,
    ragged_ranges,
    run_starts,
    stable_order,
)
from boxscore._utils.records import NamedTuple, PicklesFields, record
from boxscore._utils.text import counted
from boxscore.data.base import neighbors
from boxscore.data.vocabulary import Categories, Images, rows_where
from boxscore.errors import InputError
from boxscore.protocols.acting import Axis, ExtraColumn
from boxscore.protocols.protocol import EXTRA_COLUMNS
from boxscore.protocols.summary import WITH_OBJECTS
from boxscore.protocols.tables.ap import TAKES_PART
from boxscore.protocols.tables.labels import ABSORBED_BITS, GROUP_TRUE_POSITIVES, TRUTH_WEIGHT
from boxscore.protocols.tables.matching import EqualScores

Extra = Mapping[str, NDArray[Any]]
Take = Callable[[NDArray[Any]], NDArray[Any]]
"""A function that returns some rows of an array, in any order."""

Column = Callable[[str], NDArray[Any]]
"""Returns a column by its name."""

Bits = NDArray[Any]
"""An unsigned integer array whose bits run over an axis: T thresholds, or A area ranges."""

SORTED_TOGETHER, MOST_SORTS = 1 << 16, 8
"""Number of detections that are sorted together, in whole classes; but at most so many sorts."""

Names = TypeVar("Names", Images, Categories)


class PairOutcomes(NamedTuple):
    """Outcomes of the C detections with a candidate, at every threshold, for one area range."""

    detection: NDArray[np.intp]
    """Positions in class order, ascending, [C]."""
    true: BoolArray
    """Whether it is a true positive, [T, C]."""
    ignored: BoolArray
    """Whether its match is an ignored ground truth, [T, C]."""
    weight: NDArray[np.float64] | None = None
    """Weight of each true positive, [T, C]; None: 1."""


class DetectionOutcomes(NamedTuple):
    """Outcomes of all detections at one threshold and area range, in class order."""

    counted: BoolArray
    """Whether it is a true or a false positive, [D]."""
    true: BoolArray
    """Whether it is a true positive, [D]."""
    matched: BoolArray
    """Whether it matched a ground truth, counted or ignored, [D]."""
    truth: NDArray[np.intp]
    """Position of the matched ground truth; -1 without one, [D]."""
    iou: NDArray[np.float64]
    """Overlap with that ground truth; NaN without one, [D]."""
    weight: NDArray[np.float64] | None = None
    """Weight of each true positive, [D]; None: 1."""


@record(frozen=True, eq=False)
class Matches(PicklesFields):
    """The outcome of matching some images.

    Attributes
    ----------
    images, categories : Images, Categories
        The vocabularies of the row numbers; if classes are pooled, the only class is ``all``.
    image, category : ndarray of int32, [D]
        Row numbers, of detections in class order.
    score : ndarray of float64, [D]
    rank : ndarray of int32, [D]
        Position among the detections of the same image and class, from 0.
    row : ndarray of int64, [D]
        Row of the detections table.
    in_range_bits : ndarray of unsigned, [D]
        Bit ``a``: the detection counts in area range ``a`` if unmatched; usually, its area is inside.
    truth_image, truth_category : ndarray of int32, [G]
    truth_row : ndarray of int64, [G]
        Row of the ground-truth table.
    counted_bits : ndarray of unsigned, [G]
        Bit ``a``: the ground truth is counted, not ignored, in area range ``a``.
    pair_detection, pair_truth : ndarray of intp, [P]
        Positions in the columns above; ascending by detection.
    iou : ndarray of float64, [P]
    matched_bits : ndarray of unsigned, [P, A]
        Bit ``t``: the pair is a match at threshold ``t`` for area range ``a``.
    threshold_count : int
        T.
    equal_scores : {"image_order", "file_order", "last_first"}
        The order of equal scores: image by image, then by rank; by row; or the last image first, then true
        positives of groups, then by row.
    every_pair : bool
        Whether all pairs are present; False if there were so many that only matches were kept.
    extra : mapping of str to ndarray
        Columns that the protocol's rules ask for, by name.
    """

    images: Images
    categories: Categories
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    rank: NDArray[np.int32]
    row: NDArray[np.int64]
    in_range_bits: Bits
    truth_image: NDArray[np.int32]
    truth_category: NDArray[np.int32]
    truth_row: NDArray[np.int64]
    counted_bits: Bits
    pair_detection: NDArray[np.intp]
    pair_truth: NDArray[np.intp]
    iou: NDArray[np.float64]
    matched_bits: Bits
    threshold_count: int
    equal_scores: EqualScores = "image_order"
    every_pair: bool = True
    extra: Extra = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        check_declared(self.extra)

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        return (
            f"Matches({counted(len(self), 'detection')}, {counted(len(self.truth_image), 'ground truth')}, "
            f"{counted(len(self.iou), 'pair')}, {counted(len(self.images), 'image')}, "
            f"{counted(len(self.categories), 'class')})"
        )

    @property
    def area_count(self) -> int:
        """A."""
        return int(self.matched_bits.shape[1])

    def inside(self, area: int) -> BoolArray:
        """Whether each detection counts in an area range if unmatched, [D]."""
        return _bit(self.in_range_bits, area)

    @functools.cached_property
    def class_starts(self) -> NDArray[np.intp]:
        """Where the detections of each class begin, and where the last end, [K + 1]."""
        return read_only(group_starts(self.category, len(self.categories)))

    def counted(self, area: int) -> BoolArray:
        """Whether each ground truth is counted, not ignored, in an area range, [G]."""
        return _bit(self.counted_bits, area)

    def positives(self, area: int) -> NDArray[Any]:
        """Count the counted ground truths per class, [K]; int64, or float64 if they have weights."""
        counted = self.counted(area)
        category, K = self.truth_category.take(np.flatnonzero(counted)), len(self.categories)
        truth_weight = TRUTH_WEIGHT.of(self.extra)
        if truth_weight is None:
            return np.bincount(category, minlength=K)
        # Add the weights in TensorFlow's order: image by image, weights of 1 first, then the others. The
        # order decides the last bit of the sums.
        group = self.truth_image[counted].astype(np.int64) * K + category
        groups, at = np.unique(group, return_inverse=True)
        weight = truth_weight[counted]
        total = np.bincount(at, weights=weight == 1, minlength=len(groups))
        for part in np.unique(weight[weight != 1]).tolist():
            total += part * np.bincount(at, weights=weight == part, minlength=len(groups))
        return np.bincount(groups % K, weights=total, minlength=K)

    def taking_part(self, area: int) -> BoolArray:
        """Whether each ground truth counts in the denominator of recall, [G]; a rule may add ignored ones."""
        takes_part = TAKES_PART.of(self.extra)
        return self.counted(area) if takes_part is None else takes_part

    def recall_total(self, area: int) -> NDArray[Any]:
        """Count the ground truths in the denominator of recall, per class, [K]."""
        takes_part = TAKES_PART.of(self.extra)
        if takes_part is None:
            return self.positives(area)
        return np.bincount(self.truth_category[takes_part], minlength=len(self.categories))

    def pairs_matched(self, threshold: int, area: int) -> NDArray[np.intp]:
        """Positions of the pairs that are matches, ignored ground truths included; ascending."""
        return np.flatnonzero(_bit(self.matched_bits[:, area], threshold))

    def pairs_true(self, threshold: int, area: int) -> NDArray[np.intp]:
        """Positions of the pairs that are true positives; ascending."""
        return np.flatnonzero(_bit(self._true_bits[:, area], threshold))

    def pairs_ever_true(self, area: int) -> NDArray[np.intp]:
        """Positions of the pairs that are true positives at some threshold; ascending."""
        return np.flatnonzero(self._true_bits[:, area] != 0)

    def highest_true(self, area: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the true positives, and the highest threshold (position on T) at which each is one."""
        highest = np.full(len(self), -1, dtype=np.intp)
        for threshold in range(self.threshold_count):  # a higher one overwrites a lower
            highest[self.pair_detection[self.pairs_true(threshold, area)]] = threshold
        detection = np.flatnonzero(highest >= 0)
        return detection, highest[detection]

    def take_scores_from(self, score_threshold: float) -> Matches:
        """Drop the detections below a score; ground truths that they matched are missed."""
        if not len(self) or self.score.min() >= score_threshold:
            return self
        return self.take_detections(self.score >= score_threshold)

    def take_detections(self, chosen: BoolArray) -> Matches:
        """Keep some detections, [D]; ground truths that the others matched are missed."""
        return self._take(chosen, np.ones(len(self.truth_image), dtype=bool))

    def take_ranks(self, end: int) -> Matches:
        """Drop the detections of rank ``end`` and beyond; ground truths that they matched are missed."""
        return self._take(self.rank < end, np.ones(len(self.truth_image), dtype=bool))

    def take_images(self, chosen: BoolArray) -> Matches:
        """Keep some images, [I]; ``row`` and ``truth_row`` are unchanged."""
        if chosen.all():
            return self
        number = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
        left = self._take(chosen[self.image], chosen[self.truth_image])
        return dataclasses.replace(
            left,
            images=self.images.take(np.flatnonzero(chosen)),
            image=number[left.image],
            truth_image=number[left.truth_image],
            extra={**left.extra, **_extra_of_images(self.extra, chosen, number)},
        )

    def take_class(self, row: int) -> Matches:
        """Keep one class; ``row`` and ``truth_row`` are unchanged."""
        left = self._take(self.category == row, self.truth_category == row)
        return dataclasses.replace(
            left,
            categories=self.categories.take(np.array([row])),
            category=np.zeros_like(left.category),
            truth_category=np.zeros_like(left.truth_category),
        )

    def with_images(self, images: Images, rows: NDArray[np.int32]) -> Matches:
        """Move the images to another vocabulary with rows [I]."""
        return dataclasses.replace(
            self,
            images=images,
            image=rows[self.image],
            truth_image=rows[self.truth_image],
            extra=renumbered_extra(self.extra, rows),
        )

    def pooled(self, selection: str = "") -> Matches:
        """Put the classes of a selection (:func:`~boxscore.data.vocabulary.rows_where`) into one, ``all``.

        A selection that ends in :data:`~boxscore.protocols.summary.WITH_OBJECTS` leaves out the detections in
        images without an object of their class. The matches stay as they are. Equal scores are ordered image
        by image, then by class.
        """
        # Keep the classes of the selection. If it keeps all, no column is copied.
        selection, of_some, _ = selection.partition(WITH_OBJECTS)
        K = len(self.categories)
        chosen = rows_where(self.categories.columns, selection, K)
        selected = self if chosen.all() else self._take(chosen[self.category], chosen[self.truth_category])
        # Drop detections in images without an object of their class: compare (image, class) keys of both
        # sides, with a table of flags or by bisection.
        if of_some:
            there, asked = (
                image.astype(np.int64) * K + category
                for image, category in (
                    (selected.truth_image, selected.truth_category),
                    (selected.image, selected.category),
                )
            )
            selected = selected.take_detections(among(there, asked, len(self.images) * K))
        # Put every row into one class; the outcomes stay as they are, since nothing is matched again.
        one = Categories.build(["all"])
        pooled = dataclasses.replace(
            selected,
            categories=one,
            category=np.zeros(len(selected), dtype=np.int32),
            truth_category=np.zeros(len(selected.truth_image), dtype=np.int32),
            extra=_extra_of_rows(selected.extra),
        )
        # Sort by tie, as the protocol asks, then stably by descending score: that is the order of a stable
        # sort over all classes together.
        if self.equal_scores == "image_order":
            order = stable_order(selected.image, len(selected.images))
        else:
            order = _tie_order(
                vars(selected).__getitem__, selected.extra, len(selected.images), self.equal_scores
            )
        return pooled.reordered(order[descending_order(selected.score[order])])

    def leaving_out(self, unmatched: Sequence[BoolArray]) -> Matches:
        """Replace the area ranges by copies of the first, one per set of detections, flags [D].

        In each copy, the unmatched detections of its set do not count.
        """
        count, inside, extra = len(unmatched), self.inside(0), dict(self.extra)
        absorbed = ABSORBED_BITS.of(extra)
        if absorbed is not None:
            extra[ABSORBED_BITS.name] = np.repeat(absorbed[:, :1], count, axis=1)
        return dataclasses.replace(
            self,
            in_range_bits=pack_bits(np.stack([inside & ~one for one in unmatched], axis=1)),
            counted_bits=pack_bits(np.repeat(self.counted(0)[:, None], count, axis=1)),
            matched_bits=np.repeat(self.matched_bits[:, :1], count, axis=1),
            extra=extra,
        )

    def repeated(self, count: int) -> Matches:
        """Concatenate copies: copy ``c`` has its own images and classes, numbered after those before it.

        They are only valid for counting: rows and ids are meaningless. Class order is kept, since classes
        stay separate.
        """
        # Concatenate ``count`` copies of every column.
        rows: dict[str, Take] = dict.fromkeys(_COLUMNS, lambda values: np.concatenate([values] * count))
        columns = self._columns(rows)
        images, classes = len(self.images), len(self.categories)
        # Shift the row numbers of copy c by c times the size of the axis they index. Copies then share
        # neither images nor classes nor rows, and one count gives the numbers of all copies.
        for name, step in (
            ("image", images),
            ("truth_image", images),
            ("category", classes),
            ("truth_category", classes),
            ("pair_detection", len(self)),
            ("pair_truth", len(self.truth_image)),
        ):
            size = len(columns[name]) // count
            columns[name] += np.repeat(np.arange(count, dtype=columns[name].dtype) * step, size)
        # Give all images the same id, which takes no memory; ids of copies are never read.
        return dataclasses.replace(
            self,
            **{
                **columns,
                "images": Images.of_ids(np.broadcast_to(np.int64(0), count * images)),
                "categories": Categories.build(np.arange(count * classes)),
                "extra": _extra_of_rows(columns["extra"]),
            },
        )

    def in_class_order(self) -> Matches:
        """Put detections that were matched in another order into class order."""
        return self.reordered(
            _class_order(vars(self).__getitem__, self.extra, len(self.images), self.equal_scores)
        )

    def with_columns(self, change: Callable[[str, NDArray[Any]], NDArray[Any]]) -> Matches:
        """Return the matches with another array of the same rows for each column of rows, by name."""
        names = [name for of_axis in _COLUMNS.values() for name in of_axis]
        columns: dict[str, Any] = {name: change(name, getattr(self, name)) for name in names}
        return dataclasses.replace(self, **columns)

    def with_extra(self, columns: Mapping[str, NDArray[Any]]) -> Matches:
        """Add columns that a rule declares."""
        return dataclasses.replace(self, extra={**self.extra, **columns})

    def reordered(self, order: NDArray[np.intp]) -> Matches:
        """Return the matches with detections in another order, [D]."""
        detection = inverse_order(order)[self.pair_detection]
        pairs = stable_order(detection, len(order))
        columns = self._columns({"detection": itemgetter(order), "pair": itemgetter(pairs)})
        return dataclasses.replace(self, **{**columns, "pair_detection": detection[pairs]})

    def _take(self, detections: BoolArray, truths: BoolArray) -> Matches:
        """Keep some detections [D] and ground truths [G], and the pairs between them."""
        pairs = np.flatnonzero(detections[self.pair_detection] & truths[self.pair_truth])
        rows = {"detection": itemgetter(detections), "truth": itemgetter(truths), "pair": itemgetter(pairs)}
        columns = self._columns(rows)
        columns["pair_detection"] = (np.cumsum(detections) - 1)[columns["pair_detection"]]
        columns["pair_truth"] = (np.cumsum(truths) - 1)[columns["pair_truth"]]
        return dataclasses.replace(self, **{**columns, "extra": _extra_of_rows(columns["extra"])})

    def _columns(self, rows: Mapping[str, Take]) -> dict[str, Any]:
        """Take rows of every column on some axes."""
        columns: dict[str, Any] = {
            name: take(getattr(self, name)) for axis, take in rows.items() for name in _COLUMNS[axis]
        }
        return {**columns, "extra": taken_extra(self.extra, rows)}

    def pair_outcomes(self, area: int, *, max_detections: int | None = None) -> PairOutcomes:
        """Return the outcomes of detections with a candidate, up to max detections, at every threshold."""
        # Read the bits of one area range, [P]; leave out the detections beyond max detections.
        detection, matched, true = self.pair_detection, self.matched_bits[:, area], self._true_bits[:, area]
        if max_detections is not None:
            within = np.flatnonzero(self.rank[detection] < max_detections)
            detection, matched, true = detection[within], matched[within], true[within]
            del within
        starts = run_starts(detection)
        if not len(starts):
            nothing = np.zeros((self.threshold_count, 0), dtype=bool)
            return PairOutcomes(detection, nothing, nothing)
        # A detection has at most one match per threshold, so its pairs' bits can be combined by OR.
        true, matched = _or_in_runs([true, matched], starts)
        detection = detection[starts]
        del starts
        # Spread the bits into flags [T, C] only here, for the C detections with a candidate.
        count = self.threshold_count
        spread = _spread(true, count), _spread(matched & ~true, count)
        truth_weight = TRUTH_WEIGHT.of(self.extra)
        if truth_weight is None:
            return PairOutcomes(detection, *spread)
        # Where ground truths have weights, a true positive takes that of its ground truth, threshold by
        # threshold.
        weight = np.zeros(spread[0].shape)
        for threshold in range(count):
            pairs = self.pairs_true(threshold, area)
            by_detection = np.zeros(len(self))
            by_detection[self.pair_detection[pairs]] = truth_weight[self.pair_truth[pairs]]
            weight[threshold] = by_detection[detection]
        return PairOutcomes(detection, *spread, weight)

    def detection_outcomes(self, threshold: int, area: int) -> DetectionOutcomes:
        """Return the outcome of every detection at one threshold."""
        pairs, true_pairs = self.pairs_matched(threshold, area), self.pairs_true(threshold, area)
        matched, true = np.zeros(len(self), dtype=bool), np.zeros(len(self), dtype=bool)
        truth, iou = np.full(len(self), -1, dtype=np.intp), np.full(len(self), np.nan)
        # Scatter the matching pairs to their detections. A detection has at most one match at a threshold, so
        # writes cannot collide.
        detection = self.pair_detection[pairs]
        matched[detection] = True
        truth[detection] = self.pair_truth[pairs]
        iou[detection] = self.iou[pairs]
        true[self.pair_detection[true_pairs]] = True
        counted, weight = (self.inside(area) & ~matched) | true, TRUTH_WEIGHT.of(self.extra)
        if weight is not None:
            weight = np.where(true, np.append(weight, 0.0)[truth], 0.0)  # -1 reads the appended 0
        return DetectionOutcomes(counted, true, matched, truth, iou, weight)

    def without_true_positives_of(self, truth: BoolArray) -> Matches:
        """Undo the true positives of some ground truths, [G]; other detections cannot match these instead."""
        pairs = np.flatnonzero(truth[self.pair_truth])
        bits = self.matched_bits.copy()
        bits[pairs] &= ~self._true_bits[pairs]
        return dataclasses.replace(self, matched_bits=bits)

    def detections_ever_true(self, truth: BoolArray) -> BoolArray:
        """Whether each detection [D] is ever a true positive of one of some ground truths [G]."""
        ever = np.zeros(len(self), dtype=bool)
        ever[self.pair_detection[self._true_bits.any(axis=1) & truth[self.pair_truth]]] = True
        return ever

    @functools.cached_property
    def _true_bits(self) -> Bits:
        """``matched_bits`` where the ground truth is counted, else no bit; [P, A]."""
        # Multiplying by 0 or 1 keeps no or all thresholds of an area range, without T x A flags.
        areas = np.arange(self.area_count, dtype=self.counted_bits.dtype)
        counted = (self.counted_bits[self.pair_truth, None] >> areas) & 1
        true: Bits = self.matched_bits * counted.astype(self.matched_bits.dtype)
        absorbed = ABSORBED_BITS.of(self.extra)
        return true if absorbed is None else true & ~absorbed


def bit_type(count: int) -> np.dtype[Any]:
    """Return the smallest unsigned type with ``count`` bits."""
    return np.dtype(np.min_scalar_type((1 << count) - 1))


def pack_bits(flags: BoolArray) -> Bits:
    """Pack flags [N, A] into bits over A, [N]."""
    packed = np.zeros(len(flags), dtype=bit_type(flags.shape[1]))
    for bit in range(flags.shape[1]):
        packed |= flags[:, bit].astype(packed.dtype) << packed.dtype.type(bit)
    return packed


def _bit(bits: Bits, position: int) -> BoolArray:
    flags: BoolArray = (bits & bits.dtype.type(1 << position)) != 0
    return flags


def _or_in_runs(columns: list[Bits], starts: NDArray[np.intp]) -> list[Bits]:
    """Combine the bits of each run, from [P] to [C]; most runs have one pair."""
    widths = np.diff(np.append(starts, len(columns[0])))
    several = np.flatnonzero(widths > 1)
    widths = widths.take(several)
    pairs, firsts = ragged_ranges(starts.take(several), widths), np.cumsum(widths) - widths
    combined: list[Bits] = [bits.take(starts) for bits in columns]
    if len(several):
        for bits, all_of_them in zip(combined, columns, strict=True):
            bits[several] = np.bitwise_or.reduceat(all_of_them.take(pairs), firsts)
    return combined


def _spread(bits: Bits, count: int) -> BoolArray:
    """Spread bits [C] into rows [count, C]."""
    rows = np.empty((count, len(bits)), dtype=bool)
    for bit in range(count):
        np.not_equal(bits & bits.dtype.type(1 << bit), 0, out=rows[bit])
    return rows


# ---------------------------------------------------------------- merging

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "detection": ("image", "category", "score", "rank", "row", "in_range_bits"),
    "truth": ("truth_image", "truth_category", "truth_row", "counted_bits"),
    "pair": ("pair_detection", "pair_truth", "iou", "matched_bits"),
}
"""Columns that all matches have, by axis."""


def merge(parts: Iterable[Matches]) -> Matches:
    """Merge the matches of disjoint sets of images, bit for bit like one matching of all images.

    ``row`` and ``truth_row`` must be rows of tables that all parts share, or made unique before.
    """
    parts = list(parts)
    if not parts:
        raise InputError("matches to merge", "be one part or more", got="none")
    if len(parts) == 1:
        return parts[0]
    # Reject parts made under different rules, whose outcomes are not comparable.
    first = parts[0]
    for part in parts:
        if _shape(part) != _shape(first):
            raise InputError(
                "matches to merge",
                "be made with the same thresholds, area ranges, groups and order of equal scores",
                got=f"{_shape(first)} and {_shape(part)}",
            )
    # Unite the vocabularies. Parts that share one keep their row numbers and copy nothing.
    images, image_rows = _united([part.images for part in parts])
    categories, category_rows = _united([part.categories for part in parts])
    _check_disjoint(parts, image_rows, images)

    def joined(name: str) -> NDArray[Any]:
        """Concatenate a column of the parts lazily: all columns together take much memory."""
        values = [getattr(part, name) for part in parts]
        rows = image_rows if name.endswith("image") else category_rows if name.endswith("category") else None
        if rows is not None:
            values = [new if old is None else old[new] for old, new in zip(rows, values, strict=True)]
        whole = neighbors(values)
        return np.concatenate(values) if whole is None else whole

    # Order the joined rows as one matching of all images would: detections by class, descending score and
    # tie, ground truths by row. Both sorts are stable, so parts cannot change a tie.
    numbers = zip(image_rows, category_rows, strict=True)
    extra = merged_extra(
        [renumbered_extra(part.extra, *new) for part, new in zip(parts, numbers, strict=True)]
    )
    order = _class_order(joined, extra, len(images), first.equal_scores)
    truth_row = joined("truth_row")
    truth_order = stable_order(truth_row, int(truth_row.max(initial=0)) + 1)
    # Positions in pairs count inside a part. Add the rows of the parts before it, [P], then map them to the
    # new order.
    columns: dict[str, Any] = {}
    for name, sizes, of_axis in (
        ("pair_detection", [len(part) for part in parts], order),
        ("pair_truth", [len(part.truth_image) for part in parts], truth_order),
    ):
        before = np.repeat(np.cumsum([0, *sizes[:-1]]), [len(part.iou) for part in parts])
        columns[name] = inverse_order(of_axis)[joined(name) + before]
    # Sort the pairs by their detection again; a stable sort keeps the ground truths of a detection in file
    # order.
    orders = {"detection": order, "truth": truth_order}
    orders["pair"] = stable_order(columns["pair_detection"], len(order))
    # Take one column after the other, so that only one joined column is in memory next to the result. Pairs
    # come first, because their order is not needed any longer then.
    while orders:
        axis, rows = orders.popitem()
        for name in _COLUMNS[axis]:
            columns[name] = (columns[name] if name in columns else joined(name))[rows]
        extra = taken_extra(extra, {axis: itemgetter(rows)})
    return Matches(
        images=images,
        categories=categories,
        **columns,
        threshold_count=first.threshold_count,
        equal_scores=first.equal_scores,
        every_pair=all(part.every_pair for part in parts),
        extra=extra,
    )


def _shape(part: Matches) -> tuple[int | str | bool, ...]:
    rows = [name for name, column in EXTRA_COLUMNS.items() if column.axis != "class_image"]
    return part.threshold_count, part.area_count, part.equal_scores, *(name in part.extra for name in rows)


def _united(vocabularies: Sequence[Names]) -> tuple[Names, list[NDArray[Any] | None]]:
    """Unite vocabularies; also return the rows of each in the union, or None if all are the same object."""
    first = vocabularies[0]
    if all(each is first for each in vocabularies):
        return first, [None] * len(vocabularies)
    union = type(first).union(vocabularies)
    return union, [union.rows(each.ids) for each in vocabularies]


def _check_disjoint(
    parts: Sequence[Matches], image_rows: Sequence[NDArray[Any] | None], images: Images
) -> None:
    """Raise an error if two parts matched the same image: its objects would count twice."""
    owner = np.full(len(images), -1)
    for number, (part, rows) in enumerate(zip(parts, image_rows, strict=True)):
        if rows is None:  # a shared vocabulary: only images with rows were matched
            occurs = np.zeros(len(images), dtype=bool)
            occurs[part.image] = occurs[part.truth_image] = True
            rows = np.flatnonzero(occurs)
        twice = np.flatnonzero(owner[rows] >= 0)
        if len(twice):
            raise InputError(
                "an image",
                "be in one of the parts to merge",
                got=f"{images.ids.tolist()[rows[twice[0]]]!r} in two",
                cause=f"{len(twice):,} such images; were the parts split by image?",
            )
        owner[rows] = number


def _class_order(
    column: Column, extra: Extra, image_count: int, equal_scores: EqualScores
) -> NDArray[np.intp]:
    """Sort detections by category, descending score, and the order of equal scores."""
    # Sort some classes at a time, because sorting takes several times the memory of its keys.
    category = column("category")
    ends, size = np.cumsum(np.bincount(category)), max(SORTED_TOGETHER, len(category) // MOST_SORTS)
    order = np.empty(len(category), dtype=np.intp)
    low = done = 0
    while done < len(category):
        high = max(low + 1, int(np.searchsorted(ends, done + size, side="right")))
        rows = np.flatnonzero((category >= low) & (category < high))
        columns = _columns_of(column, rows)
        some = taken_extra(extra, {"detection": itemgetter(rows)})
        ties = _tie_order(columns, some, image_count, equal_scores)
        ties = ties[group_order(columns("category")[ties], columns("score")[ties])]
        order[done : done + len(rows)] = rows[ties]
        low, done = high, done + len(rows)
    return order


def _columns_of(column: Column, rows: NDArray[np.intp]) -> Column:
    return lambda name: column(name)[rows]


def _tie_order(column: Column, extra: Extra, image_count: int, equal_scores: EqualScores) -> NDArray[np.intp]:
    """Sort detections of one class as if their scores were all equal."""
    if equal_scores == "image_order":
        rank = column("rank")
        order = stable_order(rank, int(rank.max(initial=0)) + 1)
        return order[stable_order(column("image")[order], image_count)]
    row = column("row")
    order = stable_order(row, int(row.max(initial=0)) + 1)
    if equal_scores == "last_in_file_first":
        return order[::-1]
    if equal_scores == "last_first":
        of_groups = GROUP_TRUE_POSITIVES.of(extra)
        if of_groups is not None:
            order = order[stable_order(~of_groups[order], 2)]
        order = order[stable_order(image_count - 1 - column("image")[order], image_count)]
    return order


# ---------------------------------------------------------------- extra columns


def check_declared(extra: Extra) -> None:
    """Reject names that no rule declares."""
    known = {name for column in EXTRA_COLUMNS.values() for name in column.names}
    for name in extra:
        if name not in known:
            raise ValueError(f"the unknown column {name}")


def declared(extra: Extra, axis: Axis | None = None) -> Iterator[ExtraColumn]:
    """Yield the declarations of the present columns; of one axis if it is given."""
    columns = (EXTRA_COLUMNS[name] for name in extra if name in EXTRA_COLUMNS)
    return (column for column in columns if axis in (None, column.axis))


def taken_extra(extra: Extra, rows: Mapping[str, Take], *, packed: bool = False) -> dict[str, NDArray[Any]]:
    """Take rows of the columns on the axes in ``rows``; other columns stay as they are."""
    columns = dict(extra)
    for column in declared(extra):
        axis = "outcome" if packed and column.kind == "bits" else column.axis
        if axis in rows:
            columns[column.name] = rows[axis](extra[column.name])
    return columns


def _extra_of_rows(extra: Extra) -> dict[str, NDArray[Any]]:
    """Leave out the columns of classes and images: they are valid only for all detections."""
    return {column.name: extra[column.name] for column in declared(extra) if column.axis != "class_image"}


def _extra_of_images(
    extra: Extra, chosen: NDArray[np.bool_], number: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Take chosen images [I] from the columns of classes and images; ``number`` [I] renumbers them."""
    columns: dict[str, NDArray[Any]] = {}
    for column in declared(extra, "class_image"):
        category, image, values = (extra[name] for name in column.names)
        rows = np.flatnonzero(chosen[image])
        some = category[rows], number[image[rows]], values[rows]
        columns |= dict(zip(column.names, some, strict=True))
    return columns


def renumbered_extra(
    extra: Extra, images: NDArray[Any] | None, categories: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Replace the image and class row numbers by those that they map to; None leaves them unchanged."""
    columns = dict(extra)
    for column in declared(extra, "class_image"):
        for name, new in zip(column.names, (categories, images), strict=False):
            if new is not None:
                columns[name] = new[extra[name]]
    return columns


def merged_extra(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Concatenate the columns of parts that have the same columns and number classes and images alike.

    A column of classes and images is left out if a part lacks it. The parts are emptied to save memory.
    """
    counted = {name for part in parts for column in declared(part, "class_image") for name in column.names}
    names = {name: None for part in parts for name in part}
    joined = [name for name in names if name not in counted or all(name in part for part in parts)]
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in joined}
    for column in declared(columns, "class_image"):
        category, image = (columns[name] for name in column.names[:2])
        order = np.lexsort((image, category))
        columns |= {name: columns[name][order] for name in column.names}
    return columns
