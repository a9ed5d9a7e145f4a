"""What detection libraries return scores as the arrays in it do, recognized by attributes alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, Evaluator, GroundTruth, InputError
from boxscore.extensions.training.tensors import as_array
from support import model_objects as make
from support.each import each
from support.model_objects import NAMES, SIZE, Tensor, plain

Maker = Callable[[dict[str, Any]], Any]
PREDICTIONS: list[Maker] = [
    make.torchvision,
    make.hf_pipeline,
    make.coco_rows,
    make.annotations,
    make.ultralytics,
    make.supervision,
    make.detectron2,
    make.mmdetection,
    make.mmdetection_2,
    make.keras,
]
TARGETS: list[Maker] = [
    make.torchvision,
    make.hf_target,
    make.coco_rows,
    make.annotations,
    make.supervision,
    make.detectron2_target,
    make.mmdetection,
    make.keras,
]


def bits(evaluation: boxscore.Evaluation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in evaluation.arrays().items()} | {
        "metrics": np.array(list(evaluation.metrics.values())).tobytes()
    }


def scored(predictions: Any, targets: Any, **options: Any) -> boxscore.Evaluation:
    evaluator = Evaluator(**options)
    evaluator.update(predictions, targets)
    return evaluator.compute()


def test_the_data_tell_something() -> None:
    assert 0.05 < scored(*plain()).metrics["AP"] < 0.95


@pytest.mark.parametrize("maker", PREDICTIONS)
def test_predictions(maker: Maker) -> None:
    predictions, targets = plain()
    converted = [maker(side) for side in predictions]
    if (
        maker is make.mmdetection_2
    ):  # by class: equal scores of one class keep their order, nothing else counts
        predictions = [
            {key: column[np.argsort(side["labels"], kind="stable")] for key, column in side.items()}
            for side in predictions
        ]
    expected = scored(predictions, targets, classes=NAMES)
    assert bits(scored(converted, targets, classes=NAMES)) == bits(expected)
    ids = [f"{number}.png" for number in range(len(targets))]
    truth = GroundTruth.from_targets(targets, image_ids=ids, categories=NAMES)
    table = Detections.from_predictions(converted, image_ids=ids, categories=truth.categories)
    assert bits(boxscore.evaluate(truth, table)) == bits(expected)
    if maker not in (make.hf_pipeline, make.ultralytics, make.supervision):
        assert bits(scored(converted, targets)) == bits(scored(predictions, targets))


@pytest.mark.parametrize("maker", TARGETS)
def test_targets(maker: Maker) -> None:
    predictions, targets = plain()
    converted = [maker(side) for side in targets]
    expected = scored(predictions, targets, classes=NAMES)
    assert bits(scored(predictions, converted, classes=NAMES)) == bits(expected)
    ids = range(len(targets))
    truth = GroundTruth.from_targets(converted, image_ids=ids, categories=NAMES)
    detections = Detections.from_predictions(predictions, image_ids=ids)
    assert bits(boxscore.evaluate(truth, detections)) == bits(expected)


@pytest.mark.parametrize(
    "maker", [make.ultralytics, make.supervision, make.detectron2, make.mmdetection, make.mmdetection_2]
)
def test_masks_of_predictions(maker: Maker) -> None:
    predictions, targets = plain(masks=True)
    if maker is make.mmdetection_2:
        predictions = [
            {key: column[np.argsort(side["labels"], kind="stable")] for key, column in side.items()}
            for side in predictions
        ]
    options = {"protocol": "coco-segm", "classes": NAMES}
    expected = scored(predictions, targets, **options)
    assert 0 < expected.metrics["AP"] < 1
    assert bits(scored([maker(side) for side in predictions], targets, **options)) == bits(expected)


@pytest.mark.parametrize("maker", [make.supervision, make.detectron2_target, make.mmdetection])
def test_masks_of_targets(maker: Maker) -> None:
    predictions, targets = plain(masks=True)
    options = {"protocol": "coco-segm", "classes": NAMES}
    expected = scored(predictions, targets, **options)
    assert bits(scored(predictions, [maker(side) for side in targets], **options)) == bits(expected)


@pytest.mark.parametrize("keys", [("iscrowd",), ("area",), ("ignore",), ("area", "iscrowd", "ignore")])
def test_flags_and_areas_of_supervision(keys: tuple[str, ...]) -> None:
    predictions, targets = plain(40)
    rng = np.random.default_rng(1)
    flagged = [
        target
        | {
            "area": rng.uniform(1, 5000, len(target["labels"])),
            "iscrowd": (rng.random(len(target["labels"])) < 0.3).astype(int),
            "ignore": (rng.random(len(target["labels"])) < 0.3).astype(int),
        }
        for target in targets
    ]
    chosen = [
        {key: target[key] for key in (*targets[0], *keys)} if len(target["labels"]) else plain_target
        for target, plain_target in zip(flagged, targets, strict=True)
    ]
    expected = scored(predictions, chosen, classes=NAMES)
    assert bits(expected) != bits(scored(predictions, targets, classes=NAMES))
    assert bits(scored(predictions, [make.supervision(t) for t in chosen], classes=NAMES)) == bits(expected)


def test_polygons_of_targets() -> None:
    predictions, targets = plain(masks=True)
    converted = []
    for side in targets:
        corners = [[[b[0], b[1], b[2], b[1], b[2], b[3], b[0], b[3]]] for b in side["boxes"].tolist()]
        polygons = SimpleNamespace(polygons=[[np.array(ring) for ring in one] for one in corners])
        item = make.detectron2_target(side)
        item["instances"].gt_masks = polygons
        converted.append(item)
    options = {"protocol": "coco-segm", "classes": NAMES}
    assert bits(scored(predictions, converted, **options)) == bits(scored(predictions, targets, **options))


# ---------------------------------------------------------------- boxes


@pytest.mark.parametrize("form", ["xywh", "cxcywh"])
def test_forms_of_boxes_are_the_objects_own(form: Any) -> None:
    predictions, targets = plain()
    expected = bits(scored(predictions, targets, classes=NAMES))
    converted = [{**side, "boxes": boxscore.box_convert(side["boxes"], "xyxy", form)} for side in targets]
    outputs = [make.ultralytics(side) for side in predictions]
    assert bits(scored(outputs, converted, classes=NAMES, box_format=form)) == expected


def test_tv_tensors_state_their_form() -> None:
    class Boxes(Tensor):
        format = SimpleNamespace(name="XYWH")
        canvas_size = SIZE

    predictions, targets = plain()
    converted = [{**t, "boxes": Boxes(boxscore.box_convert(t["boxes"], "xyxy", "xywh"))} for t in targets]
    assert bits(scored(predictions, converted)) == bits(scored(predictions, targets))


def test_keras_batches() -> None:
    predictions, targets = plain()
    expected = bits(scored(predictions, targets))
    outputs, truth = make.keras_batch(predictions), make.keras_batch(targets)
    assert bits(scored(outputs, truth)) == expected
    classes = outputs["classes"]
    classes[classes == -1] = 2  # num_detections decides
    assert bits(scored(outputs, truth)) == expected
    outputs["labels"] = outputs.pop("classes")  # as KerasHub calls them
    truth["labels"] = truth.pop("classes")
    assert bits(scored(outputs, truth)) == expected
    with pytest.raises(
        InputError, match=r"boxes of a prediction must have shape \[N, 4\]. .* pass the mapping"
    ):
        Evaluator().update([outputs], targets[:1])


def test_rotated_boxes() -> None:
    rotated = np.array([[40.0, 30, 20, 10, 0.5], [20, 20, 8, 12, -0.25]], dtype=np.float64)
    side = {"labels": np.array([0, 1]), "scores": np.array([0.5, 0.25])}
    truth = [{"rotated": rotated, "labels": side["labels"]}]
    expected = bits(scored([{**side, "rotated": rotated}], truth, protocol="coco-rotated", classes=NAMES))
    obb = SimpleNamespace(xywhr=Tensor(rotated), conf=side["scores"], cls=side["labels"].astype(float))
    results = SimpleNamespace(boxes=None, obb=obb, names=NAMES, orig_shape=SIZE, path="a.jpg")
    assert bits(scored([results], truth, protocol="coco-rotated", classes=NAMES)) == expected
    degrees = rotated * [1, 1, 1, 1, -180 / np.pi]
    instances = SimpleNamespace(
        image_size=SIZE,
        pred_boxes=SimpleNamespace(tensor=degrees),
        pred_classes=side["labels"],
        scores=side["scores"],
    )
    evaluation = scored([instances], truth, protocol="coco-rotated", classes=NAMES)
    np.testing.assert_allclose(evaluation.detections.rotated, rotated, rtol=1e-15)
    cosine, sine = np.cos(rotated[:, 4]), np.sin(rotated[:, 4])
    across = np.column_stack([cosine, sine]) * rotated[:, 2:3] / 2
    along = np.column_stack([-sine, cosine]) * rotated[:, 3:4] / 2
    center = rotated[:, :2]
    corners = np.stack([center - across - along, center + across - along, center + across + along], axis=1)
    corners = np.concatenate([corners, (center - across + along)[:, None]], axis=1)
    outputs = make.supervision({**side, "boxes": np.zeros((2, 4))})
    outputs.data["xyxyxyxy"] = corners
    evaluation = scored([outputs], truth, protocol="coco-rotated", classes=NAMES)
    np.testing.assert_allclose(evaluation.detections.rotated, rotated, rtol=1e-13)


def test_keypoints() -> None:
    points = np.arange(34, dtype=np.float64).reshape(1, 17, 2)
    full = np.concatenate([points, np.full((1, 17, 1), 2.0)], axis=2)
    side = {"boxes": np.array([[0.0, 0, 40, 40]]), "labels": np.array([0]), "scores": np.array([0.5])}
    truth = [{"boxes": side["boxes"], "labels": [0], "keypoints": full, "area": [900.0]}]
    expected = scored([{**side, "keypoints": full}], truth, protocol="coco-keypoints", classes=NAMES)
    assert expected.metrics["AP"] == pytest.approx(1)
    results = make.ultralytics(side)
    results.keypoints = SimpleNamespace(data=Tensor(points))
    assert bits(scored([results], truth, protocol="coco-keypoints", classes=NAMES)) == bits(expected)


def test_masks_of_another_size_are_not_read() -> None:
    predictions, targets = plain(2, masks=True)
    results = make.ultralytics(predictions[1])
    results.masks = SimpleNamespace(data=np.ones((len(predictions[1]["labels"]), 4, 4)))
    with pytest.warns(BoxscoreWarning, match="retina_masks=True"):
        Evaluator(classes=NAMES).update([results], targets[1:])


def test_ignored_instances_of_mmdetection() -> None:
    predictions, targets = plain()
    converted, flagged = [], []
    for side in targets:
        count = len(side["labels"]) // 2
        item = make.mmdetection({key: column[count:] for key, column in side.items()})
        item.ignored_instances = SimpleNamespace(
            bboxes=SimpleNamespace(tensor=Tensor(side["boxes"][:count])),
            labels=Tensor(side["labels"][:count]),
        )
        converted.append(item)
        order = np.r_[count : len(side["labels"]), :count]
        flag = np.arange(len(order)) >= len(order) - count
        flagged.append({**{key: column[order] for key, column in side.items()}, "iscrowd": flag})
    assert bits(scored(predictions, converted)) == bits(scored(predictions, flagged))


# ---------------------------------------------------------------- classes


def numbers(evaluation: boxscore.Evaluation) -> bytes:
    return np.array(list(evaluation.metrics.values())).tobytes()


def test_names_decide_where_both_sides_have_them() -> None:
    """The classes of the two sides are numbered otherwise; only names agree."""
    predictions, targets = plain()
    expected = numbers(scored(predictions, targets, classes=NAMES))
    converted = [{**side, "labels": side["labels"] + 1} for side in targets]
    outputs = [make.ultralytics(side) for side in predictions]
    shifted = {number + 1: name for number, name in NAMES.items()}
    assert numbers(scored(outputs, converted, classes=shifted)) == expected
    named = [{**side, "labels": make.names_of(side)} for side in targets]
    assert numbers(scored(outputs, named)) == expected  # without classes=
    other = [make.supervision(side) for side in targets]
    for item, side in zip(other, targets, strict=True):
        item.class_id = side["labels"] + 7
    assert numbers(scored(outputs, other)) == expected
    with pytest.warns(BoxscoreWarning) as caught:
        assert numbers(scored(outputs, converted, classes=[1, 2, 3])) != expected  # without names: by number
    left_out, numbered = (str(warning.message) for warning in caught)
    assert "of 1 class that the ground truth does not have: 0" in left_out
    assert "with ids counted from 0 (zero-based)" in numbered
    assert numbered.endswith("Pass prediction_class_names= to name the classes of the predictions.")
    numbered = [{**side, "labels": side["labels"]} for side in predictions]
    names = list(NAMES.values())
    assert numbers(scored(numbered, converted, classes=shifted, prediction_class_names=names)) == expected
    ids = [f"{number}.png" for number in range(len(targets))]
    truth = GroundTruth.from_targets(converted, image_ids=ids, categories=shifted)
    for options in ({"class_names": NAMES}, {"class_names": names}):
        table = Detections.from_predictions(numbered, image_ids=ids, **options)  # type: ignore[arg-type]
        assert numbers(boxscore.evaluate(truth, table)) == expected
    assert numbers(boxscore.evaluate(truth, Detections.from_predictions(outputs, image_ids=ids))) == expected


def test_numbers_decide_where_one_side_has_no_names() -> None:
    predictions, targets = plain()
    outputs = [make.ultralytics(side) for side in predictions]
    assert bits(scored(outputs, targets)) == bits(scored(predictions, targets))
    one_by_one = Evaluator()
    for item, target in zip(outputs, targets, strict=True):
        one_by_one.update([item], [target])
    assert bits(one_by_one.compute()) == bits(scored(predictions, targets))


def test_the_side_without_objects_does_not_decide() -> None:
    """The first 70 images have no object, so that names or numbers is decided after them."""
    predictions, targets = plain()
    empty = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, int)}
    busy = next(side for side in predictions if len(side["labels"]))
    evaluator, expected = Evaluator(), Evaluator()
    for _ in range(70):
        evaluator.update([make.ultralytics(busy)], [empty])
        expected.update([busy], [empty])
    evaluator.update([make.ultralytics(side) for side in predictions], targets)
    expected.update(predictions, targets)
    assert bits(evaluator.compute()) == bits(expected.compute())
    early = Evaluator()
    early.update([make.ultralytics(busy)], [empty])
    early.compute()
    with pytest.raises(InputError, match="names of classes must be set for every image or for none"):
        early.update([make.ultralytics(side) for side in predictions], targets)


def test_names_and_numbers_alone_cannot_agree() -> None:
    predictions, targets = plain()
    outputs = [make.hf_pipeline(side) for side in predictions]
    message = (
        r"labels of predictions and targets must be both numbers or both names. Got names and numbers; "
        r"pass classes=\{number: name, ...\}."
    )
    with pytest.raises(InputError, match=message):
        Evaluator().update(outputs, targets)
    with pytest.raises(InputError, match=r"labels must be among the classes. Got '\w+', and classes without"):
        Evaluator(classes=[0, 1, 2]).update(outputs, targets)
    evaluator = Evaluator(prediction_class_names=NAMES)
    with pytest.raises(InputError, match=message):
        evaluator.update(predictions, targets)
    with pytest.raises(InputError, match=r"a class number must have a name. Got \d in image \d; 1 are known"):
        Evaluator(prediction_class_names=["cat"]).update(predictions, targets)
    mixed = [make.ultralytics(predictions[0]), *(make.supervision(side) for side in predictions[1:])]
    mixed[1].data = {}
    busy = [*mixed[:1], *(item for item in mixed[1:] if len(item.xyxy))]
    busy[1].data = {}
    with pytest.raises(
        InputError, match=r"the classes of predictions must all have names, or none. Got some"
    ):
        Evaluator().update(busy, [targets[1]] * len(busy))
    with pytest.raises(InputError, match=r"the classes of predictions must all have names, or none"):
        Detections.from_predictions(busy, image_ids=range(len(busy)))


def test_too_few_predictions_from_0_for_the_boxes_to_tell() -> None:
    predictions, targets = plain(3)
    converted = [{**side, "labels": side["labels"] + 1} for side in targets]
    message = r"predictions have classes 0 to 2 but targets 1 to 3. Do predictions count from 0\?"
    with pytest.warns(BoxscoreWarning, match=message):
        scored([make.detectron2(side) for side in predictions], converted)
    with pytest.warns(BoxscoreWarning) as caught:
        scored([make.detectron2(side) for side in predictions], converted, classes={1: "a", 2: "b", 3: "c"})
    assert len(caught) == 2
    assert "Do predictions count from 0?" in str(caught[1].message)


def test_unknown_names_are_left_out_and_named() -> None:
    predictions, targets = plain()
    outputs = [make.hf_pipeline(side) for side in predictions]
    with pytest.warns(BoxscoreWarning, match="of 1 class that the ground truth does not have: bird"):
        scored(outputs, [{**t, "labels": t["labels"] % 2} for t in targets], classes={0: "cat", 1: "dog"})


@pytest.mark.parametrize("names", ["cat", {"cat": 0}, [0, 1], {True: "cat"}])
def test_class_names_are_checked(names: Any) -> None:
    with pytest.raises(InputError, match=r"class name"):
        Evaluator(prediction_class_names=names)


# ---------------------------------------------------------------- images


def test_image_ids_of_the_objects() -> None:
    predictions, _ = plain(3)
    results = [make.ultralytics(side, f"C:\\data\\{n}.x.jpg") for n, side in enumerate(predictions)]
    table = Detections.from_predictions(iter(results))
    assert table.images.ids.tolist() == ["0.x.jpg", "1.x.jpg", "2.x.jpg"]
    samples = [make.mmdetection(side) for side in predictions]
    for number, sample in enumerate(samples):
        sample.metainfo = {"img_id": 10 + number}
    assert Detections.from_predictions(samples).images.ids.tolist() == [10, 11, 12]
    given = Detections.from_predictions(samples, image_ids=Tensor([4, 5, 6]))  # type: ignore[arg-type]
    assert given.images.ids.tolist() == [4, 5, 6]
    with pytest.raises(InputError, match=r"image_ids must be given. Got None, and prediction 0 lacks an id"):
        Detections.from_predictions(predictions)
    with pytest.raises(
        InputError, match=r"image_ids must occur only once. Got 'a.b.jpg' again; pass image_ids="
    ):
        Detections.from_predictions([make.ultralytics(side) for side in predictions])
    with pytest.raises(InputError, match=r"image_ids must be as long as predictions \(3\)"):
        Detections.from_predictions(predictions, image_ids=[1])
    assert len(Detections.from_predictions([])) == len(GroundTruth.from_targets([])) == 0


def test_rows_of_coco_say_their_image() -> None:
    """Of a list and of Hugging Face's annotations alike; crowds, masks as RLE and keypoints are read."""
    predictions, targets = plain(3, masks=True)
    rows = [[{**row, "image_id": n + 5} for row in make.coco_rows(t)] for n, t in enumerate(targets)]
    with_id = [{"image_id": n + 5, "annotations": row} for n, row in enumerate(rows)]
    assert GroundTruth.from_targets(with_id).images.ids.tolist() == [5, 6, 7]
    assert bits(scored(predictions, with_id)) == bits(scored(predictions, targets))
    with pytest.raises(
        InputError, match=r"Got 6 in image 1 of the batch|Got None .*; an empty list has none"
    ):
        Evaluator().update(predictions, rows)  # the first image is empty, so that it has no id
    with pytest.raises(
        InputError, match=r"annotations of a target must be of one image. Got image_id \[6, 7\]"
    ):
        Evaluator().update([predictions[1]], [rows[1] + rows[2]])
    crowd = [[{**row, "iscrowd": 1} for row in each] for each in rows[1:]]
    assert GroundTruth.from_targets(crowd).crowd.all()
    codes = [list(boxscore.Masks(target["masks"]).codes()) for target in targets]
    for row, code in zip(rows, codes, strict=True):
        for one, mask in zip(row, code, strict=True):
            one["segmentation"] = mask
    options = {"protocol": "coco-segm"}
    expected = scored(predictions[1:], targets[1:], **options)
    assert bits(scored(predictions[1:], rows[1:], **options)) == bits(expected)
    points = [{**row, "keypoints": [1, 2, 2] * 17} for row in rows[1]]
    assert GroundTruth.from_targets([points]).keypoints.shape == (len(points), 17, 3)  # type: ignore[union-attr]


