"""Beyond one process: what sets of images contribute, cut small, saved, and merged to the same bits.

- :class:`Part`: what one set of images contributes to the scores.
- :func:`merge`: parts of disjoint images, or their files, to a :class:`MergedEvaluation`.
- :func:`scan`: a data set, partition by partition, over any ``map``.
- :func:`evaluate`: the same on a Dask cluster, where no process holds all parts.
"""

from boxscore.distributed.bounds import BoundedEvaluation, Interval
from boxscore.distributed.cluster import evaluate
from boxscore.distributed.parts import Part, load_part, part_of
from boxscore.distributed.result import DistributedEvaluation, MergedEvaluation, merge
from boxscore.distributed.scanning import scan

__all__ = [
    "BoundedEvaluation",
    "DistributedEvaluation",
    "Interval",
    "MergedEvaluation",
    "Part",
    "evaluate",
    "load_part",
    "merge",
    "part_of",
    "scan",
]
