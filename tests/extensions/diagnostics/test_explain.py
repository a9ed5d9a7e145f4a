"""Explain: sums, published numbers, and the other tools themselves where they are installed."""

from __future__ import annotations

import math
import sys
import types

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import ablation, explain, find_number, tool_names
from boxscore.extensions.diagnostics._tools import tool_protocols
from boxscore.extensions.diagnostics.explaining import CHOICES
from boxscore.protocols import load_protocol
from boxscore.protocols.fields import all_fields
from boxscore.similarity.box import BoxSimilarity
from support.samples import SHAPES
from support.searches import searches

pytestmark = pytest.mark.usefixtures("no_findings")

TOOLS = [name for name in tool_protocols() if name != "coco"]


@pytest.mark.parametrize("tool", TOOLS)
def test_deltas_sum_exactly(sample, tool):
    for first, last in ((tool, "coco"), ("coco", tool)):
        found = explain(*sample, first, last)
        assert sum(delta for _, delta, _ in found.steps) == found.last_value - found.first_value
        assert found.steps == () or found.steps[-1][2] == found.last_value


@pytest.mark.filterwarnings("ignore:.*fully annotated")
@pytest.mark.parametrize(
    "tool", [tool for tool in TOOLS if tool != "omnilabel"]
)  # whose first number is of two curves
def test_ends_are_the_tools_own_numbers(sample, tool):
    metrics = boxscore.evaluate(*sample, protocol=tool).metrics
    found = explain(*sample, tool, "coco")
    assert found.first_value == pytest.approx(next(iter(metrics.values())), abs=1e-15)
    assert found.last_value == pytest.approx(boxscore.evaluate(*sample).metrics["AP"], abs=1e-15)


def test_json_form(sample):
    form = explain(*sample, "ultralytics-old", "coco").as_dict()
    assert set(form) == {"from", "to", "steps"}
    assert set(form["from"]) == set(form["to"]) == {"tool", "value"}
    assert form["from"]["tool"] == "ultralytics-old"
    assert all(set(step) == {"change", "delta"} for step in form["steps"])
    table = explain(*sample, "ultralytics-old", "coco").table
    assert table["value"].iloc[0] + table["delta"].sum() == pytest.approx(table["value"].iloc[-1], abs=1e-15)


def test_same_tool_has_no_steps(sample):
    assert explain(*sample, "coco", "pycocotools").steps == ()


@pytest.mark.long
@pytest.mark.parametrize(
    ("alias", "protocol"),
    [
        ("pycocotools", "coco"),
        ("voc-kit", "voc2012"),
        ("voc", "voc2012"),
        ("tidecv", "tide"),
        ("padilla", "padilla-voc"),
        ("ultralytics-new", "ultralytics"),
        ("py-faster-rcnn", "py-faster-rcnn-voc2012"),
        ("detectron2-voc", "detectron2-voc2012"),
        ("mean-average-precision", "bes-dev"),
    ],
)
def test_aliases_are_known(sample, alias, protocol):
    assert alias in tool_names()
    assert explain(*sample, alias, protocol).steps == ()
    assert explain(*sample, alias, protocol).first == alias


@pytest.mark.long
def test_each_name_of_a_tool_is_one_tools():
    assert len(set(tool_names())) == len(tool_names())


def test_a_choice_is_told_in_words(sample):
    changes = [change for change, _, _ in explain(*sample, "detectron2-voc2012", "coco").steps]
    assert changes[0] == "rounding: 3 decimals of scores, 1 decimal of boxes -> as given"


def test_every_choice_that_can_move_an_ap_of_boxes_has_a_step():
    covered = {path for choice in CHOICES for path in choice.paths}
    assert len(CHOICES) == len({choice.title for choice in CHOICES})
    elsewhere = {"ignore.area_ranges", "ignore.detection_area"}  # AP is taken over all areas
    for field in all_fields(load_protocol("coco")):
        if field.table in ("rounding", "boxes", "matching", "ignore", "ap"):
            assert (field.path in covered) != (field.path in elsewhere), field.path


