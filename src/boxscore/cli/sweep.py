"""Find the suppression settings that score best: NMS and evaluation over a grid of them.

A grid is a list of numbers, or start:stop:step with both ends, or both: .3:.9:.05 or 0,.05,.1. Every number
is what boxscore nms and boxscore evaluate give with that setting.

Examples
--------
  boxscore sweep --gt instances.json --dt raw.json --iou-threshold .3:.9:.05
  boxscore sweep --gt instances.json --dt raw.json --method hard,soft-gaussian --score-threshold 0,.05,.1
  boxscore sweep --gt instances.json --dt raw.json --iou-threshold .3:.9:.05 --plot sweep.png
  boxscore sweep --gt VOC2007 --image-set test --dt raw_dir --protocol voc2007 --pixel-offset 1 --best
"""

from __future__ import annotations

import argparse
import io
import os
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore._utils.text import csv_table, json_text, markdown_table, text_table
from boxscore.cli._inputs import add_input_arguments, add_output_argument, read_inputs
from boxscore.cli._suppression import add_group_arguments, group_options, method_names
from boxscore.cli._tables import table_columns, table_rows
from boxscore.diagnostics._result import EVERY_CLASS
from boxscore.diagnostics.sweeping import Sweep, best_settings, sweep
from boxscore.errors import InputError
from boxscore.suppression.methods import METHODS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_arguments", "grid", "run"]

MOST = 10_000
"""Numbers a range may have; more is a misprint."""

PLOT_FORMS = ("png", "svg", "pdf")

SHOWN = 3
"""Metrics in text and Markdown where none are chosen: twelve columns are too wide to read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser)
    add_output_argument(parser)
    parser.add_argument(
        "--method", default="hard", metavar="NAMES", help=f"with commas between: {method_names()}"
    )
    parser.add_argument(
        "--iou-threshold", default=".3:.7:.1", metavar="GRID", help="NMS thresholds (default: .3:.7:.1)"
    )
    parser.add_argument("--sigma", metavar="GRID", help="of the Gaussian methods (default: their own)")
    parser.add_argument(
        "--score-threshold", metavar="GRID", help="keep what scores at least this (default: the methods' own)"
    )
    add_group_arguments(parser)
    parser.add_argument(
        "--metrics", nargs="+", metavar="NAME", help="only these headline numbers, e.g. AP AP50"
    )
    parser.add_argument("--per-class", action="store_true", help="add one row a setting and class")
    parser.add_argument("--best", action="store_true", help="print the best settings alone")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also draw the first of the metrics against the IoU threshold: a .png, .svg or .pdf",
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, sweep, print; return the exit status."""
    if arguments.plot is not None:
        _check_plot(arguments.plot)
    methods = [
        checks.one_of(name.strip(), list(METHODS), name="method") for name in arguments.method.split(",")
    ]
    iou_thresholds = grid(arguments.iou_threshold, name="--iou-threshold")
    sigmas = None if arguments.sigma is None else grid(arguments.sigma, name="--sigma")
    score_thresholds = (
        None
        if arguments.score_threshold is None
        else grid(arguments.score_threshold, name="--score-threshold")
    )
    for value in iou_thresholds:
        checks.number_between(value, 0, 1, name="--iou-threshold")
    inputs = read_inputs(arguments)
    result = sweep(
        inputs.ground_truth,
        inputs.detections,
        methods=methods,
        iou_thresholds=iou_thresholds,
        sigmas=sigmas,
        score_thresholds=score_thresholds,
        protocol=inputs.protocol,
        images=inputs.images,
        classes=inputs.classes,
        workers=inputs.workers,
        **group_options(arguments, inputs.detections),
    )
    keys = inputs.protocol.class_keys
    metrics = list(keys.values())
    chosen = [
        checks.one_of(keys.get(name, name), metrics, name="--metrics")
        for name in arguments.metrics or metrics
    ]
    if arguments.metrics is None and arguments.output in ("text", "markdown"):
        chosen = chosen[:SHOWN]
    table = result.printed_frame() if arguments.per_class else result.total_frame().drop(columns="class")
    table = table[[name for name in table.columns if name in chosen or name not in metrics]]
    in_order = [name for name in metrics if name in chosen]
    best = best_settings(result, metrics=in_order).printed_frame()
    if arguments.plot is not None:
        _draw(result, chosen[0], arguments.plot)
    if score_thresholds is None:
        table, best = table.drop(columns="score_threshold"), best.drop(columns="score_threshold")
    if sigmas is None:
        table, best = table.drop(columns="sigma"), best.drop(columns="sigma")
    _print(table, best, inputs.protocol, arguments)
    return 0


