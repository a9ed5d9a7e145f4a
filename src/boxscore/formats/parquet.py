"""Read and write Parquet tables of boxes; needs pyarrow.

Conventions
-----------
- A row is a box, an image with lists of boxes, or an image with a list of structs (``objects`` of Hugging
  Face). Lists are empty for an image without objects.
- A folder of part files is one table, in the order of the file names.
- Class names are read from the schema metadata: ``ClassLabel`` of Hugging Face, or boxscore's own key.
- float32 is converted to float64 without loss.

References
----------
datasets (Hugging Face): ``Features.arrow_schema``, key "huggingface" of the metadata.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import write_atomically, write_folder
from boxscore._utils.given_paths import Several, is_far, without_secrets
from boxscore._utils.lazy import loaded
from boxscore.data.alignment import of_images
from boxscore.data.column_names import ColumnMap, column_parts, has_part, is_box
from boxscore.data.schema import SHAPES_OF_TABLES
from boxscore.data.tables import BoxTable
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError, MissingDependencyError
from boxscore.formats._format import ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import (
    HELD_BY_TABLES,
    MOST_COLUMNS,
    OBJECTS,
    Distinct,
    Table,
    TableFormat,
    saved_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa


TAIL = 8
"""Number of bytes after the footer: its length and the magic bytes."""

LIKELY = 1 << 16
"""Number of bytes at the end of a file that are likely to include the footer."""

COPIED = 1 << 20
"""Number of bytes to copy at a time."""

MARK = b"PAR1"
"""Magic bytes at the beginning and the end of a file."""

_METADATA_KEY = b"boxscore"
"""Metadata key under which all classes are stored, including those without objects."""


_SHAPES = frozenset({"keypoints", "rotated", "quadrilaterals"})


class ParquetFormat(TableFormat):
    """Parquet files, and folders of part files."""

    name = "parquet"
    endings = folder_endings = (".parquet",)
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": HELD_BY_TABLES | {"classes", "masks"} | _SHAPES,
        "detections": frozenset({"columns", "masks"}) | _SHAPES,
    }
    takes = frozenset({"classes", "columns", "image_sizes", "image_set"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Accept a file with Parquet's magic bytes, or a folder of such files."""
        if not sniffer.is_folder:
            return "a Parquet file" if sniffer.head.startswith(MARK) else None
        first = sniffer.first_with(".parquet")
        return "a folder of Parquet files" if first is not None and not first.is_dir() else None

    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the columns of a file or a folder."""
        files = part_files(path, options)
        tables = read_files(files)
        there = {
            str(file): table.column_names for file, table in zip(files, tables, strict=True) if len(table)
        }
        return ArrowTable(str(path), joined(tables, str(path)), options.columns, absent=absent_columns(there))

    def check_written(self, table: BoxTable) -> None:
        """Reject ids that do not fit Parquet integers."""
        super().check_written(table)
        for ids in (table.images.ids, table.categories.ids):
            _arrow_column(ids)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write one row per box; images without objects come last, and classes are in the metadata."""
        write_atomically(path, self._encoded(table, table))

    def save_partitions(self, table: BoxTable, folder: Path, count: int) -> None:
        """Write a folder of ``count`` part files; each has all rows of a range of images, ordered by id."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError("a folder of part files", "be new or empty", got=repr(str(folder)))
        images = len(table.images)
        count = max(1, min(count, images))
        bounds = np.arange(count + 1) * images // count

        def files() -> Iterator[tuple[str, bytes]]:
            for number, (low, high) in enumerate(itertools.pairwise(bounds.tolist())):
                part = of_images(table, np.arange(low, high))
                yield f"part-{number:05d}.parquet", self._encoded(part, table)

        self.check_written(table)
        write_folder(folder, files())

    def _encoded(self, table: BoxTable, whole: BoxTable) -> bytes:
        """Encode a table, which is a partition of ``whole``, with the columns of ``whole``."""
        self.check_written(table)
        pa, pq = arrow()
        ids, names = table.categories.ids.tolist(), table.categories.names.tolist()
        saved = saved_columns(table)
        # Add shapes; if boxes are derived from them, the reader derives them again.
        around = False
        shapes = [column.name for column in whole.schema.instances if not column.plain]
        if any(table.instances[name] is not None for name in shapes):
            saved, around = loaded(SHAPES_OF_TABLES["written"])(saved, table, whole)
        columns = {name: _arrow_column(values) for name, values in saved.items()}
        # Drop names that only repeat the ids.
        if ids == names or list(map(str, ids)) == names:
            columns.pop("category_id" if isinstance(ids[0] if ids else "", str) else "class", None)
        # Store all classes in the metadata, including those without rows.
        classes = [[i, n] for i, n in zip(ids, names, strict=True)]
        written = pa.table(columns).replace_schema_metadata(
            {_METADATA_KEY: json.dumps({"classes": classes, **({"boxes": "around"} if around else {})})}
        )
        output = io.BytesIO()
        pq.write_table(written, output, compression="zstd")
        return output.getvalue()


FORMAT = ParquetFormat()


def write_joined(files: Sequence[Path], output: Path, scratch: Path) -> None:
    """Concatenate files of this format, one row group per file; only one is in memory at a time."""
    pa, pq = arrow()
    schemas = [pq.read_schema(file) for file in files]
    schema = pa.unify_schemas([one.remove_metadata() for one in schemas], promote_options="permissive")
    schema = schema.with_metadata(schemas[0].metadata)
    whole = scratch / "joined.parquet"
    with pq.ParquetWriter(whole, schema, compression="zstd") as writer:
        for file in files:
            table = joined([schema.empty_table(), pq.read_table(file)], str(file))
            writer.write_table(table.select(schema.names).cast(schema))
    with whole.open("rb") as opened:
        write_atomically(output, iter(lambda: opened.read(COPIED), b""))


def arrow() -> tuple[Any, Any]:
    """Import pyarrow and pyarrow.parquet."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow: pip install 'boxscore[tables]'.") from None
    return pyarrow, pyarrow.parquet


