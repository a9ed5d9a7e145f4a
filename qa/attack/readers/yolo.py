"""YOLO: data.yaml and darknet's obj.data, lists of images, labels, predictions as text and as JSON."""

from __future__ import annotations

import functools
import random
import re

from attack.engine import hostile
from attack.engine.commands import commands
from attack.engine.mutant import Mutant, Reader
from attack.readers.annotations import layout, spoilt_file, spoilt_words
from attack.readers.voc import NUMBERS, spoilt_lines

__all__ = ["READERS", "yaml_mutant"]

NAMES = b"circle\nsquare\ntriangle\nstar\n"
FOUND = ("--dt", "csv/detections.csv")
TRUTH = ("--gt", "coco/instances.json")
LISTS = ("--dt-classes", "classes.txt", "--image-sizes", "csv/objects.csv")
LABELS = (
    "0 0.5 0.5 0.2 0.2",
    "1 0.1 0.1 0.2 0.1 0.3 0.3 0.1 0.3",
    "2 .5 .5 1 1 .5 .5 2 .1 .1 0",
    "3 1 1 2 2",
)
"""A box, an outline, keypoints, a box that reaches out."""
VALUES = [
    *(
        "[images/val, images/val]",
        "null",
        "~",
        "1",
        "[]",
        "{}",
        "../images/val",
        "/etc",
        "/dev/null",
        "..",
        ".",
    ),
    *(
        "images/none",
        "images",
        "labels/val",
        "list.txt",
        "*a",
        "&a images/val",
        "!!python/object:os.x {}",
        "'",
    ),
    *(
        "!!binary aGk=",
        "2001-01-01",
        "0x10",
        "1:30",
        ".nan",
        ".inf",
        "yes",
        "|",
        ">-",
        "[[a]]",
        "{1: a, 0: b}",
    ),
    *(
        "{0: a, 2: b}",
        "[a, a]",
        "[a, null]",
        "[17, 3]",
        "[17]",
        "17",
        "-1",
        "[1, 2",
        "? a",
        "- a",
        "%TAG",
        "\t",
    ),
]


def yaml_mutant(text: str, rng: random.Random) -> bytes:
    """Spoil a data.yaml: values, keys, indents, anchors."""
    lines = text.splitlines()
    row, way = rng.randrange(len(lines) or 1), rng.randrange(9)
    if way < 3:
        key = rng.choice(["path", "train", "val", "test", "names", "nc", "kpt_shape", "roboflow", "download"])
        lines = [line for line in lines if not line.startswith(f"{key}:")]
        lines.append(f"{key}: {rng.choice([*VALUES, *VALUES, hostile.text(rng)])}")
    elif way == 3 and lines:
        lines[row] = rng.choice(["  ", "    ", "\t", "- ", ""]) + lines[row].lstrip()
    elif way == 4:
        lines[row : row + 1] = lines[row : row + 1] * rng.choice([0, 2, 2000])
    elif way == 5:
        depth = rng.choice([9, 11, 40])
        layers = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, depth)]
        lines = ["a0: &a0 [x, x]", *layers, *lines, f"names: *a{depth - 1}"]
    elif way == 6:
        lines.append("x: " + rng.choice(["[", "{a: ", "- "]) * rng.choice([50, 5000]))
    elif way == 7:
        return hostile.damaged("\n".join(lines).encode("utf-8", "surrogatepass"), rng)
    else:
        return spoilt_words(text, rng).encode("utf-8", "surrogatepass")
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _lines(content: bytes, rng: random.Random) -> bytes:
    words = [*NUMBERS, *hostile.TEXTS, "0", "1", "3", "4", "0.5", "1.0", "1.000001", "-1e-9", "320", "2"]
    spoilt = spoilt_lines(content.decode("utf-8", "replace"), rng, words)
    return spoilt if isinstance(spoilt, bytes) else spoilt.encode("utf-8", "surrogatepass")


@functools.cache
def _set() -> dict[str, bytes]:
    beside = layout("coco/instances.json", "csv/detections.csv", "csv/objects.csv")
    return {**layout("yolo/images", "yolo/labels", "yolo/data.yaml"), **beside}


