"""Compare two results of one model box by box, such as those of a model and of its export.

A is the reference, such as the results of the original model, B those of its export. Boxes are paired within
an image and class: the most pairs with an IoU of at least 0.5. A pair is the same if no corner differs by
more than --box-tolerance and the score by no more than --score-tolerance. The command names the causes that
fit, such as a threshold, a letterbox, class ids or half precision, with the number of detections that agree.

With the ground truth (--gt) it also prints AP of both, and recognizes a letterbox more exactly because it
knows image sizes. The exit status is 1 if more than --allowed of the detections differ.

Examples
--------
  boxscore diff pytorch.json onnx.json
  boxscore diff pytorch.json tensorrt.json --gt instances.json --score-tolerance 0.02
  boxscore diff pytorch.json int8.json --box-tolerance 3 --score-tolerance 0.1 --allowed 0.05
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.text import Columns, counted, counted_of
from boxscore.cli.arguments import (
    DETECTION_FILES,
    DETECTIONS,
    GROUND_TRUTH,
    OUTPUT,
    PROTOCOL,
    READERS,
    SHOW,
    TOP,
    Option,
)
from boxscore.cli.choices import readers
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import show
from boxscore.data.alignment import align
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreError, InputError
from boxscore.evaluation import evaluate
from boxscore.extensions.parity.diff import DetectionDiff, diff_detections
from boxscore.formats.reading import FileOptions, read_detections, read_ground_truth, read_options
from boxscore.formats.results import load_results
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol

OPTIONS = (
    DETECTIONS.but(
        name="results",
        help="the results files A and B",
        short="",
        many=True,
        positional=True,
        metavar="A B",
        key="",
    ),
    GROUND_TRUTH.but(
        name="gt",
        help="ground truth, for AP, image names and sizes",
        short="",
        required=False,
        key="",
        topic="",
    ),
    next(option for option in DETECTION_FILES if option.name == "dt-classes").but(key=""),
    PROTOCOL,
    Option(
        "box-tolerance",
        "largest difference of a corner in pixels",
        kind=float,
        default=1.0,
        metavar="PIXELS",
    ),
    Option("score-tolerance", "largest difference of a score", kind=float, default=0.01, metavar="S"),
    Option(
        "allowed",
        "exit with status 1 if more than this share of A's detections differ, or that many are only in B",
        kind=float,
        default=0.0,
        metavar="SHARE",
    ),
    TOP.but(help="also print the N pairs with the largest differences", default=0),
    READERS,
    OUTPUT,
    SHOW,
)

WITHOUT = without("evaluation", "compares all boxes, whether they count or not")


def run(arguments: argparse.Namespace) -> int:
    """Read, pair, print; return the exit status."""
    if len(arguments.results) != 2:
        raise InputError("the results files", "be two, A and B", got=len(arguments.results))
    allowed = checks.number_between(arguments.allowed, 0, 1, name="--allowed")
    if arguments.top < 0:
        raise InputError("--top", "be a whole number >= 0", got=arguments.top)
    protocol = load_protocol(arguments.protocol or "coco")
    how = read_options(processes=readers(arguments))
    truth = None if arguments.gt is None else read_ground_truth(arguments.gt, how)
    how = read_options(processes=readers(arguments), classes=arguments.dt_classes)
    first, second = (_read(path, truth, how) for path in arguments.results)
    diff = diff_detections(
        first, second, box_tolerance=arguments.box_tolerance, score_tolerance=arguments.score_tolerance
    )
    scores = {} if truth is None else _scores(truth, first, second, protocol)
    only_b = diff.counts["only in B"]
    differs = max(diff.changed - only_b, only_b) > allowed * len(first)
    show(_text(diff, scores, arguments, len(first), differs=differs))
    return int(differs)


def _read(path: Path, truth: GroundTruth | None, how: FileOptions) -> Detections:
    """Read a result as it is; text ids and fractions need the images of the ground truth.

    Integer ids stay as in the file, where they may be wrong.
    """
    table = load_results(path, how, oriented=True).table
    if truth is None:
        return table
    if table.units != "pixels" or table.images.ids.dtype == object:
        return read_detections(path, truth, how)
    known = dict(zip(truth.images.ids.tolist(), truth.images.sizes.tolist(), strict=True))
    ids = table.images.ids.tolist()
    sizes = [known.get(identifier, [float("nan")] * 2) for identifier in ids]
    images = Images.build(ids, file_names=table.images.file_names.tolist(), sizes=sizes or None)
    return dataclasses.replace(table, images=images)


def _scores(truth: GroundTruth, first: Detections, second: Detections, protocol: Protocol) -> dict[str, Any]:
    """Return the metrics of A and B, or why they cannot be computed."""
    results: dict[str, Any] = {}
    for name, table in (("A", first), ("B", second)):
        try:
            results[name] = evaluate(truth, align(table, truth), protocol=protocol, digest=False).metrics
        except BoxscoreError as error:
            results[name] = str(error)
    return results


def _text(
    diff: DetectionDiff, scores: dict[str, Any], arguments: argparse.Namespace, total: int, *, differs: bool
) -> str:
    same = counted_of(diff.counts["same"], total, "detection")
    verdict = "A and B differ" if differs else "A and B are the same within the tolerances"
    note = f"{same} of A {'is' if diff.counts['same'] == 1 else 'are'} the same in B"
    if diff.counts["only in B"]:
        note += f"; {counted(diff.counts['only in B'], 'detection')} only in B"
    counts: Columns = {"detections": list(diff.counts), "count": list(diff.counts.values())}
    fits = [f"- {cause.name} ({cause.obeying} of {cause.of}): {cause.text}" for cause in diff.causes]
    if not fits and differs:
        fits = ["- none that this command knows"]
    reasons = "\n".join(["Causes that fit:", *fits]) if fits else ""
    sections = [Section(f"{verdict}: {note}.", counts, reasons)]
    values: dict[str, Any] = {**diff.as_dict(), "differs": differs, "metrics": {}}
    if scores:
        rows = {name: metrics for name, metrics in scores.items() if not isinstance(metrics, str)}
        failed = [f"{name}: {text}" for name, text in scores.items() if isinstance(text, str)]
        metrics = list(next(iter(rows.values()), {}))
        columns: Columns = {
            "results": list(rows),
            **{name: [row[name] for row in rows.values()] for name in metrics},
        }
        if len(rows) == 2:
            change = [rows["B"][name] - rows["A"][name] for name in metrics]
            columns = {
                "results": [*rows, "B - A"],
                **{name: [*columns[name], value] for name, value in zip(metrics, change, strict=True)},
            }
        sections.append(Section("Metrics", columns, "\n".join(failed), first_out=tuple(metrics[:2:-1])))
        values["metrics"] = {name: dict(row) for name, row in rows.items()}
    if diff.quantiles:
        spread: Columns = {
            "B - A": list(diff.quantiles),
            **{
                name: [float(column[place]) for column in diff.quantiles.values()]
                for place, name in enumerate(("least", "5%", "median", "95%", "greatest"))
            },
        }
        sections.append(Section("Differences of the pairs: pixels, score; IoU is of the pair", spread))
    if arguments.top:
        head: Columns = {name: column[: arguments.top] for name, column in diff.pairs.items()}
        sections.append(Section("Largest differences", head))
    classes: Columns = diff.per_class
    if len(classes["class"]) > 1:
        sections.append(Section("By class", classes, first_out=("moved and rescored", "rescored", "moved")))
    return written(arguments.output, sections, value=values, table=diff.pairs, longest=200)
