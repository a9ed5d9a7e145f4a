"""Speed of VOC evaluation: the real VOC 2007 test run, beside two Python evaluators.

Goal
----
YOLOv2 on VOC 2007 test (4,952 images, 98,023 detections): seconds to read the folders, to evaluate, and the
mean AP. The VOC devkit itself needs Matlab or Octave. That boxscore gives its numbers to the last bit is
tested in ``qa/real/test_real_voc.py``, not here.

Usage
-----
    python benchmarks/voc.py                                # boxscore alone
    python benchmarks/voc.py --rivals VENV/bin/python       # beside podm and mean_average_precision

Conventions
-----------
- Rivals get the boxes as arrays, so that only their evaluation is timed. They know neither difficult objects
  nor the devkit's grid, so their numbers differ: podm counts difficult objects, bes-dev gets none of them.
- bes-dev's evaluator adds an image at a time; it gets the first ``--images`` images and the time is scaled.
- Times are the least of ``--repeats`` runs, each in its own process.
- The data is read from ``../shared/data`` or ``$BOXSCORE_REAL_DATA``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measured

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("BOXSCORE_REAL_DATA", PROJECT.parent / "shared" / "data")) / "voc2007"


def read() -> tuple:
    """Read both folders with boxscore."""
    import boxscore

    truth = boxscore.load_ground_truth(DATA / "VOC2007", image_set="test")
    return truth, boxscore.load_detections(DATA / "results" / "yolov2", truth)


def run_boxscore(protocol: str) -> dict:
    """Time reading and evaluating apart."""
    import boxscore

    start = time.perf_counter()
    truth, detections = read()
    middle = time.perf_counter()
    value = boxscore.evaluate(truth, detections, protocol=protocol).metrics["mAP"]
    return {"read": middle - start, "evaluate": time.perf_counter() - middle, "mAP": value}


def run_podm(arrays: dict) -> dict:
    """Time the port of Padilla's tool; area under the curve, pixels inclusive."""
    from podm.metrics import BoundingBox, MetricPerClass, get_pascal_voc_metrics

    def boxes(side: str) -> list:
        rows = arrays[side]
        return [
            BoundingBox.of_bbox(image, category, *box, score)
            for image, category, box, score, _ in zip(*rows, strict=True)
        ]

    truths, detections = boxes("truth"), boxes("detections")
    start = time.perf_counter()
    metrics = get_pascal_voc_metrics(truths, detections, 0.5)
    return {"evaluate": time.perf_counter() - start, "mAP": float(MetricPerClass.mAP(metrics))}


def run_bes_dev(arrays: dict, images: int) -> dict:
    """Time mean_average_precision on some images, scaled to all; eleven points."""
    import numpy as np
    from mean_average_precision import MetricBuilder

    def by_image(side: str) -> dict:
        rows: dict = {}
        for image, category, box, score, left_out in zip(*arrays[side], strict=True):
            if not left_out:
                tail = [category, 0, 0] if side == "truth" else [category, score]
                rows.setdefault(image, []).append([*box, *tail])
        return rows

    truths, detections = by_image("truth"), by_image("detections")
    metric = MetricBuilder.build_evaluation_metric("map_2d", async_mode=False, num_classes=20)
    some = sorted(truths)[:images]
    start = time.perf_counter()
    for image in some:
        metric.add(
            np.array(detections.get(image, [])).reshape(-1, 6), np.array(truths.get(image, [])).reshape(-1, 7)
        )
    value = metric.value(iou_thresholds=0.5, recall_thresholds=np.arange(0.0, 1.1, 0.1))["mAP"]
    seconds = time.perf_counter() - start
    return {"evaluate": seconds * len(truths) / len(some), "mAP": float(value)}


def write_arrays(path: Path) -> None:
    """Write the boxes for evaluators that do not read the folders."""
    truth, detections = read()
    arrays = {
        side: [
            table.image.tolist(),
            table.category.tolist(),
            table.boxes.tolist(),
            scores,
            left_out,
        ]
        for side, table, scores, left_out in (
            ("truth", truth, [1.0] * len(truth), truth.difficult.tolist()),
            ("detections", detections, detections.scores.tolist(), [False] * len(detections)),
        )
    }
    path.write_text(json.dumps(arrays))


def run_one(name: str, arrays: Path, images: int) -> dict:
    """Run one contender in this process."""
    if name.startswith("boxscore "):
        return run_boxscore(name.removeprefix("boxscore "))
    content = json.loads(arrays.read_text())
    return run_podm(content) if name == "podm" else run_bes_dev(content, images)


def main() -> int:
    parser = argparse.ArgumentParser(description="Time VOC evaluation.")
    parser.add_argument("--rivals", metavar="PYTHON", help="interpreter with the rivals")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--images", type=int, default=200, help="for mean_average_precision")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the row of the page of benchmarks")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--arrays", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not DATA.is_dir():
        print(f"no VOC data at {DATA}: set BOXSCORE_REAL_DATA", file=sys.stderr)
        return 2
    if arguments.one:
        print(json.dumps(run_one(arguments.one, arguments.arrays, arguments.images)))
        return 0
    names = [f"boxscore {protocol}" for protocol in ("voc2007", "voc2012")]
    if arguments.rivals:
        names += ["podm", "bes-dev"]
    print("| VOC 2007 test, YOLOv2 | read | evaluate | mAP |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "boxes.json"
        write_arrays(arrays)
        for name in names:
            python = sys.executable if name.startswith("boxscore") else arguments.rivals
            command = [python, __file__, "--one", name, "--arrays", str(arrays)]
            command += ["--images", str(arguments.images)]
            repeats = arguments.repeats if name.startswith("boxscore") else 1
            runs = [
                json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                for _ in range(repeats)
            ]
            best = {key: min(run[key] for run in runs if key in run) for key in runs[0]}
            seconds = f"{best['read']:.3f}" if "read" in best else ""
            print(f"| {name} | {seconds} | {best['evaluate']:.3f} | {best['mAP']:.4f} |", flush=True)
            if arguments.store and name == names[0]:
                measured.store(arguments.store, [measured.row("voc-folder", best["read"], {})])
    return 0


if __name__ == "__main__":
    sys.exit(main())
