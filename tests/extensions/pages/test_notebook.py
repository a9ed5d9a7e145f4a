"""In a notebook: results show as tables in the notebook's own colors, plots once; shortcuts of a result."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError, diagnostics, plots
from boxscore._utils.text import html_table
from support.evaluations import empty_evaluation, hostile_evaluation, shapes
from support.running import Run

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")


class Shown(HTMLParser):
    """The tables of a page, cell by cell; refuses what a notebook would run, fetch or color."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {
            "div",
            "b",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "details",
            "summary",
            "code",
            "br",
        }
        for name, value in attrs:
            assert name in ("style", "cellpadding")
            if name == "style":
                properties = {part.partition(":")[0] for part in (value or "").split(";") if part}
                layout = {"text-align", "overflow-x", "border-collapse", "white-space", "margin", "font-size"}
                assert properties <= layout | {"border-bottom"}  # no color, no url()
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        self.text += data


def shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "-" if value != value else f"{value:.4f}"


@pytest.mark.parametrize("make", [shapes, hostile_evaluation, empty_evaluation])
def test_an_evaluation_shows_its_numbers(make: Any) -> None:
    result = make()
    page = Shown(result._repr_html_())
    summary, *rest = page.tables
    assert summary == [list(result.metrics), [shown(value) for value in result.metrics.values()]]
    assert result.signature in page.text
    if len(result.labels) < 2:
        assert not rest
        return
    (head, *rows) = rest[0]
    frame = result.per_class.sort_values(next(iter(result.class_values)), kind="stable").head(20)
    assert head == frame.columns.tolist()
    assert len(rows) == min(len(result.labels), 20)
    for row, (_, expected) in zip(rows, frame.iterrows(), strict=True):
        assert row[0].replace("\N{REPLACEMENT CHARACTER}", "") == "".join(
            c for c in expected["class"] if c.isprintable()
        )
        assert row[5:] == [shown(value) for value in expected.iloc[5:]]


DIAGNOSTICS = [
    "bootstrap_intervals",
    "calibration_error",
    "confidence_curve",
    "confusion_matrix",
    "error_list",
    "error_types",
    "error_areas",
    "error_curves",
    "froc_curve",
    "count_errors",
    "image_presence",
    "image_scores",
    "label_suspects",
    "localization_recall_precision",
    "operating_points",
    "reliability",
    "tie_bounds",
    "top_confusions",
]


@pytest.mark.parametrize("name", DIAGNOSTICS)
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_diagnostics_show_a_table(name: str) -> None:
    options = {"resamples": 3} if name == "bootstrap_intervals" else {}
    for result in (shapes(), hostile_evaluation()):
        answer = getattr(diagnostics, name)(result, **options)
        (table,) = Shown(answer._repr_html_()).tables
        assert len(table) <= 1 + 10 + 1  # head, rows, what is left out
        assert len({len(row) for row in table}) == 1


def test_a_comparison_and_a_sweep() -> None:
    result = shapes()
    comparison = result.compare(result, names=("a<b>", "c&d"), resamples=3, metrics=["AP"])
    (head, row) = Shown(comparison.total_frame().pipe(lambda _: comparison._repr_html_())).tables[0][:2]
    assert head[:2] == ["first", "other"]
    assert row[:2] == ["a<b>", "c&d"]
    swept = diagnostics.sweep(result.ground_truth, result.detections, iou_thresholds=[0.4, 0.6])
    assert Shown(swept._repr_html_()).tables[0][0][0] == "method"


def test_tables_of_many_rows_show_both_ends() -> None:
    table = Shown(html_table({"n": list(range(100)), "x": [0.5, None] * 50}, most=5)).tables[0]
    assert [row[0] for row in table] == ["n", "0", "1", "2", "\N{VERTICAL ELLIPSIS}", "98", "99"]
    assert [row[1] for row in table[1:3]] == ["0.5000", "-"]


def test_statistics_explanations_and_label_maps() -> None:
    result = hostile_evaluation()
    statistics = boxscore.table_statistics(result.ground_truth)
    counts, sizes, classes = Shown(statistics._repr_html_()).tables
    assert counts == [list(statistics.counts), [str(count) for count in statistics.counts.values()]]
    assert len(sizes) == 1 + len(statistics.sizes["quantity"])
    assert len(classes) == 1 + len(statistics.per_class["class"])
    explanation = diagnostics.explain(result.ground_truth, result.detections, "tide")
    (table,) = Shown(explanation._repr_html_()).tables
    assert [row[2] for row in table[1:]] == [shown(value) for value in explanation.table["value"]]
    semantic = boxscore.semantic_iou([np.eye(4, dtype=int)], [np.ones((4, 4), dtype=int)], classes=2)
    (table,) = Shown(semantic._repr_html_()).tables
    assert table == [list(semantic.metrics), [shown(value) for value in semantic.metrics.values()]]


# ---------------------------------------------------------------- shortcuts


