"""The bundled samples: made again to the byte, well-formed, holding every case that their README lists."""

from __future__ import annotations

import importlib
import itertools
import json
import math
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as mask_tools

pytestmark = pytest.mark.long

DATASETS = Path(__file__).parents[1] / "datasets"
SAMPLES = ("shapes_coco", "shapes_voc", "iou_tutorial")
COCO, VOC, TUTORIAL = (DATASETS / sample for sample in SAMPLES)

Box = tuple[float, float, float, float]
Row = dict[str, Any]


@cache
def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def run(script: str, output: Path) -> None:
    command = [sys.executable, "-B", str(DATASETS / script), "--output", str(output)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def overlap(first: Box, second: Box, offset: int = 0) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0]) + offset
    height = min(first[3], second[3]) - max(first[1], second[1]) + offset
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0] + offset) * (box[3] - box[1] + offset) for box in (first, second)]
    return width * height / (sum(areas) - width * height)


def corners(bbox: list[float]) -> Box:
    x, y, width, height = bbox
    return x, y, x + width, y + height


# ---------------------------------------------------------------- the scripts


def test_make_samples_gives_the_committed_bytes(tmp_path: Path) -> None:
    run("make_samples.py", tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    committed = {
        path.relative_to(DATASETS): path.read_bytes()
        for sample in SAMPLES
        for path in (DATASETS / sample).rglob("*")
        if path.is_file() and path.name != "expected.json"
    }
    assert sorted(made) == sorted(committed)
    assert [name for name in made if made[name] != committed[name]] == []


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """Flatten nested JSON to place and leaf."""
    if not isinstance(value, (dict, list)):
        return {place: value}
    children = value.items() if isinstance(value, dict) else enumerate(value)
    return {key: leaf for name, child in children for key, leaf in leaves(child, f"{place}/{name}").items()}


def test_make_expected_gives_the_committed_values(tmp_path: Path) -> None:
    run("make_expected.py", tmp_path)
    for sample in SAMPLES:
        made = leaves(json.loads((tmp_path / sample / "expected.json").read_text()))
        committed = leaves(read_json(DATASETS / sample / "expected.json"))
        assert list(made) == list(committed)
        for place, value in committed.items():
            approximate = pytest.approx(value, rel=1e-12) if isinstance(value, float) else value
            assert made[place] == approximate, f"{sample}{place}"


def test_samples_are_small() -> None:
    files = [path for sample in SAMPLES for path in (DATASETS / sample).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_000_000


def test_readme_states_the_expected_values() -> None:
    readme = (DATASETS / "README.md").read_text(encoding="utf-8")
    coco, voc = read_json(COCO / "expected.json")["coco"], read_json(VOC / "expected.json")["voc"]
    for name in ("AP", "AP50", "AP75", "AR100"):
        assert f"{name} {coco['metrics'][name]:.4f}" in readme
    for value in voc["metrics"].values():
        assert f"{value:.4f}" in readme
    counts = coco["counts"]
    objects = f"{counts['objects']}, of which {counts['crowds']} crowds"
    assert f"| {counts['images']} | {objects} | {counts['detections']} |" in readme
    counts = voc["counts"]
    objects = f"{counts['objects']}, of which {counts['difficult']} difficult"
    assert f"| {counts['images']} (and 2 in `train`) | {objects} | {counts['detections']} |" in readme


# ---------------------------------------------------------------- images


def png_pixels(path: Path) -> tuple[np.ndarray[Any, Any], int]:
    """Return the palette entries [height, width] of a PNG of the samples, and the length of its palette."""
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    position = 8
    while position < len(content):
        (length,) = struct.unpack(">I", content[position : position + 4])
        kind, data = content[position + 4 : position + 8], content[position + 8 : position + 8 + length]
        (check,) = struct.unpack(">I", content[position + 8 + length : position + 12 + length])
        assert check == zlib.crc32(kind + data)
        chunks[kind] = data
        position += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, color_type = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, color_type) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:], len(chunks[b"PLTE"]) // 3


def test_coco_images_are_png_files_of_the_stated_size() -> None:
    images = read_json(COCO / "instances.json")["images"]
    assert {image["file_name"] for image in images} == {path.name for path in (COCO / "images").iterdir()}
    assert len(images) == 24
    for image in images:
        pixels, colors = png_pixels(COCO / "images" / image["file_name"])
        assert pixels.shape == (image["height"], image["width"])
        assert pixels.max() < colors
        assert len(np.unique(pixels)) > 3  # the background has a texture


