"""Summarize the main problems of a detector and their fixes in a few sentences, for the top of a report.

Goal
----
There are at most three sentences, and each ends in an action. Two name the largest costs in AP: errors in the
data, as found by ``validate``, and TIDE's kinds of mistakes. The last recommends a score threshold. Without
scores, all three refer to F1.

Conventions
-----------
- A sentence consists of parts; a part may link to the section of the page that shows its numbers or cause.
- Sentences are chosen by ``cost``: for an error in the data the effect on the first summary metric, for a
  kind of mistake the AP at IoU 0.50 that would be gained without it. Those about the data come first.
- An error in the data explains mistakes that cost less than its effect, and makes a threshold meaningless.
- Costs that round to 0 are not mentioned, and no cause is named that the data do not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import numpy as np

from boxscore._utils.text import counted, counted_of, verb
from boxscore.diagnostics import error_types, operating_points
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics.confusion import EVERY_SCORE
from boxscore.extensions.diagnostics.tide import confusion_cost, cost_unit
from boxscore.extensions.pages.actions import LOOK, Part, look_at, repair_of
from boxscore.extensions.pages.choices import Choices, Missed, Scores
from boxscore.extensions.pages.diagnosis import values_by_iou
from boxscore.extensions.pages.html import address
from boxscore.validation import Finding

MOST = 3
NEGLIGIBLE = 0.0005
"""Difference of AP that rounds to 0 in three decimals."""

NEARLY_ALL = 0.95
"""Fraction of kept detections above which a threshold is practically at the end of the file."""

UNDER_A_CUT = ("missed", "image-without-detections")
"""Topics of sentences that a cut of the scores may explain."""

ALWAYS_CALLED_ANOTHER = "class-always-called-another"
EXPLAINED = {ALWAYS_CALLED_ANOTHER: "classification", "repeated-detection": "duplicate"}
"""Kinds of mistakes that findings with a cost explain, by code."""

LONGEST_NAME = 40
SHAPES = {"mask": "masks", "boundary": "masks", "keypoints": "poses"}
"""Names of the compared objects, if they are not boxes."""


class Conclusion(NamedTuple):
    """A problem and the action against it, its topic, and its cost."""

    topic: str
    parts: tuple[Part, ...]
    action: tuple[Part, ...]
    cost: float = 0.0
    is_fault: bool = False
    """Whether the data are wrong, not the detector."""

    @property
    def text(self) -> str:
        """The whole sentence, and the action after it."""
        return " ".join("".join(part.text for part in parts) for parts in (self.parts, self.action))


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
    advice = [threshold_advice(evaluation, findings, scores)] if scored else []
    mistakes = _mistakes(evaluation, choices)
    # Errors in the data explain some kinds of mistakes, and are what to correct.
    for position, fault in enumerate(faults):
        kind = EXPLAINED.get(fault.topic)
        explained = [mistake.cost for mistake in mistakes if mistake.topic == kind]
        faults[position] = fault._replace(cost=max([fault.cost, *explained]))
        mistakes = [mistake for mistake in mistakes if mistake.topic != kind]
    # An error in the data makes a threshold meaningless, and explains mistakes that cost less.
    is_wrong = any(fault.cost == math.inf for fault in faults)
    if is_wrong:
        advice = []
        effects = [each.effect for each in findings if each.severity == "error" and each.effect > 0]
        effect = max(effects, default=0.0)
        left = [mistake for mistake in mistakes if mistake.cost > effect]
        if len(left) < len(mistakes):
            faults = _heaviest(faults, len(faults))
            after = Part(" Then write the report again: this error affects every other number here.")
            faults[0] = faults[0]._replace(action=(*faults[0].action, after))
        mistakes = left
    chosen = _heaviest([*faults, *mistakes], MOST)
    if "score-floor" in {each.topic for each in chosen[: MOST - 1]} and is_cut(evaluation, findings, scores):
        # The cut is mentioned, so there is no advice on a threshold; it may explain some missed objects.
        advice = []
        chosen = [_with_cut(each) if each.topic in UNDER_A_CUT else each for each in chosen]
    chosen = sorted(chosen[: MOST - len(advice)], key=lambda each: not each.is_fault)
    if not any(each.topic not in {finding.code for finding in findings} for each in chosen):
        chosen += _heaviest(_faultless(evaluation, objects), MOST - 1 - len(chosen))
    loose = [] if is_wrong else _loose(evaluation)
    chosen += [*loose, *_without_truth(evaluation)][: MOST - len(advice) - len(chosen)]
    return [*chosen, *advice]


def _with_cut(sentence: Conclusion) -> Conclusion:
    """Name the score cut, as a possible cause, in the action of a sentence."""
    cause = Part("Export detections "), Part("below the score cut", "finding-score-floor")
    return sentence._replace(action=(*cause, Part(" first: they may be what is missing.")))


def _heaviest(sentences: Sequence[Conclusion], most: int) -> list[Conclusion]:
    return sorted(sentences, key=lambda sentence: -sentence.cost)[:most]


def _nothing_to_evaluate(evaluation: Evaluation, objects: int, detections: int) -> Conclusion:
    if not objects:
        ending = f", and {counted(detections, 'detection')} cannot be evaluated" if detections else ""
        check = Part("Check the ground truth, and which images and classes were chosen.")
        text = f"No ground truth counts, so AP is undefined{ending}."
        return Conclusion("no ground truth", (Part(text),), (check,))
    subject = "object is" if objects == 1 else "objects are"
    check = Part("Check the file of detections, and the score threshold of its export.")
    text = f"Without detections, all {objects:,} {subject} missed."
    return Conclusion("no detections", (Part(text),), (check,))


# ---------------------------------------------------------------- costs in AP


def _fault(finding: Finding, is_listed: bool) -> Conclusion | None:
    """Describe an error in the data, or a warning with a known cost."""
    cost = finding.effect if finding.effect > NEGLIGIBLE else 0.0
    if finding.severity == "note" or (finding.severity == "warning" and not cost):
        return None
    evidence, action = repair_of(finding)
    # A head of one word is the name of a file; then link the first statement about it.
    head = finding.head if " " in finding.head else re.split(r"[;.?] ", evidence, maxsplit=1)[0]
    rest = evidence.removeprefix(head)
    # The worst classes mention the others.
    if finding.code == ALWAYS_CALLED_ANOTHER and finding.count > 1:
        most = max(finding.examples, key=lambda text: int(text.split()[0].replace(",", "")))
        rest = f": {most}, and {finding.count - 1:,} more. {rest.rpartition('. ')[2]}"
    link = f"finding-{finding.code}" if is_listed else "findings"
    parts = Part(head[:1].upper() + head[1:], link), Part(rest)
    return Conclusion(
        finding.code, parts, action, math.inf if finding.severity == "error" else cost, is_fault=True
    )


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
    words: dict[str, tuple[str, Callable[[], _Description]]] = {
        "missed": ("Missed objects", lambda: _missed(evaluation, choices.missed)),
        "localization": (
            "Localization errors",
            lambda: _Description(
                [Part(f"{have('localization')} an {measure} of 0.1 to 0.5 with an object of their class")],
                look_at("localization"),
            ),
        ),
        "duplicate": (
            "Duplicates",
            lambda: _Description(
                [Part(f"{counted(counts['duplicate'], 'detection')} of already detected objects")],
                look_at("duplicate"),
            ),
        ),
        "background": (
            "Background false positives",
            lambda: _Description(
                [Part(f"{have('background')} an {measure} of at most 0.1 with every object")],
                look_at("background"),
            ),
        ),
    }
    if evaluation.protocol.matching.per_class:
        words["classification"] = (
            "Classification errors",
            lambda: _confused(evaluation, counts["classification"], choices),
        )
        words["both"] = (
            "Errors of both class and localization",
            lambda: _Description([Part(counted(counts["both"], "detection"))], look_at("both")),
        )
    # Leave out kinds with a negligible cost.
    sentences = []
    for name, (title, describe) in words.items():
        if costs[name] > NEGLIGIBLE:
            cost, (rest, action) = Part(f" cost {costs[name]:.3f} {unit}: "), describe()
            parts = Part(title, "errors"), cost, *rest, Part(".")
            sentences.append(Conclusion(name, parts, action, costs[name]))
    return sentences


class _Description(NamedTuple):
    """The number of mistakes of a kind, and the action against them."""

    parts: list[Part]
    action: tuple[Part, ...]


def _missed(evaluation: Evaluation, missed: Missed) -> _Description:
    """Count the missed objects, and name the size or class that most of them have."""
    text = f"{counted_of(missed.missed, missed.every, 'object')}"
    ranges = list(evaluation.protocol.ignore.area_ranges)[1:]
    if ranges:
        sizes, names, anchor = missed.by_size.tolist(), ranges, "sizes"
    else:
        sizes = missed.by_class.tolist()
        names, anchor = [_name(label) for label in evaluation.categories.labels], "classes"
    if len(names) < 2 or max(sizes) < 2:
        return _Description([Part(text)], look_at("missed"))
    most = int(np.argmax(sizes))
    which = f"most of them {names[most]} ({sizes[most]:,})"
    if 2 * sizes[most] <= missed.missed:
        which = f"{sizes[most]:,} of them {names[most]}"
    parts = [Part(f"{text}, "), Part(which, anchor)]
    # Small objects need more pixels, others more examples.
    if ranges and most == 0:
        looked = Part("the missed objects", address("gallery", kind="missed")[1:])
        return _Description(
            parts, (Part("Try a larger input size, or tiles, after a look at "), looked, Part("."))
        )
    chosen = {} if ranges else {"class": evaluation.labels[most]}
    return _Description(parts, look_at("missed", **chosen))


def _confused(evaluation: Evaluation, count: int, choices: Choices) -> _Description:
    """Count the detections with another object's class, and name the most frequent pair of classes."""
    # The largest cell without background gives the two classes.
    text, matrix = counted(count, "detection"), choices.matrix
    largest = matrix.largest(1, background=False).tolist()
    if not largest:
        return _Description([Part(text)], look_at("classification"))
    (cell,) = largest
    pair = int(matrix.truth[cell]), int(matrix.predicted[cell])
    truth, predicted = (_name(matrix.labels[row]) for row in pair)
    # State the cost of this confusion only if it is not negligible.
    times, cost = int(matrix.count[cell]), confusion_cost(evaluation, *pair)
    score = choices.score_threshold
    from_ = f" at scores from {score:.3g}" if score > EVERY_SCORE else ""
    count_text = {1: "once", 2: "twice"}.get(times, f"{times:,} times")
    alone = f", which alone costs {cost:.3f}" if cost > NEGLIGIBLE else ""
    shown = address("confusion", truth=matrix.labels[pair[0]], predicted=matrix.labels[pair[1]])[1:]
    parts = [
        Part(f"{text}. Most often "),
        Part(f"{truth} is predicted as {predicted}", "confusion"),
        Part(f", {count_text}{from_}{alone}"),
    ]
    before, link, after = LOOK["classification"]
    return _Description(parts, (Part(before), Part(link, shown), Part(f"{after}.")))


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
    check = Part("If this is a surprise, check that the detections are not a copy of the ground truth.")
    return [Conclusion("faultless", (Part("Nothing", "errors"), Part(text)), (check,), 1.0)]


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
    parts = Part(f"Tighter {shapes} would score higher", "sizes"), Part(text)
    look = (
        Part("Check whether the labels are as tight as the protocol asks, in "),
        Part("the images", "gallery"),
    )
    return [Conclusion("loose", parts, (*look, Part(".")))]


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
    action = Part("If they are classes of the ground truth by another name, map them with --class-map.")
    return [Conclusion("without ground truth", (Part(head, "classes"), Part(text)), (action,))]


