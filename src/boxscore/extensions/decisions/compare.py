"""Compare detectors on one ground truth: paired differences with intervals and verdicts.

Conventions
-----------
- One rule: the other is ``better`` or ``worse`` if ``p_value`` is at most 1 - confidence, which is exactly if
  the interval of the difference excludes 0. Otherwise the verdict is ``cannot tell``, or ``too few images``
  below six.
- Test: the results of the two detectors are swapped at random per image
  (:mod:`boxscore.extensions.decisions.swapping`). The interval contains the differences that the test does
  not reject.
- With three detectors or more, every pair is compared. P-values and intervals are adjusted for the number of
  pairs (Holm), and per class for the number of classes (max-T) and of detectors compared with the first, but
  not for the number of metrics.
- ``delta`` is other minus first, even for a metric that falls as detectors improve (a miss rate).
- ``other_wins`` and ``standard_error`` describe the same draws of images for all results
  (:mod:`boxscore.extensions.diagnostics.bootstrap`). ``other_wins`` is the fraction in which the other is
  better, with ties counted as half; it does not decide.
- If some detectors lack scores, a detector with scores is counted at the threshold of its best F1, chosen on
  the other half of the images (:mod:`boxscore.extensions.decisions.cross_fitting`), and ``scores_text`` says
  so.
- Merged results of some millions of detections are not swapped, nor are they if ``method`` names a bootstrap
  interval: the verdict is then whether this interval, which is not adjusted, excludes 0, and ``p_value`` is
  NaN.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, read_only, unchangeable
from boxscore._utils.lazy import shortcut
from boxscore._utils.processes import Workers
from boxscore._utils.progress import stage
from boxscore.data.class_names import EVERY_CLASS
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.cross_fitting import CrossFit, counted_alike
from boxscore.extensions.decisions.swapping import (
    SwappedDifferences,
    agreeing_reach,
    holm,
    holm_levels,
    level_of,
    swapped_differences,
)
from boxscore.extensions.diagnostics._result import DiagnosticResult, Floats
from boxscore.extensions.diagnostics._units import (
    Group,
    enough_units,
    units_of_images,
    units_of_values,
    warn_of_frames,
)
from boxscore.extensions.diagnostics.bootstrap import (
    Intervals,
    chosen_rows,
    intervals_of,
    intervals_that_hold,
    note_on_intervals,
    resampled_metrics,
    whole_metrics,
)
from boxscore.extensions.diagnostics.ties import decided_by_ties, knows_ties
from boxscore.extensions.weights.resampling import (
    LEAST_UNITS_OF_VERDICT,
    Method,
    Units,
    check_intervals,
    spread,
    unit_count,
)
from boxscore.protocols.summary import SummaryRow

if TYPE_CHECKING:
    import pandas as pd


DifferenceMethod = Literal["swap", "expanded_percentile", "percentile", "bias_corrected"]

UNBOUNDED = ("fp_per_image", "IL_MCC")
"""Kinds of metrics outside [0, 1]; differences of others are within [-1, 1]."""

TOO_FEW = "too few images"
"""The verdict if no outcome of the swap test can be significant."""


class Differences(NamedTuple):
    """Other minus first, with its uncertainty; arrays of one shape."""

    value_first: Floats
    value_other: Floats
    delta: Floats
    low: Floats
    """Lower end of the interval of ``delta``, adjusted like ``p_value``."""
    high: Floats
    standard_error: Floats
    other_wins: Floats
    """Fraction of draws in which the other is better; ties count as half. It does not decide."""
    p_value: Floats
    """P-value of the swap test, adjusted for the number of pairs of detectors; per class for the number of
    classes and of others."""
    verdict: Any
    """``better`` or ``worse`` (referring to the other), ``cannot tell`` or ``too few images``."""

    def take(self, *index: int | slice) -> Differences:
        """Index every array."""
        return Differences(*(values[index] for values in self))


class PairedDifferences(NamedTuple):
    """Differences of every pair over all classes, row minus column; arrays [N, N, M], NaN on the diagonal."""

    delta: Floats
    low: Floats
    """Lower end of the interval of ``delta``, adjusted for the number of pairs."""
    high: Floats
    p_value: Floats
    """P-value of the swap test, adjusted for the number of pairs."""
    verdict: Any
    """``better`` or ``worse`` (referring to the row), ``cannot tell`` or ``too few images``."""

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Return whether each difference decides, [N, N, M]."""
        decided: NDArray[np.bool_] = np.isin(self.verdict, ["better", "worse"])
        return decided

    def take(self, *index: Any) -> PairedDifferences:
        """Index every array."""
        return PairedDifferences(*(values[index] for values in self))


