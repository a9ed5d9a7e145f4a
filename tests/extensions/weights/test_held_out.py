"""AP without the bias of few images, against a slow reading of each precision from lists."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import boxscore
from boxscore.extensions.weights.held_out import HeldOutPrecision
from boxscore.extensions.weights.left_out import groups_of
from support.examples import first_of

FIRST, LAST = (
    {"extends": "coco", "name": order, "ap": {"tie_order": order}}
    for order in ("true_positives_first", "true_positives_last")
)


def rows_of(evaluation, threshold, area, cap):
    """Each detection as (class, score, image, true, counted), in the order in which AP counts them."""
    matched = evaluation.matched
    limit = evaluation.protocol.caps[cap]
    outcome = matched.detection_outcomes(threshold, area)
    return [
        (int(k), float(score), int(image), bool(true), bool(counted))
        for k, score, image, rank, true, counted in zip(
            matched.category,
            matched.score,
            matched.image,
            matched.rank,
            outcome.true,
            outcome.counted,
            strict=True,
        )
        if limit is None or rank < limit
    ]


def objects_of(evaluation, area):
    """The class and the image of each object that recall is over."""
    matched = evaluation.matched
    rows = np.flatnonzero(matched.taking_part(area))
    return list(zip(matched.truth_category[rows].tolist(), matched.truth_image[rows].tolist(), strict=True))


def mean_precision_of_others(rows, k, score):
    """Mean over the other classes of the precision of their detections with at least this score; 1 of none."""
    precisions = []
    for other in {row[0] for row in rows} - {k}:
        flags = [row[3] for row in rows if row[0] == other and row[1] >= score and row[4]]
        if flags:
            precisions.append(sum(flags) / len(flags))
    return sum(precisions) / len(precisions) if precisions else 1.0


def slow_correction(rows, objects, units, left_out, k, rules):
    """What to add to AP of a class, from the definition; images of units in ``left_out`` are missing."""
    positive = sum(1 for category, image in objects if category == k and units[image] not in left_out)
    kept = [row for row in rows if row[0] == k and row[4] and units[row[2]] not in left_out]
    # True positives go to one end of equal scores; the others keep their order.
    if rules.tie_order != "as_ranked":
        kept.sort(key=lambda row: (-row[1], row[3] == (rules.tie_order == "true_positives_last")))
    # Counts up to each true positive: where it is, and by image.
    points = [n for n, row in enumerate(kept) if row[3]]
    if not positive or not points:
        return 0.0

    def counts(end, without=None):
        some = [row for row in kept[: end + 1] if without is None or units[row[2]] != without]
        return sum(row[3] for row in some), len(some)

    precision = [np.divide(*counts(n)) for n in points]
    priors = [mean_precision_of_others(rows, k, kept[n][1]) for n in points]

    def held_out(reached, at):
        true, counted = counts(points[at], without=units[kept[points[reached]][2]])
        return (true + priors[at]) / (counted + 1)

    def change(reached):
        best = max(precision[reached:])
        at = next(n for n in range(reached, len(points)) if precision[n] == best)
        return (held_out(reached, at) + held_out(reached, reached)) / 2 - best

    if rules.interpolation != "points":
        return sum(change(n) for n in range(len(points))) / positive
    total = 0.0
    for point in rules.recall_points:
        reached = [n for n in range(len(points)) if (n + 1) / positive >= point]
        total += change(reached[0]) if reached else 0.0
    return total / len(rules.recall_points)


@pytest.mark.parametrize("protocol", ["coco", "voc2012", "voc2007", FIRST, LAST])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", first_of(1, range(4)))
def test_equal_to_the_definition(scene, seed, protocol, grouped):
    truth, found = scene(seed, images=12)
    scores = np.round(found.scores, 1)  # many are equal
    found = dataclasses.replace(found, scores=scores) if seed % 2 else found
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    rules, matched = evaluation.protocol, evaluation.matched
    units = np.arange(12) // 2 if grouped else np.arange(12)
    groups, count = groups_of(12, units.astype(np.int32) if grouped else None, seed)
    for area in range(len(rules.ignore.area_ranges)):
        for cap in range(len(rules.caps)):
            made = HeldOutPrecision(matched, rules, area, cap, units if grouped else None)
            fast = made.corrections(groups, count)
            objects = objects_of(evaluation, area)
            for t in (0, len(rules.matching.iou_thresholds) - 1):
                rows = rows_of(evaluation, t, area, cap)
                for w in (0, 1, count):
                    left_out = set(units[groups == w - 1].tolist()) if w else set()
                    slow = [
                        slow_correction(rows, objects, units, left_out, k, rules.ap)
                        for k in range(len(matched.categories))
                    ]
                    np.testing.assert_allclose(fast[w, t], slow, atol=1e-12, rtol=0)
