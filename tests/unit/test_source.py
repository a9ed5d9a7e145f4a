"""Rules that the source keeps: import layers, ``__all__``, docstrings, doctests."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import boxscore

ROOT = Path(boxscore.__file__).parent


def every_module() -> list[str]:
    found = pkgutil.walk_packages([str(ROOT)], "boxscore.")
    return ["boxscore", *sorted(item.name for item in found if not item.name.endswith("__main__"))]


MODULES = every_module()
PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


# ---------------------------------------------------------------- import layers

LAYERS = [
    ["_allocator", "_collector", "_forks", "_version", "errors", "sorting"],
    ["_files", "_validate", "run_lengths"],
    ["boxes", "grids", "keypoints", "mask_column", "similarity_rules", "vocabulary"],
    ["batches", "instance_columns", "masks", "protocol", "_table_columns"],
    ["nms"],
    ["boundaries", "interpolation", "protocols", "signature", "tables"],
    ["ranking", "selection", "similarity_inputs"],
    ["datasets", "matching", "overlaps"],
    ["average_precision", "rematching"],
    ["evaluation", "weighted"],
    ["compat", "diagnostics", "evaluator", "verification"],
    ["reports"],
    ["plots", "validation"],
    ["cli"],
]
"""From left to right. A module imports from layers to its left; inside a package, from anywhere in it."""

NEEDED = {
    ("average_precision", "matching"),  # it reads Matches, the value that matching makes
    ("overlaps", "ranking"),
    ("matching", "ranking"),
    ("datasets", "selection"),  # warns of unknown classes the same way
}
"""The only imports from one stage of the flow to its neighbour."""

STAGES = {"ranking", "selection", "overlaps", "matching", "average_precision", "datasets"}


def layer_of(part: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def imports_of(module: str, *, lazy: bool) -> set[str]:
    """Return the top-level parts of boxscore that a module imports; those inside functions, or for types only, when ``lazy``."""
    path = ROOT.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.FunctionDef)
        or (isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test))
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if (node in inside) != lazy:
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            base = node.module or ""
            names = [f"{base}.{alias.name}" if base == "boxscore" else base for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("boxscore.")}
    return found


def test_every_module_has_a_layer() -> None:
    parts = {name.split(".")[1] for name in MODULES if name != "boxscore"}
    assert parts == {part for layer in LAYERS for part in layer}


@pytest.mark.parametrize("module", [name for name in MODULES if name != "boxscore"])
def test_imports_run_from_left_to_right(module: str) -> None:
    own = module.split(".")[1]
    for part in imports_of(module, lazy=False) - {own}:
        assert layer_of(part) < layer_of(own), f"{module} imports {part}"
        if own in STAGES and part in STAGES:
            assert (own, part) in NEEDED, f"the stage {own} imports its neighbour {part}"


def test_lazy_imports_are_known() -> None:
    """An import inside a function can hide a circle."""
    lazy = {(module, part) for module in MODULES for part in imports_of(module, lazy=True)}
    backwards = {
        (module, part)
        for module, part in lazy
        if module != "boxscore" and layer_of(part) > layer_of(module.split(".")[1])
    }
    assert backwards == {
        ("boxscore.protocol", "signature"),  # a method that prints what it is
        ("boxscore.reports.folder", "plots"),  # drawn into the folder when asked for, by --plots
        ("boxscore.nms.detections", "tables"),  # a type only
    }


def test_only_evaluation_and_the_command_line_know_the_whole_chain() -> None:
    chain = {"overlaps", "matching", "average_precision"}
    assert {module for module in MODULES if chain <= imports_of(module, lazy=False)} == {
        "boxscore.evaluation"
    }


# ---------------------------------------------------------------- __all__


WITHOUT_ALL = {
    "boxscore.compat.pycocotools.coco",  # has the names that pycocotools has, which has no __all__
    "boxscore.compat.pycocotools.mask",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_what_is_exported(name: str) -> None:
    module = importlib.import_module(name)
    if name in WITHOUT_ALL:
        assert not hasattr(module, "__all__")
        return
    exported = module.__all__
    assert len(set(exported)) == len(exported)
    for item in exported:
        assert hasattr(module, item), item
    own = {
        item
        for item, value in vars(module).items()
        if not item.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == name
    }
    assert own <= set(exported), f"public, and not in __all__: {sorted(own - set(exported))}"


def test_the_package_exports_what_it_imports() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    imported = [a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
    deleted = {name.id for n in tree.body if isinstance(n, ast.Delete) for name in n.targets}  # type: ignore[attr-defined]
    assert sorted({*imported} - deleted) == sorted(boxscore.__all__)


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


@pytest.mark.parametrize(("name", "value"), CALLABLES, ids=[name for name, _ in CALLABLES])
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


@pytest.mark.parametrize(("name", "value"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
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


# ---------------------------------------------------------------- doctests


def modules_with_examples() -> list[ModuleType]:
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(name) for name in MODULES]
    return [m for m in modules if any(test.examples for test in finder.find(m, module=m))]


WITH_EXAMPLES = modules_with_examples()


@pytest.mark.parametrize("module", WITH_EXAMPLES, ids=[module.__name__ for module in WITH_EXAMPLES])
def test_doctests(module: ModuleType) -> None:
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0


def test_there_are_doctests() -> None:
    names = {module.__name__ for module in WITH_EXAMPLES}
    assert {"boxscore.boxes", "boxscore.evaluation", "boxscore.tables", "boxscore.protocols"} <= names
