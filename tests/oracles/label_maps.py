"""Slow and obvious: panoptic quality and semantic IoU pixel by pixel, in fractions where that says more."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

Segment = dict[str, Any]


def panoptic_counts(
    truth: list[list[int]],
    truth_segments: list[Segment],
    prediction: list[list[int]],
    prediction_segments: list[Segment],
    *,
    area_of_table: bool,
    last_crowd_only: bool,
) -> dict[int, list[Any]]:
    """TP, FP, FN and the sum of IoU as a fraction, by category, of one image."""
    pixels = [
        pair for one, other in zip(truth, prediction, strict=True) for pair in zip(one, other, strict=True)
    ]
    counts: dict[int, list[Any]] = {}

    def of(category: int) -> list[Any]:
        return counts.setdefault(category, [0, 0, 0, Fraction(0)])

    matched_truth, matched_prediction = set(), set()
    for g in truth_segments:
        if g.get("iscrowd"):
            continue
        area = sum(one == g["id"] for one, _ in pixels)
        if area_of_table and g.get("area") is not None:
            area = g["area"]
        for p in prediction_segments:
            if p["category_id"] != g["category_id"]:
                continue
            shared = sum(pair == (g["id"], p["id"]) for pair in pixels)
            if not shared:
                continue
            own = sum(other == p["id"] and one != 0 for one, other in pixels)
            iou = Fraction(shared, own + area - shared)
            if iou > Fraction(1, 2):
                of(g["category_id"])[0] += 1
                of(g["category_id"])[3] += iou
                matched_truth.add(g["id"])
                matched_prediction.add(p["id"])
    for g in truth_segments:
        if g["id"] not in matched_truth and not g.get("iscrowd"):
            of(g["category_id"])[2] += 1
    for p in prediction_segments:
        if p["id"] in matched_prediction:
            continue
        crowds = [
            g["id"] for g in truth_segments if g.get("iscrowd") and g["category_id"] == p["category_id"]
        ]
        excusing = {0, *(crowds[-1:] if last_crowd_only else crowds)}
        own = [one for one, other in pixels if other == p["id"]]
        if Fraction(sum(one in excusing for one in own), len(own)) <= Fraction(1, 2):
            of(p["category_id"])[1] += 1
    return counts


def semantic_metrics(
    pixels: list[tuple[int, int]],
    classes: list[int],
    *,
    ignored: set[int],
    averaged: str,
) -> dict[str, Fraction | None]:
    """The four metrics as fractions, from pairs (truth, prediction), one per pixel."""
    counted = Counter(pair for pair in pixels if pair[0] in classes and pair[0] not in ignored)
    total = sum(counted.values())
    ious, recalls, weighted = [], [], Fraction(0)
    for label in classes:
        right = counted[label, label]
        in_truth = sum(n for (one, _), n in counted.items() if one == label)
        predicted = sum(n for (_, other), n in counted.items() if other == label)
        union = in_truth + predicted - right
        iou = Fraction(right, union) if union else None
        if in_truth:
            recalls.append(Fraction(right, in_truth))
            weighted += Fraction(in_truth, total) * Fraction(right, union)
        if averaged == "all":
            ious.append(iou or Fraction(0))
        elif averaged == "union" and iou is not None:
            ious.append(iou)
        elif averaged == "truth" and in_truth:
            ious.append(Fraction(right, union))
    if not total:
        return dict.fromkeys(("mIoU", "fwIoU", "mAcc", "pAcc"))
    return {
        "mIoU": sum(ious, Fraction(0)) / len(ious),
        "fwIoU": weighted,
        "mAcc": sum(recalls, Fraction(0)) / len(recalls),
        "pAcc": Fraction(sum(n for (one, other), n in counted.items() if one == other), total),
    }
