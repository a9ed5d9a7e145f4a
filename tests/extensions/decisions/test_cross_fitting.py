"""A detector with scores beside one without: where its boxes are cut, and how often the verdict errs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from boxscore import Detections, Evaluation, GroundTruth, InputError, evaluate
from boxscore.diagnostics import compare_detectors, compare_sequentially, operating_points, plan_comparison
from boxscore.distributed import merge

SAMPLE = Path(__file__).parents[3] / "datasets" / "shapes_coco"


def pair(scene, *, turned: bool = False) -> dict[str, Evaluation]:
    """A detector with its scores, and another without."""
    truth, detections = scene(0, images=40)
    _, other = scene(1, images=40)
    results = {"ranked": evaluate(truth, detections), "counted": evaluate(truth, other.without_scores())}
    return dict(reversed(results.items())) if turned else results


def best_score(truth: GroundTruth, detections: Detections, images: list[int]) -> float:
    """Try every score: F1 of all classes together at IoU 0.5, of the images alone, the highest of equals."""
    best = (-1.0, 0.0)
    for score in sorted({*detections.scores.tolist()}):
        some = detections.take(np.flatnonzero(detections.scores >= score))
        result = evaluate(truth, some, protocol=FREE, images=images, digest=False)
        best = max(best, (result["F1"], score))
    return best[1]


FREE = {
    "extends": "coco",
    "matching": {"iou_thresholds": [0.5]},
    "summary": [{"key": "F1", "metric": "micro_F1", "iou": 0.5}],
}


@pytest.mark.long
def test_each_half_is_cut_where_the_other_is_best(scene) -> None:
    results = pair(scene)
    truth, detections = results["ranked"].ground_truth, results["ranked"].detections
    comparison = compare_detectors(results, metrics=["F1_50", "P75"], resamples=20, seed=3)
    fit = comparison.cross_fits["ranked"]
    order = np.random.default_rng(3).permutation(40)
    halves = np.sort(order[:20]).tolist(), np.sort(order[20:]).tolist()
    wanted = tuple(best_score(truth, detections, half) for half in reversed(halves))
    assert fit == (0.5, wanted)
    cut = np.where(np.isin(detections.image, halves[0]), *wanted)
    kept = detections.take(np.flatnonzero(detections.scores >= cut)).without_scores()
    assert 0 < len(kept) < len(detections)
    expected = evaluate(truth, kept)
    assert comparison.evaluations["ranked"].metrics == expected.metrics
    assert comparison.total.value_first[0].tolist() == [expected["F1_50"], expected["P75"]]
    assert comparison.total.value_other[0, 0] == results["counted"]["F1_50"]


def test_whoever_comes_first(scene) -> None:
    one, two = (
        compare_detectors(pair(scene, turned=turned), metrics=["F1_50"], resamples=60)
        for turned in (False, True)
    )
    assert one.cross_fits == two.cross_fits
    assert one.total.delta == -two.total.delta
    assert one.total.p_value == two.total.p_value
    assert one.scores_text == two.scores_text
    first, second = one.cross_fits["ranked"].score_thresholds
    assert one.scores_text == (
        "ranked has scores: its boxes count from the score with the best F1 at IoU 0.5, chosen for each half of the images on the "
        f"other half ({first:.4g} and {second:.4g})."
    )
    assert one.note.startswith(one.scores_text)
    assert one.with_other("counted").cross_fits == one.cross_fits


def test_a_group_is_on_one_side(scene) -> None:
    """All images of one group but for one: its half is that one's, and each is cut by the other."""
    results = pair(scene)
    detections = results["ranked"].detections
    groups = ["a"] * 20 + ["b"] * 20
    comparison = compare_detectors(results, metrics=["F1_50"], resamples=20, group=groups)
    fit = comparison.cross_fits["ranked"]
    left = comparison.evaluations["ranked"].detections.image
    for half in (detections.image < 20, detections.image >= 20):
        scores = detections.scores[half]
        assert any(
            np.bincount(left, minlength=40)[np.unique(detections.image[half])].sum()
            == (scores >= score).sum()
            for score in fit.score_thresholds
        )


def test_results_that_are_alike_are_left_as_they_are(scene) -> None:
    truth, detections = scene(0, images=20)
    for results in (
        {"a": evaluate(truth, detections), "b": evaluate(truth, detections)},
        {
            "a": evaluate(truth, detections.without_scores()),
            "b": evaluate(truth, detections.without_scores()),
        },
    ):
        comparison = compare_detectors(results, resamples=10)
        assert comparison.cross_fits == {}
        assert comparison.scores_text == ""
        assert comparison.evaluations["a"] is results["a"]


def test_three_of_which_two_have_scores(scene) -> None:
    results = pair(scene)
    _, third = scene(2, images=40)
    results["third"] = evaluate(results["ranked"].ground_truth, third)
    comparison = compare_detectors(results, metrics=["F1_50"], resamples=20)
    assert [*comparison.cross_fits] == ["ranked", "third"]
    assert comparison.scores_text.count("\n") == 1
    assert [*comparison.with_other("counted").cross_fits] == ["ranked"]


@pytest.mark.parametrize("turned", [False, True])
def test_what_has_no_halves_is_refused(scene, turned: bool) -> None:
    match = "scores for 'ranked' and none for 'counted'.*--scoreless"
    with pytest.raises(InputError, match=match):
        compare_sequentially(pair(scene, turned=turned))
    with pytest.raises(InputError, match="all have scores, or all lack them"):
        plan_comparison(*pair(scene, turned=turned).values())


