"""Programs that evaluate with pycocotools, in small: each makes its library's calls, in its order, on both.

The sequences follow torchvision's ``references/detection`` (``coco_eval.py``), detectron2's
``coco_evaluation.py`` and ``fast_eval_api.py``, mmdetection's ``coco_metric.py`` and ultralytics'
``detect/val.py``; the real torchmetrics runs as it is, on the swapped modules.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.util
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import OURS, REFERENCE, Library, load, outcome, random_dataset, same

import boxscore
from boxscore import compat

KINDS = ("bbox", "segm", "keypoints")


def silently(function: Any, *arguments: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return function(*arguments)


class TorchvisionEvaluator:
    """Evaluates batch by batch, keeps ``evalImgs`` as arrays, joins them in the end."""

    def __init__(self, library: Library, truth: Any, kinds: list[str]) -> None:
        self.library = library
        self.truth = copy.deepcopy(truth)
        self.evaluations = {kind: library.COCOeval(self.truth, iouType=kind) for kind in kinds}
        self.image_ids: list[int] = []
        self.parts: dict[str, list[Any]] = {kind: [] for kind in kinds}

    def update(self, predictions: dict[int, list[dict[str, Any]]]) -> None:
        image_ids = list(np.unique(list(predictions)))
        self.image_ids.extend(image_ids)
        for kind, evaluation in self.evaluations.items():
            results = [dict(result) for of_image in predictions.values() for result in of_image]
            COCO = self.library.COCO
            evaluation.cocoDt = silently(COCO.loadRes, self.truth, results) if results else COCO()
            evaluation.params.imgIds = list(image_ids)
            silently(evaluation.evaluate)
            shape = (-1, len(evaluation.params.areaRng), len(evaluation.params.imgIds))
            self.parts[kind].append(np.asarray(evaluation.evalImgs).reshape(shape))

    def gathered(self, others: list[TorchvisionEvaluator]) -> TorchvisionEvaluator:
        """As ``synchronize_between_processes``, with pickles for all_gather."""
        for kind, evaluation in self.evaluations.items():
            ranks = [pickle.loads(pickle.dumps((e.image_ids, e.parts[kind]))) for e in [self, *others]]
            image_ids, first = np.unique(np.concatenate([ids for ids, _ in ranks]), return_index=True)
            images = np.concatenate([np.concatenate(parts, 2) for _, parts in ranks], 2)[..., first]
            evaluation.evalImgs = list(images.flatten())
            evaluation.params.imgIds = list(image_ids)
            evaluation._paramsEval = copy.deepcopy(evaluation.params)
        return self

    def summarize(self) -> Any:
        for evaluation in self.evaluations.values():
            evaluation.accumulate()
            evaluation.summarize()
        return [[e.stats, e.eval["precision"], e.eval["scores"]] for e in self.evaluations.values()]


@pytest.mark.parametrize("kind", KINDS)
def test_torchvision(kind: str) -> None:
    dataset, results = random_dataset(np.random.default_rng(0), kind, images=7, truths=40, detections=90)
    ids = [image["id"] for image in dataset["images"]]
    batches = [ids[:2], ids[2:5], [*ids[5:], ids[0]]]  # the sampler's duplicate

    def run(library: Library) -> Any:
        truth, _ = load(library, dataset, [])
        ranks = [TorchvisionEvaluator(library, truth, [kind]) for _ in range(2)]
        for number, batch in enumerate(batches):
            found = {i: [r for r in results if r["image_id"] == i] for i in batch}
            ranks[number % 2].update(copy.deepcopy(found))
        return ranks[0].gathered(ranks[1:]).summarize()

    assert same(outcome(lambda: run(REFERENCE)), outcome(lambda: run(OURS)))


def detectron2_evaluate(library: Library, truth: Any, results: Any, kind: str, **options: Any) -> Any:
    results = copy.deepcopy(results)
    if kind == "segm":
        for result in results:
            result.pop("bbox", None)  # else small, medium and large go by the boxes
    evaluation = library.COCOeval(truth, truth.loadRes(results), kind)
    if options.get("limits"):
        evaluation.params.maxDets = options["limits"]
    if options.get("image_ids"):
        evaluation.params.imgIds = options["image_ids"]
    if kind == "keypoints" and options.get("sigmas") is not None:
        evaluation.params.kpt_oks_sigmas = np.array(options["sigmas"])
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = {"bbox": 6, "segm": 6, "keypoints": 5}
    numbers = [float(s * 100 if s >= 0 else "nan") for s in evaluation.stats[: names[kind]]]
    precisions = evaluation.eval["precision"]  # T, R, K, A, M
    per_class = []
    for k in range(precisions.shape[2]):
        precision = precisions[:, :, k, 0, -1]
        precision = precision[precision > -1]
        per_class.append(float(np.mean(precision) * 100) if precision.size else float("nan"))
    return numbers, per_class


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"limits": [1, 10, 300]}, {"image_ids": [7, 9], "sigmas": [0.1] * 17}]
)
def test_detectron2(kind: str, options: dict[str, Any]) -> None:
    dataset, results = random_dataset(np.random.default_rng(1), kind)
    answers = []
    for library in (REFERENCE, OURS):
        truth, _ = load(library, dataset, [])
        answers.append(
            outcome(lambda lib=library, t=truth: detectron2_evaluate(lib, t, results, kind, **options))
        )
    assert same(*answers)


@pytest.mark.parametrize("kind", KINDS)
def test_detectron2_fast_evaluation(kind: str) -> None:
    """A subclass that evaluates by itself: it calls ``_prepare`` and the overlaps, and reads ``_gts``."""
    dataset, results = random_dataset(np.random.default_rng(2), kind)
    answers = []
    for library in (REFERENCE, OURS):

        class Fast(library.COCOeval):  # type: ignore[misc, name-defined]
            def evaluate(self) -> None:
                p = self.params
                p.imgIds = list(np.unique(p.imgIds))
                p.catIds = list(np.unique(p.catIds))
                p.maxDets = sorted(p.maxDets)
                self._prepare()
                compute = self.computeOks if p.iouType == "keypoints" else self.computeIoU
                self.ious = {(i, k): compute(i, k) for i in p.imgIds for k in p.catIds}
                self.counts = [
                    [
                        [(int(t["id"]), float(t["area"]), bool(t["ignore"])) for t in self._gts[i, k]]
                        for k in p.catIds
                    ]
                    for i in p.imgIds
                ] + [[[d["score"] for d in self._dts[i, k]] for k in p.catIds] for i in p.imgIds]
                self.evalImgs = [
                    self.evaluateImg(i, k, a, p.maxDets[-1])
                    for k in p.catIds
                    for a in p.areaRng
                    for i in p.imgIds
                ]
                self._paramsEval = copy.deepcopy(p)

        def run(library: Library = library, fast: Any = Fast) -> Any:
            evaluation = fast(*load(library, dataset, results), kind)
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            return [evaluation.stats, evaluation.counts, evaluation.ious, evaluation.eval["precision"]]

        answers.append(outcome(run))
    assert same(*answers)


def mmdet_compute(library: Library, dataset: Any, results: Any, kind: str, folder: Path) -> Any:
    """``CocoMetric.compute_metrics``: files in and out, caps of its own, stats by name, class-wise AP."""
    folder.mkdir()
    (folder / "truth.json").write_text(json.dumps(dataset))
    (folder / f"results.{kind}.json").write_text(json.dumps(results))

    class Api(library.COCO):  # type: ignore[misc, name-defined]
        """mmdetection's wrapper adds names with underscores."""

        def get_cat_ids(self, cat_names: Any = []) -> Any:  # noqa: B006
            return self.getCatIds(cat_names)

        def get_ann_ids(self, img_ids: Any = [], cat_ids: Any = []) -> Any:  # noqa: B006
            return self.getAnnIds(img_ids, cat_ids)

    api = Api(str(folder / "truth.json"))
    cat_ids = api.get_cat_ids(cat_names=[c["name"] for c in dataset["categories"]])
    img_ids = api.getImgIds()
    predictions = json.loads((folder / f"results.{kind}.json").read_text())
    if kind == "segm":
        for prediction in predictions:
            prediction.pop("bbox", None)
    try:
        found = api.loadRes(predictions)
    except IndexError:
        return "The testing results of the whole dataset is empty."
    evaluation = library.COCOeval(api, found, kind)
    evaluation.params.catIds = cat_ids
    evaluation.params.imgIds = img_ids
    evaluation.params.maxDets = [100, 300, 1000]
    evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10, endpoint=True)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    precisions = evaluation.eval["precision"]
    assert len(cat_ids) == precisions.shape[2]
    classwise = []
    for index, cat_id in enumerate(cat_ids):
        name = api.loadCats(cat_id)[0]["name"]
        values = [precisions[:, :, index, 0, -1], precisions[0, :, index, 0, -1]]
        values += [precisions[:, :, index, area, -1] for area in (1, 2, 3)]
        classwise.append(
            [name, *(round(float(np.mean(v[v > -1])), 3) if (v > -1).any() else "nan" for v in values)]
        )
    proposals = library.COCOeval(api, found, kind)
    proposals.params.useCats = 0
    proposals.params.maxDets = [100, 300, 1000]
    proposals.evaluate()
    proposals.accumulate()
    proposals.summarize()
    return [evaluation.stats, classwise, proposals.stats[6:], api.get_ann_ids(img_ids=[7])]


