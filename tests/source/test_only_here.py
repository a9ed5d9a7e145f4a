"""Rules that have one place: who reads the bits, who composes the stages, who reads the flags."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable, Iterator

from boxscore.protocols.protocol import EXTRA_COLUMNS
from support.each import each
from support.insides import Matches
from support.sources import FILES, ROOT, last_name, nodes_of


def attributes_read(file: str, names: set[str]) -> Iterator[ast.Attribute]:
    for node in nodes_of(file):
        if isinstance(node, ast.Attribute) and node.attr in names:
            yield node


def is_in(file: str, places: Iterable[str]) -> bool:
    return any(file == place or file.startswith(f"{place}/") for place in places)


# ---------------------------------------------------------------- the bits of a Matches

BITS = {field.name for field in dataclasses.fields(Matches) if field.name.endswith("_bits")}


def test_matches_has_bits() -> None:
    assert {"in_range_bits", "counted_bits", "matched_bits"} == BITS


@each([file for file in FILES if file not in ("matching/matches.py", "extensions/large/packed.py")])
def test_only_matches_reads_its_bits(file: str) -> None:  # and packed.py copies them
    names = BITS | {"_true_bits"}
    assert [f"line {node.lineno}: {node.attr}" for node in attributes_read(file, names)] == []


BITS_OF_RULES = {name: name.upper() for name, column in EXTRA_COLUMNS.items() if column.kind == "bits"}
"""Columns of bits that rules declare, and what their declarations are called."""

MAKES_BITS = "extensions/federated/groups.py"


def test_rules_declare_bits() -> None:
    assert BITS_OF_RULES == {"absorbed_bits": "ABSORBED_BITS"}


@each([file for file in FILES if file != "matching/matches.py" and not file.startswith("protocols/")])
def test_only_matches_reads_the_bits_that_rules_declare(file: str) -> None:
    """The function of the rule makes them, under the name that the declaration gives."""
    nodes = nodes_of(file)
    read = [
        f"line {node.lineno}: {node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and last_name(node.value) in BITS_OF_RULES.values()
    ]
    named = {node.value for node in nodes if isinstance(node, ast.Constant)} & {*BITS_OF_RULES}
    imported = {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names} & {
        *BITS_OF_RULES.values()
    }
    assert {text.rpartition(": ")[2] for text in read} <= ({"name"} if file == MAKES_BITS else set())
    assert named == set()
    assert imported == set() or file == MAKES_BITS


# ---------------------------------------------------------------- rank, pairs, match

STAGES = {"rank_detections", "candidate_pairs", "match_greedily"}


def test_the_stages_are_where_they_are_said_to_be() -> None:
    matching = [file for file in FILES if file.startswith("matching/")]
    defined = {node.name for file in matching for node in nodes_of(file) if isinstance(node, ast.FunctionDef)}
    assert defined >= STAGES


@each([file for file in FILES if file != "matching/matcher.py"])
def test_only_the_matcher_composes_the_stages(file: str) -> None:
    used = {
        alias.name
        for node in nodes_of(file)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in STAGES
    }
    used |= {node.attr for node in attributes_read(file, STAGES)}
    assert used == set()


# ---------------------------------------------------------------- crowd, difficult, ignore

FLAGS = {"crowd", "difficult", "ignore"}

RULES = {"protocol", "load_protocol", "rules", "ignore", "chosen", "base", "IgnoreRules"}
"""Whose ``crowd`` is a rule and no flag: ``protocol.ignore.crowd``."""

FLAG_READERS = {
    "matching/ignoring.py": "the place where they get their meaning",
    "data": "they are columns of the tables",
    "extensions/crowds/citypersons.py": "a reader",
    "extensions/crowds/regions.py": "a rule: objects of no class get the flag `ignore`",
    "extensions/crowds/shares.py": "a rule: a crowd outside of a range counts twice",
    "extensions/data_tools/anchors.py": "anchors are fitted to single objects",
    "extensions/data_tools/operations.py": "a user chooses objects by the flag",
    "extensions/federated/open_images.py": "files are written from them",
    "extensions/formats/huggingface.py": "files are written from them",
    "extensions/hints/numbering.py": "objects are counted that a detection can lie on",
    "extensions/oriented/dota.py": "files are written from them",
    "extensions/validation": "says what is odd about them",
    "formats": "files are read into the columns, and written from them",
    "compat": "hands them to pycocotools, and takes them from its dictionaries",
    "integrations": "hands them to pycocotools, too",
    "protocols": "the rules are called by the flags",
    "similarity/box.py": "a share made of an IoU takes that of a crowd for one, as TinyBenchmark does",
}
FLAG_DISPLAYS = {"evaluation/result.py": {"counts_of_tables"}}
"""Functions that show how many there are, and score nothing."""


@each([file for file in FILES if not is_in(file, FLAG_READERS)])
def test_only_ignoring_reads_the_flags(file: str) -> None:
    shown = {
        id(node)
        for function in nodes_of(file)
        if isinstance(function, ast.FunctionDef) and function.name in FLAG_DISPLAYS.get(file, ())
        for node in ast.walk(function)
    }
    read = [
        f"line {node.lineno}: {last_name(node.value)}.{node.attr}"
        for node in attributes_read(file, FLAGS)
        if last_name(node.value) not in RULES and id(node) not in shown
    ]
    assert read == []


@each([*FLAG_READERS, *FLAG_DISPLAYS])
def test_an_exception_is_of_a_place_that_is_there(place: str) -> None:
    assert (ROOT / place).exists()


# ---------------------------------------------------------------- which line a warning names


@each([file for file in FILES if file != "_utils/user_warnings.py" and not is_in(file, {"integrations"})])
def test_only_one_function_warns(
    file: str,
) -> None:  # it finds the user's line, which no number of levels does
    assert [f"line {node.lineno}" for node in attributes_read(file, {"warn", "warn_explicit"})] == []
