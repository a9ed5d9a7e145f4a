"""Summarize the main problems of a detector and their fixes in a few sentences, for the top of a report.

Goal
----
There are at most three sentences. Two name the largest costs in AP: errors in the data, as found by
``validate``, and TIDE's kinds of mistakes. The last recommends a score threshold. Without scores, all three
refer to F1.

Conventions
-----------
- A sentence consists of parts; a part may link to the section of the page that shows its numbers.
- Sentences are sorted by ``cost``: for an error in the data the effect on the first summary metric, for a
  kind of mistake the AP at IoU 0.50 that would be gained without it. Errors in the data come first.
- Costs that round to 0 are not mentioned, and no cause is named that the data do not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import numpy as np

from boxscore._utils.text import counted, counted_of, verb
from boxscore.diagnostics import error_types, operating_points
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.confusion import EVERY_SCORE
from boxscore.extensions.diagnostics.tide import confusion_cost, cost_unit
from boxscore.extensions.pages.choices import Choices, Missed, Scores
from boxscore.extensions.pages.diagnosis import values_by_iou
from boxscore.validation import Finding

MOST = 3
NEGLIGIBLE = 0.0005
"""Difference of AP that rounds to 0 in three decimals."""

NEARLY_ALL = 0.95
"""Fraction of kept detections above which a threshold is practically at the end of the file."""

ALWAYS_CALLED_ANOTHER = "class-always-called-another"
LONGEST_NAME = 40
SHAPES = {"mask": "masks", "boundary": "masks", "keypoints": "poses"}
"""Names of the compared objects, if they are not boxes."""


class Part(NamedTuple):
    """A part of a sentence, and the section that it links to; empty for none."""

    text: str
    anchor: str = ""


class Conclusion(NamedTuple):
    """One sentence, its topic, and its cost."""

    topic: str
    parts: tuple[Part, ...]
    cost: float = 0.0

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(part.text for part in self.parts)


def conclusions(
    evaluation: Evaluation,
    findings: Sequence[Finding],
    choices: Choices,
    *,
    listed: Container[str] | None = None,
) -> list[Conclusion]:
    """Choose the sentences, by descending cost.

    Parameters
    ----------
    evaluation : Evaluation
    findings : sequence of Finding
        Findings about the same tables.
    choices : Choices
        Choices of the page.
    listed : container of str, optional
        Codes of the findings that the page lists; by default all of them.

    Returns
    -------
    list of Conclusion
        One to three sentences.
    """
    faults = [
        fault
        for finding in findings
        if (fault := _fault(finding, listed is None or finding.code in listed)) is not None
    ]
    objects = int(evaluation.class_counts["ground_truths"].sum())
    detections = evaluation.counts["detections"]
    if not objects or not detections:
        return [_nothing_to_evaluate(evaluation, objects, detections), *_heaviest(faults, MOST - 1)]
    scored, scores = evaluation.has_scores, choices.scores
    advice = [Conclusion("threshold", threshold_advice(evaluation, findings, scores))] if scored else []
    mistakes = _mistakes(evaluation, choices)
    # A wrong table of class names explains the wrong classes, and is what to fix.
    for position, fault in enumerate(faults):
        if fault.topic == ALWAYS_CALLED_ANOTHER:
            explained = [mistake.cost for mistake in mistakes if mistake.topic == "classification"]
            faults[position] = fault._replace(cost=max([fault.cost, *explained]))
            mistakes = [mistake for mistake in mistakes if mistake.topic != "classification"]
    chosen = _heaviest([*faults, *mistakes], MOST)
    # An error in the data makes a threshold meaningless.
    if any(fault.cost == math.inf for fault in faults):
        advice = []
    if "score-floor" in {each.topic for each in chosen[: MOST - 1]} and is_cut(evaluation, findings, scores):
        # The cut is mentioned, so there is no advice on a threshold; it explains some of the missed objects.
        advice = []
        chosen = [_with_cut(each) if each.topic == "missed" else each for each in chosen]
    chosen = chosen[: MOST - len(advice)]
    if not any(each.topic not in {finding.code for finding in findings} for each in chosen):
        chosen += _heaviest(_faultless(evaluation, objects), MOST - 1 - len(chosen))
    chosen += [*_loose(evaluation), *_without_truth(evaluation)][: MOST - len(advice) - len(chosen)]
    return [*chosen, *advice]


def _with_cut(missed: Conclusion) -> Conclusion:
    """Add the score cut, as a possible cause, to the sentence about missed objects."""
    cause = Part(" Some may have detections "), Part("below the score cut", "finding-score-floor"), Part(".")
    return missed._replace(parts=(*missed.parts, *cause))


def _heaviest(sentences: Sequence[Conclusion], most: int) -> list[Conclusion]:
    return sorted(sentences, key=lambda sentence: -sentence.cost)[:most]


def _nothing_to_evaluate(evaluation: Evaluation, objects: int, detections: int) -> Conclusion:
    if not objects:
        ending = f", and {counted(detections, 'detection')} cannot be evaluated" if detections else ""
        return Conclusion("no ground truth", (Part(f"No ground truth counts, so AP is undefined{ending}."),))
    subject = "object is" if objects == 1 else "objects are"
    return Conclusion("no detections", (Part(f"Without detections, all {objects:,} {subject} missed."),))


# ---------------------------------------------------------------- costs in AP


def _fault(finding: Finding, is_listed: bool) -> Conclusion | None:
    """Describe an error in the data, or a warning with a known cost."""
    cost = finding.effect if finding.effect > NEGLIGIBLE else 0.0
    if finding.severity == "note" or (finding.severity == "warning" and not cost):
        return None
    head, rest = finding.head, finding.message.removeprefix(finding.head)
    # The worst classes mention the others.
    if finding.code == ALWAYS_CALLED_ANOTHER and finding.count > 1:
        most = max(finding.examples, key=lambda text: int(text.split()[0].replace(",", "")))
        rest = f": {most}, and {finding.count - 1:,} more. {rest.rpartition('. ')[2]}"
    stop = "" if finding.message.endswith((".", "?")) else "."
    effect = f" {finding.effect_text}." if finding.effect_text else ""
    parts = (
        Part(head[:1].upper() + head[1:], f"finding-{finding.code}" if is_listed else "findings"),
        Part(f"{rest}{stop}{effect}"),
    )
    return Conclusion(finding.code, parts, math.inf if finding.severity == "error" else cost)


def _mistakes(evaluation: Evaluation, choices: Choices) -> list[Conclusion]:
    """Describe the kinds of mistakes that cost AP."""
    # The cost of a kind of mistake is the AP that fixing it would gain.
    result = error_types(evaluation)
    counts = dict(zip(result.errors, result.total.counts.tolist(), strict=True))
    costs = dict(zip(result.errors, np.nan_to_num(result.total.cost).tolist(), strict=True))
    similarity, unit = evaluation.protocol.similarity, cost_unit(result)
    measure = "OKS" if similarity == "keypoints" else "IoU"

    def have(name: str) -> str:
        return f"{counted(counts[name], 'detection')} {verb(counts[name], 'have')}"

    # Describe only the kinds that cost something; some descriptions are expensive.
    words: dict[str, tuple[str, Callable[[], list[Part]]]] = {
        "missed": ("Missed objects", lambda: _missed(evaluation, choices.missed)),
        "localization": (
            "Localization errors",
            lambda: [
                Part(f"{have('localization')} an {measure} of only 0.1 to 0.5 with an object of their class")
            ],
        ),
        "duplicate": (
            "Duplicates",
            lambda: [
                Part(
                    f"{counted(counts['duplicate'], 'detection')} of already detected objects. A lower "
                    "NMS IoU threshold may help: try boxscore sweep"
                )
            ],
        ),
        "background": (
            "Background false positives",
            lambda: [Part(f"{have('background')} an {measure} of at most 0.1 with every object")],
        ),
    }
    if evaluation.protocol.matching.per_class:
        words["classification"] = (
            "Classification errors",
            lambda: _confused(evaluation, counts["classification"], choices),
        )
        words["both"] = (
            "Errors of both class and localization",
            lambda: [Part(counted(counts["both"], "detection"))],
        )
    # Leave out kinds with a negligible cost.
    return [
        Conclusion(
            name,
            (Part(title, "errors"), Part(f" cost {costs[name]:.3f} {unit}: "), *rest(), Part(".")),
            costs[name],
        )
        for name, (title, rest) in words.items()
        if costs[name] > NEGLIGIBLE
    ]


def _missed(evaluation: Evaluation, missed: Missed) -> list[Part]:
    """Count the missed objects, and name the size or class that most of them have."""
    text = f"{counted_of(missed.missed, missed.every, 'object')}"
    ranges = list(evaluation.protocol.ignore.area_ranges)[1:]
    if ranges:
        sizes, names, anchor = missed.by_size.tolist(), ranges, "sizes"
    else:
        sizes = missed.by_class.tolist()
        names, anchor = [_name(label) for label in evaluation.categories.labels], "classes"
    if len(names) < 2 or not any(sizes):
        return [Part(text)]
    most = int(np.argmax(sizes))
    if 2 * sizes[most] > missed.missed:
        return [Part(f"{text}, "), Part(f"most of them {names[most]} ({sizes[most]:,})", anchor)]
    return [Part(f"{text}, "), Part(f"{sizes[most]:,} of them {names[most]}", anchor)]


def _confused(evaluation: Evaluation, count: int, choices: Choices) -> list[Part]:
    """Count the detections with another object's class, and name the most frequent pair of classes."""
    # The largest cell without background gives the two classes.
    text, matrix = counted(count, "detection"), choices.matrix
    largest = matrix.largest(1, background=False).tolist()
    if not largest:
        return [Part(text)]
    (cell,) = largest
    pair = int(matrix.truth[cell]), int(matrix.predicted[cell])
    truth, predicted = (_name(matrix.labels[row]) for row in pair)
    # State the cost of this confusion only if it is not negligible.
    times, cost = int(matrix.count[cell]), confusion_cost(evaluation, *pair)
    score = choices.score_threshold
    from_ = f" at scores from {score:.3g}" if score > EVERY_SCORE else ""
    count_text = {1: "once", 2: "twice"}.get(times, f"{times:,} times")
    alone = f", which alone costs {cost:.3f}" if cost > NEGLIGIBLE else ""
    return [
        Part(f"{text}. Most often "),
        Part(f"{truth} is predicted as {predicted}", "confusion"),
        Part(f", {count_text}{from_}{alone}"),
    ]


