"""Find data that both tables have but the protocol does not read: oriented boxes, keypoints, masks, flags.

Conventions
-----------
- Files of masks or keypoints usually have boxes too: instance segmentation and pose models are also scored by
  boxes. Another protocol was intended only if the detections lack boxes, so that boxes around their masks or
  keypoints are used.
- Oriented boxes on both sides are meant to be compared as such.
- The repair is the option that reads the data, with the first metric of that protocol. Quick checks compute
  it too, unless the tables are so large that another evaluation takes a second.
- Quick checks do not load columns that the evaluation did not need: they name the option without its number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, verb
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import ProtocolError
from boxscore.extensions.validation._findings import (
    IN_PASSING,
    Context,
    Finding,
    Repair,
    RowCheck,
    with_truth,
)
from boxscore.protocols import load_protocol, protocol_of_type
from boxscore.protocols.protocol import Protocol

DIFFICULT = "voc2007"
"""The protocol that reads difficult objects of upright boxes."""


def unread_findings(context: Context) -> Iterator[Finding]:
    """Check what the protocol does not read: columns, then flags."""
    oriented = list(_oriented(context)) if context.detections is not None else []
    yield from oriented
    if context.detections is not None and not oriented:
        yield from _derived_boxes(context, context.detections)
    yield from _flags(context, difficult_said=bool(oriented))


def _oriented(context: Context) -> Iterator[Finding]:
    """Report oriented boxes on both sides that are compared as upright ones."""
    truth, detections, protocol = context.ground_truth, context.detections, context.protocol
    if protocol.similarity != "box" or detections is None or not len(truth) or not len(detections):
        return
    if _form(truth) is None or _form(detections) is None:
        return
    # Find the protocol for these boxes, and count the difficult objects that it would ignore.
    corners = "quadrilaterals" in (_form(truth), _form(detections))
    other = load_protocol("dota" if corners else "coco-rotated")
    flagged = int(truth.difficult.sum()) if protocol.ignore.difficult == "count" else 0
    also = (
        f"; {counted(flagged, 'difficult object')} {verb(flagged, 'count')} like any other" if flagged else ""
    )
    yield context.finding(
        "oriented-boxes-without-effect",
        "semantic",
        "warning",
        len(detections),
        f"ground truth and detections have {('four corners' if corners else 'rotated boxes')}, but the "
        f"protocol {protocol.name} compares the upright boxes around them{also}",
        table=detections,
        rows=np.arange(min(1, len(detections))),
        repair=f"with --protocol {other.name}",
        repaired=_score_under(other),
        at_once=context.is_soon(other),
    )


def _form(table: BoxTable) -> str | None:
    return next((name for name in ("quadrilaterals", "rotated") if table.instances.shows(name)), None)


def _derived_boxes(context: Context, detections: Detections) -> Iterator[Finding]:
    """Report detections without boxes whose keypoints or masks the protocol does not compare."""
    truth, protocol = context.ground_truth, context.protocol
    if protocol.similarity != "box" or detections.boxes_given or not len(detections) or not len(truth):
        return
    for code, name, iou_type in (
        ("keypoints-without-effect", "keypoints", "keypoints"),
        ("masks-without-effect", "masks", "segm"),
    ):
        if not (detections.instances.shows(name) and truth.instances.shows(name)):
            continue
        # Suggest the other protocol only if it can read both tables; quick checks load no column for it.
        known = context.effort > IN_PASSING or all(t.instances.is_read(name) for t in (truth, detections))
        other = _protocol_of_type(protocol, iou_type)
        fits = other is not None and _fits(other, detections, truth if known else None)
        repaired = _score_under(other) if fits and known and other is not None else None
        yield context.finding(
            code,
            "semantic",
            "warning",
            len(detections),
            f"the detections are {name} without boxes, but the protocol {protocol.name} compares the "
            "boxes around them"
            + ("" if known or not fits else f": use --iou-type {iou_type} to compare the {name}"),
            table=detections,
            rows=np.arange(1),
            repair=f"with --iou-type {iou_type}" if fits else "",
            repaired=repaired,
            at_once=repaired is not None and other is not None and context.is_soon(other),
        )
        return


def _protocol_of_type(protocol: Protocol, iou_type: str) -> Protocol | None:
    try:
        return protocol_of_type(protocol, iou_type)
    # The protocol does not use keypoints.
    except ProtocolError:
        return None


def _fits(protocol: Protocol, *tables: BoxTable | None) -> bool:
    """Return whether tables have as many keypoints as the protocol expects; masks always fit."""
    if protocol.similarity != "keypoints":
        return protocol.similarity == "mask"
    points = [table.keypoints for table in tables if table is not None]
    return all(each is not None and each.shape[1] == len(protocol.keypoints.sigmas) for each in points)


def _score_under(protocol: Protocol) -> Repair:
    return lambda context, detections: (context.ground_truth, detections, protocol)


def _flags(context: Context, *, difficult_said: bool) -> Iterator[Finding]:
    """Report annotations with a flag that the protocol does not read."""
    truth, protocol = context.ground_truth, context.protocol
    for name, check in FLAGS.items():
        if name == "difficult" and difficult_said:
            continue
        if name == "difficult" and protocol.similarity == "box" and truth.units == "pixels":
            other = load_protocol(DIFFICULT)
            yield from check.finding(
                context,
                truth,
                repair=f"with --protocol {DIFFICULT}",
                repaired=_score_under(other),
                at_once=context.is_soon(other),
            )
            continue
        yield from check.finding(context, truth)


def _unread_flags(name: str, context: Context, truth: GroundTruth) -> tuple[NDArray[np.intp], float]:
    """Return the rows with a flag that the protocol does not read."""
    if name not in context.unread_flags:
        return np.empty(0, dtype=np.intp), 0.0
    flags = getattr(truth, name)
    if name == "crowd" and context.protocol.group.treatment == "merge":
        # Tables of groups flag them as crowds too.
        flags = flags & ~truth.group
    return np.flatnonzero(flags), 0.0


def _flag_check(code: str, name: str) -> RowCheck:
    return RowCheck(
        code,
        "semantic",
        functools.partial(_unread_flags, name),
        lambda _: "warning",
        lambda context, count, _: (
            f"{counted(count, 'annotation')} flagged {name}, which the protocol {context.protocol.name} "
            "does not use: they count like any other"
        ),
        "without these annotations",
        lambda _, truth, rows: with_truth(np.delete(np.arange(len(truth)), rows)),
    )


FLAGS = {name: _flag_check(f"{name}-flag-without-effect", name) for name in ("crowd", "difficult", "ignore")}
"""One check for each flag."""
