"""Names of classes, made up, through every format and command, beside the same data under plain names.

    python qa/fuzz/vocabularies.py --cases 20000 --seed 0
    python qa/fuzz/vocabularies.py --case 1234          # one vocabulary, every check

A vocabulary has equal names, numbers and ids as names, paths, Unicode forms, names of metrics, columns and
rows, marks of every file format. The same boxes under ``plain0001``, ``plain0002``, ... say what must come out: every
number, row and column, with the classes' labels in place of the plain names. What is refused must be refused
with a message that names a class and says why. Each case takes some of the checks in turn; ``--every`` takes
all. A case is its number.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import io
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

import boxscore  # noqa: E402
from boxscore import Detections, GroundTruth, InputError  # noqa: E402
from boxscore._utils.text import (  # noqa: E402
    cut,
    latex_text,
    markdown_text,
    printable,
)
from boxscore.cli import main  # noqa: E402
from boxscore.data.vocabulary import Categories, Images  # noqa: E402
from boxscore.formats import writable_formats  # noqa: E402
from boxscore.formats.registry import format_named  # noqa: E402
from boxscore.reports.text import flat_metrics  # noqa: E402

Id = int | str

# ---------------------------------------------------------------- vocabularies

LONG = "a very long name of a class " * 3
NAMES: dict[str, Sequence[str]] = {
    "ordinary": ("cat", "dog", "traffic light", "person", "ball"),
    "labels": ("cat", "cat (1)", "cat (2)", "cat (2) (2)", "dog (0)", "(1)", "1 (2)"),
    "numbers": ("0", "1", "2", "3", "-1", "01", "1.0", "1e5", "0x10", "1_0", "\u0661", "nan", "inf", "-0"),
    "reserved": (
        "truth",
        "predicted",
        "(background)",
        "background",
        "__background__",
        "all",
        "(all)",
        "mean",
        "(mean)",
        "total",
        "none",
        "None",
        "null",
        "true",
        "undefined",
        "-",
        "*",
        "?",
        "class",
        "classes",
    ),
    "metrics": ("AP", "AP50", "AR100", "mAP", "precision", "F1", "score", "iou", "size", "area", "image_id"),
    "columns": (
        "category_id",
        "LabelName",
        "ground_truths",
        "detections",
        "width",
        "id",
        "name",
        "x1",
        "file",
        "from",
        "to",
        "source",
        "dt",
        "gt",
    ),
    "paths": ("a/b", "a\\b", "../x", "/etc/passwd", "a.b", ".hidden", "C:", "con", "x.json", "~", "$HOME"),
    "blanks": (
        " cat",
        "cat ",
        "c  at",
        "c at",
        "\tcat",
        "cat\n",
        "",
        " ",
        "\u00a0",
        "\u3000cat",
        "c\u00a0at",
    ),
    "marks": (
        "a,b",
        "a;b",
        'q"x',
        "it's",
        "'x'",
        '"y"',
        "a&b",
        "a=b",
        "=1+1",
        "@x",
        "+x",
        "#x",
        "%d",
        "{x}",
        "[x]",
        "<b>",
        "&amp;",
        "\\",
        "\\n",
        "$x$",
    ),
    "more marks": ("a|b", "a_b^c", "`x`", "*x*", "a: b", "- a", "!x", "x:", "--x"),
    "control": ("a\tb", "a\nb", "a\rb", "a\x00b", "a\x1b[31mb", "a\x7fb", "a\u2028b", "a\u200bb", "a\u202eb"),
    "unicode": (
        "caf\u00e9",
        "cafe\u0301",
        "\u732b",
        "\U0001f431",
        "\u00c5",
        "A\u030a",
        "\u212b",
        "\ufb01",
        "fi",
    ),
    "more unicode": (
        "STRASSE",
        "stra\u00dfe",
        "\u0130",
        "i\u0307",
        "\u05d0",
        "\u200f\u05d0",
        "\U0001f468\u200d\U0001f469",
    ),
    "long": (LONG, LONG + "x", LONG + "y", "x" * 300, "x" * 299 + "y", "\u732b" * 80),
}
IDS: dict[str, Callable[[int], Id]] = {
    "from 0": lambda n: n,
    "from 1": lambda n: n + 1,
    "gaps": lambda n: (3, 7, 8, 11, 20, 90)[n],
    "negative": lambda n: n - 2,
    "texts": lambda n: "abcdef"[n],
    "numbers as text": lambda n: str(n + 1),
    "mixed": lambda n: n if n % 2 else f"m{n}",
}
MOST = 6


class Vocabulary(NamedTuple):
    """Names by id, and of which kind the ids are."""

    names: dict[Id, str]
    ids: str

    @property
    def categories(self) -> Categories:
        return Categories.build(list(self.names), names=list(self.names.values()))


def vocabulary(case: int) -> Vocabulary:
    """Draw a vocabulary; the case is its number."""
    rng = np.random.default_rng([27, case])
    count = int(rng.integers(1, MOST + 1))
    kind = list(IDS)[int(rng.choice(len(IDS), p=[0.25, 0.25, 0.15, 0.05, 0.1, 0.1, 0.1]))]
    ids = [IDS[kind](number) for number in range(count)]
    chosen = rng.choice(len(NAMES), size=int(rng.integers(1, 4)), replace=False)
    pool = [name for number in chosen for name in list(NAMES.values())[int(number)]]
    names = [pool[int(rng.integers(len(pool)))] for _ in ids]
    for at in range(count):
        chance = rng.random()
        if chance < 0.1:
            names[at] = names[int(rng.integers(count))]  # one name twice
        elif chance < 0.2:
            names[at] = str(ids[int(rng.integers(count))])  # the id of one
        elif chance < 0.25:
            names[at] = f"{names[int(rng.integers(count))]} ({ids[int(rng.integers(count))]})"
        elif chance < 0.3:
            letters = [chr(int(code)) for code in rng.integers(32, 0x250, size=int(rng.integers(1, 6)))]
            names[at] = "".join(letters)
    return Vocabulary(dict(zip(ids, names, strict=True)), kind)


def plain(vocabulary: Vocabulary) -> Vocabulary:
    names = {identifier: f"plain{number:04d}" for number, identifier in enumerate(vocabulary.names, start=1)}
    return Vocabulary(names, vocabulary.ids)


def tables(vocabulary: Vocabulary) -> tuple[GroundTruth, Detections]:
    """Return the boxes that every vocabulary of this many classes has; a number of each class is its own."""
    count = len(vocabulary.names)
    rng = np.random.default_rng(count)
    images = Images.build(["im1", "im2"], file_names=["im1.png", "im2.png"], sizes=[[200, 200]] * 2)
    ids = list(vocabulary.names)
    image, truth, found, boxes, scores = [], [], [], [], []
    for number in range(count):
        for copy in range(number % 3 + 2):
            left, top = rng.integers(0, 140, size=2).tolist()
            boxes.append([left, top, left + 20 + 3 * number, top + 30])
            image.append(f"im{copy % 2 + 1}")
            truth.append(ids[number])
            found.append(ids[(number + (copy == 2)) % count])
            scores.append(float(rng.integers(1, 1000)) / 1000)
    corners = np.array(boxes, dtype=np.float64)
    common: dict[str, Any] = {"images": images, "categories": vocabulary.names}
    return (
        GroundTruth.from_arrays(image, truth, corners, **common),
        Detections.from_arrays(
            image, found, corners + rng.integers(0, 6, size=(len(corners), 1)), scores, **common
        ),
    )


# ---------------------------------------------------------------- comparing


class DifferenceError(Exception):
    """Something is not as under plain names."""


class RefusedError(Exception):
    """boxscore refused it, and said of which class and why."""


PLAIN = re.compile(r"\bplain(\d{4})\b")
Labels = Sequence[str]


def _same(got: Any, expected: Any, labels: Labels, place: str, show: Callable[[str], set[str]]) -> None:
    """Compare what JSON or CSV holds with the same under plain names; order counts."""
    if isinstance(expected, dict) and isinstance(got, dict):
        if len(got) != len(expected):
            raise DifferenceError(f"{place}: keys {list(got)} instead of {list(expected)}")
        for (key, value), (own, found) in zip(expected.items(), got.items(), strict=True):
            _same(own, key, labels, f"{place}, a key", show)
            _same(found, value, labels, f"{place}.{key}", show)
    elif isinstance(expected, list) and isinstance(got, list):
        if len(got) != len(expected):
            raise DifferenceError(f"{place}: {len(got)} entries instead of {len(expected)}")
        for number, (value, found) in enumerate(zip(expected, got, strict=True)):
            _same(found, value, labels, f"{place}[{number}]", show)
    elif isinstance(expected, str) and isinstance(got, str) and PLAIN.search(expected):
        _matched(got, expected, labels, place, show)
    elif got != expected:
        raise DifferenceError(f"{place}: {got!r} instead of {expected!r}")


def _matched(got: str, expected: str, labels: Labels, place: str, show: Callable[[str], set[str]]) -> None:
    """Compare a text with the same under plain names, apart from blanks."""
    parts = PLAIN.split(expected)
    pattern = []
    for number, part in enumerate(parts):
        if number % 2:
            forms = sorted(show(labels[int(part) - 1]), key=len, reverse=True)
            pattern.append(f"(?:{'|'.join(_loose(form) for form in forms)})")
        else:
            pattern.append(_loose(part))
    if not re.fullmatch(r"\s*" + "".join(pattern) + r"\s*", got):
        raise DifferenceError(f"{place}:\n{got!r}\ninstead of\n{expected!r}\nwith {list(labels)}")


def _loose(text: str) -> str:
    """Return a pattern for a text with any blanks between its words."""
    words = text.split()
    inner = r"\s+".join(map(re.escape, words))
    before, after = r"\s*" * text[:1].isspace(), r"\s*" * text[-1:].isspace()
    return before + inner + after if words else before


def _cell(label: str) -> set[str]:
    text = re.sub(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", label)
    return {text, f"'{text}"}


def _shown(label: str) -> set[str]:
    """Return what a terminal or a message may show of a label."""
    text = printable(label)
    short = {cut(text, longest) for longest in (40, 60)}
    ends = {f"{cut(text, longest // 2)}{text[len(text) - (longest - 1) // 4 :]}" for longest in (40, 60)}
    return {text, printable(repr(label)[1:-1]), label, *short, *ends}


FORMS: dict[str, Callable[[str], set[str]]] = {
    "text": _shown,
    "markdown": lambda label: {markdown_text(label)},
    "latex": lambda label: {latex_text(label)},
    "csv": _cell,
    "json": lambda label: {label},
}


def compare_outputs(got: str, expected: str, labels: Labels, form: str, place: str) -> None:
    """Compare what a command printed."""
    show = FORMS[form]
    if form == "json":
        both = [json.loads(text) for text in (got, expected)]
        for value in both:
            for changing in ("inputs", "time"):  # hashes of files, and when
                value.pop(changing, None)
        _same(*both, labels, place, show)
    elif form == "csv":
        rows = [list(csv.reader(io.StringIO(text, newline=""))) for text in (got, expected)]
        _same(*rows, labels, place, show)
    else:
        _matched(got, expected, labels, place, show)


# ---------------------------------------------------------------- running


def run(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Run the command line in this process; any exception is a finding."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*arguments, "-q"])
    return status, out.getvalue(), err.getvalue()


@contextlib.contextmanager
def unsynced() -> Iterator[None]:
    """Leave it to the system when files reach the disk: they are read at once and removed."""
    sync, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = sync


@functools.lru_cache(maxsize=4096)
def plain_run(folder: Path, arguments: tuple[str, ...]) -> tuple[int, str, str]:
    """Run once what many vocabularies are compared with."""
    return run([argument.replace("{}", str(folder)) for argument in arguments])


def check_refusal(message: str, vocabulary: Vocabulary) -> None:
    """A refusal is one line, and names a class and the reason."""
    names = [*vocabulary.names.values(), *map(str, vocabulary.names), *vocabulary.categories.labels]
    shown = {form for name in names for form in (*_shown(name), repr(name), repr(name)[:40], repr(name)[:60])}
    if "File name too long" in message and "cannot be written" in message:
        raise RefusedError("PATH: cannot be written: File name too long.")
    if len(message.strip().splitlines()) != 1 or not (" must " in message and "Got " in message):
        raise DifferenceError(f"a refusal that gives no reason: {message!r}")
    if not any(form and form in message for form in shown):
        raise DifferenceError(f"a refusal that names no class: {message!r}")
    raise RefusedError(re.sub(r"Got .*", "Got ...", message.strip(), flags=re.DOTALL))


FORM_NAMES = ("text", "json", "csv", "markdown", "latex")
INPUTS = ("{}/gt.json", "{}/dt.json")
COMMANDS: dict[str, tuple[str, ...]] = {
    "evaluate": ("evaluate", *INPUTS, "--per-class"),
    "evaluate voc": ("evaluate", *INPUTS, "--per-class", "--protocol", "voc2012"),
    "errors": ("errors", *INPUTS),
    "error curves": ("error-curves", *INPUTS),
    "confusion": ("confusion", *INPUTS),
    "confusions": ("confusion", *INPUTS, "--top", "9", "--score-threshold", "0"),
    "operating points": ("operating-points", *INPUTS),
    "guarantees": ("operating-points", *INPUTS, "--guarantee", "recall=0.2"),
    "calibration": ("calibration", *INPUTS),
    "lrp": ("lrp", *INPUTS),
    "froc": ("froc", *INPUTS),
    "ties": ("ties", *INPUTS, "--per-class"),
    "images": ("images", *INPUTS),
    "suspects": ("suspects", *INPUTS, "--score-threshold", "0"),
    "slices": ("slices", *INPUTS, "--by", "crowdedness"),
    "bootstrap": ("bootstrap", *INPUTS, "--per-class", "--metrics", "AP"),
    "compare": ("compare", *INPUTS, "{}/other.json", "--per-class", "--resamples", "10", "--metrics", "AP"),
    "sweep": ("sweep", *INPUTS, "--iou-threshold", "0.5", "--metrics", "AP", "--per-class"),
    "stats": ("stats", "{}/gt.json"),
    "check": ("check", *INPUTS, "--min", "AP=0.1"),
    "explain": ("explain", *INPUTS, "--from", "voc2012", "--to", "coco"),
    "explain --ablation": ("explain", *INPUTS, "--from", "coco", "--ablation"),
}
"""Commands that print tables, each in every form."""


def write_inputs(vocabulary: Vocabulary, folder: Path) -> None:
    """Write COCO files, by the words of the format alone."""
    truth, found = tables(vocabulary)
    number = {identifier: at for at, identifier in enumerate(truth.images.ids.tolist(), start=1)}
    images = [
        {"id": at, "file_name": f"{name}.png", "width": 200, "height": 200} for name, at in number.items()
    ]
    categories = [{"id": identifier, "name": name} for identifier, name in vocabulary.names.items()]

    def record(table: Any, row: int) -> dict[str, Any]:
        x, y, right, bottom = table.boxes[row].tolist()
        return {
            "image_id": number[table.images.ids[table.image[row]]],
            "category_id": table.categories.ids.tolist()[table.category[row]],
            "bbox": [x, y, right - x, bottom - y],
        }

    annotations = [
        {"id": row + 1, "iscrowd": 0, "area": float(truth.area[row]), **record(truth, row)}
        for row in range(len(truth))
    ]
    data = {"images": images, "categories": categories, "annotations": annotations}
    (folder / "gt.json").write_text(json.dumps(data))
    for name, change in (("dt.json", 0.0), ("other.json", 0.0005)):
        results = [
            {**record(found, row), "score": float(found.scores[row]) + change * (row % 2)}
            for row in range(len(found))
        ]
        (folder / name).write_text(json.dumps(results))


class Case:
    """One vocabulary, its files, and those under plain names."""

    def __init__(self, vocabulary: Vocabulary, folder: Path, plain_folders: Path) -> None:
        self.vocabulary, self.folder = vocabulary, folder
        self.plain = plain(vocabulary)
        self.plain_folder = plain_folders / f"{vocabulary.ids} {len(vocabulary.names)}"
        if not self.plain_folder.exists():
            self.plain_folder.mkdir(parents=True)
            write_inputs(self.plain, self.plain_folder)
        write_inputs(vocabulary, folder)
        categories = vocabulary.categories
        order = {identifier: at for at, identifier in enumerate(categories.ids.tolist())}
        self.categories = categories
        by_row = categories.labels
        self.labels = [by_row[order[identifier]] for identifier in vocabulary.names]
        beside = categories.labels_beside("truth")
        self.beside = [beside[order[identifier]] for identifier in vocabulary.names]

    def command(self, arguments: Sequence[str], labels: Labels, form: str = "json") -> None:
        """Run a command on both, and compare."""
        own = run([argument.replace("{}", str(self.folder)) for argument in arguments])
        expected = plain_run(self.plain_folder, tuple(arguments))
        if own[0] != expected[0] and own[0] == 2:
            check_refusal(own[2].removeprefix("boxscore: error: "), self.vocabulary)
        if own[0] != expected[0]:
            raise DifferenceError(f"status {own[0]} instead of {expected[0]}: {own[2]}")
        if own[0] == 2:
            return
        texts = own[1].replace(str(self.folder), "{}"), expected[1].replace(str(self.plain_folder), "{}")
        compare_outputs(*texts, labels, form, " ".join(arguments))


Check = Callable[[Case], None]


def _printed(name: str, form: str) -> Check:
    def check(case: Case) -> None:
        arguments = [*COMMANDS[name], "--output", form, "--wide"]
        case.command(arguments, case.beside if name.startswith("confusion") else case.labels, form)

    return check


def _through(format_name: str) -> Check:
    """Write both sides in a format, and read them: detections with the truth that came back, and the first one."""

    def check(case: Case) -> None:
        truth, found = tables(case.vocabulary)
        try:
            outcomes = _read_back(truth, found, format_name, case.folder)
        except InputError as error:
            check_refusal(str(error), case.vocabulary)
        expected = _plain_back(case.plain_folder, format_name, case.vocabulary.ids, len(case.labels))
        for got, known in zip(outcomes, expected, strict=True):
            _same_rows(got, known, case, format_name)

    return check


Outcome = list[tuple[str, bytes]]


def _read_back(truth: GroundTruth, found: Detections, format_name: str, folder: Path) -> list[Outcome]:
    """Return the class and the box of every row that comes back, of the truth and, read with it, detections."""
    ending = {"coco": ".json", "csv": ".csv", "openimages": ".csv", "parquet": ".parquet", "columns": ".npz"}
    ending |= {"labelstudio": ".json", "cvat": ".xml"}
    base = folder / format_name
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    paths = [base / f"{side}{ending.get(format_name, '')}" for side in ("gt", "dt")]
    boxscore.save_as(truth, paths[0], format=format_name, lossy=True)
    boxscore.save_as(found, paths[1], format=format_name, lossy=True)
    back = boxscore.load_ground_truth(paths[0], format=format_name)
    read = [boxscore.load_detections(paths[1], known, format=format_name) for known in (back, truth)]
    return [_outcome(table) for table in (back, *read)]


def _outcome(table: Any) -> Outcome:
    """Return the rows, sorted: formats order classes by their names, and files by those."""
    names = table.categories.names[table.category].tolist()
    columns = (
        [table.image, table.boxes, table.scores]
        if isinstance(table, Detections)
        else [table.image, table.boxes]
    )
    rows = np.column_stack(columns)
    return sorted((name, row.tobytes()) for name, row in zip(names, rows, strict=True))


@functools.lru_cache(maxsize=1024)
def _plain_back(folder: Path, format_name: str, ids: str, count: int) -> list[Outcome]:
    names: dict[Id, str] = {IDS[ids](number): f"plain{number + 1:04d}" for number in range(count)}
    return _read_back(*tables(Vocabulary(names, ids)), format_name, folder)


def _same_rows(got: Outcome, expected: Outcome, case: Case, place: str) -> None:
    names = list(case.vocabulary.names.values())
    wanted = []
    for name, row in expected:
        at = PLAIN.fullmatch(name)  # Open Images knows classes whose ids are texts by these
        wanted.append((names[int(at[1]) - 1] if at else name, row))
    if got != sorted(wanted):
        pairs = [[name for name, _ in rows] for rows in (got, sorted(wanted))]
        raise DifferenceError(
            f"{place}: {len(got)} rows of {pairs[0]} instead of {len(wanted)} of {pairs[1]}"
        )


def _chosen_by_label(case: Case) -> None:
    """``--classes LABEL`` is the class and no other, and a name or id is refused or the class."""
    ids = list(case.vocabulary.names)
    start = ("evaluate", *INPUTS, "--output", "csv", "--per-class")
    for number, label in enumerate(case.labels):
        expected = plain_run(case.plain_folder, (*start, f"--classes=plain{number + 1:04d}"))
        own = run([*(each.replace("{}", str(case.folder)) for each in start), f"--classes={label}"])
        if own[0]:
            raise DifferenceError(f"--classes {label!r}: {own[2]}")
        rows = [list(csv.reader(io.StringIO(text, newline="")))[1][1:] for text in (own[1], expected[1])]
        if rows[0] != rows[1]:
            raise DifferenceError(f"--classes {label!r}: {rows[0]} instead of {rows[1]}")
    for identifier, name in case.vocabulary.names.items():
        for word in (name, str(identifier)):
            can_be = {
                at
                for at, (each, its_name) in enumerate(case.vocabulary.names.items())
                if word in (str(each), its_name, case.labels[at])
            }
            own = run([*(each.replace("{}", str(case.folder)) for each in start), f"--classes={word}"])
            if (own[0] == 0) != (len(can_be) == 1):
                raise DifferenceError(f"--classes {word!r} can be {[ids[at] for at in can_be]}: {own}")
            if own[0] == 2 and "must stand for one class. Got " not in own[2]:
                raise DifferenceError(f"--classes {word!r}: {own[2]}")


def _bound(case: Case) -> None:
    """A bound of ``check`` on each class by its label."""
    for number, label in enumerate(case.labels):
        quoted = label if label == label.strip() and label[:1] not in "'\"" else f'"{label}"'
        expected = plain_run(
            case.plain_folder, ("check", *INPUTS, "-o", "json", f"--min=plain{number + 1:04d} AP=0.3")
        )
        inputs = [each.replace("{}", str(case.folder)) for each in INPUTS]
        own = run(["check", *inputs, "-o", "json", f"--min={quoted} AP=0.3"])
        if own[0] != expected[0]:
            raise DifferenceError(f"a bound on {label!r}: {own} instead of {expected}")
        checks = [json.loads(text)["checks"] for text in (own[1], expected[1])]
        _same(*checks, case.labels, "a bound", FORMS["json"])


def _results_of(path: Path) -> list[tuple[Any, ...]]:
    return [
        (each["image_id"], each["category_id"], *each["bbox"], each["score"])
        for each in json.loads(path.read_text())
    ]


def _nms(case: Case) -> None:
    """Suppress with and without groups, and fuse: the files of both are the same, which hold ids."""
    groups = {}
    for folder, labels in ((case.folder, case.labels), (case.plain_folder, list(case.plain.names.values()))):
        shown = [f'"{label.replace(chr(34), chr(34) * 2)}"' for label in labels]
        (folder / "groups.txt").write_text(",".join(shown[:3]) + "\n", encoding="utf-8")
        groups[folder] = shown
    own_ids = Categories.build(list(case.vocabulary.names))  # results files name no class but by id
    commands = [
        ("nms", "{}/dt.json", "-o", "{}/kept.json", "--iou-threshold", "0.3"),
        ("fuse", "{}/dt.json", "{}/other.json", "-o", "{}/kept.json"),
    ]
    assert len(own_ids) == len(case.labels)
    for command in commands:
        outcomes = []
        for folder in (case.folder, case.plain_folder):
            status, _, message = run([each.replace("{}", str(folder)) for each in command])
            if status:
                raise DifferenceError(f"{command[0]}: {message}")
            outcomes.append(_results_of(folder / "kept.json"))
        if outcomes[0] != outcomes[1]:
            raise DifferenceError(f"{command[0]}: other rows")


def _groups(case: Case) -> None:
    """Groups of classes in Python, by labels."""
    _, found = tables(case.vocabulary)
    _, expected = tables(case.plain)
    kept = []
    for table, labels in ((found, case.labels), (expected, list(case.plain.names.values()))):
        result = boxscore.suppress(table, iou_threshold=0.3, class_groups=[labels[:3]])
        kept.append(result.boxes.tobytes() + result.scores.tobytes())
    if kept[0] != kept[1]:
        raise DifferenceError("suppression by groups: other rows")


def _mapped(side: str) -> Check:
    """``--class-map FILE`` from labels, names and ids of ``side``: each class to the next, and the last to none."""

    def check(case: Case) -> None:
        plain_labels = list(case.plain.names.values())
        own, others = (case.labels, plain_labels) if side == "from" else (plain_labels, case.labels)
        if len(own) > 1:
            expected = _by_map(case, side, _rotated(plain_labels, plain_labels), plain=True)
            got = _by_map(case, side, _rotated(own, others), plain=False)
            if got[0] or expected[0]:
                lines = (*own, *others)
                if not all(map(_is_line, lines)):
                    _refused_line(got)
                raise DifferenceError(f"a class map {side} labels: {got[2]}{expected[2]}")
            compare_outputs(
                got[1],
                expected[1],
                case.labels if side == "to" else plain_labels,
                "csv",
                f"a class map {side} labels",
            )
        for word in dict.fromkeys((*case.vocabulary.names.values(), *map(str, case.vocabulary.names))):
            if word.strip() == word and _is_line(word):
                _one_mapped(case, side, word)

    return check


def _one_mapped(case: Case, side: str, word: str) -> None:
    """A name or id in a class map is the one class that it can be, or is refused."""
    can_be = [
        at
        for at, (each, its_name) in enumerate(case.vocabulary.names.items())
        if word in (str(each), its_name, case.labels[at])
    ]
    plain_labels = list(case.plain.names.values())
    own = case.labels if side == "from" else plain_labels
    pairs = {True: dict.fromkeys(plain_labels, ""), False: dict.fromkeys(own, "")}  # all others are left out
    if side == "to":
        pairs[False][own[-1]] = word
        pairs[True][own[-1]] = plain_labels[can_be[0]]
    else:
        del pairs[False][own[can_be[0]]]
        pairs[False][word] = pairs[True][plain_labels[can_be[0]]] = plain_labels[-1]
    got = _by_map(case, side, [*pairs[False].items()], plain=False)
    if len(can_be) > 1:
        if got[0] != 2 or "must stand for one class. Got " not in got[2]:
            raise DifferenceError(f"a class map {side} {word!r} can be {can_be}: {got}")
        return
    expected = _by_map(case, side, [*pairs[True].items()], plain=True)
    if not all(map(_is_line, pairs[False])):
        _refused_line(got)
    if got[0] != expected[0]:
        raise DifferenceError(f"a class map {side} {word!r}: {got[2] or expected[2]}")
    labels = case.labels if side == "to" else plain_labels
    compare_outputs(got[1], expected[1], labels, "csv", f"a class map {side} {word!r}")


def _refused_line(got: tuple[int, str, str]) -> None:
    """A line of a map cannot have a line break, and the message says what to do."""
    if got[0] == 2 and "A class whose name has a line break is written as its id" in got[2]:
        raise RefusedError("a line of a class map must be from,to. Got ...")


def _is_line(word: str) -> bool:
    """Whether a word can stand in a line of a file."""
    return word.splitlines() == [word]


def _rotated(sources: Labels, targets: Labels) -> list[tuple[str, str]]:
    return list(zip(sources, [*targets[1:], ""], strict=True))


def _by_map(case: Case, side: str, pairs: Sequence[tuple[str, str]], *, plain: bool) -> tuple[int, str, str]:
    """Evaluate by a map, where the side that is not ``side`` has plain names: columns keep names and ids."""
    folder = case.plain_folder if plain else case.folder
    key = f"{side} {pairs}"
    known = _MAPPED.get((folder, key)) if plain else None
    if known is not None:
        return known
    truth, found = (tables(case.plain if plain or side != own else case.vocabulary) for own in ("to", "from"))
    boxscore.save_as(truth[0], folder / f"{side}_gt.npz", format="columns")
    boxscore.save_as(found[1], folder / f"{side}_dt.npz", format="columns")
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(pairs)
    (folder / "map.csv").write_text(text.getvalue(), encoding="utf-8", newline="")
    inputs = [str(folder / f"{side}_{name}.npz") for name in ("gt", "dt")]
    outcome = run(
        ["evaluate", *inputs, f"--class-map={folder / 'map.csv'}", "--output", "csv", "--per-class"]
    )
    if plain:
        _MAPPED[folder, key] = outcome
    return outcome


_MAPPED: dict[tuple[Path, str], tuple[int, str, str]] = {}


def _draw(case: Case) -> None:
    """Drawings: as many, of one name each, with the classes' labels beside the boxes."""
    from matplotlib import pyplot

    from boxscore.extensions.pages.plots._style import label
    from boxscore.extensions.pages.plots.boxes import draw_evaluated

    both = []
    for each in (case.vocabulary, case.plain):
        truth, found = tables(each)
        evaluation = boxscore.evaluate(truth, found)
        texts = []
        for name in ("im1", "im2"):
            figure = draw_evaluated(None, evaluation, name)
            figure.canvas.draw()
            texts.append([text.get_text() for axes in figure.axes for text in axes.texts])
            pyplot.close(figure)
        both.append(texts)
    _same(*both, case.labels, "draw", lambda name: {label(name, longest=24)})
    inputs = [each.replace("{}", str(case.folder)) for each in INPUTS]
    status, out, message = run(["draw", *inputs, "-o", str(case.folder / "pictures"), "--form", "svg"])
    if status or sorted(case.folder.glob("pictures/*")) != sorted(map(Path, out.splitlines())):
        raise DifferenceError(f"draw: {status} {out} {message}")


