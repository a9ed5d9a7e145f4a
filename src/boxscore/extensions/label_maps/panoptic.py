"""Compute panoptic quality from id maps and segment tables.

Goal
----
A predicted segment is a true positive if its IoU with a segment of the same class is above 0.5. Then
``PQ = sum of IoU / (TP + FP/2 + FN/2)`` per class, which is ``SQ`` (mean IoU of the true positives) times
``RQ`` (their F1); the metrics are means over the classes.

Conventions
-----------
- Id 0 of a map is void. Pixels of a prediction on void do not count in the union. An unmatched prediction
  with more than half of its pixels on void or on crowds of its class is not a false positive. Crowds are
  never matched.
- Intersections and unions are integers, so "above 0.5" is exact. The IoUs of a class are summed with one
  rounding (:func:`math.fsum`), and means over classes in the order of the categories, so that results do not
  depend on the order of images or the number of processes.
- A class counts in the means if it has a true positive, a false positive or a false negative. A group
  without such a class has NaN.

References
----------
A. Kirillov et al., *Panoptic Segmentation*, CVPR 2019.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import read_only
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import InputError
from boxscore.extensions.label_maps.counting import LARGEST_ID, LabelMap, PixelPairs, count_pairs, segment_map
from boxscore.extensions.label_maps.images import different_images, matched_streams
from boxscore.extensions.label_maps.resampled import ResampledImages
from boxscore.extensions.label_maps.rules import PanopticRules, load_panoptic_rules

if TYPE_CHECKING:
    import pandas as pd

TP, FP, FN = range(3)
OUTCOMES = ("TP", "FP", "FN")
"""Names of the values of ``outcome``."""

LARGEST_AREA = 2**40


class PanopticClasses(NamedTuple):
    """The K classes: ids, names, and whether each is a thing class."""

    ids: tuple[int, ...]
    names: tuple[str, ...]
    things: tuple[bool, ...]


class Segments(NamedTuple):
    """The S segments of one image, sorted by id; ``last_crowds`` are the rows of each class's last crowd."""

    ids: NDArray[np.int64]
    classes: NDArray[np.int64]
    """Rows of the classes."""
    areas: NDArray[np.int64]
    """Areas of the table; -1 if unknown."""
    crowds: NDArray[np.bool_]
    last_crowds: NDArray[np.int64]


class Conflict(NamedTuple):
    """A disagreement between the map and the table of a truth, under rules that only warn of it."""

    place: str
    what: str


class CountedSegments(NamedTuple):
    """The N counted segments of one or more images."""

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    outcome: NDArray[np.int8]
    truth_id: NDArray[np.int64]
    prediction_id: NDArray[np.int64]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence[CountedSegments]) -> CountedSegments:
        """Concatenate the rows of several objects."""
        if not parts:
            rows, ids = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
            return cls(rows, rows, np.zeros(0, dtype=np.int8), ids, ids, ids, ids)
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


# ---------------------------------------------------------------- inputs


def panoptic_classes(categories: Any, *, place: str = "") -> PanopticClasses:
    """Check COCO's list of categories, or a mapping from class id to whether it is a thing class."""
    if isinstance(categories, Mapping):
        categories = [{"id": key, "isthing": value} for key, value in categories.items()]
    ids, names, things = [], [], []
    for category in categories:
        if not isinstance(category, Mapping) or not {"id", "isthing"} <= set(category):
            raise InputError("a category", "have id and isthing", got=repr(category)[:80], place=place)
        number = checks.whole_number(category["id"], -(2**31), name="id of a category", place=place)
        if number in ids:
            raise InputError("ids of categories", "be unique", got=f"{number} twice", place=place)
        ids.append(number)
        names.append(str(category.get("name", number)))
        things.append(bool(checks.whole_number(int(category["isthing"]), 0, name="isthing", high=1)))
    if not ids:
        raise InputError("categories", "hold at least one class", got="none", place=place)
    return PanopticClasses(tuple(ids), tuple(names), tuple(things))


