"""Convert, merge, filter and split ground truth or detections.

If the output format cannot store something, the command stops and names it; --lossy drops it instead. Several
data sets are merged: classes are joined by name, and clashing ids are renumbered. Then classes are renamed,
rows and images filtered, images sampled, and the result split, in this order.

Examples
--------
  boxscore convert instances_val2017.json --output gt.npz
  boxscore convert gt.npz --dt results.json --output dt.npz
  boxscore convert VOC2007 --image-set test --output test.json
  boxscore convert instances.json --output labels --to yolo --lossy
  boxscore convert a.json b.json --output both.json
  boxscore convert gt.json --dt results.json --output detections --to parquet --partitions 8
  boxscore convert all.json --output part.json --split train=0.8 val=0.2 --seed 1
  boxscore convert --gt gt.json --dt dt.json --server dota-v1.0 --output dota.zip
  boxscore convert --dt dt.csv --expand-hierarchy hierarchy.json --to openimages --output expanded.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import refuse_replacing
from boxscore._utils.text import counted
from boxscore.cli.arguments import (
    CLASSES,
    DETECTION_FILES,
    DETECTIONS,
    EXCLUDE_CLASSES,
    FORMAT,
    GROUND_TRUTH,
    GROUND_TRUTH_FILES,
    IMAGE_SET,
    IMAGES,
    PART,
    RESULTS_OUTPUT,
    Option,
)
from boxscore.cli.choices import chosen, chosen_classes
from boxscore.cli.inputs import detection_arguments, ground_truth_arguments, resolve_columns
from boxscore.cli.streams import say
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.data_tools.converting import Target, refuse_unnamed, writable_formats
from boxscore.extensions.data_tools.operations import (
    filter_objects,
    merge_tables,
    remap_classes,
    sample_images,
    split_images,
)
from boxscore.extensions.data_tools.servers import (
    SERVERS,
    check_listed,
    check_output,
    save_for_server,
)
from boxscore.extensions.federated.hierarchy import Hierarchy, expand_classes
from boxscore.extensions.federated.image_label_files import read_hierarchy
from boxscore.extensions.federated.open_images import save_image_labels
from boxscore.extensions.hints.class_maps import pairs_in_file
from boxscore.formats.image_sizes import image_sizes_of, with_known_sizes
from boxscore.formats.parquet import FORMAT as FORMAT_OF_PARTITIONS
from boxscore.formats.parquet import arrow
from boxscore.formats.reading import read_ground_truth, read_listed, read_options
from boxscore.formats.results import load_results

_TASKS = "labelstudio"
"""The format whose writer takes names and addresses."""

OPTIONS = (
    GROUND_TRUTH.but(help=f"{GROUND_TRUTH.help}; several are merged", many=True, required=False),
    DETECTIONS.but(
        help="detections to convert: one per ground truth, or without ground truth",
        many=True,
        required=False,
    ),
    FORMAT,
    IMAGE_SET,
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
    RESULTS_OUTPUT.but(help="output path: a file, or a folder for VOC and YOLO"),
    Option(
        "to",
        "output format; boxscore formats lists them (default: by the extension of --output)",
        choices=lambda: ("auto", *writable_formats()),
        default="auto",
        metavar="FORMAT",
    ),
    Option(
        "server",
        f"write detections as an evaluation server asks for them: {', '.join(SERVERS)}",
        choices=lambda: tuple(SERVERS),
        metavar="NAME",
    ),
    Option(
        "image-prefix",
        "address of the images before their names, e.g. /data/local-files/?d=images/",
        metavar="TEXT",
        group="Label Studio",
    ),
    Option(
        "from-name",
        "name of the labels in the labeling configuration (default: label)",
        metavar="NAME",
        group="Label Studio",
    ),
    Option(
        "to-name",
        "name of the image in the labeling configuration (default: image)",
        metavar="NAME",
        group="Label Studio",
    ),
    Option("lossy", "drop data that the format cannot store", kind=bool, default=False),
    Option(
        "expand-hierarchy",
        "add a copy of each row for every ancestor of its class, and expand image-level labels, as in "
        "Open Images",
        kind=Path,
        metavar="FILE.json",
        group="class hierarchy",
    ),
    Option(
        "output-image-labels",
        "also write the image-level labels, expanded like the rows",
        kind=Path,
        metavar="FILE.csv",
        writes=(".",),
        group="class hierarchy",
    ),
    Option(
        "remap-classes",
        "rename, merge or drop classes: a file with lines from,to as for --class-map",
        kind=Path,
        metavar="FILE.csv",
        group=PART,
    ),
    IMAGES.but(group=PART),
    CLASSES.but(group=PART),
    EXCLUDE_CLASSES.but(group=PART),
    Option(
        "area",
        "keep only objects with an area in this range, in square pixels",
        metavar="LOW:HIGH",
        group=PART,
    ),
    Option(
        "crowd",
        "keep only crowd regions, or only other objects",
        choices=("only", "none"),
        variable="of_crowds",
        group=PART,
    ),
    Option(
        "without-empty",
        "drop images without objects",
        kind=bool,
        default=False,
        group=PART,
    ),
    Option("sample", "keep N randomly chosen images", kind=int, metavar="N", group=PART),
    Option(
        "split",
        "split the images, e.g. train=0.8 val=0.2; --output OUT.json then writes OUT-train.json and "
        "OUT-val.json",
        many=True,
        metavar="NAME=SHARE",
        group=PART,
    ),
    Option(
        "partitions",
        "write a folder with N Parquet files, each image in one of them, for --memory-limit and clusters",
        kind=int,
        metavar="N",
        group=PART,
    ),
    Option(
        "seed",
        "random seed of --sample and --split",
        kind=int,
        default=0,
        metavar="N",
        group=PART,
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, save; return the exit status."""
    of_tasks = {
        name: text
        for name in ("image_prefix", "from_name", "to_name")
        if (text := getattr(arguments, name)) is not None
    }
    if of_tasks and (arguments.server is not None or arguments.to != _TASKS):
        name = f"--{next(iter(of_tasks)).replace('_', '-')}"
        got = arguments.server or arguments.to
        raise InputError(name, f"be used with --to {_TASKS}", got=got)
    if arguments.server is not None:
        return _for_server(arguments)
    # Check the target, the partitions and the files to write before anything is read.
    target = Target(arguments.output, arguments.to, lossy=arguments.lossy, strict=arguments.strict)
    if of_tasks:
        target.format = type(target.format)(**of_tasks)
    if target.format.name == FORMAT_OF_PARTITIONS.name:
        arrow()
    if arguments.partitions is not None:
        _check_partitions(arguments, target)
    # No output may replace an input.
    shares = None if arguments.split is None else _shares(arguments.split)
    for name in shares or ():
        refuse_replacing("a part of --output", _part_of(arguments.output, name))
    # Read the small files that options name before the large ones.
    mapping = None if arguments.remap_classes is None else pairs_in_file(arguments.remap_classes)
    hierarchy = None if arguments.expand_hierarchy is None else read_hierarchy(arguments.expand_hierarchy)
    if hierarchy is not None and arguments.hierarchy is not None:
        raise InputError(
            "--hierarchy", "not be combined with --expand-hierarchy", got=str(arguments.hierarchy)
        )
    # Read and merge, then expand the hierarchy, rename classes and select images.
    table = _read_and_merge(arguments)
    target.check_ids(table)
    if hierarchy is not None:
        table = _expand(table, hierarchy)
    if mapping is not None:
        table = remap_classes(table, mapping.resolved(table.categories, table.categories))
    table = _part(table, arguments)
    # Write partitions, one file, or one file per split.
    if arguments.output_image_labels is not None:
        _write_labels(table, arguments.output_image_labels)
        table = table.replaced(image_labels=None)  # a file of boxes need not hold them
    if arguments.partitions is not None:
        with target.without_lost(table, arguments.output) as (writable, _):
            FORMAT_OF_PARTITIONS.save_partitions(writable, arguments.output, arguments.partitions)
        say(f"{counted(len(table), 'row')} written to {arguments.output}")
        return 0
    if shares is None:
        _write(table, arguments.output, target)
        return 0
    # Check every split before the first is written.
    parts = split_images(table, shares, seed=arguments.seed)
    for part in parts.values():
        target.check(part)
    for name, part in parts.items():
        _write(part, _part_of(arguments.output, name), target)
    return 0


