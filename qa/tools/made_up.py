"""Made-up cases of benchmarks, written as the files that a tool and boxscore both read.

Small, so that thousands take a minute, and full of what rules are about: equal scores, sides and areas on bounds,
flags, crowds, images without objects or detections, classes that are never detected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boxscore

Random = np.random.Generator
Record = dict[str, Any]

PARTS = {"keypoints": 17, "foot_kpts": 6, "face_kpts": 68, "lefthand_kpts": 21, "righthand_kpts": 21}
SIDES = (2, 5, 8, 12, 16, 20, 32, 40, 50, 60)


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def pick(rng: Random, values: Iterable[Any]) -> Any:
    return rng.choice(np.array(list(values))).item()


def write_coco(
    folder: Path, images: list[Record], categories: list[Record], truths: list[Record], found: list[Record]
) -> None:
    truth = {"images": images, "categories": categories, "annotations": truths}
    write_json(folder / "gt.json", truth)
    write_json(folder / "dt.json", found)


def pictures(rng: Random) -> list[Record]:
    return [
        {"id": n + 1, "file_name": f"{n + 1}.jpg", "width": 400, "height": 300}
        for n in range(int(rng.integers(1, 5)))
    ]


def moved(rng: Random, box: list[float], most: float = 3) -> list[float]:
    x, y, width, height = box
    step = rng.uniform(-most, most, 4)
    return [x + step[0], y + step[1], max(width + step[2], 1.0), max(height + step[3], 1.0)]


def tiny_objects(rng: Random, folder: Path, smaller: float = 0.15) -> None:
    """Boxes with sides on the bounds of sizes, flags that one benchmark reads and another does not.

    Some have an ``area`` that is smaller than their box.
    """
    images = pictures(rng)
    truths: list[Record] = []
    found: list[Record] = []
    levels = int(pick(rng, [3, 10, 1000]))
    for image in images:
        objects: list[Record] = []
        for _ in range(int(rng.integers(0, 10))):
            width, height = (float(pick(rng, SIDES)) for _ in range(2))
            x, y = (float(value) for value in rng.integers(0, 120, 2))
            box = [x, y, width, height]
            if objects and rng.random() < 0.4:
                box = [round(side, 1) for side in moved(rng, pick_box(rng, objects))]
            area = box[2] * box[3] * (pick(rng, [0.3, 0.5, 0.8]) if rng.random() < smaller else 1)
            item = {
                "id": len(truths) + len(objects) + 1,
                "image_id": image["id"],
                "category_id": int(rng.integers(1, 4)),
                "bbox": box,
                "area": area,
                "iscrowd": int(rng.random() < 0.08),
                "ignore": int(rng.random() < 0.12),
                "uncertain": int(rng.random() < 0.12),
            }
            objects.append(item)
        truths += objects
        for _ in range(int(rng.integers(0, 16)) if objects else int(rng.integers(0, 3))):
            near = objects[int(rng.integers(len(objects)))] if objects else None
            box = moved(rng, near["bbox"]) if near else [5.0, 5.0, 12.0, 12.0]
            found.append(
                {
                    "image_id": image["id"],
                    "category_id": near["category_id"] if near and rng.random() < 0.8 else 1,
                    "bbox": box,
                    "score": float(rng.integers(1, levels + 1)) / levels,
                }
            )
    if not found:
        found = [{"image_id": 1, "category_id": 1, "bbox": [5.0, 5.0, 12.0, 12.0], "score": 0.5}]
    write_coco(folder, images, [{"id": n, "name": f"c{n}"} for n in (1, 2, 3)], truths, found)


def tiny_people(rng: Random, folder: Path) -> None:
    """As in TinyPerson, where the area is that of the box."""
    tiny_objects(rng, folder, smaller=0)


def pick_box(rng: Random, objects: list[Record]) -> list[float]:
    box: list[float] = objects[int(rng.integers(len(objects)))]["bbox"]
    return box


def points_of(rng: Random, box: list[float], count: int) -> NDArray[np.float64]:
    points = np.empty((count, 3))
    points[:, :2] = np.array(box[:2]) + rng.random((count, 2)) * np.array(box[2:])
    points[:, 2] = rng.choice([0, 1, 2], count, p=[0.3, 0.2, 0.5])
    if rng.random() < 0.15:
        points[:, 2] = 0
    points[points[:, 2] == 0] = 0
    return points


def near_points(rng: Random, points: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    found = points.copy()
    found[:, :2] += rng.normal(0, scale, (len(points), 2))
    found[:, 2] = 0 if rng.random() < 0.1 else rng.choice([0, 1], len(points), p=[0.2, 0.8])
    return found


def flat(points: NDArray[np.float64]) -> list[float]:
    return [float(value) for value in points.ravel().round(2)]


def people(
    rng: Random, folder: Path, keys: dict[str, int], categories: int, sigmas: Iterable[float], **more: Any
) -> None:
    """Persons or animals with keypoints under each key; most detections stand near one."""
    images = pictures(rng)
    for image in images:
        image["crowdIndex"] = pick(rng, [0.0, 0.1, 0.19, 0.2, 0.5, 0.79, 0.8, 1.0])
    truths: list[Record] = []
    found: list[Record] = []
    levels = int(pick(rng, [5, 1000]))
    box_of_result = rng.random() < 0.5
    for image in images:
        objects: list[tuple[Record, dict[str, NDArray[np.float64]]]] = []
        for _ in range(int(rng.integers(0, 5))):
            box = [float(value) for value in (*rng.integers(0, 200, 2), *rng.integers(20, 160, 2))]
            points = {key: points_of(rng, box, count) for key, count in keys.items()}
            first = next(iter(points.values()))
            labeled = int((first[:12, 2] > 0).sum())
            item = {
                "id": len(truths) + int(more.get("first_id", 1)),
                "image_id": image["id"],
                "category_id": int(rng.integers(1, categories + 1)),
                "bbox": box,
                "area": box[2] * box[3] * pick(rng, [1, 0.53]),
                "iscrowd": int(rng.random() < more.get("crowds", 0.1)),
                "num_keypoints": labeled if rng.random() < 0.8 else 0,
                **{key: flat(value) for key, value in points.items()},
            }
            truths.append(item)
            objects.append((item, points))
        for _ in range(int(rng.integers(0, 9)) if objects else 1):
            if objects:
                near, points = objects[int(rng.integers(len(objects)))]
                scale = pick(rng, [0.5, 2, 6, 20])
                given = {key: near_points(rng, value, scale) for key, value in points.items()}
                label = near["category_id"] if rng.random() < 0.9 else 1
            else:
                given = {key: points_of(rng, [0, 0, 50, 50], count) for key, count in keys.items()}
                label = 1
            item = {
                "image_id": image["id"],
                "category_id": label,
                "score": float(rng.integers(1, levels + 1)) / levels,
                **{key: flat(value) for key, value in given.items()},
            }
            if box_of_result:
                item["bbox"] = [round(value, 2) for value in moved(rng, [10, 10, 60, 60], 40)]
            for key in more.get("scores", ()):
                if rng.random() < 0.7:
                    item[key] = float(rng.integers(1, levels + 1)) / levels
            found.append(item)
    write_coco(folder, images, [{"id": n + 1, "name": f"c{n}"} for n in range(categories)], truths, found)
    write_json(folder / "sigmas.json", list(sigmas))


def whole_bodies(rng: Random, folder: Path) -> None:
    part = pick(rng, ["body", "foot", "face", "lefthand", "righthand", "wholebody"])
    protocol = boxscore.load_protocol("coco-wholebody" if part == "wholebody" else f"coco-wholebody-{part}")
    scores = [f"{name}_score" for name in ("foot", "face", "lefthand", "righthand", "wholebody")]
    people(rng, folder, PARTS, 1, protocol.keypoints.sigmas, scores=scores)
    write_json(folder / "part.json", part)


def crowds_of_people(rng: Random, folder: Path) -> None:
    """Without crowds, which CrowdPose's files do not have."""
    protocol = boxscore.load_protocol("crowdpose")
    people(rng, folder, {"keypoints": 14}, 1, protocol.keypoints.sigmas, crowds=0)


