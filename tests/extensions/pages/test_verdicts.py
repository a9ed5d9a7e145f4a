"""What a comparison's pages say first: who leads, by how much, and when the data cannot tell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.diagnostics import compare_detectors
from boxscore.extensions.decisions.wording import answers, classes_ahead
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.verdicts import (
    Differences,
    Part,
    differing_images,
)
from boxscore.reports import write_comparison
from support.evaluations import evaluation


def detected(
    shares: list[float], *, images: int = 40, score: float | None = None, protocol: Any = "coco"
) -> boxscore.Evaluation:
    """One object of each class in each image; a share of those of each class is detected, the first ones."""
    K = len(shares)
    image, category = np.repeat(np.arange(images), K), np.tile(np.arange(K), images)
    boxes = np.array([[40.0 * k, 10, 40.0 * k + 30, 40] for k in range(K)])[category]
    names = {k: f"class {k}" for k in range(K)}
    vocabulary = Images.build(np.arange(images), sizes=[[400, 100]] * images)
    truth = boxscore.GroundTruth.from_arrays(image, category, boxes, images=vocabulary, categories=names)
    found = image < np.array(shares)[category] * images
    scores = np.full(found.sum(), score) if score else np.linspace(0.9, 0.5, int(found.sum()))
    detections = boxscore.Detections.from_arrays(
        image[found], category[found], boxes[found], scores, images=vocabulary, categories=names
    )
    return boxscore.evaluate(truth, detections, protocol=protocol, digest=False)


def compared(results: dict[str, boxscore.Evaluation], **options: Any) -> Any:
    return compare_detectors(results, **{"resamples": 99, "metrics": ["AP"], **options})


def verdict_sentence(comparison: Any) -> str:
    return answers(comparison)[0].statement


def test_a_leader_is_named_with_its_lead_and_interval() -> None:
    comparison = compared({"weak": detected([0.5, 0.5]), "strong": detected([1.0, 1.0])})
    line = comparison.total.take(0, 0)
    assert verdict_sentence(comparison) == (
        f"strong is better than weak: AP {line.value_other:.3f} against {line.value_first:.3f}, {line.delta:+.3f} "
        f"(95% interval {line.low:+.3f} to {line.high:+.3f}, p = {line.p_value:.3f})."
    )
    swapped = compared({"strong": detected([1.0, 1.0]), "weak": detected([0.5, 0.5])})
    again = re.sub(r"\(.*\)", "", verdict_sentence(swapped))
    assert again == re.sub(r"\(.*\)", "", verdict_sentence(comparison))
    assert swapped.total.delta[0, 0] == -line.delta


def test_the_data_cannot_tell() -> None:
    comparison = compared({"a": detected([0.5, 0.5]), "b": detected([0.5, 0.52])})
    said = verdict_sentence(comparison)
    assert said.startswith("The data cannot tell which of b and a is better: AP ")
    assert re.search(r", \+0\.\d+ \(95% interval (-|0)\S* to \+\S+, p = 1\.000\)\.$", said)
    assert "--plan" in answers(comparison)[1].text
    same = compared({"a": detected([0.5, 0.5]), "b": detected([0.5, 0.5])})
    assert verdict_sentence(same) == f"a and b have the same AP, {same.intervals.value[0, 0]:.3f}."


def test_too_few_images() -> None:
    few = {"a": detected([1.0], images=4), "b": detected([0.5], images=4)}
    comparison = compared(few)
    line = comparison.pairs.take(0, 1, 0)
    assert verdict_sentence(comparison) == (
        "4 images with objects are too few to tell which detector is better: AP 1.000 against "
        f"{1 - line.delta:.3f}, {line.delta:+.3f} (p = {line.p_value:.3f})."
    )


def test_ties_that_decide_are_said() -> None:
    random = np.random.default_rng(0)

    def tied(shift: int) -> boxscore.Evaluation:
        result = detected([1.0])
        rows = np.arange(40)
        boxes = result.detections.boxes.copy()
        boxes[(rows + shift) % 2 == 0] += 300
        found = boxscore.Detections.from_arrays(
            rows,
            [0] * 40,
            boxes,
            random.choice([0.5, 0.6], 40),
            images=result.ground_truth.images,
            categories=result.ground_truth.categories,
        )
        return boxscore.evaluate(result.ground_truth, found, digest=False)

    comparison = compared({"a": tied(0), "b": tied(1)})
    assert comparison.decided_by_ties[0, 0]
    said = [each.statement for each in answers(comparison)]
    assert "Another order of equal scores could reverse this: export scores with more digits." in said


@pytest.mark.long
def test_of_three_the_two_best_are_compared() -> None:
    results = {"first": detected([0.3]), "best": detected([1.0]), "near": detected([0.6])}
    comparison = compared(results)
    assert verdict_sentence(comparison).startswith("best is the best of 3 detectors, ahead of near: AP ")
    close = {
        "first": detected([0.5]),
        "best": detected([0.54]),
        "near": detected([0.52]),
        "far": detected([0.1]),
    }
    said = verdict_sentence(compared(close, resamples=400))
    assert said.startswith("The data cannot tell which of best, near and first is best: AP ")


@pytest.mark.long
def test_where_less_is_better_the_lower_one_leads(tmp_path: Path) -> None:
    rules = {"extends": "coco", "name": "misses", "summary": [{"key": "MR", "metric": "MR", "iou": 0.5}]}
    results = {name: detected([share], protocol=rules) for name, share in (("weak", 0.5), ("strong", 1.0))}
    assert results["weak"].protocol.lower_is_better == ("MR",)
    comparison = compared(results, metrics=["MR"])
    assert comparison.total.delta[0, 0] < 0
    assert comparison.total.verdict[0, 0] == comparison.per_class.verdict[0, 0, 0] == "better"
    assert comparison.total.other_wins[0, 0] == 1
    assert comparison.clear_best(0) == 1
    assert verdict_sentence(comparison).startswith("strong is better than weak: MR ")
    results["middle"] = detected([0.75], protocol=rules)
    write_comparison(compared(results, metrics=["MR"], resamples=300), tmp_path, date="")
    page = (tmp_path / "report.html").read_text()
    (pairs,) = re.findall('id="pairs-table">(.*?)</table>', page, re.DOTALL)
    rows = re.findall("<tr>.*?</tr>", pairs, re.DOTALL)[1:]
    marks = [re.findall('<td class="(.*?)"', row) for row in rows]
    assert marks == [["self", "down", "down"], ["up", "self", "up"], ["up", "down", "self"]]
    assert "Bold: lowest of the class" in page
    assert '<b class="best">0.000</b>' in page


@pytest.mark.long
def test_classes_that_turn_the_order_round() -> None:
    results = {"a": detected([1.0, 0.9, 0.2, 0.5]), "b": detected([0.3, 0.5, 0.9, 0.5])}
    said = classes_ahead(compared(results))
    assert said.startswith("The ranking flips in 1 of 4 classes, where b is ahead of a: class 2 (")
    assert said.endswith(" The difference decides in 1 of them.")
    ahead = classes_ahead(compared({"a": detected([0.3, 0.5]), "b": detected([0.9, 0.5])}))
    assert ahead == "The ranking is the same in every class: b is ahead or equal in all 2 classes."
    three = classes_ahead(compared({**results, "c": detected([0.1, 0.1, 0.3, 0.7])}))
    assert re.fullmatch(
        r"The ranking flips in 2 of 4 classes, where another detector is ahead of a: "
        r"class 2 \(b, by [\d.]+\), class 3 \(c, by [\d.]+\)\.",
        three,
    )


def test_images_differ_by_their_numbers_of_mistakes() -> None:
    mistakes = np.array([[0, 5, 1, 2], [0, 4, 7, 2], [0, 9, 1, 2]])
    assert differing_images(mistakes) == [2, 1]
    assert differing_images(mistakes, most=1) == [2]


def test_the_part_shown_holds_what_only_some_miss() -> None:
    results = [detected([1.0, 1.0, 0.0, 0.0]), detected([0.0, 1.0, 0.0, 0.0])]
    galleries = [Gallery(result) for result in results]
    differences = Differences(galleries)
    records = [gallery.records[gallery.add(0)] for gallery in galleries]
    left, top, width, height = differences.part(0, records)  # around class 0, which the second misses
    assert (left, top) == (0, pytest.approx(5, abs=6))
    assert (width, height) == (160, 40)
    same = [Gallery(results[0]), Gallery(results[0])]
    records = [gallery.records[gallery.add(0)] for gallery in same]
    assert Differences(same).part(0, records) == Part(0, 0, 400, 100)


@pytest.mark.long
def test_pages_name_no_folder(tmp_path: Path) -> None:
    results = {name: evaluation(seed=0, noise=noise) for name, noise in (("a", 2.0), ("b", 6.0), ("c", 9.0))}
    for result in results.values():
        for table in (result.ground_truth, result.detections):
            object.__setattr__(table, "source", f"/home/somebody/secret/{table.source}.json")
    paths = write_comparison(results, tmp_path, resamples=20, date="")
    pages = [path for path in paths if path.suffix == ".html"]
    assert len(pages) == 6
    for page in pages:
        text = page.read_text()
        (footer,) = re.findall("<footer.*?</footer>", text, re.DOTALL)
        assert ".json" in footer
        assert "secret" not in text
    assert "of arrays.json: image" in (tmp_path / "detector-1.html").read_text()  # an example of a finding
