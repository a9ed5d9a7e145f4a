"""MMEngine's evaluator with our metric, MMDetection's own metric beside it, and pycocotools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mmengine")
from coco_batches import NAMES, SIZE, dataset, predictions  # noqa: E402

from boxscore import InputError  # noqa: E402
from boxscore.integrations.mmengine import BoxscoreMetric  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

IDS = sorted(NAMES)
CLASSES = tuple(NAMES[number] for number in IDS)


@pytest.fixture(scope="module")
def its_metric() -> Any:
    """MMDetection's metric, of which only operations on the GPU need the compiled part of MMCV."""

    class Operations(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return lambda *_: None

    pytest.importorskip("mmcv")
    sys.modules.setdefault("mmcv._ext", Operations("mmcv._ext"))
    try:
        from mmdet.evaluation.metrics import CocoMetric
    except ImportError as error:
        pytest.skip(f"MMDetection: {error}")
    return CocoMetric


def samples(data: Any, found: Any, *, order: Any = None) -> list[dict[str, Any]]:
    rows = {image["id"]: [] for image in data["images"]}  # type: ignore[var-annotated]
    for row in data["annotations"]:
        x, y, w, h = row["bbox"]
        label, ignored = IDS.index(row["category_id"]), row["iscrowd"]
        rows[row["image_id"]].append(
            {
                "bbox": [x, y, x + w, y + h],
                "bbox_label": label,
                "ignore_flag": ignored,
                "mask": row["segmentation"],
            }
        )
    return [
        {
            "img_id": image,
            "ori_shape": SIZE,
            "instances": rows[image],
            "pred_instances": {
                "bboxes": torch.tensor(prediction["boxes"]),
                "scores": torch.tensor(prediction["scores"]),
                "labels": torch.tensor(prediction["labels"]),
                "masks": torch.tensor(prediction["masks"]),
            },
        }
        for image, prediction in found.items()
    ]


def evaluated(metric: Any, batches: list[dict[str, Any]], size: int = 3) -> dict[str, float]:
    from mmengine.evaluator import Evaluator

    evaluator = Evaluator(metric)
    evaluator.dataset_meta = {"classes": CLASSES}
    for start in range(0, len(batches), size):
        part = batches[start : start + size]
        evaluator.process(part, {})
    return dict(evaluator.evaluate(len(batches)))


@pytest.mark.parametrize("metric", ["bbox", ["bbox", "segm"]])
@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize("caps", [(100, 300, 1000), (1, 3, 5)])
def test_numbers_of_mmdetection(
    metric: Any, from_file: bool, caps: Any, its_metric: Any, tmp_path: Path
) -> None:
    data = dataset()
    if not from_file:  # its file of data samples has no other areas, and segm of polygons and codes alike
        for row in data["annotations"]:
            row["area"] = row["bbox"][2] * row["bbox"][3]
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(data))
    batches = samples(data, predictions(data))
    options = {"metric": metric, "classwise": True, "proposal_nums": caps}
    options["ann_file"] = str(path) if from_file else None
    theirs = evaluated(its_metric(**options), batches)
    ours = BoxscoreMetric(**options)
    numbers = evaluated(ours, batches)
    assert set(numbers) == set(theirs)
    rounded = {name: -1 if value == -1 else round(value, 3) for name, value in numbers.items()}
    assert rounded == pytest.approx(theirs, abs=0, rel=0)
    assert 0.05 < numbers["coco/bbox_mAP_50"] < 0.95
    assert ours.evaluations["bbox"].per_class["class"].tolist() == list(CLASSES)


def test_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"metric must be bbox or segm. Got 'proposal'; proposals lack classes"
    ):
        BoxscoreMetric(metric="proposal")
    batches = samples(dataset(), predictions(dataset()))
    del batches[0]["instances"]
    with pytest.raises(InputError, match=r"a data sample must have instances.*give ann_file"):
        BoxscoreMetric().process({}, batches)
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(dataset()))
    metric = BoxscoreMetric(str(path))
    metric.dataset_meta = {"classes": ("cat", "cow")}
    with pytest.raises(
        InputError, match=r"classes of dataset_meta must be classes of the annotation file. Got 'cow'"
    ):
        metric.compute_metrics([])


def test_it_is_found_by_its_name() -> None:
    from mmengine.registry import METRICS

    assert isinstance(METRICS.build({"type": "BoxscoreMetric", "classwise": True}), BoxscoreMetric)
    assert np.isscalar(BoxscoreMetric().proposal_nums[0])
