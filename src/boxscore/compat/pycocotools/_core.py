"""Convert annotations to boxscore's core and back: the fast path of ``COCOeval`` and ``LVISEval``.

Goal
----
Lists of annotation dictionaries become tables, the tables ``Matches``, and those the arrays of ``eval``,
equal to the reference's to the last bit.

Conventions
-----------
- The core is not used where it would differ from the reference: NaN and infinity, detection ids below 1,
  thresholds that do not ascend, unsigned scores. :func:`run` then returns None and the caller evaluates image
  by image.
- A match with annotation id 0 is undone for ``accumulate`` (the reference reads it as no match), but stays in
  ``gtMatches``.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import stable_order
from boxscore._utils.records import NamedTuple
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS, ImageLabels
from boxscore.extensions.keypoints.columns import keypoint_array
from boxscore.extensions.masks.column import Masks
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol, SimilarityName
from boxscore.protocols.tables.ap import ApRules
from boxscore.protocols.tables.ignore import IgnoreRules
from boxscore.protocols.tables.labels import LabelRules
from boxscore.protocols.tables.matching import MatchingRules
from boxscore.protocols.tables.shapes import KeypointRules
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves

Record = dict[str, Any]
Pair = tuple[Any, Any]
"""An image id and a category id."""

SIMILARITIES: dict[str, SimilarityName] = {"bbox": "box", "segm": "mask", "keypoints": "keypoints"}
LARGEST_COORDINATE = 1e100
LARGEST_THRESHOLD = 1 - 1e-10

COUNTED_TOGETHER = 200_000
"""Detections, of all area ranges and caps, that are counted in one go."""


class Grouped(NamedTuple):
    """Annotations in a flat list, each with the image and category it is evaluated under."""

    image_ids: list[Any]
    category_ids: list[Any]
    records: list[Record]

    @classmethod
    def of(cls, groups: Mapping[Pair, list[Record]]) -> Grouped:
        """Flatten annotations by image and category."""
        flat = [(*key, record) for key, records in groups.items() for record in records]
        return cls(*map(list, zip(*flat, strict=True))) if flat else cls([], [], [])


class _NotOrdinaryError(Exception):
    """The core would compute a result that differs from the reference."""


class Matched(NamedTuple):
    """The matches of one ``evaluate``, and the values of its annotations: callers may change these later."""

    matches: Matches
    """Including those with id 0."""
    protocol: Protocol
    caps: list[int]
    """``maxDets``, which may repeat."""
    truth_ids: list[Any]
    detection_ids: list[Any]
    scores: list[Any]

    def ignored_truths(self, area: int) -> NDArray[np.bool_]:
        """Flag the ignored ground truths of an area range, [G]."""
        return ~self.matches.counted(area)

    def without_id_zero(self) -> Matches:
        """Return the matches that ``accumulate`` counts."""
        zero = np.array([identifier == 0 for identifier in self.truth_ids], dtype=bool)
        return self.matches.without_true_positives_of(zero) if zero.any() else self.matches

    def arrays(self, recall_points: Any) -> dict[str, FloatArray] | None:
        """Return the arrays of ``eval``, or None if the core cannot read the recall points."""
        return arrays_of(self.without_id_zero(), self.protocol, self.caps, recall_points)


@dataclasses.dataclass(frozen=True, eq=False)
class CoreRun:
    """The outcome of one ``evaluate``.

    Attributes
    ----------
    truths : list of dict
        In the order of the table.
    result : Evaluation
    matched : Matched
        Input of ``accumulate`` and ``evalImgs``.
    keys : tuple of list
        Ids of the images and categories, by the numbers of the tables.
    shapes : tuple of list
        The segmentations of both sides at ``evaluate``; empty for other similarities.
    """

    truths: list[Record]
    result: Evaluation
    matched: Matched
    keys: tuple[list[Any], list[Any]]
    shapes: tuple[list[Any], list[Any]]

    def mark_ignored_truths(self) -> None:
        """Set ``_ignore`` in the annotations like the reference: that of the last area range."""
        last = len(self.result.protocol.ignore.area_ranges) - 1
        for truth, ignored in zip(self.truths, self.matched.ignored_truths(last).tolist(), strict=True):
            truth["_ignore"] = int(ignored)

    def measured(self, image: Any, category: Any) -> tuple[list[Record], list[Record]]:
        """Return the ground truths and detections of a pair with the values that were measured."""
        return tuple(side.get((image, category), []) for side in self._measured)  # type: ignore[return-value]

    @functools.cached_property
    def _measured(self) -> tuple[dict[Pair, list[Record]], dict[Pair, list[Record]]]:
        truth, found = self.result.ground_truth, self.result.detections
        flags = {"iscrowd": truth.crowd.tolist(), "area": truth.area.tolist()}
        return self._groups(truth, 0, flags), self._groups(found, 1, {"score": self.matched.scores})

    def _groups(
        self, table: GroundTruth | Detections, side: int, columns: dict[str, list[Any]]
    ) -> dict[Pair, list[Record]]:
        """Rebuild the records of a table, by image and category."""
        columns["bbox"] = np.hstack([table.boxes[:, :2], table.sizes]).tolist()
        if self.shapes[side]:
            columns["segmentation"] = self.shapes[side]
        if self.result.protocol.similarity == "keypoints":
            columns["keypoints"] = [points.ravel() for points in table.instances["keypoints"]]
        images, categories = self.keys
        pooled = categories == [-1]
        groups: dict[Pair, list[Record]] = {}
        for i, k, values in zip(
            table.image.tolist(), table.category.tolist(), zip(*columns.values(), strict=True), strict=True
        ):
            record = dict(zip(columns, values, strict=True))
            groups.setdefault((images[i], categories[0 if pooled else k]), []).append(record)
        return groups


def arrays_of(
    matches: Matches, protocol: Protocol, caps: Sequence[int], recall_points: Any
) -> dict[str, FloatArray] | None:
    """Return the arrays of ``eval`` for ``maxDets``, which may repeat; None if the points cannot be read."""
    try:
        rules = protocol.ap.replaced(recall_points=tuple(map(float, recall_points)))
    except (InputError, TypeError, ValueError):
        return None
    # Every area range and cap has a curve per class. Few detections are cheaper to count in one go, with
    # classes of their own for each range and cap.
    T, R, K = matches.threshold_count, len(rules.recall_points), len(matches.categories)
    A, M = matches.area_count, len(protocol.caps)
    cells = (
        _up_to_rank(of_area, matches.rank, cap)
        for of_area in (Outcomes.of(matches, protocol, area) for area in range(A))
        for cap in protocol.caps
    )
    groups: Any = [_joined(list(cells))] if len(matches) * A * M <= COUNTED_TOGETHER else cells
    values = [
        Curves(TruePositiveCounts(outcomes), rules).computed(("interpolated", "recall", "scores"))
        for outcomes in groups
    ]
    which = np.searchsorted(protocol.matching.max_detections, caps)
    arrays = {}
    for name, field, shape in (
        ("precision", "interpolated", (T, R)),
        ("recall", "recall", (T,)),
        ("scores", "scores", (T, R)),
    ):
        joined = np.concatenate([one[field] for one in values], axis=-1)
        joined = np.moveaxis(joined.reshape(*shape, A, M, K), -1, -3)[..., which]
        arrays[name] = np.ascontiguousarray(np.where(np.isnan(joined), -1.0, joined))
    return arrays


def _up_to_rank(outcomes: Outcomes, rank: NDArray[np.integer], end: int | None) -> Outcomes:
    """Return the outcomes at a lower max detections; ``rank`` in the image and class, [D]."""
    if end is None:
        return outcomes
    below = rank < end
    kept = np.flatnonzero(below[outcomes.detection])
    return outcomes._replace(
        unmatched_counts=outcomes.unmatched_counts & below,
        detection=outcomes.detection[kept],
        true=outcomes.true[:, kept],
        ignored=outcomes.ignored[:, kept],
    )


def _joined(outcomes: Sequence[Outcomes]) -> Outcomes:
    """Concatenate outcomes without weights; the classes of each follow those of the one before it."""
    if len(outcomes) == 1:
        return outcomes[0]
    classes = np.cumsum([0, *(len(one.positive) for one in outcomes)])
    rows = np.cumsum([0, *(len(one.score) for one in outcomes)])
    return Outcomes(
        np.concatenate([one.category + first for one, first in zip(outcomes, classes, strict=False)]),
        np.concatenate([one.score for one in outcomes]),
        np.concatenate([one.unmatched_counts for one in outcomes]),
        np.concatenate([one.detection + first for one, first in zip(outcomes, rows, strict=False)]),
        np.concatenate([one.true for one in outcomes], axis=1),
        np.concatenate([one.ignored for one in outcomes], axis=1),
        np.concatenate([one.positive for one in outcomes]),
    )


def categories_of(params: Any) -> Any:
    """Return the evaluated categories: with ``useCats`` 0 one, -1, instead of all."""
    return params.catIds if params.useCats else [-1]


def asks_for_all(params: Any, evaluated: Any) -> bool:
    """Whether parameters ask for exactly what those of ``evaluate`` gave, in the same order."""
    return (
        len(params.iouThrs) == len(evaluated.iouThrs)
        and bool(params.useCats) == bool(evaluated.useCats)
        and list(params.imgIds) == list(evaluated.imgIds)
        and list(params.catIds) == list(categories_of(evaluated))
        and list(params.maxDets) == list(evaluated.maxDets)
        and list(map(tuple, params.areaRng)) == list(map(tuple, evaluated.areaRng))
    )


def is_plain(evaluation: Any, methods: Mapping[str, Any]) -> bool:
    """Whether the methods that the core replaces are not overridden."""
    return all(
        getattr(getattr(evaluation, name), "__func__", None) is method for name, method in methods.items()
    )


def run(
    truths: Grouped,
    detections: Grouped,
    params: Any,
    *,
    not_exhaustive: Mapping[Any, Sequence[Any]] | None = None,
) -> CoreRun | None:
    """Evaluate with the core, or return None where it would differ from the reference.

    With ``not_exhaustive``, categories by image id, the rules are LVIS's: no crowds, and unmatched detections
    of these are ignored.
    """
    try:
        return _run(truths, detections, params, not_exhaustive)
    except (
        _NotOrdinaryError,
        InputError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ):
        return None  # evaluation image by image then raises what the reference raises


def _run(
    truths: Grouped,
    detections: Grouped,
    params: Any,
    not_exhaustive: Mapping[Any, Sequence[Any]] | None,
) -> CoreRun:
    # Renumber images and classes by their position in the parameters, and take the records of these alone.
    federated = not_exhaustive is not None
    protocol = _protocol(params, federated=federated)
    images = _numbered(params.imgIds)
    categories = _numbered(params.catIds)
    pooled = not params.useCats
    truth_rows, truth_columns = _rows(truths, images, categories, pooled=pooled)
    rows, columns = _rows(detections, images, categories, pooled=pooled)
    if pooled and not federated:  # classes no longer matter
        for side in (truth_columns, columns):
            side["category"] = np.zeros_like(side["category"])

    # Use the core only for ordinary data: flags of 0 and 1, crowds ignored, numeric ids and, for detections,
    # positive ids, since the reference reads 0 as "no match".
    iscrowd = [0] * len(truth_rows) if federated else list(map(itemgetter("iscrowd"), truth_rows))
    crowd = np.array(iscrowd, dtype=bool)
    ignored = np.array([bool(truth["ignore"]) for truth in truth_rows], dtype=bool)
    if not set(iscrowd) <= {0, 1} or (crowd & ~ignored).any():
        raise _NotOrdinaryError
    _finite(_column(truth_rows, "id", params))
    if not (_finite(_column(rows, "id", params)) > 0).all():
        raise _NotOrdinaryError

    # Omit names and sizes, which nothing here reads.
    K = 1 if pooled and not federated else len(params.catIds)
    vocabularies: dict[str, Any] = {
        "images": Images(
            np.arange(len(images)), np.full(len(images), None, object), np.full((len(images), 2), np.nan)
        ),
        "categories": Categories(np.arange(K), np.arange(K).astype(str).astype(object)),
    }
    # Make both tables from the records as they are; nothing is sorted or rounded.
    flags = np.zeros(len(truth_rows), dtype=bool)
    truth_table = GroundTruth(
        **vocabularies,
        **truth_columns,
        **_measured(truth_rows, params, of_truths=True),
        ids=np.arange(len(truth_rows)),
        area=_column(truth_rows, "area", params),
        crowd=crowd,
        difficult=flags,
        group=flags,
        ignore=ignored & ~crowd,  # taken by one match; a crowd by any number
        image_labels=None if not_exhaustive is None else _labels(not_exhaustive, images, categories),
    )
    table = Detections(
        **vocabularies,
        **columns,
        **_measured(rows, params, of_truths=False),
        scores=_finite(_column(rows, "score", params)),
    )
    # The reference reads areas of detections from the records, not from boxes.
    area = _column(rows, "area", params)
    if min(area.min(initial=0), truth_table.area.min(initial=0)) < 0 and len(params.areaRng) == 1:
        raise _NotOrdinaryError  # below a range from 0 to infinity, which takes everything here
    matches = Matcher(truth_table, table, protocol, areas=area).match()
    return CoreRun(
        truth_rows,
        Evaluation(truth_table, table, protocol, matches),
        Matched(
            matches,
            protocol,
            list(params.maxDets),
            truth_ids=list(map(itemgetter("id"), truth_rows)),
            detection_ids=list(map(itemgetter("id"), rows)),
            scores=list(map(itemgetter("score"), rows)),
        ),
        keys=(list(params.imgIds), list(categories_of(params))),
        shapes=(_shapes(truth_rows, params), _shapes(rows, params)),
    )


def _shapes(records: list[Record], params: Any) -> list[Any]:
    return list(map(itemgetter("segmentation"), records)) if params.iouType == "segm" else []


def _labels(
    not_exhaustive: Mapping[Any, Sequence[Any]], images: dict[Any, int], categories: dict[Any, int]
) -> ImageLabels:
    pairs = [
        (images[image], categories[category])
        for image, listed in not_exhaustive.items()
        if image in images
        for category in listed
        if category in categories
    ]
    image, category = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    kind = IMAGE_LABEL_KINDS.index("not_exhaustive")
    return ImageLabels(image, category, np.full(len(pairs), kind, dtype=np.int8))


def _protocol(params: Any, *, federated: bool) -> Protocol:
    # Reject parameters that the reference treats in its own way, such as empty ones.
    ends = [[float(end) for end in area[:2]] for area in params.areaRng]
    thresholds = np.array(params.iouThrs, dtype=np.float64)
    if not (ends and thresholds.ndim == 1 and len(params.imgIds) and len(params.catIds)):
        raise _NotOrdinaryError
    sigmas: list[float] = []
    if params.iouType == "keypoints":
        sigmas = np.array(params.kpt_oks_sigmas, dtype=np.float64).tolist()
        if not params.useCats:  # the reference then finds no similarities
            raise _NotOrdinaryError
    caps = tuple(params.maxDets)
    made = _protocol_of if set(map(type, caps)) <= {int} else _protocol_of.__wrapped__  # 1 is not 1.0 here
    return made(
        params.iouType,
        tuple(sigmas),
        tuple(thresholds.tolist()),
        caps,
        tuple(map(tuple, ends)),
        per_class=bool(params.useCats) or not federated,
        federated=federated,
    )


@functools.lru_cache(maxsize=8)
def _protocol_of(
    kind: str,
    sigmas: tuple[float, ...],
    thresholds: tuple[float, ...],
    caps: tuple[int, ...],
    ranges: tuple[tuple[float, float], ...],
    *,
    per_class: bool,
    federated: bool,
) -> Protocol:
    """Make COCO's protocol with some thresholds, limits and area ranges; cached for loops over batches."""
    return Protocol(
        name="pycocotools",
        similarity=SIMILARITIES[kind],
        keypoints=KeypointRules(sigmas=sigmas),
        matching=MatchingRules(
            iou_thresholds=thresholds,
            largest_threshold=LARGEST_THRESHOLD,
            max_detections=caps,
            per_class=per_class,
        ),
        labels=LabelRules(not_exhaustive="ignore" if federated else "count"),
        ignore=IgnoreRules(area_ranges={str(index): ends for index, ends in enumerate(ranges)}),
        ap=ApRules(precision_epsilon=float(np.spacing(1))),
    )


