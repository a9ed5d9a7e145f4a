"""Size: what stays small, and that it stays right."""

import importlib
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

import boxscore.suppression  # noqa: F401
from boxscore.suppression import batched_nms, matrix_nms, nms, soft_nms, suppress_boxes, weighted_boxes_fusion


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def data_set(images, each, classes):
    random = np.random.default_rng(0)
    count = images * each
    corner, size = random.random((count, 2)) * 600, random.uniform(10, 200, (count, 2))
    groups = np.repeat(np.arange(images), each) * classes + random.integers(0, classes, count)
    return np.concatenate([corner, corner + size], axis=1), random.random(count), groups


@pytest.mark.long
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.95])
def test_near_identical_boxes_stay_bounded(threshold):
    random = np.random.default_rng(0)
    boxes = np.array([100, 100, 200, 200]) + random.normal(0, 1, (100_000, 4))
    scores = random.random(len(boxes))
    start = time.process_time()
    kept = nms(boxes, scores, iou_threshold=threshold)
    taken = time.process_time() - start
    assert kept[0] == np.argmax(scores)
    assert taken < 10  # a second on a quiet machine; quadratic work takes minutes
    assert peak(lambda: nms(boxes, scores, iou_threshold=threshold)) < 250


def test_identical_boxes():
    boxes = np.tile([[0.0, 0, 10, 10]], (100_000, 1))
    assert nms(boxes, np.ones(len(boxes)), iou_threshold=0.5).tolist() == [0]


def test_memory_of_a_data_set():
    boxes, scores, groups = data_set(1000, 300, 80)
    assert peak(lambda: batched_nms(boxes, scores, groups, iou_threshold=0.5)) < 50  # a fifth of 1.5 M boxes


def test_one_stray_box_costs_nothing():
    random = np.random.default_rng(0)
    corner = random.random((20_000, 2)) * 5000
    boxes = np.concatenate([corner, corner + random.uniform(10, 60, (20_000, 2))], axis=1)
    expected = nms(boxes, random.permutation(20_000), iou_threshold=0.5)
    assert len(expected) > 15_000
    far = np.concatenate([boxes, [[1e12, 1e12, 1e12 + 1e6, 1e12 + 1e6], [0, 0, 1e9, 1e9]]])
    assert peak(lambda: nms(far, np.arange(len(far)), iou_threshold=0.5)) < 100


@pytest.mark.long
def test_groups_of_very_unequal_size_equal_groups_alone():
    random = np.random.default_rng(1)
    boxes, scores, groups = data_set(300, 40, 3)
    many, many_scores, _ = data_set(1, 4000, 1)
    boxes, scores = np.concatenate([boxes, many]), np.concatenate([scores, many_scores]).round(3)
    groups = np.concatenate([groups, np.full(len(many), 10**6)])
    shuffle = random.permutation(len(boxes))
    boxes, scores, groups = boxes[shuffle], scores[shuffle], groups[shuffle]
    kept = batched_nms(boxes, scores, groups, 0.4)
    by = suppress_boxes(boxes, scores, 0.4, groups=groups).suppressed_by
    for group in [*random.choice(groups, 50).tolist(), 10**6]:
        rows = np.flatnonzero(groups == group)
        alone = nms(boxes[rows], scores[rows], 0.4)
        alone_by = suppress_boxes(boxes[rows], scores[rows], 0.4).suppressed_by
        assert np.isin(rows, kept).sum() == len(alone)
        assert np.isin(rows[alone], kept).all()
        assert by[rows].tolist() == np.where(alone_by < 0, -1, rows[alone_by]).tolist()


@pytest.mark.long
def test_soft_and_matrix_and_fusion_take_a_data_set():
    boxes, scores, groups = data_set(1000, 100, 20)
    start = time.process_time()
    assert len(soft_nms(boxes, scores, groups=groups)[0]) > 50_000
    assert len(matrix_nms(boxes, scores, groups=groups)[0]) == len(boxes)
    assert len(weighted_boxes_fusion([boxes, boxes], [scores, scores], [groups, groups]).boxes) <= len(boxes)
    assert time.process_time() - start < 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_keeping_freed_memory_takes_none():
    code = (
        "import resource, numpy; from boxscore._utils.memory import keep_freed_memory\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for _ in range(5): keep_freed_memory()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4096  # KiB


def test_nms_is_a_function_and_only_that():
    code = (
        "import boxscore, importlib; from boxscore.suppression import nms, suppress\n"
        "for name in ('nms', 'batched_nms', 'soft_nms', 'suppress'):\n"
        "    try: importlib.import_module(f'boxscore.{name}'); raise SystemExit(f'{name} is a module')\n"
        "    except ModuleNotFoundError: pass\n"
        "assert boxscore.nms is nms and boxscore.suppress is suppress\n"
        "print(boxscore.nms([[0, 0, 1, 1], [0, 0, 1, 1]], [0.5, 0.7], 0.5).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n"


def test_what_is_exported_is_public():
    package = importlib.import_module("boxscore.suppression")
    package = sys.modules["boxscore.suppression"]
    assert package.__all__ == sorted(package.__all__, key=lambda name: (name.islower(), name))
    for name in package.__all__:
        assert getattr(package, name).__doc__
