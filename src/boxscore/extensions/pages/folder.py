"""Write a report folder, to attach to a paper, a pull request or a model card.

Conventions
-----------
- Either all files are written completely, or none (``_utils/files.py``); other files in the folder are kept.
- ``report.html`` is for people, ``result.json`` and ``tables/`` are for programs, ``report.md`` is for both.
- The file formats are documented in docs/reference/report-files.md.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from boxscore._utils import checks
from boxscore._utils.files import write_folder
from boxscore._utils.progress import stage
from boxscore._utils.text import csv_table, json_text, markdown_table, markdown_text
from boxscore.errors import BoxscoreError, InputError, MissingDependencyError
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.html import render_page
from boxscore.extensions.pages.view import ReportOptions, report_view
from boxscore.reports import text

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.extensions.decisions.compare import DetectorComparison

TableFormat = Literal["parquet", "json", "csv"]
PlotFormat = Literal["png", "svg", "pdf"]
TABLE_FORMATS = get_args(TableFormat)
PLOT_FORMATS = get_args(PlotFormat)

ENOUGH_RESAMPLES = 200
"""With fewer resamples, each end of a 95% interval would depend on fewer than five draws."""

FEWEST_RESAMPLES = 20
"""Minimum resamples of a comparison, which needs some."""


def write_report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    options: ReportOptions | None = None,
    tables: TableFormat | None = None,
    plots: PlotFormat | None = None,
    **fields: Any,
) -> list[Path]:
    """Write the report of one evaluation.

    Parameters
    ----------
    evaluation : Evaluation
    folder : str or Path
        Created if it does not exist.
    options : ReportOptions, optional
    tables : {"parquet", "json", "csv"}, optional
        Also write every table to ``tables/``.
    plots : {"png", "svg", "pdf"}, optional
        Also write plots for papers to ``plots/``.
    **fields
        Fields of :class:`~boxscore.reports.ReportOptions`, which override those of ``options``:
        ``title="..."``.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        When an option is unknown or out of range, or the folder cannot be written.
    MissingDependencyError
        When a required package is not installed. In that case no file is written.
    """
    # Collect everything before writing a file, so that an error leaves no incomplete report.
    options, folder = _check_options(options, fields, tables, plots), Path(folder)
    view = report_view(evaluation, options=options)
    intervals = {
        tile["key"]: {name: tile[name] for name in ("estimate", "low", "high")}
        for tile in view["summary"]
        if tile["low"] is not None
    }
    result = {**text.as_dict(evaluation, warnings=list(map(str, options.warnings))), "intervals": intervals}
    stage("writing the page")
    # Make the page, and the same numbers for programs and papers.
    files: dict[str, str | bytes] = {
        "report.html": render_page(view),
        "report.md": text.as_markdown(evaluation, per_class=True)
        + _intervals_as_markdown(view)
        + _groups_as_markdown(view)
        + "\n",
        "result.json": json_text(result) + "\n",
        "summary.csv": text.as_csv(evaluation),
        "per_class.csv": text.as_csv(evaluation, per_class=True),
    }
    # Make further files only on request, because they take longest.
    if tables is not None:
        stage("tables")
        for name, frame in evaluation_tables(evaluation).items():
            files[f"tables/{name}.{tables}"] = table_bytes(frame, tables)
    if plots is not None:
        stage("drawing")
        files.update(_plots(_plot_makers(evaluation), plots))
    return _write(folder, files)


def _intervals_as_markdown(view: Mapping[str, Any]) -> str:
    """Write the intervals of a report below its tables; empty if they were not computed."""
    tiles = [tile for tile in view["summary"] if tile["low"] is not None]
    if not tiles:
        return ""
    names = {"key": "metric", "value": "value", "estimate": "estimate", "low": "low", "high": "high"}
    columns = {name: [tile[key] for tile in tiles] for key, name in names.items()}
    blocks = ["### 95% intervals", f"{tiles[0]['sentence']}.", markdown_table(columns)]
    blocks.append(markdown_text(view["interval"]))
    return "".join(f"\n\n{block}" for block in blocks)


def _groups_as_markdown(view: Mapping[str, Any]) -> str:
    """Write the metrics of groups of classes; empty if they were not requested."""
    return f"\n\n### Groups of classes\n\n{markdown_table(view['groups'])}" if view["groups"] else ""


def write_comparison(
    evaluations: Mapping[str, Evaluation] | DetectorComparison,
    folder: str | Path,
    *,
    options: ReportOptions | None = None,
    tables: TableFormat | None = None,
    plots: PlotFormat | None = None,
    **fields: Any,
) -> list[Path]:
    """Write the report of several evaluations: a comparison page, and a page for each.

    With two, ``report.html`` is the comparison page. With more, it is an overview, and ``pair-1-2.html`` and
    so on compare the first with each of the others.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation, or DetectorComparison
        Evaluations by name, with the same ground truth and protocol; or the result of
        :func:`~boxscore.diagnostics.compare_detectors`, whose draws are then used.
    folder, options, tables, plots, **fields
        As in :func:`write_report`.

    Returns
    -------
    list of Path

    Raises
    ------
    InputError
        When there are fewer than two evaluations, they are not comparable, or the folder cannot be written.
    """
    from boxscore.extensions.decisions.compare import DetectorComparison, compare_detectors
    from boxscore.extensions.pages.comparison_view import comparison_view, overview_view

    # Reuse the draws of an existing comparison; otherwise draw now.
    options, folder = _check_options(options, fields, tables, plots), Path(folder)
    if isinstance(evaluations, DetectorComparison):
        comparison = evaluations
        how = comparison.resampling
        options = dataclasses.replace(options, resamples=how.resamples, seed=how.seed)
    else:
        if len(evaluations) < 2:
            raise InputError("a comparison", "have two results or more", got=len(evaluations))
        # Verdicts need draws, so make a few even if none were requested.
        given = options.resamples
        resamples = ENOUGH_RESAMPLES if given is None else max(given, FEWEST_RESAMPLES)
        options = dataclasses.replace(options, resamples=resamples)
        comparison = compare_detectors(
            evaluations,
            resamples=resamples,
            seed=options.seed,
            progress=options.progress,
            workers=options.workers,
        )
    # Link every page to every other.
    names = comparison.names
    pages = {name: f"detector-{number}.html" for number, name in enumerate(names, start=1)}
    pair_pages = {name: f"pair-1-{number}.html" for number, name in enumerate(names, start=1) if number > 1}
    links = [("report.html", "Overview"), *((pages[name], name) for name in names)]
    frame = comparison.printed_frame()
    files: dict[str, str | bytes] = {"comparison.csv": table_bytes(frame, "csv")}
    untitled = options if len(names) == 2 else dataclasses.replace(options, title="")
    # Compare the first detector with each other one; with two, that is the whole report.
    for name, page in pair_pages.items():
        stage("pages of two detectors")
        view = comparison_view(comparison.with_other(name), options=untitled)
        page = "report.html" if len(names) == 2 else page
        links_of_page = {"links": links, "here": page, "pages": [pages[comparison.first], pages[name]]}
        files[page] = render_page({**view, **links_of_page}, template="comparison")
    # With more, write an overview of all.
    if len(names) > 2:
        stage("overview of all detectors")
        view = overview_view(
            comparison, {name: (pages[name], pair_pages.get(name, "")) for name in names}, options=options
        )
        files["report.html"] = render_page(
            {**view, "links": links, "here": "report.html"}, template="overview"
        )
    # Write a page for each detector; its warnings are on the first page already.
    for name, result in comparison.evaluations.items():
        view = report_view(result, options=dataclasses.replace(options, title=name, warnings=()))
        files[pages[name]] = render_page({**view, "links": links, "here": pages[name]})
    if tables is not None:
        files[f"tables/comparison.{tables}"] = table_bytes(frame, tables)
    if plots is not None:
        from boxscore.reports.plots import CompareDisplay

        makers = {"compare": lambda: CompareDisplay.from_comparison(comparison).plot().figure_}
        files.update(_plots(makers, plots))
    return _write(folder, files)


def _check_options(
    options: ReportOptions | None, fields: Mapping[str, Any], tables: str | None, plots: str | None
) -> ReportOptions:
    """Check every option before the work."""
    known = [field.name for field in dataclasses.fields(ReportOptions)]
    for name in fields:
        checks.one_of(name, known, name="an option of a report")
    for value, forms, name in ((tables, TABLE_FORMATS, "tables"), (plots, PLOT_FORMATS, "plots")):
        if value is not None:
            checks.one_of(value, forms, name=name)
    return dataclasses.replace(options or ReportOptions(), **fields)


def _write(folder: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    write_folder(folder, files)
    return [folder / name for name in files]


def evaluation_tables(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Make every table that the data allow, by name."""
    from boxscore import diagnostics

    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "summary": lambda: evaluation.summary,
        "per_class": lambda: evaluation.per_class,
        "curves": evaluation.curves,
        "matches": lambda: evaluation.matches,
        "confidence_curve": lambda: diagnostics.confidence_curve(evaluation).printed_frame(),
        "operating_points": lambda: diagnostics.operating_points(evaluation).printed_frame(),
        "top_confusions": lambda: diagnostics.top_confusions(evaluation, limit=1000).to_frame(),
        "error_types": lambda: diagnostics.error_types(evaluation).printed_frame(),
        "error_areas": lambda: diagnostics.error_areas(evaluation).printed_frame(),
        "reliability": lambda: diagnostics.reliability(evaluation).printed_frame(),
    }
    return {name: made for name, maker in makers.items() if (made := _unless_impossible(maker)) is not None}


