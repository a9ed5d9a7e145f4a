"""Collect the data of the HTML report as plain values, for the template and the script.

Goal
----
Each page has one dictionary. It is private to the page, unlike ``result.json``, whose schema is documented
and versioned (docs/reference/report-files.md).

Conventions
-----------
- Classes and images are row numbers; their names are only in ``classes`` and ``images``.
- Sizes are capped by constants in ``gallery.py``, ``curve_view.py`` and ``diagnosis.py``; the page
  says where a cap applies.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.processes import Workers, worker_count
from boxscore._utils.progress import stage
from boxscore._version import __version__
from boxscore.diagnostics import class_group_scores
from boxscore.errors import SEVERITIES, BoxscoreWarning, Severity
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages import diagnosis
from boxscore.extensions.pages.choices import Choices
from boxscore.extensions.pages.class_table import (
    CountsAtStops,
    class_table,
    number_or_none,
    values_over_iou,
)
from boxscore.extensions.pages.conclusions import conclusions, threshold_advice
from boxscore.extensions.pages.curve_view import curve_view, significant
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.mistakes import KINDS
from boxscore.extensions.pages.pictures import embed_crop, embed_pictures
from boxscore.extensions.pages.worst import Crop, surest_crops, worst_classes
from boxscore.extensions.validation.digest import WARNED_OF, covered_codes, page_findings
from boxscore.extensions.weights.left_out import MOST_GROUPS
from boxscore.extensions.weights.resampling import LARGEST_SEED, MOST_RESAMPLES
from boxscore.protocols.summary import named_kind
from boxscore.validation import Finding

LONGEST_INTERVALS = 60.0
"""Maximum seconds on one processor for intervals by default; several share the work."""


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """Contents of a report.

    Attributes
    ----------
    title : str
        Title of the page; by default the file name of the detections.
    warnings : sequence of str or BoxscoreWarning
        Warnings of reading and evaluating, to be shown.
    image_folder : str, Path or None
        Folder of the images; without it, boxes are drawn over blank frames.
    gallery : int
        Number of worst images in the gallery, which also shows half as many confident mistakes.
    resamples : int
        Number of resamples for intervals of differences between detectors (default: 200). In a report of one
        detector, 0 leaves out its intervals, and any other number includes them; by default they are left
        out if they would take more than a minute on one processor.
    seed : int
        Random seed of the resamples, and of the groups of images that are left out.
    class_groups : mapping of str to sequence of str, optional
        Classes of each group, as in :func:`boxscore.diagnostics.class_group_scores`, whose metrics the
        report also has.
    workers : int or "auto"
        Number of forked processes that share the work; "auto" uses one per processor if forking is safe.
    progress : bool
        Show a progress bar with the remaining time for intervals, if stderr is a terminal.
    date : str or None
        Date in the footer; today if None, no date if empty (for reproducible reports).
    """

    title: str = ""
    warnings: Sequence[str | BoxscoreWarning] = ()
    image_folder: str | Path | None = None
    gallery: int = 48
    resamples: int | None = None
    seed: int = 0
    date: str | None = None
    class_groups: Mapping[str, Sequence[str]] | None = None
    workers: Workers = "auto"
    progress: bool = False

    def __post_init__(self) -> None:
        checks.whole_number(self.gallery, 0, name="gallery")
        if self.resamples is not None:
            checks.whole_number(self.resamples, 0, name="resamples", high=MOST_RESAMPLES)
        checks.whole_number(self.seed, 0, name="seed", high=LARGEST_SEED)
        worker_count(self.workers)

    def has_intervals(self, evaluation: Evaluation) -> bool:
        """Tell whether to compute the intervals of a detector: as requested, or if this is quick."""
        if self.resamples is not None:
            return self.resamples > 0
        return _seconds_of_intervals(evaluation) <= LONGEST_INTERVALS


def _seconds_of_intervals(evaluation: Evaluation) -> float:
    """Estimate the time of intervals on one processor: of metrics without each group, and corrections."""
    sets = min(MOST_GROUPS, evaluation._image_count) + 1
    return 1.3 * sets * _seconds_of_a_set(evaluation)


def _seconds_of_a_set(evaluation: Evaluation) -> float:
    """Estimate the time of metrics of a set of images, for COCO's twelve metrics; fewer take less.

    ========== ========== ======= ============ ============
    detections objects    classes measured, ms estimated
    ========== ========== ======= ============ ============
    12 457     36 781     80      14           16
    50 000     16 000     365     39           28
    300 000    60 000     1 203   65           97
    500 000    160 000    365     57           80
    640 000    640 000    80      222          210
    2 000 000  400 000    80      116 to 161   165
    ========== ========== ======= ============ ============
    """
    rules = evaluation.protocol
    cells = len(rules.matching.iou_thresholds) * len(rules.ap.recall_points) * len(evaluation.labels)
    counts = evaluation.counts
    return 6e-8 * cells + 3e-7 * counts["ground_truths"] + 2e-8 * counts["detections"]


LEAST_SHOWN = 0.00005
"""Smallest effect that four decimals show."""


class Note(NamedTuple):
    """A sentence about the data, and its level: ``error``, ``warning`` or ``note``."""

    level: Severity
    text: str
    code: str = ""
    effect: str = ""
    examples: tuple[str, ...] = ()
    weighs: bool = True
    """False for a warning whose repair would leave the metric as it is."""

    def without(self, folders: Iterable[str]) -> Note:
        """Return the note without these folders in file names."""

        def short(text: str) -> str:
            for folder in folders:
                text = text.replace(f"{folder}/", "") if folder not in (".", "") else text
            return text

        return self._replace(text=short(self.text), examples=tuple(map(short, self.examples)))


def notes_of_warnings(warnings: Sequence[str | BoxscoreWarning]) -> list[Note]:
    """Convert warnings for a page; those of boxscore have a severity."""
    return [
        Note(each.severity if isinstance(each, BoxscoreWarning) else "warning", str(each))
        for each in warnings
    ]


def notes(findings: Sequence[Finding], *, warnings: Sequence[str | BoxscoreWarning] = ()) -> list[Note]:
    """Describe findings about the data for a page, unless ``warnings`` already mention them."""
    # Skip findings of the same kind as warnings.
    covered = WARNED_OF if warnings else ()
    of_findings = [
        Note(
            finding.severity,
            _sentence(finding.message),
            finding.code,
            finding.effect_text,
            tuple(example for example in finding.examples if example not in finding.message),
            # An unknown effect is NaN.
            finding.severity != "warning" or not abs(finding.effect) < LEAST_SHOWN,
        )
        for finding in findings
        if finding.code not in covered
    ]
    replaced = covered_codes(findings) - {finding.code for finding in findings}
    of_warnings = notes_of_warnings([each for each in warnings if getattr(each, "code", "") not in replaced])
    # Sort by severity; the sort is stable, so warnings stay before findings.
    return sorted([*of_warnings, *of_findings], key=lambda note: SEVERITIES.index(note.level))


def file_names(*sources: str) -> list[str]:
    """Return the names of files without folders, because pages are shared; ambiguous ones keep theirs."""
    paths = [Path(source) for source in sources]
    names = [path.name for path in paths]
    return [
        str(Path(*path.parts[-2:])) if path.name and names.count(path.name) > 1 else path.name or source
        for path, source in zip(paths, sources, strict=True)
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?")) else ".")


def report_view(evaluation: Evaluation, *, options: ReportOptions | None = None) -> dict[str, Any]:
    """Collect the data of the page of one evaluation, as JSON values and notes."""
    options = options or ReportOptions()
    source_of(evaluation).require("a report")
    # Compute error types first: they need the lowest overlaps across classes, which serve the others too.
    stage("error types")
    error_costs = diagnosis.errors_view(evaluation)
    stage("images to show")
    # Choose images from all data; only the chosen ones are read as tables, also from partitions.
    choices = Choices.of(evaluation, most=options.gallery)
    score = choices.score_threshold
    alone, among = source_of(evaluation).tables_of(choices.images)
    gallery = Gallery(alone, score_threshold=score, among=among)
    pointed = worst_classes(evaluation, choices.mistakes, score_threshold=score)
    shown: dict[str, Any] = {
        "worst": [[gallery.add(image), *counts] for image, *counts in choices.worst.tolist()],
        "confident": [gallery.add(image) for image in choices.confident],
        "score": None if np.isinf(score) else significant([score])[0],
        "of_worst": [gallery.add(image) for image in choices.of_worst],
        "of_class": choices.of_class.tolist(),
        "not_found": 0,
    }
    # Crops and pictures need a folder of images.
    surest = surest_crops(gallery, choices.surest)
    crops: list[str | None] = [None] * len(surest)
    pictures: dict[str, str] = {}
    if options.image_folder is not None:
        first = [*(int(line[0]) for line in shown["worst"]), *shown["confident"], *shown["of_worst"]]
        stage("pictures")
        pictures = embed_pictures(gallery.evaluation, gallery.rows, first, Path(options.image_folder))
        shown["not_found"] = len(set(first)) - len(pictures)
        crops = [_crop(gallery, crop, Path(options.image_folder)) for crop in surest]
    # Intervals take longest, so large data have none by default.
    stage("intervals over images")
    intervals = diagnosis.intervals(
        evaluation,
        requested=options.has_intervals(evaluation),
        seed=options.seed,
        progress=options.progress,
        workers=options.workers,
    )
    tiles = _summary_tiles(evaluation, intervals)
    by_iou = values_over_iou(evaluation)
    ranked = evaluation.has_scores and not np.isinf(score)
    at_stops = CountsAtStops(evaluation, choices.scores, score) if ranked else None
    stage("checking the input")
    # Collect findings about the data, without the folders of this machine.
    findings, unsaid = page_findings(evaluation)
    folders = {str(Path(source).parent) for source in evaluation._sources}
    listed = [note.without(folders) for note in notes(findings, warnings=options.warnings)]
    listed += [Note("note", _sentence(unsaid))] if unsaid else []
    stage("curves")
    # Compute curves, and the advice from them.
    curves = curve_view(evaluation)
    confidence = diagnosis.confidence_view(evaluation)
    if confidence is not None:
        advice = threshold_advice(evaluation, findings, choices.scores)
        confidence["advice"] = advice.text
    stage("COCO's error analysis")
    analysis = diagnosis.analysis_view(evaluation, choices)
    stage("confusion and calibration")
    view: dict[str, Any] = {
        "kind": "evaluation",
        "title": options.title or " on ".join(reversed(file_names(*evaluation._sources))),
        "protocol": evaluation.protocol.title or evaluation.protocol.name,
        "signature": evaluation.signature,
        "similarity": evaluation.protocol.similarity,
        "scored": evaluation.has_scores,
        "remark": evaluation._remark,
        "version": __version__,
        "date": datetime.date.today().isoformat() if options.date is None else options.date,
        "sources": file_names(*evaluation._sources),
        "counts": evaluation.counts,
        "lede": f"{evaluation.protocol.title or evaluation.protocol.name}: {evaluation._counts_text}",
        "findings": listed,
        "summary": tiles,
        "conclusions": conclusions(
            evaluation,
            findings,
            choices,
            listed={note.code for note in listed},
        ),
        "interval": intervals.text,
        "groups": groups_view(evaluation, options),
        "worst": pointed,
        "surest": [[*crop, picture] for crop, picture in zip(surest, crops, strict=True)],
        "classes": evaluation.labels,
        "names": evaluation.categories.labels,
        "iou": evaluation.protocol.matching.iou_thresholds[0],
        "table": class_table(evaluation, intervals, by_iou, at_stops),
        "stops": at_stops and at_stops.view(),
        "by_iou": by_iou,
        "curves": curves,
        "confidence": confidence,
        "confusion": diagnosis.confusion_view(evaluation, choices, gallery),
        "errors": error_costs,
        "analysis": analysis,
        "sizes": _sizes(tiles),
        "calibration": diagnosis.calibration_view(evaluation, choices.scores),
        "gallery": shown,
        "kinds": KINDS,
        "limbs": gallery.limbs,
    }
    # Collect records last, because the views above add images to the gallery.
    view["images"] = gallery.records
    view["image_rows"] = gallery.rows
    view["pictures"] = pictures
    return view


def groups_view(evaluation: Evaluation, options: ReportOptions) -> dict[str, list[Any]] | None:
    """Return the columns of groups of classes, all classes last; None if they are not requested."""
    if options.class_groups is None:
        return None
    scores = class_group_scores(evaluation, options.class_groups)
    frame = scores.printed_frame()
    # The first metric is next to the name, as in the table of classes.
    names = list(dict.fromkeys(["group", *scores.metrics[:1], *map(str, frame)]))
    return {name: [None if one != one else one for one in frame[name].tolist()] for name in names}


def _crop(gallery: Gallery, crop: Crop, folder: Path) -> str | None:
    record = gallery.records[crop.record]
    size = record["width"], record["height"]
    return embed_crop(gallery.evaluation, gallery.rows[crop.record], crop.part, size, folder)


def _summary_tiles(evaluation: Evaluation, intervals: diagnosis.Intervals) -> list[dict[str, Any]]:
    protocol = evaluation.protocol
    tiles: list[dict[str, Any]] = []
    # Make a tile per summary row; only differences from the first tile are spelled out.
    for row in protocol.rows:
        interval = intervals.metrics.get(row.key, diagnosis.NO_INTERVAL)
        has_estimate = row.key in intervals.corrected and interval.low == interval.low
        cap = protocol.caps[row.cap]
        alone = row.iou is not None or not tiles or len(protocol.matching.iou_thresholds) == 1
        parts = [f"IoU {protocol.iou_text(row).replace(':', ' to ')}"] if alone else []
        parts += [f"{row.area} objects"] if row.area != "all" else []
        if row.metric == "AR" and cap:
            parts.append(f"max detections {cap:,}")
        # Undefined numbers are None in JSON.
        tiles.append(
            {
                "key": row.key,
                "metric": row.metric,
                "area": row.area,
                "kind": _in_a_sentence(named_kind(row.metric).title.partition("(")[0].strip()),
                "detail": ", ".join(parts),
                "value": number_or_none(evaluation.metrics[row.key]),
                **{name: number_or_none(end) for name, end in interval._asdict().items()},
                "has_estimate": has_estimate,
                "sentence": intervals.sentence(row.key, evaluation.metrics[row.key]),
            }
        )
    return tiles


def _in_a_sentence(title: str) -> str:
    """Write a title in lower case, except for names such as F1, IoU and AP."""
    return re.sub(r"\w+", lambda word: word[0].lower() if word[0][1:].islower() else word[0], title)


def _sizes(tiles: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return AP of each area range in the summary, and of all."""
    chosen = [tile for tile in tiles if tile["metric"] == "AP" and tile["area"] != "all"]
    chosen = [tile for tile in chosen if tile["value"] is not None]
    if not chosen:
        return None
    return [
        {"name": tile["area"], "note": tile["detail"], **{key: tile[key] for key in ("value", "low", "high")}}
        for tile in [tiles[0], *chosen]
    ]
