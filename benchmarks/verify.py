"""Compare the contenders' answers to the last bit.

Goal
----
A time without the same answer is no time. Every contender's twelve numbers, and its arrays where it shows
them, are compared with the reference's bit by bit, and the first difference is named.

Conventions
-----------
- The reference is pycocotools where it runs, else the first of :data:`REFERENCES` that did.
- Equal means equal float64 values; undefined is -1.0 everywhere. 0.0 and -0.0 are equal.
- With caps other than COCO's, AP is not compared where it is -1.0: pycocotools and its faces look for the cap
  100 in that one number and say -1.0 without it, others take the largest cap.
- Only the standard library.
"""

from __future__ import annotations

import math
from array import array
from pathlib import Path

from cases import Case
from contenders import KEYPOINT_NUMBERS, NUMBERS
from measure import Run

__all__ = ["REFERENCES", "differences"]

# Those that claim to be bit for bit like pycocotools come before the one that is not.
REFERENCES = ("pycocotools", "ultrafast-pycocotools", "hotcoco", "vernier", "faster-coco-eval", "boxscore")

AXES = {"precision": "TRKAM", "scores": "TRKAM", "recall": "TKAM"}


def differences(case: Case, reference: Run, other: Run, arrays: Path) -> list[str]:
    """Say how a contender differs from the reference.

    Parameters
    ----------
    case : Case
        Its ``expected`` numbers must be reached to their 4 decimals.
    reference, other : Run
    arrays : Path
        Folder with one folder of arrays a contender.

    Returns
    -------
    list of str
        One sentence for the numbers, one for each array that differs; empty when all is equal.
    """
    sentences = []
    names = KEYPOINT_NUMBERS if case.kind == "keypoints" else NUMBERS
    pairs = zip(names, reference.numbers, other.numbers, strict=True)
    unequal = [(name, want, got) for name, want, got in pairs if want != got]
    if 100 not in case.caps and case.kind == "bbox":
        unequal = [
            (name, want, got) for name, want, got in unequal if name != "AP" or -1.0 not in (want, got)
        ]
    if unequal:
        name, want, got = unequal[0]
        sentences.append(
            f"{len(unequal)} of 12 numbers differ; {name} is {got!r}, {reference.contender} {want!r}"
            f" ({_distance(want, got)})"
        )
    for name, value in case.expected.items():
        got = other.numbers[NUMBERS.index(name)]
        if round(got, 4) != value and math.floor(got * 1e4) / 1e4 != value:
            sentences.append(f"{name} is {got:.6f}, published as {value:.4f}")
    for name in ("precision", "recall", "scores"):
        shape = reference.arrays.get(name)
        if not shape or name not in other.arrays:
            continue
        if other.arrays[name] != shape:
            sentences.append(f"{name} has shape {other.arrays[name]}, {reference.contender} {shape}")
            continue
        sentence = _compare(arrays / reference.contender, arrays / other.contender, name, shape)
        if sentence:
            sentences.append(sentence)
    return sentences


def _compare(reference: Path, other: Path, name: str, shape: list[int]) -> str:
    want, got = _load(reference / f"{name}.f64"), _load(other / f"{name}.f64")
    if want.tobytes() == got.tobytes():
        return ""
    rows = [row for row, (a, b) in enumerate(zip(want, got, strict=True)) if a != b]
    if not rows:
        return ""
    worst = max(abs(want[row] - got[row]) for row in rows)
    position, rest = [], rows[0]
    for size in reversed(shape):
        rest, index = divmod(rest, size)
        position.append(index)
    index = ",".join(f"{axis}={i}" for axis, i in zip(AXES[name], reversed(position), strict=True))
    return (
        f"{name} differs in {len(rows):,} of {len(want):,} cells, by {worst:.2g} at most; "
        f"first at [{index}]: {got[rows[0]]!r}, {reference.name} {want[rows[0]]!r}"
    )


def _load(path: Path) -> array[float]:
    values = array("d")
    values.frombytes(path.read_bytes())
    return values


def _distance(want: float, got: float) -> str:
    return f"difference {got - want:.2g}, {abs(got - want) / math.ulp(want):.0f} units in the last place"
