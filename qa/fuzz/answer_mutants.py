"""Mutants of answers of language models: spoilt, cut, repeated and mixed; read alone, and nothing twice.

An answer may be read or not, but never with a traceback, never slowly, and a box is never found more often than
its four numbers stand in the text, one behind the other.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np

from boxscore.errors import InputError
from boxscore.extensions.scoreless._answer_text import STATUSES, read_answer
from boxscore.extensions.scoreless.parsed_answers import parse_answer

SLOW = 1.0
"""Seconds for an answer of a few thousand letters."""

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_KEYS = re.compile(r"bbox_2d|box_2d|[xy][12]\b|DeepSeek-VL2|_2d")
_PIECES = (
    *(
        "[",
        "]",
        "{",
        "}",
        '"',
        "'",
        ",",
        ":",
        "\\",
        "\n",
        "```",
        "```json\n",
        "<think>",
        "</think>",
        "<answer>",
    ),
    *("None", "NaN", "Infinity", "null", "-", "1e999", "9" * 400, "<loc_", "<loc0001>", "<|box_start|>"),
    *(
        "<|box_end|>",
        "<|det|>",
        "<ref>",
        "<point x=",
        "[[",
        "]]",
        "[[012,034,056,078]]",
        "<patch_index_0001>",
    ),
    *('{"bbox_2d": ', '"label": "cat"', "[1, 2, 3, 4]", "(1,2),(3,4)", "\0", "\ud800", "é", "</s>", "<7>"),
)

Box = tuple[str, tuple[int, int, int, int]]


def _objects(boxes: list[Box], key: str) -> list[dict[str, object]]:
    return [{key: list(numbers), "label": label} for label, numbers in boxes]


def _written(style: int, boxes: list[Box]) -> str:
    """Write boxes in one of the styles."""
    lists = ", ".join(str(list(numbers)) for _, numbers in boxes)
    if style < 4:
        key = ("bbox_2d", "box_2d", "bbox", "box")[style]
        return json.dumps(_objects(boxes, key))
    if style == 4:
        return repr(_objects(boxes, "bbox_2d"))
    if style == 5:
        return (
            f"Here they are:\n```json\n{json.dumps(_objects(boxes, 'bbox_2d'), indent=1)}\n```\nThat is all."
        )
    if style == 6:
        return "\n".join(map(json.dumps, _objects(boxes, "bbox_2d")))
    if style == 7:
        return json.dumps({"objects": _objects(boxes, "box_2d"), "note": "done"})
    if style == 8:
        sides = ("x_min", "y_min", "x_max", "y_max")
        return json.dumps([{"label": label, **dict(zip(sides, four, strict=True))} for label, four in boxes])
    if style == 9:
        return f"[{lists}]"
    if style == 10:
        return "".join(f"{label}{''.join(f'<loc_{n}>' for n in four)}" for label, four in boxes)
    if style == 11:
        return " ; ".join(f"{''.join(f'<loc{n:04d}>' for n in four)} {label}" for label, four in boxes)
    if style == 12:
        return "".join(
            f"<|object_ref_start|>{label}<|object_ref_end|><|box_start|>({a},{b}),({c},{d})<|box_end|>"
            for label, (a, b, c, d) in boxes
        )
    if style == 13:
        tokens = ",".join("".join(f"<{n}>" for n in four) for _, four in boxes)
        return f"<|object_ref_start|>cat<|object_ref_end|><|box_start|>{tokens}<|box_end|>"
    if style == 14:
        return f"<|ref|>cat<|/ref|><|det|>[{lists}]<|/det|>"
    if style == 15:
        return f"<ref>cat</ref><box>[{lists}]</box>"
    if style == 16:
        return f"cat [[{';'.join(','.join(f'{n:03d}' for n in four) for _, four in boxes)}]]"
    return json.dumps([{"label": "cat", "bbox": [list(four) for _, four in boxes]}])


STYLES = 18


def prepare(folder: Path) -> list[str]:
    """Return answers in every style; the numbers of a box are its own."""
    numbers = np.random.default_rng(7).permutation(np.arange(100, 1000))
    answers = []
    for style in range(STYLES):
        rows = numbers[: 4 * (2 + style % 4)].reshape(-1, 4)
        numbers = np.roll(numbers, -13)
        boxes: list[Box] = [
            (("cat", "a red dog")[row % 2], tuple(map(int, four)))  # type: ignore[misc]
            for row, four in enumerate(rows)
        ]
        answers.append(_written(style, boxes))
    return answers


def spoilt(rng: np.random.Generator, answers: list[str]) -> str:
    """Change an answer in one to four places."""
    text = answers[int(rng.integers(len(answers)))]
    for _ in range(int(rng.integers(1, 5))):
        start = int(rng.integers(len(text) + 1))
        end = start + int(rng.integers(0, 30))
        other = answers[int(rng.integers(len(answers)))]
        piece = _PIECES[int(rng.integers(len(_PIECES)))]
        text = (
            text[:start],
            text[:start] + text[end:],
            text[:start] + piece + text[start:],
            text[:start] + piece + text[end:],
            text[:start] + text[start:end] * int(rng.integers(2, 40)) + text[end:],
            text[:start] + other + text[start:],
            text + "\n" + other,
            text[start:],
        )[int(rng.integers(8))]
    return text


def most_often(text: str) -> Counter[tuple[float, ...]]:
    """Count how often four numbers stand one behind the other."""
    numbers = [float(word) for word in _NUMBER.findall(_KEYS.sub(" ", text))]
    return Counter(zip(numbers, numbers[1:], numbers[2:], numbers[3:], strict=False))


def check(text: str) -> str:
    """Read an answer and return its status; a fault is an AssertionError."""
    begin = time.perf_counter()
    read = read_answer(text)
    seconds = time.perf_counter() - begin
    assert seconds < SLOW, f"{seconds:.1f} s for {text!r}"
    assert read.status in STATUSES
    assert read.status not in ("empty", "unreadable") or not read.boxes
    there = most_often(text)
    others = "x_min" in text or (read.notation is not None and read.notation.name in ("kosmos-2", "molmo"))
    for numbers, count in Counter(box.numbers for box in read.boxes).items():
        if not others:  # cells, points, and sides whose names may come twice: the last counts
            assert count <= there[numbers], f"{numbers} {count} times, there {there[numbers]} times: {text!r}"
    loose = read_answer(text, loose=True)
    assert loose == read or (read.status, loose.status) == ("unreadable", "loose")
    return read.status


def one(rng: np.random.Generator, answers: list[str], folder: Path) -> str:
    """Read one mutant: in itself, and as a user would."""
    text = spoilt(rng, answers)
    status = check(text)
    try:
        answer = parse_answer(text, size=(640, 480))
    except InputError as error:
        if "--coordinates" not in str(error) and "input_width" not in str(error):
            raise
    else:
        assert answer.boxes is not None
        assert np.isfinite(answer.boxes).all()
        assert ((answer.boxes >= 0) & (answer.boxes <= (640, 480, 640, 480))).all()
        assert answer.counts["boxes"] == len(answer) == len(answer.boxes)
    return status
