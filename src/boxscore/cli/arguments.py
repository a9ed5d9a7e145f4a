"""Define all arguments of the command line.

Conventions
-----------
- An :class:`Option` is data; :func:`add_options` converts it to an argparse argument. An option with a
  ``key`` is also valid in a run configuration: ``boxscore run`` reads it with the same type, choices and
  default.
- A command that needs a variation of an option states the difference: ``DETECTIONS.but(required=False)``.
- Options of extensions are declared by the extension. The core only has their names, in ``sockets.OPTIONS``;
  a declaration is loaded if the option is used, or for help, errors and completion.
- Choices from another package are a function, to import the package only when needed.
- ``--output`` is a form to print, or a path to write. Existing files are replaced atomically; other files in
  a folder are kept.
- Values of a list are separated by spaces; also by commas, if values cannot contain one.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from boxscore._utils.checks import nearest
from boxscore._utils.given_paths import path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.records import NamedTuple
from boxscore.cli.sockets import OPTIONS
from boxscore.errors import FileFormatError, InputError

OUTPUT_FORMS = ("text", "json", "csv", "markdown", "latex")
FILE_FORMS = {".txt": "text", ".json": "json", ".csv": "csv", ".md": "markdown", ".tex": "latex"}
"""Output forms by file name ending."""


INPUT = "input"
PROTOCOL_GROUP = "protocol"
NOT_IN_FILES = "data description"
PART = "subsets"
OUTPUT_GROUP = "output and common options"
HEADINGS = (PART, INPUT, PROTOCOL_GROUP, NOT_IN_FILES, OUTPUT_GROUP)
"""Headings of the help, in this order, after the command's own options and headings."""

PATHS = "more input options"
RULES = "protocol details"
TABLES = "formats, columns and boxes"
IMAGES_TOPIC = "images and sizes"
CHECKS = "input checks"
TOPICS = (PATHS, RULES, TABLES, IMAGES_TOPIC, CHECKS)
"""Headings of ``--help-all`` for advanced options, in this order, before those of extensions."""


class Option(NamedTuple):
    """One argument of a command.

    Attributes
    ----------
    name : str
        Name without dashes.
    help : str
        Help text. The default is appended automatically, unless the text mentions it.
    kind : callable, default str
        Function that converts the text. ``bool`` is a flag that inverts the default.
    default : object
    choices : sequence of str, or a function that returns it
    metavar : str
    short : str
        A second name, with dashes.
    variable : str
        Attribute of the parsed arguments; by default the name.
    many : bool
        Whether there may be several values, separated by spaces.
    commas : bool
        Whether values may also be separated by commas.
    required, positional : bool
    instead : bool
        Whether these are numbers given instead of the paths of the input; always positional.
    key : str
        ``table.key`` in a run configuration; if empty, the option is not valid there.
    ending : str, or tuple of str
        In a run configuration, values with one of these endings are paths relative to the file. A ``Path``
        always is.
    group : str
        Heading in the help; empty for the command's own options.
    exclusive : str
        Options with the same text here are mutually exclusive.
    combine : callable, optional
        Converts the value, or combines the list of ``many`` into one value.
    writes : tuple of str
        Output files at the path: ``"."`` is the path itself; patterns match files inside. If empty, a path is
        an input, which must not be overwritten.
    mistyped_as : tuple of str
        Other names that users try.
    topic : str
        Heading in ``--help-all``; ``--help`` does not show the option.
    brief : str
        Short text for ``--help``, in one line.
    needs : str
        ``module:function``, called with the arguments before anything is read, to check that packages are
        installed.
    does : str
        ``module:function`` with the action of the option; the command calls it.
    changes : str
        ``module:function`` that returns a protocol with the change that the option needs.
    declared : str
        ``module:TUPLE`` where an extension declares the option; until it is loaded, only the name is known.
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
    commas: bool = False
    required: bool = False
    positional: bool = False
    instead: bool = False
    key: str = ""
    ending: str | tuple[str, ...] = ""
    group: str = ""
    exclusive: str = ""
    combine: Callable[[Any], Any] | None = None
    writes: tuple[str, ...] = ()
    mistyped_as: tuple[str, ...] = ()
    topic: str = ""
    brief: str = ""
    needs: str = ""
    does: str = ""
    changes: str = ""
    declared: str = ""

    @property
    def dest(self) -> str:
        """Attribute of the parsed arguments."""
        return self.variable or self.name.replace("-", "_")

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags on the command line, the long one first."""
        return (f"--{self.name}", self.short) if self.short else (f"--{self.name}",)

    def typed(self, *, key: bool = False) -> str:
        """Return the name for messages: the key in a run configuration, or the flag."""
        return self.key if key else self.metavar if self.positional else f"--{self.name}"

    def but(self, **changes: Any) -> Option:
        """Return a variation of the option."""
        if "help" in changes:  # the short text belongs to the old help
            changes.setdefault("brief", "")
        return self._replace(**changes)

    @property
    def default_text(self) -> str:
        """The default, to append to the help; empty if it is already mentioned or not set."""
        value = self.default
        if self.required or self.kind is bool or value in (None, "", ()) or "default" in self.help:
            return ""
        shown = " ".join(map(str, value)) if isinstance(value, (tuple, list)) else value
        return f" (default: {f'{shown:g}' if isinstance(shown, float) else shown})"

    def known(self) -> tuple[str, ...]:
        """Return the allowed values; empty if all are allowed."""
        return tuple(self.choices() if callable(self.choices) else self.choices)


