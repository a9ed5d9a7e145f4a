"""The folds of a cross-validation: the standard deviation, the corrected interval and test, and bad numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from boxscore.errors import InputError
from boxscore.suite import Suite, SuiteResult, run_suite
from support.running import Run
from support.suites import write_sets

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

FOLDS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("folds")
    write_sets(path, sets=FOLDS, images=24)
    return path


@pytest.fixture(scope="module")
def result(folder: Path) -> SuiteResult:
    return run_suite(Suite.read(folder), folds=FOLDS, resamples=20, workers=1)


def test_means_have_a_standard_deviation_and_a_corrected_interval(folder: Path, result: SuiteResult) -> None:
    frame = result.model_frame()
    np.testing.assert_allclose(frame["sd"], result.values.std(axis=0, ddof=1))
    # Student's t of two degrees of freedom, and 1/3 + 1/2 instead of 1/3.
    estimates = np.array([[cell.left_out[0] for cell in row] for row in result.cells])
    t = 0.95 * np.sqrt(2 / (1 - 0.95**2))
    reach = t * estimates.std(axis=0, ddof=1) * np.sqrt(1 / 3 + 1 / 2)
    # It is the smallest interval that contains this one, and that of the same sets as independent data sets.
    plain = run_suite(Suite.read(folder), resamples=20, workers=1).model_frame()
    np.testing.assert_allclose(frame["low"], np.minimum(frame["estimate"] - reach, plain["low"]), atol=1e-9)
    np.testing.assert_allclose(frame["high"], np.maximum(frame["estimate"] + reach, plain["high"]), atol=1e-9)
    assert "sd" not in plain
    assert frame["mean"].tolist() == plain["mean"].tolist()


def test_differences_are_tested_over_folds(result: SuiteResult) -> None:
    row = result.difference_frame().iloc[0]
    delta = result.values[:, 1] - result.values[:, 0]
    t = delta.mean() / (delta.std(ddof=1) * np.sqrt(1 / 3 + 1 / 2))
    # The distribution function of Student's t with two degrees of freedom has a closed form.
    assert row["p_value"] == pytest.approx(1 - abs(t) / np.sqrt(2 + t * t))
    assert (row["verdict"] == "cannot tell") == (row["p_value"] > 0.05)
    assert (row["low_folds"] <= 0 <= row["high_folds"]) == (row["p_value"] > 0.05)
    assert "t-test over folds" in result.rule
    assert result.as_dict()["folds"] == FOLDS


def test_folds_are_called_folds_and_have_no_interval_of_images(
    folder: Path, tmp_path: Path, run: Run, result: SuiteResult
) -> None:
    """That of images may exclude 0 where the verdict is that of folds."""
    columns = [*result.to_frame(), *result.model_frame(), *result.difference_frame()]
    assert not [name for name in columns if "set" in name or name.endswith("_images")]
    assert {"fold", "worst_fold", "low_folds", "high_folds", "folds_won", "folds_lost"} <= {*columns}
    row = result.difference_frame().iloc[0]
    delta = result.values[:, 1] - result.values[:, 0]
    assert (row["folds_won"], row["folds_lost"]) == ((delta > 0).sum(), (delta < 0).sum())
    printed = run("suite", folder, "--folds", FOLDS, "--wide", "--quiet", "--report", tmp_path / "out").out
    text = (tmp_path / "out" / "suite.html").read_text(encoding="utf-8").partition("<main")[2]
    for shown in (printed, re.sub("<[^>]*>", " ", text)):
        assert not re.search(r"\bsets?\b|_sets?\b", shown)
        assert "over folds" in shown
    # One model is the best on all of them.
    assert [line.split()[9] for line in printed.splitlines() if line.startswith("model0 ")] == [str(FOLDS)]


def test_shared_wins_have_decimals(tmp_path: Path, run: Run) -> None:
    write_sets(tmp_path, sets=FOLDS, images=24)
    (tmp_path / "set1" / "model1.json").write_bytes((tmp_path / "set1" / "model0.json").read_bytes())
    printed = run("suite", tmp_path, "--folds", FOLDS, "--wide", "--quiet", "--show", "model", "wins").out
    assert [line.split() for line in printed.splitlines() if line.startswith("model")] == [
        ["model", "wins"],
        ["model0", "2.50"],
        ["model1", "0.50"],
    ]


def test_a_missing_fold_leaves_no_interval_and_no_verdict(tmp_path: Path) -> None:
    write_sets(tmp_path, sets=FOLDS, images=24)
    (tmp_path / "set1" / "model1.json").unlink()
    result = run_suite(Suite.read(tmp_path), folds=FOLDS, resamples=5, workers=1)
    frame, difference = result.model_frame(), result.difference_frame().iloc[0]
    assert np.isfinite(frame["low"][0])
    assert np.isnan(frame.loc[1, ["sd", "low", "high"]].tolist()).all()
    assert frame["sd"][0] == pytest.approx(result.values[:, 0].std(ddof=1))
    assert np.isnan(difference["p_value"])
    assert difference["verdict"] == "cannot tell"
    assert "folds without a result: model1" in result.interval_note


def test_equal_models_are_equal(tmp_path: Path) -> None:
    write_sets(tmp_path, sets=FOLDS, images=24)
    for path in tmp_path.glob("*/model1.json"):
        path.write_bytes((path.parent / "model0.json").read_bytes())
    row = run_suite(Suite.read(tmp_path), folds=FOLDS, resamples=5, workers=1).difference_frame().iloc[0]
    assert (row["delta"], row["p_value"], row["verdict"]) == (0, 1, "cannot tell")


def test_repeated_rounds_are_wider_than_as_many_folds(tmp_path: Path) -> None:
    """Two rounds score each image twice: standard errors over images are those of half as many."""
    write_sets(tmp_path, sets=6, images=24)
    suite = Suite.read(tmp_path)
    six, twice = (run_suite(suite, folds=folds, resamples=5, workers=1) for folds in (6, 3))
    wide, narrow = twice.model_frame(), six.model_frame()
    times = (wide["high"] - wide["low"]) / (narrow["high"] - narrow["low"])
    assert ((times > 1) & (times < np.sqrt(2) + 1e-9)).all()


def test_folds_in_the_file_and_wrong_numbers(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[suite]\nground_truth = "{set}/instances.json"\nfolds = 3\n[models]\na = "{set}/model0.json"\n'
    (folder.parent / f"{folder.name}.toml").write_text(text.replace("{set}", f"{folder.name}/{{set}}"))
    path = folder.parent / f"{folder.name}.toml"
    assert Suite.read(path).folds == FOLDS
    monkeypatch.setenv("COLUMNS", "80")
    said = " ".join(run("suite", path, "--resamples", 5).out.split())
    assert "AP over 3 folds sd: standard deviation over folds" in said
    assert "model mean sd estimate low high" in said
    value = json.loads(run("suite", path, "--resamples", 5, "--output", "json").out)
    assert {"mean", "sd", "low", "high"} <= value["models"][0].keys()
    assert "multiple of the 4 folds. Got 3" in run.error("suite", folder, "--folds", 4)
    assert "at least 3" in " ".join(run("suite", "--help").out.split())
    assert "1 more option in boxscore suite --help-all" in run("suite", "--help").out
    for wrong in (2, 0, "three"):
        with pytest.raises(InputError, match="folds must be a whole number"):
            Suite.read(folder).of_folds(wrong)  # type: ignore[arg-type]


def test_a_file_of_folds_without_sets(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "suite.toml"
    path.write_text('[suite]\nground_truth = "{set}/gt.json"\nfolds = 3\n[models]\na = "{set}/a.json"\n')
    for options in ((), ("--folds", 3)):
        error = run.error("suite", path, *options)
        assert f"a suite must have sets. Got none in {path}; a table [sets.NAME] adds one" in error
    path.write_text(path.read_text().replace("folds = 3", "folds = 1"))
    assert "suite.folds must be a whole number >= 3. Got 1" in run.error("suite", path)


def test_the_page_states_the_rule(folder: Path, tmp_path: Path) -> None:
    run_suite(Suite.read(folder), folds=FOLDS, resamples=5, workers=1, report=tmp_path / "out")
    assert "t-test over folds" in (tmp_path / "out" / "suite.html").read_text(encoding="utf-8")
