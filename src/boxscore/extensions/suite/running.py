"""Evaluate every cell of a suite in parallel processes, and cache finished cells.

Conventions
-----------
- Sets are distributed over processes, the largest files first. A process stores a cell as soon as it is done.
- The name of a stored cell is the SHA-256 of its inputs and of every option that changes a number, including
  boxscore's version. Stored cells with other content are not read. Missing and broken cells are tried again.
- The models of a set share the draws of its images, so that the difficulty of the draw cancels in their
  difference.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.files import is_there, write_atomically
from boxscore._utils.processes import Forked, Workers, worker_count
from boxscore._utils.progress import progress as shown
from boxscore._utils.progress import without_progress
from boxscore._utils.text import json_value
from boxscore._version import __version__
from boxscore.errors import BoxscoreError, BoxscoreWarning, InputError
from boxscore.evaluation import Evaluation, evaluate
from boxscore.extensions.decisions.history import fingerprint
from boxscore.extensions.diagnostics._units import units_of_values
from boxscore.extensions.diagnostics.bootstrap import (
    chosen_rows,
    has_interval,
    least_units,
    resampled_metrics,
)
from boxscore.extensions.pages.folder import write_comparison, write_report
from boxscore.extensions.pages.view import ReportOptions
from boxscore.extensions.suite.page import write_page
from boxscore.extensions.suite.reading import Suite, SuiteSet
from boxscore.extensions.suite.result import BROKEN, EMPTY, MISSING, OK, Cell, SuiteResult
from boxscore.extensions.weights.left_out import left_out_metrics
from boxscore.extensions.weights.resampling import LARGEST_SEED, MOST_RESAMPLES, check_intervals
from boxscore.formats.reading import read_detections, read_ground_truth, read_options
from boxscore.protocols import load_protocol
from boxscore.similarity.registry import needs_of

KEPT_VERSION = 4
"""Version of the format of stored cells."""

MOST_SECONDS = 24 * 3600.0
"""Maximum time of a process for its sets, which are distributed by size only."""

MOST_SAID = 5
"""Maximum stored warnings per cell."""


def run_suite(
    suite: Suite,
    *,
    metric: str | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    folds: int | None = None,
    keep: str | Path | None = None,
    report: str | Path | None = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> SuiteResult:
    """Evaluate every model on every set of a suite.

    Parameters
    ----------
    suite : Suite
    metric : str, optional
        The summary metric of the table, which every set's protocol must have. The default is the ``metric``
        of each set; if no set has one, the first metric of the first set's protocol if all protocols have it,
        and otherwise the first one of each set.
    resamples : int, default 200
        Number of draws of the images of each set, for intervals of differences.
    confidence : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Random seed.
    folds : int, optional
        The sets are the folds of a cross-validation with so many folds, at least 3, possibly repeated.
        Intervals and verdicts then allow for models that share training images. The default is that of the
        suite.
    keep : str or Path, optional
        Folder for finished cells; cells found there are not computed again.
    report : str or Path, optional
        Folder for a heat map, ``suite.html``, and a report of each set, ``sets/NAME/report.html``.
    progress : bool, default False
        Show a progress bar with the remaining time, if stderr is a terminal.
    workers : int or "auto", default "auto"
        Number of processes that share the sets.

    Returns
    -------
    SuiteResult

    Raises
    ------
    InputError
        When an option is out of range, the number of sets does not fit ``folds``, a protocol lacks the
        metric, some metrics rise and others fall as detectors improve, or the folder is not writable.
    """
    # Check all options before reading the first file.
    checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
    checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED - len(suite.sets))
    check_intervals(confidence, "expanded_percentile")
    suite = suite if folds is None else suite.of_folds(folds)
    metrics = _metrics(suite, metric)
    folder = None if keep is None else Path(keep)
    pages = None if report is None else Path(report)
    # Distribute sets by size, the largest first, so that the processes finish together.
    work = functools.partial(_set_cells, resamples=resamples, seed=seed, keep=folder, report=pages)
    order = sorted(range(len(suite.sets)), key=lambda s: -_size_of_files(suite.sets[s]))
    shares = max(1, min(worker_count(workers), len(order)))
    dealt = [order[share::shares] for share in range(shares)]

    # Each set has its own seed, so the numbers do not depend on the process.
    def cells_of(share: Iterable[int]) -> dict[int, list[Cell]]:
        done = {}
        for s in share:
            with without_progress():
                done[s] = work(suite.sets[s], s, metric=metrics[s])
        return done

    # This process works too, and shows its progress.
    others = [functools.partial(cells_of, share) for share in dealt[1:]]
    with contextlib.closing(Forked(others, least_seconds=MOST_SECONDS)) as forked:
        name = f"sets (1 of {shares} processes)" if shares > 1 else "sets"
        own = shown(dealt[0], total=len(dealt[0]), desc=name, unit="set") if progress else dealt[0]
        done = cells_of(own)
        for part in forked.results():
            done |= part
    # Put the cells in the order of the sets.
    cells = [done[s] for s in range(len(suite.sets))]
    result = SuiteResult(suite, tuple(metrics), cells, confidence, seed)
    if pages is not None:
        write_page(result, pages)
    return result


def _metrics(suite: Suite, metric: str | None) -> list[str]:
    """Return the metric of each set; all rise or all fall as detectors improve."""
    # A given metric must be known to every set.
    protocols = [load_protocol(one.protocol) for one in suite.sets]
    keys = [[row.key for row in protocol.rows] for protocol in protocols]
    if metric is not None:
        for one, known in zip(suite.sets, keys, strict=True):
            checks.one_of(metric, known, name=f"metric (of set {one.name})")
    if metric is None and not any(one.metric for one in suite.sets):
        metric = keys[0][0] if all(keys[0][0] in known for known in keys) else None
    # Otherwise take the set's own or the first; a mean needs them all to rise, or all to fall.
    chosen = [metric or one.metric or known[0] for one, known in zip(suite.sets, keys, strict=True)]
    falls = [key in protocol.lower_is_better for key, protocol in zip(chosen, protocols, strict=True)]
    if len(set(falls)) > 1:
        examples = (falls.index(False), falls.index(True))
        got = ", and ".join(f"{chosen[s]} of {suite.sets[s].name}" for s in examples)
        cause = 'another one is chosen by metric = "..." in the table of the set'
        raise InputError(
            "the metrics of the sets", "all rise or all fall as detectors improve", got=got, cause=cause
        )
    return chosen


def _size_of_files(one: SuiteSet) -> int:
    """Return the size of the files of a set."""
    sizes = 0
    for path in (one.ground_truth, *one.results.values()):
        # Ignore files in a store that cannot be reached.
        with contextlib.suppress(OSError, BoxscoreError):
            sizes += path.stat().st_size
    return sizes


def _set_cells(
    one: SuiteSet,
    number: int,
    *,
    metric: str,
    resamples: int,
    seed: int,
    keep: Path | None,
    report: Path | None,
) -> list[Cell]:
    """Evaluate the models on one set; stored cells are read."""
    # A stored cell is valid if the hash of files and options is the same.
    protocol = load_protocol(one.protocol)
    options = {"metric": metric, "resamples": resamples, "seed": seed + number, "version": __version__}
    options |= {"kept": KEPT_VERSION, "signature": protocol.signature(), "options": _options_as_text(one)}
    paths = {model: None if keep is None else keep / one.name / f"{model}.json" for model in one.results}
    hashes = {model: _hash(one, path, options) for model, path in one.results.items()}
    kept = {model: _load_stored(paths[model], hashes[model]) for model in one.results}
    page = None if report is None else report / "sets" / one.name / "report.html"
    # If every cell is stored, do not even read the ground truth.
    if all(cell is not None for cell in kept.values()) and (page is None or _is_newer(page, paths.values())):
        return [cell for cell in kept.values() if cell is not None]
    # A broken ground truth fails every model of this set, but no other set.
    results: dict[str, Evaluation] = {}
    cells = []
    truth, failed = None, None
    try:
        with _collect_warnings() as heard_of_truth:
            needs = needs_of(protocol)
            truth = read_ground_truth(one.ground_truth, read_options(**one.truth_options, **needs))
    except (BoxscoreError, OSError) as error:
        failed = Cell.failed(_state(one.ground_truth), f"ground truth: {_reason(error)}")
    # A broken result fails only its cell.
    for model, path in one.results.items():
        if truth is None:
            assert failed is not None
            cell = failed
        else:
            try:
                with _collect_warnings() as heard:
                    found = read_detections(path, truth, read_options(**one.result_options, **needs))
                    # Use one process: the sets are already distributed.
                    result = evaluate(truth, found, protocol=protocol, workers=1)
                cell = _cell(result, metric, resamples, seed + number, [*heard_of_truth, *heard])
                results[model] = result
            except (BoxscoreError, OSError) as error:
                cell = Cell.failed(_state(path), _reason(error), truth)
        cells.append(cell)
        # Store each cell when it is done, so that an interrupted suite can resume.
        path_of_kept = paths[model]
        if path_of_kept is not None and cell.state in (OK, EMPTY):
            _keep(path_of_kept, hashes[model], cell)
    if report is not None and results:
        _write_pages(one, results, report / "sets" / one.name, resamples, seed)
    return cells


def _cell(result: Evaluation, metric: str, resamples: int, seed: int, heard: Sequence[str]) -> Cell:
    """Extract the data of a cell from an evaluation."""
    # With one seed, all models have the same draws of images, so that their differences are paired.
    rows = chosen_rows(result, [metric])
    _, draws = resampled_metrics(result, rows, resamples=resamples, seed=seed, units=None, workers=1)
    # Leave out the same groups of images for all models. Keep nothing if intervals of the metric do not hold.
    left_out, units = np.empty(0), int(units_of_values(result, rows, None)[0, -1])
    if has_interval(result, rows[0]):
        left_out = left_out_metrics(result, rows, seed=seed, units=None, workers=1).estimate[:, 0, -1]
    value = result[metric]
    # An evaluation without detections or objects counts, but is marked.
    state, reason = OK, ""
    if not len(result.detections):
        state, reason = EMPTY, "no detection"
    elif np.isnan(value):
        state, reason = EMPTY, "no object that counts"
    return Cell(
        state,
        reason,
        dict(result.metrics),
        draws[:, 0, -1],
        result.signature,
        result.counts,
        list(heard[:MOST_SAID]),
        left_out,
        units,
        units >= least_units(result, rows[0], None),
    )


@contextlib.contextmanager
def _collect_warnings() -> Any:
    """Collect the texts of boxscore's warnings."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += [str(each.message) for each in caught if isinstance(each.message, BoxscoreWarning)]


