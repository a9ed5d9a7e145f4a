"""Label maps against panopticapi's and COCO-Stuff's own numbers, on their own files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import semantic_iou
from boxscore.label_maps import panoptic_quality_of_files, semantic_iou_of_folders
from support.quiet import quiet
from support.real_data import real
from support.running import Run

pytest.importorskip("PIL")
CASES = ["mmdet", "area_of_json", "area_right", "halves", "two_crowds", "unlisted_truth"]
GROUPS = {"All": "", "Things": "_things", "Stuff": "_stuff"}


@pytest.mark.parametrize("case", CASES)
def test_panopticapi_to_the_last_bit(case: str) -> None:
    folder = real("panoptic", "cases", case)
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    files = ("truth.json", "truth", "predictions.json", "predictions")
    with quiet():
        result = panoptic_quality_of_files(*(folder / name for name in files))
    for group, ending in GROUPS.items():
        values = expected[group]
        for name in ("PQ", "SQ", "RQ"):
            ours = result.metrics[f"{name}{ending}"]
            if values == "ZeroDivisionError":
                assert ours != ours
            else:
                assert ours == values[name.lower()]
    frame = result.to_frame().set_index("class_id")
    for number, (tp, fp, fn, iou) in expected["counts"].items():
        row = frame.loc[int(number)]
        assert [tp, fp, fn] == [row.TP, row.FP, row.FN]
        assert tp == 0 or row.SQ * tp == iou


def test_the_command_prints_mmdets_published_number(run: Run) -> None:
    folder = real("panoptic", "cases", "mmdet")
    arguments = ["--gt", "truth.json", "--gt-folder", "truth"]
    arguments += ["--dt", "predictions.json", "--dt-folder", "predictions"]
    paths = [text if text.startswith("--") else str(folder / text) for text in arguments]
    assert (
        100 * json.loads(run("panoptic", *paths, "--output", "json").out)["metrics"]["PQ"]
        == 67.86874803219071
    )


def test_cocos_panoptic_sample_agrees_with_its_table() -> None:
    folder = real("panoptic", "sample")
    files = (folder / "panoptic_examples.json", folder / "panoptic_examples")
    for rules in ("panopticapi", "counted"):
        result = panoptic_quality_of_files(*files, *files, rules=rules)
        assert {value for name, value in result.metrics.items() if name.startswith("PQ")} == {1.0}
        assert (result.counts["FP"], result.counts["FN"]) == (0, 0)


def painted(table: Any) -> list[Any]:
    """Paint the masks of a table into one map per image."""
    maps, masks = [], table.masks.arrays()
    for row, (width, height) in enumerate(table.images.sizes.astype(int).tolist()):
        labels = np.zeros((height, width), dtype=np.uint8)
        for i in np.flatnonzero(table.image == row).tolist():
            labels[masks[i]] = table.categories.ids[table.category[i]]
        maps.append(labels)
    return maps


def test_coco_stuffs_numbers_and_matrix() -> None:
    folder = real("semantic", "cocostuff")
    truth = boxscore.load_ground_truth(folder / "stuff_examples.json")
    predictions = [folder / "results_png" / f"{Path(name).stem}.png" for name in truth.images.file_names]
    from boxscore.extensions.masks._png import read_labels

    result = semantic_iou(painted(truth), map(read_labels, predictions), rules="coco-stuff")
    expected = json.loads((folder / "expected_stuff_examples.json").read_text(encoding="utf-8"))
    assert result.metrics == {name: expected["stats"][name] for name in ("mIoU", "fwIoU", "mAcc", "pAcc")}
    frame = result.to_frame().set_index("label")
    for label, value in expected["ious"].items():
        assert frame.IoU[int(label)] == value
        assert frame.Acc[int(label)] == expected["accs"][label]
    theirs = np.load(folder / "confusion.npy")
    assert np.array_equal(result.confusion[:, :-1], theirs[91:, 91:])  # 92 to 183
    assert np.array_equal(result.confusion[:, -1], theirs[91:, :91].sum(axis=1))


def test_four_readings_of_one_pair_of_maps() -> None:
    folder = real("semantic", "small")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    result = semantic_iou_of_folders(
        folder / "truth.png", folder / "prediction.png", classes=8, rules="mmseg"
    )
    coco, mmseg = expected["cocostuff_rule"], expected["mmseg"]
    metrics = result.metrics
    assert metrics["mIoU"] == expected["mean_over_truth_or_prediction"]
    assert metrics["mIoU"] == pytest.approx(mmseg["mIoU"], abs=1e-7)  # float32 there
    assert metrics["mAcc"] == pytest.approx(mmseg["mAcc"], abs=1e-7)
    assert metrics["pAcc"] == pytest.approx(mmseg["aAcc"], abs=1e-7)
    assert result.read_as("plain").metrics == metrics
    for rules in ("coco-stuff", "detectron2"):
        assert result.read_as(rules).metrics == {name: coco[name] for name in metrics}
    all_classes = result.read_as({"extends": "plain", "averaged": "all"})
    assert all_classes.metrics["mIoU"] == expected["zero_for_absent"]
    for name, theirs in (("right", "intersection"), ("truth", "truth"), ("predicted", "prediction")):
        assert result.to_frame()[name].tolist() == expected[theirs]
