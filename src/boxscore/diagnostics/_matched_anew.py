"""Curves of tables that are matched anew for one question: here, or in every partition.

Conventions
-----------
- Of a partition a part is made under the other protocol, and parts merge as those of an evaluation do: bits,
  order of equal scores, and classes that are cut by scores are theirs (:mod:`boxscore.distributed`).
- The function that matches takes an evaluation and that protocol, and pickles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.curves import Curves

Matched = Callable[[Evaluation, Protocol], Matches]


def curves_matched_anew(
    evaluation: Evaluation, what: str, matched: Matched, protocol: Protocol
) -> list[Curves]:
    """Return the curves of each area range of a protocol, at its largest max detections.

    ``what`` is asked names the question where it is refused.
    """
    # In memory: match under the changed protocol, with one set of curves per area range.
    areas = range(len(protocol.ignore.area_ranges))
    if not evaluation.has_partitions:
        evaluation.require_overlaps(what)
        matches = matched(evaluation, protocol)
        return [Curves.of(matches, protocol, area) for area in areas]
    from boxscore.distributed.plan import most_within
    from boxscore.distributed.reduction import reduced
    from boxscore.distributed.result import headers_of

    # In partitions: each matches again where it is, and the parts reduce as usual.
    parted: Any = evaluation
    held, last = parted.partitions_again(what, protocol), len(protocol.caps) - 1
    with held.engine.asked_again():
        asked = [held.engine.submit("match anew", _part, task, matched, protocol) for task in held.tasks]
        parts = held.engine.held(asked, shown="reading again")
        numbers = reduced(
            held.engine,
            parts,
            most=most_within(held.room),
            headers=headers_of(held.engine, parts),
            keys=[(area, last) for area in areas],
        )
    return [numbers.curves[area, last, None] for area in areas]


def _part(task: Any, matched: Matched, protocol: Protocol) -> Any:
    """Run in each partition."""
    return task.asked(_part_of, {"matched": matched, "protocol": protocol}, rows=True)


def _part_of(evaluation: Evaluation, *, rows: NDArray[np.int64], matched: Matched, protocol: Protocol) -> Any:
    from boxscore.distributed.parts import Part

    matches = matched(evaluation, protocol)
    matches = dataclasses.replace(matches, row=rows[matches.row])
    return Part.of(matches, evaluation.ground_truth, evaluation.detections, protocol, row_order="shared")
