"""What a stranger reads: the help, two lines for a wrong call, completion."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from boxscore.cli import COMMANDS, GROUPS, command_parser, load_command
from boxscore.cli.parser import documentation
from support.each import each
from support.running import Run
from support.samples import DT, GT


def test_commands_are_grouped_by_task() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(set(names)) == len(names)
    assert set(names) == set(COMMANDS)
    assert next(iter(GROUPS)) == "getting started"


@pytest.mark.parametrize("columns", ["40", "60", "80", "160"])
def test_the_help_fits(columns: str, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for call in ([], ["evaluate"], ["convert"], ["sweep"]):
        lines = run(*call, "--help").out.splitlines()
        assert [line for line in lines if len(line) > max(int(columns), 58)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_whole_help_names_every_option_once(name: str, run: Run) -> None:
    output = run(name, "--help-all").out
    for option in load_command(name).options:
        if not option.positional:
            assert len(re.findall(rf"^  (?:--?[\w-]+, )?--{option.name}\b(?!-)", output, re.MULTILINE)) == 1
    assert "{auto,coco" not in output


def test_the_help_of_evaluate_fits_a_screen(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """What most people need, and where the rest is."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("evaluate", "--help").out.splitlines()
    assert len(lines) <= 47
    options = [line for line in lines if line.startswith("  -")]
    assert 15 <= len(options) <= 25
    assert "42 more options in boxscore evaluate --help-all" in lines[-3]  # after which the topics follow
    assert [line for line in lines if line.startswith(" " * 28)] == []  # each option in one line
    assert "--memory-limit" not in "".join(options)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_names_every_option_without_a_topic(name: str, run: Run) -> None:
    """Those that evaluate explains are only named."""
    text = run(name, "--help").out
    for option in load_command(name).options:
        if not option.positional and not option.topic:
            assert re.search(rf"--{option.name}\b(?!-)", text), option.name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_short_help_says_how_many_options_it_leaves_out(name: str, run: Run) -> None:
    text = run(name, "--help").out
    left_out = [option for option in load_command(name).options if option.topic]
    assert (f"{len(left_out)} more option" in text) == bool(left_out)


@each(COMMANDS)
def test_examples_are_calls(name: str) -> None:
    """Every example is accepted by the parser it stands in."""
    from boxscore.cli.help import _parts

    command = load_command(name)
    for line in _parts(command.description)[1]:
        words = shlex.split(line)
        assert words[:2] == ["boxscore", name]
        command_parser(name, command).parse_args(words[2:])


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_have_no_blanks_in_a_row(name: str, run: Run) -> None:
    about = run(name, "--help").out.partition("\nexamples\n")[2].partition("\n\n")[0]
    assert [line for line in about.splitlines() if "  " in line.strip()] == []


def test_a_long_example_is_continued_before_its_options(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert (
        "  boxscore explain boxes.csv predictions.csv --image-labels labels.csv \\\n"
        "      --hierarchy hierarchy.json --from openimages-challenge --expansions\n"
    ) in run("explain", "--help").out


def test_defaults_are_shown(run: Run) -> None:
    for name in COMMANDS:
        output = " ".join(run(name, "--help-all").out.partition("\n\n  GT")[2].split())
        for option in load_command(name).options:
            if option.kind is not bool and option.default not in (None, "", ()) and not option.required:
                text = output.partition(f"--{option.name} ")[2][:400]
                assert not output or "default" in text, (name, option.name)


LOADED = """
import json, sys
from boxscore.cli import COMMANDS, load_command
texts = {}
for name in COMMANDS:
    command = load_command(name)
    texts[name] = [command.description.strip(), *(option.help for option in command.options)]
print(json.dumps([texts, sorted(sys.modules)]))
"""


def loaded(*flags: str) -> tuple[dict[str, list[str]], set[str]]:
    """Every text of the helps, and the modules that a process has imported for them."""
    call = [sys.executable, *flags, "-c", LOADED]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=120)
    texts, modules = json.loads(done.stdout)
    return texts, set(modules)