def test_voc_images_are_png_files_of_the_stated_size() -> None:
    annotations = sorted((VOC / "VOC2007" / "Annotations").iterdir())
    assert len(annotations) == 24
    for annotation in annotations:
        root = ElementTree.parse(annotation).getroot()
        pixels, colors = png_pixels(VOC / "VOC2007" / "JPEGImages" / root.findtext("filename", ""))
        assert pixels.shape == (int(root.findtext("size/height", "")), int(root.findtext("size/width", "")))
        assert pixels.max() < colors


# ---------------------------------------------------------------- shapes_coco


@cache
def coco_images() -> dict[int, Row]:
    return {image["id"]: image for image in read_json(COCO / "instances.json")["images"]}


@cache
def coco_names() -> dict[int, str]:
    return {row["id"]: row["name"] for row in read_json(COCO / "instances.json")["categories"]}


def coco_annotations() -> list[Row]:
    return list(read_json(COCO / "instances.json")["annotations"])


def coco_detections() -> list[Row]:
    return list(read_json(COCO / "detections.json"))


def by_image_and_class(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row["image_id"], row["category_id"]].append(row)
    return groups


def best_overlaps(*, same_class: bool) -> list[float]:
    """Return each detection's best overlap with a single object of its image, of its class or of others."""
    return [
        max(
            (
                overlap(corners(found["bbox"]), corners(truth["bbox"]))
                for truth in coco_annotations()
                if truth["image_id"] == found["image_id"]
                and not truth["iscrowd"]
                and (truth["category_id"] == found["category_id"]) == same_class
            ),
            default=0.0,
        )
        for found in coco_detections()
    ]


def test_coco_files_refer_to_what_exists() -> None:
    truth = read_json(COCO / "instances.json")
    assert {"info", "licenses", "images", "annotations", "categories"} == set(truth)
    assert all({"id", "name", "supercategory"} == set(category) for category in truth["categories"])
    keys = {"id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation"}
    annotations, detections = coco_annotations(), coco_detections()
    assert all(set(row) == keys for row in annotations)
    assert all(set(row) == {"image_id", "category_id", "bbox", "score"} for row in detections)
    assert len({row["id"] for row in annotations}) == len(annotations)
    for row in itertools.chain(annotations, detections):
        assert row["image_id"] in coco_images()
        assert row["category_id"] in coco_names()
        assert all(math.isfinite(value) for value in row["bbox"])
        assert min(row["bbox"][2:]) > 0
    assert all(0 < row["score"] <= 1 for row in detections)


def test_coco_ids_have_gaps_and_files_have_their_own_order() -> None:
    for identifiers in (sorted(coco_images()), sorted(coco_names())):
        assert identifiers[-1] - identifiers[0] >= len(identifiers)
    assert list(coco_images()) != sorted(coco_images())
    order = [row["image_id"] for row in coco_annotations()]
    assert order != sorted(order)
    for rows in by_image_and_class(coco_detections()).values():
        scores = [row["score"] for row in rows]
        if scores != sorted(scores, reverse=True):
            break
    else:
        pytest.fail("every image's detections are sorted by score")


def test_coco_areas_are_those_of_the_masks() -> None:
    for row in coco_annotations():
        image = coco_images()[row["image_id"]]
        height, width = image["height"], image["width"]
        encoded = mask_tools.frPyObjects(row["segmentation"], height, width)
        if row["iscrowd"]:
            counts = row["segmentation"]["counts"]
            assert row["segmentation"]["size"] == [height, width]
            assert sum(counts) == height * width
            assert row["area"] == sum(counts[1::2])
            assert mask_tools.toBbox(encoded).tolist() == row["bbox"]
        else:
            rim = 2 * (row["bbox"][2] + row["bbox"][3])
            area = float(mask_tools.area(mask_tools.merge(encoded)))
            assert abs(area - row["area"]) < 0.35 * rim  # the two fill the rim a little differently
            flat = row["segmentation"][0]
            box = (min(flat[::2]), min(flat[1::2]), max(flat[::2]), max(flat[1::2]))
            assert box == pytest.approx(corners(row["bbox"]), abs=0.011)


