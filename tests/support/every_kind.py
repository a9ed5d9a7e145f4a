"""A data set of every kind, and a protocol that scores it: what tests of parts ask of each.

Each function draws a case with the ``draw`` of a test's ``st.data()``, which prints what it drew; files go
into a folder of the test's module, and are read when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from boxscore.protocols import load_protocol
from support import federated_cases, instances, open_images, rotated, voc_cases
from support.cases import coco_cases
from support.examples import examples
from support.parted import Tables, whole

Drawn = tuple[Tables, Any]
ROTATED = ["dota", "dota-task2", "mmrotate", "mmrotate-probiou", "hrsc", "ultralytics-obb"]
seeds = st.integers(0, 10_000)


def every(
    case: Callable[[Any, Path], Drawn], check: Callable[[Tables, Any, st.DataObject], None], count: int
) -> Callable[..., None]:
    """Return a test that draws so many cases and checks each; ``check`` may draw more."""

    @given(data=st.data())
    @settings(max_examples=examples(count))
    def test(folder: Path, data: st.DataObject) -> None:
        check(*case(data.draw, folder), data)

    return test


def coco(draw: Any, folder: Path) -> Drawn:
    case = draw(coco_cases(), label="case")
    return case.load(folder), case.protocol


def voc(draw: Any, folder: Path) -> Drawn:
    """Equal scores go in the order of the files."""
    case = draw(voc_cases.voc_cases(), label="case")
    return voc_cases.tables(case), case.rules


def masks_and_keypoints(draw: Any, folder: Path) -> Drawn:
    seed = draw(seeds, label="seed")
    kind = draw(st.sampled_from(sorted(instances.PROTOCOLS)), label="kind")
    make = instances.keypoint_case if kind == "keypoints" else instances.mask_case
    return instances.load(folder, *make(seed)), instances.PROTOCOLS[kind]


def federated(draw: Any, folder: Path) -> Drawn:
    name = draw(
        st.sampled_from(["lvis", "lvis-fixed", "lvis-pooled", "openimages-v2", "openimages-challenge"])
    )
    protocol: dict[str, Any] = {"extends": name, "name": "case"}
    cap = draw(st.integers(1, 9), label="cap")
    if load_protocol(name).matching.max_detections:
        protocol["matching"] = {"max_detections": [cap]}
    return federated_tables(draw(seeds, label="seed"), protocol, folder), protocol


def federated_tables(seed: int, protocol: Any, folder: Path) -> Tables:
    """Return ground truth and detections as the protocol has them read."""
    paths = folder / "truth.json", folder / "results.json"
    for path, content in zip(paths, federated_cases.federated_case(seed), strict=True):
        path.write_text(json.dumps(content))
    result = whole(paths, protocol)
    return result.ground_truth, result.detections


def groups_in_part(draw: Any, folder: Path) -> Drawn:
    """Return groups of which a share counts."""
    seed, weight = draw(seeds, label="seed"), draw(st.sampled_from([0.0, 0.25, 1.0]), label="weight")
    case = federated_cases.open_images_case(seed)
    if draw(st.booleans(), label="ties"):
        case = federated_cases.tied(case, seed)
    return open_images.tables_of(*case), {"extends": "openimages-v2", "group": {"weight": weight}}


def rotated_boxes(draw: Any, folder: Path) -> Drawn:
    case = rotated.rotated_case(draw(seeds, label="seed"), crowds=False)
    return rotated.tables(*case), draw(st.sampled_from(ROTATED), label="protocol")
