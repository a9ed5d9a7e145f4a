"""What one label costs: the exact change of a metric if it is removed, relabelled, redrawn or added.

Goal
----
Labels are worth looking at in the order of what they cost, and nobody evaluates ten thousand times to know.

Conventions
-----------
- An edit changes one image: a label of it is taken away, another one put in its place, or one added behind
  its labels. Images, classes and labels of whole images stay as they are.
- The matches of an image follow from the image. So every edited image is matched once, beside the others, as
  a copy; the data set with one edit is the same matches with weight 0 for the image and 1 for its copy.
- Only the curves of the classes of the two labels change. Those of the others are taken as they are, and the
  mean is taken over all of them: the bits of an evaluation of the edited labels.
- ``cost`` is the metric after the edit minus the metric before. Beside another detector it is that of the
  difference, first minus other.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import ragged_ranges, stable_order
from boxscore._utils.read_only import read_only, unchangeable
from boxscore._utils.records import record
from boxscore.data.alignment import stacked
from boxscore.data.image_labels import ImageLabels
from boxscore.data.lazy import LazyColumns
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.diagnostics._result import DiagnosticResult
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches, merge
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import MOST_VALUES
from boxscore.scoring.summary import ClassValues, class_values, total_with

if TYPE_CHECKING:
    import pandas as pd

TOGETHER = 1 << 19
"""Detections of copies that are matched together."""


@record(frozen=True, eq=False)
class LabelEdits:
    """Edits of a ground truth, each of which is made alone.

    Attributes
    ----------
    removed : ndarray of intp, [N]
        Row of the label that is taken away; -1 for none.
    added : ndarray of intp, [N]
        Row, in ``labels``, of the one that is put in; -1 for none.
    labels : GroundTruth
        With the images and classes of the ground truth.
    """

    removed: NDArray[np.intp]
    added: NDArray[np.intp]
    labels: GroundTruth

    def __len__(self) -> int:
        return len(self.removed)

    @classmethod
    def removing(cls, truth: GroundTruth, rows: IntArray) -> LabelEdits:
        """Take labels away.

        Parameters
        ----------
        truth : GroundTruth
        rows : ndarray of int, [N]

        Returns
        -------
        LabelEdits
        """
        return cls(np.asarray(rows, dtype=np.intp), np.full(len(rows), -1), truth)

    @classmethod
    def relabelling(cls, truth: GroundTruth, rows: IntArray, category: NDArray[np.integer]) -> LabelEdits:
        """Give labels other classes.

        Parameters
        ----------
        truth : GroundTruth
        rows : ndarray of int, [N]
        category : ndarray of int, [N]
            Rows of the vocabulary.

        Returns
        -------
        LabelEdits
        """
        other = truth.take(rows).replaced(category=np.asarray(category, dtype=np.int32))
        return cls(np.asarray(rows, dtype=np.intp), np.arange(len(rows)), other)

    @classmethod
    def from_detections(
        cls, evaluation: Evaluation, detections: IntArray, removed: IntArray | None = None
    ) -> LabelEdits:
        """Make detections labels, new ones or in the place of others.

        Parameters
        ----------
        evaluation : Evaluation
        detections : ndarray of int, [N]
            Rows.
        removed : ndarray of int, [N], optional
            Rows of the labels that they replace; -1 for none.

        Returns
        -------
        LabelEdits
        """
        rows = np.asarray(detections, dtype=np.intp)
        taken = np.full(len(rows), -1) if removed is None else np.asarray(removed)
        return cls(taken.astype(np.intp), np.arange(len(rows)), labels_of(evaluation, rows))

    @classmethod
    def joined(cls, parts: Sequence[LabelEdits]) -> LabelEdits:
        """Put edits one after the other.

        Parameters
        ----------
        parts : sequence of LabelEdits
            Of one ground truth.

        Returns
        -------
        LabelEdits
        """
        before = np.cumsum([0, *(len(part.labels) for part in parts)]).tolist()
        added = [
            np.where(part.added < 0, -1, part.added + start)
            for part, start in zip(parts, before, strict=False)
        ]
        names = [
            name for name in _names_of(parts[0].labels) if all(_has(part.labels, name) for part in parts)
        ]
        return cls(
            np.concatenate([part.removed for part in parts]),
            np.concatenate(added),
            stacked([_with_instances(part.labels, names) for part in parts]),
        )

    def image(self, truth: GroundTruth) -> NDArray[np.intp]:
        """Return the row of the image that each edit changes, [N].

        Parameters
        ----------
        truth : GroundTruth

        Returns
        -------
        ndarray of intp
        """
        of_truth, of_labels = (np.append(table.image, -1) for table in (truth, self.labels))
        return np.where(self.removed >= 0, of_truth[self.removed], of_labels[self.added]).astype(np.intp)

    def applied_to(self, truth: GroundTruth) -> GroundTruth:
        """Return the ground truth with all of these edits, each of another label.

        Parameters
        ----------
        truth : GroundTruth
            Of which ``removed`` are rows.

        Returns
        -------
        GroundTruth
            Labels that are put in the place of others stand there, with their ids, and new ones at the end.
        """
        names = [name for name in _names_of(truth) if _has(self.labels, name)]
        rows, taken = np.arange(len(truth)), self.removed >= 0
        rows[self.removed[taken]] = np.where(self.added < 0, -1, len(truth) + self.added)[taken]
        rows = np.append(rows[rows >= 0], len(truth) + self.added[~taken])
        table = stacked([_with_instances(one, names) for one in (truth, self.labels)])
        ids, changed = table.ids.copy(), np.flatnonzero(taken & (self.added >= 0))
        ids[len(truth) + self.added[changed]] = truth.ids[self.removed[changed]]
        table = table.replaced(ids=ids).take(rows)
        new = np.arange(len(rows) - np.count_nonzero(~taken), len(rows))
        whole: GroundTruth = table.replaced(ids=_with_new_ids(table.ids, new))
        return whole

    def take(self, rows: slice | NDArray[Any]) -> LabelEdits:
        """Take some edits.

        Parameters
        ----------
        rows : slice or ndarray

        Returns
        -------
        LabelEdits
        """
        return LabelEdits(self.removed[rows], self.added[rows], self.labels)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelCosts(DiagnosticResult):
    """What edits of labels change.

    Attributes
    ----------
    metric : str
        Its key in the summary.
    before : float
        The metric as it is; beside another detector the difference, first minus other.
    after : ndarray of float64, [N]
        After each edit.
    edits : LabelEdits
    ground_truth : GroundTruth
    """

    metric: str
    before: float
    after: FloatArray
    edits: LabelEdits
    ground_truth: GroundTruth

    @property
    def cost(self) -> FloatArray:
        """What is gained by each edit, [N]."""
        return read_only(self.after - self.before)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per edit: ``cost, after, image_id, annotation_id, class, new_class``."""
        import pandas as pd

        truth, edits = self.ground_truth, self.edits
        labels = np.array([*truth.categories.labels, None], dtype=object)  # -1 reads the None
        old, new = (
            labels[np.append(table.category, -1)[rows]]
            for table, rows in ((truth, edits.removed), (edits.labels, edits.added))
        )
        ids = np.array([*truth.ids.tolist(), None], dtype=object)[edits.removed]
        columns = {"annotation_id": ids, "class": old, "new_class": new}
        image = truth.images.ids[edits.image(truth)]
        return pd.DataFrame({"cost": self.cost, "after": self.after, "image_id": image, **columns})


