"""``--memory-limit`` of the commands that weigh images: the numbers of one process, from parts on disk."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

SHAPES = Path(__file__).parents[2] / "datasets" / "shapes_coco"
TRUTH, FOUND = str(SHAPES / "instances.json"), str(SHAPES / "detections.json")


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("parquet") / "found"
    main(
        [
            "convert",
            "--gt",
            TRUTH,
            "--dt",
            FOUND,
            "--output",
            str(folder),
            "--to",
            "parquet",
            "--partitions",
            "3",
        ]
    )
    return str(folder)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    output = capsys.readouterr()
    return status, output.out, output.err


def test_bootstrap(parquet: str, capsys: pytest.CaptureFixture[Any]) -> None:
    call = ["bootstrap", TRUTH, parquet, "--resamples", "20", "--per-class", "--output", "json"]
    expected = printed(capsys, *call)
    assert expected[0] == 0
    assert printed(capsys, *call, "--memory-limit", "1GB")[:2] == expected[:2]


def test_compare(parquet: str, capsys: pytest.CaptureFixture[Any]) -> None:
    call = ["compare", TRUTH, parquet, parquet, "--names", "a", "b", "--resamples", "20", "--output", "csv"]
    lines = [printed(capsys, *call, *more)[1].splitlines() for more in ([], ["--memory-limit", "1GB"])]
    whole, parts = (
        [line.rpartition(",")[0] for line in own] for own in lines
    )  # whether ties decide is unknown
    assert len(whole) == 13
    assert parts == whole
    assert printed(capsys, *call[:-1], "text", "--memory-limit", "1GB")[0] == 0


def test_slices_by_a_column_of_the_images(
    parquet: str, tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    truth = boxscore.load_ground_truth(TRUTH)
    camera = np.where(np.arange(len(truth.images)) % 3, "left", "right").astype(object)
    images = dataclasses.replace(truth.images, columns={"camera": camera})
    boxscore.save_as(truth.replaced(images=images), tmp_path / "truth.npz")
    call = ["slices", str(tmp_path / "truth.npz"), parquet, "--by", "camera", "--output", "json"]
    expected = printed(capsys, *call)
    assert '"left"' in expected[1]
    assert printed(capsys, *call, "--memory-limit", "1GB")[:2] == expected[:2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (["bootstrap", TRUTH, FOUND], "--memory-limit must be of detections in Parquet"),
        (
            ["slices", TRUTH, "{parquet}", "--by", "size"],
            "slices by size must be asked for without --memory-limit. Got it; partitions hold scores and "
            "outcomes, no boxes: leave it out.",
        ),
        (["compare", TRUTH, "{parquet}", FOUND], "--memory-limit must be of detections in Parquet"),
        (
            ["bootstrap", TRUTH, "{parquet}", "--images", "101"],
            "--images must be left out with --memory-limit",
        ),
    ],
)
def test_what_is_refused(
    call: list[str], message: str, parquet: str, capsys: pytest.CaptureFixture[Any]
) -> None:
    filled = [word.format(parquet=parquet) for word in call]
    status, out, error = printed(capsys, *filled, "--memory-limit", "1GB")
    assert (status, out) == (2, "")
    assert message in error


LISTED = (
    "1 such image in all, perhaps without objects; list the images in the ground truth, or leave their "
    "detections out first: boxscore convert --gt GT --dt DT --unlisted-images drop --to parquet --output FILE.\n"
)


def test_an_unlisted_image_is_answered_at_once(
    parquet: str, tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    """No option is offered that partitions refuse; without partitions it is offered, and taken."""
    content = json.loads(Path(TRUTH).read_text())
    gone = content["images"].pop()["id"]
    content["annotations"] = [one for one in content["annotations"] if one["image_id"] != gone]
    (tmp_path / "fewer.json").write_text(json.dumps(content))
    call = ["evaluate", str(tmp_path / "fewer.json"), parquet]
    for asked in (["--memory-limit", "1GB"], ["--bounds"]):
        status, output, errors = printed(capsys, *call, *asked)
        assert (status, output) == (2, "")
        assert errors.startswith(f"boxscore: error: image_id must be in the ground truth. Got {gone} in row ")
        assert errors.endswith(LISTED)
    status, _, errors = printed(capsys, *call)
    assert status == 2
    assert errors.endswith(
        "; --unlisted-images background adds it without objects, drop leaves its detections out.\n"
    )
    assert printed(capsys, *call, "--unlisted-images", "drop")[0] == 0
