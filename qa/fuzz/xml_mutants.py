"""Structured mutants of VOC's XML: in any encoding, with entities wherever they may stand, and odd numbers.

Run by ``qa/fuzz/mutants.py``. A mutant that is taken has no document type in any encoding that it could be
read in, and the boxes that a regular expression finds in its text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from boxscore.errors import BoxscoreError

Rng = np.random.Generator

GOOD = """<annotation>
 <filename>a.jpg</filename>
 <size><width>100</width><height>80</height></size>
 <object>
  <name>cat</name>
  <difficult>0</difficult>
  <bndbox><xmin>10</xmin><ymin>12</ymin><xmax>29</xmax><ymax>31</ymax></bndbox>
 </object>
 <object>
  <name>dog</name>
  <bndbox><xmin>1.5</xmin><ymin>2</ymin><xmax>50</xmax><ymax>60.25</ymax></bndbox>
 </object>
</annotation>
"""
DOCTYPES = [
    '<!DOCTYPE a [<!ENTITY x "pwned">]>',
    '<!DOCTYPE annotation SYSTEM "file:///etc/hostname">',
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
    '<!DOCTYPE a [<!ENTITY a "xxxxxxxxxx"><!ENTITY x "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    "<!DOCTYPE a [<!ENTITY % p \"<!ENTITY x 'pwned'>\"> %p;]>",
    "<!DOCTYPE a>",
    "<!doctype a>",
    '<!ENTITY x "pwned">',
]
NUMBERS = [
    *("1_0", "\u0661\u0660", "\uff11\uff10", "1e1", "0x10", "1,5", "nan", "inf", "-inf", "infinity", " 10 "),
    *(
        "10\u00a0",
        "+10",
        "1e400",
        "-3",
        "1" * 400,
        ".5",
        "5.",
        "",
        "ten",
        "1 0",
        "1e-400",
        "--1",
        "1e",
        "\u00b2",
        "\u221e",
    ),
]
ENCODINGS = [
    *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-7"),
    *(
        "ascii",
        "latin-1",
        "cp1252",
        "gb18030",
        "gb2312",
        "shift_jis",
        "iso2022_jp",
        "euc-kr",
        "big5",
        "koi8-r",
    ),
    *("cp037", "cp500", "cp1026", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "hz", "cp875"),
]
DECLARED = [
    *ENCODINGS,
    "UTF8",
    "rot13",
    "hex",
    "zlib",
    "undefined",
    "__init__",
    "mbcs",
    "klingon",
    "utf_8_sig",
    "a.b",
]


def _pick(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def text_mutant(rng: Rng) -> str:
    """Return the text of a mutant."""
    text = GOOD
    for _ in range(int(rng.integers(0, 4))):
        kind = int(rng.integers(12))
        if kind <= 2:
            numbers = list(re.finditer(r">[0-9.]+<", text))
            if numbers:
                at = _pick(rng, numbers)
                text = f"{text[: at.start()]}>{_pick(rng, NUMBERS)}<{text[at.end() :]}"
        elif kind <= 4:
            at = _pick(rng, [0, 0, 0, text.find("<object>"), text.find("<name>"), len(text)])
            text = text[:at] + _pick(rng, DOCTYPES) + text[at:]
            if rng.random() < 0.7:
                text = text.replace("cat", "&x;").replace(
                    "dog", _pick(rng, ["dog", "&amp;", "&#100;", "&#0;", "&x"])
                )
        elif kind == 5:
            tag = _pick(rng, ["name", "bndbox", "object", "xmin", "ymax", "annotation", "size", "difficult"])
            text = re.sub(
                f"</?{tag}>", _pick(rng, ["", f"<{tag}/>", f"<{tag.upper()}>", f"<p:{tag}>"]), text, count=2
            )
        elif kind == 6:
            extra = [
                "<!-- c -->",
                "<![CDATA[5]]>",
                "<?php x?>",
                "<a b='1' b='2'/>",
                "\0",
                "\ufeff",
                "\u2028",
                "]]>",
            ]
            extra += [
                "<part><name>leg</name></part>",
                "<a>" * 2000,
                "<a>" * 500 + "</a>" * 500,
                "<!--",
                "\ud7ff",
                "\x01",
            ]
            at = int(rng.integers(len(text)))
            text = text[:at] + _pick(rng, extra) + text[at:]
        elif kind == 7:
            text = text[: int(rng.integers(len(text) + 1))]
        elif kind == 8:
            low, high = sorted(rng.integers(0, len(text) + 1, 2).tolist())
            text = text[:high] + text[low:]
        elif kind == 9:
            text = text.replace(
                "0</difficult>", _pick(rng, ["1", "yes", "2", "", "-1", "\u0661"]) + "</difficult>"
            )
        elif kind == 10:
            text = text.replace(
                "cat", _pick(rng, ["猫", "é", "\u202ecat", " cat ", "c\nat", "=1+1", "\x9b", "кот"])
            )
        else:
            text = text.replace("\n", _pick(rng, ["\r\n", "\r", "", "\n\n", "\x85"]))
    return text


def mutant(rng: Rng) -> bytes:
    """Return the bytes of a mutant."""
    text = text_mutant(rng)
    encoding = _pick(rng, ENCODINGS) if rng.random() < 0.6 else "utf-8"
    if rng.random() < 0.6:
        declared = encoding if rng.random() < 0.5 else _pick(rng, DECLARED)
        quote = _pick(rng, "\"'")
        text = f"<?xml version={quote}1.0{quote} encoding={quote}{declared}{quote}?>" + text
    try:
        data = bytearray(text.encode(encoding, errors="replace"))
    except (UnicodeError, LookupError):
        data = bytearray(text.encode("utf-8", errors="replace"))
    if rng.random() < 0.15:
        data[:0] = _pick(rng, [b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\0", b" ", b"\xff\xfe\0\0"])
    for _ in range(int(rng.integers(1, 4)) if rng.random() < 0.3 else 0):
        at = int(rng.integers(len(data) + 1))
        data[at : at + int(rng.integers(3))] = _pick(
            rng, [b"", b"\0", b"\xff", b"<", b"&", b"\xd8\x00", b"9"]
        )
    return bytes(data)


def check(table: Any, data: bytes) -> None:
    """Look for what must not be in a file that was taken, and for its boxes."""
    texts = []
    for encoding in ENCODINGS:
        try:
            texts.append(data.decode(encoding))
        except (UnicodeError, LookupError, ValueError):
            continue
    assert not any("<!DOCTYPE" in text or "<!ENTITY" in text for text in texts if "\0" not in text[:99])
    assert "pwned" not in table.categories.names.tolist()
    assert b"\0" not in data.replace(b"\0\n", b"\n") or data[:2] in (b"\xff\xfe", b"\xfe\xff")
    sides = [r"<bndbox>\s*"] + [
        rf"<{side}>\s*([0-9eE.+-]+)\s*</{side}>\s*" for side in ("xmin", "ymin", "xmax", "ymax")
    ]
    plain = [
        text
        for text in texts
        if len(re.findall("".join(sides), text)) == len(table) == text.count("<bndbox>")
    ]
    read = [
        [float(number) for number in found]
        for text in plain[:1]
        for found in re.findall("".join(sides), text)
    ]
    nested = any(mark in text for text in plain[:1] for mark in ("<!--", "CDATA", "<?php"))
    assert not plain or nested or read == table.boxes.tolist()


def prepare(folder: Path) -> None:
    """Make the data set that a mutant is a file of."""
    (folder / "voc").mkdir()


def one(rng: Rng, _: None, folder: Path) -> str:
    """Make a mutant and read it; say what became of it."""
    data = mutant(rng)
    (folder / "voc" / "a.xml").write_bytes(data)
    try:
        table = boxscore.load_ground_truth(folder / "voc")
    except BoxscoreError:
        return "refused"
    check(table, data)
    found = boxscore.Detections.from_arrays(
        table.images.ids[table.image],
        table.categories.ids[table.category],
        table.boxes,
        np.full(len(table), 0.5),
        images=table.images,
        categories=table.categories,
    )
    boxscore.evaluate(table, found, protocol="voc2007")
    return "taken"
