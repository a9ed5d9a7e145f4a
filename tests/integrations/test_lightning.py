"""Lightning's callback: it evaluates what the steps return, as an evaluator fed by hand does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning.pytorch")
from framework_batches import batches  # noqa: E402

import boxscore  # noqa: E402
from boxscore import InputError  # noqa: E402
from boxscore.integrations.lightning import DetectionCallback, sides_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

PREDICTIONS, TARGETS = (
    [{key: item[key] for key in ("boxes", "labels", "scores") if key in item} for item in side]
    for side in batches(count=12)
)
for number, target in enumerate(TARGETS):
    target["image_id"] = number


class Module(lightning.LightningModule):
    """A module whose predictions are given, in one of the forms that a step may return."""

    def __init__(self, form: str = "mapping", predictions: Any = PREDICTIONS) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.form, self.given = form, predictions

    def training_step(self, batch: Any, index: int) -> Any:
        return self.layer(torch.ones(1, 1)).sum()

    def validation_step(self, batch: Any, index: int) -> Any:
        images, targets = batch
        predictions = [self.given[image] for image in images]
        return {
            "mapping": {"predictions": predictions, "targets": targets},
            "torchmetrics": {"preds": predictions, "target": targets, "loss": 1.0},
            "pair": (predictions, targets),
            "list": predictions,
            "nothing": None,
        }[self.form]

    test_step = validation_step

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.1)


def loader(count: int = 12) -> Any:
    items = [(number, TARGETS[number]) for number in range(count)]
    return torch.utils.data.DataLoader(
        items, batch_size=5, collate_fn=lambda rows: tuple(zip(*rows, strict=True))
    )


def trainer(folder: Path, *callbacks: Any, **options: Any) -> Any:
    return lightning.Trainer(
        **{"max_epochs": 2, "accelerator": "cpu", "default_root_dir": folder, "logger": False}
        | {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
        | options,
        callbacks=[*callbacks],
    )


def expected(predictions: Any = PREDICTIONS, **options: Any) -> boxscore.Evaluation:
    evaluator = boxscore.Evaluator(**options)
    evaluator.update(predictions, TARGETS)
    return evaluator.compute()


@pytest.mark.parametrize("form", ["mapping", "torchmetrics", "pair", "list"])
def test_numbers_of_an_evaluator(form: str, tmp_path: Path) -> None:
    callback = DetectionCallback(classes=True)
    run = trainer(tmp_path, callback)
    run.fit(Module(form), loader(), loader())
    truth = expected()
    assert 0 < truth["AP"] < 1
    logged = {name: float(value) for name, value in run.callback_metrics.items() if name.startswith("val/")}
    flat = truth.flat(prefix="val", classes=True)
    assert logged == pytest.approx(flat, rel=1e-6, nan_ok=True)  # Lightning keeps float32
    assert callback.evaluations["val"].metrics == pytest.approx(truth.metrics, abs=0, nan_ok=True)
    assert len(callback.evaluations["val"].images) == 12  # neither two epochs nor the sanity check
    run.test(Module(form), loader(), verbose=False)
    assert float(run.callback_metrics["test/AP"]) == pytest.approx(truth["AP"], rel=1e-6)
    assert callback.evaluations.keys() == {"val", "test"}


def test_a_checkpoint_and_a_logger(tmp_path: Path) -> None:
    callbacks = lightning.callbacks
    best = callbacks.ModelCheckpoint(tmp_path, monitor="val/AP", mode="max", filename="best")
    stop = callbacks.EarlyStopping("val/AP50", mode="max", patience=1)
    logger = lightning.loggers.CSVLogger(tmp_path)
    run = trainer(
        tmp_path, DetectionCallback(), best, stop, logger=logger, max_epochs=5, enable_checkpointing=True
    )
    run.fit(Module(), loader(), loader())
    assert Path(best.best_model_path).name == "best.ckpt"
    assert float(best.best_model_score) == pytest.approx(expected()["AP"], rel=1e-6)
    assert run.current_epoch == 2  # it did not improve
    (path,) = tmp_path.rglob("metrics.csv")
    header, *values = (line.split(",") for line in path.read_text().splitlines())
    steps = [dict(zip(header, row, strict=True)) for row in values]
    assert [float(row["val/AP"]) for row in steps if row["val/AP"]] == [expected()["AP"]] * 2


def test_a_diverged_model_does_not_end_the_training(tmp_path: Path) -> None:
    diverged = [dict(item, boxes=item["boxes"] * float("nan")) for item in PREDICTIONS]
    callback = DetectionCallback()
    run = trainer(tmp_path, callback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run.fit(Module(predictions=diverged), loader(), loader())
    assert run.current_epoch == 2
    assert callback.evaluations["val"].metrics == pytest.approx(
        expected(diverged, invalid="false_positive").metrics, nan_ok=True, abs=0
    )
    assert any("NaN" in str(each.message) for each in caught)
    with pytest.raises(InputError):
        trainer(tmp_path, DetectionCallback(invalid="error")).fit(
            Module(predictions=diverged), loader(), loader()
        )


def test_other_forms_and_none(tmp_path: Path) -> None:
    callback = DetectionCallback(read=lambda outputs, batch: (PREDICTIONS[: len(batch[0])], batch[1]))
    trainer(tmp_path, callback).validate(Module("nothing"), loader(5), verbose=False)
    assert len(callback.evaluations["val"].images) == 5
    with pytest.raises(InputError, match=r'validation_step must return \{"predictions": .* Got nothing'):
        trainer(tmp_path, DetectionCallback()).validate(Module("nothing"), loader(), verbose=False)
    with pytest.raises(TypeError, match="speed"):
        DetectionCallback(speed=1)


def test_targets_of_a_batch_of_names() -> None:
    assert sides_of([1], {"images": 0, "targets": [2]}) == ([1], [2])
    assert sides_of({"predictions": [1]}, (0, [2])) == ([1], [2])
    with pytest.raises(InputError):
        sides_of([1], {"images": 0})
