"""``--memory-limit`` of the commands that weigh images: the numbers of one process, from parts on disk."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from support import limits
from support.running import Run
from support.samples import DT, GT

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("parquet") / "found"
    main(
        [
            "convert",
            "--gt",
            GT,
            "--dt",
            DT,
            "--output",
            str(folder),
            "--to",
            "parquet",
            "--partitions",
            "3",
        ]
    )
    return str(folder)


def test_bootstrap(parquet: str, run: Run) -> None:
    call = ["bootstrap", GT, parquet, "--per-class", "--output", "json"]
    assert run(*call, "--memory-limit", "1GB").out == run(*call).out


@pytest.mark.long
def test_compare(parquet: str, run: Run) -> None:
    call = ["compare", GT, parquet, parquet, "--names", "a", "b", "--resamples", "20", "--output", "csv"]
    whole, parts = (run(*call, *more).out for more in ([], ["--memory-limit", "1GB"]))
    assert len(whole.splitlines()) == 13
    assert parts == whole
    run(*call[:-1], "text", "--memory-limit", "1GB")


def test_compare_says_whether_ties_decide(tmp_path: Path, run: Run) -> None:
    """Detectors whose difference turns with the order of equal scores, and one whose does not."""
    rng = np.random.default_rng(34)
    truth = boxscore.load_ground_truth(GT)
    found = boxscore.load_detections(DT, truth)
    paths = []
    for number, (decimals, noise) in enumerate(((1, 0.05), (1, 0.05), (6, 5.0))):
        noisy = np.round(found.scores + rng.normal(0, noise, len(found)), decimals)
        paths.append(str(tmp_path / f"{number}.parquet"))
        boxscore.save_as(found.replaced(scores=noisy), paths[-1])
    call = ["compare", GT, *paths, "--resamples", "5", "--output", "csv"]
    whole = run(*call).out
    said = {line.rpartition(",")[2] for line in whole.splitlines()[1:]}
    assert {"True", "False"} <= said
    assert run(*call, "--memory-limit", "1GB").out == whole


@pytest.mark.long
def test_compare_on_a_cluster(parquet: str, run: Run) -> None:
    """Two detectors of different scores: intervals and the exchange of images of one process."""
    pytest.importorskip("distributed", reason="needs boxscore[dask]")
    call = ["compare", GT, parquet, DT, "--names", "a", "b", "--resamples", "20", "--output", "csv"]
    whole, parts = (
        run(*call, "--per-class", *more).out for more in ([], ["--scheduler", "local", "--workers", "1"])
    )
    assert len(whole.splitlines()) > 13
    assert parts == whole
    for option in (["--memory-limit", "1GB"], ["--report", "x"], ["--images", "101"]):
        error = run.error(*call, "--scheduler", "local", *option)
        assert f"{option[0]} must not be combined with --scheduler. Got both" in error


@pytest.mark.parametrize(
    "options",
    [
        ["--min", "AP=0.2", "circle AP50=0.99"],
        ["--baseline-detections", "{parquet}", "--metrics", "AP", "--resamples", "50"],
    ],
)
def test_check(options: list[str], parquet: str, tmp_path: Path, run: Run) -> None:
    """The gate decides the same, and writes the same for a pull request."""
    call = ["check", GT, parquet, *(word.format(parquet=parquet) for word in options), "--output", "markdown"]
    summaries = [tmp_path / "whole.md", tmp_path / "parts.md"]
    whole, parts = (
        run(*call, "--summary", path, *more, status=(0, 1)).out
        for path, more in zip(summaries, ([], ["--memory-limit", "1GB"]), strict=True)
    )
    assert parts == whole
    assert summaries[0].read_text() == summaries[1].read_text()


@pytest.mark.parametrize(
    "call",
    [
        ["images", "--sort", "FP", "--score-threshold", "0.3"],
        ["images", "--output", "csv", "--iou-threshold", "0.75"],
        ["confusion", "--output", "json"],
        ["confusion", "--normalize", "truth", "--score-threshold", "0.2", "--classes", "circle", "square"],
    ],
)
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_questions_about_boxes(workers: str, call: list[str], parquet: str, run: Run) -> None:
    """What images say of themselves is asked of each partition."""
    whole = run(call[0], GT, parquet, *call[1:]).out
    assert run(call[0], GT, parquet, *call[1:], "--memory-limit", "2GB", "--workers", workers).out == whole


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_stats(workers: str, form: str, parquet: str, run: Run) -> None:
    whole = run("stats", GT, parquet, "--output", form).out
    parts = run("stats", GT, parquet, "--output", form, "--memory-limit", "2GB", "--workers", workers).out
    assert parts == whole


@pytest.mark.parametrize("command", ["check", "errors", "evaluate"])
def test_strict_says_what_partitions_cannot_see(command: str, parquet: str, run: Run) -> None:
    """Findings about the input need all rows; a gate must not seem stricter than it is."""
    rules = ["--min", "AP=0.1"] if command == "check" else []
    said = "note: --strict covers warnings of partitions but not findings about the input"
    call = [command, GT, parquet, *rules, "--memory-limit", "2GB", "--workers", "1"]
    assert said in " ".join(run(*call, "--strict").err.split())
    assert said not in " ".join(run(*call).err.split())


def test_rows_of_images_must_fit(parquet: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    limits.long_rows_of_images(monkeypatch, 10**7)
    said = run.error("images", GT, parquet, "--memory-limit", "1GB", "--workers", "1")
    assert "--memory-limit must leave a process 960 MB for the rows of 24 images. Got " in said


def test_slices_by_a_column_of_the_images(parquet: str, tmp_path: Path, run: Run) -> None:
    truth = boxscore.load_ground_truth(GT)
    camera = np.where(np.arange(len(truth.images)) % 3, "left", "right").astype(object)
    images = dataclasses.replace(truth.images, columns={"camera": camera})
    boxscore.save_as(truth.replaced(images=images), tmp_path / "truth.npz")
    call = ["slices", str(tmp_path / "truth.npz"), parquet, "--by", "camera", "--output", "json"]
    expected = run(*call).out
    assert '"left"' in expected
    assert run(*call, "--memory-limit", "1GB").out == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["bootstrap", GT, DT], "--memory-limit must be used with detections in Parquet"),
        (
            ["slices", GT, "{parquet}", "--by", "size"],
            "slices by size must not be combined with --memory-limit. Got both; partitions store scores "
            "and outcomes, not boxes.",
        ),
        (["compare", GT, "{parquet}", DT], "--memory-limit must be used with detections in Parquet"),
        (
            ["stats", GT],
            "--memory-limit must be used together with --detections. Got none; ground truth alone is always",
        ),
        (["stats", GT, DT], "--memory-limit must be used with detections in Parquet"),
        (
            ["stats", GT, "{parquet}", "--anchors", "3"],
            "--anchors must not be combined with --memory-limit. Got both",
        ),
        (
            ["bootstrap", GT, "{parquet}", "--images", "101"],
            "--images must not be combined with --memory-limit",
        ),
    ],
)
def test_what_is_refused(call: list[str], message: str, parquet: str, run: Run) -> None:
    filled = [word.format(parquet=parquet) for word in call]
    out, error = run(*filled, "--memory-limit", "1GB", status=2)
    assert out == ""
    assert message in error


@pytest.mark.parametrize("command", ["suspects", "sweep", "explain", "view"])
def test_what_needs_all_at_once_says_so(command: str, parquet: str, run: Run) -> None:
    error = run.error(command, GT, parquet, "--memory-limit", "1GB")
    said = "does not take --memory-limit: it needs all detections in memory, because "
    assert error.startswith(f"boxscore: error: {command} {said}")


LISTED = (
    "1 image of these detections is not listed, perhaps an image without objects; add these images to the ground truth, or drop their "
    "detections first: boxscore convert --gt GT --dt DT --unlisted-images drop --to parquet --output "
    "FILE.\n"
)


def test_an_unlisted_image_is_answered_at_once(parquet: str, tmp_path: Path, run: Run) -> None:
    """No option is offered that partitions refuse; without partitions it is offered, and taken."""
    content = json.loads(Path(GT).read_text())
    gone = content["images"].pop()["id"]
    content["annotations"] = [one for one in content["annotations"] if one["image_id"] != gone]
    (tmp_path / "fewer.json").write_text(json.dumps(content))
    call = ["evaluate", str(tmp_path / "fewer.json"), parquet]
    output, errors = run(*call, "--memory-limit", "1GB", status=2)
    assert output == ""
    assert errors.startswith(f"boxscore: error: image_id must be in the ground truth. Got {gone} in row ")
    assert errors.endswith(LISTED)
    assert run.error(*call).endswith(
        "; --unlisted-images drop ignores this image, background adds it without objects.\n"
    )
    run(*call, "--unlisted-images", "drop")
