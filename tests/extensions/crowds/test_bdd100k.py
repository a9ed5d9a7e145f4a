"""BDD100K: COCO's evaluation of boxes whose sides are a pixel longer, with ignored labels as crowds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


def frames(rows: list[tuple[int, list[float], dict[str, Any]]]) -> list[dict[str, Any]]:
    made: dict[int, list[dict[str, Any]]] = {n: [] for n in range(4)}
    for image, box, more in rows:
        made[image].append(
            {"category": "car", "box2d": dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))} | more
        )
    return [{"name": f"{n}.jpg", "labels": labels} for n, labels in made.items()]


@pytest.mark.parametrize("seed", range(5))
def test_it_is_coco_with_longer_sides(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    image = np.arange(40) % 4
    corners = rng.integers(0, 90, (40, 2)).astype(float)
    boxes = np.column_stack([corners, corners + rng.choice([7, 15, 31, 32, 95, 96], (40, 2))])
    ignored, crowd = rng.random(40) < 0.1, rng.random(40) < 0.1
    moved = boxes + rng.integers(-1, 2, (40, 4))
    scores = rng.random(40)
    truth = [
        (int(n), box.tolist(), {"attributes": {"crowd": bool(c), "ignored": bool(i)}})
        for n, box, c, i in zip(image, boxes, crowd, ignored, strict=True)
    ]
    found = [
        (int(n), box.tolist(), {"score": float(score)})
        for n, box, score in zip(image, moved, scores, strict=True)
    ]
    for name, rows in (("gt", truth), ("dt", found)):
        (tmp_path / f"{name}.json").write_text(json.dumps(frames(rows)))
    ours = boxscore.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", protocol="bdd100k")
    longer = np.array([0, 0, 1, 1])
    sides = boxes[:, 2:] - boxes[:, :2] + 1
    plain = boxscore.evaluate(
        GroundTruth.from_arrays(
            image, [0] * 40, boxes + longer, area=sides.prod(axis=1), crowd=ignored | crowd
        ),
        Detections.from_arrays(image, [0] * 40, moved + longer, scores),
        protocol="coco",
    )
    np.testing.assert_array_equal(list(ours.metrics.values()), list(plain.metrics.values()))


def test_a_pixel_decides_which_area(tmp_path: Path) -> None:
    box = (0, [0.0, 0.0, 31.0, 32.0], {})  # 31 x 32 is small, 32 x 33 is medium
    for name, rows in (("gt", [box]), ("dt", [(*box[:2], {"score": 0.5})])):
        (tmp_path / f"{name}.json").write_text(json.dumps(frames(rows)))
    paths = tmp_path / "gt.json", tmp_path / "dt.json"
    small = {name: boxscore.evaluate(*paths, protocol=name)["APs"] for name in ("coco", "bdd100k")}
    assert small["coco"] == pytest.approx(1, abs=1e-15)
    assert np.isnan(small["bdd100k"])
