"""Compute anchor boxes for a data set, and rate how well anchors fit it.

Conventions
-----------
- Sizes are compared as boxes with a common center: the distance is 1 - IoU (YOLOv2, "Dimension clusters").
- Starting points are drawn as in k-means++, weighted by the distance; a seed fixes them. An anchor moves to
  the **median** width and height of its nearest boxes, because a few large boxes would dominate a mean.
- The result is the step with the highest mean IoU, because k-means with this distance does not improve at
  every step.

References
----------
J. Redmon and A. Farhadi, "YOLO9000: Better, Faster, Stronger", CVPR 2017. D. Arthur and S. Vassilvitskii,
"k-means++: The Advantages of Careful Seeding", SODA 2007. The ratio of sides, best possible recall, anchors
per box and fitness are those of YOLOv5's ``utils/autoanchor.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import html_summary, html_table
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError

MOST_ANCHORS = 1000
LARGEST_SEED = 2**128 - 1
LARGEST_IMAGE = 1_000_000

BLOCK = 1 << 14
"""Boxes per comparison, so that their columns fit the CPU cache."""

SAMPLE = 10_000
STARTS = 10
"""Random starts, each run on a sample of the boxes; the best one is refined on all of them."""

MOST_STEPS = 300
PATIENCE = 5
"""Steps without a better mean IoU after which k-means stops."""


@dataclasses.dataclass(frozen=True, eq=False)
class Anchors:
    """Anchors, and how well they fit the boxes of a table.

    Attributes
    ----------
    sizes : ndarray of float64, [K, 2]
        Widths and heights, sorted by area.
    boxes : ndarray of int64, [K]
        Number of boxes nearest to each anchor.
    mean_best_iou : float
        Mean over boxes of the IoU with the nearest anchor, both with a common center.
    recall : dict of float to float
        Share of boxes whose best IoU is at least the threshold.
    best_possible_recall : float
        Share of boxes for which some anchor has both sides within ``ratio`` times those of the box.
    anchors_per_box : float
        Mean number of such anchors per box.
    fitness : float
        Mean over boxes of the best ratio of sides (the smaller of width and height; at most 1); a box counts
        0 if its ratio is not within ``ratio``.
    ratio : float
    left_out : dict of str to int
        Boxes that were not used: ``crowd`` and ``ignore`` objects, and boxes ``without area``.
    image_size : float, tuple of float, or None
        Size of the resized images.
    units : {"pixels", "fractions"}
        Units of ``sizes``.
    source : str
    """

    sizes: FloatArray
    boxes: NDArray[np.int64]
    mean_best_iou: float
    recall: dict[float, float]
    best_possible_recall: float
    anchors_per_box: float
    fitness: float
    ratio: float
    left_out: dict[str, int]
    image_size: float | tuple[float, float] | None
    units: str
    source: str

    @property
    def table(self) -> dict[str, list[Any]]:
        """Columns, a row per anchor: ``anchor``, ``width``, ``height``, ``boxes``, ``share`` of the boxes."""
        return {
            "anchor": list(range(1, len(self.sizes) + 1)),
            "width": self.sizes[:, 0].tolist(),
            "height": self.sizes[:, 1].tolist(),
            "boxes": self.boxes.tolist(),
            "share": (self.boxes / self.boxes.sum()).tolist(),
        }

    @property
    def fit(self) -> dict[str, list[Any]]:
        """Columns ``quantity`` and ``value``: how well the anchors fit."""
        values = {
            "mean best IoU": self.mean_best_iou,
            **{f"recall at IoU {threshold:g}": share for threshold, share in self.recall.items()},
            f"best possible recall, ratio {self.ratio:g}": self.best_possible_recall,
            f"anchors per box, ratio {self.ratio:g}": self.anchors_per_box,
            f"fitness, ratio {self.ratio:g}": self.fitness,
        }
        return {"quantity": [*values], "value": [*values.values()]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        # A tuple is not JSON; everything else is plain already.
        size = self.image_size
        return {
            "source": self.source,
            "units": self.units,
            "image_size": list(size) if isinstance(size, tuple) else size,
            "anchors": [
                {"width": width, "height": height, "boxes": boxes}
                for (width, height), boxes in zip(self.sizes.tolist(), self.boxes.tolist(), strict=True)
            ],
            "boxes": int(self.boxes.sum()),
            "left_out": self.left_out,
            "mean_best_iou": self.mean_best_iou,
            "recall": [{"iou": threshold, "recall": share} for threshold, share in self.recall.items()],
            "ratio": self.ratio,
            "best_possible_recall": self.best_possible_recall,
            "anchors_per_box": self.anchors_per_box,
            "fitness": self.fitness,
        }

    def _repr_html_(self) -> str:
        numbers = {"mean best IoU": self.mean_best_iou, "best possible recall": self.best_possible_recall}
        inner = html_table(self.table) + html_table(self.fit)
        return html_summary(f"Anchors, in {self.units}", numbers, self.source, inner)


def table_anchors(
    table: GroundTruth | Detections,
    anchors: int | ArrayLike,
    *,
    image_size: float | tuple[float, float] | None = None,
    seed: int = 0,
    iou_thresholds: Sequence[float] = (0.5, 0.75, 0.9),
    ratio: float = 4.0,
) -> Anchors:
    """Compute anchors for the boxes of a table by k-means, or rate given anchors.

    Parameters
    ----------
    table : GroundTruth or Detections
        ``crowd`` and ``ignore`` objects are left out, and boxes without area.
    anchors : int or array_like, [K, 2]
        Number of anchors to compute, or widths and heights to rate, in the units of the result.
    image_size : float, or (width, height), optional
        Image size in training, in pixels: one number is the longer side, two are both sides, ignoring the
        aspect ratio. By default boxes keep the sizes of the table.
    seed : int, default 0
        Seed of k-means; the same seed gives the same anchors.
    iou_thresholds : sequence of float, default (0.5, 0.75, 0.9)
        IoU thresholds of ``recall``, in (0, 1].
    ratio : float, default 4.0
        Best possible recall counts a box if each side is at most this many times longer or shorter than the
        anchor's.

    Returns
    -------
    Anchors

    Raises
    ------
    InputError
        When there are fewer different sizes of boxes than anchors, when an anchor is not positive, or when
        ``image_size`` is given and the size of an image with boxes is not known.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [0, 0, 10, 10], [0, 0, 30, 60]]
    >>> truth = GroundTruth.from_arrays([1, 1, 1], ["cat", "cat", "dog"], boxes)
    >>> fitted = table_anchors(truth, 2)
    >>> fitted.sizes.tolist(), fitted.boxes.tolist(), fitted.mean_best_iou
    ([[10.0, 10.0], [30.0, 60.0]], [2, 1], 1.0)
    """
    # Check the options, then take the resized sizes [N, 2] of the boxes that count.
    thresholds = [
        checks.number_between(value, 0, 1, name="iou_thresholds", open_low=True) for value in iou_thresholds
    ]
    ratio = checks.number_between(ratio, 1, 1000, name="ratio", open_low=True)
    seed = checks.whole_number(seed, 0, high=LARGEST_SEED, name="seed")
    sizes, left_out = _sizes(table, image_size)
    # Cluster the sizes, or rate the anchors that are given.
    if isinstance(anchors, (int, np.integer)):
        number = checks.whole_number(anchors, 1, high=MOST_ANCHORS, name="anchors")
        chosen = _cluster(sizes, number, np.random.default_rng(seed), source=table.source)
    else:
        chosen = _check_anchors(anchors)
        if not len(sizes):
            raise InputError("a table", "have boxes with area", got="none", place=table.source)
    # Sort the anchors by area and width, so that equal results list them alike.
    chosen = chosen[np.lexsort((chosen[:, 0], chosen.prod(axis=1)))]
    # Rate them: the nearest anchor of each box by IoU of centered boxes, and the best ratio of sides, [N].
    nearest, best = _nearest(sizes, chosen)
    ratios, within = _ratios(sizes, chosen, ratio)
    return Anchors(
        sizes=chosen,
        boxes=np.bincount(nearest, minlength=len(chosen)),
        mean_best_iou=float(best.mean()),
        recall={threshold: float((best >= threshold).mean()) for threshold in thresholds},
        best_possible_recall=float((ratios > 1 / ratio).mean()),
        anchors_per_box=float(within.mean()),
        fitness=float(np.where(ratios > 1 / ratio, ratios, 0).mean()),
        ratio=ratio,
        left_out=left_out,
        image_size=image_size,
        units=table.units if image_size is None else "pixels",
        source=table.source,
    )


def _check_anchors(anchors: ArrayLike) -> FloatArray:
    sizes = checks.float_array(anchors, name="anchors", columns=2)
    checks.finite(sizes, name="anchors")
    if not 1 <= len(sizes) <= MOST_ANCHORS:
        raise InputError("anchors", f"be 1 to {MOST_ANCHORS:,}", got=str(len(sizes)))
    if not (sizes.prod(axis=1) > 0).all() or (sizes < 0).any():
        row = int(np.argmin((sizes > 0).all(axis=1)))
        raise InputError("anchors", "have width and height > 0", got=sizes[row].tolist(), place=f"row {row}")
    return sizes


def _sizes(
    table: GroundTruth | Detections, image_size: float | tuple[float, float] | None
) -> tuple[FloatArray, dict[str, int]]:
    """Return the resized sizes of boxes that count, and the number of boxes that do not."""
    flags: dict[str, NDArray[np.bool_]] = {}
    if isinstance(table, GroundTruth):
        flags = {"crowd": table.crowd, "ignore": table.ignore & ~table.crowd}
    used = ~np.logical_or.reduce([np.zeros(len(table), dtype=bool), *flags.values()])
    sizes = table.sizes * _scales(table, image_size, used)
    has_area = sizes.prod(axis=1) > 0
    flags["without area"] = used & ~has_area
    left_out = {name: int(flag.sum()) for name, flag in flags.items() if flag.any()}
    return sizes[used & has_area], left_out


def _scales(
    table: GroundTruth | Detections,
    image_size: float | tuple[float, float] | None,
    used: NDArray[np.bool_],
) -> FloatArray:
    """Return the scale factors of each box's width and height, [N, 2]."""
    if image_size is None:
        return np.ones((len(table), 2))
    # One number is the longer side of the resized image, two numbers are both sides.
    sides = image_size if isinstance(image_size, (tuple, list)) else (image_size,)
    if not 1 <= len(sides) <= 2:
        raise InputError("image_size", "be one number, or width and height", got=repr(image_size))
    resized = [
        checks.number_between(side, 0, LARGEST_IMAGE, name="image_size", open_low=True) for side in sides
    ]
    # Fractions of images of unknown size become pixels only if both sides are given.
    images = table.images.sizes
    if table.units == "fractions":  # of images whose sizes are not known
        if len(resized) == 1:
            rule = "be width and height where boxes are fractions of images of unknown size"
            raise InputError("image_size", rule, got=f"{resized[0]:g}", cause=checks.GIVE_SIZES)
        return np.broadcast_to(np.array(resized), (len(table), 2))
    # Otherwise every image with a box that counts must have a size.
    known = np.logical_and(images[:, 0] > 0, images[:, 1] > 0)
    unknown = ~known[table.image] & used
    if unknown.any():
        (first,) = table.images.ids[table.image[[np.argmax(unknown)]]].tolist()
        raise InputError(
            "an image",
            "have a known size where image_size is given",
            got=repr(first),
            place=table.source,
            cause=checks.GIVE_SIZES,
        )
    # Divide once per image, and read the scale of each box [N, 2] by its image.
    scales = np.array(resized) / (images if len(resized) == 2 else images.max(axis=1, keepdims=True))
    return np.broadcast_to(scales[table.image], (len(table), 2))


