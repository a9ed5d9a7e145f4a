"""Rules know themselves: no list of fields is kept by hand where a rule can be asked.

A list is one condition, or one display of values, that reads what three or more rules say; or a function that
answers yes or no from as many. What a rule allows is said at its fields, and asked by ``protocol.scope``. Which
fields make a rule together is said by the comments in the tables of a protocol.
"""

from __future__ import annotations

import ast
import dataclasses
import graphlib
import inspect
import re
from collections.abc import Iterator

from boxscore.protocols.fields import Field, all_fields
from boxscore.protocols.protocol import Protocol
from support.each import each
from support.fields_read import aliases, fields_read
from support.imports import MODULES, imports_of
from support.sources import FILES, ROOT, tree_of

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


def rules_of(table: str) -> dict[str, str]:
    """The rule of each field, method and property of a table: the comment above it, or the table."""
    rule, found = table, {}
    for line in inspect.getsource(TABLES[table]).splitlines():
        if comment := re.fullmatch(r" {4}# (.+)", line):
            rule = comment[1]
        elif member := re.match(r" {4}(?:def )?(\w+)(?:: | = |\()", line):
            found[member[1]] = rule
    return found


RULES = {(table, name): rule for table in TABLES for name, rule in rules_of(table).items()}


def rule_of(table: str, name: str) -> str:
    """The rule that has a field, or what is derived from it; a whole table is as good as one."""
    return RULES.get((table, name), table)


def rules_read(node: ast.AST, names: dict[str, str]) -> set[str]:
    """Rules that an expression reads."""
    read = fields_read(node, names, TABLES, OWN)
    return {rule_of(table, name) if table else name for table, name in read}


def answers(function: ast.FunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def lists(tree: ast.Module) -> Iterator[str]:
    """Where a list of fields is kept."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        nodes = tuple(ast.walk(function))
        names = aliases(nodes, TABLES)
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


def test_every_table_is_in_a_file_of_tables() -> None:
    files = {path.stem for path in (ROOT / "protocols" / "tables").glob("*.py")} - {"__init__"}
    assert {kind.__module__.rpartition(".")[2] for kind in TABLES.values()} == files


def test_comments_name_the_rules_of_a_table() -> None:
    assert {field.name for field in all_fields(Protocol) if field.table} <= {name for _, name in RULES}
    assert rule_of("matching", "threshold_closed") == rule_of("matching", "least_threshold") == "thresholds"
    assert rule_of("matching", "equal_scores") == rule_of("ap", "tie_order") == "equal scores"
    assert rule_of("ignore", "unlabeled") == rule_of("keypoints", "sigmas") == "keypoints"
    assert len(set(RULES.values())) > 25


def unchecked() -> Iterator[tuple[str, Field, object]]:
    """Fields with the default that is taken unchecked."""
    for field in all_fields(Protocol):
        kind = TABLES[field.table] if field.table else Protocol
        declared = kind.__dataclass_fields__[field.name]
        if declared.default_factory is not dataclasses.MISSING:
            yield field.path, field, declared.default_factory()
        elif declared.default is not dataclasses.MISSING:
            yield field.path, field, declared.default


@each(unchecked())
def test_a_default_is_what_its_check_returns(path: str, field: Field, default: object) -> None:
    checked = field.rule.check(default, path)
    assert repr(checked) == repr(default)


# ---------------------------------------------------------------- no circle


def test_no_file_of_protocols_imports_what_imports_it() -> None:
    own = {name for name in MODULES if name.startswith("boxscore.protocols.")}
    graph = {name: imports_of(name) & own for name in own}
    assert len(graph) > 15
    order = list(graphlib.TopologicalSorter(graph).static_order())  # an error where there is a circle
    assert order.index("boxscore.protocols.fields") < order.index("boxscore.protocols.protocol")
