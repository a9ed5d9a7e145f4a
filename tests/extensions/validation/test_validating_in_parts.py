"""Findings of partitions: what adds up is what both tables at once say, the rest is of a sample."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.data.alignment import of_images
from boxscore.extensions.validation.in_parts import ADDED, LEFT_OUT, findings_of_shares, share_of
from boxscore.protocols import load_protocol
from boxscore.validation import Finding, validate, validate_files
from extensions.validation.test_misnamed import tables
from extensions.validation.test_validation import CASES, Spoil, data, swapped_classes
from support import limits
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


def said(findings: Sequence[Finding]) -> dict[str, tuple[str, int, str]]:
    """Return what adds up; boxes that are in another form as a whole are of the sample."""
    return {one.code: (one.severity, one.count, one.message) for one in findings if one.code in ADDED}


def written(folder: Path, spoil: Spoil) -> tuple[Path, Path]:
    """Write spoilt data as Parquet; ``pytest.skip`` where no table can be made of it."""
    truth, results = data()
    spoil(truth, results)
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    try:
        table = boxscore.load_ground_truth(folder / "gt.json")
        found = boxscore.load_detections(folder / "dt.json", table)
        FORMAT.save(table, folder / "gt.parquet")
        FORMAT.save(found, folder / "dt.parquet")
        boxscore.load_detections(folder / "dt.parquet", boxscore.load_ground_truth(folder / "gt.parquet"))
    except boxscore.InputError:
        pytest.skip("a loader refuses it")
    return folder / "gt.parquet", folder / "dt.parquet"


@pytest.mark.parametrize("truth_in_parquet", [True, False])
@pytest.mark.parametrize("spoil", [case[0] for case in CASES], ids=[case[0].__name__ for case in CASES])
def test_what_adds_up_is_what_all_rows_say(
    spoil: Spoil, truth_in_parquet: bool, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 30)
    truth, found = written(tmp_path, spoil)
    if not truth_in_parquet:
        truth = tmp_path / "gt.json"
    whole = said(validate_files(truth, found))
    call = ["validate", truth, found, "--memory-limit", "2GB", "--workers", "1", "--output", "json"]
    text, errors = run(*call, status=(0, 1))
    findings = [
        Finding(one["code"], one["kind"], one["severity"], one["count"], one["message"])
        for one in json.loads(text)["findings"]
    ]
    assert said(findings) == whole
    assert not {one.code for one in findings} & {*LEFT_OUT}
    assert "not checked: repeated annotation ids" in errors


def test_examples_name_rows_of_the_files(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count from the first file on, in both sides."""
    limits.small_partitions(monkeypatch, 30)

    def spoil(truth: dict[str, Any], results: list[dict[str, Any]]) -> None:
        truth["annotations"][-1]["bbox"][2] = 0
        results[-1]["bbox"][3] = 0

    truth, found = written(tmp_path, spoil)
    expected = {one.code: one.examples for one in validate_files(truth, found)}
    call = ["validate", truth, found, "--memory-limit", "2GB", "--workers", "1", "--output", "json"]
    for one in json.loads(run(*call).out)["findings"]:
        if one["code"].endswith("-degenerate"):
            assert tuple(one["examples"]) == expected[one["code"]]
            assert one["examples"][0].startswith(("annotation 47 (id 48) of ", "detection 96 of "))


def test_what_needs_all_rows_is_of_a_sample(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 30)

    truth, found = written(tmp_path, swapped_classes)
    call = ["validate", truth, found, "--memory-limit", "2GB", "--workers", "1", "--output", "json"]
    first = json.loads(run(*call, status=1).out)["findings"][0]
    assert first["code"] == "classes-numbered-differently"
    assert re.match(r"detections of [^:]+ \(in a sample of 12 images\)(: |\. |$)", first["message"])
    assert first["effect"]["difference"] > 0.2


@pytest.mark.parametrize("protocol", ["coco", "coco-keypoints"])
def test_boxes_around_keypoints_are_not_judged(protocol: str) -> None:
    """Keypoints of whole pixels are usual, and the boxes around them are nobody's."""
    rng = np.random.default_rng(0)
    image = np.repeat(np.arange(30), 2)
    points = np.dstack([rng.uniform(0, 50, (60, 17, 2)), np.full((60, 17), 2)])
    corners = np.hstack([points[:, :, :2].min(axis=1), points[:, :, :2].max(axis=1)])
    truth = GroundTruth.from_arrays(image, [0] * 60, corners, keypoints=points, area=np.full(60, 900.0))
    found = Detections.from_arrays(image, [0] * 60, None, rng.random(60), keypoints=points.round())
    rules = load_protocol(protocol)
    shares = []
    for number in range(3):
        images = np.arange(number, 30, 3)
        rows = np.flatnonzero(np.isin(image, images))
        tables = (of_images(table, images, rows) for table in (truth, found))
        shares.append(share_of(*tables, rows, rows, protocol=rules, partitions=3))
    expected = said(validate(truth, found, protocol=rules))
    assert said(findings_of_shares(shares, rules)[0]) == expected
    assert "integer-coordinates" not in expected


