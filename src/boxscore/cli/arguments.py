"""Every argument of the command line, each defined once.

Conventions
-----------
- An :class:`Option` is data, from which :func:`add_options` makes argparse's arguments. An option with a
  ``key`` is also allowed in a run configuration: ``boxscore run`` reads it by the same type, choices and
  default.
- A command that needs a variation of an option states the difference: ``DETECTIONS.but(required=False)``.
- An option of a diagnostic has the name of the function's parameter.
- Choices that come from another package are a function, so that the package is imported only when needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, get_args

from boxscore._utils.text import printable
from boxscore.errors import shortened

__all__ = [
    "ANNOTATION_ID_ZERO",
    "AREA",
    "AT_SCORE",
    "CLASSES",
    "COMPARISON_REPORT",
    "DETECTIONS",
    "DETECTION_AREA",
    "DETECTION_FILES",
    "FORMAT",
    "GROUND_TRUTH",
    "GROUND_TRUTH_FILES",
    "GROUPS",
    "HIT_THRESHOLD",
    "IMAGES",
    "IMAGE_FOLDER",
    "IMAGE_SET",
    "INPUTS",
    "IOU_THRESHOLD",
    "IOU_TYPE",
    "LABEL_MAP_OPTIONS",
    "METRICS",
    "OUTPUT",
    "OUTPUT_FORMS",
    "PER_CLASS",
    "PLOT_FORMS",
    "PROTOCOL",
    "PROTOCOL_CHANGES",
    "READERS",
    "REPORT",
    "REPORT_CONTENT",
    "RESAMPLING",
    "RESULTS_OUTPUT",
    "STRICT",
    "TABLE_FORMS",
    "WORKERS",
    "ArgumentParser",
    "Option",
    "add_options",
    "inputs_beside",
    "score_threshold",
]

OUTPUT_FORMS = ("text", "json", "csv", "markdown", "latex")
PLOT_FORMS = ("png", "svg", "pdf")
TABLE_FORMS = ("parquet", "json", "csv")


class Option(NamedTuple):
    """One argument of a command.

    Attributes
    ----------
    name : str
        On the command line, without dashes.
    help : str
    kind : callable, default str
        Converts the text. ``bool`` is a flag that inverts the default.
    default : object
    choices : sequence of str, or a function that returns it
    metavar : str
    short : str
        A second name on the command line, with its dashes.
    variable : str
        The attribute that holds the value; the name when not given.
    many : bool
        Takes several values.
    required, positional : bool
    key : str
        ``table.key`` in a run configuration; without one the option is not allowed there.
    ending : str
        In a run configuration a value with this ending is a path relative to the file. A ``Path`` always is.
    group : str
        A heading in the help.
    exclusive : str
        Options with the same word exclude each other.
    combine : callable, optional
        Combines the list of ``many`` into one value.
    """

    name: str
    help: str = ""
    kind: Callable[[str], Any] = str
    default: Any = None
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    metavar: str = ""
    short: str = ""
    variable: str = ""
    many: bool = False
    required: bool = False
    positional: bool = False
    key: str = ""
    ending: str = ""
    group: str = ""
    exclusive: str = ""
    combine: Callable[[list[Any]], Any] | None = None

    @property
    def dest(self) -> str:
        """The attribute of the parsed arguments."""
        return self.variable or self.name.replace("-", "_")

    def but(self, **changes: Any) -> Option:
        """Return a variation of the option."""
        return self._replace(**changes)

    def known(self) -> tuple[str, ...]:
        """Return the allowed values; none when any is."""
        return tuple(self.choices() if callable(self.choices) else self.choices)


def add_options(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Add options to a parser of argparse."""
    groups: dict[tuple[str, str], Any] = {}
    for option in options:
        group = (option.group, option.exclusive)
        if option.exclusive and group not in groups:
            groups[group] = parser.add_mutually_exclusive_group()
        elif option.group and group not in groups:
            groups[group] = parser.add_argument_group(option.group)
        _add(groups.get(group, parser), option)


def _add(parser: Any, option: Option) -> None:
    how: dict[str, Any] = {"help": option.help}
    if option.kind is bool:
        how |= {"action": "store_false" if option.default else "store_true"}
    else:
        how |= {"type": option.kind, "default": option.default, "choices": option.known() or None}
        how |= {"metavar": option.metavar or None}
        if option.many:
            how["nargs"] = "+"
        elif option.positional and not option.required:
            how["nargs"] = "?"
    if option.positional:
        parser.add_argument(option.dest, **how)
    else:
        names = [f"--{option.name}", *([option.short] if option.short else [])]
        parser.add_argument(*names, dest=option.dest, required=option.required, **how)


