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
- Everything here is a function of its arguments. An :class:`Engine` runs them: this process, or a cluster.
- A *piece* is a part cut to some classes, or to some scores of them. The ids of its images are their
  *places*: row numbers among all images. So equal scores go in the order that they have in one process.
- A *key* is a position on the axes A and M: an area range and a detection cap.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple
from typing import Protocol as Protocol_

import numpy as np
from numpy.typing import NDArray

from boxscore.data.vocabulary import Categories, Id
from boxscore.distributed.merging import MergedParts, check_headers, numbered_images
from boxscore.distributed.parts import COUNTED, Part, TruthIdentity
from boxscore.evaluation import counts_of_classes
from boxscore.matching.matches import Matches
from boxscore.matching.packed import narrowed
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.counts import HitCounts, Outcomes
from boxscore.scoring.curves import Curves, means_at_points, needed_hits
from boxscore.scoring.joined import JoinedCurves
from boxscore.scoring.weighted import WeightedCounts

__all__ = [
    "Cut",
    "Drawn",
    "Engine",
    "Here",
    "Numbers",
    "PartHeader",
    "RangeNumbers",
    "Totals",
    "can_be_split",
    "cut",
    "draw_classes",
    "draw_range",
    "edges_between",
    "header_of",
    "join_ranges",
    "numbers_of_range",
    "places_of",
    "reduced",
    "sample_of",
    "totals_of_ranges",
]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int64]
Key = tuple[int, int]

MOST = 1 << 22
"""Detections that one process merges at a time, unless one class has more and cannot be split."""

SAMPLED = 256
"""Scores of a class of a part from which ranges are chosen, about."""


class Engine(Protocol_):
    """Runs functions somewhere."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function; its arguments may be what this returned, also in lists."""
        ...

    def results(self, tasks: Sequence[Any]) -> list[Any]:
        """Wait for what was started, and return what came out."""
        ...


