"""Partitions on one machine: what a memory limit allows, and a folder that is full."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.distributed import local
from boxscore.distributed.headers import header_of
from boxscore.distributed.local import LEAST, MATCHED, Plan, check_scoring, plan_within
from boxscore.distributed.reduction import MOST
from boxscore.distributed.streaming import PARTITION
from support.each import each
from support.parted import parts_of

pq = pytest.importorskip("pyarrow.parquet")


def test_without_a_limit_processes_share_what_is_worth_it() -> None:
    assert plan_within(None, 10**8, 10**7, 2) == Plan(PARTITION, MOST, None)
    assert plan_within(None, 10**6, 10**5, 2).partition == 500_000
    assert plan_within(None, 1000, 100, 8).partition == local.WORTH


@each([(1 * 10**9, 1), (2 * 10**9, 2), (4 * 10**9, 4), (64 * 10**9, 8)])
def test_what_is_planned_stays_within_the_limit(limit: int, workers: int) -> None:
    boxes, images = 10**9, 10**6
    plan = plan_within(limit, boxes, images, workers)
    assert plan.room is not None
    at_a_time = max(plan.partition * local.MATCHED, plan.most * local.SCORED)
    own = 0 if workers == 1 else local.BASE
    assert local.BASE + images * local.PER_IMAGE + workers * (own + at_a_time) <= limit
    assert plan.partition >= LEAST


def test_a_limit_that_cannot_be_kept_says_what_would_do() -> None:
    with pytest.raises(
        boxscore.InputError, match=r"be 616 MB or more for 1,000 boxes and 2 workers"
    ) as caught:
        plan_within(100 * 10**6, 1000, 100_000, 2)
    said = 180 * 10**6 + 100 * 100_000 + 2 * (180 * 10**6 + MATCHED * LEAST)
    assert f"{said / 1e6:,.0f} MB" in str(caught.value)
    plan_within(said + 10**6, 1000, 100_000, 2)


def parts(protocol: Any) -> list[Any]:
    images = np.repeat(np.arange(50), 4)
    boxes = np.tile([[1.0, 1.0, 9.0, 9.0]], (200, 1))
    truth = boxscore.GroundTruth.from_arrays(images, ["cat"] * 200, boxes)
    found = boxscore.Detections.from_arrays(images, ["cat"] * 200, boxes, np.linspace(0.1, 0.9, 200))
    return parts_of((truth, found), protocol, np.arange(50) % 3)


def test_a_class_that_is_never_cut_must_fit() -> None:
    capped = {"extends": "coco", "name": "capped", "matching": {"cap_scope": "data_set_class"}}
    headers = [header_of(part) for part in parts(capped)]
    check_scoring(headers, Plan(1, 1, 200 * local.SCORED))
    check_scoring(headers, Plan(1, 1, None))
    with pytest.raises(boxscore.InputError, match="to order the 200 detections of class 'cat'"):
        check_scoring(headers, Plan(1, 1, 199 * local.SCORED))
    for name in ("coco", "voc2012", "ultralytics-old"):  # cut by scores
        check_scoring([header_of(part) for part in parts(name)], Plan(1, 1, 1))


def written(folder: Path) -> list[str]:
    import pandas as pd

    rng = np.random.default_rng(0)
    sides = []
    for name in ("truth", "found"):
        frame = pd.DataFrame(
            {
                "image_id": np.repeat(np.arange(500), 4),
                "category_id": rng.integers(1, 4, 2000),
                "left": rng.integers(0, 50, 2000).astype(float),
                "top": 1.0,
                "width": 20.0,
                "height": 20.0,
            }
        )
        if name == "found":
            frame["score"] = rng.random(2000)
        frame.to_parquet(folder / f"{name}.parquet", row_group_size=400)
        sides.append(str(folder / f"{name}.parquet"))
    return sides


def test_bounds_and_scratch_need_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides, scratch = written(tmp_path), tmp_path / "scratch"
    scratch.mkdir()
    command = ["evaluate", *sides, "--memory-limit", "2GB", "--scratch", str(scratch), "--output", "json"]
    assert main(command) == 0
    exact = boxscore.evaluate(*sides)
    assert not list(scratch.iterdir())
    assert f'"AP": {exact["AP"]!r}' in capsys.readouterr().out
    assert main([*command, "--bounds"]) == 0
    assert '"exact": false' in capsys.readouterr().out
    assert main(["evaluate", *sides, "--bounds", "--output", "csv"]) == 2
    assert "--output must be text or json with --bounds" in capsys.readouterr().err
    assert main([*command, "--scratch", str(tmp_path / "none")]) == 2
    assert "--scratch must be a folder" in capsys.readouterr().err
    assert main(["evaluate", *sides, "--bounds", "--report", str(tmp_path / "report")]) == 2
    assert "--report must be left out with --bounds" in capsys.readouterr().err


@pytest.mark.long
def test_a_full_folder_is_one_line_and_nothing_is_left(tmp_path: Path) -> None:
    sides, scratch = written(tmp_path), tmp_path / "scratch"
    scratch.mkdir()
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)); "
        "from boxscore.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    options = ["--memory-limit", "2GB", "--scratch", str(scratch)]
    ended = subprocess.run(
        [sys.executable, "-c", limited, "evaluate", *sides, *options], capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert "cannot be written: File too large" in ended.stderr
    assert "--scratch" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not list(scratch.iterdir())
