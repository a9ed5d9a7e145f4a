"""What a user's own code looks like: read by ``mypy --strict``, never run. See test_typing.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import boxscore
from boxscore import Detections, Evaluation, Evaluator, GroundTruth, InputError, Protocol


def from_files(folder: Path) -> dict[str, float]:
    truth: GroundTruth = boxscore.load_ground_truth(folder / "instances.json")
    found: Detections = boxscore.load_detections(folder / "results.json", truth)
    result: Evaluation = boxscore.evaluate(truth, found)
    ap: float = result.metrics["AP"]
    assert 0 <= ap <= 1
    return result.metrics


def from_voc(folder: str) -> float:
    truth = boxscore.load_ground_truth(folder, format="voc", image_set="test")
    found = boxscore.load_detections("results", truth, format="auto")
    return boxscore.evaluate(truth, found, protocol="voc2012").metrics["mAP"]


def from_arrays(boxes: npt.NDArray[np.float64], scores: list[float]) -> Evaluation:
    truth = GroundTruth.from_arrays([1, 1], ["cat", "dog"], boxes, crowd=[False, True], images=[1, 2])
    found = Detections.from_arrays(
        np.ones(len(boxes), dtype=np.int64), ["cat"] * len(boxes), boxes, scores, box_format="xywh"
    )
    return boxscore.evaluate(truth, found, images=[1], classes=["cat"], workers=2)


def from_pandas(frame: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    truth = GroundTruth.from_pandas(frame, categories={1: "cat"})
    found = Detections.from_pandas(results)
    assert len(truth) > 0
    return found.to_pandas()


def protocols() -> list[Protocol]:
    own: dict[str, Any] = {"extends": "coco", "matching": {"max_detections": [300]}}
    loaded = [boxscore.load_protocol(name) for name in ("coco", Path("mine.toml"), own)]
    signatures: list[str] = [protocol.signature() for protocol in loaded]
    assert all(text.startswith("boxscore|") for text in signatures)
    return loaded


def tables(result: Evaluation) -> pd.DataFrame:
    summary: pd.DataFrame = result.summary
    worst = result.per_class.sort_values("AP").head(5)
    curve = result.curves(area="small")
    hits = result.matches
    precision: npt.NDArray[np.float64] = result.arrays()["precision"]
    counts: Mapping[str, int] = result.counts
    print(result.signature, counts["images"], precision.shape, len(curve), len(hits), len(worst))
    return summary


def training_loop(batches: Iterable[tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> float:
    evaluator = Evaluator(protocol="coco", classes={1: "cat", 2: "dog"})
    for predictions, targets in batches:
        evaluator.update(predictions, targets)
    other = Evaluator(protocol="coco", classes={1: "cat", 2: "dog"})
    evaluator.merge(other)
    result = evaluator.compute()
    evaluator.reset()
    return result.metrics["AP50"]


def overlaps(boxes: list[list[float]]) -> npt.NDArray[np.float64]:
    iou: npt.NDArray[np.float64] = boxscore.box_iou(boxes, boxes)
    return iou + boxscore.generalized_box_iou(boxes, boxes) + boxscore.box_area(boxes)


def suppression(boxes: npt.NDArray[np.float32], scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    keep: npt.NDArray[np.int64] = boxscore.nms(boxes, scores, iou_threshold=0.5)
    again = boxscore.batched_nms(boxes, scores, np.zeros(len(boxes)), iou_threshold=0.5)
    assert len(again) == len(keep)
    return boxes[keep]


def why(truth: GroundTruth, found: Detections) -> dict[str, pd.DataFrame]:
    result = boxscore.evaluate(truth, found, protocol="coco")
    return {
        "errors": boxscore.diagnostics.error_types(result).to_frame(),
        "points": boxscore.diagnostics.operating_points(result, at_precision=0.9).printed_frame(),
        "slices": boxscore.diagnostics.slice_scores(result, by="size").to_frame(),
        "ties": boxscore.diagnostics.tie_bounds(result, metrics=["AP"]).total_frame(),
        "intervals": boxscore.diagnostics.bootstrap_intervals(result).to_frame(),
    }


def report(result: Evaluation, folder: Path) -> None:
    boxscore.reports.write_report(result, folder)
    boxscore.plots.pr_curve(result).savefig(folder / "curve.png")


def careful(path: str) -> GroundTruth | None:
    try:
        return boxscore.load_ground_truth(path)
    except InputError as error:
        print(error.name, error.rule, error.got, error.place, error.cause)
        return None


def dropped_in() -> None:
    boxscore.init_as_pycocotools()


def by_paths() -> float:
    result = boxscore.evaluate("instances.json", Path("results.json"), protocol="coco")
    text: str = result.to_json()
    Path("result.json").write_text(text)
    result.report("report")
    ap: float = result["AP"]
    return ap


# lands with the other rooms
#
# def parts(truth: GroundTruth, found: Detections) -> tuple[GroundTruth, Detections]:
#     crowds: GroundTruth = truth[truth.crowd]
#     return crowds, found[:100]
#
#
# def as_in_torchvision(
#     boxes: npt.NDArray[np.float32], scores: npt.NDArray[np.float32], idxs: npt.NDArray[np.int64]
# ) -> npt.NDArray[np.int64]:
#     keep: npt.NDArray[np.int64] = boxscore.nms(boxes, scores, 0.5)
#     return np.union1d(keep, boxscore.batched_nms(boxes, scores, idxs, 0.5))
