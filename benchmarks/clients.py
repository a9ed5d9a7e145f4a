"""Time public programs that evaluate with pycocotools or faster_coco_eval, with and without the drop-in.

Goal
----
Each client makes its program's calls in their order: batch by batch with a merge of outcomes, or all at once,
from files or from memory. Both libraries get the same input; their ``stats`` and arrays must be equal before
anything is timed.

Usage
-----
    python benchmarks/clients.py                      # 14 clients, 500 images x 100 detections
    python benchmarks/clients.py dfine detr --images 2000 --batch 8 --rounds 7

Conventions
-----------
- Seconds of processor time (user and system, all threads), medians of ``--rounds`` rounds; the libraries take
  turns in one process, and the ratio is the median over pairs.
- What the program itself does on both sides, such as making dictionaries of tensors, is not timed where it
  comes before the first call.
- ``adapter`` is :class:`boxscore.integrations.detr.CocoEvaluator` in the place of the program's own class.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import importlib
import io
import json
import statistics
import tempfile
import time
import types
from pathlib import Path

import make_data
import masks
import numpy as np
from cases import DataSpec

KINDS = ("bbox", "segm", "keypoints")
SHAPE = {"bbox": "bbox", "segm": "segmentation", "keypoints": "keypoints"}
TOLERANCE = 1e-12
"""faster_coco_eval's precision differs from pycocotools' in the last bits."""


class Data:
    """One data set in every form that a client takes; each round gets copies."""

    def __init__(self, folder, kind, *, images, detections, batch):
        truth, results = folder / f"{kind}_ground_truth.json", folder / f"{kind}_detections.json"
        if kind == "bbox":
            spec = DataSpec("scenes", images, 80, images * 36 // 5, images * detections, 2 * detections)
            make_data.make(spec, truth, results)
        elif kind == "segm":
            masks.make_masks(folder, images, images * 36 // 5, images * detections // 5)
        else:
            masks.make_keypoints(folder, images, images * 11 // 5, images * detections // 5)
        self.kind, self.files = kind, (str(truth), str(results))
        self.truth, self.results = json.loads(truth.read_text()), json.loads(results.read_text())
        ids = sorted(image["id"] for image in self.truth["images"])
        self.batches = [ids[start : start + batch] for start in range(0, len(ids), batch)]
        self.by_image = {image: [] for image in ids}
        for row in self.results:
            self.by_image[row["image_id"]].append(row)

    def fresh(self):
        """Return a copy, since the libraries write into records."""
        return copy.deepcopy(self)

    def batches_of_results(self):
        """List each batch's image ids and results."""
        return [(ids, [row for image in ids for row in self.by_image[image]]) for ids in self.batches]


def indexed(library, data):
    """Return the ground truth from memory."""
    truth = library.COCO()
    truth.dataset = data
    truth.createIndex()
    return truth


def arrays(evaluation):
    """Return what an evaluation ends with."""
    return {
        "stats": np.asarray(evaluation.stats),
        **{name: np.asarray(evaluation.eval[name]) for name in ("precision", "recall")},
    }


def finished(evaluation):
    """Accumulate and summarize."""
    evaluation.accumulate()
    evaluation.summarize()
    return arrays(evaluation)


def merged(evaluation, ids, blocks):
    """Set the outcomes [K, A, I] of all batches, as after a gather over ranks."""
    ids, first = np.unique(np.concatenate(ids), return_index=True)
    evaluation.evalImgs = list(np.concatenate(blocks, axis=2)[..., first].flatten())
    evaluation.params.imgIds = ids.tolist()
    evaluation._paramsEval = copy.deepcopy(evaluation.params)


def torchvision(library, data):
    """``references/detection/coco_eval.py``: ``evaluate`` of each batch."""
    truth = copy.deepcopy(indexed(library, data.truth))
    evaluation, blocks = library.COCOeval(truth, iouType=data.kind), []
    for ids, results in data.batches_of_results():
        evaluation.cocoDt = library.COCO.loadRes(truth, results) if results else library.COCO()
        evaluation.params.imgIds = list(ids)
        evaluation.evaluate()
        shape = -1, len(evaluation.params.areaRng), len(ids)
        blocks.append(np.asarray(evaluation.evalImgs).reshape(shape))
    merged(evaluation, data.batches, blocks)
    return finished(evaluation)


