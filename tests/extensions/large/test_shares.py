"""Shares of a data set: evaluated apart, saved in parts, merged on disk to the bits of one evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.distributed import load_part, merge
from boxscore.extensions.large.shares import ImageShard
from support import limits
from support.each import each
from support.running import Run
from support.samples import DT, GT

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IDS: dict[str, Any] = {
    "numbers": lambda image: image * 3 - 70,
    "above 2 ** 63": lambda image: image.astype(np.uint64) + np.uint64(2**63),
    "texts": lambda image: [f"{one % 7}/frame {one}.jpg" for one in image.tolist()],
}


def written(folder: Path, ids: str, order: str, *, images: int = 60) -> list[str]:
    """Write two folders of Parquet, in the order of the ids or none; every tenth image has no detection."""
    rng = np.random.default_rng(len(ids) + len(order))
    sides = []
    for name, count in (("truth", 5 * images), ("found", 15 * images)):
        image = rng.integers(0, images, count)
        if name == "truth":
            image[:images] = np.arange(images)
        else:
            image = image[image % 10 > 0]
        corner = rng.integers(0, 4, (len(image), 2)) * 20.0
        columns: dict[str, Any] = {"image_id": IDS[ids](image), "category_id": rng.integers(0, 3, len(image))}
        columns |= {"x1": corner[:, 0], "y1": corner[:, 1], "x2": corner[:, 0] + 15, "y2": corner[:, 1] + 15}
        if name == "found":
            columns["score"] = rng.integers(0, 12, len(image)) / 12
        table = pa.table(columns)
        if order == "by id":
            table = table.sort_by("image_id")
        (folder / name).mkdir()
        half = len(table) // 2
        for number, piece in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(piece, folder / name / f"{number}.parquet", row_group_size=20)
        sides.append(str(folder / name))
    return sides


def saved(run: Run, sides: list[str], shares: int, folder: Path, *options: object) -> list[str]:
    files = []
    for number in range(1, shares + 1):
        files.append(str(folder / f"{number}.npz"))
        shared = ["--shard", f"{number}/{shares}", "--save-part", files[-1], "--no-digest"]
        run("evaluate", *sides, *shared, *options)
    return files


@pytest.mark.parametrize("protocol", ["coco", pytest.param("voc2007", marks=pytest.mark.long)])
@pytest.mark.parametrize("order", ["by id", "scattered"])
@pytest.mark.parametrize("ids", list(IDS))
def test_shares_are_merged(ids: str, order: str, protocol: str, tmp_path: Path, run: Run) -> None:
    sides = written(tmp_path, ids, order)
    chosen = ["--protocol", protocol, "--per-class"]
    expected = run("evaluate", *sides, "--no-digest", *chosen).out
    files = saved(run, sides, 3, tmp_path, "--protocol", protocol)
    assert run("merge", *files, "--per-class").out == expected
    assert run("merge", *files, "--per-class", "--memory-limit", "1GB").out == expected


@pytest.mark.long
@pytest.mark.parametrize("shares", [3, 30])
def test_shares_of_what_is_read_at_once_are_merged(shares: int, tmp_path: Path, run: Run) -> None:
    """More shares than images, too: the last ones are of none."""
    chosen = ["--classes", "circle", "square"]
    expected = run("evaluate", GT, DT, "--no-digest", *chosen).out
    files = saved(run, [str(GT), str(DT)], shares, tmp_path, *chosen)
    assert run("merge", *files).out == expected
    assert run("merge", *files, "--memory-limit", "1GB", "--workers", "1").out == expected


@pytest.mark.long
def test_a_file_of_several_parts(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = written(tmp_path, "numbers", "by id")
    expected = run("evaluate", *sides, "--no-digest").out
    limits.small_partitions(monkeypatch, 100)
    files = saved(run, sides, 2, tmp_path, "--memory-limit", "1GB")
    assert run("merge", *files).out == expected
    assert run("merge", *files, "--memory-limit", "1GB").out == expected
    assert repr(merge(files)) == repr(boxscore.evaluate(*sides))
    with pytest.raises(
        boxscore.FileFormatError, match=r"must hold one part. Got \d+ in .*1.npz; boxscore.distributed.merge"
    ):
        load_part(files[0])


@pytest.mark.long
def test_a_share_that_is_missing_is_named(tmp_path: Path, run: Run) -> None:
    sides = written(tmp_path, "numbers", "by id")
    files = saved(run, sides, 3, tmp_path)
    said = "shards to merge must be complete. Got 2 of 3, without 2/3; run boxscore evaluate --shard K/N"
    for options in ([], ["--memory-limit", "1GB"]):
        assert said in run.error("merge", files[0], files[2], *options)
    run("evaluate", *sides, "--save-part", tmp_path / "whole.npz", "--no-digest")
    mixed = run.error("merge", *files, tmp_path / "whole.npz")
    assert "come from one split of one data set. Got shards of 3, and parts that are not shards" in mixed


@each([(images, shares) for images in (0, 1, 2, 5) for shares in (1, 2, 3, 7)])
def test_an_image_that_nobody_lists_is_in_one_share(images: int, shares: int) -> None:
    asked = np.arange(0, 70, 5)
    kept = np.zeros(len(asked), dtype=int)
    for number in range(1, shares + 1):
        share = ImageShard(number, shares)
        share.choose(Images.build([10 * (image + 1) for image in range(images)]))
        kept += share.keeps(asked)
    assert (kept == 1).all(), kept


@pytest.mark.parametrize("shares", [1, 4])
def test_partitions_of_a_share_are_as_large_as_those_of_all(
    shares: int, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = written(tmp_path, "numbers", "by id", images=400)
    boxes = sum(pq.read_table(side).num_rows for side in sides)
    limits.small_partitions(monkeypatch, 500)
    part = tmp_path / "part.npz"
    options = ["--shard", f"1/{shares}", "--memory-limit", "1GB", "--save-part", part]
    run("evaluate", *sides, *options, "--no-digest")
    with pytest.raises(boxscore.FileFormatError, match=r"must hold one part. Got \d+ in") as error:
        load_part(part)
    assert int(error.value.got) == pytest.approx(boxes / 500 / shares, abs=2)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "half", "1/3/5"])
def test_what_is_no_share(text: str, run: Run) -> None:
    assert "--shard must be K/N, such as 1/8, 2/8, ..., 8/8. Got" in run.error(
        "evaluate", GT, DT, "--shard", text
    )


@pytest.mark.long
def test_a_share_reads_its_row_groups_only(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.extensions.large.parquet_groups import ParquetGroups

    sides = written(tmp_path, "numbers", "by id", images=600)
    read: list[Any] = []
    plain = ParquetGroups.read

    def noted(self: ParquetGroups, group: Any, columns: Any = None) -> Any:
        if columns is None:
            read.append((self.path.name, group))
        return plain(self, group, columns)

    monkeypatch.setattr(ParquetGroups, "read", noted)
    run("evaluate", *sides, "--shard", "2/4", "--no-digest")
    groups = {name: len({group for side, group in read if side == name}) for name in ("truth", "found")}
    assert groups["truth"] <= 41  # of 150, and a few to see what boxes are
    assert groups["found"] <= 110  # of 405


def test_a_footer_that_says_other_images_is_refused(tmp_path: Path, run: Run) -> None:
    sides = written(tmp_path, "numbers", "by id")
    path = Path(sides[1]) / "0.parquet"
    content = path.read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    least = pq.ParquetFile(path).metadata.row_group(2).column(0).statistics.min
    one, other = (int(value).to_bytes(8, "little", signed=True) for value in (least, least + 1))
    content = content[:start] + content[start:].replace(one, other)
    path.write_bytes(content)
    said = run.error("evaluate", *sides, "--memory-limit", "1GB")
    assert "image_id must be in the range stated in the footer of the file" in said


@pytest.mark.long
def test_detections_by_file_name(tmp_path: Path, run: Run) -> None:
    """Where they have other names than ids, these are looked up here, and the rows regrouped."""
    sides = written(tmp_path, "numbers", "by id")
    for name, side in (("truth", sides[0]), ("found", sides[1])):
        for path in Path(side).iterdir():
            table = pq.read_table(path)
            names = pa.array([f"photos/{one:05d}.jpg" for one in table.column("image_id").to_pylist()])
            table = (
                table.append_column("file_name", names)
                if name == "truth"
                else table.set_column(0, "image_id", names)
            )
            pq.write_table(table, path, row_group_size=20)
    expected = run("evaluate", *sides, "--no-digest").out
    assert run("evaluate", *sides, "--no-digest", "--memory-limit", "1GB").out == expected
    files = saved(run, sides, 3, tmp_path)
    assert run("merge", *files).out == expected


@pytest.mark.long
def test_unlisted_images_of_all_partitions_are_counted(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = written(tmp_path, "numbers", "by id")
    path = Path(sides[1]) / "1.parquet"
    table = pq.read_table(path)
    ids = table.column("image_id").to_pylist()
    ids[40], ids[-2:] = ids[40] + 1, [10**6, 10**6 + 1]
    pq.write_table(table.set_column(0, "image_id", pa.array(ids)), path, row_group_size=20)
    limits.small_partitions(monkeypatch, 100)
    for workers in ("1", "2"):
        said = run.error("evaluate", *sides, "--memory-limit", "2GB", "--workers", workers)
        assert "3 images of these detections are not listed, perhaps an image without objects" in said
        assert "boxscore convert --gt GT --dt DT --unlisted-images drop --to parquet" in said
