"""COCO files whose boxes have five numbers: read, scored, written."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.formats import _coco_records, coco
from boxscore.formats.reading import load_both, read_detections, read_options
from oracles.pycoco import assert_equal_to_pycocotools
from support.quiet import quiet
from support.rotated import rotated_case, run_pycocotools, tables
from support.running import Run

KEYS = {"segmentation": [[1, 1, 5, 1, 5, 5]], "keypoints": [1, 1, 2], "num_keypoints": 1, "note": None}


def write(folder: Path, truth: Any, detections: Any) -> tuple[Path, Path]:
    paths = folder / "truth.json", folder / "found.json"
    for path, content in zip(paths, (truth, detections), strict=True):
        path.write_text(json.dumps(content))
    return paths


@pytest.mark.parametrize("seed", range(30))
def test_files_score_as_pycocotools_told_the_overlaps(seed: int, tmp_path: Path) -> None:
    truth, detections = rotated_case(seed)
    expected = tables(truth, detections)
    if seed % 3 == 1:  # what else a record may have changes how it is read
        truth["annotations"] = [{**row, **KEYS} for row in truth["annotations"]]
        detections = [{**row, **KEYS} for row in detections]
    if seed % 3 == 2:
        detections = [{**row, "image_id": float(row["image_id"])} for row in detections]
    paths = write(tmp_path, truth, detections)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hints = (["rotated"], ["rotated", "masks"])[seed % 2]
        evaluation = boxscore.evaluate(
            *load_both(*paths, *[read_options(instances=hints)] * 2), protocol="coco-rotated", digest=False
        )
    assert_equal_to_pycocotools(evaluation, run_pycocotools(truth, detections))
    for ours, made in zip((evaluation.ground_truth, evaluation.detections), expected, strict=True):
        assert ours.rotated is not None
        np.testing.assert_allclose(ours.rotated, made.rotated, rtol=1e-15)
        np.testing.assert_allclose(ours.boxes, made.boxes, rtol=0, atol=1e-9)
    assert evaluation.detections.boxes_given


def test_the_command_line_reads_them(tmp_path: Path, run: Run) -> None:
    truth, detections = rotated_case(3)
    paths = write(tmp_path, truth, detections)
    command = ["evaluate", "--gt", str(paths[0]), "--dt", str(paths[1]), "--protocol", "coco-rotated"]
    printed = json.loads(run(*command, "--output", "json").out)
    expected = boxscore.evaluate(*tables(truth, detections), protocol="coco-rotated").metrics
    assert printed["metrics"]["AP"] == expected["AP"]


def test_pieces_and_slices_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write(tmp_path, *rotated_case(8))
    expected = [table.rotated.tolist() for table in load_both(*paths)]
    monkeypatch.setattr(coco._json, "PART_BYTES", 500)
    for size in (1, 50, 3000):
        monkeypatch.setattr(coco._json, "SLICE_BYTES", size)
        monkeypatch.setattr(_coco_records, "PEEK_BYTES", size + 2)
        for processes in (1, 2):
            assert [
                table.rotated.tolist()
                for table in load_both(*paths, *[read_options(processes=processes)] * 2)
            ] == expected


def test_boxes_of_four_numbers_are_not_rotated(tmp_path: Path) -> None:
    truth, detections = rotated_case(1)
    for row in (*truth["annotations"], *detections):
        del row["bbox"][4]
    with quiet():  # they are centers, so many reach outside
        truth_table, table = load_both(*write(tmp_path, truth, detections))
    assert (truth_table.rotated, table.rotated) == (None, None)
    with pytest.raises(
        boxscore.InputError, match=r"^ground truth must have rotated boxes\. Got none in .*truth"
    ):
        boxscore.evaluate(truth_table, table, protocol="coco-rotated")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("keys", [{}, KEYS])
@pytest.mark.parametrize(("first", "other"), [(5, 4), (4, 5), (5, 6)])
def test_the_first_record_decides(
    which: int, keys: dict[str, Any], first: int, other: int, tmp_path: Path
) -> None:
    truth, detections = rotated_case(5)
    rows = (truth["annotations"], detections)[which]
    for number, row in enumerate(rows):
        row |= keys
        row["bbox"] = [*row["bbox"], 1][: other if number == 2 else first]
    with pytest.raises(boxscore.InputError, match=rf"bbox must have {first} numbers\. Got .* 2 "):
        load_both(
            *write(tmp_path, truth, detections),
            *[read_options(instances=["masks"] if keys and which == 0 else [])] * 2,
        )


def test_the_first_result_decides_beside_masks(tmp_path: Path) -> None:
    truth, detections = rotated_case(5)
    for row in detections:
        row["segmentation"] = None
    detections[2]["bbox"] = detections[2]["bbox"][:4]
    paths = write(tmp_path, truth, detections)
    with pytest.raises(boxscore.InputError, match=r"bbox must have 5 numbers, as the first detection's has"):
        load_both(*paths, *[read_options(instances=["masks"])] * 2)


@pytest.mark.parametrize(
    ("box", "text"), [([1, 2, -3, 4, 0], "width >= 0"), ([1, 2, 3, -4, 0], "height >= 0")]
)
def test_sizes_are_not_negative(box: list[float], text: str, tmp_path: Path) -> None:
    truth, detections = rotated_case(5)
    detections[1]["bbox"] = box
    with pytest.raises(boxscore.InputError, match=rf"{text}.*detection 1 of"):
        load_both(*write(tmp_path, truth, detections))


def test_protocols_of_boxes_take_the_boxes_around_them_and_say_so(tmp_path: Path) -> None:
    paths = write(tmp_path, *rotated_case(2))
    truth, detections = load_both(*paths)
    with pytest.warns(
        boxscore.FindingWarning,
        match=r"compares the upright boxes around them.*With --protocol coco-rotated, AP would be",
    ):
        around = boxscore.evaluate(truth, detections, protocol="coco")
    plain_truth = truth.replaced(rotated=None)
    plain = boxscore.evaluate(plain_truth, detections.replaced(rotated=None), protocol="coco")
    assert around.metrics == pytest.approx(plain.metrics, rel=0, abs=0, nan_ok=True)
    with pytest.warns(boxscore.BoxscoreWarning, match=r"comparing the upright boxes around them") as caught:
        boxscore.evaluate(plain_truth, detections, protocol="coco")
    assert str(paths[1]) in str(caught[0].message)


def test_they_are_written_with_five_numbers(tmp_path: Path) -> None:
    paths = write(tmp_path, *rotated_case(6))
    truth, detections = load_both(*paths)
    coco.FORMAT.save(detections, tmp_path / "again.json")
    again = read_detections(tmp_path / "again.json", truth)
    np.testing.assert_allclose(again.rotated, detections.rotated, rtol=1e-14)
    assert np.array_equal(again.rotated[:, :4], detections.rotated[:, :4])
    assert (
        boxscore.evaluate(truth, again, protocol="coco-rotated").metrics["AP"]
        == (boxscore.evaluate(truth, detections, protocol="coco-rotated").metrics["AP"])
    )


def test_suppression_of_files_says_what_it_compares(tmp_path: Path) -> None:
    _, detections = rotated_case(6)
    paths = write(tmp_path, {}, detections)
    command = [sys.executable, "-m", "boxscore", "nms", "--detections", str(paths[1])]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "survivors.json"), "--iou-threshold", "0.5"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the upright boxes around them are suppressed or fused" in done.stderr
    survivors = json.loads((tmp_path / "survivors.json").read_text())
    assert survivors
    assert all(row in detections for row in survivors)
