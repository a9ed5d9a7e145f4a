"""ultralytics' masks, keypoints and rotated boxes: its own mAP, and COCO's of the same predictions by pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth

pytest.importorskip("ultralytics")
pytest.importorskip("torch")
pytest.importorskip("PIL.Image")
from pycocotools import mask as codes
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from yolo_batches import JOINTS, NAMES, validated, write_data

CATEGORIES = [{"id": number, "name": name} for number, name in NAMES.items()]


def pycocotools(
    images: list[Any], annotations: list[Any], results: list[Any], kind: str, sigmas: Any = None
) -> list[float]:
    """The numbers of pycocotools on rows of its files."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        rows = [{"iscrowd": 0, **row, "id": number} for number, row in enumerate(annotations, 1)]
        truth.dataset = {"images": images, "annotations": rows, "categories": CATEGORIES}
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(results), kind)
        if sigmas is not None:
            evaluation.params.kpt_oks_sigmas = sigmas
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [value if value >= 0 else float("nan") for value in evaluation.stats.tolist()]


def sizes(seen: list[Any]) -> list[dict[str, Any]]:
    return [
        {"id": number, "file_name": target["im_file"], "height": h, "width": w}
        for number, (target, _) in enumerate(seen)
        for h, w in [target["ori_shape"]]
    ]


def scored(prediction: Any) -> list[dict[str, Any]]:
    labels, scores = prediction["cls"].long().tolist(), prediction["conf"].double().tolist()
    return [{"category_id": label, "score": score} for label, score in zip(labels, scores, strict=True)]


def in_order_of_paths(seen: list[Any]) -> list[Any]:
    return sorted(seen, key=lambda pair: pair[0]["im_file"])


def numbers(stats: dict[str, Any], prefix: str) -> list[float]:
    return [value for key, value in stats.items() if key.rpartition("/")[0] == prefix]


def xywh(boxes: Any) -> Any:
    """Corners and sizes of float32 boxes, in double precision."""
    boxes = boxes.double().numpy()
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])


@pytest.mark.filterwarnings("ignore:.*sigmas are 1/5")
@pytest.mark.parametrize("joints", [JOINTS, 17])
def test_keypoints(joints: int, tmp_path: Path) -> None:
    from ultralytics.utils import ops

    from boxscore.integrations.ultralytics import BoxscorePoseValidator

    data = write_data(tmp_path / "data", "pose", joints=joints)
    metrics, stats, seen, _ = validated(BoxscorePoseValidator, data, tmp_path, "pose", plots=False)
    assert 0.1 < metrics.pose.map < 0.9
    assert stats["boxscore/letterboxed/keypoints/AP"] == pytest.approx(metrics.pose.map, rel=1e-15)
    assert stats["boxscore/letterboxed/keypoints/AP50"] == pytest.approx(metrics.pose.map50, rel=1e-15)
    assert stats["boxscore/letterboxed/AP"] == pytest.approx(metrics.box.map, rel=1e-15)
    assert any((target["keypoints"][..., 2] == 0).all(dim=1).any() for target, _ in seen)

    seen = in_order_of_paths(seen)
    annotations, results = [], []
    for image, (target, prediction) in enumerate(seen):
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        boxes = xywh(ops.scale_boxes(shape[0], target["bboxes"].clone(), *shape[1:]))
        points = ops.scale_coords(
            shape[0], target["keypoints"].clone(), shape[1], ratio_pad=shape[2]
        ).double()
        for box, point, label in zip(boxes, points, target["cls"].long().tolist(), strict=True):
            annotations.append(
                {
                    "image_id": image,
                    "category_id": label,
                    "bbox": box.tolist(),
                    "area": box[2] * box[3] * 0.53,
                    "keypoints": point.ravel().tolist(),
                    "num_keypoints": int((point[:, 2] > 0).sum()),
                }
            )
        boxes = xywh(ops.scale_boxes(shape[0], prediction["bboxes"].clone(), *shape[1:]))
        points = ops.scale_coords(
            shape[0], prediction["keypoints"].clone(), shape[1], ratio_pad=shape[2]
        ).double()
        results += [
            {"image_id": image, "bbox": box.tolist(), "keypoints": point.ravel().tolist(), **row}
            for box, point, row in zip(boxes, points, scored(prediction), strict=True)
        ]
    sigmas = None if joints == 17 else np.ones(joints) / joints
    expected = pycocotools(sizes(seen), annotations, results, "keypoints", sigmas)
    got = numbers(stats, "boxscore/original/keypoints")
    assert got == pytest.approx(expected, rel=0, abs=1e-15, nan_ok=True)
    assert dict(metrics.boxscore.metrics) == pytest.approx(
        dict(metrics.boxscore_evaluations["original/keypoints"].metrics), nan_ok=True
    )


