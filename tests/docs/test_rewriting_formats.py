"""`nms`, `fuse` and `sweep` take every format of detections, and give the same as of COCO JSON."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from test_file_formats import DETECTIONS, EXAMPLES, TRUTH, asked

import boxscore
from boxscore import load_detections, load_ground_truth, remap_classes
from boxscore.errors import FileFormatError
from boxscore.formats.registry import format_named
from support.running import Run

SAME = {"darknet": "yolo", "widerface": "labelme"}
"""Whose ground truth has another format, if not that of COCO."""
SCORED = [name for name in DETECTIONS if name != "answers"]
"""Answers of language models have no scores to rank boxes by, and all three commands say so."""
FLAGS = {
    "yolo": ["--dt-format", "yolo"],
    "darknet": ["--dt-format", "darknet"],
}
OPTIONS = {"box_format": "--dt-box-format", "classes": "--dt-classes", "image_sizes": "--image-sizes"}

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*files cannot store"),
    pytest.mark.filterwarnings("ignore:.*the pipeline cut boxes"),
]


def _has_score(value: Any) -> bool:
    """Whether a value has the score of an example, alone or in a dictionary."""
    return value in (0.9, [0.9]) or (isinstance(value, dict) and any(map(_has_score, value.values())))


def _lower(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lower(each) for key, each in value.items()}
    return {"0.9": 0.8, "[0.9]": [0.8]}.get(repr(value), copy.deepcopy(value))


def _twice(value: Any) -> Any:
    """Repeat each detection with a lower score."""
    if isinstance(value, dict):
        return {key: _twice(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    more = [_lower(each) for each in value if isinstance(each, dict) and _has_score(each)]
    return [*map(_twice, value), *more]


def twice(name: str, file: str, text: str) -> str:
    """Return an example with a second detection of the same object, which scores .8 instead of .9."""
    if name == "widerface":
        head, count, line = text.rstrip("\n").split("\n")
        return "\n".join([head, str(2 * int(count)), line, line.replace("0.9", "0.8"), ""])
    if name == "mmdetjson":
        content = {key: 2 * values for key, values in json.loads(text).items()}
        return json.dumps(content | {"scores": [0.9, 0.8]})
    if name == "vertex":
        content = json.loads(text)
        content["prediction"] = {key: 2 * values for key, values in content["prediction"].items()}
        content["prediction"]["confidences"] = [0.9, 0.8]
        return json.dumps(content) + "\n"
    if text.startswith(("[", "{")) and not file.endswith((".jsonl", ".ndjson", ".odgt")):
        return json.dumps(_twice(json.loads(text)))
    lines = []
    for line in text.splitlines():
        if line.startswith("{") and not _has_score(json.loads(line)):
            lines.append(json.dumps(_twice(json.loads(line))))
        else:
            lines += [line, *([line.replace("0.9", "0.8")] if "0.9" in line else [])]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in EXAMPLES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        of = next((each for each, start in DETECTIONS.items() if name.startswith(start)), "")
        path.write_text(twice(of, name, content) if of in SCORED else content, encoding="utf-8")
    (tmp_path / "dota" / "results" / "Task1_dog.txt").touch()
    (tmp_path / "sizes.csv").write_text("image,width,height\na,200,100\n", encoding="utf-8")
    (tmp_path / "model_classes.txt").write_text("cat\n", encoding="utf-8")
    return tmp_path


def both(name: str, folder: Path) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    """Read an example, and write it as COCO JSON as well."""
    same = same_as(name)
    truth = load_ground_truth(folder / TRUTH[same], **asked(same, folder))
    if name == "widerface":
        truth = remap_classes(truth, {"cat": "face"})
    options = asked(name, folder, sizes=False)
    try:
        found = load_detections(folder / DETECTIONS[name], truth, format=name, **options)
    except FileFormatError:  # an image may be in one line only
        for file in EXAMPLES:
            if file.startswith(DETECTIONS[name]):
                (folder / file).write_text(EXAMPLES[file], encoding="utf-8")
        found = load_detections(folder / DETECTIONS[name], truth, format=name, **options)
    boxscore.save_as(truth, folder / "truth.json", lossy=True)
    boxscore.save_as(found, folder / "as.json", lossy=True)
    return truth, found


def same_as(name: str) -> str:
    """Return the format of the ground truth of an example."""
    return SAME.get(name, name if name in TRUTH else "coco")


def flags_of(name: str, folder: Path) -> list[Any]:
    """Return the options of commands that an example needs."""
    options = asked(name, folder, sizes=False)
    form = format_named(name)
    if "image_sizes" in form.takes and "detections" not in form.holds:  # a format with pixels is written
        options["image_sizes"] = folder / "sizes.csv"
    if name == "mot":
        options["classes"] = folder / "mot" / "gt" / "labels.txt"
    return FLAGS.get(name, []) + [word for key, value in options.items() for word in (OPTIONS[key], value)]


def rows(path: Path, truth: boxscore.GroundTruth, **options: Any) -> list[list[Any]]:
    """Return the rows of detections, sorted."""
    table = load_detections(path, truth, **options)
    boxes = table.boxes.round(9).tolist()
    return sorted(
        map(
            list,
            zip(table.image.tolist(), table.category.tolist(), table.scores.tolist(), boxes, strict=True),
        )
    )


@pytest.mark.parametrize("name", SCORED)
def test_every_format_is_suppressed_and_fused_as_coco_json(name: str, folder: Path, run: Run) -> None:
    path, (truth, found) = folder / DETECTIONS[name], both(name, folder)
    assert len(found) in (1, 2)
    # The output has the format of the input, or COCO JSON.
    is_written = "detections" in format_named(name).holds
    kept = ("kept" if path.is_dir() else f"kept{path.suffix}") if is_written else "kept.json"
    options = {"format": name, **asked(name, folder, sizes=False)} if is_written else {}
    for command, key in (("nms", ["--dt"]), ("fuse", [])):
        (folder / command).mkdir()
        more = ["--iou-threshold", 0.5, "--quiet"]
        run(command, *key, path, "--output", folder / command / kept, *more, *flags_of(name, folder))
        run(command, *key, folder / "as.json", "--output", folder / command / "as.json", *more)
        got = rows(folder / command / kept, truth, **options)
        assert got == rows(folder / command / "as.json", truth)
        assert len(got) == 1


@pytest.mark.parametrize("name", SCORED)
def test_every_format_is_swept_as_coco_json(name: str, folder: Path, run: Run) -> None:
    both(name, folder)
    same = same_as(name)
    given = folder / "truth.json" if name == "widerface" else folder / TRUTH[same]
    options = asked(same, folder)
    of_truth = ["--gt-box-format", options["box_format"]] if "box_format" in options else []
    sizes = ["--image-sizes", folder / "sizes.csv"] if "image_sizes" in options else []
    grid = ["--iou-threshold", 0.3, 0.6, "--quiet"]
    flags = [*flags_of(name, folder), *of_truth, *sizes]
    swept = run.json("sweep", given, folder / DETECTIONS[name], *grid, *flags)
    assert swept["rows"] == run.json("sweep", folder / "truth.json", folder / "as.json", *grid)["rows"]
