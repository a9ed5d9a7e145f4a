"""Masks by the thousand: equal to pycocotools in every bit, or refused; no input hangs, crashes or grows.

    python qa/fuzz/masks.py codes 20000         # damaged codes: the verdict of the slow reading
    python qa/fuzz/masks.py pairs 20000         # overlaps, areas and boxes of nasty masks
    python qa/fuzz/masks.py evaluations 2000    # whole evaluations, every cell of every array
    python qa/fuzz/masks.py hostile 1000000     # anything, in child processes with limits

Each takes ``--seed``. ``test_masks.py`` runs the cheap parts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from pycocotools import mask as coco_mask

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import boxscore
from boxscore.extensions.masks.boundary import boundary_iou, mask_boundary
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.mask import mask_iof, mask_iou
from boxscore.extensions.masks.run_lengths import MOST_PIXELS, read_runs
from oracles.run_lengths import slow_total
from support.instances import assert_same_bits, evaluate, mask_case, run_pycocotools

Random = np.random.Generator

SECONDS, MEGABYTES, TOGETHER = 300, 1500, 20_000
"""What a child process may take for a batch of hostile masks, and how many these are."""


def damaged_code(random: Random) -> bytes:
    """Make a code at random, or damage one of a mask."""
    if random.random() < 0.5:
        shape = random.integers(1, 60, 2)
        pixels = random.random(shape) < random.choice([0, 0.01, 0.5, 0.99, 1])
        code = bytearray(coco_mask.encode(np.asfortranarray(pixels, dtype=np.uint8))["counts"])
        for _ in range(random.integers(0, 4)):
            at = int(random.integers(len(code) + 1))
            kind = random.integers(3)
            if kind == 0:
                code.insert(at, int(random.integers(40, 120)))
            elif kind == 1:
                del code[at : at + 1]
            elif at < len(code):
                code[at] = int(random.integers(256 if random.random() < 0.1 else 112))
        return bytes(code)
    length = int(random.integers(1, 30))
    code_ = random.integers(48, 112 if random.random() < 0.95 else 256, length).astype(np.uint8)
    small = random.random(length) < random.choice([0.3, 0.8])
    code_[small] = 48 + (code_[small] - 48) % 16
    return code_.tobytes()


def check_codes(random: Random, count: int) -> None:
    """Damaged codes, alone and beside whole ones."""
    codes = [damaged_code(random) for _ in range(count)]
    expected = list(map(slow_total, codes))
    assert read_runs(codes).totals().tolist() == expected
    for code, total in zip(codes, expected, strict=True):
        height, width = 1, max(total, 1)
        if total > 1_000_000:
            continue
        given = [{"size": [height, width], "counts": code}] * 2
        try:
            Masks([{"size": [2, 2], "counts": "4"}, *given]).area  # noqa: B018
        except boxscore.InputError:
            assert total <= 0, code
        else:
            assert total == width, code


def nasty_mask(random: Random, height: int, width: int) -> tuple[Any, Any]:
    """Return a mask in some form, and pycocotools' code of it."""
    kind = random.integers(6)
    if kind == 0:
        parts = [nasty_polygon(random, height, width) for _ in range(random.choice([1, 1, 2, 4]))]
        return parts, coco_mask.merge(coco_mask.frPyObjects(parts, height, width))
    if kind < 3:
        pixels = random.random((height, width)) < random.choice([0, 0.02, 0.5, 0.98, 1])
    else:
        pixels = np.zeros((height, width), dtype=bool)
        for _ in range(random.integers(1, 4)):
            y, x = np.sort(random.integers(0, height + 1, 2)), np.sort(random.integers(0, width + 1, 2))
            pixels[y[0] : y[1], x[0] : x[1]] ^= True
    code = coco_mask.encode(np.asfortranarray(pixels, dtype=np.uint8))
    form = random.integers(4)
    if form == 0:
        return pixels, code
    if form == 1:
        return {**code, "counts": code["counts"].decode()}, code
    if form == 2:
        return code, code
    flat = pixels.ravel(order="F").astype(np.int8)
    runs = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(flat, prepend=0)), [flat.size]])).tolist()
    for _ in range(random.integers(0, 4)):  # runs of length 0, which pycocotools keeps
        at = int(random.integers(0, len(runs) + 1))
        runs[at:at] = [0, 0]
    listed = {"size": [height, width], "counts": runs}
    return listed, coco_mask.frPyObjects(listed, height, width)


