"""Structured mutants of JSON annotations: other values, keys and lists, and files cut off.

Run by ``qa/fuzz/mutants.py``. They begin with the data set of ``tests/support/annotations.py`` in every format
that is JSON. A mutant that is taken has finite boxes, and is evaluated.
"""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from boxscore.errors import BoxscoreError
from support.annotations import FORMATS

Rng = np.random.Generator
Good = dict[str, tuple[str, dict[str, str]]]

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 1.5, -0.0, 1e308, -1e308, 10**30, 2**63, float("nan"), float("inf")),
    *("", "cat", "a.jpg", "../../a.jpg", "a/b.jpg", "\0", "\ud800", "9" * 400, "é", "1", "0", "val"),
    *([], {}, [[]], [None], [1, 2, 3, 4], [[1, 2], [3, 4]], {"x": 1}, {"": {}}, [{}]),
]


def prepare(folder: Path) -> Good:
    """Return the files of each format that is JSON."""
    good = {}
    for name, (path, files) in FORMATS.items():
        texts = {file: content for file, content in files.items() if isinstance(content, str)}
        if texts and all(content.lstrip()[:1] in ("{", "[") for content in texts.values()):
            good[name] = (path, texts)
    return good


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with one of its keys or positions."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((value, key), *_places(one))]


def _spoilt(rng: Rng, value: Any) -> None:
    """Change one value, leave it out, repeat it, or give it another key."""
    places = _places(value)
    if not places:
        return
    at, key = places[int(rng.integers(len(places)))]
    kind = int(rng.integers(6))
    if kind <= 2:
        at[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    elif kind == 3:
        del at[key]
    elif isinstance(at, list):
        at.insert(int(rng.integers(len(at) + 1)), copy.deepcopy(at[key]))
    elif kind == 4:
        at[f"{key}{VALUES[int(rng.integers(len(VALUES)))]}"] = at.pop(key)
    else:
        other, from_ = places[int(rng.integers(len(places)))]
        if not isinstance(other[from_], (dict, list)):
            at[key] = other[from_]


def _text(rng: Rng, text: str) -> bytes:
    lines = text.splitlines() if text.startswith("{") and "\n" in text.strip() else [text]
    values = [json.loads(line) for line in lines]
    for _ in range(int(rng.integers(1, 4))):
        _spoilt(rng, values)
    content = "\n".join(map(json.dumps, values)).encode()
    if rng.random() < 0.1:
        content = content[: int(rng.integers(len(content) + 1))]
    if rng.random() < 0.05:
        content = b'{"a":' * 20_000 if rng.random() < 0.5 else b"[" * 100_000
    return content


def one(rng: Rng, good: Good, folder: Path) -> str:
    """Read a mutant as ground truth and as detections; return what became of it."""
    name = sorted(good)[int(rng.integers(len(good)))]
    path, files = good[name]
    spoilt = sorted(files)[int(rng.integers(len(files)))]
    home = folder / "mutant"
    shutil.rmtree(home, ignore_errors=True)
    for file, text in files.items():
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_bytes(_text(rng, text) if file == spoilt else text.encode())
    try:
        warnings.simplefilter("error", RuntimeWarning)
        truth = boxscore.load_ground_truth(home / path)
        found = boxscore.load_detections(home / path, truth)
        assert np.isfinite(truth.boxes).all()
        boxscore.evaluate(truth, found)
    except BoxscoreError:
        return "refused"
    return "taken"
