"""OmniLabel's groups of descriptions, against its loops written out."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import ProtocolError, evaluate, load_detections, load_ground_truth
from boxscore.diagnostics import bootstrap_intervals

EXACT = 1e-12
THRESHOLDS = np.linspace(0.5, 0.95, 10)
TEXTS = ["cat", "a red cat", "the dog on the left", "a", "a very large dog that sleeps on a sofa now", "bird"]


def drawn(seed: int, images: int = 6) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A file of ground truth and one of predictions; each image asks for some of the descriptions."""
    rng = np.random.default_rng(seed)
    kinds = ["object_category", *["object_description"] * 4, "something else"]
    asked: list[list[int]] = [[] for _ in TEXTS]
    annotations, predictions = [], []
    for image in range(1, images + 1):
        some = [number for number in range(len(TEXTS)) if rng.random() < 0.7]
        for number in some:
            asked[number].append(image)
        for _ in range(int(rng.integers(0, 4))):
            x, y = rng.integers(0, 50, 2).tolist()
            its = [number + 10 for number in some if rng.random() < 0.4]
            box = [x, y, 20, 20]
            annotations.append({"image_id": image, "bbox": box, "description_ids": its})
            found = [number + 10 for number in range(len(TEXTS)) if rng.random() < 0.5]
            moved = [x + int(rng.integers(0, 4)), y, 20, 20]
            scores = rng.choice([0.2, 0.5, 0.9], len(found)).tolist()
            predictions.append({"image_id": image, "bbox": moved, "description_ids": found, "scores": scores})
    descriptions = [
        {"id": number + 10, "text": text, "anno_info": {"type": kind}, "image_ids": asked[number]}
        for number, (text, kind) in enumerate(zip(TEXTS, kinds, strict=True))
    ]
    truth = {
        "images": [{"id": image, "width": 99, "height": 99} for image in range(1, images + 1)],
        "descriptions": descriptions,
        "annotations": annotations,
    }
    return truth, predictions


def iou(a: list[float], b: list[float]) -> float:
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    shared = w * h if w > 0 and h > 0 else 0.0
    return shared / (a[2] * a[3] + b[2] * b[3] - shared)


