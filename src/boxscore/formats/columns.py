"""Tables saved as columns: ``.npz`` files that load fast.

Conventions
-----------
- A NumPy ``.npz`` archive, not compressed: one array per column, and a header in JSON with the vocabularies.
  Any program with NumPy can read it; Parquet would need pyarrow.
- Every column of the schema and of the user's own comes back to the bit: corners and sizes are both kept.
  Columns of Python objects are in the header, if they hold text, numbers, true, false and null; others are
  refused by name.
- Nothing is unpickled, nothing is unpacked: an archive with pickled or compressed members is refused.
- Masks are kept as compressed RLEs, one after the other in ``mask_counts``: polygons are
  rasterised before they are saved, which is what every evaluation does to them. ``mask_rows`` names the rows
  that have one, ``mask_lengths`` the bytes of each code, ``mask_sizes`` its height and width. Their areas and
  boxes are computed from the codes, so that a damaged file is noticed.
- Masks and keypoints are read when they are first asked for.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.files import write_atomically
from boxscore.data.alignment import align
from boxscore.data.lazy import LazyColumns
from boxscore.data.masks import Masks
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, Column, Schema
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import Format, Read, Snapshot
from boxscore.formats.results import Kept

__all__ = ["FORMAT", "ColumnsFormat"]

FORMAT_VERSION = 1
Arrays = dict[str, NDArray[Any]]

_KINDS: Mapping[str, type[BoxTable]] = {"GroundTruth": GroundTruth, "Detections": Detections}
_HEADER: Mapping[str, type] = {
    **dict.fromkeys(("image_ids", "file_names", "category_ids", "category_names", "ids"), list),
    **dict.fromkeys(("left_out", "columns", "image_columns"), dict),
}
_MASK_ARRAYS = {"mask_rows": "i8", "mask_lengths": "i8", "mask_sizes": "i8", "mask_counts": "u1"}
_USER, _IMAGE = "column:", "image_column:"
"""What the names of the user's own columns begin with, of rows and of images."""


class ColumnsFormat(Format):
    """Columns in an ``.npz`` archive."""

    name = "columns"

    def detect(self, path: Path) -> str | None:
        """Recognise an archive by its first bytes."""
        if path.is_dir():
            return None
        with path.open("rb") as file:
            return "an .npz archive" if file.read(4) == b"PK\x03\x04" else None

    def load_ground_truth(
        self,
        path: Path,
        *,
        image_set: str | Path | None = None,
        columns: Sequence[str] = (),
        processes: int = 1,
    ) -> GroundTruth:
        """Read a ground truth."""
        return GroundTruth(**_load(path, GROUND_TRUTH, columns))

    @contextlib.contextmanager
    def reading(
        self, path: Path, *, columns: Sequence[str] = (), processes: int = 1, beside: float = 0
    ) -> Iterator[Read]:
        """Read detections, which have their own vocabularies, when the ground truth is known."""

        def finish(ground_truth: GroundTruth | None) -> Detections:
            table = Detections(**_load(path, DETECTIONS, columns))
            return table if ground_truth is None else align(table, ground_truth)

        yield finish

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table with everything it has."""
        if path.suffix != ".npz":
            raise InputError("a file of columns", "be named *.npz", got=str(path))
        header: dict[str, Any] = {
            "boxscore": FORMAT_VERSION,
            "kind": type(table).__name__,
            "image_ids": table.images.ids.tolist(),
            "file_names": table.images.file_names.tolist(),
            "category_ids": table.categories.ids.tolist(),
            "category_names": table.categories.names.tolist(),
            **{name: getattr(table, name) for name in table.schema.values if name != "source"},
        }
        arrays: Arrays = {"image_sizes": table.images.sizes}
        for column in table.schema.needed:
            values = getattr(table, column.name)
            if values.dtype == object:
                header[column.name] = values.tolist()
            else:
                arrays[column.name] = values
        for column in table.schema.instances:
            values = table.instances[column.name]
            if values is not None:
                arrays |= _mask_arrays(values) if column.form == "masks" else {column.name: values}
        _put(table.columns, "columns", _USER, header, arrays)
        _put(table.images.columns, "image_columns", _IMAGE, header, arrays)
        arrays["header"] = np.frombuffer(_json(header), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        write_atomically(path, buffer.getvalue())

    def rewrite(self, path: Path, kept: Kept, output: Path) -> None:
        """Write the remaining rows, with new scores and boxes where given."""
        table, changes = kept.table.take(kept.rows), {}
        if kept.scores is not None:
            changes["scores"] = kept.scores
        if kept.boxes is not None:
            moved = (table.boxes != kept.boxes).any(axis=1)
            changes["boxes"] = kept.boxes
            changes["sizes"] = np.where(moved[:, None], kept.boxes[:, 2:] - kept.boxes[:, :2], table.sizes)
        self.save(table.replaced(**changes), output)


FORMAT = ColumnsFormat()


# ---------------------------------------------------------------- writing


def _json(header: Mapping[str, Any]) -> bytes:
    try:
        import json

        return json.dumps(header).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise InputError("names of images and classes", "be strings to be saved", got=error) from None


def _put(
    columns: Mapping[str, NDArray[Any]], key: str, prefix: str, header: dict[str, Any], arrays: Arrays
) -> None:
    """Add the user's own columns: names and objects to the header, other values as members."""
    listed: dict[str, Any] = {}
    for name, values in columns.items():
        if not name.isprintable() or name.encode("utf-8", errors="ignore").decode() != name:
            raise InputError("the name of a column", "be plain text to be saved", got=repr(name))
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
    """Masks as arrays: the rows that have one, and their codes."""
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
    """Return the arguments of a table's class."""
    snapshot = Snapshot(path)
    later = {"masks": "mask_", "keypoints": "keypoint"}
    unread = tuple(prefix for name, prefix in later.items() if name not in columns)
    header, arrays = _read(path, lambda name: not name.startswith(unread))
    _check_header(path, schema, header)
    needed = _needed(path, schema, header, arrays)
    images, categories = _vocabularies(header, arrays, path)
    count = len(needed["image"])
    image = needed["image"]

    def place(row: int) -> str:
        return f"row {row} of {path}"

    def instances_of(arrays: Arrays, names: Sequence[str]) -> dict[str, Any]:
        instances: dict[str, Any] = {}
        for column in schema.instances:
            if _read_with(column.name) not in names:
                continue
            if column.form == "masks":
                instances[column.name] = _masks_of(arrays, images.sizes[image], place=place, source=path)
            else:
                instances[column.name] = _checked(column, arrays.get(column.name), count, path, place)
        return instances

    def read(name: str) -> dict[str, Any]:
        name = _read_with(name)
        snapshot.check()
        _, members = _read(path, lambda member: member.startswith((later[name], "header")))
        return instances_of(members, [name])

    names = tuple(column.name for column in schema.instances)
    at_once = [name for name in map(_read_with, names) if name in columns or name not in later]
    return {
        **{name: header.get(name, default()) for name, default in schema.values.items()},
        **needed,
        "images": images,
        "categories": categories,
        "columns": _user_columns(path, header, arrays, "columns", _USER, count),
        "instances": LazyColumns(names, instances_of(arrays, at_once), read),
        "source": str(path),
    }


