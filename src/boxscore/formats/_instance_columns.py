"""Masks and keypoints as plain arrays, and back: the part of a file of columns that few tables have.

Conventions
-----------
- Masks are kept as compressed run-length codes, one after the other in ``mask_counts``: polygons are
  rasterised before they are saved, which is what every evaluation does to them. ``mask_rows`` names the rows
  that have one, ``mask_lengths`` the bytes of each code, ``mask_sizes`` its height and width.
- Areas and boxes of masks are not kept: they are computed from the codes, so that a damaged file is noticed.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore.data.masks import Masks
from boxscore.data.tables import BoxTable
from boxscore.errors import FileFormatError

__all__ = ["instance_arrays", "masks_of", "points_of"]

_MASK_ARRAYS = {"mask_rows": "i8", "mask_lengths": "i8", "mask_sizes": "i8", "mask_counts": "u1"}


def instance_arrays(table: BoxTable) -> dict[str, NDArray[Any]]:
    """Return a table's masks and keypoints as arrays, by name; none where it has neither."""
    arrays: dict[str, NDArray[Any]] = {}
    if table.keypoints is not None:
        arrays["keypoints"] = table.keypoints
        count = getattr(table, "keypoint_count", None)
        if count is not None:
            arrays["keypoint_count"] = count
    if table.masks is not None:
        rows = np.flatnonzero(~table.masks.missing)
        present = table.masks[rows]
        counts = [code["counts"] for code in present.codes()]
        texts = [text.encode("ascii") if isinstance(text, str) else text for text in counts]
        arrays["mask_rows"] = rows.astype(np.int64)
        arrays["mask_lengths"] = np.array([len(text) for text in texts], dtype=np.int64)
        arrays["mask_sizes"] = present.sizes
        arrays["mask_counts"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return arrays


def masks_of(
    arrays: dict[str, NDArray[Any]], image_sizes: NDArray[np.float64], *, place: Place, source: str
) -> Masks | None:
    """Return the masks of rows whose images have these sizes (width, height; [N, 2]); None without any.

    Raises
    ------
    FileFormatError
        When the arrays do not fit each other.
    """
    if "mask_rows" not in arrays:
        return None
    for name, code in _MASK_ARRAYS.items():
        if name not in arrays or arrays[name].dtype != np.dtype(code):
            got = str(arrays[name].dtype) if name in arrays else "none"
            raise _damaged(name, f"be {np.dtype(code)}", got, source)
    rows, lengths, sizes, counts = (arrays[name] for name in _MASK_ARRAYS)
    if rows.ndim != 1 or np.any(np.diff(rows) <= 0) or np.any((rows < 0) | (rows >= len(image_sizes))):
        raise _damaged("mask_rows", f"be ascending rows below {len(image_sizes)}", "others", source)
    if lengths.shape != rows.shape or np.any(lengths < 0) or lengths.sum() != counts.size:
        raise _damaged(
            "mask_lengths",
            f"add up to {counts.size}, one a mask",
            f"{lengths.sum()} of {lengths.size}",
            source,
        )
    if sizes.shape != (len(rows), 2) or np.any(sizes < 0):
        raise _damaged("mask_sizes", f"be {[len(rows), 2]} and not negative", list(sizes.shape), source)
    text = counts.tobytes()
    ends = [0, *itertools.accumulate(lengths.tolist())]
    given: list[Any] = [None] * len(image_sizes)
    for row, size, start, end in zip(rows.tolist(), sizes.tolist(), ends, ends[1:], strict=False):
        given[row] = {"size": size, "counts": text[start:end]}
    return Masks(given, image_sizes=image_sizes, place=place)


def points_of(arrays: dict[str, NDArray[Any]], count: int, *, source: str) -> dict[str, Any]:
    """Return the columns ``keypoints`` and ``keypoint_count`` of ``count`` rows, as far as they are there.

    Raises
    ------
    FileFormatError
        When they do not fit the rows, or a coordinate is not finite.
    """
    columns: dict[str, Any] = {}
    if "keypoints" in arrays:
        points = arrays["keypoints"]
        if points.dtype != np.float64 or points.ndim != 3 or points.shape[::2] != (count, 3):
            raise _damaged(
                "keypoints", f"be float64 [{count}, J, 3]", f"{points.dtype} {points.shape}", source
            )
        if not np.isfinite(points).all():
            raise _damaged("keypoints", "be finite", "others", source)
        columns["keypoints"] = points
    if "keypoint_count" in arrays:
        labelled = arrays["keypoint_count"]
        if labelled.dtype != np.int64 or labelled.shape != (count,):
            raise _damaged(
                "keypoint_count", f"be int64 [{count}]", f"{labelled.dtype} {labelled.shape}", source
            )
        columns["keypoint_count"] = labelled
    return columns


def _damaged(name: str, rule: str, got: object, source: str) -> FileFormatError:
    return FileFormatError(f"column {name}", rule, got=got, place=source, cause="a damaged file?")
