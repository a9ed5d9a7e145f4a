"""Compute summary metrics under image weights from parts: bootstrap, slices, comparisons.

Results have the bits of :func:`boxscore.extensions.weights.under_weights.weighted_metrics`. The worker that
owns a class counts its detections by the weights of their images and returns its values, from which the same
code takes means.

Conventions
-----------
- Workers generate the weights they need (:class:`~boxscore.scoring.summary.WeightSets`), so the full matrix
  of images times resamples is never in memory: a task holds at most :data:`HELD` weights.
- Sets of weights are processed in batches whose values for all classes fit in :data:`BATCH`. A batch of a
  block of classes is one task, which handles one area range and max detections at a time to save memory.
- A class that is too large for one process is processed in a chain of chunks, highest scores first: each
  chunk continues the totals of the previous ones, set by set, and folds its state into theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.progress import progress as shown
from boxscore.data.vocabulary import Categories, Images, rows_among_all, rows_where
from boxscore.errors import InputError
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.headers import PartHeader
from boxscore.extensions.large.merging import MergedParts
from boxscore.extensions.large.packed import narrowed
from boxscore.extensions.large.parts import Part
from boxscore.extensions.large.pieces import Cut
from boxscore.extensions.large.plan import ClassPlan, name_of, places_of
from boxscore.extensions.weights.under_weights import weighted_metrics
from boxscore.extensions.weights.weighted import ImageWeights
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import TAKES_PART
from boxscore.scoring.blocks import MOST_VALUES
from boxscore.scoring.curves import JOINED, Curves, State, folded
from boxscore.scoring.kinds import folds_of, kind_of
from boxscore.scoring.summary import Key, WeightedMetrics, WeightSets, summary_keys, summary_table
from boxscore.scoring.totals import Before, Totals

Metrics = Mapping[Key, Sequence[str]]
"""Kinds of summary metrics by area range and max detections."""
Item = TypeVar("Item")

BYTES, BYTES_ALONE = 150, 400
"""Bytes per detection when counting one area range and max detections, and all of COCO's."""

MOST = 1 << 22
"""Maximum number of detections that one process counts at a time."""

ALONE = 1 << 20
"""Maximum number of detections counted in one task, at all area ranges and max detections."""

MOST_OWNED = 1 << 25
"""Maximum number of detections of a class that cannot be split, 5 GB."""

HELD = 1 << 27
"""Maximum number of weights that a task caches, one byte each; others are generated on each use."""

BATCH = 1 << 28
"""Bytes for the values of one batch of weights over all classes."""

LONGEST_BATCH = 1 << 7
"""Maximum number of weight sets in a batch."""

TOGETHER = 4
"""Number of batches started together."""

LONGEST_CHAIN = 1 << 5
"""Number of chained chunks after which the driver fetches the numbers; calls nest this deep."""


class HeldParts(NamedTuple):
    """Parts on an engine."""

    engine: Engine
    parts: Sequence[Any]
    """Handles of the engine."""
    headers: Sequence[PartHeader]
    room: int | None = None
    """Memory limit of a process in bytes; None for no limit."""
    tasks: Sequence[Any] = ()
    """Tasks that read the partitions again, for questions about boxes; may be empty."""

    def places(self) -> list[int | NDArray[np.int64]]:
        """Return the rows of each part's images among all: the first row, or every row."""
        return places_of(self.engine, self.parts, self.headers)


class BlockValues(NamedTuple):
    """Values of the curves of a block under W sets of weights."""

    curves: list[dict[Key, Curves]]
    """Values of metric kinds, per set."""
    ground_truths: IntArray
    """In the first area range, over all curves, [W]."""
    detections: IntArray
    """Over all curves, [W]."""


# ---------------------------------------------------------------- whole classes


def _score_alone(
    pieces: Sequence[Part], weights: WeightSets, rows: Sequence[SummaryRow], images: int
) -> WeightedMetrics:
    """Score all classes in one task."""
    return weighted_metrics(_matches(pieces, images), pieces[0].protocol, rows, weights)


def _score_block(
    pieces: Sequence[Part], block: Cut, weights: WeightSets, metrics: Metrics, images: int
) -> BlockValues:
    """Merge the pieces of a block, and evaluate its curves under each set of weights."""
    matches, protocol = _matches(pieces, images, block.pooled), pieces[0].protocol
    sets = _held(weights, images)
    truth_image = matches.truth_image[matches.counted(0)]
    curves: list[dict[Key, Curves]] = [{} for _ in range(len(weights))]
    for key, names in metrics.items():
        prepared = ImageWeights(matches, protocol, *key)
        for of_set, image_weights in zip(curves, sets, strict=True):
            weighted = Curves(prepared.counts(image_weights), protocol.ap)
            of_set[key] = _values(weighted, names, protocol)
    counts = [(one[truth_image].sum(), one[matches.image].sum()) for one in sets]
    truths, detections = np.array(counts).astype(np.int64).T
    return BlockValues(curves, truths, detections)


