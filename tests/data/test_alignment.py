"""Bringing tables together: one vocabulary, chosen images and classes, pooled classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, InputError
from boxscore.data.alignment import align, pool_classes, select
from support.quiet import quiet

BOX = [0, 0, 4, 4]


def truth() -> GroundTruth:
    return GroundTruth.from_arrays(
        [3, 1, 3, 2], [7, 7, 5, 9], [BOX] * 4, images=[1, 2, 3, 4], categories={5: "cat", 7: "dog", 9: "cow"}
    )


def detections(classes: Any = (9, 5, 7), images: Any = (3, 3, 1)) -> Detections:
    return Detections.from_arrays(list(images), list(classes), [BOX] * 3, [0.1, 0.2, 0.3])


def test_align_renumbers_into_the_ground_truths_vocabularies() -> None:
    aligned = align(detections(), truth())
    assert aligned.images is not None
    assert aligned.images.ids.tolist() == [1, 2, 3, 4]
    assert aligned.image.tolist() == [2, 2, 0]
    assert aligned.category.tolist() == [2, 0, 1]
    assert aligned.scores.tolist() == [0.1, 0.2, 0.3]


def test_align_finds_classes_by_name() -> None:
    assert align(detections(classes=("cow", "cat", "dog")), truth()).category.tolist() == [2, 0, 1]


def test_unknown_classes_are_left_out_with_their_count_and_names() -> None:
    with pytest.warns(BoxscoreWarning) as caught:
        aligned = align(detections(classes=("unicorn", 5, "yeti")), truth())
    assert [str(warning.message) for warning in caught] == [
        "arrays: ignoring 2 detections of 2 classes that the ground truth does not have: unicorn, yeti."
    ]
    assert aligned.left_out == {"unicorn": 1, "yeti": 1}
    assert aligned.scores.tolist() == [0.2]
    with pytest.warns(BoxscoreWarning):
        counts = boxscore.evaluate(truth(), detections(classes=("unicorn", 5, "yeti"))).counts
    assert (counts["detections"], counts["left_out"]) == (1, 2)


def test_only_ten_unknown_classes_are_named() -> None:
    names = [f"class {number:02d}" for number in range(12)]
    many = Detections.from_arrays([1] * 12, names, [BOX] * 12, [0.5] * 12)
    with pytest.warns(BoxscoreWarning, match=r": class 00, .*, class 09, \.\.\.\.$"):
        align(many, truth())


def test_unknown_images_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        align(detections(images=(3, 8, 9)), truth())
    assert str(caught.value) == (
        "image_id must be in the ground truth. Got 8 in row 1 of arrays; "
        "2 images of these detections are not listed, perhaps results of another split; --unlisted-images "
        "drop (in Python unlisted_images=) ignores these images, background adds them without objects."
    )


@pytest.mark.parametrize(
    ("options", "images", "classes", "truths", "scores"),
    [
        ({"images": [3]}, [3], [5, 7, 9], 2, [0.1, 0.2]),
        ({"images": [1, 3, 3]}, [1, 3], [5, 7, 9], 3, [0.1, 0.2, 0.3]),
        ({"images": [4]}, [4], [5, 7, 9], 0, []),
        ({"classes": [7]}, [1, 2, 3, 4], [7], 2, [0.3]),
        ({"classes": ["dog"]}, [1, 2, 3, 4], [7], 2, [0.3]),
        ({"classes": ["cow", 5]}, [1, 2, 3, 4], [5, 9], 2, [0.1, 0.2]),
        ({"images": [3], "classes": ["cat"]}, [3], [5], 1, [0.2]),
        ({"images": []}, [], [5, 7, 9], 0, []),
        ({"classes": []}, [1, 2, 3, 4], [], 0, []),
        ({}, [1, 2, 3, 4], [5, 7, 9], 4, [0.1, 0.2, 0.3]),
    ],
)
def test_select(options: Any, images: Any, classes: Any, truths: int, scores: Any) -> None:
    some_truth, some_detections = select(truth(), align(detections(), truth()), **options)
    for table in (some_truth, some_detections):
        assert table.images.ids.tolist() == images
        assert table.categories.ids.tolist() == classes
    assert len(some_truth) == truths
    assert some_detections.scores.tolist() == scores
    evaluation = boxscore.evaluate(truth(), detections(), **options)
    assert evaluation.counts["ground_truths"] == truths
    assert evaluation.counts["classes"] == len(classes)
    assert evaluation.counts["images"] == len(images)
    assert len(evaluation.per_class) == len(classes)


def test_selecting_is_evaluating_a_smaller_data_set() -> None:
    rng = np.random.default_rng(5)
    corner = rng.integers(0, 9, (200, 2)).astype(float)
    boxes = np.hstack([corner, corner + rng.integers(1, 9, (200, 2))])
    images, labels = rng.integers(0, 8, 200), rng.integers(0, 3, 200)
    everything = GroundTruth.from_arrays(
        images[:80], labels[:80], boxes[:80], images=range(8), categories=range(3)
    )
    detections = Detections.from_arrays(images[80:], labels[80:], boxes[80:], rng.integers(0, 9, 120) / 9)
    chosen = boxscore.evaluate(everything, detections, images=[1, 4, 6], classes=[2, 0])
    few = [
        np.isin(images[part], [1, 4, 6]) & np.isin(labels[part], [0, 2])
        for part in (slice(80), slice(80, None))
    ]
    small = boxscore.evaluate(
        GroundTruth.from_arrays(
            images[:80][few[0]], labels[:80][few[0]], boxes[:80][few[0]], images=[1, 4, 6], categories=[0, 2]
        ),
        Detections.from_arrays(
            images[80:][few[1]], labels[80:][few[1]], boxes[80:][few[1]], detections.scores[few[1]]
        ),
    )
    assert np.array_equal(list(chosen.metrics.values()), list(small.metrics.values()), equal_nan=True)
    assert 0 < chosen.metrics["AP"] < 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"images": [1, 8]}, "a chosen image must be in the ground truth. Got 8; known: 1, 2, 3, 4."),
        ({"classes": ["kow"]}, "a chosen class must be in the ground truth. Got 'kow'; did you mean 'cow'?"),
        ({"classes": [1]}, "a chosen class must be in the ground truth. Got 1; known: cat, dog, cow."),
    ],
)
def test_unknown_choices_are_refused(options: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        boxscore.evaluate(truth(), detections(), **options)
    assert str(caught.value) == text


def test_pooling_keeps_the_rows() -> None:
    table = align(detections(), truth())
    pooled = pool_classes(table)
    assert pooled.scores.tolist() == table.scores.tolist()
    assert pooled.categories.names.tolist() == ["all"]
    assert pooled.category.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ([], None),
            "ground_truth must be a GroundTruth table, a DataFrame, or the path of a file or folder. Got a list; ",
        ),
        (
            (None, 7),
            "detections must be a Detections table, a DataFrame, or the path of a file or folder. Got a int; ",
        ),
    ],
)
def test_evaluate_refuses_what_is_not_a_table(arguments: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        boxscore.evaluate(
            truth() if arguments[0] is None else arguments[0],
            detections() if arguments[1] is None else arguments[1],
        )
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_evaluate_refuses_a_wrong_number_of_workers(workers: Any) -> None:
    with pytest.raises(InputError, match=r"^workers must be a whole number >= 1\. Got "):
        boxscore.evaluate(truth(), detections(), workers=workers)


@pytest.mark.parametrize(
    ("names", "ids", "left_out"),
    [
        ({1: "cat", 2: "dog"}, [1, 2], {}),
        ({7: "cat", 8: "dog"}, [7, 8], {}),
        ({1: "dog", 2: "cat"}, [2, 1], {}),
        ({-1: "cat", 2: "dog"}, [-1, 2], {}),
        ({1: "dog", 2: "bird", 3: "cat"}, [3, 1], {}),
        ({1: "dog", 2: "bird"}, [2, 1], {"bird": 1}),
        ({1: "kitten", 2: "dog"}, [1, 2], {}),
        (None, [1, 2], {}),
    ],
    ids=str,
)
def test_classes_of_two_tables_are_those_of_one_name(
    names: dict[int, str] | None, ids: list[int], left_out: dict[str, int]
) -> None:
    """The same ids under other names were taken for the same classes, without a word."""
    boxes = [[0, 0, 10, 10], [20, 20, 40, 40]]
    truth = GroundTruth.from_arrays([1, 1], [1, 2], boxes, categories={1: "cat", 2: "dog"})
    detections = Detections.from_arrays([1, 1], ids, boxes, [0.9, 0.8], categories=names)
    with quiet():
        aligned = align(detections, truth)
    assert aligned.left_out == left_out
    assert aligned.category.tolist() == ([1] if left_out else [0, 1])
