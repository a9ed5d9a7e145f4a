"""Declare columns of matches that only one rule reads; all other code takes them by their axes.

Conventions
-----------
- A field of the rule names its columns (``rule(..., columns=...)``); all of them together are
  ``protocols.protocol.EXTRA_COLUMNS``.
- A column is there where the protocol asks for it, by its name in ``Matches.extra`` and in the packed form.
- Taking, ordering, merging, packing, cutting, saving and checking go over the declarations, and know no name:
  :mod:`boxscore.matching.extra`. Who makes a column and who reads it import its declaration.
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
    """What is to be known of a column to carry it.

    Attributes
    ----------
    name : str
    axis : {"detection", "pair", "truth", "class_image"}
        Whose rows it has: those of the matches, or, ``class_image``, rows that are counted of all
        detections of a class and an image: leaving out detections drops it.
    kind : {"bool", "float", "whole", "bits"}
        Whole numbers are never negative. Bits are of pairs, over thresholds at each area range: [P, A].
    asked_for : callable
        Whether a protocol asks for it.
    shape : callable
        Sizes of its other axes under a protocol.
    in_parts : bool
        Whether scores read it; a column that is only counted from stays out of parts.
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
        """Names of its arrays; one of classes and images has the numbers of both beside its values."""
        if self.axis == "class_image":
            return f"{self.name}:category", f"{self.name}:image", self.name
        return (self.name,)
