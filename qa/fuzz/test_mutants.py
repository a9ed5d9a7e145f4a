"""Short runs of the structured mutants of columns, XML and answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from boxscore.extensions.scoreless._answer_text import ReadAnswer, read_answer
from fuzz import answer_mutants, archive_mutants, json_mutants, xml_mutants
from fuzz.mutants import main as run_mutants

CAT = '{"bbox_2d": [100, 50, 300, 200], "label": "cat"}'


@pytest.mark.parametrize("kind", ["gt", "dt"])
def test_mutants_are_refused_or_are_what_they_say(kind: str, tmp_path: Path) -> None:
    good = archive_mutants.prepare(tmp_path)
    outcomes = [
        archive_mutants.one(
            np.random.default_rng([3, number]), {kind: good[kind]}, tmp_path, commands=float(number == 0)
        )
        for number in range(60)
    ]
    assert 5 < outcomes.count("taken") < 40


def test_mutants_of_xml_are_refused_or_are_what_they_say(tmp_path: Path) -> None:
    xml_mutants.prepare(tmp_path)
    outcomes = [xml_mutants.one(np.random.default_rng([3, number]), None, tmp_path) for number in range(60)]
    assert 2 < outcomes.count("taken") < 40


@pytest.mark.filterwarnings("ignore::boxscore.errors.BoxscoreWarning")
def test_mutants_of_json_are_read_or_refused(tmp_path: Path) -> None:
    good = json_mutants.prepare(tmp_path)
    outcomes = [json_mutants.one(np.random.default_rng([3, number]), good, tmp_path) for number in range(80)]
    assert 5 < outcomes.count("taken") < 50


def test_the_program_that_runs_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_mutants(["xml", "--count", "20"]) == 0
    assert re.search(r"^20 mutants, .* refused, .*\n0 faults in 0 places", capsys.readouterr().out)


@pytest.mark.long
def test_mutants_of_answers_are_read_or_refused(tmp_path: Path) -> None:
    answers = answer_mutants.prepare(tmp_path)
    statuses = {
        answer_mutants.one(np.random.default_rng([11, number]), answers, tmp_path) for number in range(300)
    }
    assert statuses >= {"read", "repaired", "truncated", "unreadable"}
    assert {answer_mutants.check(answer) for answer in answers} == {"read", "repaired"}


def test_a_box_counted_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(text: str, *, loose: bool = False) -> ReadAnswer:
        read = read_answer(text, loose=loose)
        return read._replace(boxes=read.boxes * 2)

    monkeypatch.setattr(answer_mutants, "read_answer", twice)
    with pytest.raises(AssertionError, match="2 times, there 1 times"):
        answer_mutants.check(f"[{CAT}]")
