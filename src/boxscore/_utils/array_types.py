"""Define array types for annotations, and make results read-only.

Conventions
-----------
Read-only results are still dicts, lists and arrays for JSON, ``==`` and ``isinstance``. ``dict(metrics)``,
``list(labels)``, ``array.copy()``, ``metrics | {...}``, deep copies and unpickled results are mutable copies.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
"""Ids, counts, and rows of tables."""

KeyArray = NDArray[np.uint64]
"""Sort keys."""

Positions = NDArray[np.intp]
"""Indices into an array, as returned by NumPy functions."""


# ---------------------------------------------------------------- read-only results


Value = TypeVar("Value")


def _refuse(self: Any, *_: object, **__: object) -> NoReturn:
    """Raise on any change."""
    example = "dict(result.metrics)" if isinstance(self, dict) else "list(result.labels)"
    raise TypeError(f"results are read-only: change a copy, such as {example}")


class ReadOnlyDict(dict[Any, Any]):
    """A read-only dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedDict, (dict(self),)  # the only dict type that torch.load(weights_only=True) accepts


class ReadOnlyList(list[Any]):
    """A read-only list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy(list(self), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


def read_only(value: Value) -> Value:
    """Return a value with read-only dicts, lists and arrays."""
    return _read_only(value)  # type: ignore[no-any-return]


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif type(value) is dict:
        return ReadOnlyDict({key: _read_only(item) for key, item in value.items()})
    elif type(value) is list:
        return ReadOnlyList([_read_only(item) for item in value])
    elif isinstance(value, tuple):
        parts = [_read_only(item) for item in value]
        if any(part is not item for part, item in zip(parts, value, strict=True)):
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value


def unchangeable(result: Value) -> Value:
    """Make all arrays, dicts and lists in the attributes of a result read-only."""
    for name, value in vars(result).items():
        read_only_value = _read_only(value)
        if read_only_value is not value:
            object.__setattr__(result, name, read_only_value)
    return result
