"""AP is at least what counts show: the bound that spares the quick checks its computation."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth
from boxscore.extensions.validation.completion import reaches
from boxscore.extensions.validation.digest import quick_findings
from boxscore.protocols import load_protocol
from support.each import each


def drawn(seed: int) -> Evaluation:
    """Detections of any quality, with ties, crowds, absent classes and more of them than the cap."""
    random = np.random.default_rng(seed)
    count, images, classes = (
        int(random.integers(1, 120)),
        int(random.integers(1, 9)),
        int(random.integers(1, 6)),
    )
    image, kind = random.integers(0, images, count), random.integers(0, classes, count)
    low = random.uniform(0, 200, (count, 2))
    boxes = np.hstack([low, low + random.uniform(5, 60, (count, 2))])
    truth = GroundTruth.from_arrays(image, kind, boxes, crowd=random.random(count) < 0.1)
    of = random.integers(0, count, int(random.integers(1, 600)))
    moved = boxes[of] + random.normal(0, random.choice([0.1, 2, 9]), (len(of), 4))
    ends = np.sort(moved.reshape(-1, 2, 2), axis=1).reshape(-1, 4)
    wrong = random.random(len(of)) < random.choice([0, 0.3, 0.9])
    called = np.where(wrong, random.choice(kind, len(of)), kind[of])
    scores = np.round(random.random(len(of)), int(random.choice([1, 6])))
    return boxscore.evaluate(truth, Detections.from_arrays(image[of], called, ends, scores), digest=False)


@each(range(40))
def test_the_bound_is_below_ap(seed: int) -> None:
    result = drawn(seed)
    value = result["AP"]
    for bound in np.linspace(0.005, 1, 200).tolist():
        assert not reaches(result, bound) or value >= bound


def test_the_bound_is_of_use() -> None:
    """Perfect detections: AP 1, of which all but the recall points is shown."""
    truth = GroundTruth.from_arrays([1, 2], ["a", "b"], [[0, 0, 9, 9]] * 2)
    found = Detections.from_arrays([1, 2], ["a", "b"], [[0, 0, 9, 9]] * 2, [0.5, 0.9])
    result = boxscore.evaluate(truth, found, digest=False)
    assert reaches(result, 0.97)
    assert not reaches(result, 0.99)
    other = boxscore.evaluate(truth, found, protocol=load_protocol("voc2007"), digest=False)
    assert not reaches(other, 0.01)  # of other curves nothing is said


def test_ap_is_not_computed_where_it_is_high(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = GroundTruth.from_arrays([1] * 30, ["a"] * 30, [[9 * at, 0, 9 * at + 9, 9] for at in range(30)])
    found = Detections.from_arrays([1] * 30, ["a"] * 30, truth.boxes, np.linspace(0.001, 1, 30))

    def fail(*_: object) -> None:
        raise AssertionError("computed")

    result = boxscore.evaluate(truth, found, digest=False)
    monkeypatch.setattr("boxscore.evaluation.result.summary_total", fail)
    assert quick_findings(result) == []
