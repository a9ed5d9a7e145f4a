"""COCO JSON: ground truth and results, for boxes, masks and keypoints."""

from __future__ import annotations

import copy
import functools
import random
from pathlib import Path
from typing import Any

from attack.engine import hostile, trees
from attack.engine.acceptance import KINDS, RefusedError, cells_of, compare_coco, metrics_of, read_json
from attack.engine.hostile import Raw
from attack.engine.mutant import Judged, Mutant, Reader
from support import instances

__all__ = ["READERS", "commands", "seeds"]

Record = dict[str, Any]
Pair = tuple[Any, Any]
INPUT = ("--gt", "gt.json", "--dt", "dt.json", "--workers", "1")


def _box_case(seed: int) -> Pair:
    """Make a few boxes in a row: ties, crowds, several classes, detections beside the objects."""
    rng = random.Random(seed)
    images = range(1, rng.randint(2, 4))
    side = rng.choice([6, 10, 40, 100])

    def box() -> list[float]:
        x, y = (rng.randrange(5) * side // 5 for _ in range(2))
        return [x, y, side, side if rng.random() < 0.7 else side * 2]

    annotations: list[Record] = []
    results: list[Record] = []
    for image in images:
        for _ in range(rng.randint(1, 3)):
            one, label = box(), rng.randint(1, 2)
            area, crowd = one[2] * one[3], int(rng.random() < 0.15)
            row = {"id": len(annotations) + 1, "image_id": image, "category_id": label, "bbox": one}
            annotations.append({**row, "area": area, "iscrowd": crowd})
            if rng.random() < 0.8:
                moved = [one[0] + rng.choice([0, 0, 1]), *one[1:]]
                score = rng.randint(1, 8) / 8
                results.append({"image_id": image, "category_id": label, "bbox": moved, "score": score})
        results.append({"image_id": image, "category_id": 1, "bbox": box(), "score": rng.randint(1, 8) / 8})
    listed = [{"id": image, "file_name": f"{image}.jpg", "width": 120, "height": 110} for image in images]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    return {"images": listed, "annotations": annotations, "categories": categories}, results


MAKERS = {"coco": _box_case, "coco-segm": instances.mask_case, "coco-keypoints": instances.keypoint_case}


@functools.lru_cache(maxsize=200)
def _seed(protocol: str, number: int) -> Pair:
    return MAKERS[protocol](number)


def seeds(protocol: str, rng: random.Random) -> Pair:
    """Return a good ground truth and good results, which the caller may change."""
    return copy.deepcopy(_seed(protocol, rng.randrange(40)))


# ---------------------------------------------------------------- what only such data can have wrong


def _relabel(truth: Any, results: Any, rng: random.Random) -> None:
    """Give images, classes or annotations other ids, everywhere or on one side."""
    base = rng.choice([0, -1, -5, 2**31, 2**53 - 2, 2**63 - 4, 2**64])
    ways = [
        lambda n: n - 1,
        lambda n: base + n,
        str,
        lambda n: f"{n:06d}",
        lambda n: Raw(f"{n}.0"),
        lambda n: str(n) if n % 2 else n,
        lambda n: 1,
        lambda n: f"{n}.jpg",
        lambda n: n + 0.5,
    ]
    way = rng.choice(ways)
    key, name = rng.choice([("image_id", "images"), ("category_id", "categories"), ("", "annotations")])
    sides = rng.choice([(1, 1, 1), (1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    for record in truth[name] if sides[0] or not key else ():
        record["id"] = way(record["id"])
    for record in truth["annotations"] if key and sides[1] else ():
        record[key] = way(record[key])
    for record in results if key and sides[2] else ():
        record[key] = way(record[key])


def _unlisted(truth: Any, results: Any, rng: random.Random) -> None:
    del truth[rng.choice(["images", "categories"])][rng.randrange(2) :]


def _repeated(truth: Any, results: Any, rng: random.Random) -> None:
    records = truth[rng.choice(["annotations", "annotations", "images", "categories"])]
    records[-1]["id"] = records[0]["id"]


def _size(truth: Any, results: Any, rng: random.Random) -> None:
    side = rng.choice([2, 3, 2, 3, 0, 1])
    value = hostile.number(rng)
    chosen = [rng.choice(truth["annotations"])] if rng.random() < 0.6 else []
    chosen += [rng.choice(results)] if rng.random() < 0.6 else []
    for record in chosen:
        record["bbox"][side] = value


def _tiny(truth: Any, results: Any, rng: random.Random) -> None:
    """Make every box so small or so large that products underflow or overflow."""
    scale = rng.choice([1e-9, 1e-100, 1e-160, 1e-165, 1e-200, 1e-310, 1e50, 1e98, 1e5, 2.0**-60])
    for record in [*truth["annotations"], *results]:
        record["bbox"] = [value * scale for value in record["bbox"]]
        if rng.random() < 0.5:
            record["area"] = record["bbox"][2] * record["bbox"][3]


def _area(truth: Any, results: Any, rng: random.Random) -> None:
    value = rng.choice([0, -1, 1024, 1024.0000001, 9216, 1e10, 1e10 + 1, 1e-300, None, hostile.number(rng)])
    for record in truth["annotations"]:
        if rng.random() < 0.5:
            record["area"] = value


def _crowd(truth: Any, results: Any, rng: random.Random) -> None:
    for record in truth["annotations"]:
        if rng.random() < 0.5:
            key = rng.choice(["iscrowd", "iscrowd", "ignore", "difficult"])
            record[key] = rng.choice([0, 1, 1, 2, True, None, -1, 0.5, Raw("1.0"), "1"])


def _scores(truth: Any, results: Any, rng: random.Random) -> None:
    values = [0.5, 0, -1, 1, 1e-320, 1e308, -1e308, -0.0, 2, 0.1 + 0.2, 0.3]
    chosen = rng.sample(values, 2)
    for record in results:
        record["score"] = rng.choice(chosen)


def _image_size(truth: Any, results: Any, rng: random.Random) -> None:
    sizes = [0, 0.5, 0.999, 1, -1, 1.5, 2, 1e6, 1_000_001, 300_000, 30_000, 1e9, None, 2**31, 2**63]
    for image in truth["images"]:
        for side in rng.choice([("width",), ("height",), ("width", "height")]):
            image[side] = rng.choice(sizes)
    if rng.random() < 0.4:
        _outlines(truth, results, rng)
        rng.choice(truth["images"])[rng.choice(["width", "height"])] = rng.choice([0, 0, 0.5, 1, 2.5])


def _polygon(truth: Any, results: Any, rng: random.Random) -> None:
    record = rng.choice([*truth["annotations"], *results])
    far = rng.choice([10, 100, 1e3, 1e5, 999_999, 1e6, 1e6 + 1, -1e6, 1e9])
    corners = rng.choice([0, 1, 2, 3, 4, 5, 50, 430])
    points: list[Any] = [rng.choice([0, far, far / 2, rng.uniform(0, 20)]) for _ in range(2 * corners)]
    if rng.random() < 0.2:
        points.append(hostile.scalar(rng))
    record["segmentation"] = rng.choice([[points], [points, points], points, [[]], [points, []]])


def _outlines(truth: Any, results: Any, rng: random.Random) -> None:
    """Give detections the polygons of objects, or rectangles."""
    for record in results:
        source = rng.choice(truth["annotations"])
        x, y, width, height = source["bbox"]
        rectangle = [[x, y, x + width, y, x + width, y + height, x, y + height]]
        if not isinstance(source["segmentation"], list) or rng.random() < 0.2:
            source["segmentation"] = rectangle
        record["segmentation"] = copy.deepcopy(source["segmentation"])
        record["image_id"], record["category_id"] = source["image_id"], source["category_id"]


def _code(truth: Any, results: Any, rng: random.Random) -> None:
    record = rng.choice([*truth["annotations"], *results])
    letters = "".join(chr(rng.randrange(40, 120)) for _ in range(rng.randrange(12)))
    side = rng.choice([0, 1, 8, 10, 255, 65_536, 300_000, 2**31, 2**32, -1, 2**63])
    other = rng.choice([0, 1, 8, 10, 300_000, 2**31, 2**32])
    counts = rng.choice(
        [
            letters,
            [0],
            [],
            [side * other],
            [2**31, 2**31],
            [-1, 81],
            [2**32, 1],
            [rng.randrange(100)] * 9,
            "",
            "0",
        ]
    )
    size = rng.choice([[side, other], [8, 10], [side], [8.5, 10], [8, 10, 3], "8 10", None])
    record["segmentation"] = rng.choice(
        [{"size": size, "counts": counts}, {"counts": counts}, {"size": size}]
    )
    old = record.get("segmentation")
    if isinstance(old, dict) and rng.random() < 0.2:
        old["counts"] = letters


def _no_part(truth: Any, results: Any, rng: random.Random) -> None:
    """Take a column from some records of one side, or put an empty one there."""
    records = rng.choice([truth["annotations"], results])
    key = rng.choice(["segmentation", "keypoints", "bbox", "area", "iscrowd", "num_keypoints", "id", "score"])
    for number, record in enumerate(records):
        if rng.random() < 0.7 or number == 0:
            if rng.random() < 0.6:
                record.pop(key, None)
            else:
                record[key] = rng.choice([[], None, {}, ""])


def _keypoints(truth: Any, results: Any, rng: random.Random) -> None:
    for record in [*truth["annotations"], *results]:
        if "keypoints" in record and rng.random() < 0.6:
            points = record["keypoints"]
            points[rng.randrange(len(points))] = hostile.number(rng)
            if rng.random() < 0.2:
                del points[rng.choice([-1, -3, 3]) :]
        if "num_keypoints" in record and rng.random() < 0.4:
            record["num_keypoints"] = rng.choice([0, -1, 1, 17, 2**31, 2**63 - 1, 2**63, 1.5, Raw("3.0")])


def _many(truth: Any, results: Any, rng: random.Random) -> None:
    if len(results) < 100:
        results[:] = copy.deepcopy((results * rng.choice([5, 20, 101]))[:2000])


def _swap(truth: Any, results: Any, rng: random.Random) -> None:
    """Copy a part of one file into the other."""
    source, target = rng.choice(truth["annotations"]), rng.choice(results)
    if rng.random() < 0.5:
        source, target = target, source
    target[rng.choice(list(target))] = copy.deepcopy(rng.choice(list(source.values())))


def _as_object(truth: Any, results: Any, rng: random.Random) -> Any:
    more = {"images": truth["images"]} if rng.random() < 0.3 else {}
    return {
        "annotations": results,
        **more,
        **({"categories": truth["categories"]} if rng.random() < 0.3 else {}),
    }


def _mild(truth: Any, results: Any, rng: random.Random) -> None:
    """Change what is legal to change: order, scores, places, classes."""
    for records in (truth["annotations"], results, truth["images"], truth["categories"]):
        if rng.random() < 0.4:
            rng.shuffle(records)
    for record in [*truth["annotations"], *results]:
        if rng.random() < 0.3:
            record["category_id"] = rng.choice(truth["categories"])["id"]
        if rng.random() < 0.3 and "bbox" in record:
            record["bbox"][rng.randrange(4)] = rng.choice([0, 1, 2.5, 1e-3, 7, 32, 96, 1 / 3])


OWN = [
    _mild,
    _mild,
    _relabel,
    _relabel,
    _unlisted,
    _repeated,
    _size,
    _tiny,
    _area,
    _crowd,
    _scores,
    _no_part,
    _many,
    _swap,
]
MASKS = [*OWN, _image_size, _image_size, _outlines, _outlines, _outlines, _polygon, _polygon, _code, _code]
POINTS = [*OWN, _keypoints, _keypoints, _keypoints]


def _names(truth: Any, results: Any, rng: random.Random) -> None:
    """Give classes and images names that mean something to a terminal, a spreadsheet or a page."""
    for record in truth["categories"]:
        record["name"] = hostile.text(rng)
    for record in truth["images"]:
        record["file_name"] = hostile.text(rng)


LEGAL = [_mild, _mild, _names, _relabel, _area, _crowd, _scores, _tiny, _many, _repeated]
"""What mostly leaves data that can be scored: silent differences show only there."""

WAYS = {"coco": OWN, "coco-segm": MASKS, "coco-keypoints": POINTS}


def commands(protocol: str, rng: random.Random) -> tuple[str, ...]:
    """Return a command that reads both files; mostly the one that an oracle can judge."""
    choice = ("--protocol", protocol)
    if rng.random() < 0.7:
        return ("evaluate", *INPUT, *choice, "--output", "json")
    boundary = [("evaluate", *INPUT, "--iou-type", "boundary")] if protocol == "coco-segm" else []
    return rng.choice(
        [
            *boundary,
            ("evaluate", *INPUT, *choice, "--per-class"),
            ("evaluate", *INPUT, *choice, "--output", "csv", "--verify"),
            ("validate", *INPUT[:4], "--protocol", protocol),
            ("validate", *INPUT[:4], "--protocol", protocol, "--output", "json"),
            ("nms", "--dt", "dt.json", "--iou-threshold", "0.5", "--output", "out.json"),
            ("nms", "--dt", "dt.json", "--method", "soft-gaussian", "--output", "out.json"),
            ("fuse", "dt.json", "dt.json", "--output", "out.json"),
            ("convert", "--gt", "gt.json", "--output", "out.npz"),
            ("convert", "--gt", "gt.json", "--dt", "dt.json", "--output", "out.npz"),
            ("confusion", *INPUT, *choice),
            ("confusion", *INPUT, *choice, "--output", "csv"),
            ("confusion", *INPUT, *choice, "--output", "markdown"),
            ("suspects", *INPUT, *choice, "--output", "csv"),
            (
                "evaluate",
                *INPUT,
                *choice,
                "--per-class",
                "--output",
                rng.choice(["csv", "latex", "markdown"]),
            ),
            ("errors", *INPUT, *choice),
            ("operating-points", *INPUT, *choice),
            ("operating-points", *INPUT, *choice, "--guarantee", rng.choice(["recall=.2", "precision=.1"])),
            ("operating-points", *INPUT, *choice, "--guarantee", "fppi=2", "--at-most", "9"),
            ("calibration", *INPUT, *choice),
            ("lrp", *INPUT, *choice),
            ("slices", *INPUT, *choice, "--by", rng.choice(["size", "aspect_ratio", "crowdedness"])),
            ("ties", *INPUT, *choice),
            ("suspects", *INPUT, *choice, "--score-threshold", "0.2"),
            ("bootstrap", *INPUT, *choice),
            ("report", *INPUT, *choice, "--report", "out", "--resamples", "0"),
            ("explain", *INPUT, *choice, "--number", "0.3"),
            ("sweep", *INPUT, *choice, "--iou-threshold", ".5"),
            ("check", *INPUT, *choice, "--min", "AP=0.3"),
        ]
    )


def _make(rng: random.Random, protocol: str) -> Mutant:
    truth, results = seeds(protocol, rng)
    steps = rng.choice([1, 1, 1, 2, 2, 3, 5])
    raw = 0
    legal = rng.random() < 0.35
    own = LEGAL + [_outlines] * (protocol == "coco-segm") if legal else WAYS[protocol]
    for _ in range(steps):
        way = rng.random()
        try:
            if way < 0.5 or legal:
                rng.choice(own)(truth, results, rng)
            elif way < 0.7:
                truth = trees.spoilt(truth, rng)
            elif way < 0.9:
                results = trees.spoilt(results, rng)
            elif way < 0.92:
                results = _as_object(truth, results, rng)
            else:
                raw += 1
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):  # an earlier step took it away
            continue
    files = {"gt.json": trees.as_json(truth, rng), "dt.json": trees.as_json(results, rng)}
    for _ in range(raw):
        name = rng.choice(["gt.json", "dt.json"])
        files[name] = hostile.damaged(files[name], rng, [*files.values()])
    arguments = commands(protocol, rng)
    compare = arguments[0] == "evaluate" and "json" in arguments
    return Mutant(files, arguments, steps, compare)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Ask pycocotools."""
    protocol = mutant.arguments[mutant.arguments.index("--protocol") + 1]
    try:
        truth, results = read_json(folder / "gt.json"), read_json(folder / "dt.json")
    except RefusedError as error:
        return Judged("laxer", str(error))
    cells = functools.partial(cells_of, folder / "gt.json", folder / "dt.json", protocol)
    return compare_coco(truth, results, metrics_of(output), kind=KINDS[protocol], cells=cells)


READERS = {
    name: Reader(functools.partial(_make, protocol=protocol), oracle, weight)
    for name, protocol, weight in (
        ("coco-boxes", "coco", 4.0),
        ("coco-masks", "coco-segm", 3.0),
        ("coco-keypoints", "coco-keypoints", 2.0),
    )
}
