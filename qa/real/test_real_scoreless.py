"""Detections without scores: every figure of ``shared/data/scoreless`` that a protocol gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import (
    Detections,
    Evaluation,
    GroundTruth,
    evaluate,
    load_detections,
    load_ground_truth,
    save_as,
    scan,
)
from support.real_data import real

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning"),
]
EXACT = 1e-12
FIGURES = {
    "precision": "P{}",
    "recall": "R{}",
    "F1": "F1_{}",
    "mean_iou_of_matches": "IoU{}",
    "false_positives_per_image": "FPPI{}",
}


def every_threshold() -> dict[str, Any]:
    """The protocol with each kind at each threshold, and AP50 and AP75."""
    kinds = {"P": "precision", "R": "recall", "F1_": "micro_F1", "macroF1_": "F1"}
    kinds |= {"IoU": "mean_iou", "FPPI": "fp_per_image", "exact": "exact_images"}
    rows = [
        {"key": f"{key}{100 * t:.0f}", "metric": kind, "iou": t}
        for key, kind in kinds.items()
        for t in np.linspace(0.5, 0.95, 10).tolist()
    ]
    rows += [{"key": key.removesuffix("_"), "metric": kind} for key, kind in kinds.items()]
    for end in ("lowest", "expected", "highest"):
        rows += [{"key": f"AP_{end}", "metric": f"AP_{end}"}]
        rows += [{"key": f"AP{100 * t:.0f}_{end}", "metric": f"AP_{end}", "iou": t} for t in (0.5, 0.75)]
    return {"extends": "scoreless", "name": "every", "summary": rows}


def check(result: Evaluation, area: Evaluation, expected: Mapping[str, Any], *, drawn: bool = False) -> None:
    """Compare every figure of ``default`` with those of points, and of areas for ``all_points``."""

    def same(got: float, wanted: float | None, within: float = EXACT) -> None:
        if wanted is None:
            assert np.isnan(got)
        else:
            assert got == pytest.approx(wanted, abs=within)

    for name, at_one in expected.items():
        if name.startswith("0."):
            percent = round(100 * float(name))
            for figure in FIGURES.keys() & at_one.keys():
                same(result[FIGURES[figure].format(percent)], at_one[figure])
    for figure, key in (("precision_mean", "P"), ("recall_mean", "R"), ("F1_mean", "F1")):
        if figure in expected:
            same(result[key], expected[figure])
    for name, value in expected.get("F1_macro_classes_with_objects", {}).items():
        same(result[f"macroF1_{round(100 * float(name))}"], value)
    if "exact_number_images" in expected:
        assert result["exact50"] == expected["exact_number_images"]
    for rule, made in (("101", result), ("all_points", area)):
        for end, values in expected.get("AP", {}).get(rule, {}).items():
            for key, value in values.items():
                same(made[f"{key}_{end}"], value, 0.003 if drawn and end == "expected" else EXACT)


def both(truth: GroundTruth, found: Detections) -> tuple[Evaluation, Evaluation]:
    """Evaluate with recall points, and with the area under the envelope."""
    protocol = every_threshold()
    of_areas = {**protocol, "ap": {"interpolation": "area"}}
    return tuple(evaluate(truth, found, protocol=one, digest=False) for one in (protocol, of_areas))  # type: ignore[return-value]


def tables(folder: str, detections: str) -> tuple[GroundTruth, Detections, dict[str, Any]]:
    path = real("scoreless", folder)
    truth = load_ground_truth(path / "ground_truth.json")
    found = load_detections(path / detections, truth).without_scores()
    return truth, found, json.loads((path / "expected.json").read_text())


@pytest.mark.parametrize(
    ("folder", "detections"), [("made", "detections.json"), ("coco100", "detections_shuffled.json")]
)
def test_made_and_coco(folder: str, detections: str) -> None:
    truth, found, expected = tables(folder, detections)
    check(*both(truth, found), expected["default"])


@pytest.mark.parametrize("model", ["qwen25vl", "internvl", "llava", "dino"])
def test_referring_expressions(model: str) -> None:
    truth, found, expected = tables("refcoco", f"{model}.json")
    figures = expected[model]["default"]
    check(*both(truth, found), figures, drawn="expected_is" in json.dumps(figures))


def test_every_case(tmp_path: Path) -> None:
    cases = json.loads(real("scoreless", "cases.json").read_text())
    assert len(cases) == 18
    paths = tmp_path / "gt.json", tmp_path / "dt.json"
    for case in cases:
        for path, side in zip(paths, ("ground_truth", "detections"), strict=True):
            path.write_text(json.dumps(case[side]))
        truth = load_ground_truth(paths[0])
        found = load_detections(paths[1], truth).without_scores()
        expected = case["expected"]
        if "default" not in expected:  # no object and no detection: undefined
            assert np.isnan([evaluate(truth, found)[key] for key in ("P50", "R50", "F1_50", "IoU50")]).all()
            continue
        check(*both(truth, found), {**expected["default"], "AP": expected.get("default_AP", {})})


@pytest.mark.parametrize(
    ("folder", "detections"), [("made", "detections.json"), ("coco100", "detections_shuffled.json")]
)
def test_no_order_changes_a_bit(folder: str, detections: str) -> None:
    truth, found, _ = tables(folder, detections)
    first = evaluate(truth, found, protocol=every_threshold(), digest=False)
    rng = np.random.default_rng(1)
    for rows in (np.arange(len(found))[::-1], rng.permutation(len(found))):
        objects = rng.permutation(len(truth))
        other = evaluate(truth[objects], found[rows], protocol=every_threshold(), digest=False)
        for key, value in first.metrics.items():
            assert np.array(value).tobytes() == np.array(other[key]).tobytes(), key
        for key, values in first.class_values.items():
            assert values.tobytes() == other.class_values[key].tobytes(), key


def test_the_interval_of_real_boxes_without_their_scores() -> None:
    path = real("scoreless", "coco100")
    truth = load_ground_truth(path / "ground_truth.json")
    scored = load_detections(path / "detections_with_scores.json", truth)
    assert round(evaluate(truth, scored)["AP"], 4) == 0.3339
    result = evaluate(truth, scored.without_scores())
    shown = [round(result[f"AP_{end}"], 4) for end in ("lowest", "expected", "highest")]
    assert shown == [0.2679, 0.3047, 0.3627]


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    from boxscore.distributed import merge

    truth, found, _ = tables("coco100", "detections_shuffled.json")
    whole = evaluate(truth, found, protocol=every_threshold(), digest=False)
    ids = truth.images.ids.tolist()
    paths = []
    for number in range(3):
        part = evaluate(truth, found, protocol=every_threshold(), images=ids[number::3], digest=False)
        paths.append(tmp_path / f"{number}.npz")
        part.save_part(paths[-1])
    merged = merge(paths)
    for key, value in whole.metrics.items():
        assert np.array(value).tobytes() == np.array(merged[key]).tobytes(), key


def test_expectations_of_counts() -> None:
    """True, false and missed boxes of one class, as many as each row says."""
    for row in json.loads(real("scoreless", "expected_ap_of_counts.json").read_text()):
        objects, true, false = row["objects"], row["true"], row["false"]
        places = np.arange(objects + false)[:, None] * [20.0, 0, 20, 0] + [0, 0, 10, 10]
        truth = GroundTruth.from_arrays([1] * objects, [1] * objects, places[:objects])
        boxes = np.concatenate([places[:true], places[objects:]])
        found = Detections.from_arrays([1] * len(boxes), [1] * len(boxes), boxes)
        for rule, result in zip(("101", "all_points"), both(truth, found), strict=True):
            for end, value in row[rule].items():
                assert result[f"AP_{end}"] == pytest.approx(value, abs=EXACT), row


def test_partitions_of_parquet_have_the_bits_of_the_whole(tmp_path: Path) -> None:
    truth, found, _ = tables("coco100", "detections_shuffled.json")
    save_as(found, tmp_path / "dt.parquet")
    save_as(truth, tmp_path / "gt.parquet")
    made = scan(tmp_path / "gt.parquet", tmp_path / "dt.parquet", protocol="scoreless")
    for key, value in evaluate(truth, found).metrics.items():
        assert np.array(value).tobytes() == np.array(made[key]).tobytes(), key


SETS = [("made", "detections.json"), ("coco100", "detections_shuffled.json")]
RATES = {"P": "precision", "R": "recall", "F1_": "F1"}


def same_rates(result: Evaluation, expected: Mapping[str, float], at: str, suffix: str = "") -> None:
    """Compare precision, recall and F1 at some threshold in per cent, or their means where it is empty."""
    for key, name in RATES.items():
        got = result[f"{key}{at}".removesuffix("_")]
        assert got == pytest.approx(expected[f"{name}{suffix}"], abs=EXACT)


@pytest.mark.parametrize(("folder", "detections"), SETS)
def test_rex_omni(folder: str, detections: str) -> None:
    truth, found, expected = tables(folder, detections)
    result = evaluate(truth, found, protocol="rex-omni", digest=False)
    figures = expected["rex_other_metric_common_object_detection"]
    for name, at in (("0.5", "50"), ("0.75", "75"), ("0.95", "95"), ("mIoU", "")):
        same_rates(result, figures[name], at)


@pytest.mark.parametrize("order", ["as it is", "reversed"])
@pytest.mark.parametrize("classes", ["positive_only", "all_classes"])
@pytest.mark.parametrize(("folder", "detections"), SETS)
def test_rex_omni_on_coco(folder: str, detections: str, classes: str, order: str) -> None:
    truth, found, expected = tables(folder, detections)
    name = f"rex_fastevaluate_{classes}"
    if order == "reversed":
        found, name = found[np.arange(len(found))[::-1]], f"{name}_images_and_boxes_reversed"
    if name not in expected:
        return
    unlisted = {"positive_only": "drop_beside_others", "all_classes": "count"}[classes]
    protocol = {"extends": "rex-omni-coco", "labels": {"unlisted": unlisted}}
    result = evaluate(truth, found, protocol=protocol, digest=False)
    for suffix, at in (("@50", "50"), ("@95", "95"), ("@mIoU", "")):
        same_rates(result, expected[name]["table"], at, suffix)


@pytest.mark.parametrize("model", ["qwen25vl", "internvl", "llava", "dino"])
def test_accuracies_of_referring_expressions(model: str) -> None:
    truth, found, expected = tables("refcoco", f"{model}.json")
    figures, lmms = (
        expected[model][key] for key in ("accuracy_of_the_files_here", "lmms_eval_refcoco_first_box")
    )
    for name, whose in (("referring", "first"), ("referring-any", "any")):
        result = evaluate(truth, found, protocol=name, digest=False)
        for percent in (50, 75, 90, 95):
            assert result[f"acc{percent}"] == figures[f"acc@{percent / 100:g}_{whose}_box"]
        if whose == "first":
            assert result["IoU"] == pytest.approx(lmms["IoU"], abs=EXACT)
            for percent in (10, 30, 50, 70, 90):
                assert result[f"acc{percent}"] == lmms[f"ACC@{percent / 100:g}"]
    names_ignored = {"extends": "rex-omni", "labels": {"unlisted": "count"}}
    result = evaluate(truth, found, protocol=names_ignored, digest=False)
    for name, at in (("0.5", "50"), ("0.75", "75"), ("0.95", "95"), ("mIoU", "")):
        same_rates(result, expected[model]["rex_other_metric_referring"][name], at)


def test_rex_omni_of_every_case(tmp_path: Path) -> None:
    paths = tmp_path / "gt.json", tmp_path / "dt.json"
    for case in json.loads(real("scoreless", "cases.json").read_text()):
        for path, side in zip(paths, ("ground_truth", "detections"), strict=True):
            path.write_text(json.dumps(case[side]))
        truth = load_ground_truth(paths[0])
        found = load_detections(paths[1], truth).without_scores()
        result = evaluate(truth, found, protocol="rex-omni", digest=False)
        for name, at in (("0.5", "50"), ("0.75", "75"), ("0.95", "95")):
            same_rates(result, case["expected"]["rex_other_metric"][name], at)
        figures = case["expected"].get("rex_fastevaluate")
        if (
            figures is not None and case["case"] != "wrong_class"
        ):  # whose first class is read from unset memory
            result = evaluate(truth, found, protocol="rex-omni-coco", digest=False)
            for at in ("50", "95"):
                same_rates(result, figures, at, f"@{at}")


# ---------------------------------------------------------------- SAM 3, lmms-eval, OmniLabel

KEYS = {
    "cgF1": "cgF1",
    "precision": "P",
    "recall": "R",
    "F1": "F1",
    "positive_macro_F1": "macroF1",
    "positive_micro_F1": "pmF1",
    "positive_micro_precision": "pmP",
    **{f"IL_{name}": f"IL_{key}" for name, key in (("precision", "P"), ("recall", "R"))},
    **{name: name for name in ("IL_F1", "IL_FPR", "IL_MCC")},
}


def same_as_sam3(result: Evaluation, figures: Mapping[str, Any]) -> None:
    """Compare all 26 figures: three thresholds of seven, and five of images."""
    figures = {name: value for name, value in figures.items() if name.startswith("cgF1_eval_")}
    assert len(figures) == 26
    for name, value in figures.items():
        metric, _, threshold = name.split("_", 3)[3].partition("@")
        percent = f"{100 * float(threshold):.0f}" if threshold else ""
        joint = "_" if percent and KEYS[metric].endswith("1") else ""
        assert result[f"{KEYS[metric]}{joint}{percent}"] == pytest.approx(value, abs=EXACT), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["bbox_a", "bbox_abc", "segm_a", "segm_abc"])
def test_cgf1_of_sam3(name: str) -> None:
    folder = real("scoreless", "saco")
    expected = json.loads((folder / "expected.json").read_text())[name]
    truth = load_ground_truth(folder if name.endswith("abc") else folder / "ground_truth_a.json")
    found = load_detections(folder / "predictions.json", truth)
    result = evaluate(truth, found, protocol="cgf1-segm" if "segm" in name else "cgf1", digest=False)
    same_as_sam3(result, expected)
    assert len(result.images) == expected["evaluated_images"]


@pytest.mark.filterwarnings("ignore")
def test_cgf1_without_thresholds_and_without_negatives() -> None:
    folder = real("scoreless", "saco")
    expected = json.loads((folder / "expected.json").read_text())
    truth = load_ground_truth(folder)
    found = load_detections(folder / "predictions.json", truth)
    for same in (found.replaced(scores=np.ones(len(found))), found.without_scores()):
        result = evaluate(truth, same, protocol="cgf1", digest=False)
        same_as_sam3(result, expected["bbox_abc_all_scores_set_to_1"])
    truth = load_ground_truth(folder / "ground_truth_a.json")
    exhaustive = truth.images.columns["exhaustive"]
    positive = [
        truth.images.ids.tolist()[row] for row in np.unique(truth.image[~truth.crowd]) if exhaustive[row]
    ]
    found = load_detections(folder / "predictions.json", truth)
    result = evaluate(truth, found, protocol="cgf1", images=positive, digest=False)
    same_as_sam3(result, expected["bbox_a_positive_phrases_only"])


def by_phrase(truth: GroundTruth, found: Detections) -> tuple[GroundTruth, Detections]:
    """Make an image of each image and class that has anything."""
    of_truth, of_found = (
        (table.image.astype(np.int64) * len(truth.categories) + table.category).tolist()
        for table in (truth, found)
    )
    objects = GroundTruth.from_arrays(
        of_truth,
        ["object"] * len(truth),
        truth.boxes,
        crowd=truth.crowd,
        images=sorted({*of_truth, *of_found}),
    )
    return objects, Detections.from_arrays(of_found, ["object"] * len(found), found.boxes)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("folder", "detections"), SETS)
def test_cgf1_of_classes_as_phrases(folder: str, detections: str) -> None:
    truth, found, expected = tables(folder, detections)
    result = evaluate(*by_phrase(truth, found), protocol="cgf1", digest=False)
    same_as_sam3(result, expected["sam3_cgf1_bbox_one_phrase_per_image_and_class"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["qwen25vl", "internvl", "llava", "dino"])
def test_cgf1_of_referring_expressions(model: str) -> None:
    truth, found, expected = tables("refcoco", f"{model}.json")
    result = evaluate(truth, found, protocol="cgf1", digest=False)
    same_as_sam3(result, expected[model]["sam3_cgf1_bbox"])


@pytest.mark.parametrize(("folder", "detections"), SETS)
def test_odinw13_of_lmms_eval(folder: str, detections: str) -> None:
    truth, found, expected = tables(folder, detections)
    figures = expected["lmms_eval_odinw13"]
    result = evaluate(truth, found, protocol="odinw13-lmms", digest=False)
    for percent in (10, 30, 50, 70, 90):
        assert result[f"acc{percent}"] == figures[f"ACC@{percent / 100:g}"]
    assert result["IoU"] == pytest.approx(figures["IoU"], abs=EXACT)


@pytest.mark.parametrize(
    "name", ["perfect", "false_positive_first_tied", "false_positive_last_tied", "one_missing"]
)
def test_omnilabel(name: str) -> None:
    folder = real("scoreless", "omnilabel")
    truth = load_ground_truth(folder / "8357.json")
    found = load_detections(folder / f"predictions_{name}.json", truth)
    result = evaluate(truth, found, protocol="omnilabel", digest=False)
    figures = json.loads((folder / "expected.json").read_text())[name]
    for (key, value), figure in zip(result.metrics.items(), figures, strict=True):
        wanted = np.nan if figure["value"] == -1 else figure["value"]
        assert value == pytest.approx(wanted, abs=0, nan_ok=True), key
        named = figure["metric"]
        assert key.startswith(named["metric"])
        assert ("categ" in key) == (named["description"] == "categ")
