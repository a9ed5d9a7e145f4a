"""Collect findings about an evaluation: all for a report page, and a few lines below a result.

Conventions
-----------
- A page lists every finding, as ``validate`` does. The lines contain only errors and warnings of checks that
  cost almost nothing, and :data:`SAID_NOTES`.
- The lines do not repeat warnings of loaders, such as repeated ids and unknown classes. Boxes in another form
  are reported with both scores, which replaces a loader's warning about them; their consequences (a low
  score, no overlaps) are suppressed.
- With many classes, some often lack detections, and their rows show 0. The lines mention them only if half of
  the classes lack detections and others have some.
- Effects on the score are included if they are known already, or if the data are so small that more
  evaluations take almost no time.
- Each finding is one sentence, the most serious first, both in the command and in Python, where it is a
  warning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import FindingWarning, is_refused, with_severity
from boxscore.evaluation import Evaluation
from boxscore.extensions.validation._findings import (
    BOXES_OF_MASKS,
    IN_PASSING,
    NETWORK,
    ON_A_PAGE,
    PLACED,
    SIZES_SWAPPED,
    WHEN_ASKED,
    Context,
    Finding,
    by_weight,
)
from boxscore.extensions.validation.checking import FORMS, check

MOST_SAID = 4

FEW = 1_000
"""Maximum annotations and detections for evaluations in quick checks, which then take a millisecond."""

IN_PYTHON = (
    (r"--dt-box-format (\w+)", r'box_format="\1" of load_detections'),
    (r"--gt-box-format (\w+)", r'box_format="\1" of load_ground_truth'),
    (r"--image-id-offset (-?\d+)", r"image_id_offset=\1 of load_detections"),
    (r"--network-input (\S+\w)", r'network_input="\1" of load_detections'),
    (r"--swap-image-sizes", "swap_image_sizes=True of load_ground_truth"),
    (r"--images FILE", "images= of evaluate"),
)
"""Options in messages, and the Python arguments that have another name."""

MANY = 2_000_000
"""Number of annotations and detections above which a page skips further evaluations."""

WARNED_OF = (*FORMS, "annotation-id-zero", "repeated-annotation-id", "unknown-class")
"""Codes of findings that a loader or the evaluation warns about itself."""

SAID_NOTES = ("beyond-max-detections",)
"""Codes of notes that quick checks report: they exist only if they cost enough."""

ERRORS = (
    *(*PLACED, BOXES_OF_MASKS, *FORMS, "repeated-annotation-id", "unknown-class"),
    *("image-without-detections", "class-without-detections", "scores-all-equal", "images-off-by-one"),
    *("classes-numbered-differently", "image-labels-missing", "detections-unlisted", "lvis-version"),
    "detections-off-annotations",
)
"""Codes of findings that may be errors in readable files."""

ACCEPTED = (
    *ERRORS,
    *("classes-of-one-name", "class-without-results-file", "class-always-called-another"),
    *("oriented-boxes-without-effect", "keypoints-without-effect", "masks-without-effect"),
    *("annotation-degenerate", "detection-degenerate", "annotation-outside-image", "integer-coordinates"),
    *("crowd-flag-without-effect", "difficult-flag-without-effect", "ignore-flag-without-effect"),
    *("area-exceeds-box", "area-not-positive", "area-disagrees-with-mask", "annotation-empty-mask"),
    *("score-outside-0-1", "score-floor", "detections-cut-per-image"),
)
"""Codes that ``--allow`` takes: findings of the quick checks that ``--strict`` fails on."""


def quick_findings(evaluation: Evaluation) -> list[Finding]:
    """Run the checks that cost almost nothing: errors, then warnings, without examples."""
    context = _context(evaluation, IN_PASSING)
    findings = [
        finding
        for finding in check(context)
        if (is_refused(finding.severity) or finding.code in SAID_NOTES)
        and (finding.code, finding.severity) != ("class-without-detections", "warning")
        and (finding.code != "class-without-detections" or len(evaluation.detections))
    ]
    if _rows(evaluation) <= FEW:
        findings = [finding if finding.repair else context.with_effect(finding) for finding in findings]
    return by_weight(_first_causes(findings))


def _first_causes(findings: list[Finding]) -> list[Finding]:
    """Suppress findings that boxes in another form may explain, if a known form raises the score."""
    causes = (BOXES_OF_MASKS, *PLACED, *FORMS)
    forms = [one for one in findings if one.code in causes and one.repair and not one.effect <= 0]
    if not forms:
        return findings
    return [one for one in findings if one in forms or (one.kind, one.severity) == ("structural", "error")]


def findings_of(evaluation: Evaluation, *, effects: bool = True) -> list[Finding]:
    """Run every check on an evaluation's tables; without effects, skip further evaluations."""
    effort = WHEN_ASKED if effects and _rows(evaluation) <= MANY else ON_A_PAGE
    return check(_context(evaluation, effort))


def page_findings(evaluation: Evaluation) -> tuple[list[Finding], str]:
    """Return the findings of a page, and a note on checks that partitions leave out; empty in one process."""
    # A plain evaluation does not load this module.
    from boxscore.extensions.large.questions import source_of

    if source_of(evaluation).is_here:
        return findings_of(evaluation), ""
    from boxscore.extensions.validation.in_parts import findings_of_partitions, note_of_shares

    findings, images = findings_of_partitions(evaluation)
    return findings, note_of_shares(images)


def _rows(evaluation: Evaluation) -> int:
    return len(evaluation.ground_truth) + len(evaluation.detections)


def _context(evaluation: Evaluation, effort: int) -> Context:
    truth, detections, protocol = evaluation.ground_truth, evaluation.detections, evaluation.protocol
    return Context(truth, detections, protocol, given=evaluation, effort=effort)


def digest(findings: Sequence[Finding]) -> list[str]:
    """Describe each of the first findings in a sentence, with its effect, and count the others."""
    said = [_sentence(finding) for finding in findings[:MOST_SAID]]
    more = len(findings) - len(said)
    if more:
        said.append(f"{counted(more, 'more finding')} about the input: boxscore validate lists them.")
    return said


def _sentence(finding: Finding) -> str:
    stop = "" if finding.message.endswith((".", "?")) else "."
    effect = f" {finding.effect_text}." if finding.effect_text else ""
    return with_severity(finding.severity, f"{finding.message}{stop}{effect}")


def warn_of_findings(evaluation: Evaluation) -> set[str]:
    """Warn the caller of ``evaluate`` about each finding, the most serious first; return their codes."""
    findings = quick_findings(evaluation)
    for finding, text in zip(findings, digest(findings)[:MOST_SAID], strict=False):
        warning = FindingWarning(_for_python(text), code=finding.code, severity=finding.severity)
        warn_user(warning)
    return covered_codes(findings[:MOST_SAID])


def covered_codes(findings: Sequence[Finding]) -> set[str]:
    """Return the codes of warnings that findings replace: misplaced boxes look like another form."""
    codes = {finding.code for finding in findings}
    if BOXES_OF_MASKS in codes:
        return codes.union(FORMS, {"classes-numbered-differently"})
    if SIZES_SWAPPED in codes:
        return codes.union(FORMS)
    return codes | {"detection-box-order"} if NETWORK in codes else codes


def _for_python(text: str) -> str:
    """Add the Python argument to the first option that has another name there, and drop "warning: "."""
    text = text.removeprefix("warning: ")
    for option, argument in IN_PYTHON:
        text = re.sub(option, rf"\g<0>, or {argument}", text, count=1)
    return text
