"""Which rows a table shows, and in which order; precision, recall and F1 per class."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.diagnostics import operating_points
from boxscore.reports.rows import Rows
from support.running import Run
from support.samples import DT, GT
from support.scenes import CROWDS, NO_SCORES, PHRASES
from support.shipped import box_protocols


def table(run: Run, *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run(*arguments, "--output", "csv", "--quiet").out)))


# ---------------------------------------------------------------- the order


@pytest.mark.parametrize(
    ("sort", "top", "expected", "words"),
    [
        ("", None, [0, 1, 2, 3], ""),
        ("", 2, [0, 1], "2 of 4"),
        ("AP", None, [3, 0, 2, 1], "sorted by lowest AP"),
        ("AP:desc", None, [0, 2, 3, 1], "sorted by highest AP"),
        ("FP", 3, [1, 2, 0], "3 of 4, sorted by highest FP"),
        ("TP", None, [0, 1, 2, 3], "sorted by lowest TP"),
        ("class", None, [3, 1, 0, 2], "sorted by class from A"),
        ("class:desc", None, [2, 0, 1, 3], "sorted by class from Z"),
        ("TP,AP", None, [2, 0, 3, 1], "sorted by lowest TP, then lowest AP"),
        ("objects", None, [1, 2, 3, 0], "sorted by highest objects"),
        ("MR", None, [2, 0, 1, 3], "sorted by highest MR"),
        ("image_id", None, [1, 2, 3, 0], "sorted by lowest image_id"),
        ("a:asc", None, [1, 0, 2, 3], "sorted by lowest a:asc"),
    ],
)
def test_the_worst_come_first(sort: str, top: int | None, expected: list[int], words: str) -> None:
    """Undefined values come last either way, and equal rows stay in their order."""
    columns = {
        "class": ["dog", "cat", "eel", "ant"],
        "AP": [0.5, float("nan"), 0.5, 0.25],
        "FP": [1, 7, 3, None],
        "TP": [0, 1, 2, 3],
        "objects": np.array([1, 4, 3, 2]),
        "MR": [0.5, 0.25, 0.75, float("nan")],
        "image_id": [9, 2, 3, 4],
        "a:asc": [0.2, 0.1, 0.3, 0.4],
    }
    if sort == "TP,AP":
        columns["TP"], columns["AP"] = [1, 1, 0, 1], [0.5, float("nan"), 0.5, 0.75]
    rows, said = Rows(sort, top).of(columns, falling=("MR",))
    assert (rows, said) == (expected, words)


def test_evaluate_sorts_its_classes(run: Run) -> None:
    frame = boxscore.evaluate(GT, DT).per_class
    everything = table(run, "evaluate", GT, DT, "--per-class")
    assert [row["class"] for row in everything] == frame["class"].tolist()
    for column in ("AP", "F1", "recall", "ARl"):
        expected = frame.sort_values(column, kind="stable", na_position="last")["class"].tolist()
        assert [row["class"] for row in table(run, "evaluate", GT, DT, "--sort", column)] == expected
        shown = table(run, "evaluate", GT, DT, "--sort", column, "--top", "2")
        assert [row["class"] for row in shown] == expected[:2]
    worst = frame.sort_values("AP", kind="stable")["class"].tolist()[:3]
    assert [row["class"] for row in table(run, "evaluate", GT, DT, "--top", "3")] == worst
    assert [
        row["class"]
        for row in json.loads(run("evaluate", GT, DT, "--top", "3", "--output", "json", "-q").out)[
            "per_class"
        ]
    ] == worst


def test_the_heading_says_which_and_what(run: Run) -> None:
    assert (
        "\n\nPer class, 3 of 7, sorted by lowest AP; precision, recall, F1, TP, FP and FN at IoU >= 0.50 and score >= 0.55, the best overall F1\n\nclass    ground_truths"
    ) in run("evaluate", GT, DT, "--top", "3", "--wide", "-q").out


def test_counts_at_the_score_are_printed_at_80_columns_if_they_are_named(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plain = run("evaluate", GT, DT, "--per-class", "-q", "--output", "markdown").out
    assert "; precision, recall and F1 at IoU" in plain
    named = run("evaluate", GT, DT, "-q", "--sort", "FP", "--show", "class", "tp", "FP", "FN", "AP").out
    heading, _, table = named.partition(
        "sorted by highest FP; TP, FP and FN at IoU >= 0.50 and score >= 0.55,"
    )
    assert heading
    assert table.split("\n\n")[1].splitlines()[:2] == [
        "class     TP  FP  FN     AP",
        "square    21   8   3  0.520",
    ]


def test_images_begin_with_the_worst(run: Run) -> None:
    rows = table(run, "images", GT, DT)
    keys = [(float(row["AP"] or "inf"), -int(row["FN"]), -int(row["FP"])) for row in rows]
    assert keys == sorted(keys)
    assert len(rows) == 24
    assert [row["image_id"] for row in table(run, "images", GT, DT, "--top", "2")] == ["180", "109"]
    by_name = table(run, "images", GT, DT, "--sort", "file_name")
    assert [row["image_id"] for row in by_name] == sorted(row["image_id"] for row in rows)


@pytest.mark.parametrize(
    ("command", "sort"),
    [
        (["operating-points", GT, DT], "f_score"),
        (["calibration", GT, DT], "expected_error"),
        (["lrp", GT, DT], "lrp"),
        (["slices", GT, DT, "--by", "size"], "AP"),
        (["stats", GT], "objects"),
        (["errors", GT, DT, "--per-class"], "cost"),
        (["compare", GT, DT, DT, "--resamples", "2", "--per-class"], "delta"),
    ],
)
def test_totals_stay_below(command: list[str], sort: str, run: Run) -> None:
    """Sorting moves rows of classes alone; ``--top`` cuts no total."""
    rows, ordered = table(run, *command), table(run, *command, "--sort", sort)
    first = next(iter(rows[0]))
    totals = [row for row in rows if row.get("class", row[first]).startswith("(")]
    key = lambda row: sorted(row.items())  # noqa: E731
    assert sorted(ordered, key=key) == sorted(rows, key=key)
    assert ordered[len(ordered) - len(totals) :] == totals
    assert table(run, *command, "--sort", sort, "--top", "1") == [ordered[0], *totals]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sort", "APP"], "--sort must name a column of the table. Got 'APP'; did you mean 'AP'?"),
        (["--top", "0"], "--top must be a whole number >= 1. Got 0."),
    ],
)
def test_bad_rows(options: list[str], message: str, run: Run) -> None:
    printed = run("evaluate", GT, DT, *options, "-q", status=2)
    assert (printed.out, printed.err) == ("", f"boxscore: error: {message}\n")


# ---------------------------------------------------------------- precision, recall and F1


def random_tables(seed: int) -> tuple[GroundTruth, Detections]:
    draw = np.random.default_rng(seed)
    boxes = draw.integers(0, 60, (40, 2))
    truth = np.hstack([boxes, boxes + draw.integers(8, 40, (40, 2))]).astype(float)
    images, classes = draw.integers(0, 6, 40), draw.choice(["a", "b", "c", "d"], 40)
    again = draw.integers(0, 40, 90)
    scores = np.sort(np.round(draw.random(90), 1))[::-1]
    found = truth[again] + draw.normal(0, 3, (90, 4))
    found[:, 2:] = np.maximum(found[:, :2] + 1, found[:, 2:])
    names = np.where(draw.random(90) < 0.8, classes[again], "e")
    every = ["a", "b", "c", "d", "e"]
    return (
        GroundTruth.from_arrays(images, classes, truth, images=range(6), categories=every),
        Detections.from_arrays(images[again], names, found, scores, categories=every),
    )


def slow_rates(result: boxscore.Evaluation) -> tuple[float, dict[str, list[float]]]:
    """Try every score that occurs, and count with loops."""
    rows = [row for row in result.matches.to_dict("records") if row["outcome"].endswith("positive")]
    objects = dict(zip(result.labels, result.class_counts["ground_truths"].tolist(), strict=True))

    def counts(name: str | None, score: float) -> tuple[int, int, int]:
        kept = [row for row in rows if row["score"] >= score and name in (None, row["class"])]
        true = sum(row["outcome"] == "true positive" for row in kept)
        return true, len(kept) - true, (sum(objects.values()) if name is None else objects[name]) - true

    def f1(true: int, false: int, missed: int) -> float:
        return 2 * true / (2 * true + false + missed) if true + false + missed else float("nan")

    scores = sorted({row["score"] for row in rows}, reverse=True)
    best = max(scores, key=lambda score: f1(*counts(None, score)))
    rates: dict[str, list[float]] = {"precision": [], "recall": [], "F1": [], "TP": [], "FP": [], "FN": []}
    for name in result.labels:
        true, false, missed = counts(name, best)
        rates["precision"].append(true / (true + false) if true + false else float("nan"))
        rates["recall"].append(true / (true + missed) if true + missed else float("nan"))
        rates["F1"].append(f1(true, false, missed))
        for count, one in zip(("TP", "FP", "FN"), (true, false, missed), strict=True):
            rates[count].append(one)
    return best, rates


@pytest.mark.parametrize("seed", range(5))
def test_rates_equal_a_slow_count(seed: int) -> None:
    result = boxscore.evaluate(*random_tables(seed))
    best, rates = slow_rates(result)
    assert result.operating_score == best
    for name, values in rates.items():
        np.testing.assert_array_equal(result.per_class[name], values)


@pytest.mark.parametrize(
    "protocol",
    box_protocols(*CROWDS, *NO_SCORES, *PHRASES),
)
def test_rates_are_those_of_the_operating_point(protocol: str, recwarn: Any) -> None:
    result = boxscore.evaluate(*random_tables(9), protocol=protocol)
    assert result.operating_score == operating_points(result).total.score
    points = operating_points(result, at_score=result.operating_score).per_class
    for name, field in (("precision", "precision"), ("recall", "recall"), ("F1", "f_score")):
        np.testing.assert_array_equal(result.class_rates[name], getattr(points, field))


def test_rates_without_scores_are_of_every_detection() -> None:
    result = boxscore.evaluate(*random_tables(9), protocol="scoreless")
    assert result.operating_score == -np.inf
    with pytest.raises(boxscore.InputError, match="the detections must have scores for this"):
        operating_points(result)
    outcomes, K = result.matched.detection_outcomes(0, 0), len(result.labels)
    classes = result.detections.category[result.matched.row]
    true = np.bincount(classes[outcomes.true], minlength=K)
    counted = np.bincount(classes[outcomes.counted], minlength=K)
    objects = result.ground_truth.category[~result._matcher.ignoring.ignored]
    # Precision, recall and F1 are metrics of the protocol.
    assert sorted(result.class_rates) == ["false_negatives", "false_positives"]
    np.testing.assert_array_equal(result.class_rates["false_positives"], counted - true)
    np.testing.assert_array_equal(
        result.class_rates["false_negatives"], np.bincount(objects, minlength=K) - true
    )


def test_rates_of_nothing() -> None:
    truth = GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]], categories=["cat", "dog"])
    result = boxscore.evaluate(truth, Detections.from_arrays([], [], [], []))
    assert result.operating_score == -np.inf
    assert result.per_class["recall"].tolist()[0] == 0
    assert result.per_class["F1"].tolist()[0] == 0
    assert result.per_class[["precision", "recall", "F1"]].isna().to_numpy().tolist() == [
        [True, False, False],
        [True, True, True],
    ]
