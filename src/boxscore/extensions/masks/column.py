"""Hold a column of instance masks as given, and rasterize them lazily.

Conventions
-----------
- A mask is polygons (a list of ``[x1, y1, x2, y2, ...]`` in pixels, one list per part), an RLE
  ``{"size": [height, width], "counts": ...}`` (``counts`` a list: uncompressed; text or bytes: compressed),
  a binary array [H, W], or None: the row has no mask.
- Areas are pixel counts. Boxes are ``x1, y1, x2, y2`` around the pixels; sizes are height and width.
- Areas, boxes and overlaps are computed in batches from spans of pixels, for the requested rows; areas and
  boxes are cached for later selections of those rows.
- Only NumPy's compiled code is used: hostile masks cost time and memory in proportion to their text, their
  outlines and the sides of their images, within the limits of
  :mod:`~boxscore.extensions.masks.rasterizing`.

References
----------
pycocotools 2.0.11, ``coco.py`` (``annToRLE``) and ``maskApi.c`` (``rleFrPoly``, ``rleArea``, ``rleToBbox``).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.ordering import ragged_ranges
from boxscore._utils.text import html_lines
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.extensions.masks.mask_columns import (
    BYTES,
    LIST,
    MISSING,
    POLYGONS,
    TEXT,
    MaskColumns,
    columns_of,
    whole_sizes,
)
from boxscore.extensions.masks.run_lengths import code_text

if TYPE_CHECKING:
    from boxscore.extensions.masks.spans import Spans

Code = dict[str, Any]
"""A compressed RLE in the form of pycocotools."""
MaskLike = Any
"""Polygons, an RLE, a binary array [H, W], or None for no mask."""

_FORMS = {MISSING: "missing", TEXT: "RLE", BYTES: "RLE", LIST: "RLE", POLYGONS: "polygons"}


class _Store:
    """The masks of one table and values computed from them, shared by all selections of its rows."""

    __slots__ = ("area", "box", "boxed", "columns", "measured", "place")

    def __init__(self, columns: MaskColumns, place: Place) -> None:
        self.columns = columns
        self.place = place
        count = len(columns.kind)
        self.area = np.zeros(count)
        self.box: FloatArray | None = None
        self.measured = np.zeros(count, dtype=bool)
        self.boxed = np.zeros(count, dtype=bool)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out ``place``: it may be a local function, which does not pickle."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "place"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.place = "mask {}".format


class Masks:
    """A column of masks, one per row, stored as given and rasterized lazily.

    Parameters
    ----------
    masks : sequence, [N], or array_like of bool, [N, H, W]
        Polygons, RLEs or arrays, as in the module's docstring; None for a row without a mask.
    image_sizes : array_like, [N, 2], optional
        Width and height of each row's image in pixels, for rasterizing polygons.
    place : callable, optional
        Returns the name of row ``i`` for messages.

    Raises
    ------
    InputError
        If a mask has an unknown form.

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
        self._store = _Store(columns_of(masks, image_sizes, place), place)
        self._rows: NDArray[np.intp] = np.arange(len(self._store.columns.kind))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Masks:
        """Return a selection of rows, which shares cached values."""
        return self._at(self._rows[rows])

    def __repr__(self) -> str:
        forms = Counter(map(_FORMS.__getitem__, self._column("kind").tolist()))
        parts = [f"{count:,} {form}" for form, count in forms.most_common()]
        return "\n  ".join([f"Masks: {len(self):,}", *([f"stored as: {', '.join(parts)}"] if parts else [])])

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    @classmethod
    def of_columns(
        cls, columns: MaskColumns, *, image_sizes: FloatArray | None = None, place: Place = "mask {}".format
    ) -> Masks:
        """Make a column from flat mask columns.

        Parameters
        ----------
        columns : MaskColumns
        image_sizes : ndarray of float64, [N, 2], optional
            Width and height of the images, for polygons.
        place : callable
            Returns the name of row ``i`` for messages.

        Returns
        -------
        Masks
        """
        if image_sizes is not None:
            sized = (columns.kind != POLYGONS) & (columns.kind != MISSING)
            columns = columns._replace(size=np.where(sized[:, None], columns.size, whole_sizes(image_sizes)))
        made = object.__new__(cls)
        made._store, made._rows = _Store(columns, place), np.arange(len(columns.kind))
        return made

    @classmethod
    def from_boxes(cls, boxes: FloatArray, image_sizes: FloatArray, *, place: Place) -> Masks:
        """Make rectangular masks from boxes, as pycocotools does for results without masks.

        Parameters
        ----------
        boxes : ndarray of float64, [N, 4]
            ``x1, y1, x2, y2`` in pixels.
        image_sizes : ndarray of float64, [N, 2]
            Width and height of each mask's image.
        place : callable
            Returns the name of row ``i`` for messages.

        Returns
        -------
        Masks
        """
        count = len(boxes)
        row = np.arange(count, dtype=np.int64)
        columns = MaskColumns(
            np.full(count, POLYGONS, dtype=np.uint8),
            whole_sizes(image_sizes),
            row,
            np.ones(count, dtype=np.int64),
            b"",
            np.empty(0, dtype=np.int64),
            8 * row,
            np.full(count, 8, dtype=np.int64),
            boxes[:, [0, 1, 0, 3, 2, 3, 2, 1]].ravel(),
        )
        return cls.of_columns(columns, place=place)

    @classmethod
    def concatenate(cls, parts: Sequence[Masks]) -> Masks:
        """Concatenate columns, without their cached values."""
        return cls.of_columns(MaskColumns.joined([part._columns_of_rows() for part in parts]))

    def filled(self, other: Masks) -> Masks:
        """Return these masks, with missing ones taken from ``other``."""
        joined = MaskColumns.joined([self._columns_of_rows(), other._columns_of_rows()])
        rows = np.arange(len(self)) + len(self) * self.missing
        return Masks.of_columns(joined.take(rows), place=self.place)

    @property
    def given(self) -> list[MaskLike]:
        """The masks in the forms in which they were given, [N]; arrays as RLEs."""
        return list(map(self._store.columns.given, self._rows.tolist()))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows lack a mask, [N]."""
        missing: NDArray[np.bool_] = self._column("kind") == MISSING
        return missing

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Height and width of each mask in pixels, [N, 2]; -1 where unknown."""
        return self._column("size")

    @property
    def weights(self) -> FloatArray:
        """Fraction of a batch that each mask takes, [N]; see ``batches`` of ``rasterizing``."""
        from boxscore.extensions.masks.rasterizing import weights

        return weights(self._columns_of_rows())

    def place(self, row: int) -> str:
        """Return the name of a row for messages."""
        return self._store.place(int(self._rows[row]))

    def spans(self) -> tuple[Spans, NDArray[np.intp]]:
        """Return the spans of these masks(at most one batch), in any order, and the position of each row."""
        from boxscore.extensions.masks.rasterizing import spans_of

        store = self._store
        spans, position = spans_of(store.columns, self._rows, store.place)
        if not store.measured[self._rows].all():
            store.area[self._rows] = spans.area[position]
            store.measured[self._rows] = True
        return spans, position

    def codes(self) -> list[Code]:
        """Return each mask as a compressed RLE; rasterize those that are not."""
        codes: list[Code] = []
        for part in self._batches():
            kind, size = part._column("kind"), part.sizes.tolist()
            spans, position = part.spans()
            texts = part._texts(kind, spans, position)
            text = {row: texts[row].decode() for row in np.flatnonzero(kind == TEXT).tolist()}
            codes += [{"size": size[row], "counts": text.get(row, texts[row])} for row in range(len(size))]
        return codes

    def _texts(self, kind: NDArray[Any], spans: Spans, position: NDArray[np.intp]) -> list[bytes]:
        """Return the RLE text of each mask: as given, or encoded from its runs."""
        # Keep the given text of compressed masks.
        columns = self._store.columns
        texts: list[bytes] = [b""] * len(self)
        compressed = np.flatnonzero((kind == TEXT) | (kind == BYTES))
        for row, text in zip(compressed.tolist(), columns.texts(self._rows[compressed]), strict=True):
            texts[row] = text
        # Encode all uncompressed RLEs in one call.
        listed, rasterized = np.flatnonzero(kind == LIST), np.flatnonzero(kind == POLYGONS)
        if len(listed):
            rows = self._rows[listed]
            count = columns.length[rows]
            numbers = columns.numbers[ragged_ranges(columns.start[rows], count)]
            for row, text in zip(listed.tolist(), code_text(numbers, count), strict=True):
                texts[row] = text
        # Encode all polygons in one call, from the runs of their spans.
        if len(rasterized):
            runs, count = spans.runs()
            chosen = position[rasterized]
            starts = (np.cumsum(count) - count)[chosen]
            encoded = code_text(runs[ragged_ranges(starts, count[chosen])], count[chosen])
            for row, text in zip(rasterized.tolist(), encoded, strict=True):
                texts[row] = text
        return texts

    def remember_area(self, area: FloatArray) -> None:
        """Cache the area of each mask, [N], counted by another process."""
        self._store.area[self._rows] = area
        self._store.measured[self._rows] = True

    @property
    def measured_area(self) -> FloatArray:
        """Area in pixels of masks whose spans were computed, [N]; 0 for the others."""
        return self._store.area[self._rows]

    @property
    def area(self) -> FloatArray:
        """Area of each mask in pixels, [N] float64."""
        store = self._store
        for part in self._lacking(store.measured)._batches():
            part.spans()
        return store.area[self._rows]

    @property
    def boxes(self) -> FloatArray:
        """Box ``x1, y1, x2, y2`` around each mask, [N, 4] float64; all 0 for an empty mask."""
        store = self._store
        if store.box is None:
            store.box = np.zeros((len(store.area), 4))
        for part in self._lacking(store.boxed)._batches():
            spans, position = part.spans()
            store.box[part._rows] = spans.boxes()[position]
            store.boxed[part._rows] = True
        return store.box[self._rows]

    def arrays(self) -> list[NDArray[np.bool_]]:
        """Decode each mask, [H, W] bool."""
        arrays: list[NDArray[np.bool_]] = []
        for part in self._batches():
            spans, position = part.spans()
            stops = np.cumsum(spans.counts)
            for row in position.tolist():
                # Expand alternating background and foreground runs, column by column.
                height, width = spans.sizes[row].tolist()
                bounds = spans.bounds[stops[row] - spans.counts[row] : stops[row]] - spans.base[row]
                runs = np.diff(np.concatenate([[0], bounds.ravel(), [height * width]]))
                foreground = np.arange(len(runs)) % 2 == 1
                arrays.append(np.repeat(foreground, runs).reshape(width, height).T)
        return arrays

    def _batches(self) -> Iterator[Masks]:
        """Split these rows into batches."""
        if len(self):
            from boxscore.extensions.masks.rasterizing import batches

            for low, high in batches(self.weights):
                yield self._at(self._rows[low:high])

    def _lacking(self, known: NDArray[np.bool_]) -> Masks:
        """Return the distinct rows, ascending, whose value is not cached yet."""
        rows = self._rows[~known[self._rows]]
        wanted = np.zeros(len(known) if len(rows) else 0, dtype=bool)
        wanted[rows] = True
        return self._at(np.flatnonzero(wanted))

    def _column(self, name: str) -> NDArray[Any]:
        column: NDArray[Any] = getattr(self._store.columns, name)[self._rows]
        return column

    def _columns_of_rows(self) -> MaskColumns:
        """Return the columns of these rows; flat contents stay those of all rows."""
        return self._store.columns.take(self._rows)

    def _at(self, rows: NDArray[np.intp]) -> Masks:
        """Return these rows of the store."""
        chosen = object.__new__(Masks)
        chosen._store, chosen._rows = self._store, rows
        return chosen


