"""Check image-level labels, and data whose classes form a hierarchy.

Conventions
-----------
- Checks of labels run if the protocol drops detections of unlisted classes. The check for negative classes
  that are not exhaustive always runs.
- Expansion along a hierarchy shows in the data: it leaves the same box under several classes. Only a
  difference between the two sides is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import distinct_rows
from boxscore._utils.text import counted, verb
from boxscore.data.tables import BoxTable, Detections
from boxscore.errors import Severity
from boxscore.extensions.federated.image_labels import ImageLabelKind, ImageLabels
from boxscore.extensions.validation._findings import (
    IN_PASSING,
    MOST_EXAMPLES,
    WHEN_ASKED,
    Context,
    Finding,
    Tables,
)
from boxscore.matching.ignoring import eligible, ignoring
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.labels import LabelRules

MOSTLY = 0.5
"""Fraction of dropped detections above which labels are probably missing."""

EXPANDED, NOT_EXPANDED = 0.2, 0.05
"""Fraction of boxes with a copy under another class: at or above the first, a side was expanded; up to the
second, it was not."""


def image_label_findings(context: Context) -> Iterator[Finding]:
    """Check image-level labels against objects and detections."""
    if context.protocol.labels.unlisted == "drop":
        yield from _missing(context)
        if context.effort > IN_PASSING:
            yield from _contradictions(context)
            yield from _unlisted(context)
    if context.effort == WHEN_ASKED and context.detections is not None:
        yield from _expansion(context, context.detections)


def not_exhaustive_findings(context: Context) -> Iterator[Finding]:
    """Check that no class is both absent and not exhaustive in one image, under every protocol."""
    truth, labels = context.ground_truth, context.ground_truth.image_labels
    assert labels is not None
    # Look up each absent (image, class) pair among the pairs that are not annotated exhaustively.
    negative = labels.of("negative")
    both = labels.says(negative.image, negative.category, "not_exhaustive")
    if both.any():
        ids, names = truth.images.ids.tolist(), truth.categories.labels
        yield context.finding(
            "negative-class-not-exhaustive",
            "semantic",
            "warning",
            int(both.sum()),
            f"{counted(int(both.sum()), 'image-level label')} for a class that is marked both absent and not "
            "exhaustively annotated: its unmatched detections are ignored in these images",
            examples=[
                f"image {ids[negative.image[row]]}, class {names[negative.category[row]]}"
                for row in np.flatnonzero(both).tolist()
            ],
        )


def _missing(context: Context) -> Iterator[Finding]:
    # Without any list, every false positive of a class without objects in the image is dropped.
    truth = context.ground_truth
    labels = truth.image_labels
    if labels is None or not len(labels):
        yield context.finding(
            "image-labels-missing",
            "semantic",
            "error",
            len(truth.images),
            f"the protocol {context.protocol.name} drops detections of classes that are not listed for "
            f"their image, and none of {counted(len(truth.images), 'image')} has such a list: false "
            "positives of classes without an object in the image are dropped, so the result is too high. "
            "Open Images has the labels in a separate file (--image-labels FILE.csv), LVIS in "
            "neg_category_ids of each image",
            repair="with every class counted in every image",
            repaired=_count_unlisted,
        )
        return
    if context.effort == IN_PASSING:
        return
    # An image is listed if it has a label or an object, [I]. The quick check only tests whether the whole
    # list is missing.
    known = np.zeros(len(truth.images), dtype=bool)
    known[labels.image] = known[truth.image] = True
    silent = np.flatnonzero(~known)
    if len(silent):
        yield context.finding(
            "image-without-labels",
            "semantic",
            "warning",
            len(silent),
            f"{counted(len(silent), 'image')} with neither objects nor labels: all detections in them "
            "are dropped",
            examples=[f"image {identifier}" for identifier in truth.images.ids[silent[:MOST_EXAMPLES]]],
        )


def _contradictions(context: Context) -> Iterator[Finding]:
    truth = context.ground_truth
    labels = truth.image_labels
    if labels is None:
        return
    # Both checks look up the absent (image, class) pairs: is there a positive label, or an object?
    absent = labels.of("negative")
    kinds: tuple[tuple[str, NDArray[np.bool_], str], ...] = (
        (
            "image-label-contradicts",
            _has_label(context, absent, "positive"),
            "labeled both present and absent",
        ),
        (
            "absent-class-with-object",
            _has_object(truth, absent.image, absent.category),
            "labeled absent but has an object",
        ),
    )
    for code, wrong, what in kinds:
        rows = np.flatnonzero(wrong)
        if not len(rows):
            continue
        # Report each kind once, with a few of its pairs.
        names = truth.categories.labels
        yield context.finding(
            code,
            "semantic",
            "warning",
            len(rows),
            f"{counted(len(rows), 'time')} a class is {what} in the same image; the class counts as "
            "listed. Were two sets of labels joined, or is one machine-generated?",
            examples=[
                f"image {truth.images.ids.tolist()[absent.image[row]]}, class {names[absent.category[row]]}"
                for row in rows[:MOST_EXAMPLES].tolist()
            ],
        )


def _has_label(context: Context, rows: ImageLabels, kind: ImageLabelKind) -> NDArray[np.bool_]:
    labels: ImageLabels | None = context.ground_truth.image_labels
    assert labels is not None
    return labels.says(rows.image, rows.category, kind)


def _has_object(truth: BoxTable, image: NDArray[np.int32], category: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return for each pair whether the image has an object of the class."""
    count = len(truth.categories)
    objects = truth.image.astype(np.int64) * count + truth.category
    there: NDArray[np.bool_] = np.isin(image.astype(np.int64) * count + category, objects)
    return there


