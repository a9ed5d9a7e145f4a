"""Save tables as ``.npz`` files of columns, which load fast.

Conventions
-----------
- The file is an uncompressed NumPy ``.npz`` archive: one array per column, and a JSON header with the
  vocabularies. Any program with NumPy can read it, while Parquet would need pyarrow.
- All columns of the schema and all user columns round-trip bit for bit; corners and sizes are both stored.
  Object columns go to the header if they hold text, numbers, true, false and null; others are errors.
- Archives with pickled or compressed members are rejected, and so are unknown members. The dtype and shape of
  every column are checked before any is read.
- Corners and sizes agree up to rounding, image sizes are not negative, names are text. Writing checks the
  same rules, so that every written file can be read.
- Masks are stored as compressed RLEs, concatenated in ``mask_counts``; polygons are rasterized first, as in
  every evaluation. ``mask_rows`` are the rows with a mask, ``mask_lengths`` the bytes of each RLE,
  ``mask_sizes`` its height and width. Areas and boxes are computed from the RLEs, which detects damaged
  files.
- Masks and keypoints are read lazily.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.files import Snapshot, write_atomically
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align
from boxscore.data.box_reading import in_pixels
from boxscore.data.boxes import check_sizes_fit, corners_and_sizes
from boxscore.data.lazy import LazyColumns, Reader
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, Column, Schema
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS, ImageLabels
from boxscore.extensions.formats._archive import Archive, Member, open_archive
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.scoreless.answer_counts import is_answers
from boxscore.formats._format import CONTENT, Format, ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.image_sizes import with_known_sizes

FORMAT_VERSION = 1
AnyTable = TypeVar("AnyTable", bound=BoxTable)
Arrays = dict[str, NDArray[Any]]

_KINDS: Mapping[str, type[BoxTable]] = {"GroundTruth": GroundTruth, "Detections": Detections}
_LISTS: Mapping[str, type | tuple[type, ...]] = {
    "image_ids": (int, str),
    "file_names": (str, type(None)),
    "category_ids": (int, str),
    "category_names": str,
}
"""Required lists of a header, and the types of their values."""
_MAPPINGS = ("left_out", "answers", "columns", "image_columns", "category_columns")
_IMAGE_SIZES = Column("image_sizes", "numbers", (2,))
_MASK_ROWS = (
    Column("mask_rows", "counts"),
    Column("mask_lengths", "counts"),
    Column("mask_sizes", "counts", (2,)),
)
_MASK_BYTES = "mask_counts"
_MASK_ARRAYS = (*(column.name for column in _MASK_ROWS), _MASK_BYTES)
_LABELS = tuple(Column(name, "counts") for name in ("label_image", "label_category", "label_kind"))
_LABEL_ARRAYS = tuple(column.name for column in _LABELS)
"""Columns of image labels: rows of images and classes, and indices of the kinds."""
_USER, _IMAGE, _CATEGORY = "column:", "image_column:", "category_column:"
"""Name prefixes of user columns of rows, images and classes."""


class ColumnsFormat(Format):
    """Columns in an ``.npz`` archive."""

    name = "columns"
    holds_any_text = True
    endings = (".npz",)
    holds: ClassVar[Mapping[str, frozenset[str]]] = dict.fromkeys(("ground truth", "detections"), CONTENT)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect an archive by its first bytes."""
        return "an .npz archive" if sniffer.head.startswith(b"PK\x03\x04") else None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read a ground truth."""
        return _in_given_form(GroundTruth(**_load(path, GROUND_TRUTH, options.instances)), options)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections with the vocabularies of the file."""
        table = _in_given_form(Detections(**_load(path, DETECTIONS, options.instances)), options)
        return table if ground_truth is None else align(table, ground_truth)

    def check_written(self, table: BoxTable) -> None:
        """Raise an error for values that a reader would reject."""
        _content(table, table.source)

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table with everything it has."""
        if path.suffix != ".npz":
            raise InputError("a file of columns", "be named *.npz", got=str(path))
        header, arrays = _content(table, str(path))
        arrays["header"] = np.frombuffer(_json(header), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write_atomically(path, buffer.getvalue())


FORMAT = ColumnsFormat()


def _in_given_form(table: AnyTable, options: ReadOptions) -> AnyTable:
    """Return a table with its corners read in the user's ``box_format``; areas are updated."""
    # Without a given form, return the table itself.
    written = options.written
    if written is None:
        return table

    def place(row: int) -> str:
        return f"row {row} of {table.source}"

    # Boxes computed from other shapes cannot be read in another form.
    around = table.rotated is not None or table.quadrilaterals is not None
    if around or (isinstance(table, Detections) and not table.boxes_given):
        rule = "be left out where boxes are not four numbers"
        raise InputError("box_format", rule, got=options.box_format, place=table.source)
    # Multiply fractions by the image's size, in the same order of operations as every reader.
    extent = with_known_sizes(table.images, options.image_sizes).sizes[table.image]
    numbers = in_pixels(table.boxes, written, extent, place=place)
    corners, sizes = corners_and_sizes(numbers, written.form)
    lowest = -np.inf if options.any_sides else 0.0
    checks.sizes_not_negative(sizes, place=place, cause="", lowest=lowest)
    # Recompute areas that equaled the area of the box; keep others.
    changes = {"boxes": corners, "sizes": sizes}
    if isinstance(table, GroundTruth):
        changes["area"] = np.where(table.area == table.sizes.prod(axis=1), sizes.prod(axis=1), table.area)
    return table.replaced(**changes)


