"""Rules act on matching at eight points: what they name is there, and is called as the table says."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import get_args

import pytest

from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.acting import Does, Point
from boxscore.protocols.fields import all_fields
from boxscore.protocols.protocol import DOES, Protocol
from support.insides import POINTS, functions_at
from support.running import Run


def test_the_table_has_every_point_in_order() -> None:
    assert tuple(POINTS) == get_args(Point)
    assert len(POINTS) <= 8


@pytest.mark.parametrize("does", DOES, ids=lambda does: f"{does.point}-{does.function.rpartition(':')[2]}")
def test_a_function_takes_what_its_point_passes(does: Does) -> None:
    """So that a rule that names a function of another point fails here, not in somebody's evaluation."""
    module, _, name = does.function.partition(":")
    __import__(module)
    function = getattr(sys.modules[module], name)
    assert ", ".join(inspect.signature(function).parameters) == POINTS[does.point].parameters


def test_every_function_runs_under_a_shipped_protocol() -> None:
    protocols = [load_protocol(name) for name in protocol_names()]
    # Regions are given with the data, so no shipped protocol has them.
    protocols.append(load_protocol({"extends": "coco", "ignore": {"within": "center"}}))
    idle = {does.function for does in DOES if not any(does.when(protocol) for protocol in protocols)}
    assert idle == set()


def test_functions_of_a_point_run_by_their_order() -> None:
    protocol = load_protocol("widerface")
    assert [does.order for does in protocol.does["prepare"]] == [-10, 10]
    assert [function.__name__ for function in functions_at("prepare", protocol)] == [
        "check_ranked",
        "stretched",
    ]


def test_cocos_own_rules_act_at_no_point() -> None:
    assert load_protocol("coco").does == {}


def test_naming_a_function_imports_nothing() -> None:
    command = [
        sys.executable,
        "-c",
        "import sys, boxscore.protocols as p; p.load_protocol('coco'); "
        "print(sum('boxscore.matching' in name for name in sys.modules))",
    ]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "0\n"


def test_the_command_prints_what_acts(run: Run) -> None:
    out = run("protocols", "visdrone", "--stages").out
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["prepare", "matching.ranked_files"],
        ["prepare", "ignore.regions"],
        ["after", "ap.recall_over"],
    ]
    assert run("protocols", "coco", "--stages").out == (
        "coco: only rules that every protocol has affect matching.\n"
    )


def test_no_rule_names_a_function_of_two_points() -> None:
    for field in all_fields(Protocol):
        functions = [does.function for does in field.rule.does]
        assert len(set(functions)) == len(functions)
