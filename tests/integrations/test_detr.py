"""The evaluator of the DETR family: torchvision's own class with pycocotools, and this one, to the last bit."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import InputError
from boxscore.integrations.detr import CocoEvaluator

COMPAT = Path(__file__).parents[1] / "compat"
sys.path.insert(0, str(COMPAT))
from side_by_side import OURS, REFERENCE, load, random_dataset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = ("bbox", "segm", "keypoints")


class Reference:
    """``coco_eval.py`` of torchvision's references and DETR, with its calls in its order."""

    def __init__(self, library: Any, truth: Any, kinds: Any) -> None:
        self.library, self.coco_gt = library, copy.deepcopy(truth)
        self.coco_eval = {kind: library.COCOeval(self.coco_gt, iouType=kind) for kind in kinds}
        self.img_ids: list[Any] = []
        self.parts: dict[str, list[Any]] = {kind: [] for kind in kinds}

    def update(self, predictions: Any) -> None:
        ids = list(np.unique(list(predictions)))
        self.img_ids.extend(ids)
        for kind, evaluation in self.coco_eval.items():
            results = self.prepare(predictions, kind)
            COCO = self.library.COCO
            evaluation.cocoDt = COCO.loadRes(self.coco_gt, results) if results else COCO()
            evaluation.params.imgIds = list(ids)
            evaluation.evaluate()
            shape = (-1, len(evaluation.params.areaRng), len(evaluation.params.imgIds))
            self.parts[kind].append(np.asarray(evaluation.evalImgs).reshape(shape))

    def prepare(self, predictions: Any, kind: str) -> list[Any]:
        results = []
        for image, prediction in predictions.items():
            if not len(prediction):
                continue
            if kind == "bbox":
                b = prediction["boxes"]
                values = np.stack([b[:, 0], b[:, 1], b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]], axis=1).tolist()
            elif kind == "segm":
                encode = self.library.mask.encode
                masks = [
                    np.array(mask[0, :, :, None], dtype=np.uint8, order="F")
                    for mask in prediction["masks"] > 0.5
                ]
                codes = [encode(mask)[0] for mask in masks]
                values = [{**code, "counts": code["counts"].decode()} for code in codes]
            else:
                values = prediction["keypoints"].reshape(len(prediction["keypoints"]), -1).tolist()
            name = {"bbox": "bbox", "segm": "segmentation", "keypoints": "keypoints"}[kind]
            scores, labels = prediction["scores"].tolist(), prediction["labels"].tolist()
            results += [
                {"image_id": image, "category_id": label, name: value, "score": score}
                for label, value, score in zip(labels, values, scores, strict=True)
            ]
        return results

    def synchronize_between_processes(self) -> None:
        for kind, evaluation in self.coco_eval.items():
            ids, first = np.unique(self.img_ids, return_index=True)
            outcomes = np.concatenate(self.parts[kind], 2)[..., first]
            evaluation.evalImgs, evaluation.params.imgIds = list(outcomes.flatten()), list(ids)
            evaluation._paramsEval = copy.deepcopy(evaluation.params)

    def accumulate(self) -> None:
        for evaluation in self.coco_eval.values():
            evaluation.accumulate()

    def summarize(self) -> None:
        for kind, evaluation in self.coco_eval.items():
            print(f"IoU metric: {kind}")
            evaluation.summarize()


def predictions_of(dataset: Any, results: list[Any], kind: str) -> dict[int, dict[str, Any]]:
    made: dict[int, dict[str, Any]] = {}
    for image in [one["id"] for one in dataset["images"]]:
        rows = [row for row in results if row["image_id"] == image]
        made[image] = {}
        if not rows:
            continue
        scores, labels = ([row[key] for row in rows] for key in ("score", "category_id"))
        made[image] = {"scores": np.array(scores), "labels": np.array(labels)}
        if kind == "bbox":
            boxes = np.array([row["bbox"] for row in rows], dtype=np.float32)
            made[image]["boxes"] = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
        elif kind == "segm":
            codes = [row["segmentation"] for row in rows]
            codes = [code | {"counts": _bytes(code["counts"])} for code in codes]
            made[image]["masks"] = np.stack([REFERENCE.mask.decode(code)[None] for code in codes]) * 0.9
        else:
            points = np.array([row["keypoints"] for row in rows], dtype=float)
            made[image]["keypoints"] = points.reshape(len(rows), -1, 3)
    return made


def _bytes(counts: Any) -> bytes:
    return counts if isinstance(counts, bytes) else counts.encode()


def made(kind: str, seed: int) -> tuple[Any, dict[int, dict[str, Any]]]:
    dataset, results = random_dataset(np.random.default_rng(seed), kind, images=9, truths=60, detections=150)
    if kind == "segm":
        results = [row for row in results if isinstance(row["segmentation"], dict)]
        results = [row for row in results if not isinstance(row["segmentation"]["counts"], list)]
    return dataset, predictions_of(dataset, results, kind)


def run(evaluator: Any, predictions: dict[int, Any], size: int = 2) -> tuple[Any, str]:
    printed = io.StringIO()
    images = list(predictions)
    batches = [images[start : start + size] for start in range(0, len(images), size)] + [images[:2]]
    with contextlib.redirect_stdout(io.StringIO()):
        for batch in batches:  # the sampler's duplicates come last
            evaluator.update({image: predictions[image] for image in batch})
        evaluator.synchronize_between_processes()
        evaluator.accumulate()
    with contextlib.redirect_stdout(printed):
        evaluator.summarize()
    return evaluator, printed.getvalue()


