"""Partitions on one machine: what a memory limit allows, and a folder that is full."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.formats._format import ReadOptions
from support import limits
from support.each import each
from support.insides import Load, bytes_of_plan, plan_within
from support.running import Run

pq = pytest.importorskip("pyarrow.parquet")


def test_without_a_limit_processes_share_what_is_worth_it() -> None:
    assert plan_within(None, Load(10**8), 2).partition == plan_within(None, Load(10**9), 2).partition
    assert plan_within(None, Load(10**6), 2).partition == 500_000
    assert (
        plan_within(None, Load(1000), 8).partition == plan_within(None, Load(100_000), 8).partition > 100_000
    )
    assert plan_within(None, Load(10**8), 2).room is None


@each([(1 * 10**9, 1), (2 * 10**9, 2), (4 * 10**9, 4), (64 * 10**9, 8)])
def test_what_is_planned_stays_within_the_limit(limit: int, workers: int) -> None:
    for load in (Load(10**9), Load(10**9, box=900, read=10**8, first=10**8)):
        plan = plan_within(limit, load, workers)
        assert plan.room is not None
        assert bytes_of_plan(plan, load, workers) <= limit
        assert plan.partition >= 1 << 16


def test_a_limit_that_cannot_be_kept_says_what_would_do(tmp_path: Path, run: Run) -> None:
    with pytest.raises(boxscore.InputError, match=r"be 666 MB or more for 1,000 boxes and 2 workers"):
        plan_within(100 * 10**6, Load(1000), 2)
    with pytest.raises(boxscore.InputError, match="smaller row groups: reading the largest takes 500 MB"):
        plan_within(100 * 10**6, Load(1000, read=5 * 10**8), 2)
    with pytest.raises(boxscore.InputError, match="write the ground truth as Parquet"):
        plan_within(100 * 10**6, Load(1000, first=10**9), 2)
    command = ["evaluate", *written(tmp_path), "--workers", "1", "--memory-limit"]
    said = re.search(
        r"--memory-limit must be (\d+) MB or more for 4,000 boxes and 1 worker",
        run.error(*command, "100MB"),
    )
    assert said is not None
    run(*command, f"{int(said[1]) - 1}MB", status=2)
    run(*command, f"{int(said[1]) + 1}MB")


@pytest.mark.long
def test_a_class_that_is_never_cut_must_fit(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = written(tmp_path)
    counts = boxscore.evaluate(*sides).class_counts["detections"]
    largest, label = int(counts.max()), str(1 + int(counts.argmax()))
    groups = [ParquetGroups.open(Path(side), ReadOptions()) for side in sides]
    room = plan_within(10**9, Load.of(groups, None), 1).room
    assert room is not None
    capped = tmp_path / "capped.toml"
    capped.write_text('extends = "coco"\nname = "capped"\n[matching]\ncap_scope = "data_set_class"\n')
    command = ["evaluate", *sides, "--memory-limit", "1GB", "--protocol"]
    limits.heavy_detections(monkeypatch, room // largest)
    run(*command, capped)
    limits.heavy_detections(monkeypatch, room // largest + 1)
    assert f"to order the {largest:,} detections of class '{label}'" in run.error(*command, capped)
    for name in ("coco", "voc2012", "ultralytics-old"):  # cut by scores
        run(*command, name)
    run("evaluate", *sides, "--protocol", capped)  # no limit


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


def test_boxes_with_more_than_corners_take_more(tmp_path: Path) -> None:
    """A mask by the bytes of its row, keypoints and corners by their numbers, a plain box nothing more."""
    count = 50
    box, rng = np.tile([10.0, 10.0, 50.0, 60.0], (count, 1)), np.random.default_rng(3)
    shapes = {
        "plain": {},
        "keypoints": {"keypoints": rng.uniform(2, 90, (count, 3, 3))},
        "rotated": {"rotated": rng.uniform(3, 9, (count, 5))},
        "masks": {"masks": list(rng.random((count, 70, 70)) < 0.5)},
    }
    size, nbytes = {}, {}
    for name, shape in shapes.items():
        corners = None if name in ("keypoints", "rotated") else box
        found = boxscore.Detections.from_arrays([1] * count, ["a"] * count, corners, [0.5] * count, **shape)
        boxscore.save_as(found, tmp_path / f"{name}.parquet")
        side = ParquetGroups.open(tmp_path / f"{name}.parquet", ReadOptions())
        size[name], nbytes[name] = Load.of([side], None).box, sum(group.nbytes for group in side.groups)
        assert Load.of([side, side], None).box == size[name]
    assert size["plain"] == Load(1).box
    assert size["keypoints"] == size["plain"] + 40 * 3 * 3
    assert size["rotated"] == size["plain"] + 40 * 5
    assert size["masks"] == size["plain"] + 15 * nbytes["masks"] // count
    assert nbytes["masks"] > 100 * count  # else masks of noise are packed as a plain box


def test_scratch_needs_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides, scratch = written(tmp_path), tmp_path / "scratch"
    scratch.mkdir()
    command = ["evaluate", *sides, "--memory-limit", "2GB", "--scratch", str(scratch), "--output", "json"]
    assert main(command) == 0
    exact = boxscore.evaluate(*sides)
    assert not list(scratch.iterdir())
    assert f'"AP": {exact["AP"]!r}' in capsys.readouterr().out
    assert main([*command, "--scratch", str(tmp_path / "none")]) == 2
    assert "--scratch must be a folder" in capsys.readouterr().err


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