class ArgumentParser(argparse.ArgumentParser):
    """A parser of a command that may take ground truth and detections without ``--gt`` and ``--dt``."""

    _sides: Sequence[argparse.Action] = ()

    def error(self, message: str) -> NoReturn:
        """Show the words it refuses without control characters, and of a long one the ends."""
        super().error(printable(shortened(message)))

    def take_paths(self) -> None:
        """Take the paths in this order, if the command has both options and ground truth is one path."""
        by_dest = {action.dest: action for action in self._actions if action.option_strings}
        sides = [by_dest.get(option.dest) for option in (GROUND_TRUTH, DETECTIONS)]
        truth, detections = sides
        if truth is None or detections is None or truth.nargs is not None:
            return
        self._sides = (truth, detections)
        many = " ..." if detections.nargs else ""
        self.add_argument(
            "paths",
            nargs="*",
            type=Path,
            metavar="GT DT",
            help=f"ground truth and detections{many}, in place of --gt and --dt",
        )

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; paths without an option are the ground truth, then detections, unless options give them."""
        if not self._sides:
            return super().parse_args(args, namespace)
        needed = [action for action in self._sides if action.required]
        for action in needed:
            action.required = False
        try:
            parsed = self.parse_intermixed_args(args, namespace)
        finally:
            for action in needed:
                action.required = True
        paths = parsed.__dict__.pop("paths") or []
        for action in self._sides:
            if paths and getattr(parsed, action.dest) is None:
                taken = len(paths) if action.nargs else 1
                setattr(parsed, action.dest, paths[:taken] if action.nargs else paths[0])
                paths = paths[taken:]
        if paths:
            self.error(f"unrecognized arguments: {' '.join(map(str, paths))}")
        missing = ["/".join(one.option_strings) for one in needed if getattr(parsed, one.dest) is None]
        if missing:
            self.error(f"the following arguments are required: {', '.join(missing)}")
        return parsed


# ---------------------------------------------------------------- what to evaluate, and how


def _formats() -> Sequence[str]:
    from boxscore.formats import format_names

    return format_names()


def _iou_types() -> Sequence[str]:
    from boxscore.protocols import IOU_TYPES

    return tuple(IOU_TYPES)


def _annotation_id_zero() -> Sequence[str]:
    from boxscore.protocols.protocol import AnnotationIdZero

    return get_args(AnnotationIdZero)


def _detection_areas() -> Sequence[str]:
    from boxscore.protocols.protocol import DetectionArea

    return get_args(DetectionArea)


GROUND_TRUTH = Option(
    "ground-truth",
    "a COCO file, a VOC folder, a YOLO data set, a table, ...",
    short="--gt",
    kind=Path,
    metavar="PATH",
    required=True,
    key="ground_truth.path",
)
DETECTIONS = Option(
    "detections",
    "COCO results, predictions.json, a folder of text files, a table, ...",
    short="--dt",
    kind=Path,
    metavar="PATH",
    required=True,
    key="detections.path",
)
FORMAT = Option(
    "format",
    "of the ground truth (default: auto)",
    default="auto",
    choices=_formats,
    key="ground_truth.format",
)
PROTOCOL = Option(
    "protocol",
    "how to score (default: coco)",
    default="coco",
    metavar="NAME|FILE.toml",
    key="evaluation.protocol",
    ending=".toml",
)
IOU_TYPE = Option(
    "iou-type",
    "what to compare: boxes, masks, their boundaries or keypoints (default: as the protocol says)",
    choices=_iou_types,
    key="evaluation.iou_type",
)
DETECTION_AREA = Option(
    "detection-area",
    "what tells small, medium and large detections (default: as the protocol says)",
    choices=_detection_areas,
    key="evaluation.detection_area",
)
MAX_DETECTIONS = Option(
    "max-dets",
    "caps on the detections of an image and class, e.g. 1 10 300 (default: as the protocol says)",
    kind=int,
    many=True,
    metavar="N",
    variable="caps",
    key="evaluation.max_detections",
    group="changes to the protocol",
)
IOU_THRESHOLDS = Option(
    "iou-thresholds",
    "e.g. 0.5 0.75, or first:last/count: 0.5:0.95/10",
    many=True,
    metavar="T",
    key="evaluation.iou_thresholds",
    group="changes to the protocol",
)
AREA_RANGES = Option(
    "area-ranges",
    "square pixels, e.g. small=0:1024 large=1024:inf",
    many=True,
    metavar="NAME=LOW:HIGH",
    key="evaluation.area_ranges",
    group="changes to the protocol",
)
SCORE_THRESHOLD = Option(
    "score-threshold",
    "leave out detections below (default: as the protocol says)",
    kind=float,
    metavar="S",
    variable="least_score",
    key="evaluation.score_threshold",
    group="changes to the protocol",
)
PROTOCOL_CHANGES = (MAX_DETECTIONS, IOU_THRESHOLDS, AREA_RANGES, SCORE_THRESHOLD)
"""Flags that write a protocol."""
ANNOTATION_ID_ZERO = Option(
    "annotation-id-zero",
    "whether a match with annotation id 0 is one, or none as in pycocotools (default: as the protocol says)",
    choices=_annotation_id_zero,
    key="evaluation.annotation_id_zero",
)
IMAGE_SET = Option(
    "image-set",
    "the part of a VOC or YOLO data set, e.g. test",
    metavar="NAME|FILE",
    key="ground_truth.image_set",
    ending=".txt",
)
CLASSES = Option(
    "classes",
    "only these: names or ids, or a file of them",
    many=True,
    metavar="CLASS|FILE",
    key="evaluation.classes",
)
IMAGES = Option(
    "images", "only these: ids, or a file of them", many=True, metavar="ID|FILE", key="evaluation.images"
)
WORKERS = Option(
    "workers",
    "processes that read large files, and threads that match blocks of images; the result is the same "
    "(default: read with every processor, match with one)",
    kind=int,
    metavar="N",
    key="evaluation.workers",
)
READERS = WORKERS.but(help="processes that read a large file (default: every processor)")


def _box_formats() -> Sequence[str]:
    from boxscore.data.boxes import BOX_FORMATS

    return BOX_FORMATS


IMAGE_SIZES = Option(
    "image-sizes",
    "width and height of the images, where boxes are fractions of them: a CSV file image,width,height",
    kind=Path,
    metavar="FILE.csv",
    key="ground_truth.image_sizes",
    group="what files do not say",
)
GROUND_TRUTH_FILES = (
    Option(
        "segments",
        "masks for the boxes of the ground truth, as Open Images has them: a CSV file of its challenge",
        kind=Path,
        metavar="FILE.csv",
        key="ground_truth.segments",
        group="what files do not say",
    ),
    Option(
        "image-labels",
        "labels of whole images beside the ground truth, as Open Images has them: a CSV file "
        "ImageID,LabelName,Confidence",
        kind=Path,
        metavar="FILE.csv",
        key="ground_truth.image_labels",
        group="what files do not say",
    ),
    Option(
        "hierarchy",
        "expand the ground truth and its image labels along this hierarchy of classes, as Open Images has it",
        kind=Path,
        metavar="FILE.json",
        key="ground_truth.hierarchy",
        group="what files do not say",
    ),
    Option(
        "gt-classes",
        "names of the ground truth's class numbers: one per line, or YOLO's data.yaml; for Open Images its "
        "class descriptions or a label map LabelName,Id",
        kind=Path,
        metavar="FILE",
        key="ground_truth.classes",
        group="what files do not say",
    ),
    Option(
        "gt-box-format",
        "what the four numbers of its boxes are, where it does not say",
        choices=_box_formats,
        key="ground_truth.box_format",
        group="what files do not say",
    ),
)
"""What the files of ground truth may not say."""
DETECTION_FILES = (
    Option(
        "dt-format",
        "of the detections (default: auto)",
        default="auto",
        choices=_formats,
        key="detections.format",
        group="what files do not say",
    ),
    Option(
        "dt-classes",
        "names of the detections' class numbers, as for --gt-classes",
        kind=Path,
        metavar="FILE",
        key="detections.classes",
        group="what files do not say",
    ),
    Option(
        "dt-box-format",
        "what the four numbers of their boxes are, where they do not say",
        choices=_box_formats,
        key="detections.box_format",
        group="what files do not say",
    ),
    Option(
        "class-map",
        "which class of the ground truth each class of the detections is: auto (by the boxes), zero-based, "
        "one-based, plus-one, minus-one, coco80to91, coco91to80, or a file of lines from,to",
        metavar="NAME|FILE",
        key="detections.class_map",
        ending=".csv",
        group="what files do not say",
    ),
    IMAGE_SIZES,
)
"""What the files of detections may not say."""

INPUTS = (
    *(GROUND_TRUTH, DETECTIONS, FORMAT, PROTOCOL, IOU_TYPE, DETECTION_AREA, ANNOTATION_ID_ZERO),
    *(IMAGE_SET, CLASSES, IMAGES, WORKERS),
    *PROTOCOL_CHANGES,
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
)
"""The options of every command that evaluates."""


def inputs_beside(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return ``INPUTS`` without those that a command's own options of the same name replace."""
    own = {option.name for option in options}
    return tuple(option for option in INPUTS if option.name not in own)


