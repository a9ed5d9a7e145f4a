"""AP if every false positive came before every true one: the least that an order can give."""

from __future__ import annotations

import functools

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.orderless import orderless_values

KIND = Kind(
    "AP_lowest",
    lambda curves, protocol: {},
    functools.partial(orderless_values, end="lowest"),
    lambda protocol: {},
    of_classes_alone=True,
)
