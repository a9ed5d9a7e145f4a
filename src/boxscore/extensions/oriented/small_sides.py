"""Delete ground truths with a short side, if the protocol does so (mmrotate)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import GroundTruth
from boxscore.extensions.oriented.quadrilaterals import minimum_rectangles
from boxscore.matching.ignoring import Ignoring
from boxscore.protocols.protocol import Protocol


def without_small_sides(
    ground_truth: GroundTruth, protocol: Protocol, ignoring: Ignoring, matched: Any
) -> Ignoring:
    """Delete ground truths whose shorter side is below the limit of the protocol."""
    small = _shortest_side(ground_truth) < protocol.boxes.least_side
    return ignoring._replace(ignored=ignoring.ignored | small, deleted=ignoring.deleted | small)


def _shortest_side(ground_truth: GroundTruth) -> NDArray[np.float64]:
    """Return the shorter side of each ground truth [G], of its rotated rectangle if it has one."""
    sides = ground_truth.sizes
    if ground_truth.rotated is not None:
        sides = ground_truth.rotated[:, 2:4]
    elif ground_truth.quadrilaterals is not None:
        sides = minimum_rectangles(ground_truth.quadrilaterals)[:, 2:4]
    return np.asarray(sides.min(axis=1, initial=np.inf))