def animals(rng: Random, folder: Path) -> None:
    """The first annotation id may be 0."""
    protocol = boxscore.load_protocol("ap10k")
    first = int(rng.integers(2))
    people(rng, folder, {"keypoints": 17}, 3, protocol.keypoints.sigmas, first_id=first)


def poses(rng: Random, folder: Path) -> None:
    """Persons of whom some are found with left and right exchanged, or with the joints of another."""
    protocol = boxscore.load_protocol("coco-keypoints")
    people(rng, folder, {"keypoints": 17}, 1, protocol.keypoints.sigmas)
    truths = json.loads((folder / "gt.json").read_text(encoding="utf-8"))
    found = json.loads((folder / "dt.json").read_text(encoding="utf-8"))
    mirror = np.array([0, *(n + step for n in range(1, 17, 2) for step in (1, 0))])
    for item in found:
        points = np.array(item["keypoints"]).reshape(17, 3)
        if rng.random() < 0.4:
            which = rng.random(17) < 0.4
            points[which] = points[mirror][which]
        others = [one for one in truths["annotations"] if one["image_id"] == item["image_id"]]
        if others and rng.random() < 0.4:
            other = np.array(others[int(rng.integers(len(others)))]["keypoints"]).reshape(17, 3)
            which = (rng.random(17) < 0.3) & (other[:, 2] > 0)
            points[which, :2] = (other[mirror] if rng.random() < 0.3 else other)[which, :2] + rng.normal(
                0, 1, 2
            )
        item["keypoints"] = flat(points)
    write_json(folder / "dt.json", found)


