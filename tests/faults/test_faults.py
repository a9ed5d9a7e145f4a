"""Faults from outside: a full disk, a kill, an interrupt, files that cannot be read or go away.

Whatever happens, a final name stands for a whole file or for none, and there is no traceback.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxscore._utils import files
from boxscore.cli import main
from support.program import SOURCES, run_boxscore
from support.running import Run
from support.samples import DT, GT

pytestmark = pytest.mark.long

EVALUATE = ["evaluate", "--gt", GT, "--dt", DT]
FILES = ["per_class.csv", "report.html", "report.md", "result.json", "summary.csv"]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 16 KiB, where this process may."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "boxscore-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip("mounting is not allowed")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 12 * 1024)
    (small_disk / "report.md").write_text("the old report")
    status, output, errors = run_boxscore([*EVALUATE, "--quiet", "--report", str(small_disk)])
    assert (status, output) == (2, "")
    assert errors.startswith(f"boxscore: error: {small_disk}")
    assert errors.endswith(": cannot be written: No space left on device.\n")
    assert "Traceback" not in errors
    assert not [name for name in names(small_disk) if name.endswith(".part")]
    assert names(small_disk) == ["ballast", "report.md"]
    assert (small_disk / "report.md").read_text() == "the old report"


def test_columns_on_a_full_disk(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"x" * 12 * 1024)
    path = small_disk / "gt.npz"
    status, output, errors = run_boxscore(["convert", "--ground-truth", GT, "--output", str(path)])
    assert (status, output) == (2, "")
    assert errors == f"boxscore: error: {path}: cannot be written: No space left on device.\n"
    assert names(small_disk) == ["ballast"]


def expected_report() -> str:
    return run_boxscore([*EVALUATE, "--output", "markdown", "--per-class"])[1]


@pytest.mark.parametrize("number", range(len(FILES)))
def test_the_disk_fills_up_at_each_file(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """Not one file is replaced before all are written: the old report stays, whole."""
    for name in FILES:
        (tmp_path / name).write_text("old")
    calls = 0
    fsync = os.fsync

    def fail(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > number:
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail)
    output, errors = run(*EVALUATE, "--report", tmp_path, "--overwrite", status=2)
    assert output == ""
    assert errors.count("\n") == 1
    assert names(tmp_path) == FILES
    assert [(tmp_path / name).read_text() for name in FILES] == ["old"] * len(FILES)


STOP_AT_FSYNC = """
import os, signal, sys, time
from boxscore.cli import main

def wait(handle):
    print("writing", flush=True)
    time.sleep(60)

# Started in the background, a shell leaves SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.fsync = wait
sys.exit(main(sys.argv[1:]))
"""


def start_and_wait(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start the program, and return when it is in the middle of writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOP_AT_FSYNC, *arguments],
        env={**os.environ, "PYTHONPATH": SOURCES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")
def test_killed_in_the_middle_of_a_write(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("the old report")
    process = start_and_wait([*EVALUATE, "--quiet", "--report", str(tmp_path)])
    process.kill()
    process.communicate(timeout=30)
    left = names(tmp_path)
    assert [name for name in left if not name.endswith(".part")] == ["report.md"]
    assert all(name.startswith(".") for name in left if name.endswith(".part"))  # hidden, under no final name
    assert (tmp_path / "report.md").read_text() == "the old report"
    assert run_boxscore([*EVALUATE, "--report", str(tmp_path)])[0] == 0  # and the next run is not in its way
    written = (tmp_path / "report.md").read_text()
    assert written.partition("\n### 95% intervals\n")[0] == expected_report()


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupted_in_the_middle_of_a_write(tmp_path: Path) -> None:
    process = start_and_wait([*EVALUATE, "--quiet", "--report", str(tmp_path)])
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (130, b"", b"boxscore: interrupted\n")
    assert names(tmp_path) == []


@pytest.mark.parametrize("command", [EVALUATE, ["validate", "--gt", GT, "--dt", DT], ["ties", *EVALUATE[1:]]])
def test_interrupted_while_it_reads(command: list[str], monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("boxscore.formats.coco._read_object", interrupt)
    assert run(*command, status=130) == ("", "boxscore: interrupted\n")


@pytest.mark.parametrize("command", ["evaluate", "validate"])
def test_a_file_that_vanishes_while_it_is_read(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from boxscore.formats import coco

    path = tmp_path / "dt.json"
    path.write_bytes(Path(DT).read_bytes())
    start = coco.ResultsReading.__init__

    def late(*arguments: Any, **options: Any) -> None:
        path.unlink()
        start(*arguments, **options)

    monkeypatch.setattr(coco.ResultsReading, "__init__", late)
    status = main([command, "--gt", GT, "--dt", str(path)])
    output, errors = capsys.readouterr()
    assert status == (2 if command == "evaluate" else 1)
    assert "cannot be read: No such file or directory" in output + errors


def test_unreadable_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """The system refuses; root reads anything, so the refusal is made up."""
    opened = Path.open

    def refuse(self: Path, *arguments: Any, **options: Any) -> Any:
        if self.name == "dt.json":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)

    path = tmp_path / "dt.json"
    path.write_bytes(Path(DT).read_bytes())
    monkeypatch.setattr(Path, "open", refuse)
    output, errors = run("evaluate", "--gt", GT, "--dt", path, status=2)
    assert output == ""
    assert errors.endswith("Permission denied.\n")
    assert errors.count("\n") == 1


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    status, output, errors = run_boxscore(
        [*EVALUATE, "--quiet", "--report", str(tmp_path / "file" / "reports")]
    )
    assert (status, output) == (2, "")
    assert errors == f"boxscore: error: {tmp_path / 'file' / 'reports'}: cannot be made: Not a directory.\n"


def test_no_temporary_name_is_a_final_one(tmp_path: Path) -> None:
    seen: list[str] = []
    replace = Path.replace

    def note(self: Path, target: Path) -> Path:
        seen.append(self.name)
        return replace(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", note)
        files.write_atomically(tmp_path / "a.json", "{}")
    assert len(seen) == 1
    assert seen[0].startswith(".a.json.")
    assert seen[0].endswith(".part")
