"""The values of every option of every command, from the specification of the command line itself."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path

from attack.engine import hostile, trees
from attack.engine.mutant import Mutant, Reader
from attack.readers import coco
from boxscore.cli import COMMANDS, load_command
from boxscore.cli.arguments import STRICT, Option

__all__ = ["READERS"]

GOOD = {
    "ground-truth": "gt.json",
    "result": "result.json",
    "config": "run.toml",
    "by": "size",
    "to": "out",
    "min": "AP=0.3",
    "number": "0.3",
    "history": "scores.jsonl",
}
MORE = {
    "nms": ("--iou-threshold", "0.5"),
    "check": ("--gt", "gt.json", "--dt", "dt.json", "--min", "AP=0.1"),
    "compare": ("--resamples", "3"),
    "bootstrap": (),
    "report": ("--resamples", "0"),
    "explain": ("--number", "0.3"),
    "sweep": ("--iou-threshold", ".5"),
    "draw": ("--worst", "1"),
    "view": ("--resamples", "0"),
}
SLOW = {"draw": 0.1, "compare": 0.4, "report": 0.5, "sweep": 0.5, "explain": 0.5, "view": 0.5}
PLOTS = ("plot", "plots")
"""Options that start matplotlib, which takes a second in every new child."""

NUMBERS = [
    *(
        "0",
        "-1",
        "1",
        "2",
        "0.5",
        "1.5",
        "-0.5",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-0",
        "1e-400",
        "1_000",
        "٣",
        "0x1",
    ),
    *(
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "1" * 400,
        "1" * 5000,
    ),
    *(
        "1000000",
        "100000000",
        "",
        " 1 ",
        "1e3",
        "+1",
        "--1",
        "1,2",
        ".1:.9:.1",
        "0:1:1e-9",
        "nan:1:1",
        "1:0:1",
    ),
]
PATHS = [
    *(
        "",
        ".",
        "..",
        "missing/x.json",
        "a" * 300,
        "a" * 250 + ".json",
        "gt.json",
        "gt.json/x",
        "sub",
        "sub/new",
        "x.npz",
    ),
    *(
        "\0",
        "a\0b",
        "\udcff\udcfe",
        "\x1b[31m.json",
        "out.json",
        "out.png",
        "out.pdf",
        "new",
        "-",
        "é.json",
        "fifo",
    ),
    *(
        "link",
        "x.toml",
        "a\nb.json",
        " ",
        "~",
        "file:///x",
        "run.toml",
        "VOC2007",
        "list.txt",
        "%s",
        "CON",
        "sub/",
    ),
]
WORDS = [
    *hostile.TEXTS,
    "AP",
    "AP50",
    "AP=0.5",
    "AP=nan",
    "AP==1",
    "=",
    "cat",
    "coco",
    "size",
    "all",
    "hard",
    "wbf",
]


@functools.cache
def _options(command: str) -> tuple[Option, ...]:
    return tuple(load_command(command).options)


def _good(option: Option) -> list[str]:
    """A good value for an option that must be given."""
    value = GOOD.get(option.name, "dt.json" if option.name == "detections" else "out.json")
    values = [value, value] if option.many and option.name == "detections" else [value]
    return values if option.positional else [f"--{option.name}", *values]


def _value(option: Option, rng: random.Random) -> str:
    known = option.known()
    if known and rng.random() < 0.5:
        return rng.choice(known)
    kinds: Sequence[str] = WORDS
    if option.kind in (int, float) or rng.random() < 0.2:
        kinds = NUMBERS
    elif option.kind is Path or rng.random() < 0.3:
        kinds = PATHS
    value = rng.choice(kinds)
    return "1000" if (option.name, value) == ("resamples", "1000000") else value  # which is allowed, and long


def _make(rng: random.Random) -> Mutant:
    names = list(COMMANDS)
    command = rng.choices(names, [SLOW.get(name, 1.0) for name in names])[0]
    options = [option for option in _options(command) if option.name not in PLOTS or rng.random() < 0.05]
    chosen = rng.sample(options, min(len(options), rng.choice([1, 1, 1, 2, 3])))
    arguments: list[str] = []
    for option in options:
        if option in chosen:
            continue
        if option.required:
            arguments += _good(option)
    arguments += MORE.get(command, ())
    for option in chosen:
        values = [_value(option, rng) for _ in range(rng.choice([1, 1, 2, 3]) if option.many else 1)]
        if option.kind is bool:
            values = []
        arguments += values if option.positional else [f"--{option.name}", *values]
    if rng.random() < 0.1:
        arguments.append("--strict" if STRICT not in options else "")
    if rng.random() < 0.05:
        rng.shuffle(arguments)
    truth, results = coco.seeds("coco", rng)
    files = {
        "gt.json": trees.as_json(truth),
        "dt.json": trees.as_json(results),
        "list.txt": b"1\n2\n",
        "result.json": b'{"signature": "boxscore|coco|v:0", "metrics": {"AP": 0.5, "AP50": null}}',
        "scores.jsonl": b'{"schema": 1, "time": "2026-01-02T03:04:05Z", "name": null, "passed": true, '
        b'"signature": "boxscore|coco|v:0", "metrics": {"AP": 0.5}}\n',
        "run.toml": b'ground_truth.path = "gt.json"\ndetections.path = "dt.json"\n',
        "sub/a.txt": b"",
    }
    return Mutant(files, (command, *arguments), len(chosen), compare=False)


READERS = {"options": Reader(_make, None, 4.0)}
