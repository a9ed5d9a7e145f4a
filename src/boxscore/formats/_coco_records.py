"""Read COCO records (annotations and results) as columns.

Half a million records take a fraction of a second, in constant memory and without compiled code.

Conventions
-----------
- Text is decoded one slice at a time and converted to columns before the next slice is read. Large texts may
  be split between records and read by several processes.
- Records of numbers only, the usual case, are read by ``_packed``. Other records (text ids, null, masks) are
  read attribute by attribute.
- An id is an integer or text; ``7.0`` is 7, as in pycocotools.
- ``segmentation`` is kept as it is in the file: polygons or an RLE. ``keypoints`` are
  ``x1, y1, v1, x2, ...``; in a record without them, all are unlabeled. Both are skipped while boxes are read.
- ``[]`` for ``segmentation`` or ``keypoints`` means that there are only boxes; many programs write it.
- A ``bbox`` has four numbers, ``x, y, width, height``, or five for a rotated box: center, width, height, and
  the angle in degrees, counter-clockwise on the screen, as in detectron2. The first record decides for all.
- ``bbox`` is optional in results. As in pycocotools, the first record decides for all; without ``bbox``, the
  boxes enclose the masks, or else the keypoints.
"""

from __future__ import annotations

import abc
import functools
import itertools
import operator
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.lazy import loaded
from boxscore._utils.memory import paused_collector
from boxscore._utils.processes import Forked, Workers, worker_count
from boxscore._utils.records import NamedTuple
from boxscore.data.schema import SHAPES_OF_RECORDS
from boxscore.data.vocabulary import as_ids
from boxscore.errors import FileFormatError
from boxscore.formats import _json
from boxscore.formats._packed import numbers_of, packed_columns

if TYPE_CHECKING:
    from boxscore.data.tables import BoxTable

Box = tuple[float, float, float, float]
RotatedBox = tuple[float, float, float, float, float]
Columns = dict[str, Any]
"""Columns by name: arrays, or an object that a shape defines."""
Readers = Mapping[str, Callable[[list[Any], str], Any]]
"""A function for each column, which makes it from a list of records."""
DECODING_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
IDS = ("image_id", "category_id", "id")
FLAGS = ("iscrowd", "difficult", "ignore")
COUNTS = ("num_keypoints",)
LARGEST_FLAG = 255
EXACT = 2.0**53
"""Integers below it are exact as floats."""
PEEK_BYTES = 1 << 12
"""Size of the piece that is decoded to find the first record."""


class _Result(msgspec.Struct, gc=False):
    image_id: int | float | str
    category_id: int | float | str
    bbox: Box
    score: float


class NumericResult(msgspec.Struct, gc=False):
    """A result with numeric ids, the usual case."""

    image_id: float
    category_id: float
    bbox: Box
    score: float


class _UnscoredResult(msgspec.Struct, gc=False):
    image_id: int | float | str
    category_id: int | float | str
    bbox: Box
    score: float | None = None


class NumericUnscoredResult(msgspec.Struct, gc=False):
    """A result with numeric ids and without a score; decoding fails if it has one."""

    image_id: float
    category_id: float
    bbox: Box
    score: None = None


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | float | str
    category_id: int | float | str
    bbox: Box
    id: int | float | str | None = None
    area: float | None = None
    iscrowd: int | bool | None = 0
    difficult: int | bool | None = 0


class _NumericAnnotation(msgspec.Struct, gc=False):
    image_id: float
    category_id: float
    bbox: Box
    id: float
    area: float
    iscrowd: float = 0.0
    difficult: float = 0.0


class _NumericInstance(msgspec.Struct, gc=False):
    """Base of the numeric records that are read for a single instance column."""


