"""Bootstrap, slices and comparisons where the parts are have the bits of one process. Needs no cluster."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import diagnostics
from boxscore.data.vocabulary import Images
from boxscore.distributed import DistributedEvaluation, Part, merge
from boxscore.extensions.weights.resampling import Draws, Groups
from boxscore.protocols.summary import LEVEL_METRICS, OF_IMAGES, SUMMARY_KINDS
from boxscore.reports.rows import Rows
from boxscore.reports.text import as_text
from support import crowd_cases, every_kind, federated_cases, limits, open_images
from support.each import each
from support.every_kind import every
from support.examples import examples, first_of
from support.insides import distributed_evaluation
from support.parted import Tables, drawn_parts, drawn_tables, partitions, parts_of, scene, whole


def frames_of(answer: Any) -> list[Any]:
    # Only results that have totals have a frame of them.
    return [answer.to_frame(), *([answer.total_frame()] if hasattr(answer, "total_frame") else [])]


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    parts, images = drawn_parts(tables, protocol, data), len(tables[0].images)
    if not parts:
        return
    most = data.draw(st.sampled_from([1, 2, 5, 10**6, None]), label="most")
    groups = np.array(data.draw(partitions(images), label="slices"), dtype=np.uint8)
    expected = whole(tables, protocol)
    for weights in (Draws.of_seed(images, 3, seed=images), Groups(groups, 0, 3)):
        check_weighted(parts, expected, weights, most)


def check_weighted(parts: list[Part], expected: boxscore.Evaluation, weights: Any, most: int | None) -> None:
    """Check metrics under weights, with so many detections at a time, or all (None)."""
    rows = expected.protocol.rows
    with pytest.MonkeyPatch.context() as patch:
        if most is not None:
            limits.few_detections_at_a_time(patch, most)
        ours = distributed_evaluation(parts)._weighted_metrics(rows, weights)
    for mine, theirs in zip(ours, expected._weighted_metrics(rows, weights), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        assert mine.tobytes() == theirs.tobytes()


test_coco = every(every_kind.coco, check, 40)
test_voc = every(every_kind.voc, check, 20)
test_masks_and_keypoints = every(every_kind.masks_and_keypoints, check, 4)
test_federated = every(every_kind.federated, check, 40)


RULES = [
    {"ap": {"tie_order": "true_positives_first"}},
    {"ap": {"tie_order": "true_positives_last", "absent_classes": "zero"}},
    {"ap": {"absent_classes": "all_zero", "sequential_mean": True}},
    {"ap": {"absent_classes": "zero", "class_mean": "nanmean"}},
    {"ap": {"interpolation": "area"}},
    {"matching": {"cap_scope": "image_each"}, "ap": {"absent_classes": "zero"}},
    {"matching": {"per_class": False}},
    {"ap": {"interpolation": "area", "score_steps": 7}},
    {"ap": {"class_mean": "by_images", "recall_over": "all"}},
    {"ap": {"class_weights": {"1": 2.5, "*": 0.75}}},
    {"ap": {"class_weights": {"1": 0, "*": 3}, "interpolation": "area"}},
    {
        "summary": [
            {"key": kind, "metric": kind}
            for kind in SUMMARY_KINDS
            if kind not in ("JI", *LEVEL_METRICS, *OF_IMAGES)
        ]
    },
    {
        "summary": [{"key": "MR", "metric": "MR", "iou": 0.5, "cap": 0}, {"key": "AR", "metric": "AR"}],
        "miss_rate": {"false_positives_per_image": [0.1, 0.5, 1, 4], "reading": "last_at_most_or_end"},
    },
]


@pytest.mark.long
@given(seed=st.integers(0, 10_000), rules=st.sampled_from(RULES), data=st.data())
@settings(max_examples=examples(40))
def test_rules(seed: int, rules: dict[str, Any], data: st.DataObject) -> None:
    extended = {
        "extends": "coco",
        "name": "case",
        **rules,
        "matching": {
            "iou_thresholds": [0.3, 0.5, 0.8],
            "max_detections": [1, 2, 4],
            **rules.get("matching", {}),
        },
    }
    check(drawn_tables(seed), extended, data)


@pytest.mark.long
@pytest.mark.parametrize("name", crowd_cases.PROTOCOLS)
@given(seed=st.integers(0, 10_000), data=st.data())
@settings(max_examples=examples(6))
def test_crowds_faces_and_drones(name: str, seed: int, data: st.DataObject) -> None:
    check(crowd_cases.crowd_case(seed, name), crowd_cases.crowd_protocol(name), data)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([0.25, 1.0]))
@settings(max_examples=examples(10))
def test_groups_that_count_in_part_are_refused(seed: int, weight: float) -> None:
    truths, found, listed, images, labels = federated_cases.open_images_case(seed)
    tables = open_images.tables_of(truths, found, listed, images, labels)
    protocol = {"extends": "openimages-v2", "group": {"weight": weight}}
    parts = parts_of(tables, protocol, np.arange(len(tables[0].images)) % 2)

    def answer(result: boxscore.Evaluation) -> str:
        try:
            return str(frames_of(diagnostics.bootstrap_intervals(result)))
        except boxscore.InputError as error:
            return str(error)

    one = answer(whole(tables, protocol))
    assert answer(merge(parts)) == one
    refused = one == "group.weight must be 0 or 1 to weigh images. Got 0.25."
    assert refused or "low" in one
    assert not refused or weight == 0.25


@pytest.mark.long
@pytest.mark.parametrize("seed", first_of(2, range(6)))
def test_one_curve_of_some_classes_by_ranges(seed: int, folder: Path) -> None:
    protocol = {"extends": "lvis", "name": "case", "ap": {"pool": "classes"}}
    tables = every_kind.federated_tables(seed, protocol, folder)
    result, images = whole(tables, protocol), len(tables[0].images)
    parts = parts_of(tables, protocol, np.arange(images) % 2)
    assert any(row.classes for row in result.protocol.rows)
    check_weighted(parts, result, Draws.of_seed(images, 4, seed), 2)


def test_a_class_that_is_only_detected_by_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has AP 0 where any of its ranges has a detection, and none where no image with one is drawn."""
    truth = boxscore.GroundTruth.from_arrays([0], [0], [[0, 0, 9, 9]], images=range(3), categories=range(2))
    found = boxscore.Detections.from_arrays([0, 1], [1, 1], [[0, 0, 9, 9]] * 2, [0.9, 0.1])
    protocol = {"extends": "coco", "name": "case", "ap": {"absent_classes": "zero"}}
    parts = parts_of((truth, found), protocol, [0, 0, 1])
    weights = Groups(np.arange(3, dtype=np.uint8), 0, 3)
    limits.few_detections_at_a_time(monkeypatch, 1)
    result = distributed_evaluation(parts)
    values = result._weighted_metrics(result.protocol.rows, weights).values
    np.testing.assert_array_equal(values[:, 0, 1], [0, 0, np.nan])


