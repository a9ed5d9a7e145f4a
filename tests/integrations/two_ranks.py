"""One of several processes of torch.distributed: ``two_ranks.py RANK WORLD STORE OUTPUT CASES``."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from framework_batches import batches, fed
from torch import distributed

from boxscore import InputError
from boxscore.integrations.torchmetrics import MeanAveragePrecision


def main() -> None:
    rank, world, store, output, cases = sys.argv[1:]
    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(world)
    )
    saved = []
    for shares, options in json.loads(cases):
        mine, ids = shares[int(rank)], options.pop("ids")
        iou_type = options.pop("iou_type", "bbox")
        metric = MeanAveragePrecision(
            iou_type=iou_type if isinstance(iou_type, str) else tuple(iou_type), **options
        )
        predictions, targets = batches(ids=ids)
        fed(metric, [predictions[i] for i in mine], [targets[i] for i in mine], size=2)
        result = metric.compute()
        try:
            again: Any = metric.evaluation()["AP"]
        except InputError as error:
            again = str(error)
        assert len(metric.image_ids) == len(mine), "unsynced"
        saved.append({"result": result, "AP": again})
    torch.save(saved, f"{output}.{rank}")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