class FirstRecord(msgspec.Struct):
    """The keys of the first record, which decide how all records are read."""

    bbox: Any = None
    segmentation: Any = None
    keypoints: Any = None
    num_keypoints: Any = None
    file_name: Any = None
    score: Any = None
    iscrowd: Any = None

    @property
    def scored(self) -> bool:
        """Whether scores are required: the first record has one, or it is an annotation (``iscrowd``)."""
        return self.score is not None or self.iscrowd is not None

    @property
    def names_its_file(self) -> bool:
        """Whether records have the file name of their image."""
        return isinstance(self.file_name, str)

    @property
    def sides(self) -> int:
        """Count of numbers in a box: 5 if it is rotated, else 4."""
        return 5 if isinstance(self.bbox, list) and len(self.bbox) == 5 else 4

    @property
    def instances(self) -> frozenset[str]:
        """The instance columns for which the record has a value."""
        values = {"masks": self.segmentation, "keypoints": self.keypoints}
        return frozenset(name for name, value in values.items() if value not in (None, [], ""))

    @property
    def fallback(self) -> str | None:
        """The instance column to derive boxes from; None if boxes are given or cannot be derived."""
        if self.bbox not in (None, []):
            return None
        if self.segmentation is not None:
            return "masks"
        return "keypoints" if self.keypoints is not None else None


Field = tuple[str, Any, Any]
"""A field of a record: key, type, default."""


class RecordShape(abc.ABC):
    """Read and write one kind of shape in records, such as masks.

    Attributes
    ----------
    readers : mapping of str to callable
        A function for each key, which makes its column from a list of records; keys without one become arrays
        of objects. A column that is not an array must have the methods ``take`` and ``joined``.
    """

    readers: ClassVar[Readers] = {}

    @abc.abstractmethod
    def fields(self, *, of_results: bool) -> Sequence[Field]:
        """Return the fields of a record."""

    def numeric_fields(self, first: FirstRecord, *, of_results: bool) -> Sequence[tuple[str, Any]] | None:
        """Return the key and type of each field of a numeric record; None if a value is not numeric."""
        return None

    @abc.abstractmethod
    def columns(
        self, records: Columns, image_sizes: Callable[[], FloatArray], place: Place
    ) -> dict[str, Any]:
        """Return the instance columns by name, each None if the shape does not occur."""

    @abc.abstractmethod
    def written(self, table: BoxTable) -> dict[str, list[Any]]:
        """Return the values to write for each row of a table, by key."""


def shapes_of(instances: Iterable[str]) -> list[RecordShape]:
    """Return the shapes for these instance columns."""
    return [loaded(SHAPES_OF_RECORDS[name]) for name in instances if name in SHAPES_OF_RECORDS]


class Kind(NamedTuple):
    """One kind of record, and how to convert it to columns."""

    name: str
    """The name of a record in messages, such as ``"detection"``."""
    whole: str
    """The rule for the whole array in messages: ``"a list of results"``."""
    general: type[msgspec.Struct]
    readers: Readers
    """Convert a list of ``general`` to columns."""
    numeric: type[msgspec.Struct] | None
    """The same record with float fields only; None if a field is not numeric."""
    in_arrays: bool
    """Whether all columns are arrays, which are cheap to send between processes."""


class Text(NamedTuple):
    """The text of a JSON array of records, in a file or in memory, with random access."""

    size: int
    chunks: Callable[[int, int], Iterable[bytes | memoryview]]
    whole: Callable[[], bytes]


def text_in_file(path: Path) -> Text:
    """Return the text of a file that holds a single array."""
    return Text(path.stat().st_size, functools.partial(_json.chunks_of, path), path.read_bytes)


def text_in_memory(array: msgspec.Raw) -> Text:
    """Return the text of an array that is part of a larger text in memory."""
    view = memoryview(array)

    def chunks(start: int, end: int) -> Iterator[memoryview]:
        return (view[at : min(at + _json.SLICE_BYTES, end)] for at in range(start, end, _json.SLICE_BYTES))

    return Text(len(view), chunks, lambda: bytes(view))


