"""What a data set holds, counted: images, objects, classes, sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.text import html_folded, html_summary, html_table
from boxscore.data.tables import BoxTable, Detections, GroundTruth

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""At which sizes are described."""

SHOWN_CLASSES = 40
"""Most classes that a notebook shows."""


@dataclasses.dataclass(frozen=True)
class TableStatistics:
    """Counts of a table.

    Attributes
    ----------
    counts : dict of str to int
        ``images``, ``images_without_objects``, ``objects``, ``classes``, ``classes_without_objects``, and the
        ``crowd``, ``difficult`` and ``ignore`` objects; of detections the same without flags, their word in
        place of "objects".
    per_class : dict of str to list
        Columns, a row per class: ``class``, ``id``, ``objects``, ``images``, ``share`` of all objects, and
        ``median_area`` in square units.
    sizes : dict of str to list
        Columns, a row per quantity: ``quantity``, and its quantiles at 0, 0.05, 0.25, 0.5, 0.75, 0.95 and 1.
        Widths, heights and areas of boxes, their aspect ratios (width / height), objects per image, widths
        and heights of images, scores of detections; NaN where there are none.
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
    """Count what a table holds.

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
    images, classes = len(table.images), len(table.categories)
    per_image = np.bincount(table.image, minlength=images)
    per_class = np.bincount(table.category, minlength=classes)
    noun = _noun(table)
    counts = {
        "images": images,
        f"images_without_{noun}": int((per_image == 0).sum()),
        noun: len(table),
        "classes": classes,
        f"classes_without_{noun}": int((per_class == 0).sum()),
    }
    if isinstance(table, GroundTruth):
        counts |= {flag: int(getattr(table, flag).sum()) for flag in ("crowd", "difficult", "ignore")}
    return TableStatistics(
        counts=counts,
        per_class=_classes(table, per_class),
        sizes=_sizes(table, per_image),
        units=table.units,
        source=table.source,
    )


def _classes(table: BoxTable, objects: Any) -> dict[str, list[Any]]:
    pairs = np.unique(table.category.astype(np.int64) * max(len(table.images), 1) + table.image)
    images = np.bincount(pairs // max(len(table.images), 1), minlength=len(objects))
    area = _areas(table)
    order = np.argsort(table.category, kind="stable")
    groups = np.split(area[order], np.cumsum(objects)[:-1]) if len(objects) else []
    return {
        "class": table.categories.labels,
        "id": table.categories.ids.tolist(),
        _noun(table): objects.tolist(),
        "images": images.tolist(),
        "share": (objects / max(len(table), 1)).tolist(),
        "median_area": [float(np.median(group)) if len(group) else float("nan") for group in groups],
    }


def _noun(table: BoxTable) -> str:
    return "objects" if isinstance(table, GroundTruth) else "detections"


def _areas(table: BoxTable) -> Any:
    return table.area if isinstance(table, GroundTruth) else table.sizes.prod(axis=1)


def _sizes(table: BoxTable, per_image: Any) -> dict[str, list[Any]]:
    width, height = table.sizes.T
    known = table.images.sizes[~np.isnan(table.images.sizes).any(axis=1)]
    quantities: dict[str, NDArray[Any]] = {
        "box width": width,
        "box height": height,
        "area": _areas(table),
        "aspect ratio": width[height > 0] / height[height > 0],
        f"{_noun(table)} per image": per_image,
        "image width": known[:, 0],
        "image height": known[:, 1],
    }
    if isinstance(table, Detections) and table.scored:
        quantities["score"] = table.scores
    rows = [
        np.quantile(values, QUANTILES).tolist() if values.size else [float("nan")] * len(QUANTILES)
        for values in quantities.values()
    ]
    columns = zip(*rows, strict=True)
    return {
        "quantity": list(quantities),
        **{f"{quantile:.0%}": list(column) for quantile, column in zip(QUANTILES, columns, strict=True)},
    }


def _records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