@pytest.mark.parametrize("kind", ["bbox", "segm"])
@pytest.mark.parametrize("empty", [False, True])
def test_mmdetection(kind: str, empty: bool, tmp_path: Path) -> None:
    dataset, results = random_dataset(np.random.default_rng(3), kind)
    for record in [*dataset["annotations"], *results]:
        segmentation = record.get("segmentation")
        if isinstance(segmentation, dict) and isinstance(segmentation["counts"], bytes):
            segmentation["counts"] = segmentation["counts"].decode()
    results = [] if empty else results
    one, other = (
        outcome(lambda lib=library, f=tmp_path / name: mmdet_compute(lib, dataset, results, kind, f))
        for library, name in ((REFERENCE, "reference"), (OURS, "ours"))
    )
    assert same(one, other)


def ultralytics_eval_json(library: Library, annotations: str, predictions: str, ids: list[int]) -> Any:
    anno = library.COCO(annotations)
    pred = anno.loadRes(predictions)
    evaluation = library.COCOeval(anno, pred, "bbox")
    evaluation.params.imgIds = ids
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats[:2]


def test_ultralytics(tmp_path: Path) -> None:
    dataset, results = random_dataset(np.random.default_rng(4))
    paths = [str(tmp_path / name) for name in ("instances.json", "predictions.json")]
    for path, content in zip(paths, (dataset, results), strict=True):
        Path(path).write_text(json.dumps(content))
    one, other = (
        outcome(lambda lib=library: ultralytics_eval_json(lib, *paths, ids=[7, 8, 9]))
        for library in (REFERENCE, OURS)
    )
    assert same(one, other)


