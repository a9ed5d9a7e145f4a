"""Objects flagged ``ignore``: taken by at most one detection, which counts neither way; counted; or deleted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.test_every_protocol import protocols, scenes
from support.examples import examples
from support.scenes import (
    BOX_PROTOCOLS,
    Case,
    Scene,
    by_protocol,
    check,
    check_plain,
    det,
    evaluate,
    obj,
    rules,
)

#   [ ignored ]       [object]
#   [D .9] [D .8]     [D .7]      two detections on an ignored object
TWICE = Scene(
    [obj(1, 1, 20, 20, ignore=True), obj(41, 1, 60, 20)],
    [det(1, 1, 20, 20, score=0.9), det(1, 1, 20, 20, score=0.8), det(41, 1, 60, 20, score=0.7)],
)
#   an ignored object of which a detection covers all, and a counted one of which it covers half
BESIDE = Scene(
    [obj(1, 1, 20, 20, ignore=True), obj(1, 1, 20, 35)],
    [det(1, 1, 20, 20, score=0.9)],
)


test_by_protocol = by_protocol(
    Case("two on an ignored object", TWICE, {BOX_PROTOCOLS: ("IFT", [(1, 1 / 2)])})
)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
@pytest.mark.parametrize(
    ("rule", "letters", "steps"),
    [
        ("ignore", "IFT", [(1, 1 / 2)]),
        ("count", "TFT", [(1 / 2, 1), (1, 2 / 3)]),
        ("delete", "FFT", [(1, 1 / 3)]),
    ],
)
def test_each_value_of_the_field(base: str, rule: str, letters: str, steps: Any) -> None:
    check(TWICE, rules(base, ignore={"flagged": rule}), letters, steps)


def test_a_counted_object_comes_before_an_ignored_one() -> None:
    """The rule is stated, so that the case fails where the field does not exist."""
    check(BESIDE, rules("coco", ignore={"flagged": "ignore"}), "T", [(1, 1)])
    check(BESIDE, rules("voc2012", ignore={"flagged": "ignore"}), "I", [(1, 0)])  # best overall


@given(data=st.data(), scene=scenes(flags=("crowd", "difficult", "ignore")))
@settings(max_examples=examples(150))
def test_any_rules_on_any_scene(data: st.DataObject, scene: Scene) -> None:
    flag = data.draw(st.sampled_from(["ignore", "count", "delete"]), label="flag")
    check_plain(scene, evaluate(scene, data.draw(protocols(flagged=flag))))
