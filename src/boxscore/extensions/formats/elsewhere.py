"""Write detections in another format than that of the input, for commands that rewrite them.

Conventions
-----------
- The extension of the output chooses the format, if it is not that of the input.
- Images are named by their file names, and classes by their names, unless the format has ids: numbers that
  only count images or classes mean something else elsewhere. Class numbers without names are rejected.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from boxscore._utils import checks
from boxscore._utils.files import is_file, is_there
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.data_tools.converting import Target, refuse_unnamed, writable_formats
from boxscore.formats._format import Format
from boxscore.formats.registry import format_named

_NUMBERED = ("mot", "mmdetjson", "pickled")
"""Formats whose class numbers, if they have no names, are positions in a list that another file has."""


class Elsewhere:
    """An output in another format than the input."""

    def __init__(self, form: Format, path: Path, output: Path) -> None:
        self._form, self._path, self._output = form, path, output

    def save(self, table: Detections) -> None:
        """Write a table, after a warning of columns that the format cannot store, and before a note."""
        target = Target(self._output, "auto", lossy=True, strict=True)
        refuse_unnamed(table, self._form.name, self._path)
        has_ids = "ids" in self._form.holds.get("ground truth", ())
        if self._form.name in _NUMBERED:
            table = table.replaced(categories=dataclasses.replace(table.categories, are_positions=True))
        if not has_ids:
            needs_sizes = table.units == "fractions" and "fractions" not in target.format.holds["detections"]
            table = with_names(table, also=f"; and {checks.GIVE_SIZES}" if needs_sizes else "")
        target.save(table, self._output)
        text = f"{self._output}: written as {target.format.name}{self._meaning(table, target.format)}."
        warn_user(BoxscoreWarning(text, severity="note"))

    def _meaning(self, table: Detections, target: Format) -> str:
        """Return what the note says of the ids that are written, and how to get others."""
        if "ids" in self._form.holds.get("ground truth", ()):
            nameless = table.categories.names.tolist() == [*map(str, table.categories.ids.tolist())]
            if self._form.name != "coco" or not nameless or not len(table):
                return ""
            return (
                ", with ids in place of class names, because COCO results have no names; for names, pass "
                "--dt-classes FILE (a line per id, from 0), or read the output of boxscore convert --gt GT "
                f"--dt {self._path} --output named{self._output.suffix}"
            )
        text = ", with the names of images and classes"
        if target.name != "coco":
            return text
        return (
            f"{text} as ids, which only boxscore reads; for the ids of a data set, "
            f"boxscore convert --gt GT --dt {self._output} --output with_ids.json"
        )


def elsewhere(form: Format, path: Path, output: Path) -> Elsewhere | None:
    """Return what writes an output of detections, or None if the format of the input fits its extension.

    Raises
    ------
    InputError
        When the extension is neither that of the input nor of a format that boxscore writes.
    """
    by_ending = {
        ending: name
        for name in writable_formats()
        for ending in format_named(name).endings
        if "detections" in format_named(name).holds
    }
    name = by_ending.get(output.suffix.lower())
    if name is not None:
        return None if name == form.name else Elsewhere(form, path, output)
    given = path.suffix.lower()
    stem, ending = output.name.partition(".")[0] or "detections", ".json"
    if "detections" not in form.holds:
        rule = f"end in {', '.join(by_ending)}, because boxscore does not write {form.name} files"
    elif (form.endings or given in by_ending) and is_file(path) and not _is_stream(output):
        ending = given if given in by_ending else form.endings[0]
        others = ", ".join(each for each in by_ending if each != ending)
        rule = f"end in {ending} for {form.name}, or in that of another format ({others})"
    else:
        return None  # a folder of files, or a stream
    cause = f"e.g. --output {stem}{ending}"
    if "detections" in form.holds and not output.suffix:
        cause += (
            f", of which boxscore convert --gt GT --dt {stem}{ending} --to yolo --output {stem} makes files"
        )
    raise InputError("--output", rule, got=repr(output.name), cause=cause)


def _is_stream(output: Path) -> bool:
    """Whether an output is a pipe or a device, whose name says nothing of the format."""
    return output.is_relative_to("/dev") or (is_there(output) and not (is_file(output) or output.is_dir()))


def with_names(table: Detections, *, also: str = "") -> Detections:
    """Return a table whose image ids are file names, where known, and whose class ids are names.

    ``also`` is what an error adds to its advice: what else the output needs.

    Raises
    ------
    InputError
        When classes are numbers from 0 without names, which another format would take for ids.
    """
    return _renamed_images(with_names_as_class_ids(table, also=also))


def with_names_as_class_ids(table: Detections, *, also: str = "") -> Detections:
    """Return a table whose class ids are their names; ids without names, or with the same, stay."""
    classes = table.categories
    names, ids = classes.names.tolist(), classes.ids.tolist()
    if names != [*map(str, ids)]:
        if len(set(names)) < len(names):
            return table
        renamed = Categories.build(names)
        return table.replaced(
            categories=renamed, category=renamed.rows(as_ids(names, name="classes"))[table.category]
        )
    if classes.are_positions and len(table):
        rule = "have names to be written in another format, which would take their numbers for ids"
        got = f"numbers without names ({short_list(ids)})"
        cause = "--dt-classes FILE has the names, one per line in the order of their numbers" + also
        raise InputError("classes", rule, got=got, place=table.source, cause=cause)
    return table


def _renamed_images(table: Detections) -> Detections:
    """Return a table whose image ids are file names, if they are known and different."""
    images = table.images
    names = images.file_names.tolist()
    if None in names or len(set(names)) < len(names):
        return table
    renamed = Images.build(names, file_names=names, sizes=images.sizes)
    return table.replaced(images=renamed, image=renamed.rows(as_ids(names, name="images"))[table.image])