def _matches(pieces: Sequence[Part], images: int, pooled: str | None = None) -> Matches:
    """Merge pieces; images keep their row numbers among all images."""
    parts = MergedParts(pieces)
    every = Images.of_ids(np.broadcast_to(np.int64(0), images))  # identified by row only
    merged = parts.matches().with_images(every, parts.ids.astype(np.int32))
    return merged if pooled is None else merged.pooled(pooled)


def _held(weights: WeightSets, images: int) -> Iterable[NDArray[Any]]:
    """Cache the sets of weights in compact form if they are few; they are used once per key."""
    return [narrowed(one) for one in weights] if images * len(weights) <= HELD else weights


def _values(curves: Curves, names: Sequence[str], protocol: Protocol) -> Curves:
    """Reduce curves to the values of some metric kinds, and the totals that means need."""
    values = {name: kind_of(name).values_of(curves, protocol) for name in names}
    totals = Totals.of_images(curves.totals, protocol)
    return Curves.of_numbers(protocol.ap, totals, values, curves.categories)


# ---------------------------------------------------------------- one curve in chunks by score


class TruthRows(NamedTuple):
    """The ground truths of a block in a part, [G] each."""

    place: NDArray[np.int64]
    """Row of the image among all images."""
    counted: NDArray[np.bool_]
    """Whether the ground truth counts, [A, G]."""
    taking_part: NDArray[np.bool_]
    """Whether recall includes it, [A, G]."""


class Chain(NamedTuple):
    """Accumulated totals and states of a class under W sets of weights, highest scores first."""

    totals: list[dict[Key, Totals]]
    states: list[dict[Key, State]]
    ground_truths: IntArray
    """In the first area range, [W]."""
    detections: IntArray
    """Detections so far, [W]."""


def _truths_of(part: Part, place: int | NDArray[np.int64], block: Cut) -> TruthRows:
    """Return the ground truths of a block in a part."""
    packed, (low, high) = part.matches, block[:2]
    bounds = packed.bounds[2, low : high + 1]
    # A block is a slice of the ground truths; a selection of classes is several slices.
    chosen = np.arange(bounds[0], bounds[-1])
    if block.pooled:
        taken = rows_where(part.categories.columns, block.pooled, high - low)
        chosen = chosen[np.repeat(taken, np.diff(bounds))]
    image = packed.truth_image[chosen]
    # Unpack the bits of all areas together, [A, G].
    bits = packed.truth_counted[chosen]
    areas = np.arange(packed.area_count, dtype=bits.dtype)[:, None]
    counted = ((bits >> areas) & 1).astype(bool)
    taking_part, takes_part = counted, TAKES_PART.of(packed.extra)
    if takes_part is not None:
        taking_part = np.broadcast_to(takes_part[chosen], counted.shape)
    return TruthRows(rows_among_all(image, place), counted, taking_part)


def _start_chain(
    truths: Sequence[TruthRows], weights: WeightSets, metrics: Metrics, protocol: Protocol
) -> Chain:
    """Count the ground truths of a class, before the first chunk."""
    # Collect the image of each counted object, and the distinct images per area, once for all sets.
    place = np.concatenate([one.place for one in truths])
    counted = place[np.concatenate([one.counted[0] for one in truths])]
    objects = {area: place[np.concatenate([one.taking_part[area] for one in truths])] for area, _ in metrics}
    images = {area: np.unique(places) for area, places in objects.items()}
    T, steps = len(protocol.matching.iou_thresholds), protocol.ap.score_steps
    totals, ground_truths = [], []
    # The number of objects under a set is a sum of integer weights, exact in float64.
    for one in weights:
        ground_truths.append(one[counted].sum())
        of_set = {}
        for area, cap in metrics:
            positive, images_of_class = (
                np.array([one[rows[area]].sum()]).astype(np.int64) for rows in (objects, images)
            )
            of_set[area, cap] = Totals.of_objects(
                positive, int(one.sum(dtype=np.int64)), images_of_class, thresholds=T, steps=steps
            )
        totals.append(of_set)
    # Start with empty states and 0 detections.
    W = len(totals)
    truth_counts = np.array(ground_truths).astype(np.int64)
    return Chain(totals, [{} for _ in range(W)], truth_counts, np.zeros(W, dtype=np.int64))


