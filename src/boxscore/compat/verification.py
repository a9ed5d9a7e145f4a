"""Run pycocotools on the same input and name the first difference.

Conventions
-----------
pycocotools gets the evaluated tables as COCO dictionaries: annotations with their ids, images, classes and
detections with row numbers plus one. Its arrays must equal ours bit for bit. pycocotools does not count a
match with annotation id 0; if that makes a difference, the comparison is repeated without those matches, and
both differences are reported.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import InputError, MissingDependencyError, ProtocolError
from boxscore.evaluation import Evaluation, without_matches_of_id_zero
from boxscore.matching.ignoring import zero_ids
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import similarity_of

_IOU_TYPES = {"box": "bbox", "mask": "segm", "boundary": "segm", "keypoints": "keypoints"}


@dataclasses.dataclass(frozen=True)
class Verification:
    """The result of comparing the arrays.

    Attributes
    ----------
    largest : dict of str to float
        Largest absolute difference of ``precision``, ``recall`` and ``scores``; a value that only one side
        defines counts as infinite.
    first : str
        The first value that differs, and the first image and detection with different outcomes; may be empty.
    id_zero : str
        The part of the difference that is due to annotation id 0; may be empty.
    """

    largest: dict[str, float]
    first: str
    id_zero: str = ""

    @property
    def equal(self) -> bool:
        """Whether every value of every array is equal."""
        return not self.first

    def __str__(self) -> str:
        worst = max(self.largest.values())
        parts = ", ".join(f"{name} {value:g}" for name, value in self.largest.items())
        if self.equal:
            return f"verified against pycocotools: largest difference {worst!r} ({parts})"
        text = f"differs from pycocotools: largest difference {worst!r} ({parts}); {self.first}"
        return f"{text}. {self.id_zero}" if self.id_zero else text


def verify(evaluation: Evaluation) -> Verification:
    """Evaluate the same tables with pycocotools and compare precision, recall and scores."""
    # Reject data with "ignore" flags other than crowds, which pycocotools lacks.
    check_protocol(evaluation.protocol)
    if evaluation.protocol.ignore.flagged != "count" and evaluation.ground_truth.ignore.any():
        raise ProtocolError(
            "a protocol to verify on objects flagged ignore",
            'have ignore.flagged = "count", as pycocotools does',
            got=repr(evaluation.protocol.ignore.flagged),
        )
    # If the results differ, check whether ids of 0, which pycocotools reads as unmatched, explain it.
    reference = _run_pycocotools(evaluation)
    verification = _compare(evaluation, reference)
    if verification.equal or evaluation.protocol.matching.annotation_id_zero == "unmatched":
        return verification
    if not zero_ids(evaluation.ground_truth.ids).any():
        return verification
    other = without_matches_of_id_zero(evaluation)
    return dataclasses.replace(
        verification, id_zero=_of_id_zero(evaluation, other, _compare(other, reference))
    )


def _of_id_zero(here: Evaluation, other: Evaluation, without: Verification) -> str:
    """Describe the remaining difference when matches with annotation id 0 do not count."""
    key = next(iter(here.metrics), "")
    values = f": {key} {here.metrics[key]:.6g} here, {other.metrics[key]:.6g} there" if key else ""
    setting = 'matching.annotation_id_zero = "unmatched" (--annotation-id-zero unmatched)'
    if without.equal:
        return (
            "pycocotools does not count matches with annotation id 0, which explains the whole "
            f"difference{values}; with {setting} every value is equal"
        )
    return f"Annotation id 0 does not explain the whole difference: with {setting} it {without}"


def _compare(evaluation: Evaluation, reference: Any) -> Verification:
    """Compare precision, recall and scores with those of a run of pycocotools."""
    ours = evaluation.arrays()
    largest, first = {}, ""
    for name, mine in ours.items():
        # -1 is undefined in precision and recall; a score may be -1.
        undefined = reference.eval["recall" if name == "recall" else "precision"] == -1
        theirs = np.where(undefined, np.nan, reference.eval[name])
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        difference = np.where(same, 0.0, np.abs(mine - theirs))
        largest[name] = float(np.where(np.isnan(difference), np.inf, difference).max(initial=0.0))
        if not same.all() and not first:
            index = tuple(int(i) for i in np.argwhere(~same)[0])
            first = _describe(evaluation, reference, name, index, float(mine[index]), float(theirs[index]))
    return Verification(largest, first)


def check_protocol(protocol: Protocol) -> None:
    """Check that pycocotools can compute a protocol."""
    per_class = protocol.matching.per_class
    # Each rule that pycocotools has built in must be the protocol's rule too.
    reasons = {
        f"similarity {' or '.join(map(repr, _IOU_TYPES))}": protocol.similarity in _IOU_TYPES,
        "boxes.pixel_offset = 0": protocol.boxes.pixel_offset == 0,
        'matching.candidate = "best_available"': protocol.matching.candidate == "best_available",
        'matching.equal_iou = "last"': protocol.matching.equal_iou == "last",
        'matching.equal_scores = "image_order"': protocol.matching.equal_scores == "image_order",
        "matching.threshold_closed = true": protocol.matching.threshold_closed,
        'ignore.crowd = "iof"': protocol.ignore.crowd == "iof",
        'ignore.within = "anywhere"': protocol.ignore.within == "anywhere",
        'ignore.difficult = "count"': protocol.ignore.difficult == "count",
        'ap.interpolation = "points"': protocol.ap.interpolation == "points",
        "matching.largest_threshold = 1 - 1e-10": protocol.matching.largest_threshold == 1 - 1e-10,
        "ap.precision_epsilon = numpy.spacing(1)": protocol.ap.precision_epsilon == np.spacing(1),
        "matching.max_detections": bool(protocol.matching.max_detections),
        "matching.per_class = true for keypoints": per_class or protocol.similarity != "keypoints",
        'ignore.unlabeled = "ignore"': (protocol.similarity == "keypoints")
        == (protocol.ignore.unlabeled == "ignore"),
    }
    for rule, holds in reasons.items():
        if not holds:
            raise ProtocolError(
                "a protocol to verify", f"have {rule}, as pycocotools does", got=repr(protocol.name)
            )


def require_pycocotools() -> tuple[Any, Any]:
    """Import pycocotools' COCO and COCOeval, or say how to install them."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        raise MissingDependencyError("--verify needs pycocotools: pip install pycocotools.") from None
    return COCO, COCOeval


