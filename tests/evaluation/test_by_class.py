"""Classes shared out among processes: every number has the bits of one process."""

from __future__ import annotations

import gc
import os
import pickle
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.data.vocabulary import Categories
from boxscore.evaluation import by_class
from boxscore.evaluation.result import Best
from boxscore.protocols import load_protocol
from support import crowd_cases, every_kind, parted
from support.cases import coco_cases
from support.every_kind import every
from support.examples import examples, first_of
from support.limits import classes_always_shared, everything_shared, few_pairs_held
from support.matches import assert_same_matches
from support.shipped import box_protocols, shipped

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

COCO: dict[str, dict[str, Any]] = {
    "file order": {"matching": {"equal_scores": "file_order"}},
    "last in file first": {"matching": {"equal_scores": "last_in_file_first"}},
    "by the file": {"matching": {"order": "file", "max_detections": [3]}},
    "first of equal overlaps": {"matching": {"equal_iou": "first", "candidate": "best_overall"}},
    "two ids 0": {"matching": {"annotation_id_zero": "unmatched"}},
    "class thresholds": {
        "matching": {"iou_thresholds": [0.5], "class_thresholds": {"c1": [0.7]}},
        "summary": [{"key": "AP"}],
    },
    "caps over a class": {"matching": {"cap_scope": "data_set_class", "max_detections": [2, 5, 9]}},
    "score threshold": {"matching": {"score_threshold": 0.4, "score_closed": False}},
    "no ranges": {"ignore": {"area_ranges": {"all": [0, 1e10]}}, "summary": [{"key": "AP"}]},
    "crowds deleted": {"ignore": {"crowd": "delete", "difficult": "ignore", "flagged": "iof"}},
    "without area": {"boxes": {"degenerate": "drop"}},
    "weights": {"ap": {"class_weights": {"c0": 2.0, "*": 0.5}}},
    "one weight": {"ap": {"class_weights": {"c0": 2.0, "*": 0.0}}},
    "every slot": {"ap": {"class_mean": "nanmean", "absent_classes": "zero"}},
    "by images": {"ap": {"class_mean": "by_images"}},
    "area": {
        "ap": {"interpolation": "area", "absent_classes": "all_zero", "tie_order": "true_positives_first"}
    },
    "sequential": {"ap": {"sequential_mean": True}},
    "steps": {"ap": {"interpolation": "area", "score_steps": 10}},
    "some classes": {
        "summary": [
            {"key": "AP"},
            {"key": "APr", "classes": "frequency=r"},
            {"key": "APo", "classes": "frequency=c|f"},
            {"key": "AR", "metric": "AR"},
        ]
    },
    "recall without scores": {
        "matching": {"scores": "none", "max_detections": []},
        "summary": [{"key": "AR", "metric": "AR"}, {"key": "recall", "metric": "AR", "iou": 0.5}],
    },
    "a class that is not evaluated": {"labels": {"not_evaluated": ["c2"]}},
}
"""Changes of COCO's rules that leave classes apart."""

OTHERS: dict[str, dict[str, Any]] = {
    "pooled": {"matching": {"per_class": False}},
    "one curve": {"ap": {"pool": "classes"}},
    "caps over an image": {"matching": {"cap_scope": "image"}},
    "another kind": {"summary": [{"key": "F1", "metric": "F1"}]},
}
"""Changes under which classes meet, or of a kind that is not computed from curves alone."""


def scene(seed: int) -> tuple[GroundTruth, Detections]:
    """Draw boxes of few numbers, with equal scores and overlaps, and classes without objects or detections."""
    random = np.random.default_rng(seed)
    images, classes = int(random.integers(1, 9)), int(random.integers(2, 8))
    objects, found = (int(random.integers(0, 90)) for _ in range(2))

    def boxes(count: int) -> Any:
        low = random.integers(0, 4, (count, 2)) * 10
        return np.hstack([low, low + random.integers(0, 5, (count, 2)) * 20])

    names = [f"c{k}" for k in range(classes)]
    columns = {"frequency": random.choice(["r", "c", "f"], classes).tolist()}
    categories = Categories.build(range(classes), names=names, columns=columns)
    truth = GroundTruth.from_arrays(
        random.integers(0, images, objects),
        random.integers(0, max(classes - 1, 1), objects),
        boxes(objects),
        crowd=random.random(objects) < 0.1,
        difficult=random.random(objects) < 0.1,
        ignore=random.random(objects) < 0.1,
        ids=np.arange(objects) + seed % 2,  # pycocotools takes the id 0 for no match
        images=range(images),
        categories=categories,
    )
    detections = Detections.from_arrays(
        random.integers(0, images, found),
        random.integers(min(classes - 1, 1), classes, found),
        boxes(found),
        random.integers(0, 12, found) / 12,
        images=truth.images,
        categories=truth.categories,
    )
    return truth, detections


