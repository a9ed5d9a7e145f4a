"""A column of instance masks, kept as given and rasterised when first needed.

Goal
----
Tables hold masks in whatever form the file had. Areas, boxes and RLEs are computed in batches by pycocotools'
C code, for the rows that are asked for, and kept for every later selection of those rows.

Conventions
-----------
- A mask is polygons (a list of ``[x1, y1, x2, y2, ...]``, one list per part, pixels), an RLE
  ``{"size": [height, width], "counts": ...}`` (``counts`` a list: uncompressed; text or bytes: compressed),
  a binary array [H, W], or None: the row has no mask.
- Areas are pixel counts. Boxes are ``x1, y1, x2, y2`` around the pixels; sizes are height and width.

References
----------
pycocotools 2.0.11, ``coco.py`` (``annToRLE``) and ``maskApi.c`` (``rleFrPoly``, ``rleArea``, ``rleToBbox``).
"""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.collector import paused_collector
from boxscore._utils.text import html_lines
from boxscore.data.run_lengths import DAMAGED, run_totals
from boxscore.errors import InputError

__all__ = ["Code", "MaskLike", "Masks", "decoded"]

FloatArray = NDArray[np.float64]
Code = dict[str, Any]
"""A compressed RLE as pycocotools' C code takes it."""
MaskLike = Any
"""Polygons, an RLE, a binary array [H, W], or None where there is no mask."""

BATCH = 250
"""Masks in one call: ``pycocotools.mask.area`` fails on more than 255."""

_UNFINISHED = frozenset(chr(code) for code in range(256) if (code - 48) & 32)
"""Characters of a compressed RLE after which its last number goes on."""

LARGEST_VERTEX = 1e6
"""Pixels. The C code walks along every edge pixel by pixel, and overflows on larger numbers."""