def _run_pycocotools(evaluation: Evaluation) -> Any:
    COCO, COCOeval = require_pycocotools()
    # Use the tables as evaluated, so both sides see the same boxes, areas and scores.
    truth, protocol = evaluation.ground_truth, evaluation.protocol
    keypoint_counts = truth.keypoint_count if "keypoints" in similarity_of(protocol).needed_columns else None
    counts = [1] * len(truth) if keypoint_counts is None else keypoint_counts.tolist()
    detections, areas = evaluation._matcher.detections, evaluation._matcher.areas
    # Number images, classes and detections from 1. Annotations keep numeric ids, since pycocotools reads id 0
    # as unmatched.
    dataset = {
        "images": [
            {"id": row, "width": width, "height": height}
            for row, (width, height) in enumerate(_pixels(truth.images.sizes), start=1)
        ],
        "categories": [{"id": row + 1, "name": name} for row, name in enumerate(truth.categories.labels)],
        "annotations": [
            {**record, "id": number, "area": area, "iscrowd": int(crowd), "num_keypoints": count}
            for record, number, area, crowd, count in zip(
                _records(truth, protocol),
                _numbers(truth.ids),
                truth.area.tolist(),
                truth.crowd.tolist(),
                counts,
                strict=True,
            )
        ],
    }
    results = [
        {**record, "score": score, "area": area}
        for record, score, area in zip(
            _records(detections, protocol),
            detections.scores.tolist(),
            areas.tolist(),
            strict=True,
        )
    ]
    # Build both indices in memory: a file would round numbers.
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        reference = COCO()
        reference.dataset = dataset
        reference.createIndex()
        detections = COCO()
        detections.dataset = {**dataset, "annotations": results}
        detections.createIndex()
        # Use the evaluator of pycocotools that the similarity selects.
        kind = similarity_of(protocol).reference_evaluator(COCOeval)
        run = kind(reference, detections, _IOU_TYPES[protocol.similarity])
        if protocol.similarity == "keypoints":
            run.params.kpt_oks_sigmas = protocol.keypoints.spread
        # Set every parameter from the protocol, including defaults.
        run.params.iouThrs = np.array(protocol.matching.iou_thresholds)
        run.params.recThrs = np.array(protocol.ap.recall_points)
        run.params.maxDets = list(protocol.matching.max_detections)
        run.params.areaRng = [list(pair) for pair in protocol.ignore.area_ranges.values()]
        run.params.areaRngLbl = list(protocol.ignore.area_ranges)
        run.params.useCats = int(protocol.matching.per_class)
        # Report data that pycocotools rejects as an error of the input.
        try:
            run.evaluate()
            run.accumulate()
        except Exception as error:  # masks of images without a size, and other rejected data
            got, cause = f"{type(error).__name__}: {error}", "run without --verify, or correct the file"
            rule = "be data that pycocotools can evaluate, to be verified"
            raise InputError("ground truth and detections", rule, got=got, cause=cause) from None
    return run


