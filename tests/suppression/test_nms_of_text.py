"""Suppression and fusion of COCO results larger than memory: byte for byte what all at once writes."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.formats import _json
from support import limits
from support.insides import Load, buckets_of, check_partition, merged, plan_within, write_pieces
from support.running import Run

LIMIT = ["--memory-limit", "1GB", "--workers", "1"]
Record = dict[str, Any]


@pytest.fixture(autouse=True)
def _few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_rows_of_text(monkeypatch, 60)


def records(
    count: int = 400, *, seed: int = 1, images: int = 30, image: Callable[[int], Any] = int, **more: Any
) -> list[Record]:
    """Draw heaps of boxes in no order of the images, with few scores, so that many are equal."""
    rng = np.random.default_rng(seed)
    corners, sizes = rng.integers(0, 60, (count, 2)) / 2, rng.integers(5, 40, (count, 2)) / 3
    return [
        {
            "image_id": image(number),
            "category_id": label,
            "bbox": [*corner, *size],
            "score": score / 10,
            **more,
        }
        for number, label, corner, size, score in zip(
            rng.integers(0, images, count).tolist(),
            rng.integers(1, 4, count).tolist(),
            corners.tolist(),
            sizes.tolist(),
            rng.integers(1, 11, count).tolist(),
            strict=True,
        )
    ]


DATA: dict[str, list[Record]] = {
    "scattered": records(),
    "by image": sorted(records(), key=lambda record: record["image_id"]),
    "one image": records(images=1),
    "texts": records(image=lambda number: f"bild-{number}-ü"),
    "numbers as texts": records(image=lambda number: f"{number:03d}"),
    "large ids": records(image=lambda number: 2**63 + number),
    "large ids among small ones": records(image=lambda number: number if number < 28 else 2**70 + number),
    "exact only as integers": records(image=lambda number: 2**53 + number),
    "negative ids": records(image=lambda number: -number),
    "7.0": records(image=float),
    "further keys": records(deep=[{"a": 1}, {"b": [{}, "}, {"]}], text='ö "\\', none=None),
    "keys of text in some": [
        record | {"note": "}, {" * number} for number, record in enumerate(records(100, images=3))
    ],
    "text classes": [record | {"category_id": f"class {record['category_id']}"} for record in records()],
    "no record": [],
    "one record": records(1),
}

LAYOUTS: dict[str, Callable[[list[Record]], str]] = {
    "dense": lambda rows: json.dumps(rows, separators=(",", ":")),
    "indented": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False),
    "in lines": lambda rows: "\ufeff [\n" + ",\n".join(map(json.dumps, rows)) + "\n] \n",
}


def both(run: Run, folder: Path, command: str, *call: object) -> str:
    """Run a command with and without the limit; what they say and write is the same; return what it is."""
    said = []
    for name, more in (("whole", []), ("parts", LIMIT)):
        printed = run(command, *call, "--output", folder / f"{name}.json", *more)
        said.append((printed.out, printed.err.replace(name, "")))
    assert said[0] == said[1]
    whole, parts = ((folder / f"{name}.json").read_bytes() for name in ("whole", "parts"))
    assert parts == whole
    return whole.decode()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("data", DATA)
def test_nms(data: str, layout: str, tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(LAYOUTS[layout](DATA[data]), encoding="utf-8")
    kept = json.loads(both(run, tmp_path, "nms", raw, "--iou-threshold", 0.5))
    assert len(kept) < len(DATA[data]) or len(DATA[data]) <= 1
    assert all(record in DATA[data] for record in kept[::20])


@pytest.mark.parametrize(
    "options",
    [
        ["--method", "soft-gaussian", "--max-per-image", "5"],
        ["--method", "soft-linear", "--iou-threshold", "0.3", "--score-threshold", "0.2"],
        ["--method", "nmm", "--iou-threshold", "0.4", "--class-agnostic"],
        ["--method", "greedy-nmm", "--iou-threshold", "0.4", "--dt-box-format", "cxcywh"],
        ["--method", "matrix-gaussian"],
        ["--iou-threshold", "0.3", "--groups", "groups.txt"],
        ["--iou-threshold", "0.3", "--max-per-group", "2", "--dt-box-format", "yxhw"],
    ],
)
@pytest.mark.parametrize("data", ["scattered", "further keys", "texts"])
def test_methods(data: str, options: list[str], tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(DATA[data], indent=1))
    (tmp_path / "groups.txt").write_text("1,2\n")
    options = [str(tmp_path / word) if word == "groups.txt" else word for word in options]
    both(run, tmp_path, "nms", raw, *options)


def test_there_are_several_partitions(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(DATA["scattered"]))
    counts: list[int] = []
    limits.before_merging(monkeypatch, counts.append)
    both(run, tmp_path, "nms", raw, "--iou-threshold", 0.5)
    assert counts[0] > 5


def test_processes(tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(DATA["scattered"]))
    call = ["nms", raw, "--iou-threshold", "0.5", "--output"]
    run(*call, tmp_path / "whole.json")
    run(*call, tmp_path / "parts.json", "--memory-limit", "2GB", "--workers", "2")
    assert (tmp_path / "parts.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_masks(tmp_path: Path, run: Run) -> None:
    """With and without boxes beside them, compared and not."""
    rng = np.random.default_rng(3)
    rows = records(90, images=7)
    for row in rows:
        runs = np.diff(np.sort(rng.choice(np.arange(1, 100), 6, replace=False)), prepend=0)
        row["segmentation"] = {"size": [10, 10], "counts": [*runs.tolist(), int(100 - runs.sum())]}
    raw = tmp_path / "raw.json"
    for some in (rows, [{key: row[key] for key in row if key != "bbox"} for row in rows]):
        raw.write_text(json.dumps(some))
        for kind in ("segm", "bbox"):
            kept = json.loads(both(run, tmp_path, "nms", raw, "--iou-threshold", 0.3, "--iou-type", kind))
            assert 0 < len(kept) < 90


def test_a_wrong_mask_is_named(tmp_path: Path, run: Run) -> None:
    """It is found where it is compared, in a partition."""
    rows = records(90, images=7)
    for row in rows:
        row["segmentation"] = {"size": [10, 10], "counts": [40, 20, 40]}
    rows[70]["segmentation"] = {"size": [10, 10], "counts": [40, 20, 400]}
    raw = tmp_path / "raw.json"
    call = ["nms", raw, "--output", tmp_path / "kept.json", "--iou-threshold", 0.3, "--iou-type", "segm"]
    for last in (rows[70], rows[70] | {"segmentation": None}):
        raw.write_text(json.dumps([*rows[:70], last]))
        error = run.error(*call, *LIMIT)
        assert "in detection 70 of " in error
        assert error == run.error(*call)


def test_rotated_boxes(tmp_path: Path, run: Run) -> None:
    rows = [row | {"bbox": [*row["bbox"], number]} for number, row in enumerate(records(100, images=5))]
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(rows))
    both(run, tmp_path, "nms", raw, "--iou-threshold", 0.3, "--iou-type", "rotated")
    both(run, tmp_path, "nms", raw, "--iou-threshold", 0.3)  # with a warning


def test_packed(tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json.gz"
    raw.write_bytes(gzip.compress(json.dumps(DATA["scattered"]).encode()))
    both(run, tmp_path, "nms", raw, "--iou-threshold", 0.5)
    both(run, tmp_path, "fuse", raw, raw)


@pytest.mark.parametrize(
    "options",
    [
        ["--weights", "2", "1", "1"],
        ["--method", "nmw", "--score-threshold", "0.2"],
        ["--confidence", "max", "--iou-threshold", "0.3"],
    ],
)
@pytest.mark.parametrize("data", ["scattered", "one image", "texts", "large ids among small ones"])
def test_fuse(data: str, options: list[str], tmp_path: Path, run: Run) -> None:
    """Many scores are equal; a class and images that one file lacks, and an empty file, are no matter."""
    files = [tmp_path / f"{number}.json" for number in range(3)]
    few = [record | {"category_id": 3} for record in DATA[data][::7]]
    for file, rows in zip(files, (DATA[data], few[::-1], []), strict=True):
        file.write_text(json.dumps(rows))
    fused = json.loads(both(run, tmp_path, "fuse", *files, *options))
    assert 0 < len(fused) < len(DATA[data]) + len(few)
    scores = [record["score"] for record in fused]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) < len(scores)


def test_fuse_of_nothing(tmp_path: Path, run: Run) -> None:
    (tmp_path / "raw.json").write_text("[]")
    assert both(run, tmp_path, "fuse", tmp_path / "raw.json", tmp_path / "raw.json") == "[]\n"


# ---------------------------------------------------------------- what is wrong with the input


def texts_that_are_refused() -> dict[str, bytes]:
    rows = records(200, deep=[{"a": 1}, {"b": 2}])
    whole = json.dumps(rows)
    bad: dict[str, bytes] = {}
    for name, change in {
        "a score of text": {"score": "high"},
        "no score": {"score": None},
        "an id that is no whole number": {"image_id": 7.5},
        "a side below 0": {"bbox": [0, 0, -1, 1]},
        "three numbers": {"bbox": [1, 2, 3]},
        "an id of another kind": {"image_id": None},
    }.items():
        bad[name] = json.dumps([*rows[:150], rows[150] | change, *rows[151:]]).encode()
    at = whole.index('"score"', len(whole) // 2)
    bad["a score that is left out"] = (whole[:at] + '"other"' + whole[at + 7 :]).encode()
    bad["NaN"] = (whole[: at + 9] + "NaN" + whole[at + 12 :]).encode()
    bad["a missing quote"] = (whole[:at] + whole[at + 1 :]).encode()
    bad["a missing bracket"] = whole.replace("}, {", ", {", 1).encode()
    bad["a missing comma"] = (whole[:at] + whole[at:].replace("}, {", "} {", 1)).encode()
    bad["cut short"] = whole[: len(whole) * 3 // 4].encode()
    bad["cut inside the first record"] = whole[:30].encode()
    bad["no UTF-8"] = (whole[:at] + '"name": "').encode() + b"\xff" + ('", ' + whole[at:]).encode()
    bad["not at all"] = b""
    bad["a number"] = b"5"
    bad["behind the end"] = whole.encode() + b", 7]"
    return bad


REFUSED = texts_that_are_refused()


@pytest.mark.parametrize("size", [64, 700, 1 << 17])
@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_text_is_refused_as_without_the_limit(
    name: str, size: int, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field, rule, value, record and byte are named; an older output stays."""
    limits.few_rows_of_text(monkeypatch, 60, size=size)
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    raw.write_bytes(REFUSED[name])
    output.write_text("before")
    call = ["nms", raw, "--output", output, "--iou-threshold", "0.5"]
    whole, parts = run.error(*call), run.error(*call, *LIMIT)
    assert _without_neighbours(parts) == _without_neighbours(whole)
    assert parts.startswith("boxscore: error: ")
    assert output.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"raw.json", "kept.json"}


