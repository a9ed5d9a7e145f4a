"""Error types, one detection at a time: lists, loops, and one sort for each fix and class.

Everything is a Python number; nothing is shared with the package, and nothing is fast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

KINDS = ("classification", "localization", "both", "duplicate", "background", "missed")
SPECIAL = ("false_positives", "false_negatives")


class Box(NamedTuple):
    """An object, or a detection with its score."""

    row: int
    image: int
    label: int
    corners: tuple[float, ...]
    crowd: bool = False
    score: float = 0.0


class Named(NamedTuple):
    """What became of a detection."""

    box: Box
    right: bool
    excused: bool
    kind: str
    about: Box | None
    mends: bool
    """Whether fixing its error makes it right."""


def overlap(found: Box, thing: Box) -> float:
    """IoU; of a crowd the share of the detection that it covers."""
    (a, b, c, d), (e, f, g, h) = found.corners, thing.corners
    common = max(0.0, min(c, g) - max(a, e)) * max(0.0, min(d, h) - max(b, f))
    area = (c - a) * (d - b)
    whole = area if thing.crowd else area + (g - e) * (h - f) - common
    return common / whole if whole > 0 else 0.0


def largest(found: Box, things: list[Box]) -> tuple[float, Box | None]:
    """Return the largest overlap, and the first object that has it."""
    best: tuple[float, Box | None] = (0.0, None)
    for thing in things:
        if overlap(found, thing) > best[0]:
            best = overlap(found, thing), thing
    return best


def kind_of(found: Box, things: list[Box], taken: list[Box], iou: float, least: float) -> tuple[str, Any]:
    """Name an error by the first rule that holds, and the object that it is of."""
    own, own_thing = largest(found, [one for one in things if one.label == found.label])
    other, other_thing = largest(found, [one for one in things if one.label != found.label])
    again, _ = largest(found, [one for one in taken if one.label == found.label])
    if least <= own <= iou:
        return "localization", own_thing
    if other >= iou:
        return "classification", other_thing
    if again >= iou:
        return "duplicate", None
    return ("background" if max(own, other) <= least else "both"), None


def named(
    objects: list[Box], found: list[Box], iou: float, least: float, most: int
) -> tuple[list[Named], list[Box], list[Box], list[Box]]:
    """Name every error; with the objects that count, those that are matched, and those that are missed."""
    every: list[Named] = []
    counted = [thing for thing in objects if not thing.crowd]
    matched: list[Box] = []
    usable: list[Box] = []
    for image in sorted({one.image for one in (*objects, *found)}):
        things = [thing for thing in counted if thing.image == image]
        crowds = [thing for thing in objects if thing.crowd and thing.image == image]
        ranked = sorted((one for one in found if one.image == image), key=lambda one: -one.score)[:most]
        right, taken = [], list[Box]()
        for one in ranked:
            free = [thing for thing in things if thing.label == one.label and thing not in taken]
            value, thing = largest(one, free)
            right.append(thing is not None and value >= iou)
            if thing is not None and value >= iou:
                taken.append(thing)
        matched += taken
        for one, is_right in zip(ranked, right, strict=True):
            covered = any(crowd.label == one.label and overlap(one, crowd) > iou for crowd in crowds)
            kind, about = ("", None) if is_right else kind_of(one, things, taken, iou, least)
            is_open = about is not None and about not in taken
            mends = is_open and about not in usable
            if mends:
                usable.append(about)
            every.append(Named(one, is_right, covered and not is_right, kind, about, mends))
    missed = [thing for thing in counted if thing not in matched and thing not in usable]
    return every, counted, matched, missed


def average_precision(rows: list[tuple[float, bool, bool]], positive: int, errors_first: bool) -> float:
    """AP at 101 recall points of rows: score, whether right, and whether an error without a fix."""
    if not positive:
        return float("nan")
    rows = sorted(rows, key=lambda row: (-row[0], errors_first and not row[2]))
    points, true = list[tuple[float, float]](), 0
    for number, (_, is_right, _) in enumerate(rows, start=1):
        true += is_right
        points.append((true / positive, true / number))
    total = 0.0
    for step in range(101):
        total += max((precision for recall, precision in points if recall >= step / 100), default=0.0)
    return total / 101


def costs(
    objects: list[Box], found: list[Box], labels: int, iou: float = 0.5, least: float = 0.1, most: int = 100
) -> dict[str, tuple[int, list[float]]]:
    """Return the count of each kind, and the AP of each class with the kind fixed; ``""`` is of no fix."""
    every, counted, matched, missed = named(objects, found, iou, least, most)
    answer = {}
    for fixed in ("", *KINDS, *SPECIAL):
        rows: list[list[tuple[float, bool, bool]]] = [[] for _ in range(labels)]
        for one in every:
            is_right, label = one.right, one.box.label
            if one.excused and not (one.kind == fixed and one.mends):
                continue
            if one.kind == fixed and fixed:
                if not one.mends:
                    continue
                is_right = True
                if fixed == "classification" and one.about is not None:
                    label = one.about.label
            score = one.box.score
            if fixed == "false_positives" and not is_right:
                score = -1.0  # below all that is right
            rows[label].append((score, is_right, not one.right))
        things = {"missed": [one for one in counted if one not in missed], "false_negatives": matched}
        positive = [one.label for one in things.get(fixed, counted)]
        count = {
            "missed": len(missed),
            "false_positives": sum(not one.right and not one.excused for one in every),
            "false_negatives": len(counted) - len(matched),
        }.get(fixed, sum(one.kind == fixed for one in every))
        values = [
            average_precision(of_class, positive.count(label), bool(fixed))
            for label, of_class in enumerate(rows)
        ]
        answer[fixed] = (count, values)
    return answer
