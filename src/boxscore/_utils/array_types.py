"""Name types of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
"""Ids, counts, and rows of tables."""

KeyArray = NDArray[np.uint64]
"""Numbers whose order is that of what they are made of."""

Positions = NDArray[np.intp]
"""Indices into an array, as NumPy's functions return them."""
