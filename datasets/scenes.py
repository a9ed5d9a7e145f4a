"""The scenes of the samples: which shapes stand where, and what an imaginary detector makes of them.

Conventions
-----------
- A box is continuous: ``x1, y1, x2, y2`` with ``w = x2 - x1``.
- Special scenes (pairs, exact numbers, crowds, floods) are written out; the ordinary ones are drawn by lot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import drawing
import numpy as np
from drawing import Draws, Mask, Point

Box = tuple[float, float, float, float]

CONFUSED = {
    "circle": "square",
    "square": "triangle",
    "triangle": "star",
    "star": "cross",
    "hexagon": "circle",
}
"""What the imaginary detector takes a shape for when it is wrong; a hexagon it always takes for a circle."""


@dataclass
class Shape:
    """One object of an image; a crowd has a mask of many dots and no outline."""

    name: str
    points: list[Point]
    mask: Mask
    box: Box
    crowd: bool = False
    difficult: bool = False
    truncated: bool = False


@dataclass
class Detection:
    """One detection; ``box`` is continuous."""

    name: str
    box: Box
    score: float


@dataclass
class Scene:
    """One image with its objects and detections."""

    width: int
    height: int
    theme: int
    shapes: list[Shape] = field(default_factory=list)
    detections: list[Detection] = field(default_factory=list)

    def taken(self) -> Mask:
        """Return the pixels that carry an object [height, width]."""
        taken = np.zeros((self.height, self.width), dtype=bool)
        for shape in self.shapes:
            taken |= shape.mask
        return taken

    def add(
        self, name: str, center: Point, radius: float, *, angle: float = 0.0, difficult: bool = False
    ) -> Shape | None:
        """Add a shape; None, and nothing added, when it would touch another one."""
        whole = drawing.outline(name, center, radius, angle=angle)
        points = drawing.clipped(whole, self.width, self.height)
        mask = drawing.filled(points, self.width, self.height)
        if not mask.any() or (drawing.grown(mask, 2) & self.taken()).any():
            return None
        box = drawing.extent(points)
        shape = Shape(name, points, mask, box, difficult=difficult, truncated=whole != points)
        self.shapes.append(shape)
        return shape

    def scatter(self, name: str, radius: float, draws: Draws, *, difficult: bool = False) -> Shape | None:
        """Add a shape where there is room, wholly inside the image; None when there is none."""
        edge = math.ceil(radius) + 2
        for _ in range(60):
            center = (draws.whole(edge, self.width - edge), draws.whole(edge, self.height - edge))
            angle = 0.0 if name == "square" else 5.0 * draws.whole(0, 23)
            shape = self.add(name, center, radius, angle=angle, difficult=difficult)
            if shape is not None:
                return shape
        return None

    def crowd(self, name: str, area: Box, count: int, draws: Draws) -> Shape:
        """Add a crowd: many small shapes inside an area, one object with one mask."""
        mask = np.zeros((self.height, self.width), dtype=bool)
        for _ in range(40 * count):
            center = (draws.whole(int(area[0]), int(area[2])), draws.whole(int(area[1]), int(area[3])))
            points = drawing.outline(name, center, draws.whole(5, 8), angle=5.0 * draws.whole(0, 23))
            dot = drawing.filled(drawing.clipped(points, self.width, self.height), self.width, self.height)
            if not (drawing.grown(dot, 1) & (mask | self.taken())).any():
                mask |= dot
                count -= 1
            if not count:
                break
        rows, columns = np.nonzero(mask)
        box = (int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
        shape = Shape(name, [], mask, box, crowd=True)
        self.shapes.append(shape)
        return shape

    def find(self, name: str, box: Sequence[float], score: float) -> None:
        """Add a detection."""
        x1, y1, x2, y2 = (float(value) for value in box)
        self.detections.append(Detection(name, (x1, y1, x2, y2), score))

    def file(self, draws: Draws) -> bytes:
        """Return the image as a PNG file."""
        canvas = drawing.texture(self.width, self.height, draws)
        for shape in self.shapes:
            drawing.paint(canvas, shape.mask, shape.name, faint=shape.difficult)
        return drawing.png(canvas, drawing.palette(self.theme))


def moved(box: Box, overlap: float, way: str) -> Box:
    """Return a box of a chosen intersection over union with another: moved, grown or shrunk."""
    x1, y1, x2, y2 = box
    step = (1 - overlap) / (1 + overlap)
    if way in ("left", "right"):
        by = (x2 - x1) * step * (1 if way == "right" else -1)
        return x1 + by, y1, x2 + by, y2
    if way in ("up", "down"):
        by = (y2 - y1) * step * (1 if way == "down" else -1)
        return x1, y1 + by, x2, y2 + by
    factor = math.sqrt(overlap) if way == "shrunk" else math.sqrt(1 / overlap)
    wide, high = (x2 - x1) * (factor - 1) / 2, (y2 - y1) * (factor - 1) / 2
    return x1 - wide, y1 - high, x2 + wide, y2 + high


WAYS = ("left", "right", "up", "down", "shrunk", "grown")


def detect(scene: Scene, draws: Draws, *, background: Sequence[str]) -> None:
    """Let the imaginary detector look at a scene: hits, near misses, duplicates, confusions, inventions."""
    for shape in scene.shapes:
        if shape.crowd:
            continue
        fate = draws.between(0, 1)
        way = draws.choice(WAYS)
        if shape.name == "hexagon":
            if fate < 0.6:
                box = moved(shape.box, draws.between(0.6, 0.95), way)
                scene.find(CONFUSED[shape.name], box, rounded(draws.between(0.3, 0.75)))
        elif fate < 0.7:
            overlap = draws.between(0.55, 1.0)
            score = rounded(min(0.99, draws.between(0.25, 0.5) + 0.5 * overlap))
            scene.find(shape.name, moved(shape.box, overlap, way), score)
            if draws.chance(0.2):
                again = moved(shape.box, draws.between(0.55, 0.85), draws.choice(WAYS))
                scene.find(shape.name, again, rounded(score * draws.between(0.6, 1.0)))
        elif fate < 0.82:
            box = moved(shape.box, draws.between(0.15, 0.48), way)
            scene.find(shape.name, box, rounded(draws.between(0.2, 0.8)))
        elif fate < 0.92:
            score = rounded(draws.between(0.3, 0.8))
            scene.find(CONFUSED[shape.name], moved(shape.box, draws.between(0.6, 0.95), way), score)
    for _ in range(draws.whole(0, 2)):
        invent(scene, draws, draws.choice(background), draws.between(0.05, 0.6))


def invent(scene: Scene, draws: Draws, name: str, score: float) -> None:
    """Add a detection of nothing; it may reach a little over the edge of the image."""
    width, height = draws.between(12, scene.width / 3), draws.between(12, scene.height / 3)
    x, y = draws.between(-4, scene.width - width + 4), draws.between(-4, scene.height - height + 4)
    scene.find(name, (x, y, x + width, y + height), rounded(score))


def rounded(score: float) -> float:
    """Round a score to two decimals, so that scores meet."""
    return round(score, 2)


def random_shapes(size: tuple[int, int], draws: Draws) -> list[tuple[str, float]]:
    """Return names and radii for an ordinary scene: large ones first, while there is room."""
    weighted = ("circle",) * 5 + ("square",) * 4 + ("triangle",) * 4 + ("star",) * 3 + ("hexagon",) * 2
    wanted: list[tuple[str, float]] = []
    if size[0] >= 320:
        wanted += [(draws.choice(weighted), float(draws.whole(60, 92))) for _ in range(draws.whole(0, 2))]
    medium = draws.whole(1, 3) if size[0] >= 240 else draws.whole(1, 2)
    wanted += [(draws.choice(weighted), float(draws.whole(20, 36))) for _ in range(medium)]
    wanted += [(draws.choice(weighted), float(draws.whole(8, 15))) for _ in range(draws.whole(1, 4))]
    return wanted


def ordinary(size: tuple[int, int], theme: int, draws: Draws, *, background: Sequence[str]) -> Scene:
    """Return a scene with shapes at random positions, detected."""
    scene = Scene(*size, theme)
    for name, radius in random_shapes(size, draws):
        scene.scatter(name, radius, draws)
    detect(scene, draws, background=background)
    return scene


def pairs_scene(theme: int) -> Scene:
    """Return the scene of interlocked triangles, with detections between two objects.

    Above, a box exactly half way overlaps both alike (28 / 52); a second box on the left one follows. Below,
    the left one is taken first, and a second box prefers it a little although the right one is free.
    """
    scene = Scene(240, 180, theme)
    for top in (30, 110):
        for left, tip_up in ((60, True), (84, False)):
            corners = [(left + 20, top), (left + 40, top + 36), (left, top + 36)]
            if not tip_up:
                corners = [(left, top), (left + 40, top), (left + 20, top + 36)]
            points = [(float(x), float(y)) for x, y in corners]
            mask = drawing.filled(points, scene.width, scene.height)
            scene.shapes.append(Shape("triangle", points, mask, drawing.extent(points)))
    scene.find("triangle", (72, 30, 112, 66), 0.93)
    scene.find("triangle", (60, 30, 100, 66), 0.84)
    scene.find("triangle", (60, 110, 100, 146), 0.97)
    scene.find("triangle", (71, 110, 111, 146), 0.88)
    return scene


def exact_scene(theme: int) -> Scene:
    """Return the scene of exact numbers: areas 32^2 and 96^2, overlaps 1 and 1/2."""
    scene = Scene(320, 240, theme)
    scene.add("square", (40, 40), 16)
    scene.add("square", (150, 120), 48)
    scene.add("square", (260, 180), 15)
    scene.find("square", (24, 24, 56, 56), 0.91)
    scene.find("square", (102, 72, 198, 168), 0.96)
    scene.find("square", (255, 165, 285, 195), 0.78)
    return scene


def dense_scene(theme: int, draws: Draws, *, flood: int) -> Scene:
    """Return the scene of 15 small circles, all but two detected, and a flood of weak detections.

    One of the two turns up early in the flood, the other one as its last, below any usual cap.
    """
    scene = Scene(240, 180, theme)
    for row in range(3):
        for column in range(5):
            x, y = 34 + 43 * column + draws.whole(-6, 6), 34 + 54 * row + draws.whole(-8, 8)
            scene.add("circle", (x, y), 11)
    *seen, early, late = (shape.box for shape in scene.shapes)
    for index, box in enumerate(seen):
        near = moved(box, draws.between(0.6, 0.98), draws.choice(WAYS))
        scene.find("circle", near, rounded(0.95 - 0.04 * index))
    for index in range(flood):
        score = round(0.05 * (1 - index / flood), 4)
        if index in (flood // 4, flood - 1):
            scene.find("circle", moved(early if index < flood - 1 else late, 0.8, "left"), score)
        else:
            left, top = draws.between(0, 215), draws.between(0, 155)
            scene.find("circle", (left, top, left + 20, top + 20), score)
    return scene


def edge_scene(theme: int, draws: Draws, *, background: Sequence[str]) -> Scene:
    """Return a scene whose objects are cut off by the edge of the image."""
    scene = Scene(240, 180, theme)
    scene.add("circle", (6, 60), 34)
    scene.add("square", (222, 150), 36)
    scene.add("circle", (150, 4), 22)
    scene.scatter("star", 24, draws)
    detect(scene, draws, background=background)
    return scene


def coco_scenes(draws: Draws) -> list[Scene]:
    """Return the 24 scenes of ``shapes_coco``."""
    background = ("circle", "square", "triangle", "star", "cross")
    sizes = ((160, 120), (240, 180), (320, 240))
    scenes = []
    for index in range(14):
        size = sizes[(0, 2, 1, 2, 2)[index % 5]]
        scenes.append(ordinary(size, index % 4, draws, background=background))
    scenes += [pairs_scene(2), exact_scene(1), dense_scene(0, draws, flood=120)]
    scenes.append(edge_scene(3, draws, background=background))

    nothing_there = Scene(160, 120, 1)
    nothing_there.find("circle", (20.5, 31.25, 63.75, 74), 0.66)
    nothing_there.find("star", (88, 40, 121, 77.5), 0.41)
    nothing_there.find("cross", (40, 80, 66, 104), 0.33)
    scenes += [nothing_there, Scene(160, 120, 2)]

    for name, theme, area in (
        ("circle", 3, (150, 120, 295, 215)),
        ("star", 0, (30, 30, 150, 110)),
        ("circle", 1, (20, 120, 130, 210)),
    ):
        scene = Scene(320, 240, theme)
        scene.crowd(name, area, 26, draws)
        for _ in range(2):
            scene.scatter(name, draws.whole(16, 30), draws)
        scene.scatter("triangle", draws.whole(20, 40), draws)
        detect(scene, draws, background=background)
        crowd = scene.shapes[0].box
        scene.find(name, moved(crowd, 0.8, "shrunk"), 0.74)
        for index in range(4):
            x, y = draws.between(crowd[0], crowd[2] - 18), draws.between(crowd[1], crowd[3] - 18)
            scene.find(name, (x, y, x + 17, y + 18), rounded(0.9 - 0.13 * index))
        barely = (crowd[0] - 12, crowd[1], crowd[0] + 10, crowd[1] + 24)  # less than half of it inside
        scene.find(name, barely, 0.52)
        scenes.append(scene)

    two_crowds = Scene(320, 240, 2)
    two_crowds.crowd("circle", (20, 25, 130, 100), 20, draws)
    two_crowds.crowd("star", (190, 130, 295, 210), 16, draws)
    two_crowds.scatter("square", 26, draws)
    detect(two_crowds, draws, background=background)
    for shape in two_crowds.shapes[:2]:
        two_crowds.find(shape.name, moved(shape.box, 0.9, "left"), 0.68)
        two_crowds.find(CONFUSED[shape.name], moved(shape.box, 0.6, "shrunk"), 0.35)
    scenes.append(two_crowds)
    return draws.shuffled(scenes)


def voc_scenes(draws: Draws) -> tuple[list[Scene], list[Scene]]:
    """Return the scenes of ``shapes_voc``: 22 for the test set, 2 for the training set."""
    background = ("circle", "square", "triangle", "star")
    sizes = ((160, 120), (240, 180), (320, 240))
    scenes = []
    for index in range(16):
        size = sizes[(1, 0, 2, 0)[index % 4]]
        scene = ordinary(size, index % 4, draws, background=background)
        for name in draws.shuffled(["circle", "square", "triangle", "star"])[: draws.whole(0, 2)]:
            hard = scene.scatter(name, draws.whole(9, 18), draws, difficult=True)
            if hard is not None and draws.chance(0.6):
                for _ in range(draws.whole(1, 2)):
                    box = moved(hard.box, draws.between(0.55, 0.95), draws.choice(WAYS))
                    scene.find(name, box, rounded(draws.between(0.2, 0.7)))
        scenes.append(scene)

    hard_only = Scene(240, 180, 0)
    for radius, score in ((24, 0.81), (15, 0.57), (18, None)):
        cross = hard_only.scatter("cross", radius, draws, difficult=True)
        if cross is not None and score:
            hard_only.find("cross", moved(cross.box, 0.75, "left"), score)
    triangle = hard_only.scatter("triangle", 30, draws, difficult=True)
    if triangle is not None:
        hard_only.find("triangle", moved(triangle.box, 0.9, "grown"), 0.99)
        hard_only.find("triangle", moved(triangle.box, 0.7, "up"), 0.98)
    hard_only.find("cross", (10, 10, 50, 44), 0.3)

    nothing_there = Scene(160, 120, 3)
    nothing_there.find("circle", (30, 22.5, 70, 60), 0.62)
    nothing_there.find("square", (90.25, 50, 130, 92), 0.44)
    scenes += [hard_only, nothing_there, Scene(160, 120, 1)]
    scenes += [pairs_scene(2), exact_scene(1), edge_scene(3, draws, background=background)]
    training = [Scene(160, 120, 0), Scene(160, 120, 2)]
    for scene in training:
        scene.scatter("circle", 24, draws)
        scene.scatter("star", 20, draws)
    return draws.shuffled(scenes), training