def _for_server(arguments: argparse.Namespace) -> int:
    """Write detections for an evaluation server."""
    output: Path = arguments.output
    for name in ("split", "partitions", "expand_hierarchy", "output_image_labels"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}", "not be combined with --server", got="both")
    if arguments.to != "auto":
        raise InputError("--to", "be left out with --server, which sets the format", got=arguments.to)
    if not arguments.detections:
        raise InputError("--dt", "be given with --server, which takes detections", got="none")
    check_output(arguments.server, output)
    truth = bool(arguments.ground_truth)
    sizes = None if truth else image_sizes_of(arguments.image_sizes, arguments.image_folder)
    listed = () if sizes is None else sizes.named
    check_listed(arguments.server, lists_images=truth or bool(listed))
    mapping = None if arguments.remap_classes is None else pairs_in_file(arguments.remap_classes)
    table = _read_and_merge(arguments)
    if mapping is not None:
        table = remap_classes(table, mapping.resolved(table.categories, table.categories))
    table = _part(table, arguments)
    assert isinstance(table, Detections)
    save_for_server(
        table,
        output,
        arguments.server,
        lossy=arguments.lossy,
        strict=arguments.strict,
        truth=truth,
        listed=listed,
    )
    say(f"{counted(len(table), 'row')} written to {output}")
    return 0