def test_masks_of_predictions_json(tmp_path: Path) -> None:
    from boxscore.integrations.ultralytics import BoxscoreSegmentationValidator

    data = write_data(tmp_path / "data", "segment")
    metrics, stats, seen, _ = validated(
        BoxscoreSegmentationValidator, data, tmp_path, "segment", plots=False, imgsz=320, save_json=True
    )
    assert 0.1 < metrics.seg.map < 0.9
    assert stats["boxscore/letterboxed/masks/AP"] == pytest.approx(metrics.seg.map, rel=1e-15)
    assert stats["boxscore/letterboxed/masks/AP50"] == pytest.approx(metrics.seg.map50, rel=1e-15)
    assert stats["boxscore/letterboxed/AP"] == pytest.approx(metrics.box.map, rel=1e-15)

    written = iter(json.loads(next(tmp_path.rglob("predictions.json")).read_text()))
    of_image = {
        target["im_file"]: [
            {"segmentation": next(written)["segmentation"], **row} for row in scored(prediction)
        ]
        for target, prediction in seen
    }
    seen = in_order_of_paths(seen)
    annotations: list[Any] = []
    for image, size in enumerate(sizes(seen)):
        height, width = size["height"], size["width"]
        labels = Path(size["file_name"].replace("/images/", "/labels/")).with_suffix(".txt").read_text()
        for line in labels.splitlines():
            label, *values = line.split()
            outline = np.array(values, dtype=np.float32).reshape(-1, 2).astype(np.float64) * [width, height]
            code = codes.frPyObjects([outline.ravel().tolist()], height, width)[0]
            x1, y1, w, h = codes.toBbox(code).tolist()
            annotations.append(
                {
                    "image_id": image,
                    "category_id": int(label),
                    "segmentation": code,
                    "bbox": [x1, y1, w, h],
                    "area": float(codes.area(code)),
                }
            )
    results = [
        {"image_id": image, **row}
        for image, (target, _) in enumerate(seen)
        for row in of_image[target["im_file"]]
    ]
    expected = pycocotools(sizes(seen), annotations, results, "segm")
    assert 0.1 < expected[0] < 0.9
    got = numbers(stats, "boxscore/original/masks")
    assert got == pytest.approx(expected, rel=0, abs=1e-15, nan_ok=True)


def test_masks_of_a_quarter_are_not_evaluated_in_original_pixels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from boxscore.integrations.ultralytics import BoxscoreSegmentationValidator

    data = write_data(tmp_path / "data", "segment")
    metrics, stats, *_ = validated(
        BoxscoreSegmentationValidator, data, tmp_path, "segment", plots=False, imgsz=320
    )
    assert 0.1 < metrics.seg.map < 0.9
    assert stats["boxscore/letterboxed/masks/AP"] == pytest.approx(metrics.seg.map, rel=1e-15)
    assert set(metrics.boxscore_evaluations) == {"letterboxed", "original", "letterboxed/masks"}
    assert metrics.boxscore is metrics.boxscore_evaluations["original"]
    assert "masks in original pixels need save_json=True" in caplog.text


