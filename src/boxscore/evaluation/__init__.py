"""Evaluate two tables or files, and return an :class:`~boxscore.evaluation.result.Evaluation`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard
from typing import Protocol as Protocol_

import numpy as np

from boxscore._utils.given_paths import path_of
from boxscore._utils.processes import Workers, worker_count
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import align, select, without_classes
from boxscore.data.boxes import WrittenFormat
from boxscore.data.hints import FEWEST, FEWEST_OF_CLASS, ask
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.unlisted import check_how, with_unlisted
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.evaluation.result import (
    Best,
    Evaluation,
    counts_of_classes,
    counts_of_tables,
    extension,
    matched_tables,
    without_matches_of_id_zero,
)
from boxscore.formats import reading
from boxscore.formats._format import SIDES, Side
from boxscore.matching.ignoring import prepared, zero_ids
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.labels import ANNOTATOR
from boxscore.scoring.kinds import kinds_of
from boxscore.similarity.registry import needs_of, similarity_of

if TYPE_CHECKING:
    import pandas as pd

    from boxscore.data.column_names import ColumnMap

__all__ = [
    "Evaluation",
    "counts_of_classes",
    "counts_of_tables",
    "evaluate",
    "tables_of",
    "warn_of_symptoms",
    "without_matches_of_id_zero",
]

SHARED_FROM = 200_000
"""Number of detections from which several processes may share the classes."""

MANY = 0.3
"""Share of the best detections that match their class above which class numbers look right."""

SAMPLED = 4096
"""Size of the sample of scores that estimates the score of the N-th best detection, for N objects."""


class _ArrowTable(Protocol_):
    """A table of Polars or Arrow."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return its stream of batches."""


FrameLike: TypeAlias = "pd.DataFrame | _ArrowTable"
"""A DataFrame of pandas or Polars, or a table of Arrow; none of these libraries is imported."""


