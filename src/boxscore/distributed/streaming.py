"""Parquet larger than memory: read in partitions of whole images, of which only the scores' share is held.

Goal
----
Detections in Parquet, and ground truth in Parquet or in any format, become tasks: each reads the row groups
that hold its images, matches them, and returns a part. No task needs another, so any ``map`` runs them.

Conventions
-----------
- One pass reads the column of images alone. Where an image's rows stand near each other, as in files that
  were written image by image, tasks read runs of row groups. Where they are scattered, that side is first
  regrouped on disk, into one file per partition.
- Whether boxes are fractions, what four numbers are, which classes there are: what one table would infer from
  all its rows is inferred once, from the files, and holds in every partition.
- An image's id is its id: where ids of detections are none of the ground truth's they may be file names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.pickling import PicklesFields
from boxscore._utils.progress import progress
from boxscore.data.alignment import select
from boxscore.data.column_names import ColumnParts
from boxscore.data.lookup import find_images
from boxscore.data.operations import of_images
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, Vocabulary, as_ids
from boxscore.distributed.parts import Part, match_part
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.evaluation import check_class_labels
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import (
    Rows,
    detections_of,
    file_categories,
    ground_truth_of,
    images_of_unknown_size,
)
from boxscore.formats._tables import classes_of, images_of, refuse_without_scores, rows_of
from boxscore.formats.parquet import arrow
from boxscore.formats.parquet_groups import KEY, BoxesTable, ParquetGroups, RowGroup
from boxscore.formats.reading import FileOptions, read_ground_truth
from boxscore.formats.registry import is_parquet
from boxscore.matching.preparing import prepared
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import similarity_of

PARTITION = 1 << 20
"""Boxes of a partition, about."""

MOST_PARTITIONS = 512
"""Files that are written at once when a side is regrouped."""

BUFFERED = 1 << 22
"""Boxes that wait for their files while a side is regrouped."""

NEAR = 2.0
"""Row groups may be read so many times on average; beyond it the side is regrouped."""

Ids = NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Side(PicklesFields):
    """One side of the data set: its row groups, and what all of them together say.

    Attributes
    ----------
    groups : ParquetGroups
    options : ReadOptions
        With what was inferred from the whole.
    fractions : bool
    stays_in_fractions : bool
        Whether sizes are missing, so that boxes of the ground truth stay fractions.
    names : mapping, or None
        The image behind each name that is no id.
    """

    groups: ParquetGroups
    options: ReadOptions
    fractions: bool
    names: Mapping[Id, Id] | None = None
    stays_in_fractions: bool = False

    def read(self, source: Source, ids: Ids) -> BoxesTable | None:
        """Read the boxes of some images, whose column then holds their ids; None where there are none."""
        pa, pq = arrow()
        if source.file is not None:
            tables = [pq.read_table(source.file)] if source.file.exists() else []
        else:
            tables = [self.groups.read(group) for group in source.groups]
        name, known, parts = self.groups.parts.image, Vocabulary(ids), []
        for table in tables:
            values, positions = BoxesTable(self.groups, [table]).distinct(name)
            rows = known.rows(as_ids(self._translated(values), name="image ids"))[positions]
            chosen = np.flatnonzero(rows >= 0)
            if not len(chosen):
                continue
            some = table.take(pa.array(chosen)) if len(chosen) < len(table) else table
            column = pa.DictionaryArray.from_arrays(pa.array(rows[chosen]), _arrow_ids(ids))
            some = some.set_column(some.schema.get_field_index(name), name, column)
            parts.append(some.replace_schema_metadata(table.schema.metadata))
        return BoxesTable(self.groups, parts) if parts else None

    def _translated(self, values: Sequence[Id]) -> list[Id]:
        if self.names is None:
            return list(values)
        return [self.names.get(value, value) for value in values]


class Source(NamedTuple):
    """Where a partition's rows of one side are: in row groups, or in one file."""

    groups: tuple[RowGroup, ...] = ()
    file: Path | None = None