class Resampling(NamedTuple):
    """Options of the resampling, and the confidence of intervals and verdicts."""

    resamples: int
    confidence: float
    method: DifferenceMethod
    seed: int
    group: Group = None
    units: int = 0
    """Number of images, or groups of images, that were drawn and swapped."""
    test: str = "swap"
    """Basis of verdicts: ``swap``, or ``interval`` for a bootstrap interval."""
    workers: Workers = "auto"
    pairs: int = 1
    """Number of pairs of detectors that p-values and intervals are adjusted for."""

    @property
    def level(self) -> float:
        """Return the largest significant p-value."""
        return level_of(self.confidence)

    @property
    def bootstrap_method(self) -> Method:
        """Return the method of bootstrap intervals, if they are needed."""
        return "expanded_percentile" if self.method == "swap" else self.method


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DetectorComparison(DiagnosticResult):
    """Comparison of the first result with the others, and of every pair; O others, N = O + 1, M metrics.

    ``per_class`` has K classes.

    Attributes
    ----------
    first : str
    others : list of str, [O]
    classes : list of str, [K]
    metrics : list of str, [M]
    per_class : Differences, [O, M, K]
        Differences per class.
    total : Differences, [O, M]
        Differences over all classes.
    decided_by_ties : ndarray of object, [O, M]
        Whether another order of equally scored detections could change the sign of the total ``delta``; None
        for metrics other than AP, and if merged partials do not contain this.
    draws : ndarray, float64 [N, resamples, M]
        Scores of each result in each draw of images, over all classes.
    pairs : PairedDifferences, [N, N, M]
        Differences of every pair over all classes; ``total`` is its first column.
    unadjusted : ndarray, float64 [O, M]
        P-value of each ``total``, not adjusted for the number of pairs.
    drops : ndarray, float64 [O, M]
        P-value that each result is worse than the first, adjusted for all metrics (max-T); used by the gate.
    resampling : Resampling
    evaluations : mapping of str to Evaluation
        The compared results, the first one first.
    cross_fits : mapping of str to CrossFit
        For detectors with scores that are compared with others without: the thresholds of their boxes.
    """

    first: str
    others: list[str]
    classes: list[str]
    metrics: list[str]
    per_class: Differences
    total: Differences
    decided_by_ties: NDArray[np.object_]
    draws: FloatArray
    pairs: PairedDifferences
    unadjusted: FloatArray
    drops: FloatArray
    resampling: Resampling
    evaluations: Mapping[str, Evaluation]
    cross_fits: Mapping[str, CrossFit] = dataclasses.field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Return the names of all results, the first one first."""
        return [self.first, *self.others]

    def with_other(self, name: str) -> DetectorComparison:
        """Return the comparison with one of the others only; its p-values stay adjusted."""
        i = self.others.index(name)
        only, both = slice(i, i + 1), [0, i + 1]
        one = dataclasses.replace(
            self,
            others=[name],
            per_class=self.per_class.take(only),
            total=self.total.take(only),
            decided_by_ties=self.decided_by_ties[only],
            draws=self.draws[both],
            pairs=self.pairs.take(*np.ix_(both, both)),
            unadjusted=self.unadjusted[only],
            drops=self.drops[only],
            evaluations={key: self.evaluations[key] for key in (self.first, name)},
            cross_fits={key: fit for key, fit in self.cross_fits.items() if key in (self.first, name)},
        )
        # Intervals that are known are not computed again; partitions may be deleted by now.
        if "intervals" in vars(self):
            vars(one)["intervals"] = Intervals(*(read_only(column[both]) for column in self.intervals))
        return one

    @property
    def scores(self) -> FloatArray:
        """The score of each result over all classes, the first one first, [N, M]."""
        return read_only(np.concatenate([self.total.value_first[:1], self.total.value_other]))

    @functools.cached_property
    def intervals(self) -> Intervals:
        """The score of each result over all classes and its interval, when first used; arrays [N, M]."""
        return Intervals(*map(read_only, _intervals(self)))

    @functools.cached_property
    def note(self) -> str:
        """The thresholds of boxes with scores, and limits of ``intervals``; empty without either."""
        first = self.evaluations[self.first]
        rows, units = chosen_rows(first, self.metrics), units_of_images(first, self.resampling.group)
        note = note_on_intervals(first, rows, self.intervals, units)
        return " ".join(filter(None, [self.scores_text, note]))

    @property
    def scores_text(self) -> str:
        """Score thresholds of detectors compared with others without scores, one per line, or empty."""
        return "\n".join(fit.text(name) for name, fit in self.cross_fits.items())

    def verdict_text(self) -> str:
        """State the rule of the verdicts, and the adjustments of p-values and intervals."""
        how = self.resampling
        level = f"{100 * how.confidence:g}%"
        if how.test == "interval":
            return (
                f"Verdict: better or worse if the {level} interval of the difference excludes 0, otherwise "
                "cannot tell. It is a bootstrap interval of one difference, not adjusted for others."
            )
        unit = "image" if how.group is None else "group"
        many = how.pairs > 1
        family = [f"Both are adjusted for all {how.pairs:,} pairs (Holm)."] if many else []
        if len(self.classes) > 1:
            also = "also " * many
            family.append(
                f"In classes both are {also}adjusted for all {len(self.classes):,} classes (max-T)."
            )
        sentences = [
            f"Verdict: better or worse if the p-value of a paired permutation test over {unit}s is at most "
            f"{1 - how.confidence:.4g}, otherwise cannot tell.",
            f"The {level} interval contains the differences that the test does not reject, so it excludes 0 "
            "exactly if the verdict is better or worse.",
            *family,
            "Neither is adjusted for the number of metrics.",
        ]
        return " ".join(sentences)

    @property
    def lower_is_better(self) -> tuple[bool, ...]:
        """Whether each metric, [M], falls as detectors improve."""
        falling = self.evaluations[self.first].protocol.lower_is_better
        return tuple(metric in falling for metric in self.metrics)

    def clear_best(self, metric: int) -> int | None:
        """Return the position of the best result in a metric; None if the second may be as good."""
        values = self.scores[:, metric] * (-1 if self.lower_is_better[metric] else 1)
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
            Options of :func:`boxscore.reports.paper_table`: ``metrics``, ``scale``, ``decimals``,
            ``intervals``, ``label``.

        Returns
        -------
        str

        Raises
        ------
        InputError
            When an option is invalid.
        """
        text: str = shortcut("boxscore.reports", "paper_table")(self, form="latex", **options)
        return text

    def to_markdown(self, **options: Any) -> str:
        """Write the same table as :meth:`to_latex` as GitHub Markdown."""
        text: str = shortcut("boxscore.reports", "paper_table")(self, form="markdown", **options)
        return text

    def report(self, folder: str | Path, **options: Any) -> None:
        """Write a report folder: a comparison page, and a page for each detector.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        **options
            Options of :class:`boxscore.reports.ReportOptions`: ``title``, ``image_folder``, ``gallery``, ...

        Raises
        ------
        InputError
            When an option is invalid or a file cannot be written.
        """
        shortcut("boxscore.reports", "write_comparison")(self, folder, **options)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per other result, class and metric.

        ``first, other, class, metric, value_first, value_other, delta, low, high, standard_error,
        other_wins, p_value, verdict, decided_by_ties``.
        """
        ties = np.full((len(self.others), len(self.metrics), len(self.classes)), None, dtype=object)
        return self._frame(self.classes, self.per_class, ties)

    def total_frame(self) -> pd.DataFrame:
        """Return one row per other result and metric, over all classes."""
        alone = Differences(*(values[..., None] for values in self.total))
        return self._frame([EVERY_CLASS], alone, self.decided_by_ties[..., None])

    def pair_frame(self) -> pd.DataFrame:
        """Return one row per pair and metric, over all classes, the better detector first.

        ``detector, against, metric, value, value_against, delta, low, high, p_value, verdict``; ``delta`` is
        detector minus against.
        """
        import pandas as pd

        values, rows = self.scores, list[tuple[Any, ...]]()
        for m, metric in enumerate(self.metrics):
            signed = -values[:, m] if self.lower_is_better[m] else values[:, m]
            ranked = np.argsort(-signed, kind="stable").tolist()
            for i, j in itertools.combinations(ranked, 2):
                names = self.names[i], self.names[j], metric
                rows.append((*names, values[i, m], values[j, m], *(part[i, j, m] for part in self.pairs)))
        head = ["detector", "against", "metric", "value", "value_against"]
        return pd.DataFrame(rows, columns=[*head, *PairedDifferences._fields])

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
    method: DifferenceMethod = "swap",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    group: Group = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> DetectorComparison:
    """Compare the first result with each of the others, and every pair.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more, by name, with the same ground truth and protocol.
    resamples : int, default 1000
        Number of resamples for intervals of differences, and of swaps.
    confidence : float, default 0.95
        Confidence level of the intervals and verdicts.
    method : {"swap", "expanded_percentile", "percentile", "bias_corrected"}, default "swap"
        How intervals of differences are computed: from the test that gives the p-values, or from the
        resamples. With resamples there are no p-values, and the verdict is whether the interval, which is not
        adjusted, excludes 0.
    seed : int, default 0
        Random seed.
    metrics : sequence of str, optional
        Names of summary metrics; all by default. Area ranges are metrics: ``APs`` and so on.
    group : str or sequence, optional
        Images that belong together, such as the frames of a video: a column of the images, a regular
        expression whose first group is matched in their file names, or a label for each image in the order of
        their ids.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.
    workers : int or "auto", default "auto"
        Processes that share the work if that is faster, as for :func:`boxscore.evaluate`. The result is the
        same.

    Returns
    -------
    DetectorComparison

    Raises
    ------
    InputError
        When there are fewer than two results, or their images, objects, classes or protocols differ.
    """
    return compared(
        evaluations,
        resamples=resamples,
        confidence=confidence,
        method=method,
        seed=seed,
        metrics=metrics,
        group=group,
        progress=progress,
        workers=workers,
    )


def compared(
    evaluations: Mapping[str, Evaluation],
    *,
    resamples: int,
    confidence: float,
    method: DifferenceMethod,
    seed: int,
    metrics: Sequence[str] | None,
    group: Group,
    progress: bool,
    workers: Workers,
    drawn: bool = True,
) -> DetectorComparison:
    """Return :func:`compare_detectors`, without draws of images if ``drawn`` is false and none decides.

    Then ``draws`` is empty, and ``standard_error`` and ``other_wins`` are NaN.
    """
    # Check that the results are comparable, and count the same objects and detections.
    checks.one_of(method, get_args(DifferenceMethod), name="method")
    check_intervals(confidence, "percentile")
    names, results = list(evaluations), list(evaluations.values())
    check_one_truth(names, results)
    units = units_of_images(results[0], group)
    evaluations, cross_fits = counted_alike(evaluations, units, seed)
    results = list(evaluations.values())
    check_comparable(names, results)
    first = results[0]
    # Select the metrics to compare from the first result.
    rows = chosen_rows(first, metrics)
    warn_of_frames(first, group)
    how = Resampling(
        resamples,
        confidence,
        method,
        seed,
        group,
        unit_count(first._image_count, units),
        "swap" if method == "swap" and all(result._holds_matches for result in results) else "interval",
        workers,
        len(results) * (len(results) - 1) // 2,
    )
    # Use the same draws of images for every result, so that differences are paired, [results, resamples,
    # rows, K + 1].
    if drawn or how.test == "interval":
        resampled = [
            resampled_metrics(
                result, rows, resamples=resamples, seed=seed, units=units, progress=progress, workers=workers
            )
            for result in results
        ]
        values, draws = (np.stack(part) for part in zip(*resampled, strict=True))
    else:
        values = np.stack([whole_metrics(result, rows) for result in results])
        draws = np.empty((len(results), 0, *values.shape[1:]))
    counts = units_of_values(first, rows, units)
    # Swap the results of each pair, those with the first one before the others; the distribution of the
    # difference gives p-values and intervals.
    order = [(i, j) for j in range(len(results)) for i in range(j + 1, len(results))]
    exchanged = [_swap(results[j], results[i], rows, how, units, progress) for i, j in order]
    # For a metric that falls as detectors improve, reverse the sign for wins and verdicts.
    falls = np.isin([row.key for row in rows], list(first.protocol.lower_is_better))
    sign = np.where(falls, -1.0, 1.0)
    totals, of_draws = values[..., -1], draws[..., -1]
    pairs, unadjusted = _every_pair(totals, of_draws, order, exchanged, counts, rows, units, how, sign)
    with_first = exchanged[: len(results) - 1]
    of_classes = _per_class(values, draws, with_first, counts, rows, units, how, sign)
    total = _totals(totals, of_draws, pairs, sign)
    # Mark the metrics in which the order of equal scores can decide the sign.
    stage("orders of equal scores")
    known = all(map(knows_ties, results))
    ties = [
        [decided_by_ties(first, other, row.key) if known and row.metric == "AP" else None for row in rows]
        for other in results[1:]
    ]
    comparison = unchangeable(
        DetectorComparison(
            names[0],
            names[1:],
            first.labels,
            [row.key for row in rows],
            of_classes,
            total,
            np.array(ties, dtype=object).reshape(len(ties), len(rows)),
            draws[..., -1],
            pairs,
            unadjusted[: len(results) - 1],
            np.stack([swaps.p_values_of_drops(falls) for swaps in with_first]),
            how,
            dict(evaluations),
            cross_fits,
        )
    )
    # Partitions are on disk, and may be deleted before the intervals are used.
    if not all(result._holds_matches for result in results):
        _ = comparison.intervals
    return comparison


def _per_class(
    values: FloatArray,
    draws: FloatArray,
    exchanged: Sequence[SwappedDifferences],
    counts: NDArray[np.int64],
    rows: Sequence[SummaryRow],
    units: Units | None,
    how: Resampling,
    sign: FloatArray,
) -> Differences:
    """Compare the first with each other one in each class, [O, M, K]; scores are [N, M, K + 1].

    ``sign`` [M] is -1 for metrics that fall as detectors improve.
    """
    others, parts = len(exchanged), []
    for value, drawn, swaps in zip(values[1:], draws[1:], exchanged, strict=True):
        delta, of_draws = (value - values[0])[:, :-1], (drawn - draws[0])[..., :-1]
        # Adjust for the classes (max-T), and for the others.
        p_value = np.minimum(swaps.p_values_of_classes() * others, 1.0)
        if how.test == "swap":
            reach = swaps.reach_of_classes(how.level / others, counts[:, :-1])
            low, high = _around(delta, reach, p_value, rows, how)
            enough = enough_units(counts, units)[:, :-1]
            low, high = np.where(enough, low, np.nan), np.where(enough, high, np.nan)
        else:
            ends = intervals_that_hold(
                drawn - draws[0], value - values[0], how.confidence, how.bootstrap_method, counts, units
            )
            low, high = (end[:, :-1] for end in ends)
        verdict = _verdicts(sign[:, None] * delta, low, high, p_value, counts[:, -1:], how)
        wins, error = _wins(of_draws, delta, sign[:, None]), spread(of_draws)
        parts.append((values[0, :, :-1], value[:, :-1], delta, low, high, error, wins, p_value, verdict))
    return Differences(*(np.stack(column) for column in zip(*parts, strict=True)))


def _totals(values: FloatArray, draws: FloatArray, pairs: PairedDifferences, sign: FloatArray) -> Differences:
    """Take the first column of the pairs, with the scores of each side [N, M]."""
    of_first = pairs.take(slice(1, None), 0)
    of_draws = np.moveaxis(draws[1:] - draws[0], 1, 0)  # [resamples, O, M]
    return Differences(
        np.broadcast_to(values[0], values[1:].shape).copy(),
        values[1:],
        of_first.delta,
        of_first.low,
        of_first.high,
        spread(of_draws),
        _wins(of_draws, of_first.delta, sign),
        of_first.p_value,
        of_first.verdict,
    )


def _wins(of_draws: FloatArray, delta: FloatArray, sign: FloatArray) -> FloatArray:
    """Return the fraction of draws (axis 0) in which the other is better; ties count half."""
    defined = np.maximum(np.isfinite(of_draws).sum(axis=0), 1)
    better = sign * of_draws > 0
    wins = (better.sum(axis=0) + 0.5 * (of_draws == 0).sum(axis=0)) / defined
    return np.where(np.isfinite(delta) & (len(of_draws) > 0), wins, np.nan)


def _around(
    delta: FloatArray, reach: FloatArray, p_value: FloatArray, rows: Sequence[SummaryRow], how: Resampling
) -> tuple[FloatArray, FloatArray]:
    """Return the interval that reaches as far to both sides; it excludes 0 exactly if p is significant.

    All arrays are [M, ...]. If the swaps are too few for significance, it contains all possible differences.
    """
    reach = agreeing_reach(reach, delta, p_value, how.level)
    most = np.array([np.inf if row.metric in UNBOUNDED else 1.0 for row in rows])
    most = most.reshape(-1, *[1] * (delta.ndim - 1))
    low, high = np.maximum(delta - reach, -most), np.minimum(delta + reach, most)
    return np.where(np.isinf(low), np.nan, low), np.where(np.isinf(high), np.nan, high)


def _intervals(comparison: DetectorComparison) -> Intervals:
    """Compute the intervals of the scores of each result over all classes, [N, M]."""
    how, results = comparison.resampling, list(comparison.evaluations.values())
    rows, units = chosen_rows(results[0], comparison.metrics), units_of_images(results[0], how.group)
    every = [
        intervals_of(result, rows, confidence=how.confidence, seed=how.seed, units=units, workers=how.workers)
        for result in results
    ]
    return Intervals(*(np.stack([each[..., -1] for each in column]) for column in zip(*every, strict=True)))


def _swap(
    first: Evaluation,
    other: Evaluation,
    rows: Sequence[SummaryRow],
    how: Resampling,
    units: Units | None,
    progress: bool = False,
) -> SwappedDifferences:
    """Swap the results of two detectors; NaN if they cannot be swapped."""
    if how.test == "interval":
        return SwappedDifferences(np.full((1, len(rows), len(first.labels) + 1), np.nan))
    return swapped_differences(
        first,
        other,
        rows,
        resamples=how.resamples,
        seed=how.seed,
        units=units,
        progress=progress,
        workers=how.workers,
    )


def _verdicts(
    gain: FloatArray,
    low: FloatArray,
    high: FloatArray,
    p_value: FloatArray,
    units: NDArray[np.int64],
    how: Resampling,
) -> NDArray[np.object_]:
    """Decide whether the other is better or worse; all arrays [M, ...], ``units`` broadcast to them."""
    if how.test == "interval":
        apart = (low > 0) | (high < 0)
    else:
        apart = p_value <= how.level
    words = np.where(apart & (gain > 0), "better", np.where(apart & (gain < 0), "worse", "cannot tell"))
    return np.where((units < LEAST_UNITS_OF_VERDICT) & ~apart, TOO_FEW, words).astype(object)


def _every_pair(
    values: FloatArray,
    draws: FloatArray,
    order: Sequence[tuple[int, int]],
    exchanged: Sequence[SwappedDifferences],
    counts: NDArray[np.int64],
    rows: Sequence[SummaryRow],
    units: Units | None,
    how: Resampling,
    sign: FloatArray,
) -> tuple[PairedDifferences, FloatArray]:
    """Compare each detector with each other one over all classes, and return the unadjusted p-values, [P, M].

    ``values`` are [N, M], ``draws`` [N, resamples, M]; ``order`` has the row and the column of each pair.
    """
    (N, M), every = values.shape, counts[:, -1:]
    # Adjust the p-values of all pairs together (Holm), and test each interval at the level of its step.
    alone = np.stack([swaps.p_values()[:, -1] for swaps in exchanged])
    adjusted, levels = holm(alone), holm_levels(alone, how.level)
    delta, low, high, p_value = (np.full((N, N, M), np.nan) for _ in range(4))
    verdict = np.full((N, N, M), "", dtype=object)
    opposite = {"better": "worse", "worse": "better"}
    # Fill one triangle of each matrix, and mirror it with the sign reversed.
    for (i, j), swaps, p_of_pair, level in zip(order, exchanged, adjusted, levels, strict=True):
        difference = values[i] - values[j]
        if how.test == "swap":
            lower, upper = _around(difference, swaps.reach(level, counts[:, -1]), p_of_pair, rows, how)
            enough = enough_units(every, units)[:, 0]
            lower, upper = np.where(enough, lower, np.nan), np.where(enough, upper, np.nan)
        else:
            drawn, method = (draws[i] - draws[j])[..., None], how.bootstrap_method
            ends = intervals_that_hold(drawn, difference[:, None], how.confidence, method, every, units)
            lower, upper = (end[:, 0] for end in ends)
        words = _verdicts(sign * difference, lower, upper, p_of_pair, counts[:, -1], how)
        delta[i, j], low[i, j], high[i, j], verdict[i, j] = difference, lower, upper, words
        delta[j, i], low[j, i], high[j, i] = -difference, -upper, -lower
        verdict[j, i] = [opposite.get(word, word) for word in words]
        p_value[i, j] = p_value[j, i] = p_of_pair
    return PairedDifferences(delta, low, high, p_value, verdict), alone


def check_comparable(names: Sequence[str], results: Sequence[Evaluation]) -> None:
    """Check that there are at least two results with one ground truth and one protocol."""
    # Ranked and unranked results have different metrics, and so do different protocols.
    check_one_truth(names, results)
    first = results[0]
    for name, other in zip(names[1:], results[1:], strict=True):
        ranked = [result.has_scores for result in (first, other)]
        if ranked[0] != ranked[1]:
            scored, without = (names[0], name) if ranked[0] else (name, names[0])
            raise InputError(
                "compared results",
                "all have scores, or all lack them",
                got=f"scores for {scored!r} and none for {without!r}",
                cause="use --scoreless (in Python Detections.without_scores()) to count the boxes of "
                "both without ranking them",
            )
        if first.protocol != other.protocol:
            raise InputError(
                "compared results",
                "have the same protocol",
                got=f"{first.protocol.name!r} and {other.protocol.name!r}",
            )


def check_one_truth(names: Sequence[str], results: Sequence[Evaluation]) -> None:
    """Check that there are at least two results with one ground truth."""
    if len(results) < 2:
        raise InputError("a comparison", "have two results or more", got=len(results))
    first = results[0]
    for name, other in zip(names[1:], results[1:], strict=True):
        if not first._has_same_truth(other):
            raise InputError(
                "compared results",
                "have the same ground truth",
                got=f"two, for {names[0]!r} and {name!r}",
            )
