"""Check ground truth and detections for errors that a score does not reveal.

For Parquet files larger than memory, --memory-limit counts by partition, and checks that need further
evaluations use a sample of images.

Exit status: 0 without errors, 1 with errors, 2 when a file is missing; with --strict, 2 with errors or
warnings.

Examples
--------
  boxscore validate instances.json
  boxscore validate instances.json results.json
  boxscore validate truth.parquet detections --memory-limit 2GB
  boxscore validate VOC2007 results_dir --image-set test --protocol voc2007 --output json
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from boxscore._utils.text import Columns, counted, printable, wrapped
from boxscore.cli.arguments import (
    DETECTION_FILES,
    DETECTIONS,
    FORMAT,
    GROUND_TRUTH,
    GROUND_TRUTH_FILES,
    IMAGE_SET,
    OUTPUT,
    PROTOCOL,
    SCORELESS,
    WORKERS,
)
from boxscore.cli.inputs import detection_arguments, ground_truth_arguments
from boxscore.cli.output import Section, written
from boxscore.cli.sockets import without
from boxscore.cli.streams import as_typed, colored, say, show, signature_lines, width
from boxscore.errors import InputError, is_refused
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.validation._findings import refused
from boxscore.extensions.validation.checking import judging_protocol
from boxscore.extensions.validation.semantic import NO_SCORES
from boxscore.protocols.protocol import Protocol
from boxscore.validation import SEVERITIES, Finding, validate_files

OPTIONS = (
    GROUND_TRUTH,
    DETECTIONS.but(help=f"{DETECTIONS.help} (default: only ground truth)", required=False),
    FORMAT,
    PROTOCOL.but(help="evaluation protocol; its first metric measures effects"),
    SCORELESS,
    IMAGE_SET,
    WORKERS.but(help="processes that check partitions (default: 1)"),
    MEMORY_LIMIT.but(
        help="for detections in Parquet: check partitions that fit in this much memory, e.g. 8GB; checks "
        "that need all rows use a sample"
    ),
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
    OUTPUT,
)

WITHOUT = without("evaluation", "checks whole images; boxscore evaluate takes regions")


def run(arguments: argparse.Namespace) -> int:
    """Check and print; return the exit status."""
    findings = (_findings if arguments.memory_limit is None else _findings_in_parts)(arguments)
    scored = all(finding.code != NO_SCORES for finding in findings)
    protocol = judging_protocol(arguments.protocol, scored=scored)
    if arguments.output == "text":
        show(_text(findings, protocol))
    else:
        effects = _table(findings, effect=[finding.effect_text for finding in findings])
        show(
            written(
                arguments.output,
                [Section("Validation", effects, _digest(findings))],
                value=_value(findings, protocol),
                table=_table(findings, **_parts_of_effects(findings)),
                footer=protocol.signature(),
            )
        )
    if arguments.strict and any(is_refused(finding.severity) for finding in findings):
        return 2
    return int(any(finding.severity == "error" for finding in findings))


def _findings(arguments: argparse.Namespace) -> list[Finding]:
    return validate_files(
        arguments.ground_truth,
        arguments.detections,
        protocol=arguments.protocol,
        options=ground_truth_arguments(arguments),
        detection_options=detection_arguments(arguments),
        scoreless=arguments.scoreless,
    )


def _findings_in_parts(arguments: argparse.Namespace) -> list[Finding]:
    """Check data in partitions of whole images."""
    from boxscore.extensions.large.command_line import has_scores, is_larger, told_of_partitions
    from boxscore.extensions.validation.in_parts import findings_of_shares, note_of_shares, share_of

    if arguments.detections is None:
        cause = "ground truth alone is always read into memory"
        raise InputError("--memory-limit", "be used together with --detections", got="none", cause=cause)
    # Rejects what cannot be read in partitions.
    is_larger(arguments)
    try:
        protocol = judging_protocol(arguments.protocol, scored=has_scores(arguments))
        shares = told_of_partitions(arguments, protocol, share_of, {"protocol": protocol})
    except InputError as error:
        if error.name.startswith("--"):
            raise
        return [refused("detections-refused", error)]
    findings, images = findings_of_shares(shares, protocol)
    say(note_of_shares(images), name="note")
    return findings


def _totals(findings: Sequence[Finding]) -> dict[str, int]:
    counts = Counter(finding.severity for finding in findings)
    return {severity: counts[severity] for severity in SEVERITIES}


def _digest(findings: Sequence[Finding]) -> str:
    counts = _totals(findings)
    return ", ".join(counted(counts[name], name) for name in SEVERITIES)


def _text(findings: Sequence[Finding], protocol: Protocol) -> str:
    lines = []
    for finding in findings:
        severity = colored(
            finding.severity, {"error": "red", "warning": "yellow"}.get(finding.severity, "bold")
        )
        lines.append(f"{severity}: {finding.code} ({finding.count:,})")
        indented = [(4, printable(as_typed(finding.message))), (4, finding.effect_text)]
        indented += [(6, printable(example)) for example in finding.examples]
        for indent, text in indented:
            if text:
                lines.append(wrapped(" " * indent + text, width(), indent=" " * (indent + 2 * (indent > 4))))
        lines.append("")
    return "\n".join([*lines, _digest(findings), signature_lines(protocol.signature())])


_COLUMNS = ("severity", "kind", "code", "count", "message")
_EFFECT = ("metric", "value", "repaired", "bound", "repair")


def _value(findings: Sequence[Finding], protocol: Protocol) -> dict[str, Any]:
    """Return the JSON form."""
    rows = []
    for finding in findings:
        row: dict[str, Any] = {name: getattr(finding, name) for name in _COLUMNS}
        effect = {name: getattr(finding, name) for name in ("repair", "metric", "value", "repaired", "bound")}
        row["effect"] = {**effect, "difference": finding.effect} if finding.repair else None
        row["examples"] = list(finding.examples)
        rows.append(row)
    return {"signature": protocol.signature(), "counts": _totals(findings), "findings": rows}


def _parts_of_effects(findings: Sequence[Finding]) -> dict[str, list[Any]]:
    return {name: [getattr(finding, name) for finding in findings] for name in _EFFECT}


def _table(findings: Sequence[Finding], **effects: list[Any]) -> Columns:
    """Return a row per finding: what it is, its effect, an example."""
    examples = [finding.examples[0] if finding.examples else "" for finding in findings]
    known = {name: [getattr(finding, name) for finding in findings] for name in _COLUMNS}
    return {**known, **effects, "example": examples}
