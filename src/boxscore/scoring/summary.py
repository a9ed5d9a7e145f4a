"""Summary metrics: means over the values of a kind; of all classes, some or each; under image weights too.

Conventions
-----------
A summary metric is a mean over values, [T, K] or [T, R, K]: thresholds (one, or all), points of the curve
and classes. NaN is left out; the mean of none is NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from typing import Protocol as Protocol_

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.vocabulary import rows_where
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import counted_for, kind_of
from boxscore.scoring.weighted import ImageWeights

Key = tuple[int, int]
"""An area range and max detections, positions on the axes A and M."""


class CurvesOf(Protocol_):
    """Gives the curves of an area range and max detections, positions on the axes A and M.

    With ``pooled`` the classes of a selection (``""`` for all) share one curve.
    """

    def __call__(self, area: int, cap: int, pooled: str | None = None, /) -> Curves:
        """Return the curves."""


def _values(
    row: SummaryRow, protocol: Protocol, curves_of: CurvesOf, pooled: str | None = None
) -> tuple[Values, Curves]:
    curves = curves_of(*protocol.position_of(row), pooled)
    values = kind_of(row.metric).values_of(curves, protocol)
    if row.iou is None:
        return values, curves
    return values[[protocol.matching.iou_thresholds.index(row.iou)]], curves


def summary_total(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> float:
    """Value of a summary row over all classes."""
    if protocol.ap.pool == "classes":
        return _values(row, protocol, curves_of, pooled=row.classes)[0].mean_of_defined()
    values, curves = _values(row, protocol, curves_of)
    if row.classes:
        values = values.of_classes(_chosen(row, curves))
    elif protocol.ap.class_mean == "by_images":
        values = values.repeated(curves.totals.images_of_class)
    if protocol.ap.class_mean == "nanmean":
        return values.mean_of_slots()
    return values.mean_of_defined()


def summary_values(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> FloatArray:
    """Value of a summary row for each class, [K]; NaN for classes that the row does not take in."""
    values, curves = _values(row, protocol, curves_of)
    mean = values.mean_per_class()
    return mean if not row.classes else np.where(_chosen(row, curves), mean, np.nan)


def _chosen(row: SummaryRow, curves: Curves) -> NDArray[np.bool_]:
    """Whether the row takes in each class, [K]."""
    return rows_where(curves.class_columns, row.classes, len(curves.positive))


def summary_table(rows: Sequence[SummaryRow], protocol: Protocol, curves_of: CurvesOf) -> FloatArray:
    """Value of each summary row for each class and, last, over all of them; [rows, K + 1]."""
    columns = [
        np.append(summary_values(row, protocol, curves_of), summary_total(row, protocol, curves_of))
        for row in rows
    ]
    return np.array(columns)


def summary_keys(rows: Sequence[SummaryRow], protocol: Protocol) -> dict[Key, list[str]]:
    """Return the area ranges and max detections that summary rows read, and the kinds of metrics at each."""
    kinds: dict[Key, dict[str, None]] = {}
    for row in rows:
        kinds.setdefault(protocol.position_of(row), {})[row.metric] = None
    return {key: list(names) for key, names in kinds.items()}


# ---------------------------------------------------------------- under sets of image weights


class WeightedMetrics(NamedTuple):
    """What W sets of image weights give."""

    values: FloatArray
    """Each metric of each class and, last, over all, [W, rows, K + 1]."""
    ground_truths: IntArray
    """Those that the first area range counts, each by its image's multiplicity, [W]."""
    detections: IntArray
    """The matched ones, [W]."""


def weighted_metrics(
    matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow], weights: Iterable[FloatArray]
) -> WeightedMetrics:
    """Compute summary rows for each set of weights of the images, whole numbers, [images]."""
    matches = counted_for(matches, protocol)
    truth_image = matches.truth_image[matches.counted(0)]

    @functools.cache
    def prepared(area: int, cap: int, pooled: str | None) -> ImageWeights:
        chosen = matches if pooled is None else counted_for(matches.pooled(pooled), protocol)
        return ImageWeights(chosen, protocol, area, cap)

    def table(weights: FloatArray) -> FloatArray:
        @functools.cache
        def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
            return Curves(prepared(area, cap, pooled).counts(weights), protocol.ap)

        return summary_table(rows, protocol, curves_of)

    made = [(table(one), one[truth_image].sum(), one[matches.image].sum()) for one in weights]
    K = len(matches.categories)
    return WeightedMetrics(
        np.array([values for values, _, _ in made]).reshape(-1, len(rows), K + 1),
        np.array([count for _, count, _ in made], dtype=np.int64),
        np.array([count for _, _, count in made], dtype=np.int64),
    )