# ---------------------------------------------------------------- other statements


def _faultless(evaluation: Evaluation, objects: int) -> list[Conclusion]:
    """Report a result without mistakes at IoU 0.50."""
    if not error_types(evaluation).total.value[0] > 1 - NEGLIGIBLE:
        return []
    each = "the only object is" if objects == 1 else f"all {objects:,} objects are"
    false = (
        "no false positive scores higher" if evaluation.has_scores else ("no detection is a false positive")
    )
    text = f" is wrong at IoU 0.50: {each} detected, and {false}."
    return [Conclusion("faultless", (Part("Nothing", "errors"), Part(text)), 1.0)]


def _loose(evaluation: Evaluation) -> list[Conclusion]:
    """Describe the cost of boxes that are too loose for the highest IoU thresholds."""
    thresholds = evaluation.protocol.matching.iou_thresholds
    if len(thresholds) < 2:
        return []
    first, last = values_by_iou(evaluation)[1][[0, -1]].tolist()
    if not first - last > NEGLIGIBLE:
        return []
    shapes = SHAPES.get(evaluation.protocol.similarity, "boxes")
    metric = "AP" if evaluation.has_scores else "F1"
    text = (
        f": {metric} falls from {first:.3f} at IoU {thresholds[0]:.2f} to {last:.3f} at {thresholds[-1]:.2f}."
    )
    return [Conclusion("loose", (Part(f"Tighter {shapes} would score higher", "sizes"), Part(text)))]