def evaluate(
    ground_truth: GroundTruth | str | Path | FrameLike,
    detections: Detections | str | Path | FrameLike,
    *,
    protocol: str | Path | Mapping[str, Any] | Protocol | None = None,
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
    exclude_classes: Sequence[Id] | None = None,
    unlisted_images: Literal["error", "background", "drop"] | None = None,
    workers: Workers = "auto",
    digest: bool = True,
    columns: Mapping[str, str] | None = None,
    box_format: WrittenFormat | None = None,
    class_map: str | Path | Mapping[Any, Any] | None = None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None = None,
    image_folder: str | Path | None = None,
) -> Evaluation:
    """Evaluate detections against ground truth.

    Parameters
    ----------
    ground_truth : GroundTruth, str or Path
        A table, or a file or folder that :func:`boxscore.load_ground_truth` reads, or a DataFrame as for
        :meth:`GroundTruth.from_pandas`.
    detections : Detections, str or Path
        A table, or a file or folder that :func:`boxscore.load_detections` reads, or a DataFrame. Their images
        must all be in the ground truth. Detections of classes that the ground truth lacks are left out.
    protocol : str, Path, mapping or Protocol, optional
        A shipped name, a TOML file, its values, or a Protocol. The default is ``"coco"``, or ``"scoreless"``
        for detections without scores.
    images, classes : sequence of ids, optional
        Evaluate only these, by id or name.
    exclude_classes : sequence of ids, optional
        Evaluate all classes but these, by id or name.
    unlisted_images : {"error", "background", "drop"}, optional
        Treatment of detections in images that the ground truth does not list: an error; false positives in
        images without objects, which are added; or left out, with a warning that counts them. By default,
        images named by ``image_sizes`` or ``image_folder`` are added without objects, and others are an
        error.
    workers : int or "auto", default "auto"
        Number of processes, including this one, that read large COCO files, and match masks or the boxes of
        200,000 detections and more. ``"auto"``: one per processor if forking is safe (on Linux, in the main
        thread, without other Python threads, without libraries like torch, not in a daemon), fewer where
        others are busy, else 1. With a number, shapes that are not shared are matched in as many threads. The
        result does not depend on it.
    digest : bool, default True
        Run the quick checks of the command line, and warn of doubtful input: truncated or percent scores,
        flags and shapes that the protocol does not read, ... It takes milliseconds.
    columns : mapping of str to str, optional
        Column names of DataFrames and files with tables, if they differ from the default names, as in
        ``{"image": "photo", "class": "kind"}``. One side may lack some of them.
    box_format, class_map : optional
        For detections in a file or DataFrame, as for :func:`boxscore.load_detections`.
    image_sizes, image_folder : optional
        For images of files that do not hold their sizes, as for :func:`boxscore.load_ground_truth`.

    Returns
    -------
    Evaluation

    Warns
    -----
    FindingWarning
        One per finding, most severe first; :func:`boxscore.validation.validate` reports more, with examples.

    Raises
    ------
    FileFormatError
        When a file breaks a rule of its format.
    InputError
        When a detection is in an unknown image, or a chosen image or class does not exist.
    ProtocolError
        When the protocol breaks a rule.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1], ["cat"], [[10, 10, 50, 50]])
    >>> detections = Detections.from_arrays([1], ["cat"], [[10, 10, 50, 50]], [0.9])
    >>> result = evaluate(truth, detections)
    >>> round(result["AP"], 6)
    1.0
    """
    chosen = load_protocol("coco" if protocol is None else protocol)
    worker_count(workers)
    check_how(unlisted_images)
    said: dict[str, Any] = {"columns": columns, "box_format": box_format, "class_map": class_map}
    said |= {"unlisted_images": unlisted_images, "workers": workers}
    said |= {"image_sizes": image_sizes, "image_folder": image_folder}
    # Hold back warnings until the end: findings of the digest replace warnings about the same problem.
    with _held_back() as held:
        tell = held.append if digest else warn_user
        ground_truth, unaligned = tables_of(ground_truth, detections, chosen, tell=tell, **said)
        ground_truth, detections = with_unlisted(
            lambda truth: align(unaligned, truth), ground_truth, unlisted_images
        )
        if not detections.scored:
            from boxscore.protocols import without_scores

            chosen = load_protocol("scoreless") if protocol is None else without_scores(chosen)
        # Prepare before images and classes are chosen, since rules may need all of them.
        every_class = ground_truth.categories
        ground_truth, detections = prepared(ground_truth, detections, chosen)
        if exclude_classes is not None:
            classes = without_classes(ground_truth.categories, classes, exclude_classes)
        if images is not None or classes is not None:
            ground_truth, detections = select(ground_truth, detections, images=images, classes=classes)
        if chosen.ap.class_weights:
            extension("check_class_weights")(chosen.ap, every_class, ground_truth.categories)
        # Match, then check what may make the numbers wrong.
        result = _evaluated_by_class(ground_truth, detections, chosen, workers, classes is not None)
        if result is None:
            shares = _shares_of_matching(workers, chosen, detections)
            result = matched_tables(
                ground_truth, detections, chosen, shares, chosen_classes=classes is not None
            )
        matcher = result._matcher
        if chosen.labels.unlisted == "drop" or any(row.classes for row in chosen.rows):
            extension("check_class_labels")(
                ground_truth.source, ground_truth.categories, ground_truth.image_labels, chosen
            )
        warn_of_symptoms(result, _shares_of_matching(workers, chosen, detections))
        # Warn if the tables have more precise shapes than the protocol compares.
        fallbacks = matcher.similarity.fallbacks(ground_truth, detections)
        both_rotated = ground_truth.rotated is not None and detections.rotated is not None
        if fallbacks and not both_rotated:  # a finding, with the number of the protocol that compares them
            warn_user(fallbacks)
        if digest:
            codes = extension("warn_of_findings")(result)
            held[:] = [warning for warning in held if warning.code not in codes]
        return result


def _evaluated_by_class(
    ground_truth: GroundTruth,
    detections: Detections,
    protocol: Protocol,
    workers: Workers,
    chosen_classes: bool,
) -> Evaluation | None:
    """Evaluate in processes that share the classes; None where that does not pay, or classes meet."""
    if len(detections) < SHARED_FROM:
        return None
    from boxscore.evaluation import by_class

    shares = by_class.shares_of_classes(ground_truth, detections, protocol, workers)
    if shares == 1:
        return None
    return by_class.evaluated_by_class(
        ground_truth, detections, protocol, shares, chosen_classes=chosen_classes
    )


