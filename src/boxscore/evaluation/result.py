"""Compute the numbers of an evaluation lazily.

Conventions
-----------
- An :class:`Evaluation` holds the two tables as evaluated, the protocol, and the matches. Every number is a
  function of the matches; ``_once`` caches it.
- Results whose rows are in another process are a subclass in an extension, which overrides the properties
  that need the rows.
- Methods that forward to extensions or reports are thin: :data:`EXTENSIONS` names the function of each.
- Returned values are read-only.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, read_only, unchangeable
from boxscore._utils.lazy import shortcut
from boxscore._utils.processes import Workers
from boxscore._utils.progress import stage
from boxscore._utils.records import NamedTuple, PicklesFields, record
from boxscore._utils.text import counted, enumerated, html_folded, html_summary, html_table
from boxscore._utils.user_warnings import warn_user
from boxscore.data.scores import ALL_EQUAL, SCORELESS, no_scores
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images
from boxscore.errors import InputError
from boxscore.matching.ignoring import zero_ids
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import ApRules
from boxscore.protocols.tables.labels import TRUTH_WEIGHT
from boxscore.scoring.curves import Curves
from boxscore.scoring.summary import CurvesOf, summary_total, summary_values

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.matching.outcomes import Outcomes
    from boxscore.scoring.score_counts import ScoreCounts
    from boxscore.scoring.summary import WeightedMetrics, WeightSets

EXTENSIONS = {
    "answers_text": "boxscore.extensions.scoreless.answer_counts",
    "as_json": "boxscore.reports",
    "as_latex": "boxscore.reports.text",
    "check_class_labels": "boxscore.extensions.federated.listing",
    "check_class_weights": "boxscore.extensions.weights.class_weights",
    "compare_detectors": "boxscore.diagnostics",
    "differing_weights": "boxscore.extensions.weights.class_weights",
    "error_of_mean": "boxscore.extensions.scoreless.orderless",
    "flat": "boxscore.extensions.training.flat_names",
    "part_of": "boxscore.extensions.large.parts",
    "plan_comparison": "boxscore.diagnostics",
    "plot_of": "boxscore.reports.plots",
    "warn_of_annotators": "boxscore.extensions.scoreless.annotators",
    "warn_of_even_sigmas": "boxscore.extensions.keypoints.similarity",
    "warn_of_findings": "boxscore.extensions.validation.digest",
    "weighted_metrics_shared": "boxscore.extensions.weights.shared",
    "write_report": "boxscore.reports",
}
"""Modules of the functions that methods, reports and ``evaluate`` call; imported lazily.

