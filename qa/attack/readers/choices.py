"""Files beside the data that say what it leaves out: class maps, class lists, tables of image sizes."""

from __future__ import annotations

import random
import re
from pathlib import Path

from attack.engine import hostile, trees
from attack.engine.acceptance import compare_coco, metrics_of, read_json
from attack.engine.commands import commands
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import coco, yolo
from attack.readers.annotations import layout
from attack.readers.lists import WORDS
from attack.readers.voc import NUMBERS, spoilt_lines

__all__ = ["READERS"]

WAYS_TO_MAP = [
    "1,1\n2,2\n",
    "1,2\n2,1\n",
    "cat,dog\ndog,cat\n",
    "# a map\n1,2\n2,\n",
    "1,cat\n2,cat\n",
    '"1", "2"\n',
]


def _spoilt(text: str, rng: random.Random, words: list[str], comma: bool) -> bytes:
    swap = str.maketrans(", ", " \0") if comma else {}
    spoilt = spoilt_lines(text.translate(swap), rng, words)
    if isinstance(spoilt, bytes):
        return spoilt
    spoilt = spoilt.replace(" ", ",").replace("\0", " ") if comma else spoilt
    return spoilt.encode("utf-8", "surrogatepass")


def _map(rng: random.Random) -> Mutant:
    """A map of classes, by ids or names."""
    truth, results = coco.seeds("coco", rng)
    text, steps = rng.choice(WAYS_TO_MAP).encode(), rng.choice([0, 1, 1, 2])
    for _ in range(steps):
        text = _spoilt(
            text.decode("utf-8", "replace"), rng, [*WORDS, "1", "2", "cat", "", *hostile.TEXTS], True
        )
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results), "map.csv": text}
    if rng.random() < 0.2:
        remap = ("convert", "--gt", "gt.json", "--remap-classes", "map.csv", "--output", "out.json")
        return Mutant(files, remap, steps, compare=False)
    arguments = ("evaluate", *coco.INPUT, "--class-map", "map.csv", "--output", "json")
    return Mutant(files, arguments, steps)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Read the map slowly and strictly, and ask pycocotools for the classes that it gives."""
    truth, results = read_json(folder / "gt.json"), read_json(folder / "dt.json")
    known = {category["name"]: category["id"] for category in truth["categories"]}
    numbers = {str(identifier): identifier for identifier in known.values()}  # results have no names
    try:
        text = mutant.files["map.csv"].decode("utf-8-sig")
    except UnicodeDecodeError:
        return Judged("laxer", "a map that is not UTF-8")
    if '"' in text:
        return Judged("unknown", "a map with quotes")
    pairs: dict[int, int | None] = {}
    for line in text.splitlines():
        if not line.strip() or line.strip().startswith("#"):
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 2 or not fields[0]:
            return Judged("laxer", f"a line of a map: {line[:20]!r}")
        source, target = numbers.get(_plain(fields[0])), (known | numbers).get(_plain(fields[1]))
        if fields[1] and target is None:
            return Judged("unknown", "a map to what is not listed")
        if source is not None:
            pairs[source] = target
    mapped = [
        {**record, "category_id": pairs.get(record["category_id"], record["category_id"])}
        for record in results
    ]
    return compare_coco(truth, [one for one in mapped if one["category_id"] is not None], metrics_of(output))


def _plain(field: str) -> str:
    return str(int(field)) if re.fullmatch(r"-?[0-9]{1,18}", field) else field


def _list(rng: random.Random) -> Mutant:
    """The names of class numbers, a line each or a data.yaml."""
    path = rng.choice(["classes.txt", "classes.txt", "obj.names", "names.yaml"])
    text, steps = yolo.NAMES, rng.choice([1, 1, 2])
    if path == "names.yaml":
        text = layout("yolo/data.yaml")["yolo/data.yaml"]
    for _ in range(steps):
        plain = text.decode("utf-8", "replace")
        if path == "names.yaml":
            text = yolo.yaml_mutant(plain, rng)
        else:
            text = _spoilt(plain, rng, [*hostile.TEXTS, "star", "circle", "a b"], False)
    files = {
        **layout("coco/instances.json", "csv/objects.csv", "csv/detections.csv", "yolo/labels", "yolo/images")
    }
    if rng.random() < 0.5:
        files |= layout("yolo/runs/val/labels")
        found = ("--dt", "yolo/runs/val/labels", "--dt-classes", path, *yolo.LISTS[2:])
        return Mutant({**files, path: text}, commands(rng, yolo.TRUTH, found), steps, compare=False)
    given = ("--gt", "yolo/labels/val", "--gt-classes", path)
    return Mutant({**files, path: text}, commands(rng, given, yolo.FOUND), steps, compare=False)


def _sizes(rng: random.Random) -> Mutant:
    """The width and height of images."""
    rows = [f"img_{number}.png,320,240" for number in (101, 117, 122, 130, 138, 143, 180, 193)]
    text = "\n".join([*rng.choice([["image,width,height"], [], ["file_name,h,w"]]), *rows, ""]).encode()
    steps = rng.choice([1, 1, 2])
    for _ in range(steps):
        text = _spoilt(
            text.decode("utf-8", "replace"), rng, [*NUMBERS, "img_101", "x", "1", "240", '"', '"a'], True
        )
    files = {
        **layout("coco/instances.json", "csv/detections.csv", "yolo/runs/val/labels", "text/ground-truth")
    }
    files |= {"sizes.csv": text, "classes.txt": yolo.NAMES}
    if rng.random() < 0.6:
        found = ("--dt", "yolo/runs/val/labels", *yolo.LISTS[:2], "--image-sizes", "sizes.csv")
        return Mutant(files, commands(rng, yolo.TRUTH, found), steps, compare=False)
    given = ("--gt", "text/ground-truth", "--gt-box-format", rng.choice(["xyxy", "cxcywh"]))
    return Mutant(
        files, commands(rng, (*given, "--image-sizes", "sizes.csv"), yolo.FOUND), steps, compare=False
    )


READERS = {
    "class-maps": Reader(_map, oracle, 0.5),
    "class-lists": Reader(_list, None, 0.4),
    "image-sizes": Reader(_sizes, None, 0.4),
}
