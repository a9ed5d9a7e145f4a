"""ultralytics' validator on images made here: its own mAP to the last bit, and COCO's from the same predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore import Detections, GroundTruth

pytest.importorskip("ultralytics")
torch = pytest.importorskip("torch")
pytest.importorskip("PIL.Image")

from yolo_batches import NAMES, write_data  # noqa: E402
from yolo_batches import validated as validated_with  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("yolo"))


@pytest.fixture(scope="module")
def validated(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from boxscore.integrations.ultralytics import BoxscoreValidator

    return validated_with(BoxscoreValidator, data, tmp_path_factory.mktemp("runs"))


def test_its_own_numbers_in_the_space_of_the_network(validated: Any) -> None:
    metrics, stats, *_ = validated
    assert 0.1 < metrics.box.map < 0.9
    assert stats["boxscore/letterboxed/AP"] == pytest.approx(metrics.box.map, rel=1e-15)
    assert stats["boxscore/letterboxed/AP50"] == pytest.approx(metrics.box.map50, rel=1e-15)
    assert stats["metrics/mAP50-95(B)"] == metrics.box.map


def test_numbers_of_coco_in_original_pixels(validated: Any) -> None:
    """The slow way: every box scaled, cut at the image and put into one table."""
    from ultralytics.utils import ops

    metrics, stats, seen, _ = validated
    parts: dict[str, list[Any]] = {key: [] for key in ("ti", "tl", "tb", "di", "dl", "db", "ds")}
    for target, prediction in seen:
        shape = target["imgsz"], target["ori_shape"], target["ratio_pad"]
        for side, boxes, labels in (
            ("t", target["bboxes"], target["cls"]),
            ("d", prediction["bboxes"], prediction["cls"]),
        ):
            scaled = ops.scale_boxes(shape[0], boxes.clone(), *shape[1:])
            parts[f"{side}b"] += scaled.double().tolist()
            parts[f"{side}l"] += labels.long().tolist()
            parts[f"{side}i"] += [target["im_file"]] * len(labels)
        parts["ds"] += prediction["conf"].double().tolist()
    files = sorted(target["im_file"] for target, _ in seen)
    assert len(set(files)) == 12
    truth = GroundTruth.from_arrays(parts["ti"], parts["tl"], parts["tb"], images=files, categories=NAMES)
    found = Detections.from_arrays(parts["di"], parts["dl"], parts["db"], parts["ds"], categories=NAMES)
    expected = boxscore.evaluate(truth, found, digest=False)
    assert dict(metrics.boxscore.metrics) == pytest.approx(dict(expected.metrics), rel=0, abs=0, nan_ok=True)
    assert stats["boxscore/original/AP"] == expected["AP"]
    assert stats["boxscore/original/AP"] != stats["boxscore/letterboxed/AP"]


def test_the_report_is_in_the_folder_of_the_run(validated: Any) -> None:
    *_, folder = validated
    page = next(folder.rglob("boxscore/report.html"))
    assert "traffic light" in page.read_text(encoding="utf-8")


def test_an_untrained_network_does_not_end_the_run(data: Path, tmp_path: Path) -> None:
    from ultralytics import YOLO

    from boxscore.integrations.ultralytics import BoxscoreValidator

    metrics = YOLO("yolov8n.yaml").val(
        validator=BoxscoreValidator,
        data=str(data),
        imgsz=128,
        batch=5,
        project=str(tmp_path),
        plots=False,
        verbose=False,
        device="cpu",
    )
    assert metrics.boxscore["AP"] == pytest.approx(0, abs=0.05)


def test_a_metric_may_choose_the_best_epoch(data: Path, tmp_path: Path) -> None:
    from ultralytics.models.yolo.detect import DetectionTrainer

    from boxscore.integrations.ultralytics import BoxscoreValidator

    class Validator(BoxscoreValidator):
        fitness = "AP50"

    class Trainer(DetectionTrainer):
        def get_validator(self) -> Any:
            plain = super().get_validator()
            return Validator(
                plain.dataloader, save_dir=plain.save_dir, args=plain.args, _callbacks=self.callbacks
            )

    trainer = Trainer(
        overrides={
            "model": "yolov8n.yaml",
            "data": str(data),
            "epochs": 2,
            "imgsz": 64,
            "batch": 4,
            "device": "cpu",
            "workers": 0,
            "project": str(tmp_path),
            "plots": False,
            "verbose": False,
        }
    )
    trainer.train()
    table = (Path(trainer.save_dir) / "results.csv").read_text().splitlines()
    assert "boxscore/original/AP50" in table[0]
    assert len(table) == 3
