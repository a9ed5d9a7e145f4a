"""Beyond one process: what sets of images contribute, cut small, saved, and merged to the same bits.

- :class:`Part`: what one set of images contributes to the scores.
- :func:`merge`: parts of disjoint images, or their files, to a :class:`MergedEvaluation`.
- :func:`scan`: a data set, partition by partition, over any ``map``.
- :func:`evaluate`: the same on a Dask cluster, where no process holds all parts.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.distributed.cluster import evaluate as evaluate
    from boxscore.distributed.parts import Part as Part
    from boxscore.distributed.parts import load_part as load_part
    from boxscore.distributed.parts import part_of as part_of
    from boxscore.distributed.result import DistributedEvaluation as DistributedEvaluation
    from boxscore.distributed.result import MergedEvaluation as MergedEvaluation
    from boxscore.distributed.result import merge as merge
    from boxscore.distributed.scanning import scan as scan
