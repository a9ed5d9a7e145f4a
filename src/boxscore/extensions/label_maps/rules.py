"""Define the rules in which label map tools differ, as data with a signature.

Conventions
-----------
- A set of rules is a TOML file in ``panoptic_rules`` or ``semantic_rules``, or the user's own. With
  ``extends = "plain"`` it lists only differences.
- Fields are defined like those of a protocol (:mod:`boxscore.protocols.fields`), with check, doc and word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from boxscore._utils import checks
from boxscore._version import __version__
from boxscore.errors import ProtocolError
from boxscore.protocols.fields import (
    Check,
    Rules,
    Word,
    choice,
    list_of,
    read,
    rule,
    text,
    whole,
)
from boxscore.protocols.loading import read_toml

LARGEST_LABEL = 65535
"""The largest label in a 16-bit PNG."""

_FOLDER = Path(__file__).parent
_PANOPTIC, _SEMANTIC = _FOLDER / "panoptic_rules", _FOLDER / "semantic_rules"


def _pair(value: Any, name: str) -> tuple[int, int]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ProtocolError(name, "be pairs [from, to]", got=repr(value))
    first, second = (_label(each, name) for each in value)
    return first, second


def _label(value: Any, name: str) -> int:
    return checks.whole_number(value, -(2**31), name=name, high=LARGEST_LABEL)


_LABEL = Check("whole number", _label)
_LABELS = list_of(_LABEL, "a list of labels")


def _sizes(value: Any, name: str) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class name = pixels", got=repr(value))
    return {
        str(key): checks.number_between(size, 0, 1e12, name=f"{name}.{key}", open_low=True)
        for key, size in value.items()
    }


def _categories(value: Any, name: str) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = [labels]", got=repr(value))
    return {str(key): tuple(_LABELS(labels, f"{name}.{key}")) for key, labels in value.items()}


def _labels_text(labels: tuple[int, ...]) -> str:
    """Format labels in ascending order, with runs as ``first..last``."""
    runs: list[list[int]] = []
    for label in sorted(set(labels)):
        if runs and label == runs[-1][1] + 1:
            runs[-1][1] = label
        else:
            runs.append([label, label])
    return "+".join(str(low) if low == high else f"{low}..{high}" for low, high in runs) or "none"


class PanopticRules(Rules):
    """Rules of panoptic quality."""

    name: str = rule("own", check=text, doc="In the signature.")
    title: str = rule("", check=text, doc="Heading of the result.")
    aliases: tuple[str, ...] = rule((), check=list_of(text, "a list of names"), doc="Other names.")
    truth_area: Literal["table", "map"] = rule(
        "map",
        check=choice(Literal["table", "map"]),
        doc="The area of a segment of the truth: `area` of its table, or its pixels counted.",
        word=Word("area"),
    )
    unlisted_truth: Literal["background", "refuse"] = rule(
        "refuse",
        check=choice(Literal["background", "refuse"]),
        doc="Where map and table of the truth disagree: warn, and take pixels of no listed segment as "
        "background that no prediction may cover; or refuse.",
        word=Word("unlisted"),
    )
    crowds: Literal["last", "all"] = rule(
        "all",
        check=choice(Literal["last", "all"]),
        doc="Which crowd segments of a class excuse predictions in an image: the last, or all.",
        word=Word("crowd"),
    )

    def signature(self) -> str:
        """Return all rules in one line, to print with results."""
        return _signature("panoptic", self)


class SemanticRules(Rules):
    """Rules for reading a confusion matrix of labels."""

    name: str = rule("own", check=text, doc="In the signature.")
    title: str = rule("", check=text, doc="Heading of the result.")
    aliases: tuple[str, ...] = rule((), check=list_of(text, "a list of names"), doc="Other names.")
    classes: tuple[int, ...] = rule(
        (), check=_LABELS, doc="Labels that are classes; if empty, those of the caller or of the maps."
    )
    class_names: tuple[str, ...] = rule((), check=list_of(text, "a list of names"), doc="Their names.")
    ignored_labels: tuple[int, ...] = rule(
        (255,),
        check=_LABELS,
        doc="Pixels of the truth with such a label do not count; predicted, such a label is wrong.",
        word=Word("ignore", text=lambda rules: _labels_text(rules.ignored_labels)),
    )
    truth_outside: Literal["refuse", "leave_out"] = rule(
        "refuse",
        check=choice(Literal["refuse", "leave_out"]),
        doc="Labels of the truth that are neither classes nor ignored.",
        word=Word("truth", silent="refuse"),
    )
    prediction_outside: Literal["refuse", "wrong"] = rule(
        "refuse",
        check=choice(Literal["refuse", "wrong"]),
        doc="Predicted labels that are neither classes nor ignored.",
        word=Word("outside"),
    )
    relabeled_predictions: tuple[tuple[int, int], ...] = rule(
        (),
        check=list_of(Check("[from, to]", _pair), "a list of pairs [from, to]"),
        doc="Predicted labels that count as another.",
        word=Word(
            "relabel",
            silent=(),
            text=lambda rules: "+".join(f"{old}>{new}" for old, new in rules.relabeled_predictions),
        ),
    )
    reduced: Literal["none", "truth", "both"] = rule(
        "none",
        check=choice(Literal["none", "truth", "both"]),
        doc="Where label 0 becomes 255 and every other label one less (`reduce_zero_label`).",
        word=Word("reduced", silent="none"),
    )
    averaged: Literal["truth", "union", "all"] = rule(
        "union",
        check=choice(Literal["truth", "union", "all"]),
        doc="Classes in the mean IoU: those in the truth; those in the truth or predicted; all, absent ones "
        "with IoU 0.",
        word=Word("mean"),
    )

    objects_from: int = rule(
        0,
        check=whole(0),
        doc="Values of the truth from here on are objects: their label times this, and a number; 0: none is.",
        word=Word("objects", silent=0),
    )
    object_sizes: Mapping[str, float] = rule(
        {},
        check=Check("class name = pixels", _sizes),
        doc="Mean sizes of objects, by the names of classes: `iIoU` weights each object by it (Cityscapes).",
        word=Word("sizes", silent={}, text=lambda rules: f"{sum(rules.object_sizes.values()):.6g}"),
    )
    categories: Mapping[str, tuple[int, ...]] = rule(
        {},
        check=Check("name = [labels]", _categories),
        doc="Labels that make a category: `mIoU_categories`, and `iIoU_categories` of those whose "
        "classes all have sizes.",
        word=Word("categories", silent={}, text=lambda rules: str(len(rules.categories))),
    )

    def _check_together(self) -> None:
        if self.object_sizes and not self.objects_from:
            raise ProtocolError("objects_from", "be given where objects have sizes", got=0)
        if len(set(self.classes)) != len(self.classes):
            raise ProtocolError("classes", "be unique", got=list(self.classes))
        if self.class_names and len(self.class_names) != len(self.classes):
            rule = f"be as long as classes ({len(self.classes)})"
            raise ProtocolError("class_names", rule, got=len(self.class_names))

    def signature(self) -> str:
        """Return all rules in one line, to print with results."""
        return _signature("semantic", self)


AnyRules = TypeVar("AnyRules", PanopticRules, SemanticRules)


def _signature(kind: str, rules: PanopticRules | SemanticRules) -> str:
    words = []
    for field in dataclasses.fields(rules):
        word: Word | None = field.metadata["rule"].word
        value = getattr(rules, field.name)
        if word is not None and value != word.silent:
            words.append(f"{word.key}:{word.text(rules) if callable(word.text) else value}")
    return "|".join(["boxscore", kind, rules.name, *words, f"v:{__version__}"])


def names_in(folder: Path) -> list[str]:
    """Return the names of the TOML files in a folder."""
    return sorted(file.stem for file in folder.glob("*.toml"))


def panoptic_rule_names() -> list[str]:
    """Return the names of the shipped rules of panoptic quality."""
    return names_in(_PANOPTIC)


def semantic_rule_names() -> list[str]:
    """Return the names of the shipped rules of semantic IoU."""
    return names_in(_SEMANTIC)


def load_panoptic_rules(rules: str | Path | Mapping[str, Any] | PanopticRules) -> PanopticRules:
    """Load rules of panoptic quality by name, from a TOML file or from a mapping.

    Parameters
    ----------
    rules : str, Path, mapping or PanopticRules
        ``"panopticapi"``, ``"counted"``, a path ending in ``.toml``, or a mapping with the keys of such a
        file, possibly with ``extends``.

    Returns
    -------
    PanopticRules

    Raises
    ------
    ProtocolError
        When a key or value breaks a rule.

    Examples
    --------
    >>> load_panoptic_rules("panopticapi").crowds
    'last'
    """
    return _load(PanopticRules, rules, _PANOPTIC)


def load_semantic_rules(rules: str | Path | Mapping[str, Any] | SemanticRules) -> SemanticRules:
    """Load rules of semantic IoU by name, from a TOML file or from a mapping.

    Parameters
    ----------
    rules : str, Path, mapping or SemanticRules
        A shipped name (:func:`semantic_rule_names`), a path ending in ``.toml``, or a mapping with the keys
        of such a file, possibly with ``extends``.

    Returns
    -------
    SemanticRules

    Raises
    ------
    ProtocolError
        When a key or value breaks a rule.

    Examples
    --------
    >>> load_semantic_rules({"extends": "plain", "averaged": "all"}).averaged
    'all'
    """
    return _load(SemanticRules, rules, _SEMANTIC)


def _load(kind: type[AnyRules], rules: Any, folder: Path) -> AnyRules:
    # Accept rules, a mapping, a file or a name.
    if isinstance(rules, kind):
        return rules
    from_mapping = isinstance(rules, Mapping)
    values = dict(rules) if isinstance(rules, Mapping) else _values(str(rules), folder)
    parent = values.pop("extends", None)
    # With "extends", missing keys come from the shipped rules; changed rules get their own name.
    if parent is not None:
        if not isinstance(parent, str):
            raise ProtocolError("extends", "be the name of rules", got=repr(parent))
        base = _load_shipped(parent, folder)
        base.pop("aliases", None)
        if from_mapping and "name" not in values:
            base["name"] = f"{base['name']}+"
            base.pop("title", None)
        values = base | values
    # An unknown key is likely a typo.
    known = [field.name for field in dataclasses.fields(kind)]
    for key in values:
        if key not in known:
            raise ProtocolError(checks.unknown_key(key, key, known))
    return read(kind, values, name="")


def _values(name: str, folder: Path) -> dict[str, Any]:
    if name.endswith(".toml"):
        path = Path(name)
        return {"name": path.stem} | read_toml(path)
    return _load_shipped(name, folder)


def _load_shipped(name: str, folder: Path) -> dict[str, Any]:
    files = {stem: read_toml(folder / f"{stem}.toml") for stem in names_in(folder)}
    for stem, values in files.items():
        if name in (stem, *values.get("aliases", ())):
            return {"name": stem} | values
    cause = checks.did_you_mean(name, files)
    raise ProtocolError("rules", "be a known name or a .toml file", got=repr(name), cause=cause)
