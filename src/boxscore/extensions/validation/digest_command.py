"""Run the quick check of the input that commands print after the numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from boxscore._utils import checks
from boxscore._utils.progress import stage
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import printable, short_list
from boxscore.cli.output import Remembered
from boxscore.cli.streams import as_typed, say, settings
from boxscore.errors import FindingWarning, Severity, is_refused
from boxscore.evaluation import Evaluation
from boxscore.extensions.validation.digest import ACCEPTED, MOST_SAID, covered_codes, digest, quick_findings

LINE = 80
"""Characters per line on stderr."""


class Digest(NamedTuple):
    """Findings of the quick checks as sentences with severities, and those that ``--strict`` fails on.

    ``refused`` contains the errors and warnings that ``--allow`` does not list, by code. ``can_accept`` tells
    whether the command has this option.
    """

    sentences: Sequence[tuple[Severity, str]] = ()
    name: str = ""
    refused: Mapping[str, tuple[Severity, str]] = MappingProxyType({})
    can_accept: bool = False

    @property
    def errors(self) -> list[str]:
        """Codes of the errors that are not allowed."""
        return [code for code, (severity, _) in self.refused.items() if severity == "error"]

    def refuse(self) -> None:
        """Raise the first error or warning in the input, for ``--strict``."""
        for code, (severity, words) in self.refused.items():
            more = f" Accept it with --allow {code}." if self.can_accept else ""
            raise FindingWarning(f"{words}{more}", code=code, severity=severity)

    def say(self) -> None:
        """Print the findings on stderr; ``--quiet`` hides all but errors."""
        for severity, text in self.sentences:
            _say(severity, _with_name(self.name, text))


NOTHING = Digest()
"""The digest if nothing is checked."""


def digest_of(
    evaluation: Evaluation,
    *,
    name: str = "",
    allowed: Sequence[str] | None = None,
    warned: Remembered | None = None,
) -> Digest:
    """Run the quick checks of the input.

    ``allowed`` are codes that ``--strict`` accepts, or None if the command lacks the option; ``warned`` are
    earlier warnings, some of which are errors.
    """
    # Reject unknown codes first, so that a typo is not ignored.
    for code in allowed or ():
        checks.one_of(code, ACCEPTED, name="--allow")
    stage("checking the input")
    findings = quick_findings(evaluation)
    severities: list[Severity] = [*(finding.severity for finding in findings[:MOST_SAID]), "note"]
    sentences = list(zip(severities, digest(findings), strict=False))  # the last says how many more there are
    refused = {
        finding.code: (severity, _with_name(name, text.removeprefix("warning: ")))
        for finding, (severity, text) in zip(findings, sentences, strict=False)
        if is_refused(severity)
    }
    # Drop warnings that a finding describes better; the remaining severe ones count as errors.
    if warned is not None:
        codes = covered_codes(findings[:MOST_SAID])
        warned.forget_held(codes, evaluation)
        for warning in warned.warnings:
            if warning.severity == "error" and (warning.code in refused or warning.code not in codes):
                refused.setdefault(warning.code, (warning.severity, str(warning)))
    refused = {code: said for code, said in refused.items() if code not in (allowed or ())}
    return Digest(sentences, name, refused, allowed is not None)


def say_findings(digests: Sequence[Digest]) -> None:
    """Print each finding once, after the names of the detectors that have it."""
    whose: dict[tuple[Severity, str], list[str]] = {}
    for each in digests:
        for finding in each.sentences:
            whose.setdefault(finding, []).append(each.name)
    for (severity, text), owners in whose.items():
        _say(severity, _with_name(short_list([name for name in owners if name]), text))


def _with_name(name: str, text: str) -> str:
    """Put the name of a detector, if there is one, before a text."""
    return f"{name}: {text}" if name else text


def _say(severity: Severity, text: str) -> None:
    for line in _wrap(settings().own_options(text)):
        say(line, quiet=severity != "error")


def _wrap(text: str) -> list[str]:
    """Wrap a finding for stderr."""
    line = printable(as_typed(f"boxscore: {text}"))
    return textwrap.wrap(line, LINE, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
