"""Boxes clipped to their image."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, prepares
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

Clip = Literal["none", "image"]


@part(frozen=True)
class ClippingField(Rules):
    """Whether boxes are clipped; the size of an image can stand beside its detections alone."""

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
                "boxscore.matching.clipping:clipped",
                lambda protocol: protocol.boxes.clip == "image",
                30,
            ),
        ),
    )
