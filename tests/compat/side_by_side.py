"""Two libraries on the same input: generated data sets, and what "the same" means."""

from __future__ import annotations

import contextlib
import copy
import io
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask

from boxscore.compat import pycocotools as drop_in


class Library(NamedTuple):
    COCO: Any
    COCOeval: Any
    mask: Any


REFERENCE = Library(pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval, pycocotools.mask)
OURS = Library(drop_in.COCO, drop_in.COCOeval, drop_in.mask)

Dataset = dict[str, Any]
Results = list[dict[str, Any]]


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit, types included."""
    if isinstance(one, np.ndarray):
        return (
            isinstance(other, np.ndarray)
            and one.dtype == other.dtype
            and one.shape == other.shape
            and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (float, np.floating)):
        return bool(one == other or (one != one and other != other))
    return bool(one == other)


def outcome(function: Callable[[], Any]) -> tuple[Any, str]:
    """What a call gives, or the type of what it raises, and what it prints, times left out."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), np.errstate(all="ignore"):
        try:
            value = function()
        except Exception as error:
            value = type(error).__name__
    return value, re.sub(r"t=[\d.]+s", "t=s", text.getvalue())


def load(library: Library, dataset: Dataset, results: Results | Dataset) -> tuple[Any, Any]:
    """Ground truth and results as the library's objects, of copies."""
    truth = library.COCO()
    truth.dataset = copy.deepcopy(dataset)
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        if isinstance(results, list):
            found = truth.loadRes(copy.deepcopy(results)) if results else library.COCO()
        else:
            found = library.COCO()
            found.dataset = copy.deepcopy(results)
            found.createIndex()
    return truth, found


def random_polygon(rng: np.random.Generator, size: int) -> list[float]:
    corners = int(rng.integers(3, 7))
    return np.round(rng.uniform(0, size, 2 * corners), 1).tolist()


def random_segmentation(rng: np.random.Generator, height: int, width: int, *, compressed: bool) -> Any:
    kind = rng.integers(3)
    if not compressed and kind == 0:
        return [random_polygon(rng, min(height, width)) for _ in range(rng.integers(1, 3))]
    mask = np.zeros((height, width), dtype=np.uint8, order="F")
    y, x = rng.integers(0, height - 2), rng.integers(0, width - 2)
    mask[y : y + rng.integers(0, 20), x : x + rng.integers(0, 20)] = 1
    rle = pycocotools.mask.encode(mask)
    if not compressed and kind == 1:
        runs = np.diff(np.flatnonzero(np.diff(mask.ravel(order="F"), prepend=2, append=2)))
        counts = runs.tolist() if mask[0, 0] == 0 else [0, *runs.tolist()]
        return {"size": [height, width], "counts": counts}
    return rle


def random_keypoints(rng: np.random.Generator, box: list[float], joints: int = 17) -> list[float]:
    x = box[0] + rng.uniform(0, 1, joints) * box[2]
    y = box[1] + rng.uniform(0, 1, joints) * box[3]
    visible = rng.integers(0, 3, joints) * (rng.random() > 0.2)
    return np.stack([np.round(x), np.round(y), visible], axis=1).ravel().tolist()


def random_dataset(
    rng: np.random.Generator,
    kind: str = "bbox",
    *,
    images: int = 4,
    categories: int = 3,
    truths: int = 18,
    detections: int = 40,
    first_id: int = 1,
) -> tuple[Dataset, Results]:
    """A small crowded data set with ties, crowds, touching boxes and areas on the edge of a range."""
    height, width = 40, 50
    image_ids = rng.permutation(np.arange(7, 7 + images)).tolist()
    category_ids = rng.permutation(np.arange(2, 2 + categories)).tolist()

    def box() -> list[float]:
        step = 4 if rng.random() < 0.7 else 1
        corner = rng.integers(0, 6, 2) * step
        return [float(v) for v in (*corner, *(rng.integers(0, 5, 2) * step))]

    annotations = []
    for number in range(truths):
        annotation: dict[str, Any] = {
            "id": first_id + number,
            "image_id": int(rng.choice(image_ids)),
            "category_id": int(rng.choice(category_ids)),
            "bbox": box(),
            "area": float(rng.choice([16.0, 64.0, 1024.0, 9216.0, 50000.0, rng.uniform(0, 2e4)])),
            "iscrowd": int(rng.random() < 0.15),
        }
        if rng.random() < 0.2:
            annotation["ignore"] = 1
        if kind == "segm":
            annotation["segmentation"] = random_segmentation(rng, height, width, compressed=False)
        if kind == "keypoints":
            annotation["keypoints"] = random_keypoints(rng, annotation["bbox"])
            annotation["num_keypoints"] = sum(v > 0 for v in annotation["keypoints"][2::3])
        annotations.append(annotation)
    rng.shuffle(annotations)
    results = []
    for _ in range(detections):
        result: dict[str, Any] = {
            "image_id": int(rng.choice(image_ids)),
            "category_id": int(rng.choice([*category_ids, *category_ids, 99])),
            "score": float(rng.choice([0.1, 0.5, 0.9, round(rng.random(), 2)])),
        }
        if kind == "bbox":
            result["bbox"] = box()
        elif kind == "segm":
            result["segmentation"] = random_segmentation(rng, height, width, compressed=True)
        else:
            result["keypoints"] = random_keypoints(rng, box())
        results.append(result)
    dataset = {
        "info": {"year": 2024, "note": "generated"},
        "images": [{"id": i, "height": height, "width": width, "file_name": f"{i}.png"} for i in image_ids],
        "categories": [
            {"id": k, "name": f"class {k}", "supercategory": f"group {k % 2}"} for k in category_ids
        ],
        "annotations": annotations,
    }
    return dataset, results


def assert_same_evaluation(reference: Any, ours: Any) -> None:
    """Everything that two evaluated ``COCOeval`` hold."""
    for name in ("precision", "recall", "scores", "counts"):
        assert same(reference.eval[name], ours.eval[name]), name
    assert list(reference.eval) == list(ours.eval)
    assert same(reference.stats, ours.stats)
    assert same(dict(sorted(vars(reference.params).items())), dict(sorted(vars(ours.params).items())))
    assert same(list(reference.evalImgs), list(ours.evalImgs))
    assert same(dict(reference.ious), dict(ours.ious))
    assert same(reference.cocoGt.dataset, ours.cocoGt.dataset)
    assert same(reference.cocoDt.dataset, ours.cocoDt.dataset)
