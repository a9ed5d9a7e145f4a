"""Annotation files in two formats in one folder: counted and named, and refused if images are only in one."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import boxscore
from boxscore.formats.results import load_results
from support.running import Run

IMAGES = ("a", "b", "c")
BOX = (10, 20, 50, 60)


def _xml(name: str) -> str:
    corners = "".join(
        f"<{side}>{at}</{side}>" for side, at in zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    )
    return (
        f"<annotation><filename>{name}.jpg</filename><size><width>100</width><height>100</height></size>"
        f"<object><name>cat</name><bndbox>{corners}</bndbox></object></annotation>"
    )


def _labelme(name: str, **more: float) -> str:
    shape = {"label": "cat", "points": [BOX[:2], BOX[2:]], "shape_type": "rectangle", "flags": {}, **more}
    content = {"shapes": [shape], "imagePath": f"{name}.jpg", "imageData": None}
    return json.dumps({**content, "imageHeight": 100, "imageWidth": 100})


def _createml(*names: str) -> str:
    one = {"label": "cat", "coordinates": {"x": 30, "y": 40, "width": 40, "height": 40}}
    return json.dumps([{"image": f"{name}.jpg", "annotations": [one]} for name in names])


def _coco(*names: str) -> str:
    images = [
        {"id": at, "file_name": f"{name}.jpg", "width": 100, "height": 100} for at, name in enumerate(names)
    ]
    objects = [
        {"id": at + 1, "image_id": at, "category_id": 1, "bbox": [10, 20, 40, 40], "area": 1600, "iscrowd": 0}
        for at in range(len(names))
    ]
    return json.dumps({"images": images, "annotations": objects, "categories": [{"id": 1, "name": "cat"}]})


def _csv(*names: str) -> str:
    return "image,class,x1,y1,x2,y2\n" + "".join(f"{name}.jpg,cat,10,20,50,60\n" for name in names)


YOLO = "0 0.3 0.4 0.4 0.4\n"
KITTI = "Car 0.00 0 -1.58 10 20 50 60 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59\n"
DOTA = "10 20 50 20 50 60 10 60 cat 0\n"
TEXT = "cat 30 40 20 30\n"  # corners would be inverted

PER_IMAGE: dict[str, tuple[str, Callable[[str], str]]] = {
    "voc": (".xml", _xml),
    "labelme": (".json", _labelme),
    "yolo": (".txt", lambda name: YOLO),
    "kitti": (".txt", lambda name: KITTI),
    "dota": (".txt", lambda name: DOTA),
    "text": (".txt", lambda name: TEXT),
}
WHOLE: dict[str, tuple[str, Callable[..., str]]] = {
    "createml": ("all.json", _createml),
    "coco": ("_annotations.coco.json", _coco),
    "csv": ("labels.csv", _csv),
}


def _written(folder: Path, kind: str, names: tuple[str, ...]) -> list[str]:
    """Write the annotations of images in one format, and return the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind in WHOLE:
        file, content = WHOLE[kind]
        (folder / file).write_text(content(*names))
        return [file]
    ending, of_image = PER_IMAGE[kind]
    for name in names:
        (folder / f"{name}{ending}").write_text(of_image(name))
    return [f"{name}{ending}" for name in names]


