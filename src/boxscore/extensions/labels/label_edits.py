"""Describe edits of labels, which are applied one at a time or all together.

Conventions
-----------
- An edit changes one image: it removes a label, replaces one, or appends one. Images, classes and image-level
  labels do not change.
- Edits know the table that they are of. For another table, such as that of an evaluation of some classes or
  images, labels are found by annotation id (:meth:`LabelEdits.on`).
- A label made from a detection has its geometry, its class, the columns that both tables have, and no flags.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.records import record
from boxscore.data.alignment import stacked
from boxscore.data.lazy import LazyColumns
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation


@record(frozen=True, eq=False)
class LabelEdits:
    """Edits of a ground truth, each independent of the others.

    Attributes
    ----------
    removed : ndarray of intp, [N]
        Row of the label that is removed; -1 for none.
    added : ndarray of intp, [N]
        Row, in ``labels``, of the label that is added; -1 for none.
    labels : GroundTruth
        Labels to add, with the images and classes of the ground truth.
    truth : GroundTruth
        The table that ``removed`` refers to.
    """

    removed: NDArray[np.intp]
    added: NDArray[np.intp]
    labels: GroundTruth
    truth: GroundTruth

    def __len__(self) -> int:
        return len(self.removed)

    @classmethod
    def removing(cls, truth: GroundTruth, rows: IntArray) -> LabelEdits:
        """Make edits that remove labels.

        Parameters
        ----------
        truth : GroundTruth
        rows : ndarray of int, [N]

        Returns
        -------
        LabelEdits
        """
        return cls(np.asarray(rows, dtype=np.intp), np.full(len(rows), -1), truth, truth)

    @classmethod
    def relabeling(cls, truth: GroundTruth, rows: IntArray, category: NDArray[np.integer]) -> LabelEdits:
        """Make edits that change the class of labels.

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
        return cls(np.asarray(rows, dtype=np.intp), np.arange(len(rows)), other, truth)

    @classmethod
    def from_detections(
        cls, evaluation: Evaluation, detections: IntArray, removed: IntArray | None = None
    ) -> LabelEdits:
        """Make edits that turn detections into labels, added or in place of others.

        Parameters
        ----------
        evaluation : Evaluation
        detections : ndarray of int, [N]
            Rows of the detections.
        removed : ndarray of int, [N], optional
            Rows of the labels to replace; -1 to add a label.

        Returns
        -------
        LabelEdits
        """
        rows = np.asarray(detections, dtype=np.intp)
        taken = np.full(len(rows), -1) if removed is None else np.asarray(removed)
        labels = labels_of(evaluation, rows)
        return cls(taken.astype(np.intp), np.arange(len(rows)), labels, evaluation.ground_truth)

    @classmethod
    def joined(cls, parts: Sequence[LabelEdits]) -> LabelEdits:
        """Concatenate edits.

        Parameters
        ----------
        parts : sequence of LabelEdits
            Edits of the same ground truth.

        Returns
        -------
        LabelEdits
        """
        truth = parts[0].truth
        parts = [part.on(truth) for part in parts]
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
            stacked([with_instances(part.labels, names) for part in parts]),
            truth,
        )

    def on(self, truth: GroundTruth) -> LabelEdits:
        """Return the same edits of another table that has these labels.

        Parameters
        ----------
        truth : GroundTruth

        Returns
        -------
        LabelEdits
            Labels are found by annotation id, images by id, and classes by name.

        Raises
        ------
        InputError
            When a label, image or class is not in the table, or an id belongs to another label there.
        """
        if _have_same_rows(self.truth, truth):
            return self
        # Find the labels that are removed.
        taken = np.flatnonzero(self.removed >= 0)
        removed = self.removed.copy()
        removed[taken] = _rows_by_id(self.truth, self.removed[taken], truth)
        # Keep the labels that are added, with the images and classes of the table.
        used, added = np.unique(self.added[self.added >= 0], return_inverse=True)
        labels = self.labels.take(used)
        image = _found(truth.images.rows(labels.images.ids), labels.image, labels.images.ids, "the image")
        rows = {name: row for row, name in enumerate(truth.categories.labels)}
        names = labels.categories.labels
        known = np.array([rows.get(name, -1) for name in names], dtype=np.int32)
        category = _found(known, labels.category, names, "the class")
        labels = labels.replaced(
            image=image,
            category=category,
            images=truth.images,
            categories=truth.categories,
            image_labels=None,
        )
        of_labels = self.added.copy()
        of_labels[self.added >= 0] = added
        return LabelEdits(removed, of_labels, labels, truth)

    def image(self, truth: GroundTruth) -> NDArray[np.intp]:
        """Return the row of the image that each edit changes, [N].

        Parameters
        ----------
        truth : GroundTruth

        Returns
        -------
        ndarray of intp
        """
        edits = self.on(truth)
        of_truth, of_labels = (np.append(table.image, -1) for table in (truth, edits.labels))
        return np.where(edits.removed >= 0, of_truth[edits.removed], of_labels[edits.added]).astype(np.intp)

    def applied_to(self, truth: GroundTruth) -> GroundTruth:
        """Return the ground truth with all of these edits; each must change another label.

        Parameters
        ----------
        truth : GroundTruth

        Returns
        -------
        GroundTruth
            Replacements keep the position and id of the label that they replace; new labels are at the end.
        """
        edits = self.on(truth)
        names = [name for name in _names_of(truth) if _has(edits.labels, name)]
        rows, taken = np.arange(len(truth)), edits.removed >= 0
        rows[edits.removed[taken]] = np.where(edits.added < 0, -1, len(truth) + edits.added)[taken]
        rows = np.append(rows[rows >= 0], len(truth) + edits.added[~taken])
        table = stacked([with_instances(one, names) for one in (truth, edits.labels)])
        ids, changed = table.ids.copy(), np.flatnonzero(taken & (edits.added >= 0))
        ids[len(truth) + edits.added[changed]] = truth.ids[edits.removed[changed]]
        table = table.replaced(ids=ids).take(rows)
        new = np.arange(len(rows) - np.count_nonzero(~taken), len(rows))
        whole: GroundTruth = table.replaced(ids=_with_new_ids(table.ids, new))
        return whole

    def take(self, rows: slice | NDArray[Any]) -> LabelEdits:
        """Select some edits.

        Parameters
        ----------
        rows : slice or ndarray

        Returns
        -------
        LabelEdits
        """
        return LabelEdits(self.removed[rows], self.added[rows], self.labels, self.truth)