def _unless_impossible(maker: Callable[[], Any]) -> Any:
    """Call the maker; return None if the data do not allow it, but raise if a package is missing."""
    try:
        return maker()
    except MissingDependencyError:
        raise
    except BoxscoreError:
        return None


def arrow_for_tables() -> Any:
    """Import pyarrow, or raise an error that says how to install it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingDependencyError(
            "Parquet tables need pyarrow: pip install 'boxscore[tables]', or use json or csv."
        ) from None
    return pyarrow


def table_bytes(frame: pd.DataFrame, form: TableFormat) -> str | bytes:
    """Write a table as Parquet, JSON or CSV."""
    columns: dict[str, list[Any]] = {
        str(name): column.astype(object).where(column.notna(), None).tolist()
        for name, column in frame.items()
    }
    if form == "csv":
        texts = {name: [_join_list(value) for value in values] for name, values in columns.items()}
        return csv_table(texts)
    if form == "json":
        rows = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
        return json_text(rows) + "\n"
    pyarrow = arrow_for_tables()
    plain = frame.copy()
    for name in plain.columns:
        # Ids can mix numbers and strings.
        if plain[name].dtype == object and plain[name].map(type).nunique() > 1:
            plain[name] = plain[name].map(lambda value: None if value is None else str(value))
    output = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pandas(plain, preserve_index=False), output)
    return output.getvalue()


def _join_list(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _plot_makers(evaluation: Evaluation) -> dict[str, Callable[[], Any]]:
    from boxscore.extensions.pages.plots.bars import best_classes
    from boxscore.reports import plots

    best = best_classes(evaluation)
    return {
        "pr_curve": lambda: plots.pr_curve(evaluation, classes=best),
        "f1_curve": lambda: plots.f1_curve(evaluation),
        "froc": lambda: plots.froc(evaluation, classes=best),
        **({"miss_rate": lambda: plots.miss_rate(evaluation)} if evaluation.protocol.asks_for("MR") else {}),
        "confusion_matrix": lambda: plots.confusion_matrix(evaluation),
        "per_class": lambda: plots.per_class(evaluation),
        "errors": lambda: plots.errors(evaluation),
        "error_curves": lambda: plots.error_curves(evaluation),
        "reliability": lambda: plots.reliability(evaluation),
    }


def _plots(makers: Mapping[str, Callable[[], Any]], form: PlotFormat) -> dict[str, bytes]:
    """Draw and close; leave out the date, so that equal results give equal files."""
    from boxscore.extensions.pages.plots._style import pyplot

    plt = pyplot()
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[form]
    files = {}
    for name, maker in makers.items():
        figure = _unless_impossible(maker)
        if figure is None:
            continue
        output = io.BytesIO()
        with plt.rc_context({"svg.hashsalt": "boxscore"}):
            figure.savefig(output, format=form, dpi=200, metadata=metadata)
        plt.close(figure)
        files[f"plots/{name}.{form}"] = output.getvalue()
    return files
