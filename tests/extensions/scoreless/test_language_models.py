"""What scripts of vision-language models count, against their loops written out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, InputError, ProtocolError, evaluate
from boxscore.diagnostics import compare_protocols, explain, tie_bounds
from boxscore.distributed import merge
from support.each import each

CLASSES = ("ant", "bee", "cow")
EXACT = 1e-12
Box = tuple[float, ...]


class Image(NamedTuple):
    objects: dict[str, list[Box]]
    boxes: dict[str, list[Box]]


def drawn(seed: int, images: int = 12) -> list[Image]:
    """Images of boxes on a coarse grid, so that many overlaps are equal; some are empty."""
    rng = np.random.default_rng(seed)

    def side(most: int) -> dict[str, list[Box]]:
        boxes: dict[str, list[Box]] = {}
        for _ in range(int(rng.integers(0, most + 1))):
            x, y = rng.integers(0, 4, 2).tolist()
            w, h = rng.integers(4, 9, 2).tolist()
            boxes.setdefault(CLASSES[int(rng.integers(0, 3))], []).append((x, y, x + w, y + h))
        return dict(sorted(boxes.items()))

    return [Image(side(4), side(6)) for _ in range(images)]


def tables(images: list[Image]) -> tuple[GroundTruth, Detections]:
    def columns(side: str) -> tuple[list[int], list[str], list[Box]]:
        rows = [
            (number, name, box)
            for number, image in enumerate(images, 1)
            for name, boxes in getattr(image, side).items()
            for box in boxes
        ]
        return [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]

    numbers, names, boxes = columns("objects")
    truth = GroundTruth.from_arrays(
        numbers, names, boxes, images=range(1, len(images) + 1), categories=list(CLASSES)
    )
    return truth, Detections.from_arrays(*columns("boxes"))


def iou(a: Box, b: Box) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return w * h / (areas[0] + areas[1] - w * h)


def rex_other(images: list[Image], threshold: float) -> tuple[float, float]:
    """Mean recall and precision of images, as other_metric.py's calculate_detection_metrics has them."""
    rates = []
    for image in images:
        count = sum(map(len, image.boxes.values()))
        if not image.objects:
            rates.append((1.0, 1.0) if not count else (0.0, 0.0))
            continue
        objects = [box for name in image.objects for box in image.objects[name]]
        boxes = [box for name in image.objects for box in image.boxes.get(name, [])]
        used: set[int] = set()
        for one in objects:
            best, chosen = 0.0, -1
            for number, box in enumerate(boxes):
                value = iou(one, box)
                if number not in used and value > best and value >= threshold:
                    best, chosen = value, number
            used |= {chosen} - {-1}
        rates.append((len(used) / len(objects), len(used) / count if count else 0.0))
    return tuple(map(statistics.fmean, zip(*rates, strict=True)))  # type: ignore[return-value]


@each(range(20))
def test_objects_choose_as_in_rex_omni(seed: int) -> None:
    images = drawn(seed)
    result = evaluate(*tables(images), protocol="rex-omni")
    for percent in (50, 75, 95):
        recall, precision = rex_other(images, percent / 100)
        got = result[f"R{percent}"], result[f"P{percent}"]
        assert got == (pytest.approx(recall, abs=EXACT), pytest.approx(precision, abs=EXACT))
        total = recall + precision
        f1 = 2 * recall * precision / total if total else 0.0
        assert result[f"F1_{percent}"] == pytest.approx(f1, abs=EXACT)


def fastevaluate(images: list[Image], thresholds: list[float]) -> dict[str, list[list[float]]]:
    """Per class and threshold, what cocoeval.cpp reads off the curves; its variable is not reset."""
    points = np.linspace(0, 1, 101)
    out: dict[str, list[list[float]]] = {"precision": [], "recall": []}
    last = float("nan")
    for name in CLASSES:
        rows: dict[str, list[float]] = {"precision": [], "recall": []}
        positive = sum(len(image.objects.get(name, [])) for image in images)
        for threshold in thresholds:
            hits = []
            for image in images:
                if image.objects and name not in image.objects:
                    continue  # --positive_only
                taken: set[int] = set()
                objects = image.objects.get(name, [])
                for box in image.boxes.get(name, []):
                    best, chosen = threshold, -1
                    for number, one in enumerate(objects):
                        if number not in taken and iou(one, box) >= best:
                            best, chosen = iou(one, box), number
                    taken |= {chosen} - {-1}
                    hits.append(chosen >= 0)
            if not positive:
                rows["recall"].append(-1.0)
                rows["precision"].append(last)
                continue
            true = np.cumsum(hits) if hits else np.zeros(0)
            precision = true / (np.arange(1, len(hits) + 1) + np.spacing(1))
            recall = true / positive
            envelope = np.maximum.accumulate(precision[::-1])[::-1]
            for point in points:
                beyond = np.flatnonzero(recall > point)
                if len(beyond) and envelope[beyond[0]] > 0:
                    last = float(envelope[beyond[0]])
            rows["recall"].append(float(recall[-1]) if hits else 0.0)
            rows["precision"].append(last)
        for key, values in rows.items():
            out[key].append(values)
    return out


