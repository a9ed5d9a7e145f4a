"""VOC folders: XML annotations, image sets, results."""

from __future__ import annotations

import functools
import random
import re
from pathlib import Path
from typing import Any

from attack.engine import hostile
from attack.engine.acceptance import compare_voc
from attack.engine.mutant import Judged, Mutant, Reader

__all__ = ["READERS", "spoilt_lines"]

INPUT = ("--gt", "VOC2007", "--dt", "results", "--protocol", "voc2007", "--image-set", "test")
TAGS = ("xmin", "ymin", "xmax", "ymax")
NUMBERS = [
    *(
        "0",
        "-1",
        "1e3",
        "1E+2",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "3_7",
        "٣",
        "\uff11\uff12",
        " 5 ",
        "+5",
        "5.",
        ".5",
        "0x1F",
    ),
    *(
        "1,5",
        "",
        "--5",
        "1e",
        "9" * 400,
        "9" * 5000,
        "-0",
        "5 6",
        "1e-400",
        "379.6",
        "\u00a05",
        "5\x0b",
        "true",
    ),
    *("1e100", "1.1e100", "1e154", "4.9e-324", "2147483648", "9223372036854775808"),
]


def _case(rng: random.Random) -> tuple[list[str], dict[str, list[list[Any]]], dict[str, list[list[Any]]]]:
    """Images, their objects (label, flags, box), and results by class (image, score, box)."""
    names = [f"{rng.randrange(100):06d}" for _ in range(rng.randint(1, 3))]
    objects: dict[str, list[list[Any]]] = {}
    found: dict[str, list[list[Any]]] = {label: [] for label in ("cat", "dog")}
    for name in names:
        objects[name] = []
        for _ in range(rng.randint(1, 3)):
            x, y = rng.randint(1, 30), rng.randint(1, 30)
            box = [x, y, x + rng.choice([0, 9, 20]), y + rng.choice([0, 9, 20])]
            label = rng.choice(["cat", "dog"])
            objects[name].append([label, int(rng.random() < 0.2), *box])
            if rng.random() < 0.8:
                found[label].append([name, rng.randint(1, 8) / 8, box[0] + rng.choice([0, 1]), *box[1:]])
        found["cat"].append([name, rng.randint(1, 8) / 8, *(rng.randint(1, 9) for _ in range(2)), 40, 40])
    return names, objects, found


def _xml(objects: list[list[Any]]) -> str:
    rows = "".join(
        f"<object><name>{label}</name><difficult>{hard}</difficult><bndbox>"
        + "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(TAGS, box, strict=True))
        + "</bndbox></object>\n"
        for label, hard, *box in objects
    )
    size = "<size><width>60</width><height>60</height></size>"
    return f"<annotation><filename>a.jpg</filename>{size}\n{rows}</annotation>"


_ELEMENT = re.compile(r"<(\w+)>[^<]*</\1>")
ENCODINGS = [
    "utf-16",
    "utf-16-le",
    "utf-16-be",
    "latin-1",
    "utf-8-sig",
    "utf-32",
    "utf-7",
    "cp037",
    "punycode",
]
DECLARED = [*ENCODINGS, "idna", "rot13", "hex", "zip", "undefined", "raw_unicode_escape", "mbcs", "x" * 90]


def _spoil_xml(text: str, rng: random.Random) -> str | bytes:
    elements = list(_ELEMENT.finditer(text))
    one = rng.choice(elements) if elements else None
    way = rng.randrange(14)
    if way < 6 and one is not None:
        values = [
            *NUMBERS,
            *hostile.TEXTS,
            "<x/>",
            "<!-- a -->5",
            "<![CDATA[5]]>",
            "&#53;",
            "&#0;",
            "&x;",
            "1",
            "2",
        ]
        return text[: one.start()] + f"<{one[1]}>{rng.choice(values)}</{one[1]}>" + text[one.end() :]
    if way == 6 and one is not None:
        return (
            text[: one.start()] + rng.choice(["", one[0] * 2, f"<part>{one[0]}</part>"]) + text[one.end() :]
        )
    if way == 7:
        start = text.find("<object>")
        part = text[start : text.find("</object>") + 9]
        return text.replace(
            part, rng.choice(["", part * 2, part * 50, f"<object>{part}</object>", f"<a>{part}</a>"])
        )
    if way == 8:
        head = rng.choice(
            [
                '<!DOCTYPE a [<!ENTITY x "pwned">]>',
                '<!DOCTYPE a SYSTEM "file:///etc/hostname">',
                "<?xml-stylesheet a?>",
                '<!DOCTYPE a [<!ENTITY x "xx"><!ENTITY y "&x;&x;">]>',
                "<!doctype a>",
            ]
        )
        return head + text.replace(">cat<", rng.choice([">&x;<", ">cat<"]))
    if way == 9:
        head = rng.choice(['<!DOCTYPE a [<!ENTITY x "pwned">]>', ""])
        return (head + text.replace(">cat<", ">&x;<" if head else ">cat<")).encode(
            rng.choice(ENCODINGS[:-1]), "replace"
        )
    if way == 10:
        return f'<?xml version="1.0" encoding="{rng.choice(DECLARED)}"?>' + text
    if way == 11:
        return "<a>" * 3000 + text + "</a>" * 3000
    if way == 12:
        tag = rng.choice(["annotation", "object", "bndbox", "name", "xmin", "difficult", "size", "width"])
        return text.replace(f"{tag}>", f"{rng.choice(['a', tag.upper(), 'ns:' + tag])}>")
    spoilt: bytes = hostile.damaged(_bytes(text), rng)
    return spoilt


