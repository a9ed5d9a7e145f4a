"""Collect the data of the HTML pages of several detectors: the overview, and the page of two.

Conventions
-----------
- The overview has every detector and every pair; its numbers are those of a ``DetectorComparison``.
- On the page of two, the first result is the baseline: every delta is second minus first.
- Images are "won" if the second detector makes fewer mistakes, each at its own operating score, and "lost" if
  it makes more.
- All detectors have the same images in the same order: ``images`` contains ``together`` of them for each.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import counted, signed_text
from boxscore._version import __version__
from boxscore.errors import SEVERITIES, InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import DetectorComparison
from boxscore.extensions.decisions.wording import Answer, answers, classes_ahead, p_text, short_name
from boxscore.extensions.pages import diagnosis
from boxscore.extensions.pages.choices import image_errors
from boxscore.extensions.pages.class_table import number_or_none
from boxscore.extensions.pages.curve_view import curve_view, significant
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.mistakes import KINDS
from boxscore.extensions.pages.pictures import embed_pictures
from boxscore.extensions.pages.verdicts import (
    MOST_SHOWN,
    Differences,
    differing_images,
)
from boxscore.extensions.pages.view import (
    Note,
    ReportOptions,
    file_names,
    notes,
    notes_of_warnings,
)
from boxscore.extensions.validation.digest import findings_of
from boxscore.extensions.weights.left_out import is_corrected

COUNTED = {"images": "image", "ground_truths": "ground truth", "classes": "class"}
ERROR_TITLES = {
    "both": "Both (Cls + Loc)",
    "false_positives": "All false positives",
    "false_negatives": "All false negatives",
}
FIELDS = {
    "first": "value_first",
    "second": "value_other",
    "p": "p_value",
    **{name: name for name in ("delta", "low", "high")},
}
"""Fields of a difference on the page, and their names in the comparison."""


def comparison_view(
    comparison: DetectorComparison, *, options: ReportOptions | None = None
) -> dict[str, Any]:
    """Collect the data of the page of two evaluations."""
    options = options or ReportOptions()
    evaluations = comparison.evaluations
    if len(evaluations) != 2:
        raise InputError("a comparison's page", "hold two", got=len(evaluations))
    names, results = list(evaluations), list(evaluations.values())
    for result in results:
        result._require_overlaps("a report")
    first = results[0]
    # Compute the expensive results once; the dictionary below only arranges them.
    # This needs the lowest overlaps, so it is computed first.
    errors = [diagnosis.errors_view(result) for result in results]
    summary = [_difference(comparison, i) for i in range(len(comparison.metrics))]
    galleries = [Gallery(result, score_threshold=result.operating_score) for result in results]
    # Find the images that one detector wins, with fewer false positives and misses than the other.
    mistakes = _mistakes_of(galleries)
    gain = mistakes[0, :, :2].sum(axis=1) - mistakes[1, :, :2].sum(axis=1)
    won_lost = {}
    for side, larger in (("won", gain), ("lost", -gain)):
        order = np.argsort(-larger, kind="stable")[: options.gallery // 2]
        won_lost[side] = _side_by_side(galleries, mistakes, order[larger[order] > 0].tolist())
    said, found = answers(comparison), _notes(evaluations, options)
    # The page reads everything from this dictionary; None means undefined.
    return {
        "kind": "comparison",
        "title": options.title or f"{names[1]} compared with {names[0]}",
        "models": names,
        **_about(comparison, options),
        "findings": found,
        "answers": [*_faults(found), *said[:1], *_of_images(names, gain), *said[1:]],
        "turned": classes_ahead(comparison),
        "scores": [significant([max(gallery.score_threshold, -1e300)])[0] for gallery in galleries],
        "detections": [len(result.detections) for result in results],
        "interval": f"{_interval_text(comparison)} {comparison.note}".strip(),
        "kinds": KINDS,
        "limbs": galleries[0].limbs,
        "falls": list(comparison.lower_is_better),
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
        "won_lost": won_lost,
        **_images(galleries, options),
    }


def _faults(found: list[Note]) -> list[Answer]:
    """Say first that the input has an error, since it can make a comparison meaningless."""
    count = sum(note.level == "error" for note in found)
    if not count:
        return []
    errors = "an error" if count == 1 else "errors"
    return [
        Answer(f"The input has {errors}, so the comparison may mean nothing.", "Fix this first", "findings")
    ]


def _of_images(names: list[str], gain: NDArray[np.int64]) -> list[Answer]:
    """Count the images in which the second detector makes fewer mistakes, and more."""
    won, lost = int((gain > 0).sum()), int((gain < 0).sum())
    name, of = short_name(names[1]), counted(len(gain), "image")
    said = f"{name} makes fewer mistakes in {won:,} of {of} and more in {lost:,}."
    return [Answer(said, "See its wins and losses", "won_lost")]


def _interval_text(comparison: DetectorComparison) -> str:
    """State the rule of verdicts, and describe the intervals of each detector."""
    how = comparison.resampling
    count = f"{how.resamples:,} {'swaps' if how.test == 'swap' else 'resamples'}, seed {how.seed}."
    own = "Intervals of each detector are from leaving out groups of images."
    return f"{comparison.verdict_text()} {count} {own}"


def overview_view(
    comparison: DetectorComparison, pages: Mapping[str, tuple[str, str]], *, options: ReportOptions
) -> dict[str, Any]:
    """Collect the data of the overview; ``pages`` are each detector's page and that of its pair."""
    evaluations = comparison.evaluations
    first = evaluations[comparison.first]
    count = len(evaluations)
    intervals = comparison.intervals
    # Mark a number as best only if its difference from the second is significant.
    best = [comparison.clear_best(m) for m in range(len(comparison.metrics))]
    corrected = _corrected(comparison)
    detectors = [
        {
            "name": name,
            "page": pages[name][0],
            "pair": pages[name][1],
            "detections": len(result.detections),
            "cells": [
                {
                    "value": number_or_none(intervals.value[i, m]),
                    "estimate": number_or_none(intervals.estimate[i, m]) if corrected[m] else None,
                    "low": number_or_none(intervals.low[i, m]),
                    "high": number_or_none(intervals.high[i, m]),
                    "best": best[m] == i,
                }
                for m in range(len(comparison.metrics))
            ],
        }
        for i, (name, result) in enumerate(evaluations.items())
    ]
    # Put every pair's difference into one array, from which the page takes a block per metric.
    cells = [
        [[_pair_cell(comparison, i, j, m) for j in range(count)] for i in range(count)]
        for m in range(len(comparison.metrics))
    ]
    values = [result.class_values for result in evaluations.values()]
    key = comparison.metrics[0] if comparison.metrics else ""
    errors = _error_rows(list(evaluations.values()))
    curves = [curve_view(result) for result in evaluations.values()]
    # Find the images in which the detectors differ most in their number of mistakes.
    galleries = [Gallery(each, score_threshold=each.operating_score) for each in evaluations.values()]
    mistakes = _mistakes_of(galleries)
    found = _notes(evaluations, options)
    rows = differing_images(mistakes[..., :2].sum(axis=-1), most=min(MOST_SHOWN, options.gallery))
    differing = _side_by_side(galleries, mistakes, rows)
    # The page reads everything from this dictionary.
    return {
        "kind": "overview",
        "title": options.title or f"{count} detectors compared",
        "models": list(evaluations),
        **_about(comparison, options),
        "findings": found,
        "answers": [*_faults(found), *answers(comparison)],
        "kinds": KINDS,
        "limbs": galleries[0].limbs,
        "differing": differing,
        "scores": [significant([max(gallery.score_threshold, -1e300)])[0] for gallery in galleries],
        **_images(galleries, options),
        "metrics": comparison.metrics,
        "falls": list(comparison.lower_is_better),
        "has_estimates": any(corrected),
        "few": comparison.note,
        "detectors": detectors,
        "pairs": cells,
        "test": _interval_text(comparison),
        "classes": first.labels,
        "names": first.ground_truth.categories.labels,
        "metric": key,
        "rows": _overview_rows(
            first,
            [each.get(key, next(iter(each.values()))) for each in values if each],
            falls=comparison.lower_is_better[:1] == (True,),
        ),
        "curves": {
            "thresholds": curves[0]["thresholds"],
            "classes": {},
            "models": [view["mean"] for view in curves],
        },
        "confidence": [_whole_curve(result) for result in evaluations.values()],
        "errors": errors,
        "most_cost": max((cost for _, costs in errors for cost, _ in costs if cost is not None), default=0.0),
    }


