"""Define ``[froc]``, ``[miss_rate]``, ``[jaccard]``, ``[score_levels]``: where these metrics read curves."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from boxscore.errors import ProtocolError
from boxscore.protocols.acting import (
    Does,
    ExtraColumn,
    Refusal,
    Scope,
    matches,
    one_measure,
    refused_in_parts,
    scores,
)
from boxscore.protocols.fields import Check, Rules, Step, Word, choice, list_of, number, rule, text
from boxscore.protocols.grids import fppi_points, number_text
from boxscore.protocols.summary import LEVEL_METRICS

_POINTS = Check("list: number >= 0", lambda value, name: fppi_points(value, name=name))


def _points_text(rules: Any, reading: str) -> str:
    """Format false positives per image, and the field that reads them unless it has its default.

    Empty if both have their defaults.
    """
    usual = type(rules)()
    if rules == usual:
        return ""
    points = ",".join(map(number_text, rules.false_positives_per_image))
    how = getattr(rules, reading)
    return points if how == getattr(usual, reading) else f"{points}-{how}"


FrocInterpolation = Literal["linear", "step"]


def _froc(protocol: Any) -> str:
    """Format the points and their interpolation; empty for LUNA16's."""
    return _points_text(protocol.froc, "interpolation")


class FrocRules(Rules):
    """The points at which the free-response ROC is read."""

    PREFIX = "froc."

    false_positives_per_image: tuple[float, ...] = rule(
        (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        check=_POINTS,
        doc="Numbers of false positives per image, of the class, at which the sensitivity is read, "
        "ascending; FROC is the mean.",
        word=Word("froc", text=_froc, note="the points, and `step`; left out for LUNA16's"),
        scope=scores(Scope.CLASS),
    )
    interpolation: FrocInterpolation = rule(
        "linear",
        check=choice(FrocInterpolation),
        doc="Between the points of two score thresholds: a straight line (LUNA16), or the last point within "
        "the allowed false positives. They differ only where true and false positives have equal "
        "scores.",
        scope=scores(Scope.CLASS),
    )


MissReading = Literal["first_at_least", "last_at_most", "last_at_most_or_end"]


def _miss_rate(protocol: Any) -> str:
    """Format the anchors and their reading; empty for Caltech's."""
    return _points_text(protocol.miss_rate, "reading")


class MissRateRules(Rules):
    """The points at which the curve of miss rate against false positives per image is read for MR^-2."""

    PREFIX = "miss_rate."

    false_positives_per_image: tuple[float, ...] = rule(
        tuple((10.0 ** np.linspace(-2, 0, 9)).tolist()),
        check=_POINTS,
        doc="The anchors, ascending: the log-average miss rate is the geometric mean of the miss rates "
        "there.",
        word=Word("mr", text=_miss_rate, note="the anchors and the reading; left out for Caltech's"),
        scope=scores(Scope.CLASS),
    )
    reading: MissReading = rule(
        "last_at_most",
        check=choice(MissReading),
        doc="The detection at which an anchor is read: the last with at most as many false positives per "
        "image, and a miss rate of 1 before the first (Caltech); the same, but the last of all before "
        "the first (CityPersons); or the first with at least as many, else the last of all "
        "(CrowdHuman).",
        scope=scores(Scope.CLASS),
    )


def _jaccard(protocol: Any) -> str:
    """Format the score thresholds; empty for CrowdHuman's."""
    rules = protocol.jaccard
    return "" if rules == type(rules)() else ",".join(map(number_text, rules.score_thresholds))


def _asks_for_jaccard(protocol: Any) -> bool:
    return bool(protocol.asks_for("JI"))


_refused_in_parts = functools.partial(
    refused_in_parts,
    _asks_for_jaccard,
    "the summary has JI",
    "a part holds its counts, not the overlaps to count again: evaluate all images at once",
)


_JACCARD_REFUSED = (
    *one_measure(_asks_for_jaccard, "the summary has JI"),
    _refused_in_parts(
        "matching.cap_scope",
        "be 'class' or 'image'",
        lambda protocol: protocol.matching.cap_scope in ("image_each", "data_set_class"),
    ),
    _refused_in_parts("ap.pool", "be 'none'", lambda protocol: protocol.ap.pool == "classes"),
)


def jaccard_areas(protocol: Any) -> list[int]:
    """Positions of the area ranges at which the summary asks for JI, ascending."""
    names = list(protocol.ignore.area_ranges)
    return sorted({names.index(row.area) for row in protocol.rows if row.metric == "JI"})


TRUTH_SHARE = ExtraColumn(
    "truth_share", "truth", "float", asked_for=_asks_for_jaccard, in_parts=False, most=1.0
)
"""Largest share of each ground truth that is inside one ignored region, [G]."""


CROWDS = ExtraColumn(
    "crowds",
    "class_image",
    "whole",
    asked_for=lambda protocol: bool(jaccard_areas(protocol)),
    shape=lambda protocol: (
        3,
        len(jaccard_areas(protocol)),
        len(protocol.matching.iou_thresholds),
        len(protocol.jaccard.score_thresholds),
    ),
)
"""Partners, objects, detections; at A area ranges, T IoU thresholds, S confidences: [N, 3, A, T, S]. Counted
before matches are split into parts, since parts do not store overlaps."""


class JaccardRules(Rules):
    """The confidences at which the Jaccard index of crowds is computed."""

    PREFIX = "jaccard."

    score_thresholds: tuple[float, ...] = rule(
        tuple(1e-1 * i for i in range(10)),
        check=list_of(number(-math.inf, math.inf), "a list", ordered=True),
        doc="Detections above each threshold are matched; JI is the best of the results.",
        word=Word("ji", text=_jaccard, note="the score thresholds; left out for CrowdHuman's"),
        scope=scores(Scope.CLASS),
        columns=(TRUTH_SHARE, CROWDS),
        refuses=_JACCARD_REFUSED,
        does=(Does("after", "boxscore.extensions.crowds.crowd_shares:with_truth_shares", _asks_for_jaccard),),
    )


def _neighbors(value: Any, name: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class = [class, ...]", got=repr(value))
    check = list_of(text, "a list")
    return {text(key, name): check(names, f"{name}.{key}") for key, names in value.items()}


def _neighbors_text(protocol: Any) -> str:
    """Name the classes with neighbors, and the neighbors; empty without any."""
    of_class = protocol.score_levels.neighbors
    return ",".join(f"{name}={'+'.join(others)}" for name, others in of_class.items())


def _asks_for_levels(protocol: Any) -> bool:
    return any(protocol.asks_for(metric) for metric in LEVEL_METRICS)


def _level_shape(protocol: Any) -> tuple[int, ...]:
    return len(protocol.matching.iou_thresholds), len(protocol.ignore.area_ranges)


LEVEL_COUNTS = ExtraColumn(
    "level_counts",
    "detection",
    "whole",
    asked_for=_asks_for_levels,
    shape=lambda protocol: (*_level_shape(protocol), 3),
)
"""For each detection: whether its score is one from which thresholds are chosen (1 or 0); and the true and
false positives of its image and class with at least its score: [D, T, A, 3]."""


LEVEL_SIMILARITY = ExtraColumn(
    "level_similarity", "detection", "float", asked_for=_asks_for_levels, shape=_level_shape
)
"""Sum of the orientation similarities of these true positives, [D, T, A]."""


ORIENTED = ExtraColumn("oriented", "detection", "bool", asked_for=_asks_for_levels)
"""Whether a detection has an orientation, [D]."""


class ScoreLevelRules(Rules):
    """Rules for objects that choose their detections again at every score threshold."""

    PREFIX = "score_levels."

    neighbors: Mapping[str, tuple[str, ...]] = rule(
        {},
        check=Check("class = [class, ...]", _neighbors),
        doc="Classes whose objects become ignored ones of another class, given by name, where objects "
        "choose their detections: a van that is detected as a car (KITTI).",
        word=Word("neighbours", text=_neighbors_text, note="classes whose objects another class ignores"),
        step=Step("objects of like classes", "matching", _neighbors_text),
        scope=matches(Scope.IMAGE),
        columns=(LEVEL_COUNTS, LEVEL_SIMILARITY, ORIENTED),
        does=(Does("after", "boxscore.extensions.crowds.score_levels:with_score_levels", _asks_for_levels),),
        refuses=(
            Refusal(
                "together",
                lambda protocol: _asks_for_levels(protocol) and not protocol.matching.per_class,
                "be true where objects choose their detections",
                field="matching.per_class",
                got="false",
            ),
        ),
    )