# ---------------------------------------------------------------- writing


def _json(header: Mapping[str, Any]) -> bytes:
    import json

    try:
        text = json.dumps(header)
    except (TypeError, ValueError) as error:
        raise InputError("names of images and classes", "be strings to be saved", got=error) from None
    _check_text(text, "")
    return text.encode("ascii")


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def _check_text(text: str, place: str) -> None:
    """Raise an error for half a surrogate pair in JSON, which no encoding can write."""
    import json

    if _SURROGATE.search(text):
        try:
            json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            written, at = str(error.object), error.start
            got = repr(written[written.rfind('"', 0, at) + 1 : written.find('"', at)])[:60]
            raise InputError("names", "be text that UTF-8 can write", got=got, place=place) from None


def _content(table: BoxTable, place: str) -> tuple[dict[str, Any], Arrays]:
    """Return the header and arrays of a file, checked like a reader does."""
    # Text and ids go to the JSON header; numbers become arrays.
    header: dict[str, Any] = {
        "boxscore": FORMAT_VERSION,
        "kind": type(table).__name__,
        "image_ids": table.images.ids.tolist(),
        "file_names": table.images.file_names.tolist(),
        "category_ids": table.categories.ids.tolist(),
        "category_names": table.categories.names.tolist(),
        **{
            name: getattr(table, name)
            for name in table.schema.values
            if name not in ("source", "image_labels") and (name != "answers" or getattr(table, name))
        },
    }
    arrays: Arrays = {"image_sizes": table.images.sizes}
    for column in table.schema.needed:
        values = getattr(table, column.name)
        if values.dtype == object:
            header[column.name] = values.tolist()
        else:
            arrays[column.name] = values
    # Flatten masks to a few arrays; the other shapes are arrays already.
    for column in table.schema.instances:
        values = table.instances[column.name]
        if values is not None:
            arrays |= _mask_arrays(values) if column.form == "masks" else {column.name: values}
    # Prefix the user's columns, so that they cannot clash with the table's.
    _add_user_columns(table.columns, "columns", _USER, header, arrays)
    _add_user_columns(table.images.columns, "image_columns", _IMAGE, header, arrays)
    _add_user_columns(table.categories.columns, "category_columns", _CATEGORY, header, arrays)
    # Image labels are three columns of row numbers.
    if isinstance(table, GroundTruth) and table.image_labels is not None:
        labels = table.image_labels
        columns: tuple[NDArray[Any], ...] = (labels.image, labels.category, labels.kind)
        arrays |= {name: values.astype(np.int64) for name, values in zip(_LABEL_ARRAYS, columns, strict=True)}
    # Check the content like a reader, so that every written file can be read.
    _check_header(header, type(table).schema, place)
    _check_values(table.schema, header, arrays, source=table.source)
    return header, arrays


