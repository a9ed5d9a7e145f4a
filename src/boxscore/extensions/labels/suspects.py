"""Find label suspects: confident detections that contradict the ground truth.

Goal
----
Data sets contain errors, and a good detector finds some of them: confident detections of objects that are not
annotated, or have another class. People must review the list; it is not a verdict.

Conventions
-----------
- ``wrong class``: an annotation of another class overlaps the detection by ``iou_threshold`` or more, and no
  annotation of its class does.
- ``missing annotation``: no annotation of any class overlaps the detection by ``background_iou`` or more.
- ``poor box``: an annotation of its class overlaps the detection by ``background_iou`` to ``iou_threshold``,
  and no other detection matches the annotation.
- Detections that overlap an ignored ground truth (crowds, difficult objects) are not listed. Neither are
  detections of a class that is not annotated exhaustively in the image, if the protocol ignores unmatched
  ones there. If detections of one class overlap each other by ``iou_threshold`` or more, only the most
  suspicious one is listed.
- ``suspicion`` is the best precision of the class at any confidence threshold up to the detection's score.
  Detectors that are nearly always right get the most suspicion.
- ``cost`` is the exact change of a summary metric if only this label were corrected as the detector suggests:
  relabeled, added, or redrawn (:mod:`boxscore.extensions.labels.leave_one_out`). It is NaN if the protocol
  does not allow it, and beyond the :data:`MOST_COSTED` most suspicious ones.
- The default order is the sum of two ranks (Borda's count): by suspicion, and by cost times the ground truths
  of the class. Without this factor, classes with few objects would come first regardless of the detector. The
  list can also be sorted by only one of them. Ties are sorted by suspicion, then by score.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import inverse_order, rank_in_runs, stable_order
from boxscore.data.boxes import without_inverted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import check_overlaps, warn_of_subsets
from boxscore.extensions.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.extensions.labels.label_edits import LabelEdits
from boxscore.extensions.labels.leave_one_out import label_costs, refusal, row_named
from boxscore.matching.matcher import CrossPairs
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.score_counts import CountedDetections, ScoreCounts
from boxscore.similarity.box import box_iou

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("wrong class", "missing annotation", "poor box")
WRONG_CLASS, MISSING, POOR_BOX = range(3)
MOST_COSTED = 10_000
"""Maximum suspects whose cost is computed, the most suspicious first; each takes about a millisecond."""

FIRST = {
    "both": "detector confidence and AP cost to the class",
    "class_cost": "AP cost to the class",
    "cost": "AP cost",
    "suspicion": "detector confidence",
}
"""Description of each order."""

Order = Literal["both", "class_cost", "cost", "suspicion"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelSuspects(DiagnosticResult):
    """Confident detections that disagree with the ground truth, in the requested order.

    Attributes
    ----------
    cost : ndarray of float64, [N]
        Gain of the metric if the label were corrected; NaN where unknown.
    metric : str
        Key of the metric in the summary.
    order : {"both", "class_cost", "cost", "suspicion"}
        The sort order.
    refusal : str
        The rule of the protocol that prevents costs; empty if they are known.
    suspicion : ndarray of float64, [N]
        See the module's conventions.
    kind : ndarray of intp, [N]
        Positions in :data:`KINDS`.
    detection : ndarray of intp, [N]
        Rows of the detections.
    truth : ndarray of intp, [N]
        Row of the ground truth with the largest overlap, for a poor box within its class; -1 for none.
    iou : ndarray of float64, [N]
        Overlap with this ground truth; NaN for none.
    ground_truth, detections : GroundTruth, Detections
        The evaluated tables.
    """

    cost: NDArray[np.float64]
    metric: str
    order: Order
    refusal: str
    suspicion: NDArray[np.float64]
    kind: NDArray[np.intp]
    detection: NDArray[np.intp]
    truth: NDArray[np.intp]
    iou: NDArray[np.float64]
    ground_truth: GroundTruth
    detections: Detections

    def __len__(self) -> int:
        return len(self.detection)

    @property
    def note(self) -> str:
        """Describe the first column, or why it is empty, and the sort order."""
        if self.refusal:
            return (
                f"sorted by detector confidence; cost is empty: it needs a protocol that would {self.refusal}"
            )
        some = f" (only for the {MOST_COSTED:,} most suspicious)" if np.isnan(self.cost).any() else ""
        cost = f"cost: gain in {self.metric} if the label were what the detector predicts{some}"
        return f"{cost}\nsorted by {FIRST[self.order]}"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per suspect.

        ``cost, suspicion, kind, image_id, file_name, class, score, x1, y1, x2, y2, annotation_id, true_class,
        iou``. The last three describe the annotation with the largest overlap; None and NaN without one.
        """
        import pandas as pd

        # Look up annotations only for suspects that have one; the others get None.
        truth, detections, rows = self.ground_truth, self.detections, self.detection
        labels = np.array(truth.categories.labels, dtype=object)
        has = self.truth >= 0
        ids, classes = (np.full(len(rows), None, dtype=object) for _ in range(2))
        ids[has] = truth.ids[self.truth[has]]
        classes[has] = labels[truth.category[self.truth[has]]]
        # Columns about the detection are complete, [N].
        return pd.DataFrame(
            {
                "cost": self.cost,
                "suspicion": self.suspicion,
                "kind": [KINDS[k] for k in self.kind.tolist()],
                "image_id": truth.images.ids[detections.image[rows]],
                "file_name": truth.images.file_names[detections.image[rows]],
                "class": labels[detections.category[rows]],
                "score": detections.scores[rows],
                **{name: detections.boxes[rows, i] for i, name in enumerate(("x1", "y1", "x2", "y2"))},
                "annotation_id": ids,
                "true_class": classes,
                "iou": self.iou,
            }
        )


