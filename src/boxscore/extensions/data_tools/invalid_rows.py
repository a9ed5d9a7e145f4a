"""Find rows that cannot be scored; drop them, or turn them into detections that match nothing.

Conventions
-----------
- A row is invalid if a number is NaN, infinite or too large, or if a side is negative: a diverged model.
- Columns are arrays or lists by key. ``boxes`` are corners with ``sizes`` [N, 2], or
  ``x, y, width, height`` without them.
- :class:`boxscore.Evaluator` and every file of :mod:`boxscore.integrations` use these rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.vocabulary import Id

Columns = dict[str, Any]
"""One value per object or detection, by key."""

Invalid = Literal["error", "drop", "false_positive"]
"""How rows with non-finite boxes or scores, or with negative sides, are treated."""

REMEDY = "invalid='drop' ignores such rows, invalid='false_positive' counts them as false positives"

LARGEST_NUMBER = float(np.finfo(np.float64).max)
FAR_AWAY = -1e9
"""A coordinate far outside any image."""
LIMITS = {
    **dict.fromkeys(("boxes", "sizes", "rotated", "keypoints"), checks.LARGEST_COORDINATE),
    **dict.fromkeys(("scores", "area"), LARGEST_NUMBER),
}
"""The largest allowed numbers."""


def invalid_rows(columns: Mapping[str, Any], count: int) -> NDArray[np.bool_]:
    """Flag the invalid rows, [N]."""
    bad = np.zeros(count, dtype=bool)
    for key, limit in LIMITS.items():
        values = columns.get(key)
        if values is None or not values.size:
            continue
        # The extremes of the column decide in nearly all cases; NaN compares false.
        if not (-limit <= float(values.min()) and float(values.max()) <= limit):
            wide = values.astype(np.float64)
            bad |= ~(np.abs(wide) <= limit).all(axis=tuple(range(1, values.ndim)))
    for sides in _sides(columns).values():
        if not sides.min(initial=0) >= 0:
            bad |= (sides < 0).any(axis=1)
    return bad


def _sides(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the widths and heights among the columns; boxes with sizes are corners."""
    places = {"sizes": slice(0, 2), "rotated": slice(2, 4), "boxes": slice(2, 4)}
    known = {key: columns.get(key) for key in places if key != "boxes" or "sizes" not in columns}
    return {
        key: values[:, places[key]] for key, values in known.items() if values is not None and values.size
    }


def checked(invalid: Invalid) -> Invalid:
    """Check the value of an option ``invalid=``."""
    checks.one_of(invalid, get_args(Invalid), name="invalid")
    return invalid


def kept_rows(columns: Mapping[str, Any], kept: NDArray[np.bool_]) -> Columns:
    """Select rows of arrays and lists by flags; None stays."""
    if kept.all():
        return dict(columns)
    chosen = np.flatnonzero(kept)
    return {
        key: [values[row] for row in chosen]
        if isinstance(values, list)
        else None
        if values is None
        else values[chosen]
        for key, values in columns.items()
    }


def match_nothing(columns: Columns, bad: NDArray[np.bool_], image: NDArray[Any] | None = None) -> None:
    """Move detections far outside the image, with area 0, in place.

    Parameters
    ----------
    columns : dict
        Arrays of float64, which are changed, and lists, which are replaced.
    bad : ndarray of bool, [N]
    image : ndarray of int, [N], optional
        The image of each row; by default all rows are of one. A detection without a valid score becomes the
        last of its image: at 0, or at the lowest score if that is less.
    """
    boxes = columns.get("boxes")
    if boxes is not None:
        boxes[bad] = FAR_AWAY
        columns.get("sizes", boxes[:, 2:])[bad] = 0.0
    if columns.get("keypoints") is not None:
        columns["keypoints"][bad] = FAR_AWAY
    if columns.get("rotated") is not None:
        columns["rotated"][bad] = [FAR_AWAY, FAR_AWAY, 0.0, 0.0, 0.0]
    if columns.get("masks") is not None:
        columns["masks"] = [
            _empty_mask(mask) if is_bad else mask
            for mask, is_bad in zip(columns["masks"], bad.tolist(), strict=True)
        ]
    scores = columns.get("scores", np.empty(0))
    known = np.isfinite(scores)
    if not known.all():
        image = np.zeros(len(scores), dtype=np.int64) if image is None else image
        lowest = np.zeros(int(image.max()) + 1)
        np.minimum.at(lowest, image[known], scores[known])
        scores[~known] = lowest[image[~known]]


def _empty_mask(mask: Any) -> Any:
    """Return an empty mask of the same image size."""
    if isinstance(mask, Mapping):
        return {"size": mask["size"], "counts": [int(mask["size"][0]) * int(mask["size"][1])]}
    return [[0.0] * 6]


def without_invalid(columns: Columns, images: Any, *, invalid: Invalid, kind: str = "prediction") -> Columns:
    """Treat the invalid rows of many images, and warn how many there are.

    Parameters
    ----------
    columns : mapping
        One side in the form of ``from_arrays`` with ``box_format="xywh"``; nothing in it is changed.
    images : array_like of int or str, [N]
        The image of each row.
    invalid : {"error", "drop", "false_positive"}
        As in :class:`boxscore.Evaluator`; targets are dropped unless it is an error.
    kind : {"prediction", "target"}

    Returns
    -------
    dict
        The same object if no row is invalid.

    Raises
    ------
    InputError
        With "error", at the first invalid row, which it names with its image.
    """
    scored = {key: columns[key] for key in LIMITS if columns.get(key) is not None}
    bad = invalid_rows(scored, len(images))
    if not bad.any():
        return columns
    if invalid == "error":
        _refuse(scored, kind, images)
    ids, image = np.unique(np.asarray(images), return_inverse=True)
    names = ids.tolist()
    warn_of_invalid({names[row]: n for row, n in Counter(image[bad].tolist()).items()}, kind, invalid)
    # Work on copies: batches may be evaluated again.
    if invalid == "false_positive" and kind == "prediction":
        made = {**columns, **{key: np.array(values, dtype=np.float64) for key, values in scored.items()}}
        match_nothing(made, bad, image)
        return made
    return kept_rows(columns, ~bad)


def _refuse(columns: Mapping[str, Any], kind: str, images: Any) -> None:
    """Raise the error for an invalid row; name it by its number in its image."""

    def place(row: int) -> str:
        image = images[row].item() if hasattr(images[row], "item") else images[row]
        return f"row {sum(1 for other in images[:row] if other == image)} of the {kind} of image {image!r}"

    for key, values in columns.items():
        numbers = values.astype(np.float64).reshape(len(images), -1)
        name = {"boxes": "box"}.get(key, key)
        checks.finite(
            numbers if values.ndim > 1 else numbers[:, 0],
            name=name,
            place=place,
            limit=LIMITS[key],
            cause=REMEDY,
        )
    for sides in _sides(columns).values():
        checks.sizes_not_negative(sides, place=place, cause=REMEDY)


def warn_of_invalid(counts: Mapping[Id, int], kind: str, invalid: Invalid) -> None:
    """Warn about invalid rows, whose number is given for each image that has some."""
    if not counts:
        return
    count, became = sum(counts.values()), "dropped"
    if invalid == "false_positive" and kind == "prediction":
        became = f"counted as {'a false positive' if count == 1 else 'false positives'}"
    warn_user(
        f"{counted(count, kind)} of {counted(len(counts), 'image')} {became}: boxes or scores that are NaN "
        "or infinite, or boxes that end before they begin; the first in image "
        f"{min(counts, key=str)!r}.",
    )