def test_coco_has_small_medium_and_large_objects_and_areas_on_the_edges() -> None:
    objects = [row for row in coco_annotations() if not row["iscrowd"]]
    areas = [row["area"] for row in objects]
    assert sum(area < 32**2 for area in areas) >= 20
    assert sum(32**2 < area < 96**2 for area in areas) >= 20
    assert sum(area > 96**2 for area in areas) >= 4
    assert {32.0**2, 96.0**2} <= set(areas)
    large = {coco_names()[row["category_id"]] for row in objects if row["area"] > 96**2}
    assert len(large) >= 3
    # The area of the mask, not of the box, puts an object into its range.
    assert any(row["area"] < 1024 < row["bbox"][2] * row["bbox"][3] for row in objects)


def test_coco_detections_have_every_kind_of_error() -> None:
    own, other = best_overlaps(same_class=True), best_overlaps(same_class=False)
    assert {min(int(value * 20), 19) for value in own if value >= 0.5} == set(range(10, 20))  # hits, all IoUs
    assert 1.0 in own
    assert 0.5 in own  # on the threshold
    assert sum(0.1 < value < 0.5 for value in own) >= 5  # localization
    assert sum(a < 0.1 and b >= 0.5 for a, b in zip(own, other, strict=True)) >= 5  # confusion
    assert sum(max(a, b) < 0.1 for a, b in zip(own, other, strict=True)) >= 5  # background
    groups = by_image_and_class(coco_detections())
    hits = [
        sum(
            overlap(corners(found["bbox"]), corners(truth["bbox"])) >= 0.5
            for found in groups[truth["image_id"], truth["category_id"]]
        )
        for truth in coco_annotations()
        if not truth["iscrowd"]
    ]
    assert sum(count == 0 for count in hits) >= 10  # misses
    assert sum(count > 1 for count in hits) >= 5  # duplicates


def test_coco_scores_tie_inside_and_across_images() -> None:
    detections = coco_detections()
    inside = Counter((row["image_id"], row["category_id"], row["score"]) for row in detections)
    assert max(inside.values()) > 1
    images, kinds = defaultdict(set), defaultdict(set)
    for row, value in zip(detections, best_overlaps(same_class=True), strict=True):
        images[row["category_id"], row["score"]].add(row["image_id"])
        kinds[row["category_id"], row["score"]].add(value >= 0.5)
    assert sum(len(image_ids) > 1 for image_ids in images.values()) >= 10
    assert sum(len(kind) == 2 for kind in kinds.values()) >= 3  # a hit and a mistake at one score


