"""Boxes and scores that are no numbers, turned boxes: an error, dropped, or false positives that hit nothing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from boxscore import BoxscoreWarning, Evaluation, Evaluator, InputError
from boxscore.protocols import load_protocol
from support.quiet import quiet

nan, inf = float("nan"), float("inf")
GOOD = {"boxes": [[0, 0, 10, 10], [20, 20, 40, 40]], "labels": [1, 1], "scores": [0.9, 0.5]}
TARGET = {"boxes": [[0, 0, 10, 10], [20, 20, 40, 40]], "labels": [1, 1]}
BAD_BOXES = [
    [nan, 0, 10, 10],
    [0, 0, inf, 10],
    [0, -inf, 1, 1],
    [10, 0, 5, 10],
    [0, 10, 5, 9.5],
    [0, 0, 1e101, 5],
]


def bad(box: list[float], score: float = 0.7) -> dict[str, Any]:
    return {
        "boxes": [GOOD["boxes"][0], box, GOOD["boxes"][1]],
        "labels": [1] * 3,
        "scores": [0.9, score, 0.5],
    }


def result(evaluator: Evaluator) -> Evaluation:
    with quiet():
        return evaluator.compute()


def value(evaluator: Evaluator) -> dict[str, float]:
    return result(evaluator).metrics


def of(*pairs: tuple[Any, Any], **options: Any) -> Evaluator:
    evaluator = Evaluator(classes=[1], **options)
    for number, (prediction, target) in enumerate(pairs):
        evaluator.update([prediction], [{"image_id": number, **target}])
    return evaluator


@pytest.mark.parametrize("box", BAD_BOXES)
def test_dropped_and_counted(box: list[float]) -> None:
    evaluator = of((bad(box), TARGET), invalid="drop")
    assert evaluator.invalid_counts == {"predictions": 1, "targets": 0}
    np.testing.assert_equal(value(evaluator), value(of((GOOD, TARGET))))


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012"])
@pytest.mark.parametrize("box", BAD_BOXES)
def test_a_false_positive_at_its_score(box: list[float], protocol: str) -> None:
    """As a box that lies where no object is, also with inclusive pixels."""
    found = of((bad(box), TARGET), invalid="false_positive", protocol=protocol)
    assert found.invalid_counts == {"predictions": 1, "targets": 0}
    expected = of((bad([-70, -70, -70, -70]), TARGET), protocol=protocol)
    assert load_protocol(protocol).name == protocol
    np.testing.assert_equal(value(found), value(expected))
    key = "AP50" if protocol == "coco" else "mAP"
    assert value(found)[key] < 1 == pytest.approx(value(of((GOOD, TARGET), protocol=protocol))[key])


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_scores_that_are_no_numbers(score: float) -> None:
    """Dropped; or ranked last in the image, at 0 or the lowest score below it, and a hit of nothing."""
    sample = bad([20, 20, 40, 40], score)
    np.testing.assert_equal(value(of((sample, TARGET), invalid="drop")), value(of((GOOD, TARGET))))
    found = of((sample, TARGET), invalid="false_positive")
    assert sorted(result(found).detections.scores.tolist()) == [0, 0.5, 0.9]
    assert value(found)["AP50"] == pytest.approx(1)  # the objects were found before
    logits = {**sample, "scores": [-1.0, score, -3.0]}
    assert result(of((logits, TARGET), invalid="false_positive")).detections.scores.min() == -3


@pytest.mark.parametrize("invalid", ["drop", "false_positive"])
def test_targets_are_dropped(invalid: Any) -> None:
    target = {"boxes": [*TARGET["boxes"], [5, 5, 4, 9], [nan] * 4], "labels": [1] * 4}
    evaluator = of((GOOD, target), (GOOD, TARGET), invalid=invalid)
    assert evaluator.invalid_counts == {"predictions": 0, "targets": 2}
    np.testing.assert_equal(value(evaluator), value(of((GOOD, TARGET), (GOOD, TARGET))))
    with pytest.warns(BoxscoreWarning) as warned:
        evaluator.compute()
    assert [str(one.message) for one in warned] == [
        "2 targets of 1 image dropped: boxes or scores that are NaN or infinite, or boxes that end before they "
        "begin; the first in image 0."
    ]


def test_one_warning_of_all() -> None:
    evaluator = of(*[(bad([nan] * 4), TARGET)] * 3, (GOOD, TARGET), invalid="false_positive")
    for _ in range(2):  # each time that it is computed
        with pytest.warns(BoxscoreWarning) as warned:
            evaluator.compute()
        assert [str(one.message) for one in warned] == [
            "3 predictions of 3 images counted as false positives: boxes or scores that are NaN or infinite, or "
            "boxes that end before they begin; the first in image 0."
        ]


def test_the_error_names_the_option() -> None:
    evaluator = Evaluator()
    more = "; invalid='drop' ignores such rows, invalid='false_positive' counts them as false positives."
    for sample, start in (
        (
            bad([nan, 0, 10, 10]),
            "box must be finite. Got [nan, 0.0, 10.0, 10.0] in row 1 of the prediction of image 0",
        ),
        (
            bad([9, 0, 5, 10]),
            "boxes must have width >= 0. Got width -4.0 in row 1 of the prediction of image 0; is box_format right?",
        ),
        (bad([0, 0, 5, 10], nan), "scores must be finite. Got nan in row 1 of the prediction of image 0"),
    ):
        with pytest.raises(InputError) as error:
            evaluator.update([sample], [TARGET])
        assert str(error.value) == start + (more.removeprefix(";") if start.endswith("?") else more)
    with pytest.raises(
        InputError, match=r"^invalid must be one of 'error', 'drop', 'false_positive'. Got 'ignore'\.$"
    ):
        Evaluator(invalid="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("invalid", ["drop", "false_positive"])
@pytest.mark.parametrize("form", ["lists", "arrays", "keras", "xywh", "rows"])
def test_every_form(form: str, invalid: Any) -> None:
    sample: Any = bad([9, 0, 5, 10])
    target: Any = {"image_id": 3, **TARGET}
    options: dict[str, Any] = {"classes": [1], "invalid": invalid}
    predictions: Any = [sample]
    if form == "arrays":
        predictions = [{key: np.array(values) for key, values in sample.items()}]
    if form == "keras":
        predictions = {key: np.array(values)[None] for key, values in sample.items()}
    if form == "xywh":
        options["box_format"] = "xywh"
        wide = lambda boxes: [[x, y, r - x, b - y] for x, y, r, b in boxes]  # noqa: E731
        predictions, target = (
            [{**sample, "boxes": wide(sample["boxes"])}],
            {**target, "boxes": wide(target["boxes"])},
        )
    if form == "rows":
        predictions = [
            [
                {"category_id": 1, "bbox": [x, y, r - x, b - y], "score": score}
                for (x, y, r, b), score in zip(sample["boxes"], sample["scores"], strict=True)
            ]
        ]
    evaluator = Evaluator(**options)
    evaluator.update(predictions, [target])
    assert evaluator.invalid_counts == {"predictions": 1, "targets": 0}
    expected = of((GOOD if invalid == "drop" else bad([-70, -70, -70, -70]), TARGET))
    np.testing.assert_equal(value(evaluator), value(expected))


@pytest.mark.parametrize("invalid", ["drop", "false_positive"])
def test_masks_keypoints_and_rotated(invalid: Any) -> None:
    masks = np.zeros((3, 50, 50), dtype=bool)
    masks[0, :10, :10] = masks[1, 20:40, 20:40] = masks[2, 20:40, 20:40] = True
    seen = {
        "boxes": [[0, 0, 10, 10], [nan] * 4, [20, 20, 40, 40]],
        "labels": [1] * 3,
        "scores": [0.9, 0.7, 0.5],
    }
    target = {**TARGET, "masks": masks[[0, 2]]}
    good = {**GOOD, "masks": masks[[0, 2]]}
    found = of(({**seen, "masks": masks}, target), invalid=invalid, protocol="coco-segm")
    empty = masks.copy()
    empty[1] = False
    far = {**bad([-70, -70, -70, -70]), "masks": empty}
    expected = of((good if invalid == "drop" else far, target), protocol="coco-segm")
    np.testing.assert_equal(value(found), value(expected))
    turned = [[5, 5, 10, 10, 0.1], [5, 5, nan, 10, 0], [30, 30, 20, 20, 0.2]]
    rotated = {"rotated": turned, "labels": [1] * 3, "scores": [0.9, 0.7, 0.5]}
    truth = {"rotated": [turned[0], turned[2]], "labels": [1, 1]}
    found = of((rotated, truth), invalid=invalid, protocol="dota")
    assert found.invalid_counts["predictions"] == 1
    metric = next(iter(value(found).values()))
    assert (metric == pytest.approx(1)) == (invalid == "drop")


def test_counts_survive_merging_pickling_ranks_and_many_images() -> None:
    pairs = [(bad([nan] * 4) if number % 3 == 0 else GOOD, TARGET) for number in range(150)]
    whole = of(*pairs, invalid="false_positive")
    assert whole.invalid_counts == {"predictions": 50, "targets": 0}
    halves = [Evaluator(classes=[1], invalid="false_positive", duplicates="ignore") for _ in range(2)]
    for number, (prediction, target) in enumerate(pairs):
        for rank in {number % 2, int(number == 0)}:  # image 0 comes from both
            halves[rank].update([prediction], [{"image_id": number, **target}])
    shares = [pickle.loads(pickle.dumps(half))._share() for half in halves]
    for half in halves:
        gathered = pickle.loads(pickle.dumps(half))
        gathered.gather = lambda _: shares
        with pytest.warns(BoxscoreWarning, match="^50 predictions of 50 images counted as false positives"):
            np.testing.assert_equal(gathered.compute().metrics, value(whole))
    halves[0].merge(halves[1])
    assert halves[0].invalid_counts == whole.invalid_counts
    halves[0].reset()
    assert halves[0].invalid_counts == {"predictions": 0, "targets": 0}


def test_false_positives_alone_are_no_fractions() -> None:
    evaluator = of(({"boxes": [[nan] * 4], "labels": [1], "scores": [0.9]}, TARGET), invalid="false_positive")
    with pytest.warns(BoxscoreWarning) as warned:
        assert evaluator.compute().metrics["AP"] == 0
    assert len(warned) == 1


@pytest.mark.parametrize("invalid", ["drop", "false_positive"])
@pytest.mark.parametrize("prediction", ["nothing", "good"])
@pytest.mark.parametrize("target", ["nothing", "good"])
def test_an_image_without_rows_is_as_it_is_where_nothing_is_invalid(
    invalid: str, prediction: str, target: str
) -> None:
    predictions = {"nothing": {"boxes": np.zeros((0, 4)), "labels": [], "scores": []}, "good": GOOD}
    targets = {"nothing": {"boxes": np.zeros((0, 4)), "labels": []}, "good": TARGET}
    pairs = (predictions[prediction], targets[target]), (bad(BAD_BOXES[0]), TARGET)
    others = (predictions[prediction], targets[target]), (GOOD, TARGET)
    evaluator = of(*pairs, invalid=invalid)
    assert evaluator.invalid_counts == {"predictions": 1, "targets": 0}
    if invalid == "drop":
        np.testing.assert_equal(value(evaluator), value(of(*others)))
