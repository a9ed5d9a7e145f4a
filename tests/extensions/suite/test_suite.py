"""Suites: every cell is that of evaluating alone, what fails counts and is named, and what was done stays."""

from __future__ import annotations

import itertools
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.errors import InputError
from boxscore.extensions.diagnostics.bootstrap import chosen_rows, resampled_metrics
from boxscore.extensions.suite import running as running_module
from boxscore.extensions.weights.left_out import Spread, left_out_metrics, spread_of
from boxscore.extensions.weights.resampling import student_quantile
from boxscore.suite import Suite, SuiteResult, run_suite
from support.suites import MODELS, SETS, TOML, write_sets

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sets(tmp_path / "data")
    (tmp_path / "suite.toml").write_text(TOML)
    return tmp_path


def run(path: Path, **options: Any) -> SuiteResult:
    return run_suite(Suite.read(path), **{"resamples": 40, "workers": 1, **options})


@pytest.mark.long
def test_every_cell_is_that_of_evaluating_alone(folder: Path) -> None:
    result = run(folder / "suite.toml")
    for s in range(SETS):
        for m in range(MODELS):
            truth = boxscore.load_ground_truth(folder / "data" / f"set{s}" / "instances.json")
            found = boxscore.load_detections(folder / "data" / f"set{s}" / f"model{m}.json", truth)
            alone = boxscore.evaluate(truth, found)
            assert result.values[s, m] == alone["AP"]
            np.testing.assert_equal(dict(result.cells[s][m].metrics), dict(alone.metrics))
            rows = chosen_rows(alone, ["AP"])
            _, draws = resampled_metrics(alone, rows, resamples=40, seed=s, units=None)
            assert (result.draws[:, s, m] == draws[:, 0, -1]).all()
            estimates = left_out_metrics(alone, rows, seed=s, units=None).estimate
            assert (result.cells[s][m].left_out == estimates[:, 0, -1]).all()
            assert result.cells[s][m].units == 12
            assert not result.cells[s][m].is_enough


def test_means_by_hand(folder: Path) -> None:
    result = run(folder / "suite.toml")
    values = result.values
    table = result.model_frame().set_index("model")
    for m, model in enumerate(result.models):
        column = values[:, m].tolist()
        assert table.loc[model, "mean"] == pytest.approx(sum(column) / SETS, abs=1e-15)
        assert table.loc[model, "median"] == pytest.approx(sum(sorted(column)[2:4]) / 2, abs=1e-15)
        assert table.loc[model, "worst"] == min(column)
        assert table.loc[model, "worst_set"] == f"set{column.index(min(column))}"
        assert table.loc[model, "mean small"] == (column[0] + column[1]) / 2
        assert table.loc[model, "mean large"] == column[1]
        assert table.loc[model, "wins"] == sum(line[m] == max(line) for line in values.tolist())
        estimates = [cells[m].left_out[0] for cells in result.cells]
        assert table.loc[model, "estimate"] == pytest.approx(sum(estimates) / SETS, abs=1e-15)
        assert np.isnan(table.loc[model, ["low", "high"]].tolist()).all()
    few = "No interval: too few images with objects: set0, set1, set2"
    assert result.interval_note.startswith(few)


def mean_by_hand(parts: list[Spread], value: float, confidence: float) -> tuple[float, float, float]:
    """The estimate and the ends of a mean over independent sets, one number at a time."""
    S = len(parts)
    estimate = sum(float(part.estimate) for part in parts) / S
    without_bias = sum(float(part.without_bias) for part in parts) / S
    variances = [float(part.standard_error) ** 2 for part in parts]
    freedom = sum(variances) ** 2 / sum(
        v * v / float(p.freedom) for v, p in zip(variances, parts, strict=True)
    )
    reach = student_quantile((1 + confidence) / 2, math.floor(freedom)) * math.sqrt(sum(variances)) / S
    lows, highs = [], []
    correction = value - estimate
    for center in (estimate, without_bias, estimate + correction / 3, estimate - 0.75 * correction):
        odds, step = math.log(center / (1 - center)), reach / (center * (1 - center))
        lows += [center - reach, 1 / (1 + math.exp(step - odds))]
        highs += [center + reach, 1 / (1 + math.exp(-step - odds))]
    return estimate, max(min(lows), 0.0), min(max(highs), 1.0)