Only this table names packages above this one, and extensions.
"""

Answer = TypeVar("Answer")
MOST_BYTES = 4 << 30
"""Largest size in bytes of arrays over thresholds, recall points and classes; larger ones raise an error."""

PER_LINE = 4
"""Summary metrics per line of a ``repr``."""
NOT_COUNTED = {"crowds": "crowd region", "difficult": "difficult object", "ignored": "ignored object"}
"""Keys of ``Evaluation.counts`` for objects that do not count, and their nouns."""
SHOWN_CLASSES = 20
"""Largest number of classes that a notebook shows."""


class Best(NamedTuple):
    """The detections of each class by descending score, D of them, and those that are true positives."""

    score: NDArray[np.float64]
    """[D]"""
    starts: NDArray[np.intp]
    """Where each class starts, and the end, [K + 1]."""
    true: NDArray[np.intp]
    """Positions of true positives at any threshold in the first area range; ascending."""
    counted: int
    """Number of ground truths that count in the first area range."""

    @classmethod
    def of(cls, matched: Matches) -> Best:
        """Read matches."""
        true = matched.pair_detection[matched.pairs_ever_true(0)]
        return cls(matched.score, matched.class_starts, true, int(matched.positives(0).sum()))


COUNTS_AT_SCORE = ("TP", "FP", "FN")
"""Columns of the counts of each class at a score threshold."""

_INTERNAL = frozenset({"answers", "class_rates", "curves_of", "has_scores", "matched", "outcomes"})
"""Attributes of an evaluation that completion does not offer."""


@record(frozen=True, eq=False)
class Evaluation(PicklesFields):
    """The result of :func:`evaluate`.

    Attributes
    ----------
    ground_truth : GroundTruth
    detections : Detections
        As evaluated: aligned, and only the chosen images and classes.
    protocol : Protocol
    matched : Matches
        Every number is computed from them.
    """

    ground_truth: GroundTruth
    detections: Detections
    protocol: Protocol
    matched: Matches
    _chosen_classes: bool = False

    def __post_init__(self) -> None:
        """Make the matches read-only, since every number is computed from them."""
        unchangeable(self.matched)

    @classmethod
    def _later(
        cls,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        match: Callable[[], Matches],
        chosen_classes: bool,
    ) -> Evaluation:
        """Make a result whose matches ``match`` makes when something asks for them."""
        result = cls.__new__(cls)
        vars(result).update(ground_truth=ground_truth, detections=detections, protocol=protocol)
        vars(result).update(_chosen_classes=chosen_classes)
        result._once("match", lambda: match)
        return result

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again, since unpickled arrays are not."""
        super().__setstate__(state)
        if "matched" in state:
            unchangeable(state["matched"])

    def __getitem__(self, metric: str) -> float:
        """Return a summary metric, such as ``result["AP"]``."""
        if metric in self.metrics:
            return self.metrics[metric]
        from boxscore.protocols.metric_names import metric_named

        return self.metrics[metric_named(metric, list(self.metrics))]

    def __dir__(self) -> list[str]:
        """List the attributes that users need; extensions read the others."""
        return sorted({*super().__dir__()} - _INTERNAL)

    def __repr__(self) -> str:
        values = [f"{key:<6} {value:.4f}" for key, value in self.metrics.items()]
        lines = ["   ".join(values[low : low + PER_LINE]) for low in range(0, len(values), PER_LINE)]
        body = "\n".join(f"  {line}" for line in lines)
        remark = f"\n{self._remark}" if self._remark else ""
        return f"Evaluation of {self._counts_text}{remark}\n{body}\n{self.signature}"

    def _repr_html_(self) -> str:
        inner = ""
        if len(self.labels) > 1 and self.class_values:
            key, values = next(iter(self.class_values.items()))
            order = np.argsort(values, kind="stable")[:SHOWN_CLASSES]  # NaN last
            columns: dict[str, list[Any]] = {"class": [self.labels[k] for k in order.tolist()]}
            for name, column in self._class_table.items():
                columns[name] = column[order].tolist()
            classes = f"{len(self.labels):,} classes, lowest {key} first"
            if len(self.labels) > SHOWN_CLASSES:
                classes = f"{SHOWN_CLASSES} classes with the lowest {key} (of {len(self.labels):,})"
            inner = html_folded(classes, html_table(columns))
        return html_summary(f"Evaluation of {self._counts_text}", self.metrics, self.signature, inner)

    def to_json(self) -> str:
        """Return the result as JSON: protocol, signature, metrics, per class, counts.

        The form is described on the page "JSON output"; undefined is ``null``.
        """
        text: str = extension("as_json")(self)
        return text

    def to_latex(self, *, per_class: bool = False, columns: Sequence[str] = ()) -> str:
        r"""Return the summary as a LaTeX ``tabular`` with the rules of booktabs (``\usepackage{booktabs}``).

        Parameters
        ----------
        per_class : bool, default False
            Add a second table, one row per class.
        columns : sequence of str, optional
            Write only these columns, in this order; a table without any of them is left out.

        Returns
        -------
        str
        """
        text: str = extension("as_latex")(self, per_class=per_class, columns=columns)
        return text

    def compare(
        self, other: Evaluation, *, names: tuple[str, str] = ("this", "other"), **options: Any
    ) -> Any:
        """Compare with another result on the same ground truth: paired differences with intervals.

        Parameters
        ----------
        other : Evaluation
        names : sequence of str, default ("this", "other")
            Names of the two in the table.
        **options
            Options of :func:`boxscore.diagnostics.compare_detectors`: ``resamples``, ``metrics``, ...

        Returns
        -------
        DetectorComparison
            ``delta`` is other minus this.

        Raises
        ------
        InputError
            When the images, objects, classes or protocols differ, or an option breaks a rule.
        """
        _check_is_evaluation(other)
        if len(names) != 2 or names[0] == names[1]:
            raise InputError("names", "be two different names", got=repr(names))
        pair = dict(zip(names, (self, other), strict=True))
        return extension("compare_detectors")(pair, **options)

    def plan(self, other: Evaluation, **options: Any) -> Any:
        """Estimate the smallest difference that these images can show, or the images that one needs.

        Parameters
        ----------
        other : Evaluation
            A result on the same ground truth.
        **options
            Options of :func:`boxscore.diagnostics.plan_comparison`: ``difference``, ``power``, ``metrics``,
            ...

        Returns
        -------
        ComparisonPlan

        Raises
        ------
        InputError
            When the images, objects, classes or protocols differ, an option breaks a rule, or there are too
            few images to plan from.
        """
        _check_is_evaluation(other)
        return extension("plan_comparison")(self, other, **options)

    def plot(self, kind: str = "pr_curve", **options: Any) -> Any:
        """Draw the result with matplotlib; a notebook shows the figure.

        Parameters
        ----------
        kind : str, default "pr_curve"
            A function of :mod:`boxscore.plots`: ``pr_curve``, ``f1_curve``, ``froc``, ``miss_rate``,
            ``per_class``, ``errors``, ``error_curves``, ``confusion_matrix`` or ``reliability``.
        **options
            Options of the function: ``classes``, ``iou_threshold``, ``ax``, ...

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        InputError
            When the plot does not exist, or an option breaks a rule.
        MissingDependencyError
            When matplotlib is not installed.
        """
        return extension("plot_of")(self, kind, **options)

    def report(self, folder: str | Path, **options: Any) -> None:
        """Write a report folder: an HTML page that opens offline, tables and JSON.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        **options
            Options of :class:`boxscore.reports.ReportOptions`: ``title``, ``image_folder``, ``gallery``, ...

        Raises
        ------
        InputError
            When an option breaks a rule or a file cannot be written.
        """
        extension("write_report")(self, folder, **options)

    def save_part(self, path: str | Path) -> None:
        """Save the contribution of this result to scores, for merging with other images.

        :func:`boxscore.distributed.merge` and ``boxscore merge`` compute the numbers of all images, bit for
        bit equal to one evaluation.

        Parameters
        ----------
        path : str or Path
            Named ``*.npz``; 20 to 30 bytes per detection.

        Raises
        ------
        InputError
            When the file cannot be written.
        ProtocolError
            When the protocol's rules need all images together.
        """
        extension("part_of")(self).save(path)

    @property
    def signature(self) -> str:
        """Every choice behind the numbers, in one line."""
        return "|".join([self.protocol.signature(), *self.answers.get("changed", ())])

    @property
    def answers(self) -> Mapping[str, Any]:
        """How the answers of a language model were read (``Detections.answers``); empty for other results."""
        return read_only(self.detections.answers)

    @functools.cached_property
    def labels(self) -> list[str]:
        """Names of the classes, [K]; the axis K of every array here."""
        return read_only(self.ground_truth.categories.labels if self.protocol.matching.per_class else ["all"])

    @property
    def metrics(self) -> dict[str, float]:
        """The summary metrics, by the keys of the protocol's summary; NaN where undefined."""
        return read_only({row.key: self._total(row) for row in self.protocol.rows})

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """Numbers of images, objects, detections and classes.

        ``ground_truths`` are the counted ones in the first area range: the sum of that column in the
        per-class table. Objects that do not count are in ``crowds``, ``difficult`` or ``ignored``. Detections
        of unknown classes are ``left_out``.
        """
        return read_only(
            self._once("counts", lambda: counts_of_tables(self.ground_truth, self.detections, self.matched))
        )

    @property
    def _counts_text(self) -> str:
        """Format ``counts`` as one line of text."""
        counts = self.counts
        kinds = [counted(counts[kind], noun) for kind, noun in NOT_COUNTED.items() if counts[kind]]
        truths = enumerated([counted(counts["ground_truths"], "ground truth"), *kinds])
        parts = [counted(counts["images"], "image"), truths, counted(counts["detections"], "detection")]
        if counts["left_out"]:
            parts.append(f"{counts['left_out']:,} left out")
        return ", ".join([*parts, counted(counts["classes"], "class")])

    @property
    def _remark(self) -> str:
        """A remark to print with the numbers of detections without scores; else empty."""
        scores = self.protocol.matching.scores
        if scores != "none":
            return "" if scores == "given" else ALL_EQUAL
        error = self._expected_error
        drawn = f" AP_expected is an estimate with a standard error of {error:.1g}." if error > 0 else ""
        return f"{SCORELESS}{drawn}"

    @property
    def _expected_error(self) -> float:
        """Standard error of the first metric expected over all orders; 0 where exact, NaN where not known."""
        rows = [row for row in self.protocol.rows if row.metric == "AP_expected"]
        if not rows:
            return 0.0
        error_of_mean = extension("error_of_mean")
        error: float = self._once(
            "expected error", lambda: error_of_mean(rows[0], self.protocol, self.curves_of)
        )
        return error

    @property
    def class_values(self) -> dict[str, NDArray[np.float64]]:
        """Each summary metric per class, [K]; ``mAP`` becomes ``AP`` (``Protocol.class_keys``)."""
        keys = self.protocol.class_keys
        rows = [row for row in self.protocol.rows if row.key in keys]
        return read_only({keys[row.key]: self._values_of_classes(row) for row in rows})

    def _total(self, row: SummaryRow) -> float:
        """Value of a summary metric over all classes."""
        return self._once(("total", row.key), lambda: self._summarized(summary_total, row))

    def _values_of_classes(self, row: SummaryRow) -> NDArray[np.float64]:
        """Value of a summary metric of each class, [K]."""
        return self._once(("values", row.key), lambda: self._summarized(summary_values, row))

    def _summarized(
        self, compute: Callable[[SummaryRow, Protocol, CurvesOf], Answer], row: SummaryRow
    ) -> Answer:
        """Compute a summary row from curves, then free the inputs of these."""
        asked: list[Curves] = []

        def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
            asked.append(self.curves_of(area, cap, pooled))
            return asked[-1]

        answer = compute(row, self.protocol, curves_of)
        for curves in asked:
            curves.release()
        return answer

    @property
    def _summary_classes(self) -> dict[str, list[str]]:
        """The column ``classes`` of the summary; empty if every metric is of all classes."""
        classes = [row.classes for row in self.protocol.rows]
        return read_only({"classes": [one or "all" for one in classes]} if any(classes) else {})

    @property
    def _class_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the data set for each class, [K]: ``frequency`` in LVIS; empty if classes are pooled."""
        columns = self.ground_truth.categories.shown_columns
        return read_only(columns if self.protocol.matching.per_class else {})

    @property
    def _class_weights(self) -> FloatArray | None:
        """The weight of each class in means over classes, [K]; None if all count the same."""
        if not self.protocol.ap.class_weights:
            return None
        weights: FloatArray | None = extension("differing_weights")(self.protocol.ap, self.categories)
        return weights

    @functools.cached_property
    def class_counts(self) -> dict[str, NDArray[np.int64]]:
        """Ground truths, detections, and true positives at the first threshold of each class, [K]."""
        return read_only(self._once("counts of classes", lambda: counts_of_classes(self.matched)))

    @property
    def operating_score(self) -> float:
        """The score threshold of the best F1 of all classes together; minus infinity if F1 is undefined."""
        if not self.has_scores:
            return -np.inf
        counts = self._counts_at_first if self._is_scored else self._score_counts()
        best = counts.best_score(len(counts.positive) - 1)
        return best if best == best else -np.inf

    @property
    def class_rates(self) -> dict[str, NDArray[Any]]:
        """``precision, recall, F1, TP, FP`` and ``FN`` of each class at :attr:`operating_score`, [K] each.

        Computed at one threshold for all classes, the first IoU threshold and the first area range. NaN where
        undefined: precision without detections, recall without objects. If the protocol has a metric with one
        of these names, or an equal one, the metric is kept instead. Without scores, ``false_positives`` and
        ``false_negatives`` come first, in place of the last three.
        """
        known = {*self.protocol.class_keys.values(), *self.protocol.rates_at_first}
        unranked = not self.has_scores
        rates = self._once(
            "class rates",
            lambda: rates_of_classes(self._counts_at_first, self.operating_score, unranked=unranked),
        )
        return read_only({name: values for name, values in rates.items() if name not in known})

    @property
    def _without_class_rates(self) -> str:
        """The reason why :attr:`class_rates` are missing; empty if present."""
        return ""

    @property
    def _class_table(self) -> dict[str, NDArray[Any]]:
        """The columns of :attr:`per_class` after the name of the class, [K] each."""
        return read_only(
            {**self._class_columns, **self.class_counts, **self.class_rates, **self.class_values}
        )

    def flat(self, *, prefix: str = "", classes: bool | str | Sequence[str] = False) -> dict[str, float]:
        """Return the summary metrics under names that loggers of experiments take, always in the same order.

        Parameters
        ----------
        prefix : str, default ""
            Prefix of every name, followed by ``/``: ``"val"`` gives ``val/AP``.
        classes : bool or sequence of str, default False
            Also return metrics of each class, as ``per_class/AP/person``: True for the first metric, or a
            list of metrics. Every class of the ground truth is included, so the names are the same in every
            epoch.

        Returns
        -------
        dict of str to float
            NaN where undefined. Names have letters, digits, ``_``, ``-``, ``.`` and ``/``; other characters
            in class names become ``_``.

        Raises
        ------
        InputError
            When classes do not have such a metric.

        Examples
        --------
        >>> from boxscore import Detections, GroundTruth, evaluate
        >>> truth = GroundTruth.from_arrays([1], ["traffic light"], [[10, 10, 50, 50]])
        >>> detections = Detections.from_arrays([1], ["traffic light"], [[10, 10, 50, 50]], [0.9])
        >>> result = evaluate(truth, detections)
        >>> [name for name in result.flat(prefix="val", classes=True) if "traffic" in name]
        ['val/per_class/AP/traffic_light']
        """
        named: dict[str, float] = extension("flat")(
            self.metrics, self.class_values, self.labels, prefix=prefix, classes=classes
        )
        return named

    def to_frame(self, table: Literal["per_class", "summary", "matches"] = "per_class") -> pd.DataFrame:
        """Return one of the tables as a DataFrame.

        Parameters
        ----------
        table : {"per_class", "summary", "matches"}, default "per_class"
            The attributes :attr:`per_class`, :attr:`summary` and :attr:`matches` are shortcuts.

        Returns
        -------
        DataFrame
        """
        checks.one_of(table, ("per_class", "summary", "matches"), name="table")
        frame: pd.DataFrame = getattr(self, table)
        return frame

    @property
    def summary(self) -> pd.DataFrame:
        """One row per summary metric: ``metric, value, kind, iou, area, max_detections``.

        If some metrics cover only some classes, a column ``classes`` names these, as ``frequency=r``.
        """
        import pandas as pd

        rows = self.protocol.rows
        max_detections = [self.protocol.caps[row.cap] for row in rows]
        return pd.DataFrame(
            {
                "metric": [row.key for row in rows],
                "value": [self.metrics[row.key] for row in rows],
                "kind": [row.metric for row in rows],
                "iou": [self.protocol.iou_text(row) for row in rows],
                "area": [row.area for row in rows],
                **self._summary_classes,
                "max_detections": pd.array(max_detections, dtype="Int64"),
            }
        )

    @property
    def per_class(self) -> pd.DataFrame:
        """One row per class: ``class``, its columns, counts, rates, and summary metrics.

        Its columns are those of the classes, such as ``frequency`` in LVIS. The rates are those of
        :attr:`class_rates`.
        """
        import pandas as pd

        return pd.DataFrame({"class": self.labels, **self._class_table})

    def curves(
        self, *, area: str = "all", max_detections: int | None = None, cap: int | None = None
    ) -> pd.DataFrame:
        """Precision-recall curves in long form.

        Parameters
        ----------
        area : str, default "all"
            The name of an area range of the protocol; its first if none is named all.
        max_detections : int, optional
            One of the protocol's max detections; by default the largest.
        cap : int, optional
            Deprecated: the position of ``max_detections`` among those of the protocol.

        Returns
        -------
        DataFrame
            ``class, iou, recall, precision, score``: one row per class, threshold and recall point.
            ``score`` is the confidence at which the point is reached, NaN if it is never reached. Classes
            without ground truth are left out.
        """
        import pandas as pd

        # Look up area range and max detections by name or value.
        self._require_scores()
        names = list(self.protocol.ignore.area_ranges)
        area = names[0] if area == "all" and "all" not in names else area
        checks.one_of(area, names, name="area")
        if cap is not None:
            warn_user(
                "curves(cap=POSITION) is deprecated: name the value, curves(max_detections=100)",
                DeprecationWarning,
            )
        position = -1 if cap is None else cap
        if max_detections is not None:
            if max_detections not in self.protocol.caps:
                known = ", ".join(str(value) for value in self.protocol.caps if value is not None)
                rule = (
                    f"be one of {known}" if known else ("not be used: the protocol evaluates all detections")
                )
                raise InputError("max_detections", rule, got=repr(max_detections))
            position = self.protocol.caps.index(max_detections)
        # Compute the curves of one area range, and keep the classes that have one, [T, R, K].
        self._check_size("curves", 5)
        curves = self.curves_of(names.index(area), position)
        defined = np.flatnonzero(curves.positive)
        precision, score = curves.interpolated[:, :, defined], curves.reached_scores[:, :, defined]  # [T,R,K]
        # Arrange them in long form: classes outermost, then thresholds, then recall points.
        points = np.array(self.protocol.ap.recall_points)
        T, R, K = precision.shape
        thresholds = np.array(self.protocol.matching.iou_thresholds)
        return pd.DataFrame(
            {
                "class": np.repeat(np.array(self.labels, dtype=object)[defined], T * R),
                "iou": np.tile(np.repeat(thresholds, R), K),
                "recall": np.tile(points, K * T),
                "precision": precision.transpose(2, 0, 1).ravel(),
                "score": score.transpose(2, 0, 1).ravel(),
            }
        )

    @property
    def matches(self) -> pd.DataFrame:
        """One row per detection, in file order: its outcome at the first threshold, over all areas.

        Columns of :meth:`Detections.to_pandas`, then ``rank`` (in its image and class, from 0), ``outcome``
        (``true positive``, ``false positive``, ``ignored``, ``beyond max detections``), ``annotation_id`` and
        ``iou`` of the ground truth it matched, and ``matched_up_to``: the highest threshold at which it is
        still a true positive.
        """
        from boxscore.matching.outcomes import OUTCOMES

        names = ["image_id", "category_id", "class", "x1", "y1", "x2", "y2"]
        # Start from the detections in file order.
        frame = self.detections.to_pandas([*names, "score"] if self.detections.scored else names)
        made, matched, count = self.outcomes, self.matched, len(self.detections)
        # Scatter outcomes and partners by row; a detection beyond max detections has rank -1.
        outcome = np.array(OUTCOMES, dtype=object)[made.detection]
        outcome[made.rank < 0] = "beyond max detections"
        annotation = np.full(count, None, dtype=object)
        rows = np.flatnonzero(made.truth_row >= 0)
        annotation[rows] = self.ground_truth.ids[made.truth_row[rows]]
        # Add the highest threshold at which each is a true positive.
        highest = np.full(count, np.nan)
        detection, threshold = matched.highest_true(0)
        highest[matched.row[detection]] = np.array(self.protocol.matching.iou_thresholds)[threshold]
        frame["rank"], frame["outcome"], frame["annotation_id"] = made.rank, outcome, annotation
        frame["rank"] = frame["rank"].astype("Int64").where(made.rank >= 0)
        frame["iou"], frame["matched_up_to"] = made.iou, highest
        return frame

    @functools.cached_property
    def outcomes(self) -> Outcomes:
        """The outcome of every row of the two tables, at the first threshold and area range."""
        from boxscore.matching.outcomes import outcomes_by_row

        return unchangeable(outcomes_by_row(self.matched, len(self.detections), len(self.ground_truth)))

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Pycocotools' arrays: precision and scores [T, R, K, A, M], recall [T, K, A, M]; NaN for its -1.

        Raises
        ------
        InputError
            When there are so many classes that the arrays take more than 4 GiB.
        """
        self._require_scores()
        areas, limits = len(self.protocol.ignore.area_ranges), len(self.protocol.caps)
        self._check_size("arrays", 2 * areas * limits)
        grid = [self.curves_of(area, cap) for area in range(areas) for cap in range(limits)]

        def stacked(field: str) -> NDArray[np.float64]:
            values = np.stack([getattr(curves, field) for curves in grid], axis=-1)
            return values.reshape(*values.shape[:-1], areas, limits)

        return {
            "precision": stacked("interpolated"),
            "recall": stacked("recall"),
            "scores": stacked("scores"),
        }

    def _check_size(self, name: str, count: int) -> None:
        """Raise an error if ``count`` arrays [T, R, K] would take more than :data:`MOST_BYTES`."""
        T, R = len(self.protocol.matching.iou_thresholds), len(self.protocol.ap.recall_points)
        K = len(self.labels)
        if 8 * T * R * K * count > MOST_BYTES:
            raise InputError(
                name,
                f"take at most {MOST_BYTES / 2**30:g} GiB",
                got=f"{8 * T * R * K * count / 2**30:.1f} GiB, {8 * T * R * count:,} bytes for each of {K:,} "
                "classes",
                cause="evaluate fewer classes, or use class_values or curves_of().at()",
            )

    def ap_by_iou(self) -> NDArray[np.float64]:
        """AP of each IoU threshold and class, [T, K], first area range; NaN where undefined."""
        self._require_scores()
        return self.curves_of(0, -1).average_precision

    @property
    def _evaluated_count(self) -> int:
        """Number of evaluated detections: without those beyond max detections."""
        best: Best | None = self._cache.get("best")
        return len(self.matched) if best is None else len(best.score)

    @property
    def _is_scored(self) -> bool:
        """Whether the curves of the summary are known before the matches."""
        return "match" in self._cache

    @property
    def _matcher(self) -> Matcher:
        """The matcher behind ``matched``, for further questions about the same tables."""
        return self._once("matcher", lambda: Matcher(self.ground_truth, self.detections, self.protocol))

    def curves_of(self, area: int = 0, cap: int = -1, pooled: str | None = None) -> Curves:
        """Return the curves of an area range and max detections; cached.

        Parameters
        ----------
        area, cap : int
            Positions on the axes A and M.
        pooled : str, optional
            One curve for the classes of a selection, ``"frequency=r"``, or ``""`` for all, in place of one
            per class.

        Returns
        -------
        Curves
        """
        cap %= len(self.protocol.caps)
        if pooled is None:
            return self._once(
                ("curves", area, cap), lambda: Curves.of(self.matched, self.protocol, area, cap)
            )
        matched = self._once(("pooled", pooled), lambda: self.matched.pooled(pooled))
        return self._once(("curves", area, cap, pooled), lambda: Curves.of(matched, self.protocol, area, cap))

    def _curves_under(self, ap: ApRules) -> Curves:
        """Return the curves of the first area range and the largest max detections by other rules of AP.

        Parameters
        ----------
        ap : ApRules

        Returns
        -------
        Curves
        """
        return dataclasses.replace(self, protocol=self.protocol.replaced(ap=ap)).curves_of()

    def _weighted_metrics(
        self,
        rows: Sequence[SummaryRow],
        weights: WeightSets,
        *,
        progress: bool = False,
        workers: Workers = "auto",
    ) -> WeightedMetrics:
        """Compute summary metrics under image weights: a weight of 2 counts an image twice.

        Parameters
        ----------
        rows : sequence of SummaryRow
        weights : WeightSets
            Sets of whole numbers, [images] each.
        progress : bool, default False
            Show a progress bar if stderr is a terminal.
        workers : int or "auto", default "auto"
            Processes that share the sets where that pays.

        Returns
        -------
        WeightedMetrics

        Raises
        ------
        InputError
            When ground truths have weights.
        """
        metrics: WeightedMetrics = extension("weighted_metrics_shared")(
            self.matched,
            self.protocol,
            rows,
            weights,
            progress="bootstrap" if progress else "",
            workers=workers,
        )
        return metrics

    def _image_names(self, pattern: str) -> list[str]:
        """Return the file name of each image, or its id, in which a pattern is looked for.

        Parameters
        ----------
        pattern : str
            Named where results hold no file names.

        Returns
        -------
        list of str

        Raises
        ------
        InputError
            When this result was merged of parts.
        """
        return self.images.names

    @property
    def _image_count(self) -> int:
        """Number of evaluated images, including those without objects."""
        return len(self.images)

    @property
    def images(self) -> Images:
        """All evaluated images, including those without objects."""
        return self.ground_truth.images

    @property
    def _image_fingerprint(self) -> str:
        """The sum, modulo 2 ** 256, of the SHA-256 of the id of each image as text: 64 hexadecimal digits."""
        return self.images.fingerprint()

    @property
    def has_scores(self) -> bool:
        """Whether the detections are ranked by scores."""
        return self.protocol.matching.scores == "given"

    @property
    def categories(self) -> Categories:
        """The classes of the ground truth, even if the protocol pools them."""
        return self.ground_truth.categories

    @property
    def _sources(self) -> tuple[str, str]:
        """The sources of the ground truth and of the detections."""
        return self.ground_truth.source, self.detections.source

    @property
    def _holds_matches(self) -> bool:
        """Whether :attr:`matched` is in this process, or small enough to be fetched."""
        return True

    def _require_overlaps(self, what: str) -> None:
        """Raise an error if this result lacks overlaps.

        Parameters
        ----------
        what : str
            Name of the request, for the message.

        Raises
        ------
        InputError
            When this result was merged of parts.
        """

    def _has_same_truth(self, other: Evaluation) -> bool:
        """Whether another result is of the same images, classes and objects.

        Parameters
        ----------
        other : Evaluation

        Returns
        -------
        bool
        """
        if type(other) is not type(self):
            return other._has_same_truth(self)  # it lacks tables here, and compares in another way
        mine, yours = self.ground_truth, other.ground_truth
        return (
            mine.images.same_as(yours.images)
            and mine.categories.same_as(yours.categories)
            and all(
                np.array_equal(getattr(mine, name), getattr(yours, name))
                for name in ("image", "category", "boxes", "crowd", "difficult")
            )
        )

    def _score_counts(
        self,
        threshold: int = 0,
        area: int = 0,
        keep: Callable[[ScoreCounts], Sequence[int]] | None = None,
        *,
        overlaps: bool = False,
    ) -> ScoreCounts:
        """Return the counts at each score threshold; cached.

        Parameters
        ----------
        threshold, area : int
            Positions on the axes T and A.
        keep : callable, optional
            Takes the counts of one curve, or of a range of its scores, and returns the positions to keep: if
            the scores are in several processes, only these are returned. Must be picklable.
        overlaps : bool, default False
            Whether to compute distances; without it they are NaN if the scores are in several processes.

        Returns
        -------
        ScoreCounts

        Raises
        ------
        InputError
            When the detections lack scores.
        """
        self._require_scores()
        return self._counts_at(threshold, area)

    def _require_scores(self) -> None:
        """Raise an error if the detections lack scores.

        Raises
        ------
        InputError
            When the detections lack scores.
        """
        if not self.has_scores:
            raise no_scores(self.detections.source)

    def _counts_at(self, threshold: int, area: int) -> ScoreCounts:
        """Count at each score threshold; without scores, a single threshold keeps all detections."""
        from boxscore.scoring.score_counts import ScoreCounts, counted_detections

        return self._once(
            ("score counts", threshold, area),
            lambda: ScoreCounts.of(counted_detections(self.matched, threshold, area)),
        )

    @property
    def _counts_at_first(self) -> ScoreCounts:
        """The counts at the first threshold and area range; distances may be NaN."""
        if not self._is_scored:
            return self._counts_at(0, 0)
        make: Callable[[], ScoreCounts] = self._cache["make counts at first"]
        return self._once("counts at first", make)

    def _once(self, key: Hashable, compute: Callable[[], Answer]) -> Answer:
        """Return the cached value of a key; compute it on first access.

        Parameters
        ----------
        key : hashable
            The question, with every option that changes the answer.
        compute : callable
            Returns the value.

        Returns
        -------
        object
        """
        if key not in self._cache:
            self._cache[key] = compute()
        answer: Answer = self._cache[key]
        return answer

    @functools.cached_property
    def _cache(self) -> dict[Hashable, Any]:
        return {}


