"""Files of columns that no program wrote by itself: refused before anything large is read, in one line."""

from __future__ import annotations

import copy
import dataclasses
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.data.boxes import check_sizes_fit, corners_and_sizes
from boxscore.data.vocabulary import Images
from support.column_archives import Arrays, member_bytes, prepare, tables

Change = Callable[[Arrays], object]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Arrays]:
    """The members of good files."""
    return prepare(tmp_path_factory.mktemp("good"))


def write(path: Path, arrays: Arrays) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member_bytes(array))
    return path


def put(**values: Any) -> Change:
    return lambda arrays: arrays.update(values)


def head(**values: Any) -> Change:
    return lambda arrays: arrays["header"].update(values)


def lost(name: str) -> Change:
    return lambda arrays: arrays.pop(name)


DAMAGED = "; a damaged file?"
CHANGES: list[tuple[str, Change, str]] = [
    ("ids of no axis", put(ids=np.array(1)), f"column ids must be int64 [4]. Got int64 [] in gt.npz{DAMAGED}"),
    ("ids of two", put(ids=np.ones((4, 4), int)), f"column ids must be int64 [4]. Got int64 [4, 4] in gt.npz{DAMAGED}"),
    ("ids as floats", put(ids=np.ones(4)), f"column ids must be int64 [4]. Got float64 [4] in gt.npz{DAMAGED}"),
    (
        "ids as text",
        put(ids=np.array(["a", "b", "c", "d"])),
        f"column ids must be int64 [4]. Got <U1 [4] in gt.npz{DAMAGED}",
    ),
    (
        "ids as dates",
        put(ids=np.zeros(4, "M8[D]")),
        f"column ids must be int64 [4]. Got datetime64[D] [4] in gt.npz{DAMAGED}",
    ),
    ("ids twice", head(ids=[1, 2, 3, 4]), "a column must be one that the header names. Got 'ids' in gt.npz; written by a newer boxscore?"),
    (
        "ids in the header, one short",
        lambda a: (a.pop("ids"), a["header"].update(ids=[1, "b", 3])),
        f"column ids must have 4 rows. Got 3 in gt.npz{DAMAGED}",
    ),
    (
        "ids in the header, a number with a point",
        lambda a: (a.pop("ids"), a["header"].update(ids=[1, 2.5, 3, 4])),
        "the header must have ids that are integers or strings. Got 2.5 in gt.npz.",
    ),
    (
        "sizes times three",
        lambda a: a.update(sizes=a["sizes"] * 3),
        f"sizes must be x2 - x1, which is 3.0. Got 9.0 in row 0 of gt.npz{DAMAGED}",
    ),
    (
        "one size off",
        lambda a: a["sizes"].__setitem__((2, 1), 0.41),
        f"sizes must be y2 - y1, which is 0.4000000000000001. Got 0.41 in row 2 of gt.npz{DAMAGED}",
    ),
    (
        "a negative image size",
        lambda a: a["image_sizes"].__setitem__((2, 1), -8),
        "the size of an image must be at least 0, or NaN where it is not known. Got [6.0, -8.0] in image 9 of gt.npz.",
    ),
    (
        "an infinite image size",
        lambda a: a["image_sizes"].__setitem__((0, 0), np.inf),
        "the size of an image must be at least 0, or NaN where it is not known. Got [inf, 8.0] in image 3 of gt.npz.",
    ),
    (
        "a class name that is a list",
        head(category_names=[["cat"], "dog"]),
        "the header must have category names that are strings. Got ['cat'] in gt.npz.",
    ),
    (
        "a class name that is no text",
        head(category_names=["c\ud800t", "dog"]),
        "names must be text that UTF-8 can write. Got 'c\\ud800t' in gt.npz.",
    ),
    ("a file name that is a number", head(file_names=[1, None, "c"]), "the header must have file names that are strings. Got 1 in gt.npz."),
    ("an image id that is true", head(image_ids=[True, 5, 9]), "the header must have image ids that are integers or strings. Got True in gt.npz."),
    ("image ids in another order", head(image_ids=[9, 5, 3]), "the header must have image ids in ascending order. Got another order in gt.npz."),
    ("repeated image ids", head(image_ids=[3, 5, 5]), "ids must be unique. Got repeated ids in gt.npz."),
    ("repeated classes", head(category_ids=[2, 2]), "ids must be unique. Got repeated ids in gt.npz."),
    ("a class without name", head(category_names=["cat"]), "the header must have as many category names as category ids (2). Got 1 in gt.npz."),
    ("no image ids", head(image_ids=None), "the header must have a list of image ids. Got none in gt.npz."),
    ("a key that is not known", head(extra=1), "a key of the header must be known. Got 'extra' in gt.npz; written by a newer boxscore?"),
    ("columns that are a list", head(columns=["x"]), "the header must have a table of columns. Got a list in gt.npz."),
    (
        "a column of another length",
        lambda a: a.update({"column:x": np.zeros(5)}),
        f"column x must have 4 rows. Got shape [5] in gt.npz{DAMAGED}",
    ),
    (
        "a column of images of another length",
        lambda a: a.update({"image_column:day": np.zeros(4)}),
        f"column day must have 3 rows. Got shape [4] in gt.npz{DAMAGED}",
    ),
    (
        "a column without axis",
        lambda a: a.update({"column:x": np.array(1)}),
        f"column x must have 4 rows. Got shape [] in gt.npz{DAMAGED}",
    ),
    (
        "a column that the header does not name",
        lambda a: a.update({"column:y": np.zeros(4)}),
        "a column must be one that the header names. Got 'column:y' in gt.npz; written by a newer boxscore?",
    ),
    (
        "scores of ground truth",
        put(scores=np.zeros(4)),
        "a column must be one that the header names. Got 'scores' in gt.npz; written by a newer boxscore?",
    ),
    ("keypoints of fewer rows", put(keypoints=np.zeros((3, 2, 3))), f"column keypoints must be float64 [4, J, 3]. Got float64 [3, 2, 3] in gt.npz{DAMAGED}"),
    ("mask bytes as numbers", put(mask_counts=np.zeros(9)), f"column mask_counts must be uint8 [bytes]. Got float64 [9] in gt.npz{DAMAGED}"),
    ("masks without bytes", lost("mask_counts"), f"column mask_counts must be uint8 [bytes]. Got none in gt.npz{DAMAGED}"),
    ("mask sizes for two masks", put(mask_sizes=np.zeros((2, 2), int)), f"column mask_sizes must be int64 [3, 2]. Got int64 [2, 2] in gt.npz{DAMAGED}"),
    ("numbers of the other byte order", lambda a: a.update(boxes=a["boxes"].astype(">f8")), f"column boxes must be float64 [4, 4]. Got >f8 [4, 4] in gt.npz{DAMAGED}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES]
)
def test_a_changed_file_is_refused(
    good: dict[str, Arrays], change: Change, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays = copy.deepcopy(good["gt"])
    change(arrays)
    write(Path("gt.npz"), arrays)
    with pytest.raises(boxscore.InputError) as caught:
        boxscore.load_ground_truth("gt.npz")
    assert str(caught.value).startswith(message)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["evaluate"], "ids of two"),
        (["validate"], "a column of another length"),
        (["slices", "--by", "x"], "a column of another length"),
        (["suspects"], "ids of no axis"),
    ],
)
def test_every_command_says_so(
    good: dict[str, Arrays],
    command: list[str],
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    _, detections = tables()
    arrays = copy.deepcopy(good["gt"])
    change, message = next(case[1:] for case in CHANGES if case[0] == name)
    change(arrays)
    write(Path("gt.npz"), arrays)
    boxscore.save_columns(detections, "dt.npz")
    status = main([*command, "--gt", "gt.npz", "--dt", "dt.npz"])
    output, errors = capsys.readouterr()
    assert status == (1 if command == ["validate"] else 2)
    printed = output if command == ["validate"] else errors
    assert message.rstrip("?") in " ".join(printed.split())


def test_left_out_must_be_counts(good: dict[str, Arrays], tmp_path: Path) -> None:
    truth, _ = tables()
    arrays = copy.deepcopy(good["dt"])
    arrays["header"]["left_out"] = {"bird": "many"}
    path = write(tmp_path / "dt.npz", arrays)
    with pytest.raises(
        boxscore.FileFormatError, match=r"whole numbers of detections left out. Got 'many' of 'bird'"
    ):
        boxscore.load_detections(path, truth)


# ---------------------------------------------------------------- the archive


def test_members_that_share_bytes_are_refused(good: dict[str, Arrays], tmp_path: Path) -> None:
    path = write(tmp_path / "gt.npz", good["gt"])
    with zipfile.ZipFile(path, "a") as archive:
        again = copy.copy(archive.getinfo("boxes.npy"))
        again.filename = "column:x2.npy"
        archive.filelist.append(again)
        archive._didModify = True
    with pytest.raises(boxscore.FileFormatError) as caught:
        boxscore.load_ground_truth(path)
    assert (
        str(caught.value)
        == f"a file of columns must hold each byte once. Got members that share bytes in {path}."
    )


def test_a_member_twice_is_refused(good: dict[str, Arrays], tmp_path: Path) -> None:
    path = write(tmp_path / "gt.npz", good["gt"])
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("boxes.npy", member_bytes(np.zeros((4, 4))))
    with pytest.raises(boxscore.FileFormatError) as caught:
        boxscore.load_ground_truth(path)
    assert str(caught.value) == (
        f"a file of columns must hold each column once. Got several members 'boxes.npy' in {path}."
    )


def _header(descr: str, shape: str, *, version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        _header("'<f8'", "(100000000000, 4)"),
        _header("'<f8'", "(4, 4)") + bytes(127),
        _header("'<f8'", "(4, 4)") + bytes(129),
        _header("'<f8'", "(-4, -4)") + bytes(128),
        _header("'<U0'", "(1000000000000,)"),
        _header("'<f8'", f"({10**40},)"),
        _header("('<f8', (4,))", "(4,)") + bytes(128),
        _header("[('a', '<f8')]", "(16,)") + bytes(128),
        _header("'|O'", "(1,)") + b"\x80\x04K\x01.",
        _header("'<f8'", "(4, 4)", version=b"\x03\x00") + bytes(128),
        _header("'<f8'", "-" * 5000 + "1"),
        _header("'<f8'", "(" * 5000),
        _header("'<f8'", "(4, 4L)") + bytes(128),
        b"",
    ],
)
def test_an_array_that_is_not_what_it_says_is_not_read(
    good: dict[str, Arrays], content: bytes, tmp_path: Path
) -> None:
    arrays = copy.deepcopy(good["gt"])
    path = tmp_path / "gt.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", content if name == "boxes" else member_bytes(array))
    tracemalloc.start()
    with pytest.raises(boxscore.FileFormatError) as caught:
        boxscore.load_ground_truth(path)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    message = f"a file of columns must be written by boxscore convert. Got {path}."
    assert str(caught.value) in (
        message,
        f"column boxes must be float64 [4, 4]. Got <U0 [1000000000000] in {path}; a damaged file?",
    )


