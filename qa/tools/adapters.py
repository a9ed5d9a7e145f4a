"""Runs one tool on one data set, in a process of its own: ``adapters.py TOOL FOLDER FILES OUTPUT [--stable]``.

FOLDER is what ``data_sets.py`` wrote; FILES holds the files of a tool that is no package. The tool's own code reads,
matches and averages; here its input is prepared as its documentation says, and its numbers are collected. Where a
file imports more than it needs for that, a stand-in without content takes the place of what is imported.
Imports nothing of boxscore: the interpreter is another one.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import io
import json
import math
import os
import pickle
import re
import runpy
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

Numbers = dict[str, Any]

COCO_THRESHOLDS = np.linspace(0.5, 0.95, 10)


class Data:
    """What ``data.json`` holds, by image."""

    def __init__(self, folder: Path) -> None:
        content = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.images: list[dict[str, Any]] = content["images"]
        self.classes: list[str] = content["classes"]
        self.truths: dict[Any, list[dict[str, Any]]] = {image["id"]: [] for image in self.images}
        self.detections: dict[Any, list[dict[str, Any]]] = {image["id"]: [] for image in self.images}
        for truth in content["truths"]:
            self.truths[truth["image"]].append(truth)
        self.in_file_order: list[dict[str, Any]] = content["detections"]
        for found in self.in_file_order:
            self.detections[found["image"]].append(found)


def column(records: list[dict[str, Any]], name: str, dtype: Any = np.float64) -> Any:
    values = np.array([record[name] for record in records], dtype=dtype)
    return values.reshape(-1, 4) if name == "box" else values


def corners(records: list[dict[str, Any]], dtype: Any = np.float64) -> Any:
    box = column(records, "box")
    return np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1).astype(dtype)


def stand_in(*names: str) -> None:
    """Let modules be imported that are not there: whatever is asked of them is a mock."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = []
        module.__getattr__ = lambda attribute, name=name: mock.MagicMock(name=f"{name}.{attribute}")  # type: ignore[method-assign]
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)


def load(path: Path, name: str, change: Callable[[str], str] = str) -> types.ModuleType:
    """Execute a file as a module of this name."""
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    exec(compile(change(path.read_text(encoding="utf-8")), str(path), "exec"), module.__dict__)
    return module


# ---------------------------------------------------------------- VOC


def of_classes(data: Data, areas: list[float], elevens: list[float], failed: tuple[str, ...] = ()) -> Numbers:
    return {
        "failed": failed,
        "per_class": {
            "mAP 11": dict(zip(data.classes, map(float, elevens), strict=True)),
            "mAP": dict(zip(data.classes, map(float, areas), strict=True)),
        },
    }


def py_faster_rcnn(data: Data, files: Path) -> Numbers:
    """``voc_eval.py`` is Python 2: its print statements become calls, and cPickle writes to a text file."""
    pickled = types.ModuleType("cPickle")
    pickled.dump = lambda value, file: file.write(pickle.dumps(value, 0).decode("latin1"))  # type: ignore[attr-defined]
    pickled.load = lambda file: pickle.loads(file.read().encode("latin1"))  # type: ignore[attr-defined]
    sys.modules["cPickle"] = pickled
    module = load(
        files / "lib/datasets/voc_eval.py",
        "voc_eval",
        lambda text: re.sub(r"print ('[^']*'\.format\((?:[^()]|\([^()]*\))*\))", r"print(\1)", text),
    )
    answers: list[list[float]] = [[], []]
    failed = {}
    for name in data.classes:
        for use_07 in (False, True):
            ap = math.nan
            try:
                _, _, ap = module.voc_eval(
                    str(data.folder / "results" / "comp4_det_test_{}.txt"),
                    str(data.folder / "VOC2007" / "Annotations" / "{}.xml"),
                    str(data.folder / "VOC2007" / "ImageSets" / "Main" / "test.txt"),
                    name,
                    str(data.folder / "cache"),
                    use_07_metric=use_07,
                )
            except IndexError:  # a class without detections
                failed[name] = True
            answers[use_07].append(ap)
    return of_classes(data, *answers, failed=tuple(failed))