def test_a_half_without_detections_is_refused(scene) -> None:
    results = pair(scene)
    truth, detections = results["ranked"].ground_truth, results["ranked"].detections
    results["ranked"] = evaluate(
        truth, detections.take(detections.image == detections.image[0]), digest=False
    )
    with pytest.raises(InputError, match=r"^each half of the images must have objects and detections"):
        compare_detectors(results, resamples=10)


def test_parts_are_refused(scene, tmp_path: Path) -> None:
    results = pair(scene)
    results["ranked"].save_part(tmp_path / "part.npz")
    results["ranked"] = merge([tmp_path / "part.npz"])
    with pytest.raises(
        InputError, match=r"^a result with scores must be evaluated in memory if the others lack scores"
    ):
        compare_detectors(results, resamples=10)


def test_protocols_that_prepare_boxes_otherwise_are_refused(scene) -> None:
    results = pair(scene)
    truth, detections = results["ranked"].ground_truth, results["ranked"].detections
    rounded = {"extends": "coco", "rounding": {"boxes": 0}}
    results["ranked"] = evaluate(truth, detections, protocol=rounded)
    with pytest.raises(
        InputError, match=r"^the protocols of results with scores and without must prepare boxes"
    ):
        compare_detectors(results, resamples=10)


@pytest.mark.parametrize("turned", [False, True])
def test_the_command_says_it_in_a_line(run, tmp_path: Path, turned: bool) -> None:
    truth, scored = (SAMPLE / f"{name}.json" for name in ("instances", "detections"))
    records = json.loads(scored.read_text(encoding="utf-8"))
    other = tmp_path / "counted.json"
    other.write_text(json.dumps([{k: v for k, v in one.items() if k != "score"} for one in records]))
    paths = (str(truth), *((str(other), str(scored)) if turned else (str(scored), str(other))))
    command = ("compare", *paths, "--metrics", "F1_50", "--resamples", "20")
    text = run(*command)
    words = " ".join(text.out.split())
    assert (
        "detections has scores: its boxes count from the score with the best F1 at IoU 0.5, chosen for each half"
        in words
    )
    assert "|scores:none|" in words
    made = run(*command, "--output", "json")
    assert "chosen for each half of the images on the other half" in made.err
    row = json.loads(made.out)["rows"][0]
    assert row["delta"] != 0
    dropped = run(*command, "--scoreless", "--output", "json")
    assert json.loads(dropped.out)["rows"][0]["delta"] == 0
    assert "has scores" not in dropped.err


# ---------------------------------------------------------------- a known truth

CUT = 0.5
"""The score at which F1 is best, of very many images of :func:`drawn`."""


def drawn(seed: int, images: int) -> tuple[GroundTruth, Detections, Detections]:
    """Two detectors of one quality, of the same images; the second writes the boxes from CUT on, unscored."""
    rng = np.random.default_rng(seed)
    objects = rng.poisson(3, images)
    share = rng.beta(6, 2, images)
    image = np.repeat(np.arange(images), objects)
    place = np.arange(len(image)) * 20.0
    boxes = np.column_stack([place, np.zeros_like(place), place + 10, np.full_like(place, 10)])
    truth = GroundTruth.from_arrays(image, ["a"] * len(image), boxes, images=range(images))

    def detector() -> Detections:
        hit = rng.random(len(image)) < share[image]
        nothing = np.repeat(np.arange(images), rng.poisson(3, images))
        left = np.arange(len(nothing)) * 20.0
        false = np.column_stack([left, np.full_like(left, 50), left + 10, np.full_like(left, 60)])
        where = np.append(image[hit], nothing)
        scores = np.append(rng.beta(5, 2, int(hit.sum())), rng.beta(2, 4, len(nothing)))
        return Detections.from_arrays(
            where, ["a"] * len(where), np.vstack([boxes[hit], false]), scores, images=range(images)
        )

    scored, other = detector(), detector()
    return truth, scored, other.take(np.flatnonzero(other.scores >= CUT)).without_scores()


def test_the_score_of_the_best_f1_is_known() -> None:
    truth, scored, _ = drawn(0, 20_000)
    result = evaluate(truth, scored, protocol=FREE, digest=False)
    best = operating_points(result).total
    at_cut = operating_points(result, at_score=CUT).total
    assert best.f_score - at_cut.f_score < 0.001


@pytest.mark.long
def test_equal_detectors_are_seldom_told_apart() -> None:
    """Of 100 pairs of equal detectors 5 are expected to differ; more than 12 come by chance once in 700."""
    errors, deltas = 0, []
    for seed in range(100):
        truth, scored, counted = drawn(seed, 40)
        results = {
            "scored": evaluate(truth, scored, digest=False),
            "counted": evaluate(truth, counted, digest=False),
        }
        total = compare_detectors(results, metrics=["F1_50"], resamples=99, seed=seed, workers=1).total
        errors += total.verdict[0, 0] in ("better", "worse")
        deltas.append(total.delta[0, 0])
    assert errors <= 12
    assert abs(np.mean(deltas)) < 0.015


@pytest.mark.long
def test_a_worse_detector_is_told_from_a_better() -> None:
    found = []
    for seed in range(10):
        truth, scored, counted = drawn(seed, 150)
        worse = counted.take(np.random.default_rng(seed).random(len(counted)) < 0.7)
        results = {
            "scored": evaluate(truth, scored, digest=False),
            "counted": evaluate(truth, worse, digest=False),
        }
        comparison = compare_detectors(results, metrics=["F1_50"], resamples=99, workers=1)
        found.append(comparison.total.verdict[0, 0])
    assert found.count("worse") >= 9