def _arrow_column(values: NDArray[Any]) -> Any:
    """Convert a column to Arrow: ids and names with a dictionary, NaN to null."""
    pa, _ = arrow()
    if values.dtype == object:
        cells = values.tolist()
        kinds = {type(cell) for cell in cells} - {type(None)}
        if kinds - {int, float, bool} and kinds != {str}:
            cells = [None if cell is None else str(cell) for cell in cells]
        try:
            array = pa.array(cells)
        except OverflowError:
            largest = max((cell for cell in cells if isinstance(cell, int)), key=abs)
            rule = "be integers of 64 bits, to be written as Parquet"
            got = f"{largest!s:.30}"
            raise InputError("numbers", rule, got=got, cause="write .npz, or COCO JSON") from None
        return array.dictionary_encode() if pa.types.is_string(array.type) else array
    return pa.array(values, from_pandas=True)


# ---------------------------------------------------------------- reading


def read_files(files: Sequence[Path]) -> list[pa.Table]:
    """Read all files, without columns that are not needed."""
    tables = []
    for file in files:
        with converted_errors(str(file)), opened_parquet(file) as (_, parquet):
            tables.append(parquet.read(columns=wanted_columns(parquet, str(file))))
    return tables


@contextlib.contextmanager
def opened_parquet(
    file: Path, held: Callable[[Any, bytes], Any] | None = None
) -> Iterator[tuple[bytes, Any]]:
    """Open a file, and yield its footer and reader; a remote file is read in few long ranges.

    Given an open file and its footer (with all bytes after it), ``held`` may return another file object to
    read from.
    """
    pa, pq = arrow()
    with file.by_range() if is_far(file) else pa.OSFile(str(file)) as opened:
        end = _read_footer(opened)
        known = pq.read_metadata(pa.BufferReader(end)) if end else None  # without a footer, the reader raises
        if held is not None and end:
            opened = held(opened, end)
        with pq.ParquetFile(opened, metadata=known, pre_buffer=is_far(file)) as parquet:
            yield end[:-TAIL], parquet


