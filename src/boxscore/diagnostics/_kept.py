"""What several consumers ask of one evaluation is computed once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from boxscore.evaluation import Evaluation

__all__ = ["kept"]

Options = ParamSpec("Options")
Result = TypeVar("Result")

MOST_KEPT = 4
"""Results of one function and evaluation; a loop over many thresholds keeps the latest."""


def kept(
    function: Callable[Concatenate[Evaluation, Options], Result],
) -> Callable[Concatenate[Evaluation, Options], Result]:
    """Keep what a function of an evaluation and hashable options returned, while the evaluation lives."""
    results: WeakKeyDictionary[Evaluation, dict[Hashable, Result]] = WeakKeyDictionary()

    @functools.wraps(function)
    def once(evaluation: Evaluation, /, *args: Options.args, **options: Options.kwargs) -> Result:
        own = results.setdefault(evaluation, {})
        key = (args, tuple(sorted(options.items())))
        if key not in own:
            if len(own) == MOST_KEPT:
                del own[next(iter(own))]
            own[key] = function(evaluation, *args, **options)
        return own[key]

    return once
