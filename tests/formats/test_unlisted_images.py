"""Images without objects: named by tables and folders, or met in detections alone."""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, InputError, load_detections, load_ground_truth
from boxscore.formats.image_sizes import header_size
from support.quiet import quiet
from support.running import Run

HEAD = "image,class,x1,y1,x2,y2"
TRUTH = f"{HEAD}\na,cat,0,0,20,20\nb,cat,50,50,70,70\n"
DETECTIONS = (
    f"{HEAD},score\na,cat,0,0,20,20,0.9\nq,cat,0,0,9,9,0.85\nb,cat,50,50,70,70,0.8\nq,cat,0,0,9,9,0.1\n"
)
"""With a false positive in image q between the hits: AP is (51 + 50 * 2 / 3) / 101."""

WITH_FALSE_POSITIVE = np.mean([1.0] * 51 + [2 / 3] * 50)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def png(path: Path, width: int, height: int) -> None:
    """A picture of black pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"\0" * (height * (width + 1)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def coco(folder: Path) -> Path:
    content = {
        "images": [
            {"id": number, "file_name": f"{name}.jpg", "width": 100, "height": 100}
            for number, name in ((1, "a"), (2, "b"))
        ],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 20, 20], "area": 400, "iscrowd": 0},
            {"id": 2, "image_id": 2, "category_id": 1, "bbox": [50, 50, 20, 20], "area": 400, "iscrowd": 0},
        ],
    }
    return write(folder, "gt.json", json.dumps(content))


def truths(folder: Path) -> dict[str, Path]:
    return {"csv": write(folder, "gt.csv", TRUTH), "coco": coco(folder)}


@pytest.mark.parametrize("kind", ["csv", "coco"])
def test_what_becomes_of_detections_in_an_image_that_is_not_listed(kind: str, tmp_path: Path) -> None:
    truth, detections = truths(tmp_path)[kind], write(tmp_path, "dt.csv", DETECTIONS)
    with pytest.raises(InputError) as caught:
        boxscore.evaluate(truth, detections)
    assert str(caught.value) == (
        f"image_id must be in the ground truth. Got 'q' in line 3 of {detections}; 1 image of these detections is not listed, perhaps results of another split; --unlisted-images drop (in Python unlisted_images=) ignores this image, background adds it without objects."
    )
    background = boxscore.evaluate(truth, detections, unlisted_images="background")
    assert background["AP"] == pytest.approx(WITH_FALSE_POSITIVE, abs=1e-15)
    assert (background.counts["images"], background.counts["detections"]) == (3, 4)
    with pytest.warns(BoxscoreWarning) as warned:
        dropped = boxscore.evaluate(truth, detections, unlisted_images="drop")
    assert [str(one.message) for one in warned] == [
        f"{detections}: ignoring 2 detections in 1 image that the ground truth does not list: q."
    ]
    assert (dropped["AP"], dropped.counts["images"], dropped.counts["detections"]) == (1, 2, 2)


def test_background_is_what_a_ground_truth_that_lists_the_image_gives(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    lines, every = [], [f"im{number}" for number in range(30)]
    for name in every:
        for _ in range(int(rng.integers(1, 5))):
            x, y, score = rng.integers(0, 60), rng.integers(0, 60), rng.random()
            lines.append((name, f"cat,{x},{y},{x + 20},{y + 20}", score))
    truth = "".join(f"{name},{box}\n" for name, box, _ in lines if int(name[2:]) % 3)
    listed = truth + "".join(f"{name},,,,,\n" for name in every if not int(name[2:]) % 3)
    detections = write(tmp_path, "dt.csv", f"{HEAD},score\n" + "".join(f"{n},{b},{s}\n" for n, b, s in lines))
    short, full = (
        write(tmp_path, "gt.csv", f"{HEAD}\n{truth}"),
        write(tmp_path, "full.csv", f"{HEAD}\n{listed}"),
    )
    expected = boxscore.evaluate(full, detections)
    assert 0 < expected["AP"] < 1
    for given in (detections, load_detections(detections, load_ground_truth(full))):
        result = boxscore.evaluate(short, given, unlisted_images="background")
        assert result.metrics == expected.metrics or np.array_equal(
            [*result.metrics.values()], [*expected.metrics.values()], equal_nan=True
        )
        assert result.counts == expected.counts
    in_place = load_detections(detections, load_ground_truth(short), unlisted_images="background")
    again = boxscore.evaluate(short, in_place, unlisted_images="background")
    assert again.counts == expected.counts


def test_what_others_are_called_does_not_change(tmp_path: Path) -> None:
    truth = write(tmp_path, "gt.csv", TRUTH.replace("\na,", "\nval/a.jpg,").replace("\nb,", "\nval/b.jpg,"))
    text = (
        DETECTIONS.replace("\na,", "\nimages/a.jpg,")
        .replace("\nb,", "\nimages/b.png,")
        .replace("\nq,", "\nimages/q.jpg,")
    )
    detections = write(tmp_path, "dt.csv", text)
    with pytest.warns(BoxscoreWarning, match="images are in folder images, those of the ground truth in val"):
        result = boxscore.evaluate(truth, detections, unlisted_images="background")
    assert result["AP"] == pytest.approx(WITH_FALSE_POSITIVE, abs=1e-15)


def test_what_two_images_can_be_is_never_an_unlisted_one(tmp_path: Path) -> None:
    truth = write(tmp_path, "gt.csv", TRUTH.replace("\na,", "\nx/a.jpg,").replace("\nb,", "\ny/a.jpg,"))
    detections = write(tmp_path, "dt.csv", f"{HEAD},score\na,cat,0,0,20,20,0.9\n")
    for how in ("background", "drop"):
        with pytest.raises(InputError, match=r"it can be 'x/a\.jpg' or 'y/a\.jpg'"):
            boxscore.evaluate(truth, detections, unlisted_images=how)  # type: ignore[arg-type]


def test_numbers_that_are_file_names_stay_so(tmp_path: Path) -> None:
    images = [{"id": at, "file_name": f"{name:06}.jpg"} for at, name in enumerate((2, 7, 8), start=1)]
    truth = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": []}
    numbers = (2, 1, 7, 8, 9)
    detections = [{"image_id": at, "category_id": 1, "bbox": [0, 0, 9, 9], "score": 0.9} for at in numbers]
    path = write(tmp_path, "dt.json", json.dumps(detections))
    truth_table = load_ground_truth(write(tmp_path, "gt.json", json.dumps(truth)))
    table = load_detections(path, truth_table, unlisted_images="background")
    assert table.images.file_names[table.image].tolist() == [
        "000002.jpg",
        "1",
        "000007.jpg",
        "000008.jpg",
        "9",
    ]
    assert table.images.ids[table.image].tolist() == [1, "1", 2, 3, 9]  # 1 is the id of another


@pytest.mark.long
@pytest.mark.parametrize("how", ["background", "drop"])
def test_every_command_takes_the_option(how: str, tmp_path: Path, run: Run) -> None:
    truth, detections = str(write(tmp_path, "gt.csv", TRUTH)), str(write(tmp_path, "dt.csv", DETECTIONS))
    other = str(write(tmp_path, "other.csv", DETECTIONS.replace("\nq,", "\nr,")))
    option = ["--unlisted-images", how]
    images = {"background": 3, "drop": 2}[how]
    assert (
        json.loads(run("evaluate", truth, detections, "--output", "json", *option).out)["counts"]["images"]
        == images
    )
    run("validate", truth, detections, *option)
    run("compare", truth, detections, other, "--output", "json", *option, "--resamples", "10")
    run("report", truth, detections, "--report", tmp_path / "out", *option, "--resamples", "0")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["counts"]["images"] == images
    config = write(
        tmp_path,
        "run.toml",
        f'[ground_truth]\npath = "gt.csv"\n[detections]\npath = "dt.csv"\nunlisted_images = "{how}"\n'
        '[output]\nform = "json"\n',
    )
    assert json.loads(run("run", config).out)["counts"]["images"] == images
    baseline = ["--baseline-detections", other, "--resamples", "10"]
    run("check", truth, detections, "--min", "AP=0.5", *baseline, *option)


def test_images_of_compared_detectors_are_those_of_all(tmp_path: Path, run: Run) -> None:
    truth, detections = str(write(tmp_path, "gt.csv", TRUTH)), str(write(tmp_path, "dt.csv", DETECTIONS))
    other = str(write(tmp_path, "other.csv", DETECTIONS.replace("\nq,", "\nr,")))
    assert "2 ground truths, 4 images; dt (4 detections)" in " ".join(
        run(
            "compare", truth, detections, other, "--unlisted-images", "background", "--resamples", "10"
        ).out.split()
    )


# ---------------------------------------------------------------- named by a table or a folder


ADDED = pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")


@ADDED
@pytest.mark.parametrize("way", ["table", "folder", "mapping"])
def test_images_of_a_table_or_a_folder_are_images(way: str, tmp_path: Path) -> None:
    truth, detections = write(tmp_path, "gt.csv", TRUTH), write(tmp_path, "dt.csv", DETECTIONS)
    options: dict[str, Any] = {}
    if way == "table":
        options["image_sizes"] = write(
            tmp_path, "sizes.csv", "image,width,height\na,100,90\nb,100,90\nq.jpg,80,70\n"
        )
    elif way == "mapping":
        options["image_sizes"] = {"a.jpg": (100, 90), "q": (80, 70)}
    else:
        for name in ("a", "b", "deep/q"):
            png(tmp_path / "images" / f"{name}.png", *((80, 70) if "q" in name else (100, 90)))
        options["image_folder"] = tmp_path / "images"
    table = load_ground_truth(truth, **options)
    assert table.images.ids.tolist() == ["a", "b", "deep/q" if way == "folder" else "q"]
    assert table.images.sizes.tolist()[2] == [80, 70]
    assert boxscore.evaluate(table, detections)["AP"] == pytest.approx(WITH_FALSE_POSITIVE, abs=1e-15)


@ADDED
def test_numbers_of_a_table_are_numbers_of_images(tmp_path: Path) -> None:
    truth = write(tmp_path, "gt.csv", TRUTH.replace("\na,", "\n1,").replace("\nb,", "\n2,"))
    for names in (["1", "2", "3"], ["000001.jpg", "000002.jpg", "000003.jpg"]):
        table = load_ground_truth(truth, image_sizes=dict.fromkeys(names, (100, 100)))
        assert table.images.ids.tolist() == [1, 2, 3]
        detections = write(tmp_path, "dt.csv", f"{HEAD},score\n3,cat,0,0,9,9,0.9\n")
        assert load_detections(detections, table).image.tolist() == [2]


def test_labels_without_images_take_those_of_the_folder(tmp_path: Path, run: Run) -> None:
    write(tmp_path, "labels/a.txt", "0 0.5 0.5 0.2 0.2\n")
    write(tmp_path, "dt/a.txt", "0 0.5 0.5 0.2 0.2 0.9\n")
    write(tmp_path, "dt/q.txt", "0 0.5 0.5 0.2 0.2 0.95\n")
    for name in ("a", "q"):
        png(tmp_path / "pictures" / f"{name}.png", 200, 100)
    inputs = [
        "evaluate",
        str(tmp_path / "labels"),
        str(tmp_path / "dt"),
        "--dt-format",
        "yolo",
        "--output",
        "json",
    ]
    result = json.loads(run(*inputs, "--image-folder", tmp_path / "pictures").out)
    assert (result["counts"]["images"], result["metrics"]["AP"]) == (2, 0.5)
    assert (
        json.loads(run(*inputs, "--image-sizes", "200x100", "--unlisted-images", "background").out)["metrics"]
        == result["metrics"]
    )


def test_images_that_files_list_are_not_added_to(tmp_path: Path) -> None:
    write(tmp_path, "labels/a.txt", "0 0.5 0.5 0.2 0.2\n")
    png(tmp_path / "images" / "a.png", 200, 100)
    for name in ("a", "q"):
        png(tmp_path / "pictures" / f"{name}.png", 200, 100)
    table = load_ground_truth(tmp_path / "labels", image_folder=tmp_path / "pictures")
    assert table.images.ids.tolist() == ["a"]


def test_one_size_for_all_images(tmp_path: Path) -> None:
    write(tmp_path, "labels/a.txt", "0 0.5 0.5 0.2 0.2\n")
    table = load_ground_truth(tmp_path / "labels", image_sizes="640x480")
    assert (table.units, table.images.sizes.tolist()) == ("pixels", [[640, 480]])
    assert table.boxes.tolist() == [[256, 192, 384, 288]]
    with pytest.raises(InputError, match=r"width must be a number of pixels, 1 or more\. Got '0'"):
        load_ground_truth(tmp_path / "labels", image_sizes="0x480")
    with pytest.raises(InputError) as caught:
        load_ground_truth(tmp_path / "labels", image_sizes=(640, 480))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "image_sizes must be a path, 'WIDTHxHEIGHT', or a mapping of images to sizes. Got (640, 480); "
        "'640x480' is the size of every image."
    )


def test_the_message_for_sizes_names_every_way(tmp_path: Path) -> None:
    write(tmp_path, "labels/a.txt", "0 0.5 0.5 0.2 0.2\n")
    with pytest.warns(BoxscoreWarning) as caught:
        load_ground_truth(tmp_path / "labels")
    assert str(caught[0].message).endswith(
        "Pass the image sizes: --image-folder DIR, or --image-sizes FILE.csv or WIDTHxHEIGHT "
        "(in Python image_folder= or image_sizes=)."
    )


@ADDED
@pytest.mark.parametrize(
    "content", [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"BM"]
)
def test_a_damaged_picture_is_an_image_of_unknown_size(content: bytes, tmp_path: Path) -> None:
    truth = write(tmp_path, "gt.csv", TRUTH)
    png(tmp_path / "images" / "a.png", 30, 20)
    for ending in ("jpg", "gif", "webp", "bmp", "png"):
        (tmp_path / "images" / f"q{ending}.{ending}").write_bytes(content)
    table = load_ground_truth(truth, image_folder=tmp_path / "images")
    assert len(table.images) == 7
    assert np.isnan(table.images.sizes[table.images.ids == "qpng"]).all()


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "webp", "bmp"])
def test_sizes_are_read_from_headers(ending: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (37, 23)).save(tmp_path / f"a.{ending}")
    assert header_size(tmp_path / f"a.{ending}") == (37, 23)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda folder: None, "the image folder must be a folder. Got "),
        (lambda folder: folder.mkdir(), "the image folder must hold images. Got none in "),
    ],
)
def test_a_folder_without_images_is_refused(make: Any, text: str, tmp_path: Path) -> None:
    make(tmp_path / "images")
    with pytest.raises(InputError) as caught:
        load_ground_truth(write(tmp_path, "gt.csv", TRUTH), image_folder=tmp_path / "images")
    assert str(caught.value).startswith(text)


# ---------------------------------------------------------------- chosen images


@pytest.mark.parametrize(
    "words",
    [
        ["1,2"],
        ["1,", "2"],
        ["a.jpg,b"],
        ["[1, 2]"],
        ['["a.jpg", 2]'],
        ["1,2\n"],
        ["a\nb.jpg\n"],
    ],
)
def test_chosen_images_have_commas_or_stand_in_a_file(words: list[str], tmp_path: Path, run: Run) -> None:
    truth, detections = str(coco(tmp_path)), str(write(tmp_path, "dt.csv", DETECTIONS.replace("q,", "a,")))
    if len(words) == 1 and words[0][-1] in "]\n":
        words = [str(write(tmp_path, "chosen.txt", words[0]))]
    assert (
        json.loads(run("evaluate", truth, detections, "--images", *words, "--output", "json").out)["counts"][
            "images"
        ]
        == 2
    )


@pytest.mark.parametrize("text", ["[1, 2", "[[1]]", "[1.5]", "[]", "[true]"])
def test_other_json_is_no_list_of_images(text: str, tmp_path: Path, run: Run) -> None:
    truth, detections = str(coco(tmp_path)), str(write(tmp_path, "dt.csv", DETECTIONS.replace("q,", "a,")))
    path = write(tmp_path, "chosen.json", text)
    assert "a file with ids must have one per line, or be a JSON list. Got other JSON" in run.error(
        "evaluate", truth, detections, "--images", path
    )


# ---------------------------------------------------------------- named by a table, and something is said

SIZES = "image,width,height\na,100,100\nb,100,100\nq,100,100\nr,100,100\n"


@pytest.mark.parametrize(
    ("how", "images", "detections", "ap"),
    [(None, 4, 4, WITH_FALSE_POSITIVE), ("background", 3, 4, WITH_FALSE_POSITIVE), ("drop", 2, 2, 1.0)],
)
def test_what_is_said_of_unlisted_images_wins_over_a_table_of_sizes(
    how: Any, images: int, detections: int, ap: float, tmp_path: Path, run: Run
) -> None:
    truth, found = write(tmp_path, "gt.csv", TRUTH), write(tmp_path, "dt.csv", DETECTIONS)
    sizes = write(tmp_path, "sizes.csv", SIZES)
    said = [] if how is None else ["--unlisted-images", how]
    inputs = ["evaluate", str(truth), str(found), "--image-sizes", str(sizes), "--no-digest"]
    result = json.loads(run(*inputs, "--output", "json", *said).out)
    assert (result["counts"]["images"], result["counts"]["detections"]) == (images, detections)
    assert result["metrics"]["AP"] == pytest.approx(ap, abs=1e-15)
    with quiet():
        same = boxscore.evaluate(truth, found, image_sizes=sizes, unlisted_images=how)
        table = load_ground_truth(truth, image_sizes=sizes, unlisted_images=how)
    assert (same.counts["images"], same["AP"]) == (images, result["metrics"]["AP"])
    assert table.images.ids.tolist() == (["a", "b"] if how else ["a", "b", "q", "r"])
    assert table.images.sizes.tolist() == [[100, 100]] * len(table.images)


@pytest.mark.long
def test_an_error_that_is_asked_for_is_one_beside_a_table_or_a_folder(tmp_path: Path, run: Run) -> None:
    truth, detections = write(tmp_path, "gt.csv", TRUTH), write(tmp_path, "dt.csv", DETECTIONS)
    sizes = ["--image-sizes", str(write(tmp_path, "sizes.csv", SIZES))]
    for name in "abq":
        png(tmp_path / "images" / f"{name}.png", 100, 100)
    for option in (sizes, ["--image-folder", str(tmp_path / "images")]):
        inputs = ["evaluate", str(truth), str(detections), *option, "--no-digest"]
        run(*inputs)
        assert "image_id must be in the ground truth. Got 'q'" in run.error(
            *inputs, "--unlisted-images", "error"
        )


def test_images_that_a_table_adds_are_counted(tmp_path: Path, run: Run) -> None:
    truth, detections = write(tmp_path, "gt.csv", TRUTH), write(tmp_path, "dt.csv", DETECTIONS)
    sizes = write(tmp_path, "sizes.csv", SIZES)
    note = (
        f"2 images are listed only in {sizes} and count as images without objects; "
        "--unlisted-images drop (in Python unlisted_images=) ignores their detections."
    )
    inputs = ["evaluate", str(truth), str(detections), "--no-digest", "--strict", "--image-sizes"]
    # a note is no warning
    assert run(*inputs, sizes).err == f"boxscore: note: {note.replace(' (in Python unlisted_images=)', '')}\n"
    with pytest.warns(BoxscoreWarning) as warned:
        load_ground_truth(truth, image_sizes=sizes)
    assert [str(one.message) for one in warned] == [note]
    few = write(tmp_path, "few.csv", SIZES.replace("\nr,100,100", ""))
    assert run(*inputs, few).err == (
        f"boxscore: note: 1 image is listed only in {few} and counts as an image without objects; "
        "--unlisted-images drop ignores its detections.\n"
    )
    many = {f"im{number}": (100, 100) for number in range(20)}
    lines = "".join(f"{name},cat,0,0,9,9\n" for name in [*many][2:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = load_ground_truth(write(tmp_path, "many.csv", f"{HEAD}\n{lines}"), image_sizes=many)
    assert len(table.images) == 20  # a tenth of them is added, without a word


def test_pixels_beside_fractions_come_before_unlisted_images(tmp_path: Path, run: Run) -> None:
    write(tmp_path, "labels/a.txt", "0 0.5 0.5 0.2 0.2\n")
    text = json.dumps(
        [
            {"image_id": name, "category_id": 0, "bbox": [0, 0, 50, 50], "score": 0.9}
            for name in ("q.jpg", "a.jpg")
        ]
    )
    detections = write(tmp_path, "dt.json", text)
    expected = (
        "ground truth and detections must be both in pixels, or both in fractions of the image size. Got "
        "fractions and pixels; pass the image sizes: --image-folder DIR, or --image-sizes FILE.csv or "
        "WIDTHxHEIGHT (in Python image_folder= or image_sizes=)."
    )
    typed = expected.replace(" (in Python image_folder= or image_sizes=)", "")
    assert (
        run.error("evaluate", tmp_path / "labels", detections).splitlines()[-1] == f"boxscore: error: {typed}"
    )
    with quiet():
        truth = load_ground_truth(tmp_path / "labels")
        for given in (truth, tmp_path / "labels"):
            with pytest.raises(InputError) as caught:
                boxscore.evaluate(given, detections)
            assert str(caught.value) == expected
        sizes = {"a": (100, 100), "q": (100, 100)}
        result = boxscore.evaluate(tmp_path / "labels", detections, image_sizes=sizes)
        assert (result.counts["images"], result.ground_truth.units) == (2, "pixels")


def test_sizes_are_refused_beside_tables(tmp_path: Path) -> None:
    truth, detections = load_ground_truth(coco(tmp_path)), write(tmp_path, "dt.csv", DETECTIONS)
    table = load_detections(detections, truth, unlisted_images="background")
    with pytest.raises(InputError, match=r"image_sizes must be given where files are read\. Got '9x9'\."):
        boxscore.evaluate(truth, table, image_sizes="9x9")


def test_what_to_do_where_partitions_are_evaluated_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """The message of an unlisted image named the option, and that of the option named no remedy."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("gt.csv").write_text("image,class,x1,y1,x2,y2\na,cat,0,0,20,20\n")
    Path("dt.csv").write_text("image,class,x1,y1,x2,y2,score\na,cat,0,0,20,20,0.9\nc,cat,0,0,9,9,0.8\n")
    run("convert", "--dt", "dt.csv", "--to", "parquet", "--output", "dt.parquet")
    call = ["evaluate", "gt.csv", "dt.parquet", "--memory-limit", "1GB"]
    assert run.error(*call, "--unlisted-images", "drop") == (
        "boxscore: error: --unlisted-images must not be combined with --memory-limit. Got both; add "
        "these images to the ground truth, or drop their detections first: boxscore convert --gt GT --dt "
        "DT --unlisted-images drop --to parquet --output FILE.\n"
    )
    drop = ["--unlisted-images", "drop", "--to", "parquet", "--output", "known.parquet"]
    run("convert", "--gt", "gt.csv", "--dt", "dt.parquet", *drop)
    run("evaluate", "gt.csv", "known.parquet", "--memory-limit", "1GB", "-o", "json")
