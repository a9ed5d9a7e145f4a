"""Commands that read ground truth, or both sides: for the readers whose files are of any format."""

from __future__ import annotations

import random

__all__ = ["commands"]

WRITTEN = (
    "out.json",
    "out.csv",
    "out.npz",
    "out.parquet",
    "labels --to yolo",
    "VOC --to voc",
    "dn --to darknet",
)


def commands(rng: random.Random, truth: tuple[str, ...], detections: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a command with the arguments that say what the ground truth and the detections are.

    Mostly one that scores; without detections one that needs none.
    """
    both = (*truth, *detections)
    if detections and rng.random() < 0.55:
        return ("evaluate", *both, "--workers", "1", "--output", "json")
    lossy = rng.choice([(), ("--lossy",)])
    convert = ("convert", *(truth if rng.random() < 0.7 else both), "--output", *rng.choice(WRITTEN).split())
    if not detections or rng.random() < 0.5:
        return (*convert, *lossy)
    return rng.choice(
        [
            ("validate", *both),
            ("validate", *both, "--output", "json"),
            ("evaluate", *both, "--per-class", "--output", rng.choice(["text", "csv", "markdown", "latex"])),
            ("evaluate", *both, "--protocol", rng.choice(["voc2007", "voc2012", "coco-segm"])),
            ("slices", *both, "--by", rng.choice(["size", "aspect_ratio"]), "--output", "csv"),
            ("suspects", *both, "--output", "csv"),
        ]
    )
