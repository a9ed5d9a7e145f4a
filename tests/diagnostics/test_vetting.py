"""The way back to the labels: proposals written, vetted, applied; nothing else is touched."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import label_suspects, vetted_suspects
from boxscore.diagnostics.label_edits import labels_of
from boxscore.diagnostics.suspects import reasons
from boxscore.errors import InputError
from boxscore.formats.proposals import write_proposals

SAMPLE = Path(__file__).parents[2] / "datasets" / "shapes_coco"
GT, DT = SAMPLE / "instances.json", SAMPLE / "detections.json"

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


@pytest.fixture(scope="module")
def evaluation() -> boxscore.Evaluation:
    truth = boxscore.load_ground_truth(GT)
    return boxscore.evaluate(truth, boxscore.load_detections(DT, truth), digest=False)


def written(evaluation: boxscore.Evaluation, path: Path, tool: Any, limit: int = 12) -> Any:
    suspects = label_suspects(evaluation, limit=limit)
    write_proposals(labels_of(evaluation, suspects.detection), reasons(suspects), path, tool=tool)
    return suspects


@pytest.mark.parametrize(("tool", "name"), [("labelstudio", "a.json"), ("cvat", "a.xml"), ("coco", "a.json")])
def test_written_files_are_read_without_loss(
    evaluation: boxscore.Evaluation, tmp_path: Path, tool: str, name: str
) -> None:
    suspects = written(evaluation, tmp_path / name, tool)
    table = boxscore.load_ground_truth(tmp_path / name)
    found = evaluation.detections.take(suspects.detection)
    names = [found.images.file_names[i] for i in found.image]
    read = [table.images.file_names[i] for i in table.image]
    for image, category, box in zip(names, found.category, found.boxes, strict=True):
        rows = [n for n, one in enumerate(read) if one == image]
        near = [
            n
            for n in rows
            if np.abs(table.boxes[n] - box).max() < (1e-9 if tool == "labelstudio" else 1e-300)
        ]
        assert [table.categories.names[table.category[n]] for n in near] == [found.categories.names[category]]
    assert len(table) == len(suspects)


def test_the_reason_is_a_tag(evaluation: boxscore.Evaluation, tmp_path: Path) -> None:
    suspects = written(evaluation, tmp_path / "a.json", "labelstudio", limit=1)
    (text,) = reasons(suspects)
    assert text == "wrong class: annotated as hexagon, score 0.74"
    (task,) = json.loads((tmp_path / "a.json").read_text())
    assert task["annotations"][0]["result"][0]["meta"]["text"] == [text]
    written(evaluation, tmp_path / "a.xml", "cvat", limit=1)
    assert ElementTree.parse(tmp_path / "a.xml").findtext(".//attribute[@name='suspect']") == text
    written(evaluation, tmp_path / "b.json", "coco", limit=1)
    assert json.loads((tmp_path / "b.json").read_text())["annotations"][0]["suspect"] == text
    written(evaluation, tmp_path / "c.json", "fiftyone", limit=1)
    labels = json.loads((tmp_path / "c.json").read_text())["labels"]
    assert next(iter(labels.values()))[0]["tags"] == ["suspect", text]


def test_what_is_accepted_is_applied(evaluation: boxscore.Evaluation, tmp_path: Path) -> None:
    suspects = written(evaluation, tmp_path / "a.json", "coco")
    content = json.loads((tmp_path / "a.json").read_text())
    refused = [content["annotations"].pop(n)["id"] - 1 for n in (5, 2)]  # as the person deletes them
    (tmp_path / "a.json").write_text(json.dumps(content))
    done = vetted_suspects(
        evaluation, suspects, boxscore.load_ground_truth(tmp_path / "a.json"), resamples=50
    )
    assert np.flatnonzero(~done.accepted).tolist() == sorted(refused)
    assert done.before == evaluation["AP"]
    assert done.after == boxscore.evaluate(done.ground_truth, evaluation.detections)["AP"]
    assert done.low < done.after - done.before < done.high
    truth = evaluation.ground_truth
    for n in np.flatnonzero(done.accepted).tolist():
        kind, row, at = suspects.kind[n], suspects.detection[n], suspects.truth[n]
        if kind == 1:
            assert (done.ground_truth.boxes == evaluation.detections.boxes[row]).all(axis=1).any()
        else:
            new = done.ground_truth.ids.tolist().index(truth.ids[at])
            box = truth.boxes[at] if kind == 0 else evaluation.detections.boxes[row]
            assert done.ground_truth.boxes[new].tolist() == box.tolist()
            assert done.ground_truth.category[new] == evaluation.detections.category[row]
    expected, low, high = done.next_fifty
    assert expected == pytest.approx(50 * 10 / 12)
    # Wilson's interval of 10 of 12, by its formula solved for the share: |p - share| = z sqrt(p (1 - p) / n).
    z = 1.959963984540054
    for end in (low / 50, high / 50):
        assert abs(end - 10 / 12) == pytest.approx(z * np.sqrt(end * (1 - end) / 12), abs=1e-12)


def test_nothing_accepted_changes_nothing(evaluation: boxscore.Evaluation) -> None:
    suspects = label_suspects(evaluation, limit=4)
    empty = evaluation.ground_truth.take(slice(0, 0))
    done = vetted_suspects(evaluation, suspects, empty, resamples=20)
    assert not done.accepted.any()
    assert (done.before, done.low, done.high) == (done.after, 0, 0)
    assert done.next_fifty.expected == done.next_fifty.low == 0


def test_other_images_are_refused(evaluation: boxscore.Evaluation) -> None:
    other = boxscore.GroundTruth.from_arrays(["x.png"], ["circle"], [[0, 0, 9, 9]])
    with pytest.raises(InputError, match=r"an image of arrays must be in the ground truth\. Got 'x.png'"):
        vetted_suspects(evaluation, label_suspects(evaluation, limit=4), other)


def test_tools_that_need_sizes(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]])
    with pytest.raises(InputError, match=r"the size of an image must be known for this tool\. Got '1'"):
        write_proposals(truth, ["why"], tmp_path / "a.json", tool="labelstudio")


@pytest.mark.long
def test_fix_touches_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = GT.read_bytes()
    call = [str(GT), str(DT), "--top", "12"]
    tasks, fixed = str(tmp_path / "tasks.json"), tmp_path / "fixed.json"
    assert main(["suspects", *call, "--write", tasks]) == 0
    assert main(["suspects", *call, "--vetted", tasks]) == 0
    said = capsys.readouterr().out
    assert "12 of 12 suspects accepted" in said
    assert main(["fix", *call, "--vetted", tasks, "--output", str(fixed)]) == 0
    assert GT.read_bytes() == before
    old, new = json.loads(before), json.loads(fixed.read_text())
    assert {key: value for key, value in new.items() if key != "annotations"} == {
        key: value for key, value in old.items() if key != "annotations"
    }
    count = len(old["annotations"])
    changed = [n for n in range(count) if old["annotations"][n] != new["annotations"][n]]
    assert len(changed) + len(new["annotations"]) - count == 12
    truth = boxscore.load_ground_truth(fixed)
    after = boxscore.evaluate(truth, boxscore.load_detections(DT, truth))["AP"]
    assert f"{after:.4f} after" in said


def test_fix_never_overwrites_the_original(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.json"
    own.write_bytes(GT.read_bytes())
    tasks = str(tmp_path / "tasks.json")
    assert main(["suspects", str(own), str(DT), "--top", "3", "--write", tasks]) == 0
    assert main(["fix", str(own), str(DT), "--top", "3", "--vetted", tasks, "--output", str(own)]) == 2
    assert own.read_bytes() == GT.read_bytes()


def test_options_that_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["suspects", str(GT), str(DT)]
    assert main([*call, "--tool", "cvat"]) == 2
    assert "--tool must be beside --write. Got cvat." in capsys.readouterr().err
    both = ["--write", str(tmp_path / "a"), "--vetted", str(GT)]
    assert main([*call, *both]) == 2
    assert "--write must be without --vetted. Got both." in capsys.readouterr().err
