"""`convert --server`: archives with the names that evaluation servers ask for, which read back as they were."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from boxscore import load_detections, load_ground_truth
from support.running import Run

CLASSES = {
    "coco": {1: "person", 3: "car", 90: "toothbrush"},
    "lvis": {1: "aerosol_can", 3: "airplane", 1203: "zucchini"},
    "voc": {0: "person", 1: "car", 2: "sofa"},
    "voc-comp3": {0: "person", 1: "car", 2: "sofa"},
    "dota-v1.0": {0: "plane", 1: "ship", 2: "harbor"},
    "dota-v2.0": {0: "plane", 1: "helipad", 2: "harbor"},
    "visdrone": {1: "pedestrian", 4: "car", 11: "others"},
}
OUTPUT = {
    "coco": "detections_test-dev2017_mine_results.zip",
    "lvis": "lvis.json",
    "voc": "results.tar.gz",
    "voc-comp3": "results.tar.gz",
    "dota-v1.0": "task.zip",
    "dota-v2.0": "task.zip",
    "visdrone": "visdrone.zip",
}


def files(folder: Path, server: str, *, rows: int = 1, **changes: Any) -> list[Any]:
    """Write ground truth and detections; return their arguments."""
    classes = CLASSES[server]
    first, second, *_ = classes
    images = [
        {"id": n, "file_name": f"{name}.jpg", "width": 200, "height": 100} for n, name in enumerate("abc", 7)
    ]
    truth = {
        "images": images,
        "annotations": [],
        "categories": [{"id": number, "name": name} for number, name in classes.items()],
    }
    found = [
        {"image_id": 7, "category_id": first, "bbox": [10, 20, 30.5, 40.25], "score": 0.9},
        {"image_id": 7, "category_id": second, "bbox": [1, 2, 3, 4], "score": 0.1 + 0.2},
        {"image_id": 9, "category_id": second, "bbox": [5, 6, 7, 8], "score": 0.5} | changes,
    ]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "found.json").write_text(json.dumps(found * rows))
    return ["convert", "--gt", folder / "truth.json", "--dt", folder / "found.json", "--server", server]


def names_in(path: Path) -> list[str]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as tar:
        return [member.name for member in tar if member.isfile()]


@pytest.mark.parametrize("server", CLASSES)
def test_what_a_server_gets_reads_back_as_it_was(server: str, tmp_path: Path, run: Run) -> None:
    call, output = files(tmp_path, server), tmp_path / OUTPUT[server]
    assert "3 rows written" in run(*call, "--output", output).err + run(*call, "--output", output).out
    first = output.read_bytes()
    truth = load_ground_truth(tmp_path / "truth.json")
    path = output
    if output.suffix == ".gz":
        with tarfile.open(output) as tar:
            tar.extractall(tmp_path / "unpacked", filter="data")
        path = tmp_path / "unpacked" / "results" / "VOC2012" / "Main"
    got, expected = (
        sorted(
            zip(
                *(column.tolist() for column in (table.image, table.category, table.scores, table.boxes)),
                strict=True,
            )
        )
        for table in (load_detections(each, truth) for each in (path, tmp_path / "found.json"))
    )
    assert [row[:3] for row in got] == [row[:3] for row in expected]
    for one, other in zip(got, expected, strict=True):
        assert one[3] == pytest.approx(other[3], abs=1e-12)
    run(*call, "--output", output)
    assert output.read_bytes() == first


def test_archives_have_the_names_that_servers_ask_for(tmp_path: Path, run: Run) -> None:
    expected = {
        "coco": (1, "detections_test-dev2017_mine_results.json"),
        "voc": (20, "results/VOC2012/Main/comp4_det_test_tvmonitor.txt"),
        "voc-comp3": (20, "results/VOC2012/Main/comp3_det_test_aeroplane.txt"),
        "dota-v1.0": (15, "Task2_helicopter.txt"),
        "dota-v2.0": (18, "Task2_airport.txt"),
        "visdrone": (3, "b.txt"),
    }
    for server, (count, name) in expected.items():
        output = tmp_path / OUTPUT[server]
        run(*files(tmp_path, server), "--output", output)
        names = names_in(output)
        assert (len(names), name in names) == (count, True), server
        assert names == sorted(names)
    with zipfile.ZipFile(tmp_path / "visdrone.zip") as archive:
        assert archive.read("b.txt") == b""
        assert archive.read("c.txt") == b"5.0,6.0,7.0,8.0,0.5,4,-1,-1\n"


def test_an_image_folder_lists_the_images_of_visdrone(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "found"
    folder.mkdir()
    (folder / "a.txt").write_text("1,2,3,4,.5,4,-1,-1\n")
    call = ["convert", "--dt", folder, "--server", "visdrone", "--output", tmp_path / "v.zip"]
    assert "--image-folder" in run.error(*call)
    (tmp_path / "sizes.csv").write_text("image,width,height\na.jpg,9,9\nb.jpg,9,9\n")
    run(*call, "--image-sizes", tmp_path / "sizes.csv")
    assert names_in(tmp_path / "v.zip") == ["a.txt", "b.txt"]
    (tmp_path / "sizes.csv").write_text("image,width,height\nb.jpg,9,9\n")
    assert "'a'" in run.error(*call, "--image-sizes", tmp_path / "sizes.csv")


@pytest.mark.parametrize(
    ("server", "output", "changes", "words"),
    [
        ("coco", "mine.zip", {}, "detections_test-dev2017_NAME_results.zip"),
        ("coco", "mine.json", {}, "end in .zip"),
        ("voc", "mine.zip", {}, "end in .tar.gz"),
        ("lvis", "mine.json", {"rows": 151}, "--max-per-image 300"),
        ("visdrone", "v.zip", {"category_id": 11}, "'others'"),
        ("coco", "person_keypoints_val2017_mine_results.zip", {}, "results without keypoints are named"),
        ("coco", OUTPUT["coco"], {"rows": 0}, "the results must not be empty for a server"),
        ("lvis", "mine.json", {"rows": 0}, "the results must not be empty for a server"),
    ],
)
def test_what_a_server_would_refuse_is_not_written(
    server: str, output: str, changes: dict[str, Any], words: str, tmp_path: Path, run: Run
) -> None:
    call = files(tmp_path, server, **changes)
    assert words in run.error(*call, "--output", tmp_path / output)
    assert not (tmp_path / output).exists()


def test_ids_and_scores_are_checked(tmp_path: Path, run: Run) -> None:
    output = tmp_path / OUTPUT["coco"]
    call = ["convert", "--dt", tmp_path / "d.json", "--server", "coco", "--output", output]
    row = {"image_id": 7, "category_id": 12, "bbox": [1, 2, 3, 4], "score": 0.5}
    (tmp_path / "d.json").write_text(json.dumps([row]))
    assert "one of the 80 ids of COCO" in run.error(*call)
    (tmp_path / "d.json").write_text(json.dumps([{**row, "category_id": 1, "image_id": "a.jpg"}]))
    assert "image_info_test-dev2017.json" in run.error(*call)
    for more in (["--to", "coco"], ["--split", "a=.5", "b=.5"], ["--partitions", 2]):
        assert more[0] in run.error(*call, *more)


def ids_said(run: Run, folder: Path, server: str, rows: list[tuple[int, int]], truth: Any = None) -> str:
    """Return what is printed for detections with these ids of image and class, and files and names of a truth."""
    found = [
        {"image_id": image, "category_id": number, "bbox": [1, 2, 3, 4], "score": 0.5}
        for image, number in rows
    ]
    (folder / "found.json").write_text(json.dumps(found))
    call = ["convert", "--dt", folder / "found.json", "--server", server, "--output", folder / OUTPUT[server]]
    if truth is not None:
        images = [
            {"id": number, "file_name": name, "width": 9, "height": 9} for number, name in truth[0].items()
        ]
        classes = [{"id": number, "name": name} for number, name in truth[1].items()]
        content = {"images": images, "annotations": [], "categories": classes}
        (folder / "truth.json").write_text(json.dumps(content))
        call += ["--gt", folder / "truth.json"]
    return run(*call).err


def test_ids_that_cannot_be_those_of_the_server_give_a_warning(tmp_path: Path, run: Run) -> None:
    rows = [(139, 1), (285, 90)]
    files_of, names = {139: "000000000139.jpg", 285: "000000000285.jpg"}, {1: "person", 90: "toothbrush"}
    for server, example in (("coco", "image_info_test-dev2017.json"), ("lvis", "lvis_v1_val.json")):
        said = ids_said(run, tmp_path, server, rows)
        assert f"are not checked without --gt; pass --gt {example}" in said
        said = ids_said(run, tmp_path, server, [(1, 1), (2, 1), (3, 1)])
        assert "images are numbered from 1 to 3" in said
    assert "warning" not in ids_said(run, tmp_path, "coco", rows, (files_of, names))
    other = {1: "cat", 90: "toothbrush"}
    assert "class 1 is 'cat', not 'person'" in ids_said(run, tmp_path, "coco", rows, (files_of, other))
    own = files_of | {139: "img_139.jpg"}
    assert "image 139 is 'img_139.jpg'" in ids_said(run, tmp_path, "coco", rows, (own, names))
    of_2014 = files_of | {139: "COCO_val2014_000000000139.jpg"}
    assert "warning" not in ids_said(run, tmp_path, "coco", rows, (of_2014, names))
    assert "2 classes, not 1203" in ids_said(run, tmp_path, "lvis", rows, (files_of, names))
    all_of_lvis = {number: f"class {number}" for number in range(1, 1204)}
    assert "warning" not in ids_said(run, tmp_path, "lvis", rows, (files_of, all_of_lvis))
    assert "class 1204 is not one of 1 to 1203" in ids_said(run, tmp_path, "lvis", [(139, 1204)])


def test_one_size_for_all_lists_no_images_of_visdrone(tmp_path: Path, run: Run) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "a.txt").write_text("1,2,3,4,.5,4,-1,-1\n")
    call = ["convert", "--dt", tmp_path / "found", "--server", "visdrone", "--output", tmp_path / "v.zip"]
    assert "--image-sizes FILE.csv" in run.error(*call, "--image-sizes", "640x480")
    assert not (tmp_path / "v.zip").exists()


def test_a_server_with_several_versions_is_asked_for_by_version(tmp_path: Path, run: Run) -> None:
    call = ["convert", "--dt", tmp_path / "d", "--output", tmp_path / "d.zip", "--server"]
    assert "did you mean dota-v1.0 or dota-v1.5 or dota-v2.0?" in run.error(*call, "dota")
    assert "did you mean 'dota-v1.5'?" in run.error(*call, "dota-v1.6")


MOT = [f"MOT17-{number:02}" for number in (1, 3, 6, 7, 8, 12, 14)]


def mot_files(
    folder: Path, names: list[str], *, rows: int | None = None, label: str = "pedestrian"
) -> list[Any]:
    """Write a ground truth with images of these names, and a detection in each; return their arguments."""
    images = [
        {"id": number, "file_name": name, "width": 1920, "height": 1080}
        for number, name in enumerate(names, 5)
    ]
    truth = {"images": images, "annotations": [], "categories": [{"id": 1, "name": label}]}
    found = [
        {"image_id": image["id"], "category_id": 1, "bbox": [10.5, -20, 30.25, 40], "score": number / 10}
        for number, image in enumerate(images, 1)
    ]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "found.json").write_text(json.dumps(found[:rows]))
    call = ["convert", "--gt", folder / "truth.json", "--dt", folder / "found.json", "--server", "mot"]
    return [*call, "--output", folder / "mot.zip"]


@pytest.mark.filterwarnings("ignore:.*left and top were reduced by 1")
def test_mot_gets_a_file_per_sequence_with_pixels_from_1(tmp_path: Path, run: Run) -> None:
    names = [f"{name}{end}" for name in MOT for end in ("/img1/000002.jpg", "/img1/000001.jpg")]
    names[2:4] = ["mot/test/MOT17-03-SDP/000002.jpg", "mot/test/MOT17-03-SDP/000010.jpg"]
    call = mot_files(tmp_path, names)
    assert "warning" not in run(*call).err
    assert names_in(tmp_path / "mot.zip") == [f"{name}.txt" for name in MOT]
    with zipfile.ZipFile(tmp_path / "mot.zip") as archive:
        archive.extractall(tmp_path)
    assert (tmp_path / "MOT17-01.txt").read_text() == (
        "1,-1,11.5,-19.0,30.25,40.0,0.2,-1,-1,-1\n2,-1,11.5,-19.0,30.25,40.0,0.1,-1,-1,-1\n"
    )
    assert (tmp_path / "MOT17-03.txt").read_text().startswith("2,-1,11.5,-19.0,30.25,40.0,0.3,")
    # MOT's reader takes the 1 away again.
    images = [{"id": frame, "file_name": f"{frame}.jpg"} for frame in (1, 2)]
    truth = {"images": images, "annotations": [], "categories": [{"id": 1, "name": "pedestrian"}]}
    (tmp_path / "frames.json").write_text(json.dumps(truth))
    read = load_detections(tmp_path / "MOT17-01.txt", load_ground_truth(tmp_path / "frames.json"))
    assert read.boxes.tolist() == [[10.5, -20, 40.75, 20]] * 2


@pytest.mark.parametrize(
    ("names", "changes", "words"),
    [
        (["a.jpg"], {}, "Got 'a.jpg' in"),
        (["MOT17-15/img1/000001.jpg"], {}, "a sequence of MOT17 or MOT20 and one of its frames, from 1"),
        (["MOT17-01/img1/000000.jpg"], {}, "a sequence of MOT17 or MOT20"),
        (["MOT20-08/img1/000807.jpg"], {}, "a sequence of MOT17 or MOT20"),
        (
            ["MOT17-01-DPM/img1/000001.jpg", "MOT17-01-SDP/img1/000001.jpg"],
            {},
            "a frame must be in one image",
        ),
        (["MOT17-01/img1/000001.jpg", "MOT20-04/img1/000001.jpg"], {}, "images must be of one benchmark"),
        (["MOT17-01/img1/000001.jpg", "MOT17-03/img1/000001.jpg"], {"rows": 1}, "Got none in MOT17-03"),
        (["MOT17-01/img1/000001.jpg"], {"label": "person"}, "a class must be 'pedestrian'"),
        ([], {}, "must not be empty"),
    ],
)
def test_what_mot_would_refuse_is_not_written(
    names: list[str], changes: dict[str, Any], words: str, tmp_path: Path, run: Run
) -> None:
    assert words in run.error(*mot_files(tmp_path, names, **changes))
    assert not (tmp_path / "mot.zip").exists()


def test_missing_test_sequences_of_mot_are_named(tmp_path: Path, run: Run) -> None:
    call = mot_files(tmp_path, [f"MOT20-0{number}/img1/000001.jpg" for number in (4, 6, 8)])
    assert "no detections in MOT20-07; MOT20Det asks for all of its test sequences" in run(*call).err
    (tmp_path / "mot.zip").unlink()
    run.error(*call, "--strict")
    assert not (tmp_path / "mot.zip").exists()


ROTATED = [[60.0, 40.0, 20.0, 10.0, 30.0], [30.0, 40.0, 20.0, 10.0, 0.0]]


def test_rotated_boxes_are_corners_for_dota_and_refused_elsewhere(tmp_path: Path, run: Run) -> None:
    call = files(tmp_path, "dota-v1.0")
    found = [{"image_id": 7, "category_id": 0, "bbox": box, "score": 0.5} for box in ROTATED]
    (tmp_path / "found.json").write_text(json.dumps(found))
    run(*call, "--output", tmp_path / "task.zip")
    with zipfile.ZipFile(tmp_path / "task.zip") as archive:
        lines = archive.read("Task1_plane.txt").decode().splitlines()
    corners = [[float(number) for number in line.split()[2:]] for line in lines]
    # COCO's angles are counter-clockwise: half of the width and of the height, turned.
    x, y, dx, dy = 10 * 3**0.5 / 2, -5.0, 2.5, 5 * 3**0.5 / 2
    expected = [
        60 - x - dx,
        40 - y - dy,
        60 + x - dx,
        40 + y - dy,
        60 + x + dx,
        40 + y + dy,
        60 - x + dx,
        40 - y + dy,
    ]
    assert corners[0] == pytest.approx(expected, abs=1e-9)
    assert corners[1] == pytest.approx([20, 35, 40, 35, 40, 45, 20, 45], abs=1e-9)
    call = [*files(tmp_path, "voc"), "--output", tmp_path / "r.tar.gz"]
    (tmp_path / "found.json").write_text(json.dumps(found))
    assert "only data that the server takes; --lossy drops the rest. Got rotated boxes" in run.error(*call)
    said = run(*call, "--lossy").err
    assert "written except for rotated boxes" in said
    assert "kept), which the server does not take." in said
