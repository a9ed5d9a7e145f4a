"""Cut pieces out of parts: some classes, or a chunk of a class by score.

Conventions
-----------
- The image ids of a piece are *places*: rows among all images. So equal scores are ordered as in one process.
- The edges of chunks are chosen from samples of the parts. Equal scores are never split.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.vocabulary import rows_among_all
from boxscore.extensions.large.packed import (
    PackedMatches,
    extra_in_parts,
    image_numbers,
    narrowed,
    of_classes,
)
from boxscore.extensions.large.parts import Part
from boxscore.matching.matches import renumbered_extra

SAMPLED = 256
"""Approximate number of sampled scores per class and part."""


class Cut(NamedTuple):
    """Classes and scores of a piece."""

    low: int
    high: int
    """Classes in [low, high)."""
    least: float = -np.inf
    below: float = np.inf
    """Scores in [least, below)."""
    pooled: str | None = None
    """The selection that pools all classes in [low, high) on merging."""

    @property
    def is_range(self) -> bool:
        """Return whether some scores are left out."""
        return self.least > -np.inf or self.below < np.inf

    def between(self, edges: Sequence[float]) -> list[Cut]:
        """Split at descending scores."""
        bounds = [np.inf, *edges, -np.inf]
        return [self._replace(least=least, below=below) for below, least in itertools.pairwise(bounds)]


def cut(part: Part, place: int | NDArray[np.int64], piece: Cut) -> Part:
    """Cut a piece out of a part.

    Parameters
    ----------
    part : Part
    place : int, or ndarray of int64, [I]
        Row of each image of the part among all images; if they are consecutive, the first row.
    piece : Cut

    Returns
    -------
    Part
    """
    # Copy the rows of the classes or scores as slices of each column.
    matches, (low, high) = part.matches, piece[:2]
    rows = (_rows_of_range if piece.is_range else _rows_of_classes)(matches, piece)
    columns = matches.columns(
        {
            "detection": functools.partial(_taken, slices=rows.detections),
            "pair": functools.partial(_taken, slices=rows.pairs),
            "truth": itemgetter(rows.truths),
            "outcome": np.copy,
        }
    )
    # Keep only images that a row refers to, and number them from 0.
    extra = of_classes(columns["extra"], low, high)
    there = np.zeros(len(part.image_ids), dtype=bool)
    for image in (columns["image"], columns["truth_image"], *image_numbers(extra)):
        there[image] = True
    images = np.flatnonzero(there)
    row = np.cumsum(there) - 1
    columns |= {
        "image": narrowed(row[columns["image"]]),
        "truth": narrowed(rows.truth_of_pair),
        "truth_image": narrowed(row[columns["truth_image"]]),
        "extra": extra_in_parts(renumbered_extra(extra, row)),
    }
    # Truths are renumbered, since the piece may have fewer than the part.
    matches = dataclasses.replace(
        matches,
        bounds=np.concatenate([np.zeros((3, 1), dtype=np.int64), np.cumsum(rows.sizes, axis=1)], axis=1),
        outcomes=matches.outcomes.copy(),  # do not keep the memory map of the part alive
        **columns,
    )
    # Keep the spent detections of the classes.
    per_class = part.protocol.matching.per_class
    spent = part.spent
    if spent is not None:
        here = np.flatnonzero((spent.category >= low) & (spent.category < high))
        spent = type(spent)(spent.category[here] - low, spent.score[here], spent.row[here])
    # Use places as image ids, so that pieces of different parts sort as in one process.
    return dataclasses.replace(
        part,
        categories=part.categories.take(np.arange(low, high)) if per_class else part.categories,
        image_ids=rows_among_all(images, place),
        image_columns={},
        matches=matches,
        spent=spent,
    )


class _Rows(NamedTuple):
    """The rows of packed matches in a piece."""

    detections: list[slice]
    pairs: list[slice]
    truths: NDArray[np.intp]
    sizes: IntArray
    """Number of detections, pairs and ground truths per class, [3, K]."""
    truth_of_pair: NDArray[np.intp]
    """Index of each pair's ground truth in ``truths``, [P]."""


