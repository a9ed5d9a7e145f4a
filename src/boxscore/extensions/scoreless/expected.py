"""Compute the lowest, expected and highest AP over all orders of equally scored detections.

Conventions
-----------
- For a class at one threshold, only three numbers matter: t true and f false detections, and N objects. The
  precision at the k-th true one is an envelope: the largest ``j / (j + F_j)`` over this and all later true
  ones j, with ``F_j`` false ones before. *Highest*: true ones first, 1 everywhere. *Lowest*: false ones
  first, ``t / (t + f)`` everywhere. The expectation over all ``(t + f)!`` orders is E_k, and does not depend
  on N.
- Expectations are linear: their mean is also that of one common order. Means of the lowest and of the highest
  are bounds that a single order may not reach.
- Up to ``t * f = 4,096``, E_k is exact. For each possible precision p, the probability that every later true
  one stays below p is computed backwards, one detection after the other.
- Beyond that, it is a mean over drawn orders of the excess of the envelope over ``(k - 1) / (M_k - 1)``,
  where M_k is the position of the k-th true one. That has the expectation ``t / (t + f)`` (J. B. S. Haldane,
  "On a method of estimating frequencies", Biometrika 1945), which is added back: the estimate is unbiased,
  with far less variance than precision. Draws depend only on t and f.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, read_only
from boxscore.protocols.tables.ap import ApRules

MOST_EXACT = 4_096
"""Maximum of true times false detections for the exact method, about 10 ms."""

NEVER = 1e-22
"""A probability that is negligible in float64."""

DRAWN = 3 << 13
"""Approximate number of detections over all drawn orders: half a millisecond."""

FEWEST_DRAWS, MOST_DRAWS = 4, 1_000


class Expected(NamedTuple):
    """The expectation at each true detection of a class."""

    precision: FloatArray
    """E_k, the expected envelope, [t]."""
    error: float
    """Standard error of their mean if drawn; 0 if they are exact."""


@functools.lru_cache(maxsize=1 << 14)
def expected_precision(true: int, false: int) -> Expected:
    """Return the expected envelope over all orders of ``true`` and ``false`` detections."""
    if not true or not false:
        return Expected(read_only(np.ones(true)), 0.0)
    if true * false <= MOST_EXACT:
        return Expected(read_only(_exact(true, false)), 0.0)
    precision, error = _estimate(true, false)
    return Expected(read_only(precision), error)


class Later(NamedTuple):
    """The distribution of the best precision of all later true detections."""

    values: FloatArray
    """Possible values, ascending, [P]; others are below the first or do not matter."""
    below: FloatArray
    """Probability that it is below each, [P]."""

    def below_at(self, values: FloatArray) -> FloatArray:
        """Return the probability that it is below each of some values."""
        at = np.searchsorted(self.values, values, side="left")
        return np.append(self.below, 1.0)[at]


NOTHING = Later(np.empty(0), np.empty(0))
"""No true detection comes later."""


def _exact(true: int, false: int) -> FloatArray:
    """Compute E_k by the recursion over all possible precisions."""
    return exact_group(true, false, 0, 0, NOTHING)[0]


def exact_group(
    true: int, false: int, true_before: int, false_before: int, later: Later
) -> tuple[FloatArray, Later]:
    """Compute E_k of a group of equally scored detections, given those before and after it.

    Also return the distribution of the best precision from the first true one on.
    """
    # Precision at each true detection follows from its number and the number of false ones before it: all
    # possible values are [t, f + 1]. After the whole group it is ``lowest``, for every order.
    last = true_before + true
    lowest = last / (last + false_before + false)
    nth, F = np.arange(1, true + 1)[:, None], np.arange(false + 1)
    values = (true_before + nth) / (true_before + nth + (false_before + F))  # [t, F]
    # The P distinct values above ``lowest``, ascending, are all possible best values. The expectation is
    # ``lowest`` plus the sum of step widths times the probability of reaching each p.
    p = np.unique(np.concatenate([values[values > lowest], later.values[later.values > lowest]]))
    # Number of p that each value reaches.
    reached = np.searchsorted(p, values, side="right").tolist()
    before = _of_false_before(true, false)
    # From the j-th on, no true one reaches a higher p than these, except with a probability of 1e-20.
    first = np.argmax(np.cumsum(before, axis=1) >= NEVER, axis=1)
    highest = np.maximum.accumulate(values[np.arange(true), first][::-1])[::-1]
    active = np.searchsorted(p, highest, side="right").tolist()
    steps = np.diff(p, prepend=lowest)
    # Probability that the next detection is true, by true and false ones so far, [t, f + 1].
    left = (true - nth + 1) / ((true - nth + 1) + (false - F))
    expected = np.full(true, lowest)
    later_below = later.below_at(p)
    # h_j(F): no later true one reaches p.
    stays = np.tile(later_below, (false + 1, 1))
    below = later_below
    # Go back from the last true detection. ``stays`` [f + 1, P] is, for each number of false ones before it,
    # the probability that no later true one reaches p.
    for j in range(true - 1, -1, -1):
        some = stays[:, : active[j]]
        for row, end in zip(some, reached[j], strict=True):
            # The j-th itself does.
            row[:end] = 0.0
        # Average over the false ones before the j-th: the probability that no true one from it on reaches p.
        below = before[j] @ some
        expected[j] += steps[: active[j]] @ (1.0 - below)
        if len(later.values):
            expected[j] += steps[active[j] :] @ (1.0 - later_below[active[j] :])
        # Step back over the false ones between the j-th true one and the one before it: the next detection is
        # true, or false with one more false one. Rows go down, so each reads one that this step has updated.
        is_true = left[j].tolist()
        # In place, because the following rows are known.
        for k in range(false - 1, -1, -1):
            row = some[k]
            row *= is_true[k]
            row += (1.0 - is_true[k]) * some[k + 1]
    # Pass the distribution of the best value to the group before this one.
    below = np.concatenate([[0.0], below, later_below[len(below) :]])
    return expected, Later(np.append(lowest, p), below)


def _of_false_before(true: int, false: int) -> FloatArray:
    """Return the probabilities of 0, 1, ... false ones before the k-th true one, [t, f + 1]."""
    # The distribution is negative hypergeometric: compute the first probability exactly from integer
    # binomials, the others by the ratio of neighbors.
    k, F = np.arange(1, true + 1)[:, None], np.arange(false)
    ratio = (k + F) / (F + 1) * ((false - F) / (true - k + false - F))
    orders = math.comb(true + false, true)
    start = np.array([math.comb(true - each + false, false) / orders for each in range(1, true + 1)])
    return start[:, None] * np.hstack([np.ones((true, 1)), np.cumprod(ratio, axis=1)])


def _estimate(true: int, false: int) -> tuple[FloatArray, float]:
    """Estimate E_k from drawn orders; also return the standard error of its mean."""
    # Draw as many orders as a fixed number of detections allows. The seed consists of the two counts, so the
    # same counts always get the same estimate.
    count = true + false
    draws = int(np.clip(DRAWN // count, FEWEST_DRAWS, MOST_DRAWS))
    random = np.random.default_rng([true, false])
    nth = np.arange(1.0, true + 1)
    total, means = np.zeros(true), np.empty(draws)
    # Take the envelope of one order minus ``(k - 1) / (M_k - 1)``, whose expectation is known: the difference
    # has a low variance.
    for draw in range(draws):
        position = _positions(true, count, random)
        envelope = np.maximum.accumulate((nth / position)[::-1])[::-1]
        envelope[0] -= 1 / position[0]
        envelope[1:] -= nth[:-1] / (position[1:] - 1)
        total += envelope
        means[draw] = envelope.sum()
    # Add the known expectations back: t / (t + f), and for the first true detection the mean of 1 / M_1 over
    # its positions.
    expected = total / draws
    before = np.arange(false)
    first = np.append(1.0, np.cumprod((false - before) / (count - 1 - before))) * true / count
    # The mean of 1 / M_1.
    expected[0] += first @ (1 / np.arange(1, false + 2))
    expected[1:] += true / count
    return expected, float(means.std(ddof=1) / true / math.sqrt(draws))


def _positions(true: int, count: int, random: np.random.Generator) -> FloatArray:
    """Draw which of the positions 1, 2, ... and ``count`` are true, ascending, [t].

    Slightly too many are drawn independently, and the surplus is removed. By symmetry every set of t
    positions is equally likely, in a third of the time of a permutation.
    """
    share = true / count + 4 * math.sqrt(1 / count)
    while True:
        drawn = np.flatnonzero(random.random(count, dtype=np.float32) < share)
        more = len(drawn) - true
        if more >= 0:
            left = np.delete(drawn, random.choice(len(drawn), more, replace=False, shuffle=False))
            return left.astype(np.float64) + 1


class ExpectedAP(NamedTuple):
    """The expected AP over all orders of a class's detections."""

    value: float
    error: float
    """Standard error of the expectation; 0 if it is exact."""


def expected_ap(true: int, false: int, positive: int, rules: ApRules, needed: IntArray) -> ExpectedAP:
    """Return the expectation over all orders; ``needed``: true positives for each recall point, [R]."""
    expected = expected_precision(true, false)
    if rules.interpolation == "area":
        return ExpectedAP(math.fsum(expected.precision) / positive, expected.error * (true / positive))
    at = np.maximum(needed, 1) - 1
    at = at[at < true]
    points = len(needed)
    return ExpectedAP(math.fsum(expected.precision[at]) / points, expected.error * (len(at) / points))
