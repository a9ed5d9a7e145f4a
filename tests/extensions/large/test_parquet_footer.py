"""The number of values of each column: as pyarrow counts them, and damage is refused without ending the process."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path
from typing import Any

import pytest

from boxscore.errors import FileFormatError
from boxscore.extensions.large.parquet_footer import facts_of_columns
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.formats._format import ReadOptions
from boxscore.formats.parquet import TAIL

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def drawn(seed: int) -> bytes:
    """A file of lists, structures, maps, texts and numbers, written in one of many ways."""
    draw = random.Random(seed)
    count = draw.randint(0, 40)

    def some(make: Any, most: int = 4) -> list[Any]:
        return [None if draw.random() < 0.1 else make(draw.randint(0, most)) for _ in range(count)]

    columns = {
        "image_id": pa.array(range(count), pa.int64()),
        "bbox": pa.array(some(lambda n: [[0.5] * 4] * n), pa.list_(pa.list_(pa.float64()))),
        "name": pa.array(some(lambda n: "é" * n), pa.string()),
        "tags": pa.array(some(lambda n: [("a", n)] * n), pa.map_(pa.string(), pa.int32())),
        "object": pa.array(
            some(lambda n: {"a": [n], "b": n > 1}), pa.struct({"a": pa.list_(pa.int8()), "b": pa.bool_()})
        ),
        **{
            f"extra {number}": pa.array(some(float), pa.float32())
            for number in range(draw.choice([0, 0, 20]))
        },
    }
    is_sorted = draw.choice([False, True])
    sorting = {"sorting_columns": [pq.SortingColumn(0)]} if is_sorted and hasattr(pq, "SortingColumn") else {}
    output = io.BytesIO()
    pq.write_table(
        pa.table(columns).replace_schema_metadata({b"k": b"v" * draw.choice([0, 1, 300])}),
        output,
        row_group_size=draw.choice([1, 7, 100]),
        compression=draw.choice(["none", "zstd", "snappy"]),
        write_statistics=draw.random() < 0.5,
        write_page_index=draw.random() < 0.5,
        use_dictionary=draw.random() < 0.5,
        version=draw.choice(["1.0", "2.6"]),
        **sorting,
    )
    return output.getvalue()


def footer_of(content: bytes) -> bytes:
    length = int.from_bytes(content[-TAIL : -TAIL + 4], "little")
    return content[-TAIL - length : -TAIL]


@pytest.mark.parametrize("seed", range(12))
def test_values_are_counted_as_by_pyarrow(seed: int) -> None:
    content = drawn(seed)
    metadata = pq.ParquetFile(io.BytesIO(content)).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    theirs = [[group.column(i) for i in range(group.num_columns)] for group in groups]
    facts = facts_of_columns(footer_of(content), "x.parquet")
    assert [[one.values for one in group] for group in facts] == [
        [one.num_values for one in group] for group in theirs
    ]
    for mine, group in zip(facts, theirs, strict=True):
        assert [one.nbytes for one in mine] == [one.total_uncompressed_size for one in group]
        if group[0].statistics is not None and group[0].statistics.has_min_max:
            ends = [int.from_bytes(end or b"", "little") for end in (mine[0].least, mine[0].largest)]
            assert ends == [group[0].statistics.min, group[0].statistics.max]
        else:
            assert (mine[0].least, mine[0].largest) == (None, None)


def test_any_damage_is_refused_or_read() -> None:
    """Cut anywhere, or up to three bytes replaced."""
    footer, draw, refusals = footer_of(drawn(1)), random.Random(0), 0
    spoiled = [footer[:length] for length in range(0, len(footer), 7)]
    for _ in range(150):
        data = bytearray(footer)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        spoiled.append(bytes(data))
    for data in spoiled:
        try:
            counts = facts_of_columns(data, "x.parquet")
        except FileFormatError:
            refusals += 1
        else:
            assert all(one.values >= 0 for group in counts for one in group)
    assert 60 < refusals < len(spoiled)


@pytest.mark.parametrize(
    "data",
    [b"\x4c" * 100_000, b"\x49" + b"\x19" * 100_000, b"\x16" + b"\xff" * 100, b"\x18\xff\xff\xff\xff\x0f"],
)
def test_deep_and_endless_bytes(data: bytes) -> None:
    with pytest.raises(FileFormatError, match="must describe its columns"):
        facts_of_columns(data, "x.parquet")


def test_more_boxes_than_the_footer_says(tmp_path: Path) -> None:
    """Rows are told apart by what the footer says: one more would be another's."""
    path = tmp_path / "a.parquet"
    boxes = [[[0.0, 0, 5, 5]] * 3] * 4
    pq.write_table(pa.table({"image_id": [1, 2, 3, 4], "bbox": boxes, "category_id": [[1, 1, 1]] * 4}), path)
    groups = ParquetGroups.open(path, ReadOptions())
    assert [group.boxes for group in groups.groups] == [48]
    with pytest.raises(FileFormatError, match="Got 12 boxes, where its footer says 11"):
        groups.read(groups.groups[0]._replace(boxes=11))


def test_part_files_with_a_column_of_two_types(tmp_path: Path) -> None:
    """In words: Arrow writes its types."""
    boxes = {"image_id": [1], "category_id": [1], "x1": [0.0], "y1": [0.0], "x2": [5.0], "y2": [5.0]}
    pq.write_table(pa.table({**boxes, "score": [0.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**boxes, "score": [[{"class": "cat"}]]}), tmp_path / "b.parquet")
    rule = "part files must have the same columns. Got column 'score' of two types in "
    with pytest.raises(FileFormatError, match=f"^{re.escape(rule)}"):
        ParquetGroups.open(tmp_path, ReadOptions())
