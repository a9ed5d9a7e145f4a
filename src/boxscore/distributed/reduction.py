"""Parts to numbers where no process may hold them all: class by class, a large class by ranges of scores.

Goal
----
A curve depends on its class alone, so a class is merged by whoever owns it, and only numbers travel on. A
class that is too large for one process is cut where scores differ. A range then needs two things of the
others: how many detections and true positives come before it, and the best precision after it. Both are
small, and every precision is the quotient of the same two whole numbers as in one process: the bits are the
same.

Conventions
-----------
- Everything here is a function of its arguments. An :class:`~boxscore.distributed.engine.Engine` runs them:
  this process, processes of this machine, or a cluster.
- A *piece* is a part cut to some classes, or to some scores of them. The ids of its images are their
  *places*: row numbers among all images. So equal scores go in the order that they have in one process.
- A *key* is a position on the axes A and M: an area range and a detection cap.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.vocabulary import Categories
from boxscore.distributed.engine import Engine
from boxscore.distributed.headers import PartHeader, header_of
from boxscore.distributed.merging import MergedParts, check_headers, numbered_images
from boxscore.distributed.parts import COUNTED, Part, TruthIdentity
from boxscore.distributed.pieces import Cut, cut, edges_between, sample_of
from boxscore.evaluation import counts_of_classes
from boxscore.matching.matches import Matches
from boxscore.matching.packed import narrowed
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.counts import HitCounts, Outcomes
from boxscore.scoring.curves import Curves, means_at_points, needed_hits
from boxscore.scoring.interpolation import curve_area
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.weighted import WeightedCounts

__all__ = [
    "Drawn",
    "Numbers",
    "RangeNumbers",
    "Totals",
    "asked_keys",
    "can_be_split",
    "draw_classes",
    "draw_range",
    "every_key",
    "join_block",
    "join_ranges",
    "numbers_of_range",
    "places_of",
    "reduced",
    "totals_of_ranges",
]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]
Key = tuple[int, int]

MOST = 1 << 22
"""Detections that one process merges at a time, unless one class has more and cannot be split."""


# ---------------------------------------------------------------- whole classes


class Drawn(NamedTuple):
    """The numbers of some classes."""

    counts: Mapping[str, NDArray[Any]]
    curves: Mapping[Key, JoinedCurves]


def draw_classes(pieces: Sequence[Part], piece: Cut, keys: Sequence[Key], images: int) -> Drawn:
    """Merge the pieces of some classes and draw their curves; where they are pooled, the one of all."""
    matches, protocol = _matches(pieces, piece), pieces[0].protocol
    curves = {}
    for area, cap in keys:
        outcomes = Outcomes.of(matches, protocol, area, cap)._replace(images=images)
        drawn = Curves(HitCounts(outcomes, protocol.ap.tie_order), protocol.ap)
        curves[area, cap] = JoinedCurves.of(drawn, protocol)
    return Drawn(counts_of_classes(matches), curves)


def _matches(pieces: Sequence[Part], piece: Cut) -> Matches:
    matches = MergedParts(pieces).matches()
    return matches if piece.pooled is None else matches.pooled(piece.pooled)


# ---------------------------------------------------------------- one class by ranges of scores


def can_be_split(protocol: Protocol, *, weighted: bool = False) -> bool:
    """Whether a class may be drawn by ranges of scores.

    So are AP and AR, of whole counts. Of AP at fixed scores, of FROC, MR and JI, and of a mean by images
    ranges say too little; and stretched scores are known where all parts are.
    """
    return (
        not weighted
        and protocol.scope.allows("ranges")
        and all(row.metric in ("AP", "AR") for row in protocol.rows)
    )


class Totals(NamedTuple):
    """What one part has of one class, by ranges of scores, S of them, the highest first."""

    counts: Mapping[str, NDArray[Any]]
    positive: Mapping[Key, int]
    hits: Mapping[Key, Counts]
    """True positives, [S, T]."""
    counted: Mapping[Key, Counts]
    """Counted detections, [S, T]."""

    def __add__(self, other: Totals) -> Totals:  # type: ignore[override]
        """Add up two parts."""

        def sums(mine: Mapping[Any, Any], yours: Mapping[Any, Any]) -> dict[Any, Any]:
            return {key: mine[key] + yours[key] for key in mine}

        return Totals(
            sums(self.counts, other.counts),
            sums(self.positive, other.positive),
            sums(self.hits, other.hits),
            sums(self.counted, other.counted),
        )


def totals_of_ranges(
    part: Part, blocks: Sequence[tuple[Cut, Sequence[float]]], keys: Sequence[Key]
) -> list[Totals]:
    """Count what a part has of each block in each range between its edges, which descend."""
    totals = []
    for block, edges in blocks:
        matches, ends = _matches([cut(part, 0, block)], block), np.array([*edges, -np.inf])
        positive, hits, counted = {}, {}, {}
        for area, cap in keys:
            outcomes = Outcomes.of(matches, part.protocol, area, cap)
            positive[area, cap] = int(outcomes.positive.sum())
            up_to = HitCounts(outcomes).at_scores(ends)
            hits[area, cap], counted[area, cap] = (np.diff(side[:, :, 0], prepend=0).T for side in up_to)
        totals.append(Totals(counts_of_classes(matches), positive, hits, counted))
    return totals


class RangeNumbers(NamedTuple):
    """What one range of scores says of a curve, at one key; T thresholds, R recall points."""

    best: FloatArray
    """Best precision in the range at or after each recall point, 0 where it has none, [T, R]."""
    score: FloatArray
    """Score at which each recall point is reached, NaN where it is not here, [T, R]."""
    first: float
    """Highest score, NaN without detections."""
    counted: list[NDArray[np.unsignedinteger[Any]]] | None
    """Counted detections up to each true positive, of each threshold, where AP is an area."""


def draw_range(
    pieces: Sequence[Part],
    piece: Cut,
    keys: Sequence[Key],
    before: Mapping[Key, tuple[Counts, Counts]],
    positive: Mapping[Key, int],
) -> dict[Key, RangeNumbers]:
    """Merge one range, and draw its share of the curves of its class.

    Parameters
    ----------
    pieces : sequence of Part
    piece : Cut
    keys : sequence of Key
    before : mapping of Key to (hits [T], counted [T])
        What comes before the range.
    positive : mapping of Key to int
        Counted ground truths of the class.

    Returns
    -------
    dict of Key to RangeNumbers
    """
    protocol, matches = pieces[0].protocol, _matches(pieces, piece)
    numbers = {}
    for key in keys:
        counts = HitCounts(Outcomes.of(matches, protocol, *key), protocol.ap.tie_order)
        numbers[key] = numbers_of_range(counts, before[key], positive[key], protocol)
    return numbers


def numbers_of_range(
    counts: HitCounts | WeightedCounts, before: tuple[Counts, Counts], positive: int, protocol: Protocol
) -> RangeNumbers:
    """Draw the share of a range in a curve; under weights the precision alone, which is all that is read.

    ``before`` are the true positives and the counted detections of higher scores, [T] each.
    """
    points, epsilon = np.array(protocol.ap.recall_points), protocol.ap.precision_epsilon
    needed = np.maximum(needed_hits(points, np.array([positive]))[:, 0], 1)
    scores, ends = counts.outcomes.score, np.cumsum(counts.hits.sum(axis=1))[:-1]
    T = len(protocol.matching.iou_thresholds)
    best, score = np.zeros((T, len(points))), np.full((T, len(points)), np.nan)
    whole = isinstance(counts, HitCounts)
    areas = whole and protocol.ap.interpolation != "points"
    every: list[NDArray[np.unsignedinteger[Any]]] = []
    lines = counts.lines()
    if not whole:
        lines = zip(*(np.split(column, ends) for column in next(lines)), strict=True)
    hit_detections = np.split(counts.hit_detections(), ends) if whole else []
    for t, (nth, counted) in enumerate(lines):
        hits_before, counted_before = (int(number[t]) for number in before)
        up_to = counted + np.int64(counted_before)
        # Counts under weights have 32 bits; a float64 holds all whole numbers below 2 ** 53.
        precision = (nth + np.float64(hits_before)) / (up_to + epsilon)
        after = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
        entry = needed - 1 - hits_before
        best[t] = after[np.clip(entry, 0, len(precision))]
        if whole:
            here = (entry >= 0) & (entry < len(precision))
            score[t, here] = scores[hit_detections[t][entry[here]]]
        if areas:
            every.append(narrowed(up_to))
    first = float(scores[0]) if len(scores) else np.nan
    return RangeNumbers(best, score, first, every if areas else None)


def join_ranges(
    ranges: Sequence[RangeNumbers],
    hits: Counts,
    positive: int,
    counted: Counts,
    protocol: Protocol,
    columns: Mapping[str, Any],
) -> JoinedCurves:
    """Join the ranges of a class, the highest scores first.

    ``hits`` are all its true positives, ``counted`` its counted detections, [T] each.
    """
    points = np.array(protocol.ap.recall_points)
    needed = needed_hits(points, np.array([positive]))[:, 0]
    reached = np.maximum(needed, 1) <= hits[:, None]  # [T, R]
    envelope = np.maximum.reduce([one.best for one in ranges])
    envelope[~reached] = 0.0
    score = np.zeros_like(envelope)
    for one in ranges:
        here = ~np.isnan(one.score)
        score[here] = one.score[here]
    first = next((one.first for one in ranges if not np.isnan(one.first)), None)
    score[:, needed == 0] = 0.0 if first is None else first
    recall = np.full(len(hits), np.nan)
    if positive:
        recall = np.divide(hits, np.int64(positive))
    else:
        score[:] = np.nan
        rule = protocol.ap.absent_classes
        if rule == "skip" or (rule == "zero" and first is None):
            envelope[:] = np.nan
    if protocol.ap.interpolation == "points":
        ap = means_at_points(envelope[:, None], protocol.ap)
    else:
        ap = np.zeros((len(hits), 1))
        for t in range(len(hits) if positive else 0):
            ap[t] = _area(
                [one.counted[t] for one in ranges if one.counted], positive, int(counted[t]), protocol
            )
        ap[np.isnan(envelope).any(axis=1)] = np.nan
    return JoinedCurves(
        protocol.ap,
        columns,
        np.array([positive]),
        recall[:, None],
        ap,
        envelope[:, :, None],
        score[:, :, None],
    )


def _area(
    ranges: Sequence[NDArray[np.unsignedinteger[Any]]], positive: int, total: int, protocol: Protocol
) -> float:
    """Area under the curve of one threshold, from what counts up to each true positive in each range."""
    counted = np.concatenate(ranges).astype(np.int64)
    precision = np.arange(1, len(counted) + 1) / (counted + protocol.ap.precision_epsilon)
    return curve_area(precision, positive, protocol.ap, counted=counted, total=total)


def join_block(
    ranges: Sequence[Mapping[Key, RangeNumbers]],
    total: Totals,
    protocol: Protocol,
    columns: Mapping[str, Any],
) -> Drawn:
    """Join the ranges of a large block at every key."""
    curves = {
        key: join_ranges(
            [numbers[key] for numbers in ranges],
            total.hits[key].sum(axis=0),
            total.positive[key],
            total.counted[key].sum(axis=0),
            protocol,
            columns,
        )
        for key in total.hits
    }
    return Drawn(total.counts, curves)


# ---------------------------------------------------------------- the driver


class Numbers(NamedTuple):
    """All that comes back."""

    protocol: Protocol
    categories: Categories
    """The classes of the ground truth."""
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    class_counts: Mapping[str, NDArray[Any]]
    curves: Mapping[tuple[int, int, str | None], JoinedCurves]
    """By area, cap, and the selection of classes that share a curve."""
    labels: list[str]
    nbytes: int
    """Of all parts."""
    identity: TruthIdentity


def reduced(
    engine: Engine,
    parts: Sequence[Any],
    *,
    most: int = MOST,
    headers: Sequence[PartHeader] | None = None,
    keys: Sequence[Key] | None = None,
) -> Numbers:
    """Reduce parts, wherever they are, to numbers.

    Parameters
    ----------
    engine : Engine
    parts : sequence of tasks
        Each gives a Part.
    most : int
        Detections that one process merges at a time.
    headers : sequence of PartHeader, optional
        Of the parts, where they are known.
    keys : sequence of Key, optional
        Area ranges and caps that curves are drawn at; all of the protocol's when not given.

    Returns
    -------
    Numbers

    Raises
    ------
    InputError
        When the parts do not fit together, or an image is in two.
    """
    if headers is None:
        headers = engine.results([engine.submit("header", header_of, part) for part in parts])
    check_headers(headers)
    first = headers[0]
    protocol = first.protocol
    job = _Job(engine, parts, headers, most, every_key(protocol) if keys is None else keys)
    selections = [row.classes for row in protocol.rows] if protocol.ap.pool == "classes" else []
    blocks = [Cut(low, high) for low, high in _blocks(job.detections, most)]
    pooled = [Cut(0, len(job.detections), pooled=name) for name in dict.fromkeys(selections)]
    drawn = job.drawn([*blocks, *pooled])
    own = drawn[: len(blocks)]
    columns = job.categories.columns
    curves: dict[tuple[int, int, str | None], JoinedCurves] = {
        (*key, None): JoinedCurves.join([block.curves[key] for block in own], columns) for key in job.keys
    }
    for piece, block in zip(pooled, drawn[len(blocks) :], strict=True):
        curves |= {(*key, piece.pooled): one for key, one in block.curves.items()}
    total: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for header in headers:
        total.update(header.counts)
        left_out.update(header.left_out)
    counts = {
        "images": job.images,
        **{name: total[name] for name in COUNTED},
        "classes": len(first.categories),
        "left_out": sum(left_out.values()),
    }
    class_counts = {name: np.concatenate([block.counts[name] for block in own]) for name in own[0].counts}
    return Numbers(
        protocol,
        first.categories,
        counts,
        left_out,
        class_counts,
        curves,
        job.categories.labels,
        sum(header.nbytes for header in headers),
        TruthIdentity.joined(header.identity for header in headers),
    )


def places_of(
    engine: Engine, parts: Sequence[Any], headers: Sequence[PartHeader]
) -> list[int | NDArray[np.int64]]:
    """Return the places of each part's images; their ids travel only where ranges of ids overlap."""
    order = sorted(
        (number for number, header in enumerate(headers) if header.images),
        key=lambda number: [(isinstance(one, str), one) for one in headers[number].ends],
    )
    ends = [[(isinstance(one, str), one) for one in headers[number].ends] for number in order]
    if all(one[1] < other[0] for one, other in itertools.pairwise(ends)):
        places: list[int | NDArray[np.int64]] = [0] * len(headers)
        before = 0
        for number in order:
            places[number] = before
            before += headers[number].images
        return places
    ids = engine.results([engine.submit("image-ids", _image_ids, part) for part in parts])
    named = [
        SimpleNamespace(image_ids=own, source=header.source) for own, header in zip(ids, headers, strict=True)
    ]
    return [place.astype(np.int64) for place in numbered_images(named)[1]]


