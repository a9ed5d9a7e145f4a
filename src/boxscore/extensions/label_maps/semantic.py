"""Compute semantic IoU: count pixels of label maps, then read the counts by named rules.

Goal
----
``IoU = TP / (TP + FP + FN)`` in pixels per class, over all images together; ``mIoU`` is the mean over
classes, ``fwIoU`` the mean weighted by the pixels of the truth, ``mAcc`` the mean recall and ``pAcc`` the
pixel accuracy. Tools differ in the pixels and classes that count (:class:`SemanticRules`).

Conventions
-----------
- The counts keep the labels of the maps. Rules apply when reading them, so pixels are counted once for all
  tools (:meth:`SemanticIoU.read_as`).
- Pixel counts are integers, and only sums over classes, in their order, are rounded. Results do not depend on
  the order of images or the number of processes.
- A pixel counts if its label in the truth is a class. Any predicted label that is not a class is wrong there.

References
----------
J. Long, E. Shelhamer and T. Darrell, *Fully Convolutional Networks for Semantic Segmentation*, CVPR 2015.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import read_only
from boxscore._utils.text import short_list
from boxscore.errors import InputError
from boxscore.extensions.label_maps.counting import (
    LabelClasses,
    LabelCounts,
    PixelPairs,
    count_pairs,
    label_map,
)
from boxscore.extensions.label_maps.images import different_images, matched_streams
from boxscore.extensions.label_maps.object_weights import ObjectWeights, labels_of_values
from boxscore.extensions.label_maps.resampled import ResampledImages
from boxscore.extensions.label_maps.rules import LARGEST_LABEL, SemanticRules, load_semantic_rules

if TYPE_CHECKING:
    import pandas as pd

LOWEST_LABEL = -(2**15)
NO_CLASS, LEFT_OUT, OUTSIDE = -1, -2, -3
METRICS = ("mIoU", "fwIoU", "mAcc", "pAcc")


class Areas(NamedTuple):
    """Pixels per image and class, int64 [I, K]: right, in the truth, and predicted."""

    right: NDArray[np.int64]
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]


# ---------------------------------------------------------------- inputs


def label_classes(classes: Any) -> LabelClasses | None:
    """Check classes, given as their number, their names, or a mapping from label to name."""
    # A number means labels 0, 1, 2, ...
    if classes is None or isinstance(classes, LabelClasses):
        return classes
    if isinstance(classes, (int, np.integer)):
        count = checks.whole_number(classes, 1, name="classes", high=LARGEST_LABEL)
        return LabelClasses(tuple(range(count)), tuple(map(str, range(count))))
    # A mapping names its labels; a list names labels 0, 1, 2, ...
    if isinstance(classes, Mapping):
        labels = [
            checks.whole_number(label, LOWEST_LABEL, name="label of a class", high=LARGEST_LABEL)
            for label in classes
        ]
        named = LabelClasses(tuple(labels), tuple(map(str, classes.values())))
    elif isinstance(classes, (list, tuple)) and all(isinstance(name, str) for name in classes):
        named = LabelClasses(tuple(range(len(classes))), tuple(classes))
    else:
        rule = "be their number, a list of names, or a mapping from label to name"
        raise InputError("classes", rule, got=f"a {type(classes).__name__}")
    if not named.labels:
        raise InputError("classes", "hold at least one class", got="none")
    return named


def labels_of(values: Any, *, name: str, place: str) -> NDArray[np.integer[Any]]:
    """Check a map of labels."""
    return label_map(values, name=name, place=place, low=LOWEST_LABEL, high=LARGEST_LABEL)


def require_counted(result: SemanticIoU) -> None:
    """Raise an error if no pixel counts: the classes are then those of another data set."""
    areas = result.areas
    if result.images and not areas.truth.any():
        labels = short_list(np.unique(result.counts.truth).tolist())
        cause = f"the rules {result.rules.name!r} define other classes; pass yours with classes"
        raise InputError("the truth", "have a pixel of a class", got=f"the labels {labels}", cause=cause)


# ---------------------------------------------------------------- the result


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SemanticIoU(ResampledImages):
    """Semantic IoU of a set of images; results of different images add up with ``+``.

    Attributes
    ----------
    rules : SemanticRules
    given : LabelClasses or None
        The classes given by the caller.
    images : tuple
        The ids of the I images.
    counts : LabelCounts
        Pixels by image, label of the truth and predicted label, before any rules.

    See Also
    --------
    boxscore.extensions.label_maps.resampled.ResampledImages : ``bootstrap_intervals``, ``merge``,
    ``signature``.
    """

    rules: SemanticRules
    given: LabelClasses | None
    images: tuple[int | str, ...]
    counts: LabelCounts

    @functools.cached_property
    def classes(self) -> LabelClasses:
        """The given classes, otherwise those of the rules, otherwise all labels that are not ignored."""
        if self.given is not None:
            return self.given
        rules = self.rules
        if rules.classes:
            return LabelClasses(rules.classes, rules.class_names or tuple(map(str, rules.classes)))
        if rules.averaged == "all":
            cause = "counting absent classes as IoU 0 needs the list of classes"
            raise InputError("classes", "be given", got="none", cause=cause)
        truth, prediction = self._labels
        labels = sorted({*truth.tolist(), *prediction.tolist()} - {*rules.ignored_labels})
        return LabelClasses(tuple(labels), tuple(map(str, labels)))

    @functools.cached_property
    def _labels(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the labels of truth and prediction, renamed by the rules."""
        truth, prediction = (
            labels_of_values(self.counts.truth, self.rules.objects_from),
            self.counts.prediction,
        )
        if self.rules.reduced != "none":
            truth = _reduce_labels(truth)
        if self.rules.reduced == "both":
            prediction = _reduce_labels(prediction)
        if self.rules.relabeled_predictions:
            prediction = prediction.copy()
            for before, after in self.rules.relabeled_predictions:
                if self.given is None or after in self.given.labels:
                    prediction[self.counts.prediction == before] = after
        return truth, prediction

    @functools.cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the class rows of truth and prediction; negative if a label is not a class."""
        rules, (truth, prediction) = self.rules, self._labels
        rows: dict[int, int] = dict.fromkeys(rules.ignored_labels, LEFT_OUT)
        rows |= {label: row for row, label in enumerate(self.classes.labels)}
        sides = []
        for labels in (truth, prediction):
            distinct, inverse = np.unique(labels, return_inverse=True)
            table = np.array([rows.get(label, OUTSIDE) for label in distinct.tolist()], dtype=np.int64)
            sides.append(table[inverse.ravel()])
        first, second = sides
        if rules.truth_outside == "refuse":
            self._refuse("the truth", first == OUTSIDE, truth)
        counted = first >= 0
        if rules.prediction_outside == "refuse":
            self._refuse("the prediction", counted & (second == OUTSIDE), prediction)
        return np.where(counted, first, LEFT_OUT), np.where(second >= 0, second, NO_CLASS)

    def _refuse(self, name: str, outside: NDArray[np.bool_], labels: NDArray[np.int32]) -> None:
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                name,
                "have labels that are classes or ignored",
                got=f"label {labels[row]} on {self.counts.pixels[row]:,} pixels",
                place=f"image {self.images[self.counts.image[row]]!r}",
                cause="are these other classes, trainIds instead of ids, or another ignore label?",
            )

    @functools.cached_property
    def areas(self) -> Areas:
        """Pixels per image and class."""
        (truth, prediction), pixels = self._rows, self.counts.pixels
        I, K = len(self.images), len(self.classes.labels)  # noqa: E741
        counted = truth >= 0

        def summed(chosen: NDArray[np.bool_], rows: NDArray[np.int64]) -> NDArray[np.int64]:
            index = self.counts.image[chosen].astype(np.int64) * K + rows[chosen]
            sums = np.bincount(index, weights=pixels[chosen], minlength=I * K)  # exact below 2 ** 53 pixels
            return sums.reshape(I, K).astype(np.int64)

        return Areas(
            summed(counted & (truth == prediction), truth),
            summed(counted, truth),
            summed(counted & (prediction >= 0), prediction),
        )

    @functools.cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Pixels by true class (rows) and predicted class, [K, K + 1]; the last column means no class."""
        (truth, prediction), K = self._rows, len(self.classes.labels)
        counted = truth >= 0
        columns = np.where(prediction[counted] >= 0, prediction[counted], K)
        matrix = np.zeros((K, K + 1), dtype=np.int64)
        np.add.at(matrix, (truth[counted], columns), self.counts.pixels[counted])
        return matrix

    @functools.cached_property
    def metrics(self) -> dict[str, float]:
        """``mIoU``, ``fwIoU``, ``mAcc``, ``pAcc``, and further metrics of the rules; NaN without pixels."""
        plain = _metrics(*(part.sum(axis=0) for part in self.areas), averaged=self.rules.averaged)
        return read_only(plain | self._by_object.metrics())

    @functools.cached_property
    def _by_object(self) -> ObjectWeights:
        """The metrics of objects and categories."""
        return ObjectWeights(self.rules, self.classes, self.counts, self._labels, self._rows[0] >= 0)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class.

        ``label, class, IoU, Acc, in_mean, right, truth, predicted``; the last three in pixels. IoU is NaN for
        a class that is neither in the truth nor predicted, accuracy for one that is not in the truth. If the
        rules have sizes of objects, ``iIoU`` comes last.
        """
        import pandas as pd

        # Sum pixels as integers, so that each ratio is rounded once.
        right, truth, predicted = (part.sum(axis=0) for part in self.areas)
        iou, accuracy, used = _per_class(right, truth, predicted, self.rules.averaged)
        return pd.DataFrame(
            {
                "label": self.classes.labels,
                "class": self.classes.names,
                "IoU": iou,
                "Acc": accuracy,
                "in_mean": used,
                "right": right,
                "truth": truth,
                "predicted": predicted,
            }
            | ({"iIoU": self._by_object.per_class()} if self.rules.object_sizes else {})
        )

    def per_image_frame(self) -> pd.DataFrame:
        """Return one row per image, worst first: the metrics of the image alone, and its pixels.

        ``image_id, mIoU, fwIoU, mAcc, pAcc, pixels``; NaN comes last.
        """
        import pandas as pd

        averaged = self.rules.averaged
        lines = [_metrics(*parts, averaged=averaged) for parts in zip(*self.areas, strict=True)]
        table = {name: np.array([line[name] for line in lines]) for name in METRICS}
        frame = pd.DataFrame(
            {"image_id": pd.Series(list(self.images), dtype=object)}
            | table
            | {"pixels": self.areas.truth.sum(axis=1)}
        )
        worst = np.lexsort((np.nan_to_num(frame["pAcc"], nan=2.0), np.nan_to_num(frame["mIoU"], nan=2.0)))
        return frame.iloc[worst].reset_index(drop=True)

    def read_as(
        self, rules: str | Path | Mapping[str, Any] | SemanticRules, *, classes: Any = None
    ) -> SemanticIoU:
        """Return the result of the same pixels under other rules.

        Parameters
        ----------
        rules : str, Path, mapping or SemanticRules
        classes : int, list of str or mapping, optional
            Other classes; by default those of this result.

        Returns
        -------
        SemanticIoU
        """
        given = self.given if classes is None else label_classes(classes)
        return SemanticIoU(load_semantic_rules(rules), given, self.images, self.counts)

    def _metrics_by_weights(self) -> Callable[[NDArray[np.float64]], dict[str, float]]:
        parts = [part.astype(np.float64) for part in self.areas]

        def metrics_of(weights: NDArray[np.float64]) -> dict[str, float]:
            plain = _metrics(*(weights @ part for part in parts), averaged=self.rules.averaged)
            return plain | self._by_object.metrics(weights)

        return metrics_of


def _reduce_labels(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Map label 0 to 255 and other labels to one less; 255 stays."""
    less = np.where(labels == 0, 255, labels - 1)
    return np.where(less == 254, 255, less).astype(np.int32)


