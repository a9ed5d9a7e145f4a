"""Bootstrap, slices and comparisons where the parts are have the bits of one process. Needs no cluster."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore._utils.resampling import Draws, Groups
from boxscore.distributed.parts import Part
from boxscore.distributed.reduction import Here, header_of
from boxscore.distributed.weighing import HeldParts, weighed_parts
from boxscore.protocols import load_protocol
from support import federated_cases, instances, open_images, voc_cases
from support.cases import Case, coco_cases
from support.examples import examples
from support.parted import Tables, parts_of, whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one example after the other writes its files into."""
    return tmp_path_factory.mktemp("case")


def held(parts: list[Part]) -> HeldParts:
    return HeldParts(parts, [header_of(part) for part in parts], lambda: contextlib.nullcontext(Here()))


def check(tables: Tables, protocol: Any, data: st.DataObject) -> None:
    images = len(tables[0].images)
    if not images:
        return
    drawn = st.lists(st.integers(0, 3), min_size=images, max_size=images)
    parts = parts_of(tables, protocol, data.draw(drawn, label="partition"))
    sizes = {
        "most": data.draw(st.sampled_from([1, 2, 5, 10**6]), label="most"),
        "alone": data.draw(st.sampled_from([-1, -1, 10**6]), label="alone"),
    }
    groups = np.array(data.draw(drawn, label="slices"), dtype=np.uint8)
    result = whole(tables, protocol)
    rows = result.protocol.rows
    for weights in (Draws.of_seed(images, 3, seed=images), Groups(groups, 0, 3)):
        ours, one = weighed_parts(held(parts), rows, weights, **sizes), result.weighed(rows, weights)
        for mine, theirs in zip(ours, one, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            assert mine.tobytes() == theirs.tobytes()


@given(case=coco_cases(), data=st.data())
@settings(max_examples=examples(40))
def test_coco(case: Case, folder: Path, data: st.DataObject) -> None:
    check(case.load(folder), case.protocol, data)


@given(case=voc_cases.voc_cases(), data=st.data())
@settings(max_examples=examples(20))
def test_voc(case: voc_cases.Case, data: st.DataObject) -> None:
    check(voc_cases.tables(case), case.rules, data)


@given(seed=st.integers(0, 10_000), kind=st.sampled_from(["segm", "boundary", "keypoints"]), data=st.data())
@settings(max_examples=examples(4))
def test_masks_and_keypoints(seed: int, kind: str, folder: Path, data: st.DataObject) -> None:
    make = instances.keypoint_case if kind == "keypoints" else instances.mask_case
    tables = instances.load(folder, *make(seed))
    check(tables, instances.PROTOCOLS[kind], data)


@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(["lvis", "lvis-fixed", "lvis-pooled", "openimages-v2"]),
    cap=st.integers(1, 9),
    data=st.data(),
)
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


RULES = [
    {"ap": {"tie_order": "true_positives_first"}},
    {"ap": {"tie_order": "true_positives_last", "absent_classes": "zero"}},
    {"ap": {"absent_classes": "all_zero", "sequential_mean": True}},
    {"ap": {"absent_classes": "zero", "class_mean": "nanmean"}},
    {"ap": {"interpolation": "area"}},
    {"matching": {"cap_scope": "image_each"}, "ap": {"absent_classes": "zero"}},
    {"matching": {"per_class": False}},
    {"summary": [{"key": "FROC", "metric": "FROC", "iou": 0.5}, {"key": "AP"}]},
    {"group": {"weight": 0.5}},
]


def drawn_tables(seed: int, images: int = 7) -> Tables:
    """Draw objects and detections of few classes; many equal scores, images and classes without any."""
    rng = np.random.default_rng(seed)
    count, found = rng.integers(0, 14), rng.integers(0, 30)
    corner = rng.integers(0, 12, (count, 2)) * 4.0
    boxes = np.hstack([corner, corner + rng.integers(2, 9, (count, 2)) * 4.0])
    image, label = rng.integers(0, images, count), rng.integers(0, 4, count)
    truth = boxscore.GroundTruth.from_arrays(
        image, label, boxes, images=range(images), categories=range(4), crowd=rng.random(count) < 0.1
    )
    of = rng.integers(0, max(count, 1), found if count else 0)
    near = boxes[of] + rng.integers(-1, 2, (len(of), 4)) * 2.0
    same = rng.random(len(of)) < 0.8
    detections = boxscore.Detections.from_arrays(
        np.where(same, image[of], rng.integers(0, images, len(of))),
        np.where(rng.random(len(of)) < 0.8, label[of], rng.integers(0, 4, len(of))),
        near,
        rng.integers(1, 6, len(of)) / 5,
    )
    return truth, detections


@given(seed=st.integers(0, 10_000), rules=st.sampled_from(RULES), data=st.data())
@settings(max_examples=examples(120))
def test_rules(seed: int, rules: dict[str, Any], data: st.DataObject) -> None:
    extended = {
        "extends": "coco",
        "name": "case",
        **rules,
        "matching": {"iou_thresholds": [0.3, 0.5, 0.8], "max_detections": [1, 2, 4], **rules.get("matching", {})},
    }
    check(drawn_tables(seed), extended, data)
