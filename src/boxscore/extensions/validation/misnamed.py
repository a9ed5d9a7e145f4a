"""Find classes that detections never name, because they always give their objects another class.

Conventions
-----------
- An object is located if a detection of any class overlaps it with an IoU of 0.5 or more. Its predicted class
  is that of the detection with the largest overlap.
- Only classes without any detections are checked: a detector that confuses two classes predicts both
  sometimes, whereas a wrong class table never does. A detector that does not know a class may predict several
  others. One class for nearly all of enough objects means a wrong table.
- If one name begins or ends with the other (hot dog, dog), fewer objects suffice, because this is a typical
  error in tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import distinct, ragged_ranges
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted, verb
from boxscore.data.boxes import without_inverted
from boxscore.data.tables import Detections
from boxscore.extensions.validation._findings import Context, Finding, Tables, named
from boxscore.similarity.box import box_iou
from boxscore.similarity.pairs import chunks

LEAST_OVERLAP = 0.5
FEWEST_RELATED, SHARE_RELATED = 10, 0.75
"""Minimum located objects, and fraction with one other name, if one name begins or ends with the other."""
FEWEST, SHARE = 30, 0.9
"""The same for any two names."""

MOST_AT_ONCE = 1 << 18
"""Maximum pairs of boxes that are compared in one batch."""

MOST_IMAGES = 2_000
"""Maximum images of such classes that are checked."""


class _Renaming(NamedTuple):
    """A class, the class that its objects are predicted as, and counts of located objects."""

    row: int
    other: int
    times: int
    located: int


def misnamed_findings(context: Context) -> Iterator[Finding]:
    """Check whether objects of classes without detections are predicted as another class."""
    # Candidates are classes with enough objects and no detections, [K].
    truth, detections = context.ground_truth, context.detections
    K, protocol = len(truth.categories), context.protocol
    if detections is None or K < 2 or not protocol.matching.per_class or protocol.similarity == "keypoints":
        return
    silent = context.silent_classes & (context.objects_per_class >= FEWEST_RELATED)
    if not silent.any() or not len(detections):
        return
    counted_truth = ~(truth.crowd | truth.ignore)
    silent &= np.bincount(truth.category[counted_truth], minlength=K) >= FEWEST_RELATED
    if not silent.any():
        return
    # Find the detections on their objects, and their predicted classes.
    objects = np.flatnonzero(counted_truth & silent[truth.category])
    pairs = _pairs_on(context, detections, objects)
    called = list(_renamings(truth.categories.labels, truth.category[pairs.truth], detections, pairs))
    if not called:
        return
    # Rename detections on such objects, unless an annotation of their own class explains them.
    new = detections.category.copy()
    for one in called:
        moved = (truth.category[pairs.truth] == one.row) & (detections.category[pairs.row] == one.other)
        new[pairs.row[moved & ~pairs.explained]] = one.row

    def repaired(c: Context, given: Detections) -> Tables:
        return c.ground_truth, dataclasses.replace(given, category=new), c.protocol

    # Describe each class, and guess the cause from the similarity of the names.
    labels = truth.categories.labels
    texts = [
        f"{one.times:,} of {one.located:,} localized objects of class {labels[one.row]} are predicted as "
        f"{_class_text(labels[one.other])}"
        for one in called
    ]
    related = all(_are_related(labels[one.row], labels[one.other]) for one in called)
    how = "always" if all(one.times == one.located for one in called) else "nearly always"
    cause = (
        "Possible cause: class names truncated at a space or matched by a substring."
        if related
        else "Possible cause: a truncated list of class names, or a class that the detector does not know."
    )
    yield context.finding(
        "class-always-called-another",
        "semantic",
        "warning",
        len(called),
        f"{counted(len(called), 'class')} {verb(len(called), 'are')} {how} predicted as another class: "
        f"{named(texts, longest=200)}. {cause}",
        examples=texts,
        repair=f"with {'this class' if len(called) == 1 else f'these {len(called)} classes'} renamed",
        repaired=repaired,
        at_once=context.is_soon(protocol),
    )


class _Pairs(NamedTuple):
    """Overlapping objects and detections; the largest overlap of each object comes first."""

    truth: NDArray[np.intp]
    row: NDArray[np.intp]
    explained: NDArray[np.bool_]
    """Whether the detection also overlaps an annotation of its class."""


def _pairs_on(context: Context, detections: Detections, objects: NDArray[np.intp]) -> _Pairs:
    """Return pairs of ``objects`` and detections of any class, in at most :data:`MOST_IMAGES` images."""
    # Choose images with such objects, evenly; sort annotations and detections by image.
    truth = context.ground_truth
    images = distinct(truth.image[objects])
    images = images[distinct(np.linspace(0, len(images) - 1, min(len(images), MOST_IMAGES)).astype(int))]
    chosen = np.zeros(len(truth), dtype=bool)
    chosen[objects] = True
    truths, starts, ends = _by_image(truth.image, images)
    detected, first, last = _by_image(detections.image, images)
    boxes, truth_boxes = without_inverted(detections.boxes[detected]), truth.boxes[truths]
    # Compare every detection with every annotation of its image, in batches of images: make the pairs,
    # compute overlaps, and keep only near ones.
    widths, counts = ends - starts, last - first
    parts = [(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0))]
    for low, high in chunks(widths * counts, MOST_AT_ONCE):
        # Number all pairs of a batch without a loop.
        some = ragged_ranges(first[low:high], counts[low:high])
        width = np.repeat(widths[low:high], counts[low:high])
        row = np.repeat(some, width)
        on = ragged_ranges(np.repeat(starts[low:high], counts[low:high]), width)
        iou = box_iou(boxes[row], truth_boxes[on], paired=True)
        near = np.flatnonzero(iou >= LEAST_OVERLAP)
        parts.append((detected[row[near]], truths[on[near]], iou[near]))
    row, on, overlap = (np.concatenate(column) for column in zip(*parts, strict=True))
    # A detection on an annotation of its class is explained. Sort the pairs of each object by overlap.
    explained = np.zeros(len(detections), dtype=bool)
    explained[row[detections.category[row] == truth.category[on]]] = True
    wanted = np.flatnonzero(chosen[on])
    order = wanted[np.lexsort((-overlap[wanted], on[wanted]))]
    return _Pairs(on[order], row[order], explained[row[order]])


def _by_image(
    image: NDArray[np.int32], images: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of some images, and the start and end of each image."""
    rows = np.flatnonzero(np.isin(image, images))
    rows = rows[np.argsort(image[rows], kind="stable")]
    return (
        rows,
        np.searchsorted(image[rows], images),
        np.searchsorted(image[rows], images, side="right"),
    )


def _renamings(
    labels: list[str], category: NDArray[np.int32], detections: Detections, pairs: _Pairs
) -> Iterator[_Renaming]:
    """Yield the classes for which nearly all located objects have one other predicted class."""
    best = np.flatnonzero(np.diff(pairs.truth, prepend=-1))
    category, said = category[best], detections.category[pairs.row[best]]
    for row in distinct(category).tolist():
        names = np.bincount(said[category == row])
        other, located = int(names.argmax()), int(names.sum())
        times = int(names[other])
        fewest, share = (
            (FEWEST_RELATED, SHARE_RELATED) if _are_related(labels[row], labels[other]) else (FEWEST, SHARE)
        )
        if located >= fewest and times >= share * located:
            yield _Renaming(row, other, times, located)


def _class_text(label: str) -> str:
    """Describe a class whose name may be only a number."""
    return f"class {label}" if label.isdecimal() else label


def _are_related(one: str, other: str) -> bool:
    """Return whether one name begins or ends with the other; False for numbers."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return bool(short) and not short.isdecimal() and (long.startswith(short) or long.endswith(short))
