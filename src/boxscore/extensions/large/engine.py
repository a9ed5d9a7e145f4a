"""Run the functions that match and reduce: in this process, in several processes, or on a cluster.

Conventions
-----------
- Functions depend only on their arguments and may run again. Arguments may be handles that
  :meth:`Engine.submit` and :meth:`Engine.match` return, also in lists.
- Parts stay where they were matched, or in files; only numbers return to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from typing import Protocol as Protocol_


class Engine(Protocol_):
    """Run functions somewhere."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function, or record the call for :meth:`results`."""
        ...

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Wait for submitted calls, with progress, and return their results."""
        ...

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run submitted calls once and return handles to the results, which stay where they are made."""
        ...

    def match(self, tasks: Sequence[Any]) -> list[Any]:
        """Start matching partitions; return handles to their parts."""
        ...

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Fetch parts to this process."""
        ...

    def asked_again(self) -> AbstractContextManager[None]:
        """Keep results of calls in the context for a later query, and release them at the end."""
        ...


class Deferred:
    """A handle to a value that is computed or read on use."""

    def value(self) -> Any:
        """Return the value."""
        raise NotImplementedError


class _Noted(NamedTuple):
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Call(_Noted, Deferred):
    """A lazy function call."""

    def value(self) -> Any:
        """Call the function with the values of its arguments."""
        return self.function(*map(value_of, self.arguments))


def value_of(argument: Any) -> Any:
    """Return an argument with handles replaced by their values, also in a list."""
    if isinstance(argument, Deferred):
        return argument.value()
    if type(argument) is list:
        return [value_of(one) for one in argument]
    return argument


class Here:
    """Run everything in this process, one call at a time."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Record a call."""
        return Call(name, function, arguments)

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run submitted calls."""
        return [value_of(task) for task in tasks]

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run submitted calls; results stay in memory."""
        return self.results(tasks)

    def match(self, tasks: Sequence[Any]) -> list[Any]:
        """Match partitions; the parts stay in memory."""
        return [task.run() for task in tasks]

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts."""
        return list(parts)

    def asked_again(self) -> AbstractContextManager[None]:
        """Do nothing: results are not kept."""
        return nullcontext()
