"""Log metrics, figures and the per-class table to TensorBoard, W&B, MLflow, Comet and Lightning's loggers.

Conventions
-----------
- A logger is recognized by its methods; no logging library is imported before one of its objects is given.
- Each step is logged in one call: W&B and others merge or drop a second one.
- Figures, tables and images are only made for a logger that takes them; a warning names the others once.
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boxscore.errors import BoxscoreWarning, InputError

if TYPE_CHECKING:
    from boxscore.evaluation import Evaluation

FIGURES = ("pr_curve", "per_class", "confusion_matrix", "errors")
"""Kinds of :meth:`boxscore.Evaluation.plot` that ``figures=True`` draws."""


MOST_IMAGES, MOST_BOXES = 16, 100
"""Images that ``images`` logs from a folder, and detections in each, by descending score."""


class _Content(NamedTuple):
    """The content to log at a step."""

    numbers: Mapping[str, float]
    table: Any
    """The per-class table, a DataFrame; None to leave it out."""
    figures: Mapping[str, Any]
    images: Sequence[_Image]
    """Images with their boxes; empty to leave them out."""
    labels: Sequence[str]
    step: int | None
    prefix: str


class _Image(NamedTuple):
    """An image with its boxes."""

    id: Any
    picture: Any
    """A path, an array, a tensor or an image of Pillow."""
    counts: Sequence[int]
    """False positives and missed objects at the score of the best F1, and true positives."""
    detections: Sequence[tuple[Sequence[float], int, float | None]]
    """Corners [x1, y1, x2, y2], class row and score of each detection."""
    objects: Sequence[tuple[Sequence[float], int, float | None]]


class _Way(NamedTuple):
    """How to write to a kind of logger."""

    write: Callable[[Any, _Content], None]
    takes: Collection[str]
    """Which of ``table``, ``figures`` and ``images`` it takes."""


def log_evaluation(
    evaluation: Evaluation,
    logger: Any,
    *,
    step: int | None = None,
    prefix: str = "val",
    classes: bool | Sequence[str] = False,
    table: bool = True,
    figures: bool | Sequence[str] = False,
    images: str | Path | Mapping[Any, Any] | None = None,
) -> dict[str, float]:
    """Log an evaluation at a step.

    Parameters
    ----------
    evaluation : Evaluation
    logger : object
        A ``SummaryWriter`` of TensorBoard, a run of W&B or the module ``wandb``, the module ``mlflow``, an
        ``Experiment`` of Comet, or a logger of Lightning.
    step : int, optional
        Global step, or epoch. In W&B it is an axis of its own, ``val/step``, which may be behind the steps
        of other calls.
    prefix : str, default "val"
        Prefix of every name: ``val/AP``.
    classes : bool or sequence of str, default False
        Also log metrics of each class, as in :meth:`boxscore.Evaluation.flat`.
    table : bool, default True
        Log the per-class table: as text in TensorBoard, as a file in MLflow.
    figures : bool or sequence of str, default False
        Kinds of :meth:`boxscore.Evaluation.plot`; True for :data:`FIGURES`. Needs matplotlib.
    images : str, Path or mapping of image id to picture, optional
        Only W&B: log a table of images with detections and objects as boxes. From a folder, the images with
        the most mistakes; a picture is a path, an array [H, W, 3], a tensor [3, H, W] or an image of Pillow.

    Returns
    -------
    dict of str to float
        The logged numbers.

    Raises
    ------
    InputError
        When the logger is not supported.
    """
    way = _way(logger)
    if way is None:
        return evaluation.flat(prefix=prefix, classes=classes)
    wanted = {"table": bool(table), "figures": bool(figures), "images": images is not None}
    for name in [name for name, asked in wanted.items() if asked and name not in way.takes]:
        wanted[name] = False
        _warn_not_taken(type(logger).__name__, name)
    kinds = figures if not isinstance(figures, bool) else _figures(evaluation)
    content = _Content(
        evaluation.flat(prefix=prefix, classes=classes),
        evaluation.per_class if wanted["table"] else None,
        {},
        _images(evaluation, images) if images is not None and wanted["images"] else (),
        evaluation.labels,
        step,
        prefix,
    )
    drawn: dict[str, Any] = {}
    try:
        for kind in kinds if wanted["figures"] else ():
            drawn[f"{prefix}/{kind}"] = evaluation.plot(kind)
        way.write(logger, content._replace(figures=drawn))
    finally:
        _close(drawn.values())
    return dict(content.numbers)


def _way(logger: Any) -> _Way | None:
    """Return how to write to a logger, chosen by the methods that only this logger has."""
    known = [way for names, way in _WAYS if all(hasattr(logger, name) for name in names)]
    # An object with every method is Lightning's dummy on the other ranks: it logs nothing.
    if len(known) == len(_WAYS):
        return None
    if known:
        return known[0]
    if hasattr(logger, "experiment") and hasattr(logger, "log_hyperparams"):  # Lightning's
        experiment = logger.experiment
        try:
            way = _way(experiment)
        except InputError:
            is_mlflow = all(hasattr(experiment, name) for name in ("log_batch", "log_table", "log_figure"))
            return _Way(_mlflow_of_lightning, ("table", "figures")) if is_mlflow else _Way(_numbers, ())
        return way and way._replace(write=lambda _, content: way.write(experiment, content))
    raise InputError(
        "a logger",
        "be of TensorBoard, W&B, MLflow, Comet or Lightning",
        got=f"a {type(logger).__name__}",
        cause="Evaluation.flat gives the numbers as a dictionary for any other",
    )


def _numbers(logger: Any, content: _Content) -> None:
    """Write to a logger of Lightning that takes nothing else, such as ``CSVLogger``."""
    logger.log_metrics(dict(content.numbers), content.step)


def _tensorboard(writer: Any, content: _Content) -> None:
    for key, value in content.numbers.items():
        writer.add_scalar(key, value, content.step)
    if content.table is not None:
        writer.add_text(_table_name(content), _markdown(content.table), content.step)
    for key, figure in content.figures.items():
        writer.add_figure(key, figure, content.step, close=False)


def _wandb(run: Any, content: _Content) -> None:
    import wandb

    values: dict[str, Any] = dict(content.numbers)
    if content.table is not None:
        values[_table_name(content)] = wandb.Table(dataframe=content.table)
    values |= {key: wandb.Image(figure) for key, figure in content.figures.items()}
    if content.images:
        values[f"{content.prefix}/images"] = _wandb_images(content)
    if content.step is None:
        run.log(values)
        return
    # W&B drops what is logged at an earlier step than the last call, such as an epoch after batches: log the
    # step as a value, as the axis of the numbers, and stay in W&B's current row.
    axis = f"{content.prefix}/step"
    run.define_metric(axis, hidden=True)
    of_classes = f"{content.prefix}/per_class/"
    names = (f"{of_classes}*" if key.startswith(of_classes) else key for key in content.numbers)
    for name in dict.fromkeys(names):
        run.define_metric(name, step_metric=axis)
    # A second step in the same row would replace the first: begin a row.
    run = run.run if isinstance(run, ModuleType) else run
    current = run.step
    at, steps = _rows.get(run, (-1, {}))
    if at >= current and steps.get(axis, content.step) != content.step:
        current, steps = at + 1, {}
    _rows[run] = current, (steps if at == current else {}) | {axis: content.step}
    run.log(values | {axis: content.step}, step=current)


_rows: weakref.WeakKeyDictionary[Any, tuple[int, dict[str, int]]] = weakref.WeakKeyDictionary()
"""W&B's row of the last step logged to each run, and the value of each axis in it."""


