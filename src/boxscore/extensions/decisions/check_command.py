r"""Fail a CI pipeline when metrics are too low. Exit status 1 when a check fails.

The result is computed from --gt and --dt, or read from JSON that boxscore wrote (--result).

A bound is METRIC=NUMBER, or "CLASS METRIC=NUMBER" for one class. Against a baseline's result
(--no-regression), a metric fails when it drops by more than --tolerance. Against a baseline's detections
(--baseline-detections), it fails when the drop is significant in a permutation test over images; with
--tolerance, when the whole interval of the difference is below minus --tolerance. If the pipeline runs at
every commit, --sequential limits the false alarms over all runs in --history together. Errors in the input,
such as boxes in the wrong format, also fail, including those in the baseline's detections; --allow NAME
accepts one.

Examples
--------
  boxscore check instances.json results.json --min AP=0.35 "traffic light AP=0.2"
  boxscore check --result report/result.json --no-regression baseline.json --tolerance 0.002
  boxscore check instances.json new.json --baseline-detections old.json --metrics AP
  boxscore check instances.json new.json --baseline-detections old.json --sequential --history scores.jsonl
  boxscore check instances.json results.json --min AP=0.35 --history scores.jsonl --junit check.xml
  boxscore check instances.json new.json --baseline-detections old.json --metrics AP --summary comment.md
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boxscore._utils import checks
from boxscore._utils.files import write_atomically
from boxscore._utils.text import fixed, markdown_table, text_table
from boxscore._version import __version__
from boxscore.cli.arguments import ALLOW, DETECTIONS, GROUND_TRUTH, INPUTS, OUTPUT, Option
from boxscore.cli.choices import readers
from boxscore.cli.inputs import Inputs, evaluate_inputs, read_inputs
from boxscore.cli.output import Section, remembered_warnings, written
from boxscore.cli.streams import colored, say, show, signature_lines, table_width
from boxscore.data.unlisted import listing
from boxscore.diagnostics import compare_detectors
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions import gate, history
from boxscore.extensions.decisions.compare import TOO_FEW
from boxscore.extensions.decisions.options import BATCH
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.shell.detectors import read_others, with_detections
from boxscore.extensions.shell.parameters import METRICS, options_of
from boxscore.extensions.validation.digest_command import NOTHING, Digest, digest_of

if TYPE_CHECKING:
    from boxscore.extensions.decisions.compare import DetectorComparison
    from boxscore.extensions.decisions.sequential import DropSoFar

SWAP_TEST = "test against the detections of a baseline"

OPTIONS = (
    *(option.but(required=False) if option in (GROUND_TRUTH, DETECTIONS) else option for option in INPUTS),
    MEMORY_LIMIT,
    OUTPUT,
    Option("result", "check this result instead of evaluating", kind=Path, metavar="FILE.json"),
    Option(
        "min", 'lower bounds, e.g. AP=0.35 "traffic light AP=0.2"', many=True, default=(), metavar="BOUND"
    ),
    Option("max", "upper bounds", many=True, default=(), metavar="BOUND"),
    Option(
        "no-regression",
        "fail if a metric is lower than in this result",
        kind=Path,
        metavar="FILE.json",
        mistyped_as=("--baseline",),
    ),
    Option(
        "baseline-detections",
        "fail if a metric is significantly lower than for these detections",
        kind=Path,
        metavar="PATH",
    ),
    Option(
        "sequential",
        "limit the probability that equal detectors ever fail, over all runs in --history, to 1 - confidence",
        kind=bool,
        default=False,
        topic=SWAP_TEST,
    ),
    BATCH.but(topic=SWAP_TEST),
    Option("tolerance", "largest drop that still passes", kind=float, default=0.0, metavar="X"),
    METRICS.but(help="check only these metrics (default: all)", default=()),
    *(
        option.but(topic=SWAP_TEST)
        for option in options_of(compare_detectors)
        if option.name in ("resamples", "confidence", "seed", "group")
    ),
    ALLOW.but(key=""),
    Option("name", "model name to record in --history", metavar="TEXT"),
    Option(
        "history",
        "append the result to this file as a line of JSON",
        kind=Path,
        metavar="FILE.jsonl",
        writes=(".",),
    ),
    Option(
        "summary",
        "also write a summary for a pull request, in GitHub Markdown, with per-class differences folded",
        kind=Path,
        metavar="FILE.md",
        writes=(".",),
    ),
    Option("junit", "also write the checks as JUnit XML", kind=Path, metavar="FILE.xml", writes=(".",)),
)


class _Checked(NamedTuple):
    """A result, with its digest and evaluation if it was computed here."""

    result: gate.Result
    inputs: Inputs | None = None
    evaluation: Evaluation | None = None


def run(arguments: argparse.Namespace) -> int:
    """Read or evaluate, check, record and print; return the exit status."""
    with contextlib.ExitStack() as stack:
        return _run(arguments, stack)


def _run(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> int:
    """Keep partitioned evaluations open in ``stack`` until they are checked."""
    # Read or evaluate; run the quick checks of the input on the same evaluation.
    tolerance = checks.number_between(arguments.tolerance, 0, 1, name="--tolerance")
    _check_sequential(arguments)
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        checked = _read_or_evaluate(arguments, stack)
        result, digest = checked.result, NOTHING
        if checked.evaluation is not None and checked.inputs is not None:
            digest = digest_of(checked.evaluation, allowed=arguments.allow, warned=messages)
    if arguments.strict:
        digest.refuse()
    # Check bounds and a stored baseline result, which need only numbers.
    done = gate.check_bounds(
        result,
        minimum=[gate.parse_bound(text, result, name="--min") for text in arguments.min],
        maximum=[gate.parse_bound(text, result, name="--max") for text in arguments.max],
    )
    if arguments.no_regression:
        place = str(arguments.no_regression)
        baseline = gate.read_result(arguments.no_regression)
        done += gate.check_baseline(
            result, baseline, tolerance=tolerance, only=arguments.metrics, place=place
        )
    # Compare with a baseline's detections: over all images, or as one look of a history.
    of_baseline, drop, comparison = NOTHING, None, None
    if arguments.baseline_detections:
        baseline_evaluation, evaluation, of_baseline = _with_baseline(checked, arguments, stack)
        if arguments.sequential:
            drop = _compare_in_batches(baseline_evaluation, evaluation, arguments)
        else:
            comparison = _compare(baseline_evaluation, evaluation, arguments)
            done += gate.check_difference(
                comparison,
                tolerance=tolerance,
                place=str(arguments.baseline_detections),
                lower_is_better=frozenset(evaluation.protocol.lower_is_better),
            )
        if arguments.strict:
            of_baseline.refuse()
    # A history is enough; otherwise there must be something to check.
    if not done and arguments.history is None:
        raise InputError(
            "check needs at least one of --min, --max, --no-regression and --baseline-detections, e.g. "
            "--min AP=0.35."
        )
    # Errors in the input are failed checks, each reported once.
    errors = gate.check_input(digest.errors)
    errors += gate.check_input(
        [code for code in of_baseline.errors if code not in digest.errors], of="baseline"
    )
    if drop is None:
        done += errors
        record = _record(arguments, result, done)
    else:
        done, record = _at_next_look(arguments, result, drop, done, errors)
    # Write the outcome in every requested form; the history last, after everything else worked.
    note = _note(done, record, arguments)
    text = _format_result(done, note, record, result.signature, arguments)
    if arguments.summary is not None:
        from boxscore.extensions.decisions.pull_request import pull_request_summary

        about = {"evaluation": checked.evaluation, "comparison": comparison, "name": arguments.name}
        summary = pull_request_summary(done, note=note, signature=result.signature, **about)
        write_atomically(arguments.summary, summary)
    # Write the checks as tests, for the CI system's page.
    if arguments.junit is not None:
        from boxscore.extensions.decisions.junit import as_junit

        properties = {"signature": result.signature, "boxscore": __version__}
        properties |= {} if arguments.name is None else {"name": arguments.name}
        write_atomically(arguments.junit, as_junit(done, time=record["time"], properties=properties))
    if arguments.history is not None and drop is None:
        history.append_record(arguments.history, record)
    # Pipelines read the exit status.
    show(text)
    digest.say()
    of_baseline.say()
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _annotate(done)
    return 0 if record["passed"] else 1


def _check_sequential(arguments: argparse.Namespace) -> None:
    """Reject options that contradict --sequential before reading anything."""
    # The batch size needs --sequential.
    if not arguments.sequential:
        if arguments.batch is not None:
            raise InputError("--batch", "be used together with --sequential", got=arguments.batch)
        return
    # Each look spends a part of the error, so the history must count the looks.
    if arguments.baseline_detections is None or arguments.history is None:
        raise InputError(
            "--sequential",
            "be used together with --baseline-detections and --history",
            got="no " + ("--history" if arguments.baseline_detections else "--baseline-detections"),
            cause="the history records the previous runs",
        )
    # The test assumes no difference under its null hypothesis, so it cannot take a tolerance or several
    # metrics.
    if arguments.tolerance:
        raise InputError(
            "--sequential",
            "not be combined with --tolerance",
            got=f"--tolerance {arguments.tolerance:g}",
            cause="a permutation test cannot test a margin",
        )
    if len(arguments.metrics) > 1:
        raise InputError(
            "--sequential",
            "be used with one metric",
            got=f"--metrics {' '.join(arguments.metrics)}",
            cause="pass one with --metrics; bound others with --min",
        )


def _compare_in_batches(
    baseline: Evaluation, evaluation: Evaluation, arguments: argparse.Namespace
) -> DropSoFar:
    """Compare batch by batch."""
    from boxscore.extensions.decisions.sequential import drop_in_batches

    return drop_in_batches(
        baseline,
        evaluation,
        metric=arguments.metrics[0] if arguments.metrics else None,
        batch=arguments.batch,
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        seed=arguments.seed,
        group=arguments.group,
        workers=readers(arguments),
    )


def _at_next_look(
    arguments: argparse.Namespace,
    result: gate.Result,
    drop: DropSoFar,
    done: Sequence[gate.Check],
    errors: Sequence[gate.Check],
) -> tuple[list[gate.Check], dict[str, Any]]:
    """Decide using the looks in the history, and append this one in the same lock."""
    from boxscore.extensions.decisions.sequential import share_of_look

    every, record = list[gate.Check](), _record(arguments, result, ())
    place = str(arguments.baseline_detections)
    # An error here must not append a line.
    gate.check_drop(drop, look=1, level=1.0, place=place)

    # Runs under the lock of the history, so that two runs cannot be the same look.
    def decided(earlier: history.History) -> dict[str, Any]:
        record["sequential"] = {
            "metric": drop.metric,
            "p_value": drop.p_value,
            **{key: value for key, value in drop.reading._asdict().items() if key != "confidence"},
        }
        # The level of the look is its share of the total error: all shares add up to it.
        look = history.next_look(earlier, record)
        level = (1 - arguments.confidence) * share_of_look(look.number)
        record["sequential"] |= {"look": look.number, "again": look.again, "level": level}
        at_look = gate.check_drop(
            drop, look=look.number, level=level, lower_is_better=result.lower_is_better, place=place
        )
        every.extend([*done, at_look, *errors])
        record["checks"] = [check.as_dict() for check in every]
        record["passed"] = all(check.passed for check in every)
        return record

    # Append only after the decision, so that an error does not append a line.
    history.append_after(arguments.history, decided)
    return every, record


def _read_or_evaluate(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> _Checked:
    """Read a result from a file, or evaluate."""
    # Exactly one source of numbers is allowed.
    evaluated = arguments.ground_truth is not None or arguments.detections is not None
    if (arguments.result is not None) == evaluated:
        raise InputError("check needs --result, or --ground-truth and --detections.")
    # A stored result does not contain images to resample.
    if arguments.result is not None:
        if arguments.baseline_detections is not None:
            raise InputError(
                "--baseline-detections",
                "be used together with --ground-truth and --detections",
                got="--result",
                cause="the test needs both sets of detections; to compare with the numbers of a result "
                "use --no-regression",
            )
        return _Checked(gate.read_result(arguments.result))
    if arguments.ground_truth is None or arguments.detections is None:
        given = arguments.ground_truth if arguments.detections is None else arguments.detections
        raise InputError(
            "check",
            "get both --ground-truth and --detections",
            got=f"only {given}",
            cause="to check a result that boxscore wrote, use --result FILE.json",
        )
    # Keep partitions open until the caller has checked them.
    if arguments.memory_limit is not None:
        from boxscore.extensions.large.command_line import evaluation_in_parts

        evaluation = stack.enter_context(evaluation_in_parts(arguments))
        return _Checked(gate.result_of(evaluation), None, evaluation)
    inputs = read_inputs(arguments)
    evaluation = evaluate_inputs(inputs)
    return _Checked(gate.result_of(evaluation), inputs, evaluation)


def _with_baseline(
    checked: _Checked, arguments: argparse.Namespace, stack: contextlib.ExitStack
) -> tuple[Evaluation, Evaluation, Digest]:
    """Evaluate the baseline's detections and the checked ones on the same images; report input errors."""
    inputs, evaluation = checked.inputs, checked.evaluation
    assert evaluation is not None
    if inputs is None:
        from boxscore.extensions.large.command_line import evaluation_in_parts

        call = with_detections(arguments.baseline_detections, arguments)
        return stack.enter_context(evaluation_in_parts(call)), evaluation, NOTHING
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        table = read_others(arguments.baseline_detections, inputs, arguments)
        truth = listing(inputs.ground_truth, [table])
        if truth is not inputs.ground_truth:
            evaluation = evaluate_inputs(inputs._replace(ground_truth=truth))
        baseline = evaluate_inputs(inputs._replace(ground_truth=truth, detections=table))
        digest = digest_of(baseline, name="baseline", allowed=arguments.allow, warned=messages)
    return baseline, evaluation, digest