def _read_with(name: str) -> str:
    """Name the instance column that an instance column is read with: a count stands beside what it counts."""
    return "keypoints" if name == "keypoint_count" else name


def _read(path: Path, wanted: Callable[[str], bool]) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the members that are wanted."""
    import json
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise FileFormatError("a file of columns", "not be compressed", got=str(path))
        with warnings.catch_warnings(), np.load(path, allow_pickle=False) as content:
            warnings.simplefilter("error")  # of headers in other programs' form
            arrays = {name: content[name] for name in content.files if wanted(name)}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a member that is no array")
        return json.loads(arrays.pop("header").tobytes()), arrays
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception:  # zipfile, NumPy and its header reader raise many kinds for other bytes
        raise FileFormatError("a file of columns", "be written by boxscore convert", got=str(path)) from None


def _check_header(path: Path, schema: Schema, header: Any) -> None:
    if not isinstance(header, dict) or header.get("boxscore") != FORMAT_VERSION:
        raise FileFormatError(
            "a file of columns",
            f"be of version {FORMAT_VERSION}",
            got=str(path),
            cause="written by a newer boxscore?",
        )
    kind = _KINDS.get(str(header.get("kind")))
    if kind is None or kind.schema is not schema:
        raise FileFormatError(str(path), f"hold {schema.name}", got=f"a {header.get('kind')} table")
    for name, form in _HEADER.items():
        if not isinstance(header.get(name, form()), form):
            rule = f"have a {'list' if form is list else 'table'} of {name.replace('_', ' ')}"
            got = f"a {type(header[name]).__name__}"
            raise FileFormatError("the header", rule, got=got, place=str(path))
    if not isinstance(header.get("boxes_given", True), bool):
        raise FileFormatError(
            "boxes_given", "be true or false", got=repr(header["boxes_given"]), place=str(path)
        )


def _needed(path: Path, schema: Schema, header: dict[str, Any], arrays: Arrays) -> Arrays:
    """Return the columns that every table has, checked."""

    def place(row: int) -> str:
        return f"row {row} of {path}"

    needed: Arrays = {}
    count = len(arrays["image"]) if "image" in arrays and arrays["image"].ndim else 0
    for column in schema.needed:
        values = arrays.get(column.name)
        if column.form == "ids":
            values = as_ids(header.get(column.name, []), name=column.name) if values is None else values
            if len(values) != count or values.ndim != 1:
                raise _damaged(column.name, f"have {count} rows", len(values), path)
        elif values is None:
            raise _damaged(column.name, "be there", "none", path)
        needed[column.name] = _checked(column, values, count, path, place)
    # A side below 0 is a box's own only where its corners say so too: it was read from a file.
    turned = needed["boxes"][:, 2:] <= needed["boxes"][:, :2]
    checks.sizes_not_negative(np.where(turned, 0.0, needed["sizes"]), place=place, cause="")
    sizes = len(header.get("image_ids", ()))
    extent = Column("image_sizes", "numbers", (2,))
    if "image_sizes" not in arrays:
        raise _damaged("image_sizes", "be there", "none", path)
    if not extent.has_form(arrays["image_sizes"], sizes):
        raise _misshapen(extent, arrays["image_sizes"], sizes, path)
    for name, ids in (("image", "image_ids"), ("category", "category_ids")):
        size, rows = len(header.get(ids, ())), needed[name]
        if count and not 0 <= rows.min() <= rows.max() < size:
            raise _damaged(name, f"be rows below {size}", f"{rows.min()} to {rows.max()}", path)
    return needed


def _checked(column: Column, values: Any, count: int, path: Path, place: Place) -> Any:
    """Check dtype, shape and values of a column by the schema; None stays None."""
    if values is None:
        return None
    if not column.has_form(values, count):
        raise _misshapen(column, values, count, path)
    column.check(values, place)
    return values


def _misshapen(column: Column, values: NDArray[Any], count: int, path: Path) -> FileFormatError:
    got = f"{values.dtype} {list(values.shape)}"
    return _damaged(column.name, f"be {column.form_text(count)}", got, path)


def _user_columns(
    path: Path, header: dict[str, Any], arrays: Arrays, key: str, prefix: str, count: int
) -> Arrays:
    """Return the user's own columns of rows or of images."""
    columns: Arrays = {}
    for name, values in header.get(key, {}).items():
        if values is None:
            if prefix + name not in arrays:
                raise _damaged(name, "be there", "none", path)
            columns[name] = arrays[prefix + name]
        elif isinstance(values, list) and all(map(_is_plain, values)):
            columns[name] = np.empty(len(values), dtype=object)
            columns[name][:] = values
        else:
            raise _damaged(name, "be a list of plain values", f"a {type(values).__name__}", path)
        if not columns[name].ndim or len(columns[name]) != count:
            raise _damaged(name, f"have {count} rows", f"shape {list(columns[name].shape)}", path)
    return columns