@once_per_evaluation
def label_suspects(
    evaluation: Evaluation,
    *,
    score_threshold: float = 0.5,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    limit: int | None = 100,
    order: Order = "both",
    metric: str | None = None,
    each_class: bool = False,
    against: Evaluation | None = None,
) -> LabelSuspects:
    """List confident detections that disagree with the ground truth, the most useful to review first.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float, default 0.5
        Leave out detections that score below this.
    iou_threshold : float, default 0.5
        Minimum IoU of a match: above it, a detection and an annotation are the same object.
    background_iou : float, default 0.1
        IoU below which a detection does not overlap an object.
    limit : int or None, default 100
        Maximum number of rows; None for all.
    order : {"both", "class_cost", "cost", "suspicion"}, default "both"
        Sort order: the sum of the ranks by ``class_cost`` and ``suspicion``; by cost times the ground truths
        of the class; by cost; or by suspicion. If images cannot be matched one by one, costs are unknown and
        the order is ``suspicion``.
    metric : str, optional
        The summary metric of the costs (default: the first).
    each_class : bool, default False
        List up to ``limit`` detections of each class, class by class.
    against : Evaluation, optional
        An evaluation of another detector on the same ground truth: costs then refer to the difference of the
        two, and those of the largest size come first.

    Returns
    -------
    LabelSuspects

    Raises
    ------
    InputError
        When an option is out of range.
    """
    checks.one_of(order, get_args(Order), name="order")
    checks.number_between(score_threshold, -np.inf, np.inf, name="score_threshold")
    check_overlaps(iou_threshold, background_iou)
    evaluation._require_overlaps("label suspects")
    warn_of_subsets(evaluation, "label suspects are")
    # Find pairs across classes; overlap with ignored objects is relative to the detection's area.
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = evaluation._matcher.ignoring.ignored
    pairs = evaluation._matcher.across_classes(
        iou_threshold=background_iou, score_threshold=score_threshold, by_foreground=ignored
    )
    # Classify each detection by its pairs, [D] flags each: explained, on an object of another class, poorly
    # localized on an otherwise unmatched object, or without an object.
    same_class = truth.category[pairs.truth] == detections.category[pairs.detection]
    close = pairs.iou >= iou_threshold
    D = len(detections)
    explained = _any(pairs, ignored[pairs.truth] | (same_class & close), D) | evaluation._matcher.inexhaustive
    seen = np.zeros(len(truth), dtype=bool)
    seen[pairs.truth[same_class & close]] = True
    other_class = _any(pairs, ~same_class & close, D)
    badly_placed = _any(pairs, same_class & ~seen[pairs.truth], D)
    near = _any(pairs, np.ones(len(same_class), dtype=bool), D)
    kind = np.select([explained, other_class, badly_placed, ~near], [-1, 0, 2, 1], -1)

    # Sort by the precision that the class reaches at the score, then by score and row; drop repeats at one
    # place.
    suspicion = _precision_reached(evaluation, explained, pairs.rows)
    rows = pairs.rows[kind[pairs.rows] >= 0]
    rows = rows[np.lexsort((rows, -detections.scores[rows], -suspicion[rows]))]
    rows = _without_repeats(evaluation, rows, iou_threshold)
    # Find the annotation of each suspect: for a poor box, the unmatched one of its class; otherwise the
    # nearest.
    overlap, annotation = _most_overlapping(pairs, np.ones(len(same_class), dtype=bool), D)
    # The annotation that a poor box would replace.
    of_own = _most_overlapping(pairs, same_class & ~seen[pairs.truth], D)
    overlap, annotation = (
        np.where(kind == POOR_BOX, own, any_) for own, any_ in zip(of_own, (overlap, annotation), strict=True)
    )
    if limit is not None:
        checks.whole_number(limit, 1, name="limit")
    # Compute the cost of the first suspects, if the protocol allows it.
    reason = refusal(evaluation)
    row = row_named(evaluation, metric)
    cost = np.full(len(rows), np.nan)
    if not reason:
        some = rows[:MOST_COSTED]
        edits = proposals(evaluation, some, kind[some], annotation[some])
        cost[: len(some)] = label_costs(evaluation, edits, metric=row.key, against=against).cost
    # Sort by size of the cost, or of the cost times objects of the class. "both" adds the ranks by cost and
    # by suspicion; stable sorts keep ties in the order of suspicion.
    if not reason and order != "suspicion":
        sign = -1 if row.key in evaluation.protocol.lower_is_better else 1
        size = sign * cost if against is None else np.abs(cost)
        # Any label of a small class costs much, so weight the cost by the number of its objects.
        if order != "cost":
            objects = np.maximum(evaluation.matched.positives(0), 1)
            pooled = not evaluation.protocol.matching.per_class
            size = size * objects[np.zeros_like(rows) if pooled else detections.category[rows]]
        chosen = np.argsort(-size, kind="stable")
        # Sum both ranks; ties keep the order by cost.
        if order == "both":
            chosen = np.argsort(inverse_order(chosen) + np.arange(len(rows)), kind="stable")
        rows, cost = rows[chosen], cost[chosen]
    # Truncate the list last, so that each class can have its own rows.
    chosen = _first_rows(detections.category[rows], limit, each_class=each_class)
    rows, cost = rows[chosen], cost[chosen]
    return LabelSuspects(
        cost,
        row.key,
        order,
        reason,
        suspicion[rows],
        kind[rows],
        rows,
        annotation[rows],
        np.where(annotation[rows] >= 0, overlap[rows], np.nan),
        truth,
        detections,
    )


