"""Folders of JSON files, one per image: which file decides the format, and which image a file is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._json_folders import files_of_images, first_json, first_object, image_of
from boxscore.formats._sniffer import Sniffer


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_file_is_named_after_its_image(tmp_path: Path) -> None:
    names = ("a.json", "b.png.json", "c.jpg___objects.json", "x/d.v2.JSON")
    path = write(tmp_path, dict.fromkeys(names, "[]"))
    assert [name for _, name in files_of_images(path)] == ["a", "b.png", "c.jpg", "x/d.v2"]
    assert image_of(path / "a.json", path / "a.json") == "a"
    assert files_of_images(path / "a.json") == [(path / "a.json", "a")]


def test_an_image_has_one_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.jpg.json": "[]", "a.png.json": "[]", "x/c.json": "[]", "y/c.json": "[]"})
    assert len(files_of_images(tmp_path)) == 4
    for other in ("a.json", "x/a.json", "z/y/c.json", "c.png.json"):
        write(tmp_path, {other: "[]"})
        with pytest.raises(
            FileFormatError, match=r"an image must have one file\. Got .*\.json and .*\.json\."
        ):
            files_of_images(tmp_path)
        (tmp_path / other).unlink()


def test_a_file_with_objects_decides_the_format(tmp_path: Path) -> None:
    assert first_json(Sniffer(tmp_path)) is None
    write(tmp_path, {"a.json": " [ ]\n", "b.json": ""})
    empty = first_json(Sniffer(tmp_path))
    assert empty is not None
    assert empty.path.name == "a.json"
    write(tmp_path, {"c.json": '[{"k": 1}]', "d.json": "{}"})
    filled = first_json(Sniffer(tmp_path))
    assert filled is not None
    assert filled.path.name == "c.json"
    assert first_json(filled) is filled


@pytest.mark.parametrize(
    ("text", "by_name", "expected"),
    [
        ('[{"a": {"b": 1}}, {"c": 2}, "cut', False, {"a": {"b": 1}}),
        ('\n[[], [\n {"a": 1}', False, {"a": 1}),
        ('[1, {"a": 1}]', False, {}),
        ('{"a": 1}', False, {}),
        ('{"x.jpg": [], "y\\"].jpg" : [{"a": 1}, ', True, {"a": 1}),
        ('{"x.jpg": [], "y.jpg": [{"a": 1}]}', False, {}),
        ('[{"a": 1', False, {}),
        ("[" * 70_000 + '{"a": 1}', False, {}),
        ('[{"a":' * 20_000, False, {}),
    ],
)
def test_the_first_object_of_a_list(text: str, by_name: bool, expected: object, tmp_path: Path) -> None:
    path = write(tmp_path, {"x.json": text}) / "x.json"
    assert first_object(Sniffer(path), by_name=by_name) == expected
