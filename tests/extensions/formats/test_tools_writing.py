"""`convert --to labelstudio` and `--to cvat` write files that read back as they were."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.formats import detect_format
from support.running import Run

BOXES = [[32.0, 12.0, 96.0, 48.0], [10.125, 20.7, 33.3, 41.1], [0.1, 0.2, 99.9, 59.7]]


def truth() -> boxscore.GroundTruth:
    table = boxscore.GroundTruth.from_arrays(["a", "c d", "c d"], ["x", "y & z", "x"], BOXES)
    names = ["a.jpg", "c d.png", "e.jpg"]
    images = table.images.build(["a", "c d", "e"], file_names=names, sizes=[[128, 60]] * 3)
    return table.replaced(images=images)


def write_coco(folder: Path) -> tuple[Path, Path]:
    boxscore.save_as(truth(), folder / "gt.json", lossy=True)
    found: list[dict[str, Any]] = [
        {"image_id": image, "category_id": label, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": score}
        for image, label, (x1, y1, x2, y2), score in zip(
            "acc", [1, 2, 1], BOXES, [0.25, 0.5, 0.75], strict=True
        )
    ]
    document = json.loads((folder / "gt.json").read_text())
    ids = {image["file_name"][0]: image["id"] for image in document["images"]}
    numbers = sorted(each["id"] for each in document["categories"])
    for row in found:
        row |= {"image_id": ids[row["image_id"]], "category_id": numbers[row["category_id"] - 1]}
    (folder / "dt.json").write_text(json.dumps(found))
    return folder / "gt.json", folder / "dt.json"


@pytest.mark.parametrize(("form", "file"), [("labelstudio", "t.json"), ("cvat", "annotations.xml")])
def test_ground_truth_reads_back_as_it_was(form: str, file: str, tmp_path: Path) -> None:
    boxscore.save_as(truth(), tmp_path / file, format=form)
    read = boxscore.load_ground_truth(tmp_path / file)
    np.testing.assert_allclose(read.boxes, truth().boxes, rtol=1e-15)
    if form == "cvat":
        np.testing.assert_array_equal(read.boxes, truth().boxes)
    assert read.categories.names[read.category].tolist() == ["x", "y & z", "x"]
    assert read.images.file_names.tolist() == ["a.jpg", "c d.png", "e.jpg"]


def test_predictions_are_those_of_the_format(tmp_path: Path, run: Run) -> None:
    gt, dt = write_coco(tmp_path)
    output = tmp_path / "tasks.json"
    more = ["--image-prefix", "/data/local-files/?d=images/", "--from-name", "boxes", "--to-name", "photo"]
    run("convert", "--gt", gt, "--dt", dt, "--to", "labelstudio", "--output", output, *more)
    tasks = json.loads(output.read_text())
    assert [task["data"]["image"] for task in tasks] == [
        f"/data/local-files/?d=images/{name}" for name in ("a.jpg", "c%20d.png", "e.jpg")
    ]
    assert tasks[0]["predictions"] == [
        {
            "model_version": "boxscore",
            "score": 0.25,
            "result": [
                {
                    "id": "box-1",
                    "type": "rectanglelabels",
                    "from_name": "boxes",
                    "to_name": "photo",
                    "original_width": 128,
                    "original_height": 60,
                    "image_rotation": 0,
                    "value": {
                        "rotation": 0,
                        "x": 25.0,
                        "y": 20.0,
                        "width": 50.0,
                        "height": 60.0,
                        "rectanglelabels": ["x"],
                    },
                    "score": 0.25,
                }
            ],
        }
    ]
    assert tasks[1]["predictions"][0]["score"] == 0.75
    assert tasks[2]["predictions"] == [{"model_version": "boxscore", "result": []}]
    whole = [run.json("evaluate", gt, path)["metrics"] for path in (dt, output)]
    assert whole[0] == whole[1]
    # Another command that writes such a file keeps names and addresses.
    run("nms", "--dt", output, "--iou-threshold", 0.5, "--output", tmp_path / "kept.json")
    assert json.loads((tmp_path / "kept.json").read_text())[0] == tasks[0]


def test_scores_of_cvat_come_back_to_the_bit(tmp_path: Path, run: Run) -> None:
    gt, dt = write_coco(tmp_path)
    results = json.loads(dt.read_text())
    for row, score in zip(results, [0.1 + 0.2, 1e-300, 1 / 3], strict=True):
        row["score"] = score
    dt.write_text(json.dumps(results))
    output = tmp_path / "annotations.xml"
    run("convert", "--gt", gt, "--dt", dt, "--to", "cvat", "--output", output)
    root = ElementTree.parse(output).getroot()
    assert [text.text for text in root.iterfind("image/box/attribute[@name='score']")] == [
        "0.30000000000000004",
        "1e-300",
        "0.3333333333333333",
    ]
    # Labels declare the attribute, or CVAT would not import it.
    declared = root.findall("meta/task/labels/label/attributes/attribute")
    assert [[each.text for each in one] for one in declared] == [["score", "False", "text"]] * 2
    whole = [run.json("evaluate", gt, path)["metrics"] for path in (dt, output)]
    assert whole[0] == whole[1]
    assert len(boxscore.load_ground_truth(output)) == 3
    # Other commands write such a file too.
    run("nms", "--dt", output, "--iou-threshold", 0.99, "--output", tmp_path / "kept.xml")
    assert (tmp_path / "kept.xml").read_bytes() == output.read_bytes()


@pytest.mark.parametrize(("count", "scores"), [(3, None), (0, []), (1, [0.5])])
def test_detections_of_cvat_may_be_none_and_lack_scores(count: int, scores: Any, tmp_path: Path) -> None:
    known = truth()
    images, labels = known.images.ids[known.image], known.categories.ids[known.category]
    found = boxscore.Detections.from_arrays(
        images[:count].tolist(),
        labels[:count].tolist(),
        np.array(BOXES)[:count],
        scores,
        images=known.images,
        categories=known.categories,
    )
    boxscore.save_as(found, tmp_path / "a.xml", format="cvat")
    read = boxscore.load_detections(tmp_path / "a.xml", known)
    assert (len(read), read.scored) == (count, scores is not None)
    assert len(boxscore.load_ground_truth(tmp_path / "a.xml").images) == 3


def test_shapes_that_a_tool_file_cannot_hold_are_named(tmp_path: Path, run: Run) -> None:
    score = '<attribute name="score">0.5</attribute>'
    polygon = f'<polygon label="x" points="1,1;5,1;5,5">{score}</polygon>'
    (tmp_path / "a.xml").write_text(
        f'<annotations><image id="0" name="a.jpg" width="9" height="9">{polygon}</image></annotations>'
    )
    fuse = ["fuse", tmp_path / "a.xml", "--iou-type", "segm", "--iou-threshold", 0.5]
    error = run(*fuse, "--output", tmp_path / "b.xml").err
    assert "b.xml: leaves out 1 mask, which cvat files cannot store." in error
    run.error(*fuse, "--output", tmp_path / "c.xml", "--strict")
    assert not (tmp_path / "c.xml").exists()
    value = {"points": [[10, 10], [50, 10], [50, 50]], "polygonlabels": ["x"]}
    result = {"from_name": "l", "to_name": "i", "original_width": 9, "original_height": 9, "value": value}
    task = {"data": {"image": "a.jpg"}, "predictions": [{"result": [result | {"score": 0.5}]}]}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    call = ["nms", "--dt", tmp_path / "a.json", "--iou-type", "segm", "--iou-threshold", 0.5]
    error = run(*call, "--output", tmp_path / "b.json").err
    assert "b.json: leaves out 1 mask, which labelstudio files cannot store." in error


def test_classes_with_and_without_a_list_are_fused_by_name(tmp_path: Path, run: Run) -> None:
    gt, dt = write_coco(tmp_path)
    listed, free = tmp_path / "listed.xml", tmp_path / "free.xml"
    run("convert", "--gt", gt, "--dt", dt, "--to", "cvat", "--output", listed)
    root = ElementTree.parse(listed).getroot()
    root.remove(root.find("meta"))  # type: ignore[arg-type]
    ElementTree.ElementTree(root).write(free)
    for files in ([listed, free], [free, listed]):
        run("fuse", *files, "--output", tmp_path / "fused.json")
        assert len(json.loads((tmp_path / "fused.json").read_text())) == 3


def test_labels_of_cvat(tmp_path: Path) -> None:
    boxscore.save_as(truth(), tmp_path / "annotations.xml", format="cvat")
    root = ElementTree.parse(tmp_path / "annotations.xml").getroot()
    assert [name.text for name in root.findall("meta/task/labels/label/name")] == ["x", "y & z"]
    assert [image.attrib for image in root.findall("image")][1] == {
        "id": "1",
        "name": "c d.png",
        "width": "128",
        "height": "60",
    }
    assert root.find("image/box").attrib == {  # type: ignore[union-attr]
        "label": "x",
        "occluded": "0",
        "z_order": "0",
        "xtl": "32",
        "ytl": "12",
        "xbr": "96",
        "ybr": "48",
    }


def test_what_is_missing_is_said(tmp_path: Path, run: Run) -> None:
    (tmp_path / "d.csv").write_text("image,class,x1,y1,x2,y2,score\na.jpg,x,1,2,3,4,0.5\n")
    call = ["convert", "--dt", tmp_path / "d.csv", "--to", "labelstudio", "--output", tmp_path / "t.json"]
    assert "have a known size in Label Studio" in run.error(*call)
    run(*call, "--image-sizes", "200x100")
    assert json.loads((tmp_path / "t.json").read_text())[0]["data"] == {"image": "a.jpg"}
    assert "with --to labelstudio" in run.error(*call[:4], "coco", *call[5:], "--to-name", "x")
    (tmp_path / "d.csv").write_text(
        "image,class,x1,y1,x2,y2,score\na/b.jpg,x,1,2,3,4,0.5\nc/b.jpg,x,1,2,3,4,0.5\n"
    )
    assert "without their folders" in run.error(*call, "--image-sizes", "200x100")


@pytest.mark.filterwarnings("ignore:.*classes without objects")
def test_label_studio_tasks_without_regions_are_recognized(tmp_path: Path, run: Run) -> None:
    gt, dt = write_coco(tmp_path)
    dt.write_text("[]")
    output = tmp_path / "tasks.json"
    run("convert", "--gt", gt, "--dt", dt, "--to", "labelstudio", "--output", output)
    assert detect_format(output)[0] == "labelstudio"
    assert len(boxscore.load_detections(output, truth())) == 0
    run("nms", "--dt", output, "--iou-threshold", 0.5, "--output", tmp_path / "kept.json")
    assert json.loads((tmp_path / "kept.json").read_text()) == json.loads(output.read_text())
    known = truth()
    boxscore.save_as(known.take(np.array([], dtype=int)), output, format="labelstudio", lossy=True)
    assert boxscore.load_ground_truth(output).images.file_names.tolist() == ["a.jpg", "c d.png", "e.jpg"]


@pytest.mark.parametrize(
    "prefix", ["images", "https://x.org/get?file=", "d?d=", "http://h/x?d=", "http://h/x?d=images/"]
)
def test_addresses_that_do_not_end_in_the_name_are_refused(prefix: str, tmp_path: Path, run: Run) -> None:
    gt, dt = write_coco(tmp_path)
    output = tmp_path / "tasks.json"
    call = ["convert", "--gt", gt, "--dt", dt, "--to", "labelstudio", "--output", output]
    error = run.error(*call, "--image-prefix", prefix)
    assert (
        f"--image-prefix must be an address up to the names of images, as of a folder. Got '{prefix[:9]}"
        in error
    )
    assert "e.g. https://host/ or s3://bucket/" in error
    assert not output.exists()


ODD = [
    "a b.jpg",
    "ß/图 1.jpg",
    'it\'s "x".jpg',
    "a,b;c.jpg",
    "p%20q.jpg",
    "h#1.jpg",
    "q?d=1.jpg",
    "R&D <1>.jpg",
    "e.jpg",
]


@pytest.mark.parametrize("prefix", ["", "/data/local-files/?d=a b/", "s3://bucket/"])
def test_odd_names_come_back(prefix: str, tmp_path: Path, run: Run) -> None:
    images = [
        {"id": number, "file_name": name, "width": 128, "height": 60} for number, name in enumerate(ODD, 1)
    ]
    classes = [{"id": number, "name": name} for number, name in enumerate(['a, "b"', "<x> & 'y'", "0"], 1)]
    rows = [
        {"image_id": image, "category_id": 1 + image % 3, "bbox": [image, 2.5, 30, 20.1], "score": 1 / image}
        for image in range(1, len(ODD))
    ]
    objects = [row | {"id": number, "iscrowd": 0, "area": 603.0} for number, row in enumerate(rows, 1)]
    gt, dt = tmp_path / "gt.json", tmp_path / "dt.json"
    gt.write_text(json.dumps({"images": images, "annotations": objects, "categories": classes}))
    dt.write_text(json.dumps(rows))
    expected = run.json("evaluate", gt, dt)["metrics"]
    forms = {"labelstudio": "tasks.json", "cvat": "a.xml"}
    for form, name in forms.items():
        more = ["--image-prefix", prefix] if form == "labelstudio" and prefix else []
        for side, given in (("gt", ["--gt", gt]), ("dt", ["--gt", gt, "--dt", dt])):
            output = tmp_path / f"{side}_{name}"
            run("convert", *given, "--to", form, "--output", output, "--lossy", *more)
        assert run.json("evaluate", gt, tmp_path / f"dt_{name}")["metrics"] == expected
        assert run.json("evaluate", tmp_path / f"gt_{name}", tmp_path / f"dt_{name}")["metrics"] == expected
    run("convert", "--gt", gt, "--to", "huggingface", "--output", tmp_path / "hf", "--lossy")
    read = ["evaluate", tmp_path / "hf", tmp_path / "dt_a.xml", "--gt-box-format", "xywh"]
    assert run.json(*read)["metrics"] == expected


KEPT = """<?xml version='1.0' encoding="utf-8"?>
<annotations>
 <image id="0" name="a>.jpg" width="20" height="10">
  <!-- <box label="x" xtl="0" ytl="0" xbr="1" ybr="1"><attribute name="score">1</attribute></box> -->
  <polygon label="x" points="1,1;5,1;5,5"><attribute name="color">r&lt;d</attribute>
   <attribute mutable='1' name='Score' > 0.9 </attribute></polygon>{}
  <points label="y" points="1,2"/><box xtl="0" ytl="0" xbr="1" ybr="1"/>
 </image><image id="1" name="b.jpg" width="20" height="10"/>
