"""The findings about what was just evaluated, without evaluating again: for a page, and in one line.

Conventions
-----------
- A page lists every finding. The line has errors and warnings alone, of checks that cost next to nothing.
- What a loader warns of is not said again in the line: repeated ids, boxes in another order, classes left
  out.
- A class that a detector never finds is common among many classes, and its row says 0: the line mentions it
  from half of the classes on.
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
"""Codes of what a loader, or the evaluation, warns of by itself."""


def quick_findings(evaluation: Evaluation) -> list[Finding]:
    """Check what was evaluated, by the checks that cost next to nothing.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    list of Finding
        Errors, then warnings, without examples and effects.
    """
    return [
        finding
        for finding in _found(evaluation, IN_PASSING, ("error", "warning"))
        if (finding.code, finding.severity) != ("class-without-detections", "warning")
    ]


def page_findings(evaluation: Evaluation) -> list[Finding]:
    """Check what was evaluated, by the checks that evaluate nothing again.

    Parameters
    ----------
    evaluation : Evaluation

    Returns
    -------
    list of Finding
        Errors, then warnings, then what is worth knowing; without examples and effects.
    """
    return _found(evaluation, ON_A_PAGE, ("error", "warning", "info"))


def _found(evaluation: Evaluation, effort: int, severities: Sequence[str]) -> list[Finding]:
    context = Context(
        evaluation.ground_truth, evaluation.detections, evaluation.protocol, given=evaluation, effort=effort
    )
    findings = [finding for check in CHECKS for finding in check(context)]
    return [finding for name in severities for finding in findings if finding.severity == name]


def digest(findings: Sequence[Finding]) -> str:
    """Say in one line what was found.

    Parameters
    ----------
    findings : sequence of Finding
        At least one.

    Returns
    -------
    str
        How many errors and warnings there are, and the first by their codes and counts.
    """
    totals = []
    for name in ("error", "warning"):
        count = sum(finding.severity == name for finding in findings)
        totals += [f"{count} {name}{'s' * (count > 1)}"] * (count > 0)
    codes = [f"{finding.code} ({finding.count})" for finding in findings[:MOST_NAMED]]
    more = [f"{len(findings) - MOST_NAMED} more"] * (len(findings) > MOST_NAMED)
    return f"{' and '.join(totals)} about the input: {', '.join(codes + more)}; boxscore validate says more"
