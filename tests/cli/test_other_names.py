"""Names of commands that people guess: each runs a command, or prints a call that the parser accepts."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from boxscore.cli import COMMANDS, command_parser, load_command, main
from boxscore.cli.other_names import HINTS, SYNONYMS, hints_for, words_of_synonym
from support.running import Run
from support.samples import DT, GT


def accepted(words: list[str]) -> None:
    """Fail unless a command takes these words."""
    name, *rest = words
    command_parser(name, load_command(name, rest)).parse_args(rest)


def test_no_name_is_in_two_tables() -> None:
    assert not {*SYNONYMS} & {*COMMANDS}
    assert not {*HINTS} & {*COMMANDS, *SYNONYMS}


@pytest.mark.parametrize("name", SYNONYMS)
def test_a_synonym_names_a_command_and_its_options(name: str) -> None:
    command, *words = SYNONYMS[name].split()
    if command not in ("--help", "--version"):
        options = load_command(command).options
        named = {value for option in options if option.positional for value in option.known()}
        assert {*words} <= named | {flag for option in options for flag in option.flags}


@pytest.mark.parametrize(
    "name", [*HINTS, "coco2yolo", "yolo2coco", "voc2coco", "coco-to-csv", "labelme2coco"]
)
def test_a_hint_holds_whole_commands(name: str) -> None:
    for hint in hints_for([name]):
        what, _, call = hint.partition(": boxscore ")
        assert what
        accepted(shlex.split(call))
    assert hints_for([name])


def test_a_hint_names_the_files_that_were_typed() -> None:
    assert hints_for(["plots", "a b.json", "--quiet", "dt.json"])[1] == (
        "All plots, in boxscore-report/plots: boxscore report 'a b.json' dt.json --plots png"
    )
    assert hints_for(["soft_nms", "raw.json"])[0].startswith("Soft NMS: boxscore nms --dt raw.json --output")
    assert hints_for(["coco2nothing"]) == hints_for(["nonsense"]) == []


@pytest.mark.parametrize(
    ("typed", "call"),
    [
        (["tide", GT, DT], ["errors", GT, DT]),
        (["Confusion_Matrix", GT, DT], ["confusion", GT, DT]),
        (["per-class", GT, DT, "--top", "2"], ["evaluate", "--per-class", GT, DT, "--top", "2"]),
        (["threshold", GT, DT], ["operating-points", GT, DT]),
        (["readings", GT, DT], ["compare-protocols", GT, DT]),
        (["slices", GT, DT], ["slices", GT, DT, "--by", "size"]),
        (["help", "tide"], ["errors", "--help"]),
        (["version"], ["--version"]),
        (["evaluate", GT, DT, "--iou", ".3"], ["evaluate", GT, DT, "--iou-thresholds", ".3"]),
        (["evaluate", GT, DT, "--conf", ".3"], ["evaluate", GT, DT, "--score-threshold", ".3"]),
        (["errors", GT, DT, "--iou", ".3"], ["errors", GT, DT, "--iou-threshold", ".3"]),
        (["confusion", GT, DT, "--conf", ".3"], ["confusion", GT, DT, "--score-threshold", ".3"]),
    ],
)
def test_another_name_prints_the_same(typed: list[str], call: list[str], run: Run) -> None:
    assert run(*typed) == run(*call)


def test_names_are_not_listed_but_the_help_says_that_there_are_some(run: Run) -> None:
    text = run("--help").out
    assert "\n  tide" not in text
    assert "boxscore tide runs errors" in " ".join(text.split())
    assert words_of_synonym([]) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_options_of_a_synonym_are_completed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    (line,) = (line for line in script.splitlines() if "|tide|" in line or line.strip().startswith("tide|"))
    assert line.strip().endswith("command=errors ;;")


# ---------------------------------------------------------------- commands without options


def test_explain_without_options_lists_every_tool(run: Run) -> None:
    output, errors = run("explain", GT, DT)
    assert output.startswith("AP of every known tool on these files, nearest to coco first\n")
    assert "\ncoco " in output
    assert "Why two tools differ: boxscore explain GT DT --from " in errors


def test_draw_without_options_writes_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    output = run("draw", str(Path(GT).resolve()), str(Path(DT).resolve()), "--worst", "2").out
    assert [line.split("_")[0] for line in output.splitlines()] == ["drawn/001", "drawn/002"]