def segments_of(table: Any, rows: Mapping[int, int], *, place: str) -> Segments:
    """Check one image's table of segments: a DataFrame or a list of records with id and category_id."""
    if hasattr(table, "to_dict") and hasattr(table, "iloc"):
        table = table.to_dict("records")
    ids, classes, areas, crowds = [], [], [], []
    for segment in table:
        if not isinstance(segment, Mapping) or not {"id", "category_id"} <= set(segment):
            raise InputError("a segment", "have id and category_id", got=repr(segment)[:80], place=place)
        ids.append(segment["id"])
        classes.append(segment["category_id"])
        areas.append(segment.get("area", -1))
        crowds.append(segment.get("iscrowd", 0))
    return segments_of_columns(ids, classes, areas, crowds, rows, place=place)


def segments_of_columns(
    ids: Sequence[Any],
    classes: Sequence[Any],
    areas: Sequence[Any],
    crowds: Sequence[Any],
    rows: Mapping[int, int],
    *,
    place: str,
) -> Segments:
    """Check the columns of one image's table."""
    # Check ids and sort the segments by them, for lookups by bisection.
    numbers = checks.counts(ids, name="ids of segments")
    if len(numbers) and not 1 <= numbers.min() <= numbers.max() <= LARGEST_ID:
        bad = numbers.min() if numbers.min() < 1 else numbers.max()
        cause = "0 is void in the map" if bad == 0 else ""
        raise InputError("id of a segment", f"be in [1, {LARGEST_ID}]", got=bad, place=place, cause=cause)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    twice = numbers[1:][numbers[1:] == numbers[:-1]]
    if len(twice):
        raise InputError("ids of segments", "be unique", got=f"{twice[0]} twice", place=place)
    # Classes must be categories of the truth; areas and flags are checked as numbers.
    for category in classes:
        if category not in rows:
            cause = "a class that the categories of the truth do not have"
            raise InputError("category_id", "be a category", got=category, place=place, cause=cause)
    class_rows = np.array([rows[category] for category in classes], dtype=np.int64)
    pixels = checks.counts([-1 if area is None else area for area in areas], name=f"area in {place}")
    if len(pixels) and (pixels.min() < -1 or pixels.max() > LARGEST_AREA):
        bad = pixels.min() if pixels.min() < -1 else pixels.max()
        raise InputError("area of a segment", "be >= 0 and no larger than an image", got=bad, place=place)
    is_crowd = checks.flags(crowds, name=f"iscrowd in {place}")
    # A later crowd of a class replaces an earlier one, as in panopticapi's dict by class.
    last = {int(class_rows[row]): row for row in np.flatnonzero(is_crowd).tolist()}
    new_row = np.argsort(order, kind="stable")
    last_rows = np.sort(new_row[np.array(list(last.values()), dtype=np.int64)])
    return Segments(numbers, class_rows[order], pixels[order], is_crowd[order], last_rows)


# ---------------------------------------------------------------- one image


def compared(
    image: int,
    maps: tuple[LabelMap, LabelMap],
    truth: Segments,
    prediction: Segments,
    rules: PanopticRules,
    *,
    places: tuple[str, str],
    conflicts: list[Conflict],
) -> CountedSegments:
    """Match the segments of one image; append disagreements of the truth's map and table to ``conflicts``."""
    # Count the pixels of every pair of labels in one pass over the maps; all else works on these few pairs.
    pairs = count_pairs(*maps, name="the prediction's map", place=places[1])
    g, g_listed = _rows_of(pairs.truth, truth.ids)
    p, p_listed = _rows_of(pairs.prediction, prediction.ids)
    p_areas = _areas(pairs, p, p_listed, len(prediction.ids))
    g_areas = _areas(pairs, g, g_listed, len(truth.ids))
    _check_prediction(pairs.prediction[~p_listed], prediction.ids[p_areas == 0], places[1])
    _check_truth(pairs.truth[~g_listed], truth, g_areas, rules, places[0], conflicts)
    # Areas come from the map or from the table, as the rule says.
    if rules.truth_area == "table":
        g_areas = np.where(truth.areas < 0, g_areas, truth.areas)
    # Pixels of a prediction on void do not count in the union.
    on_void = np.zeros(len(prediction.ids), dtype=np.int64)
    void = p_listed & (pairs.truth == 0)
    on_void[p[void]] = pairs.pixels[void]

    # For pairs of the same class, without crowds, compute the union from areas and shared pixels as integers.
    both = np.flatnonzero(g_listed & p_listed)
    same_class = truth.classes[g[both]] == prediction.classes[p[both]]
    both = both[same_class & ~truth.crowds[g[both]]]
    gt, dt, shared = g[both], p[both], pairs.pixels[both]
    unions = p_areas[dt] + g_areas[gt] - shared - on_void[dt]
    if (unions <= 0).any():
        got = f"area {g_areas[gt][unions <= 0][0]} of segment {truth.ids[gt][unions <= 0][0]}"
        raise InputError("a segment", "have the area that its pixels cover", got=got, place=places[0])
    # With areas counted in the map, a segment is in at most one such pair: each partner would share more than
    # half of its pixels outside void, and the segments of a map are disjoint.
    matched = 2 * shared > unions
    gt, dt = gt[matched], dt[matched]

    # The others are missed or false; predictions mostly on void or on crowds of their class are excused.
    missed = ~truth.crowds
    missed[gt] = False
    false = np.ones(len(prediction.ids), dtype=bool)
    false[dt] = False
    excused = on_void + _on_crowds(pairs, g, p, g_listed & p_listed, truth, prediction, rules)
    false &= 2 * excused <= p_areas
    return _rows(image, truth, prediction, (gt, dt), (shared[matched], unions[matched]), (false, missed))


