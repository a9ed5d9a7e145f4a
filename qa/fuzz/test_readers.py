"""Inputs that once made a reader fail, and those that the coverage-guided fuzzer starts from."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from fuzz import coverage_guided
from fuzz.readers import FOUND, MEMBER, READERS, SEEDS, archive, prepare, read

CASES = sorted(path for path in FOUND.glob("*/*") if path.is_file())
SEED_CASES = sorted(SEEDS.glob("*/*"))


def test_every_reader_has_seeds() -> None:
    assert sorted(path.name for path in SEEDS.iterdir()) == sorted(READERS)


@pytest.mark.parametrize("path", SEED_CASES, ids=[f"{path.parent.name}-{path.name}" for path in SEED_CASES])
def test_a_seed_is_taken(path: Path, tmp_path: Path) -> None:
    """Or the fuzzer would start from nothing."""
    prepare(tmp_path)
    assert read(path.parent.name, path.read_bytes(), tmp_path) == (path.name != "coco-keypoints.toml")


@pytest.mark.parametrize("path", CASES, ids=[f"{path.parent.name}-{path.name}" for path in CASES])
def test_what_was_found_is_taken_or_refused(path: Path, tmp_path: Path) -> None:
    prepare(tmp_path)
    read(path.parent.name, path.read_bytes(), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS)
def test_spoilt_seeds(reader: str, tmp_path: Path) -> None:
    """A little of what the fuzzer does, wherever the tests run: bytes changed, cut out, put in twice."""
    rng = np.random.default_rng(len(reader))
    prepare(tmp_path)
    taken = []
    for path, _ in itertools.product(sorted((SEEDS / reader).iterdir()), range(25)):
        data = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 4))):
            start = int(rng.integers(len(data) + 1))
            end = start + int(rng.integers(0, 8))
            new = rng.integers(0, 256, int(rng.integers(0, 3))).astype(np.uint8).tobytes()
            data[start:end] = [new, data[start:end] * 2, b"-", b"9" * 400, b"\0"][int(rng.integers(5))]
        taken.append(read(reader, bytes(data), tmp_path))
    assert not all(taken)


def test_an_archive_is_made_of_members() -> None:
    assert archive(b"before" + MEMBER + b"a.npy\n12\n3" + MEMBER + b"b") == [("a.npy", b"12\n3"), ("b", b"")]


def test_without_atheris(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert coverage_guided.main(["--seconds", "1"]) == 0
    assert "left out: atheris is not installed" in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
def test_the_fuzzer_runs() -> None:
    assert coverage_guided.main(["--seconds", "2", "--readers", "run_config"]) == 0
