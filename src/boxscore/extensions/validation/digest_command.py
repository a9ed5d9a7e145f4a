"""The quick check of the input, which commands print after the numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from boxscore._utils import checks
from boxscore._utils.progress import stage
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import printable, short_list
from boxscore.cli.output import Remembered
from boxscore.cli.streams import as_typed
from boxscore.errors import FindingWarning
from boxscore.evaluation import Evaluation
from boxscore.extensions.validation.digest import ERRORS, MOST_SAID, digest, quick_findings

LINE = 80
"""Characters of a line on stderr."""


class Digest(NamedTuple):
    """What the quick checks find: lines to say, and the errors among it that are not allowed, in words.

    ``texts`` are the findings without the name of the result that they are of.
    """

    lines: list[str]
    errors: dict[str, str]
    texts: Sequence[str] = ()

    def refuse_errors(self) -> None:
        """Raise the first error in the input, as ``--strict`` does."""
        for code, words in self.errors.items():
            raise FindingWarning(f"{words} Accept it with --allow {code}.", code=code, severity="error")


NOTHING = Digest([], {})
"""What is found where nothing is checked."""


def digest_of(
    evaluation: Evaluation,
    *,
    name: str = "",
    allowed: Sequence[str] = (),
    warned: Remembered | None = None,
) -> Digest:
    """Run the quick checks of the input; ``warned`` are warnings from before, some of which are errors."""
    # Unknown names of findings are refused first, so that a typing error accepts nothing.
    for code in allowed:
        checks.one_of(code, ERRORS, name="--allow")
    stage("checking the input")
    # Word the findings, with the detector's name if there are several.
    findings = quick_findings(evaluation)
    sentences = digest(findings)
    texts = [f"{name and f'{name}: '}{text}" for text in sentences]
    errors = {
        finding.code: text
        for finding, text in zip(findings, texts, strict=False)
        if finding.severity == "error"
    }
    # Warnings that a finding says better are forgotten; the severe ones left count as errors.
    if warned is not None:
        warned.forget_held({finding.code for finding in findings[:MOST_SAID]}, evaluation)
        for warning in warned.warnings:
            if warning.severity == "error":
                errors.setdefault(warning.code, str(warning))
    lines = [line for text in texts for line in _folded(text)]
    return Digest(lines, {code: text for code, text in errors.items() if code not in allowed}, sentences)


def finding_lines_of(names: list[str], digests: list[Digest]) -> list[str]:
    """Say each finding once, after the names of the detectors whose finding it is."""
    whose: dict[str, list[str]] = {}
    for name, each in zip(names, digests, strict=False):
        for finding in each.texts:
            whose.setdefault(finding, []).append(name)
    lines = (_folded(f"{short_list(owners)}: {finding}") for finding, owners in whose.items())
    return [line for each in lines for line in each]


def _folded(text: str) -> list[str]:
    """Fold a finding for stderr."""
    line = printable(as_typed(f"boxscore: {text}"))
    return textwrap.wrap(line, LINE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
