"""What should arrive from a loop: skipped images and cut batches are counted in a warning."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

from boxscore import BoxscoreWarning, Evaluator, GroundTruth, InputError

END = (
    ". The metrics cover the rest. Does the loop skip images, or does gathering truncate the last batch, "
    "as accelerate does? A batch size that divides the number of images avoids it."
)


def batch(counts: dict[Any, int], *, ids: bool = True) -> tuple[list[Any], list[Any]]:
    """One prediction and one target per image, with so many objects."""
    targets = []
    for image, count in counts.items():
        corner = 30.0 * np.arange(count)[:, None]
        boxes = np.hstack([corner, corner, corner + 20, corner + 20])
        target = {"boxes": boxes, "labels": [1] * count}
        targets.append(target | {"image_id": image} if ids else target)
    return [target | {"scores": [0.5] * len(target["labels"])} for target in targets], targets


def said(expected: Any, counts: dict[Any, int], *, ids: bool = True, **options: Any) -> str:
    evaluator = Evaluator(expected=expected, **options)
    evaluator.update(*batch(counts, ids=ids))
    evaluator = pickle.loads(pickle.dumps(evaluator))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert evaluator.compute()["AP"] == pytest.approx(1)
    texts = [str(warning.message) for warning in caught if warning.category is BoxscoreWarning]
    assert all(text.endswith(END) for text in texts)
    return "".join(text.removesuffix(END) for text in texts)


ALL = {1: 3, 2: 0, 3: 4}


@pytest.mark.parametrize("expected", [3, np.int64(3), [1, 2, 3], iter([3, 1, 2]), ALL])
def test_nothing_is_said_where_everything_arrived(expected: Any) -> None:
    assert said(expected, ALL) == ""


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (3, "2 of 3 expected images arrived"),
        (4, "2 of 4 expected images arrived"),
        ([1, 2, 3], "2 of 3 expected images arrived, without image 2"),
        ([1, "a", 5, 7], "1 of 4 expected images arrived, without image 'a' and 2 more"),
        ({1: 3, 3: 4}, "5 of 7 expected objects arrived: image 3 has 2 of 4"),
        (
            ALL | {4: 1},
            "2 of 4 expected images arrived, without image 2 and 1 more; 5 of 8 expected objects arrived: "
            "image 3 has 2 of 4",
        ),
    ],
)
def test_what_did_not_arrive_is_counted(expected: Any, text: str) -> None:
    assert said(expected, {1: 3, 3: 2}) == text


def test_images_without_ids_are_counted() -> None:
    assert said({1: 3, 3: 4}, {1: 3, 3: 2}, ids=False) == "5 of 7 expected objects arrived"
    assert said(["a", "b", "c"], {1: 3, 3: 2}, ids=False) == "2 of 3 expected images arrived"
    assert said({7: 3, 8: 2}, {1: 3, 3: 2}, ids=False) == ""


def test_ground_truth_says_what_is_expected() -> None:
    truth = GroundTruth.from_arrays(
        [1, 1, 3, 3, 3], [1] * 5, [[0, 0, 9, 9]] * 5, images=[1, 2, 3], categories=[1]
    )
    assert said(truth, {1: 2, 2: 0, 3: 3}) == ""
    assert said(truth, {1: 2, 2: 0, 3: 2}) == "4 of 5 expected objects arrived: image 3 has 2 of 3"


def test_ranks_are_counted_together() -> None:
    halves = [Evaluator(expected=ALL) for _ in range(2)]
    halves[0].update(*batch({1: 3, 2: 0}))
    halves[1].update(*batch({3: 4}))
    halves[0].gather = lambda share: [share, halves[1]._share()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert halves[0].compute().counts["images"] == 3


def test_targets_dropped_as_invalid_did_arrive() -> None:
    evaluator = Evaluator(expected={1: 2}, invalid="drop")
    predictions, targets = batch({1: 2})
    targets[0]["boxes"] = targets[0]["boxes"] * [[np.nan], [1]]
    evaluator.update(predictions, targets)
    with pytest.warns(BoxscoreWarning) as caught:
        evaluator.compute()
    assert [str(warning.message)[:16] for warning in caught] == ["1 target of 1 im"]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (0, "expected must be a whole number >= 1"),
        (True, "expected must be a whole number >= 1"),
        ("all", "expected must be a whole number >= 1"),
        ([], "expected must name at least one image"),
        ({1: -1}, "expected must be a whole number >= 0"),
    ],
)
def test_what_cannot_be_expected(expected: Any, text: str) -> None:
    with pytest.raises(InputError, match=re.escape(text)):
        Evaluator(expected=expected)
