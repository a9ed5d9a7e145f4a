"""What annotation tools write: XML, JSON, lines of JSON, records and text, in the manner of each."""

from __future__ import annotations

import copy
import functools
import json
import random
import re
from pathlib import Path
from typing import Any

from attack.engine import trees
from attack.engine.commands import commands
from attack.engine.mutant import Mutant, Reader
from support.annotations import FORMATS
from support.detector_files import FILES

__all__ = ["LAYOUTS", "READERS", "layout", "spoilt_file", "spoilt_words"]

LAYOUTS = Path(__file__).parents[3] / "datasets" / "layouts"

ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**63,
        -(2**70),
        0.5,
        -1e308,
        1e308,
        "",
        " ",
        "a",
        "0",
        "-1",
        "1e400",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        {"a": 1},
        [1, 2, 3, 4],
        "é\u0000",
        "../../x",
        "x" * 5000,
        [0] * 50,
        {"x": {"y": []}},
    ),
]
WORDS = [
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e999",
    "99999999999999999999",
    "x",
    "é",
    "1_0",
    "\0",
    "../..",
    "<a>",
    "&lt;",
]


def spoilt_file(text: bytes, name: str, draw: random.Random) -> bytes:
    """Return a mutant of a file, in the manner of its kind."""
    if draw.random() < 0.2 or name.endswith((".tfrecord", ".gz", ".zip")):
        return _bytes(text, draw)
    if name.endswith(".json"):
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):  # an earlier step damaged it
            return _bytes(text, draw)
        return (
            _json(content, draw) if draw.random() < 0.5 else trees.as_json(trees.spoilt(content, draw), draw)
        )
    if name.endswith(".manifest"):
        lines = text.splitlines()
        number = draw.randrange(len(lines) or 1)
        try:
            lines[number] = _json(json.loads(lines[number]), draw)
        except (ValueError, RecursionError, IndexError):
            return _bytes(text, draw)
        return b"\n".join(lines)
    return spoilt_words(text.decode(errors="replace"), draw).encode("utf-8", errors="surrogatepass")


def _bytes(text: bytes, draw: random.Random) -> bytes:
    content = bytearray(text)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if not content:
            break
        start = draw.randrange(len(content))
        kind = draw.random()
        if kind < 0.5:
            content[start] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif kind < 0.7:
            del content[start : start + draw.choice((1, 4, 100))]
        elif kind < 0.9:
            piece = content[start : start + draw.choice((1, 8, 50))]
            content[start:start] = piece * draw.choice((1, 2, 50))
        else:
            del content[start:]
    return bytes(content)


def _json(content: Any, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        stack = [content]
        while stack:
            node = stack.pop()
            inner = (
                node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            )
            for key, value in inner:
                places.append((node, key))
                stack.append(value)
        if not places:
            break
        node, key = draw.choice(places)
        kind = draw.random()
        if kind < 0.6:
            node[key] = copy.deepcopy(draw.choice(ODD))
        elif kind < 0.75:
            del node[key]
        elif kind < 0.85 and isinstance(node, list):
            node.extend(copy.deepcopy(node[key]) for _ in range(draw.choice((1, 20))))
        elif isinstance(node, dict):
            node[draw.choice(["x", "", "é", "bbox", str(key).upper()])] = node.pop(key)
    text = json.dumps(content)
    if draw.random() < 0.02:
        text = text.replace("0.5", "NaN", 1)
    if draw.random() < 0.01:
        text = text.replace("null", "[" * 5000 + "]" * 5000, 1)
    return text.encode()


def spoilt_words(text: str, draw: random.Random) -> str:
    for _ in range(draw.choice((1, 1, 2, 4))):
        words = list(re.finditer(r"[^\s\"'<>=]+", text))
        if not words:
            break
        word = draw.choice(words)
        kind = draw.random()
        new = draw.choice(WORDS) if kind < 0.6 else draw.choice(words)[0] if kind < 0.85 else ""
        text = text[: word.start()] + new + text[word.end() :]
    return text


@functools.cache
def layout(*names: str, suffix: str = "") -> dict[str, bytes]:
    """Return files of a data set, or folders of it, by name."""
    files: dict[str, bytes] = {}
    for name in names:
        path = LAYOUTS / name
        for file in sorted(path.rglob(f"*{suffix}")) if path.is_dir() else [path]:
            if file.is_file():
                files[str(file.relative_to(LAYOUTS))] = file.read_bytes()
    return files


TRUTH = {
    "images": [
        {"id": 1, "file_name": "a.jpg", "width": 200, "height": 100},
        {"id": 2, "file_name": "b.c.jpg", "width": 40, "height": 30},
        {"id": 3, "file_name": "d.png", "width": 64, "height": 64},
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 100, 50], "area": 5000, "iscrowd": 0},
        {"id": 2, "image_id": 1, "category_id": 2, "bbox": [30.5, 40, 20, 20], "area": 400, "iscrowd": 0},
    ],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
}
FOUND = b"image,class,score,xmin,ymin,xmax,ymax\na.jpg,cat,0.9,10,20,110,70\na.jpg,dog,0.5,30,40,50,60\n"
"""Detections, and ground truth for them, that are right."""