def test_fractions_against_pixels_are_a_warning() -> None:
    predictions, targets = plain()
    small = [{**side, "boxes": side["boxes"] / 80} for side in predictions]
    message = r"coordinates of the predictions reach 0\.\d+, those of the targets \d+: are the pred"
    with pytest.warns(BoxscoreWarning, match=message):
        scored(small, targets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scored(small, [{**side, "boxes": side["boxes"] / 80} for side in targets])
        scored(predictions, targets)
        scored(small[:1], targets[:1])


def test_target_ids() -> None:
    predictions, targets = plain(3)
    converted = [{**make.hf_target(t), "image_id": Tensor([n + 5])} for n, t in enumerate(targets)]
    assert scored(predictions, converted).ground_truth.images.ids.tolist() == [5, 6, 7]
    assert GroundTruth.from_targets(converted).images.ids.tolist() == [5, 6, 7]


# ---------------------------------------------------------------- refusals

SIDE = plain()[0][-1]

RAW = {"logits": np.zeros((5, 3)), "pred_boxes": np.zeros((5, 4))}
BAD: list[tuple[Any, str]] = [
    (RAW, "must be final detections. Got a dict with logits in image 0 .* post_process_object_detection"),
    (SimpleNamespace(**RAW), "must be final detections. Got a SimpleNamespace with logits"),
    (
        {"detection_boxes": [[0, 0, 1, 1]], "detection_scores": [1], "detection_classes": [1]},
        r"must have boxes in pixels. Got keys detection_boxes, .* \[ymin, xmin, ymax, xmax\] as fractions",
    ),
    (np.zeros((3, 6)), r"Got a ndarray of shape \[3, 6\] in image 0 .*; x1, y1, x2, y2, score, class\?"),
    (np.zeros((84, 99)), r"Got a ndarray of shape \[84, 99\] .* name its parts: \{'boxes': ..."),
    ("a.json", "Got a str in image 0 of the batch; load_detections and load_ground_truth read files"),
    ((np.zeros((1, 4)), np.zeros(1), np.zeros(1)), "Got a tuple .* scores and labels need their names"),
    ([{"bbox": [0, 0, 1], "category_id": 1, "score": 1}], "Got a list that cannot be read"),
    ({"annotations": 3}, "annotations of a prediction must be a list of annotations. Got a int"),
    (
        3,
        "a prediction must be a mapping or a known object. Got a int in image 0 of the batch; boxscore reads the objects that torchvision",
    ),
    ([np.zeros((2, 4))], "a prediction must be a mapping or a known object. Got a list .* one per class"),
    ({"score": 1, "label": "cat", "box": {}}, "predictions must be a sequence .* put it in a list"),
    ([{"score": 1, "label": "cat", "box": {"x": 1}}], "box of a prediction must have xmin, ymin, xmax, ymax"),
    (make.ultralytics(SIDE).boxes, "a prediction must be .* pass the Results it belongs to"),
    (
        SimpleNamespace(boxes=None, names={}, orig_shape=SIZE),
        "boxes of a prediction must be given. Got Results",
    ),
    ({"instances": 3}, "instances of a prediction must be detectron2's. Got a int"),
    ({**make.hf_target(SIDE), "orig_size": None, "size": None}, "orig_size of a prediction must be given"),
    (
        {"class_labels": [1], "boxes": [[3, 3, 9, 9]], "size": [9, 9]},
        "must be fractions of the image. Got 9.0",
    ),
    (
        {"class_labels": [1], "boxes": [[0, 0, 1, 1]], "size": [9]},
        "size of a prediction must be a height and a",
    ),
    (
        {"classes": [1, 2], "boxes": [[0, 0, 1, 1]]},
        r"boxes of a prediction must be as long as the classes \(2\)",
    ),
    ({"classes": [0.5], "boxes": [[0, 0, 1, 1]]}, "classes must be whole numbers. Got 0.5"),
    ({"boxes": [[0, 0, 1, 1], [0]], "labels": [1], "scores": [1]}, "prediction boxes must be an array"),
    (
        SimpleNamespace(xyxy=[[0, 0, 1, 1]], class_id=None, confidence=[1]),
        "class_id of a prediction must be given",
    ),
]


@each(BAD)
def test_objects_that_lack_something(prediction: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Evaluator().update([prediction], [{"boxes": [[0, 0, 1, 1]], "labels": [1]}])


JUNK = [None, "x", 3, [], np.zeros((2, 2)), np.zeros(0), [[1, 2], [3]], np.array([1e30, np.nan]), {"x": 1}]


def places(item: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to everything in an object."""
    yield at
    if isinstance(item, SimpleNamespace):
        item = vars(item)
    if isinstance(item, dict):
        for key, value in item.items():
            yield from places(value, (*at, key))
    elif isinstance(item, (list, tuple)) and len(item) < 8:
        for number, value in enumerate(item):
            yield from places(value, (*at, number))


def replaced(item: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    if isinstance(item, SimpleNamespace):
        return SimpleNamespace(**replaced(vars(item), at, value))
    changed = list(item) if isinstance(item, (list, tuple)) else dict(item)
    changed[at[0]] = replaced(item[at[0]], at[1:], value)
    return tuple(changed) if isinstance(item, tuple) else changed


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("maker", dict.fromkeys([*PREDICTIONS, *TARGETS]))
def test_junk_inside_is_read_or_refused(maker: Maker) -> None:
    """No error but our own, whatever stands in place of any part of an object."""
    predictions, targets = plain(masks=True)
    read = Detections.from_predictions if maker in PREDICTIONS else GroundTruth.from_targets
    sides = predictions if maker in PREDICTIONS else targets
    item = maker(next(side for side in sides if len(side["labels"]) == 2))
    refused = 0
    for at in places(item):
        for junk in JUNK:
            try:
                read([replaced(item, at, junk)], image_ids=[1], categories=NAMES)  # type: ignore[operator]
            except InputError:
                refused += 1
    assert refused > 10


def test_one_object_is_no_batch() -> None:
    for item in (make.ultralytics(SIDE), make.supervision(SIDE), make.detectron2(SIDE)["instances"], SIDE, 3):
        with pytest.raises(
            InputError, match=r"predictions must be a sequence with one item per image. Got a"
        ):
            Detections.from_predictions(item)
    with pytest.raises(InputError, match="this list is for one image; put it in a list"):
        Evaluator().update(make.hf_pipeline(SIDE), [])
    with pytest.raises(InputError, match="this list is for one image; put it in a list"):
        GroundTruth.from_targets(make.coco_rows(SIDE))
    with pytest.raises(InputError, match="Got a str; load_detections and load_ground_truth read files"):
        Evaluator().update("results.json", [])
    with pytest.raises(InputError, match=r"Got a SimpleNamespace; is it the raw output of a model\?"):
        Evaluator().update(SimpleNamespace(**RAW), [])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="detection_classes in the batch; detection_boxes are"):
        Evaluator().update({"detection_boxes": np.zeros((1, 3, 4)), "detection_classes": []}, [])


def test_detectron2_targets_of_the_resized_image() -> None:
    item = {**make.detectron2_target(SIDE), "height": 480, "width": 640}
    message = r"instances of a target must be of an image of \[480, 640\] pixels. Got \[72, 80\] in image 0"
    with pytest.raises(InputError, match=message):
        Evaluator().update([SIDE], [item])


# ---------------------------------------------------------------- arrays


def test_arrays_by_dlpack() -> None:
    class Exported:
        """A tensor whose only way out is DLPack."""

        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    array = np.arange(6.0).reshape(3, 2)
    assert as_array(Exported(array), "boxes").tolist() == array.tolist()

    class Elsewhere(Exported):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("on a device")

    with pytest.raises(
        InputError, match=r"boxes must be on the host. Got a Elsewhere; copy it to the host first"
    ):
        as_array(Elsewhere(array), "boxes")
    assert as_array([Tensor(3), Tensor(4)], "labels").tolist() == [3, 4]


def test_tensors_that_cannot_be_copied() -> None:
    class Stuck(Tensor):
        device = "cuda:1"

        def cpu(self) -> Any:
            raise RuntimeError("CUDA error: device-side assert triggered\nmore")

    message = (
        r"prediction boxes must be readable from the host. Got a Stuck on cuda:1 that is not \(CUDA error: "
        r"device-side assert triggered\); x.detach\(\).cpu\(\).numpy\(\) has to work"
    )
    side = {"boxes": Stuck([[0, 0, 1, 1]]), "labels": [1], "scores": [1]}
    with pytest.raises(InputError, match=message):
        Evaluator().update([side], [{"boxes": [[0, 0, 1, 1]], "labels": [1]}])

    class Symbolic:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError("Cannot convert a symbolic tf.Tensor to a numpy array.")

    with pytest.raises(InputError, match=r"boxes must be an array\. Got Cannot convert a symbolic"):
        as_array(Symbolic(), "boxes")
