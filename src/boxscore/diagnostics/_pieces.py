"""Questions about boxes whose answers grow with the detections: asked of all at once, or of every partition.

Conventions
-----------
- An answer stays where it was made: here, in a file, or on a worker. One process has one *piece*, of all
  images, and goes the same way as many.
- The function that is asked takes an evaluation and the rows that its images have among all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from boxscore.distributed.engine import Here
from boxscore.evaluation import Evaluation

Place = Any
"""Row of the first image of a piece among all, or of each."""


class Pieces(NamedTuple):
    """Answers, wherever they are."""

    engine: Any
    held: Sequence[Any]
    room: int | None = None
    """Bytes that one process may take; None for no limit."""

    def results(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function says of each."""
        return list(self.engine.results(self._submitted(function, *arguments)))

    def then(self, function: Callable[..., Any], *arguments: Any) -> Pieces:
        """Put what a function makes of each in its place."""
        return self._replace(held=self.engine.held(self._submitted(function, *arguments)))

    def _submitted(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return [self.engine.submit(function.__name__, function, one, *arguments) for one in self.held]


@contextlib.contextmanager
def pieces_of(
    evaluation: Evaluation, what: str, function: Callable[..., Any], options: Mapping[str, Any]
) -> Iterator[Pieces]:
    """Ask every partition, or the whole evaluation where there is none.

    ``what`` is asked names the question where it is refused.
    """
    if not evaluation.has_partitions:
        evaluation.require_overlaps(what)
        yield Pieces(Here(), [function(evaluation, 0, **options)])
        return
    parted: Any = evaluation
    held = parted.partitions_again(what)
    with held.engine.asked_again():
        tasks = _submitted(held, function, options)
        yield Pieces(held.engine, held.engine.held(tasks, shown="reading again"), held.room)


def answers_of(
    evaluation: Evaluation, what: str, function: Callable[..., Any], options: Mapping[str, Any]
) -> list[Any]:
    """Ask as :func:`pieces_of`, and bring the answers here, which do not grow with the detections."""
    if not evaluation.has_partitions:
        evaluation.require_overlaps(what)
        return [function(evaluation, 0, **options)]
    parted: Any = evaluation
    held = parted.partitions_again(what)
    with held.engine.asked_again():
        answers: list[Any] = held.engine.results(_submitted(held, function, options), shown="reading again")
        return answers


def _submitted(held: Any, function: Callable[..., Any], options: Mapping[str, Any]) -> list[Any]:
    """Ask each partition, and say which rows its images have among all."""
    return [
        held.engine.submit("ask", _asked, task, place, function, options)
        for task, place in zip(held.tasks, held.places(), strict=True)
    ]


def _asked(task: Any, place: Place, function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    return task.asked(function, {"place": place, **options})