@pytest.mark.long
def test_the_interval_of_a_mean_by_hand(tmp_path: Path) -> None:
    write_sets(tmp_path / "data", images=24, sets=3)
    (tmp_path / "suite.toml").write_text(TOML.partition("[sets.set3]")[0])
    result = run(tmp_path / "suite.toml", confidence=0.9)
    table = result.model_frame()
    for m in range(MODELS):
        parts = [spread_of(cells[m].left_out, np.array(cells[m].units)) for cells in result.cells]
        expected = mean_by_hand(parts, table.loc[m, "mean"], 0.9)
        assert table.loc[m, ["estimate", "low", "high"]].tolist() == pytest.approx(expected, abs=1e-14)
        assert table.loc[m, "low"] < table.loc[m, "estimate"] < table.loc[m, "high"]
    assert result.interval_note == ""
    # A cell without a result has no error; a set with too few images leaves the mean without interval.
    (tmp_path / "data" / "set1" / "model0.json").unlink()
    result = run(tmp_path / "suite.toml", confidence=0.9)
    failed = result.model_frame()
    (cell,) = {cells[0] for cells in result.cells if cells[0].state == "missing"}
    nothing = Spread(*(np.array(number) for number in (result.worst, result.worst, 0.0, 1.0)))
    parts = [
        nothing if cells[0] is cell else spread_of(cells[0].left_out, np.array(cells[0].units))
        for cells in result.cells
    ]
    expected = mean_by_hand(parts, failed.loc[0, "mean"], 0.9)
    assert failed.loc[0, ["estimate", "low", "high"]].tolist() == pytest.approx(expected, abs=1e-14)
    assert failed.loc[1].equals(table.loc[1].where(table.columns != "wins", failed.loc[1]))
    for path in tmp_path.glob("data/*/model0.json"):
        path.unlink()
    ends = run(tmp_path / "suite.toml").model_frame().loc[0, ["estimate", "low", "high"]].tolist()
    assert ends[0] == 0
    assert np.isnan(ends[1:]).all()


def test_metrics_without_an_interval(folder: Path) -> None:
    (folder / "best.toml").write_text(
        'name = "best"\nextends = "coco"\n[[summary]]\nkey = "best"\nmetric = "F1"\niou = 0.5\n'
    )
    text = TOML.replace('name = "test"', 'name = "test"\nprotocol = "best.toml"')
    (folder / "suite.toml").write_text(text)
    result = run(folder / "suite.toml")
    assert result.worked.all()
    assert all(not len(cell.left_out) for cells in result.cells for cell in cells)
    assert np.isnan(result.model_frame()[["estimate", "low", "high"]].to_numpy()).all()
    assert result.interval_note.startswith("No interval: no interval of this metric that was tried holds")


@pytest.mark.long
@pytest.mark.parametrize("sets", [9, 10])
def test_the_interval_over_sets_by_hand(tmp_path: Path, sets: int) -> None:
    write_sets(tmp_path / "data", images=4, sets=sets)
    (tmp_path / "suite.toml").write_text(TOML.partition("[sets.set0]")[0])
    (row,) = run(tmp_path / "suite.toml", confidence=0.9).difference_frame().to_dict("records")
    values = run(tmp_path / "suite.toml").values
    delta = (values[:, 1] - values[:, 0]).tolist()
    mean = sum(delta) / sets
    if sets < 10:
        assert np.isnan([row["low_sets"], row["high_sets"]]).all()
    else:
        # All swaps of ten sets, up to complements; the largest that is not significant at 10%.
        swaps = [
            abs(sum(sign * each for sign, each in zip(signs, delta, strict=True))) / sets
            for signs in itertools.product((1, -1), repeat=sets)
            if signs[-1] == 1
        ]
        spread = math.sqrt(sum(each**2 for each in swaps) / len(swaps))
        largest = sorted(swaps[1:])[-int(0.1 * len(swaps) + 1e-9)]
        part = (largest / spread) ** 2 / sets
        reach = math.sqrt((largest**2 - part * mean**2) / (1 - part))
        assert row["high_sets"] - mean == pytest.approx(reach, rel=1e-6)
        assert (row["low_sets"] > 0 or row["high_sets"] < 0) == (row["verdict"] in ("better", "worse"))
        assert (row["p_value"] <= 0.1) == (row["verdict"] in ("better", "worse"))
        assert row["low_sets"] + row["high_sets"] == pytest.approx(2 * mean, abs=1e-14)