def _wandb_images(content: _Content) -> Any:
    """Return W&B's table of images with boxes, which its page shows by class and above a score."""
    import wandb

    names = dict(enumerate(content.labels))
    classes = wandb.Classes([{"id": row, "name": name} for row, name in names.items()])
    table = wandb.Table(columns=["image_id", "image", "false_positives", "missed", "true_positives"])
    for image in content.images:
        sides = {"predictions": image.detections, "ground_truth": image.objects}
        boxes = {
            side: {"box_data": [_wandb_box(row, names) for row in rows], "class_labels": names}
            for side, rows in sides.items()
        }
        table.add_data(image.id, wandb.Image(image.picture, boxes=boxes, classes=classes), *image.counts)
    return table


def _wandb_box(row: tuple[Sequence[float], int, float | None], names: Mapping[int, str]) -> dict[str, Any]:
    corners, category, score = row
    box: dict[str, Any] = {
        "position": dict(zip(("minX", "minY", "maxX", "maxY"), corners, strict=True)),
        "domain": "pixel",
        "class_id": category,
        "box_caption": names[category],
    }
    if score is not None:
        box |= {"box_caption": f"{names[category]} {score:.2f}", "scores": {"score": score}}
    return box


def _mlflow(module: Any, content: _Content) -> None:
    module.log_metrics(_defined(content), step=content.step)
    _mlflow_files(content, module.log_table, module.log_figure)


def _mlflow_of_lightning(logger: Any, content: _Content) -> None:
    """Write to ``MLFlowLogger``, whose client takes what the module takes, with the id of the run."""
    from mlflow.entities import Metric

    client, run, now = logger.experiment, logger.run_id, int(1000 * time.time())
    metrics = [Metric(key, value, now, content.step or 0) for key, value in _defined(content).items()]
    client.log_batch(run, metrics=metrics)
    log_table, log_figure = (functools.partial(log, run) for log in (client.log_table, client.log_figure))
    _mlflow_files(content, log_table, log_figure)


def _defined(content: _Content) -> dict[str, float]:
    """Return the numbers without NaN, which MLflow rejects."""
    return {key: value for key, value in content.numbers.items() if value == value}


