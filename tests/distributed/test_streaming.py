"""Parquet of every layout and order, read in partitions: the bits of reading it at once."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.distributed import scan

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

IMAGES, CLASSES = 40, 3


def drawn(seed: int, *, texts: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of ground truth and of detections: equal scores, images without objects, crowds."""
    rng = np.random.default_rng(seed)

    def boxes(count: int) -> dict[str, Any]:
        corner = rng.integers(0, 90, (count, 2)).astype(float)
        sides = rng.choice([4.0, 10.0, 30.0, 40.0], (count, 2))
        image = rng.integers(0, IMAGES, count) * 3 + 1
        return {"image": image, "label": rng.integers(0, CLASSES, count), "box": np.hstack([corner, sides])}

    truth, found = boxes(120), boxes(400)
    truth["crowd"] = rng.random(120) < 0.1
    found["image"] = rng.choice(truth["image"], 400)
    copied = rng.integers(0, 120, 250)
    for name in ("image", "label", "box"):
        found[name][:250] = truth[name][copied]
    found["box"][:250, 2:] += rng.integers(0, 3, (250, 2))
    found["score"] = rng.integers(1, 20, 400) / 20
    if texts:
        for side in (truth, found):
            side["image"] = np.array([f"img_{number:03d}" for number in side["image"].tolist()], dtype=object)
    return truth, found


def flat(columns: dict[str, Any], order: Any) -> Any:
    box = columns["box"][order]
    table = {
        "image_id": columns["image"][order].tolist(),
        "category_id": columns["label"][order],
        **{name: box[:, at] for at, name in enumerate(("left", "top", "width", "height"))},
    }
    table |= {
        name: columns[key][order]
        for name, key in (("score", "score"), ("iscrowd", "crowd"))
        if key in columns
    }
    return pa.table(table)


def lists(columns: dict[str, Any], order: Any, *, structures: bool = False) -> Any:
    image = columns["image"][order]
    rows = []
    for one in dict.fromkeys(image.tolist()):
        own = order[np.flatnonzero(image == one)]
        item = {"xywh": columns["box"][own].tolist(), "category_id": columns["label"][own].tolist()}
        item |= {
            name: columns[key][own].tolist()
            for name, key in (("score", "score"), ("iscrowd", "crowd"))
            if key in columns
        }
        if structures:
            rows.append(
                {
                    "image_id": one,
                    "objects": [
                        dict(zip(item, cell, strict=True)) for cell in zip(*item.values(), strict=True)
                    ],
                }
            )
        else:
            rows.append({"image_id": one, **item})
    return pa.Table.from_pylist(rows)


def write(table: Any, path: Path, *, files: int, rows: int) -> Path:
    """Write a file, or a folder of part files, in row groups of some rows."""
    if files == 1:
        pq.write_table(table, path, row_group_size=rows)
        return path
    path.mkdir()
    bounds = np.linspace(0, len(table), files + 1).astype(int)
    for number, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
        pq.write_table(table.slice(low, high - low), path / f"part-{number}.parquet", row_group_size=rows)
    return path


def bits(evaluation: boxscore.Evaluation) -> Any:
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    counts = {name: array.tolist() for name, array in evaluation.class_counts.items()}
    return arrays, np.array(list(evaluation.metrics.values())).tobytes(), counts, evaluation.counts


def whole(truth: Any, found: Any, protocol: Any) -> boxscore.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        return boxscore.evaluate(truth, found, protocol=protocol)


@pytest.mark.parametrize("layout", ["flat", "lists", "structures"])
@pytest.mark.parametrize("order", ["by image", "grouped", "scattered"])
@pytest.mark.parametrize("protocol", ["coco", "voc2012"])
def test_every_layout_and_order(tmp_path: Path, layout: str, order: str, protocol: str) -> None:
    truth, found = drawn(7, texts=layout == "lists")
    rng = np.random.default_rng(3)
    sides = []
    for name, columns in (("truth", truth), ("found", found)):
        if order == "by image":
            rows = np.argsort(columns["image"], kind="stable")
        elif order == "grouped":
            place = {one: at for at, one in enumerate(rng.permutation(np.unique(columns["image"])).tolist())}
            rows = np.argsort([place[one] for one in columns["image"].tolist()], kind="stable")
        else:
            rows = rng.permutation(len(columns["image"]))
        table = (
            flat(columns, rows)
            if layout == "flat"
            else lists(columns, rows, structures=layout == "structures")
        )
        sides.append(
            write(
                table,
                tmp_path / f"{name}{'' if name == 'found' else '.parquet'}",
                files=3 if name == "found" else 1,
                rows=16,
            )
        )
    expected = bits(whole(*sides, protocol))
    for partitions in (1, 5):
        assert bits(scan(*sides, protocol=protocol, partitions=partitions)) == expected
    table = boxscore.load_ground_truth(sides[0])
    assert bits(scan(table, sides[1], protocol=protocol, partitions=4)) == expected