# ---------------------------------------------------------------- what to write

OUTPUT = Option("output", "form of the result", default="text", choices=OUTPUT_FORMS, key="output.form")
PER_CLASS = Option("per-class", "add one row per class", kind=bool, default=False, key="output.per_class")
METRICS = Option("metrics", "only these summary metrics, e.g. AP AP50", many=True, metavar="NAME")
STRICT = Option("strict", "treat warnings as errors", kind=bool, default=False)

REPORT = Option("report", "write a report folder", kind=Path, metavar="DIR", key="output.report")
IMAGE_FOLDER = Option(
    "image-folder",
    "show these images under the boxes",
    kind=Path,
    metavar="DIR",
    key="output.image_folder",
    group="the report",
)
COMPARISON_REPORT = (
    IMAGE_FOLDER,
    Option("title", "stands above the page", default="", key="output.title", group="the report"),
    Option(
        "gallery",
        "worst images (default: 48)",
        kind=int,
        default=48,
        metavar="N",
        key="output.gallery",
        group="the report",
    ),
    Option(
        "tables",
        "also write every table, in this form",
        choices=TABLE_FORMS,
        key="output.tables",
        group="the report",
    ),
    Option(
        "plots", "also write plots, in this form", choices=PLOT_FORMS, key="output.plots", group="the report"
    ),
)
"""Options for the contents of a comparison report."""

