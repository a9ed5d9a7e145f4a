"""The drop-in for faster_coco_eval: pycocotools' numbers under that library's names, called as its users call it."""

from __future__ import annotations

import copy
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import REFERENCE, load, outcome, random_dataset, same
from test_clients import declare_compiled_operators

import boxscore
from boxscore import compat
from boxscore.compat import faster_coco_eval as drop_in
from support.samples import GT, SHAPES

KINDS = ("bbox", "segm", "keypoints")

BOX_NAMES = [
    "AP_all",
    "AP_50",
    "AP_75",
    "AP_small",
    "AP_medium",
    "AP_large",
    "AR_all",
    "AR_second",
    "AR_third",
    "AR_small",
    "AR_medium",
    "AR_large",
]


def plain_json(value: Any) -> Any:
    """As it would come from a file."""
    written = json.dumps(
        value, default=lambda other: other.decode() if isinstance(other, bytes) else other.item()
    )
    return json.loads(written)


def evaluated(library: Any, dataset: Any, results: Any, kind: str, **options: Any) -> Any:
    """ultralytics' calls, on what is in memory; the evaluation and what it printed."""
    lines: list[str] = []
    anno = library.COCO(copy.deepcopy(dataset))
    pred = anno.loadRes(copy.deepcopy(results))
    val = library.COCOeval_faster(anno, pred, iouType=kind, lvis_style=False, print_function=lines.append)
    val.params.imgIds = anno.getImgIds()
    for name, value in options.items():
        setattr(val.params, name, value)
    val.evaluate()
    val.accumulate()
    val.summarize()
    return val, [line for line in lines if " = " in line]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_the_numbers_of_pycocotools(kind: str, seed: int) -> None:
    dataset, results = map(plain_json, random_dataset(np.random.default_rng(seed), kind))

    def reference() -> Any:
        evaluation = REFERENCE.COCOeval(*load(REFERENCE, dataset, results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation

    theirs, printed = outcome(reference)
    ours, lines = evaluated(drop_in, dataset, results, kind)
    assert same(ours.stats, theirs.stats)
    assert lines[: len(theirs.stats)] == [line for line in printed.splitlines() if " = " in line]
    if kind != "keypoints":  # there, categories without annotations are left out
        assert same(ours.eval["precision"], theirs.eval["precision"])
        recall = theirs.eval["recall"][:, :, 0, -1]
        of_half = [recall[t][recall[t] > -1].mean() for t in (0, 5)]
        assert ours.all_stats.tolist() == [*theirs.stats.tolist(), *of_half]


def test_names() -> None:
    truth, found = (json.loads((SHAPES / f"{name}.json").read_text()) for name in ("instances", "detections"))
    evaluation, _ = evaluated(drop_in, truth, found, "bbox")
    named = evaluation.stats_as_dict
    assert list(named) == [*BOX_NAMES, "AR_50", "AR_75"]
    assert named["AP_all"] == pytest.approx(0.33988327448177075, abs=1e-15)
    assert round(named["AP_50"], 4) == 0.5936
    evaluation, _ = evaluated(drop_in, truth, found, "bbox", maxDets=[5, 300])
    assert [name for name in evaluation.stats_as_dict if name.startswith("AR")][:2] == ["AR_5", "AR_300"]
    assert evaluation.stats_as_dict["AP_all"] > 0.3  # pycocotools asks for the cap 100 and gives -1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"maxDets": [1, 5, 7, 300]}, {"useCats": 0}])
def test_the_real_one(kind: str, options: dict[str, Any]) -> None:
    real = pytest.importorskip("faster_coco_eval", reason="faster-coco-eval is not installed")
    dataset, results = map(plain_json, random_dataset(np.random.default_rng(3), kind))
    for annotation in dataset["annotations"]:
        annotation["id"] += 1
    if kind == "keypoints" and options:
        pytest.skip("faster_coco_eval takes keypoints with its own parameters only")
    theirs, their_lines = evaluated(real, dataset, results, kind, **options)
    ours, lines = evaluated(drop_in, dataset, results, kind, **options)
    assert lines == their_lines
    assert list(ours.stats_as_dict) == list(theirs.stats_as_dict)
    assert ours.stats.shape == theirs.stats.shape
    assert ours.all_stats == pytest.approx(theirs.all_stats, abs=1e-15)
    assert ours.eval["precision"].shape == theirs.eval["precision"].shape


def test_data_in_memory_files_and_paths(tmp_path: Path) -> None:
    truth = json.loads((SHAPES / "instances.json").read_text())
    found = json.loads((SHAPES / "detections.json").read_text())
    as_text = copy.deepcopy(truth)
    for image in as_text["images"]:
        image["id"] = str(image["id"])
    (tmp_path / "found.json").write_text(json.dumps(found))
    answers = []
    for given in (SHAPES / "instances.json", GT, truth, as_text):
        anno = drop_in.COCO(given)
        for results in (tmp_path / "found.json", copy.deepcopy(found)):
            evaluation = drop_in.COCOeval_faster(anno, anno.loadRes(results), "bbox")
            evaluation.run()
            answers.append(evaluation.stats.tolist())
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] > 0.3
    assert anno.get_img_ids() == anno.getImgIds()
    assert anno.load_anns(anno.get_ann_ids(img_ids=[101])) == anno.img_ann_map[101]
    assert anno.get_cat_ids(cat_names=["star"]) == anno.getCatIds(catNms="star")
    assert anno.load_cats([1])[0]["id"] == 1
    assert anno.load_imgs([101])[0]["id"] == 101
    assert set(anno.cat_img_map) <= {category["id"] for category in truth["categories"]}


def test_no_results() -> None:
    anno = drop_in.COCO(SHAPES / "instances.json")
    found = json.loads((SHAPES / "detections.json").read_text())
    assert anno.loadRes([]).getAnnIds() == []
    assert anno.loadRes(found, min_score=2).getAnnIds() == []
    evaluation = drop_in.COCOeval_faster(anno, anno.loadRes([]), "bbox")
    evaluation.run()
    assert evaluation.stats_as_dict["AP_all"] == 0


def test_annotations_may_lack_what_the_tool_does_not_ask_for() -> None:
    truth = json.loads((SHAPES / "instances.json").read_text())
    for annotation in truth["annotations"]:
        if not annotation["iscrowd"]:
            del annotation["iscrowd"]
    found = json.loads((SHAPES / "detections.json").read_text())
    evaluation, _ = evaluated(drop_in, truth, found, "bbox")
    assert evaluation.stats_as_dict["AP_all"] == pytest.approx(0.33988327448177075, abs=1e-15)


def test_area_ranges_and_sigmas_of_ones_own() -> None:
    anno = drop_in.COCO(SHAPES / "instances.json")
    found = anno.loadRes(SHAPES / "detections.json")
    own = {"tiny": [0, 400], "rest": [400, 1e10]}
    evaluation = drop_in.COCOeval_faster(anno, found, "bbox", ranges=own)
    evaluation.run()
    names = list(evaluation.stats_as_dict)
    assert names[3:5] == ["AP_tiny", "AP_rest"]
    assert names[-4:] == ["AR_tiny", "AR_rest", "AR_50", "AR_75"]
    sigmas = drop_in.COCOeval_faster(iouType="keypoints", kpt_oks_sigmas=[0.1] * 3).params.kpt_oks_sigmas
    assert sigmas.tolist() == [0.1] * 3


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"lvis_style": True}, "lvis_style"),
        ({"iouType": "boundary"}, "iouType 'boundary'"),
        ({"iouType": "keypoints_crowd"}, "iouType 'keypoints_crowd'"),
        ({"extra_calc": True}, "extra_calc"),
        ({"use_area": False}, "use_area=False"),
    ],
)
def test_what_is_not_here_is_named(options: dict[str, Any], what: str) -> None:
    with pytest.raises(
        NotImplementedError, match=f"^boxscore stands in for faster_coco_eval without {what};"
    ):
        drop_in.COCOeval_faster(**options)