def _without_neighbours(error: str) -> str:
    """Leave out the text around a place, of which a piece has less."""
    return error.partition("Got '")[0] + error.rpartition("' near ")[2] if "' near byte " in error else error


def test_scoreless_results_are_refused_alike(tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps([{k: v for k, v in row.items() if k != "score"} for row in records(100)]))
    call = ["nms", raw, "--output", tmp_path / "kept.json", "--iou-threshold", "0.5"]
    assert run.error(*call) == run.error(*call, *LIMIT)


def test_what_all_rows_decide_is_refused(tmp_path: Path, run: Run) -> None:
    """Ids of two kinds, and an object around the list, which would be read at once."""
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    call = ["nms", raw, "--output", output, "--iou-threshold", "0.5", *LIMIT]
    rows = records(100)
    for key in ("image_id", "category_id"):
        raw.write_text(json.dumps([*rows, rows[0] | {key: "other"}]))
        rule = (
            f"{key} must be a number in every detection, or a text in every one, to be read a piece at a time"
        )
        assert rule in run.error(*call)
    raw.write_text(json.dumps({"images": [], "annotations": rows}))
    assert "COCO results must be a list of results, to be read a piece at a time" in run.error(*call)
    other = tmp_path / "other.jsonl"
    other.write_text('{"image": 1, "class": 2, "bbox": [0, 0, 9, 9], "score": 0.5}\n')
    assert "--memory-limit must be of detections in Parquet, or of COCO results" in run.error(
        "nms", other, "--output", output, "--iou-threshold", "0.5", *LIMIT
    )
    raw.write_text(json.dumps(rows))
    assert "what is fused must be of one form" in run.error("fuse", raw, other, "--output", output, *LIMIT)
    assert not output.exists()