def label_costs(
    evaluation: Evaluation,
    edits: LabelEdits,
    *,
    metric: str | None = None,
    against: Evaluation | None = None,
) -> LabelCosts:
    """Compute what a metric would be after each of some edits of the labels, without evaluating again.

    Parameters
    ----------
    evaluation : Evaluation
    edits : LabelEdits
        Each is made alone.
    metric : str, optional
        A summary metric; the first when not given.
    against : Evaluation, optional
        Of another detector on the same ground truth: the metric is then the difference, first minus other.

    Returns
    -------
    LabelCosts
        With the bits of evaluating the edited labels.

    Raises
    ------
    InputError
        When the metric is unknown, or the protocol's rules do not allow it (:func:`refusal`).
    """
    evaluation.require_overlaps("the cost of labels")
    row = row_named(evaluation, metric)
    reason = refusal(evaluation, columns=tuple(edits.labels.columns))
    if reason:
        raise InputError("the protocol", reason, got=evaluation.protocol.name)
    if against is not None and not (
        evaluation.has_same_truth(against) and against.protocol == evaluation.protocol
    ):
        raise InputError(
            "against", "be an evaluation of the same ground truth by the same protocol", got="another"
        )
    before = evaluation[row.key]
    after = _after(evaluation, edits, row)
    if against is not None:
        before -= against[row.key]
        after = after - _after(against, edits, row)
    return unchangeable(LabelCosts(row.key, before, after, edits, evaluation.ground_truth))


