"""Classes that count differently in means over classes, against plain loops over the values of each class."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.diagnostics import error_types, froc_scores, localization_recall_precision
from boxscore.extensions.weights.class_weight_files import class_weights_in_file
from boxscore.extensions.weights.resampling import Draws
from boxscore.protocols import changed_protocol, load_protocol
from support import limits
from support.curves import K, tables
from support.every_cell import weighted_summary
from support.running import Run
from support.samples import SHAPES

pytestmark = pytest.mark.rules

TRUTH, FOUND = SHAPES / "instances.json", SHAPES / "detections.json"
RULES: list[dict[str, Any]] = [
    {},
    {"ap": {"class_mean": "nanmean", "absent_classes": "zero"}},
    {"ap": {"interpolation": "area"}},
    {"summary": [{"key": kind, "metric": kind} for kind in ("AP", "AR", "F1", "FROC", "MR")]},
]


def protocol_of(weights: Any, rules: dict[str, Any] | None = None) -> boxscore.Protocol:
    ap = {**(rules or {}).get("ap", {}), "class_weights": weights}
    return load_protocol({"extends": "coco", "name": "case", **(rules or {}), "ap": ap})


def plain_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Add up class by class; one without a value is left out with its weight."""
    total = divisor = 0.0
    for value, weight in zip(values, weights, strict=True):
        if not math.isnan(value):
            total += weight * value
            divisor += weight
    return total / divisor if divisor else math.nan


def same(ours: Sequence[float], plain: Sequence[float]) -> None:
    assert list(ours) == pytest.approx(list(plain), rel=1e-13, nan_ok=True)


def words(evaluation: boxscore.Evaluation, weights: Sequence[float]) -> dict[str, float]:
    return dict(zip(evaluation.labels, weights, strict=True))


# ---------------------------------------------------------------- the mean


@pytest.mark.long
@pytest.mark.oracle
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_metric_as_a_plain_loop_over_classes(rules: dict[str, Any], seed: int) -> None:
    plain = boxscore.evaluate(*tables(seed), protocol=protocol_of({}, rules))
    weights = np.random.default_rng(seed).integers(0, 4, K).tolist()
    weights[0] = 2.5
    result = boxscore.evaluate(*tables(seed), protocol=protocol_of(words(plain, weights), rules))
    rows, ones = plain.protocol.rows, np.ones(len(plain.images))
    of_classes = plain._weighted_metrics(rows, [ones]).values[0][:, :-1]
    same([*result.metrics.values()], [plain_mean(values.tolist(), weights) for values in of_classes])
    assert all(
        a.tobytes() == b.tobytes()
        for a, b in zip(result.class_values.values(), plain.class_values.values(), strict=True)
    )


def test_a_number_by_hand() -> None:
    """AP of a is 1, of b 0; c has no object, and leaves with its weight."""
    box = [[0, 0, 10, 10]]
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "b"], box * 2, categories=["a", "b", "c"])
    found = boxscore.Detections.from_arrays([1], ["a"], box, [0.5])
    result = boxscore.evaluate(truth, found, protocol=protocol_of({"a": 3, "b": 1, "c": 100}))
    assert result["AP"] == pytest.approx(0.75, abs=1e-15)
    assert "classweight:a=3,b=1,c=100" in result.signature.split("|")
    only_absent = boxscore.evaluate(truth, found, protocol=protocol_of({"c": 1, "*": 0}))
    assert math.isnan(only_absent["AP"])


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("weights", [{"*": 3}, {"*": 1e-90}])
def test_equal_weights_have_the_bits_of_none(rules: dict[str, Any], weights: dict[str, float]) -> None:
    plain, equal = (
        boxscore.evaluate(*tables(4), protocol=protocol_of(each, rules)) for each in ({}, weights)
    )
    assert np.array([*plain.metrics.values()]).tobytes() == np.array([*equal.metrics.values()]).tobytes()
    assert equal._class_weights is None


def test_weights_of_zero_and_one_have_the_bits_of_the_chosen_classes() -> None:
    truth = boxscore.load_ground_truth(TRUTH)
    found = boxscore.load_detections(FOUND, truth)
    chosen = boxscore.evaluate(truth, found, classes=["circle", "star"])
    weighted = boxscore.evaluate(truth, found, protocol=protocol_of({"circle": 1, "star": 1, "*": 0}))
    assert np.array([*chosen.metrics.values()]).tobytes() == np.array([*weighted.metrics.values()]).tobytes()