def reasons(suspects: LabelSuspects) -> list[str]:
    """Explain in words why each one is a suspect, for the reviewer."""
    truth, found = suspects.ground_truth, suspects.detections
    labels = truth.categories.labels
    texts = []
    columns = zip(suspects.detection.tolist(), suspects.kind.tolist(), suspects.truth.tolist(), strict=True)
    for row, kind, annotation in columns:
        words = KINDS[kind]
        if annotation >= 0 and kind == WRONG_CLASS:
            words += f": annotated as {labels[truth.category[annotation]]}"
        texts.append(f"{words}, score {found.scores[row]:.3g}")
    return texts


def proposals(
    evaluation: Evaluation, rows: NDArray[np.intp], kind: NDArray[np.intp], annotation: NDArray[np.intp]
) -> LabelEdits:
    """Make the edits that the detections suggest, row by row: change the class, add, or redraw."""
    from_detections = LabelEdits.from_detections(evaluation, rows, np.where(kind == POOR_BOX, annotation, -1))
    wrong = np.flatnonzero(kind == WRONG_CLASS)
    category = evaluation.detections.category[rows[wrong]]
    both = LabelEdits.joined(
        [from_detections, LabelEdits.relabeling(evaluation.ground_truth, annotation[wrong], category)]
    )
    place = np.arange(len(rows))
    place[wrong] = len(rows) + np.arange(len(wrong))
    return both.take(place)


