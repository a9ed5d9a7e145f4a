"""cityscapesScripts' instance AP in plain Python: sets of pixels, one class and one threshold at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

Pixels = frozenset[tuple[int, int]]


class Segment(NamedTuple):
    """A segment of the truth: an object, a group, or void, which is of no class."""

    name: str
    pixels: Pixels
    group: bool = False


class Found(NamedTuple):
    name: str
    pixels: Pixels
    score: float


Image = tuple[Sequence[Segment], Sequence[Found]]


def average_precision(
    images: Sequence[Image], name: str, threshold: float, least: int = 100
) -> Fraction | None:
    """AP of a class at a threshold, exactly; None without an object of it."""
    scores: list[tuple[float, bool]] = []
    objects = 0
    for truth, found in images:
        counted = [one for one in truth if one.name == name and not one.group and len(one.pixels) >= least]
        others = [one for one in truth if one.name == name and one not in counted]
        void = [one for one in truth if one.name == "void"]
        mine = [one for one in found if one.name == name]
        objects += len(counted)
        for one in counted:
            over = sorted((f.score for f in mine if iou(one.pixels, f.pixels) > threshold), reverse=True)
            scores += [(score, place == 0) for place, score in enumerate(over)]
        for f in mine:
            if any(iou(one.pixels, f.pixels) > threshold for one in (*counted, *others)):
                continue
            ignored = sum(len(one.pixels & f.pixels) for one in void)
            for one in others:
                times = int(one.group) + int(len(one.pixels) < least)
                ignored += times * len(one.pixels & f.pixels)
            if ignored / len(f.pixels) <= threshold:
                scores.append((f.score, False))
    return area(scores, objects) if objects else None


def iou(first: Pixels, second: Pixels) -> float:
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)


def area(scores: Sequence[tuple[float, bool]], objects: int) -> Fraction:
    """Area under the lines from (0, 1) through the points after each score."""
    points = [(Fraction(0), Fraction(1))]
    true = counted = 0
    for _, tied in itertools.groupby(sorted(scores, key=lambda one: -one[0]), key=lambda one: one[0]):
        flags = [is_true for _, is_true in tied]
        true, counted = true + sum(flags), counted + len(flags)
        points.append((Fraction(true, objects), Fraction(true, counted)))
    total = Fraction(0)
    for (low, high), (to, height) in itertools.pairwise(points):
        total += (to - low) * (high + height) / 2
    return total
