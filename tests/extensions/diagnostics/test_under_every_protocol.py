"""Every diagnostic under every shipped protocol: no traceback, and numbers that follow from plain facts."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore._utils.text import counted
from boxscore.evaluation.result import NOT_COUNTED
from boxscore.extensions.diagnostics._units import units_of_values
from boxscore.extensions.weights.resampling import Groups
from boxscore.protocols import load_protocol, protocol_names
from boxscore.protocols.tables.matching import RANKED
from boxscore.reports.text import as_text
from support.drawn import ALWAYS, drawn, each_protocol, names_in_order
from support.each import each
from support.shipped import shipped

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

SEEDS = (0, 5)
EVERYTHING = -1e9
"""Below every score."""
COLUMNS = [name for name in protocol_names() if shipped()[name].ignore.column_ranges]
by_protocol = each(names_in_order(), first=len(ALWAYS))
by_ranking_protocol = each(names_in_order(ranked=True), first=len(ALWAYS))


@functools.cache
def results(protocol: str) -> list[boxscore.Evaluation]:
    return [boxscore.evaluate(*drawn(protocol, seed), protocol=protocol) for seed in SEEDS]


def first_area(result: boxscore.Evaluation) -> str:
    """What ``class_counts`` and ``outcomes`` are of."""
    return next(iter(result.protocol.ignore.area_ranges))


def same(first: Any, second: Any) -> None:
    np.testing.assert_array_equal(first, second)


@by_protocol
def test_ground_truths_are_counted_in_one_way(protocol: str) -> None:
    """The header, the table per class and JSON say the same number; the others are named apart."""
    for result in results(protocol):
        counts, table = result.counts, result.class_counts
        assert counts["ground_truths"] == table["ground_truths"].sum()
        rest = sum(counts[kind] for kind in ("crowds", "difficult", "ignored"))
        assert rest == table["ignored"].sum()
        assert counts["ground_truths"] + rest == len(result.ground_truth)
        number = counted(counts["ground_truths"], "ground truth")
        header = result._counts_text
        assert re.findall(r"[0-9,]+ ground truths?", header) == [number]
        named = {noun: f"{counts[kind]:,} {noun}" for kind, noun in NOT_COUNTED.items()}
        for noun, words in named.items():
            assert (noun in header) == (words in header) == (not words.startswith("0 "))
        assert header in repr(result)
        assert header in as_text(result)
        written = json.loads(result.to_json())
        assert written["counts"] == counts
        assert sum(row["ground_truths"] for row in written["per_class"]) == counts["ground_truths"]
        assert result.per_class["ground_truths"].sum() == counts["ground_truths"]


@by_ranking_protocol
def test_counts_are_those_of_the_evaluation(protocol: str) -> None:
    for result in results(protocol):
        area, hits = first_area(result), result.class_counts["true_positives"]
        outcomes = result.matches["outcome"].tolist()
        right, wrong = (outcomes.count(name) for name in ("true positive", "false positive"))
        lrp = diagnostics.localization_recall_precision(result, area=area, at_score=EVERYTHING)
        points = diagnostics.operating_points(result, area=area, at_score=EVERYTHING)
        images = diagnostics.image_scores(result, area=area, score_threshold=EVERYTHING)
        calibration = diagnostics.reliability(result, area=area)
        same(lrp.per_class.true_positives, hits)
        same(points.per_class.true_positives, hits)
        assert (images.true_positives.sum(), images.false_positives.sum()) == (hits.sum(), wrong)
        assert calibration.total.detections.sum() == right + wrong
        same(calibration.per_class.detections.sum(axis=0), calibration.total.detections)
        same(lrp.per_class.false_negatives + hits, result.class_counts["ground_truths"])


@by_ranking_protocol
def test_dropping_low_scores_changes_no_other_match(protocol: str) -> None:
    """On which every threshold rests that is chosen from one evaluation."""
    rules = load_protocol(protocol)
    if (
        not rules.scope.is_matched_alone
        or rules.matching.order == "file"
        or rules.matching.candidate not in RANKED
    ):
        return  # where the others decide which detections count or match, scale scores, or stand first in the file
    for seed in SEEDS:
        truth, found = drawn(protocol, seed)
        whole = boxscore.evaluate(truth, found, protocol=protocol)
        for threshold in np.quantile(found.scores, [0.3, 0.7]).tolist():
            left = found.take(np.flatnonzero(found.scores >= threshold))
            alone = diagnostics.image_scores(
                boxscore.evaluate(truth, left, protocol=protocol), score_threshold=EVERYTHING
            )
            counted = diagnostics.image_scores(whole, score_threshold=threshold)
            same(alone.true_positives, counted.true_positives)
            same(alone.false_positives, counted.false_positives)


@by_ranking_protocol
def test_guarantees_are_of_what_counts(protocol: str) -> None:
    for result in results(protocol):
        if not result.protocol.scope.is_matched_alone:
            with pytest.raises(boxscore.InputError, match="matches each image separately"):
                diagnostics.threshold_guarantee(result, recall=0.1)
            continue
        area = first_area(result)
        images = diagnostics.image_scores(result, area=area, score_threshold=EVERYTHING)
        with_objects = (images.true_positives + images.false_negatives) > 0
        found = diagnostics.threshold_guarantee(result, recall=1e-6, area=area).total
        assert found.images == with_objects.sum()
        if not np.isnan(found.score):
            at = diagnostics.image_scores(result, area=area, score_threshold=float(found.score))
            if result.protocol.group.weight in (0, 1):
                assert found.value == pytest.approx(float(at.recall[with_objects].mean()), abs=1e-12)
        few = diagnostics.threshold_guarantee(result, fppi=1000, at_most=500, area=area).total
        if np.isnan(few.score):
            assert few.note == "no detections"
            continue
        at = diagnostics.image_scores(result, area=area, score_threshold=float(few.score))
        assert few.value == pytest.approx(at.false_positives.mean(), abs=1e-12)


@pytest.mark.long
@by_protocol
def test_no_resampling_gives_the_metrics(protocol: str) -> None:
    for result in results(protocol):
        rows = list(result.protocol.rows)
        every = Groups(np.zeros(len(result.images), dtype=np.uint8), 0, 1)  # each image once
        once = result._weighted_metrics(rows, every).values[0]
        same(once[:, -1], [result.metrics[row.key] for row in rows])
        keys = result.protocol.class_keys
        for row, values in zip(rows, once, strict=True):
            if row.key in keys:
                same(values[:-1], result.class_values[keys[row.key]])
        bounds = diagnostics.tie_bounds(result)
        expected = np.array([result.metrics[key] for key in bounds.metrics])
        same(bounds.total.value, expected)
        defined = ~np.isnan(expected)
        assert (bounds.total.lowest[defined] <= expected[defined]).all()
        assert (bounds.total.highest[defined] >= expected[defined]).all()


@pytest.mark.long
@by_protocol
def test_a_result_equals_itself(protocol: str) -> None:
    for result in results(protocol):
        table = diagnostics.compare_detectors({"one": result, "other": result}, resamples=3).to_frame()
        difference = table["delta"].to_numpy(dtype=float)
        assert len(difference)
        assert (difference[~np.isnan(difference)] == 0).all()


@by_protocol
def test_a_plan_is_of_a_number_or_refused(protocol: str) -> None:
    for result in results(protocol):
        rows = result.protocol.rows[:1]
        if units_of_values(result, rows, None)[0, -1] < 10:
            with pytest.raises(boxscore.InputError, match="be at least 10 to plan from"):
                diagnostics.plan_comparison(result, result, resamples=3)
        else:
            plan = diagnostics.plan_comparison(result, result, resamples=3)
            assert (plan.total.delta == 0).all()
            assert np.isnan(plan.total.detectable).all()


@by_protocol
def test_confusions_add_up(protocol: str) -> None:
    for result in results(protocol):
        matrix = diagnostics.confusion_matrix(result, score_threshold=EVERYTHING)
        counted = ~result._matcher.ignoring.ignored
        same(
            matrix.counts.sum(axis=1)[:-1],
            np.bincount(result.ground_truth.category[counted], minlength=len(matrix.labels) - 1),
        )
        assert matrix.counts[:, :-1].sum() <= len(result.detections)
        top = diagnostics.top_confusions(result, score_threshold=EVERYTHING, limit=None)
        assert top.count.sum() == matrix.counts.sum() - np.trace(matrix.counts)


@pytest.mark.long
@by_protocol
def test_slices_add_up(protocol: str) -> None:
    for result in results(protocol):
        for name in diagnostics.slice_names(result):
            table = diagnostics.slice_scores(result, by=name).to_frame()
            assert len(table)
            if name == "crowdedness":  # every image is in one slice
                assert table["images"].sum() == len(result.images)
                assert table["ground_truths"].sum() == result.class_counts["ground_truths"].sum()
                assert table["detections"].sum() == result.class_counts["detections"].sum()


@by_ranking_protocol
def test_errors_are_of_what_took_part(protocol: str) -> None:
    for result in results(protocol):
        errors = diagnostics.error_types(result)
        listed = diagnostics.error_list(result).to_frame()["error"].value_counts()
        for name, count in zip(errors.errors, errors.total.counts.tolist(), strict=True):
            if name in ("classification", "localization", "both", "duplicate", "background", "missed"):
                assert listed.get(name, 0) == count
        suspects = diagnostics.label_suspects(result, score_threshold=0.3).to_frame()
        assert len(suspects) <= len(result.detections)
        assert len(diagnostics.froc_scores(result).to_frame()) == len(result.labels)
        assert len(diagnostics.froc_curve(result).to_frame()) <= len(result.detections) * 2
        assert len(diagnostics.confidence_curve(result).to_frame()) <= len(result.detections) * 2


@pytest.mark.long
@pytest.mark.parametrize("protocol", each_protocol(ranked=True))
def test_a_report_is_written(protocol: str, tmp_path: Path) -> None:
    result = results(protocol)[0]
    result.report(tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.long
@by_ranking_protocol
def test_explained_or_refused_by_name(protocol: str) -> None:
    truth, found = drawn(protocol, 0)
    table = diagnostics.ablation(truth, found, protocol)
    assert len(table) > 5
    assert table["change"][0] == protocol
    if load_protocol(protocol).similarity == "box":
        explained = diagnostics.explain(truth, found, protocol, "coco")
        assert explained.first_value == table["value"][0]
    else:
        explained = diagnostics.explain(truth, found, protocol, protocol)
        assert explained.first_value == table["value"][0]


# ---------------------------------------------------------------- single rules


def plain_tables(seed: int) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Without ignored objects, of which TIDE and the protocols think differently."""
    truth, found = drawn("lvis", seed)
    return truth.take(np.flatnonzero(~(truth.crowd | truth.difficult | truth.ignore))), found


