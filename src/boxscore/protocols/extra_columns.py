"""Declare columns of matches that only one rule reads; all other code takes them by their axes.

Conventions
-----------
- A field of the rule names its columns (``rule(..., columns=...)``); all of them together are
  ``protocols.protocol.EXTRA_COLUMNS``.
- ``Matches.extra`` has a column by its name if the protocol asks for it, and so has the packed form.
- Code that takes, orders, merges, packs, cuts, saves or checks columns goes over the declarations and knows
  no names (:mod:`boxscore.matching.matches`). Code that makes or reads one column imports its declaration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple, record

Axis = Literal["detection", "pair", "truth", "class_image"]


class ClassImageRows(NamedTuple):
    """A column of the axis ``class_image``: N rows, each of a class and an image that have anything."""

    category: NDArray[np.integer[Any]]
    """Row numbers, ascending, [N]."""
    image: NDArray[np.integer[Any]]
    """Row numbers, ascending in each class, [N]."""
    values: NDArray[Any]
    """[N, ...]"""


def _none(protocol: Any) -> tuple[int, ...]:
    """Return the sizes of no axes."""
    return ()


@record(frozen=True, eq=False)
class ExtraColumn:
    """Everything that code must know about a column to carry it.

    Attributes
    ----------
    name : str
    axis : {"detection", "pair", "truth", "class_image"}
        The axis of its rows. ``class_image`` has a row for each class and image that have anything, counted
        over all their detections: leaving out detections drops the column.
    kind : {"bool", "float", "whole", "bits"}
        Whole numbers are never negative. Bits are of pairs, over thresholds at each area range: [P, A].
    asked_for : callable
        Whether a protocol asks for it.
    shape : callable
        Sizes of its other axes under a protocol.
    in_parts : bool
        Whether scores read it. A column that is only an intermediate step stays out of saved parts.
    most : float
        Largest value of floats; none is below 0.
    """

    name: str
    axis: Axis
    kind: Literal["bool", "float", "whole", "bits"]
    asked_for: Callable[[Any], bool]
    shape: Callable[[Any], tuple[int, ...]] = _none
    in_parts: bool = True
    most: float = sys.float_info.max

    def of(self, extra: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        """Return the column among others; None where it is not there."""
        return extra.get(self.name)

    def rows_of(self, extra: Mapping[str, NDArray[Any]]) -> ClassImageRows | None:
        """Return a column of classes and images with its rows; None where it is not there."""
        if self.name not in extra:
            return None
        return ClassImageRows(*(extra[name] for name in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its arrays: its own, for ``class_image`` after those of the row numbers of both."""
        if self.axis == "class_image":
            return f"{self.name}:category", f"{self.name}:image", self.name
        return (self.name,)
