"""What the page says of the data."""

from __future__ import annotations

import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.reports.findings import findings
from boxscore.reports.outcomes import FALSE_POSITIVE, IGNORED, MISSED, TRUE_POSITIVE, read_outcomes


def test_each_oddity_is_said() -> None:
    images = Images.build([1, 2], sizes=[[100, 100], [100, 100]])
    boxes = [[0, 0, 10, 10], [0, 0, 10, 10], [5, 5, 5, 9]]
    names = {1: "cat", 2: "dog", 3: "cow"}
    truth = boxscore.GroundTruth.from_arrays([1, 1, 1], [1, 1, 2], boxes, images=images, categories=names)
    found = boxscore.Detections.from_arrays(
        [1, 1], [1, 1], [[0, 0, 10, 10], [90, 90, 150, 99]], [7.0, 7.0], images=images, categories=names
    )
    texts = " ".join(item.text for item in findings(boxscore.evaluate(truth, found), warnings=["as given"]))
    for part in (
        "as given",
        "1 ground truths have a width or height of 0",
        "1 detections (50.0%) reach more than 2 pixels beyond",
        "1 ground truths repeat another's",
        "No counted ground truth for 1 of 3 classes: cow",
        "No detection for 1 classes",
        "No detection in 1 of 2 images",
        "2 detections (100.0%) share their score",
        "Scores run from 7 to 7",
    ):
        assert part in texts


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_an_annotation_with_id_zero_is_noted() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]], ids=[0])
    found = boxscore.Detections.from_arrays([1], ["cat"], [[0, 0, 9, 9]], [0.5])
    assert any("id 0" in item.text for item in findings(boxscore.evaluate(truth, found)))


def test_outcomes_agree_with_the_matches_table() -> None:
    from support.evaluations import evaluation, shapes

    names = {TRUE_POSITIVE: "true positive", FALSE_POSITIVE: "false positive", IGNORED: "ignored"}
    for result in (shapes(), evaluation()):
        outcomes, table = read_outcomes(result), result.matches
        expected = table["outcome"].replace("beyond cap", "ignored").tolist()
        assert [names[code] for code in outcomes.detection.tolist()] == expected
        found = (outcomes.truths_at(-float("inf")) == TRUE_POSITIVE).sum()
        assert found == (table["outcome"] == "true positive").sum()
        assert (outcomes.truths_at(float("inf")) != TRUE_POSITIVE).all()
        assert ((outcomes.truths_at(0.5) == MISSED) >= (outcomes.truths_at(0.2) == MISSED)).all()
