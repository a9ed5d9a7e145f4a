"""Annotation id 0: a choice of the protocol, with pycocotools as the oracle of one value."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import boxscore
from boxscore.compat.verification import verify
from oracles.pycoco import assert_equal_to_pycocotools, run_pycocotools
from support.cases import Case, coco_cases
from support.examples import examples
from support.quiet import quiet
from support.running import Run

Record = dict[str, Any]
UNMATCHED = {"extends": "coco", "matching": {"annotation_id_zero": "unmatched"}}

TRUTH: Record = {
    "images": [{"id": 1}],
    "categories": [{"id": 1, "name": "thing"}],
    "annotations": [
        {"id": 0, "image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0},
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [50, 0, 40, 40], "area": 1600, "iscrowd": 0},
    ],
}
RESULTS: list[Record] = [
    {"image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40], "score": 0.9},
    {"image_id": 1, "category_id": 1, "bbox": [50, 0, 40, 40], "score": 0.8},
    {"image_id": 1, "category_id": 1, "bbox": [0, 0, 40, 40], "score": 0.7},  # may not have annotation 0
]
WARNING = (
    "an annotation has id 0. boxscore counts it like any other: AP 1.0000; pycocotools does not count matches with it (1 true positive here): AP 0.2525. For the number of pycocotools use --annotation-id-zero unmatched, or "
    'matching.annotation_id_zero = "unmatched" in the protocol.'
)


def write(folder: Path, truth: Record = TRUTH, results: list[Record] = RESULTS) -> tuple[Path, Path]:
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    return folder / "gt.json", folder / "dt.json"


def with_ids(ids: list[Any]) -> Record:
    rows = zip(TRUTH["annotations"], ids, strict=True)
    return {**TRUTH, "annotations": [{**row, "id": identifier} for row, identifier in rows]}


def test_the_warning_gives_both_numbers_and_the_option(tmp_path: Path) -> None:
    with pytest.warns(boxscore.BoxscoreWarning) as given:
        counted = boxscore.evaluate(*write(tmp_path))
    (warning,) = given
    assert str(warning.message) == f"{tmp_path / 'gt.json'}: {WARNING}"
    assert run_pycocotools(TRUTH, RESULTS).stats[0] == pytest.approx(0.2525, abs=5e-5)
    assert "id0:" not in counted.signature
    assert_equal_to_pycocotools(counted, run_pycocotools(with_ids([2, 1]), RESULTS))


def test_unmatched_is_pycocotools_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluation = boxscore.evaluate(*write(tmp_path), protocol=UNMATCHED)
    assert_equal_to_pycocotools(evaluation, run_pycocotools(TRUTH, RESULTS))
    assert "|id0:unmatched|" in evaluation.signature
    assert evaluation.matches["outcome"].tolist() == ["false positive", "true positive", "false positive"]


@pytest.mark.parametrize("ids", [[0, 0], ["0", "7"], ["00", "0"], [0.0, 1.0], [-1, 0], ["0", 0]], ids=str)
def test_ids_that_pycocotools_reads_as_zero(ids: list[Any], tmp_path: Path) -> None:
    files = write(tmp_path, with_ids(ids))
    with quiet():  # repeated ids
        evaluation = boxscore.evaluate(*files, protocol=UNMATCHED)
    assert_equal_to_pycocotools(evaluation, run_pycocotools(with_ids(ids), RESULTS))
    assert verify(evaluation).equal


def test_an_ignored_match_stays_one_and_a_large_false_positive_is_ignored(tmp_path: Path) -> None:
    rows = [
        {**TRUTH["annotations"][0], "iscrowd": 1},  # ignored: its detections stay ignored
        {**TRUTH["annotations"][1], "area": 1e5},  # outside small and medium
    ]
    for zero in (0, 1):
        truth = {**TRUTH, "annotations": [{**row, "id": abs(n - zero)} for n, row in enumerate(rows)]}
        evaluation = boxscore.evaluate(*write(tmp_path, truth), protocol=UNMATCHED)
        assert_equal_to_pycocotools(evaluation, run_pycocotools(truth, RESULTS))


def zero_based(case: Case) -> Record:
    """The case's truth, numbered from 0, in another order than the file's."""
    rows = case.truth["annotations"]
    order = np.random.default_rng(len(rows)).permutation(len(rows)).tolist()
    numbered = [{**row, "id": number} for row, number in zip(rows, order, strict=True)]
    return {**case.truth, "annotations": numbered}


@given(case=coco_cases(repeated_ids=False))
@settings(max_examples=examples(60))
def test_any_case_numbered_from_zero(case: Case, folder: Path) -> None:
    truth = zero_based(case)
    reference = run_pycocotools(
        truth, case.results, caps=case.caps, thresholds=case.thresholds, per_class=case.per_class
    )
    matching = {**case.protocol["matching"], "annotation_id_zero": "unmatched"}
    files = write(folder, truth, case.results)
    with quiet():
        evaluation = boxscore.evaluate(*files, protocol={**case.protocol, "matching": matching})
        split = boxscore.evaluate(*files, protocol=evaluation.protocol, workers=3)
        counted = boxscore.evaluate(*files, protocol=case.protocol)
    assert_equal_to_pycocotools(evaluation, reference)
    assert_equal_to_pycocotools(split, reference)
    assert verify(evaluation).equal
    found = verify(counted)
    assert found.equal or "which explains the whole difference: " in found.id_zero
    renumbered = {**truth, "annotations": [{**row, "id": row["id"] + 1} for row in truth["annotations"]]}
    assert_equal_to_pycocotools(
        counted,
        run_pycocotools(
            renumbered, case.results, caps=case.caps, thresholds=case.thresholds, per_class=case.per_class
        ),
    )


def test_verify_compares_ids_as_they_are(tmp_path: Path, run: Run) -> None:
    truth, found = map(str, write(tmp_path))
    command = ["evaluate", "--gt", truth, "--dt", found, "--verify", "--no-digest"]
    err = run(*command, status=1).err
    assert "differs from pycocotools: largest difference 1.0 (precision 1, recall 0.5, scores 0.9); " in err
    assert "image 1, detection 0: matches ground truth 0 here, nothing in pycocotools." in err
    assert err.rstrip().endswith(
        "pycocotools does not count matches with annotation id 0, which explains the whole difference: AP 1 "
        'here, 0.252475 there; with matching.annotation_id_zero = "unmatched" (--annotation-id-zero '
        "unmatched) every value is equal"
    )
    out = run(*command, "--annotation-id-zero", "unmatched", "--strict").out
    assert "verified against pycocotools: largest difference 0.0" in out
    assert "|id0:unmatched|" in out


def test_a_run_configuration_may_choose(tmp_path: Path, run: Run) -> None:
    write(tmp_path)
    (tmp_path / "run.toml").write_text(
        '[ground_truth]\npath = "gt.json"\n[detections]\npath = "dt.json"\n'
        '[evaluation]\nannotation_id_zero = "unmatched"\n[output]\nform = "json"\n'
    )
    assert (
        json.loads(run("run", tmp_path / "run.toml").out)["metrics"]["AP"]
        == run_pycocotools(TRUTH, RESULTS).stats[0]
    )


def test_explain_has_a_step(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(write(tmp_path)[0])
    found = boxscore.load_detections(tmp_path / "dt.json", truth)
    explained = boxscore.diagnostics.explain(truth, found, "coco", {**UNMATCHED, "name": "as printed"})
    assert [change for change, _, _ in explained.steps] == ["annotation id 0: counted -> unmatched"]
    assert explained.last_value == pytest.approx(run_pycocotools(TRUTH, RESULTS).stats[0], abs=1e-15)


def test_slices_and_sweeps_keep_the_choice(tmp_path: Path) -> None:
    evaluation = boxscore.evaluate(*write(tmp_path), protocol=UNMATCHED)
    matcher = evaluation._matcher
    rows = np.arange(len(evaluation.detections))
    again = matcher.match_some(rows, evaluation.detections.scores)
    assert again.matched_bits.tolist() == evaluation.matched.matched_bits.tolist()
    ranges, _ = matcher.match_ranges([(0, 1e10)], evaluation.ground_truth.area, matcher.areas)
    assert ranges.matched_bits[:, 0].tolist() == evaluation.matched.matched_bits[:, 0].tolist()