def nasty_polygon(random: Random, height: int, width: int) -> list[float]:
    """Make a polygon: outside the image, on borders of pixels, with repeated points, of one point, huge."""
    corners = random.uniform(-0.3, 1.3, (int(random.integers(1, 9)), 2)) * (width, height)
    kind = random.integers(7)
    if kind in (1, 2, 3):
        grid = (1, 2, 5)[kind - 1]
        corners = (corners * grid).round() / grid
    elif kind == 4:
        corners[random.integers(len(corners))] = corners[0]
    elif kind == 5:
        corners *= random.choice([1, 100, 1e4])
    elif kind == 6:
        corners = random.choice([0, 0.5, width, height, width - 0.5, height - 0.5, -1], corners.shape)
    flat = np.clip(corners, -1e5, 1e5).ravel().tolist()
    while len(flat) < 5:
        flat += flat[:2]
    return flat


def check_pairs(random: Random, count: int) -> None:
    """Masks of one image against each other, ``count`` pairs about."""
    done = 0
    while done < count:
        height, width = random.choice([(48, 64), (7, 5), (1, 1), (1, 9), (33, 2), (20, 30)]).tolist()
        if random.random() < 0.02:
            height = int(random.integers(32_700, 40_000))  # past int16
            width = int(random.integers(1, 4))
        sides = [[nasty_mask(random, height, width) for _ in range(random.integers(1, 30))] for _ in "ab"]
        one, other = (
            Masks([given for given, _ in side], image_sizes=[[width, height]] * len(side)) for side in sides
        )
        codes, others = ([code for _, code in side] for side in sides)
        for ours, crowd in ((mask_iou(one, other), 0), (mask_iof(one, other), 1)):
            theirs = coco_mask.iou(codes, others, [crowd] * len(others))
            assert np.array_equal(ours, theirs), (height, width, np.argwhere(ours != theirs)[0])
        check_boundaries(one, other, codes, others)
        area = coco_mask.area(codes)
        assert one.area.tolist() == area.tolist()
        boxes = coco_mask.toBbox(codes)
        boxes[:, 2:] += boxes[:, :2]
        boxes[area == 0] = 0
        assert np.array_equal(one.boxes, boxes)
        texts = [code["counts"] for code in one.codes()]
        assert [text if isinstance(text, bytes) else text.encode() for text in texts] == [
            code["counts"] for code in codes
        ]
        done += len(codes) * len(others)


def check_boundaries(one: Masks, other: Masks, codes: list[Any], others: list[Any]) -> None:
    """Boundary IoU of a few pairs, from the pixels of both boundaries."""
    rows, columns = range(min(len(codes), 3)), range(min(len(others), 3))
    for ratio in (0.02, 0.08):
        ours = boundary_iou(one, other, dilation_ratio=ratio)
        pixels, others_pixels = (
            [mask_boundary(coco_mask.decode(side[row]), dilation_ratio=ratio) for row in some]
            for side, some in ((codes, rows), (others, columns))
        )
        for row in rows:
            for column in columns:
                both = int((pixels[row] & others_pixels[column]).sum())
                either = int((pixels[row] | others_pixels[column]).sum())
                assert ours[row, column] == (both / either if both else 0)


