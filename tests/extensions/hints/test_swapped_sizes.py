"""Images whose width and height are exchanged: named, and never mistaken for boxes in another order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore import InputError
from boxscore.validation import validate_files
from extensions.hints.test_network_input import ap, made, written
from support.quiet import quiet
from support.running import Run

Records = list[dict[str, Any]]


def swapped(truth: dict[str, Any]) -> dict[str, Any]:
    images = [{**image, "width": image["height"], "height": image["width"]} for image in truth["images"]]
    return {**truth, "images": images}


def write_yolo(folder: Path, truth: dict[str, Any], results: Records) -> Path:
    """Write predictions as fractions of the image sizes in ``truth``."""
    (folder / "dt").mkdir(exist_ok=True)
    for image in truth["images"]:
        lines = []
        for row in results:
            if row["image_id"] == image["id"]:
                x, y, w, h = row["bbox"]
                across, down = image["width"], image["height"]
                numbers = [(x + w / 2) / across, (y + h / 2) / down, w / across, h / down, row["score"]]
                lines.append(" ".join(map(str, [row["category_id"] - 1, *numbers])))
        (folder / "dt" / f"{image['id']:04d}.txt").write_text("\n".join(lines))
    return folder / "dt"


def write_fractions(folder: Path, truth: dict[str, Any], results: Records) -> Path:
    """Write a table of corners as fractions of the image sizes in ``truth``."""
    sizes = {image["id"]: (image["width"], image["height"]) for image in truth["images"]}
    lines = ["image_id,category_id,x1,y1,x2,y2,score"]
    for row in results:
        (x, y, w, h), (across, down) = row["bbox"], sizes[row["image_id"]]
        numbers = [x / across, y / down, (x + w) / across, (y + h) / down, row["score"]]
        lines.append(",".join(map(str, [row["image_id"], row["category_id"], *numbers])))
    (folder / "dt.csv").write_text("\n".join(lines))
    return folder / "dt.csv"


def options_of(path: Path) -> list[str]:
    names = path.parent / "names.txt"
    names.write_text("car\ncup\ndog\n")
    return ["--dt-classes", str(names)] if path.is_dir() else ["--dt-box-format", "xyxyn"]


@pytest.mark.parametrize("write", [write_yolo, write_fractions])
@pytest.mark.parametrize("side", ["truth", "detections"])
def test_fractions(write: Any, side: str, tmp_path: Path, run: Run) -> None:
    """Whichever side has the wrong sizes, the same option gives the score of the right ones."""
    truth, results = made(24)
    right = ap(*written(tmp_path, truth, results))
    of_truth, of_detections = (swapped(truth), truth) if side == "truth" else (truth, swapped(truth))
    gt, _ = written(tmp_path, of_truth, results)
    dt = write(tmp_path, of_detections, results)
    more = options_of(dt)
    said = " ".join(run("evaluate", gt, dt, *more).err.split())
    assert f"With --swap-image-sizes, AP would be {right:.4f}" in said
    assert "box-format" not in said
    found = run("evaluate", gt, dt, *more, "--swap-image-sizes", "-o", "json")
    assert json.loads(found.out)["metrics"]["AP"] == pytest.approx(right, abs=1e-9)
    if side == "truth":
        assert found.err == ""


def test_pixels_keep_their_score(tmp_path: Path, run: Run) -> None:
    truth, results = made(24)
    right = run("evaluate", *written(tmp_path, truth, results))
    gt, dt = written(tmp_path, swapped(truth), results)
    printed = run("evaluate", gt, dt)
    said = " ".join(printed.err.split())
    assert printed.out == right.out
    assert "width and height of the images seem to be exchanged" in said
    assert said.endswith("Use --swap-image-sizes.")
    assert "box-format" not in said
    assert run("evaluate", gt, dt, "--swap-image-sizes").err == ""


def test_nothing_is_advised_that_lowers_the_score(tmp_path: Path) -> None:
    truth, results = made(24)
    found = validate_files(*written(tmp_path, swapped(truth), results))
    found = [one for one in found if one.kind == "geometric"]
    assert [(one.code, one.severity) for one in found] == [("image-sizes-swapped", "warning")]


def test_boxes_in_another_order_are_still_named(tmp_path: Path, run: Run) -> None:
    truth, results = made(24)
    turned = [{**row, "bbox": [row["bbox"][at] for at in (1, 0, 3, 2)]} for row in truth["annotations"]]
    gt, dt = written(tmp_path, {**truth, "annotations": turned}, results)
    said = " ".join(run("evaluate", gt, dt).err.split())
    assert "With --gt-box-format yxhw, AP would be" in said
    # A ground truth alone does not tell the two apart.
    [alone] = [one.message for one in validate_files(gt) if one.code == "annotation-box-order"]
    assert "--gt-box-format yxhw" in alone
    assert "--swap-image-sizes" in alone


def test_fractions_of_a_ground_truth_have_no_sizes(tmp_path: Path) -> None:
    truth, results = made()
    labels = write_yolo(tmp_path, truth, results)
    for path in labels.iterdir():
        path.write_text("\n".join(" ".join(line.split()[:5]) for line in path.read_text().splitlines()))
    with quiet(), pytest.raises(InputError, match="swap_image_sizes must be used with boxes in pixels"):
        boxscore.load_ground_truth(labels, classes=["car", "cup", "dog"], swap_image_sizes=True)
