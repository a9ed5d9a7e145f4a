"""Everything that a result says, to the bit; and tables cut into parts."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.distributed import Part
from support.quiet import quiet

Tables = tuple[boxscore.GroundTruth, boxscore.Detections]


def bits(evaluation: boxscore.Evaluation) -> dict[str, Any]:
    """Everything that a result prints and draws, to the bit."""
    drawn = {}
    if evaluation.protocol.matching.scores == "given":
        drawn = {name: array.tobytes() for name, array in evaluation.arrays().items()}
        drawn["ap by iou"] = evaluation.ap_by_iou().tobytes()
    values = {name: array.tobytes() for name, array in evaluation.class_values.items()}
    counts = {name: array.tolist() for name, array in evaluation.class_counts.items()}
    return {
        **drawn,
        **values,
        "class counts": counts,
        "images": evaluation._image_fingerprint,
        "metrics": np.array(list(evaluation.metrics.values())).tobytes(),
        "counts": evaluation.counts,
        "repr": repr(evaluation),
        "labels": evaluation.labels,
        "json": evaluation.to_json(),
    }


def whole(tables: tuple[Any, Any], protocol: Any) -> boxscore.Evaluation:
    with quiet():
        return boxscore.evaluate(*tables, protocol=protocol)


def parts_of(tables: tuple[Any, Any], protocol: Any, partition: Any) -> list[Part]:
    """Return the parts of a data set; ``partition`` says in which each image is, or how many there are."""
    parts: list[Part] = []

    def keep(run: Callable[[Any], Part], tasks: Iterable[Any]) -> list[Part]:
        parts.extend(map(run, tasks))
        return parts

    scanned(tables, protocol, partition, keep)
    return parts


def columns_of(part: Part) -> dict[str, Any]:
    """Return what the file of a part holds, by name."""
    with np.load(io.BytesIO(part.to_bytes())) as archive:
        return dict(archive)


def tasks_of(tables: tuple[Any, Any], protocol: Any, partition: Any) -> list[Any]:
    """Return what :func:`boxscore.scan` gives its ``map``: each task makes a part."""
    kept: list[Any] = []

    def keep(run: Callable[[Any], Part], tasks: Iterable[Any]) -> list[Part]:
        kept.extend(tasks)
        return [run(task) for task in kept]

    scanned(tables, protocol, partition, keep)
    return kept


def scanned(tables: tuple[Any, Any], protocol: Any, partition: Any, run_all: Any) -> Any:
    """Scan tables without a word, in as many partitions as told, or with each image in that of its number."""
    if not isinstance(partition, int):
        number, ids = np.asarray(partition), tables[0].images.ids
        partition = [ids[number == one].tolist() for one in range(int(number.max(initial=0)) + 1)]
    with quiet():
        return boxscore.scan(*tables, protocol=protocol, partitions=partition, map=run_all)


def drawn_tables(seed: int, images: int = 7) -> Tables:
    """Draw objects and detections of few classes; many equal scores, images and classes without any."""
    rng = np.random.default_rng(seed)
    count, found = rng.integers(0, 14), rng.integers(0, 30)
    corner = rng.integers(0, 12, (count, 2)) * 4.0
    boxes = np.hstack([corner, corner + rng.integers(2, 9, (count, 2)) * 4.0])
    image, label = rng.integers(0, images, count), rng.integers(0, 4, count)
    truth = boxscore.GroundTruth.from_arrays(
        image, label, boxes, images=range(images), categories=range(4), crowd=rng.random(count) < 0.1
    )
    of = rng.integers(0, max(count, 1), found if count else 0)
    near = boxes[of] + rng.integers(-1, 2, (len(of), 4)) * 2.0
    same = rng.random(len(of)) < 0.8
    detections = boxscore.Detections.from_arrays(
        np.where(same, image[of], rng.integers(0, images, len(of))),
        np.where(rng.random(len(of)) < 0.8, label[of], rng.integers(0, 4, len(of))),
        near,
        rng.integers(1, 6, len(of)) / 5,
    )
    return truth, detections


def partitions(images: int) -> st.SearchStrategy[list[int]]:
    """Draw a number up to 3 for each image: its part, or its slice."""
    return st.lists(st.integers(0, 3), min_size=images, max_size=images)


def drawn_parts(tables: Tables, protocol: Any, data: st.DataObject) -> list[Part]:
    """Cut tables into parts that are drawn; there are none of no images."""
    images = len(tables[0].images)
    return parts_of(tables, protocol, data.draw(partitions(images), label="partition")) if images else []


def scene(seed: int = 5, classes: int = 3) -> Tables:
    """Draw twelve images with columns, two of them without detections, and one without anything."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 60, (60, 2))
    boxes = np.hstack([corner, corner + rng.integers(8, 40, (60, 2))]).astype(float)
    image, label = rng.integers(0, 11, 60), rng.integers(0, classes, 60)
    columns = {"night": np.arange(12) % 3 == 0, "height": np.arange(12) * 1.5}
    truth = boxscore.GroundTruth.from_arrays(
        image,
        label,
        boxes,
        images=Images.build(range(12), columns=columns),
        categories=range(classes),
    )
    kept = np.flatnonzero(np.tile(image, 3) > 1)
    found = boxscore.Detections.from_arrays(
        np.tile(image, 3)[kept],
        np.tile(label, 3)[kept],
        (np.tile(boxes, (3, 1)) + rng.normal(0, 2, (180, 4)).clip(-3, 3))[kept],
        (rng.integers(1, 12, 180) / 12)[kept],
    )
    return truth, found
