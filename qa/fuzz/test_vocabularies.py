"""A short run of the harness of class names, and that it notices what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from boxscore.data import vocabulary as module
from boxscore.data.class_names import ClassFinder
from fuzz import vocabularies
from fuzz.vocabularies import CHECKS, Case, DifferenceError, RefusedError, Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.errors.BoxscoreWarning")


def case_of(names: dict[Any, str], folder: Path, ids: str = "from 1") -> Case:
    (folder / "case").mkdir()
    return Case(Vocabulary(names, ids), folder / "case", folder / "plain")


@pytest.mark.parametrize(
    ("names", "check"),
    [
        ({1: "cat", 2: "cat", 3: "cat (2)"}, "evaluate as csv"),
        ({1: "2", 2: "1"}, "--classes"),
        ({1: "truth", 2: "(background)"}, "stats as markdown"),
        ({1: "-1", 2: "0"}, "through openimages"),
        ({1: "cat", 2: "cat"}, "through csv"),
        ({1: "2", 2: "1"}, "through yolo"),
        ({1: "2", 2: "1", 3: "cat", 4: "cat"}, "class map from"),
        ({"1": "2", "2": "1", "3": "cat", "4": "cat"}, "class map to"),
    ],
)
def test_as_under_plain_names(names: dict[int, str], check: str, tmp_path: Path) -> None:
    CHECKS[check](case_of(names, tmp_path))


def test_names_that_are_ids_of_others_come_back_from_yolo(tmp_path: Path) -> None:
    """The names of the class list were taken for ids that are texts."""
    CHECKS["through yolo"](case_of({"a": "b", "b": "a"}, tmp_path, "texts"))


def test_what_a_format_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="differ where a format knows classes by name"):
        CHECKS["through voc"](case_of({1: "cat", 2: "cat"}, tmp_path))


def test_labels_that_are_equal_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of({1: "cat", 2: "cat"}, tmp_path)
    monkeypatch.setattr(module, "class_labels", lambda names, ids, beside=(): list(names))
    with pytest.raises(DifferenceError, match=r"'cat' *\ninstead of\n'plain0001'"):
        CHECKS["evaluate as csv"](case)


def test_the_first_of_two_classes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of({1: "cat", 2: "cat"}, tmp_path)
    monkeypatch.setattr(ClassFinder, "row", lambda self, word, **_: [*self.rows(word), -1][0])
    with pytest.raises(DifferenceError, match=r"^--classes 'cat' can be \[1, 2\]"):
        CHECKS["--classes"](case)


@pytest.mark.long
def test_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert vocabularies.try_cases(range(7_000_000, 7_000_006), every=False, together=2) == 0
    assert "6 vocabularies" in capsys.readouterr().out
