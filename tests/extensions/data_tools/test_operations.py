"""Data sets filtered, merged, split, sampled and counted, against the obvious way to do it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.data.alignment import select
from support.samples import SHAPES

TRUTH = SHAPES / "instances.json"


@pytest.fixture(scope="module")
def truth() -> boxscore.GroundTruth:
    return boxscore.load_ground_truth(TRUTH)


@pytest.fixture(scope="module")
def detections(truth: boxscore.GroundTruth) -> boxscore.Detections:
    return boxscore.load_detections(TRUTH.with_name("detections.json"), truth)


def rows(table: boxscore.GroundTruth) -> list[tuple[object, ...]]:
    """The objects of a table by what they are, whatever number they have."""
    names = table.categories.names[table.category].tolist()
    images = table.images.file_names[table.image].tolist()
    return list(zip(images, names, map(tuple, table.boxes.tolist()), table.area.tolist(), strict=True))


def test_filter_is_what_evaluate_selects(
    truth: boxscore.GroundTruth, detections: boxscore.Detections
) -> None:
    images, classes = truth.images.ids[::3].tolist(), ["circle", 5]
    ours = boxscore.filter_objects(truth, images=images, classes=classes)
    theirs, _ = select(truth, detections, images=images, classes=classes)
    assert rows(ours) == rows(theirs)
    assert ours.images.ids.tolist() == theirs.images.ids.tolist()
    assert ours.categories.names.tolist() == theirs.categories.names.tolist()


def test_filter_by_area_crowds_and_emptiness(
    truth: boxscore.GroundTruth, detections: boxscore.Detections
) -> None:
    small = boxscore.filter_objects(truth, area=(0, 1024), crowd=False, without_empty=True)
    expected = [
        row for row, crowd in zip(rows(truth), truth.crowd, strict=True) if row[3] <= 1024 and not crowd
    ]
    assert rows(small) == expected
    assert {*small.images.file_names.tolist()} == {row[0] for row in expected}
    assert int(boxscore.filter_objects(truth, crowd=True).crowd.sum()) == 5
    boxes = boxscore.filter_objects(detections, area=(100, 200))
    areas = detections.sizes.prod(axis=1)
    assert len(boxes) == int(((areas >= 100) & (areas <= 200)).sum())
    with pytest.raises(boxscore.InputError, match="crowd must be used with ground truth"):
        boxscore.filter_objects(detections, crowd=True)
    with pytest.raises(boxscore.InputError, match="a chosen class must be in the data set"):
        boxscore.filter_objects(truth, classes=["circel"])


@settings(max_examples=20)
@given(
    count=st.integers(1, 40),
    shares=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_split_keeps_every_image_once(count: int, shares: list[int], seed: int) -> None:
    truth = boxscore.GroundTruth.from_arrays(range(count), ["a"] * count, [[0, 0, 9, 9]] * count)
    wanted = {f"p{number}": share / sum(shares) for number, share in enumerate(shares)}
    parts = boxscore.split_images(truth, wanted, seed=seed)
    images = [identifier for part in parts.values() for identifier in part.images.ids.tolist()]
    assert sorted(images) == truth.images.ids.tolist()
    assert sum(map(len, parts.values())) == len(truth)
    for name, part in parts.items():
        assert abs(len(part.images) - wanted[name] * count) <= 1
        assert part.images.ids[part.image].tolist() == (part.ids - 1).tolist()


def test_sides_are_split_alike(truth: boxscore.GroundTruth, detections: boxscore.Detections) -> None:
    shares = {"train": 0.5, "val": 0.5}
    ours, theirs = (boxscore.split_images(table, shares, seed=4) for table in (truth, detections))
    for name in shares:
        assert ours[name].images.ids.tolist() == theirs[name].images.ids.tolist()
    assert boxscore.split_images(truth, shares, seed=5)["val"].images.ids.tolist() != (
        ours["val"].images.ids.tolist()
    )
    sampled = boxscore.sample_images(truth, 7, seed=4)
    assert len(sampled.images) == 7
    assert rows(sampled) == [row for row in rows(truth) if row[0] in {*sampled.images.file_names.tolist()}]
    with pytest.raises(boxscore.InputError, match="the number of images to draw"):
        boxscore.sample_images(truth, 25)
    with pytest.raises(boxscore.InputError, match="add up to 1"):
        boxscore.split_images(truth, {"train": 0.5})


def test_remapped_classes(truth: boxscore.GroundTruth) -> None:
    names = {"circle": "round", "moon": "round", "hexagon": "square", "star": None, 9: "plus"}
    ours = boxscore.remap_classes(truth, names)
    by_name = {"circle": "round", "hexagon": "square", "cross": "plus"}
    expected = [
        (row[0], by_name.get(str(row[1]), row[1]), *row[2:]) for row in rows(truth) if row[1] != "star"
    ]
    assert rows(ours) == expected
    assert dict(zip(ours.categories.ids.tolist(), ours.categories.names.tolist(), strict=True)) == {
        1: "round",
        2: "square",
        4: "triangle",
        9: "plus",
    }
    by_id = boxscore.remap_classes(truth, {1: 13, "star": 99})
    assert by_id.categories.names.tolist() == ["square", "triangle", "99", "hexagon", "cross", "moon"]
    swapped = boxscore.remap_classes(truth, {"circle": "square", "square": "circle"})
    assert swapped.categories.names.tolist()[:2] == ["square", "circle"]
    assert swapped.category.tolist() == truth.category.tolist()


def test_merged_data_sets(truth: boxscore.GroundTruth, detections: boxscore.Detections) -> None:
    """Parts of a split are the whole again; a data set beside itself is twice the same."""
    parts = boxscore.split_images(truth, {"a": 0.3, "b": 0.7})
    whole = boxscore.merge_tables(list(parts.values()))
    assert Counter(rows(whole)) == Counter(rows(truth))
    assert sorted(whole.ids.tolist()) == sorted(truth.ids.tolist())
    assert whole.images.ids.tolist() == truth.images.ids.tolist()
    twice = boxscore.merge_tables([truth, truth])
    assert Counter(rows(twice)) == Counter([*rows(truth), *rows(truth)])
    assert len(twice.images) == 48
    assert twice.categories.names.tolist() == truth.categories.names.tolist()
    assert twice.ids.tolist() == list(range(1, 227))
    assert twice.masks is not None
    assert twice.masks.area.sum() == 2 * truth.masks.area.sum()  # type: ignore[union-attr]
    both = boxscore.merge_tables([detections, detections])
    once = boxscore.evaluate(truth, detections).metrics["AP"]
    assert boxscore.evaluate(twice, both).counts["images"] == 48
    assert 0 < boxscore.evaluate(twice, both).metrics["AP"] <= 1
    assert 0 < once <= 1


def test_merged_classes_are_united_by_name() -> None:
    box = [[0, 0, 9, 9]]
    first = boxscore.GroundTruth.from_arrays([1], [1], box, categories={1: "cat", 2: "dog"})
    second = boxscore.GroundTruth.from_arrays([1], [1], box, categories={1: "dog", 2: "cow"})
    merged = boxscore.merge_tables([first, second])
    assert dict(zip(merged.categories.ids.tolist(), merged.categories.names.tolist(), strict=True)) == {
        1: "cat",
        2: "dog",
        3: "cow",
    }
    assert merged.categories.names[merged.category].tolist() == ["cat", "dog"]
    assert merged.images.ids.tolist() == [1, 2]
    texts = boxscore.GroundTruth.from_arrays(["a"], ["cat"], box)
    assert boxscore.merge_tables([texts, texts]).images.ids.tolist() == ["a", "a-2"]
    with_column = boxscore.GroundTruth.from_arrays([5], ["cat"], box, columns={"night": [True]})
    with pytest.warns(boxscore.BoxscoreWarning, match="night"):
        boxscore.merge_tables([texts, with_column])


def test_statistics(truth: boxscore.GroundTruth, detections: boxscore.Detections) -> None:
    statistics = boxscore.table_statistics(truth)
    assert statistics.counts == {
        "images": 24,
        "images_without_objects": 2,
        "objects": 113,
        "classes": 7,
        "classes_without_objects": 2,
        "crowd": 5,
        "difficult": 0,
        "ignore": 0,
    }
    names = truth.categories.names[truth.category].tolist()
    assert dict(zip(statistics.per_class["class"], statistics.per_class["objects"], strict=True)) == {
        "cross": 0,
        "moon": 0,
        **Counter(names),
    }
    stars = {image for image, name in zip(truth.image.tolist(), names, strict=True) if name == "star"}
    assert statistics.per_class["images"][3] == len(stars)
    assert statistics.sizes["50%"][0] == np.median(truth.sizes[:, 0])
    assert statistics.to_dict()["per_class"][0]["median_area"] == np.median(truth.area[truth.category == 0])
    assert boxscore.table_statistics(detections).counts["detections"] == 282
    nothing = boxscore.GroundTruth.from_arrays([], [], np.empty((0, 4)))
    assert np.isnan(boxscore.table_statistics(nothing).sizes["50%"]).all()
