"""Look up the class weights of a protocol for the classes of a data set."""

from __future__ import annotations

import functools

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import short_list
from boxscore.data.vocabulary import Categories
from boxscore.errors import InputError
from boxscore.protocols.tables.ap import LARGEST_WEIGHT, OTHERS, ApRules


def weights_of(rules: ApRules, categories: Categories) -> FloatArray:
    """Return the weight of each class, [K].

    Raises
    ------
    InputError
        When a class lacks a weight, or a column is unknown or invalid.
    """
    weights = rules.class_weights
    if isinstance(weights, str):
        return _of_column(weights, categories)
    return _weights_by_name(tuple(weights.items()), categories)


def differing_weights(rules: ApRules, categories: Categories) -> FloatArray | None:
    """Return the weight of each class, [K]; None if all weights are equal."""
    if not rules.class_weights:
        return None
    weights = weights_of(rules, categories)
    return None if (weights == weights[:1]).all() else weights


def check_class_weights(rules: ApRules, categories: Categories, evaluated: Categories | None = None) -> None:
    """Reject weights of classes that a data set does not have, and classes without a weight.

    ``categories`` are all classes; ``evaluated`` are those that count, if not all.
    """
    # Weights in a column are checked with it.
    weights = rules.class_weights
    if not weights:
        return
    if isinstance(weights, str):
        _of_column(weights, categories)
        return
    # Every name must be a class, and every class that counts must have a weight.
    finder = categories.finder(numbers=True)
    for word in weights:
        if word != OTHERS and not finder.rows(word):
            raise InputError(
                "class_weights",
                "be of classes of the data set",
                got=repr(word),
                cause=checks.did_you_mean(word, categories.labels),
            )
    weights_of(rules, categories if evaluated is None else evaluated)


def _of_column(name: str, categories: Categories) -> FloatArray:
    if name not in categories.columns:
        known = list(categories.columns)
        raise InputError(
            "class_weights",
            "be a file or table of weights, or a column of the classes",
            got=repr(name),
            cause=checks.did_you_mean(name, known) if known else "the classes lack other columns",
        )
    column = f"the column {name!r} of classes"
    weights = checks.numbers(categories.columns[name], name=column)
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if wrong.size:
        place = f"class {categories.labels[wrong[0]]!r}"
        raise InputError(column, "be weights, finite and >= 0", got=weights[wrong[0]], place=place)
    return weights


@functools.lru_cache(maxsize=8)
def _weights_by_name(pairs: tuple[tuple[str, float], ...], categories: Categories) -> FloatArray:
    """Give each class the weight of its name or id; ignore words that match no class."""
    # Start with the weight of all other classes, [K], or NaN; then assign each named class its own, once.
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
    # Reject classes without a weight. The array is cached, so it is read-only.
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
