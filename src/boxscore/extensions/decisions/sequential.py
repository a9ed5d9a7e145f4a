"""Test after every batch of images whether two detectors differ, and stop as early as possible.

Goal
----
A p-value is valid for a single look at data of a fixed size. Looking after every batch and stopping at the
first p-value below 5% gives far more false positives. With this test you may look, and stop, at any time.

Conventions
-----------
- The images come in batches, in an order that does not depend on the results. In each batch, whole results of
  an image (or group of images) are swapped between the two detectors as in the swap test
  (:mod:`boxscore.extensions.decisions.swapping`), and each batch is scored separately; images are matched one
  by one.
- The null hypothesis: given everything before it, all swaps in a batch are equally likely. The test does not
  assume anything about scores, nor that images are alike or in random order.
- A bet of size b pays ``exp(b z) / mean of exp(b z*)``: z is the difference in the batch in standard
  deviations of the swaps, z* that of each swap, including the observed one. So its mean under the null is 1,
  whether all swaps are made or a random selection. Each swap counts with its opposite.
- Payments multiply over batches. A stake is divided evenly over the sizes of bets, in both directions. The
  capital is a nonnegative martingale: it reaches 1 / a with probability at most a, at any time (Ville).
  ``p_value`` is 1 / (the largest capital so far).
- An undefined difference counts as 0, swapped or not. A batch in which all swaps are equal pays 1.
- Incomplete batches are not read: reading them twice would be two bets on the same images. Appending images
  leaves existing batches and their swaps unchanged.
- A gate at every commit sees the same images repeatedly, so capital does not multiply there. Look k may spend
  1 / (k (k + 1)) of the level, which add up to 1, for any dependence between looks (Bonferroni).

References
----------
J. Ville, *Étude critique de la notion de collectif*, 1939. A. Ramdas, P. Grünwald, V. Vovk, G. Shafer,
"Game-Theoretic Statistics and Safe Anytime-Valid Inference", Statistical Science 38, 2023. H. Robbins,
"Statistical Methods Related to the Law of the Iterated Logarithm", 1970 (mixtures).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, unchangeable
from boxscore._utils.processes import Workers
from boxscore._utils.progress import progress as shown
from boxscore._utils.text import counted
from boxscore.data.vocabulary import as_ids
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import check_comparable
from boxscore.extensions.decisions.swapping import NEGLIGIBLE, both_detectors
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.extensions.diagnostics._units import Group, units_of_images, warn_of_frames
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.weights.resampling import LARGEST_SEED, Swaps, check_intervals
from boxscore.extensions.weights.shared import weighted_metrics_shared
from boxscore.extensions.weights.under_weights import weighted_metrics
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow

if TYPE_CHECKING:
    import pandas as pd

BETS = np.array([0.125, 0.25, 0.5, 1.0, 2.0])
"""Sizes of bets, per standard deviation of a batch: the best one is the distance of the mean of z from 0."""

IMAGES_OF_BATCH, GROUPS_OF_BATCH = 50, 5
"""Default number in a batch."""

Order = str | Sequence[Any]
"""``listed``, ``random``, or the ids of the images to read."""


class BatchReading(NamedTuple):
    """Options of reading images in batches."""

    resamples: int
    confidence: float
    seed: int
    batch: int
    """Images or groups per batch."""
    group: Group = None


class Batch(NamedTuple):
    """One batch, and the capital after it."""

    images: int
    """Images read so far."""
    first: float
    """Score of the first detector on this batch only."""
    other: float
    better: float
    """Natural logarithm of the capital of the bets that the other is better."""
    worse: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SequentialComparison(DiagnosticResult):
    """Comparison of two detectors batch by batch, up to the verdict or the last of B batches.

    Attributes
    ----------
    first, other : str
    metric : str
    images : ndarray, int64 [B]
        Images read up to and including each batch.
    value_first, value_other : ndarray, float64 [B]
        Score on each batch only.
    better, worse : ndarray, float64 [B]
        Capital of the bets that the other is better, and worse, after each batch.
    p_value : ndarray, float64 [B]
        Valid at every batch.
    verdicts : ndarray of object, [B]
        ``better`` or ``worse`` (referring to the other) or ``cannot tell``, after each batch.
    score_first, score_other : float
        Score on all images read.
    given : int
        Number of available images.
    reading : BatchReading
    """

    first: str
    other: str
    metric: str
    images: NDArray[np.int64]
    value_first: FloatArray
    value_other: FloatArray
    better: FloatArray
    worse: FloatArray
    p_value: FloatArray
    verdicts: NDArray[np.object_]
    score_first: float
    score_other: float
    given: int
    reading: BatchReading

    @property
    def verdict(self) -> str:
        """The verdict: the other is ``better`` or ``worse``, or ``cannot tell``."""
        return str(self.verdicts[-1])

    @property
    def images_read(self) -> int:
        """Number of images up to the verdict, or in all complete batches."""
        return int(self.images[-1])

    def verdict_text(self) -> str:
        """Describe the number of images read and the meaning of the verdict in a few sentences."""
        level, left = 1 - self.reading.confidence, self.given - self.images_read
        if self.verdict != "cannot tell":
            end = f"stopped after {self.images_read:,} of {counted(self.given, 'image')}"
        elif left:
            end = f"read {self.images_read:,} images; the last {left:,} do not fill a batch"
        else:
            end = f"read all {counted(self.given, 'image')}"
        unit = "image" if self.reading.group is None else "group"
        return (
            f"{self.verdict}: {end}. {self.metric} of the images read: {self.score_first:.4f} (first) "
            f"and {self.score_other:.4f} (other)\np_value: valid at every batch, so you can stop at any "
            f"time; for equal detectors it ever falls to {level:.4g} with probability <= {level:.4g} "
            f"(permutations within each {unit})"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per batch, up to the verdict.

        ``first, other, metric, images, value_first, value_other, delta, better, worse, p_value, verdict``.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "first": self.first,
                "other": self.other,
                "metric": self.metric,
                "images": self.images,
                "value_first": self.value_first,
                "value_other": self.value_other,
                "delta": self.value_other - self.value_first,
                "better": self.better,
                "worse": self.worse,
                "p_value": self.p_value,
                "verdict": self.verdicts,
            }
        )


def compare_sequentially(
    evaluations: Mapping[str, Evaluation],
    *,
    metric: str | None = None,
    batch: int | None = None,
    order: Order = "listed",
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    group: Group = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> SequentialComparison:
    """Compare two detectors batch by batch, and stop as soon as they differ.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two results, by name, with one ground truth and a protocol that matches images separately.
    metric : str, optional
        The metric that decides (default: the first of the protocol).
    batch : int, optional
        Images per batch, or groups of images (default: 50 images, 5 groups).
    order : {"listed", "random"} or sequence of ids, default "listed"
        Order in which images are read; with ids, only these images.
    resamples : int, default 1000
        Number of swaps in each batch; all of them if there are no more.
    confidence : float, default 0.95
        1 - the maximum probability of a verdict on equal detectors, for any stopping time.
    seed : int, default 0
        Seed of the swaps, and of a random order.
    group : str or sequence, optional
        Column of the images, pattern with a group for their names, or a label for each image: images with the
        same value are swapped together.
    progress : bool, default False
    workers : int or "auto", default "auto"
        Processes that share the swaps of a batch if that is faster, as for :func:`boxscore.evaluate`. The
        result is the same.

    Returns
    -------
    SequentialComparison

    Raises
    ------
    InputError
        When there are not exactly two results, their images, objects, classes or protocols differ, images are
        not matched separately, no batch is complete, or an option is invalid.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> images, labels, boxes = range(40), ["cat"] * 40, [[0, 0, 9, 9]] * 40
    >>> truth = GroundTruth.from_arrays(images, labels, boxes)
    >>> all_of = evaluate(truth, Detections.from_arrays(images, labels, boxes, [0.9] * 40))
    >>> half = evaluate(truth, Detections.from_arrays(images[::2], labels[::2], boxes[::2], [0.9] * 20))
    >>> result = compare_sequentially({"all": all_of, "half": half}, batch=8)
    >>> result.verdict, result.images_read
    ('worse', 24)
    """
    # Check the options, and split the images into batches in an order that does not depend on results.
    check_intervals(confidence, "percentile")
    if len(evaluations) != 2:
        raise InputError("a sequential comparison", "have two results", got=len(evaluations))
    (first_name, first), (other_name, other) = evaluations.items()
    row, how, rows = _make_batches(
        evaluations, metric, batch, order, BatchReading(resamples, confidence, seed, 0, group)
    )
    # Stop when the log of the capital reaches that of 1 / (1 - confidence), with tolerance for rounding.
    bound, read = -math.log(max(1 - confidence, 1e-300)) - 1e-12, list[Batch]()
    verdicts, largest = list[str](), list[float]()
    both = both_detectors(first, other)
    batches = _read(both, first.protocol, row, how, rows, workers)
    for one in shown(batches, total=len(rows.batches), desc="batches", unit="batch") if progress else batches:
        # Both directions share the stake: the capital is the mean of the two. Its largest value so far gives
        # the p-value.
        capital = float(np.logaddexp(one.better, one.worse) - math.log(2))
        largest.append(max([0.0, *largest[-1:], capital if capital > NEGLIGIBLE else 0.0]))
        read.append(one)
        ended = capital >= bound
        verdicts.append(("better" if one.better > one.worse else "worse") if ended else "cannot tell")
        if ended:
            break
    # Score both results on all images read.
    columns = [np.array(column) for column in zip(*read, strict=True)]
    seen = np.isin(np.arange(first._image_count), np.concatenate(rows.batches[: len(read)]))
    sides = both.take_images(np.repeat(seen, 2))
    scores = weighted_metrics(sides, first.protocol, [row], _side_weights(int(seen.sum()))).values[:, 0, -1]
    return unchangeable(
        SequentialComparison(
            first_name,
            other_name,
            row.key,
            columns[0].astype(np.int64),
            columns[1],
            columns[2],
            _capital(columns[3]),
            _capital(columns[4]),
            np.exp(-np.array(largest)),
            np.array(verdicts, dtype=object),
            float(scores[0]),
            float(scores[1]),
            rows.given,
            how,
        )
    )


class DropSoFar(NamedTuple):
    """The result of one look of a gate: whether one detector is worse, over all batches."""

    metric: str
    first: float
    other: float
    p_value: float
    """1 / (the largest capital of the bets on a drop)."""
    reading: BatchReading


def drop_in_batches(
    first: Evaluation,
    other: Evaluation,
    *,
    metric: str | None,
    batch: int | None,
    resamples: int,
    confidence: float,
    seed: int,
    group: Group,
    workers: Workers = "auto",
) -> DropSoFar:
    """Read every complete batch, and return the p-value that the other is worse than the first."""
    # Read in file order, so that a gate sees the same batches at every commit.
    row, how, rows = _make_batches(
        {"baseline": first, "checked": other},
        metric,
        batch,
        "listed",
        BatchReading(resamples, confidence, seed, 0, group),
    )
    both = both_detectors(first, other)
    # By Ville's inequality, 1 over the largest capital so far is a p-value at any time.
    largest = max(one.worse for one in _read(both, first.protocol, row, how, rows, workers))
    before, value = first.metrics[row.key], other.metrics[row.key]
    return DropSoFar(
        row.key,
        math.nan if before is None else before,
        math.nan if value is None else value,
        math.exp(-max(largest, 0.0)),
        how,
    )


def share_of_look(look: int) -> float:
    """Return the fraction of the level that look ``look`` may spend, from 1: all fractions add up to 1."""
    return 1 / (look * (look + 1))


# ---------------------------------------------------------------- batches


class _Rows(NamedTuple):
    """Image rows of each complete batch, ascending, and the unit of every image."""

    batches: list[NDArray[np.intp]]
    units: NDArray[np.int32] | None
    given: int


def _make_batches(
    evaluations: Mapping[str, Evaluation],
    metric: str | None,
    batch: int | None,
    order: Order,
    how: BatchReading,
) -> tuple[SummaryRow, BatchReading, _Rows]:
    """Check the options, and make the batches."""
    # Only matches in memory of images that are matched separately can be split into batches.
    results = list(evaluations.values())
    check_comparable(list(evaluations), results)
    first = results[0]
    if not all(result._holds_matches for result in results):
        raise InputError(
            "a sequential comparison",
            "use results that keep their matches",
            got="parts of very many detections",
            cause="evaluate fewer images: --images FILE",
        )
    if not first.protocol.scope.is_matched_alone:
        raise InputError(
            "a sequential comparison",
            "use a protocol that matches each image separately",
            got=first.protocol.name,
            cause="in this one, which detections of an image count depends on the other images",
        )
    # Use the default size of a batch for images or for groups.
    row = chosen_rows(first, None if metric is None else [metric])[0]
    checks.whole_number(how.seed, 0, name="seed", high=LARGEST_SEED)
    warn_of_frames(first, how.group)
    size = IMAGES_OF_BATCH if how.group is None else GROUPS_OF_BATCH
    if batch is not None:
        size = checks.whole_number(batch, 1, name="batch")
    # Number the units by their first place in the order; a batch takes ``size`` of them, and all images of
    # each. Unique numbers come by value, so two sorts turn first places into ranks.
    units, ordered = units_of_images(first, how.group), _reading_order(first, order, how.seed)
    labels = ordered if units is None else units[ordered]
    _, start, inverse = np.unique(labels, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(start, kind="stable"), kind="stable")[inverse.ravel()] // size
    whole = len(start) // size
    if not whole:
        unit = "image" if how.group is None else "group"
        raise InputError(
            f"a sequential comparison in batches of {counted(size, unit)}",
            f"have at least {counted(size, unit)}",
            got=len(start),
            cause="use smaller batches: --batch N (in Python batch=)",
        )
    # Split at batch borders and drop the last, incomplete batch.
    cuts = np.searchsorted(np.sort(place, kind="stable"), np.arange(whole + 1))
    by_batch = ordered[np.argsort(place, kind="stable")]
    parts = [np.sort(by_batch[cuts[b] : cuts[b + 1]]) for b in range(whole)]
    return row, how._replace(batch=size), _Rows(parts, units, len(ordered))


def _reading_order(evaluation: Evaluation, order: Order, seed: int) -> NDArray[np.intp]:
    """Return the rows of the images in reading order."""
    count = evaluation._image_count
    if isinstance(order, str):
        checks.one_of(order, ("listed", "random"), name="order")
        listed = np.arange(count)
        return listed if order == "listed" else np.random.default_rng([seed, count]).permutation(listed)
    ids = list(order)
    rows = evaluation.images.rows(as_ids(ids, name="order"))
    if (rows < 0).any():
        raise InputError("order", "name images", got=repr(ids[int(np.flatnonzero(rows < 0)[0])]))
    _, times = np.unique(rows, return_counts=True)
    if (times > 1).any():
        twice = evaluation.images.ids.tolist()[int(np.unique(rows)[times > 1][0])]
        raise InputError("order", "name each image once", got=f"{twice!r} twice")
    return rows.astype(np.intp)


def _read(
    both: Matches, protocol: Protocol, row: SummaryRow, how: BatchReading, rows: _Rows, workers: Workers
) -> Iterator[Batch]:
    """Bet on one batch after the other; ``both`` are the matches of both detectors."""
    sign = -1.0 if row.key in protocol.lower_is_better else 1.0
    better, worse, images = np.zeros(len(BETS)), np.zeros(len(BETS)), 0
    for number, batch in enumerate(rows.batches):
        # Take the images of the batch from both detectors, which alternate.
        chosen = np.zeros(len(both.images) // 2, dtype=bool)
        chosen[batch] = True
        units = None
        if rows.units is not None:
            units = np.unique(rows.units[batch], return_inverse=True)[1].ravel().astype(np.int32)
        # Derive the seed from the number of the batch, so that later batches do not change its swaps.
        swaps = Swaps.of_seed(len(batch), how.resamples, _seed_of(how.seed, number), units)
        sides = both.take_images(np.repeat(chosen, 2))
        values = weighted_metrics_shared(sides, protocol, [row], swaps, workers=workers).values[:, 0, -1]
        # Bets multiply over batches: their logarithms add up.
        gains = payments(sign * (values[1::2] - values[::2]))
        better, worse, images = better + gains[0], worse + gains[1], images + len(batch)
        yield Batch(images, float(values[0]), float(values[1]), _spread(better), _spread(worse))


def _seed_of(seed: int, batch: int) -> int:
    """Return the seed of a batch, independent of the number of later batches."""
    return int.from_bytes(np.random.SeedSequence([seed, batch]).generate_state(4).tobytes(), "little")


def payments(differences: FloatArray) -> FloatArray:
    """Return the logarithm of the payment of each bet, in both directions, [2, bets].

    ``differences`` are those of each swap, the observed one first, [swaps]; their opposites are implied.
    """
    differences = np.where(np.isnan(differences), 0.0, differences)
    # Scale by the standard deviation of the swaps; with the opposites the mean is 0.
    spread = math.sqrt(float((differences**2).mean()))
    if spread <= NEGLIGIBLE:
        return np.zeros((2, len(BETS)))
    z = differences / spread
    # Divide each bet by its mean over all swaps, as logarithms, to avoid overflow.
    sizes = np.abs(z)[:, None] * BETS
    expected = np.logaddexp.reduce(np.logaddexp(sizes, -sizes), axis=0) - math.log(2 * len(z))
    return np.stack([z[0] * BETS - expected, -z[0] * BETS - expected])


def _spread(capital: FloatArray) -> float:
    """Return the logarithm of the mean of capitals."""
    return float(np.logaddexp.reduce(capital) - math.log(len(capital)))


def _capital(logarithms: FloatArray) -> FloatArray:
    capital: FloatArray = np.exp(np.minimum(logarithms, 700.0))
    return capital


def _side_weights(images: int) -> list[FloatArray]:
    """Return the weights of the virtual images that select each detector."""
    first = np.tile([1.0, 0.0], images)
    return [first, 1 - first]
