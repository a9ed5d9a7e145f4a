"""Label suspects: confident detections that the ground truth contradicts.

Goal
----
Data sets have errors, and a good detector finds some of them: objects it is confident of that nobody
annotated, or that are annotated as something else. The list is for people to review, not a verdict.

Conventions
-----------
- ``wrong class``: an annotation of another class overlaps the detection by ``iou_threshold`` or more, and
  no annotation of its class does.
- ``missing annotation``: no annotation of any class overlaps it by ``background_iou`` or more.
- ``poor box``: an annotation of its class overlaps it by ``background_iou`` to
  ``iou_threshold``, and no other detection matches it.
- Ignored ground truths (crowds, difficult objects) explain whatever they overlap: such detections are not
  listed. Nor are those of a class that is not annotated exhaustively in its image, where the protocol ignores
  what matches nothing there. Of detections of one class that overlap each other by ``iou_threshold`` or more,
  only the most suspicious is listed.
- ``suspicion`` is the best precision of the class at any confidence threshold up to the detection's score:
  the disagreement of a detector that is nearly always right counts most. Ties come by descending score.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.boxes import without_inverted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.diagnostics._reading import check_overlaps, warn_of_subsets
from boxscore.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.evaluation import Evaluation
from boxscore.matching.matcher import CrossPairs
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.score_counts import CountedDetections, ScoreCounts
from boxscore.similarity.box import box_iou

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("wrong class", "missing annotation", "poor box")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelSuspects(DiagnosticResult):
    """Confident detections that disagree with the ground truth, most suspicious first.

    Attributes
    ----------
    suspicion : ndarray of float64, [N]
        See the module's conventions.
    kind : ndarray of intp, [N]
        Positions in :data:`KINDS`.
    detection : ndarray of intp, [N]
        Rows of the detections.
    truth : ndarray of intp, [N]
        Row of the ground truth that overlaps most; -1 for none.
    iou : ndarray of float64, [N]
        Overlap with it; NaN for none.
    ground_truth, detections : GroundTruth, Detections
        The tables as evaluated.
    """

    suspicion: NDArray[np.float64]
    kind: NDArray[np.intp]
    detection: NDArray[np.intp]
    truth: NDArray[np.intp]
    iou: NDArray[np.float64]
    ground_truth: GroundTruth
    detections: Detections

    def to_frame(self) -> pd.DataFrame:
        """Return one row per suspect.

        ``suspicion, kind, image_id, file_name, class, score, x1, y1, x2, y2, annotation_id, true_class,
        iou``: the last three of the annotation that overlaps most, None and NaN when there is none.
        """
        import pandas as pd

        truth, detections, rows = self.ground_truth, self.detections, self.detection
        labels = np.array(truth.categories.labels, dtype=object)
        has = self.truth >= 0
        ids, classes = (np.full(len(rows), None, dtype=object) for _ in range(2))
        ids[has] = truth.ids[self.truth[has]]
        classes[has] = labels[truth.category[self.truth[has]]]
        return pd.DataFrame(
            {
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
) -> LabelSuspects:
    """List confident detections that disagree with the ground truth, most suspicious first.

    Parameters
    ----------
    evaluation : Evaluation
    score_threshold : float, default 0.5
        Leave out detections that score below this.
    iou_threshold : float, default 0.5
        Minimum IoU of a match. From it on a detection and an annotation are of the same object.
    background_iou : float, default 0.1
        IoU below which a detection has no object.
    limit : int or None, default 100
        Rows; None for all.

    Returns
    -------
    LabelSuspects

    Raises
    ------
    InputError
        When an option is out of range.
    """
    checks.number_between(score_threshold, -np.inf, np.inf, name="score_threshold")
    check_overlaps(iou_threshold, background_iou)
    evaluation.require_overlaps("label suspects")
    warn_of_subsets(evaluation, "label suspects are")
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = evaluation.matcher.ignoring.ignored
    pairs = evaluation.matcher.across_classes(
        iou_threshold=background_iou, score_threshold=score_threshold, by_foreground=ignored
    )
    same_class = truth.category[pairs.truth] == detections.category[pairs.detection]
    close = pairs.iou >= iou_threshold
    D = len(detections)
    explained = _any(pairs, ignored[pairs.truth] | (same_class & close), D) | evaluation.matcher.inexhaustive
    seen = np.zeros(len(truth), dtype=bool)
    seen[pairs.truth[same_class & close]] = True
    other_class = _any(pairs, ~same_class & close, D)
    badly_placed = _any(pairs, same_class & ~seen[pairs.truth], D)
    near = _any(pairs, np.ones(len(same_class), dtype=bool), D)
    kind = np.select([explained, other_class, badly_placed, ~near], [-1, 0, 2, 1], -1)

    suspicion = _precision_reached(evaluation, explained, pairs.rows)
    rows = pairs.rows[kind[pairs.rows] >= 0]
    rows = rows[np.lexsort((rows, -detections.scores[rows], -suspicion[rows]))]
    rows = _without_repeats(evaluation, rows, iou_threshold)[:limit]
    overlap, annotation = _most_overlapping(pairs, D)
    return LabelSuspects(
        suspicion[rows],
        kind[rows],
        rows,
        annotation[rows],
        np.where(annotation[rows] >= 0, overlap[rows], np.nan),
        truth,
        detections,
    )


def _any(pairs: CrossPairs, chosen: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Whether a detection has a pair among the chosen, [D]."""
    flags = np.zeros(count, dtype=bool)
    flags[pairs.detection[chosen]] = True
    return flags