# ---------------------------------------------------------------- what is written can be read


def test_sizes_of_the_builder_always_fit() -> None:
    """Whatever form the boxes are given in, and however far from 0 they lie."""
    rng = np.random.default_rng(5)
    for power in (-320, -300, -20, 0, 3, 9, 15, 40, 99):
        for form in ("xyxy", "xywh", "cxcywh"):
            boxes = rng.random((500, 4)) * 10.0 ** rng.integers(power - 3, power + 1, (500, 4))
            boxes[:, :2] *= rng.choice([-1, 1], (500, 2))
            if form == "xyxy":
                boxes[:, 2:] += boxes[:, :2]
            corners, sizes = corners_and_sizes(boxes, form)  # type: ignore[arg-type]
            check_sizes_fit(corners, sizes, name="sizes", place="row {}".format, cause="")
            if form == "xyxy":  # the sizes of one form with the corners of another
                continue
            check_sizes_fit(
                corners, corners[:, 2:] - corners[:, :2], name="sizes", place="row {}".format, cause=""
            )


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (
            lambda t: dataclasses.replace(t, sizes=t.sizes * 3),
            r"sizes must be x2 - x1, which is 3.0. Got 9.0 in row 0",
        ),
        (
            lambda t: dataclasses.replace(t, images=dataclasses.replace(t.images, sizes=-t.images.sizes)),
            r"the size of an image must be at least 0, .* Got \[-6.0, -8.0\] in image 3 of arrays",
        ),
        (
            lambda t: dataclasses.replace(
                t, categories=dataclasses.replace(t.categories, names=np.array(["a\ud800", "b"], object))
            ),
            "names must be text that UTF-8 can write",
        ),
        (
            lambda t: dataclasses.replace(t, columns={"x": np.zeros(4, dtype=[("a", "f8")])}),
            "column x must hold no records to be saved",
        ),
    ],
)
def test_what_could_not_be_read_is_not_written(
    change: Callable[[Any], Any], rule: str, tmp_path: Path
) -> None:
    with pytest.raises(boxscore.InputError, match=rule):
        boxscore.save_columns(change(tables()[0]), tmp_path / "gt.npz")
    assert not (tmp_path / "gt.npz").exists()


def test_image_sizes_of_0_and_unknown_ones_come_back(tmp_path: Path) -> None:
    images = Images.build([1, 2], sizes=[[0, 0], [np.nan, np.nan]])
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 1, 1]], images=images)
    boxscore.save_columns(truth, tmp_path / "gt.npz")
    assert np.array_equal(
        boxscore.load_ground_truth(tmp_path / "gt.npz").images.sizes, images.sizes, equal_nan=True
    )


def test_repeated_annotation_ids_are_told(tmp_path: Path) -> None:
    """A COCO file's may repeat, and then a table's: they come back, with a warning."""
    truth = boxscore.GroundTruth.from_arrays([1, 1], [1, 1], [[0, 0, 1, 1]] * 2, ids=[7, 7])
    boxscore.save_columns(truth, tmp_path / "gt.npz")
    with pytest.warns(
        boxscore.BoxscoreWarning, match=r"1 annotation id occurs more than once; each row counts"
    ):
        assert boxscore.load_ground_truth(tmp_path / "gt.npz").ids.tolist() == [7, 7]
