"""Apply suspects that a person has vetted: the metric before and after, and the value of reviewing more.

Conventions
-----------
- The vetted file is read as ground truth. A suspect is *accepted* if a box of the file matches its proposal
  (IoU of one half or more; the largest first, ties prefer the same class, one to one), and *refused*
  otherwise.
- For a wrong class, the annotation gets the file's class and keeps its geometry. A poor box gets the file's
  geometry. A missing annotation becomes the file's box.
- Before and after use the same draws of images, so the interval of their difference is the effect of the
  edits.
- ``next_fifty`` follows the order of the list, in which real errors become rarer. The logit of their fraction
  is a line that falls or stays constant. Every slope and end value is weighted by its likelihood given the
  vetted suspects. The interval covers the number itself, not its mean. There is none for fewer than fifty
  vetted suspects, and it does not hold if the fraction suddenly drops.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, Positions, read_only, unchangeable
from boxscore._utils.checks import GIVE_SIZES
from boxscore.data.alignment import stacked
from boxscore.data.boxes import without_inverted
from boxscore.data.image_names import names_of
from boxscore.data.tables import GroundTruth
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.diagnostics._reading import greedy_one_to_one
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.extensions.diagnostics._units import units_of_values
from boxscore.extensions.diagnostics.bootstrap import intervals_that_hold, resampled_metrics
from boxscore.extensions.labels.label_edits import LabelEdits, labels_of
from boxscore.extensions.labels.leave_one_out import row_named
from boxscore.extensions.labels.suspects import KINDS, MISSING, POOR_BOX, WRONG_CLASS, LabelSuspects
from boxscore.extensions.weights.resampling import check_intervals
from boxscore.similarity.box import box_iou

if TYPE_CHECKING:
    import pandas as pd

ON_PROPOSAL = 0.5
"""Minimum IoU between a box of the file and the proposal that it accepts."""

NEXT = 50
LEAST_VETTED = 50
"""Minimum number of vetted suspects for an interval."""

CONDITION = "if the share of real errors falls no faster than by half in fifty"
ENDS = (np.arange(1, 100) - 0.5) / 99
"""Grid of accepted fractions at the end of the vetted suspects, weighted by Jeffreys' prior."""
FALLS = np.linspace(0, 3, 25)
"""Grid of falls of the logit per fifty suspects."""
LIKELY = np.exp(-(FALLS**2) / 2)
LIKELY[0] = LIKELY[1:].sum()
"""Prior of each fall: half for no fall, half for a half-normal distribution."""


class NextFifty(NamedTuple):
    """The estimated number of real label errors among the next fifty suspects."""

    expected: float
    low: float
    """Lower end of the interval; NaN for fewer than fifty vetted suspects."""
    high: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class VettedSuspects(DiagnosticResult):
    """The effect of the edits that a person accepted.

    Attributes
    ----------
    suspects : LabelSuspects
    accepted : ndarray of bool, [N]
    edits : LabelEdits
        Edits of the accepted suspects.
    ground_truth : GroundTruth
        The ground truth after these edits.
    metric : str
    before, after : float
    low, high : float
        Interval of after minus before.
    next_fifty : NextFifty
    """

    suspects: LabelSuspects
    accepted: BoolArray
    edits: LabelEdits
    ground_truth: GroundTruth
    metric: str
    before: float
    after: float
    low: float
    high: float
    next_fifty: NextFifty

    def to_frame(self) -> pd.DataFrame:
        """Return the suspects with a column ``accepted``."""
        frame = self.suspects.to_frame()
        frame.insert(0, "accepted", self.accepted)
        return frame

    @property
    def sentences(self) -> list[str]:
        """Describe the result."""
        accepted, count = int(self.accepted.sum()), len(self.accepted)
        kinds = [
            f"{int((self.accepted & (self.suspects.kind == k)).sum())} {name}" for k, name in enumerate(KINDS)
        ]
        share = "" if math.isnan(self.low) else f", interval {self.low:+.4f} to {self.high:+.4f}"
        expected, low, high = self.next_fifty
        values = f"{self.metric} {self.before:.4f} before, {self.after:.4f} after"
        lines = [
            f"{accepted} of {count} suspects accepted: {', '.join(kinds)}",
            f"{values}: {self.after - self.before:+.4f}{share}",
        ]
        if count:
            interval = f"{low:.0f} to {high:.0f} {CONDITION}"
            if math.isnan(low):
                interval = f"an interval needs {LEAST_VETTED} vetted"
            lines.append(f"about {expected:.0f} of the next {NEXT} are worth reviewing ({interval})")
        return read_only(lines)