@pytest.mark.parametrize("not_exhaustive", ["count", "ignore"])
@pytest.mark.parametrize("seed", range(6))
def test_tide_starts_from_the_ap_of_its_protocol(seed: int, not_exhaustive: str) -> None:
    truth, found = plain_tables(seed)
    protocol = {"extends": "tide", "labels": {"not_exhaustive": not_exhaustive}}
    result = boxscore.evaluate(truth, found, protocol=protocol)
    ours = diagnostics.error_types(result).per_class.value[:, 0]
    theirs = result.ap_by_iou()[0]
    defined = ~np.isnan(ours)
    assert defined.any()
    same(ours[defined], theirs[defined])


@pytest.mark.parametrize("not_exhaustive", ["count", "ignore"])
@pytest.mark.parametrize("seed", range(6))
def test_confusion_of_one_class_is_its_counts(seed: int, not_exhaustive: str) -> None:
    truth, found = plain_tables(seed)
    protocol = {"extends": "tide", "labels": {"not_exhaustive": not_exhaustive}}
    result = boxscore.evaluate(truth, found, protocol=protocol, classes=["pedestrian"])
    counts = diagnostics.confusion_matrix(result, score_threshold=EVERYTHING).counts
    hits = int(result.class_counts["true_positives"].sum())
    wrong = result.matches["outcome"].tolist().count("false positive")
    assert counts.tolist() == [[hits, len(result.ground_truth) - hits], [wrong, 0]]