def safe_mean(values: list[float]) -> float:
    positive = [value for value in values if value > 0]
    return statistics.fmean(positive) if positive else 0.0


@each(range(20))
def test_the_ends_of_curves_are_those_of_fastevaluate(seed: int) -> None:
    images = drawn(seed)
    result = evaluate(*tables(images), protocol="rex-omni-coco")
    every = np.linspace(0.5, 0.95, 10).tolist()
    for suffix, thresholds in (("50", every[:1]), ("95", every[-1:]), ("", every)):
        values = fastevaluate(images, thresholds)
        means = {key: safe_mean([sum(row) / len(row) for row in rows]) for key, rows in values.items()}
        assert result[f"P{suffix}"] == pytest.approx(means["precision"], abs=EXACT)
        assert result[f"R{suffix}"] == pytest.approx(means["recall"], abs=EXACT)


def test_what_follows_the_last_needed_box_is_free() -> None:
    """Ten equal boxes on one object: every tool that counts sees a precision of 0.1."""
    truth = GroundTruth.from_arrays([1], ["ant"], [[0, 0, 10, 10]])
    found = Detections.from_arrays([1] * 10, ["ant"] * 10, [[0, 0, 10, 10]] * 10)
    assert evaluate(truth, found, protocol="rex-omni-coco")["F1_50"] == pytest.approx(1, abs=1e-15)
    assert evaluate(truth, found, protocol="scoreless")["F1_50"] == 2 / 11


def test_a_class_that_is_not_found_has_the_precision_of_the_class_before() -> None:
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10]]
    truth = GroundTruth.from_arrays([1, 1], ["ant", "bee"], boxes)
    found = Detections.from_arrays([1, 1], ["ant", "bee"], [boxes[0], [50, 50, 60, 60]])
    result = evaluate(truth, found, protocol="rex-omni-coco")
    assert (result["P50"], result["R50"]) == (pytest.approx(1, abs=1e-15), 1.0)
    assert result.class_values["P50"].tolist() == [pytest.approx(1, abs=1e-15), 0.0]


@pytest.mark.parametrize("seed", range(10))
def test_the_first_box_of_an_expression_or_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 6, (20, 2))
    objects = np.hstack([corners, corners + rng.integers(3, 9, (20, 2))]).astype(float)
    image = np.sort(rng.integers(1, 21, 35))
    boxes = np.hstack([objects[image - 1, :2] + rng.integers(0, 3, (35, 2)), objects[image - 1, 2:]])
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
    truth = GroundTruth.from_arrays(range(1, 21), ["object"] * 20, objects)
    found = Detections.from_arrays(image, ["object"] * 35, boxes, rng.random(35))
    first, any_box = (evaluate(truth, found, protocol=name) for name in ("referring", "referring-any"))
    overlaps = [
        [iou(tuple(objects[n]), tuple(box)) for box in boxes[image == n + 1].tolist()] or [0.0]
        for n in range(20)
    ]
    for percent in (10, 30, 50, 70, 75, 90, 95):
        reached = np.array([[values[0], max(values)] for values in overlaps]) >= percent / 100
        got = [result[f"acc{percent}"] for result in (first, any_box)]
        assert got == reached.mean(axis=0).tolist()
    assert first["IoU"] == pytest.approx(np.mean([values[0] for values in overlaps]), abs=EXACT)
    assert any_box["IoU"] == pytest.approx(np.mean([max(values) for values in overlaps]), abs=EXACT)


