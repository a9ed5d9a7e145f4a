"""Compute the cost of single labels: the exact change of a metric if a label is removed, changed or added.

Goal
----
Reviewers should see the labels with the highest cost first. Evaluating the data set once per label would take
too long.

Conventions
-----------
- An edit (:mod:`boxscore.extensions.labels.label_edits`) changes one image.
- The matches of an image depend only on the image. So every edited image is matched once, as an additional
  copy. The data set after one edit has the same matches, with weight 0 for the image and 1 for its copy.
- Copies are prepared like the tables of files: rows that the protocol drops because of an edited label are
  dropped.
- An edit changes only the curves of the classes of its two labels, and of dropped rows. The other curves are
  reused, and the mean covers all of them. The result equals an evaluation of the edited labels exactly.
- A metric that is not a mean over classes is recomputed from the matches for each edit.
- ``cost`` is the metric after the edit minus the metric before. With another detector, the metric is the
  difference, first minus other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, read_only, unchangeable
from boxscore._utils.ordering import ragged_ranges, stable_order
from boxscore._utils.records import record
from boxscore.data.alignment import stacked
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.extensions.federated.image_labels import ImageLabels
from boxscore.extensions.labels.label_edits import LabelEdits, columns_compared, with_instances
from boxscore.extensions.weights.under_weights import (
    ClassValues,
    class_values,
    held,
    total_with,
    weighted_metrics,
)
from boxscore.matching.ignoring import prepared
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches, merge
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.blocks import MOST_VALUES
from boxscore.scoring.summary import harmonic_mean

if TYPE_CHECKING:
    import pandas as pd

Table = TypeVar("Table", bound=BoxTable)

TOGETHER = 1 << 19
"""Detections of copies that are matched in one batch."""

_PLACE = "place among the copies"
"""A column that identifies rows after preparation."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LabelCosts(DiagnosticResult):
    """The effect of label edits on a metric.

    Attributes
    ----------
    metric : str
        Key of the metric in the summary.
    before : float
        The metric before the edits; with another detector the difference, first minus other.
    after : ndarray of float64, [N]
        The metric after each edit.
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
        """Return the change of the metric by each edit, [N]."""
        return read_only(self.after - self.before)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per edit: ``cost, after, image_id, annotation_id, class, new_class``."""
        import pandas as pd

        truth, edits = self.ground_truth, self.edits
        # Position -1 selects the None at the end.
        labels = np.array([*truth.categories.labels, None], dtype=object)
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
    """Compute a metric after each of some edits of the labels, without evaluating again.

    Parameters
    ----------
    evaluation : Evaluation
    edits : LabelEdits
        Edits, applied one at a time; of another table, by annotation id.
    metric : str, optional
        A summary metric (default: the first).
    against : Evaluation, optional
        An evaluation of another detector on the same ground truth: the metric is then the difference, first
        minus other.

    Returns
    -------
    LabelCosts
        Equal to an evaluation of the edited labels, to the last bit.

    Raises
    ------
    InputError
        When the metric is unknown, the protocol does not allow it (:func:`refusal`), or an edit is of a label
        that is not evaluated.
    """
    # Reject protocols whose metrics cannot be updated label by label.
    evaluation._require_overlaps("the cost of labels")
    row = row_named(evaluation, metric)
    reason = refusal(evaluation, columns=tuple(edits.labels.columns))
    if reason:
        raise InputError("the protocol", reason, got=evaluation.protocol.name)
    if against is not None and not (
        evaluation._has_same_truth(against) and against.protocol == evaluation.protocol
    ):
        raise InputError(
            "against", "be an evaluation of the same ground truth under the same protocol", got="another"
        )
    # Edits of another table refer to other rows.
    edits = edits.on(evaluation.ground_truth)
    # For two detectors, subtract their costs.
    before = evaluation[row.key]
    after = _after(evaluation, edits, row)
    if against is not None:
        before -= against[row.key]
        after = after - _after(against, edits.on(against.ground_truth), row)
    return unchangeable(LabelCosts(row.key, before, after, edits, evaluation.ground_truth))


def row_named(evaluation: Evaluation, metric: str | None) -> SummaryRow:
    """Return the summary row with a name, or the first."""
    rows = {row.key: row for row in evaluation.protocol.rows}
    name = next(iter(rows)) if metric is None else metric_named(metric, list(rows), option="metric")
    return rows[name]


