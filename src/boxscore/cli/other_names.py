"""Handle command names that users guess: run the command, or print hints.

``boxscore --help`` does not list these names. A synonym runs the command. A related name prints hints, in
which ``GT DT`` are replaced by the given paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

SYNONYMS = {
    **dict.fromkeys(("eval", "val", "score", "metrics", "map", "ap", "coco-eval", "cocoeval"), "evaluate"),
    **dict.fromkeys(("per-class", "ap-per-class", "class-ap", "classwise"), "evaluate --per-class"),
    **dict.fromkeys(("tide", "error-types", "error-analysis", "tide-errors"), "errors"),
    **dict.fromkeys(("coco-analyze", "analyze", "analyse"), "error-curves"),
    **dict.fromkeys(("confusion-matrix", "confusions", "cm"), "confusion"),
    **dict.fromkeys(
        (
            "threshold",
            "thresholds",
            "best-threshold",
            "score-threshold",
            "optimal-threshold",
            "f1",
            "f1-score",
        ),
        "operating-points",
    ),
    **dict.fromkeys(("f1-curve", "pr-table", "threshold-curve"), "operating-points --curve"),
    **dict.fromkeys(("precision", "recall", "precision-recall", "tp-fp-fn", "counts"), "operating-points"),
    **dict.fromkeys(("pr-curve", "pr", "prc", "pr-curves", "curve", "curves", "roc", "roc-curve"), "plot pr"),
    **dict.fromkeys(("per-image", "image-scores", "worst", "worst-images"), "images"),
    **dict.fromkeys(("image-level", "specificity", "classification", "count-errors", "counting"), "presence"),
    **dict.fromkeys(("slice", "by-size", "size", "sizes", "area"), "slices"),
    **dict.fromkeys(("visualize", "visualise", "vis", "draw-boxes"), "draw"),
    **dict.fromkeys(("browse", "viewer", "explore", "app", "ui"), "view"),
    **dict.fromkeys(("html", "html-report", "dashboard"), "report"),
    **dict.fromkeys(("reliability", "reliability-diagram"), "calibration --reliability"),
    **dict.fromkeys(("calibrate", "ece"), "calibration"),
    **dict.fromkeys(("confidence-intervals", "intervals", "ci"), "bootstrap"),
    **dict.fromkeys(("versus", "vs", "significance"), "compare"),
    **dict.fromkeys(("parity", "check-export", "compare-results"), "diff"),
    **dict.fromkeys(("epoch", "checkpoints", "learning-curve", "best-epoch"), "epochs"),
    **dict.fromkeys(("folds", "cross-validation", "kfold", "cv"), "suite"),
    **dict.fromkeys(("tile", "sahi", "slicing"), "tiles"),
    **dict.fromkeys(("label-errors", "mislabeled", "label-noise"), "suspects"),
    **dict.fromkeys(("check-data", "lint", "sanity-check", "sanity"), "validate"),
    **dict.fromkeys(("statistics", "dataset-stats", "describe", "info", "summary"), "stats"),
    **dict.fromkeys(("wbf", "ensemble", "weighted-boxes-fusion"), "fuse"),
    **dict.fromkeys(("export", "conversion"), "convert"),
    **dict.fromkeys(("gate", "ci-check"), "check"),
    **dict.fromkeys(("pq", "panoptic-quality"), "panoptic"),
    **dict.fromkeys(("miou", "semseg", "mean-iou"), "semantic"),
    **dict.fromkeys(("why", "find-number", "explain-difference"), "explain"),
    **dict.fromkeys(("readings", "protocols-compared", "all-protocols"), "compare-protocols"),
    "config": "run",
    "benchmark": "suite",
    "help": "--help",
    "version": "--version",
}
"""The command, with options, for each synonym."""

_BOXES = "Boxes over images: boxscore draw GT DT"
_BROWSE = "Every image in a browser: boxscore view GT DT"
_EXACT = "Compare every value with pycocotools: boxscore evaluate GT DT --verify"
_SCORE = "Score what a detector wrote: boxscore evaluate GT DT"

HINTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("plots", "chart", "charts"),
        (
            "One plot: boxscore plot pr GT DT",
            "All plots, in boxscore-report/plots: boxscore report GT DT --plots png",
            _BOXES,
        ),
    ),
    "show": (_BROWSE, _BOXES),
    **dict.fromkeys(("verify", "pycocotools"), (_EXACT,)),
    "soft-nms": ("Soft NMS: boxscore nms --dt DT --output kept.json --method soft-gaussian",),
    "split": ("Split a data set: boxscore convert GT --output part.json --split train=0.8 val=0.2",),
    "sample": ("Images at random: boxscore convert GT --output part.json --sample 100",),
    "filter": ("Only some classes: boxscore convert GT --output part.json --classes CLASS",),
    "subset": (
        "Score only some images: boxscore evaluate GT DT --images FILE",
        "Write only some images: boxscore convert GT --output part.json --images FILE",
    ),
    "anchors": ("Anchors by k-means: boxscore stats GT --anchors 9",),
    **dict.fromkeys(("train", "predict", "detect"), (_SCORE,)),
}
"""Hints for names without an equivalent command: a description and a call each."""

_FORMATS = {"pascal": "voc", "pascalvoc": "voc", "ultralytics": "yolo"}
_CONVERSION = re.compile("([a-z]+)(?:2|-to-)([a-z]+)")
_FILES = {"coco": "converted.json", "csv": "converted.csv", "parquet": "converted.parquet"}


def words_of_synonym(words: Sequence[str]) -> list[str]:
    """Replace a synonym in the first word of a call by the command; return other calls unchanged."""
    if not words:
        return []
    name, *rest = words
    if name == "help" and rest:
        return [*words_of_synonym(rest[:1]), "--help"]
    synonym = SYNONYMS.get(_plain(name))
    return [*words] if synonym is None else [*synonym.split(), *rest]


def hints_for(words: Sequence[str]) -> list[str]:
    """Return hints for a call whose first word is related to a command; empty if there are none."""
    name = _plain(words[0])
    paths = [word for word in words[1:] if not word.startswith("-")]
    return [_with_paths(hint, paths) for hint in HINTS.get(name) or _conversion(name)]


def _with_paths(hint: str, paths: Sequence[str]) -> str:
    """Insert the given paths into a hint in place of ``GT`` and ``DT``, in order."""
    import shlex

    places = [place for place in ("GT", "DT") if re.search(rf"\b{place}\b", hint)]
    files = {place: shlex.quote(path) for place, path in zip(places, paths, strict=False)}
    return re.sub(r"\b(?:GT|DT)\b", lambda match: files.get(match[0], match[0]), hint)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _conversion(name: str) -> tuple[str, ...]:
    """Return the call for names such as ``coco2yolo``; empty if the name is not of this form."""
    from boxscore.formats import writable_formats

    match = _CONVERSION.fullmatch(name)
    target = _FORMATS.get(match[2], match[2]) if match else ""
    if target not in writable_formats():
        return ()
    return (f"Convert: boxscore convert GT --to {target} --output {_FILES.get(target, 'converted')}",)
