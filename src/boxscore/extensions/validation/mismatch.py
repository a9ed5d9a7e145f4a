"""Check the two files against each other: classes or images that are numbered differently.

Conventions
-----------
- The evidence is the boxes: each detection is assigned to the annotation with the largest overlap (IoU of 0.5
  or more), regardless of class. If most detections of a class are on annotations of another class, they are
  renamed. The finding is reported only if this raises the score.
- A detector may confuse two classes. If it is nearly always wrong about a class, the numbering differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, counted_of
from boxscore.data.hints import SAID_OF_NUMBERING
from boxscore.data.tables import Detections
from boxscore.extensions.hints.image_offsets import find_offset, rows_at
from boxscore.extensions.hints.numbering import BY_EVIDENCE, match_best
from boxscore.extensions.validation._findings import (
    IN_PASSING,
    LOW,
    MUCH,
    Context,
    Finding,
    Renumbered,
    Tables,
)

MAJORITY = 0.6
"""Fraction of a class's detections on annotations of one other class above which that is its true class."""

FEWEST = 3
"""Minimum detections on annotations to judge a class."""

ENOUGH, FEW, HARDLY_ANY = 40, 0.25, 0.03
"""Number of best detections, and the fractions on annotations below which they are suspiciously or certainly
misplaced."""


def mismatch_findings(context: Context) -> Iterator[Finding]:
    """Check whether the two tables number their classes and images alike."""
    assert context.detections is not None
    is_said = context.effort == IN_PASSING and context.was_said(SAID_OF_NUMBERING)
    by_class = _classes(context) if len(context.detections) and not is_said else iter(())
    yield from by_class if context.renumbered is None else _class_map(context, context.renumbered, by_class)
    images = list(_images(context))
    if not context.chosen_classes:
        yield from images or _off_annotations(context)
    else:
        yield from images


def _class_map(context: Context, renumbered: Renumbered, by_class: Iterator[Finding]) -> Iterator[Finding]:
    """Report that the file numbers its classes differently, with the score of the file read that way."""
    inferred, detections = renumbered

    # Report another numbering only if it raises the metric.
    def repaired(c: Context, _: Detections) -> Tables:
        return c.ground_truth, detections, c.protocol

    if not context.protocol.matching.per_class or not context.is_raised(repaired, MUCH):
        return
    # An earlier finding about the classes gets the repair, instead of a second finding.
    name = "" if inferred.name == BY_EVIDENCE else f"{inferred.name} or "
    text = f"{inferred}. Use --class-map {name}auto"
    repair = f"with --class-map {'auto' if inferred.name == BY_EVIDENCE else inferred.name}"
    for finding in by_class:
        stop = "" if finding.message.endswith("?") else "."
        yield dataclasses.replace(
            finding,
            message=f"{finding.message.rstrip('.')}{stop} {text[0].upper()}{text[1:]}",
            repair=repair,
            repaired=context.repaired_value(repaired),
        )
        return
    # Otherwise name the classes that change.
    labels = detections.categories.labels
    by_id = dict(zip(detections.categories.ids.tolist(), labels, strict=True))
    moved = [(id_, to) for id_, to in inferred.pairs.items() if id_ != to and by_id.get(to) != id_]
    yield context.finding(
        "classes-numbered-differently",
        "semantic",
        "error",
        len(moved),
        f"classes are {'named' if inferred.are_named else 'numbered'} differently: {text}",
        examples=[f"{id_} is {'left out' if to is None else f'{by_id[to]} ({to})'}" for id_, to in moved],
        repair=repair,
        repaired=repaired,
    )


def _classes(context: Context) -> Iterator[Finding]:
    detections, evaluation = context.detections, context.evaluation
    assert detections is not None
    assert evaluation is not None
    # A class is misplaced if most of its detections on annotations are on those of one other class, [K].
    K = len(context.ground_truth.categories)
    if K < 2 or not context.protocol.matching.per_class or context.protocol.similarity == "keypoints":
        return
    totals, best, most = _placed(context, K)
    moved = (totals >= FEWEST) & (best != np.arange(K)) & (most > MAJORITY * totals)
    if not moved.any():
        return
    # Rename such classes, and report them only if the metric rises.
    names = np.where(moved, best, np.arange(K)).astype(np.int32)

    def repaired(c: Context, given: Detections) -> Tables:
        return c.ground_truth, dataclasses.replace(given, category=names[given.category]), c.protocol

    if not context.is_raised(repaired, MUCH):
        return
    rows = np.flatnonzero(moved)
    labels = context.ground_truth.categories.labels
    yield context.finding(
        "classes-numbered-differently",
        "semantic",
        "error",
        len(rows),
        f"detections of {counted(len(rows), 'class')} overlap annotations of another class"
        + _explanation(context, rows, names),
        examples=[
            f"{labels[row]} overlaps {labels[best[row]]}: {counted_of(most[row], totals[row], 'detection')}"
            for row in rows.tolist()
        ],
        repair="with these classes renamed",
        repaired=repaired,
    )


