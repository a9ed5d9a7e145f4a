"""Compressed files and archives are read as what they hold, and what is wrong with them is said."""

from __future__ import annotations

import errno
import gzip
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from boxscore.errors import FileFormatError
from boxscore.extensions.stores.unpacking import unpacked
from boxscore.formats import detect_format, load_detections, load_ground_truth
from support.annotations import BOXES, write


def test_archives_are_read_as_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write(tmp_path / "in", "labelme")
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for file in sorted(path.iterdir()):
            archive.write(file, f"top/{file.name}")
    assert detect_format(tmp_path / "set.zip") == ("labelme", "a folder of LabelMe's JSON, in an archive")
    table = load_ground_truth(tmp_path / "set.zip", format="labelme")
    names = table.categories.names[table.category].tolist()
    boxes = table.boxes.round(4).tolist()
    assert list(zip(table.images.ids[table.image], names, boxes, strict=True)) == [
        ("a", *box) for box in BOXES
    ]
    assert table.source == str(tmp_path / "set.zip")
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress(write(tmp_path, "datumaro").read_bytes()))
    assert len(load_detections(packed, table)) == 2


def test_compressed_results_are_suppressed_and_written_plain(tmp_path: Path) -> None:
    from boxscore.formats.results import load_results, save_results

    record = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5, "kept": "as it is"}
    packed = tmp_path / "d.json.gz"
    packed.write_bytes(gzip.compress(json.dumps([record, record]).encode()))
    save_results(load_results(packed), np.array([1]), tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == [record]


def _zip(path: Path, name: str, content: str = "[]") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../x.json", "/x.json", "a/../../x.json", "C:\\x.json", "..\\x.json"])
def test_no_name_in_an_archive_leads_out_of_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="an archive must have names below its own folder"):
        detect_format(_zip(tmp_path / "x.zip", name))
    assert [file.name for file in tmp_path.iterdir()] == ["x.zip"]


def test_what_comes_out_of_an_archive_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.stores.unpacking.ALWAYS", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(b" " * 100_000))
    for path in (tmp_path / "x.json.gz", _zip(tmp_path / "x.zip", "x.json", " " * 1_000_000)):
        with pytest.raises(
            FileFormatError, match=r"an archive must hold at most .* bytes, unpacked. Got more in"
        ):
            detect_format(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.json.gz", "x.zip"]


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"[1, 2, 3]")
    for name, content in (
        ("a.json.gz", whole[:-9]),
        ("b.json.gz", b"\x1f\x8bxxxx"),
        ("c.zip", b"PK\3\4xxxx"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match="an archive must be whole"):
            detect_format(tmp_path / name)


def test_an_archive_that_cannot_lie_in_a_folder_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.json", "[]")
        archive.writestr("a.json/b.json", "[]")
    with pytest.raises(FileFormatError, match=r"an archive must have names .*; unpack it yourself") as raised:
        detect_format(tmp_path / "x.zip")
    assert "Errno" not in str(raised.value)


def test_a_full_disk_is_no_fault_of_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("boxscore.extensions.stores.unpacking._copy", full)
    with pytest.raises(FileFormatError, match=r"x\.zip: cannot be unpacked: No space left on device"):
        detect_format(_zip(tmp_path / "x.zip", "x.json"))


def test_damaged_lzma_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.json", "[1, 2, 3]" * 50)
    content = (tmp_path / "x.zip").read_bytes()
    start = content.index(b"a.json") + len("a.json")
    (tmp_path / "x.zip").write_bytes(content[: start + 4] + b"\xff" * 5 + content[start + 9 :])
    with pytest.raises(FileFormatError, match="an archive must be whole"):
        detect_format(tmp_path / "x.zip")


def test_other_paths_are_no_archives(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[]")
    assert unpacked(path) == path
    assert unpacked(tmp_path) == tmp_path
