"""Figures of the pages on IoU and AP: each number in them is computed by boxscore."""

from __future__ import annotations

from typing import Any

import numpy as np

GREEN, RED, BOTH, INK = "#0a8f3c", "#d81b1b", "#b9a441", "#20262e"


def _panel(ax: Any, width: float, height: float, title: str) -> None:
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xticks=[], yticks=[])
    ax.set_title(title, fontsize=11, color=INK, pad=10)
    ax.spines[:].set_visible(False)


def _box(
    ax: Any, box: Any, color: str, *, dashed: bool = False, fill: str = "none", alpha: float = 1.0
) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box
    line = (0, (5, 2)) if dashed else "-"
    corner, sides = (x1, y1), (x2 - x1, y2 - y1)
    if fill != "none":
        ax.add_patch(Rectangle(corner, *sides, facecolor=fill, edgecolor="none", alpha=alpha))
    ax.add_patch(Rectangle(corner, *sides, facecolor="none", edgecolor=color, linestyle=line, linewidth=2))


def geometry(_: object) -> object:
    """Draw two squares, what both cover and what either covers."""
    from matplotlib import pyplot as plt

    first, second, shared = (0, 0, 10, 10), (5, 5, 15, 15), (5, 5, 10, 10)
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.5), layout="constrained")
    titles = ("two boxes", "intersection: 5 x 5 = 25", "union: 100 + 100 - 25 = 175")
    for ax, title in zip(panels, titles, strict=True):
        _panel(ax, 17, 17, title)
        ax.set(xlim=(-2, 17), ylim=(17, -2))
        if title.startswith("inter"):
            _box(ax, shared, "none", fill=BOTH)
        if title.startswith("union"):
            _box(ax, first, "none", fill=BOTH)
            _box(ax, second, "none", fill=BOTH)
        _box(ax, first, GREEN)
        _box(ax, second, RED, dashed=True)
    for box, at, color in ((first, (0, -0.3), GREEN), (second, (15, 15.3), RED)):
        x, y = at
        ends = "bottom" if color == GREEN else "top"
        side = "left" if color == GREEN else "right"
        panels[0].text(x, y, ", ".join(map(str, box)), color=color, ha=side, va=ends, fontsize=10)
    return figure


