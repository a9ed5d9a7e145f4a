"""The examples in docstrings, which the reference shows, are true."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

from support.modules import every_module

MODULES = [name for name in every_module() if name != "boxscore" and not name.startswith("boxscore.cli")]


def examples_of(name: str) -> list[doctest.DocTest]:
    """Examples of a module and of what is defined in it, whatever module its users find it in."""
    module = importlib.import_module(name)
    own = {
        item: value
        for item, value in vars(module).items()
        if (inspect.isclass(value) and f"class {item}" in inspect.getsource(module))
        or (inspect.isfunction(value) and value.__globals__ is vars(module))
    }
    finder = doctest.DocTestFinder(recurse=False)
    found = finder.find(module, name)
    for item, value in own.items():
        members = vars(value) if inspect.isclass(value) else {}
        for key, member in [("", value), *members.items()]:
            found += finder.find(member, f"{name}.{item}.{key}", module=False, globs=dict(vars(module)))
    return [test for test in found if test.examples]


WITH_EXAMPLES = [name for name in MODULES if examples_of(name)]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_docstring_examples(name: str) -> None:
    runner = doctest.DocTestRunner()
    for test in examples_of(name):
        runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 0


def test_there_are_examples() -> None:
    known = {"boxscore.similarity.box", "boxscore.evaluation", "boxscore.data.tables"}
    assert known <= set(WITH_EXAMPLES)
    assert len(WITH_EXAMPLES) > 20
