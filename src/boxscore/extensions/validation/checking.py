"""Run every check of tables, and sort the findings."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils.records import NamedTuple
from boxscore.data.hints import SAID_OF_NUMBERING
from boxscore.extensions.validation._findings import (
    BOXES_OF_MASKS,
    COSTLY,
    HIGH,
    LOW,
    PLACED,
    SIZES_SWAPPED,
    WHEN_ASKED,
    Context,
    Finding,
    by_weight,
)
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

ProtocolLike = str | Path | Mapping[str, Any] | Protocol


class Check(NamedTuple):
    """A check of tables, and a condition on the tables."""

    function: str
    """``module.function`` of this package; the module is imported when the check runs."""
    applies: Callable[[Context], bool] | None = None
    """Whether the check can find anything; None: in all tables."""

    def findings(self, context: Context) -> Iterator[Finding]:
        """Run the check."""
        if self.applies is None or self.applies(context):
            module, name = self.function.split(".")
            yield from getattr(importlib.import_module(f"boxscore.extensions.validation.{module}"), name)(
                context
            )


def _holds_what_is_unread(context: Context) -> bool:
    """Return whether detections have more than boxes, or annotations have a flag that is not read."""
    given = context.detections.instances if context.detections is not None else None
    shapes = ("quadrilaterals", "rotated", "masks", "keypoints")
    if given is not None and any(given.shows(name) for name in shapes):
        return True
    return any(getattr(context.ground_truth, name).any() for name in context.unread_flags)


def _masks_matter(context: Context) -> bool:
    """Return whether masks are compared or checked on request, or may explain a score near 0."""
    tables = (context.ground_truth, context.detections)
    if not any(table is not None and table.instances.shows("masks") for table in tables):
        return False
    return context.compares_masks or context.effort == WHEN_ASKED or context.is_below(LOW)


def _may_be_mismatched(context: Context) -> bool:
    if context.detections is None or not len(context.ground_truth):
        return False
    if not len(context.detections) and context.renumbered is None:
        return False
    return context.effort == WHEN_ASKED or context.is_below(LOW)


def _may_be_of_network(context: Context) -> bool:
    if context.detections is None or not len(context.ground_truth) or not len(context.detections):
        return False
    return context.protocol.similarity == "box" and context.detections.boxes_given and context.is_below(HIGH)


def _has_silent_class(context: Context) -> bool:
    if context.detections is None or context.chosen_classes:
        return False
    return bool(context.silent_classes.any())


def _has_image_labels(context: Context) -> bool:
    return context.ground_truth.image_labels is not None


def _asks_for_image_labels(context: Context) -> bool:
    return context.protocol.labels.unlisted == "drop" or context.effort == WHEN_ASKED


def _may_be_lvis(context: Context) -> bool:
    return context.effort == WHEN_ASKED or "frequency" in context.ground_truth.categories.columns


CHECKS = (
    Check("structural.structural_findings"),
    Check("geometric.geometric_findings"),
    Check("unread.unread_findings", _holds_what_is_unread),
    Check("semantic.semantic_findings"),
    Check("masks.mask_findings", _masks_matter),
    Check("network.network_findings", _may_be_of_network),
    Check("mismatch.mismatch_findings", _may_be_mismatched),
    Check("misnamed.misnamed_findings", _has_silent_class),
    Check("image_labels.not_exhaustive_findings", _has_image_labels),
    Check("lvis.lvis_findings", _may_be_lvis),
    Check("image_labels.image_label_findings", _asks_for_image_labels),
)
"""The checks, in the order in which they run."""

FORMS = ("annotation-box-order", "detection-box-order")
"""Codes of findings about the form of the boxes."""
SURE = (*PLACED, BOXES_OF_MASKS, *FORMS, "classes-numbered-differently", "images-off-by-one")
"""Codes of causes that are certain if their repair raises the score."""
FROM_CLASSES = ("class-always-called-another", "class-without-detections", "score-floor")
"""Codes of consequences of classes that are numbered differently or mostly unknown."""
FROM_PLACES = (
    *("class-always-called-another", "classes-numbered-differently", "score-floor"),
    *("detections-off-annotations", "images-off-by-one"),
)
"""Codes of consequences of boxes in another form, or in other images."""


def check(context: Context) -> list[Finding]:
    """Run every check; return errors first, and within a severity by descending effect."""
    findings = [finding for one in CHECKS for finding in one.findings(context)]
    follows = consequences(context, findings)
    weighed = by_weight(finding for finding in findings if finding.code not in follows)
    # Two checks may see exchanged image sizes: the one that knows their effect is first.
    seen = [finding.code for finding in weighed]
    return [one for at, one in enumerate(weighed) if one.code != SIZES_SWAPPED or at == seen.index(one.code)]


def consequences(context: Context, findings: Sequence[Finding]) -> set[str]:
    """Return the codes of consequences of a certain cause that is reported itself."""
    sure = {
        one.code
        for one in findings
        if one.code in SURE
        and one.repair
        and one.effect > 0
        # For a single class, cause and consequence may be reversed.
        and (one.code != "classes-numbered-differently" or one.count > 1)
    }
    left_out = 0 if context.detections is None else sum(context.detections.left_out.values())
    # A wrong form, or shifted images, explains findings about places.
    follows: set[str] = set()
    if BOXES_OF_MASKS in sure:
        follows.update((*FROM_PLACES, *FORMS, *PLACED, "classes-numbered-differently"))
        follows.add("annotation-outside-image")
    elif sure.intersection(PLACED):
        follows.update((*FROM_PLACES, "detection-box-order", "detection-outside-image"))
    elif sure.intersection(FORMS):
        follows.update(FROM_PLACES)
    elif "images-off-by-one" in sure:
        follows.update(set(FROM_PLACES) - sure)
    # Exchanged image sizes explain boxes outside their image, even if they do not change the score.
    if any(one.code == SIZES_SWAPPED for one in findings):
        follows.update(("annotation-outside-image", "detection-outside-image"))
    # Detections beyond the limit explain a low recall.
    if any(one.code == "beyond-max-detections" and one.effect > COSTLY for one in findings):
        follows.add("score-floor")
    # Another numbering, or many unknown classes, explains findings about classes.
    numbered = "classes-numbered-differently" in sure or context.was_said(SAID_OF_NUMBERING)
    if numbered or (context.detections is not None and left_out > len(context.detections)):
        follows.update(FROM_CLASSES)
        if left_out:
            follows.add("image-without-detections")
    return follows


def judging_protocol(protocol: ProtocolLike | None, *, scored: bool) -> Protocol:
    """Return the given protocol, or ``coco``; without scores, its counting form or ``scoreless``."""
    if scored:
        return load_protocol("coco" if protocol is None else protocol)
    from boxscore.protocols import without_scores

    return load_protocol("scoreless") if protocol is None else without_scores(load_protocol(protocol))
