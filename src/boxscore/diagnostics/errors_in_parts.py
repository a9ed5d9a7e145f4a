"""Costs of errors where no process holds all detections: a part for each fix, merged as scores are.

Conventions
-----------
- In its partition each detection gets its error and each object its state; of what is fixed a part is
  cut, which has one threshold and no boxes. Parts of a fix merge class by class, or by ranges of scores.
- Rows order equal scores as in one process: by image and rank; where something is fixed the errors first.
- With all false positives last, true positives alone decide: a part has these, and of a class one more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore.evaluation import Evaluation
from boxscore.matching.matches import Matches
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables import ApRules
from boxscore.scoring.curves import Curves

if TYPE_CHECKING:
    from boxscore.distributed.parts import Part

PLACE = 40
"""Bits of a row's place in its partition; those above number the partition."""

RIGHT = 1 << 62
"""Added to rows of true positives where errors of the same score come before them."""


class Ranked(NamedTuple):
    """Detections of a partition that a curve is of, [N] each, and the objects that it counts."""

    rows: NDArray[np.intp]
    """Of the detections table."""
    category: NDArray[np.integer[Any]]
    score: FloatArray
    true: BoolArray
    order: NDArray[np.int64]
    """Of equal scores the least comes first."""
    positive: BoolArray
    """Of the ground truth, [G]."""


Fixed = Callable[..., tuple[Mapping[str, Ranked], NDArray[np.int64]]]
"""Takes the evaluation of a partition and options; gives what is ranked by the name of a fix, and counts."""


def curves_of_fixes(
    evaluation: Any, fixed: Fixed, options: Mapping[str, Any], rules: ApRules
) -> tuple[Mapping[str, Curves], NDArray[np.int64]]:
    """Ask every partition, and merge: the curves of each fix, by its name, and the counts of all."""
    from boxscore.distributed.plan import MOST, SCORED
    from boxscore.distributed.reduction import reduced

    held = evaluation.partitions_again(fixed.__name__)
    engine = held.engine
    with engine.asked_again():
        tasks = [engine.submit("fix", _parts_of_fixes, task, fixed, options, rules) for task in held.tasks]
        answers = engine.held(tasks, shown="reading again")
        names, counts = zip(
            *engine.results([engine.submit("counts", _counts, one) for one in answers]), strict=True
        )
        most = MOST if held.room is None else min(MOST, held.room // SCORED)
        curves = {}
        for name in names[0]:
            parts = [engine.submit("part", _part, answer, name) for answer in answers]
            curves[name] = reduced(engine, parts, most=most).curves[0, 0, None]
    return curves, np.sum(counts, axis=0)


class _Answer(NamedTuple):
    parts: dict[str, Part]
    counts: NDArray[np.int64]


def _parts_of_fixes(task: Any, fixed: Fixed, options: Mapping[str, Any], rules: ApRules) -> _Answer:
    """Run in each partition."""
    answer: _Answer = task.asked(
        _cut, {"fixed": fixed, "options": options, "number": task.number, "rules": rules}
    )
    return answer


def _cut(
    evaluation: Evaluation, *, fixed: Fixed, options: Mapping[str, Any], number: int, rules: ApRules
) -> _Answer:
    from boxscore.distributed.parts import Part

    every, counts = fixed(evaluation, **options)
    protocol = _protocol(rules)
    parts = {}
    for name, ranked in every.items():
        order = ranked.order + (number << PLACE)
        matches = _matches(evaluation, ranked._replace(order=order))
        truth, detections = evaluation.ground_truth, evaluation.detections
        parts[name] = Part.of(matches, truth, detections, protocol, row_order="shared")
    return _Answer(parts, counts)


def _counts(answer: _Answer) -> tuple[Sequence[str], NDArray[np.int64]]:
    return list(answer.parts), answer.counts.copy()


def _part(answer: _Answer, name: str) -> Part:
    return answer.parts[name]


def _protocol(rules: ApRules) -> Protocol:
    """Return the protocol of parts: one threshold, one area, every detection."""
    protocol = load_protocol(
        {
            "extends": "tide",
            "name": "errors",
            "title": "Costs of errors",
            "matching": {"iou_thresholds": [0.5], "equal_scores": "file_order"},
            "summary": [{"key": "AP"}],
        }
    )
    return dataclasses.replace(protocol, ap=rules)


def _matches(evaluation: Evaluation, ranked: Ranked) -> Matches:
    """Say of each detection that it is true or not, of an object of its class; which one does not matter."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    objects = np.flatnonzero(ranked.positive)
    of_class = np.zeros(len(truth.categories), dtype=np.intp)
    of_class[truth.category[objects][::-1]] = np.arange(len(objects))[::-1]
    true = np.flatnonzero(ranked.true)
    ones = np.ones(len(ranked.rows), dtype=np.uint8)
    return Matches(
        images=truth.images,
        categories=truth.categories,
        image=detections.image[ranked.rows],
        category=ranked.category.astype(np.int32),
        score=ranked.score,
        rank=np.zeros(len(ranked.rows), dtype=np.int32),
        row=ranked.order,
        in_range_bits=ones,
        truth_image=truth.image[objects],
        truth_category=truth.category[objects],
        truth_row=objects.astype(np.int64),
        counted_bits=np.ones(len(objects), dtype=np.uint8),
        pair_detection=true,
        pair_truth=of_class[ranked.category[true]],
        iou=np.ones(len(true)),
        matched_bits=np.ones((len(true), 1), dtype=np.uint8),
        threshold_count=1,
        equal_scores="file_order",
        every_pair=False,
    ).in_class_order()
