"""Compute the confusion matrix across classes, with background as one more class.

Conventions
-----------
- Rows are true classes, columns predicted classes; ``(background)`` is last in both. An object without a
  detection counts in the background column, a detection without an object in the background row.
- Only detections with ``score >= score_threshold`` count, so a matrix describes one operating point.
- Detections are assigned one to one to objects of their image with an IoU of at least ``iou_threshold``,
  regardless of class. ``assign="score"`` assigns detections by descending score, each to the free object with
  the largest overlap. ``assign="iou"`` assigns pairs by descending IoU. If IoUs are equal, the object that
  comes first in the file is taken.
- Without scores, pairs are assigned by IoU. Ties prefer pairs of the same class, then compare classes and
  boxes, so the order of rows in a file does not matter.
- Ignored ground truths (crowds, difficult objects) are left out. So is an unassigned detection that overlaps
  an ignored ground truth of its class, or whose class is not annotated exhaustively in its image if the
  protocol ignores unmatched detections there.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.text import counted
from boxscore.data.class_names import BACKGROUND, TRUTH
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import rows_among_all
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import greedy_one_to_one, least_score, warn_of_subsets
from boxscore.extensions.diagnostics._result import SHOWN_ROWS, DiagnosticResult, once_per_evaluation
from boxscore.extensions.large.questions import Place, source_of
from boxscore.matching.matcher import CrossPairs

if TYPE_CHECKING:
    import pandas as pd

Assign = Literal["score", "iou"]
Normalize = Literal["none", "truth", "predicted", "all"]
ClassOrder = Literal["file", "AP", "objects", "confusion"]

SCORE_THRESHOLD = 0.25
"""The default score threshold."""

EVERY_SCORE = -1e300
"""A score threshold that every detection reaches."""

PER_LISTED = 100
"""Bytes per image listed for a cell: its id and its text."""

MOST_CELLS = 1 << 27
"""Maximum cells of a dense matrix, 8 bytes each."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Cells:
    """One row per assigned pair, missed object or unassigned detection, [N]."""

    # True class; K for background.
    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    image: NDArray[np.int32]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ConfusionMatrix(DiagnosticResult):
    """Counts of predicted classes per true class: the nonzero cells, and a dense matrix on request.

    Attributes
    ----------
    labels : list of str, [K + 1]
        The classes, then ``(background)``.
    truth, predicted : ndarray of intp, [N]
        Positions in ``labels`` of the nonzero cells, row by row.
    count : ndarray of int64, [N]
        Counts of the cells.
    normalize : {"none", "truth", "predicted", "all"}
        How :attr:`values` are normalized.
    """

    labels: list[str]
    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    count: NDArray[np.int64]
    normalize: Normalize = "none"

    @functools.cached_property
    def counts(self) -> NDArray[np.int64]:
        """Return the dense matrix; rows are true classes, columns predicted ones; [K + 1, K + 1].

        Raises
        ------
        InputError
            When there are too many classes for a dense matrix; the nonzero cells are still available.
        """
        n = len(self.labels)
        if n * n > MOST_CELLS:
            raise InputError(
                "a matrix of classes",
                f"have at most {MOST_CELLS:,} cells, 1 GiB",
                got=f"{n:,} x {n:,}, {8 * n * n / 2**30:,.1f} GiB",
                cause="list the largest confusions with top_confusions (--top), choose fewer classes "
                "(--classes), or read the non-zero cells from truth, predicted and count",
            )
        counts = np.zeros((n, n), dtype=np.int64)
        counts[self.truth, self.predicted] = self.count
        counts.setflags(write=False)
        return counts

    @property
    def values(self) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the counts, or fractions of a row, a column or the total; [K + 1, K + 1], 0/0 is NaN."""
        if self.normalize == "none":
            return self.counts
        axis = {"truth": 1, "predicted": 0, "all": None}[self.normalize]
        total = self.counts.sum(axis=axis, keepdims=True)
        shares = np.full(self.counts.shape, np.nan)
        np.divide(self.counts, total, out=shares, where=total > 0)
        return shares

    @property
    def shares_of_truth(self) -> NDArray[np.float64]:
        """Return each cell's fraction of the objects of its true class, or of unassigned detections, [N]."""
        of_truth = np.zeros(len(self.labels), dtype=np.int64)
        np.add.at(of_truth, self.truth, self.count)
        shares: NDArray[np.float64] = self.count / of_truth[self.truth]
        shares.setflags(write=False)
        return shares

    def counts_of(self, rows: Sequence[int]) -> NDArray[np.int64]:
        """Return the submatrix of :attr:`counts` for some classes, [n, n] for n positions in ``labels``."""
        place = np.full(len(self.labels), -1)
        place[list(rows)] = np.arange(len(rows))
        truth, predicted = place[self.truth], place[self.predicted]
        inside = np.flatnonzero((truth >= 0) & (predicted >= 0))
        counts = np.zeros((len(rows), len(rows)), dtype=np.int64)
        counts[truth[inside], predicted[inside]] = self.count[inside]
        return counts

    def most_confused(self, most: int) -> NDArray[np.intp]:
        """Return the rows of the ``most`` classes that are most confused with other classes; ascending."""
        K = len(self.labels) - 1
        right, wrong, every = (np.zeros(K, dtype=np.int64) for _ in range(3))
        diagonal = (self.truth == self.predicted) & (self.truth < K)
        right[self.truth[diagonal]] = self.count[diagonal]
        between = ~diagonal & (self.truth < K) & (self.predicted < K)
        for side in (self.truth, self.predicted):
            np.add.at(wrong, side[between], self.count[between])
            np.add.at(every, side[side < K], self.count[side < K])
        order = np.lexsort((-every, -right, -wrong))
        return np.sort(order[:most])

    def ordered(self, rows: NDArray[np.intp], order: ClassOrder, evaluation: Evaluation) -> NDArray[np.intp]:
        """Sort some classes by row, lowest first metric, most objects, or so that confused ones adjoin.

        The last order joins classes into groups. It takes the pairs of classes from the most confused down,
        in both directions together; each pair appends the group of one class to that of the other, turned so
        that both classes adjoin if they are at an end of their groups. Ties keep the order of rows.
        """
        checks.one_of(order, get_args(ClassOrder), name="order")
        rows = np.sort(rows)
        if order in ("objects", "AP"):
            values = (
                -evaluation.class_counts["ground_truths"]
                if order == "objects"
                else next(iter(evaluation.class_values.values()), np.empty(0))
            )
            if len(values) <= rows.max(initial=-1):  # no values per class, as where classes are pooled
                return rows
            # NaN is last.
            return rows[np.argsort(values[rows], kind="stable")]
        return self._joined(rows) if order == "confusion" else rows

    def _joined(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort ascending classes so that those that are confused with each other are neighbors."""
        # Count each pair in both directions, the most confused first.
        counts = self.counts_of(rows.tolist())
        upper, lower = np.triu_indices(len(rows), 1)
        both = (counts + counts.T)[upper, lower]
        pairs = np.argsort(-both, kind="stable")
        pairs = pairs[both[pairs] > 0]
        # Join the groups of each pair; at first every class is a group.
        group = {k: [k] for k in range(len(rows))}
        for a, b in zip(upper[pairs].tolist(), lower[pairs].tolist(), strict=True):
            first, second = group[a], group[b]
            if first is second:
                continue
            # Turn the groups so that both classes adjoin, if they are at an end.
            joined = [
                *(first[::-1] if first[0] == a else first),
                *(second[::-1] if second[-1] == b else second),
            ]
            group.update(dict.fromkeys(joined, joined))
        # List groups by their most confused pair, then classes that are confused with none.
        listed = [k for a in upper[pairs].tolist() for k in group[a]]
        return rows[list(dict.fromkeys([*listed, *range(len(rows))]))]

    def largest(self, most: int | None, *, background: bool = True) -> NDArray[np.intp]:
        """Return the positions of the ``most`` largest off-diagonal cells between classes, then others.

        Both are sorted by descending count; ties keep their order.
        """
        last = len(self.labels) - 1
        order = np.argsort(-self.count, kind="stable")
        order = order[self.truth[order] != self.predicted[order]]
        among = (self.truth[order] < last) & (self.predicted[order] < last)
        return np.concatenate([order[among][:most], order[~among][:most] if background else order[:0]])

    def to_frame(self) -> pd.DataFrame:
        """Return :attr:`values` as a DataFrame: index ``truth``, columns ``predicted``."""
        import pandas as pd

        index, columns = (pd.Index(self.labels, name=name) for name in (TRUTH, "predicted"))
        return pd.DataFrame(self.values, index=index, columns=columns, copy=True)

    def _shown(self) -> tuple[str, pd.DataFrame]:
        """Return the text and table of the short form; a matrix that is too large shows its nonzero cells."""
        if len(self.labels) ** 2 <= MOST_CELLS:
            return super()._shown()
        import pandas as pd

        first = slice(SHOWN_ROWS)
        columns = {
            name: [self.labels[row] for row in rows[first].tolist()]
            for name, rows in (("truth", self.truth), ("predicted", self.predicted))
        }
        classes, cells = counted(len(self.labels), "class"), counted(len(self.count), "cell")
        title = f"ConfusionMatrix of {classes}, the first of {cells}"
        return title, pd.DataFrame({**columns, "count": self.count[first]})


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TopConfusions(DiagnosticResult):
    """The largest off-diagonal cells of the confusion matrix: between classes, then with the background.

    Both are sorted by descending count.

    Attributes
    ----------
    labels : list of str, [K + 1]
        The classes, then ``(background)``.
    truth, predicted : ndarray of intp, [N]
        Positions in ``labels``.
    count : ndarray of int64, [N]
    share_of_truth : ndarray of float64, [N]
        Fraction of the objects of the true class; for ``(background)``, of the unassigned detections.
    images : list of ndarray of int32, [N]
        Rows of the images behind each cell.
    image_ids : ndarray
        Id of each image row.
    missed, unassigned : int
        All objects without a detection and all detections without an object, listed or not.
    """

    labels: list[str]
    truth: NDArray[np.intp]
    predicted: NDArray[np.intp]
    count: NDArray[np.int64]
    share_of_truth: NDArray[np.float64]
    images: list[NDArray[np.int32]]
    image_ids: NDArray[np.int64] | NDArray[np.object_]
    missed: int
    unassigned: int

    def terminal_rows(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
        """Return the confusions between classes, and a line with the number of those with the background."""
        background = len(self.labels) - 1
        between = (self.truth < background) & (self.predicted < background)
        note = f"Not listed: {counted(self.missed, 'object')} missed, "
        return frame[between], f"{note}{counted(self.unassigned, 'detection')} on background"

    def to_frame(self) -> pd.DataFrame:
        """Return ``truth, predicted, count, share_of_truth, image_ids``, one row per cell."""
        import pandas as pd

        return pd.DataFrame(
            {
                "truth": [self.labels[k] for k in self.truth.tolist()],
                "predicted": [self.labels[k] for k in self.predicted.tolist()],
                "count": self.count,
                "share_of_truth": self.share_of_truth,
                "image_ids": [self.image_ids[rows].tolist() for rows in self.images],
            }
        )


def _count_cells(evaluation: Evaluation, place: Place, **options: Any) -> tuple[IntArray, IntArray]:
    """Return the numbers of the nonzero cells of some images, row by row, and their counts."""
    cells = _checked_cells(evaluation, **options)
    return np.unique(cells.truth * len(_labels(evaluation)) + cells.predicted, return_counts=True)


def _add_up(answers: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Add up the cells of disjoint sets of images."""
    cells, counts = (np.concatenate(column) for column in zip(*answers, strict=True))
    cell, where = np.unique(cells, return_inverse=True)
    count = np.zeros(len(cell), dtype=np.int64)
    np.add.at(count, where, counts)
    return cell, count


@once_per_evaluation
def confusion_matrix(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    assign: Assign | None = None,
    normalize: Normalize = "none",
) -> ConfusionMatrix:
    """Count how often each true class was predicted as each class.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, default 0.5
        Minimum IoU of a match, above 0 and at most 1.
    score_threshold : float, optional
        Leave out detections that score below this (default: 0.25; without scores, all are kept).
    assign : {"score", "iou"}, optional
        Match by descending score, or pairs by descending IoU (default: score; IoU without scores).
    normalize : {"none", "truth", "predicted", "all"}, default "none"
        Counts, or fractions of the true class, of the predicted class, or of the total. 0/0 is NaN.

    Returns
    -------
    ConfusionMatrix

    Raises
    ------
    InputError
        When an option is out of range, such as a score threshold above 0 for detections without scores.
    """
    checks.one_of(normalize, get_args(Normalize), name="normalize")
    options = {"iou_threshold": iou_threshold, "score_threshold": score_threshold, "assign": assign}
    cell, count = _add_up(source_of(evaluation).answers("confusions", _count_cells, options))
    labels = _labels(evaluation)
    return ConfusionMatrix(labels, *np.divmod(cell, len(labels)), count, normalize)


@once_per_evaluation
def top_confusions(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    assign: Assign | None = None,
    limit: int | None = 20,
    background: bool = True,
) -> TopConfusions:
    """List the largest off-diagonal cells with their images: between classes, then with the background.

    Both are sorted by descending count.

    Parameters
    ----------
    evaluation, iou_threshold, score_threshold, assign
        As in :func:`confusion_matrix`.
    limit : int or None, default 20
        Maximum rows between classes, and with the background; None for all.
    background : bool, default True
        Whether to list missed objects and unassigned detections too.

    Returns
    -------
    TopConfusions

    Raises
    ------
    InputError
        When an option is out of range, such as a score threshold above 0 for detections without scores.
    """
    options: dict[str, Any] = {
        "iou_threshold": iou_threshold,
        "score_threshold": score_threshold,
        "assign": assign,
    }
    # Take the largest off-diagonal cells of the matrix, then collect their images.
    matrix = confusion_matrix(evaluation, **options)
    last, chosen = len(matrix.labels) - 1, matrix.largest(limit, background=background)
    truth, predicted = matrix.truth[chosen], matrix.predicted[chosen]
    asked = {**options, "truth": truth, "predicted": predicted}
    listed = int(matrix.count[chosen].sum())
    what = f"the images of {counted(listed, 'confusion')}"
    source_of(evaluation).check_room(
        PER_LISTED * listed, what, "ask for fewer confusions (--top), or a larger limit"
    )
    # Each partition lists the images of each cell; join and sort the lists.
    every = source_of(evaluation).answers("confusions", _images_among_all, asked)
    images = [np.sort(np.concatenate(same)) for same in zip(*every, strict=True)]
    return TopConfusions(
        matrix.labels,
        truth,
        predicted,
        matrix.count[chosen],
        matrix.shares_of_truth[chosen],
        images,
        evaluation.images.ids,
        int(matrix.count[matrix.predicted == last].sum()),
        int(matrix.count[matrix.truth == last].sum()),
    )


def images_of_cells(
    evaluation: Evaluation,
    truth: NDArray[np.intp],
    predicted: NDArray[np.intp],
    *,
    iou_threshold: float = 0.5,
    score_threshold: float | None = None,
    assign: Assign | None = None,
) -> list[NDArray[np.int32]]:
    """Return the ascending image rows of some cells of the confusion matrix with the same options.

    ``truth`` and ``predicted`` are positions in its ``labels``.
    """
    cells = _checked_cells(evaluation, iou_threshold, score_threshold, assign)
    n = len(evaluation.ground_truth.categories) + 1
    wanted, keys = truth * n + predicted, cells.truth * n + cells.predicted
    rows = np.flatnonzero(np.isin(keys, wanted))
    keys, image = keys[rows], cells.image[rows]
    order = np.lexsort((image, keys))
    keys, image = keys[order], image[order]
    starts, ends = (np.searchsorted(keys, wanted, side=side) for side in ("left", "right"))
    return [np.unique(image[slice(*pair)]) for pair in zip(starts.tolist(), ends.tolist(), strict=True)]


def _images_among_all(
    evaluation: Evaluation, place: Place, *, truth: Any, predicted: Any, **options: Any
) -> list[NDArray[np.int32]]:
    """Return the rows, in the table of all images, of the images of some cells."""
    rows = images_of_cells(evaluation, truth, predicted, **options)
    return [rows_among_all(one, place).astype(np.int32) for one in rows]


def _labels(evaluation: Evaluation) -> list[str]:
    """Return the classes and the background, under names that differ from the column of true classes."""
    return [*evaluation.categories.labels_beside(TRUTH), BACKGROUND]


def _checked_cells(
    evaluation: Evaluation, iou_threshold: float, score_threshold: float | None, assign: Assign | None
) -> _Cells:
    evaluation._require_overlaps("confusions")
    scored = evaluation.detections.scored
    checks.number_between(iou_threshold, 0, 1, name="iou_threshold", open_low=True)
    if score_threshold is None:
        score_threshold = SCORE_THRESHOLD if scored else -np.inf
    least = least_score(evaluation, score_threshold)
    if assign is None:
        assign = "score" if scored else "iou"
    checks.one_of(assign, get_args(Assign), name="assign")
    if assign == "score" and not scored:
        raise InputError("assign", "be 'iou' if detections lack scores", got="'score'")
    warn_of_subsets(evaluation, "confusions are")
    return _cells(evaluation, float(iou_threshold), least, assign)


def _by_content(
    truth: GroundTruth, detections: Detections, pairs: CrossPairs, rows: NDArray[np.intp]
) -> Iterator[NDArray[Any]]:
    """Yield the sort keys that break ties of overlap, the strongest last: same class, classes, boxes."""
    sides = [(table, side[rows]) for table, side in ((detections, pairs.detection), (truth, pairs.truth))]
    for table, of_pair in sides:
        yield from table.boxes[of_pair].T[::-1]
    classes = [table.category[of_pair] for table, of_pair in sides]
    yield from classes
    yield classes[0] != classes[1]


@once_per_evaluation
def _cells(evaluation: Evaluation, iou_threshold: float, score_threshold: float, assign: Assign) -> _Cells:
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = evaluation._matcher.ignoring.ignored
    pairs = evaluation._matcher.across_classes(iou_threshold=iou_threshold, score_threshold=score_threshold)

    # Sort the pairs with counted objects by score or overlap, in one lexsort; the last key is the object's
    # row. Without scores, the content of rows breaks ties, so that file order does not matter.
    real = np.flatnonzero(~ignored[pairs.truth])
    by_overlap, by_score = -pairs.iou[real], pairs.position[real]
    if detections.scored:
        first, second = (by_score, by_overlap) if assign == "score" else (by_overlap, by_score)
        real = real[np.lexsort((pairs.truth[real], second, first))]
    else:
        real = real[np.lexsort((*_by_content(truth, detections, pairs, real), by_overlap))]
    # Assign greedily in this order: one detection to one object, regardless of class.
    taken = real[greedy_one_to_one(pairs.detection[real], pairs.truth[real])]
    object_row, detection_row = pairs.truth[taken], pairs.detection[taken]

    # A detection is unassigned unless it is matched, overlaps an ignored object of its class, or is ignored
    # when unmatched.
    free = np.ones(len(detections), dtype=bool)
    free[detection_row] = False
    excused = ignored[pairs.truth] & (truth.category[pairs.truth] == detections.category[pairs.detection])
    free[pairs.detection[excused]] = False
    free[evaluation._matcher.inexhaustive] = False
    lone = pairs.rows[free[pairs.rows]]
    # Objects without a detection are missed.
    missed = ~ignored
    missed[object_row] = False
    missed_rows = np.flatnonzero(missed)

    # Concatenate the three kinds of cells, with K as the class of the background.
    K = len(truth.categories)
    return _Cells(
        np.concatenate([truth.category[object_row], np.full(len(lone), K), truth.category[missed_rows]]),
        np.concatenate(
            [detections.category[detection_row], detections.category[lone], np.full(len(missed_rows), K)]
        ),
        np.concatenate([truth.image[object_row], detections.image[lone], truth.image[missed_rows]]),
    )