@pytest.mark.long
def test_differences(folder: Path) -> None:
    result = run(folder / "suite.toml")
    (row,) = result.difference_frame().to_dict("records")
    delta = result.values[:, 1] - result.values[:, 0]
    assert row["delta"] == pytest.approx(delta.mean(), abs=1e-15)
    assert row["sets_won"] == (delta > 0).sum()
    assert row["sets_lost"] == (delta < 0).sum()
    assert row["low_images"] < row["delta"] < row["high_images"]
    assert np.isnan([row["low_sets"], row["high_sets"]]).all()
    signs = 2 * (np.arange(64)[:, None] >> np.arange(6) & 1) - 1
    means = np.abs((signs * delta).mean(axis=1))
    assert row["p_value"] == (means >= abs(delta.mean()) - 1e-12).mean()
    assert row["verdict"] == "worse"


def test_what_has_no_result_counts_zero_and_is_named(folder: Path) -> None:
    data = folder / "data"
    (data / "set1" / "model0.json").unlink()
    (data / "set2" / "model1.json").write_text("[]")
    (data / "set3" / "model1.json").write_text("{")
    (data / "set4" / "instances.json").unlink()
    whole = run(folder / "suite.toml")
    failed = whole.failed_frame()
    assert failed[["set", "model", "state"]].to_numpy().tolist() == [
        ["set1", "model0", "missing"],
        ["set2", "model1", "empty"],
        ["set3", "model1", "broken"],
        ["set4", "model0", "missing"],
        ["set4", "model1", "missing"],
    ]
    assert (failed["counts_as"] == 0).all()
    assert (whole.values == 0).sum() == 5
    left = whole.values[[0, 2, 3, 4, 5], 0]
    assert failed["price"].iloc[0] == pytest.approx(left.mean() - whole.values[:, 0].mean(), abs=1e-15)
    without = whole.model_frame()["mean_without_failed"].tolist()
    assert without[0] == pytest.approx(whole.values[[0, 2, 3, 5], 0].mean(), abs=1e-15)
    assert whole.model_frame()["failed"].tolist() == [2, 3]
    assert np.isnan(whole.draws).sum() == 0


@pytest.mark.long
def test_kept_cells_are_not_done_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(folder / "suite.toml", keep=folder / "kept")
    done: list[str] = []
    load = running_module.read_detections

    def counted(path: Path, *rest: Any, **options: Any) -> Any:
        done.append(f"{path.parent.name}/{path.stem}")
        return load(path, *rest, **options)

    monkeypatch.setattr(running_module, "read_detections", counted)
    again = run(folder / "suite.toml", keep=folder / "kept")
    assert not done
    assert again.to_json() == first.to_json()
    assert (again.draws == first.draws).all()
    (folder / "kept" / "set3" / "model1.json").unlink()
    # A cell of an older version lacks what was left out.
    older = json.loads((folder / "kept" / "set2" / "model0.json").read_text())
    del older["left_out"]
    (folder / "kept" / "set2" / "model0.json").write_text(json.dumps(older))
    assert run(folder / "suite.toml", keep=folder / "kept").to_json() == first.to_json()
    assert {name.split("/")[0] for name in done} == {"set2", "set3"}
    done.clear()
    rows = json.loads((folder / "data" / "set0" / "model1.json").read_text())
    (folder / "data" / "set0" / "model1.json").write_text(json.dumps(rows[1:]))
    changed = run(folder / "suite.toml", keep=folder / "kept")
    assert {name.split("/")[0] for name in done} == {"set0"}
    assert changed.values[0, 1] != first.values[0, 1]
    done.clear()
    run(folder / "suite.toml", keep=folder / "kept", seed=1)
    assert len(done) == SETS * MODELS


@pytest.mark.long
def test_processes_change_nothing(folder: Path) -> None:
    assert run(folder / "suite.toml", workers=3).to_json() == run(folder / "suite.toml").to_json()


