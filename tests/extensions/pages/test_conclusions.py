"""The sentences at the top of a report: every number in them from plain loops, and something for every case."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import error_types
from boxscore.extensions.pages.choices import Choices
from boxscore.extensions.pages.conclusions import Conclusion, conclusions
from boxscore.extensions.pages.html import render_page
from boxscore.extensions.pages.view import report_view
from boxscore.extensions.validation.digest import findings_of
from boxscore.reports import ReportOptions
from support.evaluations import empty_evaluation, evaluation, hostile_evaluation, shapes

SCENES = [(0, 6.0), (1, 2.0), (2, 14.0), (3, 9.0)]


def said(result: boxscore.Evaluation, **options: Any) -> dict[str, Conclusion]:
    return {
        each.topic: each for each in conclusions(result, findings_of(result), Choices.of(result), **options)
    }


def words(sentence: Conclusion) -> str:
    """The sentence without its action."""
    return "".join(part.text for part in sentence.parts)


def scene(seed: int, noise: float) -> boxscore.Evaluation:
    """Without crowds and equal scores."""
    result = evaluation(seed=seed, noise=noise, images=20)
    truth, detections = result.ground_truth, result.detections
    scores = np.random.default_rng(seed).permutation(np.linspace(0.01, 0.99, len(detections)))
    return boxscore.evaluate(truth.take(np.flatnonzero(~truth.crowd)), detections.replaced(scores=scores))


def numbers(text: str) -> list[float]:
    return [float(word.replace(",", "")) for word in re.findall(r"\d[\d,]*\.?\d*", text)]


# ---------------------------------------------------------------- the oracle: TIDE in plain loops


def overlap(a: list[float], b: list[float]) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def slow_errors(result: boxscore.Evaluation) -> tuple[list[str], list[Any], list[int], set[int]]:
    """Name of each detection's error ("" for none), its object; the objects that are missed, and matched."""
    truth, detections = result.ground_truth, result.detections
    kind, about = [""] * len(detections), [None] * len(detections)
    matched: set[int] = set()
    for image in range(len(truth.images)):
        rows = [d for d in range(len(detections)) if detections.image[d] == image]
        rows.sort(key=lambda d: -detections.scores[d])
        objects = [g for g in range(len(truth)) if truth.image[g] == image]
        iou = {
            (d, g): overlap(detections.boxes[d].tolist(), truth.boxes[g].tolist())
            for d in rows
            for g in objects
        }
        wrong = []
        for d in rows:
            own = [g for g in objects if truth.category[g] == detections.category[d] and g not in matched]
            best = max(own, key=lambda g: iou[d, g], default=None)
            if best is not None and iou[d, best] >= 0.5:
                matched.add(best)
            else:
                wrong.append(d)
        for d in wrong:
            own = [g for g in objects if truth.category[g] == detections.category[d]]
            other = [g for g in objects if truth.category[g] != detections.category[d]]
            nearest = max(own, key=lambda g: iou[d, g], default=None)
            stranger = max(other, key=lambda g: iou[d, g], default=None)
            if nearest is not None and 0.1 <= iou[d, nearest] <= 0.5:
                kind[d], about[d] = "localization", nearest
            elif stranger is not None and iou[d, stranger] >= 0.5:
                kind[d], about[d] = "classification", stranger
            elif any(iou[d, g] >= 0.5 and g in matched for g in own):
                kind[d] = "duplicate"
            elif all(iou[d, g] <= 0.1 for g in objects):
                kind[d] = "background"
            else:
                kind[d] = "both"
    usable = {g for d, g in enumerate(about) if g is not None and g not in matched}
    missed = [g for g in range(len(truth)) if g not in matched and g not in usable]
    return kind, about, missed, matched


