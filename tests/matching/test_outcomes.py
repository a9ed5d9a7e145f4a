"""What became of each row of the tables."""

from __future__ import annotations

from boxscore.matching.outcomes import FALSE_POSITIVE, IGNORED, MISSED, TRUE_POSITIVE
from support.evaluations import evaluation, shapes


def test_outcomes_agree_with_the_matches_table() -> None:
    names = {TRUE_POSITIVE: "true positive", FALSE_POSITIVE: "false positive", IGNORED: "ignored"}
    for result in (shapes(), evaluation()):
        outcomes, table = result.outcomes, result.matches
        expected = table["outcome"].replace("beyond cap", "ignored").tolist()
        assert [names[code] for code in outcomes.detection.tolist()] == expected
        matched = (outcomes.truth() == TRUE_POSITIVE).sum()
        assert matched == (table["outcome"] == "true positive").sum()
        assert (outcomes.truth(float("inf")) != TRUE_POSITIVE).all()
        assert ((outcomes.truth(0.5) == MISSED) >= (outcomes.truth(0.2) == MISSED)).all()
        assert ((outcomes.rank < 0) == (table["outcome"] == "beyond cap")).all()
