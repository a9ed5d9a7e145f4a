"""Where results go: devices, named pipes, links, folders, odd names; and the draws of resampling."""

from __future__ import annotations

import random

from attack.engine import hostile, trees
from attack.engine.mutant import Mutant, Reader
from attack.readers import coco, options

__all__ = ["READERS"]

SPECIAL = (
    ("fifo", "fifo"),
    ("link", "link:old.json"),
    ("dangling", "link:new.json"),
    ("loop", "link:loop"),
    ("folder-link", "link:folder"),
    ("folder", "folder"),
    ("readonly.json", "readonly"),
)
TARGETS = [
    *(
        "/dev/full",
        "/dev/null",
        "/proc/none/x",
        "/dev/fd/99",
        "old.json",
        "gt.json",
        "",
        ".",
        "missing/x.json",
    ),
    *(name for name, _ in SPECIAL),
    *("fifo/x", "old.json/x", "folder/x.json", "folder/", "readonly.json/", "link/", "folder-link/x"),
    *(
        "a" * 255,
        "a" * 256,
        "a" * 5000,
        "a/" * 3000,
        "\udcff\udcfe.json",
        "\udcff",
        "a\0b",
        "x\ny",
        "\x1b[31m",
    ),
    *(
        "x.NPZ",
        "x.npz",
        "x.csv",
        "x.txt.gz",
        "é\u0301.json",
        "\u202efdp.json",
        "-",
        "--",
        "~/x",
        "$HOME",
        "*",
        "nul",
    ),
]
INPUT = coco.INPUT
WRITING = [
    ("nms", "--dt", "dt.json", "--iou-threshold", "0.5", "--output"),
    ("fuse", "dt.json", "dt.json", "--output"),
    ("convert", "--gt", "gt.json", "--output"),
    ("evaluate", *INPUT, "--resamples", "0", "--report"),
    ("report", *INPUT, "--resamples", "0", "--tables", "csv", "--report"),
    ("report", *INPUT, "--resamples", "0", "--tables", "json", "--report"),
    ("compare", "--gt", "gt.json", "--dt", "dt.json", "dt.json", "--resamples", "3", "--report"),
]
DRAWN = [
    ("draw", *INPUT, "--worst", "1", "--output"),
    ("sweep", *INPUT, "--iou-threshold", ".5", "--plot"),
]
"""Start matplotlib, which takes a second in every new child."""
RESAMPLING = [
    ("bootstrap", *INPUT),
    ("compare", "--gt", "gt.json", "--dt", "dt.json", "dt.json"),
    ("report", *INPUT, "--report", "out"),
]
NUMBERS = [*options.NUMBERS, "-9223372036854775808", "4294967296", "3.0", "1000", "\uff11"]

RESAMPLES = [number for number in NUMBERS if number != "1000000"]
"""A million is allowed, and takes its time."""


def _make(rng: random.Random) -> Mutant:
    truth, results = coco.seeds("coco", rng)
    if rng.random() < 0.4:
        for record in truth["categories"]:
            record["name"] = rng.choice(["=1+1", " =1+1", "</script><img src=x>", hostile.text(rng)])
    files = {"gt.json": trees.as_json(truth), "dt.json": trees.as_json(results), "old.json": b"old"}
    if rng.random() < 0.25:
        arguments = rng.choice(RESAMPLING)
        for option in rng.choice([("--seed",), ("--resamples",), ("--seed", "--resamples")]):
            if (arguments[0], option) != ("report", "--seed"):
                arguments += (option, rng.choice(NUMBERS if option == "--seed" else RESAMPLES))
    else:
        target = rng.choice(TARGETS)
        arguments = (*rng.choice(DRAWN if rng.random() < 0.02 else WRITING), target)
    return Mutant(files, arguments, compare=False, special=SPECIAL)


READERS = {"outputs": Reader(_make, None, 0.2)}
