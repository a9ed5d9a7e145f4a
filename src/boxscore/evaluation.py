"""The whole flow in one call, and its result.

``evaluate`` composes the stages: tables, overlaps, matching, average precision. The only module, with the
command line, that knows them all. The result computes each number when it is first asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.alignment import align, pool_classes, select
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.matching.candidates import candidate_pairs, detection_areas
from boxscore.matching.greedy import Matches, match, merge
from boxscore.matching.inputs import warn_of_stand_ins, with_needed_columns
from boxscore.matching.ranking import rank_detections
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol, SummaryRow
from boxscore.scoring.curves import TruePositives, positives

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "evaluate", "match_tables"]


def evaluate(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    protocol: str | Path | Mapping[str, Any] | Protocol = "coco",
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
    workers: int = 1,
) -> Evaluation:
    """Evaluate detections against ground truth.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Their images must all be in the ground truth. Classes that it does not have are left out.
    protocol : str, Path, mapping or Protocol, default "coco"
        A shipped name, a TOML file, its values, or a Protocol.
    images, classes : sequence of ids, optional
        Evaluate only these; classes by id or name.
    workers : int, default 1
        Threads; images are split into as many blocks, which are matched apart and merged. The result
        does not depend on it.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        When a detection is in an unknown image, or a chosen image or class does not exist.
    ProtocolError
        When the protocol breaks a rule.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1], ["cat"], [[10, 10, 50, 50]])
    >>> found = Detections.from_arrays([1], ["cat"], [[10, 10, 50, 50]], [0.9])
    >>> round(evaluate(truth, found).metrics["AP"], 6)
    1.0
    """
    chosen = load_protocol(protocol)
    checks.whole_number(workers, 1, name="workers")
    for table, kind, name in (
        (ground_truth, GroundTruth, "ground_truth"),
        (detections, Detections, "detections"),
    ):
        if not isinstance(table, kind):
            raise InputError(
                name,
                f"be a {kind.__name__} table",
                got=f"a {type(table).__name__}",
                cause="load files with boxscore.load_ground_truth and boxscore.load_detections",
            )
    detections = align(detections, ground_truth)
    if images is not None or classes is not None:
        ground_truth, detections = select(ground_truth, detections, images=images, classes=classes)
    result = Evaluation(
        ground_truth, detections, chosen, match_tables(ground_truth, detections, chosen, workers=workers)
    )
    _warn_of_id_zero(result)
    warn_of_stand_ins(detections, chosen)
    return result


def match_tables(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, *, workers: int = 1
) -> Matches:
    """Run the stages from tables to matches; the tables have the same vocabularies."""
    detections = with_needed_columns(ground_truth, detections, protocol)
    if not protocol.matching.per_class:
        ground_truth, detections = pool_classes(ground_truth), pool_classes(detections)
    if workers == 1:
        return _match_block(ground_truth, detections, protocol)
    from concurrent.futures import ThreadPoolExecutor

    bounds = np.linspace(0, len(ground_truth.images), workers + 1).round().astype(int)
    blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    with ThreadPoolExecutor(workers) as pool:
        return merge(
            pool.map(lambda block: _match_images(ground_truth, detections, protocol, *block), blocks)
        )


def _match_images(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, first: int, end: int
) -> Matches:
    """Match the images with row numbers in [first, end)."""
    truth_rows = np.flatnonzero((ground_truth.image >= first) & (ground_truth.image < end))
    rows = np.flatnonzero((detections.image >= first) & (detections.image < end))
    matches = _match_block(ground_truth.take(truth_rows), detections.take(rows), protocol)
    return dataclasses.replace(matches, row=rows[matches.row], truth_row=truth_rows[matches.truth_row])


def _match_block(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> Matches:
    ranking = rank_detections(detections, protocol)
    pairs = candidate_pairs(ground_truth, detections, ranking, protocol)
    areas = detection_areas(detections, protocol)
    return match(ground_truth, detections, ranking, pairs, areas, protocol)


def _warn_of_id_zero(result: Evaluation) -> None:
    """Warn that pycocotools would read a match with annotation 0 as no match."""
    ids = result.ground_truth.ids
    if ids.dtype == object or result.protocol.matching.candidate != "best_available":
        return
    found = result.matched
    hits = (ids[found.truth_row[found.pair_truth]] == 0) & (found.counted_pairs[:, 0] > 0)
    if hits.any():
        warnings.warn(
            f"{result.ground_truth.source}: an annotation has id 0. It is counted as any other; pycocotools "
            f"reads a match with it as no match ({int(hits.sum())} true positive here).",
            BoxscoreWarning,
            stacklevel=3,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of :func:`evaluate`.

    Attributes
    ----------
    ground_truth : GroundTruth
    detections : Detections
        As evaluated: aligned, and only the chosen images and classes.
    protocol : Protocol
    matched : Matches
        What every number is computed from.
    """

    ground_truth: GroundTruth
    detections: Detections
    protocol: Protocol
    matched: Matches

    @property
    def signature(self) -> str:
        """Every choice behind the numbers, in one line."""
        return self.protocol.signature()

    @functools.cached_property
    def labels(self) -> list[str]:
        """A name for each class, [K]; the axis K of every array here."""
        return self.ground_truth.categories.labels if self.protocol.matching.per_class else ["all"]

    @functools.cached_property
    def metrics(self) -> dict[str, float]:
        """The headline numbers, by the keys of the protocol's summary; NaN where undefined."""
        return {row.key: _mean_of_defined(self._values(row)) for row in self.protocol.rows}

    @functools.cached_property
    def counts(self) -> dict[str, int]:
        """How much was evaluated: images, ground truths, crowds, difficult, detections, classes, left out."""
        truth = self.ground_truth
        return {
            "images": len(truth.images),
            "ground_truths": len(truth),
            "crowds": int(truth.crowd.sum()),
            "difficult": int(truth.difficult.sum()),
            "detections": len(self.detections),
            "classes": len(truth.categories),
            "left_out": sum(self.detections.left_out.values()),
        }

    @functools.cached_property
    def class_values(self) -> dict[str, NDArray[np.float64]]:
        """Each headline number of each class alone, [K]; ``mAP`` is ``AP`` here."""
        return {
            row.key.removeprefix("m"): np.array([_mean_of_defined(column) for column in self._by_class(row)])
            for row in self.protocol.rows
        }

    @functools.cached_property
    def class_counts(self) -> dict[str, NDArray[np.int64]]:
        """Count, for each class [K]: ground truths, detections, and hits at the first threshold."""
        K, found = len(self.labels), self.matched
        counted = positives(found, 0, K)
        first = (found.counted_pairs[:, 0] & 1).astype(bool)
        return {
            "ground_truths": counted,
            "ignored": np.bincount(found.truth_category, minlength=K) - counted,
            "detections": np.bincount(found.category, minlength=K),
            "true_positives": np.bincount(found.category[found.pair_detection[first]], minlength=K),
        }

    @property
    def summary(self) -> pd.DataFrame:
        """One row a headline number: ``metric, value, kind, iou, area, max_detections``."""
        import pandas as pd

        rows = self.protocol.rows
        caps = [self.protocol.caps[row.cap] for row in rows]
        return pd.DataFrame(
            {
                "metric": [row.key for row in rows],
                "value": [self.metrics[row.key] for row in rows],
                "kind": [row.metric for row in rows],
                "iou": [self.protocol.iou_text(row) for row in rows],
                "area": [row.area for row in rows],
                "max_detections": pd.array(caps, dtype="Int64"),
            }
        )

    @property
    def per_class(self) -> pd.DataFrame:
        """One row a class: ``class``, counts, and each headline number of the class alone."""
        import pandas as pd

        return pd.DataFrame({"class": self.labels, **self.class_counts, **self.class_values})

    def curves(self, *, area: str = "all", cap: int = -1) -> pd.DataFrame:
        """Precision-recall curves in long form.

        Parameters
        ----------
        area : str, default "all"
            The name of an area range of the protocol.
        cap : int, default -1
            Position among the protocol's detection caps; -1 is the largest.

        Returns
        -------
        DataFrame
            ``class, iou, recall, precision, score``: one row a class, threshold and recall point.
            ``score`` is the confidence at which the point is reached, NaN where it never is. Classes
            without ground truth have no rows.
        """
        import pandas as pd

        names = list(self.protocol.ignore.area_ranges)
        checks.one_of(area, names, name="area")
        found = self.true_positives(names.index(area), cap)
        defined = np.flatnonzero(found.positive)
        precision, score = found.interpolated[:, :, defined], found.scores[:, :, defined]  # [T,R,K]
        points = np.array(self.protocol.ap.recall_points)
        reached = points[None, :, None] <= found.recall[:, None, defined]
        T, R, K = precision.shape
        thresholds = np.array(self.protocol.matching.iou_thresholds)
        return pd.DataFrame(
            {
                "class": np.repeat(np.array(self.labels, dtype=object)[defined], T * R),
                "iou": np.tile(np.repeat(thresholds, R), K),
                "recall": np.tile(points, K * T),
                "precision": precision.transpose(2, 0, 1).ravel(),
                "score": np.where(reached, score, np.nan).transpose(2, 0, 1).ravel(),
            }
        )

    @property
    def matches(self) -> pd.DataFrame:
        """One row a detection, in file order: what became of it at the first threshold, all areas.

        Columns of :meth:`Detections.to_pandas`, then ``rank`` (in its image and class, from 0), ``outcome``
        (``true positive``, ``false positive``, ``ignored``, ``beyond cap``), ``annotation_id`` and ``iou`` of
        the ground truth it matched, and ``matched_up_to``: the highest threshold at which it is still a
        true positive.
        """
        frame = self.detections.to_pandas(
            ["image_id", "category_id", "class", "x1", "y1", "x2", "y2", "score"]
        )
        found, count = self.matched, len(self.detections)
        rows = self._original_rows
        outcome = np.full(count, "beyond cap", dtype=object)
        inside = (found.in_range & 1).astype(bool)
        outcome[rows] = np.where(inside, "false positive", "ignored")
        first = np.flatnonzero(found.matched[:, 0] & 1)
        true = (found.counted_pairs[first, 0] & 1).astype(bool)
        matched_rows = rows[found.pair_detection[first]]
        outcome[matched_rows] = np.where(true, "true positive", "ignored")
        rank, iou, highest = np.full(count, -1), np.full(count, np.nan), np.full(count, np.nan)
        rank[rows] = found.rank
        iou[matched_rows] = found.iou[first]
        for t, threshold in enumerate(self.protocol.matching.iou_thresholds):
            still = (found.counted_pairs[:, 0] >> found.matched.dtype.type(t)) & 1
            highest[rows[found.pair_detection[still == 1]]] = threshold
        annotation = np.full(count, None, dtype=object)
        annotation[matched_rows] = self.ground_truth.ids[self._original_truths[found.pair_truth[first]]]
        frame["rank"], frame["outcome"], frame["annotation_id"] = rank, outcome, annotation
        frame["rank"] = frame["rank"].astype("Int64").where(rank >= 0)
        frame["iou"], frame["matched_up_to"] = iou, highest
        return frame

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """Pycocotools' arrays: precision and scores [T, R, K, A, M], recall [T, K, A, M]; NaN for its -1."""
        areas, caps = len(self.protocol.ignore.area_ranges), len(self.protocol.caps)
        grid = [[self.true_positives(area, cap) for cap in range(caps)] for area in range(areas)]
        return {
            name: np.stack(
                [np.stack([getattr(found, field) for found in line], axis=-1) for line in grid], axis=-2
            )
            for name, field in (("precision", "interpolated"), ("recall", "recall"), ("scores", "scores"))
        }

    def ap_by_iou(self) -> NDArray[np.float64]:
        """AP of each IoU threshold and class, [T, K], first area range, largest cap; NaN where undefined."""
        return self.true_positives(0, -1).average_precision

    @functools.cached_property
    def _original_rows(self) -> NDArray[np.int64]:
        """Rows of ``detections`` that ``matched.row`` means; classes pooled, the two differ."""
        return self.unpooled_rows(self.detections)[self.matched.row]

    @functools.cached_property
    def _original_truths(self) -> NDArray[np.int64]:
        return self.unpooled_rows(self.ground_truth)[self.matched.truth_row]

    def unpooled_rows(self, table: GroundTruth | Detections) -> NDArray[np.int64]:
        """Rows of a table in the order in which it was matched; classes pooled, that is class by class."""
        if self.protocol.matching.per_class:
            return np.arange(len(table))
        return np.argsort(table.category, kind="stable")

    def true_positives(self, area: int = 0, cap: int = -1) -> TruePositives:
        """Return the curves of an area range and a detection cap; computed once.

        Parameters
        ----------
        area, cap : int
            Positions on the axes A and M.

        Returns
        -------
        TruePositives
        """
        key = (area, cap % len(self.protocol.caps))
        if key not in self._cache:
            self._cache[key] = TruePositives(self.matched, self.protocol, len(self.labels), *key)
        return self._cache[key]

    @functools.cached_property
    def _cache(self) -> dict[tuple[int, int], TruePositives]:
        return {}

    def _values(self, row: SummaryRow) -> NDArray[np.float64]:
        """Return the cells a headline number is the mean of: [T, R, K] or [T, K]."""
        found = self.true_positives(list(self.protocol.ignore.area_ranges).index(row.area), row.cap)
        pointwise = self.protocol.ap.interpolation == "points" and not self.protocol.ap.sequential_mean
        if row.metric == "AR":
            values = found.recall
        else:
            values = found.interpolated if pointwise else found.average_precision
        if row.iou is None:
            return values
        return values[[self.protocol.matching.iou_thresholds.index(row.iou)]]

    def _by_class(self, row: SummaryRow) -> list[NDArray[np.float64]]:
        values = self._values(row)
        return [values[..., k] for k in range(len(self.labels))]


def _mean_of_defined(values: NDArray[np.float64]) -> float:
    """Mean of the cells that are not NaN, in C order as pycocotools takes it; NaN when there are none."""
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if len(defined) else float("nan")