@pytest.mark.long
def test_a_folder_is_a_suite(folder: Path) -> None:
    result = run(folder / "data")
    assert result.sets == [f"set{s}" for s in range(SETS)]
    assert result.models == ["model0", "model1"]
    assert (result.values == run(folder / "suite.toml").values).all()


@pytest.mark.long
def test_sets_are_those_that_patterns_fit(folder: Path) -> None:
    head = TOML.partition("[sets")[0]
    (folder / "found.toml").write_text(head)
    assert [one.name for one in Suite.read(folder / "found.toml").sets] == [f"set{s}" for s in range(SETS)]
    (folder / "data" / "set9").mkdir()
    (folder / "data" / "set9" / "model0.json").write_text("[]")
    result = run(folder / "found.toml")
    assert result.failed_frame()["set"].tolist() == ["set9", "set9"]


def test_a_metric_must_be_of_every_set(folder: Path) -> None:
    (folder / "data" / "set1" / "model0.json").unlink()
    text = TOML.replace('name = "test"', 'name = "test"\nprotocol = "citypersons"')
    (folder / "falls.toml").write_text(text)
    with pytest.raises(InputError, match="metric \\(of set set0\\) must be one of"):
        run(folder / "falls.toml", metric="AP")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[sets.set0]",
            "[sets.set0]\nprotocl = 'coco'",
            "a key must be known. Got sets.set0.protocl; did you mean 'protocol'?",
        ),
        ("[suite]", "[suit]", "a key must be known. Got suit; did you mean 'suite'?"),
        ('group = "small"', "group = 3", "sets.set0.group must be a name or a list of names. Got 3"),
        ('group = "small"', "results = 3", "sets.set0.results must be a table of model = path. Got 3"),
        ('group = "small"', 'results = {other = "x"}', "a model of sets.set0.results must be one of"),
        ("[sets.set0]", '["sets"."../x"]', "a name among the sets must begin with a letter or digit"),
        ('model0 = "data', 'model0 = "" # "data', "models.model0 must be a string that is not empty. Got ''"),
        ('ground_truth = "data/{set}/instances.json"', "", "sets.set0.ground_truth must be given. Got none"),
        (
            'name = "test"',
            'protocol = "cocoo"',
            "sets.set0: protocol must be a known name or a .toml file. Got 'cocoo'",
        ),
    ],
)
def test_errors_name_the_key(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "bad.toml").write_text(TOML.replace(old, new))
    with pytest.raises(boxscore.BoxscoreError) as caught:
        Suite.read(folder / "bad.toml")
    assert str(caught.value).removeprefix(f"{folder / 'bad.toml'}: ").startswith(message), caught.value


PEOPLE: dict[str, Any] = {
    "images": [{"id": 1, "file_name": "1.jpg", "width": 200, "height": 100, "crowdIndex": 0.5}],
    "categories": [{"id": 1, "name": "person"}],
    "annotations": [
        {
            "id": 1,
            "image_id": 1,
            "category_id": 1,
            "bbox": [0, 0, 100, 90],
            "area": 9000,
            "iscrowd": 0,
            "num_keypoints": 14,
            "keypoints": [10, 20, 2] * 14,
        }
    ],
}
MIXED = """
[suite]
ground_truth = "data/{set}/instances.json"
[models]
model0 = "data/{set}/model0.json"
[sets.set0]
[sets.set1]
protocol = "voc2012"
[sets.people]
protocol = "crowdpose"
"""


