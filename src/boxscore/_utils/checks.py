"""Check values, with one helper per rule and a common form of messages.

Conventions
-----------
- Helpers take the value first, and ``name``, as known to the user, as a keyword.
- Messages read ``<name> must <rule>. Got <value>[ in <place>][; <likely cause>].``
- Helpers return the checked value, converted to the type used for computation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore.errors import InputError

LARGEST_COORDINATE = 1e100
"""Maximum coordinate; areas of larger boxes overflow, and infinity over infinity would match anything."""

LARGEST_WHOLE_NUMBER = 2**63 - 1
"""Maximum integer in an array."""

MOST_WORKERS = 1024
"""Maximum number of processes or threads; a larger number is probably a typo."""

MOST_BINS = 1_000_000

LONGEST_NUMBER = 40
"""Maximum number of digits of an integer in a message."""

Place = Callable[[int], str]
"""Return the place of row ``i`` of a table for messages, such as ``annotation 17 (id 512) of gt.json``."""


GIVE_SIZES = (
    "pass the image sizes: --image-folder DIR, or --image-sizes FILE.csv or WIDTHxHEIGHT (in Python "
    "image_folder= or image_sizes=)"
)
"""Advice if image sizes are unknown."""

MOST_KNOWN = 100
"""Maximum number of names that a message lists completely."""

MOST_COMPARED = 1000
"""Maximum number of known names to compare with a misspelled one."""


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Suggest the known name closest to a misspelled one, or list the known names."""
    names = [str(name) for name in known]
    matches = nearest(value, names[:MOST_COMPARED])
    if matches or not names:
        return matches or "there is none"
    if len(names) > MOST_KNOWN:
        return f"known: {', '.join(names[:8])}, ... ({len(names):,} in all)"
    return f"known: {', '.join(names)}"


