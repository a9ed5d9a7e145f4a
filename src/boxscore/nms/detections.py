"""Suppression over a whole table of detections: every image and class in one call.

Goal
----
One name and one set of options for the whole family, so that the command line, the sweep and
:meth:`Detections.nms <boxscore.tables.Detections.nms>` are the same computation.

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
import functools
import warnings
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from boxscore import _validate
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.nms._measures import Overlap
from boxscore.nms._pairs import share_pairs
from boxscore.nms._ranked import Ranked, prepare
from boxscore.nms.fast import select_in_rounds
from boxscore.nms.hard import select
from boxscore.nms.matrix import decay_all
from boxscore.nms.merging import merge
from boxscore.nms.soft import soften
from boxscore.vocabulary import Categories, Id

if TYPE_CHECKING:
    from boxscore.tables import Detections

__all__ = [
    "METHODS",
    "GroupOptions",
    "Method",
    "NmsOptions",
    "Setting",
    "Suppression",
    "Suppressor",
    "check_method",
    "nms_detections",
]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


class Method(NamedTuple):
    """What one name of :data:`METHODS` does."""

    call: Callable[..., Any]
    """What the function of the family does with ranked boxes, with what its name fixes."""
    changes: Literal["nothing", "scores", "boxes"]
    """What becomes of the detections that are kept."""
    reads: frozenset[str]
    """The options it reads, of ``iou_threshold``, ``sigma`` and ``overlap``."""
    score_threshold: float | None = None
    """Its own, where none is given."""
    overlap: Overlap = "iou"
    """What it measures, where there is no choice."""


_IOU, _SIGMA, _OVERLAP = frozenset({"iou_threshold"}), frozenset({"sigma"}), frozenset({"overlap"})
_of = functools.partial

METHODS: dict[str, Method] = {
    "hard": Method(select, "nothing", _IOU | _OVERLAP),
    "soft-linear": Method(_of(soften, method="linear"), "scores", _IOU, 0.001),
    "soft-gaussian": Method(_of(soften, method="gaussian"), "scores", _SIGMA, 0.001),
    "diou": Method(select, "nothing", _IOU, overlap="diou"),
    "matrix-linear": Method(_of(decay_all, method="linear"), "scores", frozenset(), 0.0),
    "matrix-gaussian": Method(_of(decay_all, method="gaussian"), "scores", _SIGMA, 0.0),
    "fast": Method(_of(select_in_rounds, max_rounds=1), "nothing", _IOU),
    "cluster": Method(select_in_rounds, "nothing", _IOU),
    "greedy-nmm": Method(_of(merge, transitive=False), "boxes", _IOU | _OVERLAP),
    "nmm": Method(_of(merge, transitive=True), "boxes", _IOU | _OVERLAP),
}
"""The methods by name; a name with a dash fixes the method of a function."""


class GroupOptions(TypedDict, total=False):
    """Options of :func:`nms_detections` that say who meets whom and how many stay."""

    max_per_group: int | None
    max_per_image: int | None
    class_agnostic: bool
    class_groups: Iterable[Collection[Id]] | None
    pixel_offset: float


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
) -> Suppression:
    """Suppress over a whole data set.

    Parameters
    ----------
    detections : Detections
        Of any number of images and classes.
    method : str, default "hard"
        A name of :data:`METHODS`: ``hard``, ``diou``, ``fast`` and ``cluster`` drop; ``soft-linear``,
        ``soft-gaussian``, ``matrix-linear`` and ``matrix-gaussian`` lower scores; ``greedy-nmm`` and ``nmm``
        merge boxes.
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

    Returns
    -------
    Suppression
        A named tuple ``(indices, scores, boxes, changes)``; its ``apply`` gives the table that is left.

    Raises
    ------
    InputError
        When a method is unknown, an option is missing or out of range, a class is unknown or in two groups,
        or scores are negative where they are to be lowered.

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
    chosen = check_method(method, iou_threshold=iou_threshold, overlap=overlap)
    for name, value in (("iou_threshold", iou_threshold), ("sigma", sigma)):
        if value is not None and name not in chosen.reads:
            warnings.warn(
                f"{name} {value} has no effect with method {method!r}; it is {_readers(name)}.",
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
    )
    setting = Setting(method, iou_threshold, sigma, score_threshold, overlap)
    return suppressor.suppress(setting, suppressor.ranked(setting))