def _part_of(output: Path, name: str) -> Path:
    """Return the file of one split."""
    return output.with_name(f"{output.stem}-{name}{output.suffix}")


def _check_partitions(arguments: argparse.Namespace, target: Target) -> None:
    """Raise an error for partitions of a format other than Parquet, before reading."""
    checks.whole_number(arguments.partitions, 1, name="--partitions", high=100_000)
    if arguments.split is not None:
        cause = "convert each split separately"
        raise InputError("--partitions", "not be combined with --split", got="both", cause=cause)
    if target.format.name != FORMAT_OF_PARTITIONS.name:
        raise InputError("--partitions", "write Parquet", got=target.format.name, cause="add --to parquet")


def _expand(table: GroundTruth | Detections, hierarchy: Hierarchy) -> GroundTruth | Detections:
    if isinstance(table, GroundTruth):
        return expand_classes(table, hierarchy)
    return expand_classes(table, hierarchy)


def _write_labels(table: GroundTruth | Detections, path: Path) -> None:
    if not isinstance(table, GroundTruth):
        raise InputError("--output-image-labels", "be used without detections", got="detections")
    say(f"{counted(save_image_labels(table, path), 'label')} of images written to {path}")


def _read_and_merge(arguments: argparse.Namespace) -> GroundTruth | Detections:
    """Read the ground truths or the detections, and merge them."""
    # Several files pair up by their order.
    truths, results = arguments.ground_truth or [], arguments.detections or []
    if not truths and not results:
        raise InputError("--gt or --dt", "be given", got="neither")
    if truths and results and len(truths) != len(results):
        got = f"{len(results)} of {len(truths)}"
        raise InputError("detections", "be as many as the ground truths", got=got)
    resolve_columns(arguments)
    sizes = image_sizes_of(arguments.image_sizes, arguments.image_folder)
    expanding = arguments.expand_hierarchy is not None  # keeps all boxes, also invalid ones
    common: dict[str, Any] = {"any_sides": expanding, "needs_areas": not expanding}
    # Ground truth; add image sizes from other sources.
    tables = []
    for path in truths:
        side = argparse.Namespace(**{**vars(arguments), "ground_truth": path})
        table = read_ground_truth(path, read_options(**ground_truth_arguments(side), **common))
        if sizes is not None:
            table = table.replaced(images=with_known_sizes(table.images, sizes))
        tables.append(table)
    if not results:
        return merge_tables(tables)
    # Detections in the classes of their ground truth, or of their own file.
    detections = []
    for number, path in enumerate(results):
        side = argparse.Namespace(**{**vars(arguments), "detections": path})
        options = read_options(**detection_arguments(side), **common)
        if tables:
            tables[number], table_of_results = read_listed(path, tables[number], options)
        else:
            loaded = load_results(path, options, oriented=True)
            table_of_results = loaded.table
            refuse_unnamed(table_of_results, loaded.format, path)
            if sizes is not None:
                known = with_known_sizes(table_of_results.images, sizes)
                table_of_results = table_of_results.replaced(images=known)
        detections.append(table_of_results)
    return merge_tables(detections)


def _part(table: GroundTruth | Detections, arguments: argparse.Namespace) -> GroundTruth | Detections:
    """Filter by image, class and row, and sample images."""
    part = filter_objects(
        table,
        images=chosen(arguments.images, table.images),
        classes=chosen_classes(arguments.classes, table.categories, arguments.exclude_classes),
        area=None if arguments.area is None else _area(arguments.area),
        crowd=None if arguments.of_crowds is None else arguments.of_crowds == "only",
        without_empty=arguments.without_empty,
    )
    return part if arguments.sample is None else sample_images(part, arguments.sample, seed=arguments.seed)


def _write(table: GroundTruth | Detections, path: Path, target: Target) -> None:
    with target.without_lost(table, path) as (writable, _):
        target.format.save(writable, path)
    size = path.stat().st_size if path.is_file() else 0
    text = f" ({size / 1e6:.1f} MB)" if size >= 1e6 else f" ({size / 1e3:.0f} kB)" if size else ""
    say(f"{counted(len(writable), 'row')} written to {path}{text}")


def _area(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        bounds = checks.plain_number(low or "0"), checks.plain_number(high or "inf")
    except ValueError:
        colon = ""
    if not colon:
        raise InputError("--area", "be two numbers, LOW:HIGH", got=repr(text))
    return bounds


def _shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the names of the splits and their shares of the images."""
    shares: dict[str, float] = {}
    for text in texts:
        name, sign, share = text.partition("=")
        try:
            value = checks.plain_number(share)
        except ValueError:
            sign = ""
        if not sign or not name or name in shares:
            rule = "have the form NAME=SHARE with different names"
            raise InputError("--split", rule, got=repr(text), cause="e.g. --split train=0.8 val=0.2")
        shares[checks.plain_name(name, name="a part of a split")] = value
    return shares
