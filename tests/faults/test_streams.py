"""Streams that are closed, full or left, and little memory: the exit status says what happened, in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import MissingDependencyError
from boxscore.cli import main
from support.program import SOURCES
from support.running import Run
from support.samples import DT, GT

INPUT = ["--gt", GT, "--dt", DT]
EVALUATE = ["evaluate", *INPUT]
FAILS = ["check", *INPUT, "--min", "AP=0.99"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and streams of POSIX")


def in_shell(command: str, arguments: list[str], **environment: str) -> tuple[int, str, str]:
    """Run a shell's line; ``"$@"`` in it is the program with its arguments."""
    done = subprocess.run(
        ["bash", "-c", command, "bash", sys.executable, "-m", "boxscore", *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": SOURCES, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, done.stdout, done.stderr


# ---------------------------------------------------------------- stdout and stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ('"$@" >&-', 2),
        ('"$@" 2>&-', 1),
        ('"$@" <&- >&- 2>&-', 2),
        ('set -o pipefail; "$@" | true', 1),
        ('"$@" >/dev/full', 2),
        ('"$@" 2>/dev/full', 1),
    ],
)
def test_a_failed_gate_fails(line: str, status: int) -> None:
    """Whatever becomes of its words; a result that cannot be written is another failure."""
    code, _, errors = in_shell(line, FAILS)
    assert code == status
    lost = "boxscore: error: the result cannot be written to stdout: "
    reason = "it is closed.\n" if ">&-" in line else "No space left on device.\n"
    assert errors == ("" if status == 1 or "2>&-" in line else f"{lost}{reason}")


@pytest.mark.long
@pytest.mark.parametrize("arguments", [EVALUATE, ["--version"], ["protocols"]])
@pytest.mark.parametrize("line", ['"$@" >&-', '"$@" >/dev/full'])
def test_a_result_that_nobody_can_see_is_an_error(line: str, arguments: list[str]) -> None:
    code, _, errors = in_shell(line, arguments)
    assert code == 2
    assert "Traceback" not in errors


