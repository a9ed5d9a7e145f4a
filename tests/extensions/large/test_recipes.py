"""The recipes of the pages for other engines, run as they are printed: the bits of one evaluation.

``python tests/extensions/large/test_recipes.py [TRUTH DETECTIONS]`` runs all whose engine is installed, on a made-up
sample or on Parquet that ``boxscore convert`` wrote.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import boxscore
from boxscore.cli import main

ROOT = Path(__file__).parents[3]
PAGES = ("how-to/large-data", "contributing/beyond-one-machine")
RECIPE = re.compile(r"<!-- not run: needs (\w+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPES = [
    pytest.param(needed, code, id=f"{Path(page).name}-{needed}")
    for page in PAGES
    for needed, code in RECIPE.findall((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
]
PRINTED = """
if __name__ == "__main__":
    print(repr({name: value.hex() for name, value in result.metrics.items()}))
"""


def printed_by(code: str, folder: Path) -> str:
    """Run a recipe in a folder with both sides; return the last line, its metrics to the last bit."""
    (folder / "recipe.py").write_text(code + PRINTED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "recipe.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def expected_of(folder: Path) -> str:
    result = boxscore.evaluate(folder / "truth.parquet", folder / "detections")
    return repr({name: float(value).hex() for name, value in result.metrics.items()})


def sample(folder: Path) -> None:
    """Write the sample of the repository as Parquet."""
    shapes = ROOT / "datasets" / "shapes_coco"
    truth = ["convert", "--gt", str(shapes / "instances.json"), "--lossy"]  # masks
    assert main([*truth, "--output", str(folder / "truth.parquet")]) == 0
    found = ["--dt", str(shapes / "detections.json"), "--to", "parquet", "--partitions", "4"]
    assert main([*truth, *found, "--output", str(folder / "detections")]) == 0


def missing(needed: str) -> bool:
    return needed != "processes" and importlib.util.find_spec(needed) is None


@pytest.mark.long
@pytest.mark.parametrize(("needed", "code"), RECIPES)
def test_a_recipe_gives_the_bits_of_one_evaluation(needed: str, code: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
    if missing(needed):
        pytest.skip(f"needs {needed}")
    sample(tmp_path)
    assert printed_by(code, tmp_path) == expected_of(tmp_path)


def test_there_are_recipes() -> None:
    assert [param.values[0] for param in RECIPES] == ["processes", "joblib", "ray", "pyspark", "pyspark"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        if len(sys.argv) == 3:
            (here / "truth.parquet").symlink_to(Path(sys.argv[1]).resolve())
            (here / "detections").symlink_to(Path(sys.argv[2]).resolve())
        else:
            sample(here)
        right = expected_of(here)
        for recipe in RECIPES:
            engine, code = (str(value) for value in recipe.values)
            if missing(engine):
                print(f"{recipe.id}: {engine} is not installed")
                continue
            same = printed_by(code, here) == right
            print(f"{recipe.id}: {'equal in every digit' if same else 'DIFFERENT'}", flush=True)
