"""Evaluations to report on: hostile names, nothing at all, one class, very many."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import boxscore
from boxscore.data.vocabulary import Images

PROJECT = Path(__file__).parents[2]

HOSTILE = [
    "<script>document.title = 'broken'</script>",
    "</script><img src=x onerror=\"document.title='broken'\">",
    "<!--<script>",
    "\"quoted\" 'names' & <b>bold</b>",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "@SUM(A1)",
    "-2",
    "\ttab\r\nline",
    "\u202egnp.exe \u2066\u200f",
    "x" * 300,
    "\N{GRINNING FACE}\N{ZERO WIDTH JOINER} katze \N{DOG FACE}",
    "\u2028\u2029 separators",
    "{{ 7 * 7 }} {% raw %} ${1}",
    "$\\frac{1}{0}$ _^",
    "\x1b[31mred\x07\x00",
    "javascript:document.title='broken'",
    "a|b|c `code` [x](javascript:1)",
]


def evaluation(
    *,
    images: int = 30,
    classes: int | list[str] = 3,
    boxes: int = 4,
    seed: int = 0,
    file_names: list[str] | None = None,
    sizes: bool = True,
    noise: float = 6.0,
    protocol: str = "coco",
) -> boxscore.Evaluation:
    """Boxes at random, detections beside them: some well placed, some of a wrong class, some of nothing."""
    random = np.random.default_rng(seed)
    names = [f"class {k}" for k in range(classes)] if isinstance(classes, int) else classes
    K, N = len(names), images * boxes
    image = np.repeat(np.arange(images), boxes)
    corner, side = random.uniform(0, 400, (N, 2)), random.uniform(12, 160, (N, 2))
    category = random.integers(0, max(K, 1), N)
    vocabulary = Images.build(
        np.arange(images),
        file_names=file_names,
        sizes=np.full((images, 2), (640.0, 560.0)) if sizes else None,
    )
    labels = dict(enumerate(names))
    truth = boxscore.GroundTruth.from_arrays(
        image,
        category,
        np.hstack([corner, side]),
        box_format="xywh",
        images=vocabulary,
        categories=labels,
        crowd=random.random(N) < 0.03,
        ids=np.arange(1, N + 1),
    )
    taken_for = np.where(random.random(N) < 0.15, random.integers(0, max(K, 1), N), category)
    shaken = np.hstack([corner + random.normal(0, noise, (N, 2)), side * random.uniform(0.8, 1.2, (N, 2))])
    shaken[random.random(N) < 0.1, :2] += 200
    found = boxscore.Detections.from_arrays(
        image,
        taken_for,
        shaken,
        random.uniform(0, 1, N).round(2),
        box_format="xywh",
        images=vocabulary,
        categories=labels,
    )
    return boxscore.evaluate(truth, found, protocol=protocol)


def hostile_evaluation() -> boxscore.Evaluation:
    files = [f"{name}.jpg" for name in HOSTILE] + [f"{row}.jpg" for row in range(30 - len(HOSTILE))]
    return evaluation(classes=HOSTILE, file_names=files, boxes=8)


def empty_evaluation() -> boxscore.Evaluation:
    truth = boxscore.GroundTruth.from_arrays([], [], [])
    return boxscore.evaluate(truth, boxscore.Detections.from_arrays([], [], [], []))


def shapes() -> boxscore.Evaluation:
    """The bundled sample."""
    folder = PROJECT / "datasets" / "shapes_coco"
    truth = boxscore.load_ground_truth(folder / "instances.json")
    return boxscore.evaluate(truth, boxscore.load_detections(folder / "detections.json", truth))