@pytest.mark.parametrize("seed", range(10))
def test_the_first_box_of_a_file_counts_whatever_its_class(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    image = rng.integers(1, 13, 40)
    boxes = rng.integers(0, 3, (40, 4)) + np.array([0, 0, 8, 8])
    classes = rng.choice(CLASSES, 40)
    truth = GroundTruth.from_arrays(
        range(1, 13), rng.choice(CLASSES, 12), [[0, 0, 8, 8]] * 12, categories=list(CLASSES)
    )
    found = Detections.from_arrays(image, classes, boxes, rng.random(40), categories=list(CLASSES))
    first = [next(iter(boxes[image == n].tolist()), (0.0,) * 4) for n in range(1, 13)]
    reached = [iou((0, 0, 8, 8), tuple(box)) >= 0.7 for box in first]
    result = evaluate(truth, found, protocol="referring")
    assert result["acc70"] == np.mean(reached)
    assert evaluate(truth, found, protocol="referring", workers=2).metrics == result.metrics
    kept = found[np.argsort(image, kind="stable")]
    merged = merge([*halves(lambda **some: evaluate(truth, kept, protocol="referring", **some), tmp_path)])
    assert merged["acc70"] == np.mean(reached)


@pytest.mark.parametrize("seed", range(10))
def test_pooled_objects_choose_in_file_order(seed: int) -> None:
    shuffled = np.random.default_rng(seed)
    images = [
        Image(*({str(name): side[name] for name in shuffled.permutation([*side])} for side in image))
        for image in drawn(seed)
    ]
    # classes of the boxes follow those of the objects, as in the tool's list
    images = [
        Image(
            objects,
            {name: boxes[name] for name in [*objects, *boxes] if name in boxes},
        )
        for objects, boxes in images
    ]
    result = evaluate(*tables(images), protocol="rex-omni")
    for percent in (50, 75, 95):
        expected = rex_other(images, percent / 100)
        assert (result[f"R{percent}"], result[f"P{percent}"]) == pytest.approx(expected, abs=EXACT)


@pytest.mark.parametrize("classes", [["ant", "bee"], ["bee", "ant"]])
def test_pooled_boxes_take_their_objects_in_file_order(classes: list[str]) -> None:
    truth = GroundTruth.from_arrays([1], ["bee"], [[0, 0, 10, 10]], categories=list(CLASSES))
    found = Detections.from_arrays([1, 1], classes, [[0, 0, 10, 10]] * 2, [0.2, 0.9])
    matching = {"per_class": False, "order": "file", "max_detections": [100]}
    result = evaluate(truth, found, protocol={"extends": "coco", "matching": matching})
    assert result["AP"] == pytest.approx(0.5, abs=EXACT)  # the second of the file is false and ranked first


NAMES = ("odinw13-lmms", "referring", "referring-any", "rex-omni", "rex-omni-coco")


def halves(result: Callable[..., Evaluation], folder: Path) -> Iterator[Path]:
    for number in range(2):  # the order of the file is that of the parts
        result(images=range(1 + 6 * number, 7 + 6 * number)).save_part(folder / f"{number}.npz")
        yield folder / f"{number}.npz"


@pytest.mark.parametrize("name", NAMES)
def test_parts_have_the_bits_of_the_whole(name: str, tmp_path: Path) -> None:
    truth, found = tables(drawn(3))
    found = found[np.argsort(found.image, kind="stable")]
    merged = merge([*halves(lambda **some: evaluate(truth, found, protocol=name, **some), tmp_path)])
    for key, value in evaluate(truth, found, protocol=name).metrics.items():
        assert np.array(value).tobytes() == np.array(merged[key]).tobytes(), key


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_the_file_decide_nothing(name: str) -> None:
    truth, found = tables(drawn(4))
    scored = found.replaced(scores=np.random.default_rng(0).random(len(found)))
    result = evaluate(truth, scored, protocol=name)
    assert result.metrics == evaluate(truth, found, protocol=name).metrics
    said = (
        "ties are broken by the order"
        if result.protocol.matching.scores == "equal"
        else "counted, not ranked"
    )
    assert said in str(result)


def test_equal_scores_have_bounds_over_their_orders() -> None:
    truth, found = tables(drawn(5))
    result = evaluate(truth, found, protocol={"extends": "coco", "matching": {"scores": "equal"}})
    bounds = tie_bounds(result, metrics=["AP"]).total
    value = result["AP"]
    assert bounds.lowest[0] < value < bounds.highest[0]
    ones = found.replaced(scores=np.ones(len(found)))
    assert value == evaluate(truth, ones, protocol="coco")["AP"]


@pytest.mark.parametrize("last", NAMES)
@pytest.mark.parametrize("first", ["scoreless", "rex-omni"])
def test_the_way_between_two_has_a_price_for_each_rule(first: str, last: str) -> None:
    truth, found = tables(drawn(6))
    way = explain(truth, found, first, last)
    ends = [evaluate(truth, found, protocol=name).metrics for name in (first, last)]
    assert [way.first_value, way.last_value] == [
        pytest.approx(next(iter(end.values())), abs=1e-15) for end in ends
    ]
    assert way.first_value + sum(delta for _, delta, _ in way.steps) == way.last_value
    changes = [text.partition(":")[0] for text, _, _ in way.steps]
    assert ("metric" in changes) == (first != last)
    assert len(set(changes)) == len(changes)


def test_from_ranked_to_counted_and_back() -> None:
    truth, found = tables(drawn(7))
    scored = found.replaced(scores=np.random.default_rng(1).random(len(found)))
    there, back = explain(truth, scored, "coco", "scoreless"), explain(truth, scored, "scoreless", "coco")
    ap = pytest.approx(evaluate(truth, scored)["AP"], abs=1e-15)
    assert (there.first_value, back.last_value) == (ap, ap)
    assert there.last_value == back.first_value
    assert "scores of detections: as given -> not read" in [text for text, _, _ in there.steps]


def test_readings_of_detections_without_scores_are_of_protocols_that_read_none() -> None:
    truth, found = tables(drawn(8))
    rows = compare_protocols(truth, found).table
    assert rows["protocol"].tolist() == ["scoreless", *NAMES]
    for _, row in rows.iterrows():
        assert row["value"] == evaluate(truth, found, protocol=row["protocol"])[row["metric"]]
    scored = found.replaced(scores=np.linspace(0, 1, len(found)))
    assert not {"scoreless", *NAMES} & {*compare_protocols(truth, scored).table["protocol"]}


def test_metrics_of_images_pool_classes() -> None:
    with pytest.raises(ProtocolError, match=r"^matching.per_class must be false where a metric is of whole"):
        boxscore.load_protocol({"extends": "rex-omni", "matching": {"per_class": True}})


@pytest.mark.parametrize(
    ("matching", "message"),
    [
        ({"score_threshold": 0.5}, "matching.score_threshold must be -inf where detections have no scores"),
        ({"ranked_files": True}, "matching.ranked_files must be false where detections have no scores"),
    ],
)
def test_equal_scores_go_with_no_rule_of_scores(matching: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=f"^{message}"):
        boxscore.load_protocol({"extends": "rex-omni-coco", "matching": matching})


def test_what_needs_scores_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the detections must have scores for this"):
        evaluate(*tables(drawn(9)), protocol="rex-omni-coco")._score_counts()


@each(range(20))
def test_the_best_pair_comes_first_as_in_lmms_eval(seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = [
        Image(*({name: [moved(box, rng) for box in boxes] for name, boxes in side.items()} for side in image))
        for image in drawn(seed)
    ]  # no two overlaps are equal: what lmms-eval makes of those follows from the file
    overlaps = []
    for image in images:
        pairs = [
            (iou(one, box), (name, a), (name, b))
            for name in image.objects
            for a, one in enumerate(image.objects[name])
            for b, box in enumerate(image.boxes.get(name, []))
        ]
        best: dict[tuple[str, int], float] = {}
        taken: set[tuple[str, int]] = set()
        for value, one, box in sorted(pairs, key=lambda pair: -pair[0]):
            if value > 0 and one not in best and box not in taken:
                best[one] = value
                taken.add(box)
        overlaps += [
            best.get((name, a), 0.0) for name in image.objects for a in range(len(image.objects[name]))
        ]
    result = evaluate(*tables(images), protocol="odinw13-lmms")
    for percent in (10, 30, 50, 70, 90):
        assert result[f"acc{percent}"] == np.mean(np.array(overlaps) >= percent / 100)
    assert result["IoU"] == pytest.approx(statistics.fmean(overlaps), abs=EXACT)


def moved(box: Box, rng: np.random.Generator) -> Box:
    x, y = rng.uniform(0, 0.5, 2).tolist()
    return (box[0] + x, box[1] + y, box[2] + x, box[3] + y)