def told(truth: Any, found: Any, **options: Any) -> tuple[boxscore.Evaluation, list[str]]:
    """Evaluate, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return boxscore.evaluate(truth, found, **options), [str(one.message) for one in caught]


def bits(values: Any) -> Any:
    """A comparable form of numbers, to the bit."""
    if isinstance(values, dict):
        return {name: bits(value) for name, value in values.items()}
    array = np.asarray(values)
    return array.dtype.str, array.shape, array.tobytes()


def assert_same(shared: boxscore.Evaluation, alone: boxscore.Evaluation) -> None:
    """Compare every number, those that need the matches last."""
    for name in ("metrics", "class_values", "class_counts", "class_rates"):
        assert list(getattr(shared, name)) == list(getattr(alone, name)), name
        assert bits(getattr(shared, name)) == bits(getattr(alone, name)), name
    assert (shared.counts, shared.operating_score) == (alone.counts, alone.operating_score)
    assert repr(shared) == repr(alone)
    assert all(map(np.array_equal, Best.of(alone.matched), shared._once("best", lambda: ())))


def always_shared(patch: pytest.MonkeyPatch) -> list[int]:
    """Share always; the list says how many shares there were each time."""
    classes_always_shared(patch)
    counts, whole = [], by_class.evaluated_by_class
    patch.setattr(
        by_class,
        "evaluated_by_class",
        lambda *given, **options: counts.append(given[3]) or whole(*given, **options),
    )
    return counts


SEPARATE = [name for name in box_protocols("coco") if shipped()[name].scope.has_separate_classes]


@pytest.mark.long
@pytest.mark.parametrize("name", first_of(1, ["coco", *SEPARATE, *COCO]))
def test_numbers_of_processes_are_those_of_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = load_protocol({"extends": "coco", **COCO[name]} if name in COCO else name)
    counts = always_shared(monkeypatch)
    for seed in range(examples(3)):
        truth, found = scene(seed)
        with monkeypatch.context() as patch:
            patch.setattr("boxscore.evaluation.SHARED_FROM", 1 << 60)
            alone, said = told(truth, found, protocol=protocol, workers=1)
        most = min(len(truth.categories), len(found))
        each_number = {min(count, most): count for count in (2, 3, 5, 16)}  # of shares, once
        for workers in each_number.values():
            counts.clear()
            shared, said_too = told(truth, found, protocol=protocol, workers=workers)
            assert said_too == said
            classes = min(workers, most)
            if classes < 2:
                assert counts == []
                continue
            assert counts[:1] == [classes]
            assert_same(shared, alone)
            assert not alone.has_scores or bits(shared.arrays()) == bits(alone.arrays())
            assert_same_matches(shared.matched, alone.matched)


def check_shared(given: Any, protocol: Any, _: Any = None) -> None:
    """Compare everything that a result says, and the matches, with those of one process."""
    alone, said = told(*given, protocol=protocol, workers=1)
    with pytest.MonkeyPatch.context() as patch:
        everything_shared(patch)
        for workers in (2, 3, 5, 16):
            shared, said_too = told(*given, protocol=protocol, workers=workers)
            assert said_too == said
            assert parted.bits(shared) == parted.bits(alone)
            assert_same_matches(shared.matched, alone.matched)


def crowds(draw: Any, _: Any) -> every_kind.Drawn:
    name = draw(st.sampled_from(sorted(crowd_cases.PROTOCOLS)))
    return crowd_cases.crowd_case(draw(every_kind.seeds), name), crowd_cases.crowd_protocol(name)


def files(draw: Any, folder: Path) -> Any:
    """The files themselves: both sides are read by several processes."""
    case = draw(coco_cases(), label="case")
    case.load(folder)
    return (str(folder / "truth.json"), str(folder / "results.json")), case.protocol


test_shared_boxes = every(every_kind.coco, check_shared, 5)
test_shared_files = every(files, check_shared, 5)
test_shared_voc = every(every_kind.voc, check_shared, 5)
test_shared_masks_and_keypoints = every(every_kind.masks_and_keypoints, check_shared, 5)
test_shared_federated = every(every_kind.federated, check_shared, 5)
test_shared_groups = every(every_kind.groups_in_part, check_shared, 5)
test_shared_rotated = every(every_kind.rotated_boxes, check_shared, 5)
test_shared_crowds = every(crowds, check_shared, 5)


def test_protocols_share_classes() -> None:
    """COCO's, VOC's and the like; not LVIS, whose max detections are of an image."""
    assert {"voc2007", "voc2012", "torchmetrics", "xview", "bdd100k", "sodad", "fiftyone"} <= {*SEPARATE}
    assert not {"lvis", "tide", "openimages-v2", "crowdhuman", "scoreless"} & {*SEPARATE}


@pytest.mark.parametrize("name", OTHERS)
def test_classes_that_meet_are_not_shared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, (truth, found) = always_shared(monkeypatch), scene(7)
    boxscore.evaluate(truth, found, protocol={"extends": "coco", **OTHERS[name]}, workers=3, digest=False)
    assert counts == []


def shared_scene(patch: pytest.MonkeyPatch) -> tuple[boxscore.Evaluation, boxscore.Evaluation]:
    """The result of three processes, and that of one."""
    truth, found = scene(7)
    alone = boxscore.evaluate(truth, found, workers=1, digest=False)
    counts = always_shared(patch)
    shared = boxscore.evaluate(truth, found, workers=3, digest=False)
    assert counts == [3]
    return shared, alone


def test_matches_are_made_when_something_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    shared, alone = shared_scene(monkeypatch)
    assert_same(shared, alone)
    assert "matched" not in vars(shared)
    with monkeypatch.context() as patch:
        patch.delattr(by_class.Matcher, "match")  # they are put together
        assert_same_matches(shared.matched, alone.matched)
    assert shared.matches.equals(alone.matches)
    assert "matched" in vars(shared)
    assert not shared.matched.score.flags.writeable
    assert shared.per_class.equals(alone.per_class)
    assert shared.curves().equals(alone.curves())


MADE: dict[str, Any] = {
    "a pickle": lambda result: pickle.loads(pickle.dumps(result)),
    "other rules of AP": lambda result: result._curves_under(
        result.protocol.ap.replaced(interpolation="area")
    ),
    "counts at scores": lambda result: result.curves_of(1).totals.at_scores(np.array([0.5])),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_what_is_made_of_a_result_is_the_same(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = map(make, shared_scene(monkeypatch))
    if isinstance(ours, tuple):
        assert bits(ours) == bits(theirs)
    elif isinstance(ours, boxscore.Evaluation):
        assert_same_matches(ours.matched, theirs.matched)
    else:
        assert bits(ours.average_precision) == bits(theirs.average_precision)


def test_the_digest_does_not_ask_for_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    low = np.arange(300).reshape(150, 2) % 97 * 3.5
    boxes = np.hstack([low, low + 20.25])
    image, category = np.sort(np.random.default_rng(1).integers(0, 15, 150)), np.arange(150) % 3
    truth = GroundTruth.from_arrays(image, category, boxes)
    found = Detections.from_arrays(image, category, boxes + 0.5, np.linspace(0.01, 0.99, 150))
    counts = always_shared(monkeypatch)
    shared, said = told(truth, found, workers=3)
    assert (counts, said) == ([3], [])
    assert "matched" not in vars(shared)


def test_without_children_this_process_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise OSError(11, "too many processes")

    monkeypatch.setattr(os, "fork", refuse)
    assert_same(*shared_scene(monkeypatch))


def test_a_system_without_fork_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = scene(7)
    counts = always_shared(monkeypatch)
    monkeypatch.delattr(os, "fork")
    boxscore.evaluate(truth, found, workers=3, digest=False)
    assert counts == []


def test_few_detections_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, (truth, found) = always_shared(monkeypatch), scene(7)
    for least, shares in ((len(found), [3]), (len(found) + 1, [])):
        monkeypatch.setattr("boxscore.evaluation.SHARED_FROM", least)
        counts.clear()
        boxscore.evaluate(truth, found, workers=3, digest=False)
        assert counts == shares


@pytest.mark.parametrize(
    ("rows", "shares"),
    [(200_000, {1: 1, 2: 1, 3: 3, 40: 3}), (399_999, {2: 1, 40: 6}), (400_000, {1: 1, 2: 2, 40: 6})],
)
def test_a_process_needs_rows(rows: int, shares: dict[int, int]) -> None:
    """Two processes need more detections than three, and each process 60,000."""
    truth, _ = scene(9)  # of 7 classes
    found = Detections.from_arrays([0] * rows, [0] * rows, np.zeros((rows, 4)), np.zeros(rows))
    made = {
        workers: by_class.shares_of_classes(truth, found, load_protocol("coco"), workers)
        for workers in shares
    }
    assert made == shares


@pytest.mark.parametrize("held", [0, 5, 7])
def test_pairs_that_are_left_out_do_not_depend_on_processes(
    held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs of each share may be few enough to keep, and those of all too many."""
    few_pairs_held(monkeypatch, held)
    shared, alone = shared_scene(monkeypatch)
    assert not alone.matched.every_pair
    assert_same_matches(shared.matched, alone.matched)


def test_a_result_that_nothing_refers_to_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory and open files are given back at once, without a search for cycles."""
    shared, _ = shared_scene(monkeypatch)
    gc.collect()
    gc.disable()
    try:
        shared.matches, shared.class_rates, shared.curves()
        gone = weakref.ref(shared.matched)
        del shared
        assert gone() is None
    finally:
        gc.enable()
