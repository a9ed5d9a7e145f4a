"""Define where the rows of a result are, and how metrics and diagnostics reach them.

Conventions
-----------
- A *question* is a metric or diagnostic. It is written once, against :class:`Source`, and works wherever the
  rows are: in memory (:class:`InMemory`, below) or in partitions on disk or on a cluster
  (:mod:`boxscore.extensions.large.source`). :func:`source_of` gives the source of a result.
- *Map*: call a function with the evaluation of some images: once for everything in memory, or once per
  partition, which is read again. Return values stay where they were made (:class:`Pieces`) or are collected
  in this process (:meth:`Source.answers`).
- *Exchange*: collect detections of all images that must be sorted together: by class, by ranges of numbers,
  or by ranges of scores. In memory they are together already.
- *Join*: add, fold or concatenate the collected values, in plain code of the question.
- A source raises an error for a question that it cannot answer. A diagnostic that needs more than these steps
  asks for all rows (:meth:`boxscore.Evaluation._require_overlaps`).
- Functions, their options and their return values must pickle; in memory nothing is pickled.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.protocols.protocol import Protocol as Rules
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.curves import Curves

if TYPE_CHECKING:
    from boxscore.matching.matches import Matches
    from boxscore.scoring.summary import Key

Evaluation = Any
"""A :class:`boxscore.Evaluation`; importing it here would be circular."""

Answer = TypeVar("Answer")
Place = int | NDArray[np.int64]
"""Rows of a piece's images among all: the first row if they are consecutive, else every row, [images]."""

Options = Mapping[str, Any]
Map = Callable[..., Answer]
"""Takes the evaluation of some images and keyword arguments: ``place``, a :data:`Place`, and options."""


class Classes(NamedTuple):
    """The classes [low, high) of one call."""

    low: int
    high: int


class ClassRows(NamedTuple):
    """Detections with columns, by class and descending score; K classes, N rows."""

    bounds: IntArray
    """Offset of each class, and the end, [K + 1]."""
    score: FloatArray
    """[N]"""
    columns: tuple[NDArray[Any], ...]
    """[N] each."""
    known: Any = None
    """Any other return value of the piece."""

    @property
    def category(self) -> NDArray[np.int32]:
        """Class of each row, relative to the first class, [N]."""
        classes = np.arange(len(self.bounds) - 1, dtype=np.int32)
        return np.repeat(classes, np.diff(self.bounds))


class Pieces(Protocol):
    """The return values of a map, one per set of images, in the processes that made them."""

    @property
    def room(self) -> int | None:
        """Memory limit of a process in bytes; None for no limit."""

    @property
    def count(self) -> int:
        """Number of pieces."""

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Call a function with each piece, and collect the return values."""

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Call a function with each piece and its own arguments, and collect the return values."""

    def then(self, function: Callable[..., Any], *arguments: Any) -> Pieces:
        """Map a function over the pieces."""

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> Pieces:
        """Split each piece at the same ends, and join the slices between two ends to a new piece.

        ``cut`` takes a piece and two ends. The number of pieces stays the same.
        """

    def by_class(
        self,
        sizes: IntArray,
        score: Callable[..., Answer],
        count: Callable[[ClassRows], IntArray],
        *arguments: Any,
    ) -> list[list[Answer]]:
        """Collect the rows of classes from pieces, which are :class:`ClassRows`.

        Parameters
        ----------
        sizes : ndarray of int64, [K]
            Number of rows of each class in all pieces.
        score : callable
            Takes the rows of some classes, or of a chunk of one class; the :class:`Classes`; for a chunk, the
            ``count`` of all higher scores of the class, otherwise None; and ``arguments``.
        count : callable
            Takes rows of one class and returns numbers that add up over rows.

        Returns
        -------
        list of list
            Return values of ``score`` per block of classes, chunk by chunk, highest scores first.
        """


