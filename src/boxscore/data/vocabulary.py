"""Define vocabularies: the images and categories of a table, to which it refers by row.

Conventions
-----------
- Ids are unique integers or strings, sorted: integers in ascending order, then strings. The order of images
  breaks ties between equal scores.
- A row is an ``int32``; -1 means "not in this vocabulary", only in the result of :meth:`Vocabulary.rows`. Ids
  do not have special values: 0 is a normal id.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.records import record
from boxscore._utils.text import html_lines, short_list
from boxscore.data.class_names import ClassFinder, ambiguous, class_labels
from boxscore.data.schema import CATEGORY_NAMES, IMAGE_NAMES, check_one_number, in_frame, user_columns
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Id = int | str

SUPERCATEGORY = "supercategory"
"""Name of the column with the group of each class, as in COCO."""

SKELETON = "skeleton"
"""Name of the column with the pairs of keypoints to connect in drawings, from 1: ``"1-2 2-3"``."""


def limbs_of_text(skeleton: object) -> list[tuple[int, int]]:
    """Parse the text of a skeleton into pairs of keypoints, counted from 1."""
    return [(int(first), int(second)) for first, second in re.findall(r"(\d{1,6})-(\d{1,6})", str(skeleton))]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def without_zeros(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return image sizes [N, 2] with NaN where a side is 0, which some programs write for an unknown size."""
    zero = (sizes == 0).any(axis=1)
    return np.where(zero[:, None], np.nan, sizes) if zero.any() else sizes


def positions(rows: slice | ArrayLike, count: int) -> NDArray[np.intp]:
    """Convert a mask, a slice or row numbers to row numbers."""
    if isinstance(rows, slice):
        return np.arange(count)[rows]
    array = checks.any_array(rows, name="rows")
    if array.ndim == 1 and array.dtype == bool:
        if len(array) != count:
            got = f"length {len(array)}"
            raise InputError("a mask of rows", f"be as long as the table ({count})", got=got)
        return np.flatnonzero(array)
    if array.ndim == 1 and not array.size:
        return np.empty(0, dtype=np.intp)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        rule = "be a slice, a mask [N] or row numbers [K]"
        raise InputError("rows", rule, got=f"{array.dtype} of shape {list(array.shape)}")
    return array.astype(np.intp, copy=False)