def row_named(evaluation: Evaluation, metric: str | None) -> SummaryRow:
    """Return the summary row with a name, or the first."""
    rows = {row.key: row for row in evaluation.protocol.rows}
    name = next(iter(rows)) if metric is None else metric_named(metric, list(rows), option="metric")
    return rows[name]


def refusal(evaluation: Evaluation, *, columns: Sequence[str] = ()) -> str:
    """Say which rule stands against costs of labels with these columns; empty where they can be computed."""
    protocol = evaluation.protocol
    points = len(protocol.matching.iou_thresholds) * len(protocol.ap.recall_points)
    if not protocol.scope.is_matched_alone:
        return "match each image by itself to cost labels"
    if protocol.matching.scores == "none":
        return "rank detections to cost labels"
    if protocol.ignore.image_ranges:
        return "have no ranges of images to cost labels"
    if protocol.keypoints.parts or protocol.keypoints.scale == "box":
        return "compare one column of keypoints, by the annotated area, to cost labels"
    if protocol.group.weight not in (0, 1):
        return "weigh groups by 0 or 1 to cost labels"
    if protocol.ignore.column_ranges and not {*evaluation.ground_truth.columns} <= {*columns}:
        return "have no ranges of columns to cost labels that are added: nobody knows their values"
    if points * len(evaluation.labels) > MOST_VALUES:
        return f"have at most {MOST_VALUES // points:,} classes to cost labels"
    return ""


def labels_of(evaluation: Evaluation, rows: NDArray[np.intp]) -> GroundTruth:
    """Make labels of detections: their places and classes, and all keypoints labelled; no flags."""
    truth, matcher = evaluation.ground_truth, evaluation.matcher
    detections, names = matcher.detections.take(rows), _needed(evaluation)
    given = {name: detections.instances[name] for name in names if name != "keypoint_count"}
    given = {name: column for name, column in given.items() if column is not None}
    area = detections.sizes.prod(axis=1)
    for column in truth.schema.instances:
        if column.area is not None and column.name in given:
            area = column.area(given[column.name])
    if matcher.similarity.measures_masks(matcher.detections) and "masks" in given:
        area = given["masks"].area
    if "keypoints" in given:
        joints = np.array(given["keypoints"])
        joints[..., 2] = 2
        given |= {"keypoints": joints, "keypoint_count": np.full(len(rows), joints.shape[1])}
    no = np.zeros(len(rows), dtype=bool)
    return GroundTruth(
        ids=np.full(len(rows), -1),
        image=detections.image,
        category=detections.category,
        boxes=detections.boxes,
        sizes=detections.sizes,
        area=area,
        **dict.fromkeys(("crowd", "difficult", "ignore", "group"), no),
        **given,
        images=truth.images,
        categories=truth.categories,
        units=truth.units,
        source=detections.source,
    )


# ---------------------------------------------------------------- copies of images


