"""Pairs taken one to one, whatever the classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["greedy_one_to_one"]


def greedy_one_to_one(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Take pairs in the given order, each whose two sides are both still free.

    Returns
    -------
    ndarray of intp
        Positions of the pairs taken, ascending.

    Notes
    -----
    A pair that comes first for both of its sides is taken whatever the others do; so all such pairs are
    taken at once, what they use up is dropped, and the rest goes round again.
    """
    left = np.arange(len(first))
    taken = []
    while len(left):
        mine, yours = first[left], second[left]
        is_first = np.zeros(len(left), dtype=bool)
        is_first[np.unique(mine, return_index=True)[1]] = True
        also = np.zeros(len(left), dtype=bool)
        also[np.unique(yours, return_index=True)[1]] = True
        chosen = is_first & also
        taken.append(left[chosen])
        left = left[~(np.isin(mine, mine[chosen]) | np.isin(yours, yours[chosen]))]
    return np.sort(np.concatenate(taken)) if taken else left
