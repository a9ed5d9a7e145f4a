"""The one door to the insides of boxscore.matching, boxscore.scoring and boxscore.distributed.

Everything else that is tested of them is asked of their faces: ``evaluate``, ``Evaluation``, ``scan``,
``merge``. What stands here has a contract of its own, which no answer shows as sharply:

- ``Matches``, ``merge_matches``: matches are values, which merge in any order.
- ``BoundCells``, ``score_keys``, ``FREE_CELLS``, ``FEWEST_SPLIT``: counts of bounded number, which add up in any order.
- ``bounds_of``: bounds of parts, added up in groups of one's choice.
- ``distributed_evaluation``, ``LocalEngine``, ``streamed``: parts to a result as on a cluster, without one.
- ``evaluate_tasks``, ``cluster_client``, ``local_cluster``, ``states_of_workers``: a cluster, and tasks that die on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxscore.distributed import BoundedEvaluation, DistributedEvaluation, Part
from boxscore.distributed.bounds import added, bounded, histogram_of
from boxscore.distributed.cells import FREE as FREE_CELLS
from boxscore.distributed.cells import LEAF as FEWEST_SPLIT
from boxscore.distributed.cells import Cells as BoundCells
from boxscore.distributed.cells import score_keys
from boxscore.distributed.cluster import _workers_of, cluster_client, evaluate_tasks, local_cluster
from boxscore.distributed.engine import Here
from boxscore.distributed.local import LocalEngine
from boxscore.distributed.result import evaluation_of, headers_of
from boxscore.distributed.scanning import streamed
from boxscore.matching.matches import Matches
from boxscore.matching.matches import merge as merge_matches

__all__ = [
    "FEWEST_SPLIT",
    "FREE_CELLS",
    "BoundCells",
    "LocalEngine",
    "Matches",
    "bounds_of",
    "cluster_client",
    "distributed_evaluation",
    "evaluate_tasks",
    "local_cluster",
    "merge_matches",
    "score_keys",
    "states_of_workers",
    "streamed",
]


def bounds_of(*groups: Sequence[Part]) -> BoundedEvaluation:
    """Return the bounds of parts: each group is added up, then the groups."""
    return bounded(added([added([histogram_of(part) for part in group]) for group in groups]))


def distributed_evaluation(parts: Sequence[Any], engine: Any = None, **options: Any) -> DistributedEvaluation:
    """Return the result of parts that stay where an engine has them; in this process when none is given."""
    engine = engine or Here()
    return evaluation_of(engine, parts, headers_of(engine, parts), **options)


def states_of_workers(client: Any) -> list[str]:
    """Return what each worker of a cluster is doing, such as ``running`` or ``paused``."""
    return [one["status"] for one in _workers_of(client).values()]
