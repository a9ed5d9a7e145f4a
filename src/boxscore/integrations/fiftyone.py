"""Read samples of FiftyOne as tables, and write the outcome of each detection and object back.

Conventions
-----------
- FiftyOne is not imported: samples are a data set, a view, or any sequence of samples.
- An image is identified by its ``filepath``. Its size comes from ``metadata``; boxes are fractions of it.
- Written fields have FiftyOne's names: ``eval`` is ``tp``, ``fp`` or ``fn``, or ``ignored`` if the label does
  not count; ``eval_id`` and ``eval_iou`` refer to the matched label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from boxscore import Detections, Evaluation, GroundTruth, InputError, evaluate
from boxscore.data.vocabulary import Images
from boxscore.extensions.data_tools.invalid_rows import Invalid, without_invalid

LABEL_ID = "label_id"
"""The column of detections with FiftyOne's ids; the ids of objects are the ids of annotations."""

WRITTEN = (("tp", "fp", "ignored", "ignored"), ("tp", "fp", "ignored", "fn"))
"""The texts written for detections and for objects, indexed by outcome."""


def tables(
    samples: Iterable[Any],
    pred_field: str = "predictions",
    gt_field: str = "ground_truth",
    *,
    classes: Sequence[str] | None = None,
    invalid: Invalid = "false_positive",
) -> tuple[GroundTruth, Detections]:
    """Return the boxes of two fields of samples as tables.

    Parameters
    ----------
    samples : iterable of Sample
        Each with ``metadata`` (``samples.compute_metadata()``) and fields of ``Detections``; an empty field
        is an image without boxes. ``iscrowd`` and ``area`` of objects are read if present.
    pred_field, gt_field : str
        Names of the fields.
    classes : sequence of str, optional
        All classes; by default those of the objects and detections.
    invalid : {"error", "drop", "false_positive"}, default "false_positive"
        What to do with NaN, infinite and inverted predictions, as in :class:`boxscore.Evaluator`.

    Returns
    -------
    GroundTruth, Detections

    Raises
    ------
    InputError
        When a sample lacks a size, a label lacks a box, or a detection lacks a confidence.
    """
    # Read the samples in one pass: they may come from a database.
    images: dict[str, tuple[float, float]] = {}
    rows: tuple[list[Any], list[Any]] = ([], [])
    for sample in samples:
        path = str(sample.filepath)
        images[path] = _size(sample, path)
        for side, field in zip(rows, (gt_field, pred_field), strict=True):
            side += [(path, label) for label in _labels(sample, field)]
    # Both tables share images and classes, so that later steps do not look up names.
    names = sorted({label.label for side in rows for _, label in side}) if classes is None else list(classes)
    paths = list(images)
    vocabulary = Images.build(paths, file_names=paths, sizes=np.array(list(images.values())).reshape(-1, 2))
    shared: dict[str, Any] = {"box_format": "xywh", "images": vocabulary, "categories": names}
    truth, found = (_columns(side, images) for side in rows)
    # Areas are used only if every object has one; every detection needs a score.
    areas: list[Any] = [getattr(label, "area", None) for _, label in rows[0]]
    scores = [label.confidence for _, label in rows[1]]
    if None in scores:
        path = rows[1][scores.index(None)][0]
        raise InputError("confidence", "be given for every detection", got="none", place=f"sample {path!r}")
    found |= {"scores": np.array(scores, dtype=np.float64)}
    found |= {LABEL_ID: np.array([str(label.id) for _, label in rows[1]], dtype=object)}
    found = without_invalid(found, found["image_ids"], invalid=invalid)
    found_ids = found.pop(LABEL_ID)
    return (
        GroundTruth.from_arrays(
            **truth,
            **shared,
            ids=[str(label.id) for _, label in rows[0]],
            area=areas if areas and None not in areas else None,
            crowd=[bool(getattr(label, "iscrowd", False)) for _, label in rows[0]],
            source=gt_field,
        ),
        Detections.from_arrays(**found, **shared, columns={LABEL_ID: found_ids}, source=pred_field),
    )


