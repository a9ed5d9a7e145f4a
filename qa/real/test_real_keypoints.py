"""Keypoints beyond COCO's: the arrays of xtcocotools, crowdposetools, pycocotools and ultralytics, to the bit."""

from __future__ import annotations

import json
from typing import Any

import pytest

import boxscore
from boxscore.diagnostics import compare_protocols, explain
from support.digests import same_arrays
from support.real_data import real

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")]

PARTS = ["body", "foot", "face", "lefthand", "righthand", "wholebody"]
COCO_AREAS = {"all": [0, 1e10], "medium": [1024, 9216], "large": [9216, 1e10]}


def whole_body(part: str) -> str:
    return "coco-wholebody" if part == "wholebody" else f"coco-wholebody-{part}"


@pytest.mark.parametrize("part", PARTS)
def test_whole_bodies_made_up(part: str) -> None:
    more = "keypoints_more"
    files = real(more, "wholebody_gt.json"), real(more, "wholebody_dt.json")
    result = boxscore.evaluate(*files, protocol=whole_body(part))
    expected = json.loads(real(more, "expected.json").read_text())[f"xtcocotools/wholebody_{part}"]
    same_arrays(result, expected)
    assert list(result.metrics.values()) == expected["stats"]


@pytest.mark.parametrize("part", PARTS)
def test_whole_bodies_of_a_model(part: str) -> None:
    folder = real("keypoints_more", "xtcocoapi_examples")
    files = folder / "example_wholebody_val.json", folder / "example_wholebody_preds.json"
    result = boxscore.evaluate(*files, protocol=whole_body(part))
    expected = json.loads(real("keypoints_more", "expected_xtcocoapi_examples.json").read_text())
    same_arrays(result, expected[f"wholebody_{part}"])
    assert list(result.metrics.values()) == expected[f"wholebody_{part}"]["stats"]


def crowd_pose(**changes: Any) -> dict[str, Any]:
    return {"extends": "crowdpose", "name": "case", **changes}


@pytest.mark.parametrize("tool", ["xtcocotools", "crowdposetools"])
def test_crowd_pose(tool: str) -> None:
    """crowdposetools keeps detections without placed keypoints, and reads annotation id 0 as no match."""
    more = "keypoints_more"
    files = real(more, "crowdpose_gt.json"), real(more, "crowdpose_dt.json")
    expected = json.loads(real(more, "expected.json").read_text())[f"{tool}/crowdpose"]
    rules: dict[str, Any] = {}
    if tool == "crowdposetools":
        rules = {"keypoints": {"unplaced": "count"}, "matching": {"annotation_id_zero": "unmatched"}}
    metrics = list(boxscore.evaluate(*files, protocol=crowd_pose(**rules)).metrics.values())
    stats = [value for value in expected["stats"] if value != 0]
    assert metrics[:6] == stats[:6]
    assert [round(value, 4) for value in metrics[6:]] == stats[6:]
    ranges = {"ignore": {"area_ranges": COCO_AREAS, "image_ranges": {}}, "summary": [{"key": "AP"}]}
    same_arrays(boxscore.evaluate(*files, protocol=crowd_pose(**rules, **ranges)), expected)


def test_crowd_pose_of_a_model() -> None:
    folder = real("keypoints_more", "xtcocoapi_examples")
    files = folder / "example_crowdpose_val.json", folder / "example_crowdpose_preds.json"
    ranges = {"ignore": {"area_ranges": COCO_AREAS, "image_ranges": {}}, "summary": [{"key": "AP"}]}
    expected = json.loads(real("keypoints_more", "expected_xtcocoapi_examples.json").read_text())
    same_arrays(boxscore.evaluate(*files, protocol=crowd_pose(**ranges)), expected["crowdpose"])


