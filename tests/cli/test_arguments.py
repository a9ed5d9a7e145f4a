"""Every argument is said once: argparse, run configurations and the reference are made from it."""

from __future__ import annotations

import argparse
import inspect
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from boxscore import diagnostics
from boxscore.cli import COMMANDS, load_command, main
from boxscore.cli.arguments import OUTPUT_FORMS, Option, errors_as_typed
from boxscore.cli.commands import ENTRIES, Entry
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.extensions.diagnostics.commands import DIAGNOSTICS, Diagnostic
from boxscore.extensions.pages.folder import PlotFormat, TableFormat
from boxscore.extensions.pages.options import PLOT_FORMS, TABLE_FORMS
from boxscore.extensions.shell.parameters import options_of
from support.each import each
from support.running import Run
from support.samples import DT, GT


def test_the_forms_of_a_report_are_those_it_writes() -> None:
    assert get_args(PlotFormat) == PLOT_FORMS
    assert get_args(TableFormat) == TABLE_FORMS


# ---------------------------------------------------------------- one word for one thing


def test_an_option_has_one_kind_in_all_commands() -> None:
    """But for the sweep, whose numbers are grids, and these: a form or a file, edges or a count, a rule or a share."""
    kinds: dict[str, set[Any]] = defaultdict(set)
    for command in set(COMMANDS) - {"sweep"}:
        for option in load_command(command).options:
            kinds[option.name].add(option.kind)
    assert {name for name, found in kinds.items() if len(found) > 1} == {"output", "bins", "confidence"}


@each(COMMANDS)
def test_no_help_repeats_the_default(command: str) -> None:
    for option in load_command(command).options:
        default = option.but(help="").default_text
        assert not default or not option.help.endswith(default), option.name


@pytest.mark.parametrize(
    ("option", "text"),
    [
        (Option("a", kind=float, default=1.0), " (default: 1)"),
        (Option("a", kind=int, default=0), " (default: 0)"),
        (Option("a", many=True, default=("x", "y")), " (default: x y)"),
        (Option("a", "b (default: as the protocol says)", default="x"), ""),
        (Option("a", kind=bool, default=True), ""),
        (Option("a", default=()), ""),
    ],
)
def test_the_default_behind_a_help(option: Option, text: str) -> None:
    assert option.default_text == text


@each(COMMANDS)
def test_the_words_of_the_field(command: str) -> None:
    names = {option.name for option in load_command(command).options}
    assert not names & {"iou", "minimum-score", "min-score", "score", "threshold", "most-per-image"}


@pytest.mark.parametrize("name", ["--minimum-score", "--min-score"])
def test_words_that_are_gone(name: str, run: Run) -> None:
    assert run.error("confusion", "--gt", GT, "--dt", DT, name, "0.5").startswith(
        f"boxscore: error: confusion does not take {name}"
    )


# ---------------------------------------------------------------- the table of diagnostics


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_every_option_of_a_diagnostic_is_a_parameter(name: str) -> None:
    """An option that no function takes, and that does not choose what is printed, would be forgotten."""
    row = DIAGNOSTICS[name]
    functions = [getattr(diagnostics, function) for function in (row.function, *row.instead.values())]
    parameters = {parameter for function in functions for parameter in inspect.signature(function).parameters}
    options = {option.dest for option in row.options}
    assert options - parameters - set(row.instead) - {"per_class"} == set()
    assert set(row.instead) <= options


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_defaults_are_those_of_the_function(name: str) -> None:
    row = DIAGNOSTICS[name]
    signature = inspect.signature(getattr(diagnostics, row.function)).parameters
    defaults = {parameter: value.default for parameter, value in signature.items()}
    for option in row.options:
        if option.dest in defaults and not option.required and option.dest not in row.unset:
            assert option.default == defaults[option.dest], option.name


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_every_parameter_of_a_diagnostic_is_an_option_with_a_help(name: str) -> None:
    row = DIAGNOSTICS[name]
    parameters = set(inspect.signature(getattr(diagnostics, row.function)).parameters)
    helps = {option.dest: option.help for option in row.options}
    assert parameters - {"evaluation", "progress", "workers"} <= set(helps)
    assert [dest for dest, text in helps.items() if not text or "``" in text or text.endswith(".")] == []


