"""A name, a path or an id stands for an image only if it is the only one that it can stand for."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore import BoxscoreWarning, InputError, load_detections, load_ground_truth
from boxscore.data.image_names import ENDINGS, SEVERAL, UNKNOWN, ImageNames
from boxscore.data.lookup import find_images
from boxscore.data.vocabulary import Images, as_ids


def truth_of(folder: Path, *file_names: str, ids: tuple[Any, ...] = ()) -> boxscore.GroundTruth:
    """COCO ground truth with an object at another position in every image."""
    numbers = ids or tuple(range(1, len(file_names) + 1))
    images = [
        {"id": number, "width": 100, "height": 100, "file_name": name}
        for number, name in zip(numbers, file_names, strict=True)
    ]
    annotations = [
        {
            "id": at,
            "image_id": number,
            "category_id": 1,
            "bbox": [9 * (at % 10), 0, 9, 9],
            "area": 81,
            "iscrowd": 0,
        }
        for at, number in enumerate(numbers, start=1)
    ]
    path = folder / "gt.json"
    content = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": annotations}
    path.write_text(json.dumps(content))
    return load_ground_truth(path)


def csv_of(folder: Path, *images: Any) -> Path:
    path = folder / "dt.csv"
    lines = [f"{name},cat,{9 * at},0,{9 * at + 9},9,0.9" for at, name in enumerate(images, 1)]
    path.write_text("\n".join(["image,class,x1,y1,x2,y2,score", *lines]) + "\n")
    return path


def results_of(folder: Path, *images: Any, **more: list[Any]) -> Path:
    path = folder / "dt.json"
    records = [
        {"image_id": name, "category_id": 1, "bbox": [9 * (at % 10), 0, 9, 9], "score": 0.9}
        | {key: values[at - 1] for key, values in more.items()}
        for at, name in enumerate(images, 1)
    ]
    path.write_text(json.dumps(records))
    return path


def images_of(path: Path, truth: boxscore.GroundTruth, **options: Any) -> list[str]:
    table = load_detections(path, truth, **options)
    return [str(truth.images.file_names[row]) for row in table.image.tolist()]


def refusal(path: Path, truth: boxscore.GroundTruth, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_detections(path, truth, **options)
    return str(caught.value)


CAMERAS = ("cam1/0001.jpg", "cam2/0001.jpg")


# ---------------------------------------------------------------- images of one name in several folders


@pytest.mark.parametrize("write", [csv_of, results_of])
@pytest.mark.parametrize(
    "pattern",
    [
        "cam{}/0001",
        "cam{}/0001.jpg",
        "cam{}/0001.png",
        "/data/cam{}/0001.jpg",
        "cam{}\\0001.jpg",
        "./cam{}//0001",
    ],
)
def test_a_path_leads_to_the_image_of_its_folder(pattern: str, write: Any, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *CAMERAS)
    path = write(tmp_path, pattern.format(1), pattern.format(2))
    assert images_of(path, truth) == [*CAMERAS]
    assert boxscore.evaluate(truth, path)["AP"] == 1


def test_the_devkits_results_find_the_folder(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *CAMERAS)
    (tmp_path / "results").mkdir()
    lines = "cam2/0001 0.9 18 1 27 9\ncam1/0001 0.9 9 1 18 9\n"
    (tmp_path / "results" / "comp4_det_test_cat.txt").write_text(lines)
    assert images_of(tmp_path / "results", truth) == [CAMERAS[1], CAMERAS[0]]


@pytest.mark.parametrize("form", ["text", "yolo", "jsonl", "declared images"])
def test_a_name_of_two_images_is_refused_with_both(form: str, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *CAMERAS)
    path, options = tmp_path / "dt", {}
    if form in ("text", "yolo"):
        path.mkdir()
        line = "cat 0.9 50 50 70 70" if form == "text" else "0 0.6 0.6 0.2 0.2 0.9"
        (path / "0001.txt").write_text(line)
        options = {"format": form, **({"box_format": "xyxy"} if form == "text" else {"classes": ["cat"]})}
    elif form == "jsonl":
        path = tmp_path / "dt.jsonl"
        row = {"image": "0001.jpg", "class": "cat", "x1": 0, "y1": 0, "x2": 9, "y2": 9, "score": 0.9}
        path.write_text(json.dumps(row))
    else:
        path = tmp_path / "dt.json"
        images, categories = [{"id": 5, "file_name": "0001.jpg"}], [{"id": 1, "name": "cat"}]
        record = {"image_id": 5, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9}
        path.write_text(json.dumps({"images": images, "categories": categories, "annotations": [record]}))
    assert re.sub(" in .*;", ";", refusal(path, truth, **options)) in [
        f"image_id must identify one image of the ground truth. Got {name!r}; it can be 'cam1/0001.jpg' or "
        "'cam2/0001.jpg': use a longer path, or the image id."
        for name in ("0001", "0001.jpg")
    ]


@pytest.mark.parametrize(
    ("images", "name", "expected"),
    [
        (("a.jpg", "a.png"), "a", "'a.jpg' or 'a.png'"),
        (("a.jpg", "a.png"), "a.bmp", "'a.jpg' or 'a.png'"),
        (("a.jpg", "a.png"), "a.png", 1),
        (("x/a.jpg", "y/a.png"), "a.jpg", 0),
        (("a.jpg", "a.JPG"), "a.JPG", 1),
        (("a.jpg", "a.JPG"), "a.jPg", "'a.jpg' or 'a.JPG'"),
        (("x.png", "y.png"), "x.v2", None),
        (("x.v1", "x.v2"), "x", None),
        (("a.b.jpg", "a.c.jpg"), "a.b", 0),
        (("cam1/0001.jpg", "0001.jpg"), "0001.jpg", 1),
        (("cam1/0001.jpg", "0001.jpg"), "cam1/0001", 0),
        (("cam1/0001.jpg", "0001.jpg"), "cam3/0001.jpg", 1),
        (("cam1/0001.jpg", "0001.jpg"), "0001", "'cam1/0001.jpg' or '0001.jpg'"),
        (("cam1/a.png", "a.jpg"), "cam1/a.jpg", "'cam1/a.png' or 'a.jpg'"),
        (("d/b.png", "e/c.png"), "z/b.png", None),
        (("d/b.png", "e/c.png"), "b.png", 0),
        (("d/b.png", "e/c.png"), "x/d/b.png", 0),
        (("p/d/b.png", "p/e/b.png"), "q/d/b.png", 0),
        (("p/d/b.png", "q/d/b.png"), "d/b.png", "'p/d/b.png' or 'q/d/b.png'"),
        (("same.jpg", "same.jpg"), "same.jpg", "'same.jpg' or 'same.jpg'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*images are in folder q, those of the ground truth in p;")
def test_what_a_name_stands_for(images: tuple[str, ...], name: str, expected: Any, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *images)
    path = csv_of(tmp_path, name)
    if isinstance(expected, int):
        assert images_of(path, truth) == [images[expected]]
    elif expected is None:
        assert refusal(path, truth).startswith(f"image_id must be in the ground truth. Got {name!r} in ")
    else:
        assert f"it can be {expected}: use a longer path" in refusal(path, truth)


def test_the_nearest_image_is_named(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "d/b.png", "e/c.png")
    path = csv_of(tmp_path, "z/b.png")
    assert refusal(path, truth) == (
        f"image_id must be in the ground truth. Got 'z/b.png' in line 2 of {path}; 1 image of these detections is not listed "
        "(most similar name: 'd/b.png'); --unlisted-images drop (in Python unlisted_images=) ignores "
        "this image, background adds it without objects."
    )


# ---------------------------------------------------------------- another root


def test_another_root_is_taken_with_a_warning(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "val2017/1.jpg", "val2017/2.jpg")
    path = csv_of(tmp_path, "images/1.jpg", "images/2.jpg")
    with pytest.warns(BoxscoreWarning) as caught:
        assert images_of(path, truth) == ["val2017/1.jpg", "val2017/2.jpg"]
    assert [str(one.message) for one in caught] == [
        f"{path}: images are in folder images, those of the ground truth in val2017; assuming that the folders are the same."
    ]


@pytest.mark.parametrize("folder", ["", "val2017/", "/data/val2017/", "..\\val2017\\"])
def test_the_same_root_is_taken_in_silence(folder: str, tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "/home/me/val2017/1.jpg", "/home/me/val2017/2.jpg")
    assert len(images_of(csv_of(tmp_path, f"{folder}1.jpg", f"{folder}2.jpg"), truth)) == 2


def test_where_some_have_the_root_others_are_unknown(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "d/a.png", "d/b.png")
    text = refusal(csv_of(tmp_path, "d/a.png", "z/b.png"), truth)
    assert (
        "; 1 image of these detections is not listed (most similar name: 'd/b.png'); --unlisted-images drop"
        in text
    )


# ---------------------------------------------------------------- two names for one image


def test_two_folders_are_two_images_also_where_the_ground_truth_has_none(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "0001.jpg", "0002.jpg")
    path = csv_of(tmp_path, "cam1/0001.jpg", "cam2/0001.jpg")
    assert refusal(path, truth) == (
        f"image_id must identify one image of the ground truth. Got 'cam1/0001.jpg' in line 2 of {path}; its name matches the same image as 'cam2/0001.jpg'; they differ in folder or extension."
    )
    path = csv_of(tmp_path, "0001.jpg", "0001.png")
    assert refusal(path, truth).startswith("image_id must be in the ground truth. Got '0001.png' in ")
    assert images_of(csv_of(tmp_path, "cam1/0001.jpg", "0001.jpg", "cam1\\0001"), truth) == ["0001.jpg"] * 3


# ---------------------------------------------------------------- ids and numbers


def test_a_file_name_that_two_images_can_have_is_decided_by_an_id_that_is_not_made_of_it(
    tmp_path: Path,
) -> None:
    truth = truth_of(tmp_path, *CAMERAS, ids=(5, 6))
    path = results_of(tmp_path, 6, file_name=["0001.jpg"])
    assert images_of(path, truth) == ["cam2/0001.jpg"]
    truth = truth_of(tmp_path, *CAMERAS)
    path = results_of(tmp_path, 1, 1, file_name=["0001.jpg", "0001.jpg"])  # ultralytics: int(stem)
    assert "it can be 'cam1/0001.jpg' or 'cam2/0001.jpg'" in refusal(path, truth)


def test_a_file_name_of_no_image_is_no_other_image_by_its_id(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "a.jpg", "b.jpg", "c.jpg")
    path = results_of(tmp_path, 1, 2, file_name=["a.jpg", "z.jpg"])
    assert refusal(path, truth).startswith(
        "image_id must be in the ground truth. Got 'z.jpg' in detection 1 of"
    )
    path = results_of(tmp_path, 3, 2, file_name=["x.jpg", "z.jpg"])  # names of another kind: ids count
    assert images_of(path, truth) == ["c.jpg", "b.jpg"]


def test_numbers_of_a_file_are_all_of_one_kind(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *(f"{number}.jpg" for number in range(5, 15)), ids=tuple(range(1, 11)))
    assert refusal(results_of(tmp_path, 3, 12), truth).startswith(
        "image_id must be in the ground truth. Got 12 "
    )
    mixed = truth_of(tmp_path, "17.jpg", "cam.jpg", ids=(1, 17))
    # By id both are cam.jpg.
    assert images_of(results_of(tmp_path, 17, "cam"), mixed) == ["17.jpg", "cam.jpg"]
    path = results_of(tmp_path, "cam", 17, 17)  # of which no best one lies on an object
    with pytest.warns(BoxscoreWarning, match="image_id 17 is the id of one image .*; read as file names: "):
        assert images_of(path, mixed) == ["cam.jpg", "17.jpg", "17.jpg"]


def test_a_number_that_two_files_have_is_refused(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "cam1/0007.jpg", "cam2/0007.jpg", "cam1/0008.jpg")
    names = ["cam1/0007.jpg", "cam2/0007.jpg", "cam1/0008.jpg"]
    assert images_of(results_of(tmp_path, 1, 2, 3), truth) == names
    assert "Got 7 in detection 0" in (text := refusal(results_of(tmp_path, 7, 8), truth))
    assert "it can be 'cam1/0007.jpg' or 'cam2/0007.jpg'" in text


@pytest.mark.parametrize(
    ("numbers", "named"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4]),  # names and ids are the same
        ([2, 3, 4, 1], [4, 1, 2, 3]),  # each id is the name of another image
        ([2, 1, 3, 4], [2, 1]),
        ([2, 1, 3, 9], [1, 2, 3, 4]),  # 4 is no name
        ([2, 1, 2, 4], [1, 2, 3, 4]),  # 3 is no name, and 2 may be two images
        ([2, 3, 1, 9], [3, 1, 2]),  # 4 is no name, but no row has it
    ],
)
def test_rows_that_are_ids_and_names_of_images(numbers: list[int], named: list[int]) -> None:
    """``named`` are the ids of the images of 1, 2, ...; the boxes say that they are names, if they can be."""
    images = Images.build([1, 2, 3, 4], file_names=[f"{number:04d}.jpg" for number in numbers])
    rng = np.random.default_rng(4)
    ids = np.concatenate([np.arange(1, len(named) + 1), rng.integers(1, len(named) + 1, 300)])
    expected = np.array([named[number - 1] for number in ids])

    def of_names(rows: Any) -> int:
        return int((images.ids[rows] == expected).sum())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        rows = find_images(ids, images, count_matched=of_names, place=str)
    assert images.ids[rows].tolist() == expected.tolist()


def test_a_number_in_two_spellings_is_refused(tmp_path: Path) -> None:
    images = Images.build(["7", "007", "8"])
    rows = find_images(as_ids([8], name="ids"), images, place=str)
    assert images.ids[rows].tolist() == ["8"]
    with pytest.raises(InputError, match=r"identify one image .* Got 7 in 0; it can be '007' or '7':"):
        find_images(as_ids([7], name="ids"), images, place=str)


def test_text_that_is_an_id_and_anothers_name_is_decided_by_the_boxes(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, "b.jpg", "a.jpg", ids=("a", "b"))
    path = results_of(tmp_path, "b", "a")  # the first lies on the object of image "a", which is b.jpg
    with pytest.warns(
        BoxscoreWarning,
        match="read as file names: confident detections overlap 0 annotations if these are ids, and 2 if they are",
    ):
        assert images_of(path, truth) == ["b.jpg", "a.jpg"]
    path = results_of(tmp_path, "a", "b")
    assert images_of(path, truth) == ["b.jpg", "a.jpg"]


# ---------------------------------------------------------------- other roads


def test_chosen_images_are_found_by_names_too(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *CAMERAS)
    path = csv_of(tmp_path, "cam1/0001", "cam2/0001")
    result = boxscore.evaluate(truth, path, images=["cam2/0001"])
    assert result.images.ids.tolist() == [2]
    with pytest.raises(InputError) as caught:
        boxscore.evaluate(truth, path, images=["0001"])
    assert str(caught.value) == (
        "a chosen image must be one image. Got '0001'; it can be 'cam1/0001.jpg' or 'cam2/0001.jpg': use a longer path, or the image id."
    )


def test_a_message_counts_all_known_images(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *(f"{number}.jpg" for number in range(5000)))
    with pytest.raises(InputError, match=r"known: 1, 2, 3, 4, 5, 6, 7, 8, \.\.\. \(5,000 in all\)\.$"):
        boxscore.evaluate(truth, csv_of(tmp_path, 1), images=["no such thing"])


def test_tables_of_python_are_found_by_the_same_rule(tmp_path: Path) -> None:
    truth = truth_of(tmp_path, *CAMERAS)
    for names, rows in ((["cam2/0001", "cam1/0001"], [1, 0]), (["cam2\\0001.jpg"], [1])):
        table = boxscore.Detections.from_arrays(
            names, ["cat"] * len(names), [[0, 0, 9, 9]] * len(names), [0.5] * len(names)
        )
        assert boxscore.evaluate(truth, table).detections.image.tolist() == rows
    with pytest.raises(InputError, match=r"it can be 'cam1/0001\.jpg' or 'cam2/0001.jpg'"):
        boxscore.evaluate(truth, boxscore.Detections.from_arrays(["0001"], ["cat"], [[0, 0, 9, 9]], [0.5]))


@pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")
def test_sizes_of_another_folder_are_not_taken(tmp_path: Path) -> None:
    for name in ("cam1", "cam2"):
        (tmp_path / "labels" / name).mkdir(parents=True)
        (tmp_path / "labels" / name / "0001.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    (tmp_path / "data.yaml").write_text("path: .\nval: labels\nnames: [cat]\n")
    sizes = {"cam1/0001.jpg": (100, 100), "cam2/0001.jpg": (200, 50)}
    truth = load_ground_truth(tmp_path / "data.yaml", image_sizes=sizes)
    assert truth.images.sizes.tolist() == [[100, 100], [200, 50]]
    with pytest.warns(BoxscoreWarning, match="the size of 1 of 2 images is unknown"):
        truth = load_ground_truth(
            tmp_path / "data.yaml", image_sizes={"cam1/0001.jpg": (100, 100), "cam3/0001.jpg": (9, 9)}
        )
    assert dict(zip(truth.images.ids.tolist(), np.isnan(truth.images.sizes[:, 0]).tolist(), strict=True)) == {
        "cam1/0001": False,
        "cam2/0001": True,
        "cam3/0001": False,
    }


def test_parquet_in_partitions_follows_the_same_rule(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pandas as pd

    truth = truth_of(tmp_path, *CAMERAS)
    frame = pd.read_csv(csv_of(tmp_path, "cam2/0001", "cam1/0001"))
    frame.to_parquet(tmp_path / "dt.parquet")
    result = boxscore.distributed.scan(tmp_path / "gt.json", tmp_path / "dt.parquet")
    assert result.metrics["AP"] == boxscore.evaluate(truth, tmp_path / "dt.parquet")["AP"] < 1
    frame["image"] = "0001"
    frame.to_parquet(tmp_path / "dt.parquet")
    with pytest.raises(InputError, match=r"it can be 'cam1/0001\.jpg' or 'cam2/0001.jpg'"):
        boxscore.distributed.scan(tmp_path / "gt.json", tmp_path / "dt.parquet")


@pytest.mark.parametrize(
    ("images", "names"),
    [
        (("a/0.jpg", "a/a/0.jpg"), ("a/0", "a/a/0")),  # a/0 was a/a/0.jpg, without a word
        (("a/0.jpg", "b/a/0.jpg"), ("a/0", "b/a/0")),  # was refused
        (("a/0.jpg", "b/a/0.jpg", "b/0.jpg"), ("a\\0", "b/a/0.jpg", "b/0")),
    ],
)
def test_a_path_in_the_folders_of_an_image_is_that_image(
    images: tuple[str, ...], names: tuple[str, ...], tmp_path: Path
) -> None:
    truth = truth_of(tmp_path, *images)
    detections = load_detections(csv_of(tmp_path, *names), truth)
    assert detections.image.tolist() == list(range(len(images)))


# ---------------------------------------------------------------- a slow, obvious oracle


def parts_of(name: str) -> tuple[list[str], str, str]:
    pieces = [piece for piece in re.split(r"[/\\]", name) if piece not in ("", ".")]
    match = re.fullmatch(r"(.+)\.([A-Za-z0-9]+)", pieces[-1])
    if match and match[2].lower() in ENDINGS:
        return pieces[:-1], match[1], match[2].lower()
    return pieces[:-1], pieces[-1], ""


def oracle(name: str, known: list[str]) -> set[int]:
    """The images that a name can stand for, by looking at each."""
    taken = [parts_of(one) for one in known]
    root = 0
    while all(len(one[0]) > root for one in taken) and len({one[0][root] for one in taken}) == 1:
        root += 1
    folders, stem, ending = parts_of(name)
    same = {
        row
        for row, other in enumerate(known)
        if [*re.split(r"[/\\]+", other.removeprefix("./"))] == [*re.split(r"[/\\]+", name.removeprefix("./"))]
    }
    if same:
        return same
    marks, whole = {}, set()
    for row, (theirs, their_stem, their_ending) in enumerate(taken):
        same_folders = bool(folders) and theirs == folders
        theirs = theirs[root:]
        count = 0
        while count < min(len(theirs), len(folders)) and theirs[-1 - count] == folders[-1 - count]:
            count += 1
        if their_stem == stem and count == min(len(theirs), len(folders)):
            marks[row] = (count, 2 if their_ending == ending else 1 if "" in (their_ending, ending) else 0)
            if same_folders and marks[row][1]:
                whole.add(row)
    marks = {row: mark for row, mark in marks.items() if row in whole} or marks
    best = {
        row for row, mark in marks.items() if all(mark[0] >= m[0] and mark[1] >= m[1] for m in marks.values())
    }
    return best or set(marks)


FOLDERS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
LAST = st.sampled_from(["1", "2", "x.v2", "x", ".hidden"])
ENDING = st.sampled_from(["", ".jpg", ".png", ".JPG", ".txt"])
PATHS = st.builds(lambda folders, last, ending: "/".join([*folders, last + ending]), FOLDERS, LAST, ENDING)


@given(st.lists(PATHS, min_size=1, max_size=7), PATHS, st.booleans())
def test_names_stand_for_what_the_oracle_says(known: list[str], name: str, backslashes: bool) -> None:
    name = name.replace("/", "\\") if backslashes else name
    names = ImageNames(known)
    assert set(names.candidates(name)) == oracle(name, known)


@given(
    st.lists(PATHS, min_size=1, max_size=6, unique=True), st.lists(PATHS, min_size=1, max_size=6, unique=True)
)
def test_images_never_share_names_that_differ(known: list[str], names: list[str]) -> None:
    rows = ImageNames(known).find(names).rows.tolist()
    for at, (name, row) in enumerate(zip(names, rows, strict=True)):
        assert row in (UNKNOWN, SEVERAL) or oracle(name, known) == {row}
        for other, beside in zip(names[:at], rows[:at], strict=True):
            if row >= 0 and row == beside and known[row] not in (name, other):
                (folders, _, first), (others, _, second) = parts_of(name), parts_of(other)
                shared = min(len(folders), len(others))
                assert folders[len(folders) - shared :] == others[len(others) - shared :]
                assert first == second or "" in (first, second)


@given(st.lists(PATHS, min_size=1, max_size=6, unique=True))
def test_every_image_is_found_by_its_own_name(known: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ImageNames(known).find(known).rows.tolist() == [*range(len(known))]
        images = Images.build(range(len(known)), file_names=known)
        assert find_images(as_ids(known, name="ids"), images, place=str).tolist() == [*range(len(known))]


@pytest.mark.parametrize(("box", "image"), [([1, 1, 9, 9], 1), ([30, 30, 9, 9], 2)])
def test_text_that_is_an_id_and_a_file_name_is_decided_by_the_boxes(
    box: list[int], image: int, tmp_path: Path
) -> None:
    """A file called ``1`` may be another image than that of the id."""
    truth = {
        "images": [
            {"id": 1, "width": 50, "height": 50, "file_name": "x"},
            {"id": 2, "width": 50, "height": 50, "file_name": "1"},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0},
            {"id": 2, "image_id": 2, "category_id": 1, "bbox": [30, 30, 9, 9], "area": 81, "iscrowd": 0},
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(
        json.dumps([{"image_id": "1", "category_id": 1, "bbox": box, "score": 0.5}])
    )
    ground_truth = boxscore.load_ground_truth(tmp_path / "gt.json")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detections = boxscore.load_detections(tmp_path / "dt.json", ground_truth)
    assert ground_truth.images.ids[detections.image].tolist() == [image]
    text = "image_id 1 is the id of one image and the file name of another; read as ids"
    assert [text in str(warning.message) for warning in caught] == ([True] if image == 1 else [])


def test_no_image_has_the_name_where_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "gt.json").write_text(
        json.dumps({"images": [], "annotations": [], "categories": [{"id": 1, "name": "cat"}]})
    )
    row = {"image_id": "1", "category_id": 1, "bbox": [1, 1, 9, 9], "score": 0.5}
    (tmp_path / "dt.json").write_text(json.dumps([row]))
    with pytest.raises(InputError, match=r"image_id must be in the ground truth. Got '1'"):
        load_detections(tmp_path / "dt.json", load_ground_truth(tmp_path / "gt.json"))
