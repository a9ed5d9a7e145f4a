"""Loggers of experiments: what each is given, by stand-ins with the methods of the real ones.

``test_real_loggers.py`` runs the real ones.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
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


class Run(Recorder):
    """A run of W&B, at the row that was last logged to."""

    step = 7

    def __init__(self) -> None:
        super().__init__("define_metric", "config")

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        self.calls.append(("log", (values, step), {}))
        self.step = self.step + 1 if step is None else step


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    module = Recorder()
    module.Table = lambda dataframe: ("table", len(dataframe))  # type: ignore[attr-defined]
    module.Image = lambda figure: ("image", type(figure).__name__)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.mark.usefixtures("wandb")
def test_wandb_gets_one_call_per_step_with_an_axis_of_its_own(evaluation: boxscore.Evaluation) -> None:
    run = Run()
    log_evaluation(evaluation, run, step=3, classes=True, figures=["errors"])
    ((values, row),) = run.given("log")
    assert row == 7  # the row of W&B, whatever the step
    assert values["val/step"] == 3
    assert values["val/AP"] == evaluation["AP"]
    assert values["val/per_class_table"] == ("table", 2)
    assert values["val/errors"] == ("image", "Figure")
    axes = {values[0]: named for name, values, named in run.calls if name == "define_metric"}
    names = {*evaluation.flat(prefix="val"), "val/per_class/*"}
    assert axes == {"val/step": {"hidden": True}} | {name: {"step_metric": "val/step"} for name in names}


@pytest.mark.usefixtures("wandb")
def test_wandb_rows(evaluation: boxscore.Evaluation) -> None:
    """A second epoch in the row of the first begins a row; another prefix does not."""
    run = Run()
    for step, prefix in ((0, "val"), (0, "test"), (1, "val"), (2, "val"), (2, "test")):
        log_evaluation(evaluation, run, step=step, prefix=prefix)
    log_evaluation(evaluation, run)  # as W&B does it
    assert [values[1:] for values in run.given("log")] == [(7,), (7,), (8,), (9,), (9,), (None,)]
    run.step = 20
    log_evaluation(evaluation, run, step=3)
    assert run.given("log")[-1][1] == 20


def lightning(experiment: Any) -> Recorder:
    logger = Recorder("log_metrics", "log_hyperparams")
    logger.experiment = experiment  # type: ignore[attr-defined]
    return logger


def test_lightning_passes_on(evaluation: boxscore.Evaluation) -> None:
    writer = tensorboard()
    log_evaluation(evaluation, lightning(writer), step=1)
    assert writer.given("add_scalar")


def test_a_logger_of_numbers_gets_numbers_and_says_so_once(
    evaluation: boxscore.Evaluation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class OnlyNumbers(Recorder):
        experiment = object()

    plain = OnlyNumbers("log_metrics", "log_hyperparams")
    monkeypatch.setattr(type(evaluation), "plot", None)  # nothing is drawn for it
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in (1, 2):
            log_evaluation(evaluation, plain, step=step, figures=True, images=tmp_path)
    assert [str(each.message) for each in caught] == [
        "OnlyNumbers does not take table: the per-class table is not logged; table=False leaves it out "
        "without this warning.",
        "OnlyNumbers does not take figures: figures are neither drawn nor logged; Evaluation.plot draws them.",
        "OnlyNumbers does not take images: images are not logged; W&B takes them.",
    ]
    assert {warning.filename for warning in caught} == {__file__}
    values, step = plain.given("log_metrics")[1]
    assert (list(values), step) == (list(evaluation.flat(prefix="val")), 2)


def test_other_ranks_log_and_draw_nothing(
    evaluation: boxscore.Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StandIn:
        """Lightning's experiment on the ranks that do not log: it has every method."""

        def __getattr__(self, name: str) -> Any:
            return lambda *values, **named: None

    monkeypatch.setattr(type(evaluation), "plot", None)
    numbers = log_evaluation(evaluation, lightning(StandIn()), step=1, figures=True)
    assert list(numbers) == list(evaluation.flat(prefix="val"))


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
