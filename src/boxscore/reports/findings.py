"""What a reader should know of the data before trusting the numbers.

Goal
----
Short sentences about the input: warnings that were given, classes that are unknown or empty, boxes without
area or outside their image, annotations that occur twice, scores that tie.

Conventions
-----------
A finding changes no number. ``level`` is ``"warning"`` when it probably is a mistake and ``"note"`` when it
is merely worth knowing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import BoxTable
from boxscore.evaluation import Evaluation

__all__ = ["Finding", "findings"]

OUTSIDE = 2.0
"""Pixels that a box may reach beyond its image before it is called outside."""


class Finding(NamedTuple):
    """One sentence and how much it matters."""

    level: str
    text: str


def findings(evaluation: Evaluation, *, warnings: Sequence[str] = ()) -> list[Finding]:
    """Collect what is worth knowing of an evaluation's input.

    Parameters
    ----------
    evaluation : Evaluation
    warnings : sequence of str
        Messages that were given while reading and evaluating.

    Returns
    -------
    list of Finding
        Warnings first.
    """
    found = [Finding("warning", text) for text in warnings]
    found += _left_out(evaluation) if not warnings else []
    found += _boxes(evaluation)
    found += _repeated(evaluation)
    found += _ids(evaluation)
    found += _classes(evaluation)
    found += _scores(evaluation)
    return sorted(found, key=lambda finding: finding.level != "warning")


def _left_out(evaluation: Evaluation) -> list[Finding]:
    left_out = evaluation.detections.left_out
    if not left_out:
        return []
    names = ", ".join(list(left_out)[:5]) + (", …" if len(left_out) > 5 else "")
    count = sum(left_out.values())
    return [
        Finding("warning", f"{count:,} detections of classes without ground truth were left out: {names}")
    ]


def _boxes(evaluation: Evaluation) -> list[Finding]:
    found = []
    for table, what in ((evaluation.ground_truth, "ground truths"), (evaluation.detections, "detections")):
        empty = int((table.sizes <= 0).any(axis=1).sum())
        if empty:
            found.append(Finding("warning", f"{empty:,} {what} have a width or height of 0."))
        outside = int(_outside(table).sum())
        if outside:
            share = outside / len(table)
            text = f"{outside:,} {what} ({share:.1%}) reach more than {OUTSIDE:g} pixels beyond their image."
            found.append(Finding("warning" if share > 0.02 else "note", text))
    return found


def _outside(table: BoxTable) -> NDArray[np.bool_]:
    extent = table.images.sizes[table.image]  # [N,2], NaN where unknown
    known = ~np.isnan(extent).any(axis=1)
    beyond = np.maximum(-table.boxes[:, :2], table.boxes[:, 2:] - extent).max(axis=1)
    outside: NDArray[np.bool_] = np.logical_and(known, beyond > OUTSIDE)
    return outside


def _repeated(evaluation: Evaluation) -> list[Finding]:
    truth = evaluation.ground_truth
    if not len(truth):
        return []
    rows = np.column_stack([truth.image, truth.category, truth.boxes])
    order = np.lexsort(rows.T)
    same = int((rows[order][1:] == rows[order][:-1]).all(axis=1).sum())
    if not same:
        return []
    return [Finding("warning", f"{same:,} ground truths repeat another's image, class and box exactly.")]


def _ids(evaluation: Evaluation) -> list[Finding]:
    ids = evaluation.ground_truth.ids
    if ids.dtype == object or not (ids == 0).any():
        return []
    return [Finding("note", "An annotation has id 0; it is counted as any other (pycocotools would not).")]


def _classes(evaluation: Evaluation) -> list[Finding]:
    found = []
    counts, labels = evaluation.class_counts, evaluation.labels
    empty = np.flatnonzero(counts["ground_truths"] == 0)
    if len(empty):
        names = ", ".join(labels[row][:40] for row in empty[:5].tolist()) + (", …" if len(empty) > 5 else "")
        found.append(
            Finding("note", f"No counted ground truth for {len(empty):,} of {len(labels):,} classes: {names}")
        )
    silent = int(((counts["ground_truths"] > 0) & (counts["detections"] == 0)).sum())
    if silent:
        found.append(
            Finding("note", f"No detection for {silent:,} classes with ground truth; their AP is 0.")
        )
    images = evaluation.ground_truth.images
    blank = len(images) - len(np.unique(evaluation.detections.image))
    if blank and len(images):
        found.append(Finding("note", f"No detection in {blank:,} of {len(images):,} images."))
    return found


def _scores(evaluation: Evaluation) -> list[Finding]:
    scores, category = evaluation.detections.scores, evaluation.detections.category
    if not len(scores):
        return [Finding("warning", "There are no detections.")] if len(evaluation.ground_truth) else []
    found = []
    order = np.lexsort((scores, category))
    same = (np.diff(scores[order]) == 0) & (np.diff(category[order]) == 0)
    tied = int((np.append(same, False) | np.insert(same, 0, False)).sum())
    if tied:
        share = tied / len(scores)
        text = f"{tied:,} detections ({share:.1%}) share their score with another of their class; "
        text += "equal scores are taken in the protocol's fixed order."
        found.append(Finding("warning" if share > 0.5 else "note", text))
    if scores.min() < 0 or scores.max() > 1:
        found.append(Finding("note", f"Scores run from {scores.min():.4g} to {scores.max():.4g}."))
    return found
