"""Fuse whole tables of detections."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError
from boxscore.extensions.fusion.fusion import (
    Confidence,
    Models,
    fused_by_clusters,
    fused_into_best,
    warn_of_scale,
)
from boxscore.suppression._ranked import boxes_of

Method = Literal["wbf", "nmw", "greedy-nmm", "nmm"]
Fusing = Literal["box", "mask", "rotated", "quadrilateral"]
"""The shapes that are fused."""


MERGING = ("greedy-nmm", "nmm")
"""Methods that cover the members of a group instead of averaging them."""


def fuse(
    tables: Sequence[Detections],
    *,
    method: Method = "wbf",
    similarity: Fusing = "box",
    weights: Sequence[float] | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    overlap: Literal["iou", "ios"] = "iou",
    mask_threshold: float | None = None,
    confidence: Confidence | None = None,
) -> Detections:
    """Fuse or merge the detections of several models: boxes, masks, rotated boxes or four corners.

    Parameters
    ----------
    tables : sequence of Detections
        One per model, with any images and classes; a single table is merged with itself.
    method : {"wbf", "nmw", "greedy-nmm", "nmm"}, default "wbf"
        Weighted boxes fusion, non-maximum weighted, or merging as in :func:`boxscore.greedy_nmm` and
        :func:`boxscore.nmm`.
    similarity : {"box", "mask", "rotated", "quadrilateral"}, default "box"
        Shapes to fuse. Masks have no ``nmw``.
    weights : sequence of float, optional
        Weight of each model; equal by default. Merging does not use it.
    iou_threshold : float in [0, 1], default 0.55
    score_threshold : float, default 0.0
        Leave out detections that score below this.
    overlap : {"iou", "ios"}, default "iou"
        When boxes or masks are merged: intersection over union, or over the smaller one.
    mask_threshold : float in [0, 1], default 0.5
        For ``wbf`` of masks: a pixel is in the fused mask if the mean of the masks there, weighted by score,
        exceeds this.
    confidence : str, default "average"
        For ``wbf``, as in :func:`boxscore.weighted_boxes_fusion`.

    Returns
    -------
    Detections
        By descending score, with boxes, scores and the fused shapes only.

    Raises
    ------
    InputError
        When an option does not apply to the method, a class has two names, a detection lacks the shape, or
        masks of an image differ in size.

    Warns
    -----
    BoxscoreWarning
        When a score exceeds 1, or a fused mask is empty.

    Examples
    --------
    >>> from boxscore import Detections
    >>> left = Detections.from_arrays([1], ["ship"], None, [0.75], rotated=[[10, 10, 8, 4, 0.25]])
    >>> right = Detections.from_arrays([1], ["ship"], None, [0.25], rotated=[[11, 10, 4, 8, 1.75]])
    >>> fuse([left, right], method="wbf", similarity="rotated").rotated.round(3).tolist()
    [[10.25, 10.0, 8.0, 4.0, 0.232]]
    """
    check_fusion(method, similarity, weights, overlap, mask_threshold, confidence)
    if not tables:
        raise InputError("tables", "have one entry per model", got="none")
    options: dict[str, Any] = {} if confidence is None else {"confidence": confidence}
    if similarity == "mask" and mask_threshold is not None:
        options["mask_threshold"] = mask_threshold
    table = fused_part(
        tables, method, weights, iou_threshold, score_threshold, similarity, overlap, **options
    )
    warn_of_scale(
        max((each.scores.max(initial=0) for each in tables), default=0), float(table.scores.max(initial=0))
    )
    return table


def check_fusion(
    method: str,
    similarity: str = "box",
    weights: object = None,
    overlap: str = "iou",
    mask_threshold: float | None = None,
    confidence: str | None = None,
) -> None:
    """Check that a method supports the shapes and the options that are given."""
    checks.one_of(method, get_args(Method), name="method")
    checks.one_of(similarity, get_args(Fusing), name="similarity")
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    if similarity == "mask" and method == "nmw":
        cause = "non-maximum weighted has no published rule for masks"
        raise InputError(
            "method", "be wbf, greedy-nmm or nmm where masks are fused", got=repr(method), cause=cause
        )
    if confidence is not None and method != "wbf":
        raise InputError("confidence", f"not be used with method {method!r}", got=repr(confidence))
    if weights is not None and method in MERGING:
        cause = "merging does not average"
        raise InputError("weights", f"not be used with method {method!r}", got=repr(weights), cause=cause)
    if overlap != "iou" and method not in MERGING:
        raise InputError("overlap", f"be 'iou' with method {method!r}", got=repr(overlap))
    if overlap != "iou" and similarity not in ("box", "mask"):
        raise InputError("overlap", "be 'iou' where oriented boxes are compared", got=repr(overlap))
    if mask_threshold is not None:
        if similarity != "mask" or method != "wbf":
            rule = "be used with method 'wbf' where masks are fused"
            raise InputError("mask_threshold", rule, got=repr(mask_threshold))
        checks.number_between(mask_threshold, 0, 1, name="mask_threshold")


def fused_part(
    tables: Sequence[Detections],
    method: Method = "wbf",
    weights: Sequence[float] | None = None,
    iou_threshold: float = 0.55,
    score_threshold: float = 0.0,
    similarity: Fusing = "box",
    overlap: Literal["iou", "ios"] = "iou",
    **options: Any,
) -> Detections:
    """Do :func:`fuse` for some of the images, without its checks and its warning of scores."""
    # Number images and classes across all models, in the order of their first appearance. Class numbers of
    # different lists mean their names.
    tables = _with_common_classes(tables)
    images, units = _images_of_all(tables), _common_units(tables)
    categories = classes_of_all([table.categories for table in tables], [table.source for table in tables])
    masked = next((table.source for table in tables if table.instances.shows("masks")), None)
    if similarity == "box" and masked is not None:
        warn_user(
            f"{masked}: masks; they are left out, and boxes are fused. To fuse masks, pass --iou-type segm "
            "(in Python similarity='mask')."
        )
    if similarity != "box" or method in MERGING:
        from boxscore.extensions.fusion.shapes import fused_shapes

        fused_table = fused_shapes(
            tables,
            method=method,
            similarity=similarity,
            weights=weights,
            iou_threshold=iou_threshold,
            score_threshold=score_threshold,
            overlap=overlap,
            **options,
        )
        return fused_table.replaced(categories=categories, units=units, source=tables[0].source)
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
        units=units,
        source=tables[0].source,
    )


def _with_common_classes(tables: Sequence[Detections]) -> Sequence[Detections]:
    """Return tables whose class ids have one meaning, if their numbers count the names of different lists."""
    lists = [table.categories for table in tables]
    same = all(
        classes.same_as(lists[0]) and classes.names.tolist() == lists[0].names.tolist() for classes in lists
    )
    if same or not any(map(_counts_names, lists)):
        return tables
    from boxscore.extensions.formats.elsewhere import with_names_as_class_ids

    return [*map(with_names_as_class_ids, tables)]


def _counts_names(classes: Categories) -> bool:
    """Whether class ids count the names of a list from 0."""
    return classes.are_positions and classes.names.tolist() != [*map(str, classes.ids.tolist())]


def _images_of_all(tables: Sequence[Detections]) -> Images:
    """Return the images of all files without repetitions, with the names and sizes that any file states."""
    names: dict[Id, str | None] = {}
    sizes: dict[Id, list[float]] = {}
    for images in (table.images for table in tables):
        for id_, name, size in zip(
            images.ids.tolist(), images.file_names.tolist(), images.sizes.tolist(), strict=True
        ):
            names[id_] = names.get(id_) or name
            if size[0] == size[0] or id_ not in sizes:
                sizes[id_] = size
    return Images.build(list(names), file_names=list(names.values()), sizes=list(sizes.values()))


def _common_units(tables: Sequence[Detections]) -> str:
    """Return the units of boxes in all files; files without boxes have any."""
    first = max(tables, key=len)
    other = next((table for table in tables if len(table) and table.units != first.units), None)
    if other is not None:
        rule = "be in one unit to be fused"
        got = f"{first.units} in {first.source}, and {other.units} in {other.source}"
        raise InputError("boxes", rule, got=got, cause=checks.GIVE_SIZES)
    return first.units


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
    classes = Categories.build(list(names), names=list(names.values()))
    return dataclasses.replace(classes, are_positions=all(each.are_positions for each in every))
