"""Join the numbers of ranges of scores of a class, field by field.

Conventions
-----------
- A *field* is an array of the curves of one range. A *fold* takes the field of several ranges and returns
  that of all of them. In memory there is one range, and nothing folds.
- Ranges are cut where scores differ. ``LARGEST`` and ``SMALLEST`` may fold ranges in any order and grouping,
  and may see one twice. ``JOINED`` needs all ranges in one process, the highest scores first.
- Fields are [T, K, ...], also with an axis of sets of weights in front; a :class:`Lines` has no such axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple

State = Mapping[str, Any]
"""Arrays, or :class:`Lines`, by field."""

Fold = Callable[[Sequence[Any]], Any]


class Lines(NamedTuple):
    """Numbers up to each true positive, of T thresholds and K classes."""

    values: NDArray[Any]
    """By threshold, class and descending score, [N]."""
    sizes: NDArray[np.integer[Any]]
    """[T, K]"""


def _joined(ranges: Sequence[Lines]) -> Lines:
    """Put the lines of ranges one after the other, in each threshold and class."""
    split = [np.split(one.values, np.cumsum(one.sizes.ravel())[:-1]) for one in ranges]
    segments = [segment for of_segment in zip(*split, strict=True) for segment in of_segment]
    sizes: NDArray[np.integer[Any]] = np.sum([one.sizes for one in ranges], axis=0)
    return Lines(np.concatenate(segments), sizes)


LARGEST: Fold = np.maximum.reduce
SMALLEST: Fold = np.minimum.reduce
JOINED: Fold = _joined


def folded(states: Sequence[State], folds: Mapping[str, Fold]) -> State:
    """Fold the states of ranges of scores, the highest first."""
    return {name: fold([state[name] for state in states]) for name, fold in folds.items()}
