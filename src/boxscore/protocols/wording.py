"""The text of choices in a signature or a waterfall, where the plain value would not do.

Conventions
-----------
Every function takes the protocol, so that a text may cover fields that belong together. An empty text leaves
a word out of the signature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boxscore.protocols.grids import colon, grid, grid_text, number_text

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

__all__ = [
    "areas",
    "caps",
    "class_thresholds",
    "column_ranges",
    "curve",
    "decimals",
    "equal_scores",
    "froc",
    "group",
    "group_step",
    "interpolation",
    "jaccard",
    "largest_cap",
    "largest_threshold",
    "least_side",
    "mean",
    "miss_rate",
    "not_evaluated",
    "rounding",
    "similarity",
    "threshold_range",
    "thresholds",
]

COCO_AREAS = {"all": (0.0, 1e10), "small": (0.0, 1024.0), "medium": (1024.0, 9216.0), "large": (9216.0, 1e10)}
COCO_LARGEST_THRESHOLD = 0.9999999999


# ---------------------------------------------------------------- words of the signature


def similarity(protocol: Protocol) -> str:
    """Write what is compared and what decides how; nothing for boxes."""
    if protocol.similarity == "boundary":
        return f"boundary/{number_text(protocol.masks.boundary_dilation)}"
    if protocol.similarity == "keypoints":
        spread = protocol.keypoints.spread
        return f"oks/{len(spread)}/{spread.sum():.4g}"
    return "" if protocol.similarity == "box" else protocol.similarity


def decimals(protocol: Protocol) -> str:
    """Write the decimals of scores and boxes, ``all`` for what is not rounded; nothing where neither is."""
    kept = (protocol.rounding.scores, protocol.rounding.boxes)
    return "" if kept == (None, None) else ",".join("all" if one is None else str(one) for one in kept)


def thresholds(protocol: Protocol) -> str:
    """Write the grid of IoU thresholds."""
    return grid_text(protocol.matching.iou_thresholds)


def largest_threshold(protocol: Protocol) -> str:
    """Write the bound; nothing where thresholds are lowered as COCO's would be."""
    matching = protocol.matching
    lowered = np.minimum(matching.iou_thresholds, matching.largest_threshold)
    same = (lowered == np.minimum(matching.iou_thresholds, COCO_LARGEST_THRESHOLD)).all()
    return "" if same else number_text(matching.largest_threshold)


def caps(protocol: Protocol) -> str:
    """Write the detection caps."""
    return ",".join(map(str, protocol.matching.max_detections)) or "none"


def areas(protocol: Protocol) -> str:
    """Name COCO's ranges and the range of everything; else write each range."""
    ranges = protocol.ignore.area_ranges
    if ranges == COCO_AREAS:
        return "coco"
    if ranges == {"all": (0.0, float("inf"))}:
        return "all"
    return ",".join(f"{name}={number_text(low)}-{number_text(high)}" for name, (low, high) in ranges.items())


def curve(protocol: Protocol) -> str:
    """Write the number of recall points, their grid unless evenly spaced, and the line through them."""
    rules = protocol.ap
    if rules.interpolation == "area":
        return "area"
    if rules.interpolation == "every_point":
        return "every"
    points = rules.recall_points
    method = "" if rules.interpolation == "points" else f"-{rules.interpolation}"
    if points == tuple(np.linspace(0, 1, len(points)).tolist()):
        return f"{len(points)}{method}"
    whole = {"start": 0, "stop": 1, "count": len(points)}
    known = {
        tuple(colon(0, 0.1, 1)): "kit",
        grid({**whole, "rule": "float32"}, name="points"): "float32",
        grid({**whole, "rule": "hundredths"}, name="points"): "hundredths",
    }
    return f"{len(points)}{known[points]}{method}" if points in known else f"{grid_text(points)}{method}"


def froc(protocol: Protocol) -> str:
    """Write the points and how they are read; nothing for LUNA16's."""
    rules = protocol.froc
    if rules == type(rules)():
        return ""
    points = ",".join(map(number_text, rules.false_positives_per_image))
    return points if rules.interpolation == "linear" else f"{points}-{rules.interpolation}"