def _read_footer(file: Any) -> bytes:
    """Return the footer of an open file and all bytes after it; empty if the footer is missing."""
    size = file.size()
    end = bytes(file.read_at(min(size, LIKELY), max(size - LIKELY, 0)))
    length = TAIL + int.from_bytes(end[-TAIL:-4], "little")
    if end[-4:] != MARK or length + len(MARK) > size:
        return b""
    if length > len(end):
        end = bytes(file.read_at(length, size - length))
    return end[-length:]


def absent_columns(columns_of: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the columns that are not in all files, each with the first file that does not have it."""
    every = dict.fromkeys(name for names in columns_of.values() for name in names)
    first: dict[str, str] = {}
    for file, names in columns_of.items():
        for name in every.keys() - names:
            first.setdefault(name, file)
    return first


def joined(tables: Sequence[pa.Table], place: str) -> pa.Table:
    """Concatenate tables; fill missing columns with nulls, and promote numbers to a common type."""
    pa, _ = arrow()
    listed = [any(map(_is_of_objects, table.schema)) for table in tables]
    if any(listed) and not all(listed):
        got = f"lists of objects in {sum(listed):,} of {len(listed):,}, and boxes in columns in the others"
        raise FileFormatError("part files", "have one layout", got=got, place=place)
    try:
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowException, TypeError) as error:
        named = re.search(r"Field (.+?) has incompatible types", str(error))
        got = f"column {named[1]!r:.80} of two types" if named else str(error).partition("\n")[0][:150]
        raise FileFormatError("part files", "have the same columns", got=got, place=place) from None


def _is_of_objects(field: Any) -> bool:
    """Whether a column holds lists of boxes of images."""
    pa, _ = arrow()
    return field.name.lower() in OBJECTS and bool(pa.types.is_nested(field.type))


def joins(folder: Path, file: Path) -> bool:
    """Whether a new file would be read with the part files of a folder."""
    return file.parent == folder and file.suffix == ".parquet"


def part_files(path: Path, options: ReadOptions) -> list[Path]:
    """Return the files of a path, or of one split of a folder."""
    # One file, or several files given together.
    if not path.is_dir():
        if options.image_set is not None:
            got = repr(str(options.image_set))[:60]
            raise InputError("image_set", "be left out where there is one Parquet file", got=got)
        return [path]
    if isinstance(path, Several):
        return [file for one in path.files for file in part_files(one, options)]
    # Part files of a folder; reject a folder among them, which would be skipped silently.
    files = sorted(file for file in path.iterdir() if file.suffix == ".parquet")
    other = next((file for file in files if not file.is_file()), None)
    if other is not None:
        got = "a folder" if other.is_dir() else "no file"
        cause = "its rows would be missing: give one folder of part files"
        raise FileFormatError("a part file", "be a file", got=got, place=str(other), cause=cause)
    # Group part files by the name before the number, as in "train-00000-of-00002".
    splits: dict[str, list[Path]] = {}
    for file in files:
        known = re.fullmatch(r"(.+?)-\d+(?:-of-\d+)?(?:-[0-9a-f]+)?", file.stem)
        splits.setdefault(known[1] if known else "", []).append(file)
    if options.image_set is not None:
        wanted = splits.get(str(options.image_set))
        if wanted is None:
            got, known_splits = repr(str(options.image_set))[:60], ", ".join(sorted(splits))
            raise InputError("image_set", f"be one of {known_splits}", got=got, place=str(path))
        return wanted
    if len(splits) > 1 and {"train", "test", "validation", "val"} & set(splits):
        raise InputError(
            "a folder of Parquet files",
            "be one split",
            got=", ".join(sorted(splits)),
            place=str(path),
            cause="say which with --image-set",
        )
    return files


TEXTS = ("STRING", "ENUM", "JSON")


@contextlib.contextmanager
def converted_errors(place: str) -> Iterator[None]:
    """Convert exceptions of pyarrow, which have many types, to ``FileFormatError``."""
    pa, _ = arrow()
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        got = without_secrets(str(error)).partition("\n")[0][:150].rstrip(".") or type(error).__name__
        raise FileFormatError("a Parquet file", "be readable", got=got, place=place) from None


def wanted_columns(parquet: Any, place: str) -> list[str]:
    """Return the columns of an open file to read: all but image data."""
    wanted, schema = [], parquet.schema
    for number in range(len(schema)):
        column = schema.column(number)
        if column.physical_type == "INT96":
            continue
        if column.physical_type == "BYTE_ARRAY" and column.logical_type.type not in TEXTS:
            continue
        wanted.append(column.path)
    if not len(schema) or len(wanted) > MOST_COLUMNS:
        rule, got = f"have 1 to {MOST_COLUMNS:,} columns", f"{len(wanted):,}"
        raise FileFormatError("a Parquet file", rule, got=got, place=place)
    return wanted


def _promote_fields(table: pa.Table) -> Iterator[tuple[str, Any]]:
    """Yield the columns; structs of boxes and images are replaced by their fields."""
    pa, _ = arrow()
    names = set(table.column_names)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_struct(column.type) and (name.lower() in (*OBJECTS, "image", "img") or is_box(name)):
            flattened = one_array(column).flatten()
            for number in range(column.type.num_fields):
                field = column.type.field(number).name
                yield (field if field not in names else f"{name}.{field}"), flattened[number]
        else:
            yield name, column


def one_array(column: Any) -> Any:
    """Return a column as one array."""
    pa, _ = arrow()
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        if column.num_chunks == 1:
            return column.chunk(0)
        if column.num_chunks == 0:
            return pa.array([], type=column.type)
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # the text is too long for a single array
            column = pa.concat_arrays(column.chunks)
    return column


def is_list(kind: Any) -> bool:
    """Whether values are lists of variable length."""
    pa, _ = arrow()
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_listed(kind: Any) -> bool:
    """Whether values are lists, of variable or fixed length."""
    pa, _ = arrow()
    return bool(is_list(kind) or pa.types.is_fixed_size_list(kind))


def _distinct_integers(values: NDArray[np.integer[Any]]) -> Distinct:
    """Return the distinct integers in order of first occurrence; runs of equal values are encoded once."""
    pa, _ = arrow()
    new = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    encoded = pa.array(values[starts]).dictionary_encode()
    run = encoded.indices.to_numpy().astype(np.int64)
    lengths = np.diff(starts, append=len(values))
    return Distinct(encoded.dictionary.to_numpy().tolist(), np.repeat(run, lengths))


class ArrowTable(Table):
    """The columns of an Arrow table, one row per box."""

    def __init__(
        self,
        source: str,
        table: pa.Table,
        column_map: ColumnMap | None = None,
        *,
        absent: Mapping[str, str] | None = None,
    ) -> None:
        pa, _ = arrow()
        self.source, self.absent = source, absent or {}
        # Convert to one row per box; name the file in errors of Arrow.
        try:
            self._columns, self._parents = by_box(table, source, column_map)
        except (pa.ArrowException, OverflowError, NotImplementedError) as error:
            got = str(error).partition("\n")[0][:150]
            raise FileFormatError("a Parquet file", "be readable", got=got, place=source) from None
        self.names = list(self._columns)
        self.count = len(next(iter(self._columns.values()))) if self._columns else 0
        # Decode columns lazily, and distinct values once.
        self._known: dict[str, Distinct] = {}
        # Read the list of classes from the metadata, and whether boxes are derived from shapes.
        parts = column_parts(self.names, place=source, column_map=column_map)
        label = parts.class_name if parts.class_id is None else parts.class_id
        metadata = table.schema.metadata or {}
        self.class_list, self.class_names = class_names_of(metadata, label)
        self.boxes_around = are_around(metadata)

    def distinct(self, name: str) -> Distinct:
        """Return the distinct values of a column; Arrow dictionaries are used as they are."""
        if name not in self._known:
            self._known[name] = self._distinct(name)
        return self._known[name]

    def _distinct(self, name: str) -> Distinct:
        pa, _ = arrow()
        column = self._columns[name]
        if pa.types.is_integer(column.type) and not column.null_count:
            return _distinct_integers(column.to_numpy())
        try:
            encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            values = encoded.dictionary.to_pylist()
            positions = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        except (pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
            got = str(error).partition("\n")[0][:100]
            raise FileFormatError(name, "hold texts or whole numbers", got=got, place=self.source) from None
        return self.ids_of_cells(name, values, positions.astype(np.int64, copy=False))

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers."""
        return self._floats(name, self._columns[name])

    def _floats(self, name: str, array: Any) -> FloatArray:
        pa, _ = arrow()
        kind = array.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_null(kind)
        ):
            raise FileFormatError(name, "hold numbers", got=str(kind)[:60], place=self.source)
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    def fours(self, name: str) -> FloatArray:
        """Return a column of four numbers per cell."""
        pa, _ = arrow()
        column = self._columns[name]
        if not _is_listed(column.type):
            got = str(column.type)[:60]
            raise FileFormatError(name, "hold lists of four numbers", got=got, place=self.source)
        # A missing list, of an image without objects, becomes NaN.
        fours = np.full((self.count, 4), np.nan)
        lengths = np.asarray(pa.compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False))
        wrong = (lengths != 4) & (lengths != 0)
        if wrong.any():
            row = int(np.argmax(wrong))
            got = f"{lengths[row]} numbers"
            raise FileFormatError(name, "hold four numbers", got=got, place=self.place(row))
        # Flatten to one array of numbers. A null inside a list would shift the rest, so compare the length.
        inner = pa.compute.list_flatten(column)
        rows = np.flatnonzero(lengths == 4)
        if inner.null_count or len(inner) != 4 * len(rows):
            raise FileFormatError(name, "hold four numbers", got="null among them", place=self.source)
        fours[rows] = self._floats(name, inner).reshape(-1, 4)
        return fours

    def user_column(self, name: str) -> NDArray[Any] | None:
        """Return a user column of texts, numbers or flags; None for other types."""
        pa, _ = arrow()
        kind = self._columns[name].type
        if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values, positions = self.distinct(name)
            cells = np.empty(len(values) + 1, dtype=object)
            cells[:] = [*values, None]
            texts: NDArray[Any] = cells[positions]
            return texts
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            numbers: NDArray[Any] = self._columns[name].to_numpy(zero_copy_only=False)
            return numbers
        return None

    def place(self, row: int) -> str:
        """Return the place of a row, for messages."""
        at = row if self._parents is None else int(self._parents[row])
        return f"row {at} of {self.source}"


