"""Beyond one process: what sets of images contribute, cut small, saved, and merged to the same bits.

- :class:`Part`: what one set of images contributes to the scores.
- :func:`merge`: parts of disjoint images, or their files, to a :class:`MergedEvaluation`.
- :func:`scan`: a data set, partition by partition, over any ``map``.
"""

from boxscore.distributed.merging import MergedEvaluation, merge
from boxscore.distributed.parts import Part, load_part, part_of
from boxscore.distributed.scanning import scan

__all__ = ["MergedEvaluation", "Part", "load_part", "merge", "part_of", "scan"]