def miss_rate(protocol: Protocol) -> str:
    """Write the anchors and how they are read; nothing for Caltech's."""
    rules = protocol.miss_rate
    if rules == type(rules)():
        return ""
    points = ",".join(map(number_text, rules.false_positives_per_image))
    reading = "" if rules.reading == "last_at_most" else f"-{rules.reading}"
    return f"{points}{reading}"


def jaccard(protocol: Protocol) -> str:
    """Write the score thresholds; nothing for CrowdHuman's."""
    rules = protocol.jaccard
    return "" if rules == type(rules)() else ",".join(map(number_text, rules.score_thresholds))


def column_ranges(protocol: Protocol) -> str:
    """Write the columns that bound each range; nothing where areas alone do."""
    return ",".join(
        f"{name}." + "&".join(f"{column}={_ends(ends)}" for column, ends in columns.items())
        for name, columns in protocol.ignore.column_ranges.items()
    )


def _ends(ends: tuple[float, float]) -> str:
    return f"{number_text(ends[0])}-{number_text(ends[1])}"


def class_thresholds(protocol: Protocol) -> str:
    """Write the classes that have thresholds of their own; nothing where none has."""
    own = protocol.matching.class_thresholds
    return ",".join(f"{name}={grid_text(thresholds)}" for name, thresholds in own.items())


def not_evaluated(protocol: Protocol) -> str:
    """Write the classes that are not evaluated."""
    return ",".join(protocol.labels.not_evaluated)


def group(protocol: Protocol) -> str:
    """Write how groups are treated, and how much one counts."""
    rules = protocol.group
    return rules.treatment if rules.treatment == "count" else f"{rules.treatment}/{number_text(rules.weight)}"


def mean(protocol: Protocol) -> str:
    """Say whether points are summed one by one."""
    return "sequential" if protocol.ap.sequential_mean and protocol.ap.interpolation == "points" else ""


# ---------------------------------------------------------------- steps of a waterfall


def least_side(protocol: Protocol) -> str:
    """Write how short a side may be."""
    least = protocol.boxes.least_side
    return f"sides from {number_text(least)} pixels" if least else "counted"


def rounding(protocol: Protocol) -> str:
    """Write which numbers are rounded, and to how many decimals."""
    kept = {"scores": protocol.rounding.scores, "boxes": protocol.rounding.boxes}
    rounded = [
        f"{count} decimal{'s' * (count != 1)} of {name}" for name, count in kept.items() if count is not None
    ]
    return ", ".join(rounded) or "as given"


def threshold_range(protocol: Protocol) -> str:
    """Write the IoU thresholds briefly, rounded."""
    values = protocol.matching.iou_thresholds
    return grid_text(values) if len(values) < 3 else f"{values[0]:.2f}:{values[-1]:.2f}/{len(values)}"


def group_step(protocol: Protocol) -> str:
    """Write how groups are treated, and how much one counts."""
    rules = protocol.group
    if rules.treatment == "count":
        return "ordinary objects"
    return f"absorb, weight {number_text(rules.weight)}" if rules.weight else "absorb, not counted"


def largest_cap(protocol: Protocol) -> str:
    """Write the largest cap, and what it is counted over."""
    cap = protocol.caps[-1]
    scopes = {"class": "image and class", "image": "image", "data_set_class": "class of the data set"}
    scope = scopes[protocol.matching.cap_scope.removesuffix("_each")]
    return "none" if cap is None else f"{cap} per {scope}"


def equal_scores(protocol: Protocol) -> str:
    """Write the order of ties, or what moves in it after matching."""
    moved = protocol.ap.tie_order
    return (protocol.matching.equal_scores if moved == "as_ranked" else moved).replace("_", " ")


def interpolation(protocol: Protocol) -> str:
    """Write how the curve is read."""
    rules = protocol.ap
    if rules.interpolation == "area":
        at = f", {rules.score_steps} score thresholds" if rules.score_steps else ""
        return f"area under the envelope{at}"
    if rules.interpolation == "every_point":
        return "straight lines between all points"
    points = f"{len(rules.recall_points)} recall points"
    lines = {
        "points": points,
        "trapezoid": f"straight lines, read at {points}",
        "trapezoid_to_one": f"straight lines, the last to (1, 0), read at {points}",
    }
    return lines[rules.interpolation]