@pytest.mark.long
@pytest.mark.parametrize("line", ['"$@" >&-', '"$@" 2>&-', '"$@" 2>/dev/full'])
def test_files_are_written_without_streams(line: str, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    call = ["nms", "--dt", DT, "--output", str(output), "--iou-threshold", "0.5"]
    code, _, errors = in_shell(line, call)
    assert code == 0
    assert ("" if "2>" in line else f" kept, written to {output}\n") in errors
    assert len(json.loads(output.read_text())) > 100
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


class BrokenPipe:
    """A stdout whose reader has left."""

    encoding, errors = "utf-8", "strict"

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self) -> None:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (EVALUATE, 0),
        (["validate", *INPUT], 0),
        (["validate", *INPUT, "--strict"], 2),
        (FAILS, 1),
        (["errors", *INPUT], 0),
        (["explain", "--from", "voc2007", *INPUT], 0),
        (["sweep", *INPUT, "--best"], 0),
        (["protocols"], 0),
    ],
)
def test_a_reader_that_has_left_changes_no_status(
    arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", BrokenPipe())
    assert main(arguments) == status


def test_verification_fails_without_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pycocotools")
    from boxscore.compat import verification

    class Unequal:
        equal = False

    monkeypatch.setattr(verification, "verify", lambda evaluation: Unequal())
    monkeypatch.setattr(sys, "stdout", BrokenPipe())
    assert main([*EVALUATE, "--verify"]) == 1


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_host_without_streams(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pythonw has none."""
    monkeypatch.setattr(sys, stream, None)
    assert main(EVALUATE) == 0
    assert main([*EVALUATE, "--output", "json"]) == 0
    assert main(["evaluate", "--gt", "no.json", "--dt", DT]) == 2


def test_commands_print_through_one_door() -> None:
    """A bare ``print`` would end a command where its reader has left."""
    folder = Path(SOURCES) / "boxscore" / "cli"
    bare = [
        path.name
        for path in folder.glob("*.py")
        if path.name != "streams.py" and "    print(" in path.read_text()
    ]
    assert bare == []


# ---------------------------------------------------------------- nothing printed before everything is checked


def late(folder: Path) -> list[str]:
    """Write masks of which one is bad, and no pair needs it."""
    square = [10, 10, 20, 10, 20, 20, 10, 20]
    image = {"id": 1, "width": 100, "height": 100}
    far = {"id": 2, "image_id": 1, "category_id": 1, "bbox": [50, 50, 5, 5], "area": 25, "iscrowd": 0}
    near = {**far, "id": 1, "bbox": [10, 10, 10, 10], "area": 100, "segmentation": [square]}
    far["segmentation"] = [[50, 50, 2e6, 50, 55, 55]]
    categories = [{"id": 1, "name": "cat"}]
    truth = {"images": [image], "annotations": [near, far], "categories": categories}
    (folder / "gt.json").write_text(json.dumps(truth))
    result = {
        "image_id": 1,
        "category_id": 1,
        "segmentation": [square],
        "score": 0.5,
        "bbox": [10, 10, 10, 10],
    }
    (folder / "dt.json").write_text(json.dumps([result]))
    return ["--gt", str(folder / "gt.json"), "--dt", str(folder / "dt.json"), "--iou-type", "segm"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_number_before_an_error(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["evaluate", *late(tmp_path), "--output", form])
    output, errors = capsys.readouterr()
    assert (status == 2) == (output == "")
    assert (status == 0) == ("polygon" not in errors)


@pytest.mark.long
def test_a_report_that_cannot_be_written_prints_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "report.html").mkdir()
    for command in (
        [*EVALUATE, "--report", str(tmp_path)],
        ["compare", "--gt", GT, "--dt", DT, DT, "--resamples", "20", "--report", str(tmp_path)],
    ):
        output, errors = run(*command, status=2)
        assert output == ""
        assert errors.endswith("report.html: cannot be written: Is a directory.\n")
        assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


# ---------------------------------------------------------------- memory


def test_want_of_memory_has_a_status_of_its_own(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def fail(*_: Any, **__: Any) -> None:
        np.empty(1 << 59)

    monkeypatch.setattr("boxscore.formats.coco._read_object", fail)
    output, errors = run(*EVALUATE, status=3)
    assert output == ""
    assert errors.startswith("boxscore: error: not enough memory (Unable to allocate 4.00 EiB for an array")
    assert errors.endswith("; evaluate fewer images or classes (--images, --classes), or use --workers 1.\n")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError(12, "Cannot allocate memory"),
        ValueError(
            "array is too big; `arr.size * arr.dtype.itemsize` is larger than the maximum possible size."
        ),
        ImportError("libx.so: failed to map segment from shared object"),
        ImportError("libx.so: cannot allocate memory in static TLS block"),
    ],
)
def test_forms_of_want_of_memory(error: Exception, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("boxscore.formats.coco._read_object", fail)
    assert run(*EVALUATE, status=3).err.startswith("boxscore: error: not enough memory (")


def test_a_package_that_could_not_be_loaded_is_not_missing(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    def fail(*_: Any, **__: Any) -> None:
        try:
            raise ImportError("libx.so: failed to map segment from shared object")
        except ImportError:
            raise MissingDependencyError("Plots need matplotlib.") from None

    monkeypatch.setattr("boxscore.formats.coco._read_object", fail)
    assert "not enough memory (Plots need matplotlib)" in run(*EVALUATE, status=3).err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ulimit -v")
def test_an_import_without_memory() -> None:
    """At the limit of the import itself: an answer in one line, and never 1, a failed check."""
    code, output, errors = in_shell('ulimit -v 60000; exec "$@"', EVALUATE, OPENBLAS_NUM_THREADS="1")
    assert (code, output) == (3, "")
    assert errors == "boxscore: error: not enough memory to start.\n"