@pytest.mark.long
def test_the_help_needs_neither_docstrings_nor_large_packages() -> None:
    """``python -OO`` leaves docstrings out; pandas, or the network behind XML, take longer than the help."""
    texts, modules = loaded()
    assert all(text for each in texts.values() for text in each)
    assert loaded("-OO")[0] == texts
    large = {"pandas", "matplotlib", "pyarrow", "PIL", "jinja2", "ssl", "urllib.request", "statistics"}
    assert modules & large == set()


def test_documentation_without_a_source_is_empty() -> None:
    namespace: dict[str, Any] = {}
    exec("def undocumented(): pass", namespace)
    assert documentation(namespace["undocumented"]) == ""


# ---------------------------------------------------------------- wrong calls

INPUT = [GT, DT]


@pytest.mark.parametrize(
    ("call", "first", "second"),
    [
        (["evalute"], "unknown command 'evalute'; did you mean 'evaluate'?", "boxscore --help lists the commands."),
        (["nonsense"], "unknown command 'nonsense'.", "boxscore --help lists the commands."),
        (INPUT, f"unknown command {GT!r}.", "To score detections: boxscore evaluate GT DT; boxscore --help lists all commands."),
        (["--verson"], "unknown option --verson; did you mean --version?", "boxscore --help lists the commands."),
        (["evaluate", *INPUT, "--per-clas"], "evaluate does not take --per-clas; did you mean --per-class?", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--iou-t", ".5"], "evaluate does not take --iou-t; did you mean --iou-type or --iou-thresholds?", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--xyzzy=3"], "evaluate does not take --xyzzy.", "See boxscore evaluate --help for its options."),
        (["evaluate", GT], "evaluate needs --detections/--dt.", "For example: boxscore evaluate GT DT. See boxscore evaluate --help."),
        (["run"], "run needs config.", "See boxscore run --help for its options."),
        (["evaluate", *INPUT, "--ignore-classes", "cat"], "evaluate does not take --ignore-classes; did you mean --exclude-classes?", "See boxscore evaluate --help for its options."),
        (["verify", *INPUT], "unknown command 'verify'.", f"Compare every value with pycocotools: boxscore evaluate {GT} {DT} --verify"),
        (["coco2yolo", GT], "unknown command 'coco2yolo'.", f"Convert: boxscore convert {GT} --to yolo --output converted"),
        (["yolo_to_coco"], "unknown command 'yolo_to_coco'.", "Convert: boxscore convert GT --to coco --output converted.json"),
        (["evaluate", *INPUT, "--workers", "two"], "--workers must be a whole number. Got 'two'.", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--workers"], "--workers needs a value.", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--max-detections", "1,x"], "--max-detections must be a whole number. Got '1,x'.", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--iou-type", "box"], "--iou-type must be one of bbox, segm, boundary, keypoints. Got 'box'; did you mean 'bbox'?", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--output", "jsn"], "--output must be text, json, csv, markdown, latex, or a file name that ends in .txt, .json, .csv, .md, .tex. Got 'jsn'; did you mean 'json'?", "See boxscore evaluate --help for its options."),
        (["evaluate", *INPUT, "--output", "out/a"], "--output must be text, json, csv, markdown, latex, or a file name that ends in .txt, .json, .csv, .md, .tex. Got 'out/a'; --report DIR writes a folder.", "See boxscore evaluate --help for its options."),
        (["check", *INPUT, "--baseline", "a.json"], "check does not take --baseline; did you mean --no-regression or --baseline-detections?", "See boxscore check --help for its options."),
        (["operating-points", *INPUT, "--guarantee", "recall"], "--guarantee must be recall=R, precision=P or fppi=N, each with a number. Got 'recall'; for example --guarantee recall=0.9.", "See boxscore operating-points --help for its options."),
        (["operating-points", *INPUT, "--curve", "--at-score", ".5"], "--at-score and --curve cannot be used together.", "See boxscore operating-points --help for its options."),
    ],
)  # fmt: skip
def test_two_lines(call: list[str], first: str, second: str, run: Run) -> None:
    output, errors = run(*call, status=2)
    assert output == ""
    assert errors == f"boxscore: error: {first}\n{second}\n"


def test_a_format_that_is_none(run: Run) -> None:
    wrong, known = run.error("evaluate", *INPUT, "--format", "coc").splitlines()
    assert wrong == "boxscore: error: --format does not take 'coc'; did you mean 'coco'?"
    assert known.startswith("Possible values: auto, coco, csv, ")