class Reading:
    """Read records, in several processes if the text is large; a context that ends these processes.

    Parameters
    ----------
    text : Text
    path : Path
        The source of the text, for messages.
    kind : Kind
    processes : int or "auto"
        Number of processes, including this one. Columns of Python objects are read in this one only, because
        sending them takes as long as reading them.
    other_work : float, default 0
        Other work of this process before it needs the columns, as a fraction of all work. Its chunk of the
        text is smaller accordingly.
    """

    def __init__(
        self,
        text: Text,
        path: Path,
        kind: Kind,
        *,
        processes: Workers,
        other_work: float = 0,
    ) -> None:
        # Only arrays are cheap to send between processes.
        self._text, self._path, self._kind = text, path, kind
        most = text.size // _json.PART_BYTES if kind.in_arrays else 0
        count = min(worker_count(processes), most) if most > 1 else 1
        # Give this process less of the text if it has other work; split the rest equally among the others.
        share = max(1 / count - other_work, 0.0) / (1 - other_work) if count > 1 else 1.0
        others = [(1 - share) / (count - 1)] * (count - 1) if count > 1 else []
        # Split the text between records, and start the other processes.
        self._parts = _json.parts_of(text.size, self._read, [share, *others])
        self._forked = Forked([functools.partial(self._part, part) for part in self._parts[1:]])

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._forked.close()

    def columns(self) -> Columns:
        """Finish reading and return the columns: ``bbox`` [N, 4] or [N, 5], others [N]."""
        try:
            columns = self._in_parts()
        except DECODING_ERRORS as error:
            raise _json.explain(
                error,
                self._path,
                record=self._kind.name,
                text=self._text.whole(),
                whole=(f"{self._kind.name}s", self._kind.whole),
            ) from None
        return {name: self._convert_column(name, values) for name, values in columns.items()}

    def _in_parts(self) -> Columns:
        if len(self._parts) > 1:
            try:
                first = self._part(self._parts[0])
                return concatenated([first, *self._forked.results()])
            except DECODING_ERRORS:
                pass  # a split inside a record, or an invalid file: read it whole, to locate the error
        return self._decoded(lambda: self._text.chunks(0, self._text.size), self._text.whole, self._text.size)

    def _read(self, start: int, end: int) -> bytes:
        return b"".join(self._text.chunks(start, end))

    def _part(self, part: tuple[int, int]) -> Columns:
        """Read one chunk of the text; add the closing bracket unless it is the last one."""
        start, end = part
        closing = [b"]"] if end < self._text.size else []
        chunks = lambda: itertools.chain(self._text.chunks(start, end), closing)  # noqa: E731
        return self._decoded(chunks, _refuse, end - start)

    def _decoded(
        self, chunks: Callable[[], Iterable[bytes | memoryview]], whole: Callable[[], bytes], size: int
    ) -> Columns:
        # Fast path: numeric records decode without a Python object per number.
        kind = self._kind
        if kind.numeric is not None:
            decode = msgspec.json.Decoder(list[kind.numeric]).decode  # type: ignore[name-defined]
            slices = _json.decode_records(chunks(), decode, _refuse)
            try:
                columns = self.packed(slices, kind.numeric, size / _json.SLICE_BYTES)
                # Integers below 2^53 are exact as floats; if an id is larger, read again with integers.
                if _have_exact_numbers(columns):
                    return _with_boxes(columns, kind.readers)
            except DECODING_ERRORS:
                pass  # not numeric (text, null), or invalid
        # General path: Python objects. They cannot form cycles, so pause the garbage collector.
        decode = msgspec.json.Decoder(list[kind.general]).decode  # type: ignore[name-defined]
        with paused_collector():
            pieces = (
                {name: read(records, name) for name, read in kind.readers.items()}
                for records in _json.decode_records(chunks(), decode, whole)
            )
            return self.joined(pieces)

    def packed(
        self, slices: Iterable[list[msgspec.Struct]], kind: type[msgspec.Struct], expected: float
    ) -> Columns:
        """Convert about ``expected`` slices of numeric records to columns."""
        return packed_columns(slices, kind, expected_slices=expected)

    def joined(self, slices: Iterable[Columns]) -> Columns:
        """Concatenate the columns of all slices."""
        return concatenated(list(slices))

    def _convert_column(self, name: str, values: Any) -> Any:
        """Convert a column to the dtype that tables need."""
        # On the fast path, columns are floats that represent integers exactly.
        if name in FLAGS:
            self._check_flags(name, values)
            return values.astype(bool)
        if name not in IDS:
            return values
        if values.dtype != object:
            return values.astype(np.int64)
        # On the general path, columns are objects: 7.0 is the id 7; reject other floats.
        ids = list(map(whole, values))
        for row, value in enumerate(ids):
            if isinstance(value, float):
                raise FileFormatError(
                    name,
                    "be an integer or a string",
                    got=repr(value),
                    place=f"{self._kind.name} {row} of {self._path}",
                )
        # Number all annotations from 1 if one does not have an id.
        if name == "id" and None in ids:
            return np.arange(1, len(ids) + 1)
        return as_ids(ids, name=name)

    def _check_flags(self, name: str, values: FloatArray) -> None:
        """Reject flags outside 0..255, as pycocotools does; 1 to 255 are true."""
        if not len(values) or 0 <= values.min() <= values.max() <= LARGEST_FLAG:
            return
        row = int(np.argmax((values < 0) | (values > LARGEST_FLAG)))
        place = f"{self._kind.name} {row} of {self._path}"
        raise FileFormatError(name, "be 0 or 1", got=f"{values[row]:g}", place=place)