def _add_user_columns(
    columns: Mapping[str, NDArray[Any]], key: str, prefix: str, header: dict[str, Any], arrays: Arrays
) -> None:
    """Add user columns: names and objects to the header, other values as members."""
    # Names must be valid UTF-8.
    listed: dict[str, Any] = {}
    for name, values in columns.items():
        if not name.isprintable() or name.encode("utf-8", errors="ignore").decode() != name:
            raise InputError("the name of a column", "be plain text to be saved", got=repr(name))
        if values.dtype.names is not None:
            raise InputError(f"column {name}", "hold no records to be saved", got=f"dtype {values.dtype}")
        # Numbers and fixed-width text become archive members; objects become JSON in the header.
        if not values.dtype.hasobject:
            arrays[prefix + name], listed[name] = values, None
            continue
        bad = next((value for value in values.tolist() if not _is_plain(value)), None)
        if bad is not None or values.ndim != 1:
            got = f"shape {list(values.shape)}" if bad is None else f"a {type(bad).__name__}"
            rule = "hold text, numbers, true, false or null to be saved"
            raise InputError(f"column {name}", rule, got=got)
        listed[name] = values.tolist()
    header[key] = listed


def _is_plain(value: object) -> bool:
    return value is None or type(value) in (str, int, float, bool)


def _mask_arrays(masks: Masks) -> Arrays:
    """Return masks as arrays: the rows with a mask, and their RLEs."""
    rows = np.flatnonzero(~masks.missing)
    present = masks[rows]
    counts = [code["counts"] for code in present.codes()]
    texts = [text.encode("ascii") if isinstance(text, str) else text for text in counts]
    return {
        "mask_rows": rows.astype(np.int64),
        "mask_lengths": np.array([len(text) for text in texts], dtype=np.int64),
        "mask_sizes": present.sizes,
        "mask_counts": np.frombuffer(b"".join(texts), dtype=np.uint8),
    }


# ---------------------------------------------------------------- reading


