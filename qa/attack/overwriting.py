"""Give every command each of its inputs as each of its outputs: it must be refused, and nothing touched.

    python qa/attack/overwriting.py

Commands, inputs and outputs are those of the options, so that a new one is tried as well. The files hold nothing
that could be read: a refusal of their content would mean that something was read first. Each pair is tried under
the same name, another spelling, a symbolic link and a hard link; then every two outputs on each other.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from boxscore._utils.given_paths import path_of

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "src"))

from boxscore.cli import COMMANDS, load_command  # noqa: E402
from boxscore.cli import main as boxscore  # noqa: E402
from boxscore.cli.arguments import Option  # noqa: E402

__all__ = ["Pair", "fault_of", "is_input", "pairs"]

INPUT, CONTENT = "input.json", b"nothing that could be read\n"
NAMES = {
    "same": INPUT,
    "spelling": f"folder/../{INPUT}",
    "symbolic link": "soft.json",
    "hard link": "hard.json",
}


class Pair(NamedTuple):
    """A command line whose first output is its input, or its second output."""

    command: str
    output: Option
    other: Option
    options: tuple[Option, ...]
    """All of the command."""

    def arguments(self, name: str) -> list[str]:
        """Return the command line, where the output has another name of the input."""
        given = {self.output.name: name, self.other.name: INPUT}
        words, at_front = [], []
        for option in self.options:
            if option.name in given or option.required:
                # An argument with choices takes the first of them.
                value = given.get(option.name, next(iter(option.known()), "other.json"))
                if option.positional:
                    at_front.append(value)
                else:
                    words += [f"--{option.name}", value]
        return [self.command, *at_front, *words]


def is_output(option: Option) -> bool:
    return "." in option.writes


def is_input(option: Option) -> bool:
    """Whether the value is a path, or may be one."""
    return not option.writes and (
        option.kind in (Path, path_of) or (option.kind is str and not option.choices)
    )


def pairs(commands: Sequence[str] = tuple(COMMANDS)) -> Iterator[Pair]:
    """Return every output of these commands with every input and every other output."""
    for command in commands:
        options = tuple(load_command(command).options)
        for output, other in itertools.permutations(options, 2):
            if is_output(output) and (is_input(other) or is_output(other)):
                yield Pair(command, output, other, options)


def make_files(folder: Path) -> None:
    (folder / "folder").mkdir()
    for name in (INPUT, "other.json"):
        (folder / name).write_bytes(CONTENT)
    (folder / "soft.json").symlink_to(INPUT)
    (folder / "hard.json").hardlink_to(folder / INPUT)


def fault_of(pair: Pair, kind: str, folder: Path) -> str:
    """Run a pair in a folder that is made for it; return what was wrong, empty for nothing."""
    make_files(folder)
    before = sorted(folder.iterdir())
    output, errors, here = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = boxscore(pair.arguments(NAMES[kind]))
    finally:
        os.chdir(here)
    text = errors.getvalue()
    if status != 2 or output.getvalue():
        return f"exit status {status}: {text or output.getvalue()}"
    if "must differ from" not in text:
        return f"something else is said: {text}"
    if sorted(folder.iterdir()) != before or {path.read_bytes() for path in before if path.is_file()} != {
        CONTENT
    }:
        return "a file has changed"
    return ""


def main() -> int:
    begun, tried, faults = time.monotonic(), 0, 0
    for pair, kind in itertools.product(pairs(), NAMES):
        with tempfile.TemporaryDirectory() as name:
            fault = fault_of(pair, kind, Path(name))
        tried += 1
        if fault:
            faults += 1
            print(f"{kind}: boxscore {' '.join(pair.arguments(NAMES[kind]))}: {fault}", flush=True)
    print(f"{tried} outputs on inputs in {time.monotonic() - begun:.0f} s")
    print(f"{faults} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
