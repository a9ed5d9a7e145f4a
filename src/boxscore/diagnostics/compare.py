"""Is one detector better than another? Paired differences on one ground truth, with intervals.

Conventions
-----------
- All results get the same draws of images (:mod:`boxscore.diagnostics.bootstrap`), so an image's difficulty
  cancels: the interval of a difference is narrower than the intervals of its two sides suggest.
- ``delta`` is other minus first. ``other_wins`` is the share of draws in which the other is better, ties
  counted as half; ``verdict`` is ``better`` or ``worse`` when the interval of the difference excludes 0.
- Many classes mean many tests: at 95 %, one verdict in twenty between equal detectors is wrong.
- Every pair of detectors is compared as well (:class:`PairedDifferences`). An interval is of its pair alone;
  ``significant`` allows for the number of pairs (max-T): the difference, in standard errors, must also be
  larger than the largest of all pairs of the metric is in 5 % of the draws, each about its mean. The number
  of metrics is not allowed for.

References
----------
P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing*, 1993, chapter 2 (single-step max-T).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.lazy import shortcut
from boxscore._utils.progress import stage
from boxscore._utils.read_only import unchangeable
from boxscore._utils.resampling import Method, check_intervals, interval, spread
from boxscore.data.class_names import EVERY_CLASS
from boxscore.diagnostics._result import DiagnosticResult, Floats
from boxscore.diagnostics.bootstrap import Intervals, chosen_rows, resampled_metrics
from boxscore.diagnostics.ties import decided_by_ties
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd


class Differences(NamedTuple):
    """Other minus first, with its uncertainty; arrays of one shape."""

    value_first: Floats
    value_other: Floats
    delta: Floats
    low: Floats
    """Lower end of the interval of ``delta``."""
    high: Floats
    standard_error: Floats
    other_wins: Floats
    """Share of draws in which the other is better, ties as half."""
    verdict: Any
    """``better``, ``worse`` (the other, in both) or ``cannot tell``."""

    def take(self, *index: int | slice) -> Differences:
        """Index every array."""
        return Differences(*(values[index] for values in self))


class PairedDifferences(NamedTuple):
    """Differences of every pair over all classes, row minus column; arrays [N, N, M], the diagonal NaN."""

    delta: Floats
    low: Floats
    """Lower end of the interval of ``delta``, of this pair alone."""
    high: Floats
    significant: Any
    """Whether the interval excludes 0, and the difference stands among all pairs of the metric."""


class Resampling(NamedTuple):
    """How the images were resampled, and which share of the draws the intervals enclose."""

    resamples: int
    confidence: float
    method: Method
    seed: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DetectorComparison(DiagnosticResult):
    """The first result compared with each of the others, and every pair; O others, N = O + 1, M metrics.

    ``per_class`` has K classes.

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
        for metrics other than AP, and where merged parts do not know it.
    intervals : Intervals, [N, M]
        The score of each result itself, the first one first, over all classes; from the same draws.
    pairs : PairedDifferences, [N, N, M]
    resampling : Resampling
    evaluations : mapping of str to Evaluation
        The compared results, the first one first.
    """

    first: str
    others: list[str]
    classes: list[str]
    metrics: list[str]
    per_class: Differences
    total: Differences
    decided_by_ties: NDArray[np.object_]
    intervals: Intervals
    pairs: PairedDifferences
    resampling: Resampling
    evaluations: Mapping[str, Evaluation]

    @property
    def names(self) -> list[str]:
        """All results, the first one first."""
        return [self.first, *self.others]

    def with_other(self, name: str) -> DetectorComparison:
        """Return the comparison with one of the others alone; its pair is judged alone."""
        i = self.others.index(name)
        only, both = slice(i, i + 1), [0, i + 1]
        pairs = PairedDifferences(*(values[np.ix_(both, both)] for values in self.pairs))
        return dataclasses.replace(
            self,
            others=[name],
            per_class=self.per_class.take(only),
            total=self.total.take(only),
            decided_by_ties=self.decided_by_ties[only],
            intervals=Intervals(*(values[both] for values in self.intervals)),
            pairs=pairs._replace(significant=(pairs.low > 0) | (pairs.high < 0)),
            evaluations={key: self.evaluations[key] for key in (self.first, name)},
        )

    def clear_best(self, metric: int) -> int | None:
        """Position of the best result in a metric, by its position; None if the second may be as good."""
        values = self.intervals.value[:, metric]
        defined = np.flatnonzero(np.isfinite(values))
        if len(defined) < 2:
            return None
        best, second = defined[np.argsort(-values[defined], kind="stable")[:2]].tolist()
        return best if bool(self.pairs.significant[best, second, metric]) else None

    def to_latex(self, **options: Any) -> str:
        """Write the detectors and their metrics as a LaTeX table for a paper.

        Parameters
        ----------
        **options
            Those of :func:`boxscore.reports.paper_table`: ``metrics``, ``scale``, ``decimals``,
            ``intervals``, ``label``.

        Returns
        -------
        str

        Raises
        ------
        InputError
            When an option breaks a rule.
        """
        text: str = shortcut("boxscore.reports", "paper_table")(self, form="latex", **options)
        return text

    def to_markdown(self, **options: Any) -> str:
        """Write the same table as :meth:`to_latex` in GitHub's Markdown."""
        text: str = shortcut("boxscore.reports", "paper_table")(self, form="markdown", **options)
        return text

    def report(self, folder: str | Path, **options: Any) -> None:
        """Write a report folder: a page that compares, and a page for each detector.

        Parameters
        ----------
        folder : str or Path
            Made where it does not exist.
        **options
            Those of :class:`boxscore.reports.ReportOptions`: ``title``, ``image_folder``, ``gallery``, ...

        Raises
        ------
        InputError
            When an option breaks a rule or a file cannot be written.
        """
        shortcut("boxscore.reports", "write_comparison")(self, folder, **options)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per other result, class and metric.

        ``first, other, class, metric, value_first, value_other, delta, low, high, standard_error,
        other_wins, verdict, decided_by_ties``.
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
    resampled = [
        resampled_metrics(result, rows, resamples=resamples, seed=seed, progress=progress)
        for result in results
    ]
    values = np.stack([value for value, _ in resampled])
    draws = np.stack([of_draws for _, of_draws in resampled])  # [results, resamples, rows, K + 1]
    parts = []
    for i in range(1, len(names)):
        delta, of_draws = values[i] - values[0], draws[i] - draws[0]
        low, high = interval(of_draws, delta, confidence, method)
        defined = np.maximum(np.isfinite(of_draws).sum(axis=0), 1)
        better = ((of_draws > 0).sum(axis=0) + 0.5 * (of_draws == 0).sum(axis=0)) / defined
        better = np.where(np.isfinite(delta), better, np.nan)
        verdict = np.where(low > 0, "better", np.where(high < 0, "worse", "cannot tell")).astype(object)
        parts.append((values[0], values[i], delta, low, high, spread(of_draws), better, verdict))
    every = Differences(*(np.stack(column) for column in zip(*parts, strict=True)))  # [O, M, K + 1]
    known = all(result.holds_overlaps for result in results)
    stage("orders of equal scores")
    ties = [
        [
            decided_by_ties(results[0], other, row.key) if known and row.metric == "AP" else None
            for row in rows
        ]
        for other in results[1:]
    ]
    all_of = (slice(None), slice(None))
    means, means_of_draws = values[..., -1], draws[..., -1]  # [N,M], [N,resamples,M]
    intervals = [
        interval(of_draws, mean, confidence, method)
        for of_draws, mean in zip(means_of_draws, means, strict=True)
    ]
    return unchangeable(
        DetectorComparison(
            names[0],
            names[1:],
            results[0].labels,
            [row.key for row in rows],
            every.take(*all_of, slice(-1)),
            every.take(*all_of, -1),
            np.array(ties, dtype=object).reshape(len(ties), len(rows)),
            Intervals(
                means,
                np.stack([low for low, _ in intervals]),
                np.stack([high for _, high in intervals]),
                np.stack([spread(of_draws) for of_draws in means_of_draws]),
                np.isfinite(means_of_draws).sum(axis=1),
            ),
            _every_pair(means, means_of_draws, confidence, method),
            Resampling(resamples, confidence, method, seed),
            dict(evaluations),
        )
    )


