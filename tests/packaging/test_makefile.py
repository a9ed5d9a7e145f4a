"""The Makefile: its targets, and what it says to an interpreter that is too old."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = shutil.which("make")

pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


def make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(MAKE), *arguments], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "target",
    ["demo", "test", "check", "docs", "bench", "fuzz", "attack", "tools", "mutate", "matrix", "audit"],
)
def test_a_target_exists(target: str, tmp_path: Path) -> None:
    done = make("--dry-run", target, f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "venv") in done.stdout


@pytest.mark.parametrize("machine", ["", "EPYC, 24"])
def test_what_a_benchmark_runs_is_shell(machine: str, tmp_path: Path) -> None:
    done = make("--dry-run", "bench", f"VENV={tmp_path / 'venv'}", f"WRITE={machine}")
    read = subprocess.run(["sh", "-n"], input=done.stdout, capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")
    assert f'--machine "{machine}"' in done.stdout


def test_an_old_python_is_refused_with_a_hint(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make("demo", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}")
    assert done.returncode != 0
    assert "boxscore needs Python 3.10 or newer; choose one with: make demo PYTHON=python3.12" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_demo_runs_configurations_that_exist() -> None:
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    configurations = re.findall(r"configs/[\w-]+\.toml", recipe[1])
    assert len(configurations) >= 2
    assert all((ROOT / configuration).is_file() for configuration in configurations)