def _about(comparison: DetectorComparison, options: ReportOptions) -> dict[str, Any]:
    """Collect the description of the data for every page of a comparison."""
    results = list(comparison.evaluations.values())
    first = results[0]
    return {
        "lede": f"{first.protocol.title or first.protocol.name}: "
        + ", ".join(counted(first.counts[key], noun) for key, noun in COUNTED.items()),
        "signature": first.signature,
        "version": __version__,
        "date": datetime.date.today().isoformat() if options.date is None else options.date,
        "sources": file_names(first.ground_truth.source, *(result.detections.source for result in results)),
        "counts": first.counts,
        "scored": first.detections.scored,
        "remark": first._remark,
        "level": _level(comparison),
    }


def _corrected(comparison: DetectorComparison) -> list[bool]:
    """Tell whether the estimate of each metric can differ from its value, [M]."""
    rows = {row.key: row for row in comparison.evaluations[comparison.first].protocol.rows}
    return [is_corrected(rows[key]) for key in comparison.metrics]


def _level(comparison: DetectorComparison) -> str:
    return f"{100 * comparison.resampling.confidence:.4g}%"


def _pair_cell(comparison: DetectorComparison, row: int, column: int, metric: int) -> list[str]:
    """Return the texts of a difference, its interval and its p-value, and the verdict; empty if undefined."""
    delta, low, high, p_value, verdict = (part[row, column, metric] for part in comparison.pairs)
    interval = f"{signed_text(low)} to {signed_text(high)}" if np.isfinite([low, high]).all() else ""
    p = f"p = {p_text(p_value, comparison.resampling.level)}" if np.isfinite(p_value) else ""
    texts = [signed_text(delta) if np.isfinite(delta) else "", interval]
    return [*(text.replace("-", "\N{MINUS SIGN}") for text in texts), p, verdict]