@pytest.mark.parametrize("protocol", ["referring", "scoreless"])
def test_scores_that_the_protocol_does_not_read_are_there(
    protocol: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 30)
    sides = written(tmp_path, lambda truth, results: None)
    whole = said(validate_files(*sides, protocol=protocol))
    call = ["--protocol", protocol, "--memory-limit", "2GB", "--workers", "1", "--output", "json"]
    found = json.loads(run("validate", *sides, *call, status=(0, 1)).out)["findings"]
    assert {one["code"] for one in found} & set(ADDED) == set(whole)
    assert "no-scores" not in whole


def test_a_class_that_is_always_called_another_is_of_the_sample(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only of classes that no detection of any partition has."""
    names = {"hot dog": (40, ["dog"]), "dog": (60, ["dog"]), "cat": (40, ["bird"]), "bird": (8, ["bird"])}
    truth, found = tables(names)
    cat = truth.categories.labels.index("cat")
    one_cat = np.where(np.arange(len(found)) == len(found) - 1, cat, found.category).astype(np.int32)
    for number, (detections, said) in enumerate([(found, 2), (found.replaced(category=one_cat), 1)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        FORMAT.save(truth, folder / "gt.parquet")
        FORMAT.save(detections, folder / "dt.parquet")
        limits.small_partitions(monkeypatch, 60)
        call = [
            "validate",
            folder / "gt.parquet",
            folder / "dt.parquet",
            "--memory-limit",
            "2GB",
            "--output",
            "json",
        ]
        findings = {one["code"]: one for one in json.loads(run(*call, status=(0, 1)).out)["findings"]}
        finding = findings["class-always-called-another"]
        noun = "1 class is" if said == 1 else "2 classes are"
        head = f"{noun} always predicted as another class (in a sample of 37 images): "
        assert finding["message"].startswith(head)
        assert finding["count"] == said
        texts = [text.partition(" localized objects of class ")[2] for text in finding["examples"]]
        assert texts == ["cat are predicted as bird", "hot dog are predicted as dog"][2 - said :]


def test_what_is_refused(tmp_path: Path, run: Run) -> None:
    truth, found = written(tmp_path, lambda truth, results: None)
    assert "--memory-limit must be used together with --detections" in run.error(
        "validate", truth, "--memory-limit", "1GB"
    )
    error = run.error("validate", truth, tmp_path / "dt.json", "--memory-limit", "1GB")
    assert "--memory-limit must be used with detections in Parquet" in error
    error = run.error("validate", truth, found, "--scoreless", "--memory-limit", "1GB")
    assert "--scoreless must not be combined with --memory-limit" in error
    assert "No such file" in run.error("validate", truth, tmp_path / "none", "--memory-limit", "1GB")


def test_an_unlisted_image_is_a_finding(tmp_path: Path, run: Run) -> None:
    _, found = written(tmp_path, lambda truth, results: None)
    content = json.loads((tmp_path / "gt.json").read_text())
    gone = content["images"].pop()["id"]
    content["annotations"] = [one for one in content["annotations"] if one["image_id"] != gone]
    (tmp_path / "fewer.json").write_text(json.dumps(content))
    out = run("validate", tmp_path / "fewer.json", found, "--memory-limit", "2GB", status=1).out
    assert "detections-refused" in out
    assert f"Got {gone}" in " ".join(out.split())


def test_detections_without_scores(tmp_path: Path, run: Run) -> None:
    truth, _ = written(tmp_path, lambda truth, results: None)
    table = boxscore.load_ground_truth(tmp_path / "gt.json")
    found = boxscore.load_detections(tmp_path / "dt.json", table).without_scores()
    FORMAT.save(found, tmp_path / "plain.parquet")
    out = run("validate", truth, tmp_path / "plain.parquet", "--memory-limit", "2GB").out
    assert "no-scores" in out
    assert "boxscore|scoreless" in out
