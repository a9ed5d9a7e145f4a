"""Regions of an image that are not annotated."""

from __future__ import annotations

from typing import Any

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, prepares
from boxscore.protocols.fields import Rules, Step, Word, rule, text


def _has_regions(protocol: Any) -> bool:
    return bool(protocol.ignore.regions)


@part(frozen=True)
class RegionsField(Rules):
    """What lies in a region is dropped."""

    regions: str = rule(
        "",
        check=text,
        doc="The class whose objects are regions of their image that are not annotated: objects and "
        "detections of every class that lie in them by half or more are dropped before anything else "
        "(VisDrone).",
        word=Word("regions", silent=""),
        step=Step("regions that are not annotated", "tables", {"": "none"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.ignore.regions else Scope.ROW),
        refuses=(Refusal("plain_tables", _has_regions),),
        does=(Does("prepare", "boxscore.matching.regions:outside_regions", _has_regions, 40),),
    )