def further(place: str) -> tuple[Option, ...]:
    """Return the options that extensions add at a place; only their names are known yet."""
    return tuple(Option(name, declared=table) for table, names in OPTIONS[place].items() for name in names)


def declared(options: Iterable[Option], words: Sequence[str] | None = None) -> tuple[Option, ...]:
    """Load the declarations of options by extensions.

    Given the words of a call, only modules with options that occur in it are imported.
    """
    options = tuple(options)
    typed = None if words is None else {word.partition("=")[0] for word in words}
    modules = {_module_of(option) for option in options if typed is None or f"--{option.name}" in typed}
    return tuple(_load_declaration(option) if _module_of(option) in modules else option for option in options)


def _module_of(option: Option) -> str:
    return option.declared.partition(":")[0]


def _load_declaration(option: Option) -> Option:
    """Load the declaration of an option."""
    if not option.declared:
        return option
    whole: Option = next(each for each in loaded(option.declared) if each.name == option.name)
    return whole


def given(options: Iterable[Option], arguments: argparse.Namespace) -> Iterator[Option]:
    """Yield the options that have a value, with their declarations."""
    for option in options:
        if getattr(arguments, option.dest, None) not in (None, False):
            yield _load_declaration(option)


def look_for_packages(options: Iterable[Option], arguments: argparse.Namespace) -> None:
    """Check that packages needed by options are installed, before anything is read."""
    for option in given(options, arguments):
        if option.needs:
            loaded(option.needs)(arguments)


@contextlib.contextmanager
def errors_as_typed(
    options: Iterable[Option], arguments: argparse.Namespace, *, keys: bool = False
) -> Iterator[None]:
    """Replace Python parameters by options or keys in errors about given values."""
    try:
        yield
    except InputError as error:
        if isinstance(error, FileFormatError) and error.place:  # an error about the content of a file
            raise
        for option in options:
            given = getattr(arguments, option.dest, option.default)
            name = option.typed(key=keys)
            parameter = option.name.replace("-", "_")
            names = (option.dest, parameter, f"matching.{parameter}", *([f"--{option.name}"] if keys else []))
            is_missing = given is None and error.rule.startswith("be given")
            as_default = given is option.default or given == option.default
            if error.name not in names or not (name and error.rule) or (as_default and not is_missing):
                continue
            raise type(error)(
                name, error.rule, got=error.got, place=error.place, cause=error.cause
            ) from error
        raise


class Form(str):
    """An output form, with the path of the output file if any."""

    path: Path | None = None