def test_masks() -> None:
    polygon = [[0, 0, 4, 0, 4, 4, 0, 4]]
    rle = drop_in.mask.segmToRle(polygon, 8, 8)
    assert drop_in.mask.area(rle) == 16
    assert drop_in.mask.segmToRle(rle, 8, 8) is rle
    counts = {"size": [2, 2], "counts": [1, 3]}
    assert drop_in.mask.decode(drop_in.mask.segmToRle(counts, 2, 2)).sum() == 3


def test_the_swap_and_the_way_back() -> None:
    before = sys.modules.get("faster_coco_eval")
    boxscore.init_as_faster_coco_eval()
    try:
        boxscore.init_as_faster_coco_eval()  # twice is once
        for name, value in {
            "faster_coco_eval": drop_in,
            "faster_coco_eval.core.mask": drop_in.mask,
            "faster_coco_eval.core.coco": drop_in.coco,
            "faster_coco_eval.core.faster_eval_api": drop_in.cocoeval,
        }.items():
            assert importlib.import_module(name) is value
        importlib.import_module("faster_coco_eval").init_as_pycocotools()
        assert importlib.import_module("pycocotools") is compat.pycocotools
    finally:
        compat.restore_pycocotools()
        compat.restore_faster_coco_eval()
    assert sys.modules.get("faster_coco_eval") is before
    compat.restore_faster_coco_eval()  # nothing to undo


