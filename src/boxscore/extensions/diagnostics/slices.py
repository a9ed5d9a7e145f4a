"""Compute scores of slices of a data set: by camera, size, shape or crowdedness.

Conventions
-----------
- A slice of images reuses the matches, with weight 0 for the other images.
- A slice of objects works like COCO's area ranges with another quantity instead of area: objects outside are
  ignored, and so are their matches. An unmatched detection is a false positive in the slice of its box.
  Detections do not have annotation columns, so in slices by such a column an unmatched detection is a false
  positive in every slice.
- Bins of numbers are ``[low, high)``, the last one closed; COCO's area ranges are closed at both ends.
- Combinations such as ``camera,size`` are the intersections of the slices of each name; a value at the common
  end of two closed ranges belongs to the higher one.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.weights.resampling import Groups
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.summary import summary_total
from boxscore.similarity.registry import similarity_of

if TYPE_CHECKING:
    import pandas as pd

Bins = int | Sequence[float] | None
Table = GroundTruth | Detections
Measure = Callable[[Table, Protocol], FloatArray]
MOST_SLICES = 64


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SliceScores(DiagnosticResult):
    """Summary metrics of S slices of the data.

    Attributes
    ----------
    slices : list of str, [S]
        Values, or bin edges.
    images : ndarray of int64, [S]
        Images in the slice, or with an object in it.
    ground_truths : ndarray of int64, [S]
        Counted ground truths in the slice.
    detections : ndarray of int64, [S]
        Detections that would count in the slice.
    metrics : list of str, [M]
        ``AP``, ``AP50`` and ``AP75`` where the protocol has the threshold, ``AR``; at the largest max
        detections.
    values : ndarray of float64, [S, M]
    """

    slices: list[str]
    images: NDArray[np.int64]
    ground_truths: NDArray[np.int64]
    detections: NDArray[np.int64]
    metrics: list[str]
    values: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return one row per slice: ``slice, images, ground_truths, detections`` and a column per metric."""
        import pandas as pd

        return pd.DataFrame(
            {
                "slice": self.slices,
                "images": self.images,
                "ground_truths": self.ground_truths,
                "detections": self.detections,
                **dict(zip(self.metrics, self.values.T, strict=True)),
            }
        )


class _Bins(NamedTuple):
    """Labels and closed ends of the slices, [S]."""

    labels: list[str]
    ranges: list[tuple[float, float]]


class _Quantity(NamedTuple):
    """The quantity that slices of objects use, and its default edges."""

    measure: Measure
    edges: tuple[float, ...] | None


def _area(table: Table, protocol: Protocol) -> FloatArray:
    if table.units == "fractions":
        raise InputError(
            "slices by size",
            "have boxes in pixels",
            got="fractions of images of unknown size",
            place=table.source,
            cause=f"use relative_size, or {checks.GIVE_SIZES}",
        )
    if isinstance(table, GroundTruth):
        return table.area
    return similarity_of(protocol).detection_areas(table)


def _relative_area(table: Table, protocol: Protocol) -> FloatArray:
    if table.units == "fractions":
        share: FloatArray = table.sizes.prod(axis=1)
        return share
    extent = table.images.sizes[table.image]
    unknown = np.flatnonzero(np.isnan(extent).any(axis=1))
    if len(unknown):
        raise InputError(
            "slices by relative size",
            "know the width and height of every image",
            got="none",
            place=f"image {table.images.ids.tolist()[table.image[unknown[0]]]!r}",
        )
    relative: FloatArray = _area(table, protocol) / (extent[:, 0] * extent[:, 1])
    return relative