</annotations>
"""
SECOND = """
  <polygon label="x" points="1,1;5,1;5,5.1"><attribute name="score"></attribute>
   <attribute name="confidence">0.8</attribute></polygon>"""


@pytest.mark.filterwarnings("ignore:.*left out", "ignore:.*does not affect")
def test_nms_copies_the_shapes_of_cvat(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.xml").write_text(KEPT.format(SECOND))
    call = ["nms", "--dt", tmp_path / "a.xml", "--output", tmp_path / "b.xml", "--iou-threshold", 0.5]
    run(*call, "--iou-type", "segm")
    assert (tmp_path / "b.xml").read_text() == KEPT.format("")
    # Lowered scores replace their text.
    run(*call, "--method", "soft-gaussian")
    truth = tmp_path / "a.csv"
    truth.write_text("image,class,x1,y1,x2,y2\na>.jpg,x,1,1,5,5\n")
    read = boxscore.load_detections(tmp_path / "b.xml", boxscore.load_ground_truth(truth))
    low = read.scores.min()
    assert 0 < low < 0.8
    assert (tmp_path / "b.xml").read_text() == KEPT.format(SECOND.replace("0.8", repr(float(low))))
    # A merged shape is a box.
    run(*call, "--method", "nmm")
    box = '<box label="x" occluded="0" xtl="1" ytl="1" xbr="5" ybr="5.1" z_order="0">'
    lines = (tmp_path / "b.xml").read_text().splitlines()
    assert lines[4] == f'  {box}<attribute name="Score">0.9</attribute></box>'
    assert "polygon" not in "".join(lines)


def test_nms_copies_empty_attributes_of_cvat(tmp_path: Path, run: Run) -> None:
    shape = (
        '<polygon label="x" points="1,1;5,1;5,5"><attribute name="score"/>'
        '<attribute name="confidence">0.9</attribute></polygon>'
    )
    text = f'<annotations><image id="0" name="a.jpg" width="20" height="10">{shape}</image></annotations>'
    (tmp_path / "a.xml").write_text(text)
    run("nms", "--dt", tmp_path / "a.xml", "--output", tmp_path / "b.xml", "--iou-threshold", 0.5)
    assert (tmp_path / "b.xml").read_text() == text


@pytest.mark.parametrize("kind", ["tracks", "text", "comment", "encoding"])
def test_other_files_of_cvat_are_written_as_images(kind: str, tmp_path: Path, run: Run) -> None:
    boxes = [
        f'<box {{}} xtl="1" ytl="2" xbr="5" ybr="{bottom}"><attribute name="score">{score}</attribute></box>'
        for bottom, score in (("6", "0.9"), ("6.1", "0.8"))
    ]
    image = '<image id="0" name="\xe9.jpg" width="20" height="10">{}</image>'
    inner = image.format("".join(box.format('label="x"') for box in boxes))
    if kind == "text":
        inner = inner.replace("0.9", "<![CDATA[0.9]]>")
        ellipse = '<ellipse label="x" cx="9" cy="5" rx="6" ry="1" rotation="5">'
        attributes = '<attribute name="color">red</attribute><attribute name="score">0.7</attribute>'
        inner = inner.replace("</image>", f"{ellipse}{attributes}</ellipse></image>")
    if kind == "comment":
        inner = inner.replace("0.9", "0.<!-- . -->9")
    if kind == "tracks":
        tracks = ('<track label="x">' + box.format('frame="3" outside="0"') + "</track>" for box in boxes)
        size = "<meta><task><original_size><width>20</width><height>10</height></original_size></task></meta>"
        inner = size + "".join(tracks)
    encoding = "iso-8859-1" if kind == "encoding" else "utf-8"
    text = f'<?xml version="1.0" encoding="{encoding}"?><annotations>{inner}</annotations>'
    (tmp_path / "a.xml").write_text(text, encoding=encoding)
    call = ["nms", "--dt", tmp_path / "a.xml", "--output", tmp_path / "b.xml", "--iou-threshold", 0.5]
    said = run(*call).err
    lost = "b.xml: leaves out attributes of shapes ('color') and the rotation of shapes: only boxes"
    assert (lost in said) == (kind == "text")
    assert ("a.xml are written as images, one per frame" in said) == (kind == "tracks")
    root = ElementTree.parse(tmp_path / "b.xml").getroot()
    assert [image.get("name") for image in root.findall("image")] == [
        "frame_000003.png" if kind == "tracks" else "\xe9.jpg"
    ]
    scores = [each.text for each in root.iterfind("image/box/attribute")]
    assert scores == (["0.9", "0.7"] if kind == "text" else ["0.9"])
