"""Good files of columns, as the arrays that they hold, for tests that spoil them."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from boxscore.data.vocabulary import Images

Arrays = dict[str, Any]

SQUARE = {"size": [8, 6], "counts": [10, 2, 6, 2, 28]}


def tables() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Make tables that have every kind of column."""
    images = Images.build(
        [3, 5, 9],
        file_names=["a.png", None, "c.png"],
        sizes=[[6, 8], [np.nan, np.nan], [6, 8]],
        columns={"day": np.array([1, 2, 2]), "place": np.array(["in", "out", None], dtype=object)},
    )
    boxes = [[0, 0, 3, 3], [1, 1, 4.5, 5], [0.1, 0.2, 0.3, 0.4], [2, 2, 3, 3]]
    points = np.arange(24.0).reshape(4, 2, 3) % 7
    truth = boxscore.GroundTruth.from_arrays(
        [3, 3, 5, 9],
        [1, 2, 1, 2],
        boxes,
        box_format="xywh",
        ids=[4, 7, 8, 1],
        crowd=[0, 0, 0, 1],
        masks=[SQUARE, None, SQUARE, SQUARE],
        keypoints=points,
        images=images,
        categories={1: "cat", 2: "dog"},
        columns={"x": np.arange(4.0), "word": np.array(["a", "b", "a", None], dtype=object)},
    )
    found = boxscore.Detections.from_arrays(
        [3, 3, 5, 9],
        [1, 2, 1, 1],
        boxes,
        [0.9, 0.8, 0.7, 0.6],
        keypoints=points,
        images=images,
        categories=truth.categories,
        columns={"x": np.arange(4)},
    )
    return truth, found


def arrays_of(table: boxscore.GroundTruth | boxscore.Detections, folder: Path) -> Arrays:
    """Save a table, and return its members; the header as JSON values."""
    boxscore.save_columns(table, folder / "good.npz")
    with np.load(folder / "good.npz") as content:
        arrays = {name: content[name] for name in content.files}
    return {**arrays, "header": json.loads(arrays["header"].tobytes())}


def member_bytes(array: Any) -> bytes:
    """Write an array as NumPy does, and a header as boxscore does."""
    if not isinstance(array, np.ndarray):
        array = np.frombuffer(json.dumps(array).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


def prepare(folder: Path) -> dict[str, Arrays]:
    """Write the good files that stand beside a mutant; return what mutants are made of."""
    truth, found = tables()
    good = {"gt": arrays_of(truth, folder), "dt": arrays_of(found, folder)}
    boxscore.save_columns(truth, folder / "truth.npz")
    boxscore.save_columns(found, folder / "good_dt.npz")
    return good
