"""Define the result of merged parts: an :class:`~boxscore.Evaluation` without its rows.

Conventions
-----------
- Metrics, per-class values, curves and arrays have the bits of one process. So have results
  under image weights (bootstrap intervals, slices, comparisons), computed where the parts are. Questions
  about boxes or overlaps read the partitions again, or raise an error
  (:mod:`boxscore.extensions.large.source`).
- Merged parts are in this process; otherwise the engine holds them, and the number of detections limits what
  can be fetched.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import read_only
from boxscore._utils.processes import Workers
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.scores import no_scores
from boxscore.data.vocabulary import Categories, Images, rows_among_all
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.hints.left_out import warn_left_out
from boxscore.extensions.large.engine import Engine, Here
from boxscore.extensions.large.headers import PartHeader, added_fallbacks, added_headers, header_of
from boxscore.extensions.large.merging import MergedParts, check_shares, images_in_order, numbered_images
from boxscore.extensions.large.parts import Part, TruthIdentity, load_one_of, parts_in
from boxscore.extensions.large.plan import MOST, asked_keys, every_key
from boxscore.extensions.large.reduction import Numbers, reduced
from boxscore.extensions.large.score_ranges import Reading, can_be_thinned, thinned_counts
from boxscore.extensions.large.source import InParts, no_rows, reads_all_scores
from boxscore.extensions.large.weighing import HeldParts, weighted_parts
from boxscore.extensions.weights.class_weights import differing_weights
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.curves import Curves
from boxscore.scoring.score_counts import ScoreCounts
from boxscore.scoring.summary import Key, WeightedMetrics, WeightSets

FETCHED = 1 << 24
"""Maximum number of detections whose parts are fetched: 20 to 30 bytes each, several hundred while in use."""

PER_FETCHED = 400
"""Bytes per fetched detection while in use."""

GATHERED = 1 << 20
"""Number of detections up to which matches are fetched automatically for intervals and verdicts."""

RATED = 1 << 19
"""Maximum number of detections fetched for precision, recall and F1 per class."""


def merge(parts: Iterable[Part | str | Path]) -> MergedEvaluation:
    """Merge parts of disjoint images, or files of parts.

    Parameters
    ----------
    parts : iterable of Part, str or Path
        In the order of their detections if equal scores are ordered as in the file.

    Returns
    -------
    MergedEvaluation
        Same bits as :func:`boxscore.evaluate` on all images.

    Raises
    ------
    InputError
        Without parts; if protocols, versions or classes differ; if an image is in two parts; if
        shards of a data set are missing.
    FileFormatError
        If a file is not a part, or is damaged.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> from boxscore.distributed import part_of
    >>> boxes = [[10, 10, 50, 50]]
    >>> parts = []
    >>> for image, score in ((1, 0.9), (2, 0.8)):
    ...     truth = GroundTruth.from_arrays([image], ["cat"], boxes)
    ...     detections = Detections.from_arrays([image], ["cat"], boxes, [score])
    ...     parts.append(part_of(evaluate(truth, detections)))
    >>> round(merge(parts)["AP"], 6)
    1.0
    """
    every: list[Part] = []
    for part in parts:
        every += (
            [part]
            if isinstance(part, Part)
            else map(functools.partial(load_one_of, part), range(parts_in(part)))
        )
    check_shares(every)
    return MergedEvaluation(MergedParts(every))


class MergedEvaluation(Evaluation):
    """The result of merged parts: an :class:`~boxscore.Evaluation` without its rows.

    It has metrics, per-class values, curves, arrays, bootstrap intervals, slices by image and comparisons,
    with the bits of one process, while the parts exist. Analyses that need boxes or overlaps read the
    partitions again if they can, and otherwise raise an error. If an engine holds the parts, operating points
    and FROC fetch them, for up to 16 million detections.

    Parameters
    ----------
    parts : MergedParts
        Parts in this process.
    """

    def __init__(self, parts: MergedParts) -> None:
        held = HeldParts(Here(), parts.parts, [header_of(part) for part in parts.parts])
        compute = functools.partial(
            reduced, Here(), parts.parts, headers=held.headers, keys=asked_keys(parts.protocol)
        )
        self._begin(held, compute, parts.protocol, is_here=True)
        vars(self).update(parts=parts)

    @classmethod
    def of_numbers(cls, numbers: Numbers, held: HeldParts | None = None) -> MergedEvaluation:
        """Make a result from computed numbers, and from parts on an engine."""
        self = cls.__new__(cls)
        self._begin(held, lambda: numbers, numbers.protocol)
        _ = self._numbers, self._rates  # compute while the parts exist
        return self

    @classmethod
    def later(cls, compute: Callable[[], Numbers], held: HeldParts) -> MergedEvaluation:
        """Make a lazy result of parts, which must exist when its numbers are first used."""
        self = cls.__new__(cls)
        self._begin(held, compute, held.headers[0].protocol)
        return self

    def _begin(
        self,
        held: HeldParts | None,
        compute: Callable[[], Numbers],
        protocol: Protocol,
        *,
        is_here: bool = False,
    ) -> None:
        vars(self).update(protocol=protocol, chosen_classes=False)
        vars(self).update(_held=held, _compute=compute, _is_here=is_here)

    _held: HeldParts | None
    _compute: Callable[[], Numbers]
    _is_here: bool
    """Whether the parts are in this process, and pickle with the result."""

    def __getstate__(self) -> dict[str, Any]:
        if self._is_here:
            return {"parts": self.parts}
        known = {"_numbers": self._numbers, "_rates": self._rates}
        kept = {name: value for name, value in vars(self).items() if name != "_compute"}
        return {**kept, **known, "_held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Rebuild a result of parts from them; restore a result of numbers."""
        if "parts" in state and "_numbers" not in state:
            MergedEvaluation.__init__(self, state["parts"])
        else:
            super().__setstate__(state)

    # ------------------------------------------------------------ rows

    @property
    def source(self) -> InParts:
        """Access to the parts, and to the partitions that can be read again."""
        kept = self._held is not None and not self._is_here and not reads_all_scores(self.protocol)
        return InParts(self, self._held, keeps_matches=kept)

    def _require_overlaps(self, what: str) -> None:
        """Raise an error: parts do not have rows.

        Parameters
        ----------
        what : str
        """
        raise no_rows(what)

    @property
    def ground_truth(self) -> Any:
        """Raises an error: not stored."""
        raise no_rows("the ground truth")

    @property
    def detections(self) -> Any:
        """Raises an error: not stored."""
        raise no_rows("the detections")

    @property
    def matches(self) -> Any:
        """Raises an error: not stored."""
        raise no_rows("the rows of matches")

    @property
    def outcomes(self) -> Any:
        """Raises an error: not stored."""
        raise no_rows("the outcomes of rows")

    @property
    def _matcher(self) -> Any:
        """Raises an error: not stored."""
        raise no_rows("a second matching")

    @property
    def answers(self) -> Mapping[str, Any]:
        """Empty: parts do not store how answers were read."""
        return {}

    @property
    def _sources(self) -> tuple[str, str]:
        """Sources of the ground truth and of the detections."""
        self.source.require("the ground truth" if self._is_here else "the names of files")
        sources: tuple[str, str] = self.source.there.tasks[0].sources
        return sources

    # ------------------------------------------------------------ images

    @functools.cached_property
    def images(self) -> Images:
        """All images, fetched from the parts, with the columns that every part has."""
        held = self.source.there
        with held.engine.asked_again():
            tables = held.engine.results(
                [held.engine.submit("images", _images_of, part) for part in held.parts], shown="images"
            )
        named = [SimpleNamespace(image_ids=ids, source="") for ids, _ in tables]
        ids, places = numbered_images(named)
        order = np.empty(len(ids), dtype=np.int64)
        order[np.concatenate(places)] = np.arange(len(ids))
        return images_in_order(ids, order, [columns for _, columns in tables])

    @property
    def _image_count(self) -> int:
        """Number of evaluated images, including those without objects."""
        return self.counts["images"]

    @property
    def _image_fingerprint(self) -> str:
        """Digest of the ids of all images, without fetching them."""
        return f"{self.identity.names_digest:064x}"

    def _image_names(self, pattern: str) -> list[str]:
        """Read the file names of all images from the partitions; parts do not store them.

        Parameters
        ----------
        pattern : str
            The pattern to look for, for messages.

        Returns
        -------
        list of str
        """
        held = self._held
        if held is None or not held.tasks:
            raise InputError(
                "group",
                "be a column of the images, or a label for each image",
                got=repr(pattern),
                cause="merged parts do not store file names",
            )
        tasks = [held.engine.submit("names", _names_of, task) for task in held.tasks]
        names = np.empty(self._image_count, dtype=object)
        for place, some in zip(held.places(), held.engine.results(tasks, shown="names"), strict=True):
            names[rows_among_all(np.arange(len(some)), place)] = some
        return names.tolist()

    def _curves_under(self, ap: ApRules) -> Curves:
        """Return the curves of the first area range and the largest max detections under other AP rules.

        Parameters
        ----------
        ap : ApRules

        Returns
        -------
        Curves
        """
        curves: Curves = self.source.under(ap, [(0, len(self.protocol.caps) - 1)]).curves_of()
        return curves

    def _has_same_truth(self, other: Evaluation) -> bool:
        """Return whether another result has the same images, classes and objects, by digest.

        Parameters
        ----------
        other : Evaluation

        Returns
        -------
        bool
        """
        mine, yours = (
            one.identity if isinstance(one, MergedEvaluation) else TruthIdentity.of(one.ground_truth)
            for one in (self, other)
        )
        return mine.same_as(yours)

    @property
    def identity(self) -> TruthIdentity:
        """The identity of the ground truth."""
        if self._held is None:
            return self._numbers.identity
        return TruthIdentity.joined(header.identity for header in self._held.headers)

    # ------------------------------------------------------------ matches

    @property
    def _holds_matches(self) -> bool:
        """Whether there are few enough matches to hold them in memory."""
        return int(self.class_counts["detections"].sum()) <= min(GATHERED, FETCHED)

    @functools.cached_property
    def parts(self) -> MergedParts:
        """The parts, fetched to this process."""
        held, count = self.source.there, int(self.class_counts["detections"].sum())
        most = FETCHED if held.room is None else min(FETCHED, held.room // PER_FETCHED)
        if count > most:
            raise InputError(
                "detections whose parts are fetched",
                f"be at most {most:,}",
                got=f"{count:,}",
                cause="metrics, curves, bootstrap intervals, slices by image, comparisons and commands "
                "with --score-threshold work for any size; for other results evaluate fewer images",
            )
        return MergedParts(held.engine.gather(held.parts))

    @functools.cached_property
    def matched(self) -> Matches:
        """All classes merged, for questions that read every score; computed on first use."""
        return self.parts.matches()

    def _require_scores(self) -> None:
        """Raise an error if the detections lack scores."""
        if not self.has_scores:
            raise no_scores("")

    def _weighted_metrics(
        self,
        rows: Sequence[SummaryRow],
        weights: WeightSets,
        *,
        progress: bool = False,
        workers: Workers = "auto",
    ) -> WeightedMetrics:
        """Compute summary metrics under image weights, where the parts are.

        Parameters
        ----------
        rows : sequence of SummaryRow
        weights : WeightSets
            Sets of integers, [images] each.
        progress : bool, default False
            Show a progress bar if stderr is a terminal.
        workers : int, default 1
            Ignored: the engine decides.

        Returns
        -------
        WeightedMetrics
        """
        held = self.source.there
        own_bar = progress and isinstance(held.engine, Here)  # others show their tasks
        return weighted_parts(held, rows, weights, progress=own_bar)

    # ------------------------------------------------------------ numbers

    @functools.cached_property
    def _numbers(self) -> Numbers:
        """The numbers that the summary needs."""
        return self._compute()

    @functools.cached_property
    def _curves(self) -> dict[tuple[int, int, str | None], Curves]:
        return dict(self._numbers.curves)

    @property
    def labels(self) -> list[str]:
        """Class names, [K]; the axis K of every array of the result."""
        return read_only(self._numbers.labels)

    @property
    def categories(self) -> Categories:
        """The classes of the ground truth, even if the protocol pools them."""
        return self.identity.categories

    @property
    def _class_columns(self) -> dict[str, NDArray[Any]]:
        """Class columns of the data set, [K]; empty if classes are pooled."""
        columns = self._numbers.categories.shown_columns
        return read_only(columns if self.protocol.matching.per_class else {})

    @property
    def _class_weights(self) -> NDArray[np.float64] | None:
        """Weight of each class in means over classes, [K]; None if all weights are equal."""
        return differing_weights(self.protocol.ap, self.identity.categories)

    @property
    def counts(self) -> dict[str, int]:
        """Number of images, objects, detections and classes, as in ``Evaluation.counts``."""
        if self._held is None:
            return read_only(dict(self._numbers.counts))
        return read_only(added_headers(self._held.headers).result_counts)

    @property
    def left_out(self) -> dict[str, int]:
        """Number of detections per class that is not in the ground truth."""
        return dict(self._numbers.left_out)

    @property
    def class_counts(self) -> dict[str, NDArray[Any]]:
        """Ground truths, detections, and true positives at the first threshold, per class, [K]."""
        return read_only(dict(self._numbers.class_counts))

    def curves_of(self, area: int = 0, cap: int = -1, pooled: str | None = None) -> Any:
        """Return the curves of an area range and max detections.

        Parameters
        ----------
        area, cap : int
            Positions on the axes A and M.
        pooled : str, optional
            As in :meth:`boxscore.Evaluation.curves_of`.

        Returns
        -------
        Curves
        """
        key = area, cap % len(self.protocol.caps), pooled
        if key not in self._curves:
            rest = [one for one in every_key(self.protocol) if (*one, None) not in self._curves]
            self._curves.update(reduced(Here(), self.parts.parts, keys=rest).curves)
        return self._curves[key]

    # ------------------------------------------------------------ numbers at score thresholds

    @functools.cached_property
    def _rates(self) -> tuple[float, dict[str, NDArray[Any]]]:
        """The score of the best F1, and the rates per class at it; empty for very many detections.

        The best F1 over all classes needs all scores in one process.
        """
        if self._held is None or int(self.class_counts["detections"].sum()) > RATED:
            return -np.inf, {}
        whole = MergedEvaluation(MergedParts(self._held.engine.gather(self._held.parts)))
        return whole.operating_score, whole.class_rates

    @property
    def class_rates(self) -> dict[str, NDArray[np.float64]]:
        """Precision, recall and F1 per class; empty for more than half a million detections on an engine."""
        return super().class_rates if self._is_here else read_only(self._rates[1])

    @property
    def _without_class_rates(self) -> str:
        """The reason for missing :attr:`class_rates`, or an empty text."""
        count = int(self.class_counts["detections"].sum())
        if self._is_here or self._rates[1] or count <= RATED:
            return ""
        return (
            f"precision, recall and F1 are not computed for more than {RATED:,} detections ({count:,} here)"
        )

    @property
    def operating_score(self) -> float:
        """Score threshold of the best F1 over all classes; minus infinity if F1 is undefined."""
        if self._is_here or not self.has_scores:
            return super().operating_score
        if self._rates[1]:
            return self._rates[0]
        best = self._score_counts(keep=_best).best_score(len(self.labels))
        return best if best == best else -np.inf

    def _score_counts(
        self,
        threshold: int = 0,
        area: int = 0,
        keep: Callable[[ScoreCounts], Sequence[int]] | None = None,
        *,
        overlaps: bool = False,
    ) -> ScoreCounts:
        """Return the counts at the score thresholds that a question may read.

        Parameters
        ----------
        threshold, area : int
        keep : callable, optional
            As in ``Evaluation._score_counts``; without it, all parts are fetched.
        overlaps : bool, default False
            Whether overlaps are needed, for which the partitions are read again.

        Returns
        -------
        ScoreCounts
        """
        held = self.source.with_own_scores("LRP") if overlaps else self._held
        thinned = held is not None and not self._is_here and can_be_thinned(held)
        if overlaps and not thinned:
            raise InputError(
                "LRP",
                "be computed with all images in memory",
                got="partitions",
                cause=f"the protocol {self.protocol.name} gives ground truths weights",
            )
        if keep is None or held is None or not thinned:
            return super()._score_counts(threshold, area)
        self._require_scores()
        return thinned_counts(held, Reading(threshold, area, keep, overlaps))


DistributedEvaluation = MergedEvaluation
"""Alias for results whose parts stay on an engine."""


def _best(counts: ScoreCounts) -> list[int]:
    """Keep the point of a curve with the best F1."""
    return [int(np.argmax(counts.f_score()))] if len(counts.score) and counts.positive[0] else []


def _names_of(task: Any) -> list[str]:
    names: list[str] = task.image_names()
    return names


def _images_of(part: Part) -> tuple[NDArray[Any], Mapping[str, NDArray[Any]]]:
    """Copy the ids and columns of the images, so that no memory map of a part stays open."""
    return part.image_ids.copy(), {name: values.copy() for name, values in part.image_columns.items()}


# ---------------------------------------------------------------- from parts to a result


def warn_of_parts(headers: Sequence[PartHeader | Part]) -> None:
    """Warn once about left-out detections of all parts, and about fallbacks."""
    left_out: Counter[str] = Counter()
    for header in headers:
        left_out.update(header.left_out)
    warn_left_out(left_out, headers[0].source.partition(" of ")[2])
    text, count = added_fallbacks(headers)
    if count:
        more = f" So in {counted(count - 1, 'more partition')}." if count > 1 else ""
        warn_user(text + more)


def evaluation_of(
    engine: Engine,
    parts: Sequence[Any],
    headers: Sequence[PartHeader],
    *,
    most: int = MOST,
    keys: Sequence[Key] | None = None,
    room: int | None = None,
    tasks: Sequence[Any] = (),
    later: bool = False,
) -> MergedEvaluation:
    """Reduce parts to a result; arguments as for :func:`~boxscore.extensions.large.reduction.reduced`.

    ``room`` is the memory of a process in bytes for later questions, and ``tasks`` read the partitions again
    for those that need boxes. With ``later``, numbers are computed lazily.
    """
    held = HeldParts(engine, list(parts), headers, room, tasks)
    compute = functools.partial(reduced, engine, parts, most=most, headers=headers, keys=keys)
    return MergedEvaluation.later(compute, held) if later else MergedEvaluation.of_numbers(compute(), held)
