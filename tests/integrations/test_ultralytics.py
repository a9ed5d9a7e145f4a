"""ultralytics' validator on images made here: its own mAP to the last bit, and COCO's from the same predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth

pytest.importorskip("ultralytics")
torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

NAMES = {0: "disc", 1: "traffic light", 2: "box"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images of several shapes; two folders have a file of one name, one image has no object."""
    folder = tmp_path_factory.mktemp("yolo")
    random = np.random.default_rng(3)
    for number in range(12):
        name = f"{'left' if number % 2 else 'right'}/{'abcdef'[number // 2]}"
        width, height = random.integers(90, 220, 2).tolist()
        (folder / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "labels" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(
            folder / "images" / f"{name}.png"
        )
        count = 0 if number == 5 else int(random.integers(1, 6))
        side = random.uniform(0.1, 0.4, (count, 2))
        centre = random.uniform(side / 2, 1 - side / 2)
        lines = [
            f"{random.integers(0, 3)} {x:.6f} {y:.6f} {w:.6f} {h:.6f}"
            for (x, y), (w, h) in zip(centre, side, strict=True)
        ]
        (folder / "labels" / f"{name}.txt").write_text("\n".join(lines))
    listed = "".join(f"  {number}: {name}\n" for number, name in NAMES.items())
    path = folder / "data.yaml"
    path.write_text(f"path: {folder}\ntrain: images\nval: images\nnames:\n{listed}")
    return path


def invented(seen: list[Any]) -> Any:
    """Predictions near the labels of each batch, in place of an untrained network's."""
    random = np.random.default_rng(7)

    def postprocess(self: Any, _: Any) -> list[dict[str, Any]]:
        predictions = []
        for position in range(len(self.batch_seen["im_file"])):
            target = self._prepare_batch(position, self.batch_seen)
            boxes = target["bboxes"].double().numpy().reshape(-1, 4)
            boxes = np.concatenate(
                [
                    boxes + random.normal(0, 4, boxes.shape),
                    random.uniform(0, 60, (3, 4)) + np.array([0, 0, 60, 60]),
                ]
            )
            labels = np.append(target["cls"].numpy(), [0, 1, 2])
            wrong = random.random(len(labels)) < 0.2
            labels = np.where(wrong, (labels + 1) % 3, labels)
            order = random.permutation(len(labels))
            score = np.sort(random.random(len(labels)))[::-1].copy()
            predictions.append(
                {
                    "bboxes": torch.tensor(boxes[order], dtype=torch.float32),
                    "conf": torch.tensor(score, dtype=torch.float32),
                    "cls": torch.tensor(labels[order], dtype=torch.float32),
                    "extra": torch.zeros(len(labels), 0),
                }
            )
            seen.append((target, {key: value.clone() for key, value in predictions[-1].items()}))
        return predictions

    return postprocess


@pytest.fixture(scope="module")
def validated(
    data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, dict[str, Any], list[Any], Path]:
    from ultralytics import YOLO

    from boxscore.integrations.ultralytics import BoxscoreValidator

    seen: list[Any] = []
    stats: dict[str, Any] = {}

    class Invented(BoxscoreValidator):
        postprocess = invented(seen)

        def preprocess(self, batch: Any) -> Any:
            self.batch_seen = super().preprocess(batch)
            return self.batch_seen

        def get_stats(self) -> dict[str, Any]:
            stats.update(super().get_stats())
            return stats

    folder = tmp_path_factory.mktemp("runs")
    model = YOLO("yolov8n.yaml")
    model.model.names = NAMES
    metrics = model.val(
        validator=Invented,
        data=str(data),
        imgsz=128,
        batch=4,
        project=str(folder),
        name="val",
        verbose=False,
        device="cpu",
    )
    return metrics, stats, seen, folder


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
