"""What protocols of keypoints ask for beyond COCO: parts and their scores, sizes, subsets of images, further keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import FileFormatError, InputError
from boxscore.distributed import Part, merge
from support.parted import bits, parts_of, whole

SIGMAS = {"sigmas": [0.05, 0.05], "names": [], "skeleton": []}
ONE, TWO = [10, 10, 2, 20, 20, 2], [10, 12, 2, 20, 20, 2]


def write(
    folder: Path, truth: list[dict[str, Any]], found: list[dict[str, Any]], **images: Any
) -> list[Path]:
    """Write COCO files of two images; ``images`` are further keys of them."""
    listed = [
        {"id": number, "width": 99, "height": 99, **{key: values[number] for key, values in images.items()}}
        for number in (0, 1)
    ]
    base = {"image_id": 0, "category_id": 1, "bbox": [5, 5, 20, 20], "area": 300, "num_keypoints": 2}
    content = {
        "images": listed,
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [{**base, "id": n + 1, "iscrowd": 0, **each} for n, each in enumerate(truth)],
    }
    results = [{"image_id": 0, "category_id": 1, "score": 0.5, **each} for each in found]
    paths = [folder / "gt.json", folder / "dt.json"]
    for path, value in zip(paths, (content, results), strict=True):
        path.write_text(json.dumps(value))
    return paths


def rules(**changes: Any) -> dict[str, Any]:
    keypoints = {**SIGMAS, **changes.pop("keypoints", {})}
    return {"extends": "coco-keypoints", "name": "case", "keypoints": keypoints, **changes}


def overlaps(paths: list[Path], **changes: Any) -> list[float]:
    """OKS of the pairs, by descending score."""
    return [float(value) for value in boxscore.evaluate(*paths, protocol=rules(**changes)).matches["iou"]]


def oks(moved: float, area: float, labeled: int) -> float:
    """OKS where one of the labeled keypoints is moved by some pixels."""
    return (float(np.exp(-(moved**2) / (0.1**2) / (area + np.spacing(1)) / 2)) + labeled - 1) / labeled


def test_parts_are_joined_in_their_order(tmp_path: Path) -> None:
    paths = write(
        tmp_path,
        [{"keypoints": ONE[:3], "hand": ONE[3:]}],
        [{"keypoints": TWO[:3], "hand": TWO[3:]}],
    )
    together = overlaps(paths, keypoints={"parts": ["keypoints", "hand"]})
    assert together == pytest.approx([oks(2, 300, 2)], abs=1e-15)
    unlike = {"sigmas": [0.05, 0.5], "parts": ["hand", "keypoints"]}
    assert overlaps(paths, keypoints=unlike) != together
    hand = {"sigmas": [0.05], "parts": ["hand"]}
    assert overlaps(paths, keypoints=hand) == [1.0]


def test_a_part_that_a_row_lacks_has_no_keypoint(tmp_path: Path) -> None:
    truth = [{"keypoints": ONE, "hand": ONE}, {"keypoints": ONE, "image_id": 1}]
    paths = write(tmp_path, truth, [{"keypoints": ONE, "hand": ONE}])
    changes = {"keypoints": {"parts": ["hand"]}, "ignore": {"unlabeled_by": "visibility"}}
    result = boxscore.evaluate(*paths, protocol=rules(**changes))
    assert (result.counts["ground_truths"], result.counts["ignored"]) == (1, 1)
    assert result["AR"] == 1
    assert boxscore.evaluate(*paths, protocol=rules(keypoints={"parts": ["hand"]}))["AR"] == 0.5


def test_a_part_that_is_missing_is_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, [{"keypoints": ONE}], [{"keypoints": ONE}])
    with pytest.raises(InputError) as error:
        boxscore.evaluate(*paths, protocol=rules(keypoints={"parts": ["face_kpts"]}))
    assert str(error.value) == (
        "ground truth must have face_kpts, three numbers per keypoint, which the protocol compares. Got none "
        f"in {paths[0]}; files of COCO-WholeBody have them in addition to keypoints."
    )


def test_what_was_joined_is_joined_once(tmp_path: Path) -> None:
    paths = write(tmp_path, [{"keypoints": ONE, "hand": ONE}], [{"keypoints": TWO, "hand": ONE}])
    protocol = rules(keypoints={"sigmas": [0.05] * 4, "parts": ["keypoints", "hand"]})
    result = boxscore.evaluate(*paths, protocol=protocol)
    again = boxscore.evaluate(result.ground_truth, result.detections, protocol=protocol)
    assert bits(again)["metrics"] == bits(result)["metrics"]


def test_scores_of_parts_rank_and_a_mixture_is_said(tmp_path: Path) -> None:
    found = [
        {"keypoints": ONE, "score": 0.1, "face_score": 0.9},
        {"keypoints": TWO, "score": 0.8},
    ]
    paths = write(tmp_path, [{"keypoints": ONE}], found)
    with pytest.warns(boxscore.BoxscoreWarning, match="1 of 2 detections of a part lack face_score"):
        result = boxscore.evaluate(*paths, protocol=rules(keypoints={"scores": ["face_score", "score"]}))
    assert result.matches["score"].tolist() == [0.9, 0.8]
    with pytest.raises(InputError, match=r"must have one of the scores face_score\. Got none in row 1 of "):
        boxscore.evaluate(*paths, protocol=rules(keypoints={"scores": ["face_score"]}))


@pytest.mark.parametrize(
    ("keypoints", "area"), [({}, 300), ({"scale": "box"}, 400), ({"scale": "box", "box_share": 0.53}, 212)]
)
def test_the_size_of_an_object(tmp_path: Path, keypoints: dict[str, Any], area: float) -> None:
    paths = write(tmp_path, [{"keypoints": ONE}], [{"keypoints": TWO}])
    assert overlaps(paths, keypoints=keypoints) == pytest.approx([oks(2, area, 2)], abs=1e-15)


def test_detections_without_placed_keypoints(tmp_path: Path) -> None:
    nowhere = [10, 10, 0, 20, 20, 0]
    paths = write(tmp_path, [{"keypoints": ONE}], [{"keypoints": nowhere}])
    assert boxscore.evaluate(*paths, protocol=rules())["AP50"] == pytest.approx(1, abs=1e-15)
    with pytest.warns(boxscore.BoxscoreWarning, match="dropped 1 of 1 detection, .* the third value"):
        assert boxscore.evaluate(*paths, protocol=rules(keypoints={"unplaced": "drop"}))["AP"] == 0


def test_objects_without_keypoints_agree_with_nothing_where_asked(tmp_path: Path) -> None:
    paths = write(tmp_path, [{"keypoints": [0] * 6, "num_keypoints": 0}], [{"keypoints": ONE}])
    count = {"unlabeled": "count"}
    assert boxscore.evaluate(*paths, protocol=rules(ignore=count))["AP50"] == pytest.approx(1, abs=1e-15)
    zero = {"unlabeled_similarity": "zero"}
    assert boxscore.evaluate(*paths, protocol=rules(ignore=count, keypoints=zero))["AP"] == 0


def test_who_is_unlabeled(tmp_path: Path) -> None:
    paths = write(tmp_path, [{"keypoints": ONE, "num_keypoints": 0}], [{"keypoints": ONE}])
    assert np.isnan(boxscore.evaluate(*paths, protocol=rules())["AP"])
    by_visibility = {"unlabeled_by": "visibility"}
    assert boxscore.evaluate(*paths, protocol=rules(ignore=by_visibility))["AP50"] == pytest.approx(
        1, abs=1e-15
    )


SUBSETS: dict[str, Any] = {
    "ignore": {
        "area_ranges": {"all": [0, 1e10], "night": [0, np.inf]},
        "image_ranges": {"night": {"lux": [0, 5]}},
    },
    "summary": [
        {"key": "AP"},
        {"key": "night", "area": "night"},
        {"key": "AR", "metric": "AR", "area": "night"},
    ],
}


def night(folder: Path) -> list[Path]:
    truth = [{"keypoints": ONE}, {"keypoints": ONE, "image_id": 1}, {"keypoints": [9] * 6, "image_id": 1}]
    found = [
        {"keypoints": TWO, "score": 0.9},
        {"keypoints": [50, 50, 2] * 2, "score": 0.8},
        {"keypoints": TWO, "image_id": 1, "score": 0.7},
        {"keypoints": [60, 60, 2] * 2, "image_id": 1, "score": 0.95},
    ]
    return write(folder, truth, found, lux=[50, 5])


def test_a_subset_of_images_counts_as_if_evaluated_alone(tmp_path: Path) -> None:
    paths = night(tmp_path)
    result = boxscore.evaluate(*paths, protocol=rules(**SUBSETS))
    truth, found = (json.loads(path.read_text()) for path in paths)
    truth["images"] = truth["images"][1:]
    truth["annotations"] = [one for one in truth["annotations"] if one["image_id"] == 1]
    for path, content in zip(paths, (truth, [one for one in found if one["image_id"] == 1]), strict=True):
        path.write_text(json.dumps(content))
    alone = boxscore.evaluate(*paths, protocol=rules())
    assert (result["night"], result["AR"]) == (alone["AP"], alone["AR"])
    assert result["AP"] != result["night"]


def test_subsets_in_parts(tmp_path: Path) -> None:
    protocol = rules(**SUBSETS)
    evaluation = boxscore.evaluate(*night(tmp_path), protocol=protocol)
    truth, found = evaluation.ground_truth, evaluation.detections
    parts = parts_of((truth, found), protocol, np.array([0, 1]))
    assert bits(merge([Part.from_bytes(part.to_bytes()) for part in parts])) == bits(
        whole((truth, found), protocol)
    )


def test_images_without_the_column_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, [{"keypoints": ONE}], [{"keypoints": ONE}])
    with pytest.raises(
        InputError, match="images must have the column lux, which the protocol's ranges bound"
    ):
        boxscore.evaluate(*paths, protocol=rules(**SUBSETS))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("dark", "lux must be a number. Got 'dark' in image 0 of "),
        ([1, 2], "lux must be 2 numbers, as in other records. Got 3 in image 1 of "),
        (float("1e300"), "lux must be a number. Got 1e+300 in image 0 of "),
    ],
)
def test_keys_that_hold_something_else(tmp_path: Path, value: Any, message: str) -> None:
    paths = write(tmp_path, [{"keypoints": ONE}], [{"keypoints": ONE}], lux=[value, 3])
    with pytest.raises(FileFormatError) as error:
        boxscore.evaluate(*paths, protocol=rules(**SUBSETS))
    assert message in str(error.value)


def test_flags_of_files_are_read_where_a_protocol_says_so(tmp_path: Path) -> None:
    truth = [{"keypoints": ONE, "ignore": 1}, {"keypoints": [50, 50, 2, 60, 60, 2], "uncertain": True}]
    paths = write(tmp_path, truth, [{"keypoints": ONE}])
    counted = {
        flags: int(
            boxscore.evaluate(*paths, protocol=rules(ignore={"flags": flags}))
            .class_counts["ground_truths"]
            .sum()
        )
        for flags in ((), ("ignore",), ("ignore", "uncertain"), ("unheard",))
    }
    assert list(counted.values()) == [2, 1, 0, 2]


@pytest.mark.parametrize(("sigma", "warned"), [(1 / 3, True), (0.3333, True), (0.3, False)])
def test_sigmas_of_one_over_n_are_warned_of(
    sigma: float, warned: bool, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    three = [50, 50, 2, 60, 60, 2, 70, 70, 2]
    paths = write(tmp_path, [{"keypoints": three}], [{"keypoints": three, "score": 0.5}])
    protocol = {
        "extends": "ultralytics-pose",
        "keypoints": {"names": [], "skeleton": [], "sigmas": [sigma] * 3},
    }
    boxscore.evaluate(*paths, protocol=protocol)
    assert any("all 3 sigmas are 1/3" in str(one.message) for one in recwarn) == warned


PARTS = [
    "coco-wholebody",
    *(f"coco-wholebody-{part}" for part in ("body", "foot", "face", "lefthand", "righthand")),
]


def whole_bodies(folder: Path, images: int = 6) -> None:
    """Write persons with all parts, each with a detection near it."""
    rng = np.random.default_rng(5)
    joints = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}
    truth, found = [], []
    for n in range(images * 3):
        parts = {
            key: np.column_stack([rng.uniform(10, 190, (count, 2)), rng.choice([0, 1, 2], count)])
            for key, count in joints.items()
        }
        box = [5, 5, 190, 190]
        one = {"image_id": n % images, "category_id": 1, "bbox": box, "area": 9000}
        stated = {"id": n + 1, "iscrowd": 0, "num_keypoints": 17}
        truth.append(one | stated | {key: part.ravel().tolist() for key, part in parts.items()})
        moved = {key: part + np.append(rng.normal(0, 4, 2), 0) for key, part in parts.items()}
        scores = {"score": float(rng.integers(10)) / 10, "face_score": 0.5, "wholebody_score": 0.25}
        found.append(one | scores | {key: part.ravel().tolist() for key, part in moved.items()})
    content = {
        "images": [{"id": n, "width": 200, "height": 200} for n in range(images)],
        "annotations": truth,
        "categories": [{"id": 1, "name": "person"}],
    }
    paths = folder / "gt.json", folder / "dt.json"
    for path, written in zip(paths, (content, found), strict=True):
        path.write_text(json.dumps(written))


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("name", PARTS)
def test_parts_of_bodies_merge_to_one_evaluation(name: str, tmp_path: Path) -> None:
    whole_bodies(tmp_path)
    protocol = boxscore.load_protocol(name)
    result = boxscore.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", protocol=protocol)
    content, found = (json.loads((tmp_path / side).read_text()) for side in ("gt.json", "dt.json"))
    parts = []
    for first in (0, 1):
        folder = tmp_path / str(first)
        folder.mkdir()
        some = [one for one in content["annotations"] if one["image_id"] % 2 == first]
        images = [one for one in content["images"] if one["id"] % 2 == first]
        (folder / "gt.json").write_text(json.dumps(content | {"images": images, "annotations": some}))
        (folder / "dt.json").write_text(json.dumps([one for one in found if one["image_id"] % 2 == first]))
        part = boxscore.evaluate(folder / "gt.json", folder / "dt.json", protocol=protocol)
        part.save_part(folder / "part.npz")
        parts.append(Part.from_bytes((folder / "part.npz").read_bytes()))
    merged = merge(parts)
    np.testing.assert_array_equal(list(merged.metrics.values()), list(result.metrics.values()))
    with pytest.raises(InputError):
        boxscore.diagnostics.keypoint_errors(merged)
