"""Check for common mix-ups with LVIS: sizes measured by boxes, results for the other version."""

from __future__ import annotations

from collections.abc import Iterator

from boxscore._utils.text import counted, verb
from boxscore.data.tables import Detections
from boxscore.evaluation import Evaluation
from boxscore.extensions.validation._findings import WHEN_ASKED, Context, Finding
from boxscore.matching.matcher import Matcher
from boxscore.similarity.registry import similarity_of

CLASSES = {1203: ("v1", "v0.5"), 1230: ("v0.5", "v1")}
"""LVIS's versions by number of classes, each with the other version."""


def lvis_findings(context: Context) -> Iterator[Finding]:
    """Check how the size of mask detections is measured, and whether classes belong to this version."""
    detections = context.detections
    if detections is None or not len(detections):
        return
    if context.effort == WHEN_ASKED:
        yield from _areas_of_boxes(context, detections)
    yield from _other_version(context, detections)


def _areas_of_boxes(context: Context, detections: Detections) -> Iterator[Finding]:
    """Report that sizes of masks are measured by their boxes, and the effect on the metrics."""
    # Only mask results with boxes of their own can be measured in two ways.
    protocol = context.protocol
    by_boxes = "masks" in similarity_of(protocol).needed_columns and detections.boxes_given
    rows = [row for row in protocol.rows if row.area != "all"]
    if (
        not by_boxes
        or protocol.ignore.detection_area != "box_or_mask"
        or not rows
        or detections.masks is None
    ):
        return
    # Match once and change only the area rule: both readings share their pairs.
    ignore = protocol.ignore.replaced(detection_area="mask")
    other = protocol.replaced(ignore=ignore)
    as_given = Matcher(context.ground_truth, detections, protocol)
    values = [
        Evaluation(context.ground_truth, matcher.detections, rules, matcher.match()).metrics
        for matcher, rules in ((as_given, protocol), (as_given.under(other), other))
    ]
    # Report only metrics that change; the last test excludes NaN.
    moved = [
        f"{row.key} {values[0][row.key]:.4f} -> {values[1][row.key]:.4f}"
        for row in rows
        if values[0][row.key] != values[1][row.key] and values[0][row.key] == values[0][row.key]
    ]
    if moved:
        yield context.finding(
            "mask-areas-by-boxes",
            "semantic",
            "warning",
            len(detections),
            "the results contain bbox as well as masks, so the box area decides which detections are "
            "small, medium or large, as in pycocotools and lvis-api; detectron2 and the LVIS challenge "
            f"remove bbox first (--detection-area mask). With mask areas: {', '.join(moved)}",
        )


def _other_version(context: Context, detections: Detections) -> Iterator[Finding]:
    """Report results whose class ids belong to LVIS's other version."""
    categories = context.ground_truth.categories
    names = CLASSES.get(len(categories))
    if names is None or not detections.left_out or "frequency" not in categories.columns:
        return
    count = sum(detections.left_out.values())
    yield context.finding(
        "lvis-version",
        "semantic",
        "error",
        count,
        f"the ground truth has the {counted(len(categories), 'class')} of LVIS {names[0]}, but "
        f"{counted(count, 'detection')} {verb(count, 'have')} other classes. Are these results of LVIS "
        f"{names[1]}, which uses the ids for other classes?",
    )