def test_a_value_at_some_thresholds_alone_counts_there() -> None:
    """The detection of a is ignored at IoU .5, in a crowd, and false at .9, where a misses all: MR 1.

    b finds its object at both: MR 0. With weights 3 and 1 the mean of three values is 3 / (3 + 1 + 1).
    """
    boxes = [[0, 0, 10, 10], [50, 50, 60, 60], [0, 0, 10, 10]]
    truth = boxscore.GroundTruth.from_arrays([1] * 3, ["a", "a", "b"], boxes, crowd=[False, True, False])
    found = boxscore.Detections.from_arrays([1, 1], ["a", "b"], [[54, 50, 64, 60], boxes[2]], [0.9, 0.8])
    rules = {
        "matching": {"iou_thresholds": [0.5, 0.9]},
        "miss_rate": {"false_positives_per_image": [1], "reading": "first_at_least"},
        "summary": [{"key": "MR", "metric": "MR"}, {"key": "MR50", "metric": "MR", "iou": 0.5}],
    }
    result = boxscore.evaluate(truth, found, protocol=protocol_of({"a": 3, "b": 1}, rules))
    assert result.metrics == pytest.approx({"MR": 0.6, "MR50": 0.0}, abs=1e-15)


def test_very_many_values_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def metrics() -> list[float]:
        plain = boxscore.evaluate(*tables(2))
        weights = words(plain, [k % 3 + 0.5 for k in range(K)])
        return [*boxscore.evaluate(*tables(2), protocol=protocol_of(weights)).metrics.values()]

    held = metrics()
    limits.few_values_of_curves(monkeypatch, 1)
    assert np.array(metrics()).tobytes() == np.array(held).tobytes()


# ---------------------------------------------------------------- other ways to the same number


@pytest.fixture
def weighted() -> boxscore.Evaluation:
    plain = boxscore.evaluate(*tables(3))
    weights = words(plain, [(k * 7) % 5 + 0.25 for k in range(K)])
    return boxscore.evaluate(*tables(3), protocol=protocol_of(weights))


@pytest.mark.long
def test_under_image_weights(weighted: boxscore.Evaluation) -> None:
    ones = weighted_summary(weighted, np.ones(len(weighted.images)))
    assert ones[:, -1].tobytes() == np.array([*weighted.metrics.values()]).tobytes()
    assert weighted._class_weights is not None
    draws = Draws.of_seed(len(weighted.images), 9, 1)
    for table in weighted._weighted_metrics(weighted.protocol.rows, draws).values:
        plain = [plain_mean(row[:-1].tolist(), weighted._class_weights.tolist()) for row in table]
        same(table[:, -1].tolist(), plain)


@pytest.mark.long
@pytest.mark.parametrize("partitions", [1, 3])
def test_in_partitions(weighted: boxscore.Evaluation, partitions: int) -> None:
    parts = boxscore.scan(*tables(3), protocol=weighted.protocol, partitions=partitions)
    assert np.array([*parts.metrics.values()]).tobytes() == np.array([*weighted.metrics.values()]).tobytes()
    assert parts._class_weights.tolist() == weighted._class_weights.tolist()  # type: ignore[union-attr]
    draws = Draws.of_seed(len(weighted.images), 5, 1)
    rows = weighted.protocol.rows
    ours, whole = (each._weighted_metrics(rows, draws).values for each in (parts, weighted))
    assert ours.tobytes() == whole.tobytes()


def test_saved_parts_and_the_evaluator(weighted: boxscore.Evaluation, tmp_path: Path) -> None:
    weighted.save_part(tmp_path / "part.npz")
    merged = boxscore.distributed.merge([tmp_path / "part.npz"])
    assert merged["AP"] == weighted["AP"]
    assert merged.signature == weighted.signature


