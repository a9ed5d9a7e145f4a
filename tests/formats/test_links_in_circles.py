"""A link that leads to itself, in a folder of any format, is an error that names it, in Python as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from boxscore import InputError, load_detections, load_ground_truth
from boxscore.formats import format_names
from support.samples import SHAPES

TRUTH = SHAPES / "instances.json"
PLACES = (
    "a.txt",
    "a.json",
    "a.xml",
    "a.parquet",
    "a.tfrecord",
    "labels",
    "labels/a.txt",
    "Annotations",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_link_to_itself(place: str, tmp_path: Path) -> None:
    link = tmp_path / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(link.name)
    table = load_ground_truth(TRUTH)
    for name in format_names():
        with pytest.raises(InputError):
            load_ground_truth(tmp_path, format=name)
        with pytest.raises(InputError):
            load_detections(tmp_path, table, format=name)


def test_its_name_is_said(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "a.txt").symlink_to("a.txt")
    with pytest.raises(InputError) as caught:
        load_ground_truth(tmp_path)
    assert str(caught.value).startswith(
        f"{tmp_path / 'a.txt'}: cannot be read: Too many levels of symbolic links"
    )