def slow_ap(result: boxscore.Evaluation, fixed: str = "", pair: tuple[int, int] | None = None) -> float:
    """AP at IoU 0.50 and 101 recall points, with one kind of error put right; of two classes alone."""
    truth, detections = result.ground_truth, result.detections
    kind, about, missed, matched = slow_errors(result)
    lines = []
    for d in sorted(range(len(detections)), key=lambda d: -detections.scores[d]):
        category, right = int(detections.category[d]), kind[d] == ""
        chosen = kind[d] == fixed != ""
        if chosen and pair is not None:
            chosen = pair == (int(truth.category[about[d]]), category)
        if chosen:
            if about[d] is None or about[d] in matched:
                continue
            matched.add(about[d])
            category, right = int(truth.category[about[d]]), True
        lines.append((category, right))
    values = []
    for k in range(len(truth.categories)):
        objects = [g for g in range(len(truth)) if truth.category[g] == k]
        if fixed == "missed":
            objects = [g for g in objects if g not in missed]
        if not objects:
            continue
        hits, points = 0, []
        for place, right in enumerate([right for category, right in lines if category == k], start=1):
            hits += right
            points.append((hits / len(objects), hits / place))
        values.append(
            np.mean([max((p for r, p in points if r >= step / 100), default=0.0) for step in range(101)])
        )
    return float(np.mean(values))


@pytest.mark.parametrize(("seed", "noise"), SCENES)
def test_numbers_of_mistakes(seed: int, noise: float) -> None:
    from boxscore.extensions.pages.conclusions import NEGLIGIBLE, _mistakes

    result = scene(seed, noise)
    kind, _, missed, _ = slow_errors(result)
    base = slow_ap(result)
    choices = Choices.of(result)
    sentences = {each.topic: each for each in _mistakes(result, choices)}
    for name in ("missed", "localization", "classification", "duplicate", "background", "both"):
        cost = max(slow_ap(result, name) - base, 0.0)
        assert (name in sentences) == (cost > NEGLIGIBLE), name
        if name not in sentences:
            continue
        sentence = sentences[name]
        assert sentence.cost == pytest.approx(cost, abs=1e-12)
        assert f" cost {cost:.3f} AP50: " in sentence.text
        count = len(missed) if name == "missed" else kind.count(name)
        assert numbers(sentence.text.partition("AP50: ")[2])[0] == count
    assert len(sentences) >= 3
    chosen = [each for each in conclusions(result, findings_of(result), choices) if each.topic in sentences]
    assert [each.cost for each in chosen] == sorted((s.cost for s in sentences.values()), reverse=True)[:2]


@pytest.mark.parametrize(("seed", "noise"), SCENES)
def test_numbers_of_missed_objects(seed: int, noise: float) -> None:
    from boxscore.extensions.pages.conclusions import _missed

    result = scene(seed, noise)
    missed = slow_errors(result)[2]
    areas = result.ground_truth.area[missed].tolist()
    sizes = {
        "small": sum(area <= 32**2 for area in areas),
        "medium": sum(32**2 <= area <= 96**2 for area in areas),
        "large": sum(area >= 96**2 for area in areas),
    }
    name = max(sizes, key=lambda size: sizes[size])
    text = "".join(part.text for part in _missed(result, Choices.of(result).missed).parts)
    most = f"most of them {name} ({sizes[name]:,})" if 2 * sizes[name] > len(missed) else None
    assert text == (
        f"{len(missed):,} of {len(result.ground_truth):,} objects, {most or f'{sizes[name]:,} of them {name}'}"
    )


@pytest.mark.parametrize(("seed", "noise"), SCENES)
def test_numbers_of_the_threshold(seed: int, noise: float) -> None:
    result = scene(seed, noise)
    kinds = boxscore.evaluate(result.ground_truth, result.detections).matches["outcome"].tolist()
    scores = result.detections.scores.tolist()
    best = (0.0, 0.0, 0.0, 0.0)
    for threshold in sorted(set(scores), reverse=True):
        kept = [kind for kind, score in zip(kinds, scores, strict=True) if score >= threshold]
        hits = kept.count("true positive")
        precision, recall = hits / len(kept), hits / len(result.ground_truth)
        f_score = 2 * precision * recall / (precision + recall) if hits else 0.0
        best = max(best, (f_score, threshold, precision, recall), key=lambda line: line[0])
    f_score, threshold, precision, recall = best
    numbers = f"{f_score:.3f} (precision {precision:.3f}, recall {recall:.3f})"
    text = said(result)["threshold"].text
    if threshold == min(scores):
        assert text == f"The best F1, {numbers}, needs no score threshold. Keep every detection."
    else:
        assert text.startswith(f"A score threshold of {threshold:.3g} gives the best F1, {numbers}. Use it")


