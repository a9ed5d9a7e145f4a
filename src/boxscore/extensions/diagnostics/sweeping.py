"""Sweep suppression settings: suppress and evaluate over a grid without repeated work.

Goal
----
Thresholds are often copied from another detector's paper. A sweep shows their effect on AP, and finds the
best ones for each metric and class.

Method
------
Overlaps are computed once: among the detections, at the lowest IoU threshold of the grid, and with the ground
truth. Each setting selects from them. Methods that merge boxes need new overlaps with the ground truth for
each setting.

Every method and IoU threshold (and sigma) is suppressed and matched once. Score thresholds are then almost
free: a detection affects only lower scores, in suppression and in matching, so raising the threshold only
removes matches. In two cases, every score threshold is computed separately: for methods that merge boxes,
because low scores change the boxes of higher ones; and for protocols that round scores, min-max scale them,
clip boxes, drop detections in regions, or take the order of files as ranking, because they prepare the tables
for each setting.

Conventions
-----------
- The numbers of a setting equal those of ``boxscore nms`` followed by ``boxscore evaluate``. If evaluation
  rejects any setting (such as a single score where scores are min-max scaled), so does the sweep.
- Metrics are those of the protocol under their per-class names: ``mAP`` is ``AP``.
- The best setting has the highest value; ties go to the first in the grid.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import in_threads
from boxscore._utils.progress import progress, stage
from boxscore._utils.text import counted
from boxscore.data.alignment import align, select
from boxscore.data.class_names import EVERY_CLASS
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.matching.ignoring import prepared, rounded_values
from boxscore.matching.matcher import Matcher
from boxscore.protocols import load_protocol
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.protocol import Protocol
from boxscore.suppression.methods import METHODS, Setting, check_method
from boxscore.suppression.result import Suppression
from boxscore.suppression.suppressing import GroupOptions, Suppressor

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack


SETTING = ("method", "iou_threshold", "sigma", "score_threshold")
"""The columns of a setting."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sweep(DiagnosticResult):
    """The scores of every setting of a grid; S settings, K classes.

    Attributes
    ----------
    settings : list of Setting, [S]
        ``method, iou_threshold, sigma, score_threshold``; None for options that a method does not have.
    classes : list of str, [K]
    detections : ndarray of int64, [S, K]
        Number of evaluated detections left after suppression.
    values : dict of str to ndarray of float64, [S, K]
        Each metric of the protocol, per class.
    total_detections : ndarray of int64, [S]
    total : dict of str to ndarray of float64, [S]
        Values over all classes: the protocol's metrics.
    """

    settings: list[Setting]
    classes: list[str]
    detections: NDArray[np.int64]
    values: dict[str, FloatArray]
    total_detections: NDArray[np.int64]
    total: dict[str, FloatArray]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per setting and class.

        ``method, iou_threshold, sigma, score_threshold, class, detections``, and one column per metric;
        options that a method does not have are NaN.
        """
        return self._frame(self.classes, self.detections, self.values)

    def total_frame(self) -> pd.DataFrame:
        """Return one row per setting, over all classes."""
        return self._frame([EVERY_CLASS], self.total_detections, self.total)

    def _frame(
        self, classes: list[str], detections: NDArray[np.int64], values: dict[str, FloatArray]
    ) -> pd.DataFrame:
        import pandas as pd

        S, K = len(self.settings), len(classes)
        return pd.DataFrame(
            {
                **_setting_columns(self.settings, np.repeat(np.arange(S), K)),
                "class": classes * S,
                "detections": detections.ravel(),
                **{name: column.ravel() for name, column in values.items()},
            }
        )


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BestSettings(DiagnosticResult):
    """The best setting of each metric; M metrics, K classes.

    Attributes
    ----------
    settings : list of Setting, [S]
        Settings of the sweep.
    classes : list of str, [K]
    metrics : list of str, [M]
    position : ndarray of intp, [M, K]
        Position in ``settings``; -1 where the metric is undefined for all settings.
    value : ndarray of float64, [M, K]
    total_position, total_value : ndarray, [M]
        The same over all classes.
    """

    settings: list[Setting]
    classes: list[str]
    metrics: list[str]
    position: NDArray[np.intp]
    value: FloatArray
    total_position: NDArray[np.intp]
    total_value: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return ``class, metric, value`` and the setting, one row per class and defined metric."""
        return self._frame(self.classes, self.position, self.value)

    def total_frame(self) -> pd.DataFrame:
        """Return one row per metric, over all classes."""
        return self._frame([EVERY_CLASS], self.total_position[:, None], self.total_value[:, None])

    def _frame(self, classes: list[str], position: NDArray[np.intp], value: FloatArray) -> pd.DataFrame:
        import pandas as pd

        k, m = np.nonzero(position.T >= 0)
        return pd.DataFrame(
            {
                "class": [classes[i] for i in k.tolist()],
                "metric": [self.metrics[i] for i in m.tolist()],
                "value": value[m, k],
                **_setting_columns(self.settings, position[m, k]),
            }
        )


