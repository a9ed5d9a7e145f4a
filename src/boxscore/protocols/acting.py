"""Declare when a rule acts, by what it decides, what it does to matching, and what it refuses.

Conventions
-----------
- A rule's *scope* is what must be known to apply it to one row: the row, its image, its class in all images,
  or the whole data set. It may depend on the value: a protocol that min-max scales scores needs all of them.
- A *way* is a way of computing that not every rule allows. Each rule declares which ways it refuses, and in
  which words; :class:`boxscore.protocols.protocol.ProtocolScope` asks all of them.
- A rule that is not COCO's acts on matching through a :class:`Does`: one function at one *point*.
- Columns of matches that only one rule reads are declared at a field of the rule (``rule(...,
  columns=...)``); all of them together are ``protocols.protocol.EXTRA_COLUMNS``. ``Matches.extra`` has a
  column by its name if the protocol asks for it, and so has the packed form. Code that takes, orders, merges,
  packs, cuts, saves or checks columns goes over the declarations and knows no names
  (:mod:`boxscore.matching.extra`). Code that makes or reads one column imports its declaration.
- Functions here and in ``tables`` take the whole protocol. They have it as Any, because its module imports
  these.
"""

from __future__ import annotations

import enum
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple, record


class Scope(enum.IntEnum):
    """What must be known to apply a rule to one row, from least to most."""

    NONE = 0
    """Nothing: the field describes, and changes no number."""
    ROW = 1
    IMAGE = 2
    """The objects and detections of an image, its size and labels."""
    CLASS = 3
    """A class in all images."""
    DATA_SET = 4


Act = Literal["describes", "prepares", "measures", "ranks", "matches", "scores"]
"""What a rule does, in the order of an evaluation.

It describes; or it prepares tables before anything else; decides how well a pair agrees, which rows take
part, what is matched and what counts, or how matches become numbers.
"""

Way = Literal[
    "together", "batches", "parts", "streams", "ranges", "cuts", "plain_tables", "unlabelled_images"
]
"""Ways of computing.

together
    At all: the values of a protocol must go with each other.
batches
    Images that come batch by batch, whose matches are held (:class:`boxscore.Evaluator`).
parts
    Images that are matched separately, and whose matches are merged.
streams
    Parquet that is read partition by partition, without columns of images, and with only those columns of
    objects that bound ranges.
ranges
    A class by ranges of its scores, each in another process.
cuts
    Detections that are matched once, and left out below a score afterwards.
plain_tables
    Tables of boxes alone: no further column, no size of an image, no order of a file.
unlabelled_images
    Images without labels that say which classes were verified.
"""


class Acts(NamedTuple):
    """What a rule does, and by what it decides: a scope, or a function of the protocol that returns one."""

    act: Act
    scope: Scope | Callable[[Any], Scope]

    def scope_in(self, protocol: Any) -> Scope:
        """Return the scope that the rule has in a protocol."""
        return self.scope if isinstance(self.scope, Scope) else self.scope(protocol)


UNSAID, DESCRIBES = Acts("describes", Scope.NONE), Acts("describes", Scope.NONE)
"""The default, for fields of tables that are not a protocol's; and for fields that only describe."""


prepares = functools.partial(Acts, "prepares")
measures = functools.partial(Acts, "measures")
ranks = functools.partial(Acts, "ranks")
matches = functools.partial(Acts, "matches")
scores = functools.partial(Acts, "scores")


class Refusal(NamedTuple):
    """One way of computing that a rule refuses.

    Attributes
    ----------
    way : Way
    when : callable
        Whether a protocol is refused.
    rule : str
        What must hold instead, after "must"; may be empty for a way that no message refuses.
    field : str
        The field that must change, as in TOML; the rule's own if empty.
    got : str, optional
        The value, as the message shows it; by default the field's value.
    cause : str
        Why, or what to do instead.
    """

    way: Way
    when: Callable[[Any], Any]
    rule: str = ""
    field: str = ""
    got: str | None = None
    cause: str = ""