def _compare(
    baseline: Evaluation, evaluation: Evaluation, arguments: argparse.Namespace
) -> DetectorComparison:
    """Compare over all images, without draws: only swaps decide."""
    from boxscore.extensions.decisions.compare import compared

    return compared(
        {"baseline": baseline, "checked": evaluation},
        resamples=arguments.resamples,
        confidence=arguments.confidence,
        method="swap",
        seed=arguments.seed,
        metrics=arguments.metrics or None,
        group=arguments.group,
        progress=False,
        workers=readers(arguments),
        drawn=False,
    )


def _record(arguments: argparse.Namespace, result: gate.Result, done: Sequence[gate.Check]) -> dict[str, Any]:
    """Return the record of the run; inputs are read again for their hashes only if these are used."""
    # Hash the inputs only if the hash is shown, because files may be large.
    named = ("ground_truth", "detections", "result", "no_regression", "baseline_detections")
    paths = {name: getattr(arguments, name) for name in named if getattr(arguments, name) is not None}
    wanted = arguments.output == "json" or arguments.history is not None
    return {
        "time": history.now(),
        "name": arguments.name,
        "boxscore": __version__,
        "passed": all(check.passed for check in done),
        "signature": result.signature,
        "metrics": dict(result.metrics),
        "checks": [check.as_dict() for check in done],
        "inputs": {
            name: {"path": str(path), "sha256": history.fingerprint(path)} for name, path in paths.items()
        }
        if wanted
        else {},
    }


