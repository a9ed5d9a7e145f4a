"""Rules that the source keeps: import layers, ``__all__``, docstrings."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import boxscore
from support.border import CORE
from support.each import each
from support.imports import MODULES as FILE_OF
from support.imports import imports_of
from support.modules import ADAPTERS, every_module

ROOT = Path(boxscore.__file__).parent


EVERY = sorted(name for name in FILE_OF if not name.endswith("__main__"))
"""Adapters whose framework is not here, too."""

MODULES = every_module()
PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


# ---------------------------------------------------------------- import layers

LAYERS = [
    "errors",
    "_version",
    "_utils",
    "data",
    "protocols",
    "formats",
    "similarity",
    "matching",
    "scoring",
    "suppression",
    "evaluation",
    "reports",
    "compat",
    "cli",
]
"""The core from left to right: a package imports from packages to its left, and from anywhere in itself.

``test_border.py`` holds what extensions may import, and that the core imports none of them.
"""


SOCKETS = {
    ("boxscore.evaluation.result", "reports"),  # methods of a result
    ("boxscore.protocols.summary", "scoring"),  # families of kinds of metrics
}
"""Tables of names from right to left: a module is imported when something is asked of it."""


def layer_of(part: str) -> int:
    return LAYERS.index(part)


def test_every_package_has_a_layer() -> None:
    assert {name.split(".")[1] for name in CORE if name != "boxscore"} == set(LAYERS)


@each([name for name in CORE if name != "boxscore"])
def test_imports_run_from_left_to_right(module: str) -> None:
    own = module.split(".")[1]
    parts = {name.split(".")[1] for name in imports_of(module).intersection(CORE) if name != "boxscore"} - {
        own
    }
    backwards = {part for part in parts if layer_of(part) >= layer_of(own)}
    assert backwards == {part for name, part in SOCKETS if name == module}


@each([name for name in EVERY if not name.startswith(ADAPTERS)])
def test_nothing_imports_an_adapter(module: str) -> None:
    assert not {name for name in imports_of(module) if name.startswith(ADAPTERS)}


@each([name for name in EVERY if name.startswith(ADAPTERS)])
def test_an_adapter_uses_what_users_use(module: str) -> None:
    """It imports public modules, and no name with an underscore."""
    assert all(not part.startswith("_") for name in imports_of(module) for part in name.split("."))
    tree = ast.parse((ROOT / Path(*module.split(".")[1:]).with_suffix(".py")).read_text(encoding="utf-8"))
    names = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("boxscore")
        for alias in node.names
    ]
    assert not [name for name in names if name.startswith("_")]


# ---------------------------------------------------------------- __all__


STANDS_IN = "boxscore.compat"
"""Whose modules have the names of the package that they stand in for: one that has no ``__all__`` has none."""

FACES = {
    *(
        name
        for name in PUBLIC
        if hasattr(importlib.import_module(name), "__path__") and not name.startswith("boxscore.extensions")
    ),
    *(name for name in PUBLIC if name.count(".") == 1 and name != "boxscore.extensions"),
    "boxscore.reports.plots",
    "boxscore._utils.records",
}
"""Packages, rooms that are one file, and one that gives type checkers other names for a decorator."""


@each(MODULES)
def test_faces_alone_have_an_all(name: str) -> None:
    module = importlib.import_module(name)
    if not name.startswith(STANDS_IN):
        assert hasattr(module, "__all__") == (name in FACES)
    exported = getattr(module, "__all__", [])
    assert len(set(exported)) == len(exported)
    for item in exported:
        assert hasattr(module, item), item


@each(PUBLIC)
def test_what_a_face_defines_is_public_or_has_an_underscore(name: str) -> None:
    module = importlib.import_module(name)
    defined = {
        item
        for item, value in vars(module).items()
        if not item.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == name
    }
    assert not hasattr(module, "__all__") or defined <= set(module.__all__)


@each([name for name in PUBLIC if "lazy_imports" in vars(importlib.import_module(name))])
def test_a_face_gives_what_its_block_imports(name: str) -> None:
    """Type checkers read imports; at run time they are recorded, and run when they are needed."""
    package = importlib.import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.With))
    typed = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if package is not boxscore.formats:  # it defines functions of its own as well
        assert sorted(typed) == sorted(package.__all__)
    assert set(typed) <= set(package.__all__) <= set(dir(package))
    for name, module in typed.items():
        value = getattr(package, name)
        if isinstance(value, ModuleType):
            assert value.__name__ == f"{module}.{name}"
        else:
            assert value is getattr(importlib.import_module(module), name)
            assert package is not boxscore or getattr(value, "__module__", "boxscore") == "boxscore"


# ---------------------------------------------------------------- docstrings


def public_callables() -> list[tuple[str, Any]]:
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        for item, value in vars(module).items():
            if item.startswith("_") or getattr(value, "__module__", None) != name:
                continue
            if inspect.isfunction(value):
                found.append((f"{name}.{item}", value))
            elif inspect.isclass(value):
                found.append((f"{name}.{item}", value))
                found += [
                    (f"{name}.{item}.{key}", member)
                    for key, member in vars(value).items()
                    if not key.startswith("_") and callable(getattr(value, key, None))
                ]
    return found


CALLABLES = public_callables()


@each(CALLABLES)
def test_everything_public_has_a_docstring(name: str, value: Any) -> None:
    text = inspect.getdoc(value)
    assert text, name
    first = text.split("\n\n", 1)[0]
    assert first.rstrip().endswith((".", ":")), first
    assert not first.startswith(f"{name.rsplit('.', 1)[-1]}("), "the docstring that dataclasses make"


def users_functions() -> list[tuple[str, Any]]:
    """Functions and methods that a user of the package calls."""
    found: list[tuple[str, Any]] = []
    for name in boxscore.__all__:
        value = getattr(boxscore, name)
        if inspect.isfunction(value):
            found.append((name, value))
        elif inspect.isclass(value):
            for key, member in vars(value).items():
                member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                if not key.startswith("_") and inspect.isfunction(member):
                    found.append((f"{name}.{key}", member))
    return found


FUNCTIONS = users_functions()
SECTIONS = re.compile(r"Parameters\n----------|Parameters[\w, ]* as in :\w+:|that :meth:")


@each(FUNCTIONS)
def test_what_users_call_is_documented_in_numpydoc(name: str, value: Any) -> None:
    text = inspect.getdoc(value) or ""
    parameters = [key for key in inspect.signature(value).parameters if key not in ("self", "cls")]
    if len(parameters) > 1:
        assert SECTIONS.search(text), f"{name} has no Parameters"
    if "Parameters\n----------" in text:
        body = text.split("Parameters\n----------", 1)[1]
        documented = {
            key.strip().lstrip("*")
            for line in body.splitlines()
            if line and not line.startswith(" ")
            for key in line.split(" : ")[0].split(",")
        }
        assert set(parameters) <= documented, set(parameters) - documented
        assert "Returns\n-------" in text or value.__annotations__.get("return") == "None", name
