"""SAM 3's cgF1, against its rules written out: every annotator, every assignment tried."""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, ProtocolError, evaluate
from boxscore.diagnostics import bootstrap_intervals, compare_detectors, compare_protocols, explain
from boxscore.distributed import merge, scan
from boxscore.formats import save_as
from support.each import each

EXACT = 1e-12
THRESHOLDS = np.linspace(0.5, 0.95, 10).tolist()
Box = tuple[float, ...]


class Phrase(NamedTuple):
    objects: dict[str, list[Box]]
    """By annotator."""
    boxes: list[Box]
    scores: list[float]
    exhaustive: bool


def drawn(seed: int, *, annotators: int = 3, images: int = 14) -> list[Phrase]:
    """Phrases with none to three objects, moved a little by each annotator; some have no detection."""
    rng = np.random.default_rng(seed)
    phrases = []
    for _ in range(images):
        corners = rng.uniform(0, 60, (int(rng.integers(0, 4)), 2))
        true = np.hstack([corners, corners + rng.uniform(15, 30, corners.shape)])

        def moved(share: float, boxes: np.ndarray = true) -> list[Box]:
            some = boxes[rng.random(len(boxes)) < share]
            return [tuple(box) for box in (some + rng.normal(0, 1.2, some.shape)).tolist()]

        extra = rng.uniform(0, 50, (int(rng.integers(0, 2)), 2))
        boxes = moved(0.8) + [tuple(box) for box in np.hstack([extra, extra + 20]).tolist()]
        scores = rng.choice([0.4, 0.49999, 0.5, 0.7], len(boxes), p=[0.1, 0.1, 0.3, 0.5]).tolist()
        names = "abc"[:annotators]
        phrases.append(
            Phrase({name: moved(0.85) for name in names}, boxes, scores, bool(rng.random() < 0.85))
        )
    return phrases


def tables(phrases: list[Phrase], *, in_full: bool = True) -> tuple[GroundTruth, Detections]:
    """Tables as the reader of SA-Co makes them."""
    rows = [
        (number, name, box)
        for number, phrase in enumerate(phrases, 1)
        for name, boxes in phrase.objects.items()
        for box in boxes
    ]
    truth = GroundTruth.from_arrays(
        [row[0] for row in rows],
        ["object"] * len(rows),
        np.array([row[2] for row in rows]).reshape(-1, 4),
        images=range(1, len(phrases) + 1),
        categories=["object"],
    )
    names = "/".join(phrases[0].objects)
    columns = {"annotators": np.full(len(phrases), names, dtype=object)}
    if in_full:
        columns["exhaustive"] = np.array([phrase.exhaustive for phrase in phrases])
    images = dataclasses.replace(truth.images, columns=columns)
    annotator = np.array([row[1] for row in rows], dtype=object)
    found = [(number, box) for number, phrase in enumerate(phrases, 1) for box in phrase.boxes]
    detections = Detections.from_arrays(
        [row[0] for row in found],
        ["object"] * len(found),
        np.array([row[1] for row in found]).reshape(-1, 4),
        [score for phrase in phrases for score in phrase.scores],
    )
    return truth.replaced(images=images, columns={"annotator": annotator}), detections


def iou(a: Box, b: Box) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return w * h / (areas[0] + areas[1] - w * h)


def assigned(objects: list[Box], boxes: list[Box]) -> list[float]:
    """Overlaps of the assignment with the greatest sum, by trying all."""
    few, many = sorted((objects, boxes), key=len)
    tried = [
        [iou(a, b) for a, b in zip(few, chosen, strict=True)]
        for chosen in itertools.permutations(many, len(few))
    ]
    return max(tried, key=sum)


def rates(true: float, false: float, missed: float) -> tuple[float, float, float]:
    precision, recall = true / (true + false + 1e-4), true / (true + missed + 1e-4)
    return precision, recall, 2 * precision * recall / (precision + recall + 1e-4)


