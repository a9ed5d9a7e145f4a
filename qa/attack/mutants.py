"""Spoil the input of every reader and the value of every option, and judge what becomes of each.

    python qa/attack/mutants.py --count 100000 --seed 0
    python qa/attack/mutants.py --readers coco-masks options --seconds 600
    python qa/attack/mutants.py --repeat coco-masks:0:1234      # one mutant again, with what it said
    python qa/attack/mutants.py --cases qa/attack/cases      # the kept ones again

A mutant is made from the reader's name, the seed and its number, and so are its files. It is judged in a child
with limits of time and memory. What is accepted is given to an oracle: pycocotools, the devkit's rules, the slow
program of tests/oracles. A fault is saved in --save, one file for each kind of it, the simplest that was seen.
The exit status is 1 when there are faults.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import itertools
import json
import os
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent), str(HERE.parents[1] / "tests")]

from attack.engine import children  # noqa: E402
from attack.engine.judging import FAULTS, Verdict, judge  # noqa: E402
from attack.engine.mutant import Mutant  # noqa: E402
from attack.readers import READERS  # noqa: E402

__all__ = ["load_case", "main", "mutant", "schedule"]

CASES = HERE / "cases"
FOUND = Path("attack-out")


def mutant(reader: str, seed: int, number: int) -> Mutant:
    """Make a mutant again."""
    try:
        return READERS[reader].make(random.Random(f"{reader} {seed} {number}"))
    except RecursionError:  # nested so deep that not even the maker can write it
        return mutant(reader, seed, number + (1 << 40))


def schedule(number: int, seed: int, readers: Sequence[str]) -> str:
    """Return the reader of a mutant."""
    weights = list(itertools.accumulate(READERS[name].weight for name in readers))
    return random.Random(f"{seed} {number}").choices(readers, cum_weights=weights)[0]


# ---------------------------------------------------------------- cases


def _encoded(content: bytes) -> Any:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}
    return text


def save_case(path: Path, reader: str, made: Mutant, verdict: Verdict, repeat: str) -> None:
    """Write a mutant as a file of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    case = {
        "reader": reader,
        "repeat": f"python qa/attack/mutants.py --repeat {repeat}",
        "verdict": verdict.kind,
        "sign": verdict.sign,
        "detail": verdict.detail,
        "arguments": made.arguments,
        "compare": made.compare,
        "special": made.special,
        "files": {name: _encoded(content) for name, content in made.files.items()},
    }
    path.write_text(json.dumps(case, indent=1) + "\n", encoding="utf-8")


def load_case(path: Path) -> tuple[str, Mutant]:
    """Read a kept mutant."""
    case = json.loads(path.read_text(encoding="utf-8"))
    files = {
        name: content.encode("utf-8", "surrogatepass")
        if isinstance(content, str)
        else base64.b64decode(content["base64"])
        for name, content in case["files"].items()
    }
    special = tuple((name, kind) for name, kind in case.get("special", ()))
    return case["reader"], Mutant(files, tuple(case["arguments"]), compare=case["compare"], special=special)


# ---------------------------------------------------------------- running


def import_everything() -> None:
    """Import what a command imports when it is run, so that no child has to."""
    import matplotlib.pyplot  # noqa: F401
    import pandas  # noqa: F401
    import pycocotools.cocoeval  # noqa: F401

    from support.modules import every_module

    for name in every_module():
        importlib.import_module(name)
    end_pages_at_once()


def end_pages_at_once() -> None:
    """Let ``boxscore view`` end once its pages stand, as Ctrl-C ends it, and open no browser."""
    import webbrowser

    from boxscore.extensions.pages.server import Server

    Server.serve_forever = lambda server, poll_interval=0.5: None  # type: ignore[method-assign]
    webbrowser.open = lambda *arguments, **options: False  # type: ignore[assignment]


