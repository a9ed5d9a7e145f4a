"""Define ``[masks]``: how masks are measured, and how missing ones are handled."""

from __future__ import annotations

from typing import Literal

from boxscore.protocols.acting import Does, Refusal, Scope, measures, one_measure
from boxscore.protocols.fields import Rules, Step, Word, choice, number, rule

BoxOnlyTruth = Literal["refuse", "absorb"]
MaskPrecision = Literal["double", "single"]


class MaskRules(Rules):
    """How masks are measured."""

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
        doc="Ground truths without a mask: refused; or, matched last and by their boxes, ignored, an object "
        "by one detection and a group by any number (Open Images). An empty mask is none.",
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
        doc="What overlaps of masks are divided in: float64; or float32, with at least 1e-7 below the line "
        "(Open Images). It decides which of nearly equal overlaps is the larger.",
        word=Word("precision", silent="double"),
        step=Step("precision of mask overlaps", "overlaps"),
        scope=measures(Scope.ROW),
    )
