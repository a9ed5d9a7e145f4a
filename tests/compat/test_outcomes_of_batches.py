"""Outcomes of batches, merged in every way that training code has, beside pycocotools on the same lists."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from side_by_side import REFERENCE, Library, load, random_dataset, same

from boxscore.compat import faster_coco_eval
from support.each import each

FASTER = Library(faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster, faster_coco_eval.mask)
KINDS = ("bbox", "segm", "keypoints")

Merged = tuple[list[int], Any]
"""Image ids, and the outcomes [K, A, I]."""


def sorted_by_image(ids: Any, blocks: Any) -> Merged:
    """Of a repeated image the first; RT-DETR, torchvision and others."""
    ids, first = np.unique(ids, return_index=True)
    return ids.tolist(), blocks[..., first]


def as_they_came(ids: Any, blocks: Any) -> Merged:
    """D-FINE sorts the ids alone."""
    first = np.sort(np.unique(ids, return_index=True)[1])
    return np.unique(ids).tolist(), blocks[..., first]


def some_images(ids: Any, blocks: Any) -> Merged:
    ids, blocks = sorted_by_image(ids, blocks)
    return ids[1::2], blocks[..., 1::2]


def one_left_out(ids: Any, blocks: Any) -> Merged:
    ids, blocks = sorted_by_image(ids, blocks)
    present = np.argwhere(blocks != None)  # noqa: E711 - for each entry
    blocks[tuple(present[len(present) // 2])] = None
    return ids, blocks


def classes_exchanged(ids: Any, blocks: Any) -> Merged:
    ids, blocks = sorted_by_image(ids, blocks)
    return ids, blocks[::-1]


def areas_exchanged(ids: Any, blocks: Any) -> Merged:
    ids, blocks = sorted_by_image(ids, blocks)
    return ids, blocks[:, ::-1]


def twice(ids: Any, blocks: Any) -> Merged:
    """The sampler's repeated image counts twice."""
    return list(range(len(ids))), blocks


def as_dictionaries(ids: Any, blocks: Any) -> Merged:
    ids, blocks = sorted_by_image(ids, blocks)
    for place, one in np.ndenumerate(blocks):
        blocks[place] = one.entry() if hasattr(one, "entry") and sum(place) % 2 else one
    return ids, blocks


MERGES = [
    sorted_by_image,
    as_they_came,
    some_images,
    one_left_out,
    classes_exchanged,
    areas_exchanged,
    twice,
    as_dictionaries,
]


def evaluated(
    library: Library,
    kind: str,
    seed: int,
    merge: Callable[[Any, Any], Merged],
    change: Callable[[Any], None],
) -> Any:
    """Evaluate batches of images in any order, merge the outcomes, and accumulate."""
    rng = np.random.default_rng(seed)
    first_id = int(rng.integers(0, 2))  # a match with annotation 0 does not count
    dataset, results = random_dataset(rng, kind, images=9, truths=40, detections=60, first_id=first_id)
    truth, _ = load(library, dataset, [])
    ids = [image["id"] for image in dataset["images"]]
    batches = [ids[:3], ids[3:4], ids[4:], ids[:1]]
    evaluation = library.COCOeval(truth, iouType=kind)
    evaluation.params.catIds = sorted(category["id"] for category in dataset["categories"])
    blocks, name = [], "evalImgs" if library is REFERENCE else "_evalImgs_cpp"
    for number, batch in enumerate(batches):
        found = [row for row in results if row["image_id"] in batch and number != 1]
        evaluation.cocoDt = truth.loadRes(copy.deepcopy(found)) if found else library.COCO()
        evaluation.params.imgIds = batch
        evaluation.evaluate()
        params = evaluation.params
        made = np.array(getattr(evaluation, name))
        block = made.reshape(len(params.catIds), len(params.areaRng), len(params.imgIds))
        blocks.append(pickle.loads(pickle.dumps(block)))
    # Each batch comes sorted.
    ids = [image for batch in batches for image in sorted(batch)]
    evaluation.params.imgIds, merged = merge(np.array(ids), np.concatenate(blocks, axis=2))
    evaluation._paramsEval = copy.deepcopy(evaluation.params)
    setattr(evaluation, name, merged.ravel().tolist())
    change(evaluation.params)
    evaluation.accumulate()
    arrays = [evaluation.eval[field] for field in ("precision", "recall", "scores")]
    untouched = not any(isinstance(one, dict) for one in getattr(evaluation, name))
    return arrays, list(evaluation.evalImgs), untouched