class Source(Protocol):
    """Access to the rows of a result."""

    @property
    def is_here(self) -> bool:
        """Whether tables, overlaps and all candidates are in this process."""

    @property
    def keeps_matches(self) -> bool:
        """Whether :meth:`over_classes` works, also for another order of equal scores."""

    def require(self, what: str, rules: Rules | None = None) -> None:
        """Raise, with the name of the question, if it cannot be answered one set of images at a time.

        ``rules`` is the protocol for matching; by default that of the result.
        """

    def pieces(self, what: str, function: Map[Any], options: Options) -> AbstractContextManager[Pieces]:
        """Map a function; return values stay where they were made until the context ends."""

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Map a function and collect the values; ``rows_of_images``: each value has a row per image."""

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Map a function over matches without tables; it takes matches, their place, and options."""

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Collect matches by class; a class that is too large comes in chunks."""

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Collect matches by class; the function takes the curves of some classes, and the number of classes.

        The answer is None for a class that is too large. ``area``, ``cap`` and ``pooled`` are as in
        :meth:`boxscore.Evaluation.curves_of`.
        """

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Return the result under other AP rules, from the same matches.

        ``keys`` are the area ranges and max detections that will be needed; by default those of the summary.
        """

    def matched_anew(
        self, what: str, matched: Callable[[Evaluation, Rules], Matches], protocol: Rules
    ) -> list[Curves]:
        """Match again for one question; return curves per area range, at the largest max detections."""

    def tables_of(self, rows: IntArray) -> tuple[Evaluation, IntArray | None]:
        """Return an evaluation with the tables of some images, and their rows among all; None for all."""

    def check_room(self, needed: int, what: str, cause: str) -> None:
        """Raise if a question needs more memory than one process may use."""


@dataclasses.dataclass(frozen=True, eq=False)
class OnePiece:
    """The single return value of a map in memory."""

    value: Any
    room: int | None = None
    count: int = 1

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Call the function with the value."""
        return [function(self.value, *arguments)]

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Call the function with the value, once per tuple of arguments."""
        return [function(self.value, *own) for own in arguments]

    def then(self, function: Callable[..., Any], *arguments: Any) -> OnePiece:
        """Map the function over the value."""
        return OnePiece(function(self.value, *arguments))

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> OnePiece:
        """Return the piece itself: everything is together."""
        return self

    def by_class(
        self,
        sizes: IntArray,
        score: Callable[..., Answer],
        count: Callable[[ClassRows], IntArray],
        *arguments: Any,
    ) -> list[list[Answer]]:
        """Call ``score`` once, with all classes."""
        return [[score(self.value, Classes(0, len(sizes)), None, *arguments)]]


@dataclasses.dataclass(frozen=True, eq=False)
class InMemory:
    """The source of an evaluation in memory: every function is called once, with all images."""

    evaluation: Evaluation
    is_here = True
    keeps_matches = True

    def require(self, what: str, rules: Rules | None = None) -> None:
        """Accept every question."""

    @contextlib.contextmanager
    def pieces(self, what: str, function: Map[Any], options: Options) -> Iterator[Pieces]:
        """Call the function with the evaluation."""
        yield OnePiece(function(self.evaluation, place=0, **options))

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Call the function with the evaluation."""
        return [function(self.evaluation, place=0, **options)]

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Call the function with all matches."""
        return [function(self.evaluation.matched, place=0, **options)]

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Call the function with all matches."""
        matched = self.evaluation.matched
        return [(Classes(0, len(matched.categories)), function(matched))]

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Call the function with all curves."""
        curves = self.evaluation.curves_of(area, cap, pooled)
        return [function(curves, len(curves.positive))]

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Replace the AP rules and keep the matches."""
        protocol = self.evaluation.protocol.replaced(ap=ap)
        return dataclasses.replace(self.evaluation, protocol=protocol)

    def matched_anew(
        self, what: str, matched: Callable[[Evaluation, Rules], Matches], protocol: Rules
    ) -> list[Curves]:
        """Match all tables."""
        matches = matched(self.evaluation, protocol)
        return [Curves.of(matches, protocol, area) for area in range(len(protocol.ignore.area_ranges))]

    def tables_of(self, rows: IntArray) -> tuple[Evaluation, IntArray | None]:
        """Return all tables."""
        return self.evaluation, None

    def check_room(self, needed: int, what: str, cause: str) -> None:
        """Accept every size."""


def source_of(evaluation: Evaluation) -> Source:
    """Return the source of a result."""
    own: Source | None = getattr(evaluation, "source", None)
    return InMemory(evaluation) if own is None else own
