"""Is one detector better than another? Paired differences on one ground truth, with intervals.

Conventions
-----------
- All results get the same draws of images (:mod:`boxscore.diagnostics.bootstrap`), so an image's difficulty
  cancels: the interval of a difference is narrower than the intervals of its two sides suggest.
- ``delta`` is other minus first. ``probability`` is the share of draws in which the other is better, ties
  counted as half; ``verdict`` is ``better`` or ``worse`` when the interval of the difference excludes 0.
- Many classes mean many tests: at 95 %, one verdict in twenty between equal detectors is wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.resampling import Method, check_intervals, draw_weights, interval, spread
from boxscore.diagnostics._result import EVERY_CLASS, DiagnosticResult, Floats
from boxscore.diagnostics.bootstrap import chosen_rows, weighted_metrics
from boxscore.diagnostics.ties import decided_by_ties
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DetectorComparison", "Differences", "compare_detectors"]


class Differences(NamedTuple):
    """Other minus first, with its uncertainty; arrays of one shape."""

    value_first: Floats
    value_other: Floats
    delta: Floats
    low: Floats
    """Lower end of the interval of ``delta``."""
    high: Floats
    standard_error: Floats
    probability: Floats
    """Share of draws in which the other is better."""
    verdict: Any
    """``better``, ``worse`` (the other, in both) or ``cannot tell``."""

    def take(self, *index: int | slice) -> Differences:
        """Index every array."""
        return Differences(*(values[index] for values in self))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DetectorComparison(DiagnosticResult):
    """The first result compared with each of the others; O others, M metrics, K classes.

    Attributes
    ----------
    first : str
    others : list of str, [O]
    classes : list of str, [K]
    metrics : list of str, [M]
    per_class : Differences, [O, M, K]
        Of each class alone.
    total : Differences, [O, M]
        All classes together.
    decided_by_ties : ndarray of object, [O, M]
        Whether another order of equally scored detections could change the sign of the total ``delta``; None
        for metrics other than AP.
    """

    first: str
    others: list[str]
    classes: list[str]
    metrics: list[str]
    per_class: Differences
    total: Differences
    decided_by_ties: NDArray[np.object_]

    def with_other(self, name: str) -> DetectorComparison:
        """Return the comparison with one of the others alone."""
        i = self.others.index(name)
        only = slice(i, i + 1)
        return dataclasses.replace(
            self,
            others=[name],
            per_class=self.per_class.take(only),
            total=self.total.take(only),
            decided_by_ties=self.decided_by_ties[only],
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per other result, class and metric.

        ``first, other, class, metric, value_first, value_other, delta, low, high, standard_error,
        probability, verdict, decided_by_ties``.
        """
        ties = np.full((len(self.others), len(self.metrics), len(self.classes)), None, dtype=object)
        return self._frame(self.classes, self.per_class, ties)

    def total_frame(self) -> pd.DataFrame:
        """Return one row per other result and metric, over all classes."""
        alone = Differences(*(values[..., None] for values in self.total))
        return self._frame([EVERY_CLASS], alone, self.decided_by_ties[..., None])

    def _frame(self, classes: list[str], part: Differences, ties: NDArray[np.object_]) -> pd.DataFrame:
        import pandas as pd

        count, M, K = ties.shape
        columns = {name: values.transpose(0, 2, 1).ravel() for name, values in part._asdict().items()}
        return pd.DataFrame(
            {
                "first": self.first,
                "other": [other for other in self.others for _ in range(K * M)],
                "class": [label for label in classes for _ in range(M)] * count,
                "metric": self.metrics * (count * K),
                **columns,
                "decided_by_ties": pd.Series(ties.transpose(0, 2, 1).ravel(), dtype=object),
            }
        )


def compare_detectors(
    evaluations: Mapping[str, Evaluation],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "bias_corrected",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    progress: bool = False,
) -> DetectorComparison:
    """Compare the first result with each of the others.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more, by name, of one ground truth under one protocol.
    resamples, confidence, method, seed, metrics, progress
        As in :func:`~boxscore.diagnostics.bootstrap.bootstrap_intervals`. Area ranges are metrics:
        ``APs`` and so on.

    Returns
    -------
    DetectorComparison

    Raises
    ------
    InputError
        When there are fewer than two, or their images, objects, classes or protocols differ.
    """
    check_intervals(confidence, method)
    names, results = list(evaluations), list(evaluations.values())
    _check_comparable(names, results)
    rows = chosen_rows(results[0], metrics)
    scores = [weighted_metrics(result, rows) for result in results]
    images = len(results[0].ground_truth.images)
    draws = np.stack(
        [
            [score(weights) for score in scores]
            for weights in draw_weights(images, resamples, seed=seed, progress=progress)
        ],
        axis=1,
    )  # [results, resamples, rows, K + 1]
    values = np.stack([score(np.ones(images)) for score in scores])
    parts = []
    for i in range(1, len(names)):
        delta, drawn = values[i] - values[0], draws[i] - draws[0]
        low, high = interval(drawn, delta, confidence, method)
        defined = np.maximum(np.isfinite(drawn).sum(axis=0), 1)
        better = ((drawn > 0).sum(axis=0) + 0.5 * (drawn == 0).sum(axis=0)) / defined
        better = np.where(np.isfinite(delta), better, np.nan)
        verdict = np.where(low > 0, "better", np.where(high < 0, "worse", "cannot tell")).astype(object)
        parts.append((values[0], values[i], delta, low, high, spread(drawn), better, verdict))
    every = Differences(*(np.stack(column) for column in zip(*parts, strict=True)))  # [O, M, K + 1]
    ties = [
        [decided_by_ties(results[0], other, row.key) if row.metric == "AP" else None for row in rows]
        for other in results[1:]
    ]
    all_of = (slice(None), slice(None))
    return DetectorComparison(
        names[0],
        names[1:],
        results[0].labels,
        [row.key for row in rows],
        every.take(*all_of, slice(-1)),
        every.take(*all_of, -1),
        np.array(ties, dtype=object).reshape(len(ties), len(rows)),
    )


def _check_comparable(names: Sequence[str], results: Sequence[Evaluation]) -> None:
    if len(results) < 2:
        raise InputError("a comparison", "have two results or more", got=len(results))
    first = results[0]
    for name, other in zip(names[1:], results[1:], strict=True):
        mine, yours = first.ground_truth, other.ground_truth
        same = (
            mine.images.same_as(yours.images)
            and mine.categories.same_as(yours.categories)
            and np.array_equal(mine.image, yours.image)
            and np.array_equal(mine.boxes, yours.boxes)
        )
        if not same:
            raise InputError(
                "compared results", "be of one ground truth", got=f"{names[0]!r} and {name!r} of two"
            )
        if first.protocol != other.protocol:
            raise InputError(
                "compared results",
                "be of one protocol",
                got=f"{first.protocol.name!r} and {other.protocol.name!r}",
            )
