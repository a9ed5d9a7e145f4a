"""Outcomes of batches for ``_evalImgs_cpp``: opaque, like the library's own, and accumulated together.

Goal
----
D-FINE, RT-DETR and others evaluate a few images at a time, gather the outcomes of all batches and ranks, and
accumulate them. An outcome here is a reference to the matches of its batch. The matches of all batches merge
into one, so no dictionary is made for any image.

Conventions
-----------
- The list runs over categories, then area ranges, then images, like ``evalImgs``.
- A list that is not exactly the outcomes of some images of some batches becomes dictionaries.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.compat.pycocotools._core import Matched, arrays_of, asks_for_all
from boxscore.compat.pycocotools._eval_imgs import eval_imgs
from boxscore.data.vocabulary import Images
from boxscore.matching.matches import Matches, merge

__all__ = ["Batch", "Outcome", "arrays_of_outcomes", "listed"]


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """The matches of one ``evaluate``, and its parameters."""

    matched: Matched
    params: Any

    @functools.cached_property
    def entries(self) -> list[Any]:
        """The same outcomes as dictionaries."""
        return eval_imgs(self.matched, self.params)

    @functools.cached_property
    def groups(self) -> NDArray[np.int64]:
        """Category x images + image of those with an annotation on either side; ascending."""
        matches, images = self.matched.matches, len(self.params.imgIds)
        pairs = (matches.category, matches.image), (matches.truth_category, matches.truth_image)
        return np.union1d(*(category.astype(np.int64) * images + image for category, image in pairs))

    def __getstate__(self) -> dict[str, Any]:
        return {"matched": self.matched, "params": self.params}


class Outcome:
    """The outcome at one position of the list of a batch."""

    __slots__ = ("batch", "position")

    def __init__(self, batch: Batch, position: int) -> None:
        self.batch, self.position = batch, position

    def entry(self) -> Any:
        """Return the dictionary that pycocotools makes."""
        return self.batch.entries[self.position]


def listed(batch: Batch, categories: int) -> list[Outcome | None]:
    """List the outcomes of a batch; None if both sides are empty."""
    I, A = len(batch.params.imgIds), len(batch.params.areaRng)  # noqa: E741 - the axis of images
    outcomes: list[Outcome | None] = [None] * (categories * A * I)
    category, image = np.divmod(batch.groups, I)
    for area in range(A):
        for position in ((category * A + area) * I + image).tolist():
            outcomes[position] = Outcome(batch, position)
    return outcomes


def arrays_of_outcomes(outcomes: Any, evaluated: Any, params: Any) -> dict[str, FloatArray] | None:
    """Return the arrays of ``eval``; None if the list or the parameters are not those of whole batches.

    Parameters
    ----------
    outcomes : list
        Of the parameters ``evaluated``.
    params : Params
        Those of ``accumulate``.
    """
    if not isinstance(outcomes, list) or not asks_for_all(params, evaluated):
        return None
    given = [one for one in outcomes if one is not None]
    if not given or set(map(type, given)) != {Outcome}:
        return None
    # All batches follow the same rules, those of the parameters.
    batches = list({id(one.batch): one.batch for one in given}.values())
    first = batches[0]
    if len(outcomes) % len(evaluated.imgIds) or not all(_alike(batch, first, evaluated) for batch in batches):
        return None
    columns = _columns(outcomes, given, batches, len(evaluated.imgIds))
    if columns is None:
        return None
    # Number images by their place in the list and truths batch by batch; classes are the same everywhere.
    images, parts, truths = Images.of_ids(np.arange(len(evaluated.imgIds))), [], 0
    for batch, column in zip(batches, columns, strict=True):
        part = _placed(batch.matched.without_id_zero(), column, images)
        categories = first.matched.matches.categories
        parts.append(dataclasses.replace(part, categories=categories, truth_row=part.truth_row + truths))
        truths += int(part.truth_row.max(initial=-1)) + 1
    return arrays_of(merge(parts), first.matched.protocol, first.matched.caps, params.recThrs)


def _alike(batch: Batch, first: Batch, evaluated: Any) -> bool:
    """Whether a batch was evaluated like the first one, and like the parameters say."""
    given, params = batch.matched, batch.params
    return bool(
        (given.protocol is first.matched.protocol or given.protocol == first.matched.protocol)
        and given.caps == list(evaluated.maxDets)
        and list(params.catIds) == list(evaluated.catIds)
        and bool(params.useCats) == bool(evaluated.useCats)
        and np.array_equal(params.iouThrs, evaluated.iouThrs)
        and list(map(tuple, params.areaRng)) == list(map(tuple, evaluated.areaRng))
    )


def _columns(
    outcomes: Sequence[Any],
    given: Sequence[Outcome],
    batches: Sequence[Batch],
    I: int,  # noqa: E741
) -> list[NDArray[np.int64]] | None:
    """Return the column of each image of each batch in the list, -1 for none; None if any is incomplete."""
    # Find each outcome's place in the list, and its place in the list of its batch.
    number = {id(batch): row for row, batch in enumerate(batches)}
    place = np.fromiter((row for row, one in enumerate(outcomes) if one is not None), np.int64, len(given))
    position = np.fromiter((one.position for one in given), np.int64, len(given))
    of_batch = np.fromiter((number[id(one.batch)] for one in given), np.int64, len(given))
    sizes = np.array([len(batch.params.imgIds) for batch in batches])
    # Both have the same category and area range.
    if (place // I != position // sizes[of_batch]).any():
        return None
    # Each image of a batch has one column, and no column has two of them.
    starts = np.cumsum([0, *sizes])
    image = starts[of_batch] + position % sizes[of_batch]
    columns = np.full(starts[-1], -1)
    columns[image] = place % I
    used = np.flatnonzero(columns >= 0)
    if (columns[image] != place % I).any() or len(np.unique(columns[used])) != len(used):
        return None
    # Nothing of these images is left out.
    of_images = [
        np.bincount(batch.groups % size, minlength=size) for batch, size in zip(batches, sizes, strict=True)
    ]
    areas = len(batches[0].params.areaRng)
    if np.concatenate(of_images)[used].sum() * areas != len(given):
        return None
    return np.split(columns, starts[1:-1])


def _placed(matches: Matches, column: NDArray[np.int64], images: Images) -> Matches:
    """Renumber the images of a batch by their place in the list; leave out those that have none."""
    kept = column >= 0
    if not (kept[matches.image].all() and kept[matches.truth_image].all()):
        matches, column = matches.take_images(kept), column[kept]
    return matches.with_images(images, column.astype(np.int32))
