"""What the HTML report of two detectors shows, as plain data.

Conventions
-----------
- The first result is the baseline: every delta is second minus first.
- Numbers come from ``diagnostics.compare_detectors``; images are "won" where the second makes fewer mistakes,
  each detector at its own operating score, and "lost" where it makes more.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._version import __version__
from boxscore.diagnostics.compare import DetectorComparison, compare_detectors
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.reports import diagnosis
from boxscore.reports.curve_view import curve_view, significant
from boxscore.reports.gallery import Gallery, image_errors
from boxscore.reports.pictures import embed_pictures
from boxscore.reports.view import Note, ReportOptions, notes, number_or_none
from boxscore.validation.digest import findings_of

__all__ = ["comparison_view"]

CELL = {
    "first": "value_first",
    "second": "value_other",
    **{name: name for name in ("delta", "low", "high", "probability")},
}
"""Names on the page of a difference's fields."""


def comparison_view(
    evaluations: Mapping[str, Evaluation],
    *,
    options: ReportOptions | None = None,
    comparison: DetectorComparison | None = None,
) -> dict[str, Any]:
    """Collect everything the page of two evaluations shows; the comparison of the two may be given."""
    options = options or ReportOptions()
    if len(evaluations) != 2:
        raise InputError("a comparison's page", "hold two", got=len(evaluations))
    names, results = list(evaluations), list(evaluations.values())
    first = results[0]
    resamples = max(options.resamples_for(*results), 20)
    if comparison is None:
        comparison = compare_detectors(evaluations, resamples=resamples, seed=options.seed)
    errors = [diagnosis.errors_view(result) for result in results]  # the lowest overlaps first
    summary = [_cell(comparison, i) for i in range(len(comparison.metrics))]
    galleries = [Gallery(result, score_threshold=diagnosis.operating_score(result)) for result in results]
    won, lost = _won_and_lost(results, galleries, options.gallery // 2)
    records = [record for gallery in galleries for record in gallery.records]
    shift = len(galleries[0].records)
    for position in range(shift):
        records[position + shift]["twin"] = position
    pictures: dict[str, str] = {}
    if options.image_folder is not None:
        pictures = embed_pictures(first, galleries[0].rows, list(range(shift)), Path(options.image_folder))
    return {
        "kind": "comparison",
        "title": options.title or f"{names[1]} compared with {names[0]}",
        "lede": f"{first.protocol.title or first.protocol.name}, {len(first.ground_truth.images):,} images",
        "models": names,
        "scores": [significant([max(gallery.score_threshold, -1e300)])[0] for gallery in galleries],
        "signature": first.signature,
        "version": __version__,
        "date": datetime.date.today().isoformat() if options.date is None else options.date,
        "sources": [first.ground_truth.source, *(result.detections.source for result in results)],
        "counts": first.counts,
        "detections": [len(result.detections) for result in results],
        "findings": _notes(evaluations, options),
        "interval": f"95 % intervals of the differences from {resamples:,} paired resamples of the images.",
        "summary": summary,
        "classes": first.labels,
        "names": first.ground_truth.categories.labels,
        "rows": _class_rows(first, comparison),
        "confusion": None,
        "pair": {
            "curves": [curve_view(result) for result in results],
            "confidence": [diagnosis.confidence_view(result) for result in results],
            "errors": errors,
            "sizes": _sizes(first, summary),
        },
        "won_lost": {"won": _pairs(won, shift), "lost": _pairs(lost, shift)},
        "images": records,
        "pictures": pictures,
    }


def _cell(comparison: DetectorComparison, metric: int, category: int | None = None) -> dict[str, Any]:
    """One line of the comparison; undefined is None."""
    if category is None:
        line = comparison.total.take(0, metric)
    else:
        line = comparison.per_class.take(0, metric, category)
    cell: dict[str, Any] = {"key": comparison.metrics[metric], "verdict": line.verdict}
    cell |= {name: number_or_none(getattr(line, field)) for name, field in CELL.items()}
    if cell["delta"] is None:
        cell["verdict"] = ""
    cell["ties"] = category is None and comparison.decided_by_ties[0, metric] is True
    return cell


def _class_rows(evaluation: Evaluation, comparison: DetectorComparison) -> list[dict[str, Any]]:
    """One row per class: its first summary metric in both results."""
    truths = evaluation.class_counts["ground_truths"].tolist()
    return [
        {"row": k, "objects": truths[k], **_cell(comparison, 0, k)} for k in range(len(evaluation.labels))
    ]


def _sizes(evaluation: Evaluation, summary: list[dict[str, Any]]) -> list[list[Any]]:
    rows = zip(evaluation.protocol.rows, summary, strict=True)
    chosen = [
        [row.area, cell["first"], cell["second"]]
        for number, (row, cell) in enumerate(rows)
        if row.metric == "AP" and (number == 0 or row.area != "all")
    ]
    return chosen if len(chosen) > 1 else []


def _notes(evaluations: Mapping[str, Evaluation], options: ReportOptions) -> list[Note]:
    """Collect findings about the data; those of both results are listed once."""
    both = [(name, notes(findings_of(result, effects=False))) for name, result in evaluations.items()]
    common = {note.text for note in both[0][1]} & {note.text for note in both[1][1]}
    own = [
        note._replace(text=note.text if note.text in common else f"{name}: {note.text}", code="", effect="")
        for name, each in both
        for note in each
    ]
    every = dict.fromkeys([*(Note("warning", text) for text in options.warnings), *own])
    return sorted(every, key=lambda note: note.level == "note")


def _won_and_lost(
    results: list[Evaluation], galleries: list[Gallery], most: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Image records with the mistakes of both, largest difference first."""
    errors = [
        image_errors(result, gallery.score_threshold)
        for result, gallery in zip(results, galleries, strict=True)
    ]
    total = [counts[:, :2].sum(axis=1) for counts in errors]
    gain = total[0] - total[1]
    chosen = []
    for sign in (1, -1):
        order = np.argsort(-sign * gain, kind="stable")[:most]
        lines = []
        for row in order[sign * gain[order] > 0].tolist():
            record = galleries[0].add(row)
            galleries[1].add(row)
            lines.append([record, *errors[0][row].tolist(), *errors[1][row].tolist()])
        chosen.append(lines)
    return chosen[0], chosen[1]


def _pairs(lines: list[list[int]], shift: int) -> list[list[int]]:
    return [[line[0], line[0] + shift, *line[1:]] for line in lines]
