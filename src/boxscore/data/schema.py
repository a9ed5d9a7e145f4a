"""Define the columns of all tables: dtype, shape, check, default, and names in files and DataFrames.

Tables, their constructors and copies, and files of columns all use this list, so that a column cannot be
forgotten.

Conventions
-----------
- Axis letters, here and everywhere: D detections, G ground truths, P candidate pairs, T IoU thresholds,
  A area ranges, K categories, R recall points, M max detections. N is D or G, J keypoints.
- Needed columns are arrays that every table has. Instance columns (scores, quadrilaterals, rotated boxes,
  masks, keypoints) are optional and may be read lazily. Other columns are user columns.
- Columns of extensions are declared here too, with types and checks; their functions are given as text,
  ``module:function``, and imported when a table has such a column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.lazy import loaded
from boxscore._utils.records import record
from boxscore.data.scores import score_array
from boxscore.errors import InputError

LARGEST = float(np.finfo(np.float64).max)

Form = Literal["rows", "numbers", "flags", "counts", "ids", "masks"]
_DTYPES: dict[Form, type] = {"rows": np.int32, "numbers": np.float64, "flags": np.bool_, "counts": np.int64}


@record(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
        Name of the attribute of the table.
    form : {"rows", "numbers", "flags", "counts", "ids", "masks"}
        Rows of a vocabulary (int32), float64, bool, int64, ids (int64, or object if any is a string), or
        :class:`~boxscore.Masks`.
    shape : tuple of int or None
        The axes after the rows; None for any length.
    label : str
        The word for a value in messages; by default the name.
    limit : float
        Maximum absolute value.
    cause : str
        The likely cause of a number that is not finite.
    not_negative : tuple of int, or None
        Range [start, stop) of the numbers of a row that must not be negative.
    default : object
        The default value of every row. None: the column is required or derived.
    frame : tuple of str
        Names in a DataFrame; several for a column of several numbers.
    array : callable, optional
        Converts values to an array, if rows have several representations.
    made : callable, optional
        Builds and checks a column that is not an array, from values and image sizes [N, 2].
    around, area : callable, optional
        Derive boxes [N, 4] and areas [N] of ground truth from the values, if not given.
    completed : callable, optional
        Derives a missing column of detections from their boxes.
    warning : callable, optional
        Returns a warning about suspicious values, or an empty text.
    plain : bool
        Whether an optional column has one number per row, which box files can store; DataFrames show it
        before user columns.
    """

    name: str
    form: Form
    shape: tuple[int | None, ...] = ()
    label: str = ""
    limit: float = checks.LARGEST_COORDINATE
    cause: str = ""
    not_negative: tuple[int, int] | None = None
    default: object = None
    frame: tuple[str, ...] = ()
    array: Callable[[Any], NDArray[Any]] | None = None
    made: Callable[[Any, NDArray[np.float64], Place], Any] | None = None
    around: Callable[[Any], NDArray[np.float64]] | None = None
    area: Callable[[Any], NDArray[np.float64]] | None = None
    completed: Callable[[Any], Any] | None = None
    warning: Callable[[Any], str] | None = None
    plain: bool = False

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The dtype; None if it depends on the values."""
        return np.dtype(_DTYPES[self.form]) if self.form in _DTYPES else None

    def has_form(self, dtype: np.dtype[Any], shape: tuple[int, ...], count: int) -> bool:
        """Whether a dtype and a shape are valid for ``count`` rows of this column; ids must be int64."""
        wanted = (count, *self.shape)
        fits = len(shape) == len(wanted) and all(
            have == want for have, want in zip(shape, wanted, strict=True) if want is not None
        )
        return fits and dtype == (self.dtype or np.int64)

    def form_text(self, count: int) -> str:
        """Return the form that :meth:`has_form` checks, such as ``float64 [282, 4]``."""
        sides = [str(count), *("J" if side is None else str(side) for side in self.shape)]
        return f"{self.dtype or np.dtype(np.int64)} [{', '.join(sides)}]"

    def made_of(self, values: Any, *, reuse: bool = False) -> NDArray[Any]:
        """Convert values to an array with the shape of this column, without checks of the values.

        With ``reuse``, the column may be the array itself, otherwise a copy.
        """
        made = np.asarray if reuse else np.array
        if self.array is not None:
            return made(self.array(values))
        if self.form == "numbers":
            columns = self.shape[0] if self.shape else None
            return made(checks.float_array(values, name=self.name, columns=columns))
        if self.form == "flags":
            return checks.flags(values, name=self.name)
        if self.form == "counts":
            return checks.counts(values, name=self.name)
        return np.array(values, dtype=self.dtype)

    def check(self, array: NDArray[Any], place: Place, *, cause: str = "") -> None:
        """Check the values."""
        if self.form != "numbers":
            return
        flat = array if array.ndim < 3 else array.reshape(len(array), math.prod(array.shape[1:]))
        name = self.label or self.name
        checks.finite(flat, name=name, place=place, limit=self.limit, cause=cause or self.cause)
        if self.not_negative:
            sizes = flat[:, slice(*self.not_negative)]
            checks.sizes_not_negative(sizes, name=name, place=place, cause="")


@record(frozen=True)
class Schema:
    """The columns of one kind of table.

    Attributes
    ----------
    name : str
        ``"ground truth"`` or ``"detections"``.
    noun : str
        The word for a row in messages, such as ``"detection"``.
    cause : str
        The likely cause of a coordinate that is not finite.
    needed, instances : tuple of Column
    values : mapping of str to callable
        Attributes of the whole table, each with a function that returns the default.
    """

    name: str
    noun: str
    cause: str
    needed: tuple[Column, ...]
    instances: tuple[Column, ...]
    values: Mapping[str, Callable[[], Any]]

    def column(self, name: str) -> Column:
        """Return the column with this name."""
        return next(column for column in (*self.needed, *self.instances) if column.name == name)

    @property
    def plain(self) -> tuple[Column, ...]:
        """All columns except shapes: required ones and plain optional ones."""
        return (*self.needed, *(column for column in self.instances if column.plain))

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of columns in a DataFrame, which user columns must not have."""
        columns = (*self.needed, *self.instances)
        return ("image_id", "category_id", "class", *(name for column in columns for name in column.frame))