class _Store:
    """The masks of one table and what was computed from them, shared by every selection of its rows."""

    __slots__ = ("area", "box", "codes", "given", "measured", "place", "size")

    def __init__(self, given: list[MaskLike], size: NDArray[np.int64], place: Place) -> None:
        self.given = given
        self.size = size  # [N,2] height, width; -1 where not known
        self.place = place
        self.codes: list[Code | None] = [None] * len(given)
        self.area = np.zeros(len(given))
        self.box = np.zeros((len(given), 4))
        self.measured = np.zeros(len(given), dtype=bool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out ``place``: a function inside a loader cannot be pickled."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "place"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.place = "mask {}".format


class Masks:
    """A column of masks, one per row, kept as given and rasterised when first needed.

    Parameters
    ----------
    masks : sequence, [N], or array_like of bool, [N, H, W]
        See the module's page for what a mask may be; None for a row without one.
    image_sizes : array_like, [N, 2], optional
        Width and height of each row's image in pixels: what polygons are rasterised into.
    place : callable, optional
        Names row ``i`` in messages.

    Raises
    ------
    InputError
        When a mask has none of the known forms.

    Examples
    --------
    >>> masks = Masks([[[1, 1, 1, 5, 5, 5, 5, 1]], np.eye(8)], image_sizes=[[8, 8], [8, 8]])
    >>> len(masks), masks.area.tolist()
    (2, [16.0, 8.0])
    >>> masks[np.array([1])].boxes.tolist()
    [[0.0, 0.0, 8.0, 8.0]]
    """

    __slots__ = ("_rows", "_store")

    def __init__(
        self,
        masks: Iterable[MaskLike],
        *,
        image_sizes: ArrayLike | None = None,
        place: Place = "mask {}".format,
    ) -> None:
        given = list(masks)
        size = np.full((len(given), 2), -1, dtype=np.int64)
        if image_sizes is not None:
            known = checks.float_array(image_sizes, name="image sizes", columns=2)
            checks.same_length(len(given), of="masks", image_sizes=known)
            known = np.clip(np.nan_to_num(known, nan=-1), -1, 2 * LARGEST_VERTEX)  # both are refused later
            size = known.astype(np.int64)[:, ::-1].copy()
        for row, mask in enumerate(given):
            if type(mask) is dict:
                try:
                    size[row] = mask["size"]
                except (KeyError, TypeError, ValueError, OverflowError):
                    pass  # _plain reports it
                else:
                    if "counts" in mask:
                        continue
            elif mask is None or (type(mask) is list and mask):
                continue
            given[row], size[row] = _plain(mask, size[row], place(row))
        self._store = _Store(given, size, place)
        self._rows: NDArray[np.intp] = np.arange(len(given))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: NDArray[Any]) -> Masks:
        """Return these rows; they share what is computed."""
        return self._at(self._rows[rows])

    def __repr__(self) -> str:
        forms = Counter(_form_of(mask) for mask in self.given)
        parts = [f"{count:,} {form}" for form, count in forms.most_common()]
        return "\n  ".join([f"Masks: {len(self):,}", *([f"given as: {', '.join(parts)}"] if parts else [])])

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    @classmethod
    def from_boxes(cls, boxes: FloatArray, image_sizes: FloatArray, *, place: Place) -> Masks:
        """Make rectangles of boxes, as pycocotools does for results without masks.

        Parameters
        ----------
        boxes : ndarray of float64, [N, 4]
            ``x1, y1, x2, y2`` in pixels.
        image_sizes : ndarray of float64, [N, 2]
            Width and height of each mask's image.
        place : callable
            Names row ``i`` in messages.

        Returns
        -------
        Masks
        """
        return cls(
            [[corners] for corners in boxes[:, [0, 1, 0, 3, 2, 3, 2, 1]].tolist()],
            image_sizes=image_sizes,
            place=place,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Masks]) -> Masks:
        """Concatenate columns; what was computed from them is computed again when needed."""
        given = [mask for part in parts for mask in part.given]
        return cls(given, image_sizes=np.concatenate([part.sizes for part in parts])[:, ::-1])

    def filled(self, other: Masks) -> Masks:
        """Return these masks, with ``other``'s in the rows that have none."""
        own, spare = self.given, other.given
        filled = [spare[row] if mask is None else mask for row, mask in enumerate(own)]
        sizes = np.where(self.missing[:, None], other.sizes, self.sizes)[:, ::-1]
        return Masks(filled, image_sizes=sizes, place=self.place)

    @property
    def given(self) -> list[MaskLike]:
        """The masks as they were given, [N]."""
        return [self._store.given[row] for row in self._rows.tolist()]

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no mask, [N]."""
        return np.array([mask is None for mask in self.given], dtype=bool)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Height and width of each mask in pixels, [N, 2]; -1 where not known."""
        return self._store.size[self._rows]

    def place(self, row: int) -> str:
        """Name a row for messages."""
        return self._store.place(int(self._rows[row]))

    def codes(self) -> list[Code]:
        """Return each mask as a compressed RLE, rasterising those that are not."""
        store, rows = self._store, self._rows.tolist()
        todo = {row for row in rows if store.codes[row] is None}
        if todo:
            with paused_collector():
                _encode(store, sorted(todo))
        return [store.codes[row] for row in rows]

    @property
    def area(self) -> FloatArray:
        """Pixels of each mask, [N] float64."""
        self._measure()
        return self._store.area[self._rows]

    @property
    def boxes(self) -> FloatArray:
        """Box ``x1, y1, x2, y2`` around each mask, [N, 4] float64; all 0 for an empty mask."""
        self._measure()
        return self._store.box[self._rows]

    def arrays(self) -> list[NDArray[np.bool_]]:
        """Decode each mask, [H, W] bool."""
        return [decoded([code])[:, :, 0] for code in self.codes()]

    def _measure(self) -> None:
        """Fill in area and box of the rows that lack them."""
        from pycocotools import mask as coco_mask

        store = self._store
        todo = np.unique(self._rows[~store.measured[self._rows]])
        codes = self._at(todo).codes()
        for low in range(0, len(codes), BATCH):
            rows, batch = todo[low : low + BATCH], codes[low : low + BATCH]
            area, box = coco_mask.area(batch), coco_mask.toBbox(batch)
            box[:, 2:] += box[:, :2]
            store.area[rows], store.box[rows] = area, box
        store.measured[todo] = True

    def _at(self, rows: NDArray[np.intp]) -> Masks:
        """Return these rows of the store."""
        chosen = object.__new__(Masks)
        chosen._store, chosen._rows = self._store, rows
        return chosen


def decoded(codes: list[Code]) -> NDArray[np.bool_]:
    """Decode codes of one size, [H, W, N] bool, column by column in memory."""
    from pycocotools import mask as coco_mask

    with warnings.catch_warnings():  # pycocotools 2.0.11 does not know NumPy 2's __array__
        warnings.simplefilter("ignore", DeprecationWarning)
        pixels: NDArray[np.bool_] = coco_mask.decode(codes).astype(bool, copy=False)
    return pixels


def _plain(mask: MaskLike, size: NDArray[np.int64], place: str) -> tuple[MaskLike, Any]:
    """Convert a mask that is neither a plain RLE nor a plain list of polygons into one of them."""
    rule = "be polygons, an RLE {size, counts} or a binary array [H, W]"
    if isinstance(mask, dict):
        got = f"keys {list(mask)}, size {mask.get('size')!r}"
        raise InputError("a mask", rule, got=got, place=place)
    if isinstance(mask, (list, tuple)):
        if len(mask):
            return list(mask), size
        raise InputError("a mask", rule, got="[]", place=place, cause="annotated with boxes only?")
    array = checks.any_array(mask, name="a mask")
    if array.ndim != 2 or array.dtype.kind not in "buif":
        raise InputError("a mask", rule, got=_short(mask), place=place)
    if array.dtype.kind != "b" and not ((array == 0) | (array == 1)).all():
        cause = "probabilities? compare them with a threshold first" if array.dtype.kind == "f" else ""
        raise InputError("a mask array", "hold 0 and 1", got="other values", cause=cause)
    from pycocotools import mask as coco_mask

    return coco_mask.encode(np.asfortranarray(array, dtype=np.uint8)), array.shape


