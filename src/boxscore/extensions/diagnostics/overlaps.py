"""Compute overlaps of ground truth and detections pair by pair: IoU and related measures.

Conventions
-----------
- A pair is an object and a detection of one class in one image, even if a flag such as ``crowd`` changes how
  the object is matched.
- IoU is the similarity that the protocol uses: for boxes, rotated boxes or masks. For keypoints the column is
  OKS; for ProbIoU, which is not a ratio of areas, it is ProbIoU. IoU is symmetric.
- IoF is the fraction of the detection inside the object, the measure for crowds.
- GIoU, DIoU and CIoU are defined for upright boxes.
- Undefined values are NaN: every measure of two boxes without area, IoF of a detection without area, DIoU and
  CIoU of relative boxes in images of unknown size. Matching counts an undefined IoU as 0.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import ragged_ranges
from boxscore.data.boxes import BoxFormat, without_inverted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import threshold_index
from boxscore.extensions.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.matching.candidates import MOST_HELD
from boxscore.matching.outcomes import outcomes_by_row
from boxscore.matching.ranking import listed_scores
from boxscore.similarity.box import (
    box_iof,
    complete_box_iou,
    distance_box_iou,
    generalized_box_iou,
    intersection_and_union,
)

if TYPE_CHECKING:
    import pandas as pd

Rows = NDArray[np.intp]

WhichPairs = Literal["overlapping", "matched", "all"]
WHICH_PAIRS: tuple[WhichPairs, ...] = ("overlapping", "matched", "all")

OVERLAP_NAMES = {"keypoints": "OKS", "probiou": "ProbIoU"}
"""Names of overlaps that are not an IoU."""

LEAST = sys.float_info.min
"""The smallest positive overlap: every overlapping pair reaches it."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PairOverlaps(DiagnosticResult):
    """Pairs of an object and a detection, and their overlaps.

    Attributes
    ----------
    truth, detection : ndarray of intp, [P]
        Rows in the evaluated tables.
    overlaps : dict of str to ndarray of float64, [P]
        ``IoU`` (``OKS``, ``ProbIoU``) first, then those of ``GIoU``, ``DIoU``, ``CIoU`` and ``IoF`` that are
        defined for the objects. NaN where undefined.
    matched : ndarray of bool, [P]
        Whether the protocol matched the pair at the IoU threshold.
    ground_truth, detections : GroundTruth, Detections
        The evaluated tables.
    """

    truth: Rows
    detection: Rows
    overlaps: dict[str, FloatArray]
    matched: NDArray[np.bool_]
    ground_truth: GroundTruth
    detections: Detections

    def to_frame(self) -> pd.DataFrame:
        """Return one row per pair, sorted by image, class, object and descending overlap.

        ``image_id, file_name, class, annotation_id, detection, score``, the overlaps, ``matched``.
        ``detection`` is the row in the evaluated detections, from 0.
        """
        import pandas as pd

        # Look up ids, names and classes by row, [P].
        truth, detections = self.ground_truth, self.detections
        labels = np.array(truth.categories.labels, dtype=object)
        images = truth.image[self.truth]
        columns = {
            "image_id": truth.images.ids[images],
            "file_name": truth.images.file_names[images],
            "class": labels[truth.category[self.truth]],
            "annotation_id": truth.ids[self.truth],
            "detection": self.detection,
            "score": listed_scores(detections)[self.detection],
            **self.overlaps,
            "matched": self.matched,
        }
        # Leave out the column if the data set lacks file names.
        if all(name is None for name in truth.images.file_names.tolist()):
            del columns["file_name"]
        return pd.DataFrame(columns)


@once_per_evaluation
def pair_overlaps(
    evaluation: Evaluation, *, which: WhichPairs = "overlapping", iou_threshold: float | None = None
) -> PairOverlaps:
    """Measure every pair of an object and a detection of one class in one image.

    Parameters
    ----------
    evaluation : Evaluation
    which : {"overlapping", "matched", "all"}, default "overlapping"
        Overlapping pairs, pairs that the protocol matched, or all pairs of one image and class, including
        those with an overlap of 0.
    iou_threshold : float, optional
        One of the protocol's IoU thresholds, which decides the matches (default: the first).

    Returns
    -------
    PairOverlaps

    Raises
    ------
    InputError
        When the protocol does not have the threshold, or there are too many pairs for memory.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays(["photo"], ["car"], [[0, 0, 10, 10]])
    >>> detections = Detections.from_arrays(["photo"], ["car"], [[5, 5, 15, 15]], [0.9])
    >>> pair_overlaps(evaluate(truth, detections)).overlaps["IoU"].tolist() == [25 / 175]
    True
    """
    # Find the protocol's matches at the threshold, and all overlaps above 0 across classes.
    checks.one_of(which, WHICH_PAIRS, name="which")
    threshold = threshold_index(evaluation, iou_threshold)
    evaluation._require_overlaps("overlaps of pairs")
    truth, detections = evaluation.ground_truth, evaluation.detections
    outcomes = outcomes_by_row(evaluation.matched, len(detections), len(truth), threshold=threshold)
    known = _Known(evaluation, by_foreground=False)
    # Choose all pairs of one image and class, the matched ones, or the overlapping ones of one class.
    if which == "all":
        truth_rows, rows = _all_pairs(evaluation)
    elif which == "matched":
        rows = np.flatnonzero(outcomes.truth_row >= 0)
        truth_rows = outcomes.truth_row[rows].astype(np.intp)
    else:
        truth_rows, rows = known.truth, known.detection
        same = truth.category[truth_rows] == detections.category[rows]
        truth_rows, rows = truth_rows[same], rows[same]
    # Look up the overlap of each pair and sort by image, class, object and descending overlap.
    overlap = known.of(truth_rows, rows)
    order = np.lexsort((-overlap, truth_rows, truth.category[truth_rows], truth.image[truth_rows]))
    truth_rows, rows = truth_rows[order], rows[order]
    return PairOverlaps(
        truth_rows,
        rows,
        _overlaps(evaluation, truth_rows, rows, overlap[order]),
        outcomes.truth_row[rows] == truth_rows,
        truth,
        detections,
    )


