"""Kinds of summary metrics: how ``metric = "AP"`` in a protocol's summary is computed.

Conventions
-----------
A summary metric is a mean over *cells*, [T, K] or [T, R, K]: thresholds (one, or all), points of the curve
and classes. NaN cells are left out; the mean of none is NaN. A new kind is one entry here and
its words in ``protocols.protocol.SUMMARY_KINDS``, which protocols are checked against.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from typing import Protocol as Protocol_

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.vocabulary import rows_where
from boxscore.protocols.protocol import Protocol, SummaryRow
from boxscore.scoring.curves import Cells, Curves
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.miss_rate import log_average

__all__ = [
    "KINDS",
    "CurvesOf",
    "Kind",
    "SummaryCells",
    "mean_of_defined",
    "mean_of_slots",
    "mean_per_class",
    "summary_keys",
    "summary_table",
    "summary_total",
    "summary_values",
]

FloatArray = NDArray[np.float64]
Key = tuple[int, int]


class SummaryCells(NamedTuple):
    """The cells that some summary metrics read of the curves of one area range and detection cap."""

    cells: Mapping[str, Any]
    """By kind of metric, [..., K]."""
    positive: NDArray[Any]
    """Counted ground truths, [K]."""
    class_columns: Mapping[str, NDArray[Any]]
    """What else is known of the classes, [K] each."""


Drawn = Curves | JoinedCurves | SummaryCells
"""Curves, or what is left of them."""


class CurvesOf(Protocol_):
    """Gives the curves of an area range and a detection cap, positions on the axes A and M.

    With ``pooled`` the classes of a selection (``""`` for all) share one curve.
    """

    def __call__(self, area: int, cap: int, pooled: str | None = None, /) -> Drawn:
        """Return the curves."""
        ...


def mean_of_defined(cells: FloatArray | Cells) -> float:
    """Mean of the cells that are not NaN, in C order as pycocotools takes it; NaN when there are none."""
    if isinstance(cells, Cells):
        return cells.mean_of_defined()
    defined = cells[~np.isnan(cells)]
    return float(np.mean(defined)) if len(defined) else float("nan")


def mean_of_slots(cells: FloatArray | Cells) -> float:
    """``numpy.nanmean`` of the cells: undefined ones are added as 0, and not counted; NaN for none."""
    if isinstance(cells, Cells):
        return cells.mean_of_slots()
    defined = np.count_nonzero(~np.isnan(cells))
    return float(np.sum(np.nan_to_num(cells, nan=0.0)) / defined) if defined else float("nan")


def mean_per_class(cells: FloatArray | Cells) -> FloatArray:
    """Mean of each class's cells, [K]; NaN for a class without a curve, whose cells are all NaN."""
    if isinstance(cells, Cells):
        return cells.mean_per_class()
    *axes, K = cells.shape
    mean: FloatArray = (
        np.ascontiguousarray(np.moveaxis(cells, -1, 0)).reshape(K, math.prod(axes)).mean(axis=1)
    )
    return mean


class Kind(NamedTuple):
    """One kind of summary metric."""

    name: str
    cells: Callable[[Curves | JoinedCurves, Protocol], FloatArray | Cells]
    total: Callable[[Any], float] = mean_of_defined
    """From cells to the value over all classes."""
    per_class: Callable[[Any], FloatArray] = mean_per_class
    """From cells to the value of each class, [K]."""


def _precision(curves: Curves | JoinedCurves, protocol: Protocol) -> FloatArray | Cells:
    """Precision at the recall points where AP is its plain mean, else AP."""
    rules = curves.rules
    pointwise = rules.interpolation == "points" and not rules.sequential_mean
    return curves.cells if pointwise else curves.average_precision


def _recall(curves: Curves | JoinedCurves, protocol: Protocol) -> FloatArray:
    return curves.recall


def _sensitivity(curves: Curves | JoinedCurves, protocol: Protocol) -> FloatArray:
    return curves.sensitivity(protocol.froc)


def _miss_rate(curves: Curves | JoinedCurves, protocol: Protocol) -> FloatArray:
    return log_average(curves.miss_rates(protocol.miss_rate))


def _jaccard(curves: Curves | JoinedCurves, protocol: Protocol) -> FloatArray:
    return curves.jaccard_indices(protocol)


_KINDS = (
    Kind("AP", _precision),
    Kind("AR", _recall),
    Kind("FROC", _sensitivity),
    Kind("MR", _miss_rate),
    Kind("JI", _jaccard),
)
KINDS = {kind.name: kind for kind in _KINDS}


def _mean_by_images(cells: FloatArray | Cells, curves: Drawn) -> float:
    """Mean of the cells, each class as often as there are images with an object of it."""
    assert not isinstance(curves, SummaryCells), "a mean by images is taken with all matches"
    often = curves.images_of_class
    assert often is not None, "joined under another protocol"
    return mean_of_defined(
        cells.repeated(often) if isinstance(cells, Cells) else np.repeat(cells, often, axis=-1)
    )


def _of_classes(cells: FloatArray | Cells, chosen: NDArray[np.bool_]) -> FloatArray | Cells:
    """Return the cells of some classes, [K]."""
    return cells.of_classes(chosen) if isinstance(cells, Cells) else cells[..., chosen]


def _cells(
    row: SummaryRow, protocol: Protocol, curves_of: CurvesOf, pooled: str | None = None
) -> tuple[Kind, FloatArray | Cells, Drawn]:
    kind = KINDS[checks.one_of(row.metric, list(KINDS), name=f"summary {row.key}: metric")]
    area = list(protocol.ignore.area_ranges).index(row.area)
    curves = curves_of(area, row.cap % len(protocol.caps), pooled)
    cells: FloatArray | Cells
    if isinstance(curves, SummaryCells):
        cells = curves.cells[kind.name]
    else:
        cells = kind.cells(curves, protocol)
    if row.iou is None:
        return kind, cells, curves
    return kind, cells[[protocol.matching.iou_thresholds.index(row.iou)]], curves


def summary_total(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> float:
    """Value of a summary row over all classes."""
    if protocol.ap.pool == "classes":
        kind, cells, _ = _cells(row, protocol, curves_of, pooled=row.classes)
        return kind.total(cells)
    kind, cells, curves = _cells(row, protocol, curves_of)
    if row.classes:
        cells = _of_classes(cells, _chosen(row, curves))
    if protocol.ap.class_mean == "by_images":
        return _mean_by_images(cells, curves) if not row.classes else kind.total(cells)
    if protocol.ap.class_mean == "nanmean" and kind.total is mean_of_defined:
        return mean_of_slots(cells)
    return kind.total(cells)


def summary_values(row: SummaryRow, protocol: Protocol, curves_of: CurvesOf) -> FloatArray:
    """Value of a summary row for each class, [K]; NaN for classes that the row does not take in."""
    kind, cells, curves = _cells(row, protocol, curves_of)
    values = kind.per_class(cells)
    return values if not row.classes else np.where(_chosen(row, curves), values, np.nan)


def _chosen(row: SummaryRow, curves: Drawn) -> NDArray[np.bool_]:
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
    """Return the area ranges and caps that summary rows read, and the kinds of metrics at each."""
    areas, caps = list(protocol.ignore.area_ranges), len(protocol.caps)
    kinds: dict[Key, dict[str, None]] = {}
    for row in rows:
        kinds.setdefault((areas.index(row.area), row.cap % caps), {})[row.metric] = None
    return {key: list(names) for key, names in kinds.items()}
