"""Pictures under the boxes: PNG chunk by chunk, and other kinds as bytes."""

from __future__ import annotations

import functools
import io
import random
import struct
import zlib

from attack.engine import hostile, trees
from attack.engine.mutant import Mutant, Reader
from attack.readers import coco

__all__ = ["READERS"]

SIDES = [0, 1, 8, 120, 4000, 13_000, 30_000, 65_535, 2**31 - 1, 2**31, 2**32 - 1]
HEADER = struct.Struct(">IIBBBBB")


def _chunk(kind: bytes, content: bytes, rng: random.Random) -> bytes:
    size, check = len(content), zlib.crc32(kind + content)
    if rng.random() < 0.05:
        size = rng.choice([0, size + 1, 2**31, 2**32 - 1])
    if rng.random() < 0.05:
        check ^= 1
    return struct.pack(">I", size) + kind + content + struct.pack(">I", check)


def _png(rng: random.Random) -> bytes:
    """A PNG whose header, pixels and order may be wrong."""
    width, height, depth, color = 12, 10, 8, rng.choice([0, 2, 3, 6])
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[color]
    pixels = b"".join(
        b"\0" + bytes(rng.randrange(256) for _ in range(width * channels)) for _ in range(height)
    )
    fields = [width, height, depth, color, 0, 0, rng.choice([0, 0, 1])]
    for _ in range(rng.choice([0, 1, 1, 2])):
        place = rng.randrange(7)
        fields[place] = rng.choice(SIDES) if place < 2 else rng.choice([0, 1, 2, 3, 4, 5, 16, 255])
    many = rng.choice([1, 1, 1, 5000])
    data = zlib.compress(pixels * many)
    chunks = [
        (b"IHDR", HEADER.pack(*fields)),
        (b"PLTE", bytes(rng.randrange(256) for _ in range(rng.choice([3, 768, 4])))),
        (
            rng.choice([b"tEXt", b"zTXt", b"iCCP", b"tRNS", b"gAMA", b"eXIf"]),
            rng.choice(hostile.PIECES) + b"a\0\0b",
        ),
        (b"IDAT", rng.choice([data, data, data[: len(data) // 2], b"", data * 2])),
        (b"IEND", b""),
    ]
    if rng.random() < 0.2:
        del chunks[rng.randrange(len(chunks))]
    if rng.random() < 0.1:
        rng.shuffle(chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content, rng) for kind, content in chunks)


@functools.lru_cache(maxsize=1)
def _others() -> list[bytes]:
    from PIL import Image

    picture, files = Image.effect_mandelbrot((24, 20), (-2, -1, 1, 1), 10).convert("RGB"), []
    for form in ("JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "ICO"):
        data = io.BytesIO()
        picture.save(data, form)
        files.append(data.getvalue())
    return files


def _make(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results)}
    for image in truth["images"]:
        content = _png(rng) if rng.random() < 0.6 else hostile.damaged(rng.choice(_others()), rng, _others())
        files[f"pictures/{image['file_name']}"] = content
    report = ("report", *coco.INPUT, "--report", "out", "--resamples", "0", "--image-folder", "pictures")
    draw = ("draw", *coco.INPUT, "--output", "out", "--worst", "1", "--image-folder", "pictures")
    return Mutant(files, draw if rng.random() < 0.2 else report, compare=False)


READERS = {"pictures": Reader(_make, None, 0.3)}