def detectron2(data: Data, files: Path) -> Numbers:
    """``PascalVOCDetectionEvaluator`` with instances in float32, as the model gives them."""
    stand_in(
        "detectron2",
        "detectron2.data",
        "detectron2.utils",
        "detectron2.utils.comm",
        "detectron2.utils.file_io",
        "detectron2.evaluation",
        "detectron2.evaluation.evaluator",
        "torch",
    )
    sys.modules["detectron2.evaluation.evaluator"].DatasetEvaluator = object  # type: ignore[attr-defined]
    sys.modules["detectron2.utils.file_io"].PathManager = types.SimpleNamespace(  # type: ignore[attr-defined]
        get_local_path=lambda path: path, open=open
    )
    gathered = types.SimpleNamespace(gather=lambda value, dst: [value], is_main_process=lambda: True)
    sys.modules["detectron2.utils"].comm = gathered  # type: ignore[attr-defined]
    answers: list[list[float]] = []
    for year in (2012, 2007):
        meta = types.SimpleNamespace(
            dirname=str(data.folder / "VOC2007"), split="test", thing_classes=data.classes, year=year
        )
        catalog = types.SimpleNamespace(get=lambda name, meta=meta: meta)
        sys.modules["detectron2.data"].MetadataCatalog = catalog  # type: ignore[attr-defined]
        name = "detectron2.evaluation.pascal_voc_evaluation"
        module = load(files / "detectron2/evaluation/pascal_voc_evaluation.py", name)
        evaluator = module.PascalVOCDetectionEvaluator("any")
        evaluator.reset()
        for image in data.images:
            found = data.detections[image["id"]]
            box = column(found, "box")
            box[:, :2] -= 1  # the evaluator adds it, as its loader took it away
            instances = mock.MagicMock()
            instances.to.return_value = instances
            instances.pred_boxes.tensor.numpy.return_value = box.astype(np.float32)
            instances.scores.tolist.return_value = column(found, "score", np.float32).tolist()
            instances.pred_classes.tolist.return_value = column(found, "class", int).tolist()
            evaluator.process([{"image_id": image["id"]}], [{"instances": instances}])
        called: dict[tuple[str, float], float] = {}
        voc_eval = module.voc_eval

        def kept(
            *args: Any, ovthresh: float, called: Any = called, voc_eval: Any = voc_eval, **rest: Any
        ) -> Any:
            answer = voc_eval(*args, ovthresh=ovthresh, **rest)
            called[args[3], ovthresh] = float(answer[2])
            return answer

        module.voc_eval = kept
        evaluator.evaluate()
        answers.append([called[label, 0.5] for label in data.classes])
    return of_classes(data, *answers)


def cartucho(data: Data, files: Path) -> Numbers:
    """The script reads text files beside itself, and leaves its numbers in its variables."""
    place = data.folder / "cartucho"
    for name, records in (("ground-truth", data.truths), ("detection-results", data.detections)):
        folder = place / "input" / name
        folder.mkdir(parents=True)
        for image, rows in records.items():
            lines = [
                " ".join(
                    [data.classes[row["class"]]]
                    + ([repr(row["score"])] if "score" in row else [])
                    + [repr(corner) for corner in row["box"]]
                    + (["difficult"] if row.get("difficult") else [])
                )
                for row in rows
            ]
            (folder / f"{image}.txt").write_text("\n".join(lines))
    shutil.copy(files / "main.py", place / "main.py")

    def run(*ignored: str) -> dict[str, float]:
        options = ["--no-animation", "--no-plot", "--quiet", *(["--ignore", *ignored] if ignored else [])]
        with mock.patch.object(sys, "argv", ["main.py", *options]):
            found: dict[str, float] = runpy.run_path(str(place / "main.py"))["ap_dictionary"]
        return found

    failed: list[str] = []
    aps: dict[str, float] = {}
    try:
        aps = run()
    except ZeroDivisionError:  # the best detection of a class is on a difficult object: which class?
        counted = {item["class"] for rows in data.truths.values() for item in rows if not item["difficult"]}
        for row, name in enumerate(data.classes):
            if row in counted:
                try:
                    aps |= run(*(other for other in data.classes if other != name))
                except ZeroDivisionError:
                    failed.append(name)
    return {"failed": failed, "per_class": {"mAP": aps}}


