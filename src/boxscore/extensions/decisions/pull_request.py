"""Summarize a gate for a pull request in GitHub Markdown: the verdict first, classes folded.

Conventions
-----------
- The first line is :data:`MARKER`, by which a workflow finds its earlier comment.
- A comment may have 65,536 characters: classes are listed as space permits, and the rest is counted.
- Names come from files: Markdown in them is escaped, and ``@`` does not notify anyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boxscore._utils.text import counted, fixed, markdown_table, printable
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import TOO_FEW, DetectorComparison
from boxscore.extensions.decisions.gate import Check

MARKER = "<!-- boxscore check -->"

MOST_CLASSES = 100
"""Maximum rows of the folded table, the worst first."""

LONGEST = 60
"""Maximum characters of a name."""


def pull_request_summary(
    done: Sequence[Check],
    *,
    note: str,
    signature: str,
    name: str | None = None,
    evaluation: Evaluation | None = None,
    comparison: DetectorComparison | None = None,
) -> str:
    """Write the summary.

    Parameters
    ----------
    done : sequence of Check
    note : str
        The outcome on its first line, explanations on the others.
    signature : str
    name : str, optional
        Name of the model.
    evaluation : Evaluation, optional
        Its classes are listed without a comparison.
    comparison : DetectorComparison, optional
        Comparison of the baseline and the checked result: lists the differences of all metrics and of each
        class.
    """
    outcome, *meaning = note.split("\n")
    mark = ":x:" if any(not check.passed for check in done) else ":white_check_mark:"
    parts = [MARKER, f"### {mark} {_title(name)}: {outcome}"]
    if done:
        parts.append(_table(_of_checks(done)))
    if comparison is not None:
        classes = len(comparison.classes)
        parts.append(_fold(_sentence(comparison), _table(_differences(comparison)), classes))
    elif evaluation is not None:
        classes = len(evaluation.labels)
        parts.append(_fold(counted(classes, "class"), _table(_classes(evaluation)), classes))
    if meaning:
        parts.append(_fold("How to read this", "\n".join(f"- {line}" for line in meaning)))
    return "\n\n".join([*parts, f"`{signature}`"]) + "\n"


def _title(name: str | None) -> str:
    if name is None:
        return "boxscore"
    return f"boxscore, `{printable(_escape_name(name)).replace('`', '')}`"


def _of_checks(done: Sequence[Check]) -> dict[str, list[Any]]:
    """Build the columns of the checks; for those with a baseline, the difference and its interval."""
    # Include columns of a baseline only if some check has one.
    columns: dict[str, list[Any]] = {"metric": [_escape_name(check.title) for check in done]}
    if any(check.baseline is not None for check in done):
        columns["baseline"] = [check.baseline for check in done]
    columns["now"] = [check.value for check in done]
    if any(check.baseline is not None for check in done):
        columns["difference"] = [
            ""
            if check.baseline is None or check.value is None
            else fixed(check.value - check.baseline, signed=True)
            for check in done
        ]
    if any(check.low is not None for check in done):
        columns["interval"] = [_interval(check.low, check.high) for check in done]
    # The rule and its outcome come last.
    columns["must be"] = [check.rule for check in done]
    columns["result"] = [
        TOO_FEW if check.undecided else "passed" if check.passed else "FAILED" for check in done
    ]
    return columns


def _sentence(comparison: DetectorComparison) -> str:
    """Count in one line how many classes improved or got worse."""
    verdicts = comparison.per_class.verdict[0, 0].tolist()
    count = {word: verdicts.count(word) for word in ("worse", "better")}
    changed = [f"{number} {word}" for word, number in count.items() if number]
    text = ", ".join(changed) or "none significantly better or worse"
    return f"{counted(len(verdicts), 'class')}, {comparison.metrics[0]}: {text}"


def _differences(comparison: DetectorComparison) -> dict[str, list[Any]]:
    """Build the columns of the classes' first metric: worse ones first, then by difference."""
    rank = {"worse": 0, "better": 1}
    lines = comparison.per_class.take(0, 0)
    delta = [value if value == value else None for value in lines.delta.tolist()]
    rows = sorted(
        range(len(comparison.classes)),
        key=lambda k: (rank.get(lines.verdict[k], 2), delta[k] is None, delta[k] or 0.0),
    )[:MOST_CLASSES]
    return {
        "class": [_escape_name(comparison.classes[k]) for k in rows],
        "baseline": [lines.value_first[k] for k in rows],
        "now": [lines.value_other[k] for k in rows],
        "difference": ["" if delta[k] is None else fixed(lines.delta[k], signed=True) for k in rows],
        "interval": [_interval(lines.low[k], lines.high[k]) for k in rows],
        "verdict": ["" if delta[k] is None else str(lines.verdict[k]) for k in rows],
    }


def _classes(evaluation: Evaluation) -> dict[str, list[Any]]:
    """Build the columns of the classes, the lowest first."""
    values = evaluation.class_values
    first = next(iter(values.values()), None)
    if first is None:
        return {}
    rows = sorted(range(len(first)), key=lambda k: (first[k] != first[k], first[k]))[:MOST_CLASSES]
    return {
        "class": [_escape_name(evaluation.labels[k]) for k in rows],
        "objects": [evaluation.class_counts["ground_truths"].tolist()[k] for k in rows],
        **{key: [column[k] for k in rows] for key, column in [*values.items()][:3]},
    }


def _interval(low: Any, high: Any) -> str:
    if low is None or high is None or low != low or high != high:
        return ""
    return f"{fixed(low, signed=True)} to {fixed(high, signed=True)}"


def _table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Write a table with failures in bold, and ``@`` escaped."""
    text = markdown_table(columns).replace("| FAILED |", "| **failed** |")
    return text.replace("@", "@<!-- -->")


def _fold(title: str, text: str, rows: int = 0) -> str:
    left = rows - MOST_CLASSES
    more = f"\n\n... and {counted(left, 'more class')}" if left > 0 else ""
    return f"<details><summary>{title}</summary>\n\n{text}{more}\n\n</details>"


def _escape_name(text: str) -> str:
    """Truncate and escape a name."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
