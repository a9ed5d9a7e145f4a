"""The way back to the labels: proposals written, vetted, applied; nothing else is touched."""

from __future__ import annotations

import dataclasses
import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import label_suspects, vetted_suspects
from boxscore.errors import InputError
from boxscore.extensions.formats.proposals import write_proposals
from boxscore.extensions.labels.label_edits import labels_of
from boxscore.extensions.labels.suspects import reasons
from boxscore.extensions.labels.vetting import NextFifty, in_vocabulary, next_fifty

SAMPLE = Path(__file__).parents[3] / "datasets" / "shapes_coco"
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


@pytest.mark.parametrize(
    ("tool", "name"),
    [("labelstudio", "a.json"), ("cvat", "a.xml"), ("coco", "a.json"), ("fiftyone", "a.json")],
)
def test_written_files_are_read_without_loss(
    evaluation: boxscore.Evaluation, tmp_path: Path, tool: str, name: str
) -> None:
    suspects = written(evaluation, tmp_path / name, tool)
    table = in_vocabulary(boxscore.load_ground_truth(tmp_path / name), evaluation.ground_truth)
    found = evaluation.detections.take(suspects.detection)
    names = [found.images.file_names[i] for i in found.image]
    read = [table.images.file_names[i] for i in table.image]
    for image, category, box in zip(names, found.category, found.boxes, strict=True):
        rows = [n for n, one in enumerate(read) if one == image]
        near = [
            n
            for n in rows
            if np.abs(table.boxes[n] - box).max() < (1e-9 if tool in ("labelstudio", "fiftyone") else 1e-300)
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
    assert next(iter(labels.values()))[0]["attributes"] == {"tags": ["suspect", text]}


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
    assert done.next_fifty == next_fifty(done.accepted)


def by_loops(accepted: list[bool], confidence: float) -> tuple[float, int, int]:
    """The estimate of the next fifty, one end and one slope at a time."""
    total = [0.0] * 51
    falls = np.linspace(0, 3, 25).tolist()
    likely = [math.exp(-fall * fall / 2) for fall in falls]
    likely[0] = sum(likely[1:])
    for share in (np.arange(1, 100) - 0.5) / 99:
        for fall, weight in zip(falls, likely, strict=True):
            weight /= math.sqrt(share * (1 - share))
            for n, one in enumerate(accepted):
                there = share_at(share, fall * (len(accepted) - n - 0.5) / 50)
                weight *= there if one else 1 - there
            chance = [1.0]
            for n in range(50):
                there = share_at(share, -fall * (n + 0.5) / 50)
                chance = [
                    (chance[k] * (1 - there) if k < len(chance) else 0) + (chance[k - 1] * there if k else 0)
                    for k in range(len(chance) + 1)
                ]
            total = [old + weight * new for old, new in zip(total, chance, strict=True)]
    whole = sum(total)
    up_to = [sum(total[: k + 1]) / whole for k in range(51)]
    tail = (1 - confidence) / 2
    ends = [min(k for k in range(51) if up_to[k] >= part) for part in (tail, 1 - tail)]
    return sum(k * value for k, value in enumerate(total)) / whole, ends[0], ends[1]


def share_at(share: float, step: float) -> float:
    return 1 / (1 + (1 - share) / share * math.exp(-step))


@pytest.mark.long
@pytest.mark.parametrize(
    "accepted",
    [[True] * 3, [True, True, False, True, False], [True, False] * 24 + [True], [True, False] * 25],
)
def test_the_next_fifty_by_loops(accepted: list[bool]) -> None:
    expected, low, high = by_loops(accepted, 0.9)
    ours = next_fifty(np.array(accepted), 0.9)
    assert ours.expected == pytest.approx(expected, rel=1e-12)
    if len(accepted) < 50:
        assert np.isnan(ours[1:]).all()
    else:
        assert ours[1:] == (low, high)


FALLING = {
    "a tenth": lambda n: np.full(n, 0.1),
    "a half": lambda n: np.full(n, 0.5),
    "nearly all": lambda n: np.full(n, 0.97),
    "slowly fewer": lambda n: 0.9 - 0.4 * np.arange(n) / 200,
    "half as many after a hundred": lambda n: 0.8 * 0.5 ** (np.arange(n) / 100),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FALLING)
def test_the_interval_holds_the_number_of_the_next_fifty(name: str) -> None:
    """In 95% of lists with a known share, give or take three standard errors of 200 of them."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        worth = rng.random(100) < FALLING[name](100)
        _, low, high = next_fifty(worth[:50])
        held += low <= worth[50:].sum() <= high
    assert held / 200 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_nothing_accepted_changes_nothing(evaluation: boxscore.Evaluation) -> None:
    suspects = label_suspects(evaluation, limit=4)
    empty = evaluation.ground_truth.take(slice(0, 0))
    done = vetted_suspects(evaluation, suspects, empty, resamples=20)
    assert not done.accepted.any()
    assert (done.before, done.low, done.high) == (done.after, 0, 0)
    assert np.isnan(done.next_fifty[1:]).all()
    assert done.next_fifty.expected < 10
    words = f"about {done.next_fifty.expected:.0f} of the next 50 are worth reviewing"
    assert done.sentences[-1] == f"{words} (an interval needs 50 vetted)"
    enough = dataclasses.replace(done, next_fifty=NextFifty(4.4, 1.0, 9.0))
    condition = "if the share of real errors falls no faster than by half in fifty"
    words = "about 4 of the next 50 are worth reviewing"
    assert enough.sentences[-1] == f"{words} (1 to 9 {condition})"
    assert math.isnan(next_fifty(np.empty(0, dtype=bool)).expected)


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


def as_label_studio_exports(path: Path) -> None:
    """One box deleted, and the keys that an export adds."""
    tasks = json.loads(path.read_text())
    for number, task in enumerate(tasks, start=1):
        task |= {"id": number, "inner_id": number, "drafts": [], "predictions": [], "total_annotations": 1}
        for one in task["annotations"]:
            one |= {"id": number, "completed_by": 1, "was_cancelled": False, "lead_time": 3.2}
    tasks[0]["annotations"][0]["result"].pop(0)
    path.write_text(json.dumps(tasks))


def as_cvat_exports(path: Path) -> None:
    """One box deleted, and a head with the labels of the task."""
    root = ElementTree.parse(path).getroot()
    image = root.find("image")
    assert image is not None
    image.remove(image.findall("box")[0])
    meta = root.find("meta")
    if meta is None:
        meta = ElementTree.Element("meta")
        root.insert(1, meta)
    ElementTree.SubElement(meta, "dumped").text = "2026-01-01 00:00:00+00:00"
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def as_fiftyone_exports_coco(path: Path) -> None:
    """One box deleted; annotations have attributes that are their fields there."""
    content = json.loads(path.read_text())
    content["annotations"].pop(0)
    for one in content["annotations"]:
        one |= {"supercategory": None, "attributes": {"suspect": one["suspect"]}}
    path.write_text(json.dumps({"info": {"description": "FiftyOne"}, "licenses": [], **content}))


def as_fiftyone_exports_labels(path: Path) -> None:
    """One box deleted: ``FiftyOneImageDetectionDataset`` of a data set without classes of its own."""
    content = json.loads(path.read_text())
    for boxes in content["labels"].values():
        for one in boxes:
            del one["attributes"]
    next(iter(content["labels"].values())).pop(0)
    path.write_text(json.dumps({"classes": None, "labels": content["labels"]}))


def as_fiftyone_exports_samples(path: Path) -> None:
    """One box deleted: ``FiftyOneDataset``, with the keys that FiftyOne 1.x adds."""
    sizes = {one["file_name"]: one for one in json.loads(GT.read_text())["images"]}
    samples = []
    for name, boxes in json.loads(path.read_text())["labels"].items():
        image = sizes[f"{name}.png"]
        detections = [
            {
                "_id": {"$oid": "6b08bc3832931c650a476bd9"},
                "_cls": "Detection",
                **one,
                "attributes": {},
                "tags": one["attributes"]["tags"],
                "mask": None,
                "confidence": None,
            }
            for one in boxes
        ]
        metadata = {"_cls": "ImageMetadata", "width": image["width"], "height": image["height"]}
        samples.append(
            {
                "_id": {"$oid": "6b08bc3832931c650a476bd7"},
                "filepath": f"data/{name}.png",
                "tags": [],
                "metadata": metadata,
                "_media_type": "image",
                "ground_truth": {"_cls": "Detections", "detections": detections},
            }
        )
    samples[0]["ground_truth"]["detections"].pop(0)
    path.write_text(json.dumps({"samples": samples}))


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "name", "export"),
    [
        ("labelstudio", "a.json", as_label_studio_exports),
        ("cvat", "a.xml", as_cvat_exports),
        ("coco", "a.json", as_fiftyone_exports_coco),
        ("fiftyone", "a.json", as_fiftyone_exports_labels),
        ("fiftyone", "a.json", as_fiftyone_exports_samples),
    ],
)
def test_the_way_there_and_back(
    tool: str, name: str, export: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [str(GT), str(DT), "--top", "8"]
    tasks, fixed = tmp_path / name, tmp_path / "fixed.json"
    assert main(["suspects", *call, "--write", str(tasks), "--tool", tool]) == 0
    export(tasks)
    capsys.readouterr()
    assert main(["fix", *call, "--vetted", str(tasks), "--output", str(fixed)]) == 0
    said = capsys.readouterr()
    assert "7 of 8 suspects accepted" in said.out + said.err
    old, new = (json.loads(path.read_text())["annotations"] for path in (GT, fixed))
    assert sum(one != other for one, other in zip(old, new, strict=False)) + len(new) - len(old) == 7


@pytest.mark.long
def test_what_was_moved_in_fiftyone_is_where_it_was_moved_to(tmp_path: Path) -> None:
    call = [str(GT), str(DT), "--top", "8"]
    tasks, fixed = tmp_path / "a.json", tmp_path / "fixed.json"
    assert main(["suspects", *call, "--write", str(tasks), "--tool", "fiftyone"]) == 0
    content = json.loads(tasks.read_text())
    (found,) = content["labels"]["000000000130"]  # a missing annotation, in an image of 160 x 120
    found["bounding_box"] = [0.1, 0.25, 0.25, 0.35]
    tasks.write_text(json.dumps(content))
    assert main(["fix", *call, "--vetted", str(tasks), "--output", str(fixed)]) == 0
    new = json.loads(fixed.read_text())["annotations"][-1]
    assert new["image_id"] == 130
    assert new["bbox"] == pytest.approx([16, 30, 40, 42], rel=1e-15)


def test_fractions_of_images_without_sizes_are_refused(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays(["a"], ["cat"], [[0, 0, 9, 9]])
    labels = {"a": [{"label": "cat", "bounding_box": [0, 0, 0.5, 0.5]}]}
    (tmp_path / "labels.json").write_text(json.dumps({"labels": labels}))
    with pytest.raises(InputError, match=r"labels\.json must be in pixels if .* Got fractions;"):
        in_vocabulary(boxscore.load_ground_truth(tmp_path / "labels.json"), truth)


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
    assert "--tool must be used together with --write. Got cvat." in capsys.readouterr().err
    both = ["--write", str(tmp_path / "a"), "--vetted", str(GT)]
    assert main([*call, *both]) == 2
    assert "--write must not be combined with --vetted. Got both." in capsys.readouterr().err
