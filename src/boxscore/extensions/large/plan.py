"""Plan which classes are scored together, and which class is split into chunks by score.

Conventions
-----------
- A curve depends only on its class, so one process merges a class and returns numbers. A *block* is a set of
  classes merged by one process, or a selection of classes that share a curve.
- A class that is too large for one process is split into chunks where scores differ, unless a rule or a
  metric kind needs the whole class; the numbers of its chunks fold (:mod:`boxscore.scoring.curves`).
- A *key* is a position on the axes A and M: an area range and max detections.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore.data.vocabulary import Categories
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.headers import PartHeader, added_headers
from boxscore.extensions.large.merging import numbered_images
from boxscore.extensions.large.parts import Part
from boxscore.extensions.large.pieces import Cut, cut, edges_between, sample_of
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.kinds import kinds_of
from boxscore.scoring.summary import Key, summary_keys

MOST = 1 << 22
"""Maximum number of detections that one process merges at a time, unless a class cannot be split."""

MATCHED = 500
"""Bytes per box of a partition while it is read and matched."""

SCORED = 150
"""Bytes per detection while classes, or a chunk of a class, are scored."""

TASKS = 1 << 18
"""Maximum number of pieces of a class (parts times chunks) for a scheduler, which handles about 10^6."""


def partition_of(boxes: int, usual: int, memory: int | None) -> int:
    """Return the number of boxes per partition: ``usual``, or more if there would be too many tasks.

    ``memory`` is the memory of a worker per task in bytes, None if unknown.
    """
    pieces = boxes / usual * (2 * boxes / MOST)
    if memory is None or pieces <= TASKS:
        return usual
    return max(usual, min(memory // MATCHED, int(usual * math.sqrt(pieces / TASKS))))


def most_within(room: int | None) -> int:
    """Return how many detections to merge at a time in ``room`` bytes; None for no limit."""
    return MOST if room is None else min(MOST, room // SCORED)


def most_of(headers: Sequence[PartHeader], usual: int, memory: int | None) -> int:
    """Return how many detections to merge at a time: ``usual``, or more if there would be too many tasks.

    Larger chunks of a class are fewer tasks. ``memory`` is as in :func:`partition_of`.
    """
    largest = int(added_headers(headers).detections.max(initial=0))
    wanted = -(-2 * largest * len(headers) // TASKS)
    return usual if memory is None or wanted <= usual else max(usual, min(memory // SCORED, wanted))


def runs_of_classes(detections: IntArray, most: int, most_classes: int | None = None) -> Iterator[Cut]:
    """Split classes, with ``detections`` [K], into runs of at most ``most`` detections, or one class."""
    low, held = 0, 0
    for k, count in enumerate(detections.tolist()):
        full = k > low and held + count > most
        if full or (most_classes is not None and k - low == most_classes):
            yield Cut(low, k)
            low, held = k, 0
        held += count
    yield Cut(low, len(detections))


def can_be_split(protocol: Protocol, *, weighted: bool = False) -> bool:
    """Return whether a class can be scored in chunks; not if its ground truths have weights."""
    return (
        not weighted
        and protocol.scope.allows("ranges")
        and all(kind.fold is not None for kind in kinds_of(protocol))
    )


def every_key(protocol: Protocol) -> list[Key]:
    """Return every pair of area range and max detections."""
    return list(itertools.product(range(len(protocol.ignore.area_ranges)), range(len(protocol.caps))))


def asked_keys(protocol: Protocol) -> list[Key]:
    """Return the keys that the summary needs, and the first area range with the largest max detections."""
    return list({**summary_keys(protocol.rows, protocol), (0, len(protocol.caps) - 1): None})


class ClassPlan:
    """The classes of parts, split into blocks.

    Parameters
    ----------
    engine : Engine
    parts : sequence of tasks
        Handles to the parts.
    headers : sequence of PartHeader
        Headers of the parts.
    most : int
        Maximum number of detections that one process merges at a time.
    keep : bool, default False
        Keep pieces for further tasks.

    Attributes
    ----------
    whole : PartHeader
        Sum of the headers.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Any],
        headers: Sequence[PartHeader],
        most: int,
        *,
        keep: bool = False,
    ) -> None:
        self.whole = whole = added_headers(headers)
        self.protocol, self.images, self.detections = whole.protocol, whole.images, whole.detections
        per_class = self.protocol.matching.per_class
        self.categories = whole.categories if per_class else Categories.build(["all"])
        self.engine, self.parts, self._most = engine, parts, most
        self.places = places_of(engine, parts, headers)
        self._held: dict[Cut, list[Any]] | None = {} if keep else None

    def blocks(self, most_classes: int | None = None) -> Iterator[Cut]:
        """Split the classes into blocks of at most ``most`` detections, or one class."""
        return runs_of_classes(self.detections, self._most, most_classes)

    def pooled(self, selections: Sequence[str]) -> list[Cut]:
        """Return a block per selection of classes that share a curve; empty unless the protocol pools."""
        if self.protocol.ap.pool != "classes":
            return []
        return [Cut(0, len(self.detections), pooled=name) for name in dict.fromkeys(selections)]

    def count_of(self, block: Cut) -> int:
        """Return the number of detections of a block."""
        return int(self.detections[block.low : block.high].sum())

    def is_too_large(self, block: Cut) -> bool:
        """Return whether a block with one curve has too many detections to merge at a time."""
        one_curve = block.high - block.low == 1 or block.pooled is not None
        return one_curve and self.count_of(block) > self._most

    def can_be_split(self) -> bool:
        """Return whether a class can be scored in chunks."""
        return can_be_split(self.protocol, weighted=self.whole.weighted)

    def edges(self, blocks: Sequence[Cut]) -> dict[Cut, list[float]]:
        """Choose the edges of chunks of blocks that are too large, descending, from samples."""
        large = [block for block in blocks if self.is_too_large(block)]
        if not large:
            return {}
        tasks = [self.engine.submit("sample", sample_of, part, large) for part in self.parts]
        samples = self.engine.results(tasks)
        return {
            block: edges_between(
                [one for sample in samples for one in sample[number]], self.count_of(block), self._most
            )
            for number, block in enumerate(large)
        }

    def pieces(self, piece: Cut, name: str) -> list[Any]:
        """Cut a piece out of every part."""
        if self._held is not None and piece in self._held:
            return self._held[piece]
        pieces = [
            self.engine.submit(f"cut-{name}", cut, part, place, piece)
            for part, place in zip(self.parts, self.places, strict=True)
        ]
        if self._held is not None:
            self._held[piece] = pieces
        return pieces

    def classes_of(self, block: Cut) -> Categories | None:
        """Return the classes of a block; None if they share a curve."""
        return None if block.pooled is not None else self.categories.take(np.arange(*block[:2]))


