"""Messages name an option as it is typed; what Python calls it stands in brackets, which the commands leave out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from boxscore.cli import COMMANDS, load_command
from boxscore.cli.arguments import EVERYWHERE
from boxscore.cli.streams import as_typed
from support import sources
from support.running import Run
from support.sources import FILES

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
ARGUMENTS -= {"title", "name", "area"}  # which mean other things too

NAMED = re.compile(rf"\b(?<!-)({'|'.join(sorted(ARGUMENTS))})=(?![=A-Za-z0-9/{{]*[,}}])")


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
    assert said.endswith(
        "in "
        f"{tmp_path / 't.csv'}; boxscore nms has no --columns, boxscore convert has it: convert the file to "
        "COCO first.\n"
    )
