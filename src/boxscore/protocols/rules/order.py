"""In which order detections choose."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, matches
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

Order = Literal["score", "file"]


def _by_file(protocol: Any) -> bool:
    return bool(protocol.matching.order == "file")


@part(frozen=True)
class OrderField(Rules):
    """Who comes first."""

    order: Order = rule(
        "score",
        check=choice(Order),
        doc="In which order the detections of an image and class choose their ground truths: by descending "
        "score, or as they stand in the file, whatever their scores (xView). Curves are over descending "
        "scores in either case, and max detections keep the highest ones.",
        word=Word("by", silent="score"),
        step=Step("order of matching", "matching", {"score": "by score", "file": "as in the file"}),
        scope=matches(Scope.IMAGE),
        refuses=(
            Refusal("cuts", _by_file),
            Refusal("plain_tables", _by_file),
            Refusal(
                "together",
                lambda protocol: _by_file(protocol) and len(protocol.matching.max_detections) > 1,
                "be one number at most where detections are matched in file order",
                field="matching.max_detections",
            ),
        ),
    )
