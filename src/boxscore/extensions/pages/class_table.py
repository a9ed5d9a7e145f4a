"""Make the per-class table of the report, and the counts with which the page moves its score threshold.

Conventions
-----------
- The page states one threshold, the best F1 of all classes together; without a script the table has the
  numbers at it.
- A stop is a score at which the page has the counts of every class: round numbers over the range of the
  scores, and the stated threshold. Between two stops the page has no numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.evaluation.result import COUNTS_AT_SCORE, rates_of_counts
from boxscore.extensions.pages import diagnosis
from boxscore.extensions.pages.choices import Scores
from boxscore.extensions.pages.curve_view import significant
from boxscore.scoring.score_counts import ScoreCounts

MOST_STOPS, LEAST_STOPS = 101, 11
"""Number of stops over the range of the scores."""

MOST_COUNTS = 20_000
"""Maximum number of classes times stops; with more classes there are fewer stops."""


def number_or_none(value: float) -> float | None:
    """Return a number for JSON: None if it is undefined."""
    return None if value != value else float(value)


def stops_over(lowest: float, highest: float, stated: float, most: int = MOST_STOPS) -> FloatArray:
    """Return round scores from at most the lowest to at most the highest, and the stated one; ascending."""
    span = highest - lowest
    if not 0 < span < math.inf:
        return np.array([stated])
    # Choose the smallest of the steps 1, 2 and 5, times a power of ten, that needs few enough stops.
    power = math.floor(math.log10(span / (most - 1)))
    steps = ((base, power + more) for more in (0, 1) for base in (1, 2, 5))
    base, power = next(one for one in steps if span <= one[0] * 10.0 ** one[1] * (most - 1))
    step = base * 10.0**power
    first, last = math.floor(lowest / step), math.floor(highest / step)
    # Round, so that a stop is the decimal number that the page shows.
    round_ones = [round(number * step, max(0, -power)) for number in range(first, last + 1)]
    return np.unique([*round_ones, stated])


class CountsAtStops:
    """True and false positives of each class at each stop.

    Attributes
    ----------
    scores : ndarray of float64, [S]
        Ascending.
    stated : int
        Position of the threshold that the page states.
    true, false : ndarray of int64, [S, K]
        Counts of the detections with this score or a higher one; true is float64 if ground truths have
        weights.
    objects : ndarray, [K]
    """

    def __init__(self, evaluation: Evaluation, scores: Scores, stated: float) -> None:
        K = len(evaluation.labels)
        most = max(LEAST_STOPS, min(MOST_STOPS, MOST_COUNTS // max(K, 1)))
        self.scores = stops_over(scores.lowest, scores.highest, stated, most)
        self.stated = int(np.searchsorted(self.scores, stated))
        # With partitions, only the points at the stops are returned.
        keep = functools.partial(_last_from, scores=self.scores)
        self.true, self.false = evaluation._score_counts(keep=keep).counts_from(self.scores)
        self.objects = evaluation.class_counts["ground_truths"]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the rates, then the counts, of each class at the stated threshold, [K] each."""
        true, false = self.true[self.stated], self.false[self.stated]
        counts = dict(zip(COUNTS_AT_SCORE, (true, false, self.objects - true), strict=True))
        return {**rates_of_counts(true, false, self.objects), **counts}

    def view(self) -> dict[str, Any] | None:
        """Return the counts for the page; None if there is nothing to move, or if counts are fractions.

        ``classes`` has, by class row, what true and false positives gain from each stop to the one below it,
        from the highest stop on.
        """
        if len(self.scores) < 2 or self.true.dtype.kind == "f":
            return None
        gains = [np.diff(side[::-1], axis=0, prepend=0).T.tolist() for side in (self.true, self.false)]
        there = np.flatnonzero(self.objects + self.false[0] > 0).tolist()
        return {
            "scores": self.scores.tolist(),
            "stated": self.stated,
            "classes": {str(k): [self.objects[k], *(side[k] for side in gains)] for k in there},
        }