def _first_rows(category: NDArray[np.int32], limit: int | None, *, each_class: bool) -> NDArray[np.intp]:
    """Return the positions of the first rows, or of the first of each class, class by class."""
    if not each_class:
        return np.arange(len(category))[:limit]
    by_class = stable_order(category, int(category.max(initial=0)) + 1)
    kept = rank_in_runs(category[by_class]) < (len(category) if limit is None else limit)
    return by_class[kept]


def _any(pairs: CrossPairs, chosen: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Return whether a detection has a pair among the chosen ones, [D]."""
    flags = np.zeros(count, dtype=bool)
    flags[pairs.detection[chosen]] = True
    return flags


def _most_overlapping(
    pairs: CrossPairs, chosen: NDArray[np.bool_], count: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the largest overlap of each detection in the chosen pairs, [D], and its ground truth or -1."""
    order = np.flatnonzero(chosen)
    order = order[np.argsort(pairs.iou[order], kind="stable")]
    overlap, row = np.zeros(count), np.full(count, -1, dtype=np.intp)
    # The last write, which has the largest overlap, remains.
    overlap[pairs.detection[order]] = pairs.iou[order]
    row[pairs.detection[order]] = pairs.truth[order]
    return overlap, row


def _precision_reached(
    evaluation: Evaluation, right: NDArray[np.bool_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the best precision of the class at any threshold up to each detection's score, [D]."""
    # Count explained detections as true and the others as false, class by class, at each distinct score.
    detections, K = evaluation.detections, len(evaluation.detections.categories)
    order = rows[np.lexsort((-detections.scores[rows], detections.category[rows]))]
    category, score = detections.category[order], detections.scores[order]
    unknown = np.full(len(order), np.nan)
    counts = ScoreCounts.of(
        CountedDetections(
            category, score, right[order], unknown, np.zeros(K, dtype=np.int64), detections.image[order]
        )
    )
    # The best precision up to a score is a running maximum from the lowest score upwards, [scores of the
    # class].
    best = counts.precision
    for part in map(counts.part, range(K)):
        best[part] = np.maximum.accumulate(best[part][::-1])[::-1]
    # Copy it to the detections of each score.
    # One for each score of a class, as in the counts.
    starts = tie_starts(category, score)
    reached = np.zeros(len(detections))
    reached[order] = np.repeat(best[: len(starts)], np.diff(starts, append=len(order)))
    return reached


def _without_repeats(
    evaluation: Evaluation, rows: NDArray[np.intp], iou_threshold: float
) -> NDArray[np.intp]:
    """Drop a suspect if a more suspicious one of its image and class overlaps it."""
    detections = evaluation.detections
    # Go through the groups of one image and class; boxes are compared only within groups.
    group = detections.image[rows].astype(np.int64) * len(detections.categories) + detections.category[rows]
    keep = np.ones(len(rows), dtype=bool)
    order = np.argsort(group, kind="stable")
    for together in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(together) > 1:
            boxes = without_inverted(detections.boxes[rows[together]])
            # Within a group, each kept suspect removes later ones that it overlaps, as in suppression.
            repeats = np.triu(box_iou(boxes, boxes) >= iou_threshold, k=1)
            for i in range(len(together)):
                if keep[together[i]]:
                    keep[together[repeats[i]]] = False
    return rows[keep]