def test_every_set_by_its_own_protocol(folder: Path) -> None:
    (folder / "data" / "people").mkdir()
    (folder / "data" / "people" / "instances.json").write_text(json.dumps(PEOPLE))
    found = [{"image_id": 1, "category_id": 1, "keypoints": [10, 20, 1] * 14, "score": 0.9}]
    (folder / "data" / "people" / "model0.json").write_text(json.dumps(found))
    (folder / "suite.toml").write_text(MIXED)
    result = run(folder / "suite.toml")
    assert result.to_frame()["metric"].tolist() == ["AP", "mAP", "AP"]
    for s, (name, protocol, key) in enumerate(
        [("set0", "coco", "AP"), ("set1", "voc2012", "mAP"), ("people", "crowdpose", "AP")]
    ):
        paths = (folder / "data" / name / "instances.json", folder / "data" / name / "model0.json")
        assert result.values[s, 0] == boxscore.evaluate(*paths, protocol=protocol)[key] > 0
    assert result.as_dict()["metrics"]["main"] == result.values.mean()
    (folder / "suite.toml").write_text(MIXED.replace("[sets.set1]", '[sets.set1]\nmetric = "AP50"'))
    with pytest.raises(InputError, match=r"suite\.toml: sets\.set1: metric must be one of 'mAP'"):
        run(folder / "suite.toml")
    (folder / "suite.toml").write_text(MIXED.replace("[sets.set0]", '[sets.set0]\nmetric = "AP75"'))
    assert run(folder / "suite.toml").set_metrics == ("AP75", "mAP", "AP")


def test_metrics_that_rise_and_fall_are_not_in_one_table(folder: Path) -> None:
    text = MIXED.partition("[sets.people]")[0].replace("voc2012", "crowdhuman")
    (folder / "suite.toml").write_text(text.replace("[sets.set1]", '[sets.set1]\nmetric = "MR"'))
    with pytest.raises(InputError, match=r"all rise or all fall .* Got AP of set0, and MR of set1; another"):
        run(folder / "suite.toml")


@pytest.mark.slow
def test_a_hundred_sets_of_three_models_within_a_minute(tmp_path: Path) -> None:
    write_sets(tmp_path / "data", sets=100, models=3)
    models = "".join(f'model{m} = "data/{{set}}/model{m}.json"\n' for m in range(3))
    (tmp_path / "suite.toml").write_text(
        f'[suite]\nground_truth = "data/{{set}}/instances.json"\n[models]\n{models}'
    )
    start = time.process_time()
    result = run_suite(Suite.read(tmp_path / "suite.toml"), workers=1)
    assert result.worked.shape == (100, 3)
    assert result.worked.all()
    assert time.process_time() - start < 60


def test_without_models_or_sets(folder: Path) -> None:
    (folder / "none.toml").write_text("[suite]\n")
    with pytest.raises(InputError, match="a suite must have sets"):
        Suite.read(folder / "none.toml")


@pytest.mark.long
def test_the_command_and_its_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "data" / "set1" / "model0.json").unlink()
    suite, out = str(folder / "suite.toml"), folder / "out"
    assert main(["suite", suite, "--resamples", "20", "--report", str(out), "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "Models: AP over 6 sets" in text
    said = "estimate: the mean without the bias of few images; low, high: its 95% interval over images. No"
    assert f"{said} interval: too few images with objects: set0, set1" in " ".join(text.split())
    assert "Differences from model0" in text
    assert "set1  model0  missing" in text
    page = (out / "suite.html").read_text(encoding="utf-8")
    assert '<a href="sets/set0/report.html">' in page
    assert "<script" not in page
    assert "No interval: too few images with objects: set0, set1" in page
    assert "interval over sets excludes 0 exactly then (from 10 data sets on)" in page
    assert (out / "sets" / "set5" / "report.html").is_file()
    for form in ("markdown", "latex", "csv", "json"):
        assert main(["suite", suite, "--resamples", "20", "--output", form, "--quiet"]) == 0
        assert "set5" in capsys.readouterr().out
    assert main(["suite", suite, "--resamples", "20", "--strict", "--quiet"]) == 2


@pytest.mark.long
def test_check_and_history_of_a_suite(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite, made, runs = str(folder / "suite.toml"), str(folder / "suite.json"), str(folder / "runs.jsonl")
    assert main(["suite", suite, "--resamples", "20", "--output", made]) == 0
    bounds = ["--min", "AP=0.3", "model1 AP=0.1", "set0/model0 AP=0.3", "model0 worst=0.1"]
    assert main(["check", "--result", made, *bounds, "--history", runs]) == 0
    assert main(["check", "--result", made, "--min", "model1 AP=0.99"]) == 1
    assert main(["check", "--result", made, "--no-regression", made]) == 0
    capsys.readouterr()
    assert main(["history", runs]) == 0
    assert "AP" in capsys.readouterr().out