def sam3(phrases: list[Phrase]) -> dict[str, float]:
    """cgf1_eval.py in plain words."""
    chosen = []
    for phrase in phrases:
        if not phrase.exhaustive:
            continue
        boxes = [box for box, score in zip(phrase.boxes, phrase.scores, strict=True) if score >= 0.5]
        best: tuple[float, list[int], int, int] | None = None
        for objects in phrase.objects.values():
            hits = [sum(one >= t for one in assigned(objects, boxes)) for t in THRESHOLDS]
            f1 = [rates(hit, len(boxes) - hit, len(objects) - hit)[2] for hit in hits]
            value = statistics.fmean(f1) if objects or boxes else math.inf
            if best is None or value > best[0] + 1e-15:
                best = value, hits, len(objects), len(boxes)
        assert best is not None
        chosen.append(best[1:])
    out: dict[str, float] = {}
    tp = sum(o > 0 and b > 0 for _, o, b in chosen)
    fp = sum(o == 0 and b > 0 for _, o, b in chosen)
    tn = sum(o == 0 and b == 0 for _, o, b in chosen)
    fn = sum(o > 0 and b == 0 for _, o, b in chosen)
    out["IL_P"], out["IL_R"] = tp / (tp + fp + 1e-6), tp / (tp + fn + 1e-6)
    out["IL_F1"] = 2 * out["IL_P"] * out["IL_R"] / (out["IL_P"] + out["IL_R"] + 1e-6)
    out["IL_FPR"] = fp / (fp + tn + 1e-6)
    spread = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    out["IL_MCC"] = (tp * tn - fp * fn) / (spread + 1e-6)
    at: dict[str, list[float]] = {}
    for t in range(len(THRESHOLDS)):
        true = sum(hits[t] for hits, _, _ in chosen)
        false = sum(b - hits[t] for hits, _, b in chosen)
        missed = sum(o - hits[t] for hits, o, _ in chosen)
        of_positive = sum(b - hits[t] for hits, o, b in chosen if o)
        local = [rates(hits[t], b - hits[t], o - hits[t])[2] for hits, o, b in chosen if o and b]
        figures = dict(zip(("P", "R", "F1"), rates(true, false, missed), strict=True))
        figures["pmP"], _, figures["pmF1"] = rates(true, of_positive, missed)
        figures["macroF1"] = sum(local) / len(local) if local else math.nan
        figures["cgF1"] = figures["pmF1"] * out["IL_MCC"]
        for key, value in figures.items():
            at.setdefault(key, []).append(value)
    for key, values in at.items():
        joint = "_" if key.endswith("1") else ""
        out |= {key: statistics.fmean(values), f"{key}{joint}50": values[0], f"{key}{joint}75": values[5]}
    return out


@pytest.mark.filterwarnings("ignore")
@each([(seed, annotators) for annotators in [1, 3] for seed in range(12)])
def test_every_figure_of_sam3(seed: int, annotators: int) -> None:
    phrases = drawn(seed, annotators=annotators)
    result, expected = evaluate(*tables(phrases), protocol="cgf1"), sam3(phrases)
    assert result.metrics.keys() == expected.keys()
    for key, value in expected.items():
        assert result[key] == pytest.approx(value, abs=EXACT, nan_ok=True), key
    assert result.counts["images"] == sum(phrase.exhaustive for phrase in phrases)


@pytest.mark.filterwarnings("ignore")
def test_without_the_column_every_image_is_annotated_in_full() -> None:
    phrases = [phrase._replace(exhaustive=True) for phrase in drawn(1)]
    truth, found = tables(phrases, in_full=False)
    assert evaluate(truth, found, protocol="cgf1").metrics == pytest.approx(sam3(phrases), abs=EXACT)


@pytest.mark.filterwarnings("ignore")
def test_annotators_that_no_image_names_are_those_of_its_objects() -> None:
    """One who has no object there has not said that there is none."""
    boxes = [[0, 0, 10, 10], [0, 0, 10, 9], [50, 50, 60, 60]]
    truth = GroundTruth.from_arrays([1, 1, 2], ["object"] * 3, boxes)
    truth = truth.replaced(columns={"annotator": np.array(["b", "a", "b"], dtype=object)})
    found = Detections.from_arrays([1], ["object"], [boxes[0]], [0.9])
    result = evaluate(truth, found, protocol="cgf1")
    outcome = result.matched
    assert outcome.truth_row[outcome.counted(0)].tolist() == [0, 2]
    assert (result["R50"]) == pytest.approx(1 / 2.0001, abs=EXACT)


@pytest.mark.filterwarnings("ignore")
def test_scores_that_are_not_there_reach_every_threshold() -> None:
    truth, found = tables(drawn(2))
    ones = found.replaced(scores=np.ones(len(found)))
    assert (
        evaluate(truth, found.without_scores(), protocol="cgf1").metrics
        == evaluate(truth, ones, protocol="cgf1").metrics
    )


@pytest.mark.filterwarnings("ignore")
def test_no_order_decides_a_bit() -> None:
    truth, found = tables(drawn(3))
    rng = np.random.default_rng(0)
    result = evaluate(truth, found, protocol="cgf1")
    other = evaluate(truth[rng.permutation(len(truth))], found[rng.permutation(len(found))], protocol="cgf1")
    assert result.metrics == other.metrics


@pytest.mark.filterwarnings("ignore")
def test_parts_have_the_bits_of_the_whole(tmp_path: Path) -> None:
    truth, found = tables([phrase._replace(exhaustive=True) for phrase in drawn(4)])
    paths = [tmp_path / f"{number}.npz" for number in range(3)]
    for number, path in enumerate(paths):
        ids = truth.images.ids.tolist()[number::3]
        evaluate(truth, found, protocol="cgf1", images=ids).save_part(path)
    assert merge(paths).metrics == evaluate(truth, found, protocol="cgf1").metrics


@pytest.mark.filterwarnings("ignore")
def test_batches_have_the_bits_of_the_whole() -> None:
    truth, found = tables(drawn(5))
    evaluator = boxscore.Evaluator(ground_truth=truth, protocol="cgf1")
    for identifier in truth.images.ids.tolist():
        here = found.image == found.images.rows([identifier])[0]
        boxes, scores = found.boxes[here], found.scores[here]
        evaluator.update(
            [{"image_id": identifier, "boxes": boxes, "scores": scores, "labels": ["object"] * len(boxes)}]
        )
    assert evaluator.compute().metrics == evaluate(truth, found, protocol="cgf1").metrics


