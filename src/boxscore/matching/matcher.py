"""Run the three stages of matching: rank, pair, match.

Goal
----
Turn two tables under one protocol into :class:`~boxscore.matching.matches.Matches`. Variants of the same
tables (fewer detections, lowered scores, other ranges, other classes) reuse the overlaps, which are computed
only one time.

Conventions
-----------
- The tables are aligned and prepared (:mod:`boxscore.matching.ignoring`) before. The order here: flag ignored
  ground truths and eligible detections, rank, find pairs, match them, add the columns of rules.
- A matcher completes the columns that its protocol compares, so callers do not need to.
- Rows in every result are rows of the tables that were given. Internally rows can have another order, the
  *order in which they are matched*; ``_truth_rows`` and ``_rows`` map it to the given rows.
- If classes are pooled (``per_class = false``), equally scored detections of an image are taken class by
  class, as with ``useCats = 0`` in pycocotools. If ties use file order, or the protocol reads the order of
  the file instead of scores, rows keep it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import stable_order
from boxscore._utils.records import NamedTuple
from boxscore.data.alignment import pool_classes
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.candidates import (
    MOST_PAIRS,
    Asked,
    Blocks,
    KnownOverlaps,
    Match,
    PairSource,
    SharedOut,
    candidate_blocks,
    candidate_pairs,
    candidate_shares,
)
from boxscore.matching.greedy import match_greedily
from boxscore.matching.ignoring import Ignoring, Ranges, eligible, ignoring, inside_ranges, zero_ids
from boxscore.matching.matches import Bits, Matches, bit_type, merge, pack_bits
from boxscore.matching.pairs import Overlaps
from boxscore.matching.points import functions_at
from boxscore.matching.ranking import Ranking, rank_detections
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.matching import MatchingRules
from boxscore.similarity.pairs import TooManyPairsError
from boxscore.similarity.registry import similarity_of

Rows = NDArray[np.intp]
Values = TypeVar("Values", FloatArray, BoolArray, "FloatArray | None", "BoolArray | None")


class CrossPairs(NamedTuple):
    """Pairs in the same image that overlap enough, of any classes; by detection in score order."""

    rows: Rows
    """Rows of the detections that took part, by image and descending score, [D]."""
    detection: Rows
    """Row of the detection of each pair, [P]; the pairs of a detection are in file order."""
    truth: Rows
    """Row of the ground truth of each pair, [P]."""
    iou: FloatArray
    """Overlap of each pair, [P]."""
    position: Rows
    """Position of the detection by descending score over all images, [P]."""


class Matcher:
    """Matches two tables under one protocol.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    protocol : Protocol
    areas : ndarray of float64, [D], optional
        The area of each detection for area ranges, in square pixels; by default defined by the protocol.
    eligible : ndarray of bool, [D], optional
        Whether each detection is evaluated, if that was decided for a larger table.
    known : KnownOverlaps, optional
        A cache of the overlaps of these tables that several protocols share.

    Raises
    ------
    InputError
        When a table lacks a column that the protocol compares.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        *,
        areas: FloatArray | None = None,
        eligible: BoolArray | None = None,
        known: KnownOverlaps | None = None,
    ) -> None:
        self.protocol = protocol
        self.ground_truth = ground_truth
        self.similarity = similarity_of(protocol)
        self.similarity.check_units(ground_truth)
        self.detections = self.similarity.with_needed_columns(ground_truth, detections)
        self._given_areas, self._given_eligible = areas, eligible
        self._known, self._shares_known = known or KnownOverlaps(), known is not None
        self._held: PairSource | None = None  # the pairs of all detections, once found
        # Tables in matching order, and the given row of each of their rows; None if the order is the same.
        self._ordered_truth, self._ordered_detections = ground_truth, self.detections
        self._truth_rows: Rows | None = None
        self._rows: Rows | None = None
        # Classes pooled: sort both tables by class first, so that a stable order by score leaves ties class
        # by class, as with ``useCats = 0`` in pycocotools. Protocols that read the order of the file keep it.
        if not protocol.matching.per_class:
            if protocol.matching.pools_class_by_class:
                self._truth_rows, self._rows = (
                    stable_order(table.category, len(table.categories))
                    for table in (ground_truth, self.detections)
                )
                self._ordered_truth = self._ordered_truth.take(self._truth_rows)
                self._ordered_detections = self._ordered_detections.take(self._rows)
            self._ordered_truth = pool_classes(self._ordered_truth)
            self._ordered_detections = pool_classes(self._ordered_detections)

    def under(self, protocol: Protocol) -> Matcher:
        """Return a matcher under another protocol; shares the overlaps that both measure in the same way."""
        return Matcher(self.ground_truth, self.detections, protocol, known=self._known)

    @functools.cached_property
    def ignoring(self) -> Ignoring:
        """The treatment of each ground truth, in the order of the given table."""
        return ignoring(
            self.ground_truth,
            self.protocol,
            lambda truth, protocol: Matcher(truth, self.detections, protocol).match(),
        )

    @functools.cached_property
    def eligible(self) -> BoolArray | None:
        """Whether each detection of the given table is evaluated at all, [D]; None if all are."""
        if self._given_eligible is not None:
            return self._given_eligible
        return eligible(self.ground_truth, self.detections, lambda: self.areas, self.ignoring, self.protocol)

    @property
    def inexhaustive(self) -> BoolArray:
        """Whether each detection of the given table is ignored if unmatched, [D]."""
        rows = np.arange(len(self.detections))
        ignored = np.zeros(len(rows), dtype=bool)
        for counts in self._counts_unmatched(rows, self.protocol):
            if counts.ndim == 1:  # in every range
                ignored |= ~counts
        return ignored

    @property
    def areas(self) -> FloatArray:
        """The area of each detection of the given table for area ranges, [D]."""
        if self._given_areas is not None:
            return self._given_areas
        return self.similarity.detection_areas(self.detections)

    def match(self, *, workers: int = 1) -> Matches:
        """Match all detections; the number of threads, or of processes, does not change the result."""
        if workers == 1 or self.similarity.forks_for(self.detections):
            asked = self._asked(self._rank(), self.protocol, workers=workers)
            source = self._source(asked, workers)  # before areas, which then reuse compared masks
            return self._matches(asked, source, self._ordered(self.areas))
        from boxscore._utils.processes import in_threads

        bounds = np.linspace(0, len(self.ground_truth.images), workers + 1).round().astype(int)
        blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
        return merge(in_threads(lambda block: self._block(*block), blocks, workers=workers))

    def match_some(self, rows: NDArray[np.int64], scores: FloatArray) -> Matches:
        """Match some rows [K], each given once, with changed scores [K]; overlaps are computed only once."""
        lowered = np.full(len(self.detections), np.nan)
        lowered[rows] = scores
        lowered = self._ordered(lowered)
        chosen = np.flatnonzero(~np.isnan(lowered))
        detections = dataclasses.replace(self._ordered_detections.take(chosen), scores=lowered[chosen])
        ranking = rank_detections(detections, self.protocol, self._eligible_of(rows, scores, chosen))
        asked = self._asked(ranking, self.protocol, some=(detections, chosen))
        source = _source_of(asked, lambda: asked.find(asked.ordered_ignoring))
        return self._matches(asked, source, self._ordered(self.areas)[chosen])

    def match_ranges(
        self,
        ranges: Sequence[tuple[float, float]],
        truth_values: FloatArray,
        detection_values: FloatArray | None,
    ) -> tuple[Matches, Protocol]:
        """Match with ranges of another quantity in place of area ranges, at the largest max detections only.

        Without ``detection_values`` a detection is in every range. Also returns the protocol used.
        """
        rules = self.protocol
        protocol = rules.replaced(
            matching=rules.matching.replaced(max_detections=rules.matching.max_detections[-1:]),
            ignore=rules.ignore.replaced(area_ranges={str(i): pair for i, pair in enumerate(ranges)}),
        )
        values = None if detection_values is None else self._ordered(detection_values)
        asked = self._asked(self._rank(), protocol, truth_values=truth_values)
        return self._matches(asked, self._source(asked), values), protocol

    def across_classes(
        self,
        *,
        iou_threshold: float,
        score_threshold: float = float("-inf"),
        max_detections: int | None = None,
        by_foreground: BoolArray | None = None,
    ) -> CrossPairs:
        """Find the pairs in the same image that overlap by ``iou_threshold`` or more, across classes.

        With ``by_foreground`` [G] these ground truths, not the protocol's, are measured by intersection over
        the detection's area, if the similarity can measure that, and no ground truth is deleted.
        """
        if by_foreground is not None and not self.similarity.measures_foreground:
            by_foreground = np.zeros_like(by_foreground)
        limited = max_detections is not None or score_threshold > float("-inf")
        rows, grouped = (
            self._ranked_across(score_threshold, max_detections) if limited else self._all_ranked_across
        )
        by_image = rows[grouped]
        overlaps, numbers = self._known.of_some(by_image, *self._asked_across(iou_threshold, by_foreground))
        pairs = overlaps.under(numbers, grouped, iou_threshold)
        return CrossPairs(by_image, rows[pairs.detection], pairs.ground_truth, pairs.iou, pairs.detection)

    @functools.cached_property
    def _all_ranked_across(self) -> tuple[Rows, Rows]:
        """The ranking of all detections across classes, which several diagnostics need."""
        return self._ranked_across(float("-inf"), None)

    def _ranked_across(self, score_threshold: float, max_detections: int | None) -> tuple[Rows, Rows]:
        """Rank all detections together: rows by descending score, and positions of these by image."""
        rules = MatchingRules(
            iou_thresholds=(0.5,),
            max_detections=() if max_detections is None else (max_detections,),
            score_threshold=score_threshold,
        )
        ranking = rank_detections(
            pool_classes(self.detections),
            self.protocol.replaced(matching=rules, summary=()),
            self.eligible,
        )
        return ranking.rows, ranking.grouped

    # ------------------------------------------------------------ parts

    def _asked(
        self,
        ranking: Ranking,
        protocol: Protocol,
        *,
        some: tuple[Detections, Rows] | None = None,
        truth_values: FloatArray | None = None,
        workers: int = 1,
    ) -> Asked:
        """Collect the inputs of one matching; ``some``: detections with changed scores, and their rows."""
        # All detections: rank order, given rows, and a search that may still compute overlaps.
        if some is None:
            detections = self._ordered_detections
            rows = self._given_rows(ranking.rows)
            find = functools.partial(self._pairs_under, ranking, workers=workers)
        else:
            # Some detections with changed scores: their pairs come from the overlaps of all rows, which were
            # computed once and do not depend on scores.
            detections, chosen = some
            rows = self._given_rows(chosen[ranking.rows])
            find = functools.partial(
                self._known_pairs, chosen[ranking.rows[ranking.grouped]], ranking.grouped
            )
        return Asked(
            protocol=protocol,
            ground_truth=self.ground_truth,
            detections=self.detections,
            ignoring=self.ignoring,
            ordered_truth=self._ordered_truth,
            ordered_detections=detections,
            ordered_ignoring=self._ordered_ignoring,
            ranking=ranking,
            rows=rows,
            ranges=self._ranges(detections, ranking, protocol, truth_values),
            find=find,
            across=self._across,
        )

    def _ordered(self, values: Values) -> Values:
        """Return values of the given detections in matching order."""
        return values if self._rows is None or values is None else values[self._rows]

    def _given_rows(self, rows: Rows) -> NDArray[np.int64]:
        """Return the given rows of rows in matching order."""
        return (rows if self._rows is None else self._rows[rows]).astype(np.int64, copy=False)

    @functools.cached_property
    def _ordered_ignoring(self) -> Ignoring:
        """``ignoring`` in the order in which ground truths are matched."""
        if self._truth_rows is None:
            return self.ignoring
        return Ignoring(*(flags[self._truth_rows] for flags in self.ignoring))

    def _rank(self) -> Ranking:
        """Rank all detections; not cached, since sorting again is cheaper than the memory."""
        return rank_detections(self._ordered_detections, self.protocol, self._ordered(self.eligible))

    def _eligible_of(self, rows: NDArray[np.int64], scores: FloatArray, chosen: Rows) -> BoolArray | None:
        """Return which of some rows are evaluated under changed scores, in matching order."""
        every_row = self.eligible
        if every_row is None:
            return None
        if self.protocol.matching.cap_scope != "class":  # the limit depends on the given rows and scores
            some = dataclasses.replace(self.detections.take(rows), scores=scores)
            areas = self.areas[rows]
            every_row = np.zeros(len(self.detections), dtype=bool)
            every_row[rows] = eligible(self.ground_truth, some, lambda: areas, self.ignoring, self.protocol)
        return self._ordered(every_row)[chosen]

    def _source(self, asked: Asked, workers: int = 1) -> PairSource:
        """Return the source of the candidate pairs of all detections."""
        return _source_of(asked, functools.partial(self._plain_source, asked, workers))

    def _plain_source(self, asked: Asked, workers: int) -> PairSource:
        """Return the source without rules: cached pairs, or pairs found here or by several processes."""
        # Keep pairs that outlast one matching for the next.
        if self._held is not None:
            return self._held

        def here() -> PairSource:
            source = asked.find(asked.ordered_ignoring)
            if source.lasting and not self._shares_known:
                self._held = source
            return source

        # Search in this process if pairs are known or shared already.
        if workers == 1 or self.similarity.shares_pairs or self._shares_known:
            return here()
        # Otherwise each process finds the candidates of its share of the images.
        tables = asked.ordered_truth, asked.ordered_detections, asked.ranking
        shares = candidate_shares(
            *tables, self.protocol, asked.ordered_ignoring, shares=workers, most=MOST_PAIRS // workers
        )
        return SharedOut(shares, here)

    def _pairs_under(self, ranking: Ranking, flags: Ignoring, *, workers: int = 1) -> Blocks:
        """Find the candidate pairs of all detections under flags of the ground truths.

        They are kept in a list, or generated block by block if there are very many.
        """
        if self._shares_known:
            return self._known_pairs(ranking.rows[ranking.grouped], ranking.grouped, flags)
        asked = self._ordered_truth, self._ordered_detections, ranking, self.protocol, flags
        try:
            return Blocks.held([candidate_pairs(*asked, most=MOST_PAIRS, workers=workers)])
        except TooManyPairsError as many:
            return Blocks(candidate_blocks(*asked, compared=many.compared // 2))

    def _known_pairs(self, rows: Rows, positions: Rows, flags: Ignoring) -> Blocks:
        """Return the pairs of some rows from the overlaps of all, each with its position in a ranking."""
        rules = self.protocol.matching
        order = (rules.per_class, rules.pools_class_by_class)
        tables = self._ordered_truth, self._ordered_detections
        overlaps = self._known.of(order, *tables, self.protocol, flags)
        return Blocks.held([overlaps.under(rows, positions, rules.lowest_threshold)])

    def _across(self, floor: float, by_foreground: BoolArray | None) -> Overlaps:
        """Return the overlaps of all rows across classes."""
        return self._known.of(*self._asked_across(floor, by_foreground))

    def _asked_across(
        self, floor: float, by_foreground: BoolArray | None
    ) -> tuple[str, GroundTruth, Detections, Protocol, Ignoring]:
        """Return what decides the overlaps across classes: a key, tables without classes, rules and flags."""
        flags = self.ignoring
        if by_foreground is not None:
            flags = flags._replace(deleted=np.zeros_like(flags.deleted), by_foreground=by_foreground)
        # A threshold must be above 0. The smallest positive number keeps every pair that overlaps at all.
        least = MatchingRules(iou_thresholds=(max(floor, math.ulp(0.0)),))
        protocol = self.protocol.replaced(matching=least, summary=())
        tables = pool_classes(self.ground_truth), pool_classes(self.detections)
        return "across classes", *tables, protocol, flags

    def _block(self, first: int, end: int) -> Matches:
        """Match the images with row numbers in [first, end)."""
        truth_rows = np.flatnonzero((self.ground_truth.image >= first) & (self.ground_truth.image < end))
        rows = np.flatnonzero((self.detections.image >= first) & (self.detections.image < end))
        block = Matcher(
            self.ground_truth.take(truth_rows),
            self.detections.take(rows),
            self.protocol,
            areas=None if self._given_areas is None else self._given_areas[rows],
            eligible=None if self.eligible is None else self.eligible[rows],
        ).match()
        return dataclasses.replace(block, row=rows[block.row], truth_row=truth_rows[block.truth_row])

    def _matches(self, asked: Asked, source: PairSource, areas: FloatArray | None) -> Matches:
        """Match the candidate pairs of ranked detections; ground truths are in the given order again."""
        # Match the pairs; the source decides where they come from, and rules may wrap it.
        truth, back, ranking, ranges = self._ordered_truth, self._truth_rows, asked.ranking, asked.ranges
        protocol = asked.protocol
        outcome = source.matched(_match_of(asked))
        pairs = outcome.pairs
        # Sort the pairs by detection; the sort is stable, so each detection keeps the order of its pairs.
        order = stable_order(pairs.detection, len(ranking.rows))
        truth_of_pair = pairs.ground_truth.take(order)
        # Pack the counted flags [G, A] into one integer per ground truth. If pooling reordered the ground
        # truths, put the rows back into the order of the given table.
        counted_bits = pack_bits(ranges.counted)
        truth_category = truth.category
        if back is not None:  # classes are pooled
            truth_of_pair = back[truth_of_pair]
            given = np.empty_like(counted_bits)
            given[back] = counted_bits
            counted_bits, truth_category = given, np.zeros(len(truth), dtype=np.int32)
        # Gather the result: detections in class order [D], ground truths in file order [G], pairs by
        # detection [P].
        matches = Matches(
            images=truth.images,
            categories=truth.categories,
            image=np.take(asked.ordered_detections.image, ranking.rows),
            category=np.take(asked.ordered_detections.category, ranking.rows),
            score=asked.score,
            rank=ranking.rank,
            row=asked.rows,
            in_range_bits=self._in_range_bits(asked, areas),
            truth_image=self.ground_truth.image,
            truth_category=truth_category,
            truth_row=np.arange(len(truth), dtype=np.int64),
            counted_bits=counted_bits,
            pair_detection=pairs.detection.take(order),
            pair_truth=truth_of_pair,
            iou=pairs.iou.take(order),
            matched_bits=outcome.bits.take(order, axis=0),
            threshold_count=len(protocol.matching.iou_thresholds),
            equal_scores=protocol.matching.equal_scores,
            every_pair=outcome.every_pair,
        )
        # Add the columns of rules, which need the pairs in this order.
        if outcome.absorbed is not None:
            asked = asked._replace(absorbed=outcome.absorbed[order])
        for act in functions_at("after", protocol):
            matches = act(asked, matches)
        # Two rules act last: an order of equal scores that differs between counting and matching, and
        # pycocotools' annotation id 0, which does not count as a match.
        if protocol.matching.equal_scores == "last_first":
            matches = matches.in_class_order()
        if protocol.matching.annotation_id_zero == "unmatched":
            matches = matches.without_true_positives_of(zero_ids(self.ground_truth.ids))
        return matches

    def _ranges(
        self,
        detections: Detections,
        ranking: Ranking,
        protocol: Protocol,
        truth_values: FloatArray | None = None,
    ) -> Ranges:
        """Return the membership of rows in ranges, by the areas of ground truths or by other values [G]."""
        values = self.similarity.truth_areas(self.ground_truth) if truth_values is None else truth_values
        inside = inside_ranges(values, protocol.ignore.bounds)
        near: BoolArray | None = None
        for act in functions_at("ranges", protocol):
            of_truth, of_detections = act(self.ground_truth, detections, protocol)
            if of_truth is not None:
                inside &= of_truth
            if of_detections is not None:
                near = of_detections if near is None else near & of_detections
        if self._truth_rows is not None:
            inside = inside[self._truth_rows]
        if near is not None:
            near = np.take(near, ranking.rows, axis=0)
        return Ranges(inside, inside & ~self._ordered_ignoring.ignored[:, None], near)

    def _in_range_bits(self, asked: Asked, areas: FloatArray | None) -> Bits:
        """Ranges in which each ranked detection counts if unmatched, as bits, [D]."""
        bounds, near = asked.protocol.ignore.bounds, asked.ranges.near
        if areas is None:
            every = bit_type(len(bounds))
            in_range = np.full(len(asked.rows), np.iinfo(every).max, every)
        else:
            in_range = pack_bits(inside_ranges(np.take(areas, asked.ranking.rows), bounds))
        if near is not None:
            in_range &= pack_bits(near)
        for counts in self._counts_unmatched(asked.rows, asked.protocol):
            if counts.ndim == 1:  # in every range
                in_range[~counts] = 0
            else:
                in_range &= pack_bits(counts)
        return in_range

    def _counts_unmatched(self, rows: NDArray[np.int64], protocol: Protocol) -> list[BoolArray]:
        """Ask the rules whether detections of the given table count if unmatched."""
        rules = functions_at("unmatched", protocol)
        answers = [act(self.ground_truth, self.detections, rows, protocol) for act in rules]
        return [counts for counts in answers if counts is not None]


def _source_of(asked: Asked, plain: Callable[[], PairSource]) -> PairSource:
    """Return a source of pairs: the plain one, wrapped or replaced by rules."""
    for act in functions_at("pairs", asked.protocol):
        plain = functools.partial(act, asked, plain)
    return plain()


def _match_of(asked: Asked) -> Match:
    """Return the function that matches the pairs of ranked detections."""
    truth, rules = asked.ordered_truth, asked.protocol.matching
    match: Match = functools.partial(
        match_greedily,
        group=truth.image.astype(np.int64) * len(truth.categories) + truth.category,
        counted=asked.ranges.counted,
        absorbs=asked.ordered_ignoring.absorbs,
        rules=rules,
        class_names=truth.categories.names if rules.class_thresholds else None,
    )
    for act in functions_at("match", asked.protocol):
        match = act(asked, match)
    return match
