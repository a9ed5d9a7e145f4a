"""Folders of text files are recognized by the first that says something: images without objects have empty ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxscore.formats import detect_format

LINES = {
    "dota": "1 1 9 1 9 9 1 9 plane 0",
    "visdrone": "684,8,273,116,1,1,0,0",
    "text": "cat 10 20 30 40",
    "yolo": "0 0.5 0.5 0.1 0.1",
    "kitti": "Truck 0.00 0 -1.57 599.41 156.40 629.75 189.25 2.85 2.63 12.34 0.47 1.49 69.44 -1.56",
}


def written(folder: Path, line: str, empty: int, blank: int = 0) -> Path:
    for number in range(empty):
        (folder / f"{number:04}.txt").write_text("\n" * (number < blank))
    (folder / "9999.txt").write_text(f"{line}\n")
    return folder


@pytest.mark.parametrize("empty", [0, 1, 19, 30, 300])
@pytest.mark.parametrize("name", LINES)
def test_the_format(name: str, empty: int, tmp_path: Path) -> None:
    assert detect_format(written(tmp_path, LINES[name], empty, blank=3))[0] == name


def test_all_of_them_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert detect_format(tmp_path) == ("yolo", "a folder of YOLO's text files")