def _setting_columns(settings: Sequence[Setting], positions: NDArray[np.intp]) -> dict[str, Any]:
    """Return the columns of some settings; options that a method does not have are NaN."""
    chosen = [settings[i] for i in positions.tolist()]
    numbers = {name: np.array([getattr(s, name) for s in chosen], dtype=np.float64) for name in SETTING[1:]}
    return {"method": [s.method for s in chosen], **numbers}


class _Job(NamedTuple):
    """A setting that is suppressed and matched once; score thresholds filter its result."""

    # Has the lowest score threshold.
    setting: Setting
    floors: tuple[float | None, ...]


def sweep(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    methods: Sequence[str] = ("hard",),
    iou_thresholds: Sequence[float] = (0.3, 0.4, 0.5, 0.6, 0.7),
    sigmas: Sequence[float] | None = None,
    score_thresholds: Sequence[float] | None = None,
    protocol: str | Path | Mapping[str, Any] | Protocol = "coco",
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
    workers: int = 1,
    **options: Unpack[GroupOptions],
) -> Sweep:
    """Suppress and evaluate with every setting of a grid.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Raw detections, before any suppression.
    methods : sequence of str, default ("hard",)
        Names of :data:`boxscore.suppression.methods.METHODS`.
    iou_thresholds : sequence of float, default (0.3, 0.4, 0.5, 0.6, 0.7)
        A method without this option is computed once.
    sigmas : sequence of float, optional
        Values for the Gaussian methods; by default their own.
    score_thresholds : sequence of float, optional
        By default those of the methods.
    protocol, images, classes
        As for :func:`boxscore.evaluate`. All detections are suppressed; the selected ones are evaluated.
    workers : int, default 1
        Number of threads. The result does not depend on it.
    **options
        Further options of :func:`boxscore.suppress`, the same for every setting: ``class_agnostic``,
        ``class_groups``, ``max_per_group``, ``max_per_image``, ``pixel_offset``.

    Returns
    -------
    Sweep
        Input of :func:`best_settings`.

    Raises
    ------
    InputError
        When the grid is empty, a method is unknown, or suppression or evaluation rejects an option.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 10, 10], [4, 0, 14, 10]])
    >>> detections = Detections.from_arrays([1, 1], ["cat", "cat"], truth.boxes, [0.9, 0.8])
    >>> result = sweep(truth, detections, iou_thresholds=[0.3, 0.5])
    >>> result.total_detections.tolist(), result.total["AP"].round(3).tolist()
    ([1, 2], [0.505, 1.0])
    """
    # Check the options, and list the jobs: score thresholds share one if the protocol allows filtering after
    # matching.
    _refuse_settings(options)
    checks.whole_number(workers, 1, name="workers", high=checks.MOST_WORKERS)
    chosen = load_protocol(protocol)
    apart = not (chosen.scope.is_prepared_by_row and chosen.scope.allows("cuts"))
    jobs = _jobs(methods, iou_thresholds, sigmas, score_thresholds, apart=apart)
    for table, kind, name in (
        (ground_truth, GroundTruth, "ground_truth"),
        (detections, Detections, "detections"),
    ):
        if not isinstance(table, kind):
            raise InputError(
                name,
                f"be a {kind.__name__} table",
                got=f"a {type(table).__name__}",
                cause=f"read files with boxscore.load_{name}",
            )
    if chosen.matching.scores != "given":
        raise InputError("the protocol", "rank detections for a sweep", got=chosen.name)
    # Check every option on empty tables before the work.
    evaluate(
        ground_truth,
        detections.take(np.arange(0)),
        protocol=chosen,
        images=images,
        classes=classes,
        digest=False,
    )
    # Drop inverted boxes first: they would be suppressed but never evaluated.
    # Inverted boxes are not evaluated, so they must not take part in suppression.
    if chosen.boxes.degenerate == "drop_detections":
        detections = detections.take(np.flatnonzero((detections.sizes >= 0).all(axis=1)))
    stage(f"evaluating with {counted(len(jobs), 'setting')}")
    # Prepare what all settings share: ranked groups for suppression, and overlaps for matching.
    grid = _Grid(ground_truth, detections, chosen, images, classes, options, jobs)
    show: dict[str, Any] = {"total": len(jobs), "unit": "setting", "delay": 1, "leave": False}
    if workers == 1:
        rows = [row for job in progress(jobs, **show) for row in grid.run(job)]
    else:
        parts = in_threads(grid.run, jobs, workers=workers)
        rows = [row for part in progress(parts, **show) for row in part]
    # Stack the rows of all settings in the order of the jobs, independent of threads.
    metrics = list(rows[0].values)
    return Sweep(
        [row.setting for row in rows],
        rows[0].classes,
        np.stack([row.detections for row in rows]),
        {name: np.stack([row.values[name] for row in rows]) for name in metrics},
        np.array([row.total_detections for row in rows]),
        {name: np.array([row.total[name] for row in rows]) for name in metrics},
    )