def _check_plot(path: Path) -> None:
    """Find out before the work whether the plot can be drawn."""
    checks.one_of(path.suffix.removeprefix(".").lower(), PLOT_FORMS, name="the ending of --plot")
    if not path.parent.is_dir():
        raise InputError("--plot", "be in a folder that exists", got=repr(str(path)))
    os.environ.setdefault("MPLBACKEND", "Agg")
    from boxscore.reports.plots._style import pyplot

    pyplot()


def _draw(result: Sweep, metric: str, path: Path) -> None:
    """Write the picture."""
    from boxscore.reports import plots
    from boxscore.reports.plots._style import pyplot

    figure = plots.sweep(result, metric=metric)
    output = io.BytesIO()
    figure.savefig(output, format=path.suffix.removeprefix(".").lower(), dpi=150)
    pyplot().close(figure)
    write_atomically(path, output.getvalue())


def _print(table: pd.DataFrame, best: pd.DataFrame, protocol: object, arguments: argparse.Namespace) -> None:
    """Print the grid and the best of it, or the best alone."""
    from boxscore.protocols.protocol import Protocol

    assert isinstance(protocol, Protocol)
    whole, classes = (
        best[best["class"] == EVERY_CLASS].drop(columns="class"),
        best[best["class"] != EVERY_CLASS],
    )
    if not arguments.per_class and not arguments.best and len(best):
        classes = classes[classes["metric"] == best["metric"].iloc[0]]
    titles = {"NMS sweep": table, "Best setting of each metric": whole, "Best setting of each class": classes}
    if arguments.best:
        del titles["NMS sweep"]
    if arguments.output == "json":
        value = {"table": "NMS sweep", "protocol": protocol.name, "signature": protocol.signature()}
        rows = {} if arguments.best else {"rows": table_rows(table)}
        print(json_text({**value, **rows, "best": table_rows(best)}))
    elif arguments.output == "csv":
        print(csv_table(table_columns(best if arguments.best else table)), end="")
    elif arguments.output == "markdown":
        parts = [f"## {title}\n\n{markdown_table(_columns(frame))}" for title, frame in titles.items()]
        print("\n\n".join([*parts, f"`{protocol.signature()}`"]))
    else:
        parts = [f"{title}\n\n{text_table(_columns(frame))}" for title, frame in titles.items()]
        print("\n\n".join([*parts, protocol.signature()]))


def _columns(frame: pd.DataFrame) -> dict[str, list[object]]:
    """Columns to show: thresholds as they were written rather than to four digits."""
    columns = table_columns(frame)
    for name in ("iou_threshold", "sigma", "score_threshold"):
        if name in columns:
            columns[name] = ["-" if value != value else f"{value:g}" for value in columns[name]]
    return columns


def grid(text: str, *, name: str) -> list[float]:
    """Read a grid: numbers and ranges with commas between, each number once.

    Ranges are counted in decimals, so that .3:.9:.05 has the .35 that a user would write.

    Raises
    ------
    InputError
        When a part is neither a number nor ``start:stop:step``, or a number comes twice.

    Examples
    --------
    >>> grid("0,.3:.45:.05", name="--iou-threshold")
    [0.0, 0.3, 0.35, 0.4, 0.45]
    """
    values: list[float] = []
    for part in text.split(","):
        try:
            numbers = [Decimal(word.strip()) for word in part.split(":")]
        except InvalidOperation:
            numbers = []
        if len(numbers) not in (1, 3) or not all(number.is_finite() for number in numbers):
            raise InputError(name, "be numbers or start:stop:step", got=repr(part))
        if len(numbers) == 1:
            values.append(float(numbers[0]))
            continue
        start, stop, step = numbers
        if step <= 0 or stop < start or (stop - start) / step > MOST:
            raise InputError(name, "rise from start to stop by a step above 0", got=repr(part))
        values += [float(start + step * count) for count in range(int((stop - start) / step) + 1)]
    if len(set(values)) < len(values):
        raise InputError(name, "have each number once", got=repr(text))
    return values
