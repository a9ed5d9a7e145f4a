"""How much of a detection must lie on what is ignored, and what is ignored for every class."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, matches, prepares
from boxscore.protocols.fields import Rules, Step, Word, choice, rule, text

Share = Literal["each", "sum"]


def _sums(protocol: Any) -> bool:
    return bool(protocol.ignore.share == "sum")


@part(frozen=True)
class ShareField(Rules):
    """What an unmatched detection is compared with."""

    share: Share = rule(
        "each",
        check=choice(Share),
        doc="What intersections over the detection are with: each ignored object alone; or all ignored "
        "objects of the class together (Cityscapes). Then nothing else matches them, only detections that "
        "overlap no counted object enough, and a crowd that is also outside of the range counts twice.",
        word=Word("shares", silent="each"),
        step=Step("shares on ignored objects", "matching", {"each": "of each", "sum": "of all together"}),
        scope=matches(lambda protocol: Scope.IMAGE if _sums(protocol) else Scope.ROW),
        refuses=(
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.similarity != "mask",
                "be 'mask' where shares of detections are added up",
                field="similarity",
                cause='pixels are added up: give masks, or take ignore.share = "each"',
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.masks_may_lack,
                "be 'refuse' where shares of detections are added up",
                field="masks.box_only_truth",
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and protocol.group.treatment == "merge",
                "be 'count' where shares of detections are added up",
                field="group.treatment",
            ),
            Refusal(
                "together",
                lambda protocol: _sums(protocol) and bool(protocol.matching.class_thresholds),
                "be left out where shares of detections are added up",
                field="matching.class_thresholds",
                got="some",
            ),
        ),
        does=(Does("pairs", "boxscore.matching.shares:summed_shares", _sums, 10),),
    )


def _has_void(protocol: Any) -> bool:
    return bool(protocol.ignore.void)


@part(frozen=True)
class VoidField(Rules):
    """Regions of no class."""

    void: str = rule(
        "",
        check=text,
        doc="The class whose objects are regions of no class: in each class that is detected in their image "
        "they are objects with the flag `ignore` (Cityscapes).",
        word=Word("void", silent=""),
        step=Step("regions of no class", "tables", {"": "none"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.ignore.void else Scope.ROW),
        refuses=(Refusal("plain_tables", _has_void),),
        does=(Does("prepare", "boxscore.matching.regions:with_void", _has_void, 60),),
    )
