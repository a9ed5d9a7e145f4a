"""The examples in docstrings, which the reference shows, are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import boxscore
from support.modules import every_module

MODULES = [name for name in every_module() if name != "boxscore" and not name.startswith("boxscore.cli")]
ROOT = Path(boxscore.__file__).parents[1]


def examples_of(name: str) -> list[doctest.DocTest]:
    """Examples of a module and of what is defined in it, whatever module its users find it in."""
    module = importlib.import_module(name)
    own = {
        item: value
        for item, value in vars(module).items()
        if (inspect.isclass(value) and f"class {item}" in inspect.getsource(module))
        or (inspect.isfunction(value) and inspect.unwrap(value).__globals__ is vars(module))
    }
    finder = doctest.DocTestFinder(recurse=False)
    found = finder.find(module, name)
    for item, value in own.items():
        members = vars(value) if inspect.isclass(value) else {}
        for key, member in [("", value), *members.items()]:
            if not isinstance(member, (int, str, float)):  # whose class has examples
                found += finder.find(member, f"{name}.{item}.{key}", module=False, globs=dict(vars(module)))
    return [test for test in found if test.examples]


def has_examples(name: str) -> bool:
    """Whether the source of a module has some; it is not imported."""
    path = ROOT / name.replace(".", "/")
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ">>> " in source.read_text(encoding="utf-8")


WITH_EXAMPLES = [name for name in MODULES if has_examples(name)]


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
