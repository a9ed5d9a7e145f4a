"""Loggers of experiments, the real ones: each that is installed gives back what it was given.

``make frameworks`` installs and runs them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.integrations.loggers import FIGURES, MOST_BOXES, log_evaluation

pytestmark = pytest.mark.filterwarnings("ignore")

CLASSES = {1: "cat", 2: "traffic light", 3: "AP"}


@pytest.fixture(scope="module")
def evaluation() -> boxscore.Evaluation:
    """Four images: right, missed, false, and empty."""
    boxes = np.array([[0.0, 0, 40, 40], [50, 50, 90, 90.5], [5, 5, 20, 20], [1, 2, 9, 30]])
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1, 2, 2], [1, 2, 3, 1], boxes, categories=CLASSES, images=[1, 2, 3, 4]
    )
    found = boxscore.Detections.from_arrays(
        [1, 1, 3], [1, 2, 1], boxes[:3], [0.9, 0.5, 0.8], categories=CLASSES, images=[1, 2, 3, 4]
    )
    return boxscore.evaluate(truth, found, digest=False)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    for number in (1, 2, 3):
        image.new("RGB", (100, 100)).save(folder / f"{number}.png")
    return folder


# ---------------------------------------------------------------- W&B, without a network


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    module = pytest.importorskip("wandb")
    for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    module.teardown()  # of another test, which was set up without these
    yield module
    module.teardown()


def rows(module: Any, folder: Path) -> list[dict[str, Any]]:
    """Read the rows of a finished run from its file: blocks of 32 KiB after a header of 7 bytes."""
    module.teardown()
    record = pytest.importorskip("wandb.proto.wandb_internal_pb2").Record
    (path,) = folder.rglob("*.wandb")
    deadline = time.monotonic() + 30
    while path.stat().st_size < 1000 and time.monotonic() < deadline:
        time.sleep(0.1)
    data, at, parts, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left = (1 << 15) - at % (1 << 15)
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        if left < 7 or not kind:
            at += left
            continue
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            read, parts = record.FromString(parts), b""
            if read.WhichOneof("record_type") == "history":
                items = read.history.item
                found.append({"/".join(item.nested_key) or item.key: item.value_json for item in items})
    return [{key: json.loads(value) for key, value in row.items()} for row in found]


def test_wandb_loses_nothing_after_batches(
    evaluation: boxscore.Evaluation, wandb: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = wandb.init(project="boxscore", dir=tmp_path)
    for epoch in range(3):
        for batch in range(5):
            run.log({"loss": float(batch)})
        log_evaluation(evaluation, run, step=epoch, classes=True, figures=["errors"])
    summary = dict(run.summary)
    run.finish()
    logged = rows(wandb, tmp_path)
    assert [row["loss"] for row in logged if "loss" in row] == [*map(float, range(5))] * 3
    evaluated = [row for row in logged if "val/AP" in row]
    assert [row["val/step"] for row in evaluated] == [0, 1, 2]
    numbers = evaluation.flat(prefix="val", classes=True)
    for name, value in numbers.items():
        assert [row[name] for row in evaluated] == pytest.approx([value] * 3, abs=0, nan_ok=True)
    assert {*numbers, "val/errors", "val/per_class_table"} <= summary.keys()
    assert "less than the current step" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("way", ["evaluations only", "steps of the user", "the module"])
def test_wandb_loses_nothing_in_other_loops(
    way: str, evaluation: boxscore.Evaluation, wandb: Any, tmp_path: Path
) -> None:
    run = wandb.init(project="boxscore", dir=tmp_path)
    for step in range(0, 300, 100):
        if way == "steps of the user":
            run.log({"loss": 1.0}, step=step)
        for prefix in ("val", "test"):
            log_evaluation(evaluation, wandb if way == "the module" else run, step=step, prefix=prefix)
        if way == "steps of the user":
            run.log({"rate": 0.1}, step=step)
    run.finish()
    logged = rows(wandb, tmp_path)
    for prefix in ("val", "test"):
        assert [row[f"{prefix}/step"] for row in logged if f"{prefix}/AP" in row] == [0, 100, 200]
    if way == "steps of the user":
        assert [(row["_step"], row["loss"], row["rate"]) for row in logged] == [
            (step, 1, 0.1) for step in (0, 100, 200)
        ]


def test_wandb_shows_boxes_in_a_table(
    evaluation: boxscore.Evaluation, wandb: Any, tmp_path: Path, pictures: Path
) -> None:
    logged: list[dict[str, Any]] = []
    run = wandb.init(project="boxscore", dir=tmp_path)
    run.log = lambda values, **named: logged.append(values)
    log_evaluation(evaluation, run, step=0, images=pictures)
    array = np.zeros((100, 100, 3), dtype=np.uint8)
    log_evaluation(evaluation, run, step=0, images={4: array, 1: pictures / "1.png"})
    with pytest.raises(InputError, match=r"images must have ids of evaluated images. Got 9"):
        log_evaluation(evaluation, run, images={9: array})
    with pytest.raises(InputError, match="images must be a folder with the evaluated images"):
        log_evaluation(evaluation, run, images=tmp_path / "nowhere")
    of_folder, given = (values["val/images"] for values in logged)
    assert of_folder.columns == ["image_id", "image", "false_positives", "missed", "true_positives"]
    # Two missed, one false, then the right one; image 4 has no picture.
    assert [[row[0], *row[2:]] for row in of_folder.data] == [[2, 0, 2, 0], [3, 1, 0, 0], [1, 0, 0, 2]]
    assert [row[0] for row in given.data] == [4, 1]
    # What its page reads: the files of an artifact with this table.
    artifact = wandb.Artifact("table", type="table")
    artifact.add(of_folder, "table")
    stored = json.loads(Path(artifact.manifest.entries["table.table.json"].local_path).read_text())
    image = stored["data"][2][1]
    assert image["_type"] == "image-file"
    assert {*image["boxes"]} == {"predictions", "ground_truth"}
    box, other = image["boxes"]["predictions"]
    assert box["position"] == {"minX": 0, "minY": 0, "maxX": 40, "maxY": 40}
    assert (box["domain"], box["class_id"], box["scores"]) == ("pixel", 0, {"score": 0.9})
    assert other["box_caption"] == "traffic light 0.50"
    classes = json.loads(Path(artifact.manifest.entries[image["classes"]["path"]].local_path).read_text())
    assert {each["id"]: each["name"] for each in classes["class_set"]} == dict(enumerate(CLASSES.values()))
    run.finish()


def test_the_surest_boxes_are_shown(wandb: Any, tmp_path: Path) -> None:
    count = MOST_BOXES + 50
    boxes = np.tile([[1.0, 2, 30, 40]], (count, 1))
    scores = np.random.default_rng(3).permutation(count) / count
    truth = boxscore.GroundTruth.from_arrays(["a"], [1], boxes[:1], categories=CLASSES)
    found = boxscore.Detections.from_arrays(["a"] * count, [1] * count, boxes, scores, categories=CLASSES)
    evaluation = boxscore.evaluate(truth, found, digest=False)
    logged: list[dict[str, Any]] = []
    run = wandb.init(project="boxscore", dir=tmp_path)
    run.log = lambda values, **named: logged.append(values)
    log_evaluation(evaluation, run, images={"a": np.zeros((50, 50, 3), dtype=np.uint8)})
    image = logged[0]["val/images"].data[0][1]
    shown = [box["scores"]["score"] for box in image._boxes["predictions"]._val]
    assert shown == sorted(scores.tolist(), reverse=True)[:MOST_BOXES]
    run.finish()


# ---------------------------------------------------------------- MLflow


@pytest.fixture(params=["file store", "sqlite"])
def mlflow(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    stores = {"file store": (tmp_path / "runs").as_uri(), "sqlite": f"sqlite:///{tmp_path}/runs.db"}
    module.set_tracking_uri(stores[request.param])
    yield module
    module.set_tracking_uri("")


def check_mlflow(module: Any, run: str, evaluation: boxscore.Evaluation, steps: list[int]) -> None:
    """Check that the store has every defined number, the table and the figures of each step."""
    client = module.tracking.MlflowClient()
    numbers = evaluation.flat(prefix="val", classes=True)
    stored = client.get_run(run).data.metrics
    assert stored == {name: value for name, value in numbers.items() if value == value}
    assert len(stored) < len(numbers)  # an undefined one is not sent
    assert [each.step for each in client.get_metric_history(run, "val/per_class/AP/cat")] == steps
    files = {file.path for file in client.list_artifacts(run, "val")}
    names = {f"{kind}-{step}.png" for kind in FIGURES for step in steps}
    assert files == {f"val/{name}" for name in names | {f"per_class_table-{step}.json" for step in steps}}


def test_mlflow(evaluation: boxscore.Evaluation, mlflow: Any) -> None:
    with mlflow.start_run() as run:
        for step in (0, 1):
            log_evaluation(evaluation, mlflow, step=step, classes=True, figures=True)
    check_mlflow(mlflow, run.info.run_id, evaluation, [0, 1])


def test_mlflow_logger_of_lightning(evaluation: boxscore.Evaluation, mlflow: Any) -> None:
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.MLFlowLogger(tracking_uri=mlflow.get_tracking_uri())
    for step in (0, 1):
        log_evaluation(evaluation, logger, step=step, classes=True, figures=True)
    check_mlflow(mlflow, logger.run_id, evaluation, [0, 1])


def test_mlflow_takes_more_classes_than_a_request(mlflow: Any) -> None:
    """LVIS has 1,203; MLflow takes 1,000 numbers at a time."""
    names = {number: f"class {number}" for number in range(1203)}
    boxes = np.tile([[1.0, 2, 30, 40]], (len(names), 1))
    ones = np.ones(len(names), dtype=int)
    truth = boxscore.GroundTruth.from_arrays(ones, list(names), boxes, categories=names)
    found = boxscore.Detections.from_arrays(ones, list(names), boxes, ones / 2, categories=names)
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.MLFlowLogger(tracking_uri=mlflow.get_tracking_uri())
    log_evaluation(boxscore.evaluate(truth, found, digest=False), logger, classes=True, table=False)
    stored = mlflow.tracking.MlflowClient().get_run(logger.run_id).data.metrics
    assert stored["val/per_class/AP/class_1202"] == pytest.approx(1)


# ---------------------------------------------------------------- TensorBoard, and Lightning's others


def test_tensorboard(evaluation: boxscore.Evaluation, tmp_path: Path) -> None:
    summary = pytest.importorskip("torch.utils.tensorboard")
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with summary.SummaryWriter(str(tmp_path)) as writer:
        log_evaluation(evaluation, writer, step=3, figures=True)
    events = accumulator.EventAccumulator(str(tmp_path))
    events.Reload()
    assert events.Scalars("val/AP")[0].value == np.float32(evaluation["AP"])
    assert len(events.Tags()["images"]) == len(FIGURES)


def test_wandb_logger_of_lightning(evaluation: boxscore.Evaluation, wandb: Any, tmp_path: Path) -> None:
    """Lightning gives every name an axis of its own, the global step; ``val/loss`` keeps it."""
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.WandbLogger(project="boxscore", save_dir=tmp_path, offline=True)
    for step in (10, 20):
        logger.log_metrics({"val/loss": 1.0}, step=step)
        log_evaluation(evaluation, logger, step=step)
    logger.experiment.finish()
    logged = rows(wandb, tmp_path)
    assert [row["val/step"] for row in logged if "val/AP" in row] == [10, 20]
    assert [row["trainer/global_step"] for row in logged if "val/loss" in row] == [10, 20]


def test_csv_logger_of_lightning(evaluation: boxscore.Evaluation, tmp_path: Path) -> None:
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.CSVLogger(tmp_path)
    log_evaluation(evaluation, logger, step=5, classes=True)
    logger.save()
    (path,) = tmp_path.rglob("metrics.csv")
    header, values = (line.split(",") for line in path.read_text().splitlines())
    stored = dict(zip(header, values, strict=True))
    assert float(stored["val/per_class/AP/cat"]) == evaluation.class_values["AP"][0]