@pytest.mark.parametrize(
    ("tool", "changes"),
    [
        ("xtcocotools/animals_ap10k", {}),
        ("xtcocotools/animals_ap10k_use_area_false", {"keypoints": {"scale": "box", "box_share": 0.53}}),
        (
            "pycocotools/animals_ap10k",
            {
                "keypoints": {"unplaced": "count"},
                "ignore": {"unlabeled_by": "num_keypoints"},
                "matching": {"annotation_id_zero": "unmatched"},
            },
        ),
    ],
)
def test_animals(tool: str, changes: dict[str, Any]) -> None:
    more = "keypoints_more"
    files = real(more, "animals_gt.json"), real(more, "animals_dt.json")
    result = boxscore.evaluate(*files, protocol={"extends": "ap10k", **changes})
    expected = json.loads(real(more, "expected.json").read_text())[tool]
    same_arrays(result, expected)
    assert list(result.metrics.values()) == expected["stats"]


FOURTEEN = [0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089, 0.079, 0.079]


@pytest.mark.parametrize(
    ("name", "files", "sigmas"),
    [
        ("ultralytics-8.4.190/animals_dt_unique", "animals", None),
        ("ultralytics-8.4.190/crowdpose_dt_unique", "crowdpose", [1 / 14] * 14),
        ("price: crowdpose_dt_unique with CrowdPose sigmas (kpt_oks_sigmas)", "crowdpose", FOURTEEN),
    ],
)
def test_ultralytics_pose(name: str, files: str, sigmas: list[float] | None) -> None:
    """Scores are unique: ultralytics sorts equal ones as NumPy's unstable sort happens to."""
    more = "keypoints_more"
    rules: dict[str, Any] = {"extends": "ultralytics-pose"}
    if sigmas is not None:
        rules["keypoints"] = {"sigmas": sigmas, "names": []}
    both = real(more, f"{files}_gt.json"), real(more, f"{files}_dt_unique.json")
    result = boxscore.evaluate(*both, protocol=rules)
    expected = json.loads(real(more, "expected_ultralytics.json").read_text())[name]
    assert (result["AP50"], result["AP"]) == (expected["mAP50"], expected["mAP50-95"])


def test_explain_names_what_moves_the_ap_of_animals() -> None:
    """From pycocotools' .3595 to xtcocotools' .3928: num_keypoints, and annotation id 0."""
    truth = boxscore.load_ground_truth(real("keypoints_more", "animals_gt.json"))
    found = boxscore.load_detections(real("keypoints_more", "animals_dt.json"), truth)
    pycocotools = {
        "extends": "ap10k",
        "keypoints": {"unplaced": "count"},
        "ignore": {"unlabeled_by": "num_keypoints"},
        "matching": {"annotation_id_zero": "unmatched"},
    }
    steps = explain(truth, found, pycocotools, "ap10k").table
    assert steps["value"].iloc[0] == pytest.approx(0.3595, abs=5e-5)
    assert steps["value"].iloc[-1] == pytest.approx(0.3928, abs=5e-5)
    moved = steps.loc[steps["delta"].abs() > 0, "change"].tolist()
    assert moved == [
        "objects without keypoints: ignored, by num_keypoints -> ignored, by visibility",
        "annotation id 0: unmatched -> counted",
    ]


def test_every_protocol_of_these_keypoints_reads_the_files() -> None:
    """Parts are read because the first protocol asks for them."""
    folder = real("keypoints_more", "xtcocoapi_examples")
    rules = boxscore.load_protocol("coco-wholebody")
    result = boxscore.evaluate(
        folder / "example_wholebody_val.json", folder / "example_wholebody_preds.json", protocol=rules
    )
    crowd = real("keypoints_more", "crowdpose_gt.json"), real("keypoints_more", "crowdpose_dt.json")
    truth = boxscore.load_ground_truth(crowd[0])
    found = boxscore.load_detections(crowd[1], truth)
    assert compare_protocols(truth, found, "crowdpose").table["protocol"].tolist() == ["crowdpose"]
    assert result["AP"] == pytest.approx(0.6421, abs=5e-5)
