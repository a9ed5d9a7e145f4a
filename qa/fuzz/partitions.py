"""Evaluate made-up Parquet in partitions and at once, and look for a difference.

    python qa/fuzz/partitions.py --cases 1000 --seed 0
    python qa/fuzz/partitions.py --repeat 1234 --keep FOLDER      # one case again, with its files

Every result of partitions must have the bits of ``boxscore.evaluate`` on the same files, or both must refuse
them with one kind of error. A case is its number.
"""

from __future__ import annotations

import argparse
import dataclasses
import decimal
import itertools
import json
import math
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

import boxscore  # noqa: E402
from boxscore.diagnostics import bootstrap_intervals  # noqa: E402
from boxscore.distributed import Part, load_part, merge, scan  # noqa: E402
from boxscore.protocols import load_protocol, protocol_names  # noqa: E402
from boxscore.similarity.registry import similarity_of  # noqa: E402
from support.insides import LocalEngine, distributed_evaluation  # noqa: E402
from support.parted import bits, parts_of, whole  # noqa: E402
from support.quiet import quiet  # noqa: E402
from support.shipped import shipped  # noqa: E402

Rows = list[dict[str, Any]]


@dataclasses.dataclass
class Case:
    """Files, and how they are evaluated."""

    truth: Path
    found: Path
    protocol: str
    options: dict[str, Any]
    rng: np.random.Generator
    about: dict[str, Any]


# ---------------------------------------------------------------- rows


