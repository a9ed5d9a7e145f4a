"""A run configuration says in TOML what the options of evaluate say: the same types, choices and defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxscore.cli import command_parser, load_command, main
from boxscore.cli.arguments import EVERYWHERE, Option
from boxscore.errors import ProtocolError
from boxscore.extensions.shell.run_command import known_keys, read_config
from support.running import Run
from support.samples import DT, GT

PATHS = f"[ground_truth]\npath = {GT!r}\n[detections]\npath = {DT!r}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "run.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_paths_alone_is_the_command_without_options(tmp_path: Path) -> None:
    parser = command_parser("evaluate", load_command("evaluate"))
    parsed = vars(parser.parse_args(["--gt", GT, "--dt", DT]))
    for option in EVERYWHERE:
        del parsed[option.dest]
    assert vars(read_config(write(tmp_path, PATHS))) == parsed


def test_every_option_of_evaluate_is_a_key() -> None:
    assert [option.name for option in load_command("evaluate").options if not option.key] == []
    tables = known_keys()
    assert list(tables) == ["ground_truth", "detections", "evaluation", "output"]


def keyed() -> list[Option]:
    return [option for options in known_keys().values() for option in options.values()]


@pytest.mark.parametrize("option", [option for option in keyed() if option.known()], ids=lambda o: o.key)
def test_choices_are_the_same_in_both(option: Option, tmp_path: Path) -> None:
    parser = command_parser("evaluate", load_command("evaluate"))
    table, key = option.key.split(".")
    for choice in option.known():
        parsed = parser.parse_args(["--gt", GT, "--dt", DT, f"--{option.name}", choice])
        text = f"[{table}]\n{key} = {choice!r}\n"
        merged = PATHS.replace(f"[{table}]\n", text) if f"[{table}]" in PATHS else PATHS + text
        config = read_config(write(tmp_path, merged))
        assert getattr(config, option.dest) == getattr(parsed, option.dest) == choice


def test_columns_in_a_run_configuration(tmp_path: Path, run: Run) -> None:
    """``format = "columns"`` was refused, because its choices stood in a second place."""
    columns = tmp_path / "gt.npz"
    run("convert", "--gt", GT, "--output", columns)
    config = write(
        tmp_path,
        f'[ground_truth]\npath = "gt.npz"\nformat = "columns"\n[detections]\npath = {DT!r}\n[output]\nform = "json"\n',
    )
    assert json.loads(run("run", config).out)["counts"]["images"] == 24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[output]\ngallery = 1.5\n", "output.gallery must be a whole number. Got 1.5."),
        ("[output]\ngallery = true\n", "output.gallery must be a whole number. Got True."),
        ("[output]\nverify = 1\n", "output.verify must be true or false. Got 1."),
        ("[output]\nplots = 'gif'\n", "output.plots must be one of 'png', 'svg', 'pdf'. Got 'gif'"),
        ("[output]\nreport = 3\n", "output.report must be a string. Got 3."),
        ("[evaluation]\nimages = 3\n", "evaluation.images must be a list. Got 3."),
        ("[evaluation]\niou_type = 'box'\n", "did you mean 'bbox'?"),
    ],
)
def test_values_of_the_wrong_kind(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_config(write(tmp_path, PATHS + text))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'run.toml'}: ")


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = PATHS.replace("[detections]", "image_set = 'sets/a.txt'\n[detections]")
    text += "[evaluation]\nprotocol = '../mine.toml'\n[output]\nreport = 'out'\nimage_folder = ''\n"
    config = read_config(write(tmp_path, text))
    assert config.report == tmp_path / "out"
    assert config.image_set == str(tmp_path / "sets" / "a.txt")
    assert config.protocol == str(tmp_path.parent / "mine.toml")
    assert config.image_folder is None
    named = read_config(write(tmp_path, PATHS.replace("[detections]", "image_set = 'test'\n[detections]")))
    assert named.image_set == "test"


def test_messages_name_the_key_of_a_run_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(write(tmp_path, PATHS + "[evaluation]\nmax_detections = [-1]\n"))]) == 2
    message = "evaluation.max_detections must be a whole number >= 1. Got -1."
    assert capsys.readouterr().err == f"boxscore: error: {message}\n"
