"""Tables saved as columns come back to the bit; damaged and hostile files are refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import boxscore
from support.examples import first_of
from support.instances import keypoint_case, mask_case
from support.running import Run
from support.samples import DT, SHAPES, SHAPES_VOC


def _pairs(kind: str) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    if kind == "coco":
        truth = boxscore.load_ground_truth(SHAPES / "instances.json")
        return truth, boxscore.load_detections(SHAPES / "detections.json", truth)
    truth = boxscore.load_ground_truth(SHAPES_VOC / "VOC2007", image_set="test")
    return truth, boxscore.load_detections(SHAPES_VOC / "results", truth)


@pytest.mark.parametrize("kind", ["coco", "voc"])
def test_round_trip_keeps_every_bit(kind: str, tmp_path: Path) -> None:
    truth, detections = _pairs(kind)
    boxscore.save_columns(truth, tmp_path / "gt.npz")
    boxscore.save_columns(detections, tmp_path / "dt.npz")
    truth_again = boxscore.load_ground_truth(tmp_path / "gt.npz")
    found_again = boxscore.load_detections(tmp_path / "dt.npz", truth_again)
    for name in ("image", "category", "boxes", "sizes", "area", "crowd", "difficult", "ignore", "ids"):
        assert np.array_equal(getattr(truth, name), getattr(truth_again, name)), name
    for name in ("image", "category", "boxes", "sizes", "scores"):
        assert np.array_equal(getattr(detections, name), getattr(found_again, name)), name
    assert truth.images.ids.tolist() == truth_again.images.ids.tolist()
    assert truth.images.file_names.tolist() == truth_again.images.file_names.tolist()
    assert truth.categories.names.tolist() == truth_again.categories.names.tolist()
    assert set(truth.columns) == set(truth_again.columns)
    for protocol in ("coco", "voc2007", "voc2012"):
        before = boxscore.evaluate(truth, detections, protocol=protocol).metrics
        assert str(boxscore.evaluate(truth_again, found_again, protocol=protocol).metrics) == str(before)


def test_command_line(tmp_path: Path, run: Run) -> None:
    truth, detections = tmp_path / "gt.npz", tmp_path / "dt.npz"
    run("convert", "--gt", SHAPES / "instances.json", "--output", truth)
    arguments = ["convert", "--gt", str(truth), "--dt", DT, "--output", str(detections)]
    assert "282 rows written" in run(*arguments).err
    metrics = json.loads(run("evaluate", "--gt", truth, "--dt", detections, "--output", "json").out)[
        "metrics"
    ]
    expected = json.loads((SHAPES / "expected.json").read_text())
    assert metrics["AP"] == next(iter(_numbers(expected, "AP")))


def _numbers(value: object, key: str) -> list[float]:
    if isinstance(value, dict):
        own = [value[key]] if isinstance(value.get(key), float) else []
        return own + [number for item in value.values() for number in _numbers(item, key)]
    return []


def test_columns_of_another_split_are_refused(tmp_path: Path) -> None:
    _, detections = _pairs("coco")
    boxscore.save_columns(detections, tmp_path / "dt.npz")
    other = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 5, 5]])
    with pytest.raises(boxscore.InputError, match="perhaps results of another split"):
        boxscore.load_detections(tmp_path / "dt.npz", other)


def _archive(path: Path, *, compression: int = zipfile.ZIP_STORED, **changes: np.ndarray | None) -> Path:
    """Write the sample's detections with some members changed or left out."""
    boxscore.save_columns(_pairs("coco")[1], path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value
    (np.savez_compressed if compression == zipfile.ZIP_DEFLATED else np.savez)(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"boxes": None}, "column boxes must be there"),
        ({"scores": np.zeros(3)}, r"column scores must be float64 \[282\]"),
        ({"scores": np.full(282, np.nan)}, "score must be finite"),
        ({"image": np.full(282, 999, dtype="i4")}, "column image must be rows below 24"),
        ({"boxes": np.full((282, 4), np.inf)}, "box must be finite"),
        ({"sizes": np.full((282, 2), -1.0)}, "boxes must have width >= 0"),
        ({"header": np.frombuffer(b"{}", dtype=np.uint8)}, "must be of version 1"),
        ({"header": np.frombuffer(b"[", dtype=np.uint8)}, "must be written by boxscore convert"),
        ({"header": None}, "must be written by boxscore convert"),
    ],
)
def test_damaged_columns_are_refused(changes: dict[str, np.ndarray], rule: str, tmp_path: Path) -> None:
    path = _archive(tmp_path / "dt.npz", **changes)
    with pytest.raises(boxscore.InputError, match=rule):
        boxscore.load_detections(path, _pairs("coco")[0])


