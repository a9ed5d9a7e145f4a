"""Compute summary metrics: means of a kind's values over all classes, over some, or per class.

Conventions
-----------
- A summary metric is a mean over values, [T, K] or [T, R, K]: thresholds (one, or all), points of the curve
  and classes. NaN is left out; the mean of no values is NaN.
- Copies of the classes, for image weights, are along the axis of classes: [copies x K].
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol as Protocol_

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.lazy import loaded
from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import Categories, rows_where
from boxscore.matching.ignoring import evaluated
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import WEIGHTS_OF_CLASSES
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import kind_of
from boxscore.scoring.totals import Totals

HARMONIC_EPSILON = 1e-5
"""Added to the sum of two metrics in the denominator of their harmonic mean, as in OmniLabel."""

Key = tuple[int, int]
"""An area range and max detections, positions on the axes A and M."""


class CurvesOf(Protocol_):
    """Returns the curves of an area range and max detections, positions on the axes A and M.

    With ``pooled`` the classes of a selection (``""`` for all) share one curve.
    """

    def __call__(self, area: int, cap: int, pooled: str | None = None, /) -> Curves:
        """Return the curves."""


class WeightedMetrics(NamedTuple):
    """Metrics under W sets of image weights."""

    values: FloatArray
    """Each metric of each class and, last, over all, [W, rows, K + 1]."""
    ground_truths: IntArray
    """Number of ground truths that count in the first area range, weighted by image, [W]."""
    detections: IntArray
    """Number of matched detections, [W]."""


class WeightSets(Protocol_):
    """Sets of image weights, made lazily."""

    def __len__(self) -> int:
        """Return the number of sets."""
        ...

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield each set, [images]; every iteration yields the same sets."""
        ...

    def batches(self, size: int) -> Iterator[WeightSets]:
        """Yield chunks of ``size`` sets, or of one more if sets come in pairs; the last may be smaller."""
        ...