def check_evaluations(random: Random, count: int) -> None:
    """Whole evaluations from files."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            truth, found = mask_case(int(random.integers(2**32)))
            ours = evaluate(Path(folder), truth, found, "coco-segm")
            assert_same_bits(ours, run_pycocotools(truth, found, "segm"))


# ---------------------------------------------------------------- hostile


def hostile_mask(random: Random) -> Any:
    """Make anything that could be meant as a mask; now and then one of a legal size."""
    sides = random.choice(
        np.array([0, 1, 2, 7, 100, -1, 0.5, 1e3, 46_340, 46_341, 1e6, 1e6 + 1, 2**31, 2**40, 1e300, np.nan]),
        2,
    ).tolist()
    size = [int(side) if np.isfinite(side) and side == int(side) and side < 1e18 else side for side in sides]
    kind = random.integers(8)
    if kind == 0:
        return [random.choice([0, 1, -5, 1e5, 1e6, 1e7, 1e300, np.nan], int(random.integers(1, 12))).tolist()]
    if kind == 1:
        return [[float(value) for value in random.uniform(-2, 12, int(random.integers(0, 12)))] for _ in "ab"]
    if kind == 2:
        return {"size": size, "counts": damaged_code(random)}
    if kind == 3:
        return {"size": size, "counts": damaged_code(random).decode("latin-1")}
    if kind == 4:
        numbers = random.choice(np.array([0, 1, 5, 100, -1, 2**31, 2**32, 2**62]), int(random.integers(0, 9)))
        return {"size": size, "counts": numbers.tolist()}
    if kind == 5:  # adds up, in an image of any legal size
        height, width = (int(side) for side in random.choice([1, 3, 100, 2000, 40_000, 1_000_000], 2))
        if height * width > MOST_PIXELS:
            height = 1
        cuts = np.sort(random.integers(0, height * width + 1, int(random.integers(0, 6))))
        return {"size": [height, width], "counts": np.diff([0, *cuts.tolist(), height * width]).tolist()}
    if kind == 6:
        return random.choice(np.array([None, "x", 5, (), {}], dtype=object))
    return {random.choice(["size", "counts", "x"]): random.choice(np.array([5, "a", None], dtype=object))}


def hostile_codes(random: Random, count: int) -> list[bytes]:
    """Make short codes, cheaply: most are damaged in one way or another."""
    high = int(random.choice([64, 112, 112, 256]))
    text = random.integers(48 if random.random() < 0.8 else 0, high, 12 * count).astype(np.uint8)
    small = random.random(len(text)) < random.choice([0.0, 0.7, 0.95])
    text[small] = 48 + text[small] % 16
    ends = np.cumsum(random.integers(0, 12, count)).tolist()
    whole = text.tobytes()
    return [whole[low:high] for low, high in zip([0, *ends], ends, strict=False)]


def use_codes(random: Random, count: int) -> int:
    """Read codes together, measure those that are masks; return how many are none."""
    codes = hostile_codes(random, count)
    totals = read_runs(codes).totals()
    rows = np.flatnonzero((totals > 0) & (totals <= 1_000_000))
    given = [{"size": [1, int(totals[row])], "counts": codes[row]} for row in rows.tolist()]
    if given:
        masks = Masks(given)
        area, boxes = masks.area, masks.boxes
        assert ((area >= 0) & (area <= totals[rows])).all()
        assert (boxes[:, 2] <= totals[rows]).all()
        for row in range(min(len(given), 3)):
            assert mask_iou([given[row]], [given[row]]).item() in (0.0, 1.0)
            boxscore.boundary_iou([given[row]], [given[row]])
    return count - len(rows)


def use_hostile(seed: int, count: int) -> None:
    """Measure, compare and write hostile masks; anything but an answer or an error of ours ends the process.

    Nine in ten are codes, which are read many at a time.
    """
    import resource

    limit = MEGABYTES << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit + (1 << 30), limit + (1 << 30)))
    random = np.random.default_rng(seed)
    legal: dict[tuple[int, int], list[Any]] = {}
    refused = sum(use_codes(random, count // 20) for _ in range(18))
    for _ in range(count - 18 * (count // 20)):
        mask = hostile_mask(random)
        side = random.choice([0, 1, 9, 300, 1e6, np.nan], 2)
        try:
            column = Masks([mask], image_sizes=[side])
            area = column.area[0]
            assert 0 <= area <= MOST_PIXELS
            size = tuple(column.sizes[0].tolist())
            legal.setdefault(size, []).append(mask)
        except boxscore.InputError:
            refused += 1
            continue
        if len(legal[size]) < 20:
            masks = Masks(legal[size][-3:], image_sizes=[size[::-1]] * len(legal[size][-3:]))
            overlaps = mask_iou(masks, masks)
            assert ((overlaps >= 0) & (overlaps <= 1)).all()
            if random.random() < 0.2:
                boxscore.boundary_iou(masks, masks)
            masks.boxes  # noqa: B018
            masks.codes()
    print(
        json.dumps(
            {"refused": refused, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}
        )
    )


def check_hostile(seed: int, count: int) -> None:
    """Batches of hostile masks, each in a process of its own."""
    refused = most = 0
    slowest = 0.0
    for number in range(-(-count // TOGETHER)):
        began = time.monotonic()
        command = [sys.executable, __file__, "child", str(TOGETHER), "--seed", str(seed + number)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, (seed + number, done.returncode, done.stderr[-2000:])
        answer = json.loads(done.stdout)
        refused += answer["refused"]
        most, slowest = max(most, answer["megabytes"]), max(slowest, time.monotonic() - began)
        assert most < MEGABYTES, (seed + number, most)
    print(f"{refused:,} of {count:,} refused; at most {most} MB, {slowest:.1f} s for {TOGETHER:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["codes", "pairs", "evaluations", "hostile", "child"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.what in ("child", "hostile"):
        {"child": use_hostile, "hostile": check_hostile}[arguments.what](arguments.seed, arguments.count)
        return
    checks = {"codes": check_codes, "pairs": check_pairs, "evaluations": check_evaluations}
    began = time.monotonic()
    checks[arguments.what](np.random.default_rng(arguments.seed), arguments.count)
    print(f"{arguments.count:,} {arguments.what}: all equal, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