def _convert(case: Case) -> None:
    """``convert --classes LABEL`` keeps the class."""
    for number, label in enumerate(case.labels):
        output = case.folder / "converted.json"
        inputs = [f"--gt={case.folder / 'gt.json'}", f"--output={output}", f"--classes={label}"]
        status, _, message = run(["convert", *inputs])
        if status:
            raise DifferenceError(f"convert --classes {label!r}: {message}")
        written = json.loads(output.read_text())
        (category,) = written["categories"]
        pair = (category["id"], category["name"])
        if pair != list(case.vocabulary.names.items())[number]:
            raise DifferenceError(f"convert --classes {label!r}: {pair}")


def _report(case: Case) -> None:
    """A report's folder: its result, and its page."""
    for folder in (case.folder, case.plain_folder):
        if folder == case.folder or not (folder / "report").exists():
            inputs = [each.replace("{}", str(folder)) for each in INPUTS]
            status, _, message = run(["report", *inputs, f"--report={folder / 'report'}", "--resamples=0"])
            if status:
                raise DifferenceError(f"report: {message}")
    for name, form in (("result.json", "json"), ("per_class.csv", "csv")):
        texts = [
            (folder / "report" / name).read_text(encoding="utf-8-sig")
            for folder in (case.folder, case.plain_folder)
        ]
        if name == "result.json":
            texts = [json.dumps({**json.loads(text), "warnings": []}) for text in texts]
        compare_outputs(*texts, case.labels, form, name)


