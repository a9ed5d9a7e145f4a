"""Which classes of parts are scored together, and which class is cut by scores: one plan for every question.

Conventions
-----------
- A curve depends on its class alone, so a class is merged by whoever owns it, and only numbers travel on. A
  *block* is some classes with one owner, or a selection of classes that share a curve.
- A class that is too large for one process is cut where scores differ, unless a rule or a kind of metric
  needs one owner: the numbers of its ranges of scores fold (:mod:`boxscore.scoring.curves`).
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
"""Detections that one process merges at a time, unless one class has more and cannot be split."""

MATCHED = 500
"""Bytes of a box of a partition that is read and matched."""

SCORED = 150
"""Bytes of a detection of the classes, or of the range of scores, that are scored together."""

TASKS = 1 << 18
"""Pieces of a class, one for each part and range of scores, that a scheduler is given; it bears some 10^6."""


def partition_of(boxes: int, usual: int, memory: int | None) -> int:
    """Return the boxes of a partition: the usual number, more where there would be too many tasks.

    ``memory`` are the bytes that a worker has for one task, None where nobody says.
    """
    pieces = boxes / usual * (2 * boxes / MOST)
    if memory is None or pieces <= TASKS:
        return usual
    return max(usual, min(memory // MATCHED, int(usual * math.sqrt(pieces / TASKS))))


def most_within(room: int | None) -> int:
    """Return how many detections are merged at a time within the bytes of a process, if they are limited."""
    return MOST if room is None else min(MOST, room // SCORED)


def most_of(headers: Sequence[PartHeader], usual: int, memory: int | None) -> int:
    """Return how many detections are merged at a time: the usual number, more where tasks would be too many.

    Fewer ranges of scores, of a class that is cut, are fewer tasks. ``memory`` is as above.
    """
    largest = int(added_headers(headers).detections.max(initial=0))
    wanted = -(-2 * largest * len(headers) // TASKS)
    return usual if memory is None or wanted <= usual else max(usual, min(memory // SCORED, wanted))


def runs_of_classes(detections: IntArray, most: int, most_classes: int | None = None) -> Iterator[Cut]:
    """Cut classes, of so many detections each, [K], into runs of at most ``most``, or one class."""
    low, held = 0, 0
    for k, count in enumerate(detections.tolist()):
        full = k > low and held + count > most  # also where those before have none
        if full or (most_classes is not None and k - low == most_classes):
            yield Cut(low, k)
            low, held = k, 0
        held += count
    yield Cut(low, len(detections))


def can_be_split(protocol: Protocol, *, weighted: bool = False) -> bool:
    """Whether a class may be scored by ranges of scores; not where its ground truths have weights."""
    return (
        not weighted
        and protocol.scope.allows("ranges")
        and all(kind.fold is not None for kind in kinds_of(protocol))
    )


def every_key(protocol: Protocol) -> list[Key]:
    """Return every area range and max detections."""
    return list(itertools.product(range(len(protocol.ignore.area_ranges)), range(len(protocol.caps))))


def asked_keys(protocol: Protocol) -> list[Key]:
    """Return the area ranges and max detections that the summary asks for, and the first and the largest."""
    return list({**summary_keys(protocol.rows, protocol), (0, len(protocol.caps) - 1): None})


class ClassPlan:
    """The classes of parts, in blocks.

    Parameters
    ----------
    engine : Engine
    parts : sequence of tasks
        Each gives a Part.
    headers : sequence of PartHeader
        Of the parts.
    most : int
        Detections that one process merges at a time.
    keep : bool, default False
        Hold on to pieces that were cut, for further tasks.

    Attributes
    ----------
    whole : PartHeader
        Of all parts together.
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
        """Cut the classes into runs of at most ``most`` detections, or one class; of few enough classes."""
        return runs_of_classes(self.detections, self._most, most_classes)

    def pooled(self, selections: Sequence[str]) -> list[Cut]:
        """Return a block for each selection of classes that share a curve; none unless the protocol pools."""
        if self.protocol.ap.pool != "classes":
            return []
        return [Cut(0, len(self.detections), pooled=name) for name in dict.fromkeys(selections)]

    def count_of(self, block: Cut) -> int:
        """Count the detections of a block."""
        return int(self.detections[block.low : block.high].sum())

    def is_too_large(self, block: Cut) -> bool:
        """Whether a block of one curve has more detections than one process merges at a time."""
        one_curve = block.high - block.low == 1 or block.pooled is not None
        return one_curve and self.count_of(block) > self._most

    def can_be_split(self) -> bool:
        """Whether a class may be scored by ranges of scores."""
        return can_be_split(self.protocol, weighted=self.whole.weighted)

    def edges(self, blocks: Sequence[Cut]) -> dict[Cut, list[float]]:
        """Choose scores between ranges of the blocks that are too large, descending, from samples."""
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
        """Cut all parts."""
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
        """Return the classes of a block; None where they share a curve."""
        return None if block.pooled is not None else self.categories.take(np.arange(*block[:2]))


def name_of(block: Cut) -> str:
    """Return what the tasks of a block are called."""
    if block.pooled is not None:
        return "pooled"
    return f"class-{block.low}" if block.high - block.low == 1 else f"classes-{block.low}-{block.high}"


def places_of(
    engine: Engine, parts: Sequence[Any], headers: Sequence[PartHeader]
) -> list[int | NDArray[np.int64]]:
    """Return the rows of each part's images among all; their ids travel only where ranges of ids overlap."""
    # Sort the parts by their first id. If no range of ids overlaps the next, a part's images follow those of
    # the parts before it, and one number per part is enough.
    ends = sorted(  # numbers go before strings
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
    # Otherwise collect all ids and look up the place of each image.
    ids = engine.results([engine.submit("image-ids", _image_ids, part) for part in parts])
    named = [
        SimpleNamespace(image_ids=of_part, source=header.source)
        for of_part, header in zip(ids, headers, strict=True)
    ]
    return [place.astype(np.int64) for place in numbered_images(named)[1]]


def _image_ids(part: Part) -> NDArray[Any]:
    return part.image_ids