def satellite_images(rng: Random, folder: Path) -> None:
    """xView's files; the tool sorts equal scores as its NumPy happens to, so they differ."""
    features: list[Record] = []
    (folder / "dt").mkdir()
    boxes: list[tuple[str, list[int], int]] = []
    names = [f"{n}.tif" for n in range(int(rng.integers(1, 6)))]
    for name in names:
        for _ in range(int(rng.integers(1, 9))):
            x, y, width, height = (int(value) for value in rng.integers(3, 14, 4))
            boxes.append((name, [x, y, x + width, y + height], int(pick(rng, [11, 18, 40, 75]))))
    for name, box, label in boxes:
        given = {"bounds_imcoords": ",".join(map(str, box)), "image_id": name, "type_id": label}
        features.append({"type": "Feature", "properties": given})
    write_json(folder / "gt.geojson", {"type": "FeatureCollection", "features": features})
    ranks = rng.permutation(200) + 1
    any_found = False
    for n, name in enumerate(names):
        if n and rng.random() < 0.15:
            continue
        lines = []
        own = [one for one in boxes if one[0] == name]
        for row in range(int(rng.integers(0, 14)) if any_found or n < len(names) - 1 else 3):
            _, near, label = own[int(rng.integers(len(own)))]
            x1, y1, x2, y2 = (np.array(near) + rng.integers(-2, 3, 4)).tolist()
            label = label if rng.random() < 0.8 else 18
            rank = float(ranks[20 * n + row]) / 201 if rng.random() < 0.95 or not any_found else 0.0
            lines.append(f"{x1} {y1} {max(x2, x1 + 1)} {max(y2, y1 + 1)} {label} {rank!r}\n")
            any_found = True
        if lines or n:
            (folder / "dt" / f"{name}.txt").write_text("".join(lines), encoding="utf-8")