def refusal(evaluation: Evaluation, *, columns: Sequence[str] = ()) -> str:
    """Name the rule that prevents costs of labels with these columns; empty if they can be computed."""
    protocol = evaluation.protocol
    points = len(protocol.matching.iou_thresholds) * len(protocol.ap.recall_points)
    if not protocol.scope.is_matched_alone:
        return "match each image separately"
    if protocol.boxes.longer_sides:
        return "not lengthen box sides (boxes.longer_sides)"
    if protocol.group.weight not in (0, 1):
        return "weight groups by 0 or 1"
    if protocol.ignore.column_ranges and not {*evaluation.ground_truth.columns} <= {*columns}:
        return "not have ranges over columns, because added labels lack these columns"
    if points * len(evaluation.labels) > MOST_VALUES:
        return f"have at most {MOST_VALUES // points:,} classes"
    return ""


# ---------------------------------------------------------------- copies of images


def _after(evaluation: Evaluation, edits: LabelEdits, row: SummaryRow) -> FloatArray:
    """Compute the metric after each edit, [N]."""
    if not len(edits):
        return np.empty(0)
    if row.harmonic_of:
        return harmonic_mean(row, evaluation.protocol, lambda part: _after(evaluation, edits, part))
    truth = evaluation.ground_truth
    image = edits.image(truth)
    sizes = np.bincount(evaluation.detections.image, minlength=len(truth.images))[image]
    chunk = np.cumsum(sizes) // TOGETHER
    parts = np.split(np.arange(len(edits)), np.flatnonzero(np.diff(chunk)) + 1)
    return np.concatenate([_after_some(evaluation, edits.take(part), row) for part in parts])


def _after_some(evaluation: Evaluation, edits: LabelEdits, row: SummaryRow) -> FloatArray:
    # Match the edited copies of images once, in batches of many edits.
    copies = _Copies.of(evaluation, edits)
    matches, protocol = copies.matches, evaluation.protocol
    pooled = row.selection if protocol.ap.pool == "classes" else None
    curves = evaluation.curves_of(*protocol.position_of(row), pooled)
    # A metric that is not a mean over classes needs every class for every edit: weights select original or
    # copy.
    if not held(row, protocol, curves).is_mean_of_classes:
        every, images = copies.images_for(np.arange(len(edits)), matches)
        return weighted_metrics(every, protocol, [row], images).values[:, 0, -1]
    if pooled is not None:
        matches = matches.pooled(pooled)
    # Otherwise recompute only the classes that an edit touches; the others keep their values.
    touched = copies.classes
    # Curves of all classes together have a single class.
    if len(curves.positive) == 1:
        touched = np.logical_or.reduce(touched, axis=1, keepdims=True)
    # Go class by class, over the edits that touch it, with the matches of that class only.
    replaced: list[dict[int, ClassValues]] = [{} for _ in range(len(edits))]
    for k in np.flatnonzero(touched.any(axis=0)).tolist():
        some = np.flatnonzero(touched[:, k])
        of_class, images = copies.images_for(some, matches.take_class(k))
        for n, values in zip(some.tolist(), class_values(of_class, protocol, row, images), strict=True):
            replaced[n][k] = values
    return np.array([total_with(row, protocol, curves, of_edit) for of_edit in replaced])


@record(frozen=True, eq=False)
class _Copies:
    """Matches of all images, each followed by its edited copies."""

    matches: Matches
    # [N, K] classes that the edit can change.
    classes: NDArray[np.bool_]
    # [I] positions of the originals.
    original: NDArray[np.intp]
    # [N] image that each edit changes.
    edited: NDArray[np.intp]
    copy: NDArray[np.intp]  # [N]

    @classmethod
    def of(cls, evaluation: Evaluation, edits: LabelEdits) -> _Copies:
        """Match the edited images."""
        truth, count = evaluation.ground_truth, len(evaluation.ground_truth.images)
        image = edits.image(truth)
        # Place the copies of an image right after it, in the order of the edits, so that ties of scores are
        # ordered as if the copy were the image.
        order = stable_order(image, count)
        edits_of_image = np.bincount(image, minlength=count)
        original = np.arange(count) + np.cumsum(edits_of_image) - edits_of_image
        copy = np.empty(len(edits), dtype=np.intp)
        copy[order] = image[order] + 1 + np.arange(len(edits))
        images = Images.of_ids(np.arange(count + len(edits)))
        # Match only the copies, and merge them with the known matches of the originals.
        tables = _edited_tables(evaluation, edits, image)
        matches = Matcher(tables.ground_truth, tables.detections, evaluation.protocol).match()
        matches = matches.with_images(images, copy.astype(np.int32))
        matches = dataclasses.replace(matches, row=tables.row[matches.row])
        base = evaluation.matched.with_images(images, original.astype(np.int32))
        return cls(merge([base, matches]), tables.classes, original, image, copy)

    def images_for(self, some: NDArray[np.intp], matches: Matches) -> tuple[Matches, Iterator[FloatArray]]:
        """Take the copies of some edits, and yield the image weights for each."""
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


