"""Advise on an error in the data, or on a kind of mistake of the detector.

Conventions
-----------
- An action is the last part of a sentence at the top of a report. It is an order, and repairs the cause.
- Most messages of findings contain their repair, such as an option; only the others are in :data:`REPAIRS`.
- No action evaluates less data: that would change the score and not the detector.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from boxscore._utils.text import fixed
from boxscore.extensions.pages.html import address
from boxscore.validation import Finding


class Part(NamedTuple):
    """A part of a sentence, and the section that it links to; empty for none."""

    text: str
    anchor: str = ""


REPAIRS = {
    "annotation-degenerate": "Correct or delete these annotations",
    "annotation-inside-out": "Correct or delete these annotations",
    "annotation-outside-image": "Clip the boxes of the ground truth to their images",
    "area-disagrees-with-mask": "Correct the areas in the ground truth",
    "area-exceeds-box": "Correct the areas in the ground truth",
    "area-not-positive": "Correct the areas in the ground truth",
    "class-always-called-another": "Correct the detector's list of class names",
    "class-without-detections": "Compare the detector's list of class names with the ground truth's",
    "class-without-results-file": "Write the missing files",
    "classes-numbered-differently": "Give both files the same list of classes",
    "detection-degenerate": "Correct the export of these detections",
    "detection-inside-out": "Correct the export of these detections",
    "detections-cut-per-image": "Raise the detector's limit of detections per image",
    "detections-off-annotations": "Compare the boxes and image ids of one image in both files",
    "image-without-detections": "Run the detector on these images too",
    "near-duplicate-annotation": "Delete one annotation of each pair",
    "repeated-annotation-id": "Give each annotation its own id",
    "repeated-detection": "Write each detection once",
    "score-floor": "Export again with conf=0.001",
    "unknown-class": "Map these classes with --class-map",
}
"""Orders for findings whose message contains none, by code."""

BY_ANOTHER_WAY = ("image-without-detections", "class-without-detections", "detections-cut-per-image")
"""Codes of findings whose known effect is that of another repair."""

LOOK = {
    "missed": ("Look at ", "the missed objects", ": more training images like these may help"),
    "localization": ("Look at ", "these boxes", " and their labels: which of the two are loose?"),
    "duplicate": (
        "Try a lower NMS IoU threshold with boxscore sweep, after a look at ",
        "the duplicates",
        "",
    ),
    "background": (
        "Look for objects without a label among ",
        "these detections",
        "; boxscore suspects ranks them",
    ),
    "classification": ("Check the labels of ", "these images", ""),
    "both": ("Look at ", "these detections", " and the nearest labels"),
}
"""Orders for kinds of mistakes: the words before, in and after the link to their images."""

_REPAIR = re.compile(r"[Uu]se --|[Ee]xport ")


def repair_of(finding: Finding) -> tuple[str, tuple[Part, ...]]:
    """Split a finding into its evidence and the action that repairs it.

    Parameters
    ----------
    finding : Finding

    Returns
    -------
    evidence : str
        The message without its order, and the effect of another repair, if it is known.
    action : tuple of Part
        The order, and its effect, if it is known.
    """
    # Take the sentence that names an option out of the message.
    head, *sentences = re.split(r"(?<=\?) |\. |: (?=export )", finding.message.rstrip("."))
    stated = [sentence for sentence in sentences if _REPAIR.search(sentence)]
    evidence = [head, *(sentence for sentence in sentences if sentence not in stated)]
    rest = "".join(f"{text}{'' if text.endswith('?') else '.'} " for text in evidence).rstrip()
    # A repair that is an option, or of the table, is better than a general order.
    option = finding.repair.removeprefix("with ") if "--" in finding.repair else ""
    known = REPAIRS.get(finding.code) or (". ".join(stated) if stated else f"Use {option}" if option else "")
    order = known[:1].upper() + known[1:] or "Correct this, and write the report again"
    effect = _effect(finding)
    if finding.code in BY_ANOTHER_WAY and finding.effect_text:
        return f"{rest} {finding.effect_text}.", (Part(f"{order}."),)
    return rest, (Part(f"{order}{effect}."),)


def _effect(finding: Finding) -> str:
    """Describe the effect of the repair as the end of its order."""
    if not finding.effect_text:
        return ""
    value, repaired = ("undefined" if n != n else f"{n:.4f}" for n in (finding.value, finding.repaired))
    if finding.repaired_metric:
        return f": {finding.repaired_metric} would be {repaired} ({finding.metric} is {value} now)"
    if value == repaired:
        return f": {finding.metric} would stay {value}"
    difference = f" ({fixed(finding.effect, signed=True)})" if finding.effect == finding.effect else ""
    return f": {finding.metric} would be {repaired} instead of {value}{difference}"


def look_at(kind: str, **chosen: str) -> tuple[Part, ...]:
    """Return the action about a kind of mistake, linked to its images, of ``chosen`` classes."""
    before, link, after = LOOK[kind]
    stop = "" if after.endswith("?") else "."
    return Part(before), Part(link, address("gallery", **chosen, kind=kind)[1:]), Part(f"{after}{stop}")
