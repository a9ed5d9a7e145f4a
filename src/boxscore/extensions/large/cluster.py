"""Evaluate a data set on the workers of a Dask cluster, with the same bits as in one process.

Conventions
-----------
- Dask schedules. A task is a pure function of its arguments, so it runs again elsewhere if its worker dies.
  If a task keeps killing its workers, the error names it and nothing is scored.
- Workers read files themselves, under the same paths. Temporary files (regrouped rows, partitions of frames)
  go to a folder that workers must see too; it is removed at the end.
- Each task checks that its worker has the client's version of boxscore.
- Every wait has a timeout: while no result arrives, the driver asks the scheduler whether it is up and has
  workers that take tasks. Dask would wait forever.
- Task names on the dashboard: ``boxscore-match``, ``boxscore-cut-classes``, ``boxscore-score-classes``,
  ``boxscore-count-class``, ``boxscore-score-class``, ``boxscore-histogram``.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.util
import itertools
import logging
import sys
import time
import types
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import temporary_folder, unfinished
from boxscore._utils.given_paths import path_of
from boxscore._utils.processes import available_processors, quiet_children
from boxscore._utils.progress import progress
from boxscore._version import __version__
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError, MissingDependencyError
from boxscore.evaluation import tables_of
from boxscore.extensions.large.headers import headers_of
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.extensions.large.parts import Part, check_mergeable
from boxscore.extensions.large.plan import MOST, most_of, partition_of
from boxscore.extensions.large.result import MergedEvaluation, evaluation_of, warn_of_parts
from boxscore.extensions.large.scanning import Task, run_task, streamed, table_tasks
from boxscore.extensions.large.streaming import PARTITION, StreamTask
from boxscore.formats.reading import load_both, read_options
from boxscore.formats.registry import is_parquet
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of

MOST_SUSPECTS = 16
"""Partitions to try one by one when workers die."""

PATIENCE = 30
"""Seconds to wait for an answer, for a first worker, and for a worker to return."""

LOGGERS = ("client", "core", "comm", "batched", "utils")

LOST = "a lost connection, or tasks that were canceled"

POLL = 0.01
"""Seconds between polls for results."""

ROW_GROUP = 1 << 17

MALLOC_SETTINGS = {
    f"distributed.nanny.pre-spawn-environ.{name}": value
    for name, value in (
        ("MALLOC_TRIM_THRESHOLD_", 1 << 28),
        ("MALLOC_MMAP_THRESHOLD_", 1 << 25),
        ("MALLOC_ARENA_MAX", 1),
    )
}
"""Let workers keep freed memory: by default Dask returns it to the system, which doubles the time."""


def evaluate(
    truth: Any,
    detections: Any,
    *,
    protocol: str | Path | Mapping[str, Any] | Protocol = "coco",
    client: Any = None,
    partitions: int | None = None,
    scratch: str | Path | None = None,
    truth_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> MergedEvaluation:
    """Evaluate on a Dask cluster.

    Parameters
    ----------
    truth : str, Path, GroundTruth, or pandas or Dask DataFrame
        A Parquet file or folder, anything that :func:`boxscore.load_ground_truth` reads, or a frame with
        columns that Parquet files may have.
    detections : str, Path, Detections, or pandas or Dask DataFrame
        The same for detections. Rows may be in any order and file: the rows of an image are regrouped first
        if they are not together.
    protocol : str, Path, mapping or Protocol, default "coco"
    client : distributed.Client, optional
        Default: the current client, or else a local cluster with a worker per processor for this call.
    partitions : int, optional
        Approximate number of partitions. Default: about a million boxes each.
    scratch : str or Path, optional
        Folder for temporary files that client and workers see. Default: the temporary folder of this machine,
        which works if the workers are on it.
    truth_options, options : mapping, optional
        Keyword arguments of :func:`boxscore.load_ground_truth` and :func:`boxscore.load_detections`.

    Returns
    -------
    MergedEvaluation
        Same bits as :func:`boxscore.evaluate`, for any number of partitions and workers.

    Raises
    ------
    FileFormatError
        If a file breaks a rule; the message names file, row group and row.
    InputError
        If a detection is in an unknown image, the cluster does not answer, a worker has another version of
        boxscore, or a partition kills every worker that takes it.
    ProtocolError
        If the protocol cannot be evaluated in partitions.
    MissingDependencyError
        If Dask is not installed.
    """
    # Reject invalid input before contacting the cluster.
    chosen = load_protocol(protocol)
    check_mergeable(chosen)
    if partitions is not None:
        checks.whole_number(partitions, 1, name="partitions", high=1 << 20)
    # Close everything that is opened here at the end of the call.
    with contextlib.ExitStack() as stack:
        if client is None:
            client = _current_client() or stack.enter_context(local_cluster())
        with _answering():
            _check_client(client)  # before anything is written
        folder = stack.enter_context(temporary_folder(None if scratch is None else Path(scratch)))
        with _answering():
            truth = _as_file(truth, folder / "truth", client)
            detections = _as_file(detections, folder / "detections", client)
        # Workers read their own row groups of Parquet files.
        if isinstance(detections, Path) and is_parquet(detections):
            tasks: Sequence[Task] = stack.enter_context(
                streamed(
                    truth,
                    detections,
                    chosen,
                    partitions=partitions,
                    partition=_partition_of(detections, options or {}, client),
                    scratch=folder,
                    truth_options=truth_options,
                    options=options,
                )
            )
        # The client reads other files and sends them to the workers in partitions.
        else:
            if isinstance(truth, Path) and isinstance(detections, Path):
                common = needs_of(chosen)
                truth, detections = load_both(
                    truth,
                    detections,
                    read_options(**common, **(truth_options or {})),
                    read_options(**common, **(options or {})),
                )
            tasks = table_tasks(*tables_of(truth, detections, chosen), chosen, partitions)
        return evaluate_tasks(tasks, client)


def evaluate_tasks(tasks: Sequence[Task], client: Any) -> MergedEvaluation:
    """Evaluate the tasks of a data set on a cluster, as :func:`evaluate` does."""
    with _answering():
        engine = DaskEngine(client)
        with engine.cancel_on_error():
            parts = engine.match(tasks)
            headers = headers_of(engine, parts)
            warn_of_parts(headers)
            return evaluation_of(engine, parts, headers, most=most_of(headers, MOST, _memory_of_task(client)))


# ---------------------------------------------------------------- the engine


class DaskEngine:
    """Run functions on the workers of a client.

    Parameters
    ----------
    client : distributed.Client

    Raises
    ------
    InputError
        Without workers, or if they have another version of boxscore.
    """

    def __init__(self, client: Any) -> None:
        _check_client(client)
        self.client = client
        self._run = uuid.uuid4().hex[:8]
        self._number = itertools.count()
        self._matching: list[tuple[Any, Task]] = []
        self._futures: weakref.WeakSet[Any] = weakref.WeakSet()  # drops futures without references

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function; arguments may be futures returned by this method, also in lists."""
        key = f"boxscore-{name}-{next(self._number)}-{self._run}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # tables must be sent
            future = self.client.submit(_checked, __version__, function, *arguments, key=key, pure=False)
        self._futures.add(future)
        return future

    def match(self, tasks: Sequence[Task]) -> list[Any]:
        """Start matching all partitions."""
        # Send tables that all tasks share once, as the result of a task.
        sides: dict[int, Any] = {}

        def once(value: Any) -> Any:
            """Wrap a shared value in a task; scattered data would die with its worker."""
            if id(value) not in sides:
                sides[id(value)] = self.submit("side", _same, value)
            return sides[id(value)]

        parts = []
        # Send a streaming task without its tables; the worker puts them back.
        for task in tasks:
            if isinstance(task, StreamTask):
                truth = task.truth if isinstance(task.truth, GroundTruth) else once(task.truth)
                bare: Any = dataclasses.replace(task, detections=None, truth=None)  # type: ignore[arg-type]
                future = self.submit("match", _match_stream, bare, once(task.detections), truth)
            else:
                future = self.submit("match", run_task, task)
            self._matching.append((future, task))
            parts.append(future)
        return parts

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Wait for the results of tasks, with progress; raise the first error."""
        _, distributed = _dask()
        by_key = {}
        done = distributed.as_completed(list(tasks), with_results=True, loop=self.client.loop)
        try:
            for future, result in progress(
                self._as_they_come(done), total=len(tasks), desc=shown, unit="task"
            ):
                if future.status == "error":
                    raise result[1]
                if future.status in ("lost", "pending"):  # its worker died before the result was fetched
                    done.add(future)
                    continue
                if future.status != "finished":  # Dask cancels tasks when it loses the scheduler
                    raise ConnectionError(LOST)
                by_key[future.key] = result
        except distributed.scheduler.KilledWorker as error:
            raise self._killed(error) from None
        if len(by_key) < len({task.key for task in tasks}):
            raise ConnectionError(LOST)
        return [by_key[task.key] for task in tasks]

    def _as_they_come(self, done: Any) -> Iterator[Any]:
        """Yield results as they arrive; while none do, check that workers are still running."""
        asked, idle = time.monotonic(), 0
        while not done.is_empty():
            if done.has_ready():
                yield from done.next_batch(block=False)
                asked, idle = time.monotonic(), 0
            elif time.monotonic() - asked > PATIENCE / 2:
                at_work = self._is_at_work()
                asked, idle = time.monotonic(), 0 if at_work else idle + 1
                if idle > 1:
                    raise self._without_workers()
            else:
                time.sleep(POLL)

    def _is_at_work(self) -> bool:
        """Return whether a worker is executing or takes tasks; a worker paused for memory takes none."""
        return any(
            worker["status"] == "running" or worker["metrics"].get("executing", 0)
            for worker in _workers_of(self.client).values()
        )

    def _without_workers(self) -> InputError:
        count = len(_workers_of(self.client))
        return InputError(
            "a cluster",
            "have a worker that takes tasks",
            got=f"{count} waiting for memory" if count else f"none for {PATIENCE} seconds",
            cause="use more partitions or more memory per worker; finished work is lost",
        )

    def _killed(self, error: Any) -> InputError:
        """Return an error that names the partition that kills its workers.

        Dask blames every task on a worker that died, so unfinished partitions run again one by one, alone.
        """
        # Failed tasks first, then unfinished ones; finished tasks are not suspects.
        _, distributed = _dask()
        suspects = [(future.status != "error", n) for n, (future, _) in enumerate(self._matching)]
        open_ones = [n for _, n in sorted(suspects) if self._matching[n][0].status != "finished"]
        # Cancel everything else, so that each suspect runs alone.
        tasks = [self._matching[n][1] for n in open_ones[:MOST_SUSPECTS]]
        _ask(self.client, self.client._cancel, list(self._futures))
        # Find the first partition that kills a worker on its own.
        what = f"the work of the cluster ({getattr(error, 'task', 'a task')})"
        for task in tasks:
            error = self.match([task])[0].exception()
            if isinstance(error, distributed.scheduler.KilledWorker):
                what = _name_of(task)
                break
        tries = int(getattr(error, "allowed_failures", 3)) + 1
        return InputError(
            what,
            "be finished by a worker",
            got=f"{tries} workers that died one after another",
            cause="out of memory? Use more partitions or more memory per worker",
        )

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Return the tasks: they run already, and results stay on the workers."""
        return list(tasks)

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Fetch parts to this process."""
        with _answering():
            gathered: list[Any] = self.client.gather(list(parts))
            return gathered

    @contextlib.contextmanager
    def asked_again(self) -> Iterator[None]:
        """Check the cluster, and cancel tasks submitted in the context on an error."""
        with _answering():
            _check_client(self.client)
            with self.cancel_on_error():
                yield

    @contextlib.contextmanager
    def cancel_on_error(self) -> Iterator[None]:
        """Cancel running tasks if the context raises; otherwise drop the references to them."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(Exception):  # the client may be closed
                if self.client.status == "running":
                    _ask(self.client, self.client._cancel, list(self._futures))
            raise
        finally:
            self._futures = weakref.WeakSet()


