"""Rasterize masks of every form to spans, and check that they can be rasterized.

Conventions
-----------
- A mask's image has sides of 1 to :data:`LARGEST_SIDE` pixels, and at most 2**31 - 1 pixels in all.
- A batch has at most 2**30 pixels, or one mask.
- Memory is that of one batch, for any number of masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import Positions
from boxscore._utils.checks import Place
from boxscore._utils.ordering import inverse_order, ragged_ranges
from boxscore.errors import InputError
from boxscore.extensions.masks.mask_columns import BYTES, LIST, MISSING, POLYGONS, TEXT, MaskColumns
from boxscore.extensions.masks.outlines import FINENESS, LARGEST_VERTEX, LONGEST_OUTLINE, edges_of, toggles
from boxscore.extensions.masks.run_lengths import DAMAGED, MOST_PIXELS, Runs, read_runs, split_runs
from boxscore.extensions.masks.spans import Spans, joined_spans, spans_of_runs, union_of_parts

LARGEST_SIDE = 1_000_000
BATCH = 1 << 20
"""Characters, numbers and pairs of columns of a batch: what is computed from them fits a core's cache."""


def weights(columns: MaskColumns) -> NDArray[np.float64]:
    """Part of a batch that each mask takes, [N]; a mask of 1 or more is a batch of its own."""
    height, width = columns.size.astype(np.float64).T
    content = columns.weight + np.clip(width, 1, LARGEST_SIDE) / 2
    weight: NDArray[np.float64] = np.maximum(content / BATCH, height * width / 2**30)
    return weight


