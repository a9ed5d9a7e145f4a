"""Names of a package that load when they are first used."""

from __future__ import annotations

import json
import subprocess
import sys
import xml
import xml.sax

import pytest

from boxscore._utils.lazy import lazy_names


def test_a_name_loads_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json, "JSONDecoder")
    load, listed, given = lazy_names("json", {"decoder": "JSONDecoder", "nowhere": "nothing"})
    assert given == ["JSONDecoder", "nothing"]
    assert {"JSONDecoder", "nothing", "__name__"} <= set(listed())
    assert not hasattr(json, "JSONDecoder")
    assert load("JSONDecoder") is sys.modules["json.decoder"].JSONDecoder is json.JSONDecoder
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        load("nothing")
    with pytest.raises(AttributeError, match="module 'json' has no attribute 'dumsp'"):
        load("dumsp")


def test_modules() -> None:
    load, _, given = lazy_names("xml", {"": "sax", "dom": "Node"})
    assert given == ["Node", "sax"]
    assert load("sax") is xml.sax
    assert load("dom") is sys.modules["xml.dom"]  # a module that names come from is there too


def test_capitals_come_first() -> None:
    assert lazy_names("a", {"m": "b C", "n": "__d__ E_F"})[2] == ["C", "E_F", "__d__", "b"]


def test_what_loads_says_whose_it_is() -> None:
    load, _, _ = lazy_names("support", {"each": "each"}, public_module="somebody")
    each = load("each")
    assert each.__module__ == "somebody"
    each.__module__ = "support.each"
    sys.modules["support"].__dict__["each"] = sys.modules["support.each"]


def in_new_process(code: str) -> list[int]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def test_what_an_import_makes_is_old_to_the_collector() -> None:
    """Its next passes look at what is young, and would visit tens of thousands of objects that last."""
    frozen, young, old = in_new_process(
        "import gc; print(gc.get_freeze_count()); import boxscore; boxscore.evaluate; "
        "print(len(gc.get_objects(0)), len(gc.get_objects(2)))"
    )
    if frozen:
        pytest.skip("this Python freezes objects of its own, which are left alone")
    assert young < 2_000
    assert old > 20_000


def test_what_a_program_has_frozen_stays_so() -> None:
    frozen, later = in_new_process(
        "import gc, boxscore; gc.freeze(); print(gc.get_freeze_count()); boxscore.evaluate; print(gc.get_freeze_count())"
    )
    assert 0 < later <= frozen  # what was frozen may be freed
    assert later > 0.9 * frozen
