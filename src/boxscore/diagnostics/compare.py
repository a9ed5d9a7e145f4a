"""Is one detector better than another? Paired differences on one ground truth, with intervals.

Conventions
-----------
- Every draw of images (:mod:`boxscore.diagnostics.bootstrap`) is applied to all results alike, so that an
  image's difficulty cancels: a difference is surer than the intervals of its two sides suggest.
- ``delta`` is other minus first. ``probability`` is the share of draws in which the other is better, half of
  the equal ones counted; ``verdict`` calls a difference real when its interval leaves out 0.
- Many classes are many questions: at 95 % one verdict in twenty between equal detectors is wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._result import EVERY_CLASS, DiagnosticResult
from boxscore.diagnostics.bootstrap import (
    Method,
    chosen_rows,
    draw_weights,
    interval,
    spread,
    weighted_metrics,
)
from boxscore.diagnostics.ties import decided_by_ties
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DetectorComparison", "Differences", "compare_detectors"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Differences:
    """Other minus first, and how sure; arrays of one shape.

    Attributes
    ----------
    value_first, value_other : ndarray of float64
    delta : ndarray of float64
    low, high : ndarray of float64
        Interval of ``delta``.
    standard_error : ndarray of float64
    probability : ndarray of float64
        Share of draws in which the other is better.
    verdict : ndarray of object
        ``better``, ``worse`` (the other, in both) or ``cannot tell``.
    """

    value_first: FloatArray
    value_other: FloatArray
    delta: FloatArray
    low: FloatArray
    high: FloatArray
    standard_error: FloatArray
    probability: FloatArray
    verdict: NDArray[np.object_]

    def take(self, *index: int | slice) -> Differences:
        """Index every array."""
        return Differences(**{name: values[index] for name, values in vars(self).items()})


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DetectorComparison(DiagnosticResult):
    """The first result compared with each of the others; O others, M metrics, K classes.

    Attributes
    ----------
    first : str
    others : list of str, [O]
    metrics : list of str, [M]
    labels : list of str, [K]
    total : Differences, [O, M]
        Over all classes.
    decided_by_ties : ndarray of object, [O, M]
        Whether another order of equally scored detections could turn ``delta`` round; None where that was
        not asked: of metrics other than AP.
    classes : Differences, [O, M, K], or None
        Of each class alone, where asked for.
    """

    first: str
    others: list[str]
    metrics: list[str]
    labels: list[str]
    total: Differences
    decided_by_ties: NDArray[np.object_]
    classes: Differences | None = None

    def with_other(self, name: str) -> DetectorComparison:
        """Return the comparison with one of the others alone."""
        i = self.others.index(name)
        only = slice(i, i + 1)
        return dataclasses.replace(
            self,
            others=[name],
            total=self.total.take(only),
            decided_by_ties=self.decided_by_ties[only],
            classes=None if self.classes is None else self.classes.take(only),
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per other result and metric, over all classes.

        ``first, other, metric, value_first, value_other, delta, low, high, standard_error, probability,
        verdict, decided_by_ties``.
        """
        return self.printed_frame(per_class=False).drop(columns="class")

    def per_class_frame(self) -> pd.DataFrame:
        """Return one row per other result, class and metric: :meth:`to_frame`'s columns and ``class``."""
        frame = self.printed_frame()
        return frame[frame["class"] != EVERY_CLASS].drop(columns="decided_by_ties").reset_index(drop=True)

    def printed_frame(self, *, per_class: bool = True) -> pd.DataFrame:
        """Return the rows of each other result: all classes together, as class ``(all)``, then each class."""
        import pandas as pd

        count, M = self.decided_by_ties.shape
        blocks = [np.expand_dims(values, 1) for values in vars(self.total).values()]  # [O, 1, M]
        labels, ties = [EVERY_CLASS], self.decided_by_ties[:, None]
        if per_class and self.classes is not None:
            labels += self.labels
            each = vars(self.classes).values()
            blocks = [
                np.concatenate([block, values.transpose(0, 2, 1)], axis=1)
                for block, values in zip(blocks, each, strict=True)
            ]
            ties = np.concatenate([ties, np.full((count, len(self.labels), M), None)], axis=1)
        n = len(labels)
        names = [field.name for field in dataclasses.fields(Differences)]
        return pd.DataFrame(
            {
                "first": self.first,
                "other": np.repeat(np.array(self.others, dtype=object), n * M).tolist(),
                "class": [label for _ in range(count) for label in labels for _ in range(M)],
                "metric": self.metrics * (count * n),
                **{name: block.ravel() for name, block in zip(names, blocks, strict=True)},
                "decided_by_ties": pd.Series(ties.ravel(), dtype=object),
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
    per_class: bool = False,
    progress: bool = False,
) -> DetectorComparison:
    """Compare the first result with each of the others.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more, by name, of one ground truth under one protocol.
    resamples, confidence, method, seed, metrics, per_class, progress
        As in :func:`~boxscore.diagnostics.bootstrap.bootstrap`. Area ranges are metrics: ``APs`` and so on.

    Returns
    -------
    DetectorComparison

    Raises
    ------
    InputError
        When there are fewer than two, or their images, objects, classes or protocols differ.
    """
    checks.one_of(method, get_args(Method), name="method")
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
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
    whole = (slice(None), slice(None))
    return DetectorComparison(
        names[0],
        names[1:],
        [row.key for row in rows],
        results[0].labels,
        every.take(*whole, -1),
        np.array(ties, dtype=object).reshape(len(ties), len(rows)),
        every.take(*whole, slice(-1)) if per_class else None,
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