# ---------------------------------------------------------------- k-means


def _cluster(sizes: FloatArray, number: int, random: np.random.Generator, *, source: str) -> FloatArray:
    """Return the anchors of the best of several starts, [number, 2]."""
    # Cluster a sample of many boxes; it must hold enough different sizes, or all boxes are used.
    sample = sizes
    if len(sizes) > SAMPLE:
        sample = sizes[np.sort(np.argsort(random.random(len(sizes)))[:SAMPLE])]
    if _count_different(sample) < number:
        sample = sizes
        if _count_different(sizes) < number:
            rule = f"be at most the number of different sizes of boxes ({_count_different(sizes):,})"
            raise InputError("anchors", rule, got=str(number), place=source)
    # Keep the best of several starts. Anchors of a sample are refined on all boxes.
    results = [_refine(sample, _draw_initial(sample, number, random)) for _ in range(STARTS)]
    anchors, _ = max(results, key=lambda result: result[1])
    return anchors if sample is sizes else _refine(sizes, anchors)[0]


def _count_different(sizes: FloatArray) -> int:
    """Count different sizes; a width and a height are one number, which can be sorted."""
    return len(np.unique(np.ascontiguousarray(sizes).view(np.complex128)))


def _draw_initial(sizes: FloatArray, number: int, random: np.random.Generator) -> FloatArray:
    """Draw initial boxes, each with a probability proportional to its distance from the previous ones."""
    rows = [int(random.random() * len(sizes))]
    best = np.zeros(len(sizes))
    while len(rows) < number:
        np.maximum(best, _nearest(sizes, sizes[rows[-1:]])[1], out=best)
        total = np.cumsum(1 - best)
        row = np.searchsorted(total, random.random() * total[-1], side="right")
        rows.append(min(int(row), len(sizes) - 1))  # nearly equal sizes have distance 0
    return sizes[rows]


