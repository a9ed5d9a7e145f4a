"""Write tables in any format, and report what the format cannot store.

Conventions
-----------
- A format lists in ``holds`` the kinds of content that its files can store, in the words of
  ``_format.CONTENT``. Any other content of a table is an error; with ``lossy`` it is dropped with a warning.
- Ids of images and annotations do not count as content if they run 0, 1, 2, ... or 1, 2, 3, ..., or if the
  image's file name contains the id. Class ids count, unless a reader of the output assigns the same ones:
  results that use them would be scored against other classes.
- Converting fractions of images of unknown size to pixels is always an error.
- For detections only the rows count as content; images and classes belong to the ground truth.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import SKELETON, SUPERCATEGORY
from boxscore.errors import InputError
from boxscore.extensions.hints.renamed_images import OTHER_NAMES
from boxscore.formats._format import Format
from boxscore.formats.registry import format_named, format_names


def writable_formats() -> tuple[str, ...]:
    """Return the formats that can be written.

    Returns
    -------
    tuple of str
    """
    return tuple(name for name in format_names(auto=False) if format_named(name).holds)


def format_of_output(path: Path, name: str = "auto") -> Format:
    """Return the named format, or the one that uses the file extension of the path."""
    if name != "auto":
        return format_named(checks.one_of(name, writable_formats(), name="the format of the output"))
    known = {
        ending: format_named(each) for each in writable_formats() for ending in format_named(each).endings
    }
    if path.suffix.lower() in known:
        return known[path.suffix.lower()]
    raise InputError(
        "the format of the output",
        f"be set with --to, because the file name does not end in {', '.join(known)}",
        got=repr(path.name),
        cause=f"writable formats: {', '.join(writable_formats())}",
    )


def writable(path: Path, *, name: str) -> Format:
    """Return the format of an output of a command without ``--to``, checked before anything is read."""
    try:
        form = format_of_output(path)
    except InputError:
        rule = "end in .json, .csv, .parquet or another ending of a format that boxscore writes"
        raise InputError(name, rule, got=repr(path.name)) from None
    if not path.absolute().parent.is_dir():
        raise InputError(name, "be in a folder that exists", got=repr(str(path)))
    return form


def save_as(
    table: GroundTruth | Detections, path: str | Path, *, format: str = "auto", lossy: bool = False
) -> list[str]:
    """Write a table in a format.

    Parameters
    ----------
    table : GroundTruth or Detections
    path : str or Path
        A file; for VOC and YOLO a folder.
    format : str, default "auto"
        An output format; ``"auto"`` chooses by the extension of ``path``.
    lossy : bool, default False
        Drop content that the format cannot store, with a warning.

    Returns
    -------
    list of str
        The content that was dropped.

    Raises
    ------
    InputError
        When the format cannot store all content of the table and ``lossy`` is false; when the format stores
        pixels and the table has fractions of images of unknown size; when the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> truth = GroundTruth.from_arrays(["a"], ["cat"], [[0, 0, 9, 9]], crowd=[True])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_as(truth, f"{folder}/gt.json")
    []
    """
    return Target(Path(path), format, lossy=lossy).save(table, Path(path))


class Target:
    """An output format, and whether content that it cannot store may be dropped.

    Parameters
    ----------
    path : Path
        Its extension decides for ``"auto"``.
    format : str
    lossy : bool
    strict : bool, default False
        Whether warnings are errors; they must then be raised before the output is written.
    for_server : bool, default False
        Whether messages name the server that takes the files instead of the format.
    """

    def __init__(
        self, path: Path, format: str, *, lossy: bool, strict: bool = False, for_server: bool = False
    ) -> None:
        self.format, self._lossy, self._strict = format_of_output(path, format), lossy, strict
        self._for_server = for_server
        self._ids: str | None = ""

    def check_ids(self, table: BoxTable) -> None:
        """Check the ids of a whole table before it is written in partitions, whose ids have gaps."""
        self._ids = lost(table, self.format).get("ids")

    def check(self, table: BoxTable) -> None:
        """Raise an error if the table cannot be written."""
        self._left_out(table)
        self.format.check_written(table)

    def save(self, table: GroundTruth | Detections, path: Path) -> list[str]:
        """Write a table; return the content that was dropped."""
        with self.without_lost(table, path) as (writable, words):
            self.format.save(writable, path)
        return words

    @contextlib.contextmanager
    def without_lost(
        self, table: GroundTruth | Detections, path: Path
    ) -> Iterator[tuple[GroundTruth | Detections, list[str]]]:
        """Yield the table without content that the format cannot store, and the names of that content."""
        words = self._left_out(table)
        what = ", ".join(words.values())
        state = "would be written" if self._strict else "written"
        missing = "the server does not take" if self._for_server else f"{self.format.name} files cannot store"
        text = f"{path}: {state} except for {what}, which {missing}."
        if words and self._strict:
            warn_user(text)
        yield _without(table, [*words]), list(words.values())
        if words and not self._strict:
            warn_user(text)

    def _left_out(self, table: BoxTable) -> dict[str, str]:
        """Return the content to drop; raise an error if it may not be dropped."""
        words = lost(table, self.format)
        if self._ids is None:
            words.pop("ids", None)
        elif self._ids:
            words["ids"] = self._ids
        if words and not self._lossy:
            raise self._refusal(words, table)
        if not self.format.holds_any_text:
            _check_names(table, self.format)
        return words

    def _refusal(self, words: dict[str, str], table: BoxTable) -> InputError:
        """Return the error for content that the format or the server does not take."""
        holding = [
            name
            for name in writable_formats()
            if all(_can_store(word, _all_held(name, table.schema.name)) for word in words)
        ]
        known = "the server takes" if self._for_server else f"{self.format.name} files can store"
        is_choice = holding and not self._for_server
        return InputError(
            table.source,
            f"contain only data that {known}; --lossy drops the rest",
            got=", ".join(words.values()),
            cause=f"these formats can store it: {', '.join(holding)}" if is_choice else "",
        )


def lost(table: BoxTable, at: Format) -> dict[str, str]:
    """Return the content of a table that a format cannot store: keys of ``CONTENT`` and descriptions.

    Raises
    ------
    InputError
        When the format cannot store the table at all: another kind of table, or fractions without image
        sizes.
    """
    holds = at.holds.get(table.schema.name)
    if holds is None:
        rule = f"be a format that can store {table.schema.name}"
        known = [name for name in writable_formats() if table.schema.name in format_named(name).holds]
        jsonl = "--to huggingface writes metadata.jsonl; " if "huggingface" in known else ""
        cause = f"{jsonl if at.name == 'jsonl' else ''}--to also takes {', '.join(known)}"
        raise InputError("the format of the output", rule, got=repr(at.name), cause=cause)
    if table.units == "fractions" and "fractions" not in holds:
        kind = table.schema.name
        holding = [name for name in writable_formats() if "fractions" in _all_held(name, kind)]
        raise InputError(
            f"boxes of {at.name} files",
            "be pixels",
            got="fractions of images whose sizes are unknown",
            place=table.source,
            cause=f"{checks.GIVE_SIZES}; or --to a format of fractions: {', '.join(holding)}",
        )
    return {word: text for word, text in _content(table, at) if not _can_store(word, holds)}


def unnamed_images(count: int) -> list[str]:
    """Return the ids of images of a file that does not name them."""
    return [f"image {number}" for number in range(count)]


def refuse_unnamed(table: Detections, form: str, path: Path) -> None:
    """Reject detections to be written that were read from a pickle without names of images."""
    ids = unnamed_images(len(table.images))
    if form == "pickled" and ids and {*ids} == {*table.images.ids.tolist()}:
        raise InputError(
            "images",
            "have names, by which the output is evaluated",
            got=short_list(ids, 2),
            place=str(path),
            cause="the COCO file of the ground truth has their names: boxscore convert --gt GT --dt "
            f"{shlex.quote(str(path))} --output named.json writes detections to use instead",
        )


def _check_names(table: BoxTable, at: Format) -> None:
    """Raise an error for names that cannot be read back from a file of lines or tags."""
    for what, names in (
        ("a class name", table.categories.names.tolist()),
        ("an image id", table.images.ids.tolist()),
        ("a file name", table.images.file_names.tolist()),
    ):
        for name in names:
            if isinstance(name, str) and not (name and name.isprintable() and name == name.strip()):
                rule = f"be printable and not start or end with a space in {at.name} files"
                cause = "--remap-classes renames classes" if what == "a class name" else ""
                raise InputError(what, rule, got=repr(name)[:60], place=table.source, cause=cause)


def _all_held(name: str, kind: str) -> frozenset[str]:
    return format_named(name).holds.get(kind, frozenset())


def _can_store(word: str, holds: frozenset[str]) -> bool:
    return (
        word in holds
        or (word.startswith("column ") and "columns" in holds)
        or (word.startswith("class column ") and "class columns" in holds)
        or (word.startswith("image column ") and "image columns" in holds)
        or (word == "ignore together with image labels" and "ignore" in holds)
    )


def _content(table: BoxTable, at: Format) -> Iterator[tuple[str, str]]:
    """Yield the content of a table other than images, classes, upright boxes and scores."""
    # Shapes other than upright boxes.
    masks = table.masks
    if masks is not None and not masks.missing.all():
        yield "masks", f"{counted(int((~masks.missing).sum()), 'mask')}"
    if table.keypoints is not None:
        yield "keypoints", "keypoints"
    if table.rotated is not None:
        yield "rotated", "rotated boxes (the upright boxes around them are kept)"
    if table.quadrilaterals is not None:
        yield "quadrilaterals", "corners (the upright boxes around them are kept)"
    # Boxes that hardly any format can write.
    inverted = int((table.sizes < 0).any(axis=1).sum())
    if inverted:
        yield "negative sides", f"{counted(inverted, 'box')} with a negative side"
    # Flags count only if one is set.
    for name, values in table.columns.items():
        if values.dtype != bool or values.any():
            yield f"column {name}", f"column {name}"
    if isinstance(table, GroundTruth):
        yield from _content_of_truth(table, at)


def _content_of_truth(table: GroundTruth, at: Format) -> Iterator[tuple[str, str]]:
    # Areas and flags of objects.
    other = table.area != table.sizes.prod(axis=1)
    if other.any():
        yield "areas", f"{counted(int(other.sum()), 'area')} other than width times height"
    for flag in ("crowd", "difficult", "ignore"):
        marked = int(getattr(table, flag).sum())
        word = (
            "ignore together with image labels"
            if flag == "ignore" and table.image_labels is not None
            else flag
        )
        if marked:
            drop = " (their boxes are kept; --crowd none drops them)" if flag == "crowd" else ""
            yield word, f"{counted(marked, f'{flag} flag')}{drop}"
    labels = table.image_labels
    if labels is not None:
        # Empty lists count too: they show that classes were verified.
        others, positive = len(labels.of("negative", "not_exhaustive")), len(labels.of("positive"))
        if others or not positive:
            yield "image labels", f"{counted(others, 'label')} of images (negative, not exhaustive)"
        if positive:
            yield "positive labels", f"{counted(positive, 'positive label')} of images"
    # Columns of classes and images.
    for name in table.categories.columns:
        if name not in (
            SUPERCATEGORY,
            SKELETON,
        ):  # most COCO files have it and hardly any other format does, so it does not count
            yield f"class column {name}", f"{name} of classes"
    images = table.images
    sized = int((~np.isnan(images.sizes).any(axis=1)).sum())
    if sized:
        yield "sizes", f"sizes of {counted(sized, 'image')}"
    if any(name is not None for name in images.file_names.tolist()):
        yield "file names", "file names of images"
    for name in [name for name in images.columns if name not in OTHER_NAMES]:
        yield f"image column {name}", f"column {name} of images"
    # Ids count as lost only if they mean something: not 1, 2, 3, ..., and not the names.
    unused = len(table.categories) - len(np.unique(table.category))
    if unused:
        yield "classes", f"{counted(unused, 'class')} without objects"
    if len(set(table.ids.tolist())) < len(table):
        yield "repeated ids", "annotation ids that occur more than once"
    class_ids = table.categories.ids.tolist()
    meaningful = [
        what
        for what, has_meaning in (
            ("images", not _only_count(images.ids) and not _are_in_names(images.ids, images.file_names)),
            ("classes", at.class_ids(table) != class_ids and class_ids != table.categories.names.tolist()),
            ("annotations", table.ids.dtype == object or not _only_count(np.sort(table.ids))),
        )
        if has_meaning
    ]
    if meaningful:
        yield "ids", f"ids of {', '.join(meaningful)}"


def _only_count(ids: NDArray[Any]) -> bool:
    """Whether ids are 0, 1, 2, ... or 1, 2, 3, ..."""
    if ids.dtype == object:
        return False
    return any(np.array_equal(ids, np.arange(start, start + len(ids))) for start in (0, 1))


def _are_in_names(ids: NDArray[Any], file_names: NDArray[Any]) -> bool:
    """Whether every image's id is its file's name, or a number with which the name is written."""
    for identifier, file_name in zip(ids.tolist(), file_names.tolist(), strict=True):
        stem = str(identifier)
        if file_name is not None:
            stem = PurePosixPath(file_name.replace("\\", "/")).stem
        if identifier != stem and not (stem.isdecimal() and str(identifier) == str(int(stem))):
            return False
    return True


def _without(table: BoxTable, words: list[str]) -> Any:
    """Return a table without the content that these words name."""
    # Each word names a column to clear.
    changes: dict[str, Any] = {}
    blank = np.zeros(len(table), dtype=bool)
    for word in words:
        if word in ("masks", "rotated", "quadrilaterals"):
            changes[word] = None
        # Keypoints and their counts go together.
        elif word == "keypoints":
            changes |= {name: None for name in ("keypoints", "keypoint_count") if name in table.instances}
        elif word in ("crowd", "difficult", "ignore"):
            changes[word] = blank
        elif word == "ignore together with image labels":
            changes["ignore"] = blank
        # A format may store some kinds of image labels and not others.
        elif word in ("image labels", "positive labels"):
            kinds = ("positive",) if word == "image labels" else ("negative", "not_exhaustive")
            labels = changes.get("image_labels", getattr(table, "image_labels", None))
            changes["image_labels"] = None if labels is None else labels.of(*kinds)
        elif word == "repeated ids":
            changes["ids"] = np.arange(1, len(table) + 1)
    # Drop user columns by name, and rows last, since all columns have them.
    dropped = {word.removeprefix("column ") for word in words if word.startswith("column ")}
    if dropped & {*table.columns}:
        changes["columns"] = {name: values for name, values in table.columns.items() if name not in dropped}
    rest = table.replaced(**changes) if changes else table
    return rest.take(np.flatnonzero((rest.sizes >= 0).all(axis=1))) if "negative sides" in words else rest
