"""Summarize a suite: the table of sets and models, means, differences, and failures.

Conventions
-----------
- A cell without a result counts as 0 (1 for a metric that falls as detectors improve), or as the worst of all
  cells if that is worse. ``price`` is what leaving the cell out would add to the mean.
- Interval of a mean: where it would be on very many images like those of these sets. Sets are independent, so
  its squared standard error is the sum of theirs (:mod:`boxscore.extensions.weights.left_out`), divided by
  their number squared; Satterthwaite gives its degrees of freedom. ``estimate`` is the mean without the bias
  of few images. There is none if a set has too few images, or if intervals of its metric do not hold.
- ``p_value``: permutation test that swaps the results of two models set by set
  (:mod:`boxscore.extensions.decisions.swapping`), adjusted for the number of models (Holm). It decides the
  verdict, which is about other sets like these. Fewer than six sets are too few.
- The folds of a cross-validation are not independent: :mod:`boxscore.extensions.suite.folds`.
- Intervals of a difference: ``sets`` contains the differences that this test does not reject, so it excludes
  0 exactly if the verdict is ``better`` or ``worse``; none for fewer than ten sets. ``images`` is from images
  drawn within each of these sets, and does not decide. Folds have only that of the test, ``folds``.
- If a set's metric is undefined in a draw, the draw uses the set's value.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import record
from boxscore._utils.text import counted, json_text, short_list
from boxscore.data.tables import GroundTruth
from boxscore.extensions.decisions.compare import TOO_FEW
from boxscore.extensions.decisions.gate import is_value
from boxscore.extensions.decisions.swapping import (
    SwappedDifferences,
    agreeing_reach,
    holm,
    holm_levels,
    level_of,
)
from boxscore.extensions.suite.folds import p_values_of_folds, reach_of_folds
from boxscore.extensions.weights.left_out import Spread, jackknife_intervals, spread_of
from boxscore.extensions.weights.resampling import (
    LEAST_UNITS,
    LEAST_UNITS_OF_VERDICT,
    Swaps,
    interval,
)
from boxscore.protocols import load_protocol

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.extensions.suite.reading import Suite

OK, MISSING, EMPTY, BROKEN = "ok", "missing", "empty", "broken"
"""States of a cell."""

MAIN = "main"
"""Name of the metric in the table if sets have different metrics."""

METHOD: Final = "expanded_percentile"

LEAST_SETS = 10
"""Minimum number of sets for an interval over sets."""

MORE_CORRECTION = 0.75
"""Part of the correction of AP by which the estimate may still be too high: with 80 classes in 100 images."""


@record(frozen=True, eq=False)
class Cell:
    """The result of one model on one set.

    Attributes
    ----------
    state : {"ok", "missing", "empty", "broken"}
    reason : str
        Reason for any other state than ok.
    metrics : mapping of str to float
    draws : ndarray of float64
        The suite's metric in each draw of the images; empty without a result.
    left_out : ndarray of float64
        The suite's metric without the bias of few images: of all images, then without each group of images.
        Empty without a result, or if intervals of the metric do not hold.
    units : int
        Number of images with an object of the metric.
    is_enough : bool
        Whether these are enough images for an interval.
    signature : str
    counts : mapping of str to int
    warnings : list of str
    """

    state: str
    reason: str
    metrics: Mapping[str, float]
    draws: FloatArray
    signature: str
    counts: Mapping[str, int]
    warnings: list[str]
    left_out: FloatArray
    units: int
    is_enough: bool

    @classmethod
    def failed(cls, state: str, reason: str, truth: GroundTruth | None = None) -> Cell:
        """Make a cell without a result."""
        counts = {} if truth is None else {"images": len(truth.images)}  # no protocol counted its objects
        return cls(state, reason, {}, np.empty(0), "", counts, [], np.empty(0), 0, False)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @classmethod
    def of_dict(cls, value: Mapping[str, Any]) -> Cell:
        """Parse the JSON form; raise ValueError if it is invalid."""
        # JSON lacks NaN, so undefined numbers are null.
        metrics = {key: np.nan if number is None else number for key, number in value["metrics"].items()}
        draws, left_out = (
            np.array([np.nan if number is None else number for number in value[name]], dtype=float)
            for name in ("draws", "left_out")
        )
        # Reject any other content: the cell is then computed again.
        texts = [value[name] for name in ("state", "reason", "signature")]
        if not all(isinstance(text, str) for text in [*texts, *value["warnings"]]):
            raise ValueError("texts")
        if texts[0] not in (OK, MISSING, EMPTY, BROKEN) or not all(map(is_value, value["metrics"].values())):
            raise ValueError("a state or a metric")
        return cls(
            texts[0],
            texts[1],
            metrics,
            draws,
            texts[2],
            {key: int(number) for key, number in value["counts"].items()},
            list(value["warnings"]),
            left_out,
            int(value["units"]),
            bool(value["is_enough"]),
        )


@record(frozen=True, eq=False, repr=False)
class SuiteResult:
    """The results of a suite of S sets and M models.

    Attributes
    ----------
    suite : Suite
    set_metrics : tuple of str, [S]
        The key of each set's metric in its summary.
    cells : list of list of Cell, [S][M]
    confidence : float
    seed : int
    """

    suite: Suite
    set_metrics: tuple[str, ...]
    cells: Sequence[Sequence[Cell]]
    confidence: float
    seed: int

    @property
    def metric(self) -> str:
        """Key of the table's metric, or ``main`` if sets have their own."""
        return self.set_metrics[0] if len(set(self.set_metrics)) == 1 else MAIN

    @property
    def caption(self) -> str:
        """Describe the metric of the table."""
        return "main metric" if self.metric == MAIN else self.metric

    @property
    def sets(self) -> list[str]:
        """Names of the sets, [S]."""
        return [one.name for one in self.suite.sets]

    @property
    def models(self) -> list[str]:
        """Names of the models, [M]."""
        return list(self.suite.models)

    @property
    def groups(self) -> list[str]:
        """Names of the groups, in order of appearance."""
        return list(dict.fromkeys(group for one in self.suite.sets for group in one.groups))

    @functools.cached_property
    def falls(self) -> bool:
        """Whether the metric falls as detectors improve."""
        return self.set_metrics[0] in load_protocol(self.suite.sets[0].protocol).lower_is_better

    @functools.cached_property
    def worked(self) -> NDArray[np.bool_]:
        """Whether each cell has a result, [S, M]."""
        return np.array([[cell.state == OK for cell in row] for row in self.cells])

    @functools.cached_property
    def worst(self) -> float:
        """Value of a cell without a result: 0 (1 for a metric that falls), or the worst cell's if worse."""
        rows = zip(self.set_metrics, self.cells, strict=True)
        known = [cell.metrics[key] for key, row in rows for cell in row if cell.state == OK]
        return max([1.0, *known]) if self.falls else min([0.0, *known])

    @functools.cached_property
    def values(self) -> FloatArray:
        """The metric of each cell, [S, M]; the worst value without a result."""
        return np.array(
            [
                [cell.metrics[key] if cell.state == OK else self.worst for cell in row]
                for key, row in zip(self.set_metrics, self.cells, strict=True)
            ]
        )

    @property
    def images(self) -> NDArray[np.int64]:
        """Number of images of each set, [S]; 0 if unknown."""
        return np.array([max(cell.counts.get("images", 0) for cell in row) for row in self.cells])

    @functools.cached_property
    def draws(self) -> FloatArray:
        """The metric of each cell in each draw of its images, [resamples, S, M]."""
        count = max((len(cell.draws) for row in self.cells for cell in row), default=0)
        draws = np.broadcast_to(self.values, (count, *self.values.shape)).copy()
        for s, row in enumerate(self.cells):
            for m, cell in enumerate(row):
                if cell.state == OK:
                    draws[:, s, m] = np.where(np.isnan(cell.draws), self.values[s, m], cell.draws)
        return draws

    @functools.cached_property
    def spread(self) -> Spread:
        """How far the mean of each model over the sets may be off, [M]; NaN where it is unknown."""
        parts = [[self._spread_of(s, m) for m in range(len(self.models))] for s in range(len(self.sets))]
        estimate, without_bias, error, freedom = np.moveaxis(np.array(parts), 2, 0)  # [S, M]
        # Sum independent variances; those that are 0 have any number of degrees of freedom.
        variance, count = error**2, len(self.sets)
        total = variance.sum(axis=0)
        weights = (variance**2 / freedom).sum(axis=0)
        joint = np.divide(total**2, weights, out=np.ones_like(total), where=weights > 0)
        # A model without any result has no interval.
        error = np.where(self.worked.any(axis=0), np.sqrt(total) / count, np.nan)
        means = (each.mean(axis=0) for each in (estimate, without_bias, self.values))
        return Spread(next(means), next(means), error, joint, next(means))

    def _interval_of_mean(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval of each model's mean, [M].

        Averaging over sets makes the standard error smaller, and not the bias that an estimate still has. So
        the interval also contains the one around an estimate that is corrected further. That of folds
        contains the interval over folds too, and needs all of them.
        """
        spread, folds = self.spread, self.suite.folds
        if folds:
            # In several rounds the same images count again.
            rounds = len(self.sets) / folds
            error = np.where(self.worked.all(axis=0), spread.standard_error, np.nan) * np.sqrt(rounds)
            spread = spread._replace(standard_error=error)
        further = spread.estimate - MORE_CORRECTION * (self.values.mean(axis=0) - spread.estimate)
        low, high = jackknife_intervals(spread, self.confidence)
        lower, upper = jackknife_intervals(spread._replace(without_bias=further), self.confidence)
        low, high = np.minimum(low, lower), np.maximum(high, upper)
        if folds:
            of_each = [
                [self._spread_of(s, m)[0] for m in range(len(self.models))] for s in range(len(self.sets))
            ]
            reach = reach_of_folds(np.array(of_each), folds, self.confidence)
            low, high = np.minimum(low, spread.estimate - reach), np.maximum(high, spread.estimate + reach)
        return low, high

    @functools.cached_property
    def interval_note(self) -> str:
        """Name the sets for which no model's mean has an interval, and why; empty if there are none."""
        cells = [[cell for cell in row if cell.state == OK] for row in self.cells]
        known = [(name, row) for name, row in zip(self.sets, cells, strict=True) if row]
        failed = [self.models[m] for m in np.flatnonzero(~self.worked.all(axis=0)).tolist()]
        unknown = [name for name, row in known if not len(row[0].left_out)]
        few = [name for name, row in known if len(row[0].left_out) and not row[0].is_enough]
        parts = [f"no interval of this metric that was tried holds in simulations: {short_list(unknown)}"]
        parts = parts * bool(unknown)
        parts += [f"too few images with objects: {short_list(few)}"] * bool(few)
        lacking = bool(self.suite.folds and failed)
        parts += [f"folds without a result: {short_list(failed)}"] * lacking
        return f"No interval: {'; '.join(parts)}." if parts else ""

    def _spread_of(self, s: int, m: int) -> tuple[float, float, float, float]:
        """Return the spread of a cell; a cell without a result counts as the worst value, without error."""
        cell = self.cells[s][m]
        if cell.state != OK:
            return self.worst, self.worst, 0.0, 1.0
        if not len(cell.left_out):
            return np.nan, np.nan, np.nan, 1.0
        if not cell.is_enough:
            return float(cell.left_out[0]), np.nan, np.nan, 1.0
        spread = spread_of(cell.left_out, np.array(cell.units, dtype=np.int64))
        error, freedom = float(spread.standard_error), float(spread.freedom)
        return float(spread.estimate), float(spread.without_bias), error, freedom

    @functools.cached_property
    def signature(self) -> str:
        """Protocol signature of every set, or the distinct ones."""
        signatures = dict.fromkeys(cell.signature for row in self.cells for cell in row if cell.signature)
        return " + ".join(signatures)

    @property
    def wins(self) -> FloatArray:
        """Number of sets on which each model is the best, [M]; ties are shared."""
        signed = -self.values if self.falls else self.values
        best = signed == signed.max(axis=1, keepdims=True)
        best &= self.worked
        shares: FloatArray = (best / np.maximum(best.sum(axis=1, keepdims=True), 1)).sum(axis=0)
        return shares

    def model_frame(self) -> pd.DataFrame:
        """Return one row per model.

        ``model, mean, estimate, low, high, median, worst, worst_set, wins``, one column per group,
        ``failed``, and ``mean_without_failed``, the mean without failed cells. ``estimate`` is the mean
        without the bias of few images; ``low`` and ``high`` are its interval. Folds also have ``sd``, which
        is NaN if one of them has no result, and ``worst_fold``.
        """
        import pandas as pd

        # A failed cell counts as the worst value, so that failing cannot raise a mean.
        values, (low, high) = self.values, self._interval_of_mean()
        worst = values.argmax(axis=0) if self.falls else values.argmin(axis=0)
        without = np.where(self.worked, values, np.nan)
        none = ~self.worked.any(axis=0)
        # A failed fold says nothing of how far folds differ.
        sd = np.where(self.worked.all(axis=0), values.std(axis=0, ddof=1), np.nan) if self.suite.folds else 0
        # One column per statistic over the sets, and a mean per group.
        columns: dict[str, Any] = {
            "model": self.models,
            "mean": values.mean(axis=0),
            **({"sd": sd} if self.suite.folds else {}),
            "estimate": self.spread.estimate,
            "low": low,
            "high": high,
            "median": np.median(values, axis=0),
            "worst": values[worst, np.arange(len(self.models))],
            f"worst_{self.suite.unit}": [self.sets[s] for s in worst.tolist()],
            "wins": self.wins,
        }
        for group in self.groups:
            rows = [group in one.groups for one in self.suite.sets]
            columns[f"mean {group}"] = values[rows].mean(axis=0)
        columns["failed"] = (~self.worked).sum(axis=0)
        # Compute the mean without failed cells; the maximum avoids a division by 0.
        columns["mean_without_failed"] = np.where(
            none, np.nan, np.nansum(without, axis=0) / np.maximum(self.worked.sum(axis=0), 1)
        )
        return pd.DataFrame(columns)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per set: ``set, groups, images``, its ``metric`` if they differ, each model.

        The first column of folds is ``fold``.
        """
        import pandas as pd

        groups = [" ".join(one.groups) for one in self.suite.sets]
        head: dict[str, Any] = {self.suite.unit: self.sets, **({"groups": groups} if any(groups) else {})}
        head["images"] = self.images
        if self.metric == MAIN:
            head["metric"] = self.set_metrics
        return pd.DataFrame({**head, **dict(zip(self.models, self.values.T, strict=True))})

    def failed_frame(self) -> pd.DataFrame:
        """Return one row per cell without a result: ``set, model, state, counts_as, price, reason``.

        The first column of folds is ``fold``. ``price`` is how much the model's mean would rise without this
        cell.
        """
        import pandas as pd

        values, rows = self.values, []
        for s, m in np.argwhere(~self.worked).tolist():
            others = np.delete(values[:, m], s)
            price = others.mean() - values[:, m].mean() if len(others) else np.nan
            cell = self.cells[s][m]
            rows.append((self.sets[s], self.models[m], cell.state, values[s, m], price, cell.reason))
        return pd.DataFrame(rows, columns=[self.suite.unit, "model", "state", "counts_as", "price", "reason"])

    def difference_frame(self) -> pd.DataFrame:
        """Return one row per model except the first, which it is compared with.

        ``first, other, delta, low_images, high_images, low_sets, high_sets, p_value, verdict, sets_won,
        sets_lost``; differences are other minus first, as a mean over sets. Folds have ``low_folds,
        high_folds, folds_won, folds_lost`` instead, and no interval of images.
        """
        import pandas as pd

        # Subtract first from other in each set.
        delta = self.values[:, 1:] - self.values[:, :1]  # [S, O]
        mean = delta.mean(axis=0)
        # Take the verdict from the swap test, or of folds from a corrected t-test.
        folds, units = self.suite.folds, f"{self.suite.unit}s"
        p_values, reach = self._tested(delta) if folds else self._swapped(delta)
        gain = -delta if self.falls else delta
        few = not folds and len(self.sets) < LEAST_UNITS_OF_VERDICT
        apart = p_values <= level_of(self.confidence)
        words = np.where(apart, np.where(gain.mean(axis=0) > 0, "better", "worse"), "cannot tell")
        return pd.DataFrame(
            {
                "first": self.models[0],
                "other": self.models[1:],
                "delta": mean,
                **({} if folds else self._over_images(mean)),
                f"low_{units}": mean - reach,
                f"high_{units}": mean + reach,
                "p_value": p_values,
                "verdict": [TOO_FEW.replace("images", "sets") if few else word for word in words.tolist()],
                f"{units}_won": (gain > 0).sum(axis=0),
                f"{units}_lost": (gain < 0).sum(axis=0),
            }
        )

    def _over_images(self, mean: FloatArray) -> dict[str, FloatArray]:
        """Return the ends of the intervals of mean differences [O] over images of every set."""
        # Both models use the same drawn images.
        draws, units = (self.draws[..., 1:] - self.draws[..., :1]).mean(axis=1), int(self.images.sum())
        low = high = np.full(mean.shape, np.nan)
        if len(draws) and units >= LEAST_UNITS:
            low, high = interval(draws, mean, self.confidence, METHOD, units)
        return {"low_images": low, "high_images": high}

    def _swapped(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Swap the models set by set; return adjusted p-values, [O], and half the width of intervals."""
        weights = iter(Swaps.of_seed(len(delta), 1999, self.seed))
        signs = [own[::2] - own[1::2] for own, _ in zip(weights, weights, strict=True)]
        swaps = SwappedDifferences((np.array(signs) @ delta / len(delta))[..., None])
        alone, level = swaps.p_values()[:, 0], level_of(self.confidence)
        p_values = holm(alone)
        reach = swaps.reach(holm_levels(alone, level), np.full(delta.shape[1], len(delta)))
        reach = agreeing_reach(reach, delta.mean(axis=0), p_values, level)
        return p_values, np.where(np.isfinite(reach) & (len(delta) >= LEAST_SETS), reach, np.nan)

    def _tested(self, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Test differences over folds; return adjusted p-values, [O], and half the width of intervals."""
        alone, level = p_values_of_folds(delta, self.suite.folds), level_of(self.confidence)
        levels = holm_levels(alone, level).tolist()
        pairs = zip(delta.T, levels, strict=True)
        reach = np.array([reach_of_folds(column, self.suite.folds, 1 - each) for column, each in pairs])
        p_values = holm(alone)
        # Without a result of every fold there is nothing to test.
        known = (self.worked[:, 1:] & self.worked[:, :1]).all(axis=0)
        reach = agreeing_reach(reach, delta.mean(axis=0), p_values, level)
        return np.where(known, p_values, np.nan), np.where(known, reach, np.nan)

    @property
    def rule(self) -> str:
        """State what the verdict of a difference and its interval over sets, or folds, are."""
        share, most = f"{100 * self.confidence:g}%", f"{1 - self.confidence:.4g}"
        if self.suite.folds:
            return (
                f"Verdict: better or worse if the p-value of a t-test over folds is at most {most}, else "
                "cannot tell. The test allows for models that share training images (Nadeau and Bengio). "
                f"The {share} interval over folds excludes 0 exactly then."
            )
        return (
            f"Verdict: better or worse if the p-value of a paired permutation test over data sets is at most "
            f"{most}, otherwise cannot tell. The {share} interval over sets excludes 0 exactly then (from "
            f"{LEAST_SETS} data sets on); that over images is about these data sets alone and does not "
            "decide."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, which ``boxscore check --result`` reads, with every cell.

        ``metrics`` belong to the first model; ``per_class`` has a row for each model, and one for each cell,
        ``SET/MODEL``.
        """
        # Use the metrics of the first model for the whole suite, because the gate reads these.
        models = self.model_frame().to_dict("records")
        named = [
            {"class": row["model"], self.metric: row["mean"], "median": row["median"], "worst": row["worst"]}
            | {key: value for key, value in row.items() if str(key).startswith("mean ")}
            for row in models
        ]
        cells = [
            {"class": f"{name}/{model}", self.metric: value}
            for name, line in zip(self.sets, self.values.tolist(), strict=True)
            for model, value in zip(self.models, line, strict=True)
        ]
        first = {key: value for key, value in named[0].items() if key != "class"}
        # The digest covers sets and their sizes, so that other data do not match.
        names = hashlib.sha256(
            "\n".join(f"{n} {i}" for n, i in zip(self.sets, self.images, strict=True)).encode()
        )
        # Write tables as records, and every metric of every cell.
        return {
            "schema": 1,
            "suite": self.suite.name,
            **({"folds": self.suite.folds} if self.suite.folds else {}),
            "metric": self.metric,
            "signature": self.signature or f"boxscore|{self.metric}",
            "metrics": first,
            "lower_is_better": list(first) if self.falls else [],
            "counts": {"images": int(self.images.sum()), "sets": len(self.sets), "models": len(self.models)},
            "images_digest": names.hexdigest(),
            "per_class": [*named, *cells],
            "models": models,
            "sets": self.to_frame().to_dict("records"),
            "differences": self.difference_frame().to_dict("records"),
            "failed": self.failed_frame().to_dict("records"),
            "warnings": [f"{where}: {text}" for where, text in self.warnings],
            "confidence": self.confidence,
            "all_metrics": {
                f"{name}/{model}": dict(cell.metrics)
                for name, row in zip(self.sets, self.cells, strict=True)
                for model, cell in zip(self.models, row, strict=True)
            },
        }

    def to_json(self) -> str:
        """Return the result as JSON; undefined values are ``null``."""
        return json_text(self.as_dict())

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Return the warnings of reading and evaluating, each with ``SET/MODEL``."""
        return [
            (f"{name}/{model}", text)
            for name, row in zip(self.sets, self.cells, strict=True)
            for model, cell in zip(self.models, row, strict=True)
            for text in cell.warnings
        ]

    def __repr__(self) -> str:
        count = int((~self.worked).sum())
        sets = counted(len(self.sets), self.suite.unit)
        head = f"SuiteResult: {sets} x {len(self.models)} models, {self.metric}"
        return (
            f"{head}{f', {count} cells failed' if count else ''}\n{self.model_frame().to_string(index=False)}"
        )
