"""Run the tests with the oldest and with the newest dependencies, on every Python that is here (uv).

    python tests/packaging/matrix.py
    python tests/packaging/matrix.py --pythons 3.12 --versions oldest --tests smoke

"oldest" takes the lowest version of each dependency that pyproject.toml allows and that has a wheel for this
Python. Environments are made in .venv-matrix. A Python that is not here is named, and not tested.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
RESOLUTION = {"oldest": "lowest-direct", "newest": "highest"}
TESTS = {
    "core": [
        *(
            "tests/golden",
            "tests/bad_input",
            "tests/extensions/validation",
            "tests/parity",
            "tests/properties",
            "tests/rules",
        ),
        *(
            "tests/data",
            "tests/formats",
            "tests/protocols",
            "tests/similarity",
            "tests/matching",
            "tests/scoring",
        ),
        *("tests/evaluation", "tests/cli", "tests/utils", "qa/fuzz/test_readers.py"),
        *("tests/extensions/pages/test_report_files.py", "tests/extensions/diagnostics"),
        *("tests/extensions/decisions", "tests/extensions/labels", "tests/extensions/data_tools"),
        *("tests/extensions/crowds", "tests/extensions/federated", "tests/extensions/scoreless"),
        *("tests/extensions/formats", "tests/extensions/training", "tests/extensions/weights"),
    ],
    "smoke": [
        *(
            "tests/golden",
            "tests/formats",
            "tests/extensions/formats",
            "tests/evaluation/test_evaluation.py",
            "qa/fuzz/test_readers.py",
        ),
    ],
}
SHOWN = ("numpy", "pandas", "msgspec", "pycocotools", "pyarrow", "matplotlib")


def interpreter(version: str) -> str | None:
    """Find a Python of this version: on the path, or among pyenv's."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *map(str, pyenv)):
        if found is None:
            continue
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return found
    return None


def uv(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def check(version: str, python: str, versions: str, tests: str) -> bool:
    """Make one environment, run the tests in it, and print a line."""
    folder = ROOT / ".venv-matrix" / f"{version}-{versions}"
    start = time.monotonic()
    own = folder / "bin" / "python"
    options = ["--resolution", RESOLUTION[versions], "--only-binary", ":all:", "--no-binary", "boxscore"]
    try:
        uv("venv", "--quiet", "--clear", "--python", python, str(folder))
        uv("pip", "install", "--quiet", "--python", str(own), *options, "--editable", ".[test]")
    except RuntimeError as error:  # no package index, or no wheels for this Python: nothing about boxscore
        print(f"Python {version}, {versions}: cannot be installed here, not tested\n{error}", flush=True)
        return True
    listed = dict(
        line.split("==") for line in uv("pip", "freeze", "--python", str(own)).splitlines() if "==" in line
    )
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "BOXSCORE_EXAMPLES": os.environ.get("BOXSCORE_EXAMPLES", "0.2"),
    }
    done = subprocess.run(
        [
            *(str(own), "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"),
            "-p",
            "no:cacheprovider",
            *TESTS[tests],
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().rpartition("\n")[2]
    names = ", ".join(f"{name} {listed[name]}" for name in SHOWN if name in listed)
    print(
        f"Python {version}, {versions} ({names}): {last}, {time.monotonic() - start:.0f} s in all", flush=True
    )
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pythons", nargs="+", default=list(PYTHONS), choices=PYTHONS)
    parser.add_argument("--versions", nargs="+", default=list(RESOLUTION), choices=list(RESOLUTION))
    parser.add_argument("--tests", default="core", choices=list(TESTS))
    options = parser.parse_args()
    if importlib.util.find_spec("uv") is None:
        print("the matrix needs uv: pip install uv")
        return 0
    good = True
    for version in options.pythons:
        python = interpreter(version)
        if python is None:
            print(f"Python {version}: not here, not tested")
            continue
        for versions in options.versions:
            good &= check(version, python, versions, options.tests)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
