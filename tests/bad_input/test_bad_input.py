"""Bad input gives its exact message: one line on stderr, exit status 2, no traceback, nothing on stdout.

``cases.toml`` holds the cases; each starts from the good files in ``base/``. It has legal oddities too, with
status 0 and the warnings they give. ``{formats}`` in a message are the names of all formats.
"""

from __future__ import annotations

import re
import shutil
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.cli import main
from boxscore.errors import LONGEST_PART, shortened
from boxscore.formats.registry import format_named, format_names
from support.program import run_boxscore

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))["case"]
RUNS = {
    "coco": ["evaluate", "--gt", "gt.json", "--dt", "dt.json"],
    "voc": [
        *("evaluate", "--gt", "VOC2007", "--image-set", "test", "--dt", "results"),
        *("--protocol", "voc2007"),
    ],
    "mine": ["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--protocol", "mine.toml"],
}


def message_of(case: dict[str, Any]) -> str:
    """Return the message; the names of formats in it are those of the registry, whatever is added to it.

    A message leaves out the middle of a list that is too long.
    """
    one_of = shortened(f"be one of {', '.join(map(repr, format_names()))}", LONGEST_PART)
    taking = [name for name in format_names(auto=False) if "image_set" in format_named(name).takes]
    return (
        case["message"]
        .replace("be one of {formats}", one_of)
        .replace("{formats that take image_set}", ", ".join(taking))
    )


def arguments_of(case: dict[str, Any]) -> list[str]:
    run = case.get("run", "coco")
    return RUNS[run] if isinstance(run, str) else list(run)


def write_columns(
    folder: Path, *, file: str, member: str = "", content: str = "", compressed: bool = False
) -> None:
    """Save the good ground truth as columns, with one member of the archive spoilt."""
    boxscore.save_columns(boxscore.load_ground_truth(folder / "gt.json"), folder / "good.npz")
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(folder / "good.npz") as good, zipfile.ZipFile(folder / file, "w", kind) as spoilt:
        for name in good.namelist():
            if name != member:
                spoilt.writestr(name, good.read(name))
            elif content:
                spoilt.writestr(name, content.encode("latin-1"))


def prepare(case: dict[str, Any], folder: Path) -> None:
    """Copy the good files and spoil them."""
    shutil.copytree(HERE / "base", folder, dirs_exist_ok=True)
    for change in case.get("edit", []):
        path = folder / change["file"]
        text = path.read_text(encoding="utf-8")
        assert text.count(change["old"]) == 1, change
        path.write_text(text.replace(change["old"], change["new"]), encoding="utf-8")
    for change in case.get("write", []):
        path = folder / change["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = change.get("before", "") + change.get("text", "") * change.get("times", 1)
        path.write_bytes(bytes.fromhex(change["hex"]) if "hex" in change else text.encode())
    for change in case.get("columns", []):
        write_columns(folder, **change)
    for name, target in case.get("link", {}).items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)
    for name in case.get("bom", []):
        path = folder / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    for name in case.get("remove", []):
        (folder / name).unlink()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(case, tmp_path)
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():  # a stray warning of NumPy would be an error here
        status = main(arguments_of(case))
    output, errors = capsys.readouterr()
    errors = errors.replace('"="', "'='")  # as tomli writes it in place of tomllib
    assert status == case.get("status", 2)
    if status == 2:
        assert errors == f"boxscore: error: {message_of(case)}\n"
        assert output == ""
    else:
        said = "".join(
            f"boxscore: {'' if line.startswith('error in the input: ') else 'warning: '}{line}\n"
            for line in case["warnings"]
        )
        said += "".join(f"boxscore: note: {line}\n" for line in case.get("notes", ()))
        assert errors.startswith(said)
        digest = errors.removeprefix(said)
        assert re.sub(r"\n(  )?", " ", digest) == (f"boxscore: {case['digest']} " if "digest" in case else "")
        assert all(len(line) <= 80 for line in digest.splitlines())
        assert "boxscore|" in output  # the signature


def test_there_are_cases_of_every_kind() -> None:
    assert len(CASES) >= 200
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert len({case.get("message") for case in CASES}) > 150


@pytest.mark.parametrize(
    "name", ["results: truncated", "XML: no bndbox", "protocol file: unknown key", "run: missing file"]
)
def test_the_program_itself_says_the_same(name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case["name"] == name)
    prepare(case, tmp_path)
    assert run_boxscore(arguments_of(case), folder=tmp_path) == (
        2,
        "",
        f"boxscore: error: {case['message']}\n",
    )