def _mlflow_files(content: _Content, log_table: Callable[..., Any], log_figure: Callable[..., Any]) -> None:
    at = "" if content.step is None else f"-{content.step}"
    if content.table is not None:
        log_table(content.table, f"{_table_name(content)}{at}.json")
    for key, figure in content.figures.items():
        log_figure(figure, f"{key}{at}.png")


def _comet(experiment: Any, content: _Content) -> None:
    experiment.log_metrics(dict(content.numbers), step=content.step)
    at = "" if content.step is None else f"-{content.step}"
    if content.table is not None:
        experiment.log_table(f"{_table_name(content).replace('/', '-')}{at}.csv", content.table)
    for key, figure in content.figures.items():
        experiment.log_figure(figure_name=key, figure=figure, step=content.step)


_WAYS: Sequence[tuple[Sequence[str], _Way]] = (
    (("add_scalar", "add_text", "add_figure"), _Way(_tensorboard, ("table", "figures"))),
    (("log_metrics", "log_table", "log_confusion_matrix"), _Way(_comet, ("table", "figures"))),
    (("log_metrics", "log_table", "log_figure", "set_tracking_uri"), _Way(_mlflow, ("table", "figures"))),
    (("log", "define_metric", "config"), _Way(_wandb, ("table", "figures", "images"))),
)
"""Methods that identify a logger, and how to write to it."""

_NOT_TAKEN = {
    "table": "the per-class table is not logged; table=False leaves it out without this warning",
    "figures": "figures are neither drawn nor logged; Evaluation.plot draws them",
    "images": "images are not logged; W&B takes them",
}
_warned: set[tuple[str, str]] = set()


def _warn_not_taken(logger: str, name: str) -> None:
    """Warn that a logger cannot take something, once per kind of logger: loops log every epoch."""
    if (logger, name) not in _warned:
        _warned.add((logger, name))
        text = f"{logger} does not take {name}: {_NOT_TAKEN[name]}."
        warnings.warn(text, BoxscoreWarning, stacklevel=3)


def _table_name(content: _Content) -> str:
    return f"{content.prefix}/per_class_table"


def _images(evaluation: Evaluation, given: str | Path | Mapping[Any, Any]) -> list[_Image]:
    """Return the given images, or those of a folder with the most mistakes, with their boxes."""
    from boxscore.extensions.pages.choices import image_errors
    from boxscore.extensions.pages.pictures import find_picture

    counts = image_errors(evaluation, evaluation.operating_score)
    ids = evaluation.ground_truth.images.ids.tolist()
    # Choose images, by row, and their pictures.
    if isinstance(given, Mapping):
        rows = {identifier: row for row, identifier in enumerate(ids)}
        if unknown := [identifier for identifier in given if identifier not in rows]:
            raise InputError("images", "have ids of evaluated images", got=repr(unknown[0]))
        pictures = {rows[identifier]: picture for identifier, picture in given.items()}
    else:
        order = np.argsort(-(counts[:, 0] + counts[:, 1]), kind="stable").tolist()
        paths = ((row, find_picture(evaluation, row, Path(given))) for row in order)
        found = ((row, str(path)) for row, path in paths if path is not None)
        pictures = dict(itertools.islice(found, MOST_IMAGES))
        if not pictures:
            rule, cause = "be a folder with the evaluated images", "files are named by file name or id"
            raise InputError("images", rule, got=repr(str(given)), cause=cause)
    # Add the boxes of both sides.
    return [
        _Image(
            ids[row],
            picture,
            counts[row].tolist(),
            _boxes_of(evaluation.detections, row),
            _boxes_of(evaluation.ground_truth, row),
        )
        for row, picture in pictures.items()
    ]


def _boxes_of(table: Any, image: int) -> list[tuple[Sequence[float], int, float | None]]:
    """Return corners, class row and score of the boxes of an image, by descending score."""
    rows = np.flatnonzero(table.image == image)
    scores = getattr(table, "scores", None) if getattr(table, "scored", False) else None
    if scores is not None:
        rows = rows[np.argsort(-scores[rows], kind="stable")][:MOST_BOXES]
    corners = table.boxes[rows]
    rows, corners = rows[finite := np.isfinite(corners).all(axis=1)], corners[finite]
    of_row = [None] * len(rows) if scores is None else scores[rows].tolist()
    return list(zip(corners.tolist(), table.category[rows].tolist(), of_row, strict=True))


def _markdown(frame: Any) -> str:
    """Return a table in Markdown, numbers to four digits."""
    columns = [str(column).replace("|", r"\|") for column in frame.columns]
    lines = [columns, ["---"] * len(columns)]
    for row in frame.itertuples(index=False):
        cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        lines.append([cell.replace("|", r"\|").replace("\n", " ") for cell in cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figures(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the default figures that the evaluation supports: curves need scores."""
    scored = evaluation.has_scores
    return tuple(kind for kind in FIGURES if scored or kind != "pr_curve")


def _close(figures: Any) -> None:
    """Close figures, which matplotlib would keep in memory; training creates many."""
    figures = list(figures)
    if figures:
        from matplotlib import pyplot

        for figure in figures:
            pyplot.close(figure)
