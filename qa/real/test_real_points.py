"""AP by distance on made-up points: every number of nuScenes' devkit."""

from __future__ import annotations

import json
from typing import Any

import pytest

import boxscore
from support.real_data import real

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")]


@pytest.mark.parametrize(("cut", "key"), [(0.1, "ap_nuscenes(.1,.1)"), (0.0, "ap(0,0)")])
def test_every_number_of_the_devkit(cut: float, key: str) -> None:
    rules: dict[str, Any] = {
        "extends": "nuscenes-distance",
        "distance": {"largest": 80, "anchor": "point"},
        "ap": {"recall_above": cut, "precision_above": cut},
    }
    result = boxscore.evaluate(real("points", "gt.json"), real("points", "dt.json"), protocol=rules)
    file = json.loads(real("points", "expected_nuscenes_milliontrees.json").read_text())
    expected = next(iter(file.values()))
    for metric, pixels in (("AP4", 40), ("AP2", 20), ("AP1", 10), ("AP0.5", 5)):
        for name, value in zip(result.labels, result.class_values[metric].tolist(), strict=True):
            assert value == expected[f"{name}@{pixels}"][key]
    if cut:
        assert result["mAP"] == 0.5047738246892552
