"""What runs code or holds itself is refused, and the script that tries it notices faults."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from pathlib import Path
from random import Random

import pytest

from attack import races, roads


@pytest.mark.parametrize("road", ["pickles", "YAML"])
def test_refused(road: str, tmp_path: Path) -> None:
    for name, content in roads.ROADS[road]():
        path = tmp_path / name
        path.write_bytes(content)
        assert [roads.fault_of(path, as_truth=as_truth) for as_truth in (True, False)] == ["", ""], name


def test_a_number_is_a_fault() -> None:
    assert roads.fault_of(roads.SAMPLE / "instances.json", as_truth=True).startswith("exit status 0: ")


def test_code_that_runs_is_a_fault(tmp_path: Path) -> None:
    files = dict(roads.ROADS["pickles"]())
    pickle.loads(files["raw.pkl"])
    assert os.environ[roads.RAN] == "1"
    assert roads.fault_of(tmp_path / "none.json", as_truth=True) == "code ran"
    assert roads.RAN not in os.environ


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX")
def test_an_endless_wait_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(arguments: list[str]) -> int:
        try:
            threading.Event().wait()
        except Exception:
            return 2
        return 0

    monkeypatch.setattr(roads, "boxscore", waits)
    monkeypatch.setattr(roads, "WAITED", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    assert roads.fault_of(tmp_path / "a.json", as_truth=True) == "no end within 0 s"
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize("road", ["pickles", "YAML", "nested Parquet"])
def test_what_is_drawn_is_refused_or_sound(road: str, tmp_path: Path) -> None:
    cases = [*roads.drawn(road, 0, 12)]
    assert [name for name, _ in cases] == [name for name, _ in roads.drawn(road, 0, 12)]
    for name, content in cases:
        path = tmp_path / name
        path.write_bytes(content)
        assert roads.fault_of(path, as_truth=False, sound=True) == "", name


@pytest.mark.long
def test_drawn_bombs(tmp_path: Path) -> None:
    for name, content in roads.drawn("bombs", 0, 4):
        (tmp_path / name).write_bytes(content)
        assert roads.fault_of(tmp_path / name, as_truth=False, sound=True) == "", name


@pytest.mark.parametrize("number", range(4))
def test_a_file_that_changes_while_it_is_read(number: int, tmp_path: Path) -> None:
    assert races.growing(Random(number), tmp_path) == ""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX")
@pytest.mark.parametrize("race", ["writers", "read-only", "cluster"])
def test_a_race(race: str, tmp_path: Path) -> None:
    if race == "cluster":
        pytest.importorskip("distributed", reason="needs boxscore[dask]")
    assert races.RACES[race][0](Random(1), tmp_path) == ""
