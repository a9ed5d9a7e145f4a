"""Limits made small, so that little data is worked on in pieces; each name of a limit stands here alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from boxscore.evaluation import by_class
from boxscore.extensions.large import cluster, local, plan, reduction, result, score_ranges, source, weighing
from boxscore.extensions.masks import mask_pairs
from boxscore.extensions.weights import shared, under_weights, weight_sums, weighted_curves
from boxscore.formats import _json
from boxscore.similarity.box import BoxSimilarity
from boxscore.suppression import _grid, _pairs


def few_detections_at_a_time(patch: pytest.MonkeyPatch, count: int) -> None:
    """Score at most so many detections of parts together: more are cut by classes, and a class by scores."""
    patch.setattr(result, "reduced", functools.partial(reduction.reduced, most=count))
    patch.setattr(
        result.evaluation_of, "__kwdefaults__", {**result.evaluation_of.__kwdefaults__, "most": count}
    )
    patch.setattr(cluster, "MOST", count)
    patch.setattr(local, "MOST", count)
    patch.setattr(weighing, "MOST", count)
    patch.setattr(weighing, "ALONE", -1)


def few_tasks(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let a scheduler bear so many pieces of a class."""
    patch.setattr(plan, "TASKS", count)


def small_partitions(patch: pytest.MonkeyPatch, boxes: int) -> None:
    """Read about so many boxes of Parquet at a time."""
    patch.setattr(local, "PARTITION", boxes)


def long_rows_of_images(patch: pytest.MonkeyPatch, size: int) -> None:
    """Take the row of an image for so many bytes."""
    patch.setattr(source, "PER_ROW", size)


def few_scores_together(patch: pytest.MonkeyPatch, count: int) -> None:
    """Count the scores of at most so many detections of parts together."""
    patch.setattr(score_ranges, "MOST", count)


def few_weights_together(patch: pytest.MonkeyPatch, size: int) -> None:
    """Send weights of at most so many bytes to the pieces of calibration at a time, or one set."""
    patch.setattr("boxscore.extensions.diagnostics._residuals.HELD", size)


def few_detections_asked_again(patch: pytest.MonkeyPatch, count: int) -> None:
    """Merge at most so many detections of parts for errors, steps of their analysis, and ties."""
    patch.setattr(plan, "MOST", count)


def few_sets_together(patch: pytest.MonkeyPatch, count: int) -> None:
    """Count at most so many sets of image weights at once."""
    patch.setattr(under_weights, "LARGEST_BATCH", count)


def few_true_positives_together(patch: pytest.MonkeyPatch, count: int) -> None:
    """Compute curves under image weights class by class, where two have more true positives than so many."""
    patch.setattr(weighted_curves, "MOST_TRUE_POSITIVES", count)


def few_pieces_together(patch: pytest.MonkeyPatch, count: int) -> None:
    """Add up the weights of so many pieces of a list of images at a time."""
    patch.setattr(weight_sums, "PIECES_TOGETHER", count)


def small_share(patch: pytest.MonkeyPatch, one_in: int) -> None:
    """Compare only the detections of a question across classes that is about fewer than one in so many."""
    patch.setattr("boxscore.matching.candidates.SMALL_SHARE", one_in)


def classes_always_shared(patch: pytest.MonkeyPatch) -> None:
    """Share the classes out among processes, however few detections there are."""
    patch.setattr("boxscore.evaluation.SHARED_FROM", 0)
    patch.setattr(by_class, "SHARED_BY_TWO_FROM", 1)
    patch.setattr(by_class, "ROWS_OF_SHARE", 1)


def little_worth_forking(patch: pytest.MonkeyPatch) -> None:
    """Share sets of image weights out among processes, however little work they are."""
    patch.setattr(shared, "WORTH_FORKING", 0)


def tasks_forked(patch: pytest.MonkeyPatch) -> list[int]:
    """Share as above; the list says how many tasks were forked each time."""
    little_worth_forking(patch)
    started: list[int] = []
    plain = shared.Forked

    def counted(tasks: Sequence[Callable[[], Any]]) -> Any:
        started.append(len(tasks))
        return plain(tasks)

    patch.setattr(shared, "Forked", counted)
    return started


def few_detections_of_an_owner(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let a class that cannot be cut have at most so many detections under weights."""
    patch.setattr(weighing, "MOST_OWNED", count)


def few_detections_fetched(patch: pytest.MonkeyPatch, count: int) -> None:
    """Bring parts of at most so many detections to the driver."""
    patch.setattr(result, "FETCHED", count)


def few_detections_rated(patch: pytest.MonkeyPatch, count: int) -> None:
    """Give precision, recall and F1 per class of at most so many detections."""
    patch.setattr(result, "RATED", count)


def heavy_detections(patch: pytest.MonkeyPatch, size: int) -> None:
    """Let each detection that is scored take so many bytes of a memory limit."""
    patch.setattr(local, "SCORED", size)


def few_values_of_curves(patch: pytest.MonkeyPatch, count: int, *, summed: int = 200) -> None:
    """Hold at most so many numbers of curves together, and let NumPy add up at most ``summed`` at once."""
    patch.setattr("boxscore.scoring.blocks.MOST_VALUES", count)
    patch.setattr("boxscore.scoring.curves.MOST_VALUES", count)
    patch.setattr("boxscore.scoring.blocks.SUMMED_TOGETHER", summed)


def few_pairs_at_a_time(patch: pytest.MonkeyPatch, count: int) -> None:
    """Find at most so many pairs together: more are found by blocks of detections."""
    patch.setattr("boxscore.matching.candidates.MOST_PAIRS", count)
    patch.setattr("boxscore.matching.matcher.MOST_PAIRS", count)


def few_sorted_together(patch: pytest.MonkeyPatch, count: int) -> None:
    """Sort classes of at most so many detections together."""
    patch.setattr("boxscore.matching.matches.SORTED_TOGETHER", count)
    patch.setattr("boxscore.matching.matches.MOST_SORTS", 1 << 30)


def few_pairs_held(patch: pytest.MonkeyPatch, count: int) -> None:
    """Hold at most so many pairs that do not match."""
    patch.setattr("boxscore.matching.greedy.MOST_HELD", count)


def wide_from(patch: pytest.MonkeyPatch, count: int) -> None:
    """Decide detections with more pairs than so many one by one."""
    patch.setattr("boxscore.matching.greedy.WIDE", count)


def few_overlaps_at_a_time(patch: pytest.MonkeyPatch, count: int) -> None:
    """Find what boxes overlap for so many of them at a time, and by so many candidates at a time."""
    patch.setattr(_grid, "QUERIES", count)
    patch.setattr(_pairs, "expand", functools.partial(_grid.expand, chunk=count))


def impatient(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Wait so long for a cluster."""
    patch.setattr(cluster, "PATIENCE", seconds)


def scoring_by(patch: pytest.MonkeyPatch, score: Any) -> None:
    """Let workers score classes by another function."""
    patch.setattr(reduction, "score_classes", score)


def another_form_of_parts(patch: pytest.MonkeyPatch, form: int) -> None:
    """Write the files of parts as another boxscore does."""
    patch.setattr("boxscore.extensions.large.parts.FORM", form)


def everything_shared(patch: pytest.MonkeyPatch) -> None:
    """Share whatever processes can share: classes, pairs of boxes and of masks, and the text of files."""
    classes_always_shared(patch)
    patch.setattr(BoxSimilarity, "forks_from", 1)
    patch.setattr(mask_pairs, "SHARE", 1e-9)
    patch.setattr(_json, "PART_BYTES", 500)
    patch.setattr(_json, "SLICE_BYTES", 300)
