"""--verify must fail, and say where, when a number is wrong."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, InputError, ProtocolError
from boxscore.compat.verification import verify

RNG = np.random.default_rng(3)


def evaluation() -> Evaluation:
    count = 120
    corner = RNG.integers(0, 30, (count, 2)).astype(float)
    boxes = np.hstack([corner, corner + RNG.integers(1, 30, (count, 2))])
    images, labels = RNG.integers(1, 5, count), RNG.integers(0, 2, count)
    truth = GroundTruth.from_arrays(
        images[:40], labels[:40], boxes[:40], images=[1, 2, 3, 4], categories={0: "cat", 1: "dog"}
    )
    near = np.vstack([boxes[:40] + np.array([0, 0, 1, 0]), boxes[80:]])
    found = Detections.from_arrays(
        np.append(images[:40], images[80:]),
        np.append(labels[:40], labels[80:]),
        near,
        RNG.integers(0, 9, 80) / 9,
    )
    return boxscore.evaluate(truth, found)


GOOD = evaluation()


def test_good_numbers_pass() -> None:
    verification = verify(GOOD)
    assert verification.equal
    assert verification.first == ""
    assert str(verification) == (
        "verified against pycocotools: largest difference 0.0 (precision 0, recall 0, scores 0)"
    )


def tampered(**changes: object) -> Evaluation:
    """The same evaluation with other matches."""
    return Evaluation(
        GOOD.ground_truth, GOOD.detections, GOOD.protocol, dataclasses.replace(GOOD.matched, **changes)
    )


def test_a_match_that_is_missing_is_found_down_to_image_and_detection() -> None:
    found = GOOD.matched
    pair = int(found.pairs_true(0, 0)[0])
    matched = found.matched_bits.copy()
    matched[pair, 0] &= ~matched.dtype.type(1)
    verification = verify(tampered(matched_bits=matched))
    assert not verification.equal
    position = int(found.pair_detection[pair])
    row, truth = int(found.row[position]), int(found.truth_row[found.pair_truth[pair]])
    image = GOOD.ground_truth.images.ids.tolist()[found.image[position]]
    label = GOOD.labels[found.category[position]]
    assert f"class {label}" in verification.first
    assert verification.first.startswith("first in precision at IoU 0.50, recall ")
    assert verification.first.endswith(
        f"image {image}, detection {row}: matches nothing here, ground truth {truth} in pycocotools"
    )
    assert max(verification.largest.values()) > 0
    assert str(verification).startswith("differs from pycocotools: largest difference 0.")


def test_a_match_too_many_is_found() -> None:
    found = GOOD.matched
    hits = found.pairs_matched(0, 0)
    unmatched = np.setdiff1d(np.arange(len(found.iou)), hits)
    taken = set(found.pair_detection[hits].tolist())
    pair = next(int(p) for p in unmatched if int(found.pair_detection[p]) not in taken)
    matched = found.matched_bits.copy()
    matched[pair, 0] |= 1
    verification = verify(tampered(matched_bits=matched))
    position = int(found.pair_detection[pair])
    assert re.search(
        rf"detection {int(found.row[position])}: matches ground truth "
        rf"{int(found.truth_row[found.pair_truth[pair]])} here, nothing in pycocotools$",
        verification.first,
    )


def test_a_changed_score_is_found() -> None:
    scores = GOOD.matched.score.copy()
    scores[0] = np.nextafter(scores[0], 2)
    verification = verify(tampered(score=scores))
    assert verification.first.startswith(
        "first in scores at IoU 0.50, recall 0.00, class cat, area all, maxDets "
    )
    assert verification.first.endswith("the matches are equal: the difference is in the accumulation")
    assert 0 < verification.largest["scores"] < 1e-15
    assert verification.largest["precision"] == 0.0
    assert "largest difference 0.0 " not in str(verification)


def test_a_class_that_only_one_side_defines_is_found() -> None:
    counted = GOOD.matched.counted_bits.copy()
    counted[GOOD.matched.truth_category == 1] = 0
    verification = verify(tampered(counted_bits=counted))
    assert verification.largest["recall"] == np.inf
    assert "class dog" in verification.first
    assert "nan here" in verification.first


def test_a_score_of_minus_one_is_a_score() -> None:
    box = [[0, 0, 10, 10]]
    truth = GroundTruth.from_arrays([1], [1], box)
    assert verify(boxscore.evaluate(truth, Detections.from_arrays([1], [1], box, [-1.0]))).equal


@pytest.mark.parametrize(
    ("protocol", "rule"),
    [
        ("voc2007", "boxes.pixel_offset = 0"),
        (
            {"extends": "coco", "matching": {"candidate": "best_overall"}},
            'matching.candidate = "best_available"',
        ),
        ({"extends": "coco", "matching": {"equal_iou": "first"}}, 'matching.equal_iou = "last"'),
        (
            {"extends": "coco", "matching": {"equal_scores": "file_order"}},
            'matching.equal_scores = "image_order"',
        ),
        ({"extends": "coco", "matching": {"threshold_closed": False}}, "matching.threshold_closed = true"),
        (
            {"extends": "coco", "matching": {"largest_threshold": 0.9}},
            "matching.largest_threshold = 1 - 1e-10",
        ),
        ({"extends": "coco", "matching": {"max_detections": []}}, "matching.max_detections"),
        ({"extends": "coco", "ignore": {"crowd": "count"}}, 'ignore.crowd = "iof"'),
        ({"extends": "coco", "ignore": {"difficult": "ignore"}}, 'ignore.difficult = "count"'),
        ({"extends": "coco", "ap": {"interpolation": "area"}}, 'ap.interpolation = "points"'),
        ({"extends": "coco", "ap": {"precision_epsilon": 0.0}}, "ap.precision_epsilon = numpy.spacing(1)"),
    ],
)
def test_protocols_that_pycocotools_does_not_have(protocol: object, rule: str) -> None:
    other = boxscore.evaluate(GOOD.ground_truth, GOOD.detections, protocol=protocol)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError) as caught:
        verify(other)
    assert str(caught.value).startswith(f"a protocol to verify must have {rule}, as pycocotools does. Got ")


@pytest.mark.parametrize(
    "change",
    [
        {"matching": {"max_detections": [2, 7]}},
        {"matching": {"iou_thresholds": [0.3, 1.0]}},
        {"matching": {"per_class": False}},
        {"ignore": {"area_ranges": {"all": [0, 1e10], "tiny": [0, 100]}}},
        {"ap": {"recall_points": {"start": 0, "stop": 1, "count": 11}}},
    ],
)
def test_variants_that_pycocotools_does_have(change: dict[str, object]) -> None:
    assert verify(
        boxscore.evaluate(GOOD.ground_truth, GOOD.detections, protocol={"extends": "coco", **change})
    ).equal


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_what_pycocotools_cannot_evaluate_is_said(tmp_path: Path) -> None:
    """It asks masks as counts for the size of their image."""
    truth = {
        "images": [{"id": 1, "width": 4, "height": -1}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "bbox": [0, 0, 2, 2],
                "area": 4,
                "iscrowd": 0,
                "segmentation": {"size": [4, 4], "counts": [0, 2, 2, 2, 10]},
            }
        ],
    }
    result = {
        "image_id": 1,
        "category_id": 1,
        "score": 0.5,
        "segmentation": {"size": [4, 4], "counts": [0, 16]},
    }
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps([result]))
    evaluation = boxscore.evaluate(
        tmp_path / "gt.json", tmp_path / "dt.json", protocol="coco-segm", digest=False
    )
    with pytest.raises(
        InputError, match=r"must be data that pycocotools can evaluate, to be verified. Got Overflow"
    ):
        verify(evaluation)
