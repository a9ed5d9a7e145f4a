"""Flat metrics, and that experiment trackers take them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from boxscore.reports import flat_metrics
from support.evaluations import evaluation, hostile_evaluation, shapes


def test_metrics_are_flat_floats_under_their_prefix() -> None:
    result = shapes()
    flat = flat_metrics(result, prefix="val/", per_class=True)
    assert flat["val/AP"] == result.metrics["AP"]
    assert flat["val/per_class/AP/circle"] == result.class_values["AP"][result.labels.index("circle")]
    assert all(type(value) is float and math.isfinite(value) for value in flat.values())
    assert "val/per_class/AP/moon" not in flat  # undefined: no ground truth


def test_keys_suit_every_tracker() -> None:
    flat = flat_metrics(hostile_evaluation(), prefix="val/", per_class=True)
    assert len(flat) == 12 + 18
    assert all(re.fullmatch(r"[A-Za-z0-9_./\- ]{1,250}", key) for key in flat)


def test_names_that_become_equal_stay_apart() -> None:
    flat = flat_metrics(evaluation(classes=["a?", "a!", "a_"]), per_class=True)
    assert {f"per_class/AP/{name}" for name in ("a_", "a__2", "a__3")} <= set(flat)


def test_tensorboard_takes_them(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("tensorboardX", reason="pip install tensorboardX")
    flat = flat_metrics(hostile_evaluation(), prefix="val/", per_class=True)
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for key, value in flat.items():
            writer.add_scalar(key, value, global_step=1)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"val/AP50" in stored


@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="pip install mlflow-skinny")
    flat = flat_metrics(hostile_evaluation(), prefix="val/", per_class=True)
    monkeypatch.chdir(tmp_path)
    try:
        mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
        with mlflow.start_run() as run:
            mlflow.log_metrics(flat, step=1)
        stored = mlflow.get_run(run.info.run_id).data.metrics
    except mlflow.exceptions.MlflowException as error:
        if "file store" in str(error).lower() or "filesystem" in str(error).lower():
            pytest.skip(f"this MLflow keeps no local files: {error}")
        raise
    assert stored == pytest.approx(flat)
