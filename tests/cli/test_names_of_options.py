"""Messages name an option as it is typed; what Python calls it stands in brackets, which the commands leave out."""

from __future__ import annotations

import argparse
import ast
import functools
import re
from pathlib import Path

import pytest

from boxscore import cli
from boxscore.cli import COMMANDS, _with_own_options, load_command
from boxscore.cli.arguments import EVERYWHERE
from boxscore.cli.streams import as_typed
from support import sources
from support.running import Run
from support.sources import FILES, last_name

PYTHON_ONLY = (
    *(
        "training",
        "compat",
        "plots",
        "model_objects",
        "samples",
        "naming",
        "frames",
        "frame_like",
        "_ranked",
    ),
    "digest",  # which translates
)
"""Modules whose messages no command prints."""

ARGUMENTS = {option.name.replace("-", "_") for name in COMMANDS for option in load_command(name).options}
ARGUMENTS -= {"title", "name", "area", "class"}  # which mean other things too

NAMED = re.compile(rf"\b(?<!-)({'|'.join(sorted(ARGUMENTS))})=(?!(?:flag|none)\b)(?![=A-Za-z0-9/{{]*[,}}])")
"""Which leaves out roles of columns, as in ``--gt-columns crowd=flag``."""


def messages(file: str) -> list[str]:
    """Texts of a module that are sentences: no docstrings, and no names."""
    nodes = sources.nodes_of(file)
    documented = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
        if " " in node.value and "\n" not in node.value and not node.value.startswith("<")  # markup
    ]


@pytest.mark.long
def test_arguments_of_python_stand_in_brackets() -> None:
    named = [
        (file, text)
        for file in FILES
        if not any(part in PYTHON_ONLY for part in Path(file).with_suffix("").parts)
        for text in messages(file)
        if NAMED.search(as_typed(f" {text}")) and "deprecated" not in text
    ]
    assert named == []


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("See --class-map (in Python class_map=).", "See --class-map."),
        ("or --image-sizes WxH (in Python image_folder= or image_sizes=)", "or --image-sizes WxH"),
        ("a line each (in Python, class_map= takes a mapping)", "a line each"),
        ("use Detections.from_arrays in Python", "use Detections.from_arrays in Python"),
    ],
)
def test_what_is_typed(text: str, typed: str) -> None:
    assert as_typed(text) == typed


def test_a_command_names_its_option(tmp_path: Path, run: Run) -> None:

    truth, results = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(
        '{"images": [{"id": 1}], "categories": [{"id": 1, "name": "cat"}], '
        '"annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}]}'
    )
    results.write_text('[{"image_id": 2, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.5}]')
    message = " ".join(run.error("evaluate", truth, results).split())
    assert "--unlisted-images drop ignores this image, background adds it" in message
    assert "in Python" not in message


YOLO = "0 0.5 0.5 0.2 0.2 0.3\n0 0.4 0.5 0.2 0.2 0.3\n"
TABLE = "foo,bar,x1,y1,x2,y2\na,b,1,2,3,4\n"
SECOND_ROW = "image,class,score,x1,y1,x2,y2\na,b,.5,1,2,3,4\na,b,nan,1,2,3,4\n"


@pytest.mark.parametrize(
    "words",
    [
        "nms IN -o OUT --iou-threshold .5",
        "fuse IN IN -o OUT",
        "evaluate IN IN",
        "stats IN",
        "validate IN IN",
        "compare IN IN IN",
        "suspects IN IN",
        "convert --gt IN --to coco -o OUT",
    ],
)
@pytest.mark.parametrize(("name", "content"), [("p/a.txt", YOLO), ("t.csv", TABLE), ("u.csv", SECOND_ROW)])
def test_a_command_has_every_option_that_its_messages_name(
    name: str, content: str, words: str, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    given = str(file if file.suffix == ".csv" else file.parent)
    typed = [{"IN": given, "OUT": str(tmp_path / "out.json")}.get(word, word) for word in words.split()]
    printed = run(*typed, status=(0, 1, 2)).err
    command = typed[0]
    known = {option.name for option in (*load_command(command).options, *EVERYWHERE)} | {"help"}
    # What "boxscore convert" has, or another command, is named with it.
    for line in printed.splitlines():
        advice = re.sub(r"boxscore [a-z]+ has no --[a-z-]+", "", line).partition("boxscore convert ")[0]
        named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]*[a-z])", advice))
        assert named <= known, line


