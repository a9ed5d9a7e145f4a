"""``COCOeval`` beside the reference: the same random calls, the same bits and the same text."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from side_by_side import (
    OURS,
    REFERENCE,
    Library,
    assert_same_evaluation,
    load,
    outcome,
    random_dataset,
    same,
)

from support.each import each

KINDS = ("bbox", "segm", "keypoints")


def evaluated(library: Library, dataset: Any, results: Any, kind: str, changes: dict[str, Any]) -> Any:
    truth, found = load(library, dataset, results)
    evaluation = library.COCOeval(truth, found, kind)
    for name, value in changes.items():
        setattr(evaluation.params, name, copy.deepcopy(value))
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def check(dataset: Any, results: Any, kind: str = "bbox", **changes: Any) -> tuple[Any, Any]:
    (reference, text), (ours, our_text) = (
        outcome(lambda library=library: evaluated(library, dataset, results, kind, changes))
        for library in (REFERENCE, OURS)
    )
    assert text == our_text
    if isinstance(reference, str):
        assert ours == reference, ours
    else:
        assert_same_evaluation(reference, ours)
    return reference, ours


@each([(kind, seed) for seed in range(40) for kind in KINDS], first=15 * len(KINDS))
def test_generated_data(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    size = {"images": int(rng.integers(1, 6)), "truths": int(rng.integers(0, 30))}
    check(*random_dataset(rng, kind, **size, detections=int(rng.integers(1, 90))), kind)


def random_changes(rng: np.random.Generator) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "iouThrs": [
            np.array([0.5]),
            [0.5, 0.75],
            np.array([0.75, 0.5, 0.5]),
            np.array([0.0, 0.3, 1.0]),
            np.array([0.5, 1.5]),
            np.array([-0.5, np.nan]),
            np.linspace(0.01, 0.99, 70),
        ],
        "recThrs": [np.linspace(0, 1, 11), [0.5, 1.0], [0.9, 0.1], [0.0, 0.5, 1.2], [-0.5, 0.5]],
        "maxDets": [[100], [1, 10, 100], [3, 1, 2], [2, 2, 2], [0, 1, 2], [1, 2, 3, 4], [1, 10, 300]],
        "areaRng": [
            [[0, 1e10]],
            [[0, 1024], [1024, 9216], [0, 64], [9216, 1e10]],
            [[0, 1e10]] * 4,
            [[64, 16], [0, np.inf], [-1, 50], [0, 1e10]],
        ],
        "useCats": [0, 1, 2, False, True],
        "imgIds": [[7], [8, 7, 7], [9, 1000], [], np.array([7, 8])],
        "catIds": [[2], [3, 2, 2], [4, 1000], [], np.array([2, 3])],
        "useSegm": [0],
    }
    names = rng.choice(list(choices), size=int(rng.integers(1, 4)), replace=False)
    return {name: choices[name][rng.integers(len(choices[name]))] for name in names.tolist()}


@each(range(150), first=50)
def test_changed_parameters(seed: int) -> None:
    rng = np.random.default_rng([seed, 10])
    check(*random_dataset(rng), **random_changes(rng))


def test_recall_points_without_zero() -> None:
    """Class 1 ends on a low precision, class 2 starts on a high one: neither is the other's."""
    annotations, results = [], []
    for category, scores in ((1, [0.8, 0.7]), (2, [0.9, 0.6])):
        for place, score in zip((0, 100), scores, strict=True):
            box = [place, 0, 40, 40]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": 1, "category_id": category, "bbox": box}
            )
            results.append({"image_id": 1, "category_id": category, "bbox": box, "score": score})
    for annotation in annotations:
        annotation |= {"area": 1600.0, "iscrowd": 0}
    results.append({"image_id": 1, "category_id": 1, "bbox": [300, 0, 9, 9], "score": 0.95})
    results.append({"image_id": 1, "category_id": 2, "bbox": [300, 0, 9, 9], "score": 0.7})
    dataset = {"images": [{"id": 1}], "categories": [{"id": 1}, {"id": 2}], "annotations": annotations}
    _, ours = check(dataset, results, recThrs=[1.0])
    assert np.allclose(ours.eval["precision"][0, 0, :, 0, -1], [2 / 3, 2 / 3])