def curves(truth: dict[str, Any], predictions: list[Any], takes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Precision at 101 recalls, [T, R], and the last recall, [T], of one group; NaN where it is empty."""
    rows: list[tuple[float, list[bool]]] = []
    objects = 0
    for image in truth["images"]:
        for description in truth["descriptions"]:
            identifier = description["id"]
            if image["id"] not in description["image_ids"]:
                continue
            boxes = [
                each["bbox"]
                for each in truth["annotations"]
                if each["image_id"] == image["id"] and identifier in each["description_ids"]
            ]
            if not takes(description, bool(boxes)):
                continue
            objects += len(boxes)
            found = [
                (score, each["bbox"])
                for each in predictions
                if each["image_id"] == image["id"]
                for one, score in zip(each["description_ids"], each["scores"], strict=True)
                if one == identifier
            ]
            found.sort(key=lambda row: -row[0])
            hits: list[list[bool]] = [[] for _ in found]
            for threshold in THRESHOLDS:
                taken: set[int] = set()
                for number, (_, box) in enumerate(found):
                    best, chosen = min(threshold, 1 - 1e-10), -1
                    for at, other in enumerate(boxes):
                        if at not in taken and iou(box, other) >= best:
                            best, chosen = iou(box, other), at
                    taken |= {chosen} - {-1}
                    hits[number].append(chosen >= 0)
            rows += [(score, hit) for (score, _), hit in zip(found, hits, strict=True)]
    if not objects:
        return np.full((10, 101), np.nan), np.full(10, np.nan)
    rows.sort(key=lambda row: -row[0])
    precision, recall = np.zeros((10, 101)), np.zeros(10)
    for t in range(10):
        true = np.cumsum([hit[t] for _, hit in rows]) if rows else np.zeros(0)
        values = true / (np.arange(1, len(true) + 1) + np.spacing(1))
        envelope = np.maximum.accumulate(values[::-1])[::-1]
        at = np.searchsorted(true / objects, np.linspace(0, 1, 101), side="left")
        precision[t] = [envelope[i] if i < len(envelope) else 0.0 for i in at]
        recall[t] = true[-1] / objects if len(true) else 0.0
    return precision, recall


def expected(truth: dict[str, Any], predictions: list[Any]) -> dict[str, float]:
    def words(description: dict[str, Any]) -> int:
        return len(description["text"].split())

    def described(description: dict[str, Any]) -> bool:
        return bool(description["anno_info"]["type"] == "object_description")

    groups = {
        "categ": lambda d, there: not described(d),
        "descr": lambda d, there: described(d),
        "descr_pos": lambda d, there: described(d) and there,
        "descr_S": lambda d, there: described(d) and words(d) <= 3,
        "descr_M": lambda d, there: described(d) and 4 <= words(d) <= 8,
        "descr_L": lambda d, there: described(d) and words(d) >= 9,
    }
    made = {name: curves(truth, predictions, takes) for name, takes in groups.items()}
    out = {f"AP_{name}": float(precision.mean()) for name, (precision, _) in made.items()}
    for name in ("descr", "categ"):
        precision, recall = made[name]
        out |= {f"AP50_{name}": float(precision[0].mean()), f"AP75_{name}": float(precision[5].mean())}
        out[f"AR_{name}"] = float(recall.mean())
    one, two = out["AP_categ"], out["AP_descr"]
    return {"AP": 2 * one * two / (one + two + 1e-5), **out}


def tables(folder: Path, seed: int) -> tuple[Any, Any, dict[str, float]]:
    truth, predictions = drawn(seed)
    for name, content in (("gt", truth), ("dt", predictions)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    table = load_ground_truth(folder / "gt.json")
    return table, load_detections(folder / "dt.json", table), expected(truth, predictions)


@pytest.mark.parametrize("seed", range(16))
def test_every_group_of_descriptions(seed: int, tmp_path: Path) -> None:
    truth, found, wanted = tables(tmp_path, seed)
    result = evaluate(truth, found, protocol="omnilabel", digest=False)
    assert result.metrics.keys() == wanted.keys()
    for key, value in wanted.items():
        assert result[key] == pytest.approx(value, abs=EXACT, nan_ok=True), key


def test_a_prediction_for_what_its_image_does_not_ask_counts_nowhere(tmp_path: Path) -> None:
    truth, found, _ = tables(tmp_path, 1)
    asked = truth.image_labels
    says = asked.says(found.image, found.category, "positive", "negative")
    assert not says.all()
    some = evaluate(truth, found.take(np.flatnonzero(says)), protocol="omnilabel", digest=False)
    assert some.metrics == evaluate(truth, found, protocol="omnilabel", digest=False).metrics


def test_intervals_are_of_every_group(tmp_path: Path) -> None:
    truth, found, wanted = tables(tmp_path, 2)
    result = evaluate(truth, found, protocol="omnilabel", digest=False)
    made = bootstrap_intervals(result)
    for key, value in zip(made.metrics, made.total.value.tolist(), strict=True):
        assert value == pytest.approx(wanted[key], abs=EXACT, nan_ok=True)
    # A draw of every image once is the whole.
    from boxscore.extensions.weights.resampling import Groups

    ones = Groups(np.zeros(len(truth.images), dtype=np.uint8), 0, 1)
    weighted = result._weighted_metrics(result.protocol.rows, ones).values[0, :, -1]
    assert weighted.tolist() == pytest.approx(list(result.metrics.values()), abs=EXACT, nan_ok=True)


def test_rows_of_two_curves_are_not_of_parts(tmp_path: Path) -> None:
    truth, found, _ = tables(tmp_path, 3)
    result = evaluate(truth, found, protocol="omnilabel", digest=False)
    with pytest.raises(
        ProtocolError, match=r"^summary must not have a metric with harmonic_of or images, in parts"
    ):
        result.save_part(tmp_path / "part.npz")


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ([{"key": "x", "harmonic_of": ["AP", "AQ"]}, {"key": "AP"}], "name two metrics of the summary"),
        ([{"key": "x", "harmonic_of": ["AP", "AP"]}, {"key": "AP"}], "name two metrics of the summary"),
        ([{"key": "x", "images": "with_objects"}], "ap.pool must be 'classes'"),
        ([{"key": "x", "images": "some"}], "images must be one of 'all', 'with_objects'"),
    ],
)
def test_rows_that_cannot_be(summary: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        boxscore.load_protocol({"extends": "coco", "summary": summary})


def test_a_harmonic_mean_is_of_no_class_and_needs_both(tmp_path: Path) -> None:
    truth, found, _ = tables(tmp_path, 4)
    result = evaluate(truth, found, protocol="omnilabel", digest=False)
    assert "AP" not in result.protocol.class_keys
    protocol = result.protocol
    one = dataclasses.replace(
        protocol, matching=dataclasses.replace(protocol.matching, iou_thresholds=(0.6, 0.7))
    )
    assert [row.key for row in one.rows][:2] == ["AP", "AP_categ"]
    scoreless = boxscore.protocols.without_scores(protocol)
    assert "AP_lowest" not in [row.key for row in scoreless.rows]
    assert math.isfinite(
        evaluate(truth, found.without_scores(), protocol="omnilabel", digest=False)["AR_descr"]
    )


def test_each_of_several_values_selects() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1, 1], ["a", "b", "c"], [[0, 0, 9, 9]] * 3)
    columns = {"kind": np.array(["x", "y", "z"], dtype=object)}
    truth = truth.replaced(categories=dataclasses.replace(truth.categories, columns=columns))
    found = boxscore.Detections.from_arrays([1, 1], ["a", "c"], [[0, 0, 9, 9]] * 2, [0.5] * 2)
    rows = [
        {"key": key, "metric": "AR", "classes": f"kind={kind}"}
        for key, kind in (("one", "x|y"), ("two", "z"))
    ]
    result = evaluate(truth, found, protocol={"extends": "coco", "summary": rows}, digest=False)
    assert (result["one"], result["two"]) == (0.5, 1.0)