@pytest.mark.filterwarnings("ignore")
def test_detectors_are_compared_by_an_annotator_of_their_own() -> None:
    truth, found = tables(drawn(6, images=30))
    worse = found.replaced(boxes=found.boxes + 3.0)
    results = {name: evaluate(truth, one, protocol="cgf1") for name, one in (("a", found), ("b", worse))}
    row = compare_detectors(results, metrics=["cgF1"], resamples=50).total
    assert row.value_first[0, 0] == results["a"]["cgF1"]
    assert row.delta[0, 0] == results["b"]["cgF1"] - results["a"]["cgF1"]
    interval = bootstrap_intervals(results["a"], metrics=["cgF1"]).total
    assert interval.standard_error[0] > 0
    assert np.isnan(interval.low[0])  # no interval of it was simulated


def said(truth: GroundTruth, found: Detections, protocol: str) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate(truth, found, protocol=protocol, digest=False)
    return [str(one.message) for one in caught if isinstance(one.message, BoxscoreWarning)]


def test_what_makes_cgf1_worthless_is_said() -> None:
    box = [[0, 0, 10, 10]]
    truth = GroundTruth.from_arrays([1], ["object"], box)
    found = Detections.from_arrays([1], ["object"], box, [0.9])
    alone = "arrays: images do not say whether they are fully annotated (column exhaustive); cgf1 assumes that all are."
    assert said(truth, found, "cgf1") == [
        alone,
        "arrays: every image has an object, so there are only positive phrases: IL_MCC is 0, and cgF1, cgF1_50, cgF1_75 are "
        "0 for any boxes. pmF1 (positive_micro_F1) measures the boxes alone.",
    ]
    truth = GroundTruth.from_arrays([1, 2], ["object"] * 2, box * 2, images=[1, 2, 3, 4])
    wrong = Detections.from_arrays([1, 3, 4], ["object"] * 3, box * 3, [0.9] * 3)
    assert said(truth, wrong, "cgf1") == [
        alone,
        "arrays: IL_MCC is -0.5774: negative phrases have detections more often than positive ones, and cgF1, "
        "cgF1_50, cgF1_75 fall as boxes get better. pmF1 (positive_micro_F1) measures the boxes alone.",
    ]
    fine = Detections.from_arrays([1, 2], ["object"] * 2, box * 2, [0.9] * 2)
    assert said(truth, fine, "cgf1") == [alone]


def test_annotators_that_count_together_are_said() -> None:
    truth, found = tables(drawn(7))
    (text,) = said(truth, found, "coco")
    assert text.startswith("arrays: the objects of 3 annotators (a, b, c) count together in ")
    assert said(truth, found, "cgf1") == []
    nameless = truth.replaced(images=dataclasses.replace(truth.images, columns={}))
    assert said(nameless, found, "cgf1") == [
        "arrays: images do not say whether they are fully annotated (column exhaustive); cgf1 assumes that all are.",
        "arrays: images do not name their annotators (column annotators); assuming that annotators without objects in an image have not seen it.",
    ]


def test_parquet_in_partitions_is_refused(tmp_path: Path) -> None:
    truth, found = tables(drawn(9))
    save_as(found, tmp_path / "dt.parquet")
    with pytest.raises(
        ProtocolError, match=r"^labels\.(annotators|inexhaustive_images) must be '(all|count)' where"
    ):
        scan(truth, tmp_path / "dt.parquet", protocol="cgf1")


@pytest.mark.filterwarnings("ignore")
def test_the_way_to_cgf1_has_a_price_for_each_rule() -> None:
    phrases = drawn(8)
    truth, found = tables(phrases)
    for first, last in (("scoreless", "cgf1"), ("cgf1", "coco"), ("rex-omni", "cgf1")):
        way = explain(truth, found, first, last)
        assert way.first_value + sum(delta for _, delta, _ in way.steps) == way.last_value
        changes = {text.partition(":")[0] for text, _, _ in way.steps}
        assert {"annotators", "images not annotated in full", "metric", "candidate"} <= changes
    assert explain(truth, found, "coco", "cgf1").last_value == pytest.approx(sam3(phrases)["cgF1"], abs=EXACT)
    rows = compare_protocols(truth, found).table.set_index("protocol")
    assert rows.loc["cgf1", "value"] == pytest.approx(sam3(phrases)["cgF1"], abs=EXACT)


def test_metrics_of_phrases_pool_classes() -> None:
    with pytest.raises(ProtocolError, match=r"^matching.per_class must be false where a metric is of whole"):
        boxscore.load_protocol({"extends": "cgf1", "matching": {"per_class": True}})


def test_a_result_of_no_phrase_is_undefined() -> None:
    nothing = GroundTruth.from_arrays([], [], np.empty((0, 4)), images=[1], categories=["object"])
    found = Detections.from_arrays([], [], np.empty((0, 4)), [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(nothing, found, protocol="cgf1")
    assert math.isnan(result["macroF1"])
    assert result["cgF1"] == 0
