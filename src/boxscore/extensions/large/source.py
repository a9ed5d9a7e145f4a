"""Access the rows of a result that is in parts: read parts where they are, and partitions again from disk.

Conventions
-----------
- Matches are in parts, as long as the engine keeps them. Tables are not kept: questions about boxes read,
  prepare and match the partitions again.
- Parts are merged class by class. A class that is too large for one process is merged in chunks by score,
  which never split equal scores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.ordering import group_order
from boxscore._utils.text import counted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import rows_among_all
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.headers import headers_of
from boxscore.extensions.large.joining import of_one_data_set
from boxscore.extensions.large.merging import MergedParts
from boxscore.extensions.large.parts import Part
from boxscore.extensions.large.pieces import Cut, edges_between, range_bounds, sample_of_scores
from boxscore.extensions.large.plan import ClassPlan, asked_keys, most_within, name_of, runs_of_classes
from boxscore.extensions.large.questions import Answer, Classes, ClassRows, Map, Options, Pieces, Place
from boxscore.extensions.large.reduction import curves_of_block, reduced
from boxscore.extensions.large.weighing import HeldParts
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.curves import Curves
from boxscore.scoring.summary import Key

PER_ROW = 700
"""Bytes per image in a table of images."""

OF_PARTS = " of merged parts"
NO_ROWS = "merged parts store only scores and outcomes: evaluate these images with boxscore.evaluate"


def no_rows(what: str) -> InputError:
    """Return the error for a question that needs boxes, which parts do not have."""
    got = "parts, which do not store boxes"
    return InputError(f"{what}{OF_PARTS}", "be computed from tables", got=got, cause=NO_ROWS)


def reads_all_scores(rules: Protocol) -> bool:
    """Return whether the rules need the scores of all images."""
    return bool(rules.matching.caps_data_set or rules.rounding.stretch_scores)


@dataclasses.dataclass(frozen=True, eq=False)
class InParts:
    """The source of a result in parts.

    Attributes
    ----------
    evaluation : MergedEvaluation
        The result; its module imports this one.
    held : HeldParts or None
        The parts; None once they are gone.
    keeps_matches : bool
    """

    evaluation: Any
    held: HeldParts | None
    keeps_matches: bool
    is_here = False

    @property
    def there(self) -> HeldParts:
        """The parts; raises an error if they are gone."""
        if self.held is None:
            raise InputError(
                "the parts of a result",
                "still be available where they were matched",
                got="numbers only",
                cause="compute it before the client is closed, or save parts and merge them",
            )
        return self.held

    def require(self, what: str, rules: Protocol | None = None) -> None:
        """Raise if tables are gone, or if the rules need the scores of all images."""
        if self.held is None or not self.held.tasks:
            raise no_rows(what)
        self.with_own_scores(what, rules)

    def with_own_scores(self, what: str, rules: Protocol | None = None) -> HeldParts:
        """Return the parts; raise if the rules need the scores of all images."""
        if reads_all_scores(rules or self.evaluation.protocol):
            name = self.evaluation.protocol.name
            cause = f"the protocol {name} uses the scores of the whole data set"
            raise InputError(what, "be computed with all images in memory", got="partitions", cause=cause)
        return self.there

    def pieces(
        self, what: str, function: Map[Any], options: Options
    ) -> contextlib.AbstractContextManager[Pieces]:
        """Map a function over the partitions; return values stay where they are."""
        self.require(what)
        return self._pieces(self.there, function, options)

    @contextlib.contextmanager
    def _pieces(self, held: HeldParts, function: Map[Any], options: Options) -> Iterator[Pieces]:
        with held.engine.asked_again():
            tasks = _map_over_tasks(held, function, options)
            yield HeldPieces(held.engine, held.engine.held(tasks, shown="reading again"), held.room)

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Map a function over the partitions, and collect the return values."""
        self.require(what)
        held = self.there
        if rows_of_images:
            images = sum(header.images for header in held.headers)
            rows = f"the rows of {counted(images, 'image')}"
            self.check_room(4 * PER_ROW * images, rows, "use a larger limit, or part of the data")
        with held.engine.asked_again():
            return held.engine.results(_map_over_tasks(held, function, options), shown="reading again")

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Map a function over the parts."""
        held = self.there
        with held.engine.asked_again():
            tasks = [
                held.engine.submit("ask", _call_with_part, part, place, function, options)
                for part, place in zip(held.parts, held.places(), strict=True)
            ]
            return held.engine.results(tasks, shown="counting")

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Merge the parts of some classes at a time, and of a large class in chunks."""
        held = self.with_own_scores(what)
        submit, tasks, owners = held.engine.submit, list[Any](), list[Classes]()
        with held.engine.asked_again():
            plan = ClassPlan(held.engine, held.parts, held.headers, most_within(held.room))
            blocks = list(plan.blocks())
            edges = plan.edges(blocks)
            for block in blocks:
                for number, piece in enumerate(block.between(edges.get(block, []))):
                    name = f"{name_of(block)}-{number}"
                    tasks.append(
                        submit(f"ask-{name}", _call_with_matches, plan.pieces(piece, name), function)
                    )
                    owners.append(Classes(block.low, block.high))
            return list(zip(owners, held.engine.results(tasks), strict=True))

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Merge the parts of some classes at a time; skip classes that are too large."""
        held, classes = self.with_own_scores(what), len(self.evaluation.curves_of(area, cap, pooled).positive)
        with held.engine.asked_again():
            plan = ClassPlan(held.engine, held.parts, held.headers, most_within(held.room))
            blocks = list(plan.blocks()) if pooled is None else plan.pooled([pooled])
            asked = (area, cap), plan.images, function, classes
            tasks = [
                held.engine.submit(
                    f"ask-{name_of(block)}",
                    _call_with_curves,
                    plan.pieces(block, name_of(block)),
                    block,
                    *asked,
                )
                for block in blocks
                if not plan.is_too_large(block)
            ]
            answers = iter(held.engine.results(tasks))
        return [None if plan.is_too_large(block) else next(answers) for block in blocks]

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Reduce the parts under other AP rules, and cache the result."""
        key = "under", repr(ap), None if keys is None else tuple(keys)
        evaluation: Evaluation = self.evaluation._once(key, lambda: self._under(ap, keys))
        return evaluation

    def _under(self, ap: ApRules, keys: Sequence[Key] | None) -> Evaluation:
        held, protocol = self.there, self.evaluation.protocol.replaced(ap=ap)
        parts = [held.engine.submit("rules", _with_protocol, part, protocol) for part in held.parts]
        with held.engine.asked_again():
            numbers = reduced(
                held.engine,
                parts,
                most=most_within(held.room),
                headers=[header._replace(protocol=protocol) for header in held.headers],
                keys=asked_keys(protocol) if keys is None else keys,
            )
        evaluation: Evaluation = self.evaluation.of_numbers(numbers)
        return evaluation

    def matched_anew(
        self, what: str, matched: Callable[[Evaluation, Protocol], Matches], protocol: Protocol
    ) -> list[Curves]:
        """Make parts under another protocol, and reduce them."""
        self.require(what, protocol)
        held, last = self.there, len(protocol.caps) - 1
        keys = [(area, last) for area in range(len(protocol.ignore.area_ranges))]
        with held.engine.asked_again():
            asked = [
                held.engine.submit("matching again", _part, task, matched, protocol) for task in held.tasks
            ]
            parts = held.engine.held(asked, shown="reading again")
            numbers = reduced(
                held.engine,
                parts,
                most=most_within(held.room),
                headers=headers_of(held.engine, parts),
                keys=keys,
            )
        return [numbers.curves[(*key, None)] for key in keys]

    def tables_of(self, rows: IntArray) -> tuple[Evaluation, IntArray | None]:
        """Read the images again."""
        held, rows = self.with_own_scores("images"), np.unique(rows)
        with held.engine.asked_again():
            asked = [
                held.engine.submit("images", _tables_of, task, place, header.images, rows)
                for task, place, header in zip(held.tasks, held.places(), held.headers, strict=True)
            ]
            tables = held.engine.results(asked, shown="reading images again")
        truth, detections = (of_one_data_set(side) for side in zip(*tables, strict=True))
        return held.tasks[0].evaluation_of(truth, detections), rows

    def check_room(self, needed: int, what: str, cause: str) -> None:
        """Raise if ``needed`` bytes exceed the limit of a process."""
        room = self.there.room
        if room is not None and needed > room:
            rule = f"leave a process {needed / 1e6:,.0f} MB for {what}"
            raise InputError("--memory-limit", rule, got=f"{room / 1e6:,.0f} MB", cause=cause)