def batches(weight: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Cut rows into batches of a weight of at most 1, or of one row."""
    total = np.cumsum(weight)
    low = 0
    while low < len(total):
        before = total[low - 1] if low else 0.0
        high = max(int(np.searchsorted(total, before + 1.0, side="right")), low + 1)
        yield low, high
        low = high


def spans_of(columns: MaskColumns, rows: Positions, place: Place) -> tuple[Spans, Positions]:
    """Return the spans of some rows in any order, and the position there of each of ``rows``."""
    # Each kind of masks has its own way to spans. Join the results, and say where each row went.
    _check_sizes(columns, rows, place)
    kind = columns.kind[rows]
    parts, order = [], []
    for kinds, spans in (
        ((TEXT, BYTES), _of_texts),
        ((LIST,), _of_lists),
        ((POLYGONS,), _of_polygons),
    ):
        chosen = ((kind >= kinds[0]) & (kind <= kinds[-1])).nonzero()[0]
        if len(chosen):
            part, part_order = spans(columns, rows[chosen], place)
            parts.append(part)
            order.append(chosen if part_order is None else chosen[part_order])
    return joined_spans(parts), inverse_order(np.concatenate(order))


def _check_sizes(columns: MaskColumns, rows: Positions, place: Place) -> None:
    # A missing mask has no size.
    missing = columns.kind[rows] == MISSING
    if missing.any():
        row = int(rows[np.argmax(missing)])
        raise InputError("a row", "have a mask", got="none", place=place(row))
    # Two reductions pass all valid sizes. The product comes after the test of the sides, so it cannot
    # overflow.
    size = columns.size[rows]
    fine = size.min(initial=1) >= 1 and size.max(initial=1) <= LARGEST_SIDE
    if fine and (size[:, 0] * size[:, 1]).max(initial=1) <= MOST_PIXELS:
        return
    # Name the first row in error, with the cause that fits its kind.
    bad = (size < 1).any(axis=1) | (size > LARGEST_SIDE).any(axis=1) | (size.prod(axis=1) > MOST_PIXELS)
    row = int(rows[np.argmax(bad)])
    height, width = columns.size[row].tolist()
    polygons = columns.kind[row] == POLYGONS
    known = (
        f"{width} x {height}{' or more' * (max(width, height) > LARGEST_SIDE)}"
        if min(height, width) >= 0
        else "none"
    )
    raise InputError(
        "an image with polygons" if polygons else "a mask",
        f"have a known width and height, 1 to {LARGEST_SIDE:,} pixels each and at most "
        f"{MOST_PIXELS:,} in all",
        got=known,
        place=place(row),
        cause="set the real width and height of the image in the file or with Images.build(ids, sizes=...)"
        if polygons
        else "is its size that of its image, [height, width]?",
    )


def _of_texts(columns: MaskColumns, rows: Positions, place: Place) -> tuple[Spans, None]:
    texts = columns.texts(rows)
    runs = read_runs(texts)
    spans = spans_of_runs(runs, columns.size[rows])
    if spans is None:
        _refuse(columns, rows, runs, place, texts)
    return spans, None


def _of_lists(columns: MaskColumns, rows: Positions, place: Place) -> tuple[Spans, None]:
    counts = columns.length[rows]
    runs = split_runs(columns.numbers[ragged_ranges(columns.start[rows], counts)], counts)
    spans = spans_of_runs(runs, columns.size[rows])
    if spans is None:
        _refuse(columns, rows, runs, place, None)
    return spans, None


def _refuse(
    columns: MaskColumns, rows: Positions, runs: Runs, place: Place, texts: list[bytes] | None
) -> NoReturn:
    """Say which mask's runs do not add up to its size."""
    # A code that ends inside a number was cut short: say so before any sum is compared.
    for row, text in zip(rows.tolist(), texts or (), strict=False):
        if text and (text[-1] - 48) & 32:
            end: str | bytes = text[-8:]
            if columns.kind[row] == TEXT:
                end = text.decode("utf-8", "replace")[-8:]
            got = f"counts that end in {end!r}"
            raise InputError("a mask", "be whole", got=got, place=place(row), cause="cut short?")
    # Else name the first mask whose runs do not add up to its size.
    totals = runs.totals()
    bad = int(np.argmax(totals != columns.size[rows].prod(axis=1)))
    row, total = int(rows[bad]), int(totals[bad])
    got = "invalid counts" if total == DAMAGED else f"counts that add up to {total}"
    raise InputError(
        "a mask",
        "have counts that add up to height times width",
        got=f"{got} for size {columns.size[row].tolist()}",
        place=place(row),
        cause="" if texts is None else "are its counts damaged?",
    )


def _of_polygons(columns: MaskColumns, rows: Positions, place: Place) -> tuple[Spans, Positions | None]:
    count, order = columns.length[rows], None
    # Put masks of one part first: their spans need no union.
    if (count != 1).any():
        order = np.argsort(count != 1, kind="stable")
        rows, count = rows[order], count[order]
    # Number the pixels of all masks [N] in a row.
    size = columns.size[rows]
    pixels = size[:, 0] * size[:, 1]
    base = np.cumsum(pixels) - pixels
    if order is None:
        bounds, counts = _part_bounds(columns, columns.start[rows], base, size, rows, place)
        return Spans(bounds, counts, base, size, np.empty(0, np.int32)), None
    # Parts are rasterised separately, in batches again, each with its own pixel numbers. These are shifted to
    # the numbers of its mask, so that the spans of all its parts unite.
    owner, parts = np.repeat(np.arange(len(rows)), count), ragged_ranges(columns.start[rows], count)
    some: list[NDArray[np.int32]] = []
    numbers: list[Positions] = []
    for low, high in batches(pixels[owner] / 2**30):
        # Rasterize some parts in one call, in a range of pixel numbers that fits an int32.
        mask = owner[low:high]
        part_base = np.cumsum(pixels[mask]) - pixels[mask]
        bounds, number = _part_bounds(columns, parts[low:high], part_base, size[mask], rows[mask], place)
        # Shift the spans to the pixels of their masks; the leading parts without a shift are in place.
        shift = base[mask] - part_base
        moved = int(np.argmax(shift != 0)) if shift.any() else len(mask)
        before = int(number[:moved].sum())
        bounds[before:] += shift[moved:].astype(np.int32).repeat(number[moved:])[:, None]
        some.append(bounds)
        numbers.append(number)
    # Unite the spans of the masks that have several parts. Spans of neighboring masks may touch, but
    # union_of_parts keeps them apart, so each mask counts those that start in its range.
    bounds, number = np.concatenate(some), np.concatenate(numbers)
    single = int(np.argmax(count != 1))
    cut = int(number[:single].sum())
    union = union_of_parts(bounds[cut:])
    inside = np.diff(np.searchsorted(union[:, 0], np.append(base[single:], np.iinfo(np.int64).max)))
    counts = np.concatenate([number[:single], inside])
    return Spans(np.concatenate([bounds[:cut], union]), counts, base, size, np.empty(0, np.int32)), order


def _part_bounds(
    columns: MaskColumns,
    parts: Positions,
    base: NDArray[np.int64],
    size: NDArray[np.int64],
    rows: Positions,
    place: Place,
) -> tuple[NDArray[np.int32], Positions]:
    """Spans of each part separately, and how many each has; ``rows`` are the masks they are of."""
    # pycocotools takes a mask for polygons if its first part has more than 4 numbers.
    start, count = columns.part_start[parts], columns.part_count[parts]
    first = columns.part_count[columns.start[rows]]
    if first.min(initial=5) < 5:
        row = int(rows[np.argmax(first < 5)])
        rule = "be polygons of at least 3 points, or counts that add up to height times width"
        text = repr(columns.given(row))
        got = text if len(text) <= 60 else text[:57] + "..."
        raise InputError("a mask", rule, got=got, place=place(row))
    # Parts that follow each other in memory are one slice; any others are gathered.
    if bool((start[1:] == start[:-1] + count[:-1]).all()):
        points = columns.points[start[0] : start[-1] + count[-1]]
    else:
        points = columns.points[ragged_ranges(start, count)]
    checks.finite(
        points,
        name="a polygon",
        place=lambda point: place(int(np.repeat(rows, count)[point])),
        limit=LARGEST_VERTEX,
    )
    # Limit the outlines before their steps are computed: a small file could ask for any amount of memory.
    edges = edges_of(points, count)
    too_long = edges.length > FINENESS * LONGEST_OUTLINE
    if too_long.any():
        part = int(np.argmax(too_long))
        raise InputError(
            "a polygon",
            f"have an outline of at most {LONGEST_OUTLINE:,} pixels",
            got=f"{edges.length[part] // FINENESS:,}",
            place=place(int(rows[part])),
            cause="are its corners out of order?",
        )
    # A sorted pair of positions is the start and the end of a span.
    positions, counts = toggles(edges, base, size)
    return positions.reshape(-1, 2), counts // 2