def _rows_of_classes(matches: PackedMatches, piece: Cut) -> _Rows:
    """Take all rows of some classes: one slice per axis."""
    bounds = matches.bounds[:, piece.low : piece.high + 1]
    detections, pairs = ([slice(*side[[0, -1]].tolist())] for side in bounds[:2])
    truths = np.arange(bounds[2, 0], bounds[2, -1])
    truth_of_pair = _taken(matches.truth, pairs).astype(np.intp) - bounds[2, 0]
    return _Rows(detections, pairs, truths, np.diff(bounds, axis=1), truth_of_pair)


def _rows_of_range(matches: PackedMatches, piece: Cut) -> _Rows:
    """Take a slice of scores of each class, with its pairs and their ground truths."""
    bounds = matches.bounds[:, piece.low : piece.high + 1]
    first, end = range_bounds(matches.score, bounds[0], piece)
    # Pairs are in the order of detections, so a slice of detections has a slice of pairs.
    detections = [slice(*pair) for pair in zip(first.tolist(), end.tolist(), strict=True)]
    pairs = []
    for start, pair_start, one in zip(bounds[0].tolist(), bounds[1].tolist(), detections, strict=False):
        at = pair_start + int(matches.pair_count[start : one.start].sum(dtype=np.int64))
        pairs.append(slice(at, at + int(matches.pair_count[one].sum(dtype=np.int64))))
    # Keep only the ground truths of these pairs, [G], and renumber them.
    needed = _taken(matches.truth, pairs).astype(np.intp) - bounds[2, 0]
    used = np.zeros(bounds[2, -1] - bounds[2, 0], dtype=bool)
    used[needed] = True
    truths = np.flatnonzero(used) + bounds[2, 0]
    truth_sizes = np.diff(np.searchsorted(truths, bounds[2]))
    sizes = np.stack([end - first, [one.stop - one.start for one in pairs], truth_sizes])
    return _Rows(detections, pairs, truths, sizes, (np.cumsum(used) - 1)[needed])


def range_bounds(scores: NDArray[Any], bounds: IntArray, piece: Cut) -> tuple[IntArray, IntArray]:
    """Return where a range of scores starts and ends in each class, [K] each; scores descend per class."""
    edges = np.empty((2, len(bounds) - 1), dtype=np.int64)
    for k, (start, stop) in enumerate(itertools.pairwise(bounds.tolist())):
        ascending = scores[start:stop][::-1]
        for side, edge in enumerate((piece.below, piece.least)):
            # Compare as float64; np.searchsorted would convert the whole column.
            edges[side, k] = stop - bisect.bisect_left(ascending, np.float64(edge))
    return edges[0], edges[1]


def _taken(column: NDArray[Any], slices: Sequence[slice]) -> NDArray[Any]:
    """Concatenate slices of a column."""
    return np.concatenate([column[one] for one in slices])


def sample_of(part: Part, blocks: Sequence[Cut]) -> list[list[tuple[FloatArray, float]]]:
    """Return sampled scores of each class of each block, and the detections per sampled score."""
    matches = part.matches
    return [
        sample_of_scores(matches.score, matches.bounds[0, block.low : block.high + 1]) for block in blocks
    ]


def sample_of_scores(scores: NDArray[Any], bounds: IntArray) -> list[tuple[FloatArray, float]]:
    """Return sampled scores of each class between consecutive bounds."""
    sample = []
    for first, end in itertools.pairwise(bounds.tolist()):
        some = scores[first : end : max(1, (end - first) // SAMPLED)].astype(np.float64)
        if len(some):
            sample.append((some, (end - first) / len(some)))
    return sample


def edges_between(sample: Sequence[tuple[FloatArray, float]], count: int, most: int) -> list[float]:
    """Choose descending scores that split a class into chunks of about ``most / 2`` detections."""
    # Weight each sampled score by the detections that it represents; edges are weighted quantiles.
    scores = np.concatenate([scores for scores, _ in sample])
    weight = np.concatenate([np.full(len(scores), weight) for scores, weight in sample])
    order = np.argsort(-scores, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    ranges = 2 * -(-count // most)  # aim at half: samples are inexact, and ties are not split
    # Edges are scores, so equal scores stay in one chunk.
    at = np.searchsorted(share, np.arange(1, ranges) / ranges)
    edges: list[float] = np.unique(scores[order[np.minimum(at, len(order) - 1)]])[::-1].tolist()
    return edges
