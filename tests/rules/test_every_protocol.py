"""Any rules on any small data: boxscore and the slow, obvious oracle agree to the last bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from oracles import plain
from support.examples import examples
from support.scenes import (
    BOX_PROTOCOLS,
    CROWDS,
    FEDERATED,
    NO_SCORES,
    OF_DOTA,
    PHRASES,
    SCORELESS,
    Scene,
    check_oracles,
    check_plain,
    evaluate,
    rules,
)
from support.shipped import box_protocols

OF_BOXES = box_protocols()
ANY_SCENE = [name for name in OF_BOXES if name not in (*CROWDS, *NO_SCORES, *PHRASES)]


@st.composite
def scenes(draw: st.DrawFn, *, flags: tuple[str, ...] = ("crowd", "difficult"), whole: bool = False) -> Scene:
    """A handful of boxes on a coarse grid: equal overlaps, equal scores, overlaps on a threshold."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    images = draw(st.integers(1, 4), label="images")
    classes = draw(st.integers(1, 3), label="classes")
    step = draw(st.sampled_from([1.0, 1.0, 6.0] if whole else [1.0, 1.0, 0.7, 16.0]), label="grid step")
    levels = draw(st.sampled_from([1, 3, 1000]), label="score levels")
    share = draw(st.sampled_from([0.0, 0.2, 0.8]), label="share of flags")
    near = draw(st.sampled_from([0.0, 0.5, 0.9]), label="share of detections that copy an object")

    def box() -> plain.Box:
        low = [0, 0, 1, 1] if whole else [0, 0, 0, 0]  # a mask has a pixel
        x, y, width, height = (step * value for value in rng.integers(low, [6, 6, 7, 7]).tolist())
        return plain.corners(x, y, x + width, y + height)

    objects = [
        plain.Object(
            box(),
            int(rng.integers(images)),
            int(rng.integers(classes)),
            float(rng.choice([1, 1024, 1024.5, 9216, 2e10])) if rng.random() < 0.2 else None,
            **{flag: bool(rng.random() < share) for flag in flags},
        )
        for _ in range(draw(st.integers(0, 12), label="objects"))
    ]
    for number in range(1, len(objects)):
        if rng.random() < 0.3:  # a twin beside the one before, of the same size
            left = objects[number - 1]
            x2 = left.box.x2 + left.box.width
            objects[number] = objects[number]._replace(
                box=plain.corners(left.box.x2, left.box.y1, x2, left.box.y2),
                image=left.image,
                label=left.label,
            )
    detections = []
    for _ in range(draw(st.integers(0, 30), label="detections")):
        image, label, where = int(rng.integers(images)), int(rng.integers(classes)), box()
        if objects and rng.random() < near:
            copied = objects[int(rng.integers(len(objects)))]
            image, label, where = copied.image, copied.label, copied.box
            wider = float(rng.choice([0.0, 0.0, step, where.width]))  # as wide again: over it and its twin
            where = plain.corners(where.x1, where.y1, where.x2 + wider, where.y2)
        detections.append(plain.Detection(where, float(rng.integers(levels)) / levels, image, label))
    return Scene(objects, detections, images, classes)


GRIDS = [
    {"start": 0, "stop": 1, "count": 101},
    {"start": 0, "stop": 1, "count": 11},
    {"start": 0, "stop": 1.1, "step": 0.1, "rule": "arange"},
    {"start": 0, "stop": 1, "step": 0.1, "rule": "colon"},
    {"start": 0, "stop": 1, "count": 101, "rule": "float32"},
    [0.25, 0.5],
]
RANGES = [
    {"all": [0, math.inf]},
    {"all": [0, 1e10], "small": [0, 1024], "large": [1024, 1e10]},
    {"tiny": [1, 9], "all": [0, 36]},
]


SUMMARY = [
    *boxscore.load_protocol("coco").summary,
    {"key": "FROC", "metric": "FROC"},
    {"key": "FROC50", "metric": "FROC", "iou": 0.5},
    {"key": "FROC1", "metric": "FROC", "cap": 0},
    {"key": "FROCall", "metric": "FROC", "area": "all", "iou": 0.25},
    {"key": "MR", "metric": "MR"},
    {"key": "MR50", "metric": "MR", "iou": 0.5, "cap": 0},
]


