"""Read files of any format, for the public loaders and for the command line.

Conventions
-----------
- Each path is opened once (:class:`~boxscore.formats._format.Opened`), and read by the detected format.
  Options that are independent of the format, such as class maps, are applied here to the tables.
- The option ``instances`` names the instance columns (``"masks"``, ``"keypoints"``) that will be needed. It
  is only a hint: without it, a table loads them lazily by reading the file again.
- ``processes`` above 1 forks. The command line does so, because it owns the process; ``"auto"``, the default
  in Python, forks only if that is safe.
- Options that few formats support, or that change the ground truth, are in :data:`FURTHER`.
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
from boxscore._utils.given_paths import VirtualPath, path_of
from boxscore._utils.lazy import loaded
from boxscore._utils.processes import Workers, worker_count
from boxscore._utils.records import NamedTuple, record
from boxscore._utils.text import counted, short_list, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import LARGEST_FRACTION, MOST
from boxscore.data.boxes import WRITTEN_FORMATS, WrittenFormat, are_few
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
"""Time to read a byte of ground truth, relative to a byte of results."""

FEW_ADDED = 0.1
"""Maximum fraction of all images that a table of sizes may add without a warning."""


@record(frozen=True)
class FileOptions(ReadOptions):
    """Options for a path: those for the format, and those that are applied to the table.

    Attributes
    ----------
    unlisted_images : {"error", "background", "drop"}, or None
        How to treat detections in images that the ground truth does not list; None if not given.
    note : callable, optional
        Called with the note that images were added to the ground truth, instead of a warning.
    report : callable
        Called with the warning that boxes look like another form; by default, it is shown to the user.
    """

    unlisted_images: str | None = None
    note: Callable[[str], None] | None = None
    report: Callable[[BoxscoreWarning], None] = warn_user


PLAIN = FileOptions()
"""Options with default values."""


class _Further(NamedTuple):
    """An option that few formats support, or that changes the ground truth.

    Functions are given as ``module:function``.
    """

    check: str = ""
    """A function that checks and converts a value; if empty, the value is kept."""
    of: str = ""
    """The file content that the option needs, for messages; empty if it applies to any ground truth."""
    applied: str = ""
    """A function from ground truth and value to the changed ground truth."""
    is_around: bool = False
    """Whether the checked value corrects detections, as ``around`` of the options of a format."""

    def checked(self, value: Any) -> Any:
        """Check and convert a value."""
        return loaded(self.check)(value) if self.check else value


_ANSWERS = "answers of a language model"

FURTHER = {
    "class_map": _Further("boxscore.extensions.hints.class_maps:class_map_of"),
    "network_input": _Further("boxscore.extensions.hints.network_input:network_input_of", is_around=True),
    "image_id_offset": _Further("boxscore.extensions.hints.image_offsets:image_id_offset_of", is_around=True),
    "swap_image_sizes": _Further(applied="boxscore.extensions.hints.swapped_sizes:with_swapped_sizes"),
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
    "inside": _Further(applied="boxscore.extensions.regions.counting:with_inside"),
    "outside": _Further(applied="boxscore.extensions.regions.counting:with_outside"),
    "coordinates": _Further("boxscore.extensions.scoreless.coordinates:checked_coordinates", of=_ANSWERS),
    "repeated": _Further("boxscore.extensions.scoreless.coordinates:checked_repeated", of=_ANSWERS),
    "loose": _Further(of=_ANSWERS),
}
"""Options of extensions by name, and those that work the same way.

Options that change the ground truth are applied in this order. ``descriptions`` is derived from ``classes``;
its check decides whether a file of classes describes labels.
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
    """Check the options for a path; read class lists and tables of sizes from files.

    ``further`` are those of ``FURTHER``; None and False mean that an option is not given.
    """
    # Avoid imports for options that are not given.
    checks.one_of(format, format_names(), name="format")
    if box_format is not None:
        checks.one_of(box_format, WRITTEN_FORMATS, name="box_format")
    names, sizes, descriptions = None, None, None
    # A class list may be a file of descriptions, which an extension reads.
    if isinstance(classes, (str, Path)):
        descriptions = FURTHER["descriptions"].checked(Path(classes))
    if classes is not None and descriptions is None:
        from boxscore.formats.class_lists import class_list

        names = class_list(classes)
    if image_sizes is not None or image_folder is not None:
        from boxscore.formats.image_sizes import image_sizes_of

        sizes = image_sizes_of(image_sizes, image_folder)
    # Let extensions check their options.
    worker_count(processes)  # only a check; "auto" is resolved when the processes start
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
        around=tuple(value for name, value in given.items() if FURTHER[name].is_around),
    )


def _column_map(columns: Mapping[str, str] | ColumnMap) -> ColumnMap:
    from boxscore.data.column_names import ColumnMap

    return columns if isinstance(columns, ColumnMap) else ColumnMap.of(columns)


def takes_columns(path: Path, side: Side) -> bool:
    """Whether a path is a table, for which ``columns`` applies."""
    return path.exists() and "columns" in open_at(path, side=side).format.takes


