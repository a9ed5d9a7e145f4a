"""Define ``[ap]``: how to reduce a precision-recall curve to one number and average classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Does, ExtraColumn, Refusal, Scope, scores
from boxscore.protocols.fields import (
    Check,
    Rules,
    Step,
    Word,
    choice,
    flag,
    grid_of,
    number,
    rule,
    text,
    whole,
)
from boxscore.protocols.grids import MOST_VALUES, colon, grid, grid_text, number_text

Interpolation = Literal[
    "points", "area", "trapezoid", "trapezoid_to_one", "every_point", "lines_as_they_are", "ends_of_ties"
]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]
RecallOver = Literal["counted", "all"]
AbsentClasses = Literal["skip", "zero", "all_zero"]
ClassMean = Literal["of_defined", "nanmean", "by_images"]
Pool = Literal["none", "classes"]


def _curve(protocol: Any) -> str:
    """Format the number of recall points, their grid unless evenly spaced, and the interpolation."""
    rules = protocol.ap
    # Rules that do not use recall points.
    if rules.interpolation in ("area", "ends_of_ties"):
        return str(rules.interpolation).replace("_", "-")
    if rules.interpolation in ("every_point", "lines_as_they_are"):
        return "every" if rules.interpolation == "every_point" else f"{len(rules.recall_points)}-as-they-are"
    # Omit the grid of evenly spaced points; use a name for the grids of known tools.
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
    """Describe the interpolation."""
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
    """Describe whether points are summed one by one."""
    return "sequential" if protocol.ap.sequential_mean and protocol.ap.interpolation == "points" else ""


TAKES_PART = ExtraColumn(
    "takes_part", "truth", "bool", asked_for=lambda protocol: protocol.ap.recall_over == "all"
)
"""Whether each ground truth, counted or ignored, takes part in matching, [G]."""


OTHERS = "*"
"""The key for every class without a weight."""


WEIGHTS_OF_CLASSES = "boxscore.extensions.weights.class_weights:weights_of"
"""Function that takes these rules and the classes of a data set, and returns the weight of each class,
[K]."""


LARGEST_WEIGHT = 1e100
"""Larger weights would overflow sums."""


MOST_WRITTEN = 8
"""Largest number of weights that a signature lists; above it, the signature has a digest."""


def _weights(value: Any, name: str) -> dict[str, float] | str:
    if isinstance(value, str):
        return str(text(value, name))
    if not isinstance(value, Mapping):
        rule = "be a table of class = weight, or the name of a column of classes"
        raise ProtocolError(name, rule, got=repr(value)[:80])
    weights = {}
    for key, weight in value.items():
        is_id = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
        word = text(str(key) if is_id else key, name)
        if word in weights:
            raise ProtocolError(name, "name each class once", got=f"{word!r} twice")
        weights[word] = checks.number_between(weight, 0, LARGEST_WEIGHT, name=f"{name}.{word}")
    if weights and not any(weights.values()):
        raise ProtocolError(name, "have a weight above 0", got="none")
    return weights


def _weights_text(protocol: Any) -> str:
    """Format the weights, or a digest that identifies them; empty without weights."""
    weights = protocol.ap.class_weights
    if isinstance(weights, str):
        return weights and f"column={weights}"
    pairs = sorted(f"{name}={number_text(weight)}" for name, weight in weights.items())
    if len(pairs) <= MOST_WRITTEN:
        return ",".join(pairs)
    import hashlib  # takes 4 ms, so only import it when there are weights

    digest = hashlib.sha256("\n".join(pairs).encode()).hexdigest()[:12]
    return f"{len(pairs)}-classes-{digest}"


def _refused_with_weights(field: str, wrong: Any, rule: str) -> Refusal:
    return Refusal(
        "together",
        lambda protocol: protocol.ap.class_weights and wrong(protocol),
        rule,
        field=field,
        cause="leave out one of the two",
    )


class ApRules(Rules):
    """How to reduce a precision-recall curve to one number."""

    PREFIX = "ap."

    # curve
    interpolation: Interpolation = rule(
        "points",
        check=choice(Interpolation),
        doc="Mean of the interpolated precision at recall points; the area under its envelope; the area "
        "under straight lines through the envelope, read at the recall points, which after the last "
        "recall reached either drops to 0 or follows a line to (1, 0); the area under straight lines "
        "between the points of all detections, without an envelope and with nothing before the first "
        "(CrowdHuman); the mean of such lines at recall points, extended by the first precision before "
        "the first point (nuScenes); or the area under straight lines from precision 1 at recall 0 "
        "through one point after each distinct score (Cityscapes).",
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
        doc='For "points", [R]; `Evaluation.curves` reads the curve there too.',
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
        replaces=True,
    )
    recall_above: float = rule(
        -1.0,
        check=number(-1, 1),
        doc='For "lines_as_they_are": only recall points above this value are read (nuScenes: 0.1).',
        word=Word("recallabove", silent=-1.0),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
    precision_above: float = rule(
        0.0,
        check=number(0, 0.999),
        doc='For "lines_as_they_are": subtracted from each precision, down to 0; the mean is divided by 1 '
        "minus this value (nuScenes: 0.1).",
        word=Word("precisionabove", silent=0.0),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
    # equal scores
    tie_order: TieOrder = rule(
        "as_ranked",
        check=choice(TieOrder),
        doc="Whether true positives are reordered among a class's equally scored detections after matching.",
        word=Word("equal", silent="as_ranked"),
        step="matching.equal_scores",
        scope=scores(Scope.CLASS),
    )
    # curve
    score_steps: int = rule(
        0,
        check=whole(0),
        doc='For "area": the curve has a point only at the score thresholds `1 - i / score_steps`, i = 1 to '
        "`score_steps` (WIDER FACE: 1000); 0 means one point per detection.",
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
    # recall
    recall_over: RecallOver = rule(
        "counted",
        check=choice(RecallOver),
        doc="The denominator of recall: the counted ground truths, or the ignored ones too (VisDrone).",
        word=Word("recall", silent="counted"),
        step=Step("objects in recall's denominator", "scoring"),
        scope=scores(Scope.CLASS),
        columns=(TAKES_PART,),
        does=(Does("after", "boxscore.extensions.crowds.regions:with_taking_part", TAKES_PART.asked_for),),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.ap.recall_over == "all" and protocol.group.weighs,
                'be "counted" where groups have weights',
                got='"all"',
            ),
        ),
    )
    # mean over classes
    absent_classes: AbsentClasses = rule(
        "skip",
        check=choice(AbsentClasses),
        doc="AP of a class without counted ground truth: undefined; 0 in the mean when it has detections; "
        "or always 0.",
        word=Word("absent", silent="skip"),
        step=Step(
            "classes without ground truth",
            "scoring",
            {"skip": "skipped", "zero": "AP 0 if detected", "all_zero": "AP 0"},
        ),
        scope=scores(Scope.CLASS),
    )
    # classes
    pool: Pool = rule(
        "none",
        check=choice(Pool),
        doc="Whether a metric is the mean over classes, or computed on one curve that their detections "
        "share.",
        word=Word("pool", silent="none"),
        step=Step("curves", "scoring", {"none": "one per class", "classes": "one for all classes"}),
        scope=scores(lambda protocol: Scope.CLASS if protocol.ap.pool == "none" else Scope.DATA_SET),
        refuses=(Refusal("classes", lambda protocol: protocol.ap.pool != "none"),),
    )
    # curve
    precision_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to tp + fp in the denominator of precision (pycocotools: `np.spacing(1)`).",
        word=Word("eps", silent=float(np.spacing(1)), note="left out for COCO's"),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
    # mean over classes
    class_mean: ClassMean = rule(
        "of_defined",
        check=choice(ClassMean),
        doc="The mean over classes: of the defined values; `numpy.nanmean` over all classes, whose last bit "
        "depends on the positions of the undefined ones; or weighted by the number of images with an "
        "object of the class (VisDrone).",
        word=Word("classmean", silent="of_defined"),
        step="ap.absent_classes",
        scope=scores(Scope.DATA_SET),
    )
    # weights of classes
    class_weights: Mapping[str, float] | str = rule(
        {},
        check=Check("class = number >= 0, or column", _weights),
        doc='Weight of each class in every mean over classes: by name or id, where `"*"` is every other '
        "class; or the name of a column of classes that holds the weights. A class of weight 0 is left "
        "out. By default all classes have equal weight.",
        word=Word(
            "classweight", text=_weights_text, note="the weights, a digest of very many, or their column"
        ),
        step=Step("weights of classes", "scoring", _weights_text),
        scope=scores(Scope.DATA_SET),
        replaces=True,
        refuses=(
            _refused_with_weights(
                "ap.pool",
                lambda protocol: protocol.ap.pool == "classes",
                "be 'none' where classes have weights: one curve has no mean over classes",
            ),
            _refused_with_weights(
                "matching.per_class",
                lambda protocol: not protocol.matching.per_class,
                "be true where classes have weights",
            ),
            _refused_with_weights(
                "ap.class_mean",
                lambda protocol: protocol.ap.class_mean == "by_images",
                "be 'of_defined' or 'nanmean' where classes have weights: by_images weighs them by images",
            ),
        ),
    )
    # curve
    sequential_mean: bool = rule(
        False,
        check=flag,
        doc="Sum `p / R` point by point, as the VOC devkit does, instead of taking `numpy.mean`.",
        word=Word("mean", text=_mean, note="`sequential` where points are summed one by one"),
        step="ap.interpolation",
        scope=scores(Scope.CLASS),
    )
