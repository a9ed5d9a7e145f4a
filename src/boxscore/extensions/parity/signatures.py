"""Recognize what made two results of one model differ, from the numbers alone.

Goal
----
An export, another runtime or another postprocessing changes detections in a way that its mistake determines:
a forgotten padding shifts every box of an image by one vector, a cap takes the lowest scores of full images.

Conventions
-----------
- Every cause is a rule that all, or nearly all, detections of concern obey; the evidence counts them. More
  than one cause may fit; a cause is never proved.
- Geometry is judged on pairs of equal scores where boxes hardly overlap, else on overlapping pairs.
- On square images the padding of a letterbox is 0, so they cannot show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted
from boxscore.data.tables import Detections
from boxscore.extensions.parity.pairing import (
    BLOCK,
    Pairs,
    pair_by_overlap,
    rounded_scores,
    rows_by_image,
    rows_of_keys,
)
from boxscore.similarity.box import box_iou

NEARLY_ALL = 0.95
"""Share of the detections of concern that has to obey a rule."""

PIXEL = 0.02
"""Largest distance in pixels that files round away."""

DUPLICATE_IOU = 0.7
"""Boxes of one class that overlap by more are duplicates that suppression usually removes."""


class Cause(NamedTuple):
    """A cause that fits.

    Attributes
    ----------
    name : str
    text : str
        What to look at.
    obeying, of : int
        Number of detections or images that obey its rule, of how many.
    """

    name: str
    text: str
    obeying: int
    of: int


class Sides(NamedTuple):
    """Both results and their pairs: by overlap in a class, by overlap of two classes, and by equal score."""

    first: Detections
    second: Detections
    same: Pairs
    relabeled: Pairs
    by_score: Pairs

    @property
    def overlap(self) -> bool:
        """Whether at least half of the first result has a pair."""
        return 2 * (len(self.same.first) + len(self.relabeled.first)) >= len(self.first)

    def table(self, side: int) -> Detections:
        """Return the detections of a side, 0 or 1."""
        return self.second if side else self.first

    def left(self, side: int) -> IntArray:
        """Return the rows of a side without a pair."""
        table = self.table(side)
        paired = np.concatenate((self.same[side], self.relabeled[side]))
        return np.setdiff1d(np.arange(len(table)), paired)


def causes(sides: Sides) -> list[Cause]:
    """Return the causes that fit, the most fundamental first; empty if nothing differs or fits."""
    if not len(sides.first) or not len(sides.second):
        return []
    found = [cause for rule in (_images, _image_ids, _classes, _geometry) for cause in rule(sides)]
    if not any(cause.name in ("image ids", "box format", "geometry") for cause in found):
        found += [
            cause for rule in (_score_function, _thresholds, _duplicates, _rounding) for cause in rule(sides)
        ]
    return found or list(_noise(sides))  # noise is what no rule explains


def _images(sides: Sides) -> Iterator[Cause]:
    """Images of one file that the other lacks."""
    for side, name, other in ((0, "A", "B"), (1, "B", "A")):
        one, two = (np.unique(table.image) for table in (sides.table(side), sides.table(1 - side)))
        missing = np.setdiff1d(one, two)
        left = sides.left(side)
        inside = int(np.isin(sides.table(side).image[left], missing).sum())
        if len(missing) and len(np.intersect1d(one, two)) and inside >= NEARLY_ALL * len(left) > 0:
            text = (
                f"{counted(len(missing), 'image')} of {name} {'has' if len(missing) == 1 else 'have'} no "
                f"detection in {other}: were batches or empty results dropped?"
            )
            yield Cause("images missing", text, inside, len(left))


def _image_ids(sides: Sides) -> Iterator[Cause]:
    """Scores of an image that recur under another id."""
    ids = sides.first.images.ids
    if sides.overlap or len(sides.by_score.first) or ids.dtype == object:
        return
    one, two = (
        list(zip(table.category.tolist(), rounded_scores(table), strict=True))
        for table in (sides.first, sides.second)
    )
    where, steps = rows_of_keys(one), Counter[int]()
    for row, key in enumerate(two):
        if (other := where.get(key, -1)) >= 0:
            steps[int(ids[sides.second.image[row]] - ids[sides.first.image[other]])] += 1
    if not steps:
        return
    step, times = steps.most_common(1)[0]
    if step and times >= NEARLY_ALL * steps.total() and 2 * times >= len(sides.first):
        text = (
            f"image ids of B are those of A {step:+d}: ids count from another number, or names sort "
            "otherwise."
        )
        yield Cause("image ids", text, times, len(sides.second))


def _classes(sides: Sides) -> Iterator[Cause]:
    """One mapping of classes for all relabeled pairs."""
    one, two = sides.first.category[sides.relabeled.first], sides.second.category[sides.relabeled.second]
    total = len(one)
    if 10 * total < len(sides.first):
        return
    ids = sides.first.categories.ids
    names = sides.first.categories.labels
    if ids.dtype != object:
        # Boxes under two classes pair by accident, so pair again with the most frequent step undone.
        step = Counter((ids[two] - ids[one]).tolist()).most_common(1)[0][0]
        back = sides.first.categories.rows(ids[sides.second.category] - step)
        undone = len(pair_by_overlap(sides.first, sides.second.replaced(category=back))[0].first)
        if undone >= NEARLY_ALL * len(sides.second):
            text = f"class ids of B are those of A {step:+d}: do both count from the same class?"
            yield Cause("class offset", text, undone, len(sides.second))
            return
    mapping = {row: Counter(two[one == row].tolist()).most_common(1)[0] for row in np.unique(one).tolist()}
    times = sum(count for _, count in mapping.values())
    if times >= NEARLY_ALL * total:
        shown = ", ".join(f"{names[a]} is {names[b]}" for a, (b, _) in list(mapping.items())[:4])
        more = ", ..." if len(mapping) > 4 else ""
        yield Cause(
            "class order",
            f"A class of A is another in B: {shown}{more}. Compare the lists of names.",
            times,
            total,
        )


def _geometry(sides: Sides) -> Iterator[Cause]:
    """Other corners, or one straight line per image and axis from boxes of A to those of B."""
    pairs = sides.same if sides.overlap else sides.by_score
    if 2 * len(pairs.first) < min(len(sides.first), len(sides.second)):
        return
    one, two = sides.first.boxes[pairs.first], sides.second.boxes[pairs.second]
    total = len(one)
    if not sides.overlap:
        for name, expected in (
            ("x and y are exchanged: y1 x1 y2 x2 was written as x1 y1 x2 y2", one[:, [1, 0, 3, 2]]),
            ("corners x1 y1 x2 y2 were written as x y width height", _read_as_sizes(one)),
            ("x y width height was written as corners", _read_as_corners(one)),
            ("centers cx cy w h were written as x y w h", _read_as_centers(one)),
        ):
            obeying = _obeying(two, expected)
            if obeying.sum() >= NEARLY_ALL * total:
                yield Cause("box format", f"B: {name}.", int(obeying.sum()), total)
                return
    if (np.abs(two - one) <= PIXEL).all():
        return
    shift = np.median(two - one, axis=0)
    constant = (np.abs(two - one - shift) <= PIXEL).all(axis=1)
    if constant.sum() >= NEARLY_ALL * total:
        text = (
            f"every box is shifted by {shift[0]:+.4g}, {shift[1]:+.4g} pixels: another convention for "
            "corners or centers, or a rounded padding."
        )
        if np.abs(shift).max() > PIXEL:
            yield Cause("shift", text, int(constant.sum()), total)
        return
    yield from _lines(sides, one, two, sides.first.image[pairs.first].astype(np.int64))


def _lines(sides: Sides, one: FloatArray, two: FloatArray, image: IntArray) -> Iterator[Cause]:
    """Fit ``B = slope A + shift`` in each image and axis, and interpret the slopes."""
    images, where = np.unique(image, return_inverse=True)
    slopes, shifts = np.ones((len(images), 2)), np.zeros((len(images), 2))
    fitted = np.zeros(len(one), dtype=bool)
    known = np.zeros(len(images), dtype=bool)
    for number in range(len(images)):
        rows = where == number
        inside = True
        for axis in (0, 1):
            a, b = one[rows][:, [axis, axis + 2]].ravel(), two[rows][:, [axis, axis + 2]].ravel()
            spread = a - a.mean()
            if not (spread**2).sum():
                inside = False
                continue
            slope = float((spread * (b - b.mean())).sum() / (spread**2).sum())
            shift = float(b.mean() - slope * a.mean())
            slopes[number, axis], shifts[number, axis] = slope, shift
            inside &= bool((np.abs(slope * a + shift - b) <= 5 * PIXEL).all())
        fitted[rows], known[number] = inside, inside
    # Two numbers of a box always obey some line, so images with one detection prove nothing.
    counts = np.bincount(where, minlength=len(images))
    if not (known & (counts > 1)).any() or fitted.sum() < NEARLY_ALL * len(one):
        return
    factors, sizes = slopes[known], sides.first.images.sizes[images[known]]
    total = int(fitted.sum())
    square = _square(sizes)
    if np.abs(factors - 1).max() <= 0.002:
        text = (
            "boxes of each image are shifted by one vector: the padding of a letterbox was not subtracted"
            f"{_of_input(sizes, shifts[known], square)}."
        )
        yield Cause("geometry", text, total, len(one))
    elif np.abs(factors[:, 0] / factors[:, 1] - 1).max() <= 0.005:
        side = factors.mean(axis=1) * np.nanmax(sizes, axis=1) if not np.isnan(sizes).any() else np.empty(0)
        text = "boxes are in pixels of the network's input"
        if len(side) and np.ptp(side) <= 0.01 * side.mean():
            text += f" of {np.median(side):.0f} pixels"
        yield Cause(
            "geometry", f"{text}: the letterbox was not undone; --network-input does.", total, len(one)
        )
    else:
        text = (
            "x and y are scaled by different factors: a letterboxed input was read as a stretched one, or "
            "the other way round."
        )
        yield Cause("geometry", text, total, len(one))


def _of_input(sizes: FloatArray, shifts: FloatArray, square: BoolArray) -> str:
    """Say that these are the paddings of a letterbox; empty if sizes are unknown or do not fit."""
    if np.isnan(sizes).any() or square.all():
        return ""
    longest = sizes.max(axis=1, keepdims=True)
    # (S - side gain) / 2 / gain with gain = S / longest does not depend on S.
    padding = (longest - sizes) / 2
    return (
        " (half the difference between the sides of each image)"
        if np.abs(padding - shifts).max() <= 1
        else ""
    )


def _square(sizes: FloatArray) -> BoolArray:
    return np.asarray(sizes[:, 0] == sizes[:, 1])


def _read_as_sizes(corners: FloatArray) -> FloatArray:
    return np.concatenate((corners[:, :2], corners[:, :2] + corners[:, 2:]), axis=1)


def _read_as_corners(corners: FloatArray) -> FloatArray:
    return np.concatenate((corners[:, :2], corners[:, 2:] - corners[:, :2]), axis=1)


def _read_as_centers(corners: FloatArray) -> FloatArray:
    half = (corners[:, 2:] - corners[:, :2]) / 2
    return corners + np.concatenate((half, half), axis=1)


def _obeying(boxes: FloatArray, expected: FloatArray) -> BoolArray:
    return np.asarray((np.abs(boxes - expected) <= PIXEL).all(axis=1))


def _score_function(sides: Sides) -> Iterator[Cause]:
    """One function from scores of A to scores of B, where boxes are the same."""
    pairs = sides.same
    if len(pairs.first) < 3:
        return
    a, b = sides.first.scores[pairs.first], sides.second.scores[pairs.second]
    if np.abs(a - b).max() <= 1e-4:
        return
    if np.ptp(b) == 0 and np.ptp(a) > 0:
        yield Cause("score function", f"all scores of B are {b[0]:g}: AP depends on ties.", len(b), len(b))
        return
    functions: list[tuple[str, NDArray[Any]]] = [
        ("B is the square of A: check whether a score is applied twice", a**2),
        ("B is the square root of A", np.sqrt(np.maximum(a, 0))),
        ("B is the sigmoid of A: a sigmoid was applied twice", 1 / (1 + np.exp(-np.clip(a, -500, 500)))),
        ("B is A in percent", a * 100),
        ("B is a hundredth of A", a / 100),
    ]
    inside = (a > 0) & (a < 1)
    if inside.all():
        functions.append(("B has the logits of A: the sigmoid is missing", np.log(a / (1 - a))))
    for text, expected in functions:
        obeying = np.abs(b - expected) <= np.maximum(1e-4, 1e-4 * np.abs(expected))
        if obeying.sum() >= NEARLY_ALL * len(a):
            yield Cause(
                "score function", f"{text}. AP does not see it, a threshold does.", int(obeying.sum()), len(a)
            )
            return


def _thresholds(sides: Sides) -> Iterator[Cause]:
    """Score threshold, cap, or another NMS threshold in one of the files."""
    for side, name, other in ((0, "B", "A"), (1, "A", "B")):
        left = sides.left(side)
        if not len(left):
            continue
        table, kept = sides.table(side), sides.table(1 - side)
        paired = np.setdiff1d(np.arange(len(table)), left)
        lowest = float(kept.scores.min())
        below = table.scores[left] < lowest
        if below.sum() >= NEARLY_ALL * len(left):
            highest = float(table.scores[left][below].max())
            text = (
                f"{name} has no score below {lowest:.4g}, {other} has: a score threshold in ({highest:.4g}, "
                f"{lowest:.4g}]."
            )
            yield Cause("score threshold", text, int(below.sum()), len(left))
            continue
        counts = np.bincount(kept.image, minlength=len(kept.images))
        most = int(counts.max())
        full = counts[table.image[left]] == most
        floor = np.full(len(kept.images), np.inf)
        np.minimum.at(floor, kept.image, kept.scores)
        capped = full & (table.scores[left] <= floor[table.image[left]] + 1e-9)
        if (counts == most).sum() >= 3 and capped.sum() >= NEARLY_ALL * len(left):
            text = (
                f"{name} has at most {most} detections in an image and lacks the lowest scores of full "
                f"images: a cap of {most}."
            )
            yield Cause("max detections", text, int(capped.sum()), len(left))
            continue
        overlapped = _highest_overlap(table, left)
        among = _highest_overlap(table, paired, paired)
        limit = float(among.max(initial=0.0))
        suppressed = overlapped > limit - 1e-9
        if (
            overlapped.min(initial=1.0) > 0
            and suppressed.sum() >= NEARLY_ALL * len(left)
            and len(left) < len(paired)
        ):
            text = (
                f"what {name} lacks overlaps a better box of its class by at least {overlapped.min():.2f}, "
                f"what it has by at most {limit:.2f}: a lower IoU threshold of NMS."
            )
            yield Cause("NMS threshold", text, int(suppressed.sum()), len(left))


def _highest_overlap(table: Detections, rows: IntArray, among: IntArray | None = None) -> FloatArray:
    """Highest IoU of each row with a better box of its image and class, [K]; among some rows, or all."""
    highest = np.zeros(len(table))
    chosen = np.zeros(len(table), dtype=bool)
    chosen[rows if among is None else among] = True
    wanted = np.zeros(len(table), dtype=bool)
    wanted[rows] = True
    for group in rows_by_image(table):
        asked = group[wanted[group]]
        step = max(BLOCK // max(len(group), 1), 1)
        for start in range(0, len(asked), step):
            part = asked[start : start + step]
            iou = box_iou(table.boxes[part], table.boxes[group])
            better = table.scores[group][None] > table.scores[part][:, None]
            better &= table.category[group][None] == table.category[part][:, None]
            if among is not None:
                better &= chosen[group][None]
            highest[part] = np.where(better, iou, 0.0).max(axis=1)
    return highest[rows]


def _duplicates(sides: Sides) -> Iterator[Cause]:
    """Many boxes in one file only, each overlapping a better one of its class."""
    for side, name in ((0, "A"), (1, "B")):
        left, table, other = sides.left(side), sides.table(side), sides.table(1 - side)
        if not len(left):
            continue
        extra = _highest_overlap(table, left) > DUPLICATE_IOU
        usual = _highest_overlap(other, np.arange(len(other))) > DUPLICATE_IOU
        if 2 * extra.sum() >= len(left) and 2 * usual.sum() <= extra.sum() and extra.sum() >= 3:
            text = (
                f"{counted(int(extra.sum()), 'box')} only in {name} overlap a better box of the class by "
                f"more than {DUPLICATE_IOU}: NMS is missing there, or its threshold is higher. boxscore nms "
                "suppresses them."
            )
            yield Cause("NMS missing", text, int(extra.sum()), len(left))


def _rounding(sides: Sides) -> Iterator[Cause]:
    """Whole pixels, few digits of scores, or half precision in one of the files."""
    pairs = sides.same
    if not len(pairs.first):
        return
    one, two = sides.first.boxes[pairs.first], sides.second.boxes[pairs.second]
    a, b = sides.first.scores[pairs.first], sides.second.scores[pairs.second]
    total = len(a)
    whole = (two == np.round(two)).all(axis=1)
    if whole.all() and not (one == np.round(one)).all():
        down = np.median(two - one) < -0.25
        text = "B has whole pixels: boxes were " + ("cut off by int()." if down else "rounded.")
        yield Cause("whole pixels", text, int(whole.sum()), total)
    for digits in (2, 3, 4) if np.ptp(b) > 0 else ():
        unit = 10.0**digits
        if _multiples(b, unit).all() and not _multiples(a, unit).all():
            yield Cause(
                "digits of scores", f"scores of B have {digits} digits, so some are tied.", total, total
            )
            return
    half = a.astype(np.float16).astype(np.float64)
    obeying = np.abs(half - b) <= 1e-6
    if obeying.sum() >= NEARLY_ALL * total and np.abs(a - b).max() > 1e-6:
        text = "scores of B are those of A in half precision: the output of the network is float16."
        yield Cause("half precision", text, int(obeying.sum()), total)


def _multiples(values: FloatArray, unit: float) -> BoolArray:
    close: BoolArray = np.abs(values * unit - np.round(values * unit)) <= 1e-6 * unit
    return close


def _noise(sides: Sides) -> Iterator[Cause]:
    """Differences without a rule: small ones of lower precision, or those of another input."""
    pairs = sides.same
    if 10 * len(pairs.first) < 9 * max(len(sides.first), len(sides.second)):
        return
    moved = np.abs(sides.second.boxes[pairs.second] - sides.first.boxes[pairs.first])
    a, b = sides.first.scores[pairs.first], sides.second.scores[pairs.second]
    if moved.max() <= PIXEL and np.abs(a - b).max() <= 1e-5:
        return
    spread, pixels = float(np.quantile(np.abs(a - b), 0.95)), float(np.quantile(moved, 0.95))
    slope = float(np.polyfit(a, b, 1)[0]) if np.ptp(a) > 0 else 1.0
    drop = float(np.median(b - a))
    ends = f"95% of scores differ by at most {spread:.2g}, corners by {pixels:.2g} pixels"
    if drop < -0.03 and slope < 0.95 and pixels > PIXEL:
        text = (
            f"scores fall by {-drop:.2g} in the median and boxes move, without a rule: another input, such "
            "as BGR for RGB, or another mean and standard deviation."
        )
        yield Cause("input", text, len(a), len(a))
    elif spread <= 0.005 and pixels <= 1:
        yield Cause("precision", f"{ends}, both ways: float16 or TF32 inside the network.", len(a), len(a))
    elif abs(drop) <= 0.03:
        yield Cause("precision", f"{ends}, both ways: int8, or another version of the model.", len(a), len(a))