def _load(path: Path, schema: Schema, columns: Sequence[str]) -> dict[str, Any]:
    """Return the constructor arguments of a table."""
    # Read all but large columns, which are read on first use.
    snapshot = Snapshot(path)
    later = {"masks": _MASK_ARRAYS, "keypoints": ("keypoints", "keypoint_count")}
    unread = {member for name, members in later.items() if name not in columns for member in members}
    with open_archive(path) as archive:
        header = _read_header(archive, schema, path)
        _check_members(archive, schema, header, path)
        members_there = frozenset(archive.names)
        arrays = {name: archive.read(name) for name in members_there if name not in unread}
    # Check the file before using any of it.
    _check_values(schema, header, arrays, source=str(path), cause="a damaged file?")
    images, categories = _vocabularies(header, arrays, path)
    needed = {
        column.name: as_ids(header[column.name], name=column.name)
        if column.name in header
        else arrays[column.name]
        for column in schema.needed
    }
    if "ids" in needed:
        _warn_of_repeated_ids(needed["ids"], path)
    # Decode masks after the vocabularies, because they need the images' sizes.
    image = needed["image"]

    def place(row: int) -> str:
        return f"row {row} of {path}"

    # Build instance columns from arrays, now or on first use.
    def instances_of(arrays: Arrays, names: Sequence[str]) -> dict[str, Any]:
        instances: dict[str, Any] = {}
        for column in schema.instances:
            if _read_with(column.name) not in names:
                continue
            if column.form == "masks":
                instances[column.name] = _masks_of(arrays, images.sizes[image], place=place, source=path)
            else:
                instances[column.name] = values = arrays.get(column.name)
                if values is not None:
                    column.check(values, place)
        return instances

    # A lazy read checks that the file is unchanged, before and after.
    def read(name: str) -> dict[str, Any]:
        name = _read_with(name)
        snapshot.check()
        with open_archive(path) as archive:
            _check_members(archive, schema, _read_header(archive, schema, path), path)
            members = {member: archive.read(member) for member in later[name] if member in archive.names}
        snapshot.check()
        return instances_of(members, [name])

    # Set the columns of the file, and those to read now.
    names = tuple(column.name for column in schema.instances)
    shown = frozenset(name for name, members in later.items() if members[0] in members_there)
    at_once = [name for name in map(_read_with, names) if name in columns or name not in later]
    return {
        **{name: header.get(name, default()) for name, default in schema.values.items()},
        **needed,
        "images": images,
        "categories": categories,
        "columns": _user_columns(header["columns"], arrays, _USER),
        **_image_labels(arrays, len(images), len(categories), path),
        "instances": LazyColumns(names, instances_of(arrays, at_once), Reader(read, shown)),
        "source": str(path),
    }


def _read_with(name: str) -> str:
    """Return the instance column to read another with: keypoint counts come with the keypoints."""
    return "keypoints" if name == "keypoint_count" else name


# ---------------------------------------------------------------- the header


def _read_header(archive: Archive, schema: Schema, path: Path) -> dict[str, Any]:
    """Read the header, and check its version and kind."""
    import json

    # The header is JSON in an array of bytes.
    member = archive.member("header")
    if member is None or member.dtype != np.uint8 or len(member.shape) != 1:
        raise _other_program(path)
    try:
        text = archive.read("header").tobytes().decode("utf-8")
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _other_program(path) from None
    # A part of an evaluation uses the same container.
    if isinstance(header, dict) and "boxscore_part" in header:
        cause = "boxscore merge reads parts"
        raise FileFormatError("a file of columns", "hold boxes", got=f"a part, {path}", cause=cause)
    if not isinstance(header, dict) or header.get("boxscore") != FORMAT_VERSION:
        raise FileFormatError(
            "a file of columns",
            f"be of version {FORMAT_VERSION}",
            got=str(path),
            cause="written by a newer boxscore?",
        )
    # The file must hold the requested kind of table.
    kind = _KINDS.get(str(header.get("kind")))
    if kind is None or kind.schema is not schema:
        raise FileFormatError(str(path), f"hold {schema.name}", got=f"a {header.get('kind')} table")
    # Older files may lack mappings.
    header = {**{name: {} for name in _MAPPINGS}, **header}
    _check_header(header, schema, str(path))
    _check_text(text, str(path))
    return header


