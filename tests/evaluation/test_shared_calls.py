"""Calls of the API that share their work among processes: interrupted, or with children killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import boxscore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")

SOURCES = [str(Path(__file__).parents[1])]

PROGRAM = """
import json, os, signal, sys, time
import numpy as np
import boxscore
import pytest
from boxscore.extensions.weights.resampling import Draws
from boxscore.diagnostics import compare_detectors
from boxscore.similarity.box import BoxSimilarity
from support.limits import classes_always_shared, little_worth_forking

IMAGE = {"extends": "coco", "matching": {"cap_scope": "image"}}  # classes meet
truth = boxscore.load_ground_truth("truth.json")
found = boxscore.load_detections("found.json", truth)
CALLS = {
    "evaluate": lambda: boxscore.evaluate(truth, found, protocol=IMAGE, workers=3)["AP"],
    "classes": lambda: boxscore.evaluate(truth, found, workers=3)["AP"],
    "draws": lambda: evaluation._weighted_metrics(
        evaluation.protocol.rows, Draws.of_seed(60, 60, seed=1), workers=3
    ).values.tobytes(),
    "compare": lambda: compare_detectors(
        {"a": evaluation, "b": other}, resamples=40, workers=3
    ).total.p_value.tobytes(),
}
BoxSimilarity.forks_from = 0
little_worth_forking(pytest.MonkeyPatch())
classes_always_shared(pytest.MonkeyPatch())
children, fork = [], os.fork

def counted():
    process = fork()
    if process:
        children.append(process)
    return process

os.fork = counted

def alive():
    return [child for child in children if os.path.exists(f"/proc/{child}")]

def kill(*_):
    for child in alive():
        os.kill(child, signal.SIGKILL)

def interrupt(*_):
    os.killpg(0, signal.SIGINT)  # as a terminal does: to all processes

evaluation = boxscore.evaluate("truth.json", "found.json", workers=1)
other = boxscore.evaluate("truth.json", "other.json", workers=1)

def interruptions(call, act, seed, count):
    # At random moments of the call, act; return how often that interrupted it.
    children.clear()
    expected = repr(call())
    assert children, "nothing was shared"
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        assert repr(call()) == expected
        seconds.append(time.perf_counter() - started)
    signal.signal(signal.SIGALRM, act)
    interrupted = 0
    # The first is so early that it comes before the end, however long the measured calls took.
    for share in [0.01, *np.random.default_rng(seed).uniform(0.02, 0.98, count)]:
        try:
            signal.setitimer(signal.ITIMER_REAL, float(share * min(seconds)))
            value = repr(call())
            assert value == expected, value
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert not alive(), "a child is left"
    return interrupted

act = {"interrupt": interrupt, "kill": kill}[sys.argv[1]]
print(json.dumps({name: interruptions(call, act, *map(int, sys.argv[2:])) for name, call in CALLS.items()}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ground truth and results of 3,000 boxes, and those of another detector."""
    folder, random = tmp_path_factory.mktemp("shared"), np.random.default_rng(5)
    image, label = random.integers(0, 60, 3000), random.integers(0, 4, 3000)
    boxes = np.column_stack([random.uniform(0, 900, (3000, 2)), random.uniform(5, 90, (3000, 2))])
    truth = boxscore.GroundTruth.from_arrays(
        image, label, boxes, box_format="xywh", images=range(60), categories=range(4)
    )
    boxscore.save_as(truth, folder / "truth.json")
    for name, shift in (("found", 2.0), ("other", 4.0)):
        found = boxscore.Detections.from_arrays(
            image, label, boxes + shift, random.random(3000), box_format="xywh"
        )
        boxscore.save_as(found, folder / f"{name}.json")
    return folder


@pytest.mark.long
@pytest.mark.parametrize("act", ["interrupt", "kill"])
def test_no_process_is_left_and_no_number_is_another(act: str, folder: Path) -> None:
    """At random moments: an interrupt ends the call, a killed child's part is done again."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, act, "1", "12"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*SOURCES, os.environ.get("PYTHONPATH", "")])},
        timeout=300,
        check=False,
        start_new_session=True,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    interrupted = {call: count > 0 for call, count in json.loads(done.stdout).items()}
    assert interrupted == dict.fromkeys(["evaluate", "classes", "draws", "compare"], act == "interrupt")