def roads(rng: Random, folder: Path) -> None:
    """KITTI's labels and results; heights at the bounds of its levels, and scores on few levels."""
    types = ["Car", "Van", "Pedestrian", "Person_sitting", "Cyclist", "Truck", "DontCare"]
    truths_at = folder / "data" / "object" / "label_2"
    found_at = folder / "results" / "x" / "data"
    truths_at.mkdir(parents=True)
    found_at.mkdir(parents=True)
    (folder / "results" / "x" / "plot").mkdir()
    levels = int(pick(rng, [4, 30, 1000]))
    oriented = rng.random() < 0.9

    def line(name: str, box: list[float], alpha: float, state: tuple[float, int], score: str = "") -> str:
        given = " ".join(repr(float(side)) for side in box)
        return f"{name} {state[0]} {state[1]} {alpha!r} {given} 1.5 1.6 3.9 0 1 20 0{score}\n"

    for n in range(int(rng.integers(1, 7))):
        objects: list[tuple[str, list[float], float]] = []
        lines = []
        for _ in range(int(rng.integers(0, 10))):
            x, y = (float(value) for value in rng.integers(1, 200, 2))
            box = [x, y, x + float(rng.integers(10, 70)), y + float(pick(rng, [24, 25, 26, 39, 40, 41, 60]))]
            if objects and rng.random() < 0.5:
                box = beside(rng, objects[-1][1])
            name = str(pick(rng, types[:2] if rng.random() < 0.5 else types))
            alpha = float(rng.uniform(-3, 3))
            state = float(pick(rng, [0, 0, 0.15, 0.2, 0.3, 0.4, 0.9])), int(pick(rng, [0, 0, 1, 2, 3]))
            objects.append((name, box, alpha))
            lines.append(line(name, box, alpha, state))
        (truths_at / f"{n:06d}.txt").write_text("".join(lines), encoding="utf-8")
        lines = []
        for _ in range(int(rng.integers(0, 14)) if objects else 1):
            near = objects[int(rng.integers(len(objects)))] if objects else ("Car", [1.0, 1, 9, 60], 0.0)
            name = near[0] if rng.random() < 0.6 else str(pick(rng, types[:-1]))
            name = "Car" if name == "DontCare" else name
            alpha = near[2] + float(rng.normal()) if oriented else -10.0
            score = f" {float(rng.integers(levels)) / levels!r}"
            lines.append(line(name, beside(rng, near[1]), alpha, (-1, -1), score))
        (found_at / f"{n:06d}.txt").write_text("".join(lines), encoding="utf-8")


def beside(rng: Random, box: list[float]) -> list[float]:
    x1, y1, x2, y2 = (np.array(box) + rng.integers(-3, 4, 4)).tolist()
    x1, y1 = max(x1, 0.0), max(y1, 0.0)
    return [x1, y1, max(x2, x1 + 1), max(y2, y1 + 1)]


def streets(rng: Random, folder: Path) -> None:
    """Cityscapes' pictures of instances and classes, masks of predictions and predicted classes."""
    from PIL import Image

    values = [24, 24000, 24001, 24002, 26, 26000, 26001, 26002, 4, 0, 29, 29000, 11, 33000, 7]
    for side in ("gt", "dt", "semantic"):
        (folder / side).mkdir()
    for n in range(int(rng.integers(1, 4))):
        name = f"made_000000_{n:06d}"
        picture = np.full((24, 30), 11, dtype=np.uint16)
        for value in rng.choice(values, int(rng.integers(1, 9))).tolist():
            top, left = rng.integers(0, 18, 2).tolist()
            height, width = rng.integers(2, 14, 2).tolist()
            picture[top : top + height, left : left + width] = value
        classes = np.where(picture >= 1000, picture // 1000, picture).astype(np.uint8)
        Image.fromarray(picture).save(folder / "gt" / f"{name}_gtFine_instanceIds.png")
        Image.fromarray(classes).save(folder / "gt" / f"{name}_gtFine_labelIds.png")
        predicted = np.where(rng.random(picture.shape) < 0.7, classes, rng.choice([7, 11, 24, 26, 29, 33]))
        Image.fromarray(predicted.astype(np.uint8)).save(folder / "semantic" / f"{name}_labelIds.png")
        lines = []
        for i in range(int(rng.integers(0, 9))):
            mask = picture == rng.choice(np.unique(picture))
            if rng.random() < 0.5:
                mask = np.roll(mask, rng.integers(-2, 3, 2).tolist(), (0, 1))
            if rng.random() < 0.2:
                mask &= rng.random(mask.shape) < 0.9
            Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "dt" / f"{name}_{i}.png")
            score = float(rng.integers(5)) / 5
            lines.append(f"{name}_{i}.png {pick(rng, [24, 26, 26, 33, 11])} {score!r}\n")
        (folder / "dt" / f"{name}_pred.txt").write_text("".join(lines), encoding="utf-8")


