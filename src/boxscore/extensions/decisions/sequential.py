"""Whether two detectors differ, tested again after every batch of images: the answer may come early.

Goal
----
A p-value is for one look at data whose size was fixed. Looking after every batch and stopping at the first
p-value below 5 % errs far more often. Here one may look, and stop, at any time.

Conventions
-----------
- The images come in batches, in an order that does not depend on which detector did what. In each batch the
  two detectors' whole results of an image, or of a group of images, are exchanged as in the swap test
  (:mod:`boxscore.extensions.decisions.swapping`), and each batch is scored by itself; images are matched one
  by one.
- The null hypothesis: given all before it, every exchange in a batch is equally likely. Nothing is assumed of
  scores, nor that images are alike or in random order.
- A bet of size b pays ``exp(b z) / mean of exp(b z*)``: z is the difference in the batch in standard
  deviations of the exchanges, z* that of each exchange, the observed one among them. So its mean under the
  null is 1, whether all exchanges are made or some at random. Each exchange counts with its opposite.
- Payments multiply over batches. A stake is spread evenly over the sizes of bets, for better and for worse.
  The capital is a martingale that is never negative: it reaches 1 / a with probability at most a, whenever it
  is looked at (Ville). ``p_value`` is 1 / (the largest capital so far).
- An undefined difference counts as 0, exchanged or not. A batch whose exchanges are all the same pays 1.
- A batch that is not complete is not read: looked at twice, it would be two bets on the same images. More
  images at the end of the order leave what there was as it is, exchanges too.
- A gate that looks at commit after commit sees the same images again and again: capital does not multiply
  there. Look k may spend 1 / (k (k + 1)) of the level, which add up to 1, however the looks depend on each
  other (Bonferroni).

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
"""Sizes of bets, per standard deviation of a batch: the best one is how far off the mean of z is."""

IMAGES_OF_BATCH, GROUPS_OF_BATCH = 50, 5
"""In a batch, where nobody says how many."""

Order = str | Sequence[Any]
"""``listed``, ``random``, or the ids of the images to read."""


class BatchReading(NamedTuple):
    """How the images are read."""

    resamples: int
    confidence: float
    seed: int
    batch: int
    """Images of a batch, or groups."""
    group: Group = None


class Batch(NamedTuple):
    """One batch, and the capital after it."""

    images: int
    """Read so far."""
    first: float
    """Score of the first detector on this batch alone."""
    other: float
    better: float
    """Natural logarithm of the capital of the bets that the other is better."""
    worse: float


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SequentialComparison(DiagnosticResult):
    """Two detectors compared batch by batch, up to the verdict or the last batch; B batches were read.

    Attributes
    ----------
    first, other : str
    metric : str
    images : ndarray, int64 [B]
        Read up to and with each batch.
    value_first, value_other : ndarray, float64 [B]
        Score on each batch alone.
    better, worse : ndarray, float64 [B]
        Capital of the bets that the other is better, and worse, after each batch.
    p_value : ndarray, float64 [B]
        Valid at whichever batch one stops.
    verdicts : ndarray of object, [B]
        ``better``, ``worse`` (the other) or ``cannot tell``, after each batch.
    score_first, score_other : float
        On all images read.
    given : int
        Images that could have been read.
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
        """Whether the other is ``better`` or ``worse``, or ``cannot tell``."""
        return str(self.verdicts[-1])

    @property
    def images_read(self) -> int:
        """Images up to the verdict, or in all complete batches."""
        return int(self.images[-1])

    def verdict_text(self) -> str:
        """Say what was read and what the verdict is of, in a few sentences."""
        level, left = 1 - self.reading.confidence, self.given - self.images_read
        if self.verdict != "cannot tell":
            end = f"stopped after {self.images_read:,} of {counted(self.given, 'image')}"
        elif left:
            end = f"read {self.images_read:,} images; {left:,} more are no whole batch"
        else:
            end = f"read all {counted(self.given, 'image')}"
        unit = "image" if self.reading.group is None else "group"
        return (
            f"{self.verdict}: {end}. {self.metric} of all that was read: {self.score_first:.4f} (first) and "
            f"{self.score_other:.4f} (other)\n"
            f"p_value: valid whenever one stops; if the two detectors' results of each {unit} can be "
            f"exchanged, it ever falls to {level:.4g} with probability {level:.4g} at most"
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
        Two, by name, of one ground truth under one protocol that matches each image alone.
    metric : str, optional
        The one that decides (default: the first of the protocol).
    batch : int, optional
        Images of a batch, or groups of images (default: 50 images, 5 groups).
    order : {"listed", "random"} or sequence of ids, default "listed"
        In which order images are read; of ids, only these images.
    resamples : int, default 1000
        Number of exchanges in each batch; all, where there are no more.
    confidence : float, default 0.95
        1 - the largest probability of a verdict on equal detectors, whenever one stops.
    seed : int, default 0
        Seed of the exchanges, and of a random order.
    group : str or sequence, optional
        Column of the images, pattern with a group for their names, or a label for each image: what is
        exchanged as a whole.
    progress : bool, default False
    workers : int or "auto", default "auto"
        Processes that share the exchanges of a batch where that pays, as for
        :func:`boxscore.evaluate`. The result is the same.

    Returns
    -------
    SequentialComparison

    Raises
    ------
    InputError
        When there are not two, their images, objects, classes or protocols differ, images are not matched
        each alone, there is no complete batch, or an option breaks a rule.

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
    # Check what is asked, and cut the images into batches in an order that no result decides.
    check_intervals(confidence, "percentile")
    if len(evaluations) != 2:
        raise InputError("a sequential comparison", "have two results", got=len(evaluations))
    (first_name, first), (other_name, other) = evaluations.items()
    row, how, rows = _checked(
        evaluations, metric, batch, order, BatchReading(resamples, confidence, seed, 0, group)
    )
    # Stop when the logarithm of the capital reaches that of 1 / (1 - confidence), less a rounding error.
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
    # Score both results on all images that were read.
    columns = [np.array(column) for column in zip(*read, strict=True)]
    seen = np.isin(np.arange(first.image_count), np.concatenate(rows.batches[: len(read)]))
    sides = both.take_images(np.repeat(seen, 2))
    scores = weighted_metrics(sides, first.protocol, [row], _sides(int(seen.sum()))).values[:, 0, -1]
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
    """What a gate learns of one look: whether one detector is worse, by all batches."""

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
    """Read every complete batch, and return how sure it is that the other is worse than the first."""
    # Read in the order of the file: a gate sees the same batches at every commit.
    row, how, rows = _checked(
        {"baseline": first, "checked": other},
        metric,
        batch,
        "listed",
        BatchReading(resamples, confidence, seed, 0, group),
    )
    both = both_detectors(first, other)
    # By Ville's inequality, 1 over the largest capital so far is a p-value, whenever it is looked at.
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
    """Return how much of the level look ``look`` may spend, from 1: all shares add up to 1."""
    return 1 / (look * (look + 1))


# ---------------------------------------------------------------- batches


class _Rows(NamedTuple):
    """Rows of the images of each complete batch, ascending, and the unit of every image."""

    batches: list[NDArray[np.intp]]
    units: NDArray[np.int32] | None
    given: int


def _checked(
    evaluations: Mapping[str, Evaluation],
    metric: str | None,
    batch: int | None,
    order: Order,
    how: BatchReading,
) -> tuple[SummaryRow, BatchReading, _Rows]:
    """Check what is asked, and lay out the batches."""
    # Only held matches of images that are matched one by one can be cut into batches.
    results = list(evaluations.values())
    check_comparable(list(evaluations), results)
    first = results[0]
    if not all(result.holds_matches for result in results):
        raise InputError(
            "a sequential comparison",
            "be of results whose matches are held",
            got="parts of very many detections",
            cause="read a part of the images: --images FILE",
        )
    if not first.protocol.scope.is_matched_alone:
        raise InputError(
            "a sequential comparison",
            "be made under a protocol that matches each image by itself",
            got=first.protocol.name,
            cause="which detections of an image count depends there on the other images",
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
    units, ordered = units_of_images(first, how.group), _ordered(first, order, how.seed)
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
            cause="smaller batches: --batch N (in Python batch=)",
        )
    # Cut at batch borders and leave out the last, incomplete batch.
    cuts = np.searchsorted(np.sort(place, kind="stable"), np.arange(whole + 1))
    by_batch = ordered[np.argsort(place, kind="stable")]
    parts = [np.sort(by_batch[cuts[b] : cuts[b + 1]]) for b in range(whole)]
    return row, how._replace(batch=size), _Rows(parts, units, len(ordered))


def _ordered(evaluation: Evaluation, order: Order, seed: int) -> NDArray[np.intp]:
    """Return the rows of the images in the order in which they are read."""
    count = evaluation.image_count
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
        # Take the images of the batch from both detectors: virtual images alternate between them.
        chosen = np.zeros(len(both.images) // 2, dtype=bool)
        chosen[batch] = True
        units = None
        if rows.units is not None:
            units = np.unique(rows.units[batch], return_inverse=True)[1].ravel().astype(np.int32)
        # The seed follows from the number of the batch, so that a batch has the same exchanges however many
        # follow.
        swaps = Swaps.of_seed(len(batch), how.resamples, _seed_of(how.seed, number), units)
        sides = both.take_images(np.repeat(chosen, 2))
        values = weighted_metrics_shared(sides, protocol, [row], swaps, workers=workers).values[:, 0, -1]
        # Bets multiply over batches: their logarithms add up.
        gains = payments(sign * (values[1::2] - values[::2]))
        better, worse, images = better + gains[0], worse + gains[1], images + len(batch)
        yield Batch(images, float(values[0]), float(values[1]), _spread(better), _spread(worse))


def _seed_of(seed: int, batch: int) -> int:
    """Return a seed for a batch, the same however many batches follow."""
    return int.from_bytes(np.random.SeedSequence([seed, batch]).generate_state(4).tobytes(), "little")


def payments(differences: FloatArray) -> FloatArray:
    """Return the logarithm of what each bet pays, for better and for worse, [2, bets].

    ``differences`` are those of each exchange, the observed one first, [exchanges]; the opposite of each
    belongs to them.
    """
    differences = np.where(np.isnan(differences), 0.0, differences)
    # Scale by the spread of the exchanges, with each exchange and its opposite in the mean, which is then 0.
    spread = math.sqrt(float((differences**2).mean()))
    if spread <= NEGLIGIBLE:
        return np.zeros((2, len(BETS)))
    z = differences / spread
    # Divide each bet by its mean over all exchanges, in logarithms, so that no exponential overflows.
    sizes = np.abs(z)[:, None] * BETS
    expected = np.logaddexp.reduce(np.logaddexp(sizes, -sizes), axis=0) - math.log(2 * len(z))
    return np.stack([z[0] * BETS - expected, -z[0] * BETS - expected])


def _spread(capital: FloatArray) -> float:
    """Logarithm of the mean of capitals."""
    return float(np.logaddexp.reduce(capital) - math.log(len(capital)))


def _capital(logarithms: FloatArray) -> FloatArray:
    capital: FloatArray = np.exp(np.minimum(logarithms, 700.0))
    return capital


def _sides(images: int) -> list[FloatArray]:
    """Weights of the virtual images that give each detector what it did."""
    first = np.tile([1.0, 0.0], images)
    return [first, 1 - first]