class Setting(NamedTuple):
    """A method and what it reads; see :func:`nms_detections`."""

    method: str
    iou_threshold: float | None = None
    sigma: float | None = None
    score_threshold: float | None = None
    overlap: Literal["iou", "ios"] = "iou"


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
    ) -> None:
        self._caps = [
            None if cap is None else _validate.whole_number(cap, 1, name=name)
            for cap, name in ((max_per_group, "max_per_group"), (max_per_image, "max_per_image"))
        ]
        self._detections, self._pixel_offset = detections, pixel_offset
        self._group = _groups(detections, class_agnostic=class_agnostic, class_groups=class_groups)

    def ranked(self, setting: Setting) -> Ranked:
        """Check and rank the detections as a setting needs them."""
        return prepare(
            self._detections.boxes,
            self._detections.scores,
            self._group,
            pixel_offset=self._pixel_offset,
            overlap=_measured(setting),
            score_threshold=_floor(setting),
        )

    def shared(self, settings: Iterable[Setting]) -> dict[Setting, Ranked]:
        """Rank the detections for many settings; those that can share ranks and overlapping pairs."""
        alike: dict[tuple[object, ...], list[Setting]] = {}
        for setting in settings:
            reads_iou = "iou_threshold" in METHODS[setting.method].reads
            alike.setdefault((_measured(setting), _floor(setting), reads_iou), []).append(setting)
        found: dict[Setting, Ranked] = {}
        for some in alike.values():
            ranked = self.ranked(some[0])
            if len(some) > 1:
                ranked = share_pairs(ranked, min(setting.iou_threshold or 0.0 for setting in some))
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
            options["score_threshold"] = _floor(setting)
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
                few = _first_of_each(of[indices], cap)
                indices, scores, boxes = indices[few], scores[few], boxes[few]
        return Suppression(indices, scores, boxes, method.changes)


def _measured(setting: Setting) -> Overlap:
    method = METHODS[setting.method]
    return setting.overlap if "overlap" in method.reads else method.overlap


def _floor(setting: Setting) -> float | None:
    """Score below which detections take no part."""
    return (
        METHODS[setting.method].score_threshold
        if setting.score_threshold is None
        else setting.score_threshold
    )


def check_method(method: str, *, iou_threshold: float | None, overlap: str = "iou") -> Method:
    """Look a method up and check that it can do what is asked.

    Raises
    ------
    InputError
        When the method is unknown, needs a threshold, or measures no such overlap.
    """
    chosen = METHODS[_validate.one_of(method, list(METHODS), name="method")]
    _validate.one_of(overlap, ("iou", "ios"), name="overlap")
    if "iou_threshold" in chosen.reads and iou_threshold is None:
        raise InputError(_validate.message("iou_threshold", f"be given with method {method!r}", got="None"))
    if overlap != "iou" and "overlap" not in chosen.reads:
        raise InputError(
            _validate.message(
                "overlap", f"be 'iou' with method {method!r}", got=repr(overlap), cause=_readers("overlap")
            )
        )
    return chosen


def _readers(option: str) -> str:
    return f"read by {', '.join(name for name, method in METHODS.items() if option in method.reads)}"


def _groups(
    detections: Detections, *, class_agnostic: bool, class_groups: Iterable[Collection[Id]] | None
) -> IndexArray:
    """Group of each detection, [D]."""
    image = detections.image.astype(np.int64)
    if class_agnostic:
        if class_groups is not None:
            raise InputError(
                _validate.message("class_groups", "be left out with class_agnostic", got="both of them")
            )
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
            raise InputError(
                _validate.message("class_groups", "be a list of lists of classes", got=repr(group))
            )
        labels = list(group)
        rows = categories.rows_by_id_or_name(labels).tolist()
        for label, row in zip(labels, rows, strict=True):
            if row < 0:
                known = [*categories.names.tolist(), *map(str, categories.ids.tolist())]
                raise InputError(
                    _validate.message(
                        "a class of a group",
                        "occur in the detections",
                        got=repr(label),
                        cause=_validate.did_you_mean(label, dict.fromkeys(known)),
                    )
                )
            if row in named:
                raise InputError(_validate.message("a class", "be in one group", got=f"{label!r} twice"))
            named.add(row)
            of_class[row] = rows[0]
    return of_class


def _first_of_each(of: NDArray[Any], most: int) -> IndexArray:
    """Positions of the first ``most`` entries of each value, in their order."""
    order = np.argsort(of, kind="stable")
    values = of[order]
    place = np.arange(len(of)) - np.searchsorted(values, values, side="left")
    return np.sort(order[place < most])
