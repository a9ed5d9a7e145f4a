"""Read masks in the format of Open Images, and join the segments file with the box file.

Conventions
-----------
- A mask is base64 of zlib of the counts of a compressed COCO RLE; ImageWidth and ImageHeight are its size.
- Boxes and segments are joined as in the reference: every pair of rows with equal label, image, four
  coordinates and group flag becomes one row; other rows stay separate, and boxes among them
  lack a mask. Rows are sorted by these columns.

References
----------
The TensorFlow Object Detection API, ``oid_challenge_evaluation_utils.py`` (``merge_boxes_and_masks``).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore._utils.text import counted_of, short_list, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.base import MaskColumn
from boxscore.data.column_names import column_parts
from boxscore.errors import FileFormatError
from boxscore.extensions.masks.column import Masks
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows
from boxscore.formats._tables import Table, rows_of

LONGEST = 1 << 24
"""Maximum number of characters of one mask."""
ALWAYS, RATIO = 1 << 26, 100
"""Limits on the unpacked size of all masks: in bytes, and as a multiple of their text."""


def decoded_masks(
    texts: Sequence[str],
    positions: NDArray[np.int64],
    sizes: NDArray[np.float64],
    *,
    name: str,
    place: Place,
) -> list[dict[str, Any] | None]:
    """Decode distinct texts; ``positions`` [N] is the text of each row or -1, ``sizes`` [N, 2] its size."""
    # Unpack each distinct text once, within limits: a short text may unpack to gigabytes.
    left = max(ALWAYS, RATIO * sum(map(len, texts)))
    counts = []
    for number, text in enumerate(texts):
        try:
            unpacking = zlib.decompressobj()
            code = unpacking.decompress(base64.b64decode(text, validate=True), min(LONGEST, left))
            sound = unpacking.eof and not unpacking.unused_data and code.isascii()
        except (binascii.Error, ValueError, zlib.error):
            code, sound, unpacking = b"", False, zlib.decompressobj()
        left -= len(code)
        # Name the first row with this text.
        if not sound:
            row = int(np.argmax(positions == number))
            too_long = bool(unpacking.unconsumed_tail) or left <= 0
            raise FileFormatError(
                name,
                "be base64 of zlib of the counts of a COCO RLE",
                got=f"more than {LONGEST:,} characters unpacked" if too_long else repr(text)[:40],
                place=place(row),
                cause="" if too_long else "was the file cut off, or opened in a spreadsheet?",
            )
        counts.append(code.decode("ascii"))
    # The counts of an RLE need the height, so every mask needs its image size.
    has_mask = positions >= 0
    with np.errstate(invalid="ignore"):
        unsized = has_mask & ~((sizes >= 1) & (sizes == np.floor(sizes)) & (sizes < 2e6)).all(axis=1)
    if unsized.any():
        row = int(np.argmax(unsized))
        got = f"{sizes[row, 0]:g} x {sizes[row, 1]:g}"
        rule = "have ImageWidth and ImageHeight in whole pixels"
        raise FileFormatError("a row with a mask", rule, got=got, place=place(row))
    # Share one string between rows with the same text.
    return [
        None if at < 0 else {"size": [int(height), int(width)], "counts": counts[at]}
        for at, (width, height) in zip(positions.tolist(), sizes.tolist(), strict=True)
    ]


def encoded_masks(masks: MaskColumn) -> tuple[list[int | None], list[int | None], list[str | None]]:
    """Return widths, heights and texts of masks, [N] each; None without a mask."""
    widths: list[int | None] = [None] * len(masks)
    heights, texts = list(widths), list[str | None]([None] * len(masks))
    with_mask = np.flatnonzero(~masks.missing)
    for row, code in zip(with_mask.tolist(), masks[with_mask].codes(), strict=True):
        heights[row], widths[row] = code["size"]
        counts = code["counts"]
        packed = zlib.compress(counts.encode() if isinstance(counts, str) else counts)
        texts[row] = base64.b64encode(packed).decode("ascii")
    return widths, heights, texts


def boxes_of_masks(masks: Sequence[Any], *, place: Place) -> NDArray[np.float64]:
    """Return the boxes around masks as fractions of the image sizes, [N, 4]; 0 without a mask."""
    column = Masks(masks, place=place)
    boxes = np.zeros((len(column), 4))
    with_mask = np.flatnonzero(~column.missing)
    column = column[with_mask]
    boxes[with_mask] = column.boxes / np.tile(column.sizes[:, ::-1], 2)
    return boxes


def with_segments(boxes: Rows, table: Table, options: ReadOptions) -> Rows:
    """Add the masks in a second file's table to the rows of boxes."""
    parts = column_parts(table.names, place=table.source)
    if parts.mask is None or not parts.box:
        raise FileFormatError(
            "segments",
            "have the columns XMin, XMax, YMin, YMax, IsGroupOf, Mask, ImageWidth and ImageHeight",
            got=f"only {short_list(table.names)}",
            place=table.source,
            cause="is this the file of boxes?" if parts.box else "are these predictions?",
        )
    return _joined_with_segments(boxes, rows_of(table, options, None, of_results=False))


