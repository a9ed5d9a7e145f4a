"""Imports that wait for the first use of their names."""

from __future__ import annotations

import builtins
import threading
from typing import Any

import pytest

from boxscore._utils.lazy import lazy_imports

REAL = builtins.__import__


def package(block: str, **options: Any) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "xml", "lazy_imports": lazy_imports, "options": options}
    exec(f"with lazy_imports(globals(), **options):\n    {block}", namespace)
    return namespace


def test_a_name_loads_when_it_is_first_used() -> None:
    names = package(
        "from nowhere import nothing; from json import dumps as dumps; from xml import sax as sax"
    )
    assert names["__all__"] == ["dumps", "nothing", "sax"]
    assert {"dumps", "nothing", "sax", "__name__"} <= set(names["__dir__"]())
    assert "dumps" not in names
    import json
    import xml.sax

    assert names["__getattr__"]("dumps") is json.dumps is names["dumps"]
    assert names["__getattr__"]("sax") is xml.sax
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        names["__getattr__"]("nothing")
    with pytest.raises(AttributeError, match="module 'xml' has no attribute 'dumsp'"):
        names["__getattr__"]("dumsp")


def test_capitals_come_first() -> None:
    assert package("from a import b, C, __d__, E_F")["__all__"] == ["C", "E_F", "__d__", "b"]


def test_modules_that_names_come_from_are_there() -> None:
    names = package("from xml.dom import minidom as minidom")
    assert names["__getattr__"]("dom").__name__ == "xml.dom"
    assert names["__all__"] == ["minidom"]


def test_what_loads_says_whose_it_is() -> None:
    names = package("from support.each import each as each", public_module="somebody")
    each = names["__getattr__"]("each")
    assert each.__module__ == "somebody"
    each.__module__ = "support.each"


def test_the_process_is_left_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError):
        package("from json import dumps; 1 / 0")
    assert builtins.__import__ is REAL


def test_other_modules_import_meanwhile() -> None:
    seen: list[str] = []

    def elsewhere() -> None:
        import colorsys

        seen.append(colorsys.__name__)
        seen.append(__import__("xml.dom", fromlist=["dom"]).__name__)
        seen.extend(package("from json import loads as loads")["__all__"])  # waits for its turn

    thread = threading.Thread(target=elsewhere)
    with lazy_imports({"__name__": "xml"}):
        thread.start()
        while len(seen) < 2:
            thread.join(0.01)
        assert seen == ["colorsys", "xml.dom"]
    thread.join()
    assert seen[2:] == ["loads"]
    assert builtins.__import__ is REAL
