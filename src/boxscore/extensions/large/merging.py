"""Merge parts of disjoint images to the matches of one evaluation of all images.

Conventions
-----------
- Parts must have the same protocol, version of boxscore and classes; an image is in one part only.
- Images are sorted by id over all parts, as in one vocabulary. Equal scores are ordered by the protocol: by
  image, or by row, as :mod:`boxscore.extensions.large.parts` defines it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import descending_order, rank_in_runs, stable_order
from boxscore._version import __version__
from boxscore.data.vocabulary import Categories, Images, Vocabulary
from boxscore.errors import InputError
from boxscore.extensions.crowds.stretching import min_max_scaled
from boxscore.extensions.large.packed import NumberedPart, unpacked
from boxscore.extensions.large.parts import Part
from boxscore.matching.matches import Matches
from boxscore.protocols.fields import all_fields
from boxscore.protocols.protocol import Protocol, describing_fields


class MergedParts:
    """Parts that fit together, with images numbered over all of them.

    Parameters
    ----------
    parts : sequence of Part

    Raises
    ------
    InputError
        If they do not fit together.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        if not parts:
            raise InputError("parts to merge", "be at least one", got="none")
        self.parts = parts
        self.protocol: Protocol = parts[0].protocol
        check_headers(parts)
        self.ids, self._places = numbered_images(parts)
        self.every_class: Categories = parts[0].categories
        per_class = self.protocol.matching.per_class
        self.categories = self.every_class if per_class else Categories.build(["all"])

    @functools.cached_property
    def images(self) -> Images:
        """All images, with the columns that every part has."""
        order = np.empty(len(self.ids), dtype=np.int64)
        order[np.concatenate(self._places)] = np.arange(len(self.ids))
        return images_in_order(self.ids, order, [part.image_columns for part in self.parts])

    def matches(self, low: int = 0, high: int | None = None) -> Matches:
        """Merge the classes in [low, high): scores and outcomes, without overlaps."""
        # If rows are numbered within a part, add the row counts of the parts before it.
        first = [0] * len(self.parts)
        if self.parts[0].row_order == "own":
            first = [0, *itertools.accumulate(part.row_count for part in self.parts[:-1])]
        placed = [
            NumberedPart(part.matches, place, row)
            for part, place, row in zip(self.parts, self._places, first, strict=True)
        ]
        # Merge the requested classes: a slice of each column of each part.
        merged = unpacked(
            placed,
            self.images,
            self.categories,
            low=low,
            high=high,
            rows_by_image=self.parts[0].row_order == "image",
        )
        # Min-max scaling needs the extremes of all parts, so scores are scaled here, with the operations that
        # one process would use, and then sorted.
        ends = [part.score_ends for part in self.parts if part.score_ends is not None]
        if ends:
            least, largest = min(low for low, _ in ends), max(high for _, high in ends)
            score = min_max_scaled(merged.score, least, largest)
            merged = dataclasses.replace(merged, score=score).in_class_order()
        if self.protocol.matching.caps_data_set:
            merged = self._within_max_detections(merged, low, first)
        return merged

    def _within_max_detections(self, merged: Matches, low: int, first_rows: Sequence[int]) -> Matches:
        """Apply max detections per class to the whole data set; rows break ties."""
        most, K = self.protocol.caps[-1], len(merged.categories)
        if most is None:
            return merged
        # Rank detections that are not evaluated with the others: they also count toward the limit, [D + S].
        columns = [(merged.category.astype(np.int64), merged.score, merged.row)]
        for part, first in zip(self.parts, first_rows, strict=True):
            assert part.spent is not None
            category, score, row = part.spent
            here = (category >= low) & (category < low + K)
            columns.append((category[here].astype(np.int64) - low, score[here], row[here] + first))
        category, score, row = (np.concatenate(column) for column in zip(*columns, strict=True))
        # Sort by class, descending score and row: stable sorts, last key first.
        order = np.argsort(row, kind="stable")
        order = order[descending_order(score[order])]
        order = order[stable_order(category[order], K)]
        # Keep the first of each class. The first D columns are the merged rows.
        within = np.zeros(len(order), dtype=bool)
        within[order[rank_in_runs(category[order]) < most]] = True
        return merged.take_detections(within[: len(merged)])


