"""Questions behind the score, and a training loop, beside hotcoco: 500,000 boxes, tables in memory.

    python benchmarks/diagnostics.py                          # benchmarks/.venv, made if need be
    python benchmarks/diagnostics.py --python VENV/bin/python --only compare --rounds 3

Contenders answer a question in fresh processes, in turn. Reading and imports are not timed; nor is the
evaluation before a question, unless the row names it. Shown are the middle seconds, in brackets the processor
time of all processes, and the memory of the largest in MB. AP of both must be equal.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import measured
import numpy as np
from cases import BENCHMARKS, PROJECT
from compare import make_environment
from measure import pin

Answer = Callable[[], Any]

QUESTIONS = {
    "tide": ("evaluate and TIDE, 500,000 boxes", "tables in memory"),
    "confusion": ("confusion matrix from a score of 0.25 on, 500,000 boxes", "tables in memory"),
    "calibration": ("reliability bins, 500,000 boxes", "tables in memory"),
    "per-image": ("scores per image, 500,000 boxes", "tables in memory"),
    "bootstrap": ("intervals of every metric and class, 500,000 boxes", "tables in memory"),
    "compare": ("compare two detectors, 200 resamples, 500,000 boxes", "tables in memory"),
    "compare-1000": (
        "compare two detectors, 1,000 resamples and exchanges, 500,000 boxes",
        "tables in memory",
    ),
    "evaluator": ("training loop: 5,000 images of 100 boxes, 80 classes", "`Evaluator`"),
}
RESAMPLES = {"compare": 200, "compare-1000": 1000}
ALONE = ("bootstrap", "compare-1000", "evaluator")
"""Questions that hotcoco does not answer, or takes minutes for."""

IMAGES, BOXES, CLASSES, BATCH = 5000, 100, 80, 16


def ask_boxscore(question: str, truth_path: str, found_path: str) -> tuple[Answer, float]:
    """Return what is timed, and AP."""
    import boxscore
    from boxscore import diagnostics
    from boxscore.formats import load_both

    if question == "evaluator":
        return training_loop(boxscore.Evaluator), 0.0
    truth, found = load_both(truth_path, found_path)
    evaluation = boxscore.evaluate(truth, found)
    if question in RESAMPLES:
        other = boxscore.evaluate(truth, found.take(kept(len(found))))
        both = {"first": evaluation, "other": other}
        return lambda: diagnostics.compare_detectors(both, resamples=RESAMPLES[question]), evaluation["AP"]
    answers: dict[str, Answer] = {
        "tide": lambda: diagnostics.error_types(boxscore.evaluate(truth, found)),
        "confusion": lambda: diagnostics.confusion_matrix(evaluation),
        "calibration": lambda: diagnostics.reliability(evaluation),
        "per-image": lambda: diagnostics.image_scores(evaluation),
        "bootstrap": lambda: diagnostics.bootstrap_intervals(evaluation),
    }
    return answers[question], evaluation["AP"]


def ask_hotcoco(question: str, truth_path: str, found_path: str) -> tuple[Answer, float]:
    """Return the same of hotcoco."""
    import hotcoco

    truth = hotcoco.COCO(truth_path)
    found = truth.load_res(found_path)

    def evaluated(results: Any) -> Any:
        evaluation = hotcoco.COCOeval(truth, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        return evaluation

    evaluation = evaluated(found)
    evaluation.summarize()
    average_precision = float(evaluation.stats[0])
    if question == "compare":
        records = json.loads(Path(found_path).read_text(encoding="utf-8"))
        other = evaluated(truth.load_res([records[row] for row in kept(len(records)).tolist()]))
        return lambda: hotcoco.compare(evaluation, other, n_bootstrap=RESAMPLES[question]), average_precision
    answers: dict[str, Answer] = {
        "tide": lambda: evaluated(found).tide_errors(),
        "confusion": lambda: evaluation.confusion_matrix(min_score=0.25),
        "calibration": lambda: evaluation.calibration(),
        "per-image": lambda: evaluation.image_diagnostics(),
    }
    return answers[question], average_precision


CONTENDERS = {"boxscore": ask_boxscore, "hotcoco": ask_hotcoco}


def kept(count: int) -> Any:
    """Rows of the other detector: all but every thirtieth, drawn from a seed."""
    return np.flatnonzero(np.random.default_rng(1).random(count) < 29 / 30)


def training_loop(evaluator_class: Any) -> Answer:
    """Return a loop over batches of arrays as a model on a GPU leaves them."""
    images = [one_image(np.random.default_rng(seed)) for seed in range(BATCH)]

    def loop() -> Any:
        evaluator = evaluator_class(classes=range(1, CLASSES + 1))
        for first in range(0, IMAGES, BATCH):
            batch = images[: IMAGES - first]
            targets = [{**target, "image_id": first + i} for i, (_, target) in enumerate(batch)]
            evaluator.update([prediction for prediction, _ in batch], targets)
        return evaluator.compute().metrics

    return loop


def one_image(random: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make seven objects, and boxes about them."""
    corner, label = random.random((7, 2)) * 400, random.integers(1, CLASSES + 1, 7)
    objects = np.hstack([corner, corner + 20 + random.random((7, 2)) * 150])
    of = random.integers(0, 7, BOXES)
    boxes = objects[of] + random.normal(0, 8, (BOXES, 4))
    boxes[:, 2:] = np.maximum(boxes[:, :2], boxes[:, 2:])
    labels = np.where(random.random(BOXES) < 0.5, label[of], random.integers(1, CLASSES + 1, BOXES))
    scores = random.random(BOXES).astype(np.float32)
    prediction = {"boxes": boxes.astype(np.float32), "labels": labels, "scores": scores}
    return prediction, {"boxes": objects.astype(np.float32), "labels": label}