def _ids(kind: str, count: int, rng: np.random.Generator) -> list[Any]:
    numbers = rng.permutation(count * 3)[:count]
    make: dict[str, Callable[[int], Any]] = {
        "plain": lambda n: n,
        "negative": lambda n: n - count,
        "huge": lambda n: 2**63 - 1 - n,
        "above 2**63": lambda n: 2**64 - 1 - n,
        "text": lambda n: f"img_{n}",
        "digits": lambda n: f"{n:0{n % 3 + 1}d}",
        "files": lambda n: f"folder/{n}.jpg",
        "unicode": lambda n: ["é", "e\u0301", "図", "\U0001f600", "z", "Z", "ß"][n % 7] + str(n // 7),
        "whole floats": lambda n: float(n),
        "mixed": lambda n: n if n % 2 else f"{n}",
    }
    return [make[kind](int(n)) for n in numbers]


IDS = (
    "plain",
    "negative",
    "huge",
    "above 2**63",
    "text",
    "digits",
    "files",
    "unicode",
    "whole floats",
    "mixed",
)
BOXES = ("pixels", "pixels", "pixels", "halves", "huge", "denormal", "fractions", "integers", "negative zero")


def _boxes(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Corner and sides."""
    corner = rng.integers(0, 6, (count, 2)) * 8.0
    sides = rng.choice([4.0, 8.0, 10.0, 40.0, 100.0], (count, 2))
    boxes = np.hstack([corner, sides])
    if kind == "halves":
        boxes += rng.integers(0, 8, boxes.shape) / 8
    elif kind == "huge":
        boxes *= float(rng.choice([1e6, 1e100, 1e150, 1e160]))
    elif kind == "denormal":
        boxes *= 5e-324
    elif kind == "fractions":
        boxes /= 160.0
    elif kind == "negative zero":
        boxes[rng.random(boxes.shape) < 0.3] = -0.0
    return boxes


def _drawn(rng: np.random.Generator, kind: str, images: list[Any], classes: list[Any]) -> tuple[Rows, Rows]:
    count = int(rng.choice([0, 1, 5, 20])) if len(images) else 0
    found = int(rng.choice([0, 1, 10, 40, 80])) if len(images) else 0
    skew = rng.random() < 0.3

    def labels(number: int) -> list[Any]:
        at = rng.integers(0, len(classes), number)
        if skew:
            at[rng.random(number) < 0.8] = 0
        return [classes[i] for i in at]

    of = rng.integers(0, max(len(images), 1), count)
    boxes, label = _boxes(kind, count, rng), labels(count)
    truth = [
        {"image": images[i], "label": one, "box": box.tolist()}
        for i, one, box in zip(of, label, boxes, strict=True)
    ]
    near = rng.random(found) < (0.7 if count else 0)
    scores = rng.choice([rng.random(found), rng.integers(0, 6, found) / 5, np.full(found, 0.5)])
    if rng.random() < 0.2:
        scores[rng.random(found) < 0.3] = rng.choice([-0.0, 0.0, 5e-324, 1e300, -1.0])
    other, own = _boxes(kind, found, rng), labels(found)
    results = []
    for row in range(found):
        box, image, one = other[row], images[int(rng.integers(len(images)))], own[row]
        if near[row]:
            like = truth[int(rng.integers(count))]
            image, one = like["image"], like["label"]
            box = np.array(like["box"])
            if rng.random() < 0.5:
                box = box * [1, 1, 1, rng.choice([0.5, 0.75, 1.25])]
        results.append({"image": image, "label": one, "box": box.tolist(), "score": float(scores[row])})
    return truth, results


# ---------------------------------------------------------------- tables


def _ordered(rows: Rows, order: str, rng: np.random.Generator) -> Rows:
    if order == "scattered":
        return [rows[i] for i in rng.permutation(len(rows))]
    place: dict[Any, float] = {}
    for row in rows:
        place.setdefault(row["image"], rng.random() if order == "grouped" else len(place))
    return sorted(rows, key=lambda row: place[row["image"]])


CORNERS = {
    "sides": ("left", "top", "width", "height"),
    "corners": ("x1", "y1", "x2", "y2"),
    "corners and sides": ("x1", "y1", "x2", "y2"),
}


def _cells(row: dict[str, Any], names: dict[str, str], form: str) -> dict[str, Any]:
    cell = {names[key]: value for key, value in row.items() if key not in ("box", "image") and key in names}
    cell |= {key: value for key, value in row.items() if key not in names and key != "box"}
    box = row["box"]
    if box is not None and form in ("corners", "corners and sides", "xyxy"):
        box = [box[0], box[1], box[0] + box[2], box[1] + box[3]]
    if form in CORNERS:
        cell |= dict(zip(CORNERS[form], box or [None] * 4, strict=True))
        if form == "corners and sides":
            cell |= dict(zip(("width", "height"), row["box"][2:] if box else (None, None), strict=True))
    else:
        cell[form] = box
    return cell


def _one(rng: np.random.Generator, *choices: Any) -> Any:
    """Draw one of values of any type."""
    return choices[int(rng.integers(len(choices)))]


def _column(pa: Any, name: str, values: list[Any], rng: np.random.Generator, style: dict[str, Any]) -> Any:
    """Make a column of one of the types that its values may have."""
    kind = style.get(name)
    try:
        plain = pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError):
        try:
            plain = pa.array(values, pa.uint64())
        except (pa.ArrowException, OverflowError, TypeError):
            plain = pa.array([None if one is None else str(one) for one in values])
    try:
        if kind == "decimal":
            return pa.array(
                [None if one is None else decimal.Decimal(repr(one)) for one in values],
                pa.decimal128(30, 6),
            )
        if kind == "dictionary":
            return plain if pa.types.is_null(plain.type) else plain.dictionary_encode()
        return plain if kind is None else plain.cast(pa.type_for_alias(kind))
    except (pa.ArrowException, decimal.DecimalException, ValueError, TypeError):
        return plain


def _table(
    pa: Any,
    rows: Rows,
    layout: str,
    form: str,
    style: dict[str, Any],
    rng: np.random.Generator,
    results: bool,
) -> Any:
    names = style["names"]
    keys = dict.fromkeys(key for row in rows for key in _cells(row, names, form))
    image = names["image"]
    if layout == "flat":
        cells = [{image: row["image"], **_cells(row, names, form)} for row in rows]
    else:
        cells = []
        for one in dict.fromkeys(row["image"] for row in rows):
            own = [_cells(row, names, form) for row in rows if row["image"] == one and row["box"] is not None]
            own = [{key: cell.get(key) for key in keys if key != "image"} for cell in own]
            if layout == "lists":
                cells.append(
                    {image: one, **{key: [cell[key] for cell in own] for key in keys if key != "image"}}
                )
            else:
                cells.append({image: one, "objects": own})
    columns = {}
    wanted = dict.fromkeys(key for cell in cells for key in cell)
    wanted.pop("image", None) if image != "image" else None
    for key in rng.permutation(list(wanted)).tolist() if style["shuffled"] else wanted:
        column = _column(pa, key, [cell.get(key) for cell in cells], rng, style)
        columns[key] = column
    if not {"score", names["label"], "objects"} & set(columns):
        types = {image: pa.int64(), names["label"]: pa.int64(), "score": pa.float64()}
        types |= {name: pa.float64() for name in CORNERS.get(form, ())}
        if form not in CORNERS:
            types[form] = pa.list_(pa.float64())
        if not results:
            types.pop("score")
        columns = {name: pa.array([], kind) for name, kind in types.items()}
    return pa.table(columns)


def _write(
    pa: Any, pq: Any, rows: Rows, path: Path, layout: str, form: str, rng: np.random.Generator, results: bool
) -> dict[str, Any]:
    """Write a file or a folder of them."""
    files = int(rng.choice([1, 1, 2, 4]))
    names = {
        "image": str(rng.choice(["image_id", "image", "filename"])),
        "label": str(rng.choice(["category_id", "label"])),
        "crowd": "iscrowd",
        "score": "score",
    }
    kinds: list[Any] = [None, None, None, "float", "halffloat", "int32", "int16", "decimal"]
    style: dict[str, Any] = {"names": names, "shuffled": False}
    numbers = rng.choice(kinds)
    for name in ("left", "top", "width", "height", "x1", "y1", "x2", "y2"):
        style[name] = numbers if rng.random() < 0.9 else None
    of_ids: list[Any] = [None, None, None, "dictionary", "int32", "uint8", "uint64", "double", "float"]
    style[names["image"]], style[names["label"]] = rng.choice(of_ids), rng.choice(of_ids)
    style["score"] = _one(rng, None, None, "float", "halffloat")
    style["iscrowd"] = _one(rng, None, "bool", "uint8", "double")
    about = {"layout": layout, "form": form, "files": files, "style": {k: v for k, v in style.items() if v}}
    if files == 1:
        _save(pa, pq, _table(pa, rows, layout, form, style, rng, results), path, rng)
        return about
    path.mkdir()
    bounds = np.sort(rng.integers(0, len(rows) + 1, files - 1)).tolist()
    whole_table = _table(pa, rows, layout, form, style, rng, results)
    of_one_type = rng.random() < 0.7 and layout == "flat"
    for number, (low, high) in enumerate(itertools.pairwise([0, *bounds, len(rows)])):
        if of_one_type or low == high:
            table = whole_table.slice(low, high - low)
            if rng.random() < 0.3:
                table = table.select(rng.permutation(table.column_names).tolist())
            _save(pa, pq, table, path / f"part-{number}.parquet", rng)
            continue
        style["shuffled"] = rng.random() < 0.4
        if rng.random() < 0.1:
            style[names["image"]] = rng.choice(of_ids)
        if rng.random() < 0.1:
            style["score"] = _one(rng, None, "float")
        table = _table(pa, rows[low:high], layout, form, style, rng, results)
        if rng.random() < 0.1:
            table = table.append_column("extra", pa.array([math.nan] * len(table)))
        _save(pa, pq, table, path / f"part-{number}.parquet", rng)
    return about


def _save(pa: Any, pq: Any, table: Any, path: Path, rng: np.random.Generator) -> None:
    """Write in row groups of any size, also empty ones, each with a dictionary of its own."""
    size = int(rng.choice([1, 2, 5, 17, 1000]))
    metadata = {}
    if rng.random() < 0.1:
        metadata[b"boxscore"] = json.dumps({"classes": [[n, f"c{n}"] for n in range(5)]}).encode()
    table = table.replace_schema_metadata(metadata)
    with pq.ParquetWriter(
        path,
        table.schema,
        use_dictionary=bool(rng.random() < 0.5),
        write_statistics=bool(rng.random() < 0.5),
        compression=str(rng.choice(["none", "zstd", "snappy"])),
    ) as writer:
        for low in range(0, len(table), size):
            if rng.random() < 0.05:
                writer.write_table(table.slice(0, 0))
            writer.write_table(table.slice(low, size), row_group_size=size)


# ---------------------------------------------------------------- cases


PROTOCOLS = [name for name in protocol_names() if not similarity_of(shipped()[name]).needed_columns]
"""Of boxes."""


def case(number: int, folder: Path) -> Case:
    """Make a case: its files, and what is asked of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(number)
    about: dict[str, Any] = {"ids": str(rng.choice(IDS)), "boxes": str(rng.choice(BOXES))}
    images = _ids(about["ids"], int(rng.choice([0, 1, 3, 8, 20], p=[0.01, 0.1, 0.2, 0.4, 0.29])), rng)
    kind_of_class = str(rng.choice(["plain", "text", "unicode", "whole floats", "digits", "negative"]))
    classes = _ids(kind_of_class, int(rng.integers(1, 5)), rng)
    truth, found = _drawn(rng, about["boxes"], images, classes)
    if rng.random() < 0.5:
        for row in truth:
            row["crowd"] = int(rng.random() < 0.2)
    for name, share in (("area", 0.3), ("difficult", 0.3), ("ignore", 0.2), ("id", 0.2)):
        if rng.random() < share:
            for place, row in enumerate(truth):
                row[name] = (
                    place + 1 if name == "id" else int(rng.integers(0, 2)) * (1 + (name == "area") * 999)
                )
    sized = rng.random() < (0.9 if about["boxes"] == "fractions" else 0.5)
    protocol = str(rng.choice(PROTOCOLS))
    bounded = {name for own in load_protocol(protocol).ignore.column_ranges.values() for name in own}
    for name in bounded:
        for row in truth:
            row[name] = float(rng.choice([0.1, 0.3, 0.65, 1.0, 60.0]))
    for rows, share in ((truth, 0.3), (found, 0.2)):
        if rng.random() < share:
            for row in rows:
                row["own"] = None if rng.random() < 0.2 else math.nan if rng.random() < 0.3 else 1.5
        if rng.random() < 0.1:
            for row in rows:
                row["text"] = _one(rng, "a", "b", None)
    described = rng.random() < 0.7
    if described:  # images without objects are rows without a box
        seen = {row["image"] for row in truth}
        for image in images:
            if image not in seen:
                label = classes[0] if rng.random() < 0.2 else None
                like = {
                    "label": label,
                    "box": None,
                    **({"crowd": 0} if truth and "crowd" in truth[0] else {}),
                }
                truth.append({"image": image, **like})
    if sized:
        some = rng.random() < 0.2
        for row in truth:
            size = (None, None) if some and zlib.crc32(str(row["image"]).encode()) % 2 else (160, 120)
            row["image_width"], row["image_height"] = size
    paths = []
    for name, rows in (("gt", truth), ("dt", found)):
        layout = str(rng.choice(["flat", "flat", "lists", "structures"]))
        form = str(rng.choice([*CORNERS, "xyxy", "xywh", "bbox"], p=[0.25, 0.2, 0.1, 0.15, 0.2, 0.1]))
        order = str(rng.choice(["by image", "grouped", "scattered"]))
        if form == "bbox":
            form = "xywh"
        path = folder / name
        if rng.random() < 0.5:
            rows = [{**row} for row in rows]
        about[name] = {"order": order, "rows": len(rows)} | _write(
            pa, pq, _ordered(rows, order, rng), path, layout, form, rng, name == "dt"
        )
        paths.append(path)
    about["protocol"] = protocol
    return Case(paths[0], paths[1], protocol, {}, rng, about)


# ---------------------------------------------------------------- comparing


def _quiet(function: Callable[[], Any]) -> Any:
    with quiet():
        return function()


def _outcome(function: Callable[[], Any]) -> Any:
    """What a function returns, or the kind of error with which it refuses."""
    try:
        return _quiet(function)
    except boxscore.BoxscoreError as error:
        return error


def _by_engine(one: Case, most: int, partitions: int, folder: Path, workers: int) -> Any:
    """Score ranges of scores in this process (0 workers), or from files, in this and in others."""
    protocol, scratch = load_protocol(one.protocol), folder / "scratch"
    scratch.mkdir(exist_ok=True)
    found: list[Any] = []

    def score(run: Callable[[Any], Part], tasks: Any) -> list[Part]:
        parts = [run(task) for task in tasks]
        if workers:
            with LocalEngine(scratch, workers) as engine:
                stored = engine.match(tasks)
                found.append(bits(distributed_evaluation(stored, engine, asked=protocol, most=most)))
        else:
            found.append(bits(distributed_evaluation(parts, asked=protocol, most=most)))
        return parts

    scan(one.truth, one.found, protocol=one.protocol, partitions=partitions, map=score)
    return found[0]


def _by_files(one: Case, partitions: int, folder: Path) -> Any:
    paths = []
    for number, part in enumerate(parts_of((one.truth, one.found), one.protocol, partitions)):
        paths.append(folder / f"{number}.npz")
        part.save(paths[-1])
    parts = [load_part(path) for path in paths]
    return merge([parts[i] for i in one.rng.permutation(len(parts))])


def difference(one: Case, folder: Path, *, processes: bool = False) -> str | None:
    """Say how partitions differ from all at once; None where they do not, or the protocol refuses parts."""
    rng = one.rng
    at_once = _outcome(lambda: whole((one.truth, one.found), one.protocol))
    expected = at_once if isinstance(at_once, Exception) else bits(at_once)
    partitions, many, most = (int(rng.integers(1, high)) for high in (12, 60, 20))

    def shuffled(function: Callable[[Any], Part], tasks: Any) -> list[Part]:
        tasks = list(tasks)
        return [function(tasks[i]) for i in rng.permutation(len(tasks))]

    table = _outcome(lambda: boxscore.load_ground_truth(one.truth))
    ways: dict[str, Callable[[], Any]] = {
        "scan": lambda: bits(
            scan(one.truth, one.found, protocol=one.protocol, partitions=partitions, map=shuffled)
        ),
        "here": lambda: _by_engine(one, most, many, folder, 0),
        "local": lambda: _by_engine(one, most, many, folder, 1),
    }
    if not isinstance(table, Exception):
        ways["a table of ground truth"] = lambda: bits(
            scan(table, one.found, protocol=one.protocol, partitions=partitions)
        )
    if processes:
        ways["processes"] = lambda: _by_engine(one, most, many, folder, 2)
    for name, way in ways.items():
        got = _outcome(way)
        if isinstance(got, boxscore.ProtocolError) and "in parts" in str(got):
            return None
        text = _compared(name, expected, got)
        if text is not None:
            return text
    if isinstance(at_once, Exception):
        return None
    merged = _outcome(lambda: _by_files(one, partitions, folder))
    text = _compared("files", expected, merged if isinstance(merged, Exception) else bits(merged))
    return text or _intervals(at_once, merged, rng)


def _compared(name: str, expected: Any, got: Any) -> str | None:
    if isinstance(expected, Exception) or isinstance(got, Exception):
        if isinstance(expected, Exception) and isinstance(got, Exception):
            return None  # where several things are wrong, which one is found first may differ
        return f"{name}: {_said(got)}; at once: {_said(expected)}"
    differing = [key for key in expected if expected[key] != got[key]]
    return f"{name}: differs in {', '.join(differing)}" if differing else None


def _said(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else "a result"


def _intervals(at_once: Any, merged: Any, rng: np.random.Generator) -> str | None:
    if rng.random() < 0.7:
        return None

    def drawn(result: Any) -> Any:
        return _outcome(lambda: repr(bootstrap_intervals(result, seed=1)))

    outcomes = [drawn(result) for result in (at_once, merged)]
    if isinstance(outcomes[0], Exception) and type(outcomes[0]) is type(outcomes[1]):
        return None
    return None if outcomes[0] == outcomes[1] else f"bootstrap: {outcomes[1]}; at once: {outcomes[0]}"


# ---------------------------------------------------------------- running


def run(number: int, folder: Path, kinds: Counter[str], *, processes: bool = False) -> str | None:
    """Make a case and compare it."""
    one = case(number, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        try:
            text = difference(one, folder, processes=processes)
        except Exception as error:  # whatever is raised about legal or hostile input is a difference
            tail = traceback.format_exc().strip().splitlines()[-7:]
            text = f"raised {type(error).__name__}: {error}\n" + "\n".join(tail)
    at_once = _outcome(lambda: whole((one.truth, one.found), one.protocol))
    kinds["refused" if isinstance(at_once, Exception) else "evaluated"] += 1
    if isinstance(at_once, Exception):
        kinds[f"  {str(at_once)[:100]}"] += 1
    return None if text is None else f"{number}: {text}\n   {one.about}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, metavar="N")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="stop after this long")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="differences to print")
    parser.add_argument(
        "--processes", type=int, default=200, metavar="N", help="every Nth case by two processes"
    )
    parser.add_argument("--repeat", type=int, metavar="NUMBER")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args(arguments)
    kinds: Counter[str] = Counter()
    if options.repeat is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = options.keep or Path(folder)
            path.mkdir(parents=True, exist_ok=True)
            text = run(options.repeat, path, kinds)
        print(text)
        return int(text is not None)
    begin, differences, done = time.monotonic(), 0, 0
    for number in range(options.seed * 1_000_003, options.seed * 1_000_003 + options.cases):
        if time.monotonic() - begin > options.seconds or differences >= options.most:
            break
        with tempfile.TemporaryDirectory() as folder:
            text = run(number, Path(folder), kinds, processes=number % options.processes == 7)
        done += 1
        if text is not None:
            differences += 1
            print(text, flush=True)
    for kind, count in kinds.most_common(12):
        print(f"{count:8,} {kind}")
    print(f"{done:,} cases, {differences} differences, {time.monotonic() - begin:.0f} s")
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
