"""Tables as text, Markdown, CSV and JSON: exact, and safe with hostile names."""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore._utils.text import (
    counted,
    counted_of,
    csv_table,
    fixed,
    json_text,
    json_value,
    latex_comment,
    latex_table,
    markdown_table,
    printable,
    text_table,
    verb,
)
from support.each import each

COLUMNS = {
    "class": ["cat", "a longer name", "x"],
    "count": [1, 20, np.int64(300)],
    "AP": [0.5, math.nan, np.float64(1 / 3)],
    "seen": [True, False, None],
}


def test_text() -> None:
    assert text_table(COLUMNS) == (
        "class          count      AP  seen\n"
        "cat                1  0.5000   yes\n"
        "a longer name     20       -    no\n"
        "x                300  0.3333     -"
    )


def test_text_of_no_rows() -> None:
    assert text_table({"class": [], "AP": []}) == "class  AP"


def test_long_names_that_begin_alike_stay_apart() -> None:
    names = ["x" * 50, "x" * 49 + "y", "y" * 50, "short"]
    assert text_table({"n": names}, longest=20).split("\n")[1:] == [
        "xxxxxxxxx…xxxx",
        "xxxxxxxxx…xxxy",
        "yyyyyyyyyyyyyyyyyyy…",
        "short",
    ]
    inside = ["x" * 25 + letter + "x" * 25 for letter in "ab"]  # whole, where the ends do not tell
    assert text_table({"n": inside}, longest=20).split("\n")[1:] == inside
    assert text_table({name: [1] for name in names[:2]}, longest=20).split()[:2] == [
        "xxxxxxxxx…xxxx",
        "xxxxxxxxx…xxxy",
    ]


def test_long_names_are_cut() -> None:
    assert text_table({"n": ["x" * 50]}, longest=10) == "n\nxxxxxxxxx…"


def test_markdown() -> None:
    assert markdown_table(COLUMNS, digits=2) == (
        "| class | count | AP | seen |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| cat | 1 | 0.50 | yes |\n"
        "| a longer name | 20 | - | no |\n"
        "| x | 300 | 0.33 | - |"
    )


def test_latex() -> None:
    assert latex_table({**COLUMNS, "change": [-0.25, 0.0, -1.0]}, digits=2) == (
        "\\begin{tabular}{lrrrr}\n"
        "\\toprule\n"
        "class & count & AP & seen & change \\\\\n"
        "\\midrule\n"
        "cat & 1 & 0.50 & yes & $-$0.25 \\\\\n"
        "a longer name & 20 & -- & no & 0.00 \\\\\n"
        "x & 300 & 0.33 & -- & $-$1.00 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("R&D 100% #1 $5 a_b {c}", r"R\&D 100\% \#1 \$5 a\_b \{c\}"),
        ("\\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        (
            "~^<>|`",
            r"\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}\textasciigrave{}",
        ),
        ("[2cm] *", "{[}2cm{]} {*}"),  # after \\\\ they would be an option and a star
        ("a--b---c 'q''", "a-{}-b-{}-{}-c 'q'{}'"),  # neither dashes nor a closing quotation mark
        ("two\nlines", "two\N{REPLACEMENT CHARACTER}lines"),
        ("猫 é", "猫 é"),
    ],
)
def test_latex_writes_names_as_they_are(name: str, written: str) -> None:
    lines = latex_table({name: [name]}).splitlines()
    assert lines[2] == lines[4] == f"{written} \\\\"


def test_a_comment_of_latex_stays_one_line() -> None:
    assert (
        latex_comment("a\n\\input{b}\r") == "% a\N{REPLACEMENT CHARACTER}\\input{b}\N{REPLACEMENT CHARACTER}"
    )


@given(st.text())
def test_no_name_has_a_command_of_latex(name: str) -> None:
    """Without what the escapes write, nothing is left that LaTeX acts on."""
    cell = latex_table({"n": [name]}).split("\n")[4].removesuffix(" \\\\")
    for word in ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "asciigrave"):
        cell = cell.replace(f"\\text{word}{{}}", "")
    for mark in "{}$&#%_":
        cell = cell.replace(f"\\{mark}", "")
    for group in ("{[}", "{]}", "{*}", "{}"):
        cell = cell.replace(group, "")
    assert not set(cell) & set("\\{}$&#%_~^\n\r")


def test_csv_has_every_digit() -> None:
    assert csv_table(COLUMNS) == (
        f"class,count,AP,seen\ncat,1,0.5,True\na longer name,20,,False\nx,300,{1 / 3!r},\n"
    )


def test_json() -> None:
    value = {
        "a": math.nan,
        "b": [math.inf, np.float64(0.1), np.int64(3), None, True],
        "c": {1: np.array([1.5])},
    }
    assert json_value(value) == {"a": None, "b": [None, 0.1, 3, None, True], "c": {"1": [1.5]}}
    assert json_text({"näme": 1}) == '{\n  "näme": 1\n}'
    assert json.loads(json_text(value))["a"] is None


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nb",
    "a\rb",
    "a\tb",
    "\u202egnp.exe",
    "\u200bhidden",
    "\x00",
    "\x9b31m",
    "| evil | cell |",
    "<script>alert(1)</script>",
    "[click](http://x)",
    "`code`",
    "*bold* _it_",
    "&lt;",
    "\\",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    '"quoted", and comma',
    "line\u2028separator",
]


