"""Real detectors on real data, on clusters of 1 to 7 workers: the bits of one process, one worker killed on the way."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import boxscore
from support import limits
from support.dying import DyingTask
from support.insides import evaluate_tasks, local_cluster
from support.parted import bits, tasks_of
from support.quiet import quiet
from support.real_data import real

if not os.environ.get("CI"):  # there it must be installed
    pytest.importorskip("distributed", reason="needs boxscore[dask]")

pytestmark = [pytest.mark.real, pytest.mark.slow]

COCO = "coco_val2017/ground_truth_boxes.json"
PAIRS = {
    "coco boxes": (COCO, "coco_val2017/yolov2_608.json", "coco"),
    "another detector": (COCO, "coco_val2017/yolov2_416_wrong_box_order.json", "coco"),
    "true areas": ("coco_val2017_masks206/instances.json", "coco_val2017_masks206/yolov2_608.json", "coco"),
    "masks": ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", "coco-segm"),
    "voc": (
        "padilla_database/gts/pascalvoc_format",
        "padilla_database/dets/coco_format/coco_dets.json",
        "voc2012",
    ),
    "lvis": ("lvis/lvis_val_100.json", "lvis/detections_bbox.json", "lvis"),
    "lvis, a cap over the data set": ("lvis/lvis_val_100.json", "lvis/detections_bbox.json", "lvis-fixed"),
}


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_the_bits_of_one_process(workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(workers)
    limits.few_detections_at_a_time(monkeypatch, 2_000)  # large classes are split by scores
    with local_cluster(workers) as client:
        for name, (truth, found, protocol) in PAIRS.items():
            with quiet():
                whole = boxscore.evaluate(real(*truth.split("/")), real(*found.split("/")), protocol=protocol)
                share = random.integers(0, int(random.integers(2, 9)), len(whole.images))
                tasks = tasks_of((whole.ground_truth, whole.detections), protocol, share)
                marks = tmp_path / f"{len(list(tmp_path.iterdir()))}"
                tasks[0] = DyingTask(tasks[0], str(marks), 1)
                result = evaluate_tasks(tasks, client)
            assert marks.read_bytes() == b"x"
            assert bits(result) == bits(whole), name
            print(workers, name, len(whole.detections), flush=True)