def evaluate_samples(
    samples: Iterable[Any],
    pred_field: str = "predictions",
    gt_field: str = "ground_truth",
    *,
    eval_key: str | None = None,
    classes: Sequence[str] | None = None,
    invalid: Invalid = "false_positive",
    **options: Any,
) -> Evaluation:
    """Evaluate the boxes of samples and, with ``eval_key``, write the outcomes back.

    Parameters
    ----------
    samples, pred_field, gt_field, classes, invalid
        As for :func:`tables`.
    eval_key : str, optional
        Field to write; by default nothing is written.
    **options
        Options of :func:`boxscore.evaluate`; ``protocol="fiftyone"`` gives FiftyOne's own numbers.

    Returns
    -------
    Evaluation
    """
    truth, detections = tables(samples, pred_field, gt_field, classes=classes, invalid=invalid)
    evaluation = evaluate(truth, detections, **options)
    if eval_key is not None:
        write_matches(evaluation, samples, eval_key, pred_field, gt_field)
    return evaluation


def write_matches(
    evaluation: Evaluation,
    samples: Iterable[Any],
    eval_key: str,
    pred_field: str = "predictions",
    gt_field: str = "ground_truth",
) -> None:
    """Write the outcome of each detection and object, at the first IoU threshold.

    With ``eval_key="eval"``, ``sample.predictions.detections[0]["eval"]`` becomes ``tp``, ``fp`` or
    ``ignored``, with ``eval_id`` and ``eval_iou``; objects become ``tp``, ``fn`` or ``ignored``. The fields
    ``sample["eval_tp"]``, ``eval_fp`` and ``eval_fn`` hold counts.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation of the :func:`tables` of these samples, under any protocol.
    samples, pred_field, gt_field
        As for :func:`tables`. Samples of a data set are saved.
    eval_key : str
        Field to write.
    """
    # Look up outcomes by label id, for both sides; a match is written on both.
    made, truth, detections = evaluation.outcomes, evaluation.ground_truth, evaluation.detections
    found_ids, true_ids = detections.columns[LABEL_ID].tolist(), truth.ids.tolist()
    said: list[dict[str, tuple[str, Any, Any]]] = [{}, {}]
    for row, other in enumerate(made.truth_row.tolist()):
        outcome = WRITTEN[0][made.detection[row]]
        matched = (true_ids[other], float(made.iou[row])) if other >= 0 else (None, None)
        said[0][found_ids[row]] = (outcome, *matched)
        if outcome == "tp":
            said[1][true_ids[other]] = ("tp", found_ids[row], matched[1])
    # Objects without a true positive are missed or ignored.
    for row, outcome in enumerate(made.truth().tolist()):
        said[1].setdefault(true_ids[row], (WRITTEN[1][outcome], None, None))
    # Write outcomes into labels, and their counts into the sample, in one pass.
    for sample in _saved(samples):
        counts = dict.fromkeys(("tp", "fp", "fn"), 0)
        for field, outcomes in zip((pred_field, gt_field), said, strict=True):
            for label in _labels(sample, field):
                outcome, other, iou = outcomes.get(str(label.id), ("ignored", None, None))
                label[eval_key], label[f"{eval_key}_id"], label[f"{eval_key}_iou"] = outcome, other or "", iou
                if outcome in counts and (field == pred_field or outcome == "fn"):
                    counts[outcome] += 1
        for name, count in counts.items():
            sample[f"{eval_key}_{name}"] = count


def _columns(rows: list[Any], images: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Return the image, class and box in pixels of each label."""
    boxes = np.array([label.bounding_box for _, label in rows], dtype=np.float64).reshape(-1, 4)
    sizes = np.array([images[path] for path, _ in rows]).reshape(-1, 2)
    return {
        "image_ids": [path for path, _ in rows],
        "category_ids": [label.label for _, label in rows],
        "boxes": boxes * np.tile(sizes, 2),
    }


def _saved(samples: Any) -> Iterator[Any]:
    """Yield samples; save those of a data set after each change."""
    if hasattr(samples, "iter_samples"):
        yield from samples.iter_samples(autosave=True)
    else:
        yield from samples


def _size(sample: Any, path: str) -> tuple[float, float]:
    metadata = sample.metadata
    size = getattr(metadata, "width", None), getattr(metadata, "height", None)
    if None in size:
        cause = "call samples.compute_metadata() first"
        raise InputError(
            "metadata", "have width and height", got="none", place=f"sample {path!r}", cause=cause
        )
    return float(size[0]), float(size[1])  # type: ignore[arg-type]


def _labels(sample: Any, field: str) -> list[Any]:
    value = sample[field]
    if value is None:
        return []
    if not hasattr(value, "detections"):
        got = f"{type(value).__name__} in {field!r}"
        raise InputError("a field", "hold Detections", got=got, place=f"sample {str(sample.filepath)!r}")
    return list(value.detections)