def _check_header(header: Mapping[str, Any], schema: Schema, place: str) -> None:
    """Check the lists and mappings of a header."""
    # Reject unknown keys: they may change the meaning of others.
    ids = [column.name for column in schema.needed if column.form == "ids" and column.name in header]
    known = {"boxscore", "kind", *_LISTS, *_MAPPINGS, *ids, *schema.values}
    for name in header:
        if name not in known:
            cause = "written by a newer boxscore?"
            raise FileFormatError("a key of the header", "be known", got=repr(name), place=place, cause=cause)
    # Check ids and names by the set of their types, which is fast and tells bool from int.
    for name, kinds in {**_LISTS, **dict.fromkeys(ids, (int, str))}.items():
        values = header.get(name)
        if not isinstance(values, list):
            raise _header(f"have a list of {_words(name)}", _kind_of(values), place)
        wrong = {kind for kind in {*map(type, values)} if kind is bool or not issubclass(kind, kinds)}
        if wrong:
            text = "integers or strings" if kinds == (int, str) else "strings"
            got = repr(next(value for value in values if type(value) in wrong))[:60]
            raise _header(f"have {_words(name)} that are {text}", got, place)
    # There must be a name for each id.
    for names, of in (("file_names", "image_ids"), ("category_names", "category_ids")):
        if len(header[names]) != len(header[of]):
            rule = f"have as many {_words(names)} as {_words(of)} ({len(header[of])})"
            raise _header(rule, len(header[names]), place)
    for name in _MAPPINGS:
        if not isinstance(header.get(name, {}), Mapping):
            raise _header(f"have a table of {_words(name)}", _kind_of(header[name]), place)
    # Check the values that are not lists.
    for label, number in header.get("left_out", {}).items():
        if type(number) is not int or number < 0:
            raise _header("have whole numbers of detections left out", f"{number!r} of {label!r}", place)
    if not is_answers(header.get("answers", {})):
        raise _header("have counts of answers as boxscore writes them", "others", place)
    if type(header.get("boxes_given", True)) is not bool:
        raise FileFormatError("boxes_given", "be true or false", got=repr(header["boxes_given"]), place=place)
    if header.get("units", "pixels") not in ("pixels", "fractions"):
        raise FileFormatError("units", "be pixels or fractions", got=repr(header["units"]), place=place)


def _header(rule: str, got: object, place: str) -> FileFormatError:
    return FileFormatError("the header", rule, got=got, place=place)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _kind_of(value: object) -> str:
    return "none" if value is None else f"a {type(value).__name__}"


def _other_program(path: Path) -> FileFormatError:
    return FileFormatError("a file of columns", "be written by boxscore convert", got=str(path))


# ---------------------------------------------------------------- declarations of members


def _check_members(archive: Archive, schema: Schema, header: Mapping[str, Any], path: Path) -> None:
    """Check that no member is missing or unknown, and that all have the right dtype and shape."""
    # Shapes and dtypes are in the members' headers, so no array is read yet.
    members = {name: archive.member(name) for name in archive.names}
    first = members.get("image")
    count = first.shape[0] if first is not None and first.shape else 0
    images = len(header["image_ids"])
    # Columns of every table.
    expected: list[tuple[Column, int]] = [(_IMAGE_SIZES, images)]
    for column in schema.needed:
        if column.name not in header:
            expected.append((column, count))
        elif len(header[column.name]) != count:
            raise _damaged_error(column.name, f"have {count} rows", len(header[column.name]), path)
    # Keypoints need their counts, which tell objects without keypoints.
    instances = [
        (column, count)
        for column in schema.instances
        if not {column.name, _read_with(column.name)}.isdisjoint(members)
    ]
    # Masks need all of their arrays; the first one gives the number of rows.
    if members.keys() & {*_MASK_ARRAYS}:
        given = members.get("mask_rows")
        instances += [(column, given.shape[0] if given and given.shape else 0) for column in _MASK_ROWS]
        codes = members.get(_MASK_BYTES)
        if codes is None or codes.dtype != np.uint8 or len(codes.shape) != 1:
            raise _damaged_error(_MASK_BYTES, "be uint8 [bytes]", codes, path)
    # Image labels also need all of their arrays.
    labels: list[tuple[Column, int]] = []
    if schema is GROUND_TRUTH and members.keys() & {*_LABEL_ARRAYS}:
        given = members.get(_LABEL_ARRAYS[0])
        labels = [(column, given.shape[0] if given and given.shape else 0) for column in _LABELS]
    # Every expected member must exist with its dtype and shape.
    for column, rows in (*expected, *instances, *labels):
        member = members.get(column.name)
        if member is None:
            raise _damaged_error(column.name, "be there", "none", path)
        if not column.has_form(member.dtype, member.shape, rows):
            raise _damaged_error(column.name, f"be {column.form_text(rows)}", member, path)
    # The header names the user's columns.
    user_members = _check_user_columns(header["columns"], members, _USER, count, path)
    user_members += _check_user_columns(header["image_columns"], members, _IMAGE, images, path)
    classes = len(header["category_ids"])
    user_members += _check_user_columns(header["category_columns"], members, _CATEGORY, classes, path)
    known = {
        "header",
        *_MASK_ARRAYS,
        *user_members,
        *(column.name for column, _ in (*expected, *instances, *labels)),
    }
    # Reject unknown members, which would be lost.
    for name in members:
        if name not in known:
            cause = "written by a newer boxscore?"
            raise FileFormatError(
                "a column", "be one that the header names", got=repr(name), place=str(path), cause=cause
            )