def _state(path: Path) -> str:
    """Describe why a file cannot be read."""
    return BROKEN if is_there(path) else MISSING


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _write_pages(
    one: SuiteSet, results: Mapping[str, Evaluation], folder: Path, resamples: int, seed: int
) -> None:
    pictures = one.truth_options.get("image_folder")
    options = ReportOptions(one.name, image_folder=pictures, resamples=resamples, seed=seed, workers=1)
    with _collect_warnings():
        if len(results) > 1:
            write_comparison(results, folder, options=options)
        else:
            write_report(next(iter(results.values())), folder, options=options)


# ---------------------------------------------------------------- stored cells


def _options_as_text(one: SuiteSet) -> dict[str, str]:
    """Return the options of a set that change a number."""
    return {key: str(value) for key, value in {**one.truth_options, **one.result_options}.items()}


def _hash(one: SuiteSet, path: Path, options: Mapping[str, Any]) -> str:
    """Hash a cell's inputs and options."""
    beside = [*one.truth_options.values(), *one.result_options.values()]
    files = [one.ground_truth, path, *(value for value in beside if isinstance(value, Path))]
    hashes = [fingerprint(file) if is_there(file) else None for file in files]
    text = json.dumps([hashes, options], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _keep(path: Path, digest: str, cell: Cell) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be written: {error.strerror}.") from None
    write_atomically(path, json.dumps(json_value({"inputs": digest, **cell.as_dict()})))


def _is_newer(page: Path, kept: Iterable[Path | None]) -> bool:
    """Return whether a page exists and is newer than the stored cells."""
    return page.is_file() and all(
        path is not None and path.stat().st_mtime_ns <= page.stat().st_mtime_ns for path in kept
    )


def _load_stored(path: Path | None, digest: str) -> Cell | None:
    """Read a stored cell of the same inputs; None if it is missing or damaged."""
    if path is None or not path.is_file():
        return None
    try:
        value = json.loads(path.read_bytes())
        return Cell.of_dict(value) if value["inputs"] == digest else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