def test_own_protocol(sample):
    strict = {"extends": "coco", "name": "strict", "matching": {"score_threshold": 0.5}}
    found = explain(*sample, "coco", strict)
    assert [change for change, _, _ in found.steps] == ["score threshold: none -> 0.5"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("tool", "ap", "ap50"),
    [
        ("coco", 0.5046, 0.6970),
        ("globox", 0.5023, 0.6951),
        ("padilla-coco", 0.5023, 0.6951),
        ("tide", 0.4648, 0.6420),
        ("bes-dev", 0.4445, 0.608),
        ("ultralytics-old", 0.595, 0.780),
    ],
)
def test_published_numbers(fake100, tool, ap, ap50):
    metrics = boxscore.evaluate(*fake100, protocol=tool).metrics
    assert metrics["AP"] == pytest.approx(ap, abs=6e-4 if ap == 0.595 else 5.1e-5)  # its ties
    if ap50 is not None:
        assert metrics["AP50"] == pytest.approx(ap50, abs=5.1e-4)


@pytest.mark.real
def test_number_is_found(fake100):
    assert find_number(*fake100, "0.780").query("found")["tool"].tolist() == ["ultralytics-old"]
    assert find_number(*fake100, 46.48).query("found")["tool"].tolist() == ["tide"]
    assert find_number(*fake100, "69.7%").query("found")["metric"].unique().tolist() == ["AP50"]


@pytest.mark.long
def test_number_must_be_one(sample):
    with pytest.raises(boxscore.InputError, match="number must be a number"):
        find_number(*sample, "high")
    with pytest.raises(boxscore.InputError, match="tool must be one of"):
        explain(*sample, "ultralitics")


@pytest.mark.real
def test_ablation_on_the_voc_run(voc):
    """The kit's area AP, one choice at a time, on the YOLOv2 run; the published run is another detector's."""
    table = ablation(*voc, "voc2012").set_index("change")["delta"]
    measured = {
        "11 recall points": (-0.0220, -0.0238),
        "101 recall points": (-0.0024, -0.0024),
        "straight lines, the last to (1, 0)": (0.0071, 0.0070),
        "exact pixels": (-0.0026, -0.0040),
        "difficult objects counted": (-0.0847, -0.0856),
        "difficult objects deleted": (-0.0117, -0.0121),
        "candidate: best available": (0.0009, 0.00005),
        "score threshold .25": (-0.0518, -0.0531),
        "max detections: 10 per image and class": (-0.0050, -0.0051),
    }
    for change, (here, published) in measured.items():
        assert table[change] == pytest.approx(here, abs=5e-5)
        assert math.copysign(1, table[change]) == math.copysign(1, published)
        assert table[change] == pytest.approx(published, abs=0.002)


@pytest.mark.real
@pytest.mark.slow
def test_four_choices_lead_to_pycocotools(voc, quiet_peers):
    """Without +1, difficult counted, best available, 101 points: pycocotools' AP50 to six digits."""
    changed = {
        "extends": "voc2012",
        "name": "four choices",
        "boxes": {"pixel_offset": 0},
        "matching": {"candidate": "best_available"},
        "ignore": {"difficult": "count"},
        "ap": {"interpolation": "points", "recall_points": {"start": 0, "stop": 1, "count": 101}},
    }
    value = boxscore.evaluate(*voc, protocol=changed).metrics["mAP"]
    theirs = pycocotools_ap50(*voc)
    assert value == pytest.approx(theirs, abs=5e-7)
    found = explain(*voc, "voc2012", "coco", iou=0.5)
    assert found.last_value == pytest.approx(theirs, abs=1e-12)
    assert sum(delta for _, delta, _ in found.steps) == found.last_value - found.first_value
    moved = {change.partition(":")[0] for change, delta, _ in found.steps if abs(delta) > 1e-6}
    assert moved == {"difficult objects", "pixels", "candidate", "curve"}


