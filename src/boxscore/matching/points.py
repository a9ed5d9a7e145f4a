"""Run the functions with which a protocol's rules act on matching, each at its point.

COCO's own rules (crowds, area ranges, max detections) are plain code. Any other rule acts at one of eight
points. It names its function as text (``does=``, see :class:`boxscore.protocols.acting.Does`), so that
nothing is imported before a protocol asks for it. :data:`POINTS` defines the arguments and the return value
at each point. The functions of a point run one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boxscore._utils.lazy import loaded
from boxscore._utils.records import NamedTuple
from boxscore.protocols.acting import Point
from boxscore.protocols.protocol import Protocol


class Signature(NamedTuple):
    """The arguments and the return value of functions at a point."""

    parameters: str
    """Names of the parameters, passed by position."""
    returns: str


POINTS: Mapping[Point, Signature] = {
    "prepare": Signature(
        "ground_truth, detections, protocol, share",
        "both tables, before anything is ranked; ``share``: of some of the images alone",
    ),
    "ignore": Signature(
        "ground_truth, protocol, ignoring, matched",
        "the flags of all ground truths; ``matched(ground_truth, protocol)`` matches other ground truths "
        "with all detections, or is None",
    ),
    "eligible": Signature(
        "ground_truth, detections, ignoring, protocol", "which detections are evaluated at all, [D]"
    ),
    "ranges": Signature(
        "ground_truth, detections, protocol",
        "which ground truths are in each range [G, A], which detections take part in it [D, A]; None: all",
    ),
    "pairs": Signature(
        "asked, before", "a source of pairs; ``before()`` makes the one that it wraps or takes the place of"
    ),
    "match": Signature("asked, match", "a function that matches pairs, like ``match``"),
    "unmatched": Signature(
        "ground_truth, detections, rows, protocol",
        "whether the detections ``rows`` count where they match nothing, [rows] or [rows, A]; None: all do",
    ),
    "after": Signature("asked, matches", "the matches with further columns"),
}
"""By point, in the order of an evaluation; ``asked`` is :class:`boxscore.matching.candidates.Asked`."""


def functions_at(point: Point, protocol: Protocol) -> Sequence[Callable[..., Any]]:
    """Return the functions that a protocol runs at a point, in their order."""
    return [_loaded(each.function) for each in protocol.does.get(point, ())]


def prepared_at(protocol: Protocol, *, early: bool) -> Sequence[Callable[..., Any]]:
    """Return the functions that prepare tables before scores are read and rounded, or after."""
    return [_loaded(each.function) for each in protocol.does.get("prepare", ()) if (each.order < 0) == early]


_loaded = functools.cache(loaded)
"""A cached import: each matching asks eight times."""
