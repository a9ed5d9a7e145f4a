"""Rows larger than memory on disk: cut by images as they are read, and put in order again when they are made.

Conventions
-----------
- All rows of an image are in one bucket, by a hash of its id, whatever the order in which they come; a few
  buckets are a partition. A bucket is a file of tables, one after the other.
- What is made of a partition is a file of sorted pieces; files are merged a piece of each at a time.
"""

from __future__ import annotations

import contextlib
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore.data.alignment import concatenate
from boxscore.data.operations import no_detections, of_images, under_classes
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._shares import ROW

MOST_BUCKETS = 1 << 14

SPREAD = 4
"""Buckets of a partition, about: so many that one of them is seldom a large part of it."""

LEAST_PIECE = 1 << 10
"""Rows of a piece of a file that is merged, at least."""

_FACTOR = 0x9E3779B97F4A7C15

Columns = Mapping[str, NDArray[Any]]


class Spilled(NamedTuple):
    """The rows of one file, in buckets."""

    files: tuple[Path, ...]
    counts: IntArray
    """Rows of each bucket."""
    categories: Categories
    total: int


def bucket_count(rows: int, partition: int) -> int:
    """Return in how many buckets about so many rows are cut, for partitions of so many."""
    partitions = -(-rows // partition)
    return min(SPREAD * partitions, MOST_BUCKETS) if partitions > 1 else 1


def spilled(
    blocks: Iterable[Detections], folder: Path, buckets: int, *, held: int, first: int = 0
) -> Spilled:
    """Write tables, which have the column ``ROW``, into the buckets of their images.

    Parameters
    ----------
    blocks : iterable of Detections
    folder : Path
    buckets : int
    held : int
        Rows that are in memory, about.
    first : int
        Is added to the rows.
    """
    files = tuple(folder / f"{number}.rows" for number in range(buckets))
    counts, kinds = np.zeros(buckets, dtype=np.int64), dict[str, set[type]]()
    categories = Categories.build([])
    waiting: list[Detections] = []

    def flush() -> None:
        whole = concatenate(waiting)[0]
        waiting.clear()
        with _writing(folder):
            folder.mkdir(exist_ok=True)
            counts[:] += _written(whole, files)

    for table in blocks:
        _check_kinds(table, kinds)
        assert len(table.scores) == len(table)  # an error without scores
        categories = Categories.union([categories, table.categories])
        waiting.append(table.replaced(columns={ROW: table.columns[ROW] + first}))
        if sum(map(len, waiting)) >= held:
            flush()
    if waiting:
        flush()
    return Spilled(files, counts, categories, int(counts.sum()))


def _check_kinds(table: Detections, known: dict[str, set[type]]) -> None:
    """Refuse ids that are numbers in one place and texts in another: all of them decide what they are."""
    for name, ids in (("image_id", table.images.ids), ("category_id", table.categories.ids)):
        kinds = known.setdefault(name, set())
        kinds |= {type(one) for one in ids.tolist()} if ids.dtype == object else {int} if len(ids) else set()
        if len(kinds) > 1:
            rule = "be a number in every detection, or a text in every one, to be read a piece at a time"
            cause = "without --memory-limit texts are read as the numbers that they spell"
            raise FileFormatError(name, rule, got="both", place=table.source, cause=cause)


def _written(table: Detections, files: Sequence[Path]) -> IntArray:
    """Write the rows of a table, and return how many each bucket got."""
    of_image = buckets_of(table.images.ids, len(files))
    of_row = of_image[table.image]
    rows, images = np.argsort(of_row, kind="stable"), np.argsort(of_image, kind="stable")
    numbers = np.arange(len(files) + 1)
    row_ends = np.searchsorted(of_row[rows], numbers)
    image_ends = np.searchsorted(of_image[images], numbers)
    for number in np.flatnonzero(np.diff(row_ends)).tolist():
        its_rows, its_images = (
            order[ends[number] : ends[number + 1]] for order, ends in ((rows, row_ends), (images, image_ends))
        )
        part = of_images(table, its_images, its_rows)
        if part.masks is not None:
            part = part.replaced(masks=part.masks.alone())
        with files[number].open("ab") as file:
            pickle.dump(part, file, protocol=5)
    counts: IntArray = np.diff(row_ends)
    return counts


def buckets_of(ids: NDArray[Any], buckets: int) -> IntArray:
    """Return the bucket of each image: a hash of its id."""
    if ids.dtype == object:
        hashes = (_hash(one) for one in ids.tolist())
        mixed = np.fromiter(hashes, np.uint64, len(ids))
    else:
        mixed = ids.astype(np.uint64) * np.uint64(_FACTOR)
    return ((mixed >> np.uint64(32)) % np.uint64(buckets)).astype(np.int64)


def _hash(identifier: int | str) -> int:
    if isinstance(identifier, str):
        identifier = zlib.crc32(identifier.encode("utf-8", "surrogatepass"))
    return identifier * _FACTOR % 2**64


def partitions(every: Sequence[Spilled], most: int) -> list[range]:
    """Return the buckets of each partition: so many that all files have ``most`` rows in them, or one."""
    counts = sum(spilled.counts for spilled in every)
    cut, start, rows = list[range](), 0, 0
    for number, count in enumerate(np.asarray(counts).tolist()):
        if rows and rows + count > most:
            cut.append(range(start, number))
            start, rows = number, 0
        rows += count
    return [*cut, range(start, len(every[0].files))]


def table_of(files: Sequence[Path], categories: Categories) -> Detections:
    """Return the rows in some buckets of a file, in their order, with the classes of all."""
    tables: list[Detections] = [table for file in files for table in _pickled(file)]
    if not tables:
        return no_detections(categories, columns={ROW: np.empty(0, np.int64)})
    table = under_classes(concatenate(tables)[0], categories)
    table = table.take(np.argsort(table.columns[ROW]))
    if table.masks is None:
        return table
    numbers, source = table.columns[ROW], table.source
    return table.replaced(masks=table.masks.alone(lambda row: f"detection {numbers[row]} of {source}"))


def _pickled(file: Path) -> Iterator[Any]:
    if not file.exists():
        return
    with file.open("rb") as opened, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(opened)


# ---------------------------------------------------------------- what is made, in order


def write_pieces(columns: Columns, file: Path, size: int) -> None:
    """Write sorted columns in pieces of so many rows."""
    count = len(next(iter(columns.values())))
    with _writing(file.parent), file.open("wb") as opened:
        for start in range(0, count, size):
            piece = {name: column[start : start + size] for name, column in columns.items()}
            pickle.dump(piece, opened, protocol=5)


def merged(files: Sequence[Path], keys: Sequence[str]) -> Iterator[dict[str, NDArray[Any]]]:
    """Merge files of :func:`write_pieces`, each sorted by ``keys``: pieces of all their rows in order."""
    places = [0] * len(files)
    pieces: dict[int, Columns] = {}
    empty = set(range(len(files)))
    while True:
        for number in empty:
            piece, places[number] = _piece_at(files[number], places[number])
            if piece is None:
                pieces.pop(number, None)
            else:
                pieces[number] = piece
        if not pieces:
            return
        end = min(tuple(piece[key][-1] for key in keys) for piece in pieces.values())
        ends = {number: _rows_to(piece, keys, end) for number, piece in pieces.items()}
        taken = [{name: column[: ends[n]] for name, column in pieces[n].items()} for n in pieces if ends[n]]
        whole = {name: np.concatenate([piece[name] for piece in taken]) for name in taken[0]}
        order = np.lexsort([whole[key] for key in reversed(keys)])
        yield {name: column[order] for name, column in whole.items()}
        pieces = {
            n: {name: column[ends[n] :] for name, column in piece.items()} for n, piece in pieces.items()
        }
        empty = {number for number, piece in pieces.items() if not len(piece[keys[0]])}


def _piece_at(file: Path, place: int) -> tuple[Columns | None, int]:
    """Read the piece at a place of a file; files are many, so that none stays open."""
    with file.open("rb") as opened:
        opened.seek(place)
        try:
            piece: Columns = pickle.load(opened)
        except EOFError:
            return None, place
        return piece, opened.tell()


def _rows_to(piece: Columns, keys: Sequence[str], end: Sequence[Any]) -> int:
    """Return how many rows of a sorted piece are not behind ``end``."""
    low, high = 0, len(piece[keys[0]])
    for key, value in zip(keys, end, strict=True):
        column = piece[key][low:high]
        left, right = (int(np.searchsorted(column, value, side)) for side in ("left", "right"))
        low, high = low + left, low + right
    return high


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}; rows are stored there, 100 bytes a "
            "detection: choose another folder with TMPDIR."
        ) from None