def _form_of(mask: MaskLike) -> str:
    if mask is None:
        return "missing"
    return "RLE" if isinstance(mask, dict) else "polygons"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _encode(store: _Store, rows: list[int]) -> None:
    """Compute the compressed RLEs of these rows of a store."""
    from pycocotools import mask as coco_mask

    polygons: dict[tuple[int, int], list[int]] = {}
    given, codes = store.given, store.codes
    compressed = []
    for row in rows:
        mask = given[row]
        if type(mask) is dict:
            if isinstance(mask["counts"], (str, bytes)):
                codes[row] = mask
                compressed.append(row)
            else:
                codes[row] = _converted(store, row)
        elif type(mask) is list and all(hasattr(part, "__len__") and len(part) > 4 for part in mask):
            polygons.setdefault(tuple(store.size[row].tolist()), []).append(row)
        else:
            codes[row] = _converted(store, row)
    _check_ends(store, compressed)
    for (height, width), members in polygons.items():
        if not 0 <= min(height, width) <= max(height, width) <= LARGEST_VERTEX:
            raise InputError(
                "an image with polygons",
                f"have a known width and height of at most {LARGEST_VERTEX:g} pixels",
                got="none" if min(height, width) < 0 else f"{width} x {height} or more",
                place=store.place(members[0]),
                cause="pass Images.build(ids, sizes=...), or masks as arrays or RLEs",
            )
        encoded = iter(coco_mask.frPyObjects(_parts(store, members), height, width))
        for row in members:
            own = [next(encoded) for _ in given[row]]
            codes[row] = own[0] if len(own) == 1 else coco_mask.merge(own)


def _parts(store: _Store, rows: list[int]) -> list[FloatArray]:
    """Return every part of these rows' polygons as an array ``x1, y1, x2, y2, ...``."""
    parts = [part for row in rows for part in store.given[row]]
    try:
        flat = np.fromiter(itertools.chain.from_iterable(parts), np.float64)
        absurd = not bool((np.abs(flat) <= LARGEST_VERTEX).all())  # NaN compares false
    except (TypeError, ValueError):
        absurd = True
    if absurd:
        for row in rows:
            for part in store.given[row]:
                where = store.place(row)
                points = checks.float_array(part, name=f"a polygon in {where}")
                checks.finite(points, name="a polygon", place=lambda _: where, limit=LARGEST_VERTEX)  # noqa: B023
    ends = list(itertools.accumulate(map(len, parts)))
    return [flat[end - len(part) : end] for end, part in zip(ends, parts, strict=True)]


def _converted(store: _Store, row: int) -> Code:
    """Encode one mask as ``COCO.annToRLE`` does; refuse a mask that it cannot encode."""
    from pycocotools import mask as coco_mask

    mask = store.given[row]
    height, width = store.size[row].tolist()
    if mask is None:
        raise InputError("a row", "have a mask", got="none", place=store.place(row))
    try:
        if type(mask) is dict:
            total = sum(mask["counts"])
            if total != height * width or min(mask["counts"], default=0) < 0:
                raise ValueError(f"counts that add up to {total} for size {[height, width]}")
            code: Code = coco_mask.frPyObjects(mask, height, width)
            return code
        merged: Code = coco_mask.merge(coco_mask.frPyObjects(mask, height, width))
        return merged
    except Exception as error:
        rule = "be polygons of at least 3 points, or counts that add up to height times width"
        got = error if type(mask) is dict else _short(mask)
        raise InputError("a mask", rule, got=got, place=store.place(row)) from None


def _check_ends(store: _Store, rows: list[int]) -> None:
    """Refuse damaged RLEs: the C code would read past their end, or never stop."""
    counts = [store.given[row]["counts"] for row in rows]
    ends = [text[-1:] if type(text) is str else text[-1:].decode("latin-1") for text in counts]
    for row, end in zip(rows, ends, strict=True) if any(map(_UNFINISHED.__contains__, ends)) else ():
        if end in _UNFINISHED:
            got = f"counts that end in {store.given[row]['counts'][-8:]!r}"
            raise InputError("a mask", "be whole", got=got, place=store.place(row), cause="cut short?")
    totals = run_totals([text.encode("utf-8") if type(text) is str else text for text in counts])
    size = store.size[rows]
    bad = np.flatnonzero((totals != size.prod(axis=1)) | (size < 0).any(axis=1))
    if len(bad):
        row, total = rows[bad[0]], int(totals[bad[0]])
        got = "counts that are none" if total == DAMAGED else f"counts that add up to {total}"
        raise InputError(
            "a mask",
            "have counts that add up to height times width",
            got=f"{got} for size {store.size[row].tolist()}",
            place=store.place(row),
            cause="are its counts damaged?",
        )