def conventions(_: object) -> object:
    """Draw one row of pixels under the conventions for its two ends."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 2.1), layout="constrained")
    for ax, end, title in (
        (panels[0], 6, "continuous: from 2 to 6, width 6 - 2 = 4"),
        (panels[1], 7, "inclusive: pixels 2 to 6, width 6 - 2 + 1 = 5"),
    ):
        _panel(ax, 9, 3, title)
        for x in range(10):
            ax.plot([x, x], [1, 2], color="#c3cad3", linewidth=0.8)
        ax.plot([0, 9, 9, 0, 0], [1, 1, 2, 2, 1], color="#c3cad3", linewidth=0.8)
        _box(ax, (2, 1, end, 2), GREEN, fill=GREEN, alpha=0.25)
        shift = 0.0 if end == 6 else 0.5
        for x in range(10 if end == 6 else 9):
            weight = "bold" if x in (2, 6) else "normal"
            ax.text(x + shift, 2.55, str(x), ha="center", va="center", fontsize=10, fontweight=weight)
    return figure


def values(_: object) -> object:
    """Draw pairs of boxes whose IoU is .25, .5, .75 and .9, moved along the diagonal."""
    from matplotlib import pyplot as plt

    import boxscore

    figure, panels = plt.subplots(1, 4, figsize=(10, 3), layout="constrained")
    for ax, iou in zip(panels, (0.25, 0.5, 0.75, 0.9), strict=True):
        move = 100 * (1 - np.sqrt(2 * iou / (1 + iou)))
        boxes = np.array([[10, 10, 110, 110], [10 + move, 10 + move, 110 + move, 110 + move]])
        got = boxscore.box_iou(boxes[:1], boxes[1:])[0, 0]
        _panel(ax, 175, 175, f"IoU {got:.2f}")
        _box(ax, boxes[0], GREEN)
        _box(ax, boxes[1], RED, dashed=True)
        ax.text(10, 165, f"{move:.0f}% of a side, both ways", fontsize=9, color=INK, va="bottom")
    return figure


def small(_: object) -> object:
    """Draw the IoU of square boxes that are a few pixels off, by their side."""
    from matplotlib import pyplot as plt

    import boxscore

    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    sides = np.arange(6, 129, dtype=float)
    for pixels, line, color in ((1, "-", "#0072B2"), (2, "--", "#D55E00"), (4, ":", "#009E73")):
        boxes = np.stack([np.zeros_like(sides), np.zeros_like(sides), sides, sides], axis=1)
        iou = boxscore.box_iou(boxes, boxes + pixels, paired=True)
        ax.plot(sides, iou, line, color=color, label=f"{pixels} px right and {pixels} px down")
    for level in (0.5, 0.75):
        ax.axhline(level, color="#8a929e", linewidth=0.8)
    ax.axvline(32, color="#8a929e", linewidth=0.8, linestyle=":")
    ax.text(33, 0.04, "32: small objects of COCO end", fontsize=9, color=INK)
    ax.set(xlabel="side of the box in pixels", ylabel="IoU", ylim=(0, 1), xlim=(6, 128))
    ax.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 0.12))
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def apart(_: object) -> object:
    """Draw IoU, GIoU, DIoU and CIoU of a box that moves away."""
    from matplotlib import pyplot as plt

    import boxscore

    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    moves = np.linspace(0, 30, 241)
    still = np.tile([0.0, 0.0, 10.0, 10.0], (len(moves), 1))
    moving = np.stack([moves, np.zeros_like(moves), moves + 15, np.full_like(moves, 5)], axis=1)
    for name, function, line, color in (
        ("IoU", boxscore.box_iou, "-", INK),
        ("GIoU", boxscore.generalized_box_iou, "--", "#0072B2"),
        ("DIoU", boxscore.distance_box_iou, ":", "#009E73"),
        ("CIoU", boxscore.complete_box_iou, "-.", "#D55E00"),
    ):
        ax.plot(moves, function(still, moving, paired=True), line, color=color, label=name)
    ax.axhline(0, color="#8a929e", linewidth=0.8)
    ax.axvline(10, color="#8a929e", linewidth=0.8, linestyle=":")
    ax.text(10.3, 0.2, "from here on the boxes share nothing", fontsize=9, color=INK)
    ax.set(xlabel="pixels that a box of 15 x 5 is right of one of 10 x 10", xlim=(0, 30))
    ax.legend(frameon=False, fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def average_precision(_: object) -> object:
    """Draw precision and recall of the six detections of the page on AP, and their envelope."""
    from matplotlib import pyplot as plt

    import boxscore

    truth = boxscore.GroundTruth.from_arrays(
        ["a", "a", "b", "b"],
        ["car"] * 4,
        [[0, 0, 10, 10], [20, 0, 40, 10], [0, 0, 10, 20], [30, 30, 50, 50]],
    )
    boxes = [[0, 0, 10, 8], [2, 0, 12, 10], [20, 0, 36, 10]]  # of photograph a
    boxes += [[0, 0, 10, 18], [60, 0, 70, 10], [34, 30, 54, 50]]
    found = boxscore.Detections.from_arrays(
        ["a", "a", "a", "b", "b", "b"], ["car"] * 6, boxes, [0.95, 0.9, 0.8, 0.7, 0.6, 0.5]
    )
    curves = boxscore.evaluate(truth, found, digest=False).curves()
    curves = curves[curves["iou"] == 0.5]
    figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
    ax.fill_between(curves["recall"], curves["precision"], step="pre", color=GREEN, alpha=0.18)
    ax.step(curves["recall"], curves["precision"], where="pre", color=GREEN, label="envelope, at 101 recalls")
    right = np.cumsum([1, 0, 1, 1, 0, 1])
    ax.plot(right / 4, right / np.arange(1, 7), "o--", color=RED, label="after each detection", markersize=5)
    ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.08))
    ax.legend(frameon=False, fontsize=9, loc="lower left")
    ax.spines[["top", "right"]].set_visible(False)
    return figure