def _rows(
    image: int,
    truth: Segments,
    prediction: Segments,
    matched: tuple[NDArray[np.int64], NDArray[np.int64]],
    pixels: tuple[NDArray[np.int64], NDArray[np.int64]],
    left: tuple[NDArray[np.bool_], NDArray[np.bool_]],
) -> CountedSegments:
    """Return the rows of an image: matched pairs, false predictions, then missed truths."""
    (gt, dt), (false, missed) = matched, left
    sizes = [len(gt), int(false.sum()), int(missed.sum())]
    rest = np.zeros(sizes[1] + sizes[2], dtype=np.int64)
    parts = (truth.classes[gt], prediction.classes[false], truth.classes[missed])
    no_truth, no_prediction = np.zeros(sizes[1], dtype=np.int64), np.zeros(sizes[2], dtype=np.int64)
    return CountedSegments(
        np.full(sum(sizes), image, dtype=np.int32),
        np.concatenate(parts).astype(np.int32),
        np.repeat(np.array([TP, FP, FN], dtype=np.int8), sizes),
        np.concatenate([truth.ids[gt], no_truth, truth.ids[missed]]),
        np.concatenate([prediction.ids[dt], prediction.ids[false], no_prediction]),
        np.concatenate([pixels[0], rest]),
        np.concatenate([pixels[1], rest]),
    )


