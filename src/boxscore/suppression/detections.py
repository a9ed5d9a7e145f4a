"""Suppression over a whole table of detections: every image and class in one call.

Goal
----
One name and one set of options for the whole family, so that the command line, the sweep and
:meth:`Suppression.apply` are the same computation.

Conventions
-----------
- A group is an image and a class, an image alone (``class_agnostic``), or an image and a set of classes that
  are suppressed together (``class_groups``).
- ``score_threshold`` is the functions' own: of the scores given, or of the lowered ones where a method lowers
  them. The caps come last: the best of each group, then of each image.
- Overlaps are taken of the corners in ``Detections.boxes``.

Why the work is here
--------------------
This package stands left of ``tables``: its functions take arrays and know no table. This module keeps to
that: it reads six columns of what it is given and imports nothing of ``tables`` when it is loaded, and the
methods of ``Detections`` import it when they are called. So the arrow from tables to suppression is the only
one, a table stays a value that computes nothing by itself, and the options are written down once.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.masks import Masks
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.suppression._order import first_of_each
from boxscore.suppression._pairs import share_pairs
from boxscore.suppression._ranked import Ranked, prepare, rank
from boxscore.suppression.masks import mask_measure
from boxscore.suppression.methods import METHODS, Setting, check_method, readers_of

if TYPE_CHECKING:
    from boxscore.data.tables import Detections

__all__ = ["GroupOptions", "NmsOptions", "Suppression", "Suppressor", "nms_detections"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


class GroupOptions(TypedDict, total=False):
    """Options of :func:`nms_detections` that say who meets whom and how many stay."""

    max_per_group: int | None
    max_per_image: int | None
    class_agnostic: bool
    class_groups: Iterable[Collection[Id]] | None
    pixel_offset: float
    similarity: Literal["box", "mask"]


class NmsOptions(GroupOptions, total=False):
    """The options of :func:`nms_detections`."""

    method: str
    iou_threshold: float | None
    overlap: Literal["iou", "ios"]
    sigma: float | None
    score_threshold: float | None


class Suppression(NamedTuple):
    """What is left of a table of detections, best first."""

    indices: IndexArray
    """Rows kept, by descending score, ties by lowest row, [K]."""
    scores: FloatArray
    """Their scores afterwards: lowered by the soft methods, else as they were, [K]."""
    boxes: FloatArray
    """Their corners afterwards: of the merged boxes, else as they were, [K, 4]."""
    changes: Literal["nothing", "scores", "boxes"]
    """What the method changes in the rows it keeps."""

    def apply(self, detections: Detections) -> Detections:
        """Return the detections that are left, in the order of the table, with new scores and boxes."""
        order = np.argsort(self.indices)
        kept = detections.take(self.indices[order])
        if self.changes == "scores":
            return dataclasses.replace(kept, scores=self.scores[order])
        if self.changes == "boxes":
            boxes = self.boxes[order]
            merged = (boxes != kept.boxes).any(axis=1)
            sizes = np.where(merged[:, None], boxes[:, 2:] - boxes[:, :2], kept.sizes)
            return dataclasses.replace(kept, boxes=boxes, sizes=sizes)
        return kept


def nms_detections(
    detections: Detections,
    *,
    method: str = "hard",
    iou_threshold: float | None = None,
    overlap: Literal["iou", "ios"] = "iou",
    sigma: float | None = None,
    score_threshold: float | None = None,
    max_per_group: int | None = None,
    max_per_image: int | None = None,
    class_agnostic: bool = False,
    class_groups: Iterable[Collection[Id]] | None = None,
    pixel_offset: float = 0,
    similarity: Literal["box", "mask"] = "box",
) -> Suppression:
    """Suppress over a whole data set.

    Parameters
    ----------
    detections : Detections
        Of any number of images and classes.
    method : str, default "hard"
        A name of :data:`~.methods.METHODS`: ``hard``, ``diou``, ``fast`` and ``cluster`` drop;
        ``soft-linear``, ``soft-gaussian``, ``matrix-linear`` and ``matrix-gaussian`` lower scores;
        ``greedy-nmm`` and ``nmm`` merge boxes.
    iou_threshold : float in [0, 1], optional
        Needed by the methods that have one: all but ``soft-gaussian`` and the two ``matrix`` ones.
    overlap : {"iou", "ios"}, default "iou"
        For ``hard``, ``greedy-nmm`` and ``nmm``; the others know the IoU alone.
    sigma : float, optional
        For the Gaussian methods; their own default when not given.
    score_threshold : float, optional
        Keep only what scores at least this, afterwards where the method lowers scores. The function's own
        default when not given: 0.001 for the ``soft`` methods, else none.
    max_per_group, max_per_image : int, optional
        Keep only the best of each group, then of each image.
    class_agnostic : bool, default False
        Suppress all classes of an image together.
    class_groups : iterable of collections of ids or names, optional
        Classes to suppress together; a class in none of them stays alone.
    pixel_offset : float, default 0
        1 for inclusive pixels (PASCAL VOC).
    similarity : {"box", "mask"}, default "box"
        What overlaps: boxes, or the pixels of instance masks. By masks all methods work but ``diou`` and the
        two that merge boxes.

    Returns
    -------
    Suppression
        A named tuple ``(indices, scores, boxes, changes)``; its ``apply`` gives the table that is left.

    Raises
    ------
    InputError
        When a method is unknown, an option is missing or out of range, a class is unknown or in two groups,
        scores are negative where they are to be lowered, or a detection has no mask where masks are compared.

    Warns
    -----
    BoxscoreWarning
        When a threshold or sigma is given that the method does not read.

    Examples
    --------
    >>> from boxscore import Detections
    >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10]]
    >>> found = Detections.from_arrays([7, 7, 8], ["cat", "cat", "cat"], boxes, [0.7, 0.9, 0.8])
    >>> nms_detections(found, iou_threshold=0.5).indices.tolist()
    [1, 2]
    """
    chosen = check_method(method, iou_threshold=iou_threshold, overlap=overlap, similarity=similarity)
    for name, value in (("iou_threshold", iou_threshold), ("sigma", sigma)):
        if value is not None and name not in chosen.reads:
            warnings.warn(
                f"{name} {value} has no effect with method {method!r}; it is {readers_of(name)}.",
                BoxscoreWarning,
                stacklevel=2,
            )
    suppressor = Suppressor(
        detections,
        max_per_group=max_per_group,
        max_per_image=max_per_image,
        class_agnostic=class_agnostic,
        class_groups=class_groups,
        pixel_offset=pixel_offset,
        similarity=similarity,
    )
    setting = Setting(method, iou_threshold, sigma, score_threshold, overlap)
    return suppressor.suppress(setting, suppressor.ranked(setting))


class Suppressor:
    """Suppression of one table under several settings: what does not depend on them is computed once.

    Parameters as in :func:`nms_detections`.
    """

    def __init__(
        self,
        detections: Detections,
        *,
        max_per_group: int | None = None,
        max_per_image: int | None = None,
        class_agnostic: bool = False,
        class_groups: Iterable[Collection[Id]] | None = None,
        pixel_offset: float = 0,
        similarity: Literal["box", "mask"] = "box",
    ) -> None:
        self._caps = [
            None if cap is None else checks.whole_number(cap, 1, name=name)
            for cap, name in ((max_per_group, "max_per_group"), (max_per_image, "max_per_image"))
        ]
        self._detections, self._pixel_offset = detections, pixel_offset
        self._by_masks = checks.one_of(similarity, ("box", "mask"), name="similarity") == "mask"
        self._group = _groups(detections, class_agnostic=class_agnostic, class_groups=class_groups)

    def ranked(self, setting: Setting) -> Ranked:
        """Check and rank the detections as a setting needs them."""
        if self._by_masks:
            return rank(
                self._detections.scores,
                self._group,
                mask_measure(
                    _masks_of(self._detections), self._group, overlap=setting.measured, lowest=setting.lowest
                ),
                score_threshold=setting.floor,
            )
        return prepare(
            self._detections.boxes,
            self._detections.scores,
            self._group,
            pixel_offset=self._pixel_offset,
            overlap=setting.measured,
            score_threshold=setting.floor,
        )

    def shared(self, settings: Iterable[Setting]) -> dict[Setting, Ranked]:
        """Rank the detections for many settings; those that can share ranks and overlapping pairs."""
        alike: dict[tuple[object, ...], list[Setting]] = {}
        for setting in settings:
            reads_iou = "iou_threshold" in METHODS[setting.method].reads
            alike.setdefault((setting.measured, setting.floor, reads_iou), []).append(setting)
        found: dict[Setting, Ranked] = {}
        for some in alike.values():
            least = min(some, key=lambda setting: setting.lowest)
            ranked = self.ranked(least)
            if len(some) > 1:
                ranked = share_pairs(ranked, least.lowest)
            found |= dict.fromkeys(some, ranked)
        return found

    def suppress(self, setting: Setting, ranked: Ranked) -> Suppression:
        """Suppress ranked detections."""
        method, detections = METHODS[setting.method], self._detections
        options: dict[str, Any] = {}
        for name in ("iou_threshold", "sigma"):
            if name in method.reads and getattr(setting, name) is not None:
                options[name] = getattr(setting, name)
        if method.changes == "scores":
            options["score_threshold"] = setting.floor
        result: Any = method.call(ranked, **options)
        if method.changes == "nothing":
            indices = result
            scores, boxes = detections.scores[indices], detections.boxes.take(indices, axis=0)
        elif method.changes == "scores":
            indices, scores = result
            boxes = detections.boxes.take(indices, axis=0)
        else:
            indices, boxes, scores, _ = result
        columns: tuple[NDArray[Any], ...] = (self._group, detections.image)
        for cap, of in zip(self._caps, columns, strict=True):
            if cap is not None:
                few = first_of_each(of[indices], cap)
                indices, scores, boxes = indices[few], scores[few], boxes[few]
        return Suppression(indices, scores, boxes, method.changes)


def _masks_of(detections: Detections) -> Masks:
    masks = detections.masks
    if len(detections) and (masks is None or masks.missing.any()):
        row = 0 if masks is None else int(np.argmax(masks.missing))
        raise InputError(
            "a detection",
            "have a mask where masks are compared",
            got="none",
            place=f"row {row} of {detections.source}" if masks is None else masks.place(row),
        )
    return masks or Masks([])


def _groups(
    detections: Detections, *, class_agnostic: bool, class_groups: Iterable[Collection[Id]] | None
) -> IndexArray:
    """Group of each detection, [D]."""
    image = detections.image.astype(np.int64)
    if class_agnostic:
        if class_groups is not None:
            raise InputError("class_groups", "be left out with class_agnostic", got="both of them")
        return image
    count = len(detections.categories)
    of_class = np.arange(count)
    if class_groups is not None:
        of_class = _group_of_class(detections.categories, class_groups)
    image *= count
    image += of_class[detections.category] if count else 0
    return image


def _group_of_class(categories: Categories, class_groups: Iterable[Collection[Id]]) -> IndexArray:
    """Group of each class, [K]: the row of the first class named with it, else its own row."""
    of_class = np.arange(len(categories))
    named: set[int] = set()
    for group in class_groups:
        if isinstance(group, str):
            raise InputError("class_groups", "be a list of lists of classes", got=repr(group))
        labels = list(group)
        rows = categories.rows_by_id_or_name(labels).tolist()
        for label, row in zip(labels, rows, strict=True):
            if row < 0:
                known = [*categories.names.tolist(), *map(str, categories.ids.tolist())]
                raise InputError(
                    "a class of a group",
                    "occur in the detections",
                    got=repr(label),
                    cause=checks.did_you_mean(label, dict.fromkeys(known)),
                )
            if row in named:
                raise InputError("a class", "be in one group", got=f"{label!r} twice")
            named.add(row)
            of_class[row] = rows[0]
    return of_class
