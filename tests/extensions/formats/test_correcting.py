"""Ground truth corrected in place: what was not touched is byte for byte as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import LabelEdits
from boxscore.errors import InputError
from boxscore.extensions.formats.correcting import corrections_of, write_corrected
from support import annotations

SAMPLE = Path(__file__).parents[3] / "datasets" / "shapes_coco"

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def fix(path: Path, output: Path, *edits: tuple[int | None, dict[str, Any]], **options: Any) -> None:
    """Correct a row, or add one, by the class and the corners that are given."""
    before = boxscore.load_ground_truth(path, **options)
    names = before.categories.names.tolist()
    changed, new, parts = {}, [], []
    for row, values in edits:
        label = before.take(np.array([0 if row is None else row]))
        if "image" in values:
            label = label.replaced(image=np.array([values["image"]], dtype=np.int32))
        if "label" in values:
            label = label.replaced(category=np.array([names.index(values["label"])], dtype=np.int32))
        if "box" in values:
            box = np.array([values["box"]], dtype=float)
            sizes = box[:, 2:] - box[:, :2]
            label = label.replaced(boxes=box, sizes=sizes, area=sizes.prod(axis=1))
        if row is None:
            new.append(label)
        else:
            changed[row] = label
        parts.append(LabelEdits(np.array([-1 if row is None else row]), np.array([0]), label, before))
    after = LabelEdits.joined(parts).applied_to(before)
    write_corrected(
        path,
        output,
        before,
        after,
        corrections_of(before, changed, boxscore.data.alignment.stacked(new) if new else before.take([])),
        read=lambda where: boxscore.load_ground_truth(where, **options),
        format="auto",
        image_set=None,
    )


YOLO: dict[str, str | bytes] = {
    "data.yaml": "path: .\nval: images\nnames: [cat, dog]  # of the farm\n",
    "labels/a.txt": "0  0.50 0.5 .25 0.25\r\n\r\n1 0.1 0.1 0.1 0.1",
    "labels/b.txt": "1 0.25 0.25 1e-1 0.1\n",
    "image_sizes.csv": "image,width,height\na,200,100\nb,40,30\n",
    "images/readme.md": "Not a picture.",
}


def test_lines_of_yolo(tmp_path: Path) -> None:
    folder, fixed = put(tmp_path / "own", YOLO), tmp_path / "fixed"
    fix(
        folder,
        fixed,
        (0, {"label": "dog"}),
        (1, {"box": [0, 0, 50, 50]}),
        (None, {"image": 0, "label": "cat", "box": [100, 0, 200, 100]}),
    )
    new = {**YOLO, "labels/a.txt": "1  0.50 0.5 .25 0.25\r\n\r\n1 0.125 0.25 0.25 0.5\n0 0.75 0.5 0.5 1.0\n"}
    assert contents(fixed) == contents(put(tmp_path / "expected", new))
    assert contents(folder) == contents(put(tmp_path / "before", YOLO))


def test_pictures_are_linked_and_labels_are_not(tmp_path: Path) -> None:
    folder = put(tmp_path / "own", {**YOLO, "images/a.png": b"?", "images/b.png": b"?"})
    fix(folder, tmp_path / "fixed", (0, {"label": "dog"}))
    files = [file for file in folder.rglob("*") if file.is_file()]
    same = [file.name for file in files if file.samefile(tmp_path / "fixed" / file.relative_to(folder))]
    assert sorted(same) in (["a.png", "b.png"], [])  # as the file system can
    assert (tmp_path / "fixed/images/a.png").read_bytes() == b"?"


def test_a_label_file_that_was_missing(tmp_path: Path) -> None:
    files = {**YOLO, "images/a.png": b"?", "images/b.png": b"?"}
    del files["labels/b.txt"]
    folder = put(tmp_path / "own", files)
    fix(folder, tmp_path / "fixed", (None, {"image": 1, "label": "cat", "box": [0, 0, 20, 30]}))
    assert (tmp_path / "fixed/labels/b.txt").read_text() == "0 0.25 0.5 0.5 1.0\n"


def test_a_polygon_takes_another_class_and_no_box(tmp_path: Path) -> None:
    folder = put(tmp_path / "own", {**YOLO, "labels/b.txt": "1 0.1 0.1 0.2 0.1 0.2 0.2\n"})
    fix(folder, tmp_path / "fixed", (2, {"label": "cat"}))
    assert (tmp_path / "fixed/labels/b.txt").read_text() == "0 0.1 0.1 0.2 0.1 0.2 0.2\n"
    with pytest.raises(InputError, match=r"a label must be a box of four numbers to be drawn again\. Got 6"):
        fix(folder, tmp_path / "other", (2, {"box": [0, 0, 9, 9]}))
    assert not (tmp_path / "other").exists()


VOC_A = """<?xml version="1.0" encoding="utf-8"?>
<!-- <object><name>no</name></object> -->
<annotation><filename>a.jpg</filename>
\t<size><width>200</width><height>100</height><depth>3</depth></size>
\t<object>
\t\t<part><name>tail</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>
\t\t<name>cat</name><pose>Left</pose><difficult>1</difficult>
\t\t<bndbox><xmax>50.0</xmax><xmin>10</xmin><ymin> 20</ymin><ymax>60</ymax></bndbox>
\t</object>
\t<object><name>d&amp;g</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox></object>
</annotation>
"""


def test_objects_of_voc(tmp_path: Path) -> None:
    other = VOC_A.replace("a.jpg", "b.jpg")
    files: dict[str, str | bytes] = {"Annotations/a.xml": VOC_A, "Annotations/b.xml": other}
    folder = put(tmp_path / "own", files)
    fix(
        folder,
        tmp_path / "fixed",
        (0, {"label": "d&g", "box": [10.5, 20, 50, 60]}),
        (None, {"image": 0, "label": "cat", "box": [5, 6, 7, 8]}),
    )
    changed = VOC_A.replace("<name>cat", "<name>d&amp;g")
    changed = changed.replace(
        "<xmax>50.0</xmax><xmin>10</xmin><ymin> 20<", "<xmax>50</xmax><xmin>10.5</xmin><ymin>20<"
    )
    added = (
        "\n\t<object><name>cat</name><difficult>0</difficult>"
        "<bndbox><xmin>5</xmin><ymin>6</ymin><xmax>7</xmax><ymax>8</ymax></bndbox></object>"
    )
    changed = changed.replace("\n</annotation>", f"{added}\n</annotation>")
    assert contents(tmp_path / "fixed") == {
        "Annotations/a.xml": changed.encode(),
        "Annotations/b.xml": other.encode(),
    }
    assert contents(folder)["Annotations/a.xml"] == VOC_A.encode()


def test_shapes_of_cvat(tmp_path: Path) -> None:
    path = annotations.write(tmp_path, "cvat")
    text = path.read_text()
    fix(
        path,
        tmp_path / "fixed.xml",
        (0, {"label": "dog"}),
        (1, {"box": [1, 2.5, 3, 4]}),
        (None, {"image": 1, "label": "cat", "box": [5, 6, 7, 8]}),
    )
    assert path.read_text() == text
    text = text.replace(
        '<box label="cat" occluded="0" xtl="10.0"', '<box label="dog" occluded="0" xtl="10.0"'
    )
    text = text.replace('xtl="30.5" ytl="40.0" xbr="50.5" ybr="60.0"', 'xtl="1" ytl="2.5" xbr="3" ybr="4"')
    added = '  <box label="cat" source="manual" occluded="0" xtl="5" ytl="6" xbr="7" ybr="8" z_order="0"></box>\n  '
    text = text.replace('height="30"></image>', f'height="30">{added}</image>')
    assert (tmp_path / "fixed.xml").read_text() == text


def test_records_of_coco(tmp_path: Path) -> None:
    content = json.loads((SAMPLE / "instances.json").read_bytes())
    content["own"] = {"kept": [1, 2.50, None, "é"]}
    path = put(tmp_path, {"own.json": json.dumps(content)}) / "own.json"
    fix(path, tmp_path / "fixed.json", (3, {"label": "star"}), (5, {"box": [1, 2, 30, 40]}))
    star = next(one["id"] for one in content["categories"] if one["name"] == "star")
    content["annotations"][3]["category_id"] = star
    content["annotations"][5] |= {"bbox": [1.0, 2.0, 29.0, 38.0], "area": 29 * 38}
    content["annotations"][5].pop("segmentation", None)
    assert json.loads((tmp_path / "fixed.json").read_bytes()) == content


def test_a_format_that_is_written_anew(tmp_path: Path) -> None:
    text = "image,class,x1,y1,x2,y2\na.jpg,cat,1,2,3,4\na.jpg,dog,5,6,7,8\n"
    path = put(tmp_path, {"own.csv": text}) / "own.csv"
    fix(path, tmp_path / "fixed.csv", (1, {"box": [5, 6, 7.25, 8]}))
    fixed = boxscore.load_ground_truth(tmp_path / "fixed.csv")
    assert fixed.categories.names[fixed.category].tolist() == ["cat", "dog"]
    assert fixed.boxes.tolist() == [[1, 2, 3, 4], [5, 6, 7.25, 8]]
    assert path.read_text() == text


@pytest.mark.parametrize(
    "name", [name for name in annotations.FORMATS if name.split()[0] not in ("cvat", "text")]
)
def test_a_format_that_is_not_written_is_refused(name: str, tmp_path: Path) -> None:
    path = annotations.write(tmp_path / "own", name)
    before = contents(tmp_path / "own")
    with pytest.raises(
        InputError, match=r"ground truth that is corrected must be .* boxscore convert --to coco"
    ):
        fix(path, tmp_path / "fixed", (0, {"label": "dog"}))
    assert contents(tmp_path / "own") == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["own"]


def test_what_was_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.extensions.formats import _yolo_correcting

    folder = put(tmp_path / "own", YOLO)
    monkeypatch.setattr(_yolo_correcting, "_line", lambda line, one, place: line.replace("0.50", "0.51"))
    with pytest.raises(InputError, match=r"corrected ground truth must be read as it should be.*another dog"):
        fix(folder, tmp_path / "fixed", (0, {"label": "dog"}))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["own"]


def test_where_the_output_may_not_lie(tmp_path: Path) -> None:
    folder = put(tmp_path / "own", YOLO)
    with pytest.raises(InputError, match="--output must be outside the folder to correct"):
        fix(folder, folder / "fixed", (0, {"label": "dog"}))
    put(tmp_path / "there", {"a": "b"})
    with pytest.raises(InputError, match="--output must be a folder that is not there yet"):
        fix(folder, tmp_path / "there", (0, {"label": "dog"}))
    assert contents(tmp_path / "there") == {"a": b"b"}


@pytest.mark.parametrize("to", ["yolo", "voc"])
def test_the_command_corrects_a_folder(to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, found, tasks, fixed = (str(tmp_path / name) for name in (to, "dt.csv", "tasks.json", "fixed"))
    truth = boxscore.load_ground_truth(SAMPLE / "instances.json")
    boxscore.save_as(truth, folder, format=to, lossy=True)
    detections = boxscore.load_detections(SAMPLE / "detections.json", truth)
    boxscore.save_as(detections, found, lossy=True)
    before = contents(Path(folder))
    call = [folder, found, "--top", "12"]
    assert main(["suspects", *call, "--write", tasks]) == 0
    assert main(["fix", *call, "--vetted", tasks, "--output", fixed]) == 0
    said = capsys.readouterr().out
    assert contents(Path(folder)) == before
    after = boxscore.evaluate(fixed, found)["AP"]
    assert f"{after:.4f} after" in said
    new = contents(Path(fixed))
    lines = {name: (before[name].splitlines(), new[name].splitlines()) for name in before}
    assert set(new) == set(before)
    changed = sum(a != b for old, now in lines.values() for a, b in zip(old, now, strict=False))
    added = sum(len(now) - len(old) for old, now in lines.values())
    assert added > 0
    if to == "yolo":
        assert changed + added == 12