def nearest(value: object, names: Sequence[str]) -> str:
    """Suggest the known name closest to a misspelled one, or return an empty text."""
    import difflib

    matches = difflib.get_close_matches(str(value), names, n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def unknown_key(name: str, key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown key of a protocol or run configuration."""
    return str(InputError("a key", "be known", got=name, cause=did_you_mean(key, sorted(known))))


def one_of(value: str, known: Sequence[str], *, name: str) -> str:
    """Check that a string is one of a fixed set."""
    if value not in known:
        raise InputError(
            name,
            f"be one of {', '.join(map(repr, known))}",
            got=repr(value),
            cause=nearest(value, known),
        )
    return value


def number_between(
    value: Any, low: float, high: float, *, name: str, open_low: bool = False, place: str = ""
) -> float:
    """Check that a number is finite and in [low, high], or (low, high] with ``open_low``."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not (low < value <= high if open_low else low <= value <= high):
        rule = f"be a number in {'(' if open_low else '['}{low:g}, {high:g}]"
        raise InputError(name, rule, got=_show_value(value), place=place)
    return float(value)


def whole_number(
    value: Any, low: int, *, name: str, high: int = LARGEST_WHOLE_NUMBER, place: str = ""
) -> int:
    """Check that a value is an integer in [low, high]."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or not low <= value <= high:
        rule = f"be a whole number >= {low}"
        if is_whole and value > high:
            rule = f"be a whole number <= {high:,}"
        raise InputError(name, rule, got=_show_value(value), place=place)
    return int(value)


def _show_value(value: Any) -> str:
    """Format a value for messages; None is a missing key of a TOML file."""
    if isinstance(value, int) and abs(value) >= 10**LONGEST_NUMBER:
        return f"one of more than {LONGEST_NUMBER} digits"
    return "none" if value is None else repr(value)


def plain_name(value: str, *, name: str, place: str = "") -> str:
    """Check that a name from a file cannot leave its folder: no separators, ``..`` or NUL."""
    if value in ("", ".", "..") or any(mark in value for mark in "/\\\0"):
        raise InputError(name, "be a plain name without / or ..", got=repr(value), place=place)
    return value


def plain_number(text: str) -> float:
    """Parse a decimal number; reject ``3_7`` and non-ASCII digits, which ``float`` accepts."""
    if "_" in text or not text.isascii():
        raise ValueError(f"not a plain number: {text!r}")
    return float(text)


def any_array(values: Any, *, name: str) -> NDArray[Any]:
    """Convert to an array; reject masked arrays, because NumPy would drop the mask."""
    if type(values) is np.ndarray:
        return values
    masked = _masked_array()
    if masked is not None:
        kinds = {*map(type, values)} if isinstance(values, (list, tuple)) else {type(values)}
        if any(issubclass(kind, masked) for kind in kinds):
            cause = "select the rows that count, and pass their .data"
            raise InputError(name, "not be masked", got="a masked array", cause=cause)
    return np.asarray(values)


def _masked_array() -> type | None:
    """Return NumPy's type of masked arrays; None if it is not imported."""
    module = sys.modules.get("numpy.ma")
    return None if module is None else module.MaskedArray


def float_array(values: ArrayLike, *, name: str, columns: int | None = None) -> NDArray[np.float64]:
    """Convert to a float64 array [N], or [N, columns] if given; an empty list fits both."""
    shape = "have shape [N]" if columns is None else f"have shape [N, {columns}]"
    array = numbers(values, name=name, rule=f"be numbers and {shape}")
    if array.size == 0 and array.ndim <= 2 and (columns is None or array.shape[-1] in (0, columns)):
        return np.empty((0,) if columns is None else (0, columns))
    if array.ndim != (1 if columns is None else 2) or (columns is not None and array.shape[1] != columns):
        raise InputError(name, shape, got=f"shape {list(array.shape)}")
    return array


_KINDS = {
    "c": "complex numbers",
    "M": "dates",
    "m": "spans of time",
    "S": "bytes",
    "U": "text",
    "V": "records",
}
_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def numbers(values: Any, *, name: str, rule: str = "be numbers") -> NDArray[np.float64]:
    """Convert to a float64 array of any shape; reject dates and text, which NumPy would convert."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    try:
        array = any_array(values, name=name)
        _refuse_no_numbers(array, name=name, rule=rule)
        return array.astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(name, rule, got=_first_words(error)) from None


def _refuse_no_numbers(array: NDArray[Any], *, name: str, rule: str) -> None:
    kind = array.dtype.kind
    if kind in _KINDS:
        for item in array.ravel().tolist() if kind in "US" else ():
            float(item)  # raises an error that names the value
        example = f", such as {array.flat[0].item()!r}" if kind in "US" and array.size else ""
        raise InputError(name, rule, got=_KINDS[kind] + example)
    for item in array.ravel().tolist() if kind == "O" else ():
        if isinstance(item, _NO_NUMBERS):
            raise InputError(name, rule, got=repr(item))


def flags(values: Any, *, name: str) -> NDArray[np.bool_]:
    """Convert to a new bool array; nonzero numbers are true."""
    rule = "be true or false, or numbers"
    array = any_array(values, name=name)
    if array.dtype.kind != "b":
        array = numbers(array, name=name, rule=rule)
        if np.isnan(array).any():
            raise InputError(name, rule, got="nan")
    return np.array(array, dtype=bool)


def counts(values: Any, *, name: str) -> NDArray[np.int64]:
    """Convert integers of any type to a new int64 array."""
    rule = "be whole numbers"
    array = any_array(values, name=name)
    if array.dtype.kind not in "biu":
        exact = numbers(array, name=name, rule=rule)
        bad = ~((np.abs(exact) < 2.0**63) & (np.floor(exact) == exact))
        if bad.any():
            raise InputError(name, rule, got=exact[bad][0])
    elif array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(name, f"be at most {np.iinfo(np.int64).max}", got=array.max())
    return np.array(array, dtype=np.int64)


def _first_words(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")


def same_length(length: int, *, of: str, **columns: Sequence[Any] | NDArray[Any]) -> None:
    """Check that every column has this length."""
    for name, column in columns.items():
        if len(column) != length:
            raise InputError(name, f"be as long as {of} ({length})", got=f"length {len(column)}")


def finite(
    values: NDArray[np.float64],
    *,
    name: str,
    place: Place | None = None,
    limit: float = LARGEST_COORDINATE,
    cause: str = "",
) -> None:
    """Check that all numbers [N] or [N, C] are finite and within the limit."""
    if not values.size or -limit <= values.min() <= values.max() <= limit:  # NaN compares false
        return
    good = np.abs(values) <= limit
    row = int(np.argmin(good if good.ndim == 1 else good.all(axis=1)))
    got = values[row] if values.ndim == 1 else values[row].tolist()
    where = place(row) if place else f"row {row}"
    rule = f"be at most {limit:g} in size" if np.isfinite(values[row]).all() else "be finite"
    raise InputError(name, rule, got=got, place=where, cause=cause)


def sizes_not_negative(
    sizes: NDArray[np.float64],
    *,
    name: str = "boxes",
    place: Place | None = None,
    cause: str = "are these x1,y1,x2,y2?",
    lowest: float = 0.0,
) -> None:
    """Check that widths and heights [N, 2] are not negative, or not below ``lowest``."""
    if not sizes.size or sizes.min() >= lowest:
        return
    row, side = (int(i) for i in np.argwhere(sizes < lowest)[0])
    where = place(row) if place else f"row {row}"
    raise InputError(
        name,
        f"have {('width', 'height')[side]} >= 0",
        got=f"{('width', 'height')[side]} {sizes[row, side]}",
        place=where,
        cause=cause,
    )