def _overview_rows(evaluation: Evaluation, values: list[Any], *, falls: bool) -> list[dict[str, Any]]:
    """Return one row per class: the metric of each detector, and the range."""
    truths = evaluation.class_counts["ground_truths"].tolist()
    table = np.stack(values, axis=1) if values else np.empty((0, 0))  # [K,N]
    rows = []
    for k, line in enumerate(table):
        defined = line[np.isfinite(line)]
        spread = float(defined.max() - defined.min()) if len(defined) else None
        best = float(defined.min() if falls else defined.max()) if len(defined) else None
        numbers = [number_or_none(value) for value in line.tolist()]
        rows.append({"row": k, "objects": truths[k], "values": numbers, "spread": spread, "best": best})
    return sorted(rows, key=lambda row: -(row["spread"] if row["spread"] is not None else -1.0))


def _whole_curve(result: Evaluation) -> list[Any] | None:
    view = diagnosis.confidence_view(result)
    return None if view is None else view["all"]


def _error_rows(results: list[Evaluation]) -> list[list[Any]]:
    """Return rows ``[kind, [cost in AP, cases] per detector]`` of the kinds of mistakes."""
    views = [diagnosis.errors_view(result) for result in results]
    if any(view is None for view in views):
        return []
    rows = []
    for lines in zip(*(view["rows"] for view in views if view is not None), strict=True):
        costs = [[cost, cases] for _, cases, cost in lines]
        rows.append([ERROR_TITLES.get(lines[0][0], lines[0][0].capitalize()), costs])
    return rows