def form_of(text: str, name: str = "--output") -> Form:
    """Parse ``--output``: a form, or a file whose ending determines the form."""
    if text in OUTPUT_FORMS:
        return Form(text)
    ending = Path(text).suffix.lower()
    if ending not in FILE_FORMS:
        endings = ", ".join(FILE_FORMS)
        raise InputError(
            name,
            f"be {', '.join(OUTPUT_FORMS)}, or a file name that ends in {endings}",
            got=repr(text),
            cause=nearest(text, OUTPUT_FORMS) or ("--report DIR writes a folder" if "/" in text else ""),
        )
    form = Form(FILE_FORMS[ending])
    form.path = Path(text)
    return form


# ---------------------------------------------------------------- input and protocol


def _formats() -> Sequence[str]:
    from boxscore.formats import format_names

    return format_names()


def _iou_types() -> Sequence[str]:
    from boxscore.protocols import IOU_TYPES

    return tuple(IOU_TYPES)


def _annotation_id_zero() -> Sequence[str]:
    from boxscore.protocols.tables.matching import AnnotationIdZero

    return get_args(AnnotationIdZero)


def _detection_areas() -> Sequence[str]:
    from boxscore.protocols.tables.ignore import DetectionArea

    return get_args(DetectionArea)


GROUND_TRUTH = Option(
    "ground-truth",
    "a COCO file, a VOC folder, a YOLO data set, a table, ...",
    short="--gt",
    kind=path_of,
    metavar="PATH",
    required=True,
    key="ground_truth.path",
    group=INPUT,
    topic=PATHS,
)
DETECTIONS = Option(
    "detections",
    "COCO results, predictions.json, a folder of text files, a table, ...",
    short="--dt",
    kind=path_of,
    metavar="PATH",
    required=True,
    key="detections.path",
    group=INPUT,
    topic=PATHS,
)
FORMAT = Option(
    "format",
    "format of the ground truth; boxscore formats lists them",
    default="auto",
    choices=_formats,
    metavar="FORMAT",
    key="ground_truth.format",
    group=INPUT,
    topic=TABLES,
)
DEFAULT_PROTOCOL = "coco"
PROTOCOL = Option(
    "protocol",
    "evaluation protocol: a name (boxscore protocols lists them) or a TOML file (default: "
    f"{DEFAULT_PROTOCOL}, or scoreless if no detection has a score)",
    metavar="NAME|FILE",
    key="evaluation.protocol",
    ending=".toml",
    group=PROTOCOL_GROUP,
    brief="how to score; see boxscore protocols (default: coco)",
)
SCORELESS = Option(
    "scoreless",
    "ignore scores: count boxes instead of ranking them",
    kind=bool,
    default=False,
    key="evaluation.scoreless",
    group=PROTOCOL_GROUP,
    topic=RULES,
)
IOU_TYPE = Option(
    "iou-type",
    "what to compare: boxes, masks, mask boundaries or keypoints (default: set by the protocol)",
    choices=_iou_types,
    key="evaluation.iou_type",
    group=PROTOCOL_GROUP,
    brief="what to compare: bbox, segm, boundary, keypoints",
)
DETECTION_AREA = Option(
    "detection-area",
    "which area makes a detection small, medium or large (default: set by the protocol)",
    choices=_detection_areas,
    key="evaluation.detection_area",
    group=PROTOCOL_GROUP,
    topic=RULES,
)
MAX_DETECTIONS = Option(
    "max-detections",
    "maximum number of detections per image and class, e.g. 1 10 300 (default: set by the protocol)",
    kind=int,
    many=True,
    commas=True,
    metavar="N",
    short="--max-dets",
    variable="caps",
    key="evaluation.max_detections",
    group=PROTOCOL_GROUP,
    brief="maximum detections per image and class, e.g. 100",
)
IOU_THRESHOLDS = Option(
    "iou-thresholds",
    "IoU thresholds, e.g. 0.5 0.75, or first:last/count: 0.5:0.95/10",
    many=True,
    commas=True,
    metavar="T",
    short="--iou",
    key="evaluation.iou_thresholds",
    group=PROTOCOL_GROUP,
    brief="IoU thresholds, e.g. 0.5 0.75 or 0.5:0.95/10",
)
AREA_RANGES = Option(
    "area-ranges",
    "area ranges in square pixels, e.g. small=0:1024 large=1024:inf",
    many=True,
    metavar="NAME=LOW:HIGH",
    key="evaluation.area_ranges",
    group=PROTOCOL_GROUP,
    topic=RULES,
)
SCORE_THRESHOLD = Option(
    "score-threshold",
    "drop detections that score below this (default: set by the protocol)",
    kind=float,
    metavar="S",
    short="--conf",
    variable="least_score",
    key="evaluation.score_threshold",
    group=PROTOCOL_GROUP,
    brief="drop detections that score below this",
)
CLASS_WEIGHTS = Option(
    "class-weights",
    "weight of each class in means over classes: a file with lines class,weight (* is every other "
    "class), a JSON file, or a column of the classes",
    metavar="FILE|COLUMN",
    key="evaluation._class_weights",
    ending=(".csv", ".txt", ".tsv", ".json"),
    group=PROTOCOL_GROUP,
    topic=RULES,
)
PROTOCOL_CHANGES = (MAX_DETECTIONS, IOU_THRESHOLDS, AREA_RANGES, SCORE_THRESHOLD, CLASS_WEIGHTS)
"""Options that change the protocol."""
ANNOTATION_ID_ZERO = Option(
    "annotation-id-zero",
    "whether a match with annotation id 0 counts, or stays unmatched as in pycocotools (default: set by "
    "the protocol)",
    choices=_annotation_id_zero,
    key="evaluation.annotation_id_zero",
    group=PROTOCOL_GROUP,
    topic=RULES,
)
IMAGE_SET = Option(
    "image-set",
    "the split of a VOC or YOLO data set, e.g. test",
    metavar="NAME|FILE",
    key="ground_truth.image_set",
    ending=".txt",
    group=INPUT,
)
CLASSES = Option(
    "classes",
    "only these classes: names, ids, or a file",
    many=True,
    metavar="CLASS|FILE",
    key="evaluation.classes",
    group=INPUT,
)
EXCLUDE_CLASSES = Option(
    "exclude-classes",
    "all classes but these: names, ids, or a file of them",
    many=True,
    metavar="C",
    key="evaluation.exclude_classes",
    group=INPUT,
    brief="all classes but these: names, ids, or a file",
    mistyped_as=("--ignore-classes", "--skip-classes", "--without-classes", "--drop-classes"),
)
IMAGES = Option(
    "images",
    "evaluate only these images: ids or file names separated by spaces or commas, or a file with one per "
    "line or a JSON list",
    many=True,
    metavar="ID|FILE",
    key="evaluation.images",
    group=INPUT,
    topic=IMAGES_TOPIC,
)
WORKERS = Option(
    "workers",
    "number of processes that read large files and match masks or 200,000 boxes and more; other shapes "
    "are matched by as many threads; the result is the same for any number (default: one process per CPU "
    "core, fewer where others are busy, and one thread)",
    kind=int,
    metavar="N",
    key="evaluation.workers",
    group=INPUT,
    topic=PATHS,
)
READERS = WORKERS.but(help="processes that read a large file (default: one per CPU core)")


