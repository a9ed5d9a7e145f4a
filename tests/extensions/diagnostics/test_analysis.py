"""COCO's analysis of errors: equal to pycocotools run class by class and step by step, as mmdetection runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.extensions.diagnostics.analysis import STEPS
from oracles.error_steps import error_steps
from support.instances import evaluate
from support.quiet import quiet
from support.real_data import real

GROUPS = ["animal", "animal", "vehicle", None, "vehicle"]


def made_up(seed: int, *, groups: list[str | None] = GROUPS) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Boxes on a coarse grid, so that overlaps of exactly .10, .50 and .75, equal ones and equal scores occur."""
    random = np.random.default_rng(seed)
    categories = [
        {"id": 3 * k + 1, "name": f"class {k}", **({} if group is None else {"supercategory": group})}
        for k, group in enumerate(groups)
    ]
    ids = [one["id"] for one in categories]

    def box() -> list[float]:
        corner, side = random.integers(0, 8, 2) * 5, random.integers(1, 9, 2) * 5
        return [float(number) for number in (*corner, *side)]

    annotations, results = [], []
    for image in range(1, 9):
        for _ in range(random.integers(0, 7)):
            x, y, w, h = box()
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": int(random.choice(ids[:-1])),
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": int(random.random() < 0.15),
                }
            )
        results += [
            {
                "image_id": image,
                "category_id": int(random.choice(ids)),
                "bbox": box(),
                "score": float(random.integers(1, 9)) / 8,
            }
            for _ in range(random.integers(0, 12))
        ]
    images = [{"id": image, "width": 100, "height": 100} for image in range(1, 9)]
    return {"images": images, "categories": categories, "annotations": annotations}, results


def assert_equal(result: boxscore.Evaluation, steps: np.ndarray[Any, Any], **options: Any) -> None:
    curves = diagnostics.error_curves(result, **options)
    expected = np.where(steps == -1, np.nan, steps)  # [7,101,K]
    np.testing.assert_array_equal(curves.precision, expected.transpose(2, 0, 1))
    defined = expected[:, :, ~np.isnan(expected[0, 0])]
    areas = diagnostics.error_areas(result, **options)
    means = [step.mean() for step in defined]
    np.testing.assert_allclose(np.array(areas.total, dtype=float), means, rtol=0, atol=1e-15)
    np.testing.assert_allclose(curves.mean, defined.mean(axis=2), rtol=0, atol=1e-15)
    # As mmdetection takes the mean: a class without ground truth is 0, and 1 in the last step.
    zeros = np.where(steps == -1, 0.0, steps)
    zeros[-1] = 1.0
    counted = diagnostics.error_areas(result, absent_classes="zero", **options).total
    np.testing.assert_allclose(np.array(counted, dtype=float), zeros.mean(axis=(1, 2)), rtol=0, atol=1e-15)


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(25))
def test_every_point_is_that_of_the_oracle(tmp_path: Path, seed: int) -> None:
    truth, results = made_up(seed)
    with quiet():
        result = evaluate(tmp_path, truth, results, "coco")
    assert_equal(result, error_steps(truth, results))
    assert_equal(result, error_steps(truth, results, max_detections=2), max_detections=2)


@pytest.mark.oracle
def test_c50_and_c75_are_the_evaluation_s(tmp_path: Path) -> None:
    truth, results = made_up(3)
    with quiet():
        result = evaluate(tmp_path, truth, results, "coco")
    total = diagnostics.error_areas(result).total
    assert (result["AP50"], result["AP75"]) == (total.C50, total.C75)


@pytest.mark.oracle
@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(
    ("results", "iou_type"), [("yolov2_608.json", "bbox"), ("yolact_base.segm.json", "segm")]
)
def test_real_detectors(results: str, iou_type: str) -> None:
    truth, found = (
        real("coco_val2017_masks206", "instances.json"),
        real("coco_val2017_masks206", results),
    )
    with quiet():
        result = boxscore.evaluate(truth, found, protocol="coco" if iou_type == "bbox" else "coco-segm")
    steps = error_steps(json.loads(truth.read_text()), json.loads(found.read_text()), iou_type=iou_type)
    assert_equal(result, steps)