def read_ground_truth(path: str | Path | Opened, options: FileOptions = PLAIN) -> GroundTruth:
    """Read ground truth; see :func:`boxscore.load_ground_truth`."""
    opened = _open(_path_of(path, GroundTruth), options, "ground truth")
    file_format = opened.format
    refuse_useless(options, file_format)
    with errors_named(opened.path, side="gt"):
        ground_truth = opened.load_ground_truth(options)
    check_other_formats(opened, ground_truth, options)
    names_images = options.image_sizes is not None and options.unlisted_images is None
    if names_images and not file_format.lists_images(ground_truth):
        ground_truth = _add_named_images(ground_truth, options)
    for name, option in FURTHER.items():
        if option.applied and name in options.further:
            ground_truth = loaded(option.applied)(ground_truth, options.further[name])
    warn_of_box_order(ground_truth, file_format, options, options.report)
    return ground_truth


def check_other_formats(
    opened: Opened, table: BoxTable, options: ReadOptions, ground_truth: GroundTruth | None = None
) -> None:
    """Name files of other formats in the folders of a table; raise if only they describe some images."""
    for each in opened.files or (opened,):
        is_listed = not isinstance(each.data, VirtualPath)
        if is_listed and (each.data.is_dir() or capability(each.format, "read_elsewhere")):
            ask("files of another format", each, table, options, ground_truth)


def _open(path: Path | Opened, options: FileOptions, side: Side) -> Opened:
    """Open a path, unless it is already open in the right format."""
    if isinstance(path, Opened):
        if options.format in ("auto", path.format.name):
            return path
        path = path.path
    return open_at(path, options.format, side=side)


def _path_of(path: Any, kind: type[GroundTruth | Detections]) -> Path | Opened:
    """Check that a value is a path, opened or not; raise if it is a table or anything else."""
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


def _add_named_images(ground_truth: GroundTruth, options: FileOptions) -> GroundTruth:
    """Add the images listed in a table of sizes or a folder, with a warning or a note."""
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
    """Whether a path may need image sizes."""
    return (box_format or "").endswith("n") or "image_sizes" in open_at(path, format, side=side).format.takes


def read_detections(
    path: str | Path | Opened, ground_truth: GroundTruth, options: FileOptions = PLAIN
) -> Detections:
    """Read detections; see :func:`boxscore.load_detections`."""
    return read_listed(path, ground_truth, options)[1]


def read_listed(
    path: str | Path | Opened, ground_truth: GroundTruth, options: FileOptions
) -> tuple[GroundTruth, Detections]:
    """Read detections; return them with the ground truth, to which unlisted images may be added."""
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
    check_other_formats(opened, both[1], options, both[0])
    if options.columns is not None:
        options.columns.refuse_absent()
    return both[0], with_reader(both[1], opened, options)


def with_reader(detections: Detections, opened: Opened, options: FileOptions) -> Detections:
    """Attach a lazy reader of dropped detections, unless a class map dropped them."""
    if not detections.left_out or "class_map" in options.further:
        return detections
    table: Detections = ask("detections left out", detections, opened, options)
    return table


def _read_detections(opened: Opened, ground_truth: GroundTruth, options: FileOptions) -> Detections:
    # With a class map, or if class numbers may be shifted, read the classes of the file first.
    file_format = opened.format
    refuse_useless(options, file_format, of_detections=True)

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
    """Whether class numbers of detections may differ from the class list of the ground truth."""
    nothing_said = "class_map" not in options.further and options.classes is None
    return nothing_said and file_format.has_class_numbers and ground_truth.categories.are_positions


