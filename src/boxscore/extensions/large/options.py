"""Options for data larger than memory: partitions, shards, parts, clusters."""

from __future__ import annotations

from pathlib import Path

from boxscore.cli.arguments import Option

LARGE = "larger than memory"

MEMORY_LIMIT = Option(
    "memory-limit",
    "for detections in Parquet: evaluate in partitions that fit in this much memory, e.g. 8GB; fails "
    "immediately if they cannot",
    metavar="SIZE",
    key="evaluation.memory_limit",
    topic=LARGE,
)
SHARD = Option(
    "shard",
    "evaluate only one of N shards of the images, 1/N to N/N; only this shard is read from Parquet",
    metavar="K/N",
    key="evaluation.shard",
    topic=LARGE,
)
SAVE_PART = Option(
    "save-part",
    "also save the evaluation of these images as a part (.npz), which boxscore merge combines with others",
    kind=Path,
    metavar="FILE.npz",
    key="output.save_part",
    writes=(".",),
    topic=LARGE,
    does="boxscore.extensions.large.command_line:save_part_here",
)
SCHEDULER = Option(
    "scheduler",
    "evaluate on a Dask cluster, tcp://HOST:PORT, whose workers can read the files; or local for "
    "--workers processes on this machine",
    metavar="ADDRESS",
    key="evaluation.scheduler",
    topic=LARGE,
)
SCRATCH = Option(
    "scratch",
    "folder for temporary files of partitions; with --scheduler, one shared by this machine and the "
    "workers (default: the system's temporary folder)",
    kind=Path,
    metavar="DIR",
    key="evaluation.scratch",
    writes=("boxscore-*",),
    topic=LARGE,
)
OPTIONS = (MEMORY_LIMIT, SHARD, SAVE_PART, SCHEDULER, SCRATCH)
"""Options of ``boxscore evaluate``."""

OF_SUPPRESSION = (
    MEMORY_LIMIT.but(
        help="for detections in Parquet: suppress partitions that fit in this much memory, e.g. 8GB",
        does="boxscore.extensions.large.rewriting_command:suppress_in_parts",
    ),
)
"""Options of ``boxscore nms``."""