@st.composite
def protocols(draw: st.DrawFn, *, similarity: str = "box", **fixed: Any) -> boxscore.Protocol:
    """Any choice of every field."""

    def one(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    equal_scores = one("image_order", "file_order", "last_first")
    thresholds = one([0.5], [0.25, 0.5, 1.0], [0.1, 1 / 3, 0.5, 2 / 3, 0.9])
    per_class = equal_scores == "last_first" or one(True, True, False)
    own = (
        [0.75 * value for value in thresholds] if one(True, False) else [min(1, v + 0.05) for v in thresholds]
    )
    interpolation = one("points", "area", "trapezoid", "trapezoid_to_one", "every_point")
    fixed = {
        "outside": one("ignore", "ignore", "absorb", "iof") if similarity == "box" else "ignore",
        **fixed,
    }
    if similarity == "box":
        fixed["flagged"] = one("ignore", "iof", "count", "delete")
    return rules(
        "coco",
        similarity=similarity,
        boxes={
            "pixel_offset": one(0, 1) if similarity == "box" else 0,
            "degenerate": one("count", "drop", "drop_detections") if similarity == "box" else "count",
            "overlap_epsilon": one(0, 0, 1e-6) if similarity == "box" else 0,
        },
        labels={"unlisted": one("count", "drop", "drop_without_object")},
        matching={
            "iou_thresholds": thresholds,
            "class_thresholds": one({}, {"1": own}, {"0": own, "7": own}) if per_class else {},
            "largest_threshold": one(1.0, 0.9999999999, 0.6),
            "threshold_closed": one(True, False),
            "candidate": one("best_available", "best_overall"),
            "equal_iou": one("last", "first"),
            "equal_scores": equal_scores,
            "max_detections": one([], [1], [2], [1, 3, 100]),
            "cap_scope": one("class", "image", "image_each", "data_set_class"),
            "score_threshold": one(-math.inf, 0.0, 1 / 3, 0.5),
            "score_closed": one(True, True, False),
            "per_class": per_class,
        },
        ignore={
            "crowd": one("iof", "ignore", "count", "delete"),
            "difficult": one("count", "ignore", "delete"),
            "area_ranges": one(*RANGES),
            **fixed,
        },
        ap={
            "interpolation": interpolation,
            "score_steps": one(0, 0, 3, 10) if interpolation == "area" else 0,
            "recall_over": one("counted", "counted", "all"),
            "recall_points": one(*GRIDS),
            "precision_epsilon": one(0.0, 2.220446049250313e-16),
            "sequential_mean": one(True, False),
            "tie_order": one("as_ranked", "true_positives_first", "true_positives_last"),
            "absent_classes": one("skip", "zero", "all_zero"),
            "class_mean": one("of_defined", "nanmean"),
        },
        froc={
            "false_positives_per_image": one([0.125, 0.25, 0.5, 1, 2, 4, 8], [0, 0.3, 1 / 3, 1.5], [1]),
            "interpolation": one("linear", "step"),
        },
        miss_rate={
            "false_positives_per_image": one([0.01, 0.0178, 0.1, 0.5623, 1], [0.25, 1 / 3, 2]),
            "reading": one("first_at_least", "last_at_most", "last_at_most_or_end"),
        },
        summary=SUMMARY,
    )


@pytest.mark.long
@given(scene=scenes(flags=("crowd", "difficult", "ignore")), protocol=protocols())
@settings(max_examples=examples(600))
def test_any_rules_on_any_scene(scene: Scene, protocol: boxscore.Protocol) -> None:
    check_plain(scene, evaluate(scene, protocol))


@given(scene=scenes(whole=True), protocol=protocols(similarity="mask", detection_area="box_or_mask"))
@settings(max_examples=examples(60))
def test_rectangles_as_masks_score_as_boxes(scene: Scene, protocol: boxscore.Protocol) -> None:
    check_plain(scene, evaluate(scene, protocol, masks=True))


@pytest.mark.parametrize("name", ANY_SCENE)
@given(scene=scenes())
@settings(max_examples=examples(12))
def test_every_shipped_protocol_on_any_scene(name: str, scene: Scene) -> None:
    check_oracles(scene, evaluate(scene, name))


def most_pairs(options: list[list[int]]) -> int:
    """The largest matching by augmenting paths: of each detection the objects that it may take."""
    taken: dict[int, int] = {}

    def placed(found: int, tried: set[int]) -> bool:
        for truth in options[found]:
            if truth not in tried:
                tried.add(truth)
                if truth not in taken or placed(taken[truth], tried):
                    taken[truth] = found
                    return True
        return False

    return sum(placed(found, set()) for found in range(len(options)))


@pytest.mark.parametrize("name", SCORELESS)
@given(scene=scenes())
@settings(max_examples=examples(100))
def test_a_protocol_without_scores_on_any_scene(name: str, scene: Scene) -> None:
    """True positives to the last; false positives too, unless a crowd may take one detection or another."""
    evaluation = evaluate(scene, name)
    protocol = evaluation.protocol
    objects = [item for item in scene.objects if not item.crowd]
    for percent in (50, 75, 95):
        at = [round(100 * value) for value in protocol.matching.iou_thresholds].index(percent)
        least = protocol.matching.effective_thresholds[at]

        def near(found: plain.Detection, truth: plain.Object, least: float = least) -> bool:
            value = plain.overlap(found.box, truth.box, protocol, over_detection=truth.crowd)
            return (found.image, found.label) == (truth.image, truth.label) and value >= least

        true = most_pairs(
            [[row for row, truth in enumerate(objects) if near(found, truth)] for found in scene.detections]
        )
        in_crowds = sum(
            any(truth.crowd and near(found, truth) for truth in scene.objects) for found in scene.detections
        )
        most = len(scene.detections) - true
        recall, precision = evaluation[f"R{percent}"], evaluation[f"P{percent}"]
        assert recall == true / len(objects) if objects else math.isnan(recall)
        possible = [
            true / (true + false) if true + false else math.nan
            for false in range(max(0, most - in_crowds), most + 1)
        ]
        assert precision in possible or (math.isnan(precision) and any(map(math.isnan, possible)))


def test_every_box_protocol_is_named_by_the_rules() -> None:
    """A new one joins a group in support/scenes.py, or gets a line of its own in each case."""
    named = {*BOX_PROTOCOLS, *FEDERATED, *CROWDS, *OF_DOTA, *NO_SCORES, *PHRASES}
    assert {*OF_BOXES} == named - {"cityscapes"}, "cityscapes is of masks"
