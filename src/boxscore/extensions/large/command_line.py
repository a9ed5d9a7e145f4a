"""Evaluate large inputs: Parquet in partitions, by one process or several, or on a cluster."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils.files import temporary_folder
from boxscore._utils.progress import stage
from boxscore.cli.choices import chosen_classes, existing_folder, readers
from boxscore.cli.inputs import (
    chosen_protocol,
    detection_arguments,
    evaluate_inputs,
    ground_truth_arguments,
    protocol_without_scores,
    read_inputs,
)
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.data.column_names import absent_score
from boxscore.data.lookup import UnlistedImagesError
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.engine import value_of
from boxscore.extensions.large.headers import headers_of
from boxscore.extensions.large.image_ranges import WHOLE, Shard
from boxscore.extensions.large.local import Load, LocalEngine, Plan, bytes_of_text, check_scoring, plan_within
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.extensions.large.parts import check_mergeable, save_parts
from boxscore.extensions.large.plan import asked_keys
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.large.result import MergedEvaluation, evaluation_of, warn_of_parts
from boxscore.extensions.large.scanning import Task, streamed, table_tasks
from boxscore.extensions.large.shares import (
    ImageShard,
    NeedsAllRowsError,
    read_detections_of_shard,
    read_truth_of_shard,
    rows_of_shard,
)
from boxscore.extensions.large.source import NO_ROWS, OF_PARTS
from boxscore.extensions.large.streaming import StreamTask
from boxscore.formats.reading import read_options
from boxscore.formats.registry import detect_format, is_parquet
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of

UNLISTED_IN_PARTITIONS = (
    "add these images to the ground truth, or drop their detections first: boxscore convert --gt GT --dt "
    "DT --unlisted-images drop --to parquet --output FILE"
)
"""Advice for unlisted images when partitions are evaluated one by one."""

NOT_STRICT = (
    "--strict covers warnings of partitions but not findings about the input, which need all rows in "
    "memory: see boxscore validate --memory-limit"
)

DRAWN = 80_000_000
"""Extra bytes in the first process when it writes a page or pictures."""

MANY = 1 << 23
"""Number of detections above which evaluation runs in partitions, unless an option needs all rows."""

NOT_IN_PARTITIONS = (
    *("--verify", "--images", "--scoreless", "--report"),
    *("--class-map", "--image-id-offset", "--network-input", "--inside", "--outside"),
)
"""Options that need all rows in memory; a report within a memory limit does not."""

CHOOSES_PARTITIONS = ("--memory-limit", "--shard")


LOCAL = "local"
"""Use in place of an address: a cluster on this machine, with ``--workers`` processes, for this command."""

NOT_ON_CLUSTER = (
    "--report",
    "--verify",
    "--images",
    "--classes",
    "--exclude-classes",
    "--class-map",
    "--image-id-offset",
    "--network-input",
    "--inside",
    "--outside",
    "--memory-limit",
    "--save-part",
    "--shard",
)
"""Options that need all rows in this process."""


def options_given(arguments: argparse.Namespace, options: Sequence[str]) -> list[str]:
    """Return the options among ``options`` that are given."""
    return [
        option
        for option in options
        if getattr(arguments, option.removeprefix("--").replace("-", "_"), None) not in (None, False)
    ]


def refuse_unlisted(how: str | None) -> None:
    """Raise if unlisted images would be dropped or kept: no process sees all detections."""
    if how not in (None, "error"):
        raise InputError(
            "--unlisted-images",
            "be error when detections are evaluated in partitions",
            got=how,
            cause=UNLISTED_IN_PARTITIONS,
        )


@contextlib.contextmanager
def unlisted_in_partitions() -> Iterator[None]:
    """Replace the advice of the error for an unlisted image by advice that works in partitions."""
    try:
        yield
    except UnlistedImagesError as error:
        cause = error.cause.replace(error.remedy, UNLISTED_IN_PARTITIONS)
        raise InputError(error.name, error.rule, got=error.got, place=error.place, cause=cause) from None


def _chosen_by(arguments: argparse.Namespace) -> str | None:
    """Return the option that asks for partitions, if any."""
    return next(iter(options_given(arguments, CHOOSES_PARTITIONS)), None)


def is_larger(arguments: argparse.Namespace) -> bool:
    """Return whether to evaluate in partitions: an option asks for it, or the Parquet file is long."""
    # Find the option that asks for partitions, and the options that need all rows.
    option = _chosen_by(arguments)
    path: Path = arguments.detections
    in_parquet = path.exists() and arguments.dt_format in ("auto", "parquet") and is_parquet(path)
    tables = option == "--shard" and not in_parquet
    needing = options_given(arguments, NOT_IN_PARTITIONS)
    if option == "--memory-limit" and "--report" in needing:
        needing.remove("--report")
    needing += ["--unlisted-images"] if arguments.unlisted_images not in (None, "error") else []
    # Reject combinations of the two.
    if option and not path.exists():
        detect_format(path)  # raises
    if option and not in_parquet and not tables:
        cause = "convert them: boxscore convert --gt GT --dt DT --to parquet --partitions 8 --output FOLDER"
        raise InputError(option, "be used with detections in Parquet", got=repr(str(path)), cause=cause)
    if option and needing:
        cause = "partitions are discarded once matched: use one of the two options"
        if needing[0] == "--unlisted-images":
            cause = UNLISTED_IN_PARTITIONS
        raise InputError(needing[0], f"not be combined with {option}", got="both", cause=cause)
    # Use partitions if an option, several workers or the length of the file call for them.
    if tables:
        return True
    if not in_parquet or needing:
        return False
    if option or (arguments.workers or 1) > 1:
        return True
    if getattr(arguments, "save_part", None) is not None:
        return False
    return ParquetGroups.open(path, read_options(**detection_arguments(arguments))).boxes > MANY


def evaluated_elsewhere(
    arguments: argparse.Namespace, then: Callable[[Evaluation], None]
) -> MergedEvaluation | None:
    """Evaluate on a cluster or in partitions; return None if this process must read all rows.

    ``then`` is called with the result while its partitions can still be read.
    """
    if arguments.scheduler is not None:
        return evaluate_on_cluster(arguments)
    return evaluate_larger(arguments, then) if is_larger(arguments) else None


def save_part_here(
    evaluation: Evaluation, arguments: argparse.Namespace, messages: Sequence[str]
) -> list[str]:
    """Save the evaluation as a part, unless it ran in partitions, which save their own."""
    if source_of(evaluation).is_here:
        evaluation.save_part(arguments.save_part)
    return []


def evaluate_larger(arguments: argparse.Namespace, then: Callable[[Evaluation], None]) -> MergedEvaluation:
    """Evaluate in partitions with ``--workers`` processes.

    ``then`` is called with the result while its partitions can still be read.
    """
    drawn = DRAWN if arguments.report else 0
    with partitions_of(arguments, chosen_protocol(arguments), drawn=drawn) as (engine, tasks, plan):
        parts = engine.match(tasks)
        result = _scored(engine, parts, plan, tasks if arguments.report else ())
        with _name_memory_limit():
            then(result)
        if arguments.save_part is not None:
            shard = None if arguments.shard is None else tuple(shard_of(arguments))
            save_parts(
                arguments.save_part,
                (dataclasses.replace(value_of(part), shard=shard) for part in parts),
            )
        return result


def shard_of(arguments: argparse.Namespace) -> Shard:
    """Parse ``--shard K/N``."""
    text = getattr(arguments, "shard", None)
    if text is None:
        return WHOLE
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError("--shard", "be K/N, such as 1/8, 2/8, ..., 8/8", got=repr(text))
    return Shard(int(match[1]), int(match[2]))


@contextlib.contextmanager
def evaluation_in_parts(arguments: argparse.Namespace, *, drawn: int = 0) -> Iterator[Evaluation]:
    """Evaluate for a further analysis; with ``--memory-limit``, in partitions that stay on disk.

    ``drawn`` is the extra memory of the first process in bytes.
    """
    if arguments.memory_limit is None or not is_larger(arguments):
        yield evaluate_inputs(read_inputs(arguments))
        return
    with (
        partitions_of(arguments, chosen_protocol(arguments), drawn=drawn) as (engine, tasks, plan),
        _name_memory_limit(),
    ):
        yield _scored(engine, engine.match(tasks), plan, tasks, later=True)


@contextlib.contextmanager
def _name_memory_limit() -> Iterator[None]:
    """Name ``--memory-limit`` in the error of an analysis that needs rows."""
    try:
        yield
    except InputError as error:
        if error.cause != NO_ROWS:
            raise
        what = error.name.removesuffix(OF_PARTS)
        cause = "partitions store scores and outcomes, not boxes"
        raise InputError(what, "not be combined with --memory-limit", got="both", cause=cause) from None


def has_scores(arguments: argparse.Namespace) -> bool:
    """Return whether detections in Parquet have a score column."""
    return _detection_groups(arguments).parts.score is not None


def _detection_groups(arguments: argparse.Namespace) -> ParquetGroups:
    """Open detections in Parquet; raise if a column of scores is named but missing."""
    options = read_options(**detection_arguments(arguments))
    groups = ParquetGroups.open(arguments.detections, options)
    absent = absent_score(options.columns, groups.names, str(groups.path))
    if absent is not None:
        raise absent
    return groups


def _without_scores(protocol: Protocol, arguments: argparse.Namespace) -> Protocol:
    """Return the protocol for detections without scores, as if all rows were read at once."""
    return protocol if protocol.matching.scores != "given" else protocol_without_scores(arguments)


def _scored(
    engine: LocalEngine,
    parts: Sequence[Any],
    plan: Plan,
    tasks: Sequence[Task] = (),
    *,
    later: bool = False,
) -> MergedEvaluation:
    headers = headers_of(engine, parts)
    warn_of_parts(headers)
    check_scoring(headers, plan)
    keys = asked_keys(headers[0].protocol)
    return evaluation_of(
        engine, parts, headers, most=plan.most, keys=keys, room=plan.room, tasks=tasks, later=later
    )


def told_of_partitions(
    arguments: argparse.Namespace,
    protocol: Protocol,
    function: Callable[..., Any],
    options: Mapping[str, Any],
) -> list[Any]:
    """Return ``function(truth, detections, ...)`` of each partition, without matching.

    The function also gets the rows of each table in its files, the number of ``partitions``, and ``options``.
    """
    with partitions_of(arguments, protocol, matched=False) as (engine, tasks, _):
        options = {**options, "partitions": len(tasks)}
        calls = [engine.submit(f"partition {task.number}", _apply, task, function, options) for task in tasks]
        return engine.results(calls, shown="reading")


def _apply(task: StreamTask, function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    return task.told(function, options)


@contextlib.contextmanager
def partitions_of(
    arguments: argparse.Namespace,
    protocol: Protocol,
    *,
    matched: bool = True,
    drawn: int = 0,
) -> Iterator[tuple[LocalEngine, list[Any], Plan]]:
    """Split the input into tasks; yield the engine, the tasks and the plan for memory.

    ``drawn`` is the extra memory of the first process in bytes.
    """
    # Parse limits, workers and the folder for temporary files.
    shard = shard_of(arguments)
    if matched:
        check_mergeable(protocol)
    limit = None if arguments.memory_limit is None else bytes_of_text(arguments.memory_limit)
    workers = 1 if arguments.workers is None else readers(arguments)
    scratch = existing_folder(getattr(arguments, "scratch", None), name="--scratch")
    # Tables are one task; only one shard is read if the format allows.
    if not is_parquet(arguments.detections):
        with temporary_folder(scratch) as folder, LocalEngine(folder, 1) as engine:
            yield engine, _tasks_of_tables(arguments, protocol, shard), plan_within(None, Load(0), 1)
        return
    options = detection_arguments(arguments)
    options.pop("class_map")
    refuse_unlisted(options.pop("unlisted_images"))
    # The number of boxes, from the footers, decides the size of a partition.
    truth, truth_options = arguments.ground_truth, ground_truth_arguments(arguments)
    sides = [_detection_groups(arguments)]
    protocol = protocol if sides[0].parts.score is not None else _without_scores(protocol, arguments)
    in_parquet = is_parquet(truth, "ground truth")
    if in_parquet:
        sides.append(ParquetGroups.open(truth, read_options(**truth_options)))
    # Plan with everything that is in memory at the same time.
    load = Load.of(sides, None if in_parquet else truth).of_shard(shard.shares)
    load = load._replace(first=load.first + drawn)
    plan = plan_within(limit, load, workers)
    if arguments.strict and matched:
        say(f"note: {NOT_STRICT}", name="boxscore")
    by_option = _chosen_by(arguments) is not None  # otherwise the caller handles unlisted images
    # Close everything when the caller is done.
    with (
        unlisted_in_partitions() if by_option else contextlib.nullcontext(),
        temporary_folder(scratch) as folder,
        streamed(
            truth,
            arguments.detections,
            protocol,
            partition=plan.partition,
            truth_options=truth_options,
            options=options,
            classes=lambda categories: chosen_classes(
                getattr(arguments, "classes", None), categories, getattr(arguments, "exclude_classes", None)
            ),
            scratch=folder,
            shard=shard,
        ) as tasks,
        LocalEngine(folder, workers, sparing=limit is not None) as engine,
    ):
        yield engine, list(tasks), plan


def _tasks_of_tables(arguments: argparse.Namespace, protocol: Protocol, shard: Shard) -> list[Task]:
    """Return the task of a shard of tables; read all rows if the formats cannot read a shard."""
    try:
        return _tasks_of_shard(arguments, protocol, shard)
    except NeedsAllRowsError:
        inputs = read_inputs(arguments)
    protocol = protocol if inputs.detections.scored else _without_scores(protocol, arguments)
    truth, ids = inputs.ground_truth, inputs.ground_truth.images.ids.tolist()
    shares = [rows_of_shard(len(ids), number, shard.shares) for number in range(1, shard.shares + 1)]
    tasks = table_tasks(
        truth, inputs.detections, protocol, [ids[share] for share in shares], classes=inputs.classes
    )
    return [task for task in tasks if task.number == shard.number - 1] or [tasks[0].without_images()]


def _tasks_of_shard(arguments: argparse.Namespace, protocol: Protocol, shard: Shard) -> list[Task]:
    """Read only the shard of both sides, if their formats can."""
    share = ImageShard(*shard)
    common: dict[str, Any] = {**needs_of(protocol), "processes": 1}
    truth_options = read_options(**ground_truth_arguments(arguments), **common)
    options = read_options(**detection_arguments(arguments), **common)
    stage(f"reading share {shard.number} of {shard.shares}")
    truth = read_truth_of_shard(arguments.ground_truth, truth_options, share)
    detections = read_detections_of_shard(arguments.detections, truth, options, share)
    if len(detections) and not detections.scored:
        protocol = _without_scores(protocol, arguments)
    classes = chosen_classes(arguments.classes, truth.categories, arguments.exclude_classes)
    return list(table_tasks(truth, detections, protocol, None, classes=classes))


# ---------------------------------------------------------------- on a cluster


def evaluate_on_cluster(arguments: argparse.Namespace) -> MergedEvaluation:
    """Evaluate on the cluster that ``--scheduler`` names."""
    refuse_needs_of_rows(arguments)
    with cluster_of(arguments) as client:
        return evaluate_by(client, arguments)


def refuse_needs_of_rows(arguments: argparse.Namespace) -> None:
    """Raise if an option needs the rows in this process."""
    for option in options_given(arguments, NOT_ON_CLUSTER):
        cause = "rows stay on the cluster; use one of the two options"
        raise InputError(option, "not be combined with --scheduler", got="both", cause=cause)


@contextlib.contextmanager
def cluster_of(arguments: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster that ``--scheduler`` names, or start a temporary one on this machine."""
    from boxscore.extensions.large.cluster import cluster_client, local_cluster

    if arguments.scheduler == LOCAL:
        cluster = local_cluster(arguments.workers)
    else:
        cluster = cluster_client(arguments.scheduler)
    with cluster as client:
        if stderr_is_terminal() and client.dashboard_link and client.scheduler_info()["services"]:
            say(f"the cluster's dashboard: {client.dashboard_link}")
        yield client


def evaluate_by(client: Any, arguments: argparse.Namespace) -> MergedEvaluation:
    """Evaluate on a cluster; the parts stay on its workers while the result exists."""
    from boxscore.extensions.large.cluster import evaluate

    options = detection_arguments(arguments)
    options.pop("class_map")
    refuse_unlisted(options.pop("unlisted_images"))
    protocol = chosen_protocol(arguments)
    if is_parquet(arguments.detections) and not has_scores(arguments):
        protocol = _without_scores(protocol, arguments)
    with unlisted_in_partitions():
        return evaluate(
            arguments.ground_truth,
            arguments.detections,
            protocol=protocol,
            client=client,
            scratch=arguments.scratch,
            truth_options=ground_truth_arguments(arguments),
            options=options,
        )