def detr(library, data):
    """``datasets/coco_eval.py``: a loop of its own over ``computeIoU`` and ``evaluateImg``."""
    truth = copy.deepcopy(indexed(library, data.truth))
    evaluation, blocks = library.COCOeval(truth, iouType=data.kind), []
    for ids, results in data.batches_of_results():
        evaluation.cocoDt = library.COCO.loadRes(truth, results) if results else library.COCO()
        evaluation.params.imgIds = list(ids)
        p = evaluation.params
        p.imgIds, p.catIds = list(np.unique(p.imgIds)), list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        evaluation._prepare()
        measure = evaluation.computeOks if p.iouType == "keypoints" else evaluation.computeIoU
        evaluation.ious = {(image, kind): measure(image, kind) for image in p.imgIds for kind in p.catIds}
        outcomes = [
            evaluation.evaluateImg(image, kind, area, p.maxDets[-1])
            for kind in p.catIds
            for area in p.areaRng
            for image in p.imgIds
        ]
        blocks.append(np.asarray(outcomes).reshape(len(p.catIds), len(p.areaRng), len(p.imgIds)))
        evaluation._paramsEval = copy.deepcopy(p)
    merged(evaluation, data.batches, blocks)
    return finished(evaluation)


def dfine(library, data):
    """``src/data/dataset/coco_eval.py`` of D-FINE and DEIM: the compiled outcomes of each batch."""
    truth = copy.deepcopy(indexed(library, data.truth))
    evaluation = library.COCOeval(truth, iouType=data.kind, print_function=print, separate_eval=True)
    blocks = []
    for ids, results in data.batches_of_results():
        evaluation.cocoDt = truth.loadRes(results) if results else library.COCO()
        evaluation.params.imgIds = list(ids)
        evaluation.evaluate()
        p = evaluation.params
        shape = len(p.catIds), len(p.areaRng), len(p.imgIds)
        blocks.append(np.array(evaluation._evalImgs_cpp).reshape(shape))
    evaluation.params.imgIds = np.unique(np.concatenate(data.batches)).tolist()
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    evaluation._evalImgs_cpp = np.concatenate(blocks, axis=2).ravel().tolist()
    return finished(evaluation)


def predictions_of(data):
    """Return each batch as a model gives it, as tensors."""
    import torch

    made = []
    for ids in data.batches:
        batch = {}
        for image in ids:
            rows = data.by_image[image]
            batch[image] = {"labels": np.array([row["category_id"] for row in rows], dtype=np.int64)}
            batch[image]["scores"] = np.array([row["score"] for row in rows])
            if data.kind == "bbox":
                boxes = np.array([row["bbox"] for row in rows]).reshape(-1, 4)
                batch[image]["boxes"] = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
            else:
                points = np.array([row["keypoints"] for row in rows]).reshape(len(rows), 17, 3)
                batch[image] |= {"keypoints": points, "boxes": np.zeros((len(rows), 4))}
            batch[image] = {key: torch.from_numpy(values) for key, values in batch[image].items()}
        made.append(batch)
    return made


def batchwise(evaluator, predictions, kind):
    """Make the five calls of the classes that are called ``CocoEvaluator``."""
    for batch in predictions:
        evaluator.update(batch)
    evaluator.synchronize_between_processes()
    evaluator.accumulate()
    evaluator.summarize()
    return arrays(evaluator.coco_eval[kind])


def rtdetrv2(library, data):
    """``FasterCocoEvaluator`` of faster_coco_eval, the base class of RT-DETRv2's."""
    truth = indexed(library, data.truth)
    return batchwise(library.Evaluator(truth, [data.kind]), data.predictions, data.kind)


def adapter(library, data):
    """Evaluate the same predictions with the class of ``boxscore.integrations.detr``."""
    from boxscore.integrations.detr import CocoEvaluator

    return batchwise(CocoEvaluator(indexed(library, data.truth), [data.kind]), data.predictions, data.kind)


def yolov5(library, data):
    """``val.py`` of YOLOv5 and YOLOv7: two files."""
    truth = library.COCO(data.files[0])
    evaluation = library.COCOeval(truth, truth.loadRes(data.files[1]), data.kind)
    evaluation.params.imgIds = [image for batch in data.batches for image in batch]
    evaluation.evaluate()
    return finished(evaluation)


def yolox(library, data):
    """``coco_evaluator.py``: the data set in memory, results through a file, tables by class."""
    truth = indexed(library, data.truth)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(data.results, file)
        file.flush()
        evaluation = library.COCOeval(truth, truth.loadRes(file.name), data.kind)
    evaluation.evaluate()
    return finished(evaluation) | {"classes": by_class(evaluation.eval["precision"])}