@pytest.fixture
def oracles(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return ``make_expected`` as a module."""
    monkeypatch.syspath_prepend(DATASETS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return importlib.import_module("make_expected")


def test_coco_order_of_ties_matters(oracles: ModuleType, tmp_path: Path) -> None:
    backwards = tmp_path / "detections.json"
    backwards.write_text(json.dumps(coco_detections()[::-1]))
    metrics = oracles.coco_expected(COCO / "instances.json", backwards)["metrics"]
    expected = read_json(COCO / "expected.json")["coco"]["metrics"]
    assert abs(metrics["AP"] - expected["AP"]) > 1e-5


def test_coco_has_a_detection_that_overlaps_two_objects_alike() -> None:
    groups = by_image_and_class(coco_annotations())
    alike = 0
    for found in coco_detections():
        truths = groups.get((found["image_id"], found["category_id"]), [])
        values = [overlap(corners(found["bbox"]), corners(row["bbox"])) for row in truths]
        alike += values.count(max(values, default=0.0)) > 1 and max(values) >= 0.5
    assert alike == 1


def test_coco_has_crowds_with_detections_on_them() -> None:
    annotations = coco_annotations()
    crowds = [row for row in annotations if row["iscrowd"]]
    assert len(crowds) == 5
    assert {coco_names()[row["category_id"]] for row in crowds} == {"circle", "star"}
    inside = []
    for crowd, found in itertools.product(crowds, coco_detections()):
        if (crowd["image_id"], crowd["category_id"]) == (found["image_id"], found["category_id"]):
            a, b = corners(crowd["bbox"]), corners(found["bbox"])
            width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            inside.append(max(width, 0) * max(height, 0) / (found["bbox"][2] * found["bbox"][3]))
    assert sum(share >= 0.5 for share in inside) >= 10
    assert sum(0 < share < 0.5 for share in inside) >= 3
    groups = by_image_and_class(annotations).values()
    assert any({row["iscrowd"] for row in group} == {0, 1} for group in groups)  # beside single objects


def test_coco_has_images_and_classes_with_only_one_side_or_none() -> None:
    annotations, detections = coco_annotations(), coco_detections()
    true_images = {row["image_id"] for row in annotations}
    found_images = {row["image_id"] for row in detections}
    assert len(found_images - true_images) == 1
    assert len(set(coco_images()) - true_images - found_images) == 1
    true_classes = {coco_names()[row["category_id"]] for row in annotations}
    found_classes = {coco_names()[row["category_id"]] for row in detections}
    assert true_classes - found_classes == {"hexagon"}
    assert found_classes - true_classes == {"cross"}
    assert set(coco_names().values()) - true_classes - found_classes == {"moon"}


def test_coco_detection_caps_bite() -> None:
    found, truths = by_image_and_class(coco_detections()), by_image_and_class(coco_annotations())
    (flooded,) = [key for key, rows in found.items() if len(rows) > 100]
    ranked = sorted(found[flooded], key=lambda row: -row["score"])
    hit_ranks = [
        rank
        for rank, row in enumerate(ranked)
        if max(overlap(corners(row["bbox"]), corners(truth["bbox"])) for truth in truths[flooded]) >= 0.5
    ]
    assert any(10 <= rank < 100 for rank in hit_ranks)
    assert hit_ranks[-1] >= 100
    metrics = read_json(COCO / "expected.json")["coco"]["metrics"]
    assert metrics["AR1"] < metrics["AR10"] < metrics["AR100"]


def test_coco_has_objects_at_the_edge_and_detections_beyond() -> None:
    def reach(row: Row) -> float:
        image = coco_images()[row["image_id"]]
        x1, y1, x2, y2 = corners(row["bbox"])
        return max(-x1, -y1, x2 - float(image["width"]), y2 - float(image["height"]))

    assert max(map(reach, coco_annotations())) == 0.0
    assert max(map(reach, coco_detections())) > 0.0


def test_coco_expected_values_are_telling() -> None:
    expected = read_json(COCO / "expected.json")["coco"]
    assert len(set(expected["metrics"].values())) == 12
    assert all(0.1 < value < 0.9 for value in expected["metrics"].values())
    average_precision = {row["class"]: row["AP"] for row in expected["per_class"]}
    assert average_precision["hexagon"] == 0.0
    assert average_precision["cross"] is None
    assert average_precision["moon"] is None


# ---------------------------------------------------------------- shapes_voc


@cache
def voc_roots() -> dict[str, ElementTree.Element]:
    paths = sorted((VOC / "VOC2007" / "Annotations").iterdir())
    return {path.stem: ElementTree.parse(path).getroot() for path in paths}


def image_set(name: str) -> list[str]:
    return (VOC / "VOC2007" / "ImageSets" / "Main" / f"{name}.txt").read_text().splitlines()


def box_of(node: ElementTree.Element) -> Box:
    xmin, ymin, xmax, ymax = (
        float(node.findtext(f"bndbox/{tag}", "")) for tag in ("xmin", "ymin", "xmax", "ymax")
    )
    return xmin, ymin, xmax, ymax


def is_difficult(node: ElementTree.Element) -> bool:
    return node.findtext("difficult", "0") == "1"


def voc_truths(image: str, name: str) -> list[tuple[Box, bool]]:
    """Return box and difficulty of an image's objects of one class."""
    nodes = voc_roots()[image].findall("object")
    return [(box_of(node), is_difficult(node)) for node in nodes if node.findtext("name") == name]


@cache
def voc_results() -> dict[str, list[tuple[str, float, Box]]]:
    """Return the rows of each results file by class."""
    tables = {}
    for path in sorted((VOC / "results").iterdir()):
        rows = []
        for line in path.read_text().splitlines():
            image, score, x1, y1, x2, y2 = line.split(" ")
            rows.append((image, float(score), (float(x1), float(y1), float(x2), float(y2))))
        tables[path.stem.removeprefix("comp4_det_test_")] = rows
    return tables


def test_voc_image_sets() -> None:
    test, train = image_set("test"), image_set("train")
    assert len(test) == 22
    assert set(test).isdisjoint(train)
    assert set(test) | set(train) == set(voc_roots())
    assert all(re.fullmatch(r"0\d{5}", image) for image in test)  # an id is text: leading zeros count
    marks = set()
    for path in (VOC / "VOC2007" / "ImageSets" / "Main").glob("*_test.txt"):
        name = path.stem.removesuffix("_test")
        for line, image in zip(path.read_text().splitlines(), test, strict=True):
            hard = [difficult for _, difficult in voc_truths(image, name)]
            mark = -1 if not hard else 0 if all(hard) else 1
            assert line.split() == [image, str(mark)]
            marks.add(mark)
    assert marks == {-1, 0, 1}


def test_voc_annotations_have_the_oddities_of_the_kit() -> None:
    nodes = [node for image in image_set("test") for node in voc_roots()[image].findall("object")]
    for tag in ("difficult", "truncated", "pose", "occluded"):
        assert {node.find(tag) is None for node in nodes} == {True, False}, tag
    assert sum(map(is_difficult, nodes)) >= 10
    assert sum(node.findtext("truncated") == "1" for node in nodes) >= 2
    assert sum(any(value % 1 for value in box_of(node)) for node in nodes) == 1  # one decimal coordinate
    assert any(node.find("part/bndbox") is not None for node in nodes)
    orders = {tuple(child.tag for child in node.findall("bndbox/*")) for node in nodes}
    assert orders == {("xmin", "ymin", "xmax", "ymax"), ("xmax", "xmin", "ymax", "ymin")}


def test_voc_boxes_are_inclusive_pixels_of_the_image() -> None:
    for root in voc_roots().values():
        width, height = (int(root.findtext(f"size/{side}", "")) for side in ("width", "height"))
        for xmin, ymin, xmax, ymax in map(box_of, root.findall("object")):
            assert 1 <= xmin < xmax <= width
            assert 1 <= ymin < ymax <= height


def test_voc_has_images_with_only_one_side_or_none() -> None:
    found = {image for rows in voc_results().values() for image, _, _ in rows}
    true = {image for image, root in voc_roots().items() if root.find("object") is not None}
    assert found <= set(image_set("test"))
    assert len(found - true) == 1
    assert len(set(image_set("test")) - found - true) == 1


def test_voc_results_have_every_kind_of_error() -> None:
    hits: Counter[tuple[str, str, Box]] = Counter()
    hits_difficult: Counter[tuple[str, str, Box]] = Counter()
    best_values = []
    for name, rows in voc_results().items():
        for image, _, box in rows:
            candidates = [(overlap(box, truth, 1), truth, hard) for truth, hard in voc_truths(image, name)]
            best, truth, hard = max(candidates, default=(0.0, box, False))
            best_values.append(best)
            if best >= 0.5:
                (hits_difficult if hard else hits)[image, name, truth] += 1
    assert len(hits_difficult) >= 8
    assert max(hits_difficult.values()) >= 2
    assert sum(count > 1 for count in hits.values()) >= 5  # duplicates
    assert 0.5 in best_values  # on the threshold: a hit for the kit, none for its Python ports
    assert 1.0 in best_values
    assert sum(0.1 < value < 0.5 for value in best_values) >= 5  # localization
    assert sum(value < 0.1 for value in best_values) >= 5  # background


def second_choices(
    found: list[tuple[Any, float, Box]], truths_of: Callable[[Any], list[Box]], offset: int
) -> int:
    """Count the detections of a class whose best object a better one takes, while the second is left free."""
    count = 0
    for image, score, box in found:
        near = [truth for truth in truths_of(image) if overlap(box, truth, offset) >= 0.5]
        if len(near) == 2:
            first, second = sorted(near, key=lambda truth: -overlap(box, truth, offset))
            better = [other for where, value, other in found if where == image and value > score]
            count += (
                overlap(box, first, offset) > overlap(box, second, offset)
                and any(overlap(other, first, offset) >= 0.5 for other in better)
                and not any(overlap(other, second, offset) >= 0.5 for other in better)
            )
    return count


def test_both_have_a_detection_whose_second_choice_is_free() -> None:
    found: list[tuple[Any, float, Box]] = list(voc_results()["triangle"])
    assert second_choices(found, lambda image: [box for box, _ in voc_truths(image, "triangle")], 1) >= 1
    (triangle,) = [identifier for identifier, name in coco_names().items() if name == "triangle"]
    truths = by_image_and_class(coco_annotations())
    found = [
        (row["image_id"], row["score"], corners(row["bbox"]))
        for row in coco_detections()
        if row["category_id"] == triangle
    ]
    assert (
        second_choices(found, lambda image: [corners(row["bbox"]) for row in truths[image, triangle]], 0) >= 1
    )


def test_voc_scores_tie_inside_images_and_across_them_out_of_order() -> None:
    inside = backwards = 0
    for rows in voc_results().values():
        for (image, score, _), (other_image, other_score, _) in itertools.combinations(rows, 2):
            if score == other_score:
                inside += image == other_image
                backwards += image > other_image
    assert inside >= 1
    assert backwards >= 5


def test_voc_order_of_ties_across_images_matters(oracles: ModuleType, tmp_path: Path) -> None:
    shutil.copytree(VOC, tmp_path / "voc")
    for path in (tmp_path / "voc" / "results").iterdir():
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(sorted(lines, key=lambda line: line.split()[0])))  # by image, else as it was
    metrics = oracles.voc_expected(tmp_path / "voc")["metrics"]
    for name, value in read_json(VOC / "expected.json")["voc"]["metrics"].items():
        assert abs(metrics[name] - value) > 1e-5


