"""One mutant: its files are written, its command is run, and what came of it is judged.

A fault is an exception that is no error of boxscore's, a warning of NumPy's, more or less than one line on
stderr when something is refused, a result on stdout all the same, a control character on the terminal, a file
that is broken or left over, more memory than so small a file may need, and a result that no oracle confirms.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import re
import resource
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from attack.engine.mutant import Judged, Mutant, Reader
from boxscore.cli import main

__all__ = ["FAULTS", "MEMORY", "Verdict", "judge", "place_of"]

MEMORY, FOR_EACH_BYTE = 600_000, 15
"""kB by which one mutant may raise the process's peak, as its files have a few kB; and bytes for each of theirs."""

FAULTS = ("traceback", "warning", "message", "stdout", "status", "terminal", "leftover", "broken", "memory")
FAULTS += ("formula", "hang", "crash", "differs", "laxer")

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE = re.compile(r"boxscore(?: [\w-]+)?: ")


class Verdict(NamedTuple):
    """What became of a mutant."""

    kind: str
    """``accepted``, ``refused``, one of ``FAULTS``, or what an oracle said."""
    sign: str = ""
    """Equal for the mutants that show one fault."""
    detail: str = ""


def place_of(error: BaseException) -> str:
    """Name the innermost place of boxscore's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame for frame in frames if "boxscore" in frame.filename and "site-packages" not in frame.filename
    ]
    frame = own[-1] if own else frames[-1]
    return f"{Path(frame.filename).name}:{frame.name}"


_BESIDE = ("boxscore: error in the input: ", "boxscore: warning: ", "boxscore: note: ")


def _write(folder: Path, mutant: Mutant) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    for name, content in mutant.files.items():
        path = folder / name
        with contextlib.suppress(OSError, ValueError):  # a name that no file can have
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for name, kind in mutant.special:
        _make_special(folder, name, kind)


def _make_special(folder: Path, name: str, kind: str) -> None:
    path = folder / name
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "readonly":
        path.write_bytes(b"old")
        path.chmod(0o444)
    else:
        path.symlink_to(kind.removeprefix("link:"))


@contextlib.contextmanager
def _reader_of_pipes(folder: Path, mutant: Mutant) -> Iterator[None]:
    """Let nobody wait who writes into a named pipe."""
    pipes = [os.open(folder / name, os.O_RDWR) for name, kind in mutant.special if kind == "fifo"]
    try:
        yield
    finally:
        for pipe in pipes:
            os.close(pipe)


def _changed(folder: Path, mutant: Mutant, status: int) -> str:
    """Name what is no longer what it was: of a special file its kind, and after a refusal the content as well."""
    for name, kind in mutant.special:
        path = folder / name
        same = {
            "fifo": path.is_fifo,
            "folder": path.is_dir,
            "readonly": lambda path=path: (
                path.read_bytes() == b"old" and path.stat().st_mode & 0o777 == 0o444
            ),
        }.get(kind, lambda path=path, kind=kind: path.is_symlink() and f"link:{path.readlink()}" == kind)
        if not same():
            return name
    contents = mutant.files.items() if status == 2 else ()
    return next((name for name, content in contents if (folder / name).read_bytes() != content), "")


def _listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def judge(
    reader: Reader, mutant: Mutant, folder: Path, say: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Judge a mutant; ``say`` is told when the oracle begins."""
    _write(folder, mutant)
    before, peak = _listing(folder), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stdout, stderr, home = io.StringIO(), io.StringIO(), Path.cwd()
    try:
        os.chdir(folder)
        with (
            _reader_of_pipes(folder, mutant),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
            status = main(list(mutant.arguments))
    except MemoryError as error:
        return Verdict("memory", f"MemoryError {place_of(error)}", _tail(error))
    except Warning as error:
        text = re.sub(r"\d+", "N", str(error))[:60]
        return Verdict("warning", f"{type(error).__name__} {text} {place_of(error)}", _tail(error))
    except Exception as error:
        return Verdict("traceback", f"{type(error).__name__} {place_of(error)}", _tail(error))
    finally:
        os.chdir(home)
    output, errors = stdout.getvalue(), stderr.getvalue()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    if grown > MEMORY + FOR_EACH_BYTE * sum(map(len, mutant.files.values())) / 1000:
        return Verdict("memory", f"peak {mutant.arguments[0]}", f"{grown} kB more")
    fault = _checked(mutant, status, output, errors) or _checked_files(folder, before, mutant, status)
    if fault is None and (name := _changed(folder, mutant, status)):
        fault = Verdict("broken", f"changed by {mutant.arguments[0]}", name)
    if fault is not None:
        return fault
    if status == 2:
        return Verdict("refused")
    if reader.oracle is None or not mutant.compare or status != 0:
        return Verdict("accepted")
    say("oracle")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            judged = reader.oracle(folder, mutant, output)
    except MemoryError:
        judged = Judged("unknown", "the oracle has no memory")
    except Exception as error:
        judged = Judged("unknown", f"the oracle: {type(error).__name__} {place_of(error)}")
    sign = re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", judged.detail)[:90]
    warned = " (warned)" if re.search("boxscore: (warning|error in the input): ", errors) else ""
    return Verdict(judged.kind, sign + warned * (judged.kind in ("differs", "laxer")), judged.detail + warned)


def _tail(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-4:])[-1500:]


