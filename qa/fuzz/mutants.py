"""Run many structured mutants of one kind of file; what is found can be made again from its seed and number.

python qa/fuzz/mutants.py columns --count 20000 --seed 1
python qa/fuzz/mutants.py json --count 20000
python qa/fuzz/mutants.py xml --count 20000
python qa/fuzz/mutants.py answers --count 20000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import answer_mutants, archive_mutants, json_mutants, xml_mutants

KINDS: dict[str, ModuleType] = {
    "answers": answer_mutants,
    "columns": archive_mutants,
    "json": json_mutants,
    "xml": xml_mutants,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    outcomes: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    kind = KINDS[options.kind]
    start, longest = time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        good = kind.prepare(folder)
        for number in range(options.count):
            begin = time.perf_counter()
            try:
                outcomes[kind.one(np.random.default_rng([options.seed, number]), good, folder)] += 1
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"{type(error).__name__}, {last.filename}, line {last.lineno}"
                if not faults[fault]:  # once for each place
                    print(f"mutant {number}: {fault}", flush=True)
                    traceback.print_exception(error)
                faults[fault] += 1
            longest = max(longest, time.perf_counter() - begin)
    seconds = time.perf_counter() - start
    taken = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{options.count} mutants, {taken}, {seconds:.0f} s, the longest {longest:.2f} s")
    print(f"{sum(faults.values())} faults in {len(faults)} places", *faults, sep="\n  ")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
