"""The examples in docstrings, which the reference shows, are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import boxscore

MODULES = [
    found.name
    for found in pkgutil.walk_packages(boxscore.__path__, "boxscore.")
    if found.name != "boxscore.__main__" and not found.name.startswith("boxscore.cli")
]


@pytest.mark.parametrize("name", ["boxscore", *MODULES])
def test_docstring_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