def _placed(context: Context, K: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Count the detections of each class on annotations, [K]; the most frequent class, and its count."""
    assert context.evaluation is not None
    # Find the class of the annotation that each detection overlaps most: sorted by overlap, the last write
    # remains.
    truth, detections = context.ground_truth, context.evaluation.detections
    pairs = context.evaluation._matcher.across_classes(iou_threshold=0.5)
    order = np.argsort(pairs.iou, kind="stable")
    on = np.full(len(detections), -1)
    on[pairs.detection[order]] = truth.category[pairs.truth[order]]
    # An annotation of its class explains a detection, regardless of other overlaps.
    same = detections.category[pairs.detection] == truth.category[pairs.truth]
    on[pairs.detection[same]] = detections.category[pairs.detection[same]]
    # Count (predicted, annotated) pairs of classes, and take the largest count of each predicted class the
    # same way.
    rows = np.flatnonzero(on >= 0)
    predicted, on_class = detections.category[rows].astype(np.int64), on[rows]
    keys, counts = np.unique(predicted * K + on_class, return_counts=True)
    best, most = np.zeros(K, dtype=np.int64), np.zeros(K, dtype=np.int64)
    # The largest is last; ties prefer the first class.
    order = np.lexsort((-keys, counts))
    best[keys[order] // K], most[keys[order] // K] = (
        keys[order] % K,
        counts[order],
    )
    return np.bincount(predicted, minlength=K), best, most


def _explanation(context: Context, rows: NDArray[np.intp], names: NDArray[np.int32]) -> str:
    """Describe the renaming: a shift, a swap, or neither."""
    ids = context.ground_truth.categories.ids
    if ids.dtype != object and len(rows) > 1:
        steps = set((ids[names[rows]] - ids[rows]).tolist())
        if len(steps) == 1:
            step = steps.pop()
            return (
                f", all with an id that is {abs(step)} too {('low' if step > 0 else 'high')}. Is it "
                "an off-by-one error?"
            )
        if set((names[rows] - rows).tolist()) in ({1}, {-1}):
            return ", each the next class in the list. Are the ids positions in a list?"
    if len(rows) == 2 and names[rows[0]] == rows[1] and names[rows[1]] == rows[0]:
        return ": two classes are swapped"
    return ". Do the two files use different class lists?"


def _off_annotations(context: Context) -> Iterator[Finding]:
    """Report that almost none of the best detections overlap an annotation of their image, of any class."""
    # Only a low metric justifies this check.
    detections = context.detections
    if detections is None or not len(detections) or not context.value < LOW:
        return
    # The most confident detections of a correct file overlap annotations, regardless of class.
    best = match_best(context.ground_truth, detections.image, detections.boxes, detections.given_scores)
    count = len(best.detection)
    if count < ENOUGH or best.matched >= FEW * count:
        return
    yield context.finding(
        "detections-off-annotations",
        "semantic",
        "error" if best.matched < HARDLY_ANY * count else "warning",
        count - best.matched,
        f"only {best.matched:,} of the {count:,} most confident detections overlap an annotation of "
        "their image with IoU >= 0.5. Are images numbered differently, or boxes in other units?",
        table=detections,
        rows=best.detection[best.truth < 0],
    )


def _images(context: Context) -> Iterator[Finding]:
    truth, given = context.ground_truth, context.detections
    if given is None or not context.value < 0.5:
        return
    # The boxes must overlap more annotations with the offset, and the metric must rise too.
    found = find_offset(truth, given)
    if found is None:
        return
    shifted = rows_at(truth.images, found.step)

    def repaired(c: Context, given: Detections) -> Tables:
        image = shifted[given.image]
        known = np.flatnonzero(image >= 0)
        return c.ground_truth, dataclasses.replace(given.take(known), image=image[known]), c.protocol

    if not context.is_raised(repaired, MUCH):
        return
    yield context.finding(
        "images-off-by-one",
        "semantic",
        "error",
        len(given),
        f"images are numbered differently: {found}. Use {found.advice}",
        repair=f"with {found.advice}",
        repaired=repaired,
    )
