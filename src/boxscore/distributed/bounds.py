"""Bounds of the scores from histograms that merge by addition and do not grow with the number of detections.

Goal
----
Where exactness is not asked for, nothing is sorted and no row travels: each part becomes counts by class,
threshold and bin of scores. Whatever the order inside a bin, the metrics lie between two numbers.

Conventions
-----------
- A bin holds the scores that round to one float16: relative steps of 1/2,048 to 1/1,024, at most 15,361 bins
  from 0 to 1 a class. Rounding keeps the order of scores, so bins are ordered as their detections are.
- In a bin with ``f`` false positives, the upper bound takes the true ones first, the lower bound last. With
  ``H`` true positives up to its end and ``F`` false ones before it, precision at its last true positive is
  ``H / (F + H)`` at most and ``H / (F + f + H)`` at least. Recall is exact.
- Rounding errors are inside: divisions and sums are the same as those of the exact value, in the same order,
  of numbers none of which is on the wrong side. Areas, which are summed otherwise, are widened by what that
  can change.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.vocabulary import Categories, Images, rows_where
from boxscore.distributed.engine import Engine
from boxscore.distributed.merging import check_headers
from boxscore.distributed.parts import COUNTED, Part
from boxscore.distributed.reduction import PartHeader, header_of
from boxscore.errors import InputError, ProtocolError
from boxscore.evaluation import counts_of_classes
from boxscore.matching.packed import Placed, narrowed, unpacked
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.counts import Outcomes
from boxscore.scoring.curves import means_at_points, needed_hits
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.kinds import summary_total, summary_values

__all__ = [
    "BoundedEvaluation",
    "Cells",
    "Histogram",
    "Interval",
    "added",
    "bin_of",
    "bounded",
    "bounds_of",
    "check_bounds",
    "histogram_of",
]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]
Key = tuple[int, int]

FAN_IN = 8
"""Histograms that are added up at a time."""

BINS = 1 << 16
"""Values of a float16."""


class Interval(NamedTuple):
    """Two numbers between which the exact one lies; NaN both where it is undefined."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far they are apart."""
        return self.high - self.low


class Cells(NamedTuple):
    """Counts at one area range and detection cap, by class and bin, N of them that occur; T thresholds."""

    cell: Counts
    """Class times 65,536 plus bin, the highest scores first; ascending, [N]."""
    hits: NDArray[np.integer[Any]]
    """True positives, [T, N]."""
    counted: NDArray[np.integer[Any]]
    """Counted detections, [T, N]."""
    positive: Counts
    """Counted ground truths of each class, [K]."""


