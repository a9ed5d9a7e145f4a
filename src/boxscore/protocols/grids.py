"""Build grids of IoU thresholds and recall points, to the last bit.

Conventions
-----------
- ``{start, stop, count}`` is ``numpy.linspace``, as in pycocotools: decimal literals differ from it in
  one IoU threshold and ten recall points.
- ``{start, stop, step, rule = "arange"}`` is ``numpy.arange``, as in the Python ports of the VOC devkit.
- ``{start, stop, count, rule = "float32"}`` is ``torch.linspace`` in single precision, as in torchmetrics.
- ``{start, stop, count, rule = "hundredths"}`` is ``i / (count - 1)`` scaled, as in TIDE.
- ``{start, stop, step, rule = "colon"}`` is MATLAB's ``start:step:stop``, as in the devkit itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore.errors import InputError, ProtocolError

MOST_VALUES = 100_000
"""Upper limit on the length of a grid, so that a mistyped step does not exhaust memory."""

MOST_FALSE_POSITIVES = 1e9
"""Per image; far more than any detector produces."""

GridRule = Literal["linspace", "float32", "hundredths", "arange", "colon"]


def grid(spec: Any, *, name: str) -> tuple[float, ...]:
    """Build a grid from a list of numbers, ``{start, stop, count}`` or ``{start, stop, step, rule}``."""
    # Keep a list as it is. A mapping names the formula for its values, since formulas differ in the last bit.
    if isinstance(spec, (list, tuple)):
        values = [checks.number_between(value, 0, 1, name=name) for value in spec]
    elif isinstance(spec, Mapping):
        known = {"start", "stop", "count", "step", "rule"}
        for key in spec:
            if key not in known:
                raise ProtocolError(checks.unknown_key(f"{name}.{key}", key, known))
        # Check the ends and the rule.
        start = checks.number_between(spec.get("start", 0), 0, 1, name=f"{name}.start")
        stop = checks.number_between(spec.get("stop", 1), 0, 2, name=f"{name}.stop")
        rule = checks.one_of(str(spec.get("rule", "linspace")), get_args(GridRule), name=f"{name}.rule")
        # Limit the count or step before any value is made.
        if rule in _COUNTED:
            count = checks.whole_number(spec.get("count"), 1, name=f"{name}.count")
            _check_count(count, name)
            values = _COUNTED[rule](start, stop, count)
        else:
            step = checks.number_between(spec.get("step"), 0, 1, name=f"{name}.step", open_low=True)
            _check_count((stop - start) / step, name)
            values = np.arange(start, stop, step).tolist() if rule == "arange" else colon(start, step, stop)
    else:
        raise ProtocolError(name, "be a list of numbers or {start, stop, count}", got=repr(spec))
    # Require strictly ascending values, since they are searched by bisection.
    if not values:
        raise ProtocolError(name, "have at least one value", got="none")
    if any(later <= earlier for earlier, later in itertools.pairwise(values)):
        raise ProtocolError(name, "be ascending, each value once", got=values)
    return tuple(values)


def _check_count(count: float, name: str) -> None:
    if count > MOST_VALUES:
        raise ProtocolError(name, f"have at most {MOST_VALUES} values", got=f"{count:g}")


def _single_precision(start: float, stop: float, count: int) -> list[float]:
    """Return ``torch.linspace``: up from start to the middle, down from stop after it; one rounding (FMA)."""
    # torch fuses multiply and add (FMA): in float64 the product is exact, so only one rounding occurs.
    step = np.float64((np.float32(stop) - np.float32(start)) / np.float32(max(count - 1, 1)))
    number = np.arange(count)
    values = np.where(number < count // 2, start + step * number, stop - step * (count - 1 - number))
    return [float(value) for value in values.astype(np.float32)]


_COUNTED: dict[str, Callable[[float, float, int], list[float]]] = {
    "linspace": lambda start, stop, count: np.linspace(start, stop, count).tolist(),
    "float32": _single_precision,
    "hundredths": lambda start, stop, count: [
        start + (stop - start) * (i / max(count - 1, 1)) for i in range(count)
    ],
}


def colon(start: float, step: float, stop: float) -> list[float]:
    """Return MATLAB's ``start:step:stop``: lower half counted up from start, upper half down from stop."""
    last = round((stop - start) / step)
    lower = [start + i * step for i in range((last + 1) // 2)]
    middle = [(start + stop) / 2] if last % 2 == 0 else []
    upper = [stop - i * step for i in range((last + 1) // 2)][::-1]
    return lower + middle + upper


def fppi_points(values: Any, *, name: str) -> tuple[float, ...]:
    """Check numbers of false positives per image; return them sorted and unique."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        raise InputError(name, "be a list of numbers", got=repr(values))
    points = {checks.number_between(value, 0, MOST_FALSE_POSITIVES, name=name) for value in values}
    if not 1 <= len(points) <= MOST_VALUES:
        raise InputError(name, f"have 1 to {MOST_VALUES} values", got=len(points) or "none")
    return tuple(sorted(points))


def grid_text(values: tuple[float, ...]) -> str:
    """Format a grid for the signature; grids that differ in one bit have different texts."""
    if len(values) > 2 and values == tuple(np.linspace(values[0], values[-1], len(values)).tolist()):
        return f"{_number_text(values[0])}:{_number_text(values[-1])}/{len(values)}"
    if len(values) == 1:
        return _number_text(values[0])
    return ",".join(map(number_text, values))


def number_text(value: float) -> str:
    """Format a number as briefly as possible without losing a bit."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _number_text(value: float) -> str:
    return f"{value:.2f}" if float(f"{value:.2f}") == value else repr(value)
