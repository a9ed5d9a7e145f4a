"""What is wrong with keypoints, over partitions: the bits of one process, and of any order of the images."""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.diagnostics import keypoint_errors
from support.examples import examples
from support.insides import asked_again
from support.quiet import quiet
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol

NAMES = ["nose", "left_eye", "right_eye", "tail"]
RULES = {
    "extends": "coco-keypoints",
    "keypoints": {"sigmas": [0.1, 0.07, 0.07, 0.05], "names": NAMES, "skeleton": []},
}
PROTOCOL = load_protocol(RULES)


def drawn(seed: int, images: int) -> tuple[GroundTruth, Detections]:
    """Draw persons of all sizes, crowds, joints that are not labeled; equal scores; images with nothing."""
    rng = np.random.default_rng(seed)
    persons, found = int(rng.integers(1, 3 * images)), int(rng.integers(0, 5 * images))
    place = np.array([[20.0, 10.0], [10.0, 5.0], [30.0, 5.0], [20.0, 60.0]])
    points = rng.integers(0, 40, (persons, 1, 2)) + place * rng.uniform(0.3, 2, (persons, 1, 1))
    seen = rng.integers(0, 3, (persons, 4, 1)).astype(float)
    image, of = rng.integers(0, images, persons), rng.integers(0, persons, found)
    kinds = {"images": list(range(images)), "categories": ["person"]}
    truth = GroundTruth.from_arrays(
        image,
        ["person"] * persons,
        None,
        area=rng.choice([900.0, 1024.0, 4000.0, 9000.0], persons),
        crowd=rng.random(persons) < 0.1,
        keypoints=np.concatenate([points, seen], axis=2),
        **kinds,
    )
    near = points[of] + rng.normal(0, 4, (found, 4, 2))
    swapped = rng.random(found) < 0.3
    near[swapped] = near[swapped][:, [0, 2, 1, 3]]
    sure = np.ones((found, 4, 1))
    return truth, Detections.from_arrays(
        image[of],
        ["person"] * found,
        None,
        rng.integers(0, 6, found) / 5,
        keypoints=np.concatenate([near, sure], axis=2),
        **kinds,
    )


def equal(one: object, other: object) -> None:
    for field in dataclasses.fields(one):  # type: ignore[arg-type]
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), field.name)


@given(seed=st.integers(0, 10_000), images=st.integers(2, 30), partition=st.integers(1, 60))
@settings(max_examples=examples(40))
def test_bits_of_one_process(seed: int, images: int, partition: int) -> None:
    truth, found = drawn(seed, images)
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "found.parquet"
        FORMAT.save(found, path)
        whole = boxscore.evaluate(truth, boxscore.load_detections(path, truth), protocol=PROTOCOL)
        with asked_again(truth, path, PROTOCOL, partition=partition, at_least=1) as result:
            equal(keypoint_errors(whole), keypoint_errors(result))


def test_every_kind_is_there() -> None:
    """Else the comparison above says little."""
    truth, found = drawn(1, 30)
    with quiet():
        result = keypoint_errors(boxscore.evaluate(truth, found, protocol=PROTOCOL))
    assert (result.counts[:3].sum(axis=0) > 0).all()
    assert 0 < result.analyzed <= result.matched


def test_means_are_those_of_exact_sums() -> None:
    """Similarities of 0.9, 1e-20 and 0.3 to a joint, and the same of images in another order."""
    sides = [math.sqrt(-2 * math.log(value) * 10_000) * 2 * 0.1 for value in (0.9, 1e-20, 0.3)]
    place = np.array([[50.0, 50.0], [100.0, 50.0], [50.0, 100.0], [100.0, 100.0]])

    def of(order: list[int]) -> float:
        points = np.concatenate([np.tile(place, (3, 1, 1)), np.full((3, 4, 1), 2.0)], axis=2)
        moved = points.copy()
        moved[:, 0, 0] += [sides[one] for one in order]
        people = ["person"] * 3
        truth = GroundTruth.from_arrays([1, 2, 3], people, None, area=[10_000.0] * 3, keypoints=points)
        found = Detections.from_arrays([1, 2, 3], people, None, [0.9, 0.8, 0.7], keypoints=moved)
        result = keypoint_errors(boxscore.evaluate(truth, found, protocol=PROTOCOL))
        assert result.similarity[1:].tolist() == [1, 1, 1]
        return float(result.similarity[0])

    with quiet():
        assert of([0, 1, 2]) == of([2, 0, 1]) == of([1, 2, 0]) == pytest.approx(0.4, rel=1e-12)


def test_the_command(tmp_path: Path, run: Run) -> None:
    truth, found = drawn(5, 12)
    boxscore.save_as(truth, tmp_path / "truth.npz")
    FORMAT.save(found, tmp_path / "found.parquet")
    rules = tmp_path / "rules.toml"
    keypoints = "\n".join(f"{name} = {json.dumps(value)}" for name, value in RULES["keypoints"].items())  # type: ignore[attr-defined]
    rules.write_text(f'name = "four"\nextends = "coco-keypoints"\n[keypoints]\n{keypoints}\n')
    call = ["keypoint-errors", tmp_path / "truth.npz", tmp_path / "found.parquet", "--protocol", rules]
    for form in ("csv", "text"):
        asked = [*map(str, call), "--output", form]
        assert run(*asked, "--memory-limit", "1GB", "--workers", "1").out == run(*asked).out
    error = run.error(*map(str, call), "--memory-limit", "240MB", "--workers", "1")
    assert "--memory-limit must be 264 MB or more for" in error  # 12 numbers a detection; 233 MB for boxes
    error = run.error(*map(str, call[:3]), "--memory-limit", "1GB")
    assert "the protocol must compare keypoints. Got box; use --protocol coco-keypoints" in error