REPORT_CONTENT = (
    *COMPARISON_REPORT,
    Option(
        "resamples",
        "bootstrap resamples for intervals, 0 for none (default: as many as take seconds)",
        kind=int,
        metavar="N",
        key="output.resamples",
        group="the report",
    ),
)
"""Options for the contents of a report."""

# ---------------------------------------------------------------- diagnostics

IOU_THRESHOLD = Option(
    "iou-threshold", "a threshold of the protocol (default: its first)", kind=float, metavar="T"
)
HIT_THRESHOLD = IOU_THRESHOLD.but(help="overlap of a hit (default: 0.5)", default=0.5)
AREA = Option("area", "an area range of the protocol (default: all)", default="all", metavar="NAME")
AT_SCORE = Option("at-score", kind=float, metavar="S")


def score_threshold(default: float) -> Option:
    """Return ``--score-threshold`` with this default."""
    return Option(
        "score-threshold",
        f"detections below take no part (default: {default})",
        kind=float,
        default=default,
        metavar="S",
    )


RESAMPLING = (
    Option("resamples", "draws (default: 1000)", kind=int, default=1000, metavar="N"),
    Option("confidence", "of the intervals (default: 0.95)", kind=float, default=0.95, metavar="P"),
    Option("method", default="bias_corrected", choices=("bias_corrected", "percentile")),
    Option("seed", "of the draws (default: 0)", kind=int, default=0, metavar="N"),
    METRICS,
    PER_CLASS,
)
"""Options of the bootstrap."""

# ---------------------------------------------------------------- label maps

LABEL_MAP_OPTIONS = (
    REPORT.but(help="write a folder: report.md with the worst images, result.json, tables as CSV", key=""),
    Option("per-image", "list the worst N images as well, 0 for all", kind=int, metavar="N"),
    Option("resamples", "draws for intervals over images (default: none)", kind=int, metavar="N"),
)
"""Options of the commands of label maps."""

# ---------------------------------------------------------------- suppression

GROUPS = (
    Option("max-per-group", "keep the best N of an image and class", kind=int, metavar="N"),
    Option("max-per-image", "keep the best N of an image", kind=int, metavar="N"),
    Option("class-agnostic", "suppress all classes together", kind=bool, default=False, exclusive="together"),
    Option(
        "groups",
        "suppress some classes together: a line is a group, ids or names with commas between",
        kind=Path,
        metavar="FILE",
        exclusive="together",
    ),
    Option("pixel-offset", "1 for inclusive pixels (default: 0)", kind=float, default=0, metavar="0|1"),
)
"""Options of grouping and capping."""
RESULTS_OUTPUT = OUTPUT.but(
    help="what to write: a file, or a folder for VOC",
    kind=Path,
    default=None,
    choices=(),
    metavar="PATH",
    required=True,
)
