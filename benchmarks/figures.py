"""The table of the page of benchmarks, and the figures that pages quote, from ``benchmarks/figures.toml``.

Goal
----
Each figure stands once, with its machine and date. A page that quotes one has it between marks, which
readers of the page do not see: ``<!--=boxes-500k.ratio-->0.93<!--=-->``.

Usage
-----
    python benchmarks/figures.py    # writes the table and the figures; a test fails where one is another
    python benchmarks/figures.py --results DIR --machine "EPYC 24" --described "AMD EPYC, ..."
                                    # takes in first what table.py measured and stored, in results/threads_2

Conventions
-----------
- ``KEY.ratio`` is ours / theirs, below 1 is faster; ``KEY.ours``, ``KEY.theirs`` are seconds;
  ``KEY.memory`` is the ratio of the memory. A format may follow: ``boxes-36k.ours:.2g``.
- ``count.formats`` and ``count.protocols`` are counted in the code.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

sys.path.insert(0, str(Path(__file__).parent))
import measured

PROJECT = Path(__file__).parents[1]
TABLE = PROJECT / "benchmarks" / "figures.toml"
PAGE = PROJECT / "docs" / "contributing" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
FIGURE = re.compile(r"<!--=(?P<name>[\w.-]+)(?::(?P<form>[^-]*))?-->.*?<!--=-->", re.DOTALL)

Row = dict[str, Any]


def known() -> tuple[dict[str, str], list[Row]]:
    """Return the machines and the rows, each with its ratio."""
    content = tomllib.loads(TABLE.read_text(encoding="utf-8"))
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
        work = row["work"] + (f" ({row['note']})" if "note" in row else "")
        cells = [work, row["scope"], _seconds(row["ours"]), peer, ratio, memory, row["machine"]]
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


def take_in(results: Path, machine: str, described: str) -> list[str]:
    """Write what was measured on a machine into ``figures.toml``; return the keys of the rows."""
    head, *blocks = TABLE.read_text(encoding="utf-8").split("[[row]]\n")
    new = {row["key"]: row | {"machine": machine} for row in measured.rows_of(results)}
    written_blocks = []
    for block in blocks:
        known_row = tomllib.loads(block)
        if known_row["key"] in new:
            kept = {name: known_row[name] for name in ("key", "work", "scope")}
            block = f"{_as_toml(kept | new.pop(known_row['key']))}\n"
        written_blocks.append(block)
    written_blocks = [f"{block.rstrip()}\n\n" for block in written_blocks]
    written_blocks += [f"{_as_toml(row)}\n" for row in new.values() if "work" in row]
    machines = tomllib.loads(head)["machines"] | {machine: described}
    used = {tomllib.loads(block)["machine"] for block in written_blocks}
    before = head[: head.index("[machines]")]
    head = f"{before}[machines]\n" + "".join(
        f"{json.dumps(name)} = {json.dumps(text)}\n" for name, text in machines.items() if name in used
    )
    text = "[[row]]\n".join([f"{head}\n", *written_blocks]).rstrip() + "\n"
    TABLE.write_text(text, encoding="utf-8")
    return [row["key"] for row in measured.rows_of(results)]


def _as_toml(row: Row) -> str:
    names = ("key", "work", "scope", "machine", "peer", "ours", "theirs", "ratio", "memory")
    return "".join(f"{name} = {json.dumps(row[name])}\n" for name in names if name in row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--results", type=Path, metavar="DIR", help="what table.py stored, to be taken in first"
    )
    parser.add_argument("--machine", default="this", help="short name of the machine that it is of")
    parser.add_argument("--described", default="", help="processor, memory, system, date")
    arguments = parser.parse_args()
    if arguments.results:
        print(", ".join(take_in(arguments.results, arguments.machine, arguments.described)))
    for page in pages():
        text = written(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(PROJECT))


if __name__ == "__main__":
    main()
