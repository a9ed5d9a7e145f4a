"""LRP by hand and by a loop over thresholds."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import localization_recall_precision
from support.curves import tables


def test_worked_by_hand():
    """Three objects; hits of IoU .9 and .6, a false alarm between them.

    Thresholds at .9: (.1/.5 + 0 + 2) / 3 = .7333; at .8: (.2 + 1 + 2) / 4 = .8;
    at .7: (.2 + .8 + 1 + 1) / (2 + 1 + 1) = .75. The best is .7333 at .9.
    """
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1, 1], [1] * 3, [[i * 50, 0, i * 50 + 10, 10] for i in range(3)]
    )
    found = boxscore.Detections.from_arrays(
        [1, 1, 1], [1] * 3, [[0, 0, 10, 9], [200, 0, 210, 10], [50, 0, 60, 6]], [0.9, 0.8, 0.7]
    )
    evaluation = boxscore.evaluate(truth, found)
    best = localization_recall_precision(evaluation).to_frame().iloc[0]
    assert best["score"] == 0.9
    assert best["lrp"] == pytest.approx(2.2 / 3)
    assert best["localization"] == pytest.approx(0.1)
    assert best["false_positive"] == 0
    assert best["false_negative"] == pytest.approx(2 / 3)
    last = localization_recall_precision(evaluation, at_score=0.7).to_frame().iloc[0]
    assert last["lrp"] == pytest.approx(0.75)
    assert last["localization"] == pytest.approx(0.25)
    assert last["false_positive"] == pytest.approx(1 / 3)
    assert last["false_negative"] == pytest.approx(1 / 3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_equal_to_a_loop(scene, seed):
    evaluation = boxscore.evaluate(*scene(seed, images=30, decimals=1 if seed % 2 else None))
    result = localization_recall_precision(evaluation)
    table = result.to_frame().set_index("class")
    rows = evaluation.matches
    for label, positive in evaluation.per_class.set_index("class")["ground_truths"].items():
        if not positive:
            assert np.isnan(table.loc[label, "lrp"])
            continue
        values = [1.0]
        mine = rows[rows["class"] == label]
        for threshold in mine["score"].unique():
            kept = mine[mine["score"] >= threshold]
            hits = kept[kept["outcome"] == "true positive"]
            false = (kept["outcome"] == "false positive").sum()
            missed = positive - len(hits)
            values.append(((1 - hits["iou"]).sum() / 0.5 + false + missed) / (len(hits) + false + missed))
        assert table.loc[label, "lrp"] == pytest.approx(min(values), abs=1e-12)
    assert result.total.lrp == pytest.approx(table["lrp"].dropna().mean())
    assert result.total.true_positives == table["true_positives"].sum()


def test_parts_make_the_whole(scene):
    table = localization_recall_precision(boxscore.evaluate(*scene(2, images=40)), at_score=0.4).to_frame()
    table = table[table["lrp"].notna()]
    hits = table["true_positives"]
    whole = hits + table["false_positives"] + table["false_negatives"]
    kept = hits + table["false_positives"]
    total = (
        hits * table["localization"].fillna(0) / 0.5
        + kept * table["false_positive"].fillna(0)
        + (hits + table["false_negatives"]) * table["false_negative"]
    )
    np.testing.assert_allclose(table["lrp"], total / whole, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_class_counts_as_it_does_alone(seed: int) -> None:
    """Also classes without objects or detections, and ties between the last of a class and the next."""
    truth, found = tables(seed, scores=5)
    together = localization_recall_precision(boxscore.evaluate(truth, found)).per_class
    for k, category in enumerate(truth.categories.ids.tolist()):
        alone = localization_recall_precision(boxscore.evaluate(truth, found, classes=[category])).per_class
        for name, values in together._asdict().items():
            assert values[[k]].tobytes() == alone._asdict()[name].tobytes(), (category, name)