Rule = Literal["all", "some"]


def counted(
    evaluation: Any,
    *,
    times: int = 1,
    iou_threshold: float | None = None,
    rule: Rule = "all",
    sizes: Sequence[float] | None = None,
    area: str = "all",
    progress: bool = False,
) -> None:
    """Count.

    Parameters
    ----------
    evaluation : Evaluation
    times : int, default 1
        How often, as in ``range``. Then
        a second sentence.
    iou_threshold : float, optional
        IoU of a match.
    rule : {"all", "some"}, default "all"
    sizes : sequence of float, optional
        Sizes in pixels
        of 0.5 and more.
    area : str, default "all"
        A range, which the command says otherwise.
    progress : bool, default False
        Show a bar.

    Returns
    -------
    None
        Nothing.
    """


def test_options_are_the_parameters_of_a_function() -> None:
    area, best = Option("area", "of a place", default="here"), Option("best", kind=bool, default=False)
    assert options_of(counted, [best, area]) == (
        Option("times", "how often, as in range", kind=int, default=1, metavar="N"),
        Option("iou-threshold", "IoU of a match", kind=float, metavar="T", short="--iou"),
        Option("rule", "", default="all", choices=("all", "some")),
        Option("sizes", "sizes in pixels of 0.5 and more", kind=float, many=True, commas=True),
        area,
        best,
    )


