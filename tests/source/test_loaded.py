"""What an evaluation of plain boxes in COCO's files loads, which for small files is much of its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MOST_MODULES = 105
"""Modules of boxscore."""

EXTENSIONS_NEEDED = {"validation"}
"""Which look at the files after the numbers."""

OURS_NOT_NEEDED = (
    *("data.column_names", "diagnostics", "distributed"),
    *(
        "label_maps",
        "reports",
    ),
    *("matching.outcomes", "protocols.changing"),
)
OTHERS_NOT_NEEDED = ("difflib", "hashlib", "lzma", "multiprocessing", "numpy.ma", "pandas", "shutil")

EVALUATION = """
import json, sys, warnings
warnings.simplefilter("ignore")
import boxscore
result = boxscore.evaluate(*sys.argv[1:])
assert result["AP"] > 0 and len(result.metrics) == 12
print(json.dumps(sorted(sys.modules)))
"""

COMMAND = """
import contextlib, io, json, sys
from boxscore.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    assert main(sys.argv[1:]) == 0
print(json.dumps(sorted(sys.modules)))
"""

MOST_OF_COMMANDS = {"evaluate": 108, "nms": 78, "fuse": 80}
"""Modules of boxscore that a command loads for plain boxes."""
NOT_FOR_SUPPRESSION = ("evaluation", "matching", "protocols", "scoring", "similarity.box")
"""Suppression needs no ground truth, and boxes no measure of other shapes."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """800 boxes in images of their own, found exactly; the annotations begin after what tells the format."""
    folder = tmp_path_factory.mktemp("files")
    images = [
        {"id": image, "width": 100, "height": 100, "file_name": f"{image}.jpg"} for image in range(2_000)
    ]
    boxes = [
        {"image_id": image, "category_id": 1 + image % 3, "bbox": [image % 50, 10, 40, 40]}
        for image in range(800)
    ]
    annotations = [{**box, "id": row + 1, "area": 1600, "iscrowd": 0} for row, box in enumerate(boxes)]
    categories = [{"id": number, "name": f"class {number}"} for number in (1, 2, 3)]
    truth, results = folder / "truth.json", folder / "results.json"
    truth.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    results.write_text(json.dumps([{**box, "score": 1 - row / 1000} for row, box in enumerate(boxes)]))
    return str(truth), str(results)


def loaded(code: str, *arguments: str) -> tuple[list[str], list[str]]:
    """Run a program; return the modules that it loads, and those of boxscore without its name."""
    command = [sys.executable, "-c", code, *arguments]
    every = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ours = [name.removeprefix("boxscore.") for name in every if name.partition(".")[0] == "boxscore"]
    return every, ours


def extensions_in(ours: list[str]) -> set[str]:
    return {name.split(".")[1] for name in ours if name.startswith("extensions.")}


def test_an_evaluation_of_plain_boxes_loads_what_it_needs(files: tuple[str, str]) -> None:
    every, ours = loaded(EVALUATION, *files)
    assert extensions_in(ours) == EXTENSIONS_NEEDED
    assert [name for name in OURS_NOT_NEEDED if name in ours] == []
    assert [name for name in OTHERS_NOT_NEEDED if name in every] == []
    assert len(ours) <= MOST_MODULES, f"{len(ours)} modules: {' '.join(ours)}"


def test_a_command_loads_what_it_needs(files: tuple[str, str], tmp_path: Path) -> None:
    truth, results = files
    output = str(tmp_path / "output.json")
    commands = {
        "evaluate": [truth, results, "--output", "json"],
        "nms": [results, "--output", output, "--iou-threshold", "0.5"],
        "fuse": [results, results, "--output", output, "--iou-threshold", "0.5"],
    }
    needed = {"evaluate": EXTENSIONS_NEEDED, "nms": set(), "fuse": {"fusion", "large"}}  # its --memory-limit
    for name, arguments in commands.items():
        every, ours = loaded(COMMAND, name, *arguments)
        if name == "evaluate":
            assert [module for module in OTHERS_NOT_NEEDED if module in every] == []
        else:
            assert [module for module in NOT_FOR_SUPPRESSION if module in ours] == [], name
        assert extensions_in(ours) == needed[name]
        assert len(ours) <= MOST_OF_COMMANDS[name], f"{name}: {len(ours)} modules: {' '.join(ours)}"
