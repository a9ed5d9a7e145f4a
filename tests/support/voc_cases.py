"""Made-up data sets in the kit's form: coarse grids, so that overlaps tie and hit the threshold exactly."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import boxscore
from oracles import kit

RULES = {"voc2007": "kit", "voc2007-numpy": "port", "voc2012": "area"}


@dataclasses.dataclass(frozen=True)
class Case:
    """Objects and detections, in the order of their files, and the rules."""

    images: list[str]
    objects: list[kit.Object]
    found: list[kit.Found]
    protocol: str
    threshold: float
    closed: bool

    @property
    def rules(self) -> dict[str, Any]:
        matching = {"iou_thresholds": [self.threshold], "threshold_closed": self.closed}
        return {"extends": self.protocol, "name": "case", "matching": matching}

    @property
    def labels(self) -> list[str]:
        return sorted({item.label for item in self.objects})

    def expected(self) -> list[float]:
        return [
            kit.average_precision(
                self.objects,
                self.found,
                label,
                rule=RULES[self.protocol],
                threshold=self.threshold,
                closed=self.closed,
            )
            for label in self.labels
        ]


@st.composite
def voc_cases(draw: st.DrawFn, *, inside_out: bool = False) -> Case:
    """Draw a case; coordinates on a coarse grid, so that overlaps tie and hit the threshold exactly.

    With ``inside_out`` some detections have xmax < xmin or ymax < ymin, which files may hold and arrays not.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    images = [
        f"{number:06d}" for number in rng.choice(50, draw(st.integers(1, 5), label="images"), replace=False)
    ]
    labels = ["cat", "dog", "cow"][: draw(st.integers(1, 3), label="classes")]
    levels = draw(st.sampled_from([1, 3, 1000]), label="score levels")
    difficult = draw(st.sampled_from([0.0, 0.3, 0.9]), label="share of difficult objects")
    step = draw(st.sampled_from([1.0, 2.0, 0.7]), label="grid step")
    objects = [
        kit.Object(
            str(rng.choice(images)), str(rng.choice(labels)), _box(rng, step), bool(rng.random() < difficult)
        )
        for _ in range(draw(st.integers(1, 20), label="objects"))
    ]
    near = draw(st.sampled_from([0.0, 0.5, 0.9]), label="share of detections that copy an object")
    shares = [0.0, 0.2, 0.9] if inside_out else [0.0]
    inverted = draw(st.sampled_from(shares), label="share of detections turned inside out")
    found = []
    for _ in range(draw(st.integers(0, 50), label="found")):
        image, label, box = str(rng.choice(images)), str(rng.choice(labels)), _box(rng, step)
        if rng.random() < near:
            copied = objects[int(rng.integers(len(objects)))]
            image, label = copied.image, copied.label
            x1, y1, x2, y2 = copied.box
            shift = step * float(rng.choice([0, 0, 1]))
            box = (x1, y1, x2 + shift, y2) if rng.random() < 0.5 else (x1, y1, x2, y2 + shift)
        if inverted and rng.random() < inverted:
            x1, y1, x2, y2 = box
            less = float(rng.choice([0.3, 0.7, 1.0, 4.6]))  # by less than a pixel: +1 leaves some of it
            box = [(x1, y1, x1 - less, y2), (x1, y2 + less, x2, y2), (x1, y1, x1 - less, y1 - less)][
                int(rng.integers(3))
            ]
        found.append(kit.Found(image, label, float(rng.integers(levels)) / levels, box))
    found.sort(key=lambda item: item.label)  # one results file a class, in the order of their names
    return Case(
        images,
        objects,
        found,
        draw(st.sampled_from(sorted(RULES)), label="protocol"),
        draw(st.sampled_from([0.5, 0.5, 1 / 3, 0.25, 1.0]), label="threshold"),
        draw(st.booleans(), label="closed"),
    )


def _box(rng: np.random.Generator, step: float) -> kit.Box:
    x1, y1 = rng.integers(1, 6, 2).tolist()
    w, h = rng.integers(0, 5, 2).tolist()
    return (step * x1, step * y1, step * (x1 + w), step * (y1 + h))


def write(case: Case, folder: Path) -> tuple[Path, Path]:
    """Write a case as the kit's files."""
    annotations, sets, results = folder / "Annotations", folder / "ImageSets" / "Main", folder / "results"
    for path in (annotations, sets, results):
        path.mkdir(parents=True, exist_ok=True)
    for old in (*annotations.iterdir(), *results.iterdir()):
        old.unlink()
    (sets / "test.txt").write_text("".join(f"{image}\n" for image in case.images))
    for image in case.images:
        rows = "".join(
            f"<object><name>{item.label}</name><difficult>{int(item.difficult)}</difficult><bndbox>"
            + "".join(f"<{tag}>{value!r}</{tag}>" for tag, value in zip(TAGS, item.box, strict=True))
            + "</bndbox></object>"
            for item in case.objects
            if item.image == image
        )
        (annotations / f"{image}.xml").write_text(f"<annotation>{rows}</annotation>")
    for label in sorted({item.label for item in case.found}):
        lines = [
            " ".join([item.image, repr(item.score), *map(repr, item.box)])
            for item in case.found
            if item.label == label
        ]
        (results / f"comp4_det_test_{label}.txt").write_text("\n".join(lines) + "\n")
    return folder, results


TAGS = ("xmin", "ymin", "xmax", "ymax")


def tables(case: Case) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth = boxscore.GroundTruth.from_arrays(
        [item.image for item in case.objects],
        [item.label for item in case.objects],
        [item.box for item in case.objects],
        difficult=[item.difficult for item in case.objects],
        images=case.images,
    )
    found = boxscore.Detections.from_arrays(
        [item.image for item in case.found],
        [item.label for item in case.found],
        [item.box for item in case.found],
        [item.score for item in case.found],
    )
    return truth, found