def _validate(case: Case) -> None:
    """Validation gives a verdict, not a failure; further findings of names are allowed."""
    status, out, err = run(
        ["validate", *(each.replace("{}", str(case.folder)) for each in INPUTS), "-o", "json"]
    )
    if status == 2 or not json.loads(out):
        raise DifferenceError(f"validate: {status} {err}")


def _flat(case: Case) -> None:
    """Keys of an experiment tracker: one for each class that has a value."""
    keys = []
    for each in (case.vocabulary, case.plain):
        evaluation = boxscore.evaluate(*tables(each))
        keys.append(list(flat_metrics(evaluation, per_class=True).values()))
        frame = evaluation.per_class
        if len(set(frame["class"])) != len(frame):
            raise DifferenceError(f"per_class: {frame['class'].tolist()}")
    if keys[0] != keys[1]:
        raise DifferenceError("flat_metrics: other values")


CHECKS: dict[str, Check] = {
    **{f"{name} as {form}": _printed(name, form) for name in COMMANDS for form in FORM_NAMES},
    **{
        f"through {name}": _through(name)
        for name in writable_formats()
        if len(format_named(name).holds) == 2  # both sides
    },
    "--classes": _chosen_by_label,
    "bounds of check": _bound,
    "nms and fuse": _nms,
    "groups": _groups,
    "convert --classes": _convert,
    "class map from": _mapped("from"),
    "class map to": _mapped("to"),
    "draw": _draw,
    "validate": _validate,
    "report": _report,
    "flat metrics": _flat,
}
FORMAT_CHECKS = [name for name in CHECKS if name.startswith("through ")]
OTHERS = [name for name in CHECKS if name not in FORMAT_CHECKS]


