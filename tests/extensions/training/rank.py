"""One process of two: python rank.py RANK FOLDER PORT. Evaluates its share, prints the metrics of all."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

from torch import distributed

from boxscore.evaluator import Evaluator, gather_with_torch

rank, folder, port = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
pairs = pickle.loads((folder / "pairs.pickle").read_bytes())
pairs.append(pairs[0])  # as a sampler fills up: every process has as many
evaluator = Evaluator(duplicates="ignore", gather=gather_with_torch)
for prediction, target in pairs[rank::2]:
    evaluator.update([prediction], [target])
metrics = evaluator.compute().metrics
print(json.dumps([metrics, len(evaluator)]))
distributed.destroy_process_group()
