"""AP if every true positive came before every false one: the most that an order can give."""

from __future__ import annotations

import functools

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.orderless import orderless_values

KIND = Kind(
    "AP_highest",
    lambda curves, protocol: {},
    functools.partial(orderless_values, end="highest"),
    lambda protocol: {},
    of_classes_alone=True,
)
