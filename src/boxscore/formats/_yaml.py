"""Read small YAML files such as YOLO's ``data.yaml``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boxscore._utils.files import read_text
from boxscore.errors import FileFormatError

LARGEST = 5_000_000
"""Maximum size of a YAML file in bytes; the 21,841 names of ImageNet take half a megabyte."""

MOST_ALIASES = 100
"""Maximum number of aliases (``*name``); a few lines of them can expand to billions of values."""

MOST_VALUES = 1_000_000
"""Maximum number of values after the expansion of aliases."""

DEEPEST = 100
"""Maximum nesting depth; the loader of libyaml recurses in C and overflows the stack at about 10,000."""

_OPENING = re.compile(r"[\[{?-]")


def read_yaml(path: Path) -> Mapping[str, Any]:
    """Read a YAML mapping; only plain values are created, and no code is executed."""
    return read_yaml_text(read_text(path, "a YAML file", largest=LARGEST), path)


def read_yaml_text(text: str, path: Path) -> Mapping[str, Any]:
    """Read a YAML mapping from text, for example a part of a file."""
    import yaml

    # Count aliases before loading, because a few of them can expand to billions of values.
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        if (
            text.count("*") > MOST_ALIASES
            and sum(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=loader))
            > MOST_ALIASES
        ):
            rule = f"have at most {MOST_ALIASES} aliases"
            raise FileFormatError("a YAML file", rule, got="more", place=str(path))
        # Deep nesting overflows the stack of the C parser; run a cheap test first.
        if _may_be_deep(text) and _is_too_deep(text, loader):
            rule = f"have at most {DEEPEST} values inside each other"
            raise FileFormatError("a YAML file", rule, got="more", place=str(path))
        # The safe loader creates plain values only.
        content = yaml.load(text, Loader=loader)
        if "*" in text and _values(content, {}) > MOST_VALUES:
            rule = f"hold at most {MOST_VALUES:,} values"
            raise FileFormatError("a YAML file", rule, got="more, by its aliases", place=str(path))
    except FileFormatError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        raise FileFormatError("a YAML file", "be YAML", got=problem, place=f"{path}{line}") from None
    except (RecursionError, ValueError, OverflowError) as error:
        got = str(error).split("\n", 1)[0] or "values inside values without end"
        raise FileFormatError("a YAML file", "be YAML", got=got, place=str(path)) from None
    if not isinstance(content, Mapping):
        raise FileFormatError(
            "a YAML file", "be a mapping", got=f"a {type(content).__name__}", place=str(path)
        )
    return content


def _may_be_deep(text: str) -> bool:
    """Whether the nesting may be too deep: each level takes a bracket, a mark or a column of indentation."""
    marks = sum(1 for _ in itertools.islice(_OPENING.finditer(text), DEEPEST))
    indentation = max((len(line) - len(line.lstrip(" ")) for line in text.split("\n")), default=0)
    return marks + indentation >= DEEPEST


def _is_too_deep(text: str, loader: Any) -> bool:
    """Whether the nesting is too deep; libyaml 0.2.6 and later reject it before the first event."""
    import yaml

    try:
        return _depth(yaml.parse(text, Loader=loader)) > DEEPEST
    except yaml.YAMLError as error:
        if "nesting depth" in str(error):
            return True
        raise


def _depth(events: Iterable[Any]) -> int:
    """Return the nesting depth of parser events; stop counting once it is too deep."""
    import yaml

    depth = deepest = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest


def _values(node: Any, known: dict[int, int]) -> int:
    """Count the values in a node; ``known`` caches the counts of nodes by id."""
    if not isinstance(node, (list, tuple, dict)):
        return 1
    if id(node) not in known:
        inner = node.values() if isinstance(node, dict) else node
        known[id(node)] = MOST_VALUES + 1  # too many if the node contains itself
        known[id(node)] = 1 + sum(_values(value, known) for value in inner)
    return known[id(node)]


def names_of(content: Mapping[str, Any], path: Path) -> list[str] | None:
    """Return the class names in a ``data.yaml``, a list or a mapping from numbers, or None."""
    # A mapping must number the classes 0, 1, ..., so that the index of a name is the class number.
    names = content.get("names")
    if names is None:
        return None
    if isinstance(names, Mapping):
        rule = "be numbered 0, 1, 2, ... without a gap"
        numbers = [number for number in names if isinstance(number, int) and not isinstance(number, bool)]
        if sorted(numbers) != list(range(len(names))):
            raise FileFormatError("names", rule, got=f"keys {list(names)[:10]}", place=str(path))
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list):
        rule = "be a list, or a mapping from numbers"
        raise FileFormatError("names", rule, got=f"a {type(names).__name__}", place=str(path))
    # YAML loads yes, 1 and dates as other types; convert them to text.
    for number, name in enumerate(names):
        if isinstance(name, (list, Mapping)) or name is None:
            got = f"{str(name)[:60]!r} for class {number}"
            raise FileFormatError("a name in names", "be a string", got=got, place=str(path))
    return [str(name) for name in names]
