"""Reading files: slices, processes, the names of images and classes, formats."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore import BoxscoreWarning, FileFormatError, InputError, load_detections, load_ground_truth
from boxscore._utils.processes import Forked
from boxscore.formats import _json, detect_format, load_both, reading
from boxscore.formats._packed import packed_columns
from boxscore.formats.reading import read_detections, read_ground_truth, read_options
from support.examples import first_of
from support.quiet import quiet
from support.samples import SHAPES

IMAGES = [{"id": number, "file_name": f"photos/{number:012d}.jpg"} for number in range(1, 11)]
CATEGORIES = [{"id": 3, "name": "cat"}, {"id": 5, "name": "potted plant"}]


def records(count: int, **extra: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(count)
    return [
        {
            "image_id": int(rng.integers(1, 11)),
            "category_id": int(rng.choice([3, 5])),
            "bbox": rng.random(4).round(int(rng.integers(1, 17))).tolist(),
            "score": float(rng.random()),
            **extra,
        }
        for _ in range(count)
    ]


def write_truth(folder: Path, annotations: list[dict[str, Any]] | None = None) -> Path:
    path = folder / "gt.json"
    path.write_text(
        json.dumps({"images": IMAGES, "categories": CATEGORIES, "annotations": annotations or []})
    )
    return path


@pytest.fixture
def truth(tmp_path: Path) -> boxscore.GroundTruth:
    return load_ground_truth(write_truth(tmp_path))


def assert_rows(table: boxscore.Detections, rows: list[dict[str, Any]]) -> None:
    assert table.images.ids[table.image].tolist() == [row["image_id"] for row in rows]
    assert table.categories.ids[table.category].tolist() == [row["category_id"] for row in rows]
    assert np.hstack([table.boxes[:, :2], table.sizes]).tolist() == [row["bbox"] for row in rows]
    assert table.scores.tolist() == [row["score"] for row in rows]


# ---------------------------------------------------------------- slices and processes

LAYOUTS = {
    "compact": lambda rows: json.dumps(rows, separators=(",", ":")),
    "usual": json.dumps,
    "indented": lambda rows: json.dumps(rows, indent=4),
    "blank lines": lambda rows: "[" + "\n\n  ,\r\n\t ".join(map(json.dumps, rows)) + "\n]\n",
    "byte order mark": lambda rows: "\ufeff \n" + json.dumps(rows),
}
EXTRAS = {
    "plain": {},
    "records inside": {"parts": [{"a": 1}, {"b": [{"c": 2}, {"d": 3}]}]},
    "brackets in text": {"note": '}, {"image_id": 1}, {', "tail": "]}"},
}


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("extra", EXTRAS)
def test_slices_of_any_size(
    size: int,
    layout: str,
    extra: str,
    truth: boxscore.GroundTruth,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = records(40 if size > 1 else 8, **EXTRAS[extra])
    path = tmp_path / "dt.json"
    path.write_text(LAYOUTS[layout](rows), encoding="utf-8")
    monkeypatch.setattr(_json, "SLICE_BYTES", size)
    assert_rows(load_detections(path, truth), rows)


@pytest.mark.parametrize("processes", first_of(1, [3, 1, 2, 7]))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("extra", EXTRAS)
def test_processes(
    processes: int,
    layout: str,
    extra: str,
    truth: boxscore.GroundTruth,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = records(200, **EXTRAS[extra])
    path = tmp_path / "dt.json"
    path.write_text(LAYOUTS[layout](rows), encoding="utf-8")
    monkeypatch.setattr(_json, "PART_BYTES", 500)
    monkeypatch.setattr(_json, "SLICE_BYTES", 700)
    assert_rows(read_detections(path, truth, read_options(processes=processes)), rows)
    annotations = [{**row, "id": number} for number, row in enumerate(rows, start=1)]
    with quiet():  # no areas
        table = read_ground_truth(write_truth(tmp_path, annotations), read_options(processes=processes))
    assert table.ids.tolist() == list(range(1, 201))
    assert np.hstack([table.boxes[:, :2], table.sizes]).tolist() == [row["bbox"] for row in rows]


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
@pytest.mark.parametrize("share", [0.01, 2.0, 1e4])
def test_both_files_at_once(
    processes: int, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the work is shared out, the tables are those of two separate calls."""
    rows = records(300)
    found = tmp_path / "dt.json"
    found.write_text(json.dumps(rows))
    annotations = [{**row, "id": number, "area": 4.0} for number, row in enumerate(records(100), start=1)]
    path = write_truth(tmp_path, annotations)
    monkeypatch.setattr(_json, "PART_BYTES", 500)
    monkeypatch.setattr(_json, "SLICE_BYTES", 700)
    monkeypatch.setattr(reading, "TRUTH_WORK", share)
    truth, detections = load_both(path, found, *[read_options(processes=processes)] * 2)
    alone = load_ground_truth(path)
    assert truth.ids.tolist() == alone.ids.tolist()
    assert truth.boxes.tolist() == alone.boxes.tolist()
    assert_rows(detections, rows)


