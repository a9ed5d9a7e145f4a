"""Read files of any format, for the public loaders and for the command line.

Conventions
-----------
- The path of each side is opened once (:class:`~boxscore.formats._format.Opened`), and the format that was
  detected reads it. Options that no format sees, such as class maps, are applied here to what was read.
- ``instances`` of the options names the instance columns (``"masks"``, ``"keypoints"``) that will be needed.
  It is only a hint: a table has the same columns without it, but reads its file a second time for them.
- ``processes`` above 1 forks. The command line does so, because the process belongs to it; ``"auto"``, the
  default in Python, forks only where that is safe.
- An option of few formats, or one that changes ground truth, is a line of :data:`FURTHER`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.given_paths import path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.processes import Workers, worker_count
from boxscore._utils.records import NamedTuple, record
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import WRITTEN_FORMATS, WrittenFormat
from boxscore.data.hints import ask
from boxscore.data.lookup import UnlistedImagesError
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.unlisted import check_how, with_unlisted
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.formats._format import Format, Opened, ReadOptions, Side
from boxscore.formats._sniffer import errors_named
from boxscore.formats.registry import capability, format_named, format_names, open_at, options_of

if TYPE_CHECKING:
    from boxscore.data.column_names import ColumnMap

TRUTH_WORK = 2.0
"""How much longer a byte of ground truth takes to read than one of results."""

FEW_ADDED = 0.1
"""Share of all images that a table of sizes may add without a warning."""


@record(frozen=True)
class FileOptions(ReadOptions):
    """The options that come with a path: those that formats see, and those applied to what was read.

    Attributes
    ----------
    unlisted_images : {"error", "background", "drop"}, or None
        How detections in images that the ground truth does not list are treated; None if not given.
    note : callable, optional
        Takes the note that images were added to the ground truth, in place of a warning.
    report : callable
        Takes the warning that boxes look like another form; by default the user gets it.
    """

    unlisted_images: str | None = None
    note: Callable[[str], None] | None = None
    report: Callable[[BoxscoreWarning], None] = warn_user


PLAIN = FileOptions()
"""No option given."""


class _Further(NamedTuple):
    """An option that few formats take, or that changes ground truth once it is read."""

    check: str = ""
    """Checks a value and returns it in the form that is kept; if empty, the value stays as given."""
    of: str = ""
    """Content of the files of formats that take it; empty if ground truth of any format does."""
    applied: str = ""
    """Takes ground truth and the value, and returns the ground truth changed."""

    def checked(self, value: Any) -> Any:
        """Return a value in the form that is kept."""
        return loaded(self.check)(value) if self.check else value


_ANSWERS = "answers of a language model"

FURTHER = {
    "class_map": _Further("boxscore.extensions.hints.class_maps:class_map_of"),
    "segments": _Further("pathlib:Path", of="masks in a second file"),
    "image_labels": _Further(
        "pathlib:Path", applied="boxscore.extensions.federated.image_label_files:with_image_labels"
    ),
    "hierarchy": _Further(
        "boxscore.extensions.federated.image_label_files:hierarchy_of",
        applied="boxscore.extensions.federated.hierarchy:expand_classes",
    ),
    "descriptions": _Further(
        "boxscore.extensions.federated.class_descriptions:class_descriptions",
        applied="boxscore.extensions.federated.class_descriptions:described",
    ),
    "coordinates": _Further("boxscore.extensions.scoreless.coordinates:checked_coordinates", of=_ANSWERS),
    "repeated": _Further("boxscore.extensions.scoreless.coordinates:checked_repeated", of=_ANSWERS),
    "loose": _Further(of=_ANSWERS),
}
"""Options by name that extensions add, or that are checked and applied like theirs.

