"""What became of each row of the tables."""

from __future__ import annotations

import numpy as np

from support.evaluations import evaluation, shapes


def test_outcomes_agree_with_the_matches_table() -> None:
    for result in (shapes(), evaluation()):
        outcomes, table = result.outcomes, result.matches
        expected = table["outcome"].replace("beyond max detections", "ignored")
        codes = {name: set(outcomes.detection[expected == name].tolist()) for name in expected.unique()}
        assert all(len(own) == 1 for own in codes.values())
        assert len(set.union(*codes.values())) == len(codes)
        assert ((outcomes.rank < 0) == (table["outcome"] == "beyond max detections")).all()


def test_an_object_is_found_by_its_true_positive_alone() -> None:
    for result in (shapes(), evaluation()):
        outcomes, table, ids = result.outcomes, result.matches, result.ground_truth.ids
        nothing_kept = outcomes.truth(float("inf"))
        for score in (-np.inf, 0.2, 0.5):
            hits = table[(table["outcome"] == "true positive") & (table["score"] >= score)]
            found = np.flatnonzero(outcomes.truth(score) != nothing_kept)
            assert sorted(ids[found].tolist()) == sorted(hits["annotation_id"])
            assert len(found)
        counted = int(result.class_counts["ground_truths"].sum())
        assert len(set(nothing_kept[outcomes.counted].tolist())) == 1
        assert outcomes.counted.sum() == counted