def work(contender: str, question: str, truth_path: str, found_path: str) -> None:
    """Answer one question in this process, and print what it took."""
    output, sys.stdout = sys.stdout, sys.stderr
    answer, average_precision = CONTENDERS[contender](question, truth_path, found_path)
    used, started = _processor_seconds(), time.perf_counter()
    answer()
    seconds = time.perf_counter() - started
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    values = [seconds, _processor_seconds() - used, peak / 1024, average_precision]
    print(json.dumps(values), file=output)


def _processor_seconds() -> float:
    return sum(os.times()[:4])


def asked(python: str, contender: str, question: str, files: list[str]) -> list[float] | None:
    """Return the seconds, processor seconds, MB and AP of a fresh process; None where it failed."""
    command = [python, str(Path(__file__)), "--work", contender, question, *files]
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "src")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return None
    values: list[float] = json.loads(done.stdout)
    return values


def rounds_of(python: str, question: str, files: list[str], count: int) -> Iterator[tuple[str, list[float]]]:
    """Let the contenders take turns; a round begins with another one than the round before."""
    names = ["boxscore"] if question in ALONE else list(CONTENDERS)
    for number in range(count):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            values = asked(python, name, question, files)
            if values is None:
                print(f"{name} failed: {question}", file=sys.stderr)
            else:
                yield name, values


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), metavar="QUESTION")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--python", help="interpreter with the peers; default: make benchmarks/.venv")
    parser.add_argument("--data", type=Path, default=BENCHMARKS / "data", metavar="DIR")
    parser.add_argument("--store", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    pin(arguments.threads)
    python, data = arguments.python or make_environment(), arguments.data.resolve()
    files = [str(data / f"coco_500k_{side}.json") for side in ("ground_truth", "detections")]
    if not all(Path(file).exists() for file in files):
        made = [sys.executable, str(BENCHMARKS / "make_data.py"), "coco_500k", "--output", str(data)]
        subprocess.run(made, check=True)
    print("| work | boxscore | hotcoco | ratio | MB |\n|---|---:|---:|---:|---:|")
    failed, rows = False, []
    for question in arguments.only:
        found: dict[str, list[list[float]]] = {}
        for name, values in rounds_of(python, question, files, arguments.rounds):
            found.setdefault(name, []).append(values)
        failed |= len({round(values[3], 9) for runs in found.values() for values in runs}) > 1
        middle = {
            name: [statistics.median(column) for column in zip(*runs, strict=True)]
            for name, runs in found.items()
        }
        if "boxscore" not in middle:
            failed = True
            continue
        ours, theirs = middle["boxscore"], middle.get("hotcoco")
        ratio = None if theirs is None else ours[0] / theirs[0]
        cells = [
            QUESTIONS[question][0],
            *(f"{one[0]:.3g} ({one[1]:.3g})" if one else "" for one in (ours, theirs)),
        ]
        cells += [
            "" if ratio is None else f"{ratio:.2f}",
            " / ".join(f"{one[2]:.0f}" for one in middle.values()),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
        peers = {"hotcoco": theirs[0]} if theirs else {}
        work_done, scope = QUESTIONS[question]
        rows.append(measured.row(question, ours[0], peers, work=work_done, scope=scope))
    if arguments.store:
        measured.store(arguments.store, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
