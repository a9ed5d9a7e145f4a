"""Give the metrics of an evaluation flat names, as experiment loggers need them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.metric_names import metric_named
from boxscore.reports.text import LONGEST

_OTHER = re.compile(r"[^\w.\-]+")
"""Characters that MLflow rejects in a name, and ``/``, which separates the parts of a name."""


def flat(
    metrics: Mapping[str, float],
    values: Mapping[str, FloatArray],
    labels: Sequence[str],
    *,
    prefix: str,
    classes: bool | str | Sequence[str],
) -> dict[str, float]:
    """Return metrics, and values of classes, by flat name; see :meth:`Evaluation.flat`.

    No name is the folder of another: MLflow's file store has a file for each.
    """
    start = f"{prefix}/" if prefix else ""
    numbers = {f"{start}{_clean(key)}": value for key, value in metrics.items()}
    for metric in _metrics_of_classes(classes, values):
        key = metric_named(metric, list(values), option="a metric of classes")
        for name, value in zip(unique_names(labels), values[key].tolist(), strict=True):
            numbers[f"{start}per_class/{_clean(key)}/{name}"] = value
    return numbers


def unique_names(labels: Iterable[str]) -> list[str]:
    """Return a name for each class that every logger accepts; repeated names get a trailing ``_``."""
    names: dict[str, str] = {}
    for label in labels:
        name = _clean(label)
        while name.casefold() in names:
            name += "_"
        names[name.casefold()] = name
    return list(names.values())


def _metrics_of_classes(classes: bool | str | Sequence[str], values: Mapping[str, object]) -> Sequence[str]:
    if isinstance(classes, str):
        return [classes]
    return [*values][: int(classes)] if isinstance(classes, bool) else classes


def _clean(name: str) -> str:
    name = _OTHER.sub("_", name)[:LONGEST]
    return name if name.strip(".") else "_"  # a name of dots alone is a folder