class Tally:
    """Verdicts counted, and the simplest mutant of each fault."""

    def __init__(self, seed: int, save: Path) -> None:
        self.seed, self.save = seed, save
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.signs: Counter[tuple[str, str, str]] = Counter()
        self.best: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.seconds: list[tuple[float, str]] = []

    def add(self, work: children.Work) -> None:
        kind, sign, _ = work.verdict
        self.kinds[work.reader, kind] += 1
        name = f"{work.reader}:{self.seed}:{work.number}"
        self.seconds = sorted([*self.seconds, (work.seconds, name)], reverse=True)[:5]
        if kind in ("accepted", "refused", "equal"):
            return
        key = (kind, sign, work.reader if kind in FAULTS else "")
        self.signs[key] += 1
        if kind not in FAULTS:
            return
        made = mutant(work.reader, self.seed, work.number)
        size = (made.steps, sum(map(len, made.files.values())))
        if size < self.best.get(key, (1 << 30, 0)):
            self.best[key] = size
            plain = re.sub(r"\W+", "-", f"{work.reader}-{kind}-{sign}").strip("-")[:90]
            save_case(self.save / f"{plain}.json", work.reader, made, work.verdict, name)

    def report(self, seconds: float) -> int:
        """Print what was found; return the number of faults."""
        total = sum(self.kinds.values())
        names = sorted({reader for reader, _ in self.kinds})
        columns = ("refused", "accepted", "equal", "documented", "unknown")
        print(f"{total} mutants in {seconds:.0f} s, seed {self.seed}")
        print(f"{'reader':<20}" + "".join(f"{name:>11}" for name in (*columns, "faults")))
        for name in names:
            counts = [self.kinds[name, kind] for kind in columns]
            faults = sum(self.kinds[name, kind] for kind in FAULTS)
            print(f"{name:<20}" + "".join(f"{count:>11}" for count in (*counts, faults)))
        for kinds, title in (
            (("documented",), "differences that are documented"),
            (("unknown",), "what no oracle could say"),
            (FAULTS, "FAULTS"),
        ):
            rows = [(count, *key) for key, count in self.signs.most_common() if key[0] in kinds]
            if rows:
                print(f"\n{title}")
            for count, kind, sign, reader in rows[: 30 if kinds == ("unknown",) else 400]:
                print(f"{count:>8}  {kind:<11} {reader:<18} {sign}")
        slowest = ", ".join(f"{name} {taken:.2f} s" for taken, name in self.seconds)
        print(f"\nslowest: {slowest}")
        return sum(count for (kind, _, _), count in self.signs.items() if kind in FAULTS)


def attack(
    count: int, seed: int, readers: Sequence[str], *, save: Path, seconds: float, lanes: int | None
) -> Tally:
    """Judge ``count`` mutants of these readers."""
    tally = Tally(seed, save)

    def one(number: int, folder: Path, say: Callable[[str], None]) -> tuple[str, Verdict, float]:
        name = schedule(number, seed, readers)
        made = mutant(name, seed, number)
        begin = time.monotonic()
        verdict = judge(READERS[name], made, folder, say)
        return name, verdict, time.monotonic() - begin

    begin = shown = time.monotonic()
    until = begin + seconds
    name_of = lambda number: schedule(number, seed, readers)  # noqa: E731
    for work in children.run(one, count, lanes=lanes, until=until, name=name_of):
        tally.add(work)
        if time.monotonic() - shown > (10 if sys.stderr.isatty() else 300):
            shown = time.monotonic()
            done, kinds = sum(tally.kinds.values()), len(tally.best)
            print(f"{done} of {count} mutants, {kinds} kinds of fault", file=sys.stderr, flush=True)
    return tally


def judged(cases: Sequence[tuple[str, Mutant]]) -> dict[int, Verdict]:
    """Judge mutants one after the other in a child."""

    def one(number: int, folder: Path, say: Callable[[str], None]) -> tuple[str, Verdict, float]:
        reader, made = cases[number]
        return reader, judge(READERS[reader], made, folder, say), 0.0

    works = children.run(one, len(cases), lanes=1, name=lambda number: cases[number][0])
    return {work.number: work.verdict for work in works}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, metavar="N", help="mutants")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), metavar="S", help="stop after this long"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--readers", nargs="+", default=list(READERS), choices=list(READERS), metavar="NAME")
    parser.add_argument("--lanes", type=int, metavar="N", help="children (default: one per processor)")
    parser.add_argument("--save", type=Path, default=FOUND, metavar="DIR")
    parser.add_argument("--repeat", metavar="READER:SEED:NUMBER")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="with --repeat: write the files there")
    parser.add_argument("--cases", type=Path, metavar="DIR", help="judge the kept mutants of a folder")
    options = parser.parse_args(arguments)
    os.environ.setdefault("MPLBACKEND", "Agg")
    import_everything()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and no child is left
    if options.repeat:
        reader, seed, number = options.repeat.split(":")
        made = mutant(reader, int(seed), int(number))
        if options.keep:
            for name, content in made.files.items():
                (options.keep / name).parent.mkdir(parents=True, exist_ok=True)
                (options.keep / name).write_bytes(content)
        print("boxscore", *map(repr, made.arguments))
        verdict = judged([(reader, made)])[0]
        print(verdict.kind, verdict.sign, verdict.detail, sep="\n")
        return int(verdict.kind in FAULTS)
    if options.cases:
        paths = sorted(options.cases.glob("*.json"))
        verdicts = judged([load_case(path) for path in paths])
        for number, path in enumerate(paths):
            print(f"{path.name}: {verdicts[number].kind} {verdicts[number].sign}")
        return int(any(verdict.kind in FAULTS for verdict in verdicts.values()))
    begin = time.monotonic()
    tally = attack(
        options.count,
        options.seed,
        options.readers,
        save=options.save,
        seconds=options.seconds,
        lanes=options.lanes,
    )
    return int(bool(tally.report(time.monotonic() - begin)))


if __name__ == "__main__":
    sys.exit(main())
