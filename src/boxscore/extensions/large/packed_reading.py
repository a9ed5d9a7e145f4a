"""Check packed matches read from a file, against the protocol and column against column.

Errors are ``ValueError``; the caller adds the name of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.extensions.large.packed import EXTRA_PREFIX, PACKED_COLUMNS, PackedMatches
from boxscore.matching.matches import bit_type
from boxscore.protocols.acting import ExtraColumn
from boxscore.protocols.protocol import EXTRA_COLUMNS, Protocol

Arrays = Mapping[str, NDArray[Any]]

KINDS = {"bool": "b", "float": "f", "whole": "u", "bits": "u"}
"""NumPy kinds of extra columns."""


def packed_of_arrays(arrays: Arrays, protocol: Protocol, images: int, K: int) -> PackedMatches:
    """Check the arrays of :meth:`PackedMatches.arrays`, including every index into another array.

    ``K`` is the number of classes of the part before pooling.
    """
    # Check names and bounds first: they decide the length of every other column.
    classes = K if protocol.matching.per_class else 1
    in_parts = [column for column in EXTRA_COLUMNS.values() if column.in_parts]
    _check_names(arrays, in_parts, protocol)
    D, P, G = _check_bounds(arrays["bounds"], classes)
    T, A = len(protocol.matching.iou_thresholds), len(protocol.ignore.area_ranges)
    outcomes = arrays["outcomes"]
    if outcomes.dtype != bit_type(T) or outcomes.ndim != 2 or outcomes.shape[1] != A:
        raise ValueError(f"outcomes {outcomes.dtype} {list(outcomes.shape)}")
    # Check type and length of each column.
    lengths = {"detection": D, "pair": P, "truth": G, "outcome": len(outcomes)}
    for name, (axis, kind) in PACKED_COLUMNS.items():
        if name in arrays:
            _check_column(name, arrays[name], kind, (lengths[axis],))
    # Check that no index is out of range; they are unsigned, so the maximum is enough.
    for name, size in (("image", images), ("truth_image", images), ("truth", G), ("outcome", len(outcomes))):
        if len(arrays[name]) and int(arrays[name].max()) >= size:
            raise ValueError(f"{name} {int(arrays[name].max())} of {size}")
    # Check extra columns, then that pairs stay within a class and that scores descend.
    extra = {
        name.removeprefix(EXTRA_PREFIX): values
        for name, values in arrays.items()
        if name.startswith(EXTRA_PREFIX)
    }
    for column in in_parts:
        if column.name in extra:
            _check_extra(column, extra, lengths, protocol, images, classes)
    _check_pairs(arrays)
    _check_scores(arrays["score"], arrays["bounds"][0])
    return PackedMatches(
        bounds=arrays["bounds"],
        **{name: arrays.get(name) for name in PACKED_COLUMNS},  # type: ignore[arg-type]
        outcomes=outcomes,
        extra=extra,
        threshold_count=T,
        area_count=A,
        equal_scores=protocol.matching.equal_scores,
    )


def _check_names(arrays: Arrays, in_parts: list[ExtraColumn], protocol: Protocol) -> None:
    """Raise if a column is not declared, or is missing though the protocol needs it."""
    needed = {"bounds", "outcomes", *PACKED_COLUMNS} - {"row"}
    known = needed | {"row"}
    for column in in_parts:
        names = {EXTRA_PREFIX + name for name in column.names}
        known |= names
        if column.asked_for(protocol) or names & set(arrays):
            needed |= names
    unknown, missing = sorted(set(arrays) - known), needed - set(arrays)
    if unknown:
        raise ValueError(f"the unknown column {unknown[0]}")
    if missing:
        raise ValueError(f"no column {min(missing)}")
    order = protocol.matching.equal_scores
    if "row" not in arrays and (order != "image_order" or protocol.matching.caps_data_set):
        raise ValueError("no column row")


def _check_bounds(bounds: NDArray[Any], classes: int) -> tuple[int, int, int]:
    """Return the number of detections, pairs and ground truths."""
    if bounds.dtype != np.int64 or bounds.shape != (3, classes + 1):
        raise ValueError(f"bounds {bounds.dtype} {list(bounds.shape)}")
    if (bounds[:, 0] != 0).any() or (np.diff(bounds, axis=1) < 0).any():
        raise ValueError("bounds that do not ascend")
    D, P, G = bounds[:, -1].tolist()
    return D, P, G


def _check_column(name: str, values: NDArray[Any], kind: str, shape: tuple[int, ...]) -> None:
    if values.dtype.kind != kind or values.shape != shape:
        raise ValueError(f"{name} {values.dtype} {list(values.shape)}, not {list(shape)}")


def _check_extra(
    column: ExtraColumn, extra: Arrays, lengths: Mapping[str, int], protocol: Protocol, images: int, K: int
) -> None:
    # Columns of row numbers may come before the values. Check the values by their declared axis.
    *numbers, values = (extra[name] for name in column.names)
    if column.kind == "bits" and values.dtype != bit_type(len(protocol.matching.iou_thresholds)):
        raise ValueError(f"{column.name} {values.dtype}")
    rows_of_column = {"class_image": len(values) if values.ndim else 0}
    length = {**lengths, **rows_of_column}["outcome" if column.kind == "bits" else column.axis]
    _check_column(column.name, values, KINDS[column.kind], (length, *column.shape(protocol)))
    # Written so that NaN, which fails both comparisons, is rejected too. The IoU of equal boxes may round up.
    largest = column.most + 1e-9
    if column.kind == "float" and not ((values >= 0) & (values <= largest)).all():
        raise ValueError(f"{column.name} below 0 or above {column.most:g}")
    if not numbers:
        return
    # Readers bisect the classes and index the images, so classes must ascend and images must exist.
    for name, rows in zip(column.names, numbers, strict=False):
        _check_column(name, rows, "u", (length,))
    category, image = numbers
    if (np.diff(category.astype(np.int64)) < 0).any() or category.max(initial=0) >= max(K, 1):
        raise ValueError(f"classes of {column.name} that do not ascend")
    if image.max(initial=0) >= max(images, 1):
        raise ValueError(f"{column.names[1]} {int(image.max())} of {images}")


def _check_pairs(arrays: Arrays) -> None:
    """Check that every pair joins a detection and a ground truth of one class."""
    bounds, truth = arrays["bounds"], arrays["truth"]
    ends = np.concatenate([[0], np.cumsum(arrays["pair_count"], dtype=np.int64)])
    if (ends[bounds[0]] != bounds[1]).any():
        raise ValueError("pairs of other detections")
    pairs = np.diff(bounds[1])
    low, high = np.repeat(bounds[2, :-1], pairs), np.repeat(bounds[2, 1:], pairs)
    if ((truth < low) | (truth >= high)).any():
        raise ValueError("pairs across classes")


def _check_scores(score: NDArray[Any], bounds: NDArray[np.int64]) -> None:
    """Check that scores descend within each class."""
    first = np.zeros(len(score), dtype=bool)
    first[bounds[bounds < len(score)]] = True
    if not np.isfinite(score).all() or (~first[1:] & (score[1:] > score[:-1])).any():
        raise ValueError("scores that do not descend")