def whole(identifier: Any) -> Any:
    """Convert ids such as ``7.0`` to integers; return others unchanged."""
    is_whole = isinstance(identifier, float) and identifier.is_integer()
    return int(identifier) if is_whole else identifier


def _refuse() -> bytes:
    raise msgspec.DecodeError("this does not decode slice by slice")


def _have_exact_numbers(columns: Columns) -> bool:
    """Whether all ids, flags and counts are integers that are exact as floats."""
    return all(
        bool((np.abs(values) < EXACT).all() and (np.trunc(values) == values).all())
        for values in (columns[name] for name in {*IDS, *FLAGS, *COUNTS} & {*columns})
    )


def concatenated(parts: Sequence[Columns]) -> Columns:
    """Concatenate the columns of several lists of records."""
    return {name: _join_columns([part[name] for part in parts]) for name in parts[0]}


def _join_columns(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], np.ndarray):
        return parts[0].joined(parts)
    if any(part.dtype == object for part in parts):
        parts = [_as_objects(part) for part in parts]
    return np.concatenate(parts)


def _as_objects(part: NDArray[Any]) -> NDArray[Any]:
    """Convert a column to dtype object, with a list per row if it is 2-D."""
    if part.ndim == 1:
        return part.astype(object)
    rows = np.empty(len(part), dtype=object)
    rows[:] = part.tolist()
    return rows


def _with_boxes(columns: Columns, readers: Readers) -> Columns:
    """Add a column of missing boxes if boxes are expected and do not occur."""
    if "bbox" in readers and "bbox" not in columns:
        columns["bbox"] = np.full((len(columns["image_id"]), 4), np.nan)
    return columns


# ---------------------------------------------------------------- records that are not numeric


def _read_ids(records: list[Any], name: str) -> NDArray[Any]:
    """Read a column of ids: int64, or object if an id is not an integer or does not fit."""
    values = list(map(operator.attrgetter(name), records))
    try:
        return numbers_of(values, "q")
    except struct.error:
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column


def _read_numbers(records: list[Any], name: str) -> NDArray[np.float64]:
    """Read a column of numbers; null becomes NaN."""
    values = list(map(operator.attrgetter(name), records))
    try:
        return numbers_of(values, "d")
    except struct.error:
        return np.array(values, dtype=np.float64)


def _read_flags(records: list[Any], name: str) -> FloatArray:
    """Read a column of flags; null becomes 0."""
    values = list(map(operator.attrgetter(name), records))
    try:
        flags: FloatArray = np.clip(numbers_of(values, "d"), -EXACT, EXACT)
        return flags
    except (struct.error, OverflowError):  # null, or too large for a float
        whole_numbers = (max(-EXACT, min(value or 0, EXACT)) for value in values)
        return np.fromiter(whole_numbers, np.float64, len(values))