def labels_of(evaluation: Evaluation, rows: NDArray[np.intp]) -> GroundTruth:
    """Make labels of detections: geometry and class, with all keypoints labeled and no flags."""
    # Copy the columns of the detections that the protocol compares.
    truth, matcher = evaluation.ground_truth, evaluation._matcher
    detections, names = matcher.detections.take(rows), columns_compared(evaluation)
    given = {name: detections.instances[name] for name in names if name != "keypoint_count"}
    given = {name: column for name, column in given.items() if column is not None}
    # The area belongs to the geometry that the protocol compares: a mask, another column, or the box.
    area = detections.sizes.prod(axis=1)
    for column in truth.schema.instances:
        if column.area is not None and column.name in given:
            area = column.area(given[column.name])
    if matcher.similarity.measures_masks(matcher.detections) and "masks" in given:
        area = given["masks"].area
    # Mark all keypoints as labeled and visible.
    if "keypoints" in given:
        joints = np.array(given["keypoints"])
        joints[..., 2] = 2
        given |= {"keypoints": joints, "keypoint_count": np.full(len(rows), joints.shape[1])}
    # Set no flags; ids are -1 until the edits assign them.
    no = np.zeros(len(rows), dtype=bool)
    return GroundTruth(
        ids=np.full(len(rows), -1),
        image=detections.image,
        category=detections.category,
        boxes=detections.boxes,
        sizes=detections.sizes,
        area=area,
        columns={name: detections.columns[name] for name in truth.columns if name in detections.columns},
        **dict.fromkeys(("crowd", "difficult", "ignore", "group"), no),
        **given,
        images=truth.images,
        categories=truth.categories,
        units=truth.units,
        source=detections.source,
    )


# ---------------------------------------------------------------- tables


