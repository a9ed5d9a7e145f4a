"""Overlaps, areas and boxes of instance masks.

Goal
----
The values that pycocotools computes from masks, bit for bit, in NumPy: see
:mod:`~boxscore.extensions.masks.mask_pairs`.

Conventions
-----------
- A mask may be polygons, an RLE or a binary array: see :mod:`boxscore.extensions.masks.column`.
- Overlaps are as for boxes: IoU, and intersection over the first mask's area where the second is a crowd.
  Empty masks overlap nothing: 0, never NaN.
- Masks are compared only with masks of the same size. pycocotools returns -1 there and counts a
  miss; here it is an error.

References
----------
pycocotools 2.0.11, ``maskApi.c``: ``rleArea``, ``rleToBbox``, ``rleIou``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.checks import Place
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore._utils.text import counted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.masks.column import MaskLike, Masks, box_only, masks_of, with_masks
from boxscore.extensions.masks.mask_pairs import (
    MaskBlock,
    blocks,
    overlaps_of_pairs,
    pairs_of_runs,
    shared_out,
)
from boxscore.similarity.box import BoxSimilarity
from boxscore.similarity.measures import MeasureOf, shared_between
from boxscore.similarity.pairs import Comparison, Overlap, PairValues, over
from boxscore.similarity.registry import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

MasksLike = Masks | Sequence[MaskLike] | NDArray[Any]
"""A column of masks, a sequence of them, or a binary array [N, H, W]."""


def as_masks(masks: MasksLike) -> Masks:
    """Return masks as a column."""
    return masks if isinstance(masks, Masks) else Masks(masks)


def mask_area(masks: MasksLike) -> FloatArray:
    """Count the pixels of each mask.

    Parameters
    ----------
    masks : Masks, sequence of RLEs, or array_like of bool, [N, H, W]

    Returns
    -------
    ndarray of float64, [N]
    """
    return as_masks(masks).area


def mask_to_box(masks: MasksLike) -> FloatArray:
    """Box ``x1, y1, x2, y2`` around the pixels of each mask; ``x2`` and ``y2`` are past the last pixel.

    Parameters as in :func:`mask_area`.

    Returns
    -------
    ndarray of float64, [N, 4]
    """
    return as_masks(masks).boxes


def mask_iou(
    masks1: MasksLike,
    masks2: MasksLike,
) -> FloatArray:
    """Intersection over union of each mask with each mask.

    Parameters
    ----------
    masks1, masks2 : Masks, sequence of RLEs, or array_like of bool, [N, H, W] and [M, H, W]

    Returns
    -------
    ndarray of float64, [N, M]

    Raises
    ------
    InputError
        When the masks are not all of one size.

    Examples
    --------
    >>> left, top = np.zeros((2, 4, 4), dtype=bool)
    >>> left[:, :2] = top[:2] = True
    >>> mask_iou([left], [left, top]).round(3).tolist()
    [[1.0, 0.333]]
    """
    return _overlaps(masks1, masks2, crowd=False)


def mask_iof(
    masks1: MasksLike,
    masks2: MasksLike,
) -> FloatArray:
    """Intersection over the first mask's area (foreground), for crowd regions in ``masks2``.

    Parameters, result and errors as in :func:`mask_iou`.
    """
    return _overlaps(masks1, masks2, crowd=True)


def all_pairs(
    first: Masks, second: Masks, overlaps: Callable[[MaskBlock, Positions, Positions], FloatArray]
) -> FloatArray:
    """Measure each mask with each mask, [N, M], block by block; ``overlaps`` gets positions of pairs."""
    shape = len(first), len(second)
    values = np.zeros(shape)
    if not all(shape):
        return values
    one_size(first, second)
    # Every block decodes one batch of each side, so memory holds the masks of two batches.
    for block in blocks(first, second):
        i, j = np.indices((len(block.first), len(block.second))).reshape(2, -1)
        values[np.ix_(block.first, block.second)] = overlaps(block, i, j).reshape(len(block.first), -1)
    return values


def _overlaps(masks1: MasksLike, masks2: MasksLike, *, crowd: bool) -> FloatArray:
    return all_pairs(
        as_masks(masks1),
        as_masks(masks2),
        lambda block, i, j: block.overlaps(i, j, np.full(len(block.second), crowd)),
    )


def one_size(first: Masks, second: Masks) -> None:
    """Check that two columns of masks, neither empty, are all of one size."""
    same_size(first.sizes, second.sizes[:1])
    same_size(second.sizes, first.sizes[:1])


def same_size(sizes: NDArray[np.int64], others: NDArray[np.int64], *, place: Place = "row {}".format) -> None:
    """Check that masks which are compared are of one size: height and width, [P, 2], or [1, 2] for all."""
    different = np.flatnonzero((sizes != others).any(axis=1))
    if len(different):
        # Name the first mask of another size, and the likely mistake.
        row = int(different[0])
        height, width = np.broadcast_to(others, sizes.shape)[row].tolist()
        swapped = sizes[row].tolist() == [width, height]
        raise InputError(
            "a mask",
            f"have the size of the mask it is compared with, {height} high and {width} wide",
            got=sizes[row].tolist(),
            place=place(row),
            cause="are height and width swapped?" if swapped else "is it of the resized image?",
        )


class MaskSimilarity(Similarity):
    """IoU of instance masks.

    The box of a detection without a mask is compared instead, as in pycocotools. Only masks that reach a
    common column, and whose areas allow the lowest threshold, are compared: with ``a1 <= a2`` the IoU is at
    most ``a1 / a2``; in floating point too, since all are whole numbers.
    """

    column = "masks"
    forks_from = 0
    shares_pairs = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.compare = (
            MaskBlock.overlaps if protocol.masks.precision == "double" else MaskBlock.single_overlaps
        )
        self._by_box = BoxSimilarity(protocol) if protocol.masks_may_lack else None

    def check_units(self, ground_truth: GroundTruth) -> None:
        """Refuse fractions of images of unknown size, unless objects may lack masks: all others are RLEs."""
        if self._by_box is None:
            super().check_units(ground_truth)

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that every ground truth has a mask; fill in boxes where detections have none."""
        # Where objects may lack masks, their boxes are compared; fractions of unknown sizes cannot become
        # masks.
        masks = masks_of(ground_truth)
        if self._by_box is not None:
            lacking = detections.masks is None or bool(detections.masks.missing.any())
            if ground_truth.units == "fractions" and lacking and len(detections):
                raise InputError(
                    "detections",
                    "have a mask in every row where the sizes of images are unknown",
                    got="none",
                    place=detections.source,
                    cause="are these boxes? Use a protocol that compares boxes",
                )
        # Everywhere else, every ground truth needs a mask.
        elif len(masks) < len(ground_truth) or masks.missing.any():
            row = int(np.argmax(masks.missing)) if len(masks) else 0
            raise InputError(
                "ground truth",
                "have a mask in every row",
                got="none",
                place=f"row {row} of {ground_truth.source}" if not len(masks) else masks.place(row),
                cause="is it annotated with masks?",
            )
        # A detection without a mask gets its box as one, as in pycocotools.
        return with_masks(detections)

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Describe where boxes are compared, or measured by area ranges, in place of masks."""
        source, masks = detections.source, detections.masks
        missing = len(detections) if masks is None else int(masks.missing.sum())
        # detectron2 and others drop the boxes first, so their small, medium and large differ.
        by_boxes = self.area_rule == "box_or_mask" and detections.boxes_given
        if missing:
            return (
                f"{source}: {counted(missing, 'detection')} without a mask; using the boxes as masks, as "
                "in pycocotools."
            )
        if by_boxes and len(detections) and self.has_area_ranges:
            return (
                f"{source}: the results contain boxes as well as masks, so the box area decides which "
                "detections are small, medium or large, as in pycocotools. To use mask areas, set "
                '--detection-area mask (ignore.detection_area = "mask" in the protocol), or remove the '
                "boxes from the results."
            )
        return ""

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs of masks that overlap enough; of boxes, where a ground truth has no mask."""
        if self._by_box is None:
            return self._of_masks(ground_truth, detections, comparison)
        # Split the ground truths: masks with masks, and boxes where the ground truth has none. Each part is a
        # comparison of its own.
        lacking = box_only(ground_truth)[comparison.truth_rows]
        parts = []
        for of_pairs, chosen in ((self._of_masks, ~lacking), (self._by_box.of_pairs, lacking)):
            truths = np.flatnonzero(chosen & (comparison.counts > 0))
            some, rows = _compared_with(comparison, truths)
            pairs = of_pairs(ground_truth, detections, some)
            parts.append(PairValues(truths[pairs.truth], rows[pairs.detection], pairs.value))
        # Merge both parts in the order of the ground truths; the sort is stable, so the pairs of each keep
        # theirs.
        order = np.argsort(np.concatenate([part.truth for part in parts]), kind="stable")
        return PairValues(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))

    def _of_masks(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        # Leave out ground truths without detections: their masks are never decoded.
        near = np.flatnonzero(comparison.counts)
        if not len(near):
            return PairValues(near, near, np.empty(0))
        flags = comparison.by_foreground
        by_foreground = np.zeros(len(near), bool) if flags is None else flags[near]
        some = comparison._replace(
            truth_rows=comparison.truth_rows[near],
            starts=comparison.starts[near],
            counts=comparison.counts[near],
            by_foreground=by_foreground,
        )
        # Select the masks [g] and [d] without copying their content.
        truths = masks_of(ground_truth)[some.truth_rows]
        masks = masks_of(detections)[some.rows]
        # Ground truths with the same detections are a group, one image and class. Compare each size with that
        # of the first of its group: no check runs over pairs.
        group = np.cumsum(np.diff(some.starts, prepend=-1) != 0) - 1  # [g], truths with the same detections
        first = np.flatnonzero(np.diff(group, prepend=-1))
        same_size(truths.sizes, truths.sizes[first][group], place=truths.place)
        same_size(masks.sizes, truths.sizes[np.repeat(first, some.counts[first])], place=masks.place)
        # Several workers also measure the detections that are compared with nothing: area ranges need their
        # areas.
        rest = None
        if some.workers > 1 and self.measures_masks(detections) and detections.masks is not None:
            apart = np.ones(len(detections), dtype=bool)
            apart[some.rows] = False
            rest = masks_of(detections)[np.flatnonzero(apart)]
        pairs = shared_out(masks, truths, some, rest, self.measured)
        return pairs._replace(truth=near[pairs.truth])

    def measured(self, masks: Masks, truths: Masks, comparison: Comparison) -> PairValues:
        """Measure every pair that may agree enough, and return those that do."""
        return pairs_of_runs(masks, truths, comparison, self.compare)


def _compared_with(comparison: Comparison, truths: NDArray[np.intp]) -> tuple[Comparison, NDArray[np.intp]]:
    """Return the comparison of some ground truths alone, and which of the detections it has left."""
    # The chosen ground truths keep their runs of detections. The runs are copied one after the other, each
    # once for all ground truths that share it.
    starts, counts = comparison.starts[truths], comparison.counts[truths]
    first = run_starts(starts)
    rows = ragged_ranges(starts[first], counts[first])
    moved = np.cumsum(counts[first]) - counts[first]
    flags = comparison.by_foreground
    some = comparison._replace(
        truth_rows=comparison.truth_rows[truths],
        rows=comparison.rows[rows],
        starts=np.repeat(moved, np.diff(np.append(first, len(truths)))),
        counts=counts,
        by_foreground=None if flags is None else flags[truths],
    )
    return some, rows


def mask_measure(
    masks: Masks, group: NDArray[np.int64] | None, *, overlap: Overlap, lowest: float = 0.0
) -> MeasureOf:
    """Measure of some rows of a column of masks; overlaps of no more than ``lowest`` may read 0."""
    of = np.zeros(len(masks), dtype=np.int64) if group is None else group
    first = np.unique(of, return_index=True, return_inverse=True)[1:] if len(of) else (of, of)
    same_size(masks.sizes, masks.sizes[first[0][first[1]]], place=masks.place)
    return lambda rows: _MaskMeasure(masks[rows], overlap, lowest)


class _MaskMeasure:
    """Overlap of masks; only pairs that may exceed ``lowest`` are compared pixel by pixel."""

    offset = 0.0
    at_most_iou = False  # masks may agree where the boxes around them do not
    identity: tuple[FloatArray, ...] = ()

    def __init__(self, masks: Masks, kind: Overlap, lowest: float) -> None:
        self._masks, self._kind, self._lowest = masks, kind, lowest
        self.x1, self.y1, self.x2, self.y2 = np.ascontiguousarray(masks.boxes.T)
        self._area = masks.area

    def between(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> FloatArray:
        """Overlap of each pair, [P]."""
        area1, area2 = self._area.take(first), self._area.take(second)
        # Bound the shared pixels by the boxes around both masks and by the smaller area, [P]. All are whole
        # numbers, and one division of them rounds monotonically: the bound of the quotient holds to the last
        # bit.
        shared = np.minimum(shared_between(self, first, second), np.minimum(area1, area2))
        swapped = area1 > area2
        denominator = over(shared, area1, area2, self._kind)
        # Decode only the pairs whose bound exceeds the threshold.
        near = np.flatnonzero(shared > 0)
        near = near.take(np.flatnonzero(shared.take(near) / denominator.take(near) > self._lowest))
        first, second, swapped = first.take(near), second.take(near), swapped.take(near)
        if self._kind == "ios":  # the C code divides by the area of the first
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        over_first = np.full(len(self._masks), self._kind == "ios")
        values = np.zeros(len(area1))
        values[near] = overlaps_of_pairs(self._masks, self._masks, first, second, over_first)
        return values
