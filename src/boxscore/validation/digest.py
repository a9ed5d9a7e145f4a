"""One line about the faults of what was just evaluated: the checks that cost next to nothing.

Conventions
-----------
- What a loader warns of is not said again: repeated ids, boxes in another order, classes left out.
- A class that a detector never finds is common among many classes, and its row says 0: it is mentioned from
  half of the classes on.
- Costly checks (duplicates, effects on the score) are left to ``boxscore validate``. Whether the two files
  number their images and classes alike is looked at only below :data:`LOW`, where it is the likely cause.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxscore.evaluation import Evaluation
from boxscore.validation._findings import Context, Finding
from boxscore.validation.geometric import quick_geometric_findings
from boxscore.validation.mismatch import mismatch_findings
from boxscore.validation.semantic import quick_semantic_findings
from boxscore.validation.structural import quick_structural_findings

__all__ = ["digest", "quick_findings"]

LOW = 0.05
"""Headline number below which ids are compared as well."""

MOST_NAMED = 4


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
    context = Context(
        evaluation.ground_truth, evaluation.detections, evaluation.protocol, given=evaluation, brief=True
    )
    found = [
        *quick_structural_findings(context),
        *quick_geometric_findings(context),
        *quick_semantic_findings(context),
    ]
    if context.value < LOW:
        found += mismatch_findings(context)
    return [
        finding
        for name in ("error", "warning")
        for finding in found
        if finding.severity == name and (finding.code, name) != ("class-without-detections", "warning")
    ]


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