def chainercv(data: Data, files: Path) -> Numbers:
    """``eval_detection_voc`` and ``bbox_iou``; boxes are y, x, y, x."""
    stand_in("chainer", "chainer.backends", "chainercv", "chainercv.utils", "chainercv.utils.bbox")
    cuda = types.SimpleNamespace(get_array_module=lambda *arrays: np)
    sys.modules["chainer.backends"].cuda = cuda  # type: ignore[attr-defined]
    load(files / "chainercv/utils/bbox/bbox_iou.py", "chainercv.utils.bbox.bbox_iou")
    module = load(
        files / "chainercv/evaluations/eval_detection_voc.py", "chainercv.evaluations.eval_detection_voc"
    )
    order = [1, 0, 3, 2]
    sides: list[Any] = [
        [
            column(rows, name, dtype)[:, order] if name == "box" else column(rows, name, dtype)
            for rows in records.values()
        ]
        for records, name, dtype in (
            (data.detections, "box", np.float64),
            (data.detections, "class", int),
            (data.detections, "score", np.float64),
            (data.truths, "box", np.float64),
            (data.truths, "class", int),
            (data.truths, "difficult", bool),
        )
    ]
    answers = []
    for use_07 in (False, True):
        ap = module.eval_detection_voc(*sides, use_07_metric=use_07)["ap"]
        answers.append([*ap, *[math.nan] * (len(data.classes) - len(ap))])
    return of_classes(data, *answers)


def padilla_voc(data: Data, files: Path) -> Numbers:
    module, boxes = _padilla(data, files, "src/evaluators/pascal_voc_evaluator.py", "XYX2Y2")
    methods = sys.modules["src.utils.enumerators"].MethodAveragePrecision  # type: ignore[attr-defined]
    answers = {}
    for key, method in (
        ("mAP", methods.EVERY_POINT_INTERPOLATION),
        ("mAP 11", methods.ELEVEN_POINT_INTERPOLATION),
    ):
        found = module.get_pascalvoc_metrics(*boxes, iou_threshold=0.5, method=method)
        answers[key] = {label: float(row["AP"]) for label, row in found["per_class"].items()}
    return {"per_class": answers}


def padilla_coco(data: Data, files: Path) -> Numbers:
    module, boxes = _padilla(data, files, "src/evaluators/coco_evaluator.py", "XYWH")
    found = module.get_coco_summary(*boxes)
    return {name: float(found[name]) for name in ("AP", "AP50", "AP75")}


def _padilla(data: Data, files: Path, path: str, form: str) -> Any:
    stand_in("PyQt5", "PyQt5.QtCore", "PyQt5.QtGui", "matplotlib", "matplotlib.pyplot", "cv2")
    sys.path.insert(0, str(files))
    bounding_box = importlib.import_module("src.bounding_box")
    enumerators = importlib.import_module("src.utils.enumerators")
    boxes: list[list[Any]] = [[], []]
    truths = [truth for rows in data.truths.values() for truth in rows]
    for side, records in enumerate((truths, data.in_file_order)):
        for row in records:
            boxes[side].append(
                bounding_box.BoundingBox(
                    str(row["image"]),
                    data.classes[row["class"]],
                    tuple(row["box"]),
                    bb_type=enumerators.BBType.DETECTED if side else enumerators.BBType.GROUND_TRUTH,
                    confidence=row["score"] if side else None,
                    format=enumerators.BBFormat[form],
                )
            )
    return load(files / path, Path(path).stem), boxes


# ---------------------------------------------------------------- COCO


