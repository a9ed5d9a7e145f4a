"""Output tensors: made from known detections by the rule of each model, then decoded again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import InputError, batched_nms
from boxscore.raw_outputs import decode_outputs, layout_of, letterbox
from support.running import Run

SIZES = [(640, 360), (375, 500), (161, 97)]
INPUT = (160, 160)
CLASSES = 3


def _sides() -> list[Any]:
    """Boxes in pixels of each image, that hardly overlap, with scores and classes in descending order."""
    images = []
    for number, (width, height) in enumerate(SIZES):
        boxes = (
            np.array([[0.1, 0.1, 0.3, 0.45], [0.5, 0.2, 0.8, 0.5], [0.15, 0.6, 0.45, 0.9]]) + 0.01 * number
        )
        images.append(
            (boxes * [width, height, width, height], np.array([0.9, 0.7, 0.4]), np.array([2, 0, 1]))
        )
    return images


def _in_input(kind: Any) -> list[Any]:
    """Boxes in pixels of the input."""
    found = []
    for (boxes, scores, classes), size in zip(_sides(), SIZES, strict=True):
        how = letterbox(size, INPUT, kind)
        found.append((boxes * np.tile(how.gain, 2) + np.tile(how.padding, 2), scores, classes))
    return found


def _fractions() -> list[Any]:
    return [(boxes / np.tile(size, 2), s, c) for (boxes, s, c), size in zip(_sides(), SIZES, strict=True)]


def _centers(boxes: Any) -> Any:
    return np.concatenate(((boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]), axis=1)


def _one_hot(scores: Any, classes: Any, columns: int = CLASSES) -> Any:
    table = np.zeros((len(scores), columns))
    table[np.arange(len(scores)), classes] = scores
    return table


def _logit(values: Any) -> Any:
    return np.log(np.clip(values, 1e-6, 1) / (1 - np.clip(values, 1e-6, 1 - 1e-9)))


def _yolov8() -> dict[str, Any]:
    rows = [np.concatenate((_centers(b), _one_hot(s, c)), axis=1).T for b, s, c in _in_input("ultralytics")]
    return {"output0": np.concatenate((np.stack(rows), np.zeros((3, 4 + CLASSES, 20))), axis=2)}


def _yolov5() -> dict[str, Any]:
    # objectness 0.8 times a class score
    rows = [
        np.concatenate((_centers(b), np.full((3, 1), 0.8), _one_hot(s / 0.8, c).clip(max=1)), axis=1)
        for b, s, c in _in_input("yolov5")
    ]
    return {"output0": np.concatenate((np.stack(rows), np.ones((3, 20, 5 + CLASSES)) * 1e-4), axis=1)}


def _yolox() -> dict[str, Any]:
    grid = [(x, y, s) for s in (8, 16, 32) for y in range(160 // s) for x in range(160 // s)]
    output = np.full((3, len(grid), 5 + CLASSES), 0.0)
    output[:, :, 2:4] = -3
    for image, (boxes, scores, classes) in enumerate(_in_input("corner")):
        for row, (box, score, label) in enumerate(zip(_centers(boxes), scores, classes, strict=True)):
            x, y, stride = grid[row]
            output[image, row, :2] = box[:2] / stride - [x, y]
            output[image, row, 2:4] = np.log(box[2:] / stride)
            output[image, row, 4:5] = 1
            output[image, row, 5 + label] = score
    return {"output": output}


def _end_to_end() -> dict[str, Any]:
    return {"output0": np.stack([np.column_stack(one) for one in _in_input("ultralytics")])}


def _rtdetr_of_ultralytics() -> dict[str, Any]:
    return {"output0": np.stack([np.column_stack((_centers(b), s, c)) for b, s, c in _fractions()])}


def _detr() -> dict[str, Any]:
    logits = []
    for _, scores, classes in _fractions():
        table = np.concatenate((_one_hot(scores, classes), 1 - scores[:, None]), axis=1)
        logits.append(np.log(np.maximum(table, 1e-12)))
    return {"logits": np.stack(logits), "pred_boxes": np.stack([_centers(b) for b, _, _ in _fractions()])}


def _rtdetr() -> dict[str, Any]:
    logits = [_logit(_one_hot(s, c)) for _, s, c in _fractions()]
    return {"logits": np.stack(logits), "pred_boxes": np.stack([_centers(b) for b, _, _ in _fractions()])}


def _rfdetr() -> dict[str, Any]:
    labels = [_logit(_one_hot(s, c, CLASSES + 1)) for _, s, c in _fractions()]
    return {"dets": np.stack([_centers(b) for b, _, _ in _fractions()]), "labels": np.stack(labels)}


def _tensorflow() -> dict[str, Any]:
    rows = [(b[:, [1, 0, 3, 2]], s, c.astype(float)) for b, s, c in _fractions()]
    boxes, scores, classes = (
        np.concatenate((np.stack(column), np.zeros((3, 2, *column[0].shape[1:]))), axis=1)
        for column in zip(*rows, strict=True)
    )
    names = ("detection_boxes", "detection_scores", "detection_classes", "num_detections")
    return dict(zip(names, (boxes, scores, classes, np.full(3, 3.0)), strict=True))


def _efficient_nms() -> dict[str, Any]:
    boxes, scores, classes = (np.stack(column) for column in zip(*_in_input("ultralytics"), strict=True))
    names = ("num_dets", "det_boxes", "det_scores", "det_classes")
    return dict(zip(names, (np.full((3, 1), 3), boxes, scores, classes), strict=True))


def _detection_output() -> dict[str, Any]:
    rows = [np.column_stack((np.full(3, image), c + 1, s, b)) for image, (b, s, c) in enumerate(_fractions())]
    return {"out": np.concatenate((*rows, np.full((1, 7), -1.0)))[None, None]}


def _mmdet() -> dict[str, Any]:
    boxes, scores, classes = (np.stack(column) for column in zip(*_in_input("ultralytics"), strict=True))
    return {"dets": np.concatenate((boxes, scores[..., None]), axis=2), "labels": classes}


MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "yolov8": _yolov8,
    "yolov5": _yolov5,
    "yolox": _yolox,
    "end2end": _end_to_end,
    "rtdetr-ultralytics": _rtdetr_of_ultralytics,
    "detr": _detr,
    "rtdetr": _rtdetr,
    "rfdetr": _rfdetr,
    "tensorflow": _tensorflow,
    "efficient-nms": _efficient_nms,
    "detection-output": _detection_output,
    "mmdet": _mmdet,
}


@pytest.mark.parametrize("layout", MADE)
def test_every_layout_is_recognized_and_read(layout: str) -> None:
    arrays = MADE[layout]()
    assert layout_of(arrays, CLASSES).name == layout
    found = decode_outputs(arrays, SIZES, INPUT, classes=CLASSES, score_threshold=0.01)
    for (boxes, scores, classes), one in zip(_sides(), found, strict=True):
        np.testing.assert_allclose(one.boxes, boxes, atol=1e-6)
        expected = np.minimum(scores, 0.8) if layout == "yolov5" else scores
        np.testing.assert_allclose(one.scores, expected, rtol=1e-9)
        assert one.classes.tolist() == classes.tolist()


def test_one_image_without_a_batch_axis() -> None:
    output = _yolov8()["output0"]
    alone = decode_outputs(output[1], SIZES[1:2], INPUT)[0]
    together = decode_outputs(output, SIZES, INPUT)[1]
    assert alone.boxes.tolist() == together.boxes.tolist()


def test_labels_thresholds_and_nms() -> None:
    rng = np.random.default_rng(0)
    boxes = np.concatenate((rng.uniform(20, 140, (60, 2)), rng.uniform(10, 60, (60, 2))), axis=1)
    scores = rng.random((60, CLASSES))
    output = np.concatenate((boxes, scores), axis=1).T[None]
    half = boxes[:, 2:] / 2
    corners = np.concatenate((boxes[:, :2] - half, boxes[:, :2] + half), axis=1)
    # several labels: every class above the threshold is a row
    rows, classes = np.nonzero(scores > 0.3)
    kept = batched_nms(corners[rows], scores[rows, classes], classes, 0.6)
    many = decode_outputs(
        output, [INPUT], INPUT, score_threshold=0.3, iou_threshold=0.6, max_detections=None
    )[0]
    assert many.scores.tolist() == scores[rows, classes][kept].tolist()
    # one label: the best class alone, with a cap
    best = scores.argmax(axis=1)
    kept = batched_nms(corners, scores.max(axis=1), best, 0.6)
    one = decode_outputs(output, [INPUT], INPUT, multi_label=False, iou_threshold=0.6, max_detections=7)[0]
    assert one.scores.tolist() == scores.max(axis=1)[kept][:7].tolist()


@pytest.mark.parametrize(
    ("size", "kind", "gain", "padding"),
    [
        ((427, 640), "ultralytics", (1.0, 1.0), (106.0, 0.0)),  # 106.5 at each side
        ((427, 640), "yolov5", (1.0, 1.0), (106.5, 0.0)),
        ((161, 97), "ultralytics", (640 / 161, 386 / 97), (0.0, 127.0)),
        ((641, 640), "ultralytics", (640 / 641, 639 / 640), (0.0, 0.0)),
        ((320, 200), "corner", (2.0, 2.0), (0.0, 0.0)),
        ((320, 200), "stretch", (2.0, 3.2), (0.0, 0.0)),
    ],
)
def test_letterboxes(size: Any, kind: Any, gain: Any, padding: Any) -> None:
    assert letterbox(size, (640, 640), kind) == (gain, padding)


def test_images_without_detections_at_the_end() -> None:
    output = _detection_output()["out"]
    first = output[:, :, output[0, 0, :, 0] < 1]
    found = decode_outputs({"out": first}, SIZES, INPUT, layout="detection-output")
    assert [len(one.scores) for one in found] == [3, 0, 0]


@pytest.mark.parametrize("layout", ["detr", "mmdet", "tensorflow"])
def test_the_highest_scores_stay_in_the_order_of_the_output(layout: str) -> None:
    arrays = {key: value[:, ::-1] if value.ndim > 1 else value for key, value in MADE[layout]().items()}
    if layout == "tensorflow":
        arrays = {
            key: np.roll(value, -2, axis=1) if value.ndim > 1 else value for key, value in arrays.items()
        }
    found = decode_outputs(arrays, SIZES, INPUT, layout=layout, max_detections=2)
    assert [one.classes.tolist() for one in found] == [[0, 2]] * 3  # 0.7, 0.9
    with pytest.raises(InputError, match="max_detections"):
        decode_outputs(arrays, SIZES, INPUT, layout=layout, max_detections=-1)


@pytest.mark.parametrize("layout", ["tensorflow", "efficient-nms", "mmdet", "end2end"])
def test_lists_without_a_batch_axis(layout: str) -> None:
    arrays = {key: value[1] if value.ndim > 1 else value[1:2] for key, value in MADE[layout]().items()}
    found = decode_outputs(arrays, SIZES[1:2], INPUT, layout=layout)[0]
    np.testing.assert_allclose(found.boxes, _sides()[1][0], atol=1e-6)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logits": np.zeros((1, 9, 4)), "pred_boxes": np.zeros((1, 9, 4))}, "fits detr, rtdetr"),
        ({"heads": np.zeros((1, 3, 20, 20, 85))}, "must have a known layout"),
        ({"output": np.full((1, 3, 6), np.nan)}, "finite numbers"),
        ({"output": np.array([["a"]])}, "must be an array of numbers"),
    ],
)
def test_refused_arrays(arrays: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode_outputs(arrays, [INPUT], INPUT)


def test_a_wrong_number_of_sizes() -> None:
    with pytest.raises(InputError, match="must be 3, as the images"):
        decode_outputs(_end_to_end(), SIZES[:2], INPUT)
    with pytest.raises(InputError, match="fit the 525 cells of YOLOX"):
        decode_outputs(_yolox(), SIZES, (640, 640), layout="yolox")


def _truth(folder: Path) -> Path:
    path = folder / "gt.json"
    images = [
        {"id": n + 7, "file_name": f"{n}.jpg", "width": w, "height": h} for n, (w, h) in enumerate(SIZES)
    ]
    notes = [
        {"id": k * 3 + n + 1, "image_id": k + 7, "category_id": int(c) + 1, "iscrowd": 0, "area": 1.0}
        | {"bbox": [*b[:2].tolist(), *(b[2:] - b[:2]).tolist()]}
        for k, (boxes, _, classes) in enumerate(_sides())
        for n, (b, c) in enumerate(zip(boxes, classes, strict=True))
    ]
    categories = [{"id": n, "name": f"c{n}"} for n in (1, 2, 3)]
    path.write_text(json.dumps({"images": images, "annotations": notes, "categories": categories}))
    return path


def test_the_command(tmp_path: Path, run: Run) -> None:
    truth, written = _truth(tmp_path), tmp_path / "dt.json"
    np.savez(tmp_path / "out.npz", image_ids=np.array([7, 8, 9]), **_yolov8())
    call = ["decode", tmp_path / "out.npz", "--gt", truth, "--input-size", 160, "--output", written]
    assert "read as yolov8" in run(*call).err
    assert run.json("evaluate", truth, written)["metrics"]["AP"] == 1.0
    # names, a file of ids, and one file per image give the same
    np.save(tmp_path / "out.npy", _yolov8()["output0"])
    first = json.loads(written.read_text())
    (tmp_path / "ids.txt").write_text("7\n8\n9\n")
    run("decode", tmp_path / "out.npy", *call[2:], "--image-ids", tmp_path / "ids.txt")
    assert json.loads(written.read_text()) == first
    run("decode", tmp_path / "out.npy", *call[2:], "--image-ids", "0.jpg", "1.jpg", "2.jpg")
    assert json.loads(written.read_text()) == first
    (tmp_path / "each").mkdir()
    for number, one in enumerate(_yolov8()["output0"]):
        np.save(tmp_path / "each" / f"{number}.npy", one)
    run("decode", tmp_path / "each", *call[2:])
    assert json.loads(written.read_text()) == first


def test_what_the_command_refuses(tmp_path: Path, run: Run) -> None:
    rest = ["--gt", _truth(tmp_path), "--input-size", 160, "--output", tmp_path / "dt.json"]
    np.save(tmp_path / "out.npy", _end_to_end()["output0"])
    assert "--image-ids" in run.error("decode", tmp_path / "out.npy", *rest)
    assert "--input-size must be given" in run.error("decode", tmp_path / "out.npy", *rest[:2], *rest[4:])
    ids = ["--image-ids", 7, 8]
    assert "must be 3, as in the arrays" in run.error("decode", tmp_path / "out.npy", *rest, *ids)
    assert "be in the ground truth" in run.error(
        "decode", tmp_path / "out.npy", *rest, "--image-ids", "x", 8, 9
    )
    ids = ["--image-ids", 7, 8, 9]
    assert "class numbers must be 1 to 3" in run.error(
        "decode", tmp_path / "out.npy", *rest, *ids, "--first-class", 1
    )
    np.save(tmp_path / "bad.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "without pickled objects" in run.error("decode", tmp_path / "bad.npy", *rest, *ids)
    (tmp_path / "text.npz").write_bytes(b"PK\x03\x04 not a zip")
    assert ".npy or .npz file" in run.error("decode", tmp_path / "text.npz", *rest, *ids)
    assert "exist" in run.error("decode", tmp_path / "none.npy", *rest, *ids)
    assert "be different" in run.error("decode", tmp_path / "out.npy", *rest, "--image-ids", 7, 7, 9)
    assert "--output must end in" in run.error(
        "decode", tmp_path / "out.npy", *rest[:-1], tmp_path / "dt", *ids
    )
    (tmp_path / "head.npy").write_bytes((tmp_path / "out.npy").read_bytes()[:60] + b"(" * 400)
    assert ".npy or .npz file" in run.error("decode", tmp_path / "head.npy", *rest, *ids)
    with (tmp_path / "huge.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (1000000, 84, 8400)}
        )
    assert "a header declares" in run.error("decode", tmp_path / "huge.npy", *rest, *ids)
    assert not (tmp_path / "dt.json").exists()


@pytest.mark.parametrize("layout", MADE)
def test_arrays_of_another_layout(layout: str) -> None:
    """A chosen layout that the arrays do not have is an error, never a traceback."""
    for arrays in (_end_to_end(), _detr(), _tensorflow(), {"a": np.zeros((1, 84, 0))}):
        with contextlib.suppress(InputError):
            decode_outputs(arrays, SIZES, INPUT, layout=layout)


def test_empty_images_do_not_choose_the_layout(tmp_path: Path, run: Run) -> None:
    """Padding of zeros fits several layouts; the file with detections decides."""
    output = _end_to_end()["output0"]
    (tmp_path / "each").mkdir()
    for name, one in (("0", output[0] * 0), ("1", output[1])):
        np.save(tmp_path / "each" / f"{name}.npy", one[None])
    call = ["--gt", _truth(tmp_path), "--input-size", 160, "--output", tmp_path / "dt.json"]
    said = run("decode", tmp_path / "each", *call).err
    assert "read as end2end" in said
    assert "3 detections of 2 images" in said
    boxes = [record["bbox"][:2] for record in json.loads((tmp_path / "dt.json").read_text())]
    np.testing.assert_allclose(sorted(boxes), sorted(_sides()[1][0][:, :2].tolist()), atol=1e-6)
