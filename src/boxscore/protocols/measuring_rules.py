"""How objects are measured: the tables ``rounding``, ``boxes``, ``masks`` and ``keypoints`` of a protocol."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.records import record
from boxscore.errors import ProtocolError
from boxscore.protocols import wording
from boxscore.protocols.fields import (
    Check,
    Rules,
    Step,
    Word,
    choice,
    flag,
    list_of,
    number,
    rule,
    text,
    with_attributes,
)

__all__ = [
    "BoxRules",
    "KeypointRules",
    "MaskRules",
    "RoundingRules",
]

BoxOnlyTruth = Literal["refuse", "absorb"]
Clip = Literal["none", "image"]
Edges = Literal["sides", "corners"]
Degenerate = Literal["count", "drop", "drop_detections"]
MaskPrecision = Literal["double", "single"]


def _decimals(value: Any, name: str) -> int | None:
    return None if value in (None, "none") else checks.whole_number(value, 0, name=name)


def _ratio(value: Any, name: str) -> float | None:
    return None if value in (None, "none") else checks.number_between(value, 0, 1e6, name=name, open_low=True)


_DECIMALS = Check('whole number, "none"', _decimals)
_ANY_PAIR = Check("[keypoint, keypoint]", lambda value, name: value)


@with_attributes
@record(frozen=True)
class RoundingRules(Rules):
    """What detections lose before anything else, as in tools that write them to text and read them again."""

    PREFIX = "rounding."

    scores: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that scores are rounded to.",
        word=Word(
            "decimals", text=wording.decimals, note="of scores and boxes; left out where neither is rounded"
        ),
        step=Step("numbers", "tables", wording.rounding),
    )
    boxes: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that the corners of boxes are rounded to.",
        step="rounding.scores",
    )
    stretch_scores: bool = rule(
        False,
        check=flag,
        doc="Whether scores are stretched over [0, 1]: `(s - low) / (high - low)`, where `low` is the least "
        "score of all detections and at most 1, `high` the largest and at least 0 (WIDER FACE).",
        word=Word("scores", silent=False, text={True: "stretched"}, note="`stretched` over [0, 1]"),
        step=Step("scores", "tables", {False: "as given", True: "stretched over [0, 1]"}),
    )


@with_attributes
@record(frozen=True)
class BoxRules(Rules):
    """How boxes are measured."""

    PREFIX = "boxes."

    pixel_offset: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to widths and heights; 1 counts the last pixel as inside (PASCAL VOC).",
        word=Word("offset"),
        step=Step("pixels", "overlaps", {0.0: "exact", 1.0: "+1"}),
    )
    degenerate: Degenerate = rule(
        "count",
        check=choice(Degenerate),
        doc="What has no area: counted as any other; detections and ground truths whose area is not above 0 "
        "taken out (lvis-api); or detections alone, with a side that is not above 0 (Open Images).",
        word=Word("degenerate", silent="count"),
        step=Step(
            "boxes without area",
            "tables",
            {"count": "counted", "drop": "dropped", "drop_detections": "detections dropped"},
        ),
    )
    least_side: float = rule(
        0.0,
        check=number(0, math.inf),
        doc="Ground truths with a side below this many pixels are taken out of the data; of rotated boxes "
        "and corners, a side of the rotated rectangle (mmrotate: 2).",
        word=Word("leastside", silent=0.0),
        step=Step("small objects", "tables", wording.least_side),
    )
    clip: Clip = rule(
        "none",
        check=choice(Clip),
        doc="Whether the boxes of both sides are clipped to their image: the first corner to "
        "[0, width - 1] and [0, height - 1], the second to [0, width] and [0, height] (CrowdHuman).",
        word=Word("clip", silent="none"),
        step=Step("boxes beyond the image", "tables", {"none": "as given", "image": "clipped"}),
    )
    aspect_ratio: float | None = rule(
        None,
        check=Check('number > 0, "none"', _ratio),
        doc="The ratio of width to height that boxes are compared with: height and centre stay. Regions "
        "that are "
        "measured by intersection over the detection keep theirs (Caltech: 0.41).",
        word=Word("aspect", silent=None, note="left out where boxes are compared as they are"),
        step=Step("aspect ratio", "overlaps", {None: "as given"}),
    )
    edges: Edges = rule(
        "sides",
        check=choice(Edges),
        doc="Where `pixel_offset` is 0, what the far edges of a box are: the near ones plus its sides, as in "
        "pycocotools, or the corners as they are, which its sides are then made of. They differ in the last "
        "bit.",
        word=Word("edges", silent="sides"),
        step="boxes.pixel_offset",
    )
    overlap_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to the area that the shared one is divided by (CrowdHuman: 1e-6).",
        word=Word("overlapeps", silent=0.0),
        step="boxes.pixel_offset",
    )


@with_attributes
@record(frozen=True)
class MaskRules(Rules):
    """How masks are measured."""

    PREFIX = "masks."

    boundary_dilation: float = rule(
        0.02,
        check=number(0, 1, open_low=True),
        doc="A boundary's width over the image's diagonal.",
    )
    box_only_truth: BoxOnlyTruth = rule(
        "refuse",
        check=choice(BoxOnlyTruth),
        doc="Ground truths without a mask: refused; or, matched last and by their boxes, ignored, an object "
        "by one detection and a group by any number (Open Images). An empty mask is none.",
        word=Word("boxonly", silent="refuse"),
        step=Step("objects without masks", "matching", {"refuse": "refused", "absorb": "absorb"}),
    )
    precision: MaskPrecision = rule(
        "double",
        check=choice(MaskPrecision),
        doc="What overlaps of masks are divided in: float64; or float32, with at least 1e-7 below the line "
        "(Open Images). It decides which of nearly equal overlaps is the larger.",
        word=Word("precision", silent="double"),
        step=Step("precision of mask overlaps", "overlaps"),
    )


@with_attributes
@record(frozen=True)
class KeypointRules(Rules):
    """How keypoints are measured."""

    PREFIX = "keypoints."

    sigmas: tuple[float, ...] = rule(
        (),
        check=list_of(number(0, 1000, open_low=True), "a list"),
        doc="How far annotators scatter around each keypoint, relative to the object's size, [J].",
    )
    names: tuple[str, ...] = rule(
        (), check=list_of(text, "a list"), doc="Names of the keypoints, [J]; may be left out."
    )
    skeleton: tuple[tuple[int, int], ...] = rule(
        (),
        check=list_of(_ANY_PAIR, "a list"),
        doc="Pairs of keypoints joined by a limb, counted from 1 as in COCO files; for drawing only.",
    )

    def _check_together(self) -> None:
        if self.names:
            checks.same_length(len(self.sigmas), of="keypoints.sigmas", names=self.names)
        known = range(1, len(self.sigmas) + 1)
        for limb in self.skeleton:
            is_pair = isinstance(limb, (list, tuple)) and len(limb) == 2
            if not is_pair or not all(isinstance(end, int) and end in known for end in limb):
                pairs = f"be pairs of keypoints, 1 to {len(self.sigmas)}"
                raise ProtocolError("keypoints.skeleton", pairs, got=repr(limb))
        object.__setattr__(self, "skeleton", tuple(tuple(limb) for limb in self.skeleton))

    @property
    def spread(self) -> NDArray[np.float64]:
        """The sigmas as they are computed with, [J]."""
        return np.array(self.sigmas, dtype=np.float64)
