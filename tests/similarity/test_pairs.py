"""One overlap for a pair of boxes, to the last bit, whoever asks; the oracle computes it number by number."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import numpy as np
import pytest

import boxscore
from boxscore.data.boxes import box_convert
from boxscore.data.tables import Detections, GroundTruth
from boxscore.protocols.loading import load_protocol
from boxscore.protocols.protocol import SimilarityName
from boxscore.similarity.measures import box_measure
from boxscore.similarity.registry import SIMILARITIES, similarity_class

BoxRow = list[float]
Sized = tuple[BoxRow, float, float]  # corners, width, height


def shared_of(one: BoxRow, other: BoxRow, offset: float) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0]) + offset
    height = min(one[3], other[3]) - max(one[1], other[1]) + offset
    return width * height if width > 0 and height > 0 else 0.0


def iou_of(one: Sized, other: Sized, offset: float) -> float:
    shared = shared_of(one[0], other[0], offset)
    return shared / (one[1] * one[2] + other[1] * other[2] - shared) if shared else 0.0


def ios_of(one: Sized, other: Sized, offset: float) -> float:
    shared = shared_of(one[0], other[0], offset)
    return shared / min(one[1] * one[2], other[1] * other[2]) if shared else 0.0


def penalty_of(one: BoxRow, other: BoxRow, offset: float) -> float:
    apart = around = 0.0
    for axis in (0, 1):
        between = (one[axis] + one[axis + 2]) / 2 - (other[axis] + other[axis + 2]) / 2
        length = max(one[axis + 2], other[axis + 2]) - min(one[axis], other[axis]) + offset
        apart += between * between  # not ** 2, which the C library rounds otherwise
        around += length * length
    return apart / around if around else 0.0


def giou_of(one: Sized, other: Sized, offset: float) -> float:
    shared = shared_of(one[0], other[0], offset)
    union = one[1] * one[2] + other[1] * other[2] - shared
    hull = 1.0
    for axis in (0, 1):
        hull *= max(one[0][axis + 2], other[0][axis + 2]) - min(one[0][axis], other[0][axis]) + offset
    return (shared / union if union else 0.0) - ((hull - union) / hull if hull else 0.0)


def drawn(seed: int, count: int = 40) -> np.ndarray:
    """Boxes x, y, w, h: of odd fractions, on a grid, without area, huge."""
    random = np.random.default_rng(seed)
    boxes = np.concatenate([random.random((count, 2)) * 30, random.random((count, 2)) * 20], axis=1)
    boxes[: count // 4] = np.round(boxes[: count // 4])
    boxes[::9, 2] = 0
    boxes[4::9] *= 1e6
    return boxes


def sized(boxes: np.ndarray, box_format: str, offset: float) -> list[Sized]:
    found = []
    for row in boxes.tolist():
        if box_format == "xywh":
            found.append(
                ([row[0], row[1], row[0] + row[2], row[1] + row[3]], row[2] + offset, row[3] + offset)
            )
        else:
            found.append((row, row[2] - row[0] + offset, row[3] - row[1] + offset))
    return found


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("box_format", ["xyxy", "xywh"])
def test_the_public_functions_compute_the_formulas(box_format: Any, offset: float) -> None:
    first, second = (box_convert(drawn(seed), "xywh", box_format) for seed in (1, 2))
    ones, others = sized(first, box_format, offset), sized(second, box_format, offset)
    options: Any = {"box_format": box_format, "pixel_offset": offset}
    for function, oracle in (
        (boxscore.box_iou, iou_of),
        (boxscore.generalized_box_iou, giou_of),
        (boxscore.distance_box_iou, lambda a, b, o: iou_of(a, b, o) - penalty_of(a[0], b[0], o)),
        (
            boxscore.box_iof,
            lambda a, b, o: shared_of(a[0], b[0], o) / (a[1] * a[2]) if a[1] * a[2] else 0.0,
        ),
    ):
        expected = [[oracle(one, other, offset) for other in others] for one in ones]
        assert function(first, second, **options).tolist() == expected
        row_by_row = [expected[row][row] for row in range(len(ones))]
        assert function(first, second, **options, paired=True).tolist() == row_by_row


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("box_format", ["xyxy", "xywh"])
@pytest.mark.parametrize("kind", ["iou", "ios", "diou"])
def test_suppression_computes_the_same(kind: Any, box_format: Any, offset: float) -> None:
    boxes = box_convert(drawn(3), "xywh", box_format)
    pairs = np.array(list(itertools.combinations(range(len(boxes)), 2)))
    measure = box_measure(boxes, box_format=box_format, pixel_offset=offset, overlap=kind)(
        np.arange(len(boxes))
    )
    values = measure.between(pairs[:, 0], pairs[:, 1])
    rows = sized(boxes, box_format, offset)
    for (one, other), value in zip(pairs.tolist(), values.tolist(), strict=True):
        expected = (ios_of if kind == "ios" else iou_of)(rows[one], rows[other], offset)
        if kind == "diou":
            expected -= penalty_of(rows[one][0], rows[other][0], offset)
        assert value == expected or np.isnan(value), (one, other)


@pytest.mark.parametrize("name", ["coco", "voc2012"])
def test_matching_computes_the_same(name: str) -> None:
    protocol = load_protocol(name)
    offset = protocol.boxes.pixel_offset
    truth, found = drawn(4), drawn(5)
    box_format: Any = "xyxy" if offset else "xywh"
    boxes = [box_convert(some, "xywh", box_format) for some in (truth, found)]
    crowd = np.arange(len(truth)) % 3 == 0
    one, other = (side.ravel() for side in np.meshgrid(range(40), range(40)))  # an image for each pair
    images, labels = range(1600), [1] * 1600
    tables = (
        GroundTruth.from_arrays(images, labels, boxes[0][other], box_format=box_format, crowd=crowd[other]),
        Detections.from_arrays(images, labels, boxes[1][one], [0.5] * 1600, box_format=box_format),
    )
    found = boxscore.evaluate(*tables, protocol=protocol).matches["iou"].to_numpy()
    rows = [sized(some, box_format, offset) for some in boxes]
    expected = np.full(1600, np.nan)
    for pair, (i, j) in enumerate(zip(one, other, strict=True)):
        detection, box = rows[1][i], rows[0][j]
        shared = shared_of(detection[0], box[0], offset)
        of_crowd = crowd[j] and protocol.ignore.crowd == "iof"
        value = (
            shared / (detection[1] * detection[2]) if shared and of_crowd else iou_of(detection, box, offset)
        )
        if value >= protocol.matching.effective_thresholds[0]:
            expected[pair] = value
    np.testing.assert_array_equal(found, expected)
    assert (expected > 0).sum() > 5
    together = (
        GroundTruth.from_arrays(
            [1] * 40, [1] * 40, boxes[0], box_format=box_format, crowd=crowd, ids=range(40)
        ),
        Detections.from_arrays([1] * 40, [1] * 40, boxes[1], np.arange(40), box_format=box_format),
    )
    matches = boxscore.evaluate(*together, protocol=protocol).matches[["annotation_id", "iou"]].dropna()
    for i, (j, iou) in zip(matches.index, matches.itertuples(index=False), strict=True):
        assert iou == expected[j * 40 + i]
    assert len(matches) > 3


@pytest.mark.parametrize("seed", range(3))
def test_a_large_group_has_every_pair_that_overlaps_enough(seed: int) -> None:
    """So many boxes are sorted by x first, and most pairs are never compared."""
    count = 120  # squared, more than pairs.LARGE_GROUP
    truth, found = drawn(2 * seed, count), drawn(2 * seed + 1, count)
    found[::7] = truth[::7]
    found[1::7, :2] += truth[1::7, 2:]  # these begin where another ends, or nearly
    crowd = np.arange(count) % 5 == 0
    # Another class comes first, so that the run of boxes does not begin at 0.
    tables = (
        GroundTruth.from_arrays(
            [1] * (count + 1),
            [1, *[2] * count],
            np.concatenate([truth[1:2], truth]),
            box_format="xywh",
            crowd=[False, *crowd],
        ),
        Detections.from_arrays(
            [1] * (count + 1),
            [1, *[2] * count],
            np.concatenate([truth[1:2], found]),
            np.arange(count + 1) % 50 / 50,
            box_format="xywh",
        ),
    )
    protocol = {
        "extends": "coco",
        "matching": {"iou_thresholds": [0.1], "max_detections": [count]},
        "summary": [{"key": "AP", "metric": "AP"}],
    }
    matched = boxscore.evaluate(*tables, protocol=protocol).matched
    rows = zip(
        matched.row[matched.pair_detection].tolist(),
        matched.truth_row[matched.pair_truth].tolist(),
        matched.iou.tolist(),
        strict=True,
    )
    ones, others = sized(found, "xywh", 0.0), sized(truth, "xywh", 0.0)
    expected = {(0, 0): 1.0}
    for i, j in itertools.product(range(count), repeat=2):
        value = iou_of(ones[i], others[j], 0.0)
        if crowd[j] and value:
            value = shared_of(ones[i][0], others[j][0], 0.0) / (ones[i][1] * ones[i][2])
        if value >= 0.1:
            expected[i + 1, j + 1] = value
    assert {(i, j): value for i, j, value in rows} == expected
    assert 100 < len(expected) < count**2 / 10


def test_every_name_a_protocol_may_give_has_a_similarity() -> None:
    assert sorted(SIMILARITIES) == sorted(get_args(SimilarityName))


def test_every_similarity_has_a_column_that_tables_have() -> None:
    for similarity in map(similarity_class, SIMILARITIES):
        names = [column.name for column in Detections.schema.instances]
        assert similarity.column is None or similarity.column in names