def test_a_new_parameter_is_one_edit(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    got: dict[str, Any] = {}

    def images(evaluation: Any, *, most: float = 0.5) -> Any:
        """Parameters
        ----------
        most : float, default 0.5
            Share of images.
        """
        got["most"] = most
        return diagnostics.image_scores(evaluation)

    monkeypatch.setattr(diagnostics, "images", images, raising=False)
    monkeypatch.setitem(DIAGNOSTICS, "images", DIAGNOSTICS["images"]._replace(function="images"))
    assert "\n  --most MOST               share of images (default: 0.5)\n" in run("images", "--help").out
    run("images", GT, DT, "--most", "0.25")
    assert got == {"most": 0.25}


def test_a_new_diagnostic_is_a_row(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """A result object will do, a data frame too, and so will a parameter of any name."""
    import pandas as pd

    class Counts(DiagnosticResult):
        def __init__(self, value: int) -> None:
            self.value = value

        def to_frame(self) -> pd.DataFrame:
            return pd.DataFrame({"images": [self.value]}, index=pd.Index(["all"], name="part"))

    def count(evaluation: Any, *, times: int = 1, iou_threshold: float = 0.5) -> Counts:
        return Counts(int(evaluation.counts["images"] * times * iou_threshold))

    option = Option("times", "how often", kind=int, default=1)
    threshold = Option("iou-threshold", "overlap", kind=float, default=0.5)
    row = Diagnostic("Count images.", "count", "Counts x {times}", (option, threshold))
    monkeypatch.setattr(diagnostics, "count", count, raising=False)
    monkeypatch.setitem(DIAGNOSTICS, "count", row)
    monkeypatch.setitem(COMMANDS, "count", "count images")
    monkeypatch.setitem(
        ENTRIES, "count", Entry("boxscore.extensions.diagnostics.commands:DIAGNOSTICS", "count images")
    )
    arguments = ["count", "--gt", GT, "--dt", DT, "--times", "3", "--iou-threshold", "1", "--output"]
    assert run(*arguments, "csv").out == "part,images\nall,72\n"
    assert run(*arguments, "text").out.startswith("Counts x 3\n24 images")


def test_zero_is_a_value(run: Run) -> None:
    """``--top 0`` does not ask for the matrix."""
    (line,) = run("confusion", "--gt", GT, "--dt", DT, "--top", "0", "--output", "csv").out.splitlines()
    assert line.endswith(",image_ids")


# ---------------------------------------------------------------- LaTeX


CALLS: dict[str, list[str]] = {
    "evaluate": ["--per-class"],
    "validate": [],
    "check": ["--min", "AP=0.1"],
    "explain": ["--from", "tide"],
    "sweep": ["--iou-threshold", ".5"],
    "compare": [DT, "--resamples", "3", "--per-class"],  # without it: a table for a paper, with its own tests
    "slices": ["--by", "size"],
    "bootstrap": [],
}
WITH_OUTPUT = [
    name
    for name in COMMANDS
    if any(option.known() == OUTPUT_FORMS for option in load_command(name).options if option.dest == "output")
    and name
    not in (
        "panoptic",
        "semantic",
        "formats",
        "report",
        "history",
        "merge",
        "suite",
        "agreement",
        "keypoint-errors",
        "tiles",
        "diff",
        "epochs",
    )  # other files, none, or a folder
]


def test_these_commands_have_forms() -> None:
    others = {
        "evaluate",
        "validate",
        "stats",
        "sweep",
        "compare",
        "check",
        "explain",
        "compare-protocols",
        "iou",
        "suspects",
    }
    assert set(WITH_OUTPUT) == (others | {*DIAGNOSTICS}) - {"keypoint-errors"}  # which needs keypoints


@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_latex(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [name, "--gt", GT, "--dt", DT, *CALLS.get(name, [])]
    main([*arguments, "--output", "latex"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line and not line.startswith("%")]
    assert lines[0].startswith("\\begin{tabular}{")
    assert lines[-1] == "\\end{tabular}"
    assert lines.count("\\toprule") == lines.count("\\midrule") == lines.count("\\bottomrule") > 0
    columns = 0
    for line in lines:
        if line.startswith("\\begin{tabular}"):
            columns = len(line.removeprefix("\\begin{tabular}{").removesuffix("}"))
        elif not line.startswith(("\\toprule", "\\midrule", "\\bottomrule", "\\end{tabular}")):
            assert line.endswith(" \\\\")
            assert line.replace("\\&", "").count(" & ") == columns - 1


# ---------------------------------------------------------------- messages name what was typed


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["nms", DT, "--iou-threshold", "3"], "--iou-threshold must be a number in [0, 1]. Got 3.0."),
        (
            ["nms", DT, "--iou-threshold", "0.5", "--score-threshold", "nan"],
            "--score-threshold must be a number. Got nan.",
        ),
        (["fuse", DT, DT, "--iou-threshold", "3"], "--iou-threshold must be a number in [0, 1]. Got 3.0."),
        (
            ["confusion", GT, DT, "--iou-threshold", "3"],
            "--iou-threshold must be a number in (0, 1]. Got 3.0.",
        ),
        (
            ["evaluate", GT, DT, "--max-detections", "-1"],
            "--max-detections must be a whole number >= 1. Got -1.",
        ),
        (
            ["evaluate", GT, DT, "--score-threshold", "nan"],
            "--score-threshold must be a number in [-inf, inf]. Got nan.",
        ),
    ],
)
def test_messages_name_the_option_that_was_typed(
    command: list[str], message: str, tmp_path: Path, run: Run
) -> None:
    output = ["-o", str(tmp_path / "out.json")] if command[0] in ("nms", "fuse") else []
    assert run.error(*command, *output).splitlines()[-1] == f"boxscore: error: {message}"


def test_errors_about_values_that_were_not_given_stay_as_they_are() -> None:
    options = (Option("iou-threshold", kind=float, default=0.5), Option("images", many=True))
    for name, given in (("iou_threshold", 0.5), ("images", None), ("area", None)):
        arguments = argparse.Namespace(**{"iou_threshold": 0.5, "images": None, name: given})
        with pytest.raises(InputError, match=rf"^{name} must be odd"), errors_as_typed(options, arguments):
            raise InputError(name, "be odd", got=2)
    read = argparse.Namespace(images=["3"], iou_threshold=0.5)
    with pytest.raises(FileFormatError, match=r"^images must"), errors_as_typed(options, read):
        raise FileFormatError("images", "be a list", got=2, place="gt.json")
    with pytest.raises(FileFormatError, match=r"^--images must"), errors_as_typed(options, read):
        raise FileFormatError("images", "be files that exist", got="3, which is not there")