def _said(load: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load()
    return [str(one.message) for one in caught if "ignoring" in str(one.message)]


PAIRS = [
    (one, other)
    for one in (*PER_IMAGE, *WHOLE)
    for other in (*PER_IMAGE, *WHOLE)
    if not (one in WHOLE and other in WHOLE)  # such a folder has no format of its own
    and PER_IMAGE.get(one, WHOLE.get(one))[0][-4:] != PER_IMAGE.get(other, WHOLE.get(other))[0][-4:]  # type: ignore[index]
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.filterwarnings("ignore:.*image sizes are unknown")
def test_images_that_only_the_other_format_describes_are_an_error(
    tmp_path: Path, one: str, other: str
) -> None:
    """Whichever of the two formats is read, the error counts the images and names the files of the other."""
    loaded: list[boxscore.GroundTruth] = []
    files = {one: _written(tmp_path, one, ("a",)), other: _written(tmp_path, other, ("a", "b", "c"))}
    # The oracle: with the other format's files alone, the folder has three images; with the first's, one.
    first = boxscore.formats.detect_format(tmp_path)[0]
    assert first in files
    if first == other:
        assert _said(lambda: boxscore.load_ground_truth(tmp_path)) == [
            f"{tmp_path}: reading the {other} files, ignoring 1 {one} file ({files[one][0]})."
        ]
        return
    with pytest.raises(boxscore.FileFormatError) as error:
        boxscore.load_ground_truth(tmp_path)
    listed = files[other] if other in WHOLE else files[other][1:]
    assert f"2 images only in {other} files ({', '.join(listed)}), not in {one} files" in str(error.value)
    # Naming the format accepts it, with a note of what is ignored.
    assert _said(lambda: boxscore.load_ground_truth(tmp_path, format=one)) == [
        f"{tmp_path}: reading the {one} files, ignoring {len(files[other])} {other} "
        f"file{'s' * (len(files[other]) > 1)} ({', '.join(files[other])}); 2 images are only in these."
    ]
    # The remedy of the message reads all three.
    remedy = re.search(r"use --format (\w+) to|pass (\S+) to", str(error.value))
    assert remedy is not None
    _said(
        lambda: loaded.append(boxscore.load_ground_truth(remedy[2] or tmp_path, format=remedy[1] or "auto"))
    )
    assert len(loaded[-1].images) == 3


@pytest.mark.parametrize(("one", "other"), [("voc", "yolo"), ("voc", "coco"), ("labelme", "yolo")])
def test_a_conversion_of_all_images_is_only_named(tmp_path: Path, one: str, other: str) -> None:
    _written(tmp_path, one, IMAGES)
    _written(tmp_path, other, IMAGES)
    first, second = (one, other) if boxscore.formats.detect_format(tmp_path)[0] == one else (other, one)
    loaded: list[boxscore.GroundTruth] = []
    said = _said(lambda: loaded.append(boxscore.load_ground_truth(tmp_path)))
    assert len(said) == 1
    assert re.search(rf"reading the {first} files, ignoring [13] {second} files? \([^)]+\)\.$", said[0])
    assert len(loaded[0]) == len(loaded[0].images) == 3


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("classes.txt", "cat\ndog\n"),
        ("labels.txt", "cat\ndog\n"),
        ("README.txt", "Drawn in 2026 by 3 people.\n"),
        ("train.txt", "a.jpg\nb.jpg\nd.jpg\n"),
        ("d.txt", ""),
        ("config.json", '{"images": "d.jpg", "size": 3}'),
        ("predictions.json", '[{"image_id": 9, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]'),
        ("d.json", _labelme("d", score=0.5)),
        ("d.yolo.txt", "0 0.3 0.4 0.4 0.4 0.9\n"),
        ("comp4_det_val_cat.txt", "d 0.9 1 2 3 4\n"),
        ("results.csv", "epoch,loss\n1,0.5\n"),
        ("Task1_cat.txt", "d 0.9 1 2 3 4 5 6 7 8\n"),
    ],
)
def test_files_that_are_not_annotations_are_not_named(tmp_path: Path, name: str, content: str) -> None:
    """Lists, notes, settings and detections say nothing about the ground truth."""
    _written(tmp_path, "voc", IMAGES)
    (tmp_path / name).write_text(content)
    assert _said(lambda: boxscore.load_ground_truth(tmp_path, format="voc")) == []
    if not name.startswith(("comp4", "Task1")):
        assert len(boxscore.load_ground_truth(tmp_path).images) == 3


def test_a_file_far_behind_the_sample_is_found(tmp_path: Path) -> None:
    """Of 60 conversions, the last is of an image without XML."""
    names = [f"{at:03}" for at in range(60)]
    _written(tmp_path, "voc", tuple(names[:-1]))
    _written(tmp_path, "yolo", tuple(names))
    with pytest.raises(boxscore.FileFormatError, match=r"1 image only in yolo files \(059\.txt\)"):
        boxscore.load_ground_truth(tmp_path)


def test_notes_behind_the_sample_are_not_labels(tmp_path: Path) -> None:
    names = tuple(f"{at:03}" for at in range(60))
    _written(tmp_path, "voc", names)
    _written(tmp_path, "yolo", names)
    (tmp_path / "0301-notes.txt").write_text("the cat was blurred\n")
    said = _said(lambda: boxscore.load_ground_truth(tmp_path))
    assert len(said) == 1
    assert "ignoring" in said[0]
    assert "only in" not in said[0]


@pytest.mark.parametrize("given", ["data.yaml", ""])
def test_labels_of_a_data_set_are_looked_at_where_they_are(tmp_path: Path, given: str) -> None:
    """In the folder of the split that is read, not in those of other splits."""
    for split in ("train", "val"):
        _written(tmp_path / "labels" / split, "yolo", ("a", "b"))
        (tmp_path / "images" / split).mkdir(parents=True)
        for name in IMAGES:
            (tmp_path / "images" / split / f"{name}.pfm").write_bytes(b"")
    yaml = "path: .\ntrain: images/train\nval: images/val\nnames: [cat]\n"
    (tmp_path / "data.yaml").write_text(yaml)
    _written(tmp_path / "labels" / "train", "voc", ("c",))
    _written(tmp_path, "voc", ("e",))
    path = tmp_path / given
    size = "100x100"
    kwargs = {"image_sizes": size, "format": "auto" if given else "yolo"}
    assert _said(lambda: boxscore.load_ground_truth(path, **kwargs)) == []  # type: ignore[arg-type]
    _written(tmp_path / "labels" / "val", "voc", ("c",))
    with pytest.raises(boxscore.FileFormatError, match=r"1 image only in voc files \(c\.xml\)"):
        boxscore.load_ground_truth(tmp_path / "data.yaml", image_sizes=size)


