"""Dialects of VOC XML that other tools write and read."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import boxscore as bs

BOX = "<bndbox><xmin>10</xmin><ymin>20</ymin><xmax>110</xmax><ymax>70</ymax></bndbox>"
POLYGON = (
    "<polygon><x1>10</x1><y1>45</y1><x2>60</x2><y2>20</y2><x3>110</x3><y3>50</y3>"
    "<x4>60</x4><y4>70</y4></polygon>"
)


def read(folder: Path, *objects: str, root: str = "annotation") -> bs.GroundTruth:
    (folder / "x").mkdir()
    inside = "".join(f"<object><name>cat</name>{each}</object>" for each in objects)
    size = "<size><width>200</width><height>100</height></size>"
    (folder / "x" / "a.xml").write_text(f"<{root}><filename>a.jpg</filename>{size}{inside}</{root}>")
    return bs.load_ground_truth(folder / "x")


@pytest.mark.parametrize("tag", ["truncated", "occluded"])
@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("0", False),
        ("1", True),
        ("", False),
        ("0.0597", True),
        ("0.0", False),
        ("2", True),
        ("Unspecified", False),
        ("-1", False),
    ],
)
def test_flags_that_no_metric_reads_take_any_value(tmp_path: Path, tag: str, text: str, right: bool) -> None:
    says = contextlib.nullcontext() if text in ("0", "1", "") else pytest.warns(bs.BoxscoreWarning)
    with says as caught:
        table = read(tmp_path, f"<{tag}>{text}</{tag}>{BOX}", BOX)
    assert table.columns[tag].tolist() == [right, False]
    np.testing.assert_array_equal(table.boxes, [[10, 20, 110, 70]] * 2)
    if caught:
        assert "in 1 object, truncated or occluded is not 0 or 1" in str(caught[0].message)


def test_the_flag_that_metrics_read_stays_strict(tmp_path: Path) -> None:
    with pytest.raises(bs.InputError, match=r"difficult must be 0 or 1. Got '0.5'"):
        read(tmp_path, f"<difficult>0.5</difficult>{BOX}")


@pytest.mark.parametrize("root", ["annotation", "Annotation", "ANNOTATION"])
def test_the_root_has_any_case(tmp_path: Path, root: str) -> None:
    np.testing.assert_array_equal(read(tmp_path, BOX, root=root).boxes, [[10, 20, 110, 70]])


def test_a_polygon_of_labelbox(tmp_path: Path) -> None:
    """The box around the polygon counts, but a bndbox comes first."""
    with pytest.warns(bs.BoxscoreWarning, match=r"2 objects without a bndbox; the box around the polygon"):
        table = read(tmp_path, POLYGON, POLYGON.replace("110", "130"), BOX + POLYGON.replace("110", "130"))
    np.testing.assert_array_equal(table.boxes, [[10, 20, 110, 70], [10, 20, 130, 70], [10, 20, 110, 70]])


@pytest.mark.parametrize(
    ("polygon", "rule"),
    [
        (POLYGON.replace("<y4>70</y4>", ""), "a polygon must have as many x as y. Got 4 and 3"),
        (POLYGON.replace("110", "wide"), "x3 must be a number. Got 'wide'"),
        ("<polygon><pt><x>10</x><y>20</y></pt></polygon>", "must have a bndbox.*LabelMe's old XML"),
        ("<polygon></polygon>", "must have a bndbox"),
    ],
)
def test_other_polygons_are_refused(tmp_path: Path, polygon: str, rule: str) -> None:
    with pytest.raises(bs.InputError, match=rule):
        read(tmp_path, polygon)