def _read_boxes(records: list[Any], name: str, *, sides: int) -> FloatArray:
    """Read boxes [N, sides]."""
    flat: list[float] = []
    for record in records:
        flat += record.bbox
    return numbers_of(flat, "d").reshape(-1, sides).copy()  # the table overwrites it


def _read_objects(records: list[Any], name: str) -> NDArray[Any]:
    return np.fromiter(map(operator.attrgetter(name), records), dtype=object, count=len(records))


def _read_optional_boxes(records: list[Any], name: str, *, sides: int) -> FloatArray:
    """Read boxes [N, sides]: NaN if missing, infinite if the length is wrong."""
    missing, wrong = [np.nan] * sides, [np.inf] * sides
    if not any(map(operator.attrgetter(name), records)):
        return np.full((len(records), sides), np.nan)
    boxes = list(map(operator.attrgetter(name), records))
    rows = [wrong if box and len(box) != sides else box or missing for box in boxes]
    return np.array(rows, dtype=np.float64).reshape(-1, sides)


# ---------------------------------------------------------------- kinds of records


def annotation_kind(instances: Sequence[str], first: FirstRecord, *, with_ignore: bool = False) -> Kind:
    """Return the kind of annotations with boxes, these instance columns and optionally LVIS's ``ignore``."""
    readers: Readers = {
        "image_id": _read_ids,
        "category_id": _read_ids,
        "bbox": functools.partial(_read_boxes, sides=first.sides),
        "id": _read_ids,
        "area": _read_numbers,
        "iscrowd": _read_flags,
        "difficult": _read_flags,
    }
    if not with_ignore:
        return _kind(_Annotation, _NumericAnnotation, readers, instances, first, of_results=False)
    flag, number = ("ignore", int | bool | None, 0), ("ignore", float, 0.0)
    general = msgspec.defstruct(_Annotation.__name__, [flag], bases=(_Annotation,), gc=False)
    numeric = msgspec.defstruct(_NumericAnnotation.__name__, [number], bases=(_NumericAnnotation,), gc=False)
    return _kind(general, numeric, {**readers, "ignore": _read_flags}, instances, first, of_results=False)


def result_kind(instances: Sequence[str], first: FirstRecord, *, with_file_name: bool = False) -> Kind:
    """Return the kind of results with boxes, these instance columns and optionally file names."""
    boxes = functools.partial(_read_boxes, sides=first.sides)
    readers: Readers = {
        "image_id": _read_ids,
        "category_id": _read_ids,
        "bbox": boxes,
        "score": _read_numbers,
    }
    general: type[msgspec.Struct] = _Result if first.scored else _UnscoredResult
    numeric: type[msgspec.Struct] = NumericResult if first.scored else NumericUnscoredResult
    if not with_file_name:
        return _kind(general, numeric, readers, instances, first, of_results=True)
    file_name = [("file_name", str | None, None)]
    base = msgspec.defstruct(general.__name__, file_name, bases=(general,), gc=False)
    return _kind(base, None, {**readers, "file_name": _read_objects}, instances, first, of_results=True)


def instance_kind(instance: str, first: FirstRecord, *, of_results: bool) -> Kind:
    """Return a kind that reads one instance column only."""
    base = msgspec.defstruct("_Instance", [], gc=False)
    return _kind(base, _NumericInstance, {}, [instance], first, of_results=of_results)


