"""Convert the boxes of answers: apply their convention, order and clip corners, count oddities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore.data.vocabulary import Id
from boxscore.extensions.scoreless._answer_text import ReadAnswer
from boxscore.extensions.scoreless.answer_counts import KINDS, MOST_LABELS
from boxscore.extensions.scoreless.coordinates import (
    Chosen,
    Evidence,
    chosen_coordinates,
    in_fractions,
    of_originals,
)

HAIR = 1e-6
"""Tolerance, in coordinates of the box, for boxes that exceed their image by rounding."""


def same_label(label: str) -> str:
    """Normalize a label for comparisons: lower case, with blanks for ``_`` and ``-``."""
    return " ".join(label.casefold().replace("_", " ").replace("-", " ").split())


class AnswerBoxes:
    """The boxes of a file's answers, one row each, and counts of how they were read.

    Parameters
    ----------
    answers : sequence of ReadAnswer
    names : sequence of int or str
        Name of each answer, its image, for the first occurrence of a count.

    Attributes
    ----------
    answer : ndarray of int, [N]
        The answer of each box.
    written : ndarray of float64, [N, 4]
        The four numbers as written.
    labels : list of str or None, [N]
    counts, first
        As in :mod:`boxscore.extensions.scoreless.answer_counts`.
    """

    def __init__(self, answers: Sequence[ReadAnswer], names: Sequence[Id]) -> None:
        self._answers, self._names = answers, names
        self.answer: IntArray = np.repeat(np.arange(len(answers)), [len(each.boxes) for each in answers])
        boxes = [box for each in answers for box in each.boxes]
        self.written: FloatArray = np.array([box.numbers for box in boxes], dtype=np.float64).reshape(-1, 4)
        self.labels = [box.label for box in boxes]
        self._keys = [box.key for box in boxes]
        self.counts = dict.fromkeys(KINDS, 0)
        self.first: dict[str, Id] = {}
        self.counts["answers"] = len(answers)
        for number, each in enumerate(answers):
            self.count(each.status, [number])
            self.count("damaged", [number] * each.damaged)
            self.count("further_blocks", [number] * each.has_more)
        self.count("boxes", self.answer)

    def count(self, kind: str, answers: Sequence[int] | IntArray) -> None:
        """Count a kind once for each of these answers, in order, and keep the name of the first."""
        if len(answers) and not self.counts[kind] and kind not in ("read", "boxes"):
            self.first[kind] = self._names[int(answers[0])]
        self.counts[kind] += len(answers)

    def count_rows(self, kind: str, rows: BoolArray) -> None:
        """Count a kind for the boxes of a mask, [N]."""
        self.count(kind, self.answer[rows])

    def convention(self, said: str | None, sizes: FloatArray, inputs: FloatArray, *, place: str) -> Chosen:
        """Choose the convention; ``sizes`` and ``inputs``, [answers, 2], are as for :func:`of_originals`."""
        notations = [
            (each.notation.name, each.notation.coordinates)
            for each in self._answers
            if each.notation is not None
            for _ in each.boxes
        ]
        seen = np.where(np.isnan(inputs), sizes, inputs)[self.answer]
        is_known = not np.isnan(inputs[self.answer]).any()
        evidence = Evidence.of(self.written, seen, self._keys, input_is_known=is_known)
        chosen = chosen_coordinates(said, notations, evidence, place=place)
        if chosen.name == "pixels" and len(self.written) and np.isnan(inputs[self.answer]).any():
            return chosen._replace(reason=f"{chosen.reason}; taken to be those of the images themselves")
        return chosen

    def corners(self, name: str, sizes: FloatArray, inputs: FloatArray) -> FloatArray:
        """Return corners x1, y1, x2, y2, [N, 4]: pixels for ``pixels``, otherwise fractions of the image.

        Corners are sorted, and clipped to images of known size; changes are counted.
        """
        # Convert pixels of the model's input to those of the image; other conventions are fractions.
        if name == "pixels":
            boxes = of_originals(self.written, sizes[self.answer], inputs[self.answer])
            ends = np.tile(sizes[self.answer], 2)
        else:
            boxes, ends = in_fractions(self.written, name), np.ones_like(self.written)
        # Sort the corners; NaN, an unknown size, makes every comparison false.
        low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
        ordered = np.concatenate([low, high], axis=1)
        with np.errstate(invalid="ignore"):
            passing = (ordered < -HAIR) | (ordered > ends + HAIR)
        # Count each answer once per kind of oddity.
        for kind, odd in (
            ("swapped", boxes[:, :2] > boxes[:, 2:]),
            ("without_area", low == high),
            ("out_of_range", passing),
        ):
            self.count(kind, self.answer[odd.any(axis=1)])
        return np.asarray(np.clip(ordered, 0.0, np.where(np.isnan(ends), np.inf, ends)))

    def repeated(self, labels: Sequence[str | None], groups: IntArray) -> BoolArray:
        """Return which boxes repeat an earlier one of their group [N] exactly, and count them."""
        seen: set[Any] = set()
        again = np.zeros(len(labels), dtype=bool)
        run, last = 0, None
        for row, key in enumerate(
            zip(groups.tolist(), labels, map(tuple, self.written.tolist()), strict=True)
        ):
            again[row] = key in seen
            seen.add(key)
            run = run + 1 if key == last else 1
            last = key
            self.counts["longest_run"] = max(self.counts["longest_run"], run)
        self.count_rows("repeated", again)
        return again

    def summary(self, chosen: Chosen, unknown: Counter[str], changed: list[str]) -> Mapping[str, Any]:
        """Return the summary for the table of detections; ``changed`` are signature words of options."""
        return {
            "coordinates": chosen.name,
            "because": chosen.reason,
            "changed": changed,
            "counts": self.counts,
            "first": self.first,
            "unknown_labels": dict(unknown.most_common(MOST_LABELS)),
        }
