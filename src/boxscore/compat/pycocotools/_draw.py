"""Draw polygons, masks, skeletons and boxes on the current axes of matplotlib, for ``COCO.showAnns``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from boxscore.compat.pycocotools import mask as maskUtils

Record = dict[str, Any]

CROWD_COLOR = np.array([2.0, 166.0, 101.0]) / 255


def draw_annotations(
    anns: list[Record],
    images: Mapping[Any, Record],
    load_categories: Callable[[Any], Any],
    *,
    draw_bbox: bool,
) -> None:
    """Draw each annotation in a random light color, taken from NumPy's global generator."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Polygon

    # Collect shapes and draw them together, which is much faster than one by one.
    axes = plt.gca()
    axes.set_autoscale_on(False)
    outlines: list[Polygon] = []
    colors: list[Any] = []
    for ann in anns:
        # Call the generator one time per annotation, like pycocotools, to keep its later numbers.
        color = (np.random.random((1, 3)) * 0.6 + 0.4).tolist()[0]
        corners = []
        if "segmentation" in ann:
            if type(ann["segmentation"]) is list:
                corners += [np.array(part).reshape(-1, 2) for part in ann["segmentation"]]
            else:
                _draw_mask(axes, ann, images)
        # Skeletons and boxes on top.
        if "keypoints" in ann and type(ann["keypoints"]) is list:
            _draw_skeleton(plt, ann, load_categories(ann["category_id"])[0], color)
        if draw_bbox:
            x, y, w, h = ann["bbox"]
            corners.append(np.array([[x, y], [x, y + h], [x + w, y + h], [x + w, y]]))
        outlines += [Polygon(points) for points in corners]
        colors += [color] * len(corners)
    # Fill first, then edges on top.
    axes.add_collection(PatchCollection(outlines, facecolor=colors, linewidths=0, alpha=0.4))
    axes.add_collection(PatchCollection(outlines, facecolor="none", edgecolors=colors, linewidths=2))


def _draw_mask(axes: Any, ann: Record, images: Mapping[Any, Record]) -> None:
    segmentation = ann["segmentation"]
    if type(segmentation["counts"]) is list:
        image = images[ann["image_id"]]
        segmentation = maskUtils.frPyObjects([segmentation], image["height"], image["width"])[0]
    pixels = maskUtils.decode([segmentation])[:, :, 0]
    color = CROWD_COLOR if ann["iscrowd"] == 1 else np.random.random((1, 3))[0]
    axes.imshow(np.dstack([np.broadcast_to(color, (*pixels.shape, 3)), pixels * 0.5]))


def _draw_skeleton(plt: Any, ann: Record, category: Record, color: Any) -> None:
    # Keypoints count from 1 in files.
    bones = np.array(category["skeleton"]) - 1
    points = np.array(ann["keypoints"])
    x, y, visibility = points[0::3], points[1::3], points[2::3]
    for bone in bones:
        if np.all(visibility[bone] > 0):
            plt.plot(x[bone], y[bone], linewidth=3, color=color)
    # Labeled points get a black edge, visible ones their color above it.
    for least, edge in ((0, "k"), (1, color)):
        seen = visibility > least
        plt.plot(
            x[seen],
            y[seen],
            "o",
            markersize=8,
            markerfacecolor=color,
            markeredgecolor=edge,
            markeredgewidth=2,
        )
