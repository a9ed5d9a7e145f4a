"""Define where the rows of a result are, and the three ways in which every question reaches them.

Conventions
-----------
- *Map*: a function is called with the evaluation of some images. In memory that is once, with the evaluation
  itself; beyond memory it is once for each partition, which is read again. What the function returns stays
  where it was made (:class:`Pieces`) or comes here (:meth:`Source.answers`).
- *Exchange*: detections of all images that must be in one order are brought together class by class, unit by
  unit, or by ranges of scores. In memory they are together.
- *Join*: what comes here is added up, folded or put side by side. That is plain code of the question.
- A source refuses by name what it cannot answer. A diagnostic that needs more than these three asks for all
  rows (:meth:`boxscore.Evaluation.require_overlaps`).
- Functions, their options and what they return pickle; in memory nothing is pickled.
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
"""A :class:`boxscore.Evaluation`: it has a source, so its module is not imported here."""

Answer = TypeVar("Answer")
Place = int | NDArray[np.int64]
"""Row among all of the first image of a piece, where its images follow each other; else of each, [images]."""

Options = Mapping[str, Any]
Map = Callable[..., Answer]
"""Takes the evaluation of some images; by name their ``place``, a :data:`Place`, and options."""


class Classes(NamedTuple):
    """The classes that one call is about: those in [low, high)."""

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
    """What a piece says besides its rows."""

    @property
    def category(self) -> NDArray[np.int32]:
        """The class of each row, counted from the first one here, [N]."""
        classes = np.arange(len(self.bounds) - 1, dtype=np.int32)
        return np.repeat(classes, np.diff(self.bounds))


class Pieces(Protocol):
    """What a map said of each set of images, where it was said."""

    @property
    def room(self) -> int | None:
        """Bytes that one process may take; None for no limit."""

    @property
    def count(self) -> int:
        """How many there are."""

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Return what a function says of each."""

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Return what a function says of each with arguments of its own."""

    def then(self, function: Callable[..., Any], *arguments: Any) -> Pieces:
        """Put what a function makes of each in its place."""

    def exchanged(
        self, cut: Callable[..., Any], ends: Sequence[int], join: Callable[[list[Any]], Any]
    ) -> Pieces:
        """Cut each at the same ends, and join what lies between two of them: as many pieces as before.

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
            Takes the rows of some classes, or a range of the scores of one class; the :class:`Classes`; what
            ``count`` says of all higher scores of that class, None where all of its scores are there; and
            ``arguments``.
        count : callable
            Takes rows of one class; what it returns adds up.

        Returns
        -------
        list of list
            For each block of classes what ``score`` says of its ranges, the highest scores first.
        """


class Source(Protocol):
    """Where the rows of a result are."""

    @property
    def is_here(self) -> bool:
        """Whether tables, overlaps and every candidate are in this process."""

    @property
    def keeps_matches(self) -> bool:
        """Whether matches can be asked for class by class, also under another order of equal scores."""

    def require(self, what: str, rules: Rules | None = None) -> None:
        """Refuse a question, by its name, about images that cannot be asked one set at a time.

        ``rules`` are those by which images are matched for it, the protocol's when not given.
        """

    def pieces(self, what: str, function: Map[Any], options: Options) -> AbstractContextManager[Pieces]:
        """Map; what is said stays where it is, as long as the context lasts."""

    def answers(
        self, what: str, function: Map[Answer], options: Options, *, rows_of_images: bool = False
    ) -> list[Answer]:
        """Map; what is said comes here. ``rows_of_images`` says that it has a row for each image."""

    def over_images(self, function: Callable[..., Answer], options: Options) -> list[Answer]:
        """Map over matches, which outlive tables: the function takes matches, their place, and options."""

    def over_classes(self, what: str, function: Callable[[Matches], Answer]) -> list[tuple[Classes, Answer]]:
        """Exchange matches by class, a class that is too large by ranges of scores."""

    def over_curves(
        self, what: str, function: Callable[[Curves, int], Answer], area: int, cap: int, pooled: str | None
    ) -> list[Answer | None]:
        """Exchange matches by class; the function takes curves of some classes, and how many classes all are.

        There is None of a class that is too large. Positions and selection are those of
        :meth:`boxscore.Evaluation.curves_of`.
        """

    def under(self, ap: ApRules, keys: Sequence[Key] | None = None) -> Evaluation:
        """Return the result under other rules of AP; nothing is matched again.

        ``keys`` are the area ranges and max detections that will be asked for, the summary's when not given.
        """

    def matched_anew(
        self, what: str, matched: Callable[[Evaluation, Rules], Matches], protocol: Rules
    ) -> list[Curves]:
        """Match for one question; return the curves of each area range, at the largest max detections."""

    def tables_of(self, rows: IntArray) -> tuple[Evaluation, IntArray | None]:
        """Return an evaluation that has the tables of some images, and its rows among all; None for all."""

    def check_room(self, needed: int, what: str, cause: str) -> None:
        """Refuse what takes more bytes than one process has."""


@dataclasses.dataclass(frozen=True, eq=False)
class OnePiece:
    """What a map said of all images, in memory."""

    value: Any
    room: int | None = None
    count: int = 1

    def results(self, function: Callable[..., Answer], *arguments: Any) -> list[Answer]:
        """Return what a function says."""
        return [function(self.value, *arguments)]

    def results_with(
        self, function: Callable[..., Answer], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Answer]:
        """Return what a function says with its arguments."""
        return [function(self.value, *own) for own in arguments]

    def then(self, function: Callable[..., Any], *arguments: Any) -> OnePiece:
        """Put what a function makes of it in its place."""
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
        """Score all classes at once."""
        return [[score(self.value, Classes(0, len(sizes)), None, *arguments)]]


@dataclasses.dataclass(frozen=True, eq=False)
class InMemory:
    """The source of an evaluation of tables: every question is asked once, of everything."""

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
        """Give the same matches to the other rules."""
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
