"""Rasterize masks of any form to spans, and check that they can be rasterized.

Conventions
-----------
- Images have sides of 1 to :data:`LARGEST_SIDE` pixels, and at most 2**31 - 1 pixels.
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
"""Characters, numbers and pairs of columns per batch, so that temporaries fit the cache of a core."""


def weights(columns: MaskColumns) -> NDArray[np.float64]:
    """Return the fraction of a batch that each mask takes, [N]; a mask of 1 or more is a batch of its own."""
    height, width = columns.size.astype(np.float64).T
    content = columns.weight + np.clip(width, 1, LARGEST_SIDE) / 2
    weight: NDArray[np.float64] = np.maximum(content / BATCH, height * width / 2**30)
    return weight


def batches(weight: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Split rows into batches with a total weight of at most 1, or of one row."""
    total = np.cumsum(weight)
    low = 0
    while low < len(total):
        before = total[low - 1] if low else 0.0
        high = max(int(np.searchsorted(total, before + 1.0, side="right")), low + 1)
        yield low, high
        low = high


def spans_of(columns: MaskColumns, rows: Positions, place: Place) -> tuple[Spans, Positions]:
    """Return the spans of some rows in any order, and the position of each of ``rows`` in them."""
    # Convert each kind of masks separately, then join the results and track where each row went.
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
    # Missing masks cannot be rasterized.
    missing = columns.kind[rows] == MISSING
    if missing.any():
        row = int(rows[np.argmax(missing)])
        raise InputError("a row", "have a mask", got="none", place=place(row))
    # Pass valid sizes with two reductions. The sides are tested first, so the product cannot overflow.
    size = columns.size[rows]
    fine = size.min(initial=1) >= 1 and size.max(initial=1) <= LARGEST_SIDE
    if fine and (size[:, 0] * size[:, 1]).max(initial=1) <= MOST_PIXELS:
        return
    # Name the first invalid row, with the likely cause.
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
    """Raise an error that names the mask whose runs do not add up to its size."""
    # First look for RLEs that end inside a number: they were truncated.
    for row, text in zip(rows.tolist(), texts or (), strict=False):
        if text and (text[-1] - 48) & 32:
            end: str | bytes = text[-8:]
            if columns.kind[row] == TEXT:
                end = text.decode("utf-8", "replace")[-8:]
            got = f"counts that end in {end!r}"
            raise InputError("a mask", "be whole", got=got, place=place(row), cause="cut short?")
    # Otherwise name the first mask whose runs do not add up to its size.
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
    # Put masks with one part first: they need no union.
    if (count != 1).any():
        order = np.argsort(count != 1, kind="stable")
        rows, count = rows[order], count[order]
    # Number the pixels of all masks [N] continuously.
    size = columns.size[rows]
    pixels = size[:, 0] * size[:, 1]
    base = np.cumsum(pixels) - pixels
    if order is None:
        bounds, counts = _part_bounds(columns, columns.start[rows], base, size, rows, place)
        return Spans(bounds, counts, base, size, np.empty(0, np.int32)), None
    # Rasterize the parts in batches with their own pixel numbers, then shift these to the numbers of their
    # masks, so that the spans of all parts of a mask can be united.
    owner, parts = np.repeat(np.arange(len(rows)), count), ragged_ranges(columns.start[rows], count)
    some: list[NDArray[np.int32]] = []
    numbers: list[Positions] = []
    for low, high in batches(pixels[owner] / 2**30):
        # Rasterize some parts in one call, within a range of pixel numbers that fits an int32.
        mask = owner[low:high]
        part_base = np.cumsum(pixels[mask]) - pixels[mask]
        bounds, number = _part_bounds(columns, parts[low:high], part_base, size[mask], rows[mask], place)
        # Shift the spans to the pixels of their masks; leading parts have a shift of 0.
        shift = base[mask] - part_base
        moved = int(np.argmax(shift != 0)) if shift.any() else len(mask)
        before = int(number[:moved].sum())
        bounds[before:] += shift[moved:].astype(np.int32).repeat(number[moved:])[:, None]
        some.append(bounds)
        numbers.append(number)
    # Unite the spans of masks with several parts. ``union_of_parts`` does not join spans that touch, so each
    # mask counts the spans that start in its range.
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
    """Return the spans of each part separately, and their number; ``rows`` are the masks of the parts."""
    # pycocotools treats a mask as polygons if its first part has more than 4 numbers.
    start, count = columns.part_start[parts], columns.part_count[parts]
    first = columns.part_count[columns.start[rows]]
    if first.min(initial=5) < 5:
        row = int(rows[np.argmax(first < 5)])
        rule = "be polygons of at least 3 points, or counts that add up to height times width"
        text = repr(columns.given(row))
        got = text if len(text) <= 60 else text[:57] + "..."
        raise InputError("a mask", rule, got=got, place=place(row))
    # Take consecutive parts as one slice; gather any others.
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
    # Limit the outlines before computing their steps: a small file could require any amount of memory.
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
    # Each sorted pair of positions is the start and end of a span.
    positions, counts = toggles(edges, base, size)
    return positions.reshape(-1, 2), counts // 2