class Finding(NamedTuple):
    """What is wrong with a check of a case."""

    case: int
    check: str
    text: str


def checks_of(case: int, *, every: bool, together: int) -> Iterator[str]:
    """Every format, and some of the other checks in turn."""
    yield from FORMAT_CHECKS
    if every:
        yield from OTHERS
    else:
        yield from itertools.islice(itertools.cycle(OTHERS), case * together % len(OTHERS), None)


def try_case(
    number: int, folder: Path, plain_folders: Path, *, every: bool = False, together: int = 2
) -> tuple[Counter[str], Counter[str], list[Finding]]:
    """Return the checks that were made, the refusals, and what was found."""
    made, refused, findings = Counter[str](), Counter[str](), list[Finding]()
    own = vocabulary(number)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = (
        list(checks_of(number, every=True, together=0))
        if every
        else list(
            itertools.islice(checks_of(number, every=False, together=together), len(FORMAT_CHECKS) + together)
        )
    )
    try:
        case = Case(own, folder, plain_folders)
    except InputError as error:
        return made, refused, [Finding(number, "tables", str(error))]
    for name in names:
        made[name] += 1
        try:
            CHECKS[name](case)
        except RefusedError as refusal:
            refused[f"{name.partition(' as ')[0]}: {refusal}"] += 1
        except DifferenceError as difference:
            findings.append(Finding(number, name, str(difference)))
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            findings.append(Finding(number, name, "".join(traceback.format_exception(error)[-4:])))
    return made, refused, findings