def test_no_slices() -> None:
    values, truths, found = distributed(scene())._weighted_metrics([], Groups(np.zeros(12, np.uint8), 0, 0))
    assert (values.shape, len(truths), len(found)) == ((0, 0, 4), 0, 0)


# ---------------------------------------------------------------- the public questions


def distributed(tables: Tables, protocol: Any = "coco") -> DistributedEvaluation:
    return distributed_evaluation(parts_of(tables, protocol, np.arange(len(tables[0].images)) % 3))


def merged(tables: Tables, protocol: Any = "coco") -> boxscore.Evaluation:
    return merge(parts_of(tables, protocol, np.arange(len(tables[0].images)) % 3))


ANSWERED: dict[str, dict[str, Any]] = {
    "bootstrap_intervals": {},
    "class_group_scores": {"class_groups": {"most": ["*"]}},
    "confidence_curve": {},
    "froc_curve": {},
    "froc_scores": {},
    "operating_points": {},
    "slice_scores": {"by": "night"},
    "threshold_guarantee": {"recall": 0.2},
}
REFUSED = {
    "calibration_error": "calibration",
    "confusion_matrix": "confusions",
    "error_areas": "error curves",
    "error_curves": "error curves",
    "error_list": "a list of errors",
    "error_types": "error types",
    "count_errors": "presence in images",
    "image_presence": "presence in images",
    "image_scores": "scores of images",
    "label_costs": "the cost of labels",
    "label_suspects": "label suspects",
    "localization_recall_precision": "LRP",
    "pair_overlaps": "overlaps of pairs",
    "reliability": "calibration",
    "tie_bounds": "bounds over ties",
    "top_confusions": "confusions",
    "vetted_suspects": "vetted suspects",
}
OTHER_ARGUMENTS = {"label_costs": (None,), "vetted_suspects": (None, None)}


def test_every_question_is_answered_or_refused() -> None:
    """So that a new one is thought of here."""
    asked = [
        name
        for name in diagnostics.__all__
        if inspect.isfunction(getattr(diagnostics, name))
        and next(iter(inspect.signature(getattr(diagnostics, name)).parameters), "") == "evaluation"
    ]
    assert sorted(asked) == sorted([*ANSWERED, *REFUSED, "slice_names", "keypoint_errors"])


@pytest.mark.long
@each([(name, of) for name in ANSWERED for of in (merged, distributed)])
def test_answers_have_the_bits_of_one_process(name: str, of: Any) -> None:
    question, options = getattr(diagnostics, name), ANSWERED[name]
    pairs = zip(
        frames_of(question(of(scene()), **options)),
        frames_of(question(whole(scene(), "coco"), **options)),
        strict=True,
    )
    assert all(ours.equals(one) for ours, one in pairs)


