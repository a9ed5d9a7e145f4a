"""The attack itself: mutants are the same every time, faults are noticed, and kept cases stay mended."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from attack import mutants
from attack.engine import acceptance, children
from attack.engine.judging import Verdict, judge
from attack.engine.mutant import Judged, Mutant, Reader
from attack.readers import READERS, coco
from support.each import each

CASES = sorted(mutants.CASES.glob("*.json"))
SLOW = ("bootstrap", "compare", "confusion", "draw", "errors", "explain", "report", "suspects", "sweep")
"""Commands that import pandas or matplotlib; ``make attack`` judges their cases as well."""


@each(READERS)
def test_a_mutant_is_the_same_every_time(name: str) -> None:
    first, again, other = ([mutants.mutant(name, seed, n) for n in range(2)] for seed in (3, 3, 4))
    assert first == again
    assert first != other


@pytest.mark.long
def test_a_kept_case_is_no_fault() -> None:
    """All in one child: each process that is forked costs more than most cases."""
    cases = {path.stem: mutants.load_case(path) for path in CASES}
    cases = {name: case for name, case in cases.items() if case[1].arguments[0] not in SLOW}
    verdicts = mutants.judged(list(cases.values()))
    assert len(verdicts) == len(cases) > 10
    assert not {
        name for name, row in zip(cases, verdicts, strict=True) if verdicts[row].kind in mutants.FAULTS
    }


def files_of(truth: object, results: object) -> dict[str, bytes]:
    return {"gt.json": json.dumps(truth).encode(), "dt.json": json.dumps(results).encode()}


EVALUATE = ("evaluate", *coco.INPUT, "--protocol", "coco", "--output", "json")


@pytest.mark.parametrize("protocol", coco.MAKERS)
def test_good_data_are_equal_to_the_oracle(protocol: str, tmp_path: Path) -> None:
    truth, results = coco.MAKERS[protocol](7)
    command = ("evaluate", *coco.INPUT, "--protocol", protocol, "--output", "json")
    verdict = judge(READERS["coco-boxes"], Mutant(files_of(truth, results), command), tmp_path)
    assert verdict.kind == "equal", verdict


def test_a_difference_is_noticed() -> None:
    truth, results = coco.MAKERS["coco"](7)
    ours = dict.fromkeys("abcdefghijkl", 0.25)
    judged = acceptance.compare_coco(truth, results, ours)
    assert judged.kind == "differs"
    assert judged.detail.startswith("a: 0.25 here, ")


def test_a_documented_difference_has_its_name(tmp_path: Path) -> None:
    truth, results = coco.MAKERS["coco"](7)
    for number, record in enumerate(truth["annotations"]):
        record["id"] = number
        del record["iscrowd"]
    verdict = judge(READERS["coco-boxes"], Mutant(files_of(truth, results), EVALUATE), tmp_path)
    assert (verdict.kind, verdict.sign) == ("documented", "annotation id N, no iscrowd")


def fails(*arguments: object) -> Judged:
    raise MemoryError


FAULTY = {
    "traceback": lambda folder: {}["x"],
    "crash": lambda folder: os.abort(),
    "hang": lambda folder: any(iter(int, 1)),  # for ever
    "memory": lambda folder: bytearray(1 << 40),
    "leftover": lambda folder: (folder / ".a.part").write_text("x"),
}


@pytest.mark.parametrize("kind", FAULTY)
def test_a_fault_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is replaced by one that has the fault."""
    from attack.engine import judging

    def program(arguments: list[str]) -> int:
        FAULTY[kind](Path.cwd())  # type: ignore[no-untyped-call]
        return 0

    monkeypatch.setattr(judging, "main", program)
    reader = Reader(lambda rng: Mutant({}, ("nms",)))

    def one(number: int, folder: Path, say: object) -> tuple[str, Verdict, float]:
        return "x", judge(reader, Mutant({"a": b""}, ("nms",)), folder), 0.0

    works = list(children.run(one, 1 + (kind != "hang"), lanes=1, most_seconds=0.1, name=lambda _: "x"))
    assert [work.number for work in works] == list(range(len(works)))
    assert {work.verdict.kind for work in works} == {kind}


def test_an_oracle_that_fails_is_no_fault(tmp_path: Path) -> None:
    truth, results = coco.MAKERS["coco"](7)
    reader = Reader(READERS["coco-boxes"].make, fails)
    assert judge(reader, Mutant(files_of(truth, results), EVALUATE), tmp_path).kind == "unknown"


def test_a_short_attack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = [name for name in READERS if name.startswith(("coco", "voc", "columns", "check"))]
    tally = mutants.attack(12, 0, fast, save=tmp_path, seconds=60, lanes=1)
    assert sum(tally.kinds.values()) == 12
    assert tally.report(1.0) >= 0
    assert "12 mutants" in capsys.readouterr().out
