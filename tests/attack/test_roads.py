"""What runs code or holds itself is refused, and the script that tries it notices faults."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from attack import roads


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
