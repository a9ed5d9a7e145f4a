"""The page of partitions is the page of one process: every number, image and sentence, but for findings."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.errors import InputError
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.pages.choices import Choices
from boxscore.extensions.pages.conclusions import conclusions
from boxscore.extensions.pages.html import embedded_json
from boxscore.extensions.pages.view import ReportOptions, report_view
from boxscore.extensions.validation.digest import findings_of, page_findings
from boxscore.protocols import load_protocol
from support import limits
from support.evaluations import evaluation
from support.insides import asked_again
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def shown(view: dict[str, Any]) -> dict[str, Any]:
    """Return what a page holds besides findings, and what depends on them."""
    advice = view["confidence"] or {}
    known = {
        key: value for key, value in view.items() if key not in ("findings", "conclusions", "image_rows")
    }
    return json.loads(embedded_json({**known, "confidence": {**advice, "advice": ""}}))  # type: ignore[no-any-return]


CASES: list[tuple[dict[str, Any], str]] = [
    ({"seed": 0, "classes": 7, "boxes": 6}, "coco"),
    ({"seed": 1, "classes": 3, "noise": 14.0}, "voc2007"),
    ({"seed": 2, "classes": 40, "images": 60}, "voc2012"),
    ({"seed": 3, "classes": 1, "images": 12}, "coco"),
    ({"seed": 4, "classes": 5, "sizes": False, "noise": 2.0}, "tide"),
    ({"seed": 5, "classes": 6}, "openimages-challenge"),
]


@pytest.mark.parametrize(("drawn", "protocol"), CASES)
def test_the_page_of_one_process(
    drawn: dict[str, Any], protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.few_detections_asked_again(monkeypatch, 60)
    limits.few_scores_together(monkeypatch, 60)
    plain = evaluation(**drawn)
    FORMAT.save(plain.detections, tmp_path / "found.parquet")
    truth = plain.ground_truth
    found = boxscore.load_detections(tmp_path / "found.parquet", truth)
    whole = boxscore.evaluate(truth, found, protocol=protocol)
    options = ReportOptions(resamples=20, date="", gallery=10)
    with asked_again(truth, tmp_path / "found.parquet", load_protocol(protocol), partition=40) as result:
        of_whole, of_parts = (report_view(one, options=options) for one in (whole, result))
        said = [conclusions(one, findings_of(whole), Choices.of(one)) for one in (whole, result)]
    of_parts["sources"] = of_whole["sources"]
    pages = shown(of_whole), shown(of_parts)
    for key in pages[0]:
        assert pages[1][key] == pages[0][key], key
    assert said[0] == said[1]
    assert pages[0]["gallery"]["worst"]
    assert any(cell[4] for cell in pages[0]["confusion"]["top"])


def test_what_is_not_looked_for_is_on_the_page(tmp_path: Path) -> None:
    whole = evaluation(seed=1)
    FORMAT.save(whole.detections, tmp_path / "found.parquet")
    with asked_again(
        whole.ground_truth, tmp_path / "found.parquet", load_protocol("coco"), partition=60
    ) as result:
        view = report_view(result, options=ReportOptions(resamples=0, date=""))
        findings, _ = page_findings(result)
    codes = {finding.code for finding in findings}
    assert codes <= {finding.code for finding in findings_of(whole)}
    assert codes
    (last,) = (note.text for note in view["findings"] if not note.code)
    assert re.match(
        r"Box formats, class numbering, .* on a sample of 30 images; not checked: repeated ann", last
    )
    sampled = [finding.message for finding in findings if "sample" in finding.message]
    assert all("(in a sample of 30 images)" in message for message in sampled)


# ---------------------------------------------------------------- the commands

GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


def payload(page: str) -> Any:
    text = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert text is not None
    return json.loads(text[1])


@pytest.mark.parametrize("command", ["report", "evaluate"])
def test_the_command_writes_the_folder_of_one_process(
    command: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 50)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for image in json.loads(Path(GT).read_text())["images"]:
        (pictures / Path(image["file_name"]).name).write_bytes(PIXEL)
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--output", tmp_path / "found.parquet")
    call = [command, GT, tmp_path / "found.parquet", "--resamples", "20", "--image-folder", pictures]
    call += ["--tables", "csv", "--output", "csv", "--workers", "1"]
    one, parts = tmp_path / "one", tmp_path / "parts"
    whole = run(*call, "--report", one)
    told = run(*call, "--report", parts, "--memory-limit", "2GB")
    assert told.out == whole.out
    assert "note: not written with --memory-limit: tables/matches\n" in told.err
    assert "left out" not in whole.err
    assert f"report written to {parts / 'report.html'}" in told.err
    pages = [payload((folder / "report.html").read_text(encoding="utf-8")) for folder in (one, parts)]
    assert pages[0]["pictures"]
    for page in pages:
        page["confidence"].pop("advice")
    assert pages[0] == pages[1]
    files = {path.relative_to(one): path.read_bytes() for path in one.rglob("*") if path.is_file()}
    missing = {name for name in files if not (parts / name).exists()}
    assert missing == {Path("tables/matches.csv")}
    for name in files.keys() - missing - {Path("report.html")}:
        assert (parts / name).read_bytes() == files[name], name


def test_the_worst_images_are_drawn(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.small_partitions(monkeypatch, 50)
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--output", tmp_path / "found.parquet")
    call = ["draw", GT, tmp_path / "found.parquet", "--worst", "3", "--workers", "1"]
    run(*call, "--output", tmp_path / "one")
    run(*call, "--output", tmp_path / "parts", "--memory-limit", "2GB")
    one, parts = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("one", "parts")
    )
    assert len(one) == 3
    assert one == parts
    error = run.error(*call, "--images", "101", "--output", tmp_path / "none", "--memory-limit", "2GB")
    assert "--images must not be combined with --memory-limit" in error


def test_what_a_report_of_partitions_refuses(tmp_path: Path, run: Run) -> None:
    found = tmp_path / "found.parquet"
    run("convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--output", found)
    folder = tmp_path / "folder"
    for call, text in (
        (
            ["report", GT, DT, "--memory-limit", "2GB"],
            "--memory-limit must be used with detections in Parquet",
        ),
        (["report", GT, found, "--memory-limit", "1MB"], "--memory-limit must be "),
        (
            ["report", GT, found, "--memory-limit", "2GB", "--scoreless"],
            "--scoreless must not be combined with --memory-limit",
        ),
        (
            ["evaluate", GT, found, "--shard", "1/2", "--save-part", tmp_path / "part.npz"],
            "--report must not be combined with --shard",
        ),
    ):
        assert text in run.error(*call, "--report", folder)
        assert not folder.exists()


def test_the_images_that_are_shown_are_read_alone(tmp_path: Path) -> None:
    whole = evaluation(seed=2, images=40)
    FORMAT.save(whole.detections, tmp_path / "found.parquet")
    truth = whole.ground_truth
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=40) as result:
        rows = np.array([0, 3, 17, 39])
        alone, _ = source_of(result).tables_of(rows)
        assert alone.ground_truth.images.ids.tolist() == truth.images.ids[rows].tolist()
        for name in ("ground_truth", "detections"):
            table, every = getattr(alone, name), getattr(whole, name)
            chosen = np.flatnonzero(np.isin(every.image, rows))
            np.testing.assert_array_equal(table.boxes, every.boxes[chosen])
            np.testing.assert_array_equal(rows[table.image], every.image[chosen])
        chosen = np.flatnonzero(np.isin(whole.detections.image, rows))
        np.testing.assert_array_equal(alone.outcomes.detection, whole.outcomes.detection[chosen])
    with pytest.raises(InputError, match="still be available where they were matched"):
        type(result).of_numbers(result._numbers).source.tables_of(rows)