def by_class(precision):
    """Return the mean precision of each class at all areas and the largest cap."""
    values = [precision[:, :, k, 0, -1] for k in range(precision.shape[2])]
    return np.array([np.mean(one[one > -1]) if (one > -1).any() else np.nan for one in values])


def detectron2(library, data):
    """``coco_evaluation.py``: results without boxes for masks, tables by class."""
    truth = library.COCO(data.files[0])
    results = data.results
    if data.kind == "segm":
        for row in results:
            row.pop("bbox", None)
    evaluation = library.COCOeval(truth, truth.loadRes(results), data.kind)
    evaluation.evaluate()
    return finished(evaluation) | {"classes": by_class(evaluation.eval["precision"])}


def mmdetection(library, data):
    """``coco_metric.py``: caps of its own, classes and images set."""
    truth = library.COCO(data.files[0])
    evaluation = library.COCOeval(truth, truth.loadRes(data.results), data.kind)
    evaluation.params.catIds = truth.getCatIds()
    evaluation.params.imgIds = truth.getImgIds()
    evaluation.params.maxDets = [100, 300, 1000]
    evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10, endpoint=True)
    evaluation.evaluate()
    return finished(evaluation) | {"classes": by_class(evaluation.eval["precision"])}


def ultralytics(library, data):
    """``detect/val.py``: two files or dictionaries, once."""
    truth = library.COCO(data.files[0])
    found = truth.loadRes(data.files[1])
    evaluation = library.COCOeval(truth, found, iouType=data.kind, lvis_style=False, print_function=print)
    evaluation.params.imgIds = truth.getImgIds()
    evaluation.evaluate()
    return finished(evaluation) | {"named": np.array(list(evaluation.stats_as_dict.values()))}


def torchmetrics(library, data):
    """``mean_ap.py``: two data sets from memory, thresholds as lists of float32, then each class."""
    for number, row in enumerate(data.results, 1):
        if data.kind == "bbox":
            row["area"] = row["bbox"][2] * row["bbox"][3]
        else:
            row["area"] = library.mask.area(row["segmentation"])
        row |= {"id": number, "iscrowd": 0}
    shared = {name: data.truth[name] for name in ("images", "categories")}
    truth = indexed(library, data.truth)
    found = indexed(library, {**shared, "annotations": data.results})
    evaluation = library.COCOeval(truth, found, iouType=data.kind)
    evaluation.params.iouThrs = np.linspace(0.5, 0.95, 10, dtype=np.float32).astype(np.float64)
    evaluation.params.recThrs = np.linspace(0.0, 1.0, 101, dtype=np.float32).astype(np.float64)
    evaluation.params.maxDets = [1, 10, 100]
    evaluation.evaluate()
    whole = finished(evaluation)
    evaluation = library.COCOeval(truth, found, iouType=data.kind)
    stats = []
    for category in sorted(truth.cats):
        evaluation.params.catIds = [category]
        evaluation.evaluate()
        stats.append(finished(evaluation)["stats"])
    return whole | {"classes": np.array(stats)}


def sahi(library, data):
    """``coco_evaluation.py``: one cap, areas of its own."""
    truth = library.COCO(data.files[0])
    evaluation = library.COCOeval(truth, truth.loadRes(data.results), data.kind)
    evaluation.params.areaRng = [[0, 1e10], [0, 1024], [1024, 9216], [9216, 1e10]]
    evaluation.params.catIds = list(truth.cats)
    evaluation.params.maxDets = [500]
    evaluation.evaluate()
    evaluation.accumulate()
    return {name: evaluation.eval[name] for name in ("precision", "recall")}


def hrnet(library, data):
    """``lib/dataset/coco.py`` of HRNet and ViTPose: keypoints from a file."""
    truth = library.COCO(data.files[0])
    evaluation = library.COCOeval(truth, truth.loadRes(data.files[1]), data.kind)
    evaluation.params.useSegm = None
    evaluation.evaluate()
    return finished(evaluation)


CLIENTS = {
    "torchvision": ("pycocotools", torchvision, KINDS),
    "detr": ("pycocotools", detr, ("bbox", "segm")),
    "rfdetr": ("pycocotools", detr, ("bbox",)),
    "dfine": ("faster_coco_eval", dfine, KINDS),
    "rtdetrv2": ("faster_coco_eval", rtdetrv2, ("bbox", "keypoints")),
    "yolov5": ("pycocotools", yolov5, ("bbox", "segm")),
    "yolox": ("pycocotools", yolox, ("bbox",)),
    "detectron2": ("pycocotools", detectron2, KINDS),
    "mmdetection": ("pycocotools", mmdetection, ("bbox", "segm")),
    "ultralytics": ("faster_coco_eval", ultralytics, KINDS),
    "torchmetrics": ("pycocotools", torchmetrics, ("bbox", "segm")),
    "torchmetrics_faster": ("faster_coco_eval", torchmetrics, ("bbox", "segm")),
    "sahi": ("pycocotools", sahi, ("bbox", "segm")),
    "hrnet": ("pycocotools", hrnet, ("keypoints",)),
}
"""The replaced library, the calls, and the kinds of each client."""