def _aspect_ratio(table: Table, protocol: Protocol) -> FloatArray:
    sizes = table.sizes + protocol.boxes.pixel_offset
    width, height = sizes[:, 0], sizes[:, 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(height > 0, width / height, np.where(width > 0, np.inf, 1.0))


QUANTITIES = {
    "size": _Quantity(_area, None),
    "relative_size": _Quantity(_relative_area, (0, 0.01, 0.1, np.inf)),
    "aspect_ratio": _Quantity(_aspect_ratio, (0, 0.75, 4 / 3, np.inf)),
}
CROWDEDNESS = "crowdedness"


def slice_names(evaluation: Evaluation) -> list[str]:
    """Return the names that :func:`slice_scores` accepts for ``by``; for merged partials, image columns."""
    whose = _named(evaluation)
    if not source_of(evaluation).is_here:
        whose = {name: ["images"] for name in evaluation.images.columns}
    return [name if len(named) == 1 else f"{each}.{name}" for name, named in whose.items() for each in named]


def _named(evaluation: Evaluation) -> dict[str, list[str]]:
    """Return the meanings of each name: a measure of boxes, a column of images or of annotations."""
    whose: dict[str, list[str]] = {name: ["boxes"] for name in (*QUANTITIES, CROWDEDNESS)}
    truth = evaluation.ground_truth.columns if source_of(evaluation).is_here else ()
    for each, names in (("images", evaluation.images.columns), ("annotations", truth)):
        for name in names:
            whose.setdefault(name, []).append(each)
    return whose


def _one_named(evaluation: Evaluation, by: str) -> tuple[str, str]:
    """Resolve ``by``, such as ``size`` or ``images.size``, to its source and its name."""
    whose = _named(evaluation)
    chosen = [(each, by) for each in whose.get(by, ())] if isinstance(by, str) else []
    before, _, name = by.partition(".") if isinstance(by, str) else ("", "", "")
    if before in whose.get(name, ()):
        chosen.append((before, name))
    if len(chosen) > 1:
        both = ", ".join(f"{each}.{name}" for each, name in chosen)
        got = f"{by!r}, which is of {' and of '.join(each for each, _ in chosen)}"
        raise InputError("by", "have one meaning", got=got, cause=f"use one of {both}")
    if not chosen:
        known = slice_names(evaluation)
        if not known:
            evaluation._require_overlaps(f"slices by {by}")
        checks.one_of(by, known, name="by")
    return chosen[0]


@once_per_evaluation
def slice_scores(evaluation: Evaluation, *, by: str = "size", bins: Bins = None) -> SliceScores:
    """Compute AP and AR of each slice.

    Parameters
    ----------
    evaluation : Evaluation
    by : str, default "size"
        ``size`` (area in square pixels), ``relative_size`` (area over the image's area), ``aspect_ratio``
        (width over height), ``crowdedness`` (counted objects in the image), a column of the image table
        (``images.columns``), or of the annotation table (``ground_truth.columns``). An ambiguous name needs
        its source: ``boxes.size``, ``images.size``, ``annotations.size``. Several names separated by commas
        give one slice per combination, ``"camera,size"``; a column of annotations cannot be one of them.
    bins : int or sequence of float, optional
        Bin edges, or a number of slices with equally many objects (or images). Defaults: COCO's sizes; 1% and
        10% of the image; 3/4 and 4/3; 0, 1, 2-4, 5-9 and more objects; one slice per value of a column.

    Returns
    -------
    SliceScores

    Raises
    ------
    InputError
        When ``by`` is unknown or ambiguous, the edges do not ascend, there are more than 64 slices, or bins
        are given for several names.
    """
    if isinstance(by, str) and "," in by and by not in slice_names(evaluation):
        return _combined(evaluation, [name.strip() for name in by.split(",")], bins)
    # Slice by a column of images: weight the images and reuse the matches.
    whose, name = _one_named(evaluation, by)
    if whose == "images":
        values, chosen = _column_bins(evaluation.images.columns[name], bins, name, whose)
        return _by_image(evaluation, values, chosen)
    evaluation._require_overlaps(f"slices by {by}")
    # Slice by a column of annotations or a measure of boxes: use area ranges of that quantity.
    truth = evaluation.ground_truth
    if whose == "annotations":
        values, chosen = _column_bins(truth.columns[name], bins, name, whose)
        return _by_object(evaluation, values, chosen)
    # Crowdedness counts the objects of an image, so it is a value per image.
    if name == CROWDEDNESS:
        return _by_image(evaluation, *_crowdedness(evaluation, bins))
    # Bin by the given edges, the default edges, or into equally many counted objects.
    quantity = QUANTITIES[name]
    measured = quantity.measure(truth, evaluation.protocol)[~evaluation._matcher.ignoring.ignored]
    edges = quantity.edges if bins is None else bins
    chosen = _coco_sizes() if edges is None else _edges_to_bins(edges, measured)
    return _by_object(evaluation, quantity.measure, chosen)


def _combined(evaluation: Evaluation, names: Sequence[str], bins: Bins) -> SliceScores:
    """Compute the slices of every combination of the slices of several names."""
    if bins is not None:
        raise InputError("bins", "not be used with several names", got=f"--by {','.join(names)}")
    labels: list[list[str]] = []
    of_images: list[tuple[int, FloatArray]] = []
    of_tables: list[tuple[int, Measure, _Bins]] = []
    for by in names:
        # Number the slices of each name: of an image, or of each row of a table.
        whose, name = _one_named(evaluation, by)
        if whose == "annotations":
            rule = "be columns of images, or of boxes, in combinations"
            raise InputError("slices", rule, got=f"{by!r}, a column of annotations, which detections lack")
        if whose == "images":
            values, chosen = _column_bins(evaluation.images.columns[name], None, name, whose)
        else:
            evaluation._require_overlaps(f"slices by {by}")
            if name == CROWDEDNESS:
                values, chosen = _crowdedness(evaluation, None)
            else:
                edges = QUANTITIES[name].edges
                chosen = _coco_sizes() if edges is None else _edges_to_bins(edges, np.empty(0))
                of_tables.append((len(labels), QUANTITIES[name].measure, chosen))
        if whose == "images" or name == CROWDEDNESS:
            of_images.append((len(labels), _codes(values, chosen)))
        labels.append(chosen.labels)
    counts = [len(one) for one in labels]
    every = [", ".join(words) for words in itertools.product(*labels)]
    bins_of_all = _Bins(every, [(k, k) for k in range(len(every))])
    strides = [int(np.prod(counts[at + 1 :])) for at in range(len(counts))]
    # Add up the numbers of the slices; NaN is in no slice.
    per_image = np.zeros(len(evaluation.images))
    for at, codes in of_images:
        per_image += strides[at] * codes
    if not of_tables:
        return _by_image(evaluation, np.where(np.isnan(per_image), -1, per_image), bins_of_all)

    def numbered(table: Table, protocol: Protocol) -> FloatArray:
        number = per_image[table.image]
        for at, measure, chosen in of_tables:
            number = number + strides[at] * _codes(measure(table, protocol), chosen)
        return np.where(np.isnan(number), -1.0, number)

    return _by_object(evaluation, numbered, bins_of_all)


def _codes(values: FloatArray, chosen: _Bins) -> FloatArray:
    """Return the slice of each value as a number; NaN for none."""
    codes = np.full(len(values), np.nan)
    for k, (low, high) in enumerate(chosen.ranges):
        codes[(values >= low) & (values <= high)] = k
    return codes


def _crowdedness(evaluation: Evaluation, bins: Bins) -> tuple[FloatArray, _Bins]:
    """Count the objects of each image, and choose slices of the counts."""
    truth = evaluation.ground_truth
    counted = ~evaluation._matcher.ignoring.ignored
    objects = np.bincount(truth.image[counted], minlength=len(truth.images)).astype(np.float64)
    return objects, _edges_to_bins((0, 1, 2, 5, 10, np.inf) if bins is None else bins, objects, whole=True)


def _coco_sizes() -> _Bins:
    ranges = dict(load_protocol("coco").ignore.area_ranges)
    del ranges["all"]
    return _Bins(list(ranges), list(ranges.values()))


def _edges_to_bins(edges: int | Sequence[float], values: FloatArray, *, whole: bool = False) -> _Bins:
    """Make slices between edges, or with equally many values; whole numbers get simpler labels."""
    if isinstance(edges, (int, np.integer)):
        count = checks.whole_number(edges, 1, name="bins", high=checks.MOST_BINS)
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 1))) if len(values) else np.zeros(1)
        ends = cuts.tolist() if len(cuts) > 1 else [float(cuts[0]), np.inf]
    else:
        ends = [checks.number_between(edge, 0, np.inf, name="bins") for edge in edges]
    if len(ends) < 2 or any(high <= low for low, high in itertools.pairwise(ends)):
        raise InputError("bins", "be two or more ascending edges", got=ends)
    ranges = [(low, float(np.nextafter(high, -np.inf))) for low, high in itertools.pairwise(ends)]
    ranges[-1] = (ends[-2], ends[-1])
    return _Bins([_label(low, high, whole) for low, high in itertools.pairwise(ends)], ranges)