Those that change ground truth do so in this order. ``descriptions`` comes with ``classes``: its check says
whether a file of classes describes labels.
"""


def read_options(
    *,
    format: str = "auto",
    image_set: str | Path | None = None,
    classes: str | Path | Sequence[str] | None = None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None = None,
    box_format: WrittenFormat | None = None,
    instances: Sequence[str] = (),
    processes: Workers = 1,
    any_sides: bool = False,
    needs_areas: bool = True,
    keys: Sequence[str] = (),
    image_keys: Sequence[str] = (),
    text_keys: Sequence[str] = (),
    columns: Mapping[str, str] | ColumnMap | None = None,
    unlisted_images: str | None = None,
    image_folder: str | Path | None = None,
    note: Callable[[str], None] | None = None,
    **further: Any,
) -> FileOptions:
    """Check the options that come with a path; read class lists and tables of sizes if they are files.

    ``further`` are those of ``FURTHER``; None and False mean that an option is not given.
    """
    # Nothing is imported for an option that is not given.
    checks.one_of(format, format_names(), name="format")
    if box_format is not None:
        checks.one_of(box_format, WRITTEN_FORMATS, name="box_format")
    names, sizes, descriptions = None, None, None
    # A list of classes may be a file of descriptions, which an extension reads.
    if isinstance(classes, (str, Path)):
        descriptions = FURTHER["descriptions"].checked(Path(classes))
    if classes is not None and descriptions is None:
        from boxscore.formats.class_lists import class_list

        names = class_list(classes)
    if image_sizes is not None or image_folder is not None:
        from boxscore.formats.image_sizes import image_sizes_of

        sizes = image_sizes_of(image_sizes, image_folder)
    # Options of extensions are checked by the extension.
    worker_count(processes)  # checked now; "auto" is decided where the processes start
    for name in further.keys() - FURTHER.keys():
        raise TypeError(f"read_options() got an unexpected keyword argument {name!r}")
    given = {
        name: option.checked(further[name])
        for name, option in FURTHER.items()
        if further.get(name) is not None and further[name] is not False
    }
    if descriptions is not None:
        given["descriptions"] = descriptions
    return FileOptions(
        format=format,
        image_set=image_set,
        classes=names,
        image_sizes=sizes,
        box_format=box_format,
        instances=tuple(instances),
        processes=processes,
        any_sides=any_sides,
        needs_areas=needs_areas,
        keys=tuple(keys),
        image_keys=tuple(image_keys),
        text_keys=tuple(text_keys),
        columns=None if columns is None else _column_map(columns),
        unlisted_images=check_how(unlisted_images),
        note=note,
        further=given,
    )


def _column_map(columns: Mapping[str, str] | ColumnMap) -> ColumnMap:
    from boxscore.data.column_names import ColumnMap

    return columns if isinstance(columns, ColumnMap) else ColumnMap.of(columns)


def takes_columns(path: Path, side: Side) -> bool:
    """Whether there is a table, whose columns a user may name."""
    return path.exists() and "columns" in open_at(path, side=side).format.takes


def read_ground_truth(path: str | Path | Opened, options: FileOptions = PLAIN) -> GroundTruth:
    """Read ground truth; see :func:`boxscore.load_ground_truth`."""
    opened = _open(_path_of(path, GroundTruth), options, "ground truth")
    file_format = opened.format
    _refuse_useless(options, file_format)
    with errors_named(opened.path, side="gt"):
        ground_truth = opened.load_ground_truth(options)
    names_images = options.image_sizes is not None and options.unlisted_images is None
    if names_images and not file_format.lists_images(ground_truth):
        ground_truth = _with_named_images(ground_truth, options)
    for name, option in FURTHER.items():
        if option.applied and name in options.further:
            ground_truth = loaded(option.applied)(ground_truth, options.further[name])
    warn_of_box_order(ground_truth, file_format, options, options.report)
    return ground_truth


def _open(path: Path | Opened, options: FileOptions, side: Side) -> Opened:
    """Open a path, unless it is open in the format that the user names."""
    if isinstance(path, Opened):
        if options.format in ("auto", path.format.name):
            return path
        path = path.path
    return open_at(path, options.format, side=side)


def _path_of(path: Any, kind: type[GroundTruth | Detections]) -> Path | Opened:
    """Return a path, opened or not; refuse a table, or anything else."""
    if isinstance(path, Opened):
        return path
    if isinstance(path, (str, os.PathLike)):
        return path_of(path)
    makers = f"{kind.__name__}.from_pandas takes a DataFrame, {kind.__name__}.from_arrays takes arrays"
    raise InputError(
        "path",
        "be the path of a file or folder",
        got=f"a value of type {type(path).__name__}",
        cause=f"{makers}, and boxscore.evaluate(df, df) takes both sides",
    )


def _with_named_images(ground_truth: GroundTruth, options: FileOptions) -> GroundTruth:
    """Add the images that a table of sizes or a folder names, with a warning or a note."""
    from boxscore.formats.image_sizes import with_listed_images

    assert options.image_sizes is not None
    wider = with_listed_images(ground_truth, options.image_sizes)
    added = len(wider.images) - len(ground_truth.images)
    if not added or (options.note is None and added <= FEW_ADDED * len(wider.images)):
        return wider
    count, its = ("counts as an image", "its") if added == 1 else ("count as images", "their")
    text = (
        f"{counted(added, 'image')} {verb(added, 'are')} listed only in {options.image_sizes.source} and "
        f"{count} without objects; --unlisted-images drop (in Python unlisted_images=) ignores {its} "
        "detections."
    )
    if options.note is not None:
        options.note(text)
    else:
        warn_user(text)
    return wider


def takes_sizes(path: Path, side: Side, format: str = "auto", box_format: str | None = None) -> bool:
    """Whether a side needs the sizes of images, which are given once for both."""
    return (box_format or "").endswith("n") or "image_sizes" in open_at(path, format, side=side).format.takes


def read_detections(
    path: str | Path | Opened, ground_truth: GroundTruth, options: FileOptions = PLAIN
) -> Detections:
    """Read detections; see :func:`boxscore.load_detections`."""
    return read_listed(path, ground_truth, options)[1]


def read_listed(
    path: str | Path | Opened, ground_truth: GroundTruth, options: FileOptions
) -> tuple[GroundTruth, Detections]:
    """Read detections; also return the ground truth, to which images of theirs may have been added."""
    path = _path_of(path, Detections)
    given: Any = ground_truth
    if not isinstance(given, GroundTruth):
        got = f"a value of type {type(given).__name__}"
        cause = "boxscore.load_ground_truth reads it; boxscore.evaluate takes two paths"
        raise InputError("ground_truth", "be a GroundTruth table", got=got, cause=cause)
    opened = _open(path, options, "detections")
    both = with_unlisted(
        lambda truth: _read_detections(opened, truth, options), ground_truth, options.unlisted_images
    )
    if options.columns is not None:
        options.columns.refuse_absent()
    return both[0], with_reader(both[1], opened, options)


def with_reader(detections: Detections, opened: Opened, options: FileOptions) -> Detections:
    """Ask for a reader of detections that were left out, unless a class map leaves them out."""
    if not detections.left_out or "class_map" in options.further:
        return detections
    table: Detections = ask("detections left out", detections, opened, options)
    return table


def _read_detections(opened: Opened, ground_truth: GroundTruth, options: FileOptions) -> Detections:
    # With a class map, or numbers that may count from elsewhere, the classes of the file are read first.
    file_format = opened.format
    _refuse_useless(options, file_format, of_detections=True)

    def read(truth: GroundTruth) -> Detections:
        with errors_named(opened.path, side="dt"):
            return opened.load_detections(options, truth)

    detections: Detections
    if "class_map" in options.further or may_number_otherwise(ground_truth, file_format, options):
        detections = ask("numbers without names", opened, ground_truth, options, read)
    else:
        detections = read(ground_truth)
    _warn(detections, file_format, options, ground_truth)
    return detections


def may_number_otherwise(ground_truth: GroundTruth, file_format: Format, options: FileOptions) -> bool:
    """Whether the ground truth has a list of names, and the detections numbers that may count otherwise."""
    nothing_said = "class_map" not in options.further and options.classes is None
    return nothing_said and file_format.has_class_numbers and ground_truth.categories.are_positions


def load_both(
    ground_truth: str | Path | Opened,
    detections: str | Path | Opened,
    options: FileOptions = PLAIN,
    detection_options: FileOptions = PLAIN,
) -> tuple[GroundTruth, Detections]:
    """Read ground truth and detections; several processes read a large results file at the same time.

    Parameters
    ----------
    ground_truth, detections : str, Path or Opened
    options, detection_options : FileOptions
        Of the ground truth, and of the detections. More than one process forks this one.

    Returns
    -------
    ground_truth : GroundTruth
    detections : Detections

    Raises
    ------
    FileFormatError, InputError
        As from the public loaders.
    """
    # Only formats that can start reading on their own, in other processes, come further.
    truth_file = _open(_path_of(ground_truth, GroundTruth), options, "ground truth")
    begin = None
    if truth_file.format.has_class_numbers and "class_map" not in detection_options.further:
        results = _open(_path_of(detections, Detections), detection_options, "detections")
        detections = results
        _refuse_useless(detection_options, results.format, of_detections=True)
        begin = None if results.files else capability(results.format, "begin")
    if begin is None:
        truth = read_ground_truth(truth_file, options)
        return read_listed(detections, truth, detection_options)
    # Share the processes by the work of both files, so that they finish together.
    truth_work = TRUTH_WORK * _size_of(truth_file.path)
    beside = truth_work / max(truth_work + _size_of(results.path), 1)
    shared = max(1, round(worker_count(options.processes) * beside))
    results.tell()
    # While others read the results, this process reads the ground truth.
    with (
        errors_named(results.path, side="dt"),
        results.named(),
        begin(results.data, detection_options, beside) as begun,
    ):
        truth = read_ground_truth(truth_file, dataclasses.replace(options, processes=shared))
        # Images that are missing from the ground truth: the options say what becomes of them.
        try:
            table = results.loaded(lambda: begun.detections(truth))
        except UnlistedImagesError as error:
            if detection_options.unlisted_images in (None, "error"):
                ask(
                    "images not listed",
                    lambda wider: read_detections(results, wider, detection_options),
                    truth,
                    error.names,
                )
                raise
            return read_listed(results, truth, detection_options)
    _warn(table, results.format, detection_options, truth)
    return truth, with_reader(table, results, detection_options)


_USES = {
    "image_set": "image sets",
    "classes": "class numbers without names",
    "image_sizes": "coordinates that may be fractions of the image size",
    "columns": "columns",
}
"""The core's options that not every format takes, each with the content that makes it useful."""


