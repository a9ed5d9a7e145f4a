"""Find the key of a summary metric by a common name: ``map``, ``mAP@[.5:.95]``, ``AP@0.5``.

Conventions
-----------
- A name that equals a key is that key. Any other name is split into the kind (AP or AR), numbers (IoU
  thresholds or max detections) and words (small, rare, ...), and means the one key with the same parts. A
  name that fits zero or several keys is rejected.
- A name without numbers is the mean over all thresholds. So are ``50-95`` and ``.5:.95``, but only if the
  summary also has metrics at single thresholds: otherwise its only number may be that of one threshold.
- Numbers with a decimal point are fractions: ``.5`` is 50.
- A leading ``m`` is ignored, and so are affixes of tools: ``metrics/mAP50(B)``, ``bbox_mAP_50``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxscore._utils import checks
from boxscore._utils.records import NamedTuple

_SIZES = {"small": "s", "medium": "m", "large": "l"}
_NO_MEANING = frozenset({"iou", "max", "maxdets", "dets", "all", "mean"})
_RANGE = frozenset({50.0, 95.0})
_RANGES = (_RANGE, _RANGE | {5.0}, frozenset({5095.0}))
_TYPES = "bbox|box|segm|seg|mask"
_MARKS = rf".*/|\((?:b|m|p)\)|^(?:val|test)_|(?:{_TYPES})_|_(?:{_TYPES})$"
_NAME = r"m?(ap|ar)((?:[^a-z].*|(?:[a-z]|small|medium|large))?)"  # compiled lazily


def metric_named(name: str, known: Sequence[str], *, option: str = "a metric") -> str:
    """Return the key that a metric name means; error messages call the name ``option``."""
    return metric_meant(name, known) or checks.one_of(name, known, name=option)


def metric_meant(name: str, known: Sequence[str]) -> str | None:
    """Return the key that a name means; None if zero or several keys fit."""
    if name in known:
        return name
    meant = _taken_apart(name)
    meanings = {key: _taken_apart(key) for key in known}
    # The usual range means the mean over thresholds if other keys name single thresholds; else it is unclear.
    if meant is not None and meant.numbers == _RANGE:
        has_single = any(
            one is not None and one.kind == meant.kind and one.numbers for one in meanings.values()
        )
        meant = meant._replace(numbers=frozenset()) if has_single else None
    keys = [] if meant is None else [key for key, meaning in meanings.items() if meaning == meant]
    return keys[0] if len(keys) == 1 else None


class _Meaning(NamedTuple):
    """The parts of a name; names with equal parts mean the same metric."""

    kind: str
    numbers: frozenset[float]
    words: frozenset[str]


def _taken_apart(name: object) -> _Meaning | None:
    """Split a name into its parts; None if it does not name AP or AR."""
    whole = re.fullmatch(_NAME, re.sub(_MARKS, "", str(name).strip().lower()))
    if whole is None:
        return None
    kind, rest = whole.groups()
    words = frozenset(_SIZES.get(word, word) for word in re.findall(r"[a-z]+", rest)) - _NO_MEANING
    numbers = frozenset(
        round(100 * float(number), 9) if "." in number else float(number)
        for number in re.findall(r"[0-9]*\.?[0-9]+", rest)
    )
    return _Meaning(kind, _RANGE if kind == "ap" and numbers in _RANGES else numbers, words)
