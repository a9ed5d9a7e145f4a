"""Real detectors on real data, on clusters of 1 to 7 workers: the bits of one process, one worker killed on the way."""

from __future__ import annotations

import dataclasses
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.distributed.scanning import table_tasks
from boxscore.protocols import load_protocol
from support.dying import DyingTask
from support.parted import bits
from support.real_data import real

if not os.environ.get("CI"):  # there it must be installed
    pytest.importorskip("distributed", reason="needs boxscore[dask]")
import boxscore.distributed.cluster as on_cluster

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
    monkeypatch.setattr(on_cluster, "MOST", 2_000)  # large classes are split by scores
    with on_cluster.local_cluster(workers) as client:
        for name, (truth, found, protocol) in PAIRS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
                whole = boxscore.evaluate(real(*truth.split("/")), real(*found.split("/")), protocol=protocol)
                ids = random.permutation(whole.ground_truth.images.ids)
                lists = [list(part) for part in np.array_split(ids, int(random.integers(2, 9)))]
                tasks: list[Any] = table_tasks(
                    whole.ground_truth, whole.detections, load_protocol(protocol), lists
                )
                fields = {field.name: getattr(tasks[0], field.name) for field in dataclasses.fields(tasks[0])}
                marks = tmp_path / f"{len(list(tmp_path.iterdir()))}"
                tasks[0] = DyingTask(**fields, marks=str(marks), deaths=1)
                result = on_cluster.evaluate_tasks(tasks, client)
            assert marks.read_bytes() == b"x"
            assert bits(result) == bits(whole), name
            print(workers, name, len(whole.detections), flush=True)
