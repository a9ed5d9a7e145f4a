"""Points in boxes and masks, and pairs that no score chooses: by hand, by brute force, and by figures of scripts."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, InputError
from boxscore.distributed import Part, merge
from support.each import each
from support.parted import bits, parts_of, whole
from support.real_data import real

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
RANKED = ("best_available", "best_overall")


def rules(similarity: str = "distance", largest: float = 100, **matching: Any) -> dict[str, Any]:
    """Precision and recall of all classes together."""
    return {
        "extends": "coco",
        "similarity": similarity,
        "distance": {"largest": largest, "anchor": "point"},
        "matching": {"iou_thresholds": [0.5], "max_detections": [], "per_class": False, **matching},
        "ignore": {"area_ranges": {"all": [0, math.inf]}},
        "summary": [{"key": "P", "metric": "precision"}, {"key": "R", "metric": "recall"}],
    }


def tables(truths: Any, found: Any, **truth: Any) -> tuple[GroundTruth, Detections]:
    """Points of one image; a detection is x, y and score."""
    places, points = np.array(truths, dtype=float), np.array(found, dtype=float).reshape(-1, 3)
    boxes = truth.pop("boxes", np.column_stack([places, places]))
    return (
        GroundTruth.from_arrays(
            [0] * len(places), [0] * len(places), boxes, columns={"point": places}, **truth
        ),
        Detections.from_arrays(
            [0] * len(points),
            [0] * len(points),
            np.column_stack([points[:, :2], points[:, :2]]),
            points[:, 2],
            columns={"point": points[:, :2]},
        ),
    )


def outcomes(result: Evaluation) -> str:
    return "".join(word[0] for word in result.matches["outcome"])


BOXES = np.array([[0, 0, 10, 10], [4, 0, 30, 10]], dtype=float)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([(10, 10, 0.9)], "t"),  # a point on the corner is inside
        ([(30.5, 5, 0.9)], "f"),
        ([(5, 5, 0.9), (6, 5, 0.8)], "tt"),  # the second has the second box
        ([(5, 5, 0.9), (2, 5, 0.8)], "tf"),  # the nearer center was taken
        ([(16, 5, 0.9), (9, 5, 0.8), (8, 5, 0.7)], "ttf"),
    ],
)
def test_points_in_boxes(found: Any, expected: str) -> None:
    sides = tables([(5, 5), (17, 5)], found, boxes=BOXES)
    assert outcomes(boxscore.evaluate(*sides, protocol=rules("point_in_box"))) == expected


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ((3.99, 2.0), "t"),
        ((4.0, 2.0), "f"),
        ((2.0, 1.99), "f"),
        ((2.0, 2.0), "t"),
        ((-0.1, 3), "f"),
        ((9, 3), "f"),
    ],
)
def test_points_in_masks(point: tuple[float, float], expected: str) -> None:
    mask = np.zeros((6, 8), dtype=bool)
    mask[2:5, 2:4] = True
    sides = tables([(3, 3)], [(*point, 0.5)], boxes=[[0, 0, 8, 6]], masks=[mask])
    assert outcomes(boxscore.evaluate(*sides, protocol=rules("point_in_mask"))) == expected


def test_masks_are_needed() -> None:
    with pytest.raises(InputError, match="ground truth must have a mask in every row"):
        boxscore.evaluate(*tables([(1, 1)], [(1, 1, 0.5)]), protocol=rules("point_in_mask"))


def test_points_are_needed() -> None:
    truth, found = tables([(1, 1)], [(1, 1, 0.5)])
    with pytest.raises(InputError, match="must have point, two numbers, in every row"):
        boxscore.evaluate(truth, found.replaced(columns={}), protocol=rules("point_in_box"))


def counted(distance: np.ndarray[Any, Any], bound: float, candidate: str) -> int:
    """Pairs by a strategy, the slow way."""
    count, truths = distance.shape
    if candidate == "best_pair_first":
        taken: set[tuple[str, int]] = set()
        for d, g in sorted(itertools.product(range(count), range(truths)), key=lambda at: distance[at]):
            if distance[d, g] <= bound and not {("d", d), ("g", g)} & taken:
                taken |= {("d", d), ("g", g)}
        return len(taken) // 2
    best = (math.inf, 0)
    few, many = (distance, truths) if count <= truths else (distance.T, count)
    for chosen in itertools.permutations(range(many), len(few)):
        each = [few[row, at] for row, at in enumerate(chosen)]
        best = min(best, (sum(each), sum(value <= bound for value in each)))
    return best[1]


@each(
    [
        (seed, candidate)
        for candidate in ["best_pair_first", "assigned_before_threshold"]
        for seed in range(30)
    ]
)
def test_pairs_are_those_of_brute_force(seed: int, candidate: str) -> None:
    rng = np.random.default_rng(seed)
    truths, found = (
        rng.random((int(rng.integers(1, 6)), 2)) * 60,
        rng.random((int(rng.integers(1, 6)), 3)) * 60,
    )
    distance = np.sqrt(((found[:, None, :2] - truths[None]) ** 2).sum(axis=2))
    for share in (0.7, 0.8, 0.9):
        result = boxscore.evaluate(
            *tables(truths, found), protocol=rules(candidate=candidate, iou_thresholds=[share])
        )
        assert outcomes(result).count("t") == counted(distance, (1 - share) * 100, candidate)


def test_an_assignment_of_all_can_lose_a_pair() -> None:
    sides = tables([(0, 0), (10, 0)], [(9, 0, 0.5), (-30, 0, 0.5)])
    found = {
        name: outcomes(boxscore.evaluate(*sides, protocol=rules(candidate=name, iou_thresholds=[0.9])))
        for name in ("most_pairs", "best_pair_first", "assigned_before_threshold")
    }
    assert found == {"most_pairs": "tf", "best_pair_first": "tf", "assigned_before_threshold": "tf"}
    sides = tables([(0, 0), (10, 0)], [(6, 0, 0.5), (20, 0, 0.5)])
    lost = boxscore.evaluate(
        *sides, protocol=rules(candidate="assigned_before_threshold", iou_thresholds=[0.95])
    )
    kept = boxscore.evaluate(*sides, protocol=rules(candidate="most_pairs", iou_thresholds=[0.95]))
    assert (outcomes(lost), outcomes(kept)) == ("ff", "tf")


@pytest.mark.parametrize("candidate", ["best_pair_first", "assigned_before_threshold"])
def test_images_apart_or_at_once(candidate: str) -> None:
    rng = np.random.default_rng(3)
    image = np.arange(40) % 4
    points = rng.random((40, 2)) * 50
    boxes = np.column_stack([points, points])
    truth = GroundTruth.from_arrays(image, [0] * 40, boxes, columns={"point": points})
    moved = points + rng.normal(0, 9, points.shape)
    found = Detections.from_arrays(
        image, [0] * 40, np.column_stack([moved, moved]), rng.random(40), columns={"point": moved}
    )
    protocol = rules(candidate=candidate, iou_thresholds=[0.8, 0.9])
    parts = parts_of((truth, found), protocol, np.arange(4) % 2)
    assert bits(merge([Part.from_bytes(part.to_bytes()) for part in parts])) == bits(
        whole((truth, found), protocol)
    )


STRATEGIES: dict[str, dict[str, Any]] = {
    "by score, nearest free, d < T": {"candidate": "best_available"},
    "by distance, nearest pair first, d <= T": {"candidate": "best_pair_first", "threshold_closed": True},
    "by distance, d < T": {"candidate": "best_pair_first"},
    "assignment of all by least sum, then d < T": {"candidate": "assigned_before_threshold"},
    "assignment within d <= T, most pairs then least sum": {
        "candidate": "most_pairs",
        "threshold_closed": True,
    },
    "by score, nearest overall (taken: false), d < T": {"candidate": "best_overall"},
}


@pytest.mark.real
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("pixels", [5, 10, 20])
def test_counts_of_every_strategy(strategy: str, pixels: int) -> None:
    expected = json.loads(real("points", "expected_strategies.json").read_text())[f"T={pixels}"]
    matching = {"threshold_closed": False, "equal_iou": "first", **STRATEGIES[strategy]}
    protocol = rules(largest=1024, iou_thresholds=[1 - pixels / 1024], **matching)
    result = boxscore.evaluate(real("points", "gt.json"), real("points", "dt.json"), protocol=protocol)
    assert (result["R"], result["P"]) == (expected[strategy]["recall"], expected[strategy]["precision"])
    assert outcomes(result).count("t") == expected[strategy]["tp"]


@pytest.mark.real
def test_deepforest_counts_image_by_image() -> None:
    expected = json.loads(real("points", "expected_deepforest.json").read_text())["point, score >= None"]
    matching = {"candidate": "assigned_before_threshold", "threshold_closed": False}
    protocol = rules(largest=1024, iou_thresholds=[1 - 10 / 1024], **matching)
    result = boxscore.evaluate(real("points", "gt.json"), real("points", "dt.json"), protocol=protocol)
    objects = np.bincount(result.ground_truth.image, minlength=len(result.images))
    found = result.matches
    every = found.groupby("image_id").size()
    right = found[found["outcome"] == "true positive"].groupby("image_id").size()
    ids = result.images.ids.tolist()
    images = [(n, image) for n, image in enumerate(ids) if objects[n]]
    recall = [right.get(image, 0) / objects[n] for n, image in images]
    precision = [right.get(image, 0) / every[image] for _, image in images if image in every.index]
    assert right.sum() == expected["matches"]
    assert np.mean(recall) == pytest.approx(expected["recall"], rel=1e-15)
    assert np.mean(precision) == pytest.approx(expected["precision"], rel=1e-15)