def test_a_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    raw.write_text(json.dumps(records()))
    limits.before_merging(monkeypatch, lambda _: raw.write_text(json.dumps(records(401, seed=2))))
    error = run.error("nms", raw, "--output", output, "--iou-threshold", "0.5", *LIMIT)
    assert "must stay as it is while it is read" in error
    assert [path.name for path in tmp_path.iterdir()] == ["raw.json"]


@pytest.mark.parametrize("after", [0, 3, 12])
def test_a_full_disk_is_one_line(
    after: int, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(records()))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limits.full_disk_of_rows(monkeypatch, after)
    error = run.error("nms", raw, "--output", tmp_path / "kept.json", "--iou-threshold", "0.5", *LIMIT)
    assert "cannot be written: No space left on device; rows are stored there" in error
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["raw.json"]


def test_too_small_a_limit_is_refused(tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps(records(100)))
    call = ["nms", raw, "--output", tmp_path / "kept.json", "--iou-threshold", "0.5", "--workers", "1"]
    error = run.error(*call, "--memory-limit", "100MB")
    assert "--memory-limit must be 233 MB or more for about 100 boxes and 1 worker. Got 100 MB" in error
    load = Load(1_000_000)
    with pytest.raises(
        ValueError, match="leave each process 500 MB or more for the 1,000,000 boxes of an image"
    ):
        check_partition(1_000_000, load, plan_within(300_000_000, load, 1))
    check_partition(1_000_000, load, plan_within(700_000_000, load, 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda row, number: row | {"bbox": [10.0, 10, 11 + number % 3, 12]},  # corners
        lambda row, number: row | {"bbox": [*row["bbox"][:2], -1e-9, 1]} if number % 9 == 0 else row,
    ],
)
def test_warnings(change: Callable[[Record, int], Record], tmp_path: Path, run: Run) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps([change(row, number) for number, row in enumerate(records())]))
    both(run, tmp_path, "nms", raw, "--iou-threshold", 0.5)
    call = ["nms", raw, "--iou-threshold", 0.5, "--output", tmp_path / "parts.json", *LIMIT]
    assert "warning: " in run(*call).err
    assert run(*call, "--strict", status=(1, 2)).err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_warnings_of_partitions_are_given_once(workers: str, tmp_path: Path, run: Run) -> None:
    """Those of a method, and of the largest score of all, by whichever process."""
    raw = tmp_path / "raw.json"
    raw.write_text(json.dumps([row | {"score": row["score"] * 9} for row in records()]))
    limit = ["--memory-limit", "2GB", "--workers", workers]
    for call in (
        ["nms", raw, "--iou-threshold", 0.5, "--method", "soft-gaussian"],
        ["fuse", raw, raw],
    ):
        said = [run(*call, "--output", tmp_path / "made.json", *more).err for more in ([], limit)]
        assert said[0] == said[1]
        assert said[0].count("warning: ") == 1


