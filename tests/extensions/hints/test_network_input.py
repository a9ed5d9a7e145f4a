"""Boxes in the coordinates of a network's input: recognized, and scaled back by an option."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore.extensions.hints.network_input import NetworkInput, find_network_input, network_input_of
from boxscore.validation import validate_files
from support.quiet import quiet
from support.running import Run

SIZES = [(640, 480), (300, 500), (1280, 720)]
"""Width and height of the images, in turn."""

Box = tuple[float, float, float, float]


def letterbox(box: Box, width: int, height: int, side: int) -> Box:
    """Place a box as YOLO's letterbox does: by one ratio, and half of the padding on each side."""
    ratio = min(side / width, side / height)
    left, top = (side - width * ratio) / 2, (side - height * ratio) / 2
    return box[0] * ratio + left, box[1] * ratio + top, box[2] * ratio + left, box[3] * ratio + top


def corner(box: Box, width: int, height: int, side: int) -> Box:
    ratio = side / max(width, height)
    return box[0] * ratio, box[1] * ratio, box[2] * ratio, box[3] * ratio


def stretch(box: Box, width: int, height: int, side: int) -> Box:
    across, down = side / width, side / height
    return box[0] * across, box[1] * down, box[2] * across, box[3] * down


PLACES: dict[str, Callable[[Box, int, int, int], Box]] = {
    "letterbox": letterbox,
    "corner": corner,
    "stretch": stretch,
}