def test_an_option_that_the_command_lacks_is_not_advised(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    said = run.error("nms", tmp_path / "t.csv", "-o", tmp_path / "o.csv", "--iou-threshold", "0.5")
    assert said.endswith("--columns image=NAME class=NAME, and score=NAME for detections.\n")


FRACTIONS = "0 0.5 0.5 0.2 0.2\n"
UNKNOWN = "image,class,score,x1,y1,x2,y2\na,zebra,.9,1,2,3,4\n"
TINY = (
    '{"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 0, "name": "cat"}], "annotations": '
    '[{"id": 1, "image_id": 1, "category_id": 0, "bbox": [1, 2, 30, 40], "area": 1200, "iscrowd": 0}]}'
)


@pytest.mark.parametrize(
    "words",
    [
        "evaluate GT IN",
        "validate GT IN",
        "compare GT IN IN",
        "check GT IN --min AP=0",
        "suspects GT IN",
        "stats GT",
        "stats IN",
        "nms IN -o OUT --iou-threshold .5",
        "fuse IN IN -o OUT",
        "convert --gt GT --dt IN --to coco -o OUT",
    ],
)
@pytest.mark.parametrize(
    ("name", "content"),
    [("p/a.txt", FRACTIONS), ("p/a.txt", YOLO), ("u.csv", UNKNOWN), ("t.csv", SECOND_ROW)],
)
def test_a_command_has_every_option_that_its_warnings_name(
    name: str, content: str, words: str, tmp_path: Path, run: Run
) -> None:
    """Also of the findings after the numbers; one that a command lacks is named only with one that has it."""
    (tmp_path / "gt.json").write_text(TINY)
    words = words.replace("GT", str(tmp_path / "gt.json"))
    test_a_command_has_every_option_that_its_messages_name(name, content, words, tmp_path, run)


KNOWN = argparse.Namespace(images=None, dt_box_format=None)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        # Options that the command has, or that are those of another command.
        ("x: all boxes are odd. Use --dt-box-format xyxy.", None),
        ("x: odd. See boxscore evaluate --class-map.", None),
        # A sentence, or the last part of one, before others and after them.
        (
            "x: no class. If classes differ, use --class-map. See the docs.",
            "x: no class. boxscore nms has no --class-map, boxscore convert has it: convert the file to COCO "
            "first. See the docs.",
        ),
        (
            "x must be y. Got z; use --max-detections 100.",
            "x must be y. Got z; boxscore nms has no --max-detections, boxscore evaluate has it.",
        ),
        # Two of them.
        (
            "x: odd. Use --max-detections 5. Or use --allow x.",
            "x: odd. boxscore nms has no --max-detections, boxscore evaluate has it. boxscore nms has no "
            "--allow, boxscore evaluate has it.",
        ),
        # The option is what the message is about.
        ("--class-map must be a file. Got nothing.", None),
    ],
)
def test_advice_with_an_option_that_the_command_lacks(text: str, printed: str | None) -> None:
    assert _with_own_options(text, "nms", KNOWN) == (printed or text)


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("command", ["evaluate", "check", "suspects", "report"])
def test_quiet_hides_no_error_of_the_input(
    command: str, quiet: bool, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the report goes
    """All detections are of unknown classes, which validate calls an error."""
    (tmp_path / "gt.json").write_text(TINY)
    (tmp_path / "u.csv").write_text(UNKNOWN)
    further = ["--min", "AP=0"] if command == "check" else []
    printed = run(
        command, tmp_path / "gt.json", tmp_path / "u.csv", *further, *["-q"] * quiet, status=(0, 1)
    ).err
    assert "error in the input: " in printed
    assert "No detection remains" in printed


@pytest.mark.parametrize("words", ["evaluate GT IN", "convert --gt GT --dt IN --to coco -o OUT"])
def test_predictions_of_yolo_without_confidence_are_said(words: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.txt").write_text(FRACTIONS)
    (tmp_path / "gt.json").write_text(TINY.replace('"a.jpg"', '"a.jpg", "width": 200, "height": 100'))
    paths = {"GT": tmp_path / "gt.json", "IN": tmp_path / "p", "OUT": tmp_path / "out"}
    printed = run(*(str(paths.get(word, word)) for word in words.split()), status=(0, 1)).err
    assert "note: " in printed
    assert "no line has a confidence" in printed
    assert "save_txt=True save_conf=True" in printed


def advising() -> list[str]:
    """Messages that name options, as they are typed, without help; values in them are ``X``."""
    texts = []
    for file in FILES:
        if any(part in PYTHON_ONLY for part in Path(file).with_suffix("").parts):
            continue
        nodes = sources.nodes_of(file)
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        helps = [
            node for node in nodes if isinstance(node, ast.Call) and last_name(node) in ("Option", "but")
        ]
        within = {id(part) for node in (*joined, *helps) for part in ast.walk(node) if part is not node}
        for node in nodes:
            pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "X" for one in pieces)
            if (
                id(node) not in within
                and isinstance(node, (ast.Constant, ast.JoinedStr))
                and "\n" not in text
            ):
                texts.append(as_typed(f" {text}").strip())
    return [text for text in texts if OPTION.search(text)]


OPTION = re.compile(r"(?<![\w-])--(?!help|version|print-completion)([a-z][a-z-]*[a-z])")
OF_COMMAND = re.compile(r"boxscore ([a-z][a-z-]+)((?:(?!boxscore|which)(?:[^;:.]|[.:](?! |$)))*)")


@pytest.mark.long
def test_no_command_prints_advice_with_options_that_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any command may print any message: it has the options in it, or a command named before them has."""
    monkeypatch.setattr(
        cli, "_names_of_options", functools.cache(cli._names_of_options)
    )  # asked 30,000 times
    known = {
        name: {flag.lstrip("-") for one in (*load_command(name).options, *EVERYWHERE) for flag in one.flags}
        for name in COMMANDS
    }
    # The option of another command is named after boxscore run.
    texts = [text for text in advising() if "to boxscore run, a protocol" not in text]
    assert len(texts) > 400
    for text in texts:
        for command, words in OF_COMMAND.findall(text):
            assert {*OPTION.findall(words)} <= known.get(command, {*OPTION.findall(words)}), text
        assert {*OPTION.findall(OF_COMMAND.sub("", text))} <= set().union(*known.values()), text
    for command, own in known.items():
        arguments = argparse.Namespace(**dict.fromkeys(name.replace("-", "_") for name in own))
        for text in texts:
            printed = _with_own_options(f"x must be y. Got z; {text.rstrip('.')}.", command, arguments)
            advice = OF_COMMAND.sub("", printed)
            assert {*OPTION.findall(advice)} <= own, printed
