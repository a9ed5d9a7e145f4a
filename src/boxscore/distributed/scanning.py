"""One data set, partition by partition, over any ``map``.

Conventions
-----------
- A partition is a set of images. Each is matched by the same :class:`~boxscore.matching.matcher.Matcher` and
  cut to a part; a task is a function of its arguments alone, so that it can be run again, or elsewhere.
- Rows stay those of the tables that were given: the order of equal scores does not depend on the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import stable_order
from boxscore.data.operations import of_images
from boxscore.data.tables import Detections, GroundTruth
from boxscore.distributed.parts import Part, match_part
from boxscore.protocols.protocol import Protocol

__all__ = ["Partition", "partitioned", "scan_partition"]


class Partition(NamedTuple):
    """Two tables of the same images, and the rows that the detections have in the whole table."""

    ground_truth: GroundTruth
    detections: Detections
    rows: NDArray[np.int64]


def scan_partition(partition: Partition, protocol: Protocol) -> Part:
    """Match one partition."""
    return match_part(*partition[:2], protocol, rows=partition.rows)


def partitioned(
    ground_truth: GroundTruth, detections: Detections, partition_of_image: NDArray[np.integer[Any]]
) -> Iterator[Partition]:
    """Cut two aligned tables into partitions by image, [I]; partitions without images are left out."""
    count = int(partition_of_image.max(initial=-1)) + 1
    sides = []
    for table in (ground_truth, detections):
        own = partition_of_image[table.image]
        order = stable_order(own, count)
        sides.append((order, np.searchsorted(own[order], np.arange(count + 1))))
    by_partition = stable_order(partition_of_image, count)
    images = np.searchsorted(partition_of_image[by_partition], np.arange(count + 1))
    left_out = detections.left_out  # counted once
    for number in range(count):
        chosen = by_partition[images[number] : images[number + 1]]
        if not len(chosen):
            continue
        truth, found = (
            order[starts[number] : starts[number + 1]].astype(np.int64) for order, starts in sides
        )
        cut = of_images(detections, chosen, found)
        yield Partition(of_images(ground_truth, chosen, truth), cut.replaced(left_out=left_out), found)
        left_out = {}