def test_voc_first_detections_of_a_class_hit_a_difficult_object() -> None:
    ranked = sorted(voc_results()["triangle"], key=lambda row: -row[1])
    for image, _, box in ranked[:2]:  # the kit's precision is 0/0 here
        assert any(hard and overlap(box, truth, 1) >= 0.5 for truth, hard in voc_truths(image, "triangle"))


def test_voc_has_classes_without_positives_or_detections() -> None:
    rows = {row["class"]: row for row in read_json(VOC / "expected.json")["voc"]["per_class"]}
    assert (rows["cross"]["positives"], rows["cross"]["difficult"]) == (0, 3)
    assert rows["cross"]["detections"] > rows["cross"]["ignored"] > 0
    assert rows["cross"]["AP_area"] is None
    assert rows["hexagon"]["detections"] == 0
    assert rows["hexagon"]["AP_area"] == 0.0
    assert (VOC / "results" / "comp4_det_test_hexagon.txt").read_text() == ""


def test_voc_recall_grids_differ() -> None:
    rows = read_json(VOC / "expected.json")["voc"]["per_class"]
    differ = {row["class"] for row in rows if row["AP_11_point"] != row["AP_11_point_numpy_grid"]}
    assert differ == {"square", "triangle"}


def test_voc_results_are_the_same_in_coco_form() -> None:
    tables = defaultdict(list)
    for row in read_json(VOC / "results_coco.json"):
        assert isinstance(row["image_id"], str)
        tables[row["category_id"]].append((row["image_id"], row["score"], corners(row["bbox"])))
    found = {name: rows for name, rows in voc_results().items() if rows}
    assert dict(tables) == found  # equal to the last bit, and in the same order


