"""What is no regular file: it is refused as data, and read to its end, if it has one, as a short list."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.program import SOURCES
from support.running import Run
from support.samples import DT, GT

pytestmark = pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices")

NO_DATA = "must be a file or a folder. Got a {}; save its output to a file and pass the file; .gz files are read directly."


def errors_of(run: Run, *arguments: str) -> str:
    output, errors = run(*arguments, status=2)
    assert output == ""
    return errors.removeprefix("boxscore: error: ").removesuffix("\n")


@pytest.mark.parametrize("name", ["u.json", "u.xml", "u.txt", "u.csv", "u.npz", "u"])
@pytest.mark.parametrize("device", ["/dev/urandom", "/dev/zero", "/dev/null"])
def test_a_link_to_a_device(
    device: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).symlink_to(device)
    text = f"{name} {NO_DATA.format('device')}"
    assert errors_of(run, "evaluate", name, DT) == text
    assert errors_of(run, "evaluate", GT, name, "--dt-format", "coco") == text
    assert errors_of(run, "nms", name, "--output", "out.json", "--iou-threshold", "0.5") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", GT, DT, "--protocol", "z.toml"], "z.toml: cannot be read: File too large."),
        (["run", "z.toml"], "z.toml: cannot be read: File too large."),
        (["check", "--result", "z.json", "--min", "AP=0.1"], "z.json: cannot be read: File too large."),
        (["history", "z.jsonl"], "z.jsonl: cannot be read: File too large."),
        (
            ["evaluate", GT, DT, "--gt-classes", "z.txt"],
            "a class list must have at most 10,000,000 bytes. Got more in z.txt.",
        ),
    ],
)
def test_a_device_without_end(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
) -> None:
    monkeypatch.chdir(tmp_path)
    for ending in ("", ".toml", ".json", ".jsonl", ".txt"):
        Path(f"z{ending}").symlink_to("/dev/zero")
    assert errors_of(run, *arguments) == message


def test_a_pipe(tmp_path: Path, run: Run) -> None:
    """It has no second look; a result needs none."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert errors_of(run, "evaluate", str(pipe), DT) == f"{pipe} {NO_DATA.format('pipe')}"
    result = json.dumps({"metrics": {"AP": 0.5}, "signature": "x"})
    writer = threading.Thread(target=pipe.write_text, args=(result,))
    writer.start()
    run("check", "--result", pipe, "--min", "AP=0.5")
    writer.join()


def test_stdin_that_is_a_file() -> None:
    """``boxscore evaluate GT /dev/stdin < DT`` works as it did."""
    with Path(DT).open("rb") as stdin:
        done = subprocess.run(
            [sys.executable, "-m", "boxscore", "evaluate", GT, "/dev/stdin", "-q"],
            stdin=stdin,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
    assert "AP      0.3399" in done.stdout
