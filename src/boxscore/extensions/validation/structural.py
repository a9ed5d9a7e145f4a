"""Check ids, images and classes of the two tables.

Conventions
-----------
Errors that loaders reject or resolve do not show in tables; :mod:`boxscore.extensions.validation.files`
checks them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, verb
from boxscore.data.alignment import select_rows
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.extensions.validation._findings import (
    IN_PASSING,
    Context,
    Finding,
    Repair,
    RowCheck,
    Tables,
    image_rows,
    named,
)
from boxscore.matching.ignoring import zero_ids

SILENT = 0.10
"""Fraction of annotated images without detections above which results may belong to another split."""


def structural_findings(context: Context) -> Iterator[Finding]:
    """Check ids, images and classes."""
    if context.effort > IN_PASSING:
        yield from _annotation_ids(context)
    yield from of_classes(context)
    if context.effort > IN_PASSING and not context.chosen_classes:
        yield from _images(context)
    if context.detections is not None:
        if context.effort > IN_PASSING:
            yield from _left_out(context)
        if not context.chosen_classes:
            yield from _silent_images(context)
        yield from silent_classes(context)


def _annotation_ids(context: Context) -> Iterator[Finding]:
    truth = context.ground_truth
    # Find the last row of each id; every earlier row with it is repeated, and pycocotools replaces it.
    ids = truth.ids.tolist()
    last = {identifier: row for row, identifier in enumerate(ids)}
    repeated = np.array([row for row, identifier in enumerate(ids) if last[identifier] != row], dtype=int)
    if len(repeated):
        last_rows = np.array(sorted(last.values()), dtype=int)
        yield context.finding(
            "repeated-annotation-id",
            "structural",
            "error",
            len(repeated),
            f"{counted(len(repeated), 'annotation')} of {len(ids):,} {verb(len(repeated), 'share')} an "
            "id with a later one; only the last annotation with an id counts, as in pycocotools",
            table=truth,
            rows=repeated,
            repair="with unique ids",
            repaired=lambda c, detections: (c.ground_truth.take(last_rows), detections, c.protocol),
        )
    yield from ID_ZERO.finding(context, truth)


def _rows_of_id_zero(context: Context, truth: GroundTruth) -> tuple[NDArray[np.intp], float]:
    read = context.protocol.matching.annotation_id_zero == "counted"
    return np.flatnonzero(zero_ids(truth.ids) & read), 0.0


def _leave_zero_unmatched(context: Context, truth: GroundTruth, rows: NDArray[np.intp]) -> Repair:
    matching = context.protocol.matching.replaced(annotation_id_zero="unmatched")
    protocol = context.protocol.replaced(matching=matching)
    return lambda c, detections: (c.ground_truth, detections, protocol)


ID_ZERO = RowCheck(
    "annotation-id-zero",
    "structural",
    _rows_of_id_zero,
    lambda _: "note",
    lambda _, __, ___: (
        "an annotation has id 0: pycocotools does not count matches with it; boxscore does "
        '(matching.annotation_id_zero = "counted")'
    ),
    "with matches not counted, as in pycocotools",
    _leave_zero_unmatched,
)


def of_classes(context: Context) -> Iterator[Finding]:
    """Report classes that share a name, and those without annotations."""
    truth = context.ground_truth
    # Classes with one name are scored separately, which is rarely intended.
    names = truth.categories.names.tolist()
    if len(set(names)) < len(names):
        counts, labels = Counter(names), truth.categories.labels
        shared = [row for row, name in enumerate(names) if counts[name] > 1]
        yield context.finding(
            "classes-of-one-name",
            "structural",
            "warning",
            len(shared),
            f"{counted(len(shared), 'class')} share a name with another class; each is evaluated separately",
            examples=[f"class {labels[row]}" for row in shared],
        )
    # Classes without annotations are legal; their effect depends on the metric.
    empty = np.flatnonzero(context.objects_per_class == 0)
    if len(empty):
        labels = truth.categories.labels
        yield context.finding(
            "class-without-annotations",
            "structural",
            "note",
            len(empty),
            f"{counted(len(empty), 'class')} of {len(names):,} without annotations: "
            + (
                "their AP is undefined and not part of the mean"
                if context.measure == "AP"
                else "they are not part of the mean over classes, and their boxes are false positives"
            ),
            examples=[f"class {labels[row]}" for row in empty.tolist()],
        )


def _images(context: Context) -> Iterator[Finding]:
    truth = context.ground_truth
    per_image = np.bincount(truth.image, minlength=len(truth.images))
    empty, annotated = np.flatnonzero(per_image == 0), np.flatnonzero(per_image)
    yield from empty_images(
        context,
        len(empty),
        len(truth.images),
        examples=image_rows(truth.images, empty),
        repaired=lambda c, detections: (
            *select_rows(c.ground_truth, detections, images=annotated),
            c.protocol,
        ),
    )


def empty_images(
    context: Context,
    count: int,
    images: int,
    *,
    examples: Sequence[str] = (),
    repaired: Repair | None = None,
) -> Iterator[Finding]:
    """Report images without annotations."""
    if count:
        yield context.finding(
            "image-without-annotations",
            "structural",
            "note",
            count,
            f"{counted(count, 'image')} of {images:,} without annotations: every detection in them "
            + ("of a class that was annotated " if context.protocol.labels.unlisted == "drop" else "")
            + "is a false positive",
            examples=examples,
            repair="without these images",
            repaired=repaired,
        )


def _left_out(context: Context) -> Iterator[Finding]:
    detections = context.detections
    assert detections is not None
    if not detections.left_out:
        return
    from boxscore.extensions.hints.left_out import (
        LeftOut,
        class_map_advice,
        question_of_renamed,
        renamed_classes,
    )

    left_out = detections.left_out
    renamed = renamed_classes(left_out, detections.categories, detections.category)
    reader = left_out.renamed if isinstance(left_out, LeftOut) else None
    hint, repaired = question_of_renamed(renamed), None
    if renamed and reader is not None:
        hint, repaired = f"{hint} {class_map_advice(renamed)}", _by_names(reader, renamed)
    yield from unknown_classes(context, left_out, len(detections), hint=hint, repaired=repaired)


def unknown_classes(
    context: Context,
    left_out: Mapping[str, int],
    known: int,
    *,
    hint: str = "",
    repaired: Repair | None = None,
) -> Iterator[Finding]:
    """Report detections of classes that the ground truth does not have; ``known`` counts the others."""
    total = sum(left_out.values())
    if not total:
        return
    share = total / (total + known)
    yield context.finding(
        "unknown-class",
        "structural",
        "error" if share > 0.5 else "warning",
        total,
        f"{counted(total, 'detection')} ({share:.0%}) of {counted(len(left_out), 'class')} that the "
        f"ground truth does not have are ignored{'.' * bool(hint)}{hint}",
        examples=[f"class {label}: {count:,}" for label, count in left_out.items()],
        repair="with --class-map FILE",
        repaired=repaired,
    )


def _by_names(
    reader: Callable[[GroundTruth, Mapping[Id, Id | None]], Detections], renamed: Mapping[str, str]
) -> Repair:
    """Return the tables with the file read again with a class map of these names."""

    def repaired(c: Context, _: Detections) -> Tables:
        known = c.ground_truth.categories
        ids = dict(zip(known.labels, known.ids.tolist(), strict=True))
        pairs: dict[Id, Id | None] = {id_: ids[other] for id_, other in renamed.items()}
        return c.ground_truth, reader(c.ground_truth, pairs), c.protocol

    return repaired


def _silent_images(context: Context) -> Iterator[Finding]:
    truth, detections = context.ground_truth, context.detections
    assert detections is not None
    # Compare two flags per image, [I]: annotated, and without detections.
    annotated = np.zeros(len(truth.images), dtype=bool)
    annotated[truth.image] = True
    silent = annotated & (context.per_image == 0)
    yield from silent_images(
        context,
        int(silent.sum()),
        int(annotated.sum()),
        len(detections),
        examples=image_rows(truth.images, np.flatnonzero(silent)),
        repaired=lambda c, given: (
            *select_rows(c.ground_truth, given, images=np.flatnonzero(~silent)),
            c.protocol,
        ),
    )


def silent_images(
    context: Context,
    count: int,
    annotated: int,
    detections: int,
    *,
    examples: Sequence[str] = (),
    repaired: Repair | None = None,
) -> Iterator[Finding]:
    """Report images with annotations but without detections."""
    if not count:
        return
    # A few such images are normal; many suggest another split or an interrupted run.
    share = count / annotated
    text = f"{counted(count, 'image')} with annotations ({_percent(share)}) without detections"
    if share > SILENT:
        text += ". Are these results of another split, or of an interrupted run?"
    # If most images are affected, it is an error, and its effect is worth an evaluation.
    is_most = share > 0.5
    if is_most and detections:
        text += " To evaluate only some images, list their ids in a file: --images FILE"
    yield context.finding(
        "image-without-detections",
        "structural",
        "error" if is_most else "warning" if share > SILENT else "note",
        count,
        text,
        examples=examples,
        repair="without these images",
        repaired=repaired,
        at_once=is_most and detections > 0 and context.is_soon(context.protocol),
    )


def _percent(share: float) -> str:
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"


def silent_classes(context: Context) -> Iterator[Finding]:
    """Report classes with annotations but without detections."""
    truth, detections = context.ground_truth, context.detections
    assert detections is not None
    # Compare two flags per class, [K]: annotated, and without detections.
    K = len(truth.categories)
    annotated = context.objects_per_class > 0
    silent = annotated & context.silent_classes
    if not silent.any():
        return
    # A class whose results file is missing gets its own finding instead of this one.
    absent = (
        np.zeros(K, dtype=bool) if context.chosen_classes else _without_file(context, detections) & silent
    )
    if absent.any():
        labels = [*compress(truth.categories.labels, absent)]
        count = int(absent.sum())
        yield context.finding(
            "class-without-results-file",
            "structural",
            "warning",
            count,
            f"{counted(count, 'class')} with annotations {verb(count, 'lack')} a results file in "
            f"{detections.source} ({context.measure} 0{' each' * (count > 1)}): {named(labels)}",
            examples=[f"class {label}" for label in labels],
        )
        silent &= ~absent
    if not silent.any():
        return
    # Report the others together; the repair leaves them out.
    share, count = silent.sum() / annotated.sum(), int(silent.sum())
    loud = np.flatnonzero(~silent)
    labels = truth.categories.labels
    yield context.finding(
        "class-without-detections",
        "structural",
        "error" if share > 0.5 else "warning",
        count,
        f"{counted(count, 'class')} with annotations but without detections ({context.measure} "
        f"0{' each' * (count > 1)}): {named([labels[row] for row in np.flatnonzero(silent).tolist()])}",
        examples=[f"class {labels[row]}" for row in np.flatnonzero(silent).tolist()],
        repair="without these classes",
        repaired=lambda c, given: (*select_rows(c.ground_truth, given, classes=loud), c.protocol),
    )


def _without_file(context: Context, detections: Detections) -> NDArray[np.bool_]:
    """Return whether each class lacks a file in a folder of VOC results, [K]."""
    names = detections.categories.names.tolist()
    if not (context.was_read(detections) and Path(detections.source).is_dir()):
        return np.zeros(len(names), dtype=bool)
    from boxscore.formats.voc import classes_without_file

    return np.isin(names, classes_without_file(Path(detections.source), names))