def _box_formats_in_pixels() -> Sequence[str]:
    return [name for name in _box_formats() if not name.endswith("n")]


def _box_formats() -> Sequence[str]:
    from boxscore.data.boxes import WRITTEN_FORMATS

    return WRITTEN_FORMATS


DT_BOX_FORMAT = Option(
    "dt-box-format",
    "order of the four numbers of a detected box; values as for --gt-box-format",
    choices=_box_formats,
    metavar="FORM",
    key="detections.box_format",
    group=NOT_IN_FILES,
    topic=TABLES,
)
RESULTS_BOX_FORMAT = DT_BOX_FORMAT.but(
    help="order of the four numbers of a box, if it differs from the format's: xyxy, xywh, cxcywh, yxyx, "
    "yxhw",
    choices=_box_formats_in_pixels,
    key="",
)


COLUMNS = Option(
    "columns",
    "column names of a table, if boxscore does not recognize them: image=photo class=kind score=p "
    "x1=left ...",
    many=True,
    metavar="PART=NAME",
    key="evaluation.columns",
    group=NOT_IN_FILES,
    topic=TABLES,
)


def _unlisted() -> Sequence[str]:
    from boxscore.data.unlisted import HOW

    return HOW


IMAGE_FOLDER = Option(
    "image-folder",
    "folder with the images that reports show; also provides image sizes and images without objects if "
    "the files do not",
    kind=Path,
    metavar="DIR",
    key="output.image_folder",
    group=NOT_IN_FILES,
    brief="folder with the images, for reports and sizes",
)
IMAGE_SIZES = Option(
    "image-sizes",
    "width and height of the images, for boxes in fractions of the image size: a CSV file "
    "image,width,height, which also lists images without objects; or 640x480 for all images",
    kind=Path,
    metavar="FILE.csv|WxH",
    key="ground_truth.image_sizes",
    group=NOT_IN_FILES,
    topic=IMAGES_TOPIC,
)
GROUND_TRUTH_FILES = (
    *further("ground truth"),
    Option(
        "gt-classes",
        "class names of the ground truth, if it uses class numbers: a file with one name per line, or "
        "YOLO's data.yaml; for Open Images its class descriptions or a label map LabelName,Id",
        kind=Path,
        metavar="FILE",
        key="ground_truth.classes",
        group=NOT_IN_FILES,
        brief="class names for the ground truth's class numbers",
    ),
    Option(
        "gt-box-format",
        "order of the four numbers of a box, if the file does not declare it or is wrong: xyxy, xywh, "
        "cxcywh, yxyx, yxhw; append n (xyxyn) for fractions of the image size",
        choices=_box_formats,
        metavar="FORM",
        key="ground_truth.box_format",
        group=NOT_IN_FILES,
        topic=TABLES,
    ),
    COLUMNS.but(
        name="gt-columns",
        help="as --columns, for the ground truth only",
        key="ground_truth.columns",
        topic=TABLES,
    ),
)
"""Options for information that ground-truth files may not contain."""
DETECTION_FILES = (
    Option(
        "dt-format",
        "format of the detections",
        default="auto",
        choices=_formats,
        metavar="FORMAT",
        key="detections.format",
        group=NOT_IN_FILES,
        topic=TABLES,
    ),
    Option(
        "dt-classes",
        "class names for the detections' class numbers; values as for --gt-classes",
        kind=Path,
        metavar="FILE",
        key="detections.classes",
        group=NOT_IN_FILES,
        brief="class names for the detections' class numbers",
    ),
    DT_BOX_FORMAT,
    COLUMNS,
    COLUMNS.but(
        name="dt-columns",
        help="as --columns, for the detections only",
        key="detections.columns",
        topic=TABLES,
    ),
    *further("detections"),
    Option(
        "unlisted-images",
        "what to do with detections in images that the ground truth does not list: stop (error), add the "
        "images without objects (background), or drop the detections (drop) (default: stop, unless "
        "--image-sizes or --image-folder lists the images)",
        choices=_unlisted,
        key="detections.unlisted_images",
        group=NOT_IN_FILES,
        topic=IMAGES_TOPIC,
    ),
    IMAGE_SIZES,
    IMAGE_FOLDER,
)
"""Options for information that detection files may not contain."""
RESULTS_FILES = (
    *(
        option.but(key="")
        for option in DETECTION_FILES
        if option.name in ("dt-format", "dt-classes", "columns", "image-sizes", "image-folder")
    ),
    RESULTS_BOX_FORMAT,
    *further("results"),
)
"""The same for commands that read detections without ground truth, and write them."""

