"""Write the page of a suite: a heat map of sets and models, with links to the report of each set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from boxscore._utils.files import write_folder
from boxscore._utils.text import counted, csv_table, json_value
from boxscore.extensions.decisions.swapping import level_of
from boxscore.extensions.decisions.wording import p_text
from boxscore.extensions.pages.html import render_static
from boxscore.extensions.suite.result import SuiteResult

LEVELS = 9
"""Colors of the heat map, from the worst cell to the best."""


def write_page(result: SuiteResult, folder: Path) -> Path:
    """Write ``suite.html``, ``suite.json`` and ``suite.csv``; return the page."""
    columns = {str(name): values.tolist() for name, values in result.to_frame().items()}
    files: dict[str, str | bytes] = {
        "suite.html": render_static(view_of(result, folder), template="suite"),
        "suite.json": result.to_json() + "\n",
        "suite.csv": csv_table(columns),
    }
    write_folder(folder, files)
    return folder / "suite.html"


def view_of(result: SuiteResult, folder: Path) -> dict[str, Any]:
    """Collect everything that the page shows; ``folder`` may contain the reports of the sets."""
    # Colors span the values of the table; the scale is reversed for metrics that fall as detectors improve.
    values, worked = result.values, result.worked
    signed = -values if result.falls else values
    low, high = values.min(), values.max()
    span = (high - low) or 1.0
    # Make a row per set, with a link to its report if there is one.
    rows = []
    for s, one in enumerate(result.suite.sets):
        page = f"sets/{one.name}/report.html"
        cells = []
        for m, cell in enumerate(result.cells[s]):
            # Compute the color level between the lowest and the highest value of the table; mark the best of
            # a set.
            share = float((values[s, m] - low) / span)
            share = 1 - share if result.falls else share
            best = bool(worked[s, m] and signed[s, m] == signed[s].max())
            cells.append(
                {
                    "value": float(values[s, m]),
                    "level": min(int(share * LEVELS), LEVELS - 1),
                    "best": best and len(result.models) > 1,
                    "state": "" if worked[s, m] else cell.state,
                    "reason": cell.reason,
                }
            )
        rows.append(
            {
                "name": one.name,
                "page": quote(page) if (folder / page).exists() else "",
                "groups": " ".join(one.groups),
                "images": int(result.images[s]),
                "cells": cells,
            }
        )
    # Everything else is JSON, as written to the file.
    plain = json.loads(json.dumps(json_value(result.as_dict())))
    count = int((~worked).sum())
    sets, images = counted(len(rows), result.suite.unit), int(result.images.sum())
    return {
        "title": result.suite.name,
        "lede": f"{sets}, {len(result.models)} models, {images:,} images",
        "metric": result.caption,
        "falls": result.falls,
        "models": result.models,
        "groups": result.groups,
        "rows": rows,
        "summary": plain["models"],
        "differences": [
            {**row, "p_text": p_text(row["p_value"], level_of(result.confidence))}
            for row in plain["differences"]
        ],
        "failed": plain["failed"],
        "failed_count": count,
        "warnings": plain["warnings"],
        "level": f"{100 * result.confidence:g}%",
        "interval_note": result.interval_note,
        "rule": result.rule,
        "unit": result.suite.unit,
        "signature": result.signature,
        "sources": [],
        "findings": [],
    }
