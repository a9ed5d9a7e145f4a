"""Objects that choose their detections, anew at every score threshold (KITTI)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxscore._utils.records import record
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Does, Refusal, Scope, matches
from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.fields import Check, Rules, Step, Word, list_of, rule, text, with_attributes

LEVEL_METRICS = ("AP_R40", "AP_R11", "AOS_R40", "AOS_R11")
"""Kinds of summary metrics that are read at score levels."""


def _neighbours(value: Any, name: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class = [class, ...]", got=repr(value))
    check = list_of(text, "a list")
    return {text(key, name): check(names, f"{name}.{key}") for key, names in value.items()}


def _neighbours_text(protocol: Any) -> str:
    """Write the classes that have neighbours, and which; nothing where none has."""
    of_class = protocol.score_levels.neighbours
    return ",".join(f"{name}={'+'.join(others)}" for name, others in of_class.items())


def _asks(protocol: Any) -> bool:
    return any(protocol.asks_for(metric) for metric in LEVEL_METRICS)


def _shape(protocol: Any) -> tuple[int, ...]:
    return len(protocol.matching.iou_thresholds), len(protocol.ignore.area_ranges)


LEVEL_COUNTS = ExtraColumn(
    "level_counts", "detection", "whole", asked_for=_asks, shape=lambda protocol: (*_shape(protocol), 3)
)
"""Whether its score is one of those from which thresholds are chosen (1 or 0); and, of its image and class,
the true and the false positives among detections with at least its score: [D, T, A, 3]."""

LEVEL_SIMILARITY = ExtraColumn("level_similarity", "detection", "float", asked_for=_asks, shape=_shape)
"""The sum of the similarities of orientation of these true positives, [D, T, A]."""

ORIENTED = ExtraColumn("oriented", "detection", "bool", asked_for=_asks)
"""Whether a detection has an orientation, [D]."""


@with_attributes
@record(frozen=True)
class ScoreLevelRules(Rules):
    """Objects that choose their detections, anew at every score threshold."""

    PREFIX = "score_levels."

    neighbours: Mapping[str, tuple[str, ...]] = rule(
        {},
        check=Check("class = [class, ...]", _neighbours),
        doc="Classes whose objects are ignored ones of another class, by its name, where objects choose "
        "their detections: a van that is taken for a car (KITTI).",
        word=Word("neighbours", text=_neighbours_text, note="classes whose objects another class ignores"),
        step=Step("objects of like classes", "matching", _neighbours_text),
        scope=matches(Scope.IMAGE),
        columns=(LEVEL_COUNTS, LEVEL_SIMILARITY, ORIENTED),
        does=(Does("after", "boxscore.matching.score_levels:with_score_levels", _asks),),
        refuses=(
            Refusal(
                "together",
                lambda protocol: _asks(protocol) and not protocol.matching.per_class,
                "be true where objects choose their detections",
                field="matching.per_class",
                got="false",
            ),
        ),
    )
