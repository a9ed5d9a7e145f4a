"""Find the key of a summary metric by what people call it: ``map``, ``mAP@[.5:.95]``, ``AP@0.5``.

Conventions
-----------
- A key as it stands comes first. Else a name stands for the one key that says the same: the kind (AP or AR),
  the IoU thresholds or max detections, and what objects. A name that fits no key, or several, is refused.
- Without thresholds it is the mean over all of them, and so are ``50-95`` and ``.5:.95`` where a summary has
  single thresholds beside its mean: elsewhere its only number may be that of one threshold. Numbers with a
  point are fractions: ``.5`` is 50.
- ``m`` in front says nothing, nor do the folders and marks of tools: ``metrics/mAP50(B)``, ``bbox_mAP_50``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from boxscore._utils import checks
from boxscore._utils.records import NamedTuple

_SIZES = {"small": "s", "medium": "m", "large": "l"}
_SAY_NOTHING = frozenset({"iou", "max", "maxdets", "dets", "all", "mean"})
_RANGE = frozenset({50.0, 95.0})
_RANGES = (_RANGE, _RANGE | {5.0}, frozenset({5095.0}))
_TYPES = "bbox|box|segm|seg|mask"
_MARKS = rf".*/|\((?:b|m|p)\)|^(?:val|test)_|(?:{_TYPES})_|_(?:{_TYPES})$"
_NAME = r"m?(ap|ar)((?:[^a-z].*|(?:[a-z]|small|medium|large))?)"  # compiled when first asked for


def metric_named(name: str, known: Sequence[str], *, option: str = "a metric") -> str:
    """Return the key that a name of a summary metric stands for; ``option`` is what messages call it."""
    return metric_meant(name, known) or checks.one_of(name, known, name=option)


def metric_meant(name: str, known: Sequence[str]) -> str | None:
    """Return the key that a name stands for; None where it is none's, or may be several's."""
    if name in known:
        return name
    meant = _said_by(name)
    meanings = {key: _said_by(key) for key in known}
    if meant is not None and meant.numbers == _RANGE:
        beside = any(one is not None and one.kind == meant.kind and one.numbers for one in meanings.values())
        meant = meant._replace(numbers=frozenset()) if beside else None
    keys = [] if meant is None else [key for key, meaning in meanings.items() if meaning == meant]
    return keys[0] if len(keys) == 1 else None


class _Meaning(NamedTuple):
    """What a name says."""

    kind: str
    numbers: frozenset[float]
    words: frozenset[str]


def _said_by(name: object) -> _Meaning | None:
    """Return what a name says; None where it is another metric's."""
    whole = re.fullmatch(_NAME, re.sub(_MARKS, "", str(name).strip().lower()))
    if whole is None:
        return None
    kind, rest = whole.groups()
    words = frozenset(_SIZES.get(word, word) for word in re.findall(r"[a-z]+", rest)) - _SAY_NOTHING
    numbers = frozenset(
        round(100 * float(number), 9) if "." in number else float(number)
        for number in re.findall(r"[0-9]*\.?[0-9]+", rest)
    )
    return _Meaning(kind, _RANGE if kind == "ap" and numbers in _RANGES else numbers, words)
