"""The two tables everything is computed from: ground truth and detections.

Goal
----
Columns (NumPy arrays), checked once, then read-only. A loader records facts (``crowd``, ``difficult``,
``area``); the protocol decides what they mean.

Conventions
-----------
- Axis letters, here and everywhere: D detections, G ground truths, P candidate pairs, T IoU thresholds,
  A area ranges, K categories, R recall points, M detection caps.
- ``image`` and ``category`` are row numbers into :class:`~boxscore.data.vocabulary.Images` and
  :class:`~boxscore.data.vocabulary.Categories`. Row order inside a table is file order and is part of the
  answer: equal scores are taken in it.
- Boxes are float64 pixels, ``x1, y1, x2, y2``, with their widths and heights beside them in ``sizes``.
  Neither gives back the other to the last bit: COCO files give sizes, VOC files give corners.
- Undefined is NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore.data.boxes import BoxFormat
from boxscore.data.building import DIVERGED, LARGEST, checked_boxes, frame_columns, table_columns
from boxscore.data.instances import instance_columns
from boxscore.data.masks import MaskLike, Masks
from boxscore.data.vocabulary import Categories, Id, Images, as_ids, read_only
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self, Unpack

    from boxscore.suppression.suppressing import NmsOptions

__all__ = ["BoxTable", "Detections", "GroundTruth"]

FloatArray = NDArray[np.float64]
RowArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class BoxTable:
    """What both tables have: rows of boxes, each in an image and of a category.

    Attributes
    ----------
    images : Images
    categories : Categories
    image : ndarray of int32, [N]
        Row number into ``images``.
    category : ndarray of int32, [N]
        Row number into ``categories``.
    boxes : ndarray of float64, [N, 4]
        ``x1, y1, x2, y2`` in pixels.
    sizes : ndarray of float64, [N, 2]
        Width and height in pixels, as the file gave them or as ``x2 - x1``.
    masks : Masks, [N], optional
        Instance masks, rasterised when first needed.
    keypoints : ndarray of float64, [N, J, 3], optional
        x, y in pixels, and visibility.
    source : str
        Where the table came from, for messages.
    """

    images: Images
    categories: Categories
    image: RowArray
    category: RowArray
    boxes: FloatArray
    sizes: FloatArray
    masks: Masks | None = None
    keypoints: FloatArray | None = None
    source: str = "arrays"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, read_only(value))

    def __len__(self) -> int:
        return len(self.image)

    def take(self, rows: NDArray[Any]) -> Self:
        """Return these rows, in this order, with the same vocabularies."""
        return dataclasses.replace(self, **self._rows(rows))

    def _rows(self, keep: NDArray[Any]) -> dict[str, Any]:
        """Every per-row column at these rows."""
        rows = np.flatnonzero(keep) if np.asarray(keep).dtype == bool else keep
        columns = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            name: value[rows] if isinstance(value, Masks) else np.take(value, rows, axis=0)
            for name, value in columns.items()
            if isinstance(value, (np.ndarray, Masks))
        }

    def _common_columns(self) -> dict[str, Any]:
        names = self.categories.names
        return {
            "image_id": self.images.ids[self.image],
            "category_id": self.categories.ids[self.category],
            "class": names[self.category],
            "x1": self.boxes[:, 0],
            "y1": self.boxes[:, 1],
            "x2": self.boxes[:, 2],
            "y2": self.boxes[:, 3],
        }


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruth(BoxTable):
    """Annotated objects, one row each, in file order.

    Attributes
    ----------
    ids : ndarray, [G]
        The annotations' own ids, or row numbers where the data set has none.
    area : ndarray of float64, [G]
        The area that the data set states (COCO: of the mask), else width times height; square pixels.
    crowd, difficult, ignore : ndarray of bool, [G]
        Flags as the data set states them.
    keypoint_count : ndarray of int64, [G], optional
        Labelled keypoints, as the data set states it.
    columns : mapping of str to ndarray, [G] each
        Anything else (``truncated``), for slicing.

    See Also
    --------
    BoxTable : the columns that both tables have.
    """

    ids: NDArray[Any]
    area: FloatArray
    crowd: BoolArray
    difficult: BoolArray
    ignore: BoolArray
    keypoint_count: NDArray[np.int64] | None = None
    columns: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        image_ids: Sequence[Id] | NDArray[Any],
        category_ids: Sequence[Id] | NDArray[Any],
        boxes: ArrayLike | None,
        *,
        box_format: BoxFormat = "xyxy",
        area: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
        difficult: ArrayLike | None = None,
        ignore: ArrayLike | None = None,
        masks: Iterable[MaskLike] | None = None,
        keypoints: ArrayLike | None = None,
        keypoint_count: ArrayLike | None = None,
        ids: Sequence[Id] | NDArray[Any] | None = None,
        images: Images | Iterable[Id] | None = None,
        categories: Categories | Mapping[Id, str] | Iterable[Id] | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
        source: str = "arrays",
        place: Place | None = None,
    ) -> GroundTruth:
        """Make a table from arrays, one row an object.

        Parameters
        ----------
        image_ids, category_ids : array_like, [G]
            Integers or strings.
        boxes : array_like, [G, 4], or None
            Pixels. None: those around the masks or keypoints.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO files hold ``xywh``.
        area : array_like, [G], optional
            Square pixels; width times height when not given.
        crowd, difficult, ignore : array_like of bool, [G], optional
            All false when not given.
        masks : sequence, [G], optional
            Polygons, run-length codes or binary arrays: see :class:`~boxscore.data.masks.Masks`.
        keypoints : array_like, [G, J, 3], optional
            x, y and visibility; labelled where that is above 0.
        keypoint_count : array_like of int, [G], optional
            COCO's ``num_keypoints``; counted when not given.
        ids : array_like, [G], optional
            The annotations' ids; 1, 2, ... when not given.
        images : iterable of ids or Images, optional
            Every image that was evaluated, also those without an object: detections in them are
            false positives. The images that occur, when not given.
        categories : mapping of id to name, iterable of ids, or Categories, optional
            The classes. Those that occur, when not given.
        columns : mapping of str to array_like, optional
            Further columns to slice by.
        source : str, default "arrays"
            Names the data in messages.
        place : callable, optional
            Names row ``i`` in messages.

        Returns
        -------
        GroundTruth

        Raises
        ------
        InputError
            When lengths differ, an id is unknown, a box is not finite or has a negative side.

        Examples
        --------
        >>> truth = GroundTruth.from_arrays([1, 2], ["cat", "dog"], [[0, 0, 10, 10], [5, 5, 9, 9]])
        >>> len(truth), truth.categories.names.tolist(), truth.area.tolist()
        (2, ['cat', 'dog'], [100.0, 16.0])
        """
        where = place or (lambda row: f"row {row} of {source}")
        base = table_columns(
            image_ids, category_ids, boxes, box_format, images, categories, name="ground truth", place=where
        )
        base |= instance_columns(base, masks, keypoints, boxes_given=boxes is not None, place=where)
        count = len(base["image"])
        areas = (
            base["sizes"][:, 0] * base["sizes"][:, 1]
            if area is None
            else np.array(checks.float_array(area, name="area"))
        )
        flags: dict[str, Any] = {
            name: np.zeros(count, dtype=bool) if value is None else np.array(value, dtype=bool)
            for name, value in (("crowd", crowd), ("difficult", difficult), ("ignore", ignore))
        }
        if keypoints is not None:
            labelled = base["keypoints"][:, :, 2] > 0
            counts = labelled.sum(axis=1) if keypoint_count is None else np.array(keypoint_count)
            checks.same_length(count, of="ground truth boxes", keypoint_count=counts)
            base["keypoint_count"] = counts.astype(np.int64)
        numbers = np.arange(1, count + 1) if ids is None else as_ids(ids, name="ids").copy()
        extra = {key: read_only(np.array(value)) for key, value in (columns or {}).items()}
        checks.same_length(count, of="ground truth boxes", area=areas, ids=numbers, **flags, **extra)
        checks.finite(areas, name="area", place=where, limit=LARGEST)
        return cls(**base, ids=numbers, area=areas, **flags, columns=extra, source=source)

    def _rows(self, keep: NDArray[Any]) -> dict[str, Any]:
        columns = {key: value[keep] for key, value in self.columns.items()}
        return {**BoxTable._rows(self, keep), "columns": columns}

    def to_pandas(self) -> pd.DataFrame:
        """One row an object: ``annotation_id, image_id, category_id, class, x1 .. y2, area``, flags."""
        import pandas as pd

        return pd.DataFrame(
            {
                "annotation_id": self.ids,
                **self._common_columns(),
                "area": self.area,
                "crowd": self.crowd,
                "difficult": self.difficult,
                "ignore": self.ignore,
                **self.columns,
            }
        )

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        images: Images | Iterable[Id] | None = None,
        categories: Categories | Mapping[Id, str] | Iterable[Id] | None = None,
    ) -> GroundTruth:
        """Make a table from a DataFrame with the columns that :meth:`to_pandas` writes.

        Needed are ``image_id``, ``category_id`` or ``class``, and ``x1, y1, x2, y2`` or ``x, y, w, h``;
        the others may be absent.

        Raises
        ------
        InputError
            When a needed column is missing, or a row breaks a rule of :meth:`from_arrays`.
        """
        needed = frame_columns(frame, categories)
        optional: dict[str, Any] = {
            name: frame[name].to_numpy() for name in ("area", "crowd", "difficult", "ignore") if name in frame
        }
        ids = frame["annotation_id"].to_numpy() if "annotation_id" in frame else None
        return cls.from_arrays(**needed, **optional, ids=ids, images=images, source="DataFrame")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Detections(BoxTable):
    """What a detector reported, one row each, in file order.

    Attributes
    ----------
    scores : ndarray of float64, [D]
        Confidence; any finite number, higher is surer.
    boxes_given : bool
        Whether the results carried boxes, or they were made from masks or keypoints.
    left_out : mapping of str to int
        Detections that were not taken in because the ground truth has no such class: label and count.

    See Also
    --------
    BoxTable : the columns that both tables have.
    """

    scores: FloatArray
    boxes_given: bool = True
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_arrays(
        cls,
        image_ids: Sequence[Id] | NDArray[Any],
        category_ids: Sequence[Id] | NDArray[Any],
        boxes: ArrayLike | None,
        scores: ArrayLike,
        *,
        box_format: BoxFormat = "xyxy",
        masks: Iterable[MaskLike] | None = None,
        keypoints: ArrayLike | None = None,
        images: Images | Iterable[Id] | None = None,
        categories: Categories | Mapping[Id, str] | Iterable[Id] | None = None,
        source: str = "arrays",
        place: Place | None = None,
    ) -> Detections:
        """Make a table from arrays, one row a detection.

        Parameters
        ----------
        image_ids, category_ids : array_like, [D]
            Integers or strings, as in the ground truth.
        boxes : array_like, [D, 4], or None
            Pixels. None: those around the masks or keypoints.
        scores : array_like, [D]
            Finite numbers.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO results files hold ``xywh``.
        masks : sequence, [D], optional
            Polygons, run-length codes or binary arrays: see :class:`~boxscore.data.masks.Masks`.
        keypoints : array_like, [D, J, 3], optional
            x and y in pixels; the third number is not read.
        images, categories : optional
            As in :meth:`GroundTruth.from_arrays`; pass the ground truth's to refuse unknown ids here.
        source, place
            Name the data and its rows in messages.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            When lengths differ, an id is unknown, a box or score is not finite, a side is negative.

        Examples
        --------
        >>> len(Detections.from_arrays([1], [7], [[0, 0, 10, 10]], [0.9]))
        1
        """
        where = place or (lambda row: f"row {row} of {source}")
        base = table_columns(
            image_ids, category_ids, boxes, box_format, images, categories, name="detections", place=where
        )
        base |= instance_columns(base, masks, keypoints, boxes_given=boxes is not None, place=where)
        confidence = np.array(checks.float_array(scores, name="scores"))
        checks.same_length(len(base["image"]), of="detection boxes", scores=confidence)
        checks.finite(confidence, name="score", place=where, limit=LARGEST, cause=DIVERGED)
        return cls(**base, scores=confidence, boxes_given=boxes is not None, source=source)

    @classmethod
    def from_rows(
        cls,
        ground_truth: GroundTruth,
        image: RowArray,
        category: RowArray,
        boxes: FloatArray | None,
        scores: FloatArray,
        *,
        box_format: BoxFormat,
        masks: Iterable[MaskLike] | None = None,
        keypoints: ArrayLike | None = None,
        left_out: Mapping[str, int],
        source: str,
        place: Place,
    ) -> Detections:
        """Make a table from row numbers into a ground truth's vocabularies; for loaders.

        Parameters
        ----------
        ground_truth : GroundTruth
            Whose vocabularies the row numbers point into.
        image, category : ndarray of int32, [D]
        boxes : ndarray of float64, [D, 4]
            The table keeps it, overwritten with corners.
        scores : ndarray of float64, [D]
        box_format : {"xyxy", "xywh", "cxcywh"}
        masks, keypoints : optional
            As in :meth:`from_arrays`.
        left_out : mapping of str to int
            Detections of unknown classes, by label.
        source : str
            Names the data in messages.
        place : callable
            Names row ``i`` in messages.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            When a box or score is not finite, or a side is negative.
        """
        checks.finite(scores, name="score", place=place, limit=LARGEST, cause=DIVERGED)
        given = np.zeros((len(image), 4)) if boxes is None else boxes
        corners, sizes = checked_boxes(given, box_format, place, cause=DIVERGED, overwrite=True)
        base: dict[str, Any] = {
            "images": ground_truth.images,
            "categories": ground_truth.categories,
            "image": image,
            "category": category,
            "boxes": corners,
            "sizes": sizes,
        }
        base |= instance_columns(base, masks, keypoints, boxes_given=boxes is not None, place=place)
        return cls(
            **base,
            scores=scores,
            boxes_given=boxes is not None,
            left_out=left_out,
            source=source,
        )

    def nms(self, **options: Unpack[NmsOptions]) -> NDArray[np.int64]:
        """Return the rows that non-maximum suppression keeps, best first, over all images and classes.

        Parameters
        ----------
        **options
            Those of :func:`boxscore.suppress`: ``method``, ``iou_threshold``,
            ``class_agnostic``, caps and so on. The method must leave scores and boxes as they are;
            :meth:`suppressed` takes every one.

        Returns
        -------
        ndarray of int64, [K]
            ``detections.take(rows)`` is the table of them.

        Raises
        ------
        InputError
            When an option breaks a rule, or the method would change scores or boxes, which rows cannot say.

        Examples
        --------
        >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10], [1, 0, 11, 10]]
        >>> found = Detections.from_arrays([7, 7, 8], ["cat", "cat", "cat"], boxes, [0.7, 0.9, 0.8])
        >>> found.nms(iou_threshold=0.5).tolist()
        [1, 2]
        """
        from boxscore.suppression.methods import METHODS
        from boxscore.suppression.suppressing import suppress

        method = options.get("method", "hard")
        if method in METHODS and METHODS[method].changes != "nothing":
            raise InputError(
                "method",
                "leave scores and boxes as they are",
                got=f"{method!r}, which changes {METHODS[method].changes}",
                cause="Detections.suppressed gives the table with the new ones",
            )
        return suppress(self, **options).indices

    def suppressed(self, **options: Unpack[NmsOptions]) -> Detections:
        """Return the table that non-maximum suppression leaves, in row order, with new scores and boxes.

        Parameters
        ----------
        **options
            Those of :func:`boxscore.suppress`.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            When an option breaks a rule.

        Examples
        --------
        >>> boxes = [[0, 0, 10, 10], [1, 0, 11, 10]]
        >>> found = Detections.from_arrays([7, 7], ["cat", "cat"], boxes, [0.7, 0.9])
        >>> found.suppressed(method="soft-linear", iou_threshold=0.5).scores.round(4).tolist()
        [0.1273, 0.9]
        """
        from boxscore.suppression.suppressing import suppress

        return suppress(self, **options).apply(self)

    def to_pandas(self) -> pd.DataFrame:
        """One row a detection: ``image_id, category_id, class, x1, y1, x2, y2, score``."""
        import pandas as pd

        return pd.DataFrame({**self._common_columns(), "score": self.scores})

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        images: Images | Iterable[Id] | None = None,
        categories: Categories | Mapping[Id, str] | Iterable[Id] | None = None,
    ) -> Detections:
        """Make a table from a DataFrame with the columns that :meth:`to_pandas` writes.

        Needed are ``image_id``, ``category_id`` or ``class``, ``score``, and ``x1, y1, x2, y2`` or
        ``x, y, w, h``.

        Raises
        ------
        InputError
            When a needed column is missing, or a row breaks a rule of :meth:`from_arrays`.
        """
        if "score" not in frame:
            raise InputError("detections", "have a column score", got=list(frame.columns))
        needed = frame_columns(frame, categories)
        return cls.from_arrays(**needed, scores=frame["score"].to_numpy(), images=images, source="DataFrame")
