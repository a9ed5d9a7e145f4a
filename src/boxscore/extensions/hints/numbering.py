"""Infer from boxes how two sides number their images and classes, before scoring.

Goal
----
Programs number classes from 0, from 1, or by a list of their own, and refer to images by id or by file name.
A wrong reading raises no error and gives a score near 0. The best detections reveal it: under the right
reading, most of them overlap an annotation of their image and class.

Conventions
-----------
- The best detections of an image are those with the highest scores, as many as the image has annotations that
  are not crowds, but at most 100. Each is assigned to the annotation with the largest overlap, if the IoU is
  0.5 or more.
- This IoU is only evidence; scores use the overlaps of ``boxscore.similarity``.
- A class map is ``{from: to}``: from a class as the detections name it, to an id or name of the ground truth;
  None leaves a class out. Classes that are not in the map keep their id or name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import distinct, distinct_rows
from boxscore._utils.records import NamedTuple, record
from boxscore.data.hints import FEWEST, FEWEST_OF_CLASS
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import InputError

LEAST_OVERLAP = 0.5
"""Minimum IoU of a detection and its annotation."""

MOST_OF_IMAGE, MOST_ANNOTATIONS = 100, 5000
"""Maximum best detections, and annotations, that are compared in an image."""

FEW_IMAGES = 64
"""Number of images that quick checks inspect for wrong class numbers."""

MAJORITY = 0.6
"""Minimum fraction of the best detections that have their annotation's class under a correct map."""

TIMES = 2
"""Minimum ratio to the agreement of another reading, over the classes in which the two differ."""

COCO_IDS = tuple(number for number in range(1, 91) if number not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83))
"""The ids of COCO's 80 classes, between 1 and 90."""

CLASS_MAPS = ("zero-based", "one-based", "plus-one", "minus-one", "coco80to91", "coco91to80")
"""Named class maps; of those that explain the boxes equally well, the first is used."""

AS_THEY_ARE = "as-they-are"
BY_EVIDENCE = "by-evidence"


class BestMatches(NamedTuple):
    """The best detections, and the annotation of each; -1 for none."""

    detection: IntArray
    truth: IntArray

    @property
    def matched(self) -> int:
        """Number of detections with an annotation."""
        return int((self.truth >= 0).sum())


def match_best(
    ground_truth: GroundTruth,
    image: NDArray[Any],
    boxes: FloatArray,
    scores: FloatArray | None,
    *,
    most: int = 64,
) -> BestMatches:
    """Match the best detections of at most ``most`` images, evenly spaced; boxes are corners [D, 4].

    Without scores, the first detections of an image in the file are used.
    """
    detections, annotations = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for rows, truths in best_of_images(ground_truth, image, scores, most=most):
        # Assign each detection to the annotation with the largest overlap, if it is large enough; [n, m] per
        # image.
        overlaps = _overlaps(boxes[rows], ground_truth.boxes[truths])
        nearest = overlaps.argmax(axis=1)
        lies = overlaps[np.arange(len(rows)), nearest] >= LEAST_OVERLAP
        detections.append(rows)
        annotations.append(np.where(lies, truths[nearest], -1))
    return BestMatches(np.concatenate(detections), np.concatenate(annotations))


