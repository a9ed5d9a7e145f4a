"""A gate for pipelines: whether metrics meet their bounds.

Conventions
-----------
- A result is the JSON object that ``boxscore evaluate --output json`` prints and a report folder holds as
  ``result.json``.
- An undefined metric meets no bound. A result with values that no evaluation gives (infinite, above 1) is
  refused.
- A baseline must have been made under the same protocol: its signature must be equal except for the
  version. Otherwise a drop could come from a change of rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boxscore._utils import checks
from boxscore.errors import FileFormatError, InputError

__all__ = ["Check", "check_baseline", "check_bounds", "parse_bound", "read_result"]


_ADVICE = "write it with boxscore evaluate --output json"

HIGHEST = 1 + 1e-9
"""No metric is higher, but for the last bits of a sum."""


class Check(NamedTuple):
    """One bound and whether it is met."""

    metric: str
    value: float | None
    rule: str
    passed: bool


def read_result(path: Path) -> dict[str, Any]:
    """Read a result in JSON, and check that it is one."""
    try:
        result = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise FileFormatError(f"{path}: a result must be JSON, each key once; {_ADVICE}.") from None
    metrics: Any = result.get("metrics") if isinstance(result, dict) else None
    numbers = metrics.values() if isinstance(metrics, dict) else [""]
    if not all(v is None or type(v) in (int, float) for v in numbers) or not isinstance(
        result.get("signature"), str
    ):
        raise FileFormatError(f"{path}: a result must have metrics and a signature; {_ADVICE}.")
    for name, value in metrics.items():
        if value is not None and not 0 <= value <= HIGHEST:  # no evaluation gives it: a bound says nothing
            rule, got = "be a number in [0, 1], or null", f"{value!s:.40}"
            raise FileFormatError(name, rule, got=got, place=str(path), cause=_ADVICE)
    return dict(result)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice: readers of JSON differ in which they take."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError
    return dict(pairs)


def parse_bound(text: str, known: Sequence[str], *, name: str) -> tuple[str, float]:
    """Read ``AP=0.35``; the metric must be known."""
    metric, sign, number = text.partition("=")
    if not sign:
        raise InputError(name, "have the form METRIC=NUMBER", got=repr(text))
    checks.one_of(metric.strip(), list(known), name=name)
    try:
        value = float(number)
    except ValueError:
        raise InputError(name, "end in a number", got=repr(text)) from None
    return metric.strip(), checks.number_between(value, -1e300, 1e300, name=f"{name} {metric.strip()}")


def check_bounds(
    metrics: Mapping[str, float | None],
    *,
    minimum: Sequence[tuple[str, float]] = (),
    maximum: Sequence[tuple[str, float]] = (),
) -> list[Check]:
    """Compare metrics with bounds; both ends are allowed values."""
    results = []
    for bounds, sign in ((minimum, ">="), (maximum, "<=")):
        for metric, bound in bounds:
            value = _defined(metrics[metric])
            met = value is not None and (value >= bound if sign == ">=" else value <= bound)
            results.append(Check(metric, value, f"{sign} {bound:g}", met))
    return results


def check_baseline(
    metrics: Mapping[str, float | None],
    signature: str,
    baseline: Mapping[str, Any],
    *,
    tolerance: float = 0.0,
    only: Sequence[str] = (),
    place: str = "the baseline",
) -> list[Check]:
    """Check that no metric, or none of ``only``, is lower than in a baseline by more than the tolerance."""
    if _rules(signature) != _rules(baseline["signature"]):
        raise InputError(
            "a baseline",
            f"have the signature {signature}",
            got=baseline["signature"],
            place=place,
            cause="scores under two protocols do not compare",
        )
    old = {key: value for key, value in baseline["metrics"].items() if _defined(value) is not None}
    chosen = [checks.one_of(key, list(metrics), name="--metrics") for key in only] or list(metrics)
    results = []
    for key in chosen:
        if key in old:
            value = _defined(metrics[key])
            floor = float(old[key]) - tolerance
            rule = f">= {old[key]:.4f}" + (f" - {tolerance:g}" if tolerance else "") + " (baseline)"
            results.append(Check(key, value, rule, value is not None and value >= floor))
    if not results:
        raise InputError("a baseline", "define a metric to compare", got=sorted(old), place=place)
    return results


def _defined(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _rules(signature: str) -> list[str]:
    return [part for part in signature.split("|") if not part.startswith("v:")]
