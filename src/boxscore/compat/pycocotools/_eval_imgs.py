"""Build ``evalImgs`` from the core's matches in one pass, in the reference's order and form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import inverse_order
from boxscore.compat.pycocotools._core import Matched, categories_of

Record = dict[str, Any]


def eval_imgs(matched: Matched, params: Any) -> list[Record | None]:
    """List the outcome of each category, area range and image; None if both sides are empty."""
    # Put the detections into the order of (class, image, rank): an entry of the list is then a slice.
    categories = categories_of(params)
    I, A = len(params.imgIds), len(params.areaRng)  # noqa: E741 - the axis of images
    results: list[Record | None] = [None] * (len(categories) * A * I)
    matches = matched.matches
    group = matches.category.astype(np.int64) * I + matches.image
    order = np.lexsort((matches.rank, group))
    group = group[order]
    rows = matches.row[order].tolist()
    detection_ids = [matched.detection_ids[row] for row in rows]
    scores = [matched.scores[row] for row in rows]
    # Do the same for ground truths; ``position`` [P] gives each pair's detection in the new order.
    truth_group = matches.truth_category.astype(np.int64) * I + matches.truth_image
    truth_ids = matched.truth_ids
    position = inverse_order(order)[matches.pair_detection]
    cap = params.maxDets[-1]

    # Only groups with a detection or a ground truth get an entry; the others stay None, as in the reference.
    groups = np.union1d(group, truth_group)
    bounds = _bounds(group, groups)
    truth_bounds = _bounds(np.sort(truth_group), groups)
    for area, area_range in enumerate(params.areaRng):
        # In each area range ignored ground truths come last in their group.
        ignored = matched.ignored_truths(area)
        truth_order = np.lexsort((ignored, truth_group))
        dense = _Dense(
            matched, params, area, order, truth_order, position, np.array(detection_ids), np.array(truth_ids)
        )
        ignore_flags = ignored[truth_order].astype(int)
        ids = [truth_ids[row] for row in truth_order.tolist()]
        # Slice each entry out of dense matrices [T, D] and [T, G], which are filled one time per range.
        for number, (start, end), (first, last) in zip(groups.tolist(), bounds, truth_bounds, strict=True):
            k, i = divmod(number, I)
            results[(k * A + area) * I + i] = {
                "image_id": params.imgIds[i],
                "category_id": categories[k],
                "aRng": area_range,
                "maxDet": cap,
                "dtIds": detection_ids[start:end],
                "gtIds": ids[first:last],
                "dtMatches": dense.matches[:, start:end].copy(),
                "gtMatches": dense.truth_matches[:, first:last].copy(),
                "dtScores": scores[start:end],
                "gtIgnore": ignore_flags[first:last].copy() if first < last else np.array([]),
                "dtIgnore": dense.ignored[:, start:end].copy(),
            }
    return results


class _Dense:
    """Matches of one area range as matrices: detections in ``order``, ground truths in ``truth_order``."""

    def __init__(
        self,
        matched: Matched,
        params: Any,
        area: int,
        order: NDArray[Any],
        truth_order: NDArray[Any],
        position: NDArray[Any],
        detection_ids: NDArray[Any],
        truth_ids: NDArray[Any],
    ) -> None:
        # Use one table for all images; each image takes its columns later.
        matches = matched.matches
        T = len(params.iouThrs)
        self.matches = np.zeros((T, len(order)))
        self.truth_matches = np.zeros((T, len(truth_order)))
        self.ignored = np.zeros((T, len(order)), dtype=bool)
        # Positions of pairs in both orders, once for all thresholds.
        truth_position = inverse_order(truth_order)[matches.pair_truth]
        truth_ignored = matched.ignored_truths(area)[matches.pair_truth]
        for t in range(T):
            pairs = matches.pairs_matched(t, area)
            self.matches[t, position[pairs]] = truth_ids[matches.pair_truth[pairs]]
            self.ignored[t, position[pairs]] = truth_ignored[pairs]
            # A crowd takes several detections and keeps the id of the last: pairs ascend by detection.
            self.truth_matches[t, truth_position[pairs]] = detection_ids[position[pairs]]
        # As in pycocotools, an unmatched detection outside of the area range is ignored.
        outside = ~matches.inside(area)[order]
        self.ignored |= (self.matches == 0) & outside


def _bounds(sorted_groups: NDArray[Any], groups: NDArray[Any]) -> list[tuple[int, int]]:
    starts = np.searchsorted(sorted_groups, groups, side="left").tolist()
    return list(zip(starts, np.searchsorted(sorted_groups, groups, side="right").tolist(), strict=True))
