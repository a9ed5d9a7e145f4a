"""Error types of keypoints, PCK and sigmas: the figures of coco-analyze, HRNet's rules, mmpose, and of known scatter."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import correct_keypoints, keypoint_errors, keypoint_sigmas
from support.real_data import real

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")]

KINDS = ("good", "jitter", "inversion", "swap", "miss")


@pytest.mark.parametrize("run", ["a", "b"])
def test_every_count_is_that_of_coco_analyze(run: str) -> None:
    folder = real("coco_keypoints250")
    evaluation = boxscore.evaluate(
        folder / "person_keypoints.json", folder / f"openpose_{run}.json", protocol="coco-keypoints"
    )
    file = real("keypoints_more", "expected_coco_analyze_keypoints250.json")
    expected = json.loads(file.read_text())[run]
    result = keypoint_errors(evaluation)
    assert (result.matched, result.analyzed) == (expected["matches"], expected["analysed"])
    for column, kind in enumerate(KINDS):
        assert result.counts[:, column].tolist() == expected[kind]["per_keypoint"]
    frame = result.to_frame()
    assert frame[list(KINDS)].iloc[-1].tolist() == [expected[kind]["total"] for kind in KINDS]
    assert frame["compared"].iloc[-1] == expected["keypoints"]


def poses() -> tuple[dict[str, Any], dict[str, Any]]:
    data = json.loads(real("keypoints_more", "pck_mpii16.json").read_text())
    expected = json.loads(real("keypoints_more", "expected_pck.json").read_text())
    return {name: np.array(values) for name, values in data.items()}, expected


def test_pckh_of_mpii() -> None:
    data, expected = poses()
    theirs = expected["hrnet rules, rewritten"]
    given = data["pred"] + 1, data["gt"], data["head"]
    options: dict[str, Any] = {"labeled": data["mask"], "leave_out": [6, 7]}
    ours = correct_keypoints(*given, **options)
    np.testing.assert_allclose(ours.share * 100, theirs["per_joint"], rtol=1e-15)
    assert ours.mean * 100 == pytest.approx(theirs["Mean"], rel=1e-15)
    for threshold, key in ((0.11, "Mean@0.1 (row 11, t=.11)"), (0.1, "row 10, t=.1")):
        assert correct_keypoints(*given, **options, threshold=threshold).mean * 100 == pytest.approx(
            theirs[key], rel=1e-15
        )
    theirs = expected["mmpose functions, run"]
    ours = correct_keypoints(*given, **options, closed=False, precision="single")
    assert ours.share.tolist() == theirs["PCKh per_joint"]
    assert ours.mean * 100 == pytest.approx(theirs["PCK (weighted, without 6 and 7)"], rel=1e-15)


def test_pck_auc_and_distances_of_mmpose() -> None:
    data, expected = poses()
    theirs = expected["mmpose functions, run"]
    options: dict[str, Any] = {
        "labeled": data["mask"],
        "closed": False,
        "mean": "plain",
        "precision": "single",
    }
    given = data["pred"], data["gt"]
    side = data["bbox"].max(axis=1)
    for threshold in (0.05, 0.2):
        ours = correct_keypoints(*given, side, **options, threshold=threshold)
        assert ours.share.tolist() == theirs[f"PCK bbox @{threshold} per_joint"]
        assert ours.mean == pytest.approx(theirs[f"PCK bbox @{threshold}"], rel=1e-15)
    assert correct_keypoints(*given, 30, **options).area == pytest.approx(theirs["AUC norm 30"], rel=1e-14)
    # Means of float32 are float32's there.
    assert correct_keypoints(*given, 1, **options).distance == pytest.approx(theirs["EPE"], rel=1e-7)
    assert correct_keypoints(*given, side, **options).distance == pytest.approx(theirs["NME bbox"], rel=1e-7)


def test_sigmas_of_two_annotators() -> None:
    tables = [boxscore.load_ground_truth(real("keypoints_more", f"annotator_{name}.json")) for name in "ab"]
    expected = json.loads(real("keypoints_more", "expected_sigmas.json").read_text())
    ours = keypoint_sigmas(*tables)
    assert ours.pairs.tolist() == expected["pairs_per_keypoint"]
    assert ours.between.tolist() == expected["sigma between the two, area of a"]
    assert ours.one.tolist() == expected["sigma of one annotator (half the variance), area of a"]
    assert ours.to_mean.tolist() == expected["sigma against their mean (a quarter)"]