def _score_range(
    before: Chain,
    pieces: Sequence[Part],
    block: Cut,
    weights: WeightSets,
    metrics: Metrics,
    images: int,
) -> Chain:
    """Merge one chunk, and add its counts and states to those of the previous chunks."""
    # Merge the chunk once for all sets of weights.
    matches, protocol = _matches(pieces, images, block.pooled), pieces[0].protocol
    sets = _held(weights, images)
    totals: list[dict[Key, Totals]] = [{} for _ in before.totals]
    states: list[dict[Key, State]] = [{} for _ in before.totals]
    # Prepare each area range and limit once for all sets.
    for key, names in metrics.items():
        prepared, kinds = ImageWeights(matches, protocol, *key), [kind_of(name) for name in names]
        folds = folds_of(kinds, protocol)
        for w, image_weights in enumerate(sets):
            # Count under one set, continuing the totals of higher scores, and fold the state into theirs.
            counts, total = prepared.counts(image_weights), before.totals[w][key]
            curves = Curves(counts, protocol.ap, totals=total, before=Before(total.recalled, total.counted))
            state = {name: field for kind in kinds for name, field in kind.state(curves, protocol).items()}
            above = before.states[w].get(key)
            states[w][key] = state if above is None else folded([above, state], folds)
            totals[w][key] = total.followed_by(counts, protocol.ap)
    detections = np.array([one[matches.image].sum() for one in sets]).astype(np.int64)
    return Chain(totals, states, before.ground_truths, before.detections + detections)


def _end_chain(chain: Chain, metrics: Metrics, protocol: Protocol) -> BlockValues:
    """Compute the values of the curves after the last chunk."""
    curves = [
        {
            key: _values(Curves(None, protocol.ap, totals=totals[key], state=states[key]), names, protocol)
            for key, names in metrics.items()
        }
        for totals, states in zip(chain.totals, chain.states, strict=True)
    ]
    return BlockValues(curves, chain.ground_truths, chain.detections)


# ---------------------------------------------------------------- all classes


def _summaries(
    blocks: Sequence[BlockValues],
    pooled: Sequence[BlockValues],
    selections: Sequence[str],
    rows: Sequence[SummaryRow],
    protocol: Protocol,
    categories: Categories | None,
) -> WeightedMetrics:
    """Join the blocks of a batch, and compute summary rows for each set of weights."""
    # Curves of classes come from their blocks, pooled curves from blocks of their own.
    sources: dict[str | None, Sequence[BlockValues]] = {None: blocks}
    sources |= {name: [one] for name, one in zip(selections, pooled, strict=True)}
    values = []
    for w in range(len(blocks[0].detections)):
        # Cache joined curves: several summary rows use the same one.
        @functools.cache
        def curves_of(area: int, cap: int, pooled: str | None = None, /, w: int = w) -> Curves:
            of_blocks = [block.curves[w][area, cap] for block in sources[pooled]]
            return Curves.beside(of_blocks, categories if pooled is None else None)

        values.append(summary_table(rows, protocol, curves_of))
    # Add up the counts of blocks: each class is in one block.
    return WeightedMetrics(
        np.stack(values),
        np.sum([block.ground_truths for block in blocks], axis=0),
        np.sum([block.detections for block in blocks], axis=0),
    )


