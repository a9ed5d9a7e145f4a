"""What a guarantee promises is so: over many sets of made-up images, and over splits of real data."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import boxscore
from boxscore.extensions.decisions.guarantee import (
    GRID,
    Guaranteed,
    Sample,
    guaranteed_fppi,
    guaranteed_precision,
    guaranteed_recall,
    samples_of,
)
from support.guarantees import drawn_sample
from support.real_data import real

pytestmark = pytest.mark.long

SETS, SIZE, MOST = 1000, 500, 20
PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "interval-coverage.md"


class Outcomes(NamedTuple):
    """The mean over new images for each set of images that gave a threshold, and how many sets there were."""

    means: Any
    sets: int

    @property
    def mean(self) -> float:
        return float(self.means.mean())

    @property
    def error(self) -> float:
        """Three standard errors of the mean."""
        return float(3 * self.means.std() / math.sqrt(len(self.means)))


def mean_recall(sample: Sample, score: float) -> float:
    objects = np.bincount(sample.truth_image)
    seen = np.bincount(sample.truth_image[sample.truth_score >= score], minlength=len(objects))
    return float((seen[objects > 0] / objects[objects > 0]).mean())


def mean_precision(sample: Sample, score: float) -> float:
    left = sample.score >= score
    kept = np.bincount(sample.image[left])
    right = np.bincount(sample.image[left & sample.true], minlength=len(kept))
    return float((right[kept > 0] / kept[kept > 0]).mean()) if left.any() else math.nan


def mean_false(sample: Sample, score: float, images: int, most: int) -> float:
    wrong = np.bincount(sample.image[~sample.true & (sample.score >= score)])
    return float(np.minimum(wrong, most).sum() / images)


# ---------------------------------------------------------------- made up


@pytest.mark.parametrize(("level", "size"), [(0.7, 20), (0.8, 100), (0.5, 500)])
def test_recall_of_made_up_images(level: float, size: int) -> None:
    """The mean is at least the level, and at most 2 / (n + 1) above it; a set without threshold loses nothing."""
    random, means = np.random.default_rng(size), []
    for _ in range(SETS):
        answer = guaranteed_recall(drawn_sample(random, size), level)
        means.append(
            1.0 if math.isnan(answer.score) else mean_recall(drawn_sample(random, 200), answer.score)
        )
    outcomes = Outcomes(np.array(means), SETS)
    assert level - outcomes.error <= outcomes.mean <= level + 2 / (size + 1) + outcomes.error


@pytest.mark.parametrize(("level", "size"), [(0.5, 50), (1.0, 200)])
def test_false_positives_of_made_up_images(level: float, size: int) -> None:
    random, most, means = np.random.default_rng(size), 6, []
    for _ in range(SETS):
        answer = guaranteed_fppi(drawn_sample(random, size), level, images=size, at_most=most)
        means.append(mean_false(drawn_sample(random, 200), answer.score, 200, most))
    outcomes = Outcomes(np.array(means), SETS)
    assert level - 2 * most / (size + 1) - outcomes.error <= outcomes.mean <= level + outcomes.error


@pytest.mark.parametrize(("level", "size"), [(0.6, 100), (0.75, 300)])
def test_precision_of_made_up_images(level: float, size: int) -> None:
    """At most one set in twenty gives a threshold that is too low for all images there are."""
    random = np.random.default_rng(size)
    world = drawn_sample(random, 100_000)
    right = dict(zip(GRID.tolist(), (mean_precision(world, score) for score in GRID), strict=True))
    answers = [guaranteed_precision(drawn_sample(random, size), level, 0.95) for _ in range(SETS // 2)]
    given = [one.score for one in answers if not math.isnan(one.score)]
    assert len(given) > SETS // 4
    assert sum(right[score] < level for score in given) <= 0.05 * len(answers)


# ---------------------------------------------------------------- real


def split(
    sample: Sample,
    images: int,
    choose: Callable[[Sample], Guaranteed],
    measure: Callable[[Sample, float], float],
) -> Outcomes:
    """Choose on some images, and measure on the others."""
    random, means = np.random.default_rng(0), []
    for _ in range(SETS):
        chosen = np.zeros(images, dtype=bool)
        chosen[random.permutation(images)[:SIZE]] = True
        score = choose(sample.take(chosen[sample.image], chosen[sample.truth_image])).score
        if not math.isnan(score):
            others = sample.take(~chosen[sample.image], ~chosen[sample.truth_image])
            means.append(measure(others, score))
    return Outcomes(np.array(means), SETS)


def asked(what: str, level: float, images: int) -> tuple[Any, Any]:
    if what == "recall":
        return lambda one: guaranteed_recall(one, level), mean_recall
    if what == "precision":
        return lambda one: guaranteed_precision(one, level, 0.95), mean_precision
    return (
        lambda one: guaranteed_fppi(one, level, images=SIZE, at_most=MOST),
        lambda one, score: mean_false(one, score, images - SIZE, MOST),
    )


@pytest.fixture(scope="module")
def whole() -> Callable[[str], tuple[Sample, int]]:
    """Every detection and object of a data set, and its number of images; read once."""
    read: dict[str, tuple[Sample, int]] = {}

    def sample_of(name: str) -> tuple[Sample, int]:
        if name not in read:
            if name == "VOC 2007":
                truth = boxscore.load_ground_truth(real("voc2007", "VOC2007"), image_set="test")
                found = boxscore.load_detections(real("voc2007", "results", "yolov2"), truth)
                evaluation = boxscore.evaluate(truth, found, protocol="voc2007")
            else:
                truth = boxscore.load_ground_truth(real("coco_val2017", "ground_truth_boxes.json"))
                found = boxscore.load_detections(real("coco_val2017", "yolov2_608.json"), truth)
                evaluation = boxscore.evaluate(truth, found)
            read[name] = samples_of(evaluation.matched, 0, 0)[0], evaluation._image_count
        return read[name]

    return sample_of


CASES = [
    ("VOC 2007", "recall", 0.7),
    ("VOC 2007", "recall", 0.8),
    ("VOC 2007", "recall", 0.9),
    ("COCO val2017", "recall", 0.3),
    ("VOC 2007", "fppi", 1),
    ("COCO val2017", "fppi", 0.1),
    ("VOC 2007", "precision", 0.8),
    ("VOC 2007", "precision", 0.9),
]


@pytest.mark.real
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize(("data", "what", "level"), CASES)
def test_splits_of_real_data_are_those_of_the_page(whole: Any, data: str, what: str, level: float) -> None:
    sample, images = whole(data)
    outcomes = split(sample, images, *asked(what, level, images))
    row = (
        f"| {data} | {what} {level:g} | {len(outcomes.means):,} | {outcomes.mean:.4f} | "
        "{:.4f} to {:.4f} |".format(*np.quantile(outcomes.means, [0.05, 0.95]))
    )
    assert row in PAGE.read_text(encoding="utf-8")
    if what == "fppi":
        assert outcomes.mean <= level + outcomes.error
        assert len(outcomes.means) == SETS
    elif what == "precision":
        assert (outcomes.means < level).mean() <= 0.05
    else:  # a set without threshold counts as a recall of 1
        counted = np.append(outcomes.means, np.ones(SETS - len(outcomes.means)))
        assert counted.mean() >= level - outcomes.error
        if len(outcomes.means) == SETS:
            assert outcomes.mean <= level + 2 / (SIZE + 1) + outcomes.error
