"""Define the two tables everything is computed from: ground truth and detections.

Goal
----
Columns (NumPy arrays), checked once, then read-only. A loader records facts (``crowd``, ``difficult``,
``area``); the protocol decides what they mean.

Conventions
-----------
- ``image`` and ``category`` are row numbers into :class:`~boxscore.data.vocabulary.Images` and
  :class:`~boxscore.data.vocabulary.Categories`. Row order inside a table is file order and is part of the
  answer: equal scores are taken in it.
- Boxes are float64 pixels: corners ``x1, y1, x2, y2`` in ``boxes``, widths and heights in ``sizes``. If a
  file holds fractions of images of unknown size, they stay fractions. Both are stored, because neither gives
  back the other to the last bit: COCO files give sizes, VOC files give corners.
- A table with rotated boxes also has the upright boxes around them.
- Masks and keypoints of a file are read when they are first needed.
- Undefined is NaN.
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
"""The extension that makes tables of what detectors and data loaders return, image by image."""

ClassNames = Mapping[int, str] | Sequence[str]
"""Names by number, or in order from 0."""


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class BoxTable(BaseTable):
    """What both tables have in common: how they are shown, and converted to and from DataFrames."""

    def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row per object or detection, with everything that the table holds.

        ``annotation_id`` (ground truth), ``image_id``, ``category_id``, ``class``, ``x1 .. y2``, ``w, h``,
        then ``area`` and flags or ``score``, ``rotated`` (five numbers each), ``segmentation`` and
        ``keypoints`` (as COCO writes them) where there are such columns, and user columns. Values of the
        whole table are in ``frame.attrs``;
        images and classes are ``table.images.to_pandas()`` and ``table.categories.to_pandas()``.

        Parameters
        ----------
        columns : sequence of str, optional
            Only these, in this order.

        Returns
        -------
        DataFrame

        Raises
        ------
        InputError
            When a user column has the name of a column of the table, or more than one number per row, or a
            chosen column is unknown.
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
        """Make a table from a DataFrame with the columns that :meth:`to_pandas` writes, or with usual names.

        Needed are ``image_id``, ``category_id`` or ``class``, ``x1, y1, x2, y2`` or ``x, y, w, h``, and for
        detections ``score``, unless none has one; the others may be absent. Where these are missing, names
        that people use (``filename``, ``label``, ``xmin``, ``bbox``, ...) are taken as in files. Columns of
        other names become the user's own.

        Parameters
        ----------
        frame : DataFrame, or any table with Arrow's interface (``__arrow_c_stream__``)
            Of pandas; of Polars, DuckDB or Arrow, which need pyarrow.
        box_format : {"xyxy", "xywh", "cxcywh"}, optional
            What four numbers in one column are, and whether ``x, y`` beside ``w, h`` are the corner (as they
            are by default) or the centre.
        images, categories : optional
            As for ``from_arrays``, or the DataFrames that ``images.to_pandas()`` and
            ``categories.to_pandas()`` write.
        columns : mapping of str to str, optional
            Which column is what, where names do not say it: ``{"image": "photo", "class": "kind"}``.

        Returns
        -------
        GroundTruth or Detections

        Raises
        ------
        InputError
            When a needed column is missing, ``w`` and ``h`` are not those of the corners, or a row breaks a
            rule of ``from_arrays``.
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
    """Annotated objects, one row each, in file order.

    Attributes
    ----------
    ids : ndarray, [G]
        The annotations' ids, or row numbers where the data set has none.
    area : ndarray of float64, [G]
        The area that the data set states (COCO: of the mask), else width times height; square pixels.
    crowd, difficult, ignore, group : ndarray of bool, [G]
        Flags as the data set states them; a group is one box around several objects (Open Images).
    image_labels : ImageLabels or None
        What is known of classes in whole images, where the data set says so (LVIS, Open Images).
    keypoint_count : ndarray of int64, [G], or None
        Labelled keypoints, as the data set states it.

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
        """Make a table from arrays, one row per object.

        Parameters
        ----------
        image_ids, category_ids : array_like, [G]
            Integers or strings.
        boxes : array_like, [G, 4], or None
            Pixels. None: those around the corners, rotated boxes, masks or keypoints.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO files hold ``xywh``.
        area : array_like, [G], optional
            Square pixels; width times height when not given, of the rotated boxes where there are some.
        crowd, difficult, ignore, group : array_like of bool, [G], optional
            All false when not given.
        rotated : array_like, [G, 5], optional
            ``cx, cy, w, h, angle``; the angle in radians, from x towards y (``-numpy.deg2rad`` of degrees
            counter-clockwise).
        quadrilaterals : array_like, [G, 8], optional
            Four corners in order, ``x1, y1, ..., x4, y4``.
        masks : sequence, [G], optional
            Polygons, RLEs or binary arrays: see :class:`~boxscore.Masks`.
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
        image_labels : ImageLabels, optional
            Labels of whole images, with the rows of ``images`` and ``categories``.
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
        table = _built(cls.schema, *vocabularies, boxes, box_format, given, columns, source, place)
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
        """Make a table from the targets of a training loop, one per image.

        Parameters
        ----------
        targets : iterable
            One item per image: a mapping in torchvision's form (``boxes``, ``labels`` and flags), or what
            torchvision, Hugging Face, ultralytics, supervision, detectron2, MMDetection and KerasCV give.
            Attributes tell them apart; no library is imported. A mapping of arrays with an axis of images, as
            Keras models return it, is split by image.
        image_ids : iterable of int or str, optional
            The image of each item. Those of the items themselves (``image_id``, the file name of an
            ultralytics ``path``, MMDetection's ``img_id``) when not given.
        class_names : sequence of str or mapping of int to str, optional
            What the class numbers of these objects mean: names in order from 0, or by number. Classes are
            then names.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            Of plain mappings. Objects whose form is known have that form.
        images, categories : optional
            As for :meth:`from_arrays`. With categories that have names, class names become their ids;
            pass the other side's where only one side has names.
        source : str
            Names the data in messages.

        Returns
        -------
        GroundTruth

        Raises
        ------
        InputError
            When an item is no known object or breaks a rule of :class:`~boxscore.Evaluator`, images have no
            ids, or an image comes twice.

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
    """A detector's results, one row each, in file order.

    Attributes
    ----------
    scored : bool
        Whether the detections have scores; a table has all of them or none.
    scores : ndarray of float64, [D]
        Confidence; any finite number, higher means more certain. Without scores, asking for them is an error.
    boxes_given : bool
        Whether the results had boxes; if not, they were made from masks or keypoints.
    left_out : mapping of str to int
        Detections dropped because the ground truth has no such class: label and count.
    answers : mapping of str to object
        How the answers of a language model were read: ``coordinates``, what decided it (``because``),
        ``counts``, the ``first`` image of each kind, and ``unknown_labels``. Empty for other results.

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
            """Confidence of each detection, [D]; an error without scores."""
            scores = self.instances["scores"]
            if scores is None:
                raise no_scores(self.source)
            return scores

    @property
    def given_scores(self) -> FloatArray | None:
        """The scores, [D]; None without scores."""
        scores: FloatArray | None = self.instances["scores"]
        return scores

    @property
    def scored(self) -> bool:
        """Whether the detections have scores."""
        return self.given_scores is not None

    def without_scores(self) -> Detections:
        """Return the same detections without their scores, as boxes that are counted and not ranked."""
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
        """Make a table from arrays, one row per detection.

        Parameters
        ----------
        image_ids, category_ids : array_like, [D]
            Integers or strings, as in the ground truth.
        boxes : array_like, [D, 4], or None
            Pixels. None: those around the corners, rotated boxes, masks or keypoints.
        scores : array_like, [D], optional
            Finite numbers; left out where the detector gives none, as language models do.
        box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
            COCO results files hold ``xywh``.
        rotated : array_like, [D, 5], optional
        quadrilaterals : array_like, [D, 8], optional
            As in :meth:`GroundTruth.from_arrays`.
        masks : sequence, [D], optional
            Polygons, RLEs or binary arrays: see :class:`~boxscore.Masks`.
        keypoints : array_like, [D, J, 3], optional
            x and y in pixels; the third number is not read.
        images, categories : optional
            As in :meth:`GroundTruth.from_arrays`; pass the ground truth's to refuse unknown ids here.
        columns : mapping of str to array_like, optional
            Further columns.
        source, place
            Name the data and its rows in messages.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            When lengths differ, an id is unknown, a box or score is not finite, a side is negative, or some
            detections have a score and some have None.

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
        table = _built(cls.schema, *vocabularies, boxes, box_format, given, columns, source, place)
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
        """Make a table from what a model returns, one per image.

        Parameters
        ----------
        predictions : iterable
            One item per image: a mapping in torchvision's form (``boxes``, ``labels``, and ``scores`` unless
            the model gives none), or an object of a library; see :meth:`GroundTruth.from_targets`.
        image_ids, class_names, box_format, images, categories, source : optional
            As for :meth:`GroundTruth.from_targets`.

        Returns
        -------
        Detections

        Raises
        ------
        InputError
            When an item is no known object or breaks a rule of :class:`~boxscore.Evaluator`, images have no
            ids, or an image comes twice.

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


def _built(
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
    """Return the columns of a table that is made from arrays."""
    place = place or (lambda row: f"row {row} of {source}")
    count = None if boxes is None else len(checks.float_array(boxes, name="boxes", columns=4))
    rows = vocabulary_columns(
        image_ids, category_ids, images, categories, count=count, of=f"{schema.noun} boxes", place=place
    )
    return built_columns(
        schema, rows, boxes, box_format=box_format, given=given, columns=columns, place=place
    )
