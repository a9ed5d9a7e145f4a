"""Warn about problems in batches: invalid rows, other numbers of classes, fractions, missing images."""

from __future__ import annotations

import numpy as np

from boxscore._utils.user_warnings import warn_user
from boxscore.data.hints import SAID_OF_NUMBERING
from boxscore.data.vocabulary import Id
from boxscore.evaluation import Evaluation
from boxscore.extensions.data_tools.invalid_rows import Invalid, warn_of_invalid
from boxscore.extensions.training.arrivals import Expected
from boxscore.extensions.training.shares import Part

SIDES = ("predictions", "targets")

RENAMING = "Pass prediction_class_names= to name the classes of the predictions"
"""The remedy for class numbers of predictions that are not those of the targets."""

FRACTIONS, PIXELS = 1.5, 8.0
"""If all boxes of one side end below the first value and some of the other end above the second, one side
looks like fractions."""


def warn_of_invalid_rows(part: Part, invalid: Invalid) -> None:
    """Warn about invalid boxes that were dropped or count as false positives."""
    for side, name in enumerate(SIDES):
        counts = {image: both[side] for image, both in part.invalid.items() if both[side]}
        warn_of_invalid(counts, name.removesuffix("s"), invalid)


def warn_numbered_from_zero(result: Evaluation) -> None:
    """Warn if predictions seem to count classes from 0 and targets from 1; once, if the boxes show it too."""
    if result._once(SAID_OF_NUMBERING, lambda: False):
        return
    truth = result.ground_truth.categories.ids[np.flatnonzero(np.bincount(result.ground_truth.category))]
    found = result.detections.categories.ids[np.flatnonzero(np.bincount(result.detections.category))]
    if not len(truth) or not len(found) or object in (truth.dtype, found.dtype):
        return
    lowest = 0 if "0" in result.detections.left_out else found.min()
    if lowest == 0 and truth.min() == 1 and truth.max() > found.max():
        warn_user(
            f"predictions have classes {lowest} to {found.max()} but targets {truth.min()} to "
            f"{truth.max()}. Do predictions count from 0? {RENAMING}.",
        )


def warn_of_fractions(part: Part) -> None:
    """Warn if the boxes of one side are fractions of the image and those of the other pixels."""
    sides = {"predictions": part.detections.boxes, "targets": part.ground_truth.boxes}
    if not all(len(boxes) for boxes in sides.values()):
        return
    small, large = sorted(sides, key=lambda side: float(sides[side].max()))
    if 0 < sides[small].max() <= FRACTIONS and sides[large].max() > PIXELS:
        warn_user(
            f"coordinates of the {small} reach {sides[small].max():.3g}, those of the {large} "
            f"{sides[large].max():.4g}: are the {small} fractions of the image size? Multiply them by "
            "its width and height.",
        )


def warn_of_missing(part: Part, expected: Expected, *, numbered: bool) -> None:
    """Warn about expected images and objects that did not arrive."""
    each = np.bincount(part.ground_truth.image, minlength=len(part.images))
    arrived: dict[Id, int] = dict(zip(part.images.ids.tolist(), each.tolist(), strict=True))
    for image, (_, dropped) in part.invalid.items():
        arrived[image] += dropped
    missing = expected.missing(arrived, numbered=numbered)
    if missing:
        warn_user(
            f"{missing}. The metrics cover the rest. Does the loop skip images, or does gathering "
            "truncate the last batch, as accelerate does? A batch size that divides the number of images "
            "avoids it.",
        )