@pytest.mark.parametrize(("seed", "noise"), SCENES)
def test_the_most_frequent_confusion(seed: int, noise: float) -> None:
    """Objects and detections from the threshold on, the surest first, each to the object it overlaps most."""
    from boxscore.diagnostics import confusion_matrix
    from boxscore.extensions.pages.conclusions import _confused

    result = scene(seed, noise)
    matrix = confusion_matrix(result, score_threshold=0.3).counts[:-1, :-1].copy()
    np.fill_diagonal(matrix, 0)
    text = "".join(part.text for part in _confused(result, 7, Choices.of(result, score_threshold=0.3)).parts)
    if not matrix.any():
        assert text == "7 detections"
        return
    name, other, times, alone = re.fullmatch(  # type: ignore[union-attr]
        r"7 detections\. Most often (.*) is predicted as (.*), (\w+(?: times)?) at scores from 0\.3"
        r"(?:, which alone costs (.*))?",
        text,
    ).groups()
    count = {"once": 1, "twice": 2}.get(times) or int(times.removesuffix(" times"))
    labels = result.ground_truth.categories.labels
    pair = labels.index(name), labels.index(other)
    assert matrix[pair] == count == matrix.max()
    cost = slow_ap(result, "classification", pair) - slow_ap(result)
    assert (alone or "0.000") == f"{cost:.3f}"
    assert cost > 0


# ---------------------------------------------------------------- every case has something honest


