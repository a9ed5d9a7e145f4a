"""Shifted image ids: recognized whether or not they are listed, and corrected by an option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.data.vocabulary import Images
from boxscore.extensions.hints.image_offsets import ImageIdOffset, image_id_offset_of, moved_id, rows_at
from extensions.hints.test_network_input import ap, made, written
from support.quiet import quiet
from support.running import Run

Records = list[dict[str, Any]]


def shifted(results: Records, step: int) -> Records:
    return [{**row, "image_id": row["image_id"] + step} for row in results]


@pytest.mark.parametrize("step", [-1, 1, 100])
def test_ids_that_are_not_listed(step: int, tmp_path: Path, run: Run) -> None:
    """The first or the last image does not exist, so the file is refused: with the option that reads it."""
    truth, results = made()
    right = ap(*written(tmp_path, truth, results))
    gt, dt = written(tmp_path, truth, shifted(results, step))
    said = run.error("evaluate", gt, dt)
    assert f"use --image-id-offset {-step}." in said
    assert "unlisted" not in said, "dropping the images would lower the score"
    assert ap(gt, dt, image_id_offset=-step) == right


@pytest.mark.parametrize("step", [-1, 1])
def test_ids_that_are_listed(step: int, tmp_path: Path, run: Run) -> None:
    truth, results = made(24)
    results = [row for row in results if row["image_id"] not in (1, 24)]
    right = run("evaluate", *written(tmp_path, truth, results))
    gt, dt = written(tmp_path, truth, shifted(results, step))
    said = " ".join(run("evaluate", gt, dt).err.split())
    assert f"Use --image-id-offset {-step}." in said
    assert f"With --image-id-offset {-step}, AP would be" in said
    assert run("evaluate", gt, dt, "--image-id-offset", -step).out == right.out


def test_results_of_other_images_are_not_shifted(tmp_path: Path, run: Run) -> None:
    truth, results = made()
    _, others = made(seed=1)
    said = run.error("evaluate", *written(tmp_path, truth, [*results, *shifted(others, 12)]))
    assert "--image-id-offset" not in said
    assert "--unlisted-images" in said


def test_right_ids_are_left_alone(tmp_path: Path, run: Run) -> None:
    assert run("evaluate", *written(tmp_path, *made(24))).err == ""


def test_text_keeps_its_length(tmp_path: Path) -> None:
    """Ids of a VOC folder are names of files."""
    truth, results = made()
    (tmp_path / "gt").mkdir()
    for image in truth["images"]:
        objects = "".join(
            f"<object><name>{row['category_id']}</name><bndbox><xmin>{x}</xmin><ymin>{y}</ymin>"
            f"<xmax>{x + w}</xmax><ymax>{y + h}</ymax></bndbox></object>"
            for row in truth["annotations"]
            if row["image_id"] == image["id"]
            for x, y, w, h in [row["bbox"]]
        )
        size = f"<size><width>{image['width']}</width><height>{image['height']}</height></size>"
        name = f"{image['id']:06d}"
        (tmp_path / "gt" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename>{size}{objects}</annotation>"
        )
    classes = [{**row, "category_id": str(row["category_id"])} for row in results]
    (tmp_path / "right.json").write_text(json.dumps(classes))
    (tmp_path / "dt.json").write_text(json.dumps(shifted(classes, -1)))
    right = ap(tmp_path / "gt", tmp_path / "right.json")
    assert right > 0.2
    assert ap(tmp_path / "gt", tmp_path / "dt.json", image_id_offset=1) == right
    with quiet(), pytest.raises(InputError, match="use --image-id-offset 1 "):
        ap(tmp_path / "gt", tmp_path / "dt.json")


def test_unlisted_images_keep_their_right_ids(tmp_path: Path) -> None:
    """``background`` adds the image that is not listed after the offset, and no other."""
    truth, results = made()
    extra = {**results[0], "image_id": 99}
    gt, dt = written(tmp_path, truth, shifted([*results, extra], 1))
    with quiet():
        table = boxscore.load_ground_truth(gt)
        with pytest.raises(InputError, match=r"99|100"):
            boxscore.load_detections(dt, table, image_id_offset=-1)
        dropped = boxscore.load_detections(dt, table, image_id_offset=-1, unlisted_images="drop")
        right = boxscore.load_detections(written(tmp_path, truth, results)[1], table)
    assert dropped.image.tolist() == right.image.tolist()


def test_moved_ids() -> None:
    assert moved_id(7, -7) == 0
    assert moved_id("000009", 1) == "000010"
    assert moved_id("99", 1) == "100"
    assert moved_id("a7", 1) is None


def test_rows_of_other_ids() -> None:
    assert rows_at(Images.build([1, 2, 4]), 1).tolist() == [1, -1, -1]
    assert rows_at(Images.build(["09", "10", "b"]), 1).tolist() == [1, -1, -1]


def test_values() -> None:
    assert image_id_offset_of(np.int64(-3)) == ImageIdOffset(-3)
    for value in (True, 1.0, "one"):
        with pytest.raises(InputError, match="image_id_offset must be a whole number"):
            image_id_offset_of(value)


def test_names_cannot_be_shifted(tmp_path: Path) -> None:
    truth, results = made()
    for image in truth["images"]:
        image["id"] = f"street_{image['id']}"
    for row in [*truth["annotations"], *results]:
        row["image_id"] = f"street_{row['image_id']}"
    gt, dt = written(tmp_path, truth, results)
    with quiet(), pytest.raises(InputError, match="be used with images that have numbers"):
        ap(gt, dt, image_id_offset=1)