def by_box(
    table: pa.Table, source: str, column_map: ColumnMap | None = None
) -> tuple[dict[str, Any], NDArray[np.int64] | None]:
    """Return the columns with one row per box; if rows of the file are images, also the file row of each."""
    # Find the column of boxes: a list of structs (``objects`` of Hugging Face), or of boxes, per image.
    pa, _ = arrow()
    columns = {name: one_array(column) for name, column in _promote_fields(table)}
    boxes = next(
        (
            name
            for name, column in columns.items()
            if is_list(column.type) and pa.types.is_struct(column.type.value_type)
            if name.lower() in OBJECTS
        ),
        None,
    ) or next(
        (
            name
            for name, column in columns.items()
            if is_box(name, column_map=column_map)
            if is_list(column.type)
            if _is_listed(column.type.value_type) or not is_box(name, columns=1, column_map=column_map)
        ),
        None,
    )
    if boxes is None:
        return columns, None
    # Lists with the same lengths as the boxes belong to them; required columns must have these lengths.
    lengths = lengths_of(columns[boxes])
    listed = {}
    for name, column in columns.items():
        if not is_list(column.type):
            continue
        if name == boxes or np.array_equal(lengths_of(column), lengths):
            listed[name] = column
        elif has_part(name, column_map=column_map):
            row = int(np.argmax(lengths_of(column) != lengths))
            got = f"{lengths_of(column)[row]}"
            rule, place = f"be as long as the boxes ({lengths[row]})", f"row {row} of {source}"
            raise FileFormatError(name, rule, got=got, place=place)
    # Repeat the row of the image for each box.
    empty = np.flatnonzero(lengths == 0)  # images without boxes become rows of nulls at the end
    rows = np.concatenate([np.repeat(np.arange(len(lengths)), lengths), empty])
    # Flatten each list column in one call, without Python objects; take other columns by row.
    by_box: dict[str, Any] = {}
    for name, column in columns.items():
        if name not in listed:
            by_box[name] = column.take(pa.array(rows))
            continue
        inner = pa.compute.list_flatten(column)
        # Split structs into a column per field; prefix the name of the struct if the field name is taken.
        inners = (
            zip((field.name for field in inner.type), inner.flatten(), strict=True)
            if pa.types.is_struct(inner.type)
            else [(name, inner)]
        )
        for field, values in inners:
            key = field if field not in columns or field == name else f"{name}.{field}"
            by_box[key] = one_array(values)
            if len(empty):
                by_box[key] = pa.concat_arrays([by_box[key], pa.nulls(len(empty), by_box[key].type)])
    return by_box, rows


