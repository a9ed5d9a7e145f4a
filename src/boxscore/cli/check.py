"""Fail when numbers are too low: a gate for pipelines. Exit status 1 when a check fails.

The result is computed from --gt and --dt, or read from the JSON that boxscore wrote (--result).

Examples
--------
  boxscore check --gt instances.json --dt results.json --min AP=0.35 AP50=0.5
  boxscore check --result report/result.json --no-regression baseline.json --tolerance 0.002
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.text import csv_table, json_text, markdown_table, text_table
from boxscore.cli._inputs import add_input_arguments, add_output_argument, evaluate_inputs, read_inputs
from boxscore.errors import InputError
from boxscore.reports import gate

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    add_input_arguments(parser, required=False)
    add_output_argument(parser)
    parser.add_argument("--result", type=Path, metavar="FILE.json", help="read this result; do not evaluate")
    parser.add_argument("--min", nargs="+", default=[], metavar="METRIC=NUMBER", help="at least")
    parser.add_argument("--max", nargs="+", default=[], metavar="METRIC=NUMBER", help="at most")
    parser.add_argument(
        "--no-regression", type=Path, metavar="FILE.json", help="no metric may be below this result's"
    )
    parser.add_argument(
        "--tolerance", type=float, default=0.0, metavar="X", help="how far it may fall (default: 0)"
    )
    parser.add_argument(
        "--metrics", nargs="+", default=[], metavar="NAME", help="look only at these for --no-regression"
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
    print(_written(results, signature, arguments.output))
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
    if form == "json":
        rows = [check._asdict() for check in checks]
        return json_text({"passed": passed, "signature": signature, "checks": rows})
    columns: dict[str, Any] = {
        "metric": [check.metric for check in checks],
        "value": [check.value for check in checks],
        "must be": [check.rule for check in checks],
        "result": ["passed" if check.passed else "FAILED" for check in checks],
    }
    if form == "csv":
        return csv_table(columns).rstrip("\n")
    verdict = (
        "all checks passed" if passed else f"{sum(not c.passed for c in checks)} of {len(checks)} failed"
    )
    if form == "markdown":
        mark = ":white_check_mark:" if passed else ":x:"
        return f"### {mark} boxscore check: {verdict}\n\n{markdown_table(columns)}\n\n`{signature}`"
    return f"{text_table(columns)}\n\n{verdict}\n{signature}"
