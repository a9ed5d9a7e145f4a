"""Check annotations, flags, areas, scores and counts that are valid but probably unintended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import distinct_rows
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted, verb
from boxscore.data.boxes import without_inverted
from boxscore.data.scores import SCORELESS
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.extensions.validation._findings import (
    COSTLY,
    IN_PASSING,
    MOST_EXAMPLES,
    WHEN_ASKED,
    Context,
    Finding,
    Repair,
    RowCheck,
    with_areas,
    with_truth,
)
from boxscore.extensions.validation.completion import most_with_lower_scores, recall_reached
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.box import box_iou
from boxscore.similarity.registry import similarity_of

NEAR = 0.9
"""IoU above which two annotations of one image and class count as one object."""

AREA_SLACK = 1.05
"""Factor by which a stated area may exceed its box, or its mask."""

TIED = 0.10
"""Fraction of detections with tied scores above which ties are reported."""
FEW_TIED = 20_000
"""Maximum detections for which quick checks compute the effect of their order, in milliseconds."""

NO_SCORES = "no-scores"
"""Code of the finding that detections lack scores."""

NEGLIGIBLE = 0.0005
"""Difference of AP that rounds to 0 in three decimals."""

SCOPES = {
    "class": ("per image and class", "group"),
    "image": ("per image", "image"),
    "data_set_class": ("per class of the data set", "class"),
}
"""The scopes of max detections in words, and the name of one group."""

LEAST_FLOOR = 0.05
"""Minimum score above which low scores seem to be missing."""

FEWEST = 20
"""Minimum detections whose scores and counts are evidence."""


def semantic_findings(context: Context) -> Iterator[Finding]:
    """Check what annotations and detections mean."""
    # Check ground truth first; compare all pairs only on request.
    if context.effort > IN_PASSING:
        yield from NEAR_DUPLICATES.finding(context, context.ground_truth)
    yield from _areas(context)
    if context.detections is None or not len(context.detections):
        return
    # Then check the detections; checks of the order need scores.
    if context.effort == WHEN_ASKED:
        yield from REPEATED.finding(context, context.detections)
    if context.detections.scored:
        yield from _scores(context, context.detections)
    else:
        yield no_scores(context, len(context.detections))
    # Ties and detections beyond the limit take more time.
    if context.effort > IN_PASSING and context.detections.scored:
        yield from _tied_scores(context, context.detections)
    if context.effort == WHEN_ASKED:
        yield from _beyond_max_detections(context, context.detections)
    elif context.effort == IN_PASSING:
        yield from _costly_limit(context, context.detections)
    # If classes are left out, fewer detections than the limit are normal.
    if not context.chosen_classes:
        yield from _below_max_detections(context, context.detections)


def _groups(table: BoxTable) -> NDArray[np.int64]:
    """Return a number for each row's image and class, [N]."""
    return table.image.astype(np.int64) * len(table.categories) + table.category


def _near(context: Context, truth: GroundTruth) -> tuple[NDArray[np.intp], float]:
    return _repeats(truth, np.flatnonzero(~truth.crowd)), 0.0


NEAR_DUPLICATES = RowCheck(
    "near-duplicate-annotation",
    "semantic",
    _near,
    lambda _: "warning",
    lambda _, count, __: (
        f"{counted(count, 'annotation')} {verb(count, 'overlap')} an earlier one of the same image and "
        f"class with IoU >= {NEAR:g}: a detector without duplicates misses one of the two"
    ),
    "without these annotations",
    lambda _, truth, rows: with_truth(np.delete(np.arange(len(truth)), rows)),
)


