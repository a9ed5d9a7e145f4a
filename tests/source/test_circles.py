"""No module imports, by whatever way, one that imports it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from support.each import each
from support.imports import MODULES, imported, imports_of
from support.modules import ADAPTERS

UNTIL_THEN: set[str] = set()
"""Packages with a circle that somebody is breaking."""


def circle_in(graph: Mapping[str, Collection[str]]) -> list[str]:
    """Return modules that each import the next, the last the first; none where there is no circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]
        return circle
    return []


@each({name.split(".")[1] for name in MODULES if name != "boxscore"})
def test_no_package_has_a_circle(package: str) -> None:
    own = {name for name in MODULES if f"{name}.".startswith(f"boxscore.{package}.")}
    circle = circle_in({name: imports_of(name) & own for name in own})
    assert bool(circle) == (package in UNTIL_THEN), " -> ".join(circle) or "no circle is left"


@each([module for module in MODULES if not module.startswith(ADAPTERS)])
def test_no_module_imports_the_face_of_its_own_package(module: str) -> None:
    """Adapters do: to them boxscore is what it is to users."""
    assert [name for name in imports_of(module) if module.startswith(f"{name}.")] == []


@each(
    [
        "from boxscore.data.tables import BoxTable",
        "from boxscore.data import tables",
        "import boxscore.data.tables as of_data",
        "if TYPE_CHECKING:\n    from boxscore.data.tables import BoxTable",
        "def later():\n    from boxscore.data.tables import BoxTable",
        'shortcut("boxscore.data.tables", "BoxTable")',
        'importlib.import_module(f"boxscore.data.{name}")\nname = "tables"',
    ]
)
def test_every_way_to_import_is_seen(text: str) -> None:
    assert "boxscore.data.tables" in set(imported(ast.walk(ast.parse(text))))


def test_a_circle_is_found() -> None:
    graph = {"a": {"b", "d"}, "b": {"c"}, "c": {"a"}, "d": set[str]()}
    assert sorted(circle_in(graph)[1:]) == ["a", "b", "c"]
    assert circle_in(graph | {"c": {"d"}}) == []