def weighted_parts(
    held: HeldParts,
    rows: Sequence[SummaryRow],
    weights: WeightSets,
    *,
    progress: bool = False,
) -> WeightedMetrics:
    """Compute summary rows for each set of image weights; images are sorted by id."""
    K = len(held.headers[0].detections)
    if not len(weights):
        return WeightedMetrics(np.zeros((0, len(rows), K + 1)), np.zeros(0, np.int64), np.zeros(0, np.int64))
    share = (1 << 62) if held.room is None else held.room // 2  # the other half is for values
    most, alone = min(MOST, share // BYTES), min(ALONE, share // BYTES_ALONE)
    with held.engine.asked_again():
        job = _Job(held, rows, most, alone, min(BATCH, share // 2))
        batches = list(weights.batches(job.batch_size))
        windows = [batches[low : low + TOGETHER] for low in range(0, len(batches), TOGETHER)]
        every: list[WeightedMetrics] = []
        for window in shown(windows, desc="bootstrap", unit="batch") if progress else windows:
            every += held.engine.results([job.start(batch) for batch in window], shown="weighing")
    return WeightedMetrics(*(np.concatenate(column) for column in zip(*every, strict=True)))


class _Job:
    """The blocks of one question, and the tasks of a batch of weights."""

    def __init__(
        self, held: HeldParts, rows: Sequence[SummaryRow], most: int, alone: int, batch: int
    ) -> None:
        # Score few detections in one task, to avoid many small ones.
        self._rows, self._batch = rows, batch
        self._plan = plan = ClassPlan(held.engine, held.parts, held.headers, most, keep=True)
        self._metrics = summary_keys(rows, plan.protocol)
        self._alone = int(plan.detections.sum()) <= alone
        self._blocks: list[Cut] = []
        self._pooled: list[Cut] = []
        self._edges: dict[Cut, list[float]] = {}
        # Otherwise use blocks of classes whose values fit.
        if not self._alone:
            self._blocks = list(plan.blocks(max(1, MOST_VALUES // self._values_of("AP"))))
            self._pooled = plan.pooled([row.classes for row in rows])
            every = [*self._blocks, *self._pooled]
            # Split a class that is too large into chunks if its metrics fold.
            if self._can_be_split():
                self._edges = plan.edges(every)
            for block in every:
                if plan.is_too_large(block) and block not in self._edges:
                    self._check_owned(block)

    def _can_be_split(self) -> bool:
        """Return whether chunks have small states; areas would need all true positives of every set."""
        kinds = [kind_of(name) for name in {name for names in self._metrics.values() for name in names}]
        plan = self._plan
        return plan.can_be_split() and JOINED not in folds_of(kinds, plan.protocol).values()

    @property
    def batch_size(self) -> int:
        """Number of weight sets per batch."""
        per_curve = sum(self._values_of(name) for names in self._metrics.values() for name in names)
        size = self._batch // max(8 * per_curve * len(self._plan.detections), 1)
        return LONGEST_BATCH if self._alone else max(1, min(LONGEST_BATCH, size))

    def _values_of(self, metric: str) -> int:
        T = len(self._plan.protocol.matching.iou_thresholds)
        return T * len(self._plan.protocol.ap.recall_points) if metric == "AP" else T

    def _check_owned(self, block: Cut) -> None:
        """Raise if a block is too large for one process and cannot be split."""
        count, protocol = self._plan.count_of(block), self._plan.protocol
        if count <= MOST_OWNED:
            return
        alone = block.high - block.low == 1 and protocol.matching.per_class
        label = self._plan.whole.categories.labels[block.low]
        raise InputError(
            f"class {label!r}" if alone else "classes that share a curve",
            f"have at most {MOST_OWNED:,} detections for resampling or slicing",
            got=f"{count:,}",
            cause=f"the protocol {protocol.name} needs each curve as a whole; raise the score threshold "
            "or lower the max detections",
        )

    def start(self, weights: WeightSets) -> Any:
        """Start a batch; the task returns :class:`WeightedMetrics`."""
        submit, plan = self._plan.engine.submit, self._plan
        sent = submit("weights", _same, weights)
        if self._alone:
            pieces = plan.pieces(Cut(0, len(plan.detections)), "classes")
            return submit("weighted-classes", _score_alone, pieces, sent, self._rows, plan.images)
        return submit(
            "summarize",
            _summaries,
            [self._score(block, sent) for block in self._blocks],
            [self._score(block, sent) for block in self._pooled],
            [block.pooled for block in self._pooled],
            self._rows,
            plan.protocol,
            plan.categories if plan.protocol.matching.per_class else None,
        )

    def _score(self, block: Cut, weights: Any) -> Any:
        # Score a block that fits in one task.
        submit, plan, name = self._plan.engine.submit, self._plan, name_of(block)
        common = weights, self._metrics
        if block not in self._edges:
            return submit(
                f"weighted-{name}", _score_block, plan.pieces(block, name), block, *common, plan.images
            )
        # Count the objects first: every chunk needs their number.
        truths = [
            submit(f"truths-{name}", _truths_of, part, place, block)
            for part, place in zip(plan.parts, plan.places, strict=True)
        ]
        # Chain the chunks in descending score.
        chain = submit(f"begin-{name}", _start_chain, truths, *common, plan.protocol)
        for number, piece in enumerate(block.between(self._edges[block]), start=1):
            pieces = plan.pieces(piece, f"{name}-{number}")
            chain = submit(
                f"weighted-{name}-{number}", _score_range, chain, pieces, block, *common, plan.images
            )
            # Fetch the numbers of a long chain, because the scheduler would keep every step.
            if not number % LONGEST_CHAIN:
                chain = plan.engine.results([chain])[0]
        return submit(f"end-{name}", _end_chain, chain, self._metrics, plan.protocol)


def _same(value: Item) -> Item:
    return value
