"""The objects of the libraries themselves score as the arrays in them do; skipped where they are missing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluator, GroundTruth
from support import model_objects as make
from support.model_objects import NAMES, SIZE, plain


def library(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def bits(evaluation: boxscore.Evaluation) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in evaluation.arrays().items()} | {
        "metrics": np.array(list(evaluation.metrics.values())).tobytes()
    }


def assert_scores_alike(outputs: list[Any], truth: list[Any], *, protocol: str = "coco") -> None:
    """Both ways in give the bits of the plain arrays, with classes by name."""
    masks = protocol == "coco-segm"
    predictions, targets = plain(masks=masks)
    expected = Evaluator(protocol=protocol, classes=NAMES)
    expected.update(predictions, targets)
    evaluator = Evaluator(protocol=protocol, classes=NAMES)
    evaluator.update(outputs, truth)
    evaluation = expected.compute()
    assert evaluation.metrics["AP"] > 0.1
    assert bits(evaluator.compute()) == bits(evaluation)
    ids = [f"{number}.jpg" for number in range(len(truth))]
    tables = (
        GroundTruth.from_targets(truth, image_ids=ids, categories=NAMES),
        Detections.from_predictions(outputs, image_ids=ids),
    )
    assert bits(boxscore.evaluate(*tables, protocol=protocol)) == bits(evaluation)


@pytest.mark.parametrize("protocol", ["coco", "coco-segm"])
def test_supervision(protocol: str) -> None:
    supervision = library("supervision")

    def detections(side: dict[str, Any]) -> Any:
        return supervision.Detections(
            xyxy=side["boxes"],
            confidence=side.get("scores"),
            class_id=side["labels"],
            mask=side.get("masks"),
            data={"class_name": np.array(make.names_of(side), dtype=str)},
        )

    predictions, targets = plain(masks=protocol == "coco-segm")
    outputs, truth = [detections(side) for side in predictions], [detections(side) for side in targets]
    outputs[0] = truth[0] = supervision.Detections.empty()
    assert_scores_alike(outputs, truth, protocol=protocol)


@pytest.mark.parametrize("protocol", ["coco", "coco-segm"])
def test_ultralytics(protocol: str) -> None:
    torch = library("torch")
    results = library("ultralytics.engine.results")
    masks = protocol == "coco-segm"
    predictions, targets = plain(masks=masks)

    def result(side: dict[str, Any]) -> Any:
        columns = [side["boxes"], side["scores"][:, None], side["labels"][:, None].astype(np.float32)]
        return results.Results(
            np.zeros((*SIZE, 3), dtype=np.uint8),
            path="/data/images/a.jpg",
            names=NAMES,
            boxes=torch.as_tensor(np.hstack(columns)),
            masks=torch.as_tensor(side["masks"].astype(np.float32)) if masks else None,
        )

    assert_scores_alike([result(side) for side in predictions], targets, protocol=protocol)


def test_ultralytics_rotated_boxes() -> None:
    torch = library("torch")
    results = library("ultralytics.engine.results")
    rows = torch.tensor([[40.0, 30, 20, 10, 0.5, 0.75, 1], [20, 20, 8, 12, 0.25, 0.5, 0]])
    image = np.zeros((*SIZE, 3), dtype=np.uint8)
    outputs = results.Results(image, path="a.jpg", names=NAMES, obb=rows)
    table = Detections.from_predictions([outputs], categories=NAMES)
    assert table.rotated is not None
    assert table.rotated.tolist() == rows[:, :5].double().tolist()
    assert table.category.tolist() == [1, 0]
    corners = outputs.obb.xyxyxyxy.double().numpy()  # ultralytics' own corners lie on our upright boxes
    np.testing.assert_allclose(table.boxes, np.hstack([corners.min(axis=1), corners.max(axis=1)]), atol=1e-4)


def test_torch() -> None:
    torch = library("torch")
    predictions, targets = plain()
    outputs = [{key: torch.as_tensor(column) for key, column in side.items()} for side in predictions]
    for side in outputs:
        side["boxes"].requires_grad_()
        side["scores"] = side["scores"].to(torch.bfloat16)  # exact in it
    truth = [
        {key: getattr(column, "array", column) for key, column in make.hf_target(side).items()}
        for side in targets
    ]
    assert_scores_alike(outputs, [{k: torch.as_tensor(v) for k, v in side.items()} for side in truth])


def test_torch_of_other_layouts() -> None:
    """Sparse, quantized and 8-bit tensors are read; one without values is refused."""
    torch = library("torch")
    boxes = torch.tensor([[0.0, 0, 16, 16], [0, 8, 8, 24]])
    side = {"labels": torch.tensor([1, 2]), "scores": torch.tensor([0.5, 0.25])}
    expected = Detections.from_predictions([{**side, "boxes": boxes}], image_ids=[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch is about to drop quantized tensors
        forms = (boxes.to_sparse(), torch.quantize_per_tensor(boxes, 1.0, 0, torch.quint8))
    for form in forms:
        table = Detections.from_predictions([{**side, "boxes": form}], image_ids=[1])
        assert table.boxes.tolist() == expected.boxes.tolist()
    if hasattr(torch, "float8_e4m3fn"):
        scores = side["scores"].to(torch.float8_e4m3fn)
        table = Detections.from_predictions([{**side, "scores": scores, "boxes": boxes}], image_ids=[1])
        assert table.scores.tolist() == expected.scores.tolist()
    nothing = torch.empty(2, 4, device="meta")
    with pytest.raises(boxscore.InputError, match=r"readable from the host\. Got a Tensor on meta"):
        Detections.from_predictions([{**side, "boxes": nothing}], image_ids=[1])


def test_jax() -> None:
    numpy = library("jax.numpy")
    predictions, targets = plain()
    outputs = [{key: numpy.asarray(column) for key, column in side.items()} for side in predictions]
    for side in outputs:
        side["scores"] = side["scores"].astype(numpy.bfloat16)
    truth = [{key: numpy.asarray(column) for key, column in side.items()} for side in targets]
    assert_scores_alike(outputs, truth)


def test_tensorflow() -> None:
    tensorflow = library("tensorflow")
    predictions, targets = plain()
    outputs, truth = make.keras_batch(predictions), make.keras_batch(targets)
    outputs = [
        {key: tensorflow.constant(column) for key, column in side.items()} for side in (outputs, truth)
    ]
    evaluator, expected = Evaluator(), Evaluator()
    evaluator.update(*outputs)
    expected.update(predictions, targets)
    assert bits(evaluator.compute()) == bits(expected.compute())


def test_transformers() -> None:
    """What a processor makes of a network's output scores; the output itself is refused."""
    torch = library("torch")
    library("transformers")
    modeling = library("transformers.models.detr.modeling_detr")
    try:
        processing = library("transformers.models.detr.image_processing_pil_detr").DetrImageProcessorPil
    except pytest.skip.Exception:
        processing = library("transformers.models.detr.image_processing_detr").DetrImageProcessor
    predictions, targets = plain()
    count = max(len(side["labels"]) for side in predictions)
    logits = torch.full((len(predictions), count, 4), -30.0)
    logits[..., 3] = 0  # the last class is no object
    boxes = torch.zeros(len(predictions), count, 4)
    height, width = SIZE
    for image, side in enumerate(predictions):
        for row, (label, score, box) in enumerate(
            zip(side["labels"].tolist(), side["scores"].tolist(), side["boxes"].tolist(), strict=True)
        ):
            logits[image, row, label] = torch.log(torch.tensor(score))
            logits[image, row, 3] = torch.log(torch.tensor(max(1 - score, 1e-9)))
            middle = [(box[0] + box[2]) / 2 / width, (box[1] + box[3]) / 2 / height]
            sides = [(box[2] - box[0]) / width, (box[3] - box[1]) / height]
            boxes[image, row] = torch.tensor([*middle, *sides])
    output = modeling.DetrObjectDetectionOutput(logits=logits, pred_boxes=boxes)
    for given in (output, [output] * len(targets)):
        with pytest.raises(boxscore.InputError, match="post_process_object_detection"):
            Evaluator().update(given, targets)
    made = processing().post_process_object_detection(
        output, threshold=0.2, target_sizes=[SIZE] * len(targets)
    )
    plain_arrays = [
        {key: np.asarray(value.tolist()).reshape(-1, *value.shape[1:]) for key, value in side.items()}
        for side in made
    ]
    assert [len(side["labels"]) for side in made] == [len(side["labels"]) for side in predictions]
    read, expected = Evaluator(), Evaluator()
    read.update(made, targets)
    expected.update(plain_arrays, targets)
    assert bits(read.compute()) == bits(expected.compute())
    assert read.compute()["AP50"] > 0.1
