"""Tables: CSV, JSON lines and Parquet that are nearly right, as ground truth and as detections."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from attack.engine.commands import commands
from attack.engine.mutant import Mutant, Reader

__all__ = ["READERS"]

NAMES = ["image_id", "file_name", "class", "category_id", "x1", "y1", "x2", "y2", "score", "width", "height"]
NAMES += ["area", "iscrowd", "id", "note"]
OTHER_NAMES = [
    "image",
    "label",
    "bbox",
    "x",
    "y",
    "w",
    "h",
    "xmin",
    "XMax",
    "cx",
    "",
    "objects",
    "PredictionString",
]
HOSTILE: list[Any] = [
    *(
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1e308",
        "-1",
        "0",
        "0.5",
        "1,5",
        "1_0",
        "0x10",
        "٣",
        "\ufeff",
        "\0",
    ),
    *(
        "9" * 30,
        "-" * 5,
        '"',
        "'",
        "true",
        "None",
        "null",
        "[1,2,3,4]",
        "[1 2 3]",
        "a" * 5000,
        "\ud7ff",
        "=1+1",
    ),
    *(
        None,
        True,
        0,
        -1,
        2**53,
        2**63,
        2**64,
        -(2**63),
        1e308,
        float("inf"),
        float("nan"),
        [],
        {},
        [1, 2, 3, 4],
    ),
    *([[1, 2, 3, 4]], [None] * 4, {"a": 1}, "0001", "1.0", 1.0, b"\xff\xfe", b"\0"),
]


def rows_of(generator: np.random.Generator) -> list[dict[str, Any]]:
    """Return good rows."""
    rows = []
    for row in range(int(generator.integers(1, 6))):
        corner, extent = generator.uniform(0, 50, 2).round(2), generator.uniform(1, 40, 2).round(2)
        category = int(generator.integers(1, 3))
        values = [int(generator.integers(1, 3)), "a.jpg", "xyz"[category], category, *corner.tolist()]
        values += [*(corner + extent).tolist(), float(generator.random()), 100, 100, 10.0, 0, row, "n"]
        values[1] = f"{values[0]}.jpg"
        rows.append(dict(zip(NAMES, values, strict=True)))
    used = [name for name in NAMES[:9] if generator.random() < 0.97] + [
        name for name in NAMES[9:] if generator.random() < 0.5
    ]
    return [{name: row[name] for name in used} for row in rows]


def spoilt(rows: list[dict[str, Any]], generator: np.random.Generator) -> list[dict[str, Any]]:
    """Change a few values and names."""
    for _ in range(int(generator.integers(0, 4))):
        row = rows[int(generator.integers(len(rows)))]
        names = list(row) or ["class"]
        name = names[int(generator.integers(len(names)))]
        kind = int(generator.integers(6))
        if kind <= 2:
            row[name] = HOSTILE[int(generator.integers(len(HOSTILE)))]
        elif kind == 3:
            row.pop(name, None)
        elif kind == 4:
            new = (NAMES + OTHER_NAMES)[int(generator.integers(len(NAMES + OTHER_NAMES)))]
            for other in rows:
                if name in other:
                    other[new] = other.pop(name)
        else:
            for other in rows:
                if name in other:
                    other[name] = row.get(name)
    return rows


def flipped(data: bytes, generator: np.random.Generator) -> bytes:
    """Change a few bytes of some."""
    if generator.random() < 0.6:
        return data
    changed = bytearray(data)
    for _ in range(int(generator.integers(1, 4))):
        start = int(generator.integers(len(changed) + 1))
        end = start + int(generator.integers(0, 12))
        pieces = [
            b"",
            changed[start:end] * 3,
            b'"',
            b"\n",
            b"\0",
            b"\r",
            b",",
            b"\xff",
            b"9" * 400,
            b"[" * 200,
        ]
        changed[start:end] = pieces[int(generator.integers(len(pieces)))]
    return bytes(
        changed[: int(generator.integers(len(changed) + 1))] if generator.random() < 0.1 else changed
    )


def csv_mutant(generator: np.random.Generator) -> bytes:
    rows = spoilt(rows_of(generator), generator)
    names = list(dict.fromkeys(name for row in rows for name in row))
    separator = ",;\t|"[int(generator.integers(4))] if generator.random() < 0.3 else ","

    def cell(value: Any) -> str:
        text = "" if value is None else value.decode("latin-1") if isinstance(value, bytes) else str(value)
        return f'"{text}"' if separator in text else text

    lines = [] if generator.random() < 0.05 else [separator.join(names)]
    lines += [separator.join(cell(row.get(name)) for name in names) for row in rows]
    return flipped(("\n".join(lines) + "\n").encode("utf-8", errors="replace"), generator)


def grouped(rows: list[dict[str, Any]], generator: np.random.Generator) -> list[dict[str, Any]]:
    """Put rows of an image into one record, as lists or as a list of structures."""
    images: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        images.setdefault(str(row.get("image_id")), []).append(row)
    records = []
    as_lists = generator.random() < 0.5
    for own in images.values():
        head = {name: own[0][name] for name in ("image_id", "file_name", "width", "height") if name in own[0]}
        rest = [{name: value for name, value in row.items() if name not in head} for row in own]
        if as_lists:
            records.append({**head, **{name: [row.get(name) for row in rest] for name in rest[0]}})
        else:
            records.append({**head, "objects": rest})
    return records + ([{"image_id": 9, **({} if as_lists else {"objects": []})}] if rows else [])


def plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value.decode("latin-1") if isinstance(value, bytes) else value


def jsonl_mutant(generator: np.random.Generator) -> bytes:
    rows = spoilt(rows_of(generator), generator)
    if generator.random() < 0.3:
        rows = [
            {
                **{k: v for k, v in row.items() if k not in ("x1", "y1", "x2", "y2")},
                "bbox": [row.get(k) for k in ("x1", "y1", "x2", "y2")],
            }
            for row in rows
        ]
    if generator.random() < 0.5:
        rows = grouped(rows, generator)
        rows = spoilt(rows, generator)
    lines = [json.dumps(row, default=plain, allow_nan=True) for row in rows]
    return flipped("\n".join(lines).encode(), generator)


def parquet_mutant(generator: np.random.Generator) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = spoilt(rows_of(generator), generator)
    if generator.random() < 0.5:
        rows = spoilt(grouped(rows, generator), generator)
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        try:
            array = pa.array(cells)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            array = pa.array(
                [None if cell is None else str(cell).encode("ascii", "replace").decode() for cell in cells]
            )
        kinds = [
            pa.float32(),
            pa.int8(),
            pa.string(),
            pa.large_string(),
            pa.binary(),
            pa.decimal128(9, 2),
            pa.bool_(),
        ]
        if generator.random() < 0.15:
            with contextlib.suppress(pa.ArrowException):
                array = array.cast(kinds[int(generator.integers(len(kinds)))])
        if generator.random() < 0.2 and not pa.types.is_nested(array.type):
            array = array.dictionary_encode()
        columns[name or "x"] = array
    metadata = [
        None,
        {b"huggingface": b"{"},
        {b"huggingface": b'{"info":{"features":{"class":{"_type":"ClassLabel","names":["p","q"]}}}}'},
    ]
    metadata += [
        {b"boxscore": b'{"classes":[[1,"y"],[1,"z"]]}'},
        {b"boxscore": b"[]"},
        {b"boxscore": b'{"classes":[[1]]}'},
    ]
    table = pa.table(columns).replace_schema_metadata(metadata[int(generator.integers(len(metadata)))])
    output = io.BytesIO()
    try:
        pq.write_table(table, output, compression=["none", "snappy", "zstd"][int(generator.integers(3))])
    except pa.ArrowException:
        return b"PAR1"
    return flipped(output.getvalue(), generator)


MAKERS: dict[str, Callable[[np.random.Generator], bytes]] = {
    "csv": csv_mutant,
    "jsonl": jsonl_mutant,
    "parquet": parquet_mutant,
}


def _make(rng: random.Random, ending: str) -> Mutant:
    """One file is both sides, or two are one each, of one kind or of two."""
    generator = np.random.default_rng(rng.getrandbits(64))
    files = {f"a.{ending}": MAKERS[ending](generator)}
    truth = found = f"a.{ending}"
    if rng.random() < 0.4:
        other = rng.choice([ending, ending, "csv", "jsonl"])
        files[f"b.{other}"] = MAKERS[other](generator)
        truth, found = rng.sample(list(files), 2)
    more: tuple[str, ...] = ()
    if rng.random() < 0.3:
        more = (rng.choice(["--gt-box-format", "--dt-box-format"]), rng.choice(["xyxy", "xywh", "cxcywh"]))
    if rng.random() < 0.2:
        more += ("--format", rng.choice(["auto", *MAKERS]))
    given = (*more, "--gt", truth)
    return Mutant(files, commands(rng, given, ("--dt", found)), compare=False)


READERS = {
    name: Reader(functools.partial(_make, ending=ending), None, weight)
    for name, ending, weight in (("csv", "csv", 0.8), ("jsonl", "jsonl", 0.8), ("parquet", "parquet", 0.5))
}
