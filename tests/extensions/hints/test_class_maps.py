"""Class maps, and which image a result means: names, files, and what the boxes say."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import load_detections, load_ground_truth
from boxscore.cli import main
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.hints.numbering import COCO_IDS, match_best
from boxscore.extensions.validation.digest import quick_findings
from boxscore.validation import find_class_map, validate, validate_files
from support.quiet import quiet
from support.real_data import real

AP = pytest.approx(0.6348354875849376, rel=2e-16, abs=0)  # before 2.0, NumPy adds a mean in another order
"""Of the real run, with every class and image as it was meant."""

NAMES = ["ant", "bee", "cow", "dog", "elk", "fox"]
Record = dict[str, Any]


def boxes(image: int, count: int = 6) -> list[list[float]]:
    return [[100.0 * number + 3 * image, 20.0 * image, 40 + image, 30] for number in range(count)]


def ground_truth(
    folder: Path, *, first: int = 1, names: list[str] = NAMES, file_name: Callable[[int], str] | None = None
) -> boxscore.GroundTruth:
    """Six images with one object of each class; images count from 1, classes from ``first``."""
    name = file_name or (lambda image: f"image{image}.jpg")
    images = [{"id": image, "file_name": name(image), "width": 900, "height": 900} for image in range(1, 7)]
    annotations = [
        {"image_id": image, "category_id": number + first, "bbox": box, "area": 1200, "iscrowd": 0}
        for image in range(1, 7)
        for number, box in enumerate(boxes(image, len(names)))
    ]
    for number, annotation in enumerate(annotations, start=1):
        annotation["id"] = number
    categories = [{"id": number + first, "name": name} for number, name in enumerate(names)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "gt.json").write_text(json.dumps(content))
    return load_ground_truth(folder / "gt.json")


def records(
    category: Callable[[int], Any], image: Callable[[int], Any] = int, **extra: Callable[[int], Any]
) -> list[Record]:
    """Every object found; ``category``, ``image`` and more say how they are written."""
    return [
        {
            "image_id": image(number),
            "category_id": category(place),
            "bbox": box,
            "score": 0.9 - place / 100,
            **{key: value(number) for key, value in extra.items()},
        }
        for number in range(1, 7)
        for place, box in enumerate(boxes(number))
    ]


def written(folder: Path, results: Any) -> Path:
    path = folder / "dt.json"
    path.write_text(json.dumps(results))
    return path


def score(truth: boxscore.GroundTruth, detections: boxscore.Detections) -> float:
    with quiet():
        return boxscore.evaluate(truth, detections)["AP"]


def perfect(truth: boxscore.GroundTruth, path: Path, **options: Any) -> bool:
    detections = load_detections(path, truth, **options)
    return len(detections) == len(truth) and round(score(truth, detections), 9) == 1


# ---------------------------------------------------------------- maps with a name


@pytest.mark.parametrize(
    ("name", "first", "category"),
    [
        ("zero-based", 1, lambda place: place),
        ("one-based", 0, lambda place: place + 1),
        ("one-based", 5, lambda place: place + 1),
        ("plus-one", 5, lambda place: place + 4),
        ("minus-one", 5, lambda place: place + 6),
    ],
)
def test_a_named_map_says_what_numbers_mean(
    name: str, first: int, category: Callable[[int], int], tmp_path: Path
) -> None:
    truth, path = ground_truth(tmp_path, first=first), written(tmp_path, records(category))
    assert perfect(truth, path, class_map=name)
    with pytest.warns(BoxscoreWarning, match=re.escape(name) + r"\), 36 do\.$|class map (zero|one)-based"):
        assert perfect(truth, path, class_map="auto")


def test_coco_s_ids_and_positions() -> None:
    assert (len(COCO_IDS), COCO_IDS[0], COCO_IDS[-1]) == (80, 1, 90)
    assert [COCO_IDS[index] for index in (10, 11, 24, 25, 26, 60, 79)] == [11, 13, 27, 28, 31, 67, 90]


def test_numbers_that_a_named_map_does_not_have_are_left_out(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place))
    with pytest.warns(BoxscoreWarning, match="ignoring 6 detections of 1 class .*: 0"):
        assert load_detections(path, truth, class_map="one-based").left_out == {"0": 6}


# ---------------------------------------------------------------- pairs


MOVED: dict[Any, Any] = {10: 1, 11: "bee", 12: 3, 13: "dog", 14: 5, 15: "fox"}


def test_pairs_are_ids_or_names(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 10))
    assert perfect(truth, path, class_map=MOVED)
    file = tmp_path / "map.csv"
    file.write_text("# model, data\n\n" + "".join(f"{key}, {to}\n" for key, to in MOVED.items()))
    assert perfect(truth, path, class_map=file)


def test_names_map_to_names_and_other_classes_stay(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    given = ["Ameise", "bee", "cow", "dog", "elk", "fox"]
    path = written(tmp_path, records(lambda place: given[place]))
    assert perfect(truth, path, class_map={"Ameise": "ant"})


def test_nothing_leaves_a_class_out(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 1))
    (tmp_path / "map.txt").write_text("1,\n")
    with pytest.warns(BoxscoreWarning, match="ignoring 6 detections"):
        detections = load_detections(path, truth, class_map=tmp_path / "map.txt")
    assert np.unique(detections.category).tolist() == [1, 2, 3, 4, 5]


def test_two_classes_may_become_one(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 1))
    detections = load_detections(path, truth, class_map={2: 1})
    assert np.bincount(detections.category).tolist() == [12, 0, 6, 6, 6, 6]


@pytest.mark.parametrize(
    ("class_map", "message"),
    [
        ("one-basd", "did you mean 'one-based'"),
        ({}, "must map at least one class"),
        ({1: 2.5}, "must map ids or names"),
        ({1: "cat"}, "must map to classes of the ground truth. Got 'cat'"),
        ({77: 1}, "must name classes of the detections. Got only others"),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(class_map: Any, message: str, tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 1))
    with pytest.raises(InputError, match=message):
        load_detections(path, truth, class_map=class_map)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n", "must be from,to. Got '1' in line 1"),
        ("1,2,3\n", "must be from,to"),
        (
            '"1\n",2\n',
            "must be from,to. Got '\"1' in line 1 .* is a quotation mark missing. Use the id of a class whose name has a line break",
        ),
        ("1,2\n1,3\n", "must map each class once. Got 1 twice in line 2"),
        ("\n", "must map at least one class"),
    ],
)
def test_a_bad_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text(text)
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 1))
    with pytest.raises(InputError, match=message):
        load_detections(path, truth, class_map=tmp_path / "map.csv")


# ---------------------------------------------------------------- other formats


def test_a_map_goes_with_lines_of_yolo(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, first=5)
    (tmp_path / "labels").mkdir()
    for image in range(1, 7):
        lines = [
            f"{place} {(x + w / 2) / 900} {(y + h / 2) / 900} {w / 900} {h / 900} 0.{90 - place}\n"
            for place, (x, y, w, h) in enumerate(boxes(image))
        ]
        (tmp_path / "labels" / f"image{image}.txt").write_text("".join(lines))
    path = tmp_path / "labels"
    with pytest.raises(InputError, match="uses class numbers that count from 0"):
        load_detections(path, truth)
    assert perfect(truth, path, class_map="zero-based")
    assert perfect(truth, path, class_map={place: place + 5 for place in range(6)})
    assert perfect(truth, path, class_map="zero-based", classes=NAMES)
    with pytest.warns(BoxscoreWarning, match="zero-based"):
        assert perfect(truth, path, class_map="auto")


def test_a_map_goes_with_results_of_voc(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    (tmp_path / "results").mkdir()
    for place in range(6):
        lines = [
            f"image{image} 0.{90 - place} {x} {y} {x + w} {y + h}\n"
            for image in range(1, 7)
            for x, y, w, h in [boxes(image)[place]]
        ]
        (tmp_path / "results" / f"comp4_det_test_class{place}.txt").write_text("".join(lines))
    pairs = {f"class{place}": name for place, name in enumerate(NAMES)}
    assert perfect(truth, tmp_path / "results", class_map=pairs)
    with pytest.warns(BoxscoreWarning, match="by-evidence"):
        assert perfect(truth, tmp_path / "results", class_map="auto")


# ---------------------------------------------------------------- found by the boxes


SHUFFLED = [3, 5, 0, 1, 4, 2]


def test_another_list_of_classes_is_found(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: SHUFFLED[place] + 20))
    with pytest.warns(BoxscoreWarning, match="class map by-evidence"):
        assert perfect(truth, path, class_map="auto")


def test_names_of_classes_need_no_map(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: NAMES[place]))
    assert perfect(truth, path)
    with pytest.warns(BoxscoreWarning, match="no class map is needed"):
        assert perfect(truth, path, class_map="auto")


def test_a_dummy_class_of_roboflow(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, first=1)
    content = json.loads((tmp_path / "gt.json").read_text())
    content["categories"].insert(0, {"id": 0, "name": "animals", "supercategory": "none"})
    (tmp_path / "gt.json").write_text(json.dumps(content))
    truth = load_ground_truth(tmp_path / "gt.json")
    assert perfect(truth, written(tmp_path, records(lambda place: place + 1)))
    with pytest.warns(BoxscoreWarning, match="plus-one"):
        assert perfect(truth, written(tmp_path, records(lambda place: place)), class_map="auto")


def test_too_little_evidence_is_refused(tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place)[:9])
    with pytest.raises(InputError, match="only 9 confident detections overlap an annotation"):
        load_detections(path, truth, class_map="auto")


def test_classes_at_random_are_refused(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    truth = ground_truth(tmp_path)
    path = written(tmp_path, records(lambda place: int(generator.integers(0, 7))))
    with pytest.raises(InputError, match=r"with class ids as given, .* of 36 confident detections"):
        load_detections(path, truth, class_map="auto")


def test_a_class_that_may_be_one_of_two_is_refused(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    detections = [
        record for record in records(lambda place: SHUFFLED[place] + 20) if record["category_id"] != 24
    ]
    off = {"image_id": 1, "category_id": 24, "bbox": [800, 800, 9, 9], "score": 0.95}
    with pytest.raises(InputError, match="by-evidence is most likely"):
        load_detections(written(tmp_path, [*detections, off]), truth, class_map="auto")


def test_no_detections_need_no_map(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    assert len(load_detections(written(tmp_path, []), truth, class_map="auto")) == 0


def test_the_best_detections_are_matched_as_by_a_plain_loop(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    corners = generator.uniform(0, 60, (300, 2))
    table = np.hstack([corners, corners + generator.uniform(5, 40, (300, 2))])
    image = np.sort(generator.integers(0, 9, 300)).astype(np.int32)
    truth = boxscore.GroundTruth.from_arrays(image[::2], ["a"] * 150, table[::2])
    scores = generator.permutation(150) / 150
    best = match_best(truth, image[1::2], table[1::2], scores)
    expected = {}
    for number in range(9):
        rows, truths = np.flatnonzero(image[1::2] == number), np.flatnonzero(truth.image == number)
        for row in sorted(rows, key=lambda row: -scores[row])[: len(truths)]:
            iou = boxscore.box_iou(table[1::2][[row]], truth.boxes[truths])[0]
            expected[int(row)] = int(truths[iou.argmax()]) if iou.max() >= 0.5 else -1
    assert dict(zip(best.detection.tolist(), best.truth.tolist(), strict=True)) == expected
    assert best.matched == sum(row >= 0 for row in expected.values()) > 0


# ---------------------------------------------------------------- said in passing


@pytest.mark.parametrize(
    ("first", "category", "says"),
    [
        (0, lambda place: place + 1, r"\(one-based\), 36 do\. AP is 0\.0000 now and would be 1\.0000"),
        (1, lambda place: place, r"\(zero-based\), 36 do\. AP is 0\.0000 now and would be 1\.0000"),
        (1, lambda place: SHUFFLED[place] + 1, r"another class list, 36 do\. AP is 0\.1667 now"),
    ],
)
def test_evaluating_says_that_classes_are_numbered_differently(
    first: int, category: Callable[[int], int], says: str, tmp_path: Path
) -> None:
    truth, path = ground_truth(tmp_path, first=first), written(tmp_path, records(category))
    with quiet():
        detections = load_detections(path, truth)
    with pytest.warns(BoxscoreWarning, match=says):
        boxscore.evaluate(truth, detections)


def test_another_numbering_is_said_once_with_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning has the option and the AP of the file read that way: no finding repeats it with less."""
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: (place + 1) % 6 + 1))
    with pytest.warns(BoxscoreWarning) as caught:
        boxscore.evaluate(truth, load_detections(path, truth))
    codes = [one.message.code for one in caught if isinstance(one.message, BoxscoreWarning)]
    assert codes.count("classes-numbered-differently") == 1
    for command in (["evaluate"], ["report", "--report", str(tmp_path / "report")]):
        main([command[0], str(tmp_path / "gt.json"), str(path), *command[1:]])
        told = capsys.readouterr().err
        assert told.count("--class-map auto") == 1
        assert "overlap annotations of another class" not in told
    assert main(["check", str(tmp_path / "gt.json"), str(path), "--min", "AP=0"]) == 1
    assert "classes-numbered-differently" in capsys.readouterr().out