def _difference(comparison: DetectorComparison, metric: int, category: int | None = None) -> dict[str, Any]:
    """Return one row of the comparison; undefined values are None."""
    # Select all classes, or one class.
    if category is None:
        line = comparison.total.take(0, metric)
    else:
        line = comparison.per_class.take(0, metric, category)
    difference: dict[str, Any] = {"key": comparison.metrics[metric], "verdict": line.verdict}
    difference |= {name: number_or_none(getattr(line, field)) for name, field in FIELDS.items()}
    difference["p_text"] = (
        "" if difference["p"] is None else p_text(line.p_value, comparison.resampling.level)
    )
    # A verdict needs a difference; intervals per detector exist only over all classes.
    if difference["delta"] is None:
        difference["verdict"] = ""
    if category is None:
        intervals, corrected = comparison.intervals, _corrected(comparison)[metric]
        for i, name in enumerate(("first_range", "second_range")):
            difference[name] = [
                number_or_none(intervals.estimate[i, metric]) if corrected else None,
                number_or_none(intervals.low[i, metric]),
                number_or_none(intervals.high[i, metric]),
            ]
    difference["ties"] = category is None and comparison.decided_by_ties[0, metric] is True
    return difference


def _class_rows(evaluation: Evaluation, comparison: DetectorComparison) -> list[dict[str, Any]]:
    """Return one row per class: its first summary metric in both results; the largest loss first."""
    truths = evaluation.class_counts["ground_truths"].tolist()
    rows = [
        {"row": k, "objects": truths[k], **_difference(comparison, 0, k)}
        for k in range(len(evaluation.labels))
    ]
    sign = -1 if comparison.metrics and comparison.lower_is_better[0] else 1
    return sorted(rows, key=lambda row: math.inf if row["delta"] is None else sign * row["delta"])


def _sizes(evaluation: Evaluation, summary: list[dict[str, Any]]) -> list[list[Any]]:
    rows = {row.key: row for row in evaluation.protocol.rows}
    lead = next(iter(rows), "")
    chosen = [
        [row.area, difference["first"], difference["second"]]
        for row, difference in ((rows[difference["key"]], difference) for difference in summary)
        if row.metric == "AP" and (row.key == lead or row.area != "all")
    ]
    return chosen if len(chosen) > 1 else []


def _notes(evaluations: Mapping[str, Evaluation], options: ReportOptions) -> list[Note]:
    """Collect findings about the data; list those of all results once."""
    both = [(name, notes(findings_of(result, effects=False))) for name, result in evaluations.items()]
    common = set.intersection(*({note.text for note in listed} for _, listed in both))
    named = [
        note._replace(text=note.text if note.text in common else f"{name}: {note.text}", code="", effect="")
        for name, each in both
        for note in each
    ]
    every = dict.fromkeys([*notes_of_warnings(options.warnings), *named])
    return sorted(every, key=lambda note: SEVERITIES.index(note.level))


def _mistakes_of(galleries: list[Gallery]) -> NDArray[np.int64]:
    """Count false positives, missed and true positives of each detector in each image, [N,images,3]."""
    return np.stack([image_errors(each.evaluation, each.score_threshold) for each in galleries])


def _side_by_side(
    galleries: list[Gallery], mistakes: NDArray[np.int64], rows: list[int]
) -> list[dict[str, Any]]:
    """Add images to every gallery: the place of each, the region to show, and each detector's counts."""
    differences = Differences(galleries)
    lines = []
    for row in rows:
        place = [gallery.add(row) for gallery in galleries]
        records = [gallery.records[at] for gallery, at in zip(galleries, place, strict=True)]
        part = differences.part(row, records)
        lines.append({"at": place[0], "part": part, "counts": mistakes[:, row].tolist()})
    return lines


def _images(galleries: list[Gallery], options: ReportOptions) -> dict[str, Any]:
    """Return the images of all galleries, the first detector's before the second's, and their pictures.

    Other records of an image refer to the first as their ``twin`` and share its picture.
    """
    count, records = len(galleries[0].records), []
    for number, gallery in enumerate(galleries):
        for position, record in enumerate(gallery.records):
            records.append({**record, "detector": number, **({"twin": position} if number else {})})
    pictures: dict[str, str] = {}
    if options.image_folder is not None and count:
        first = galleries[0]
        pictures = embed_pictures(
            first.evaluation, first.rows, list(range(count)), Path(options.image_folder)
        )
    return {"images": records, "together": count, "pictures": pictures}