@each(HOSTILE)
def test_hostile_names_in_text(name: str) -> None:
    text = text_table({"class": [name, "cat"], "AP": [0.5, 1.0]})
    assert len(text.split("\n")) == 3
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in text.replace("\n", ""))


@each(HOSTILE)
def test_hostile_names_in_markdown(name: str) -> None:
    lines = markdown_table({"class": [name], "AP": [0.5]}).split("\n")
    assert len(lines) == 3
    cell = lines[2].removeprefix("| ").removesuffix(" | 0.5000 |")
    assert "<" not in cell
    assert ">" not in cell
    unescaped = cell.replace("\\\\", "")
    for mark in "`*_[]|":
        assert unescaped.count(mark) == unescaped.count(f"\\{mark}")


def without_controls(name: str) -> str:
    """What CSV has of a name: it may be printed on a terminal. JSON has all of it."""
    return "".join("\ufffd" if unicodedata.category(c) == "Cc" and c not in "\t\r\n" else c for c in name)


@each(HOSTILE)
def test_hostile_names_in_heads(name: str) -> None:
    """The confusion matrix has classes for heads."""
    heads = [
        text_table({name: [1]}).split("\n", 1)[0],
        markdown_table({name: [1]}).split("\n", 1)[0],
        latex_table({name: [1]}),
        csv_table({name: [1]}),
    ]
    for head in heads:
        assert not [c for c in head if unicodedata.category(c) == "Cc" and c not in "\t\r\n"]
    assert csv_table({name: [1]}) == csv_table({"x": [name]}).removeprefix("x\n") + "1\n"


@pytest.mark.parametrize(
    "name", [" =1+1", "\n=1+1", " \t@SUM(A1)", "\u00a0-2", "\ufeff+3", "\uff1d1", "\u200b=1"]
)
def test_formulas_behind_white_space(name: str) -> None:
    """Spreadsheets skip white space; each of these ran, or may run."""
    rows = list(csv.reader(io.StringIO(csv_table({"class": [name]}), newline="")))
    assert rows[1] == [f"'{name}"]


def test_json_escapes_what_terminals_read() -> None:
    text = json_text({"class": "a\x9b31mb\x7f\x1b"})
    assert text.isascii()
    assert json.loads(text) == {"class": "a\x9b31mb\x7f\x1b"}


@each(HOSTILE)
def test_hostile_names_in_csv(name: str) -> None:
    rows = list(csv.reader(io.StringIO(csv_table({"class": [name], "AP": [-0.5]}), newline="")))
    assert len(rows) == 2
    assert len(rows[1]) == 2
    shown = without_controls(name)
    assert rows[1][0] in (shown, f"'{shown}")
    assert not rows[1][0].lstrip().startswith(("=", "+", "-", "@"))
    assert rows[1][1] == "-0.5"  # a number stays one


@given(name=st.text())
def test_any_name_in_every_form(name: str) -> None:
    assert len(text_table({"class": [name]}, longest=1000).split("\n")) == 2
    assert len(markdown_table({"class": [name]}).split("\n")) == 3
    rows = list(csv.reader(io.StringIO(csv_table({"class": [name], "n": [1]}), newline="")))
    shown = without_controls(name)
    assert rows[1] in ([shown, "1"], [f"'{shown}", "1"])
    assert json.loads(json_text({"class": name})) == {"class": name}


def test_printable_keeps_what_people_write() -> None:
    for text in ("Straße", "猫", "emoji 🐈", "naïve café", "a-b_c (d)"):
        assert printable(text) == text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "image", "0 images"),
        (1, "image", "1 image"),
        (np.int64(1), "class", "1 class"),
        (2, "class", "2 classes"),
        (1, "box", "1 box"),
        (1040, "box", "1,040 boxes"),
        (1, "ground truth", "1 ground truth"),
        (3, "true positive", "3 true positives"),
    ],
)
def test_a_count_with_its_noun(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text


def test_a_count_of_a_total() -> None:
    assert counted_of(1, 1, "image") == "1 of 1 image"
    assert counted_of(4952, 4952, "image") == "4,952 of 4,952 images"
    assert counted_of(0, 12345, "box") == "0 of 12,345 boxes"


def test_a_verb_for_what_was_counted() -> None:
    plural = ["have", "are", "do", "reach", "overlap"]
    assert [verb(1, each) for each in plural] == ["has", "is", "does", "reaches", "overlaps"]
    assert [verb(0, each) for each in plural] == [verb(2, each) for each in plural] == plural


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (-0.00004, False, "0.0000"),
        (-0.0, False, "0.0000"),
        (-0.00005001, False, "-0.0001"),
        (-1e-20, True, "0.0000"),
        (1e-20, True, "0.0000"),
        (0.25, True, "+0.2500"),
        (-0.25, True, "-0.2500"),
        (-math.inf, False, "-inf"),
        (math.nan, True, "+nan"),
    ],
)
def test_zero_has_no_sign(value: float, signed: bool, text: str) -> None:
    assert fixed(value, signed=signed) == text


def test_no_form_writes_a_negative_zero() -> None:
    columns = {"delta": [-0.0, np.float64(-0.0), -1e-9]}
    for table in (text_table(columns), markdown_table(columns), latex_table(columns)):
        assert "-0.0000" not in table.replace("$-$", "-")
    assert csv_table(columns).splitlines() == ["delta", "0.0", "0.0", "-1e-09"]
    assert json_text({"a": -0.0, "b": [np.float64(-0.0)]}) == json_text({"a": 0.0, "b": [0.0]})
    assert "-" not in json_text({"a": -0.0})