def _per_class(
    right: NDArray[Any], truth: NDArray[Any], predicted: NDArray[Any], averaged: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return IoU and accuracy per class, and whether each class is in the mean IoU."""
    union = truth + predicted - right
    with np.errstate(invalid="ignore", divide="ignore"):
        iou, accuracy = right / union, right / truth
    if averaged == "all":
        return np.nan_to_num(iou, nan=0.0), accuracy, np.ones(len(union), dtype=bool)
    return iou, accuracy, (truth if averaged == "truth" else union) > 0


def _metrics(
    right: NDArray[Any], truth: NDArray[Any], predicted: NDArray[Any], *, averaged: str
) -> dict[str, float]:
    """Compute the metrics from pixels per class, [K] each."""
    iou, accuracy, used = _per_class(right, truth, predicted, averaged)
    in_truth = truth > 0
    total = truth.sum()
    if not total:
        return dict.fromkeys(METRICS, math.nan)
    values = (
        _mean(iou[used]),
        float(np.sum((truth / total * iou)[in_truth])),
        _mean(accuracy[in_truth]),
        float(right.sum() / total),
    )
    return dict(zip(METRICS, values, strict=True))


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean over classes, summed in their order, as the tools do."""
    return float(np.mean(values)) if len(values) else math.nan


# ---------------------------------------------------------------- one call


def semantic_iou(
    truth: Any,
    prediction: Any,
    *,
    classes: Any = None,
    images: Iterable[int | str] | None = None,
    rules: str | Path | Mapping[str, Any] | SemanticRules = "plain",
) -> SemanticIoU:
    """Compute mean IoU and accuracies of label maps, over all images together.

    Parameters
    ----------
    truth, prediction : array_like [H, W], or an iterable of such maps
        Integer labels. Iterables, such as an array [N, H, W] or a generator, are consumed map by map.
    classes : int, list of str, or mapping of int to str, optional
        The number of classes (labels 0, 1, 2, ...), their names, or a mapping from label to name. By default
        the classes of the rules, or all labels that occur and are not ignored.
    images : iterable of int or str, optional
        Ids of the images; 0, 1, 2, ... by default.
    rules : str, Path, mapping or SemanticRules, default "plain"
        As for :func:`boxscore.label_maps.load_semantic_rules`: ``"plain"``, ``"mmseg"``, ``"detectron2"``,
        ``"coco-stuff"``, ``"cityscapes"``, ``"cityscapes-instances"``, or your own:
        ``{"extends": "plain", "ignored_labels": [0], "reduced": "truth"}``.

    Returns
    -------
    SemanticIoU

    Raises
    ------
    InputError
        When maps differ in size, the rules reject a label that is neither a class nor ignored, no pixel
        counts, or the iterables differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[0, 0, 1, 1, 255]])
    >>> prediction = np.array([[0, 1, 1, 1, 0]])
    >>> result = semantic_iou(truth, prediction, classes=["road", "car"])
    >>> round(result.metrics["mIoU"], 4), result.metrics["pAcc"]
    (0.5833, 0.75)
    """
    chosen, given = load_semantic_rules(rules), label_classes(classes)
    pairs: list[PixelPairs] = []
    ids: list[int | str] = []
    for image, first, second in matched_streams(_maps(truth), _maps(prediction), images):
        places = (f"truth of image {image!r}", f"prediction of image {image!r}")
        true_labels = labels_of(first, name="the truth", place=places[0])
        predicted = labels_of(second, name="the prediction", place=places[1])
        pairs.append(count_pairs(true_labels, predicted, name="the prediction", place=places[1]))
        ids.append(image)
    different_images(ids)
    result = SemanticIoU(chosen, given, tuple(ids), LabelCounts.of(pairs))
    require_counted(result)
    return result


def _maps(given: Any) -> Iterable[Any]:
    """Return an iterable of maps; an array or tensor of two axes is one map."""
    if getattr(given, "ndim", None) == 2:
        return [given]
    if isinstance(given, (list, tuple)) and given and not _is_map(given[0]):
        return [given]
    maps: Iterable[Any] = given
    return maps


def _is_map(value: Any) -> bool:
    """Whether an item of a list is a map, not a row or a number."""
    if hasattr(value, "ndim"):
        return bool(value.ndim >= 2)
    return isinstance(value, (list, tuple)) and bool(value) and isinstance(value[0], (list, tuple))
