"""Add a number to the image ids of detections, and recognize ids that need it.

Goal
----
Programs count images from 0, from 1, or from the first id of a data set. Shifted ids place every box in
another image. If all ids exist, no value is invalid and the score is near 0; if one does not exist, the file
looks like results of other images.

Conventions
-----------
- An offset is added to the ids in the file of the detections. Ids are integers, or text of digits, which
  keeps its length: ``"000012"`` and 1 give ``"000013"``.
- The evidence is the best detections of a few images: with the right offset, they overlap far more
  annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.lookup import UnlistedImagesError, value_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import InputError
from boxscore.extensions.hints.numbering import match_best

SAMPLED = 256
"""Images whose best detections are compared."""

LISTED = 0.9
"""Minimum fraction of the images of detections that must be listed with the offset, if all are without it."""

FEWEST, TIMES = 8, 2
"""Minimum number of best detections on annotations with an offset, and its minimum ratio to that without."""


class ImageIdOffset(int):
    """A number that is added to the image ids of detections when they are read."""

    def __call__(self, read: Callable[[GroundTruth], Detections], ground_truth: GroundTruth) -> Detections:
        """Read detections in images renumbered as the file has them, and return them in the right ones."""
        images = ground_truth.images
        # Names stay in the right images, so only ids may be looked up.
        ids = [moved_id(identifier, -self) for identifier in images.ids.tolist()]
        if all(identifier is None for identifier in ids) and ids:
            raise InputError(
                "image_id_offset",
                "be used with images that have numbers",
                got=f"images such as {images.ids.tolist()[0]!r}",
                place=ground_truth.source,
            )
        numbered = [
            new if new is not None else old for new, old in zip(ids, images.ids.tolist(), strict=True)
        ]
        renumbered = Images.build(numbered, sizes=images.sizes)
        rows = renumbered.rows(numbered)
        try:
            detections = read(ground_truth.replaced(images=renumbered, image=rows[ground_truth.image]))
        except UnlistedImagesError as error:
            error.names = [_known_or_moved(name, self) for name in error.names]
            raise
        old_rows = np.empty(len(rows), dtype=np.int32)
        old_rows[rows] = np.arange(len(rows), dtype=np.int32)
        return detections.replaced(images=images, image=old_rows[detections.image])


def image_id_offset_of(value: Any) -> ImageIdOffset:
    """Check an offset."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError("image_id_offset", "be a whole number", got=repr(value)[:60])
    return ImageIdOffset(value)


def moved_id(identifier: Id, step: int) -> Id | None:
    """Return an id plus a number, in the same spelling; None for text that is not a number."""
    value = value_of(identifier)
    if value is None:
        return None
    return value + step if isinstance(identifier, int) else str(value + step).zfill(len(identifier))


def _known_or_moved(name: Id, step: int) -> Id:
    moved = moved_id(name, step)
    return name if moved is None else moved


def rows_at(images: Images, step: int) -> NDArray[np.int32]:
    """Return the row of the image whose number is that of each image plus ``step``, [I]; -1 for none."""
    if images.ids.dtype != object:
        return images.rows(images.ids + step)
    values = [*map(value_of, images.ids.tolist())]
    row_of = {value: row for row, value in enumerate(values) if value is not None}
    moved = [-1 if value is None else row_of.get(value + step, -1) for value in values]
    return np.array(moved, dtype=np.int32)


class FoundOffset(NamedTuple):
    """An offset that image ids seem to need, and the evidence."""

    step: int
    best: int
    """Number of confident detections that were compared with it."""
    given: int
    """Number of best detections that overlap an annotation as they are."""
    moved: int
    """Number of these with the offset."""

    @property
    def advice(self) -> str:
        """The option that reads the file correctly."""
        return f"--image-id-offset {self.step}"

    def __str__(self) -> str:
        changed = f"{'increased' if self.step > 0 else 'decreased'} by {abs(self.step):,}"
        return (
            f"with image ids as given, {self.given:,} of the {self.best:,} most confident detections overlap "
            f"an annotation; with all ids {changed}, {self.moved:,} do"
        )


def find_offset(
    ground_truth: GroundTruth, detections: Detections, *, images: Images | None = None
) -> FoundOffset | None:
    """Return the offset of image ids with which boxes overlap annotations; None if ids look right.

    ``images`` are those of the ground truth without images that were only added for the detections.
    """
    known = ground_truth.images if images is None else images
    listed = ground_truth.images.rows(known.ids)
    used = np.unique(detections.image)
    if not len(used) or not len(ground_truth):
        return None
    here = _matched(ground_truth, detections, detections.image)
    best: FoundOffset | None = None
    for step in _steps(ground_truth, used, listed):
        rows = rows_at(ground_truth.images, step)
        # The offset must lead to listed images; to all of them, if some are not listed without it.
        share = np.isin(rows[used], listed).mean()
        if share < (LISTED if images is None else 1.0):
            continue
        count, matched = _matched(ground_truth, detections, rows[detections.image])
        if matched >= max(FEWEST, TIMES * here[1]) and (best is None or matched > best.moved):
            best = FoundOffset(step, count, here[1], matched)
    return best


def _matched(ground_truth: GroundTruth, detections: Detections, image: NDArray[np.int32]) -> tuple[int, int]:
    found = match_best(ground_truth, image, detections.boxes, detections.given_scores, most=SAMPLED)
    return len(found.detection), found.matched


def _steps(ground_truth: GroundTruth, used: NDArray[np.int32], listed: NDArray[np.int32]) -> Sequence[int]:
    """Return possible offsets: one, and those that align the first or the last images."""
    ids = ground_truth.images.ids
    values = [
        sorted(value for value in map(value_of, ids[rows].tolist()) if value is not None)
        for rows in (used, listed, np.unique(ground_truth.image))
    ]
    if not all(values):
        return ()
    theirs, *known = values
    ends = [one[at] - theirs[at] for one in known for at in (0, -1)]
    return [step for step in dict.fromkeys((1, -1, *ends)) if step]
