"""Rows that a reader cannot place are refused or named, never left out in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from boxscore import GroundTruth, load_detections, load_ground_truth
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError

BOX = {"bbox": [[10, 20, 100, 50]], "categories": ["cat"]}


def lines(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def ndjson(path: Path, *images: dict[str, Any]) -> Path:
    head = {"type": "dataset", "task": "detect", "class_names": {"0": "cat"}}
    return lines(path, head, *images)


def image(name: str, **more: Any) -> dict[str, Any]:
    boxes = {"boxes": [[0, 0.5, 0.5, 0.2, 0.2]]}
    usual = {"type": "image", "file": name, "width": 100, "height": 50, "split": "val", "annotations": boxes}
    return usual | more


def test_a_line_of_ndjson_that_is_no_image(tmp_path: Path) -> None:
    for wrong in ({"type": "video"}, {"type": "dataset"}):
        path = ndjson(tmp_path / "a.ndjson", image("a.jpg"), image("b.jpg", **wrong))
        with pytest.raises(FileFormatError, match='have "type": "image"'):
            load_ground_truth(path, image_set="val")


def test_ndjson_holds_no_detections(tmp_path: Path) -> None:
    path = ndjson(tmp_path / "a.ndjson", image("a.jpg"))
    truth = load_ground_truth(path, image_set="val")
    with pytest.raises(FileFormatError, match="detections must have scores"):
        load_detections(path, truth)
    (tmp_path / "empty.ndjson").write_text("")
    with pytest.raises(FileFormatError):
        load_ground_truth(tmp_path / "empty.ndjson", format="ndjson")


def test_splits_in_parquet_metadata(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
    from pyarrow import parquet

    names = ["train/a.jpg", "val/b.jpg"]
    table = arrow.table({"file_name": names, "objects": [BOX, BOX], "width": [200, 200], "height": [99, 99]})
    parquet.write_table(table, tmp_path / "metadata.parquet")
    for name, count in (("val", 1), ("train", 1)):
        assert len(load_ground_truth(tmp_path, image_set=name, box_format="xywh")) == count
    with pytest.raises(InputError):
        load_ground_truth(tmp_path, image_set="nope", box_format="xywh")


def test_more_cells_than_columns_in_metadata(tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    cell = json.dumps(BOX).replace('"', '""')
    path.write_text(f'file_name,objects\na.jpg,"{cell}",7\n')
    with pytest.raises(FileFormatError, match="have a cell for each column"):
        load_ground_truth(path, box_format="xywh")


def test_two_images_of_one_name_in_via(tmp_path: Path) -> None:
    region = '"{""name"":""rect"",""x"":1,""y"":2,""width"":3,""height"":4}","{""kind"":""cat""}"'
    head = (
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    )
    rows = "".join(f'a.jpg,{size},"{{}}",1,0,{region}\n' for size in (10, 20))
    (tmp_path / "via.csv").write_text(f"{head}\n{rows}")
    with pytest.raises(FileFormatError, match="images must have different names"):
        load_ground_truth(tmp_path / "via.csv")
    # Names that end in digits are not mixed up with sizes.
    rows = "".join(f'{name},{size},"{{}}",1,0,{region}\n' for name, size in (("a1", 23), ("a12", 3)))
    (tmp_path / "via.csv").write_text(f"{head}\n{rows}")
    table = load_ground_truth(tmp_path / "via.csv")
    assert table.images.ids[table.image].tolist() == ["a1", "a12"]


def test_an_image_in_two_sets_of_automl(tmp_path: Path) -> None:
    rows = [f"{name},gs://b/a.jpg,cat,0.1,0.1,,,0.5,0.5,,\n" for name in ("TRAIN", "TEST")]
    (tmp_path / "a.csv").write_text("".join(rows))
    with pytest.raises(FileFormatError, match="an image must be in one set"):
        load_ground_truth(tmp_path / "a.csv", image_sizes="100x100")


def test_two_names_of_one_set_of_google(tmp_path: Path) -> None:
    rows = [f"{name},gs://b/{name}.jpg,cat,0.1,0.1,,,0.5,0.5,,\n" for name in ("TRAIN", "TRAINING", "TEST")]
    path = tmp_path / "a.csv"
    path.write_text("".join(rows))
    for name in ("train", "TRAINING"):
        table = load_ground_truth(path, image_set=name, image_sizes="100x100")
        assert table.images.ids.tolist() == ["TRAIN", "TRAINING"]
    # An image may have both names.
    path.write_text("".join(rows[:2]).replace("TRAINING.jpg", "TRAIN.jpg"))
    assert load_ground_truth(path, image_set="train", image_sizes="100x100").image.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_huge_fractions(name: str, tmp_path: Path) -> None:
    box = {"label": "cat", "x": 0.1, "y": 0.1, "x2": 1e200, "y2": 0.5}
    ibm = {"version": "1", "type": "localization", "labels": ["cat"], "annotations": {"a.jpg": [box]}}
    automl = "TEST,gs://b/a.jpg,cat,0.1,0.1,,,1e200,0.5,,\n"
    (tmp_path / name).write_text(automl if name == "a.csv" else json.dumps(ibm))
    message = re.escape("a box must have coordinates of at most 1e+100. Got [0.1, 0.1, 1e+200, 0.5]")
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(tmp_path / name, image_sizes="100x100")


def test_a_failure_of_megadetector_with_an_empty_list(tmp_path: Path) -> None:
    images = [{"file": "a.jpg", "detections": []}, {"file": "b.jpg", "detections": [], "failure": "broken"}]
    path = lines(
        tmp_path / "md.json", {"images": images, "detection_categories": {"1": "animal"}, "info": {}}
    )
    truth = GroundTruth.from_arrays(["a.jpg"], ["cat"], [[0, 0, 9, 9]])
    with pytest.raises(FileFormatError, match=r"b\.jpg"):
        load_detections(path, truth)


def test_boxes_of_openlabel_outside_frames(tmp_path: Path) -> None:
    box = {"bbox": [{"name": "shape", "val": [50, 50, 20, 10]}]}
    frame = {"objects": {"1": {"object_data": box}}, "frame_properties": {"file_name": "a.jpg"}}
    objects = {"1": {"type": "cat", "name": "x"}, "2": {"type": "dog", "name": "y", "object_data": box}}
    content = {"openlabel": {"metadata": {}, "objects": objects, "frames": {"0": frame}}}
    (tmp_path / "o.json").write_text(json.dumps(content))
    with pytest.warns(BoxscoreWarning, match="left out 1 box outside frames"):
        assert len(load_ground_truth(tmp_path / "o.json")) == 1
    # Without boxes in frames, nothing is left.
    frame["objects"] = {}
    (tmp_path / "o.json").write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=r"have boxes in frames\. Got only 1 box outside frames"):
        load_ground_truth(tmp_path / "o.json")


def test_other_shapes_of_openlabel_outside_frames(tmp_path: Path) -> None:
    box = {"bbox": [{"name": "shape", "val": [50, 50, 20, 10]}]}
    frame = {"objects": {"1": {"object_data": box}}, "frame_properties": {"file_name": "a.jpg"}}
    cuboid = {"cuboid": [{"name": "shape", "val": [1] * 10}]}
    objects = {"1": {"type": "cat", "name": "x"}, "2": {"type": "dog", "name": "y", "object_data": cuboid}}
    content = {"openlabel": {"metadata": {}, "objects": objects, "frames": {"0": frame}}}
    (tmp_path / "o.json").write_text(json.dumps(content))
    with pytest.warns(BoxscoreWarning, match="only boxes and regions with a class are objects: 1 cuboid"):
        assert len(load_ground_truth(tmp_path / "o.json")) == 1


def test_json_files_in_folders_too_deep(tmp_path: Path) -> None:
    content = [{"name": "cat", "class": 0, "confidence": 0.5, "box": {"x1": 1, "y1": 2, "x2": 9, "y2": 9}}]
    for folder in (tmp_path / "r", tmp_path / "r" / "1" / "2" / "3" / "4" / "5"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{len(folder.parts)}.json").write_text(json.dumps(content))
    truth = GroundTruth.from_arrays(["a.jpg"], ["cat"], [[0, 0, 9, 9]])
    with pytest.raises(FileFormatError, match="be at most 4 folders deep"):
        load_detections(tmp_path / "r", truth)


def found(path: Path) -> list[str]:
    truth = GroundTruth.from_arrays(["a.jpg", "b.jpg", "c.jpg"], ["cat"] * 3, [[0, 0, 9, 9]] * 3)
    table = load_detections(path, truth)
    return sorted(str(name) for name in table.images.ids[table.image])


def test_json_files_in_linked_folders(tmp_path: Path) -> None:
    content = [{"name": "cat", "class": 0, "confidence": 0.5, "box": {"x1": 1, "y1": 2, "x2": 9, "y2": 9}}]
    results, other, pictures = (tmp_path / name for name in ("r", "other", "pictures"))
    for folder, name in ((results, "a"), (results / "inner", "b"), (other, "c"), (pictures / ".cache", "d")):
        folder.mkdir(parents=True)
        (folder / f"{name}.json").write_text(json.dumps(content))
    try:
        (results / "again").symlink_to(results / "inner", target_is_directory=True)
    except OSError:
        pytest.skip("links need a permission here")
    # Loops, what is read anyway, and folders without JSON files are no loss.
    (results / "loop").symlink_to(tmp_path, target_is_directory=True)
    (results / "pictures").symlink_to(pictures, target_is_directory=True)
    (results / "b.jpg").symlink_to(tmp_path / "missing.jpg")
    # Trees of images are not walked to their end.
    deep = pictures / "1" / "2" / "3" / "4"
    (deep / "5").mkdir(parents=True)
    (deep / "5" / "e.json").write_text(json.dumps(content))
    before = found(results)
    assert len(before) == 2
    (deep / "5" / "e.json").rename(deep / "e.json")
    with pytest.raises(FileFormatError, match=r"not in links to them\. Got .*pictures"):
        found(results)
    (deep / "e.json").unlink()
    (results / "link").symlink_to(other, target_is_directory=True)
    with pytest.raises(
        FileFormatError, match=r"JSON files must be in folders, not in links to them\. Got .*link"
    ):
        found(results)
    # Links to files are read, unless these are missing.
    (results / "link").unlink()
    (results / "c.json").symlink_to(other / "c.json")
    assert len(found(results)) == 3
    (other / "c.json").unlink()
    with pytest.raises(FileFormatError, match=r"a JSON file must exist\. Got the link .*c\.json to nothing"):
        found(results)
    # Folders that start with a dot are not read, so a link to one is refused.
    (results / "c.json").unlink()
    (results / ".hidden").mkdir()
    (results / ".hidden" / "c.json").write_text(json.dumps(content))
    (results / "link").symlink_to(results / ".hidden", target_is_directory=True)
    with pytest.raises(FileFormatError, match="not in links to them"):
        found(results)


def test_json_files_below_annotations_of_supervisely(tmp_path: Path) -> None:
    size = {"width": 200, "height": 100}
    points = {"exterior": [[10, 20], [110, 70]], "interior": []}
    item = {"classTitle": "cat", "geometryType": "rectangle", "points": points}
    for folder in (tmp_path / "ann", tmp_path / "ann" / "more"):
        folder.mkdir()
        (folder / f"{folder.name}.jpg.json").write_text(json.dumps({"size": size, "objects": [item]}))
    with pytest.raises(FileFormatError, match="JSON files must be in the folder itself"):
        load_ground_truth(tmp_path, format="supervisely")
