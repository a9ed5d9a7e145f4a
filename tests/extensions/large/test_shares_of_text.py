"""Shares of JSON, JSON lines, YOLO and VOC: each reads its own images, and together they are one evaluation."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.distributed import merge
from boxscore.extensions.formats._record_tables import RecordTable
from boxscore.extensions.large import command_line as larger
from boxscore.extensions.large.shares import ImageShard, NeedsAllRowsError
from boxscore.formats.registry import format_named
from support.running import Run
from support.samples import DT, GT

CLASSES = ["cat", "dog", "bird"]


class Case:
    """A data set as records: ids, boxes on a grid, scores with many ties, images without objects."""

    def __init__(self, seed: int, images: int = 40) -> None:
        rng = np.random.default_rng(seed)
        self.images = [
            {"id": 3 * one + 2, "file_name": f"photo_{one}.jpg", "width": 100, "height": 80}
            for one in rng.permutation(images).tolist()
        ]
        self.annotations = [
            {**self.row(rng), "id": number + 1, "iscrowd": int(rng.random() < 0.1)}
            for number in range(3 * images)
        ]
        for one in self.annotations:
            one["area"] = one["bbox"][2] * one["bbox"][3]
        self.results = [{**self.row(rng), "score": float(rng.integers(0, 9)) / 8} for _ in range(9 * images)]

    def row(self, rng: np.random.Generator) -> dict[str, Any]:
        x, y = (rng.integers(0, 4, 2) * 20).tolist()
        image = self.images[int(rng.integers(0, len(self.images)))]["id"]
        return {"image_id": image, "category_id": int(rng.integers(1, 4)), "bbox": [x, y, 15, 15.5]}

    def write_json(self, folder: Path) -> None:
        categories = [{"id": number, "name": name} for number, name in enumerate(CLASSES, start=1)]
        truth = {"images": self.images, "categories": categories, "annotations": self.annotations}
        (folder / "truth.json").write_text(json.dumps(truth))
        (folder / "found.json").write_text(json.dumps(self.results))
        (folder / "found.jsonl").write_text("\n".join(map(json.dumps, self.results)))

    def write(self, folder: Path) -> None:
        self.write_json(folder)
        names = {image["id"]: image["file_name"] for image in self.images}
        named = [
            {
                "image": names[one["image_id"]],
                "class": CLASSES[one["category_id"] - 1],
                "bbox": one["bbox"],
                "score": one["score"],
            }
            for one in self.results
        ]
        (folder / "named.jsonl").write_text("\n".join(map(json.dumps, named)))
        truth_table = boxscore.load_ground_truth(folder / "truth.json")
        found = boxscore.load_detections(folder / "found.json", truth_table)
        for name in ("yolo", "voc"):
            format_named(name).save(truth_table, folder / name / "truth")
            format_named(name).save(found, folder / name / "found")


PAIRS = [
    ("truth.json", "found.json"),
    ("truth.json", "found.jsonl"),
    ("truth.json", "named.jsonl"),
    ("yolo/truth", "yolo/found"),
    ("voc/truth", "voc/found"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("case")
    Case(1).write(folder)
    return folder


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    Case(1, 12).write(folder)  # as there, an image has no objects
    return folder


def merged(run: Run, sides: list[str], shares: int, folder: Path, *options: str) -> str:
    files = []
    for number in range(1, shares + 1):
        files.append(str(folder / f"{number}.npz"))
        shard = ["--shard", f"{number}/{shares}", "--save-part", files[-1], "--no-digest"]
        run("evaluate", *sides, *shard, *options)
    return run("merge", *files, "--per-class").out


def refused(*_: object) -> None:
    raise AssertionError("everything was read at once")


@pytest.mark.parametrize("protocol", ["coco", "voc2007"])
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize(
    ("shares", "where"), [(3, "folder"), pytest.param(15, "small_folder", marks=pytest.mark.long)]
)
def test_shares_are_one_evaluation_and_nothing_is_read_at_once(
    pair: tuple[str, str],
    protocol: str,
    shares: int,
    where: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More shares than images, too."""
    folder = request.getfixturevalue(where)
    sides = [str(folder / name) for name in pair]
    chosen = ["--protocol", protocol]
    expected = run("evaluate", *sides, "--no-digest", "--per-class", *chosen).out
    monkeypatch.setattr(larger, "read_inputs", refused)
    assert merged(run, sides, shares, tmp_path, *chosen) == expected


