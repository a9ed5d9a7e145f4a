"""Say in words what was counted while the answers of a language model were read.

Conventions
-----------
It is part of a result and stays with the table of detections: a mapping that JSON can hold, empty for a table
that does not come from answers. ``counts`` has every kind of ``KINDS``, ``first`` the image in which a kind
was first seen. ``changed`` are the words in the signature of options that change the boxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxscore._utils.text import counted, short_list

_WORDS = {"repeated:once": "repeated boxes are taken once", "answers:loose": "numbers in prose are taken"}

_OF_ANSWERS = {
    "read": "read",
    "repaired": "repaired",
    "truncated": "truncated",
    "loose": "read loosely",
    "empty": "empty",
    "unreadable": "unreadable",
}
_OF_BOXES = {
    "damaged": "not four numbers",
    "without_label": "without a label",
    "unknown_label": "with an unknown label",
    "swapped": "with corners turned",
    "without_area": "without area",
    "out_of_range": "outside the image",
    "repeated": "repeated exactly",
}
KINDS = {
    "answers": "answers",
    **_OF_ANSWERS,
    "missing": "images without an answer",
    "further_blocks": "answers with a second fenced block, which is not read",
    "boxes": "boxes",
    **_OF_BOXES,
    "longest_run": "the longest run of one box",
}
"""What is counted, in words; the keys of ``counts``."""

MOST_LABELS = 1_000
"""Unknown labels that are kept by name."""


def is_answers(value: Any) -> bool:
    """Whether a value is a mapping of this kind, from a file that anybody may have written."""
    if not isinstance(value, Mapping):
        return False
    parts = {name: value.get(name) for name in ("counts", "first", "unknown_labels")}
    return not value or (
        {*value} == {"coordinates", "because", "changed", *parts}
        and isinstance(value["changed"], list)
        and {*map(str, value["changed"])} <= {*_WORDS}
        and all(isinstance(value[name], str) for name in ("coordinates", "because"))
        and all(isinstance(part, Mapping) for part in parts.values())
        and {*parts["counts"]} == {*KINDS}  # type: ignore[misc]
        and all(_is_count(parts[name]) for name in ("counts", "unknown_labels"))
        and all(isinstance(image, (int, str)) for image in parts["first"].values())  # type: ignore[union-attr]
    )


def _is_count(counts: Any) -> bool:
    return all(type(number) is int and number >= 0 for number in counts.values())


def answers_text(answers: Mapping[str, Any]) -> str:
    """Say in a few sentences how answers were read; nothing for a table that does not come from answers."""
    if not answers:
        return ""
    # Only kinds that occur are named, each with its first place.
    counts, first = answers["counts"], answers["first"]

    def listed(kinds: Mapping[str, str]) -> str:
        return ", ".join(
            f"{counts[kind]:,} {words}" + (f" (first: {first[kind]})" if kind in first else "")
            for kind, words in kinds.items()
            if counts[kind]
        )

    # Answers first, then what is missing.
    sentences = [f"{counted(counts['answers'], 'answer')}: {listed(_OF_ANSWERS) or 'none'}"]
    if counts["missing"]:
        sentences.append(
            f"{counted(counts['missing'], 'image')} without an answer (first: {first['missing']})"
        )
    if counts["further_blocks"]:
        sentences.append(
            f"a second fenced block in {counted(counts['further_blocks'], 'answer')} is not read"
        )
    # Then boxes: their convention, and what is odd about them.
    boxes = (
        f"{counted(counts['boxes'], 'box')} in the convention {answers['coordinates']}, {answers['because']}"
    )
    sentences += [boxes, *(_WORDS[word] for word in answers["changed"])]
    # Name only what occurs.
    odd = listed(_OF_BOXES)
    if counts["longest_run"] > 1:
        odd += f", the longest run {counts['longest_run']:,}"
    if odd:
        sentences.append(f"of the boxes {odd}")
    if answers["unknown_labels"]:
        labels = (f"{label} ({number:,})" for label, number in answers["unknown_labels"].items())
        sentences.append(f"unknown labels: {short_list(labels)}")
    return ". ".join(text[0].upper() + text[1:] for text in sentences) + "."