def pycocotools_ap50(truth, detections):
    import contextlib
    import io

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def records(table):
        boxes = np.concatenate([table.boxes[:, :2], table.sizes], axis=1).tolist()
        for row, box in enumerate(boxes):
            yield {
                "id": row + 1,
                "image_id": int(table.image[row]),
                "category_id": int(table.category[row]),
                "bbox": box,
                "area": box[2] * box[3],
                "iscrowd": 0,
            }

    data = COCO()
    data.dataset = {
        "images": [{"id": i} for i in range(len(truth.images))],
        "categories": [{"id": k} for k in range(len(truth.categories))],
        "annotations": list(records(truth)),
    }
    rows = [
        {**row, "score": score}
        for row, score in zip(records(detections), detections.scores.tolist(), strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        data.createIndex()
        run = COCOeval(data, data.loadRes(rows), "bbox")
        run.params.iouThrs = np.array([0.5])
        run.evaluate()
        run.accumulate()
    precision = run.eval["precision"][0, :, :, 0, -1]
    return precision[precision > -1].mean()


def by_image(table):
    for image in range(len(table.images)):
        yield np.flatnonzero(table.image == image)


def assert_near(name, tables, values, tolerance):
    metrics = boxscore.evaluate(*tables, protocol=name).metrics
    for key, value in values.items():
        assert metrics[key] == pytest.approx(value, abs=tolerance), key


@pytest.mark.parametrize("seed", range(3))
def test_torchmetrics(scene, seed, quiet_peers, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    module = pytest.importorskip("torchmetrics.detection.mean_ap", reason="torchmetrics is not installed")
    if not module._TORCHVISION_AVAILABLE:  # its box_convert is all that is used of torchvision
        stand_in_for_torchvision(monkeypatch, module)
    truth, detections = scene(seed, images=30)
    metric = module.MeanAveragePrecision(box_format="xywh")
    thresholds = load_protocol("torchmetrics")
    assert metric.iou_thresholds == list(thresholds.matching.iou_thresholds)
    assert metric.rec_thresholds == list(thresholds.ap.recall_points)
    # What it computes with: float32 numbers.
    tables = [as_float32(table) for table in (truth, detections)]
    for rows, truth_rows in zip(by_image(detections), by_image(truth), strict=True):
        metric.update(
            [
                {
                    "boxes": torch.tensor(xywh(tables[1])[rows], dtype=torch.float32),
                    "scores": torch.tensor(tables[1].scores[rows], dtype=torch.float32),
                    "labels": torch.tensor(detections.category[rows].astype(int)),
                }
            ],
            [
                {
                    "boxes": torch.tensor(xywh(tables[0])[truth_rows], dtype=torch.float32),
                    "labels": torch.tensor(truth.category[truth_rows].astype(int)),
                    "iscrowd": torch.tensor(truth.crowd[truth_rows].astype(int)),
                }
            ],
        )
    result = metric.compute()
    names = {"AP": "map", "AP50": "map_50", "AP75": "map_75", "AR100": "mar_100"}
    assert_near("torchmetrics", tables, {key: float(result[name]) for key, name in names.items()}, 1e-6)


def as_float32(table):
    import dataclasses

    sizes = table.sizes.astype(np.float32).astype(float)
    corner = table.boxes[:, :2].astype(np.float32).astype(float)
    changes = {"boxes": np.concatenate([corner, corner + sizes], axis=1), "sizes": sizes}
    if hasattr(table, "scores"):
        changes["scores"] = table.scores.astype(np.float32).astype(float)
    return dataclasses.replace(table, **changes)


def xywh(table):
    return np.concatenate([table.boxes[:, :2], table.sizes], axis=1)


def stand_in_for_torchvision(monkeypatch, module):
    package, ops = types.ModuleType("torchvision"), types.ModuleType("torchvision.ops")
    package.ops = ops
    ops.box_convert = lambda boxes, in_fmt, out_fmt: boxes.clone()
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.ops", ops)
    monkeypatch.setattr(module, "_TORCHVISION_AVAILABLE", True)


@pytest.mark.parametrize("seed", range(3))
def test_globox(scene, seed, quiet_peers):
    globox = pytest.importorskip("globox", reason="globox is not installed")
    truth, detections = scene(seed, images=30)
    sets = []
    for table in (truth, detections):
        scores = getattr(table, "scores", None)
        sets.append(
            globox.AnnotationSet(
                globox.Annotation(
                    str(image),
                    (640, 480),
                    [
                        globox.BoundingBox.create(
                            label=str(table.category[row]),
                            coords=tuple(xywh(table)[row].tolist()),
                            confidence=None if scores is None else float(scores[row]),
                            box_format=globox.BoxFormat.LTWH,
                        )
                        for row in rows
                    ],
                )
                for image, rows in enumerate(by_image(table))
            )
        )
    result = globox.COCOEvaluator(ground_truths=sets[0], predictions=sets[1])
    values = {"AP": result.ap(), "AP50": result.ap_50(), "AP75": result.ap_75(), "AR100": result.ar_100()}
    assert_near("globox", (truth, detections), values, 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_supervision(scene, seed, quiet_peers):
    supervision = pytest.importorskip("supervision", reason="supervision is not installed")
    metrics = pytest.importorskip("supervision.metrics", reason="supervision has no metrics")
    tables = scene(seed, images=30)
    import dataclasses

    truth = dataclasses.replace(tables[0], crowd=np.zeros(len(tables[0]), dtype=bool))
    detections = tables[1]
    run = metrics.MeanAveragePrecision()
    predicted, targets = [], []
    for table, sink in ((detections, predicted), (truth, targets)):
        for rows in by_image(table):
            extra = {} if table is truth else {"confidence": table.scores[rows]}
            sink.append(
                supervision.Detections(
                    xyxy=table.boxes[rows].reshape(-1, 4), class_id=table.category[rows].astype(int), **extra
                )
            )
    result = run.update(predicted, targets).compute()
    values = {"AP": result.map50_95, "AP50": result.map50, "AP75": result.map75}
    assert_near("supervision", (truth, detections), values, 1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_mean_average_precision(scene, seed, quiet_peers):
    tool = pytest.importorskip("mean_average_precision", reason="mean-average-precision is not installed")
    truth, detections = scene(seed, images=30)
    import dataclasses

    truth = dataclasses.replace(truth, crowd=np.zeros(len(truth), dtype=bool))
    builder = tool.MetricBuilder.build_evaluation_metric
    run = builder("map_2d", async_mode=False, num_classes=len(truth.categories))
    for rows, truth_rows in zip(by_image(detections), by_image(truth), strict=True):
        columns = [detections.boxes[rows], detections.category[rows, None], detections.scores[rows, None]]
        objects = np.zeros((len(truth_rows), 7))
        objects[:, :4], objects[:, 4] = truth.boxes[truth_rows], truth.category[truth_rows]
        run.add(np.concatenate(columns, axis=1), objects)
    value = run.value(
        iou_thresholds=np.arange(0.5, 1.0, 0.05),
        recall_thresholds=np.arange(0.0, 1.01, 0.01),
        mpolicy="soft",
    )
    assert_near("bes-dev", (truth, detections), {"AP": float(value["mAP"])}, 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_tidecv(scene, seed, quiet_peers):
    pytest.importorskip("tidecv", reason="tidecv is not installed")
    from tidecv import TIDE
    from tidecv.data import Data

    truth, detections = scene(seed, images=30)
    objects, found = Data("truth"), Data("detections")
    for image in range(len(truth.images)):
        objects.add_image(image, str(image))
    for row, box in enumerate(xywh(truth).tolist()):
        add = objects.add_ignore_region if truth.crowd[row] else objects.add_ground_truth
        add(int(truth.image[row]), int(truth.category[row]), box)
    for row, box in enumerate(xywh(detections).tolist()):
        place = int(detections.image[row]), int(detections.category[row])
        found.add_detection(*place, float(detections.scores[row]), box)
    values = {}
    for key, iou in (("AP50", 0.5), ("AP75", 0.75)):
        values[key] = TIDE(pos_threshold=iou).evaluate(objects, found, use_for_errors=False).ap / 100
    assert_near("tide", (truth, detections), values, 1e-12)


def ultralytics_ap(truth, detections, *, to_one, next_best):
    """AP over thresholds and classes, written from the formula: interp at 101 points, trapezoids."""
    truth = truth.take(np.flatnonzero(~truth.crowd))
    hits = {}
    thresholds = np.linspace(0.5, 0.95, 10)
    for rows, truth_rows in zip(by_image(detections), by_image(truth), strict=True):
        for row in sorted(rows, key=lambda row: -detections.scores[row]):
            same = [g for g in truth_rows if truth.category[g] == detections.category[row]]
            overlaps = [boxscore.box_iou(detections.boxes[[row]], truth.boxes[[g]])[0, 0] for g in same]
            last_of_best = len(same) - 1 - int(np.argmax(overlaps[::-1])) if same else -1
            for t, threshold in enumerate(thresholds):
                left = [0.0 if (t, g) in hits else overlap for g, overlap in zip(same, overlaps, strict=True)]
                best = int(np.argmax(left)) if same and next_best else last_of_best
                if same and left[best] >= threshold:
                    hits[t, same[best]] = row
    values = []
    for k in np.unique(truth.category):
        mine = np.flatnonzero(detections.category == k)
        mine = mine[np.argsort(-detections.scores[mine], kind="stable")]
        positive = (truth.category == k).sum()
        for t in range(10):
            true = np.array([row in {r for (u, _), r in hits.items() if u == t} for row in mine], dtype=bool)
            if not len(mine):
                values.append(0.0)
                continue
            recall = np.cumsum(true) / positive
            precision = np.cumsum(true) / np.arange(1, len(mine) + 1)
            x = [0.0, *recall, 1.0] if to_one else [0.0, *recall, recall[-1], 1.0]
            y = [1.0, *precision, 0.0] if to_one else [1.0, *precision, 0.0, 0.0]
            y = np.maximum.accumulate(y[::-1])[::-1]
            points = np.linspace(0, 1, 101)
            read = np.interp(points, x, y)
            values.append(float(((read[1:] + read[:-1]) / 2 * np.diff(points)).sum()))
    return float(np.mean(values))


@pytest.mark.parametrize(
    ("tool", "to_one", "next_best"),
    [("ultralytics-old", True, False), ("ultralytics-april2026", False, False), ("ultralytics", False, True)],
)
@pytest.mark.parametrize("seed", range(2))
def test_ultralytics_formula(scene, tool, to_one, next_best, seed):
    truth, detections = scene(seed, images=12)
    detections = detections.take(np.flatnonzero(detections.scores >= 0.001))
    metrics = boxscore.evaluate(truth, detections, protocol=tool).metrics
    expected = ultralytics_ap(truth, detections, to_one=to_one, next_best=next_best)
    assert metrics["AP"] == pytest.approx(expected, abs=1e-12)


def test_overlaps_are_found_once_per_way_of_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """From VOC 2012's rules to COCO's there are nine numbers; boxes are measured with and without +1 pixels."""
    calls = searches(monkeypatch, BoxSimilarity)
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    detections = boxscore.load_detections(SHAPES / "detections.json", truth)
    explanation = explain(truth, detections, "voc2012", "coco")
    assert len(explanation.steps) > 5
    assert len(calls) <= 4
    monkeypatch.undo()
    assert explanation.first_value == boxscore.evaluate(truth, detections, protocol="voc2012")["mAP"]
    assert explanation.last_value == round(boxscore.evaluate(truth, detections)["AP"] * 2**53) / 2**53
