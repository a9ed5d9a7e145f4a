"""Read additional keys of COCO records and images as columns, on request of a protocol.

Conventions
-----------
- The value of a key is a number, a flag, or a list of numbers of the same length in every record. Records
  without the key get NaN, or a list of zeros. Keys that do not occur are dropped.
- The keys are read in a second pass, so only protocols that need them pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.memory import paused_collector
from boxscore.errors import FileFormatError
from boxscore.formats import _json
from boxscore.formats._coco_records import DECODING_ERRORS, Text, text_in_memory

LARGEST_LIST = 100_000
"""Maximum length of a list of numbers."""


class _Images(msgspec.Struct):
    images: msgspec.Raw = msgspec.Raw(b"[]")


def key_columns(
    text: Text, keys: Sequence[str], path: Path, *, record: str, of_text: bool = False
) -> dict[str, NDArray[Any]]:
    """Read some keys of an array of records as columns: [N] or [N, n] numbers, or [N] texts."""
    if not keys:
        return {}
    # Decode these keys only; msgspec skips all other text without creating objects.
    names = {f"key{number}": key for number, key in enumerate(keys)}
    fields: list[tuple[str, Any, Any]] = [(name, Any, None) for name in names]
    kind = msgspec.defstruct("_Keys", fields, rename=names, gc=False)
    decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
    values: dict[str, list[Any]] = {key: [] for key in keys}
    # Read one slice at a time to keep only the values of the keys in memory.
    try:
        with paused_collector():
            for records in _json.decode_records(text.chunks(0, text.size), decode, text.whole):
                for name, key in names.items():
                    values[key] += [getattr(one, name) for one in records]
    except DECODING_ERRORS as error:
        whole = (f"{record}s", "a list")
        raise _json.explain(error, path, record=record, text=text.whole(), whole=whole) from None
    # Drop keys that do not occur.
    make = _make_text_column if of_text else _make_column
    columns = {key: make(given, key, path, record) for key, given in values.items()}
    return {key: column for key, column in columns.items() if column is not None}


def image_key_columns(path: Path, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read some keys of the images of a COCO file as columns, in file order."""
    if not keys:
        return {}
    with _json.open_binary(path) as file:
        images = msgspec.json.decode(file.read().removeprefix(b"\xef\xbb\xbf"), type=_Images).images
    return key_columns(text_in_memory(images), keys, path, record="image")


def _make_column(given: list[Any], key: str, path: Path, record: str) -> NDArray[np.float64] | None:
    """Convert the values of a key to a column; None if the key does not occur."""
    length = max((len(value) for value in given if isinstance(value, list)), default=0)
    if all(value is None for value in given):
        return None
    missing: Any = [0.0] * length if length else np.nan
    for row, value in enumerate(given):
        if value is not None and not (_is_list(value, length) if length else _is_number(value)):
            rule = f"be {length} numbers, as in other records" if length else "be a number"
            place = f"{record} {row} of {path}"
            raise FileFormatError(key, rule, got=repr(value)[:80], place=place)
    column = np.array([missing if value is None else value for value in given], dtype=np.float64)
    if length:
        checks.finite(column, name=key, place=lambda row: f"{record} {row} of {path}")
    return column


def _make_text_column(given: list[Any], key: str, path: Path, record: str) -> NDArray[np.object_] | None:
    """Convert texts or integers to a column, with None for missing ones; None if the key does not occur."""
    if all(value is None for value in given):
        return None
    for row, value in enumerate(given):
        if value is not None and (not isinstance(value, (str, int)) or isinstance(value, bool)):
            place = f"{record} {row} of {path}"
            raise FileFormatError(key, "be a text or a whole number", got=repr(value)[:80], place=place)
    column = np.empty(len(given), dtype=object)
    column[:] = given
    return column


def _is_list(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length <= LARGEST_LIST and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= checks.LARGEST_COORDINATE
