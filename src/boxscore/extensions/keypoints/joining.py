"""Prepare keypoints for a protocol: join parts, select scores and areas, and ignore unlabeled objects.

Conventions
-----------
- A part is ``keypoints`` or a column with three numbers per keypoint. In rows without it, its keypoints are
  unlabeled. A column marks joined tables, which are not joined again.
- A missing score is NaN in its column; the next column of scores replaces it, row by row.
- Boxes of detections do not change: area ranges measure the whole body for every part, as in xtcocotools.

References
----------
xtcocotools 1.14.3, ``cocoeval.py``: ``_prepare``, ``computeOks``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import counted_of
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.matching.ignoring import Ignoring
from boxscore.protocols.protocol import Protocol

JOINED = "parts_joined"
"""Column of joined tables with the number of parts."""

Table = TypeVar("Table", bound=BoxTable)


def with_compared_keypoints(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Return both tables with the keypoints, scores, areas and counts for the protocol."""
    rules = protocol.keypoints
    # Join the parts before reading keypoints [N, J, 3]; scores may come from other columns.
    if rules.parts:
        ground_truth, detections = _joined(ground_truth, protocol), _joined(detections, protocol)
    if rules.scores:
        detections = detections.replaced(scores=_scores(detections, rules.scores))
    # Drop detections whose keypoints all lack a positive third value, as xtcocotools does, and warn.
    if rules.unplaced == "drop" and detections.keypoints is not None:
        placed = (detections.keypoints[:, :, 2] > 0).any(axis=1)
        if not placed.all():
            _warn_of_unplaced(detections, int((~placed).sum()))
            detections = detections.take(np.flatnonzero(placed))
    if rules.scale == "box":
        # Multiply in the order of the tools: width by height, then by the share.
        area = ground_truth.sizes[:, 0] * ground_truth.sizes[:, 1] * rules.box_share
        ground_truth = ground_truth.replaced(area=area)
    # Count labeled keypoints by visibility if the protocol does not use ``num_keypoints``.
    if protocol.ignore.unlabeled_by == "visibility" and ground_truth.keypoints is not None:
        labeled = (ground_truth.keypoints[:, :, 2] > 0).sum(axis=1)
        ground_truth = ground_truth.replaced(keypoint_count=labeled)
    return ground_truth, detections


def ignoring_unlabeled(
    ground_truth: GroundTruth, protocol: Protocol, ignoring: Ignoring, matched: Any
) -> Ignoring:
    """Ignore ground truths without labeled keypoints."""
    if ground_truth.keypoint_count is None:
        return ignoring
    return ignoring._replace(ignored=ignoring.ignored | (ground_truth.keypoint_count == 0))


def _joined(table: Table, protocol: Protocol) -> Table:
    """Join the parts of a table's keypoints, and replace their columns by a marker."""
    names = protocol.keypoints.parts
    if not len(table) or JOINED in table.columns:
        return table
    joined = np.concatenate([_part(table, name) for name in names], axis=1)
    left = {name: column for name, column in table.columns.items() if name not in names}
    left[JOINED] = np.full(len(table), len(names))
    return table.replaced(keypoints=joined, columns=left)


def _part(table: BoxTable, name: str) -> FloatArray:
    """Return the keypoints of one part, [N, J, 3]."""
    values = table.keypoints if name == "keypoints" else table.columns.get(name)
    if values is not None and values.dtype.kind in "fiu":
        rows = np.asarray(values, dtype=np.float64).reshape(len(table), -1)
        if rows.shape[1] and rows.shape[1] % 3 == 0:
            return rows.reshape(len(table), -1, 3)
    raise InputError(
        table.schema.name,
        f"have {name}, three numbers per keypoint, which the protocol compares",
        got="none" if values is None else "others",
        place=table.source,
        cause="files of COCO-WholeBody have them in addition to keypoints",
    )


def _scores(detections: Detections, names: tuple[str, ...]) -> FloatArray:
    """Return the first score that each detection has, [D]."""
    scores = np.full(len(detections), np.nan)
    # Fill the scores [D] column by column; each column fills only the rows that are still NaN.
    for name in names:
        given = detections.scores if name == "score" else detections.columns.get(name)
        if given is None:
            continue
        # Warn if only some rows use another column: their scores have a different scale.
        lacking = np.isnan(scores)
        standing_in = lacking & ~np.isnan(given)
        if standing_in.any() and not lacking.all():
            count = counted_of(int(standing_in.sum()), len(scores), "detection")
            warn_user(
                f"{detections.source}: {count} of a part lack {names[0]} and are ranked by {name}; "
                "scores of two kinds are not comparable."
            )
        scores[standing_in] = given[standing_in]
    # Raise if a row lacks a score in all columns.
    without = np.isnan(scores)
    if without.any():
        raise InputError(
            "a detection",
            f"have one of the scores {', '.join(names)}",
            got="none",
            place=f"row {int(np.argmax(without))} of {detections.source}",
        )
    return scores


def _warn_of_unplaced(detections: Detections, count: int) -> None:
    dropped = counted_of(count, len(detections), "detection")
    warn_user(
        f"{detections.source}: dropped {dropped}, as in xtcocotools, because the third value of "
        "every keypoint is 0 or less. Does the model write 0 there?"
    )