def _refine(sizes: FloatArray, anchors: FloatArray) -> tuple[FloatArray, float]:
    """Move anchors to the medians of their boxes; return the best anchors and their mean IoU."""
    best_anchors, best_mean, since = anchors, -1.0, 0
    before: NDArray[np.uint16] | None = None
    # Stop when no box changes its anchor, or when the mean IoU has not improved for some steps; medians can
    # make it fall.
    for _ in range(MOST_STEPS):
        nearest, best = _nearest(sizes, anchors)
        mean = float(best.mean())
        since = 0 if mean > best_mean else since + 1
        if mean > best_mean:
            best_anchors, best_mean = anchors, mean
        if since == PATIENCE or (before is not None and np.array_equal(nearest, before)):
            break
        before = nearest
        anchors = _medians(sizes, anchors, nearest, best)
    return best_anchors, best_mean


def _medians(
    sizes: FloatArray, anchors: FloatArray, nearest: NDArray[np.uint16], best: FloatArray
) -> FloatArray:
    """Return the median size of each anchor's boxes; an unused anchor moves to the box of lowest IoU."""
    order = np.argsort(nearest, kind="stable")
    ends = np.cumsum(np.bincount(nearest, minlength=len(anchors)))[:-1]
    moved = np.empty_like(anchors)
    for side in (0, 1):
        groups = np.split(sizes[order, side], ends)
        moved[:, side] = [np.median(group) if len(group) else np.nan for group in groups]
    empty = np.isnan(moved[:, 0])
    moved[empty] = sizes[np.argpartition(best, empty.sum())[: empty.sum()]]
    return moved


