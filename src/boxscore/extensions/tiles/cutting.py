"""Move detections and objects between tiles and whole images.

Conventions
-----------
- An object belongs to a tile if at least a given part of its area is inside; its box is cut there. Areas
  are rounded down to whole pixels before they are divided, as SAHI does; below one pixel they are not.
- Flags (crowd, difficult, ignore), ids and columns of an object go with every piece. SAHI's ``slice_coco``
  turns crowds into ordinary objects.
- Detections keep their order: tile after tile as in the file, then those on whole images.

References
----------
SAHI 0.12, ``slicing.py`` and ``annotation.py``.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import rows_of_groups
from boxscore.data.base import BaseTable
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError
from boxscore.extensions.tiles.merging import Method, Tool, merge_as, overlaps
from boxscore.extensions.tiles.names import Tiles


def shift_tiles(detections: Detections, tiles: Tiles, images: Images) -> Detections:
    """Map detections in tiles back to the whole images.

    Parameters
    ----------
    detections : Detections
        Their images are the tiles.
    tiles : Tiles
        From :func:`locate_tiles`, one per image of the detections.
    images : Images
        The whole images.

    Returns
    -------
    Detections
        The same rows in the same order; duplicates of neighbors stay.

    Raises
    ------
    InputError
        If there are masks, keypoints or rotated boxes.

    Examples
    --------
    >>> from boxscore.extensions.tiles.names import locate_tiles
    >>> whole = Images.build(["a"], sizes=[[900, 500]])
    >>> table = Detections.from_arrays(["a_400_0_900_500"], ["cat"], [[0, 0, 10, 10]], [0.9])
    >>> shift_tiles(table, locate_tiles(table.images, whole), whole).boxes.tolist()
    [[400.0, 0.0, 410.0, 10.0]]
    """
    refuse_shapes(detections)
    tile = detections.image
    scale = tiles.scale[tile][:, None]
    boxes = (detections.boxes + np.tile(tiles.corners[tile], 2)) / scale
    moved = detections.replaced(boxes=boxes, sizes=detections.sizes / scale)
    return dataclasses.replace(moved, images=images, image=tiles.image[tile].astype(np.int32))


def merge_tiles(
    detections: Detections,
    iou_threshold: float = 0.5,
    *,
    method: Method = "nms",
    tool: Tool = "sahi",
    overlap: Literal["iou", "ios"] = "iou",
    class_agnostic: bool = False,
) -> Detections:
    """Merge the detections of each image with :func:`merge_as`, whose parameters these are.

    Returns
    -------
    Detections
        Image by image; the columns of a merged box are those of its best detection.

    Examples
    --------
    >>> table = Detections.from_arrays([1, 1], [7, 7], [[0, 0, 10, 10], [1, 0, 10, 10]], [0.9, 0.8])
    >>> len(merge_tiles(table))
    1
    """
    refuse_shapes(detections)
    rows: list[IntArray] = []
    parts: list[Any] = []
    for group in filter(len, rows_of_groups(detections.image, len(detections.images))):
        merged = merge_as(
            detections.boxes[group],
            detections.scores[group],
            detections.category[group],
            iou_threshold,
            method=method,
            tool=tool,
            overlap=overlap,
            class_agnostic=class_agnostic,
        )
        rows.append(group[merged.indices])
        parts.append(merged)
    if not parts:
        return detections
    boxes, scores = (np.concatenate([getattr(part, name) for part in parts]) for name in ("boxes", "scores"))
    categories = np.concatenate([part.classes for part in parts]).astype(np.int32)
    left = detections.take(np.concatenate(rows))
    sizes = boxes[:, 2:] - boxes[:, :2]
    # A box that nothing joined keeps its size as given, whose last bits differ from x2 - x1.
    same = (left.boxes == boxes).all(axis=1)
    sizes[same] = left.sizes[same]
    changed = left.replaced(boxes=boxes, sizes=sizes, scores=scores)
    return dataclasses.replace(changed, category=categories)


class Pieces:
    """The parts of objects inside tiles.

    Attributes
    ----------
    tile, object : ndarray of int64, [P]
        Rows of the tile and of the object of each piece, tile by tile.
    boxes : ndarray of float64, [P, 4]
        The cut boxes, in pixels of the image.
    part, share : ndarray of float64, [P]
        Part of the box's area inside the tile; ``share`` of areas in whole pixels.
    whole : ndarray of bool, [G]
        Whether one tile contains the whole object.
    """

    def __init__(self, ground_truth: GroundTruth, tiles: Tiles) -> None:
        spans = np.concatenate((tiles.corners, tiles.corners + tiles.sizes), axis=1) / tiles.scale[:, None]
        of_image = rows_of_groups(ground_truth.image, len(ground_truth.images))
        found: list[tuple[IntArray, IntArray]] = []
        for tile, (image, span) in enumerate(zip(tiles.image.tolist(), spans, strict=True)):
            rows = of_image[image]
            boxes = ground_truth.boxes[rows]
            near = (boxes[:, 0] < span[2]) & (boxes[:, 1] < span[3])
            near &= (boxes[:, 2] > span[0]) & (boxes[:, 3] > span[1])
            found.append((np.full(near.sum(), tile), rows[near]))
        self.tile = np.concatenate([tile for tile, _ in found] or [np.empty(0, dtype=np.int64)])
        self.object = np.concatenate([rows for _, rows in found] or [np.empty(0, dtype=np.int64)])
        # Cut the boxes, and compare whole pixels where there are any.
        given, span = ground_truth.boxes[self.object], spans[self.tile]
        self.boxes = np.concatenate(
            (np.maximum(given[:, :2], span[:, :2]), np.minimum(given[:, 2:], span[:, 2:])), axis=1
        )
        inside, area = (np.prod(box[:, 2:] - box[:, :2], axis=1) for box in (self.boxes, given))
        self.part = np.divide(inside, area, out=np.ones_like(area), where=area > 0)
        pixels = area >= 1
        inside, area = (np.where(pixels, np.floor(values), values) for values in (inside, area))
        self.share = np.divide(inside, area, out=np.zeros_like(area), where=area > 0)
        self.whole = np.zeros(len(ground_truth), dtype=bool)
        self.whole[self.object[(self.boxes == given).all(axis=1)]] = True

    def kept(self, least: float) -> BoolArray:
        """Whether each piece has at least this part of its object, [P]."""
        kept: BoolArray = self.share >= least
        return kept


def cut_tiles(
    ground_truth: GroundTruth, tiles: Tiles, tile_images: Images, *, min_area_ratio: float = 0.1
) -> GroundTruth:
    """Cut the objects of whole images at the borders of tiles.

    Parameters
    ----------
    ground_truth : GroundTruth
    tiles : Tiles
    tile_images : Images
        One per tile, in the same order.
    min_area_ratio : float, default 0.1
        Smallest part of an object's area that counts as an object of the tile.

    Returns
    -------
    GroundTruth
        The boxes of the pieces, tile by tile, with new ids; without masks and keypoints.

    Raises
    ------
    InputError
        If a tile has no size, or there are rotated boxes.

    Examples
    --------
    >>> from boxscore.extensions.tiles.names import tiles_of_grid
    >>> whole = Images.build([1], file_names=["a.png"], sizes=[[900, 500]])
    >>> truth = GroundTruth.from_arrays([1], [7], [[450, 0, 550, 10]], images=whole)
    >>> names, tiles = tiles_of_grid(whole, (500, 500), 0)
    >>> cut_tiles(truth, tiles, names).boxes.tolist()
    [[450.0, 0.0, 500.0, 10.0], [50.0, 0.0, 150.0, 10.0]]
    """
    least = checks.number_between(min_area_ratio, 0, 1, name="min_area_ratio")
    pieces = pieces_of(ground_truth, tiles, tile_images)
    kept = pieces.kept(least)
    tile, rows = pieces.tile[kept], pieces.object[kept]
    # Into the pixels of the tile: times its scale, less its corner.
    scale = tiles.scale[tile]
    boxes = pieces.boxes[kept] * scale[:, None] - np.tile(tiles.corners[tile], 2)
    # An annotation's own area, such as that of its mask, is divided as the area of its box.
    area = ground_truth.area[rows] * pieces.part[kept] * scale**2
    flags = {name: getattr(ground_truth, name)[rows] for name in ("crowd", "difficult", "ignore", "group")}
    return GroundTruth.from_arrays(
        tile_images.ids[tile],
        ground_truth.categories.ids[ground_truth.category[rows]],
        boxes,
        area=area,
        images=tile_images,
        categories=ground_truth.categories,
        columns={name: column[rows] for name, column in ground_truth.columns.items()},
        source=f"{ground_truth.source}, cut into tiles",
        **flags,
    )


def pieces_of(ground_truth: GroundTruth, tiles: Tiles, tile_images: Images) -> Pieces:
    """Return the pieces of objects in tiles, after checking that every tile has a size."""
    if ground_truth.rotated is not None or ground_truth.quadrilaterals is not None:
        raise InputError(
            "ground truth to be cut into tiles",
            "have upright boxes",
            got="rotated boxes",
            cause="boxscore nms DT --merge-patches scaled --output FOLDER merges them in the whole images, "
            "which boxscore evaluate scores with --protocol dota or dota-task2",
        )
    without = np.flatnonzero(np.isnan(tiles.sizes).any(axis=1))
    if len(without):
        raise InputError(
            "tiles",
            "have a size",
            got=f"none for {tile_images.names[int(without[0])]!r}",
            cause="--tile-size 512 gives all tiles one",
        )
    return Pieces(ground_truth, tiles)


def at_inner_border(detections: Detections, tiles: Tiles, images: Images) -> BoolArray:
    """Whether each detection in a tile touches a border at which the image goes on, [D]."""
    corner, size = tiles.corners[detections.image], tiles.sizes[detections.image]
    extent = (images.sizes[tiles.image] * tiles.scale[:, None])[detections.image]
    boxes = detections.boxes
    low = (boxes[:, :2] <= 0) & (corner > 0)
    high = (boxes[:, 2:] >= size) & ~(corner + size >= extent)
    return np.asarray((low | high).any(axis=1))


def pieces_left(detections: Detections, threshold: float = 0.5) -> int:
    """Count the pairs of one class and image that look like two pieces: IoS reaches it, IoU does not."""
    pairs, classes = 0, len(detections.categories)
    for rows in rows_of_groups(detections.image, len(detections.images)):
        for group in rows_of_groups(detections.category[rows], classes) if len(rows) else ():
            pairs += _nested_pairs(detections.boxes[rows[group]], threshold)
    return pairs


def _nested_pairs(boxes: FloatArray, threshold: float) -> int:
    count = 0
    for row in range(len(boxes) - 1):
        ios, iou = (overlaps(boxes[row], boxes[row + 1 :], kind) for kind in ("ios", "iou"))
        count += int(((ios >= threshold) & (iou < threshold) & (ios > 0)).sum())
    return count


def refuse_shapes(table: BaseTable) -> None:
    """Raise if a table has more than upright boxes."""
    for name in ("masks", "keypoints", "rotated", "quadrilaterals"):
        if getattr(table, name) is not None:
            raise InputError(
                "detections in tiles",
                "be upright boxes",
                got=name,
                cause="boxscore nms --merge-patches maps rotated boxes back to their images"
                if name in ("rotated", "quadrilaterals")
                else "",
            )