def summary_total(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> float:
    """Value of a summary row over all classes."""
    return float(_Row(row, protocol, curves_of).totals()[0])


def summary_values(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> FloatArray:
    """Value of a summary row for each class, [K]; NaN for classes that the row does not include."""
    values: FloatArray = _Row(row, protocol, curves_of).of_classes()[0]
    return values


def summary_table(rows: Sequence[SummaryRow], protocol: Protocol, curves_of: CurvesOf) -> FloatArray:
    """Value of each summary row for each class and, last, over all of them; [rows, K + 1]."""
    table: FloatArray = summary_tables(rows, protocol, curves_of, 1)[0]
    return table


def summary_tables(
    rows: Sequence[SummaryRow], protocol: Protocol, curves_of: CurvesOf, copies: int
) -> FloatArray:
    """Return :func:`summary_table` of each copy, bit for bit, from curves of all copies.

    The axis of classes has the classes of all copies, [copies x K].
    """
    each = [_Row(row, protocol, curves_of, copies) for row in rows]
    tables = [np.column_stack([one.of_classes(), one.totals()]) for one in each]
    return np.stack(tables, axis=1) if tables else np.empty((copies, 0, 1))


def harmonic_mean(
    row: SummaryRow, protocol: Protocol, total_of: Callable[[SummaryRow], FloatArray]
) -> FloatArray:
    """Return the mean of the two metrics that a row with ``harmonic_of`` names."""
    one, two = (total_of(part) for part in protocol.rows if part.key in row.harmonic_of)
    return np.asarray(2 * one * two / (one + two + HARMONIC_EPSILON))


class _Row:
    """Computes a summary row for one or more copies of the classes."""

    def __init__(self, row: SummaryRow, protocol: Protocol, curves_of: CurvesOf, copies: int = 1) -> None:
        self.row, self.protocol, self.curves_of, self.copies = row, protocol, curves_of, copies

    def _values_of(self, pooled: str | None = None) -> tuple[Values, Curves]:
        row, protocol = self.row, self.protocol
        curves = self.curves_of(*protocol.position_of(row), pooled)
        values = kind_of(row.metric).values_of(curves, protocol)
        if row.iou is None:
            return values, curves
        return values[[protocol.matching.iou_thresholds.index(row.iou)]], curves

    @functools.cached_property
    def _values(self) -> tuple[Values, Curves]:
        return self._values_of()

    def of_classes(self) -> FloatArray:
        """Return the value of each class, [copies, K]; NaN for classes that the row does not include.

        A harmonic mean of two metrics is NaN for every class.
        """
        values, curves = self._values
        mean = values.mean_per_class().reshape(self.copies, -1)
        if self.row.harmonic_of:
            return np.full(mean.shape, np.nan)
        evaluated_ones = self._evaluated(curves)
        if evaluated_ones is not None:
            mean = np.where(evaluated_ones, mean, np.nan)
        return mean if not self.row.classes else np.where(self._chosen(curves), mean, np.nan)

    def totals(self) -> FloatArray:
        """Return the value over all classes, [copies]."""
        rules, copies = self.protocol.ap, self.copies
        if self.row.harmonic_of:
            return harmonic_mean(
                self.row,
                self.protocol,
                lambda part: _Row(part, self.protocol, self.curves_of, copies).totals(),
            )
        # Pooled classes share one curve; otherwise the total is a mean over classes.
        if rules.pool == "classes":
            return self._values_of(self.row.selection)[0].means_of_copies(copies)
        # Different class weights need a weighted mean. Equal weights only select classes, whose usual mean
        # keeps its bits.
        values, curves = self._values
        weights = self._weights(curves.categories)
        if weights is not None:
            if _differ(weights):
                return np.array([copy.weighted_mean(weights) for copy in values.of_copies(copies)])
            if not weights.all():
                values = values.of_classes(np.tile(weights > 0, copies))
        elif self.row.classes:
            values = values.of_classes(np.tile(self._chosen(curves), copies))
        elif rules.class_mean == "by_images":
            images = curves.totals.images_of_class.reshape(copies, -1)
            pairs = zip(values.of_copies(copies), images, strict=True)
            return np.array([copy.repeated(times).mean_of_defined() for copy, times in pairs])
        # Leave out classes that are not evaluated, then take the protocol's mean; the two means add in
        # different orders.
        evaluated_ones = None if self.row.classes else self._evaluated(curves)
        if evaluated_ones is not None:
            values = values.of_classes(np.tile(evaluated_ones, copies))
        if rules.class_mean == "nanmean":
            return np.array([copy.mean_of_slots() for copy in values.of_copies(copies)])
        return values.means_of_copies(copies)

    def _evaluated(self, curves: Curves) -> NDArray[np.bool_] | None:
        """Whether each class is evaluated, [K]; None if all are."""
        if not self.protocol.labels.not_evaluated or curves.categories is None:
            return None
        return evaluated(curves.categories, self.protocol)

    def _chosen(self, curves: Curves) -> NDArray[np.bool_]:
        """Whether the row includes each class, [K]."""
        columns = {} if curves.categories is None else curves.categories.columns
        return rows_where(columns, self.row.classes, len(curves.positive) // self.copies)

    def _weights(self, categories: Categories | None) -> FloatArray | None:
        """Weight of each class, [K]: 0 if the row does not include it; None without weights."""
        rules = self.protocol.ap
        if not rules.class_weights:
            return None
        assert categories is not None, "where classes share a curve, weights are refused"
        weights: FloatArray = loaded(WEIGHTS_OF_CLASSES)(rules, categories)
        return np.where(rows_where(categories.columns, self.row.classes, len(weights)), weights, 0.0)


def _differ(weights: FloatArray) -> bool:
    """Whether the included classes have different weights."""
    counted = weights[weights > 0]
    return bool((counted != counted[:1]).any())


def summary_keys(rows: Sequence[SummaryRow], protocol: Protocol) -> dict[Key, list[str]]:
    """Return the area ranges and max detections that summary rows read, and the kinds of metrics at each."""
    kinds: dict[Key, dict[str, None]] = {}
    for row in rows:
        kinds.setdefault(protocol.position_of(row), {})[row.metric] = None
    return {key: list(names) for key, names in kinds.items()}


def with_values(curves: Curves, protocol: Protocol, metric: str, values: Values) -> Curves:
    """Return closed curves that hold only the given values of a kind of metric."""
    totals = Totals.of_objects(curves.positive, curves.totals.images, images_of_class(curves, protocol))
    return Curves.of_numbers(curves.rules, totals, {metric: values}, curves.categories)


def images_of_class(curves: Curves, protocol: Protocol) -> IntArray:
    """Images with an object of each class, [K]; zeros if no mean is weighted by them."""
    if protocol.ap.class_mean == "by_images":
        return curves.totals.images_of_class
    return np.zeros(len(curves.positive), dtype=np.int64)
