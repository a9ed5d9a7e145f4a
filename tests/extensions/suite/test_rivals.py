"""A suite beside what others' scripts make of the same files, killed, and clicked through."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

import boxscore
from boxscore.suite import Suite, run_suite
from oracles.pycoco import run_pycocotools
from support.suites import SETS, TOML, write_sets

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sets(tmp_path / "data", images=8)
    (tmp_path / "suite.toml").write_text(TOML)
    return tmp_path


def lmms_eval_odinw(folder: Path, model: str) -> float:
    """Mean AP as lmms-eval's odinw13 has it: every box scores 1, and sets without objects are left out."""
    values = []
    for one in sorted((folder / "data").iterdir()):
        truth = json.loads((one / "instances.json").read_text())
        if truth["annotations"]:
            found = [{**box, "score": 1.0} for box in json.loads((one / f"{model}.json").read_text())]
            known = {category["id"] for category in truth["categories"]}
            found = [box for box in found if box["category_id"] in known]
            values.append(run_pycocotools(truth, found).stats[0])
    return float(np.mean(values))


@pytest.mark.long
def test_the_same_files_by_the_rules_of_lmms_eval(folder: Path) -> None:
    for path in (folder / "data").glob("*/model*.json"):
        found: list[dict[str, Any]] = json.loads(path.read_text())
        found.append({"image_id": 0, "category_id": 9, "bbox": [0, 0, 5, 5], "score": 1.0})
        path.write_text(json.dumps([{**box, "score": 1.0} for box in found]))
    result = run_suite(Suite.read(folder / "suite.toml"), resamples=10, workers=1)
    means = result.model_frame().set_index("model")
    for model in result.models:
        assert means.loc[model, "mean"] == pytest.approx(lmms_eval_odinw(folder, model), abs=1e-15)
    empty = folder / "data" / "set3" / "instances.json"
    empty.write_text(json.dumps({**json.loads(empty.read_text()), "annotations": []}))
    result = run_suite(Suite.read(folder / "suite.toml"), resamples=10, workers=1)
    means = result.model_frame().set_index("model")
    failed = result.failed_frame().set_index("model")
    assert set(failed["set"]) == {"set3"}
    for model in result.models:
        theirs = lmms_eval_odinw(folder, model)
        assert means.loc[model, "mean_without_failed"] == pytest.approx(theirs, abs=1e-15)
        assert means.loc[model, "mean"] == pytest.approx(theirs * (SETS - 1) / SETS, abs=1e-15)
        assert failed.loc[model, "price"] == pytest.approx(theirs / SETS, abs=1e-15)


KILLED_AT_THE_THIRD_RESULT = """
import os, signal, sys
from boxscore.cli import main
replace, kept = os.replace, []
def replace_and_die(source, target, **options):
    replace(source, target, **options)
    kept.extend([target] * str(target).endswith(".json"))
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
os.replace = replace_and_die
main(sys.argv[1:])
"""


@pytest.mark.long
def test_killed_and_resumed(folder: Path) -> None:
    call = [sys.executable, "-m", "boxscore", "suite", str(folder / "suite.toml"), "--resamples", "400"]
    call += ["--workers", "1", "--output", "json", "--quiet"]
    whole = subprocess.run(call, capture_output=True, check=True).stdout
    kept = folder / "kept"
    killed = [call[0], "-c", KILLED_AT_THE_THIRD_RESULT, *call[3:], "--keep", str(kept)]
    assert subprocess.run(killed, stdout=subprocess.DEVNULL).returncode == -signal.SIGKILL
    whole_sets = [one for one in (kept / f"set{s}" for s in range(SETS)) if len([*one.glob("*.json")]) == 2]
    done = {path: path.stat().st_mtime_ns for one in whole_sets for path in one.glob("*.json")}
    assert 2 <= len(done) < SETS * 2
    again = subprocess.run([*call, "--keep", str(kept)], capture_output=True, check=True).stdout
    assert again == whole
    assert {path: path.stat().st_mtime_ns for path in done} == done


@pytest.mark.long
def test_every_link_of_the_heat_map_leads_to_its_set(folder: Path) -> None:
    from boxscore.cli import main

    out = folder / "out"
    assert (
        main(["suite", str(folder / "suite.toml"), "--resamples", "10", "--report", str(out), "--quiet"]) == 0
    )
    links = re.findall(r'<a href="([^"]+)">', (out / "suite.html").read_text(encoding="utf-8"))
    assert {unquote(target) for target in links} == {f"sets/set{s}/report.html" for s in range(SETS)}
    for target in map(unquote, links):
        page = (out / target).read_text(encoding="utf-8")
        own = folder / "data" / target.split("/")[1]
        for model in ("model0", "model1"):
            value = boxscore.evaluate(own / "instances.json", own / f"{model}.json", digest=False)["AP"]
            assert repr(value)[:14] in page