def _name_of(task: Task) -> str:
    if isinstance(task, StreamTask):
        return f"partition {task.number} of {task.detections.groups.path} ({task.ids})"
    return f"partition {task.number} of {task.detections.source}"


# ---------------------------------------------------------------- on workers


def _checked(version: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function if this worker has the client's version of boxscore."""
    if version != _own_version():
        raise _other_version(version, _own_version())
    return function(*arguments)


def _own_version() -> str:
    from boxscore import _version

    return _version.__version__


def _other_version(version: str, other: str, place: str = "a worker") -> InputError:
    return InputError(
        "workers",
        f"have boxscore {version}, as the client does",
        got=other,
        place=place,
        cause="install the same version everywhere",
    )


def _match_stream(task: Any, detections: Any, truth: Any) -> Part:
    whole: StreamTask = dataclasses.replace(task, detections=detections, truth=truth)
    for source in (whole.source, whole.truth_source):
        if source.file is not None and not source.file.parent.is_dir():
            raise InputError(
                "the folder of regrouped rows",
                "be visible to the workers",
                got=repr(str(source.file.parent)),
                cause="pass scratch=, a folder that client and workers share; or was the folder deleted "
                "after the evaluation?",
            )
    return whole.run()


def _same(value: Any) -> Any:
    return value


def _write_part(frame: Any, path: str) -> int:
    """Write one partition of a frame atomically."""
    pa, pq = _arrow()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    unfinished_path = f"{path}.{uuid.uuid4().hex}"
    pq.write_table(table, unfinished_path, row_group_size=ROW_GROUP)
    Path(unfinished_path).replace(path)
    return len(table)


# ---------------------------------------------------------------- frames


def _as_file(side: Any, folder: Path, client: Any) -> Any:
    """Return a path or a table; write frames to Parquet, one file per partition, in order."""
    # Paths and tables are used as they are.
    if isinstance(side, str):
        return path_of(side)
    if isinstance(side, (Path, GroundTruth, Detections)):
        return side
    # Write a frame in memory to one file.
    module = type(side).__module__.partition(".")[0]
    if module == "pandas" and hasattr(side, "columns"):
        _write_part(side, str(folder / "00000000.parquet"))
        return folder
    # Let each worker write its partitions, so that this process never holds the frame.
    if hasattr(side, "to_delayed") and hasattr(side, "npartitions"):
        files = [folder / f"{number:08d}.parquet" for number in range(side.npartitions)]
        engine = DaskEngine(client)
        with engine.cancel_on_error():
            frames = client.compute(side.to_delayed())
            written = engine.results(
                [
                    engine.submit("write", _write_part, frame, str(file))
                    for frame, file in zip(frames, files, strict=True)
                ],
                shown="writing",
            )
        # A folder that only the workers see would look empty here.
        missing = [file for file, rows in zip(files, written, strict=True) if not file.exists()]
        if missing:
            cause = "pass scratch=, a folder that client and workers share"
            raise InputError(
                "the output of workers",
                "be visible on this machine",
                got=f"no file {missing[0].name}",
                cause=cause,
            )
        # Empty partitions have untyped columns; delete their files unless all are empty.
        for file, rows in zip(files, written, strict=True):
            if not rows and any(written):
                file.unlink()
        return folder
    raise InputError(
        "ground truth and detections",
        "be paths, tables, or pandas or Dask DataFrames",
        got=f"a {type(side).__name__}",
    )


# ---------------------------------------------------------------- clusters


def _arrow() -> tuple[Any, Any]:
    from boxscore.formats.parquet import arrow

    return arrow()


def _dask() -> tuple[Any, Any]:
    """Return dask and distributed."""
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingDependencyError("A cluster needs Dask: pip install 'boxscore[dask]'.") from None
    return dask, distributed


def _current_client() -> Any:
    _, distributed = _dask()
    try:
        return distributed.default_client()
    except ValueError:
        return None


@contextlib.contextmanager
def cluster_client(address: str) -> Iterator[Any]:
    """Connect to a scheduler, and disconnect at the end.

    Parameters
    ----------
    address : str
        For example ``tcp://host:8786``.

    Yields
    ------
    distributed.Client

    Raises
    ------
    InputError
        If nothing answers at the address.
    """
    _, distributed = _dask()
    failure: Exception | None = None
    with _without_logs():
        try:
            asyncio.run(_greet(address))
            with warnings.catch_warnings():  # only the version of boxscore matters
                warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
                client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except Exception as error:  # any server may listen there and answer anything
            failure = error
        if failure is not None:  # raised outside the handler: its MemoryError does not mean low memory
            raise _no_scheduler(address, failure)
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):
                client.close(timeout=PATIENCE / 10)