def _last_from(counts: ScoreCounts, *, scores: FloatArray) -> list[int]:
    """Keep the last point of a curve, or of a chunk of it, at or above each score."""
    last = np.unique(np.searchsorted(-counts.score, -scores, side="right") - 1)
    kept: list[int] = last[last >= 0].tolist()
    return kept


def class_table(
    evaluation: Evaluation,
    intervals: diagnosis.Intervals,
    by_iou: Mapping[str, Any] | None,
    at_stops: CountsAtStops | None,
) -> dict[str, Any]:
    """Return columns and rows of the per-class table, lowest AP first; a row starts with the class row.

    Ties put the class with more objects first. Classes without a value are last; those without objects and
    detections are only counted, in ``absent``. ``ends`` are the interval of the first metric, by class row.
    """
    columns: list[dict[str, str]] = []
    values: list[list[Any]] = []
    ends: list[list[float | None]] = []
    has_estimates = intervals.corrects_classes(evaluation)

    def add(key: str, label: str, kind: str, cells: list[Any], *, at_score: str = "") -> None:
        columns.append({"key": key, "label": label, "kind": kind, "at_score": at_score})
        values.append(cells)

    # List metrics in order, with counts and intervals right after the first.
    for number, (key, array) in enumerate(evaluation.class_values.items()):
        add(key, key, "ratio" if number else "bar", [number_or_none(value) for value in array.tolist()])
        # Counts, the user's columns, the interval and the curve over IoU belong to the first metric.
        if number == 0:
            for name, label in (("ground_truths", "objects"), ("detections", "detections")):
                add(name, label, "count", evaluation.class_counts[name].tolist())
            for name, texts in evaluation._class_columns.items():
                add(name, name, "text", ["" if text is None else str(text) for text in texts.tolist()])
            if intervals.classes:
                ends = [[number_or_none(end) for end in (one.low, one.high)] for one in intervals.classes]
                if has_estimates:
                    estimates = [number_or_none(one.estimate) for one in intervals.classes]
                    add("estimate", "estimate", "ratio", estimates)
                add("interval", "95% interval", "interval", ends)
            if by_iou:
                add("by_iou", "by IoU", "spark", [line and line[-1] for line in by_iou["classes"]])
            # Rates that are metrics of the protocol already have a column.
            for name, cells in ({} if at_stops is None else at_stops.columns()).items():
                if name in COUNTS_AT_SCORE:
                    add(name, name, "count", cells.tolist(), at_score=name)
                elif name not in evaluation.class_values:
                    add(name, name, "ratio", [number_or_none(one) for one in cells.tolist()], at_score=name)
    # Turn columns into rows; classes with neither objects nor detections are only counted.
    rows = [[row, *line] for row, line in enumerate(zip(*values, strict=True))]
    absent = 0
    if columns:
        every = len(rows)
        rows = [row for row in rows if row[1] is not None or row[2] or row[3]]
        absent = every - len(rows)
        rows.sort(key=lambda row: (row[1] is None, row[1] or 0.0, -row[2]))
    return {
        "columns": columns,
        "rows": rows,
        "ends": ends,
        "has_estimates": has_estimates,
        "absent": absent,
    }


def values_over_iou(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return AP, or F1 without scores, per class and IoU threshold in thousandths, and over all classes."""
    thresholds = evaluation.protocol.matching.iou_thresholds
    if len(thresholds) < 2:
        return None
    values, every = diagnosis.values_by_iou(evaluation)
    if np.isnan(every).all():
        return None
    rows = [None if np.isnan(line).all() else np.round(line * 1000).astype(int).tolist() for line in values.T]
    return {
        "thresholds": [round(t, 4) for t in thresholds],
        "classes": rows,
        "mean": significant(every),
        "metric": "AP" if evaluation.has_scores else "F1",
    }
