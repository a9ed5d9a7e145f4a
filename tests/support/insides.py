"""The one door to the insides of boxscore.matching, boxscore.scoring and boxscore.distributed.

Everything else that is tested of them is asked of their faces: ``evaluate``, ``Evaluation``, ``scan``,
``merge``. What stands here has a contract of its own, which no answer shows as sharply:

- ``Matches``, ``merge_matches``: matches are values, which merge in any order.
- ``heaviest_matching``: the pairs of the largest sum, each row and column once.
- ``WeightSums``: sums of image weights up to positions of a list; ``weight_table``: what it takes.
- ``column_sums``: sums of columns with the bits of NumPy's; ``RunValues``: values that repeat, of sets of classes;
  ``points_up_to``: recall points that are reached.
- ``components``, ``most_and_heaviest``, ``match_whole_groups``, ``Pairs``: the most pairs, and of these the largest sum; in blocks.
- ``distributed_evaluation``, ``Here``, ``LocalEngine``: parts to a result as on a cluster, without one.
- ``asked_again``: a result whose partitions are read again for questions about boxes.
- ``plan_within``, ``Load``, ``bytes_of_plan``: how large partitions may be within a memory limit.
- ``partition_of``, ``most_of``, ``headers_of``: what sizes follow from the data on a cluster.
- ``score_classes``, ``StreamTask``: where a worker is held up, to be killed while it scores or matches.
- ``evaluate_tasks``, ``local_cluster``: a cluster, and tasks that die on it.
- ``check_mergeable``, ``prepared``: what rules refuse, and what they make of tables.
- ``packed``, ``match_part``, ``Cut``, ``cut``, ``MergedParts``, ``bit_type``: the roads of a column from matches to parts and back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from boxscore.distributed import DistributedEvaluation
from boxscore.extensions.crowds.jaccard_metric import heaviest_matching
from boxscore.extensions.large import local
from boxscore.extensions.large.cluster import evaluate_tasks, local_cluster
from boxscore.extensions.large.engine import Here
from boxscore.extensions.large.headers import headers_of
from boxscore.extensions.large.local import Load, LocalEngine, plan_within
from boxscore.extensions.large.merging import MergedParts
from boxscore.extensions.large.packed import packed
from boxscore.extensions.large.parts import check_mergeable, match_part
from boxscore.extensions.large.pieces import Cut, cut
from boxscore.extensions.large.plan import asked_keys, most_of, partition_of
from boxscore.extensions.large.reduction import score_classes
from boxscore.extensions.large.result import evaluation_of
from boxscore.extensions.large.scanning import streamed
from boxscore.extensions.large.streaming import StreamTask
from boxscore.extensions.scoreless.assignment import components
from boxscore.extensions.scoreless.assignment import heaviest as most_and_heaviest
from boxscore.extensions.scoreless.whole_groups import match_whole_groups
from boxscore.extensions.weights.point_values import RunValues, column_sums
from boxscore.extensions.weights.weight_sums import WeightSums, weight_table
from boxscore.extensions.weights.weighted_curves import points_up_to
from boxscore.matching.ignoring import prepared, rounded
from boxscore.matching.matches import Matches, bit_type
from boxscore.matching.matches import merge as merge_matches
from boxscore.matching.pairs import Pairs
from boxscore.matching.points import POINTS, functions_at
from boxscore.protocols import Protocol

__all__ = [
    "POINTS",
    "Cut",
    "Here",
    "Load",
    "LocalEngine",
    "Matches",
    "MergedParts",
    "Pairs",
    "RunValues",
    "StreamTask",
    "WeightSums",
    "asked_again",
    "bit_type",
    "bytes_of_plan",
    "check_mergeable",
    "column_sums",
    "components",
    "cut",
    "distributed_evaluation",
    "evaluate_tasks",
    "functions_at",
    "headers_of",
    "heaviest_matching",
    "local_cluster",
    "match_part",
    "match_whole_groups",
    "merge_matches",
    "most_and_heaviest",
    "most_of",
    "packed",
    "partition_of",
    "plan_within",
    "points_up_to",
    "prepared",
    "rounded",
    "score_classes",
    "weight_table",
]


def distributed_evaluation(
    parts: Sequence[Any], engine: Any = None, *, asked: Protocol | None = None, **options: Any
) -> DistributedEvaluation:
    """Return the result of parts that stay where an engine has them; in this process when none is given.

    Everything is computed at once, or first what the summary of the protocol that is ``asked`` reads.
    """
    engine = engine or Here()
    if asked is not None:
        options["keys"] = asked_keys(asked)
    return evaluation_of(engine, parts, headers_of(engine, parts), **options)


def bytes_of_plan(plan: Any, load: Load, workers: int) -> int:
    """Return what all processes together take by a plan: the first one, and those that match and score."""
    at_a_time = max(plan.partition * load.box, plan.most * local.SCORED)
    first = local.BASE + load.first + load.read
    return first + at_a_time if workers == 1 else first + workers * (local.BASE + load.read + at_a_time)


@contextlib.contextmanager
def asked_again(
    truth: Any, detections: Path, protocol: Any, *, partition: int, at_least: int = 2, **options: Any
) -> Iterator[DistributedEvaluation]:
    """Evaluate Parquet in partitions of about so many boxes, which can be read again."""
    engine = Here()
    with streamed(truth, detections, protocol, partition=partition) as tasks:
        assert len(tasks) >= at_least
        parts = engine.match(tasks)
        yield evaluation_of(engine, parts, headers_of(engine, parts), tasks=tasks, **options)