def _kind(
    base: type[msgspec.Struct],
    numeric: type[msgspec.Struct] | None,
    readers: Readers,
    instances: Sequence[str],
    first: FirstRecord,
    *,
    of_results: bool,
) -> Kind:
    """Add instance columns to a kind; in results with them, boxes become optional."""
    # Rotated boxes have five numbers; decoding rejects any other length.
    sides = first.sides
    if sides == 5 and "bbox" in readers:
        rotated = [("bbox", RotatedBox)]
        base = msgspec.defstruct(base.__name__, rotated, bases=(base,), gc=False)
        numeric = numeric and msgspec.defstruct(numeric.__name__, rotated, bases=(numeric,), gc=False)
    # Add the fields of instance columns.
    shapes = shapes_of(instances)
    fields = [field for shape in shapes for field in shape.fields(of_results=of_results)]
    readers = {**readers, **dict.fromkeys((name for name, _, _ in fields), _read_objects)}
    for shape in shapes:
        readers = {**readers, **shape.readers}
    # A shape with the same count of numbers in every record is numeric too; others need the general path.
    if fields and numeric is not None:
        of_numbers = [shape.numeric_fields(first, of_results=of_results) for shape in shapes]
        numeric = _add_numeric_fields(numeric, of_numbers, first)
    # Boxes are optional in results with masks or keypoints.
    if fields and "bbox" in readers and of_results:
        fields.append(("bbox", list[float] | None, None))
        readers = {**readers, "bbox": functools.partial(_read_optional_boxes, sides=sides)}
    if fields:
        base = msgspec.defstruct(base.__name__, fields, bases=(base,), kw_only=True, gc=False)
    # Python objects cost as much to send to another process as to read, so they are read in this one.
    name, whole = ("detection", "a list of results") if of_results else ("annotation", "a list")
    in_arrays = numeric is not None or not any(reader is _read_objects for reader in readers.values())
    return Kind(name, whole, base, readers, numeric, in_arrays)


def _add_numeric_fields(
    numeric: type[msgspec.Struct], of_shapes: Sequence[Sequence[tuple[str, Any]] | None], first: FirstRecord
) -> type[msgspec.Struct] | None:
    """Add the fields of shapes to a numeric kind; None if a shape is not numeric."""
    fields: list[Any] = (
        [("bbox", None, None)] if "bbox" in numeric.__struct_fields__ and not first.bbox else []
    )
    for some in of_shapes:
        if some is None:
            return None
        fields += some
    return msgspec.defstruct(numeric.__name__, fields, bases=(numeric,), kw_only=True, gc=False)


def first_record(text: Text) -> FirstRecord:
    """Return the first record; an empty one if the array is empty or invalid."""
    decode = msgspec.json.Decoder(list[FirstRecord]).decode
    pieces = (
        piece
        for chunk in text.chunks(0, text.size)
        for piece in (chunk[:PEEK_BYTES], chunk[PEEK_BYTES:])
        if len(piece)
    )
    slices = _json.decode_records(pieces, decode, text.whole)
    try:
        return next((records[0] for records in slices if records), FirstRecord())
    except DECODING_ERRORS:
        return FirstRecord()  # the full pass raises the error


def rotated_boxes(records: FloatArray | None) -> FloatArray | None:
    """Convert boxes of records to rotated boxes of tables, in radians from x to y; None if upright."""
    if records is None or records.shape[1] != 5:
        return None
    return np.hstack([records[:, :4], -np.deg2rad(records[:, 4:])])


def rotated_records(rotated: FloatArray) -> FloatArray:
    """Convert rotated boxes of tables to those of records, in degrees counter-clockwise."""
    return np.hstack([rotated[:, :4], -np.rad2deg(rotated[:, 4:])])


def given_boxes(boxes: NDArray[np.float64], *, place: Place) -> NDArray[np.float64] | None:
    """Return the boxes of results; None if the first record does not have one."""
    if len(boxes) and np.isnan(boxes[0, 0]):
        return None
    bad = ~np.isfinite(boxes).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        got = "none" if np.isnan(boxes[row, 0]) else "another length"
        rule = f"have {boxes.shape[1]} numbers, as the first detection's has"
        raise FileFormatError("bbox", rule, got=got, place=place(row))
    return boxes


def instance_columns(
    columns: Columns,
    instances: Sequence[str],
    *,
    image_sizes: Callable[[], NDArray[np.float64]],
    place: Place,
) -> dict[str, Any]:
    """Return these instance columns, each None if it does not occur."""
    arrays: dict[str, Any] = {}
    for shape in shapes_of(instances):
        arrays |= shape.columns(columns, image_sizes, place)
    return arrays
