"""Compare AP on tiles with AP on whole images, and count the reasons for the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boxscore._utils.records import NamedTuple
from boxscore._utils.text import Columns, counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align, select
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.tiles.cutting import (
    at_inner_border,
    cut_tiles,
    merge_tiles,
    pieces_left,
    pieces_of,
    refuse_shapes,
    shift_tiles,
)
from boxscore.extensions.tiles.merging import Method, Tool
from boxscore.extensions.tiles.names import locate_tiles
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    import pandas as pd


class TileScores(NamedTuple):
    """Results on tiles and on whole images.

    Attributes
    ----------
    evaluations : dict of str to Evaluation
        On tiles; on whole images, shifted only; merged; merged with detections on whole images, if given.
    reasons : dict of str to (int, int)
        Reasons for the differences: a count, and the total.
    merged : Detections
        The merged detections on whole images.
    cut : GroundTruth
        The objects of the tiles.
    """

    evaluations: dict[str, Evaluation]
    reasons: dict[str, tuple[int, int]]
    merged: Detections
    cut: GroundTruth

    def columns(self) -> Columns:
        """Return the table: one row per evaluation."""
        results = list(self.evaluations.values())
        metrics = list(results[0].metrics)
        return {
            "detections on": list(self.evaluations),
            "images": [len(result.images) for result in results],
            "objects": [len(result.ground_truth) for result in results],
            "detections": [len(result.detections) for result in results],
            **{name: [result.metrics[name] for result in results] for name in metrics},
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame, one row per evaluation."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def as_dict(self) -> dict[str, Any]:
        """Return all numbers for JSON."""
        columns = self.columns()
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        reasons = [{"reason": name, "count": n, "of": of} for name, (n, of) in self.reasons.items()]
        return {"results": rows, "reasons": reasons}


TILES, SHIFTED, MERGED, WITH_WHOLE = "tiles", "images, not merged", "images, merged", "images, with whole"
"""Rows of the table."""


def tile_scores(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    tiles: GroundTruth | None = None,
    whole_detections: Detections | None = None,
    protocol: str | Protocol = "coco",
    iou_threshold: float = 0.5,
    method: Method = "nms",
    tool: Tool = "sahi",
    overlap: Literal["iou", "ios"] = "iou",
    class_agnostic: bool = False,
    min_area_ratio: float = 0.1,
    tile_size: tuple[float, float] | None = None,
    classes: Sequence[Id] | None = None,
) -> TileScores:
    """Score detections in tiles on the tiles, and merged on the whole images.

    Parameters
    ----------
    ground_truth : GroundTruth
        Of the whole images.
    detections : Detections
        Their images are the tiles, named as :func:`locate_tiles` reads them.
    tiles : GroundTruth, optional
        Objects of the tiles, if these were cut by another tool; by default, ``ground_truth`` is cut. Without
        any object, it only lists the tiles.
    whole_detections : Detections, optional
        Detections on the whole images, which are appended before merging.
    protocol : str or Protocol, default "coco"
        With more than 100 objects in an image, change its ``max_detections``.
    iou_threshold, method, tool, overlap, class_agnostic
        As in :func:`merge_as`.
    min_area_ratio : float, default 0.1
        As in :func:`cut_tiles`.
    tile_size : (float, float), optional
        As in :func:`locate_tiles`.
    classes : sequence of ids or names, optional
        Evaluate only these.

    Returns
    -------
    TileScores

    Raises
    ------
    InputError
        If the name of a tile does not contain its position, or there are masks or rotated boxes.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays(["a"], ["cat"], [[450, 0, 550, 10]])
    >>> names, boxes = ["a_0_0_500_500", "a_400_0_900_500"], [[450, 0, 500, 10], [50, 0, 150, 10]]
    >>> table = Detections.from_arrays(names, ["cat", "cat"], boxes, [0.8, 0.9])
    >>> scores = tile_scores(truth, table, overlap="ios")
    >>> scores.to_frame()[["detections on", "objects", "detections"]].values.tolist()
    [['tiles', 2, 2], ['images, not merged', 1, 2], ['images, merged', 1, 1]]
    """
    names, are_listed = (detections.images, False) if tiles is None else (tiles.images, True)
    # The classes of the ground truth; the images stay tiles.
    if tiles is None:
        known = ground_truth.categories
        tiles = GroundTruth.from_arrays([], [], np.empty((0, 4)), images=names, categories=known)
    detections = align(detections, tiles)
    located = locate_tiles(names, ground_truth.images, tile_size=tile_size)
    cut = tiles if len(tiles) else cut_tiles(ground_truth, located, names, min_area_ratio=min_area_ratio)
    # Into the images, with the classes of their ground truth.
    shifted = align(shift_tiles(detections, located, ground_truth.images), ground_truth)
    how: dict[str, Any] = {"method": method, "tool": tool, "overlap": overlap}
    how["class_agnostic"] = class_agnostic
    merged = merge_tiles(shifted, iou_threshold, **how)
    tables = {TILES: (cut, detections), SHIFTED: (ground_truth, shifted), MERGED: (ground_truth, merged)}
    if whole_detections is not None:
        refuse_shapes(whole_detections)
        together = _together(shifted, align(whole_detections, ground_truth))
        tables[WITH_WHOLE] = (ground_truth, merge_tiles(together, iou_threshold, **how))
    # Classes are chosen after merging, where others may take part.
    if classes is not None:
        tables = {name: select(truth, table, classes=classes) for name, (truth, table) in tables.items()}
    evaluations = {
        name: evaluate(truth, table, protocol=protocol, digest=False)
        for name, (truth, table) in tables.items()
    }
    # Count what makes the numbers differ.
    (cut, on_tiles), (truth, before) = tables[TILES], tables[SHIFTED]
    after, last = tables[MERGED][1], tables[list(tables)[-1]][1]
    pieces = pieces_of(truth, located, names)
    objects, found = len(truth), np.zeros(len(truth), dtype=np.int64)
    np.add.at(found, pieces.object[pieces.kept(min_area_ratio)], 1)
    unseen = int((found == 0).sum())
    if unseen and not are_listed:
        warn_user(
            f"no tile with detections contains {counted(unseen, 'object')} of {objects}, so AP on tiles does "
            "not count these; list all tiles with --tiles (in Python tiles=)."
        )
    empty_tiles = len(names) - len(np.unique(detections.image))
    border = int(at_inner_border(on_tiles, located, truth.images).sum())
    reasons = {
        "objects that no tile holds as a whole": (int((~pieces.whole).sum()), objects),
        "objects in several tiles, counted in each": (int((found > 1).sum()), objects),
        "objects in no tile, which only images count": (unseen, objects),
        "tiles without detections": (empty_tiles, len(names)),
        "detections that end at a border inside the image": (border, len(on_tiles)),
        "detections that merging removed": (len(before) - len(after), len(before)),
        "pairs left that look like pieces of one object": (pieces_left(last, iou_threshold), len(last)),
    }
    return TileScores(evaluations, reasons, last, cut)


def _together(first: Detections, second: Detections) -> Detections:
    """Append the rows of a table with the same images and classes; other columns are dropped."""
    names = ("image", "category", "boxes", "sizes", "scores")
    joined = {name: np.concatenate([getattr(each, name) for each in (first, second)]) for name in names}
    return first.replaced(**joined, columns={})