@dataclasses.dataclass(frozen=True)
class StreamTask(PicklesFields):
    """One partition: reads its images, matches them, returns their part.

    Attributes
    ----------
    number : int
    protocol : Protocol
    ids : ndarray
        Of its images, in the order of a vocabulary.
    truth : GroundTruth or Side
        The table of its images; or where to read it.
    truth_source : Source
    categories : Categories
        Of the whole ground truth.
    detections : Side
    source : Source
    classes : sequence of ids or names, optional
        Only these are evaluated.
    """

    number: int
    protocol: Protocol
    ids: Ids
    truth: GroundTruth | Side
    truth_source: Source
    categories: Categories
    detections: Side
    source: Source
    classes: tuple[Id, ...] | None = None

    def run(self) -> Part:
        """Return the part of the partition."""
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", BoxscoreWarning
            )  # of a share of the data; the part counts what is left out
            truth = self._truth()
            boxes = self.detections.read(self.source, self.ids)
            keys = np.empty(0, dtype=np.int64)
            if boxes is None:
                nothing: Any = []
                detections = Detections.from_arrays(
                    nothing,
                    nothing,
                    np.empty((0, 4)),
                    nothing,
                    images=truth.images,
                    categories=truth.categories,
                )
            else:
                side = self.detections
                rows = rows_of(boxes, side.options, truth, of_results=True, fractions=side.fractions)
                detections = detections_of(rows, side.options, truth)
            truth, detections = prepared(truth, detections, self.protocol, share=True)
            if self.classes is not None:
                truth, detections = select(truth, detections, classes=self.classes)
            if boxes is not None:
                keys = detections.columns[KEY]
            part = match_part(truth, detections, self.protocol, rows=keys)
            source = f"partition {self.number} of {self.detections.groups.path}"
            named = detections.replaced(source=source)
            text = similarity_of(self.protocol).fallbacks(truth, named)
        return dataclasses.replace(part, source=source, fallbacks=(text, int(text != "")))

    def _truth(self) -> GroundTruth:
        if isinstance(self.truth, GroundTruth):
            return self.truth
        table = self.truth.read(self.truth_source, self.ids)
        assert table is not None, "every image of a partition has a row"
        options = self.truth.options
        rows = rows_of(table, options, None, of_results=False, fractions=self.truth.fractions)
        rows = dataclasses.replace(rows, stays_in_fractions=self.truth.stays_in_fractions)
        truth = ground_truth_of(rows, options)
        category = self.categories.rows(truth.categories.ids)[truth.category]
        images = _without_names(truth.images)
        truth = truth.replaced(images=images, categories=self.categories, category=category)
        return _with_bounded_columns(truth, self.protocol)


def _bounded_columns(protocol: Protocol) -> set[str]:
    """Names of the columns that the protocol's ranges bound."""
    return {name for columns in protocol.ignore.column_ranges.values() for name in columns}


def _with_bounded_columns(truth: GroundTruth, protocol: Protocol) -> GroundTruth:
    """Leave out the columns that nothing reads."""
    read = _bounded_columns(protocol)
    return truth.replaced(columns={name: column for name, column in truth.columns.items() if name in read})