def test_no_process_is_left_when_the_ground_truth_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_json, "PART_BYTES", 500)
    (tmp_path / "dt.json").write_text(json.dumps(records(300)))
    (tmp_path / "gt.json").write_text("{}")
    forked: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forked.append(fork()) or forked[-1])
    with pytest.raises(FileFormatError, match="ground truth must have images"):
        load_both(tmp_path / "gt.json", tmp_path / "dt.json", *[read_options(processes=3)] * 2)
    assert forked
    for process in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


@pytest.mark.parametrize("fork", [True, False])
def test_processes_that_fail_or_cannot_be_had(fork: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fork:
        monkeypatch.delattr(os, "fork")
    parent = os.getpid()

    def only_in_the_parent() -> int:
        if os.getpid() != parent:
            raise OSError
        return 7

    def array() -> np.ndarray[Any, Any]:
        return np.arange(5)

    forked = Forked[Any]([only_in_the_parent, array, lambda: "text"])
    results = forked.results()
    assert (results[0], results[1].tolist(), results[2]) == (7, [0, 1, 2, 3, 4], "text")
    forked.close()


NUMBERS = st.floats(-1e6, 1e6) | st.integers(-(10**6), 10**6)


@given(
    st.lists(st.tuples(NUMBERS, st.lists(NUMBERS, min_size=4, max_size=4)), min_size=1, max_size=70),
    st.integers(1, 9),
)
def test_packed_columns_are_the_numbers_of_the_records(
    rows: list[tuple[float, list[float]]], cut: int
) -> None:
    """Lengths on both sides of MessagePack's 16, and more rows than the first slice lets expect."""

    class Row(msgspec.Struct, gc=False):
        value: float
        box: tuple[float, float, float, float]

    text = [
        json.dumps([{"value": value, "box": box} for value, box in part]) for part in (rows[:cut], rows[cut:])
    ]
    slices = [msgspec.json.decode(part, type=list[Row]) for part in text]
    columns = packed_columns(slices, Row, expected_slices=0.1)
    assert columns["value"].tolist() == [value for value, _ in rows]
    assert columns["box"].tolist() == [box for _, box in rows]


def test_packed_columns_of_very_many_records() -> None:
    """MessagePack counts an array of more than 65,535 in four bytes."""

    class Row(msgspec.Struct, gc=False):
        value: float

    rows = [Row(float(number)) for number in range(70_000)]
    columns = packed_columns([rows, rows[:20], rows], Row, expected_slices=2)
    assert (columns["value"] == np.r_[0:70_000, 0:20, 0:70_000]).all()


@pytest.mark.parametrize("spelling", ["7.0", "7e0", "70E-1", "7"])
@pytest.mark.parametrize("other", ["7", '"seven"'])
def test_a_whole_number_is_an_id_however_it_is_written(spelling: str, other: str, tmp_path: Path) -> None:
    """As in pycocotools, whose dictionaries hold 7.0 and 7 for one key; beside ids of text as well."""
    ids = [7, json.loads(other)] if other != "7" else [7]
    path = tmp_path / "gt.json"
    path.write_text(
        json.dumps({"images": [{"id": i} for i in ids], "categories": [{"id": 1}], "annotations": []})
    )
    truth = load_ground_truth(path)
    detections = tmp_path / "dt.json"
    record = '{"image_id": %s, "category_id": 1.0, "bbox": [0, 0, 1, 1], "score": 1}'
    detections.write_text(f"[{record % spelling}, {record % other}]")
    table = load_detections(detections, truth)
    assert table.images.ids[table.image].tolist() == [7, json.loads(other)]


@pytest.mark.parametrize("large", [2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**64 + 1])
def test_large_ids_stay_exact(large: int, tmp_path: Path) -> None:
    """Two neighbors that a float cannot tell apart."""
    path = write_truth(tmp_path)
    content = json.loads(path.read_text())
    content["images"] = [{"id": large}, {"id": large + 1}]
    path.write_text(json.dumps(content))
    rows = [{**row, "image_id": large + number % 2} for number, row in enumerate(records(9))]
    detections = tmp_path / "dt.json"
    detections.write_text(json.dumps(rows))
    assert_rows(load_detections(detections, load_ground_truth(path)), rows)


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("bad", [0, 57, 199])
def test_a_bad_record_is_named_wherever_it_stands(
    bad: int, processes: int, truth: boxscore.GroundTruth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_json, "PART_BYTES", 500)
    monkeypatch.setattr(_json, "SLICE_BYTES", 700)
    path = tmp_path / "dt.json"
    for change, text in (
        ({"score": "high"}, "score must be a number. Got a string in detection {0} of {1}."),
        (
            {"image_id": 99},
            "image_id must be in the ground truth. Got 99 in detection {0} of {1}; 1 image of these detections is not listed",
        ),
        ({"bbox": [0, 0, -1, 1]}, "boxes must have width >= 0. Got width -1.0 in detection {0} of {1};"),
    ):
        rows: list[dict[str, Any]] = records(200)
        rows[bad] = {**rows[bad], **change}
        path.write_text(json.dumps(rows))
        with pytest.raises(InputError) as caught:
            read_detections(path, truth, read_options(processes=processes))
        assert str(caught.value).startswith(text.format(bad, path))


@pytest.mark.parametrize("count", [1, 30])
def test_annotations_without_ids_are_numbered_over_all_slices(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**row, "area": 1.0, "iscrowd": 0} for row in records(count)]
    path = write_truth(tmp_path, rows)
    monkeypatch.setattr(_json, "SLICE_BYTES", 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load_ground_truth(path)
    assert table.ids.tolist() == list(range(1, count + 1))
    assert table.boxes[:, 0].tolist() == [row["bbox"][0] for row in rows]
    rows[-1]["id"] = 1
    table = load_ground_truth(write_truth(tmp_path, rows))
    assert table.ids.tolist() == list(range(1, count + 1))


def test_of_repeated_ids_the_last_annotation_stands_in_for_all(tmp_path: Path) -> None:
    rows = [{**row, "area": 1.0, "id": number // 2} for number, row in enumerate(records(6))]
    with pytest.warns(BoxscoreWarning, match="3 annotation ids occur more than once"):
        table = load_ground_truth(write_truth(tmp_path, rows))
    assert table.boxes[:, 0].tolist() == [rows[place]["bbox"][0] for place in (1, 1, 3, 3, 5, 5)]


# ---------------------------------------------------------------- what results call images and classes


@pytest.mark.parametrize(
    "name",
    [
        7,
        "7",
        "000000000007",
        "000000000007.jpg",
        "photos/000000000007.jpg",
        "photos\\000000000007.png",
        "/data/photos/000000000007.jpg",
    ],
)
def test_an_image_by_any_name(name: Any, truth: boxscore.GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([{**records(1)[0], "image_id": name}]))
    table = load_detections(path, truth)
    assert table.images.ids[table.image].tolist() == [7]


@pytest.mark.parametrize("name", ["8x", "", "7.0", "-7"])
def test_no_image_by_half_a_name(name: str, truth: boxscore.GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([{**records(1)[0], "image_id": name}]))
    with pytest.raises(InputError, match="image_id must be in the ground truth"):
        load_detections(path, truth)


def test_classes_by_name(truth: boxscore.GroundTruth, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([{**row, "category_id": "potted plant"} for row in records(3)]))
    assert load_detections(path, truth).category.tolist() == [1, 1, 1]


def test_results_with_images_and_classes_of_their_own(truth: boxscore.GroundTruth, tmp_path: Path) -> None:
    """Such files number both on their own: file names and class names are what counts."""
    row = records(1)[0]
    content = {
        "images": [{"id": 7, "file_name": "000000000002.jpg"}, {"id": 1, "file_name": "000000000009.jpg"}],
        "categories": [
            {"id": 3, "name": "potted plant"},
            {"id": 0, "name": "cat"},
            {"id": 9, "name": "yeti"},
        ],
        "annotations": [
            {**row, "image_id": 7, "category_id": 3},
            {**row, "image_id": 1, "category_id": 0},
            {**row, "image_id": 1, "category_id": 9},
        ],
    }
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(content))
    with pytest.warns(BoxscoreWarning, match=r"ignoring 1 detection of 1 class .*: yeti\."):
        table = load_detections(path, truth)
    assert table.images.ids[table.image].tolist() == [2, 9]
    assert table.categories.names[table.category].tolist() == ["potted plant", "cat"]
    assert table.left_out == {"yeti": 1}


# ---------------------------------------------------------------- the devkit's files


def write_voc(
    folder: Path, labels: list[str], files: dict[str, str], *, sets: tuple[str, ...] = ("test",)
) -> Path:
    (folder / "Annotations").mkdir(parents=True)
    (folder / "ImageSets" / "Main").mkdir(parents=True)
    for name in sets:
        (folder / "ImageSets" / "Main" / f"{name}.txt").write_text("img\n")
    objects = "".join(
        f"<object><name>{label}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9.5</xmax><ymax>9</ymax>"
        f"</bndbox><part><bndbox><xmin>2</xmin></bndbox></part></object>"
        for label in labels
    )
    (folder / "Annotations" / "img.xml").write_text(f"<annotation>{objects}</annotation>")
    (folder / "results").mkdir()
    for name, text in files.items():
        (folder / "results" / name).write_text(text)
    return folder


LINE = "img 0.5 1 1 9 9\n"


@pytest.mark.parametrize(
    ("labels", "files", "expected", "left_out"),
    [
        (["cat"], ["test_cat"], ["cat"], {}),
        (["potted_plant"], ["test_potted_plant"], ["potted_plant"], {}),
        (["plant", "potted_plant"], ["test_plant", "test_potted_plant"], ["plant", "potted_plant"], {}),
        (["plant", "potted_plant"], ["test_potted_plant"], ["potted_plant"], {}),
        (["cat"], ["test_cat", "test_tabby_cat"], ["cat"], {"tabby_cat": 1}),
        (["cat", "dog"], ["my_val_cat", "my_val_dog", "my_val_tabby_cat"], ["cat", "dog"], {"tabby_cat": 1}),
        (["cat"], ["test_cat", "test_dog"], ["cat"], {"dog": 1}),
        (["sea_lion", "sea_horse"], ["a_b_sea_horse", "a_b_sea_lion"], ["sea_horse", "sea_lion"], {}),
        (["traffic light"], ["test_traffic light"], ["traffic light"], {}),
    ],
)
def test_the_class_of_a_results_file(
    labels: list[str], files: list[str], expected: list[str], left_out: dict[str, int], tmp_path: Path
) -> None:
    names = {f"comp4_det_{name}.txt": LINE for name in files}
    folder = write_voc(tmp_path / "voc", labels, names)
    truth = load_ground_truth(folder)
    with quiet():
        detections = load_detections(folder / "results", truth)
    assert detections.categories.names[detections.category].tolist() == expected
    assert detections.left_out == left_out


def test_results_of_two_sets_are_warned_of(tmp_path: Path) -> None:
    folder = write_voc(
        tmp_path / "voc", ["cat"], {"comp4_det_test_cat.txt": LINE, "comp4_det_val_cat.txt": LINE}
    )
    with pytest.warns(BoxscoreWarning, match=r"several competitions or sets .*comp4_det_test, comp4_det_val"):
        detections = load_detections(folder / "results", load_ground_truth(folder))
    assert len(detections) == 2


def test_missing_tags_decimal_coordinates_and_parts(tmp_path: Path) -> None:
    truth = load_ground_truth(write_voc(tmp_path / "voc", ["cat"], {}))
    assert truth.boxes.tolist() == [[1, 1, 9.5, 9]]
    assert (truth.difficult.tolist(), truth.columns["truncated"].tolist()) == ([False], [False])
    assert np.isnan(truth.images.sizes).all()


def test_a_class_set_lists_images_without_the_class_too(tmp_path: Path) -> None:
    folder = write_voc(tmp_path / "voc", ["cat"], {})
    for name in ("a", "b"):
        (folder / "Annotations" / f"{name}.xml").write_text("<annotation/>")
    path = folder / "ImageSets" / "Main" / "cat_test.txt"
    path.write_text("a -1\nimg  1\nb  0\nimg  1\n")
    assert load_ground_truth(folder, image_set="cat_test").images.ids.tolist() == ["b", "img"]
    assert load_ground_truth(folder, image_set=path).images.ids.tolist() == ["b", "img"]
    with pytest.raises(InputError, match="image_set must be given where there are several"):
        load_ground_truth(folder)
    assert load_ground_truth(folder / "Annotations").images.ids.tolist() == ["a", "b", "img"]


def test_the_line_of_a_bad_value_counts_blank_lines(tmp_path: Path) -> None:
    text = "\n" + LINE + "\n\n" + "img inf 1 1 9 9\n"
    folder = write_voc(tmp_path / "voc", ["cat"], {"comp4_det_test_cat.txt": text})
    with pytest.raises(InputError, match=r"comp4_det_test_cat\.txt, line 5; a diverged model\?$"):
        load_detections(folder / "results", load_ground_truth(folder))


# ---------------------------------------------------------------- formats


def test_detect_format(tmp_path: Path) -> None:
    folder = write_voc(tmp_path / "voc", ["cat"], {"comp4_det_test_cat.txt": LINE})
    assert detect_format(write_truth(tmp_path))[0] == "coco"
    assert detect_format(folder) == ("voc", "a folder of XML annotations")
    assert detect_format(folder / "Annotations") == ("voc", "a folder of XML annotations")
    assert detect_format(folder / "results") == ("voc", "a folder of comp*_det_*.txt files")


@pytest.mark.parametrize("kind", [str, Path])
def test_paths_are_text_or_paths(kind: Any, tmp_path: Path) -> None:
    path = write_truth(tmp_path)
    (tmp_path / "dt.json").write_text("[]")
    assert len(load_detections(kind(tmp_path / "dt.json"), load_ground_truth(kind(path)))) == 0


def test_unknown_formats(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^format must be one of .* Got 'cocoa'"):
        load_ground_truth(write_truth(tmp_path), format="cocoa")
    with pytest.raises(FileFormatError, match=r"must be in the voc format\. Got a JSON file \(coco\)\.$"):
        load_ground_truth(write_truth(tmp_path), format="voc")


def test_a_place_in_an_xml_file_that_has_changed_since(tmp_path: Path) -> None:
    from boxscore.formats._voc_xml import _place_of_object

    path = tmp_path / "a.xml"
    path.write_text("<annotation>\n<object/></annotation>", encoding="utf-8")
    assert _place_of_object(path, 0) == f"{path}, line 2"
    assert _place_of_object(path, 1) == f"object 1 of {path}"
    path.write_text("<annotation>", encoding="utf-8")
    assert _place_of_object(path, 0) == f"object 0 of {path}"


@pytest.mark.parametrize("name", ["valid/_annotations.coco.json", "set/annotations/instances_default.json"])
def test_a_folder_with_one_file_of_annotations(name: str, tmp_path: Path) -> None:
    """Roboflow's splits, and CVAT's export."""
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    source = SHAPES / "instances.json"
    file.write_bytes(source.read_bytes())
    folder = tmp_path / name.partition("/")[0]
    assert boxscore.formats.detect_format(folder) == ("coco", f"a folder with {file.name}")
    assert boxscore.load_ground_truth(folder).ids.tolist() == boxscore.load_ground_truth(source).ids.tolist()
    with pytest.raises(boxscore.FileFormatError, match="Is a directory"):
        boxscore.load_detections(folder, boxscore.load_ground_truth(source))