@pytest.mark.parametrize("protocol", ["coco", "voc2012", "padilla-coco", "ultralytics"])
def test_nothing_is_said_of_right_numbers(protocol: str, tmp_path: Path) -> None:
    truth, path = ground_truth(tmp_path), written(tmp_path, records(lambda place: place + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxscoreWarning)
        boxscore.evaluate(truth, load_detections(path, truth), protocol=protocol, digest=False)


def test_a_poor_detector_is_no_other_numbering(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    truth = ground_truth(tmp_path)
    path = written(tmp_path, records(lambda place: int(generator.integers(1, 7))))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxscoreWarning)
        boxscore.evaluate(truth, load_detections(path, truth), digest=False)


def test_when_none_is_left(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    path = written(tmp_path, records(lambda place: place + 50))
    with pytest.warns(
        BoxscoreWarning, match=r"remains\. The ground truth has .* \(\w+\).*; if classes are numbered"
    ):
        load_detections(path, truth)


def test_validating_files_gives_both_scores(tmp_path: Path) -> None:
    ground_truth(tmp_path, first=0)
    written(tmp_path, records(lambda place: place + 1))
    findings = {item.code: item for item in validate_files(tmp_path / "gt.json", tmp_path / "dt.json")}
    finding = findings["classes-numbered-differently"]
    assert (finding.repair, finding.value, round(finding.repaired, 9)) == (
        "with --class-map one-based",
        0,
        1,
    )
    assert "with ids counted from 1 (one-based), 36 do" in finding.message


def test_images_without_names_in_another_order_are_found() -> None:
    generator = np.random.default_rng(4)
    corners = generator.uniform(0, 2000, (90, 2))
    table, image = np.hstack([corners, corners + 40]), np.arange(90) // 9
    truth = boxscore.GroundTruth.from_arrays(image, ["a"] * 90, table)
    detections = boxscore.Detections.from_arrays((image + 5) % 10, ["a"] * 90, table, [0.5] * 90)
    found = {finding.code: finding for finding in validate(truth, detections)}
    assert "only 0 of the 90 most confident detections overlap" in found["detections-off-annotations"].message
    quick = quick_findings(boxscore.evaluate(truth, detections))
    assert "detections-off-annotations" in {finding.code for finding in quick}
    right = boxscore.Detections.from_arrays(image, ["a"] * 90, table, [0.5] * 90)
    assert "detections-off-annotations" not in {finding.code for finding in validate(truth, right)}


def test_tables_without_a_file(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, first=0)
    given = records(lambda place: place + 1)
    detections = boxscore.Detections.from_arrays(
        [record["image_id"] for record in given],
        [record["category_id"] for record in given],
        [record["bbox"] for record in given],
        [record["score"] for record in given],
        box_format="xywh",
    )
    found = find_class_map(truth, detections)
    assert (found.name, found.placed, found.given, found.mapped) == ("one-based", 36, 0, 36)
    assert found.pairs == {number: number - 1 for number in range(1, 7)}
    assert "classes-numbered-differently" in {finding.code for finding in validate(truth, detections)}
    with pytest.raises(InputError, match="detections must be a Detections table"):
        find_class_map(truth, truth)  # type: ignore[arg-type]


# ---------------------------------------------------------------- class lists of COCO results


def test_a_class_list_names_numbers_from_zero(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    names = [NAMES[SHUFFLED.index(number)] for number in range(6)]
    path = written(tmp_path, records(lambda place: SHUFFLED[place]))
    assert perfect(truth, path, classes=names)
    assert perfect(truth, written(tmp_path, records(lambda place: SHUFFLED[place] + 1)), classes=names,
                   class_map="one-based")  # fmt: skip
    with pytest.warns(BoxscoreWarning, match="one-based"):
        assert perfect(truth, path, classes=names, class_map="auto")


def test_numbers_outside_the_list_are_refused(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    from_one = written(tmp_path, records(lambda place: place + 1))
    with pytest.raises(InputError, match=r"the 6 names of the class list\. Got 1 to 6 .*class-map one-based"):
        load_detections(from_one, truth, classes=NAMES)
    with pytest.raises(InputError, match=r"Got 10 to 15 .*the list of another model"):
        load_detections(written(tmp_path, records(lambda place: place + 10)), truth, classes=NAMES)


def test_results_that_name_their_classes_take_no_list(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    content = json.loads((tmp_path / "gt.json").read_text())
    path = written(tmp_path, {**content, "annotations": records(lambda place: place + 1)})
    assert perfect(truth, path)
    with pytest.raises(InputError, match="be left out where the results name their classes"):
        load_detections(path, truth, classes=NAMES)


def test_ground_truth_takes_no_list(tmp_path: Path) -> None:
    ground_truth(tmp_path)
    with pytest.raises(
        InputError, match=r"--gt-classes .* must not be used with the format coco.* Got \w+, \w+"
    ):
        load_ground_truth(tmp_path / "gt.json", classes=NAMES)


# ---------------------------------------------------------------- images


def stem(image: int) -> int:
    """Number an image otherwise than its id does, among the same numbers."""
    return image * 3 % 7


def collide(folder: Path) -> boxscore.GroundTruth:
    return ground_truth(folder, file_name=lambda image: f"val/{stem(image):06d}.jpg")


def test_a_file_name_decides(tmp_path: Path) -> None:
    truth = collide(tmp_path)
    path = written(
        tmp_path, records(lambda place: place + 1, stem, file_name=lambda image: f"{stem(image):06d}.jpg")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxscoreWarning)
        assert perfect(truth, path)


def test_an_unknown_file_name_leaves_it_to_the_id(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    path = written(tmp_path, records(lambda place: place + 1, file_name=lambda image: f"other{image}.png"))
    assert perfect(truth, path)
    some = records(lambda place: place + 1, file_name=lambda image: "image1.jpg" if image == 1 else None)
    assert perfect(truth, written(tmp_path, some))


def test_file_names_that_two_folders_share_decide_with_their_folder_only(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, file_name=lambda image: f"{'ab'[image % 2]}/{image // 2}.jpg")
    path = written(tmp_path, records(lambda place: place + 1, file_name=lambda image: f"{image // 2}.jpg"))
    assert perfect(truth, path)
    whole = records(
        lambda place: place + 1,
        lambda image: 1,
        file_name=lambda image: f"{'ab'[image % 2]}/{image // 2}.jpg",
    )
    assert perfect(truth, written(tmp_path, whole))


def test_a_file_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path)
    detections = records(lambda place: place + 1, file_name=lambda image: 5 if image == 3 else "image1.jpg")
    with pytest.raises(InputError, match="file_name must be a string"):
        load_detections(written(tmp_path, detections), truth)


def test_numbers_that_are_ids_and_file_names_are_resolved_by_the_boxes(tmp_path: Path) -> None:
    truth = collide(tmp_path)
    path = written(tmp_path, records(lambda place: place + 1, stem))
    with pytest.warns(
        BoxscoreWarning, match=r"read as file names: .* 0 annotations .* 36 if they are file names"
    ):
        assert perfect(truth, path)
    path = written(tmp_path, records(lambda place: place + 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", BoxscoreWarning)
        assert perfect(truth, path)


def test_numbers_that_are_all_file_names_and_not_all_ids_are_file_names(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, file_name=lambda image: f"{image + 3}.jpg")
    assert perfect(truth, written(tmp_path, records(lambda place: place + 1, lambda image: image + 3)))


def test_doubt_about_images_is_refused_or_named(tmp_path: Path) -> None:
    truth = collide(tmp_path)
    as_names = records(lambda place: place + 1, stem)
    as_ids = records(lambda place: place + 1)
    mixed = [
        (one if row % 6 < 4 else other) for row, (one, other) in enumerate(zip(as_names, as_ids, strict=True))
    ]
    with pytest.raises(InputError, match="13 annotations if these are ids, and 23 if they are file names"):
        load_detections(written(tmp_path, [*mixed, *as_ids[:3]]), truth)
    nowhere = [{**record, "bbox": [800, 5, 9, 9]} for record in as_ids]
    with pytest.warns(BoxscoreWarning, match="read as ids: confident detections overlap 0 annotations"):
        load_detections(written(tmp_path, nowhere), truth)


# ---------------------------------------------------------------- the command line


def run(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> tuple[int, Mapping[str, Any], str]:
    arguments = ["evaluate", "--gt", str(folder / "gt.json"), "--dt", str(folder / "dt.json")]
    status = main([*arguments, "--output", "json", *more])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else {}, err


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ground_truth(tmp_path, first=0)
    written(tmp_path, records(lambda place: place + 1))
    status, result, err = run(capsys, tmp_path)
    assert (status, result["metrics"]["AR100"]) == (0, 0)
    assert "classes seem to be numbered differently" in err
    for more in ("auto", "one-based"):
        status, result, err = run(capsys, tmp_path, "--class-map", more)
        assert (status, round(result["metrics"]["AP"], 9)) == (0, 1)
        assert ("class map one-based" in err) == (more == "auto")
    assert run(capsys, tmp_path, "--class-map", "two-based")[0] == 2


def test_the_forecast_is_the_number_itself_where_rows_are_left_out(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, first=0)
    path = written(tmp_path, records(lambda place: place + 1)[1:])  # of class 6 none is read
    loose = [dict(record, bbox=[800, 800, 9, 9]) for record in records(lambda place: place + 1)]
    path.write_text(json.dumps([*json.loads(path.read_text()), *loose]))
    with quiet():
        table = load_detections(path, truth)
        mapped = load_detections(path, truth, class_map="one-based")
        first = [1, 2, 3, 4, 5]
        exact = boxscore.evaluate(truth, mapped)["AP"]
        of_some = boxscore.evaluate(truth, mapped, images=first)["AP"]
    assert table.left_out == {"6": 12}
    for given, images, value in ((table, None, exact), (path, None, exact), (table, first, of_some)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            boxscore.evaluate(truth, given, images=images, digest=False)
        assert f". AP is 0.0000 now and would be {value:.4f}. Use --class-map one-based" in str(
            caught[-1].message
        )
    copied = pickle.loads(pickle.dumps(table))
    assert copied.left_out == {"6": 12}
    with pytest.warns(
        BoxscoreWarning,
        match=r"\(without the 12 detections of unknown classes, which a class map would include\)",
    ):
        boxscore.evaluate(truth, copied, digest=False)


# ---------------------------------------------------------------- truth with a list of names


def listed_truth(folder: Path) -> Path:
    """The same ground truth as labels of YOLO, whose class numbers are places in a list."""
    (folder / "yolo" / "labels").mkdir(parents=True)
    for image in range(1, 7):
        lines = [
            f"{place} {(x + w / 2) / 900} {(y + h / 2) / 900} {w / 900} {h / 900}\n"
            for place, (x, y, w, h) in enumerate(boxes(image))
        ]
        (folder / "yolo" / "labels" / f"image{image}.txt").write_text("".join(lines))
    (folder / "yolo" / "data.yaml").write_text(f"path: .\nval: labels\nnames: {NAMES}\n")
    sizes = [f"image{image},900,900\n" for image in range(1, 7)]
    (folder / "sizes.csv").write_text("image,width,height\n" + "".join(sizes))
    return folder / "yolo" / "labels"


@pytest.mark.parametrize("first", [1, 7])
def test_numbers_that_others_made_of_a_list_are_counted_as_the_boxes_show(
    first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = load_ground_truth(listed_truth(tmp_path), classes=NAMES, image_sizes=tmp_path / "sizes.csv")
    path = written(tmp_path, records(lambda place: place + first, lambda image: f"image{image}"))
    if first == 7:  # no numbering that has a name
        with pytest.warns(BoxscoreWarning, match="ignoring 36 detections"):
            assert not len(load_detections(path, truth))
        return
    message = (
        r"dt\.json: applied class map one-based, because .*labels has class names without ids: "
        r"with class ids as given, 0 of 36 confident detections agree with the annotation they overlap; with ids counted from 1 \(one-based\), 36 do\. Use --class-map \(in Python class_map=\) to choose another\."
    )
    with pytest.warns(BoxscoreWarning, match=message):
        assert round(score(truth, load_detections(path, truth)), 9) == 1
    names = tmp_path / "names.txt"
    names.write_text("\n".join(NAMES))
    options = ["--image-sizes", str(tmp_path / "sizes.csv"), "--gt-classes", str(names), "--output", "json"]
    command = ["evaluate", str(tmp_path / "yolo" / "labels"), str(path), *options]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert round(json.loads(printed.out)["metrics"]["AP"], 9) == 1
    assert printed.err.count("applied class map one-based") == 1
    assert f"boxscore: note: {path}: applied class map one-based, because " in printed.err
    # The class map is a note, on which --strict does not fail.
    assert main([*command, "--strict", "--allow", "scores-all-equal", "detections-cut-per-image"]) == 0
    capsys.readouterr()
    assert "classes seem to be numbered differently" not in printed.err
    assert main([*command, "--class-map", "zero-based"]) == 0  # what the user says stands
    assert round(json.loads(capsys.readouterr().out)["metrics"]["AP"], 9) == 0


def test_numbers_from_zero_are_places_as_they_are(tmp_path: Path) -> None:
    truth = load_ground_truth(listed_truth(tmp_path), classes=NAMES, image_sizes=tmp_path / "sizes.csv")
    path = written(tmp_path, records(lambda place: place, lambda image: f"image{image}"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert round(score(truth, load_detections(path, truth)), 9) == 1


def test_numbers_that_boxes_do_not_explain_stay_and_that_is_said(tmp_path: Path) -> None:
    truth = load_ground_truth(listed_truth(tmp_path), classes=NAMES, image_sizes=tmp_path / "sizes.csv")
    few = records(lambda place: place + 1, lambda image: f"image{image}")[:5]
    message = (
        "class numbers are read as positions in the class list .*, counted from 0: only "
        "5 confident detections .* If they count differently, use --class-map \\(in Python class_map=\\): one-based"
    )
    with pytest.warns(BoxscoreWarning, match=message):
        assert score(truth, load_detections(written(tmp_path, few), truth)) == 0
    swapped = records(lambda place: (1, 0, 2, 3, 4, 5)[place], lambda image: f"image{image}")
    with warnings.catch_warnings():  # two classes that change places may be the detector's: warned of later
        warnings.simplefilter("error")
        table = load_detections(written(tmp_path, swapped), truth)
    with pytest.warns(
        BoxscoreWarning, match="with another class list, 36 do. AP is 0.6667 now and would be 1.0000"
    ):
        assert round(boxscore.evaluate(truth, table)["AP"], 9) == round(2 / 3, 9)


def test_coco_with_coco_is_never_mapped(tmp_path: Path) -> None:
    truth = ground_truth(tmp_path, first=0)
    path = written(tmp_path, records(lambda place: place + 1))
    with quiet():
        for detections in (load_detections(path, truth), path):
            assert boxscore.evaluate(tmp_path / "gt.json", detections)["AP"] == 0


# ---------------------------------------------------------------- real data


def teeth() -> tuple[Path, list[Record], boxscore.GroundTruth]:
    folder = real("formats", "ultralytics_real")
    truth = load_ground_truth(folder / "data.yaml", image_set="test", image_sizes=folder / "image_sizes.csv")
    return folder, json.loads((folder / "runs/detect/val/predictions.json").read_text()), truth


@pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")
def test_a_real_run_of_ultralytics_numbers_classes_from_one() -> None:
    folder, _, truth = teeth()
    path = folder / "runs/detect/val/predictions.json"
    with pytest.warns(
        BoxscoreWarning, match=r"applied class map one-based, because .*data.yaml, test has class names"
    ):
        result = boxscore.evaluate(truth, load_detections(path, truth))
    assert result["AP"] == AP
    assert score(truth, load_detections(path, truth, class_map="one-based")) == AP
    listed = load_detections(path, truth, class_map="one-based", classes=folder / "data.yaml")
    assert score(truth, listed) == AP
    with pytest.warns(BoxscoreWarning, match=r"33 of .* with ids counted from 1 \(one-based\), 1,353 do"):
        assert score(truth, load_detections(path, truth, class_map="auto")) == AP


def as_coco(truth: boxscore.GroundTruth, names: list[str], folder: Path) -> boxscore.GroundTruth:
    """Write the run's ground truth with images 1, 2, ... of these file names."""
    images = [
        {"id": row + 1, "file_name": name, "width": size[0], "height": size[1]}
        for row, (name, size) in enumerate(zip(names, truth.images.sizes.tolist(), strict=True))
    ]
    annotations = [
        {
            "id": row + 1,
            "image_id": int(truth.image[row]) + 1,
            "category_id": int(truth.category[row]) + 1,
            "bbox": [*truth.boxes[row, :2].tolist(), *truth.sizes[row].tolist()],
            "area": float(truth.area[row]),
            "iscrowd": 0,
        }
        for row in range(len(truth))
    ]
    categories = [{"id": row + 1, "name": name} for row, name in enumerate(truth.categories.names.tolist())]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "gt.json").write_text(json.dumps(content))
    return load_ground_truth(folder / "gt.json")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")
def test_a_real_run_with_other_images_and_classes(tmp_path: Path) -> None:
    _, results, yolo = teeth()
    stems = yolo.images.ids.tolist()
    numbers = np.random.default_rng(0).permutation(len(stems)) + 1
    number_of = dict(zip(stems, numbers.tolist(), strict=True))
    truth = as_coco(yolo, [f"{stem}.jpg" for stem in stems], tmp_path)
    assert score(truth, load_detections(written(tmp_path, results), truth)) == AP
    from_zero = [{**record, "category_id": record["category_id"] - 1} for record in results]
    with pytest.warns(BoxscoreWarning, match="zero-based"):
        assert score(truth, load_detections(written(tmp_path, from_zero), truth, class_map="auto")) == AP
    truth = as_coco(yolo, [f"{number}.jpg" for number in numbers.tolist()], tmp_path)
    renumbered = [
        {
            **record,
            "image_id": number_of[record["image_id"]],
            "file_name": f"{number_of[record['image_id']]}.jpg",
        }
        for record in results
    ]
    assert score(truth, load_detections(written(tmp_path, renumbered), truth)) == AP
    for record in renumbered:
        del record["file_name"]
    with pytest.warns(BoxscoreWarning, match="read as file names: .* 176 .* 1,457 if they are file names"):
        assert score(truth, load_detections(written(tmp_path, renumbered), truth)) == AP


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "number"),
    [("zero-based", lambda place: place), ("one-based", lambda place: place + 1),
     ("plus-one", lambda place: COCO_IDS[place] - 1)],
)  # fmt: skip
def test_results_of_coco_with_other_numbers(name: str, number: Callable[[int], int], tmp_path: Path) -> None:
    folder = real("coco_val2017")
    truth = load_ground_truth(folder / "ground_truth_boxes.json")
    given = json.loads((folder / "yolov2_608.json").read_text())
    expected = score(truth, load_detections(folder / "yolov2_608.json", truth))
    place = {identifier: row for row, identifier in enumerate(COCO_IDS)}
    path = written(
        tmp_path, [{**record, "category_id": number(place[record["category_id"]])} for record in given]
    )
    with pytest.warns(BoxscoreWarning) as caught:
        boxscore.evaluate(truth, load_detections(path, truth), digest=False)
    assert any(re.search(rf"\({name}\), [\d,]+ do\. AP is 0\.0", str(item.message)) for item in caught)
    with pytest.warns(BoxscoreWarning, match=f"class map {name}"):
        assert score(truth, load_detections(path, truth, class_map="auto")) == expected
    if name == "zero-based":
        assert score(truth, load_detections(path, truth, class_map="coco80to91")) == expected


@pytest.fixture
def cats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Evaluate ``kitty`` and ``doggy`` against ``cat`` and ``dog``, with files that a case writes."""
    monkeypatch.chdir(tmp_path)
    images = [{"id": number, "file_name": f"{number}.jpg", "width": 90, "height": 90} for number in (1, 2)]
    record = {"bbox": [1, 1, 20, 20], "area": 400, "iscrowd": 0}
    annotations = [{"id": n, "image_id": n, "category_id": n, **record} for n in (1, 2)]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    Path("gt.json").write_text(json.dumps(truth))
    head = "image,class,score,x1,y1,x2,y2\n"
    Path("dt.csv").write_text(head + "1.jpg,kitty,.9,1,1,21,21\n2.jpg,doggy,.8,1,1,21,21\n")

    def run(option: str, name: str, content: str | bytes | None, capsys: Any) -> tuple[int, str]:
        if content is not None:
            Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        status = main(["evaluate", "gt.json", "dt.csv", option, name, "--output", "json"])
        printed = capsys.readouterr()
        error = printed.err.splitlines()[0] if printed.err else ""
        return status, str(json.loads(printed.out)["metrics"]["AR100"]) if status == 0 else error

    return run


PAIRS = "kitty,cat\ndoggy,dog\n"


@pytest.mark.parametrize(
    "text",
    [
        PAIRS,
        "from,to\n" + PAIRS,
        "From , To\n" + PAIRS,
        "source_class,target_class\n" + PAIRS,
        "# a note\n\nclass_from,class_to\n" + PAIRS + "\n\n",
        "detections,ground truth\n" + PAIRS,
        b"\xef\xbb\xbffrom,to\r\nkitty,cat\r\ndoggy,dog\r\n\r\n",
        "kitty,1\ndoggy,2\n",
    ],
)
def test_a_head_line_is_recognized(
    text: str | bytes, cats: Callable[..., tuple[int, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cats("--class-map", "map.csv", text, capsys) == (0, "1.0")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "map.csv",
            "kitty,cat\ndoggy,dogg\n",
            "--class-map must map to classes of the ground truth. Got 'dogg' in line 2 of map.csv; "
            "did you mean 'dog'?",
        ),
        (
            "map.csv",
            "kitty,7\n",
            "--class-map must map to classes of the ground truth. Got 7 in line 1 of map.csv; "
            "known: 1 (cat), 2 (dog).",
        ),
        (
            "map.csv",
            "from,to\nkity,cat\n",
            "--class-map must name classes of the detections. Got only others ('kity') in map.csv; "
            "dt.csv has doggy, kitty.",
        ),
        (
            "map.csv",
            PAIRS + "kitty,cat\n",
            "a class map must map each class once. Got 'kitty' twice in line 3 of map.csv.",
        ),
        (
            "map.csv",
            "kitty;cat\n",
            "a line of a class map must be from,to. Got 'kitty;cat' in line 1 of map.csv; "
            "separate the two with a comma.",
        ),
        (
            "map.json",
            '{"kitty": "cat"}',
            'a line of a class map must be from,to. Got \'{"kitty": "cat"}\' in line 1 of map.json; '
            "write one line per class.",
        ),
        (
            "data.yaml",
            "names: [cat, dog]",
            "a class map must be lines from,to. Got a YAML file in data.yaml; is it a class list? That goes to --dt-classes or --gt-classes.",
        ),
        ("map.csv", "from,to\n", "a class map must map at least one class. Got none in map.csv."),
        (
            "dt.cvs",
            None,
            "--class-map must be an existing file or the name of a class map. Got 'dt.cvs'; "
            "did you mean 'dt.csv'?",
        ),
        (
            "sub/map.csv",
            None,
            "--class-map must be an existing file or the name of a class map. Got 'sub/map.csv'; "
            "the folder sub does not exist.",
        ),
        (
            "onebased",
            None,
            "--class-map must be auto, zero-based, one-based, plus-one, minus-one, coco80to91, coco91to80 "
            "or a file with lines from,to. Got 'onebased'; did you mean 'one-based'?",
        ),
    ],
)
def test_messages_name_the_line_of_the_map(
    name: str,
    text: str | None,
    message: str,
    cats: Callable[..., tuple[int, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cats("--class-map", name, text, capsys) == (2, f"boxscore: error: {message}")


def test_a_head_line_is_none_where_a_class_has_its_name(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["cat", "to"], [[0, 0, 9, 9]] * 2)
    (tmp_path / "dt.csv").write_text(
        "image_id,class,score,x1,y1,x2,y2\n1,from,.9,0,0,9,9\n2,kitty,.8,0,0,9,9\n"
    )
    (tmp_path / "map.csv").write_text("from,to\nkitty,cat\n")
    detections = load_detections(tmp_path / "dt.csv", truth, class_map=tmp_path / "map.csv")
    assert detections.categories.names[detections.category].tolist() == ["to", "cat"]
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["cat", "dog"], [[0, 0, 9, 9]] * 2)
    with pytest.raises(InputError, match=r"Got 'to' in line 1 of .*map.csv; known: cat, dog"):
        load_detections(tmp_path / "dt.csv", truth, class_map=tmp_path / "map.csv")


def test_words_of_a_map_stand_for_one_class_each(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "dog"], [[0, 0, 9, 9]] * 2)
    head = "image_id,class_id,class,score,x1,y1,x2,y2\n"
    (tmp_path / "dt.csv").write_text(head + "1,2,1,.9,0,0,9,9\n1,3,x,.8,0,0,9,9\n1,1,y,.8,0,0,9,9\n")
    (tmp_path / "map.csv").write_text("1,cat\n")
    with pytest.raises(InputError) as caught:
        load_detections(tmp_path / "dt.csv", truth, class_map=tmp_path / "map.csv")
    assert str(caught.value) == (
        "a class of a class map must stand for one class. Got '1', the name or id of 2 in line 1 of "
        f"{tmp_path}/map.csv; give 'y', '1 (2)'."
    )


def test_text_that_spells_a_number_is_mapped(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "dog"], [[0, 0, 9, 9]] * 2)
    (tmp_path / "dt.csv").write_text("image_id,class,score,x1,y1,x2,y2\n1,1,.9,0,0,9,9\n1,kitty,.8,0,0,9,9\n")
    (tmp_path / "map.csv").write_text("1,dog\nkitty,cat\n")
    detections = load_detections(tmp_path / "dt.csv", truth, class_map=tmp_path / "map.csv")
    assert detections.categories.names[detections.category].tolist() == ["dog", "cat"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "names.txt",
            "kitty\n\ndoggy\n",
            "a class list must not have a blank line before its last name. Got one in line 2 of names.txt; "
            "delete it, or add the missing name: the line number is the class number.",
        ),
        (
            "names.txt",
            "kitty\nkitty\n",
            "a class list must name each class once. Got 'kitty' twice in line 2 of names.txt.",
        ),
        (
            "names.csv",
            "id,name\n0,kitty\n1,doggy\n",
            "a line of a class list must be a name alone. Got '0,kitty' in line 2 of names.csv; "
            "remove the numbers and the header line: the first name is class 0.",
        ),
        (
            "names.json",
            '{"1": "kitty"}',
            "a class list must have one name per line, or be data.yaml or a JSON list of names. Got a JSON "
            "object in names.json; write the names in the order of their numbers, from 0.",
        ),
        (
            "names.txt",
            "cat\ndog\n",
            "a class must be in the class list names.txt. Got 'kitty' in line 2 of dt.csv.",
        ),
    ],
)
def test_messages_name_the_class_list(
    name: str,
    text: str,
    message: str,
    cats: Callable[..., tuple[int, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cats("--dt-classes", name, text, capsys) == (2, f"boxscore: error: {message}")


@pytest.mark.parametrize("text", ['["cat", "dog"]', '{"1": "dog", "0": "cat"}'])
def test_a_class_list_may_be_json(text: str, tmp_path: Path) -> None:
    (tmp_path / "names.json").write_text(text)
    (tmp_path / "dt.csv").write_text("image_id,class_id,score,x1,y1,x2,y2\n1,1,.9,0,0,9,9\n")
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "dog"], [[0, 0, 9, 9]] * 2)
    detections = load_detections(tmp_path / "dt.csv", truth, classes=tmp_path / "names.json")
    assert detections.categories.names[detections.category].tolist() == ["dog"]
