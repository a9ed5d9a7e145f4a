"""What the flags of the ground truth mean: crowd, difficult and ignore."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, matches
from boxscore.protocols.fields import Reads, Rules, Step, Word, choice, list_of, rule, text

CrowdRule = Literal["iof", "ignore", "count", "delete"]
IgnoreRule = Literal["ignore", "count", "delete"]
FlaggedRule = Literal["ignore", "iof", "count", "delete"]

_IN_WORDS = {"ignore": "ignored", "count": "counted", "delete": "deleted", "iof": "ignored, by IoF"}


@part(frozen=True)
class FlagFields(Rules):
    """How objects with a flag are treated."""

    crowd: CrowdRule = rule(
        "iof",
        check=choice(CrowdRule),
        doc="Crowd regions: ignored and measured by intersection over the detection (COCO), ignored and "
        "measured by IoU, counted as any object, or taken out of the data before matching. Ignored, they "
        "absorb any number of detections.",
        word=Word("crowd"),
        step=Step("crowd regions", "tables", _IN_WORDS | {"ignore": "ignored, by IoU"}),
        scope=matches(Scope.ROW),
    )
    difficult: IgnoreRule = rule(
        "count",
        check=choice(IgnoreRule),
        doc="Difficult objects: ignored, absorbing any number of detections; counted as any object; or "
        "taken out of the data before matching.",
        word=Word("difficult", silent="count"),
        step=Step("difficult objects", "tables", _IN_WORDS),
        scope=matches(Scope.ROW),
    )
    flagged: FlaggedRule = rule(
        "ignore",
        check=choice(FlaggedRule),
        doc="Ground truths whose `ignore` flag is set: ignored, each taken by at most one detection; "
        "ignored, absorbing any number and measured by intersection over the detection; counted as any "
        "object; or taken out of the data before matching.",
        word=Word("flagged", silent="ignore"),
        step=Step("objects flagged ignore", "tables", _IN_WORDS),
        scope=matches(Scope.ROW),
    )
    flags: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Keys of annotations, or columns, that set the `ignore` flag where they are true: COCO files "
        '`["ignore"]` (SODA-D), `["ignore", "uncertain"]` (TinyPerson). Empty: as the format reads it.',
        word=Word("flags", silent=(), text=lambda protocol: "+".join(protocol.ignore.flags)),
        step="ignore.flagged",
        scope=matches(Scope.ROW),
        refuses=(Refusal("plain_tables", lambda protocol: protocol.ignore.flags != ()),),
        reads=Reads("rows", lambda protocol: protocol.ignore.flags),
    )
