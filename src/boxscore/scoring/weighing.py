"""Summary metrics under sets of image weights: of all images, of resamples, of slices.

Goal
----
One way from weights to metrics, for matches that are held here and for those of which other processes hold
some classes each (:mod:`boxscore.distributed.weighing`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol, SummaryRow
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import summary_table
from boxscore.scoring.weighted import ImageWeights

__all__ = ["Weighed", "weighed"]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]


class Weighed(NamedTuple):
    """What W sets of image weights give."""

    values: FloatArray
    """Each metric of each class and, last, over all, [W, rows, K + 1]."""
    ground_truths: Counts
    """Those that the first area range counts, each as often as its image, [W]."""
    detections: Counts
    """The matched ones, [W]."""


def weighed(
    matches: Matches, protocol: Protocol, rows: Sequence[SummaryRow], weights: Iterable[FloatArray]
) -> Weighed:
    """Compute summary rows for each set of weights of the images, whole numbers, [images]."""
    truth_image = matches.truth_image[matches.counted(0)]

    @functools.cache
    def prepared(area: int, cap: int, pooled: str | None) -> ImageWeights:
        chosen = matches if pooled is None else matches.pooled(pooled)
        return ImageWeights(chosen, protocol, area, cap)

    def table(own: FloatArray) -> FloatArray:
        @functools.cache
        def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
            return Curves(prepared(area, cap, pooled).counts(own), protocol.ap)

        return summary_table(rows, protocol, curves_of)

    made = [(table(own), own[truth_image].sum(), own[matches.image].sum()) for own in weights]
    K = len(matches.categories)
    return Weighed(
        np.array([values for values, _, _ in made]).reshape(-1, len(rows), K + 1),
        np.array([count for _, count, _ in made], dtype=np.int64),
        np.array([count for _, _, count in made], dtype=np.int64),
    )
