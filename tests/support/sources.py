"""The source as trees."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

import boxscore

ROOT = Path(boxscore.__file__).parent
FILES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


@functools.cache
def tree_of(file: str) -> ast.Module:
    """The tree of a file, made without looking for garbage among its nodes, which takes longer than to make it."""
    looks = gc.isenabled()
    gc.disable()
    try:
        return ast.parse((ROOT / file).read_text(encoding="utf-8"))
    finally:
        if looks:
            gc.enable()


@functools.cache
def nodes_of(file: str) -> tuple[ast.AST, ...]:
    """Every node of a file's tree, which a dozen tests ask for."""
    return tuple(ast.walk(tree_of(file)))


def last_name(node: ast.expr) -> str:
    """``matches`` of ``self.matches`` or ``matches()``; empty for what has no name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, (ast.Call, ast.Subscript)):
        return last_name(node.func if isinstance(node, ast.Call) else node.value)
    return ""