def stream_tasks(
    ground_truth: GroundTruth | Path,
    detections: Path,
    protocol: Protocol,
    folder: Path,
    *,
    truth_options: FileOptions,
    options: ReadOptions,
    classes: Callable[[Categories], Sequence[Id] | None] | None = None,
    partitions: int | None = None,
    partition: int = PARTITION,
) -> list[StreamTask]:
    """Read through the files, and cut the images into partitions.

    Parameters
    ----------
    ground_truth : GroundTruth or Path
        A table, a Parquet file or folder, or anything that ``load_ground_truth`` reads.
    detections : Path
        A Parquet file, or a folder of them.
    protocol : Protocol
    folder : Path
        Where scattered files are regrouped; must outlive the tasks.
    truth_options : FileOptions
    options : ReadOptions
    classes : callable, optional
        Takes the classes of the ground truth and returns those to evaluate, ids or names; None for all.
    partitions : int, optional
        How many, about; in place of ``partition``.
    partition : int
        Boxes of a partition, about.

    Returns
    -------
    list of StreamTask

    Raises
    ------
    FileFormatError
        When a file is unreadable, or a row breaks a rule.
    InputError
        When a detection is in an unknown image.
    """
    truth = _opened_truth(ground_truth, truth_options, _bounded_columns(protocol))
    parquet = ParquetGroups.open(detections, options)
    if parquet.parts.score is None:
        rule, cause = "have a column score or confidence", "is this the ground truth?"
        raise FileFormatError(
            "detections", rule, got=f"only {', '.join(parquet.names)}", place=str(detections), cause=cause
        )
    refuse_without_scores(parquet.absent, parquet.parts, str(detections))
    if partitions is not None:
        partition = max(1, -(-parquet.boxes // partitions))
    seen = _Images.of(truth, truth_options)
    images_of_group, names = _images_of_groups(parquet, seen.images)
    table = truth if isinstance(truth, GroundTruth) else None
    side = _side_of(parquet, options, table, names, of_results=True)
    cut = _cut(parquet, images_of_group, seen, partition)
    count = int(cut.partition.max(initial=0)) + 1
    sources = cut.sources
    if sources is None:
        sources = _regrouped(side, cut.partition, seen.images.ids, count, folder / "detections")
    truth_sources = [Source()] * count
    truth_side: Side | None = None
    if isinstance(truth, ParquetGroups):
        truth_side = _side_of(truth, truth_options, None, None, of_results=False)
        truth_sources = _truth_sources(truth_side, seen, cut.partition, count, folder / "ground_truth")
    if isinstance(truth, GroundTruth):
        check_class_labels(truth.source, seen.categories, truth.image_labels, protocol)
    else:
        check_class_labels(str(truth.path), seen.categories, None, protocol)
    order = np.argsort(cut.partition, kind="stable")
    bounds = np.searchsorted(cut.partition[order], np.arange(count + 1))
    some = None if classes is None else classes(seen.categories)
    protocol.ap.check_classes(seen.categories, seen.categories if some is None else Categories.build([]))
    tasks: list[StreamTask] = []
    for number in range(count):
        rows = order[bounds[number] : bounds[number + 1]]
        if not len(rows) and count > 1:
            continue
        of_task: GroundTruth | Side | None = truth_side if len(rows) else _nothing(seen.categories)
        if of_task is None:
            assert isinstance(truth, GroundTruth)
            table = of_images(truth, rows)
            of_task = _with_bounded_columns(table.replaced(images=_without_names(table.images)), protocol)
        tasks.append(
            StreamTask(
                len(tasks),
                protocol,
                seen.images.ids[rows],
                of_task,
                truth_sources[number],
                seen.categories,
                side,
                sources[number],
                None if some is None else tuple(some),
            )
        )
    return tasks


def _nothing(categories: Categories) -> GroundTruth:
    """Return ground truth without an image."""
    nothing: Any = []
    return GroundTruth.from_arrays(nothing, nothing, np.empty((0, 4)), categories=categories)


# ---------------------------------------------------------------- what all rows together say


class _Images(NamedTuple):
    """The images and classes of the ground truth, and where its images stand."""

    images: Images
    categories: Categories
    order: IntArray
    """Rows of the images in the order of the ground truth's files, [I]."""
    of_group: list[NDArray[np.int32]]
    """Rows of the images of each row group."""

    @classmethod
    def of(cls, truth: GroundTruth | ParquetGroups, options: ReadOptions) -> _Images:
        if isinstance(truth, GroundTruth):
            return cls(truth.images, truth.categories, np.arange(len(truth.images)), [])
        return _images_of_truth(truth, options)


def _opened_truth(
    truth: GroundTruth | Path, options: FileOptions, further: set[str]
) -> GroundTruth | ParquetGroups:
    """Read ground truth; Parquet is only opened, unless it needs what is beside it."""
    if isinstance(truth, GroundTruth):
        return truth
    if is_parquet(truth, "ground truth") and options.image_labels is None and options.hierarchy is None:
        return ParquetGroups.open(truth, options, further=further)
    return read_ground_truth(truth, options)


def _images_of_truth(truth: ParquetGroups, options: ReadOptions) -> _Images:
    """Collect the images and classes of ground truth in Parquet."""
    parts = truth.parts
    of_group: list[Ids] = []
    names: dict[Id, str] = {}
    categories: list[Categories] = []
    columns = (parts.image, parts.class_name, parts.class_id, parts.file_name, *parts.box[:1])
    for group in progress(truth.groups, desc="ground truth", unit="row group"):
        table = truth.read_columns(group, columns)
        values, positions = images_of(table, truth.parts)
        of_group.append(as_ids(values, name="image ids"))
        if parts.file_name is not None:
            texts, at = table.distinct(parts.file_name)
            first = np.full(len(values), -1, dtype=np.int64)
            first[positions[::-1]] = at[::-1]
            names |= {
                value: str(texts[one]) for value, one in zip(values, first.tolist(), strict=True) if one >= 0
            }
        categories.append(_categories_of(table, parts, options))
    ids = _each_once(of_group)
    if names:
        images = Images.build(ids, file_names=[names.get(one) for one in ids.tolist()])
    else:
        images = Images.of_ids(ids[Vocabulary.order(ids)])
    if not categories:  # what the schema names
        categories.append(_categories_of(BoxesTable(truth, [truth.empty()]), parts, options))
    every = Categories.union(categories)
    rows = [images.rows(ids_of_one).astype(np.int32) for ids_of_one in of_group]
    return _Images(images, every, images.rows(ids).astype(np.int64), rows)


def _each_once(ids_of_group: Sequence[Ids]) -> Ids:
    """Return the ids of all row groups, in the order of their first rows."""
    if not ids_of_group:
        return np.empty(0, dtype=np.int64)
    if any(ids.dtype == object for ids in ids_of_group):
        every = [one for ids in ids_of_group for one in ids.tolist()]
        return as_ids(dict.fromkeys(every), name="image ids")
    ids = np.concatenate(ids_of_group)
    if (ids[1:] > ids[:-1]).all():
        return ids
    first: IntArray = np.unique(ids, return_index=True)[1]
    return ids[np.sort(first)]


def _categories_of(table: BoxesTable, parts: ColumnParts, options: ReadOptions) -> Categories:
    """Return the classes of some rows, those without a box aside."""
    rows_with_boxes = np.flatnonzero(_have_boxes(table, parts))
    labels, label, names = classes_of(
        table, parts, options, rows_with_boxes, lambda row: table.place(int(rows_with_boxes[row]))
    )
    nothing = np.empty(0, dtype=np.int64)
    rows = Rows(
        source=table.source,
        images=[],
        image=nothing,
        labels=labels,
        label=label,
        boxes=None,
        box_format="xyxy",
        place=table.place,
        classes=table.class_list,
        label_names=names,
    )
    return file_categories(rows, options)[0]


def _have_boxes(table: BoxesTable, parts: ColumnParts) -> NDArray[np.bool_]:
    """Whether rows have a box, or a mask; by the first of its numbers, without which none may be there."""
    if not parts.box:
        assert parts.mask is not None
        return table.distinct(parts.mask).positions >= 0
    if len(parts.box) == 1:
        return ~np.isnan(table.fours(parts.box[0])[:, 0])
    return ~np.isnan(table.numbers(parts.box[0]))


def _side_of(
    groups: ParquetGroups,
    options: ReadOptions,
    truth: GroundTruth | None,
    names: Mapping[Id, Id] | None,
    *,
    of_results: bool,
) -> Side:
    """Infer from the whole whether boxes are fractions, and from the first boxes what four numbers are."""
    groups = groups.without_sides()
    fractions = groups.are_fractions()
    if groups.parts.box_format is None and options.box_format is None and groups.groups:
        first = next((group for group in groups.groups if group.boxes), groups.groups[0])
        table = BoxesTable(groups, [groups.read(first)])
        rows = rows_of(table, options, truth, of_results=of_results, fractions=fractions)
        options = dataclasses.replace(options, box_format=rows.box_format)
    stays = fractions and not of_results and _stays_in_fractions(groups, options)
    return Side(groups, dataclasses.replace(options, image_set=None), fractions, names, stays)


def _stays_in_fractions(groups: ParquetGroups, options: ReadOptions) -> bool:
    """Whether an image with a box has no known size in any of its rows."""
    unknown: set[Id] = set()
    known: set[Id] = set()
    for group in groups.groups:
        table = BoxesTable(groups, [groups.read(group)])
        rows = rows_of(table, options, None, of_results=False, fractions=True)
        without, others = images_of_unknown_size(rows, options)
        unknown |= without
        known |= others
    return bool(unknown - known)


def _without_names(images: Images) -> Images:
    """Return the images without file names: ids alone identify them."""
    return Images.build(images.ids, sizes=images.sizes, columns=images.columns)


def _images_of_groups(
    parquet: ParquetGroups, images: Images
) -> tuple[list[NDArray[np.int32]], dict[Id, Id] | None]:
    """Return the rows of the images of each row group, and the images behind names that are no ids."""
    index = images.index() if images.ids.dtype == object else None
    rows_of_groups, others, places = [], [], {}
    for group in progress(parquet.groups, desc="detections", unit="row group"):
        table = parquet.read_columns(group, [parquet.parts.image])
        values, positions = images_of(table, parquet.parts)
        if index is None:
            rows = images.rows(as_ids(values, name="image ids"))
        else:
            rows = np.array([index.get(value, -1) for value in values], dtype=np.int32)
        unknown = np.flatnonzero(rows < 0).tolist()
        for at in unknown:
            if values[at] not in places:
                places[values[at]] = table.place(int(np.argmax(positions == at)))
        rows_of_groups.append(np.unique(rows[rows >= 0]))
        others.append([values[at] for at in unknown])
    if not places:
        return rows_of_groups, None
    asked: list[Id] = list(places)
    where = list(places.values())
    if index is None:  # numbers are all of one kind
        asked += images.ids[np.unique(np.concatenate(rows_of_groups))].tolist()
        where += [where[0]] * (len(asked) - len(where))
    named = find_images(as_ids(asked, name="image ids"), images, place=where.__getitem__)
    row_of = dict(zip(places, named.tolist(), strict=False))
    rows_of_groups = [
        np.unique([*rows.tolist(), *(row_of[value] for value in more)]).astype(np.int32)
        for rows, more in zip(rows_of_groups, others, strict=True)
    ]
    ids = images.ids.tolist()
    return rows_of_groups, {value: ids[row] for value, row in row_of.items()}


# ---------------------------------------------------------------- partitions


class _Cut(NamedTuple):
    """The partition of each image, [I], and where the detections of each partition are; None: scattered."""

    partition: IntArray
    sources: list[Source] | None


def _cut(
    parquet: ParquetGroups, images_of_group: Sequence[NDArray[np.int32]], seen: _Images, size: int
) -> _Cut:
    """Cut the images into partitions along the row groups of the detections, where these allow it."""
    count, groups = len(seen.images), parquet.groups
    first, last = np.full(count, -1, dtype=np.int32), np.full(count, -1, dtype=np.int32)
    for number in range(len(groups) - 1, -1, -1):
        first[images_of_group[number]] = number
    for number, rows in enumerate(images_of_group):
        last[rows] = number
    size = max(size, parquet.boxes // MOST_PARTITIONS)
    runs, starts, held = np.zeros(len(groups) + 1, dtype=np.int64), [0], 0
    for number, group in enumerate(groups):
        if held and held + group.boxes > size:
            starts.append(number)
            held = 0
        held += group.boxes
        runs[number] = len(starts) - 1
    run = np.where(first >= 0, runs[first], -1)
    ordered = run[seen.order]  # images without detections stay with those before them
    places = np.maximum.accumulate(np.where(ordered >= 0, np.arange(count), -1))
    run[seen.order] = np.where(
        places >= 0, ordered[np.maximum(places, 0)], max(int(ordered.max(initial=0)), 0)
    )
    if count and not (run >= 0).any():
        run[:] = 0
    ends = [*starts[1:], len(groups)]
    furthest = np.array(ends)
    np.maximum.at(furthest, run[first >= 0], last[first >= 0] + 1)
    read = int((furthest - np.array(starts)).sum())
    if read > NEAR * len(groups) + len(starts):
        share = max(1, -(-parquet.boxes // size))
        place = np.empty(count, dtype=np.int64)
        place[seen.order] = np.arange(count) * share // max(count, 1)
        return _Cut(place, None)
    boxes = [sum(group.boxes for group in groups[low:high]) for low, high in zip(starts, ends, strict=True)]
    pieces = np.array([max(1, round(number / size)) for number in boxes])
    base = np.cumsum(pieces) - pieces
    inside = np.empty(count, dtype=np.int64)
    inside[seen.order] = np.arange(count)
    partition = base[run] + inside % pieces[run]
    sources = [
        Source(tuple(groups[low:high]))
        for low, high, many in zip(starts, furthest.tolist(), pieces.tolist(), strict=True)
        for _ in range(many)
    ]
    return _Cut(partition, sources)


def _truth_sources(side: Side, seen: _Images, partition: IntArray, count: int, folder: Path) -> list[Source]:
    """Return where the ground truth of each partition is; scattered, it is regrouped."""
    groups = side.groups.groups
    of_partition: list[list[RowGroup]] = [[] for _ in range(count)]
    for group, rows in zip(groups, seen.of_group, strict=True):
        for number in np.unique(partition[rows]).tolist():
            of_partition[number].append(group)
    if sum(map(len, of_partition)) > NEAR * (len(groups) + count):
        return _regrouped(side, partition, seen.images.ids, count, folder)
    return [Source(tuple(one)) for one in of_partition]


def _regrouped(side: Side, partition: IntArray, ids: Ids, count: int, folder: Path) -> list[Source]:
    """Write the rows of each partition into one file, in their order."""
    pa, pq = arrow()
    folder.mkdir(parents=True)
    files = [folder / f"{number}.parquet" for number in range(count)]
    writers: dict[int, Any] = {}
    waiting: list[list[Any]] = [[] for _ in range(count)]
    known, schema, held = Vocabulary(ids), None, 0
    index = known.index() if ids.dtype == object else None

    def flush() -> None:
        for number, tables in enumerate(waiting):
            if tables:
                if number not in writers:
                    writers[number] = pq.ParquetWriter(files[number], schema, compression="lz4")
                writers[number].write_table(pa.concat_tables(tables))
                tables.clear()

    try:
        for group in progress(
            side.groups.groups, desc=f"regrouping {side.groups.path.name}", unit="row group"
        ):
            table = _decoded(side.groups.read(group))
            schema = schema or table.schema
            try:
                table = table.select(schema.names).cast(schema)
            except (pa.ArrowException, KeyError) as error:
                got, place = str(error).partition("\n")[0][:150], side.groups.place_of(group)
                raise FileFormatError("part files", "have the same columns", got=got, place=place) from None
            values, positions = BoxesTable(side.groups, [table]).distinct(side.groups.parts.image)
            named = side._translated(values)
            if index is None:
                rows = known.rows(as_ids(named, name="image ids"))
            else:
                rows = np.array([index.get(one, -1) for one in named], dtype=np.int32)
            of_row = partition[rows[positions]]
            order = np.argsort(of_row, kind="stable")
            bounds = np.searchsorted(of_row[order], np.arange(count + 1))
            table = table.take(pa.array(order))
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                waiting[number].append(table.slice(bounds[number], bounds[number + 1] - bounds[number]))
            held += len(table)
            if held >= BUFFERED:
                flush()
                held = 0
        flush()
        for writer in writers.values():
            writer.close()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}; rows are put in order there, which "
            "takes about as much room as the files: choose another folder with TMPDIR."
        ) from None
    finally:
        for writer in writers.values():
            with contextlib.suppress(OSError):  # a full disk was refused above
                writer.close()
    return [Source(file=file) for file in files]


def _arrow_ids(ids: Ids) -> Any:
    """Return ids as Arrow has them; those above 2 ** 63 without a sign."""
    pa, _ = arrow()
    values = ids.tolist()
    if any(type(one) is int and one >= 2**63 for one in values):
        return pa.array(values, pa.uint64())
    return pa.array(values)


def _decoded(table: Any) -> Any:
    """Return a table whose dictionaries are written out, so that all row groups have one type."""
    pa, _ = arrow()
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, column)
    return table