def rows_among_all(image: NDArray[np.integer[Any]], place: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert rows of the images of a shard to rows of all images, [N].

    ``place`` is the row of its first image, if the images are consecutive, or of each image.
    """
    return image.astype(np.int64) + place if isinstance(place, int) else place[image]


def rows_where(columns: Mapping[str, NDArray[Any]], selection: str, count: int) -> NDArray[np.bool_]:
    """Whether each row matches ``"column=value"``, [N]; every row matches an empty selection.

    ``"column=value|value"`` matches any of several values. If the column is unknown, all rows are False.
    """
    if not selection:
        return np.ones(count, dtype=bool)
    name, _, wanted = selection.partition("=")
    if name not in columns:
        return np.zeros(count, dtype=bool)
    values = wanted.split("|")
    return np.array([str(value) in values for value in columns[name].tolist()], dtype=bool)


def as_ids(values: Iterable[Any] | NDArray[Any], *, name: str) -> NDArray[Any]:
    """Convert ids to an int64 array, or to an object array if any is a string."""
    # Return the usual cases without checking single ids: an int64 array, or a list of Python integers.
    if type(values) is np.ndarray and values.dtype == np.int64 and values.ndim == 1:
        return values
    if not isinstance(values, np.ndarray):
        values = list(values)
        if set(map(type, values)) <= {int}:
            with contextlib.suppress(OverflowError):
                return np.array(values, dtype=np.int64)
    array = (
        np.array(values, dtype=object) if isinstance(values, list) else checks.any_array(values, name=name)
    )
    # Reject other shapes, and dates, which NumPy would silently convert to integers.
    if array.ndim != 1:
        raise InputError(name, "have shape [N]", got=f"shape {list(array.shape)}")
    if array.dtype.kind in "mM":
        raise InputError(name, "be integers or strings", got=str(array.dtype))
    # Widen smaller integers; check uint64 id by id, because it may not fit.
    if array.dtype.kind == "i" or (array.dtype.kind == "u" and array.dtype.itemsize < 8):
        return array.astype(np.int64, copy=False)
    # Accept integers and strings only; ``bool`` is a subclass of ``int``, so reject it explicitly.
    items = [item.item() if isinstance(item, np.generic) else item for item in array.tolist()]
    for row, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, (int, str)):
            raise InputError(name, "be integers or strings", got=repr(item), place=f"row {row}")
    # Keep integers beyond 64 bits as Python integers in an object array.
    if all(isinstance(item, int) for item in items):
        try:
            return np.array(items, dtype=np.int64)
        except OverflowError:
            pass  # an id beyond 64 bits
    ids = np.empty(len(items), dtype=object)
    ids[:] = items
    return ids


def sort_key(identifier: Id) -> tuple[bool, Id]:
    """Return the sort key of an id: numbers before strings."""
    return isinstance(identifier, str), identifier


BLOCK = 1 << 16
"""Number of ids to convert to text at a time."""


@record(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Sorted unique ids.

    Attributes
    ----------
    ids : ndarray, [N]
        int64, or object if any id is a string.
    """

    ids: NDArray[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", read_only(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {len(self):,}\n  ids: {short_list(self.ids)}"

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    @staticmethod
    def order(ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return the indices that sort the ids; of repeated ids, only that of the last."""
        if ids.dtype != object:
            order = np.argsort(ids, kind="stable")
        else:
            values = ids.tolist()
            are_texts = all(type(identifier) is str for identifier in values)
            key = values.__getitem__ if are_texts else lambda row: sort_key(values[row])
            order = np.array(sorted(range(len(values)), key=key), dtype=np.int64)
        in_order = ids[order]
        return order[np.append(in_order[1:] != in_order[:-1], True)] if len(ids) else order

    def same_as(self, other: Vocabulary) -> bool:
        """Whether both have the same ids in the same order."""
        return self is other or self.ids.tolist() == other.ids.tolist()

    def fingerprint(self) -> str:
        """Return :func:`digest_of_names` of the ids as 64 hexadecimal digits."""
        return f"{digest_of_names(self.ids):064x}"

    def index(self) -> dict[Id, int]:
        """Map each id to its row number."""
        return {identifier: row for row, identifier in enumerate(self.ids.tolist())}

    def rows(self, ids: NDArray[Any] | Sequence[Id]) -> NDArray[np.int32]:
        """Return the row of each id; -1 if unknown."""
        values = ids if isinstance(ids, np.ndarray) else as_ids(ids, name="ids")
        if not len(self) or not len(values):
            return np.full(len(values), -1, dtype=np.int32)
        if self.ids.dtype != object and values.dtype != object:
            return _integer_rows(self.ids, values)
        index = self.index()
        return np.fromiter((index.get(value, -1) for value in values.tolist()), np.int32, len(values))


def digest_of_names(ids: NDArray[Any]) -> int:
    """Return the sum of the SHA-256 of all ids as text, modulo 2 ** 256; digests of disjoint ids add up."""
    sha256, total = _sha256(), 0
    for start in range(0, len(ids), BLOCK):  # bounds the number of Python objects in memory
        block = ids[start : start + BLOCK]
        if block.dtype == object:
            names = [str(identifier).encode("utf-8", "surrogatepass") for identifier in block.tolist()]
        else:
            names = block.astype("S21").tolist()
        total += sum(int.from_bytes(sha256(name).digest(), "big") for name in names)
    return total % 2**256


def _sha256() -> Callable[[bytes], Any]:
    """Return Python's own SHA-256: loading OpenSSL for ``hashlib`` takes longer than hashing 5,000 ids."""
    for module in ("_sha2", "_sha256"):  # of Python 3.12, and of older ones
        with contextlib.suppress(ImportError):
            return importlib.import_module(module).sha256  # type: ignore[no-any-return]
    return importlib.import_module("hashlib").sha256  # type: ignore[no-any-return]


def _integer_rows(known: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int32]:
    low, high = int(known[0]), int(known[-1])
    if high - low <= 8 * len(values) + 1_000_000:  # for a small range, a lookup table is faster than search
        table = np.full(high - low + 2, -1, dtype=np.int32)
        table[known - low] = np.arange(len(known), dtype=np.int32)
        outside = (values < low) | (values > high)
        if outside.any():
            return table[np.where(outside, high - low + 1, values - low)]
        return np.take(table, values - low)
    rows = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[rows] == values, rows, -1).astype(np.int32)


@record(frozen=True, eq=False, repr=False)
class Images(Vocabulary):
    """The images of a data set.

    Attributes
    ----------
    file_names : ndarray of object, [N]
        File name, or None if unknown.
    sizes : ndarray of float64, [N, 2]
        Width and height in pixels; NaN if unknown. A side of 0, as some programs write, is unknown too.
    columns : mapping of str to ndarray, [N] each
        Additional columns (camera, weather), for slicing.
    """

    file_names: NDArray[np.object_]
    sizes: NDArray[np.float64]
    columns: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "file_names", read_only(self.file_names))
        object.__setattr__(self, "sizes", read_only(without_zeros(self.sizes)))
        columns = {name: read_only(column) for name, column in self.columns.items()}
        object.__setattr__(self, "columns", columns)

    @classmethod
    def build(
        cls,
        ids: Iterable[Any] | NDArray[Any],
        *,
        file_names: Sequence[str | None] | None = None,
        sizes: Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Images:
        """Build a vocabulary sorted by id; the last of repeated ids wins, as in pycocotools."""
        given = as_ids(ids, name="image ids")
        order = cls.order(given)
        names = np.full(len(given), None, dtype=object)
        if file_names is not None:
            checks.same_length(len(given), of="image ids", file_names=file_names)
            names[:] = list(file_names)
        extent = np.full((len(given), 2), np.nan)
        if sizes is not None:
            extent = checks.float_array(sizes, name="image sizes", columns=2)
            checks.same_length(len(given), of="image ids", sizes=extent)
        extra = user_columns(columns, len(given), of="image ids")
        return cls(given[order], names[order], extent[order], {k: v[order] for k, v in extra.items()})

    @property
    def names(self) -> list[str]:
        """The file name of each image, or its id if the name is missing or empty."""
        pairs = zip(self.file_names.tolist(), self.ids.tolist(), strict=True)
        return [name or str(identifier) for name, identifier in pairs]

    @classmethod
    def of_ids(cls, ids: NDArray[Any], columns: Mapping[str, NDArray[Any]] | None = None) -> Images:
        """Build images from sorted unique ids only, without names and sizes, and without extra memory."""
        nameless = np.broadcast_to(np.array(None, dtype=object), len(ids))
        return cls(ids, nameless, np.broadcast_to(np.nan, (len(ids), 2)), dict(columns or {}))

    @classmethod
    def union(cls, parts: Sequence[Images]) -> Images:
        """Merge vocabularies; the last of repeated ids wins, and columns that all of them have are kept."""
        shared = [key for key in parts[0].columns if all(key in part.columns for part in parts)]
        return cls.build(
            [identifier for part in parts for identifier in part.ids.tolist()],
            file_names=[name for part in parts for name in part.file_names.tolist()],
            sizes=np.concatenate([part.sizes for part in parts]),
            columns={key: np.concatenate([part.columns[key] for part in parts]) for key in shared},
        )

    def take(self, rows: NDArray[Any]) -> Images:
        """Return these rows, which must be ascending, as another vocabulary."""
        columns = {key: value[rows] for key, value in self.columns.items()}
        return Images(self.ids[rows], self.file_names[rows], self.sizes[rows], columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return ``image_id, file_name, width, height`` and additional columns, one row per image."""
        import pandas as pd

        for name, column in self.columns.items():
            if name in IMAGE_NAMES:
                raise InputError("a column", "have a name that images do not use themselves", got=repr(name))
            check_one_number(name, column)
        sides = (self.ids, self.file_names, *self.sizes.T)
        return pd.DataFrame({**dict(zip(IMAGE_NAMES, sides, strict=True)), **in_frame(self.columns)})

    def __repr__(self) -> str:
        known = int((~np.isnan(self.sizes).any(axis=1)).sum())
        lines = [super().__repr__(), f"sizes known: {known:,}"]
        lines += [f"columns: {short_list(self.columns)}"] if self.columns else []
        return "\n  ".join(lines)


@record(frozen=True, eq=False, repr=False)
class Categories(Vocabulary):
    """The classes of a data set.

    Attributes
    ----------
    names : ndarray of object, [N]
        Class names. Two classes may share a name.
    columns : mapping of str to ndarray, [N] each
        Additional columns (``frequency`` in LVIS, ``supercategory`` in COCO), by which summary metrics may
        select classes.
    are_positions : bool
        Whether the ids are indices from 0 into a list of names; another tool may count from 1.
    """

    names: NDArray[np.object_]
    columns: Mapping[str, NDArray[Any]] = dataclasses.field(default_factory=dict)
    are_positions: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "names", read_only(self.names))
        columns = {name: read_only(column) for name, column in self.columns.items()}
        object.__setattr__(self, "columns", columns)

    @classmethod
    def build(
        cls,
        ids: Iterable[Any] | NDArray[Any],
        *,
        names: Sequence[str] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Categories:
        """Build a vocabulary sorted by id; the last of repeated ids wins. Names default to the ids."""
        given = as_ids(ids, name="category ids")
        order = cls.order(given)
        if names is not None:
            checks.same_length(len(given), of="category ids", names=names)
        texts = np.empty(len(given), dtype=object)
        texts[:] = [str(identifier) for identifier in given.tolist()] if names is None else list(names)
        extra = user_columns(columns, len(given), of="category ids")
        return cls(given[order], texts[order], {key: value[order] for key, value in extra.items()})

    @classmethod
    def union(cls, parts: Sequence[Categories]) -> Categories:
        """Merge vocabularies; the last of repeated ids wins, and columns that all of them have are kept."""
        # Collect the classes in order of occurrence.
        names: dict[Id, str] = {}
        for part in parts:
            for identifier, name in zip(part.ids.tolist(), part.names.tolist(), strict=True):
                if names.setdefault(identifier, name) != name:
                    raise InputError(
                        f"class {identifier!r}", "have one name", got=f"{names[identifier]!r} and {name!r}"
                    )
        # Keep the columns that every vocabulary has; the last value of a repeated class wins.
        shared = [key for key in parts[0].columns if all(key in part.columns for part in parts)]
        columns = {}
        for key in shared:
            values = {
                identifier: value
                for part in parts
                for identifier, value in zip(part.ids.tolist(), part.columns[key].tolist(), strict=True)
            }
            # Keep dtype object for text, to avoid truncated strings.
            kind = object if any(part.columns[key].dtype.kind in "OU" for part in parts) else None
            columns[key] = np.array([values[identifier] for identifier in names], dtype=kind)
        return cls.build(list(names), names=list(names.values()), columns=columns)

    @property
    def shown_columns(self) -> dict[str, NDArray[Any]]:
        """The columns to show in a table of classes: all but groups and skeletons."""
        return {
            name: values for name, values in self.columns.items() if name not in (SUPERCATEGORY, SKELETON)
        }

    @property
    def labels(self) -> list[str]:
        """Unique display names: the name of each class, with its id in parentheses if ambiguous."""
        return class_labels(self.names.tolist(), self.ids.tolist())

    def labels_beside(self, *words: str) -> list[str]:
        """Return labels that differ from these words."""
        labels = self.labels
        if set(words).isdisjoint(labels):
            return labels
        return class_labels(self.names.tolist(), self.ids.tolist(), avoid=words)

    def take(self, rows: NDArray[Any]) -> Categories:
        """Return these rows, which must be ascending, as another vocabulary."""
        columns = {key: value[rows] for key, value in self.columns.items()}
        return Categories(self.ids[rows], self.names[rows], columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return ``category_id, class`` and additional columns, one row per class."""
        import pandas as pd

        sides = (self.ids, self.names)
        return pd.DataFrame({**dict(zip(CATEGORY_NAMES, sides, strict=True)), **in_frame(self.columns)})

    def __repr__(self) -> str:
        return f"{super().__repr__()}\n  names: {short_list(self.names)}"

    def given_names(self) -> set[str]:
        """Return the class names, without those that only repeat the id."""
        pairs = zip(self.ids.tolist(), self.names.tolist(), strict=True)
        return {name for identifier, name in pairs if name != str(identifier) or isinstance(identifier, str)}

    def rows_of_names(self) -> dict[str, list[int]]:
        """Map each name to the rows that have it."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.names.tolist()):
            rows.setdefault(name, []).append(row)
        return rows

    def rows_by_id_or_name(
        self, values: Sequence[Id], *, what: str = "a class name", place: str = ""
    ) -> NDArray[np.int32]:
        """Return the row of each value in a file, by id, else name, else label; -1 if unknown.

        Raises
        ------
        InputError
            If a name is shared by several classes.
        """
        named = self.rows_of_names()
        known: dict[Id, int] = {name: rows[0] if len(rows) == 1 else -2 for name, rows in named.items()}
        known |= self.index()
        rows = np.array([known.get(value, -1) for value in values], dtype=np.int32)
        if len(rows) and rows.min() < 0:
            known = {**dict(zip(self.labels, range(len(self)), strict=True)), **known}
            rows = np.array([known.get(value, -1) for value in values], dtype=np.int32)
        if len(rows) and rows.min() < -1:
            self.refuse_several(values[int(np.argmin(rows))], what=what, place=place)
        return rows

    def refuse_several(self, name: Id, *, what: str = "a class name", place: str = "") -> NoReturn:
        """Raise an error for a name shared by several classes."""
        labels = self.labels
        several = [labels[row] for row in self.rows_of_names().get(str(name), ())]
        raise ambiguous(name, several, what=what, place=place)

    def rows_by_word(
        self, words: Sequence[Id], *, what: str = "a class", numbers: bool = False
    ) -> NDArray[np.int32]:
        """Return the row of each class given by id, name or label; -1 if unknown. Raise if ambiguous.

        With ``numbers``, text that spells a number is an id too, as on the command line.
        """
        finder = self.finder(numbers=numbers)
        return np.array([finder.row(word, what=what) for word in words], dtype=np.int32)

    def finder(self, *, numbers: bool = False) -> ClassFinder:
        """Return a finder of classes by word; ``numbers`` as for :meth:`rows_by_word`."""
        return ClassFinder(self.names.tolist(), self.ids.tolist(), numbers=numbers)

    def rows_of_classes(self, other: Categories) -> NDArray[np.int32]:
        """Return the row of each class of another, independently numbered vocabulary, [len(other)].

        Classes are matched by name; if several share the name, by id too. -1 if unknown, -2 if ambiguous.
        """
        names = self.rows_of_names()
        ids = self.ids.tolist()
        rows = np.full(len(other), -1, dtype=np.int32)
        for row, (name, identifier) in enumerate(zip(other.names.tolist(), other.ids.tolist(), strict=True)):
            named = names.get(name, [])
            same = [known for known in named if ids[known] == identifier] if len(named) > 1 else named
            rows[row] = same[0] if same else -2 if named else -1
        return rows
