"""Write the first sentences of comparison pages: who leads, by how much, and where the ranking flips.

Conventions
-----------
- All sentences are about the first summary metric. A detector leads if its difference from the next one is
  significant in the comparison; otherwise the sentence says that the data cannot tell.
- Differences are in points, hundredths of the metric. For a metric that falls as detectors improve, the
  detector with the lower value leads.
- Images differ by their number of mistakes, each detector at its own operating score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, fixed, verb
from boxscore.extensions.decisions.compare import TOO_FEW, DetectorComparison
from boxscore.extensions.diagnostics.ties import decided_by_ties
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages.gallery import Gallery
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE

MOST_NAMED = 5
"""Maximum classes named in a sentence."""

MOST_SHOWN = 6
"""Images in which an overview shows the detectors side by side."""

LONGEST_NAME = 60

LEAST_PART = 0.4
"""Minimum size of a shown region, relative to the width and height of the image."""


def verdict_sentence(comparison: DetectorComparison) -> str:
    """Name the leader and the lead with its interval, or say that it is unclear, or that ties decide."""
    # Rank by the first metric; ties keep the given order.
    metric, sign = _metric(comparison)
    if not metric:
        return ""
    names = [_short(name) for name in comparison.names]
    values = comparison.intervals.value[:, 0]
    defined = np.flatnonzero(np.isfinite(values))
    if len(defined) < 2:
        return f"{metric} is undefined for all detectors but one, so nothing can be compared."
    best, second = defined[np.argsort(-sign * values[defined], kind="stable")[:2]].tolist()
    # Distinguish three cases: equal, significantly different, or too close to tell.
    pairs = comparison.pairs
    gap = abs(float(values[best] - values[second]))
    apart, near = f"{points(gap)} points of {metric}", _interval(comparison, best, second, sign)
    if not gap:
        return f"{names[best]} and {names[second]} have the same {metric}, {fixed(values[best], 3)}."
    if bool(pairs.significant[best, second, 0]):
        rank = f", the second of {len(names)}," if len(names) > 2 else ""
        said = f"{names[best]} leads {names[second]}{rank} by {apart}{near}."
        return said + _of_ties(comparison, best, second)
    # Mention if there are too few images.
    if bool((comparison.total.verdict[:, 0] == TOO_FEW).all()):
        unit = "image" if comparison.resampling.group is None else "group"
        units = counted(int(comparison.intervals.images[best, 0]), unit)
        return (
            f"{units} with objects are too few to tell which detector is better: {names[best]} is "
            f"{apart} ahead of {names[second]}."
        )
    # Name all detectors that the data cannot tell from the best.
    alike = [j for j in defined.tolist() if j != best and not pairs.significant[best, j, 0]]
    listed = _join_names([names[j] for j in [best, *sorted(alike, key=lambda j: -sign * values[j])]])
    said = (
        f"The data cannot tell which of {listed} is better: {names[best]} is {apart} ahead of "
        f"{names[second]}{near}."
    )
    return said + _of_ties(comparison, best, second)


def _metric(comparison: DetectorComparison) -> tuple[str, float]:
    """Return the first summary metric, and -1 if it falls as detectors improve."""
    if not comparison.metrics:
        return "", 1.0
    return comparison.metrics[0], -1.0 if comparison.lower_is_better[0] else 1.0


def points(value: float) -> str:
    """Format a difference in hundredths."""
    return fixed(100 * value, 1).replace("-", "\N{MINUS SIGN}")


def _interval(comparison: DetectorComparison, best: int, second: int, sign: float) -> str:
    """Format the interval of a lead in brackets; empty without one."""
    low, high = (float(end[best, second, 0]) for end in (comparison.pairs.low, comparison.pairs.high))
    if not np.isfinite([low, high]).all():
        return ""
    ends = sorted([sign * low, sign * high])
    level = f"{100 * comparison.resampling.confidence:.4g}\N{NO-BREAK SPACE}%"
    return f" ({level} interval {points(ends[0])} to {points(ends[1])})"


def _of_ties(comparison: DetectorComparison, best: int, second: int) -> str:
    """Mention if the order of equal scores decides."""
    results = list(comparison.evaluations.values())
    row = next(row for row in results[0].protocol.rows if row.key == comparison.metrics[0])
    known = row.metric == "AP" and all(source_of(results[i]).is_here for i in (best, second))
    if known and decided_by_ties(results[best], results[second], row.key):
        return " Another order of tied scores could reverse this."
    return ""


def turned_classes(comparison: DetectorComparison) -> str:
    """Name the classes in which another detector is ahead of the overall leader."""
    # Without a defined, unique leader, no class can flip the ranking.
    metric, sign = _metric(comparison)
    values = comparison.intervals.value[:, 0]
    if not metric or np.isfinite(values).sum() < 2 or not len(comparison.classes):
        return ""
    # Express all detectors as differences from the first, whose own row is 0.
    delta = sign * comparison.per_class.delta[:, 0]  # [O,K], other minus first
    of_class = np.vstack([np.zeros_like(delta[:1]), np.where(np.isfinite(delta), delta, -np.inf)])
    known = np.isfinite(delta).any(axis=0)
    best = int(np.nanargmax(sign * values))
    if np.nanmax(sign * np.delete(values, best)) == sign * values[best]:
        return ""
    # The ranking flips in a class if another detector is ahead of the overall best.
    gain = of_class.max(axis=0) - of_class[best]
    turned = np.flatnonzero(known & (gain > 0) & np.isfinite(gain))
    name = _short(comparison.names[best])
    of = counted(int(known.sum()), "class")
    if not len(turned):
        return f"The ranking is the same in every class: {name} is ahead or equal in all {of}."
    # Sort by descending gain.
    order = turned[np.argsort(-gain[turned], kind="stable")]
    many = len(comparison.names) > 2
    leaders = of_class.argmax(axis=0)
    named = [
        f"{_short(comparison.classes[k])} ({f'{_short(comparison.names[leaders[k]])}, ' if many else ''}"
        f"{points(gain[k])} points)"
        for k in order[:MOST_NAMED].tolist()
    ]
    more = f" and {len(order) - MOST_NAMED:,} more" if len(order) > MOST_NAMED else ""
    another = "another detector" if many else _short(comparison.names[1 - best])
    said = (
        f"The ranking flips in {len(order):,} of {of}, where {another} is ahead of {name}: "
        f"{', '.join(named)}{more}."
    )
    return said if many else said + _significant(comparison, turned)


def _significant(comparison: DetectorComparison, turned: NDArray[np.intp]) -> str:
    """Count the classes among these in which the difference of two detectors is significant."""
    verdicts = comparison.per_class.verdict[0, 0, turned]
    count = int(np.isin(verdicts, ["better", "worse"]).sum())
    if not count:
        return " The difference is not significant in any of them."
    return f" The difference {verb(1, 'are')} significant in {count:,} of them."


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _join_names(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED:
        return ", ".join(names[:MOST_NAMED]) + f" and {len(names) - MOST_NAMED:,} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


class Part(NamedTuple):
    """A region of an image, in its pixels."""

    left: float
    top: float
    width: float
    height: float


def differing_images(mistakes: NDArray[np.int64], *, most: int = MOST_SHOWN) -> list[int]:
    """Return the rows of the images whose numbers of mistakes, [N, images], differ most."""
    spread = mistakes.max(axis=0) - mistakes.min(axis=0)
    order = np.argsort(-spread, kind="stable")[:most]
    rows: list[int] = order[spread[order] > 0].tolist()
    return rows


class Differences:
    """The regions of an image in which detectors differ.

    Parameters
    ----------
    galleries : sequence of Gallery
        One gallery per detector, with one ground truth.
    """

    def __init__(self, galleries: Sequence[Gallery]) -> None:
        self._truth = galleries[0].evaluation.ground_truth
        outcomes = np.stack([each.evaluation.outcomes.truth(each.score_threshold) for each in galleries])
        rows = np.flatnonzero((outcomes == MISSED).any(axis=0) & (outcomes == TRUE_POSITIVE).any(axis=0))
        self._rows = rows[np.argsort(self._truth.image[rows], kind="stable")]
        self._bounds = np.searchsorted(self._truth.image[self._rows], np.arange(len(self._truth.images) + 1))

    def part(self, image: int, records: Sequence[Mapping[str, Any]]) -> Part:
        """Return the region around the objects that some detectors miss, or around false positives.

        ``records`` are those of the image in each gallery.
        """
        boxes = self._truth.boxes[self._rows[self._bounds[image] : self._bounds[image + 1]]]
        if not len(boxes):
            false = [box[:4] for record in records for box in record["boxes"] if box[5] == FALSE_POSITIVE]
            boxes = np.array(false, dtype=np.float64).reshape(-1, 4)
            boxes[:, 2:] += boxes[:, :2]
        width, height = float(max(records[0]["width"], 1)), float(max(records[0]["height"], 1))
        return _around(boxes, width, height) if len(boxes) else Part(0.0, 0.0, width, height)


def _around(boxes: NDArray[np.float64], width: float, height: float) -> Part:
    """Return the region around boxes, with a margin and a minimum size relative to the image."""
    ends = []
    for axis, side in ((0, width), (1, height)):
        low = float(np.clip(boxes[:, axis].min(), 0, side))
        high = float(np.clip(boxes[:, axis + 2].max(), 0, side))
        size = min(max(1.3 * (high - low), LEAST_PART * side), side)
        start = min(max((low + high - size) / 2, 0), side - size)
        ends.append((round(start, 1), round(size, 1)))
    (left, wide), (top, tall) = ends
    return Part(left, top, wide, tall)
