"""Define the two tables from which everything is computed: ground truth and detections.

Tables have columns (NumPy arrays), which are checked once and then read-only. Loaders record facts
(``crowd``, ``difficult``, ``area``); protocols interpret them.

Conventions
-----------
- ``image`` and ``category`` are rows of :class:`~boxscore.data.vocabulary.Images` and
  :class:`~boxscore.data.vocabulary.Categories`. Rows are in file order, which affects results: it breaks ties
  between equal scores.
- Boxes are float64 pixels: corners ``x1, y1, x2, y2`` in ``boxes``, widths and heights in ``sizes``. Both are
  stored, because neither reproduces the other exactly: COCO files have sizes, VOC files have corners.
  Fractions are kept if image sizes are unknown.
- A table with rotated boxes also has their upright bounding boxes.
- Masks and keypoints are read from the file lazily.
- Undefined values are NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.lazy import shortcut
from boxscore._utils.records import record
from boxscore._utils.text import counted, html_lines, printable, short_list
from boxscore.data.base import BaseTable
from boxscore.data.boxes import BoxFormat
from boxscore.data.building import (
    CategoriesLike,
    ImagesLike,
    built_columns,
    vocabulary_columns,
)
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, Schema
from boxscore.data.scores import no_scores
from boxscore.data.vocabulary import Id

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Self

    from boxscore.data.column_names import ColumnMap


OBJECTS = "boxscore.extensions.data_tools.samples"
"""The extension that builds tables from the outputs of detectors and data loaders."""

ClassNames = Mapping[int, str] | Sequence[str]
"""Class names by number, or in order of the numbers from 0."""


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class BoxTable(BaseTable):
    """Base class of both tables: display, and conversion to and from DataFrames."""

    def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Convert the table to a DataFrame with one row per object or detection, without loss.

        The columns are ``annotation_id`` (ground truth), ``image_id``, ``category_id``, ``class``,
        ``x1 .. y2``, ``w, h``, then ``area`` and flags, or ``score``; if present, ``rotated`` (five numbers
        each), ``segmentation`` and ``keypoints`` (as in COCO files; masks of several kinds as JSON text, for
        Parquet); and user columns. Values of the whole table are in ``frame.attrs``. Convert images and
        classes with ``table.images.to_pandas()`` and
        ``table.categories.to_pandas()``.

        Parameters
        ----------
        columns : sequence of str, optional
            Only these columns, in this order.

        Returns
        -------
        DataFrame

        Raises
        ------
        InputError
            If a user column has the name of a table column or more than one number per row, or a selected
            column is unknown.
        """
        from boxscore.data.frames import frame_of

        return frame_of(self, columns)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        *,
        box_format: BoxFormat | None = None,
        images: ImagesLike | pd.DataFrame | None = None,
        categories: CategoriesLike | pd.DataFrame | None = None,
        columns: Mapping[str, str] | ColumnMap | None = None,
    ) -> Self:
        """Build a table from a DataFrame with the columns of :meth:`to_pandas`, or with other common names.

        Required columns are ``image_id``, ``category_id`` or ``class``, ``x1, y1, x2, y2`` or ``x, y, w, h``,
        and for detections with scores, ``score``. If they are missing, common names (``filename``, ``label``,
        ``xmin``, ``bbox``, ...) are recognized as in files. Columns with other names become user columns.

        Parameters
        ----------
        frame : DataFrame, or any table with the Arrow interface (``__arrow_c_stream__``)
            From pandas, or from Polars, DuckDB or Arrow, which require pyarrow.
        box_format : {"xyxy", "xywh", "cxcywh"}, optional
            The form of boxes in a single column, or whether ``x, y`` with ``w, h`` is the top left corner
            (the default) or the center.
        images, categories : optional
            As for ``from_arrays``, or DataFrames of these libraries, as from ``images.to_pandas()`` and
            ``categories.to_pandas()``.
        columns : mapping of str to str, optional
            The roles of columns, if names do not show them: ``{"image": "photo", "class": "kind"}``.

        Returns
        -------
        GroundTruth or Detections

        Raises
        ------
        InputError
            If a required column is missing, ``w`` and ``h`` do not match the corners, or a row is invalid for
            ``from_arrays``.
        """
        from boxscore.data.frames import columns_of

        return cls(**columns_of(cls.schema, frame, images, categories, box_format, columns))

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    def __repr__(self) -> str:
        noun = {"ground truth": "object", "detections": "detection"}[self.schema.name]
        lines = [
            f"{type(self).__name__}: {counted(len(self), noun)}, {counted(len(self.images), 'image')}, "
            f"{counted(len(self.categories), 'class')}",
            f"classes: {short_list(self.categories.names)}",
        ]
        names = [
            column.name for column in self.schema.instances if column.form != "counts" and not column.plain
        ]
        read = [name for name in names if self.instances.is_read(name)]
        also = [name for name in read if self.instances[name] is not None] + list(self.columns)
        lines += self._counts()
        if also:
            lines.append(f"columns: {short_list(also)}")
        return "\n  ".join([*lines, f"source: {printable(self.source)}"])

    def _counts(self) -> list[str]:
        return []


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class GroundTruth(BoxTable):
    """Annotated objects, one per row, in file order.

    Attributes
    ----------
    ids : ndarray, [G]
        Annotation ids, or row numbers if the data set does not define ids.
    area : ndarray of float64, [G]
        The area in square pixels as given in the data set (COCO: of the mask), else width times height.
    crowd, difficult, ignore, group : ndarray of bool, [G]
        Flags as given in the data set; a group is one box around several objects (Open Images).
    image_labels : ImageLabels or None
        Image-level labels of the data set (LVIS, Open Images).
    keypoint_count : ndarray of int64, [G], or None
        Number of labeled keypoints, as given in the data set.

    See Also
    --------
    BaseTable : the columns that both tables have.
    """

    schema: ClassVar[Schema] = GROUND_TRUTH

    ids: NDArray[Any]
    area: FloatArray
    crowd: BoolArray
    difficult: BoolArray
    ignore: BoolArray
    group: BoolArray
    image_labels: Any
    if TYPE_CHECKING:
        keypoint_count: NDArray[np.int64] | None = None

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
        group: ArrayLike | None = None,
        rotated: ArrayLike | None = None,
        quadrilaterals: ArrayLike | None = None,
        masks: Iterable[Any] | None = None,
        keypoints: ArrayLike | None = None,
        keypoint_count: ArrayLike | None = None,
        ids: Sequence[Id] | NDArray[Any] | None = None,
        images: ImagesLike | None = None,
        categories: CategoriesLike | None = None,
        image_labels: Any = None,
        columns: Mapping[str, ArrayLike] | None = None,
        source: str = "arrays",
        place: Place | None = None,
    ) -> GroundTruth:
        """Build a table from arrays, one row per object.

        Parameters
        ----------
        image_ids, category_ids : array_like, [G]
            Integers or strings.
        boxes : array_like, [G, 4], or None
            In pixels. None: derive boxes from the corners, rotated boxes, masks or keypoints.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO files use ``xywh``.
        area : array_like, [G], optional
            In square pixels; by default width times height, of the rotated boxes if given.
        crowd, difficult, ignore, group : array_like of bool, [G], optional
            False by default.
        rotated : array_like, [G, 5], optional
            ``cx, cy, w, h, angle``; the angle in radians, from x to y (``-numpy.deg2rad`` of degrees
            counter-clockwise).
        quadrilaterals : array_like, [G, 8], optional
            Four corners in order, ``x1, y1, ..., x4, y4``.
        masks : sequence, [G], optional
            Polygons, RLEs or binary arrays: see :class:`~boxscore.Masks`.
        keypoints : array_like, [G, J, 3], optional
            x, y and visibility; a keypoint is labeled if its visibility is positive.
        keypoint_count : array_like of int, [G], optional
            ``num_keypoints`` in COCO; counted by default.
        ids : array_like, [G], optional
            Annotation ids; 1, 2, ... by default.
        images : iterable of ids or Images, optional
            All evaluated images, including those without objects, where all detections are false positives.
            By default, the images that occur.
        categories : mapping of id to name, iterable of ids, or Categories, optional
            The classes. By default, those that occur.
        image_labels : ImageLabels, optional
            Image-level labels, with rows of ``images`` and ``categories``.
        columns : mapping of str to array_like, optional
            Additional columns to slice by.
        source : str, default "arrays"
            Name of the data in messages.
        place : callable, optional
            Returns the place of row ``i`` for messages.

        Returns
        -------
        GroundTruth

        Raises
        ------
        InputError
            If lengths differ, an id is unknown, or a box is not finite or has a negative side.

        Examples
        --------
        >>> truth = GroundTruth.from_arrays([1, 2], ["cat", "dog"], [[0, 0, 10, 10], [5, 5, 9, 9]])
        >>> len(truth), truth.categories.names.tolist(), truth.area.tolist()
        (2, ['cat', 'dog'], [100.0, 16.0])
        """
        given = {
            "ids": ids,
            "area": area,
            "crowd": crowd,
            "difficult": difficult,
            "ignore": ignore,
            "group": group,
            "rotated": rotated,
            "quadrilaterals": quadrilaterals,
            "masks": masks,
            "keypoints": keypoints,
            "keypoint_count": keypoint_count,
        }
        vocabularies = image_ids, category_ids, images, categories
        table = _build(cls.schema, *vocabularies, boxes, box_format, given, columns, source, place)
        return cls(**table, image_labels=image_labels, source=source)

    @classmethod
    def from_targets(
        cls,
        targets: Iterable[Any],
        *,
        image_ids: Iterable[Id] | None = None,
        class_names: ClassNames | None = None,
        box_format: BoxFormat = "xyxy",
        images: ImagesLike | None = None,
        categories: CategoriesLike | None = None,
        source: str = "targets",
    ) -> GroundTruth:
        """Build a table from the targets of a training loop, one per image.

        Parameters
        ----------
        targets : iterable
            One item per image: a mapping as in torchvision (``boxes``, ``labels`` and flags), or an object of
            torchvision, Hugging Face, ultralytics, supervision, detectron2, MMDetection or KerasCV. These are
            recognized by their attributes, without importing the library. A mapping of arrays with an image
            axis, as returned by Keras models, is split by image.
        image_ids : iterable of int or str, optional
            The image of each item. By default, taken from the items (``image_id``, the file name of an
            ultralytics ``path``, ``img_id`` of MMDetection).
        class_names : sequence of str or mapping of int to str, optional
            Class names, in order of the class numbers from 0, or by number. Classes are then identified by
            name.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            The form of boxes in plain mappings; that of library objects is known.
        images, categories : optional
            As for :meth:`from_arrays`. With named categories, class names are converted to their ids; if
            only one of the two tables has names, pass its categories to the other.
        source : str
            Name of the data in messages.

        Returns
        -------
        GroundTruth

        Raises
        ------
        InputError
            If an item has an unknown type or is invalid for :class:`~boxscore.Evaluator`, image ids are
            missing, or an image occurs twice.

        Examples
        --------
        >>> targets = [{"image_id": 7, "boxes": [[0, 0, 10, 10]], "labels": ["cat"]}]
        >>> len(GroundTruth.from_targets(targets))
        1
        """
        columns = shortcut(OBJECTS, "table_of_objects")(
            cls.schema,
            targets,
            image_ids=image_ids,
            class_names=class_names,
            box_format=box_format,
            images=images,
            categories=categories,
            source=source,
        )
        return cls(**columns)

    def _counts(self) -> list[str]:
        flags = ("crowd", "difficult", "ignore", "group")
        counts = [f"{int(getattr(self, name).sum()):,} {name}" for name in flags if getattr(self, name).any()]
        lines = [f"flags: {', '.join(counts)}"] if counts else []
        labels = self.image_labels
        return lines if labels is None else [*lines, f"image labels: {repr(labels).partition(': ')[2]}"]


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class Detections(BoxTable):
    """Detections, one per row, in file order.

    Attributes
    ----------
    scored : bool
        Whether the detections have scores; either all or none have one.
    scores : ndarray of float64, [D]
        Confidence: any finite number, higher is more certain. Access raises an error if scores are missing.
    boxes_given : bool
        Whether the results had boxes; otherwise they are derived from masks or keypoints.
    left_out : mapping of str to int
        Counts of detections that were dropped because the ground truth does not have their class, by label.
    answers : mapping of str to object
        How the answers of a language model were read: ``coordinates``, the reason (``because``), ``counts``,
        the ``first`` image of each kind, and ``unknown_labels``. Empty for other results.

    See Also
    --------
    BaseTable : the columns that both tables have.
    """

    schema: ClassVar[Schema] = DETECTIONS

    boxes_given: bool
    left_out: Mapping[str, int]
    answers: Mapping[str, Any]

    if TYPE_CHECKING:
        scores: FloatArray
    else:

        @property
        def scores(self) -> FloatArray:
            """Confidence of each detection, [D]; raises if scores are missing."""
            scores = self.instances["scores"]
            if scores is None:
                raise no_scores(self.source)
            return scores

    @property
    def given_scores(self) -> FloatArray | None:
        """The scores, [D], or None."""
        scores: FloatArray | None = self.instances["scores"]
        return scores

    @property
    def scored(self) -> bool:
        """Whether the detections have scores."""
        return self.given_scores is not None

    def without_scores(self) -> Detections:
        """Return the detections without scores: boxes to count, not to rank."""
        return self.replaced(scores=None)

    @classmethod
    def from_arrays(
        cls,
        image_ids: Sequence[Id] | NDArray[Any],
        category_ids: Sequence[Id] | NDArray[Any],
        boxes: ArrayLike | None,
        scores: ArrayLike | None = None,
        *,
        box_format: BoxFormat = "xyxy",
        rotated: ArrayLike | None = None,
        quadrilaterals: ArrayLike | None = None,
        masks: Iterable[Any] | None = None,
        keypoints: ArrayLike | None = None,
        images: ImagesLike | None = None,
        categories: CategoriesLike | None = None,
        columns: Mapping[str, ArrayLike] | None = None,
        source: str = "arrays",
        place: Place | None = None,
    ) -> Detections:
        """Build a table from arrays, one row per detection.

        Parameters
        ----------
        image_ids, category_ids : array_like, [D]
            Integers or strings, as in the ground truth.
        boxes : array_like, [D, 4], or None
            In pixels. None: derive boxes from the corners, rotated boxes, masks or keypoints.
        scores : array_like, [D], optional
            Finite numbers. Omit them if the detector does not return scores, such as a language model.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO results files use ``xywh``.
        rotated : array_like, [D, 5], optional
        quadrilaterals : array_like, [D, 8], optional
            As in :meth:`GroundTruth.from_arrays`.
        masks : sequence, [D], optional
            Polygons, RLEs or binary arrays: see :class:`~boxscore.Masks`.
        keypoints : array_like, [D, J, 3], optional
            x and y in pixels; the third number is ignored.
        images, categories : optional
            As in :meth:`GroundTruth.from_arrays`; pass those of the ground truth to reject unknown ids.
        columns : mapping of str to array_like, optional
            Additional columns.
        source, place
            As in :meth:`GroundTruth.from_arrays`.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            If lengths differ, an id is unknown, a box or score is not finite, a side is negative, or only
            some detections have a score.

        Examples
        --------
        >>> len(Detections.from_arrays([1], [7], [[0, 0, 10, 10]], [0.9]))
        1
        >>> Detections.from_arrays([1], [7], [[0, 0, 10, 10]]).scored
        False
        """
        given = {
            "scores": scores,
            "rotated": rotated,
            "quadrilaterals": quadrilaterals,
            "masks": masks,
            "keypoints": keypoints,
        }
        vocabularies = image_ids, category_ids, images, categories
        table = _build(cls.schema, *vocabularies, boxes, box_format, given, columns, source, place)
        return cls(
            **table,
            boxes_given=any(column is not None for column in (boxes, rotated, quadrilaterals)),
            source=source,
        )

    @classmethod
    def from_predictions(
        cls,
        predictions: Iterable[Any],
        *,
        image_ids: Iterable[Id] | None = None,
        class_names: ClassNames | None = None,
        box_format: BoxFormat = "xyxy",
        images: ImagesLike | None = None,
        categories: CategoriesLike | None = None,
        source: str = "predictions",
    ) -> Detections:
        """Build a table from the outputs of a model, one per image.

        Parameters
        ----------
        predictions : iterable
            One item per image: a mapping as in torchvision (``boxes``, ``labels`` and, if the model returns
            them, ``scores``), or an object of a library; see :meth:`GroundTruth.from_targets`.
        image_ids, class_names, box_format, images, categories, source : optional
            As for :meth:`GroundTruth.from_targets`.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            If an item has an unknown type or is invalid for :class:`~boxscore.Evaluator`, image ids are
            missing, or an image occurs twice.

        Examples
        --------
        >>> cats = [{"score": 0.9, "label": "cat", "box": {"xmin": 0, "ymin": 0, "xmax": 10, "ymax": 10}}]
        >>> table = Detections.from_predictions([cats, []], image_ids=["a.jpg", "b.jpg"])
        >>> len(table), table.images.ids.tolist(), table.categories.names.tolist()
        (1, ['a.jpg', 'b.jpg'], ['cat'])
        """
        columns = shortcut(OBJECTS, "table_of_objects")(
            cls.schema,
            predictions,
            image_ids=image_ids,
            class_names=class_names,
            box_format=box_format,
            images=images,
            categories=categories,
            source=source,
        )
        return cls(**columns)

    def _counts(self) -> list[str]:
        lines = [] if self.scored else ["scores: none"]
        if len(self) and self.scored:
            lines.append(f"scores: {self.scores.min():.4g} to {self.scores.max():.4g}")
        if self.left_out:
            lines.append(f"left out: {sum(self.left_out.values()):,}, of classes the ground truth lacks")
        return lines


def _build(
    schema: Schema,
    image_ids: Sequence[Id] | NDArray[Any],
    category_ids: Sequence[Id] | NDArray[Any],
    images: ImagesLike | None,
    categories: CategoriesLike | None,
    boxes: ArrayLike | None,
    box_format: BoxFormat,
    given: Mapping[str, Any],
    columns: Mapping[str, ArrayLike] | None,
    source: str,
    place: Place | None,
) -> dict[str, Any]:
    """Return the columns of a table built from arrays."""
    place = place or (lambda row: f"row {row} of {source}")
    count = None if boxes is None else len(checks.float_array(boxes, name="boxes", columns=4))
    rows = vocabulary_columns(
        image_ids, category_ids, images, categories, count=count, of=f"{schema.noun} boxes", place=place
    )
    return built_columns(
        schema, rows, boxes, box_format=box_format, given=given, columns=columns, place=place
    )
