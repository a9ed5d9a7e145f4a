"""LVIS: every number and the whole arrays that lvis-api gives, on its own sample and on made-up sets."""

from __future__ import annotations

import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Evaluation
from support.quiet import quiet
from support.real_data import real

pytestmark = pytest.mark.real


def limited(protocol: str, cap: int | None) -> dict[str, Any]:
    return {"extends": protocol, "matching": {"max_detections": [] if cap is None else [cap]}}


SAMPLE = ("lvis_val_100.json", "expected_master.json")
CHALLENGE = ("lvis_val_100.json", "expected_challenge.json")
OWN = ("own/ground_truth.json", "own/expected.json")
RUNS: dict[tuple[tuple[str, str], str], tuple[str, Any]] = {
    (SAMPLE, "bbox_max300"): ("detections_bbox.json", "lvis"),
    (SAMPLE, "bbox_max20"): ("detections_bbox.json", limited("lvis", 20)),
    (SAMPLE, "bbox_unlimited"): ("detections_bbox.json", limited("lvis", None)),
    (SAMPLE, "bbox_fixed_10000"): ("detections_bbox.json", "lvis-fixed"),
    (SAMPLE, "bbox_fixed_10"): ("detections_bbox.json", limited("lvis-fixed", 10)),
    (SAMPLE, "segm_masks_only"): ("detections_segm.json", "lvis-segm"),
    (SAMPLE, "segm_with_bbox_key"): ("detections_segm_with_bbox.json", "lvis-segm"),
    (CHALLENGE, "challenge2021"): ("detections_segm.json", "lvis-challenge-2021"),
    (CHALLENGE, "boundary_default_mode"): ("detections_segm.json", "lvis-boundary"),
    (CHALLENGE, "boundary_dilation_0.008"): (
        "detections_segm.json",
        {"extends": "lvis-boundary", "masks": {"boundary_dilation": 0.008}},
    ),
    (OWN, "bbox_max300"): ("own/detections_bbox.json", "lvis"),
    (OWN, "bbox_max10"): ("own/detections_bbox.json", limited("lvis", 10)),
    (OWN, "bbox_fixed_20"): ("own/detections_bbox.json", limited("lvis-fixed", 20)),
    (OWN, "segm_max300"): ("own/detections_segm.json", "lvis-segm"),
    (OWN, "segm_max6"): ("own/detections_segm.json", limited("lvis-segm", 6)),
}


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def evaluated(truth: Path, found: Path, protocol: Any) -> Evaluation:
    with quiet():
        return boxscore.evaluate(truth, found, protocol=protocol)


def as_lvis(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics under lvis-api's keys without their cap, -1 where undefined."""
    keys = {
        key: "AR" if key.startswith("AR") and key not in ("ARs", "ARm", "ARl") else key for key in metrics
    }
    return {keys[key]: -1.0 if math.isnan(value) else value for key, value in metrics.items()}


def without_caps(metrics: dict[str, float]) -> dict[str, float]:
    return {key.partition("@")[0]: value for key, value in metrics.items()}


def digest(array: Any) -> str:
    bytes_ = np.ascontiguousarray(np.nan_to_num(array, nan=-1.0)).tobytes()
    return hashlib.sha256(bytes_).hexdigest()


@pytest.mark.parametrize(("files", "run"), list(RUNS), ids=[f"{files[0][:4]}-{run}" for files, run in RUNS])
def test_every_bit_of_the_arrays(files: tuple[str, str], run: str) -> None:
    results, protocol = RUNS[files, run]
    truth, expected = (real("lvis", name) for name in files)
    wanted = read(expected)[run]
    evaluation = evaluated(truth, real("lvis", results), protocol)
    assert as_lvis(evaluation.metrics) == without_caps(wanted["metrics"])
    arrays = evaluation.arrays()
    assert digest(arrays["precision"][..., 0]) == wanted["precision_sha256"]
    assert digest(arrays["recall"][..., 0]) == wanted["recall_sha256"]


def test_classes_pooled() -> None:
    protocol = {"extends": "lvis", "matching": {"per_class": False}}
    evaluation = evaluated(real("lvis", "lvis_val_100.json"), real("lvis", "detections_bbox.json"), protocol)
    wanted = read(real("lvis", "expected_master.json"))["bbox_agnostic"]
    assert evaluation["AP"] == wanted["AP"]
    assert evaluation["AR300"] == wanted["AR"]
    before_failure = wanted["results_before_failure"]
    assert {key: evaluation[key] for key in before_failure} == before_failure


def test_every_case_by_hand(tmp_path: Path) -> None:
    cases = read(real("lvis", "cases.json"))["cases"]
    for case in cases:
        truth, found = tmp_path / "truth.json", tmp_path / "results.json"
        truth.write_text(json.dumps(case["gt"]), encoding="utf-8")
        found.write_text(json.dumps(case["dt"]), encoding="utf-8")
        evaluation = evaluated(truth, found, limited("lvis", case["max_dets"]))
        assert as_lvis(evaluation.metrics) == without_caps(case["expected"]["metrics"]), case["name"]
        ap50 = evaluation.class_values["AP50"].tolist()
        by_class = case["expected"]["AP50_by_class"]
        assert [-1.0 if math.isnan(value) else value for value in ap50] == list(by_class.values()), case[
            "name"
        ]
    assert len(cases) == 16


FACE = {
    "bbox_max300": ("bbox", 300),
    "bbox_max20": ("bbox", 20),
    "bbox_unlimited": ("bbox", -1),
    "segm_masks_only": ("segm", 300),
    "segm_with_bbox_key": ("segm", 300),
}


@pytest.mark.parametrize("run", list(FACE))
def test_every_bit_by_the_drop_in_face(run: str) -> None:
    from boxscore.compat.lvis import LVIS, LVISEval, LVISResults

    iou_type, cap = FACE[run]
    truth = LVIS(str(real("lvis", SAMPLE[0])))
    found = LVISResults(truth, str(real("lvis", RUNS[SAMPLE, run][0])), max_dets=cap)
    evaluation = LVISEval(truth, found, iou_type)
    evaluation.params.max_dets = cap
    evaluation.run()
    wanted = read(real("lvis", SAMPLE[1]))[run]
    assert evaluation.get_results() == wanted["metrics"]
    assert digest(evaluation.eval["precision"]) == wanted["precision_sha256"]
    assert digest(evaluation.eval["recall"]) == wanted["recall_sha256"]