def _nearest(sizes: FloatArray, anchors: FloatArray) -> tuple[NDArray[np.uint16], FloatArray]:
    """Return the nearest anchor of each box and their IoU, both [N]; ties go to the first anchor."""
    nearest = np.zeros(len(sizes), dtype=np.uint16)  # NumPy sorts 16-bit integers by radix
    best = np.full(len(sizes), -1.0)
    # Compare chunks of boxes with one anchor at a time: the columns fit the cache, and no matrix [N, K] is
    # allocated. A strict comparison keeps the first of equal anchors.
    for first in range(0, len(sizes), BLOCK):
        width, height = np.ascontiguousarray(sizes[first : first + BLOCK].T)
        area = width * height
        row, value = nearest[first : first + BLOCK], best[first : first + BLOCK]
        for index, (anchor_width, anchor_height) in enumerate(anchors.tolist()):
            shared = np.minimum(width, anchor_width) * np.minimum(height, anchor_height)
            iou = shared / (area + anchor_width * anchor_height - shared)
            row[iou > value] = index
            np.maximum(value, iou, out=value)
    return nearest, best


def _ratios(sizes: FloatArray, anchors: FloatArray, ratio: float) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the best ratio of sides, and how many anchors are within ``ratio``, both [N].

    The ratio of two sides is at most 1; a box and an anchor get the smaller one of width and height.
    """
    best, within = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=np.int64)
    for width, height in anchors.tolist():
        sides = np.minimum(sizes, (width, height)) / np.maximum(sizes, (width, height))
        value = sides.min(axis=1)
        within += value > 1 / ratio
        np.maximum(best, value, out=best)
    return best, within
