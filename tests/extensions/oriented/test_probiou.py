"""ProbIoU beside its formula, one number at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boxscore
from boxscore import InputError, probiou


def slow(one: list[float], other: list[float], eps: float = 1e-7) -> float:
    def gaussian(w: float, h: float, r: float) -> tuple[float, float, float]:
        a, b, c, s = w * w / 12, h * h / 12, math.cos(r), math.sin(r)
        return a * c * c + b * s * s, a * s * s + b * c * c, (a - b) * c * s

    (x1, y1), (a1, b1, c1) = one[:2], gaussian(*one[2:])
    (x2, y2), (a2, b2, c2) = other[:2], gaussian(*other[2:])
    d = (a1 + a2) * (b1 + b2) - (c1 + c2) ** 2
    t1 = 0.25 * ((a1 + a2) * (y1 - y2) ** 2 + (b1 + b2) * (x1 - x2) ** 2) / (d + eps)
    t2 = 0.5 * (c1 + c2) * (x2 - x1) * (y1 - y2) / (d + eps)
    own = math.sqrt(max(a1 * b1 - c1**2, 0) * max(a2 * b2 - c2**2, 0))
    t3 = 0.5 * math.log(d / (4 * own + eps) + eps)
    distance = min(max(t1 + t2 + t3, eps), 100.0)
    return 1 - math.sqrt(1 - math.exp(-distance) + eps)


def test_it_is_the_formula() -> None:
    rng = np.random.default_rng(0)
    one, other = (
        np.column_stack([rng.uniform(0, 60, (30, 2)), rng.uniform(1, 50, (30, 2)), rng.uniform(-4, 4, 30)])
        for _ in range(2)
    )
    expected = [[slow(a, b) for b in other.tolist()] for a in one.tolist()]
    assert np.allclose(probiou(one, other), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ([0, 0, 30, 30, 0], 0.9996),
        ([7.5, 0, 30, 30, 0], 0.701),
        ([10, 0, 30, 30, 0], 0.608),
        ([15, 0, 30, 30, 0], 0.441),
        ([0, 0, 60, 60, 0], 0.553),
        ([0, 0, 30, 30, math.pi / 4], 0.9996),
    ],
)
def test_published_values(box: list[float], expected: float) -> None:
    """The last digits of boxes that agree are those of ``eps`` in float32."""
    assert probiou([[0, 0, 30, 30, 0]], [box])[0, 0] == pytest.approx(expected, abs=6e-4)


def test_pairs_and_bad_input() -> None:
    boxes = [[0, 0, 2, 1, 0.3], [1, 1, 3, 2, 0]]
    assert probiou(boxes, boxes, paired=True).tolist() == np.diag(probiou(boxes, boxes)).tolist()
    assert probiou([[0, 0, 4, 2, 90]], [[0, 0, 2, 4, 0]], angle_unit="degrees")[0, 0] > 0.999
    with pytest.raises(InputError, match="as long as boxes1"):
        probiou(boxes, boxes[:1], paired=True)


def test_crowds_are_refused() -> None:
    table = {"rotated": [[0, 0, 2, 1, 0.3]]}
    truth = boxscore.GroundTruth.from_arrays([1], [1], None, crowd=[True], **table)  # type: ignore[arg-type]
    found = boxscore.Detections.from_arrays([1], [1], None, [0.5], **table)  # type: ignore[arg-type]
    protocol = {"extends": "coco-rotated", "name": "x", "similarity": "probiou"}
    with pytest.raises(InputError, match="crowd regions must be counted"):
        boxscore.evaluate(truth, found, protocol=protocol)
