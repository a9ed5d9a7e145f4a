"""Ties where no process holds all detections: bounds and expectations class by class, where the parts are.

Conventions
-----------
- Bounds are AP under another order of equal scores: parts under that rule, reduced again.
- A class is merged whole for its expectation; where it is too large for one process there is none.
- Equal scores of a class are in one range of its scores; contested detections are of one image.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.distributed.merging import MergedParts
from boxscore.distributed.parts import Part
from boxscore.distributed.pieces import Cut
from boxscore.distributed.plan import ClassPlan, asked_keys, most_within, name_of
from boxscore.distributed.reduction import curves_of_block, reduced
from boxscore.distributed.result import DistributedEvaluation
from boxscore.distributed.weighing import HeldParts
from boxscore.protocols.tables.ap import TieOrder
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.summary import Key
from boxscore.scoring.tied import TiedExpectation, expected_over_ties


def with_tie_order(evaluation: Any, order: TieOrder) -> DistributedEvaluation:
    """Return the result under another order of equal scores; nothing is matched again."""
    held: HeldParts = evaluation.partitions_again("ties")
    parts = [held.engine.submit("ties", _reordered, part, order) for part in held.parts]
    protocol = _with_order(evaluation.protocol, order)
    headers = [header._replace(protocol=protocol) for header in held.headers]
    with held.engine.asked_again():
        numbers = reduced(
            held.engine, parts, most=most_within(held.room), headers=headers, keys=asked_keys(protocol)
        )
    return DistributedEvaluation.of(numbers)


def _with_order(protocol: Any, order: TieOrder) -> Any:
    return protocol.replaced(ap=protocol.ap.replaced(tie_order=order))


def _reordered(part: Part, order: TieOrder) -> Part:
    return dataclasses.replace(part, protocol=_with_order(part.protocol, order))


def expected_in_parts(evaluation: Any, key: Key, pooled: str | None) -> tuple[TiedExpectation, int]:
    """Return the expectations of all classes, and how many classes are too large and have NaN.

    Raises
    ------
    NoExpectationError
        When the protocol's AP is not a mean of precision at true detections.
    """
    # Merge each class whole where it fits one process, and compute its expectation there.
    held: HeldParts = evaluation.partitions_again("ties")
    curves = evaluation.curves_of(*key, pooled)
    with held.engine.asked_again():
        plan = ClassPlan(held.engine, held.parts, held.headers, most_within(held.room))
        # One task for each block: a run of whole classes, or the classes that share a curve.
        blocks = list(plan.blocks()) if pooled is None else plan.pooled([pooled])
        tasks = [
            held.engine.submit(
                f"ties-{name_of(block)}",
                _expected,
                plan.pieces(block, name_of(block)),
                block,
                key,
                plan.images,
                len(curves.positive),
            )
            for block in blocks
            if not plan.is_too_large(block)
        ]
        answers = iter(held.engine.results(tasks))
    # A class that is too large gets NaN, in the shape of the others.
    found: list[tuple[FloatArray, FloatArray] | None] = [
        None if plan.is_too_large(block) else next(answers) for block in blocks
    ]
    shape = next((one[0].shape[:-1] for one in found if one is not None), (curves.recall.shape[0],))
    unknown = np.full((*shape, 1), np.nan), np.zeros((curves.recall.shape[0], 1))
    values, errors = zip(*(one or unknown for one in found), strict=True)
    whole = TiedExpectation(HeldValues(np.concatenate(values, axis=-1)), np.concatenate(errors, axis=-1))
    return whole, sum(one is None for one in found)


def _expected(
    pieces: Sequence[Part], block: Cut, key: Key, images: int, classes: int
) -> tuple[FloatArray, FloatArray]:
    values, error = expected_over_ties(curves_of_block(pieces, block, key, images), classes)
    return values.values, error


def tied_in_parts(evaluation: Any) -> IntArray:
    """Count the detections that share their class and score with another, [K]."""
    # Cut classes that are too large by scores: equal scores are always in one range, so counts of ranges add
    # up.
    held: HeldParts = evaluation.partitions_again("ties")
    with held.engine.asked_again():
        plan = ClassPlan(held.engine, held.parts, held.headers, most_within(held.room))
        blocks = list(plan.blocks())
        edges = plan.edges(blocks)
        tasks, owners = [], []
        for block in blocks:
            for number, piece in enumerate(block.between(edges.get(block, []))):
                name = f"{name_of(block)}-{number}"
                tasks.append(held.engine.submit(f"tied-{name}", _tied, plan.pieces(piece, name)))
                owners.append(block)
        answers = held.engine.results(tasks)
    # Add the counts of each piece to its classes.
    counts = np.zeros(len(evaluation.labels), dtype=np.int64)
    for block, answer in zip(owners, answers, strict=True):
        counts[block.low : block.high] += answer
    return counts


def _tied(pieces: Sequence[Part]) -> IntArray:
    matches = MergedParts(pieces).matches()
    starts = tie_starts(matches.category, matches.score)
    sizes = np.diff(np.append(starts, len(matches)))
    tied = np.flatnonzero(np.repeat(sizes, sizes) > 1)
    return np.bincount(matches.category[tied], minlength=len(matches.categories))
