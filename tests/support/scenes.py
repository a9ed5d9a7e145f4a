"""Small drawn scenes, what a protocol makes of them, and the oracles that must agree.

A scene is a few boxes. A rule's test says what becomes of each detection, one letter each in file order, at the
first threshold: ``T`` true positive, ``F`` false positive, ``I`` ignored, ``-`` not let through; and where recall
ends and how high precision is on the way, as steps ``(recall, precision)``, from which follows the AP at IoU .5.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import boxscore
from oracles import kit, plain
from oracles.pycoco import run_pycocotools, same_bits
from support.quiet import quiet

# ---------------------------------------------------------------- who keeps a rule

COCO = ("coco", "supervision", "torchmetrics")
PADILLA_COCO = ("padilla-coco", "globox")
ULTRALYTICS = ("ultralytics", "ultralytics-april2026", "ultralytics-old")
COCO_LIKE = (*COCO, *PADILLA_COCO, *ULTRALYTICS, "fiftyone", "tide")
KIT = ("voc2007", "voc2007-numpy", "voc2012")
PY_FASTER_RCNN = ("py-faster-rcnn-voc2007", "py-faster-rcnn-voc2012")
DETECTRON2 = ("detectron2-voc2007", "detectron2-voc2012")
PORTS = (*PY_FASTER_RCNN, *DETECTRON2)
PADILLA_VOC = ("padilla-voc2007", "padilla-voc")
CHAINERCV = ("chainercv-voc2007", "chainercv-voc2012")
BY_IMAGE_FILE = (*DETECTRON2, *CHAINERCV, "cartucho")  # VOC rules; ties by image
BY_RESULTS_FILE = (*KIT, *PY_FASTER_RCNN, *PADILLA_VOC)  # VOC rules; ties in the order of the results file
VOC_LIKE = (*BY_RESULTS_FILE, *BY_IMAGE_FILE)
OF_DOTA = ("dota-task2",)  # VOC rules with an open threshold, as PY_FASTER_RCNN but for crowds
BOX_PROTOCOLS = (*COCO_LIKE, *VOC_LIKE, "bes-dev")
FEDERATED = (
    "lvis",
    "lvis-fixed",
    "lvis-pooled",
    "openimages-challenge",
    "openimages-v2",
)
"""Their cases are in tests/extensions: what a class in an image means depends on labels of the image."""
XVIEW = ("xview", "xview-by-score", "xview-every-object", "xview-july2018")
TINY = ("aitod", "sodad", "tinyperson")
CROWDS = (
    "bdd100k",
    "caltech",
    "cityscapes",
    "citypersons",
    "crowdhuman",
    "kitti",
    "visdrone",
    "widerface",
    *XVIEW,
    *TINY,
)
"""Their cases are in tests/extensions: they ask for columns, sizes of images, ranked files or flags of COCO's."""

SCORELESS = ("scoreless",)
"""Its cases are in tests/extensions: it ranks nothing."""

LANGUAGE_MODELS = ("odinw13-lmms", "referring", "referring-any", "rex-omni", "rex-omni-coco")
"""Their cases are in tests/extensions: they read no score either, and each counts in its own way."""

NO_SCORES = (*SCORELESS, *LANGUAGE_MODELS)

PHRASES = ("cgf1", "omnilabel")
"""Their cases are in tests/extensions: they are of phrases, in the images that ask for them."""


def rules(base: str = "coco", **changes: Any) -> boxscore.Protocol:
    """A protocol by what it changes: ``rules("coco", matching={"max_detections": [1]})``."""
    return boxscore.load_protocol({"extends": base, "name": "case", **changes})


# ---------------------------------------------------------------- scenes


def obj(*corners: float, **facts: Any) -> plain.Object:
    return plain.Object(plain.corners(*corners), **facts)


def det(*corners: float, score: float, image: int = 0, label: int = 0) -> plain.Detection:
    return plain.Detection(plain.corners(*corners), score, image, label)


