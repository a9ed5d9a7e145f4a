"""Check the scores of detections: all rows have one, or no row does.

Conventions
-----------
- A table whose detections have no score has no column of scores; no score is ever filled in. Who asks for
  its scores is refused in one line (:func:`no_scores`).
- A table without rows has scores: nothing says otherwise.
- Scores of some detections alone are an error that names the first detection with one and the first without.
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
"""What is said once of every result of detections without scores."""


ALL_EQUAL = (
    "Scores are ignored: all detections count as equally confident, and ties are broken by the "
    "order in the files."
)
"""What is said once of every result of a protocol that takes all scores for equal."""


COUNTED = "the protocol scoreless counts boxes without ranking them"
"""What to do about detections without scores where a protocol ranks them."""


def score_array(values: Any) -> FloatArray:
    """Return what is given as scores as numbers, [D]; None is NaN."""
    return checks.float_array(values, name="scores")


def all_or_none(scores: FloatArray | None, place: Place) -> FloatArray | None:
    """Return scores that all detections have, or None if no detection has one; NaN means no score.

    Raises
    ------
    InputError
        When some have a score and some have none.
    """
    if scores is None:
        return None
    # The usual cases cost one pass: every detection has a score, or none has.
    missing = np.isnan(scores)
    if not missing.any():
        return scores
    if missing.all():
        return None
    # Refuse a mixture, and show one detection of each kind.
    first, with_score = int(np.argmax(missing)), int(np.argmin(missing))
    raise InputError(
        "a detection",
        "have a score if another has one",
        got="none",
        place=place(first),
        cause=f"{place(with_score)} has {scores[with_score]:g}; give every detection a score, or none",
    )


def no_scores(source: str) -> InputError:
    """Return the error of a question that only scores can answer."""
    return InputError(
        "the detections",
        "have scores for this",
        got="none",
        place=source,
        cause="boxes without scores are counted, not ranked",
    )