@pytest.mark.oracle
def test_means_of_diagnostics(weighted: boxscore.Evaluation) -> None:
    assert weighted._class_weights is not None
    weights = weighted._class_weights.tolist()
    froc = froc_scores(weighted)
    same([froc.mean.mean], [plain_mean(froc.per_class.mean.tolist(), weights)])
    lrp = localization_recall_precision(weighted)
    same([lrp.total.lrp], [plain_mean(lrp.per_class.lrp.tolist(), weights)])
    types = error_types(weighted)
    same([types.total.value[0]], [plain_mean(types.per_class.value[:, 0].tolist(), weights)])


# ---------------------------------------------------------------- a column of classes


def test_a_column_of_classes() -> None:
    truth, found = tables(3)
    weights = [(k * 7) % 5 + 0.25 for k in range(K)]
    categories = truth.categories
    build = boxscore.data.vocabulary.Categories.build  # type: ignore[attr-defined]
    columns = {"importance": weights, "color": ["red"] * K}
    with_columns = build(categories.ids, names=categories.names.tolist(), columns=columns)
    described = truth.replaced(categories=with_columns)
    result = boxscore.evaluate(described, found, protocol=protocol_of("importance"))
    by_name = boxscore.evaluate(truth, found, protocol=protocol_of(words(result, weights)))
    assert result.metrics == pytest.approx(by_name.metrics, abs=0, nan_ok=True)
    assert "classweight:column=importance" in result.signature.split("|")
    with pytest.raises(boxscore.InputError, match=r"Got 'importanc'; did you mean 'importance'\?"):
        boxscore.evaluate(described, found, protocol=protocol_of("importanc"))
    with pytest.raises(boxscore.InputError, match="the column 'color' of classes must be numbers"):
        boxscore.evaluate(described, found, protocol=protocol_of("color"))


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("ap", "message"),
    [
        ({"class_weights": {"a": -1}}, "ap.class_weights.a must be a number in [0, 1e+100]. Got -1."),
        ({"class_weights": {"a": math.nan}}, "ap.class_weights.a must be a number in [0, 1e+100]. Got nan."),
        ({"class_weights": {"a": math.inf}}, "ap.class_weights.a must be a number in [0, 1e+100]. Got inf."),
        ({"class_weights": {"a": "2"}}, "ap.class_weights.a must be a number in [0, 1e+100]. Got '2'."),
        ({"class_weights": {"a": 0}}, "ap.class_weights must have a weight above 0. Got none."),
        ({"class_weights": {"1": 1, 1: 2}}, "ap.class_weights must name each class once. Got '1' twice."),
        (
            {"class_weights": [1, 2]},
            "ap.class_weights must be a table of class = weight, or the name of a column of classes. Got [1, 2].",
        ),
        (
            {"class_weights": {"a": 1}, "pool": "classes"},
            "ap.pool must be 'none' where classes have weights: one curve has no mean over classes. Got "
            "'classes'; leave out one of the two.",
        ),
        (
            {"class_weights": {"a": 1}, "class_mean": "by_images"},
            "ap.class_mean must be 'of_defined' or 'nanmean' where classes have weights: by_images weighs them "
            "by images. Got 'by_images'; leave out one of the two.",
        ),
    ],
)
def test_refused(ap: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.ProtocolError) as error:
        load_protocol({"extends": "coco", "ap": ap})
    assert str(error.value) == message


def test_refused_where_classes_are_not_told_apart() -> None:
    with pytest.raises(
        boxscore.ProtocolError, match=r"matching\.per_class must be true where classes have wei"
    ):
        load_protocol(
            {"extends": "coco", "matching": {"per_class": False}, "ap": {"class_weights": {"a": 1}}}
        )


def no_task(*_: Any) -> Any:
    raise AssertionError("refused before any partition is matched")