def fiftyone(data: Data, files: Path) -> Numbers:
    """``utils/eval/coco.py`` and ``utils/iou.py`` on objects that hold what theirs hold; no database."""
    stand_in(
        *[
            "eta",
            "eta.core",
            "eta.core.utils",
            "eta.core.numutils",
            "eta.core.image",
            "fiftyone",
            "fiftyone.core",
            "fiftyone.core.labels",
            "fiftyone.core.plots",
            "fiftyone.core.utils",
            "fiftyone.core.validation",
            "fiftyone.utils",
            "fiftyone.utils.utils3d",
            "fiftyone.utils.eval",
            "fiftyone.utils.eval.detection",
        ]
    )
    labels: Any = sys.modules["fiftyone.core.labels"]
    for kind in ("Polyline", "Polylines", "Keypoint", "Keypoints"):
        setattr(labels, kind, type(kind, (), {}))
    sys.modules["eta.core.utils"].is_str = lambda value: isinstance(value, str)  # type: ignore[attr-defined]
    numutils: Any = sys.modules["eta.core.numutils"]
    numutils.safe_divide = lambda one, other: one / other if other else 0.0
    detection: Any = sys.modules["fiftyone.utils.eval.detection"]

    class Config:
        def __init__(
            self, pred_field: str, gt_field: str, iou: Any = None, classwise: Any = None, **rest: Any
        ) -> None:
            self.pred_field, self.gt_field, self.iou, self.classwise = pred_field, gt_field, iou, classwise

    class Results:
        def __init__(
            self, samples: Any, config: Any, eval_key: Any, matches: Any, classes: Any, **rest: Any
        ) -> None:
            self.classes = np.asarray(classes)

    detection.DetectionEvaluationConfig, detection.DetectionEvaluation = Config, object
    detection.DetectionResults = Results
    iou = load(files / "fiftyone/utils/iou.py", "fiftyone.utils.iou")
    sys.modules["fiftyone.utils"].iou = iou  # type: ignore[attr-defined]
    module = load(files / "fiftyone/utils/eval/coco.py", "fiftyone.utils.eval.coco")

    class Label(dict):  # type: ignore[type-arg]
        """Attributes and items are the same."""

        __setattr__ = dict.__setitem__

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None

        def get_attribute_value(self, name: str, default: Any) -> Any:
            return self.get(name, default)

    class Labels(dict):  # type: ignore[type-arg]
        _LABEL_LIST_FIELD = "detections"

        def copy(self) -> Any:
            return Labels(detections=[Label(label) for label in self["detections"]])

    class Samples(list):  # type: ignore[type-arg]
        def select_fields(self, fields: Any) -> Any:
            return self

        def _handle_frame_field(self, field: str) -> Any:
            return field, False

        def iter_samples(self, progress: Any = None) -> Any:
            return iter(self)

    samples = Samples()
    for image in data.images:
        size = np.array([image["width"], image["height"]] * 2)
        sample = {}
        for field, records in (("truth", data.truths), ("found", data.detections)):
            sample[field] = Labels(
                detections=[
                    Label(
                        id=f"{field}-{image['id']}-{number}",
                        label=data.classes[row["class"]],
                        bounding_box=(np.array(row["box"]) / size).tolist(),
                        confidence=row.get("score"),
                        iscrowd=row.get("crowd", False),
                    )
                    for number, row in enumerate(records[image["id"]])
                ]
            )
        samples.append(sample)
    config = module.COCOEvaluationConfig("found", "truth", iou=0.5, classwise=True, compute_mAP=True)
    precision, recall, _, ious, classes, sweep = module._compute_pr_curves(samples, config)
    results = module.COCODetectionResults(samples, config, "key", [], precision, recall, ious, classes, sweep)
    by_iou = {"AP": slice(None), "AP50": slice(0, 1)}
    per_class = {
        name: {
            label: float(value) if value > -1 else math.nan
            for label, value in zip(classes, precision[which].mean(axis=(0, 2)), strict=True)
        }
        for name, which in by_iou.items()
    }
    return {"AP": float(results.mAP()), "per_class": per_class}


