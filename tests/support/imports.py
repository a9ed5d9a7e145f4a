"""Which module of the package imports which."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator

from support.sources import FILES, nodes_of


def module_of(file: str) -> str:
    parts = ["boxscore", *file.removesuffix(".py").split("/")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file): file for file in FILES}


@functools.cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules that one imports, wherever in it and for whatever; those it names in texts, too."""
    return frozenset(imported(nodes_of(MODULES[module]))).intersection(MODULES) - {module}


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    nodes = tuple(nodes)
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for node in nodes:
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