def _joined_with_segments(boxes: Rows, segments: Rows) -> Rows:
    """Join the rows of boxes with the masks of another file."""
    import pandas as pd

    # Number the images and labels of both files jointly, so that pandas joins integers.
    images, (box_image, segment_image) = _together(boxes.images, segments.images)
    labels, (box_label, segment_label) = _together(boxes.labels, segments.labels)
    assert boxes.boxes is not None
    assert segments.boxes is not None
    # Require equal coordinates to the last bit; ranks sort the result by name.
    keys = ["label", "image", "xmin", "xmax", "ymin", "ymax", "group"]
    frames = []
    for rows, image, label in ((boxes, box_image, box_label), (segments, segment_image, segment_label)):
        group = np.asarray(rows.given.get("group", np.zeros(len(rows.image), dtype=bool)))
        columns = [_rank(labels)[label[rows.label]], _rank(images)[image[rows.image]]]
        columns += [*np.asarray(rows.boxes)[:, [0, 2, 1, 3]].T, group]
        frame = pd.DataFrame(dict(zip(keys, columns, strict=True)))
        frames.append(frame.assign(row=np.arange(len(frame))))
    # The outer join keeps boxes without a segment, and segments without a box.
    both = frames[0].merge(frames[1], how="outer", on=keys, sort=True, suffixes=("", "_segment"))
    box_row, segment_row = (
        both[name].fillna(-1).to_numpy().astype(np.int64) for name in ("row", "row_segment")
    )
    alone = int((box_row < 0).sum())
    if alone:
        warn_user(
            f"{segments.source}: {counted_of(alone, len(segments.image), 'segment')} {verb(alone, 'do')} "
            f"not match any row in {boxes.source} by label, image, coordinates and IsGroupOf, and "
            f"{'becomes a separate object' if alone == 1 else 'become separate objects'}. Were both "
            "files expanded along the hierarchy and written with the same number of digits?",
        )
    # Take each row from the boxes if it is there, otherwise from the segments.
    has_box = box_row >= 0

    def chosen(of_boxes: Any, of_segments: Any) -> NDArray[Any]:
        values = np.concatenate([np.asarray(of_boxes), np.asarray(of_segments)])
        taken: NDArray[Any] = values[np.where(has_box, box_row, len(boxes.image) + segment_row)]
        return taken

    # Keep a flag only if both files have it.
    masks = segments.given.get("masks", [None] * len(segments.image))
    given = {
        name: chosen(boxes.given[name], segments.given[name])
        for name in ("group", "crowd")
        if name in boxes.given and name in segments.given
    }
    # Segments have the size of their images in pixels.
    sizes = np.full((len(images), 2), np.nan)
    for rows, image in ((boxes, box_image), (segments, segment_image)):
        if rows.sizes is not None:
            sizes[image] = np.where(np.isnan(rows.sizes), sizes[image], rows.sizes)
    return dataclasses.replace(
        boxes,
        images=images,
        image=chosen(box_image[boxes.image], segment_image[segments.image]),
        labels=labels,
        label=chosen(box_label[boxes.label], segment_label[segments.label]),
        label_names=None,
        boxes=chosen(boxes.boxes, segments.boxes),
        file_names=None,
        sizes=None if np.isnan(sizes).all() else sizes,
        given={**given, "masks": [None if row < 0 else masks[row] for row in segment_row.tolist()]},
        columns={}
        if alone
        else {name: np.asarray(values)[box_row] for name, values in boxes.columns.items()},
        place=lambda row: (
            boxes.place(int(box_row[row])) if has_box[row] else segments.place(int(segment_row[row]))
        ),
    )


def _together(first: Sequence[Any], second: Sequence[Any]) -> tuple[list[Any], list[NDArray[np.int64]]]:
    """Return the distinct values of two lists, and the index of each list's values in them."""
    known: dict[str, int] = {}
    values: list[Any] = []
    positions = []
    for some in (first, second):
        for value in some:
            if known.setdefault(str(value), len(values)) == len(values):
                values.append(value)
        positions.append(np.array([known[str(value)] for value in some], dtype=np.int64))
    return values, positions


def _rank(values: Sequence[Any]) -> NDArray[np.int64]:
    """Return the rank of each value, sorted as text."""
    order = sorted(range(len(values)), key=lambda number: str(values[number]))
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    return rank