def threshold_advice(evaluation: Evaluation, findings: Sequence[Finding], scores: Scores) -> Conclusion:
    """Recommend the score threshold with the best F1, if the file contains enough low scores."""
    # The operating point is the score with the best F1 over all classes.
    best = operating_points(evaluation).total
    iou = evaluation.protocol.matching.iou_thresholds[0]
    score, f_score = float(best.score), float(best.f_score)
    rates = f"{f_score:.3f} (precision {float(best.precision):.3f}, recall {float(best.recall):.3f})"
    lowest = scores.lowest
    floor = [finding.severity for finding in findings if finding.code == "score-floor"]
    if not f_score > 0:
        link, text = "No score threshold", f" helps: no object is detected at IoU {iou:.2f}."
        action = "Compare the boxes of one image in both files."
    elif is_cut(evaluation, findings, scores):
        # If F1 is best at the lowest score in the file, a lower threshold may be better.
        link = "No score threshold"
        text = f" recommended: F1 still rises at the lowest score in the file, {lowest:.3g} (F1 {rates})."
        action = "Export detections with lower scores first."
    elif score <= lowest:
        link, text = "The best F1", f", {rates}, needs no score threshold."
        action = "Keep every detection."
    else:
        # Recommend a threshold inside the file, and mention a suspected score floor.
        so_far = f"; lower scores than {lowest:.3g} are not in the file" * ("warning" in floor)
        link, text = f"A score threshold of {score:.3g}", f" gives the best F1, {rates}{so_far}."
        action = "Use it, or find one for another precision or recall with boxscore operating-points."
    return Conclusion("threshold", (Part(link, "confidence"), Part(text)), (Part(action),))


def is_cut(evaluation: Evaluation, findings: Sequence[Finding], scores: Scores) -> bool:
    """Return whether F1 is best at the lowest score in the file, so that no threshold can be recommended."""
    if not any(finding.code == "score-floor" for finding in findings):
        return False
    return scores.reaching >= NEARLY_ALL * evaluation.counts["detections"]


def _name(label: str) -> str:
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"