# ---------------------------------------------------------------- the pieces


def test_ends_of_records_are_found_by_their_brackets() -> None:
    """Against a reader of letters."""
    random.seed(5)
    for _ in range(300):
        values = [
            random.choice([1, "a", '"', "\\", "},{", ',"', [1, {"a": [2]}], {"b": "]"}]) for _ in range(4)
        ]
        rows = [{"k": value, "l": values} for value in values]
        text = json.dumps(rows)[1:-1].encode()
        text = text[: random.randrange(1, len(text))]
        ends = [len(json.dumps(rows[:count])) - 2 for count in (1, 2, 3)]
        expected = [end for end in ends if end < len(text)]
        found = _json._outer_boundary(text)
        assert found == ((expected[-1], expected[-1] + 1) if expected else None)


def test_masks_without_those_of_other_rows() -> None:
    """Of every form, in any order of the rows."""
    square = [1.0, 1.0, 5.0, 1.0, 5.0, 6.0]
    given: list[Any] = [
        {"size": [9, 9], "counts": [10, 20, 51]},
        None,
        [square, [*square[:4], 7.0, 8.0, 2.0, 2.0]],
        {"size": [9, 9], "counts": b"1Z2d0"},
        {"size": [9, 9], "counts": "0Q2h0"},
        [square],
        {"size": [9, 9], "counts": [81]},
    ]
    masks = boxscore.Masks(given, image_sizes=np.full((7, 2), 9.0))
    for rows in ([0], [1], [4, 2, 0], [6, 5, 3, 3], [2, 5], [], list(range(7))):
        alone = masks[np.array(rows, dtype=np.int64)].alone()
        assert alone.given == [masks.given[row] for row in rows]
        assert len(pickle.dumps(alone)) < len(pickle.dumps(masks)) + 1


def test_merging(tmp_path: Path) -> None:
    """Rows of files of any lengths, with equal keys across their pieces."""
    rng = np.random.default_rng(0)
    for trial in range(30):
        row = rng.permutation(200)
        order = rng.integers(0, 4, 200) / 2
        owner = rng.integers(0, 5, 200)
        files = []
        for number in range(6):  # one is empty
            mine = np.flatnonzero(owner == number)
            mine = mine[np.lexsort([row[mine], order[mine]])]
            files.append(tmp_path / f"{trial}-{number}")
            write_pieces({"order": order[mine], "row": row[mine]}, files[-1], int(rng.integers(1, 40)))
        pieces = list(merged(files, ["order", "row"]))
        got = [np.concatenate([piece[name] for piece in pieces]).tolist() for name in ("order", "row")]
        assert list(zip(*got, strict=True)) == sorted(zip(order.tolist(), row.tolist(), strict=True))


def test_an_image_has_one_bucket_whatever_is_beside_it() -> None:
    ids = [0, 1, -5, 2**62, -(2**62)]
    alone = buckets_of(np.array(ids), 97)
    among = buckets_of(np.array([*ids, 2**80, "a"], dtype=object), 97)
    assert alone.tolist() == among[:5].tolist()
    many = buckets_of(np.arange(97_000), 97)
    assert np.bincount(many, minlength=97).max() < 1_500