def _no_scheduler(address: str, error: Exception) -> InputError:
    cause = "pass the address that the scheduler prints, such as tcp://host:8786, or local"
    if isinstance(error, TypeError) and "ssl" in str(error):
        cause = "set the certificates in Dask's configuration: distributed.comm.tls"
    got = "nothing" if isinstance(error, (TimeoutError, asyncio.TimeoutError)) else _first_line(error)
    if isinstance(error, MemoryError):
        got = "an address that is not a scheduler"
    return InputError(f"the scheduler {address}", "answer", got=got, cause=cause)


async def _greet(address: str) -> None:
    """Exchange greetings with a scheduler within a timeout, which Dask's client lacks."""
    _, distributed = _dask()
    options = distributed.Security().get_connection_args("client")
    greeting = distributed.comm.connect(address, timeout=PATIENCE, **options)
    (await asyncio.wait_for(greeting, PATIENCE)).abort()


@contextlib.contextmanager
def _without_script() -> Iterator[None]:
    """Stop child processes from importing the caller's script; tasks do not need it."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")  # multiprocessing reads its file name
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextlib.contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Any]:
    """Start a cluster on this machine, and stop all its processes at the end.

    Parameters
    ----------
    workers : int, optional
        Number of processes. Default: one per processor.

    Yields
    ------
    distributed.Client
    """
    dask, distributed = _dask()
    count = workers or available_processors()
    with _without_script(), temporary_folder() as folder:  # workers spill to this folder
        temporary = dask.config.set({**MALLOC_SETTINGS, "temporary-directory": str(folder)})
        with warnings.catch_warnings(), temporary, quiet_children():
            warnings.simplefilter("ignore")  # ports in use
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0" if importlib.util.find_spec("bokeh") else None,
                silence_logs=logging.CRITICAL,
            )

        def end() -> None:
            for nanny in list(cluster.workers.values()):  # nannies cannot stop their workers this fast
                with contextlib.suppress(Exception):
                    nanny.process.process.kill()

        with unfinished(end), cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


def _ask(client: Any, question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Send a request to a cluster with a timeout."""
    return client.sync(question, *arguments, callback_timeout=PATIENCE, **options)


