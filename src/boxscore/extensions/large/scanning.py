"""Evaluate a data set partition by partition, with any ``map``.

Conventions
-----------
- A partition is a set of images, matched by :class:`~boxscore.matching.matcher.Matcher` and packed to a part.
  A task depends only on its arguments, so it can run again, or elsewhere.
- Rows are numbered in the whole data set, so ties between equal scores do not depend on partitions.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.files import temporary_folder
from boxscore._utils.given_paths import path_of
from boxscore._utils.ordering import stable_order
from boxscore._utils.records import PicklesFields
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align, of_images, select
from boxscore.data.lookup import UnlistedImagesError
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError
from boxscore.evaluation import tables_of
from boxscore.extensions.federated.listing import check_class_labels
from boxscore.extensions.large.image_ranges import WHOLE, Shard
from boxscore.extensions.large.parts import Part, check_mergeable, match_part
from boxscore.extensions.large.result import MergedEvaluation, merge, warn_of_parts
from boxscore.extensions.large.shares import ROW
from boxscore.extensions.large.streaming import PARTITION, StreamTask, counted_in_all, stream_tasks
from boxscore.extensions.scoreless.annotators import warn_of_annotators
from boxscore.extensions.weights.class_weights import check_class_weights
from boxscore.formats.reading import read_options
from boxscore.formats.registry import is_parquet
from boxscore.matching.ignoring import prepared
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.registry import needs_of, similarity_of

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class TableTask(PicklesFields):
    """One partition of two tables.

    Attributes
    ----------
    number : int
    protocol : Protocol
    ground_truth, detections : GroundTruth, Detections
        Tables with exactly the images of the partition.
    rows : ndarray of int64, [D]
        Row of each detection in the whole table.
    """

    number: int
    protocol: Protocol
    ground_truth: GroundTruth
    detections: Detections
    rows: NDArray[np.int64]

    def run(self) -> Part:
        """Return the part of the partition."""
        part = match_part(self.ground_truth, self.detections, self.protocol, rows=self.rows)
        return dataclasses.replace(part, source=f"partition {self.number} of {self.detections.source}")

    def without_images(self) -> TableTask:
        """Return a task without images, for the same tables."""
        nothing = np.empty(0, dtype=np.int64)
        return dataclasses.replace(
            self,
            ground_truth=of_images(self.ground_truth, nothing, nothing),
            detections=of_images(self.detections, nothing, nothing),
            rows=nothing,
        )


Task = TableTask | StreamTask


def run_task(task: Task) -> Part:
    """Run one task; a module-level function, so that any ``map`` can pickle it."""
    return task.run()


def scan(
    ground_truth: GroundTruth | str | Path,
    detections: Detections | str | Path,
    *,
    protocol: str | Path | Mapping[str, Any] | Protocol = "coco",
    partitions: int | Sequence[Sequence[Id]] | None = None,
    map: Any = builtins.map,
) -> MergedEvaluation:
    """Evaluate a data set partition by partition, over any ``map``.

    Parameters
    ----------
    ground_truth : GroundTruth, str or Path
        As in :func:`boxscore.evaluate`.
    detections : Detections, str or Path
        As in :func:`boxscore.evaluate`. Each task reads its rows of a Parquet file or folder; any other file
        is read whole.
    protocol : str, Path, mapping or Protocol, default "coco"
    partitions : int, or sequence of sequences of image ids, optional
        Number of partitions, or the images of each. Default: about a million boxes per partition.
    map : callable, default the built-in
        ``map(function, tasks)`` returns the results of ``function`` in any order, such as the ``map`` of an
        executor, a pool or a cluster. Function, tasks and results pickle.

    Returns
    -------
    MergedEvaluation
        Same bits as :func:`boxscore.evaluate`, for any partitions.

    Raises
    ------
    FileFormatError
        If a file breaks a rule of its format; for Parquet the message names file, row group and row.
    InputError
        If a detection is in an unknown image, an image is in two partitions or in none, or ``map`` does not
        return one part per task.
    ProtocolError
        If the protocol breaks a rule, or cannot be evaluated part by part.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> boxes = [[10, 10, 50, 50], [20, 20, 60, 60]]
    >>> truth = GroundTruth.from_arrays([1, 2], ["cat", "dog"], boxes)
    >>> detections = Detections.from_arrays([1, 2], ["cat", "dog"], boxes, [0.9, 0.8])
    >>> with ThreadPoolExecutor(2) as threads:
    ...     result = scan(truth, detections, partitions=2, map=threads.map)
    >>> round(result["AP"], 6)
    1.0
    """
    chosen = load_protocol(protocol)
    check_mergeable(chosen)
    partitions = _checked(partitions)
    if isinstance(detections, (str, Path)) and is_parquet(path_of(detections)):
        if partitions is not None and not isinstance(partitions, int):
            raise InputError(
                "partitions",
                "be a number for detections in Parquet",
                got="lists of images",
                cause="the row groups decide which images are read together",
            )
        truth = ground_truth if isinstance(ground_truth, GroundTruth) else path_of(ground_truth)
        with streamed(truth, path_of(detections), chosen, partitions=partitions) as stream:
            return _merged(stream, map)
    return _merged(table_tasks(*tables_of(ground_truth, detections, chosen), chosen, partitions), map)


def _merged(tasks: Sequence[Task], run_all: Map) -> MergedEvaluation:
    """Run tasks and merge their parts; raise unless ``map`` returns one part per task."""
    parts = list(run_all(run_task, tasks))
    wrong = next((one for one in parts if not isinstance(one, Part)), None)
    if wrong is not None or len(parts) != len(tasks):
        got = f"{len(parts)} of {len(tasks)}" if wrong is None else f"a {type(wrong).__name__}"
        cause = "did a task fail silently?"
        raise InputError("map", "pass the part of every task", got=got, cause=cause)
    warn_of_parts(parts)
    return merge(parts)


@contextlib.contextmanager
def streamed(
    ground_truth: GroundTruth | Path,
    detections: Path,
    protocol: Protocol,
    *,
    partitions: int | None = None,
    partition: int = PARTITION,
    truth_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    classes: Callable[[Categories], Sequence[Id] | None] | None = None,
    scratch: Path | None = None,
    shard: Shard = WHOLE,
) -> Iterator[list[StreamTask]]:
    """Split Parquet into tasks, with a temporary folder (in ``scratch``) while they run."""
    common = needs_of(protocol)
    with temporary_folder(scratch) as folder:
        tasks = stream_tasks(
            ground_truth,
            detections,
            protocol,
            folder,
            truth_options=read_options(**common, **(truth_options or {})),
            options=read_options(**common, **(options or {})),
            classes=classes,
            partitions=partitions,
            partition=partition,
            shard=shard,
        )
        # Count an unlisted image over all partitions, for the message.
        try:
            yield tasks
        except UnlistedImagesError as error:
            raise counted_in_all(error, tasks) from None


def table_tasks(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    partitions: int | Sequence[Sequence[Id]] | None,
    *,
    classes: Sequence[Id] | None = None,
) -> list[TableTask]:
    """Split two tables into tasks, optionally of some classes."""
    # Check the whole tables once, as ``evaluate`` does, so that each warning comes once.
    check_class_weights(protocol.ap, ground_truth.categories)
    check_class_labels(ground_truth.source, ground_truth.categories, ground_truth.image_labels, protocol)
    warn_of_annotators(ground_truth, protocol)
    # Prepare both tables once, so that rules do not depend on the partition.
    detections = align(detections, ground_truth)
    ground_truth, detections = prepared(ground_truth, detections, protocol)
    if classes is not None:
        ground_truth, detections = select(ground_truth, detections, classes=classes)
    fallbacks = similarity_of(protocol).fallbacks(ground_truth, detections)
    if fallbacks:
        warn_user(fallbacks)
    # Assign images to partitions: consecutive runs of equal size, or the given lists.
    images = ground_truth.images
    if partitions is None:
        partitions = max(1, len(detections) // PARTITION)
    if isinstance(partitions, int):
        of_image = np.arange(len(images)) * partitions // max(len(images), 1)
    else:
        of_image = _given_partition(partitions, images)
    return list(partitioned(ground_truth, detections, of_image, protocol))


def _checked(partitions: Any) -> int | list[list[Id]] | None:
    """Check a number of partitions, or lists of images."""
    if partitions is None:
        return None
    if isinstance(partitions, numbers.Number):
        return checks.whole_number(partitions, 1, name="partitions", high=1 << 20)
    lists = list(partitions) if _lists(partitions) else None
    if lists is None or not all(map(_lists, lists)):
        rule = "be a whole number, or a list of image ids for each partition"
        raise InputError("partitions", rule, got=f"{partitions!r:.100}")
    return [list(ids) for ids in lists]


def _lists(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def _given_partition(partitions: Sequence[Sequence[Id]], images: Images) -> NDArray[np.int64]:
    """Return the partition of each image, [I]; each image must be in exactly one."""
    of_image = np.full(len(images), -1, dtype=np.int64)
    for number, ids in enumerate(partitions):
        # Look up all ids of the partition together.
        rows = images.rows(list(ids))
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            got = repr(list(ids)[unknown[0]])
            raise InputError(
                "an image of a partition", "be in the ground truth", got=got, place=f"partition {number}"
            )
        # An image must not be in two partitions, nor twice in one: it would count twice.
        twice = np.flatnonzero(of_image[rows] >= 0)
        if len(twice) or len(np.unique(rows)) < len(rows):
            row = rows[twice[0]] if len(twice) else rows[np.argmax(np.bincount(rows)[rows] > 1)]
            other = int(of_image[row]) if len(twice) else number
            got = f"{images.ids.tolist()[row]!r} in {other} and {number}"
            raise InputError(
                "an image", "be in one partition", got=got, cause="its objects would count twice"
            )
        of_image[rows] = number
    # An image in no partition would be dropped silently, with its objects.
    missing = np.flatnonzero(of_image < 0)
    if len(missing):
        got = f"{images.ids.tolist()[missing[0]]!r} in none"
        cause = f"{len(missing):,} such images; images without objects count too"
        raise InputError("an image of the ground truth", "be in one partition", got=got, cause=cause)
    return of_image


def partitioned(
    ground_truth: GroundTruth,
    detections: Detections,
    partition_of_image: NDArray[np.integer[Any]],
    protocol: Protocol,
) -> Iterator[TableTask]:
    """Split two aligned tables into tasks by image, [I]; skip partitions without images."""
    # Sort the rows of each table by partition, so that a partition is a slice. The sort is stable and keeps
    # file order.
    count = int(partition_of_image.max(initial=0)) + 1
    sides = []
    for table in (ground_truth, detections):
        partition = partition_of_image[table.image]
        order = stable_order(partition, count)
        sides.append((order, np.searchsorted(partition[order], np.arange(count + 1))))
    by_partition = stable_order(partition_of_image, count)
    images = np.searchsorted(partition_of_image[by_partition], np.arange(count + 1))
    # Assign left-out counts to the first partition only; use the row numbers of a shard in the whole table.
    left_out = detections.left_out
    places = detections.columns.get(ROW)
    if places is not None:
        detections = detections.replaced(
            columns={name: column for name, column in detections.columns.items() if name != ROW}
        )
    for number in range(count):
        # Yield one task at a time, so that only one partition is copied.
        chosen = by_partition[images[number] : images[number + 1]]
        if not len(chosen) and len(partition_of_image):
            continue
        truth_rows, rows = (
            order[starts[number] : starts[number + 1]].astype(np.int64) for order, starts in sides
        )
        cut = of_images(detections, chosen, rows).replaced(left_out=left_out)
        rows = rows if places is None else places[rows].astype(np.int64)
        yield TableTask(number, protocol, of_images(ground_truth, chosen, truth_rows), cut, rows)
        left_out = {}
