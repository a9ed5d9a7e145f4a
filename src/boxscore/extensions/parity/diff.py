"""Count how two results of one model differ, and name the causes that fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import Columns, short_list
from boxscore.data.tables import Detections
from boxscore.errors import InputError
from boxscore.extensions.parity.pairing import pair_by_overlap, pair_by_score, with_common_ids
from boxscore.extensions.parity.signatures import Cause, Sides, causes

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("same", "moved", "rescored", "moved and rescored", "relabeled", "only in A", "only in B")
QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


class DetectionDiff(NamedTuple):
    """How two results differ.

    Attributes
    ----------
    counts : dict of str to int
        Number of detections by kind; all but ``only in B`` add up to those of A.
    quantiles : dict of str to ndarray of float64, [5]
        Minimum, 5%, median, 95% and maximum of B - A over the pairs of a class: four corners in pixels, the
        score, and the IoU of the pair.
    causes : list of Cause
        Those that fit, the most fundamental first.
    per_class : dict of str to list
        The counts by class of A; what is only in B by that of B.
    pairs : dict of str to list
        One row per pair: image, class, both scores, score difference, largest corner difference, IoU.
    """

    counts: dict[str, int]
    quantiles: dict[str, FloatArray]
    causes: list[Cause]
    per_class: Columns
    pairs: Columns

    @property
    def changed(self) -> int:
        """Number of detections that are not the same, in either result."""
        return sum(self.counts.values()) - self.counts["same"]

    def to_frame(self) -> pd.DataFrame:
        """Return the pairs as a DataFrame, the largest difference first."""
        import pandas as pd

        return pd.DataFrame(self.pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, quantiles and causes for JSON."""
        return {
            "counts": self.counts,
            "quantiles": {
                name: dict(zip(map(str, QUANTILES), values.tolist(), strict=True))
                for name, values in self.quantiles.items()
            },
            "causes": [cause._asdict() for cause in self.causes],
        }


def diff_detections(
    first: Detections, second: Detections, *, box_tolerance: float = 1.0, score_tolerance: float = 0.01
) -> DetectionDiff:
    """Pair the detections of two results of one model, and count what differs.

    Parameters
    ----------
    first, second : Detections
        A and B. Images and classes are matched by their ids. If the images of ``first`` have sizes, these
        help to recognize a letterbox.
    box_tolerance : float, default 1.0
        Largest difference of a corner, in pixels, of a box that counts as the same.
    score_tolerance : float, default 0.01
        Largest difference of its score.

    Returns
    -------
    DetectionDiff

    Raises
    ------
    InputError
        If a result has no scores, boxes are fractions, no image id that is text is in both, or a tolerance is
        negative.

    Examples
    --------
    >>> a = Detections.from_arrays([1, 1], [7, 7], [[0, 0, 10, 10], [50, 0, 60, 10]], [0.9, 0.5])
    >>> b = Detections.from_arrays([1], [7], [[0, 0, 10, 13]], [0.9])
    >>> diff = diff_detections(a, b)
    >>> {kind: count for kind, count in diff.counts.items() if count}
    {'moved': 1, 'only in A': 1}
    """
    pixels = checks.number_between(box_tolerance, 0, np.inf, name="box_tolerance")
    points = checks.number_between(score_tolerance, 0, np.inf, name="score_tolerance")
    for name, table in (("A", first), ("B", second)):
        if not table.scored:
            raise InputError(f"detections of {name}", "have scores", got="none")
        if table.units != "pixels" and len(table):
            raise InputError(
                f"boxes of {name}",
                "be in pixels",
                got="fractions of images of unknown size",
                place=table.source,
                cause="--gt reads them with the image sizes of the ground truth, and "
                "load_detections(path, ground_truth) does",
            )
    first, second = with_common_ids(first, second)
    if len(first) and len(second) and not np.intersect1d(first.image, second.image).size:
        names = [short_list(first.images.ids[np.unique(table.image)].tolist()) for table in (first, second)]
        if first.images.ids.dtype == object:
            raise InputError(
                "images of A and B",
                "have common ids",
                got=f"{names[0]} and {names[1]}",
                cause="--gt matches names and ids of images, and load_detections(path, ground_truth) does",
            )
    same, relabeled = pair_by_overlap(first, second)
    sides = Sides(first, second, same, relabeled, pair_by_score(first, second))
    # Corners and scores of the pairs of a class.
    corners = second.boxes[same.second] - first.boxes[same.first]
    scores = second.scores[same.second] - first.scores[same.first]
    largest = np.abs(corners).max(axis=1, initial=0.0)
    moved, rescored = largest > pixels, np.abs(scores) > points
    kind = np.full(len(first), KINDS.index("only in A"))
    kind[same.first] = moved + 2 * rescored
    kind[relabeled.first] = KINDS.index("relabeled")
    left = sides.left(1)
    counts = np.bincount(kind, minlength=len(KINDS))
    counts[-1] = len(left)
    values = {**dict(zip(("x1", "y1", "x2", "y2"), corners.T, strict=True)), "score": scores, "IoU": same.iou}
    # The table by class, and the pairs with the largest differences first.
    labels = first.categories.labels
    by_class = np.zeros((len(labels), len(KINDS)), dtype=np.int64)
    np.add.at(by_class, (first.category, kind), 1)
    np.add.at(by_class[:, -1], second.category[left], 1)
    order = np.lexsort((-np.abs(scores), -largest))
    names = first.images.names
    pairs: Columns = {
        "image": [names[row] for row in first.image[same.first[order]].tolist()],
        "class": [labels[row] for row in first.category[same.first[order]].tolist()],
        "score A": first.scores[same.first[order]].tolist(),
        "score B": second.scores[same.second[order]].tolist(),
        "score difference": scores[order].tolist(),
        "pixels": largest[order].tolist(),
        "IoU": same.iou[order].tolist(),
    }
    return DetectionDiff(
        dict(zip(KINDS, counts.tolist(), strict=True)),
        {name: np.quantile(column, QUANTILES) for name, column in values.items() if len(column)},
        causes(sides),
        {"class": labels, **{name: by_class[:, n].tolist() for n, name in enumerate(KINDS)}},
        pairs,
    )