def _workers_of(client: Any) -> dict[str, Any]:
    """Return the scheduler's entry for each worker, by address."""
    if client.scheduler is None:
        raise ConnectionError(LOST)
    return dict(_ask(client, client.scheduler.identity)["workers"])


def _check_client(client: Any) -> None:
    """Check that a client is usable and has workers with this version of boxscore."""
    _, distributed = _dask()
    if not isinstance(client, distributed.Client):
        cause = "create one with distributed.Client(address)"
        raise InputError("client", "be a Client of Dask", got=f"a {type(client).__name__}", cause=cause)
    if client.asynchronous:
        raise InputError("client", "be synchronous", got="an asynchronous one")
    if client.status != "running":
        got = f"a client that is {client.status}"
        raise InputError("the cluster", "answer", got=got, cause="did the scheduler or the client stop?")
    if not _workers_of(client):
        wake = client.submit(_same, 0, key=f"boxscore-start-{uuid.uuid4().hex[:8]}", pure=False)
        until = time.monotonic() + PATIENCE  # adaptive clusters start workers for the first task
        while not _workers_of(client):
            if time.monotonic() > until:
                wake.cancel()
                cause = f"none connected within {PATIENCE} seconds; start one with: dask worker ADDRESS"
                raise InputError("a cluster", "have a worker", got="none", cause=cause)
            time.sleep(0.1)
    versions = _ask(client, client._run, _own_version, on_error="return")
    for worker, version in versions.items():
        if isinstance(version, OSError):
            continue  # the worker left; each task checks the version again
        if isinstance(version, Exception):
            raise _other_version(__version__, f"none ({_first_line(version)})", worker)
        if version != __version__:
            raise _other_version(__version__, str(version), worker)