def _refuse_useless(options: FileOptions, file_format: Format, *, of_detections: bool = False) -> None:
    """Refuse an option that would change nothing."""
    if options.box_format is not None and not file_format.has_boxes:
        rule = f"not be used with the format {file_format.name}, whose boxes are not four numbers"
        raise InputError("box_format", rule, got=options.box_format)
    # An option that the format does not read would be ignored silently.
    further = {name: option.of for name, option in FURTHER.items() if option.of}
    for name, what in {**_USES, **further}.items():
        value = options.further.get(name) if name in FURTHER else getattr(options, name)
        if value is None or name in options_of(file_format, of_detections=of_detections):
            continue
        if name == "image_sizes" and options.written is not None and options.written.fractions:
            continue
        # Say which formats do read it.
        names = [
            other
            for other in format_names(auto=False)
            if name in options_of(format_named(other), of_detections=of_detections)
        ]
        raise InputError(
            name,
            f"not be used with the format {file_format.name}, which lacks {what}",
            got=repr(str(value))[:60],
            cause=f"formats with it: {', '.join(names)}",
        )
    if of_detections and "descriptions" in options.further:
        rule = "not be used: the labels of detections come from the ground truth"
        got = options.further["descriptions"].source
        raise InputError("a list of labels together with detections", rule, got=got)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _warn(
    detections: Detections, file_format: Format, options: FileOptions, ground_truth: GroundTruth
) -> None:
    if file_format.boxes is None:
        return  # such classes are warned of when the table is saved or aligned
    if detections.left_out:
        ask("classes left out", detections, ground_truth, is_mapped="class_map" in options.further)
    if detections.boxes_given:
        warn_of_box_order(detections, file_format, options, options.report)


