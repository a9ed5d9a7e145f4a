"""How boxes are measured: pixels, edges, one shape for all, and what overlaps are divided by."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils import checks
from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, measures
from boxscore.protocols.fields import Check, Rules, Step, Word, choice, number, rule

Edges = Literal["sides", "corners"]
ForegroundShare = Literal["exact", "from_iou"]


def _ratio(value: Any, name: str) -> float | None:
    return None if value in (None, "none") else checks.number_between(value, 0, 1e6, name=name, open_low=True)


@part(frozen=True)
class PixelOffsetField(Rules):
    """Whether the last pixel of a box is inside."""

    pixel_offset: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to widths and heights; 1 counts the last pixel as inside (PASCAL VOC).",
        word=Word("offset"),
        step=Step("pixels", "overlaps", {0.0: "exact", 1.0: "+1"}),
        scope=measures(Scope.ROW),
    )


@part(frozen=True)
class AspectRatioField(Rules):
    """The ratio that boxes are compared with."""

    aspect_ratio: float | None = rule(
        None,
        check=Check('number > 0, "none"', _ratio),
        doc="The ratio of width to height that boxes are compared with: height and centre stay. Regions "
        "that are measured by intersection over the detection keep theirs (Caltech: 0.41).",
        word=Word("aspect", silent=None, note="left out where boxes are compared as they are"),
        step=Step("aspect ratio", "overlaps", {None: "as given"}),
        scope=measures(Scope.ROW),
    )


@part(frozen=True)
class EdgeFields(Rules):
    """What decides the last bits of an overlap."""

    edges: Edges = rule(
        "sides",
        check=choice(Edges),
        doc="Where `pixel_offset` is 0, what the far edges of a box are: the near ones plus its sides, as "
        "in pycocotools, or the corners as they are, which its sides are then made of. They differ in the "
        "last bit.",
        word=Word("edges", silent="sides"),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
    foreground_share: ForegroundShare = rule(
        "exact",
        check=choice(ForegroundShare),
        doc="How much of a detection a region holds, where that decides: the shared area over its own; or "
        "made of their IoU v by `v / (1 + v) * (1 + A / a)`, A the region's area as annotated and a the "
        "detection's, where v of a crowd is its share (TinyBenchmark). That is no share where A is not "
        "width times height, and of crowds.",
        word=Word("share", silent="exact"),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
    overlap_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to the area that the shared one is divided by (CrowdHuman: 1e-6).",
        word=Word("overlapeps", silent=0.0),
        step="boxes.pixel_offset",
        scope=measures(Scope.ROW),
    )
