"""The drop-in for lvis-api: the rules in plain Python, its names, text, exceptions and oddities."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.compat.lvis import LVIS, LVISEval, LVISResults
from oracles import lvis
from support.federated_cases import federated_case

Record = dict[str, Any]


def written(folder: Path, dataset: Record) -> LVIS:
    path = folder / "truth.json"
    path.write_text(json.dumps(dataset), encoding="utf-8")
    return LVIS(str(path))


class ByImage(LVISEval):
    """Evaluated image by image, since a method that the core replaces is its own."""

    def compute_iou(self, img_id: Any, cat_id: Any) -> Any:
        return super().compute_iou(img_id, cat_id)


@pytest.mark.parametrize("cap", [3, 300])
@pytest.mark.parametrize("seed", range(12))
def test_equal_to_the_rules_in_plain_python(tmp_path: Path, seed: int, cap: int) -> None:
    dataset, results = federated_case(seed)
    if not results:
        pytest.skip("lvis-api refuses empty results")
    truth = written(tmp_path, dataset)
    found = LVISResults(truth, copy.deepcopy(results), max_dets=cap)
    runs = [kind(truth, found, "bbox") for kind in (LVISEval, ByImage)]
    for run in runs:
        run.run()
    core, by_image = runs
    assert core._run is not None
    assert by_image._run is None
    expected = lvis.evaluate(dataset, results, per_image=cap)
    for run in runs:
        np.testing.assert_array_equal(run.eval["precision"], expected.precision)
        np.testing.assert_array_equal(run.eval["recall"], expected.recall)
    assert core.results == by_image.results
    assert alike(core.eval_imgs, by_image.eval_imgs)
    assert alike(core.ious, by_image.ious)
    assert alike(core.eval["dt_pointers"], by_image.eval["dt_pointers"])
    taken = LVISEval(truth, found, "bbox")
    taken.evaluate()
    assert taken.eval_imgs is not None  # what has been handed out is accumulated from
    taken.accumulate()
    np.testing.assert_array_equal(taken.eval["precision"], expected.precision)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(np.array_equal(one, other))


IMAGES = [{"id": 1, "width": 100, "height": 100, "neg_category_ids": [2], "not_exhaustive_category_ids": []}]
CATEGORIES = [
    {"id": 1, "name": "cat", "frequency": "r"},
    {"id": 2, "name": "dog", "frequency": "f"},
    {"id": 3, "name": "owl", "frequency": "c"},
]
CAT: Record = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 50, 50], "area": 2500.0}


def cat(**changes: Any) -> tuple[Record, list[Record]]:
    """One cat, found, and a dog that is verified absent."""
    dataset = {"images": copy.deepcopy(IMAGES), "categories": CATEGORIES, "annotations": [CAT | changes]}
    found = [
        {"image_id": 1, "category_id": label, "bbox": [0, 0, 50, 50], "score": 0.9 - label / 10}
        for label in (1, 2, 3)
    ]
    return copy.deepcopy(dataset), found


def test_numbers_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset, results = cat()
    run = LVISEval(written(tmp_path, dataset), results, iou_type="bbox")
    run.run()
    run.print_results()
    lines = capsys.readouterr().out.splitlines()
    assert list(run.get_results()) == [
        *("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf"),
        *("AR@300", "ARs@300", "ARm@300", "ARl@300"),
    ]
    assert run.results["APr"] == pytest.approx(1.0)
    assert run.results["APf"] == -1
    assert run.freq_groups == [[0], [2], [1]]
    assert run.eval["counts"] == [10, 101, 3, 4]
    assert lines[1] == (
        " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=300 catIds=all] = 1.000"
    )
    assert lines[6] == (
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=300 catIds=  r] = 1.000"
    )
    assert lines[10] == (
        " Average Recall     (AR) @[ IoU=0.50:0.95 | area=     s | maxDets=300 catIds=all] = -1.000"
    )
    assert sorted({(key[0], key[1]) for key in run._dts if run._dts[key]}) == [(1, 1), (1, 2)]  # no owl


def test_results_are_completed_in_place(tmp_path: Path) -> None:
    dataset, results = cat()
    found = LVISResults(written(tmp_path, dataset), results)
    assert results[0] | {"segmentation": None} == {
        "image_id": 1,
        "category_id": 1,
        "bbox": [0, 0, 50, 50],
        "score": 0.8,
        "segmentation": None,
        "area": 2500,
        "id": 1,
    }
    assert results[0]["segmentation"] == [[0, 0, 0, 50, 50, 50, 50, 0]]
    assert [one["category_id"] for one in found.get_top_results(1, 0.65)] == [1, 2]


def test_masks_and_areas(tmp_path: Path) -> None:
    dataset, results = cat(segmentation=[[0, 0, 50, 0, 50, 50, 0, 50]])
    truth = written(tmp_path, dataset)
    assert truth.ann_to_mask(truth.load_anns([1])[0]).sum() == 2500
    run = LVISEval(truth, results)  # boxes stand for masks
    run.run()
    assert run.results["AP"] == pytest.approx(1.0)
    masks = [
        {key: one[key] for key in ("image_id", "category_id", "score", "segmentation")} for one in results
    ]
    again = LVISEval(truth, masks)
    again.run()
    assert again.results == run.results
    assert masks[0]["area"] == 2500


def test_categories_pooled_fail_where_groups_are_summarized(tmp_path: Path) -> None:
    dataset, results = cat()
    run = LVISEval(written(tmp_path, dataset), results, "bbox")
    run.params.use_cats = 0
    run.evaluate()
    run.accumulate()
    assert run.eval["precision"].shape == (10, 101, 1, 4)
    assert run._run is not None
    with pytest.raises(IndexError):
        run.summarize()
    assert list(run.results) == ["AP", "AP50", "AP75", "APs", "APm", "APl", "APr"]  # class 0 is rare


def test_mmdets_parameters_change_nothing(tmp_path: Path) -> None:
    dataset, results = cat()
    truth = written(tmp_path, dataset)
    plain, odd = (LVISEval(truth, copy.deepcopy(results), "bbox") for _ in range(2))
    odd.params.imgIds, odd.params.useCats, odd.params.maxDets = [1], 0, [100, 300]
    for run in (plain, odd):
        run.run()
    assert plain.results == odd.results


def test_evaluated_twice_everything_counts_twice(tmp_path: Path) -> None:
    dataset, results = cat()
    run = LVISEval(written(tmp_path, dataset), results, "bbox")
    run.evaluate()
    run.evaluate()
    run.accumulate()
    assert len(run._gts[1, 1]) == 2


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (lambda t, r: LVISEval(3, r), TypeError, "Unsupported type 3 of lvis_gt."),
        (lambda t, r: LVISEval(t, 3), TypeError, "Unsupported type 3 of lvis_dt."),
        (lambda t, r: LVISEval(t, r, "keypoints"), ValueError, "iou_type: keypoints is not supported."),
        (lambda t, r: LVISResults(t, []), IndexError, "list index out of range"),
        (lambda t, r: LVISResults(t, {}), AssertionError, "results is not a list."),
        (lambda t, r: LVISEval(t, r).summarize(), RuntimeError, "Please run accumulate"),
        (
            lambda t, r: LVISResults(t, [r[0] | {"image_id": 9}]),
            AssertionError,
            "Results do not correspond to current LVIS set.",
        ),
        (lambda t, r: t.get_ann_ids(area_rng=[0, 1]), TypeError, "not iterable"),
        (lambda t, r: t.load_imgs([7]), KeyError, "7"),
        (lambda t, r: t.imgs[1].pop("neg_category_ids") and LVISEval(t, r, "bbox").run(), KeyError, "neg_"),
        (lambda t, r: t.cats[2].update(frequency="x") or LVISEval(t, r, "bbox").run(), ValueError, "'x'"),
    ],
)
def test_exceptions(tmp_path: Path, fault: Any, error: type[Exception], words: str) -> None:
    dataset, results = cat()
    with pytest.raises(error, match=words.replace("(", r"\(")):
        fault(written(tmp_path, dataset), results)


def test_in_place_of_lvis() -> None:
    before = sys.modules.get("lvis")
    boxscore.init_as_lvis()
    try:
        boxscore.init_as_lvis()  # twice is once
        import lvis as package  # type: ignore[import-not-found]
        from lvis.eval import Params  # type: ignore[import-not-found]
        from lvis.results import LVISResults as Results  # type: ignore[import-not-found]

        assert package.LVISEval is LVISEval
        assert Results is LVISResults
        assert Params("bbox").max_dets == 300
    finally:
        boxscore.compat.restore_lvis()
    assert sys.modules.get("lvis") is before


def test_the_face_of_pycocotools_runs_on_the_core() -> None:
    from boxscore.compat.pycocotools import COCO, COCOeval

    truth = COCO()
    dataset, results = cat(iscrowd=0)
    truth.dataset = dataset
    truth.createIndex()
    run = COCOeval(truth, truth.loadRes(results), "bbox")
    run.evaluate()
    assert run._run is not None


def test_annotations_changed_after_evaluate_and_pooled_categories(tmp_path: Path) -> None:
    dataset, results = federated_case(4)
    truth = written(tmp_path, dataset)
    for pooled in (False, True):
        found = LVISResults(truth, copy.deepcopy(results))
        runs = [kind(truth, found, "bbox") for kind in (LVISEval, ByImage)]
        for run in runs:
            run.params.use_cats = int(not pooled)
            run.evaluate()
        for record in found.dataset["annotations"]:
            record["score"], record["bbox"] = 0.5, [1, 1, 2, 2]
        assert alike(runs[0].eval_imgs, runs[1].eval_imgs)
        assert alike(runs[0].ious, runs[1].ious)
        for run in runs:
            run.accumulate()
        assert alike(runs[0].eval["precision"], runs[1].eval["precision"])
        assert runs[0].eval["precision"].max() > 0.9  # lvis-api 0.5.3 gives -1 for pooled categories