def _without_truth(evaluation: Evaluation) -> list[Conclusion]:
    """Count the detections that do not affect AP because their class lacks ground truth."""
    counts = evaluation.class_counts
    without = (counts["ground_truths"] == 0) & (counts["detections"] > 0)
    if not without.any():
        return []
    classes, detections = int(without.sum()), int(counts["detections"][without].sum())
    verb, their = ("has", "its") if classes == 1 else ("have", "their")
    head = f"{counted(classes, 'class')} with detections {verb} no ground truth"
    effect = "does not count" if detections == 1 else "do not count"
    if not evaluation.has_scores:
        effect = "is a false positive" if detections == 1 else "are false positives"
    text = f": {their} {counted(detections, 'detection')} {effect}."
    return [Conclusion("without ground truth", (Part(head, "classes"), Part(text)))]


def threshold_advice(evaluation: Evaluation, findings: Sequence[Finding], scores: Scores) -> tuple[Part, ...]:
    """Recommend the score threshold with the best F1, if the file contains enough low scores."""
    # The operating point is the score with the best F1 over all classes.
    best = operating_points(evaluation).total
    iou = evaluation.protocol.matching.iou_thresholds[0]
    score, f_score = float(best.score), float(best.f_score)
    if not f_score > 0:
        text = f" helps: no object is detected at IoU {iou:.2f}."
        return (Part("No score threshold", "confidence"), Part(text))
    rates = f"{f_score:.3f} (precision {float(best.precision):.3f}, recall {float(best.recall):.3f})"
    # If F1 is best at the lowest score in the file, a lower threshold may be better.
    lowest = scores.lowest
    floor = [finding.severity for finding in findings if finding.code == "score-floor"]
    if is_cut(evaluation, findings, scores):
        return (
            Part("No score threshold", "confidence"),
            Part(
                f" recommended: F1 still rises at the lowest score in the file, {lowest:.3g} (F1 {rates}). "
                "Export detections with lower scores first."
            ),
        )
    if score <= lowest:
        return (
            Part("Keep every detection", "confidence"),
            Part(f": the best F1, {rates}, needs no score threshold."),
        )
    # Recommend a threshold inside the file, and mention a suspected score floor.
    so_far = f"; lower scores than {lowest:.3g} are not in the file" * ("warning" in floor)
    return (
        Part(f"A score threshold of {score:.3g}", "confidence"),
        Part(f" gives the best F1, {rates}{so_far}."),
    )


def is_cut(evaluation: Evaluation, findings: Sequence[Finding], scores: Scores) -> bool:
    """Return whether F1 is best at the lowest score in the file, so that no threshold can be recommended."""
    if not any(finding.code == "score-floor" for finding in findings):
        return False
    return scores.reaching >= NEARLY_ALL * evaluation.counts["detections"]


def _name(label: str) -> str:
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"
