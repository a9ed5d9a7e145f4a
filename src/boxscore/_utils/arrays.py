"""Names for the types of arrays that most modules speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "Counts", "FloatArray", "Positions"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]
"""Whole numbers of things."""
Positions = NDArray[np.intp]
"""Row numbers, or positions in an order."""
