"""Describe the counts from reading the answers of a language model.

Conventions
-----------
The counts are part of a result and stay with the table of detections: a mapping for JSON, empty for a table
that does not come from answers. ``counts`` has every kind of ``KINDS``, ``first`` the first image of a kind.
``changed`` are the signature words of options that change the boxes.
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
"""Descriptions of the counts; the keys of ``counts``."""

MOST_LABELS = 1_000
"""Maximum number of unknown labels that are kept by name."""


def is_answers(value: Any) -> bool:
    """Return whether a value from an untrusted file is a mapping of this kind."""
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
    """Describe how answers were read in a few sentences; empty for a table without answers."""
    if not answers:
        return ""
    # Name only kinds that occur, each with its first image.
    counts, first = answers["counts"], answers["first"]

    def listed(kinds: Mapping[str, str]) -> str:
        return ", ".join(
            f"{counts[kind]:,} {words}" + (f" (first: {first[kind]})" if kind in first else "")
            for kind, words in kinds.items()
            if counts[kind]
        )

    # Describe answers first, then missing ones.
    sentences = [f"{counted(counts['answers'], 'answer')}: {listed(_OF_ANSWERS) or 'none'}"]
    if counts["missing"]:
        sentences.append(
            f"{counted(counts['missing'], 'image')} without an answer (first: {first['missing']})"
        )
    if counts["further_blocks"]:
        sentences.append(
            f"a second fenced block in {counted(counts['further_blocks'], 'answer')} is not read"
        )
    # Then describe boxes: their convention, and oddities.
    boxes = (
        f"{counted(counts['boxes'], 'box')} in the convention {answers['coordinates']}, {answers['because']}"
    )
    sentences += [boxes, *(_WORDS[word] for word in answers["changed"])]
    # Name only kinds that occur.
    odd = listed(_OF_BOXES)
    if counts["longest_run"] > 1:
        odd += f", the longest run {counts['longest_run']:,}"
    if odd:
        sentences.append(f"of the boxes {odd}")
    if answers["unknown_labels"]:
        labels = (f"{label} ({number:,})" for label, number in answers["unknown_labels"].items())
        sentences.append(f"unknown labels: {short_list(labels)}")
    return ". ".join(text[0].upper() + text[1:] for text in sentences) + "."
