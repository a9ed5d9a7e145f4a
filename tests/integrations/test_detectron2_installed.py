"""detectron2 itself: its loop with its own evaluator and with the class of the page, to the last bit.

It is not on the package index: python -m pip install --no-build-isolation git+https://github.com/facebookresearch/detectron2
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("detectron2.evaluation")
from coco_batches import SIZE, dataset, predictions  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "inside-your-framework.md"


class Model(torch.nn.Module):  # type: ignore[misc]
    """A model that returns given predictions as detectron2's do."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def forward(self, inputs: Any) -> list[Any]:
        from detectron2.structures import Boxes, Instances

        outputs = []
        for given in inputs:
            one = {key: torch.tensor(value) for key, value in self.found[given["image_id"]].items()}
            instances = Instances(SIZE, pred_boxes=Boxes(one["boxes"]), scores=one["scores"])
            instances.pred_classes, instances.pred_masks = one["labels"], one["masks"]
            instances.pred_keypoints = one["keypoints"]
            outputs.append({"instances": instances})
        return outputs


def test_the_snippet_of_the_page_has_its_numbers(tmp_path: Path) -> None:
    from detectron2.data import DatasetCatalog, MetadataCatalog
    from detectron2.data.datasets import register_coco_instances
    from detectron2.evaluation import COCOEvaluator, inference_on_dataset

    from boxscore.integrations.detectron2 import DetectionEvaluator

    data = dataset()
    (tmp_path / "instances.json").write_text(json.dumps(data))
    name = f"boxscore {tmp_path.name}"
    register_coco_instances(name, {}, str(tmp_path / "instances.json"), str(tmp_path))
    DatasetCatalog.get(name)  # fills the metadata
    found = predictions(data)
    loader = [
        [{"image_id": image, "height": SIZE[0], "width": SIZE[1]} for image in list(found)[start : start + 3]]
        for start in range(0, len(found), 3)
    ]
    section = PAGE.read_text(encoding="utf-8").split("\n## detectron2\n")[1]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert code is not None
    scope: dict[str, Any] = {}
    exec(code[1], scope)
    for tasks, ours in (
        (("bbox", "segm"), scope["Trainer"].build_evaluator(None, name)),
        (("keypoints",), DetectionEvaluator(MetadataCatalog.get(name), ("keypoints",))),
    ):
        theirs = COCOEvaluator(name, tasks, distributed=False, use_fast_impl=False)
        results = [dict(inference_on_dataset(Model(found), loader, each)) for each in (theirs, ours)]
        for task in tasks:
            assert list(results[1][task]) == list(results[0][task])
            assert results[1][task] == pytest.approx(results[0][task], rel=0, abs=0, nan_ok=True)
            assert 5 < results[1][task]["AP"] < 95
