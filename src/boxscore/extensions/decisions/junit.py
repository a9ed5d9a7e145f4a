"""Write checks as JUnit XML, which CI systems show as tests: one test case per check.

Conventions
-----------
- The format is that of the Ant task, which GitLab, Jenkins, Azure and GitHub's actions read: ``testsuites``
  with one ``testsuite`` and its counts, and a ``testcase`` per check, with a ``failure`` if the check failed.
- Names come from files: characters that XML cannot represent are replaced, the rest is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import quoteattr

from boxscore._utils.text import printable
from boxscore.extensions.decisions.gate import Check

SUITE = "boxscore check"


def as_junit(checks: Sequence[Check], *, time: str, properties: Mapping[str, str]) -> str:
    """Write checks as JUnit XML.

    Parameters
    ----------
    checks : sequence of Check
    time : str
        Time of the run, UTC, ISO 8601.
    properties : mapping of str to str
        Properties of the suite: signature, name of the model, ...
    """
    # JUnit needs the counts before the cases.
    failed = sum(not check.passed for check in checks)
    counts = {"tests": len(checks), "failures": failed, "errors": 0}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes(name=SUITE, **counts)}>",
        f"  <testsuite{_attributes(name=SUITE, **counts, skipped=0, time=0, timestamp=time.rstrip('Z'))}>",
        "    <properties>",
        *(f"      <property{_attributes(name=key, value=value)}/>" for key, value in properties.items()),
        "    </properties>",
    ]
    # A passed case is one tag; a failed one has the value and the rule.
    for check in checks:
        case = f"    <testcase{_attributes(classname=SUITE, name=f'{check.title} {check.rule}', time=0)}"
        if check.passed:
            lines.append(f"{case}/>")
        else:
            message = f"{check.title} is {_format_value(check.value)}, must be {check.rule}"
            failure = f"      <failure{_attributes(message=message, type='boxscore.check')}/>"
            lines += [f"{case}>", failure, "    </testcase>"]
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"]) + "\n"


def _format_value(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _attributes(**values: object) -> str:
    return "".join(f" {key}={quoteattr(_plain(str(value)))}" for key, value in values.items())


def _plain(text: str) -> str:
    """Replace characters that XML 1.0 cannot represent."""
    return re.sub("[\ud800-\udfff\ufffe\uffff]", "\N{REPLACEMENT CHARACTER}", printable(text))
