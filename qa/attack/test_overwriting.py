"""Every output of every command, given a file that the command reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from attack import overwriting
from boxscore._utils.given_paths import path_of

LINKED = [pair for pair in overwriting.pairs() if pair.other.kind in (Path, path_of)]


def test_outputs_and_inputs_are_found() -> None:
    """What is tried is derived from the options: were none found, nothing would fail."""
    names = {(pair.command, pair.output.name, pair.other.name) for pair in LINKED}
    assert len(names) == len(LINKED) > 180
    assert {
        ("evaluate", "output", "detections"),
        ("evaluate", "save-part", "hierarchy"),
        ("check", "history", "no-regression"),
        ("check", "junit", "history"),
        ("convert", "output-image-labels", "remap-classes"),
        ("sweep", "plot", "ground-truth"),
        ("panoptic", "report", "dt-folder"),
        ("merge", "output", "parts"),
    } <= names


@pytest.mark.parametrize("command", sorted({pair.command for pair in LINKED}))
def test_every_output_on_every_input(command: str, tmp_path: Path) -> None:
    faults = []
    for number, pair in enumerate(pair for pair in LINKED if pair.command == command):
        kind = ("hard link", "symbolic link", "same")[number % 3]
        (tmp_path / str(number)).mkdir()
        faults.append(overwriting.fault_of(pair, kind, tmp_path / str(number)))
    assert set(faults) == {""}