INPUTS = (
    *(GROUND_TRUTH, DETECTIONS, FORMAT, PROTOCOL, SCORELESS, IOU_TYPE, DETECTION_AREA, ANNOTATION_ID_ZERO),
    *(IMAGE_SET, CLASSES, EXCLUDE_CLASSES, IMAGES, WORKERS),
    *(*PROTOCOL_CHANGES, *further("evaluation")),
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
)
"""Options of all commands that evaluate."""


def inputs_beside(options: Iterable[Option]) -> tuple[Option, ...]:
    """Return ``INPUTS`` without options that these replace, and without short names that these use."""
    replaced = {option.name for option in options}
    taken = {option.short for option in options if option.short}
    return tuple(
        option.but(short="") if option.short in taken else option
        for option in INPUTS
        if option.name not in replaced
    )


# ---------------------------------------------------------------- output

OUTPUT = Option(
    "output",
    f"print the result as {', '.join(OUTPUT_FORMS[:-1])} or {OUTPUT_FORMS[-1]}; or write it to a file that "
    f"ends in {', '.join(FILE_FORMS)}",
    short="-o",
    kind=form_of,
    default=Form("text"),
    choices=OUTPUT_FORMS,
    metavar="FORM|FILE",
    key="output.form",
    group=OUTPUT_GROUP,
    writes=(".",),
    brief="text, json, csv, markdown, latex, or a file to write",
)
ALLOW = Option(
    "allow",
    "accept these errors and warnings in the input, by the names that boxscore validate prints",
    many=True,
    default=(),
    metavar="NAME",
    key="output.allow",
    topic=CHECKS,
)
PER_CLASS = Option("per-class", "add one row per class", kind=bool, default=False, key="output.per_class")
SORT = Option(
    "sort",
    "sort rows by this column, worst first: lowest scores, highest costs and counts; COLUMN:asc or "
    "COLUMN:desc sets the order",
    metavar="COLUMN",
    default="",
    key="output.sort",
    brief="sort rows by this column, worst first",
)
TOP = Option("top", "print only the first N rows", kind=int, metavar="N", key="output.top")
SHOW = Option(
    "show",
    "print only these columns, in this order, e.g. class AP TP FP FN; tables without any of them are omitted",
    many=True,
    metavar="COLUMN",
    key="output.show",
    brief="print only these columns, e.g. class AP TP FP",
)
ROWS = (SORT, TOP)
"""Options of tables with a row per class, image, slice, ..."""
WIDE = Option(
    "wide",
    "print every column, even if the table is wider than the terminal",
    kind=bool,
    default=False,
    group=OUTPUT_GROUP,
    brief="print every column, even if too wide",
)
STRICT = Option(
    "strict",
    "exit with status 2 on any error in the input or warning; notes do not count",
    kind=bool,
    default=False,
    group=OUTPUT_GROUP,
    brief="exit with status 2 on any error or warning",
)
QUIET = Option(
    "quiet",
    "print only the result, errors, and errors in the input: no warnings, notes or progress",
    short="-q",
    kind=bool,
    default=False,
    group=OUTPUT_GROUP,
    brief="print only the result and errors",
)
EVERYWHERE = (WIDE, QUIET, STRICT)
"""Options of all commands."""


# ---------------------------------------------------------------- suppression

GROUPS = (
    Option(
        "max-per-group",
        "keep the N highest-scoring detections per image and class",
        brief="keep the N highest-scoring per image and class",
        kind=int,
        metavar="N",
    ),
    Option("max-per-image", "keep the N highest-scoring detections per image", kind=int, metavar="N"),
    Option("class-agnostic", "suppress all classes together", kind=bool, default=False, exclusive="together"),
    Option(
        "groups",
        "suppress some classes together: a file with one group per line, ids or names "
        "separated by commas, e.g. 1,2",
        brief="suppress classes on one line of this file (1,2) together",
        kind=Path,
        metavar="FILE",
        exclusive="together",
    ),
    Option(
        "pixel-offset", "1 for inclusive pixel coordinates, as in VOC", kind=float, default=0, metavar="0|1"
    ),
)
"""Options of grouping and capping."""
RESULTS_OUTPUT = OUTPUT.but(
    help="output path: a file, or a folder for VOC",
    kind=Path,
    default=None,
    choices=(),
    metavar="PATH",
    required=True,
    key="",
    group="",
)