def _checked(mutant: Mutant, status: int, output: str, errors: str) -> Verdict | None:
    """Check what the program said."""
    command = mutant.arguments[0] if mutant.arguments else ""
    form = dict(itertools.pairwise(mutant.arguments)).get("--output")
    if found := _CONTROL.search(output.replace("\r", "") if form == "csv" else output):  # in CSV it is quoted
        return Verdict("terminal", f"{found[0]!r} on stdout of {command}", output[:300])
    if found := _CONTROL.search(errors.replace("\r", "")):
        return Verdict("terminal", f"{found[0]!r} on stderr of {command}", errors[:300])
    lines = [line for line in errors.splitlines() if not line.startswith(_BESIDE)]
    usage = len(lines) == 2 and "boxscore: " not in lines[1]  # what is wrong with the call, and what to do
    if status not in (0, 1, 2):
        return Verdict("status", f"{status} {command}", errors[:300])
    if status == 1 and command not in ("check", "validate", "evaluate"):
        return Verdict("status", f"1 {command}", errors[:300])
    if usage:
        lines = lines[:1]
    if status == 2:
        if output:
            return Verdict("stdout", f"{command}", f"{output[:200]}\n{errors[:300]}")
        refusals = [line for line in lines if line.startswith("boxscore: error: ")]
        if len(refusals) != 1 or lines != refusals:
            return Verdict("message", f"{len(lines)} lines, {command}", errors[:500])
        if len(refusals[0]) > 1000:
            return Verdict("message", "over 1,000 letters", refusals[0][:300])
        if re.search(r"Traceback|Errno|<class|object at 0x", refusals[0]):
            return Verdict("message", f"of Python, {command}", refusals[0][:300])
    if status == 0 and command in ("evaluate", "check") and form == "json":
        try:
            json.loads(output, parse_constant=_refuse_constant)
        except ValueError as error:
            return Verdict("stdout", f"no JSON, {command}", f"{error}: {output[:200]}")
    if status == 0 and form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(output)) for cell in row]
        if formulas := [cell for cell in cells if _is_formula(cell)]:
            return Verdict("formula", f"in the CSV of {command}", repr(formulas[0])[:200])
    return None


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet may take a cell for a formula, also after the blanks that some leave out."""
    text = cell.lstrip()
    return (
        text[:1] in ("=", "+", "-", "@")
        and len(text) > 1
        and not re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?|-inf", text)
    )


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def _is_other_text(name: str, arguments: Sequence[str]) -> bool:
    """Whether a file is by its option of another form, whatever it is called."""
    before = dict(zip(arguments[1:], arguments, strict=False)).get(name, "")
    converted = arguments[0] == "convert" and "json" not in arguments and "coco" not in arguments
    return before in ("--junit", "--history") or (converted and "--to" in arguments)


def _checked_files(folder: Path, before: set[str], mutant: Mutant, status: int) -> Verdict | None:
    """Check what the program wrote."""
    new = sorted(_listing(folder) - before)
    if parts := [name for name in new if name.endswith(".part")]:
        return Verdict("leftover", ".part", parts[0])
    if new and status == 2:
        return Verdict("leftover", "written though refused", ", ".join(new[:3]))
    for name in new:
        if name.endswith(".json") and not _is_other_text(name, mutant.arguments):
            try:
                json.loads((folder / name).read_bytes(), parse_constant=_refuse_constant)
            except ValueError as error:
                return Verdict("broken", f"{Path(name).name}", str(error))
        if name.endswith(".csv") and mutant.arguments[0] != "convert":  # its names are read again as they are
            text = (folder / name).read_bytes().decode()
            cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
            if formulas := [cell for cell in cells if _is_formula(cell)]:
                return Verdict("formula", f"in {Path(name).name}", repr(formulas[0])[:200])
        if name.endswith((".html", ".md", ".svg")) and b"<img src=x>" in (folder / name).read_bytes():
            return Verdict("broken", f"markup of a name in {Path(name).name}")
    return None
