"""Parts merge to the bits of one evaluation, whatever the partition; and what does not fit is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.data.alignment import align
from boxscore.data.rounding import rounded
from boxscore.distributed import Part, merge
from boxscore.distributed.scanning import partitioned
from boxscore.protocols import load_protocol
from support import federated_cases, instances, open_images, voc_cases
from support.cases import Case, coco_cases
from support.examples import examples

Tables = tuple[boxscore.GroundTruth, boxscore.Detections]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one example after the other writes its files into."""
    return tmp_path_factory.mktemp("case")


def bits(evaluation: boxscore.Evaluation) -> dict[str, Any]:
    """Everything that a result prints and draws, to the bit."""
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    values = {name: array.tobytes() for name, array in evaluation.class_values.items()}
    counts = {name: array.tolist() for name, array in evaluation.class_counts.items()}
    return {
        **arrays,
        **values,
        "class counts": counts,
        "metrics": np.array(list(evaluation.metrics.values())).tobytes(),
        "ap by iou": evaluation.ap_by_iou().tobytes(),
        "counts": evaluation.counts,
        "repr": repr(evaluation),
        "labels": evaluation.labels,
        "json": evaluation.to_json(),
    }


def whole(tables: tuple[Any, Any], protocol: Any) -> boxscore.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        return boxscore.evaluate(*tables, protocol=protocol)


def parts_of(tables: Tables, protocol: Any, partition: Any) -> list[Part]:
    chosen = load_protocol(protocol)
    truth, found = tables
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        found = align(found, truth)
    found = rounded(found, scores=chosen.rounding.scores, boxes=chosen.rounding.boxes)
    return [task.run() for task in partitioned(truth, found, np.asarray(partition), chosen)]


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    images = len(tables[0].images)
    if not images:
        return
    drawn = st.lists(st.integers(0, 3), min_size=images, max_size=images)
    parts = parts_of(tables, protocol, data.draw(drawn, label="partition"))
    parts = data.draw(st.permutations(parts), label="order of the parts")
    saved = [Part.from_bytes(part.to_bytes()) for part in parts]
    assert bits(merge(saved)) == bits(whole(tables, protocol))


@given(case=coco_cases(), data=st.data())
@settings(max_examples=examples(25))
def test_coco(case: Case, folder: Path, data: st.DataObject) -> None:
    check(case.load(folder), case.protocol, data)


@given(case=voc_cases.voc_cases(), data=st.data())
@settings(max_examples=examples(20))
def test_voc_whose_equal_scores_go_in_file_order(case: voc_cases.Case, data: st.DataObject) -> None:
    check(voc_cases.tables(case), case.rules, data)


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["segm", "boundary", "keypoints"]), data=st.data())
@settings(max_examples=examples(4))
def test_masks_and_keypoints(seed: int, kind: str, folder: Path, data: st.DataObject) -> None:
    make = instances.keypoint_case if kind == "keypoints" else instances.mask_case
    tables = instances.load(folder, *make(seed))
    check(tables, instances.PROTOCOLS[kind], data)


FEDERATED = ("lvis", "lvis-fixed", "lvis-pooled", "openimages-v2", "openimages-challenge")


@given(seed=st.integers(0, 10_000), name=st.sampled_from(FEDERATED), cap=st.integers(1, 9), data=st.data())
@settings(max_examples=examples(25))
def test_federated(seed: int, name: str, cap: int, folder: Path, data: st.DataObject) -> None:
    truth, results = federated_cases.federated_case(seed)
    protocol = {"extends": name, "name": "case"}
    if load_protocol(name).matching.max_detections:
        protocol["matching"] = {"max_detections": [cap]}  # type: ignore[assignment]
    (folder / "truth.json").write_text(json.dumps(truth))
    (folder / "results.json").write_text(json.dumps(results))
    result = whole((folder / "truth.json", folder / "results.json"), protocol)
    check((result.ground_truth, result.detections), protocol, data)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([0.0, 0.25, 1.0]), data=st.data())
@settings(max_examples=examples(15))
def test_groups_that_count_in_part(seed: int, weight: float, data: st.DataObject) -> None:
    truths, found, listed, images, labels = federated_cases.open_images_case(seed)
    tables = open_images.tables_of(truths, found, listed, images, labels)
    check(tables, {"extends": "openimages-v2", "group": {"weight": weight}}, data)
