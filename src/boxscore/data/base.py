"""Define what both tables have: frozen columns, instance columns that are read lazily, and taking rows."""

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
    """What a table knows of its instance masks, ``boxscore.Masks``: rows that are rasterised when needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[Any] | slice) -> Self: ...

    @property
    def given(self) -> list[Any]:
        """The masks in the forms in which they were given, [N]; arrays as RLEs."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Flags of the rows without a mask, [N]."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Height and width of each mask in pixels, [N, 2]; -1 where not known."""

    @property
    def area(self) -> FloatArray:
        """Pixels of each mask, [N] float64."""

    @property
    def boxes(self) -> FloatArray:
        """Box ``x1, y1, x2, y2`` around each mask, [N, 4] float64; all 0 for an empty mask."""

    def codes(self) -> list[dict[str, Any]]:
        """Return each mask as a compressed RLE."""

    def arrays(self) -> list[NDArray[np.bool_]]:
        """Decode each mask, [H, W] bool."""


@record(frozen=True, eq=False, kw_only=True, init=False, repr=False)
class BaseTable:
    """The columns of both tables: rows of boxes, each in an image and of a category.

    ``table[mask]``, ``table[a:b]`` and ``table[rows]`` are tables of these rows.

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
    columns : mapping of str to ndarray, [N] each
        Anything else (``truncated``), for slicing.
    rotated : ndarray of float64, [N, 5], or None
        Rotated boxes ``cx, cy, w, h, angle``: centre and size in pixels, and the angle in radians by which
        the width axis is rotated from x towards y. ``boxes`` are then the upright boxes around them.
    quadrilaterals : ndarray of float64, [N, 8], or None
        Four corners ``x1, y1, ..., x4, y4`` in pixels, in order, as the file gave them. ``boxes`` are then
        the upright boxes around them.
    masks : boxscore.Masks, [N], or None
        Instance masks, rasterised when first needed. Those of a file are read then too.
    keypoints : ndarray of float64, [N, J, 3], or None
        x, y in pixels, and visibility. Read when first needed, as masks are.
    units : {"pixels", "fractions"}
        Of all coordinates. Fractions of the image's size only where that size is unknown.
    source : str
        Where the table came from, for messages.
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
    if TYPE_CHECKING:  # no fields at run time: dataclasses.replace would read them from the file
        rotated: FloatArray | None = None
        quadrilaterals: FloatArray | None = None
        masks: MaskColumn | None = None
        keypoints: FloatArray | None = None

    def __init__(self, **given: Any) -> None:
        """Take columns without a check; ``from_arrays`` checks what it is given."""
        # Instance columns may be given one by one, or lazily together.
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
        # A missing or unknown column is a mistake of our code, so it is a TypeError.
        fields = {field.name for field in dataclasses.fields(self)}
        if fields != set(values):
            wrong = ", ".join(sorted(fields ^ set(values)))
            raise TypeError(f"{type(self).__name__}() has missing or unknown columns: {wrong}")
        # Boxes that are not there are made when they are first asked for.
        if values["boxes"] is None:
            del values["boxes"], values["sizes"]
        self.__dict__.update(_frozen(values))

    if not TYPE_CHECKING:  # with it, a table would have every attribute that a typed caller asks for

        def __getattr__(self, name: str) -> Any:
            if "instances" in self.__dict__:
                if name in self.instances:
                    return self.instances[name]
                if name in ("boxes", "sizes"):
                    boxes, sizes = boxes_around(self.schema, self.instances)
                    self.__dict__.update(boxes=read_only(boxes), sizes=read_only(sizes))
                    return self.__dict__[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Make the arrays read-only again, which pickling undoes."""
        self.__dict__.update(_frozen(state))

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
            When a mask is not as long as the table, or rows are neither a mask nor whole numbers.
        """
        at = positions(rows, len(self))
        computed = self.__dict__  # without boxes that are not computed yet
        needed = {
            column.name: np.take(computed[column.name], at, axis=0) if column.name in computed else None
            for column in self.schema.needed
        }
        columns = {name: column[at] for name, column in self.columns.items()}
        return self.replaced(**needed, columns=columns, instances=self.instances.take(at))

    def replaced(self, **columns: Any) -> Self:
        """Return the table with other columns in place of some; nothing is checked."""
        shapes = {column.name for column in self.schema.instances if not column.plain}
        if "boxes" not in self.__dict__ and not {"boxes", "instances", *shapes} & {*columns}:
            columns = {**columns, "boxes": None, "sizes": None}  # still those around the same masks
        return dataclasses.replace(self, **columns)

    def hold(self, name: str, column: NDArray[Any]) -> None:
        """Hold equal values in place of a column in memory, such as a view of a larger array."""
        if name in self.instances:
            self.instances.hold(name, column)
        else:
            self.__dict__[name] = read_only(column)


def _frozen(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns with read-only arrays."""
    frozen = {
        name: read_only(value) if isinstance(value, np.ndarray) else value for name, value in values.items()
    }
    return {**frozen, "columns": {name: read_only(column) for name, column in values["columns"].items()}}


def neighbours(arrays: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Return arrays that lie one after the other as one, without a copy; None if they do not."""
    room = arrays[0].base
    if room is None or any(array.base is not room or not array.flags.c_contiguous for array in arrays):
        return None
    place = [array.__array_interface__["data"][0] for array in arrays]
    if any(
        here + array.nbytes != after for here, array, after in zip(place, arrays, place[1:], strict=False)
    ):
        return None
    row = room.strides[0]
    if not row:  # rows without a value
        return None
    start = (place[0] - room.__array_interface__["data"][0]) // row
    whole: NDArray[Any] = room[start : start + sum(map(len, arrays))]
    return whole
