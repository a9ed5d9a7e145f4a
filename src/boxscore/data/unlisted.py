"""Handle detections in images that the ground truth does not list: raise, add the images, or drop them.

Conventions
-----------
- Detections are read normally first. If an image is not listed, they are read again with ground truth that
  lists it, and dropped afterwards if requested. Formats are not involved.
- Added images only match exact names or ids; the matching of other images does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import with_labels
from boxscore.data.hints import ask
from boxscore.data.image_names import add_names
from boxscore.data.lookup import UnlistedImagesError
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import InputError

Unlisted = Literal["error", "background", "drop"]
"""How to treat detections in images that the ground truth does not list."""

ANY_SIZE = 1000.0

HOW: tuple[str, ...] = get_args(Unlisted)


def check_how(how: str | None) -> str | None:
    """Check the value of ``unlisted_images``, if given."""
    return None if how is None else checks.one_of(how, HOW, name="unlisted_images")


def with_unlisted(
    read: Callable[[GroundTruth], Detections], ground_truth: GroundTruth, how: str | None
) -> tuple[GroundTruth, Detections]:
    """Read detections; return them with the ground truth, which lists their images."""
    # Read normally, and continue only if images are not listed.
    try:
        return ground_truth, read(ground_truth)
    except UnlistedImagesError as error:
        if how in (None, "error"):
            ask("images not listed", read, ground_truth, error)
            raise
        names = error.names
    # Read again with the unlisted images added, without sizes.
    images = images_called(names, ground_truth.images, np.nan)
    wider = with_images(ground_truth, images, as_written=True)
    try:
        detections = read(wider)
    except InputError:
        # "background" keeps the images, so their sizes matter.
        if how == "background":
            raise
        # Fractions need image sizes; any size will do, because these detections are dropped.
        images = images_called(names, ground_truth.images, ANY_SIZE)
        wider = with_images(ground_truth, images, as_written=True)
        detections = read(wider)
    if how == "background":
        return wider, detections
    # For "drop", remove the detections in these images, and map the others back to the listed images.
    rows = ground_truth.images.rows(wider.images.ids)
    image = rows[detections.image]
    listed = np.flatnonzero(image >= 0)
    left_out, count = len(image) - len(listed), len(names)
    some = ", ".join(map(str, names[:5])) + ", ..." * (count > 5)
    warn_user(
        f"{detections.source}: ignoring {counted(left_out, 'detection')} in {counted(count, 'image')} "
        f"that the ground truth does not list: {some}.",
    )
    return ground_truth, detections.take(listed).replaced(images=ground_truth.images, image=image[listed])


def images_called(names: Sequence[Id], images: Images, side: float) -> Images:
    """Return images with these names and with unused ids."""
    taken = images.rows(list(names)) >= 0
    ids = [str(name) if is_taken else name for name, is_taken in zip(names, taken.tolist(), strict=True)]
    return Images.build(ids, file_names=[str(name) for name in names], sizes=np.full((len(ids), 2), side))


def with_images(ground_truth: GroundTruth, more: Images, *, as_written: bool = False) -> GroundTruth:
    """Add images without objects to a ground truth.

    With ``as_written``, added images only match their exact names, and others match as before.
    """
    old = ground_truth.images
    new = more.take(np.flatnonzero(old.rows(more.ids) < 0))
    if not len(new):
        return ground_truth
    images = Images.union([new, old])
    if old.columns:
        images = _add_columns(images, old)
    rows = images.rows(old.ids)
    if as_written:
        add_names(images, old, rows, new)
    wider = ground_truth.replaced(images=images, image=rows[ground_truth.image])
    return with_labels(wider, images=rows)


def _add_columns(images: Images, old: Images) -> Images:
    """Add the columns of ``old`` to images; new images get an empty text or NaN."""
    rows = images.rows(old.ids)
    columns = {}
    for name, values in old.columns.items():
        number = values.dtype.kind in "fiu"
        shape, nothing = (len(images), *values.shape[1:]), np.nan if number else ""
        column = np.full(shape, nothing, dtype=np.float64 if number else object)
        column[rows] = values
        columns[name] = column
    return Images(images.ids, images.file_names, images.sizes, columns)


def listing(ground_truth: GroundTruth, tables: Iterable[Detections]) -> GroundTruth:
    """Add the images of all these detections to a ground truth."""
    for table in tables:
        if table.images is not ground_truth.images:
            ground_truth = with_images(ground_truth, table.images, as_written=True)
    return ground_truth
