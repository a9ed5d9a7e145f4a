"""Log metrics, figures and the per-class table to TensorBoard, W&B, MLflow, Comet and Lightning's loggers.

Conventions
-----------
- A logger is recognized by its methods; no logging library is imported.
- Each step is logged in one call: W&B and others merge or drop a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from boxscore.errors import InputError

if TYPE_CHECKING:
    from boxscore.evaluation import Evaluation

FIGURES = ("pr_curve", "per_class", "confusion_matrix", "errors")
"""Kinds of :meth:`boxscore.Evaluation.plot` that ``figures=True`` draws."""


class _Content(NamedTuple):
    """The content to log at a step."""

    numbers: Mapping[str, float]
    table: Any
    """The per-class table, a DataFrame; None to leave it out."""
    figures: Mapping[str, Any]
    step: int | None


def log_evaluation(
    evaluation: Evaluation,
    logger: Any,
    *,
    step: int | None = None,
    prefix: str = "val",
    classes: bool | Sequence[str] = False,
    table: bool = True,
    figures: bool | Sequence[str] = False,
) -> dict[str, float]:
    """Log an evaluation at a step.

    Parameters
    ----------
    evaluation : Evaluation
    logger : object
        A ``SummaryWriter`` of TensorBoard, a run of W&B or the module ``wandb``, the module ``mlflow``, an
        ``Experiment`` of Comet, or a logger of Lightning that holds one of these.
    step : int, optional
        Global step, or epoch.
    prefix : str, default "val"
        Prefix of every name: ``val/AP``.
    classes : bool or sequence of str, default False
        Also log metrics of each class, as in :meth:`boxscore.Evaluation.flat`.
    table : bool, default True
        Log the per-class table: as text in TensorBoard, as a file in MLflow.
    figures : bool or sequence of str, default False
        Kinds of :meth:`boxscore.Evaluation.plot`; True for :data:`FIGURES`. Needs matplotlib.

    Returns
    -------
    dict of str to float
        The logged numbers.

    Raises
    ------
    InputError
        When the logger is not supported.
    """
    log = _way(logger)
    kinds = figures if not isinstance(figures, bool) else _figures(evaluation)[: len(FIGURES) * figures]
    numbers = evaluation.flat(prefix=prefix, classes=classes)
    frame = evaluation.per_class if table else None
    drawn: dict[str, Any] = {}
    try:
        for kind in kinds:
            drawn[f"{prefix}/{kind}"] = evaluation.plot(kind)
        log(_Content(numbers, frame, drawn, step), f"{prefix}/per_class_table")
    finally:
        _close(drawn.values())
    return numbers


def _way(logger: Any) -> Callable[[_Content, str], None]:
    """Return the function that writes to a logger, chosen by the methods that only this logger has."""
    for names, log in _WAYS:
        if all(hasattr(logger, name) for name in names):
            return lambda content, name: log(logger, content, name)
    if hasattr(logger, "experiment") and hasattr(logger, "log_hyperparams"):  # Lightning's
        try:
            return _way(logger.experiment)
        except InputError:  # such as CSVLogger's, which only takes numbers
            return lambda content, _: logger.log_metrics(dict(content.numbers), content.step)
    raise InputError(
        "a logger",
        "be of TensorBoard, W&B, MLflow, Comet or Lightning",
        got=f"a {type(logger).__name__}",
        cause="Evaluation.flat gives the numbers as a dictionary for any other",
    )


def _tensorboard(writer: Any, content: _Content, name: str) -> None:
    for key, value in content.numbers.items():
        writer.add_scalar(key, value, content.step)
    if content.table is not None:
        writer.add_text(name, _markdown(content.table), content.step)
    for key, figure in content.figures.items():
        writer.add_figure(key, figure, content.step, close=False)


def _wandb(run: Any, content: _Content, name: str) -> None:
    import wandb

    values: dict[str, Any] = dict(content.numbers)
    if content.table is not None:
        values[name] = wandb.Table(dataframe=content.table)
    values |= {key: wandb.Image(figure) for key, figure in content.figures.items()}
    run.log(values, step=content.step)


def _mlflow(module: Any, content: _Content, name: str) -> None:
    defined = {key: value for key, value in content.numbers.items() if value == value}  # MLflow rejects NaN
    module.log_metrics(defined, step=content.step)
    at = "" if content.step is None else f"-{content.step}"
    if content.table is not None:
        module.log_table(content.table, f"{name}{at}.json")
    for key, figure in content.figures.items():
        module.log_figure(figure, f"{key}{at}.png")


def _comet(experiment: Any, content: _Content, name: str) -> None:
    experiment.log_metrics(dict(content.numbers), step=content.step)
    at = "" if content.step is None else f"-{content.step}"
    if content.table is not None:
        experiment.log_table(f"{name.replace('/', '-')}{at}.csv", content.table)
    for key, figure in content.figures.items():
        experiment.log_figure(figure_name=key, figure=figure, step=content.step)


_WAYS: Sequence[tuple[Sequence[str], Callable[[Any, _Content, str], None]]] = (
    (("add_scalar", "add_text", "add_figure"), _tensorboard),
    (("log_metrics", "log_table", "log_confusion_matrix"), _comet),
    (("log_metrics", "log_table", "log_figure", "set_tracking_uri"), _mlflow),
    (("log", "define_metric", "config"), _wandb),
)
"""Methods that identify a logger, and the function that writes to it."""


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