@contextlib.contextmanager
def _held_back() -> Iterator[list[BoxscoreWarning]]:
    """Yield a list of warnings to hold back; those left in it at the end, or at an error, are issued then."""
    held: list[BoxscoreWarning] = []
    try:
        yield held
    finally:
        for warning in held:
            warn_user(warning)


def warn_of_symptoms(result: Evaluation, workers: int, *, renaming: str = "") -> None:
    """Run checks that explain wrong numbers, if there is a hint of them.

    ``renaming`` says how to number classes otherwise, where the options of files do not exist.
    """
    ground_truth, protocol = result.ground_truth, result.protocol
    if protocol.matching.annotation_id_zero != "unmatched" and zero_ids(ground_truth.ids).any():
        ask("annotation 0", result)
    if protocol.similarity == "keypoints":
        extension("warn_of_even_sigmas")(protocol)
    if ANNOTATOR in ground_truth.columns or protocol.labels.inexhaustive_images == "drop":
        extension("warn_of_annotators")(ground_truth, protocol)
    for kind in kinds_of(protocol):
        if kind.check is not None:
            kind.check(result)
    of_boxes = protocol.matching.per_class and protocol.rows and protocol.similarity != "keypoints"
    if of_boxes and len(ground_truth.categories) > 1 and _matches_are_few(result):
        ask("few matches", result, workers, renaming)


