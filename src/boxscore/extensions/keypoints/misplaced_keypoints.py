"""Classify errors of the keypoints of matched detections: jitter, inversion, swap or miss.

Conventions
-----------
- Detections are matched at OKS 0.1, up to the protocol's max detections, to objects of at least 32 x 32
  pixels; the thresholds and ranges of the protocol do not apply. Matches with objects without keypoints are
  skipped.
- A keypoint that is labeled in the matched object is compared with candidates: the same keypoint of that
  object, of every other object of the image including crowds, and of all of them with left and right swapped.
  The most similar labeled candidate decides; among equal ones, the first in this order.
- *good*: similarity to its own keypoint of more than 0.85; *jitter*: 0.5 to 0.85. *inversion*: 0.5 or more to
  the mirrored keypoint of the same object; *swap*: to a keypoint of another object, mirrored or not. *miss*:
  below 0.5 to all candidates.
- A similarity of exactly 0.85 is good; coco-analyze does not count it anywhere.
- Left and right come from the names, ``left_`` and ``right_``; other keypoints mirror to themselves.
- Similarities are added exactly, so means do not depend on the order of images or detections.

References
----------
M. R. Ronchi, P. Perona, "Benchmarking and Error Diagnosis in Multi-Instance Pose Estimation", ICCV 2017;
coco-analyze 9eb8a0a, ``analysisAPI/localizationErrors.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.exact_sums import DIGITS, added, rounded
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.extensions.large.questions import Place, source_of
from boxscore.matching.matcher import Matcher
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("good", "jitter", "inversion", "swap", "miss")
LOWEST_OKS, LEAST_AREA = 0.1, 1024.0
GOOD, FOUND = 0.85, 0.5


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class KeypointErrors(DiagnosticResult):
    """Number of keypoints of matched detections by kind of error.

    Attributes
    ----------
    names : ndarray of object, [J]
        Names of the keypoints, or their numbers from 1 if the protocol lacks names.
    counts : ndarray of int64, [J, 5]
        Good, jitter, inversion, swap and miss.
    similarity : ndarray of float64, [J]
        Mean similarity of each keypoint to its own, 1 if exact; NaN without comparisons.
    matched, analyzed : int
        Number of matched detections, and of those whose object has keypoints.
    """

    names: NDArray[np.object_]
    counts: NDArray[np.int64]
    similarity: FloatArray
    matched: int
    analyzed: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row per keypoint, and the total in the last row."""
        import pandas as pd

        counts = np.vstack([self.counts, self.counts.sum(axis=0)])
        total = counts.sum(axis=1)
        mean = np.array([np.nan])
        if total[-1]:
            known = total[:-1] > 0
            mean = np.array([np.average(self.similarity[known], weights=total[:-1][known])])
        columns: dict[str, object] = {"keypoint": [*self.names.tolist(), "(all)"], "compared": total}
        columns |= dict(zip(KINDS, counts.T, strict=True))
        share = np.divide(counts[:, 0], total, out=np.full(len(total), np.nan), where=total > 0)
        return pd.DataFrame({**columns, "good_share": share, "similarity": np.append(self.similarity, mean)})


@once_per_evaluation
def keypoint_errors(evaluation: Evaluation) -> KeypointErrors:
    """Classify the errors of the keypoints of matched detections.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation of keypoints.

    Returns
    -------
    KeypointErrors

    Raises
    ------
    InputError
        If the protocol does not compare keypoints, or the evaluation is of merged parts.
    """
    protocol = evaluation.protocol
    if protocol.similarity != "keypoints":
        raise InputError(
            "the protocol",
            "compare keypoints",
            got=protocol.similarity,
            cause="use --protocol coco-keypoints or --iou-type keypoints",
        )
    names = protocol.keypoints.names or tuple(str(n + 1) for n in range(len(protocol.keypoints.sigmas)))
    found = _added(source_of(evaluation).answers("keypoint errors", _compared, {}))
    total = found.counts.sum(axis=1)
    mean = np.divide(rounded(found.digits), total, out=np.full(len(names), np.nan), where=total > 0)
    return KeypointErrors(np.array(names, dtype=object), found.counts, mean, found.matched, found.analyzed)


class _Compared(NamedTuple):
    """Counts of J keypoints in some images; those of disjoint images add up."""

    counts: IntArray
    """Counts by kind, [J, 5]."""
    digits: IntArray
    """Sum of the similarities of each keypoint to its own, as exact digits, [digits, J]."""
    matched: int
    analyzed: int


def _added(answers: Sequence[_Compared]) -> _Compared:
    counts, digits, matched, analyzed = zip(*answers, strict=True)
    return _Compared(np.sum(counts, axis=0), np.sum(digits, axis=0), sum(matched), sum(analyzed))


