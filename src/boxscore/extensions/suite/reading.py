"""Read a suite from a TOML file, or from a folder with a sub-folder for each set.

Conventions
-----------
- Paths are relative to the file. ``{set}`` in a path is replaced by the name of a set.
- Sets are listed as ``[sets.NAME]`` and in ``suite.sets``. Without either, sets are found by the path
  patterns.
- In a folder, the ground truth of a set is its only file or folder with a name in :data:`TRUTH_NAMES`; every
  other file contains the results of the model with its name. Names that begin with a dot are skipped.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import is_there
from boxscore._utils.given_paths import address_of, is_address
from boxscore._utils.records import record
from boxscore._utils.text import short_list
from boxscore.errors import InputError
from boxscore.extensions.hints.numbering import CLASS_MAPS
from boxscore.extensions.suite.folds import LEAST_FOLDS
from boxscore.protocols import load_protocol, read_toml

TRUTH_NAMES = ("ground_truth", "instances", "annotations", "_annotations.coco", "labels", "gt")
"""File names of ground truth in a folder, without extension."""

TRUTH_OPTIONS = (
    *("format", "image_set", "classes", "image_sizes", "image_folder", "box_format", "columns"),
    *("segments", "image_labels", "hierarchy"),
)
RESULT_OPTIONS = ("class_map", "unlisted_images")
PATH_OPTIONS = ("image_sizes", "image_folder", "segments", "image_labels", "hierarchy")
OR_PATH: dict[str, tuple[type, tuple[str, ...]]] = {
    "classes": (list, ()),
    "class_map": (dict, ("auto", *CLASS_MAPS)),
}
"""Options that accept a path, or a type, or one of some words."""
SUITE_KEYS = (
    "name",
    "folds",
    "ground_truth",
    "sets",
    "protocol",
    "metric",
    "group",
    *TRUTH_OPTIONS,
    *RESULT_OPTIONS,
)
SET_KEYS = ("ground_truth", "results", "protocol", "metric", "group", *TRUTH_OPTIONS, *RESULT_OPTIONS)

COLUMNS = ("set", "fold", "groups", "images", "metric")
"""Columns of the table of sets, before those of the models."""

NAME = re.compile(r"[\w][\w .+@=-]*")
"""Pattern for names of sets and models, which are also names of folders."""


@record(frozen=True)
class SuiteSet:
    """One data set of a suite.

    Attributes
    ----------
    name : str
    ground_truth : Path
    results : mapping of str to Path
        Path to the detections of each model.
    protocol : str
        A name, or the path of a TOML file.
    groups : tuple of str
        Groups that the set belongs to.
    truth_options, result_options : mapping of str to object
        Options of :func:`boxscore.load_ground_truth` and of :func:`boxscore.load_detections`.
    metric : str, optional
        The summary metric of its protocol to show in the table, if the set names one.
    """

    name: str
    ground_truth: Path
    results: Mapping[str, Path]
    protocol: str
    groups: tuple[str, ...]
    truth_options: Mapping[str, Any]
    result_options: Mapping[str, Any]
    metric: str | None = None


@record(frozen=True)
class Suite:
    """The sets and models of a suite.

    Attributes
    ----------
    name : str
    sets : tuple of SuiteSet
    models : tuple of str
        Names; the others are compared with the first.
    folds : int
        Number of folds of the cross-validation whose folds the sets are; 0 if they are other data sets.
    """

    name: str
    sets: tuple[SuiteSet, ...]
    models: tuple[str, ...]
    folds: int = 0

    @property
    def unit(self) -> str:
        """Name of a set in columns and texts: ``fold`` or ``set``."""
        return "fold" if self.folds else "set"

    @classmethod
    def read(cls, path: str | Path) -> Suite:
        """Read a suite.

        Parameters
        ----------
        path : str or Path
            A TOML file, or a folder with a sub-folder for each set.

        Returns
        -------
        Suite

        Raises
        ------
        InputError
            When a key is unknown, a value is invalid, or sets or models are missing.
        """
        path = Path(path)
        suite = _read_folder(path) if path.is_dir() else _read_file(path)
        for model in suite.models:
            if model in COLUMNS:
                rule = f"differ from {', '.join(COLUMNS)}, which are columns of the table"
                raise InputError("a name among the models", rule, got=repr(model), place=str(path))
        causes = {
            "sets": "a table [sets.NAME] adds one, and {set} in a path finds those with such a file",
            "models": 'a line NAME = "PATH" below [models] adds one',
        }
        if path.is_dir():
            causes = {"sets": "each sub-folder is one", "models": "each file of results is one"}
        for what, names in (("sets", [one.name for one in suite.sets]), ("models", suite.models)):
            if not names:
                raise InputError("a suite", f"have {what}", got="none", place=str(path), cause=causes[what])
            for name in names:
                _check_name(name, what, str(path))
        return suite.of_folds(suite.folds) if suite.folds else suite

    def of_folds(self, folds: int) -> Suite:
        """Return the suite, whose sets are the folds of a cross-validation.

        Parameters
        ----------
        folds : int
            Number of folds. With several rounds, there are as many sets for each.

        Returns
        -------
        Suite

        Raises
        ------
        InputError
            When there are fewer than 3 folds, or the number of sets is not a multiple of it.
        """
        checks.whole_number(folds, LEAST_FOLDS, name="folds")
        if not self.sets or len(self.sets) % folds:
            rule = f"be a multiple of the {folds} folds"
            raise InputError("the number of sets", rule, got=len(self.sets))
        return dataclasses.replace(self, folds=folds)


def _check_name(name: str, what: str, place: str) -> None:
    if not NAME.fullmatch(name):
        rule = "begin with a letter or digit and have letters, digits, blanks and ._+@=- only"
        raise InputError(f"a name among the {what}", rule, got=repr(name)[:80], place=place)


def _read_file(path: Path) -> Suite:
    # Check every key by name, so that a typo does not silently select a default.
    config, place = read_toml(path), str(path)
    for table in config:
        if table not in ("suite", "models", "sets"):
            raise InputError(f"{place}: {checks.unknown_key(table, table, ('suite', 'models', 'sets'))}")
    common, models, tables = (_table(config, name, place) for name in ("suite", "models", "sets"))
    _check_keys(common, SUITE_KEYS, "suite", place)
    for name, pattern in models.items():
        _text(pattern, f"models.{name}", place)
    # Sets are listed, have a table of their own, or are found by path patterns.
    listed = common.get("sets", [])
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise InputError("suite.sets", "be a list of names", got=repr(listed)[:80], place=place)
    names = list(dict.fromkeys([*listed, *tables]))
    if not names:
        patterns = [common.get("ground_truth", ""), *models.values()]
        names = sorted({name for pattern in patterns for name in _fitting(path.parent, pattern)})
    # The keys of a set override the common ones.
    sets = []
    for name in names:
        own = tables.get(name, {})
        if not isinstance(own, dict):
            raise InputError(f"sets.{name}", "be a table", got=repr(own)[:80], place=place)
        _check_keys(own, SET_KEYS, f"sets.{name}", place)
        sets.append(_set(name, {**common, **own}, models, path.parent, place))
    title = common.get("name", path.stem)
    folds = common.get("folds", 0)
    if "folds" in common:
        checks.whole_number(folds, LEAST_FOLDS, name="suite.folds")
    return Suite(_text(title, "suite.name", place), tuple(sets), tuple(models), folds)


def _table(config: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
    table = config.get(name, {})
    if not isinstance(table, dict):
        raise InputError(name, "be a table", got=repr(table)[:80], place=place)
    return table


def _check_keys(table: Mapping[str, Any], known: Sequence[str], name: str, place: str) -> None:
    for key in table:
        if key not in known:
            raise InputError(f"{place}: {checks.unknown_key(f'{name}.{key}', key, known)}")


def _text(value: Any, name: str, place: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise InputError(name, "be a string that is not empty", got=repr(value)[:80], place=place)
    return value


def _set(
    name: str, table: Mapping[str, Any], models: Mapping[str, str], folder: Path, place: str
) -> SuiteSet:
    """Make a set from its table and the common keys."""
    # Results of a set are given by model, which must be known.
    where = f"sets.{name}"
    if "ground_truth" not in table:
        raise InputError(f"{where}.ground_truth", "be given", got="none", place=place)
    own = table.get("results", {})
    if not isinstance(own, dict):
        raise InputError(f"{where}.results", "be a table of model = path", got=repr(own)[:80], place=place)
    for model in own:
        checks.one_of(model, list(models), name=f"a model of {where}.results")

    # Paths are relative to the suite's file; {set} is the set's name.
    def path_of(text: Any, key: str) -> Path:
        text = _text(text, key, place).replace("{set}", name)
        return address_of(text) if is_address(text) else Path(os.path.normpath(folder / text))

    # Paths in options of readers are relative too.
    options = {key: table[key] for key in (*TRUTH_OPTIONS, *RESULT_OPTIONS) if key in table}
    for key in PATH_OPTIONS:
        if key in options:
            options[key] = path_of(options[key], f"{where}.{key}")
    for key, (kind, words) in OR_PATH.items():
        if key in options and not isinstance(options[key], kind) and options[key] not in words:
            options[key] = path_of(options[key], f"{where}.{key}")
    # Load the protocol now, so that a wrong metric fails before hours of work.
    protocol = _text(table.get("protocol", "coco"), f"{where}.protocol", place)
    if protocol.endswith(".toml"):
        protocol = str(path_of(protocol, f"{where}.protocol"))
    metric = table.get("metric")
    try:
        keys = [row.key for row in load_protocol(protocol).rows]
        if metric is not None:
            checks.one_of(_text(metric, "metric", place), keys, name="metric")
    except InputError as error:
        raise InputError(f"{place}: {where}: {error}") from None
    # Accept one group or several.
    groups = table.get("group", [])
    groups = [groups] if isinstance(groups, str) else groups
    if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
        raise InputError(f"{where}.group", "be a name or a list of names", got=repr(groups)[:80], place=place)
    # A model without a path of its own uses the common pattern.
    return SuiteSet(
        name,
        path_of(table["ground_truth"], f"{where}.ground_truth"),
        {
            model: path_of(own[model], f"{where}.results.{model}")
            if model in own
            else path_of(pattern, f"models.{model}")
            for model, pattern in models.items()
        },
        protocol,
        tuple(groups),
        {key: value for key, value in options.items() if key in TRUTH_OPTIONS},
        {key: value for key, value in options.items() if key in RESULT_OPTIONS},
        metric,
    )


def _fitting(folder: Path, pattern: Any) -> list[str]:
    """List the sets for which a pattern matches an existing path."""
    if not isinstance(pattern, str) or "{set}" not in pattern:
        return []
    parts = Path(pattern).parts
    first = next(number for number, part in enumerate(parts) if "{set}" in part)
    base = Path(os.path.normpath(folder / Path(*parts[:first]))) if first else folder
    wanted = re.compile(re.escape(parts[first]).replace(re.escape("{set}"), "(.+)"))
    found = [wanted.fullmatch(entry.name) for entry in base.iterdir()] if base.is_dir() else []
    names = [match[1] for match in found if match is not None and not match[1].startswith(".")]
    return [name for name in names if is_there(folder / pattern.replace("{set}", name))]


def _read_folder(path: Path) -> Suite:
    # A folder is a set: it has ground truth under one of the usual names, and every other file is a model's
    # results.
    sets, models = [], dict[str, None]()
    for folder in filter(Path.is_dir, _entries(path)):
        entries = _entries(folder)
        truths = [entry for entry in entries if _stem(entry) in TRUTH_NAMES]
        if not entries or len(truths) > 1:
            names = short_list(entry.name for entry in truths) or "an empty folder"
            rule = f"hold one ground truth, named {', '.join(TRUTH_NAMES)}"
            raise InputError("a folder of a set", rule, got=names, place=str(folder))
        # Each model has one file: two files with the same stem are an error.
        results: dict[str, Path] = {}
        for entry in entries:
            other = entry if entry in truths else results.setdefault(_stem(entry), entry)
            if other != entry:
                rule, got = "have one file of results for each model", f"{other.name} and {entry.name}"
                raise InputError("a folder of a set", rule, got=got, place=str(folder))
        models.update(dict.fromkeys(results))
        # A missing ground truth fails when its set is read, not now.
        truth = truths[0] if truths else folder / f"{TRUTH_NAMES[0]}.json"
        sets.append(SuiteSet(folder.name, truth, results, "coco", (), {}, {}))
    # Give every set every model, so that a missing file shows as missing.
    every = tuple(sorted(models))
    return Suite(
        path.resolve().name,
        tuple(
            SuiteSet(
                one.name,
                one.ground_truth,
                {model: one.results.get(model, path / one.name / f"{model}.json") for model in every},
                one.protocol,
                one.groups,
                one.truth_options,
                one.result_options,
            )
            for one in sets
        ),
        every,
    )


def _entries(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def _stem(path: Path) -> str:
    return path.name if path.is_dir() else path.with_name(path.name.removesuffix(".gz")).stem
