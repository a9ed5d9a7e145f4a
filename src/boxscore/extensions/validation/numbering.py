"""Infer from boxes how detections number their classes, for tables and for files."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from boxscore.data.lookup import image_rows_by_name
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.hints import left_out
from boxscore.extensions.hints.numbering import InferredClassMap, infer_class_map
from boxscore.extensions.validation._findings import Renumbered
from boxscore.formats._format import Opened
from boxscore.formats.reading import FileOptions


def find_class_map(
    ground_truth: GroundTruth, detections: Detections, *, classes: Sequence[str] | None = None
) -> InferredClassMap:
    """Infer how detections number their classes: like the ground truth, from 0, from 1, or otherwise.

    The evidence is the best detections of each image, as many as it has annotations: under the right
    numbering, most of those that overlap an annotation (IoU of 0.5 or more) have its class.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Detections with the classes of their file. :func:`boxscore.load_detections` leaves out classes that
        the ground truth does not have, which are part of the evidence; ``class_map="auto"`` reads them too.
    classes : sequence of str, optional
        The names of the detections' class numbers.

    Returns
    -------
    InferredClassMap
        ``name`` is ``"as-they-are"``, the name of a numbering, or None if it is unclear. ``pairs`` is a
        ``class_map`` for :func:`boxscore.load_detections`; ``placed``, ``given`` and ``mapped`` are the
        evidence.

    Raises
    ------
    InputError
        When an argument is not a table.

    Examples
    --------
    >>> import boxscore
    >>> boxes = [[10 * i, 0, 10 * i + 9, 9] for i in range(12)]
    >>> truth = boxscore.GroundTruth.from_arrays([1] * 12, [0, 1, 2, 3] * 3, boxes)
    >>> detections = boxscore.Detections.from_arrays([1] * 12, [1, 2, 3, 4] * 3, boxes, [0.9] * 12)
    >>> inferred = find_class_map(truth, detections)
    >>> inferred.name, inferred.given, inferred.mapped
    ('one-based', 0, 12)
    """
    for value, kind, name in (
        (ground_truth, GroundTruth, "ground_truth"),
        (detections, Detections, "detections"),
    ):
        if not isinstance(value, kind):
            raise InputError(name, f"be a {kind.__name__} table", got=f"a {type(value).__name__}")
    rows = image_rows_by_name(detections.images.ids, ground_truth.images)
    image = rows[detections.image] if len(detections) else detections.image
    known = np.flatnonzero(image >= 0)
    placed = dataclasses.replace(detections.take(known), images=ground_truth.images, image=image[known])
    return infer_class_map(ground_truth, placed, classes=classes)


def renumbered_file(opened: Opened, ground_truth: GroundTruth, options: FileOptions) -> Renumbered | None:
    """Return the detections read with the class map that their boxes imply; None if they need none."""
    renumbered = left_out.renumbered_file(opened, ground_truth, options)
    return None if renumbered is None else Renumbered(*renumbered)