def lengths_of(column: Any) -> NDArray[np.int64]:
    """Return the length of each list in a column; 0 for null."""
    pa, _ = arrow()
    lengths = pa.compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(lengths).astype(np.int64)


# ---------------------------------------------------------------- class names


def class_names_of(
    metadata: dict[bytes, bytes], label: str | None
) -> tuple[list[str] | None, list[tuple[Id, str]] | None]:
    """Return the class list, or the names of class ids, from the metadata."""
    try:
        if _METADATA_KEY in metadata:
            pairs = json.loads(metadata[_METADATA_KEY])["classes"]
            if all(type(i) in (int, str) and type(name) is str for i, name in pairs):
                return None, [(i, name) for i, name in pairs]
        if b"huggingface" in metadata and label is not None:
            return _class_label(json.loads(metadata[b"huggingface"])["info"]["features"], label), None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # metadata of another tool
    return None, None


def are_around(metadata: dict[bytes, bytes]) -> bool:
    """Whether boxes are derived from the shapes, according to the metadata."""
    try:
        return bool(json.loads(metadata.get(_METADATA_KEY, b"{}")).get("boxes") == "around")
    except (ValueError, AttributeError, RecursionError):  # metadata of another tool
        return False


def _class_label(features: Any, label: str) -> list[str] | None:
    """Find the class names of a column in the features, at any depth."""
    if isinstance(features, list):
        lists_of_names = (_class_label(item, label) for item in features)
        return next((names for names in lists_of_names if names is not None), None)
    if not isinstance(features, dict):
        return None
    if label in features:
        names = _names_in(features[label])
        if names is not None:
            return names
    lists_of_names = (_class_label(item, label) for item in features.values())
    return next((names for names in lists_of_names if names is not None), None)


def _names_in(feature: Any) -> list[str] | None:
    """Return the names of a ClassLabel, or of a sequence of ClassLabels."""
    while isinstance(feature, dict) and feature.get("_type") != "ClassLabel":
        feature = feature.get("feature")
    if not isinstance(feature, dict):
        return None
    names: Sequence[Any] | None = feature.get("names")
    return list(names) if isinstance(names, list) and all(isinstance(name, str) for name in names) else None
