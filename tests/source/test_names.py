"""No protocol's name decides anything, and a name that is a module's gives the module."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator

import pytest

from boxscore.protocols import protocol_names
from support import sources
from support.each import each
from support.modules import every_module
from support.sources import FILES, last_name

PUBLIC = [
    name
    for name in every_module()
    if not any(part.startswith("_") for part in name.split(".")) and name != "boxscore"
]

NAMES = set(protocol_names())
WORDS = {name.split("-")[0] for name in NAMES}


def texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def is_a_protocols_name(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and "protocol" in last_name(node.value).lower()
    )


def questions(file: str) -> Iterator[str]:
    """Where code asks whether a protocol is a certain one."""
    for node in sources.nodes_of(file):
        asks, about = False, ast.Constant("")
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asks = any(is_a_protocols_name(side) for side in sides)
            about = node  # type: ignore[assignment]
            asks |= any(
                isinstance(side, ast.Constant) and side.value in NAMES and "protocol" in ast.unparse(node)
                for side in sides
            )
        elif isinstance(node, ast.Call) and last_name(node.func) in (
            "startswith",
            "endswith",
            "removeprefix",
        ):
            about = node  # type: ignore[assignment]
            asks = any(text.rstrip("-") in WORDS for text in texts(node)) or (
                isinstance(node.func, ast.Attribute) and is_a_protocols_name(node.func.value)
            )
        elif isinstance(node, ast.Subscript):
            about = node  # type: ignore[assignment]
            asks = is_a_protocols_name(node.slice)
        if asks:
            yield f"line {node.lineno}: {ast.unparse(about)}"


FILE_FORMS: dict[str, set[str]] = {}
"""Questions about a format of files that is called like a protocol."""


@each(FILES)
def test_no_code_asks_for_a_protocols_name(file: str) -> None:
    assert [text for text in questions(file) if text.split(": ", 1)[1] not in FILE_FORMS.get(file, ())] == []


def test_a_question_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "if protocol.name == 'coco': pass\nname.startswith('detectron2')\nTABLE[self.protocol.name]\nx == 'coco'"
    monkeypatch.setattr(sources, "nodes_of", lambda file: tuple(ast.walk(ast.parse(code))))
    assert [text.split(":")[0] for text in questions("any.py")] == ["line 1", "line 2", "line 3"]


# ---------------------------------------------------------------- modules are modules


@each(PUBLIC)
def test_nothing_shadows_a_module(path: str) -> None:
    """``import boxscore.a.b as b`` takes the attribute: it must be the module."""
    module = importlib.import_module(path)
    parent, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(parent), name) is module