def _import_later(function: str) -> Callable[..., Any]:
    """Return a wrapper of ``module:function``, which imports the module on the first call."""
    return lambda *given: loaded(function)(*given)


def rotated_of_corners(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert rectangles given by their corners [N, 4, 2] to rotated boxes [N, 5]."""
    rotated: NDArray[np.float64] = loaded("boxscore.extensions.oriented.rotated_boxes:rotated_of_corners")(
        corners
    )
    return rotated


_BOXES = (
    Column("image", "rows"),
    Column("category", "rows"),
    Column("boxes", "numbers", (4,), label="bbox", frame=("x1", "y1", "x2", "y2")),
    Column("sizes", "numbers", (2,), label="boxes", frame=("w", "h")),
)
_INSTANCES = (
    Column(
        "quadrilaterals",
        "numbers",
        (8,),
        label="corners",
        frame=("corners",),
        around=_import_later("boxscore.extensions.oriented.quadrilaterals:box_of_corners"),
        area=_import_later("boxscore.extensions.oriented.quadrilaterals:area_of_corners"),
    ),
    Column(
        "rotated",
        "numbers",
        (5,),
        not_negative=(2, 4),
        frame=("rotated",),
        around=_import_later("boxscore.extensions.oriented.rotated_boxes:box_of_rotated"),
        area=_import_later("boxscore.extensions.oriented.rotated_boxes:area_of_rotated"),
        warning=_import_later("boxscore.extensions.oriented.rotated_boxes:seems_degrees"),
    ),
    Column(
        "masks",
        "masks",
        frame=("segmentation",),
        made=_import_later("boxscore.extensions.masks.column:mask_column"),
        around=lambda masks: masks.boxes,
        completed=_import_later("boxscore.extensions.masks.column:with_masks"),
    ),
    Column(
        "keypoints",
        "numbers",
        (None, 3),
        frame=("keypoints",),
        array=_import_later("boxscore.extensions.keypoints.columns:keypoint_array"),
        around=_import_later("boxscore.extensions.keypoints.columns:box_of_keypoints"),
    ),
)

SHAPES_OF_RECORDS = {
    "masks": "boxscore.extensions.masks.coco_masks:MASKS",
    "keypoints": "boxscore.extensions.keypoints.coco_keypoints:KEYPOINTS",
}
"""Classes that read and write instance columns in COCO records, by column name."""

SHAPES_OF_TABLES = {
    "names": "boxscore.extensions.masks.shape_columns:shape_names",
    "read": "boxscore.extensions.masks.shape_columns:read_shapes",
    "written": "boxscore.extensions.masks.shape_columns:with_shapes",
    "masks": "boxscore.extensions.masks.open_images_masks:decoded_masks",
    "boxes": "boxscore.extensions.masks.open_images_masks:boxes_of_masks",
    "segments": "boxscore.extensions.masks.open_images_masks:with_segments",
}
"""Functions that find, read and write shapes in tables."""

SHAPES_OF_LINES = {
    "labels": "boxscore.extensions.masks.yolo_shapes:shapes_of_labels",
    "predictions": "boxscore.extensions.masks.yolo_shapes:shapes_of_predictions",
}
"""Functions that read shapes other than boxes in YOLO lines."""

GROUND_TRUTH = Schema(
    name="ground truth",
    noun="ground truth",
    cause="",
    needed=(
        Column("ids", "ids", frame=("annotation_id",)),
        *_BOXES,
        Column("area", "numbers", limit=LARGEST, frame=("area",)),
        Column("crowd", "flags", default=False, frame=("crowd",)),
        Column("difficult", "flags", default=False, frame=("difficult",)),
        Column("ignore", "flags", default=False, frame=("ignore",)),
        Column("group", "flags", default=False, frame=("group",)),
    ),
    instances=(*_INSTANCES, Column("keypoint_count", "counts", frame=("num_keypoints",))),
    values={"units": lambda: "pixels", "image_labels": lambda: None, "source": lambda: "arrays"},
)
DETECTIONS = Schema(
    name="detections",
    noun="detection",
    cause="a diverged model?",
    needed=_BOXES,
    instances=(
        Column(
            "scores",
            "numbers",
            label="score",
            limit=LARGEST,
            cause="a diverged model?",
            frame=("score",),
            array=score_array,
            plain=True,
        ),
        *_INSTANCES,
    ),
    values={
        "units": lambda: "pixels",
        "boxes_given": lambda: True,
        "left_out": dict,
        "answers": dict,
        "source": lambda: "arrays",
    },
)

LISTS_OF_IMAGES = "boxscore.extensions.federated.coco_lists"
"""The module that reads and writes lists of classes per image in COCO files."""

IMAGE_NAMES = ("image_id", "file_name", "width", "height")
"""Columns of a DataFrame of images, before user columns."""
CATEGORY_NAMES = ("category_id", "class")
"""Columns of a DataFrame of categories."""


def user_columns(columns: Mapping[str, Any] | None, count: int, *, of: str) -> dict[str, NDArray[Any]]:
    """Return copies of user columns by name; each must have ``count`` values."""
    arrays = {}
    for name, values in (columns or {}).items():
        if not isinstance(name, str):
            raise InputError("a name in columns", "be a string", got=repr(name))
        arrays[name] = np.array(checks.any_array(values, name=f"column {name}"))
        if arrays[name].ndim == 0 or len(arrays[name]) != count:
            got = f"length {len(arrays[name])}" if arrays[name].ndim else "one value"
            raise InputError(name, f"be as long as {of} ({count})", got=got)
    return arrays


def in_frame(columns: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return user columns for a DataFrame; keep Python objects, including None among texts."""
    import pandas as pd

    return {
        name: pd.Series(column, dtype=object) if column.dtype == object else column
        for name, column in columns.items()
    }


def check_one_number(name: str, column: NDArray[Any]) -> None:
    """Raise if a column has more than one value per row, which a DataFrame cannot store."""
    if column.ndim != 1:
        got = f"shape {list(column.shape)}"
        raise InputError(f"column {name}", "have one value per row to go into a DataFrame", got=got)
