"""Make detector-like ground truth and results files from a seed.

Goal
----
Data on which an evaluator works as hard, and in the same places, as on a real detector's output: boxes
clustered around objects, few frequent and many rare classes, many low scores and many equal ones, crowd
regions, background detections, images with nothing in them.

Conventions
-----------
- Everything random is drawn as arrays; the files hold exactly what ``json.dump`` writes.
- Image ids are neither consecutive nor sorted. Annotations stand in random order, as in the official files;
  results are grouped by image, best first inside it, as a detector writes them.
- The same spec and NumPy version give the same bytes.

Usage
-----
``python benchmarks/make_data.py coco_200k coco_500k --output benchmarks/data``; no name makes all.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cases import BENCHMARKS, CASES, DataSpec
from numpy.typing import NDArray

CHUNK = 20_000  # records serialized at once: bounds the memory, not the file


class Boxes(NamedTuple):
    """Boxes of rows, in pixels as COCO has them."""

    image: NDArray[np.int64]  # [N] row number of the image
    category: NDArray[np.int64]  # [N] row number of the category
    xywh: NDArray[np.float64]  # [N,4]


class Scored(NamedTuple):
    """Detections before they are cut and ordered."""

    boxes: Boxes
    score: NDArray[np.float64]  # [N]


class World(NamedTuple):
    """What both files share."""

    image_ids: NDArray[np.int64]  # [I]
    image_sizes: NDArray[np.int64]  # [I,2] width, height
    category_ids: NDArray[np.int64]  # [K]
    class_share: NDArray[np.float64]  # [K] sums to 1
    themes: NDArray[np.int64]  # [I,4] the classes an image is mostly about


def make_world(spec: DataSpec, random: np.random.Generator) -> World:
    """Images, categories and what each image shows."""
    image_ids = random.choice(np.arange(1, spec.images * 110 + 2), size=spec.images, replace=False)
    shapes = np.array([[640, 480], [640, 427], [480, 640], [427, 640], [500, 375], [640, 640]])
    image_sizes = shapes[random.choice(len(shapes), size=spec.images, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])]
    # Ids with holes, as COCO's 80 classes have among 1 to 90.
    top = spec.categories + spec.categories // 8
    category_ids = np.sort(random.choice(np.arange(1, top + 1), size=spec.categories, replace=False))
    class_share = 1 / (np.arange(spec.categories) + 1.0)  # Zipf: a fifth is of the first class
    class_share = random.permutation(class_share / class_share.sum())
    themes = random.choice(spec.categories, size=(spec.images, 4), p=class_share)
    return World(image_ids, image_sizes, category_ids, class_share, themes)


def random_boxes(
    image: NDArray[np.int64], world: World, random: np.random.Generator, *, typical: float = 0.16
) -> NDArray[np.float64]:
    """Boxes [N, 4] as x, y, w, h inside their images; side lengths lognormal around ``typical``."""
    size = world.image_sizes[image].astype(float)  # [N,2]
    side = typical * np.exp(random.normal(0, 0.9, len(image))) * np.sqrt(size.prod(axis=1))
    stretch = np.exp(random.normal(0, 0.45, len(image)))
    wh = np.clip(np.stack([side * stretch, side / stretch], axis=1), 3.0, size * 0.98)  # [N,2]
    xy = random.random((len(image), 2)) * (size - wh)
    return np.hstack([xy, wh])


def make_objects(
    spec: DataSpec, world: World, random: np.random.Generator
) -> tuple[Boxes, NDArray[np.bool_]]:
    """Ground truth and which rows are crowd regions."""
    appetite = random.gamma(0.95, 1.0, spec.images)  # objects per image: many with 1 or 2, few with 50
    appetite[random.random(spec.images) < 0.01] = 0  # nothing to find there
    image = np.sort(random.choice(spec.images, size=spec.ground_truths, p=appetite / appetite.sum()))
    theme = np.minimum(random.geometric(0.55, len(image)) - 1, 3)
    category = world.themes[image, theme]
    crowd = random.random(len(image)) < 0.012
    xywh = random_boxes(image, world, random)
    xywh[crowd] = random_boxes(image[crowd], world, random, typical=0.45)
    return Boxes(image, category, xywh), crowd


def jitter(
    boxes: NDArray[np.float64], spread: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Move and resize boxes [N, 4] by about ``spread`` [N] of their size."""
    move = random.normal(0, 1, (len(boxes), 2)) * spread[:, None] * boxes[:, 2:]
    resize = np.exp(random.normal(0, 1, (len(boxes), 2)) * spread[:, None])
    center = boxes[:, :2] + boxes[:, 2:] / 2 + move
    wh = np.maximum(boxes[:, 2:] * resize, 1.0)
    return np.hstack([center - wh / 2, wh])


