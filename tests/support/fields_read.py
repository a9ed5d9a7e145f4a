"""Fields of a protocol's tables that code reads."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from support.sources import last_name


def is_protocol(node: ast.expr) -> bool:
    return last_name(node) in ("protocol", "_protocol", "chosen") and isinstance(
        node, (ast.Name, ast.Attribute)
    )


def aliases(nodes: Iterable[ast.AST], tables: Collection[str]) -> dict[str, str]:
    """Names that stand for a table in a function: ``rules = protocol.matching``, alone or in a tuple."""
    found = {}
    for node in nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for name, made in pairs:
            is_table = isinstance(made, ast.Attribute) and is_protocol(made.value) and made.attr in tables
            if isinstance(name, ast.Name) and is_table:
                found[name.id] = made.attr
    return found


def fields_read(
    node: ast.AST, names: dict[str, str], tables: Collection[str], others: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Table and name of what is read of tables, or of names that stand for one; of a whole table no name.

    Of other fields of a protocol no table.
    """
    inner = set()  # tables of which one field is read; a walk meets the outer expression first
    for read in ast.walk(node):
        if not isinstance(read, ast.Attribute) or id(read) in inner:
            continue
        owner = read.value
        if isinstance(owner, ast.Attribute) and is_protocol(owner.value) and owner.attr in tables:
            yield owner.attr, read.attr
            inner.add(id(owner))
        elif isinstance(owner, ast.Name) and owner.id in names:
            yield names[owner.id], read.attr
        elif is_protocol(owner) and read.attr in tables:
            yield read.attr, ""
        elif is_protocol(owner) and read.attr in others:
            yield "", read.attr