# ---------------------------------------------------------------- boxes in another form

SUSPICIOUS = 0.10
"""Share of boxes outside their image above which something is wrong; detectors overhang by a few pixels."""

SLACK = 0.05
"""Part of the image's side by which a box may overhang."""

SAMPLE_SIZE = 20_000
"""Boxes checked, spread over the table."""

STRIDE = 7
"""Of the boxes checked one in so many is checked first; a prime, as many images have 10 or 100 boxes."""

ROUNDED = 1e-3
"""How exactly a box touches the side of the image."""


def warn_of_box_order(
    table: BoxTable,
    file_format: Format,
    options: ReadOptions,
    report: Callable[[BoxscoreWarning], None] = warn_user,
) -> None:
    """Warn if a table's boxes look like another form than its format's, or than ``box_format``."""
    if file_format.boxes is not None and not boxes_look_right(table):
        sizes = file_format.boxes == "xywh"
        ask("boxes in another form", table, given_sizes=sizes, form=options.box_format, report=report)


def boxes_look_right(table: BoxTable) -> bool:
    """Whether a sample of the boxes is clearly of the form that its file says."""
    if not len(table):
        return True
    sample = slice(None, None, -(-len(table) // SAMPLE_SIZE))
    # Where no size of an image is known, some width is below its x, and some box begins before a center
    # could: these are neither corners nor centers.
    if np.isnan(table.images.sizes).all():
        first, sizes = table.boxes[sample, :2], table.sizes[sample]
        is_before = first < sizes / 2 - ROUNDED * sizes
        return bool((sizes < first).any() and is_before.any())
    # Else most boxes are inside their images, and not all of them are so small that they may be fractions.
    # Of many boxes, a few are looked at first.
    if len(range(*sample.indices(len(table)))) > SAMPLE_SIZE / 4:
        sample = slice(None, None, STRIDE * sample.step)
    extent = table.images.sizes.take(table.image[sample], axis=0)
    largest = max(np.abs(table.boxes[sample, :2]).max(), table.sizes[sample].max() / 2)
    if largest <= 1.5 or np.isnan(extent).any():
        return False
    return share_outside(table.boxes[sample], extent) < 0.75 * SUSPICIOUS


def share_outside(corners: FloatArray, extent: FloatArray) -> float:
    """Return the share of boxes that leave their image or are inverted."""
    inside = np.ones(len(corners), dtype=bool)
    for low, high, end in zip(corners.T[:2], corners.T[2:], extent.T, strict=True):
        slack = SLACK * end
        inside &= (low >= -slack) & (high <= end + slack) & (high >= low)
    return 1.0 - float(inside.mean())
