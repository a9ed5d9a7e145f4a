"""Define ``[rounding]`` and ``[boxes]``: how to round numbers of detections and measure boxes."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore.protocols.acting import Does, Refusal, Scope, measures, prepares, ranks, refused_in_parts
from boxscore.protocols.fields import Check, Rules, Step, Word, choice, flag, number, rule
from boxscore.protocols.grids import number_text

# ---------------------------------------------------------------- numbers


def _decimals(value: Any, name: str) -> int | None:
    return None if value in (None, "none") else checks.whole_number(value, 0, name=name)


_DECIMALS = Check('whole number, "none"', _decimals)


def _decimals_text(protocol: Any) -> str:
    """Format the decimals of scores and boxes, ``all`` if one is not rounded; empty if neither is."""
    decimals = (protocol.rounding.scores, protocol.rounding.boxes)
    return (
        "" if decimals == (None, None) else ",".join("all" if one is None else str(one) for one in decimals)
    )


def _rounding(protocol: Any) -> str:
    """Name the rounded numbers and their decimals."""
    decimals = {"scores": protocol.rounding.scores, "boxes": protocol.rounding.boxes}
    rounded = [
        f"{counted(count, 'decimal')} of {name}" for name, count in decimals.items() if count is not None
    ]
    return ", ".join(rounded) or "as given"


def _scales(protocol: Any) -> bool:
    return bool(protocol.rounding.stretch_scores)


_refused_in_parts = functools.partial(
    refused_in_parts,
    _scales,
    "scores are stretched",
    "the least and the largest score are known when parts are merged: evaluate all at once",
)


_STRETCHING_REFUSED = (
    Refusal("ranges", _scales),
    Refusal(
        "batches",
        _scales,
        "be false for an Evaluator",
        got="true",
        cause="the least and the largest score are known at the end: evaluate a results file",
    ),
    _refused_in_parts(
        "matching.ranked_files", "be true", lambda protocol: not protocol.matching.ranked_files
    ),
    _refused_in_parts("matching.per_class", "be true", lambda protocol: not protocol.matching.per_class),
    _refused_in_parts(
        "matching.equal_scores",
        "be 'image_order' or 'file_order'",
        lambda protocol: protocol.matching.equal_scores == "last_first",
    ),
    _refused_in_parts(
        "matching.cap_scope",
        "be 'class' or of an image",
        lambda protocol: protocol.matching.caps_data_set,
    ),
    _refused_in_parts(
        "matching.score_threshold",
        "be left out",
        lambda protocol: protocol.matching.score_threshold > -math.inf,
    ),
    _refused_in_parts("group.treatment", "be 'count'", lambda protocol: protocol.group.treatment != "count"),
    _refused_in_parts("ignore.regions", "be left out", lambda protocol: protocol.ignore.regions != ""),
    _refused_in_parts("summary", "have no JI", lambda protocol: protocol.asks_for("JI"), got="'JI'"),
)


def _scores_text(protocol: Any) -> str:
    """Describe whether scores are unread or scaled; empty if used as given."""
    if protocol.matching.scores != "given":
        return str(protocol.matching.scores)
    return "stretched" if protocol.rounding.stretch_scores else ""


class RoundingRules(Rules):
    """Rounding of detections before anything else, as in tools that write them to text and read them back."""

    PREFIX = "rounding."

    # decimals
    scores: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that scores are rounded to.",
        word=Word(
            "decimals", text=_decimals_text, note="of scores and boxes; left out where neither is rounded"
        ),
        step=Step("rounding", "tables", _rounding),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("cuts", lambda protocol: protocol.rounding.scores is not None),),
    )
    boxes: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that the corners of boxes are rounded to.",
        step="rounding.scores",
        scope=prepares(Scope.ROW),
    )
    # stretched scores
    stretch_scores: bool = rule(
        False,
        check=flag,
        doc="Whether scores are stretched over [0, 1]: `(s - low) / (high - low)`, where `low` is the least "
        "score of all detections and at most 1, `high` the largest and at least 0 (WIDER FACE).",
        word=Word(
            "scores",
            text=_scores_text,
            note="`stretched` over [0, 1]; `none` where no score is read, `equal` where all count as equal",
        ),
        step=Step("scores", "tables", {False: "as given", True: "stretched over [0, 1]"}),
        scope=prepares(lambda protocol: Scope.DATA_SET if _scales(protocol) else Scope.ROW),
        refuses=_STRETCHING_REFUSED,
        does=(Does("prepare", "boxscore.extensions.crowds.stretching:stretched", _scales, 10),),
    )


# ---------------------------------------------------------------- boxes

Edges = Literal["sides", "corners"]
ForegroundShare = Literal["exact", "from_iou"]
Degenerate = Literal["count", "drop", "drop_detections"]
Clip = Literal["none", "image"]


def _ratio(value: Any, name: str) -> float | None:
    return None if value in (None, "none") else checks.number_between(value, 0, 1e6, name=name, open_low=True)


def _least_side(protocol: Any) -> str:
    """Format the shortest allowed side."""
    least = protocol.boxes.least_side
    return f"sides from {number_text(least)} pixels" if least else "counted"


def _longer(protocol: Any) -> str:
    """Format the added length."""
    longer = protocol.boxes.longer_sides
    return f"{number_text(longer)} pixel longer" if longer else "as given"


class BoxRules(Rules):
    """How boxes are measured."""

    PREFIX = "boxes."

    # overlaps
    pixel_offset: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to widths and heights; 1 counts the last pixel as inside (PASCAL VOC).",
        word=Word("offset"),
        step=Step("pixels", "overlaps", {0.0: "exact", 1.0: "+1"}),
        scope=measures(Scope.ROW),
    )
    # small boxes
    degenerate: Degenerate = rule(
        "count",
        check=choice(Degenerate),
        doc="Boxes without area: counted like any other; removed from both sides if the area is not above 0 "
        "(lvis-api); or removed from the detections if a side is not above 0 (Open Images).",
        word=Word("degenerate", silent="count"),
        step=Step(
            "boxes without area",
            "tables",
            {"count": "counted", "drop": "dropped", "drop_detections": "detections dropped"},
        ),
        scope=ranks(Scope.ROW),
    )
    least_side: float = rule(
        0.0,
        check=number(0, math.inf),
        doc="Ground truths with a side below this many pixels are removed from the data; for rotated boxes "
        "and corners, a side of the rotated rectangle (mmrotate: 2).",
        word=Word("leastside", silent=0.0),
        step=Step("small objects", "tables", _least_side),
        scope=ranks(Scope.ROW),
        does=(
            Does(
                "ignore",
                "boxscore.extensions.oriented.small_sides:without_small_sides",
                lambda protocol: protocol.boxes.least_side > 0,
            ),
        ),
    )
    # longer sides
    longer_sides: float = rule(
        0.0,
        check=number(0, 1e6),
        doc="Pixels added to the width and height of all boxes before anything else, so that areas change "
        "too (BDD100K: 1). `pixel_offset` only applies where boxes are compared.",
        word=Word("longer", silent=0.0),
        step=Step("sides of boxes", "tables", _longer),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("plain_tables", lambda protocol: protocol.boxes.longer_sides > 0),),
    )
    # clipping
    clip: Clip = rule(
        "none",
        check=choice(Clip),
        doc="Whether the boxes of both sides are clipped to their image: the first corner to [0, width - 1] "
        "and [0, height - 1], the second to [0, width] and [0, height] (CrowdHuman).",
        word=Word("clip", silent="none"),
        step=Step("boxes beyond the image", "tables", {"none": "as given", "image": "clipped"}),
        scope=prepares(lambda protocol: Scope.ROW if protocol.boxes.clip == "none" else Scope.IMAGE),
        refuses=(Refusal("plain_tables", lambda protocol: protocol.boxes.clip != "none"),),
        does=(
            Does(
                "prepare",
                "boxscore.extensions.crowds.clipping:clipped",
                lambda protocol: protocol.boxes.clip == "image",
                30,
            ),
        ),
    )
    # overlaps
    aspect_ratio: float | None = rule(
        None,
        check=Check('number > 0, "none"', _ratio),
        doc="Boxes are compared at this ratio of width to height; height and center are kept. Regions "
        "measured by intersection over the detection keep their own ratio (Caltech: 0.41).",
        word=Word("aspect", silent=None, note="left out where boxes are compared as they are"),
        step=Step("aspect ratio", "overlaps", {None: "as given"}),
        scope=measures(Scope.ROW),
    )
    edges: Edges = rule(
        "sides",
        check=choice(Edges),
        doc="If `pixel_offset` is 0, the far edges of a box: the near ones plus its sides, as in "
        "pycocotools; or the corners as given, from which the sides are computed. The two differ in the "
        "last bit.",
        word=Word("edges", silent="sides"),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
    foreground_share: ForegroundShare = rule(
        "exact",
        check=choice(ForegroundShare),
        doc="The share of a detection inside a region: the shared area over the detection's; or, computed "
        "from their IoU v, `v / (1 + v) * (1 + A / a)`, where A is the region's annotated area and a "
        "the detection's. For a crowd, v is the share itself. The formula gives no true share if A is "
        "not width times height, or for crowds (TinyBenchmark).",
        word=Word("share", silent="exact"),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
    overlap_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to the denominator of overlaps (CrowdHuman: 1e-6).",
        word=Word("overlapeps", silent=0.0),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