def mask_column(masks: Iterable[MaskLike], image_sizes: FloatArray, place: Place) -> Masks:
    """Convert masks to a column; a column is returned as it is."""
    return masks if isinstance(masks, Masks) else Masks(masks, image_sizes=image_sizes, place=place)


def masks_of(table: BoxTable) -> Masks:
    """Return the masks of a table; an empty column if it has no masks."""
    return table.instances["masks"] or Masks([])


def with_masks(detections: Detections) -> Detections:
    """Replace missing masks of detections by their boxes, as pycocotools does."""
    masks: Masks | None = detections.instances["masks"]
    if masks is not None and not masks.missing.any():
        return detections
    rectangles = Masks.from_boxes(
        detections.boxes,
        detections.images.sizes[detections.image],
        place=lambda row: f"row {row} of {detections.source}",
    )
    return dataclasses.replace(detections, masks=rectangles if masks is None else masks.filled(rectangles))


def box_only(ground_truth: GroundTruth) -> NDArray[np.bool_]:
    """Return which ground truths lack mask pixels, [G]."""
    masks = ground_truth.masks
    if masks is None:
        return np.ones(len(ground_truth), dtype=bool)
    lacking = masks.missing
    some = np.flatnonzero(~lacking)
    lacking[some] = masks[some].area == 0
    return lacking
