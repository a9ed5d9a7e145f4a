"""How much each class counts in the mean over classes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import part
from boxscore._utils.text import short_list
from boxscore.data.vocabulary import Categories
from boxscore.errors import InputError, ProtocolError
from boxscore.protocols.acting import Refusal, Scope, scores
from boxscore.protocols.fields import Check, Rules, Step, Word, rule, text
from boxscore.protocols.grids import number_text

OTHERS = "*"
"""Stands for every class that has no weight."""

LARGEST_WEIGHT = 1e100
"""Beyond it sums overflow."""

MOST_WRITTEN = 8
"""Classes whose weights a signature writes; of more it has a digest."""


def _weights(value: Any, name: str) -> dict[str, float] | str:
    if isinstance(value, str):
        return str(text(value, name))
    if not isinstance(value, Mapping):
        rule = "be a table of class = weight, or the name of a column of classes"
        raise ProtocolError(name, rule, got=repr(value)[:80])
    weights = {}
    for key, weight in value.items():
        is_id = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
        word = text(str(key) if is_id else key, name)
        if word in weights:
            raise ProtocolError(name, "name each class once", got=f"{word!r} twice")
        weights[word] = checks.number_between(weight, 0, LARGEST_WEIGHT, name=f"{name}.{word}")
    if weights and not any(weights.values()):
        raise ProtocolError(name, "have a weight above 0", got="none")
    return weights


def _written(protocol: Any) -> str:
    """Write the weights, or what tells them from others; nothing where there are none."""
    weights = protocol.ap.class_weights
    if isinstance(weights, str):
        return weights and f"column={weights}"
    pairs = sorted(f"{name}={number_text(weight)}" for name, weight in weights.items())
    if len(pairs) <= MOST_WRITTEN:
        return ",".join(pairs)
    import hashlib  # 4 ms, which files without weights need not wait for

    digest = hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:12]
    return f"{len(pairs)}-classes-{digest}"


def _with(field: str, wrong: Any, rule: str) -> Refusal:
    return Refusal(
        "together",
        lambda protocol: protocol.ap.class_weights and wrong(protocol),
        rule,
        field=field,
        cause="leave out one of the two",
    )


@part(frozen=True)
class ClassWeightsField(Rules):
    """How much each class counts in the mean over classes."""

    class_weights: Mapping[str, float] | str = rule(
        {},
        check=Check("class = number >= 0, or column", _weights),
        doc='How much each class counts in every mean over classes: a weight by name or id, where `"*"` is '
        "that of all others; or the name of a column of classes that holds the weights. A class of weight 0 "
        "is left out. Without any, all count the same.",
        word=Word("classweight", text=_written, note="the weights, a digest of very many, or their column"),
        step=Step("weights of classes", "scoring", _written),
        scope=scores(Scope.DATA_SET),
        replaces=True,
        refuses=(
            _with(
                "ap.pool",
                lambda protocol: protocol.ap.pool == "classes",
                "be 'none' where classes have weights: one curve has no mean over classes",
            ),
            _with(
                "matching.per_class",
                lambda protocol: not protocol.matching.per_class,
                "be true where classes have weights",
            ),
            _with(
                "ap.class_mean",
                lambda protocol: protocol.ap.class_mean == "by_images",
                "be 'of_defined' or 'nanmean' where classes have weights: by_images weighs them by images",
            ),
        ),
    )

    def weights_of(self, categories: Categories) -> FloatArray:
        """Return the weight of each class, [K].

        Raises
        ------
        InputError
            When a class has no weight, or a column is unknown or holds anything else.
        """
        weights = self.class_weights
        if isinstance(weights, str):
            return _of_column(weights, categories)
        return _of_words(tuple(weights.items()), categories)

    def differing_weights(self, categories: Categories) -> FloatArray | None:
        """Return the weight of each class, [K]; None where all classes count the same."""
        if not self.class_weights:
            return None
        weights = self.weights_of(categories)
        return None if (weights == weights[:1]).all() else weights

    def check_classes(self, categories: Categories, evaluated: Categories | None = None) -> None:
        """Refuse weights of classes that a data set does not have, and classes without one.

        ``categories`` are all it has; ``evaluated`` those that count, if not all.
        """
        weights = self.class_weights
        if not weights:
            return
        if isinstance(weights, str):
            _of_column(weights, categories)
            return
        finder = categories.finder(numbers=True)
        for word in weights:
            if word != OTHERS and not finder.rows(word):
                raise InputError(
                    "class_weights",
                    "be of classes of the data set",
                    got=repr(word),
                    cause=checks.did_you_mean(word, categories.labels),
                )
        self.weights_of(categories if evaluated is None else evaluated)


def _of_column(name: str, categories: Categories) -> FloatArray:
    if name not in categories.columns:
        known = list(categories.columns)
        raise InputError(
            "class_weights",
            "be a file or table of weights, or a column of the classes",
            got=repr(name),
            cause=checks.did_you_mean(name, known) if known else "the classes have no further column",
        )
    column = f"the column {name!r} of classes"
    weights = checks.numbers(categories.columns[name], name=column)
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if wrong.size:
        place = f"class {categories.labels[wrong[0]]!r}"
        raise InputError(column, "be weights, finite and >= 0", got=weights[wrong[0]], place=place)
    return weights


@functools.lru_cache(maxsize=8)
def _of_words(pairs: tuple[tuple[str, float], ...], categories: Categories) -> FloatArray:
    """Give each class the weight of its name or id; words of other classes are passed over."""
    finder = categories.finder(numbers=True)
    weights = np.full(len(categories), dict(pairs).get(OTHERS, np.nan))
    word_of: dict[int, str] = {}
    for word, weight in pairs:
        row = -1 if word == OTHERS else finder.row(word, what="class_weights")
        if row < 0:
            continue
        if row in word_of:
            got = f"{word_of[row]!r} and {word!r}"
            raise InputError("class_weights", "name each class once", got=got)
        word_of[row], weights[row] = word, weight
    missing = np.flatnonzero(np.isnan(weights))
    if missing.size:
        labels = categories.labels
        raise InputError(
            "class_weights",
            "name every class",
            got=f"none for {short_list(labels[row] for row in missing.tolist())}",
            cause=f"a weight of {OTHERS!r} is that of all classes without one",
        )
    weights.flags.writeable = False
    return weights
