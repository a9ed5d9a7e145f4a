"""Bounds of the scores from counts that merge by addition and do not grow with the number of detections.

Goal
----
Where exactness is not asked for, nothing is sorted and no row travels: each part becomes counts by class,
outcome and bin of the order (:mod:`boxscore.distributed.bins`). Whatever the order inside a bin, the
metrics lie between two numbers. As long as every detection has a bin to itself, these are one number.

Conventions
-----------
- Whatever the order inside a bin, a curve lies between two: :mod:`boxscore.distributed.bin_counts`.
- Equal scores are ordered, and bins retain what a part knows of that: ids of images and ranks, or rows of a
  table that all parts share. Where classes are pooled, a rule moves true positives among equal scores, or
  rows count from the start of each part, bins end at scores.
- Rounding errors are inside: divisions and sums are the same as those of the exact value, in the same order,
  of numbers none of which is on the wrong side. Areas of very many true positives, which are summed
  otherwise, are widened by what that can change.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.read_only import read_only
from boxscore._utils.text import counted
from boxscore.data.vocabulary import Categories, Id, Images, rows_where
from boxscore.distributed.bin_counts import BinCounts, BinLines, lines_of_bins
from boxscore.distributed.bins import MOST, Bins, score_keys
from boxscore.distributed.engine import Engine
from boxscore.distributed.headers import PartHeader, added_headers, header_of
from boxscore.distributed.merging import check_headers
from boxscore.distributed.parts import Part
from boxscore.errors import InputError, ProtocolError
from boxscore.evaluation import counts_of_classes
from boxscore.matching.matches import Bits, Matches, bit_type, pack_bits
from boxscore.matching.packed import Placed, unpacked
from boxscore.protocols.acting import EXACTLY
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.rules.groups import TRUTH_WEIGHT
from boxscore.protocols.tables import ApRules
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import kind_of
from boxscore.scoring.summary import Key, summary_keys, summary_total, summary_values
from boxscore.scoring.totals import Totals

FAN_IN = 4
"""Histograms that are added up at a time."""

PER_BIN = 80
"""Bytes of a bin with its outcomes while it is added to others, about."""

INSIDE = 1 << 16
"""Ranks inside an image that have different keys."""

IMAGE_KEYS = ((-(2**63), -3), (-(2**43), 16), (2**43, 0), (2**63, -2), (2**64, -2))
"""From which id on keys are so many bits wider: ranks go into 16; of narrower ones neighbours share a key."""


class Interval(NamedTuple):
    """Two numbers between which the exact one lies; NaN both where it is undefined."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far they are apart."""
        return self.high - self.low

    def __str__(self) -> str:
        """Round away from what is between them; one number where they are equal, or undefined."""
        if not self.low < self.high:
            return f"{self.low:.6f}"
        step = Decimal("1e-6")
        low, high = (
            Decimal(self.low).quantize(step, ROUND_FLOOR),
            Decimal(self.high).quantize(step, ROUND_CEILING),
        )
        return f"{low} to {high}"