def make_detections(
    spec: DataSpec, world: World, objects: Boxes, crowd: NDArray[np.bool_], random: np.random.Generator
) -> Scored:
    """Hits, duplicates, confusions and background; exactly ``spec.detections`` under the image's cap.

    The share of each kind follows from how many detections are asked for: a detector cut at a high score
    threshold gives mostly hits, one cut at 0.001 gives its 100 or 300 boxes whatever the image shows.
    """
    detected = np.flatnonzero((random.random(len(objects.image)) < 0.72) & ~crowd)
    detected = detected[: int(spec.detections * 0.8)]
    hits = Scored(
        Boxes(
            objects.image[detected],
            objects.category[detected],
            jitter(objects.xywh[detected], 0.02 + random.gamma(1.2, 0.05, len(detected)), random),
        ),
        np.clip(random.beta(2.2, 1.1, len(detected)), 0.02, 0.999),
    )
    rest = random_rest(spec, world, objects, spec.detections - len(detected), random)
    pool = _join(hits, rest)
    while True:  # the cap takes some away; more are drawn until the count is right
        pool = _cap(pool, spec.image_cap)
        missing = spec.detections - len(pool.score)
        if missing <= 0:
            break
        pool = _join(pool, random_rest(spec, world, objects, missing + missing // 4 + 8, random))
    keep = np.sort(random.permutation(len(pool.score))[: spec.detections])
    return _take(pool, keep)


def random_rest(
    spec: DataSpec, world: World, objects: Boxes, count: int, random: np.random.Generator
) -> Scored:
    """Draw duplicates of objects, objects under a wrong class, and background."""
    busy = np.bincount(objects.image, minlength=spec.images) + 4.0  # busy images get more of everything
    image = random.choice(spec.images, size=count, p=busy / busy.sum())
    kind = random.choice(3, size=count, p=[0.22, 0.28, 0.5])  # duplicate, wrong class, background
    start = np.searchsorted(objects.image, np.arange(spec.images))
    total = np.bincount(objects.image, minlength=spec.images)
    kind[total[image] == 0] = 2
    pick = start[image] + (random.random(count) * total[image]).astype(np.int64)
    pick = np.minimum(pick, len(objects.image) - 1)  # only rows of kind 2 can be out of range
    around = kind < 2
    xywh = random_boxes(image, world, random)
    xywh[around] = jitter(
        objects.xywh[pick[around]], 0.05 + random.gamma(1.5, 0.12, int(around.sum())), random
    )
    category = np.where(
        random.random(count) < 0.45,
        world.themes[image, random.integers(0, 4, count)],
        random.choice(spec.categories, size=count, p=0.5 * world.class_share + 0.5 / spec.categories),
    )
    category = np.where(kind == 0, objects.category[pick], category)
    score = np.clip(random.beta(0.45, 7.0, count) * np.where(kind == 0, 1.6, 1.0), 0.001, 0.98)
    return Scored(Boxes(image, category, xywh), score)


def _join(first: Scored, second: Scored) -> Scored:
    boxes = Boxes(*(np.concatenate(pair) for pair in zip(first.boxes, second.boxes, strict=True)))
    return Scored(boxes, np.concatenate([first.score, second.score]))


def _take(rows: Scored, index: NDArray[np.int64]) -> Scored:
    return Scored(Boxes(*(column[index] for column in rows.boxes)), rows.score[index])


def _cap(rows: Scored, cap: int) -> Scored:
    """Sort by image, best first, and keep the first ``cap`` of each image."""
    rows = _take(rows, np.lexsort((-rows.score, rows.boxes.image)))
    image = rows.boxes.image
    rank = np.arange(len(image)) - np.searchsorted(image, image)
    return _take(rows, np.flatnonzero(rank < cap))


def make_one_image(spec: DataSpec, world: World, random: np.random.Generator) -> tuple[Boxes, Scored]:
    """One image crowded with small objects of one class, four detections for each."""
    row = np.zeros(spec.ground_truths, dtype=np.int64)
    objects = Boxes(row, row, random_boxes(row, world, random, typical=0.05))
    pick = random.integers(0, spec.ground_truths, spec.detections)
    column = np.zeros(spec.detections, dtype=np.int64)
    xywh = jitter(objects.xywh[pick], 0.02 + random.gamma(1.2, 0.08, spec.detections), random)
    score = np.sort(np.clip(random.beta(0.6, 3.0, spec.detections), 0.001, 0.999))[::-1]
    return objects, Scored(Boxes(column, column, xywh), score)


def make(spec: DataSpec, ground_truth: Path, detections: Path) -> None:
    """Write the two files of a spec.

    Parameters
    ----------
    spec : DataSpec
    ground_truth, detections : Path
        Where to write; written under another name first, so that a file that exists is whole.
    """
    if spec.detections > 0.6 * spec.images * spec.image_cap and spec.layout != "one_image":
        raise ValueError(
            "detections must stay below 60% of images x image_cap, or drawing them takes forever"
        )
    random = np.random.default_rng(spec.seed)
    world = make_world(spec, random)
    if spec.layout == "one_image":
        objects, scored = make_one_image(spec, world, random)
        crowd = np.zeros(spec.ground_truths, dtype=bool)
    else:
        objects, crowd = make_objects(spec, world, random)
        # The results come from a stream of their own: the size of one file does not change the other.
        random = np.random.default_rng([spec.seed, 1])
        scored = make_detections(spec, world, objects, crowd, random)
        if spec.layout == "tied_scores":
            scored = scored._replace(score=np.full(spec.detections, 0.5))
    _write(
        ground_truth, _ground_truth_parts(spec, world, objects, crowd, np.random.default_rng([spec.seed, 2]))
    )
    _write(detections, _detection_parts(spec, world, scored, np.random.default_rng([spec.seed, 3])))


def _write(path: Path, parts: Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(parts)
    partial.replace(path)


def _records(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Serialize a list of records a chunk at a time, as ``json.dump`` of the whole list would."""
    chunk: list[dict[str, Any]] = []
    lead = "["
    for row in rows:
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield lead + json.dumps(chunk)[1:-1]
            lead = ", "
            chunk.clear()
    if chunk:
        yield lead + json.dumps(chunk)[1:-1]
    elif lead == "[":
        yield lead
    yield "]"


def _ground_truth_parts(
    spec: DataSpec, world: World, objects: Boxes, crowd: NDArray[np.bool_], random: np.random.Generator
) -> Iterator[str]:
    count = len(objects.image)
    order = random.permutation(count)
    xywh = np.maximum(np.round(objects.xywh, 2), 0.01)
    # An object fills part of its box; official areas are of masks, with more digits than the box.
    area = np.round(xywh[:, 2] * xywh[:, 3] * random.uniform(0.4, 0.98, count), 4)
    ids = random.permutation(count * 3)[:count] + 1  # never 0: pycocotools reads id 0 as "not matched"
    images = (
        {"license": 1, "file_name": f"{i:012d}.jpg", "height": h, "width": w, "id": i}
        for i, (w, h) in zip(world.image_ids.tolist(), world.image_sizes.tolist(), strict=True)
    )
    categories = (
        {"supercategory": "thing", "id": i, "name": f"class {i}"} for i in world.category_ids.tolist()
    )
    columns = zip(
        ids[order].tolist(),
        world.image_ids[objects.image[order]].tolist(),
        world.category_ids[objects.category[order]].tolist(),
        xywh[order].tolist(),
        area[order].tolist(),
        crowd[order].astype(int).tolist(),
        world.image_sizes[objects.image[order]].tolist(),
        strict=True,
    )

    def annotations() -> Iterator[dict[str, Any]]:
        for i, image_id, category_id, bbox, surface, iscrowd, size in columns:
            row: dict[str, Any] = {}
            if spec.polygons:
                row["segmentation"] = _run_lengths(bbox, size) if iscrowd else [_polygon(bbox, random)]
            row |= {"area": surface, "iscrowd": iscrowd, "image_id": image_id, "bbox": bbox}
            row |= {"category_id": category_id, "id": i}
            yield row

    yield '{"info": {"description": "made by boxscore benchmarks"}, "licenses": [], "images": '
    yield from _records(images)
    yield ', "annotations": '
    yield from _records(annotations())
    yield ', "categories": '
    yield from _records(categories)
    yield "}"


def _polygon(bbox: list[float], random: np.random.Generator) -> list[float]:
    """Return an uneven ring of 8 to 40 points inside a box, as x, y, x, y, ..."""
    count = int(random.integers(8, 41))
    angle = np.arange(count) * (2 * np.pi / count)
    reach = random.uniform(0.6, 1.0, count) / 2
    x = bbox[0] + bbox[2] * (0.5 + reach * np.cos(angle))
    y = bbox[1] + bbox[3] * (0.5 + reach * np.sin(angle))
    return np.round(np.stack([x, y], axis=1), 2).ravel().tolist()


def _run_lengths(bbox: list[float], size: list[int]) -> dict[str, Any]:
    """Return the box as an uncompressed run-length mask: columns, top to bottom, background first."""
    width, height = size
    x, y = int(bbox[0]), int(bbox[1])
    columns, rows = max(1, min(int(bbox[2]), width - x)), max(1, min(int(bbox[3]), height - y))
    counts = [x * height + y] + [rows, height - rows] * columns
    counts[-1] = width * height - sum(counts[:-1])
    return {"counts": counts, "size": [height, width]}


def _detection_parts(
    spec: DataSpec, world: World, scored: Scored, random: np.random.Generator
) -> Iterator[str]:
    if spec.full_precision:
        # Half precision scores (a network run in float16) keep ties; boxes are what float32 arithmetic gives.
        xywh = scored.boxes.xywh.astype(np.float32).astype(float)
        score = scored.score.astype(np.float16).astype(float)
    else:
        xywh, score = np.round(scored.boxes.xywh, 2), np.round(scored.score, 3)
    # A data loader's order of images, which is not the ground truth's; best first inside an image.
    rank = random.permutation(spec.images)
    order = np.lexsort((-score, rank[scored.boxes.image]))
    columns = zip(
        world.image_ids[scored.boxes.image[order]].tolist(),
        world.category_ids[scored.boxes.category[order]].tolist(),
        xywh[order].tolist(),
        score[order].tolist(),
        strict=True,
    )
    yield from _records(
        {"image_id": image_id, "category_id": category_id, "bbox": bbox, "score": value}
        for image_id, category_id, bbox, value in columns
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the benchmark's data.")
    made_up = [name for name, case in CASES.items() if case.spec is not None]
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"one of {', '.join(made_up)}; none: all")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "data", metavar="DIR")
    arguments = parser.parse_args()
    for name in arguments.names or made_up:
        if name not in made_up:
            parser.error(f"CASE must be one of {', '.join(made_up)}. Got {name!r}")
        spec = CASES[name].spec
        assert spec is not None
        ground_truth, detections = data_paths(arguments.output, name)
        if not (ground_truth.exists() and detections.exists()):
            print(f"making {name} ...", file=sys.stderr)
            make(spec, ground_truth, detections)
    return 0


def data_paths(folder: Path, name: str) -> tuple[Path, Path]:
    """Where the ground truth and the results of a case are."""
    return folder / f"{name}_ground_truth.json", folder / f"{name}_detections.json"


if __name__ == "__main__":
    sys.exit(main())