def _unlisted(context: Context) -> Iterator[Finding]:
    truth, detections = context.ground_truth, context.detections
    if detections is None or not len(detections):
        return
    # Apply only this rule, so that no other rule drops a detection first.
    alone = Protocol(
        "labels", labels=LabelRules(unlisted="drop", listed_by=context.protocol.labels.listed_by)
    )
    evaluated = eligible(truth, detections, lambda: np.empty(0), ignoring(truth, alone), alone)
    if evaluated is None or evaluated.all():
        return
    # If most detections are dropped, the labels probably belong to other images or classes.
    rows = np.flatnonzero(~evaluated)
    share = len(rows) / len(detections)
    severity: Severity = "error" if share == 1 else "warning" if share >= MOSTLY else "note"
    advice = (
        ". Do the labels cover the same images and classes, and are they expanded along the "
        "hierarchy like the boxes?"
    )
    yield context.finding(
        "detections-unlisted",
        "semantic",
        severity,
        len(rows),
        f"{counted(len(rows), 'detection')} ({share:.0%}) {verb(len(rows), 'are')} dropped and "
        f"{verb(len(rows), 'count')} neither as right nor as wrong, because the image has no object or "
        f"label of the class{advice * (share >= MOSTLY)}",
        table=detections,
        rows=rows,
        repair="with these detections counted",
        repaired=_count_unlisted,
    )


def _count_unlisted(context: Context, detections: Detections) -> Tables:
    rules = context.protocol
    labels = rules.labels.replaced(unlisted="count")
    return context.ground_truth, detections, rules.replaced(labels=labels)


def _expansion(context: Context, detections: Detections) -> Iterator[Finding]:
    truth = context.ground_truth
    if not len(truth) or not len(detections):
        return
    # Measure the fraction of rows on each side that have a copy under another class; expansion makes such
    # copies.
    of_truth = _copied(truth, np.zeros(len(truth)))
    given = detections.given_scores
    of_detections = _copied(detections, np.zeros(len(detections)) if given is None else given)
    sides = {"objects": of_truth, "detections": of_detections}
    # Report only a clear difference: one side expanded, the other not.
    if of_truth >= EXPANDED and of_detections <= NOT_EXPANDED:
        code, wide, narrow = "detections-not-expanded", "objects", "detections"
        effect = "objects of parent classes that the model does not predict count as missed"
    elif of_detections >= EXPANDED and of_truth <= NOT_EXPANDED:
        code, wide, narrow = "objects-not-expanded", "detections", "objects"
        effect = "the copies cannot match anything"
    else:
        return
    yield context.finding(
        code,
        "semantic",
        "warning",
        len(detections if narrow == "detections" else truth),
        f"{sides[wide]:.0%} of the {wide} have a copy with another class, as after expansion along a "
        f"class hierarchy, but {sides[narrow]:.0%} of the {narrow}: {effect}. Expand the other side with "
        "boxscore convert --expand-hierarchy FILE.json",
    )


def _copied(table: BoxTable, scores: NDArray[np.float64]) -> float:
    """Return the fraction of rows whose image, box and score also occur under another class."""
    rows = np.column_stack([table.image, table.boxes, scores])
    first, number = distinct_rows(rows)
    other = np.zeros(len(first), dtype=bool)
    other[number[table.category != table.category[first][number]]] = True
    return float(other[number].mean())
