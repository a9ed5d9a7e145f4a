"""Cityscapes' instances: its script in plain Python on made-up pictures, its quirks, and its own figures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import boxscore
from boxscore import Evaluation, InputError
from boxscore.distributed import Part, merge
from boxscore.extensions.crowds.cityscapes import CLASSES
from boxscore.extensions.weights.resampling import Draws
from oracles import cityscapes
from oracles.cityscapes import Found, Image, Segment
from support.parted import bits, parts_of, whole
from support.real_data import real

pytest.importorskip("PIL", reason="Pillow reads the pictures")
pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

LABEL = {name: label for label, name in CLASSES.items()}
HEIGHT, WIDTH = 24, 30
Rectangle = tuple[int, int, int, int]


def save(picture: NDArray[Any], path: Path) -> None:
    from PIL import Image as Picture

    Picture.fromarray(picture).save(path)


def written(
    folder: Path, pictures: Sequence[tuple[NDArray[np.uint16], Sequence[tuple[Any, int, float]]]]
) -> Path:
    """Write pictures of instances, and the mask, class and score of each prediction."""
    for side in ("gt", "dt"):
        (folder / side).mkdir(parents=True)
    for n, (instances, predictions) in enumerate(pictures):
        name = f"made_000000_{n:06d}"
        save(instances, folder / "gt" / f"{name}_gtFine_instanceIds.png")
        lines = []
        for i, (mask, label, score) in enumerate(predictions):
            save(mask.astype(np.uint8) * 255, folder / "dt" / f"{name}_{i}.png")
            lines.append(f"{name}_{i}.png {label} {score}\n")
        (folder / "dt" / f"{name}_pred.txt").write_text("".join(lines))
    return folder


def mask_of(*rectangles: Rectangle) -> NDArray[np.bool_]:
    mask = np.zeros((HEIGHT, WIDTH), dtype=bool)
    for top, bottom, left, right in rectangles:
        mask[top:bottom, left:right] = True
    return mask


def drawn(*segments: tuple[Rectangle, int]) -> NDArray[np.uint16]:
    """Draw rectangles of values on a picture of buildings."""
    picture = np.full((HEIGHT, WIDTH), 11, dtype=np.uint16)
    for rectangle, value in segments:
        picture[mask_of(rectangle)] = value
    return picture


def evaluated(folder: Path, least: float = 100, **more: Any) -> Evaluation:
    rules = {"extends": "cityscapes", "ignore": {"column_ranges": {"all": {"area": [least, float("inf")]}}}}
    return boxscore.evaluate(folder / "gt", folder / "dt", protocol=rules | more)


def ap_of(result: Evaluation, name: str) -> list[float]:
    """AP of a class at each of the ten thresholds."""
    values: list[float] = result.ap_by_iou()[:, result.labels.index(name)].tolist()
    return values


CAR, OTHER = (0, 12, 0, 12), (12, 24, 15, 30)


@pytest.mark.parametrize(
    ("segments", "predictions", "expected"),
    [
        pytest.param([(CAR, 26000)], [(CAR, 26, 0.9)], [1.0] * 10, id="found"),
        pytest.param([(CAR, 26000)], [((0, 12, 0, 6), 26, 0.9)], [0.0] * 10, id="an overlap of .5 is none"),
        pytest.param([(CAR, 26000), (OTHER, 26001)], [(CAR, 26, 0.9)], [0.5] * 10, id="one of two"),
        pytest.param([(CAR, 26000)], [(OTHER, 26, 0.95), (CAR, 26, 0.9)], [0.25] * 10, id="false one first"),
        pytest.param([(CAR, 26000)], [(OTHER, 26, 0.9), (CAR, 26, 0.9)], [0.75] * 10, id="false one tied"),
        pytest.param([(CAR, 26000)], [(OTHER, 26, 0.5), (CAR, 26, 0.9)], [1.0] * 10, id="false one last"),
        pytest.param([(CAR, 26000)], [(CAR, 26, 0.0)], [1.0] * 10, id="a score of 0 counts"),
        pytest.param(
            [(CAR, 26000), (OTHER, 26)], [(OTHER, 26, 0.95), (CAR, 26, 0.9)], [1.0] * 10, id="a group"
        ),
        pytest.param(
            [(CAR, 26000), (OTHER, 24)], [(OTHER, 26, 0.95), (CAR, 26, 0.9)], [0.25] * 10, id="people"
        ),
        pytest.param(
            [(CAR, 26000), (OTHER, 29000)], [(OTHER, 26, 0.95), (CAR, 26, 0.9)], [0.25] * 10, id="a caravan"
        ),
        pytest.param(
            [(CAR, 26000), (OTHER, 29)], [(OTHER, 26, 0.95), (CAR, 26, 0.9)], [1.0] * 10, id="caravans"
        ),
        pytest.param(  # 60 of 100 pixels on void
            [(CAR, 26000), ((14, 20, 15, 30), 4)],
            [((14, 24, 18, 28), 26, 0.95), (CAR, 26, 0.9)],
            [1.0, 1.0, *[0.25] * 8],
            id="on void by .6",
        ),
        pytest.param(  # 90 of 140 pixels, which count twice
            [(CAR, 26000), ((14, 23, 20, 30), 26)],
            [((14, 24, 16, 30), 26, 0.95), (CAR, 26, 0.9)],
            [1.0] * 10,
            id="a small group counts twice",
        ),
        pytest.param(
            [(CAR, 26000), ((14, 23, 15, 26), 26001)],
            [((14, 23, 15, 26), 26, 0.95), (CAR, 26, 0.9)],
            [1.0] * 10,
            id="99 pixels are too few",
        ),
        pytest.param(
            [(CAR, 26000), ((14, 24, 15, 25), 26001)], [(CAR, 26, 0.9)], [0.5] * 10, id="100 pixels count"
        ),
        pytest.param([(CAR, 26000)], [(OTHER, 24, 0.9)], [0.0] * 10, id="no prediction"),
        pytest.param([(CAR, 26000), (OTHER, 4)], [(OTHER, 26, 0.9)], [0.0] * 10, id="all dropped"),
    ],
)
def test_by_hand(segments: Any, predictions: Any, expected: list[float], tmp_path: Path) -> None:
    masks = [(mask_of(rectangle), label, score) for rectangle, label, score in predictions]
    assert ap_of(evaluated(written(tmp_path, [(drawn(*segments), masks)])), "car") == expected


def made_up(seed: int, folder: Path) -> list[Image]:
    """Write a scene of pictures, and return the segments of each."""
    rng = np.random.default_rng(seed)
    values = [24, 24000, 24001, 24002, 26, 26000, 26001, 26002, 4, 0, 29, 29000, 11]
    pictures, images = [], []
    for _ in range(int(rng.integers(1, 4))):
        picture = drawn()
        for value in rng.choice(values, int(rng.integers(1, 9))).tolist():
            top, left = rng.integers(0, 18, 2).tolist()
            height, width = rng.integers(2, 14, 2).tolist()
            picture[top : top + height, left : left + width] = value
        predictions = []
        for _ in range(int(rng.integers(0, 9))):
            mask = picture == rng.choice(np.unique(picture))
            if rng.random() < 0.5:
                mask = np.roll(mask, rng.integers(-2, 3, 2).tolist(), (0, 1))
            if rng.random() < 0.2:
                mask &= rng.random(mask.shape) < 0.9
            if mask.any():
                predictions.append((mask, int(rng.choice([24, 26])), float(rng.integers(5)) / 5))
        pictures.append((picture, predictions))
        images.append((segments_of(picture), [found(*one) for one in predictions]))
    written(folder, pictures)
    return images


def pixels(mask: NDArray[np.bool_]) -> frozenset[tuple[int, int]]:
    return frozenset(map(tuple, np.argwhere(mask).tolist()))


def found(mask: NDArray[np.bool_], label: int, score: float) -> Found:
    return Found(CLASSES[label], pixels(mask), score)


def segments_of(picture: NDArray[np.uint16]) -> list[Segment]:
    segments = []
    for value in np.unique(picture).tolist():
        label = value // 1000 if value >= 1000 else value
        name = "void" if value in (0, 4, 29) else CLASSES.get(label, "")
        segments.append(Segment(name, pixels(picture == value), value < 1000))
    return segments


def same(result: Evaluation, images: Sequence[Image], least: int) -> None:
    for name in ("person", "car", "bus"):
        wanted = [
            cityscapes.average_precision(images, name, threshold, least)
            for threshold in result.protocol.matching.iou_thresholds
        ]
        expected = [np.nan if value is None else float(value) for value in wanted]
        if name in result.labels:
            np.testing.assert_allclose(ap_of(result, name), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_script(seed: int, tmp_path: Path) -> None:
    images = made_up(seed, tmp_path)
    for least in (1, 20):
        same(evaluated(tmp_path, least), images, least)


@pytest.mark.slow
def test_it_is_the_script_many_times(tmp_path: Path) -> None:
    for seed in range(1000, 3000):
        folder = tmp_path / str(seed)
        images = made_up(seed, folder)
        same(evaluated(folder, 20), images, 20)


def tables(folder: Path) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth = boxscore.load_ground_truth(folder / "gt")
    return truth, boxscore.load_detections(folder / "dt", truth)


@pytest.mark.parametrize("seed", range(3))
def test_images_apart_or_at_once(seed: int, tmp_path: Path) -> None:
    made_up(seed, tmp_path)
    sides = tables(tmp_path)
    parts = parts_of(sides, "cityscapes", np.arange(len(sides[0].images)) % 2)
    merged = merge([Part.from_bytes(part.to_bytes()) for part in parts])
    assert bits(merged) == bits(whole(sides, "cityscapes"))


@pytest.mark.parametrize("seed", range(3))
def test_an_image_that_counts_twice_is_there_twice(seed: int, tmp_path: Path) -> None:
    images = made_up(seed + 50, tmp_path)
    result = evaluated(tmp_path, 20)
    draws = Draws.of_seed(len(images), 4, seed)
    for weights, values in zip(
        draws, result._weighted_metrics(result.protocol.rows, draws).values, strict=True
    ):
        repeated = [image for image, times in zip(images, weights, strict=True) for _ in range(int(times))]
        cells = [
            cityscapes.average_precision(repeated, name, threshold, 20)
            for name in ("person", "car")
            for threshold in result.protocol.matching.iou_thresholds
        ]
        known = [float(cell) for cell in cells if cell is not None]
        expected = np.mean(known) if known else np.nan
        np.testing.assert_allclose(values[0, -1], expected, rtol=1e-13)


def test_shares_are_of_masks() -> None:
    with pytest.raises(InputError, match="similarity must be 'mask' where shares of detections are added up"):
        boxscore.load_protocol({"extends": "coco", "ignore": {"share": "sum"}})


@pytest.mark.real
@pytest.mark.parametrize(
    ("key", "least"),
    [("instances", 100), ("instances, minimum region 1", 1), ("instances, minimum region 400", 400)],
)
def test_every_bit_of_the_script(key: str, least: int) -> None:
    expected = json.loads(real("cityscapes", "expected.json").read_text())[key]
    folder = real("cityscapes", "gt").parent
    rules = {"extends": "cityscapes", "ignore": {"column_ranges": {"all": {"area": [least, float("inf")]}}}}
    result = boxscore.evaluate(folder / "gt", folder / "pred", protocol=rules)
    assert list(result.protocol.matching.iou_thresholds) == expected["overlaps"]
    cells = np.nan_to_num([ap_of(result, name) for name in expected["labels"]], nan=-1.0)
    assert hashlib.sha256(cells.tobytes()).hexdigest() == expected["ap_sha256 (NaN as -1)"]
    assert (result["AP"], result["AP50"]) == (expected["allAp"], expected["allAp50%"])


@pytest.mark.real
def test_every_case_of_the_script(tmp_path: Path) -> None:
    for name, case in json.loads(real("cityscapes", "cases.json").read_text()).items():
        picture = np.full((60, 100), 7, dtype=np.uint16)
        for top, bottom, left, right, value in case["gt [y0,y1,x0,x1,id]"]:
            picture[top:bottom, left:right] = value
        predictions = []
        for rectangles, label, score in case["predictions [[rects],class,score]"]:
            mask = np.zeros(picture.shape, dtype=bool)
            for top, bottom, left, right in rectangles:
                mask[top:bottom, left:right] = True
            predictions.append((mask, label, score))
        result = evaluated(written(tmp_path / name, [(picture, predictions)]))
        thresholds = np.array(result.protocol.matching.iou_thresholds)
        rows = [int(np.argmin(np.abs(thresholds - overlap))) for overlap in case["overlaps"]]
        wanted = case["result"]["car"] if isinstance(case["result"], dict) else [0.0]  # the script stops
        assert [ap_of(result, "car")[row] for row in rows] == wanted, name
