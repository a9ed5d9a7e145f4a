"""The summary metrics of ``COCOeval.summarize`` and the lines it prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.protocol import summary_title


class _Row(NamedTuple):
    ap: bool
    iou: float | None = None
    area: str = "all"
    cap: int | None = -1  # position among the caps; None is the cap 100, whatever the caps are


_DETECTION_ROWS = (
    _Row(True, cap=None),
    _Row(True, 0.5, cap=2),
    _Row(True, 0.75, cap=2),
    *(_Row(True, area=area, cap=2) for area in ("small", "medium", "large")),
    *(_Row(False, cap=cap) for cap in (0, 1, 2)),
    *(_Row(False, area=area, cap=2) for area in ("small", "medium", "large")),
)
_KEYPOINT_ROWS = tuple(
    _Row(ap, iou, area)
    for ap in (True, False)
    for iou, area in ((None, "all"), (0.5, "all"), (0.75, "all"), (None, "medium"), (None, "large"))
)
KEYPOINT_CAP = 20


def summary(evaluation: dict[str, Any], params: Any) -> NDArray[np.float64]:
    """Compute and print the twelve numbers, or the ten of keypoints."""
    keypoints = params.iouType == "keypoints"
    cap_of: Callable[[_Row], Any]
    if keypoints:
        rows: Sequence[_Row] = _KEYPOINT_ROWS
        cap_of = lambda row: KEYPOINT_CAP  # noqa: E731 - two one-word rules side by side
    else:
        rows = _DETECTION_ROWS
        cap_of = lambda row: 100 if row.cap is None else params.maxDets[row.cap]  # noqa: E731
    stats = np.zeros(len(rows))
    for position, row in enumerate(rows):
        stats[position] = _row_value(row, cap_of(row), evaluation, params)
    return stats


def _row_value(row: _Row, cap: Any, evaluation: dict[str, Any], params: Any) -> Any:
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
    print(f" {summary_title('AP' if row.ap else 'AR', iou, row.area, f'{cap:d}')} = {mean:0.3f}")
    return mean
