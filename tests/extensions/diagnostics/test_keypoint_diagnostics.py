"""Error types of keypoints by hand, PCK by hand, sigmas by hand; and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore.cli import main
from boxscore.diagnostics import correct_keypoints, keypoint_errors, keypoint_sigmas

AREA = 10_000.0  # sigma 0.05: a similarity of 0.5 lies sqrt(2 ln 2) x 10 pixels away
NAMES = ["nose", "left_eye", "right_eye"]
RULES = {
    "extends": "coco-keypoints",
    "keypoints": {"sigmas": [0.05] * 3, "names": NAMES, "skeleton": []},
}
PERSON = [[100.0, 100.0], [200.0, 100.0], [300.0, 100.0]]
OTHER = [[100.0, 500.0], [200.0, 500.0], [300.0, 500.0]]


def errors(found: list[list[float]], labeled: tuple[int, ...] = (2, 2, 2)) -> Any:
    def of(points: list[list[float]], seen: tuple[int, ...]) -> list[list[float]]:
        return [[*point, see] for point, see in zip(points, seen, strict=True)]

    truth = GroundTruth.from_arrays(
        [1, 1],
        ["person"] * 2,
        [[50, 50, 350, 150], [50, 450, 350, 550]],
        area=[AREA, AREA],
        keypoints=[of(PERSON, labeled), of(OTHER, (2, 2, 2))],
    )
    detections = Detections.from_arrays([1], ["person"], None, [0.9], keypoints=[of(found, (1, 1, 1))])
    return keypoint_errors(boxscore.evaluate(truth, detections, protocol=RULES))


def away(similarity: float) -> float:
    return math.sqrt(-2 * math.log(similarity)) * 10


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ([200.0, 100.0], "good"),
        ([200.0 + away(0.86), 100.0], "good"),
        ([200.0 + away(0.84), 100.0], "jitter"),
        ([200.0 + away(0.51), 100.0], "jitter"),
        ([200.0 + away(0.49), 100.0], "miss"),
        ([300.0, 100.0], "inversion"),
        ([200.0, 500.0], "swap"),
        ([300.0, 500.0], "swap"),
        ([900.0, 900.0], "miss"),
    ],
)
def test_what_is_wrong_with_the_left_eye(place: list[float], kind: str) -> None:
    frame = errors([PERSON[0], place, PERSON[2]]).to_frame().set_index("keypoint")
    assert frame.loc["left_eye", ["good", "jitter", "inversion", "swap", "miss"]].idxmax() == kind
    assert frame["compared"].tolist() == [1, 1, 1, 3]


def test_what_is_not_labeled_is_neither_compared_nor_a_choice() -> None:
    frame = errors([PERSON[0], PERSON[2], PERSON[2]], labeled=(2, 2, 0)).to_frame().set_index("keypoint")
    assert frame["compared"].tolist() == [1, 1, 0, 2]
    assert frame.loc["left_eye", "miss"] == 1
    assert math.isnan(frame.loc["right_eye", "similarity"])


def test_the_command_counts_what_the_function_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of COCO's 17 joints the left eye lies on the right one, and the nose is a hundred sides away."""
    joints = [value for joint in range(17) for value in (20.0 + 10 * joint, 50.0, 2)]
    found = joints.copy()
    found[3:6], found[0] = joints[6:9], 5000.0
    person = {"image_id": 1, "category_id": 1, "keypoints": joints, "bbox": [0, 0, 200, 100]}
    truth, results = tmp_path / "truth.json", tmp_path / "results.json"
    truth.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "width": 300, "height": 200}],
                "categories": [{"id": 1, "name": "person"}],
                "annotations": [{**person, "id": 1, "area": 20000.0, "iscrowd": 0, "num_keypoints": 17}],
            }
        )
    )
    results.write_text(json.dumps([{**person, "keypoints": found, "score": 0.9}]))
    files = ["--gt", str(truth), "--dt", str(results), "--protocol", "coco-keypoints"]
    assert main(["keypoint-errors", *files, "--output", "json"]) == 0
    rows = {row["keypoint"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    kinds = ("good", "jitter", "inversion", "swap", "miss")
    counts = {name: [row[kind] for kind in kinds] for name, row in rows.items()}
    assert counts.pop("nose") == [0, 0, 0, 0, 1]
    assert counts.pop("left_eye") == [0, 0, 1, 0, 0]
    assert [row for name, row in counts.items() if row != [1, 0, 0, 0, 0]] == [
        [15, 0, 1, 0, 1]
    ]  # all together
    assert main(["keypoint-errors", *files, "--output", "latex"]) == 0
    assert "\\begin{tabular}" in capsys.readouterr().out


def test_boxes_are_refused() -> None:
    truth = GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    found = Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(InputError) as error:
        keypoint_errors(boxscore.evaluate(truth, found))
    assert str(error.value) == (
        "the protocol must compare keypoints. Got box; use --protocol coco-keypoints or --iou-type keypoints."
    )


def test_pck_by_hand() -> None:
    truth = np.zeros((3, 2, 2))
    found = np.array([[[0, 5], [0, 6]], [[0, 5], [0, 4]], [[0, 9], [0, 9]]], dtype=float)
    labeled = [[True, True], [True, False], [True, True]]
    result = correct_keypoints(found, truth, [10, 10, 0], labeled=labeled, names=["a", "b"])
    assert result.labeled.tolist() == [2, 1]  # the third person has no normalizer
    assert result.share.tolist() == [1, 0]
    assert result.mean == pytest.approx(2 / 3, rel=1e-15)
    assert result.distance == pytest.approx((0.5 + 0.6 + 0.5) / 3, rel=1e-15)
    opened = correct_keypoints(found, truth, [10, 10, 0], labeled=labeled, closed=False, mean="plain")
    assert (opened.share.tolist(), opened.mean) == ([0, 0], 0)
    assert result.to_frame()["keypoint"].tolist() == ["a", "b", "(mean)"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[0, 0]], [[0, 0]], 1), "predicted must have shape [N, J, 2]. Got shape [1, 2]."),
        (
            (np.zeros((1, 2, 2)), np.zeros((1, 3, 2)), 1),
            "truth must have the shape of predicted, [1, 2, 2]. Got shape [1, 3, 2].",
        ),
    ],
)
def test_poses_of_other_shapes(given: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        correct_keypoints(*given)
    assert str(error.value) == message


def people(points: list[list[list[float]]], ids: list[int]) -> GroundTruth:
    return GroundTruth.from_arrays(
        [1] * len(ids), ["p"] * len(ids), None, area=[100] * len(ids), keypoints=points, ids=ids
    )


def test_sigmas_by_hand() -> None:
    first = people([[[0, 0, 2], [9, 9, 2]], [[0, 0, 2], [9, 9, 0]]], [1, 2])
    second = people([[[0, 0, 2], [9, 9, 2]], [[3, 4, 2], [9, 9, 2]]], [2, 1])
    result = keypoint_sigmas(first, second)  # squares over 100: 0.25 and 0
    assert result.pairs.tolist() == [2, 1]
    assert result.between.tolist() == [math.sqrt(0.125), 0]
    assert result.one.tolist() == [0.25, 0]
    assert result.to_mean[0] == pytest.approx(math.sqrt(0.125) / 2, rel=1e-15)


def test_annotators_of_other_persons() -> None:
    with pytest.raises(InputError, match=r"must have annotation ids of the first's\. Got no common one"):
        keypoint_sigmas(people([[[0, 0, 2]]], [1]), people([[[0, 0, 2]]], [2]))