@dataclasses.dataclass(frozen=True)
class Scene:
    """What is there and what was reported; images and classes count from 0."""

    objects: Sequence[plain.Object]
    detections: Sequence[plain.Detection]
    images: int = 1
    classes: int = 1

    def tables(self, *, masks: bool = False) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
        """Tables; with ``masks``, boxes on whole pixels stand for masks too."""
        truth = boxscore.GroundTruth.from_arrays(
            [item.image for item in self.objects],
            [item.label for item in self.objects],
            np.array([item.box[:4] for item in self.objects]).reshape(-1, 4),
            area=[
                item.box.width * item.box.height if item.area is None else item.area for item in self.objects
            ],
            crowd=[item.crowd for item in self.objects],
            difficult=[item.difficult for item in self.objects],
            ignore=[item.ignore for item in self.objects],
            masks=[_rectangle(item.box) for item in self.objects] if masks else None,
            images=range(self.images),
            categories=range(self.classes),
        )
        found = boxscore.Detections.from_arrays(
            [item.image for item in self.detections],
            [item.label for item in self.detections],
            np.array([item.box[:4] for item in self.detections]).reshape(-1, 4),
            [item.score for item in self.detections],
            masks=[_rectangle(item.box) for item in self.detections] if masks else None,
        )
        return truth, found


def _rectangle(box: plain.Box) -> np.ndarray[Any, Any]:
    mask = np.zeros((512, 512), dtype=np.uint8)
    mask[int(box.y1) : int(box.y2), int(box.x1) : int(box.x2)] = 1
    return mask


def evaluate(scene: Scene, protocol: str | boxscore.Protocol, *, masks: bool = False) -> boxscore.Evaluation:
    with quiet():
        return boxscore.evaluate(*scene.tables(masks=masks), protocol=protocol)


LETTERS = {"true positive": "T", "false positive": "F", "ignored": "I", "beyond max detections": "-"}


def outcomes(evaluation: boxscore.Evaluation) -> str:
    """A letter for each detection, in file order."""
    return "".join(LETTERS[word] for word in evaluation.matches["outcome"])


# ---------------------------------------------------------------- numbers by hand


def ap_by_hand(protocol: boxscore.Protocol, *steps: tuple[float | Fraction, float | Fraction]) -> float:
    """AP of an envelope that falls in steps: up to each recall, its precision.

    A curve that ends below recall 1 is 0 from there, but for the line that ultralytics drew before 2026 from its last
    point; misses after the last hit are a step of their own, of no width.
    Recall points are decimals here; a recall that hits one to the last bit is a case of ``test_interpolation``.
    """
    steps = tuple((Fraction(recall).limit_denominator(1000), Fraction(value)) for recall, value in steps)
    interpolation, count = protocol.ap.interpolation, len(protocol.ap.recall_points)
    if interpolation == "area":
        return float(sum(step * value for step, value in _widths(steps)))
    points = [Fraction(i, count - 1) for i in range(count)]
    if interpolation == "points":
        return float(sum(_height(steps, point, reaches=True) for point in points) / count)
    read = [_height(steps, point, reaches=False) for point in points]
    if interpolation == "trapezoid_to_one" and steps[-1][0] < 1:
        end, value = steps[-1]
        read = [
            value * (1 - p) / (1 - end) if p >= end else height
            for p, height in zip(points, read, strict=True)
        ]
    return float(sum((a + b) / 2 / (count - 1) for a, b in itertools.pairwise(read)))


