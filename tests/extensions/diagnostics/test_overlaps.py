"""Overlaps of pairs: published figures, a plain loop over pairs, and what is undefined."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore.diagnostics import pair_overlaps
from boxscore.extensions.diagnostics.overlaps import WHICH_PAIRS, measures_of_boxes
from support.running import Run
from support.samples import DATASETS, DT, GT

CARS = DATASETS / "iou_tutorial"
PRINTED = {"image_0002.jpg": "0.7980", "image_0016.jpg": "0.7899", "image_0090.jpg": "0.9472"}
"""What the tutorial of the five cars prints, which counts inclusive pixels."""

TYPED = [
    ((39, 63, 203, 112), (54, 66, 198, 114), "0.7980"),
    ((49, 75, 203, 125), (42, 78, 186, 126), "0.7899"),
    ((31, 69, 201, 125), (18, 63, 235, 135), "0.6125"),
    ((50, 72, 197, 121), (54, 72, 198, 120), "0.9472"),
    ((35, 51, 196, 110), (36, 60, 180, 108), "0.7310"),
]


def plain(first: Any, second: Any, offset: float) -> list[float]:
    """IoU, GIoU, DIoU, CIoU and IoF of two boxes, x1, y1, x2, y2, by the formulas of the papers."""
    (a, b, c, d), (e, f, g, h) = first, second
    width, height = min(c, g) - max(a, e) + offset, min(d, h) - max(b, f) + offset
    shared = width * height if width > 0 and height > 0 else 0.0
    w1, h1, w2, h2 = c - a + offset, d - b + offset, g - e + offset, h - f + offset
    union = w1 * h1 + w2 * h2 - shared
    iou = shared / union
    around = max(c, g) - min(a, e) + offset, max(d, h) - min(b, f) + offset
    hull = around[0] * around[1]
    apart = ((a + c - e - g) / 2) ** 2 + ((b + d - f - h) / 2) ** 2
    diou = iou - apart / (around[0] ** 2 + around[1] ** 2)
    v = 4 / math.pi**2 * (math.atan2(w2, h2) - math.atan2(w1, h1)) ** 2
    ciou = diou - (v * v / (1 - iou + v) if v else 0.0)
    return [iou, iou - (hull - union) / hull, diou, ciou, shared / (w2 * h2)]


# ---------------------------------------------------------------- two boxes that are typed


def test_the_two_squares(run: Run) -> None:
    value = run.json("iou", 0, 0, 10, 10, 5, 5, 15, 15)
    assert (value["intersection"], value["union"], value["IoU"]) == (25, 175, 25 / 175)
    assert value["IoF"] == 0.25
    assert "0.1429" in run("iou", 0, 0, 10, 10, 5, 5, 15, 15).out


@pytest.mark.parametrize(("truth", "found", "printed"), TYPED)
def test_the_five_cars(truth: tuple[int, ...], found: tuple[int, ...], printed: str, run: Run) -> None:
    out = run("iou", *truth, *found, "--pixels", "inclusive").out.splitlines()
    head, cells = out[-2].split(), out[-1].split()
    assert cells[head.index("IoU")] == printed


@pytest.mark.parametrize(
    ("pixels", "printed"), [("inclusive", "0.15"), ("continuous", "0.14"), (None, "0.14")]
)
def test_conventions_have_names(pixels: str | None, printed: str, run: Run) -> None:
    named = [] if pixels is None else ["--pixels", pixels]
    value = run.json("iou", 50, 50, 150, 150, 100, 100, 200, 200, *named)
    assert f"{value['IoU']:.2f}" == printed
    offset = 1.0 if pixels == "inclusive" else 0.0
    expected = plain((50, 50, 150, 150), (100, 100, 200, 200), offset)
    assert [value[name] for name in ("IoU", "GIoU", "DIoU", "CIoU", "IoF")] == pytest.approx(
        expected, rel=1e-14
    )


def test_the_protocol_says_what_corners_are(run: Run) -> None:
    by_protocol = run.json("iou", *TYPED[0][0], *TYPED[0][1], "--protocol", "voc2012")
    assert by_protocol == run.json("iou", *TYPED[0][0], *TYPED[0][1], "--pixels", "inclusive")


@pytest.mark.parametrize(("found", "printed"), [((1, 1, 4, 4), "0.800000"), ((2, 2, 4, 4), "0.500000")])
def test_corner_and_sides(found: tuple[int, ...], printed: str, run: Run) -> None:
    value = run.json("iou", 1, 1, 5, 4, *found, "--box-format", "xywh")
    assert f"{value['IoU']:.6f}" == printed


def test_fractions(run: Run) -> None:
    typed = ["iou", 0.1, 0.2, 0.5, 0.6, 0.3, 0.2, 0.7, 0.9, "--box-format", "xyxyn"]
    known = run.json(*typed, "--image-sizes", "640x480")
    pixels = run.json("iou", 64, 96, 320, 288, 192, 96, 448, 432)
    names = ("intersection", "union", "IoU", "GIoU", "DIoU", "CIoU", "IoF")
    assert [known[name] for name in names] == pytest.approx([pixels[name] for name in names], rel=1e-12)
    unknown = run.json(*typed)
    assert [unknown[name] for name in ("IoU", "GIoU", "IoF")] == pytest.approx(
        [pixels[name] for name in ("IoU", "GIoU", "IoF")], rel=1e-12
    )
    assert unknown["DIoU"] is unknown["CIoU"] is None
    assert "--image-sizes WxH" in run(*typed).out


def test_undefined_is_no_number(run: Run) -> None:
    two_points = run.json("iou", 1, 1, 1, 1, 5, 5, 5, 5)
    assert [two_points[name] for name in ("IoU", "GIoU", "DIoU", "CIoU", "IoF")] == [None] * 5
    point_inside = run.json("iou", 0, 0, 9, 9, 5, 5, 5, 5)
    assert (point_inside["IoU"], point_inside["IoF"]) == (0.0, None)


def test_numbers_below_zero(run: Run) -> None:
    assert run.json("iou", -5, -5, 5, 5, 0, 0, 10, 10)["IoU"] == 25 / 175


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("1 2 3", "boxscore iou must get two boxes with four numbers each. Got 3 numbers; for example: "),
        ("0 0 1 1 0 0 1 inf", "a box must be finite"),
        ("0 0 1 1 5 5 2 9", "the second box must have a width >= 0. Got -3; are these x,y,w,h?"),
        ("0 0 1 1 0 0 1 1 --image-sizes sizes.csv", "--image-sizes "),
        (
            "0 0 1 1 0 0 1 1 --box-format xyxyn --pixels inclusive",
            "--image-sizes must be set for inclusive pixels with fractions. Got none; for example 640x480.",
        ),
        ("gt.json dt.json more.json", "iou does not take the argument 'more.json'."),
        ("", "iou needs --ground-truth/--gt and --detections/--dt."),
    ],
)
def test_what_is_refused(arguments: str, message: str, run: Run) -> None:
    assert message in run.error("iou", *arguments.split())


# ---------------------------------------------------------------- files


def test_the_five_cars_in_files(run: Run) -> None:
    named = ["--gt", CARS / "instances.json", "--dt", CARS / "detections.json", "--output", "csv"]
    rows = list(csv.DictReader(io.StringIO(run("iou", *named, "--pixels", "inclusive").out)))
    printed = {row["file_name"]: f"{float(row['IoU']):.4f}" for row in rows}
    assert {name: printed[name] for name in PRINTED} == PRINTED
    assert list(printed.values()) == [one for *_, one in TYPED]
    expected = json.loads((CARS / "expected.json").read_text())["overlaps"]
    for pixels in ("inclusive", "continuous"):
        rows = list(csv.DictReader(io.StringIO(run("iou", *named, "--pixels", pixels).out)))
        assert [float(row["IoU"]) for row in rows] == [one[f"iou_{pixels}"] for one in expected]


def test_boxes_of_another_form(tmp_path: Path, run: Run) -> None:
    for name, header in (("gt", "image,class,a,b,c,d"), ("dt", "image,class,score,a,b,c,d")):
        (tmp_path / f"{name}.csv").write_text(
            f"{header}\n" + ("x,car,0,0,10,10\n" if name == "gt" else "x,car,.9,5,5,10,10\n")
        )
    columns = ["--columns", "x1=a", "y1=b", "x2=c", "y2=d"]
    value = run.json("iou", tmp_path / "gt.csv", tmp_path / "dt.csv", *columns, "--box-format", "xywh", "-q")
    assert [row["IoU"] for row in value["rows"]] == [25 / 175]


# ---------------------------------------------------------------- the table


BOX = st.tuples(*[st.integers(0, 6)] * 2, *[st.integers(1, 6)] * 2)


@pytest.mark.long
@given(
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from("ab"), BOX), min_size=1, max_size=7),
    st.lists(st.tuples(st.integers(1, 2), st.sampled_from("ab"), BOX, st.integers(1, 3)), max_size=9),
    st.sampled_from([0.0, 1.0]),
)
def test_every_pair_as_a_plain_loop_has_it(objects: Any, detections: Any, offset: float) -> None:
    def corners(box: tuple[int, ...]) -> tuple[int, ...]:
        return (box[0], box[1], box[0] + box[2], box[1] + box[3])

    truth = boxscore.GroundTruth.from_arrays(
        [row[0] for row in objects], [row[1] for row in objects], [corners(row[2]) for row in objects],
        images=[1, 2], categories=["a", "b"],
    )  # fmt: skip
    found = boxscore.Detections.from_arrays(
        [row[0] for row in detections],
        [row[1] for row in detections],
        np.array([corners(row[2]) for row in detections], dtype=float).reshape(-1, 4),
        [row[3] / 4 for row in detections],
        images=[1, 2],
        categories=["a", "b"],
    )
    protocol = {"extends": "coco", "boxes": {"pixel_offset": offset}}
    evaluation = boxscore.evaluate(truth, found, protocol=protocol, digest=False)
    expected = {
        (t, d): plain(corners(one[2]), corners(other[2]), offset)
        for t, one in enumerate(objects)
        for d, other in enumerate(detections)
        if one[:2] == other[:2]
    }
    table = pair_overlaps(evaluation, which="all")
    keys = list(zip(table.truth.tolist(), table.detection.tolist(), strict=True))
    assert sorted(keys) == sorted(expected)
    for at, key in enumerate(keys):
        assert [table.overlaps[name][at] for name in table.overlaps] == pytest.approx(
            expected[key], rel=1e-12, abs=1e-12
        )
    some = pair_overlaps(evaluation)
    pairs = zip(some.truth.tolist(), some.detection.tolist(), strict=True)
    assert sorted(pairs) == sorted(key for key in expected if expected[key][0] > 0)
    matched = pair_overlaps(evaluation, which="matched")
    assert matched.matched.all()
    frame = evaluation.matches
    frame = frame[frame["iou"].notna()]
    assert sorted(matched.detection.tolist()) == frame.index.tolist()
    by_detection = dict(zip(matched.detection.tolist(), matched.overlaps["IoU"].tolist(), strict=True))
    assert [by_detection[row] for row in frame.index] == frame["iou"].tolist()
    assert table.matched.sum() == some.matched.sum() == len(matched.truth)


def test_rows_go_by_image_class_object_and_falling_overlap() -> None:
    frame = pair_overlaps(sample()).to_frame()
    again = frame.sort_values(
        ["image_id", "annotation_id", "IoU"], ascending=[True, True, False], kind="stable"
    )
    for _, group in frame.groupby(["image_id", "annotation_id"], sort=False):
        assert group["IoU"].is_monotonic_decreasing
    assert sorted(frame.index) == sorted(again.index)


def sample(**options: Any) -> boxscore.Evaluation:
    truth = boxscore.load_ground_truth(GT)
    return boxscore.evaluate(truth, boxscore.load_detections(DT, truth), digest=False, **options)


@pytest.mark.parametrize("pairs", WHICH_PAIRS)
def test_a_crowd_has_an_iou_and_is_matched_by_its_iof(pairs: Any) -> None:
    evaluation = sample()
    table = pair_overlaps(evaluation, which=pairs)
    crowd = evaluation.ground_truth.crowd[table.truth] & table.matched
    assert crowd.any()
    outcomes = evaluation.outcomes.iou[table.detection]
    np.testing.assert_allclose(table.overlaps["IoF"][crowd], outcomes[crowd], rtol=1e-14)
    assert (table.overlaps["IoU"][crowd] < outcomes[crowd]).any()


@pytest.mark.parametrize("pairs", WHICH_PAIRS)
def test_masks(pairs: Any) -> None:
    masks = np.zeros((3, 12, 12), dtype=bool)
    masks[0, 2:8, 2:8], masks[1, 4:10, 2:8], masks[2, 2:3, 2:3] = True, True, True
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, masks=masks[:1])
    found = boxscore.Detections.from_arrays([1, 1], ["a", "a"], None, [0.9, 0.8], masks=masks[1:])
    protocol = {"extends": "coco-segm", "matching": {"iou_thresholds": [0.5]}, "summary": [{"key": "AP"}]}
    table = pair_overlaps(boxscore.evaluate(truth, found, protocol=protocol, digest=False), which=pairs)
    assert list(table.overlaps) == ["IoU", "IoF"]
    iou, iof = boxscore.mask_iou(masks[1:], masks[:1])[:, 0], boxscore.mask_iof(masks[1:], masks[:1])[:, 0]
    assert table.overlaps["IoU"].tolist() == iou[table.detection].tolist()
    assert table.overlaps["IoF"].tolist() == iof[table.detection].tolist()
    assert sorted(table.detection.tolist()) == ([0] if pairs == "matched" else [0, 1])


def test_fractions_of_unknown_size_have_no_distances() -> None:
    boxes = np.array([[0.1, 0.1, 0.5, 0.5]])
    measured = measures_of_boxes(boxes, boxes, in_pixels=False)
    assert [measured[name].tolist() for name in ("IoU", "GIoU", "IoF")] == [[1.0]] * 3
    assert np.isnan(measured["DIoU"]).all()
    assert np.isnan(measured["CIoU"]).all()


def test_which_pairs_is_checked() -> None:
    with pytest.raises(boxscore.InputError, match="which must be one of 'overlapping', 'matched', 'all'"):
        pair_overlaps(sample(), which="some")  # type: ignore[arg-type]


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.diagnostics.overlaps.MOST_HELD", 100)
    with pytest.raises(boxscore.InputError, match="pairs of one class in one image must be at most 100"):
        pair_overlaps(sample(), which="all")


def test_undefined_overlaps_of_files() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "a"], [[2, 2, 2, 2], [0, 0, 4, 4]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[3, 3, 3, 3]], [0.5])
    table = pair_overlaps(boxscore.evaluate(truth, found, digest=False), which="all")
    assert np.isnan(table.overlaps["IoU"]).tolist() == [True, False]
    assert np.isnan(table.overlaps["IoF"]).all()
    assert len(pair_overlaps(boxscore.evaluate(truth, found, digest=False)).truth) == 0
