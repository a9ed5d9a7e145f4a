"""The command draw with --only: boxes of one kind, in a folder for each."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from support.running import Run
from support.samples import DT, GT

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plots = pytest.importorskip("boxscore.reports.plots")
drawing = pytest.importorskip("boxscore.extensions.pages.draw_command")
boxes = pytest.importorskip("boxscore.extensions.pages.plots.boxes")
SCORE = 0.55


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    import matplotlib.pyplot

    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def result() -> boxscore.Evaluation:
    return boxscore.evaluate(GT, DT, digest=False)


def total(chosen: Any) -> int:
    return int(chosen.detections.sum() + chosen.truths.sum())


def test_outcomes_are_counted_as_by_operating_points(result: boxscore.Evaluation) -> None:
    points = diagnostics.operating_points(result, at_score=SCORE).total
    counts = [total(drawing.chosen_boxes(result, kind, SCORE)) for kind in ("tp", "fp", "fn")]
    assert counts == [points.true_positives, points.false_positives, points.false_negatives]


def test_kinds_of_error_divide_the_false_positives(result: boxscore.Evaluation) -> None:
    false = drawing.chosen_boxes(result, "fp", SCORE).detections
    kinds = ("classification", "localization", "both", "duplicate", "background")
    parts = [drawing.chosen_boxes(result, kind, SCORE).detections for kind in kinds]
    np.testing.assert_array_equal(np.sum(parts, axis=0), false)
    missed = drawing.chosen_boxes(result, "missed", SCORE).truths
    assert (missed <= drawing.chosen_boxes(result, "fn", SCORE).truths).all()


def test_classes_and_sizes_narrow_the_choice(result: boxscore.Evaluation) -> None:
    every = drawing.chosen_boxes(result, "fn", SCORE)
    labels = np.array(result.labels)[result.ground_truth.category]
    stars = drawing.chosen_boxes(result, "fn", SCORE, classes=["star"])
    np.testing.assert_array_equal(stars.truths, every.truths & (labels == "star"))
    sizes = [drawing.chosen_boxes(result, "fn", SCORE, size=size) for size in ("small", "medium", "large")]
    low = result.ground_truth.area < 32**2
    np.testing.assert_array_equal(sizes[0].truths, every.truths & low)
    assert sum(total(one) for one in sizes) == total(every)
    with pytest.raises(boxscore.InputError, match="did you mean 'star'"):
        drawing.chosen_boxes(result, "fn", SCORE, classes=["stra"])
    with pytest.raises(boxscore.InputError, match="--size must be one of 'all', 'small'"):
        drawing.chosen_boxes(result, "fn", SCORE, size="tiny")


def test_each_kind_has_a_folder_with_the_worst_images_first(
    result: boxscore.Evaluation, tmp_path: Path, run: Run
) -> None:
    words = [
        "--only",
        "fn",
        "classification",
        "--at-score",
        SCORE,
        "--worst",
        "2",
        "--output",
        tmp_path / "out",
    ]
    output, errors = run("draw", GT, DT, *words)
    names = [Path(line).relative_to(tmp_path / "out") for line in output.splitlines()]
    assert [str(name.parent) for name in names] == ["fn", "fn", "classification", "classification"]
    assert all((tmp_path / "out" / name).read_bytes().startswith(b"\x89PNG") for name in names)
    chosen = drawing.chosen_boxes(result, "fn", SCORE)
    counts = np.bincount(result.ground_truth.image[chosen.truths], minlength=24)
    first = result.ground_truth.images.file_names[np.argsort(-counts, kind="stable")[0]]
    assert names[0].name == f"001_{Path(first).stem}.png"
    assert (
        f"fn: 2 of {np.count_nonzero(counts)} images; --worst {np.count_nonzero(counts)} draws all" in errors
    )


def test_only_chosen_boxes_are_labeled(result: boxscore.Evaluation) -> None:
    chosen = drawing.chosen_boxes(result, "classification", SCORE)
    row = int(np.bincount(result.detections.image[chosen.detections]).argmax())
    figure = boxes.draw_evaluated(
        None, result, result.ground_truth.images.ids[row].item(), score_threshold=SCORE, only=chosen
    )
    rows = np.flatnonzero(chosen.detections & (result.detections.image == row))
    assert len(figure.axes[0].texts) == len(rows) > 0
    objects = np.count_nonzero(result.ground_truth.image == row)
    assert len(figure.axes[0].patches) == len(rows) + objects


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--class", "star"], "--class must be used together with --only"),
        (["--size", "small"], "--size must be used together with --only"),
        (["--only", "fn", "--pairs"], "--only must not be combined with --pairs"),
        (["--only", "fn", "--memory-limit", "2GB"], "--only must not be combined with --memory-limit"),
        (["--only", "false"], "--only does not take 'false'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words: list[str], message: str, tmp_path: Path, run: Run) -> None:
    assert message in run.error("draw", GT, DT, *words, "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_labels_of_a_crowd_do_not_cover_each_other() -> None:
    generator = np.random.default_rng(3)
    count = 60
    corner = generator.uniform(0, 300, (count, 2))
    corners = np.hstack([corner, corner + generator.uniform(5, 60, (count, 2))])
    images = Images.build([1], sizes=[[400, 400]])
    truth = GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]], images=images)
    detections = Detections.from_arrays(
        [1] * count,
        [1] * count,
        corners,
        generator.random(count),
        images=truth.images,
        categories=truth.categories,
    )
    figure = plots.draw_boxes(None, truth, detections)
    figure.savefig(io.BytesIO(), format="png", dpi=150)
    panel = figure.axes[0]
    renderer = figure.canvas.get_renderer()
    places = [text.get_bbox_patch().get_window_extent(renderer) for text in panel.texts]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(places, 2))
    assert len(places) > 30
    left_out = count + 1 - len(places)
    assert panel.get_title() == (f"{left_out} label{'s' * (left_out > 1)} left out" if left_out else "")