def globox(data: Data, files: Path) -> Numbers:
    from globox import AnnotationSet, COCOEvaluator

    truth = AnnotationSet.from_coco(data.folder / "instances.json")
    evaluator = COCOEvaluator(
        ground_truths=truth, predictions=truth.from_results(data.folder / "results.json")
    )
    return {"AP": evaluator.ap(), "AP50": evaluator.ap_50(), "AP75": evaluator.ap_75()}


def tide(data: Data, files: Path) -> Numbers:
    """``evaluate`` at each threshold; the data as ``tidecv.datasets.COCO`` makes it, which needs no masks so."""
    from tidecv import TIDE
    from tidecv.data import Data as TideData

    truth, found = TideData("truth", max_dets=100), TideData("found")
    for image in data.images:
        truth.add_image(image["id"], str(image["id"]))
    for row, name in enumerate(data.classes):
        truth.add_class(row, name)
    for image, rows in data.truths.items():
        for item in rows:
            add = truth.add_ignore_region if item["crowd"] else truth.add_ground_truth
            add(image, item["class"], item["box"], None)
    for image, rows in data.detections.items():
        for item in rows:
            found.add_detection(image, item["class"], item["score"], item["box"], None)
    runs = TIDE().evaluate_range(truth, found, thresholds=TIDE.COCO_THRESHOLDS, mode=TIDE.BOX)
    aps = [run.ap / 100 for run in runs.thresholds.values()] if hasattr(runs, "thresholds") else []
    if not aps:
        aps = [
            TIDE().evaluate(truth, found, pos_threshold=t, mode=TIDE.BOX).ap / 100
            for t in TIDE.COCO_THRESHOLDS
        ]
    return {"AP": sum(aps) / len(aps), "AP50": aps[0], "AP75": aps[5]}


def torchmetrics(data: Data, files: Path) -> Numbers:
    import torch

    _operators(torch)
    from torchmetrics.detection import MeanAveragePrecision

    metric = MeanAveragePrecision(box_format="xywh", backend="pycocotools")
    predictions, targets = [], []
    for image in data.images:
        found, truth = data.detections[image["id"]], data.truths[image["id"]]
        predictions.append(
            {
                "boxes": torch.tensor(column(found, "box", np.float32)),
                "scores": torch.tensor(column(found, "score", np.float32)),
                "labels": torch.tensor(column(found, "class", int)),
            }
        )
        targets.append(
            {
                "boxes": torch.tensor(column(truth, "box", np.float32)),
                "labels": torch.tensor(column(truth, "class", int)),
                "iscrowd": torch.tensor(column(truth, "crowd", int)),
                "area": torch.tensor(column(truth, "area", np.float32)),
            }
        )
    metric.update(predictions, targets)
    found = metric.compute()
    names = {"AP": "map", "AP50": "map_50", "AP75": "map_75"}
    return {key: float(found[name]) for key, name in names.items()}


def _operators(torch: Any) -> None:
    """Let torchvision be imported where its compiled part is built for another torch: only Python is used."""
    with contextlib.suppress(Exception):
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _operators.kept = library  # type: ignore[attr-defined]


def supervision(data: Data, files: Path) -> Numbers:
    import supervision as sv
    from supervision.metrics import MeanAveragePrecision

    metric = MeanAveragePrecision()
    for image in data.images:
        found, truth = data.detections[image["id"]], data.truths[image["id"]]
        metric.update(
            sv.Detections(
                xyxy=corners(found), class_id=column(found, "class", int), confidence=column(found, "score")
            ),
            sv.Detections(
                xyxy=corners(truth),
                class_id=column(truth, "class", int),
                data={"iscrowd": column(truth, "crowd", int), "area": column(truth, "area")},
            ),
        )
    result = metric.compute()
    return {"AP": float(result.map50_95), "AP50": float(result.map50), "AP75": float(result.map75)}


