"""Decide which detections count, by the classes that were verified in each image.

Conventions
-----------
- A class is *listed* in an image if the image has an object of it that is not deleted, or an image label for
  it. The other classes are unverified; some protocols drop their detections.
- If a class is not annotated exhaustively, unmatched detections are ignored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.ordering import among
from boxscore._utils.text import counted_of, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories
from boxscore.errors import InputError
from boxscore.extensions.federated.image_labels import ImageLabels
from boxscore.matching.candidates import Asked, Match
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.matching.ranking import ranked_by, scored_enough
from boxscore.protocols.protocol import Protocol


def check_class_labels(
    source: str, categories: Categories, image_labels: ImageLabels | None, protocol: Protocol
) -> None:
    """Check the requirements of a federated protocol: groups of classes, and image labels.

    Raises
    ------
    InputError
        When a class has a value that no summary metric selects, such as an unknown ``frequency``.
    """
    # Collect the values that summary rows select, per column of classes.
    selected: dict[str, dict[str, list[str]]] = {}
    for row in protocol.rows:
        if row.classes:
            name, _, values = row.classes.partition("=")
            for value in values.split("|"):
                selected.setdefault(name, {}).setdefault(value, []).append(row.key)
    # A class with an unknown value would be missing in every metric.
    for name, keys in selected.items():
        metrics = ", ".join(dict.fromkeys(key for group in keys.values() for key in group))
        given = categories.columns[name].tolist() if name in categories.columns else [None] * len(categories)
        unknown = [row for row, value in enumerate(given) if value is not None and str(value) not in keys]
        if unknown:
            raise InputError(
                name,
                f"be one of {', '.join(keys)} for {protocol.name}",
                got=repr(given[unknown[0]]),
                place=f"class {categories.labels[unknown[0]]} of {source}",
            )
        # A class without a value is missing too, which is allowed with a warning.
        without = sum(value is None for value in given)
        if without:
            every = without == len(given)
            some = f"{counted_of(without, len(given), 'class')} {verb(without, 'have')} no"
            which = "no class has" if every else some
            effect = "are undefined" if every else f"leave {'it' if without == 1 else 'these'} out"
            warn_user(f"{source}: {which} {name}; {metrics} {effect}.")
    # Without image labels, most detections do not count.
    if protocol.labels.unlisted == "drop" and image_labels is None:
        warn_user(
            f"{source}: no image says which classes were annotated in it (neg_category_ids in LVIS files, "
            "--image-labels for Open Images), so detections of a class without an object in their image are "
            "dropped. If every class was annotated in every image, use another protocol, such as coco."
        )


def listed(
    ground_truth: GroundTruth, detections: Detections, ignoring: Ignoring, protocol: Protocol
) -> BoolArray:
    """Whether the class of each detection is listed in its image, [D]."""
    count = len(ground_truth.categories)
    there = ~ignoring.deleted
    objects = ground_truth.image[there].astype(np.int64) * count + ground_truth.category[there]
    asked = detections.image.astype(np.int64) * count + detections.category
    is_listed = among(objects, asked, len(ground_truth.images) * count)
    if protocol.labels.unlisted == "drop_beside_others":
        is_listed |= ~among(ground_truth.image[there], detections.image, len(ground_truth.images))
    labels = ground_truth.image_labels
    if labels is not None and protocol.labels.unlisted == "drop":
        kinds = ("negative",) if protocol.labels.listed_by == "negative" else ("negative", "positive")
        is_listed |= labels.says(detections.image, detections.category, *kinds)
    return is_listed


def counted_unmatched(
    ground_truth: GroundTruth, detections: Detections, rows: NDArray[np.int64], protocol: Protocol
) -> BoolArray | None:
    """Return whether unmatched detections count, [rows]; None if all do."""
    labels: ImageLabels | None = ground_truth.image_labels
    if labels is None:
        return None
    return ~labels.says(detections.image[rows], detections.category[rows], "not_exhaustive")


def matching_listed(asked: Asked, match: Match) -> Match:
    """Return a matching function for detections of listed classes only."""
    may = listed(asked.ground_truth, asked.detections, asked.ignoring, asked.protocol)
    return functools.partial(_match_some, match, may[asked.rows])


def _match_some(match: Match, chosen: BoolArray, blocks: Iterable[Pairs], **changed: Any) -> Outcome:
    """Match only the pairs of the chosen detections, given by position in class order, [D]."""
    return match((block.of_detections(chosen) for block in blocks), **changed)


def detected(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Drop objects whose class lacks detections in their image."""
    K = len(ground_truth.categories)
    found = scored_enough(ranked_by(detections), protocol)
    pairs = detections.image[found].astype(np.int64) * K + detections.category[found]
    objects = ground_truth.image.astype(np.int64) * K + ground_truth.category
    there = among(pairs, objects, len(ground_truth.images) * K)
    return ground_truth.take(np.flatnonzero(there)), detections
