"""Answers that several consumers ask for, computed once per evaluation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from boxscore.evaluation import Evaluation

__all__ = ["once_per_evaluation"]

Options = ParamSpec("Options")
Answer = TypeVar("Answer")
Question = Callable[Concatenate[Evaluation, Options], Answer]


def once_per_evaluation(function: Question[Options, Answer]) -> Question[Options, Answer]:
    """Keep what a diagnostic gives, by its options; arrays become read-only, for they are shared."""
    signature = inspect.signature(function)

    def answer(evaluation: Evaluation, *args: Options.args, **kwargs: Options.kwargs) -> Answer:
        bound = signature.bind(evaluation, *args, **kwargs)
        bound.apply_defaults()
        options = list(bound.arguments.items())[1:]
        key = (function.__qualname__, *((name, _hashable(value)) for name, value in options))
        try:
            hash(key)
        except TypeError:  # the function says what is wrong with the option
            return function(evaluation, *args, **kwargs)
        return evaluation.once(key, lambda: _read_only(function(evaluation, *args, **kwargs)))

    return cast("Question[Options, Answer]", functools.update_wrapper(answer, function))


def _hashable(value: Any) -> Any:
    return (list, tuple(value)) if isinstance(value, list) else (type(value), value)


def _read_only(answer: Answer) -> Answer:
    for value in vars(answer).values():
        for array in value if isinstance(value, tuple) else [value]:
            if isinstance(array, np.ndarray):
                array.setflags(write=False)
    return answer
