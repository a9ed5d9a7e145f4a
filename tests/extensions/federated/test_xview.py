"""xView: its scoring code in plain Python on made-up files, the two other readings, and figures of the code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Evaluation, ProtocolError
from boxscore.distributed import Part, merge
from boxscore.formats import detect_format
from boxscore.protocols import load_protocol
from oracles import xview
from oracles.xview import Detection, Object
from support.parted import bits, parts_of, whole
from support.real_data import real

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
READINGS: dict[str, dict[str, bool]] = {
    "xview": {},
    "xview-by-score": {"by_score": True},
    "xview-every-object": {"every_object": True},
}
JULY_2018 = "xview-july2018"
Truth = dict[str, list[Object]]
Results = dict[str, list[Detection]]


def written(folder: Path, truth: Truth, results: Results) -> tuple[Path, Path]:
    folder.mkdir(exist_ok=True)
    features = [
        {
            "type": "Feature",
            "properties": {
                "bounds_imcoords": ",".join(f"{side:g}" for side in item.box),
                "image_id": name,
                "type_id": item.label,
            },
        }
        for name, items in truth.items()
        for item in items
    ]
    (folder / "gt.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    (folder / "dt").mkdir()
    for name, found in results.items():
        lines = [f"{' '.join(map(repr, one.box))} {one.label} {one.score!r}\n" for one in found]
        (folder / "dt" / f"{name}.txt").write_text("".join(lines))
    return folder / "gt.geojson", folder / "dt"


def made_up(seed: int) -> tuple[Truth, Results]:
    rng = np.random.default_rng(seed)
    truth: Truth = {}
    results: Results = {}
    for n in range(int(rng.integers(1, 6))):
        name = f"{n}.tif"
        items = []
        for _ in range(int(rng.integers(1, 8))):
            x, y, w, h = rng.integers(2, 12, 4).tolist()
            items.append(Object((x, y, x + w, y + h), int(rng.choice([11, 18, 40]))))
        truth[name] = items
        if rng.random() < 0.2:
            continue
        found = []
        for _ in range(int(rng.integers(0, 12))):
            near = items[int(rng.integers(len(items)))]
            x1, y1, x2, y2 = (np.array(near.box) + rng.integers(-1, 2, 4)).tolist()
            label = near.label if rng.random() < 0.8 else 40
            found.append(
                Detection((x1, y1, max(x2, x1 + 1), max(y2, y1 + 1)), label, float(rng.integers(5)) / 4)
            )
        results[name] = found
    if not any(results.values()):
        results["0.tif"] = [Detection((1, 1, 5, 5), 18, 0.5)]
    return truth, results


def same(result: Evaluation, truth: Truth, results: Results, how: dict[str, bool]) -> None:
    for label in (11, 18, 40):
        if str(label) in result.labels:
            ours = float(result.class_values["AP"][result.labels.index(str(label))])
            expected = xview.average_precision(truth, results, label, **how)
            assert ours == pytest.approx(expected, rel=1e-13, nan_ok=True), label


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("seed", range(25))
def test_it_is_the_scoring_code(seed: int, name: str, tmp_path: Path) -> None:
    truth, results = made_up(seed)
    same(boxscore.evaluate(*written(tmp_path, truth, results), protocol=name), truth, results, READINGS[name])


@pytest.mark.slow
def test_it_is_the_scoring_code_many_times(tmp_path: Path) -> None:
    for seed in range(1000, 3000):
        truth, results = made_up(seed)
        paths = written(tmp_path / str(seed), truth, results)
        same(boxscore.evaluate(*paths, protocol="xview"), truth, results, {})


def test_the_first_in_the_file_takes_the_object(tmp_path: Path) -> None:
    truth = {"1.tif": [Object((0, 0, 10, 10), 18)]}
    results = {"1.tif": [Detection((0, 0, 10, 9), 18, 0.2), Detection((0, 0, 10, 10), 18, 0.9)]}
    paths = written(tmp_path, truth, results)
    assert boxscore.evaluate(*paths, protocol="xview")["mAP"] == 0.5
    assert boxscore.evaluate(*paths, protocol="xview-by-score")["mAP"] == 1


def test_detecting_less_can_raise_the_score(tmp_path: Path) -> None:
    box = (0, 0, 10, 10)
    truth = {name: [Object(box, 18)] for name in ("1.tif", "2.tif")}
    bad = {"1.tif": [Detection(box, 18, 0.9)], "2.tif": [Detection((50, 50, 60, 60), 18, 0.1)]}
    assert boxscore.evaluate(*written(tmp_path / "a", truth, bad), protocol="xview")["mAP"] == 0.5
    none = bad | {"2.tif": [Detection(box, 18, 0.0)]}  # a score of 0 is no detection
    paths = written(tmp_path / "b", truth, none)
    assert boxscore.evaluate(*paths, protocol="xview")["mAP"] == 1
    assert boxscore.evaluate(*paths, protocol="xview-every-object")["mAP"] == 0.5


@pytest.mark.parametrize("seed", range(25))
def test_it_is_the_scoring_code_of_july_2018(seed: int, tmp_path: Path) -> None:
    truth, results = made_up(seed)
    result = boxscore.evaluate(*written(tmp_path, truth, results), protocol=JULY_2018)
    every = [xview.average_precision(truth, results, int(label), by_score=True) for label in result.labels]
    expected = [0.0 if np.isnan(value) else value for value in every]
    assert result.class_values["AP"].tolist() == pytest.approx(expected, rel=1e-13)
    assert result["mAP"] == pytest.approx(np.mean(expected), rel=1e-13)


def test_since_july_2018_three_classes_are_not_scored_and_an_undetected_one_is_0(tmp_path: Path) -> None:
    box = (0, 0, 10, 10)
    truth = {"1.tif": [Object(box, 18), Object(box, 40), Object(box, 75)]}
    paths = written(tmp_path, truth, {"1.tif": [Detection(box, 18, 0.9)]})
    result = boxscore.evaluate(*paths, protocol=JULY_2018)
    assert result["mAP"] == 0.5
    np.testing.assert_equal(result.class_values["AP"].tolist(), [1.0, 0.0, np.nan])
    assert boxscore.evaluate(*paths, protocol="xview")["mAP"] == 1


@pytest.mark.parametrize("seed", range(3))
def test_images_apart_or_at_once(seed: int, tmp_path: Path) -> None:
    gt, dt = written(tmp_path, *made_up(seed + 40))
    truth = boxscore.load_ground_truth(gt)
    sides = truth, boxscore.load_detections(dt, truth)
    for name in (*READINGS, JULY_2018):
        parts = parts_of(sides, name, np.arange(len(truth.images)) % 2)
        merged = merge([Part.from_bytes(part.to_bytes()) for part in parts])
        assert bits(merged) == bits(whole(sides, name))


def test_readings_have_all_three(tmp_path: Path) -> None:
    gt, dt = written(tmp_path, *made_up(7))
    truth = boxscore.load_ground_truth(gt)
    result = boxscore.diagnostics.compare_protocols(truth, boxscore.load_detections(dt, truth), "xview")
    assert {*READINGS, JULY_2018} <= {one.protocol for one in result.readings}
    choices = {one.protocol: one.choices for one in result.readings}
    assert choices["xview-by-score"] == ("order of matching: by score",)
    assert choices["xview-every-object"] == ("objects of undetected classes: counted",)


def test_its_files_are_recognized(tmp_path: Path) -> None:
    gt, dt = written(tmp_path, *made_up(3))
    assert detect_format(gt) == ("xview", "xView's GeoJSON")
    assert detect_format(dt) == ("xview", "xView's text files")


def test_file_order_has_one_number_of_max_detections() -> None:
    rules: dict[str, Any] = {"extends": "coco", "matching": {"order": "file"}}
    with pytest.raises(ProtocolError, match="max_detections must be one number at most where detections"):
        load_protocol(rules)


@pytest.mark.real
def test_figures_of_the_code(tmp_path: Path) -> None:
    """Scores are made unique in the order in which NumPy leaves equal ones, which is not stable."""
    folder = real("tiny", "xview_predictions")
    files = {path.name: [line.split() for line in path.read_text().splitlines()] for path in folder.iterdir()}
    results: Results = {}
    for name in sorted(files):
        values = [list(map(float, line)) for line in files[name]]
        found = [Detection((v[0], v[1], v[2], v[3]), int(v[4]), v[5]) for v in values]
        results[name.removesuffix(".txt")] = found
    for label in (17, 18, 40):
        rows = [
            (name, i)
            for name, found in results.items()
            for i, one in enumerate(found)
            if one.label == label and one.score > 0
        ]
        order = np.argsort([results[name][i].score for name, i in rows])
        for rank, row in enumerate(order.tolist(), start=1):
            name, i = rows[row]
            results[name][i] = results[name][i]._replace(score=rank / len(rows))
    truth: Truth = {}
    for feature in json.loads(real("tiny", "xview_gt.geojson").read_text())["features"]:
        item = feature["properties"]
        x1, y1, x2, y2 = map(int, item["bounds_imcoords"].split(","))
        truth.setdefault(item["image_id"], []).append(Object((x1, y1, x2, y2), item["type_id"]))
    result = boxscore.evaluate(*written(tmp_path, truth, results), protocol="xview")
    expected = [xview.average_precision(truth, results, label) for label in (17, 18, 40)]
    assert result.class_values["AP"][:3].tolist() == pytest.approx(expected, rel=1e-13)
    assert np.isnan(result.class_values["AP"][3])
    # That of NumPy 1.26.4 with AVX-512; every order of equal scores lies between the bounds.
    given = boxscore.evaluate(real("tiny", "xview_gt.geojson"), folder, protocol="xview")
    bounds = boxscore.diagnostics.tie_bounds(given).total
    assert bounds.lowest[0] <= 0.517043643614066 <= bounds.highest[0]
