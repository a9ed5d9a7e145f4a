"""Define the base class of both tables: read-only columns, lazy instance columns, and row selection."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import record
from boxscore.data.building import boxes_around
from boxscore.data.lazy import LazyColumns
from boxscore.data.schema import Schema
from boxscore.data.vocabulary import Categories, Images, positions, read_only

if TYPE_CHECKING:
    from typing_extensions import Self

RowArray = NDArray[np.int32]


class MaskColumn(Protocol):
    """Interface of a column of instance masks (``boxscore.Masks``), which are rasterized lazily."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[Any] | slice) -> Self: ...

    @property
    def given(self) -> list[Any]:
        """The masks in their original form, [N]; arrays are converted to RLE."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Whether each row does not have a mask, [N]."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Height and width of each mask in pixels, [N, 2]; -1 if unknown."""

    @property
    def area(self) -> FloatArray:
        """Number of pixels in each mask, [N] float64."""

    @property
    def boxes(self) -> FloatArray:
        """Box ``x1, y1, x2, y2`` around each mask, [N, 4] float64; all 0 for an empty mask."""

    def codes(self) -> list[dict[str, Any]]:
        """Return each mask as a compressed RLE."""

    def arrays(self) -> list[NDArray[np.bool_]]:
        """Decode each mask, [H, W] bool."""


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class BaseTable:
    """Common base of ground truth and detections: rows of boxes, each with an image and a category.

    ``table[mask]``, ``table[a:b]`` and ``table[rows]`` select rows.

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
        Width and height in pixels, as given in the file or ``x2 - x1``.
    columns : mapping of str to ndarray, [N] each
        Additional columns (``truncated``), for slicing.
    rotated : ndarray of float64, [N, 5], or None
        Rotated boxes ``cx, cy, w, h, angle``: center and size in pixels, and the angle in radians by which
        the width axis is rotated from x to y. ``boxes`` are then their upright bounding boxes.
    quadrilaterals : ndarray of float64, [N, 8], or None
        Four corners ``x1, y1, ..., x4, y4`` in pixels, in order, as given in the file. ``boxes`` are then
        their upright bounding boxes.
    masks : boxscore.Masks, [N], or None
        Instance masks, read from the file and rasterized lazily.
    keypoints : ndarray of float64, [N, J, 3], or None
        x, y in pixels, and visibility; read from the file lazily.
    units : {"pixels", "fractions"}
        Unit of all coordinates. Fractions of the image size are only used if image sizes are unknown.
    source : str
        The origin of the table, for messages.
    """

    schema: ClassVar[Schema]

    images: Images
    categories: Categories
    image: RowArray
    category: RowArray
    boxes: FloatArray
    sizes: FloatArray
    columns: Mapping[str, NDArray[Any]]
    instances: LazyColumns
    units: str
    source: str
    if TYPE_CHECKING:  # not fields at run time, because dataclasses.replace would read them from the file
        rotated: FloatArray | None = None
        quadrilaterals: FloatArray | None = None
        masks: MaskColumn | None = None
        keypoints: FloatArray | None = None

    def __init__(self, **given: Any) -> None:
        """Initialize from columns without checks; ``from_arrays`` checks its arguments."""
        # Instance columns are given one by one, or together as lazy columns.
        schema = self.schema
        names = tuple(column.name for column in schema.instances)
        instances = given.pop("instances", None) or LazyColumns(names)
        given_instances = {name: given.pop(name) for name in names if name in given}
        values = {
            "columns": {},
            **{name: default() for name, default in schema.values.items()},
            **given,
            "instances": instances.replaced(given_instances),
        }
        # A missing or unknown column is a bug, hence a TypeError.
        fields = {field.name for field in dataclasses.fields(self)}
        if fields != set(values):
            wrong = ", ".join(sorted(fields ^ set(values)))
            raise TypeError(f"{type(self).__name__}() has missing or unknown columns: {wrong}")
        # Missing boxes and sizes are computed lazily.
        if values["boxes"] is None:
            del values["boxes"]
        if values["sizes"] is None:
            del values["sizes"]
        self.__dict__.update(_freeze(values))

    if not TYPE_CHECKING:  # a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            if "instances" in self.__dict__:
                if name in self.instances:
                    return self.instances[name]
                if name in ("boxes", "sizes"):
                    if "boxes" in self.__dict__:
                        boxes, sizes = self.boxes, self.boxes[:, 2:] - self.boxes[:, :2]
                    else:
                        boxes, sizes = boxes_around(self.schema, self.instances)
                    self.__dict__.update(boxes=read_only(boxes), sizes=read_only(sizes))
                    return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a pickle, and make its arrays read-only again."""
        self.__dict__.update(_freeze(state))

    def __len__(self) -> int:
        return len(self.image)

    def __getitem__(self, rows: slice | ArrayLike) -> Self:
        return self.take(rows)

    def take(self, rows: slice | ArrayLike) -> Self:
        """Return these rows, in this order, with the same vocabularies.

        Parameters
        ----------
        rows : slice, array_like of bool, [N], or array_like of int, [K]

        Returns
        -------
        GroundTruth or Detections

        Raises
        ------
        InputError
            If the length of a mask differs from that of the table, or rows are neither a mask nor integers.
        """
        at = positions(rows, len(self))
        computed = self.__dict__  # excludes boxes that are not computed yet
        needed = {
            column.name: np.take(computed[column.name], at, axis=0) if column.name in computed else None
            for column in self.schema.needed
        }
        columns = {name: column[at] for name, column in self.columns.items()}
        return self.replaced(**needed, columns=columns, instances=self.instances.take(at))

    def replaced(self, **columns: Any) -> Self:
        """Return a copy of the table with some columns replaced, without checks."""
        shapes = {column.name for column in self.schema.instances if not column.plain}
        if "boxes" not in self.__dict__ and not {"boxes", "instances", *shapes} & {*columns}:
            columns = {**columns, "boxes": None, "sizes": None}  # still derived from the same masks
        if "sizes" not in self.__dict__ and not {"boxes", "sizes"} & {*columns}:
            columns = {**columns, "sizes": None}  # still derived from the same boxes
        return dataclasses.replace(self, **columns)

    def drop_derived_sizes(self) -> None:
        """Drop the sizes if the boxes give the same bits, to save memory; they are computed on demand."""
        sizes, boxes = self.sizes, self.boxes
        if np.array_equal(sizes.view(np.int64), (boxes[:, 2:] - boxes[:, :2]).view(np.int64)):
            del self.__dict__["sizes"]

    def hold(self, name: str, column: NDArray[Any]) -> None:
        """Replace a column by an array of equal values, such as a view of a larger array."""
        if name in self.instances:
            self.instances.hold(name, column)
        else:
            self.__dict__[name] = read_only(column)


def _freeze(values: Mapping[str, Any]) -> dict[str, Any]:
    """Make all arrays read-only."""
    frozen = {
        name: read_only(value) if isinstance(value, np.ndarray) else value for name, value in values.items()
    }
    return {**frozen, "columns": {name: read_only(column) for name, column in values["columns"].items()}}


def neighbors(arrays: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Return arrays that are adjacent in memory as one array, without a copy; otherwise None."""
    room = arrays[0].base
    if room is None or any(array.base is not room or not array.flags.c_contiguous for array in arrays):
        return None
    place = [array.__array_interface__["data"][0] for array in arrays]
    if any(
        here + array.nbytes != after for here, array, after in zip(place, arrays, place[1:], strict=False)
    ):
        return None
    row = room.strides[0]
    if not row:  # rows of zero size
        return None
    start = (place[0] - room.__array_interface__["data"][0]) // row
    whole: NDArray[Any] = room[start : start + sum(map(len, arrays))]
    return whole
