"""Findings about an evaluation: for a report page, and in passing for a few lines below the result.

Conventions
-----------
- A page lists every finding, as ``validate`` does. The lines have only errors and warnings, of checks that
  cost almost nothing.
- The lines do not repeat what loaders warn about: repeated ids, boxes in another order, unknown classes.
- A class without detections is common among many classes, and its row shows 0: the lines mention it only
  when half of the classes have none.
- Of the first finding the lines say the effect on the score where it is known already, or where the data are
  so few that another evaluation takes no time.
"""

from __future__ import annotations

from collections.abc import Sequence

from boxscore.evaluation import Evaluation
from boxscore.validation._findings import IN_PASSING, ON_A_PAGE, WHEN_ASKED, Context, Finding
from boxscore.validation.checking import check

__all__ = ["WARNED_OF", "digest", "findings_of", "quick_findings"]

MOST_NAMED = 4

FEW = 1_000
"""Annotations and detections that are evaluated again in passing: a millisecond."""

MANY = 2_000_000
"""Annotations and detections from which a page does without further evaluations."""

WARNED_OF = (
    *("annotation-box-order", "detection-box-order", "annotation-id-zero", "repeated-annotation-id"),
    "unknown-class",
)
"""Codes of findings that a loader or the evaluation warns about itself."""


def quick_findings(evaluation: Evaluation) -> list[Finding]:
    """Run the checks that cost almost nothing: errors, then warnings, without examples."""
    context = _context(evaluation, IN_PASSING)
    findings = [
        finding
        for finding in check(context)
        if finding.severity != "info"
        and (finding.code, finding.severity) != ("class-without-detections", "warning")
    ]
    if findings and not findings[0].repair and _rows(evaluation) <= FEW:
        findings[0] = context.with_effect(findings[0])
    return findings


def findings_of(evaluation: Evaluation, *, effects: bool = True) -> list[Finding]:
    """Run every check on the tables of an evaluation; without effects, those that evaluate nothing again."""
    effort = WHEN_ASKED if effects and _rows(evaluation) <= MANY else ON_A_PAGE
    return check(_context(evaluation, effort))


def _rows(evaluation: Evaluation) -> int:
    return len(evaluation.ground_truth) + len(evaluation.detections)


def _context(evaluation: Evaluation, effort: int) -> Context:
    truth, detections, protocol = evaluation.ground_truth, evaluation.detections, evaluation.protocol
    return Context(truth, detections, protocol, given=evaluation, effort=effort)


def digest(findings: Sequence[Finding]) -> str:
    """Say the first finding in words, with its effect, and name the others."""
    first, *rest = findings
    stop = "" if first.message.endswith((".", "?")) else "."
    lead = "error in the input" if first.severity == "error" else "warning about the input"
    text = f"{lead}: {first.message}{stop}"
    if first.effect_text:
        text += f" {first.effect_text}."
    if rest:
        codes = [f"{finding.code} ({finding.count:,})" for finding in rest[:MOST_NAMED]]
        codes += [f"{len(rest) - MOST_NAMED} more"] * (len(rest) > MOST_NAMED)
        text += f" Also: {', '.join(codes)}."
    return text
