"""``sweep`` under every shipped protocol: a row is the evaluation of what suppression leaves, bit for bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import sweep
from boxscore.extensions.diagnostics.sweeping import Sweep
from boxscore.protocols import load_protocol
from support.drawn import drawn, each_protocol
from support.examples import first_of
from support.matches import assert_same_matches, match_tables
from support.quiet import quiet

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

FLOORS = [0.0, 0.2, 0.6]
METHODS = ("hard", "soft-linear", "nmm")


def one_after_the_other(
    truth: boxscore.GroundTruth, found: boxscore.Detections, protocol: str, **setting: Any
) -> boxscore.Evaluation:
    chosen = {name: setting.pop(name) for name in ("images", "classes") if name in setting}
    left = boxscore.suppress(found, **setting).apply(found)
    return boxscore.evaluate(truth, left, protocol=protocol, **chosen)


def swept(
    truth: boxscore.GroundTruth,
    found: boxscore.Detections,
    method: str,
    protocol: str,
    options: dict[str, Any],
) -> Sweep:
    return sweep(
        truth,
        found,
        methods=[method],
        iou_thresholds=[0.5],
        score_thresholds=FLOORS,
        protocol=protocol,
        **options,
    )


def check(truth: boxscore.GroundTruth, found: boxscore.Detections, protocol: str, **options: Any) -> int:
    """Compare every row of every method; return how many settings evaluation and the sweep both refuse."""
    refused = 0
    for method in METHODS:
        setting = {"method": method, "iou_threshold": 0.5, **options}
        message, expected = None, []
        try:
            expected = [
                one_after_the_other(truth, found, protocol, score_threshold=floor, **setting)
                for floor in FLOORS
            ]
        except boxscore.InputError as error:
            message = str(error)
        if message is not None:
            with pytest.raises(boxscore.InputError) as ours:
                swept(truth, found, method, protocol, options)
            assert str(ours.value) == message
            refused += 1
            continue
        together = swept(truth, found, method, protocol, options)
        for row, alone in enumerate(expected):
            keys = alone.protocol.class_keys
            assert together.total_detections[row] == len(alone.detections)
            assert {*together.total} == {*alone.class_values}
            for key, name in keys.items():
                np.testing.assert_array_equal(together.total[name][row], alone.metrics[key])
                np.testing.assert_array_equal(together.values[name][row], alone.class_values[name])
    return refused


@pytest.mark.long
@pytest.mark.parametrize("protocol", each_protocol(ranked=True))
def test_a_row_is_suppression_and_then_evaluation(protocol: str) -> None:
    for seed in (0, 5):
        refused = check(*drawn(protocol, seed), protocol)
        # Lowered scores leave files in another order; everything else is evaluated.
        assert refused == (1 if load_protocol(protocol).matching.ranked_files else 0)


def test_a_protocol_without_scores_is_refused() -> None:
    with pytest.raises(boxscore.InputError) as error:
        sweep(*drawn("scoreless", 0), protocol="scoreless")
    assert str(error.value) == "the protocol must rank detections for a sweep. Got scoreless."


@pytest.mark.long
@pytest.mark.parametrize(
    "protocol", first_of(2, ["widerface", "lvis", "crowdhuman", "visdrone", "detectron2-voc2012"])
)
def test_some_images_and_classes(protocol: str) -> None:
    """What is stretched is stretched over all that is left, not over what is chosen of it."""
    check(*drawn(protocol, 3), protocol, images=[2, 1], classes=["pedestrian"])


@pytest.mark.long
@pytest.mark.parametrize("protocol", first_of(1, ["crowdhuman", "coco", "lvis"]))
def test_classes_without_ground_truth_are_suppressed_too(protocol: str) -> None:
    """A detection of a class that is not evaluated suppresses and fills caps like any other."""
    truth, found = drawn(protocol, 1)
    renamed = boxscore.Detections.from_arrays(
        found.images.ids[found.image],
        np.where(found.category == 2, 77, found.category),
        found.boxes,
        found.scores,
        columns={
            name: np.full(len(found), size) for name, size in (("image_width", 120), ("image_height", 90))
        },
    )
    check(truth, renamed, protocol, class_agnostic=True)
    check(truth, renamed, protocol, max_per_image=5)


def test_an_image_whose_size_is_beside_its_detections_alone() -> None:
    truth, found = drawn("crowdhuman", 2)
    unsized = truth.replaced(
        images=dataclasses.replace(truth.images, sizes=np.full((len(truth.images), 2), np.nan))
    )
    sized = found.replaced(
        columns={"image_width": np.full(len(found), 120.0), "image_height": np.full(len(found), 90.0)}
    )
    check(unsized, sized, "crowdhuman")


@pytest.mark.parametrize("protocol", ["lvis", "lvis-pooled", "lvis-fixed", "openimages-challenge", "caltech"])
def test_matched_again_is_matched(protocol: str) -> None:
    """What is known of whole images belongs to the rows that are matched again, not to the first ones."""
    truth, found = drawn(protocol, 4)
    with quiet():
        result = boxscore.evaluate(truth, found, protocol=protocol)
    truth, found = result.ground_truth, result.detections
    rows = np.flatnonzero(np.random.default_rng(0).random(len(found)) < 0.6)
    again = result._matcher.match_some(rows, found.scores[rows])
    expected = match_tables(truth, found.take(rows), protocol)
    assert_same_matches(again, dataclasses.replace(expected, row=rows[expected.row]))
