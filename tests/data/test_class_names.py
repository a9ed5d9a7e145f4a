"""Labels of classes, and the class that a word stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore.data.vocabulary import Categories
from support.running import Run

REPEATED = [
    "cat",
    "cat (1)",
    "cat (2)",
    "cat (2) (2)",
    "1",
    "2",
    "01",
    "-1",
    "",
    " ",
    "(background)",
    "(all)",
]
ALIKE = ["a\tb", "a\nb", "caf\u00e9", "cafe\u0301", " cat", "cat  ", "truth"]
WORDS = st.sampled_from([*REPEATED, *ALIKE])
IDS = st.one_of(st.integers(-1, 4), st.sampled_from(["1", "2", "cat", "cat (1)", ""]))
CLASSES = st.dictionaries(IDS, WORDS, min_size=1, max_size=8)


def vocabulary(classes: dict[Any, str]) -> Categories:
    return Categories.build(list(classes), names=list(classes.values()))


@given(classes=CLASSES)
def test_every_label_is_of_one_class_and_stands_for_it(classes: dict[Any, str]) -> None:
    known = vocabulary(classes)
    for labels in (known.labels, known.labels_beside("truth")):
        assert len({label.strip() for label in labels}) == len(known)
        assert not {"(background)", "(all)", "(mean)", ""} & {label.strip() for label in labels}
        assert known.rows_by_word(labels).tolist() == [*range(len(known))]
        assert known.rows_by_word(labels, numbers=True).tolist() == [*range(len(known))]
    assert "truth" not in known.labels_beside("truth")


@given(classes=CLASSES, word=st.one_of(WORDS, IDS))
def test_a_word_stands_for_a_class_only_if_it_can_stand_for_no_other(
    classes: dict[Any, str], word: int | str
) -> None:
    known = vocabulary(classes)
    exact = {
        row
        for row, each in enumerate(zip(known.ids.tolist(), known.names.tolist(), known.labels, strict=True))
        if word in each
    }
    if len(exact) > 1:
        with pytest.raises(InputError, match="stand for one class"):
            known.rows_by_word([word])
    elif exact:
        assert known.rows_by_word([word]).tolist() == [*exact]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ({1: "cat", 2: "cat", 3: "dog"}, ["cat (1)", "cat (2)", "dog"]),
        ({1: "cat", 2: "cat", 3: "cat (2)"}, ["cat (1)", "cat (2) (2)", "cat (2)"]),
        ({1: "2", 2: "1", 3: "3"}, ["2 (1)", "1 (2)", "3"]),
        ({0: "0", 1: "1"}, ["0", "1"]),
        ({0: "", 1: " "}, ["(0)", "(1)"]),
        ({1: "x", "1": "x"}, ["x (1)", "x ('1')"]),
        ({0: "cafe\u0301", 1: "caf\u00e9"}, ["cafe\u0301 (0)", "caf\u00e9 (1)"]),
        ({0: "a\tb", 1: "a\nb", 2: "a b"}, ["a\tb (0)", "a\nb (1)", "a b"]),
        ({0: "(background)", 1: "(mean)", 2: "(all)"}, ["(background) (0)", "(mean) (1)", "(all) (2)"]),
    ],
)
def test_labels(classes: dict[Any, str], labels: list[str]) -> None:
    assert vocabulary(classes).labels == labels


def data() -> tuple[GroundTruth, Detections]:
    boxes = np.array([[20.0, 0, 30, 10], [40, 0, 50, 10], [60, 0, 70, 10]])
    names = {1: "cat", 2: "cat", 3: "2"}
    truth = GroundTruth.from_arrays([1, 1, 1], [1, 2, 3], boxes, categories=names)
    detections = Detections.from_arrays([1, 1], [1, 3], boxes[[0, 2]], [0.9, 0.8], categories=names)
    return truth, detections


@pytest.mark.parametrize(
    ("word", "scored"), [("cat (1)", [1.0]), ("cat (2)", [0.0]), (2, [0.0]), ("2 (3)", [1.0])]
)
def test_an_evaluation_of_one_class_by_its_label(word: int | str, scored: list[float]) -> None:
    result = boxscore.evaluate(*data(), classes=[word])
    assert result.class_values["AR100"].tolist() == scored


def test_a_name_of_two_classes_is_refused_with_both() -> None:
    with pytest.raises(InputError) as error:
        boxscore.evaluate(*data(), classes=["cat"])
    assert str(error.value) == (
        "a chosen class must stand for one class. Got 'cat', the name or id of 2; give 'cat (1)', 'cat (2)'."
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "cat",
            "a chosen class must stand for one class. Got 'cat', the name or id of 2; give 'cat (1)', 'cat (2)'.",
        ),
        (
            "2",
            "a chosen class must stand for one class. Got '2', the name or id of 2; give 'cat (2)', '2 (3)'.",
        ),
    ],
)
def test_the_command_refuses_what_stands_for_two_classes(
    tmp_path: Path, words: str, says: str, run: Run
) -> None:
    truth, detections = data()
    boxscore.save_as(truth, tmp_path / "gt.json", lossy=True)
    boxscore.save_as(detections, tmp_path / "dt.json")
    inputs = [str(tmp_path / "gt.json"), str(tmp_path / "dt.json")]
    assert run("evaluate", *inputs, "--classes", words, status=2) == ("", f"boxscore: error: {says}\n")
    for label in ("cat (1)", "cat (2)", "2 (3)", "1", "3"):
        assert (
            len(run("evaluate", *inputs, "--classes", label, "-o", "csv", "--per-class").out.splitlines())
            == 2
        )