def try_cases(numbers: Sequence[int], *, every: bool, together: int, seconds: float = 0) -> int:
    """Try cases, and print what was found; return 1 where something was."""
    made, refused, findings = Counter[str](), Counter[str](), list[Finding]()
    start, done = time.monotonic(), 0
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as root, warnings.catch_warnings(), unsynced():
        warnings.simplefilter("ignore")
        for number in numbers:
            more = try_case(number, Path(root, "case"), Path(root, "plain"), every=every, together=together)
            for total, part in zip((made, refused), more[:2], strict=True):
                total.update(part)
            findings += more[2]
            done += 1
            for finding in more[2]:
                text = f"case {finding.case} {vocabulary(finding.case)}\n  {finding.check}: {finding.text}"
                print(text.encode("ascii", "backslashreplace").decode(), flush=True)
            if done % 500 == 0:
                print(
                    f"{done:,} vocabularies, {sum(made.values()):,} checks, {len(findings)} differences, "
                    f"{time.monotonic() - start:.0f} s",
                    flush=True,
                )
            if seconds and time.monotonic() - start > seconds:
                break
    print(
        f"{done:,} vocabularies, {sum(made.values()):,} checks ({len(made)} kinds, each {min(made.values()):,} "
        f"times or more), {sum(refused.values()):,} refusals with a reason, {len(findings)} differences, "
        f"{time.monotonic() - start:.0f} s"
    )
    for text, times in refused.most_common():
        print(f"  {times:6,} {text[:180]}".encode("ascii", "backslashreplace").decode())
    return int(bool(findings))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first case is this many millions")
    parser.add_argument("--case", type=int, help="one case, every check")
    parser.add_argument("--every", action="store_true", help="every check of every case")
    parser.add_argument("--together", type=int, default=2, help="checks of a case beside the formats")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this long")
    return parser.parse_args()


if __name__ == "__main__":
    given = parsed()
    first = given.seed * 1_000_000
    chosen = range(first, first + given.cases) if given.case is None else [given.case]
    sys.exit(
        try_cases(
            chosen,
            every=given.every or given.case is not None,
            together=given.together,
            seconds=given.seconds,
        )
    )
