"""What may be replaced, what is written to, and what stays as it is: outputs that are more than a plain file."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxscore import InputError
from boxscore._utils.files import end_all, write_atomically, write_folder


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list(tmp_path.rglob("*.part"))


# ---------------------------------------------------------------- no regular file


def test_a_device_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except (OSError, AttributeError):
        path = Path(os.devnull)
    write_atomically(path, "gone")
    assert stat.S_ISCHR(path.stat().st_mode)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_atomically(link, b"gone")
    assert link.is_symlink()


def test_a_full_device(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_atomically(Path("/dev/full"), "x")
    assert str(caught.value) == "/dev/full: cannot be written: No space left on device."


def test_a_named_pipe_gets_whole_content_or_none(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ValueError("the input changed")

    with pytest.raises(ValueError, match="the input changed"):
        write_atomically(path, broken())  # would wait for a reader if it had opened the pipe
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_atomically(path, iter([b"a" * 70_000, b"b"]))
    reader.join(10)
    assert read == [b"a" * 70_000 + b"b"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("form", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_an_open_file_goes_on_where_it_stands(form: str, tmp_path: Path) -> None:
    """As ``>> log`` in a shell: what is in the log already stays."""
    if not Path(form.format(0)).parent.is_dir():
        pytest.skip("this system does not have it")
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("ab") as file:
        write_atomically(Path(form.format(file.fileno())), "new\n")
        file.write(b"after\n")
    assert log.read_text() == "before\nnew\nafter\n"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to("d")
    for name in ("d", "l"):
        with pytest.raises(InputError, match="cannot be written: Is a directory"):
            write_atomically(tmp_path / name, "x")


# ---------------------------------------------------------------- links, modes, names


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real").write_text("old")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to(Path("far") / "real")
    write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "far" / "real").read_text() == "new"
    assert not (tmp_path / "far" / "real").is_symlink()
    (tmp_path / "c").symlink_to("not yet")
    write_folder(tmp_path, {"c": "made"})
    assert (tmp_path / "not yet").read_text() == "made"


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("a")
    with pytest.raises(InputError, match="a: cannot be written: Too many levels of symbolic links"):
        write_atomically(tmp_path / "a", "x")


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
def test_a_file_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, "new")
    write_folder(tmp_path, {"a": "newer", "b": "x"})
    assert path.read_text() == "newer"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 12345, 54321)
    write_atomically(path, "new")
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)


def test_what_nobody_may_write_is_not_replaced(tmp_path: Path) -> None:
    """Not even by root, who could, and did not mean to."""
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o444)
    for write in (
        lambda: write_atomically(path, "new"),
        lambda: write_folder(tmp_path, {"z": "1", "a": "2"}),
    ):
        with pytest.raises(InputError) as caught:
            write()
        assert str(caught.value) == f"{path}: cannot be written: Permission denied."
        assert names(tmp_path) == ["a"]
        assert path.read_text() == "old"


@pytest.mark.parametrize("length", [240, 241, 255])
def test_long_names(length: int, tmp_path: Path) -> None:
    for name in ("x" * length, "\N{CAT}" * (length // 4)):
        write_atomically(tmp_path / name, "x")
        assert (tmp_path / name).read_text() == "x"
    with pytest.raises(InputError, match="File name too long"):
        write_atomically(tmp_path / ("x" * 256), "x")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    write_folder(tmp_path / "\udcff", {"a": "the folder \udcff"})
    assert (tmp_path / "\udcff" / "a").read_bytes() == b"the folder \\udcff"


# ---------------------------------------------------------------- all new or all old


def old_folder(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("old")
    return tmp_path


NEW = dict.fromkeys(("a", "new", "b", "deep/new", "c"), "new")


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("old")
    with pytest.raises(InputError, match="b: cannot be written: Is a directory"):
        write_folder(tmp_path, NEW)
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("number", range(5))
def test_a_rename_that_fails(
    number: int, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any of the files; also where the file system has no hard links."""
    old_folder(tmp_path)
    replace, calls = Path.replace, [0]

    def fail(self: Path, target: Path) -> Path:
        calls[0] += 1
        if calls[0] == number + 1:
            raise OSError(5, "Input/output error")
        return replace(self, target)

    def no_links(*_: Any) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", fail)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(InputError, match="Input/output error"):
        write_folder(tmp_path, NEW)
    assert names(tmp_path) == ["a", "b", "c"]
    assert [(tmp_path / name).read_text() for name in "abc"] == ["old"] * 3


class Stop(BaseException):
    """A signal's exception, where it falls."""


@pytest.mark.long
@pytest.mark.parametrize("leaves", [False, True])
def test_a_signal_between_any_two_steps(
    leaves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception leaves all old; a program that ends all unfinished work and leaves, all new or all old."""
    steps = ("open", "close", "link", "fsync", "fchmod", "write_bytes")
    for stop in range(1, 200):
        folder = tmp_path / str(stop)
        folder.mkdir()
        old_folder(folder)
        seen, states = [0], list[dict[str, str]]()

        def note(folder: Path = folder, states: list[dict[str, str]] = states) -> None:
            assert not list(folder.rglob("*.part"))
            files = [name for name in names(folder) if (folder / name).is_file()]
            states.append({name: (folder / name).read_text() for name in files})
            assert (folder / "deep").exists() == (states[0]["a"] == "new")

        def counted(function: Any, seen: list[int] = seen, stop: int = stop, note: Any = note) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                result = function(*arguments, **options)
                seen[0] += 1
                if seen[0] == stop:
                    if leaves:  # what stands now is what stays
                        end_all()
                        note()
                    raise Stop
                return result

            return call

        with monkeypatch.context() as patch:
            for name in steps:
                if hasattr(os, name):
                    patch.setattr(os, name, counted(getattr(os, name)))
            patch.setattr(Path, "replace", counted(Path.replace))
            try:
                write_folder(folder, NEW)
            except Stop:
                pass
            else:
                break
        if not leaves:
            note()
        assert states[0] in (
            {"a": "old", "b": "old", "c": "old"},
            {"a": "new", "new": "new", "b": "new", "c": "new"},
        ), stop
        assert leaves or states[0]["a"] == "old"
    assert stop > 20


def test_files_that_are_made_while_they_are_written(tmp_path: Path) -> None:
    """One that cannot be made leaves none, and no folder."""

    def made() -> Iterator[tuple[str, bytes]]:
        yield "a", b"1"
        raise OSError(2, "No such file or directory", "input")

    with pytest.raises(FileNotFoundError):  # of the input, not of what is written
        write_folder(tmp_path / "new" / "deep", made())
    assert names(tmp_path) == []


def test_two_writers(tmp_path: Path) -> None:
    """Each file is one writer's, whole."""
    contents = [letter * 200_000 for letter in "ab"]

    def write(content: str) -> None:
        for _ in range(10):
            write_atomically(tmp_path / "x", content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "x").exists():
            assert (tmp_path / "x").read_text() in contents
    assert names(tmp_path) == ["x"]
