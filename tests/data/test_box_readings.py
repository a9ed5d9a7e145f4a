"""A reading is chosen by many lines, reported with its reason, and never by one line."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.box_reading import Readings, Units, are_fractions
from boxscore.data.boxes import are_few
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError
from support.running import Run

CORNERS = [[100, 100, 200 + at, 200] for at in range(20)]
"""Boxes that may also be corner and size, or center and size if the center of a box is in its image."""

TURNED = [100, 200, 200, 100]
"""One box whose corners are exchanged: it cannot be corners, but corner and size."""


def rows_with(box: list[Any], at: int, boxes: Sequence[list[Any]] = CORNERS) -> list[list[Any]]:
    return [*boxes[:at], box, *boxes[at + 1 :]]


def line_of(start: int, row: int) -> str:
    return f"line {start + row}"


# ---------------------------------------------------------------- the rule


def test_one_line_of_two_decides_but_not_one_of_three() -> None:
    assert [are_few(1, total) for total in (1, 2, 3, 9, 1000)] == [False, False, True, True, True]
    assert [are_few(count, 20) for count in (0, 1, 2, 3, 10)] == [True, True, True, False, False]
    assert [are_few(count, 1000, 0.02) for count in (20, 21)] == [True, False]


@pytest.mark.parametrize("odd", range(8))
def test_the_share_of_odd_lines_decides(odd: int) -> None:
    """Twenty corners, some of them turned: up to a tenth are refused as odd lines, more are evidence."""
    boxes = np.array([*[TURNED] * odd, *CORNERS[odd:]], dtype=float)
    sizes = np.full((20, 2), np.nan)

    def chosen(*chunks: slice) -> str:
        readings = Readings((), ("xyxy", "xywh"))
        for chunk in chunks:
            readings.add(boxes[chunk], sizes[chunk], partial(line_of, chunk.start or 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return readings.chosen(usual=None, option="--gt-box-format", source="x")
            except InputError as error:
                return str(error)

    found = chosen(slice(None))
    assert found == chosen(slice(0, 3), slice(3, 20))  # chunks do not matter
    if odd > 2:
        assert found == "xywh"
    else:
        assert ("(but for" in found) == (odd > 0)
        assert found.endswith("use --gt-box-format xyxy|xywh (in Python box_format=).")
    if odd == 2:
        assert "(but for 2 of 20: line 0, line 1) and as x,y,w,h from the corner" in found


def test_the_usual_form_stands_against_a_few_lines() -> None:
    boxes = np.array([[300, 300, 20, 20]] * 19 + [[300, 300, -20, 20]], dtype=float)
    readings = Readings(("bbox",))
    readings.add(boxes, np.full((20, 2), np.nan), str)
    assert readings.chosen(usual="xywh", option="", source="") == "xywh"


def test_boxes_outside_in_every_reading_say_nothing_without_sizes() -> None:
    """Unclipped detections: 30 of 100 start left of the image, however they are read."""
    boxes = np.array([[-50, 10, 40, 5]] * 30 + [[60, 10, 40, 5]] * 70, dtype=float)
    readings = Readings((), ("xyxy", "xywh"))
    readings.add(boxes, np.full((100, 2), np.nan), str)
    with pytest.warns(boxscore.errors.BoxscoreWarning, match=r"read as x,y,w,h .* because 100 of 100 boxes"):
        assert readings.chosen(usual=None, option="o", source="s") == "xywh"


@pytest.mark.parametrize(("fractions", "pixels"), [*itertools.product((0, 1, 5, 30), repeat=2)])
def test_units(fractions: int, pixels: int) -> None:
    """The oracle: whole boxes of [0, 1] take sides with no one; most of the others decide, or all are asked."""
    boxes = np.array(
        [[0.1, 0.2, 0.3, 0.4]] * fractions + [[0, 0, 1, 1]] * 3 + [[0.5, 0.5, 1.0, 7]] * pixels, dtype=float
    )
    units = Units()
    for box in boxes:
        units.add(box[None], lambda _: "one")
    if fractions > pixels > 0:
        with pytest.raises(InputError, match=rf"Got 7 in one; {pixels} of {len(boxes)} boxes"):
            units.are_fractions()
        with pytest.raises(InputError, match=rf"Got 7 in row {fractions + 3}; {pixels} of"):
            are_fractions(boxes, lambda row: f"row {row}")
    else:
        expected = fractions > 0 and not pixels
        assert units.are_fractions() == expected
        assert are_fractions(boxes, str) == expected


# ---------------------------------------------------------------- files


def as_text(folder: Path, boxes: Sequence[Any]) -> Path:
    path = folder / "dt"
    path.mkdir()
    for at, box in enumerate(boxes):
        (path / f"{at:02}.txt").write_text(f"dog 0.5 {' '.join(map(str, box))}\n")
    return path


def as_csv(folder: Path, boxes: Sequence[Any]) -> Path:
    path = folder / "dt.csv"
    lines = [f'{at:02},dog,0.5,"{box}"' for at, box in enumerate(boxes)]
    path.write_text("\n".join(["image,class,score,bbox", *lines]))
    return path


def as_json_lines(folder: Path, boxes: Sequence[Any]) -> Path:
    path = folder / "dt.jsonl"
    records = [
        {"image": f"{at:02}", "class": "dog", "score": 0.5, "bbox": box} for at, box in enumerate(boxes)
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def as_parquet(folder: Path, boxes: Sequence[Any]) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = folder / "dt.parquet"
    names = [f"{at:02}" for at in range(len(boxes))]
    columns = {"image": names, "class": ["dog"] * len(boxes), "score": [0.5] * len(boxes), "bbox": boxes}
    pq.write_table(pa.table(columns), path, row_group_size=6)
    return path


Writer = Callable[[Path, Sequence[Any]], Path]
PLACES: dict[Writer, str] = {
    as_text: "07.txt, line 1",
    as_csv: "line 9 of",
    as_json_lines: "line 8 of",
    as_parquet: "row 7 of",
}


def truth_of(tmp_path: Path, boxes: Sequence[Any], *, size: Sequence[int] = ()) -> Path:
    """Write annotations in corners, one per image."""
    path = tmp_path / "gt.csv"
    head = "image,class,x1,y1,x2,y2" + ",image_width,image_height" * bool(size)
    lines = [",".join(map(str, (f"{at:02}", "dog", *box, *size))) for at, box in enumerate(boxes)]
    path.write_text("\n".join([head, *lines]))
    return path


@pytest.mark.parametrize("write", PLACES)
def test_one_odd_line_is_refused_by_its_name(write: Writer, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(truth_of(tmp_path, CORNERS))
    path = write(tmp_path, rows_with(TURNED, 7))
    place = re.escape(PLACES[write])
    with pytest.raises(InputError, match=rf"x1,y1,x2,y2 \(but for 1 of 20: .*{place}.*; correct that box"):
        boxscore.load_detections(path, truth)
    with pytest.raises(InputError, match=rf"{place}.*; were two corners swapped\?"):
        boxscore.load_detections(path, truth, box_format="xyxy")


@pytest.mark.parametrize("write", PLACES)
def test_many_lines_decide_and_are_reported(write: Writer, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(truth_of(tmp_path, CORNERS, size=(640, 480)))
    boxes = [[400, 300, 40, 30 + at] for at in range(20)]
    boxes[4:7] = [[5, 6, 150, 160], [2, 3, 140, 150], [1, 1, 130, 130]]  # centers would be outside the image
    path = write(tmp_path, boxes)
    with pytest.warns(boxscore.errors.BoxscoreWarning) as caught:
        table = boxscore.load_detections(path, truth)
    assert table.sizes.tolist() == [box[2:] for box in boxes]
    text = str(caught[0].message)
    assert text.startswith(
        f"{path}: boxes are read as x,y,w,h from the corner, because 17 of 20 boxes cannot be x1,y1,x2,y2 ("
    )
    assert text.endswith("; --dt-box-format (in Python box_format=) sets another.")
    assert getattr(caught[0].message, "severity", "") == "note"


@pytest.mark.parametrize("write", [as_csv, as_json_lines, as_parquet])
def test_one_line_in_pixels_does_not_turn_fractions_into_pixels(write: Writer, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(truth_of(tmp_path, CORNERS, size=(640, 480)))
    fractions = [[box[0] / 640, box[1] / 480, box[2] / 640, box[3] / 480] for box in CORNERS]
    place = re.escape(PLACES[write])
    path = write(tmp_path, rows_with([float(number) for number in CORNERS[7]], 7, fractions))
    message = rf"Got 100 in .*{place}.*; 1 of 20 boxes is beyond 1.5, but 19 can only be fractions"
    with pytest.raises(InputError, match=message):
        boxscore.load_detections(path, truth, box_format="xyxy")


def test_a_frame(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    columns = {"image": range(20), "class": ["dog"] * 20, "bbox": rows_with(TURNED, 7)}
    with pytest.raises(InputError, match=r"\(but for 1 of 20: row 7 of DataFrame\).*use box_format= xyxy"):
        boxscore.GroundTruth.from_pandas(pd.DataFrame(columns))


@pytest.mark.parametrize("options", [["--workers", "2"], ["--memory-limit", "2GB"]])
def test_parts_are_read_as_the_whole(options: list[str], tmp_path: Path, run: Run) -> None:
    """Only the names of the rows differ, which know their row group."""
    truth = str(truth_of(tmp_path, CORNERS, size=(640, 480)))
    cases = (
        (CORNERS, 2),
        (rows_with(TURNED, 19), 2),
        ([*[[300, 300, 4, 9]] * 16, *[[0, 0, 190, 190]] * 4], 0),
    )
    for at, (boxes, status) in enumerate(cases):
        folder = tmp_path / str(at)
        folder.mkdir()
        path = str(as_parquet(folder, boxes))
        printed = [run("evaluate", truth, path, *more, status=status) for more in ([], options)]
        scores = [re.findall(r"^AP .*", found.out, re.MULTILINE) for found in printed]
        assert scores[0] == scores[1]
        texts = [re.sub(r"row \d+ of (row group \d+ of )?", "", found.err) for found in printed]
        about = [re.findall(r"(?:note|error): .*", text) for text in texts]
        assert about[0] == about[1] != []


# ---------------------------------------------------------------- YOLO


def labels(folder: Path, lines: Sequence[str]) -> Path:
    folder.mkdir()
    for at, line in enumerate(lines):
        (folder / f"{at:02}.txt").write_text(f"{line}\n")
    return folder


def yolo_truth(tmp_path: Path) -> boxscore.GroundTruth:
    categories = {0: "dog"}
    ids = [f"{at:02}" for at in range(20)]
    images = Images.build(ids, sizes=np.full((20, 2), 100.0))
    return boxscore.GroundTruth.from_arrays(
        image_ids=ids,
        category_ids=[0] * 20,
        boxes=[[20, 20, 60, 60]] * 20,
        images=images,
        categories=categories,
    )


def test_one_confidence_above_1_does_not_move_the_others(tmp_path: Path) -> None:
    truth = yolo_truth(tmp_path)
    lines = [f"0 0.{at + 10} 0.4 0.4 0.4 0.3" for at in range(20)]
    with pytest.warns(boxscore.errors.BoxscoreWarning, match="the confidence is read as the second number"):
        table = boxscore.load_detections(labels(tmp_path / "a", lines), truth)
    assert table.scores[0] == 0.1
    lines[7] = "0 1.2 0.4 0.4 0.4 0.3"
    with pytest.raises(
        InputError, match=r"a confidence must be .*Got 1.2 in .*07.txt, line 1; 1 of 20 lines"
    ):
        boxscore.load_detections(labels(tmp_path / "b", lines), truth)


def test_a_line_in_pixels_is_named_wherever_it_is(tmp_path: Path) -> None:
    """In the first file, it would make the folder one of boxes in pixels."""
    for at in (0, 7):
        lines = ["0 0.4 0.4 0.4 0.4"] * 20
        lines[at] = "0 40 40 40 40"
        folder = labels(tmp_path / str(at), lines)
        message = rf"Got 40 in .*{at:02}.txt, line 1; 1 of 20 lines is so; correct or remove it\."
        with pytest.raises(InputError, match=message):
            boxscore.load_ground_truth(folder)
        for form in ("cxcywh", "xyxy"):
            with pytest.raises(
                InputError, match=rf"Got 40 in .*{at:02}.txt, line 1; 1 of 20 boxes is beyond 2"
            ):
                boxscore.load_ground_truth(folder, box_format=form)
    # In a folder of a few files, the first listed decides on the format; either format refuses the line.
    few = labels(tmp_path / "few", ["0 40 40 40 40", *["0 0.4 0.4 0.4 0.4"] * 4])
    with pytest.raises(InputError, match=r"Got 40 in .*00.txt, line 1; 1 of 5 (boxes|lines) is "):
        boxscore.load_ground_truth(few)


# ---------------------------------------------------------------- a COCO file in another form


@pytest.mark.parametrize("odd", [0, 1])
def test_one_pixel_box_does_not_hide_fractions(odd: int, tmp_path: Path) -> None:
    truth = yolo_truth(tmp_path)
    box = {"category_id": 0, "score": 0.5, "bbox": [0.2, 0.2, 0.4, 0.4]}
    records = [{**box, "image_id": f"{at:02}"} for at in range(20)]
    if odd:
        records[3]["bbox"] = [20, 20, 40, 40]
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(records))
    which = "of 19 of 20 boxes " if odd else ""
    with pytest.warns(boxscore.errors.BoxscoreWarning, match=rf"all coordinates {which}are in \[0, 1\]"):
        boxscore.load_detections(path, truth)


@pytest.mark.parametrize("odd", [0, 1])
def test_one_turned_box_does_not_hide_corners_without_image_sizes(odd: int, tmp_path: Path) -> None:
    boxes = [[10 + at, 12 + at, 13 + at, 17 + at] for at in range(60)]
    if odd:
        boxes[3] = [70, 70, 20, 20]
    annotations = [
        {"id": at + 1, "image_id": at, "category_id": 1, "bbox": box, "area": 9, "iscrowd": 0}
        for at, box in enumerate(boxes)
    ]
    content = {
        "images": [{"id": at} for at in range(60)],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "dog"}],
    }
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(content))
    which = "except in 1 of 60 boxes, " if odd else ""
    with pytest.warns(
        boxscore.errors.BoxscoreWarning, match=rf"{which}every width is at least its x"
    ) as caught:
        boxscore.load_ground_truth(path)
    assert "Use --gt-box-format xyxy" in " ".join(str(one.message) for one in caught)
