"""Share sets of image weights among forked processes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Forked, Workers, worker_count
from boxscore._utils.progress import progress as shown
from boxscore.extensions.weights.under_weights import weighted_metrics
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.summary import WeightedMetrics, WeightSets

WORTH_FORKING = 1 << 23
"""Minimum of detections, ground truths and recall points over all sets, a tenth of a second of work."""


def weighted_metrics_shared(
    matches: Matches,
    protocol: Protocol,
    rows: Sequence[SummaryRow],
    weights: WeightSets,
    *,
    progress: str = "",
    workers: Workers = "auto",
) -> WeightedMetrics:
    """Compute weighted metrics, in several processes if that is faster.

    ``progress`` is the label of the progress bar; empty for none.
    """
    count = len(weights)
    shares = worker_count(workers)
    points = matches.threshold_count * len(protocol.ap.recall_points) * len(matches.categories)
    if shares < 2 or count * (len(matches) + len(matches.truth_image) + points) < WORTH_FORKING:
        return weighted_metrics(matches, protocol, rows, _with_progress(weights, count, progress))
    first, *others = weights.batches(-(-count // shares))

    def metrics_of(part: WeightSets, name: str) -> WeightedMetrics:
        return weighted_metrics(matches, protocol, rows, _with_progress(part, len(part), name))

    with contextlib.closing(Forked([functools.partial(metrics_of, part, "") for part in others])) as forked:
        parts = [metrics_of(first, progress), *forked.results()]
    return WeightedMetrics(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _with_progress(sets: Iterable[FloatArray], total: int, name: str) -> Iterable[FloatArray]:
    return shown(sets, total=total, desc=name, unit="set") if name else sets
