"""Compute and print the summary metrics of ``COCOeval.summarize``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.summary import summary_title


class Row(NamedTuple):
    """The values that a line averages."""

    ap: bool
    iou: float | None = None
    area: str = "all"
    cap: int | None = -1  # position among the caps; None is the cap 100, for any caps


_DETECTION_ROWS = (
    Row(True, cap=None),
    Row(True, 0.5, cap=2),
    Row(True, 0.75, cap=2),
    *(Row(True, area=area, cap=2) for area in ("small", "medium", "large")),
    *(Row(False, cap=cap) for cap in (0, 1, 2)),
    *(Row(False, area=area, cap=2) for area in ("small", "medium", "large")),
)
_KEYPOINT_ROWS = tuple(
    Row(ap, iou, area)
    for ap in (True, False)
    for iou, area in ((None, "all"), (0.5, "all"), (0.75, "all"), (None, "medium"), (None, "large"))
)
KEYPOINT_CAP = 20


def summary(evaluation: dict[str, Any], params: Any, say: Callable[[str], None]) -> NDArray[np.float64]:
    """Compute and print the twelve numbers, or the ten of keypoints."""
    if params.iouType == "keypoints":
        return averages(((row, KEYPOINT_CAP) for row in _KEYPOINT_ROWS), evaluation, params, say)
    rows = ((row, 100 if row.cap is None else params.maxDets[row.cap]) for row in _DETECTION_ROWS)
    return averages(rows, evaluation, params, say)


def averages(
    rows: Iterable[tuple[Row, Any]], evaluation: dict[str, Any], params: Any, say: Callable[[str], None]
) -> NDArray[np.float64]:
    """Compute and print the number of each row and cap in turn; a missing cap stops the rest."""
    stats = []
    for row, cap in rows:
        value, line = row_value(row, cap, evaluation, params)
        say(line)
        stats.append(value)
    return np.array(stats, dtype=np.float64)


def row_value(row: Row, cap: Any, evaluation: dict[str, Any], params: Any) -> tuple[Any, str]:
    """Return one number, -1 for undefined, and its printed line."""
    areas = [a for a, label in enumerate(params.areaRngLbl) if label == row.area]
    caps = [m for m, value in enumerate(params.maxDets) if value == cap]
    values = evaluation["precision" if row.ap else "recall"]
    if row.iou is None:
        iou = f"{params.iouThrs[0]:0.2f}:{params.iouThrs[-1]:0.2f}"
    else:
        iou = f"{row.iou:0.2f}"
        values = values[np.where(row.iou == params.iouThrs)[0]]
    values = values[..., areas, caps]
    defined = values[values > -1]
    mean = np.mean(defined) if len(defined) else -1
    return mean, f" {summary_title('AP' if row.ap else 'AR', iou, row.area, f'{cap:d}')} = {mean:0.3f}"
