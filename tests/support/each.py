"""One test over many values: as clear a failure as a parametrized one, without a test's overhead for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def each(values: Iterable[Any], *, first: int | None = None) -> Callable[[Callable[..., None]], Any]:
    """Make a test that calls the function with every value and names all that fail.

    A tuple is several arguments. With ``first``, two tests: the first values are always tried, the rest are left to CI.
    """
    values = list(values)
    assert first is None or 0 < first < len(values)

    def decorate(test: Callable[..., None]) -> Any:
        def every() -> None:
            call_with_each(test, values)

        def every_of(part: slice) -> None:
            call_with_each(test, values[part])

        made = every if first is None else every_of
        made.__name__, made.__doc__, made.__module__ = test.__name__, test.__doc__, test.__module__
        if first is None:
            return made
        parts = [slice(first), pytest.param(slice(first, None), marks=pytest.mark.long)]
        return pytest.mark.parametrize("part", parts, ids=["first", "rest"])(made)

    return decorate


def call_with_each(test: Callable[..., None], values: Sequence[Any]) -> None:
    """Call with every value; raise once, with a line for each value that failed."""
    assert values
    failures = []
    for value in values:
        arguments = value if type(value) is tuple else (value,)
        try:
            test(*arguments)
        except (Exception, pytest.fail.Exception) as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            failures.append(f"{', '.join(map(str, arguments))}: {kind}{error}")
    assert not failures, "\n".join(failures)