def vetted_suspects(
    evaluation: Evaluation,
    suspects: LabelSuspects,
    vetted: GroundTruth,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> VettedSuspects:
    """Apply the accepted edits, and measure their effect.

    Parameters
    ----------
    evaluation : Evaluation
    suspects : LabelSuspects
        Suspects of the evaluation, as written for vetting.
    vetted : GroundTruth
        The vetted file, with the images and classes of the ground truth.
    resamples, confidence, seed
        Options of the interval of the difference.

    Returns
    -------
    VettedSuspects

    Raises
    ------
    InputError
        When the vetted file has other images or classes.
    """
    # Find the accepted proposals, and apply them.
    evaluation._require_overlaps("vetted suspects")
    check_intervals(confidence, "expanded_percentile")
    truth = evaluation.ground_truth
    vetted = in_vocabulary(vetted, truth)
    # Recognize a proposal by its box and class.
    proposals = labels_of(evaluation, suspects.detection)
    partner = _partners(proposals, vetted)
    accepted = partner >= 0
    edits = _edits(truth, suspects, vetted, proposals, partner)
    labels = edits.applied_to(truth)
    # Evaluate the corrected labels like the original ones.
    after = evaluate(labels, evaluation.detections, protocol=evaluation.protocol, digest=False)
    # Draw the same images for both with one seed, so that the difference has an interval.
    row = row_named(evaluation, suspects.metric)
    (value, draws), (new_value, new_draws) = (
        resampled_metrics(result, [row], resamples=resamples, seed=seed, units=None)
        for result in (evaluation, after)
    )
    counts = units_of_values(evaluation, [row], None)
    delta, of_draws = (new_value - value)[:, -1:], (new_draws - draws)[..., -1:]
    low, high = intervals_that_hold(of_draws, delta, confidence, "expanded_percentile", counts[:, -1:], None)
    # Estimate the next suspects from the accepted fraction.
    result = VettedSuspects(
        suspects,
        accepted,
        unchangeable(edits),
        labels,
        row.key,
        evaluation[row.key],
        after[row.key],
        float(low[0, 0]),
        float(high[0, 0]),
        next_fifty(accepted, confidence),
    )
    return unchangeable(result)


def in_vocabulary(vetted: GroundTruth, truth: GroundTruth) -> GroundTruth:
    """Move the vetted labels to the images and classes of the ground truth, by name."""
    # Find images by exact name first, then by any unambiguous name; find classes by name.
    names, asked = truth.images.names, vetted.images.names
    exact, any_name = dict(zip(names, range(len(names)), strict=True)), names_of(truth.images).find(asked)
    of_images = [exact.get(name, row) for name, row in zip(asked, any_name.rows.tolist(), strict=True)]
    image = np.array(of_images, dtype=np.int32)
    category = truth.categories.rows_of_classes(vetted.categories)
    # Reject unknown images and classes, images first.
    for rows, used, vocabulary, what in (
        (image, vetted.image, vetted.images.ids, "an image"),
        (category, vetted.category, vetted.categories.labels, "a class"),
    ):
        wrong = np.flatnonzero(rows[used] < 0)
        if len(wrong):
            got = repr(list(vocabulary)[used[wrong[0]]])
            raise InputError(f"{what} of {vetted.source}", "be in the ground truth", got=got)
    # Renumber the rows; convert fractions to pixels if the ground truth uses pixels.
    vetted = vetted.replaced(
        images=truth.images,
        categories=truth.categories,
        image=image[vetted.image],
        category=category[vetted.category].astype(np.int32),
    )
    return _to_pixels(vetted) if vetted.units == "fractions" and truth.units == "pixels" else vetted


def _to_pixels(vetted: GroundTruth) -> GroundTruth:
    """Convert labels that are fractions of images of known size to pixels."""
    sizes = vetted.images.sizes[vetted.image]
    if np.isnan(sizes).any():
        rule = "be in pixels if the ground truth lacks image sizes"
        raise InputError(str(vetted.source), rule, got="fractions", cause=GIVE_SIZES)
    sides = vetted.sizes * sizes
    return vetted.replaced(
        boxes=vetted.boxes * np.tile(sizes, 2), sizes=sides, area=sides.prod(axis=1), units="pixels"
    )


def _partners(proposals: GroundTruth, vetted: GroundTruth) -> Positions:
    """Return the row of the vetted label on each proposal, [N]; -1 without one."""
    # Compare proposals with vetted labels of the same image, [n, m].
    pairs = []
    for image in np.intersect1d(proposals.image, vetted.image).tolist():
        rows, others = (np.flatnonzero(table.image == image) for table in (proposals, vetted))
        first, second = (
            without_inverted(table.boxes[at]) for table, at in ((proposals, rows), (vetted, others))
        )
        iou = box_iou(first, second)
        same = proposals.category[rows][:, None] == vetted.category[others]
        a, b = np.nonzero(iou >= ON_PROPOSAL)
        # Prefer the larger overlap, rounded so that a box written with fewer digits still ties, then the same
        # class, then the order of rows.
        pairs += [
            (-round(float(iou[i, j]), 6), not same[i, j], int(rows[i]), int(others[j]))
            for i, j in zip(a.tolist(), b.tolist(), strict=True)
        ]
    pairs.sort()
    # Take the pairs greedily, one to one.
    partner = np.full(len(proposals), -1, dtype=np.intp)
    if pairs:
        proposal, label = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (2, 3))
        taken = greedy_one_to_one(proposal, label)
        partner[proposal[taken]] = label[taken]
    return partner