@functools.cache
def declare_compiled_operators(torch: Any) -> Any:
    """Let torchvision be imported although its compiled part does not load (built for another torch).

    torchmetrics needs nothing of it but functions on boxes, which are Python.
    """
    spec = importlib.util.find_spec("torchvision")
    compiled = next(Path(spec.origin).parent.glob("_C*.so"), None) if spec and spec.origin else None
    if compiled is None:
        return None
    with contextlib.suppress(OSError):
        return torch.ops.load_library(str(compiled))
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_the_real_torchmetrics(kind: str) -> None:
    torch = pytest.importorskip("torch")
    declare_compiled_operators(torch)
    pytest.importorskip("torchmetrics")
    pytest.importorskip("torchvision")
    from torchmetrics.detection import mean_ap

    rng = np.random.default_rng(5)

    def side(scored: bool) -> Any:
        count = int(rng.integers(0, 9))
        corner = rng.uniform(0, 30, (count, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(1, 20, (count, 2))], axis=1)
        x, y = np.arange(50), np.arange(60)[:, None]
        masks = np.stack(
            [(x >= b[0]) & (x < b[2]) & (y >= b[1]) & (y < b[3]) for b in boxes.round()] or [x + y < 0]
        )
        given = {
            "boxes": torch.tensor(boxes, dtype=torch.float32),
            "masks": torch.tensor(masks[:count]),
            "labels": torch.tensor(rng.integers(0, 3, count)),
        }
        if scored:
            return given | {"scores": torch.tensor(rng.random(count), dtype=torch.float32)}
        return given | {"iscrowd": torch.tensor((rng.random(count) < 0.2).astype(int))}

    predictions, targets = [side(True) for _ in range(8)], [side(False) for _ in range(8)]
    answers = []
    for swap in (lambda: None, boxscore.init_as_pycocotools):
        swap()
        for average in ("macro", "micro"):
            metric = mean_ap.MeanAveragePrecision(
                iou_type=kind,
                class_metrics=True,
                extended_summary=True,
                average=average,
                backend="pycocotools",
            )
            metric.update(predictions[:5], targets[:5])
            metric.update(predictions[5:], targets[5:])
            result = metric.compute()
            answers.append({name: plain(value) for name, value in result.items()})
    compat.restore_pycocotools()
    assert same(answers[:2], answers[2:])


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    return np.asarray(value) if not isinstance(value, list) else [plain(entry) for entry in value]