def made(count: int = 12, seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return COCO records of images with three objects each; the first two are found, a little off."""
    rng = np.random.default_rng(seed)
    images, annotations, results = [], [], []
    for number in range(1, count + 1):
        width, height = SIZES[number % 3]
        images.append({"id": number, "file_name": f"{number:04d}.jpg", "width": width, "height": height})
        for at in range(3):
            w, h = width * rng.uniform(0.1, 0.4), height * rng.uniform(0.1, 0.4)
            x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
            record = {"image_id": number, "category_id": at + 1, "bbox": [x, y, w, h]}
            annotations.append({"id": len(annotations) + 1, **record, "area": w * h, "iscrowd": 0})
            if at < 2:
                near = [x + 0.03 * w, y, w, 0.95 * h]
                results.append({**record, "bbox": near, "score": float(rng.uniform(0.1, 1))})
    categories = [{"id": number, "name": name} for number, name in enumerate(("car", "cup", "dog"), start=1)]
    return {"images": images, "annotations": annotations, "categories": categories}, results


def placed(
    truth: dict[str, Any], results: list[dict[str, Any]], kind: str, side: int
) -> list[dict[str, Any]]:
    """Return the results in the coordinates of an input."""
    sizes = {image["id"]: (image["width"], image["height"]) for image in truth["images"]}
    moved = []
    for row in results:
        x, y, w, h = row["bbox"]
        x1, y1, x2, y2 = PLACES[kind]((x, y, x + w, y + h), *sizes[row["image_id"]], side)
        moved.append({**row, "bbox": [x1, y1, x2 - x1, y2 - y1]})
    return moved


def written(folder: Path, truth: dict[str, Any], results: list[dict[str, Any]]) -> tuple[Path, Path]:
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    return folder / "gt.json", folder / "dt.json"


def ap(gt: Path, dt: Path, **options: Any) -> float:
    with quiet():
        truth = boxscore.load_ground_truth(gt)
        detections = boxscore.load_detections(dt, truth, **options)
        return float(boxscore.evaluate(truth, detections).metrics["AP"])


@pytest.mark.parametrize("side", [320, 416, 512, 640, 800, 1024, 1280])
@pytest.mark.parametrize("kind", PLACES)
def test_the_option_gives_the_score_of_boxes_in_the_image(kind: str, side: int, tmp_path: Path) -> None:
    truth, results = made()
    right = ap(*written(tmp_path, truth, results))
    gt, dt = written(tmp_path, truth, placed(truth, results, kind, side))
    with quiet():
        [first, *_] = validate_files(gt, dt)
    assert (first.code, first.severity) == ("network-coordinates", "error")
    assert first.repair == f"with --network-input {kind}:{side}"
    assert first.repaired == pytest.approx(right, abs=1e-9)
    assert ap(gt, dt, network_input=f"{kind}:{side}") == pytest.approx(right, abs=1e-9)


def test_evaluate_says_it_first_and_alone(tmp_path: Path, run: Run) -> None:
    truth, results = made()
    gt, dt = written(tmp_path, truth, placed(truth, results, "letterbox", 640))
    said = " ".join(run("evaluate", gt, dt).err.split())
    assert "--network-input letterbox:640, AP would be" in said
    assert said.count("error in the input") == 1, "a warning about boxes outside the image repeats it"


def test_it_is_first_in_the_report(tmp_path: Path, run: Run) -> None:
    truth, results = made()
    gt, dt = written(tmp_path, truth, placed(truth, results, "letterbox", 1280))
    run("evaluate", gt, dt, "--report", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    errors = [text for text in ("--network-input letterbox:1280", "boxes extend outside") if text in page]
    assert errors == ["--network-input letterbox:1280"], "nothing about another image size"


def test_the_command_takes_the_option(tmp_path: Path, run: Run) -> None:
    truth, results = made()
    gt, dt = written(tmp_path, truth, results)
    right = run("evaluate", gt, dt)
    gt, dt = written(tmp_path, truth, placed(truth, results, "stretch", 512))
    scaled = run("evaluate", gt, dt, "--network-input", "stretch:512")
    assert scaled == right


@pytest.mark.parametrize("factor", [0.25, 0.5, 2, 4])
@pytest.mark.parametrize("sized", [True, False])
def test_boxes_of_scaled_images(factor: float, sized: bool, tmp_path: Path, run: Run) -> None:
    """Boxes of halved images are found also in images of several shapes or of unknown size."""
    truth, results = made()
    if not sized:
        truth["images"] = [{"id": image["id"]} for image in truth["images"]]
    right = ap(*written(tmp_path, truth, results))
    scaled = [{**row, "bbox": [factor * number for number in row["bbox"]]} for row in results]
    gt, dt = written(tmp_path, truth, scaled)
    said = " ".join(run("evaluate", gt, dt, "--quiet").err.split())
    assert said.startswith(
        "boxscore: error in the input: the boxes of the detections seem to be in the coordinates"
    )
    assert f"With --network-input scale:{factor:g}, AP would be {right:.4f} instead of" in said
    assert said.count("boxscore: ") == 1
    assert ap(gt, dt, network_input=f"scale:{factor}") == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("value", ["scale:0", "scale:-1", "scale:", "scale:0.0", "scale:1e3"])
def test_other_scales_are_refused(value: str) -> None:
    with pytest.raises(InputError, match="with a size, such as"):
        network_input_of(value)


def test_a_table_is_read_too(tmp_path: Path) -> None:
    truth, results = made()
    lines = ["image,class,left,top,width,height,score"]
    for row in placed(truth, results, "letterbox", 416):
        name = f"{row['image_id']:04d}.jpg"
        lines.append(",".join(map(str, (name, row["category_id"], *row["bbox"], row["score"]))))
    gt, dt = written(tmp_path, truth, results)
    (tmp_path / "dt.csv").write_text("\n".join(lines))
    assert ap(gt, tmp_path / "dt.csv", network_input="letterbox:416") == pytest.approx(ap(gt, dt), abs=1e-9)


def test_an_input_may_have_another_height() -> None:
    given = network_input_of("letterbox:640x384")
    assert given == NetworkInput("letterbox", 640, 384)
    assert str(given) == "letterbox:640x384"
    # An image of 1280 x 720 becomes 640 x 360, with 12 pixels above it.
    back = given.scaled_back(np.array([[10.0, 22.0, 110.0, 72.0]]), np.array([[1280.0, 720.0]]))
    assert back.tolist() == [[20.0, 20.0, 220.0, 120.0]]


@pytest.mark.parametrize("value", ["letterbox", "letterbx:640", "letterbox:0", "stretch:640x", 640])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(
        InputError, match="network_input must be letterbox, corner, stretch, scale with a size"
    ):
        network_input_of(value)


@pytest.mark.parametrize("seed", range(8))
def test_boxes_in_the_image_are_left_alone(seed: int) -> None:
    truth, detections = tables(seed, misplaced=False)
    assert find_network_input(truth, detections) is None


@pytest.mark.parametrize("seed", range(8))
def test_boxes_anywhere_else_are_left_alone(seed: int) -> None:
    truth, detections = tables(seed, misplaced=True)
    assert find_network_input(truth, detections) is None


def tables(seed: int, *, misplaced: bool) -> tuple[GroundTruth, Detections]:
    """Return tables whose detections are right, or have nothing to do with the objects."""
    truth, results = made(24, seed)
    rng = np.random.default_rng(seed)
    sizes = {image["id"]: [image["width"], image["height"]] for image in truth["images"]}
    corners = [np.add(row["bbox"], [0, 0, *row["bbox"][:2]]) for row in [*truth["annotations"], *results]]
    count = len(truth["annotations"])
    found = np.array(corners[count:])
    if misplaced:
        found = np.array([np.tile(sizes[row["image_id"]], 2) for row in results]) * rng.uniform(
            0, 1, (len(results), 4)
        )
        found = np.hstack([np.minimum(found[:, :2], found[:, 2:]), np.maximum(found[:, :2], found[:, 2:])])
    images = boxscore.data.vocabulary.Images.build(list(sizes), sizes=[*sizes.values()])
    ground_truth = GroundTruth.from_arrays(
        [row["image_id"] for row in truth["annotations"]],
        [row["category_id"] for row in truth["annotations"]],
        np.array(corners[:count]),
        images=images,
    )
    detections = Detections.from_arrays(
        [row["image_id"] for row in results],
        [row["category_id"] for row in results],
        found,
        [row["score"] for row in results],
        images=images,
    )
    return ground_truth, detections


def test_images_of_unknown_size_are_refused(tmp_path: Path) -> None:
    truth, results = made()
    for image in truth["images"]:
        del image["width"], image["height"]
    gt, dt = written(tmp_path, truth, results)
    with quiet(), pytest.raises(InputError, match="images of unknown size: give --image-sizes"):
        ap(gt, dt, network_input="stretch:640")


def test_masks_are_refused(tmp_path: Path) -> None:
    truth, results = made()
    for row in results:
        row["segmentation"] = {"size": [480, 640], "counts": "1"}
    gt, dt = written(tmp_path, truth, results)
    with quiet(), pytest.raises(InputError, match="more than upright boxes"):
        ap(gt, dt, network_input="stretch:640")
