"""Store masks of any form as flat columns: texts, numbers and points of all masks concatenated.

A million masks need no Python object each: they are read, pickled, joined and selected as arrays, and
converted back to the given form on request.

Conventions
-----------
- ``kind`` is the form of a row; its content starts at ``start`` and is ``length`` characters of ``text``,
  numbers of ``numbers``, or parts of polygons.
- The content is checked on rasterization, not here.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.records import NamedTuple
from boxscore.errors import InputError
from boxscore.extensions.masks.run_lengths import code_text

MISSING, TEXT, BYTES, LIST, POLYGONS = range(5)
"""No mask, a compressed RLE given as ``str`` or as ``bytes``, an uncompressed RLE, polygons."""

LARGEST_SIDE = 2e6
"""Sides are clipped to this value, which is rejected on use."""

RULE = "be polygons, an RLE {size, counts} or a binary array [H, W]"

Lengths = NDArray[np.int64]


class MaskColumns(NamedTuple):
    """Masks as columns."""

    kind: NDArray[np.uint8]  # [N]
    size: NDArray[np.int64]  # [N, 2], height and width; -1 if unknown
    start: Lengths  # [N]
    length: Lengths  # [N]
    text: bytes
    numbers: NDArray[np.int64]
    part_start: Lengths  # [P], offset in ``points``
    part_count: Lengths  # [P], numbers per part: x and y in turn
    points: NDArray[np.float64]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickle the text without a copy if the protocol allows."""
        columns: dict[str, Any] = self._asdict()
        if protocol >= 5:
            columns["text"] = pickle.PickleBuffer(self.text)
        return _unpickled, (*columns.values(),)

    def given(self, row: int) -> Any:
        """Return a mask in the form in which it was given."""
        kind, low, high = int(self.kind[row]), int(self.start[row]), int(self.start[row] + self.length[row])
        if kind == MISSING:
            return None
        if kind == POLYGONS:
            starts, counts = self.part_start[low:high].tolist(), self.part_count[low:high].tolist()
            return [self.points[at : at + count].tolist() for at, count in zip(starts, counts, strict=True)]
        counts = self.numbers[low:high].tolist() if kind == LIST else self.text[low:high]
        if kind == TEXT:
            counts = counts.decode("utf-8")
        return {"size": self.size[row].tolist(), "counts": counts}

    def take(self, rows: NDArray[np.intp]) -> MaskColumns:
        """Return a selection of rows; the flat contents stay those of all rows."""
        return self._replace(
            kind=self.kind[rows], size=self.size[rows], start=self.start[rows], length=self.length[rows]
        )

    def texts(self, rows: NDArray[np.intp]) -> list[bytes]:
        """Return the texts of rows that are compressed RLEs."""
        text, low = self.text, self.start[rows]
        bounds = map(slice, low.tolist(), (low + self.length[rows]).tolist())
        return list(map(text.__getitem__, bounds))

    @staticmethod
    def joined(parts: Sequence[MaskColumns]) -> MaskColumns:
        """Concatenate the rows of several columns."""
        if len(parts) == 1:
            return parts[0]
        # Shift the start of each row by the content of its kind in previous parts; ``before`` has an entry
        # per kind.
        starts, before = [], np.zeros(5, dtype=np.int64)
        for part in parts:
            starts.append(part.start + before[part.kind])
            before += [0, len(part.text), len(part.text), len(part.numbers), len(part.part_start)]
        # Shift parts of polygons in the joined points as well.
        shift = np.cumsum([0, *(len(part.points) for part in parts)])
        return MaskColumns(
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.size for part in parts]),
            np.concatenate(starts),
            np.concatenate([part.length for part in parts]),
            b"".join([part.text for part in parts]),
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.part_start + by for part, by in zip(parts, shift, strict=False)]),
            np.concatenate([part.part_count for part in parts]),
            np.concatenate([part.points for part in parts]),
        )

    @property
    def weight(self) -> NDArray[np.int64]:
        """Approximate amount of numbers per mask, [N]."""
        weight = self.length.copy()
        of_polygons = np.flatnonzero(self.kind == POLYGONS)
        if len(of_polygons):
            before = np.append(self.part_start, len(self.points))
            low = self.start[of_polygons]
            weight[of_polygons] = before[low + self.length[of_polygons]] - before[low]
        return weight


def _unpickled(*columns: Any) -> MaskColumns:
    made = MaskColumns(*columns)
    return made._replace(text=bytes(made.text))


