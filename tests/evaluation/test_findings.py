"""What ``evaluate`` warns of in Python: the words of the command, gravest first."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import boxscore
from boxscore import Detections, FindingWarning, GroundTruth
from support.quiet import quiet
from support.running import Run

IMAGE = np.repeat(np.arange(10), 4)
RANDOM = np.random.default_rng(3)
PLACE = RANDOM.uniform(0, 300, (40, 2))
BOXES = np.hstack([PLACE, PLACE + RANDOM.uniform(20, 60, (40, 2))])
NAMES = ["cat", "dog"] * 20


def tables(scores: Any, boxes: Any = BOXES, **options: Any) -> tuple[GroundTruth, Detections]:
    truth = GroundTruth.from_arrays(IMAGE, NAMES, BOXES, **options)
    return truth, Detections.from_arrays(IMAGE, NAMES, boxes, scores)


def found(*pair: Any, **options: Any) -> list[FindingWarning]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        boxscore.evaluate(*pair, **options)
    assert all(each.filename == __file__ for each in caught)  # the caller's line
    return [each.message for each in caught if isinstance(each.message, FindingWarning)]


SCORES = np.linspace(0.001, 0.99, 40)
NOISE = BOXES + RANDOM.normal(0, 2, BOXES.shape)


def test_good_data_are_silent() -> None:
    assert found(*tables(SCORES, NOISE)) == []


def test_scores_in_per_cent() -> None:
    (warning,) = found(*tables(100 * SCORES, NOISE))
    assert (warning.code, warning.severity) == ("score-outside-0-1", "warning")
    assert str(warning) == (
        "39 scores outside [0, 1] (0.1 to 99); AP depends only on their order. Are they percentages?"
    )


def test_a_score_floor() -> None:
    truth, detections = tables(SCORES, NOISE)
    warning = found(truth, detections.take(np.flatnonzero(detections.scores > 0.3)))[-1]
    assert str(warning).startswith(
        "detections below a score of 0.3053 seem to be missing: export with conf=0.001. Average recall never exceeds 0."
    )
    assert "at most" not in str(warning)


def test_boxes_of_another_size_and_form() -> None:
    """Tables made from arrays were never looked at by a loader."""
    truth = GroundTruth.from_arrays(IMAGE, NAMES, BOXES)
    (warning,) = found(truth, Detections.from_arrays(IMAGE, NAMES, BOXES / 4, SCORES))
    assert warning.code == "network-coordinates"
    assert 'Use --network-input scale:0.25, or network_input="scale:0.25"' in str(warning)
    (warning,) = found(truth, Detections.from_arrays(IMAGE, NAMES, BOXES / 4 + 1000, SCORES))
    assert (warning.code, warning.severity) == ("detections-off-annotations", "error")
    assert str(warning).startswith(
        "error in the input: only 0 of the 40 most confident detections overlap an annotation of their image with IoU >= 0.5."
    )


def test_errors_come_first() -> None:
    truth, detections = tables(100 * SCORES, NOISE)
    few = detections.take(np.flatnonzero(detections.image < 4))
    assert next(each.code for each in found(truth, few)) == "image-without-detections"
    assert found(truth, few)[0].severity == "error"
    assert str(found(truth, few)[0]).startswith(
        "error in the input: 6 images with annotations (60%) without detections."
    )


def test_it_can_be_left_out() -> None:
    pair = tables(100 * SCORES, NOISE)
    assert found(*pair, digest=False) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FindingWarning)
        boxscore.evaluate(*pair)


def test_questions_about_a_result_do_not_say_it_again() -> None:
    pair = tables(100 * SCORES, NOISE)
    result = boxscore.evaluate(*pair, digest=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boxscore.validation.validate(*pair)
        result.compare(result, resamples=2)
        result.to_json()


def test_the_command_says_the_same(tmp_path: Path, run: Run) -> None:
    truth, detections = tables(100 * SCORES, NOISE)
    paths = [tmp_path / "gt.npz", tmp_path / "dt.npz"]
    for table, path in zip((truth, detections), paths, strict=True):
        boxscore.save_columns(table, path)
    said = " ".join(run("evaluate", *paths).err.split())
    assert said == " ".join(f"boxscore: warning: {each}" for each in found(truth, detections))


def test_a_remedy_that_cannot_be_evaluated_stops_nothing() -> None:
    """Fractions of images of unknown sizes, and a flag that another protocol reads, which counts whole pixels."""
    boxes = [[0.1, 0.1, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]]
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "cat"], boxes, difficult=[True, False])
    found = boxscore.Detections.from_arrays([1, 1], ["cat", "cat"], boxes, [0.9, 0.8])
    truth, found = truth.replaced(units="fractions"), found.replaced(units="fractions")
    with quiet():
        assert boxscore.evaluate(truth, found)["AP50"] > 0.99
