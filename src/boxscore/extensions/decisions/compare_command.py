"""Test whether one detector is better than another: paired differences over resampled images.

If only some detectors have scores, these count from the score of their best F1, which is chosen for each half
of the images on the other half.

Examples
--------
  boxscore compare instances.json old.json new.json
  boxscore compare instances.json old.json new.json --report comparison
  boxscore compare instances.json a.json b.json --metrics AP --per-class
  boxscore compare instances.json old.json new.json --sequential --metrics AP
  boxscore compare instances.json a.json b.json --names A B --output latex
  boxscore compare instances.json a.json b.json --plan --difference 0.01
  boxscore compare instances.json detector.json answers.jsonl
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from boxscore._utils.progress import stage
from boxscore._utils.text import Columns, counted, printable
from boxscore.cli.arguments import DETECTIONS, INPUTS, OUTPUT, PER_CLASS, ROWS, SHOW, Option
from boxscore.cli.choices import chosen, readers
from boxscore.cli.output import Remembered, Section, remembered_warnings, rows_of, written
from boxscore.cli.streams import as_typed, colored, say, show
from boxscore.data.class_names import EVERY_CLASS
from boxscore.diagnostics import compare_detectors
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.options import BATCH
from boxscore.extensions.decisions.wording import answers
from boxscore.extensions.large.options import MEMORY_LIMIT, SCHEDULER, SCRATCH
from boxscore.extensions.pages.options import COMPARISON_REPORT, REPORT
from boxscore.extensions.pages.report_output import report_written, save_comparison
from boxscore.extensions.shell.detectors import detector_names, evaluate_each, with_detections
from boxscore.extensions.shell.frames import chosen_rows, print_frame, table_columns, table_rows
from boxscore.extensions.shell.parameters import METRICS, options_of
from boxscore.extensions.validation.digest_command import digest_of, say_findings
from boxscore.reports.rows import ALL_ROWS, Rows

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.extensions.decisions.compare import DetectorComparison

FIRST_OUT = ("decided_by_ties",)
"""Columns of two detectors that a narrow terminal drops first."""

INTERVALS = "intervals"
BATCHES = "sequential comparison"
PLANNING = "sample size"
PAPER = "tables for papers"

PLAN = (
    Option(
        "plan",
        "instead of comparing, print the smallest difference that these images can show and how many "
        "images a given difference needs (for the first summary metric, or for --metrics)",
        kind=bool,
        default=False,
        topic=PLANNING,
    ),
    Option(
        "difference",
        "plan for this difference, e.g. 0.01 (default: the observed one)",
        kind=float,
        metavar="D",
        topic=PLANNING,
    ),
    Option(
        "power",
        "plan for this statistical power (default: 0.8)",
        kind=float,
        metavar="P",
        topic=PLANNING,
    ),
)

OPTIONS = (
    *(option.but(many=True) if option is DETECTIONS else option for option in INPUTS),
    Option(
        "names",
        "names of the detectors, in order (default: file names)",
        brief="names of the detectors (default: file names)",
        many=True,
        metavar="NAME",
    ),
    OUTPUT.but(
        help="output format; latex and markdown print a table for a paper",
        brief="text, json, csv; or latex, markdown (tables for papers)",
    ),
    *(
        option.but(topic=INTERVALS) if option.name in ("method", "seed", "group") else option
        for option in options_of(compare_detectors, (METRICS, PER_CLASS))
    ),
    Option(
        "sequential",
        "compare two detectors batch by batch and stop as soon as they differ",
        kind=bool,
        default=False,
        topic=BATCHES,
    ),
    BATCH.but(topic=BATCHES),
    Option(
        "order",
        "with --sequential: order in which images are read: listed, random, or a file with ids (default: "
        "listed)",
        metavar="listed|random|FILE",
        topic=BATCHES,
    ),
    *PLAN,
    *ROWS,
    SHOW,
    MEMORY_LIMIT,
    SCHEDULER,
    SCRATCH,
    REPORT,
    *COMPARISON_REPORT,
    Option(
        "fractions",
        "print numbers from 0 to 1 (default: times 100)",
        kind=bool,
        default=False,
        topic=PAPER,
    ),
    Option(
        "decimals",
        "number of decimals (default: 1; 3 with fractions)",
        kind=int,
        metavar="N",
        topic=PAPER,
    ),
    Option(
        "no-intervals",
        "omit the intervals",
        kind=bool,
        default=True,
        variable="intervals",
        topic=PAPER,
    ),
    Option(
        "label",
        "LaTeX label of the table",
        default="tab:detectors",
        metavar="NAME",
        topic=PAPER,
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate, compare and print; return the exit status."""
    with contextlib.ExitStack() as stack:
        return _run(arguments, stack)


