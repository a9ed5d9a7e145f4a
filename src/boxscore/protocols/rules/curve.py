"""How a precision-recall curve becomes one number."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, scores
from boxscore.protocols.fields import Rules, Step, Word, choice, flag, grid_of, number, rule, whole
from boxscore.protocols.grids import MOST_VALUES, colon, grid, grid_text, number_text

Interpolation = Literal[
    "points", "area", "trapezoid", "trapezoid_to_one", "every_point", "lines_as_they_are", "ends_of_ties"
]


def _curve(protocol: Any) -> str:
    """Write the number of recall points, their grid unless evenly spaced, and the line through them."""
    rules = protocol.ap
    if rules.interpolation in ("area", "ends_of_ties"):
        return str(rules.interpolation).replace("_", "-")
    if rules.interpolation in ("every_point", "lines_as_they_are"):
        return "every" if rules.interpolation == "every_point" else f"{len(rules.recall_points)}-as-they-are"
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


def _interpolation(protocol: Any) -> str:
    """Write how the curve is read."""
    rules = protocol.ap
    if rules.interpolation == "area":
        at = f", {rules.score_steps} score thresholds" if rules.score_steps else ""
        return f"area under the envelope{at}"
    if rules.interpolation == "every_point":
        return "straight lines between all points"
    if rules.interpolation == "ends_of_ties":
        return "straight lines from (0, 1) through the points after each score"
    if rules.interpolation == "lines_as_they_are":
        low = f"recall {number_text(rules.recall_above)} and precision {number_text(rules.precision_above)}"
        return f"lines between all points, read at {len(rules.recall_points)}, above {low}"
    points = f"{len(rules.recall_points)} recall points"
    lines = {
        "points": points,
        "trapezoid": f"straight lines, read at {points}",
        "trapezoid_to_one": f"straight lines, the last to (1, 0), read at {points}",
    }
    return lines[rules.interpolation]


def _mean(protocol: Any) -> str:
    """Say whether points are summed one by one."""
    return "sequential" if protocol.ap.sequential_mean and protocol.ap.interpolation == "points" else ""


@part(frozen=True)
class CurveFields(Rules):
    """The line through the points of a curve, and where it is read."""

    interpolation: Interpolation = rule(
        "points",
        check=choice(Interpolation),
        doc="Mean of the interpolated precision at recall points; the area under its envelope; or the area "
        "under straight lines through the envelope, read at the recall points: falling to 0 after the last "
        "recall reached, or along a line from there to (1, 0); or under straight lines between the points "
        "of all detections, without an envelope and with nothing before the first (CrowdHuman); or the mean "
        "at recall points of such lines, with the first precision before the first (nuScenes); or under "
        "straight lines from precision 1 at recall 0 through one point after each distinct score "
        "(Cityscapes).",
        word=Word(
            "ap",
            text=_curve,
            note="`area`; the count of points; `11kit` for the VOC devkit's points; or the points",
        ),
        step=Step("curve", "scoring", _interpolation),
        scope=scores(Scope.CLASS),
        refuses=(Refusal("ranges", lambda protocol: protocol.ap.interpolation == "ends_of_ties"),),
    )
    recall_points: tuple[float, ...] = rule(
        tuple(np.linspace(0, 1, 101).tolist()),
        check=grid_of(most=MOST_VALUES),
        doc='For "points", [R]; also where `Evaluation.curves` reads the curve.',
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
        replaces=True,
    )


@part(frozen=True)
class CutFields(Rules):
    """What of a curve is cut off."""

    recall_above: float = rule(
        -1.0,
        check=number(-1, 1),
        doc='For "lines_as_they_are": only recall points above it are read (nuScenes: 0.1).',
        word=Word("recallabove", silent=-1.0),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
    precision_above: float = rule(
        0.0,
        check=number(0, 0.999),
        doc='For "lines_as_they_are": taken off each precision, down to 0, and the mean divided by what is '
        "left of 1 (nuScenes: 0.1).",
        word=Word("precisionabove", silent=0.0),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )


@part(frozen=True)
class ScoreStepsField(Rules):
    """A curve at fixed scores."""

    score_steps: int = rule(
        0,
        check=whole(0),
        doc='For "area": the curve has a point only at the score thresholds `1 - i / score_steps`, i = 1 to '
        "`score_steps` (WIDER FACE: 1000); 0 for one at every detection.",
        word=Word("steps", silent=0),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.ap.score_steps and protocol.ap.interpolation != "area",
                'be 0 unless ap.interpolation is "area"',
            ),
        ),
    )


@part(frozen=True)
class PrecisionEpsilonField(Rules):
    """What precision is divided by beside its counts."""

    precision_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to tp + fp in the denominator of precision (pycocotools: `np.spacing(1)`).",
        word=Word("eps", silent=float(np.spacing(1)), note="left out for COCO's"),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )


@part(frozen=True)
class SequentialMeanField(Rules):
    """How points are added up."""

    sequential_mean: bool = rule(
        False,
        check=flag,
        doc="Sum `p / R` point by point, as the VOC devkit does, instead of taking `numpy.mean`.",
        word=Word("mean", text=_mean, note="`sequential` where points are summed one by one"),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
