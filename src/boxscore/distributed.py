"""Evaluate in parts or on a cluster: split, save and merge the contributions of images, bit for bit.

- :class:`Part`: the contribution of a set of images to the scores.
- :func:`merge`: merges parts of disjoint images, or their files, into a :class:`MergedEvaluation`.
- :func:`scan`: evaluates a data set partition by partition, over any ``map``.
- :func:`evaluate`: the same on a Dask cluster, where no process holds all parts.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.large.cluster import evaluate as evaluate
    from boxscore.extensions.large.parts import Part as Part
    from boxscore.extensions.large.parts import load_part as load_part
    from boxscore.extensions.large.parts import part_of as part_of
    from boxscore.extensions.large.result import DistributedEvaluation as DistributedEvaluation
    from boxscore.extensions.large.result import MergedEvaluation as MergedEvaluation
    from boxscore.extensions.large.result import merge as merge
    from boxscore.extensions.large.scanning import scan as scan
