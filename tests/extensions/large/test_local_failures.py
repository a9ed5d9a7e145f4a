"""Processes of ``--workers`` without a cluster: killed, interrupted, out of memory, left by their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from support.dask_processes import descendants, kill_group, lives, until

pa = pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
pq = pytest.importorskip("pyarrow.parquet", reason="needs boxscore[tables]")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux"),
]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write enough rows that matching takes seconds, scattered, so that scratch is needed."""
    folder, images = tmp_path_factory.mktemp("sides"), 60_000
    rng = np.random.default_rng(0)

    def side(name: str, count: int, **more: np.ndarray) -> Path:
        corner = rng.random((count, 2)) * 400
        box = np.hstack([corner, corner + 10 + rng.random((count, 2)) * 90])
        columns = {key: box[:, at] for at, key in enumerate(("x1", "y1", "x2", "y2"))}
        image = rng.integers(0, images, count)
        image[:images] = np.arange(images) if name == "truth" else image[:images]
        table = pa.table({"image_id": image, "category_id": rng.integers(0, 5, count), **columns, **more})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=20_000)
        return folder / f"{name}.parquet"

    return side("truth", 2 * images), side("found", 8 * images, score=rng.random(8 * images))


def start(sides: tuple[Path, Path], folder: Path, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    truth, found = sides
    (folder / "temporary").mkdir()
    return subprocess.Popen(
        [*before, sys.executable, "-m", "boxscore", "evaluate", str(truth), str(found), "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        start_new_session=True,
    )


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return [one for one in descendants(process.pid) if "spawn_main" in command_of(one)]


def has_started(process: int) -> bool:
    """Whether a worker is past Python's own start, in which it ends with a traceback if its parent ends."""
    try:
        return "numpy" in Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return False


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("whole_group", [True, False])
def test_the_parent_ends(
    sides: tuple[Path, Path], tmp_path: Path, number: signal.Signals, whole_group: bool
) -> None:
    process = start(sides, tmp_path)
    children: list[int] = []
    try:
        until(lambda: len(workers_of(process)) == 2 and any((tmp_path / "temporary").iterdir()))
        until(lambda: all(map(has_started, workers_of(process))))
        children = descendants(process.pid)
        (os.killpg if whole_group and number == signal.SIGINT else os.kill)(process.pid, number)
        process.wait(timeout=120)
        until(lambda: not any(map(lives, children)))
        printed, said = process.communicate(timeout=120)
    finally:
        kill_group(process)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert not printed
    assert said == ("boxscore: interrupted\n" if number == signal.SIGINT else "")
    assert bool(list((tmp_path / "temporary").iterdir())) == (number == signal.SIGKILL)


def test_workers_that_are_killed(sides: tuple[Path, Path], tmp_path: Path) -> None:
    process = start(sides, tmp_path)
    try:
        killed: set[int] = set()
        end = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < end:
            for one in set(workers_of(process)) - killed:
                time.sleep(0.2)
                killed.add(one)
                try:
                    os.kill(one, signal.SIGKILL)
                except OSError:
                    continue
            time.sleep(0.02)
        printed, said = process.communicate(timeout=120)
    finally:
        kill_group(process)
    assert process.returncode == 2
    assert not printed
    assert said.startswith("boxscore: error: ")
    assert said.count("\n") == 1
    assert not list((tmp_path / "temporary").iterdir())


def test_not_enough_memory_for_the_processes(sides: tuple[Path, Path], tmp_path: Path) -> None:
    process = start(sides, tmp_path, ["sh", "-c", 'ulimit -v 1200000; exec "$@"', "sh"])
    try:
        printed, said = process.communicate(timeout=120)
    finally:
        kill_group(process)
    assert process.returncode in (0, 2, 3)
    assert bool(printed) == (process.returncode == 0)
    assert "Traceback" not in said
    assert not list((tmp_path / "temporary").iterdir())
