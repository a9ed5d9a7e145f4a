"""No output replaces an input, under whatever name, nor a file in a folder that is read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from boxscore import load_ground_truth, save_as
from boxscore.cli import main
from support.running import Run
from support.samples import SHAPES, SHAPES_VOC


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SHAPES / "instances.json", "gt.json")
    shutil.copy(SHAPES / "detections.json", "dt.json")
    return tmp_path


def refusal(run: Run, *arguments: str) -> str:
    """Run a command that is refused, and leaves what was there; return its message."""
    files = {path: path.read_bytes() for path in sorted(Path.cwd().rglob("*")) if path.is_file()}
    output, errors = run(*arguments, status=2)
    assert {path: path.read_bytes() for path in sorted(Path.cwd().rglob("*")) if path.is_file()} == files
    assert output == ""
    return errors.removeprefix("boxscore: error: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "evaluate gt.json dt.json -o gt.json",
            "--output must differ from the input. Got 'gt.json'.",
        ),
        (
            "check gt.json dt.json --min AP=0.1 --history hard.json",
            "--history must differ from the input. Got 'hard.json', which is --detections dt.json.",
        ),
        (
            "report gt.json folder/result.json --report folder",
            "a file in --report must differ from the input. Got 'folder/result.json'.",
        ),
        (
            "report gt.json dt.json --report folder -o folder/result.json",
            "--output must differ from the files that --report writes. Got 'folder/result.json'.",
        ),
        (
            "check gt.json dt.json --junit a.xml --history ./a.xml",
            "--history must differ from --junit. Got 'a.xml'.",
        ),
        (
            "draw gt.json dt.json --image-folder folder --output folder",
            "--output must differ from the input. Got 'folder'.",
        ),
        (
            "convert gt.json gt-train.json -o gt.json --split train=0.5 val=0.5 --to coco",
            "--output must differ from the input. Got 'gt.json'.",
        ),
        (
            "convert gt-train.json -o gt.json --split train=0.5 val=0.5",
            "a part of --output must differ from the input. Got 'gt-train.json'.",
        ),
        (
            "run config.toml",
            "output.form must differ from the input. Got 'gt.json'.",
        ),
        ("run itself.toml", "output.report must differ from the input. Got 'itself.toml'."),
    ],
)
def test_messages(here: Path, run: Run, arguments: str, message: str) -> None:
    (here / "hard.json").hardlink_to(here / "dt.json")
    (here / "folder").mkdir()
    shutil.copy("dt.json", "folder/result.json")
    shutil.copy("gt.json", "gt-train.json")
    paths = "[ground_truth]\npath = 'gt.json'\n[detections]\npath = 'dt.json'\n[output]\n"
    Path("config.toml").write_text(f"{paths}form = 'folder/../gt.json'\n")
    Path("itself.toml").write_text(f"{paths}report = 'itself.toml'\n")
    assert refusal(run, *arguments.split()) == message


def test_a_folder_that_is_read(here: Path, run: Run) -> None:
    shutil.copytree(SHAPES_VOC / "results", "results")
    command = ["nms", "results", "--iou-threshold", "0.5", "--output"]
    same = "--output must differ from the input. Got"
    assert refusal(run, *command, "results") == f"{same} 'results'."
    Path("link").symlink_to("results")
    assert refusal(run, *command, "link") == f"{same} 'link', which is --detections results."


def test_a_file_in_a_folder_that_is_read(here: Path, run: Run) -> None:
    Path("project").mkdir()
    shape = {"label": "a", "points": [[0, 0], [5, 5]], "shape_type": "rectangle"}
    for name in ("a", "b"):
        picture = {"imagePath": f"{name}.png", "imageData": None, "imageWidth": 9, "imageHeight": 9}
        Path(f"project/{name}.json").write_text(json.dumps({"shapes": [shape], **picture}))
    assert refusal(run, "stats", "project", "-o", "project/a.json") == (
        "--output must differ from the input. Got 'project/a.json', "
        "which is a file in --ground-truth project."
    )


def test_a_new_file_that_the_next_run_would_read(here: Path, run: Run) -> None:
    Path("project/inner").mkdir(parents=True)
    shape = {"label": "a", "points": [[0, 0], [5, 5]], "shape_type": "rectangle"}
    for name in ("a", "b"):
        picture = {"imagePath": f"{name}.png", "imageData": None, "imageWidth": 9, "imageHeight": 9}
        Path(f"project/{name}.json").write_text(json.dumps({"shapes": [shape], **picture}))
    for new in ("project/new.json", "project/inner/new.json"):
        assert refusal(run, "stats", "project", "-o", new) == (
            f"--output must be outside --ground-truth 'project'. Got {new!r}; the next run would read it as "
            "input."
        )
    # Files with other endings are not read there.
    run("stats", "project", "-o", "project/new.csv")
    run("convert", "--gt", "project", "--to", "coco", "-o", "beside.json")


def test_a_new_file_beside_part_files(here: Path, run: Run) -> None:
    run(
        "convert", "--dt", "dt.json", "--gt", "gt.json", "-o", "parts", "--to", "parquet", "--partitions", "2"
    )
    command = ["nms", "parts", "--iou-threshold", ".5", "--output"]
    assert refusal(run, *command, "parts/kept.parquet") == (
        "--output must be outside --detections 'parts'. Got 'parts/kept.parquet'; the next run would read it "
        "as input."
    )
    # Part files are not read in folders below.
    Path("parts/below").mkdir()
    run(*command, "parts/below/kept.parquet")
    run(*command, "parts/kept.json")


def test_a_report_that_the_next_run_would_read(here: Path, run: Run) -> None:
    Path("found").mkdir()
    found = {"labels": [0], "scores": [0.5], "bboxes": [[0, 0, 5, 5]]}
    for image in json.loads(Path("gt.json").read_text())["images"]:
        Path(f"found/{Path(image['file_name']).stem}.json").write_text(json.dumps(found))
    command = ["report", "gt.json", "found", "--report"]
    assert refusal(run, *command, "found/report") == (
        "--report must be outside --detections 'found'. Got 'found/report'; the next run would read its "
        "result.json as input."
    )
    run(*command, "report")


def test_a_new_file_beside_folders_that_are_read(here: Path, run: Run) -> None:
    """Labels and annotations are read in a folder of the data set, not beside it."""
    shutil.copytree(SHAPES_VOC / "VOC2007", "voc", ignore=shutil.ignore_patterns("JPEGImages"))
    Path("yolo/labels/val").mkdir(parents=True)
    Path("yolo/images/val").mkdir(parents=True)
    Path("yolo/images/val/a.jpg").write_bytes(b"")
    Path("yolo/labels/val/a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    Path("yolo/data.yaml").write_text("val: images/val\nnames: [cat]\n")
    for data, inner in (("voc", "Annotations/new.xml"), ("yolo", "labels/val/new.txt")):
        command = ["stats", data, "--image-set", "test" if data == "voc" else "val"]
        before = run(*command).out
        run(*command, "-o", f"{data}/new.csv")
        shutil.copy(f"{data}/new.csv", f"{data}/new.txt")
        assert run(*command).out == before
        Path(f"{data}/new.txt").unlink()
        run(*command, "-o", f"{data}/new.txt")
        assert run(*command).out == before
        message = refusal(run, "convert", data, *command[2:], "--to", "coco", "-o", f"{data}/{inner}")
        assert "the next run would read it as input" in message


def test_what_is_no_input_is_replaced(here: Path, run: Run) -> None:
    """An earlier result beside the data, a report among them, and no path that a word only looks like."""
    shutil.copytree(SHAPES_VOC / "VOC2007", "voc", ignore=shutil.ignore_patterns("JPEGImages"))
    for _ in range(2):
        run("stats", "voc", "--image-set", "test", "-o", "voc/stats.json")
        run("evaluate", "gt.json", "dt.json", "-o", "new.json")
        run("check", "gt.json", "dt.json", "--history", "h.jsonl", "--name", "h")
    assert len(Path("h.jsonl").read_text().splitlines()) == 2


def test_python_is_not_guarded_afterwards(here: Path) -> None:
    """What a script says by itself is meant: only a command refuses."""
    assert main(["evaluate", "gt.json", "dt.json", "-o", "gt.json"]) == 2
    table = load_ground_truth("gt.json")
    save_as(table, "gt.json")
    assert len(load_ground_truth("gt.json")) == len(table)


@pytest.mark.parametrize("description", ["data.yaml", "obj.data", "val.txt"])
def test_labels_that_a_description_names_elsewhere(description: str, here: Path, run: Run) -> None:
    for folder in ("images", "labels"):
        (here / "set" / folder).mkdir(parents=True)
    (here / "set" / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (here / "set" / "images" / "a.jpg").write_bytes(b"")
    (here / "set" / "notes.txt").write_text("mine")
    (here / "there").mkdir()
    images = (here / "set" / "images").resolve()
    (here / "there" / "val.txt").write_text(f"{images}/a.jpg\n")
    (here / "there" / "data.yaml").write_text(f"val: {images}\nnames: [cat]\n")
    (here / "there" / "obj.data").write_text("valid = val.txt\n")
    truth, label = f"there/{description}", "set/labels/a.txt"
    message = refusal(run, "evaluate", truth, "dt.json", "-o", label)
    assert message.startswith(f"--output must differ from the input. Got {label!r}"), message
    assert str(images.parent / "labels") in message
    if description == "obj.data":
        assert "there/val.txt" in refusal(run, "evaluate", truth, "dt.json", "-o", "there/val.txt")