def spoilt_lines(text: str, rng: random.Random, words: list[str]) -> str | bytes:
    """Spoil a file of lines of words."""
    lines = text.split("\n")
    row = rng.randrange(len(lines))
    fields = lines[row].split(" ")
    way = rng.randrange(9)
    if way < 4:
        fields[rng.randrange(len(fields))] = rng.choice(words)
    elif way == 4:
        del fields[rng.randrange(len(fields))]
    elif way == 5:
        fields.insert(rng.randrange(len(fields) + 1), rng.choice(words))
    elif way == 6:
        ends = ["\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\n\n"]
        return rng.choice(ends).join(lines)
    elif way == 7:
        lines[row:row] = [lines[row]] * rng.choice([1, 2, 30])
        return "\n".join(lines)
    else:
        spoilt: bytes = hostile.damaged(_bytes(text), rng)
        return spoilt
    lines[row] = rng.choice([" ", " ", "\t", ",", "\u00a0"]).join(fields)
    return "\n".join(lines)


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")


def _make(rng: random.Random, part: str) -> Mutant:
    names, objects, found = _case(rng)
    files: dict[str, str | bytes] = {
        f"VOC2007/Annotations/{name}.xml": _xml(objects[name]) for name in dict.fromkeys(names)
    }
    files["VOC2007/ImageSets/Main/test.txt"] = "".join(f"{name}\n" for name in names)
    for label, rows in found.items():
        text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
        files[f"results/comp4_det_test_{label}.txt"] = text
    steps = rng.choice([1, 1, 1, 2, 3])
    flags = ["1", "0", "-1", "-1.0", "7", "abc", "+1", "1 2", *names, "../x", "a" * 300, "\0", "000099"]
    for _ in range(steps):
        chosen = sorted(name for name in files if part in name)
        name = rng.choice(chosen)
        text = files[name]
        if isinstance(text, bytes):
            files[name] = hostile.damaged(text, rng)
        elif part == "Annotations":
            files[name] = _spoil_xml(text, rng)
        else:
            words = flags if part == "ImageSets" else [*NUMBERS, *hostile.TEXTS, *names, "5", "60", "0.5"]
            files[name] = spoilt_lines(text, rng, words)
        if part == "results" and rng.random() < 0.05:
            other = rng.choice(
                ["comp3_det_val_cat", "comp4_det_test_", "comp4_det_test_x_cat", "comp4_cls_test_cat"]
            )
            files[f"results/{other}.txt"] = files.pop(name)
    arguments = ("evaluate", *INPUT, "--output", "json")
    if rng.random() < 0.3:
        arguments = rng.choice(
            [
                ("evaluate", *INPUT, "--per-class"),
                ("validate", *INPUT),
                ("validate", *INPUT[2:4], *INPUT[:2], "--output", "json"),
                ("nms", "--dt", "results", "--iou-threshold", "0.5", "--output", "out"),
                ("convert", *INPUT[:2], *INPUT[6:], "--output", "out.npz"),
                ("confusion", *INPUT),
                ("confusion", *INPUT, "--output", "csv"),
                ("suspects", *INPUT),
                ("report", *INPUT, "--report", "out", "--resamples", "0"),
                ("errors", *INPUT, "--output", "markdown"),
                ("slices", *INPUT, "--by", rng.choice(["truncated", "size"])),
            ]
        )
    plain = {name: _bytes(content) for name, content in files.items()}
    return Mutant(plain, arguments, steps, arguments[0] == "evaluate" and "json" in arguments)


def oracle(folder: Path, mutant: Mutant, output: str) -> Judged:
    """Ask the devkit's rules."""
    return compare_voc(folder / "VOC2007", output)


READERS = {
    name: Reader(functools.partial(_make, part=part), oracle, weight)
    for name, part, weight in (
        ("voc-xml", "Annotations", 2.0),
        ("voc-sets", "ImageSets", 0.7),
        ("voc-results", "results", 2.0),
    )
}