def _image_ids(part: Part) -> NDArray[Any]:
    return part.image_ids


def every_key(protocol: Protocol) -> list[Key]:
    """Return every area range and cap."""
    return list(itertools.product(range(len(protocol.ignore.area_ranges)), range(len(protocol.caps))))


def asked_keys(protocol: Protocol) -> list[Key]:
    """Return the area ranges and caps that the summary asks for, and the first area range at the last cap."""
    areas, caps = list(protocol.ignore.area_ranges), len(protocol.caps)
    rows = {(areas.index(row.area), row.cap % caps): None for row in protocol.rows}
    return list({**rows, (0, caps - 1): None})


def _blocks(detections: Counts, most: int) -> Iterator[tuple[int, int]]:
    """Cut the classes into ranges of at most ``most`` detections, or one class."""
    low, held = 0, 0
    for k, count in enumerate(detections.tolist()):
        if held and held + count > most:
            yield low, k
            low, held = k, 0
        held += count
    yield low, len(detections)


class _Job:
    """One reduction: blocks of classes are drawn at the same time, the large ones by ranges of scores."""

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Any],
        headers: Sequence[PartHeader],
        most: int,
        keys: Sequence[Key],
    ) -> None:
        self.engine, self.parts, self.headers, self.most, self.keys = engine, parts, headers, most, keys
        self.protocol = headers[0].protocol
        self.places = places_of(engine, parts, headers)
        self.images = sum(header.images for header in headers)
        self.detections: Counts = np.sum([header.detections for header in headers], axis=0)
        per_class = self.protocol.matching.per_class
        self.categories = headers[0].categories if per_class else Categories.build(["all"])

    def drawn(self, blocks: Sequence[Cut]) -> list[Drawn]:
        """Draw blocks."""
        edges = self._edges(blocks)
        totals = self._totals({block: edges[block] for block in blocks if edges[block]})
        tasks: list[Any] = []
        ends = []
        for block in blocks:
            if edges[block]:
                tasks += self._range_tasks(block, edges[block], totals[block])
            else:
                name = f"classes-{block.low}-{block.high}" if block.pooled is None else "pooled"
                pieces = self._pieces(block, name)
                tasks.append(
                    self.engine.submit(f"draw-{name}", draw_classes, pieces, block, self.keys, self.images)
                )
            ends.append(len(tasks))
        results = self.engine.results(tasks)
        drawn = []
        for block, (low, high) in zip(blocks, itertools.pairwise([0, *ends]), strict=True):
            own = results[low:high]
            if edges[block] and self._joins_here:
                own = [join_block(own, totals[block], self.protocol, self._columns(block))]
            drawn += own
        return drawn

    @property
    def _joins_here(self) -> bool:
        """Whether ranges are some numbers; an area needs all true positives, and is joined elsewhere."""
        return self.protocol.ap.interpolation == "points"

    def _columns(self, block: Cut) -> Mapping[str, Any]:
        """Return what is known of the class of a large block."""
        return {} if block.pooled is not None else self.categories.take(np.arange(*block[:2])).columns

    def _edges(self, blocks: Sequence[Cut]) -> dict[Cut, list[float]]:
        """Choose scores between ranges, descending, from samples of the parts; none for a whole block."""
        count = {block: int(self.detections[block.low : block.high].sum()) for block in blocks}
        split = can_be_split(self.protocol, weighted=any(header.weighted for header in self.headers))
        large = [
            block
            for block in blocks
            if split
            and count[block] > self.most
            and (block.high - block.low == 1 or block.pooled is not None)
        ]
        edges: dict[Cut, list[float]] = {block: [] for block in blocks}
        if not large:
            return edges
        tasks = [self.engine.submit("sample", sample_of, part, large) for part in self.parts]
        samples = self.engine.results(tasks)
        for number, block in enumerate(large):
            sample = [one for own in samples for one in own[number]]
            edges[block] = edges_between(sample, count[block], self.most)
        return edges

    def _totals(self, edges: Mapping[Cut, Sequence[float]]) -> dict[Cut, Totals]:
        """Count what all parts have in each range of the large blocks."""
        if not edges:
            return {}
        ranges = list(edges.items())
        tasks = [
            self.engine.submit("count", totals_of_ranges, part, ranges, self.keys) for part in self.parts
        ]
        every = self.engine.results(tasks)
        return {
            block: functools.reduce(operator.add, [own[number] for own in every])
            for number, block in enumerate(edges)
        }

    def _pieces(self, piece: Cut, name: str) -> list[Any]:
        return [
            self.engine.submit(f"cut-{name}", cut, part, place, piece)
            for part, place in zip(self.parts, self.places, strict=True)
        ]

    def _range_tasks(self, block: Cut, edges: Sequence[float], total: Totals) -> list[Any]:
        """Start drawing a large block by ranges of scores."""
        tasks: list[Any] = []
        block_name = "pooled" if block.pooled is not None else f"class-{block.low}"
        for number, piece in enumerate(block.between(edges)):
            name = f"{block_name}-{number}"
            before = {
                key: (total.hits[key][:number].sum(axis=0), total.counted[key][:number].sum(axis=0))
                for key in self.keys
            }
            pieces = self._pieces(piece, name)
            tasks.append(
                self.engine.submit(
                    f"draw-{name}", draw_range, pieces, piece, self.keys, before, total.positive
                )
            )
        if self._joins_here:
            return tasks
        columns = self._columns(block)
        return [self.engine.submit(f"join-{block_name}", join_block, tasks, total, self.protocol, columns)]
