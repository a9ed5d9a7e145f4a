"""Run any method by name, over a whole table of detections or over arrays.

Goal
----
One name and one set of options for the whole family, so that the command line, the sweep and
:func:`boxscore.suppress` are the same computation.

Conventions
-----------
- A group is an image and a class, an image alone (``class_agnostic``), or an image and a set of classes that
  are suppressed together (``class_groups``).
- ``score_threshold`` is that of the method's function: of the scores given, or of the lowered ones where a
  method lowers them. The caps come last: the best of each group, then of each image.
- Overlaps are taken of the corners in ``Detections.boxes``.
- A table is read by its columns; nothing of ``data.tables`` is imported to run.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import top_k_per_group
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BoxFormat, box_convert
from boxscore.data.vocabulary import Categories, Id
from boxscore.errors import InputError
from boxscore.similarity.measures import MeasureOf
from boxscore.suppression._pairs import share_pairs
from boxscore.suppression._ranked import (
    BoxOptions,
    Ranked,
    boxes_of,
    check_boxes,
    check_groups,
    prepare,
    rank,
    require_images,
)
from boxscore.suppression.methods import METHODS, Setting, check_method, readers_of
from boxscore.suppression.result import Suppression

if TYPE_CHECKING:
    from boxscore.data.tables import Detections

Overlapping = Literal["box", "mask", "rotated", "quadrilateral", "probiou"]
"""The shapes of two detections whose overlap is measured."""
MEASURES = {
    "mask": "boxscore.extensions.masks.suppression",
    "rotated": "boxscore.extensions.oriented.suppression",
    "quadrilateral": "boxscore.extensions.oriented.suppression",
    "probiou": "boxscore.extensions.oriented.suppression",
}
"""The modules that measure overlaps other than those of boxes, imported lazily."""
Cap = tuple[NDArray[Any], int]
"""A group for each row, and the cap per group."""


class GroupOptions(TypedDict, total=False):
    """Options of :func:`suppress` for grouping and top-k."""

    max_per_group: int | None
    max_per_image: int | None
    class_agnostic: bool
    class_groups: Iterable[Collection[Id]] | None
    pixel_offset: float
    similarity: Overlapping


def suppress(
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
    similarity: Overlapping = "box",
) -> Suppression:
    """Suppress over a whole data set.

    Parameters
    ----------
    detections : Detections
        Detections of any number of images and classes.
    method : str, default "hard"
        A name of :data:`~.methods.METHODS`: ``hard``, ``diou``, ``fast`` and ``cluster`` drop;
        ``soft-linear``, ``soft-gaussian``, ``matrix-linear`` and ``matrix-gaussian`` lower scores;
        ``greedy-nmm`` and ``nmm`` merge boxes.
    iou_threshold : float in [0, 1], optional
        Needed by the methods that have one: all but ``soft-gaussian`` and the two ``matrix`` ones.
    overlap : {"iou", "ios"}, default "iou"
        For ``hard``, ``greedy-nmm`` and ``nmm``; the others use only the IoU.
    sigma : float, optional
        For the Gaussian methods; each has its own default.
    score_threshold : float, optional
        Keep only detections with at least this score; methods that lower scores compare the lowered ones. By
        default 0.001 for the ``soft`` methods; other methods keep all.
    max_per_group, max_per_image : int, optional
        Keep only the best of each group, then of each image.
    class_agnostic : bool, default False
        Suppress all classes of an image together.
    class_groups : iterable of collections of ids or names, optional
        Classes to suppress together; other classes are suppressed separately.
    pixel_offset : float, default 0
        1 for inclusive pixels (PASCAL VOC).
    similarity : {"box", "mask", "rotated", "quadrilateral", "probiou"}, default "box"
        Shapes that overlap: upright boxes, the pixels of instance masks, rotated boxes, four corners, or
        rotated boxes by ProbIoU. All but boxes work with all methods except ``diou`` and the two that merge
        boxes.

    Returns
    -------
    Suppression
        The surviving rows, their scores and boxes, and the row that suppressed each other row; ``apply``
        returns the remaining table.

    Raises
    ------
    InputError
        When a method is unknown, an option is missing or out of range, a class is unknown or in two groups,
        scores are negative but the method lowers them, or a detection lacks a mask where masks are compared.

    Warns
    -----
    BoxscoreWarning
        When a threshold or sigma is given that the method does not read.

    Examples
    --------
    >>> from boxscore import Detections
    >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10]]
    >>> detections = Detections.from_arrays([7, 7, 8], ["cat", "cat", "cat"], boxes, [0.7, 0.9, 0.8])
    >>> result = suppress(detections, iou_threshold=0.5)
    >>> result.indices.tolist(), result.suppressed_by.tolist()
    ([1, 2], [1, -1, -1])
    >>> result.apply(detections).scores.tolist()
    [0.9, 0.8]
    """
    setting = _checked(Setting(method, iou_threshold, sigma, score_threshold, overlap), similarity)
    suppressor = Suppressor(
        detections,
        max_per_group=max_per_group,
        max_per_image=max_per_image,
        class_agnostic=class_agnostic,
        class_groups=class_groups,
        pixel_offset=pixel_offset,
        similarity=similarity,
    )
    return suppressor.suppress(setting, suppressor.ranked(setting), owners=True)


def suppress_boxes(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float | None = None,
    *,
    groups: ArrayLike | None = None,
    method: str = "hard",
    overlap: Literal["iou", "ios"] = "iou",
    sigma: float | None = None,
    score_threshold: float | None = None,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
    images: ArrayLike | None = None,
    max_per_image: int | None = None,
) -> Suppression:
    """Suppress boxes by any method, and report which box dropped which.

    Parameters
    ----------
    boxes : array_like, [N, 4]
    scores : array_like, [N]
    groups : array_like of int or str, [N], optional
        Boxes of different groups never meet; None is one group.
    iou_threshold, method, overlap, sigma, score_threshold
        As in :func:`boxscore.suppress`.
    box_format, pixel_offset, pre_top_k, max_per_group, images, max_per_image
        As in :func:`boxscore.batched_nms`.

    Returns
    -------
    Suppression

    Raises
    ------
    InputError
        As in :func:`boxscore.suppress` and :func:`boxscore.batched_nms`.

    Warns
    -----
    BoxscoreWarning
        When a threshold or sigma is given that the method does not read.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
    >>> result = suppress_boxes(boxes, [0.9, 0.8, 0.7], 0.5)
    >>> result.indices.tolist(), result.suppressed_by.tolist()
    ([0, 2], [-1, 0, -1])
    """
    setting = _checked(Setting(method, iou_threshold, sigma, score_threshold, overlap))
    box_array = check_boxes(boxes, box_format=box_format)
    length = len(box_array)
    require_images(images, max_per_image)
    group = None if groups is None else check_groups(groups, length=length)
    image = None if images is None else check_groups(images, length=length, name="images")
    options = BoxOptions(box_format, pixel_offset, setting.measured, setting.floor, pre_top_k)
    ranked = prepare(box_array, scores, group, options)
    caps = _caps(length, group, max_per_group, image, max_per_image)
    return _carry_out(setting, ranked, box_array, caps, box_format=box_format, owners=True)


def _checked(setting: Setting, similarity: Overlapping = "box") -> Setting:
    """Check that a method supports its options; warn of unused ones."""
    chosen = check_method(
        setting.method,
        iou_threshold=setting.iou_threshold,
        overlap=setting.overlap,
        similarity=similarity,
    )
    for name in ("iou_threshold", "sigma"):
        value = getattr(setting, name)
        if value is not None and name not in chosen.reads:
            warn_user(f"{name} {value} does not affect method {setting.method!r}; it is {readers_of(name)}.")
    return setting


def _caps(
    length: int,
    group: IntArray | None,
    max_per_group: int | None,
    image: NDArray[Any] | None,
    max_per_image: int | None,
) -> list[Cap]:
    """Check the caps that are given, in the order in which they apply; no groups are one group."""
    return [
        (np.zeros(length, np.int64) if of is None else of, checks.whole_number(k, 1, name=name))
        for of, k, name in ((group, max_per_group, "max_per_group"), (image, max_per_image, "max_per_image"))
        if k is not None
    ]


def _carry_out(
    setting: Setting,
    ranked: Ranked,
    boxes: FloatArray,
    caps: Sequence[Cap],
    *,
    box_format: BoxFormat = "xyxy",
    owners: bool,
) -> Suppression:
    """Suppress ranked boxes by a setting, then apply the caps."""
    # Pass only the options that the method reads.
    method = METHODS[setting.method]
    options: dict[str, Any] = {}
    for name in ("iou_threshold", "sigma"):
        if name in method.reads and getattr(setting, name) is not None:
            options[name] = getattr(setting, name)
    if method.changes == "scores":
        options["score_threshold"] = setting.floor
    if owners and "owners" in method.reads:
        options["owners"] = True
    # Boxes that did not change are taken from the input, bit for bit.
    survivors = method.call(ranked, **options)
    indices, scores = survivors.indices, survivors.scores
    if survivors.boxes is None:
        left = boxes.take(indices, axis=0)
    else:
        left = box_convert(survivors.boxes, "xyxy", box_format)
    # Apply the caps in order, each to the remaining rows.
    for of, k in caps:
        best = top_k_per_group(of[indices], k)
        indices, scores, left = indices[best], scores[best], left[best]
    return Suppression(indices, scores, left, survivors.suppressed_by, method.changes, len(boxes))


class Suppressor:
    """Suppress one table under several settings, sharing the work that does not depend on them.

    Parameters as in :func:`suppress`.
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
        similarity: Overlapping = "box",
    ) -> None:
        self._detections, self._pixel_offset = detections, pixel_offset
        self._similarity = checks.one_of(similarity, get_args(Overlapping), name="similarity")
        self._boxes = boxes_of(detections) if similarity == "box" else detections.boxes
        self._group = _groups(detections, class_agnostic=class_agnostic, class_groups=class_groups)
        self._caps = _caps(len(detections), self._group, max_per_group, detections.image, max_per_image)

    def ranked(self, setting: Setting) -> Ranked:
        """Check and rank the detections for a setting."""
        if self._similarity == "box":
            self._refuse_fractions(setting)
            options = BoxOptions("xyxy", self._pixel_offset, setting.measured, setting.floor)
            return prepare(self._boxes, self._detections.scores, self._group, options)
        module = importlib.import_module(MEASURES[self._similarity])
        measure: MeasureOf = module.table_measure(
            self._detections,
            self._group,
            self._similarity,
            overlap=setting.measured,
            lowest=setting.lowest,
        )
        return rank(self._detections.scores, self._group, measure, score_threshold=setting.floor)

    def _refuse_fractions(self, setting: Setting) -> None:
        """Reject fractions of the image size where their overlap is not that of pixels, unlike the IoU."""
        wanted = f"method {setting.method!r}" if setting.measured == "diou" else "pixel_offset 1"
        if self._detections.units == "fractions" and (setting.measured == "diou" or self._pixel_offset):
            rule, got = f"be pixels for {wanted}", "fractions of images of unknown size"
            place = self._detections.source
            raise InputError("boxes", rule, got=got, place=place, cause=checks.GIVE_SIZES)

    def shared(self, settings: Iterable[Setting]) -> dict[Setting, Ranked]:
        """Rank the detections for many settings; settings share ranks and overlapping pairs if possible."""
        alike: dict[tuple[object, ...], list[Setting]] = {}
        for setting in settings:
            reads_iou = "iou_threshold" in METHODS[setting.method].reads
            alike.setdefault((setting.measured, setting.floor, reads_iou), []).append(setting)
        shared: dict[Setting, Ranked] = {}
        for some in alike.values():
            least = min(some, key=lambda setting: setting.lowest)
            ranked = self.ranked(least)
            if len(some) > 1:
                ranked = share_pairs(ranked, least.lowest)
            shared |= dict.fromkeys(some, ranked)
        return shared

    def suppress(self, setting: Setting, ranked: Ranked, *, owners: bool = False) -> Suppression:
        """Suppress ranked detections; ``owners`` also records the suppressor of each row, at some cost."""
        return _carry_out(setting, ranked, self._boxes, self._caps, owners=owners)