@dataclasses.dataclass(frozen=True, eq=False)
class Histogram:
    """What sets of images contribute to bounds; :func:`added` merges them.

    Attributes
    ----------
    headers : tuple of PartHeader
        One of each part.
    cells : mapping of (area, cap) to Cells
        At the positions that the protocol's summary asks for.
    class_counts : mapping of str to ndarray, [K] each
    """

    headers: tuple[PartHeader, ...]
    cells: Mapping[Key, Cells]
    class_counts: Mapping[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        """Bytes of all counts."""
        return sum(column.nbytes for cells in self.cells.values() for column in cells)


def check_bounds(protocol: Protocol) -> None:
    """Refuse a protocol whose scores have no bounds here."""
    for wrong, field, rule, got in (
        (
            protocol.ap.interpolation not in ("points", "area"),
            "ap.interpolation",
            "be 'points' or 'area', for bounds",
            protocol.ap.interpolation,
        ),
        (
            any(row.metric == "FROC" for row in protocol.rows),
            "summary",
            "have no FROC, for bounds",
            "FROC",
        ),
        (
            protocol.matching.cap_scope == "data_set_class",
            "matching.cap_scope",
            "be 'class' or 'image', for bounds",
            protocol.matching.cap_scope,
        ),
    ):
        if wrong:
            raise ProtocolError(field, rule, got=repr(got), cause="evaluate exactly, exact=True")


def histogram_of(part: Part) -> Histogram:
    """Count the detections of a part.

    Parameters
    ----------
    part : Part

    Returns
    -------
    Histogram

    Raises
    ------
    ProtocolError
        When the protocol has no bounds.
    """
    check_bounds(part.protocol)
    if part.matches.truth_weight is not None:
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
    every = matches.category.astype(np.int64) * BINS + bin_of(matches.score)
    cell, where = np.unique(every, return_inverse=True)
    cells = {}
    for area, cap in _asked(protocol):
        outcomes = Outcomes.of(matches, protocol, area, cap)
        base = np.bincount(where, weights=outcomes.unmatched_counts, minlength=len(cell)).astype(np.int64)
        at, was = where[outcomes.detection], outcomes.unmatched_counts[outcomes.detection]
        hits = np.empty((len(outcomes.true), len(cell)), dtype=np.int64)
        counted = np.empty_like(hits)
        for t, (true, ignored) in enumerate(zip(outcomes.true, outcomes.ignored, strict=True)):
            hits[t] = np.bincount(at[true], minlength=len(cell))
            moved = (true & ~was).astype(np.int64) - (ignored & was)
            counted[t] = base + np.bincount(at, weights=moved, minlength=len(cell)).astype(np.int64)
        cells[area, cap] = Cells(cell, narrowed(hits), narrowed(counted), outcomes.positive.astype(np.int64))
    return Histogram((header_of(part),), cells, counts_of_classes(matches))


def bin_of(scores: FloatArray) -> Counts:
    """Return the bin of each score: 0 for the highest there may be."""
    with np.errstate(over="ignore"):
        half = np.asarray(scores, dtype=np.float64).astype(np.float16) + np.float16(0)  # no -0.0
    bits = half.view(np.uint16).astype(np.int64)
    ascending = np.where(bits & 0x8000, 0xFFFF - bits, bits | 0x8000)
    bins: Counts = BINS - 1 - ascending
    return bins


def added(histograms: Sequence[Histogram]) -> Histogram:
    """Add up the histograms of disjoint sets of images, in any order and in any groups."""
    cells = {}
    for key in histograms[0].cells:
        mine = [histogram.cells[key] for histogram in histograms]
        cell, where = np.unique(np.concatenate([one.cell for one in mine]), return_inverse=True)
        ends = np.cumsum([0, *(len(one.cell) for one in mine)])
        hits = np.zeros((len(mine[0].hits), len(cell)), dtype=np.int64)
        counted = np.zeros_like(hits)
        for one, low, high in zip(mine, ends[:-1], ends[1:], strict=True):
            at = where[low:high]  # each cell once
            hits[:, at] += one.hits
            counted[:, at] += one.counted
        positive = np.sum([one.positive for one in mine], axis=0)
        cells[key] = Cells(cell, narrowed(hits), narrowed(counted), positive)
    counts = {
        name: np.sum([histogram.class_counts[name] for histogram in histograms], axis=0)
        for name in histograms[0].class_counts
    }
    headers = tuple(header for histogram in histograms for header in histogram.headers)
    return Histogram(headers, cells, counts)


def _asked(protocol: Protocol) -> list[Key]:
    areas, caps = list(protocol.ignore.area_ranges), len(protocol.caps)
    return list({(areas.index(row.area), row.cap % caps): None for row in protocol.rows})


# ---------------------------------------------------------------- from counts to bounds


def _curves(
    cells: Cells,
    protocol: Protocol,
    categories: Categories,
    has_detections: NDArray[np.bool_],
    *,
    upper: bool,
) -> JoinedCurves:
    """Draw the curves of one bound, [K] classes."""
    rules, K, T = protocol.ap, len(cells.positive), len(cells.hits)
    points = np.array(rules.recall_points)
    needed = np.maximum(needed_hits(points, cells.positive), 1)  # [R, K]
    starts = np.searchsorted(cells.cell, np.arange(K + 1) * BINS)
    envelope = np.zeros((T, K, len(points)))
    area, total = np.zeros((T, K)), np.zeros((T, K), dtype=np.int64)
    for k in np.flatnonzero(np.diff(starts)).tolist():
        own = slice(int(starts[k]), int(starts[k + 1]))
        for t in range(T):
            in_bin, counted = (side[t, own].astype(np.int64) for side in (cells.hits, cells.counted))
            hits, up_to = np.cumsum(in_bin), np.cumsum(counted)
            before = up_to - counted - (hits - in_bin)  # false positives
            best = _quotient(hits, before + hits if upper else up_to, rules.precision_epsilon)
            best[in_bin == 0] = 0.0
            if upper:  # the quotient of the last true positive is the largest, but for its rounding
                best = np.minimum(np.where(best > 0, np.nextafter(np.nextafter(best, 2), 2), 0.0), 1.0)
            after = np.append(np.maximum.accumulate(best[::-1])[::-1], 0.0)
            envelope[t, k] = after[np.searchsorted(hits, needed[:, k])]
            total[t, k] = hits[-1]
            if cells.positive[k] and rules.interpolation == "area":
                steps = in_bin / cells.positive[k]
                slack = (int(hits[-1]) + 64) * 2.0**-51  # the exact sum is taken in another order
                ap = float(steps @ after[:-1]) + (slack if upper else -slack)
                area[t, k] = min(max(ap, 0.0), 1.0)
    undefined = cells.positive == 0
    if rules.absent_classes == "all_zero":
        undefined = np.zeros_like(undefined)
    elif rules.absent_classes == "zero":
        undefined = undefined & ~has_detections
    envelope[:, undefined] = np.nan
    area[:, undefined] = np.nan
    nothing = np.full(total.shape, np.nan)
    return JoinedCurves(
        rules,
        categories.columns,
        cells.positive,
        np.divide(total, cells.positive, out=nothing, where=cells.positive > 0),
        means_at_points(envelope, rules) if rules.interpolation == "points" else area,
        np.ascontiguousarray(envelope.transpose(0, 2, 1)),
        np.full((T, len(points), K), np.nan),
    )


def _quotient(hits: Counts, counted: Counts, epsilon: float) -> FloatArray:
    quotient: FloatArray = hits / np.where(hits > 0, counted + epsilon, 1.0)
    return quotient


def _pooled(cells: Cells, chosen: NDArray[np.bool_]) -> Cells:
    """Put the chosen classes into one."""
    kept = chosen[cells.cell // BINS]
    bins, where = np.unique(cells.cell[kept] % BINS, return_inverse=True)
    hits = np.zeros((len(cells.hits), len(bins)), dtype=np.int64)
    counted = np.zeros_like(hits)
    for total, values in ((hits, cells.hits), (counted, cells.counted)):
        for t in range(len(total)):
            np.add.at(total[t], where, values[t, kept])
    return Cells(bins, hits, counted, np.array([cells.positive[chosen].sum()]))


def bounded(histogram: Histogram) -> BoundedEvaluation:
    """Turn a histogram into bounds.

    Parameters
    ----------
    histogram : Histogram
        Of all images.

    Returns
    -------
    BoundedEvaluation

    Raises
    ------
    InputError
        When the parts do not fit together.
    """
    check_headers(histogram.headers)
    return BoundedEvaluation(histogram)


def bounds_of(engine: Engine, parts: Sequence[Any]) -> BoundedEvaluation:
    """Count parts where they are, add the counts up as a tree, and turn them into bounds."""
    level = [engine.submit("histogram", histogram_of, part) for part in parts]
    while len(level) > 1:
        groups = [level[low : low + FAN_IN] for low in range(0, len(level), FAN_IN)]
        level = [engine.submit("add-histograms", added, group) for group in groups]
    return bounded(engine.results(level, shown="counting")[0])


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
        first = histogram.headers[0]
        self.histogram = histogram
        self.protocol = first.protocol
        per_class = self.protocol.matching.per_class
        self._categories = first.categories if per_class else Categories.build(["all"])
        self.labels = self._categories.labels

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of images, ground truths, crowds, difficult, detections, classes and left out."""
        headers = self.histogram.headers
        total: Counter[str] = Counter()
        for header in headers:
            total.update(header.counts)
        return {
            "images": sum(header.images for header in headers),
            **{name: total[name] for name in COUNTED},
            "classes": len(headers[0].categories),
            "left_out": sum(sum(header.left_out.values()) for header in headers),
        }

    @property
    def class_counts(self) -> dict[str, NDArray[Any]]:
        """Ground truths, detections, and true positives at the first threshold of each class, [K]; exact."""
        return dict(self.histogram.class_counts)

    @functools.cached_property
    def _drawn(self) -> dict[Any, JoinedCurves]:
        return {}

    def _curves_of(self, upper: bool, area: int, cap: int, pooled: str | None = None) -> JoinedCurves:
        key = upper, area, cap, pooled
        if key not in self._drawn:
            cells, categories = self.histogram.cells[area, cap], self._categories
            has = np.asarray(self.class_counts["detections"]) > 0
            if pooled is not None:
                chosen = rows_where(categories.columns, pooled, len(categories))
                cells, has = _pooled(cells, chosen), np.array([bool(has[chosen].any())])
                categories = Categories.build(["all"])
            self._drawn[key] = _curves(cells, self.protocol, categories, has, upper=upper)
        return self._drawn[key]

    @functools.cached_property
    def metrics(self) -> dict[str, Interval]:
        """The interval of each summary metric, by the keys of the protocol's summary."""
        return {
            row.key: Interval(
                *(
                    summary_total(row, self.protocol, functools.partial(self._curves_of, upper))
                    for upper in (False, True)
                )
            )
            for row in self.protocol.rows
        }

    @functools.cached_property
    def class_values(self) -> dict[str, FloatArray]:
        """Bounds of each summary metric of each class alone, [K, 2]: low, high."""
        keys = self.protocol.class_keys
        return {
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

    def __getitem__(self, metric: str) -> Interval:
        """Return the interval of a summary metric, such as ``result["AP"]``."""
        if metric not in self.metrics:
            cause = checks.did_you_mean(metric, self.metrics)
            raise InputError("a metric", "be in the protocol's summary", got=repr(metric), cause=cause)
        return self.metrics[metric]

    @property
    def signature(self) -> str:
        """Every choice behind the numbers, in one line."""
        return self.protocol.signature()

    def __repr__(self) -> str:
        counts = self.counts
        said = ", ".join(
            f"{counts[name]:,} {name.replace('_', ' ')}"
            for name in ("images", "ground_truths", "detections", "classes")
        )
        lines = [f"  {key:<6} {one.low:.6f} to {one.high:.6f}" for key, one in self.metrics.items()]
        return "\n".join([f"Bounds, not exact values, of {said}", *lines, self.signature])

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
