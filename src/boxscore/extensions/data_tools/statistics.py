"""Count the images, objects, classes and sizes of a data set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.text import html_folded, html_summary, html_table
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Quantiles that describe sizes."""

FLAGS = ("crowd", "difficult", "ignore")

SHOWN_CLASSES = 40
"""Maximum number of classes that a notebook shows."""


@dataclasses.dataclass(frozen=True)
class TableStatistics:
    """Counts of a table.

    Attributes
    ----------
    counts : dict of str to int
        ``images``, ``images_without_objects``, ``objects``, ``classes``, ``classes_without_objects``, and the
        ``crowd``, ``difficult`` and ``ignore`` objects. For detections the keys say "detections" instead of
        "objects", and flags are missing.
    per_class : dict of str to list
        Columns, a row per class: ``class``, ``id``, ``objects``, ``images``, ``share`` of all objects, and
        ``median_area`` in square units.
    sizes : dict of str to list
        Columns, a row per quantity: ``quantity``, and its quantiles at 0, 0.05, 0.25, 0.5, 0.75, 0.95 and 1.
        Quantities are the width, height, area and aspect ratio (width / height) of boxes, objects per image,
        the width and height of images, and detection scores; NaN without values.
    units : {"pixels", "fractions"}
    source : str
    """

    counts: dict[str, int]
    per_class: dict[str, list[Any]]
    sizes: dict[str, list[Any]]
    units: str
    source: str

    def _repr_html_(self) -> str:
        inner = html_table(self.sizes) + html_folded(
            "classes", html_table(self.per_class, most=SHOWN_CLASSES)
        )
        return html_summary(f"Statistics, in {self.units}", self.counts, self.source, inner)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, a mapping per class and per quantity."""
        return {
            "source": self.source,
            "units": self.units,
            **self.counts,
            "per_class": _records(self.per_class),
            "sizes": _records(self.sizes),
        }


def table_statistics(table: GroundTruth | Detections) -> TableStatistics:
    """Count the images, objects, classes and sizes of a table.

    Parameters
    ----------
    table : GroundTruth or Detections

    Returns
    -------
    TableStatistics

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "dog"], [[0, 0, 9, 9], [5, 5, 9, 9]], images=[1, 2])
    >>> statistics = table_statistics(truth)
    >>> statistics.counts["images_without_objects"], statistics.per_class["objects"]
    (1, [1, 1])
    """
    counts = table_counts(table)
    ends = np.cumsum(counts.per_class)[:-1]
    areas = np.split(areas_by_class(table), ends) if len(counts.per_class) else []
    measured = quantities(table)
    return described(
        counts,
        {name: np.quantile(one, QUANTILES).tolist() for name, one in measured.items() if one.size},
        [float(np.median(area)) if len(area) else float("nan") for area in areas],
    )


@dataclasses.dataclass(frozen=True)
class TableCounts:
    """Counts that add up over disjoint images.

    Attributes
    ----------
    images, without_boxes : int
    per_class, images_of_class : ndarray of int64, [K]
        Boxes per class, and images with at least one box of the class.
    flags : dict of str to int
        Objects with each flag; empty for detections.
    quantities : tuple of str
    noun : {"objects", "detections"}
    labels, ids : list, [K]
    units, source : str
    """

    images: int
    without_boxes: int
    per_class: IntArray
    images_of_class: IntArray
    flags: dict[str, int]
    quantities: tuple[str, ...]
    noun: str
    labels: list[str]
    ids: list[Id]
    units: str
    source: str

    def __add__(self, other: TableCounts) -> TableCounts:
        """Add up the counts of disjoint images."""
        return dataclasses.replace(
            self,
            images=self.images + other.images,
            without_boxes=self.without_boxes + other.without_boxes,
            per_class=self.per_class + other.per_class,
            images_of_class=self.images_of_class + other.images_of_class,
            flags={flag: count + other.flags[flag] for flag, count in self.flags.items()},
        )


def table_counts(table: GroundTruth | Detections) -> TableCounts:
    """Count the quantities that add up over disjoint images."""
    # Each class counts an image once, so count distinct (class, image) pairs.
    images, classes = len(table.images), len(table.categories)
    pairs = np.unique(table.category.astype(np.int64) * max(images, 1) + table.image)
    of_truth = isinstance(table, GroundTruth)
    # Every number is a sum over images, so counts of disjoint images add up.
    return TableCounts(
        images=images,
        without_boxes=int((np.bincount(table.image, minlength=images) == 0).sum()),
        per_class=np.bincount(table.category, minlength=classes),
        images_of_class=np.bincount(pairs // max(images, 1), minlength=classes),
        flags={flag: int(getattr(table, flag).sum()) for flag in FLAGS} if of_truth else {},
        quantities=tuple(quantities(table)),
        noun="objects" if of_truth else "detections",
        labels=table.categories.labels,
        ids=table.categories.ids.tolist(),
        units=table.units,
        source=table.source,
    )


def quantities(table: GroundTruth | Detections) -> dict[str, NDArray[Any]]:
    """Return the described quantities: one array each, with a value per box or image."""
    width, height = table.sizes.T
    known = table.images.sizes[~np.isnan(table.images.sizes).any(axis=1)]
    noun = "objects" if isinstance(table, GroundTruth) else "detections"
    measured: dict[str, NDArray[Any]] = {
        "box width": width,
        "box height": height,
        "area": _areas(table),
        "aspect ratio": width[height > 0] / height[height > 0],
        f"{noun} per image": np.bincount(table.image, minlength=len(table.images)),
        "image width": known[:, 0],
        "image height": known[:, 1],
    }
    if isinstance(table, Detections) and table.scored:
        measured["score"] = table.scores
    return measured


def areas_by_class(table: GroundTruth | Detections) -> NDArray[Any]:
    """Return the areas of all boxes, sorted by class."""
    areas: NDArray[Any] = _areas(table)[np.argsort(table.category, kind="stable")]
    return areas


def described(
    counts: TableCounts, quantiles: Mapping[str, list[float]], median_areas: list[float]
) -> TableStatistics:
    """Build the statistics of a table, or of the sum of its partitions.

    Parameters
    ----------
    counts : TableCounts
    quantiles : mapping of str to list
        Quantiles at :data:`QUANTILES` by quantity; quantities without values are missing.
    median_areas : list of float
        One per class.
    """
    noun, boxes = counts.noun, int(counts.per_class.sum())
    empty = [float("nan")] * len(QUANTILES)
    columns = zip(*(quantiles.get(name, empty) for name in counts.quantities), strict=True)
    return TableStatistics(
        counts={
            "images": counts.images,
            f"images_without_{noun}": counts.without_boxes,
            noun: boxes,
            "classes": len(counts.labels),
            f"classes_without_{noun}": int((counts.per_class == 0).sum()),
            **counts.flags,
        },
        per_class={
            "class": counts.labels,
            "id": counts.ids,
            noun: counts.per_class.tolist(),
            "images": counts.images_of_class.tolist(),
            "share": (counts.per_class / max(boxes, 1)).tolist(),
            "median_area": median_areas,
        },
        sizes={
            "quantity": list(counts.quantities),
            **{f"{quantile:.0%}": list(column) for quantile, column in zip(QUANTILES, columns, strict=True)},
        },
        units=counts.units,
        source=counts.source,
    )


def _areas(table: BoxTable) -> Any:
    return table.area if isinstance(table, GroundTruth) else table.sizes.prod(axis=1)


def _records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
