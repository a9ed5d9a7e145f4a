"""Describe edits of labels, which are applied one at a time or all together.

Conventions
-----------
- An edit changes one image: it removes a label, replaces one, or appends one. Images, classes and image-level
  labels do not change.
- A label made from a detection has its geometry, its class, the columns that both tables have, and no flags.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.records import record
from boxscore.data.alignment import stacked
from boxscore.data.lazy import LazyColumns
from boxscore.data.tables import BoxTable, GroundTruth
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
    """

    removed: NDArray[np.intp]
    added: NDArray[np.intp]
    labels: GroundTruth

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
        return cls(np.asarray(rows, dtype=np.intp), np.full(len(rows), -1), truth)

    @classmethod
    def relabelling(cls, truth: GroundTruth, rows: IntArray, category: NDArray[np.integer]) -> LabelEdits:
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
        return cls(np.asarray(rows, dtype=np.intp), np.arange(len(rows)), other)

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
        return cls(taken.astype(np.intp), np.arange(len(rows)), labels_of(evaluation, rows))

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
        """Return the ground truth with all of these edits; each must change another label.

        Parameters
        ----------
        truth : GroundTruth
            The table that ``removed`` refers to.

        Returns
        -------
        GroundTruth
            Replacements keep the position and id of the label that they replace; new labels are at the end.
        """
        names = [name for name in _names_of(truth) if _has(self.labels, name)]
        rows, taken = np.arange(len(truth)), self.removed >= 0
        rows[self.removed[taken]] = np.where(self.added < 0, -1, len(truth) + self.added)[taken]
        rows = np.append(rows[rows >= 0], len(truth) + self.added[~taken])
        table = stacked([with_instances(one, names) for one in (truth, self.labels)])
        ids, changed = table.ids.copy(), np.flatnonzero(taken & (self.added >= 0))
        ids[len(truth) + self.added[changed]] = truth.ids[self.removed[changed]]
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
        return LabelEdits(self.removed[rows], self.added[rows], self.labels)


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
