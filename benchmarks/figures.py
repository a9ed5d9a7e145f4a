"""The table of docs/benchmarks.md, and the figures that pages quote, from ``benchmarks/figures.toml``.

Goal
----
Each figure stands once, with its machine and date. A page that quotes one has it between marks, which
readers of the page do not see: ``<!--=boxes-500k.ratio-->0.93<!--=-->``.

Usage
-----
    python benchmarks/figures.py    # writes the table and the figures; a test fails where one is another

Conventions
-----------
- ``KEY.ratio`` is ours / theirs, below 1 is faster; ``KEY.ours``, ``KEY.theirs`` are seconds;
  ``KEY.memory`` is the ratio of the memory. A format may follow: ``boxes-36k.ours:.2g``.
- ``count.formats`` and ``count.protocols`` are counted in the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).parents[1]
PAGE = PROJECT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FIGURE = re.compile(r"<!--=(?P<name>[\w.-]+)(?::(?P<form>[^-]*))?-->.*?<!--=-->", re.DOTALL)

Row = dict[str, Any]


def known() -> tuple[dict[str, str], list[Row]]:
    """Return the machines and the rows, each with its ratio."""
    content = tomllib.loads((PROJECT / "benchmarks" / "figures.toml").read_text(encoding="utf-8"))
    rows: list[Row] = content["row"]
    for row in rows:
        if "theirs" in row and "ratio" not in row:
            row["ratio"] = row["ours"] / row["theirs"]
    return content["machines"], rows


def figures(rows: list[Row]) -> dict[str, tuple[float, str]]:
    """Return each figure by name, with its usual format."""
    sys.path.insert(0, str(PROJECT / "src"))
    from boxscore.formats.registry import format_names
    from boxscore.protocols import protocol_names

    found: dict[str, tuple[float, str]] = {
        "count.formats": (len(format_names(auto=False)), "d"),
        "count.protocols": (len(protocol_names()), "d"),
    }
    for row in rows:
        found |= {
            f"{row['key']}.{part}": (row[part], ".2f" if part == "ratio" else "g")
            for part in ("ours", "theirs", "ratio")
            if isinstance(row.get(part), float)
        }
        if "memory" in row:
            ours, theirs = row["memory"]
            found[f"{row['key']}.memory"] = (ours / theirs, ".2f")
    return found


def filled(text: str, values: Mapping[str, tuple[float, str]]) -> str:
    """Write the figures between their marks."""

    def figure(found: re.Match[str]) -> str:
        value, usual = values[found["name"]]
        form = found["form"]
        mark = found["name"] + (f":{form}" if form else "")
        return f"<!--={mark}-->{value:{form or usual}}<!--=-->"

    return FIGURE.sub(figure, text)


def table(machines: Mapping[str, str], rows: list[Row]) -> str:
    """Write every row, and what the machines are."""
    lines = [
        "| work | what is timed | boxscore | fastest peer | ratio | memory, MB | machine |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        theirs = _seconds(row["theirs"]) if "theirs" in row else ""
        peer = " ".join(part for part in (theirs, f"({row['peer']})" if "peer" in row else "") if part)
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        if ratio and row["ratio"] < 1:
            ratio = f"**{ratio}**"
        memory = " / ".join(map(str, row.get("memory", ())))
        cells = [row["work"], row["scope"], _seconds(row["ours"]), peer, ratio, memory, row["machine"]]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| machine | |", "|---|---|", *(f"| {name} | {text} |" for name, text in machines.items())]
    return "\n".join(lines)


def _seconds(value: float | str) -> str:
    if isinstance(value, str):
        return f"{value} s"
    return f"{value * 1000:.3g} ms" if value < 0.1 else f"{value:.3g} s"


def written(page: Path) -> str:
    """Return a page as it should be."""
    machines, rows = known()
    text = page.read_text(encoding="utf-8")
    if page == PAGE:
        before, rest = text.split(BEGIN, 1)
        text = f"{before}{BEGIN}\n\n{table(machines, rows)}\n\n{END}{rest.split(END, 1)[1]}"
    return filled(text, figures(rows))


def pages() -> list[Path]:
    """Return every page that may quote a figure."""
    return [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]


def main() -> None:
    for page in pages():
        text = written(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(PROJECT))


if __name__ == "__main__":
    main()