def best_of_images(
    ground_truth: GroundTruth, image: NDArray[Any], scores: FloatArray | None, *, most: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows of the best detections, and of the annotations, of each image with both."""
    # Choose up to ``most`` images with annotations, evenly spaced, and sort their annotations by image.
    no_crowds = np.flatnonzero(~ground_truth.crowd)
    with_truth = distinct(ground_truth.image[no_crowds])
    chosen = with_truth[distinct(np.linspace(0, len(with_truth) - 1, min(most, len(with_truth))).astype(int))]
    # The last entry is for -1.
    sampled = np.zeros(len(ground_truth.images) + 1, dtype=bool)
    sampled[chosen] = True
    truths = no_crowds[sampled[ground_truth.image[no_crowds]]]
    truths = truths[np.argsort(ground_truth.image[truths], kind="stable")]
    # Sort the detections of these images by image and descending score.
    rows = np.flatnonzero(sampled.take(image))
    keys = (image[rows],) if scores is None else (-scores[rows], image[rows])
    rows = rows[np.lexsort(keys)]
    # For each chosen image: its annotations first:end, and at most as many of its best detections start:stop.
    first = np.searchsorted(ground_truth.image[truths], chosen)
    end = np.searchsorted(ground_truth.image[truths], chosen, side="right")
    start = np.searchsorted(image[rows], chosen)
    stop = np.minimum(np.searchsorted(image[rows], chosen, side="right"), start + end - first)
    # Compare a limited number per image, so that one crowded image does not dominate.
    stop, end = np.minimum(stop, start + MOST_OF_IMAGE), np.minimum(end, first + MOST_ANNOTATIONS)
    for a, b, c, d in zip(first.tolist(), end.tolist(), start.tolist(), stop.tolist(), strict=True):
        if c < d:
            yield rows[c:d], truths[a:b]


def _overlaps(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the IoU of corners, [n, m]; 0 where both are empty."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    common = np.maximum(high - low, 0).prod(axis=2)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(axis=1) for boxes in (first, second)]
    union = areas[0][:, None] + areas[1][None, :] - common
    overlaps: FloatArray = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return overlaps


# ---------------------------------------------------------------- class maps


def class_pairs(
    name: str, categories: Categories, *, classes: Sequence[str] | None = None
) -> dict[Id, Id | None]:
    """Return the pairs of a named class map; ``classes`` are the names of the numbers."""
    checks.one_of(name, CLASS_MAPS, name="class_map")
    known: list[Id] = categories.ids.tolist() if classes is None else list(classes)
    if name == "coco80to91":
        return dict(enumerate(COCO_IDS))
    if name == "coco91to80":
        return dict(zip(COCO_IDS, known, strict=False))
    if name in ("plus-one", "minus-one"):
        step = 1 if name == "plus-one" else -1
        numbers = [known_id for known_id in categories.ids.tolist() if isinstance(known_id, int)]
        return {number - step: number for number in numbers}
    return dict(enumerate(known, start=int(name == "one-based")))


def rows_as_given(theirs: Categories, categories: Categories) -> NDArray[np.int32]:
    """Return the class of each class of the detections without a map, [len(theirs)]; -1 for none."""
    if theirs is categories:
        return np.arange(len(theirs), dtype=np.int32)
    if theirs.names.tolist() == list(map(str, theirs.ids.tolist())):
        return categories.rows_by_id_or_name(theirs.ids.tolist())
    return categories.rows_of_classes(theirs)


def mapped_rows(
    pairs: Mapping[Id, Id | None], theirs: Categories, categories: Categories
) -> NDArray[np.int32]:
    """Return the class of each class of the detections under a map, [len(theirs)]; -1 for none."""
    rows = rows_as_given(theirs, categories)
    targets = [to for to in pairs.values() if to is not None]
    target_rows = dict(zip(targets, categories.rows_by_id_or_name(targets).tolist(), strict=True))
    for row, keys in enumerate(zip(theirs.ids.tolist(), theirs.names.tolist(), strict=True)):
        key = next((key for key in keys if key in pairs), None)
        if key is not None:
            to = pairs[key]
            rows[row] = -1 if to is None else target_rows[to]
    return rows


def with_classes(detections: Detections, categories: Categories, rows: NDArray[np.int32]) -> Detections:
    """Return detections with classes renumbered to ``categories``; those at -1 are left out."""
    category = np.append(rows, np.int32(-1))[detections.category]
    labels, counts = detections.categories.labels, np.bincount(detections.category[category < 0])
    left_out = {labels[row]: int(counts[row]) for row in np.flatnonzero(counts).tolist()}
    known = np.flatnonzero(category >= 0)
    table = detections.take(known) if len(known) < len(category) else detections
    return dataclasses.replace(
        table,
        categories=categories,
        category=category[known],
        left_out={**detections.left_out, **left_out},
    )


# ---------------------------------------------------------------- inference


@record(frozen=True, kw_only=True)
class InferredClassMap:
    """The numbering of the detections' classes, and the evidence for it.

    Attributes
    ----------
    name : str or None
        A named class map; ``"as-they-are"``: no map is needed; ``"by-evidence"``: a map without a name that
        assigns each class of the detections to one other. None: unclear.
    pairs : dict of int or str to int, str or None
        From each class as the detections name it to an id of the ground truth; None leaves it out. The most
        likely map if ``name`` is None.
    placed : int
        Number of the best detections that overlap an annotation, of any class.
    given, mapped : int
        Number of these whose annotation has their class: without and with the map.
    likely : str
        The most likely reading, even if it is unclear.
    are_named : bool
        Whether the file of the detections names its classes.
    """

    name: str | None
    pairs: dict[Id, Id | None]
    placed: int
    given: int
    mapped: int
    likely: str
    are_named: bool = False

    def __str__(self) -> str:
        if self.placed < FEWEST:
            return f"only {self.placed} confident detections overlap an annotation, too few to tell"
        text = (
            f"with class {'names' if self.are_named else 'ids'} as given, {self.given:,} of {self.placed:,} "
            "confident detections agree with the annotation they overlap"
        )
        return text if self.likely == AS_THEY_ARE else f"{text}; {_WORDS[self.likely]}, {self.mapped:,} do"


_WORDS = {
    "zero-based": "with ids counted from 0 (zero-based)",
    "one-based": "with ids counted from 1 (one-based)",
    "coco80to91": "with ids 0 to 79 mapped to COCO's ids 1 to 90 (coco80to91)",
    "coco91to80": "with COCO's ids 1 to 90 mapped to the 80 classes in order (coco91to80)",
    "plus-one": "with every id increased by 1 (plus-one)",
    "minus-one": "with every id decreased by 1 (minus-one)",
    BY_EVIDENCE: "with another class list",
}


def infer_class_map(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    classes: Sequence[str] | None = None,
    most: int = 2000,
) -> InferredClassMap:
    """Infer how detections number their classes.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Detections in the images of the ground truth; with the classes of their file, or aligned.
    classes : sequence of str, optional
        The names of the detections' class numbers.
    most : int
        Maximum number of images to compare.

    Returns
    -------
    InferredClassMap
    """
    # The best detections and the annotations they overlap give pairs of classes.
    theirs, known = detections.categories, ground_truth.categories
    best = match_best(ground_truth, detections.image, detections.boxes, detections.given_scores, most=most)
    lies = best.truth >= 0
    pairs = _ClassPairs(detections.category[best.detection[lies]], ground_truth.category[best.truth[lies]])
    # Every known numbering is a candidate, and the majority of pairs is another.
    readings = _readings(theirs, known, classes)
    readings[BY_EVIDENCE] = _by_evidence(pairs, len(theirs))
    if pairs.agreeing(readings[AS_THEY_ARE]) >= MAJORITY * len(pairs.detected):
        readings[BY_EVIDENCE] = _corrected(readings[AS_THEY_ARE], readings[BY_EVIDENCE])
    # Count the pairs that agree with each candidate.
    agreeing = {name: pairs.agreeing(rows) for name, rows in readings.items()}
    total, given = len(pairs.detected), agreeing[AS_THEY_ARE]
    named = {name: count for name, count in agreeing.items() if name != BY_EVIDENCE}
    # Ties go to the first.
    likely = max(named, key=named.__getitem__)
    # The majority wins over named numberings only if it is complete and clearly better.
    evident = readings[BY_EVIDENCE]
    reordered = (
        agreeing[BY_EVIDENCE] > agreeing[likely]
        and pairs.speak_for(evident, against=readings[likely])
        and _is_complete(evident, ground_truth)
    )
    if agreeing[BY_EVIDENCE] >= MAJORITY * total and (agreeing[likely] < MAJORITY * total or reordered):
        likely = BY_EVIDENCE
    # A candidate is clear if there is enough evidence, and it is better than every other one.
    enough = total >= FEWEST and (likely == AS_THEY_ARE or agreeing[likely] >= MAJORITY * total)
    clear = enough and all(pairs.speak_for(readings[likely], against=readings[name]) for name in named)
    if likely == BY_EVIDENCE and clear:
        clear = _is_complete(readings[likely], ground_truth)
    ids = known.ids.tolist()
    class_map: dict[Id, Id | None] = {
        identifier: None if row < 0 else ids[row]
        for identifier, row in zip(theirs.ids.tolist(), readings[likely].tolist(), strict=True)
    }
    return InferredClassMap(
        name=likely if clear else None,
        pairs=class_map,
        placed=total,
        given=given,
        mapped=agreeing[likely],
        likely=likely,
        are_named=theirs is not known and not all(map(str.isdecimal, theirs.names.tolist())),
    )


def _readings(
    theirs: Categories, known: Categories, classes: Sequence[str] | None
) -> dict[str, NDArray[np.int32]]:
    """Return the class of each class of the detections, [len(theirs)], under every named reading."""
    given = rows_as_given(theirs, known)
    if classes is not None:
        given = _listed_rows(class_pairs("zero-based", known, classes=classes), theirs, known)
    readings = {AS_THEY_ARE: given}
    for name in CLASS_MAPS:
        if name == "coco91to80" and len(known if classes is None else classes) != len(COCO_IDS):
            continue
        readings[name] = _listed_rows(class_pairs(name, known, classes=classes), theirs, known)
    return readings


def _listed_rows(pairs: Mapping[Id, Id | None], theirs: Categories, known: Categories) -> NDArray[np.int32]:
    """Return the class of each class of the detections, [len(theirs)]; -1 if the map lacks it."""
    targets = {row: pairs.get(identifier) for row, identifier in enumerate(theirs.ids.tolist())}
    targets = {row: to for row, to in targets.items() if to is not None}
    rows = np.full(len(theirs), -1, dtype=np.int32)
    rows[[*targets]] = known.rows_by_id_or_name([to for to in targets.values() if to is not None])
    return rows


class _ClassPairs(NamedTuple):
    """For each best detection with an annotation, its class and that of the annotation."""

    detected: NDArray[np.int32]
    truth: NDArray[np.int32]

    def agreeing(self, rows: NDArray[np.int32]) -> int:
        """Count the pairs that agree with a reading, a row for each class of the detections."""
        return int((rows[self.detected] == self.truth).sum())

    def speak_for(self, rows: NDArray[np.int32], *, against: NDArray[np.int32]) -> bool:
        """Return whether far more pairs agree with a reading, among those that another reads differently."""
        by_this, by_other = rows[self.detected], against[self.detected]
        differ = by_this != by_other
        if not differ.any():
            return True
        count, other = (int((each == self.truth)[differ].sum()) for each in (by_this, by_other))
        return count >= FEWEST_OF_CLASS and count >= TIMES * other


def _by_evidence(pairs: _ClassPairs, count: int) -> NDArray[np.int32]:
    """Return the majority class of the annotations of each class, [count]; -1 without one or for ties."""
    rows = np.full(count, -1, dtype=np.int32)
    classes = np.stack([pairs.detected, pairs.truth], axis=1)
    firsts, number = distinct_rows(classes)
    each, most = classes[firsts].T, np.bincount(number)
    totals = np.bincount(pairs.detected, minlength=count)[each[0]]
    detected, best = each[:, (totals >= FEWEST_OF_CLASS) & (most > MAJORITY * totals)]
    alone = np.bincount(best)[best] == 1
    rows[detected[alone]] = best[alone]
    return rows


def _corrected(given: NDArray[np.int32], evident: NDArray[np.int32]) -> NDArray[np.int32]:
    """Correct classes that are mostly right, [K].

    Unknown classes get the class of their annotations, unless another one has it. Known classes change only
    if they are permuted: if a detector predicts teddy bears as bears, its numbering is not wrong.
    """
    moved = (given >= 0) & (evident >= 0) & (given != evident)
    while moved.any():
        change = moved & np.isin(given, evident[moved]) & np.isin(evident, given[moved])
        if (change == moved).all():
            break
        moved = change
    filled = (given < 0) & ~np.isin(evident, given)
    return np.where(moved | filled, evident, given)


def _is_complete(rows: NDArray[np.int32], ground_truth: GroundTruth) -> bool:
    """Return whether no detected class remains that may be one of the remaining annotated classes."""
    annotated = distinct(ground_truth.category[~ground_truth.crowd])
    return bool((rows >= 0).all()) or bool(np.isin(annotated, rows).all())


def refused(inferred: InferredClassMap, source: str) -> InputError:
    """Return the error for classes with an unclear numbering."""
    likely = "" if inferred.likely == AS_THEY_ARE else f"; {inferred.likely} is most likely"
    return InputError(
        "class_map",
        "name a map, because the boxes do not show one clearly",
        got="'auto'",
        place=source,
        cause=f"{inferred}; use {', '.join(CLASS_MAPS)} or a file with lines from,to{likely}",
    )
