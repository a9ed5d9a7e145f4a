"""Names of a package that load when they are first used."""

from __future__ import annotations

import json
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