def test_by_hand() -> None:
    """A cat taken for a dog, a poorly placed cat and a box of nothing, before the cat at its place."""
    truth = boxscore.GroundTruth.from_arrays(
        [1] * 3, ["cat", "dog", "car"], [[0, 0, 10, 10], [50, 0, 60, 10], [90, 0, 100, 10]]
    )
    boxes = [[50, 0, 60, 10], [90, 0, 100, 10], [70, 70, 80, 80], [0, 0, 10, 6]]
    found = boxscore.Detections.from_arrays([1] * 4, ["cat"] * 4, boxes, [0.9, 0.8, 0.7, 0.6])
    result = boxscore.evaluate(truth, found)
    areas = diagnostics.error_areas(result)
    cat = areas.classes.index("cat")
    values = [float(area[cat]) for area in areas.per_class]
    np.testing.assert_allclose(values, [0, 1 / 4, 1 / 4, 1 / 4, 1 / 2, 1, 1], rtol=0, atol=1e-12)


def test_a_file_s_supercategories_decide_what_is_similar(tmp_path: Path) -> None:
    truth, results = made_up(7, groups=[None] * 5)
    with quiet():
        none = diagnostics.error_areas(evaluate(tmp_path, truth, results, "coco")).total
        for one in truth["categories"]:
            one["supercategory"] = "thing"
        every = diagnostics.error_areas(evaluate(tmp_path, truth, results, "coco")).total
        for one in truth["categories"]:
            one["supercategory"] = ["no", "text"]
        odd = diagnostics.error_areas(evaluate(tmp_path, truth, results, "coco")).total
    assert none.Sim == none.Loc < none.Oth
    assert every.Sim == every.Oth == none.Oth
    assert odd == none


def test_supercategories_survive_a_round_trip_and_stay_out_of_the_table_of_classes(tmp_path: Path) -> None:
    truth, results = made_up(1)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    table = boxscore.load_ground_truth(tmp_path / "truth.json")
    for name in ("copy.json", "copy.npz"):
        boxscore.save_as(table, tmp_path / name)
        again = boxscore.load_ground_truth(tmp_path / name)
        assert again.categories.columns["supercategory"].tolist() == GROUPS
    with quiet():
        result = evaluate(tmp_path, truth, results, "coco")
    assert "supercategory" not in result.per_class


def test_steps_never_fall() -> None:
    result = boxscore.evaluate(*_sample())
    curves = diagnostics.error_curves(result).precision
    assert curves.shape[1:] == (7, 101)
    defined = curves[~np.isnan(curves[:, 0, 0])]
    assert len(defined) == 5
    assert (np.diff(defined[:, 2:], axis=1) >= 0).all()  # C75 to Loc can cross: other objects are taken


def test_the_table(tmp_path: Path) -> None:
    truth, results = made_up(2)
    with quiet():
        curves = diagnostics.error_curves(evaluate(tmp_path, truth, results, "coco"))
    frame = curves.to_frame()
    assert len(frame) == 4 * 7 * 101  # one class has no objects
    assert frame["step"].unique().tolist() == list(STEPS)
    assert curves.total_frame()["class"].unique().tolist() == ["(mean)"]


def test_options_are_checked() -> None:
    result = boxscore.evaluate(*_sample())
    with pytest.raises(boxscore.InputError, match="max_detections must be"):
        diagnostics.error_curves(result, max_detections=0)
    with pytest.raises(boxscore.InputError, match="absent_classes must be one of"):
        diagnostics.error_areas(result, absent_classes="none")  # type: ignore[arg-type]


def _sample() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    folder = Path(__file__).parents[3] / "datasets" / "shapes_coco"
    truth = boxscore.load_ground_truth(folder / "instances.json")
    return truth, boxscore.load_detections(folder / "detections.json", truth)
