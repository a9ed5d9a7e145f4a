"""Say whether one detector is better than another: paired differences over resampled images.

Examples
--------
  boxscore compare --gt instances.json --dt old.json new.json
  boxscore compare --gt instances.json --dt old.json new.json --report comparison --image-folder images
  boxscore compare --gt instances.json --dt a.json b.json c.json --metrics AP APs --per-class
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.arguments import COMPARISON_REPORT, DETECTIONS, INPUTS, OUTPUT, REPORT, RESAMPLING
from boxscore.cli.inputs import detection_arguments, evaluate_inputs, read_inputs
from boxscore.cli.output import print_frame, remembered_warnings, save_comparison
from boxscore.cli.streams import say
from boxscore.errors import InputError
from boxscore.formats.reading import read_detections, read_options
from boxscore.similarity.registry import similarity_of

__all__ = ["OPTIONS", "run"]


OPTIONS = (
    *(option.but(many=True) if option is DETECTIONS else option for option in INPUTS),
    OUTPUT,
    *RESAMPLING,
    REPORT,
    *COMPARISON_REPORT,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate each, compare, print; return the exit status."""
    from boxscore.diagnostics import compare_detectors

    paths: list[Path] = arguments.detections
    if len(paths) < 2:
        raise InputError("--detections", "name two files or more to compare", got=len(paths))
    with remembered_warnings() as messages:
        first = read_inputs(argparse.Namespace(**{**vars(arguments), "detections": paths[0]}))
        options = read_options(
            **detection_arguments(arguments),
            columns=similarity_of(first.protocol).needed_columns,
            any_sides=first.protocol.boxes.degenerate != "count",
        )
        tables = [
            first.detections,
            *(read_detections(path, first.ground_truth, options) for path in paths[1:]),
        ]
        results = [evaluate_inputs(first._replace(detections=table)) for table in tables]
    named = dict(zip(_names(paths), results, strict=True))
    comparison = compare_detectors(
        named,
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        method=arguments.method,
        seed=arguments.seed,
        metrics=arguments.metrics,
        progress=True,
    )
    frame = comparison.printed_frame() if arguments.per_class else comparison.total_frame()
    if arguments.report:
        save_comparison(named, arguments, messages)
    print_frame(frame, results[0], arguments.output, title="Comparison over resampled images")
    if arguments.report:
        say(f"report written to {arguments.report}")
    return 0


def _names(paths: list[Path]) -> list[str]:
    """File names without endings where they tell the results apart, else whole paths, else numbered."""
    for names in ([path.stem for path in paths], [str(path) for path in paths]):
        if len(set(names)) == len(names):
            return names
    return [f"{path} ({number})" for number, path in enumerate(paths, start=1)]
