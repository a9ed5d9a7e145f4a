"""Rules know themselves: no list of fields is kept by hand where a rule can be asked.

A list is one condition, or one display of values, that reads what three or more rules say; or a function that
answers yes or no from as many. What a rule allows is said in its file, and asked by ``protocol.scope``.
"""

from __future__ import annotations

import ast
import dataclasses
import graphlib
from collections.abc import Iterable, Iterator

from boxscore.protocols.fields import all_fields
from boxscore.protocols.protocol import Protocol
from support.each import each
from support.imports import MODULES, imports_of
from support.sources import FILES, ROOT, last_name, tree_of

MOST = 2
"""Rules that one expression may read."""

TABLES = {
    field.name: type(field.default)
    for field in dataclasses.fields(Protocol)
    if dataclasses.is_dataclass(field.default)
}
OWN = {
    field.name for field in all_fields(Protocol) if not field.table and field.rule.scope.act != "describes"
}
"""Fields beside the tables."""

DISPLAYS = (ast.BoolOp, ast.Tuple, ast.List, ast.Set, ast.Dict)

KNOWN = {
    "compat/verification.py": "what another program computes, in its words",
}
"""Lists that stay, each with its reason."""


def rule_of(table: str, name: str) -> str:
    """The file of ``rules`` that has a field, or what is derived from it; a whole table is as good as one."""
    kinds = reversed(TABLES[table].__mro__) if name else ()
    return next((kind.__module__.rpartition(".")[2] for kind in kinds if name in vars(kind)), table)


def is_protocol(node: ast.expr) -> bool:
    return last_name(node) in ("protocol", "_protocol", "chosen") and isinstance(
        node, (ast.Name, ast.Attribute)
    )


def aliases(nodes: Iterable[ast.AST]) -> dict[str, str]:
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
            is_table = isinstance(made, ast.Attribute) and is_protocol(made.value) and made.attr in TABLES
            if isinstance(name, ast.Name) and is_table:
                found[name.id] = made.attr
    return found


def rules_read(node: ast.AST, names: dict[str, str]) -> set[str]:
    """Rules that an expression reads."""
    found, inner = set(), set()
    for read in ast.walk(node):
        if not isinstance(read, ast.Attribute) or id(read) in inner:
            continue
        owner = read.value
        if isinstance(owner, ast.Attribute) and is_protocol(owner.value) and owner.attr in TABLES:
            found.add(rule_of(owner.attr, read.attr))
            inner.add(id(owner))
        elif isinstance(owner, ast.Name) and owner.id in names:
            found.add(rule_of(names[owner.id], read.attr))
        elif is_protocol(owner) and read.attr in OWN | TABLES.keys():
            found.add(read.attr if read.attr in OWN else rule_of(read.attr, ""))
    return found


def answers(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def lists(tree: ast.Module) -> Iterator[str]:
    """Where a list of fields is kept."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = tuple(ast.walk(function))
        names = aliases(nodes)
        for node in nodes:
            if isinstance(node, DISPLAYS) or (node is function and answers(function)):
                read = rules_read(node, names)
                if len(read) > MOST:
                    yield f"line {node.lineno}: {function.name} reads {', '.join(sorted(read))}"


@each([file for file in FILES if not file.startswith("protocols/") and file not in KNOWN])
def test_no_list_of_fields_is_kept_by_hand(file: str) -> None:
    assert list(lists(tree_of(file))) == []


@each(KNOWN)
def test_a_known_list_is_there(file: str) -> None:
    assert list(lists(tree_of(file))) != []


OLD = {
    "is_prepared_by_row": """
def is_prepared_by_row(protocol):
    dependent = (
        protocol.rounding.stretch_scores,
        protocol.boxes.clip != "none",
        protocol.ignore.regions,
    )
    return not any(dependent)
""",
    "can_be_split": """
def can_be_split(protocol):
    return (
        protocol.matching.cap_scope != "data_set_class"
        and not protocol.ap.score_steps
        and protocol.ap.class_mean != "by_images"
    )
""",
    "_check_scope": """
def _check_scope(self):
    rules = self.protocol.matching
    if rules.cap_scope == "data_set_class" and (not rules.per_class or rules.equal_scores == "last_first"):
        raise ProtocolError("matching.cap_scope", "be 'class'")
""",
    "_check_stretched": """
def _check_stretched(protocol):
    rules, ignore = protocol.matching, protocol.ignore
    for wrong, field in (
        (not rules.ranked_files, "matching.ranked_files"),
        (not rules.per_class, "matching.per_class"),
        (bool(ignore.regions), "ignore.regions"),
    ):
        if wrong:
            raise ProtocolError(field)
""",
    "evaluation": """
def evaluation(self, protocol):
    rules = (protocol.rounding, protocol.boxes.clip, protocol.matching.ranked_files)
    return self._matchers[rules]
""",
    "is_plain": """
def is_plain(protocol) -> bool:
    if protocol.matching.ranked_files:
        return False
    if protocol.similarity == "mask":
        return False
    return protocol.boxes.clip == "none"
""",
}
"""Lists that were kept, as they were."""


@each(OLD)
def test_a_list_that_comes_back_is_noticed(name: str) -> None:
    found = list(lists(ast.parse(OLD[name])))
    assert found
    assert all(name in text for text in found)


def test_what_reads_two_rules_is_no_list() -> None:
    code = """
def measured(protocol):
    rounding, boxes = protocol.rounding, protocol.boxes
    if boxes.clip == "image" and protocol.ignore.regions and boxes.clip != "none":
        return f(a=rounding.scores, b=rounding.boxes, c=protocol.ap.pool)
"""
    assert list(lists(ast.parse(code))) == []


def test_every_field_has_a_rules_file() -> None:
    files = {path.stem for path in (ROOT / "protocols" / "rules").glob("*.py")} - {"__init__"}
    found = {rule_of(field.table, field.name) for field in all_fields(Protocol) if field.table}
    assert found == files - {"similarity"}


# ---------------------------------------------------------------- no circle


def test_no_file_of_protocols_imports_what_imports_it() -> None:
    own = {name for name in MODULES if name.startswith("boxscore.protocols.")}
    graph = {name: imports_of(name) & own for name in own}
    assert len(graph) > 30
    order = list(graphlib.TopologicalSorter(graph).static_order())  # an error where there is a circle
    assert order.index("boxscore.protocols.fields") < order.index("boxscore.protocols.protocol")
