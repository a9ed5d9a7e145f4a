"""Declare the scope of a rule, its effect on matching, and the computing modes that it rejects.

Conventions
-----------
- A rule's *scope* is the data needed to apply it to one row: the row, its image, its class in all images,
  or the whole data set. It may depend on the value: a protocol that min-max scales scores needs all of them.
- A *way* is a mode of computing that some rules do not support. Each rule declares the ways that it rejects,
  with the message; :class:`boxscore.protocols.protocol.ProtocolScope` collects them.
- A rule that COCO does not have acts on matching through a :class:`Does`: one function at one *point*.
- A column of matches that only one rule reads is declared at a field of the rule (``rule(...,
  columns=...)``); ``protocols.protocol.EXTRA_COLUMNS`` collects the declarations. ``Matches.extra`` and the
  packed form contain a column if the protocol asks for it. Code that takes, orders, merges, packs, cuts,
  saves or checks columns iterates over the declarations and uses no names (:mod:`boxscore.matching.matches`).
  Code that makes or reads one column imports its declaration.
- Functions here and in ``tables`` take the whole protocol, typed as Any because its module imports these.
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
    """The data needed to apply a rule to one row, from least to most."""

    NONE = 0
    """The field is descriptive and does not change any number."""
    ROW = 1
    IMAGE = 2
    """The objects and detections of an image, its size and labels."""
    CLASS = 3
    """A class in all images."""
    DATA_SET = 4


Act = Literal["describes", "prepares", "measures", "ranks", "matches", "scores"]
"""The effect of a rule, in the order of an evaluation.

A rule can be descriptive, prepare tables before anything else, decide how well a pair agrees, decide which
rows take part, decide matches and their counting, or turn matches into numbers.
"""

Way = Literal[
    "together", "batches", "parts", "streams", "classes", "ranges", "cuts", "plain_tables", "unlabeled_images"
]
"""Modes of computing that a rule may reject.

together
    Any evaluation: the values of a protocol must be compatible.
batches
    Images arrive in batches; their matches are kept in memory (:class:`boxscore.Evaluator`).
parts
    Images are matched separately, and the matches are merged.
streams
    Parquet is read partition by partition, without columns of images; of the columns of objects, only
    those that bound ranges are read.
classes
    Each class is matched and scored without the rows of others.
ranges
    A class is split by score, and each range is computed in its own process.
cuts
    Detections are matched only one time; those below a score are dropped afterwards.
plain_tables
    Tables have only boxes: no extra columns, image sizes or file order.
unlabeled_images
    Images lack the labels that list the verified classes.
"""


class Acts(NamedTuple):
    """The effect of a rule and its scope, as a value or as a function of the protocol."""

    act: Act
    scope: Scope | Callable[[Any], Scope]

    def scope_in(self, protocol: Any) -> Scope:
        """Return the scope that the rule has in a protocol."""
        return self.scope if isinstance(self.scope, Scope) else self.scope(protocol)


UNSAID, DESCRIBES = Acts("describes", Scope.NONE), Acts("describes", Scope.NONE)
"""The default for fields of tables outside a protocol, and the value for descriptive fields."""


prepares = functools.partial(Acts, "prepares")
measures = functools.partial(Acts, "measures")
ranks = functools.partial(Acts, "ranks")
matches = functools.partial(Acts, "matches")
scores = functools.partial(Acts, "scores")


class Refusal(NamedTuple):
    """A way of computing that a rule rejects.

    Attributes
    ----------
    way : Way
    when : callable
        Takes the protocol and returns whether it is rejected.
    rule : str
        The requirement, after "must"; may be empty if no message uses it.
    field : str
        The field that must change, as in TOML; the rule's own if empty.
    got : str, optional
        The value, as the message shows it; by default the field's value.
    cause : str
        The reason, or an alternative.
    """

    way: Way
    when: Callable[[Any], Any]
    rule: str = ""
    field: str = ""
    got: str | None = None
    cause: str = ""


Point = Literal["prepare", "ignore", "eligible", "ranges", "pairs", "match", "unmatched", "after"]
"""The points at which a rule can act on matching, in order of execution.

:mod:`boxscore.matching.points` documents the arguments and return value of each point.
"""


class Does(NamedTuple):
    """The effect of a rule on matching: one function at one point.

    Attributes
    ----------
    point : Point
    function : str
        ``"module:function"``, imported when a protocol asks for it.
    when : callable
        Takes the protocol and returns whether it asks for the function.
    order : int
        Functions at the same point run in ascending order. At ``prepare``, those with a negative order run
        before scores are read and values are rounded.
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
    """Reject values of another field if images are matched separately and the protocol uses a rule."""
    refused = f"{rule} in parts where {where}"
    return Refusal("parts", lambda protocol: asks(protocol) and wrong(protocol), refused, field, got, cause)


def one_measure(asks: Callable[[Any], Any], where: str) -> tuple[Refusal, Refusal]:
    """Reject values that make a pair depend on the area range, if the protocol uses a rule."""
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
    """A column of the axis ``class_image``: N rows, one per class and image with objects or detections."""

    category: NDArray[np.integer[Any]]
    """Row numbers, ascending, [N]."""
    image: NDArray[np.integer[Any]]
    """Row numbers, ascending in each class, [N]."""
    values: NDArray[Any]
    """[N, ...]"""


def _none(protocol: Any) -> tuple[int, ...]:
    """Return an empty shape."""
    return ()


@record(frozen=True, eq=False)
# ---------------------------------------------------------------- columns that one rule reads


class ExtraColumn:
    """The declaration of a column, with everything that is needed to carry it.

    Attributes
    ----------
    name : str
    axis : {"detection", "pair", "truth", "class_image"}
        The axis of its rows. ``class_image`` has a row for each class and image with objects or detections,
        counted over all their detections; dropping detections therefore drops the column.
    kind : {"bool", "float", "whole", "bits"}
        Whole numbers are never negative. Bits belong to pairs and hold thresholds at each area range: [P, A].
    asked_for : callable
        Takes the protocol and returns whether it asks for the column.
    shape : callable
        Takes the protocol and returns the sizes of the other axes.
    in_parts : bool
        Whether scores read it. A column that is only an intermediate step is not saved with parts.
    most : float
        Largest value of a float column; the smallest is 0.
    """

    name: str
    axis: Axis
    kind: Literal["bool", "float", "whole", "bits"]
    asked_for: Callable[[Any], bool]
    shape: Callable[[Any], tuple[int, ...]] = _none
    in_parts: bool = True
    most: float = sys.float_info.max

    def of(self, extra: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
        """Return the column from a mapping of columns; None if it is missing."""
        return extra.get(self.name)

    def rows_of(self, extra: Mapping[str, NDArray[Any]]) -> ClassImageRows | None:
        """Return a column of the axis ``class_image`` with its row numbers; None if it is missing."""
        if self.name not in extra:
            return None
        return ClassImageRows(*(extra[name] for name in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its arrays; for ``class_image``, the row numbers of classes and images come first."""
        if self.axis == "class_image":
            return f"{self.name}:category", f"{self.name}:image", self.name
        return (self.name,)