def edited_ids(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for annotation in dataset["annotations"]:
        annotation["id"] -= 3  # -2, -1, 0, 1, ...


def edited_duplicates(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for annotation in dataset["annotations"]:
        annotation["id"] = annotation["id"] // 2


def edited_nan_scores(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for result in results[::5]:
        result["score"] = float("nan")


def edited_infinite_scores(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for result in results[::5]:
        result["score"] = float(rng.choice([np.inf, -np.inf, 0.0, -0.0]))


def edited_scores(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for result in results:
        result["score"] = np.float32(result["score"]) if rng.random() < 0.5 else int(10 * result["score"])


def edited_boxes(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    bad = [float("nan"), float("inf"), -5.0, 1e200]
    for record in [*results[::6], *dataset["annotations"][::6]]:
        record["bbox"][rng.integers(4)] = bad[rng.integers(4)]


def edited_negative_sizes(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for record in [*results[::3], *dataset["annotations"][::3]]:
        record["bbox"][2 + rng.integers(2)] *= -1


def edited_arrays(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for record in [*results, *dataset["annotations"]]:
        record["bbox"] = np.array(record["bbox"], dtype=np.float32)


def edited_crowds(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for annotation in dataset["annotations"]:
        annotation["iscrowd"] = [0, 1, True, False, 2, 0.5][rng.integers(6)]


def edited_no_crowds(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for annotation in dataset["annotations"][::4]:
        del annotation["iscrowd"]


def edited_no_area(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    del dataset["annotations"][0]["area"]


def edited_nan_areas(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for annotation in dataset["annotations"][::3]:
        annotation["area"] = float("nan")


def edited_no_classes(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    dataset["categories"] = []


def edited_no_annotations(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    dataset["annotations"] = []


def edited_text_ids(rng: np.random.Generator, dataset: Any, results: Any) -> None:
    for record in [*results, *dataset["annotations"]]:
        record["image_id"] = f"image {record['image_id']}"
    for image in dataset["images"]:
        image["id"] = f"image {image['id']}"


EDITS = [value for name, value in sorted(globals().items()) if name.startswith("edited_")]


@each([(edit, seed) for seed in range(5) for edit in EDITS], first=2 * len(EDITS))
def test_odd_data(edit: Any, seed: int) -> None:
    rng = np.random.default_rng([seed, 20])
    dataset, results = random_dataset(rng)
    edit(rng, dataset, results)
    check(dataset, results, useCats=int(seed % 3 > 0))


@pytest.mark.parametrize("seed", range(8))
def test_detections_with_ids_of_their_own(seed: int) -> None:
    """Not through loadRes: an id of 0 or less leaves its ground truth free."""
    rng = np.random.default_rng([seed, 30])
    dataset, results = random_dataset(rng, categories=1, images=2)
    for number, result in enumerate(results):
        result.update(id=number - 5, area=result["bbox"][2] * result["bbox"][3], iscrowd=0)
    check(dataset, {**dataset, "annotations": results})


def test_no_results() -> None:
    dataset, _ = random_dataset(np.random.default_rng(0))
    check(dataset, [])


@each(range(60), first=20)
def test_call_sequences(seed: int) -> None:
    """Evaluate, look, change, accumulate with other parameters, again and again: always the same."""
    pair = []
    for library in (REFERENCE, OURS):
        rng = np.random.default_rng([seed, 40])
        dataset, results = random_dataset(rng)
        evaluation = library.COCOeval(*load(library, dataset, results), "bbox")
        evaluation.params.useCats = int(rng.random() < 0.8)
        log = [outcome(evaluation.evaluate)]
        log += [outcome(lambda rng=rng, it=evaluation: step(rng, it)) for _ in range(8)]
        pair.append(log)
    for number, (one, other) in enumerate(zip(*pair, strict=True)):
        assert same(one, other), (number, one, other)


def step(rng: np.random.Generator, evaluation: Any) -> Any:
    action = rng.integers(14)
    params = evaluation.params
    image, category = (int(rng.choice([7, 8, 9])), int(rng.choice([2, 3, 4])))
    if action < 4:
        evaluation.accumulate()
        evaluation.summarize()
        return [evaluation.eval[key] for key in ("precision", "recall", "scores")]
    if action == 4:
        return list(evaluation.evalImgs)
    if action == 5:
        return dict(evaluation.ious)
    if action == 6:
        params.maxDets = [[1, 10, 100], [1, 10, 100], [1, 100], [10, 7, 100]][rng.integers(4)]
        return params.maxDets
    if action == 7:
        other = copy.deepcopy(params)
        other.areaRng, other.areaRngLbl = other.areaRng[:2], other.areaRngLbl[:2]
        other.imgIds = other.imgIds[:2]
        evaluation.accumulate(other)
        return evaluation.eval["precision"]
    if action == 8:
        return evaluation.evaluateImg(image, category, params.areaRng[1], params.maxDets[-1])
    if action == 9:
        return evaluation.computeIoU(image, category)
    if action == 10:
        evaluation.evalImgs[0] = None
        return None
    if action == 11:
        evaluation._prepare()
        return {key: value for key, value in evaluation._gts.items() if value}
    if action == 12:
        evaluation.__dict__.update(copy.deepcopy(evaluation).__dict__)
        return None
    evaluation.evaluate()
    return [truth.get("_ignore") for truth in evaluation.cocoGt.dataset["annotations"]]


@pytest.mark.parametrize("method", ["computeIoU", "computeOks", "evaluateImg", "_prepare"])
def test_overridden_methods_are_called(method: str) -> None:
    dataset, results = random_dataset(np.random.default_rng(1))
    outcomes = []
    for library in (REFERENCE, OURS):

        class Changed(library.COCOeval):  # type: ignore[misc, name-defined]
            pass

        def computeIoU(self: Any, imgId: Any, catId: Any) -> Any:  # noqa: N802
            ious = super(type(self), self).computeIoU(imgId, catId)
            return ious * 0.9 if len(ious) else ious

        def evaluateImg(self: Any, imgId: Any, catId: Any, aRng: Any, maxDet: Any) -> Any:  # noqa: N802
            found = super(type(self), self).evaluateImg(imgId, catId, aRng, maxDet)
            if found is not None:
                found["dtIgnore"][:, ::2] = True
            return found

        def _prepare(self: Any) -> None:
            super(type(self), self)._prepare()
            for truths in self._gts.values():
                for truth in truths[::2]:
                    truth["ignore"] = 1
            for detections in list(self._dts.values())[::2]:
                detections.clear()

        functions = {"computeIoU": computeIoU, "evaluateImg": evaluateImg, "_prepare": _prepare}
        if method in functions:
            setattr(Changed, method, functions[method])

        def run(library: Library = library, changed: Any = Changed) -> Any:
            evaluation = changed(*load(library, dataset, results), "bbox")
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
            return evaluation

        outcomes.append(outcome(run))
    (reference, text), (ours, our_text) = outcomes
    assert text == our_text
    assert_same_evaluation(reference, ours)


@pytest.mark.parametrize("looked", [False, True])
def test_pickle_and_copy(looked: bool) -> None:
    dataset, results = random_dataset(np.random.default_rng(2))
    pair = []
    for library in (REFERENCE, OURS):
        truth, found = load(library, dataset, results)
        evaluation = library.COCOeval(truth, found, "bbox")
        outcome(evaluation.evaluate)
        if looked:
            list(evaluation.evalImgs)
            dict(evaluation.ious)
        for again in (
            pickle.loads(pickle.dumps(evaluation)),
            copy.deepcopy(evaluation),
            copy.copy(evaluation),
        ):
            outcome(again.accumulate)
            outcome(again.summarize)
            pair.append(again)
    for reference, ours in zip(pair[:3], pair[3:], strict=True):
        assert_same_evaluation(reference, ours)


def test_copies_share_nothing_that_is_assigned() -> None:
    _, ours = check(*random_dataset(np.random.default_rng(3)))
    other = copy.copy(ours)
    other.evalImgs = []
    assert len(ours.evalImgs) > 0


def test_calls_in_the_wrong_order() -> None:
    for library in (REFERENCE, OURS):
        evaluation = library.COCOeval(iouType="bbox")
        assert outcome(evaluation.accumulate) == (
            "AttributeError",
            "Accumulating evaluation results...\nPlease run evaluate() first\n",
        )
        with pytest.raises(Exception, match=r"Please run accumulate\(\) first"):
            evaluation.summarize()
        assert not evaluation.evalImgs
        assert evaluation.ious == {}
        assert evaluation.stats == []
        with pytest.raises(Exception, match="iouType not supported"):
            library.COCOeval(iouType="boxes")


def change_scores(truth: Any, found: Any) -> None:
    for record in found.dataset["annotations"]:
        record["score"] = 1 - record["score"]


def change_geometry(truth: Any, found: Any) -> None:
    for record in truth.dataset["annotations"] + found.dataset["annotations"]:
        record["bbox"][0] += 7
        record["area"] = 1
        if "keypoints" in record:
            record["keypoints"] = [value + 5 for value in record["keypoints"]]


def change_ids_and_crowds(truth: Any, found: Any) -> None:
    for record in truth.dataset["annotations"]:
        record["iscrowd"], record["id"] = 1 - record["iscrowd"], record["id"] + 1000
    for record in found.dataset["annotations"]:
        record["id"] += 1000


@pytest.mark.parametrize("change", [change_scores, change_geometry, change_ids_and_crowds])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_annotations_changed_after_evaluate(kind: str, change: Any, seed: int) -> None:
    dataset, results = random_dataset(np.random.default_rng([seed, 41]), kind)
    for pooled in (False, True):
        pair = []
        for library in (REFERENCE, OURS):
            truth, found = load(library, dataset, results)
            evaluation = library.COCOeval(truth, found, kind)
            evaluation.params.useCats = int(not pooled)
            outcome(evaluation.evaluate)
            change(truth, found)
            outcome(evaluation.accumulate)
            outcome(evaluation.summarize)
            pair.append(evaluation)
        assert_same_evaluation(*pair)


@pytest.mark.parametrize("cap", [0, 1, 2, 5, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_one_image_with_fewer_max_detections(kind: str, cap: int) -> None:
    dataset, results = random_dataset(np.random.default_rng(6), kind, images=1, detections=40)
    pair = []
    for library in (REFERENCE, OURS):
        evaluation = library.COCOeval(*load(library, dataset, results), kind)
        outcome(evaluation.evaluate)
        pair.append(
            [
                outcome(
                    lambda it=evaluation, k=category: it.evaluateImg(it.params.imgIds[0], k, [0, 1e10], cap)
                )
                for category in evaluation.params.catIds
            ]
        )
    assert same(*pair)
