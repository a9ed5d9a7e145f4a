"""Which suppression settings score best: suppression and evaluation over a grid, nothing computed twice.

Goal
----
Thresholds are usually copied from the paper of another detector. This shows what they do to AP, and which are
best for each metric and class.

Method
------
Overlaps are found once: those among the detections, at the lowest IoU threshold of the grid, and those with
the ground truth. A setting chooses among them. Methods that merge boxes have the latter of their own.

Every method and IoU threshold (and sigma) is suppressed and matched once. A score threshold then costs next
to nothing: a detection only ever acts on worse ones, in suppression and in matching, so the matches at a
threshold are those without it, less the detections below. Merging is the exception, where low scores widen
the boxes of better ones: there every score threshold is computed by itself.

Conventions
-----------
- A setting's numbers are those of ``boxscore nms`` followed by ``boxscore evaluate`` with it.
- Columns are the metrics of the protocol, ``mAP`` called ``AP``; the rows of class ``(all)`` hold the
  protocol's own numbers.
- The best is the highest value, of equal ones the setting that comes first in the grid.
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
from boxscore.data.alignment import align, select
from boxscore.data.rounding import rounded
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.matching.matcher import Matcher
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.suppression.methods import METHODS, Setting, check_method
from boxscore.suppression.result import Suppression
from boxscore.suppression.suppressing import GroupOptions, Suppressor

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

__all__ = ["ALL", "SETTING", "best_settings", "sweep"]

ALL = "(all)"
"""What the rows of the whole data set have for a class."""

SETTING = ("method", "iou_threshold", "sigma", "score_threshold")
"""The columns that make a setting."""


class _Job(NamedTuple):
    """What is suppressed and matched together: the score thresholds are cut from one result."""

    setting: Setting  # with the lowest score threshold
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
) -> pd.DataFrame:
    """Suppress and evaluate with every setting of a grid.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Raw: before any suppression.
    methods : sequence of str, default ("hard",)
        Names of :data:`boxscore.suppression.methods.METHODS`.
    iou_thresholds : sequence of float, default (0.3, 0.4, 0.5, 0.6, 0.7)
        A method that has none is computed once.
    sigmas : sequence of float, optional
        For the Gaussian methods; their own default when not given.
    score_thresholds : sequence of float, optional
        The methods' own default when not given.
    protocol, images, classes
        As for :func:`boxscore.evaluate`. All detections are suppressed, the chosen ones evaluated.
    workers : int, default 1
        Threads. The result does not depend on it.
    **options
        Further options of :func:`boxscore.suppress`, the same for every setting:
        ``class_agnostic``, ``class_groups``, ``max_per_group``, ``max_per_image``, ``pixel_offset``.

    Returns
    -------
    DataFrame
        ``method, iou_threshold, sigma, score_threshold, class, detections``, and a column a metric: one row a
        setting for the whole, class ``(all)``, and one a class. What a method does not have is NaN.
        :func:`best_settings` reads it.

    Raises
    ------
    InputError
        When the grid is empty, a method is unknown, or an option breaks a rule of suppression or evaluation.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 10, 10], [4, 0, 14, 10]])
    >>> found = Detections.from_arrays([1, 1], ["cat", "cat"], truth.boxes, [0.9, 0.8])
    >>> table = sweep(truth, found, iou_thresholds=[0.3, 0.5])
    >>> table.loc[table["class"] == "(all)", ["iou_threshold", "detections", "AP"]].round(3).values.tolist()
    [[0.3, 1.0, 0.505], [0.5, 2.0, 1.0]]
    """
    import pandas as pd
    from tqdm import tqdm

    _refuse_settings(options)
    checks.whole_number(workers, 1, name="workers")
    chosen = load_protocol(protocol)
    jobs = _jobs(methods, iou_thresholds, sigmas, score_thresholds, apart=chosen.rounding.scores is not None)
    # Nothing to score, but every option checked, once and before the work.
    if not isinstance(detections, Detections):
        raise InputError(
            "detections",
            "be a Detections table",
            got=f"a {type(detections).__name__}",
            cause="load files with boxscore.load_detections",
        )
    evaluate(ground_truth, detections.take(np.arange(0)), protocol=chosen, images=images, classes=classes)
    detections = align(detections, ground_truth)  # warns once of what is left out

    grid = _Grid(ground_truth, detections, chosen, images, classes, options, jobs)
    show: dict[str, Any] = {
        "total": len(jobs),
        "unit": "setting",
        "delay": 1,
        "disable": None,
        "leave": False,
    }
    if workers == 1:
        rows = [row for job in tqdm(jobs, **show) for row in grid.run(job)]
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(workers) as pool:
            rows = [row for part in tqdm(pool.map(grid.run, jobs), **show) for row in part]
    frame = pd.DataFrame(rows)
    settings = ["iou_threshold", "sigma", "score_threshold"]
    return frame.astype(dict.fromkeys(settings, "float64"))


def best_settings(table: pd.DataFrame) -> pd.DataFrame:
    """Find the best setting of each metric, for the whole and for each class.

    Parameters
    ----------
    table : DataFrame
        From :func:`sweep`.

    Returns
    -------
    DataFrame
        ``class, metric, value``, and the setting. What is undefined everywhere has no row.
    """
    import pandas as pd

    metrics = [name for name in table.columns if name not in (*SETTING, "class", "detections")]
    rows = []
    for label in table["class"].unique():
        part = table[table["class"] == label]
        for metric in metrics:
            values = part[metric].to_numpy(dtype=np.float64)
            if np.isnan(values).all():
                continue
            best = part.iloc[int(np.nanargmax(values))]
            setting = {name: best[name] for name in SETTING}
            rows.append({"class": label, "metric": metric, "value": best[metric], **setting})
    return pd.DataFrame(rows, columns=["class", "metric", "value", *SETTING])


def _refuse_settings(options: GroupOptions) -> None:
    """Refuse what the grid sets."""
    for name in SETTING:
        if name in options:
            raise InputError(f"{name}", "be left to the grid", got="it", cause=f"pass {name}s")


def _jobs(
    methods: Sequence[str],
    iou_thresholds: Sequence[float],
    sigmas: Sequence[float] | None,
    score_thresholds: Sequence[float] | None,
    *,
    apart: bool,
) -> list[_Job]:
    """List what is suppressed; ``apart``, each score threshold is matched by itself.

    Scores that are rounded tie across a threshold, so that what lies below it cannot be cut after matching.
    """
    given = {"methods": methods, "iou_thresholds": iou_thresholds}
    given |= {"sigmas": sigmas if sigmas is not None else [0.0]}
    given |= {"score_thresholds": score_thresholds if score_thresholds is not None else [0.0]}
    for name, values in given.items():
        if isinstance(values, str) or not len(values):
            raise InputError(name, "be a list of at least one", got=repr(values))
        if len(set(values)) < len(values):
            raise InputError(name, "be given once each", got=repr(list(values)))
    floors: tuple[float | None, ...] = (None,) if score_thresholds is None else tuple(score_thresholds)
    jobs = []
    for method in methods:
        reads = METHODS[checks.one_of(method, list(METHODS), name="method")].reads
        ious: Sequence[float | None] = iou_thresholds if "iou_threshold" in reads else [None]
        widths: Sequence[float | None] = sigmas if sigmas is not None and "sigma" in reads else [None]
        for iou, sigma in itertools.product(ious, widths):
            check_method(method, iou_threshold=iou)
            if apart or METHODS[method].changes == "boxes":
                jobs += [_Job(Setting(method, iou, sigma, floor), (floor,)) for floor in floors]
            else:
                lowest = None if score_thresholds is None else min(score_thresholds)
                jobs.append(_Job(Setting(method, iou, sigma, lowest), floors))
    return jobs


class _Grid:
    """The tables, and what the settings share."""

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
        self._detections, self._protocol = detections, protocol
        self._suppressor = Suppressor(detections, **options)
        self._ranked = self._suppressor.shared([job.setting for job in jobs])
        self._truth, evaluated = select(ground_truth, detections, images=images, classes=classes)
        self._evaluated = rounded(evaluated, scores=None, boxes=protocol.rounding.boxes)
        image = self._truth.images.rows(detections.images.ids)[detections.image]
        category = self._truth.categories.rows(detections.categories.ids)[detections.category]
        known = (image >= 0) & (category >= 0)
        self._place = np.where(known, np.cumsum(known) - 1, -1)  # [D], row among those evaluated
        self._nothing = self._evaluated.take(np.arange(0))
        self._matcher = Matcher(self._truth, self._evaluated, protocol)

    def run(self, job: _Job) -> list[dict[str, Any]]:
        """Suppress and match once, and read off every score threshold."""
        left = self._suppressor.suppress(job.setting, self._ranked[job.setting])
        place = self._place[left.indices]
        chosen = np.flatnonzero(place >= 0)
        place, scores = place[chosen], left.scores[chosen]
        if left.changes == "boxes":
            matches = Matcher(self._truth, self._merged(left), self._protocol).match()
        else:
            decimals = self._protocol.rounding.scores
            scores_matched = scores if decimals is None else np.round(scores, decimals)
            matches = self._matcher.match_some(place, scores_matched)
        rows: list[dict[str, Any]] = []
        for floor in job.floors:
            above = slice(None) if floor is None else scores >= floor
            setting = job.setting._replace(score_threshold=floor)
            if floor is None or len(job.floors) == 1:  # the suppression left nothing below it
                left_over = matches
            else:
                left_over = matches.take_scores_from(floor)
            evaluation = Evaluation(self._truth, self._nothing, self._protocol, left_over)
            rows += _rows(setting, evaluation, self._evaluated.category[place[above]])
        return rows

    def _merged(self, left: Suppression) -> Detections:
        """Return the detections that are left and evaluated, with merged boxes."""
        kept = left.apply(self._detections)
        place = self._place[np.sort(left.indices)]
        chosen = np.flatnonzero(place >= 0)
        evaluated = self._evaluated.take(place[chosen])
        merged = dataclasses.replace(evaluated, boxes=kept.boxes[chosen], sizes=kept.sizes[chosen])
        return rounded(merged, scores=self._protocol.rounding.scores, boxes=self._protocol.rounding.boxes)


def _rows(setting: Setting, evaluation: Evaluation, category: NDArray[np.int32]) -> list[dict[str, Any]]:
    """One row for the whole and one a class; ``category`` is that of every detection."""
    values, labels = evaluation.class_values, evaluation.labels
    keys = evaluation.protocol.class_keys
    whole = {keys[key]: value for key, value in evaluation.metrics.items()}
    counts = np.bincount(category, minlength=len(evaluation.ground_truth.categories))
    pooled = counts.tolist() if evaluation.protocol.matching.per_class else [len(category)]
    named = {name: getattr(setting, name) for name in SETTING}
    rows = [{**named, "class": ALL, "detections": len(category), **whole}]
    for k, label in enumerate(labels):
        own = {key: float(column[k]) for key, column in values.items()}
        rows.append({**named, "class": label, "detections": pooled[k], **own})
    return rows