def nothing(_: Any) -> None:
    """Change nothing."""


def fewer(params: Any) -> None:
    params.maxDets, params.areaRng = params.maxDets[:1], params.areaRng[1:]
    params.catIds = params.catIds[1:]


def points(params: Any) -> None:
    params.recThrs = np.array([0.2, 0.5, 0.9])


def unsorted_points(params: Any) -> None:
    params.recThrs = np.array([0.2, 0.9, 0.5])


def silently(function: Callable[..., Any], *arguments: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return function(*arguments)


MERGED_AS_ONE = sorted_by_image, as_they_came, some_images, twice
CASES = [
    *((kind, merge, nothing) for kind in KINDS for merge in MERGES),
    *(("bbox", merge, change) for merge in MERGES[:3] for change in (fewer, points, unsorted_points)),
]


@each(CASES)
def test_like_lists_of_dictionaries(kind: str, merge: Any, change: Any) -> None:
    for seed in range(2):
        expected, entries, _ = silently(evaluated, REFERENCE, kind, seed, merge, change)
        ours, our_entries, untouched = silently(evaluated, FASTER, kind, seed, merge, change)
        assert same(ours, expected)
        assert same(our_entries, entries)
        assert untouched == (merge in MERGED_AS_ONE and change in (nothing, points))


@pytest.mark.parametrize("field", ["areaRng", "maxDets", "iouThrs"])
def test_batches_of_other_parameters_are_not_mixed(field: str) -> None:
    """The second batch was evaluated by other rules: each outcome keeps its own."""
    others = {
        "areaRng": [[0, 1e10], [0, 100], [100, 400], [400, 1e10]],
        "maxDets": [1, 2, 3],
        "iouThrs": np.linspace(0.1, 0.55, 10),
    }

    def run(library: Library) -> Any:
        dataset, results = random_dataset(np.random.default_rng(1), truths=40, detections=90)
        evaluation = library.COCOeval(*load(library, dataset, results), "bbox")
        ids, blocks = list(evaluation.params.imgIds), []
        name = "evalImgs" if library is REFERENCE else "_evalImgs_cpp"
        for number, batch in enumerate((ids[:2], ids[2:])):
            evaluation.params.imgIds = batch
            if number:
                setattr(evaluation.params, field, others[field])
            evaluation.evaluate()
            made = np.array(getattr(evaluation, name))
            blocks.append(made.reshape(len(evaluation.params.catIds), -1, len(batch)))
        evaluation.params.imgIds = ids
        evaluation._paramsEval = copy.deepcopy(evaluation.params)
        setattr(evaluation, name, np.concatenate(blocks, axis=2).ravel().tolist())
        evaluation.accumulate()
        return [evaluation.eval[name] for name in ("precision", "recall", "scores")]

    assert same(silently(run, FASTER), silently(run, REFERENCE))


def test_outcomes_are_opaque_until_they_are_read() -> None:
    """``evalImgs`` gives dictionaries, also of outcomes that were set; accumulation does not need them."""
    dataset, results = random_dataset(np.random.default_rng(2))
    evaluation = silently(lambda: FASTER.COCOeval(*load(FASTER, dataset, results), "bbox"))
    evaluation.evaluate()
    outcomes = evaluation._evalImgs_cpp
    assert outcomes is evaluation._evalImgs_cpp
    assert not any(isinstance(one, dict) for one in outcomes)
    evaluation.accumulate()
    expected = copy.deepcopy(evaluation.eval["precision"])
    assert not any(isinstance(one, dict) for one in evaluation._evalImgs_cpp)
    assert all(one is None or isinstance(one, dict) for one in evaluation.evalImgs)
    evaluation.accumulate()
    assert same(evaluation.eval["precision"], expected)
