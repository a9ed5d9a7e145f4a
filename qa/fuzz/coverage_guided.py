"""Look for bytes that a reader neither takes nor refuses, guided by the lines that they reach (atheris).

    python qa/fuzz/coverage_guided.py --seconds 60
    python qa/fuzz/coverage_guided.py --readers coco_truth protocol --seconds 600

Starts from qa/fuzz/seeds/<reader>; what fails is kept in qa/fuzz/found/<reader>, which the tests read
again. A reader that needs over a minute or 2 GB for one input fails too. atheris is Linux's and macOS's,
for some versions of Python: without it this says so and does nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

LIMITS = ["-timeout=60", "-rss_limit_mb=2048", "-max_len=4096", "-verbosity=0", "-print_final_stats=1"]


def fuzz_here(reader: str, options: list[str]) -> None:
    """Fuzz one reader in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["boxscore"]):
        from fuzz import readers

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readers.prepare(folder)

        seen = set()

        def one_input(data: bytes) -> None:
            try:
                readers.read(reader, data, folder)
            except Exception as error:  # taken down, once for each place, and on
                place = traceback.extract_tb(error.__traceback__)[-1]
                kind = (type(error), place.filename, place.lineno)
                if kind not in seen:
                    seen.add(kind)
                    name = f"{type(error).__name__}-{hashlib.sha256(data).hexdigest()[:10]}"
                    (readers.FOUND / reader / name).write_bytes(data)
                    traceback.print_exception(error)

        atheris.Setup([sys.argv[0], *options], one_input)
        atheris.Fuzz()


def words(reader: str) -> list[str]:
    """Words of the seeds: what a mutation may put in as a whole."""
    text = b"\n".join(path.read_bytes() for path in sorted((HERE / "seeds" / reader).iterdir())).decode(
        "latin-1"
    )
    return sorted(set(re.findall(r"[A-Za-z_][A-Za-z_0-9]{2,30}", text)))


def fuzz_reader(reader: str, seconds: int, seed: int) -> tuple[int, list[Path]]:
    """Fuzz one reader in a process of its own; return how many inputs it read and those that failed."""
    found = HERE / "found" / reader
    found.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    with tempfile.TemporaryDirectory() as name:
        dictionary = Path(name, "words")
        dictionary.write_text("".join(f'"{word}"\n' for word in words(reader)))
        corpus = Path(name, "corpus")
        corpus.mkdir()
        options = [str(corpus), str(HERE / "seeds" / reader), *LIMITS, f"-max_total_time={seconds}"]
        options += [f"-artifact_prefix={found}/", f"-seed={seed}"]
        options += [f"-dict={dictionary}"] * bool(dictionary.stat().st_size)
        done = subprocess.run(
            [sys.executable, __file__, "--here", reader, *options],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    count = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    failed = sorted(set(found.iterdir()) - before)
    if count is None or failed or done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
    if count is None:
        raise RuntimeError(f"{reader}: the fuzzer did not run")
    return int(count[1]), failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    names = sorted(path.name for path in (HERE / "seeds").iterdir())
    parser.add_argument("--seconds", type=int, default=30, metavar="S", help="for each reader")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--readers", nargs="+", default=names, choices=names)
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("coverage-guided fuzzing is left out: atheris is not installed (pip install atheris)")
        return 0
    failures = 0
    for reader in options.readers:
        count, failed = fuzz_reader(reader, options.seconds, options.seed)
        failures += len(failed)
        print(f"{reader}: {count} inputs, {len(failed)} failures", *failed, sep="\n  ", flush=True)
    return int(bool(failures))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        fuzz_here(sys.argv[2], sys.argv[3:])
    sys.exit(main())