@pytest.mark.long
@each([(name, what, of) for name, what in REFUSED.items() for of in (merged, distributed)])
def test_what_needs_rows_is_refused_by_name(name: str, what: str, of: Any) -> None:
    with pytest.raises(boxscore.InputError, match=f"^{what} of merged parts must be computed from tables"):
        getattr(diagnostics, name)(of(scene()), *OTHER_ARGUMENTS.get(name, ()))


@pytest.mark.long
@each([({"by": "height", "bins": bins}, of) for bins in (3, [0, 5, 9, 20]) for of in (merged, distributed)])
def test_slices_of_numbers(options: dict[str, Any], of: Any) -> None:
    ours, one = (
        diagnostics.slice_scores(result, **options) for result in (of(scene()), whole(scene(), "coco"))
    )
    assert ours.to_frame().equals(one.to_frame())


@pytest.mark.long
@each(
    [
        ("size", "slices by size of merged parts must be computed from tables"),
        ("crowdedness", "slices by crowdedness of merged parts must be computed from tables"),
        ("nigth", "by must be one of 'night', 'height'. Got 'nigth'; did you mean 'night'?"),
    ]
)
def test_slices_that_need_objects_are_refused(by: str, message: str) -> None:
    for of in (merged, distributed):
        with pytest.raises(boxscore.InputError) as caught:
            diagnostics.slice_scores(of(scene()), by=by)
        assert str(caught.value).startswith(message)
    assert diagnostics.slice_names(merged(scene())) == ["night", "height"]


@pytest.mark.long
def test_two_results_are_compared_where_their_parts_are() -> None:
    truth, found = scene()
    worse = found.replaced(scores=np.roll(found.scores, 7))
    one = whole((truth, found), "coco").compare(whole((truth, worse), "coco"), resamples=12)
    columns = [name for name in one.to_frame() if name != "decided_by_ties"]
    for first, second in (
        (merged, merged),
        (distributed, distributed),
        (merged, distributed),
        (whole, merged),
    ):
        pair = [of((truth, own), "coco") for of, own in ((first, found), (second, worse))]
        ours = pair[0].compare(pair[1], resamples=12)
        assert ours.to_frame()[columns].equals(one.to_frame()[columns])
        assert ours.total_frame()[columns].equals(one.total_frame()[columns])
        assert pair[0]._has_same_truth(pair[1])
        assert pair[1]._has_same_truth(pair[0])


@pytest.mark.long
def test_two_results_are_planned_where_their_parts_are() -> None:
    truth, found = scene()
    worse = found.replaced(scores=np.roll(found.scores, 7))
    options: dict[str, Any] = {"resamples": 60, "difference": 0.1}
    one = whole((truth, found), "coco").plan(whole((truth, worse), "coco"), **options)
    for of in (merged, distributed):
        pair = [of((truth, table), "coco") for table in (found, worse)]
        assert pair[0].plan(pair[1], **options).printed_frame().equals(one.printed_frame())
        with pytest.MonkeyPatch.context() as patch:  # too many detections to be exchanged
            limits.few_detections_fetched(patch, 0)
            limits.few_detections_at_a_time(patch, 1)
            pair = [of((truth, table), "coco") for table in (found, worse)]
            assert not pair[0]._holds_matches
            drawn = pair[0].plan(pair[1], **options).total
        np.testing.assert_allclose(drawn.standard_error, one.total.standard_error, rtol=0.01)
        np.testing.assert_allclose(drawn.images_needed, one.total.images_needed, rtol=0.6)


@pytest.mark.long
@each(["boxes", "classes", "images", "an image without objects"])
def test_another_ground_truth_is_told_by_its_digest(what: str) -> None:
    truth, found = scene()
    ids = truth.images.ids.copy()
    if what == "images":
        ids = ids + 100
    elif what == "an image without objects":
        ids[11] = 12  # nothing is in it
    category = truth.category[::-1] if what == "classes" else truth.category
    other = boxscore.GroundTruth.from_arrays(
        ids[truth.image],
        category,
        truth.boxes + (what == "boxes"),
        images=ids,
        categories=range(3),
    )
    detections = boxscore.Detections.from_arrays(ids[found.image], found.category, found.boxes, found.scores)
    for of in (merged, distributed):
        with pytest.raises(boxscore.InputError, match="have the same ground truth"):
            whole((truth, found), "coco").compare(of((other, detections)))
        assert not of((truth, found))._has_same_truth(distributed((other, detections)))


