"""Suppress and fuse whole tables, for commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError
from boxscore.extensions.fusion.fusion import Models, fused_by_clusters, fused_into_best, warn_of_scale
from boxscore.suppression._ranked import boxes_of


def fused_table(
    tables: Sequence[Detections],
    *,
    method: Literal["wbf", "nmw"] = "wbf",
    weights: Sequence[float] | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    **options: Any,
) -> Detections:
    """Fuse the detections of several models, one table per model, with any images and classes.

    Parameters
    ----------
    tables : sequence of Detections
    method : {"wbf", "nmw"}
    weights : sequence of float, optional
        Weight of each model; equal by default.
    iou_threshold, score_threshold : float
    **options
        Options of :func:`boxscore.weighted_boxes_fusion`.

    Returns
    -------
    Detections
        Sorted by descending score.

    Raises
    ------
    InputError
        When a class has two names.
    """
    table = fused_part(tables, method, weights, iou_threshold, score_threshold, **options)
    warn_of_scale(
        max((each.scores.max(initial=0) for each in tables), default=0), float(table.scores.max(initial=0))
    )
    return table


def fused_part(
    tables: Sequence[Detections],
    method: Literal["wbf", "nmw"] = "wbf",
    weights: Sequence[float] | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    **options: Any,
) -> Detections:
    """Do :func:`fused_table` for some of the images, without its warning."""
    # Number images and classes across all models, in the order of their first appearance.
    images = Images.build(list(dict.fromkeys(id_ for table in tables for id_ in table.images.ids.tolist())))
    categories = classes_of_all([table.categories for table in tables], [table.source for table in tables])
    # Encode image and class as one integer, image * classes + class, the same for all models.
    groups = [
        images.rows(table.images.ids)[table.image].astype(np.int64) * len(categories)
        + categories.rows(table.categories.ids)[table.category]
        for table in tables
    ]
    # Fuse all groups in one call.
    fuse = fused_by_clusters if method == "wbf" else fused_into_best
    models = Models(
        [boxes_of(table) for table in tables],
        [table.scores for table in tables],
        groups,
        weights,
        score_threshold,
    )
    fused = fuse(models, iou_threshold, **options)
    # Split the group back into image and class, and build a table of the fused boxes.
    image, category = np.divmod(fused.groups.astype(np.int64), max(len(categories), 1))
    return Detections(
        images=images,
        categories=categories,
        image=image.astype(np.int32),
        category=category.astype(np.int32),
        boxes=fused.boxes,
        sizes=fused.boxes[:, 2:] - fused.boxes[:, :2],
        scores=fused.scores,
    )


def classes_of_all(every: Sequence[Categories], sources: Sequence[str]) -> Categories:
    """Return the classes of all files without repetitions; an id must have one name in all of them."""
    names: dict[Id, str] = {}
    for categories, source in zip(every, sources, strict=True):
        for identifier, name in zip(categories.ids.tolist(), categories.names.tolist(), strict=True):
            if names.setdefault(identifier, name) != name:
                raise InputError(
                    f"class {identifier}",
                    f"have the same name in all files ({names[identifier]!r} in an earlier one)",
                    got=repr(name),
                    place=source,
                    cause="are these results of another data set?",
                )
    return Categories.build(list(names), names=list(names.values()))
