"""Columns of categories in Parquet: a value that no row has is no image, whoever wrote the dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore

pa = pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
pq = pytest.importorskip("pyarrow.parquet")
pd = pytest.importorskip("pandas")


def frame(rows: int, **more: Any) -> Any:
    corner = np.arange(rows) * 20.0
    image = np.array([f"{row % 9}.jpg" for row in range(rows)])
    columns = {"image_id": image, "category_id": 1, "x1": corner, "y1": 0.0, "x2": corner + 9, "y2": 9.0}
    return pd.DataFrame({**columns, **more})


def test_categories_that_were_filtered_out_are_no_images(tmp_path: Path) -> None:
    table = frame(9)
    table["image_id"] = table["image_id"].astype("category")
    kept = table[table["image_id"].isin(["2.jpg", "5.jpg"])]
    kept.to_parquet(tmp_path / "truth.parquet")
    assert len(pq.read_table(tmp_path / "truth.parquet").column("image_id").chunk(0).dictionary) == 9
    truth = boxscore.load_ground_truth(tmp_path / "truth.parquet")
    assert truth.images.ids.tolist() == ["2.jpg", "5.jpg"]
    assert truth.images.ids.tolist() == boxscore.GroundTruth.from_pandas(kept).images.ids.tolist()


@pytest.mark.parametrize("side", ["truth", "found", "both"])
def test_partitions_have_their_own_images(side: str, tmp_path: Path) -> None:
    tables = {"truth": frame(9), "found": frame(60, score=np.linspace(0.1, 0.9, 60))}
    for name, table in tables.items():
        written = pa.Table.from_pandas(table.sort_values("image_id"), preserve_index=False)
        if side in (name, "both"):
            ids = written.column("image_id").combine_chunks().dictionary_encode()
            written = written.set_column(0, "image_id", ids)
        pq.write_table(written, tmp_path / f"{name}.parquet", row_group_size=20)
    paths = tmp_path / "truth.parquet", tmp_path / "found.parquet"
    whole = boxscore.evaluate(*paths, digest=False)
    assert repr(dict(boxscore.scan(*paths, partitions=3).metrics)) == repr(dict(whole.metrics))
