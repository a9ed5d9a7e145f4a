"""Label maps in files: the commands, several processes, and what is refused, each in one exact line."""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.label_maps import panoptic_quality_of_files, semantic_iou_of_folders
from support.running import Run

pytest.importorskip("PIL")
GRAY, COLORS, PALETTE = 0, 2, 3


def png(rows: Any, *, color: int = GRAY, depth: int = 8) -> bytes:
    """Write a PNG by hand: Pillow does not write every kind that there is."""
    array = np.asarray(rows)
    kind = ">u2" if depth == 16 else np.uint8
    lines = b"".join(b"\0" + row.astype(kind).tobytes() for row in array)
    head = struct.pack(">IIBBBBB", array.shape[1], array.shape[0], depth, color, 0, 0, 0)
    parts = [(b"IHDR", head), *([(b"PLTE", bytes(range(256)) * 3)] if color == PALETTE else [])]
    parts += [(b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )


def colors(ids: Any) -> Any:
    ids = np.asarray(ids)
    return np.stack([ids & 255, ids >> 8 & 255, ids >> 16], axis=-1)


LABELS = {
    "a": ([[0, 0, 1], [1, 1, 255]], [[0, 1, 1], [1, 1, 0]]),
    "b": ([[1, 2, 2], [0, 0, 0]], [[1, 2, 0], [0, 0, 0]]),
    "c": ([[3, 3, 3], [3, 3, 3]], [[3, 3, 3], [0, 0, 0]]),
}
TABLE = [{"id": 300, "category_id": 1}, {"id": 70_000, "category_id": 2}]
MAPS = {"a": [[300, 300, 70_000, 0]], "b": [[300, 70_000, 70_000, 70_000]]}
PREDICTED = {"a": [[300, 70_000, 70_000, 70_000]], "b": MAPS["b"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for place in ("gt", "dt", "pgt", "pdt"):
        (tmp_path / place).mkdir()
    for name, maps in LABELS.items():
        for place, rows in zip(("gt", "dt"), maps, strict=True):
            (tmp_path / place / f"{name}.png").write_bytes(png(rows))
    for place, maps_of in (("pgt", MAPS), ("pdt", PREDICTED)):
        annotations = []
        for name, ids in maps_of.items():
            (tmp_path / place / f"{name}.png").write_bytes(png(colors(ids), color=COLORS))
            annotations.append({"image_id": name, "file_name": f"{name}.png", "segments_info": TABLE})
        categories = [
            {"id": 1, "name": "cat", "isthing": 1, "color": [1, 2, 3]},
            {"id": 2, "name": "sky", "isthing": 0},
        ]
        text = json.dumps({"annotations": annotations, "categories": categories})
        (tmp_path / f"{place}.json").write_text(text, encoding="utf-8")
    return tmp_path


PANOPTIC = ["panoptic", "--gt", "pgt.json", "--gt-folder", "pgt", "--dt", "pdt.json", "--dt-folder", "pdt"]
SEMANTIC = ["semantic", "--gt", "gt", "--dt", "dt"]


def printed(run: Run, *arguments: str) -> str:
    output, errors = run(*arguments)
    assert errors == ""
    return output


@pytest.mark.usefixtures("folder")
def test_panoptic_prints_what_the_function_says(run: Run) -> None:
    value = json.loads(printed(run, *PANOPTIC, "--output", "json", "--workers", "2", "--per-image", "1"))
    result = boxscore.panoptic_quality(
        [(np.array(MAPS[name]), TABLE) for name in MAPS],
        [(np.array(PREDICTED[name]), TABLE) for name in MAPS],
        categories={1: True, 2: False},
        images=list(MAPS),
    )
    assert value["metrics"] == result.metrics
    assert {"PQ", "SQ", "RQ", "PQ_things", "PQ_stuff"} <= set(value["metrics"])
    assert value["counts"] == {"images": 2, "TP": 2, "FP": 2, "FN": 2}
    assert value["signature"] == result.signature
    assert [row["class"] for row in value["per_class"]] == ["cat", "sky"]
    assert [row["image_id"] for row in value["per_image"]] == ["a"]


@pytest.mark.usefixtures("folder")
def test_semantic_prints_what_the_function_says(run: Run) -> None:
    value = json.loads(printed(run, *SEMANTIC, "--rules", "mmseg", "--classes", "5", "--output", "json"))
    truth, prediction = zip(*LABELS.values(), strict=True)
    result = boxscore.semantic_iou(list(truth), list(prediction), classes=5, rules="mmseg")
    assert value["metrics"] == result.metrics
    assert value["counts"] == {"images": 3, "classes": 5, "pixels": 17, "right": 12}
    assert value["per_class"][4]["IoU"] is None


def test_the_report_folder(folder: Path, run: Run) -> None:
    for command, files in ((SEMANTIC, set()), (PANOPTIC, {"segments.csv"})):
        assert run(
            *command, "--report", "out"
        ).err == "boxscore: report written to out/report.md\n".removeprefix("boxscore: ")
        written = {path.name for path in (folder / "out").iterdir()}
        assert written == {"report.md", "result.json", "per_class.csv", "per_image.csv"} | files
        value = json.loads((folder / "out" / "result.json").read_text(encoding="utf-8"))
        rows = (folder / "out" / "per_image.csv").read_text(encoding="utf-8").splitlines()
        assert [row["image_id"] for row in value["per_image"]] == [row.split(",")[0] for row in rows[1:]]
        page = (folder / "out" / "report.md").read_text(encoding="utf-8")
        assert f"## Worst images\n\n{len(rows) - 1} of {len(rows) - 1} images" in page
        assert value["signature"] in page


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
@pytest.mark.parametrize("command", [PANOPTIC, SEMANTIC], ids=["panoptic", "semantic"])
def test_every_form(command: list[str], form: str, run: Run) -> None:
    text = printed(run, *command, "--per-class", "--per-image", "2", "--resamples", "3", "--output", form)
    start = {
        "text": "Worst images",
        "csv": "image_id,",
        "markdown": "## Worst images",
        "latex": "% Worst images",
    }
    assert start[form] in text
    assert ("intervals" in text) == (form != "csv")
    assert "boxscore|" in text or form == "csv"


@pytest.mark.long
def test_the_number_of_processes_changes_nothing(folder: Path) -> None:
    for count in (2, 3, 8):
        one, other = (semantic_iou_of_folders("gt", "dt", workers=workers).counts for workers in (1, count))
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        files = ("pgt.json", "pgt", "pdt.json", "pdt")
        two, more = (panoptic_quality_of_files(*files, workers=workers).segments for workers in (1, count))
        assert all(np.array_equal(a, b) for a, b in zip(two, more, strict=True))


def test_maps_by_ending_in_folders_of_folders(folder: Path) -> None:
    plain = semantic_iou_of_folders("gt", "dt")
    for name, (truth, prediction) in LABELS.items():
        place = folder / "deep" / name
        place.mkdir(parents=True)
        (place / f"{name}_gtFine_labelIds.png").write_bytes(png(truth))
        (place / f"{name}_gtFine_color.png").write_bytes(b"")
        (folder / "dt" / f"{name}_pred.png").write_bytes(png(prediction, color=PALETTE))
    deep = semantic_iou_of_folders(
        "deep", "dt", truth_ending="_gtFine_labelIds.png", prediction_ending="_pred.png"
    )
    assert (deep.images, deep.metrics) == (plain.images, plain.metrics)


def test_gray_of_16_bits_and_palettes_are_labels(folder: Path) -> None:
    for kind in ({"depth": 16}, {"color": PALETTE}):
        rows = np.array([[0, 200, 7]]) + (1000 if "depth" in kind else 0)
        (folder / "one.png").write_bytes(png(rows, **kind))
        result = semantic_iou_of_folders("one.png", "one.png")
        assert result.classes.labels == tuple(sorted(rows[0].tolist()))


def test_names_of_classes_from_a_file(folder: Path, run: Run) -> None:
    (folder / "names.txt").write_text("road\n\ncar\nsky\ntree\n", encoding="utf-8")
    text = printed(run, *SEMANTIC, "--classes", "names.txt", "--per-class", "--output", "csv")
    assert [line.split(",")[1] for line in text.splitlines()] == ["class", "road", "car", "sky", "tree"]


def test_areas_of_the_table_that_are_wrong_are_a_warning(folder: Path, run: Run) -> None:
    change("pgt.json", '"id": 300, "category_id": 1', '"id": 300, "category_id": 1, "area": 3')
    assert run(*PANOPTIC, "--workers", "2").err == (
        "boxscore: warning: pgt/a.png and 1 more: a ground truth segment has an area that differs from its number "
        "of pixels; the area is used. With --rules counted, this is an error.\n"
    )
    run(*PANOPTIC, "--strict", status=2)
    assert len(json.loads(run(*PANOPTIC, "--output", "json").out)["warnings"]) == 1


def change(file: str, old: str, new: str) -> None:
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def write(file: str, content: bytes) -> None:
    Path(file).write_bytes(content)


def whole(size: int, *, head: bytes) -> bytes:
    return head[:16] + struct.pack(">II", size, size) + head[24:]


REFUSED: dict[str, tuple[list[str], Any, str]] = {
    "a folder that is not there": (
        ["semantic", "--gt", "nowhere", "--dt", "dt"],
        None,
        "the truth must be a folder. Got 'nowhere'.",
    ),
    "no maps": (
        [*SEMANTIC, "--gt-ending", "_x.png"],
        None,
        "the truth must hold files that end with _x.png. Got none in gt.",
    ),
    "an ending with a folder": (
        [*SEMANTIC, "--gt-ending", "../x.png"],
        None,
        "the ending of maps must be a plain name without / or ... Got '../x.png'.",
    ),
    "a map without a prediction": (
        SEMANTIC,
        lambda: Path("dt/b.png").unlink(),
        "a map of the truth must have a prediction. Got none for 1 of 3: b in dt.",
    ),
    "sizes that differ": (
        SEMANTIC,
        lambda: write("dt/c.png", png([[3, 3]])),
        "the prediction must be as large as the truth (3 x 2). Got 2 x 1 in dt/c.png; resize it with "
        "nearest-neighbor interpolation.",
    ),
    "labels outside the classes": (
        [*SEMANTIC, "--classes", "3"],
        None,
        "the truth must have labels that are classes or ignored. Got label 3 on 3 pixels in image 'c'; "
        "are these other classes, trainIds instead of ids, or another ignore label?",
    ),
    "a colored picture": (
        SEMANTIC,
        lambda: write("dt/a.png", png(colors([[1, 2]]), color=COLORS)),
        "a label map must be gray (8 or 16 bits) or have a palette. Got RGB, 8 bits in dt/a.png; is it a "
        "color visualization? boxscore needs the label values.",
    ),
    "gray of 4 bits": (
        SEMANTIC,
        lambda: write("dt/a.png", png([[0x12]], depth=4)),
        "a label map must be gray (8 or 16 bits) or have a palette. Got gray, 4 bits in dt/a.png; save the "
        "labels with 8 bits.",
    ),
    "no PNG": (
        SEMANTIC,
        lambda: write("dt/a.png", b"\xff\xd8\xff\xe0" + bytes(40)),
        "a label map must be a PNG file. Got JPEG, which changes labels in dt/a.png.",
    ),
    "an empty file": (
        SEMANTIC,
        lambda: write("dt/a.png", b""),
        "a label map must be a PNG file. Got an empty file in dt/a.png.",
    ),
    "a PNG cut short": (
        SEMANTIC,
        lambda: write("dt/a.png", png(np.arange(200)[None])[:90]),
        "a PNG file must be whole. Got image file is truncated in dt/a.png; was the download or the write cut "
        "short?",
    ),
    "a PNG that claims too much": (
        SEMANTIC,
        lambda: write("dt/a.png", whole(2**20, head=png([[1]]))),
        "a label map must have at most 67,108,864 pixels. Got 1048576 x 1048576 in dt/a.png.",
    ),
    "other classes than the rules'": (
        [*SEMANTIC, "--rules", "coco-stuff"],
        None,
        "the truth must have a pixel of a class. Got the labels 0, 1, 2, 3, 255; the rules 'coco-stuff' define other classes; pass yours with classes.",
    ),
    "no classes": (
        [*SEMANTIC, "--classes", "names.txt"],
        None,
        "--classes must be a number or a file with names. Got 'names.txt'.",
    ),
    "panoptic: a missing map": (
        PANOPTIC,
        lambda: Path("pdt/b.png").unlink(),
        "pdt/b.png: cannot be read: No such file or directory.",
    ),
    "panoptic: a missing file": (
        PANOPTIC,
        lambda: Path("pdt.json").unlink(),
        "pdt.json: cannot be read: No such file or directory.",
    ),
    "panoptic: an image without prediction": (
        PANOPTIC,
        lambda: change("pdt.json", '"image_id": "b"', '"image_id": "c"'),
        "an image of the truth must have a prediction. Got none for 1 of 2: b in pdt.json.",
    ),
    "panoptic: an image twice": (
        PANOPTIC,
        lambda: change("pdt.json", '"image_id": "b"', '"image_id": "a"'),
        "images must have one annotation each. Got two in image 'a' of pdt.json.",
    ),
    "panoptic: an id that the table lacks": (
        PANOPTIC,
        lambda: write("pdt/b.png", png(colors([[300, 70_000, 5, 6]]), color=COLORS)),
        "an id of the prediction's map must be listed for its image. Got 5, 6 in pdt/b.png.",
    ),
    "panoptic: an id that the map lacks": (
        PANOPTIC,
        lambda: write("pdt/b.png", png(colors([[300] * 4]), color=COLORS)),
        "a segment of the prediction must have pixels in the map. Got id 70000 in pdt/b.png.",
    ),
    "panoptic: the same in the truth": (
        [*PANOPTIC, "--rules", "counted"],
        lambda: write("pgt/b.png", png(colors([[300] * 3 + [9]]), color=COLORS)),
        "an id of the truth's map must be listed for its image. Got 9 in pgt/b.png.",
    ),
    "panoptic: sizes that differ": (
        PANOPTIC,
        lambda: write("pdt/b.png", png(colors([[300, 70_000]]), color=COLORS)),
        "the prediction's map must be as large as the truth (4 x 1). Got 2 x 1 in pdt/b.png; resize it "
        "with nearest-neighbor interpolation.",
    ),
    "panoptic: gray of 16 bits": (
        PANOPTIC,
        lambda: write("pgt/b.png", png([[300]], depth=16)),
        "a panoptic map must be RGB of 8 bits, ids as R + 256 G + 65536 B. Got gray, 16 bits in pgt/b.png; "
        "Cityscapes' instanceIds? make panoptic files of them.",
    ),
    "panoptic: a palette": (
        PANOPTIC,
        lambda: write("pgt/b.png", png([[30]], color=PALETTE)),
        "a panoptic map must be RGB of 8 bits, ids as R + 256 G + 65536 B. Got palette, 8 bits in pgt/b.png.",
    ),
    "panoptic: an unknown class": (
        PANOPTIC,
        lambda: change("pdt.json", '"category_id": 2', '"category_id": 4'),
        "category_id must be a category. Got 4 in image 'a' of pdt.json; a class that the categories of the "
        "truth do not have.",
    ),
    "panoptic: a file outside": (
        PANOPTIC,
        lambda: change("pdt.json", '"file_name": "b.png"', '"file_name": "../pgt/b.png"'),
        "file_name must be inside its folder. Got '../pgt/b.png' in pdt.json.",
    ),
    "panoptic: results of boxes": (
        PANOPTIC,
        lambda: write("pdt.json", b"[]"),
        "a panoptic file must be an object with annotations. Got an array in pdt.json.",
    ),
    "panoptic: a table without ids": (
        PANOPTIC,
        lambda: change("pdt.json", '"id": 300, ', ""),
        "segments_info[0] must have id. Got none in annotation 0 of pdt.json.",
    ),
    "panoptic: rules of the other command": (
        [*PANOPTIC, "--rules", "mmseg"],
        None,
        "--rules must be a known name or a .toml file. Got 'mmseg'; known: counted, panopticapi.",
    ),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, spoil, message = REFUSED[name]
    if spoil is not None:
        spoil()
    with warnings.catch_warnings():
        status = main([*arguments, "--workers", "1"])
    assert (status, *capsys.readouterr()) == (2, "", f"boxscore: error: {message}\n")