def _most_overlapping(pairs: CrossPairs, count: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Largest overlap of each detection with any ground truth, [D]; and that ground truth, -1 without."""
    order = np.argsort(pairs.iou, kind="stable")
    overlap, row = np.zeros(count), np.full(count, -1, dtype=np.intp)
    overlap[pairs.detection[order]] = pairs.iou[order]  # the last, largest, stays
    row[pairs.detection[order]] = pairs.truth[order]
    return overlap, row


def _precision_reached(
    evaluation: Evaluation, right: NDArray[np.bool_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Best precision of its class at any threshold up to each detection's score; [D]."""
    detections, K = evaluation.detections, len(evaluation.detections.categories)
    order = rows[np.lexsort((-detections.scores[rows], detections.category[rows]))]
    category, score = detections.category[order], detections.scores[order]
    unknown = np.full(len(order), np.nan)
    counts = ScoreCounts.of(
        CountedDetections(
            category, score, right[order], unknown, np.zeros(K, dtype=np.int64), detections.image[order]
        )
    )
    best = counts.precision
    for part in map(counts.part, range(K)):
        best[part] = np.maximum.accumulate(best[part][::-1])[::-1]
    starts = tie_starts(category, score)  # one for each score of a class, as in the counts
    reached = np.zeros(len(detections))
    reached[order] = np.repeat(best[: len(starts)], np.diff(starts, append=len(order)))
    return reached


def _without_repeats(
    evaluation: Evaluation, rows: NDArray[np.intp], iou_threshold: float
) -> NDArray[np.intp]:
    """Leave out a suspect that a more suspicious one of its image and class overlaps."""
    detections = evaluation.detections
    group = detections.image[rows].astype(np.int64) * len(detections.categories) + detections.category[rows]
    keep = np.ones(len(rows), dtype=bool)
    order = np.argsort(group, kind="stable")
    for together in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        if len(together) > 1:
            boxes = without_inverted(detections.boxes[rows[together]])
            repeats = np.triu(box_iou(boxes, boxes) >= iou_threshold, k=1)
            for i in range(len(together)):
                if keep[together[i]]:
                    keep[together[repeats[i]]] = False
    return rows[keep]