# ---------------------------------------------------------------- the real libraries, where they are installed


def test_the_real_ultralytics(tmp_path: Path) -> None:
    """``DetectionValidator.coco_evaluate`` on a validator that holds only what it reads."""
    torch = pytest.importorskip("torch")
    declare_compiled_operators(torch)
    module: Any = pytest.importorskip(
        "ultralytics.models.yolo.detect.val", reason="ultralytics is not installed"
    )
    pytest.importorskip("faster_coco_eval", reason="ultralytics looks for faster-coco-eval")
    truth = json.loads((SHAPES / "instances.json").read_text())
    found = json.loads((SHAPES / "detections.json").read_text())
    answers = []
    for swap in (lambda: None, boxscore.init_as_faster_coco_eval):
        swap()
        for in_memory in (False, True):
            files = [f"{image['id']}.png" for image in truth["images"]]
            validator = types.SimpleNamespace(
                args=types.SimpleNamespace(save_json=True),
                jdict=found,
                gdict=copy.deepcopy(truth) if in_memory else None,
                is_coco=True,
                is_lvis=False,
                training=False,
                dataloader=types.SimpleNamespace(dataset=types.SimpleNamespace(im_files=files)),
            )
            given = (copy.deepcopy(found), copy.deepcopy(truth)) if in_memory else ("detections", "instances")
            paths = [item if in_memory else SHAPES / f"{item}.json" for item in given]
            answers.append(module.DetectionValidator.coco_evaluate(validator, {}, *paths))
    compat.restore_faster_coco_eval()
    assert answers[0]["metrics/mAP50-95(B)"] == pytest.approx(0.33988327448177075, abs=1e-12)
    assert all(answer == pytest.approx(answers[0], abs=1e-15) for answer in answers)


@pytest.mark.filterwarnings("default")
def test_the_real_torchmetrics_with_this_backend() -> None:
    torch = pytest.importorskip("torch")
    declare_compiled_operators(torch)
    for name in ("torchmetrics", "torchvision", "faster_coco_eval"):
        pytest.importorskip(name)
    from torchmetrics.detection import mean_ap

    rng = np.random.default_rng(7)

    def side(scored: bool) -> Any:
        count = int(rng.integers(1, 9))
        corner = rng.uniform(0, 30, (count, 2))
        given = {
            "boxes": torch.tensor(np.concatenate([corner, corner + 12], axis=1), dtype=torch.float32),
            "labels": torch.tensor(rng.integers(0, 3, count)),
        }
        return given | ({"scores": torch.tensor(rng.random(count), dtype=torch.float32)} if scored else {})

    predictions, targets = [side(True) for _ in range(20)], [side(False) for _ in range(20)]
    answers = []
    for swap in (lambda: None, boxscore.init_as_faster_coco_eval):
        swap()
        metric = mean_ap.MeanAveragePrecision(class_metrics=True, backend="faster_coco_eval")
        metric.update(predictions, targets)
        answers.append({name: np.asarray(value).tolist() for name, value in metric.compute().items()})
    compat.restore_faster_coco_eval()
    assert answers[1]["map"] > 0
    for name, value in answers[0].items():
        assert answers[1][name] == pytest.approx(value, abs=1e-7), name
