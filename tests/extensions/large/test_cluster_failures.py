"""What fails around a cluster of real processes: one line and an end, or the right bits; never a wrong number.

Schedulers and workers are started as ``dask scheduler`` and ``dask worker`` start them, and killed, frozen,
cut off from files, or given other sources. ``PATIENCE`` is short here: nothing else changes.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.cli import main
from boxscore.distributed import evaluate, scan
from support import dying, limits
from support.dask_processes import DaskProcesses, dask_processes, descendants, kill_group, lives, until
from support.insides import evaluate_tasks
from support.parted import bits, tasks_of, whole

if not os.environ.get("CI"):  # there it must be installed
    pytest.importorskip("distributed", reason="needs boxscore[dask]")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals"),
]

SECONDS = 2.0
"""What ``PATIENCE`` is here."""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.impatient(monkeypatch, SECONDS)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[DaskProcesses, Any]]:
    """Return a scheduler, a worker without a nanny's help, and a client."""
    (tmp_path / "dask").mkdir()
    with dask_processes(tmp_path / "dask") as both:
        yield both


def frames(images: int = 80, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw both sides, with equal scores."""
    rng = np.random.default_rng(seed)

    def frame(image: Any, label: Any, box: Any) -> pd.DataFrame:
        corners = {name: box[:, at] for at, name in enumerate(("x1", "y1", "x2", "y2"))}
        return pd.DataFrame({"image_id": image, "category_id": label, **corners})

    image = np.repeat(np.arange(images), 4)
    corner = rng.random((len(image), 2)) * 300
    box = np.hstack([corner, corner + 20 + rng.random((len(image), 2)) * 90]).round(1)
    label = rng.integers(0, 3, len(image))
    found = rng.integers(0, len(image), 10 * images)
    found_box = (box[found] + rng.normal(0, 4, (len(found), 4))).round(1)
    detections = frame(image[found], label[found], found_box)
    return frame(image, label, box), detections.assign(score=rng.random(len(found)).round(1))


def written(folder: Path, *, files: int = 8, scattered: bool = True) -> tuple[Path, Path]:
    """Write both sides; detections in files of several row groups of 20 rows."""
    truth, found = frames()
    if not scattered:
        found = found.sort_values("image_id", kind="stable")
    truth.to_parquet(folder / "truth.parquet", index=False)
    (folder / "found").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(found)), files)):
        found.iloc[rows].to_parquet(folder / "found" / f"{number}.parquet", index=False, row_group_size=20)
    return folder / "truth.parquet", folder / "found"


def waiting_tasks(mark: Path) -> tuple[list[Any], Any]:
    """Return tasks of which one waits for a file, and the right result."""
    truth, found = frames()
    tables = boxscore.GroundTruth.from_pandas(truth), boxscore.Detections.from_pandas(found)
    tasks = tasks_of(tables, "coco", 4)
    tasks[2] = dying.WaitingTask(tasks[2], str(mark))
    return tasks, whole(tables, "coco")


def workers_of(client: Any) -> list[Any]:
    """Return what the scheduler knows of each worker."""
    return list(client.sync(client.scheduler.identity, n_workers=-1)["workers"].values())


def in_thread(work: Any) -> tuple[threading.Thread, list[Any]]:
    """Start work; its result or error is the only item of the list when it has ended."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, came


# ---------------------------------------------------------------- scheduler and workers


@pytest.mark.parametrize("how", ["killed", "frozen"])
@pytest.mark.usefixtures("impatient")
def test_the_scheduler_goes_while_matching(
    cluster: Any, tmp_path: Path, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    processes, client = cluster
    mark = tmp_path / "mark"
    tasks, _ = waiting_tasks(mark)
    thread, came = in_thread(lambda: evaluate_tasks(tasks, client))
    until(mark.exists)
    os.kill(processes.scheduler.pid, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
    thread.join(10 * SECONDS)
    assert not thread.is_alive()
    assert isinstance(came[0], boxscore.InputError)
    assert str(came[0]).startswith("the cluster must answer. Got ")
    assert "did the scheduler or the client stop? Finished work is lost." in str(came[0])
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.usefixtures("impatient")
def test_the_scheduler_is_killed_while_scoring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    limits.scoring_by(monkeypatch, dying.waiting_draw)
    tables = [kind.from_pandas(side) for kind, side in zip(KINDS, frames(), strict=True)]
    with dask_processes(tmp_path, 0) as (processes, client):
        processes.worker(BOXSCORE_TEST_MARK=str(mark))
        client.wait_for_workers(1, timeout=30)
        thread, came = in_thread(lambda: evaluate(*tables, client=client, partitions=3))
        until(mark.exists)
        processes.scheduler.kill()
        thread.join(10 * SECONDS)
    assert not thread.is_alive()
    assert isinstance(came[0], boxscore.InputError)


KINDS = (boxscore.GroundTruth, boxscore.Detections)


@pytest.mark.usefixtures("impatient")
def test_all_workers_go_and_none_comes(cluster: Any, tmp_path: Path) -> None:
    processes, client = cluster
    mark = tmp_path / "mark"
    tasks, _ = waiting_tasks(mark)
    thread, came = in_thread(lambda: evaluate_tasks(tasks, client))
    until(mark.exists)
    kill_group(processes.started[1])
    thread.join(15 * SECONDS)
    assert not thread.is_alive()
    assert str(came[0]).startswith("a cluster must have a worker that takes tasks. Got none for ")


def test_another_worker_comes_in_time(cluster: Any, tmp_path: Path) -> None:
    processes, client = cluster
    mark = tmp_path / "mark"
    tasks, expected = waiting_tasks(mark)
    thread, came = in_thread(lambda: evaluate_tasks(tasks, client))
    until(mark.exists)
    kill_group(processes.started[1])
    (tmp_path / "mark.go").touch()
    processes.worker()
    thread.join(60)
    assert bits(came[0]) == bits(expected)


def test_a_nanny_starts_its_worker_again_while_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    limits.scoring_by(monkeypatch, dying.waiting_draw)
    tables: Any = tuple(kind.from_pandas(side) for kind, side in zip(KINDS, frames(), strict=True))
    with dask_processes(tmp_path, 0) as (processes, client):
        nanny = processes.worker(nanny=True, BOXSCORE_TEST_MARK=str(mark))
        thread, came = in_thread(lambda: evaluate(*tables, client=client, partitions=3))
        until(mark.exists)
        (tmp_path / "mark.go").touch()
        for child in descendants(nanny.pid):
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        thread.join(60)
    assert bits(came[0])["metrics"] == bits(whole(tables, "coco"))["metrics"]


@pytest.mark.usefixtures("impatient")
def test_workers_that_wait_for_memory(tmp_path: Path) -> None:
    tables = [kind.from_pandas(side) for kind, side in zip(KINDS, frames(), strict=True)]
    with dask_processes(tmp_path, 0) as (processes, client):
        processes.worker(
            "--memory-limit",
            "1GB",
            DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE="0.01",
            DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE="false",
        )
        until(lambda: [one["status"] for one in workers_of(client)] == ["paused"])
        with pytest.raises(
            boxscore.InputError, match=r"takes tasks\. Got 1 waiting for memory; use more part"
        ):
            evaluate(*tables, client=client)


# ---------------------------------------------------------------- what workers have


@pytest.mark.parametrize("when", ["before", "later"])
def test_a_worker_with_another_version(cluster: Any, tmp_path: Path, when: str) -> None:
    processes, client = cluster
    other = tmp_path / "other"
    shutil.copytree(Path(boxscore.__file__).parent, other / "boxscore")
    (other / "boxscore" / "_version.py").write_text('__version__ = "9.9"\n', encoding="utf-8")
    own = [str(other), *processes_sources()]
    mark = tmp_path / "mark"
    tasks, _ = waiting_tasks(mark)
    tasks *= 3  # so that some are left for the other
    if when == "before":
        processes.worker(sources=own)
        client.wait_for_workers(2, timeout=30)
        with pytest.raises(boxscore.InputError, match=r"must have boxscore .* Got 9\.9 in tcp://"):
            evaluate_tasks(tasks, client)
        return
    thread, came = in_thread(lambda: evaluate_tasks(tasks, client))
    until(mark.exists)
    processes.worker(sources=own)
    thread.join(40)
    assert "Got 9.9 in a worker; install the same version everywhere" in str(came[0])


def processes_sources() -> list[str]:
    return [str(Path(dying.__file__).parents[2])]


def test_a_worker_without_boxscore(tmp_path: Path) -> None:
    bare = tmp_path / "bare" / "boxscore"
    bare.mkdir(parents=True)
    (bare / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named boxscore')", encoding="utf-8"
    )
    with dask_processes(tmp_path, 0) as (processes, client):
        processes.worker(sources=[str(bare.parent)])
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(
            boxscore.InputError, match=r"must have boxscore .* Got none \(ModuleNotFoundError"
        ):
            evaluate(*frames(), client=client)


def without(folder: Path) -> list[str]:
    """Return what runs a command where a folder is another, empty one."""
    script = f'mount -t tmpfs none "{folder}" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("needs to mount: root, or a container that may")
    return command


@pytest.mark.parametrize(("hidden", "message"), [
    ("scratch", "the folder of regrouped rows must be visible to the workers"),
    ("data", "a Parquet file must be readable"),
])  # fmt: skip
def test_a_worker_that_does_not_see_a_folder(tmp_path: Path, hidden: str, message: str) -> None:
    for name in ("scratch", "data"):
        (tmp_path / name).mkdir()
    truth, found = written(tmp_path / "data", scattered=hidden == "scratch")
    with dask_processes(tmp_path, 0) as (processes, client):
        processes.worker(before=without(tmp_path / hidden))
        with pytest.raises(boxscore.InputError, match=message):
            evaluate(truth, found, client=client, partitions=8, scratch=tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_a_file_that_changes_after_the_plan(tmp_path: Path, change: str) -> None:
    truth, found = written(tmp_path, scattered=False)

    def changing(function: Any, tasks: Any) -> Any:
        frame = pd.read_parquet(found / "3.parquet")
        (found / "3.parquet").unlink()
        if change == "replaced":  # as many rows of the same images
            frame.assign(score=frame["score"] / 2).to_parquet(
                found / "3.parquet", index=False, row_group_size=20
            )
        return [function(task) for task in tasks]

    message = r"must not change while it is read" if change == "replaced" else "must be readable"
    with pytest.raises(boxscore.InputError, match=rf"{message}.* in row group \d of .*3\.parquet"):
        scan(truth, found, partitions=4, map=changing)


@pytest.mark.parametrize("way", ["cluster", "workers", "stream"])
def test_a_bad_row_in_the_middle(tmp_path: Path, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    truth, found = written(tmp_path)
    frame = pd.read_parquet(found / "7.parquet")
    frame.loc[frame.index[67], "score"] = np.nan
    frame.to_parquet(found / "7.parquet", index=False, row_group_size=20)
    options = {
        "cluster": ["--scheduler", "local", "--workers", "1"],
        "workers": ["--workers", "2"],
        "stream": ["--memory-limit", "4GB"],
    }[way]
    assert main(["evaluate", str(truth), str(found), *options]) == 2
    said = capfd.readouterr()
    assert not said.out
    assert f"in row 7 of row group 3 of {found / '7.parquet'}" in said.err
    assert "Traceback" not in said.err


# ---------------------------------------------------------------- clients


def test_two_at_once_on_one_cluster(cluster: Any, tmp_path: Path) -> None:
    _, client = cluster
    paths = written(tmp_path)
    works = [
        in_thread(lambda p=p: evaluate(*paths, client=client, partitions=3, protocol=p)) for p in PROTOCOLS
    ]  # type: ignore[misc]
    for (thread, came), protocol in zip(works, PROTOCOLS, strict=True):
        thread.join(60)
        assert bits(came[0]) == bits(whole(paths, protocol))


PROTOCOLS = ("coco", "voc2012")


def test_an_asynchronous_client(tmp_path: Path) -> None:
    import asyncio

    import distributed

    async def ask(address: str) -> None:
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(boxscore.InputError, match=r"be synchronous\. Got an asynchronous one"):
                evaluate(*frames(), client=client)

    with dask_processes(tmp_path, 0) as (processes, _):
        asyncio.run(ask(processes.address))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_client_ends(cluster: Any, tmp_path: Path, number: signal.Signals) -> None:
    processes, client = cluster
    truth, found = written(tmp_path)
    (tmp_path / "scratch").mkdir()
    client.run(dying.make_partitions_wait, str(tmp_path / "mark"))
    process = subprocess.Popen(
        command(
            "--gt", truth, "--dt", found, "--scheduler", processes.address, "--scratch", tmp_path / "scratch"
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until((tmp_path / "mark").exists)
    process.send_signal(number)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert not printed
    assert said == ("boxscore: interrupted\n" if number == signal.SIGINT else "")
    left = list((tmp_path / "scratch").iterdir())
    assert len(left) == (number == signal.SIGKILL)  # nobody is there to remove it
    (tmp_path / "mark.go").touch()
    until(lambda: not any(client.processing().values()))  # what nobody waits for is forgotten
    until(lambda: not any(client.has_what().values()))


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "boxscore", "evaluate", *map(str, arguments)]


def test_a_local_cluster_is_interrupted(tmp_path: Path) -> None:
    truth, found = written(tmp_path)
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        command("--gt", truth, "--dt", found, "--scheduler", "local", "--workers", 1),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        start_new_session=True,
    )
    try:
        until(lambda: len(descendants(process.pid)) > 1)
        children = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=120)
    finally:
        kill_group(process)
    assert process.returncode == 130
    assert said == "boxscore: interrupted\n"
    until(lambda: not any(map(lives, children)))
    assert not list((tmp_path / "temporary").iterdir())


# ---------------------------------------------------------------- addresses


class _Silent(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class _Banner(socketserver.BaseRequestHandler):
    """Greets as port 22 does: Dask takes it for a size, and has not so much memory."""

    def handle(self) -> None:
        self.request.sendall(b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n" + b"\xff" * 64)
        time.sleep(2)


@contextlib.contextmanager
def listening(kind: str) -> Iterator[str]:
    """Give the address of an address that is not a scheduler."""
    with contextlib.ExitStack() as stack:
        if kind == "http":
            server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Silent))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            yield f"tcp://127.0.0.1:{server.server_port}"
        elif kind == "ssh":
            server = stack.enter_context(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Banner))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
            yield f"tcp://127.0.0.1:{server.server_address[1]}"
        elif kind == "mute":
            mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            yield f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        else:
            yield kind


@pytest.mark.parametrize(
    "kind", ["http", "ssh", "mute", "tcp://127.0.0.1:9", "tls://127.0.0.1:9", "nonsense", "ftp://host:1", ""]
)
@pytest.mark.usefixtures("impatient")
def test_an_address_that_is_no_scheduler(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [str(path) for path in written(tmp_path)]
    start = time.monotonic()
    with listening(kind) as address:
        assert main(["evaluate", *sides, "--scheduler", address]) == 2
    assert time.monotonic() - start < 10 * SECONDS
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith(f"boxscore: error: the scheduler {address} must answer. Got ")
    assert ("certificates" if kind.startswith("tls") else "tcp://host:8786") in said.err


@pytest.mark.usefixtures("impatient")
def test_a_cluster_without_workers_writes_nothing(tmp_path: Path) -> None:
    paths = written(tmp_path)
    (tmp_path / "scratch").mkdir()
    with (
        dask_processes(tmp_path, 0) as (_, client),
        pytest.raises(
            boxscore.InputError, match=r"a cluster must have a worker\. Got none; none connected within"
        ),
    ):
        evaluate(*paths, client=client, scratch=tmp_path / "scratch")
    assert not list((tmp_path / "scratch").iterdir())


def test_a_full_disk(tmp_path: Path) -> None:
    paths = written(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20k", "none", str(small)], capture_output=True
    ).returncode:
        pytest.skip("needs to mount: root, or a container that may")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(small))
            with pytest.raises(boxscore.InputError, match="No space left on device"):
                scan(*paths, partitions=8)
        assert not list(small.iterdir())
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
