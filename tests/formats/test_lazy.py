"""Masks and keypoints are read when they are first asked for, and score the same whenever that is."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import FileFormatError, InputError
from boxscore.formats import _coco_records, coco, load_both
from boxscore.formats.reading import read_detections, read_ground_truth, read_options
from support.examples import first_of
from support.instances import keypoint_case, mask_case
from support.quiet import quiet
from support.running import Run
from support.samples import SHAPES_VOC

KINDS = {"coco-segm": "masks", "coco-boundary": "masks", "coco-keypoints": "keypoints"}


@pytest.fixture(autouse=True)
def _silence() -> Any:
    with quiet():
        yield


def write(folder: Path, truth: Any, detections: Any) -> tuple[Path, Path]:
    paths = folder / "gt.json", folder / "dt.json"
    for path, content in zip(paths, (truth, detections), strict=True):
        path.write_text(json.dumps(content))
    return paths


def as_npz(paths: tuple[Path, Path]) -> tuple[Path, Path]:
    truth = boxscore.load_ground_truth(paths[0])
    detections = boxscore.load_detections(paths[1], truth)
    archives = paths[0].with_suffix(".npz"), paths[1].with_suffix(".npz")
    boxscore.save_columns(truth, archives[0])
    boxscore.save_columns(detections, archives[1])
    return archives


@pytest.mark.parametrize("npz", [False, True])
@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("seed", first_of(2, range(5)))
def test_a_hint_changes_nothing(seed: int, protocol: str, npz: bool, tmp_path: Path) -> None:
    case = keypoint_case(seed) if protocol == "coco-keypoints" else mask_case(seed)
    paths = write(tmp_path, *case)
    paths = as_npz(paths) if npz else paths
    results = []
    for hint in ((), (KINDS[protocol],), ("masks", "keypoints")):
        truth, detections = load_both(*paths, *[read_options(instances=hint)] * 2)
        assert truth.instances.is_read(KINDS[protocol]) == bool(hint)
        results.append(boxscore.evaluate(truth, detections, protocol=protocol))
    for other in results[1:]:
        assert str(other.metrics) == str(results[0].metrics)
        for name, array in other.arrays().items():
            assert np.array_equal(array, results[0].arrays()[name], equal_nan=True), name


@pytest.mark.parametrize("with_boxes", [True, False])
@pytest.mark.parametrize("case", [mask_case, keypoint_case])
def test_a_box_evaluation_reads_no_masks_where_there_are_boxes(
    case: Any, with_boxes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, detections = case(3)
    for row in detections:
        row.pop("bbox", None)
        if with_boxes:
            row["bbox"] = [1, 2, 5, 6]
    paths = write(tmp_path, truth, detections)
    asked = []
    kind = coco.instance_kind
    monkeypatch.setattr(
        coco, "instance_kind", lambda *args, **options: asked.append(args) or kind(*args, **options)
    )
    tables = load_both(*paths)
    result = boxscore.evaluate(*tables, protocol="coco", digest=False)  # the digest reads masks at a low AP
    assert result.per_class is not None
    assert len(result.matches) <= len(detections)
    assert not asked
    assert tables[1].boxes_given == with_boxes
    name = "masks" if case is mask_case else "keypoints"
    assert tables[1].instances.is_read(name) == (not with_boxes)
    assert getattr(tables[0], name) is not None
    assert len(asked) == 1
    assert getattr(tables[0][:1], name) is not None
    assert getattr(tables[0], name) is getattr(tables[0], name)
    assert len(asked) == 1  # what was read is shared


@pytest.mark.parametrize("iou_type", ["segm", "keypoints"])
def test_the_command_line_reads_no_file_twice(
    iou_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    paths = write(tmp_path, *(keypoint_case(1) if iou_type == "keypoints" else mask_case(1)))
    monkeypatch.delattr(coco, "instance_kind")
    arguments = ["--gt", str(paths[0]), "--dt", str(paths[1]), "--iou-type", iou_type, "--workers", "1"]
    run("evaluate", *arguments)


def test_boxes_without_boxes_are_those_of_pycocotools(tmp_path: Path) -> None:
    """Around the mask where the first record has one, else around the keypoints."""
    truth, detections = keypoint_case(0, joints=3)
    code = {"size": [480, 640], "counts": [480 * 10 + 5, 20, 480 * 629 + 455]}
    for row in detections:
        row.pop("bbox", None)
    paths = write(tmp_path, truth, detections)
    points = np.array([row["keypoints"] for row in detections]).reshape(-1, 3, 3)
    around = np.hstack([points[:, :, :2].min(axis=1), points[:, :, :2].max(axis=1)])
    assert load_both(*paths)[1].boxes.tolist() == around.tolist()
    paths = write(tmp_path, truth, [{**row, "segmentation": code} for row in detections])
    for hint in ((), ("keypoints",), ("masks",)):
        table = load_both(*paths, *[read_options(instances=hint)] * 2)[1]
        assert table.boxes.tolist() == [[10, 5, 11, 25]] * len(detections)
        assert not table.boxes_given
        assert table.keypoints.tolist() == points.tolist()


def test_tables_without_masks_give_none(tmp_path: Path) -> None:
    truth, detections = mask_case(1)
    for row in [*truth["annotations"], *detections]:
        row["segmentation"] = []  # as many programs write where there are only boxes
    for row in detections:
        row["bbox"] = [1, 1, 3, 3]
    paths = write(tmp_path, truth, detections)
    for tables in (load_both(*paths), load_both(*as_npz(paths))):
        for table in tables:
            assert (table.masks, table.keypoints) == (None, None)
        assert tables[0].keypoint_count is None
    voc = SHAPES_VOC
    table = boxscore.load_ground_truth(voc / "VOC2007", image_set="test")
    assert (table.masks, table.keypoints, table.keypoint_count) == (None, None, None)
    with pytest.raises(InputError, match="ground truth must have a mask in every row"):
        boxscore.evaluate(*load_both(*paths), protocol="coco-segm")


def test_rows_left_out_and_repeated_keep_their_masks(tmp_path: Path) -> None:
    """What is read later is of the rows that the table has."""
    truth, detections = mask_case(2)
    truth["annotations"] += [{**truth["annotations"][0], "iscrowd": 0} for _ in range(2)]
    detections = [
        {**row, "bbox": [0, 0, 4, 4], "category_id": 9 if n % 3 == 0 else 1}
        for n, row in enumerate(detections)
    ]
    paths = write(tmp_path, truth, detections)
    late, early = load_both(*paths), load_both(*paths, *[read_options(instances=["masks"])] * 2)
    for first, second in zip(late, early, strict=True):
        assert first.masks is not None
        assert second.masks is not None
        assert [code["counts"] for code in first.masks.codes()] == [
            code["counts"] for code in second.masks.codes()
        ]
        assert [first.masks.place(row) for row in range(len(first))] == [
            second.masks.place(row) for row in range(len(second))
        ]
    assert len(late[1]) < len(detections)


@pytest.mark.parametrize("npz", [False, True])
@pytest.mark.parametrize("change", ["size", "time", "gone"])
def test_a_file_that_changes_before_masks_are_read(change: str, npz: bool, tmp_path: Path) -> None:
    paths = write(tmp_path, *mask_case(1))
    path = (as_npz(paths) if npz else paths)[0]
    table = boxscore.load_ground_truth(path)
    if change == "gone":
        path.unlink()
    elif change == "size":
        path.write_bytes(path.read_bytes() + b" ")
    else:
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
    rule = {"gone": "cannot be read: No such file"}.get(change, "must not change while its tables are in use")
    for again in range(2):
        with pytest.raises(FileFormatError, match=rule) as caught:
            table[again:].masks  # noqa: B018
        assert str(path) in str(caught.value)
    assert len(table.boxes) == len(table)  # the rest stands


def test_damaged_masks_are_named_when_they_are_read(tmp_path: Path) -> None:
    truth, detections = mask_case(1)
    truth["annotations"][2]["segmentation"] = {"size": "big", "counts": "5"}
    paths = write(tmp_path, truth, detections)
    table = boxscore.load_ground_truth(paths[0])
    with pytest.raises(FileFormatError, match=r"segmentation.*annotation 2 of .*gt\.json"):
        table.masks  # noqa: B018
    with pytest.raises(FileFormatError, match=r"segmentation.*annotation 2 of .*gt\.json"):
        read_ground_truth(paths[0], read_options(instances=["masks"]))


def test_pickles_need_no_file(tmp_path: Path) -> None:
    paths = write(tmp_path, *mask_case(1))
    truth = boxscore.load_ground_truth(paths[0])
    codes = [
        code["counts"]
        for code in read_ground_truth(paths[0], read_options(instances=["masks"])).masks.codes()
    ]
    again = pickle.loads(pickle.dumps(truth[1:]))
    paths[0].unlink()
    assert [code["counts"] for code in again.masks.codes()] == codes[1:]
    with pytest.raises(ValueError, match="read-only"):
        again.boxes[0] = 0


@pytest.mark.parametrize("processes", [1, 3])
def test_the_first_record_decides_in_any_slice(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, detections = keypoint_case(0)
    for row in detections:
        row.pop("bbox", None)
    paths = write(tmp_path, truth, detections)
    monkeypatch.setattr(coco._json, "PART_BYTES", 500)
    table = boxscore.load_ground_truth(paths[0])
    expected = read_detections(paths[1], table).boxes.tolist()
    for size in (1, 50, 3000):
        monkeypatch.setattr(coco._json, "SLICE_BYTES", size)
        assert read_detections(paths[1], table, read_options(processes=processes)).boxes.tolist() == expected
    assert _coco_records.first_record(_coco_records.text_in_file(paths[1])).fallback == "keypoints"
