"""What the HTML report of two detectors shows, as plain data.

Conventions
-----------
- The first result is what the second is measured against: every delta is second minus first.
- Numbers come from ``diagnostics.compare``; images are "won" where the second makes fewer mistakes, each
  detector at its own operating score, and "lost" where it makes more.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._version import __version__
from boxscore.diagnostics import compare
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.reports import diagnosis
from boxscore.reports.curve_view import curve_view, significant
from boxscore.reports.findings import Finding, findings
from boxscore.reports.gallery import Gallery, image_errors
from boxscore.reports.outcomes import read_outcomes
from boxscore.reports.pictures import embed_pictures
from boxscore.reports.view import ReportOptions

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["comparison_view"]


def comparison_view(
    evaluations: Mapping[str, Evaluation],
    *,
    options: ReportOptions | None = None,
    table: pd.DataFrame | None = None,
) -> dict[str, Any]:
    """Collect everything the page of two evaluations shows.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two, by name, of one ground truth under one protocol.
    options : ReportOptions, optional
    table : DataFrame, optional
        What ``diagnostics.compare`` gave with ``per_class=True``, when it was computed already.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        When there are not two, or they cannot be compared.
    """
    options = options or ReportOptions()
    if len(evaluations) != 2:
        raise InputError("a comparison's page", "hold two", got=len(evaluations))
    names, results = list(evaluations), list(evaluations.values())
    first = results[0]
    resamples = max(options.resamples_for(*results), 20)
    if table is None:
        table = compare(evaluations, resamples=resamples, seed=options.seed, per_class=True)
    columns = {name: table[name].tolist() for name in table.columns}
    metric_count = len(first.protocol.rows)
    headline = [_cell(columns, i) for i in range(metric_count)]
    galleries = [Gallery(result, score=diagnosis.operating_score(result)) for result in results]
    won, lost = _won_and_lost(results, galleries, options.gallery // 2)
    records = [record for gallery in galleries for record in gallery.records]
    shift = len(galleries[0].records)
    for place in range(shift):
        records[place + shift]["twin"] = place
    pictures: dict[str, str] = {}
    if options.image_folder is not None:
        pictures = embed_pictures(first, galleries[0].rows, list(range(shift)), options.image_folder)
    return {
        "kind": "comparison",
        "title": options.title or f"{names[1]} compared with {names[0]}",
        "lede": f"{first.protocol.title or first.protocol.name}, {len(first.ground_truth.images):,} images",
        "models": names,
        "scores": [significant([max(gallery.score, -1e300)])[0] for gallery in galleries],
        "signature": first.signature,
        "version": __version__,
        "date": datetime.date.today().isoformat() if options.date is None else options.date,
        "sources": [first.ground_truth.source, *(result.detections.source for result in results)],
        "counts": first.counts,
        "detections": [len(result.detections) for result in results],
        "findings": _findings(evaluations, options),
        "interval": f"95 % intervals of the differences from {resamples:,} paired resamples of the images.",
        "headline": headline,
        "classes": first.labels,
        "names": first.ground_truth.categories.labels,
        "rows": _class_rows(first, columns, metric_count),
        "confusion": None,
        "pair": {
            "curves": [curve_view(result) for result in results],
            "confidence": [diagnosis.confidence_view(result) for result in results],
            "errors": [diagnosis.errors_view(result) for result in results],
            "sizes": _sizes(first, headline),
        },
        "won_lost": {"won": _pairs(won, shift), "lost": _pairs(lost, shift)},
        "images": records,
        "pictures": pictures,
    }


def _cell(columns: Mapping[str, list[Any]], row: int) -> dict[str, Any]:
    """One line of the comparison; undefined is None."""
    names = {"value_first": "first", "value_other": "second"}
    numbers = ("value_first", "value_other", "delta", "low", "high", "probability")
    cell: dict[str, Any] = {"key": columns["metric"][row], "verdict": columns["verdict"][row]}
    for name in numbers:
        value = columns[name][row]
        cell[names.get(name, name)] = None if value != value else float(value)
    if cell["delta"] is None:
        cell["verdict"] = ""
    cell["ties"] = columns["decided_by_ties"][row] is True
    return cell


def _class_rows(
    evaluation: Evaluation, columns: Mapping[str, list[Any]], metric_count: int
) -> list[dict[str, Any]]:
    """One row a class: its first headline number in both results."""
    truths = evaluation.class_counts["ground_truths"].tolist()
    return [
        {"row": k, "objects": truths[k], **_cell(columns, metric_count * (k + 1))}
        for k in range(len(evaluation.labels))
    ]


def _sizes(evaluation: Evaluation, headline: list[dict[str, Any]]) -> list[list[Any]]:
    rows = zip(evaluation.protocol.rows, headline, strict=True)
    chosen = [
        [row.area, cell["first"], cell["second"]]
        for number, (row, cell) in enumerate(rows)
        if row.metric == "AP" and (number == 0 or row.area != "all")
    ]
    return chosen if len(chosen) > 1 else []


def _findings(evaluations: Mapping[str, Evaluation], options: ReportOptions) -> list[Finding]:
    found = [Finding("warning", text) for text in options.warnings]
    seen: set[str] = set()
    both = [(name, findings(result)) for name, result in evaluations.items()]
    common = {item.text for item in both[0][1]} & {item.text for item in both[1][1]}
    for name, items in both:
        for item in items:
            text = item.text if item.text in common else f"{name}: {item.text}"
            if text not in seen:
                seen.add(text)
                found.append(Finding(item.level, text))
    return sorted(found, key=lambda item: item.level != "warning")


def _won_and_lost(
    results: list[Evaluation], galleries: list[Gallery], most: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Image records with the mistakes of both, largest difference first."""
    errors = [
        image_errors(result, read_outcomes(result), gallery.score)
        for result, gallery in zip(results, galleries, strict=True)
    ]
    total = [counts[:, :2].sum(axis=1) for counts in errors]
    gain = total[0] - total[1]
    chosen = []
    for sign in (1, -1):
        order = np.argsort(-sign * gain, kind="stable")[:most]
        lines = []
        for row in order[sign * gain[order] > 0].tolist():
            place = galleries[0].add(row)
            galleries[1].add(row)
            lines.append([place, *errors[0][row].tolist(), *errors[1][row].tolist()])
        chosen.append(lines)
    return chosen[0], chosen[1]


def _pairs(lines: list[list[int]], shift: int) -> list[list[int]]:
    return [[line[0], line[0] + shift, *line[1:]] for line in lines]
