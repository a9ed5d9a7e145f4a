"""Define ``[masks]``, ``[keypoints]`` and ``[distance]``: how to measure shapes other than boxes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import DESCRIBES, Does, Refusal, Scope, measures, one_measure, prepares
from boxscore.protocols.fields import Check, Reads, Rules, Step, Word, choice, list_of, number, rule, text
from boxscore.protocols.grids import number_text

# ---------------------------------------------------------------- masks

BoxOnlyTruth = Literal["refuse", "absorb"]
MaskPrecision = Literal["double", "single"]


class MaskRules(Rules):
    """How to measure masks."""

    PREFIX = "masks."

    boundary_dilation: float = rule(
        0.02,
        check=number(0, 1, open_low=True),
        doc="A boundary's width over the image's diagonal.",
        scope=measures(Scope.ROW),
    )
    box_only_truth: BoxOnlyTruth = rule(
        "refuse",
        check=choice(BoxOnlyTruth),
        doc="Ground truths without a mask: an error; or ignored, matched last and by their boxes, an object "
        "by one detection and a group by any number (Open Images). An empty mask counts as missing.",
        word=Word("boxonly", silent="refuse"),
        step=Step("objects without masks", "matching", {"refuse": "refused", "absorb": "absorb"}),
        scope=measures(Scope.ROW),
        refuses=(
            *one_measure(lambda protocol: protocol.masks_may_lack, "ground truths may lack their masks"),
            Refusal(
                "together",
                lambda protocol: protocol.masks_may_lack and protocol.matching.class_thresholds,
                "be left out where ground truths may lack their masks",
                field="matching.class_thresholds",
                got="some",
            ),
        ),
        does=(
            Does(
                "ignore",
                "boxscore.extensions.federated.groups:ignoring_box_only",
                lambda protocol: protocol.masks_may_lack,
            ),
        ),
    )
    precision: MaskPrecision = rule(
        "double",
        check=choice(MaskPrecision),
        doc="The precision in which overlaps of masks are divided: float64; or float32, with at least 1e-7 "
        "as denominator (Open Images). It decides which of two nearly equal overlaps is larger.",
        word=Word("precision", silent="double"),
        step=Step("precision of mask overlaps", "overlaps"),
        scope=measures(Scope.ROW),
    )


# ---------------------------------------------------------------- keypoints

KeypointScale = Literal["area", "box"]
UnlabeledSimilarity = Literal["box", "zero"]
Unplaced = Literal["count", "drop"]


_ANY_PAIR = Check("[keypoint, keypoint]", lambda value, name: value)


def _scale(protocol: Any) -> str:
    """Describe the area of an object; empty if it is the annotated area."""
    rules = protocol.keypoints
    if rules.scale == "area":
        return ""
    return "box" if rules.box_share == 1 else f"box*{number_text(rules.box_share)}"


def _columns_read(protocol: Any) -> tuple[str, ...]:
    """Return the keys of records that keypoints are joined from or ranked by."""
    rules = protocol.keypoints
    return tuple(name for name in (*rules.parts, *rules.scores) if name not in ("keypoints", "score"))


class KeypointRules(Rules):
    """How to measure keypoints."""

    PREFIX = "keypoints."

    sigmas: tuple[float, ...] = rule(
        (),
        check=list_of(number(0, 1000, open_low=True), "a list"),
        doc="Spread of annotators around each keypoint, relative to the object's size, [J].",
        scope=measures(Scope.ROW),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.similarity == "keypoints" and not protocol.keypoints.sigmas,
                "be given",
                got="none",
            ),
        ),
    )
    names: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of the keypoints, [J]; optional.",
        scope=DESCRIBES,
    )
    skeleton: tuple[tuple[int, int], ...] = rule(
        (),
        check=list_of(_ANY_PAIR, "a list"),
        doc="Pairs of keypoints joined by a limb, counted from 1 as in COCO files; for drawing only.",
        scope=DESCRIBES,
    )
    parts: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Keys of records, or columns, whose keypoints are concatenated in this order and compared "
        "(COCO-WholeBody: `keypoints`, `foot_kpts`, ...). Empty: only `keypoints`.",
        word=Word("parts", silent=(), text=lambda protocol: "+".join(protocol.keypoints.parts)),
        step=Step("keypoints that are compared", "tables", lambda p: "+".join(p.keypoints.parts) or "all"),
        scope=prepares(Scope.ROW),
        reads=Reads("rows", _columns_read),
        does=(
            Does(
                "prepare",
                "boxscore.extensions.keypoints.joining:with_compared_keypoints",
                lambda protocol: protocol.similarity == "keypoints",
                -20,
            ),
        ),
    )
    scores: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Keys of detections, or columns, that hold the score; the first that a detection has is used "
        "(COCO-WholeBody: `face_score`, `score`). Empty: `score`.",
        word=Word("scored", silent=(), text=lambda protocol: "+".join(protocol.keypoints.scores)),
        step=Step("scores of parts", "tables", lambda p: "+".join(p.keypoints.scores) or "score"),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("cuts", lambda protocol: protocol.keypoints.scores != ()),),
    )
    scale: KeypointScale = rule(
        "area",
        check=choice(KeypointScale),
        doc="The size of a ground truth in similarities and area ranges: its area, or width times height of "
        "its box (CrowdPose, OCHuman).",
        word=Word("scale", text=_scale, note="`box`, and its share; left out for the area"),
        step=Step("size of an object", "tables", lambda protocol: _scale(protocol) or "area"),
        scope=prepares(Scope.ROW),
    )
    box_share: float = rule(
        1.0,
        check=number(0, 100, open_low=True),
        doc='For "box": factor on width times height (CrowdPose, ultralytics: 0.53).',
        step="keypoints.scale",
        scope=prepares(Scope.ROW),
    )
    unlabeled_similarity: UnlabeledSimilarity = rule(
        "box",
        check=choice(UnlabeledSimilarity),
        doc="Similarity of a detection and a ground truth without a labeled keypoint: from its distance to "
        "the doubled box (pycocotools), or 0 (ultralytics).",
        word=Word("nokptsim", silent="box"),
        step=Step("similarity without keypoints", "overlaps"),
        scope=measures(Scope.ROW),
    )
    unplaced: Unplaced = rule(
        "count",
        check=choice(Unplaced),
        doc="Detections whose keypoints all have a third value of 0 or less: counted like any other "
        "(pycocotools), or dropped before anything else (xtcocotools).",
        word=Word("unplaced", silent="count"),
        step=Step("detections without keypoints", "tables"),
        scope=prepares(lambda p: Scope.IMAGE if p.keypoints.unplaced == "drop" else Scope.ROW),
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
        """The sigmas to compute with, [J]."""
        return np.array(self.sigmas, dtype=np.float64)


# ---------------------------------------------------------------- distances

DistanceAnchor = Literal["center", "point"]


def _largest(protocol: Any) -> str:
    """Format the largest distance."""
    return f"similarity 0 at {number_text(protocol.distance.largest)} pixels"


def _points(protocol: Any) -> tuple[str, ...]:
    """Name the column of points, if points are compared."""
    compared = protocol.similarity in ("distance", "point_in_box", "point_in_mask")
    uses_points = compared and protocol.distance.anchor == "point"
    return ("point",) if uses_points else ()


class DistanceRules(Rules):
    """How far apart two objects may be, for similarities by distance."""

    PREFIX = "distance."

    largest: float = rule(
        100.0,
        check=number(0, 1e9, open_low=True),
        doc="The distance, in the unit of the coordinates, at which the similarity is 0: it is 1 - d / "
        "largest, so a threshold of 0.75 is a quarter of this value. Matching compares the distance "
        "itself with that limit.",
        step=Step("scale of distances", "overlaps", _largest),
        scope=measures(Scope.ROW),
    )
    anchor: DistanceAnchor = rule(
        "center",
        check=choice(DistanceAnchor),
        doc="The point of an object for distances, and the point of a detection that must be inside a box "
        "or mask: the center of its box, or the key or column `point`, x and y.",
        step="distance.largest",
        scope=measures(Scope.ROW),
        reads=Reads("rows", _points),
    )
