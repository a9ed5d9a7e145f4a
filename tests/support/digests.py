"""Arrays of a result against the hashes of a tool's, in which undefined cells are -1."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore import Evaluation


def digest(array: NDArray[Any]) -> str:
    """Hash an array as the figures do."""
    filled = np.ascontiguousarray(np.where(np.isnan(array), -1.0, array), dtype=np.float64)
    return hashlib.sha256(filled.tobytes()).hexdigest()


def same_arrays(result: Evaluation, expected: Mapping[str, Any]) -> None:
    """Check that precision and recall have the expected hashes."""
    arrays = result.arrays()
    assert digest(arrays["precision"]) == expected["precision"]
    assert digest(arrays["recall"]) == expected["recall"]
