"""Every check of tables, and their findings in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boxscore.validation._findings import Context, Finding, by_weight
from boxscore.validation.geometric import geometric_findings
from boxscore.validation.image_labels import image_label_findings, not_exhaustive_findings
from boxscore.validation.lvis import lvis_findings
from boxscore.validation.mismatch import mismatch_findings
from boxscore.validation.misnamed import misnamed_findings
from boxscore.validation.semantic import semantic_findings
from boxscore.validation.structural import structural_findings
from boxscore.validation.unread import unread_findings

__all__ = ["CHECKS", "check"]

CHECKS: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    structural_findings,
    geometric_findings,
    unread_findings,
    semantic_findings,
    mismatch_findings,
    misnamed_findings,
    not_exhaustive_findings,
    lvis_findings,
    image_label_findings,
)
"""In the order in which they run."""


def check(context: Context) -> list[Finding]:
    """Run every check: errors first, and of one severity those that cost most."""
    return by_weight(finding for one in CHECKS for finding in one(context))