def _partition_of(detections: Path, options: Mapping[str, Any], client: Any) -> int:
    """Return the number of boxes per partition, from the size of the files and the memory of workers."""
    boxes = ParquetGroups.open(detections, read_options(**options)).boxes
    return partition_of(boxes, PARTITION, _memory_of_task(client))


def _memory_of_task(client: Any) -> int | None:
    """Return half the memory limit per thread of the smallest worker, in bytes."""
    limits = [
        worker["memory_limit"] // (2 * worker["nthreads"])
        for worker in _workers_of(client).values()
        if worker.get("memory_limit")
    ]
    return min(limits, default=None)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:150] or type(error).__name__


class _DropRecords(logging.Filter):
    """Drop log records: our error repeats what Dask logs with tracebacks."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop everything."""
        return False


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Suppress Dask's logs of lost connections."""
    drop_records = _DropRecords()
    loggers = [logging.getLogger(f"distributed.{name}") for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(drop_records)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(drop_records)


@contextlib.contextmanager
def _answering() -> Iterator[None]:
    """Convert everything that Dask raises for a lost cluster to one error."""
    # Exceptions of a lost scheduler, worker or client.
    _, distributed = _dask()
    from concurrent.futures import CancelledError

    lost = (
        distributed.comm.CommClosedError,
        distributed.client.FutureCancelledError,
        CancelledError,
        asyncio.CancelledError,
        TimeoutError,
        asyncio.TimeoutError,
        ConnectionError,
    )
    # Silence Dask's logs, which would repeat the error many times.
    try:
        with _without_logs():
            yield
    except InputError:
        raise
    except Exception as error:
        # A closed client raises RuntimeError; only the text tells it from others.
        shut = isinstance(error, RuntimeError) and ("client" in str(error).lower() or "IOLoop" in str(error))
        if not (shut or isinstance(error, lost)):
            raise
        cause = "did the scheduler or the client stop? Finished work is lost"
        raise InputError("the cluster", "answer", got=_first_line(error).rstrip("."), cause=cause) from None