# Where a result has no matches yet, the class makes them: an attribute of the result takes precedence.
_late = functools.cached_property(lambda result: unchangeable(result._cache["match"]()))
_late.__set_name__(Evaluation, "matched")
Evaluation.matched = _late  # type: ignore[assignment]


def extension(name: str) -> Any:
    """Return one of the functions of :data:`EXTENSIONS`."""
    return shortcut(EXTENSIONS[name], name)


def _check_is_evaluation(other: Any) -> None:
    if not isinstance(other, Evaluation):
        cause = "evaluate(ground_truth, detections) makes one"
        raise InputError("other", "be an Evaluation", got=f"a {type(other).__name__}", cause=cause)


def matched_tables(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    workers: int,
    *,
    chosen_classes: bool = False,
) -> Evaluation:
    """Match two tables; also return the matcher, which caches their overlaps."""
    matcher = Matcher(ground_truth, detections, protocol)
    stage("matching")
    matched = matcher.match(workers=workers)
    stage("scoring")
    result = Evaluation(ground_truth, detections, protocol, matched, chosen_classes)
    result._once("matcher", lambda: matcher)
    return result


def without_matches_of_id_zero(result: Evaluation) -> Evaluation:
    """Return the result under ``matching.annotation_id_zero = "unmatched"``, from the same matches."""
    matching = result.protocol.matching.replaced(annotation_id_zero="unmatched")
    zero = zero_ids(result.ground_truth.ids)
    return dataclasses.replace(
        result,
        protocol=result.protocol.replaced(matching=matching),
        matched=result.matched.without_true_positives_of(zero[result.matched.truth_row]),
    )