# ---------------------------------------------------------------- iou_tutorial


def test_tutorial_overlaps() -> None:
    rows = read_json(TUTORIAL / "expected.json")["overlaps"]
    assert [round(row["iou_inclusive"], 4) for row in rows] == [0.7980, 0.7899, 0.6125, 0.9472, 0.7310]
    readme = (DATASETS / "README.md").read_text(encoding="utf-8").splitlines()
    for row in rows:
        (line,) = [line for line in readme if f"image_{row['image_id']:04d}" in line]
        assert f"{row['iou_inclusive']:.4f}" in line
        assert f"{row['iou_continuous']:.4f}" in line


def test_tutorial_forms_agree() -> None:
    annotations = read_json(TUTORIAL / "instances.json")["annotations"]
    truth = {row["image_id"]: corners(row["bbox"]) for row in annotations}
    found = {row["image_id"]: corners(row["bbox"]) for row in read_json(TUTORIAL / "detections.json")}
    images = (TUTORIAL / "VOC2007" / "ImageSets" / "Main" / "test.txt").read_text().split()
    assert [int(image.removeprefix("image_")) for image in images] == list(truth)
    for image in images:
        root = ElementTree.parse(TUTORIAL / "VOC2007" / "Annotations" / f"{image}.xml").getroot()
        assert box_of(root.findall("object")[0]) == truth[int(image[-4:])]
    for line in (TUTORIAL / "results" / "comp4_det_test_car.txt").read_text().splitlines():
        image, _, *values = line.split()
        assert tuple(map(float, values)) == found[int(image[-4:])]
