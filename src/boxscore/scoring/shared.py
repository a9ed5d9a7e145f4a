"""Sets of image weights shared out among forked processes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.processes import Forked
from boxscore._utils.progress import progress as shown
from boxscore._utils.resampling import WeightSets
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.summary import WeightedMetrics, weighted_metrics

WORTH_FORKING = 1 << 22
"""Detections and ground truths of all sets together, a second or two."""

SHARES = 4
"""Runs of sets that each process takes in turn, so that none waits long for the others."""


def weighted_metrics_shared(
    matches: Matches,
    protocol: Protocol,
    rows: Sequence[SummaryRow],
    weights: WeightSets,
    *,
    progress: str = "",
    workers: int = 1,
) -> WeightedMetrics:
    """Compute :func:`~boxscore.scoring.summary.weighted_metrics`, in several processes where it pays.

    ``progress`` names what is counted, on a bar; empty for none.
    """
    count = len(weights)
    if workers < 2 or count * (len(matches) + len(matches.truth_image)) < WORTH_FORKING:
        return weighted_metrics(matches, protocol, rows, _counted(weights, count, progress))
    batches = list(weights.batches(-(-count // (SHARES * workers))))
    shares = [batches[first::workers] for first in range(workers)]

    def metrics_of(share: Sequence[WeightSets], name: str) -> WeightedMetrics:
        total = sum(map(len, share))
        sets = _counted(chain.from_iterable(share), total, name)
        return weighted_metrics(matches, protocol, rows, sets)

    tasks = [functools.partial(metrics_of, share, "") for share in shares[1:] if share]
    with contextlib.closing(Forked(tasks)) as forked:
        parts = [metrics_of(shares[0], progress), *forked.results()]
    order = np.argsort(np.concatenate([_numbers(batches, first, workers) for first in range(len(parts))]))
    return WeightedMetrics(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))


def _numbers(batches: Sequence[WeightSets], first: int, step: int) -> Positions:
    """Return which sets a process has, by their positions among all."""
    ends = np.cumsum([0, *map(len, batches)])
    return np.concatenate([np.arange(ends[n], ends[n + 1]) for n in range(first, len(batches), step)])


def _counted(sets: Iterable[FloatArray], total: int, name: str) -> Iterable[FloatArray]:
    return shown(sets, total=total, desc=name, unit="set") if name else sets