def _numbered(ids: Sequence[Any]) -> dict[Any, int]:
    numbers = {identifier: number for number, identifier in enumerate(ids)}
    if len(numbers) != len(ids):
        raise _NotOrdinaryError
    return numbers


def _rows(
    grouped: Grouped, images: dict[Any, int], categories: dict[Any, int], *, pooled: bool
) -> tuple[list[Record], dict[str, Any]]:
    """Return the evaluated annotations, pooled category by category, and their image and category rows."""
    records, count = grouped.records, len(grouped.records)
    image, category = (
        np.fromiter(map(numbers.get, ids, itertools.repeat(-1)), np.int32, count)
        for numbers, ids in ((images, grouped.image_ids), (categories, grouped.category_ids))
    )
    known = (image >= 0) & (category >= 0)
    if not known.all():
        rows = np.flatnonzero(known)
        records = [records[row] for row in rows.tolist()]
        image, category = image[rows], category[rows]
    if pooled:
        order = stable_order(category, len(categories))
        records = [records[row] for row in order.tolist()]
        image, category = image[order], category[order]
    return records, {"image": image, "category": category}


def _column(records: list[Record], key: str, params: Any) -> FloatArray:
    """Return a number of each annotation as float64, unless its type compares otherwise than float64."""
    values = list(map(itemgetter(key), records))
    for kind in set(map(type, values)):
        if issubclass(kind, (bool, int, float, np.signedinteger, np.float32)):
            narrow = key == "area" and issubclass(kind, np.float32)
            if narrow and any(float(kind(end)) != end for area in params.areaRng for end in area[:2]):
                raise _NotOrdinaryError
        elif key == "score" or not issubclass(kind, np.unsignedinteger):
            raise _NotOrdinaryError
    column = np.array(values, dtype=np.float64)
    if np.isnan(column).any():
        raise _NotOrdinaryError
    return column