def counts_of_tables(truth: GroundTruth, detections: Detections, matched: Matches) -> dict[str, int]:
    """Count images, ground truths, objects that do not count, detections, classes and left-out detections."""
    counts = matched.counted(0)
    rest = matched.truth_row[~counts]
    crowd = truth.crowd[rest]
    difficult = truth.difficult[rest] & ~crowd
    return {
        "images": len(truth.images),
        "ground_truths": int(counts.sum()),
        "crowds": int(crowd.sum()),
        "difficult": int(difficult.sum()),
        "ignored": int((~crowd & ~difficult).sum()),
        "detections": len(detections),
        "classes": len(truth.categories),
        "left_out": sum(detections.left_out.values()),
    }


def counts_of_classes(matched: Matches) -> dict[str, NDArray[Any]]:
    """Count ground truths, detections, and true positives at the first threshold of each class, [K].

    Ground truths and true positives are sums of weights, float64, if ground truths have weights.
    """
    K, pairs, weight = len(matched.categories), matched.pairs_true(0, 0), TRUTH_WEIGHT.of(matched.extra)
    classes = matched.category[matched.pair_detection[pairs]]
    return {
        "ground_truths": matched.positives(0),
        "ignored": np.bincount(matched.truth_category[~matched.counted(0)], minlength=K),
        "detections": np.bincount(matched.category, minlength=K),
        "true_positives": np.bincount(
            classes, None if weight is None else weight[matched.pair_truth[pairs]], minlength=K
        ),
    }


def rates_of_classes(counts: ScoreCounts, score: float, *, unranked: bool) -> dict[str, NDArray[Any]]:
    """Compute the rates of each class at a score threshold, [K] each, and the counts that they are made of.

    Without scores (``unranked``) the counts are mistakes of all detections, under their long names.
    """
    true, false = (side[0] for side in counts.counts_from(np.array([score])))
    positive = counts.positive[:-1]
    missed = positive - true
    rates = rates_of_counts(true, false, positive)
    if unranked:
        return {"false_positives": false, "false_negatives": missed, **rates}
    return {**rates, **dict(zip(COUNTS_AT_SCORE, (true, false, missed), strict=True))}


def rates_of_counts(true: NDArray[Any], false: NDArray[Any], positive: NDArray[Any]) -> dict[str, FloatArray]:
    """Compute precision, recall and F1 of true and false positives and ground truths, [K]; 0/0 is NaN."""
    wholes = {
        "precision": (true, true + false),
        "recall": (true, positive),
        "F1": (2 * true, true + false + positive),
    }
    return {
        name: np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
        for name, (part, whole) in wholes.items()
    }