def _rows_of(
    labels: NDArray[np.int64], ids: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the rows of labels among ascending ids, and whether each label is among them."""
    if not len(ids):
        return np.zeros(len(labels), dtype=np.int64), np.zeros(len(labels), dtype=bool)
    rows = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
    return rows, ids[rows] == labels


def _areas(
    pairs: PixelPairs, rows: NDArray[np.int64], listed: NDArray[np.bool_], count: int
) -> NDArray[np.int64]:
    areas = np.zeros(count, dtype=np.int64)
    np.add.at(areas, rows[listed], pairs.pixels[listed])
    return areas


def _on_crowds(
    pairs: PixelPairs,
    g: NDArray[np.int64],
    p: NDArray[np.int64],
    listed: NDArray[np.bool_],
    truth: Segments,
    prediction: Segments,
    rules: PanopticRules,
) -> NDArray[np.int64]:
    """Return the pixels of each prediction on crowds of its class."""
    excusing = truth.crowds
    if rules.crowds == "last":
        excusing = np.zeros(len(truth.ids), dtype=bool)
        excusing[truth.last_crowds] = True
    on_crowds = np.zeros(len(prediction.ids), dtype=np.int64)
    if excusing.any():
        both = np.flatnonzero(listed)
        both = both[excusing[g[both]] & (truth.classes[g[both]] == prediction.classes[p[both]])]
        np.add.at(on_crowds, p[both], pairs.pixels[both])
    return on_crowds


def _check_prediction(unlisted: NDArray[np.int64], empty: NDArray[np.int64], place: str) -> None:
    unlisted = np.unique(unlisted[unlisted != 0])
    if len(unlisted):
        rule = "be listed for its image"
        raise InputError("an id of the prediction's map", rule, got=short_list(unlisted), place=place)
    if len(empty):
        rule = "have pixels in the map"
        raise InputError("a segment of the prediction", rule, got=f"id {short_list(empty)}", place=place)


def _check_truth(
    unlisted: NDArray[np.int64],
    truth: Segments,
    areas: NDArray[np.int64],
    rules: PanopticRules,
    place: str,
    conflicts: list[Conflict],
) -> None:
    # Id 0 is void and needs no entry.
    unlisted = np.unique(unlisted[unlisted != 0])
    empty = truth.ids[areas == 0]
    # Some rules raise an error, others only count differently.
    if rules.unlisted_truth == "refuse":
        if len(unlisted):
            rule = "be listed for its image"
            raise InputError("an id of the truth's map", rule, got=short_list(unlisted), place=place)
        if len(empty):
            rule = "have pixels in the map"
            raise InputError("a segment of the truth", rule, got=f"id {short_list(empty)}", place=place)
    # Collect conflicts, to warn once for all images.
    if len(unlisted):
        conflicts.append(
            Conflict(
                place, "an id in the ground truth map is not in its segment list and counts as background"
            )
        )
    if len(empty):
        conflicts.append(Conflict(place, "a segment of the ground truth lacks pixels and counts as missed"))
    if rules.truth_area == "table" and _areas_differ(truth, areas):
        conflicts.append(
            Conflict(
                place,
                "a ground truth segment has an area that differs from its number of pixels; the area is used",
            )
        )


def _areas_differ(truth: Segments, areas: NDArray[np.int64]) -> bool:
    """Whether areas of the table differ from the map, for segments that are in the map."""
    return bool(((truth.areas >= 0) & (truth.areas != areas) & (areas > 0)).any())


def warn_of_conflicts(conflicts: Sequence[Conflict]) -> None:
    """Warn once per kind of conflict, naming the first image."""
    for what in dict.fromkeys(each.what for each in conflicts):
        places = [each.place for each in conflicts if each.what == what]
        more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
        warn_user(f"{places[0]}{more}: {what}. With --rules counted, this is an error.")


# ---------------------------------------------------------------- the result


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PanopticQuality(ResampledImages):
    """Panoptic quality of a set of images; results of different images add up with ``+``.

    Attributes
    ----------
    rules : PanopticRules
    classes : PanopticClasses
        ``ids``, ``names`` and ``things`` of the K classes.
    images : tuple
        The ids of the I images.
    segments : CountedSegments
        One row per matched, false and missed segment.

    See Also
    --------
    boxscore.extensions.label_maps.resampled.ResampledImages : ``bootstrap_intervals``, ``merge``,
    ``signature``.
    """

    rules: PanopticRules
    classes: PanopticClasses
    images: tuple[int | str, ...]
    segments: CountedSegments

    @functools.cached_property
    def metrics(self) -> dict[str, float]:
        """PQ, SQ and RQ over all classes, things and stuff; NaN for a group without classes."""
        return read_only(self._metrics(self._sums))

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """The numbers of images, true positives, false positives and false negatives."""
        number = np.bincount(self.segments.outcome, minlength=3).tolist()
        return read_only({"images": len(self.images), **dict(zip(OUTCOMES, number, strict=True))})

    @functools.cached_property
    def _iou(self) -> NDArray[np.float64]:
        """IoU of the true positives."""
        matched = self.segments.outcome == TP
        iou: NDArray[np.float64] = self.segments.intersection[matched] / self.segments.union[matched]
        return iou

    @functools.cached_property
    def _sums(self) -> NDArray[np.float64]:
        """Return TP, FP, FN and the sum of IoU per class, [4, K]; each sum is rounded once."""
        s, K = self.segments, len(self.classes.ids)
        sums = np.zeros((4, K))
        sums[:3] = np.bincount(s.outcome.astype(np.int64) * K + s.category, minlength=3 * K).reshape(3, K)
        categories = s.category[s.outcome == TP]
        order = np.argsort(categories, kind="stable")
        ends = np.cumsum(sums[TP]).astype(np.int64)
        for k, part in enumerate(np.split(self._iou[order], ends[:-1])):
            sums[3, k] = math.fsum(part.tolist())
        return sums

    def _metrics(self, sums: NDArray[np.float64]) -> dict[str, float]:
        quality = quality_of(sums)
        counted = sums[:3].sum(axis=0) > 0
        things = np.array(self.classes.things)
        groups = {"": counted, "_things": counted & things, "_stuff": counted & ~things}
        return {
            f"{name}{group}": _mean(values[chosen])
            for group, chosen in groups.items()
            for name, values in zip(("PQ", "SQ", "RQ"), quality, strict=True)
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per class.

        ``class_id, class, thing, PQ, SQ, RQ, TP, FP, FN``; NaN for a class without counted segments.
        """
        import pandas as pd

        sums = self._sums
        qualities = quality_of(sums)
        head = {"class_id": self.classes.ids, "class": self.classes.names, "thing": self.classes.things}
        return pd.DataFrame(
            head
            | dict(zip(("PQ", "SQ", "RQ"), qualities, strict=True))
            | dict(zip(OUTCOMES, sums[:3].astype(np.int64), strict=True))
        )

    def per_image_frame(self) -> pd.DataFrame:
        """Return one row per image, worst first: PQ, SQ and RQ of the image alone, and its counts.

        ``image_id, PQ, SQ, RQ, TP, FP, FN``; ties keep the order of the images, NaN comes last.
        """
        import pandas as pd

        # Sort segments by image once, and split them.
        K, images = len(self.classes.ids), len(self.images)
        order = np.argsort(self.segments.image, kind="stable")
        ends = np.searchsorted(self.segments.image[order], np.arange(1, images))
        ious = np.zeros(len(order))
        ious[self.segments.outcome == TP] = self._iou
        lines = []
        # Sums by outcome and class give the metrics of one image, as for all images.
        for rows in np.split(order, ends):
            sums = np.zeros((4, K))
            outcome, category = self.segments.outcome[rows], self.segments.category[rows]
            np.add.at(sums, (outcome, category), 1)
            np.add.at(sums[3], category, ious[rows])
            metrics = self._metrics(sums)
            lines.append([*(metrics[name] for name in ("PQ", "SQ", "RQ")), *sums[:3].sum(axis=1)])
        # Add one row per image, with integer counts.
        table = np.array(lines, dtype=np.float64).reshape(images, 6)
        frame = pd.DataFrame(
            {"image_id": pd.Series(list(self.images), dtype=object)}
            | dict(zip(("PQ", "SQ", "RQ"), table.T[:3], strict=True))
            | dict(zip(OUTCOMES, table.T[3:].astype(np.int64), strict=True))
        )
        # Sort undefined PQ as 2, after the largest value.
        faults = frame["FP"] + frame["FN"]
        worst = np.lexsort((-faults, np.nan_to_num(frame["PQ"], nan=2.0)))
        return frame.iloc[worst].reset_index(drop=True)

    def segments_frame(self) -> pd.DataFrame:
        """Return one row per counted segment: ``image_id, class, outcome, truth_id, prediction_id, iou``.

        ``truth_id`` of a false positive and ``prediction_id`` of a false negative are 0; their IoU is
        NaN.
        """
        import pandas as pd

        # Only matched segments have an IoU.
        s = self.segments
        ious = np.full(len(s.image), np.nan)
        ious[s.outcome == TP] = self._iou
        images, names = np.array(self.images, dtype=object), np.array(self.classes.names, dtype=object)
        return pd.DataFrame(
            {
                "image_id": images[s.image],
                "class": names[s.category],
                "outcome": np.array(OUTCOMES, dtype=object)[s.outcome],
                "truth_id": s.truth_id,
                "prediction_id": s.prediction_id,
                "iou": ious,
            }
        )

    def _metrics_by_weights(self) -> Callable[[NDArray[np.float64]], dict[str, float]]:
        s, K = self.segments, len(self.classes.ids)
        outcome_of_class = s.outcome.astype(np.int64) * K + s.category
        matched = s.outcome == TP

        def metrics_of(weights: NDArray[np.float64]) -> dict[str, float]:
            weight = weights[s.image]
            counts = np.bincount(outcome_of_class, weights=weight, minlength=3 * K).reshape(3, K)
            ious = np.bincount(s.category[matched], weights=self._iou * weight[matched], minlength=K)
            return self._metrics(np.vstack([counts, ious]))

        return metrics_of


def quality_of(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Return PQ, SQ and RQ per class from TP, FP, FN and the sum of IoU, [4, K]; NaN without segments."""
    tp, fp, fn, iou = sums
    weight = tp + fp / 2 + fn / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        pq, rq = iou / weight, tp / weight
        sq = np.where((tp == 0) & (weight > 0), 0.0, iou / tp)
    return pq, sq, rq


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean over classes, summed in their order as panopticapi does."""
    return sum(values.tolist()) / len(values) if len(values) else math.nan


# ---------------------------------------------------------------- one call


def panoptic_quality(
    truth: Any,
    prediction: Any,
    *,
    categories: Any,
    images: Iterable[int | str] | None = None,
    rules: str | Path | Mapping[str, Any] | PanopticRules = "panopticapi",
) -> PanopticQuality:
    """Compute panoptic quality of id maps with tables of their segments.

    Parameters
    ----------
    truth, prediction : (map, table), or an iterable of such pairs
        A map holds segment ids, integers [H, W], or COCO's colors, uint8 [H, W, 3], which mean the id R + 256
        G + 65536 B; 0 is void. A table lists the segments of the map: a DataFrame, or a list of records, with
        ``id`` and ``category_id``; the truth's may have ``area`` in pixels and ``iscrowd``. Iterables are
        consumed pair by pair and may be generators.
    categories : list of dict, or mapping of int to bool
        COCO's ``categories`` with ``id``, ``isthing`` and ``name``; or whether each id is a thing class.
    images : iterable of int or str, optional
        Ids of the images; 0, 1, 2, ... by default.
    rules : str, Path, mapping or PanopticRules, default "panopticapi"
        As for :func:`boxscore.label_maps.load_panoptic_rules`. ``"counted"`` uses only the pixels.

    Returns
    -------
    PanopticQuality

    Raises
    ------
    InputError
        When maps differ in size, the ids of a map and its table differ (in the truth, some rules only warn),
        a class is unknown, or the iterables differ in length.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[1, 1, 1, 2]])
    >>> segments = [{"id": 1, "category_id": 7}, {"id": 2, "category_id": 9}]
    >>> prediction = np.array([[1, 1, 2, 2]])
    >>> result = panoptic_quality((truth, segments), (prediction, segments), categories={7: True, 9: False})
    >>> round(result.metrics["PQ"], 4), round(result.metrics["PQ_things"], 4), result.counts["FN"]
    (0.3333, 0.6667, 1)
    """
    # Collect conflicts over all images, for one warning per kind.
    chosen = load_panoptic_rules(rules)
    classes = panoptic_classes(categories)
    rows = {number: row for row, number in enumerate(classes.ids)}
    conflicts: list[Conflict] = []
    parts: list[CountedSegments] = []
    ids: list[int | str] = []
    # Compare image by image, so that only one pair of maps is in memory.
    for image, first, second in matched_streams(_pairs(truth), _pairs(prediction), images):
        places = (f"truth of image {image!r}", f"prediction of image {image!r}")
        maps, tables = [], []
        for given, name, place in zip((first, second), ("truth", "prediction"), places, strict=True):
            values, table = _map_and_table(given, name)
            maps.append(segment_map(values, name=f"the {name}'s map", place=place))
            tables.append(segments_of(table, rows, place=place))
        # The row of the image identifies the segments of each image.
        row = len(ids)
        both = (maps[0], maps[1])
        parts.append(compared(row, both, tables[0], tables[1], chosen, places=places, conflicts=conflicts))
        ids.append(image)
    # Join all segments into one table.
    different_images(ids)
    warn_of_conflicts(conflicts)
    return PanopticQuality(chosen, classes, tuple(ids), CountedSegments.joined(parts))


def _map_and_table(given: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise InputError(name, "be pairs (map, table)", got=f"a {type(given).__name__}")
    return given[0], given[1]


def _pairs(given: Any) -> Iterable[Any]:
    """Return an iterable of pairs; a single pair is a map with a table."""
    alone = isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "shape")
    return [given] if alone else given