def best_settings(result: Sweep, *, metrics: Sequence[str] | None = None) -> BestSettings:
    """Find the best setting of each metric, over all classes and for each class.

    Parameters
    ----------
    result : Sweep
        From :func:`sweep`.
    metrics : sequence of str, optional
        Only these.

    Returns
    -------
    BestSettings

    Raises
    ------
    InputError
        When the sweep lacks this metric.
    """
    known = list(result.values)
    chosen = [metric_named(name, known, option="metrics") for name in metrics or known]
    # For each metric, take the setting with the largest value for each class and for all, [K + 1]. ``argmax``
    # takes the first of equals; undefined values never win, and a class without a value gets -1.
    positions, values = [], []
    for name in chosen:
        each = np.column_stack([result.values[name], result.total[name]])  # [S, K + 1]
        defined = ~np.isnan(each)
        best = np.where(defined, each, -np.inf).argmax(axis=0)
        values.append(np.take_along_axis(each, best[None], axis=0)[0])
        positions.append(np.where(defined.any(axis=0), best, -1))
    # The reshape keeps the width if no metric is requested.
    width = len(result.classes) + 1
    position = np.array(positions, dtype=np.intp).reshape(len(chosen), width)
    value = np.array(values, dtype=np.float64).reshape(len(chosen), width)
    return BestSettings(
        result.settings,
        result.classes,
        chosen,
        position[:, :-1],
        value[:, :-1],
        position[:, -1],
        value[:, -1],
    )


def _refuse_settings(options: GroupOptions) -> None:
    """Reject options that the grid sets."""
    for name in SETTING:
        if name in options:
            raise InputError(
                f"{name}",
                "not be set on the settings, because the grid varies it",
                got="it",
                cause=f"pass {name}s",
            )


def _jobs(
    methods: Sequence[str],
    iou_thresholds: Sequence[float],
    sigmas: Sequence[float] | None,
    score_thresholds: Sequence[float] | None,
    *,
    apart: bool,
) -> list[_Job]:
    """List the jobs; with ``apart``, every score threshold is a job of its own.

    Rounded scores can tie across a threshold, so lower ones cannot be filtered after matching. The same holds
    if they affect how the others are prepared.
    """
    # Check that each option is a list of distinct values.
    given = {"methods": methods, "iou_thresholds": iou_thresholds}
    given |= {"sigmas": sigmas if sigmas is not None else [0.0]}
    given |= {"score_thresholds": score_thresholds if score_thresholds is not None else [0.0]}
    for name, values in given.items():
        if isinstance(values, str) or not len(values):
            raise InputError(name, "be a list of at least one", got=repr(values))
        if len(set(values)) < len(values):
            raise InputError(name, "not repeat", got=repr(list(values)))
    # Score thresholds need no jobs of their own if they can be applied after matching.
    floors: tuple[float | None, ...] = (None,) if score_thresholds is None else tuple(score_thresholds)
    jobs = []
    # Run a method only over the options that it reads.
    for method in methods:
        reads = METHODS[checks.one_of(method, list(METHODS), name="method")].reads
        ious: Sequence[float | None] = iou_thresholds if "iou_threshold" in reads else [None]
        widths: Sequence[float | None] = sigmas if sigmas is not None and "sigma" in reads else [None]
        for iou, sigma in itertools.product(ious, widths):
            check_method(method, iou_threshold=iou)
            # Make one job per score threshold, or one at the lowest that serves all of them.
            if apart or METHODS[method].changes == "boxes":
                jobs += [_Job(Setting(method, iou, sigma, floor), (floor,)) for floor in floors]
            else:
                lowest = None if score_thresholds is None else min(score_thresholds)
                jobs.append(_Job(Setting(method, iou, sigma, lowest), floors))
    return jobs