Seed = tuple[str, dict[str, bytes], dict[str, bytes], str, str]
"""A path, its files, files beside them, and what is ground truth and what detections where it is the other."""


@functools.cache
def _seeds(name: str) -> list[Seed]:
    """Return the data sets of a format."""
    seeds: list[Seed] = []
    beside = {"gt.json": json.dumps(TRUTH).encode(), "dt.csv": FOUND}
    for kind, (path, contents) in FORMATS.items():
        if kind.split()[0] == name:
            files = {
                file: text.encode() if isinstance(text, str) else text for file, text in contents.items()
            }
            seeds.append((path, files, beside, "gt.json", "dt.csv"))
    for kind, (path, saved) in FILES.items():
        if kind.split()[0] == name:
            files = {file: json.dumps(content).encode() for file, content in saved.items()}
            seeds.append((path, files, beside, "gt.json", "dt.csv"))
    path = {
        "cvat": "cvat/annotations.xml",
        "labelme": "labelme",
        "labelstudio": "labelstudio/tasks.json",
        "text": "text/ground-truth",
    }.get(name)
    if path is not None:
        others = layout("coco/instances.json", "csv/detections.csv")
        seeds.append((path, layout(path), others, "coco/instances.json", "csv/detections.csv"))
    if name == "text":
        path = "text/detection-results"
        seeds.append((path, layout(path), others, "coco/instances.json", "csv/detections.csv"))
    return seeds


WITH_SCORES = ("cvat", "labelstudio", "datumaro", "bdd", "text", "sagemaker", "fiftyone", "vertex")
"""Formats that may hold detections."""
DETECTIONS_ONLY = {kind.split()[0] for kind in FILES}


def _make(rng: random.Random, name: str) -> Mutant:
    path, files, beside, truth, found = rng.choice(_seeds(name))
    files = dict(files)
    steps = rng.choice([1, 1, 1, 2])
    for _ in range(steps):
        chosen = rng.choice(list(files))
        files[chosen] = spoilt_file(files[chosen], chosen, rng)
    share = 0.95 if name in DETECTIONS_ONLY else 0.4 if name in WITH_SCORES else 0.05
    of_results = rng.random() < share or path.endswith("results")
    given = ("--dt", path) if of_results else ("--gt", path)
    if rng.random() < 0.4:
        given += ("--dt-format" if of_results else "--format", name)
    if name == "text" and rng.random() < 0.9:
        given += ("--dt-box-format" if of_results else "--gt-box-format", "xyxy")
    other = ("--gt", truth) if of_results else ("--dt", found)
    arguments = commands(rng, other, given) if of_results else commands(rng, given, other)
    return Mutant({**beside, **files}, arguments, steps, compare=False)


READERS = {
    name: Reader(functools.partial(_make, name=name), None, 0.3)
    for name in dict.fromkeys(kind.split()[0] for kind in (*FORMATS, *FILES))
}