def assert_same(one: Any, other: Any, kind: str) -> None:
    for name in ("precision", "recall", "scores"):
        first, second = (evaluator.coco_eval[kind].eval[name] for evaluator in (one, other))
        assert first.shape == second.shape
        assert first.tobytes() == second.tobytes(), name
    stats = [evaluator.coco_eval[kind].stats for evaluator in (one, other)]
    assert stats[0].tolist() == stats[1].tolist()
    assert one.coco_eval[kind].eval["counts"] == other.coco_eval[kind].eval["counts"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 3, 6])
def test_equal_in_every_bit(kind: str, seed: int) -> None:
    dataset, predictions = made(kind, seed)
    theirs, text = run(Reference(REFERENCE, load(REFERENCE, dataset, [])[0], [kind]), predictions)
    for library in (REFERENCE, OURS):
        ours, same_text = run(CocoEvaluator(load(library, dataset, [])[0], [kind]), predictions)
        assert_same(theirs, ours, kind)
        assert same_text == text
    assert ours.evaluation()["AP"] == pytest.approx(theirs.coco_eval[kind].stats[0], abs=1e-12)
    again = pickle.loads(pickle.dumps(ours.coco_eval[kind].eval))  # as the training scripts save it
    assert again["precision"].tobytes() == ours.coco_eval[kind].eval["precision"].tobytes()


def test_params_are_read() -> None:
    dataset, predictions = made("bbox", 1)
    results = []
    for evaluator in (
        Reference(REFERENCE, load(REFERENCE, dataset, [])[0], ["bbox"]),
        CocoEvaluator(load(REFERENCE, dataset, [])[0], ["bbox"]),
    ):
        params = evaluator.coco_eval["bbox"].params
        params.iouThrs, params.maxDets = np.array([0.1, 0.5, 0.75]), [1, 5, 100]
        params.areaRng, params.areaRngLbl = [[0, 1e10], [0, 300]], ["all", "small"]
        results.append(evaluator)
    for evaluator in results:
        with contextlib.redirect_stdout(io.StringIO()):
            evaluator.update(predictions)
            evaluator.synchronize_between_processes()
            evaluator.accumulate()
    for name in ("precision", "recall", "scores"):
        arrays = [evaluator.coco_eval["bbox"].eval[name] for evaluator in results]
        assert arrays[0].tobytes() == arrays[1].tobytes()


def test_images_that_were_not_seen_are_not_evaluated() -> None:
    dataset, predictions = made("bbox", 2)
    few = dict(list(predictions.items())[:4])
    truth = load(REFERENCE, dataset, [])[0]
    theirs, _ = run(Reference(REFERENCE, truth, ["bbox"]), few)
    ours, _ = run(CocoEvaluator(truth, ["bbox"]), few)
    assert_same(theirs, ours, "bbox")
    assert sorted(ours.img_ids) == sorted(few)
    ours.cleanup()
    assert ours.img_ids == []
    ours, _ = run(ours, predictions)
    assert_same(run(Reference(REFERENCE, truth, ["bbox"]), predictions)[0], ours, "bbox")


def test_nothing_predicted() -> None:
    dataset, predictions = made("bbox", 2)
    truth = load(REFERENCE, dataset, [])[0]
    empty: dict[int, Any] = {image: {} for image in predictions}
    assert_same(
        run(Reference(REFERENCE, truth, ["bbox"]), empty)[0],
        run(CocoEvaluator(truth, ["bbox"]), empty)[0],
        "bbox",
    )


def test_what_it_refuses() -> None:
    dataset, predictions = made("bbox", 2)
    truth = load(REFERENCE, dataset, [])[0]
    with pytest.raises(ValueError, match="Unknown iou type boxes"):
        CocoEvaluator(truth, ["boxes"])
    evaluator = CocoEvaluator(truth, ["bbox"])
    with pytest.raises(InputError, match=r"an evaluation must come after accumulate\(\)"):
        evaluator.evaluation()
    evaluator.coco_eval["bbox"].params.useCats = 0
    evaluator.update(predictions)
    with pytest.raises(InputError, match=r"boxscore.init_as_pycocotools\(\) has it"):
        evaluator.accumulate()


SCRIPT = """
import json, sys, pickle, contextlib, io, warnings
warnings.simplefilter("ignore")
sys.path[:0] = json.loads(sys.argv[1])
from torch import distributed
from test_detr import CocoEvaluator, REFERENCE, load, made
rank, store, output = int(sys.argv[2]), sys.argv[3], sys.argv[4]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
dataset, predictions = made("bbox", 2)
evaluator = CocoEvaluator(load(REFERENCE, dataset, [])[0], ["bbox"])
images = list(predictions)
with contextlib.redirect_stdout(io.StringIO()):
    for image in (images[:6], [*images[6:], images[0]])[rank]:
        evaluator.update({image: predictions[image]})
    evaluator.synchronize_between_processes()
    evaluator.accumulate()
    evaluator.summarize()
pickle.dump(evaluator.coco_eval["bbox"].stats, open(f"{output}.{rank}", "wb"))
distributed.destroy_process_group()
"""


def test_two_ranks_have_the_bits_of_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    places = json.dumps([str(Path(__file__).parent), str(COMPAT), str(COMPAT.parent)])
    rest = [str(tmp_path / "store"), str(tmp_path / "stats")]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, places, rank, *rest], stderr=subprocess.PIPE, text=True
        )
        for rank in ("0", "1")
    ]
    errors = [rank.communicate(timeout=240)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    dataset, predictions = made("bbox", 2)
    expected, _ = run(Reference(REFERENCE, load(REFERENCE, dataset, [])[0], ["bbox"]), predictions)
    for rank in (0, 1):
        stats = pickle.loads((tmp_path / f"stats.{rank}").read_bytes())
        assert stats.tolist() == expected.coco_eval["bbox"].stats.tolist()
