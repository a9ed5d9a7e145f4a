"""What counts inside or outside of regions: places, matches, files of regions, and what is refused."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, InputError, Masks, evaluate, load_ground_truth
from boxscore.cli import COMMANDS, load_command
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreWarning
from boxscore.regions import restrict
from oracles.pycoco import assert_equal_to_pycocotools
from support.quiet import quiet
from support.running import Run
from support.samples import DT, GT

Point = tuple[float, float]
LEFT = [[[0, 0], [100, 100]]]
"""The left half of an image of 200 x 100."""


# ---------------------------------------------------------------- the oracle


def side_of(point: Point, ring: list[Point]) -> str:
    """Whether a point is "in", "on" or "out" of a ring, in exact arithmetic, along a ray upwards."""
    x, y = map(Fraction, point)
    odd = False
    for (ax, ay), (bx, by) in zip(ring, [*ring[1:], ring[0]], strict=True):
        x1, y1, x2, y2 = map(Fraction, (ax, ay, bx, by))
        is_on_line = (x2 - x1) * (y - y1) == (y2 - y1) * (x - x1)
        if is_on_line and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return "on"
        if (x1 <= x) != (x2 <= x) and y1 + (x - x1) * (y2 - y1) / (x2 - x1) < y:
            odd = not odd
    return "in" if odd else "out"


def lies_in(point: Point, rings: list[list[Point]]) -> bool:
    outline, *holes = (side_of(point, ring) for ring in rings)
    return outline != "out" and "in" not in holes


def place_counts(point: Point, inside: list[Any] | None, outside: list[Any]) -> bool:
    in_regions = inside is None or any(lies_in(point, rings) for rings in inside)
    return in_regions and not any(lies_in(point, rings) for rings in outside)


def run_pycocotools(truth: dict[str, Any], results: list[dict[str, Any]], counts: Any) -> COCOeval:
    """Evaluate with pycocotools, where ``counts`` says of an image and a box whether its center counts.

    Objects whose center does not count are ignored. Other detections have an area outside of every range, so
    that they are ignored where they match nothing.
    """

    class Regional(COCOeval):  # type: ignore[misc]
        def _prepare(self) -> None:
            super()._prepare()
            for objects in self._gts.values():
                for one in objects:
                    one["ignore"] = one["ignore"] or not counts(one["image_id"], one["bbox"])
            for found in self._dts.values():
                for one in found:
                    one["area"] = one["area"] if counts(one["image_id"], one["bbox"]) else -1

    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = copy.deepcopy(truth)
        reference.createIndex()
        run = Regional(reference, reference.loadRes(copy.deepcopy(results)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


# ---------------------------------------------------------------- points in regions


def star(rng: np.random.Generator, center: Point, least: int, most: int, count: int) -> list[Point]:
    """A polygon of whole numbers that does not cross itself, around a center."""
    angles = np.sort(rng.choice(24, count, replace=False)) * np.pi / 12
    radii = rng.integers(least, most + 1, count)
    return [
        (float(round(center[0] + r * np.cos(a))), float(round(center[1] + r * np.sin(a))))
        for a, r in zip(angles, radii, strict=True)
    ]


@given(seed=st.integers(0, 10**9))
def test_points_are_in_polygons_with_holes_as_in_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rings = [star(rng, (20, 20), 8, 18, int(rng.integers(5, 14)))]
    if rng.random() < 0.5:
        rings.append(star(rng, (20, 20), 2, 6, int(rng.integers(4, 9))))
    # Whole and half numbers lie on edges and corners often.
    points = [(x / 2, y / 2) for x, y in rng.integers(0, 80, (60, 2)).tolist()]
    points += [point for ring in rings for point in ring]
    feature = {"type": "Polygon", "coordinates": [[*ring, ring[0]] for ring in rings]}
    expected = [lies_in(point, rings) for point in points]
    with contextlib.suppress(_CrossingError):  # rounding may move points so that edges cross
        assert counting(points, inside=feature) == expected
        assert counting(points, outside=feature) == [not value for value in expected]


class _CrossingError(Exception):
    """A polygon that is not one."""


def counting(points: list[Point], **regions: Any) -> list[bool]:
    """Which points count, each in its own image: a detection there that matches nothing is an error."""
    boxes = [[x, y, x, y] for x, y in points]
    names = list(range(len(points)))
    images = Images.build(names, sizes=[[40, 40]] * len(names))
    truth = GroundTruth.from_arrays(names, ["a"] * len(points), boxes, images=images, categories=["a", "b"])
    found = Detections.from_arrays(
        names, ["b"] * len(points), boxes, [0.5] * len(points), images=images, categories=truth.categories
    )
    with quiet():
        try:
            truth, protocol = restrict(truth, **regions)
        except InputError as error:
            raise _CrossingError if "cross itself" in str(error) else error from None
        frame = evaluate(truth, found, protocol=protocol, digest=False).matches
    return (frame["outcome"] == "false positive").tolist()


# ---------------------------------------------------------------- matching


def scene(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, list[Any]]]:
    """Objects and detections in four images, many of them across edges of regions; and regions by image."""
    rng = np.random.default_rng(seed)
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 200, "height": 100} for i in range(1, 5)]
    objects, results = [], []
    for number in range(60):
        corner, side = rng.integers(0, [180, 80]), rng.integers(6, 60, 2)
        bbox = [*map(float, corner), *map(float, side)]
        image, category = int(rng.integers(1, 5)), int(rng.integers(1, 3))
        objects.append(
            {
                "id": number + 1,
                "image_id": image,
                "category_id": category,
                "bbox": bbox,
                "area": bbox[2] * bbox[3],
                "iscrowd": int(rng.random() < 0.05),
            }
        )
        for _ in range(int(rng.integers(0, 4))):
            moved = (np.array(bbox) + rng.integers(-4, 5, 4)).clip(0.5)
            results.append(
                {
                    "image_id": image,
                    "category_id": category if rng.random() < 0.9 else 3 - category,
                    "bbox": moved.tolist(),
                    "score": float(rng.integers(1, 50) / 50),
                }
            )
    truth = {
        "images": images,
        "annotations": objects,
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
    }
    regions = {
        "1.jpg": [[[0, 0], [100, 0], [60, 100], [0, 80]], [[120, 20], [180, 90]]],
        "3.jpg": [[[20, 10], [150, 70]]],
        "*": [[[30, 0], [130, 0], [130, 100], [30, 100]]],
    }
    return truth, results, regions


@pytest.mark.parametrize("sides", ["inside", "outside", "both"])
@given(seed=st.integers(0, 10**9))
def test_all_numbers_equal_pycocotools_with_ignored_objects(
    seed: int, sides: str, tmp_path_factory: Any
) -> None:
    truth, results, regions = scene(seed)
    holes = [[[70, 30], [95, 60]]]
    given_regions: dict[str, Any] = {"inside": regions, "outside": holes}
    if sides != "both":
        given_regions = {sides: regions}
    rings = {
        side: {
            image: [[*map(tuple, box_or_ring(points))] for points in listed]
            for image, listed in by_image.items()
        }
        for side, by_image in (
            (side, value if isinstance(value, dict) else {"*": value})
            for side, value in given_regions.items()
        )
    }

    def counts(image: int, bbox: list[float]) -> bool:
        center = (bbox[0] + bbox[2] / 2, bbox[1] + bbox[3] / 2)
        of_side = {
            side: by_image.get(f"{image}.jpg", by_image.get("*", [])) for side, by_image in rings.items()
        }
        inside = [[ring] for ring in of_side["inside"]] if "inside" in of_side else None
        return place_counts(center, inside, [[ring] for ring in of_side.get("outside", [])])

    reference = run_pycocotools(truth, results, counts)
    folder = tmp_path_factory.mktemp("scene")
    for name, value in (("gt.json", truth), ("dt.json", results)):
        (folder / name).write_text(json.dumps(value))
    with quiet():
        table = load_ground_truth(folder / "gt.json")
        restricted, protocol = restrict(table, **given_regions)
        result = evaluate(restricted, folder / "dt.json", protocol=protocol)
    assert_equal_to_pycocotools(result, reference)
    assert "|within:center|" in result.signature
    assert result.signature.startswith("boxscore|coco+|")


def box_or_ring(points: list[list[float]]) -> list[list[float]]:
    if len(points) > 2:
        return points
    (x1, y1), (x2, y2) = points
    return [[x1, y1], [x2, y1], [x2, y2], [x1, y2]]


def small(*boxes: tuple[float, float, float, float], width: int = 200) -> GroundTruth:
    images = Images.build([1], file_names=["cam.jpg"], sizes=[[width, 100]])
    return GroundTruth.from_arrays([1] * len(boxes), ["car"] * len(boxes), list(boxes), images=images)


def outcomes(truth: GroundTruth, boxes: list[Any], **regions: Any) -> tuple[list[str], Evaluation]:
    found = Detections.from_arrays(
        [1] * len(boxes), ["car"] * len(boxes), boxes, np.linspace(0.9, 0.5, len(boxes))
    )
    with quiet():
        restricted, protocol = restrict(truth, **regions)
        result = evaluate(restricted, found, protocol=protocol)
    return result.matches["outcome"].tolist(), result


@pytest.mark.parametrize(
    ("truth", "found", "expected"),
    [
        (
            (80, 40, 118, 60),
            (85, 40, 120, 60),
            "true positive",
        ),  # its center is outside, that of the object inside
        ((85, 40, 120, 60), (80, 40, 118, 60), "ignored"),  # the other way around
        ((150, 10, 170, 30), (150, 10, 170, 30), "ignored"),
        ((150, 10, 170, 30), (180, 50, 199, 70), "ignored"),  # matches nothing outside
        ((150, 10, 170, 30), (10, 50, 30, 70), "false positive"),  # matches nothing inside
        ((90, 10, 110, 30), (90, 10, 110, 30), "true positive"),  # on the edge
    ],
)
def test_a_match_counts_where_its_object_is(truth: Any, found: Any, expected: str) -> None:
    got, result = outcomes(small((10, 10, 30, 30), truth), [(10, 10, 30, 30), found], inside=LEFT)
    assert got == ["true positive", expected]
    assert result.counts["ground_truths"] == (2 if expected == "true positive" else 1)


def test_each_object_and_error_counts_inside_or_outside_and_never_twice() -> None:
    truth, results, regions = scene(7)
    truth["annotations"] = [one for one in truth["annotations"] if not one["iscrowd"]]
    total = {"inside": 0, "outside": 0}
    table = GroundTruth.from_arrays(
        [one["image_id"] for one in truth["annotations"]],
        [one["category_id"] for one in truth["annotations"]],
        [one["bbox"] for one in truth["annotations"]],
        box_format="xywh",
        images=Images.build(
            range(1, 5), file_names=[f"{i}.jpg" for i in range(1, 5)], sizes=[[200, 100]] * 4
        ),
    )
    found = Detections.from_arrays(
        [one["image_id"] for one in results],
        [one["category_id"] for one in results],
        [one["bbox"] for one in results],
        [one["score"] for one in results],
        box_format="xywh",
    )
    for side in total:
        with quiet():
            restricted, protocol = restrict(table, **{side: regions})  # type: ignore[arg-type]
            result = evaluate(restricted, found, protocol=protocol)
        total[side] = result.counts["ground_truths"]
    assert total["inside"] + total["outside"] == len(table)
    assert min(total.values()) > 5


def test_images_that_are_added_later_have_the_regions_of_every_image(tmp_path: Path, run: Run) -> None:
    truth, results, _ = scene(3)
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    rows = [{**one, "bbox": [10, 10, 5, 5]} for one in results[:1]]
    far = [
        {**one, "image_id": 9, "bbox": [x, 10, 5, 5], "score": 0.9} for x in (20, 150) for one in results[:1]
    ]
    (tmp_path / "dt.json").write_text(json.dumps(rows + far))
    (tmp_path / "all.json").write_text(json.dumps(LEFT))
    (tmp_path / "own.json").write_text(json.dumps({"1.jpg": LEFT}))
    (tmp_path / "part.json").write_text(json.dumps([[[0, 0], [0.5, 1]]]))
    paths = (tmp_path / "gt.json", tmp_path / "dt.json")
    how = ("--unlisted-images", "background", "--output", "json")
    for name, errors in (("all", 2), ("own", 0)):
        printed = run("images", *paths, "--inside", tmp_path / f"{name}.json", *how[:2], "--output", "csv")
        line = next(line for line in printed.out.splitlines() if line.startswith("9,"))
        assert f",{errors - 1 if errors else 0}," in line
    text = run.error("evaluate", *paths, "--inside", tmp_path / "part.json", *how)
    assert "--unlisted-images drop" in text


# ---------------------------------------------------------------- files

TRIANGLE = [[0, 0], [100, 0], [0, 100]]


def labelme(folder: Path, name: str, label: str = "road") -> Path:
    shape = {"label": label, "points": TRIANGLE, "shape_type": "polygon", "flags": {}}
    value = {"shapes": [shape], "imagePath": "frame.jpg", "imageWidth": 200, "imageHeight": 100, "flags": {}}
    (folder / name).write_text(json.dumps(value))
    return folder / name


def coco(
    folder: Path, segmentation: Any, *, size: tuple[int, int] = (200, 100), name: str = "cam.jpg"
) -> Path:
    image = {"id": 1, "file_name": name, "width": size[0], "height": size[1]}
    one = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 100, 100], "area": 5000, "iscrowd": 0}
    path = folder / "regions.json"
    annotation = {**one, "segmentation": segmentation} if segmentation else one
    path.write_text(
        json.dumps(
            {"images": [image], "annotations": [annotation], "categories": [{"id": 1, "name": "road"}]}
        )
    )
    return path


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def png(folder: Path) -> Path:
    from PIL import Image

    pixels = np.zeros((100, 200), dtype=np.uint8)
    for y in range(100):
        pixels[y, : 100 - y] = 255
    Image.fromarray(pixels).save(folder / "mask.png")
    return folder / "mask.png"


def triangle_mask() -> dict[str, Any]:
    pixels = np.array([[x + y < 100 for x in range(200)] for y in range(100)])
    counts: Any = Masks([pixels]).codes()[0]["counts"]
    return {"size": [100, 200], "counts": counts.decode()}


GEOJSON = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": "road"},
            "geometry": {"type": "MultiPolygon", "coordinates": [[[*TRIANGLE, TRIANGLE[0]]]]},
        }
    ],
}
TRIANGLES: dict[str, Callable[[Path], Any]] = {
    "one": lambda folder: written(folder, "r.json", TRIANGLE),
    "list": lambda folder: written(folder, "r.json", [TRIANGLE]),
    "every": lambda folder: written(folder, "r.json", {"*": [TRIANGLE]}),
    "zones": lambda folder: written(folder, "r.json", {"polygons": [TRIANGLE]}),
    "named": lambda folder: written(folder, "r.json", {"cam.jpg": TRIANGLE}),
    "stem": lambda folder: written(folder, "r.json", {"cam": [TRIANGLE]}),
    "id": lambda folder: written(folder, "r.json", {"1": [TRIANGLE]}),
    "fractions": lambda folder: written(folder, "r.json", [[[0, 0], [0.5, 0], [0, 1]]]),
    "geojson": lambda folder: written(folder, "r.geojson", GEOJSON),
    "labelme": lambda folder: labelme(folder, "frame.json"),
    "chosen": lambda folder: f"{labelme(folder, 'frame.json')}:road",
    "polygon": lambda folder: coco(folder, [[0, 0, 100, 0, 0, 100]]),
    "rle": lambda folder: coco(folder, triangle_mask()),
    "png": png,
    "values": lambda folder: TRIANGLE,
    "arrays": lambda folder: [np.array(TRIANGLE)],
}


@pytest.mark.parametrize("form", TRIANGLES)
def test_every_form_of_one_triangle(form: str, tmp_path: Path) -> None:
    # Centers in the triangle, beyond its long edge, and beyond its corner.
    boxes = [(10, 10, 20, 20), (40, 40, 50, 50), (70, 60, 80, 70), (120, 5, 130, 15)]
    got, _ = outcomes(small((10, 10, 20, 20)), boxes, inside=TRIANGLES[form](tmp_path))
    assert got == ["true positive", "false positive", "ignored", "ignored"]


@pytest.mark.parametrize(
    "lines",
    [
        "x1,y1,x2,y2\n0,0,100,100\n",
        "left,top,width,height\n0,0,100,100\n",
        "image,xmin,ymin,xmax,ymax,label\ncam.jpg,0,0,100,100,road\n",
        "image,cx,cy,w,h\n*,50,50,100,100\n",
        "xmin,ymin,xmax,ymax\n0,0,0.5,1\n",
    ],
)
def test_boxes_in_tables(lines: str, tmp_path: Path) -> None:
    boxes = [(10, 10, 20, 20), (90, 80, 100, 90), (98, 80, 108, 90)]
    got, _ = outcomes(small((10, 10, 20, 20)), boxes, inside=written(tmp_path, "boxes.csv", lines))
    assert got == ["true positive", "false positive", "ignored"]


def test_regions_of_a_class_of_the_ground_truth_itself(tmp_path: Path, run: Run) -> None:
    images = [{"id": 1, "file_name": "a.jpg", "width": 200, "height": 100}]
    rows = [(1, [10, 10, 20, 20]), (2, [100, 0, 100, 100]), (1, [150, 10, 20, 20])]
    objects = [
        {"id": i, "image_id": 1, "category_id": c, "bbox": b, "area": b[2] * b[3], "iscrowd": 0}
        for i, (c, b) in enumerate(rows, 1)
    ]
    classes = [{"id": 1, "name": "car"}, {"id": 2, "name": "ignored regions"}]
    gt = written(tmp_path, "gt.json", {"images": images, "annotations": objects, "categories": classes})
    found = [
        {"image_id": 1, "category_id": 1, "bbox": b, "score": 0.9}
        for b in ([10, 10, 20, 20], [120, 50, 9, 9])
    ]
    dt = written(tmp_path, "dt.json", found)
    value = run("evaluate", gt, dt, "--outside", f"{gt}:ignored regions", "--output", "json", "--no-digest")
    assert json.loads(value.out)["metrics"]["AP"] == pytest.approx(1)
    text = run.error("evaluate", gt, dt, "--outside", gt)
    assert f"{gt}:car" in text
    assert "ignored regions" in text
    assert "did you mean" in run.error("evaluate", gt, dt, "--outside", f"{gt}:ignored region")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([[[0, 0], [50, 50], [50, 0], [0, 50]]], "not cross itself"),
        ([[[0, 0], [50, 0], [50, 50], [0, 50]] * 2], "not cross itself"),
        ([[[0, 0], [50, 50], [20, 20]]], "have an area"),
        ([[[5, 5], [5, 50]]], "have an area"),
        ([[[5, 5], [5, 5], [5, 5]]], "have an area"),
        ([[[0, 0], [float("nan"), 5], [5, 5]]], "finite"),
        ([[[0, 0], [float("inf"), 5], [5, 5]]], "finite"),
        ([0, 0, 50, 50], "be a list of points"),
        ([[0, 0, 50, 50, 0, 50]], "area"),
        ([[[0, "a"], [5, 5]]], "list of points"),
        ([[[0, 0], [1, None]]], "finite"),
        ({"gone.jpg": LEFT}, "in the ground truth"),
        ({"cam.jpg": LEFT, "1": LEFT}, "one name"),
        ([[[0, 0], [1.2, 1]]], "in pixels, or fractions up to 1"),
        ([[[-122.4, 37.7], [-122.3, 37.8]]], "overlap its image"),
        ([[[500, 0], [600, 50]]], "overlap its image"),
        ([[[120, 0], [180, 50]]], "at least one object"),
        ([], "list of points"),
        ({}, "list of points"),
        ("nothing", "JSON"),
        ({"type": "FeatureCollection", "features": []}, "at least one region"),
        ({"type": "Point", "coordinates": [1, 2]}, "Polygon"),
        ({"type": "Polygon", "coordinates": [1, 2]}, "list"),
        ({"type": "FeatureCollection", "features": [3, None, {"geometry": 7}]}, "Polygon"),
    ],
)
def test_refused_regions(content: Any, words: str, tmp_path: Path) -> None:
    with quiet(), pytest.raises(InputError) as caught:
        restrict(small((10, 10, 20, 20)), inside=written(tmp_path, "r.json", content))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("image,x,y,w,h\n*,0,0,5,5\n", "form of boxes"),
        ("image,x1,y1,x2,y2\n*,0,0,5\n", "5 values"),
        ("image,x1,y1,x2,y2\n*,0,0,5,b\n", "four numbers"),
        ("image,x1,y1,x2,y2\n*,9,0,5,5\n", "sides above 0"),
        ("image,x1,y1,x2,y2\n*,5,0,5,5\n", "sides above 0"),
        ("image,x1,y1,x2,y2\n*,nan,0,5,5\n", "finite"),
        ("image,x1,y1,x2,y2\n", "at least one region"),
        ("name,value\na,3\n", "box"),
        ("", "box"),
    ],
)
def test_refused_tables(lines: str, words: str, tmp_path: Path) -> None:
    with quiet(), pytest.raises(InputError) as caught:
        restrict(small((10, 10, 20, 20)), outside=written(tmp_path, "r.csv", lines))
    assert words in str(caught.value)


def test_advice_for_a_file_of_regions_is_a_command_with_the_option(tmp_path: Path) -> None:
    """Options of the ground truth read another file: those of regions have none of their own."""
    unclear = tmp_path / "boxes"
    unclear.mkdir()
    (unclear / "a.txt").write_text("x 5 5 20 20\nx 1 1 30 30\n")
    with pytest.raises(
        InputError, match=r"use boxscore convert --gt \S*boxes --to coco .* --gt-box-format xy"
    ):
        restrict(small((10, 10, 20, 20)), inside=unclear)
    shape = {"label": "r", "points": [[0, 0], [90, 0], [90, 300], [0, 300]], "shape_type": "polygon"}
    size = {"imageHeight": 100, "imageWidth": 400}
    turned = written(tmp_path, "r.json", {"version": "5", "shapes": [shape], "imagePath": "x.jpg", **size})
    advice = r"Use boxscore convert --gt \S*r.json .* --gt-box-format"
    with pytest.warns(BoxscoreWarning, match=advice), contextlib.suppress(InputError):
        restrict(small((10, 10, 20, 20)), inside=turned)


def test_a_region_drawn_on_an_image_of_another_size(tmp_path: Path) -> None:
    with quiet(), pytest.raises(InputError, match=r"200 x 100.*400 x 200.*fractions"):
        restrict(small((10, 10, 20, 20)), inside=coco(tmp_path, None, size=(400, 200)))
    unknown = GroundTruth.from_arrays([1], ["car"], [[10, 10, 20, 20]])
    with quiet(), pytest.raises(InputError, match="--image-sizes"):
        restrict(unknown, inside=[[[0, 0], [0.5, 1]]])
    with pytest.raises(InputError, match="neither"):
        restrict(unknown)


def test_a_protocol_without_regions_of_the_images() -> None:
    protocol = boxscore.load_protocol({"extends": "coco", "ignore": {"within": "center"}})
    truth = small((10, 10, 20, 20))
    found = Detections.from_arrays([1], ["car"], [[10, 10, 20, 20]], [0.5])
    with pytest.raises(InputError, match="--inside"):
        evaluate(truth, found, protocol=protocol)


# ---------------------------------------------------------------- commands


def test_notes_say_what_does_not_count(tmp_path: Path, run: Run) -> None:
    truth, results, _ = scene(5)
    gt, dt = written(tmp_path, "gt.json", truth), written(tmp_path, "dt.json", results)
    inside = written(tmp_path, "inside.json", {"1.jpg": LEFT, "2.jpg": LEFT})
    hole = written(tmp_path, "hole.json", [[[0, 0], [0.25, 1]]])
    printed = run("evaluate", gt, dt, "--inside", inside, "--outside", hole)
    there = [
        one["image_id"] < 3
        and one["bbox"][0] + one["bbox"][2] / 2 <= 100 >= one["bbox"][1] + one["bbox"][3] / 2
        for one in truth["annotations"]
    ]
    assert (
        f"2 regions for 2 of 4 images. {there.count(False)} of 60 objects have their center outside"
        in printed.err
    )
    assert "Nothing counts in the 2 images without a region." in printed.err
    assert "in fractions of the image size" in printed.err
    assert "more of 60 objects" in printed.err
    assert f"of {len(results)} detections have their center where nothing counts" in printed.err
    assert "within:center" in printed.out


REFUSING = (
    "agreement",
    "compare-protocols",
    "diff",
    "explain",
    "iou",
    "panoptic",
    "semantic",
    "suite",
    "tiles",
)
NEEDED = {"panoptic": ("--gt-folder", "a", "--dt-folder", "b")}


@pytest.mark.parametrize("command", [*REFUSING, "validate"])
def test_commands_without_regions_say_why(command: str, run: Run) -> None:
    files = (GT,) if command == "suite" else (GT, DT, *NEEDED.get(command, ()))
    for option in ("--inside", "--outside"):
        assert f"{command} does not take {option}: it" in run.error(command, *files, option, "a.json")


def test_the_page_names_all_commands_without_regions() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "regions.md").read_text(encoding="utf-8")
    line = next(line for line in page.splitlines() if "do not take regions" in line)
    commands = {name: load_command(name) for name in COMMANDS}
    without = {name for name, command in commands.items() if "--inside" in command.without}
    assert re.findall("`(.+?)`", line) == sorted(without)
    # Every other command that reads both sides and has a protocol takes them.
    options = {name: {option.name for option in command.options} for name, command in commands.items()}
    taking = {name for name, names in options.items() if "inside" in names}
    scoring = {name for name, names in options.items() if {"ground-truth", "detections", "protocol"} <= names}
    assert not taking & without
    assert scoring <= taking | without


def test_images_without_a_region_are_the_cause_if_nothing_counts(tmp_path: Path, run: Run) -> None:
    boxes = [(10, 10, 20, 20), (10, 10, 20, 20)]
    table = GroundTruth.from_arrays(
        [1, 2],
        ["car"] * 2,
        np.array(boxes, dtype=float),
        images=Images.build([1, 2, 3], file_names=["1.jpg", "2.jpg", "3.jpg"], sizes=[[200, 100]] * 3),
    )
    away = [[[150, 50], [200, 100]]]
    for regions, words in (
        (
            {"1.jpg": away},
            r"none, since 2 of 3 images have no region, and the 1 object in the others has the center",
        ),
        (
            {"3.jpg": away, "1.jpg": away},
            "none, since 1 of 3 images has no region, and the 1 object in the others",
        ),
        (
            {"3.jpg": away},
            r'none, since 2 of 3 images have no region in .*; the image "\*" stands for every image',
        ),
        (
            {"*": away},
            "none, since the centers of all 2 objects are outside in .*; are the regions in the pixels",
        ),
    ):
        with quiet(), pytest.raises(InputError, match=words):
            restrict(table, inside=written(tmp_path, "r.json", regions))


def test_an_unknown_image_is_answered_with_a_few_names(tmp_path: Path) -> None:
    names = [f"{number}.jpg" for number in range(30)]
    images = Images.build(list(range(30)), file_names=names, sizes=[[200, 100]] * 30)
    table = GroundTruth.from_arrays([0], ["car"], np.array([[10.0, 10, 20, 20]]), images=images)
    for name, words in (
        ("street", r'; known: 0.jpg, 1.jpg, 2.jpg, 3.jpg, 4.jpg, ...; "\*" is every image\.$'),
        ("29x.jpg", r"; did you mean '29.jpg'\?$"),
    ):
        with quiet(), pytest.raises(InputError, match=words):
            restrict(table, inside=written(tmp_path, "r.json", {name: [[[0, 0], [50, 50]]]}))


@pytest.mark.parametrize("options", [("--verify",), ("--shard", "1/2")])
def test_options_that_do_not_fit(options: tuple[str, ...], tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "r.json", [[[0, 0], [100, 100]]])
    assert "must" in run.error("evaluate", GT, DT, "--inside", path, *options)


@pytest.mark.parametrize(
    "command", ["confusion", "errors", "images", "calibration", "compare", "bootstrap", "slices"]
)
def test_every_diagnostic_has_the_regions_in_its_signature(command: str, tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "r.json", [[[0, 0], [100, 100]]])
    files = (GT, DT, DT) if command == "compare" else (GT, DT)
    printed = run(command, *files, "--inside", path)
    assert "within:center" in printed.out
    assert "objects have their center outside and do not count." in printed.err


def test_python_says_nothing_of_regions_that_fit() -> None:
    """Warnings are errors here."""
    truth, protocol = restrict(
        small((10, 10, 20, 20), (150, 10, 170, 30)), outside=LEFT, inside=[[[0, 0], [200, 100]]]
    )
    assert protocol.name == "coco+"
    assert evaluate(truth, small_found(), protocol=protocol).counts["ground_truths"] == 1


def small_found() -> Detections:
    return Detections.from_arrays([1], ["car"], [[150, 10, 170, 30]], [0.9])
