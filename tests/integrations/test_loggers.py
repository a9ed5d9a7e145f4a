"""Loggers of experiments: what each is given, by stand-ins with the methods of the real ones.

``make frameworks`` runs the real ones.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.integrations.loggers import FIGURES, log_evaluation


class Recorder:
    """Has some methods, and records their calls."""

    def __init__(self, *names: str) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        for name in names:
            setattr(self, name, self._recording(name))

    def _recording(self, name: str) -> Any:
        return lambda *values, **named: self.calls.append((name, values, named))

    def given(self, name: str) -> list[tuple[Any, ...]]:
        return [(*values, *named.values()) for each, values, named in self.calls if each == name]


@pytest.fixture(scope="module")
def evaluation() -> boxscore.Evaluation:
    boxes = [[0, 0, 40, 40], [50, 50, 90, 90]]
    truth = boxscore.GroundTruth.from_arrays([1, 1], [1, 2], boxes, categories={1: "cat", 2: "a|b"})
    found = boxscore.Detections.from_arrays([1, 1], [1, 2], boxes, [0.9, 0.5], categories=truth.categories)
    return boxscore.evaluate(truth, found, digest=False)


def tensorboard() -> Recorder:
    return Recorder("add_scalar", "add_text", "add_figure")


def test_tensorboard(evaluation: boxscore.Evaluation) -> None:
    writer = tensorboard()
    numbers = log_evaluation(evaluation, writer, step=3, classes=True, figures=True)
    assert numbers == pytest.approx(evaluation.flat(prefix="val", classes=True), nan_ok=True, abs=0)
    logged = {name: (value, step) for name, value, step in writer.given("add_scalar")}
    assert list(logged) == list(numbers)
    assert logged["val/AP"] == (evaluation["AP"], 3)
    ((name, text, step),) = writer.given("add_text")
    assert (name, step) == ("val/per_class_table", 3)
    assert text.splitlines()[0].startswith("| class | ")
    assert r"| a\|b | 1 |" in text
    assert [figure[0] for figure in writer.given("add_figure")] == [f"val/{kind}" for kind in FIGURES]


def test_figures_are_closed(evaluation: boxscore.Evaluation) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    writer = tensorboard()
    log_evaluation(evaluation, writer, figures=["pr_curve"])
    writer.add_figure = None  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        log_evaluation(evaluation, writer, figures=["pr_curve"])
    with pytest.raises(InputError, match="kind must be one of"):
        log_evaluation(evaluation, writer, figures=["pr_curve", "nothing"])
    assert pyplot.get_fignums() == before


def test_mlflow(evaluation: boxscore.Evaluation) -> None:
    module = Recorder("log_metrics", "log_table", "log_figure", "set_tracking_uri")
    log_evaluation(evaluation, module, step=3, figures=["pr_curve"])
    ((values, step),) = module.given("log_metrics")
    assert step == 3
    assert not any(np.isnan(value) for value in values.values())  # MLflow's server refuses them
    assert values["val/AP"] == evaluation["AP"]
    assert [table[1] for table in module.given("log_table")] == ["val/per_class_table-3.json"]
    assert [figure[1] for figure in module.given("log_figure")] == ["val/pr_curve-3.png"]


def test_comet(evaluation: boxscore.Evaluation) -> None:
    experiment = Recorder("log_metrics", "log_table", "log_figure", "log_confusion_matrix")
    log_evaluation(evaluation, experiment, step=3, prefix="test", figures=["errors"])
    ((values, step),) = experiment.given("log_metrics")
    assert (list(values), step) == (list(evaluation.flat(prefix="test")), 3)
    assert experiment.given("log_table")[0][0] == "test-per_class_table-3.csv"
    assert experiment.given("log_figure")[0][0] == "test/errors"


def test_wandb_gets_one_call_per_step(
    evaluation: boxscore.Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Recorder()
    module.Table = lambda dataframe: ("table", len(dataframe))  # type: ignore[attr-defined]
    module.Image = lambda figure: ("image", type(figure).__name__)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    run = Recorder("log", "define_metric", "config")
    log_evaluation(evaluation, run, step=3, figures=["errors"])
    ((values, step),) = run.given("log")
    assert step == 3
    assert values["val/AP"] == evaluation["AP"]
    assert values["val/per_class_table"] == ("table", 2)
    assert values["val/errors"] == ("image", "Figure")


def test_lightning_passes_on(evaluation: boxscore.Evaluation) -> None:
    logger = Recorder("log_metrics", "log_hyperparams")
    logger.experiment = tensorboard()  # type: ignore[attr-defined]
    log_evaluation(evaluation, logger, step=1)
    assert logger.experiment.given("add_scalar")  # type: ignore[attr-defined]
    plain = Recorder("log_metrics", "log_hyperparams")
    plain.experiment = object()  # type: ignore[attr-defined]
    log_evaluation(evaluation, plain, step=1)
    ((values, step),) = plain.given("log_metrics")
    assert (list(values), step) == (list(evaluation.flat(prefix="val")), 1)


@pytest.mark.parametrize("logger", [None, object(), [], print])
def test_anything_else_is_refused(evaluation: boxscore.Evaluation, logger: Any) -> None:
    with pytest.raises(InputError, match="a logger must be of TensorBoard"):
        log_evaluation(evaluation, logger)


def test_no_logger_is_imported() -> None:
    code = (
        "import sys, boxscore.integrations.loggers\n"
        "print({'torch', 'wandb', 'mlflow', 'comet_ml', 'matplotlib', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_real_ones(
    evaluation: boxscore.Evaluation, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that is installed takes numbers, table and figures, and gives the numbers back."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run() as run:
        log_evaluation(evaluation, mlflow, step=3, figures=True)
    client = mlflow.tracking.MlflowClient()
    assert client.get_run(run.info.run_id).data.metrics["val/AP"] == evaluation["AP"]
    assert len(client.list_artifacts(run.info.run_id, "val")) == 1 + len(FIGURES)

    summary = pytest.importorskip("torch.utils.tensorboard")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with summary.SummaryWriter("board") as writer:
        log_evaluation(evaluation, writer, step=3, figures=True)
    events = accumulator.EventAccumulator("board")
    events.Reload()
    assert events.Scalars("val/AP")[0].value == np.float32(evaluation["AP"])
    assert len(events.Tags()["images"]) == len(FIGURES)

    wandb = pytest.importorskip("wandb")
    run = wandb.init(mode="offline", project="boxscore", dir=tmp_path)
    log_evaluation(evaluation, run, step=3, figures=True)
    run.finish()
