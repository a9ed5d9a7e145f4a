"""Metrics as a flat dictionary of floats, for experiment trackers.

Conventions
-----------
- Keys are ``<prefix><metric>`` and, on request, ``<prefix>per_class/AP/<class>``; values are floats.
  Undefined numbers are left out: trackers draw NaN as a gap, or refuse it.
- Keys have only letters, digits and ``_ - . /`` and blanks, which TensorBoard, MLflow and W&B all take. Class
  names that become equal that way are told apart by a number. No key is the folder of another.
"""

from __future__ import annotations

import re

from boxscore.evaluation import Evaluation

__all__ = ["flat_metrics"]

LONGEST = 120
"""Characters of a class in a key; MLflow takes 250 for the whole."""


def flat_metrics(evaluation: Evaluation, *, prefix: str = "", per_class: bool = False) -> dict[str, float]:
    """Flatten an evaluation for an experiment tracker.

    Parameters
    ----------
    evaluation : Evaluation
    prefix : str, default ""
        Stands before every key, for example ``"val/"``.
    per_class : bool, default False
        Add the first headline number of each class.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1], ["cat"], [[10, 10, 50, 50]])
    >>> found = Detections.from_arrays([1], ["cat"], [[10, 10, 50, 50]], [0.9])
    >>> flat = flat_metrics(evaluate(truth, found, protocol="voc2012"), prefix="val/", per_class=True)
    >>> flat
    {'val/mAP': 1.0, 'val/per_class/AP/cat': 1.0}
    """
    flat = {f"{prefix}{key}": float(value) for key, value in evaluation.metrics.items() if value == value}
    if not per_class or not evaluation.class_values:
        return flat
    metric, values = next(iter(evaluation.class_values.items()))
    for label, value in zip(evaluation.labels, values.tolist(), strict=True):
        if value == value:
            key = name = f"{prefix}per_class/{metric}/{_key(label)}"
            number = 2
            while key in flat:
                key = f"{name}_{number}"
                number += 1
            flat[key] = value
    return flat


def _key(label: str) -> str:
    """Write a class name with the characters that every tracker takes."""
    return re.sub(r"[^A-Za-z0-9_.\- ]", "_", label)[:LONGEST].strip(" .") or "_"
