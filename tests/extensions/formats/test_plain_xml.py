"""VOC files of plain tags are split, not parsed: what is read is what the parser reads, or nothing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from boxscore.errors import BoxscoreError
from boxscore.formats._voc_xml import MOST_TAGS, _layout, _parsed, _plainly_read

SEED, CASES = 20, 400


def element(draw: random.Random, tag: str, inside: str | None = None) -> str:
    text = draw.choice(
        ["", " ", "0", "1", "2", " 7.5\n", "1_0", "1e2", "nan", "a b", "dog", "&lt;", "\xe9", "]]>"]
    )
    plain = draw.choice(["1", "0", "12", "48.5", "dog"])
    return f"<{tag}>{inside if inside is not None else plain if draw.random() < 0.9 else text}</{tag}>"


def document(draw: random.Random) -> str:
    space = draw.choice(["", "\n", "\n\t", " "])

    def some(*parts: str) -> str:
        chosen = [part for part in parts if draw.random() < 0.97]
        if draw.random() < 0.1:
            draw.shuffle(chosen)
        if chosen and draw.random() < 0.05:
            chosen.append(draw.choice(chosen))
        return space + space.join(chosen) + space

    def number(tag: str) -> str:
        return (
            f"<{tag}>{draw.choice(['3', '17.25', ' 9 '])}</{tag}>"
            if draw.random() < 0.98
            else element(draw, tag)
        )

    def one() -> str:
        box = element(draw, "bndbox", some(*map(number, ("xmin", "ymin", "xmax", "ymax"))))
        part = element(draw, "part", some(element(draw, "name"), box)) if draw.random() < 0.2 else ""
        flags = [f"<{tag}>{draw.choice('01')}</{tag}>" for tag in ("difficult", "truncated", "occluded")]
        return element(draw, "object", some("<name>dog</name>", element(draw, "pose"), *flags, box, part))

    size = element(draw, "size", some(number("width"), number("height"), element(draw, "depth")))
    head = [element(draw, "filename"), element(draw, "source", some(element(draw, "filename"))), size]
    whole = element(draw, "annotation", some(*head, *(one() for _ in range(draw.randint(0, 3)))))
    start = draw.choice(
        [*[""] * 6, '<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-8"?>\n', "\ufeff"]
    )
    return start + whole + draw.choice(["", "\n"])


def damaged(draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    inserted = draw.choice(
        ["<", ">", "</a>", "<a>", "<a/>", "<!-- -->", "<![CDATA[x]]>", "&amp;", "\r", "x", "\0", " a='1'"]
    )
    return text[:at] + inserted + text[at + draw.randrange(3) :]


def test_splitting_gives_what_parsing_gives(tmp_path: Path) -> None:
    draw, file, split = random.Random(SEED), tmp_path / "a.xml", 0
    for number in range(CASES):
        text = document(draw)
        if number % 3 == 0:
            text = damaged(draw, text)
        file.write_bytes(text.encode())
        plain = _plainly_read(str(file))
        if plain is None:
            continue
        split += 1
        try:
            parsed = _parsed(file)
        except BoxscoreError as error:
            pytest.fail(f"{text!r} is refused by the parser: {error}")
        assert repr(plain) == repr(parsed), text  # NaN included
    assert split > CASES / 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<annotation></annotation><annotation></annotation>",
        "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation></annotation>",
        '<annotation a="1"></annotation>',
        "<annotation><object></annotation></object>",
        "x>y<annotation></annotation>",
        "<annotation></annotation>x",
        "<other></other>",
        """<?xml version='1.0"?><annotation></annotation>""",
        '<?xml version="1.0" encoding="latin-1"?><annotation></annotation>',
        "<annotation>" + "<a></a>" * MOST_TAGS + "</annotation>",
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(text)
    assert _plainly_read(str(tmp_path / "a.xml")) is None
    assert _plainly_read(str(tmp_path)) is None
    assert _plainly_read(str(tmp_path / "\0")) is None
    assert _layout.cache_info().maxsize is not None