def _truth(rng: random.Random) -> Mutant:
    """A data set: its description, a list of its images, or its labels are spoilt."""
    files, gt = dict(_set()), rng.choice(["yolo", "yolo/data.yaml", "yolo/labels/val", "yolo/images/val"])
    kind = rng.choice(["yaml", "yaml", "labels", "labels", "list", "obj.data", "image"])
    labels = [name for name in files if name.startswith("yolo/labels")]
    images = [name.removeprefix("yolo/") for name in files if name.endswith(".png")]
    steps = rng.choice([1, 1, 1, 2, 3])
    if kind in ("list", "obj.data"):
        del files["yolo/data.yaml"]
        files["yolo/list.txt"] = "".join(f"{name}\n" for name in images).encode()
        files["yolo/obj.names"] = NAMES
        files["yolo/obj.data"] = b"classes = 4\ntrain = list.txt\nvalid = list.txt\nnames = obj.names\n"
        gt = rng.choice(["yolo/obj.data", "yolo/list.txt"] if kind == "list" else ["yolo", "yolo/obj.data"])
    for _ in range(steps):
        if kind == "yaml":
            text = files["yolo/data.yaml"].decode("utf-8", "replace")
            files["yolo/data.yaml"] = yaml_mutant(text, rng)
            gt = rng.choice(["yolo", "yolo/data.yaml"])
        elif kind == "labels":
            name = rng.choice(labels)
            if rng.random() < 0.2:
                files[name] += rng.choice(LABELS).encode() + b"\n"
            files[name] = _lines(files[name], rng)
            if rng.random() < 0.05:
                files[re.sub(r"img_\d+", rng.choice(["1", "x", "img_999", "a b"]), name)] = files.pop(name)
                labels.remove(name)
        elif kind == "image":
            name = "yolo/" + rng.choice(images)
            files[name] = hostile.damaged(files[name][:64], rng)
        elif kind == "list":
            files["yolo/list.txt"] = _lines(files["yolo/list.txt"], rng)
        else:
            name = rng.choice(["yolo/obj.data", "yolo/obj.names"])
            files[name] = spoilt_file(files[name], name, rng)
    given = ("--gt", gt, *rng.choice([(), (), ("--format", "yolo"), ("--image-set", "val")]))
    return Mutant(files, commands(rng, given, FOUND), steps, compare=False)


def _predictions(rng: random.Random, darknet: bool) -> Mutant:
    """A folder of predictions: confidence last, or second as darknet has it."""
    files = {**layout("coco/instances.json", "csv/objects.csv"), "classes.txt": NAMES}
    folder = {name: content for name, content in layout("yolo/runs").items() if name.endswith(".txt")}
    if darknet:
        for name, content in folder.items():
            rows = [line.split() for line in content.decode().splitlines()]
            folder[name] = "".join(f"{a} {s} {' '.join(box)}\n" for a, *box, s in rows).encode()
    steps = rng.choice([1, 1, 1, 2, 3])
    for _ in range(steps):
        name = rng.choice(list(folder))
        folder[name] = _lines(folder[name], rng)
    option = rng.choice([(), (), ("--dt-format", "darknet" if darknet else "yolo")])
    found = ("--dt", rng.choice(["yolo/runs/val/labels", "yolo/runs/val"]), *option)
    found += LISTS if rng.random() < 0.9 else LISTS[2:]
    return Mutant({**files, **folder}, commands(rng, TRUTH, found), steps, compare=False)


def _json(rng: random.Random) -> Mutant:
    """Predictions of validation, ``predictions.json``."""
    path = "yolo/runs/val/predictions.json"
    files = {**layout("coco/instances.json", path), "classes.txt": NAMES}
    steps = rng.choice([1, 1, 2])
    for _ in range(steps):
        files[path] = spoilt_file(files[path], path, rng)
    more = ("--class-map", rng.choice(["one-based", "auto", "zero-based"]))
    found = ("--dt", path, *rng.choice([LISTS[:2], ()]), *more)
    return Mutant(files, commands(rng, TRUTH, found), steps, compare=False)


READERS = {
    "yolo-truth": Reader(_truth, None, 1.5),
    "yolo-predictions": Reader(functools.partial(_predictions, darknet=False), None, 0.7),
    "darknet": Reader(functools.partial(_predictions, darknet=True), None, 0.4),
    "yolo-json": Reader(_json, None, 0.3),
}