ADAPTER = {"torchvision", "detr", "rfdetr", "dfine", "rtdetrv2"}
"""Clients whose class the adapter replaces."""


def library_of(name):
    """Return the classes of a library under the names that clients use."""
    if name.endswith("pycocotools"):
        parts = [importlib.import_module(f"{name}.{part}") for part in ("coco", "cocoeval", "mask")]
        return types.SimpleNamespace(COCO=parts[0].COCO, COCOeval=parts[1].COCOeval, mask=parts[2])
    package = importlib.import_module(name)
    made = types.SimpleNamespace(
        COCO=package.COCO,
        COCOeval=package.COCOeval_faster,
        mask=importlib.import_module(f"{name}.core.mask"),
    )
    with contextlib.suppress(ImportError):  # the original needs torch
        made.Evaluator = importlib.import_module(f"{name}.utils.pytorch").FasterCocoEvaluator
    return made


def timed(client, library, data):
    """Run a client on a copy; return processor seconds and arrays."""
    data = data.fresh()
    gc.collect()
    with contextlib.redirect_stdout(io.StringIO()):
        started = time.process_time()
        answer = client(library, data)
        return time.process_time() - started, answer


def compare(name, kind, data, rounds):
    """Check and time one client; return its row."""
    replaced, client, _ = CLIENTS[name]
    theirs, ours = library_of(replaced), library_of(f"boxscore.compat.{replaced}")
    contenders = {"theirs": (client, theirs), "face": (client, ours)}
    if name in ADAPTER and kind != "segm":
        contenders["adapter"] = (adapter, ours)
    _, expected = timed(client, theirs, data)
    for contender, (calls, library) in contenders.items():
        if contender != "theirs":
            _, answer = timed(calls, library, data)
            check(f"{name} {kind} {contender}", answer, expected, exact=replaced == "pycocotools")
    seconds = {contender: [] for contender in contenders}
    for number in range(rounds):
        for contender in list(contenders)[:: 1 if number % 2 else -1]:
            seconds[contender].append(timed(*contenders[contender], data)[0])
    ratios = {
        contender: statistics.median(a / b for a, b in zip(taken, seconds["theirs"], strict=True))
        for contender, taken in seconds.items()
    }
    middle = {contender: statistics.median(taken) for contender, taken in seconds.items()}
    return replaced, middle, ratios


def check(what, answer, expected, *, exact):
    """Stop at a difference; ``exact`` compares bits."""
    for name, values in answer.items():
        ours, theirs = np.asarray(values, dtype=float), np.asarray(expected[name], dtype=float)
        if ours.shape != theirs.shape and name in ("stats", "precision", "recall"):
            theirs = theirs.reshape(ours.shape)
        equal = np.array_equal(ours, theirs, equal_nan=True)
        if not equal and (exact or not np.allclose(ours, theirs, rtol=0, atol=TOLERANCE, equal_nan=True)):
            raise SystemExit(f"{what}: {name} differs by up to {np.nanmax(np.abs(ours - theirs))}")


def main() -> None:
    """Time the clients and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--detections", type=int, default=100, help="boxes an image; a fifth of it otherwise")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    unknown = set(options.clients) - set(CLIENTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    print("| client | kind | replaces | its seconds | drop-in | ratio | adapter |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds:
            data = Data(
                Path(folder), kind, images=options.images, detections=options.detections, batch=options.batch
            )
            data.predictions = predictions_of(data) if kind != "segm" else None
            for name, kinds in ((name, CLIENTS[name][2]) for name in options.clients or CLIENTS):
                if kind not in kinds:
                    continue
                replaced, middle, ratios = compare(name, kind, data, options.rounds)
                mine = f"{ratios['adapter']:.2f}" if "adapter" in ratios else ""
                print(
                    f"| {name} | {kind} | {replaced} | {middle['theirs']:.2f} | {middle['face']:.2f} "
                    f"| {ratios['face']:.2f} | {mine} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
