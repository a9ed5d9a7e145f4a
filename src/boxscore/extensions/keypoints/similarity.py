"""Compute object keypoint similarity (OKS), bit for bit as pycocotools' ``computeOks``, in batches.

Conventions
-----------
- Keypoints are [N, J, 3]: x, y in pixels and a visibility; a keypoint of a ground truth is labeled if its
  visibility is above 0. The visibility of detections is ignored.
- ``sigmas`` [J] are the scatter of annotators around each keypoint, relative to the size of the object.
- OKS is the mean over labeled keypoints of ``exp(-d^2 / (2 * (area + eps) * (2 * sigma)^2))``, with the
  distance ``d`` in pixels and ``eps`` = ``numpy.spacing(1)``.
- Without labeled keypoints, the distance is measured to the ground truth's box, doubled about its center on
  every side (0 inside), and the mean is over all J.
- OKS is not an overlap: it does not need boxes, not even for crowds.

References
----------
Ronchi and Perona, arXiv 1707.05388; https://cocodataset.org/#keypoints-eval; pycocotools 2.0.11,
``cocoeval.py``: ``computeOks``.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.keypoints.columns import keypoint_array
from boxscore.similarity.pairs import CHUNK_PAIRS, Comparison, PairValues, in_chunks
from boxscore.similarity.registry import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

DISTANT = -40.0
"""Exponents below it add at most 4e-18, which is lost next to a number near 1."""

LEAST_SIGMAS, ROUNDED_SIGMA = 3, 5e-4
"""Minimum number of keypoints, and tolerance, for recognizing sigmas of one over their number."""


def object_keypoint_similarity(
    keypoints1: ArrayLike,
    keypoints2: ArrayLike,
    *,
    area: ArrayLike,
    sigmas: ArrayLike,
    boxes: ArrayLike | None = None,
) -> FloatArray:
    """Return the OKS of each detection with each ground truth.

    Parameters
    ----------
    keypoints1 : array_like, [N, J, 3]
        Keypoints of detections.
    keypoints2 : array_like, [M, J, 3]
        Keypoints of ground truths.
    area : array_like, [M]
        Areas of the ground truths in square pixels.
    sigmas : array_like, [J]
        For COCO, ``load_protocol("coco-keypoints").keypoints.spread``.
    boxes : array_like, [M, 4], optional
        Boxes ``x1, y1, x2, y2`` of the ground truths; needed if one lacks labeled keypoints.

    Returns
    -------
    ndarray of float64, [N, M]

    Raises
    ------
    InputError
        If shapes differ, a sigma is not positive, or boxes are needed and missing.

    Examples
    --------
    >>> one = [[[10, 10, 2], [20, 10, 2]]]
    >>> moved = [[[10, 10, 1], [20, 14, 1]]]
    >>> object_keypoint_similarity(moved, one, area=[400], sigmas=[0.05, 0.05]).round(3).tolist()
    [[0.568]]
    """
    detections, truth = (
        keypoint_array(keypoints1, name="keypoints1"),
        keypoint_array(keypoints2, name="keypoints2"),
    )
    # Check for one sigma per keypoint, and one area per ground truth.
    spread = checks.float_array(sigmas, name="sigmas")
    if len(spread) and not spread.min() > 0:
        raise InputError("sigmas", "be above 0", got=f"{spread.min():g}")
    areas = checks.float_array(area, name="area")
    checks.same_length(len(truth), of="keypoints2", area=areas)
    # Check for one keypoint per sigma.
    for name, array in (("keypoints1", detections), ("keypoints2", truth)):
        if array.shape[1] != len(spread) and len(array):
            rule = f"have as many keypoints as sigmas ({len(spread)})"
            raise InputError(name, rule, got=array.shape[1])
    # Boxes are used only for ground truths without labeled keypoints.
    if boxes is None:
        if len(truth) and not (truth[:, :, 2] > 0).any(axis=1).all():
            rule = "be passed if a ground truth lacks labeled keypoints"
            raise InputError("boxes", rule, got="none")
        corners = np.zeros((len(truth), 4))
    else:
        corners = checks.float_array(boxes, name="boxes", columns=4)
        checks.same_length(len(truth), of="keypoints2", boxes=corners)
    if not len(detections) or not len(truth):
        return np.zeros((len(detections), len(truth)))
    # Measure each detection with each ground truth, as a list of pairs.
    sizes = corners[:, 2:] - corners[:, :2]
    pairs = np.indices((len(detections), len(truth))).reshape(2, -1)
    similarity = similarity_of_pairs(detections, truth, pairs[0], pairs[1], areas, corners, sizes, spread)
    return similarity.reshape(len(detections), len(truth))


def similarity_of_pairs(
    detections: FloatArray,
    truth: FloatArray,
    pair_detection: NDArray[np.intp],
    pair_truth: NDArray[np.intp],
    area: FloatArray,
    corners: FloatArray,
    sizes: FloatArray,
    sigmas: FloatArray,
    lowest: float = 0.0,
) -> FloatArray:
    """Return the OKS of pairs [P] of keypoints [N, J, 3] and [M, J, 3]; other arrays describe ground truths.

    Values below ``lowest`` may be 0.
    """
    # Count the labeled keypoints of each ground truth [M] and pair [P], in the smallest integer type.
    # Variances and scale are pycocotools' ``(sigmas * 2) ** 2`` and ``area + spacing(1)``.
    joints = truth.shape[1]
    labeled = truth[:, :, 2] > 0  # [M,J]
    counts = labeled.sum(axis=1)  # [M]
    of_pairs = counts.astype(np.min_scalar_type(joints)).take(pair_truth)  # [P]
    variances = (sigmas * 2) ** 2  # [J]
    scale = area + np.spacing(1)  # [M]
    # Gather whole rows [P, 3 J] once; coordinates are strided views.
    numbers = detections.reshape(len(detections), 3 * joints).take(pair_detection, axis=0)
    without = np.flatnonzero(of_pairs == 0)
    of_boxes, truths = numbers.take(without, axis=0), pair_truth.take(without)
    # Compute coordinate differences, [P, J] per axis; without labeled keypoints, distances to the doubled
    # box.
    distances = []
    for axis in (0, 1):
        distance = np.ascontiguousarray(truth[:, :, axis]).take(pair_truth, axis=0)
        with np.errstate(all="ignore"):  # unlabeled keypoints may have any coordinates
            np.subtract(numbers[:, axis::3], distance, out=distance)
        if len(without):
            distance[without] = _outside(of_boxes[:, axis::3], corners[truths, axis], sizes[truths, axis])
        distances.append(distance)
    # Keep the order of pycocotools' expression: ``(dx**2 + dy**2) / variances / scale / 2``. Halving and
    # negation are exact, so one product does both.
    error, dy = distances
    with np.errstate(all="ignore"):  # negative areas give infinity, as in pycocotools
        error *= error
        dy *= dy
        error += dy
        error /= variances
        error /= scale.take(pair_truth)[:, None]
        error *= -0.5
    # Skip ``exp`` for pairs that cannot reach ``lowest``.
    similarity = np.zeros(len(pair_detection))
    summed = labeled | (counts == 0)[:, None]  # [M,J]
    kept = _near_enough(error, summed.take(pair_truth, axis=0), lowest)
    with np.errstate(all="ignore"):
        error = error.take(kept, axis=0)
        np.exp(error, out=error)
    # NumPy's summation order depends on the length, so sum pairs with equal numbers of labeled keypoints
    # together to match a sum over exactly these, to the last bit.
    of_kept = of_pairs.take(kept)
    order = np.argsort(of_kept, kind="stable")
    ends = np.cumsum(np.bincount(of_kept)).tolist()
    for count, (start, end) in enumerate(itertools.pairwise([0, *ends])):
        if start == end:
            continue
        # Sum the pairs with ``count`` keypoints, and divide by their number. Pairs without labeled keypoints
        # sum all J.
        here = order[start:end]
        pairs, of_these = kept.take(here), error.take(here, axis=0)
        if 0 < count < joints:
            of_these = of_these[labeled.take(pair_truth.take(pairs), axis=0)].reshape(-1, count)
        similarity[pairs] = of_these.sum(axis=1) / of_these.shape[1]
    return similarity


def _near_enough(exponents: FloatArray, summed: BoolArray, lowest: float) -> NDArray[np.intp]:
    """Find the pairs whose mean of ``exp`` over the summed keypoints [P, J] may reach ``lowest``.

    A keypoint adds at most 1, and a distant one is lost in rounding.
    """
    if lowest <= 0:
        return np.arange(len(exponents))
    # Count near keypoints in the smallest integer type. The mean is at most near / all, up to rounding.
    near = exponents > DISTANT
    near &= summed
    smallest = np.min_scalar_type(exponents.shape[1])
    counts = near.sum(axis=1, dtype=smallest), summed.sum(axis=1, dtype=smallest)
    return np.flatnonzero(counts[0] > counts[1] * lowest - 1e-6)


def _outside(values: FloatArray, start: FloatArray, size: FloatArray) -> FloatArray:
    """Return the distance of coordinates [n, J] from the doubled box, 0 inside."""
    low, high = start - size, start + size * 2
    below, above = low[:, None] - values, values - high[:, None]
    np.maximum(0, below, out=below)
    below += np.maximum(0, above, out=above)
    return below


class KeypointSimilarity(Similarity):
    """Object keypoint similarity."""

    column = "keypoints"

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.sigmas = protocol.keypoints.spread
        self.unlabeled_is_zero = protocol.keypoints.unlabeled_similarity == "zero"

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that every row has one keypoint per sigma."""
        self._check(ground_truth, "ground truth")
        self._check(detections, "detections")
        return detections

    def _check(self, table: BoxTable, name: str) -> None:
        keypoints, count = table.keypoints, len(self.sigmas)
        if not len(table) or (keypoints is not None and keypoints.shape[1] == count):
            return
        raise InputError(
            name,
            f"have {count} keypoints in every row, one for each sigma",
            got="none" if keypoints is None else f"{keypoints.shape[1]}",
            place=table.source,
            cause="" if keypoints is None else "other sigmas?",
        )

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Compare every detection with every ground truth of its group, chunk by chunk."""
        keypoints, truths = detections.keypoints, ground_truth.keypoints
        if keypoints is None or truths is None:  # one table is empty
            return PairValues.none()

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], chunk: slice) -> FloatArray:
            # Gather only the ground truths of the chunk; detections are gathered per pair.
            here = comparison.truth_rows[chunk]
            similarity = similarity_of_pairs(
                keypoints,
                truths[here],
                comparison.rows[detection],
                truth - chunk.start,
                ground_truth.area[here],
                ground_truth.boxes[here],
                ground_truth.sizes[here],
                self.sigmas,
                comparison.lowest,
            )
            # Some protocols use 0 for ground truths without labeled keypoints, instead of the distance to the
            # box.
            if self.unlabeled_is_zero:
                labeled = np.count_nonzero(truths[here, :, 2] > 0, axis=1)
                similarity[labeled[truth - chunk.start] == 0] = 0.0
            return similarity

        return in_chunks(comparison, value, size=CHUNK_PAIRS // len(self.sigmas))


def warn_of_even_sigmas(protocol: Protocol) -> None:
    """Warn if all sigmas are one over the number of keypoints, the default of ultralytics."""
    sigmas = protocol.keypoints.sigmas
    if len(sigmas) < LEAST_SIGMAS or len({*sigmas}) > 1:
        return
    if abs(sigmas[0] - 1 / len(sigmas)) < ROUNDED_SIGMA:
        warn_user(
            f"{protocol.name}: all {len(sigmas)} sigmas are 1/{len(sigmas)}, the default of ultralytics "
            "without kpt_oks_sigmas. Results are not comparable with those that use the sigmas of the "
            "skeleton. Estimate sigmas with diagnostics.keypoint_sigmas."
        )
