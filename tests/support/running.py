"""Running the command line in this process."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest


class Printed(NamedTuple):
    """What a command printed on stdout and stderr."""

    out: str
    err: str


class Run:
    """Runs the command line, each argument as text; asserts its exit status and returns what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object, status: int | tuple[int, ...] = 0) -> Printed:
        from boxscore.cli import main

        self._capsys.readouterr()  # what else was printed so far
        returned = main([str(argument) for argument in arguments])
        printed = Printed(*self._capsys.readouterr())
        assert returned in (status if isinstance(status, tuple) else (status,)), printed.err
        return printed

    def error(self, *arguments: object) -> str:
        """Return what a command says that is refused."""
        return self(*arguments, status=2).err

    def json(self, *arguments: object) -> dict[str, Any]:
        """Return what is printed with ``--output json``, without a remark."""
        output, errors = self(*arguments, "--output", "json")
        assert errors == ""
        value: dict[str, Any] = json.loads(output)
        return value
