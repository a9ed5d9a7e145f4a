"""Cohen's kappa and Krippendorff's nominal alpha by their definitions, in fractions: each pair of values at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["alpha", "kappa"]


def kappa(first: Sequence[int], second: Sequence[int]) -> Fraction | None:
    """Return the agreement of two annotators beyond chance; None where chance alone makes them agree.

    Chance draws a value of each, of all items independently.
    """
    count = len(first)
    if not count:
        return None
    observed = Fraction(sum(a == b for a, b in zip(first, second, strict=True)), count)
    by_chance = Fraction(sum(a == b for a, b in itertools.product(first, second)), count**2)
    return None if by_chance == 1 else (observed - by_chance) / (1 - by_chance)


def alpha(units: Sequence[Sequence[int]]) -> Fraction | None:
    """Return one minus the disagreement within units by that among all values; None where all are the same.

    A unit has the values that annotators gave; one value alone is not compared with anything.
    """
    compared = [unit for unit in units if len(unit) > 1]
    values = [value for unit in compared for value in unit]
    within = sum(
        (
            Fraction(sum(a != b for a, b in itertools.permutations(unit, 2)), len(unit) - 1)
            for unit in compared
        ),
        Fraction(0),
    )
    among = sum(a != b for a, b in itertools.permutations(values, 2))
    if not among:
        return None
    return 1 - (within / len(values)) / Fraction(among, len(values) * (len(values) - 1))
