"""Compressed files and archives, whose members lie about their names, sizes, kinds and content."""

from __future__ import annotations

import functools
import gzip
import io
import random
import struct
import warnings
import zipfile
import zlib

from attack.engine import hostile
from attack.engine.commands import commands
from attack.engine.mutant import Mutant, Reader
from attack.readers.annotations import FOUND, layout

__all__ = ["READERS"]

DETECTIONS = ("--dt", "dt.csv")
NAMES = [
    *(
        "../x.json",
        "/etc/x.json",
        "a/../../x.json",
        "C:/x.json",
        "C:\\x.json",
        "\\\\host\\x.json",
        "..\\x.json",
    ),
    *("a" * 300 + ".json", "a/" * 400 + "x.json", "a/" * 3000 + "x", ".", "..", "/", "//", " ", "a//b.json"),
    *(
        "x\n.json",
        "x\x1b[31m.json",
        "\u202ex.json",
        "x.json/",
        "x.json/y.json",
        "nul",
        "x.zip",
        "x.png",
        ".x",
    ),
    *("instances.json", "INSTANCES.json", "annotations/instances_val.json", "__MACOSX/._x.json", "é.json"),
]


@functools.cache
def _bomb() -> bytes:
    return zlib.compress(bytes(150_000_000), 9)


def _seed(rng: random.Random) -> tuple[str, dict[str, bytes]]:
    """A data set whose files are packed, and its name."""
    name = rng.choice(
        ["coco/instances.json", "csv/objects.csv", "cvat", "voc/Annotations", "yolo", "labelme"]
    )
    files = layout("yolo/images", "yolo/labels", "yolo/data.yaml") if name == "yolo" else layout(name)
    return name, dict(files)


def _gzip(rng: random.Random) -> Mutant:
    name = rng.choice(["coco/instances.json", "csv/objects.csv", "cvat/annotations.xml"])
    content = layout(name)[name]
    if rng.random() < 0.3:
        content = hostile.damaged(content, rng)
    packed = gzip.compress(content, mtime=0)
    way = rng.randrange(8)
    if way == 0:
        packed += gzip.compress(content, mtime=0)
    elif way == 1:
        packed = gzip.compress(packed, mtime=0)
    elif way == 2:
        packed += rng.choice([b"\0" * 100, b"x", packed[:40]])
    elif way == 3:
        packed = packed[: rng.randrange(len(packed))]
    elif way == 4:  # a length, or a sum, that is not its own
        packed = packed[: -rng.choice([4, 8])] + struct.pack("<I", rng.getrandbits(32)) * 2
    elif way == 5 and rng.random() < 0.1:
        packed = packed[:10] + _bomb()[2:-4] + b"\0" * 8
    elif way == 6:
        packed = content
    for _ in range(rng.choice([0, 0, 1, 2])):
        packed = hostile.damaged(packed, rng)
    last = name.rpartition("/")[2]
    path = rng.choice([f"{last}.gz", f"{last}.gz", f"{last}.GZ", "x.gz", ".gz", last, "x.tar.gz"])
    given = ("--gt", path, *rng.choice([(), (), ("--format", rng.choice(["coco", "csv", "cvat"]))]))
    files = {path: packed, "dt.csv": layout("csv/detections.csv")["csv/detections.csv"]}
    return Mutant(files, commands(rng, given, DETECTIONS), compare=False)


def _info(name: str, rng: random.Random) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
    kinds = [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    info.compress_type = rng.choices(kinds, [6, 3, 1, 1])[0]
    if rng.random() < 0.03:
        info.external_attr = rng.choice([0o120777, 0o010777, 0o040777, 0o060777]) << 16  # a link, a pipe, ...
    return info


def _zip_bytes(files: dict[str, bytes], rng: random.Random) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in files.items():
            archive.writestr(_info(name, rng), content)
            if rng.random() < 0.02:
                archive.writestr(_info(rng.choice([name, name.upper()]), rng), content)
        archive.comment = rng.choice([b"", b"", b"PK\5\6" * 9, b"x" * 60_000])
    return memory.getvalue()


def _lying(packed: bytes, rng: random.Random) -> bytes:
    """Change a field of a header: flags, method, sums, sizes, lengths, offsets."""
    data = bytearray(packed)
    sign, fields = rng.choice(
        [
            (
                b"PK\1\2",
                [(6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (34, 2), (42, 4)],
            ),
            (b"PK\3\4", [(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]),
            (b"PK\5\6", [(4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
        ]
    )
    places = [place for place in range(len(data) - 3) if data[place : place + 4] == sign]
    if places:
        place = rng.choice(places)
        offset, size = rng.choice(fields)
        value = rng.choice([0, 1, 8, 99, 2**16 - 1, 2**31, 2**32 - 1, rng.getrandbits(32)])
        data[place + offset : place + offset + size] = (value % 256**size).to_bytes(size, "little")
    return bytes(data)


def _zip(rng: random.Random) -> Mutant:
    _, files = _seed(rng)
    steps = rng.choice([1, 1, 1, 2, 3])
    lies = damages = 0
    for _ in range(steps):
        way, chosen = rng.random(), rng.choice(list(files))
        if way < 0.25:
            files[rng.choice(NAMES)] = files[chosen] if rng.random() < 0.5 else files.pop(chosen)
        elif way < 0.4:
            files[chosen] = hostile.damaged(files[chosen], rng)
        elif way < 0.45:
            files[f"{chosen}.gz"] = gzip.compress(files.pop(chosen), mtime=0)
        elif way < 0.5:
            files[rng.choice(["inner.zip", "x/inner.zip"])] = _zip_bytes(files, rng)
        elif way < 0.8:
            lies += 1
        elif way < 0.98:
            damages += 1
        else:
            files[rng.choice(["big.json", "big.png", "big.txt"])] = bytes(rng.choice([10**6, 3 * 10**7]))
    packed = _zip_bytes(files, rng)
    for _ in range(lies):
        packed = _lying(packed, rng)
    for _ in range(damages):
        packed = hostile.damaged(packed, rng)
    path = rng.choice(["x.zip", "x.zip", "x.zip", "x.ZIP", "x.json", "x.npz", ".zip"])
    found = FOUND if rng.random() < 0.1 else layout("csv/detections.csv")["csv/detections.csv"]
    given = ("--gt", path, *rng.choice([(), (), ("--format", rng.choice(["coco", "voc", "yolo"]))]))
    return Mutant({path: packed, "dt.csv": found}, commands(rng, given, DETECTIONS), steps, compare=False)


READERS = {"gz": Reader(_gzip, None, 0.3), "zip": Reader(_zip, None, 0.8)}