# ---------------------------------------------------------------- return values that stay where they are


@dataclasses.dataclass(frozen=True, eq=False)
class HeldPieces:
    """Return values of a map, one per partition: in this process, in files, or on workers."""

    engine: Engine
    held: Sequence[Any]
    """Handles of the engine."""
    room: int | None = None

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.held)

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Call a function with each piece, and collect the return values."""
        return self.engine.results(self._submitted(function, *arguments))

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Call a function with each piece and its own arguments, and collect the return values."""
        name = function.__name__
        tasks = [
            self.engine.submit(name, function, one, *own)
            for one, own in zip(self.held, arguments, strict=True)
        ]
        return self.engine.results(tasks, shown="weighing")

    def then(self, function: Callable[..., Any], *arguments: Any) -> HeldPieces:
        """Map a function over the pieces."""
        held = self.engine.held(self._submitted(function, *arguments))
        return dataclasses.replace(self, held=held)

    def _submitted(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [self.engine.submit(function.__name__, function, one, *arguments) for one in self.held]

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> HeldPieces:
        """Split each piece at the same ends, and join the slices between two ends."""
        submit = self.engine.submit
        tasks = [
            submit("gather", join, [submit("cut", cut, one, low, high) for one in self.held])
            for low, high in itertools.pairwise(ends)
        ]
        return dataclasses.replace(self, held=self.engine.held(tasks))

    def by_class(
        self,
        sizes: IntArray,
        score: Callable[..., Answer],
        count: Callable[[ClassRows], IntArray],
        *arguments: Any,
    ) -> list[list[Answer]]:
        """Collect the rows of some classes at a time, and of a large class in chunks."""
        # Split the classes into runs that one process can merge, and classes that are too large into chunks.
        submit, most = self.engine.submit, most_within(self.room)
        ranges: dict[Cut, list[Cut]] = {block: [block] for block in runs_of_classes(sizes, most)}
        large = [block for block in ranges if sizes[block.low : block.high].sum() > most]
        before: dict[Cut, IntArray] = {}
        if large:
            # Choose the edges of chunks from samples of all pieces, and count the rows of each chunk first,
            # so that the chunks of a class can be scored in parallel.
            samples = self.results(_sample, large)
            for number, block in enumerate(large):
                sample = [one for of_piece in samples for one in of_piece[number]]
                ranges[block] = block.between(edges_between(sample, int(sizes[block.low]), most))
            counts = np.sum(
                self.results(_counts_of, [cut for block in large for cut in ranges[block]], count), axis=0
            )
            # The count of higher scores is the exact running sum over previous chunks.
            for block in large:
                of_ranges, counts = np.split(counts, [len(ranges[block])])
                above = np.cumsum(of_ranges, axis=0) - of_ranges
                before |= zip(ranges[block], above, strict=True)
        # Submit every chunk of every class before waiting, so that workers run in parallel.
        tasks = [
            submit(
                f"score-{name_of(piece)}",
                _scored,
                [submit("cut", cut_rows, one, piece) for one in self.held],
                score,
                Classes(piece.low, piece.high),
                before.get(piece),
                arguments,
            )
            for pieces in ranges.values()
            for piece in pieces
        ]
        answers = iter(self.engine.results(tasks))
        return [[next(answers) for _ in pieces] for pieces in ranges.values()]


def cut_rows(rows: ClassRows, piece: Cut) -> ClassRows:
    """Copy the rows of some classes, or of a chunk of them by score."""
    bounds = rows.bounds[piece.low : piece.high + 1]
    sizes, slices = np.diff(bounds), [slice(int(bounds[0]), int(bounds[-1]))]
    if piece.is_range:
        first, end = range_bounds(rows.score, bounds, piece)
        sizes = end - first
        slices = [slice(*pair) for pair in zip(first.tolist(), end.tolist(), strict=True)]

    def taken(column: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([column[one] for one in slices])

    return ClassRows(np.append(0, np.cumsum(sizes)), taken(rows.score), tuple(map(taken, rows.columns)))


def joined_rows(pieces: Sequence[ClassRows]) -> ClassRows:
    """Merge rows of the same classes by descending score; equal scores keep their order."""
    category = np.concatenate([one.category for one in pieces])
    score: NDArray[np.float64] = np.concatenate([one.score for one in pieces])
    order = group_order(category, score)
    columns = (np.concatenate(column)[order] for column in zip(*(one.columns for one in pieces), strict=True))
    return ClassRows(np.sum([one.bounds for one in pieces], axis=0), score[order], tuple(columns))


def _sample(rows: ClassRows, blocks: Sequence[Cut]) -> list[Any]:
    return [sample_of_scores(rows.score, rows.bounds[block.low : block.high + 1]) for block in blocks]


def _counts_of(
    rows: ClassRows, cuts: Sequence[Cut], count: Callable[[ClassRows], IntArray]
) -> list[IntArray]:
    return [count(cut_rows(rows, piece)) for piece in cuts]


def _scored(
    pieces: Sequence[ClassRows],
    score: Callable[..., Answer],
    classes: Classes,
    before: IntArray | None,
    arguments: Sequence[Any],
) -> Answer:
    return score(joined_rows(pieces), classes, before, *arguments)


# ---------------------------------------------------------------- functions that run on workers


def _map_over_tasks(held: HeldParts, function: Map[Any], options: Options) -> list[Any]:
    """Submit a function for each partition, with the rows of its images among all."""
    return [
        held.engine.submit("ask", _call_with_task, task, function, {"place": place, **options})
        for task, place in zip(held.tasks, held.places(), strict=True)
    ]


def _call_with_task(task: Any, function: Map[Answer], options: Options) -> Answer:
    answer: Answer = task.asked(function, options)
    return answer


def _call_with_part(part: Part, place: Place, function: Callable[..., Answer], options: Options) -> Answer:
    return function(MergedParts([part]).matches(), place=place, **options)


def _call_with_matches(pieces: Sequence[Part], function: Callable[[Matches], Answer]) -> Answer:
    return function(MergedParts(pieces).matches())


def _call_with_curves(
    pieces: Sequence[Part],
    block: Cut,
    key: Key,
    images: int,
    function: Callable[[Curves, int], Answer],
    classes: int,
) -> Answer:
    return function(curves_of_block(pieces, block, key, images), classes)


def _with_protocol(part: Part, protocol: Protocol) -> Part:
    return dataclasses.replace(part, protocol=protocol)


def _tables_of(task: Any, place: Place, count: int, rows: IntArray) -> tuple[GroundTruth, Detections]:
    """Read the images of a partition that are among ``rows``."""
    images = np.flatnonzero(np.isin(rows_among_all(np.arange(count), place), rows))
    tables: tuple[GroundTruth, Detections] = task.tables_of(images)
    return tables


def _part(task: Any, matched: Callable[[Evaluation, Protocol], Matches], protocol: Protocol) -> Part:
    part: Part = task.asked(_part_of, {"matched": matched, "protocol": protocol}, rows=True)
    return part


def _part_of(
    evaluation: Evaluation,
    *,
    rows: NDArray[np.int64],
    matched: Callable[[Evaluation, Protocol], Matches],
    protocol: Protocol,
) -> Part:
    """Match again and make a part, with the rows of the files."""
    matches = matched(evaluation, protocol)
    matches = dataclasses.replace(matches, row=rows[matches.row])
    return Part.of(matches, evaluation.ground_truth, evaluation.detections, protocol, row_order="shared")
