"""Tests ask the faces of matching and scoring; what is inside comes in by two doors alone.

Tests of an extension may know what is inside it.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping

import pytest

from support.each import each
from support.kinds import TESTS

PACKAGES = ("boxscore.matching", "boxscore.scoring")
FACES = {package: set(getattr(importlib.import_module(package), "__all__", ())) for package in PACKAGES}

DOORS = ("support/insides.py", "support/limits.py")

ALLOWED = {
    "boxscore.matching.pairs.Pairs": "what such a kernel takes",
    "boxscore.matching.matches.Matches": "a value, which merges in any order",
    "boxscore.matching.matches.bit_type": "the type of bits over thresholds",
    "boxscore.matching.matches.merge": "how it merges",
    "boxscore.matching.points.POINTS": "the signatures of points, which rules keep",
    "boxscore.matching.points.functions_at": "in which order the functions of a point run",
    "boxscore.matching.ignoring.prepared": "what rules make of tables",
    "boxscore.matching.ignoring.rounded": "what a rule makes of scores and boxes",
    **dict.fromkeys(
        (
            "boxscore.matching.candidates.MOST_PAIRS",
            "boxscore.matching.greedy.MOST_HELD",
            "boxscore.matching.greedy.WIDE",
            "boxscore.matching.matcher.MOST_PAIRS",
            "boxscore.matching.candidates.SMALL_SHARE",
            "boxscore.matching.matches.MOST_SORTS",
            "boxscore.matching.matches.SORTED_TOGETHER",
            "boxscore.scoring.blocks.MOST_VALUES",
            "boxscore.scoring.blocks.SUMMED_TOGETHER",
            "boxscore.scoring.curves.MOST_VALUES",
        ),
        "a limit that is made small, or what a plan counts with",
    ),
}

INSIDE = re.compile(r"boxscore\.(?:matching|scoring)(?:\.\w+)+")
FILES = sorted(
    path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if "node_modules" not in path.parts
)


def insides_named(source: str) -> list[str]:
    """Return what a file imports or names of the three packages, but for their faces."""
    if not any(package.rpartition(".")[2] in source for package in PACKAGES):
        return []  # most files, unparsed
    nodes = list(ast.walk(ast.parse(source)))
    known = {"boxscore": "boxscore"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "boxscore":
            known |= {alias.asname or alias.name: f"boxscore.{alias.name}" for alias in node.names}
    names = {name for node in nodes for name in _names_of(node, known)}
    return sorted(name for name in names if not _is_face(name))


def _names_of(node: ast.AST, known: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.startswith(PACKAGES))
    elif isinstance(node, ast.ImportFrom):
        named = (f"{node.module}.{alias.name}" for alias in node.names)
        yield from (name for name in named if name.startswith(PACKAGES))
    elif isinstance(node, ast.Attribute):
        yield from INSIDE.findall(_dotted(node, known))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from INSIDE.findall(node.value)


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str:
    """``boxscore.matching.greedy`` of what is written so, or of ``greedy`` of an imported package."""
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    before = _dotted(node.value, known) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before else ""


def _is_face(name: str) -> bool:
    """Whether a package, or a name of its ``__all__`` and what hangs on that."""
    package = next(package for package in PACKAGES if name.startswith(package))
    first = name.removeprefix(package).lstrip(".").partition(".")[0]
    return not first or first in FACES[package]


@each([file for file in FILES if file not in DOORS and file != "source/test_imports_of_tests.py"])
def test_a_test_asks_the_faces(file: str) -> None:
    assert insides_named((TESTS / file).read_text(encoding="utf-8")) == []


def test_the_doors_let_in_what_has_a_reason() -> None:
    named = {name for door in DOORS for name in insides_named((TESTS / door).read_text(encoding="utf-8"))}
    assert named == set(ALLOWED)
    assert all(ALLOWED.values())


@each(DOORS)
def test_a_door_is_there(door: str) -> None:
    assert (TESTS / door).is_file()


@pytest.mark.parametrize(
    "source",
    [
        "from boxscore.scoring.curves import Curves",
        "from boxscore.scoring import curves",
        "import boxscore.matching.matcher",
        "import boxscore.matching.greedy as matching",
        "from boxscore.matching import greedy",
        "def test():\n    from boxscore.scoring.counts import Counter",
        "patch.setattr('boxscore.matching.greedy.WIDE', 0)",
        "boxscore.scoring.blocks.MOST_VALUES = 1",
        "from boxscore import matching\nmatching.greedy.WIDE",
        "from boxscore import scoring as s\ns.curves.Curves.of(matches)",
    ],
)
def test_a_new_import_of_an_inside_is_noticed(source: str) -> None:
    assert insides_named(source)


@pytest.mark.parametrize(
    "source",
    [
        "from boxscore.distributed import Part, merge",
        "import boxscore.distributed",
        "from boxscore import distributed, evaluate",
        "boxscore.distributed.Part.from_bytes(content)",
        "call = f'boxscore.distributed.evaluate({truth})'",
        "from boxscore.similarity.pairs import chunks",
    ],
)
def test_a_face_is_nothing_to_notice(source: str) -> None:
    assert insides_named(source) == []