def test_hostile_archives_are_refused(tmp_path: Path) -> None:
    truth = _pairs("coco")[0]
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(boxscore.FileFormatError, match="written by boxscore convert"):
        boxscore.load_detections(pickled, truth)
    squeezed = _archive(tmp_path / "squeezed.npz", compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(boxscore.FileFormatError, match="not be compressed"):
        boxscore.load_detections(squeezed, truth)
    cut = tmp_path / "cut.npz"
    cut.write_bytes(squeezed.read_bytes()[:200])
    with pytest.raises(boxscore.FileFormatError):
        boxscore.load_detections(cut, truth)
    boxscore.save_columns(truth, tmp_path / "gt.npz")
    with pytest.raises(boxscore.FileFormatError, match="must hold detections"):
        boxscore.load_detections(tmp_path / "gt.npz", truth)
    with pytest.raises(boxscore.InputError, match="be named"):
        boxscore.save_columns(truth, tmp_path / "gt.bin")


# ---------------------------------------------------------------- masks and keypoints


@pytest.mark.parametrize("seed", first_of(2, range(6)))
@pytest.mark.parametrize("iou_type", ["segm", "boundary", "keypoints"])
def test_masks_and_keypoints_score_the_same(seed: int, iou_type: str, tmp_path: Path, run: Run) -> None:
    content = keypoint_case(seed) if iou_type == "keypoints" else mask_case(seed)
    names = [tmp_path / name for name in ("gt.json", "dt.json", "gt.npz", "dt.npz")]
    for path, value in zip(names, content, strict=False):
        path.write_text(json.dumps(value))
    truth, detections, truth_columns, found_columns = map(str, names)
    kind = ["--iou-type", iou_type]
    run("convert", "--gt", truth, "--output", truth_columns)
    run("convert", "--gt", truth_columns, "--dt", detections, "--output", found_columns)
    expected = json.loads(run("evaluate", "--gt", truth, "--dt", detections, *kind, "--output", "json").out)
    again = json.loads(
        run("evaluate", "--gt", truth_columns, "--dt", found_columns, *kind, "--output", "json").out
    )
    assert again["metrics"] == expected["metrics"]
    assert again["per_class"] == expected["per_class"]


def test_masks_are_left_unread_until_they_are_asked_for(tmp_path: Path) -> None:
    table = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 3, 3]], masks=[np.eye(5)])
    boxscore.save_columns(table, tmp_path / "gt.npz")
    loaded = boxscore.load_ground_truth(tmp_path / "gt.npz")
    assert not loaded.instances.is_read("masks")
    again = loaded.masks
    assert again is not None
    assert again.arrays()[0].tolist() == np.eye(5).astype(bool).tolist()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"mask_lengths": None}, "column mask_lengths must be there"),
        ({"mask_sizes": np.zeros((2, 2), dtype="i4")}, "column mask_sizes must be int64"),
        ({"mask_sizes": np.full((2, 2), -5)}, r"column mask_sizes must be \[2, 2\] and not negative"),
        ({"mask_rows": np.array([1, 0])}, "column mask_rows must be ascending rows below 3"),
        ({"mask_rows": np.array([0, 3])}, "column mask_rows must be ascending rows below 3"),
        ({"mask_lengths": np.array([9, 99])}, "column mask_lengths must add up to"),
        ({"mask_lengths": np.array([-1, 9])}, "column mask_lengths must add up to"),
        ({"mask_counts": np.frombuffer(b"o" * 9, dtype="u1")}, "a mask must be whole"),
        ({"mask_counts": np.frombuffer(b"5" * 9, dtype="u1")}, "a mask must have counts that add up"),
    ],
)
def test_damaged_masks_are_refused(changes: dict[str, np.ndarray], rule: str, tmp_path: Path) -> None:
    square = {"size": [4, 6], "counts": [5, 2, 2, 2, 13]}
    table = boxscore.GroundTruth.from_arrays(
        [1, 1, 2], [1, 1, 1], [[0, 0, 3, 3]] * 3, masks=[square, None, square]
    )
    path = tmp_path / "gt.npz"
    boxscore.save_columns(table, path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    assert arrays["mask_rows"].tolist() == [0, 2]
    assert len(arrays["mask_counts"]) == 10
    if "mask_counts" in changes:
        arrays["mask_lengths"] = np.array([4, 5])
    arrays = {name: values for name, values in {**arrays, **changes}.items() if values is not None}
    np.savez(path, **arrays)
    with pytest.raises(boxscore.InputError, match=rule):
        boxscore.load_ground_truth(path).masks[np.array([0, 2])].area  # noqa: B018


@pytest.mark.parametrize(
    "points", [np.zeros((2, 4, 3)), np.zeros((3, 4, 2)), np.zeros((3, 4)), np.full((3, 4, 3), np.nan)]
)
def test_damaged_keypoints_are_refused(points: np.ndarray, tmp_path: Path) -> None:
    table = boxscore.Detections.from_arrays(
        [1, 1, 2], [1, 1, 1], None, [0.5] * 3, keypoints=np.ones((3, 4, 3))
    )
    path = tmp_path / "dt.npz"
    boxscore.save_columns(table, path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    np.savez(path, **{**arrays, "keypoints": points})
    truth = boxscore.GroundTruth.from_arrays([1, 2], [1, 1], [[0, 0, 3, 3]] * 2)
    with pytest.raises(boxscore.InputError, match=rf"^(column )?keypoints must be .* {path}"):
        boxscore.load_detections(path, truth).keypoints  # noqa: B018
