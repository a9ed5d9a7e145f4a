"""A class that the detections call by another name: the message says which one it is and what to type."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, load_detections, load_ground_truth
from boxscore.cli import main
from boxscore.data import class_names, vocabulary
from boxscore.extensions.hints import left_out
from boxscore.extensions.hints.left_out import class_map_advice, likely_classes
from boxscore.validation import validate_files
from support.quiet import quiet
from support.running import Run

NAMES = ["bear", "dining table", "hot dog", "teddy bear"]


def write(
    folder: Path, names_of_detections: dict[str, Any], *, names: list[str] = NAMES
) -> tuple[Path, Path]:
    """Write 12 images with an object of each class, all found; ``said`` are classes called otherwise."""
    images = [{"id": i, "width": 900, "height": 900, "file_name": f"{i}.jpg"} for i in range(1, 13)]
    annotations = [
        {"image_id": i, "category_id": k + 1, "bbox": [100 * k + i, 10, 60, 50], "area": 3000, "iscrowd": 0}
        for i in range(1, 13)
        for k in range(len(names))
    ]
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(names)]
    truth = {
        "images": images,
        "annotations": [{"id": n, **one} for n, one in enumerate(annotations, start=1)],
        "categories": categories,
    }
    results = []
    for one in annotations:
        name = names[one["category_id"] - 1]
        results.append(
            {
                "image_id": one["image_id"],
                "category_id": names_of_detections.get(name, name),
                "bbox": one["bbox"],
                "score": 0.001 + 0.999 / (1 + one["image_id"] + one["category_id"]),
            }
        )
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    return folder / "gt.json", folder / "dt.json"


def parts(detections: Detections) -> tuple[Any, ...]:
    return tuple(getattr(detections, name).tolist() for name in ("image", "category", "boxes", "scores"))


LEFT_OUT = "dt.json: ignoring 12 detections of 1 class that the ground truth does not have: diningtable. Is diningtable the class dining table (which lacks detections)? Use --class-map FILE with the line diningtable,dining table"


def test_the_class_and_the_option_are_named(tmp_path: Path) -> None:
    truth_file, file = write(tmp_path, {"dining table": "diningtable"})
    truth = load_ground_truth(truth_file)
    with pytest.warns(BoxscoreWarning) as caught:
        given = load_detections(file, truth)
    (text,) = (str(one.message) for one in caught)
    assert text == f"{tmp_path}/{LEFT_OUT} (in Python class_map={{'diningtable': 'dining table'}})."
    typed = load_detections(file, truth, class_map={"diningtable": "dining table"})
    assert (len(given), len(typed)) == (36, 48)
    assert boxscore.evaluate(truth, typed)["AP"] == pytest.approx(1.0, abs=1e-12)
    (tmp_path / "map.csv").write_text("diningtable,dining table\n")
    assert parts(load_detections(file, truth, class_map=tmp_path / "map.csv")) == parts(typed)


def test_the_command_line_says_the_option_with_strict_too(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"dining table": "diningtable"})
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "--gt", "gt.json", "--dt", "dt.json"]
    assert run.error(*command, "--strict") == f"boxscore: error: {LEFT_OUT}.\n"
    assert run(*command).err.startswith(f"boxscore: warning: {LEFT_OUT}.\n")


def test_strict_names_the_map_that_the_boxes_show(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {name: number for number, name in enumerate(NAMES)})
    monkeypatch.chdir(tmp_path)
    assert run.error("evaluate", "--gt", "gt.json", "--dt", "dt.json", "--strict") == (
        "boxscore: error: dt.json: ignoring 12 detections of 1 class that the ground truth does not have: 0. Use --class-map auto.\n"
    )


def test_auto_fills_unknown_names_and_leaves_the_others(tmp_path: Path) -> None:
    """A detector that calls every teddy bear a bear has no other list of classes."""
    names = ["bear", "cat", "dining table", "dog", "fox", "teddy bear"]
    truth_file, file = write(tmp_path, {"dining table": "diningtable", "teddy bear": "bear"}, names=names)
    content = json.loads(truth_file.read_text())
    content["annotations"] = [  # few bears, so that most of what is called bear is a teddy bear
        one for one in content["annotations"] if one["category_id"] != 1 or one["image_id"] <= 3
    ]
    truth_file.write_text(json.dumps(content))
    rows = [
        one
        for one in json.loads(file.read_text())
        if one["category_id"] != "bear" or one["bbox"][0] > 300 or one["image_id"] <= 3
    ]
    file.write_text(json.dumps(rows))
    truth = load_ground_truth(truth_file)
    with pytest.warns(BoxscoreWarning) as caught:
        auto = load_detections(file, truth, class_map="auto")
    assert [str(one.message) for one in caught] == [
        f"{file}: class map by-evidence (diningtable is dining table): with class names as given, 39 of 63 confident detections agree with the annotation they overlap; with another class list, 51 do."
    ]
    with quiet():
        typed = load_detections(file, truth, class_map={"diningtable": "dining table"})
    assert parts(auto) == parts(typed)


def test_validate_says_what_the_class_map_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"dining table": "diningtable"})
    monkeypatch.chdir(tmp_path)
    main(["validate", "gt.json", "dt.json"])
    assert (
        """\
