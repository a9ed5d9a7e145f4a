"""Keypoint evaluation equals pycocotools bit for bit."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.compat.verification import verify
from boxscore.extensions.keypoints.columns import box_of_keypoints
from boxscore.extensions.keypoints.similarity import object_keypoint_similarity, similarity_of_pairs
from support.examples import first_of
from support.instances import assert_same_bits, evaluate, keypoint_case, run_pycocotools
from support.real_data import real

EXPECTED = {
    "openpose_a.json": [0.2154, 0.4307, 0.1905, 0.1641, 0.2886, 0.2456, 0.4620, 0.2280, 0.1733, 0.3408],
    "openpose_b.json": [0.4019, 0.6046, 0.4070, 0.3502, 0.4805, 0.4343, 0.6292, 0.4347, 0.3567, 0.5366],
}


@pytest.mark.real
@pytest.mark.parametrize("name", EXPECTED)
def test_real_runs(tmp_path: Path, name: str) -> None:
    truth = json.loads(real("coco_keypoints250", "person_keypoints.json").read_text())
    found = json.loads(real("coco_keypoints250", name).read_text())
    evaluation = evaluate(tmp_path, truth, found, "coco-keypoints")
    assert_same_bits(evaluation, run_pycocotools(truth, found, "keypoints"))
    assert [round(value, 4) for value in evaluation.metrics.values()] == EXPECTED[name]
    names = ["AP", "AP50", "AP75", "APm", "APl", "AR", "AR50", "AR75", "ARm", "ARl"]
    assert list(evaluation.metrics) == names
    assert verify(evaluation).equal
    assert evaluation.matches["iou"].max() <= 1


@pytest.mark.long
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_generated_cases(seed: int) -> None:
    truth, found = keypoint_case(seed)
    with tempfile.TemporaryDirectory() as folder:
        ours = evaluate(Path(folder), truth, found, "coco-keypoints")
    assert_same_bits(ours, run_pycocotools(truth, found, "keypoints"))


@pytest.mark.slow
def test_a_thousand_generated_cases(tmp_path: Path) -> None:
    for seed in range(1_000):
        truth, found = keypoint_case(seed)
        ours = evaluate(tmp_path, truth, found, "coco-keypoints")
        assert_same_bits(ours, run_pycocotools(truth, found, "keypoints"))


@pytest.mark.long
@pytest.mark.parametrize("joints", first_of(1, [5, 1, 9, 21, 133]))
def test_own_sigmas_and_caps(tmp_path: Path, joints: int) -> None:
    sigmas = np.linspace(0.02, 0.12, joints).tolist()
    own = {
        "extends": "coco-keypoints",
        "keypoints": {"sigmas": sigmas, "names": [], "skeleton": [[1, joints]]},
        "matching": {"max_detections": [2, 5]},
    }
    for seed in range(20):
        truth, found = keypoint_case(seed, joints=joints)
        ours = evaluate(tmp_path, truth, found, own)
        assert_same_bits(ours, run_pycocotools(truth, found, "keypoints", sigmas=sigmas, caps=[2, 5]))
        assert verify(ours).equal


def test_blocks_change_nothing(tmp_path: Path) -> None:
    truth, found = keypoint_case(4)
    one = evaluate(tmp_path, truth, found, "coco-keypoints").arrays()
    two = evaluate(tmp_path, truth, found, "coco-keypoints", workers=3).arrays()
    assert all(np.array_equal(one[name], two[name], equal_nan=True) for name in one)


def test_sigmas_are_the_literals_over_ten() -> None:
    from pycocotools.cocoeval import Params

    protocol = boxscore.load_protocol("coco-keypoints")
    assert protocol.keypoints.spread.tobytes() == Params("keypoints").kpt_oks_sigmas.tobytes()
    assert len(protocol.keypoints.names) == 17
    assert protocol.keypoints.skeleton[0] == (16, 14)


def test_similarity_is_its_formula() -> None:
    random = np.random.default_rng(0)
    found, truth = random.uniform(0, 100, (4, 6, 3)), random.uniform(0, 100, (3, 6, 3))
    truth[:, :, 2] = random.integers(0, 3, (3, 6))
    truth[2, :, 2] = 0  # nothing labeled: the doubled box decides
    sigmas, area = random.uniform(0.02, 0.1, 6), np.array([900.0, 400.0, 2500.0])
    boxes = np.array([[0, 0, 9, 9], [0, 0, 9, 9], [40, 40, 50, 60]], dtype=float)
    oks = object_keypoint_similarity(found, truth, area=area, sigmas=sigmas, boxes=boxes)
    for i, j in np.ndindex(4, 3):
        terms = []
        for k in range(6):
            x, y = found[i, k, :2]
            distance = (x - truth[j, k, 0]) ** 2 + (y - truth[j, k, 1]) ** 2
            if j == 2:
                dx, dy = max(0, 30 - x) + max(0, x - 60), max(0, 20 - y) + max(0, y - 80)
                distance = dx**2 + dy**2
            elif truth[j, k, 2] == 0:
                continue
            terms.append(np.exp(-distance / (2 * area[j] * (2 * sigmas[k]) ** 2)))
        assert oks[i, j] == pytest.approx(np.mean(terms), rel=1e-12)
    assert object_keypoint_similarity(found[:0], truth, area=area, sigmas=sigmas, boxes=boxes).shape == (0, 3)


def test_a_perfect_detection() -> None:
    points = np.array([[[10, 10, 2], [20, 30, 1], [0, 0, 0]]])
    own = {
        "extends": "coco-keypoints",
        "keypoints": {"sigmas": [0.1] * 3, "names": [], "skeleton": []},
    }
    truth = boxscore.GroundTruth.from_arrays([1], ["person"], [[0, 0, 40, 40]], keypoints=points)
    found = boxscore.Detections.from_arrays([1], ["person"], None, [0.9], keypoints=points)
    assert truth.keypoint_count.tolist() == [2]
    assert found.boxes.tolist() == [[0, 0, 20, 30]] == box_of_keypoints(found.keypoints).tolist()
    evaluation = boxscore.evaluate(truth, found, protocol=own)
    assert evaluation.metrics["AP"] == pytest.approx(1)
    assert "sim:oks/3" in evaluation.signature
    unlabeled = boxscore.GroundTruth.from_arrays(
        [1], ["person"], [[0, 0, 40, 40]], keypoints=points, keypoint_count=[0]
    )
    assert np.isnan(boxscore.evaluate(unlabeled, found, protocol=own).metrics["AP"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keypoints": {"sigmas": [], "names": [], "skeleton": []}}, r"keypoints\.sigmas must be given"),
        (
            {"keypoints": {"sigmas": [0.1, -1], "names": [], "skeleton": []}},
            r"keypoints\.sigmas must be a number in \(0",
        ),
        (
            {"keypoints": {"sigmas": [0.1], "skeleton": []}},
            r"names must be as long as keypoints\.sigmas \(1\)",
        ),
        (
            {"keypoints": {"skeleton": [[1, 18]]}},
            r"keypoints\.skeleton must be pairs of keypoints, 1 to 17\. Got .1, 18.",
        ),
        (
            {"keypoints": {"sigma": [0.1]}},
            r"a key must be known\. Got keypoints\.sigma; did you mean 'sigmas'",
        ),
    ],
)
def test_bad_rules(change: dict, message: str) -> None:
    with pytest.raises(boxscore.InputError, match=message):
        boxscore.load_protocol({"extends": "coco-keypoints", **change})


def test_what_is_refused(tmp_path: Path) -> None:
    truth, found = keypoint_case(1)
    with pytest.raises(
        boxscore.FileFormatError, match=r"keypoints must be three numbers per keypoint.*detection 0 of"
    ):
        evaluate(tmp_path, truth, [{**found[0], "keypoints": [1, 2]}], "coco-keypoints")
    with pytest.raises(boxscore.InputError, match=r"detections must have 2 keypoints in every row.*Got 17"):
        evaluate(
            tmp_path,
            truth,
            found,
            {"extends": "coco-keypoints", "keypoints": {"sigmas": [0.1, 0.1], "names": [], "skeleton": []}},
        )
    boxes_only = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 5, 5]])
    nothing = boxscore.Detections.from_arrays([], [], [], [])
    with pytest.raises(
        boxscore.InputError, match=r"ground truth must have 17 keypoints in every row.*Got none in arrays"
    ):
        boxscore.evaluate(boxes_only, nothing, protocol="coco-keypoints")
    with pytest.raises(
        boxscore.InputError, match=r"boxes must be passed if a ground truth lacks labeled keypoints"
    ):
        object_keypoint_similarity([[[1, 1, 1]]], [[[1, 1, 0]]], area=[5], sigmas=[0.1])
    with pytest.raises(boxscore.InputError, match=r"keypoints1 must have as many keypoints as sigmas \(2\)"):
        object_keypoint_similarity([[[1, 1, 1]]], [[[1, 1, 1]] * 1], area=[5], sigmas=[0.1, 0.1])


def test_pairs_that_may_reach_the_lowest_keep_every_bit() -> None:
    random = np.random.default_rng(12)
    for lowest in (0.02, 0.5, 2 / 3, 0.95):
        joints = int(random.integers(1, 20))
        truth = random.uniform(0, 50, (30, joints, 3))
        truth[:, :, 2] = random.choice([0, 2], truth.shape[:2]) * (random.random((30, 1)) < 0.8)
        detections = truth + random.normal(0, 1, truth.shape) * random.choice([0, 1, 100], (30, joints, 1))
        found, object_ = np.divmod(np.arange(900), 30)
        area, corners = random.uniform(10, 900, 30), random.uniform(0, 50, (30, 4))
        sizes, sigmas = random.uniform(1, 40, (30, 4)), random.uniform(0.02, 0.1, joints)
        pairs = functools.partial(
            similarity_of_pairs, detections, truth, found, object_, area, corners, sizes, sigmas
        )
        every = pairs()
        some = pairs(lowest)
        enough = every >= lowest
        assert enough.any()
        assert (some[enough] == every[enough]).all()
        assert (some[~enough] < lowest).all()
        assert (some == 0).sum() > (every == 0).sum()


ONE: list = [[[10, 10, 2], [20, 10, 2]]]
UNLABELED: list = [[[10, 10, 0], [20, 10, 0]]]


@pytest.mark.parametrize("nothing", [[], np.empty((0, 2, 3)), np.empty((0, 17, 3))])
def test_a_side_without_anyone(nothing: list) -> None:
    sigmas = [0.05, 0.05]
    assert object_keypoint_similarity(ONE, nothing, area=[], sigmas=sigmas).shape == (1, 0)
    assert object_keypoint_similarity(nothing, ONE, area=[400], sigmas=sigmas).shape == (0, 1)
    assert object_keypoint_similarity(nothing, nothing, area=[], sigmas=sigmas).shape == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigmas": [0, 0.05]}, "sigmas must be above 0. Got 0."),
        ({"sigmas": [0.05, -1]}, "sigmas must be above 0. Got -1."),
        ({"sigmas": [0.05, np.nan]}, "sigmas must be above 0. Got nan."),
        ({"boxes": []}, r"boxes must be as long as keypoints2 \(1\). Got length 0."),
        ({"boxes": [[0, 0, 9, 9]] * 2}, r"boxes must be as long as keypoints2 \(1\). Got length 2."),
    ],
)
def test_arrays_that_do_not_fit(options: dict, message: str) -> None:
    given = {"area": [400], "sigmas": [0.05, 0.05], "boxes": [[0, 0, 9, 9]], **options}
    with pytest.raises(boxscore.InputError, match=message):
        object_keypoint_similarity(ONE, UNLABELED, **given)