class _Row(NamedTuple):
    """The scores of one setting, as in :class:`Sweep`."""

    setting: Setting
    classes: list[str]
    detections: NDArray[np.int64]
    values: dict[str, FloatArray]
    total_detections: int
    total: dict[str, float]


class _Grid:
    """The tables and the data that settings share."""

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        images: Sequence[Id] | None,
        classes: Sequence[Id] | None,
        options: GroupOptions,
        jobs: Sequence[_Job],
    ) -> None:
        self._given, self._protocol = ground_truth, protocol
        self._images, self._classes = images, classes
        self._suppressor = Suppressor(detections, **options)
        self._ranked = self._suppressor.shared([job.setting for job in jobs])
        # Warns once about detections that are left out.
        self._aligned = align(detections, ground_truth)
        known = ground_truth.categories.rows_by_id_or_name(detections.categories.ids.tolist()) >= 0
        # [D], of all given detections.
        self._aligned_row = _numbered(known[detections.category])
        if not protocol.scope.is_prepared_by_row:
            self._matcher = None
            return
        self._truth, evaluated = self._evaluated(self._aligned)
        image = self._truth.images.rows(self._aligned.images.ids)[self._aligned.image]
        category = self._truth.categories.rows(self._aligned.categories.ids)[self._aligned.category]
        # [D], of all aligned detections.
        self._evaluated_row = _numbered((image >= 0) & (category >= 0))
        self._category = evaluated.category
        self._matcher = Matcher(self._truth, evaluated, protocol)

    def run(self, job: _Job) -> list[_Row]:
        """Suppress and match once, and read the result at every score threshold."""
        # Suppress with the shared ranking.
        left = self._keep_aligned(self._suppressor.suppress(job.setting, self._ranked[job.setting]))
        # A method that moves boxes changes overlaps, so its detections are matched from scratch.
        if self._matcher is None or left.changes == "boxes":
            truth, detections = self._evaluated(left.apply(self._aligned))
            matches = Matcher(truth, detections, self._protocol).match()
            scores, category = detections.scores, detections.category
        else:
            # Otherwise match the kept rows, with their changed scores, from the shared overlaps.
            rows = self._evaluated_row[left.indices]
            chosen = np.flatnonzero(rows >= 0)
            rows, scores = rows[chosen], left.scores[chosen]
            truth, category = self._truth, self._category[rows]
            decimals = self._protocol.rounding.scores
            matches = self._matcher.match_some(
                rows, scores if decimals is None else rounded_values(scores, decimals)
            )
        # Score thresholds only filter the matches: higher scores are matched the same way.
        nothing = self._aligned.take(np.arange(0))
        result = []
        for floor in job.floors:
            setting = job.setting._replace(score_threshold=floor)
            left_over, of_class = matches, category
            # Otherwise suppression already applied the threshold.
            if floor is not None and len(job.floors) > 1:
                left_over, of_class = matches.take_scores_from(floor), category[scores >= floor]
            result.append(_row(setting, Evaluation(truth, nothing, self._protocol, left_over), of_class))
        return result

    def _keep_aligned(self, left: Suppression) -> Suppression:
        """Return the kept detections whose classes are in the ground truth, by rows of the aligned table."""
        rows = self._aligned_row[left.indices]
        some = np.flatnonzero(rows >= 0)
        return dataclasses.replace(
            left, indices=rows[some], scores=left.scores[some], boxes=left.boxes[some], suppressed_by=None
        )

    def _evaluated(self, detections: Detections) -> tuple[GroundTruth, Detections]:
        """Return both tables as :func:`boxscore.evaluate` matches them."""
        tables = prepared(self._given, detections, self._protocol)
        return select(*tables, images=self._images, classes=self._classes)


def _numbered(survives: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the row of each survivor among the survivors, [D]; -1 for the others."""
    return np.where(survives, np.cumsum(survives) - 1, -1)


def _row(setting: Setting, evaluation: Evaluation, category: NDArray[np.int32]) -> _Row:
    """Read the numbers of one setting; ``category`` is the class of every detection left."""
    count, values, keys = len(category), evaluation.class_values, evaluation.protocol.class_keys
    counts = np.bincount(category, minlength=len(evaluation.ground_truth.categories))
    return _Row(
        setting,
        evaluation.labels,
        counts if evaluation.protocol.matching.per_class else np.array([count]),
        values,
        count,
        {keys.get(key, key): value for key, value in evaluation.metrics.items()},
    )