class _EditedTables(NamedTuple):
    """Tables in which each image is an edited copy, prepared like tables of files."""

    ground_truth: GroundTruth
    detections: Detections
    row: NDArray[np.int64]
    """Rows of the evaluated detections, followed by those of the copies."""
    classes: NDArray[np.bool_]
    """Whether an edit can change a class, [N, K]: the classes of its labels and of dropped rows."""


def _edited_tables(evaluation: Evaluation, edits: LabelEdits, image: NDArray[np.intp]) -> _EditedTables:
    """Copy the image of each edit, and edit the copy."""
    # Copy the image of each edit with its detections.
    truth, detections, N = evaluation.ground_truth, evaluation._matcher.detections, len(edits)
    count, names = len(truth.images), columns_compared(evaluation)
    columns = {name: values[image] for name, values in truth.images.columns.items()}
    images = Images(np.arange(N), truth.images.file_names[image], truth.images.sizes[image], columns)
    rows, copy = _rows_of(detections.image, image, count)
    found = with_instances(detections.take(rows), [*names, "scores"])

    # Edit the labels by row number: the label of an edit replaces the removed one, is added, or leaves a gap.
    # Labels of edits are numbered after those of the ground truth.
    source, of_copy = _rows_of(truth.image, image, count)
    added = np.flatnonzero(edits.added >= 0)
    fresh = added[edits.removed[added] < 0]
    wanted = np.where(edits.added < 0, -1, len(truth) + edits.added)
    source = np.where(source == edits.removed[of_copy], wanted[of_copy], source)
    there = source >= 0
    source, of_copy = np.append(source[there], wanted[fresh]), np.append(of_copy[there], fresh)
    # Sort by copy, so that the labels of a copy are in file order with new ones last.
    order = stable_order(of_copy, N)
    both = stacked([with_instances(table, names) for table in (truth, edits.labels)])
    # Prepare the tables like those of files, because a rule may drop rows.
    labels = both.take(source[order]).replaced(image_labels=_copied_labels(truth.image_labels, image, count))

    labels = _of_images(labels, of_copy[order].astype(np.int32), images)
    found = _of_images(found, copy, images)
    given = labels, found
    labels, found = prepared(labels, found, evaluation.protocol, share=True)
    # Mark the classes that each edit can change: of dropped rows, and of removed and added labels.
    classes = np.zeros((N, len(truth.categories)), dtype=bool)
    for before, after in zip(given, (labels, found), strict=True):
        dropped = np.ones(len(before), dtype=bool)
        dropped[after.columns[_PLACE]] = False
        classes[before.image[dropped], before.category[dropped]] = True
    for table, of in ((truth, edits.removed), (edits.labels, edits.added)):
        some = np.flatnonzero(of >= 0)
        classes[some, table.category[of[some]]] = True
    return _EditedTables(labels, found, rows[found.columns[_PLACE]], classes)


def _of_images(table: Table, image: NDArray[np.int32], images: Images) -> Table:
    """Return the table for other images, with the row number as a column."""
    columns = {**table.columns, _PLACE: np.arange(len(table))}
    return table.replaced(image=image, images=images, columns=columns)


def _rows_of(
    of: NDArray[np.int32], image: NDArray[np.intp], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the rows ``of`` some images, repeated like these and in file order; and each row's image."""
    by_image = stable_order(of, count)
    counts = np.bincount(of, minlength=count)
    starts = np.cumsum(counts) - counts
    rows = by_image[ragged_ranges(starts[image], counts[image])]
    return rows.astype(np.int64), np.repeat(np.arange(len(image), dtype=np.int32), counts[image])


def _copied_labels(labels: ImageLabels | None, image: NDArray[np.intp], count: int) -> ImageLabels | None:
    """Return image-level labels in which each copy has those of its image."""
    if labels is None:
        return None
    rows, copy = _rows_of(labels.image, image, count)
    return ImageLabels(copy, labels.category[rows], labels.kind[rows])
