"""Define where the rows of a result are, and the three ways in which every question reaches them.

Conventions
-----------
- A *question* is a metric or diagnostic. It is written once, against :class:`Source`, and works wherever the
  rows are: in memory (:class:`InMemory`, below) or in partitions on disk or on a cluster
  (:mod:`boxscore.extensions.large.source`). :func:`source_of` gives the source of a result.
- *Map*: call a function with the evaluation of some images. In memory it is called once, with the whole
  evaluation; in partitions it is called once for each partition, which is read again. The return values stay
  where they were made (:class:`Pieces`) or are collected in this process (:meth:`Source.answers`).
- *Exchange*: bring together detections of all images that must be in one order: class by class, by ranges of
  numbers, or by ranges of scores. In memory they are together already.
- *Join*: add up, fold or concatenate what was collected. This is plain code of the question.
- A source refuses by name what it cannot answer. A diagnostic that needs more than these three asks for all
  rows (:meth:`boxscore.Evaluation._require_overlaps`).
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
"""A :class:`boxscore.Evaluation`; its module is not imported here, since results of partitions import this
one."""

Answer = TypeVar("Answer")
Place = int | NDArray[np.int64]
"""Rows of a piece's images among all: the first row if they are consecutive, else each row, [images]."""

Options = Mapping[str, Any]
Map = Callable[..., Answer]
"""Takes the evaluation of some images, and by keyword their ``place``, a :data:`Place`, and options."""


class Classes(NamedTuple):
    """The classes of one call: those in [low, high)."""

    low: int
    high: int


class ClassRows(NamedTuple):
    """Detections with columns, by class and descending score; K classes, N rows."""

    bounds: IntArray
    """Where each class starts, and the end, [K + 1]."""
    score: FloatArray
    """[N]"""
    columns: tuple[NDArray[Any], ...]
    """[N] each."""
    known: Any = None
    """Anything else that the piece returned with its rows."""

    @property
    def category(self) -> NDArray[np.int32]:
        """The class of each row, counted from the first one here, [N]."""
        classes = np.arange(len(self.bounds) - 1, dtype=np.int32)
        return np.repeat(classes, np.diff(self.bounds))


class Pieces(Protocol):
    """The return values of a map, one for each set of images, in the processes that made them."""

    @property
    def room(self) -> int | None:
        """Bytes that one process may take; None for no limit."""

    @property
    def count(self) -> int:
        """How many there are."""

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Call a function with each, and collect its return values here."""

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Call a function with each and with its own arguments, and collect the return values here."""

    def then(self, function: Callable[..., Any], *arguments: Any) -> Pieces:
        """Replace each by the return value of a function."""

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> Pieces:
        """Cut each at the same ends, and join what is between two ends to a piece; their number stays.

        ``cut`` takes a piece and two ends.
        """

    def by_class(
        self,
        sizes: IntArray,
        score: Callable[..., Answer],
        count: Callable[[ClassRows], IntArray],
        *arguments: Any,
    ) -> list[list[Answer]]:
        """Bring the rows of classes together; pieces are :class:`ClassRows`.

        Parameters
        ----------
        sizes : ndarray of int64, [K]
            Rows of each class in all pieces.
        score : callable
            Takes the rows of some classes, or a range of the scores of one class; the :class:`Classes`; the
            ``count`` of all higher scores of that class, or None if all of its scores are there; and
            ``arguments``.
        count : callable
            Takes rows of one class and returns numbers that add up over rows.

        Returns
        -------
        list of list
            For each block of classes the return values of ``score`` for its ranges, highest scores first.
        """


class Source(Protocol):
    """Where the rows of a result are."""

    @property
    def is_here(self) -> bool:
        """Whether tables, overlaps and every candidate are in this process."""

    @property
    def keeps_matches(self) -> bool:
        """Whether :meth:`over_classes` can be used, also under another order of equal scores."""

    def require(self, what: str, rules: Rules | None = None) -> None:
        """Refuse a question, by its name, if it cannot be answered for one set of images at a time.

        ``rules`` are the protocol under which images are matched for it; by default that of the result.
        """

    def pieces(self, what: str, function: Map[Any], options: Options) -> AbstractContextManager[Pieces]:
        """Map; the return values stay where they were made until the context ends."""

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Map, and collect the return values; ``rows_of_images``: each has a row for each image."""

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Map over matches without their tables: the function takes matches, their place, and options."""

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Exchange matches by class; a class that is too large by ranges of its scores."""

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Exchange matches by class; the function takes curves of some classes, and how many classes all are.

        The answer is None for a class that is too large. Positions and selection are those of
        :meth:`boxscore.Evaluation.curves_of`.
        """

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Return the result under other rules of AP, from the same matches.

        ``keys`` are the area ranges and max detections that will be needed; by default those of the summary.
        """

    def matched_anew(
        self, what: str, matched: Callable[[Evaluation, Rules], Matches], protocol: Rules
    ) -> list[Curves]:
        """Match again for one question; return curves of each area range, at the largest max detections."""

    def tables_of(self, rows: IntArray) -> tuple[Evaluation, IntArray | None]:
        """Return an evaluation with the tables of some images, and their rows among all; None: all images."""

    def check_room(self, needed: int, what: str, cause: str) -> None:
        """Refuse a question that needs more bytes than one process may take."""


@dataclasses.dataclass(frozen=True, eq=False)
class OnePiece:
    """The one return value of a map in memory."""

    value: Any
    room: int | None = None
    count: int = 1

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Call a function once."""
        return [function(self.value, *arguments)]

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Call a function once with each of the arguments."""
        return [function(self.value, *own) for own in arguments]

    def then(self, function: Callable[..., Any], *arguments: Any) -> OnePiece:
        """Replace it by the return value of a function."""
        return OnePiece(function(self.value, *arguments))

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> OnePiece:
        """Return it: everything is together."""
        return self

    def by_class(
        self,
        sizes: IntArray,
        score: Callable[..., Answer],
        count: Callable[[ClassRows], IntArray],
        *arguments: Any,
    ) -> list[list[Answer]]:
        """Score all classes in one call."""
        return [[score(self.value, Classes(0, len(sizes)), None, *arguments)]]


@dataclasses.dataclass(frozen=True, eq=False)
class InMemory:
    """The source of an evaluation of tables: every function is called once, with all images."""

    evaluation: Evaluation
    is_here = True
    keeps_matches = True

    def require(self, what: str, rules: Rules | None = None) -> None:
        """Refuse nothing."""

    @contextlib.contextmanager
    def pieces(self, what: str, function: Map[Any], options: Options) -> Iterator[Pieces]:
        """Ask the evaluation."""
        yield OnePiece(function(self.evaluation, place=0, **options))

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Ask the evaluation."""
        return [function(self.evaluation, place=0, **options)]

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Ask of all matches."""
        return [function(self.evaluation.matched, place=0, **options)]

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Ask of all matches."""
        matched = self.evaluation.matched
        return [(Classes(0, len(matched.categories)), function(matched))]

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Ask of all curves."""
        curves = self.evaluation.curves_of(area, cap, pooled)
        return [function(curves, len(curves.positive))]

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Replace the rules of AP; the matches stay."""
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
        """Refuse nothing."""


def source_of(evaluation: Evaluation) -> Source:
    """Return where the rows of a result are, and how questions reach them."""
    own: Source | None = getattr(evaluation, "source", None)
    return InMemory(evaluation) if own is None else own