def test_unknown_and_missing_classes() -> None:
    truth = boxscore.load_ground_truth(TRUTH)
    found = boxscore.load_detections(FOUND, truth)

    def refused(weights: dict[Any, float], **options: Any) -> str:
        with pytest.raises(boxscore.InputError) as error:
            boxscore.evaluate(truth, found, protocol=protocol_of(weights), **options)
        return str(error.value)

    assert refused({"circl": 2, "*": 1}) == (
        "class_weights must be of classes of the data set. Got 'circl'; did you mean 'circle'?"
    )
    assert refused({"circle": 2, "star": 1}) == (
        "class_weights must name every class. Got none for square, triangle, hexagon, cross, moon; a weight of "
        "'*' is that of all classes without one."
    )
    assert refused({"circle": 2, 1: 2, "*": 1}) == (
        "class_weights must name each class once. Got 'circle' and '1'."
    )
    some = boxscore.evaluate(
        truth, found, classes=["circle", "star"], protocol=protocol_of({"circle": 2, 5: 1, "square": 9})
    )
    plain = boxscore.evaluate(truth, found, classes=["circle", "star"])
    assert some["AP"] == pytest.approx(plain_mean(plain.class_values["AP"].tolist(), [2, 1]), rel=1e-14)
    for weights, said in (
        ({"circl": 2, "*": 1}, "did you mean 'circle'"),
        ({"circle": 2}, "name every class"),
    ):
        with pytest.raises(boxscore.InputError, match=said):
            boxscore.scan(truth, found, protocol=protocol_of(weights), partitions=2, map=no_task)


# ---------------------------------------------------------------- the file and the command


@pytest.mark.parametrize(
    "text",
    [
        "circle,5\nsquare,1\n*,0.5\n",
        "\ufeffclass,weight\n# important\ncircle, 5\n\nsquare, 1\n*,.5",
        "circle 5\nsquare\t1\n* 0.5",
        "name;importance\ncircle;5\nsquare;1\n*;0.5",
        '{"circle": 5, "square": 1, "*": 0.5}',
    ],
)
def test_forms_of_the_file(text: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "weights.csv"
    path.write_text(text, encoding="utf-8")
    weights = {"circle": 5.0, "square": 1.0, "*": 0.5}
    assert class_weights_in_file(path) == weights
    printed = run("evaluate", TRUTH, FOUND, "--class-weights", path, "--no-digest", "--output", "json").out
    protocol = changed_protocol(load_protocol("coco"), class_weights=weights)
    truth = boxscore.load_ground_truth(TRUTH)
    ours = boxscore.evaluate(truth, boxscore.load_detections(FOUND, truth), protocol=protocol)
    values = json.loads(printed)
    assert values["metrics"]["AP"] == ours["AP"]
    assert "classweight:*=0.5,circle=5,square=1" in values["signature"]


def test_very_many_weights_have_a_digest() -> None:
    one, other = (
        protocol_of({str(k): k + more for k in range(20)}).signature().split("|") for more in (0, 1)
    )
    (word,) = [part for part in one if part.startswith("classweight:20-classes-")]
    assert word not in other


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("circle,-1", "the weight of 'circle' must be a finite number >= 0. Got '-1' in line 1 of w.csv."),
        ("circle,nan", "the weight of 'circle' must be a finite number >= 0. Got 'nan' in line 1 of w.csv."),
        (
            "*,1\ncircle,inf",
            "the weight of 'circle' must be a finite number >= 0. Got 'inf' in line 2 of w.csv.",
        ),
        ("circle,big", "the weight of 'circle' must be a finite number >= 0. Got 'big' in line 1 of w.csv."),
        ("circle", "a line of class weights must be class,weight. Got 'circle' in line 1 of w.csv."),
        (
            "a,b,1",
            "a line of class weights must be class,weight. Got 'a,b,1' in line 1 of w.csv; quote a name that "
            "has a comma.",
        ),
        ("a,1\na,2", "a file of class weights must name each class once. Got 'a' twice in line 2 of w.csv."),
        ("\n", "a file of class weights must weigh at least one class. Got none in w.csv."),
        ('{"a": "x"}', "the weight of 'a' must be a finite number >= 0. Got 'x' in w.csv."),
        ('{"a": 1, "a": 2}', "a file of class weights must name each class once. Got 'a' twice in w.csv."),
        ("[1]", "a JSON file of class weights must be {\"class\": weight, ...}. Got '[1]' in w.csv."),
        ('{"a": 1', 'a JSON file of class weights must be {"class": weight, ...}. Got \'{"a": 1\' in w.csv.'),
    ],
)
def test_spoilt_files(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.csv").write_text(text, encoding="utf-8")
    error = run.error("evaluate", TRUTH.absolute(), FOUND.absolute(), "--class-weights", "w.csv")
    assert error == f"boxscore: error: {message}\n"