def ultralytics(data: Data, files: Path) -> Numbers:
    """``match_predictions``, ``box_iou`` and ``ap_per_class``, on what suppression lets through.

    Its ``convert_coco`` leaves crowds out of the labels.
    """
    os.environ["YOLO_CONFIG_DIR"] = str(data.folder)
    os.environ["YOLO_OFFLINE"] = "true"
    import torch

    _operators(torch)
    from ultralytics.engine.validator import BaseValidator
    from ultralytics.utils.metrics import ap_per_class, box_iou

    iouv = torch.linspace(0.5, 0.95, 10)
    validator: Any = types.SimpleNamespace(iouv=iouv)
    hits, scores, labels, targets = [], [], [], []
    for image in data.images:
        found = data.detections[image["id"]]
        truth = [item for item in data.truths[image["id"]] if not item["crowd"]]
        order = np.argsort(-column(found, "score"), kind="stable")
        found = [found[row] for row in order if found[row]["score"] > 0.001][:300]
        target = column(truth, "class", int)
        targets.append(target)
        if not found:
            continue
        label = column(found, "class", int)
        correct = np.zeros((len(found), 10), dtype=bool)
        if truth:
            iou = box_iou(torch.tensor(corners(truth)), torch.tensor(corners(found)))
            correct = BaseValidator.match_predictions(
                validator, torch.tensor(label), torch.tensor(target), iou
            ).numpy()
        hits.append(correct)
        scores.append(column(found, "score", np.float32))
        labels.append(label)
    answer = ap_per_class(
        np.concatenate(hits), np.concatenate(scores), np.concatenate(labels), np.concatenate(targets)
    )
    ap, classes = answer[5], answer[6]
    return {
        "AP": float(ap.mean()),
        "AP50": float(ap[:, 0].mean()),
        "AP75": float(ap[:, 5].mean()),
        "per_class": {
            "AP": {data.classes[c]: float(ap[row].mean()) for row, c in enumerate(classes)},
            "AP50": {data.classes[c]: float(ap[row, 0]) for row, c in enumerate(classes)},
        },
    }


def bes_dev(data: Data, files: Path) -> Numbers:
    """As its README computes COCO's mAP."""
    from mean_average_precision import MetricBuilder

    metric = MetricBuilder.build_evaluation_metric("map_2d", async_mode=False, num_classes=len(data.classes))
    for image in data.images:
        found, truth = data.detections[image["id"]], data.truths[image["id"]]
        metric.add(
            np.column_stack([corners(found), column(found, "class"), column(found, "score")]),
            np.column_stack(
                [corners(truth), column(truth, "class"), column(truth, "difficult"), column(truth, "crowd")]
            ),
        )
    thresholds, points = np.arange(0.5, 1.0, 0.05), np.arange(0.0, 1.01, 0.01)
    answer = metric.value(iou_thresholds=thresholds, recall_thresholds=points, mpolicy="soft")
    at_half = [answer[thresholds[0]][k]["ap"] for k in range(len(data.classes))]
    return {"AP": float(answer["mAP"]), "AP50": float(np.mean(at_half))}


TOOLS = {
    function.__name__: function
    for function in (
        py_faster_rcnn,
        detectron2,
        cartucho,
        chainercv,
        padilla_voc,
        padilla_coco,
        fiftyone,
        globox,
        tide,
        torchmetrics,
        supervision,
        ultralytics,
        bes_dev,
    )
}


def main() -> None:
    tool, *paths = sys.argv[1:5]
    folder, files, output = map(os.path.abspath, paths)  # a tool may change the working folder
    options = sys.argv[5:]
    if "--stable" in options:
        argsort = np.argsort

        def stable(values: Any, axis: Any = -1, kind: Any = None, **rest: Any) -> Any:
            return argsort(values, axis=axis, kind=kind or "stable", **rest)

        np.argsort = stable
    with contextlib.redirect_stdout(io.StringIO()):
        numbers = TOOLS[tool](Data(Path(folder)), Path(files))
    for key, values in numbers.get("per_class", {}).items():
        defined = [value for value in values.values() if not math.isnan(value)]
        numbers.setdefault(key, sum(defined) / len(defined) if defined else math.nan)
    Path(output).write_text(json.dumps(numbers), encoding="utf-8")


if __name__ == "__main__":
    main()