def _check_user_columns(
    listed: Mapping[str, Any], members: Mapping[str, Member | None], prefix: str, count: int, path: Path
) -> list[str]:
    """Check user columns of rows, images or classes; return their members."""
    for name, values in listed.items():
        member = members.get(prefix + name)
        if values is None:
            if member is None:
                raise _damaged_error(name, "be there", "none", path)
            if not member.shape or member.shape[0] != count:
                raise _damaged_error(name, f"have {count} rows", f"shape {list(member.shape)}", path)
        elif not isinstance(values, list) or not all(map(_is_plain, values)):
            raise _damaged_error(name, "be a list of plain values", f"a {type(values).__name__}", path)
        elif len(values) != count:
            raise _damaged_error(name, f"have {count} rows", f"shape {[len(values)]}", path)
    return [prefix + name for name, values in listed.items() if values is None]


# ---------------------------------------------------------------- values


def _check_values(
    schema: Schema, header: Mapping[str, Any], arrays: Arrays, *, source: str, cause: str = ""
) -> None:
    """Check the values of the columns, both before writing and after reading."""

    def place(row: int) -> str:
        return f"row {row} of {source}"

    # Apply the check of each column.
    for column in schema.needed:
        if column.name in arrays:
            column.check(arrays[column.name], place)
    # A negative side is valid only if the corners are inverted too, as some files have them.
    inverted = arrays["boxes"][:, 2:] <= arrays["boxes"][:, :2]
    checks.sizes_not_negative(np.where(inverted, 0.0, arrays["sizes"]), place=place, cause="")
    check_sizes_fit(arrays["boxes"], arrays["sizes"], name="sizes", place=place, cause=cause)
    # Row numbers must be within their vocabulary; check the minimum and maximum.
    for name, ids in (("image", "image_ids"), ("category", "category_ids")):
        size, rows = len(header[ids]), arrays[name]
        if len(rows) and not 0 <= rows.min() <= rows.max() < size:
            got = f"{rows.min()} to {rows.max()}"
            rule = f"be rows below {size}"
            raise FileFormatError(f"column {name}", rule, got=got, place=source, cause=cause)
    # Image sizes are not negative, or NaN if unknown.
    sizes = arrays["image_sizes"]
    bad = ~(np.isnan(sizes) | ((sizes >= 0) & np.isfinite(sizes))).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise FileFormatError(
            "the size of an image",
            "be at least 0, or NaN where it is not known",
            got=sizes[row].tolist(),
            place=f"image {header['image_ids'][row]!r} of {source}",
        )


def _user_columns(listed: Mapping[str, Any], arrays: Arrays, prefix: str) -> Arrays:
    """Return the checked user columns."""
    columns: Arrays = {}
    for name, values in listed.items():
        if values is None:
            columns[name] = arrays[prefix + name]
        else:
            columns[name] = np.empty(len(values), dtype=object)
            columns[name][:] = values
    return columns