def _matches_are_few(result: Evaluation) -> bool:
    """Whether classes were left out, or few of the best detections match an object of their class."""
    best: Best = result._once("best", lambda: Best.of(result.matched))
    score, starts = best.score, best.starts
    if best.counted < FEWEST or not len(score):
        return False  # too few to judge
    if result.detections.left_out:
        return True
    # Find the score of about as many best detections as there are objects, from a sample: an exact count is
    # not needed.
    sample = score[:: len(score) // SAMPLED + 1]
    below = max(len(sample) - max(best.counted * len(sample) // len(score), 1), 0)
    # Count these detections, and the true positives among them, by class. Both ascend in class order, so
    # bisection counts them.
    highest = np.flatnonzero(score >= np.partition(sample, below)[below])
    of_class = np.diff(np.searchsorted(highest, starts))
    low, high = np.searchsorted(best.true, [starts[:-1], starts[:-1] + of_class])
    true_of_class = high - low
    # One class whose best detections never match may be a hard one. Two may be swapped.
    if ((of_class >= FEWEST_OF_CLASS) & (true_of_class == 0)).sum() > 1:
        return True
    return not (true_of_class[of_class > 0] / of_class[of_class > 0]).mean() >= MANY


def _shares_of_matching(workers: Workers, protocol: Protocol, detections: Detections) -> int:
    """Return the number of workers that match; ``"auto"`` only uses processes, and boxes never threads."""
    similarity = similarity_of(protocol)
    if not similarity.forks_for(detections) and (workers == "auto" or similarity.forks_from is not None):
        return 1
    return worker_count(workers)


def tables_of(
    ground_truth: GroundTruth | str | Path | FrameLike,
    detections: Detections | str | Path | FrameLike,
    protocol: Protocol,
    *,
    columns: Mapping[str, str] | None = None,
    box_format: WrittenFormat | None = None,
    class_map: str | Path | Mapping[Any, Any] | None = None,
    unlisted_images: str | None = None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None = None,
    image_folder: str | Path | None = None,
    workers: Workers = "auto",
    tell: Callable[[BoxscoreWarning], None] = warn_user,
) -> tuple[GroundTruth, Detections]:
    """Read tables that are given as paths or DataFrames; reject anything else."""
    # Convert DataFrames to tables first.
    truth: Any = ground_truth
    predicted: Any = detections
    names = None if columns is None else _names_of_sides(columns, truth, predicted)
    if _is_frame(truth):
        truth = GroundTruth.from_pandas(truth, columns=names)
    if _is_frame(predicted):
        if class_map is not None:
            rule = "be left out for a DataFrame, whose classes can be renamed"
            raise InputError("class_map", rule, got=repr(class_map)[:60])
        said: Any = box_format  # of the forms that arrays have, or refused
        predicted = Detections.from_pandas(predicted, columns=names, box_format=said)
        box_format = None
    # Require a table or a path otherwise.
    for value, kind, name in (
        (truth, GroundTruth, "ground_truth"),
        (predicted, Detections, "detections"),
    ):
        if not isinstance(value, (kind, str, Path)):
            raise InputError(
                name,
                f"be a {kind.__name__} table, a DataFrame, or the path of a file or folder",
                got=f"a {type(value).__name__}",
                cause="GroundTruth.from_arrays and Detections.from_arrays make tables of arrays",
            )
    # Reject file options for a table.
    if isinstance(predicted, Detections):
        for name, given in (("box_format", box_format), ("class_map", class_map)):
            if given is not None:
                raise InputError(name, "be given where detections are read", got="one together with a table")
    # Each side gets the options that its format may need.
    common: dict[str, Any] = {**needs_of(protocol), "processes": workers}

    def options(path: object, side: Side, **said: Any) -> reading.FileOptions:
        is_table = (
            names is not None and isinstance(path, (str, Path)) and reading.takes_columns(path_of(path), side)
        )
        takes = names if is_table else None
        read = reading.read_options(**common, columns=takes, **said)
        return dataclasses.replace(read, report=tell)

    sizes = _sizes_of_sides(truth, predicted, box_format, image_sizes, image_folder)
    of_truth, of_detections = (
        options(truth, SIDES[0], unlisted_images=unlisted_images, **sizes[0]),
        options(
            predicted,
            SIDES[1],
            box_format=box_format,
            class_map=class_map,
            unlisted_images=unlisted_images,
            **sizes[1],
        ),
    )
    # Read two paths at the same time; a table needs no reading.
    if not isinstance(truth, GroundTruth):
        if not isinstance(predicted, Detections):
            return reading.load_both(truth, predicted, of_truth, of_detections)
        truth = reading.read_ground_truth(truth, of_truth)
    if not isinstance(predicted, Detections):
        return reading.read_listed(predicted, truth, of_detections)
    if names is not None:
        names.refuse_absent()
    return truth, predicted


def _names_of_sides(columns: Mapping[str, str], *sides: object) -> ColumnMap:
    """Return the map of columns; if only one side is a table, it must have all of them."""
    tables = [
        _is_frame(side) or (isinstance(side, (str, Path)) and reading.takes_columns(path_of(side), name))
        for side, name in zip(sides, SIDES, strict=True)
    ]
    if not any(tables):
        rule = "be given where a table of boxes is read: a DataFrame, CSV, JSON lines or Parquet"
        raise InputError("columns", rule, got=repr(columns)[:60])
    from boxscore.data.column_names import ColumnMap

    return ColumnMap.of(columns, shared=all(tables))


def _sizes_of_sides(
    ground_truth: object,
    detections: object,
    box_format: WrittenFormat | None,
    image_sizes: str | Path | Mapping[Any, Sequence[float]] | None,
    image_folder: str | Path | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options for image sizes of the ground truth, and those of the detections."""
    said = {"image_sizes": image_sizes, "image_folder": image_folder}
    given = {name: value for name, value in said.items() if value is not None}
    if not given:
        return {}, {}
    paths = [path_of(side) if isinstance(side, (str, Path)) else None for side in (ground_truth, detections)]
    if paths == [None, None]:
        name, value = next(iter(given.items()))
        raise InputError(name, "be given where files are read", got=repr(str(value))[:60])
    takes = [
        path is not None and reading.takes_sizes(path, side, box_format=form)
        for path, side, form in zip(paths, SIDES, (None, box_format), strict=True)
    ]
    if not any(takes):  # the reader then rejects the options
        takes = [path is not None for path in paths]
    return given if takes[0] else {}, given if takes[1] else {}


def _is_frame(value: object) -> TypeGuard[FrameLike]:
    """Whether a value is a DataFrame, also a lazy one, which is refused later, or has Arrow's interface."""
    kind = type(value)
    is_frame = hasattr(kind, "columns") and (hasattr(kind, "iloc") or hasattr(kind, "collect"))
    return hasattr(kind, "__arrow_c_stream__") or is_frame