def check_headers(parts: Sequence[Any]) -> None:
    """Raise if parts, or their headers, differ in version, protocol, classes or kind of rows."""
    # Compare every part with the first.
    first = parts[0]
    for part in parts:
        if part.version != __version__:
            raise InputError(
                "parts to merge",
                "come from the same version of boxscore",
                got=f"{part.version}; this is {__version__}",
                place=part.source,
            )
        if part.digest != first.digest:
            raise InputError(
                "parts to merge",
                "use the same protocol",
                got=f"{first.protocol.name!r} in {first.source} and {part.protocol.name!r}",
                place=part.source,
                cause=_first_difference(first.protocol, part.protocol),
            )
        # Compare classes by id and name, and name the first difference.
        mine, yours = first.categories, part.categories
        if mine is not yours and (not mine.same_as(yours) or mine.names.tolist() != yours.names.tolist()):
            got = f"{len(mine)} in {first.source} and {len(yours)}"
            if len(mine) == len(yours):
                pairs = zip(mine.labels, yours.labels, strict=True)
                one, other = next((pair for pair in pairs if pair[0] != pair[1]), ("ids", "others"))
                got = f"{one!r} in {first.source} and {other!r}"
            raise InputError(
                "parts to merge",
                "have the same classes",
                got=got,
                place=part.source,
                cause="pass the complete class list to every process",
            )
        if part.row_order != first.row_order:
            raise InputError(
                "parts to merge",
                "have rows of one kind",
                got=f"{first.row_order!r} in {first.source} and {part.row_order!r}",
                place=part.source,
                cause="were some saved by an Evaluator and others by evaluate?",
            )


def check_shares(parts: Sequence[Any]) -> None:
    """Raise if some of the parts are shards, and shards are missing."""
    # Without shards, nothing can be missing.
    shares = {part.shard for part in parts if part.shard is not None}
    counts = sorted({count for _, count in shares})
    if not counts:
        return
    # All parts must be shards of one split, and every number must be present.
    of = f"shards of {' and of '.join(map(str, counts))}"
    if len(counts) > 1 or any(part.shard is None for part in parts):
        got = of if len(counts) > 1 else f"{of}, and parts that are not shards"
        raise InputError("shards to merge", "come from one split of one data set", got=got)
    missing = sorted({*range(1, counts[0] + 1)} - {number for number, _ in shares})
    if missing:
        names = ", ".join(f"{number}/{counts[0]}" for number in missing[:10])
        raise InputError(
            "shards to merge",
            "be complete",
            got=f"{len(shares)} of {counts[0]}, without {names}{', ...' if len(missing) > 10 else ''}",
            cause="run boxscore evaluate --shard K/N --save-part for each missing shard",
        )


def _first_difference(first: Protocol, second: Protocol) -> str:
    """Name a field that differs between two protocols."""
    for field in all_fields(first):
        one, other = field.of(first), field.of(second)
        if one == other or field.path in describing_fields(first):
            continue
        return f"{field.path} is {one!r:.80} and {other!r:.80}" if field.table else f"{field.path} differs"
    return ""


def numbered_images(parts: Sequence[Any]) -> tuple[NDArray[Any], list[NDArray[np.int32]]]:
    """Return the sorted ids of all images, and the row of each part's images among them."""
    object_ids = any(part.image_ids.dtype == object for part in parts)
    counts = [len(part.image_ids) for part in parts]
    ids = np.concatenate([part.image_ids.astype(object) if object_ids else part.image_ids for part in parts])
    order = Vocabulary.order(ids)
    if len(order) < len(ids):
        _refuse_shared_image(parts)
    place = np.empty(len(ids), dtype=np.int32)
    place[order] = np.arange(len(ids), dtype=np.int32)
    return ids[order], np.split(place, np.cumsum(counts)[:-1])


def images_in_order(
    ids: NDArray[Any], order: NDArray[np.int64], columns: Sequence[Mapping[str, NDArray[Any]]]
) -> Images:
    """Concatenate and sort the images of parts, with the columns that every part has."""
    shared = [name for name in columns[0] if all(name in of_part for of_part in columns)]
    return Images.of_ids(
        ids, {name: np.concatenate([of_part[name] for of_part in columns])[order] for name in shared}
    )


def _refuse_shared_image(parts: Sequence[Any]) -> NoReturn:
    """Raise an error that names an image in two parts."""
    owner: dict[Any, int] = {}
    shared: list[tuple[Any, int, int]] = []
    for number, part in enumerate(parts):
        for identifier in part.image_ids.tolist():
            before = owner.setdefault(identifier, number)
            if before != number:
                shared.append((identifier, before, number))
    identifier, one, other = shared[0]
    raise InputError(
        "an image",
        "be in one of the parts to merge",
        got=f"{identifier!r} in {parts[one].source} and {parts[other].source}",
        cause=f"{len(shared):,} such images; put each image in one partition only",
    )
