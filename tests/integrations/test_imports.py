"""No framework is imported before the adapter that is for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = (
    *(
        "torch",
        "torchvision",
        "torchmetrics",
        "lightning",
        "rfdetr",
        "ultralytics",
        "transformers",
        "accelerate",
    ),
    *("supervision", "mmengine", "mmdet", "detectron2", "fiftyone", "wandb", "mlflow", "tensorboard"),
)
CODE = """
import sys
import boxscore, boxscore.integrations.detectron2, boxscore.integrations.detr
import boxscore.integrations.fiftyone, boxscore.integrations.loggers
evaluator = boxscore.Evaluator()
evaluator.update(
    [{"boxes": [[0, 0, 9, 9]], "labels": [1], "scores": [0.5]}], [{"boxes": [[0, 0, 9, 9]], "labels": [1]}]
)
evaluator.compute().metrics
print(*sorted(set(sys.argv[1:]) & set(sys.modules)))
"""


@pytest.mark.long
def test_no_framework_is_imported_before_its_adapter() -> None:
    command = [sys.executable, "-c", CODE, *FRAMEWORKS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
