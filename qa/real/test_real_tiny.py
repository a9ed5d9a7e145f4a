"""Tiny objects: the arrays of AI-TOD's, SODA-D's and TinyPerson's own evaluators, to the bit."""

from __future__ import annotations

import json
from typing import Any

import pytest

import boxscore
from support.digests import same_arrays
from support.real_data import real

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")]

WITHOUT_SHARE: dict[str, Any] = {
    "extends": "tinyperson",
    "boxes": {"foreground_share": "exact"},
    "ignore": {"flagged": "ignore", "outside": "ignore"},
}
PLAIN = {**WITHOUT_SHARE, "ignore": {**WITHOUT_SHARE["ignore"], "flags": []}}


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("aitod", "aitod"),
        ("sodad", "sodad"),
        ("tinyperson_as_the_tool_is_called", "tinyperson"),
        ("tinyperson_without_iod", WITHOUT_SHARE),
        ("tinyperson_plain", PLAIN),
    ],
)
def test_arrays_and_numbers_of_the_tool(name: str, protocol: Any) -> None:
    result = boxscore.evaluate(real("tiny", "gt.json"), real("tiny", "dt.json"), protocol=protocol)
    expected = json.loads(real("tiny", "expected.json").read_text())[name]
    same_arrays(result, expected)
    stats = expected["stats"]
    if name == "aitod":  # AP25 is -1 there; the last four are oLRP, which boxscore lrp computes
        stats = [stats[0], *stats[2:-4]]
    assert list(result.metrics.values()) == stats
