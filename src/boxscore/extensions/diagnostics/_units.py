"""Group images into the independent units of intervals and tests: single images, or groups such as videos."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.vocabulary import rows_among_all
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.large.questions import Place, source_of
from boxscore.extensions.weights.resampling import (
    LEAST_GROUPS,
    LEAST_UNITS,
    LEAST_UNITS_OF_CLASS,
    Units,
)
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.counts import Outcomes

Group = str | Sequence[Any] | None
"""A column of the images, a regular expression for their names with one group, or a label for each image, by
id."""

FEWEST_FRAMES = 5
"""Minimum average number of consecutively numbered images per name that looks like a video."""


def units_of_images(evaluation: Evaluation, group: Group) -> Units | None:
    """Return the group of each image, [I]; None if each image is a unit of its own.

    Raises
    ------
    InputError
        When the column does not exist, the pattern matches no name, or an image lacks a group.
    """
    if group is None:
        return None
    labels = _labels(evaluation, group)
    images = evaluation.images
    for row, label in enumerate(labels):
        if label is None or label != label or label == "":
            raise InputError(
                "group", "be known for every image", got="none", place=f"image {images.ids.tolist()[row]!r}"
            )
    _, units = np.unique(np.array([str(label) for label in labels]), return_inverse=True)
    return units.ravel().astype(np.int32)


def _labels(evaluation: Evaluation, group: str | Sequence[Any]) -> list[Any]:
    # Read labels as given, or a column of the images.
    images = evaluation.images
    if not isinstance(group, str):
        labels = list(group)
        checks.same_length(len(images), of="the images", group=labels)
        return labels
    if group in images.columns:
        return list(images.columns[group].tolist())
    # Otherwise match a pattern with one group against the names of the images.
    if "(" not in group:
        known = [repr(name) for name in images.columns]
        rule = f"be a column of the images ({', '.join(known)})" if known else "be a column of the images"
        cause = "a regular expression with a group extracts it from the file names: '(.+)_[0-9]+'"
        raise InputError("group", rule, got=repr(group), cause=cause)
    try:
        pattern = re.compile(group)
    except re.error as error:
        raise InputError("group", "be a regular expression", got=repr(group), cause=str(error)) from None
    if not pattern.groups:
        raise InputError("group", "have a group in parentheses: '(.+)_[0-9]+'", got=repr(group))
    # Require a match for every image: images without a group would bias the intervals.
    labels = []
    for name in evaluation._image_names(group):
        match = pattern.search(name)
        if match is None:
            raise InputError("group", "match the name of every image", got=f"{group!r}, not in {name!r}")
        labels.append(match[1])
    return labels


GROUP_FRAMES = (
    "intervals and verdicts that treat them as independent images are too certain. Group them: --group "
    "COLUMN, or a pattern for file names such as --group '(.+)_[0-9]+' (in Python group=)"
)


def warn_of_frames(evaluation: Evaluation, group: Group, advice: str = GROUP_FRAMES) -> None:
    """Warn if file names are numbered like video frames and no group is given."""
    if group is not None:
        return
    runs, images = _numbered_runs(evaluation.images.names), evaluation._image_count
    if 1 < runs <= images / FEWEST_FRAMES:
        warn_user(
            f"the images look like frames of {counted(runs, 'video')}: their names count up. Frames of "
            f"one video are similar, so {advice}."
        )


def _numbered_runs(names: list[str]) -> int:
    """Count the runs of names that differ only in a trailing number, which counts up; 0 if some lack it."""
    last = re.compile(r"^(.*?\D)(\d+)(\D*)$")
    stems: dict[tuple[str, str], list[int]] = {}
    for name in names:
        parts = last.match(name)
        if parts is None:
            return 0
        stems.setdefault((parts[1], parts[3]), []).append(int(parts[2]))
    return len(stems) if all(_counts_up(numbers) for numbers in stems.values()) else 0


def _counts_up(numbers: list[int]) -> bool:
    """Return whether numbers are equally spaced, apart from a few missing ones."""
    steps = np.diff(np.sort(numbers))
    return len(steps) > 0 and bool(np.mean(steps == np.median(steps)) >= 0.9)


def units_of_values(
    evaluation: Evaluation, rows: Sequence[SummaryRow], units: Units | None
) -> NDArray[np.int64]:
    """Count the units with an object behind each metric, per class and, last, in total: [rows, K + 1]."""
    areas = [evaluation.protocol.position_of(row)[0] for row in rows]
    distinct = sorted(set(areas))
    options: dict[str, Any] = {"areas": distinct, "units": units}
    answers = source_of(evaluation).over_images(_with_objects, options)
    known = {
        area: _joined([one[number] for one in answers], disjoint=units is None)
        for number, area in enumerate(distinct)
    }
    return np.array([known[area] for area in areas], dtype=np.int64)


def units_with_true_positives(
    evaluation: Evaluation, rows: Sequence[SummaryRow], units: Units | None
) -> NDArray[np.int64]:
    """Count the units with a true positive at the lowest threshold of each metric, [rows, K + 1]."""
    protocol = evaluation.protocol
    thresholds = protocol.matching.iou_thresholds
    keys = [(*protocol.position_of(row), 0 if row.iou is None else thresholds.index(row.iou)) for row in rows]
    distinct = sorted(set(keys))
    options: dict[str, Any] = {"keys": distinct, "units": units, "protocol": protocol}
    answers = source_of(evaluation).over_images(_with_true_positives, options)
    known = {
        key: _joined([one[number] for one in answers], disjoint=units is None)
        for number, key in enumerate(distinct)
    }
    return np.array([known[key] for key in keys], dtype=np.int64)


def _with_true_positives(
    matched: Matches,
    place: Place,
    *,
    keys: Sequence[tuple[int, int, int]],
    units: Units | None,
    protocol: Protocol,
) -> list[_WithObjects]:
    """Find the units with a true positive in some images for each area range, limit and threshold."""
    K, found = len(matched.categories), []
    for area, cap, threshold in keys:
        outcomes = Outcomes.of(matched, protocol, area, cap)
        assert outcomes.matches is not None
        true = outcomes.detection[outcomes.true[threshold]]
        unit = rows_among_all(outcomes.matches.image[true], place)
        unit = unit if units is None else units[unit].astype(np.int64)
        pairs = np.unique(unit * K + outcomes.category[true])
        found.append(_WithObjects(_counts(pairs, K), pairs[:0] if units is None else pairs))
    return found


class _WithObjects(NamedTuple):
    """The units with something to count, such as an object in an area range."""

    counts: IntArray
    """Number of units for each class and, last, in total; [K + 1]."""
    pairs: IntArray
    """Unit times K plus class, without repetitions."""


def _with_objects(
    matched: Matches, place: Place, *, areas: Sequence[int], units: Units | None
) -> list[_WithObjects]:
    """Find the units in some images for each area range; without groups keep only their counts."""
    K, found = len(matched.categories), []
    for area in areas:
        objects = np.flatnonzero(matched.taking_part(area))
        unit = rows_among_all(matched.truth_image[objects], place)
        unit = unit if units is None else units[unit].astype(np.int64)
        pairs = np.unique(unit * K + matched.truth_category[objects])
        found.append(_WithObjects(_counts(pairs, K), pairs[:0] if units is None else pairs))
    return found


def _counts(pairs: IntArray, K: int) -> IntArray:
    unit, category = np.divmod(pairs, max(K, 1))
    return np.append(np.bincount(category, minlength=K), len(np.unique(unit)))


def _joined(every: Sequence[_WithObjects], *, disjoint: bool) -> IntArray:
    """Count the units of all images: those of partitions are disjoint if each image is a unit."""
    if disjoint or len(every) == 1:
        counts: IntArray = np.sum([one.counts for one in every], axis=0)
        return counts
    return _counts(np.unique(np.concatenate([one.pairs for one in every])), len(every[0].counts) - 1)


def enough_units(counts: NDArray[np.int64], units: Units | None) -> NDArray[np.bool_]:
    """Return whether enough units support the interval of a difference, [..., K + 1], the total last."""
    least = np.full(counts.shape[-1], LEAST_UNITS_OF_CLASS)
    least[-1] = LEAST_UNITS if units is None else LEAST_GROUPS
    enough: NDArray[np.bool_] = counts >= least
    return enough