def test_rotated_boxes(tmp_path: Path) -> None:
    from ultralytics.utils import ops

    from boxscore.integrations.ultralytics import BoxscoreOBBValidator

    data = write_data(tmp_path / "data", "obb")
    metrics, stats, seen, _ = validated(BoxscoreOBBValidator, data, tmp_path, "obb")
    assert 0.1 < metrics.box.map < 0.9
    assert stats["boxscore/letterboxed/AP"] == pytest.approx(metrics.box.map, rel=1e-15)
    assert stats["boxscore/letterboxed/AP50"] == pytest.approx(metrics.box.map50, rel=1e-15)
    parts: dict[str, list[Any]] = {key: [] for key in ("ti", "tl", "tb", "di", "dl", "db", "ds")}
    for target, prediction in seen:
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        for side, item in (("t", target), ("d", prediction)):
            scaled = ops.scale_boxes(shape[0], item["bboxes"].clone(), *shape[1:], xywh=True)
            parts[f"{side}b"] += scaled.double().reshape(-1, 5).tolist()
            parts[f"{side}l"] += item["cls"].long().tolist()
            parts[f"{side}i"] += [target["im_file"]] * len(item["cls"])
        parts["ds"] += prediction["conf"].double().tolist()
    files = sorted(target["im_file"] for target, _ in seen)
    truth = GroundTruth.from_arrays(
        parts["ti"], parts["tl"], None, rotated=parts["tb"], images=files, categories=NAMES
    )
    found = Detections.from_arrays(
        parts["di"], parts["dl"], None, parts["ds"], rotated=parts["db"], categories=NAMES
    )
    expected = boxscore.evaluate(truth, found, protocol="coco-rotated", digest=False)
    assert numbers(stats, "boxscore/original") == pytest.approx(
        list(expected.metrics.values()), rel=0, abs=1e-15, nan_ok=True
    )
    assert (next(tmp_path.rglob("boxscore/report.html"))).stat().st_size > 10_000


def test_annotations_have_crowds_and_areas(tmp_path: Path) -> None:
    """Labels have neither: the numbers of COCO's own file are those of pycocotools."""
    from ultralytics.utils import ops

    from boxscore.integrations.ultralytics import BoxscoreValidator

    data = write_data(tmp_path / "data")
    path = tmp_path / "instances.json"

    class Validator(BoxscoreValidator):
        annotations = path

    random = np.random.default_rng(0)
    images, annotations = [], []
    for number, file in enumerate(sorted((tmp_path / "data" / "images").rglob("*.png"))):
        name = str(file.relative_to(tmp_path / "data" / "images"))
        images.append({"id": number, "file_name": name})
        for _ in range(4):
            x, y, w, h = random.uniform([0, 0, 9, 9], [60, 60, 69, 69]).tolist()
            label, area = int(random.integers(0, 3)), float(random.uniform(50, 2000))
            row = {"image_id": number, "category_id": 20 + label, "bbox": [x, y, w, h], "area": area}
            annotations.append({**row, "id": len(annotations) + 1, "iscrowd": int(random.random() < 0.3)})
    categories = [{"id": 20 + number, "name": name} for number, name in NAMES.items()]
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    metrics, stats, seen, _ = validated(Validator, data, tmp_path, plots=False)
    assert stats["boxscore/letterboxed/AP"] == pytest.approx(metrics.box.map, rel=1e-15)
    results = []
    for image, (target, prediction) in enumerate(in_order_of_paths(seen)):
        assert target["im_file"].endswith(images[image]["file_name"])
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        boxes = xywh(ops.scale_boxes(shape[0], prediction["bboxes"].clone(), *shape[1:]))
        results += [
            {"image_id": image, "bbox": box.tolist(), **row}
            for box, row in zip(boxes, scored(prediction), strict=True)
        ]
    for row in annotations:
        row["category_id"] -= 20
    expected = pycocotools(images, annotations, results, "bbox")
    assert 0 < expected[0] < 0.9
    assert numbers(stats, "boxscore/original") == pytest.approx(expected, rel=0, abs=1e-15, nan_ok=True)
