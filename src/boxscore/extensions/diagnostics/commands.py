"""Define the commands that each print one diagnostic, in one table.

Each entry names a function of ``boxscore.diagnostics``, whose parameters become options of the command, and
further options.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from boxscore._utils import checks
from boxscore._utils.records import NamedTuple
from boxscore.cli.arguments import OUTPUT, PER_CLASS, ROWS, SHOW, Option, inputs_beside
from boxscore.errors import InputError
from boxscore.extensions.diagnostics.class_groups import groups_of_text
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.extensions.shell.parameters import METRICS, options_of

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.evaluation import Evaluation
    from boxscore.reports.rows import Rows


class Diagnostic(NamedTuple):
    """A command that prints one diagnostic.

    Attributes
    ----------
    description : str
        Text above the options in the help.
    function : str
        Function of ``boxscore.diagnostics``; takes an evaluation and the parameters.
    title : str
        Title of the table; may name options in braces.
    note : str
        Line below the title in a terminal, for ``function`` only, not those of ``instead``; may name the
        protocol in braces.
    extra : tuple of Option
        Options that are not parameters of the function, or that replace one.
    exclusive : tuple of str
        Names of mutually exclusive options.
    instead : mapping of str to str
        Options that choose another function, and that function.
    only_with, not_with : mapping of str to str
        Options that need one of the options of ``instead``, or exclude it.
    digits : int
        Decimals in text, Markdown and LaTeX.
    first_out : function of a table, optional
        Return the columns that a narrow terminal drops first; the default drops from the right.
    unset : mapping of str to function of an evaluation
        Default of an option, computed from the evaluation.
    in_title : mapping of str to function of the arguments
        Words of the title, by the name in braces.
    sort : str, optional
        Columns to sort by unless ``--sort`` names others. Empty keeps the order of the result; None means
        that rows cannot be sorted.
    sort_without_scores : str
        The same for detections without scores, if different.
    examples : tuple of str
        Arguments of one example call each.
    """

    description: str
    function: str
    title: str
    extra: tuple[Option, ...] = ()
    exclusive: tuple[str, ...] = ()
    instead: Mapping[str, str] = {}
    only_with: Mapping[str, str] = {}
    not_with: Mapping[str, str] = {}
    digits: int = 4
    examples: tuple[str, ...] = ("",)
    first_out: Callable[[pd.DataFrame], Sequence[str | tuple[str, ...]]] | None = None
    unset: Mapping[str, Callable[[Evaluation], Any]] = {}
    in_title: Mapping[str, Callable[[argparse.Namespace], str]] = {}
    sort: str | None = ""
    sort_without_scores: str = ""
    note: str = ""

    @property
    def options(self) -> tuple[Option, ...]:
        """Return the function's parameters and the further options of the command."""
        from boxscore import diagnostics

        options = options_of(getattr(diagnostics, self.function), self.extra)
        return tuple(
            option.but(exclusive="way") if option.name in self.exclusive else option for option in options
        )

    @property
    def arguments(self) -> tuple[Option, ...]:
        """Return all options and arguments of the command."""
        options = self.options
        rows = () if self.sort is None else ROWS
        return (*inputs_beside(options), MEMORY_LIMIT, OUTPUT, *options, *rows, SHOW)

    def help(self, name: str) -> str:
        """Return the text above the options."""
        call = f"  boxscore {name} instances.json results.json"
        return "\n".join(
            [
                self.description,
                "",
                "Examples",
                "--------",
                *(f"{call} {more}".rstrip() for more in self.examples),
            ]
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Read, evaluate and print; return the exit status."""
        from boxscore.cli.inputs import evaluate_inputs, read_inputs
        from boxscore.cli.output import remembered_warnings, rows_of
        from boxscore.extensions.validation.digest_command import NOTHING, digest_of
        from boxscore.reports.rows import ALL_ROWS

        # Reject options without effect before reading files.
        self._refuse_unread(arguments)
        rows = ALL_ROWS if self.sort is None else rows_of(arguments, sort=self.sort)
        # Evaluate in memory or in partitions; the quick checks need everything in memory.
        in_memory = arguments.memory_limit is None
        with contextlib.ExitStack() as stack:
            with remembered_warnings(hold_box_forms=in_memory and not arguments.strict) as messages:
                if in_memory:
                    evaluation = evaluate_inputs(read_inputs(arguments))
                    digest = digest_of(evaluation, warned=messages)
                else:
                    from boxscore.extensions.large.command_line import evaluation_in_parts

                    evaluation, digest = stack.enter_context(evaluation_in_parts(arguments)), NOTHING
            # With --strict, stop on errors here; findings are printed below the table.
            if arguments.strict:
                digest.refuse()
            if self.sort_without_scores and not evaluation.has_scores:
                rows = rows_of(arguments, sort=self.sort_without_scores)
            self._print(evaluation, arguments, rows)
        digest.say()
        return 0

    def _refuse_unread(self, arguments: argparse.Namespace) -> None:
        """Reject options that the chosen function does not read."""
        for option in self.options:
            given = getattr(arguments, option.dest)
            if given == option.default:
                continue
            for others, is_read in ((self.only_with, True), (self.not_with, False)):
                other = others.get(option.dest)
                if other is not None and _is_given(getattr(arguments, other)) != is_read:
                    rule = (
                        f"{'be used together with' if is_read else 'not be combined with'} "
                        f"--{other.replace('_', '-')}"
                    )
                    raise InputError(option.typed(), rule, got=given)

    def _print(self, evaluation: Evaluation, arguments: argparse.Namespace, rows: Rows) -> None:
        import inspect

        from boxscore import diagnostics
        from boxscore._utils.progress import stage
        from boxscore.cli.choices import readers
        from boxscore.data.class_names import EVERY_CLASS
        from boxscore.extensions.shell.frames import chosen_rows, print_frame
        from boxscore.reports.rows import ALL_ROWS

        # Compute the defaults of options that depend on the evaluation.
        for dest, value_of in self.unset.items():
            if getattr(arguments, dest) is None:
                setattr(arguments, dest, value_of(evaluation))
        # Find the function and its arguments by name: options are named like the parameters.
        instead = [name for dest, name in self.instead.items() if _is_given(getattr(arguments, dest))]
        function = getattr(diagnostics, instead[0] if instead else self.function)
        values: dict[str, Any] = {"progress": True, "workers": readers(arguments)}
        for option in self.options:
            value = getattr(arguments, option.dest)
            values[option.dest] = option.combine(value) if option.combine and value is not None else value
        for value in [*values.values()]:
            # One option can set several parameters.
            if isinstance(value, dict):
                values |= value
        options = {
            parameter: values[parameter]
            for parameter in inspect.signature(function).parameters
            if parameter in values
        }
        # Compute the result, and take its rows per class and in total.
        per_class = values.get("per_class", True) or rows != ALL_ROWS
        words_of_title = {name: words_of(arguments) for name, words_of in self.in_title.items()}
        usual_title = self.title.format_map({**vars(arguments), **words_of_title})
        stage(f"computing: {usual_title}")
        result = function(evaluation, **options)
        frame, totals = _frames(result, per_class=per_class)
        # Take the title and the note from the result, or from the command.
        note = "" if instead else self.note
        note = note or getattr(result, "note", "")
        if arguments.output == "text" and hasattr(result, "terminal_rows"):
            frame, rest = result.terminal_rows(frame)
            note = note or rest
        frame, words = chosen_rows(frame, rows, falling=evaluation.protocol.lower_is_better)
        frame = frame if totals is None else _below(frame, totals)
        # Move a column that reads "all classes" in every row to the title.
        title = getattr(result, "title", "") or usual_title
        if arguments.output == "text" and "class" in frame and (frame["class"] == EVERY_CLASS).all():
            frame, title = frame.drop(columns="class"), f"{title}, all classes together"
        first_out = self.first_out(frame) if self.first_out is not None and not instead else []
        first_out = first_out or getattr(result, "first_out", [])
        print_frame(
            frame,
            evaluation,
            arguments.output,
            title=title,
            digits=self.digits,
            first_out=first_out,
            words=words,
            note=note,
        )


def _is_given(value: object) -> bool:
    return value is not None and value is not False


def _frames(result: Any, *, per_class: bool) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the table of a result, or only its totals, and the totals below; a named index is a column."""
    frame: pd.DataFrame = result
    totals = None
    if hasattr(result, "to_frame"):
        frame = result.to_frame()
        totals = result.total_frame() if hasattr(result, "total_frame") else None
        if totals is not None and not per_class:
            frame, totals = totals, None
    return (frame if frame.index.name is None else frame.reset_index()), totals


def _below(frame: pd.DataFrame, totals: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.concat([frame, totals], ignore_index=True)


def _edges_or_count(values: list[float]) -> int | list[float]:
    """Read a single whole number as a count of slices."""
    return int(values[0]) if len(values) == 1 and values[0].is_integer() else values


def _guarantee(text: str) -> dict[str, float]:
    """Parse ``recall=0.9``: the rate to guarantee, and its level."""
    measure, _, level = text.partition("=")
    try:
        if measure in ("recall", "precision", "fppi"):
            return {measure: checks.plain_number(level)}
    except ValueError:
        pass
    rule = "be recall=R, precision=P or fppi=N, each with a number"
    raise InputError("--guarantee", rule, got=repr(text), cause="for example --guarantee recall=0.9")


def _best_score(evaluation: Evaluation) -> float:
    """Return the score of the best F1, as in the report; without one, keep every detection."""
    from boxscore.extensions.diagnostics.confusion import EVERY_SCORE

    return max(evaluation.operating_score, EVERY_SCORE)


def _score_phrase(arguments: argparse.Namespace) -> str:
    """Describe the score threshold; empty if every detection counts."""
    from boxscore.extensions.diagnostics.confusion import EVERY_SCORE

    score: float = arguments.score_threshold
    return f" and score {score:.4g}" if score > EVERY_SCORE else ""


def _least_confused(frame: pd.DataFrame) -> list[str]:
    """Order predicted classes by ascending counts of confusion; keep the background."""
    names = list(map(str, frame.columns[1:]))
    counts = frame.iloc[:, 1:].to_numpy(dtype=float)
    wrong = counts.sum(axis=0) - counts.diagonal()
    return [names[at] for at in wrong[:-1].argsort(kind="stable")]


DIAGNOSTICS = {
    "bootstrap": Diagnostic(
        "Compute confidence intervals of every metric from the spread over images.",
        "bootstrap_intervals",
        "Confidence intervals over images",
        (
            METRICS,
            PER_CLASS,
            Option("resamples", "has no effect any more", kind=int, metavar="N", topic="intervals"),
        ),
        examples=("", "--metrics AP AP50 --per-class"),
    ),
    "errors": Diagnostic(
        "Show how much AP each error type costs (TIDE); F1 if the detections lack scores.",
        "error_types",
        "Error types (TIDE) at IoU {iou_threshold:g}, background below {background_iou:g}",
        (
            PER_CLASS.but(help="add one row per class and error type"),
            Option("list", "list every error instead", kind=bool, default=False),
        ),
        instead={"list": "error_list"},
        examples=("", "--per-class --output csv", "--list --output csv"),
    ),
    "error-curves": Diagnostic(
        "Run COCO's error analysis: the area under the precision-recall curve as errors are removed one "
        "type after another: poor localization (Loc), similar classes (Sim), other classes (Oth), "
        "background (BG) and missed objects (FN).",
        "error_areas",
        "Area under the precision-recall curve after removing each error type (C75 and C50 are AP at IoU "
        "0.75 and 0.50)",
        (
            Option(
                "curve", "print one row per class, step and recall point instead", kind=bool, default=False
            ),
        ),
        instead={"curve": "error_curves"},
        examples=("", "--max-detections 500 --sort C50", "--curve --output csv"),
    ),
    "keypoint-errors": Diagnostic(
        "Count keypoint errors of matched detections per joint: jitter, inversion (left and right "
        "exchanged), swap (the keypoint of another person) and miss.",
        "keypoint_errors",
        "Keypoint errors of matched detections (Ronchi and Perona)",
        digits=3,
        sort=None,
        examples=("", "--output csv"),
    ),
    "confusion": Diagnostic(
        "Count which class is predicted as which, with background as an additional class.",
        "confusion_matrix",
        "Confusion matrix at IoU {iou_threshold:g}{and_score} (rows: truth)",
        (
            Option(
                "score-threshold",
                "drop detections that score below this (default: the score with the best F1, as in the "
                "report)",
                kind=float,
                metavar="S",
                short="--conf",
            ),
            Option(
                "top",
                "list the N largest confusions between classes with their images instead; csv and json "
                "also contain the N largest with background",
                kind=int,
                metavar="N",
                variable="limit",
            ),
        ),
        instead={"limit": "top_confusions"},
        digits=3,
        first_out=_least_confused,
        sort=None,
        unset={"score_threshold": _best_score},
        in_title={"and_score": _score_phrase},
        examples=("", "--score-threshold 0.25", "--normalize truth --output csv", "--top 20"),
    ),
    "operating-points": Diagnostic(
        "Choose a score threshold: the one with the best F-score, or the one that reaches a given "
        "precision or recall.",
        "operating_points",
        "Score thresholds (operating points)",
        (
            Option("curve", "print one row per threshold instead", kind=bool, default=False),
            Option(
                "guarantee",
                "print thresholds with a statistical guarantee for new images: recall=R or precision=P, the "
                "minimum mean over images, or fppi=N, the maximum mean number of false positives per image",
                kind=_guarantee,
                metavar="MEASURE=LEVEL",
            ),
            Option(
                "at-most",
                "for --guarantee fppi: count at most N false positives per image (default: the "
                "protocol's max detections; for all classes together, times the number of classes)",
                kind=int,
                metavar="N",
            ),
            Option(
                "confidence",
                "for --guarantee precision: confidence level of the guarantee (default: 0.95)",
                kind=float,
                metavar="P",
            ),
        ),
        exclusive=("at-score", "at-precision", "at-recall", "curve", "guarantee"),
        instead={"curve": "confidence_curve", "guarantee": "threshold_guarantee"},
        only_with={"at_most": "guarantee", "confidence": "guarantee"},
        not_with={"beta": "guarantee"},
        examples=("", "--at-score 0.5", "--at-precision 0.9 --output csv", "--guarantee recall=0.9"),
    ),
    "calibration": Diagnostic(
        "Measure how well scores are calibrated: are 80% of the detections with a score of 0.8 right?",
        "calibration_error",
        "Calibration error",
        (Option("reliability", "print one row per score bin instead", kind=bool, default=False),),
        instead={"reliability": "reliability"},
        note="expected_error includes sampling noise, debiased_error does not; low and high: interval of "
        "the true error",
        first_out=lambda _: ["accuracy", "confidence", "maximum_error"],
        examples=("", "--bins 15 --score-threshold 0.05", "--reliability --output csv"),
    ),
    "lrp": Diagnostic(
        "Print the localization recall precision (LRP) error: localization, false positives and misses "
        "in one number.",
        "localization_recall_precision",
        "Localization recall precision (LRP) error",
        examples=("", "--at-score 0.5"),
    ),
    "froc": Diagnostic(
        "Print the sensitivity (recall) of each class at given numbers of false positives per image, and "
        "the mean.",
        "froc_scores",
        "Sensitivity at false positives per image (FROC)",
        (Option("curve", "print one row per threshold instead", kind=bool, default=False),),
        exclusive=("fppi", "curve"),
        instead={"curve": "froc_curve"},
        examples=("", "--fppi 0.1 1 10", "--curve --output csv"),
    ),
    "images": Diagnostic(
        "Print one row per image, worst first: true and false positives, missed objects, precision, "
        "recall, F1 and AP.",
        "image_scores",
        "Images",
        digits=3,
        first_out=lambda _: ["detections", "objects"],
        sort="AP,FN,FP",
        sort_without_scores="F1,FN,FP",
        examples=("", "--score-threshold 0.5 --top 20", "--sort FP --output csv"),
    ),
    "presence": Diagnostic(
        "Score whole images: is a class in the image? Precision, recall and specificity count images, and an "
        "image without the class and without a detection of it is a true negative.",
        "image_presence",
        "Presence of classes in images{at_score}",
        (
            Option(
                "score-threshold",
                "detections from this score on say that the class is there (default: the score with the best "
                "F1 of detection, as in the report)",
                kind=float,
                metavar="S",
                short="--conf",
            ),
            Option("counts", "compare the number of objects per image instead", kind=bool, default=False),
        ),
        instead={"counts": "count_errors"},
        digits=3,
        unset={"score_threshold": _best_score},
        in_title={"at_score": lambda arguments: _score_phrase(arguments).replace(" and", " at", 1)},
        first_out=lambda _: ["left_out"],
        note="(all): any object at all; AUC: area under the ROC curve of the highest score per image; "
        "--score-threshold sets the score",
        examples=("", "--score-threshold 0.25", "--counts --output csv"),
    ),
    "slices": Diagnostic(
        "Evaluate subsets of the data: by size, shape, crowdedness, a column of images or annotations, or "
        "groups of classes.",
        "slice_scores",
        "Slices by {by}",
        (
            Option(
                "by",
                "size, relative_size, aspect_ratio, crowdedness, or a column of images or annotations; "
                "several separated by commas give every combination",
                default="size",
                metavar="WHAT",
            ),
            Option(
                "bins",
                "ascending bin edges, or a whole number N for N bins with equal counts",
                kind=float,
                many=True,
                commas=True,
                metavar="EDGE",
                combine=_edges_or_count,
            ),
            Option(
                "class-groups",
                "metrics of groups of classes instead, e.g. 'novel=cat,dog;base=*', or a file of such lines",
                metavar="GROUPS|FILE",
                combine=groups_of_text,
            ),
        ),
        instead={"class_groups": "class_group_scores"},
        not_with={"by": "class_groups", "bins": "class_groups"},
        examples=(
            "",
            "--by camera",
            "--by camera,size",
            "--by relative_size --bins 0 0.01 0.1 1",
            "--class-groups 'novel=cat,dog;base=*'",
        ),
    ),
    "ties": Diagnostic(
        "Print the expected, lowest and highest AP over all orders of detections with tied scores.",
        "tie_bounds",
        "Expected, lowest and highest values over all orders of tied scores",
        (METRICS, PER_CLASS),
        digits=6,
        examples=("", "--metrics AP --per-class"),
    ),
}
"""The commands, by name."""
