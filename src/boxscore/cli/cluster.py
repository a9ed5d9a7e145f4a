"""Evaluates on a Dask cluster: one that is there, or one of this machine's processes."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from boxscore.cli.inputs import (
    chosen_protocol,
    detection_arguments,
    ground_truth_arguments,
    refuse_unlisted,
    unlisted_in_partitions,
)
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.errors import InputError

LOCAL = "local"
"""In place of an address: a cluster on this machine for this command, of ``--workers`` processes."""

NEEDS_ROWS = {
    "report": "--report",
    "verify": "--verify",
    "images": "--images",
    "classes": "--classes",
    "class_map": "--class-map",
    "memory_limit": "--memory-limit",
    "save_part": "--save-part",
    "shard": "--shard",
}
"""Options that need the rows here, and what they are called."""


def evaluate_on_cluster(arguments: argparse.Namespace) -> Any:
    """Evaluate on the cluster that ``--scheduler`` names.

    Returns
    -------
    DistributedEvaluation, or BoundedEvaluation with ``--bounds``
    """
    from boxscore.distributed.cluster import cluster_client, evaluate, local_cluster

    for name, option in NEEDS_ROWS.items():
        if getattr(arguments, name, None) not in (None, False):
            cause = "rows stay on the cluster; leave out one of the two"
            raise InputError(option, "be left out with --scheduler", got="both", cause=cause)
    with contextlib.ExitStack() as stack, unlisted_in_partitions():
        if arguments.scheduler == LOCAL:
            client = stack.enter_context(local_cluster(arguments.workers))
        else:
            client = stack.enter_context(cluster_client(arguments.scheduler))
        if stderr_is_terminal() and client.dashboard_link and client.scheduler_info()["services"]:
            say(f"the cluster's dashboard: {client.dashboard_link}")
        options = detection_arguments(arguments)
        options.pop("class_map")
        refuse_unlisted(options.pop("unlisted_images"))
        return evaluate(
            arguments.ground_truth,
            arguments.detections,
            protocol=chosen_protocol(arguments),
            client=client,
            exact=not arguments.bounds,
            scratch=arguments.scratch,
            truth_options=ground_truth_arguments(arguments),
            options=options,
        )
