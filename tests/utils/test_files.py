"""Files appear whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from boxscore import InputError
from boxscore._utils.files import read_at_most, read_text, write_atomically, write_folder


def test_write(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, "ü\n")
    assert path.read_bytes() == "ü\n".encode()
    write_atomically(path, b"\x00\r\n")
    assert path.read_bytes() == b"\x00\r\n"
    assert os.listdir(tmp_path) == ["a.txt"]  # noqa: PTH208


def test_a_path_with_a_nul_byte_cannot_be_read() -> None:
    with pytest.raises(InputError, match="cannot be read: embedded null byte"):
        read_text(Path("a\0b"))


def test_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", "x")
    finally:
        assert os.umask(before) == 0o027
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError) as caught:
        write_atomically(path, "new")
    monkeypatch.undo()
    assert str(caught.value) == f"{path}: cannot be written: No space left on device."
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupt_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a.txt", "new")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "deep"
    write_folder(folder, {"a": "1", "b": b"2"})
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]
    write_folder(folder, {"a": "3"})
    assert (folder / "a").read_text() == "3"


def test_errors_name_the_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        write_folder(tmp_path / "file", {"a": "1"})
    assert str(caught.value) == f"{tmp_path / 'file'}: cannot be made: File exists."
    with pytest.raises(InputError) as caught:
        write_atomically(tmp_path / "nowhere" / "a", "1")
    assert str(caught.value) == f"{tmp_path / 'nowhere' / 'a'}: cannot be written: No such file or directory."
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=r"folder: cannot be written: Is a directory\.$"):
        write_atomically(tmp_path / "folder", "1")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ulimit -v")
def test_memory_follows_the_file_and_not_the_limit(tmp_path: Path) -> None:
    """200 bytes of JSON were read into room for 2 GB, which a container with a limit does not have."""
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 200)
    code = (
        "import resource, sys; from boxscore._utils.files import read_at_most;"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30));"
        "print(len(read_at_most(open(sys.argv[1], 'rb'), 2_000_000_000)))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout == "200\n"


@pytest.mark.parametrize("most", [0, 1, 199, 200, 201])
def test_no_more_is_read_than_was_asked_for(most: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(range(200)))
    with path.open("rb") as file:
        assert read_at_most(file, most) == bytes(range(200))[:most]


def test_a_pipe_is_read_to_its_end() -> None:
    """It does not say how long it is."""
    reading, writing = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writing, b"y" * 200_000), os.close(writing)))
    thread.start()
    with os.fdopen(reading, "rb", buffering=0) as file:
        assert read_at_most(file, 1 << 30) == b"y" * 200_000  # type: ignore[arg-type]
    thread.join()