def places(rng: Random, folder: Path) -> None:
    """Points of two classes on a coarse grid, so that distances lie on the bounds and are equal."""
    images = pictures(rng)
    truths: list[Record] = []
    found: list[Record] = []
    for image in images:
        grid = (rng.integers(0, 16, (int(rng.integers(0, 12)), 2)) * 5.0).tolist()
        own = [(place, int(rng.integers(1, 3))) for place in grid]
        for place, label in own:
            truths.append(at_point(image["id"], label, place) | {"id": len(truths) + 1, "area": 1.0})
        for _ in range(int(rng.integers(0, 14)) if own else 1):
            place, label = own[int(rng.integers(len(own)))] if own else ([5.0, 5.0], 1)
            step = rng.choice([0, 3, 4, 5, 10, 11], 2) * rng.choice([-1, 1], 2)
            near = [place[0] + float(step[0]), place[1] + float(step[1])]
            label = label if rng.random() < 0.9 else 1
            found.append(at_point(image["id"], label, near) | {"score": float(rng.integers(1, 11)) / 10})
    if not truths:
        truths = [at_point(1, 1, [5.0, 5.0]) | {"id": 1, "area": 1.0}]
    write_coco(folder, images, [{"id": n, "name": f"c{n}"} for n in (1, 2)], truths, found)


def at_point(image: int, label: int, place: list[float]) -> Record:
    box = [place[0] - 2, place[1] - 2, 4.0, 4.0]
    return {"image_id": image, "category_id": label, "bbox": box, "point": place}


def scattered_points(rng: Random, folder: Path) -> None:
    """Points of two classes at distances that differ, but for detections at exactly the bound of ten."""
    images = pictures(rng)
    truths: list[Record] = []
    found: list[Record] = []
    for image in images:
        own = (rng.integers(64, 64 * 64, (int(rng.integers(0, 10)), 2)) / 64).tolist()
        for place in own:
            label = int(rng.integers(1, 3))
            truths.append(at_point(image["id"], label, place) | {"id": len(truths) + 1, "area": 16.0})
        for _ in range(int(rng.integers(0, 14))):
            near = own[int(rng.integers(len(own)))] if own else [20.0, 20.0]
            step = rng.normal(0, pick(rng, [1, 6, 12]), 2).tolist()
            step = [6.0, 8.0] if rng.random() < 0.1 else step
            place = [near[0] + step[0], near[1] + step[1]]
            label, score = int(rng.integers(1, 3)), float(rng.integers(1, 11)) / 10
            found.append(at_point(image["id"], label, place) | {"score": score})
    truths = truths or [at_point(1, 1, [5.0, 5.0]) | {"id": 1, "area": 16.0}]
    found = found or [at_point(1, 1, [9.0, 5.0]) | {"score": 0.5}]
    write_coco(folder, images, [{"id": n, "name": f"c{n}"} for n in (1, 2)], truths, found)


def write_cases(made: Callable[[Random, Path], None], folder: Path, count: int) -> list[Path]:
    """Write numbered cases, the same every time."""
    cases = []
    for seed in range(count):
        case = folder / f"{seed:05d}"
        case.mkdir(parents=True)
        made(np.random.default_rng(seed), case)
        cases.append(case)
    return cases
