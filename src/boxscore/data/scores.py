"""Check the scores of detections, which are present in all rows or in none.

Conventions
-----------
- Without scores, the table does not have a score column; missing scores are never filled in, and accessing
  them is an error (:func:`no_scores`).
- An empty table has scores.
- If only some detections have scores, the error shows the first detection with and without a score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore.errors import InputError

SCORELESS = (
    "Detections lack scores, so boxes are counted, not ranked; AP depends on an unknown order and is "
    "reported as an interval."
)
"""Note on results of detections without scores."""


ALL_EQUAL = (
    "Scores are ignored: all detections count as equally confident, and ties are broken by the "
    "order in the files."
)
"""Note on results of protocols that treat all scores as equal."""


COUNTED = "the protocol scoreless counts boxes without ranking them"
"""Advice on detections without scores, for protocols that rank detections."""


def score_array(values: Any) -> FloatArray:
    """Convert scores to numbers [D]; None becomes NaN."""
    return checks.float_array(values, name="scores")


def all_or_none(scores: FloatArray | None, place: Place) -> FloatArray | None:
    """Return the scores, or None if all are NaN, which means missing.

    Raises
    ------
    InputError
        If only some scores are missing.
    """
    if scores is None:
        return None
    # The usual cases take one pass: all detections have a score, or none does.
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    if missing.all():
        return None
    # Reject a mixture, and show a detection of each kind.
    first, with_score = int(np.argmax(missing)), int(np.argmin(missing))
    raise InputError(
        "a detection",
        "have a score if another has one",
        got="none",
        place=place(first),
        cause=f"{place(with_score)} has {scores[with_score]:g}; give every detection a score, or none",
    )


def no_scores(source: str) -> InputError:
    """Return the error for a computation that needs scores."""
    return InputError(
        "the detections",
        "have scores for this",
        got="none",
        place=source,
        cause="boxes without scores are counted, not ranked",
    )