def _have_same_rows(one: GroundTruth, other: GroundTruth) -> bool:
    """Whether row numbers mean the same labels, images and classes in both tables."""
    return one is other or (
        np.array_equal(one.ids, other.ids)
        and np.array_equal(one.image, other.image)
        and np.array_equal(one.category, other.category)
        and one.images.same_as(other.images)
        and one.categories.labels == other.categories.labels
        and (one.units != other.units or bool((one.boxes == other.boxes).any(axis=1).all()))
    )


def _may_be_same(one: GroundTruth, row: int, other: GroundTruth, other_row: int) -> bool:
    """Whether rows of two tables may be one label; a protocol can move some sides of a box."""
    images = (table.images.ids[table.image[at]] for table, at in ((one, row), (other, other_row)))
    classes = (table.categories.labels[table.category[at]] for table, at in ((one, row), (other, other_row)))
    same_box = one.units != other.units or bool((one.boxes[row] == other.boxes[other_row]).any())
    return operator.eq(*images) and operator.eq(*classes) and same_box


def _rows_by_id(own: GroundTruth, rows: NDArray[np.intp], truth: GroundTruth) -> NDArray[np.intp]:
    """Return the rows of some labels in another table, [N]; an error if one is not there."""
    ids = truth.ids.tolist()
    known = {identifier: row for row, identifier in enumerate(ids)}
    wanted = own.ids[rows].tolist()
    found = np.array([known.get(identifier, -1) for identifier in wanted], dtype=np.intp)
    missing = [identifier for identifier, row in zip(wanted, found.tolist(), strict=True) if row < 0]
    if missing:
        raise InputError(
            "edits",
            "be of labels that the evaluation has",
            got=f"the annotation id {missing[0]!r}",
            cause=f"{len(missing):,} of {len(wanted):,} labels belong to an image or class that is not "
            "evaluated, or the protocol drops them; leave them out, or make the edits from "
            "evaluation.ground_truth",
        )
    # An id of several rows, as of boxes copied to broader classes, does not name a label.
    several = {identifier for identifier, count in Counter(ids).items() if count > 1}
    for identifier, row, other in zip(wanted, rows.tolist(), found.tolist(), strict=True):
        if identifier in several or not _may_be_same(own, row, truth, other):
            raise InputError(
                "edits",
                "be of the labels of the evaluation",
                got=f"the annotation id {identifier!r}, which is another label there",
                cause="make the edits from evaluation.ground_truth",
            )
    return found


def _found(
    rows: NDArray[np.int32], of: NDArray[np.int32], names: Sequence[Any] | NDArray[Any], what: str
) -> NDArray[np.int32]:
    """Return new rows of images or classes, [N]; an error if one is unknown."""
    new: NDArray[np.int32] = rows[of]
    unknown = np.flatnonzero(new < 0)
    if len(unknown):
        raise InputError(
            f"{what} of an added label", "be in the evaluation", got=repr(names[int(of[unknown[0]])])
        )
    return new


def columns_compared(evaluation: Evaluation) -> list[str]:
    """List the instance columns that the protocol reads from labels."""
    names = evaluation._matcher.similarity.needed_columns
    names += ["keypoint_count"] * ("keypoints" in names)
    return [name for name in names if _has(evaluation.ground_truth, name)]


def _names_of(table: BoxTable) -> tuple[str, ...]:
    return table.instances.names


def _has(table: BoxTable, name: str) -> bool:
    return table.instances[name] is not None


def with_instances(table: Any, names: Sequence[str]) -> Any:
    """Return the table with only some of its instance columns, loaded."""
    known = [name for name in names if name in table.instances]
    given = {name: table.instances[name] for name in known}
    return table.replaced(boxes=table.boxes, instances=LazyColumns(table.instances.names, given))


def _with_new_ids(ids: NDArray[Any], rows: IntArray) -> NDArray[Any]:
    """Return ids in which some rows get new, unique ids."""
    changed = ids.copy()
    if ids.dtype != object:
        changed[rows] = max(int(ids.max(initial=0)), 0) + 1 + np.arange(len(rows))
        return changed
    known, numbers = set(ids.tolist()), itertools.count(1)
    for row in rows.tolist():
        changed[row] = next(name for n in numbers if (name := f"new-{n}") not in known)
    return changed
