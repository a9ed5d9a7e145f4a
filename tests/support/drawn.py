"""A small data set that every shipped protocol can evaluate, drawn with what its rules speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Categories, Images
from boxscore.extensions.federated.image_labels import ImageLabels
from boxscore.protocols import Protocol
from support.shipped import shipped

WIDTH, HEIGHT = 120, 90
NAMES = ["ignored regions", "pedestrian", "car", "others"]
ORIENTED = ("rotated", "quadrilateral", "probiou")
ALWAYS = ("coco", "coco-segm", "voc2007", "lvis", "openimages-v2", "crowdhuman", "widerface", "dota")
"""Protocols of which none is like another; tests of the others take long together."""


def each_protocol(*, ranked: bool = False) -> list[Any]:
    """Return the shipped protocols, or those that rank detections; those like others are for long runs."""
    names = names_in_order(ranked=ranked)
    return [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.long) for name in names]


def names_in_order(*, ranked: bool = False) -> list[str]:
    """Return the shipped protocols, or those that rank detections; those of ``ALWAYS`` first."""
    names = [name for name, rules in shipped().items() if not ranked or rules.matching.scores == "given"]
    return [*ALWAYS, *(name for name in names if name not in ALWAYS)]


def drawn(protocol: str, seed: int) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Draw objects side by side and detections near them, twice over; some flagged, ties, edges, regions."""
    rules, rng = boxscore.load_protocol(protocol), np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    crowd_index = {"crowdIndex": np.arange(count) / count}
    images = Images.build(range(1, count + 1), sizes=[[WIDTH, HEIGHT]] * count, columns=crowd_index)
    frequency = np.array(["r", "c", "f", "f"], dtype=object)
    categories = Categories.build(range(4), names=NAMES, columns={"frequency": frequency})
    G, D = 6 * count, 24 * count
    corner, side = rng.integers(-6, 80, (G, 2)), rng.integers(6, 40, (G, 2))
    boxes = np.hstack([corner, corner + side]).astype(float)
    image = rng.permutation(np.repeat(np.arange(1, count + 1), 6))
    label = rng.choice(4, G, p=[0.05, 0.5, 0.4, 0.05])
    near = rng.integers(0, G, D)
    moved = boxes[near] + rng.integers(-4, 5, (D, 4)) + rng.choice([0, 0.137, 0.5], (D, 1))
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + rng.choice([0, 3, 3, 3], (D, 2)))
    found_label = np.where(rng.random(D) < 0.85, label[near], rng.integers(1, 3, D))
    scores = rng.integers(1, 400, D) / rng.choice([400, 401])
    order = np.argsort(-scores, kind="stable") if rules.matching.ranked_files else np.arange(D)
    near, moved, found_label, scores = near[order], moved[order], found_label[order], scores[order]
    given, found = _shapes(rules, rng, boxes, moved)
    parts = [{name: some.pop(name) for name in [*some] if name in PARTS} for some in (given, found)]
    upright = rules.similarity == "box"
    truth = boxscore.GroundTruth.from_arrays(
        image,
        label,
        boxes if upright else None,
        crowd=(rng.random(G) < 0.1) & (rules.similarity not in ORIENTED),
        difficult=rng.random(G) < 0.1,
        ignore=rng.random(G) < 0.1,
        group=(rng.random(G) < 0.2) & (rules.group.treatment == "merge"),
        images=images,
        categories=categories,
        image_labels=_labels(rng, images, categories),
        columns={
            "height": boxes[:, 3] - boxes[:, 1] + 30,
            "visibility": rng.choice([0.1, 0.3, 0.7, 1.0], G),
            **{name: (rng.random(G) < share) * 1.0 for name, share in GRADES.items()},
            "occluded": rng.integers(0, 4, G).astype(float),
            "truncated": rng.choice([0, 0.1, 0.3, 0.6], G),
            **parts[0],
        },
        **given,
    )
    detections = boxscore.Detections.from_arrays(
        image[near],
        found_label,
        moved if upright else None,
        scores,
        images=images,
        categories=categories,
        columns=parts[1],
        **found,
    )
    return truth, detections


GRADES = {"easy": 0.4, "medium": 0.7, "hard": 0.9}


def _labels(rng: np.random.Generator, images: Images, categories: Categories) -> ImageLabels:
    """Say of each image and class, at random, what is known."""
    image, category = (
        each.ravel() for each in np.meshgrid(images.ids, np.arange(len(categories)), indexing="ij")
    )
    said = rng.choice(["negative", "positive", "not_exhaustive", ""], len(image))
    some = said != ""
    return ImageLabels.from_arrays(
        image[some], category[some], said[some].tolist(), images=images, categories=categories
    )


PARTS = {"foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}
"""Keypoints of COCO-WholeBody that lie in columns."""


def _shapes(
    rules: Protocol, rng: np.random.Generator, boxes: Any, moved: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is compared in place of boxes, of the same places."""
    similarity = rules.similarity
    if similarity == "box":
        return {}, {}
    if similarity in ("rotated", "probiou"):
        return tuple({"rotated": _turned(rng, some)} for some in (boxes, moved))  # type: ignore[return-value]
    if similarity == "quadrilateral":
        return tuple({"quadrilaterals": _corners(some)} for some in (boxes, moved))  # type: ignore[return-value]
    if similarity == "keypoints":
        counts = (
            {"keypoints": 17, **PARTS}
            if rules.keypoints.parts
            else {"keypoints": len(rules.keypoints.sigmas)}
        )
        own = {name: rng.random((number, 2)) for name, number in counts.items()}
        return tuple({name: _points(own[name], some) for name in own} for some in (boxes, moved))  # type: ignore[return-value]
    return tuple({"masks": [_mask(box) for box in some]} for some in (boxes, moved))  # type: ignore[return-value]


def _turned(rng: np.random.Generator, boxes: Any) -> Any:
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 2)
    return np.column_stack([(boxes[:, :2] + boxes[:, 2:]) / 2, sides, rng.normal(0, 0.1, len(boxes))])


def _corners(boxes: Any) -> Any:
    x1, y1, x2, y2 = boxes.T
    x2, y2 = np.maximum(x2, x1 + 2), np.maximum(y2, y1 + 2)
    return np.column_stack([x1 + 1, y1, x2, y1 + 1, x2 - 1, y2, x1, y2 - 1])


def _points(own: Any, boxes: Any) -> Any:
    places = boxes[:, None, :2] + own * (boxes[:, None, 2:] - boxes[:, None, :2])
    return np.concatenate([places, np.full((*places.shape[:2], 1), 2.0)], axis=2)


def _mask(box: Any) -> Any:
    mask = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
    x1, y1, x2, y2 = np.maximum(box, 0).astype(int)
    mask[y1:y2, x1:x2] = 1
    return mask