@pytest.mark.parametrize("name", ["truth.json", "found.json"])
def test_rows_of_other_shares_are_dropped_as_they_are_read(
    name: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxscore.extensions.large._coco_shares import _KeptReading

    held: list[int] = []
    plain = _KeptReading.joined

    def noted(*arguments: Any) -> Any:
        columns = plain(*arguments)
        held.append(len(columns["image_id"]))
        return columns

    monkeypatch.setattr(_KeptReading, "joined", noted)
    run("evaluate", folder / "truth.json", folder / "found.json", "--shard", "2/4", "--no-digest")
    truth, found = held
    assert {"truth.json": truth < 0.4 * 120, "found.json": found < 0.4 * 360}[name]


def test_lines_of_other_shares_are_dropped_block_by_block(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxscore.extensions.large import _json_lines_shares

    taken: list[int] = []
    plain = RecordTable.take

    def noted(self: RecordTable, other: RecordTable, rows: Any, more: Any) -> None:
        assert other.count <= 50
        taken.append(len(rows))
        plain(self, other, rows, more)

    monkeypatch.setattr(_json_lines_shares, "BLOCK", 50)
    monkeypatch.setattr(RecordTable, "take", noted)
    sides = [folder / "truth.json", folder / "found.jsonl"]
    run("evaluate", *sides, "--shard", "2/4", "--no-digest")
    assert len(taken) == 8
    assert sum(taken) < 0.4 * 360


def test_label_files_of_other_shares_are_not_opened(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxscore.extensions.large import _yolo_shares
    from boxscore.formats import _yolo_lines

    opened: set[str] = set()
    plain = _yolo_lines._read

    def noted(file: str) -> bytes:
        opened.add(file)
        return plain(file)

    monkeypatch.setattr(_yolo_lines, "_read", noted)
    monkeypatch.setattr(_yolo_shares, "SOME", 2)
    run("evaluate", folder / "yolo/truth", folder / "yolo/found", "--shard", "2/4", "--no-digest")
    for side in ("truth", "found"):
        assert 10 <= sum(f"/yolo/{side}/" in file for file in opened) <= 12  # a quarter of 40, and two


def spoilt_ids(case: Case) -> None:
    case.annotations[5]["id"] = case.annotations[40]["id"]


def unlisted_annotation(case: Case) -> None:
    case.annotations[7]["image_id"] = 1000


def names_as_ids(case: Case) -> None:
    """Images whose files are called as other images' ids."""
    ids = [image["id"] for image in case.images]
    for image, other in zip(case.images, [*ids[1:], ids[0]], strict=True):
        image["file_name"] = f"{other}.jpg"


def text_among_numbers(case: Case) -> None:
    case.results[3]["image_id"] = str(case.results[3]["image_id"])


def other_classes(case: Case) -> None:
    for one in case.results[::7]:
        one["category_id"] = 99


def rounded_sides(case: Case) -> None:
    case.results[8]["bbox"][2] = -1e-9


def fractions(case: Case) -> None:
    """Boxes within one pixel are pixels in JSON, and fractions in lines."""
    for one in [*case.results, *case.annotations]:
        one["bbox"] = [side / 100 for side in one["bbox"]]


SPOILS = [spoilt_ids, unlisted_annotation, names_as_ids, text_among_numbers, other_classes, rounded_sides]


@pytest.mark.parametrize("found", ["found.json", "found.jsonl"])
@pytest.mark.parametrize("spoil", [*SPOILS, fractions])
def test_what_all_rows_decide(spoil: Callable[[Case], None], found: str, tmp_path: Path, run: Run) -> None:
    case = Case(2, images=15)
    spoil(case)
    case.write_json(tmp_path)
    sides = [str(tmp_path / "truth.json"), str(tmp_path / found)]
    if spoil is rounded_sides and found == "found.jsonl":
        whole = run.error("evaluate", *sides, "--no-digest")
        assert run.error("evaluate", *sides, "--shard", "1/2") == whole
        return
    expected = run("evaluate", *sides, "--no-digest", "--per-class").out
    assert merged(run, sides, 3, tmp_path) == expected


def test_an_unlisted_image_is_refused_by_one_share(tmp_path: Path, run: Run) -> None:
    case = Case(3, images=12)
    case.results[20]["image_id"] = 1  # between none: before the first
    case.write_json(tmp_path)
    sides = [str(tmp_path / "truth.json"), str(tmp_path / "found.json")]
    error = run.error("evaluate", *sides, "--shard", "1/3", "--no-digest")
    assert "image_id must be in the ground truth. Got 1 in detection 20 of " in error
    for number in (2, 3):
        run("evaluate", *sides, "--shard", f"{number}/3", "--no-digest")


def test_predictions_of_two_kinds(folder: Path, tmp_path: Path, run: Run, monkeypatch: Any) -> None:
    """A polygon in one file of many changes what the boxes of all are: its share is refused."""
    import shutil

    from boxscore.extensions.large import _yolo_shares

    shutil.copytree(folder / "yolo", tmp_path / "yolo")
    sides = [str(tmp_path / "yolo" / "truth"), str(tmp_path / "yolo" / "found")]
    last = sorted((tmp_path / "yolo" / "found" / "labels").glob("photo*.txt"))[-1]
    last.write_text(last.read_text() + "0 .1 .1 .5 .1 .5 .5 .9\n")
    expected = run("evaluate", *sides, "--no-digest", "--per-class").out
    assert merged(run, sides, 2, tmp_path) == expected  # seen: all is read at once
    monkeypatch.setattr(_yolo_shares, "SOME", 2)
    assert "a line must have 6 numbers, as in 2 files spread over all" in run.error(
        "evaluate", *sides, "--shard", "2/2", "--no-digest"
    )


def test_images_of_unknown_size(folder: Path, tmp_path: Path, run: Run) -> None:
    import shutil

    shutil.copytree(folder / "yolo", tmp_path / "yolo")
    sides = [str(tmp_path / "yolo" / "truth"), str(tmp_path / "yolo" / "found")]
    sizes = tmp_path / "yolo" / "truth" / "image_sizes.csv"
    lines = sizes.read_text().splitlines()
    labels = tmp_path / "yolo" / "truth" / "labels"
    filled = next(file.stem for file in sorted(labels.glob("*.txt")) if file.read_text())
    sizes.write_text("\n".join(line for line in lines if f"{filled}." not in line) + "\n")
    refused = [
        number
        for number in (1, 2)
        if "an image must have a known size, to be read in shares"
        in run("evaluate", *sides, "--shard", f"{number}/2", "--no-digest", status=(0, 2)).err
    ]
    assert len(refused) == 1
    sizes.unlink()  # of none: fractions, in every share
    expected = run("evaluate", *sides, "--no-digest", "--per-class").out
    assert merged(run, sides, 2, tmp_path) == expected


# ---------------------------------------------------------------- which images


@given(
    ids=st.one_of(
        st.sets(st.integers(-(2**62), 2**62), min_size=1, max_size=20),
        st.sets(st.text("ab/.7", min_size=1, max_size=4), min_size=1, max_size=20),
    ),
    shares=st.integers(1, 7),
    more=st.integers(-(2**62), 2**62),
)
@settings(deadline=None)
def test_every_id_is_in_one_share(ids: set[Any], shares: int, more: int) -> None:
    images = Images.build(sorted(ids))
    asked = [*ids, more] if images.ids.dtype != object else [*ids]
    random.Random(shares).shuffle(asked)
    count = np.zeros(len(asked), dtype=int)
    for number in range(1, shares + 1):
        share = ImageShard(number, shares)
        chosen = share.choose(images)
        kept = share.keeps(asked)
        count += kept
        inside = {*images.ids[chosen].tolist()}
        assert {one for one, keep in zip(asked, kept.tolist(), strict=True) if keep and one in ids} == inside
    assert (count >= 1).all()
    assert (count[[one in ids for one in asked]] == 1).all()


def test_a_name_that_is_none_of_all_needs_all_rows() -> None:
    share = ImageShard(1, 2)
    share.choose(Images.build(["a", "b"], file_names=["a.jpg", "b.jpg"]))
    assert share.keeps(["a", "b", "a.jpg"]).tolist() == [True, False, True]
    for name in ("c", "folder/a", "a.png", 1):
        with pytest.raises(NeedsAllRowsError):
            share.keeps([name])


def test_shares_of_the_sample(tmp_path: Path, run: Run) -> None:
    expected = boxscore.evaluate(GT, DT)
    merged(run, [str(GT), str(DT)], 3, tmp_path)
    result = merge([tmp_path / f"{number}.npz" for number in (1, 2, 3)])
    assert result.metrics == expected.metrics
