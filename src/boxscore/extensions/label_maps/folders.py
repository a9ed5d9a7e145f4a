"""Pair the label maps of two folders, and compare them in several processes.

Conventions
-----------
- Each process handles a chunk of the images; results are joined in order, so that they do not depend on the
  number of processes.
- Maps of labels are paired by their names without the endings. Predictions without a truth are ignored; a
  truth without a prediction is an error.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from boxscore._utils import checks
from boxscore._utils.processes import Forked, Workers, worker_count
from boxscore._utils.progress import progress as shown
from boxscore._utils.text import short_list
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.label_maps.counting import LabelCounts, PixelPairs, count_pairs
from boxscore.extensions.label_maps.panoptic import (
    Conflict,
    CountedSegments,
    PanopticQuality,
    compared,
    warn_of_conflicts,
)
from boxscore.extensions.label_maps.reading import (
    PanopticImage,
    read_panoptic_prediction,
    read_panoptic_truth,
    read_segment_ids,
)
from boxscore.extensions.label_maps.rules import (
    PanopticRules,
    SemanticRules,
    load_panoptic_rules,
    load_semantic_rules,
)
from boxscore.extensions.label_maps.semantic import (
    SemanticIoU,
    label_classes,
    labels_of,
    require_counted,
)
from boxscore.extensions.masks._png import inside, read_labels, require_pillow

WORTH_FORKING = 16
"""Number of images from which a second process pays off, some tenths of a second."""

Item = TypeVar("Item")
Part = TypeVar("Part")


# ---------------------------------------------------------------- panoptic


def panoptic_quality_of_files(
    truth: str | Path,
    truth_folder: str | Path,
    prediction: str | Path,
    prediction_folder: str | Path,
    *,
    rules: str | Path | Mapping[str, Any] | PanopticRules = "panopticapi",
    workers: Workers = "auto",
    progress: bool = False,
) -> PanopticQuality:
    """Compute panoptic quality from COCO or Cityscapes panoptic files.

    Parameters
    ----------
    truth, prediction : str or Path
        JSON files with ``annotations`` (``image_id``, ``file_name``, ``segments_info``); that of the truth
        also has ``categories`` (``id``, ``isthing``).
    truth_folder, prediction_folder : str or Path
        Folders of the maps that ``file_name`` names.
    rules : str, Path, mapping or PanopticRules, default "panopticapi"
    workers : int or "auto", default "auto"
        Number of processes, this one included; ``"auto"`` as for :func:`boxscore.evaluate`.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.

    Returns
    -------
    PanopticQuality
        Covers all images of the truth.

    Raises
    ------
    FileFormatError
        When a file cannot be read or has another format.
    InputError
        When an image lacks a prediction, or its map and table disagree.
    """
    # Read the tables of both sides; every image of the truth must have a prediction.
    chosen = load_panoptic_rules(rules)
    folders = [_folder(truth_folder, "the folder of the truth"), _folder(prediction_folder, "of predictions")]
    require_pillow()
    known = read_panoptic_truth(Path(truth))
    predicted = read_panoptic_prediction(Path(prediction), known.classes)
    missing = [image for image in known.images if image not in predicted]
    if missing:
        got = f"none for {len(missing):,} of {len(known.images):,}: {short_list(missing)}"
        raise InputError("an image of the truth", "have a prediction", got=got, place=str(prediction))
    # File names must not point outside their folder.
    images = []
    for image, true_table in known.images.items():
        predicted_table = predicted[image]
        paths = (
            inside(folders[0], true_table.file_name, place=str(truth)),
            inside(folders[1], predicted_table.file_name, place=str(prediction)),
        )
        images.append(PanopticImage(image, paths, (true_table.segments, predicted_table.segments)))
    # Each process reads and compares its own maps, and returns only counted segments.
    count = functools.partial(_panoptic_image, rules=chosen)
    results = _in_processes(list(enumerate(images)), count, workers=workers, progress=progress)
    warn_of_conflicts([each for result in results for each in result.conflicts])
    rows = CountedSegments.joined([result.counted for result in results])
    return PanopticQuality(chosen, known.classes, tuple(known.images), rows)


class _ImageResult(NamedTuple):
    """The counted segments of an image, and the conflicts in its truth."""

    counted: CountedSegments
    conflicts: list[Conflict]


def _panoptic_image(item: tuple[int, PanopticImage], *, rules: PanopticRules) -> _ImageResult:
    number, image = item
    conflicts: list[Conflict] = []
    maps = (read_segment_ids(image.paths[0]), read_segment_ids(image.paths[1]))
    paths = (str(image.paths[0]), str(image.paths[1]))
    segments = compared(number, maps, *image.tables, rules, places=paths, conflicts=conflicts)
    return _ImageResult(segments, conflicts)


# ---------------------------------------------------------------- semantic


def semantic_iou_of_folders(
    truth: str | Path,
    prediction: str | Path,
    *,
    truth_ending: str = ".png",
    prediction_ending: str = ".png",
    classes: Any = None,
    rules: str | Path | Mapping[str, Any] | SemanticRules = "plain",
    workers: Workers = "auto",
    progress: bool = False,
) -> SemanticIoU:
    """Compute mean IoU and accuracies of two folders of label maps.

    Parameters
    ----------
    truth, prediction : str or Path
        Folders, searched recursively, or two PNG files.
    truth_ending, prediction_ending : str, default ".png"
        Ending of the maps' file names; the rest of a name must be the same in both folders. Cityscapes' truth
        has ``"_gtFine_labelIds.png"``.
    classes : int, list of str, or mapping of int to str, optional
        As for :func:`boxscore.semantic_iou`.
    rules : str, Path, mapping or SemanticRules, default "plain"
    workers : int or "auto", default "auto"
        Number of processes, this one included; ``"auto"`` as for :func:`boxscore.evaluate`.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.

    Returns
    -------
    SemanticIoU
        Covers all maps of the truth; the id of an image is its file name without the ending.

    Raises
    ------
    FileFormatError
        When a file cannot be read or is not a label map.
    InputError
        When a map lacks a prediction, sizes differ, or a label is neither a class nor ignored.
    """
    # Two files are one pair; files in folders are paired by name.
    chosen, given = load_semantic_rules(rules), label_classes(classes)
    first, second = Path(truth), Path(prediction)
    require_pillow()
    if first.is_file() and second.is_file():
        files = {first.stem: (first, second)}
    else:
        true_maps = _maps_in(_folder(first, "the truth"), truth_ending, "the truth")
        predicted_maps = _maps_in(_folder(second, "the prediction"), prediction_ending, "the prediction")
        # Every map of the truth needs a prediction; other predictions are ignored.
        missing = [name for name in true_maps if name not in predicted_maps]
        if missing:
            got = f"none for {len(missing):,} of {len(true_maps):,}: {short_list(missing)}"
            raise InputError("a map of the truth", "have a prediction", got=got, place=str(second))
        files = {name: (path, predicted_maps[name]) for name, path in true_maps.items()}
    # Each process returns integer pixel counts per pair of labels, which add up exactly.
    pairs = _in_processes(list(files.values()), _semantic_image, workers=workers, progress=progress)
    result = SemanticIoU(chosen, given, tuple(files), LabelCounts.of(pairs))
    require_counted(result)
    return result


def _semantic_image(paths: tuple[Path, Path]) -> PixelPairs:
    truth = labels_of(read_labels(paths[0]), name="the truth", place=str(paths[0]))
    prediction = labels_of(read_labels(paths[1]), name="the prediction", place=str(paths[1]))
    return count_pairs(truth, prediction, name="the prediction", place=str(paths[1]))


def _folder(path: str | Path, name: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        got = repr(str(folder)) if not folder.exists() else f"the file {str(folder)!r}"
        raise InputError(name, "be a folder", got=got)
    return folder


def _maps_in(folder: Path, ending: str, name: str) -> dict[str, Path]:
    """Return the maps of a folder by name without the ending, sorted by name."""
    paths = sorted(path for path in folder.rglob(f"*{_literal(ending)}") if path.is_file())
    if not paths:
        raise InputError(name, f"hold files that end with {ending}", got="none", place=str(folder))
    maps: dict[str, Path] = {}
    for path in paths:
        stem = path.name.removesuffix(ending)
        if stem in maps:
            got = f"{maps[stem].relative_to(folder)} and {path.relative_to(folder)}"
            raise FileFormatError("maps", "have different names", got=got, place=str(folder))
        maps[stem] = path
    return maps


def _literal(ending: str) -> str:
    import glob

    return glob.escape(checks.plain_name(ending, name="the ending of maps"))


# ---------------------------------------------------------------- several processes


def _in_processes(
    items: Sequence[Item], count: Callable[[Item], Part], *, workers: Workers, progress: bool
) -> list[Part]:
    """Apply a function to every item, in this process and in others; return the results in order."""
    few = workers == "auto" and len(items) < WORTH_FORKING
    shares = 1 if few else min(worker_count(workers), len(items)) or 1
    ends = [len(items) * number // shares for number in range(shares + 1)]
    parts = [items[start:end] for start, end in itertools.pairwise(ends)]
    forked = Forked([functools.partial(_results_of, part, count) for part in parts[1:]])
    try:
        here: Any = parts[0]
        here = shown(here, desc="images", unit="image", unit_scale=shares) if progress else here
        first = [count(item) for item in here]
        return [*first, *(result for part in forked.results() for result in part)]
    finally:
        forked.close()


def _results_of(items: Sequence[Item], count: Callable[[Item], Part]) -> list[Part]:
    return [count(item) for item in items]
