"""AP as it is expected over all orders of the detections."""

from __future__ import annotations

import functools

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.orderless import orderless_values

KIND = Kind(
    "AP_expected",
    lambda curves, protocol: {},
    functools.partial(orderless_values, end="expected"),
    lambda protocol: {},
    of_classes_alone=True,
)