def test_a_class_not_annotated_exhaustively_has_no_suspects() -> None:
    truth, found = plain_tables(1)
    assert truth.image_labels is not None
    rules = {"extends": "coco", "labels": {"not_exhaustive": "ignore"}}
    result = boxscore.evaluate(truth, found, protocol=rules)
    rows = diagnostics.label_suspects(result, score_threshold=0.1, limit=None).detection
    says = truth.image_labels.says(found.image[rows], found.category[rows], "not_exhaustive")
    assert len(rows)
    assert not says.any()
    everyone = diagnostics.label_suspects(
        boxscore.evaluate(truth, found), score_threshold=0.1, limit=None
    ).detection
    assert truth.image_labels.says(found.image[everyone], found.category[everyone], "not_exhaustive").any()


@pytest.mark.parametrize("protocol", ["mmrotate-probiou", "ultralytics-obb"])
def test_ignored_objects_under_probiou(protocol: str) -> None:
    """No share of a detection is known; TIDE and the suspects measure ignored objects by ProbIoU itself."""
    rules = load_protocol(protocol)
    rules = dataclasses.replace(rules, ignore=dataclasses.replace(rules.ignore, difficult="ignore"))
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1], ["a", "a"], None, rotated=[[20, 20, 10, 10, 0], [60, 60, 10, 10, 0]], difficult=[False, True]
    )
    found = boxscore.Detections.from_arrays(
        [1, 1, 1],
        ["a"] * 3,
        None,
        [0.9, 0.8, 0.7],
        rotated=[[20, 20, 10, 10, 0], [60, 60, 10, 10, 0], [90, 90, 10, 10, 0]],
    )
    result = boxscore.evaluate(truth, found, protocol=rules)
    errors = diagnostics.error_types(result)
    assert errors.total.counts[errors.errors.index("false_positives")] == 1
    suspects = diagnostics.label_suspects(result, score_threshold=0.0)
    assert suspects.to_frame()["score"].tolist() == [0.7]


@by_ranking_protocol
def test_steps_of_the_analysis_end_at_one(protocol: str) -> None:
    for result in results(protocol):
        curves = diagnostics.error_curves(result)
        defined = curves.precision[~np.isnan(curves.precision[:, 0, 0])]
        assert len(defined)
        assert (np.diff(defined[:, 2:], axis=1) >= 0).all()
        same(np.unique(defined[:, -1]), [1.0])
        assert set(np.unique(defined[:, -2]).tolist()) <= {0.0, 1.0}


@pytest.mark.filterwarnings("error::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("protocol", COLUMNS)
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("confusion_matrix", "confusions are"),
        ("top_confusions", "confusions are"),
        ("error_types", "error types are"),
        ("error_areas", "error curves are"),
        ("label_suspects", "label suspects are"),
    ],
)
def test_subsets_are_left_out_loudly(protocol: str, name: str, what: str) -> None:
    tables = drawn(protocol, 0)
    with pytest.warns(
        boxscore.BoxscoreWarning,
        match=f"{what} computed over all objects; the subsets of protocol {protocol} are ignored",
    ):
        getattr(diagnostics, name)(boxscore.evaluate(*tables, protocol=protocol))
