"""Time LVIS evaluation at the size of LVIS v1 val, on made-up data, beside other tools.

    python benchmarks/lvis.py make FOLDER [--images 19809] [--detections 300]
    python benchmarks/lvis.py run FOLDER --tool boxscore hotcoco [--python VENV/bin/python] [--lvis-api DIR]

``make`` writes ``truth.json`` and ``results.json``: 1,203 classes of which a few hundred are frequent, about
12 objects an image, and lists of classes as LVIS has them; ``run`` makes them if need be. It evaluates them
in fresh processes, in turn, and prints a line for each: seconds from the files to the numbers, CPU seconds,
the largest memory, and the numbers.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import measured
import numpy as np

CLASSES = 1203
WIDTH, HEIGHT = 640, 480


def make(folder: Path, *, images: int, detections: int, seed: int = 0) -> None:
    """Write ground truth and results."""
    rng = np.random.default_rng(seed)
    weight = (np.arange(CLASSES) + 2.0) ** -1.3
    weight = rng.permutation(weight / weight.sum())
    counts = rng.poisson(12.36, images)
    of_image = np.repeat(np.arange(images), counts)
    few = [rng.choice(CLASSES, size=rng.integers(1, 7), p=weight) for _ in range(images)]
    label = np.concatenate([rng.choice(few[image], count) for image, count in enumerate(counts)])
    sizes = np.minimum(rng.lognormal(3.4, 1.0, (len(label), 2)), (WIDTH, HEIGHT)).round(2)
    corner = (rng.random((len(label), 2)) * (np.array([WIDTH, HEIGHT]) - sizes)).round(2)
    boxes = np.hstack([corner, sizes])
    frequency = np.array(["r", "c", "f"])[np.searchsorted([0.28, 0.66], rng.random(CLASSES))]
    folder.mkdir(parents=True, exist_ok=True)
    truth = {
        "images": [
            {
                "id": image + 1,
                "width": WIDTH,
                "height": HEIGHT,
                "coco_url": f"http://images.cocodataset.org/val2017/{image + 1:012}.jpg",
                "neg_category_ids": sorted(
                    {int(one) + 1 for one in rng.choice(CLASSES, 9)} - {int(one) + 1 for one in few[image]}
                ),
                "not_exhaustive_category_ids": [int(few[image][0]) + 1] if rng.random() < 0.2 else [],
            }
            for image in range(images)
        ],
        "categories": [
            {"id": one + 1, "name": f"class_{one + 1}", "frequency": str(frequency[one])}
            for one in range(CLASSES)
        ],
        "annotations": [
            {"id": row + 1, "image_id": image + 1, "category_id": kind + 1, "bbox": box, "area": area}
            for row, (image, kind, box, area) in enumerate(
                zip(
                    of_image.tolist(),
                    label.tolist(),
                    boxes.tolist(),
                    (sizes[:, 0] * sizes[:, 1] * 0.7).round(2).tolist(),
                    strict=True,
                )
            )
        ],
    }
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    starts = np.concatenate([[0], np.cumsum(counts)])
    with (folder / "results.json").open("w", encoding="utf-8") as file:
        file.write("[")
        for image in range(images):
            own = np.arange(starts[image], starts[image + 1])
            file.write(("" if image == 0 else ",") + _results(rng, image, boxes[own], label[own], detections))
        file.write("]\n")


def _results(rng: np.random.Generator, image: int, boxes: object, labels: object, count: int) -> str:
    """Text of one image's detections: some near its objects, others anywhere."""
    own, kinds = np.asarray(boxes).reshape(-1, 4), np.asarray(labels)
    near = min(count // 2, 6 * len(own))
    of = rng.integers(0, max(len(own), 1), near)
    found = own[of] + rng.normal(0, 0.12, (near, 4)) * own[of][:, [2, 3, 2, 3]]
    kind = np.where(rng.random(near) < 0.8, kinds[of], rng.integers(0, CLASSES, near))
    sizes = rng.lognormal(3.4, 1.0, (count - near, 2))
    corner = rng.random((count - near, 2)) * (WIDTH, HEIGHT)
    found = np.vstack([found, np.hstack([corner, sizes])]).round(2)
    found[:, 2:] = np.abs(found[:, 2:]) + 0.01
    kind = np.concatenate([kind, rng.integers(0, CLASSES, count - near)])
    score = np.concatenate([rng.beta(2, 3, near), rng.beta(1, 8, count - near)]).round(5)
    text = io.StringIO()
    rows = zip(kind.tolist(), found.round(2).tolist(), score.tolist(), strict=True)
    text.write(
        ",".join(
            f'{{"image_id":{image + 1},"category_id":{one + 1},"bbox":{box},"score":{value}}}'
            for one, box, value in rows
        )
    )
    return text.getvalue()


TOOLS = {
    "boxscore": """
import boxscore, warnings
warnings.simplefilter("ignore")
numbers = boxscore.evaluate(truth, results, protocol="lvis").metrics
""",
    "boxscore command": """
import subprocess
done = subprocess.run([sys.executable, "-m", "boxscore", "evaluate", "--gt", truth, "--dt", results,
                       "--protocol", "lvis", "--output", "json", "--no-digest"], stdout=-1, check=True)
numbers = json.loads(done.stdout)["metrics"]
""",
    "boxscore face": """
from boxscore.compat.lvis import LVIS, LVISEval, LVISResults
import logging
logging.disable(logging.CRITICAL)
gt = LVIS(truth)
run = LVISEval(gt, LVISResults(gt, results), "bbox")
run.run()
numbers = run.get_results()
""",
    "hotcoco": """
from hotcoco import COCO, COCOeval
gt = COCO(truth)
run = COCOeval(gt, gt.load_res(results), "bbox", lvis_style=True)
run.evaluate(); run.accumulate(); run.summarize()
numbers = run.get_results()
""",
    "faster-coco-eval": """
from faster_coco_eval import COCO, COCOeval_faster
gt = COCO(truth)
run = COCOeval_faster(gt, gt.loadRes(results), "bbox", lvis_style=True, print_function=lambda *_: None)
run.params.maxDets = [300]
run.evaluate(); run.accumulate(); run.summarize()
numbers = run.stats_as_dict
""",
    "lvis-api": """
import logging, types
sys.path.insert(0, checkout)
sys.modules["lvis.vis"] = types.ModuleType("lvis.vis"); sys.modules["lvis.vis"].LVISVis = None
from lvis import LVIS, LVISEval, LVISResults
logging.disable(logging.CRITICAL)
gt = LVIS(truth)
run = LVISEval(gt, LVISResults(gt, results), "bbox")
run.run()
numbers = run.get_results()
""",
}

WORKER = """
import json, resource, sys, time
truth, results, checkout = sys.argv[1:]
started = time.perf_counter()
{tool}
seconds = time.perf_counter() - started
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({{
    "seconds": round(seconds, 2),
    "user": round(sum(one.ru_utime for one in used), 2),
    "system": round(sum(one.ru_stime for one in used), 2),
    "mb": max(one.ru_maxrss for one in used) // 1024,
    "numbers": {{key: float(value) for key, value in numbers.items()}},
}}))
"""


def run(folder: Path, tool: str, *, python: str, checkout: str) -> float:
    """Evaluate in a fresh process, print what it cost, and return the seconds of the whole process."""
    code = WORKER.format(tool=TOOLS[tool])
    files = [str(folder / "truth.json"), str(folder / "results.json"), checkout]
    started = time.perf_counter()
    done = subprocess.run([python, "-c", code, *files], capture_output=True, text=True, check=False)
    whole = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{tool}: {done.stderr.strip()[-400:]}")
    print(f"{tool}: whole process {whole:.2f} s, {done.stdout.strip().splitlines()[-1]}", flush=True)
    return whole


def main() -> None:
    """Make data, or time one tool."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("folder", type=Path)
    one.add_argument("--images", type=int, default=19809)
    one.add_argument("--detections", type=int, default=300, help="an image")
    two = commands.add_parser("run")
    two.add_argument("folder", type=Path)
    two.add_argument("--tool", choices=list(TOOLS), nargs="+", default=["boxscore"])
    two.add_argument("--rounds", type=int, default=1)
    two.add_argument("--store", type=Path, metavar="FILE", help="keep the row of the page of benchmarks")
    two.add_argument("--python", default=sys.executable)
    two.add_argument("--lvis-api", default="")
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder, images=options.images, detections=options.detections)
        return
    if not (options.folder / "results.json").exists():
        make(options.folder, images=19809, detections=300)
    times: dict[str, list[float]] = {tool: [] for tool in options.tool}
    for _ in range(options.rounds):
        for tool, seconds in times.items():
            seconds.append(run(options.folder, tool, python=options.python, checkout=options.lvis_api))
    middle = {tool: statistics.median(seconds) for tool, seconds in times.items()}
    peers = {tool: seconds for tool, seconds in middle.items() if not tool.startswith("boxscore")}
    if options.store and "boxscore command" in middle:
        measured.store(options.store, [measured.row("lvis", middle["boxscore command"], peers)])


if __name__ == "__main__":
    main()
