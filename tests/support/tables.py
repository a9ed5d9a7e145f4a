"""Tables compared to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np


def same_bits(first: Any, second: Any) -> None:
    """Compare every column of two tables, bit by bit, and their vocabularies."""
    assert type(first) is type(second)
    for column in first.schema.needed:
        one, other = getattr(first, column.name), getattr(second, column.name)
        assert one.dtype == other.dtype, column.name
        assert one.tolist() == other.tolist(), column.name
    for column in first.schema.instances:
        one, other = first.instances[column.name], second.instances[column.name]
        assert (one is None) == (other is None), column.name
        if one is not None:
            values = [part.given if column.form == "masks" else part.tolist() for part in (one, other)]
            assert values[0] == values[1], column.name
    for vocabulary in ("images", "categories"):
        one, other = getattr(first, vocabulary), getattr(second, vocabulary)
        assert one.ids.tolist() == other.ids.tolist()
    assert first.images.file_names.tolist() == second.images.file_names.tolist()
    assert np.array_equal(first.images.sizes, second.images.sizes, equal_nan=True)
    assert first.categories.names.tolist() == second.categories.names.tolist()
    assert first.units == second.units
