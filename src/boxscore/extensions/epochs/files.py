"""Find the results of each epoch in a folder, by the number that varies in their names.

Conventions
-----------
- Results are files with an ending of :data:`ENDINGS`, or folders that hold text files (YOLO, VOC).
- Paths that differ only in numbers are a *series*, such as ``epoch*.bbox.json``. A folder has one series of
  two files or more, of which one number is the epoch: the one that varies, or, if several do, the one after
  a word of :data:`WORDS`.
- Ambiguous names are refused, with the patterns to choose from.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from boxscore._utils.files import bytes_below, nearest_file
from boxscore._utils.text import counted, short_list
from boxscore.errors import InputError
from boxscore.extensions.decisions.history import fingerprint

ENDINGS = (".json", ".jsonl", ".csv", ".parquet", ".json.gz", ".jsonl.gz", ".csv.gz")
"""Endings of results files in a folder."""

WORDS = ("epoch", "ep", "e", "checkpoint", "ckpt", "iter", "iteration", "step")
"""Words before the number of an epoch, the most certain first."""

DEEPEST = 4
"""Maximum number of folders between the folder and a results file."""

NUMBER = re.compile("[0-9]+")

MOST_MISSING = 1000
"""Maximum number of missing epochs in a row that are listed."""


class EpochFiles(NamedTuple):
    """The results of each epoch, in ascending order."""

    paths: Mapping[int, Path]
    left_out: Sequence[Path]
    """Results in the folder without an epoch, such as those of ``latest.json``."""

    def missing(self) -> list[int]:
        """Return the epochs that are not there although the others are equally spaced."""
        return missing_epochs(list(self.paths))

    def same(self) -> list[list[Path]]:
        """Return groups of files that are the same bytes, with those that were left out."""
        # Only files of the same size are hashed.
        sizes: dict[int, list[Path]] = {}
        for path in (*self.paths.values(), *self.left_out):
            if path.exists():
                sizes.setdefault(bytes_below(path), []).append(path)
        groups: dict[str | None, list[Path]] = {}
        for paths in sizes.values():
            for path in paths if len(paths) > 1 else ():
                groups.setdefault(fingerprint(path), []).append(path)
        return [paths for digest, paths in groups.items() if digest and len(paths) > 1]


def missing_epochs(epochs: Sequence[int]) -> list[int]:
    """Return the numbers that are missing in ascending ones, most of which are equally spaced."""
    steps = [after - before for before, after in itertools.pairwise(epochs)]
    if len(steps) < 2:
        return []
    step = min(set(steps), key=lambda one: (-steps.count(one), one))
    if 2 * steps.count(step) <= len(steps):
        return []
    pairs = itertools.pairwise(epochs)
    return [
        epoch
        for before, after in pairs
        if (after - before) % step == 0 and after - before <= MOST_MISSING * step
        for epoch in range(before + step, after, step)
    ]


def find_epochs(given: str | Path | Sequence[str | Path], *, number: str | None = None) -> EpochFiles:
    """Find the results of each epoch.

    Parameters
    ----------
    given : str, Path, or a sequence of them
        A folder, a pattern such as ``"runs/*/predictions.json"``, or two or more results files.
    number : str, optional
        Regular expression whose first group is the epoch, matched in the path of each file. By default the
        number that varies.

    Returns
    -------
    EpochFiles

    Raises
    ------
    InputError
        When fewer than two epochs are found, two files have the same epoch, or there is more than one series
        of files or of numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("epoch_2.bbox.json", "epoch_10.bbox.json", "latest.json"):
    ...     _ = (folder / name).write_text("[]")
    >>> found = find_epochs(folder)
    >>> {epoch: path.name for epoch, path in found.paths.items()}
    {2: 'epoch_2.bbox.json', 10: 'epoch_10.bbox.json'}
    >>> [path.name for path in found.left_out]
    ['latest.json']
    """
    listed = [given] if isinstance(given, str | Path) else list(given)
    base, paths = _paths_of([Path(path) for path in listed])
    place = short_list(map(str, listed), 3)
    if number is not None:
        numbered, left_out = _by_expression(paths, number)
    else:
        numbered, left_out = _by_series(paths, base, place)
    epochs: dict[int, Path] = {}
    for epoch, path in sorted(numbered, key=lambda pair: (pair[0], str(pair[1]))):
        if epoch in epochs:
            got = f"epoch {epoch} in {epochs[epoch]} and {path}"
            runs = _patterns_of_runs(epoch, (epochs[epoch], path), [path for _, path in numbered])
            cause = f"name one run, as a pattern in quotes: {' or '.join(runs)}" if runs else ""
            folders = _pattern_of_folders(path for _, path in numbered)
            if folders and path.parent == epochs[epoch].parent:
                cause = f"if a folder is an epoch, name the folders: {folders}"
            raise InputError("the results of epochs", "have one file for each epoch", got=got, cause=cause)
        epochs[epoch] = path
    if len(epochs) < 2:
        rule = "be those of two epochs or more, with the epoch in their names, such as epoch_3.json"
        got = short_list([path.name for path in paths], 5) or "no results file"
        raise InputError(f"the results in {place}", rule, got=got)
    return EpochFiles(epochs, sorted(left_out))


def _patterns_of_runs(epoch: int, paths: tuple[Path, Path], known: list[Path]) -> list[str]:
    """Return a pattern for the run of each of two results of one epoch; none if they are of one run."""
    names = [path.as_posix() for path in known]
    patterns = []
    for path, other in (paths, paths[::-1]):
        text = path.as_posix()
        fits: dict[str, int] = {}
        # Any of the numbers may be the epoch: take the one that also varies in the other files of the run.
        for match in NUMBER.finditer(text):
            before, after = re.escape(text[: match.start()]), re.escape(text[match.end() :])
            run = re.compile(f"{before}[0-9]+{after}")
            count = sum(run.fullmatch(name) is not None for name in names)
            if int(match[0]) == epoch and count > 1 and not run.fullmatch(other.as_posix()):
                fits[f"{glob.escape(text[: match.start()])}*{glob.escape(text[match.end() :])}"] = count
        if fits:
            patterns.append(shlex.quote(max(fits, key=lambda one: fits[one])))
    return patterns


def _pattern_of_folders(paths: Iterable[Path]) -> str:
    """Return the pattern in quotes of the folders of files, if only numbers in it differ; otherwise empty."""
    folders = {path.parent.as_posix() for path in paths}
    texts = {tuple(NUMBER.split(folder)) for folder in folders}
    if len(folders) < 2 or len(texts) > 1:
        return ""
    numbers = zip(*map(NUMBER.findall, folders), strict=True)
    stars = ["*" if len(set(column)) > 1 else column[0] for column in numbers]
    first, *rest = map(glob.escape, texts.pop())
    return shlex.quote(first + "".join(star + text for star, text in zip(stars, rest, strict=True)))


def _paths_of(given: list[Path]) -> tuple[Path | None, list[Path]]:
    """Return the folder that was given, if any, and all results files."""
    if len(given) > 1:
        return None, list(dict.fromkeys(given))
    path = given[0]
    if path.is_dir():
        return path, _below(path, DEEPEST)
    if path.exists():
        return None, [path]
    if not any(mark in str(path) for mark in "*?["):
        raise InputError("the results of epochs", "exist", got=repr(str(path)), cause=nearest_file(path))
    pattern = str(path.relative_to(path.anchor))
    return None, sorted(Path(path.anchor or ".").glob(pattern))


def _below(folder: Path, deepest: int) -> list[Path]:
    """Return the results files in a folder, and the folders of text files; nothing that is hidden."""
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}.") from None
    found = [entry for entry in entries if entry.name.lower().endswith(ENDINGS) and entry.is_file()]
    folders = [entry for entry in entries if entry.is_dir()] if deepest else []
    inner = [path for entry in folders for path in _below(entry, deepest - 1)]
    texts = any(entry.suffix == ".txt" and entry.is_file() for entry in entries)
    # A folder of text files is the results of one epoch, such as labels of YOLO.
    return [folder] if texts and not found and not inner and deepest < DEEPEST else [*found, *inner]


def _by_expression(paths: list[Path], number: str) -> tuple[list[tuple[int, Path]], list[Path]]:
    """Take the epoch from the first group of a regular expression."""
    try:
        pattern = re.compile(number)
    except re.error as error:
        raise InputError("the expression of the epoch", f"be valid ({error})", got=repr(number)) from None
    if not pattern.groups:
        rule = "have a group for the epoch, such as 'epoch_([0-9]+)'"
        raise InputError("the expression of the epoch", rule, got=repr(number))
    numbered, left_out = list[tuple[int, Path]](), []
    for path in paths:
        match = pattern.search(path.as_posix())
        digits = "" if match is None else match[1] or ""
        if NUMBER.fullmatch(digits):
            numbered.append((int(digits), path))
        else:
            left_out.append(path)
    return numbered, left_out


def _by_series(paths: list[Path], base: Path | None, place: str) -> tuple[list[tuple[int, Path]], list[Path]]:
    """Take the number that varies in the only series of paths."""
    names = [(path if base is None else path.relative_to(base)).as_posix() for path in paths]
    series: dict[tuple[str, ...], list[int]] = {}
    for at, name in enumerate(names):
        series.setdefault(tuple(NUMBER.split(name)), []).append(at)
    many = {texts: rows for texts, rows in series.items() if len(texts) > 1 and len(rows) > 1}
    if len(many) > 1:
        root = "" if base is None else f"{base}{os.sep}"
        patterns = [f"'{root}{'*'.join(texts)}' ({counted(len(series[texts]), 'file')})" for texts in many]
        cause = "name one series, as a pattern in quotes, or --number, such as --number 'epoch_([0-9]+)'"
        folders = _pattern_of_folders(paths[at] for rows in many.values() for at in rows)
        if folders:
            cause = f"if a folder is an epoch, name the folders: {folders}; otherwise {cause}"
        got = short_list(patterns, 5)
        raise InputError(f"the results in {place}", "be one series of files", got=got, cause=cause)
    if not many:
        return [], paths
    ((texts, rows),) = many.items()
    numbers = [NUMBER.findall(names[at]) for at in rows]
    column = _column_of(texts, numbers, place)
    numbered = [(int(line[column]), paths[at]) for line, at in zip(numbers, rows, strict=True)]
    return numbered, [path for at, path in enumerate(paths) if at not in set(rows)]


def _column_of(texts: tuple[str, ...], numbers: list[list[str]], place: str) -> int:
    """Return which number of a series is the epoch; ``texts`` are what is before and after each."""
    values = [[int(line[column]) for line in numbers] for column in range(len(texts) - 1)]
    varying = [column for column, of_column in enumerate(values) if len(set(of_column)) > 1]
    # Numbers that are always the same, as in epoch3/epoch_3.json, are one.
    distinct = list({tuple(values[column]): column for column in reversed(varying)}.values())
    if len(distinct) == 1:
        return distinct[0]
    if not distinct:
        return 0  # each file has the same number, which is refused as two files of one epoch
    for word in WORDS:
        named = [c for c in distinct if re.search(rf"(^|[^a-z]){word}[-_=. ]*$", texts[c].lower())]
        if len(named) == 1:
            return named[0]
    pattern = "N".join(texts)
    cause = "say which is the epoch with --number, such as --number 'epoch_([0-9]+)'"
    raise InputError(
        f"the results in {place}",
        "have one number that varies",
        got=f"{len(distinct)} in {pattern}",
        cause=cause,
    )