def _every_pair(
    values: NDArray[np.float64], draws: NDArray[np.float64], confidence: float, method: Method
) -> PairedDifferences:
    """Compare each with each, from values [N, M] and draws [N, resamples, M]."""
    N, M = values.shape
    delta, low, high = (np.full((N, N, M), np.nan) for _ in range(3))
    observed = np.zeros((N, N, M))  # differences in standard errors
    largest = np.zeros(draws.shape[1:])  # of all pairs in each draw, about their mean [resamples,M]
    for j in range(N):
        for i in range(j + 1, N):
            difference, of_draws = values[i] - values[j], draws[i] - draws[j]
            ends = interval(of_draws, difference, confidence, method)
            for one, other, sign, (lower, upper) in ((i, j, 1, ends), (j, i, -1, (-ends[1], -ends[0]))):
                delta[one, other], low[one, other], high[one, other] = sign * difference, lower, upper
            error, defined = spread(of_draws), np.isfinite(of_draws)
            varies = error > 0
            scale = np.where(varies, error, 1.0)
            middle = np.where(defined, of_draws, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
            away = np.where(defined & varies, np.abs(of_draws - middle) / scale, 0.0)
            largest = np.maximum(largest, away)
            certain = np.where(np.nan_to_num(difference) != 0, np.inf, 0.0)  # the same in every draw
            observed[i, j] = observed[j, i] = np.where(varies, np.abs(difference) / scale, certain)
    apart = (low > 0) | (high < 0)
    if N > 2:
        apart &= observed > np.quantile(largest, confidence, axis=0, method="higher")
    return PairedDifferences(delta, low, high, apart)


def _check_comparable(names: Sequence[str], results: Sequence[Evaluation]) -> None:
    if len(results) < 2:
        raise InputError("a comparison", "have two results or more", got=len(results))
    first = results[0]
    for name, other in zip(names[1:], results[1:], strict=True):
        if not first.has_same_truth(other):
            raise InputError(
                "compared results",
                "have the same ground truth",
                got=f"two, for {names[0]!r} and {name!r}",
            )
        if first.protocol != other.protocol:
            raise InputError(
                "compared results",
                "have the same protocol",
                got=f"{first.protocol.name!r} and {other.protocol.name!r}",
            )
