"""Suppression and fusion of Parquet in partitions: the rows of all at once, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import Detections
from support import limits
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

import pyarrow.parquet as pq

from boxscore.formats.parquet import FORMAT

LIMIT = ["--memory-limit", "1GB", "--workers", "1"]


def detections(seed: int, *, strings: bool = False, columns: bool = True) -> Detections:
    """Draw heaps of boxes in 30 images, in no order of the images, with a column of the user's."""
    rng = np.random.default_rng(seed)
    count = 400
    corner = rng.integers(0, 60, (count, 2)).astype(float)
    image = rng.integers(0, 30, count).tolist()
    return Detections.from_arrays(
        [f"image {one:03d}" for one in image] if strings else image,
        rng.choice(["a", "b", "c"], count).tolist(),
        np.hstack([corner, corner + rng.integers(5, 40, (count, 2))]),
        rng.integers(1, 100, count) / 100,
        columns={"camera": rng.choice(["left", "right"], count).astype(object)} if columns else {},
    )


def rows(path: Path, *, by_image: bool = True) -> list[dict[str, Any]]:
    """Read the rows of a file; those of all at once in the order of partitions."""
    every: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return sorted(every, key=lambda row: row["image_id"]) if by_image else every


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        ["--iou-threshold", "0.5"],
        ["--method", "soft-gaussian", "--max-per-image", "5"],
        ["--method", "nmm", "--iou-threshold", "0.4", "--class-agnostic"],
        ["--iou-threshold", "0.3", "--groups", "groups.txt"],
    ],
)
def test_nms(
    options: list[str], strings: bool, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 90)
    (tmp_path / "groups.txt").write_text("a,b\n")
    options = [str(tmp_path / word) if word == "groups.txt" else word for word in options]
    FORMAT.save(detections(1, strings=strings), tmp_path / "raw.parquet")
    said = []
    for name, more in (("whole", []), ("parts", LIMIT)):
        call = ["nms", tmp_path / "raw.parquet", "--output", tmp_path / f"{name}.parquet", *options, *more]
        said.append(run(*call).err.replace(name, ""))
    assert said[0] == said[1]
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    assert pq.read_schema(whole).equals(pq.read_schema(parts), check_metadata=True)
    assert pq.ParquetFile(parts).num_row_groups > 2
    image = [row["image_id"] for row in rows(parts, by_image=False)]
    assert image == sorted(image)
    assert [*map(_unordered, rows(parts))] == [*map(_unordered, rows(whole))]
    assert 0 < len(image) < 400


def _unordered(row: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((name, repr(value)) for name, value in row.items())


@pytest.mark.parametrize(
    "options", [["--weights", "2", "1"], ["--method", "nmw", "--score-threshold", "0.2"]]
)
def test_fuse(options: list[str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that one file lacks, and images that one file lacks, are no matter."""
    limits.small_partitions(monkeypatch, 90)
    first = detections(1, columns=False)
    second = detections(2, columns=False)
    second = second.take(np.flatnonzero((second.image > 8) & (second.category != 1)))
    FORMAT.save(first, tmp_path / "first.parquet")
    FORMAT.save_partitions(second, tmp_path / "second", 3)
    files = [tmp_path / "first.parquet", tmp_path / "second"]
    for name, more in (("whole", []), ("parts", LIMIT)):
        run("fuse", *files, "--output", tmp_path / f"{name}.parquet", *options, *more)
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    assert rows(parts, by_image=False) == rows(whole)
    assert pq.read_schema(whole).equals(pq.read_schema(parts), check_metadata=True)


def test_what_is_refused(tmp_path: Path, run: Run) -> None:
    """Nothing is written then, and an older file stays."""
    FORMAT.save(detections(1), tmp_path / "raw.parquet")
    (tmp_path / "raw.json").write_text("[]")
    (tmp_path / "raw.csv").write_text("image,class,x1,y1,x2,y2,score\n1,2,0,0,9,9,0.5\n")
    output = tmp_path / "kept.parquet"
    output.write_text("before")
    nms = ["nms", tmp_path / "raw.parquet", "--output", output, "--iou-threshold", "0.5"]
    for name in ("raw.csv", "raw.json"):
        said = run.error("nms", tmp_path / name, *nms[2:], *LIMIT)
        assert f"--memory-limit must be used with detections in Parquet. Got '{tmp_path / name}'" in said
        assert "convert them: boxscore convert --gt GT --dt DT --to parquet --output FILE" in said
    json_files = [tmp_path / "raw.json"] * 2
    assert "--memory-limit must be used with detections in Parquet" in run.error(
        "fuse", *json_files, "--output", output, *LIMIT
    )
    both_forms = [tmp_path / "raw.parquet", tmp_path / "raw.json"]
    assert "the results to fuse must have one format" in run.error(
        "fuse", *both_forms, "--output", output, *LIMIT
    )
    assert "--merge-patches must be left out" in run.error(*nms, "--merge-patches", "scaled", *LIMIT)
    assert "--memory-limit must be 233 MB or more" in run.error(*nms, "--memory-limit", "100MB")
    (tmp_path / "groups.txt").write_text("a,horse\n")
    assert "a class of a group must occur" in run.error(*nms, "--groups", tmp_path / "groups.txt", *LIMIT)
    assert output.read_text() == "before"


def test_a_class_of_two_names_is_refused(tmp_path: Path, run: Run) -> None:
    boxes = [[0, 0, 9, 9]]
    for number, name in enumerate(("cat", "dog")):
        table = Detections.from_arrays([1], [7], boxes, [0.5], categories={7: name})
        FORMAT.save(table, tmp_path / f"{number}.parquet")
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    error = run.error("fuse", *files, "--output", tmp_path / "fused.parquet", *LIMIT)
    assert "class 7 must have the same name in all files ('cat' in an earlier one). Got 'dog'" in error


@pytest.mark.parametrize("workers", ["1", "2"])
def test_warnings_of_partitions_are_given_once(
    workers: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a method, and of the largest score of all, by whichever process."""
    limits.small_partitions(monkeypatch, 90)
    table, raw = detections(1, columns=False), tmp_path / "raw.parquet"
    FORMAT.save(table.replaced(scores=table.scores * 9), raw)
    limit = ["--memory-limit", "2GB", "--workers", workers]
    for call in (
        ["nms", raw, "--iou-threshold", "0.5", "--method", "soft-gaussian"],
        ["fuse", raw, raw],
    ):
        said = [run(*call, "--output", tmp_path / "made.parquet", *more).err for more in ([], limit)]
        whole, parts = (
            [line for line in text.splitlines() if not line.startswith("boxscore: rewriting: ")]  # progress
            for text in said
        )
        assert whole == parts
        assert sum("warning: " in line for line in whole) == 1