def test_each_of_several_folders_is_looked_at(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _written(tmp_path / name, "voc", (name,))
    assert len(boxscore.load_ground_truth(tmp_path / "[ab]").images) == 2
    _written(tmp_path / "b", "yolo", ("c",))
    with pytest.raises(boxscore.FileFormatError, match=r"1 image only in yolo files \(c\.txt\)"):
        boxscore.load_ground_truth(tmp_path / "[ab]")


def test_an_archive_is_named_by_its_own_path(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("a.xml", _xml("a"))
        archive.writestr("b.txt", YOLO)
    with pytest.raises(boxscore.FileFormatError) as error:
        boxscore.load_ground_truth(tmp_path / "set.zip")
    assert "boxscore-" not in str(error.value)
    assert "set.zip" in str(error.value)


def test_the_folder_of_an_inferencer_and_another_file(tmp_path: Path) -> None:
    """A file in it that lists some of the images must not hide the others."""
    (tmp_path / "gt.json").write_text(_coco(*IMAGES))
    folder = tmp_path / "preds"
    folder.mkdir()
    for name in IMAGES:
        (folder / f"{name}.json").write_text('{"labels": [0], "scores": [0.5], "bboxes": [[1, 2, 3, 4]]}')
    box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4"><attribute name="score">0.5</attribute></box>'
    image = f'<image id="0" name="{IMAGES[0]}.jpg" width="9" height="9">{box}</image>'
    (folder / "a.xml").write_text(f"<annotations>{image}</annotations>")
    with pytest.raises(boxscore.FileFormatError, match="only in mmdetjson files"):
        boxscore.evaluate(tmp_path / "gt.json", folder)


SCORED = {"yolo": "0 0.3 0.4 0.4 0.4 0.9\n", "text": "cat 0.9 30 40 20 30\n"}


@pytest.mark.parametrize("lines", sorted(SCORED))
def test_detections_in_two_formats(tmp_path: Path, lines: str) -> None:
    """Files with scores are refused for images without other detections; ground truth is not."""
    (tmp_path / "gt.json").write_text(_coco(*IMAGES))
    truth = boxscore.load_ground_truth(tmp_path / "gt.json")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "a.txt").write_text(SCORED[lines])
    (folder / "b.txt").write_text("")
    _written(folder, "voc", IMAGES)
    if lines == "yolo":
        (folder / "classes.txt").write_text("cat\n")

    def load() -> object:
        return boxscore.load_detections(folder, truth, format=lines)

    assert _said(load) == []
    (folder / "b.json").write_text(_labelme("b", score=0.5))
    assert len(_said(load)) == 1
    (folder / "c.json").write_text(_labelme("c", score=0.5))
    assert "1 image is only in these" in _said(load)[0]
    # Without a format, the folder is read by its lines, once the XML files are gone.
    for name in IMAGES:
        (folder / f"{name}.xml").unlink()
    for read in (
        lambda: boxscore.load_detections(folder, truth),
        lambda: boxscore.evaluate(tmp_path / "gt.json", folder),
        lambda: load_results(folder),
    ):
        with pytest.raises(
            boxscore.FileFormatError, match=rf"1 image only in labelme files \(c\.json\), not in {lines}"
        ):
            read()


def test_detections_in_one_file_next_to_labels(tmp_path: Path) -> None:
    """A results file refers to images by id: it is compared through the ground truth."""
    (tmp_path / "gt.json").write_text(_coco(*IMAGES))
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "classes.txt").write_text("cat\n")
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(SCORED["yolo"])
    row = {"category_id": 1, "bbox": [10, 20, 40, 40], "score": 0.9}
    (folder / "predictions.json").write_text(json.dumps([{"image_id": at, **row} for at in (0, 1)]))
    truth = boxscore.load_ground_truth(tmp_path / "gt.json")
    assert _said(lambda: boxscore.load_detections(folder, truth)) == [
        f"{folder}: reading the yolo files, ignoring 1 coco file (predictions.json)."
    ]
    (folder / "predictions.json").write_text(json.dumps([{"image_id": at, **row} for at in (0, 2)]))
    with pytest.raises(boxscore.FileFormatError, match=r"1 image only in coco files \(predictions\.json\)"):
        boxscore.load_detections(folder, truth)


def test_the_command_names_its_own_options(tmp_path: Path, run: Run) -> None:
    _written(tmp_path / "lab", "voc", ("a",))
    _written(tmp_path / "lab", "yolo", ("b", "c"))
    (tmp_path / "dt.csv").write_text("image,class,score,x1,y1,x2,y2\na.jpg,cat,.9,10,20,50,60\n")
    failed = run("evaluate", tmp_path / "lab", tmp_path / "dt.csv", status=2)
    assert failed.out == ""
    assert "use --format yolo to read these, or --format voc to ignore them" in failed.err
    named = run("evaluate", tmp_path / "lab", tmp_path / "dt.csv", "--format", "voc")
    assert named.err.count("ignoring 2 yolo files (b.txt, c.txt); 2 images are only in these") == 1