error: classes-numbered-differently (1)
    classes are named differently: with class names as given, 36 of 48 confident
    detections agree with the annotation they overlap; with another class list,
    48 do. Use --class-map auto
    With --class-map auto, AP would be 1.0000 instead of 0.7500 (+0.2500)
      diningtable is dining table (2)

warning: unknown-class (12)
    12 detections (25%) of 1 class that the ground truth does not have are
    ignored. Is diningtable the class dining table (which lacks detections)? Use
    --class-map FILE with the line diningtable,dining table
    With --class-map FILE, AP would be 1.0000 instead of 0.7500 (+0.2500)
      class diningtable: 12
"""
        in capsys.readouterr().out
    )
    findings = validate_files("gt.json", "dt.json")
    (finding,) = (one for one in findings if one.code == "unknown-class")
    truth = load_ground_truth("gt.json")
    typed = load_detections("dt.json", truth, class_map={"diningtable": "dining table"})
    assert finding.repaired == boxscore.evaluate(truth, typed)["AP"]
    assert finding.message.endswith("(in Python class_map={'diningtable': 'dining table'})")


@pytest.mark.parametrize(
    ("words", "labels", "found"),
    [
        (["Hot_Dog"], ["hot dog", "dog"], {"Hot_Dog": "hot dog"}),
        (["hot-dog", "hotdog"], ["hot dog"], {}),  # which of the two?
        (["hotdog"], ["hot dog", "hot-dog"], {}),
        (["aeroplane"], ["airplane", "bird"], {"aeroplane": "airplane"}),
        (["aeroplane"], ["airplane", "aeroplanes"], {}),
        (["unicorn"], ["zebra"], {}),
        (["77", "1.0"], ["78", "1.00"], {}),  # numbers are not misspelt
        (["STRASSE"], ["straße"], {"STRASSE": "straße"}),
        (["a\nb"], ["a b"], {}),  # cannot be typed
        (["", " "], ["", "-"], {}),
        ([], ["cat"], {}),
    ],
)
def test_likely_classes(words: list[str], labels: list[str], found: dict[str, str]) -> None:
    assert likely_classes(words, labels) == found


def test_work_follows_the_number_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of all classes were made once for each class, and each name was compared with each."""
    calls: Counter[str] = Counter()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            calls[function.__name__] += 1
            return function(*arguments, **options)

        return called

    monkeypatch.setattr(vocabulary, "class_labels", counted(class_names.class_labels))
    monkeypatch.setattr(left_out, "_folded", counted(left_out._folded))
    K = 300
    rows = [*range(K)]
    boxes = [[0, 0, 9, 9]] * K
    truth = GroundTruth.from_arrays(rows, rows, boxes, categories={k: f"class {k}x" for k in rows})
    other = {K + k: f"Class_{k}x" for k in rows[1:]}
    detections = Detections.from_arrays(rows[1:], [*other], boxes[1:], [0.5] * (K - 1), categories=other)
    with pytest.warns(BoxscoreWarning, match="Class_1x the class class 1x"):
        boxscore.evaluate(truth, detections)
    assert calls["class_labels"] <= 20
    assert calls["_folded"] <= 10 * K


def test_what_is_typed_for_several_and_for_commas() -> None:
    assert class_map_advice({"hotdog": "hot dog", "ovenold": "oven, old"}) == (
        'Use --class-map FILE with the lines hotdog,hot dog and ovenold,"oven, old" '
        "(in Python class_map={'hotdog': 'hot dog', 'ovenold': 'oven, old'})"
    )
    many = class_map_advice({f"c_{n}": f"c {n}" for n in range(6)})
    assert re.search(r"c_3,c 3 and so on \(in Python class_map=\{.*'c_3': 'c 3', \.\.\.\}\)$", many)
