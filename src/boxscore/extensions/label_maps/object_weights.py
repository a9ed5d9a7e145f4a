"""Compute IoU with equal weight for every object of a class, and IoU of categories of classes.

Conventions
-----------
- Values of the truth from ``objects_from`` on are objects: their label times ``objects_from``, plus a number.
- Right and missed pixels of an object are weighted by the mean size of its class over its own size; falsely
  predicted pixels have weight 1. Pixels of a class outside all objects do not count.
- In a category, a pixel is right if any label of the category is predicted.

References
----------
cityscapesScripts, ``evalPixelLevelSemanticLabeling.py`` (iIoU).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.records import record
from boxscore.extensions.label_maps.counting import LabelClasses, LabelCounts
from boxscore.extensions.label_maps.rules import SemanticRules


def labels_of_values(values: NDArray[np.int32], objects_from: int) -> NDArray[np.int32]:
    """Return the labels of values; those from ``objects_from`` on are objects. With 0, values are labels."""
    return np.where(values >= objects_from, values // objects_from, values) if objects_from else values


@record(frozen=True, eq=False)
class ObjectWeights:
    """The metrics of objects and of categories."""

    rules: SemanticRules
    classes: LabelClasses
    counts: LabelCounts
    labels: tuple[NDArray[np.int32], NDArray[np.int32]]
    """Labels of truth and prediction per row of the counts, [N] each."""
    counted: BoolArray
    """Whether the truth of each row is a class, [N]."""

    @functools.cached_property
    def _objects(self) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Return the image, label and weight of each object, and the object of each row, [N], or -1."""
        rules, counts = self.rules, self.counts
        sizes = self._sizes
        rows = np.flatnonzero((counts.truth >= rules.objects_from) & np.isin(self.labels[0], list(sizes)))
        key = counts.image[rows].astype(np.int64) << 32 | counts.truth[rows]
        distinct, inverse = np.unique(key, return_inverse=True)
        pixels = np.bincount(inverse, weights=counts.pixels[rows], minlength=len(distinct))
        of_row = np.full(len(counts.image), -1)
        of_row[rows] = inverse
        label = (distinct & 0xFFFFFFFF) // rules.objects_from
        mean = np.array([sizes[one] for one in label.tolist()])
        return distinct >> 32, label, mean / pixels if len(pixels) else mean, of_row

    @functools.cached_property
    def _sizes(self) -> dict[int, float]:
        """Return the known mean sizes by label."""
        named = zip(self.classes.labels, self.classes.names, strict=True)
        return {
            label: self.rules.object_sizes[name] for label, name in named if name in self.rules.object_sizes
        }

    def _score(
        self, labels: Sequence[int], predicted: Sequence[int], weights: FloatArray | None, *, by_object: bool
    ) -> float:
        """Return the IoU of the pixels of some labels with the pixels predicted as some labels."""
        # Sum the pixels of pairs of labels: right ones, and false ones outside the classes.
        truth, prediction = self.labels
        pixels = self.counts.pixels * (1.0 if weights is None else weights[self.counts.image])
        inside, right = np.isin(truth, list(labels)), np.isin(prediction, list(predicted))
        false = float(pixels[self.counted & ~inside & right].sum())
        # By object: weight the found and missed pixels of each object, and add them up in a fixed order.
        if by_object:
            image, label, weight, of_row = self._objects
            some = np.isin(label, list(labels))
            rows = np.flatnonzero((of_row >= 0) & inside)
            # Sum found and all pixels of each object in one bincount each.
            found, every = (
                np.bincount(of_row[each], weights=self.counts.pixels[each], minlength=len(label))
                for each in (rows[right[rows]], rows)
            )
            # Multiply the weights of objects by those of images.
            weight = weight if weights is None else weight * weights[image]
            hit, missed = (
                _sequential_sum(found[some] * weight[some]),
                _sequential_sum((every - found)[some] * weight[some]),
            )
        else:
            hit = float(pixels[inside & right].sum())
            missed = float(pixels[inside & ~right].sum())
        below = hit + false + missed
        return hit / below if below else math.nan

    def per_class(self, weights: FloatArray | None = None) -> FloatArray:
        """Return the object-weighted IoU of each class, [K]; NaN for absent classes or unknown sizes."""
        scores = [
            self._score([label], [label], weights, by_object=True) if label in self._sizes else math.nan
            for label in self.classes.labels
        ]
        return np.array(scores)

    def metrics(self, weights: FloatArray | None = None) -> dict[str, float]:
        """Return the means that the rules define; ``weights`` are those of the images, [I]."""
        values: dict[str, float] = {}
        if self.rules.object_sizes:
            values["iIoU"] = _mean(self.per_class(weights).tolist())
        if self.rules.categories:
            plain, by_object = [], []
            for labels in self.rules.categories.values():
                mine = [label for label in labels if label in self.classes.labels]
                plain.append(self._score(mine, mine, weights, by_object=False))
                if mine and all(label in self._sizes for label in mine):
                    by_object.append(self._score(mine, labels, weights, by_object=True))
            values["mIoU_categories"] = _mean(plain)
            if self.rules.object_sizes:
                values["iIoU_categories"] = _mean(by_object)
        return values


def _sequential_sum(values: FloatArray) -> float:
    """Add up values one by one."""
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def _mean(values: Sequence[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    total = 0.0
    for value in defined:
        total += value
    return total / len(defined) if defined else math.nan
