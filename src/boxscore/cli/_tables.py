"""Diagnostic tables on stdout, in the four output forms."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from boxscore._utils.text import csv_table, json_text, markdown_table, text_table
from boxscore.evaluation import Evaluation
from boxscore.reports.text import counts_line

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_area_arguments", "add_resampling_arguments", "print_table", "table_columns", "table_rows"]


def add_area_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--iou`` and ``--area``: which of the protocol's thresholds and area ranges to look at."""
    parser.add_argument(
        "--iou", type=float, metavar="T", help="a threshold of the protocol (default: its first)"
    )
    parser.add_argument(
        "--area", default="all", metavar="NAME", help="an area range of the protocol (default: all)"
    )


def add_resampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the bootstrap takes."""
    parser.add_argument("--resamples", type=int, default=1000, metavar="N", help="draws (default: 1000)")
    parser.add_argument(
        "--confidence", type=float, default=0.95, metavar="P", help="of the intervals (default: 0.95)"
    )
    parser.add_argument("--method", default="bias_corrected", choices=["bias_corrected", "percentile"])
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draws (default: 0)")
    parser.add_argument(
        "--metrics", nargs="+", metavar="NAME", help="only these headline numbers, e.g. AP AP50"
    )
    parser.add_argument("--per-class", action="store_true", help="add one row a class")


def table_columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Columns of a frame as plain values, missing ones None and lists joined by blanks."""
    return {
        str(name): [_plain(value, join=True) for value in values.astype(object)]
        for name, values in frame.items()
    }


def table_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a frame as mappings for JSON, missing values None and lists as lists."""
    columns = {
        str(name): [_plain(value) for value in column.astype(object)] for name, column in frame.items()
    }
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _plain(value: Any, *, join: bool = False) -> Any:
    import pandas as pd

    if isinstance(value, list):
        return " ".join(map(str, value)) if join else value
    return None if value is pd.NA else value


def print_table(
    frame: pd.DataFrame, evaluation: Evaluation, output: str, *, title: str, digits: int = 4
) -> None:
    """Print one table: with title, counts and signature, or alone as CSV.

    Parameters
    ----------
    frame : DataFrame
    evaluation : Evaluation
        What the table is about.
    output : {"text", "json", "csv", "markdown"}
    title : str
    digits : int, default 4
        Decimals in text and Markdown.
    """
    if output == "json":
        print(
            json_text(
                {
                    "table": title,
                    "protocol": evaluation.protocol.name,
                    "signature": evaluation.signature,
                    "rows": table_rows(frame),
                }
            )
        )
    elif output == "csv":
        print(csv_table(table_columns(frame)), end="")
    elif output == "markdown":
        table = markdown_table(table_columns(frame), digits=digits)
        print(f"## {title}\n\n{counts_line(evaluation)}\n\n{table}\n\n`{evaluation.signature}`")
    else:
        table = text_table(table_columns(frame), digits=digits) if len(frame) else "(none)"
        print(f"{title}\n{counts_line(evaluation)}\n\n{table}\n\n{evaluation.signature}")