def _finite(values: FloatArray) -> FloatArray:
    if not np.isfinite(values).all():
        raise _NotOrdinaryError
    return values


def _measured(records: list[Record], params: Any, *, of_truths: bool) -> dict[str, Any]:
    """Return the compared columns: boxes, masks or keypoints."""
    none = {"boxes": np.zeros((len(records), 4)), "sizes": np.zeros((len(records), 2))}
    if params.iouType == "segm":
        return {**none, "masks": Masks(map(itemgetter("segmentation"), records))}
    if params.iouType == "keypoints":
        points = keypoint_array(list(map(itemgetter("keypoints"), records)))
        _finite(points)
        return {**(_boxes(records) if of_truths else none), "keypoints": points}
    return _boxes(records)


def _boxes(records: list[Record]) -> dict[str, Any]:
    boxes = list(map(itemgetter("bbox"), records))
    if set(map(len, boxes)) - {4}:
        raise _NotOrdinaryError
    flat = np.fromiter(itertools.chain.from_iterable(boxes), np.float64, 4 * len(boxes)).reshape(-1, 4)
    if not (np.abs(flat) <= LARGEST_COORDINATE).all():
        raise _NotOrdinaryError
    corner, sizes = flat[:, :2], np.ascontiguousarray(flat[:, 2:])
    area = sizes[:, 0] * sizes[:, 1]
    if not area.all() and (sizes[area == 0] > 0).all(axis=1).any():
        raise _NotOrdinaryError  # 0 / 0 gives NaN in the reference
    return {"boxes": np.concatenate([corner, corner + sizes], axis=1), "sizes": sizes}