def name_of(block: Cut) -> str:
    """Return the name of a block for its tasks."""
    if block.pooled is not None:
        return "pooled"
    return f"class-{block.low}" if block.high - block.low == 1 else f"classes-{block.low}-{block.high}"


def places_of(
    engine: Engine, parts: Sequence[Any], headers: Sequence[PartHeader]
) -> list[int | NDArray[np.int64]]:
    """Return the rows of each part's images among all; fetch ids only if the id ranges of parts overlap."""
    # Sort the parts by first id. If their id ranges do not overlap, one offset per part is enough.
    ends = sorted(  # numbers sort before strings
        ([(isinstance(one, str), one) for one in header.ends], number)
        for number, header in enumerate(headers)
        if header.images
    )
    if all(one[1] < other[0] for (one, _), (other, _) in itertools.pairwise(ends)):
        places: list[int | NDArray[np.int64]] = [0] * len(headers)
        before = 0
        for _, number in ends:
            places[number] = before
            before += headers[number].images
        return places
    # Otherwise fetch all ids and look up each image.
    ids = engine.results([engine.submit("image-ids", _image_ids, part) for part in parts])
    named = [
        SimpleNamespace(image_ids=of_part, source=header.source)
        for of_part, header in zip(ids, headers, strict=True)
    ]
    return [place.astype(np.int64) for place in numbered_images(named)[1]]


def _image_ids(part: Part) -> NDArray[Any]:
    return part.image_ids
