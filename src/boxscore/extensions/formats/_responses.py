"""Read what programs that run detectors save: lists of detections, one list per image.

Conventions
-----------
- A file is a list, of the image that the file is named after; an object of lists by image name; or a list of
  lists, which are those of the images of the ground truth if their number and order leave no doubt.
- These files hold detections only.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.formats._gathered import decoded
from boxscore.extensions.formats._json_folders import check_keys, files_of_images
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows, detections_of

Record = TypeVar("Record", bound=msgspec.Struct)


class Response(NamedTuple):
    """The detections of one image."""

    image: Id
    detections: list[Any]
    place: str
    """Name of a detection in messages, before its number."""
    file: Path
    is_ordered: bool = False
    """Whether the image follows from the position in the file."""


class DetectionsFormat(RowFormat):
    """A format whose files hold detections only."""

    boxes = "xyxy"
    has_ground_truth = False
    takes = frozenset({"image_sizes"})

    @abc.abstractmethod
    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read the files."""

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the files without ground truth."""
        if not of_results:
            cause = "pass them as detections, with ground truth in another format"
            raise FileFormatError("ground truth", "not be detections", got=str(path), cause=cause)
        return self.rows_of(path, options, None)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections."""
        return detections_of(self.rows_of(path, options, ground_truth), options, ground_truth)


def responses(
    path: Path, record: type[Record], ground_truth: GroundTruth | None, *, tool: str
) -> Iterator[Response]:
    """Yield the detections of every image of a file or folder."""
    kind: Any = list[record | list[record]] | dict[str, list[record]]  # type: ignore[valid-type]
    for file, name in files_of_images(path):
        content = decoded(file, kind, record="detection", whole=(tool, "a list of detections"))
        if isinstance(content, dict):
            if file != path:
                rule, got = "be a list of detections in a folder", "an object of lists by image"
                raise FileFormatError(tool, rule, got=got, place=str(file), cause="pass this file alone")
            check_keys(file)
            for image, detections in content.items():
                yield Response(image, detections, f"image {image!r}, detection", file)
            continue
        nested = [isinstance(one, list) for one in content]
        if not any(nested):
            yield Response(name, content, "detection", file)
            continue
        # A list of lists lacks the names of images.
        if not all(nested) or file != path:
            rule = "be a list of detections" if all(nested) else "be detections, or lists of them"
            raise FileFormatError(
                tool, rule, got="a list of lists" if all(nested) else "both", place=str(file)
            )
        images = images_in_order(len(content), ground_truth, file)
        for number, (image, detections) in enumerate(zip(images, content, strict=True)):
            yield Response(image, detections, f"list {number}, detection", file, is_ordered=True)


def images_in_order(count: int, ground_truth: GroundTruth | None, path: Path) -> Sequence[Id]:
    """Return the images of lists without names; raise unless they are as many as in the ground truth.

    The order by id and that by file name must be the same.
    """
    name_them = 'save an object of lists by image, {"a.jpg": [...], ...}, or a file per image'
    if ground_truth is None:
        raise FileFormatError("lists of detections", "name their images", got=str(path), cause=name_them)
    images = ground_truth.images
    if count != len(images):
        raise InputError(
            "lists without image names",
            f"be as many as the images of the ground truth ({len(images):,})",
            got=f"{count:,}",
            place=str(path),
            cause=name_them,
        )
    if images.names != sorted(images.names):
        rule = "be of ground truth whose order by id and by file name is the same"
        raise InputError(
            "lists without image names", rule, got="two orders", place=str(path), cause=name_them
        )
    if count:
        text = (
            f"{path}: {counted(count, 'list')} without image names, read in the order of the images of the "
            f"ground truth, {images.names[0]} to {images.names[-1]}. To be sure, {name_them}."
        )
        warn_user(BoxscoreWarning(text, severity="note"))
    ordered: Sequence[Id] = images.ids.tolist()
    return ordered