def _run(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> int:
    """Keep partitioned evaluations open in ``stack`` until they are compared."""
    # Reject invalid options before reading a file.
    rows = rows_of(arguments)
    _check_sequential(arguments, per_class=arguments.per_class or rows != ALL_ROWS)
    paths: list[Path] = arguments.detections
    _check_plan(arguments)
    if len(paths) < 2:
        raise InputError("--detections", "have two or more files", got=len(paths))
    # Read and evaluate all; the quick checks need everything in memory.
    names = detector_names(paths, arguments.names)
    with_findings = arguments.memory_limit is None and arguments.scheduler is None
    with remembered_warnings(hold_box_forms=with_findings and not arguments.strict) as messages:
        results = evaluate_each(paths, arguments) if with_findings else _in_parts(paths, arguments, stack)
        named = dict(zip(names, results, strict=True))
        digests = [
            digest_of(result, name=name, warned=messages) for name, result in named.items() if with_findings
        ]
    for digest in digests if arguments.strict else ():
        digest.refuse()
    # Run one of three modes: a plan, batch by batch, or all images.
    if arguments.plan:
        _show_plan(named, arguments, rows)
    elif arguments.sequential:
        _show_sequential(named, arguments)
    else:
        faulty = any(digest.errors for digest in digests)
        _show_comparison(named, arguments, rows, messages, faulty=faulty)
    say_findings(digests)
    return 0


def _in_parts(
    paths: Sequence[Path], arguments: argparse.Namespace, stack: contextlib.ExitStack
) -> list[Evaluation]:
    """Evaluate each in partitions, which remain on disk or on the cluster as long as the stack is open."""
    calls = [with_detections(path, arguments) for path in paths]
    if arguments.scheduler is None:
        from boxscore.extensions.large.command_line import evaluation_in_parts

        return [stack.enter_context(evaluation_in_parts(call)) for call in calls]
    from boxscore.extensions.large.command_line import cluster_of, evaluate_by, refuse_needs_of_rows

    refuse_needs_of_rows(arguments)
    client = stack.enter_context(cluster_of(arguments))
    return [evaluate_by(client, call) for call in calls]


def _show_comparison(
    named: dict[str, Evaluation],
    arguments: argparse.Namespace,
    rows: Rows,
    messages: Remembered,
    *,
    faulty: bool,
) -> None:
    """Compare over all images, print the differences or a table for a paper, and write the report."""
    import pandas as pd

    from boxscore.extensions.decisions.compare import compared
    from boxscore.reports import paper_table

    stage("comparing")
    # The table, the paper and the report share the swaps and the draws, of which text shows nothing.
    comparison = compared(
        named,
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        method=arguments.method,
        seed=arguments.seed,
        metrics=arguments.metrics,
        group=arguments.group,
        progress=True,
        workers=readers(arguments),
        drawn=arguments.output != "text" or arguments.report is not None,
    )
    # A table for a paper has one row per detector, so it cannot show classes.
    per_class = arguments.per_class or rows != ALL_ROWS
    table = None
    if arguments.output in ("latex", "markdown") and not (per_class or arguments.show):
        table = paper_table(
            comparison,
            form=arguments.output,
            metrics=arguments.metrics,
            scale=1 if arguments.fractions else 100,
            decimals=arguments.decimals,
            intervals=arguments.intervals,
            label=arguments.label,
        )
    if arguments.report:
        save_comparison(comparison, arguments, messages)
    if comparison.scores_text and arguments.output != "text":
        say(comparison.scores_text)
    frame, words = comparison.total_frame(), ""
    if per_class:
        classes, words = chosen_rows(comparison.to_frame(), rows)
        frame = pd.concat([classes, frame], ignore_index=True)
    first = comparison.evaluations[comparison.first]
    # Print the paper's table, sections for people, or one table for programs.
    if table is not None:
        show(table)
    elif arguments.output == "text":
        given = {"--report": bool(arguments.report), "--per-class": per_class}
        said = [
            answer.statement if any(given[name] for name in given if name in answer.command) else answer.text
            for answer in answers(comparison)
        ]
        if faulty:
            said.insert(0, "First fix the error in the input (see below): the comparison may mean nothing.")
        sections = _sections(comparison, frame, said, words, every_metric=bool(arguments.metrics))
        show(written("text", sections, value={}, footer=first.signature))
    else:
        more = {
            "sentences": [each.statement for each in answers(comparison)],
            "rule": comparison.verdict_text(),
            "pairs": table_rows(comparison.pair_frame()),
        }
        title = "Comparison of detectors"
        print_frame(frame, first, arguments.output, title=title, words=words, more=more)
    if arguments.report:
        report_written(arguments.report)


def _check_sequential(arguments: argparse.Namespace, *, per_class: bool) -> None:
    """Reject options that contradict reading in batches before reading anything."""
    # Options of batches need --sequential.
    if not arguments.sequential:
        for name in ("batch", "order"):
            if getattr(arguments, name) is not None:
                raise InputError(
                    f"--{name}", "be used together with --sequential", got=getattr(arguments, name)
                )
        return
    # The test is for one difference in one metric; other output needs all images.
    if len(arguments.detections) != 2:
        raise InputError("--sequential", "have two files", got=len(arguments.detections))
    if len(arguments.metrics or ()) > 1:
        raise InputError(
            "--sequential", "be used with one metric", got=f"--metrics {' '.join(arguments.metrics)}"
        )
    without = {
        "--per-class": per_class,
        "--report": arguments.report is not None,
        "--memory-limit": arguments.memory_limit is not None,
        "--scheduler": arguments.scheduler is not None,
    }
    for option, given in without.items():
        if given:
            raise InputError("--sequential", f"not be combined with {option}", got="both")


def _show_sequential(named: dict[str, Evaluation], arguments: argparse.Namespace) -> None:
    """Compare batch by batch, and print the batches."""
    from boxscore.diagnostics import compare_sequentially

    stage("comparing")
    # Read images in file order, in random order, or in the order of a list.
    first = next(iter(named.values()))
    order = arguments.order or "listed"
    result = compare_sequentially(
        named,
        metric=arguments.metrics[0] if arguments.metrics else None,
        batch=arguments.batch,
        order=order if order in ("listed", "random") else chosen([order], first.images) or (),
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        seed=arguments.seed,
        group=arguments.group,
        progress=True,
        workers=readers(arguments),
    )
    # Move columns that are the same in every row to the title.
    frame, title = result.to_frame(), "Comparison batch by batch"
    if arguments.output == "text":
        title = f"{printable(result.first)} (first) and {printable(result.other)} (other), {result.metric}"
        frame = frame.drop(columns=["first", "other", "metric"])
    print_frame(frame, first, arguments.output, title=title, note=result.verdict_text())


def _check_plan(arguments: argparse.Namespace) -> None:
    """Reject options that a plan does not read, and options that only a plan reads."""
    if not arguments.plan:
        for name in ("difference", "power"):
            if (value := getattr(arguments, name)) is not None:
                raise InputError(f"--{name}", "be used together with --plan", got=value)
        return
    if len(arguments.detections) != 2:
        raise InputError("--detections", "have two files when --plan is used", got=len(arguments.detections))
    if arguments.sequential:
        raise InputError("--sequential", "not be combined with --plan", got="both")
    if arguments.report:
        raise InputError("--report", "not be combined with --plan", got=str(arguments.report))


def _show_plan(named: dict[str, Evaluation], arguments: argparse.Namespace, rows: Rows) -> None:
    """Print the difference that these images can show, and the number of images needed."""
    import pandas as pd

    from boxscore.diagnostics import plan_comparison

    stage("planning")
    # Plan from the two given results.
    (first, one), (other, two) = named.items()
    plan = plan_comparison(
        one,
        two,
        difference=arguments.difference,
        power=0.8 if arguments.power is None else arguments.power,
        confidence=arguments.confidence,
        resamples=arguments.resamples,
        seed=arguments.seed,
        metrics=arguments.metrics,
        group=arguments.group,
        progress=True,
        workers=readers(arguments),
    )
    # Make one row per class on request.
    per_class, words = arguments.per_class or rows != ALL_ROWS, ""
    frame, curve = plan.total_frame(), plan.curve_frame()
    if per_class:
        classes, words = chosen_rows(plan.to_frame(), rows)
        frame = pd.concat([classes, frame], ignore_index=True)
    # On a terminal, the first sentence is the title; in files, the names are.
    sentences = [as_typed(text) for text in plan.sentences]
    names = f"{printable(first)} (first) and {printable(other)} (other)"
    head, *rest = [*sentences, f"Planned from {names}."]
    if arguments.output != "text":
        head, rest = f"Images needed to tell {names} apart", sentences
    if per_class:
        # With classes, the curve is a separate table.
        head += f" {words}" * bool(words)
        ends = ("detectable_low", "detectable_high"), ("images_needed_low", "images_needed_high")
        sections = [
            Section(
                head, table_columns(frame), "\n".join(rest), first_out=("standard_error", "delta", *ends)
            ),
            Section("Statistical power by number of images, all classes together", table_columns(curve)),
        ]
    else:
        sections = [Section(head, table_columns(curve), "\n".join(rest))]
    # JSON always has everything.
    value = {
        "table": "Sample size of a comparison",
        "protocol": one.protocol.name,
        "signature": one.signature,
        "sentences": sentences,
        "rows": table_rows(frame),
        "curve": table_rows(curve),
    }
    table = table_columns(frame)
    show(written(arguments.output, sections, value=value, table=table, footer=one.signature))


def _sections(
    comparison: DetectorComparison,
    frame: pd.DataFrame,
    said: Sequence[str],
    words: str,
    *,
    every_metric: bool,
) -> list[Section]:
    """Return the sections of a terminal: the answers and the rule once, then the tables."""
    # The verdict is the title; further answers, the data and the rule are below it.
    first, how = comparison.evaluations[comparison.first], comparison.resampling
    many = len(comparison.names) > 2
    title, *further = said or ["Comparison of detectors"]
    counts = first.counts
    data = f"{counted(counts['ground_truths'], 'ground truth')}, {counted(counts['images'], 'image')}"
    data += f", {counted(how.units, 'group')}" * (how.group is not None)
    of_each = (
        f"{printable(name)} ({counted(each.counts['detections'], 'detection')})"
        for name, each in comparison.evaluations.items()
    )
    level = f"{100 * how.confidence:g}%"
    delta = "detector minus against" if many else "other minus first"
    legend = f"delta: {delta}; low, high: its {level} interval"
    note = [*further, f"{data}; {', '.join(of_each)}", legend, comparison.verdict_text()]
    if comparison.scores_text:
        note.insert(0, comparison.scores_text)
    text = "\n".join(note)
    classes = frame[frame["class"] != EVERY_CLASS]
    if not many:
        head = f"{printable(comparison.first)} (first) and {printable(comparison.others[0])} (other)"
        named = f"{head}, {words}" if words else head
        text += f"\n{named}"
        return [Section(title, _columns(frame), text, first_out=FIRST_OUT, paint=_color_verdict)]
    # With three or more, print every pair, every metric of each, and the classes against the first.
    pairs = comparison.pair_frame()
    if not every_metric:
        pairs = pairs[pairs["metric"] == comparison.metrics[0]]
    least = ("value_against", "value")
    sections = [
        Section(title, table_columns(pairs), text, first_out=least, paint=_color_verdict),
        Section("Metrics of each detector", table_columns(_metrics_of_each(comparison))),
    ]
    for other in comparison.others if len(classes) else ():
        head = f"{printable(comparison.first)} (first) and {printable(other)} (other)"
        columns = _columns(classes[classes["other"] == other])
        named = f"{head}, {words}" if words else head
        sections.append(Section(named, columns, first_out=FIRST_OUT, paint=_color_verdict))
    return sections


def _columns(frame: pd.DataFrame) -> Columns:
    """Return the columns of two detectors, without those that are the same in every row or do not decide."""
    frame = frame.drop(columns=["first", "other", "standard_error", "other_wins"])
    for name, nothing in (("class", EVERY_CLASS), ("decided_by_ties", False)):
        if frame[name].isin([nothing, None]).all():
            frame = frame.drop(columns=name)
    return table_columns(frame)


def _metrics_of_each(comparison: DetectorComparison) -> pd.DataFrame:
    """Return one row per metric: each detector's value, and the best one if it is clear."""
    import pandas as pd

    values = comparison.scores
    best = [comparison.clear_best(m) for m in range(len(comparison.metrics))]
    columns = {
        "metric": comparison.metrics,
        "best": ["cannot tell" if i is None else comparison.names[i] for i in best],
    }
    # A detector may have the name of one of these columns.
    others = {f"{name} " if name in columns else name: values[i] for i, name in enumerate(comparison.names)}
    return pd.DataFrame({"metric": columns.pop("metric"), **others, **columns})


def _color_verdict(_: int, name: str, text: str) -> str:
    colors = {"better": "green", "worse": "red"}
    return colored(text, colors[text.strip()]) if name == "verdict" and text.strip() in colors else text
