"""Semantic IoU: against a plain oracle, every tool's reading, and what is refused."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boxscore import InputError, ProtocolError, SemanticIoU, semantic_iou
from boxscore.extensions.label_maps.counting import count_pairs
from boxscore.label_maps import load_panoptic_rules, load_semantic_rules, semantic_rule_names
from oracles.label_maps import semantic_metrics
from support.each import each
from support.examples import examples

WRONG = {"extends": "plain", "prediction_outside": "wrong"}


@st.composite
def pairs_of_maps(draw: st.DrawFn) -> tuple[Any, Any]:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    labels = st.sampled_from([0, 1, 2, 3, 255])
    maps = [
        np.array(draw(st.lists(labels, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
        for _ in range(2)
    ]
    kind = draw(st.sampled_from([np.uint8, np.int64, np.uint16, np.int32]))
    return maps[0].astype(kind).reshape(shape), maps[1].reshape(shape)


@settings(max_examples=examples(40))
@given(st.lists(pairs_of_maps(), min_size=1, max_size=3), st.sampled_from(["truth", "union", "all"]))
def test_the_oracle(data: list[Any], averaged: str) -> None:
    pixels = [pair for t, p in data for pair in zip(t.ravel().tolist(), p.ravel().tolist(), strict=True)]
    expected = semantic_metrics(pixels, [0, 1, 2, 3, 4], ignored={255}, averaged=averaged)
    truth, prediction = zip(*data, strict=True)
    rules = WRONG | {"averaged": averaged}
    if expected["pAcc"] is None:
        with pytest.raises(InputError, match="the truth must have a pixel of a class"):
            semantic_iou(truth, prediction, classes=5, rules=rules)
        return
    result = semantic_iou(truth, prediction, classes=5, rules=rules)
    assert result.metrics == pytest.approx(
        {name: float(value or 0) for name, value in expected.items()}, abs=1e-15
    )
    assert result.confusion.sum() == sum(one != 255 for one, _ in pixels)


@settings(max_examples=examples(40))
@given(st.lists(pairs_of_maps(), min_size=2, max_size=5))
def test_parts_in_any_order_make_the_whole(data: list[Any]) -> None:
    data = [*data, (np.array([[0]]), np.array([[1]]))]
    whole = semantic_iou(*zip(*data, strict=True), classes=4, rules=WRONG)
    parts = [SemanticIoU(whole.rules, whole.given, (), semantic_iou([], [], classes=4).counts)]
    for number in reversed(range(len(data))):
        t, p = data[number]
        if (t != 255).any():
            parts.append(semantic_iou(t, p, classes=4, rules=WRONG, images=[number]))
    merged = SemanticIoU.merge(parts)
    assert merged.metrics == whole.metrics
    assert np.array_equal(merged.confusion, whole.confusion)


@settings(max_examples=examples(40))
@given(
    st.integers(1, 30).flatmap(
        lambda size: st.tuples(
            *[st.lists(st.sampled_from([0, 1, 254, 255, 65_535, 2**24 - 1]), min_size=size, max_size=size)]
            * 2
        )
    )
)
def test_pixels_are_counted_whatever_the_labels(maps: Any) -> None:
    truth, prediction = (np.array([values], dtype=np.uint32) for values in maps)
    pairs = count_pairs(truth, prediction, name="a map")
    counts = dict(
        zip(zip(pairs.truth.tolist(), pairs.prediction.tolist(), strict=True), pairs.pixels, strict=True)
    )
    values = list(zip(*maps, strict=True))
    assert counts == {pair: values.count(pair) for pair in values}
    assert list(counts) == sorted(counts)


@each([np.int8, np.int16, np.int64])
def test_labels_below_zero(kind: Any) -> None:
    truth = np.array([[-100, 27, 0, 0]], dtype=kind)
    rules = {"extends": "plain", "ignored_labels": [-100]}
    result = semantic_iou(truth, np.array([[0, 27, 0, 27]], dtype=kind), rules=rules)
    assert result.classes.labels == (0, 27)
    assert result.metrics["pAcc"] == pytest.approx(2 / 3)


# ---------------------------------------------------------------- the readings


TRUTH = np.array([[0, 0, 0, 0, 1, 1, 1, 255, 255, 2]])
PREDICTION = np.array([[0, 0, 3, 255, 1, 1, 0, 1, 4, 2]])


@each(
    [  # IoU of 0: 2 of 5; of 1: 2 of 3; of 2: 1; of 3, only predicted: 0; 4 is nowhere that counts
        ("union", (2 / 5 + 2 / 3 + 1 + 0) / 4),
        ("truth", (2 / 5 + 2 / 3 + 1) / 3),
        ("all", (2 / 5 + 2 / 3 + 1 + 0 + 0) / 5),
    ]
)
def test_which_classes_are_in_the_mean(averaged: str, value: float) -> None:
    result = semantic_iou(TRUTH, PREDICTION, classes=5, rules={"extends": "plain", "averaged": averaged})
    assert result.metrics["mIoU"] == pytest.approx(value)
    assert result.metrics["mAcc"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 3)
    assert result.metrics["pAcc"] == pytest.approx(5 / 8)
    assert result.to_frame().in_mean.sum() == {"union": 4, "truth": 3, "all": 5}[averaged]


def test_one_count_is_read_by_every_rule() -> None:
    result = semantic_iou(TRUTH, PREDICTION, classes=5, rules="mmseg")
    assert result.read_as("detectron2").metrics["mIoU"] == pytest.approx((2 / 5 + 2 / 3 + 1) / 3)
    assert result.read_as("mmseg").metrics == result.metrics
    named = result.read_as("plain", classes={0: "a", 1: "b", 2: "c", 3: "d", 4: "e"})
    assert named.classes.names == ("a", "b", "c", "d", "e")


def test_labels_seen_are_the_classes_where_nobody_says() -> None:
    result = semantic_iou(TRUTH, PREDICTION)
    assert result.classes.labels == (0, 1, 2, 3, 4)
    with pytest.raises(
        InputError, match=r"classes must be given\. Got none; counting absent classes as IoU 0"
    ):
        semantic_iou(TRUTH, PREDICTION, rules={"extends": "plain", "averaged": "all"})


def test_reduced_labels() -> None:
    truth = np.array([[0, 1, 2, 255]], dtype=np.uint8)
    prediction = np.array([[0, 0, 1, 1]], dtype=np.uint8)
    rules = {"extends": "mmseg", "reduced": "truth"}
    result = semantic_iou(truth, prediction, classes=2, rules=rules)
    assert result.confusion.tolist() == [[1, 0, 0], [0, 1, 0]]
    both = semantic_iou(truth, truth, classes=2, rules={"extends": "mmseg", "reduced": "both"})
    assert both.metrics["mIoU"] == 1
    assert both.signature.startswith(
        "boxscore|semantic|mmseg+|ignore:255|outside:wrong|reduced:both|mean:union"
    )


def test_coco_stuff_reads_nothing_as_the_last_class() -> None:
    truth = np.array([[183, 183, 92, 0, 91]])
    prediction = np.array([[0, 183, 92, 92, 92]])
    result = semantic_iou(truth, prediction, rules="coco-stuff")
    assert result.metrics["pAcc"] == 1
    rules = {"extends": "coco-stuff", "relabeled_predictions": []}
    assert semantic_iou(truth, prediction, rules=rules).metrics["pAcc"] == pytest.approx(2 / 3)


def test_cityscapes_classes_are_ids() -> None:
    truth = np.array([[7, 8, 0, 4]])
    result = semantic_iou(truth, np.array([[7, 0, 7, 8]]), rules="cityscapes")
    assert result.metrics["mIoU"] == 0.5
    assert result.classes.names[:2] == ("road", "sidewalk")
    with pytest.raises(InputError, match="trainIds"):
        semantic_iou(np.array([[7, 255]]), np.array([[7, 7]]), rules="cityscapes")


def example(count: int = 5) -> SemanticIoU:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, (count, 6, 6))
    return semantic_iou(truth, np.where(generator.random((count, 6, 6)) < 0.3, 0, truth), classes=5)


def test_tables_and_intervals() -> None:
    result = example()
    images = result.per_image_frame()
    assert images.mIoU.is_monotonic_increasing
    assert images.pixels.sum() == result.confusion.sum() == 180
    worst = images.image_id[0]
    part = semantic_iou(*_maps_of(worst), classes=5)
    assert part.metrics == dict(images.loc[0, ["mIoU", "fwIoU", "mAcc", "pAcc"]])
    assert result.bootstrap_intervals(resamples=5).to_frame().low.isna().all()  # of five images
    result = example(10)
    frame = result.bootstrap_intervals(resamples=50).to_frame()
    assert ((frame.low <= frame.value) & (frame.value <= frame.high)).all()
    assert frame.value.tolist() == list(result.metrics.values())
    assert pickle.loads(pickle.dumps(result)).metrics == result.metrics
    assert repr(result).startswith("SemanticIoU of 10 images\nmIoU ")


def _maps_of(image: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, (5, 6, 6))
    return truth[image], np.where(generator.random((5, 6, 6)) < 0.3, 0, truth)[image]


def test_what_a_map_may_be() -> None:
    one = semantic_iou(TRUTH, PREDICTION, classes=5)
    for truth, prediction in [
        (TRUTH.tolist(), PREDICTION.tolist()),
        (TRUTH[None], PREDICTION[None]),
        ([TRUTH], [PREDICTION]),
        ((array for array in [TRUTH]), iter([PREDICTION])),
        ([TRUTH.tolist()], [PREDICTION.tolist()]),
    ]:
        assert semantic_iou(truth, prediction, classes=5).metrics == one.metrics


def test_nothing_at_all_is_nan() -> None:
    assert all(map(math.isnan, semantic_iou([], []).metrics.values()))
    with pytest.raises(InputError, match="a bootstrap must have images to draw from"):
        semantic_iou([], []).bootstrap_intervals()


# ---------------------------------------------------------------- what is refused


@each(
    [
        (
            {"prediction": PREDICTION[:, 1:]},
            "the prediction must be as large as the truth (10 x 1). Got 9 x 1 in prediction of image 0; "
            "resize it with nearest-neighbor interpolation.",
        ),
        (
            {"classes": 2},
            "the truth must have labels that are classes or ignored. Got label 2 on 1 pixels in image 0; "
            "are these other classes, trainIds instead of ids, or another ignore label?",
        ),
        (
            {"classes": 3},
            "the prediction must have labels that are classes or ignored. Got label 3 on 1 pixels in "
            "image 0; are these other classes, trainIds instead of ids, or another ignore label?",
        ),
        (
            {"rules": "coco-stuff"},
            "the truth must have a pixel of a class. Got the labels 0, 1, 2, 255; the rules 'coco-stuff' define other classes; pass yours with classes.",
        ),
        (
            {"rules": "mmsegg"},
            "rules must be a known name or a .toml file. Got 'mmsegg'; did you mean 'mmseg'?",
        ),
        (
            {"truth": TRUTH * 1.0},
            "the truth must be whole numbers. Got dtype float64 in truth of image 0; take the argmax "
            "over classes first.",
        ),
        (
            {"truth": TRUTH + 70_000},
            "the truth must have labels in [-32768, 65535]. Got 70255 in truth of image 0.",
        ),
        (
            {"truth": TRUTH[0]},
            "the truth must have shape [H, W], not empty. Got shape [] in truth of image 0.",
        ),
        (
            {"truth": [TRUTH, TRUTH], "prediction": [PREDICTION]},
            "prediction must be as long as truth. Got length 1, and truth has more.",
        ),
        ({"images": []}, "images must be as long as truth. Got length 0, and truth has more."),
        (
            {"truth": [TRUTH] * 2, "prediction": [PREDICTION] * 2, "images": ["a", "a"]},
            "images must be unique. Got 'a' twice.",
        ),
        (
            {"classes": 2.5},
            "classes must be their number, a list of names, or a mapping from label to name. Got a float.",
        ),
        ({"classes": {}}, "classes must hold at least one class. Got none."),
    ]
)
def test_what_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        semantic_iou(**{"truth": TRUTH, "prediction": PREDICTION, **change})
    assert str(error.value) == message


def test_a_parts_rules_and_classes_must_be_those_of_the_others() -> None:
    other = example(1).read_as("detectron2")
    for wrong in (other, example(1)):
        with pytest.raises(InputError, match=r"must be unique|same rules and classes"):
            example(1) + wrong


# ---------------------------------------------------------------- rules


def test_every_shipped_rule_loads_and_has_its_own_signature() -> None:
    rules = [load_semantic_rules(name) for name in semantic_rule_names()]
    names = {"cityscapes", "cityscapes-instances", "coco-stuff", "detectron2", "mmseg", "plain"}
    assert {rule.name for rule in rules} == names
    assert len({rule.signature() for rule in rules}) == len(rules)
    assert load_semantic_rules("mmsegmentation") == load_semantic_rules("mmseg")
    assert load_panoptic_rules("coco").signature().startswith("boxscore|panoptic|panopticapi|area:table|")
    assert "ignore:-1..6+9..10+14..16+18+29..30" in load_semantic_rules("cityscapes").signature()


def test_own_rules_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "plain"\nignored_labels = [0]\n', encoding="utf-8")
    rules = load_semantic_rules(path)
    assert (rules.name, rules.ignored_labels, rules.averaged) == ("mine", (0,), "union")


@each(
    [
        ({"averaged": "some"}, "averaged must be one of 'truth', 'union', 'all'. Got 'some'."),
        ({"average": "all"}, "a key must be known. Got average; did you mean 'averaged'?"),
        ({"classes": [1, 1]}, "classes must be unique. Got [1, 1]."),
        ({"classes": [1], "class_names": ["a", "b"]}, "class_names must be as long as classes (1). Got 2."),
        ({"relabeled_predictions": [3]}, "relabeled_predictions must be pairs [from, to]. Got 3."),
        ({"ignored_labels": ["x"]}, "ignored_labels must be a whole number >= -2147483648. Got 'x'."),
        ({"extends": 3}, "extends must be the name of rules. Got 3."),
    ]
)
def test_rules_that_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError) as error:
        load_semantic_rules(values)
    assert str(error.value) == message
