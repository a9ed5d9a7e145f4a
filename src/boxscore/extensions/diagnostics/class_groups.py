"""Compute metrics of groups of classes, such as base and novel classes.

Conventions
-----------
- A metric of a group is the protocol's mean over the classes of the group, from the same matches and curves
  as the metric over all classes. If a group has every class, both are equal.
- Groups may overlap. A class may be in no group.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, unchangeable
from boxscore.data.class_names import EVERY_CLASS
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import DiagnosticResult
from boxscore.scoring.curves import Curves
from boxscore.scoring.summary import summary_total

if TYPE_CHECKING:
    import pandas as pd

OTHERS = "*"
"""Stands for the classes that are in no other group."""

COLUMN = "boxscore group {}"
"""Name of the column that marks the classes of a group, by number."""

EXAMPLE = "for example 'novel=cat,dog;base=*', where * is every class of no other group"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ClassGroupScores(DiagnosticResult):
    """Summary metrics of S groups of classes, and of all classes.

    Attributes
    ----------
    groups : list of str, [S]
    classes, ground_truths, detections : ndarray of int64, [S]
        Number of classes with a counted ground truth, counted ground truths, and evaluated detections.
    metrics : list of str, [M]
        The summary metrics of the protocol that are means over classes.
    values : ndarray of float64, [S, M]
        NaN for a group without a ground truth.
    total : ClassGroupScores, optional
        The same for all classes, with S = 1.
    """

    groups: list[str]
    classes: NDArray[np.int64]
    ground_truths: NDArray[np.int64]
    detections: NDArray[np.int64]
    metrics: list[str]
    values: FloatArray
    total: ClassGroupScores | None = None

    title = "Groups of classes"

    def to_frame(self) -> pd.DataFrame:
        """Return one row per group: ``group, classes, ground_truths, detections``, a column per metric."""
        import pandas as pd

        columns = {
            "group": self.groups,
            "classes": self.classes,
            "ground_truths": self.ground_truths,
            "detections": self.detections,
        }
        return pd.DataFrame({**columns, **dict(zip(self.metrics, self.values.T, strict=True))})

    def total_frame(self) -> pd.DataFrame:
        """Return the same columns for all classes together."""
        return (self if self.total is None else self.total).to_frame()


def groups_of_text(text: str) -> dict[str, list[str]]:
    """Read groups from ``name=class,class;name=class`` or from a file.

    A file is a JSON object of lists of classes, or has one ``name=class,class`` per line.
    """
    path = Path(text)
    if "=" not in text or path.is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeError, ValueError) as error:
            what = getattr(error, "strerror", None) or "not a text file"
            raise InputError(
                "--class-groups", f"be a file or groups, {EXAMPLE}", got=f"{text!r}: {what}"
            ) from None
        if text.lstrip().startswith("{"):
            return _groups_of_json(text, path)
    groups: dict[str, list[str]] = {}
    for part in text.replace("\n", ";").split(";"):
        name, sign, names = part.partition("=")
        if not part.strip() or part.lstrip().startswith("#"):
            continue
        if not sign or not name.strip() or name.strip() in groups:
            raise InputError(
                "a group of classes", f"be NAME=CLASS,CLASS with a new name, {EXAMPLE}", got=repr(part)
            )
        groups[name.strip()] = [one.strip() for one in names.split(",") if one.strip()]
    return groups


def _groups_of_json(text: str, path: Path) -> dict[str, list[str]]:
    try:
        groups = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("--class-groups", "be valid JSON", got=str(error), place=str(path)) from None
    for name, names in groups.items():
        if not isinstance(names, list) or not all(isinstance(one, (str, int)) for one in names):
            raise InputError(
                "a group of classes", "be a list of class names", got=repr(names), place=f"{path}: {name}"
            )
    return {name: [str(one) for one in names] for name, names in groups.items()}


def class_group_scores(evaluation: Evaluation, class_groups: Mapping[str, Sequence[str]]) -> ClassGroupScores:
    """Compute the metrics of groups of classes, such as base and novel, or seen and unseen, classes.

    Parameters
    ----------
    evaluation : Evaluation
    class_groups : mapping of str to sequence of str
        Classes of each group, by name, id or ``NAME (ID)``; ``"*"`` means every class in no other group.

    Returns
    -------
    ClassGroupScores

    Raises
    ------
    InputError
        When a class does not exist, there is no group, or the protocol does not distinguish classes.
    """
    protocol = evaluation.protocol
    if not protocol.matching.per_class or protocol.ap.pool == "classes":
        raise InputError("groups of classes", "have a value per class", got=f"protocol {protocol.name!r}")
    if not class_groups:
        raise InputError("groups of classes", f"be one or more, {EXAMPLE}", got="none")
    members = _members(evaluation, class_groups)
    # Mark the classes of each group in a column, which rows of a summary can select.
    categories = evaluation.categories
    marks = {COLUMN.format(number): row for number, row in enumerate(members)}
    marked = dataclasses.replace(categories, columns={**categories.columns, **marks})

    def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
        curves = copy.copy(evaluation.curves_of(area, cap, pooled))
        curves.categories = marked
        return curves

    # Take the metrics that are means over all classes.
    rows = [row for row in protocol.rows if not (row.classes or row.harmonic_of)]
    selections = [f"{name}=True" for name in marks]
    values = [
        [summary_total(row.replaced(classes=one), protocol, curves_of) for row in rows] for one in selections
    ]
    # Count over the classes of each group.
    counts = evaluation.class_counts
    defined = (counts["ground_truths"] > 0).astype(np.int64)
    every = np.ones((1, members.shape[1]), dtype=bool)
    keys = [row.key for row in rows]

    def scores(
        names: list[str], of: NDArray[np.bool_], numbers: FloatArray, total: ClassGroupScores | None
    ) -> ClassGroupScores:
        counted = of @ defined, of @ counts["ground_truths"], of @ counts["detections"]
        result = ClassGroupScores(names, *counted, keys, numbers.reshape(-1, len(keys)), total)
        return unchangeable(result)

    total = scores([EVERY_CLASS], every, np.array([evaluation.metrics[key] for key in keys]), None)
    return scores(list(class_groups), members, np.array(values), total)


def _members(evaluation: Evaluation, class_groups: Mapping[str, Sequence[str]]) -> NDArray[np.bool_]:
    """Return whether each group has each class, [S, K]."""
    categories = evaluation.categories
    members = np.zeros((len(class_groups), len(categories)), dtype=bool)
    for row, names in zip(members, class_groups.values(), strict=True):
        words = [name for name in names if name != OTHERS]
        found = categories.rows_by_word(words, numbers=True)
        for word, position in zip(words, found.tolist(), strict=True):
            if position < 0:
                checks.one_of(word, categories.labels, name="a class of a group")
        row[found] = True
    # Then the classes of no other group.
    rest = ~members.any(axis=0)
    for row, names in zip(members, class_groups.values(), strict=True):
        if OTHERS in names:
            row |= rest
    return members
