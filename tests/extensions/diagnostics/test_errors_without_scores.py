"""What each kind of error costs in F1, against mending every list of boxes by hand and counting again."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.diagnostics import error_list, error_types
from support.each import each

THRESHOLD, BACKGROUND = 0.5, 0.1
SIX = ("classification", "localization", "both", "duplicate", "background", "missed")
Box = tuple[float, float, float, float]
Row = tuple[int, int, Box]
"""Image, class, corners."""


def shared(a: Box, b: Box) -> float:
    return max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)


def area(a: Box) -> float:
    return (a[2] - a[0]) * (a[3] - a[1])


def iou(a: Box, b: Box) -> float:
    return shared(a, b) / (area(a) + area(b) - shared(a, b))


def best_matching(found: list[Row], objects: list[Row]) -> dict[int, int]:
    """Most pairs and then the greatest sum of overlaps, of every way to match: detection to object."""
    best: tuple[int, float, dict[int, int]] = (0, 0.0, {})
    groups = {row[:2] for row in found}
    chosen: dict[int, int] = {}
    for group in groups:
        rows = [d for d, row in enumerate(found) if row[:2] == group]
        mine = [g for g, row in enumerate(objects) if row[:2] == group]
        best = (0, 0.0, {})
        for choice in itertools.product([None, *mine], repeat=len(rows)):
            pairs = {d: g for d, g in zip(rows, choice, strict=True) if g is not None}
            overlaps = [iou(found[d][2], objects[g][2]) for d, g in pairs.items()]
            if len({*pairs.values()}) == len(pairs) and all(value >= THRESHOLD for value in overlaps):
                best = max(best, (len(pairs), sum(overlaps), pairs), key=lambda one: one[:2])
        chosen |= best[2]
    return chosen


class ByHand:
    """Errors of detections and objects, named one by one, and F1 after each is mended."""

    def __init__(self, found: list[Row], objects: list[Row], crowds: list[Row]) -> None:
        self.match = best_matching(found, objects)
        in_crowd = {
            d
            for d, (image, kind, box) in enumerate(found)
            if d not in self.match
            and any(c[:2] == (image, kind) and shared(box, c[2]) / area(box) >= THRESHOLD for c in crowds)
        }
        self.found, self.objects = found, objects
        self.false = [d for d in range(len(found)) if d not in self.match and d not in in_crowd]
        self.free = {*range(len(objects))} - {*self.match.values()}
        self.kind: dict[int, str] = {}
        self.about: dict[int, int] = {}
        for d in self.false:
            self.kind[d] = self._name(d)
        of_open = {self.about[d] for d in self.about if self.about[d] in self.free}
        self.missed = self.free - of_open

    def _name(self, d: int) -> str:
        image, kind, box = self.found[d]
        overlaps = {g: iou(box, row[2]) for g, row in enumerate(self.objects) if row[0] == image}
        same = {g: value for g, value in overlaps.items() if self.objects[g][1] == kind}
        other = {g: value for g, value in overlaps.items() if self.objects[g][1] != kind}
        if same and BACKGROUND <= max(same.values()) <= THRESHOLD:
            self.about[d] = max(same, key=lambda g: same[g])
            return "localization"
        if other and max(other.values()) >= THRESHOLD:
            self.about[d] = max(other, key=lambda g: other[g])
            return "classification"
        if any(value >= THRESHOLD and g not in self.free for g, value in same.items()):
            return "duplicate"
        return "background" if max(overlaps.values(), default=0) <= BACKGROUND else "both"

    def mended(self, name: str | None) -> tuple[list[tuple[int, bool]], list[int]]:
        """Class and rightness of what is left of the detections, and the classes of the objects left."""
        left = [(self.found[d][1], True) for d in self.match]
        objects = dict(enumerate(self.objects))
        served: set[int] = set()
        for d in self.false:
            if name == "false_positives":
                continue
            if self.kind[d] != name:
                left.append((self.found[d][1], False))
            elif (g := self.about.get(d)) is not None and g in self.free and g not in served:
                served.add(g)
                left.append((self.objects[g][1], True))
        gone = self.missed if name == "missed" else self.free if name == "false_negatives" else set()
        return left, [row[1] for g, row in objects.items() if g not in gone]

    def f1(self, name: str | None, kind: int | None = None) -> Fraction | None:
        left, objects = self.mended(name)
        mine = [true for k, true in left if kind is None or k == kind]
        count = len(mine) + sum(kind is None or k == kind for k in objects)
        return Fraction(2 * sum(mine), count) if count else None

    def counts(self) -> dict[str, int]:
        return {
            **Counter(self.kind.values()),
            "missed": len(self.missed),
            "false_positives": len(self.false),
            "false_negatives": len(self.free),
        }


def drawn(seed: int, *, whole: bool = False) -> tuple[list[Row], list[Row], list[Row]]:
    """Detections near objects, some of another class, and crowds; few enough to try every matching."""
    rng = np.random.default_rng(seed)

    def box(around: Box | None = None) -> Box:
        x, y = rng.uniform(0, 20, 2) if around is None else np.array(around[:2]) + rng.normal(0, 2, 2)
        w, h = rng.uniform(6, 14, 2) if around is None else np.subtract(around[2:], around[:2])
        made = np.array([x, y, x + w, y + h])
        return tuple((np.round(made / 4) * 4 if whole else made).tolist())

    found, objects, crowds = [], [], []
    for image in range(6):
        here = [(image, int(rng.integers(3)), box()) for _ in range(rng.integers(0, 5))]
        objects += here
        if rng.random() < 0.4:
            crowds.append((image, int(rng.integers(3)), (0.0, 0.0, 16.0, 16.0)))
        for _ in range(rng.integers(0, 6)):
            near = here[rng.integers(len(here))] if here and rng.random() < 0.7 else None
            kind = near[1] if near and rng.random() < 0.6 else int(rng.integers(3))
            found.append((image, kind, box(near and near[2])))
    return found, objects, crowds


def evaluated(found: list[Row], objects: list[Row], crowds: list[Row], **options: Any) -> Any:
    labels, images = ["a", "b", "c"], list(range(6))
    rows = [*objects, *crowds]
    flags = [False] * len(objects) + [True] * len(crowds)
    truth = GroundTruth.from_arrays(
        [row[0] for row in rows],
        [labels[row[1]] for row in rows],
        np.array([row[2] for row in rows]).reshape(-1, 4),
        crowd=flags,
        images=images,
        categories=labels,
    )
    detections = Detections.from_arrays(
        [row[0] for row in found],
        [labels[row[1]] for row in found],
        np.array([row[2] for row in found]).reshape(-1, 4),
        images=images,
        categories=labels,
    )
    return boxscore.evaluate(
        truth, detections.without_scores(), protocol="scoreless", digest=False, **options
    )


@each(range(60))
def test_costs_are_those_of_lists_mended_by_hand(seed: int) -> None:
    scene = drawn(seed)
    hand, evaluation = ByHand(*scene), evaluated(*scene)
    ours = error_types(evaluation)
    assert ours.metric == "F1"
    assert hand.f1(None) is not None
    for e, name in enumerate(ours.errors):
        assert ours.total.counts[e] == hand.counts().get(name, 0), name
        for kind, values in [(None, ours.total), *((k, ours.per_class) for k in range(3))]:
            at = e if kind is None else (kind, e)
            before, after = hand.f1(None, kind), hand.f1(name, kind)
            for value, expected in ((values.value[at], before), (values.value_without[at], after)):
                assert np.isnan(value) if expected is None else value == float(expected), (name, kind)
            if before is not None and after is not None:
                assert values.cost[at] == pytest.approx(float(after - before), rel=0, abs=2e-16), (name, kind)
    assert ours.total.value[0] == evaluation["F1_50"]


@each(range(20))
def test_no_order_of_the_files_changes_a_bit(seed: int) -> None:
    """Boxes on a grid, with equal overlaps and equal boxes; errors of two kinds on one object."""
    found, objects, crowds = drawn(seed, whole=True)
    rng = np.random.default_rng(seed)
    first = error_types(evaluated(found, objects, crowds))
    for _ in range(4):
        shuffled = [[rows[i] for i in rng.permutation(len(rows))] for rows in (found, objects, crowds)]
        other = error_types(evaluated(*shuffled))
        for mine, theirs in ((first.total, other.total), (first.per_class, other.per_class)):
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(a, b)


def test_the_list_has_every_error_and_no_score() -> None:
    scene = drawn(3)
    hand, evaluation = ByHand(*scene), evaluated(*scene)
    listed = error_list(evaluation)
    assert Counter(listed.error.tolist()) == Counter({k: n for k, n in hand.counts().items() if k in SIX})
    assert np.isnan(listed.score).all()


def test_thresholds_are_those_of_the_protocol() -> None:
    evaluation = evaluated(*drawn(0))
    assert error_types(evaluation, iou_threshold=0.75).total.value[0] == evaluation["F1_75"]
    with pytest.raises(boxscore.InputError, match="iou_threshold must be a threshold of the protocol"):
        error_types(evaluation, iou_threshold=0.52)


@pytest.mark.parametrize("option", [{"max_detections": 10}, {"absent_classes": "zero"}])
def test_what_needs_an_order_or_a_mean_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(boxscore.InputError, match="if detections lack scores"):
        error_types(evaluated(*drawn(0)), **option)


def test_detections_of_nothing() -> None:
    ours = error_types(evaluated([], drawn(1)[1], []))
    assert ours.total.value[0] == 0
    assert ours.total.value_without[ours.errors.index("false_negatives")] != 0  # undefined