def _vocabularies(header: dict[str, Any], arrays: Arrays, path: Path) -> tuple[Images, Categories]:
    count = len(header.get("image_ids", ()))
    columns = _user_columns(path, header, arrays, "image_columns", _IMAGE, count)
    try:
        images = Images.build(
            header["image_ids"],
            file_names=header["file_names"],
            sizes=arrays["image_sizes"].reshape(-1, 2),
            columns=columns,
        )
        categories = Categories.build(header["category_ids"], names=header["category_names"])
    except (KeyError, TypeError, InputError):
        raise FileFormatError("the header", "name images and classes", got=str(path)) from None
    if len(images) != len(header["image_ids"]) or len(categories) != len(header["category_ids"]):
        raise FileFormatError("ids", "be unique", got="repeated ids", place=str(path))
    return images, categories


def _masks_of(
    arrays: Arrays, image_sizes: NDArray[np.float64], *, place: Place, source: Path
) -> Masks | None:
    """Return the masks of rows whose images have these sizes (width, height; [N, 2]); None without any."""
    if "mask_rows" not in arrays:
        return None
    for name, code in _MASK_ARRAYS.items():
        if name not in arrays or arrays[name].dtype != np.dtype(code):
            got = str(arrays[name].dtype) if name in arrays else "none"
            raise _damaged(name, f"be {np.dtype(code)}", got, source)
    rows, lengths, sizes, counts = (arrays[name] for name in _MASK_ARRAYS)
    if rows.ndim != 1 or np.any(np.diff(rows) <= 0) or np.any((rows < 0) | (rows >= len(image_sizes))):
        raise _damaged("mask_rows", f"be ascending rows below {len(image_sizes)}", "others", source)
    if lengths.shape != rows.shape or np.any(lengths < 0) or lengths.sum() != counts.size:
        raise _damaged(
            "mask_lengths",
            f"add up to {counts.size}, one per mask",
            f"{lengths.sum()} of {lengths.size}",
            source,
        )
    if sizes.shape != (len(rows), 2) or np.any(sizes < 0):
        raise _damaged("mask_sizes", f"be {[len(rows), 2]} and not negative", list(sizes.shape), source)
    text = counts.tobytes()
    ends = [0, *itertools.accumulate(lengths.tolist())]
    given: list[Any] = [None] * len(image_sizes)
    for row, size, start, end in zip(rows.tolist(), sizes.tolist(), ends, ends[1:], strict=False):
        given[row] = {"size": size, "counts": text[start:end]}
    return Masks(given, image_sizes=image_sizes, place=place)


def _damaged(name: str, rule: str, got: object, path: Path) -> FileFormatError:
    return FileFormatError(f"column {name}", rule, got=got, place=str(path), cause="a damaged file?")