def load_both(
    ground_truth: str | Path | Opened,
    detections: str | Path | Opened,
    options: FileOptions = PLAIN,
    detection_options: FileOptions = PLAIN,
) -> tuple[GroundTruth, Detections]:
    """Read ground truth and detections, in parallel if the results file is large.

    Parameters
    ----------
    ground_truth, detections : str, Path or Opened
    options, detection_options : FileOptions
        Options of the ground truth and of the detections. With several processes, this one is forked.

    Returns
    -------
    ground_truth : GroundTruth
    detections : Detections

    Raises
    ------
    FileFormatError, InputError
        As for the public loaders.
    """
    # Read one after the other, unless the format can start to read in other processes.
    truth_file = _open(_path_of(ground_truth, GroundTruth), options, "ground truth")
    begin = None
    is_plain = "class_map" not in detection_options.further and not detection_options.around
    if truth_file.format.has_class_numbers and is_plain:
        results = _open(_path_of(detections, Detections), detection_options, "detections")
        detections = results
        refuse_useless(detection_options, results.format, of_detections=True)
        begin = None if results.files else capability(results.format, "begin")
    if begin is None:
        truth = read_ground_truth(truth_file, options)
        return read_listed(detections, truth, detection_options)
    # Split the processes by the work for each file, so that both finish together.
    truth_work = TRUTH_WORK * _size_of(truth_file.path)
    other_work = truth_work / max(truth_work + _size_of(results.path), 1)
    shared = max(1, round(worker_count(options.processes) * other_work))
    results.tell()
    # Read the ground truth in this process, while others read the results.
    with (
        errors_named(results.path, side="dt"),
        results.named(),
        begin(results.data, detection_options, other_work) as begun,
    ):
        truth = read_ground_truth(truth_file, dataclasses.replace(options, processes=shared))
        # Treat images that are missing from the ground truth as the options say.
        try:
            table = results.loaded(lambda: begun.detections(truth))
        except UnlistedImagesError as error:
            if detection_options.unlisted_images in (None, "error"):
                ask(
                    "images not listed",
                    lambda wider: read_detections(results, wider, detection_options),
                    truth,
                    error,
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
"""Core options that not every format supports, each with the file content that it needs."""


def refuse_useless(options: FileOptions, file_format: Format, *, of_detections: bool = False) -> None:
    """Reject options without any effect."""
    if options.box_format is not None and not file_format.has_boxes:
        rule = f"not be used with the format {file_format.name}, whose boxes are not four numbers"
        raise InputError("box_format", rule, got=options.box_format)
    # Do not ignore an option silently if the format does not support it.
    further = {name: option.of for name, option in FURTHER.items() if option.of}
    for name, what in {**_USES, **further}.items():
        value = options.further.get(name) if name in FURTHER else getattr(options, name)
        if value is None or name in options_of(file_format, of_detections=of_detections):
            continue
        if name == "image_sizes" and options.written is not None and options.written.fractions:
            continue
        # List the formats that support it.
        names = [
            other
            for other in format_names(auto=False)
            if (of_detections or format_named(other).has_ground_truth)
            and name in options_of(format_named(other), of_detections=of_detections)
        ]
        option, got = name, repr(str(value))[:60]
        if name == "classes":
            option = f"--{'dt' if of_detections else 'gt'}-classes (in Python classes=)"
            got = short_list(value, 3)
        raise InputError(
            option,
            f"not be used with the format {file_format.name}, which lacks {what}",
            got=got,
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
        return  # saving or aligning the table warns of such classes
    if detections.left_out:
        ask("classes left out", detections, ground_truth, is_mapped="class_map" in options.further)
    if detections.boxes_given:
        warn_of_box_order(detections, file_format, options, options.report)


# ---------------------------------------------------------------- boxes in another form

SUSPICIOUS = 0.10
"""Fraction of boxes outside their image that triggers a warning; detectors overhang by a few pixels."""

SLACK = 0.05
"""Tolerated overhang of a box, as a fraction of the side of the image."""

SAMPLE_SIZE = 20_000
"""Number of boxes to check, spread over the table."""

STRIDE = 7
"""Step of the first, smaller sample; a prime, because many images have 10 or 100 boxes."""

FEWEST = 20
"""Minimum number of boxes as evidence if no image size is known."""

ROUNDED = 1e-3
"""Tolerance for a box that touches the border of the image."""


def warn_of_box_order(
    table: BoxTable,
    file_format: Format,
    options: ReadOptions,
    report: Callable[[BoxscoreWarning], None] = warn_user,
) -> None:
    """Warn if boxes look like another form than that of the format or of ``box_format``."""
    if file_format.boxes is not None and not boxes_look_right(table):
        sizes = file_format.boxes == "xywh"
        ask("boxes in another form", table, given_sizes=sizes, form=options.box_format, report=report)


def boxes_look_right(table: BoxTable) -> bool:
    """Whether a sample of the boxes clearly has the expected form."""
    if not len(table):
        return True
    sample = slice(None, None, -(-len(table) // SAMPLE_SIZE))
    # Without image sizes: if many widths are below their x, these are not corners; if many boxes start before
    # a center could, these are not centers.
    if np.isnan(table.images.sizes).all():
        first, sizes = table.boxes[sample, :2], table.sizes[sample]
        is_before = first < sizes / 2 - ROUNDED * sizes
        counts = [int(np.count_nonzero(np.any(odd, axis=1))) for odd in (sizes < first, is_before)]
        return len(first) < FEWEST or not any(are_few(count, len(first), MOST) for count in counts)
    # With image sizes: most boxes are inside, and most are too large for fractions.
    # Try a smaller sample first.
    if len(range(*sample.indices(len(table)))) > SAMPLE_SIZE / 4:
        sample = slice(None, None, STRIDE * sample.step)
    extent = table.images.sizes.take(table.image[sample], axis=0)
    largest = np.maximum(np.abs(table.boxes[sample, :2]), table.sizes[sample] / 2).max(axis=1)
    if 2 * np.count_nonzero(largest <= LARGEST_FRACTION) > len(largest) or np.isnan(extent).any():
        return False
    return share_outside(table.boxes[sample], extent) < 0.75 * SUSPICIOUS


def share_outside(corners: FloatArray, extent: FloatArray) -> float:
    """Return the fraction of boxes that extend beyond their image or are inverted."""
    inside = np.ones(len(corners), dtype=bool)
    for low, high, end in zip(corners.T[:2], corners.T[2:], extent.T, strict=True):
        slack = SLACK * end
        inside &= (low >= -slack) & (high <= end + slack) & (high >= low)
    return 1.0 - float(inside.mean())
