"""Evaluates on a Dask cluster: one that is there, or one of this machine's processes."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from boxscore.cli.inputs import (
    chosen_protocol,
    detection_arguments,
    ground_truth_arguments,
    options_given,
    refuse_unlisted,
    unlisted_in_partitions,
)
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.errors import InputError

if TYPE_CHECKING:
    from boxscore.extensions.large.result import MergedEvaluation

LOCAL = "local"
"""In place of an address: a cluster on this machine for this command, of ``--workers`` processes."""

NOT_ON_CLUSTER = (
    "--report",
    "--verify",
    "--images",
    "--classes",
    "--class-map",
    "--memory-limit",
    "--save-part",
    "--shard",
)
"""Options that need the rows here."""


def evaluate_on_cluster(arguments: argparse.Namespace) -> MergedEvaluation:
    """Evaluate on the cluster that ``--scheduler`` names."""
    refuse_needs_of_rows(arguments)
    with cluster_of(arguments) as client:
        return evaluate_by(client, arguments)


def refuse_needs_of_rows(arguments: argparse.Namespace) -> None:
    """Refuse the options that need the rows here."""
    for option in options_given(arguments, NOT_ON_CLUSTER):
        cause = "rows stay on the cluster; leave out one of the two"
        raise InputError(option, "be left out with --scheduler", got="both", cause=cause)


@contextlib.contextmanager
def cluster_of(arguments: argparse.Namespace) -> Iterator[Any]:
    """Connect to the cluster that ``--scheduler`` names, or start one on this machine, for a while."""
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
    """Evaluate on a cluster; its parts stay there for as long as the result is held."""
    from boxscore.extensions.large.cluster import evaluate

    options = detection_arguments(arguments)
    options.pop("class_map")
    refuse_unlisted(options.pop("unlisted_images"))
    with unlisted_in_partitions():
        return evaluate(
            arguments.ground_truth,
            arguments.detections,
            protocol=chosen_protocol(arguments),
            client=client,
            scratch=arguments.scratch,
            truth_options=ground_truth_arguments(arguments),
            options=options,
        )
