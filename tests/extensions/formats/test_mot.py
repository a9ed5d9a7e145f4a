"""Files of MOTChallenge and of CVAT give the numbers of the same boxes in a table, in each reading of flag 0."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.errors import BoxscoreError, BoxscoreWarning
from boxscore.formats.registry import detect_format

FRAMES = 6
INFO = (
    "[Sequence]\nname={name}\nimDir=img1\nframeRate=30\nseqLength=6\nimWidth=400\nimHeight=300\nimExt=.jpg\n"
)

Row = tuple[int, float, float, float, float, int, int]
"""Frame, left, top, width and height from pixel 0, flag and class."""


def objects(*, classes: int) -> list[Row]:
    """Return pedestrians with and without a flag, and objects of other classes, which have none."""
    generator = np.random.default_rng(54)
    rows: list[Row] = []
    for number in range(40):
        x, y, w, h = (generator.integers(80, 1600, 4) / 8).tolist()
        name = 1 if number % 2 else number // 2 % classes + 1
        flag = int(number % 5 > 0 and (name == 1 or classes < 13))
        rows.append((number % (FRAMES - 1) + 1, x, y, w, h, flag, name))
    return rows


def found(rows: list[Row]) -> list[tuple[Row, float]]:
    """Return a box near each object, with its score."""
    return [
        ((frame, x + number % 7, y, w, h, flag, name), 0.95 - 0.02 * (number * 7 % 40))
        for number, (frame, x, y, w, h, flag, name) in enumerate(rows)
    ]


def write(folder: Path, rows: list[Row], *, first: int, cells: int = 9, name: str = "MOT17-02-DPM") -> Path:
    """Write a sequence as MOTChallenge does, and return its folder; ``first`` is the number of the first pixel."""
    sequence = folder / name
    (sequence / "gt").mkdir(parents=True)
    (sequence / "det").mkdir()
    (sequence / "seqinfo.ini").write_text(INFO.format(name=name), encoding="utf-8")
    truth, detections = [], []
    for number, (frame, x, y, w, h, flag, kind) in enumerate(rows, start=1):
        end = f"{kind},0.5" if cells == 9 else "-1,-1,-1"
        truth.append(f"{frame},{number},{x + first},{y + first},{w},{h},{flag},{end}\n")
    for (frame, x, y, w, h, _, kind), score in found(rows):
        end = f"{kind},1" if first == 0 else "-1,-1,-1"
        detections.append(f"{frame},-1,{x + first},{y + first},{w},{h},{score},{end}\n")
    (sequence / "gt" / "gt.txt").write_text("".join(truth), encoding="utf-8")
    (sequence / "det" / "det.txt").write_text("".join(detections), encoding="utf-8")
    return sequence


def table(
    folder: Path, rows: list[Row], names: list[str], *, ignored: list[bool], column: str = "ignore"
) -> tuple[Path, Path]:
    """Write the same objects and detections as CSV, the oracle, with a class name for each class."""
    truth = [f"image,class,left,top,width,height,image_width,image_height,{column}\n"]
    truth += [f"{frame},,,,,,400,300,\n" for frame in range(1, FRAMES + 1)]
    for (frame, x, y, w, h, _, kind), is_ignored in zip(rows, ignored, strict=True):
        truth.append(f"{frame},{names[kind - 1]},{x},{y},{w},{h},400,300,{int(is_ignored)}\n")
    (folder / "gt.csv").write_text("".join(truth), encoding="utf-8")
    return folder / "gt.csv", folder / "dt.csv"


def write_found(path: Path, rows: list[Row], names: list[str] | None) -> None:
    lines = ["image,class,score,left,top,width,height\n"]
    for (frame, x, y, w, h, _, kind), score in found(rows):
        name = "pedestrian" if names is None else names[kind - 1]
        lines.append(f"{frame},{name},{score},{x},{y},{w},{h}\n")
    path.write_text("".join(lines), encoding="utf-8")


def metrics(
    truth: Path, detections: Path, class_map: Any = None, **options: Any
) -> tuple[dict[str, str], list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read = boxscore.load_ground_truth(truth, **options)
        evaluation = boxscore.evaluate(read, boxscore.load_detections(detections, read, class_map=class_map))
    texts = [str(one.message) for one in said if ".txt: " in str(one.message)]
    return {key: repr(value) for key, value in evaluation.metrics.items()}, texts


WAYS: dict[str, tuple[dict[str, str] | None, Any, Any]] = {
    # What is kept, and what of it is ignored: the flag and the class decide.
    "TrackEval": (
        None,
        lambda flag, kind: (flag and kind == 1) or kind in (2, 7, 8, 12),
        lambda flag, kind: kind != 1,
    ),
    "flag": (
        {"ignore": "flag"},
        lambda flag, kind: kind in (1, 2, 7, 8, 12),
        lambda flag, kind: not flag,
    ),
    "none": ({"ignore": "none"}, lambda flag, kind: flag and kind == 1, lambda flag, kind: False),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_reading_gives_the_numbers_of_the_same_boxes_in_a_table(way: str, tmp_path: Path) -> None:
    columns, keeps, ignores = WAYS[way]
    rows = objects(classes=13)
    sequence = write(tmp_path, rows, first=1)
    kept = [row for row in rows if keeps(row[5], row[6])]
    assert 10 < len(kept) < len(rows)
    truth, detections = table(
        tmp_path, kept, ["pedestrian"] * 13, ignored=[bool(ignores(row[5], row[6])) for row in kept]
    )
    write_found(detections, rows, None)
    expected, _ = metrics(truth, detections)
    options = {} if columns is None else {"columns": columns}
    for path in (sequence, sequence / "gt" / "gt.txt"):
        got, said = metrics(path, sequence / "det" / "det.txt", **options)
        assert got == expected
        assert len(said) == 1
        assert ("as in TrackEval" in said[0]) == (way == "TrackEval")
        assert f"{len(rows) - len(kept)} left out" in said[0]
    assert metrics(sequence, sequence, **options)[0] == expected


def test_more_classes_are_ignored_in_mot20(tmp_path: Path) -> None:
    rows = objects(classes=13)
    counts = []
    for name in ("MOT17-02", "MOT20-01"):
        with pytest.warns(BoxscoreWarning, match="as in TrackEval"):
            counts.append(len(boxscore.load_ground_truth(write(tmp_path, rows, first=1, name=name))))
    assert counts[1] - counts[0] == sum(row[6] == 6 for row in rows) > 0


@pytest.mark.parametrize("last", ["-1,-1,-1", "4.25,-1.5,0"])
def test_ten_numbers_have_no_class(last: str, tmp_path: Path) -> None:
    rows = objects(classes=1)
    sequence = write(tmp_path, rows, first=1, cells=10)
    file = sequence / "gt" / "gt.txt"
    file.write_text(file.read_text(encoding="utf-8").replace("-1,-1,-1", last), encoding="utf-8")
    kept = [row for row in rows if row[5]]
    truth, detections = table(tmp_path, kept, ["pedestrian"], ignored=[False] * len(kept))
    write_found(detections, rows, None)
    assert metrics(sequence, sequence)[0] == metrics(truth, detections)[0]


@pytest.mark.parametrize(
    ("columns", "column"), [(None, "ignore"), ({"crowd": "flag"}, "iscrowd"), ({"ignore": "none"}, None)]
)
def test_cvat_counts_classes_from_1_and_pixels_from_0(
    columns: dict[str, str] | None, column: str | None, tmp_path: Path
) -> None:
    names, rows = ["cat", "dog", "cow"], objects(classes=3)
    sequence = write(tmp_path, rows, first=0)
    (sequence / "gt" / "labels.txt").write_text("cat\ndog\ncow\n", encoding="utf-8")
    kept = rows if column else [row for row in rows if row[5]]
    assert len({row[5] for row in rows}) == 2
    ignored = [not row[5] for row in kept]
    truth, detections = table(tmp_path, kept, names, ignored=ignored, column=column or "ignore")
    write_found(detections, rows, names)
    options: dict[str, Any] = {} if columns is None else {"columns": columns}
    got, said = metrics(sequence, sequence, **options)
    assert got == metrics(truth, detections, classes=names)[0]
    assert len(said) == 1
    assert said[0].startswith("gt.txt: flag 0: ")
    mapped = {1: "cat", 2: "dog", 3: "cow"}
    assert metrics(sequence, sequence, class_map=mapped, **options)[0] == got
    # The names may come from the user.
    (sequence / "gt" / "labels.txt").rename(tmp_path / "names.txt")
    assert metrics(sequence, sequence, classes=tmp_path / "names.txt", **options)[0] == got


def test_detections_of_mot_go_with_other_ground_truth_of_one_class(tmp_path: Path) -> None:
    rows = objects(classes=1)
    sequence = write(tmp_path, rows, first=1)
    truth, detections = table(tmp_path, rows, ["person"], ignored=[False] * len(rows))
    write_found(detections, rows, ["person"])
    expected, _ = metrics(truth, detections)
    got, said = metrics(truth, sequence / "det" / "det.txt")
    assert got == expected
    assert [text.partition(": ")[2] for text in said] == [
        "left and top were reduced by 1, because MOTChallenge counts pixels from 1."
    ]


def test_frames_without_objects_are_images(tmp_path: Path) -> None:
    sequence = write(tmp_path, objects(classes=1), first=1)
    with pytest.warns(BoxscoreWarning):
        truth = boxscore.load_ground_truth(sequence)
    assert truth.images.ids.tolist() == list(range(1, FRAMES + 1))
    assert truth.images.file_names.tolist()[0] == "img1/000001.jpg"
    assert truth.images.sizes.tolist() == [[400, 300]] * FRAMES
    (sequence / "seqinfo.ini").unlink()
    with pytest.warns(BoxscoreWarning) as said:
        truth = boxscore.load_ground_truth(sequence)
    assert "without seqinfo.ini" in str(said[1].message)
    assert "the images are the 5 frames in the file" in str(said[1].message)
    assert truth.images.ids.tolist() == list(range(1, FRAMES))


def test_visibility_is_a_column(tmp_path: Path) -> None:
    sequence = write(tmp_path, objects(classes=1), first=1)
    with pytest.warns(BoxscoreWarning):
        truth = boxscore.load_ground_truth(sequence)
    assert set(truth.columns["visibility"].tolist()) == {0.5}


# ---------------------------------------------------------------- what is refused

TRUTH = "1,1,11,11,20,20,1,1,1\n"
FOUND = "1,-1,11,11,20,20,0.9,-1,-1,-1\n"
NAMES = "if these are not MOTChallenge's classes, pass their names from number 1: --gt-classes FILE."
VISDRONE = "a line must not have a class if it has ten numbers. "
WRITE = (
    "VisDrone's videos are not read: write nine numbers, frame,id,left,top,width,height,flag,class,visibility, and the "
    "names of the classes to labels.txt."
)
REFUSED = [
    ("another class", "1,1,1,1,9,9,0,14,1\n", FOUND, f"a class must be a number from 1 to 13. Got 14 in gt.txt, line 1; {NAMES}"),
    ("a flag of a car", TRUTH + "1,2,1,1,9,9,1,3,1\n", FOUND, f"an object must be a pedestrian (1) to count. Got a flag for class 3 in gt.txt, line 2; {NAMES}"),
    ("detections", FOUND, FOUND, "ground truth must be annotations. Got detections in gt.txt; pass it as the detections, after the ground truth."),
    ("a video of VisDrone", "1,1,11,11,20,20,1,4,0,0\n", FOUND, f"{VISDRONE}Got 4,0,0 in gt.txt, line 1; {WRITE}"),
    ("results of VisDrone", TRUTH, "1,1,11,11,20,20,0.5,4,-1,-1\n", f"{VISDRONE}Got 4,-1,-1 in dt.txt, line 1; {WRITE}"),
    ("another count", TRUTH + "1,1,11,11,20,20,1\n", FOUND, "a line must be frame,id,left,top,width,height,score,... of 9 numbers, as the first. Got '1,1,11,11,20,20,1' in gt.txt, line 2."),
    ("text", TRUTH + "1,1,a,11,20,20,1,1,1\n", FOUND, "a line must be frame,id,left,top,width,height,score,... of 9 numbers, as the first. Got '1,1,a,11,20,20,1,1,1' in gt.txt, line 2."),
    ("no number", TRUTH + "1,1,nan,11,20,20,1,1,1\n", FOUND, "a line must be frame,id,left,top,width,height,score,... of 9 numbers, as the first. Got '1,1,nan,11,20,20,1,1,1' in gt.txt, line 2."),
    ("half a frame", TRUTH + "1.5,1,11,11,20,20,1,1,1\n", FOUND, "a frame must be a whole number from 0 to 10,000,000. Got 1.5 in gt.txt, line 2."),
    ("a class of detections", TRUTH, "1,-1,11,11,20,20,0.9,3,1\n", "a class must be a number from 1 to 1. Got 3 in dt.txt, line 1; MOTChallenge evaluates pedestrians alone, class 1: leave other lines out."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("truth", "found_", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_is_refused(
    truth: str,
    found_: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "gt.txt").write_text(truth, encoding="utf-8")
    (tmp_path / "dt.txt").write_text(found_, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "gt.txt", "dt.txt", "--quiet"]) == 2
    assert capsys.readouterr().err == f"boxscore: error: {message}\n"


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ("[Other]\n", "have \\[Sequence\\] with seqLength"),
        ("seqLength=6", "have \\[Sequence\\] with seqLength"),
        ("[Sequence]\nseqLength=many\n", "have \\[Sequence\\] with seqLength"),
        ("[Sequence]\nseqLength=99999999999\n", "have a seqLength from 0 to 10,000,000"),
        ("[Sequence]\nseqLength=3\n", "a frame must be from 1 to 3, the seqLength of seqinfo.ini. Got 4"),
    ],
)
def test_seqinfo_that_is_refused(info: str, message: str, tmp_path: Path) -> None:
    sequence = write(tmp_path, objects(classes=1), first=1)
    (sequence / "seqinfo.ini").write_text(info, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        with pytest.raises(BoxscoreError, match=message):
            boxscore.load_ground_truth(sequence)


@pytest.mark.parametrize(
    "columns", [{"ignore": "class"}, {"image": "flag"}, {"ignore": "flag", "crowd": "none"}]
)
def test_other_columns_are_refused(columns: dict[str, str], tmp_path: Path) -> None:
    sequence = write(tmp_path, objects(classes=1), first=1)
    with pytest.raises(
        BoxscoreError, match="be ignore=flag, ignore=none or crowd=flag for files of MOTChallenge"
    ):
        boxscore.load_ground_truth(sequence, columns=columns)


def test_detections_without_a_class_need_one(tmp_path: Path) -> None:
    rows = objects(classes=2)
    sequence = write(tmp_path, rows, first=1)
    truth, _ = table(tmp_path, rows, ["cat", "dog"], ignored=[False] * len(rows))
    read = boxscore.load_ground_truth(truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        with pytest.raises(
            BoxscoreError, match=r"Got 2 classes .* pass a file with the name of their class: --dt-classes"
        ):
            boxscore.load_detections(sequence / "det" / "det.txt", read)
        table_ = boxscore.load_detections(sequence / "det" / "det.txt", read, classes=["dog"])
    assert set(table_.category.tolist()) == {1}


@pytest.mark.parametrize(
    "line", ["1,2,3,4,5,6,7,8", "1.5,2,3,4,5,6,7", "a,2,3,4,5,6,7", "1;2;3;4;5;6;7", "image,id,x,y,w,h,s"]
)
def test_other_lines_are_not_detected(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{line}\n", encoding="utf-8")
    with contextlib.suppress(BoxscoreError):
        assert detect_format(tmp_path / "a.txt")[0] != "mot"


@pytest.mark.parametrize("side", ["gt", "det"])
def test_mutants_are_read_or_refused(side: str, tmp_path: Path) -> None:
    sequence = write(tmp_path, objects(classes=13), first=1)
    file = sequence / side / f"{side}.txt"
    content = file.read_bytes()
    generator = np.random.default_rng(54)
    outcomes = []
    for _ in range(60):
        mutant = bytearray(content)
        for at in generator.integers(0, len(content), generator.integers(1, 4)).tolist():
            mutant[at] = int(generator.choice([*b"0123456789.,-\n eE\xff"]))
        file.write_bytes(mutant)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", BoxscoreWarning)
            try:
                truth = boxscore.load_ground_truth(sequence)
                boxscore.evaluate(truth, boxscore.load_detections(sequence, truth))
                outcomes.append("read")
            except BoxscoreError:
                outcomes.append("refused")
    assert {*outcomes} == {"read", "refused"}