class _Known:
    """All overlaps above 0 of an evaluation, across classes."""

    def __init__(self, evaluation: Evaluation, *, by_foreground: bool) -> None:
        flags = np.full(len(evaluation.ground_truth), by_foreground)
        pairs = evaluation._matcher.across_classes(iou_threshold=LEAST, by_foreground=flags)
        self._count = max(len(evaluation.ground_truth), 1)
        key = pairs.detection * self._count + pairs.truth
        order = np.argsort(key, kind="stable")
        self.truth, self.detection = pairs.truth[order], pairs.detection[order]
        self._key, self._value = key[order], pairs.iou[order]

    def of(self, truth: Rows, detection: Rows) -> FloatArray:
        """Return the overlap of each pair, [P]; 0 for pairs that do not overlap."""
        if not len(self._key):
            return np.zeros(len(truth))
        wanted = detection * self._count + truth
        at = np.minimum(np.searchsorted(self._key, wanted), len(self._key) - 1)
        return np.where(self._key[at] == wanted, self._value[at], 0.0)


def _all_pairs(evaluation: Evaluation) -> tuple[Rows, Rows]:
    """Return the rows of every object and detection that share image and class."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    classes = len(truth.categories)
    truth_group, group = (
        table.image.astype(np.int64) * classes + table.category for table in (truth, detections)
    )
    # Sort the objects by (image, class) and find those of each detection by bisection. The number of pairs is
    # known before they are made, so too many are rejected without using memory.
    by_group = np.argsort(truth_group, kind="stable")
    grouped = truth_group[by_group]
    starts = np.searchsorted(grouped, group, side="left")
    counts = np.searchsorted(grouped, group, side="right") - starts
    if int(counts.sum()) > MOST_HELD:
        raise InputError(
            "pairs of one class in one image",
            f"be at most {MOST_HELD:,} when all pairs are listed",
            got=f"{int(counts.sum()):,}",
            cause="list only pairs that overlap, or fewer images or classes",
        )
    # Concatenate the runs of objects, one run per detection, [P].
    return by_group[ragged_ranges(starts, counts)], np.repeat(np.arange(len(group)), counts)


def _overlaps(
    evaluation: Evaluation, truth_rows: Rows, rows: Rows, overlap: FloatArray
) -> dict[str, FloatArray]:
    """Return the measures of pairs, the protocol's similarity first."""
    truth, detections, protocol = evaluation.ground_truth, evaluation.detections, evaluation.protocol
    name = OVERLAP_NAMES.get(protocol.similarity, "IoU")
    if protocol.similarity == "box" and protocol.boxes.aspect_ratio is None:
        others = measures_of_boxes(
            without_inverted(truth.boxes[truth_rows]),
            without_inverted(detections.boxes[rows]),
            pixel_offset=protocol.boxes.pixel_offset,
            in_pixels=truth.units == "pixels",
        )
        return {**others, "IoU": np.where(np.isnan(others["IoU"]), np.nan, overlap)}
    if not evaluation._matcher.similarity.measures_foreground:
        return {name: overlap}
    return {name: overlap, "IoF": _Known(evaluation, by_foreground=True).of(truth_rows, rows)}


def measures_of_boxes(
    truths: FloatArray,
    detections: FloatArray,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0.0,
    in_pixels: bool = True,
) -> dict[str, FloatArray]:
    """Compute IoU, GIoU, DIoU, CIoU and IoF of boxes, row by row.

    Parameters
    ----------
    truths, detections : ndarray of float64, [P, 4]
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
    pixel_offset : float, default 0
        1 for inclusive pixels.
    in_pixels : bool, default True
        False for relative boxes in images of unknown size, where the distances in DIoU and CIoU are
        undefined.

    Returns
    -------
    dict of str to ndarray of float64, [P]
        NaN where undefined.
    """
    how: dict[str, Any] = {"box_format": box_format, "pixel_offset": pixel_offset}
    shared, union, area = intersection_and_union(truths, detections, **how)
    measured = {
        "IoU": np.divide(shared, union, out=np.zeros_like(shared), where=union > 0),
        "GIoU": generalized_box_iou(truths, detections, paired=True, **how),
        "DIoU": distance_box_iou(truths, detections, paired=True, **how),
        "CIoU": complete_box_iou(truths, detections, paired=True, **how),
        "IoF": box_iof(detections, truths, paired=True, **how),
    }
    undefined = dict.fromkeys(measured, union == 0)
    undefined["IoF"] = area == 0
    if not in_pixels:
        undefined["DIoU"] = undefined["CIoU"] = np.ones(len(union), dtype=bool)
    return {name: np.where(undefined[name], np.nan, values) for name, values in measured.items()}
