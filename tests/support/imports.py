"""Which module of the package imports which."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.sources import FILES, tree_of


def module_of(file: str) -> str:
    parts = ["boxscore", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


def imports_of(module: str) -> set[str]:
    """Return the modules that one imports, wherever in it and for whatever; those it names in texts, too."""
    return {name for name in imported(tree_of(MODULES[module])) if name in MODULES} - {module}


def imported(tree: ast.Module) -> Iterator[str]:
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in names)
        elif isinstance(node, ast.JoinedStr):  # f"boxscore.formats.{name}"
            first = node.values[0]
            if isinstance(first, ast.Constant) and str(first.value).startswith("boxscore."):
                yield from (f"{first.value}{text}" for text in texts)
    yield from (text for text in texts if text != "boxscore")  # the program's name
