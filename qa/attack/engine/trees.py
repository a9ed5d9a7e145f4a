"""Trees of dictionaries, lists and values, as JSON and TOML have them: spoilt, and written in many ways."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from attack.engine import hostile
from attack.engine.hostile import Raw

__all__ = ["Twin", "as_json", "as_toml", "spoilt"]

Tree = Any
Step = tuple[Any, Any]


class Twin(str):
    """A key that may stand beside one of the same text."""

    __slots__ = ()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def _keys(node: Tree) -> list[Any]:
    return list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []


def _step(tree: Tree, rng: random.Random) -> Step | None:
    """Walk down from the top and stop somewhere, so that long lists do not draw everything."""
    node, step = tree, None
    while keys := _keys(node):
        key = rng.choice(keys)
        step = (node, key)
        if rng.random() < 0.3:
            break
        node = node[key]
    return step


def _drop(parent: Any, key: Any, rng: random.Random) -> None:
    del parent[key]


def _double(parent: Any, key: Any, rng: random.Random) -> None:
    value = parent[key]
    if isinstance(parent, list):
        parent[key:key] = [copy.deepcopy(value) for _ in range(rng.choice([1, 1, 2, 20]))]
    else:
        parent[Twin(key)] = hostile.scalar(rng) if rng.random() < 0.5 else copy.deepcopy(value)


def _retype(parent: Any, key: Any, rng: random.Random) -> None:
    value = parent[key]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        choices: list[Any] = [str(value), float(value), [value], bool(value), -value, value + 0.5, None]
        parent[key] = rng.choice([*choices, Raw(repr(float(value))), Raw(f"{value}e0")])
    elif isinstance(value, str):
        parent[key] = rng.choice(
            [[value], value.upper(), f" {value} ", value + "\0", len(value), list(value)]
        )
    elif isinstance(value, list):
        parent[key] = rng.choice(
            [dict(enumerate(map(str, value))), value[0] if value else None, str(value), []]
        )
    elif isinstance(value, dict):
        parent[key] = rng.choice([list(value.values()), list(value.items()), {}])
    else:
        parent[key] = hostile.scalar(rng)


def _extreme(parent: Any, key: Any, rng: random.Random) -> None:
    value = parent[key]
    if isinstance(value, str):
        parent[key] = hostile.text(rng)
    elif isinstance(value, (int, float)):
        parent[key] = hostile.number(rng)
    else:
        parent[key] = hostile.scalar(rng)


def _any(parent: Any, key: Any, rng: random.Random) -> None:
    parent[key] = hostile.scalar(rng)


def _nest(parent: Any, key: Any, rng: random.Random) -> None:
    depth = rng.choice([1, 1, 2, 50])
    for _ in range(depth):
        parent[key] = [parent[key]] if rng.random() < 0.6 else {"a": parent[key]}
    if rng.random() < 0.1:
        parent[key] = Raw("[" * 5000 + "]" * 5000)


def _rename(parent: Any, key: Any, rng: random.Random) -> None:
    if isinstance(parent, dict):
        new = rng.choice([str(key).upper(), f"{key} ", str(key)[:-1], hostile.text(rng), f"x_{key}"])
        parent[new] = parent.pop(key)
    else:
        rng.shuffle(parent)


def _add(parent: Any, key: Any, rng: random.Random) -> None:
    if isinstance(parent, dict):
        parent[hostile.text(rng)] = hostile.scalar(rng)
    else:
        parent.insert(key, hostile.scalar(rng))


WAYS: list[Callable[[Any, Any, random.Random], None]] = [
    *(_drop, _drop, _double, _retype, _retype, _extreme, _extreme, _extreme, _any, _nest, _rename, _add)
]


def spoilt(tree: Tree, rng: random.Random) -> Tree:
    """Spoil a tree in one place, or two places with each other. The tree itself is changed."""
    step = _step(tree, rng)
    if step is None:
        return hostile.scalar(rng)
    parent, key = step
    if rng.random() < 0.15:
        other = _step(tree, rng)
        if other is not None:
            first, second = copy.deepcopy(parent[key]), copy.deepcopy(other[0][other[1]])
            parent[key] = second
            if rng.random() < 0.5 and other[0] is not parent:
                other[0][other[1]] = first
            return tree
    rng.choice(WAYS)(parent, key, rng)
    return tree


# ---------------------------------------------------------------- written


def _json_text(text: str, rng: random.Random | None) -> str:
    plain = json.dumps(text, ensure_ascii=rng is None or rng.random() < 0.5 or not text.isprintable())
    if rng is not None and text and rng.random() < 0.05:  # every letter escaped
        return '"' + "".join(f"\\u{ord(letter) & 0xFFFF:04x}" for letter in text) + '"'
    return plain


def _are_finite(numbers: Sequence[float]) -> bool:
    return all(abs(number) < math.inf for number in numbers)


def as_json(tree: Tree, rng: random.Random | None = None) -> bytes:
    """Write JSON, of its own kind where a value has one; sometimes with odd but legal spelling."""
    odd = rng if rng is not None and rng.random() < 0.15 else None

    def write(node: Tree) -> str:
        if isinstance(node, Raw):
            return str(node)
        if isinstance(node, str):
            return _json_text(node, odd)
        if isinstance(node, dict):
            items = [f"{_json_text(str(key), odd)}:{blank()}{write(value)}" for key, value in node.items()]
            return "{" + f",{blank()}".join(items) + "}"
        if isinstance(node, (list, tuple)):
            if odd is None and {*map(type, node)} <= {int, float} and _are_finite(node):
                return json.dumps(node)
            return "[" + f",{blank()}".join(map(write, node)) + "]"
        if isinstance(node, float) and not math.isfinite(node):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(node, "NaN")
        if odd is not None and isinstance(node, int) and not isinstance(node, bool) and abs(node) < 2**53:
            return odd.choice([str(node), f"{node}.0", f"{node}e0", f"{node}0e-1"])
        return json.dumps(node)

    def blank() -> str:
        return " " if odd is None else odd.choice(["", " ", "\n\t", "\r\n"])

    return write(tree).encode("utf-8", "surrogatepass")


_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def as_toml(tree: Tree) -> bytes:
    """Write TOML: a line for each key at the top, tables within inline; None as text."""

    def key_text(key: object) -> str:
        return str(key) if _BARE.match(str(key)) else _toml_text(str(key))

    def write(node: Tree) -> str:
        if isinstance(node, Raw):
            return str(node)
        if isinstance(node, str):
            return _toml_text(node)
        if isinstance(node, bool):
            return str(node).lower()
        if isinstance(node, dict):
            return "{" + ", ".join(f"{key_text(key)} = {write(value)}" for key, value in node.items()) + "}"
        if isinstance(node, (list, tuple)):
            return "[" + ", ".join(map(write, node)) + "]"
        if isinstance(node, float):
            return {math.inf: "inf", -math.inf: "-inf"}.get(node, "nan" if node != node else repr(node))
        return '"null"' if node is None else str(node)

    if not isinstance(tree, dict):
        return write(tree).encode("utf-8", "surrogatepass")
    lines = [f"{key_text(key)} = {write(value)}\n" for key, value in tree.items()]
    return "".join(lines).encode("utf-8", "surrogatepass")


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable()).replace("\x7f", "\\u007f")