def _note(done: Sequence[gate.Check], record: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """Summarize the outcome in a line, and explain its terms in further lines."""
    # Summarize the outcome in a line; undecided checks pass but are mentioned.
    failed = sum(not check.passed for check in done)
    note = f"{failed} of {len(done)} failed" if failed else "all checks passed"
    undecided = sum(check.undecided for check in done)
    if undecided and not failed:
        note = f"{undecided} of {len(done)} undecided: {TOO_FEW}; none failed"
    if not done:
        note = "recorded; nothing was checked"
    # Explain "significant" for the test that was used.
    if "sequential" in record:
        note += f"\n{_look_text(record['sequential'], arguments.confidence)}"
    elif arguments.baseline_detections:
        share = f"{100 * arguments.confidence:g}%"
        text = (
            f"the whole {share} interval of the difference is below -{arguments.tolerance:g}"
            if arguments.tolerance
            else f"p_value <= {1 - arguments.confidence:.4g} in a paired permutation test over images, "
            "adjusted for all metrics that are checked"
        )
        note += f"\nsignificant: {text}"
    if any(check.rule == gate.NO_ERROR for check in done):
        note += f"\n{gate.NO_ERROR}: correct the input, or accept the error with --allow NAME"
    return note


def _format_result(
    done: Sequence[gate.Check],
    note: str,
    record: Mapping[str, Any],
    signature: str,
    arguments: argparse.Namespace,
) -> str:
    columns, form = _columns(done), arguments.output
    if form == "markdown":
        mark = ":white_check_mark:" if all(check.passed for check in done) else ":x:"
        head = note.replace("\n", "; ")
        return f"### {mark} boxscore check: {head}\n\n{markdown_table(columns)}\n\n`{signature}`"
    if form == "text":
        table = f"{text_table(columns, width=table_width(), paint=_color_result)}\n\n" if done else ""
        return f"{table}{note}\n{signature_lines(signature)}"
    return written(
        form, [Section("boxscore check", columns, note.replace("\n", "; "))], value=record, footer=signature
    )


def _look_text(look: Mapping[str, Any], confidence: float) -> str:
    """Describe how much error a look of the history may spend."""
    number, level = look["look"], 1 - confidence
    which = f"run {number}" + (" (same data as before)" if look["again"] else "")
    return (
        f"significant: p_value <= {look['level']:.3g} = {level:.4g} / ({number} x {number + 1}) at "
        f"{which}; over all runs of this history, equal detectors fail with probability <= {level:.4g}"
    )


def _columns(done: Sequence[gate.Check]) -> dict[str, Any]:
    """Build the columns of the table; class and interval only if some check has them."""
    columns: dict[str, Any] = {}
    if any(check.class_name is not None for check in done):
        columns["class"] = [check.class_name for check in done]
    columns |= {
        "metric": [check.metric for check in done],
        "value": [check.value for check in done],
        "must be": [check.rule for check in done],
    }
    if any(check.low is not None for check in done):
        columns["difference"] = [
            None if check.low is None or check.high is None else f"[{fixed(check.low)}, {fixed(check.high)}]"
            for check in done
        ]
    if any(check.p_value is not None for check in done):
        columns["p"] = [check.p_value for check in done]
    return {**columns, "result": [_result(check) for check in done]}


def _result(check: gate.Check) -> str:
    return TOO_FEW if check.undecided else "passed" if check.passed else "FAILED"


def _annotate(done: Sequence[gate.Check]) -> None:
    """Report failed checks to GitHub Actions, which shows lines in this format on the run's page."""
    for check in done:
        if not check.passed:
            value = "undefined" if check.value is None else f"{check.value:.4f}"
            text = f"{check.title} is {value}, must be {check.rule}"
            if check.rule == gate.NO_ERROR:
                text = f"error in the input: {check.title}"
            for mark, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
                text = text.replace(mark, code)
            say(f"::error title=boxscore check::{text}", quiet=False)


def _color_result(_: int, name: str, text: str) -> str:
    colors = {"FAILED": "red", "passed": "green"}
    return colored(text, colors[text.strip()]) if name == "result" and text.strip() in colors else text
