"""Parquet that is evaluated in partitions, and files of parts that are merged: both spoilt."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from attack.engine import hostile, trees
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import columns, tables
from boxscore.cli import main
from boxscore.distributed import part_of
from support.quiet import quiet

__all__ = ["READERS"]

IMAGES = 6


def _tables(seed: int, images: range) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    rng = np.random.default_rng(seed)

    def boxes(count: int) -> Any:
        corner = rng.integers(0, 9, (count, 2)) * 8.0
        return np.hstack([corner, corner + rng.integers(1, 5, (count, 2)) * 8.0])

    image, found = np.repeat(images, 2), np.repeat(images, 5)
    truth = boxscore.GroundTruth.from_arrays(
        image, rng.integers(1, 3, len(image)), boxes(len(image)), images=images, categories=[1, 2]
    )
    labels, scores = rng.integers(1, 3, len(found)), rng.integers(1, 9, len(found)) / 8
    return truth, boxscore.Detections.from_arrays(found, labels, boxes(len(found)), scores)


@functools.cache
def _parquet(seed: int) -> tuple[bytes, bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = []
    for table in _tables(seed, range(IMAGES)):
        x1, y1, x2, y2 = table.boxes.T
        cells: dict[str, Any] = {
            "image_id": table.images.ids[table.image],
            "category_id": table.categories.ids[table.category],
            "x1": x1,
            "y1": y1,
            "x2": x2,
            "y2": y2,
        }
        if isinstance(table, boxscore.Detections):
            cells["score"] = table.scores
        output = io.BytesIO()
        kind = ["none", "snappy", "zstd"][seed % 3]
        pq.write_table(pa.table(cells), output, row_group_size=5 + seed % 7, compression=kind)
        files.append(output.getvalue())
    return files[0], files[1]


def _flipped(content: bytes, rng: random.Random) -> bytes:
    """Spoil a few bytes, often those of the footer."""
    if rng.random() < 0.3 or len(content) < 100:
        return hostile.damaged(content, rng)
    spoilt = bytearray(content)
    length = int.from_bytes(content[-8:-4], "little")
    low = max(len(content) - 8 - length, 0) if rng.random() < 0.7 else 0
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        spoilt[rng.randrange(low, len(content))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(spoilt)


def _make_parquet(rng: random.Random) -> Mutant:
    truth, found = _parquet(rng.randrange(12))
    if rng.random() < 0.2:
        found = tables.parquet_mutant(np.random.default_rng(rng.getrandbits(64)))
    files = {"gt.parquet": truth, "dt/0.parquet": found}
    if rng.random() < 0.3:
        files["dt/1.parquet"] = _parquet(rng.randrange(12))[1]
    steps = rng.choice([1, 1, 2])
    for _ in range(steps):
        name = rng.choice(list(files))
        files[name] = _flipped(files[name], rng)
    kinds = ["fifo", "folder", "link:nowhere", "link:0.parquet", "link:../dt", "link:/dev/zero"]
    special = (("dt/2.parquet", rng.choice(kinds)),) if rng.random() < 0.1 else ()
    protocol = rng.choice(["coco", "voc2012", "lvis", "padilla-coco"])
    arguments = ("evaluate", "gt.parquet", "dt", "--protocol", protocol, "--output", "json", "--no-digest")
    return Mutant(files, (*arguments, "--memory-limit", "2GB"), steps, True, special)


def _at_once(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Evaluate the same files at once."""
    said, errors = io.StringIO(), io.StringIO()
    arguments = [str(folder / word) if word in ("gt.parquet", "dt") else word for word in mutant.arguments]
    at = arguments.index("--memory-limit")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        status = main(arguments[:at])
    if status != 0:
        return Judged("laxer", f"at once: {errors.getvalue()[:200]}")
    one, other = json.loads(output), json.loads(said.getvalue())
    differing = [name for name in other if one.get(name) != other[name] and name != "warnings"]  # name paths
    return Judged("differs", f"{', '.join(differing)}") if differing else Judged("equal")


PROTOCOLS: list[Any] = [
    "coco",
    "lvis",
    "voc2012",
    "ultralytics",
    {"extends": "openimages-v2", "group": {"weight": 0.25}, "labels": {"unlisted": "count"}},
    {
        "extends": "crowdhuman",
        "boxes": {"clip": "none"},
        "ignore": {"regions": ""},
        "ap": {"recall_over": "all"},
    },
]
"""The last two ask for columns of their own."""


@functools.cache
def _parts(seed: int) -> tuple[bytes, ...]:
    protocol = PROTOCOLS[seed % len(PROTOCOLS)]
    halves = (range(3), range(3, 6))
    pairs = [_tables(seed * 2 + number, half) for number, half in enumerate(halves)]
    with quiet():
        return tuple(part_of(boxscore.evaluate(*pair, protocol=protocol)).to_bytes() for pair in pairs)


def _spoilt_part(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.2:
        return hostile.damaged(content, rng)
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(["header", *arrays])
    if name == "header":
        text = trees.as_json(trees.spoilt(json.loads(arrays["header"].tobytes()), rng), rng)
        arrays["header"] = np.frombuffer(text, dtype=np.uint8)
    elif rng.random() < 0.1:
        del arrays[name]
    else:
        with contextlib.suppress(ValueError, TypeError, OverflowError, IndexError):
            arrays[name] = columns._spoil_array(arrays[name], rng)
    output = io.BytesIO()
    np.savez(output, **arrays)
    return output.getvalue()


def _make_part(rng: random.Random) -> Mutant:
    parts = list(_parts(rng.randrange(2 * len(PROTOCOLS))))
    at = rng.randrange(2)
    parts[at] = _spoilt_part(parts[at], rng)
    files = {f"{number}.npz": content for number, content in enumerate(parts)}
    more = rng.choice([(), ("--per-class",), ("--output", "json")])
    return Mutant(files, ("merge", *files, *more), compare=False)


READERS = {
    "parquet-partitions": Reader(_make_parquet, _at_once, 0.5),
    "parts": Reader(_make_part, None, 0.5),
}
