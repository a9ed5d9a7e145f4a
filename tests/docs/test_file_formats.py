"""The pages on file formats have every format, with examples that load: the same cat and dog, the same detection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from test_docs_examples import ROOT, blocks_of

from boxscore import load_detections, load_ground_truth, remap_classes
from boxscore.formats.registry import detect_format, format_named, format_names
from support.each import each

PAGE = "\n".join(
    (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("file-formats", "tool-formats")
)
SECTIONS = {
    found[1]: section
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)
    if (found := re.search(r"\A[^\n]+\n\n`--format (\w+)`", section)) and not section.startswith("LVIS\n")
}
EXAMPLES = {block["title"]: block["code"] for block in blocks_of(PAGE) if block["title"]}

TRUTH = {
    "coco": "coco/instances.json",
    "voc": "voc/Annotations",
    "yolo": "yolo/labels",
    "csv": "csv/truth.csv",
    "jsonl": "jsonl/truth.jsonl",
    "openimages": "openimages/truth.csv",
    "cvat": "cvat/annotations.xml",
    "labelme": "labelme",
    "labelstudio": "labelstudio/tasks.json",
    "datumaro": "datumaro/val.json",
    "supervisely": "supervisely",
    "sagemaker": "sagemaker/output.manifest",
    "via": "via/via.json",
    "vott": "vott/export.json",
    "createml": "createml/truth.json",
    "fiftyone": "fiftyone/samples.json",
    "bdd": "bdd/truth.json",
    "ndjson": "ndjson/dataset.ndjson",
    "huggingface": "huggingface",
    "labelbox": "labelbox/export.ndjson",
    "darwin": "darwin",
    "superannotate": "superannotate",
    "scale": "scale/tasks.json",
    "vertex": "vertex/import.jsonl",
    "keras": "keras/train.txt",
    "ibm": "ibm/_annotations.json",
    "edgeimpulse": "edgeimpulse/bounding_boxes.labels",
    "unity": "unity/captures_000.json",
    "odvg": "odvg/val.jsonl",
    "openlabel": "openlabel/labels.json",
    "mot": "mot",
    "text": "text/ground-truth",
    "dota": "dota/labelTxt",
    "hrsc": "hrsc/Annotations",
    "crowdhuman": "crowdhuman/truth.odgt",
    "citypersons": "citypersons/truth.json",
    "visdrone": "visdrone/annotations",
    "kitti": "kitti/label_2",
    "xview": "xview/truth.geojson",
    "saco": "saco/annotator_a.json",
    "refcoco": "refcoco/testA.json",
    "omnilabel": "omnilabel/truth.json",
    "records": "records/truth.json",
}
DETECTIONS = {
    "coco": "coco/results.json",
    "voc": "voc/results",
    "yolo": "yolo/predictions",
    "darknet": "darknet/predictions",
    "csv": "csv/detections.csv",
    "jsonl": "jsonl/detections.jsonl",
    "openimages": "openimages/detections.csv",
    "cvat": "cvat/predictions.xml",
    "text": "text/detection-results",
    "dota": "dota/results",
    "crowdhuman": "crowdhuman/detections.odgt",
    "visdrone": "visdrone/results",
    "kitti": "kitti/results",
    "xview": "xview/results",
    "mot": "mot/det/det.txt",
    "widerface": "widerface/results",
    "answers": "answers/answers.jsonl",
    "omnilabel": "omnilabel/predictions.json",
    "labelbox": "labelbox/upload.ndjson",
    "scale": "scale/predictions.json",
    "ultralytics": "ultralytics",
    "pipeline": "pipeline",
    "roboflow": "roboflow",
    "mmdetjson": "preds",
    "darknetjson": "darknetjson/result.json",
    "megadetector": "megadetector/results.json",
    "records": "records/detections.json",
    "vertex": "vertex/predictions.jsonl",
}
DETECTIONS_ONLY = {"answers", "darknet", "darknetjson", "megadetector", "mmdetjson", "pipeline"}
DETECTIONS_ONLY |= {"roboflow", "ultralytics"}
NOT_TEXT = {"cityscapes", "columns", "parquet", "pickled", "tfrecord", "widerface"}
"""Whose ground truth has no example: binary files, and results only."""

CAT, DOG = [10.0, 20.0, 110.0, 70.0], [30.5, 40.0, 50.5, 60.0]
FOUND = [12.0, 20.0, 110.0, 68.0]
WHOLE = [CAT, [30.0, 40.0, 50.0, 60.0]]
UNUSUAL = {"hrsc": [CAT], "visdrone": WHOLE, "xview": WHOLE}
"""One rotated ship, and whole pixels."""

FRACTIONS = {"yolo", "darknet", "openimages", "ibm", "vertex"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in EXAMPLES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    (tmp_path / "sizes.csv").write_text("image,width,height\na,200,100\n", encoding="utf-8")
    (tmp_path / "model_classes.txt").write_text("cat\n", encoding="utf-8")
    return tmp_path


def asked(name: str, folder: Path, *, sizes: bool = True) -> dict[str, Any]:
    """What files of a format do not say: sizes of images, the order of four numbers."""
    options: dict[str, Any] = {"image_sizes": folder / "sizes.csv"} if sizes and name in FRACTIONS else {}
    more = {"text": {"box_format": "xyxy"}, "answers": {"coordinates": "pixels"}}
    more["mmdetjson"] = {"classes": folder / "model_classes.txt"}
    return options | (more | {"records": more["text"]}).get(name, {})


@each(format_names(auto=False))
def test_a_format_has_its_section(name: str) -> None:
    section = SECTIONS[name]
    assert "**Read" in section or "### Read" in section
    assert "**Written" in section or "### Written" in section
    writes = bool(format_named(name).holds)
    assert bool(re.search(r"\*\*Written\*\*: no\b", section)) != writes


def test_every_example_is_loaded_by_a_test() -> None:
    assert set(SECTIONS) == set(format_names(auto=False))
    assert set(TRUTH) | NOT_TEXT | DETECTIONS_ONLY == set(SECTIONS)
    paths = (*TRUTH.values(), *DETECTIONS.values(), "cityscapes/results", "keras/classes.txt")
    assert [name for name in EXAMPLES if not name.startswith(paths)] == []


@pytest.mark.parametrize("name", TRUTH)
def test_an_example_of_ground_truth_is_recognized_and_loads(name: str, folder: Path) -> None:
    path = folder / TRUTH[name]
    assert detect_format(path)[0] == name
    table = load_ground_truth(path, **asked(name, folder))
    assert table.boxes.round(12).tolist() == UNUSUAL.get(name, [CAT, DOG])
    assert len(table.images.ids) == 1


@pytest.mark.filterwarnings("ignore:.*the pipeline cut boxes to whole pixels")
@pytest.mark.parametrize("name", DETECTIONS)
def test_an_example_of_detections_loads(name: str, folder: Path) -> None:
    same = {"darknet": "yolo", "widerface": "labelme"}.get(name, "coco" if name in DETECTIONS_ONLY else name)
    truth = load_ground_truth(folder / TRUTH[same], **asked(same, folder))
    if name == "dota":
        (folder / "dota" / "results" / "Task1_dog.txt").touch()
    if name == "widerface":
        truth = remap_classes(truth, {"cat": "face"})
    found = load_detections(folder / DETECTIONS[name], truth, format=name, **asked(name, folder, sizes=False))
    assert found.boxes.round(12).tolist() == [FOUND]
    assert not found.scored if name == "answers" else found.scores.tolist() == [0.9]
