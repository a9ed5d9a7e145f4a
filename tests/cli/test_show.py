"""``--show`` chooses columns of every printed table, ``--exclude-classes`` leaves classes out."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.errors import InputError
from boxscore.reports.shown_columns import shown_columns
from support.running import Run
from support.samples import DT, GT

SUMMARY = {"metric": ["AP"], "value": [0.5]}
CLASSES = {"class": ["a"], "AP": [0.5], "AP50": [0.6], "a,b": [1]}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], [[*SUMMARY], [*CLASSES]]),
        (["AP50", "class"], [[], ["AP50", "class"]]),
        (["class,AP"], [[], ["class", "AP"]]),
        (["a,b"], [[], ["a,b"]]),
        (["mAP50", "CLASS"], [[], ["AP50", "class"]]),
        (["value", "AP", "AP"], [["value"], ["AP"]]),
    ],
)
def test_columns_are_chosen_in_each_table(wanted: list[str], expected: list[list[str]]) -> None:
    assert [list(table) for table in shown_columns([SUMMARY, CLASSES], wanted)] == expected


def test_a_column_that_no_table_has_is_named() -> None:
    with pytest.raises(InputError, match="Got 'clas'; did you mean 'class'"):
        shown_columns([SUMMARY, CLASSES], ["clas"])
    with pytest.raises(InputError, match="the columns are metric, value"):
        shown_columns([SUMMARY], ["xyz"])
    with pytest.raises(InputError, match="--columns names the columns of an input table"):
        shown_columns([SUMMARY], ["image=photo"])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (["evaluate"], ["class", "AP50"]),
        (["evaluate", "--per-class"], ["AP75", "class"]),
        (["evaluate"], ["metric", "value"]),
        (["images"], ["image_id", "FN"]),
        (["slices"], ["slice", "AP"]),
        (["operating-points"], ["class", "f_score"]),
        (["errors"], ["error", "cost"]),
        (["compare-protocols"], ["protocol", "value"]),
        (["explain"], ["tool", "value"]),
    ],
)
def test_the_same_columns_in_every_form(call: list[str], names: list[str], run: Run) -> None:
    """CSV has all digits, the others have the same heads."""
    name, *options = call
    words = [name, GT, DT, *options, "--show", *names, "--quiet"]
    rows = list(csv.reader(io.StringIO(run(*words, "--output", "csv").out)))
    assert rows[0] == names
    assert len(rows) > 1
    whole = list(csv.DictReader(io.StringIO(run(name, GT, DT, *options, *PER_CLASS.get(names[-1], ()), "-q", "-o", "csv").out)))  # fmt: skip
    assert rows[1:] == [[row[column] for column in names] for row in whole]
    head = f"| {' | '.join(column.replace('_', chr(92) + '_') for column in names)} |"
    markdown = run(*words, "--output", "markdown").out
    assert next(line for line in markdown.splitlines() if line.startswith("| ")) == head
    latex = run(*words, "--output", "latex").out
    assert latex.count("\\begin{tabular}") == 1
    text = run(*words).out
    assert [line.split() for line in text.splitlines() if line.split() == names] == [names]


PER_CLASS = {"AP50": ["--per-class"]}


def test_json_has_every_column(run: Run) -> None:
    assert "--show must be left out with --output json" in run.error(
        "evaluate", GT, DT, "--show", "AP", "-o", "json"
    )


def test_columns_maps_input_and_names_show(run: Run) -> None:
    assert "--show chooses the columns to print" in run.error("evaluate", GT, DT, "--columns", "class", "AP")


def test_rates_are_explained_only_where_they_are_shown(run: Run) -> None:
    said = "score >= 0.55, the best overall F1"
    assert said not in " ".join(run("evaluate", GT, DT, "--show", "class", "AP").out.split())
    assert said in " ".join(run("evaluate", GT, DT, "--show", "class", "F1").out.split())


def test_latex_in_python() -> None:
    text = boxscore.evaluate(GT, DT).to_latex(columns=["class", "AP"])
    assert text.count("\\begin{tabular}{lr}") == 1


# ---------------------------------------------------------------- classes left out


def test_excluded_classes_are_the_others_of_chosen_ones(tmp_path: Path, run: Run) -> None:
    names = boxscore.load_ground_truth(GT).categories.labels
    kept, left = names[:2], names[2:]
    expected = run("evaluate", GT, DT, "--classes", *kept)
    assert run("evaluate", GT, DT, "--exclude-classes", *left) == expected
    assert run("evaluate", GT, DT, "--classes", *names[:3], "--exclude-classes", names[2]) == expected
    (tmp_path / "left.txt").write_text("\n".join(left))
    assert run("evaluate", GT, DT, "--exclude-classes", str(tmp_path / "left.txt")) == expected


def test_excluded_classes_in_python() -> None:
    names = boxscore.load_ground_truth(GT).categories.labels

    def metrics(**options: Any) -> Any:
        return boxscore.evaluate(GT, DT, **options).metrics

    assert metrics(exclude_classes=names[:2]) == metrics(classes=names[2:])
    with pytest.raises(InputError, match="exclude_classes must leave at least one class"):
        boxscore.evaluate(GT, DT, exclude_classes=names)
    with pytest.raises(InputError, match="an excluded class must be in the ground truth"):
        boxscore.evaluate(GT, DT, exclude_classes=["sun"])


def test_every_class_excluded(run: Run) -> None:
    names = boxscore.load_ground_truth(GT).categories.labels
    assert run.error("evaluate", GT, DT, "--exclude-classes", *names) == (
        f"boxscore: error: --exclude-classes must leave at least one class. Got all {len(names)} of them.\n"
    )


def test_partitions_leave_the_same_classes_out(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("pyarrow")
    truth, results = tmp_path / "gt.parquet", tmp_path / "dt"
    run("convert", GT, "--to", "parquet", "--output", str(truth))
    run("convert", GT, "--dt", DT, "--to", "parquet", "--output", str(results), "--partitions", "2")
    name = boxscore.load_ground_truth(GT).categories.labels[0]
    call = ["evaluate", str(truth), str(results), "--exclude-classes", name, "-q"]
    assert run(*call, "--memory-limit", "1GB").out == run(*call).out