def _groups(
    detections: Detections, *, class_agnostic: bool, class_groups: Iterable[Collection[Id]] | None
) -> IntArray:
    """Group of each detection, [D]."""
    # A group is an image, or an image and a class in one integer: image * classes + class.
    image = detections.image.astype(np.int64)
    if class_agnostic:
        if class_groups is not None:
            raise InputError("class_groups", "not be combined with class_agnostic", got="both of them")
        return image
    count = len(detections.categories)
    of_class = np.arange(count)
    if class_groups is not None:
        of_class = _group_of_class(detections.categories, class_groups)
    image *= count
    image += of_class[detections.category] if count else 0
    return image


def _group_of_class(categories: Categories, class_groups: Iterable[Collection[Id]]) -> IntArray:
    """Group of each class, [K]: the row of the first class named with it, else its own row."""
    # Each class starts as a group of its own, [K].
    of_class = np.arange(len(categories))
    named: set[int] = set()
    for group in class_groups:
        if isinstance(group, str):
            raise InputError("class_groups", "be a list of lists of classes", got=repr(group))
        # Look up all classes of the group in one call; a class may be in one group only.
        labels = list(group)
        rows = categories.rows_by_word(labels, what="a class of a group").tolist()
        for label, row in zip(labels, rows, strict=True):
            # An unknown class is an error that suggests a similar name.
            if row < 0:
                known = [*categories.labels, *map(str, categories.ids.tolist())]
                cause = checks.did_you_mean(label, dict.fromkeys(known))
                ids = [*map(str, categories.ids.tolist())]
                if isinstance(label, str) and not label.isdecimal() and categories.names.tolist() == ids:
                    cause += f"; these detections have ids without names: write {','.join(ids[:2])}"
                raise InputError(
                    "a class of a group",
                    "occur in the detections",
                    got=repr(label),
                    cause=cause,
                )
            if row in named:
                raise InputError("a class", "be in one group", got=f"{label!r} twice")
            # The group has the row of its first class.
            named.add(row)
            of_class[row] = rows[0]
    return of_class