def _label(low: float, high: float, whole: bool) -> str:
    if np.isinf(high):
        return f">= {low:g}"
    if whole:
        return f"{low:g}" if high == low + 1 else f"{low:g}-{high - 1:g}"
    return f"{low:g}-{high:g}"


def _column_bins(column: NDArray[Any], bins: Bins, name: str, whose: str) -> tuple[FloatArray, _Bins]:
    """Return the values of a column as numbers, and its slices: one per value, or bins of numbers."""
    if bins is not None:
        try:
            values = column.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError("a column with bins", "hold numbers", got=repr(column[:1].tolist())) from None
        return values, _edges_to_bins(bins, values[~np.isnan(values)])
    if not len(column):
        raise InputError(f"slices by {name}", "have values to slice by", got=f"no {whose}")
    labels, codes = np.unique(np.array([str(value) for value in column.tolist()]), return_inverse=True)
    return codes.astype(np.float64), _Bins(labels.tolist(), [(k, k) for k in range(len(labels))])


def _summary(protocol: Protocol, area: str) -> tuple[SummaryRow, ...]:
    """Return the summary rows of a slice that the protocol has; without scores, precision to F1."""
    if protocol.matching.scores != "given":
        given = [row for row in protocol.summary if row.metric in COUNTED] or list(protocol.summary)
        return tuple(row.replaced(area=area) for row in given)
    rows = [SummaryRow("AP", area=area)]
    for key, iou in (("AP50", 0.5), ("AP75", 0.75)):
        if iou in protocol.matching.iou_thresholds:
            rows.append(SummaryRow(key, iou=iou, area=area))
    return (*rows, SummaryRow("AR", "AR", area=area))


