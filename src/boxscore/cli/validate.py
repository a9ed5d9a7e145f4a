"""Check ground truth and detections for faults that an evaluation does not show.

Exit status: 0 without errors, 1 with errors (with --strict: or warnings), 2 when a file is missing.

Examples
--------
  boxscore validate --gt instances.json
  boxscore validate --gt instances.json --dt results.json
  boxscore validate --gt VOC2007 --image-set test --dt results_dir --protocol voc2007 --output json
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxscore._utils.text import csv_table, json_text, markdown_table, printable
from boxscore.cli._inputs import add_output_argument
from boxscore.formats import format_names
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.validation import SEVERITIES, Finding, validate_files

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    parser.add_argument(
        "--ground-truth",
        "--gt",
        required=True,
        type=Path,
        metavar="PATH",
        help="COCO JSON file or VOC folder",
    )
    parser.add_argument(
        "--detections",
        "--dt",
        type=Path,
        metavar="PATH",
        help="COCO results file or folder of comp4_det_<set>_<class>.txt (default: only ground truth)",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=format_names(),
        help="of the ground truth (default: auto)",
    )
    parser.add_argument(
        "--protocol",
        default="coco",
        metavar="NAME|FILE.toml",
        help="which flags and caps count, and what effects are measured in (default: coco)",
    )
    parser.add_argument("--image-set", metavar="NAME|FILE", help="VOC: the image set, e.g. test")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check and print; return the exit status."""
    protocol = load_protocol(arguments.protocol)
    findings = validate_files(
        arguments.ground_truth,
        arguments.detections,
        protocol=protocol,
        format=arguments.format,
        image_set=arguments.image_set,
    )
    write = {"text": _text, "json": _json, "csv": _csv, "markdown": _markdown}[arguments.output]
    print(write(findings, protocol))
    failing = {"error", "warning"} if arguments.strict else {"error"}
    return int(any(finding.severity in failing for finding in findings))


def _totals(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}  # type: ignore[index]


def _digest(findings: Sequence[Finding]) -> str:
    counts = _totals(findings)
    parts = [f"{counts[name]} {name}{'s' * (counts[name] != 1)}" for name in ("error", "warning")]
    return f"{', '.join(parts)}, {counts['info']} info"


def _effect(finding: Finding) -> str:
    if not finding.repair:
        return ""
    if math.isnan(finding.effect):
        return f"{finding.metric}: undefined {'as it is' if math.isnan(finding.value) else finding.repair}"
    return (
        f"{finding.metric} {finding.value:.4f}; {finding.repair}: {finding.repaired:.4f} "
        f"({finding.effect:+.4f})"
    )


def _text(findings: Sequence[Finding], protocol: Protocol) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{finding.severity}: {finding.code} ({finding.count})")
        lines.append(f"    {printable(finding.message)}")
        effect = _effect(finding)
        lines += [f"    {effect}"] if effect else []
        lines += [f"      {printable(example)}" for example in finding.examples]
        lines.append("")
    return "\n".join([*lines, _digest(findings), protocol.signature()])


def _json(findings: Sequence[Finding], protocol: Protocol) -> str:
    rows = []
    for finding in findings:
        row: dict[str, Any] = {name: getattr(finding, name) for name in _COLUMNS}
        has_effect = bool(finding.repair)
        row["effect"] = (
            {name: getattr(finding, name) for name in ("repair", "metric", "value", "repaired")}
            | {"difference": finding.effect}
            if has_effect
            else None
        )
        row["examples"] = list(finding.examples)
        rows.append(row)
    return json_text({"signature": protocol.signature(), "counts": _totals(findings), "findings": rows})


_COLUMNS = ("severity", "kind", "code", "count", "message")


def _table(findings: Sequence[Finding]) -> dict[str, list[Any]]:
    return {name: [getattr(finding, name) for finding in findings] for name in _COLUMNS}


def _csv(findings: Sequence[Finding], protocol: Protocol) -> str:
    del protocol  # CSV is one table and nothing else
    columns = _table(findings)
    for name in ("metric", "value", "repaired", "repair"):
        columns[name] = [getattr(finding, name) for finding in findings]
    columns["example"] = [finding.examples[0] if finding.examples else "" for finding in findings]
    return csv_table(columns).rstrip("\n")


def _markdown(findings: Sequence[Finding], protocol: Protocol) -> str:
    columns = _table(findings)
    columns["effect"] = [_effect(finding) for finding in findings]
    columns["example"] = [finding.examples[0] if finding.examples else "" for finding in findings]
    return f"## Validation\n\n{_digest(findings)}\n\n{markdown_table(columns)}\n\n`{protocol.signature()}`"
