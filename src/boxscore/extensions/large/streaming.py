"""Evaluate Parquet larger than memory in partitions of whole images.

Detections in Parquet, and ground truth in Parquet or any other format, become independent tasks: each reads
the row groups with its images, matches them, and returns a part. Any ``map`` can run them.

Conventions
-----------
- A partition is a range of image ids (:mod:`boxscore.extensions.large.image_ranges`), so no process holds all
  ids. If files are sorted by id, tasks read the row groups that overlap their range; otherwise that side is
  first regrouped on disk, into one file per partition.
- Properties that depend on all rows (whether boxes are fractions, the box format, the classes) are inferred
  once from the files, and hold in every partition.
- If detections call images by other names than the ids of the ground truth, all names are read by the driver
  and travel with the tasks.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.progress import progress
from boxscore._utils.records import PicklesFields
from boxscore.data.alignment import of_images, select
from boxscore.data.column_names import ColumnParts
from boxscore.data.lookup import UnlistedImagesError, find_images
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, Vocabulary, as_ids, sort_key
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.federated.listing import check_class_labels
from boxscore.extensions.hints.unknown_images import unlisted_error
from boxscore.extensions.large.image_ranges import WHOLE, Cutter, IdRange, Ranges, Shard
from boxscore.extensions.large.joining import no_detections, under_classes
from boxscore.extensions.large.parquet_groups import KEY, BoxesTable, ParquetGroups
from boxscore.extensions.large.parts import Part, match_part
from boxscore.extensions.large.sides import Side, Source, located, side_of
from boxscore.extensions.weights.class_weights import check_class_weights
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import (
    Rows,
    detections_of,
    file_categories,
    ground_truth_of,
)
from boxscore.formats._tables import classes_of, images_of, refuse_without_scores, rows_of, with_class_names
from boxscore.formats.reading import FileOptions, read_ground_truth
from boxscore.formats.registry import is_parquet
from boxscore.matching.ignoring import prepared
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import similarity_of

Options = TypeVar("Options", bound=ReadOptions)

PARTITION = 1 << 20
"""Approximate number of boxes per partition."""


NO_ROWS = np.empty(0, dtype=np.int64)

RANGES = "ranges"
"""Name of the folder that caches ranges of remote files."""


@dataclasses.dataclass(frozen=True)
class StreamTask(PicklesFields):
    """One partition: read its images, match them, return their part.

    Attributes
    ----------
    number : int
    protocol : Protocol
    ids : IdRange
        Ids of the images.
    truth : GroundTruth or Side
        Ground truth of the images, or the side to read it from.
    truth_source : Source
    categories : Categories
        Classes of the whole ground truth.
    detections : Side
    source : Source
    classes : sequence of ids or names, optional
        Classes to evaluate.
    """

    number: int
    protocol: Protocol
    ids: IdRange
    truth: GroundTruth | Side
    truth_source: Source
    categories: Categories
    detections: Side
    source: Source
    classes: tuple[Id, ...] | None = None

    @property
    def sources(self) -> tuple[str, str]:
        """Names of both sides, as in an evaluation in one process."""
        truth = self.truth.source if isinstance(self.truth, GroundTruth) else str(self.truth.groups.path)
        return truth, str(self.detections.groups.path)

    def run(self) -> Part:
        """Return the part of the partition."""
        with _without_warnings():  # left-out detections are counted in the part
            truth, detections = self._tables()
            truth, detections = prepared(truth, detections, self.protocol, share=True)
            if self.classes is not None:
                truth, detections = select(truth, detections, classes=self.classes)
            part = match_part(truth, detections, self.protocol, rows=detections.columns.get(KEY, NO_ROWS))
            source = f"partition {self.number} of {self.detections.groups.path}"
            named = detections.replaced(source=source)
            text = similarity_of(self.protocol).fallbacks(truth, named)
        return dataclasses.replace(part, source=source, fallbacks=(text, int(text != "")))

    def asked(self, function: Callable[..., Any], options: Mapping[str, Any], *, rows: bool = False) -> Any:
        """Call a function with the evaluation of this partition alone.

        With ``rows``, also pass the rows of the detections in their files, [D].
        """
        with _without_warnings():
            truth, detections = self._tables(named=True)
            keys = {KEY: detections.columns[KEY]} if rows and KEY in detections.columns else {}
            evaluation = self.evaluation_of(truth, detections.replaced(columns=keys))
            if rows:
                options = {**options, "rows": evaluation.detections.columns.get(KEY, NO_ROWS)}
            return function(evaluation, **options)

    def evaluation_of(self, truth: GroundTruth, detections: Detections) -> Evaluation:
        """Evaluate tables of some images of the partition."""
        with _without_warnings():
            return evaluate(
                truth, detections, protocol=self.protocol, classes=self.classes, workers=1, digest=False
            )

    def told(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """Call a function with the tables of the partition, and with their rows in their files.

        Rows of ground truth are None unless it is in Parquet.
        """
        with _without_warnings():
            truth, detections = self._tables(named=True, keys=True)
            if self.classes is not None:
                truth, detections = select(truth, detections, classes=self.classes)
            rows = [table.columns.get(KEY) for table in (truth, detections)]
            return function(truth.replaced(columns={}), detections.replaced(columns={}), *rows, **options)

    def tables_of(self, images: NDArray[np.int64]) -> tuple[GroundTruth, Detections]:
        """Read both sides, and keep some images, given by row in the partition."""
        with _without_warnings():
            truth, detections = self._tables(named=True)
            return of_images(truth, images), of_images(detections.replaced(columns={}), images)

    def _tables(self, *, named: bool = False, keys: bool = False) -> tuple[GroundTruth, Detections]:
        """Read both sides; ``named`` keeps file names of images, ``keys`` the rows of ground truth."""
        truth = self._truth(keys=keys)
        if not named:
            truth = truth.replaced(images=_without_names(truth.images))
        boxes = self.detections.read(self.source, self.ids)
        if boxes is None:
            return truth, no_detections(truth.categories, images=truth.images)
        side = self.detections
        rows = rows_of(boxes, side.options, truth, of_results=True, fractions=side.fractions)
        return truth, detections_of(dataclasses.replace(rows, named_by_id=True), side.options, truth)

    def image_names(self) -> list[str]:
        """Return the file name, or else the id, of each image of the partition."""
        return self._truth(keys=False).images.names

    def unlisted(self) -> tuple[list[Id], int]:
        """Return the unlisted images of detections, and the number of listed ones."""
        side = self.detections
        found = side.images(self.source, self.ids)
        if isinstance(self.truth, GroundTruth):
            images: Vocabulary = self.truth.images
        else:
            known = as_ids(self.truth.images(self.truth_source, self.ids), name="image ids")
            images = Vocabulary(known[Vocabulary.order(known)])
        rows = images.rows(as_ids(found, name="image ids"))
        return [found[at] for at in np.flatnonzero(rows < 0).tolist()], int((rows >= 0).sum())

    def _truth(self, *, keys: bool) -> GroundTruth:
        if isinstance(self.truth, GroundTruth):
            return self.truth
        table = self.truth.read(self.truth_source, self.ids)
        if table is None:
            return _nothing(self.categories)
        options = self.truth.options
        rows = rows_of(table, options, None, of_results=False, fractions=self.truth.fractions)
        rows = dataclasses.replace(rows, stays_in_fractions=self.truth.stays_in_fractions)
        truth = under_classes(ground_truth_of(rows, options), self.categories)
        return _with_bounded_columns(truth, self.protocol, {KEY} if keys else set())


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings about a single partition."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        yield


def _bounded_columns(protocol: Protocol) -> set[str]:
    """Return the names of the columns that the protocol's ranges bound."""
    return {name for columns in protocol.ignore.column_ranges.values() for name in columns}