COUNTED = ("micro_F1", "precision", "recall")
"""Kinds of metrics that a slice shows for detections without scores."""


def _by_image(evaluation: Evaluation, values: FloatArray, chosen: _Bins) -> SliceScores:
    """Set the weight of images outside a slice to 0."""
    area, count = next(iter(evaluation.protocol.ignore.area_ranges)), len(chosen.ranges)
    summary = _summary(evaluation.protocol, area)
    number = np.full(len(values), count, dtype=np.min_scalar_type(count))
    for k, (low, high) in enumerate(chosen.ranges):
        number[(values >= low) & (values <= high)] = k
    weighted = evaluation._weighted_metrics(summary, Groups(number, 0, count))
    return SliceScores(
        chosen.labels,
        np.bincount(number, minlength=count + 1)[:count].astype(np.int64),
        weighted.ground_truths,
        weighted.detections,
        [row.key for row in summary],
        weighted.values[..., -1],
    )


def _by_object(evaluation: Evaluation, quantity: Measure | FloatArray, chosen: _Bins) -> SliceScores:
    """Match once, with the slices as area ranges."""
    if len(chosen.labels) > MOST_SLICES:
        raise InputError("slices of objects", f"be at most {MOST_SLICES}", got=len(chosen.labels))
    # Match once with all slices as ranges; each is one bit of an integer, so more slices cost little.
    matcher = evaluation._matcher
    truth, detections = matcher.ground_truth, matcher.detections
    if callable(quantity):
        of_detections = quantity(detections, evaluation.protocol)
        matched, protocol = matcher.match_ranges(
            chosen.ranges, quantity(truth, evaluation.protocol), of_detections
        )
    # Detections do not have this column, so they count in every slice.
    else:
        matched, protocol = matcher.match_ranges(chosen.ranges, quantity, None)
    # Read each slice as an area range of the protocol.
    result = dataclasses.replace(evaluation, protocol=protocol, matched=matched)
    counted = [matched.counted(i) for i in range(len(chosen.labels))]
    values = [
        [summary_total(row, protocol, result.curves_of) for row in _summary(protocol, name)]
        for name in protocol.ignore.area_ranges
    ]
    # Count images, objects and detections of each slice.
    metrics = [row.key for row in _summary(protocol, "0")]
    return SliceScores(
        chosen.labels,
        np.array([len(np.unique(matched.truth_image[flags])) for flags in counted], dtype=np.int64),
        np.array([flags.sum() for flags in counted], dtype=np.int64),
        np.array([matched.inside(i).sum() for i in range(len(counted))], dtype=np.int64),
        metrics,
        np.array(values).reshape(-1, len(metrics)),
    )