@dataclasses.dataclass(frozen=True, eq=False)
class Histogram:
    """What sets of images contribute to bounds; :func:`added` merges them.

    Attributes
    ----------
    header : PartHeader
        What is known of the parts without their columns, summed up.
    keys : list of (area, cap)
        Positions at which there are outcomes: those that the protocol's summary asks for precision at.
    bins : Bins
        Counts of detections.
    true_positives : mapping of (area, cap) to ndarray of int64, [T, K]
        True positives, at the positions that the summary asks for.
    positive : mapping of (area, cap) to ndarray of int64, [K]
        Counted ground truths.
    class_counts : mapping of str to ndarray, [K] each
    """

    header: PartHeader
    keys: list[Key]
    bins: Bins
    true_positives: Mapping[Key, IntArray]
    positive: Mapping[Key, IntArray]
    class_counts: Mapping[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """Bytes of all counts."""
        per_class = (self.true_positives, self.positive, self.class_counts)
        return self.bins.nbytes + sum(one.nbytes for counts in per_class for one in counts.values())


def check_bounds(protocol: Protocol) -> None:
    """Refuse a protocol whose scores have no bounds here."""
    protocol.scope.check("bounds")
    for row in protocol.rows:
        if not kind_of(row.metric).bounded:
            rule = f"have no {row.metric}, for bounds"
            raise ProtocolError("summary", rule, got=repr(row.metric), cause=EXACTLY)


def histogram_of(part: Part) -> Histogram:
    """Count the detections of a part, under a protocol that has bounds."""
    check_bounds(part.protocol)
    if TRUTH_WEIGHT.of(part.matches.extra) is not None:
        rule = "count as one each, for bounds"
        raise InputError("ground truths", rule, got="weights", cause="evaluate exactly, exact=True")
    protocol = part.protocol
    categories = part.categories if protocol.matching.per_class else Categories.build(["all"])
    images = Images.build(np.arange(len(part.image_ids)))
    matches = unpacked(
        [Placed(part.matches, np.arange(len(images), dtype=np.int32))],
        images,
        categories,
        rows_by_image=part.row_order == "image",
    )
    K, bits = len(categories), bit_type(len(protocol.matching.iou_thresholds))
    keys, columns = _asked(protocol, "AP"), []
    true_positives, positive = {}, {}
    for area, cap in dict.fromkeys([*keys, *_asked(protocol)]):
        outcomes = Outcomes.of(matches, protocol, area, cap)
        true_positives[area, cap] = TruePositiveCounts(outcomes).true_positives
        positive[area, cap] = outcomes.positive.astype(np.int64)
        if (area, cap) in keys:
            whole = len(outcomes.category) == len(matches)
            rows = slice(None) if whole else np.flatnonzero(matches.rank < (protocol.caps[cap] or 0))
            for column in _packed_outcomes(outcomes):
                columns.append(np.zeros(len(matches), dtype=bits))
                columns[-1][rows] = column
    bins = Bins.of(
        matches.category,
        score_keys(matches.score),
        _places(part, matches),
        np.stack(columns, axis=1) if columns else np.zeros((len(matches), 0), dtype=bits),
        K,
    )
    return Histogram(header_of(part), keys, bins, true_positives, positive, counts_of_classes(matches))


def _packed_outcomes(outcomes: Outcomes) -> tuple[Bits, Bits]:
    """Return where each detection is a true positive and where it counts, bits over thresholds, [D] each."""
    true, ignored = pack_bits(outcomes.true.T), pack_bits(outcomes.ignored.T)
    every_true = np.zeros(len(outcomes.category), dtype=true.dtype)
    every_true[outcomes.detection] = true
    counted = outcomes.unmatched_counts * true.dtype.type((1 << len(outcomes.true)) - 1)
    counted[outcomes.detection] = (counted[outcomes.detection] | true) & ~ignored
    return every_true, counted


def _places(part: Part, matches: Matches) -> NDArray[np.uint64]:
    """Return keys that do not descend where equal scores of a class follow each other, [D].

    They do not depend on the part. 16 bits are for what is inside an image.
    """
    rules, images = part.protocol, matches.image
    if rules.ap.tie_order != "as_ranked" or rules.ap.pool == "classes":
        return np.zeros(len(matches), dtype=np.uint64)
    if matches.equal_scores == "file_order" and part.row_order != "image":
        shared = part.row_order == "shared"
        return matches.row.astype(np.uint64) if shared else np.zeros(len(matches), dtype=np.uint64)
    keys, ranked = _image_keys(part.image_ids)
    if matches.equal_scores == "last_first":
        return ~keys[images]
    if matches.equal_scores == "file_order":
        return keys[images]
    inside = np.minimum(matches.rank.astype(np.uint64), np.uint64(INSIDE - 1))
    return keys[images] + np.where(ranked[images], inside, np.uint64(0))


def _image_keys(ids: NDArray[Any]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return keys that do not descend where ids ascend, and whether ranks fit in after them, [I] each."""
    lows, shifts = zip(*IMAGE_KEYS, strict=True)
    if ids.dtype == object:
        numbers = [_number_of(one) for one in ids.tolist()]
        interval = np.array([bisect.bisect_right(lows, one) - 1 for one in numbers], dtype=np.intp)
        offsets = [one - lows[at] for one, at in zip(numbers, interval.tolist(), strict=True)]
        above = np.array(offsets, dtype=np.uint64)
    else:
        interval = np.searchsorted(np.array(lows[:3]), ids, side="right") - 1
        above = ids.view(np.uint64) - np.array([low % 2**64 for low in lows[:3]], dtype=np.uint64)[interval]
    sizes = [
        (high - low) * 2**16 >> 16 - shift
        for (low, shift), high in zip(IMAGE_KEYS[:-1], lows[1:], strict=True)
    ]
    first = np.array([0, *itertools.accumulate(sizes)], dtype=np.uint64)[interval]
    wider, narrower = (np.maximum(sign * np.array(shifts), 0).astype(np.uint64)[interval] for sign in (1, -1))
    return first + (above << wider >> narrower), wider > 0


def _number_of(identifier: Id) -> int:
    """Return an id as a whole number: strings by their first bytes, above all that are numbers."""
    if isinstance(identifier, str):
        first = identifier.encode("utf-8", "surrogatepass")[:8].ljust(8, b"\0")
        return int.from_bytes(first, "big") + 2**64
    return min(max(identifier, -(2**63)), 2**64 - 1)


def added(histograms: Sequence[Histogram]) -> Histogram:
    """Add up the histograms of disjoint sets of images, in any order and in any groups.

    Raises
    ------
    InputError
        When they do not fit together.
    """
    first = histograms[0]
    return Histogram(
        added_headers([one.header for one in histograms]),
        first.keys,
        Bins.added([one.bins for one in histograms]),
        {
            key: np.sum([one.true_positives[key] for one in histograms], axis=0)
            for key in first.true_positives
        },
        {key: np.sum([one.positive[key] for one in histograms], axis=0) for key in first.positive},
        {name: np.sum([one.class_counts[name] for one in histograms], axis=0) for name in first.class_counts},
    )


def _asked(protocol: Protocol, metric: str | None = None) -> list[Key]:
    return list(summary_keys([row for row in protocol.rows if metric in (None, row.metric)], protocol))


# ---------------------------------------------------------------- from counts to bounds


def _curves(
    histogram: Histogram,
    bins: Bins,
    key: Key,
    categories: Categories,
    has_detections: NDArray[np.bool_],
    chosen: NDArray[np.bool_] | None,
) -> tuple[Curves, Curves]:
    """Make the curves of both bounds at a key, the lower first; K classes, or the chosen ones as one."""
    rules = histogram.header.protocol.ap
    true, positive = histogram.true_positives[key], histogram.positive[key]
    if chosen is not None:
        true, positive = true[:, chosen].sum(axis=1, keepdims=True), positive[chosen].sum(keepdims=True)
    lines: list[BinLines] = []
    if key in histogram.keys:
        lines = lines_of_bins(bins, histogram.keys.index(key), len(true), rules.tie_order)
    objects = Totals.of_objects(positive, 0, np.zeros_like(positive))
    totals = dataclasses.replace(objects, recalled=true, has_detections=has_detections)
    low, high = (
        _bound_curves(BinCounts(lines, true, positive, upper=upper), totals, rules, categories)
        for upper in (False, True)
    )
    return low, high


def _bound_curves(counts: BinCounts, totals: Totals, rules: ApRules, categories: Categories) -> Curves:
    """Make the curves of one bound; areas are the counter's."""
    curves = Curves(counts, rules, totals=totals, categories=categories)
    if rules.interpolation != "area" or not len(counts):
        return curves
    known = {"average_precision": curves.with_undefined(counts.areas(curves.precision, rules))}
    return Curves(counts, rules, totals=totals, known=known, categories=categories)


def bounded(histogram: Histogram) -> BoundedEvaluation:
    """Make bounds of the histogram of all images."""
    check_headers([histogram.header])
    return BoundedEvaluation(histogram)


def bounds_of(engine: Engine, parts: Sequence[Any]) -> BoundedEvaluation:
    """Count parts where they are, add the counts up as a tree, and make bounds of them."""
    level = engine.held([engine.submit("histogram", histogram_of, part) for part in parts], shown="counting")
    while len(level) > 1:
        groups = [level[low : low + FAN_IN] for low in range(0, len(level), FAN_IN)]
        sums = [engine.submit("add-histograms", added, group) for group in groups]
        level = engine.held(sums, shown="adding")
    return bounded(engine.results(level)[0])


def memory_of_adding(detections: int) -> int:
    """Return the bytes in which some histograms of so many detections are added up, about."""
    return FAN_IN * PER_BIN * min(detections, MOST)


class BoundedEvaluation:
    """Bounds of the scores: the exact value of every metric lies in its interval, always.

    Parameters
    ----------
    histogram : Histogram
        Of all images.

    Attributes
    ----------
    protocol : Protocol
    labels : list of str
        A name for each class, [K].
    """

    exact = False

    def __init__(self, histogram: Histogram) -> None:
        self.histogram, self.protocol = histogram, histogram.header.protocol
        per_class = self.protocol.matching.per_class
        self._categories = histogram.header.categories if per_class else Categories.build(["all"])
        self.labels = self._categories.labels
        self._curves_by_key: dict[tuple[int, int, str | None], tuple[Curves, Curves]] = {}

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of images, ground truths, crowds, difficult, detections, classes and left out."""
        return read_only(self.histogram.header.result_counts)

    @property
    def class_counts(self) -> dict[str, NDArray[Any]]:
        """Ground truths, detections, and true positives at the first threshold of each class, [K]; exact."""
        return read_only(dict(self.histogram.class_counts))

    def _curves_of(self, upper: bool, area: int, cap: int, pooled: str | None = None) -> Curves:
        key = area, cap, pooled
        if key not in self._curves_by_key:
            bins, categories, chosen = self.histogram.bins, self._categories, None
            has = np.asarray(self.class_counts["detections"]) > 0
            if pooled is not None:
                chosen = rows_where(categories.columns, pooled, len(categories))
                bins, has = bins.pooled(chosen), np.array([bool(has[chosen].any())])
                categories = Categories.build(["all"])
            self._curves_by_key[key] = _curves(self.histogram, bins, (area, cap), categories, has, chosen)
        return self._curves_by_key[key][upper]

    @functools.cached_property
    def metrics(self) -> dict[str, Interval]:
        """The interval of each summary metric, by the keys of the protocol's summary."""
        return read_only(
            {
                row.key: Interval(
                    *(
                        summary_total(row, self.protocol, functools.partial(self._curves_of, upper))
                        for upper in (False, True)
                    )
                )
                for row in self.protocol.rows
            }
        )

    @functools.cached_property
    def class_values(self) -> dict[str, FloatArray]:
        """Bounds of each summary metric of each class alone, [K, 2]: low, high."""
        keys = self.protocol.class_keys
        return read_only(
            {
                keys[row.key]: np.stack(
                    [
                        summary_values(row, self.protocol, functools.partial(self._curves_of, upper))
                        for upper in (False, True)
                    ],
                    axis=1,
                )
                for row in self.protocol.rows
                if row.key in keys
            }
        )

    def __getitem__(self, metric: str) -> Interval:
        """Return the interval of a summary metric, such as ``result["AP"]``."""
        return self.metrics[metric_named(metric, list(self.metrics))]

    @property
    def signature(self) -> str:
        """Every choice behind the numbers, in one line."""
        return self.protocol.signature()

    def __repr__(self) -> str:
        counts = self.counts
        said = ", ".join(
            counted(counts[key], noun)
            for key, noun in (
                ("images", "image"),
                ("ground_truths", "ground truth"),
                ("detections", "detection"),
                ("classes", "class"),
            )
        )
        lines = [f"  {key:<6} {one}" for key, one in self.metrics.items()]
        return "\n".join([f"Bounds of {said}", *lines, self.signature])

    def to_json(self) -> str:
        """Return the bounds as JSON: ``exact`` is false, a metric ``[low, high]``, undefined is ``null``."""

        def plain(values: Iterable[float]) -> list[float | None]:
            return [None if value != value else float(value) for value in values]

        return json.dumps(
            {
                "exact": False,
                "protocol": self.protocol.name,
                "signature": self.signature,
                "metrics": {key: plain(one) for key, one in self.metrics.items()},
                "per_class": [
                    {
                        "class": label,
                        **{name: int(values[k]) for name, values in self.class_counts.items()},
                        **{name: plain(values[k].tolist()) for name, values in self.class_values.items()},
                    }
                    for k, label in enumerate(self.labels)
                ],
                "counts": self.counts,
            },
            indent=2,
        )
