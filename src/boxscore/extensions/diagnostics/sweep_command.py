"""Find the best suppression settings by running NMS and evaluation over a grid.

A grid is a list of numbers, a range start:stop:step that includes both ends, or both: .3:.9:.05 or 0 .05 .1.
Every result equals that of boxscore nms and boxscore evaluate with the same settings.

Examples
--------
  boxscore sweep instances.json raw.json --iou-threshold .3:.9:.05
  boxscore sweep instances.json raw.json --method hard soft-gaussian --score-threshold 0 .05 .1
  boxscore sweep instances.json raw.json --iou-threshold .3:.9:.05 --plot sweep.png
  boxscore sweep VOC2007 raw_dir --image-set test --protocol voc2007 --pixel-offset 1 --best
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore.cli.arguments import GROUPS, OUTPUT, PER_CLASS, SHOW, Option, inputs_beside
from boxscore.cli.choices import group_options
from boxscore.cli.inputs import read_inputs
from boxscore.cli.output import Section, written
from boxscore.cli.streams import colored, show
from boxscore.errors import InputError
from boxscore.extensions.diagnostics.sweeping import Sweep, best_settings, sweep
from boxscore.extensions.pages.options import PLOT
from boxscore.extensions.pages.report_output import form_of_picture, picture
from boxscore.extensions.shell.frames import table_columns, table_rows
from boxscore.extensions.shell.parameters import METRICS
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.protocol import Protocol
from boxscore.suppression.methods import METHODS

if TYPE_CHECKING:
    import pandas as pd

MOST = 10_000
"""Maximum numbers in a range; more is likely a typo."""

FEW_CLASSES = 20
"""Maximum classes whose best settings a terminal shows without ``--best`` or ``--per-class``."""

SHOWN = 3
"""Default number of metrics in text and Markdown: twelve columns are too wide to read."""


_OPTIONS = (
    Option(
        "method",
        f"methods to try: {', '.join(METHODS)}",
        default=("hard",),
        metavar="NAME",
        many=True,
        commas=True,
    ),
    Option(
        "iou-threshold",
        "IoU thresholds to try",
        default=(".3:.7:.1",),
        metavar="GRID",
        short="--iou",
        many=True,
        commas=True,
    ),
    Option(
        "sigma",
        "sigmas of the Gaussian methods to try (default: that of each method)",
        metavar="GRID",
        many=True,
        commas=True,
    ),
    Option(
        "score-threshold",
        "score thresholds to try (default: that of each method)",
        metavar="GRID",
        short="--conf",
        many=True,
        commas=True,
    ),
    *GROUPS,
    METRICS,
    PER_CLASS.but(help="add one row per setting and class"),
    Option("best", "print only the best settings", kind=bool, default=False),
    PLOT.but(help="also plot the first of the metrics against the IoU threshold: a .png, .svg or .pdf file"),
    SHOW,
)

OPTIONS = (*inputs_beside(_OPTIONS), OUTPUT, *_OPTIONS)

WITHOUT = {
    "--memory-limit": "needs all detections in memory, because each setting suppresses and matches the "
    "boxes again"
}


def run(arguments: argparse.Namespace) -> int:
    """Read, sweep and print; return the exit status."""
    # Check all options before the first file is read.
    if arguments.plot is not None:
        form_of_picture(arguments.plot, name="--plot")
    methods = [checks.one_of(name, list(METHODS), name="method") for name in arguments.method]
    iou_thresholds = grid(arguments.iou_threshold, name="--iou-threshold")
    sigmas, score_thresholds = (
        None if text is None else grid(text, name=name)
        for name, text in (("--sigma", arguments.sigma), ("--score-threshold", arguments.score_threshold))
    )
    for value in iou_thresholds:
        checks.number_between(value, 0, 1, name="--iou-threshold")
    # Accept metric names as the command prints them, or as per-class names.
    inputs = read_inputs(arguments)
    keys = inputs.protocol.class_keys
    metrics = list(keys.values())
    known = {
        **dict(zip(metrics, metrics, strict=True)),
        **keys,
        # Also accept per-class names of metrics.
    }
    chosen = [
        known[name if name in known else metric_named(name, list(keys), option="--metrics")]
        for name in arguments.metrics or keys
    ]
    if arguments.metrics is None and arguments.output in ("text", "markdown", "latex"):
        chosen = chosen[:SHOWN]
    # Compute all metrics in one sweep; the output chooses among them.
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
        **group_options(arguments, inputs.detections.categories),
    )
    # Drop the columns of settings that were not swept.
    table = result.printed_frame() if arguments.per_class else result.total_frame().drop(columns="class")
    table = table[[name for name in table.columns if name in chosen or name not in metrics]]
    best = best_settings(result, metrics=[name for name in metrics if name in chosen])
    whole, classes = best.total_frame(), best.to_frame()
    if arguments.plot is not None:
        _draw(result, chosen[0], arguments.plot)
    unset = [
        name for name, given in (("sigma", sigmas), ("score_threshold", score_thresholds)) if given is None
    ]
    # Use the names of evaluate and check.
    named = {value: key for key, value in keys.items()}
    table, whole, classes = (
        frame.drop(columns=unset).rename(columns=named) for frame in (table, whole, classes)
    )
    for frame in (whole, classes):
        frame["metric"] = frame["metric"].map(named)
    _print(table, whole, classes, inputs.protocol, arguments)
    return 0


def _draw(result: Sweep, metric: str, path: Path) -> None:
    """Write the plot."""
    from boxscore.reports import plots

    figure = plots.sweep(result, metric=metric)
    write_atomically(path, picture(figure, form_of_picture(path, name="--plot")))


def _print(
    table: pd.DataFrame,
    whole: pd.DataFrame,
    classes: pd.DataFrame,
    protocol: Protocol,
    arguments: argparse.Namespace,
) -> None:
    """Print the grid and the best settings, or only the best."""
    import pandas as pd

    # Without --per-class or --best, show only each class's best setting for the first metric.
    best = pd.concat([whole, classes], ignore_index=True)
    if not arguments.per_class and not arguments.best and len(best):
        classes = classes[classes["metric"] == best["metric"].iloc[0]]
    # Print three tables: the grid, the best over all classes, the best of each class.
    frames = {
        "NMS sweep": table,
        "Best setting of each metric": whole.drop(columns="class"),
        "Best setting of each class": classes,
    }
    notes = {}
    if not arguments.best and ((table["method"] == "hard") & (table["iou_threshold"] == 1)).any():
        notes["NMS sweep"] = "hard with iou_threshold 1 suppresses nothing: no overlap exceeds 1."
    explicit = arguments.best or arguments.per_class
    if arguments.output == "text" and len(classes) > FEW_CLASSES and not explicit:
        del frames["Best setting of each class"]
        notes["Best setting of each metric"] = "use --best to also show the best setting of each class"
    # Files contain everything except the grid that --best leaves out.
    value: dict[str, Any] = {
        "table": "NMS sweep",
        "protocol": protocol.name,
        "signature": protocol.signature(),
    }
    if arguments.best:
        del frames["NMS sweep"]
    else:
        value["rows"] = table_rows(table)
    show(
        written(
            arguments.output,
            [
                Section(
                    title,
                    _columns(frame),
                    notes.get(title, ""),
                    paint=_best_of(frame, protocol) if frame is table and not arguments.per_class else None,
                )
                for title, frame in frames.items()
            ],
            value={**value, "best": table_rows(best)},
            table=table_columns(best if arguments.best else table),
            footer=protocol.signature(),
        )
    )


def _best_of(frame: pd.DataFrame, protocol: Protocol) -> Callable[[int, str, str], str]:
    """Return the function that marks the best value of each metric."""
    metrics = [row.key for row in protocol.rows if row.key in frame.columns]
    best = {name: frame[name].max() for name in metrics}
    values = {name: frame[name].tolist() for name in best}

    def paint(row: int, name: str, text: str) -> str:
        return colored(text, "green") if name in best and values[name][row] == best[name] else text

    return paint


def _columns(frame: pd.DataFrame) -> dict[str, list[object]]:
    """Format columns: thresholds as they were written, not rounded to four digits."""
    columns = table_columns(frame)
    for name in ("iou_threshold", "sigma", "score_threshold"):
        if name in columns:
            columns[name] = ["-" if value != value else f"{value:g}" for value in columns[name]]
    return columns


def grid(parts: Sequence[str], *, name: str) -> list[float]:
    """Parse a grid of numbers and ranges, without repetitions.

    Ranges use decimals, so that .3:.9:.05 contains the .35 that a user would write.

    Raises
    ------
    InputError
        When a part is neither a number nor ``start:stop:step``, or a number comes twice.

    Examples
    --------
    >>> grid(["0", ".3:.45:.05"], name="--iou-threshold")
    [0.0, 0.3, 0.35, 0.4, 0.45]
    """
    # Decimals are exact: floats would miss the end of a range, or give 0.35000000000000003.
    values: list[float] = []
    for part in parts:
        try:
            numbers = [Decimal(word.strip()) for word in part.split(":")]
        except InvalidOperation:
            numbers = []
        if len(numbers) not in (1, 3) or not all(number.is_finite() for number in numbers):
            cause = "put paths before options that take several values" if Path(part).exists() else ""
            raise InputError(name, "be numbers or start:stop:step", got=repr(part), cause=cause)
        if len(numbers) == 1:
            values.append(float(numbers[0]))
            continue
        # The limit prevents a tiny step from creating millions of settings.
        start, stop, step = numbers
        if step <= 0 or stop < start or (stop - start) / step > MOST:
            raise InputError(name, "increase from start to stop with a step above 0", got=repr(part))
        values += [float(start + step * count) for count in range(int((stop - start) / step) + 1)]
    if len(set(values)) < len(values):
        raise InputError(name, "not repeat a number", got=repr(" ".join(parts)))
    return values
