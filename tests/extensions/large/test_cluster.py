"""A cluster of two processes: the same bits, and what goes wrong is an error or goes right."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.distributed import evaluate
from boxscore.extensions.weights.resampling import Draws, Groups
from support import limits
from support.dying import DyingTask
from support.examples import first_of
from support.insides import evaluate_tasks, local_cluster
from support.parted import bits, tasks_of, whole
from support.running import Run

if not os.environ.get("CI"):  # there it must be installed
    pytest.importorskip("distributed", reason="needs boxscore[dask]")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return the client of two workers."""
    import dask

    pytest.importorskip("distributed")  # its configuration must be there before it is changed
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        local_cluster(2) as client,
    ):
        yield client


def frames(images: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw ground truth and detections with many equal scores; the first class has most of both."""
    rng = np.random.default_rng(seed)
    share = [0.7, 0.1, 0.1, 0.1]
    image = np.repeat(np.arange(images), 4)
    corner = rng.random((len(image), 2)) * 300
    box = np.hstack([corner, corner + 20 + rng.random((len(image), 2)) * 90]).round(1)
    label = rng.choice(4, len(image), p=share)
    found = rng.integers(0, len(image), 5 * images)
    found_box = (box[found] + rng.normal(0, 6, (len(found), 4))).round(1)
    found_box[:, 2:] = np.maximum(found_box[:, 2:], found_box[:, :2] + 1)
    found_label = np.where(rng.random(len(found)) < 0.9, label[found], rng.integers(0, 4, len(found)))

    def frame(image: Any, label: Any, box: Any) -> pd.DataFrame:
        corners = {name: box[:, at] for at, name in enumerate(("x1", "y1", "x2", "y2"))}
        return pd.DataFrame({"image_id": image, "category_id": label, **corners})

    detections = frame(image[found], found_label, found_box)
    return frame(image, label, box), detections.assign(score=rng.random(len(found)).round(1))


def written(folder: Path, *, scattered: bool = True, files: int = 3) -> tuple[Path, Path]:
    """Write both sides as Parquet."""
    truth, found = frames()
    if not scattered:
        found = found.sort_values("image_id", kind="stable")
    truth.to_parquet(folder / "truth.parquet", index=False)
    (folder / "found").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(found)), files)):
        found.iloc[rows].to_parquet(folder / "found" / f"{number}.parquet", index=False, row_group_size=150)
    return folder / "truth.parquet", folder / "found"


@pytest.mark.long
@pytest.mark.parametrize("scattered", first_of(1, [True, False]))
@pytest.mark.parametrize("protocol", first_of(1, ["coco", "voc2012"]))
def test_the_bits_of_one_process(
    client: Any, tmp_path: Path, scattered: bool, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = written(tmp_path, scattered=scattered)
    expected = bits(whole(paths, protocol))
    assert bits(evaluate(*paths, protocol=protocol, client=client, partitions=4)) == expected
    limits.few_detections_at_a_time(monkeypatch, 400)  # the first class is split by scores
    assert bits(evaluate(*paths, protocol=protocol, client=client, partitions=3)) == expected


@pytest.mark.long
def test_frames_and_tables(client: Any) -> None:
    dataframe = pytest.importorskip("dask.dataframe", reason="needs dask.dataframe")
    truth, found = frames()
    tables = boxscore.GroundTruth.from_pandas(truth), boxscore.Detections.from_pandas(found)
    expected = bits(whole(tables, "coco"))["metrics"]
    import dask

    with dask.config.set(scheduler="sync"):
        parted = dataframe.from_pandas(found, npartitions=5, sort=False)
    for sides in (tables, (truth, found), (truth, parted)):
        result = evaluate(*sides, client=client, partitions=2)
        assert bits(result)["metrics"] == expected


@pytest.mark.long
def test_ground_truth_in_another_format(client: Any, tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    boxscore.save_as(boxscore.load_ground_truth(truth), tmp_path / "truth.json")
    result = evaluate(tmp_path / "truth.json", folder, client=client, partitions=3)
    assert bits(result)["metrics"] == bits(whole((truth, folder), "coco"))["metrics"]


@pytest.mark.long
def test_images_are_weighed_where_the_parts_are(client: Any, tmp_path: Path) -> None:
    paths = written(tmp_path)
    result, one = evaluate(*paths, client=client, partitions=3), whole(paths, "coco")
    rows = one.protocol.rows
    for weights in (Draws.of_seed(200, 5, 0), Groups(np.arange(200, dtype=np.uint16) % 3, 0, 3)):
        expected = one._weighted_metrics(rows, weights)
        for most in (None, 250):  # at once; by class, and the first class by scores
            with pytest.MonkeyPatch.context() as patch:
                if most is not None:
                    limits.few_detections_at_a_time(patch, most)
                ours = result._weighted_metrics(rows, weights)
            assert all(mine.tobytes() == own.tobytes() for mine, own in zip(ours, expected, strict=True))
    assert "parts" not in vars(result)  # nothing was fetched
    intervals = [boxscore.diagnostics.bootstrap_intervals(each).to_frame() for each in (result, one)]
    assert intervals[0].equals(intervals[1])
    other = evaluate(*paths, client=client, partitions=4)
    assert repr(result.compare(other, resamples=9)) == repr(one.compare(result, resamples=9))
    assert (
        boxscore.diagnostics.operating_points(result)
        .to_frame()
        .equals(boxscore.diagnostics.operating_points(one).to_frame())
    )
    with pytest.raises(boxscore.InputError, match="error types of merged parts must be computed from tables"):
        boxscore.diagnostics.error_types(result)


# ---------------------------------------------------------------- what goes wrong


def dying_tasks(tmp_path: Path, deaths: int) -> tuple[list[Any], Any]:
    truth, found = frames()
    tables = boxscore.GroundTruth.from_pandas(truth), boxscore.Detections.from_pandas(found)
    expected = whole(tables, "coco")
    tasks = tasks_of(tables, "coco", 4)
    tasks[2] = DyingTask(tasks[2], str(tmp_path / "marks"), deaths)
    return tasks, expected


def test_a_worker_that_is_killed(client: Any, tmp_path: Path) -> None:
    tasks, expected = dying_tasks(tmp_path, 1)
    assert bits(evaluate_tasks(tasks, client)) == bits(expected)
    assert (tmp_path / "marks").read_bytes() == b"x"


@pytest.mark.long
def test_a_partition_that_kills_every_worker_is_named(client: Any, tmp_path: Path) -> None:
    tasks, _ = dying_tasks(tmp_path, 99)
    with pytest.raises(boxscore.InputError, match=r"^partition 2 of .* must be finished by a worker"):
        evaluate_tasks(tasks, client)


@pytest.mark.long
def test_a_bad_row_is_named(client: Any, tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    frame = pd.read_parquet(folder / "1.parquet")
    frame.loc[frame.index[170], "score"] = np.nan
    frame.to_parquet(folder / "1.parquet", index=False, row_group_size=150)
    with pytest.raises(boxscore.InputError, match=r"row 20 of row group 1 of .*1\.parquet"):
        evaluate(truth, folder, client=client, partitions=3)


@pytest.mark.long
def test_a_detection_of_an_unknown_image(client: Any, tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    frame = pd.read_parquet(folder / "1.parquet")
    frame.loc[frame.index[170], "image_id"] = 12345
    frame.to_parquet(folder / "1.parquet", index=False, row_group_size=150)
    with pytest.raises(boxscore.InputError, match=r"12345.* in row 20 of row group 1 of .*1\.parquet"):
        evaluate(truth, folder, client=client, partitions=3)


@pytest.mark.long
def test_an_image_of_the_truth_in_two_files(client: Any, tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    frame = pd.read_parquet(truth)
    (tmp_path / "both").mkdir()
    frame.iloc[::2].to_parquet(tmp_path / "both" / "0.parquet", index=False)
    frame.iloc[1::2].to_parquet(tmp_path / "both" / "1.parquet", index=False)
    paths = tmp_path / "both", folder
    assert bits(evaluate(*paths, client=client, partitions=4)) == bits(whole(paths, "coco"))


def _set_version(version: str) -> None:
    import boxscore._version

    boxscore._version.__version__ = version


@pytest.mark.long
def test_another_version_on_a_worker(client: Any, tmp_path: Path) -> None:
    paths = written(tmp_path)
    worker = next(iter(client.scheduler_info()["workers"]))
    client.run(_set_version, "9.9", workers=[worker])
    try:
        with pytest.raises(boxscore.InputError, match=r"workers must have boxscore .* Got 9\.9 in tcp://"):
            evaluate(*paths, client=client)
    finally:
        client.run(_set_version, boxscore.__version__)


def test_folders_are_removed(client: Any, tmp_path: Path) -> None:
    paths = written(tmp_path)
    (tmp_path / "scratch").mkdir()
    evaluate(*paths, client=client, partitions=3, scratch=tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.long
def test_a_client_that_is_closed(client: Any, tmp_path: Path) -> None:
    import distributed

    paths = written(tmp_path)
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        result = evaluate(*paths, client=other, partitions=3)
    assert result["AP"] == whole(paths, "coco")["AP"]
    with pytest.raises(boxscore.InputError):
        result.parts  # noqa: B018
    with pytest.raises(boxscore.InputError, match="must answer"):
        boxscore.diagnostics.bootstrap_intervals(result)
    with pytest.raises(boxscore.InputError, match="must answer"):
        evaluate(*paths, client=other, partitions=3)


def test_what_is_no_client() -> None:
    truth, found = frames(3)
    with pytest.raises(boxscore.InputError, match=r"client must be a Client of Dask\. Got a str"):
        evaluate(truth, found, client="tcp://127.0.0.1:1")


# ---------------------------------------------------------------- the command line


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "boxscore", "evaluate", *map(str, arguments)]


@pytest.mark.long
def test_the_command_line_on_a_scheduler(client: Any, tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    address = client.scheduler.address
    done = subprocess.run(
        command("--gt", truth, "--dt", folder, "--scheduler", address, "--output", "json"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = whole((truth, folder), "coco")
    assert json.loads(done.stdout)["metrics"] == json.loads(expected.to_json())["metrics"]


@pytest.mark.long
def test_told_to_end_leaves_no_process(tmp_path: Path) -> None:
    truth, folder = written(tmp_path)
    process = subprocess.Popen(
        command("--gt", truth, "--dt", folder, "--scheduler", "local", "--workers", 1),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    children: list[int] = []
    try:
        until = time.monotonic() + 120
        while len(children) < 2 and process.poll() is None and time.monotonic() < until:
            children = _descendants(process.pid)
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    finally:
        process.kill()
    until = time.monotonic() + 120
    while any(map(_lives, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [child for child in children if _lives(child)]


def _descendants(process: int) -> list[int]:
    found, waiting = [], [process]
    while waiting:
        one = waiting.pop()
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            own = [int(text) for text in task.read_text().split()]
            found += own
            waiting += own
    return found


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
def test_no_scheduler_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    limits.impatient(monkeypatch, 0.3)
    sides = map(str, written(tmp_path))
    assert "the scheduler tcp://127.0.0.1:9 must answer. Got " in run.error(
        "evaluate", *sides, "--scheduler", "tcp://127.0.0.1:9"
    )


@pytest.mark.long
def test_a_script_that_starts_processes_needs_no_guard(tmp_path: Path) -> None:
    truth, found = written(tmp_path)
    call = f"boxscore.distributed.evaluate({str(truth)!r}, {str(found)!r})"
    script = tmp_path / "script.py"
    script.write_text(f"import boxscore\nprint('once')\nprint(repr({call}['AP']))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.split() == ["once", repr(boxscore.evaluate(truth, found)["AP"])]