def columns_of(masks: Iterable[Any], image_sizes: ArrayLike | None, place: Place) -> MaskColumns:
    """Make columns from masks that are Python objects; raise for any other object."""
    # Polygons get the sizes of their images; other masks have their own.
    given = list(masks)
    size = np.full((len(given), 2), -1, dtype=np.int64)
    if image_sizes is not None:
        known = checks.float_array(image_sizes, name="image sizes", columns=2)
        checks.same_length(len(given), of="masks", image_sizes=known)
        size = whole_sizes(known)
    # Collect the contents by form: texts, numbers, rows of polygons, and the runs of arrays.
    kind = np.full(len(given), MISSING, dtype=np.uint8)
    count = np.zeros(len(given), dtype=np.int64)
    texts: list[bytes] = []
    numbers: list[NDArray[np.int64]] = []
    polygons: list[int] = []
    arrays: list[tuple[int, NDArray[np.int64]]] = []
    for row, mask in enumerate(given):
        # A dict is an RLE, a list is polygons, anything else must be a binary array.
        if mask is None:
            continue
        if isinstance(mask, dict):
            kind[row], size[row], counts = _plain_code(mask, place(row))
            (numbers if kind[row] == LIST else texts).append(counts)
            count[row] = len(counts)
        elif isinstance(mask, (list, tuple)) and len(mask):
            kind[row], count[row] = POLYGONS, len(mask)
            polygons.append(row)
        else:
            pixels = _plain_array(mask, place(row))
            kind[row], size[row] = BYTES, pixels.shape
            arrays.append((row, _runs_of(pixels)))
    # Contents of one kind are stored in row order, so a cumulative sum gives the start of each row. Encode
    # all arrays in one call, and insert their texts.
    start = np.zeros(len(given), dtype=np.int64)
    for kinds in ((TEXT, BYTES), (LIST,), (POLYGONS,)):
        rows = np.flatnonzero(np.isin(kind, kinds))
        if kinds[0] == TEXT and arrays:
            texts = _with_arrays(texts, rows, arrays)
            count[rows] = [len(text) for text in texts]
        start[rows] = np.cumsum(count[rows]) - count[rows]
    # Collect the points of all polygons in one array.
    parts = [part for row in polygons for part in given[row]]
    points, part_count = _points(parts, given, polygons, place)
    return MaskColumns(
        kind,
        size,
        start,
        count,
        b"".join(texts),
        np.concatenate([np.empty(0, np.int64), *numbers]),
        np.cumsum(part_count) - part_count,
        part_count,
        points,
    )


def whole_sizes(sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Convert widths and heights, [N, 2] or [2], to integer heights and widths; -1 if unknown."""
    known = np.clip(np.nan_to_num(sizes, nan=-1), -1, LARGEST_SIDE)
    return known.astype(np.int64)[..., ::-1].copy()


def _plain_code(mask: dict[str, Any], place: str) -> tuple[int, Any, Any]:
    """Return kind, size and counts of an RLE."""
    sides, counts = mask.get("size"), mask.get("counts")
    if type(sides) is list and counts is not None and list(map(type, sides)) == [int, int]:
        # The usual form, without arrays.
        whole: Any = [min(max(side, -1), int(LARGEST_SIDE)) for side in sides]
    else:
        try:
            size = np.array(sides, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            counts = None
        if counts is None or size.shape != (2,):
            got = f"keys {list(mask)}, size {sides!r}"
            raise InputError("a mask", RULE, got=got, place=place)
        whole = whole_sizes(size[::-1])
    if isinstance(counts, str):
        return TEXT, whole, counts.encode("utf-8", "surrogatepass")
    if isinstance(counts, bytes):
        return BYTES, whole, counts
    return LIST, whole, _whole_numbers(counts, place)


def _whole_numbers(counts: Any, place: str) -> NDArray[np.int64]:
    array = np.asarray(counts)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if array.ndim == 1 and array.dtype.kind in "iuf":
        whole = np.clip(array, -1, 1 << 40)  # clipped numbers are rejected later
        if np.isfinite(whole).all() and (np.trunc(whole) == whole).all():
            numbers: NDArray[np.int64] = whole.astype(np.int64)
            return numbers
    rule = "have counts that are text or a list of whole numbers"
    raise InputError("a mask", rule, got=_shortened(counts), place=place)


def _plain_array(mask: Any, place: str) -> NDArray[Any]:
    if isinstance(mask, (list, tuple)):
        raise InputError("a mask", RULE, got="[]", place=place, cause="annotated with boxes only?")
    array = checks.any_array(mask, name="a mask")
    if array.ndim != 2 or array.dtype.kind not in "buif":
        raise InputError("a mask", RULE, got=_shortened(mask), place=place)
    if array.dtype.kind != "b" and not ((array == 0) | (array == 1)).all():
        cause = "probabilities? compare them with a threshold first" if array.dtype.kind == "f" else ""
        raise InputError("a mask array", "hold 0 and 1", got="other values", cause=cause)
    return array


def _runs_of(pixels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the run lengths of a binary array [H, W], column by column."""
    flat = pixels.T.astype(bool).ravel()
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    start = [0] if flat.size and flat[0] else []
    ends = np.concatenate([start, edges, [flat.size]]).astype(np.int64)
    ends[1:] -= ends[:-1].copy()
    return ends


def _with_arrays(
    texts: list[bytes], rows: NDArray[np.intp], arrays: list[tuple[int, NDArray[np.int64]]]
) -> list[bytes]:
    """Return the texts of all compressed rows, including encoded arrays."""
    lengths = np.array([len(runs) for _, runs in arrays], dtype=np.intp)
    encoded = dict(
        zip(
            [row for row, _ in arrays],
            code_text(np.concatenate([runs for _, runs in arrays]), lengths),
            strict=True,
        )
    )
    others = iter(texts)
    return [encoded[row] if row in encoded else next(others) for row in rows.tolist()]


def _points(
    parts: list[Any], given: list[Any], rows: list[int], place: Place
) -> tuple[NDArray[np.float64], Lengths]:
    """Return all numbers of polygons, and the count of each part."""
    try:
        part_count = np.fromiter(map(len, parts), np.int64, len(parts))
        return np.fromiter(
            itertools.chain.from_iterable(parts), np.float64, int(part_count.sum())
        ), part_count
    except (TypeError, ValueError):
        for row in rows:
            for part in given[row]:
                if not hasattr(part, "__len__") or isinstance(part, (str, bytes, dict)):
                    rule = "be polygons of at least 3 points, or counts that add up to height times width"
                    raise InputError("a mask", rule, got=_shortened(given[row]), place=place(row)) from None
                checks.float_array(part, name=f"a polygon in {place(row)}")
        raise


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
