"""Find what people read in the source and in the pages, and phrases that a native engineer would not write."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import boxscore
from support.sources import nodes_of

SOURCE = Path(boxscore.__file__).parent
PROJECT = SOURCE.parents[1]


class Text(NamedTuple):
    """A text that somebody reads, and where it is."""

    place: str
    kind: str
    """``docstring``, ``comment``, ``message`` or ``page``."""
    text: str


RULES = {
    "negate the verb, not the noun": r"(?<![Tt]here )\b(?:is|are|was|were|be) no(?:ne)?\b(?! more | longer | faster |')"
    r"|\bno (?:bit|object|number) (?:changes|moves)\b",
    "'what ...' as a noun": r"(?:^|[.!:;] )What (?![^?]*\?)|\b(?:of|from|for|with|to|beyond|beside|as|than|in|on|by|all|"
    r"and|or|only|but|into|like) what\b",
    "'beside' for 'next to' or 'with'": r"\b[Bb]eside\b",
    "'stand' for 'be'": r"(?<!under)\b(?:[Ss]tands?|[Ss]tood)\b(?! out| for| alone| in for|-alone)|\bstanding\b",
    "'lie' for 'be'": r"\blies?\b(?! about)|\blying\b",
    "nobody, whoever, whatever": r"\b(?:[Nn]obody|[Ww]hoever|[Ww]hatever|[Ww]hosoever)\b",
    "a sentence that begins with 'Of'": r"(?:^|[.!?:] )Of (?!course)",
    "translated phrases": r"\b(?:anew|comes? about|came about|in passing|strays?|put right|goes by|once more|by itself|"
    r"said of|told of|is told|are told|is said|are said|turned round)\b",
    "a sentence that begins with a participle": r"(?:^|[.!?] )(?:Matched|Refused|Ignored|Counted|Kept|Read|Dropped|"
    r"Wanted|Asked|Given|Left|Taken|Needed) (?:are|is|were|was)\b",
    "'Left:' for 'Rejected:'": r"(?:^|[.!?] |\*\*)Left:",
    "British spelling": r"\b\w*(?:colour|normalis|localis|initialis|maximis|minimis|optimis(?!tic)|summaris|recognis|"
    r"neighbour|behaviour|favour|centre|licence|analys(?:ed?|ing)\b|labell(?:ed|ing)\b|rasteris|artefact|catalogue|grey)\w*\b",
}
"""What the rule wants, and what breaks it."""

OPENING = re.compile(r"(?:What|How|Which|Whether|Where|When|Who|Why)\b")
"""A module docstring says in a verb what the module does."""


def texts_of_source(path: Path) -> Iterator[Text]:
    """Yield the docstrings, comments and messages of a module."""
    code = path.read_text(encoding="utf-8")
    nodes = nodes_of(path.relative_to(SOURCE).as_posix())
    name = path.relative_to(PROJECT).as_posix()
    docstrings = set()
    for node in nodes:
        # Docstrings of modules, classes and functions, and texts below a name.
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value
                if isinstance(value.value, str):
                    docstrings.add(value)
                    yield Text(f"{name}:{value.lineno}", "docstring", value.value)
    for node in nodes:
        # A message has a space between words; keys, formats and names have none.
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in docstrings
            and re.search(r"[a-z]{2,} [a-z]", node.value)
        ):
            yield Text(f"{name}:{node.lineno}", "message", node.value)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#!|# ?(?:type:|noqa|ruff)", token.string):
            yield Text(f"{name}:{token.start[0]}", "comment", token.string.lstrip("# "))


def texts_of_page(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of a page, without its code."""
    name = path.relative_to(PROJECT).as_posix()
    lines, start, fence = [], 1, ""
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark is not None:
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]
            line = ""
        if fence:
            continue
        # A paragraph, a row of a table and an item of a list are texts of their own.
        if lines and (not line.strip() or re.match(r"\s*(?:[-*#|]|\d+\.) ?", line)):
            yield Text(f"{name}:{start}", "page", re.sub(r"`[^`]*`", "`x`", " ".join(lines)))
            lines = []
        if line.strip() and not line.lstrip().startswith("<!--"):
            start = number if not lines else start
            lines.append(line.strip())


def sentences_of(text: str) -> list[str]:
    """Split a text into its sentences."""
    blocks = re.split(r"\n\s*\n|\n\s*[-*] ", text)
    flat = [re.sub(r"\s+", " ", block).strip() for block in blocks]
    return [one for block in flat for one in re.split(r"(?<=[.!?]) (?=[A-Z`*\"'\[])", block) if one]


def faults_of(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the rule and the sentence of every phrase that breaks a rule."""
    for sentence in sentences_of(text.text):
        plain = re.sub(r"`[^`]*`", "`x`", sentence)
        for rule, pattern in RULES.items():
            for _ in re.finditer(pattern, plain):
                yield rule, sentence