def _after(evaluation: Evaluation, edits: LabelEdits, row: SummaryRow) -> FloatArray:
    """Compute the metric after each edit, [N]."""
    if not len(edits):
        return np.empty(0)
    truth = evaluation.ground_truth
    image = edits.image(truth)
    sizes = np.bincount(evaluation.detections.image, minlength=len(truth.images))[image]
    chunk = np.cumsum(sizes) // TOGETHER
    parts = np.split(np.arange(len(edits)), np.flatnonzero(np.diff(chunk)) + 1)
    return np.concatenate([_after_some(evaluation, edits.take(part), row) for part in parts])


def _after_some(evaluation: Evaluation, edits: LabelEdits, row: SummaryRow) -> FloatArray:
    matches, weights = _with_copies(evaluation, edits)
    protocol = evaluation.protocol
    pooled = row.classes if protocol.ap.pool == "classes" else None
    curves = evaluation.curves_of(*protocol.position_of(row), pooled)
    if pooled is not None:
        matches = matches.pooled(pooled)
    touched = _classes_of(evaluation.ground_truth, edits, alone=len(curves.positive) == 1)
    replaced: list[dict[int, ClassValues]] = [{} for _ in range(len(edits))]
    for k in np.unique(touched[touched >= 0]).tolist():
        some = np.flatnonzero((touched == k).any(axis=1))
        of_class, images = weights.images_for(some, matches.take_class(k))
        for n, values in zip(some.tolist(), class_values(of_class, protocol, row, images), strict=True):
            replaced[n][k] = values
    return np.array([total_with(row, protocol, curves, of_edit) for of_edit in replaced])


@record(frozen=True, eq=False)
class _Copies:
    """Where images and the copies that edits made of them stand among the images of all of them."""

    original: NDArray[np.intp]  # [I]
    edited: NDArray[np.intp]  # [N] the image that each edit changes
    copy: NDArray[np.intp]  # [N]

    def images_for(self, some: NDArray[np.intp], matches: Matches) -> tuple[Matches, Iterator[FloatArray]]:
        """Take the copies of some edits; and yield the weights of images under each."""
        size = len(self.original) + len(self.copy)
        chosen = np.zeros(size, dtype=bool)
        chosen[self.original] = chosen[self.copy[some]] = True
        number = np.cumsum(chosen) - 1
        plain = np.zeros(np.count_nonzero(chosen))
        plain[number[self.original]] = 1

        def weights() -> Iterator[FloatArray]:
            for n in some.tolist():
                weight = plain.copy()
                weight[number[self.original[self.edited[n]]]] = 0
                weight[number[self.copy[n]]] = 1
                yield weight

        return matches.take_images(chosen), weights()


def _with_copies(evaluation: Evaluation, edits: LabelEdits) -> tuple[Matches, _Copies]:
    """Match the edited images, each as a copy that stands right behind the image."""
    truth, count = evaluation.ground_truth, len(evaluation.ground_truth.images)
    image = edits.image(truth)
    order = stable_order(image, count)
    original = (
        np.arange(count)
        + np.cumsum(np.bincount(image, minlength=count))
        - np.bincount(image, minlength=count)
    )
    copy = np.empty(len(edits), dtype=np.intp)
    copy[order] = image[order] + 1 + np.arange(len(edits))
    images = Images.of_ids(np.arange(count + len(edits)))
    copies, rows = _matched_copies(evaluation, edits, image)
    copies = copies.with_images(images, copy.astype(np.int32))
    copies = dataclasses.replace(copies, row=rows[copies.row])
    base = evaluation.matched.with_images(images, original.astype(np.int32))
    return merge([base, copies]), _Copies(original, image, copy)