def _widths(steps: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    ends = [Fraction(0), *(recall for recall, _ in steps)]
    return [(high - low, value) for low, (high, value) in zip(ends, steps, strict=False)]


def _height(steps: Sequence[tuple[Fraction, Fraction]], point: Fraction, *, reaches: bool) -> Fraction:
    """At a recall point: the precision of the step that reaches it, or of the one that starts there."""
    for recall, value in steps:
        if recall >= point if reaches else recall > point:
            return value
    return Fraction(0)


def headline(evaluation: boxscore.Evaluation) -> float:
    """The number at IoU .5."""
    return evaluation.metrics["AP50" if "AP50" in evaluation.metrics else "mAP"]


# ---------------------------------------------------------------- cases


@dataclasses.dataclass(frozen=True)
class Case:
    """A scene, and for some protocols the outcomes and the steps of the curve at IoU .5 (None: undefined)."""

    name: str
    scene: Scene
    expected: Mapping[tuple[str, ...], tuple[str, Sequence[tuple[float, float]] | None]]


def by_protocol(*cases: Case) -> Callable[..., None]:
    """Return the test of all cases; every shipped box protocol has one expectation a case."""
    rows = []
    for case in cases:
        names = [name for group in case.expected for name in group]
        assert sorted(names) == sorted(BOX_PROTOCOLS), f"{case.name}: {set(names) ^ set(BOX_PROTOCOLS)}"
        rows += [
            pytest.param(case.scene, name, *expected, id=f"{case.name}-{name}".replace(" ", "_"))
            for group, expected in case.expected.items()
            for name in group
        ]

    @pytest.mark.parametrize(("scene", "protocol", "letters", "steps"), rows)
    def test(scene: Scene, protocol: str, letters: str, steps: Any) -> None:
        check(scene, protocol, letters, steps)

    return test


def check(
    scene: Scene,
    protocol: str | boxscore.Protocol,
    letters: str,
    steps: Sequence[tuple[float, float]] | None = None,
) -> boxscore.Evaluation:
    """The outcomes and the number by hand; then the same to the bit by every oracle that knows the rules."""
    evaluation = evaluate(scene, protocol)
    assert outcomes(evaluation) == letters
    if steps is None:
        assert math.isnan(headline(evaluation))
    else:
        assert headline(evaluation) == pytest.approx(ap_by_hand(evaluation.protocol, *steps), abs=1e-12)
    check_oracles(scene, evaluation)
    return evaluation


# ---------------------------------------------------------------- oracles


def check_oracles(scene: Scene, evaluation: boxscore.Evaluation) -> list[str]:
    """Compare with every oracle that can be told the protocol's rules; returns which."""
    asked = ["plain"]
    check_plain(scene, evaluation)
    if known_to_pycocotools(scene, evaluation.protocol):
        check_pycocotools(scene, evaluation)
        asked.append("pycocotools")
    if known_to_the_kit(scene, evaluation.protocol):
        check_kit(scene, evaluation)
        asked.append("kit")
    return asked


def check_plain(scene: Scene, evaluation: boxscore.Evaluation) -> None:
    theirs = plain.evaluate(
        list(scene.objects), list(scene.detections), scene.images, scene.classes, evaluation.protocol
    )
    ours = evaluation.arrays()
    for name, expected in theirs.arrays.items():
        assert ours[name].shape == expected.shape
        different = np.argwhere(~((ours[name] == expected) | (np.isnan(ours[name]) & np.isnan(expected))))
        cell = tuple(different[0].tolist()) if len(different) else ()
        assert not len(different), f"{name}{cell}: {ours[name][cell]!r}, by the oracle {expected[cell]!r}"
    assert list(evaluation.metrics) == list(theirs.metrics)
    for key, expected in theirs.metrics.items():
        value = evaluation.metrics[key]
        assert value == expected or (math.isnan(value) and math.isnan(expected)), (key, value, expected)


def known_to_pycocotools(scene: Scene, protocol: boxscore.Protocol) -> bool:
    """Whether pycocotools has the rules; an ``ignore`` of its own it overwrites with ``iscrowd``."""
    matching, ignore, ap = protocol.matching, protocol.ignore, protocol.ap
    coco = boxscore.load_protocol("coco")
    same = ("largest_threshold", "threshold_closed", "candidate", "equal_iou", "equal_scores", "cap_scope")
    return (
        all(getattr(matching, name) == getattr(coco.matching, name) for name in same)
        and not matching.class_thresholds
        and protocol.boxes == coco.boxes
        and ignore.outside == "ignore"
        and matching.score_threshold == -math.inf
        and bool(matching.max_detections)
        and protocol.boxes.pixel_offset == 0
        and not any(item.ignore for item in scene.objects)
        and (ignore.crowd, ignore.difficult) == ("iof", "count")
        and ap == dataclasses.replace(coco.ap, recall_points=ap.recall_points)
    )


def check_pycocotools(scene: Scene, evaluation: boxscore.Evaluation) -> None:
    protocol = evaluation.protocol
    truth = {
        "images": [{"id": image} for image in range(scene.images)],
        "categories": [{"id": label, "name": str(label)} for label in range(scene.classes)],
        "annotations": [
            {
                "id": number,
                "image_id": item.image,
                "category_id": item.label,
                "bbox": [item.box.x1, item.box.y1, item.box.width, item.box.height],
                "area": item.box.width * item.box.height if item.area is None else item.area,
                "iscrowd": int(item.crowd),
            }
            for number, item in enumerate(scene.objects, 1)
        ],
    }
    results = [
        {
            "image_id": item.image,
            "category_id": item.label,
            "bbox": [item.box.x1, item.box.y1, item.box.width, item.box.height],
            "score": item.score,
        }
        for item in scene.detections
    ]
    reference = run_pycocotools(
        truth,
        results,
        caps=protocol.matching.max_detections,
        thresholds=protocol.matching.iou_thresholds,
        area_ranges=list(protocol.ignore.area_ranges.values()),
        recall_points=protocol.ap.recall_points,
        per_class=protocol.matching.per_class,
    )
    for name, ours in evaluation.arrays().items():
        assert same_bits(ours, reference.eval[name]), name


def known_to_the_kit(scene: Scene, protocol: boxscore.Protocol) -> bool:
    matching, ignore = protocol.matching, protocol.ignore
    kit_rules = boxscore.load_protocol("voc2007")
    same = ("largest_threshold", "candidate", "equal_iou", "equal_scores", "max_detections", "per_class")
    return (
        all(getattr(matching, name) == getattr(kit_rules.matching, name) for name in same)
        and matching.score_threshold == -math.inf
        and len(matching.iou_thresholds) == 1
        and protocol.boxes.pixel_offset == 1
        and ignore.difficult == "ignore"
        and ignore.area_ranges == kit_rules.ignore.area_ranges
        and _kit_rule(protocol) is not None
        and not any(item.crowd or item.ignore for item in scene.objects)
    )


def _kit_rule(protocol: boxscore.Protocol) -> str | None:
    """The kit's word for how a curve becomes a number; None for another."""
    ap = protocol.ap
    plain_curve = (ap.precision_epsilon, ap.tie_order, ap.absent_classes) == (0.0, "as_ranked", "skip")
    if plain_curve and ap.interpolation == "area":
        return "area"
    if plain_curve and ap.interpolation == "points" and ap.sequential_mean:
        return {tuple(kit.KIT_GRID): "kit", tuple(kit.PORT_GRID): "port"}.get(ap.recall_points)
    return None


def check_kit(scene: Scene, evaluation: boxscore.Evaluation) -> None:
    protocol = evaluation.protocol
    objects = [kit.Object(o.image, o.label, o.box[:4], o.difficult) for o in scene.objects]
    found = [
        kit.Found(d.image, d.label, d.score, d.box[:4])
        for d in plain.rounded(list(scene.detections), protocol)
    ]
    expected = [
        kit.average_precision(
            objects,
            found,
            label,
            rule=str(_kit_rule(protocol)),
            threshold=protocol.matching.iou_thresholds[0],
            closed=protocol.matching.threshold_closed,
        )
        for label in range(scene.classes)
    ]
    assert np.array_equal(evaluation.ap_by_iou()[0], expected, equal_nan=True), expected