def _with_bounded_columns(
    truth: GroundTruth, protocol: Protocol, further: Set[str] = frozenset()
) -> GroundTruth:
    """Drop unused columns."""
    read = _bounded_columns(protocol) | further
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
    shard: Shard = WHOLE,
) -> list[StreamTask]:
    """Split the images into partitions.

    Parameters
    ----------
    ground_truth : GroundTruth or Path
        A table, a Parquet file or folder, or anything that ``load_ground_truth`` reads.
    detections : Path
        A Parquet file, or a folder of them.
    protocol : Protocol
    folder : Path
        Folder for regrouped files and for the cache of remote files; must outlive the tasks.
    truth_options : FileOptions
    options : ReadOptions
    classes : callable, optional
        Takes the classes of the ground truth and returns those to evaluate, ids or names; None for all.
    partitions : int, optional
        Approximate number of partitions, instead of ``partition``.
    partition : int
        Approximate number of boxes per partition, of both sides if both are in Parquet.
    shard : Shard
        The shard of the images to split.

    Returns
    -------
    list of StreamTask

    Raises
    ------
    FileFormatError
        If a file is unreadable, or a row breaks a rule.
    InputError
        If a detection of the first row group is in an unknown image; tasks check the other row groups.
    """
    # Open both sides, reading only footers of files.
    protocol.scope.check("streams")
    truth = _opened_truth(ground_truth, truth_options, _bounded_columns(protocol))
    parquet = ParquetGroups.open(detections, options).holding(folder / RANGES)
    if isinstance(truth, ParquetGroups):
        truth = truth.holding(folder / RANGES)
    # Reject detections without scores, and image labels that do not fit.
    if parquet.parts.score is None and protocol.matching.scores == "given":
        rule = "have a column score or confidence"
        cause = "is this the ground truth? For boxes without scores use --protocol scoreless"
        raise FileFormatError(
            "detections", rule, got=f"only {', '.join(parquet.names)}", place=str(detections), cause=cause
        )
    refuse_without_scores(parquet.absent, parquet.parts, str(detections))
    # Collect the classes first, since each partition would see only its own.
    if isinstance(truth, GroundTruth):
        categories = truth.categories
        check_class_labels(truth.source, categories, truth.image_labels, protocol)
    else:
        truth, truth_options = with_class_columns(truth, truth_options, None, of_results=False)
        categories = categories_of_groups(truth, truth_options)
        check_class_labels(str(truth.path), categories, None, protocol)
    parquet, options = with_class_columns(parquet, options, categories, of_results=True)
    some = None if classes is None else classes(categories)
    check_class_weights(protocol.ap, categories, categories if some is None else Categories.build([]))
    # Split by ids, or by file names if detections use these, so that an image is in one range.
    names = _names_of_images(parquet, truth)
    table = truth if isinstance(truth, GroundTruth) else None
    sides = [side_of(parquet, options, table, names, of_results=True)]
    if isinstance(truth, ParquetGroups):
        sides.append(side_of(truth, truth_options, None, None, of_results=False))
    cutter = Cutter([side.groups for side in sides[names is not None :]], table)
    chosen = shard.of(cutter)
    count = partitions if partitions is not None else -(-cutter.boxes // (partition * shard.shares))
    # Split the ids of the shard into ranges with about as many boxes as a partition may have.
    ranges = cutter.cut(max(1, count), chosen)
    every = Ranges(tuple(one for one in (chosen.low, *ranges.edges, chosen.below) if one is not None))
    numbers = range(chosen.low is not None, len(ranges.edges) + 1 + (chosen.low is not None))
    known = [*([sides[0].groups] if names is not None else []), *cutter.sides]
    sides = [dataclasses.replace(side, groups=groups) for side, groups in zip(sides, known, strict=True)]
    # Find the row groups of each range, after regrouping scattered rows on disk.
    sources = [
        located(side, every, numbers, folder / name, partition)
        for side, name in zip(sides, ("detections", "ground_truth"), strict=False)
    ]
    tables = [] if table is None else _tables_of_ranges(table, every, protocol)
    # Tasks hold locations in files, not rows.
    return [
        StreamTask(
            at,
            protocol,
            every.all()[number],
            sides[1] if table is None else tables[number],
            sources[1][at] if table is None else Source(),
            categories,
            sides[0],
            sources[0][at],
            None if some is None else tuple(some),
        )
        for at, number in enumerate(numbers)
    ]


def _tables_of_ranges(truth: GroundTruth, ranges: Ranges, protocol: Protocol) -> list[GroundTruth]:
    """Split a table by the ranges of its images."""
    truth = _with_bounded_columns(truth, protocol)
    number = ranges.numbers(truth.images.ids.tolist())
    bounds = np.searchsorted(number, np.arange(len(ranges.edges) + 2))  # ids ascend
    order = np.argsort(number[truth.image], kind="stable")
    rows = np.searchsorted(number[truth.image][order], np.arange(len(ranges.edges) + 2))
    return [
        of_images(truth, np.arange(*images), order[slice(*boxes)])
        for images, boxes in zip(
            itertools.pairwise(bounds.tolist()), itertools.pairwise(rows.tolist()), strict=True
        )
    ]


def counted_in_all(error: UnlistedImagesError, tasks: Sequence[StreamTask]) -> UnlistedImagesError:
    """Return the error of one partition with the unlisted images of all partitions."""
    names: dict[Id, None] = {}
    listed = 0
    for task in progress(tasks, desc="unlisted images", unit="partition"):
        unknown, known = task.unlisted()
        names |= dict.fromkeys(unknown)
        listed += known
    return unlisted_error(error.names[0], error.place, list(names), listed)


def _nothing(categories: Categories) -> GroundTruth:
    """Return ground truth without images."""
    nothing: Any = []
    return GroundTruth.from_arrays(nothing, nothing, np.empty((0, 4)), categories=categories)


# ---------------------------------------------------------------- properties of the whole data set


def _opened_truth(
    truth: GroundTruth | Path, options: FileOptions, further: set[str]
) -> GroundTruth | ParquetGroups:
    """Open Parquet lazily, unless label or hierarchy files are needed; read other ground truth."""
    if isinstance(truth, GroundTruth):
        return truth
    if is_parquet(truth, "ground truth") and not {"image_labels", "hierarchy"} & options.further.keys():
        return ParquetGroups.open(truth, options, further=further)
    return read_ground_truth(truth, options)


def with_class_columns(
    groups: ParquetGroups,
    options: Options,
    categories: Categories | None,
    *,
    of_results: bool,
) -> tuple[ParquetGroups, Options]:
    """Decide for all row groups whether a column such as ``name`` holds class names, and map the columns."""
    parts = groups.parts
    if parts.late_name is None or parts.class_name is None or options.classes is not None:
        return groups, options
    columns = (parts.image, parts.class_name, parts.late_name)
    read = progress(groups.groups, desc="classes", unit="row group")
    tables = (groups.read_columns(group, columns) for group in read)
    decided = with_class_names(
        tables, parts, options, categories, of_results=of_results, place=str(groups.path)
    )
    column_map = decided.class_map(options.columns)
    return dataclasses.replace(groups, column_map=column_map), dataclasses.replace(
        options, columns=column_map
    )


def categories_of_groups(truth: ParquetGroups, options: ReadOptions) -> Categories:
    """Collect the classes of a side in Parquet."""
    parts = truth.parts
    columns = (parts.image, parts.class_name, parts.class_id, *parts.box[:1])
    every: Categories | None = None
    for group in progress(truth.groups, desc="classes", unit="row group"):
        some = _categories_of(truth.read_columns(group, columns), parts, options)
        every = some if every is None else Categories.union([every, some])
    if every is None:  # no row groups: use the classes in the schema
        every = _categories_of(BoxesTable(truth, [truth.empty()]), parts, options)
    return every


def _categories_of(table: BoxesTable, parts: ColumnParts, options: ReadOptions) -> Categories:
    """Return the classes of rows with a box."""
    # A row without a box only lists an image.
    rows_with_boxes = np.flatnonzero(_have_boxes(table, parts))
    labels, label, names = classes_of(
        table, parts, options, rows_with_boxes, lambda row: table.place(int(rows_with_boxes[row]))
    )
    # Build rows without boxes and images, to use the class lookup of the reader of whole files.
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
    """Return which rows have a box or a mask, by the first number of the box."""
    if not parts.box:
        assert parts.mask is not None
        return table.distinct(parts.mask).positions >= 0
    if len(parts.box) == 1:
        return ~np.isnan(table.fours(parts.box[0])[:, 0])
    return ~np.isnan(table.numbers(parts.box[0]))


def _without_names(images: Images) -> Images:
    """Return the images without file names, so that they are identified by id."""
    return dataclasses.replace(images, file_names=np.broadcast_to(np.array(None, dtype=object), len(images)))


def _names_of_images(parquet: ParquetGroups, truth: GroundTruth | ParquetGroups) -> dict[Id, Id] | None:
    """Return the image id of each name in the detections, or None if they use the ids of the ground truth."""
    # If all images in the first row group with boxes are ids, do not read the others.
    first = next((group for group in parquet.groups if group.boxes), None)
    if first is None:
        return None
    table = parquet.read_columns(first, [parquet.parts.image])
    values, positions = images_of(table, parquet.parts)
    used = as_ids([values[at] for at in np.unique(positions).tolist()], name="image ids")
    if _are_ids(used, truth):
        return None
    # Collect the distinct names, each with the place of its first row for messages.
    images = truth.images if isinstance(truth, GroundTruth) else _images_of_truth(truth)
    places: dict[Id, str] = {}
    for group in progress(parquet.groups, desc="images of detections", unit="row group"):
        table = parquet.read_columns(group, [parquet.parts.image])
        values, positions = images_of(table, parquet.parts)
        used, first_rows = np.unique(positions, return_index=True)
        for at, row in zip(used.tolist(), first_rows.tolist(), strict=True):
            if values[at] not in places:
                places[values[at]] = table.place(row)
    # Look up all names together.
    where = list(places.values())
    rows = find_images(as_ids(list(places), name="image ids"), images, place=where.__getitem__)
    ids = images.ids.tolist()
    return {value: ids[row] for value, row in zip(places, rows.tolist(), strict=True)}


def _are_ids(used: NDArray[Any], truth: GroundTruth | ParquetGroups) -> bool:
    """Return whether all of some values are ids of images in the ground truth."""
    # In memory, ask the vocabulary.
    if isinstance(truth, GroundTruth):
        return bool(truth.images.rows(used).min(initial=0) >= 0)
    # Skip row groups whose ids, by the footer, are all outside the wanted range.
    wanted = Vocabulary(used[Vocabulary.order(used)])
    ends = Ranges(tuple(wanted.ids[[0, -1]].tolist()))
    missing = np.ones(len(wanted), dtype=bool)
    for group in truth.groups:
        if group.least is not None and group.largest is not None:
            low, high = ends.numbers([group.least, group.largest]).tolist()
            if high == 0 or (low == 2 and sort_key(group.least) > sort_key(ends.edges[1])):
                continue
        # Cross off the ids of the group, and stop when none is missing.
        values, _ = images_of(truth.read_columns(group, [truth.parts.image]), truth.parts)
        rows = wanted.rows(as_ids(values, name="image ids"))
        missing[rows[rows >= 0]] = False
        if not missing.any():
            break
    return not missing.any()


def _images_of_truth(truth: ParquetGroups) -> Images:
    """Collect the images of ground truth in Parquet, with their names."""
    parts = truth.parts
    names: dict[Id, str | None] = {}
    for group in progress(truth.groups, desc="images", unit="row group"):
        table = truth.read_columns(group, (parts.image, parts.file_name))
        values, positions = images_of(table, parts)
        names |= dict.fromkeys((one for one in values if one not in names), None)
        if parts.file_name is not None:
            texts, at = table.distinct(parts.file_name)
            first = np.full(len(values), -1, dtype=np.int64)
            first[positions[::-1]] = at[::-1]
            names |= {
                value: str(texts[one]) for value, one in zip(values, first.tolist(), strict=True) if one >= 0
            }
    return Images.build(list(names), file_names=list(names.values()))
