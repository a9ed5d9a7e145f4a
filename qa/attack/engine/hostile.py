"""Values that mean harm, and bytes that are damaged."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from typing import Any

__all__ = ["NUMBERS", "OTHERS", "TEXTS", "Raw", "damaged", "number", "scalar", "text"]


class Raw(str):
    """Text that is written as it stands where a value would be."""

    __slots__ = ()


NUMBERS: list[Any] = [
    *(0, -0.0, 1, -1, 2, 0.5, -0.5, 0.999, 1.5, 7.0, 1e-9, -1e-9, 1e-12, 5e-324, 1e-200, -1e-200, 1e-160),
    *(255, 256, 32768, 1e6, 1_000_001, 300_000, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1),
    *(2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 1e15, 1e16, 1e100, 1.1e100, 1e154, 1e155, 1.7e308),
    -1.7e308,
    *map(Raw, ("1e400", "-1e400", "NaN", "Infinity", "-Infinity", "1" * 400, "1" * 5000, "1E5", "1e-5000")),
    *map(Raw, ("01", "+1", "1.", ".5", "0x10", "1_0", "-", "1e", "7.0", "-0", "1.0e0")),
]

TEXTS = [
    *("", " ", "1", "7.0", "7", "000001", "-1", "+1", "nan", "inf", "1e3", "3_7", "٣", "True", "None", "0"),
    *("a" * 300, "x" * 20_000, "\0", "a\0b", "\x1b[31mred", "=1+1", " =1+1", "\n=1+1", "@x", "../../x", "/"),
    *(".", "..", "a/b", "a\\b", "é", "\ud800", "\u202eevil", "\ufeff", "<b>&amp;", "%s", "{}", "\r\n", "a,b"),
    *("1" * 5000, "-" * 40, "\x7f", "cat", "dog", "AP", "coco", "nul", "\u2028", "\x85", "a\tb", "\udcff"),
]

OTHERS: list[Any] = [None, True, False, [], {}, [[]], [None], {"": None}, [1, 2, 3, 4], [[1, 1, 5, 1, 5, 5]]]


def number(rng: random.Random) -> Any:
    """A number of any size, or what looks like one."""
    return rng.choice(NUMBERS) if rng.random() < 0.7 else rng.choice([-1, 1]) * 10.0 ** rng.uniform(-12, 20)


def text(rng: random.Random) -> str:
    return rng.choice(TEXTS)


def scalar(rng: random.Random) -> Any:
    """Anything that may stand where a value does."""
    return rng.choice([number, number, text, lambda rng: rng.choice(OTHERS)])(rng)


PIECES = [
    *(b"\0", b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x80", b"9" * 400),
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\r", b"-", b"1e999", b"nan", b"<!--", b"]]>"),
    *(b"[" * 2000, b'{"a":' * 500, b"\x1b[2J", b"\\u0000", b"\\ud800", b"/*", b"#", b"<!DOCTYPE a>", b"&x;"),
]


def damaged(data: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """Damage bytes once: cut, flipped, doubled, spliced with another file, in another encoding."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice([1, 2, 4, 16, 64, 256]))
    way = rng.randrange(12)
    if way == 0:
        return data[:start]
    if way == 1:
        return data[start:]
    if way == 2:
        return data[:start] + data[end:]
    if way == 3:
        return data[:end] + data[start:end] * rng.choice([1, 2, 50]) + data[end:]
    if way == 4 and start < len(data):
        return data[:start] + bytes([data[start] ^ (1 << rng.randrange(8))]) + data[start + 1 :]
    if way == 5 and others:
        other = rng.choice(list(others))
        return data[:start] + other[rng.randrange(len(other) + 1) :]
    if way == 6:
        encoding = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp037"])
        return data.decode("latin-1").encode(encoding, "replace")
    if way == 7:
        return rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\n\n", b"PK\x03\x04"]) + data
    if way == 8:
        return rng.choice([b"", b"\n", b"\0", gzip.compress(data, mtime=0), data + data, data * 2 + b"\n"])
    return data[:start] + rng.choice(PIECES) + data[end if rng.random() < 0.5 else start :]
