"""Fail when numbers are too low: a gate for pipelines. Exit status 1 when a check fails.

The result is computed from --gt and --dt, or read from the JSON that boxscore wrote (--result).

Examples
--------
  boxscore check instances.json results.json --min AP=0.35 AP50=0.5
  boxscore check --result report/result.json --no-regression baseline.json --tolerance 0.002
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.text import markdown_table, text_table
from boxscore.cli.arguments import DETECTIONS, GROUND_TRUTH, INPUTS, METRICS, OUTPUT, Option
from boxscore.cli.inputs import evaluate_inputs, read_inputs
from boxscore.cli.output import Section, written
from boxscore.cli.streams import coloured, show, signature_lines, width
from boxscore.errors import InputError
from boxscore.reports import gate

__all__ = ["OPTIONS", "run"]


OPTIONS = (
    *(option.but(required=False) if option in (GROUND_TRUTH, DETECTIONS) else option for option in INPUTS),
    OUTPUT,
    Option("result", "read this result; do not evaluate", kind=Path, metavar="FILE.json"),
    Option("min", "at least", many=True, default=(), metavar="METRIC=NUMBER"),
    Option("max", "at most", many=True, default=(), metavar="METRIC=NUMBER"),
    Option("no-regression", "no metric may be below this result's", kind=Path, metavar="FILE.json"),
    Option("tolerance", "how far it may fall (default: 0)", kind=float, default=0.0, metavar="X"),
    METRICS.but(help="look only at these for --no-regression", default=()),
)


def run(arguments: argparse.Namespace) -> int:
    """Read or evaluate, check, print; return the exit status."""
    metrics, signature = _result(arguments)
    tolerance = checks.number_between(arguments.tolerance, 0, 1, name="--tolerance")
    known = list(metrics)
    results = gate.check_bounds(
        metrics,
        minimum=[gate.parse_bound(text, known, name="--min") for text in arguments.min],
        maximum=[gate.parse_bound(text, known, name="--max") for text in arguments.max],
    )
    if arguments.no_regression:
        results += gate.check_baseline(
            metrics,
            signature,
            gate.read_result(arguments.no_regression),
            tolerance=tolerance,
            only=arguments.metrics,
            place=str(arguments.no_regression),
        )
    if not results:
        raise InputError("check must be given something to check: --min, --max or --no-regression.")
    show(_written(results, signature, arguments.output))
    return 0 if all(result.passed for result in results) else 1


def _result(arguments: argparse.Namespace) -> tuple[dict[str, float | None], str]:
    """Metrics and signature, from a file or an evaluation."""
    evaluated = arguments.ground_truth is not None or arguments.detections is not None
    if (arguments.result is not None) == evaluated:
        raise InputError("check must be given --result, or --ground-truth and --detections.")
    if arguments.result is not None:
        result = gate.read_result(arguments.result)
        return result["metrics"], result["signature"]
    if arguments.ground_truth is None or arguments.detections is None:
        raise InputError("check must be given both --ground-truth and --detections.")
    evaluation = evaluate_inputs(read_inputs(arguments))
    return dict(evaluation.metrics), evaluation.signature


def _written(checks: list[gate.Check], signature: str, form: str) -> str:
    passed = all(check.passed for check in checks)
    columns: dict[str, Any] = {
        "metric": [check.metric for check in checks],
        "value": [check.value for check in checks],
        "must be": [check.rule for check in checks],
        "result": ["passed" if check.passed else "FAILED" for check in checks],
    }
    verdict = (
        "all checks passed" if passed else f"{sum(not c.passed for c in checks)} of {len(checks)} failed"
    )
    if form == "markdown":
        mark = ":white_check_mark:" if passed else ":x:"
        return f"### {mark} boxscore check: {verdict}\n\n{markdown_table(columns)}\n\n`{signature}`"
    if form == "text":
        table = text_table(columns, width=width(), paint=_painted)
        return f"{table}\n\n{verdict}\n{signature_lines(signature)}"
    value = {"passed": passed, "signature": signature, "checks": [check._asdict() for check in checks]}
    return written(form, [Section("boxscore check", columns, verdict)], value=value, footer=signature)


def _painted(_: int, name: str, text: str) -> str:
    colours = {"FAILED": "red", "passed": "green"}
    return coloured(text, colours[text.strip()]) if name == "result" and text.strip() in colours else text
