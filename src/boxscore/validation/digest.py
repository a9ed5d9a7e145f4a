"""Findings about an evaluation, without evaluating again: for a report page, and in one line.

Conventions
-----------
- A page lists every finding. The line has only errors and warnings, of checks that cost almost nothing.
- The line does not repeat what loaders warn about: repeated ids, boxes in another order, unknown classes.
- A class without detections is common among many classes, and its row shows 0: the line mentions it only
  when half of the classes have none.
- Costly checks (effects on the score) are left to ``boxscore validate``.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxscore.evaluation import Evaluation
from boxscore.validation import CHECKS
from boxscore.validation._findings import IN_PASSING, ON_A_PAGE, Context, Finding

__all__ = ["WARNED_OF", "digest", "page_findings", "quick_findings"]

MOST_NAMED = 4

WARNED_OF = (
    *("annotation-box-order", "detection-box-order", "annotation-id-zero", "repeated-annotation-id"),
    "unknown-class",
)
"""Codes of findings that a loader or the evaluation warns about itself."""


def quick_findings(evaluation: Evaluation) -> list[Finding]:
    """Run the checks that cost almost nothing: errors, then warnings, without examples and effects."""
    return [
        finding
        for finding in _findings(evaluation, IN_PASSING, ("error", "warning"))
        if (finding.code, finding.severity) != ("class-without-detections", "warning")
    ]


def page_findings(evaluation: Evaluation) -> list[Finding]:
    """Run the checks that evaluate nothing again: all severities, without examples and effects."""
    return _findings(evaluation, ON_A_PAGE, ("error", "warning", "info"))


def _findings(evaluation: Evaluation, effort: int, severities: Sequence[str]) -> list[Finding]:
    context = Context(
        evaluation.ground_truth, evaluation.detections, evaluation.protocol, given=evaluation, effort=effort
    )
    findings = [finding for check in CHECKS for finding in check(context)]
    return [finding for name in severities for finding in findings if finding.severity == name]


def digest(findings: Sequence[Finding]) -> str:
    """Sum findings up in one line: how many errors and warnings, and the first codes with their counts."""
    totals = []
    for name in ("error", "warning"):
        count = sum(finding.severity == name for finding in findings)
        totals += [f"{count} {name}{'s' * (count > 1)}"] * (count > 0)
    codes = [f"{finding.code} ({finding.count})" for finding in findings[:MOST_NAMED]]
    more = [f"{len(findings) - MOST_NAMED} more"] * (len(findings) > MOST_NAMED)
    return f"{' and '.join(totals)} about the input: {', '.join(codes + more)}; boxscore validate says more"
