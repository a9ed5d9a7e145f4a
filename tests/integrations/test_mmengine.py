"""MMEngine's evaluator with our metric, MMDetection's own metric beside it, and pycocotools."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
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


# ---------------------------------------------------------------- the other arguments of CocoMetric


@pytest.mark.parametrize("caps", [(100, 300, 1000), (1, 3, 5)])
def test_chosen_items(caps: Any, its_metric: Any, tmp_path: Path) -> None:
    items = ["AR_l@1000", "mAP_75", "AR@100", "AR@1000", "AR@300", "AR_s@1000", "AR_m@1000", "mAP", "mAP_l"]
    data = dataset()
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(data))
    options = {
        "ann_file": str(path),
        "metric": ["bbox", "segm"],
        "metric_items": items,
        "proposal_nums": caps,
    }
    theirs, ours = (
        evaluated(metric(**options), samples(data, predictions(data)))
        for metric in (its_metric, BoxscoreMetric)
    )
    assert list(ours) == list(theirs)
    assert {name: round(value, 3) for name, value in ours.items()} == theirs
    assert 0.05 < ours["coco/bbox_AR@1000"] < 0.95


@pytest.mark.parametrize("format_only", [False, True])
@pytest.mark.parametrize("from_file", [True, False])
def test_results_files(format_only: bool, from_file: bool, its_metric: Any, tmp_path: Path) -> None:
    data = dataset()
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(data))
    written = []
    for name, metric in (("theirs", its_metric), ("ours", BoxscoreMetric)):
        prefix = tmp_path / name / "results"
        options = {"ann_file": str(path) if from_file else None, "metric": ["bbox"]}
        found = samples(data, predictions(data))
        for sample in found:
            sample["pred_instances"]["mask_scores"] = sample["pred_instances"]["scores"] / 2
        numbers = evaluated(metric(format_only=format_only, outfile_prefix=str(prefix), **options), found)
        assert (numbers == {}) == format_only
        written.append(
            [json.loads((prefix.parent / f"results.{kind}.json").read_text()) for kind in ("bbox", "segm")]
        )
    assert written[1] == written[0]
    assert len(written[0][0]) == len(written[0][1]) > 50


def test_a_test_set_has_no_annotations(tmp_path: Path) -> None:
    data = dataset()
    path = tmp_path / "image_info.json"
    path.write_text(json.dumps({key: value for key, value in data.items() if key != "annotations"}))
    metric = BoxscoreMetric(str(path), format_only=True, outfile_prefix=str(tmp_path / "run"))
    found = samples(data, predictions(data))
    for sample in found:
        del sample["instances"], sample["pred_instances"]["masks"]
    assert evaluated(metric, found) == {}
    rows = json.loads((tmp_path / "run.bbox.json").read_text())
    assert {row["category_id"] for row in rows} == set(IDS)
    assert [file.name for file in tmp_path.iterdir() if "run" in file.name] == ["run.bbox.json"]


@pytest.mark.parametrize("sort_categories", [False, True])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 0)])
def test_labels_are_in_the_order_of_the_file(
    order: Any, sort_categories: bool, its_metric: Any, tmp_path: Path
) -> None:
    """MMDetection numbers classes as the file lists them, whatever the order in the configuration."""
    data = dataset()
    data["categories"] = [data["categories"][row] for row in (1, 2, 0)]
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(data))
    classes = [CLASSES[row] for row in order]
    listed = [category["id"] for category in data["categories"] if category["name"] in classes]
    if sort_categories:
        listed.sort()
    found = samples(data, predictions(data))
    for sample in found:  # as a model does that was trained on the data set of this configuration
        instances = sample["pred_instances"]
        labels = np.array([IDS[label] for label in instances["labels"]])
        kept = np.isin(labels, listed)
        for key in instances:
            instances[key] = instances[key][torch.tensor(kept)]
        instances["labels"] = torch.tensor([listed.index(label) for label in labels[kept]], dtype=torch.int64)
    from mmengine.evaluator import Evaluator

    results = []
    for metric in (its_metric, BoxscoreMetric):
        evaluator = Evaluator(metric(ann_file=str(path), classwise=True, sort_categories=sort_categories))
        evaluator.dataset_meta = {"classes": classes}
        evaluator.process(found, {})
        results.append(dict(evaluator.evaluate(len(found))))
    theirs, ours = ({name: round(float(value), 3) for name, value in each.items()} for each in results)
    assert ours["coco/bbox_mAP_50"] > 0.3
    assert {name: ours[name] for name in ours if "bbox" in name} == {
        name: theirs[name] for name in theirs if "bbox" in name
    }
    # It swaps the names of classes that the file does not list by id: pycocotools sorts them.
    names = [name for name in theirs if "bbox" not in name]
    by_id = sorted(listed)
    swapped = {
        f"coco/{NAMES[listed[row]]}_precision": ours[f"coco/{NAMES[number]}_precision"]
        for row, number in enumerate(by_id)
    }
    assert {name: theirs[name] for name in names} == swapped


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"metric_items": ["mAP", "mar"]}, r"metric_items must be of mAP, mAP_50, .*AR_l@1000\. Got 'mar'"),
        ({"metric_items": ["AR@300"], "proposal_nums": [100]}, "Got 'AR@300'"),
        ({"format_only": True}, r"outfile_prefix must be given with format_only\. Got None"),
        ({"file_client_args": {"backend": "disk"}}, "MMDetection has replaced it: pass backend_args"),
    ],
)
def test_arguments_that_it_refuses(options: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        BoxscoreMetric(**options)


def test_a_configuration_that_inherits_one_of_mmdetection(tmp_path: Path) -> None:
    """The base config has more arguments, which the snippet of the page does not remove."""
    from mmengine.config import Config
    from mmengine.evaluator import Evaluator

    base = "configs/_base_/datasets/coco_detection.py"
    mmdet = pytest.importorskip("mmcv") and importlib.util.find_spec("mmdet")
    text = "val_evaluator = dict(type='CocoMetric', ann_file='', metric='bbox', format_only=False, backend_args=None)"
    if mmdet is not None:
        text = (Path(mmdet.submodule_search_locations[0]) / ".mim" / base).read_text()
        assert "format_only=False" in text
        assert "backend_args=backend_args" in text
    (tmp_path / "base.py").write_text(text)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "inside-your-framework.md"
    (snippet,) = re.findall(r"```python\n(custom_imports.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "annotations").mkdir()
    file = tmp_path / "annotations" / "instances_val2017.json"
    file.write_text(json.dumps(dataset()))
    snippet = snippet.replace("annotations/instances_val2017.json", str(file))
    (tmp_path / "mine.py").write_text(f'_base_ = ["base.py"]\n{snippet}')
    config = Config.fromfile(str(tmp_path / "mine.py"))
    evaluator = Evaluator(config.val_evaluator)
    assert isinstance(evaluator.metrics[0], BoxscoreMetric)
    every = inspect.signature(BoxscoreMetric).parameters
    assert set(config.val_evaluator) - {"type"} <= set(every)


def test_it_takes_every_argument_of_mmdetections(its_metric: Any) -> None:
    every = set(inspect.signature(its_metric).parameters)
    assert every <= set(inspect.signature(BoxscoreMetric).parameters)


def test_it_is_found_by_its_name() -> None:
    from mmengine.registry import METRICS

    assert isinstance(METRICS.build({"type": "BoxscoreMetric", "classwise": True}), BoxscoreMetric)
    assert np.isscalar(BoxscoreMetric().proposal_nums[0])
