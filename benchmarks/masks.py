"""Speed of mask, boundary and keypoint evaluation, side by side with other evaluators.

Goal
----
The same two files through every evaluator that is installed, each in a fresh process: seconds to import, to
read and to evaluate (accumulate and summary included), memory, and whether the summary metrics are those of
the first contender.

Usage
-----
    python benchmarks/masks.py segm                         # 5,000 images, 36,000 polygons, 100,000 RLEs
    python benchmarks/masks.py boundary                     # the same masks by boundary IoU
    python benchmarks/masks.py keypoints                    # 5,000 images, 11,000 people
    python benchmarks/masks.py segm --rivals VENV/bin/python --repeats 3

Conventions
-----------
- Data are made from a seed and kept in ``--folder``. Shapes are smooth random outlines with COCO's sizes:
  21 points on average, one in ten of two parts, one object in a hundred a crowd as uncompressed RLE.
- Detections are outlines near a ground truth's, one to five each, and false alarms; compressed RLE.
- Times are the least of ``--repeats`` runs, each in its own process; contenders take turns. Processor time is
  that of all threads and child processes.
- "boxscore" is one process; "boxscore workers" forks one per processor, as the command line does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import measured

WIDTH, HEIGHT = 640, 480
OURS = ("boxscore", "boxscore workers")

KEYS = {
    ("segm", "boxscore"): "masks-one-process",
    ("segm", "boxscore workers"): "masks-two-processes",
    ("boundary", "boxscore workers"): "boundary",
}
"""What are rows of the page of benchmarks."""
CONTENDERS = ("pycocotools", "vernier", "hotcoco", "ultrafast_pycocotools", "faster_coco_eval", *OURS)
OF_KIND = {
    "segm": CONTENDERS,
    "boundary": ("vernier", "faster_coco_eval", *OURS),  # the others have no boundary IoU
    "keypoints": CONTENDERS,
}


def outline(random, center, size, points):
    """Make a smooth closed outline around a center, as a flat list x1, y1, x2, y2, ..."""
    import numpy as np

    angle = np.linspace(0, 2 * np.pi, points, endpoint=False)
    radius = np.ones(points)
    for wave in (2, 3, 5):
        radius += random.normal(0, 0.25 / wave) * np.cos(wave * angle + random.uniform(0, 7))
    x = center[0] + size[0] * radius * np.cos(angle) / 2
    y = center[1] + size[1] * radius * np.sin(angle) / 2
    flat = np.stack([x.clip(0, WIDTH), y.clip(0, HEIGHT)], axis=1).round(2)
    return flat.ravel().tolist()


def moved(random, part, amount):
    """Return an outline shifted and jittered by a share of its size."""
    import numpy as np

    points = np.array(part).reshape(-1, 2)
    extent = np.ptp(points, axis=0)
    points = points + random.normal(0, amount, 2) * extent
    points = points + random.normal(0, amount / 4, points.shape) * extent
    return points.clip(0, [WIDTH, HEIGHT]).ravel().tolist()


def make_masks(folder, images=5_000, truths=36_000, detections=100_000):
    """Write ground truth with polygons and results with RLE."""
    import numpy as np
    from pycocotools import mask as coco_mask

    random = np.random.default_rng(20)
    annotations, results = [], []
    image_of = np.sort(random.integers(0, images, truths))
    favorite = random.integers(0, 80, (images, 3))
    for number, image in enumerate(image_of.tolist(), start=1):
        size = np.exp(random.normal(4.2, 0.9, 2)).clip(4, 460)
        center = random.uniform(0.05, 0.95, 2) * (WIDTH, HEIGHT)
        parts = [
            outline(random, center + part * size, size / (part + 1), int(random.integers(8, 36)))
            for part in range(1 + (random.random() < 0.1))
        ]
        code = coco_mask.merge(coco_mask.frPyObjects(parts, HEIGHT, WIDTH))
        crowd = int(random.random() < 0.01)
        segmentation = parts
        if crowd:
            pixels = coco_mask.decode(code).ravel(order="F")
            runs = np.diff(np.flatnonzero(np.diff(pixels, prepend=0, append=2)), prepend=0)
            segmentation = {"size": [HEIGHT, WIDTH], "counts": runs.tolist()}
        annotations.append(
            {
                "id": number,
                "image_id": image + 1,
                "category_id": int(favorite[image, random.integers(0, 3)]) + 1,
                "bbox": coco_mask.toBbox(code).tolist(),
                "area": float(coco_mask.area(code)),
                "iscrowd": crowd,
                "segmentation": segmentation,
                "parts": parts,
            }
        )
    while len(results) < detections:
        truth = annotations[int(random.integers(0, truths))]
        for _ in range(int(random.integers(1, 6))):
            parts = [moved(random, part, random.choice([0.02, 0.08, 0.3])) for part in truth["parts"]]
            code = coco_mask.merge(coco_mask.frPyObjects(parts, HEIGHT, WIDTH))
            results.append(
                {
                    "image_id": truth["image_id"],
                    "category_id": truth["category_id"]
                    if random.random() < 0.9
                    else int(random.integers(1, 81)),
                    "segmentation": {"size": [HEIGHT, WIDTH], "counts": code["counts"].decode()},
                    "score": round(float(random.beta(1, 3)), 6),
                }
            )
    for annotation in annotations:
        del annotation["parts"]
    categories = [{"id": k + 1, "name": f"class {k + 1}"} for k in range(80)]
    results = results[:detections]
    write(folder, "segm", images, categories, annotations, results)
    for result in results:  # vernier reads no results without boxes
        result["bbox"] = coco_mask.toBbox(result["segmentation"]).tolist()
    write(folder, "boundary", images, categories, annotations, results)


def make_keypoints(folder, images=5_000, truths=11_000, detections=40_000):
    """Write ground truth and results with 17 keypoints."""
    import numpy as np

    random = np.random.default_rng(21)
    annotations, results = [], []
    for number, image in enumerate(np.sort(random.integers(0, images, truths)).tolist(), start=1):
        size = np.exp(random.normal(4.6, 0.7, 2)).clip(8, 460)
        corner = random.uniform(0, 1, 2) * ((WIDTH, HEIGHT) - size)
        seen = random.choice([0, 1, 2], 17, p=[0.35, 0.1, 0.55]) * (random.random() < 0.8)
        points = (corner + random.random((17, 2)) * size).round(0) * (seen > 0)[:, None]
        annotations.append(
            {
                "id": number,
                "image_id": image + 1,
                "category_id": 1,
                "bbox": [*corner.round(2).tolist(), *size.round(2).tolist()],
                "area": float((size.prod() * 0.6).round(2)),
                "iscrowd": int(random.random() < 0.01),
                "num_keypoints": int((seen > 0).sum()),
                "keypoints": np.column_stack([points, seen]).astype(int).ravel().tolist(),
            }
        )
    while len(results) < detections:
        truth = annotations[int(random.integers(0, truths))]
        points = np.array(truth["keypoints"], dtype=float).reshape(17, 3)
        points[:, :2] += random.normal(0, random.choice([0.01, 0.05, 0.3]), (17, 2)) * truth["bbox"][2:]
        results.append(
            {
                "image_id": truth["image_id"],
                "category_id": 1,
                "keypoints": points.round(3).ravel().tolist(),
                "score": round(float(random.random()), 6),
            }
        )
    categories = [{"id": 1, "name": "person"}]
    write(folder, "keypoints", images, categories, annotations, results)


def write(folder, kind, images, categories, annotations, results):
    folder.mkdir(parents=True, exist_ok=True)
    truth = {
        "info": {},
        "images": [{"id": i + 1, "width": WIDTH, "height": HEIGHT, "file_name": ""} for i in range(images)],
        "categories": categories,
        "annotations": annotations,
    }
    (folder / f"{kind}_detections.json").write_text(json.dumps(results))
    (folder / f"{kind}_ground_truth.json").write_text(json.dumps(truth))


def run(contender, kind, folder):
    """Run one contender in this process and print what it took as JSON."""
    truth, results = str(folder / f"{kind}_ground_truth.json"), str(folder / f"{kind}_detections.json")
    clock = [time.perf_counter()]

    def lap():
        clock.append(time.perf_counter())

    silence, shown = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(silence, 1)
    before = sum(os.times()[:4])
    if contender in OURS:
        import boxscore
        from boxscore._utils.memory import keep_freed_memory
        from boxscore.formats import detect_format, load_both
        from boxscore.formats.reading import read_options

        columns = ["keypoints" if kind == "keypoints" else "masks"]
        protocol = boxscore.load_protocol(f"coco-{kind}")
        evaluate = boxscore.evaluate
        detect_format(truth)
        workers = 1
        if contender == "boxscore workers":
            workers = len(os.sched_getaffinity(0))
            keep_freed_memory()
        options = read_options(instances=columns, processes=workers)
        before = sum(os.times()[:4])
        lap()
        ground_truth, detections = load_both(truth, results, options, options)
        lap()
        numbers = list(
            evaluate(ground_truth, detections, protocol=protocol, workers=workers).metrics.values()
        )
        lap()
    elif contender == "vernier":
        from vernier import instance

        similarity = {"segm": "Segm", "boundary": "Boundary", "keypoints": "Keypoints"}[kind]
        before = sum(os.times()[:4])
        lap()
        ground_truth = instance.CocoDataset.from_json(Path(truth).read_bytes())
        detections = Path(results).read_bytes()
        lap()
        evaluator = instance.Evaluator(iou=getattr(instance, similarity)(), parity_mode="strict")
        result = evaluator.evaluate(ground_truth, detections, num_threads=len(os.sched_getaffinity(0)))
        result.pretty_lines()
        lap()
        numbers = [float(number) for number in result.stats]
    else:
        package = __import__(contender)
        if contender == "pycocotools":
            from pycocotools.coco import COCO
            from pycocotools.cocoeval import COCOeval
        elif contender == "faster_coco_eval":
            COCO, COCOeval = package.COCO, package.COCOeval_faster
        else:
            COCO, COCOeval = package.COCO, package.COCOeval
        before = sum(os.times()[:4])
        lap()
        ground_truth = COCO(truth)
        loader = getattr(ground_truth, "loadRes", None) or ground_truth.load_res
        detections = loader(results)
        lap()
        evaluation = COCOeval(ground_truth, detections, kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        lap()
        numbers = [float(number) for number in evaluation.stats]
    os.dup2(shown, 1)
    seconds = [later - earlier for earlier, later in itertools.pairwise(clock)]
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    answer = {"seconds": [*seconds, sum(os.times()[:4]) - before], "numbers": numbers}
    print(json.dumps({**answer, "megabytes": [each.ru_maxrss >> 10 for each in used]}))


def compare(kind, folder, interpreters, repeats, contenders):
    """Run every contender that can be imported and print a table."""
    found = {contender: [] for contender in OF_KIND[kind] if contender in contenders}
    for round_ in range(repeats):
        for contender, answers in found.items():
            if (contender == "pycocotools" and round_) or (round_ and not answers):
                continue
            command = [interpreters[contender in OURS], __file__, kind, "--folder", str(folder)]
            done = subprocess.run(
                [*command, "--only", contender], capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"{contender}: left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            else:
                answers.append(json.loads(done.stdout.strip().splitlines()[-1]))
    reference = None
    print(
        f"| {kind} | import s | read s | evaluate s | both s | processor s | MB | of a child | "
        "both, times the first | differs |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    times = {}
    for contender, answers in found.items():
        if not answers:
            continue
        columns = list(zip(*(answer["seconds"] for answer in answers), strict=True))
        load, read, work, used = map(min, columns)
        both = min(map(sum, zip(columns[1], columns[2], strict=True)))
        numbers = answers[0]["numbers"]
        reference = reference or (numbers, both)
        times[contender] = statistics.median(map(sum, zip(columns[1], columns[2], strict=True)))
        far = max(abs(a - b) for a, b in zip(numbers, reference[0], strict=False) if b >= 0)
        own, child = answers[0]["megabytes"]
        print(
            f"| {contender} | {load:.2f} | {read:.2f} | {work:.3f} | {both:.3f} | {used:.2f} | {own} | "
            f"{child} | {both / reference[1]:.2f} | {far:.1g} |"
        )
    peers = {name: seconds for name, seconds in times.items() if name not in OURS}
    return [measured.row(KEYS[kind, name], times[name], peers) for name in times if (kind, name) in KEYS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=list(OF_KIND))
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/data"))
    parser.add_argument(
        "--rivals", default=sys.executable, help="the interpreter that has the other packages"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--contenders", metavar="A,B", help=f"some of {', '.join(CONTENDERS)}")
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the rows of the page of benchmarks")
    parser.add_argument("--only", choices=CONTENDERS, help="run this one here and print its times")
    arguments = parser.parse_args()
    if arguments.only:
        run(arguments.only, arguments.kind, arguments.folder)
        return
    if not (arguments.folder / f"{arguments.kind}_ground_truth.json").exists():
        (make_keypoints if arguments.kind == "keypoints" else make_masks)(arguments.folder)
    contenders = arguments.contenders.split(",") if arguments.contenders else CONTENDERS
    interpreters = arguments.rivals, sys.executable
    rows = compare(arguments.kind, arguments.folder, interpreters, arguments.repeats, contenders)
    if arguments.store:
        measured.store(arguments.store, rows)


if __name__ == "__main__":
    main()