def _repeats(table: BoxTable, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return ascending rows that overlap an earlier one of their image and class by :data:`NEAR`."""
    group, left = _groups(table)[rows], table.boxes[rows, 0]
    order = np.lexsort((left, group))
    rows, group, left = rows[order], group[order], left[order]
    # For two boxes so near, the left sides differ by at most 1 - NEAR of the larger width, and the larger
    # width is at most 1 / NEAR of the smaller. So compare each box with those that start soon after it.
    boxes = without_inverted(table.boxes)
    last = left + (1 / NEAR - 1 + 1e-6) * (table.boxes[rows, 2] - left)
    repeats, at, step = [np.empty(0, dtype=np.intp)], np.arange(len(rows) - 1), 1
    # In each step, compare each box with the next one that starts after it, until none is near.
    while len(at):
        at = at[(group[at] == group[at + step]) & (left[at + step] <= last[at])]
        one, other = rows[at], rows[at + step]
        near = box_iou(boxes[one], boxes[other], paired=True) >= NEAR
        repeats.append(np.maximum(one, other)[near])
        step += 1
        at = at[at + step < len(rows)]
    return np.unique(np.concatenate(repeats))


def _box_areas(truth: GroundTruth) -> NDArray[np.float64]:
    area: NDArray[np.float64] = truth.sizes[:, 0] * truth.sizes[:, 1]
    return area


def _larger(context: Context, truth: GroundTruth) -> tuple[NDArray[np.intp], float]:
    rows = np.flatnonzero(truth.area > AREA_SLACK * _box_areas(truth) + 1)
    return rows[(truth.sizes[rows] >= 0).all(axis=1)], 0.0


AREAS = (
    RowCheck(
        "area-exceeds-box",
        "semantic",
        _larger,
        lambda _: "warning",
        lambda _, count, __: (
            f"{counted(count, 'annotation')} with an area larger than the box; this area decides which "
            "objects are small, medium or large"
        ),
        "with box areas",
        lambda _, truth, __: with_areas(np.minimum(truth.area, _box_areas(truth))),
    ),
    RowCheck(
        "area-not-positive",
        "semantic",
        lambda _, truth: (np.flatnonzero((truth.area <= 0) & (_box_areas(truth) > 0)), 0.0),
        lambda _: "warning",
        lambda _, count, __: f"{counted(count, 'annotation')} with an area of 0 or less, and a box",
        "with box areas",
        lambda _, truth, __: with_areas(np.where(truth.area <= 0, _box_areas(truth), truth.area)),
    ),
)


def _areas(context: Context) -> Iterator[Finding]:
    truth = context.ground_truth
    # Check the areas against the boxes, row by row.
    for one in AREAS:
        yield from one.finding(context, truth)


def _repeated_rows(context: Context, detections: Detections) -> tuple[NDArray[np.intp], float]:
    rows = np.column_stack([detections.image, detections.category, detections.boxes])
    if detections.scored:
        rows = np.column_stack([rows, detections.scores])
    # Boxes at two angles may have the same enclosing box.
    if detections.rotated is not None:
        rows = np.column_stack([rows, detections.rotated])
    by_keypoints = "keypoints" in similarity_of(context.protocol).needed_columns or not detections.boxes_given
    if by_keypoints and detections.keypoints is not None:
        rows = np.column_stack([rows, detections.keypoints.reshape(len(detections), -1)])
    elif not detections.boxes_given:
        # Masks with one box may differ.
        return np.empty(0, dtype=np.intp), 0.0
    return _equal_to_earlier(rows), 0.0


def _each_once(context: Context, detections: Detections, again: NDArray[np.intp]) -> Repair:
    first = np.delete(np.arange(len(detections)), again)
    return lambda c, given: (c.ground_truth, given.take(first), c.protocol)


REPEATED = RowCheck(
    "repeated-detection",
    "semantic",
    _repeated_rows,
    lambda _: "warning",
    lambda context, count, __: (
        f"{counted(count, 'detection')} {verb(count, 'repeat')} an earlier one"
        f"{', score included' if context.protocol.matching.scores == 'given' else ''}: "
        "each is a false positive. Was a batch written twice?"
    ),
    "without repeats",
    _each_once,
)


def _equal_to_earlier(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the ascending positions of rows [D, C] that equal an earlier one."""
    # Most rows differ in image and left side; only the others are sorted completely.
    order = np.lexsort((rows[:, 2], rows[:, 0]))
    equal = np.all(rows[order[1:]][:, [0, 2]] == rows[order[:-1]][:, [0, 2]], axis=1)
    some = np.sort(order[np.append(equal, False) | np.append(False, equal)]) if len(rows) else order
    first = distinct_rows(rows[some])[0]
    return np.delete(some, first)


def no_scores(context: Context, count: int) -> Finding:
    """Report that no detection has a score."""
    return context.finding(NO_SCORES, "semantic", "note", count, SCORELESS.removesuffix("."))


def _scores(context: Context, detections: Detections) -> Iterator[Finding]:
    scores = detections.scores
    lowest, highest = float(scores.min()), float(scores.max())
    outside = np.flatnonzero((scores < 0) | (scores > 1)) if lowest < 0 or highest > 1 else np.empty(0, int)
    yield from odd_scores(context, len(scores), lowest, highest, len(outside), table=detections, rows=outside)
    floor = len(scores) >= FEWEST and lowest < highest and not len(outside) and lowest >= LEAST_FLOOR
    if floor and not context.chosen_classes:
        yield from _score_floor(context, lowest, len(scores))


def odd_scores(
    context: Context,
    count: int,
    lowest: float,
    highest: float,
    outside: int,
    *,
    table: Detections | None = None,
    rows: NDArray[np.intp] | None = None,
) -> Iterator[Finding]:
    """Report scores that are not probabilities, which are ``rows``, and scores that are all equal."""
    if outside:
        # The range of the scores suggests their meaning.
        guess = ""
        if lowest >= 0 and 1 < highest <= 100:
            guess = ". Are they percentages?"
        elif lowest < 0:
            guess = ". Are they logits?"
        yield context.finding(
            "score-outside-0-1",
            "semantic",
            "warning",
            outside,
            f"{counted(outside, 'score')} outside [0, 1] ({lowest:g} to {highest:g}); AP depends only on "
            f"their order{guess}",
            table=table,
            rows=() if rows is None else rows,
        )
    # Equal scores of enough detections are not a coincidence.
    if count >= FEWEST and lowest == highest:
        yield context.finding(
            "scores-all-equal",
            "semantic",
            "error",
            count,
            f"all scores are {lowest:g}, so AP depends on the order in the file. If the scores are "
            "placeholders, use --scoreless to count the boxes without ranking them",
            table=table,
            rows=np.arange(1),
        )


def _score_floor(context: Context, floor: float, count: int) -> Iterator[Finding]:
    """Report that low scores are absent, unless the curves are complete without them."""
    # Bound the effect of lower scores; if it is negligible, the cut does not matter.
    evaluation = context.evaluation
    assert evaluation is not None
    most = most_with_lower_scores(evaluation)
    if most is not None and not most - context.value > NEGLIGIBLE:
        return
    # Report where the curves end; NaN means that the curve is missing.
    recall, iou_text = recall_reached(evaluation)
    cut = f"detections below a score of {floor:.4g} seem to be missing: export with conf=0.001"
    if recall == recall:
        cut += f". Average recall never exceeds {recall:.2f} (IoU {iou_text}), which lowers AP"
    yield context.finding(
        "score-floor",
        "semantic",
        "warning" if floor >= 0.2 else "note",
        count,
        cut,
        repair="with all detections",
        most=most,
    )


def _tied_scores(context: Context, detections: Detections) -> Iterator[Finding]:
    """Report many equal scores per class: AP then depends on their order."""
    # Sort by class and score; equal neighbors are tied, on either side.
    scores, category = detections.scores, detections.category
    order = np.lexsort((scores, category))
    scores_up, category_up = scores[order], category[order]
    same = (scores_up[1:] == scores_up[:-1]) & (category_up[1:] == category_up[:-1])
    tied = np.append(same, False) | np.insert(same, 0, False)
    # Report only if many detections are tied; scores that are all equal have a finding of their own.
    share = float(tied.mean())
    if len(scores) < FEWEST or share < TIED or scores.min() == scores.max():
        return
    yield context.finding(
        "tied-scores",
        "semantic",
        "warning" if share > 0.5 else "note",
        int(tied.sum()),
        f"{counted(int(tied.sum()), 'detection')} ({share:.0%}) share their score with another of their "
        f"class, so AP depends on the order of tied scores{_bounds(context)}. Were the scores rounded?",
        table=detections,
        rows=order[tied][:1],
    )


def _bounds(context: Context) -> str:
    """Describe the range of the metric over orders of equal scores, if it is cheap to compute."""
    result = context.evaluation
    if result is None or len(result.detections) > FEW_TIED or context.metric not in result.metrics:
        return ""
    from boxscore.extensions.diagnostics.ties import ends_of_ties

    rows = [row.key for row in result.protocol.rows if row.metric == "AP"]
    if context.metric not in rows:
        return ""
    _, low, high = ends_of_ties(result, [context.metric]).total[:, 0].tolist()
    return f" ({context.metric} is between {low:.4f} and {high:.4f})" if low < high else ""


class Capped(NamedTuple):
    """Detections beyond max detections."""

    beyond: int = 0
    """Number of detections beyond the limit."""
    groups: int = 0
    """Number of images, classes or both beyond the limit, depending on the rule."""
    most: int = 0
    """Number of detections of the largest group."""
    worst: tuple[tuple[int, str], ...] = ()
    """The largest groups, by count and name."""

    def __add__(self, other: Capped) -> Capped:  # type: ignore[override]
        """Add up the counts of disjoint images; groups are within images."""
        worst = sorted([*self.worst, *other.worst], key=lambda one: -one[0])[:MOST_EXAMPLES]
        most = max(self.most, other.most)
        return Capped(self.beyond + other.beyond, self.groups + other.groups, most, tuple(worst))


def _cap_scope(protocol: Protocol) -> str:
    rules = protocol.matching
    return "image" if rules.caps_image else "data_set_class" if rules.caps_data_set else "class"


def _limited_groups(protocol: Protocol, table: BoxTable) -> NDArray[Any]:
    """Return a number for the group of each row that max detections applies to, [N]."""
    scope = _cap_scope(protocol)
    return _groups(table) if scope == "class" else table.image if scope == "image" else table.category


def counts_beyond(protocol: Protocol, detections: Detections) -> Capped:
    """Count the detections beyond max detections."""
    # Count the detections of each group that the limit applies to: images, classes, or both.
    limit, scope = protocol.caps[-1], _cap_scope(protocol)
    if limit is None:
        return Capped()
    # Count all groups in one call.
    numbers, counts = np.unique(_limited_groups(protocol, detections), return_counts=True)
    over = counts > limit
    labels, ids = detections.categories.labels, detections.images.ids.tolist()
    K = len(detections.categories)

    def name(number: int) -> str:
        if scope == "image":
            return f"image {ids[number]}"
        image = "" if scope == "data_set_class" else f"image {ids[number // K]}, "
        return f"{image}class {labels[number % K]}"

    # List the largest groups first; a stable sort keeps ties in order.
    worst = np.flatnonzero(over)[np.argsort(-counts[over], kind="stable")][:MOST_EXAMPLES]
    named = [(int(counts[at]), name(int(numbers[at]))) for at in worst]
    beyond = int((counts[over] - limit).sum())
    return Capped(beyond, int(over.sum()), int(counts.max(initial=0)), tuple(named))


def _beyond_max_detections(context: Context, detections: Detections) -> Iterator[Finding]:
    capped = counts_beyond(context.protocol, detections)
    if not capped.groups:
        return
    rules = context.protocol.matching
    matching = rules.replaced(max_detections=(*rules.max_detections[:-1], capped.most))
    raised = context.protocol.replaced(matching=matching)
    yield from beyond_max_detections(
        context, capped, repaired=lambda c, given: (c.ground_truth, given, raised)
    )


def _costly_limit(context: Context, detections: Detections) -> Iterator[Finding]:
    """Report detections beyond max detections, if that takes little time and lowers the metric."""
    limit, given = context.protocol.caps[-1], context.given
    if given is None or limit is None or given._evaluated_count == len(detections):
        return
    # With a limit of one, the protocol asks for a single answer.
    if limit == 1 or not context.is_soon(context.protocol):
        return
    # Only many objects in one group can lack a detection because of the limit.
    objects = np.unique(_limited_groups(context.protocol, context.ground_truth), return_counts=True)[1]
    if objects.max(initial=0) < limit / 2:
        return
    for finding in _beyond_max_detections(context, detections):
        with_effect = context.with_effect(finding)
        if with_effect.effect > COSTLY:
            yield with_effect


def beyond_max_detections(
    context: Context, capped: Capped, *, repaired: Repair | None = None
) -> Iterator[Finding]:
    """Report detections beyond the protocol's max detections."""
    limit = context.protocol.caps[-1]
    if limit is None or not capped.groups:
        return
    scope_text, noun = SCOPES[_cap_scope(context.protocol)]
    yield context.finding(
        "beyond-max-detections",
        "semantic",
        "note",
        capped.beyond,
        f"{counted(capped.beyond, 'detection')} {verb(capped.beyond, 'are')} not evaluated: max detections "
        f"is {limit} {scope_text} (exceeded in {counted(capped.groups, noun)})",
        examples=[f"{name}: {counted(count, 'detection')}" for count, name in capped.worst],
        repair=f"with max detections {capped.most}",
        repaired=repaired,
    )


def _below_max_detections(context: Context, detections: Detections) -> Iterator[Finding]:
    per_image = context.per_image
    most = int(per_image.max())
    full = np.flatnonzero(per_image == most)
    ids = detections.images.ids[full[:MOST_EXAMPLES]].tolist()
    yield from cut_per_image(
        context,
        most,
        len(full),
        int((per_image == most - 1).sum()),
        len(per_image),
        examples=[f"image {identifier}" for identifier in ids],
        repaired=lambda c, given: (c.ground_truth, _first_of_each(given, most // 2), c.protocol),
    )


def cut_per_image(
    context: Context,
    most: int,
    full: int,
    below: int,
    images: int,
    *,
    examples: Sequence[str] = (),
    repaired: Repair | None = None,
) -> Iterator[Finding]:
    """Report many images with exactly the largest number of detections: the detector was limited.

    ``below`` is the number of images with one less.
    """
    top, scope = context.protocol.caps[-1], _cap_scope(context.protocol)
    if most < 5 or full < max(5, 0.02 * images, 3 * below) or (top is not None and most >= top):
        return
    yield context.finding(
        "detections-cut-per-image",
        "semantic",
        "warning",
        full,
        f"{counted(full, 'image')} {verb(full, 'have')} exactly {most} detections and none has more: the "
        f"detector seems to be limited to {most}"
        + ("" if top is None else f", below the protocol's max detections of {top} {SCOPES[scope][0]}"),
        examples=examples,
        repair=f"with at most {most // 2} per image",
        repaired=repaired,
    )


def _first_of_each(detections: Detections, most: int) -> Detections:
    """Select the ``most`` detections of each image with the highest scores."""
    keys = (detections.image,) if not detections.scored else (-detections.scores, detections.image)
    order = np.lexsort(keys)
    image = detections.image[order]
    rank = np.arange(len(order)) - np.searchsorted(image, image, side="left")
    return detections.take(np.sort(order[rank < most]))