def _compared(evaluation: Evaluation, place: Place) -> _Compared:
    """Compare the keypoints of matched detections with all candidates."""
    # Match at the lowest OKS; matches without labeled keypoints are counted but not analyzed.
    protocol, truth, found = evaluation.protocol, evaluation.ground_truth, evaluation.detections
    J = len(protocol.keypoints.sigmas)
    counts = np.zeros((J, len(KINDS)), dtype=np.int64)
    own, keypoint = [np.empty(0)], [np.empty(0, dtype=np.intp)]
    pairs = _matched(evaluation)
    if truth.keypoints is None or found.keypoints is None:
        return _Compared(counts, np.zeros((DIGITS, J), dtype=np.int64), 0, 0)
    # Use COCO's stated number of labeled keypoints.
    stated = truth.keypoint_count
    has_points = np.ones(len(truth), dtype=bool) if stated is None else stated > 0
    analyzed = [(d, g) for d, g in pairs if has_points[g]]
    # Group the objects by image: only objects of one image can be confused.
    mirrored = mirror_of(protocol)
    variances = (2 * protocol.keypoints.spread) ** 2
    of_image: dict[int, list[int]] = {}
    for row, image in enumerate(truth.image.tolist()):
        of_image.setdefault(image, []).append(row)
    for d, g in analyzed:
        # Compare with the matched object, the other objects of the image, and all of them mirrored,
        # [2 x O, J].
        others = [row for row in of_image[int(truth.image[g])] if row != g]
        rows = [g, *others]
        points = truth.keypoints[rows]  # [O, J, 3]
        candidates = np.concatenate([points, points[:, mirrored]])
        # Compute OKS per keypoint; an unlabeled candidate never wins.
        area = np.tile(truth.area[rows], 2)[:, None] + np.spacing(1)
        distance = ((candidates[:, :, :2] - found.keypoints[d, :, :2]) ** 2).sum(axis=2)
        similarity = np.exp(-distance / (variances * area * 2))
        similarity[candidates[:, :, 2] <= 0] = -1.0
        # A keypoint that mirrors to itself is never inverted: its own comes first.
        kind = _kinds(similarity, len(rows))
        # Count each labeled keypoint under its kind.
        labeled = np.flatnonzero(points[0, :, 2] > 0)
        counts[labeled, kind[labeled]] += 1
        own.append(similarity[0, labeled])
        keypoint.append(labeled)
    # Add the similarities as exact digits, independent of the order of images.
    digits = added(np.concatenate(keypoint), np.concatenate(own), J)
    return _Compared(counts, digits, len(pairs), len(analyzed))


def _kinds(similarity: FloatArray, objects: int) -> NDArray[np.intp]:
    """Return the kind of each keypoint, given similarities [2 x objects, J]; the second half is mirrored."""
    # ``argmax`` returns the first maximum, so the matched object wins ties.
    best = similarity.argmax(axis=0)
    value = similarity[best, np.arange(similarity.shape[1])]
    own, inverted = best == 0, best == objects
    kind = np.full(len(best), KINDS.index("swap"))
    kind[inverted] = KINDS.index("inversion")
    kind[own] = KINDS.index("jitter")
    kind[own & (value >= GOOD)] = KINDS.index("good")
    kind[value < FOUND] = KINDS.index("miss")
    return kind


def mirror_of(protocol: Protocol) -> NDArray[np.intp]:
    """Return the mirrored keypoint of each keypoint, [J]; itself if it is not left or right."""
    names = protocol.keypoints.names
    if not names:
        return np.arange(len(protocol.keypoints.sigmas))
    swapped = {"left": "right", "right": "left", "l": "r", "r": "l"}
    other = ["_".join(swapped.get(word, word) for word in name.split("_")) for name in names]
    return np.array([names.index(name) if name in names else n for n, name in enumerate(other)])


def _matched(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Return the rows of detections that match at the lowest OKS, and of their ground truths."""
    protocol = evaluation.protocol
    rules = protocol.matching.replaced(
        iou_thresholds=(LOWEST_OKS,),
        class_thresholds={},
        max_detections=protocol.matching.max_detections[-1:],
    )
    ignore = protocol.ignore.replaced(
        area_ranges={"all": (LEAST_AREA, 1e10)}, column_ranges={}, image_ranges={}
    )
    changed = protocol.replaced(matching=rules, ignore=ignore, summary=())
    matches = Matcher(evaluation.ground_truth, evaluation.detections, changed).match()
    chosen = matches.pairs_matched(0, 0)
    rows = matches.row[matches.pair_detection[chosen]]
    return list(zip(rows.tolist(), matches.truth_row[matches.pair_truth[chosen]].tolist(), strict=True))