def test_compare_is_the_comparison_of_two() -> None:
    first, other = (
        shapes(),
        boxscore.evaluate(shapes().ground_truth, shapes().detections.take(np.arange(200))),
    )
    options = {"resamples": 20, "metrics": ["AP", "AR100"], "seed": 4}
    expected = diagnostics.compare_detectors({"this": first, "other": other}, **options)  # type: ignore[arg-type]
    given = first.compare(other, **options)
    assert given.printed_frame().equals(expected.printed_frame())
    with pytest.raises(InputError, match=r"other must be an Evaluation\. Got a str; evaluate"):
        first.compare("results.json")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="names must be two different names"):
        first.compare(other, names=("a", "a"))


def test_to_latex_is_what_the_command_prints(run: Run) -> None:
    from support.evaluations import PROJECT

    folder = PROJECT / "datasets" / "shapes_coco"
    paths = [str(folder / "instances.json"), str(folder / "detections.json")]
    for more in ([], ["--per-class"]):
        printed = run("evaluate", *paths, "--output", "latex", *more).out
        assert printed == boxscore.evaluate(*paths).to_latex(per_class=bool(more)) + "\n"
        assert printed.count("\\begin{tabular}") == 1 + len(more)


PLOTS = [
    *("pr_curve", "f1_curve", "froc", "per_class", "errors", "error_curves"),
    *("confusion_matrix", "reliability"),
]


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the backend of notebooks, which shows every open figure at the end of a cell."""
    pyplot.close("all")
    monkeypatch.setattr(pyplot, "get_backend", lambda: "module://matplotlib_inline.backend_inline")


@pytest.mark.long
@pytest.mark.usefixtures("inline")
def test_a_notebook_shows_a_plot_once() -> None:
    """As the value of the cell alone: the figure is not among those that the cell's end shows."""
    figure = shapes().plot()
    assert isinstance(figure, matplotlib.figure.Figure)
    assert not pyplot.get_fignums()
    figure.savefig(io.BytesIO(), format="png")
    own, axes = pyplot.subplots()
    assert shapes().plot("per_class", ax=axes) is own
    assert pyplot.get_fignums()  # the caller's stays the caller's
    pyplot.close("all")


def test_a_script_can_show_its_plots() -> None:
    pyplot.close("all")
    shapes().plot()
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")


def drawn(figure: Any) -> list[Any]:
    """Everything that is drawn: lines, bars, pictures and texts."""
    artists: list[Any] = []
    for ax in figure.axes:
        artists += [line.get_xydata().tolist() for line in ax.get_lines()]
        artists += [(patch.get_bbox().bounds, patch.get_facecolor()) for patch in ax.patches]
        artists += [picture.get_array().tolist() for picture in ax.images]
        artists += [text.get_text() for text in ax.findobj(matplotlib.text.Text)]
    pyplot.close(figure)
    assert len(artists) > 10
    return [str(each) for each in artists]


@pytest.mark.long
def test_plot_draws_what_the_functions_draw() -> None:
    result = shapes()
    for name in PLOTS:
        assert drawn(result.plot(name)) == drawn(getattr(plots, name)(result))
    assert drawn(result.plot(classes=["star"])) == drawn(plots.pr_curve(result, classes=["star"]))
    assert drawn(diagnostics.error_types(result).plot()) == drawn(plots.errors(result))
    assert drawn(diagnostics.error_curves(result).plot()) == drawn(plots.error_curves(result))
    matrix = diagnostics.confusion_matrix(result, score_threshold=0.3)
    # The title of the function also has the score threshold, which a matrix does not know.
    ours, function = (
        drawn(matrix.plot(most=3)),
        drawn(plots.confusion_matrix(result, score_threshold=0.3, most=3)),
    )
    assert ours == [text.removeprefix("score \N{GREATER-THAN OR EQUAL TO} 0.3, ") for text in function]
    comparison = result.compare(result, resamples=3)
    pair = {"this": result, "other": result}
    assert drawn(comparison.plot()) == drawn(plots.compare(pair, resamples=3))
    swept = diagnostics.sweep(result.ground_truth, result.detections, iou_thresholds=[0.4, 0.6])
    assert drawn(swept.plot(metric="AP50")) == drawn(plots.sweep(swept, metric="AP50"))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("pr_curv", {}, r"kind must be one of 'pr_curve', .*'\. Got 'pr_curv'; did you mean 'pr_curve'"),
        ("errors", {"clases": ["star"]}, "an option must be one of the plot. Got 'clases'; known: ax."),
        ("pr_curve", {"clases": ["star"]}, "Got 'clases'; did you mean 'classes'"),
    ],
)
def test_plots_that_there_are_not(kind: str, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        shapes().plot(kind, **options)


def test_results_without_a_plot() -> None:
    message = "a result to draw must have a plot. Got a TieBounds; these results have plots: ErrorTypes, "
    with pytest.raises(InputError, match=re.escape(message)):
        diagnostics.tie_bounds(shapes()).plot()