def _pixels(sizes: Any) -> list[list[int]]:
    """Widths and heights as integers; 0 if unknown."""
    return [[int(side) for side in sides] for sides in np.nan_to_num(sizes).tolist()]


def _numbers(ids: NDArray[Any]) -> list[Any]:
    """Return annotation ids for pycocotools: unique numbers unchanged, else rows from 1, and 0 for id 0."""
    numbers: list[Any] = ids.tolist()
    if len(set(numbers)) == len(numbers):
        with contextlib.suppress(ValueError, OverflowError):
            for number in numbers if ids.dtype == object else ():
                float(number)
            return numbers
    rows: list[Any] = np.where(zero_ids(ids), 0, np.arange(1, len(ids) + 1)).tolist()
    return rows


def _records(table: Any, protocol: Protocol) -> list[dict[str, Any]]:
    """Rows of a table as COCO dictionaries, numbered from 1."""
    # Use the table's sizes, since differences of corners could round.
    boxes = np.hstack([table.boxes[:, :2], table.sizes]).tolist()
    records = [
        {"id": row, "image_id": image + 1, "category_id": category + 1, "bbox": box}
        for row, (image, category, box) in enumerate(
            zip(table.image.tolist(), table.category.tolist(), boxes, strict=True), start=1
        )
    ]
    # Add masks and keypoints only if the protocol compares them.
    if "masks" in similarity_of(protocol).needed_columns and table.masks is not None:
        for record, mask in zip(records, table.masks.given, strict=True):
            record["segmentation"] = mask
    if "keypoints" in similarity_of(protocol).needed_columns and table.keypoints is not None:
        for record, points in zip(
            records, [points.ravel().tolist() for points in table.keypoints], strict=True
        ):
            record["keypoints"] = points
    return records


def _describe(
    evaluation: Evaluation, reference: Any, name: str, index: tuple[int, ...], mine: float, theirs: float
) -> str:
    """Name a value that differs, and the first detection of its class with different outcomes."""
    protocol = evaluation.protocol
    t, k, a, m = index[0], index[-3], index[-2], index[-1]
    position = [f"IoU {protocol.matching.iou_thresholds[t]:.2f}", f"class {evaluation.labels[k]}"]
    if len(index) == 5:
        position.insert(1, f"recall {protocol.ap.recall_points[index[1]]:.2f}")
    position += [f"area {list(protocol.ignore.area_ranges)[a]}", f"maxDets {protocol.caps[m]}"]
    text = f"first in {name} at {', '.join(position)}: {mine!r} here, {theirs!r} in pycocotools"
    return f"{text}; {_first_detection(evaluation, reference, t, k, a)}"


def _first_detection(evaluation: Evaluation, reference: Any, t: int, k: int, a: int) -> str:
    # Our matches at this threshold, class and area range.
    matched, images = evaluation.matched, evaluation.ground_truth.images
    pairs = matched.pairs_matched(t, a)
    pairs = pairs[matched.category[matched.pair_detection[pairs]] == k]
    rows, truths = matched.row[matched.pair_detection[pairs]], matched.truth_row[matched.pair_truth[pairs]]
    here: dict[int, int] = dict(zip(rows.tolist(), truths.tolist(), strict=True))
    # pycocotools stores ids as floats, and 0 for unmatched.
    numbers = _numbers(evaluation.ground_truth.ids)
    row_of = {float(number): truth for truth, number in enumerate(numbers)}  # floats there
    zero_is_none = evaluation.protocol.matching.annotation_id_zero == "unmatched"
    # Its outcomes are one list: by class, then area range, then image.
    span = len(images)
    block = reference.evalImgs[(k * len(reference.params.areaRng) + a) * span :][:span]
    for item in block:
        if item is None:
            continue
        for number, theirs in zip(item["dtIds"], item["dtMatches"][t].tolist(), strict=True):
            row = int(number) - 1
            mine = here.get(row)
            # Report the first detection whose match differs.
            same = (0 if mine is None else float(numbers[mine])) == theirs
            if same and (mine is None or theirs or zero_is_none):
                continue
            image = images.ids.tolist()[int(item["image_id"]) - 1]
            texts = [
                "nothing" if truth is None else f"ground truth {truth}"
                for truth in (mine, row_of[theirs] if theirs else None)
            ]
            return f"image {image!r}, detection {row}: matches {texts[0]} here, {texts[1]} in pycocotools"
    return "the matches are equal: the difference is in the accumulation"