def _vocabularies(header: Mapping[str, Any], arrays: Arrays, path: Path) -> tuple[Images, Categories]:
    images = Images.build(
        header["image_ids"],
        file_names=header["file_names"],
        sizes=arrays["image_sizes"],
        columns=_user_columns(header["image_columns"], arrays, _IMAGE),
    )
    categories = Categories.build(
        header["category_ids"],
        names=header["category_names"],
        columns=_user_columns(header["category_columns"], arrays, _CATEGORY),
    )
    for name, vocabulary in (("image_ids", images), ("category_ids", categories)):
        if len(vocabulary) != len(header[name]):
            raise FileFormatError("ids", "be unique", got="repeated ids", place=str(path))
        if vocabulary.ids.tolist() != header[name]:  # columns refer to them by position
            raise _header(f"have {_words(name)} in ascending order", "another order", str(path))
    return images, categories


def _image_labels(arrays: Arrays, images: int, categories: int, path: Path) -> dict[str, ImageLabels]:
    """Return the image labels as a keyword argument; empty without any."""
    if _LABEL_ARRAYS[0] not in arrays:
        return {}
    columns = [arrays[name] for name in _LABEL_ARRAYS]
    bounds = (images, categories, len(IMAGE_LABEL_KINDS))
    for name, values, bound in zip(_LABEL_ARRAYS, columns, bounds, strict=True):
        if len(values) and not 0 <= values.min() <= values.max() < bound:
            raise _damaged_error(
                name, f"be at least 0 and below {bound}", f"{values.min()} to {values.max()}", path
            )
    image, category, kind = columns
    return {
        "image_labels": ImageLabels(image.astype(np.int32), category.astype(np.int32), kind.astype(np.int8))
    }


def _warn_of_repeated_ids(ids: NDArray[Any], path: Path) -> None:
    """Warn of repeated annotation ids, like the reader of COCO files."""
    if ids.dtype != object and (np.diff(np.sort(ids)) > 0).all():
        return
    repeated = len(ids) - len(set(ids.tolist()))
    if repeated:
        ids_occur = f"{counted(repeated, 'annotation id')} {verb(repeated, 'occur')}"
        warn_user(f"{path}: {ids_occur} more than once; each row counts.")


def _masks_of(
    arrays: Arrays, image_sizes: NDArray[np.float64], *, place: Place, source: Path
) -> Masks | None:
    """Return the masks of rows, whose images have the sizes [N, 2] (width, height); None without masks."""
    # Check rows, lengths and sizes against each other before splitting the text.
    if "mask_rows" not in arrays:
        return None
    rows, lengths, sizes, counts = (arrays[name] for name in _MASK_ARRAYS)
    if np.any(np.diff(rows) <= 0) or np.any((rows < 0) | (rows >= len(image_sizes))):
        raise _damaged_error("mask_rows", f"be ascending rows below {len(image_sizes)}", "others", source)
    # Sum as Python integers: the lengths of a malicious file cannot overflow them.
    ends = [0, *itertools.accumulate(lengths.tolist())]
    if np.any(lengths < 0) or ends[-1] != counts.size:
        got = f"{ends[-1]} of {lengths.size}"
        raise _damaged_error("mask_lengths", f"add up to {counts.size}, one per mask", got, source)
    if np.any(sizes < 0):
        raise _damaged_error("mask_sizes", f"be {[len(rows), 2]} and not negative", list(sizes.shape), source)
    # Slice one RLE per mask; rows without a mask stay None.
    text = counts.tobytes()
    given: list[Any] = [None] * len(image_sizes)
    for row, size, start, end in zip(rows.tolist(), sizes.tolist(), ends, ends[1:], strict=False):
        given[row] = {"size": size, "counts": text[start:end]}
    return Masks(given, image_sizes=image_sizes, place=place)


def _damaged_error(name: str, rule: str, got: object, path: Path) -> FileFormatError:
    got = "none" if got is None else got
    return FileFormatError(f"column {name}", rule, got=got, place=str(path), cause="a damaged file?")