class Here:
    """Runs everything at once in this process."""

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function."""
        return function(*arguments)

    def results(self, tasks: Sequence[Any]) -> list[Any]:
        """Return the results."""
        return list(tasks)


# ---------------------------------------------------------------- what the driver knows of a part


class PartHeader(NamedTuple):
    """What is known of a part without its columns: some numbers a class."""

    version: str
    digest: str
    protocol: Protocol
    categories: Categories
    row_order: str
    row_count: int
    source: str
    images: int
    ends: tuple[Id, ...]
    """First and last id of its images; none without images."""
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    detections: Counts
    """Matched detections of each class, [K]."""
    weighted: bool
    nbytes: int
    identity: TruthIdentity


def header_of(part: Part) -> PartHeader:
    """Say what the driver has to know of a part."""
    ids = part.image_ids
    return PartHeader(
        part.version,
        part.digest,
        part.protocol,
        part.categories,
        part.row_order,
        part.row_count,
        part.source,
        len(ids),
        tuple(ids[[0, -1]].tolist()) if len(ids) else (),
        part.counts,
        part.left_out,
        np.diff(part.matches.bounds[0]),
        part.matches.truth_weight is not None,
        part.nbytes,
        part.identity,
    )


def sample_of(part: Part, low: int, high: int) -> list[tuple[FloatArray, float]]:
    """Return some scores of each class in [low, high), and how many detections one of them stands for."""
    sample = []
    for first, end in itertools.pairwise(part.matches.bounds[0, low : high + 1].tolist()):
        scores = part.matches.score[first : end : max(1, (end - first) // SAMPLED)].astype(np.float64)
        if len(scores):
            sample.append((scores, (end - first) / len(scores)))
    return sample


def edges_between(sample: Sequence[tuple[FloatArray, float]], count: int, most: int) -> list[float]:
    """Choose scores between ranges of half of ``most`` detections, about, descending; from samples."""
    scores = np.concatenate([scores for scores, _ in sample])
    weight = np.concatenate([np.full(len(scores), weight) for scores, weight in sample])
    order = np.argsort(-scores, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    ranges = 2 * -(-count // most)
    at = np.searchsorted(share, np.arange(1, ranges) / ranges)
    edges: list[float] = np.unique(scores[order[np.minimum(at, len(order) - 1)]])[::-1].tolist()
    return edges


# ---------------------------------------------------------------- pieces


class Cut(NamedTuple):
    """What a piece holds."""

    low: int
    high: int
    """Classes in [low, high)."""
    least: float = -np.inf
    below: float = np.inf
    """Scores in [least, below)."""


def cut(part: Part, place: int | NDArray[np.int64], piece: Cut) -> Part:
    """Cut a part to a piece.

    Parameters
    ----------
    part : Part
    place : int, or ndarray of int64, [I]
        Row of each of its images among all; an int where they follow each other: that of the first.
    piece : Cut

    Returns
    -------
    Part
    """
    own, (low, high) = part.matches, piece[:2]
    (d, d_end), (p, p_end), (g, g_end) = own.bounds[:, [low, high]].tolist()
    sizes = np.diff(own.bounds[:, low : high + 1], axis=1)
    kept, pairs, truths = np.arange(d, d_end), np.arange(p, p_end), np.arange(g, g_end)
    if piece.least > -np.inf or piece.below < np.inf:
        score = own.score[d:d_end]
        chosen = (score >= piece.least) & (score < piece.below)
        kept = kept[chosen]
        pairs = pairs[np.repeat(chosen, own.pair_count[d:d_end])]
        truths = np.unique(own.truth[pairs]).astype(np.intp)
        sizes = np.stack(
            [
                np.diff(np.searchsorted(positions, own.bounds[axis, low : high + 1]))
                for axis, positions in enumerate((kept, pairs, truths))
            ]
        )
    number = np.zeros(len(part.image_ids), dtype=bool)
    number[own.image[kept]] = True
    number[own.truth_image[truths]] = True
    images = np.flatnonzero(number)
    row = np.zeros(len(number), dtype=np.int64)
    row[images] = np.arange(len(images))
    # Rows are found by position, so that truths of pieces need not be those of the part.
    matches = dataclasses.replace(
        own,
        bounds=np.concatenate([np.zeros((3, 1), dtype=np.int64), np.cumsum(sizes, axis=1)], axis=1),
        score=own.score[kept],
        image=narrowed(row[own.image[kept]]),
        rank=own.rank[kept],
        in_range=own.in_range[kept],
        pair_count=own.pair_count[kept],
        row=None if own.row is None else own.row[kept],
        truth=narrowed(np.searchsorted(truths, own.truth[pairs])),
        outcome=own.outcome[pairs],
        truth_image=narrowed(row[own.truth_image[truths]]),
        truth_counted=own.truth_counted[truths],
        truth_weight=None if own.truth_weight is None else own.truth_weight[truths],
    )
    places = images + place if isinstance(place, int) else place[images]
    per_class = part.protocol.matching.per_class
    spent = part.spent
    if spent is not None:
        here = np.flatnonzero((spent.category >= low) & (spent.category < high))
        spent = type(spent)(spent.category[here] - low, spent.score[here], spent.row[here])
    return dataclasses.replace(
        part,
        categories=part.categories.take(np.arange(low, high)) if per_class else part.categories,
        image_ids=places.astype(np.int64),
        image_columns={},
        matches=matches,
        spent=spent,
    )


# ---------------------------------------------------------------- whole classes


class Drawn(NamedTuple):
    """The numbers of some classes."""

    counts: Mapping[str, NDArray[Any]]
    curves: Mapping[Key, JoinedCurves]


def draw_classes(
    pieces: Sequence[Part], keys: Sequence[Key], images: int, pooled: str | None = None
) -> Drawn:
    """Merge the pieces of some classes and draw their curves; with ``pooled`` one curve of a selection."""
    matches = MergedParts(pieces).matches()
    if pooled is not None:
        matches = matches.pooled(pooled)
    protocol = pieces[0].protocol
    curves = {}
    for area, cap in keys:
        outcomes = Outcomes.of(matches, protocol, area, cap)._replace(images=images)
        drawn = Curves(HitCounts(outcomes, protocol.ap.tie_order), protocol.ap)
        curves[area, cap] = JoinedCurves.of(drawn, protocol)
    return Drawn(counts_of_classes(matches), curves)


# ---------------------------------------------------------------- one class by ranges of scores


def can_be_split(protocol: Protocol, *, weighted: bool = False) -> bool:
    """Whether a class may be drawn by ranges of scores: AP at recall points, whole counts, no FROC."""
    return (
        protocol.ap.interpolation == "points"
        and protocol.matching.cap_scope != "data_set_class"
        and not weighted
        and not any(row.metric == "FROC" for row in protocol.rows)
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
    part: Part, whole: Cut, edges: Sequence[float], keys: Sequence[Key], pooled: str | None = None
) -> Totals:
    """Count what a part has in each range between edges, which descend."""
    every = _matches([cut(part, 0, whole)], pooled)
    ranges = [_matches([cut(part, 0, one)], pooled) for one in _ranges(whole, edges)]
    positive, hits, counted = {}, {}, {}
    for area, cap in keys:
        positive[area, cap] = int(every.positives(area).sum())
        counts = [HitCounts(Outcomes.of(matches, part.protocol, area, cap)) for matches in ranges]
        hits[area, cap] = np.stack([count.hits[:, 0] for count in counts])
        counted[area, cap] = np.stack([count.totals()[:, 0] for count in counts])
    return Totals(counts_of_classes(every), positive, hits, counted)


def _ranges(whole: Cut, edges: Sequence[float]) -> list[Cut]:
    bounds = [np.inf, *edges, -np.inf]
    return [Cut(whole.low, whole.high, least, below) for below, least in itertools.pairwise(bounds)]


def _matches(pieces: Sequence[Part], pooled: str | None) -> Matches:
    matches = MergedParts(pieces).matches()
    return matches if pooled is None else matches.pooled(pooled)


class RangeNumbers(NamedTuple):
    """What one range of scores says of a curve, at one key; T thresholds, R recall points."""

    best: FloatArray
    """Best precision in the range at or after each recall point, 0 where it has none, [T, R]."""
    score: FloatArray
    """Score at which each recall point is reached, NaN where it is not here, [T, R]."""
    first: float
    """Highest score, NaN without detections."""


def draw_range(
    pieces: Sequence[Part],
    keys: Sequence[Key],
    before: Mapping[Key, tuple[Counts, Counts]],
    positive: Mapping[Key, int],
    pooled: str | None = None,
) -> dict[Key, RangeNumbers]:
    """Merge one range, and draw its share of the curves of its class.

    Parameters
    ----------
    pieces : sequence of Part
    keys : sequence of Key
    before : mapping of Key to (hits [T], counted [T])
        What comes before the range.
    positive : mapping of Key to int
        Counted ground truths of the class.
    pooled : str, optional

    Returns
    -------
    dict of Key to RangeNumbers
    """
    protocol, matches = pieces[0].protocol, _matches(pieces, pooled)
    numbers = {}
    for key in keys:
        counts = HitCounts(Outcomes.of(matches, protocol, *key), protocol.ap.tie_order)
        numbers[key] = numbers_of_range(counts, before[key], positive[key], protocol)
    return numbers


def numbers_of_range(
    counts: HitCounts | WeightedCounts, before: tuple[Counts, Counts], positive: int, protocol: Protocol
) -> RangeNumbers:
    """Draw the share of a range in a curve; under weights without scores, which no metric reads.

    ``before`` are the true positives and the counted detections of higher scores, [T] each.
    """
    points, epsilon = np.array(protocol.ap.recall_points), protocol.ap.precision_epsilon
    needed = np.maximum(needed_hits(points, np.array([positive]))[:, 0], 1)
    scores, ends = counts.outcomes.score, np.cumsum(counts.hits.sum(axis=1))[:-1]
    T = len(protocol.matching.iou_thresholds)
    best, score = np.zeros((T, len(points))), np.full((T, len(points)), np.nan)
    whole = isinstance(counts, HitCounts)
    lines = counts.lines()
    if not whole:
        lines = zip(*(np.split(column, ends) for column in next(lines)), strict=True)
    hit_detections = np.split(counts.hit_detections(), ends) if whole else []
    for t, (nth, counted) in enumerate(lines):
        hits_before, counted_before = (int(number[t]) for number in before)
        # Sums in float64: whole numbers below 2 ** 53, where counts under weights are of 32 bits.
        precision = (nth + np.float64(hits_before)) / ((counted + np.float64(counted_before)) + epsilon)
        after = np.append(np.maximum.accumulate(precision[::-1])[::-1], 0.0)
        entry = needed - 1 - hits_before
        best[t] = after[np.clip(entry, 0, len(precision))]
        if whole:
            here = (entry >= 0) & (entry < len(precision))
            score[t, here] = scores[hit_detections[t][entry[here]]]
    return RangeNumbers(best, score, float(scores[0]) if len(scores) else np.nan)


def join_ranges(
    ranges: Sequence[RangeNumbers],
    hits: Counts,
    positive: int,
    protocol: Protocol,
    columns: Mapping[str, Any],
) -> JoinedCurves:
    """Join the ranges of a class, the highest scores first; ``hits`` are all its true positives, [T]."""
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
    return JoinedCurves(
        protocol.ap,
        columns,
        np.array([positive]),
        recall[:, None],
        means_at_points(envelope[:, None], protocol.ap),
        envelope[:, :, None],
        score[:, :, None],
    )


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
    places = places_of(engine, parts, headers)
    images = sum(header.images for header in headers)
    detections: Counts = np.sum([header.detections for header in headers], axis=0)
    total: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for header in headers:
        total.update(header.counts)
        left_out.update(header.left_out)
    per_class = protocol.matching.per_class
    categories = first.categories if per_class else Categories.build(["all"])
    split = can_be_split(protocol, weighted=any(header.weighted for header in headers))
    keys = _keys(protocol)
    job = _Job(engine, parts, places, headers, protocol, categories, images, most, split)
    drawn = [job.start(low, high, keys) for low, high in _blocks(detections, most)]
    selections = [row.classes for row in protocol.rows] if protocol.ap.pool == "classes" else []
    pooled = {
        selection: job.start(0, len(detections), keys, selection) for selection in dict.fromkeys(selections)
    }
    blocks = [finish() for finish in drawn]
    curves: dict[tuple[int, int, str | None], JoinedCurves] = {
        (*key, None): JoinedCurves.join([block.curves[key] for block in blocks], categories.columns)
        for key in keys
    }
    for selection, finish in pooled.items():
        curves |= {(*key, selection): one for key, one in finish().curves.items()}
    counts = {
        "images": images,
        **{name: total[name] for name in COUNTED},
        "classes": len(first.categories),
        "left_out": sum(left_out.values()),
    }
    class_counts = {
        name: np.concatenate([block.counts[name] for block in blocks]) for name in blocks[0].counts
    }
    nbytes = sum(header.nbytes for header in headers)
    return Numbers(
        protocol,
        first.categories,
        counts,
        left_out,
        class_counts,
        curves,
        categories.labels,
        nbytes,
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


def _keys(protocol: Protocol) -> list[Key]:
    """Return every area range and cap."""
    return list(itertools.product(range(len(protocol.ignore.area_ranges)), range(len(protocol.caps))))


def _blocks(detections: Counts, most: int) -> Iterator[tuple[int, int]]:
    """Cut the classes into ranges of at most ``most`` detections, or one class."""
    low, held = 0, 0
    for k, count in enumerate(detections.tolist()):
        if held and held + count > most:
            yield low, k
            low, held = k, 0
        held += count
    yield low, len(detections)


@dataclasses.dataclass(frozen=True)
class _Job:
    engine: Engine
    parts: Sequence[Any]
    places: Sequence[int | NDArray[np.int64]]
    headers: Sequence[PartHeader]
    protocol: Protocol
    categories: Categories
    images: int
    most: int
    split: bool

    def start(
        self, low: int, high: int, keys: Sequence[Key], pooled: str | None = None
    ) -> Callable[[], Drawn]:
        """Start drawing classes; return what waits for the numbers."""
        whole = Cut(low, high)
        count = sum(int(header.detections[low:high].sum()) for header in self.headers)
        one = high - low == 1 or pooled is not None
        edges = self._edges(low, high, count) if self.split and one and count > self.most else []
        if edges:
            return self._by_ranges(whole, edges, keys, pooled)
        name = "pooled" if pooled is not None else f"classes-{low}-{high}"
        task = self.engine.submit(
            f"draw-{name}", draw_classes, self._pieces(whole, name), keys, self.images, pooled
        )

        def finish() -> Drawn:
            drawn: Drawn = self.engine.results([task])[0]
            return drawn

        return finish

    def _edges(self, low: int, high: int, count: int) -> list[float]:
        """Choose scores between ranges, descending, from the parts' samples."""
        tasks = [self.engine.submit("sample", sample_of, part, low, high) for part in self.parts]
        sample = [one for own in self.engine.results(tasks) for one in own]
        return edges_between(sample, count, self.most)

    def _pieces(self, piece: Cut, name: str) -> list[Any]:
        return [
            self.engine.submit(f"cut-{name}", cut, part, place, piece)
            for part, place, header in zip(self.parts, self.places, self.headers, strict=True)
        ]

    def _by_ranges(
        self, whole: Cut, edges: Sequence[float], keys: Sequence[Key], pooled: str | None
    ) -> Callable[[], Drawn]:
        """Draw one class by ranges of scores."""
        name = "pooled" if pooled is not None else f"class-{whole.low}"
        tasks = [
            self.engine.submit(f"count-{name}", totals_of_ranges, part, whole, edges, keys, pooled)
            for part in self.parts
        ]
        total: Totals = functools.reduce(operator.add, self.engine.results(tasks))
        drawn = []
        for number, piece in enumerate(_ranges(whole, edges)):
            before = {
                key: (total.hits[key][:number].sum(axis=0), total.counted[key][:number].sum(axis=0))
                for key in keys
            }
            pieces = self._pieces(piece, f"{name}-{number}")
            drawn.append(
                self.engine.submit(
                    f"draw-{name}-{number}", draw_range, pieces, keys, before, total.positive, pooled
                )
            )
        one = self.categories.take(np.arange(whole.low, whole.high)) if pooled is None else None

        def finish() -> Drawn:
            ranges = self.engine.results(drawn)
            columns = {} if one is None else one.columns
            return Drawn(
                total.counts,
                {
                    key: join_ranges(
                        [numbers[key] for numbers in ranges],
                        total.hits[key].sum(axis=0),
                        total.positive[key],
                        self.protocol,
                        columns,
                    )
                    for key in keys
                },
            )

        return finish
