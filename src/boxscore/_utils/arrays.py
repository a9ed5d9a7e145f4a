"""Names for the types of arrays that most modules speak of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
"""Whole numbers of things."""