Point = Literal["prepare", "ignore", "eligible", "ranges", "pairs", "match", "unmatched", "after"]
"""The points at which a rule can act on matching, in the order in which they come.

:mod:`boxscore.matching.points` says what each point calls and what it expects back.
"""


class Does(NamedTuple):
    """What a rule does to matching: one function at one point.

    Attributes
    ----------
    point : Point
    function : str
        ``"module:function"``, imported when a protocol asks for it.
    when : callable
        Whether a protocol asks for it.
    order : int
        Functions of one point run by ascending order. At ``prepare`` those below 0 run before scores are read
        and values are rounded.
    """

    point: Point
    function: str
    when: Callable[[Any], Any]
    order: int = 0


def refused_in_parts(
    asks: Callable[[Any], Any],
    where: str,
    cause: str,
    field: str,
    rule: str,
    wrong: Callable[[Any], Any],
    got: str | None = None,
) -> Refusal:
    """Refuse values of another field if images are matched separately and a rule is asked for."""
    refused = f"{rule} in parts where {where}"
    return Refusal("parts", lambda protocol: asks(protocol) and wrong(protocol), refused, field, got, cause)


def one_measure(asks: Callable[[Any], Any], where: str) -> tuple[Refusal, Refusal]:
    """Refuse values that make a pair depend on the area range, if a rule is asked for."""
    return (
        Refusal(
            "together",
            lambda protocol: asks(protocol) and protocol.ignore.outside != "ignore",
            f'be "ignore" where {where}',
            field="ignore.outside",
        ),
        Refusal(
            "together",
            lambda protocol: asks(protocol) and protocol.ignore.height_slack > 0,
            f"be 0 where {where}",
            field="ignore.height_slack",
        ),
    )


Axis = Literal["detection", "pair", "truth", "class_image"]


class ClassImageRows(NamedTuple):
    """A column of the axis ``class_image``: N rows, each of a class and an image that have anything."""

    category: NDArray[np.integer[Any]]
    """Row numbers, ascending, [N]."""
    image: NDArray[np.integer[Any]]
    """Row numbers, ascending in each class, [N]."""
    values: NDArray[Any]
    """[N, ...]"""


def _none(protocol: Any) -> tuple[int, ...]:
    """Return the sizes of no axes."""
    return ()


@record(frozen=True, eq=False)
# ---------------------------------------------------------------- columns of one rule


class ExtraColumn:
    """Everything that code must know about a column to carry it.

    Attributes
    ----------
    name : str
    axis : {"detection", "pair", "truth", "class_image"}
        The axis of its rows. ``class_image`` has a row for each class and image that have anything, counted
        over all their detections: leaving out detections drops the column.
    kind : {"bool", "float", "whole", "bits"}
        Whole numbers are never negative. Bits are of pairs, over thresholds at each area range: [P, A].
    asked_for : callable
        Whether a protocol asks for it.
    shape : callable
        Sizes of its other axes under a protocol.
    in_parts : bool
        Whether scores read it. A column that is only an intermediate step stays out of saved parts.
    most : float
        Largest value of floats; none is below 0.
    """

    name: str
    axis: Axis
    kind: Literal["bool", "float", "whole", "bits"]
    asked_for: Callable[[Any], bool]
    shape: Callable[[Any], tuple[int, ...]] = _none
    in_parts: bool = True
    most: float = sys.float_info.max

    def of(self, extra: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        """Return the column among others; None where it is not there."""
        return extra.get(self.name)

    def rows_of(self, extra: Mapping[str, NDArray[Any]]) -> ClassImageRows | None:
        """Return a column of classes and images with its rows; None where it is not there."""
        if self.name not in extra:
            return None
        return ClassImageRows(*(extra[name] for name in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its arrays: its own, for ``class_image`` after those of the row numbers of both."""
        if self.axis == "class_image":
            return f"{self.name}:category", f"{self.name}:image", self.name
        return (self.name,)
