"""Runs the functions that match and reduce: here, in processes of this machine, or on a cluster.

Conventions
-----------
- What runs is a function of its arguments and may run again. Arguments may be what :meth:`Engine.submit` and
  :meth:`Engine.match` returned, also in lists.
- Parts stay where they were matched, or in files; numbers come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from typing import Protocol as Protocol_


class Engine(Protocol_):
    """Runs functions somewhere."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function, or note it down for :meth:`results`."""
        ...

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Wait for what was submitted, with progress, and return what came out."""
        ...

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run what was submitted once; return what stands for the results, which stay where they are made."""
        ...

    def match(self, tasks: Sequence[Any]) -> list[Any]:
        """Start matching partitions; return what stands for their parts."""
        ...

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Bring parts to this process."""
        ...

    def asked_again(self) -> AbstractContextManager[None]:
        """Hold what is submitted later, for another question about the parts, and let go of it at the end."""
        ...


class Deferred:
    """Stands for a value that is made, or read, where it is used."""

    def value(self) -> Any:
        """Return it."""
        raise NotImplementedError


class _Noted(NamedTuple):
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Call(_Noted, Deferred):
    """A function that is called where its value is used."""

    def value(self) -> Any:
        """Call it, with the values of its arguments."""
        return self.function(*map(value_of, self.arguments))


def value_of(argument: Any) -> Any:
    """Return an argument with values in place of what stands for them, also in a list."""
    if isinstance(argument, Deferred):
        return argument.value()
    if type(argument) is list:
        return [value_of(one) for one in argument]
    return argument


class Here:
    """Runs everything in this process, one call at a time: no more than one is in memory."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Note a call."""
        return Call(name, function, arguments)

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run what was submitted."""
        return [value_of(task) for task in tasks]

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run what was submitted; the results stay in memory."""
        return self.results(tasks)

    def match(self, tasks: Sequence[Any]) -> list[Any]:
        """Match partitions; the parts stay in memory."""
        return [task.run() for task in tasks]

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts."""
        return list(parts)

    def asked_again(self) -> AbstractContextManager[None]:
        """Nothing is held."""
        return nullcontext()
