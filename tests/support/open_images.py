"""Open Images cases, scored by boxscore."""

from __future__ import annotations

import boxscore
from boxscore import Detections, GroundTruth, ImageLabels
from boxscore.data.vocabulary import Categories, Images
from oracles.open_images import Found, Truth
from support.quiet import quiet


def tables_of(
    truths: list[Truth], found: list[Found], listed: set[tuple[int, int]], images: int, labels: int
) -> tuple[GroundTruth, Detections]:
    """Make tables of a case; the labels of images are positive and negative in turn."""
    vocabularies = {"images": Images.build(range(images)), "categories": Categories.build(range(labels))}
    pairs = sorted(listed)
    truth = GroundTruth.from_arrays(
        [one.image for one in truths],
        [one.label for one in truths],
        [one.box for one in truths],
        group=[one.group for one in truths],
        masks=[one.mask for one in truths] if any(one.mask is not None for one in truths) else None,
        image_labels=ImageLabels.from_arrays(
            [image for image, _ in pairs],
            [label for _, label in pairs],
            [("positive", "negative")[row % 2] for row in range(len(pairs))],  # type: ignore[misc]
            **vocabularies,  # type: ignore[arg-type]
        ),
        **vocabularies,  # type: ignore[arg-type]
    )
    sound = [one for one in found if one.box[0] <= one.box[2] and one.box[1] <= one.box[3]]
    detections = Detections.from_arrays(
        [one.image for one in sound],
        [one.label for one in sound],
        [one.box for one in sound],
        [one.score for one in sound],
        masks=[one.mask for one in sound] if any(one.mask is not None for one in sound) else None,
        **vocabularies,  # type: ignore[arg-type]
    )
    return truth, detections


def scored_open_images(
    truths: list[Truth],
    found: list[Found],
    listed: set[tuple[int, int]],
    images: int,
    labels: int,
    protocol: str,
    weight: float,
    workers: int = 1,
) -> tuple[list[float], float]:
    """AP of each class, and the mean; the labels of images are positive and negative in turn."""
    truth, detections = tables_of(truths, found, listed, images, labels)
    with quiet():
        result = boxscore.evaluate(
            truth, detections, protocol={"extends": protocol, "group": {"weight": weight}}, workers=workers
        )
    return result.class_values["AP"].tolist(), result["mAP"]