def perfect(**more: Any) -> boxscore.Evaluation:
    boxes = [[20 * i, 0, 20 * i + 12, 9] for i in range(30)]
    truth = boxscore.GroundTruth.from_arrays([i // 3 for i in range(30)], ["a", "b", "c"] * 10, boxes)
    detections = boxscore.Detections.from_arrays(
        [i // 3 for i in range(30)], ["a", "b", "c"] * 10, boxes, np.linspace(0.4, 0.99, 30)
    )
    return boxscore.evaluate(truth, detections, **more)


def test_a_perfect_detector() -> None:
    for protocol in ("coco", "voc2007", "voc2012"):
        texts = [each.text for each in said(perfect(protocol=protocol)).values()]
        assert texts == [
            "Nothing is wrong at IoU 0.50: all 30 objects are detected, and no false positive scores higher. "
            "If this is a surprise, check that the detections are not a copy of the ground truth.",
            "The best F1, 1.000 (precision 1.000, recall 1.000), needs no score threshold. Keep every detection.",
        ]


def test_a_detector_that_is_right_but_loose() -> None:
    result = perfect()
    moved = result.detections.replaced(boxes=result.detections.boxes + np.array([1.5, 0, 1.5, 0]))
    low = moved.replaced(scores=moved.scores - 0.395)
    faultless, loose, _ = said(boxscore.evaluate(result.ground_truth, low)).values()
    assert faultless.topic == "faultless"
    assert (
        words(loose) == "Tighter boxes would score higher: AP falls from 1.000 at IoU 0.50 to 0.000 at 0.95."
    )


def test_no_detection_at_all() -> None:
    truth = shapes().ground_truth
    none = boxscore.Detections.from_arrays([], [], [], [])
    first, *rest = said(boxscore.evaluate(truth, none)).values()
    counted = len(truth) - int(truth.crowd.sum())
    assert words(first) == f"Without detections, all {counted} objects are missed."
    assert all(math.isinf(each.cost) for each in rest)


def test_no_ground_truth() -> None:
    assert [words(each) for each in said(empty_evaluation()).values()] == [
        "No ground truth counts, so AP is undefined."
    ]
    images = Images.build([1])
    truth = boxscore.GroundTruth.from_arrays([], [], [], images=images, categories={1: "a"})
    detections = boxscore.Detections.from_arrays([1], [1], [[0, 0, 9, 9]], [0.5], categories={1: "a"})
    assert words(next(iter(said(boxscore.evaluate(truth, detections)).values()))) == (
        "No ground truth counts, so AP is undefined, and 1 detection cannot be evaluated."
    )


def test_a_class_without_ground_truth() -> None:
    result = perfect()
    truth = result.ground_truth
    fewer = boxscore.evaluate(truth.take(np.flatnonzero(truth.category > 0)), result.detections)
    assert words(said(fewer)["without ground truth"]) == (
        "1 class with detections has no ground truth: its 10 detections do not count."
    )


def test_nothing_right() -> None:
    result = perfect()
    away = result.detections.replaced(boxes=result.detections.boxes + 500)
    sentences = said(boxscore.evaluate(result.ground_truth, away))
    assert words(sentences["threshold"]) == "No score threshold helps: no object is detected at IoU 0.50."


def test_a_floor_changes_the_advice() -> None:
    """Where the best F1 keeps all there is, and where it does not."""
    result = scene(2, 9.0)
    truth, detections = result.ground_truth, result.detections
    away = np.tile(np.where(detections.boxes[:, :2] < 250, 150, -150), 2)
    good = np.arange(len(detections)) % 2 == 0  # then the rest is worth a threshold
    for scores, advice in (
        (
            0.5 + detections.scores / 2,
            r"No score threshold recommended: F1 still rises at the lowest score in the file",
        ),
        (
            np.where(good, 0.9, 0.3) + detections.scores / 100,
            r"A score threshold of .*; lower scores than 0\.3 are not in the file\. Use it",
        ),
    ):
        boxes = np.where(good[:, None] | (scores > 0.5).all(), detections.boxes, detections.boxes + away)
        cut = boxscore.evaluate(truth, detections.replaced(scores=scores, boxes=boxes))
        sentences = said(cut)
        assert next(iter(sentences.values())).topic == "score-floor"
        view = report_view(cut, options=ReportOptions(resamples=0))
        assert re.match(advice, view["confidence"]["advice"]), view["confidence"]["advice"]
        if "threshold" in sentences:
            assert view["confidence"]["advice"] == sentences["threshold"].text
        else:  # the first sentence says that the scores are cut
            assert advice.startswith("No score threshold")
            assert len(sentences) == 3
        text = " ".join(re.sub("<[^>]*>", "", render_page(view)).split())
        assert view["confidence"]["advice"] in text


def test_missed_objects_point_at_the_cut_of_scores() -> None:
    result = scene(1, 2.0)
    high = np.flatnonzero(result.detections.scores > 0.7)
    cut = boxscore.evaluate(result.ground_truth, result.detections.take(high))
    sentences = said(cut)
    assert list(sentences) == ["score-floor", "image-without-detections", "missed"]
    for topic in ("image-without-detections", "missed"):
        _, link, end = sentences[topic].action
        assert (link.text, link.anchor) == ("below the score cut", "finding-score-floor")
        assert end.text == " first: they may be what is missing."
    assert "below the score cut" not in said(result)["missed"].text


def test_an_error_in_the_data_leaves_no_advice_on_a_threshold() -> None:
    result = scene(1, 2.0)
    halved = result.detections.replaced(boxes=result.detections.boxes / 2)
    sentences = said(boxscore.evaluate(result.ground_truth, halved, digest=False))
    first = next(iter(sentences.values()))
    assert first.topic == "network-coordinates"
    assert "threshold" not in sentences
    assert "threshold" in said(result)
    # Its effect is larger than the cost of any kind of mistake, so it explains them all.
    assert list(sentences) == [first.topic]
    assert re.fullmatch(
        r"Use --network-input \S+: AP would be 0\.\d{4} instead of 0\.\d{4} \(\+0\.\d{4}\)\. Then write the report "
        r"again: this error affects every other number here\.",
        "".join(part.text for part in first.action),
    )


def test_an_error_of_little_effect_leaves_the_mistakes_beside_it() -> None:
    """The error still comes first, and what costs more than it stays."""
    result = scene(1, 9.0)
    ids = np.arange(len(result.ground_truth))
    truth = result.ground_truth.replaced(ids=np.maximum(ids, 1))
    sentences = said(boxscore.evaluate(truth, result.detections, digest=False))
    topics = list(sentences)
    assert topics[0] == "repeated-annotation-id"
    assert len(topics) == 3
    assert not any(sentences[topic].is_fault for topic in topics[1:])
    assert sentences[topics[0]].action[0].text.startswith("Give each annotation its own id: AP would ")


@pytest.mark.parametrize(("seed", "noise"), SCENES)
def test_every_sentence_ends_in_an_action(seed: int, noise: float) -> None:
    """Images of a kind of mistake are one click away; data come before the detector."""
    result = scene(seed, noise)
    cut = result.detections.take(np.flatnonzero(result.detections.scores > 0.7))
    for detections in (result.detections, cut):
        sentences = list(said(boxscore.evaluate(result.ground_truth, detections)).values())
        assert [each.is_fault for each in sentences] == sorted((e.is_fault for e in sentences), reverse=True)
        for each in sentences:
            text = "".join(part.text for part in each.action)
            assert re.fullmatch(r"[A-Z].*[.?]", text)
            assert each.text.endswith(text)
            if each.topic in ("localization", "duplicate", "background", "both"):
                assert [part.anchor for part in each.action if part.anchor] == [f"gallery?kind={each.topic}"]


def test_a_cut_table_of_names_is_said_in_place_of_the_wrong_classes() -> None:
    truth = ["hot dog"] * 12 + ["teddy bear"] * 12 + ["dog", "bear", "cat"] * 5
    found = ["dog"] * 12 + ["bear"] * 12 + ["dog", "bear", "cat"] * 5
    boxes = [[100 * (row % 4), 0, 100 * (row % 4) + 50, 60] for row in range(len(truth))]
    image = [row // 4 for row in range(len(truth))]
    labels = sorted(set(truth))
    objects = boxscore.GroundTruth.from_arrays(image, truth, boxes, categories=labels)
    scores = np.linspace(0.01, 0.99, len(found))
    detections = boxscore.Detections.from_arrays(
        image, found, boxes, scores, images=objects.images, categories=objects.categories
    )
    sentences = said(boxscore.evaluate(objects, detections))
    assert "classification" not in sentences
    sentence = sentences["class-always-called-another"]
    assert sentence.text.startswith(
        "2 classes are always predicted as another class: 12 of 12 localized objects of class hot dog are predicted "
        "as dog, and 1 more. Possible cause: class names truncated at a space or matched by a substring. Correct the "
        "detector's list of class names: AP would be 1.0000 instead of "
    )
    assert sentence.cost >= error_types(boxscore.evaluate(objects, detections)).total.cost[0]


def test_detections_written_twice_are_said_in_place_of_duplicates() -> None:
    """A lower NMS threshold would be advice that the error makes void."""
    result = scene(1, 2.0)
    rows = np.arange(len(result.detections))
    twice = result.detections.take(np.concatenate([rows, rows[:60]]))
    sentences = said(boxscore.evaluate(result.ground_truth, twice, digest=False))
    first = next(iter(sentences.values()))
    assert first.topic == "repeated-detection"
    assert first.action[0].text.startswith("Write each detection once: AP would be ")
    assert "duplicate" not in sentences


def every_kind() -> list[boxscore.Evaluation]:
    one = evaluation(classes=["only"], images=5)
    return [
        shapes(),
        hostile_evaluation(),
        empty_evaluation(),
        one,
        perfect(),
        *(evaluation(protocol=name) for name in ("voc2007", "voc2012", "padilla-coco", "ultralytics")),
        boxscore.evaluate(one.ground_truth, one.detections, protocol={"extends": "coco", "summary": []}),
    ]


@pytest.mark.long
def test_every_sentence_points_at_a_section_that_is_there() -> None:
    for result in every_kind():
        view = report_view(result, options=ReportOptions(resamples=0, gallery=2, date=""))
        page = render_page(view)
        assert 1 <= len(view["conclusions"]) <= 3
        for each in view["conclusions"]:
            assert each.text.endswith((".", "?"))
            assert "nan" not in each.text
            assert any(part.anchor for part in each.parts) or each.topic.startswith("no ")
            for part in (*each.parts, *each.action):
                if part.anchor:
                    assert f'id="{part.anchor.partition("?")[0]}"' in page, part


def test_a_fault_that_a_warning_names_points_at_all_findings() -> None:
    """The page then does not list it again."""
    result = shapes()
    corners = np.hstack([result.detections.boxes[:, :2], result.detections.boxes[:, 2:] * 3 + 400])
    sizes = corners[:, 2:] - corners[:, :2]
    broken = boxscore.evaluate(result.ground_truth, result.detections.replaced(boxes=corners, sizes=sizes))
    for warnings, anchor in (((), "finding-detection-box-order"), (("as given",), "findings")):
        options = ReportOptions(resamples=0, gallery=2, warnings=warnings)
        view = report_view(broken, options=options)
        assert view["conclusions"][0].topic == "detection-box-order"
        assert view["conclusions"][0].parts[0].anchor == anchor
        assert view["conclusions"][0].parts[0].text.startswith("Detections: ")
        assert f'id="{anchor}"' in render_page(view)