def _matched_copies(
    evaluation: Evaluation, edits: LabelEdits, image: NDArray[np.intp]
) -> tuple[Matches, NDArray[np.int64]]:
    """Match a copy of its image for each edit; the second are the rows behind those of its detections."""
    truth, detections, N = evaluation.ground_truth, evaluation.matcher.detections, len(edits)
    names = _needed(evaluation)
    copies = Images(np.arange(N), truth.images.file_names[image], truth.images.sizes[image], {})
    place: dict[str, Any] = {"images": copies}
    rows, copy = _rows_of(detections, image)
    found = _with_instances(detections.take(rows), [*names, "scores"]).replaced(image=copy, **place)

    kept, of_copy = _rows_of(truth, image)
    added = np.flatnonzero(edits.added >= 0)
    fresh = added[edits.removed[added] < 0]
    wanted = np.where(edits.added < 0, -1, len(truth) + edits.added)
    source = np.where(kept == edits.removed[of_copy], wanted[of_copy], kept)
    there = source >= 0
    source, of_copy = np.append(source[there], wanted[fresh]), np.append(of_copy[there], fresh)
    order = stable_order(of_copy, N)
    tables = [_with_instances(table, names) for table in (truth, edits.labels)]
    labels = _copied_labels(truth.image_labels, image)
    table = stacked(tables).take(source[order])
    table = table.replaced(image=of_copy[order].astype(np.int32), image_labels=labels, **place)
    return Matcher(table, found, evaluation.protocol).match(), rows


def _rows_of(table: BoxTable, image: NDArray[np.intp]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows of some images, each as often as it comes, in file order; and which of them each row is of."""
    by_image = stable_order(table.image, len(table.images))
    counts = np.bincount(table.image, minlength=len(table.images))
    starts = np.cumsum(counts) - counts
    rows = by_image[ragged_ranges(starts[image], counts[image])]
    return rows.astype(np.int64), np.repeat(np.arange(len(image), dtype=np.int32), counts[image])


def _copied_labels(labels: ImageLabels | None, image: NDArray[np.intp]) -> ImageLabels | None:
    """Labels of whole images, of each copy those of its image."""
    if labels is None:
        return None
    rows = stable_order(labels.image, int(max(labels.image.max(initial=0), image.max(initial=0))) + 1)
    counts = np.bincount(labels.image, minlength=int(image.max(initial=0)) + 1)
    starts = np.cumsum(counts) - counts
    chosen = rows[ragged_ranges(starts[image], counts[image])]
    copy = np.repeat(np.arange(len(image), dtype=np.int32), counts[image])
    return ImageLabels(copy, labels.category[chosen], labels.kind[chosen])


def _classes_of(truth: GroundTruth, edits: LabelEdits, *, alone: bool) -> NDArray[np.intp]:
    """Rows of the classes whose curves each edit changes, [N, 2]; -1 for none."""
    pairs = [
        np.append(table.category, -1)[rows].astype(np.intp)
        for table, rows in ((truth, edits.removed), (edits.labels, edits.added))
    ]
    touched = np.stack(pairs, axis=1)
    return np.where(touched >= 0, 0, -1) if alone else touched


# ---------------------------------------------------------------- tables


def _needed(evaluation: Evaluation) -> list[str]:
    """Instance columns that the protocol reads of labels."""
    names = evaluation.matcher.similarity.needed_columns
    names += ["keypoint_count"] * ("keypoints" in names)
    return [name for name in names if _has(evaluation.ground_truth, name)]


def _names_of(table: BoxTable) -> tuple[str, ...]:
    return table.instances.names


def _has(table: BoxTable, name: str) -> bool:
    return table.instances[name] is not None


def _with_instances(table: Any, names: Sequence[str]) -> Any:
    """Return the table with some of its instance columns, read, and no others."""
    known = [name for name in names if name in table.instances]
    given = {name: table.instances[name] for name in known}
    return table.replaced(boxes=table.boxes, instances=LazyColumns(table.instances.names, given))


def _with_new_ids(ids: NDArray[Any], rows: IntArray) -> NDArray[Any]:
    """Return ids with those of some rows replaced by ids that no other row has."""
    changed = ids.copy()
    if ids.dtype != object:
        changed[rows] = max(int(ids.max(initial=0)), 0) + 1 + np.arange(len(rows))
        return changed
    known, numbers = set(ids.tolist()), itertools.count(1)
    for row in rows.tolist():
        changed[row] = next(name for n in numbers if (name := f"new-{n}") not in known)
    return changed