def test_whole_and_string_ids_in_different_parts() -> None:
    """A number has one digest, whether or not strings are among the ids of its part."""
    boxes = [[0, 0, 9, 9], [3, 3, 20, 20], [5, 0, 30, 8]]

    def tables(ids: list[Any]) -> Tables:
        truth = boxscore.GroundTruth.from_arrays(ids, ["cat"] * len(ids), boxes[: len(ids)])
        return truth, boxscore.Detections.from_arrays(
            ids, ["cat"] * len(ids), boxes[: len(ids)], [0.5] * len(ids)
        )

    parts = [boxscore.distributed.part_of(whole(tables(ids), "coco")) for ids in ([1, 2], ["x"])]
    truth = boxscore.GroundTruth.from_arrays(["x", 1, 2], ["cat"] * 3, [boxes[0], boxes[0], boxes[1]])
    found = boxscore.Detections.from_arrays(["x"], ["cat"], [boxes[0]], [0.5])
    assert merge(parts)._has_same_truth(whole((truth, found), "coco"))


def test_which_images_is_known_without_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: digests of parts add up."""

    def refuse(self: object) -> None:
        raise AssertionError

    monkeypatch.setattr(DistributedEvaluation, "images", property(refuse))
    result = pickle.loads(pickle.dumps(distributed(scene())))
    expected = whole(scene(), "coco")._image_fingerprint
    assert result._image_fingerprint == merged(scene())._image_fingerprint == expected
    assert Images.build(range(12)).fingerprint() == expected != Images.build(range(1, 13)).fingerprint()


def test_tables_say_what_so_many_detections_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    limits.few_detections_rated(monkeypatch, 10)
    result = distributed(scene())
    words = "precision, recall and F1 are not computed for more than 10 detections (153 here)"
    assert f"\nPer class; {words}\n" in as_text(result, per_class=True)
    with pytest.raises(
        boxscore.InputError, match=rf"--sort must name a column.*Got 'F1'; {re.escape(words)}"
    ):
        as_text(result, per_class=True, rows=Rows(sort="F1"))


def test_numbers_only() -> None:
    left = pickle.loads(pickle.dumps(distributed(scene())))
    assert left["AP"] == whole(scene(), "coco")["AP"]
    for question in (
        lambda: diagnostics.bootstrap_intervals(left),
        lambda: diagnostics.slice_scores(left, by="night"),
        lambda: diagnostics.operating_points(left),
    ):
        with pytest.raises(
            boxscore.InputError, match="the parts of a result must still be available where they were matched"
        ):
            question()


@pytest.mark.long
def test_too_many_detections_to_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    result = distributed(scene())
    limits.few_detections_fetched(monkeypatch, 10)
    with pytest.raises(
        boxscore.InputError, match=r"^detections whose parts are fetched must be at most 10\."
    ):
        result._score_counts()
    assert len(diagnostics.operating_points(result).to_frame())
    diagnostics.bootstrap_intervals(result)


def test_a_class_that_cannot_be_cut_and_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    result = distributed(scene(), {"extends": "coco", "name": "areas", "ap": {"interpolation": "area"}})
    limits.few_detections_of_an_owner(monkeypatch, 20)
    with monkeypatch.context() as patch:
        limits.few_detections_at_a_time(patch, 5)
        with pytest.raises(
            boxscore.InputError,
            match=r"^class '0' must have at most 20 detections for resampling or slicing\. Got \d+; the protocol areas",
        ):
            diagnostics.bootstrap_intervals(result)
    limits.few_detections_at_a_time(monkeypatch, 1000)
    assert len(diagnostics.bootstrap_intervals(result).to_frame())


def test_reports_and_parts_of_merged_results_are_refused(tmp_path: Path) -> None:
    for of in (merged, distributed):
        result = of(scene())
        with pytest.raises(boxscore.InputError, match=r"^a report of merged parts"):
            result.report(tmp_path / "report")
        with pytest.raises(boxscore.InputError, match=r"^a part of merged parts"):
            result.save_part(tmp_path / "part.npz")


# ---------------------------------------------------------------- weights


@given(
    images=st.integers(1, 40),
    count=st.integers(1, 20),
    size=st.integers(1, 25),
    seed=st.integers(0, 2**64),
)
@settings(max_examples=examples(40))
def test_batches_of_draws_are_the_draws_of_the_seed(images: int, count: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = [np.bincount(rng.integers(0, images, images), minlength=images) for _ in range(count)]
    batches = list(Draws.of_seed(images, count, seed).batches(size))
    assert [len(batch) for batch in batches] == [min(size, count - low) for low in range(0, count, size)]
    for order in (batches, batches[::-1]):  # each by itself, as often as wanted
        drawn = {id(batch): list(pickle.loads(pickle.dumps(batch))) for batch in order}
        made = [weights for batch in batches for weights in drawn[id(batch)]]
        np.testing.assert_array_equal(made, expected)