def _edits(
    truth: GroundTruth,
    suspects: LabelSuspects,
    vetted: GroundTruth,
    proposals: GroundTruth,
    partner: Positions,
) -> LabelEdits:
    """Make the edits of accepted suspects; of several on one annotation the first counts."""
    # If several accepted suspects are on one annotation, the first makes the edit; new objects never collide.
    accepted = np.flatnonzero(partner >= 0)
    removed = np.where(suspects.kind == MISSING, -1, suspects.truth)[accepted]
    first = np.zeros(len(accepted), dtype=bool)
    first[np.unique(removed, return_index=True)[1]] = True
    keep = (removed < 0) | first
    accepted, removed = accepted[keep], removed[keep]
    # A new or redrawn label takes box and class of the vetted one.
    kind, rows = suspects.kind[accepted], partner[accepted]
    fresh = proposals.take(accepted).replaced(
        boxes=vetted.boxes[rows],
        sizes=vetted.sizes[rows],
        area=vetted.sizes[rows].prod(axis=1),
        category=vetted.category[rows],
    )
    # A label of another class keeps its box and takes only the class. Added labels are numbered over both
    # tables, in the order of the suspects.
    wrong = np.flatnonzero(kind == WRONG_CLASS)
    renamed = truth.take(removed[wrong]).replaced(category=vetted.category[rows[wrong]])
    added = np.arange(len(accepted))
    added[wrong] = len(accepted) + np.arange(len(wrong))
    assert set(np.unique(kind).tolist()) <= {WRONG_CLASS, MISSING, POOR_BOX}
    return LabelEdits(removed.astype(np.intp), added, stacked([fresh, renamed]), truth)


@functools.cache
def _count_probabilities() -> FloatArray:
    """Return the probability of each number of label errors among the next fifty, ``[ends, falls, 51]``."""
    # Probability of each of the next fifty, [ends, falls, 50].
    end = np.log(ENDS / (1 - ENDS))[:, None, None]
    ahead = 1 / (1 + np.exp(FALLS[:, None] * ((np.arange(NEXT) + 0.5) / NEXT) - end))
    # Build the exact distribution of their number by adding one suspect at a time.
    chance = np.zeros((*ahead.shape[:2], NEXT + 1))
    chance[..., 0] = 1
    for share in np.moveaxis(ahead, 2, 0)[..., None]:
        chance[..., 1:] = chance[..., 1:] * (1 - share) + chance[..., :-1] * share
        chance[..., :1] *= 1 - share
    return chance


def next_fifty(accepted: BoolArray, confidence: float = 0.95) -> NextFifty:
    """Estimate the label errors among the next fifty suspects from the vetted ones, in order."""
    if not len(accepted):
        return NextFifty(math.nan, math.nan, math.nan)
    # The fraction of label errors falls along the list: a logistic curve with an end value and a slope, both
    # on a grid, [ends, falls].
    count = len(accepted)
    end = np.log(ENDS / (1 - ENDS))[:, None, None]
    before = (count - np.arange(count) - 0.5) / NEXT
    logit = end + FALLS[:, None] * before  # [ends, falls, N]
    # Multiply the likelihood of the accepted suspects, as a logarithm, by the prior to weight the grid.
    likelihood = -(np.logaddexp(0, -logit) * accepted + np.logaddexp(0, logit) * ~accepted).sum(axis=2)
    weight = np.exp(likelihood - likelihood.max()) * LIKELY / np.sqrt(ENDS * (1 - ENDS))[:, None]
    # Average over the grid, and take mean and interval from the distribution.
    together = np.tensordot(weight / weight.sum(), _count_probabilities(), axes=2)
    expected = float(together @ np.arange(NEXT + 1))
    if count < LEAST_VETTED:
        return NextFifty(expected, math.nan, math.nan)
    up_to, tail = np.cumsum(together), (1 - confidence) / 2
    low, high = np.searchsorted(up_to, [tail, 1 - tail])
    return NextFifty(expected, float(low), float(min(high, NEXT)))
